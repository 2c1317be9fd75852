//! Interfaces: the queues by which packets leave nodes, whichever kind of link follows.

use core::time::Duration;

use corridor_air::radio::MacStats;
use corridor_air::{Pipe, StationStats};

use super::Network;
use super::air::RadioIndex;
use crate::core::agent::NodeIndex;

/// An outgoing queue of a node, and counters of its packets since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Packets or frames that wait; for a pipe, not counting the one being sent.
    pub waiting: usize,
    /// Those that came, including dropped ones.
    pub offered: u64,
    /// Of these, those dropped because the queue was full, or by a policer.
    pub dropped: u64,
    /// Of those accepted, those that a pipe lost or a MAC gave up.
    pub lost: u64,
}

/// Counters of the frames of a place on a radio since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames that came to its interface.
    pub offered: u64,
    /// Of these, those that found the queue full.
    pub refused: u64,
    /// Transmissions of data, retries included.
    pub attempts: u64,
    /// Frames that arrived at the place they were for; broadcasts are not counted.
    pub delivered: u64,
    /// Frames given up after the last retry.
    pub given_up: u64,
    /// With a standard's MAC: frames given up because the channel was never free.
    pub blocked: Option<u64>,
    /// Frames received that were for this place, or broadcast.
    pub received: u64,
    /// Frames heard that were for others.
    pub overheard: u64,
    /// With a standard's MAC: receptions that began and were not decoded.
    pub undecoded: Option<u64>,
    /// Airtime of its transmissions.
    pub sending: Duration,
    /// With a standard's MAC: time spent receiving.
    pub receiving: Option<Duration>,
}

impl FrameCounts {
    /// The sums over two places.
    pub fn and(self, other: FrameCounts) -> FrameCounts {
        fn sum<T: core::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            }
        }
        FrameCounts {
            offered: self.offered + other.offered,
            refused: self.refused + other.refused,
            attempts: self.attempts + other.attempts,
            delivered: self.delivered + other.delivered,
            given_up: self.given_up + other.given_up,
            blocked: sum(self.blocked, other.blocked),
            received: self.received + other.received,
            overheard: self.overheard + other.overheard,
            undecoded: sum(self.undecoded, other.undecoded),
            sending: self.sending + other.sending,
            receiving: sum(self.receiving, other.receiving),
        }
    }
}

impl From<StationStats> for FrameCounts {
    fn from(stats: StationStats) -> Self {
        FrameCounts {
            offered: stats.offered,
            refused: stats.refused + stats.dropped,
            attempts: stats.sent_frames,
            delivered: stats.delivered,
            given_up: stats.undelivered,
            received: stats.received_frames,
            overheard: stats.overheard_frames,
            sending: stats.airtime,
            ..FrameCounts::default()
        }
    }
}

impl From<MacStats> for FrameCounts {
    fn from(stats: MacStats) -> Self {
        FrameCounts {
            offered: stats.offered,
            refused: stats.refused,
            attempts: stats.attempts,
            delivered: stats.acknowledged,
            given_up: stats.retry_limit,
            blocked: Some(stats.channel_access),
            received: stats.received,
            overheard: stats.overheard,
            undecoded: Some(stats.undecoded),
            sending: stats.airtime,
            receiving: Some(stats.receiving),
        }
    }
}

impl Network {
    /// Counters of the frames of a place on a radio.
    pub fn frame_counts(&self, radio: RadioIndex, place: usize) -> FrameCounts {
        let ideal = self.medium(radio).map(|medium| medium.stats(place).into());
        let mac = || self.mac(radio).map(|medium| medium.stats(place).into());
        let line = || self.line(radio).map(|line| line.stats(place).into());
        ideal.or_else(mac).or_else(line).unwrap_or_default()
    }

    /// The queue of the pipe from one node to another, if there is one.
    pub fn pipe_interface(&self, from: NodeIndex, to: NodeIndex) -> Option<Interface> {
        self.router.pipe(from, to).map(|index| self.of_pipe(&self.pipes[index]))
    }

    /// The queue of a place on a radio, together with that of a bridge that forwards there; an
    /// empty one if there is no such place.
    pub fn interface(&self, radio: RadioIndex, place: usize) -> Interface {
        let own = if let Some(medium) = self.medium(radio) {
            let stats = medium.stats(place);
            let dropped = stats.refused + stats.dropped;
            let (waiting, offered) = (medium.backlog(place), stats.offered);
            Interface { waiting, offered, dropped, lost: stats.undelivered }
        } else if let Some(medium) = self.mac(radio) {
            let (waiting, stats) = (medium.backlog(place), medium.stats(place));
            let lost = stats.retry_limit + stats.channel_access;
            Interface { waiting, offered: stats.offered, dropped: stats.refused, lost }
        } else {
            let pipe = self.line(radio).and_then(|line| line.pipe(place));
            pipe.map(|pipe| self.of_pipe(pipe)).unwrap_or_default()
        };
        match self.bridge_to(radio, place) {
            None => own,
            Some((waiting, offered, dropped)) => {
                Interface { waiting: own.waiting + waiting, offered, dropped, ..own }
            }
        }
    }

    fn of_pipe<P>(&self, pipe: &Pipe<P>) -> Interface {
        let (waiting, stats) = (pipe.backlog(self.now), pipe.stats());
        let dropped = stats.refused + stats.policed;
        Interface { waiting, offered: stats.offered, dropped, lost: stats.erased }
    }
}
