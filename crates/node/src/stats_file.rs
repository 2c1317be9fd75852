//! The statistics file, which is always written completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use corridor_proto::inspect::PeerView;
use corridor_proto::{AnyStation, HubStats, RelayCounters, Stats};
use serde::Serialize;

use crate::error::NodeError;

/// The content of the file.
#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    /// Number of the station.
    pub(crate) station: u16,
    /// Its role, as spelled in the configuration.
    pub(crate) role: &'a str,
    /// Processor time of the process since its start, in seconds.
    pub(crate) cpu_s: f64,
    /// Time since the run loop began, in seconds.
    pub(crate) wall_s: f64,
    /// How this station carries packets: "block", "window", "tcp-nc" or "plain".
    pub(crate) mode: String,
    /// The configured peers.
    pub(crate) peers: Vec<PeerReport>,
    /// The station's counters; for a hub, summed over all peers.
    pub(crate) stats: &'a Stats,
    /// A hub's additional counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hub: Option<&'a HubStats>,
    /// A relay's additional counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) relay: Option<RelayCounters>,
    /// The driver's counters.
    pub(crate) io: IoStats,
}

/// What is known about a peer.
#[derive(Debug, Serialize)]
pub(crate) struct PeerReport {
    /// Its station number.
    pub(crate) station: u16,
    /// Frames can be exchanged with it.
    pub(crate) up: bool,
    /// How it carries packets; `None` before it has announced that.
    pub(crate) mode: Option<String>,
    /// Differs from this station: nothing gets through.
    pub(crate) mode_differs: bool,
    /// For a hub: counters of the station for this peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stats: Option<Stats>,
}

impl PeerReport {
    /// All peers of a station.
    pub(crate) fn of(station: &AnyStation) -> Vec<PeerReport> {
        let ours = station.config().crossing();
        let report = |peer: PeerView| PeerReport {
            station: peer.id.0,
            up: station.is_up(peer.id),
            mode: peer.crossing.map(|crossing| crossing.to_string()),
            mode_differs: peer.crossing.is_some_and(|theirs| theirs != ours),
            stats: station.hub().and_then(|hub| Some(hub.station(peer.id)?.stats().clone())),
        };
        station.peers().into_iter().map(report).collect()
    }
}

corridor_proto::counters! {
    /// What happened between the station and the kernel.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub(crate) struct IoStats {
        /// Times the underlay had no room for a frame, which was then retried.
        pub(crate) underlay_busy: u64,
        /// Frames dropped because the underlay refused them.
        pub(crate) frames_refused: u64,
        /// Key exchange messages, and HELLOs of unknown sessions, dropped by the rate limit of
        /// their source address.
        pub(crate) key_exchanges_refused: u64,
        /// Key exchange messages, and HELLOs of unknown sessions, answered with a cookie under
        /// load.
        pub(crate) cookies_sent: u64,
        /// Frames dropped on purpose (`[synthetic_loss]`).
        pub(crate) frames_lost_synthetic: u64,
        /// Batches of packets that the host did not accept completely.
        pub(crate) packets_untaken: u64,
        /// Link-scope packets of the host's kernel not sent through the tunnel: router
        /// solicitations, neighbour discovery, multicast listener reports. They are sent if
        /// `tun.addresses` has a link-local address.
        pub(crate) packets_of_own_link: u64,
        /// Wake-ups of the event loop.
        pub(crate) wakeups: u64,
    }
}

/// Checks before the start whether the file can be written at all.
pub(crate) fn check_place(path: &Path) -> Result<(), NodeError> {
    let directory = directory(path);
    if directory.is_dir() && path.file_name().is_some() {
        return Ok(());
    }
    Err(NodeError::StatsDirectory { path: path.into(), directory })
}

/// Writes the file under a temporary name in the same directory, then renames it: a reader sees the
/// old one or the new one. `lasting` waits until it is on disk, which may take long.
pub(crate) fn write(path: &Path, report: &Report<'_>, lasting: bool) -> Result<(), NodeError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = directory(path).join(name);
    let written = write_to(&temporary, report, lasting).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        let _ = fs::remove_file(&temporary);
        NodeError::StatsFile { path: path.into(), source }
    })
}

fn write_to(path: &Path, report: &Report<'_>, lasting: bool) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(report)?;
    text.push(b'\n');
    let mut file = File::create(path)?;
    file.write_all(&text)?;
    if lasting { file.sync_all() } else { Ok(()) }
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => ".".into(),
    }
}
