//! What the driver sees of a network through which nothing gets: told to the protocol's
//! [`Watch`], whose lines go to the log.

use std::time::Duration;

use corridor_base::Time;
use corridor_proto::diagnosis::{Line, Refusal, Watch};
use corridor_proto::{AnyStation, Rejection, StationId};
use nix::errno::Errno;

use crate::config::NodeConfig;
use crate::syscalls::Sender;
use crate::underlay::{Address, Underlay};

/// Rejected frames that are looked at in each [`CHECK_INTERVAL`]: a look at a HELLO costs as much
/// as to derive a key, and anybody can send them.
const LOOKS_MAX: u32 = 32;
/// How often what is known is gone through.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Finds out why a peer cannot be reached, and says so.
pub(crate) struct Diagnosis {
    watch: Watch<Address>,
    /// What was said last of each peer that is out of reach.
    problems: Vec<(StationId, String)>,
    looks: u32,
    check_at: Time,
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
        }
    }

    /// A frame was rejected. While all peers are in reach nobody asks why.
    pub(crate) fn note_rejected(
        &mut self,
        station: &AnyStation,
        underlay: &Underlay,
        (sender, frame): (Sender, &[u8]),
        rejection: Rejection,
    ) {
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

    /// Something has changed that is to be said soon.
    pub(crate) fn hurry(&mut self) {
        self.check_at = Time::ZERO;
    }

    /// Says what is to be said now.
    pub(crate) fn check(&mut self, now: Time, station: &AnyStation, underlay: &mut Underlay) {
        if now < self.check_at {
            return;
        }
        self.check_at = now + CHECK_INTERVAL;
        self.looks = 0;
        for refused in underlay.take_refused() {
            self.watch.note_refused(refused.to, refusal(refused.why), refused.frames);
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

    /// Why a peer cannot be reached, as it was said last; none while it can be.
    pub(crate) fn problem(&self, peer: StationId) -> Option<String> {
        self.problems.iter().find(|&&(of, _)| of == peer).map(|(_, line)| line.clone())
    }

    /// When to check next, if nothing happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.watch.poll_timeout().map(|due| due.max(self.check_at))
    }
}

/// What an error of a socket says about the frames that were sent through it.
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
