//! Reports to the protocol's [`Watch`] what the driver sees of a network through which nothing
//! gets, and logs the watch's lines.

use std::time::Duration;

use corridor_base::Time;
use corridor_proto::diagnosis::{Line, Refusal, Watch};
use corridor_proto::{AnyStation, Rejection, StationId};
use nix::errno::Errno;

use crate::config::NodeConfig;
use crate::syscalls::Sender;
use crate::underlay::{Address, Underlay};

/// Most rejected frames examined per [`CHECK_INTERVAL`]: examining a HELLO costs a key derivation,
/// and anybody can send one.
const LOOKS_MAX: u32 = 32;
/// Pairs of forger and claimed sender that are remembered.
const FORGERS_MAX: usize = 256;
/// How often the watch is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Finds out why a peer is unreachable, and logs it.
pub(crate) struct Diagnosis {
    watch: Watch<Address>,
    /// The last line about each unreachable peer.
    problems: Vec<(StationId, String)>,
    looks: u32,
    check_at: Time,
    /// Which peer has sent frames in the name of which other.
    forgers: Vec<(StationId, StationId)>,
}

impl Diagnosis {
    pub(crate) fn new(config: &NodeConfig, station: &AnyStation, now: Time) -> Self {
        let me = (config.id, station.config().crossing());
        let peers = config.peers.iter().map(|peer| peer.id);
        Diagnosis {
            watch: Watch::new(me, peers, now),
            problems: Vec::new(),
            looks: 0,
            check_at: now,
            forgers: Vec::new(),
        }
    }

    /// A frame was rejected. While all peers are reachable, it is ignored.
    pub(crate) fn note_rejected(
        &mut self,
        station: &AnyStation,
        underlay: &Underlay,
        (sender, frame): (Sender, &[u8]),
        rejection: Rejection,
    ) {
        if rejection == Rejection::NotAuthentic {
            self.name_forger(station, underlay, sender, frame);
        }
        let says_something = matches!(
            rejection,
            Rejection::Malformed | Rejection::NotAuthentic | Rejection::UnknownSession
        );
        if !says_something || self.looks >= LOOKS_MAX || !self.watch.is_needed() {
            return;
        }
        self.looks += 1;
        let at = Address::from(sender);
        let expected =
            |at| station.peers().iter().any(|peer| underlay.address(peer.id) == Some(at));
        self.watch.note_rejected(at, station.examine(frame), expected);
    }

    /// Logs that frames in one peer's name come from the address of another, once per pair and run
    /// of the daemon. A peer that is only assumed to be at an address because of a possible replay
    /// is not named; and even a proven address may be forged.
    fn name_forger(
        &mut self,
        station: &AnyStation,
        underlay: &Underlay,
        sender: Sender,
        frame: &[u8],
    ) {
        let from = underlay.proven_station(sender);
        let (Some(from), Some(claimed)) = (from, station.claimed(frame)) else { return };
        let is_known = self.forgers.contains(&(from, claimed));
        if from != claimed && !is_known && self.forgers.len() < FORGERS_MAX {
            self.forgers.push((from, claimed));
            let (from, claimed, at) = (from.0, claimed.0, Address::from(sender));
            tracing::warn!(
                "dropping forged frames: they claim to be from station {claimed} but come from \
                 {at}, the (possibly spoofed) address of station {from}"
            );
        }
    }

    /// Something has changed that should be logged soon.
    pub(crate) fn hurry(&mut self) {
        self.check_at = Time::ZERO;
    }

    /// Logs what is due.
    pub(crate) fn check(&mut self, now: Time, station: &AnyStation, underlay: &mut Underlay) {
        if now < self.check_at {
            return;
        }
        self.check_at = now + CHECK_INTERVAL;
        self.looks = 0;
        for refused in underlay.take_refused() {
            self.watch.note_refused(now, refused.to, refusal(refused.why), refused.frames);
        }
        let sent = station.stats().frames_sent;
        let address = |peer| underlay.address(peer);
        for line in self.watch.check(now, &station.peers(), sent, address) {
            let (Line::Unreached { peer, .. } | Line::Reached { peer, .. }) = line;
            self.problems.retain(|&(of, _)| of != peer);
            match line {
                Line::Unreached { .. } => {
                    tracing::warn!("{line}");
                    self.problems.push((peer, line.to_string()));
                }
                Line::Reached { .. } => tracing::info!("{line}"),
            }
        }
    }

    /// Why a peer is unreachable, as last logged; `None` if it is reachable.
    pub(crate) fn problem(&self, peer: StationId) -> Option<String> {
        self.problems.iter().find(|&&(of, _)| of == peer).map(|(_, line)| line.clone())
    }

    /// When to check next, if nothing happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.watch.poll_timeout().map(|due| due.max(self.check_at))
    }
}

/// What a socket error says about the frames that were sent.
fn refusal(errno: Errno) -> Refusal {
    match errno {
        Errno::ENETUNREACH => Refusal::NoRoute,
        Errno::EMSGSIZE => Refusal::TooLong,
        Errno::EPERM | Errno::EACCES => Refusal::Forbidden,
        Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO => Refusal::InterfaceDown,
        Errno::EHOSTUNREACH | Errno::EHOSTDOWN => Refusal::NoHost,
        Errno::ECONNREFUSED => Refusal::NoListener,
        errno => Refusal::Other(errno.desc()),
    }
}
