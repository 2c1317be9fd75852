//! HyStart as in Linux (Ha and Rhee 2008; `tcp_cubic.c`): slow start ends, before anything is lost,
//! when the acknowledgments of a round form a train that is too long, or arrive too late.

use core::time::Duration;

use corridor_base::Time;

use crate::tcp::core::{Core, Progress};

/// Smallest window to which it applies, in packets.
const WINDOW_MIN: f64 = 16.0;
/// Acknowledgments with at most this much time between them form a train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// RTT samples of a round; the shortest of them counts.
const SAMPLES_MIN: u32 = 8;
/// The shortest sample has to exceed the shortest ever by an eighth of that, within limits.
const LATER_DIVISOR: u32 = 8;
const LATER_MIN: Duration = Duration::from_millis(4);
const LATER_MAX: Duration = Duration::from_millis(16);

/// A round: it lasts until everything sent before it is acknowledged.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Time,
    end: u64,
    /// When the last acknowledgment of its train came.
    train: Time,
    shortest: Duration,
    samples: u32,
}

impl Round {
    fn begin(core: &Core, now: Time) -> Self {
        let end = core.flight.high();
        Round { began: now, end, train: now, shortest: Duration::MAX, samples: 0 }
    }
}

/// State of one slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    shortest: Option<Duration>,
    round: Option<Round>,
}

impl HyStart {
    /// A new slow start begins.
    pub(super) fn restart(&mut self) {
        *self = HyStart::default();
    }

    /// Takes an acknowledgment in slow start; returns whether slow start should end.
    pub(super) fn ends(&mut self, core: &Core, now: Time, progress: &Progress) -> bool {
        // A retransmitted packet gives no RTT sample.
        if progress.last.transmissions > 1 {
            return false;
        }
        let rtt = now - progress.last.at;
        let shortest = self.shortest.map_or(rtt, |shortest| shortest.min(rtt));
        self.shortest = Some(shortest);
        let mut round = match self.round {
            Some(round) if core.flight.una() <= round.end => round,
            _ => Round::begin(core, now),
        };
        let found = core.cwnd >= WINDOW_MIN && round.note(now, rtt, shortest);
        self.round = Some(round);
        found
    }
}

impl Round {
    fn note(&mut self, now: Time, rtt: Duration, shortest: Duration) -> bool {
        let mut found = false;
        if now - self.train <= TRAIN_GAP {
            self.train = now;
            found = now - self.began > shortest / 2;
        }
        self.shortest = self.shortest.min(rtt);
        if self.samples < SAMPLES_MIN {
            self.samples += 1;
            return found;
        }
        let later = (shortest / LATER_DIVISOR).clamp(LATER_MIN, LATER_MAX);
        found || self.shortest > shortest + later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn round() -> Round {
        let began = Time::from_millis(1_000);
        Round { began, end: 100, train: began, shortest: Duration::MAX, samples: 0 }
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_it() {
        let mut train = round();
        let found =
            (1..=60).find(|&ms| train.note(train.began + Duration::from_millis(ms), RTT, RTT));
        assert_eq!(found, Some(51));
        // A gap ends the train.
        let mut torn = round();
        let at = |ms: u64| torn.began + Duration::from_millis(if ms > 20 { ms + 3 } else { ms });
        let times: Vec<Time> = (1..=60).map(at).collect();
        assert!(!times.into_iter().any(|now| torn.note(now, RTT, RTT)));
    }

    #[test]
    fn round_trips_that_are_all_longer_end_it() {
        let longer = |by_ms: u64, last_ms: u64| {
            let mut round = round();
            let mut note =
                |ms| round.note(Time::from_millis(2_000), RTT + Duration::from_millis(ms), RTT);
            let early = (0..u64::from(SAMPLES_MIN)).any(|_| note(by_ms));
            assert!(!early, "that is too few");
            note(last_ms)
        };
        assert!(longer(13, 13));
        assert!(!longer(12, 13) && !longer(13, 12));
    }
}
