//! The status of a node: the counters of its station, and values derived from them.
//!
//! All values are in SI units, with the unit at the end of the name; ratios are from 0 to 1.

mod since;

use std::time::Duration;

use corridor_base::Time;
use corridor_proto::inspect::{PeerView, QueueView};
use corridor_proto::relay::Hold;
use corridor_proto::stats::Described;
use corridor_proto::{
    AnyStation, HubStats, MemoryView, RelayCounters, RelayStation, RelayView, Role, Station,
    StationId, Stats,
};
use serde::{Deserialize, Serialize};

use crate::config::NodeConfig;
use crate::memory;
use crate::stats_file::IoStats;
use crate::underlay::Underlay;
pub use since::{PeerSince, Since};

/// Packets that a relay has to have forwarded before it reports that nobody overhears them.
const FORWARDED_MIN: u64 = 100;

/// The status of a node. Flat except for its groups (queue, repair, overhead, relay, peers), like
/// the JSON that scripts read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Status {
    /// Stem of its configuration file's name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Time since it started, in seconds.
    pub uptime_s: f64,
    /// Its station number.
    pub station: u16,
    /// Its station's role: "endpoint", "helper", "plain" or "relay".
    pub role: String,
    /// How it carries packets: "block", "window", "tcp-nc", "plain" or "relay".
    pub mode: String,
    /// Its TUN device; a helper has none.
    pub interface: Option<String>,
    /// The MTU of that device in bytes.
    pub mtu_bytes: Option<usize>,
    /// A description of the underlay.
    pub underlay: String,
    /// Longest frame in bytes.
    pub frame_len_max_bytes: usize,
    /// Rate in bits of frames per second, as configured or as measured by window mode; `None`: as
    /// fast as the underlay takes frames.
    pub rate_bps: Option<u64>,
    /// The channel is shared, as configured or detected (window mode).
    pub half_duplex: bool,
    /// Packets of the host waiting to be sent.
    pub queue: QueueStatus,
    /// What queues and windows may hold, summed over all peers.
    #[serde(default)]
    pub memory: MemoryStatus,
    /// The memory ceiling in bytes, where the file sets none and the peers need more than the
    /// default.
    #[serde(default)]
    pub memory_grown_bytes: Option<usize>,
    /// Losses repaired, and losses not repaired.
    pub repair: RepairStatus,
    /// What is sent in addition to the packets themselves.
    pub overhead: OverheadStatus,
    /// Where a helper recodes what this station sends: bytes of the ends' tag in each source
    /// symbol; 0 with a shared secret, because the helper has that too.
    #[serde(default)]
    pub tag_bytes: Option<usize>,
    /// For a relay: coding and its results.
    #[serde(default)]
    pub relay: Option<RelayStatus>,
    /// The configured peers.
    pub peers: Vec<PeerStatus>,
    /// All counters, with descriptions.
    pub counters: Vec<Counter>,
}

/// The ingress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct QueueStatus {
    /// Packets waiting.
    pub packets: usize,
    /// Packets that may wait.
    pub packets_max: usize,
    /// Bytes waiting.
    pub bytes: usize,
    /// How long the oldest packet has waited, in seconds.
    pub delay_s: f64,
}

/// Limits of the memory of queues and windows, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct MemoryStatus {
    /// The total.
    pub share_bytes: usize,
    /// Of that, for ingress queues.
    pub queue_bytes_max: usize,
    /// For symbols sent.
    pub sent_bytes_max: usize,
    /// For symbols received.
    pub received_bytes_max: usize,
}

/// Repair, in symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct RepairStatus {
    /// Received: losses repaired.
    pub repaired_symbols: u64,
    /// Received: losses not repaired in time.
    pub given_up_symbols: u64,
    /// Sent: repair symbols, coded or copies.
    pub sent_symbols: u64,
    /// Sent: repair symbols that the receiver reported as spurious (window mode).
    pub spurious_symbols: u64,
    /// Sent: packets given up before they were acknowledged.
    pub given_up_packets: u64,
}

/// What is sent in addition to the packets themselves, since the start; `None` before any packet
/// was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct OverheadStatus {
    /// In the air: share of frames that are not a source symbol sent for the first time.
    pub frames_ratio: Option<f64>,
    /// In bytes: bytes of all frames over bytes of the host's packets, less 1. Below 0 where header
    /// compression saves more than coding costs.
    pub bytes_ratio: Option<f64>,
}

/// A peer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct PeerStatus {
    /// Its station number.
    pub station: u16,
    /// Frames can be exchanged with it.
    pub up: bool,
    /// Its assumed address: UDP or Ethernet.
    pub endpoint: Option<String>,
    /// How long ago it was last heard, in seconds.
    pub last_heard_s: Option<f64>,
    /// How it carries packets; `None` before it has announced that.
    pub mode: Option<String>,
    /// Smoothed round-trip time through the tunnel, in seconds; only the peer at the other end has
    /// one.
    pub round_trip_s: Option<f64>,
    /// Loss ratio of frames to it, as it reports.
    pub loss_ratio_to: Option<f64>,
    /// Loss ratio of its frames to this node.
    pub loss_ratio_from: Option<f64>,
    /// Its public key, if stations have key pairs.
    #[serde(default)]
    pub public_key: Option<String>,
    /// How long ago the secret in use was agreed on with it, in seconds; `None` before that, and
    /// where a group shares a secret.
    #[serde(default)]
    pub agreed_s: Option<f64>,
    /// For a helper: for how long it will still be ignored, in seconds, because what it sent did
    /// not derive from its encoder's symbols; `None` if it is not.
    #[serde(default)]
    pub left_out_s: Option<f64>,
    /// Why nothing gets through, as in the log; `None` if something does.
    pub problem: Option<String>,
    /// For a peer of a hub: its own queue, memory and counters.
    #[serde(default)]
    pub own: Option<OwnStatus>,
    /// For a neighbour of a relay: who overhears whom.
    #[serde(default)]
    pub overhearing: Option<OverhearingStatus>,
}

/// Coding at a relay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct RelayStatus {
    /// Packets are combined where that pays.
    pub coding: bool,
    /// Longest time that a packet of others is held for a partner, in seconds; 0: packets are not
    /// held.
    pub hold_s: f64,
    /// It may be held for less, as learned from arrivals or from waits.
    pub hold_learned: bool,
    /// Packets held now.
    pub held_packets: usize,
    /// Share of coded frames for this node that it could not decode; `None` before the first.
    pub failed_ratio: Option<f64>,
    /// Frames sent with two packets.
    pub coded_frames: u64,
    /// Frames sent with one packet.
    pub plain_frames: u64,
    /// Packets decoded from coded frames.
    pub decoded_packets: u64,
    /// Other ends with which packets have tags that no relay in between can make.
    #[serde(default)]
    pub ends: usize,
    /// Packets from these that were dropped because they were forged.
    #[serde(default)]
    pub forged_packets: u64,
    /// Packets from these that were dropped because they were received before.
    #[serde(default)]
    pub replayed_packets: u64,
    /// Packets delivered with an unchecked tag, because their source is not a configured end.
    #[serde(default)]
    pub unnamed_packets: u64,
    /// Why nothing is combined, although it is enabled; `None` if something can be.
    pub idle: Option<String>,
}

/// Who overhears whom, for a neighbour of a relay. Shares are of frames to others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct OverhearingStatus {
    /// Share of its frames that this node overhears; `None` before it has sent enough of them.
    pub here_ratio: Option<f64>,
    /// Whom it overhears, and which share of their frames, as it announces.
    pub there: Vec<(u16, f64)>,
    /// It hears and decodes enough to be sent coded frames.
    pub takes_coded: bool,
}

/// What each peer of a hub has of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct OwnStatus {
    /// Its networks.
    pub allowed: Vec<String>,
    /// Packets waiting for it.
    pub queue: QueueStatus,
    /// Limits of its queue and windows.
    #[serde(default)]
    pub memory: MemoryStatus,
    /// Rate of frames to it, as [`Status::rate_bps`].
    pub rate_bps: Option<u64>,
    /// Longest packet that can be sent to it, in bytes.
    pub mtu_bytes: usize,
    /// Bytes of packets received from it.
    pub received_bytes: u64,
    /// Bytes of packets sent to it, from the host and from other peers.
    pub sent_bytes: u64,
    /// Packets from it that were dropped because their source is not in its networks.
    pub wrong_source_packets: u64,
}

/// A counter, or the latest value of a measurement.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: serde_json::Value,
    /// Its description.
    pub description: String,
    /// It counts since the start, and never decreases; otherwise it is a measurement.
    #[serde(default)]
    pub is_count: bool,
}

/// The sources of a status.
pub(crate) struct Sources<'a> {
    pub(crate) name: &'a str,
    pub(crate) config: &'a NodeConfig,
    pub(crate) station: &'a AnyStation,
    pub(crate) underlay: &'a Underlay,
    /// The TUN device's MTU in bytes.
    pub(crate) mtu: usize,
    pub(crate) io: &'a IoStats,
    /// Why a peer is unreachable, if it is.
    pub(crate) problem: &'a dyn Fn(StationId) -> Option<String>,
    pub(crate) now: Time,
}

impl Sources<'_> {
    pub(crate) fn status(&self) -> Status {
        let (config, station) = (self.config, self.station);
        let stats = &station.stats();
        let queue = self.queue();
        let tun = config.tun.as_ref();
        Status {
            name: self.name.to_owned(),
            pid: std::process::id(),
            uptime_s: self.now.as_secs_f64(),
            station: config.id.0,
            role: config.role_name().to_owned(),
            mode: station.config().crossing().to_string(),
            interface: tun.map(|tun| tun.name.clone()),
            mtu_bytes: tun.map(|_| self.mtu),
            underlay: self.underlay.describe(),
            frame_len_max_bytes: station.frame_len(),
            rate_bps: station.config().rate_bps.or(stats.rate_bps),
            half_duplex: stats.half_duplex,
            queue,
            memory: self.memory(),
            memory_grown_bytes: memory::grown_ceiling(config, station),
            repair: RepairStatus::of(stats),
            overhead: OverheadStatus::of(stats, station.relay().is_some()),
            tag_bytes: self.tag_bytes(),
            relay: station.relay().map(|relay| RelayStatus::of(relay, self.now)),
            peers: station.peers().iter().map(|peer| self.peer(peer)).collect(),
            counters: counters_of(station, self.io),
        }
    }

    /// The queue to the only peer, or the sum over all peers.
    fn queue(&self) -> QueueStatus {
        if let Some(relay) = self.station.relay() {
            return QueueStatus::of(relay.view(self.now).queue);
        }
        let queues = self.station.stations().map(|station| self.queue_of(station));
        queues.fold(QueueStatus::default(), |all, one| QueueStatus {
            packets: all.packets + one.packets,
            packets_max: all.packets_max + one.packets_max,
            bytes: all.bytes + one.bytes,
            delay_s: all.delay_s.max(one.delay_s),
        })
    }

    fn queue_of(&self, station: &Station) -> QueueStatus {
        QueueStatus::of(station.path(self.now).queue)
    }

    /// What the memory limit comes to, summed over all stations; all 0 without any (a relay).
    fn memory(&self) -> MemoryStatus {
        let flows = self.station.stations().map(|station| MemoryStatus::of(station.memory()));
        flows.fold(MemoryStatus::default(), |all, one| MemoryStatus {
            share_bytes: all.share_bytes + one.share_bytes,
            queue_bytes_max: all.queue_bytes_max + one.queue_bytes_max,
            sent_bytes_max: all.sent_bytes_max + one.sent_bytes_max,
            received_bytes_max: all.received_bytes_max + one.received_bytes_max,
        })
    }

    /// What a peer of a hub has of its own.
    fn own(&self, id: StationId) -> Option<OwnStatus> {
        let hub = self.station.hub()?;
        let station = hub.station(id)?;
        let stats = station.stats();
        let allowed = self.config.peers.iter().find(|peer| peer.id == id)?.allowed.iter();
        Some(OwnStatus {
            allowed: allowed.flatten().map(ToString::to_string).collect(),
            queue: self.queue_of(station),
            memory: MemoryStatus::of(station.memory()),
            rate_bps: station.config().rate_bps.or(stats.rate_bps),
            mtu_bytes: station.tunnel_mtu(),
            received_bytes: stats.bytes_delivered,
            sent_bytes: stats.bytes_accepted,
            wrong_source_packets: hub.wrong_sources(id),
        })
    }

    fn peer(&self, peer: &PeerView) -> PeerStatus {
        let station = self.station.station(peer.id);
        let stats = station.map(Station::stats).cloned().unwrap_or_default();
        let round_trip = self.station.round_trip(self.now, peer.id).filter(|_| peer.is_up);
        // Feedback brings both the round-trip time and the losses.
        let measured = |ratio: f64| round_trip.map(|_| ratio);
        let role = station.map_or(self.config.role, |station| station.config().role);
        let (is_other_end, loss_ratio_to) = match role {
            Role::Endpoint { peer: other, .. } if other == peer.id => {
                (true, measured(stats.erasure_ratio_e3))
            }
            Role::Endpoint { .. } => (false, measured(stats.erasure_ratio_e1)),
            Role::Helper { .. } | Role::Plain { .. } | Role::Relay => (false, None),
        };
        PeerStatus {
            station: peer.id.0,
            up: peer.is_up && !peer.is_silent,
            endpoint: self.underlay.address(peer.id).map(|address| address.to_string()),
            last_heard_s: peer.last_heard.map(|at| self.now.since(at).as_secs_f64()),
            mode: peer.crossing.map(|crossing| crossing.to_string()),
            round_trip_s: round_trip.filter(|_| is_other_end).map(|time| time.as_secs_f64()),
            loss_ratio_to,
            loss_ratio_from: peer.loss_ratio,
            public_key: peer.public_key.map(|key| key.to_string()),
            agreed_s: peer.agreed_at.map(|at| self.now.since(at).as_secs_f64()),
            left_out_s: self.left_out_s(peer.id),
            problem: (self.problem)(peer.id),
            own: self.own(peer.id),
            overhearing: self.overhearing(peer.id),
        }
    }

    /// Bytes of the ends' tags, where a helper recodes.
    fn tag_bytes(&self) -> Option<usize> {
        let is_helped = |station: &&Station| {
            matches!(station.config().role, Role::Endpoint { helper: Some(_), .. })
        };
        self.station.stations().find(is_helped).map(Station::tag_len)
    }

    /// For how long a helper will still be ignored.
    fn left_out_s(&self, id: StationId) -> Option<f64> {
        let station = self.station.station(id)?;
        let is_helper =
            matches!(station.config().role, Role::Endpoint { helper, .. } if helper == Some(id));
        let rest = station.helper_left_out(self.now).filter(|_| is_helper)?;
        Some(rest.as_secs_f64())
    }

    /// Who overhears whom, for a neighbour of a relay.
    fn overhearing(&self, id: StationId) -> Option<OverhearingStatus> {
        let neighbours = self.station.relay()?.view(self.now).neighbours;
        let neighbour = neighbours.into_iter().find(|neighbour| neighbour.id == id)?;
        Some(OverhearingStatus {
            here_ratio: neighbour.overheard,
            there: neighbour.hears.iter().map(|&(node, share)| (node.0, share)).collect(),
            takes_coded: neighbour.takes_coded,
        })
    }
}

impl QueueStatus {
    fn of(queue: QueueView) -> Self {
        QueueStatus {
            packets: queue.packets,
            packets_max: queue.packets_max,
            bytes: queue.bytes,
            delay_s: queue.delay.as_secs_f64(),
        }
    }
}

impl MemoryStatus {
    fn of(memory: MemoryView) -> Self {
        MemoryStatus {
            share_bytes: memory.share,
            queue_bytes_max: memory.queue,
            sent_bytes_max: memory.sent,
            received_bytes_max: memory.received,
        }
    }
}

impl RelayStatus {
    fn of(relay: &RelayStation, now: Time) -> Self {
        let (view, counters) = (relay.view(now), relay.relay_counters());
        let (hold, hold_learned) = match view.hold {
            Hold::None => (Duration::ZERO, false),
            Hold::Fixed(hold) => (hold, false),
            Hold::Learned { most } | Hold::Waits { most } => (most, true),
        };
        let (decoded, failed) = (counters.relay_packets_decoded, counters.relay_decode_failures);
        let coded = decoded + failed;
        RelayStatus {
            coding: view.coding,
            hold_s: hold.as_secs_f64(),
            hold_learned,
            held_packets: view.packets_held,
            failed_ratio: (coded > 0).then(|| failed as f64 / coded as f64),
            coded_frames: counters.relay_frames_coded,
            plain_frames: counters.relay_frames_plain,
            decoded_packets: decoded,
            ends: view.ends,
            forged_packets: counters.relay_tags_failed,
            replayed_packets: counters.relay_packets_replayed,
            unnamed_packets: counters.relay_tags_unnamed,
            idle: idle(&view, &counters),
        }
    }
}

/// Why a relay combines nothing, although it is enabled.
fn idle(view: &RelayView, counters: &RelayCounters) -> Option<String> {
    let takes = view.neighbours.iter().filter(|neighbour| neighbour.takes_coded).count();
    // An end forwards nothing, and few packets are no evidence of whether they were overheard.
    if !view.coding || takes > 0 || counters.relay_packets_forwarded < FORWARDED_MIN {
        return None;
    }
    let here = match counters.relay_frames_overheard {
        0 => "this node never overhears frames to others",
        _ => "this node overhears frames to others",
    };
    Some(format!(
        "no neighbour reports overhearing enough of this node's frames to others, and {here}; most \
         Wi-Fi interfaces receive such frames only in monitor mode"
    ))
}

impl RepairStatus {
    /// Share of repair sent that the receiver reported as spurious; `None` if none was sent.
    pub fn spurious_ratio(&self) -> Option<f64> {
        let (spurious, sent) = (self.spurious_symbols as f64, self.sent_symbols as f64);
        (self.sent_symbols > 0).then(|| (spurious / sent).min(1.0))
    }

    fn of(stats: &Stats) -> Self {
        let coded = stats.coded_frames_sent + stats.recoded_frames_sent + stats.copies_sent;
        RepairStatus {
            repaired_symbols: stats.symbols_repaired,
            given_up_symbols: stats.symbols_given_up,
            sent_symbols: (stats.source_frames_sent + coded).saturating_sub(needed(stats)),
            spurious_symbols: stats.repairs_spurious,
            given_up_packets: stats.packets_given_up,
        }
    }
}

impl OverheadStatus {
    fn of(stats: &Stats, is_relay: bool) -> Self {
        let ratio = |part: f64, whole: u64| (whole > 0).then(|| part / whole as f64);
        let (frames, bytes) = (stats.frames_sent, stats.bytes_accepted);
        let extra = frames.saturating_sub(needed(stats)) as f64;
        // Packets may still wait for a session. Relays have no symbols.
        let sent =
            stats.packets_accepted > 0 && stats.bytes_sent > 0 && (needed(stats) > 0 || is_relay);
        OverheadStatus {
            frames_ratio: ratio(extra, frames).filter(|_| sent),
            bytes_ratio: ratio(stats.bytes_sent as f64 - bytes as f64, bytes).filter(|_| sent),
        }
    }
}

/// Frames that would suffice without losses: one per source symbol. Where all symbols are coded,
/// each of them counts as one too.
fn needed(stats: &Stats) -> u64 {
    stats.source_frames_sent.max(stats.symbols_added)
}

/// All counters of a node.
pub(crate) fn counters_of(station: &AnyStation, io: &IoStats) -> Vec<Counter> {
    let hub = station.hub_stats().map(|stats| counters(stats, HubStats::DESCRIPTIONS));
    let relay = station.relay().map(RelayStation::relay_counters);
    let relay = relay.map(|it| counters(it, RelayCounters::DESCRIPTIONS));
    counters(&*station.stats(), Stats::DESCRIPTIONS)
        .chain(hub.into_iter().flatten())
        .chain(relay.into_iter().flatten())
        .chain(counters(io, IoStats::DESCRIPTIONS))
        .collect()
}

/// All counters of all kinds of nodes, without values, to list them.
pub fn counters_of_all_kinds() -> Vec<Counter> {
    let tables = [
        Stats::DESCRIPTIONS,
        HubStats::DESCRIPTIONS,
        RelayCounters::DESCRIPTIONS,
        IoStats::DESCRIPTIONS,
    ];
    tables.into_iter().flat_map(|table| counters((), table)).collect()
}

/// The counters of a struct, with their descriptions.
fn counters(values: impl Serialize, descriptions: &[Described]) -> impl Iterator<Item = Counter> {
    let values = serde_json::to_value(values).unwrap_or_default();
    descriptions.iter().map(move |&Described { name, text, is_count }| Counter {
        name: name.to_owned(),
        value: values.get(name).cloned().unwrap_or_default(),
        description: text.to_owned(),
        is_count,
    })
}

#[cfg(test)]
mod tests {
    use corridor_proto::RelayNeighbourView;

    use super::*;

    #[test]
    fn repair_is_what_goes_beyond_one_frame_for_each_source_symbol() {
        let window = Stats {
            source_frames_sent: 100,
            copies_sent: 7,
            coded_frames_sent: 5,
            ..Stats::default()
        };
        assert_eq!(RepairStatus::of(&window).sent_symbols, 12);
        let on_the_fly = Stats { symbols_added: 150, coded_frames_sent: 180, ..Stats::default() };
        assert_eq!(RepairStatus::of(&on_the_fly).sent_symbols, 30);
    }

    #[test]
    fn overhead_is_told_once_something_was_sent() {
        let nothing = Stats { frames_sent: 9, bytes_sent: 900, ..Stats::default() };
        assert_eq!(OverheadStatus::of(&nothing, false), OverheadStatus::default());
        // Without a session, all frames would be overhead, and few bytes were sent per byte taken.
        let waiting = Stats { packets_accepted: 20, bytes_accepted: 12_000, ..nothing };
        assert_eq!(OverheadStatus::of(&waiting, false), OverheadStatus::default());
        let stats = Stats {
            packets_accepted: 80,
            bytes_accepted: 80_000,
            source_frames_sent: 80,
            frames_sent: 100,
            bytes_sent: 96_000,
            ..Stats::default()
        };
        let expected = OverheadStatus { frames_ratio: Some(0.2), bytes_ratio: Some(0.2) };
        assert_eq!(OverheadStatus::of(&stats, false), expected);
    }

    #[test]
    fn every_counter_comes_with_its_value_and_description() {
        let stats = Stats { frames_sent: 9, ..Stats::default() };
        let all: Vec<_> = counters(&stats, Stats::DESCRIPTIONS).collect();
        let sent = all.iter().find(|counter| counter.name == "frames_sent").unwrap();
        assert_eq!((&sent.value, &*sent.description), (&9.into(), "All frames sent."));
        assert!(all.iter().all(|c| c.name == "rate_bps" || !c.value.is_null()));
    }

    #[test]
    fn a_relay_says_why_it_combines_nothing() {
        let neighbour = |takes_coded| RelayNeighbourView {
            id: StationId(1),
            overheard: None,
            hears: Vec::new(),
            takes_coded,
        };
        let view = |coding, takes| RelayView {
            coding,
            hold: Hold::None,
            queue: QueueView::default(),
            packets_held: 0,
            segments_held: 0,
            ends: 0,
            neighbours: vec![neighbour(false), neighbour(takes)],
        };
        let counters = |forwarded| RelayCounters {
            relay_packets_forwarded: forwarded,
            ..RelayCounters::default()
        };
        let why = idle(&view(true, false), &counters(500)).unwrap();
        assert!(why.contains("this node never overhears frames to others"), "{why}");
        assert_eq!(idle(&view(true, true), &counters(500)), None);
        assert_eq!(idle(&view(false, false), &counters(500)), None, "it is not asked to");
        assert_eq!(idle(&view(true, false), &counters(5)), None, "nobody can tell yet");
    }
}
