//! Round-trip time estimation after RFC 6298, Section 2.

use core::time::Duration;

/// Smoothed round-trip time and its mean deviation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    smoothed: Option<(Duration, Duration)>,
}

impl RttEstimator {
    pub(crate) fn new() -> Self {
        RttEstimator { smoothed: None }
    }

    /// Adds a sample: alpha = 1/8, beta = 1/4.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => ((srtt * 7 + rtt) / 8, (var * 3 + srtt.abs_diff(rtt)) / 4),
        });
    }

    /// SRTT; `None` before the first sample.
    pub(crate) fn measured(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// SRTT; zero before the first sample.
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed.map_or(Duration::ZERO, |(srtt, _)| srtt)
    }

    /// SRTT + 4 RTTVAR; zero before the first sample.
    pub(crate) fn timeout(&self) -> Duration {
        self.smoothed.map_or(Duration::ZERO, |(srtt, var)| srtt + 4 * var)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_round_trip_needs_little_margin() {
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.timeout(), Duration::ZERO);
        (0..100).for_each(|_| rtt.sample(Duration::from_millis(100)));
        assert!(rtt.timeout() < Duration::from_millis(101), "{:?}", rtt.timeout());
        rtt.sample(Duration::from_millis(200));
        assert!(rtt.timeout() > Duration::from_millis(200), "{:?}", rtt.timeout());
    }
}
