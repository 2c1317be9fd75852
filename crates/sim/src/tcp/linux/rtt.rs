//! Round-trip times: smoothed value, variation, minimum, and the retransmission timeout.
//!
//! The estimator is that of RFC 6298 with Linux's variation: the maximum deviation within a round
//! trip, which decays slowly and not below the minimum timeout. The timeout is therefore at least
//! the smoothed round-trip time plus 200 ms.

use core::time::Duration;

use super::clock::HZ;
use super::windowed::WindowedMin;

/// First timeout (RFC 6298, rule 2.1).
const RTO_INITIAL_US: u64 = 1_000_000;
/// Smallest difference between the timeout and the smoothed round-trip time.
pub(super) const RTO_MIN_US: u64 = 200_000;
const RTO_MAX_US: u64 = 120_000_000;
/// Length of the minimum filter, in ticks (`tcp_min_rtt_wlen`).
const MIN_WINDOW_TICKS: u64 = 300 * HZ;

/// What is known of the round-trip time. Times in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    /// Eight times the smoothed round-trip time; 0 before the first sample.
    srtt8: u64,
    /// Four times the mean deviation.
    mdev4: u64,
    mdev4_max: u64,
    rttvar: u64,
    /// The maximum of the deviation covers samples up to this number's acknowledgment.
    round_end: u64,
    rto: u64,
    min: WindowedMin,
}

impl Rtt {
    pub(super) fn new() -> Self {
        let rto = RTO_INITIAL_US;
        Rtt {
            srtt8: 0,
            mdev4: 0,
            mdev4_max: 0,
            rttvar: 0,
            round_end: 0,
            rto,
            min: WindowedMin::default(),
        }
    }

    /// Smoothed round-trip time, once there is a sample.
    pub(super) fn smoothed_us(&self) -> Option<u64> {
        (self.srtt8 > 0).then_some(self.srtt8 >> 3)
    }

    /// Eight times the smoothed round-trip time, in full precision; 0 before the first sample.
    pub(super) fn eightfold_us(&self) -> u64 {
        self.srtt8
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed_us().map(Duration::from_micros)
    }

    /// The minimum of the last five minutes.
    pub(super) fn min_us(&self) -> Option<u64> {
        self.min.get()
    }

    /// The timeout in force, including backoff.
    pub(super) fn rto_us(&self) -> u64 {
        self.rto
    }

    pub(super) fn back_off(&mut self) {
        self.rto = (self.rto << 1).min(RTO_MAX_US);
    }

    /// Takes a sample for the minimum, which may belong to any copy of a packet.
    pub(super) fn note_min(&mut self, now_ticks: u64, rtt_us: u64) {
        self.min.take(MIN_WINDOW_TICKS, now_ticks, rtt_us.max(1));
    }

    /// Takes a sample, measured when `una` was the cumulative acknowledgment and `next` the next
    /// number to send. Ends the backoff.
    pub(super) fn sample(&mut self, rtt_us: u64, una: u64, next: u64) {
        let rtt = rtt_us.max(1) as i64;
        if self.srtt8 == 0 {
            self.srtt8 = (rtt as u64) << 3;
            self.mdev4 = (rtt as u64) << 1;
            self.rttvar = self.mdev4.max(RTO_MIN_US);
            self.mdev4_max = self.rttvar;
            self.round_end = next;
        } else {
            self.smooth(rtt, una, next);
        }
        self.rto = ((self.srtt8 >> 3) + self.rttvar).min(RTO_MAX_US);
    }

    fn smooth(&mut self, rtt: i64, una: u64, next: u64) {
        let error = rtt - (self.srtt8 >> 3) as i64;
        self.srtt8 = (self.srtt8 as i64 + error).max(1) as u64;
        let quarter = (self.mdev4 >> 2) as i64;
        let mut change = error.abs() - quarter;
        if error < 0 && change > 0 {
            // A falling round-trip time is no reason for a longer timeout.
            change >>= 3;
        }
        self.mdev4 = (self.mdev4 as i64 + change).max(0) as u64;
        if self.mdev4 > self.mdev4_max {
            self.mdev4_max = self.mdev4;
            self.rttvar = self.rttvar.max(self.mdev4_max);
        }
        if una > self.round_end {
            if self.mdev4_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev4_max) >> 2;
            }
            self.round_end = next;
            self.mdev4_max = RTO_MIN_US;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_round_trip_leaves_the_least_timeout_beyond_it() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.rto_us(), 1_000_000);
        for round in 0..100 {
            rtt.sample(40_000, 10 * round + 1, 10 * (round + 1));
        }
        assert_eq!(rtt.smoothed_us(), Some(40_000));
        assert_eq!(rtt.rto_us(), 240_000);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto_us(), 960_000);
        rtt.sample(40_000, 2_000, 2_010);
        assert_eq!(rtt.rto_us(), 240_000);
    }

    #[test]
    fn a_longer_round_trip_raises_the_timeout_more_than_a_shorter_one() {
        let settled = || {
            let mut rtt = Rtt::new();
            (0..50).for_each(|round| rtt.sample(400_000, round + 1, round + 2));
            rtt
        };
        let (mut up, mut down) = (settled(), settled());
        let before = up.rto_us();
        up.sample(1_400_000, 60, 61);
        down.sample(100_000, 60, 61);
        assert!(up.rto_us() > before + 500_000, "{}", up.rto_us());
        assert!(down.rto_us() < before, "{}", down.rto_us());
    }
}
