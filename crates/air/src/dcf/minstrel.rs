//! Rate control after Minstrel, of the Linux kernel's mac80211.
//!
//! For each neighbour and rate it keeps the share of transmissions that were acknowledged, as a
//! moving average over intervals. Of ten frames, nine go at the rate with the highest throughput;
//! the tenth goes at a random rate, to find rates that have improved. Retries fall back, two
//! attempts each, to the second best rate, to the most reliable one, and to the lowest.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};

use crate::phy::{Preamble, Rate};

/// Time between updates of the averages.
const INTERVAL: Duration = Duration::from_millis(100);

/// Weight of an interval in the average.
const WEIGHT: f64 = 0.25;

/// One in this many frames is a probe.
const PROBE_OF: u32 = 10;

/// Attempts at each stage of the chain.
const ATTEMPTS_PER_STAGE: u32 = 2;

/// Frame length for which throughput is computed, bytes.
const REFERENCE_BYTES: u32 = 1200;

/// Rates with a lower success ratio than this count as useless.
const SUCCESS_RATIO_MIN: f64 = 0.1;

/// Rate control for one neighbour.
#[derive(Clone, Debug)]
pub struct Minstrel {
    rates: Vec<Tried>,
    preamble: Preamble,
    update_at: Time,
    /// Indices in `rates`: highest throughput, second highest, most reliable.
    best: usize,
    second: usize,
    reliable: usize,
}

#[derive(Clone, Copy, Debug)]
struct Tried {
    rate: Rate,
    /// Moving average of the success ratio, once there was a success.
    success_ratio: Option<f64>,
    /// Transmissions in this interval.
    sent: u32,
    acknowledged: u32,
}

impl Minstrel {
    /// A rate control without any history, for rates in ascending order: the lowest comes first.
    pub fn new(rates: Vec<Rate>, preamble: Preamble) -> Self {
        let tried = |rate| Tried { rate, success_ratio: None, sent: 0, acknowledged: 0 };
        Minstrel {
            rates: rates.into_iter().map(tried).collect(),
            preamble,
            update_at: Time::ZERO,
            best: 0,
            second: 0,
            reliable: 0,
        }
    }

    /// The rate of a frame's next attempt after `retries`.
    pub fn choose(&mut self, retries: u32, stream: &mut Stream) -> Rate {
        let draw = |below: u32, stream: &mut Stream| {
            ((u64::from(stream.next_u32()) * u64::from(below)) >> 32) as usize
        };
        let place = match retries / ATTEMPTS_PER_STAGE {
            0 if retries == 0 && draw(PROBE_OF, stream) == 0 => {
                draw(self.rates.len() as u32, stream)
            }
            0 => self.best,
            1 => self.second,
            2 => self.reliable,
            _ => 0,
        };
        self.rates[place].rate
    }

    /// The outcome of a transmission at `rate`.
    pub fn note(&mut self, now: Time, rate: Rate, acknowledged: bool) {
        if let Some(tried) = self.rates.iter_mut().find(|tried| tried.rate == rate) {
            tried.sent += 1;
            tried.acknowledged += u32::from(acknowledged);
        }
        if now >= self.update_at {
            self.update_at = now + INTERVAL;
            self.update();
        }
    }

    /// Updates the averages, and the best rates by them.
    fn update(&mut self) {
        for tried in &mut self.rates {
            if tried.sent > 0 {
                let lately = f64::from(tried.acknowledged) / f64::from(tried.sent);
                let before = tried.success_ratio.unwrap_or(lately);
                tried.success_ratio = Some(before + WEIGHT * (lately - before));
            }
            (tried.sent, tried.acknowledged) = (0, 0);
        }
        let throughput = |place: &usize| self.throughput(*place);
        let success = |place: &usize| self.rates[*place].success_ratio.unwrap_or(0.0);
        // Among equal values the higher rate, which comes later.
        let best_by = |value: &dyn Fn(&usize) -> f64, without: Option<usize>| {
            let places = (0..self.rates.len()).filter(|&place| Some(place) != without);
            places.max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0)
        };
        let known = |place: usize| if throughput(&place) > 0.0 { place } else { 0 };
        let best = known(best_by(&throughput, None));
        let second = known(best_by(&throughput, Some(best)));
        let reliable = best_by(&success, None);
        (self.best, self.second, self.reliable) = (best, second, reliable);
    }

    /// Frames of the reference length per second, by the averages.
    fn throughput(&self, place: usize) -> f64 {
        let tried = &self.rates[place];
        let success_ratio = tried.success_ratio.unwrap_or(0.0);
        if success_ratio < SUCCESS_RATIO_MIN {
            return 0.0;
        }
        success_ratio / tried.rate.airtime(self.preamble, REFERENCE_BYTES).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use corridor_base::StreamKey;

    use super::*;
    use crate::phy::OFDM;

    /// How often each rate is used for a second's frames, when `success_ratio` gives the share of
    /// each rate's frames that come through.
    fn shares(success_ratio: impl Fn(Rate) -> f64) -> Vec<(Rate, usize)> {
        let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "backoff" };
        let mut stream = key.stream();
        let mut minstrel = Minstrel::new(OFDM.to_vec(), Preamble::Ofdm);
        let mut used: Vec<_> = OFDM.iter().map(|&rate| (rate, 0)).collect();
        for index in 0..10_000_u64 {
            let now = Time::from_millis(index);
            for retries in 0..7 {
                let rate = minstrel.choose(retries, &mut stream);
                let luck = f64::from(stream.next_u32()) / f64::from(u32::MAX);
                let acknowledged = luck < success_ratio(rate);
                minstrel.note(now, rate, acknowledged);
                let place = OFDM.iter().position(|&other| other == rate).expect("a rate of these");
                used[place].1 += 1;
                if acknowledged {
                    break;
                }
            }
        }
        used
    }

    fn most_used(shares: &[(Rate, usize)]) -> Rate {
        shares.iter().max_by_key(|(_, count)| *count).expect("some rates").0
    }

    #[test]
    fn where_all_come_through_the_greatest_rate_is_used() {
        let shares = shares(|_| 1.0);
        assert_eq!(most_used(&shares), Rate::Ofdm54);
        // The probes still find the others.
        assert!(shares.iter().all(|&(_, count)| count > 50), "{shares:?}");
    }

    #[test]
    fn a_rate_that_loses_little_beats_a_greater_one_that_loses_much() {
        let success = |rate: Rate| match rate {
            Rate::Ofdm54 | Rate::Ofdm48 => 0.05,
            Rate::Ofdm36 => 0.3,
            _ => 0.95,
        };
        assert_eq!(most_used(&shares(success)), Rate::Ofdm24);
    }

    #[test]
    fn where_nothing_comes_through_the_least_rate_is_used_most() {
        assert_eq!(most_used(&shares(|_| 0.0)), Rate::Ofdm6);
    }
}
