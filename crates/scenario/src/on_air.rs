//! Counters of radios as metrics, and metrics computed from the flows of a network: the same for
//! both engines.

use core::time::Duration;

use corridor_air::StationStats;
use corridor_air::radio::MacStats;

use crate::metrics::Measures;

/// Counters of all places of a network's radios together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnAir {
    /// Frames that the MACs have finished with.
    pub frames: u64,
    /// Transmissions of these, and RTS without a CTS.
    pub attempts: u64,
    /// Frames given up after the last retry.
    pub given_up: u64,
    /// Frames given up because the channel was never free.
    pub blocked: u64,
    /// Receptions that began and were not decoded.
    pub undecoded: u64,
    /// Airtime of all transmissions.
    pub airtime: Duration,
    /// Time for which receivers were locked on to frames; `None` for ideal radios.
    pub receiving: Option<Duration>,
}

impl OnAir {
    /// Counters of places on a radio without a standard's MAC.
    pub fn of_stations(places: impl Iterator<Item = StationStats>) -> Self {
        let mut sum = OnAir::default();
        for stats in places {
            sum.frames += stats.sent_frames - stats.retransmissions;
            sum.attempts += stats.sent_frames;
            sum.given_up += stats.undelivered;
            sum.airtime += stats.airtime;
        }
        sum
    }

    /// Counters of places with a MAC.
    pub fn of_macs(places: impl Iterator<Item = MacStats>) -> Self {
        let mut sum = OnAir::default();
        for stats in places {
            sum.frames += stats.acknowledged + stats.unacknowledged;
            sum.frames += stats.retry_limit + stats.channel_access;
            sum.attempts += stats.attempts;
            sum.given_up += stats.retry_limit;
            sum.blocked += stats.channel_access;
            sum.undecoded += stats.undecoded;
            sum.airtime += stats.airtime;
            *sum.receiving.get_or_insert_default() += stats.receiving;
        }
        sum
    }

    /// The sums over two radios.
    pub fn and(self, other: OnAir) -> OnAir {
        let receiving = match (self.receiving, other.receiving) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        OnAir {
            frames: self.frames + other.frames,
            attempts: self.attempts + other.attempts,
            given_up: self.given_up + other.given_up,
            blocked: self.blocked + other.blocked,
            undecoded: self.undecoded + other.undecoded,
            airtime: self.airtime + other.airtime,
            receiving,
        }
    }

    /// The counters' growth since `before`.
    pub fn since(self, before: OnAir) -> OnAir {
        OnAir {
            frames: self.frames - before.frames,
            attempts: self.attempts - before.attempts,
            given_up: self.given_up - before.given_up,
            blocked: self.blocked - before.blocked,
            undecoded: self.undecoded - before.undecoded,
            airtime: self.airtime.saturating_sub(before.airtime),
            receiving: self
                .receiving
                .map(|now| now.saturating_sub(before.receiving.unwrap_or_default())),
        }
    }

    /// Sets the metrics of an interval of this length, seconds.
    pub fn set(self, measures: &mut Measures, measured_s: f64) {
        measures.set("frames_sent", self.frames);
        measures.set("frame_attempts", self.attempts);
        measures.set("frames_given_up", self.given_up);
        measures.set("frames_blocked", self.blocked);
        measures.set("frames_undecoded", self.undecoded);
        measures.set("air_utilisation", self.airtime.as_secs_f64() / measured_s);
        measures.set("sending_s", self.airtime.as_secs_f64());
        measures.set("receiving_s", self.receiving.map(|span| span.as_secs_f64()));
    }
}

/// Jain's fairness index: the square of the sum divided by the number times the sum of squares;
/// `None` without flows or goodput.
pub fn fairness(goodputs: &[f64]) -> Option<f64> {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
    (squares > 0.0).then(|| sum * sum / (goodputs.len() as f64 * squares))
}
