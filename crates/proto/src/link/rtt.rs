//! Round-trip time estimation after RFC 6298, Section 2.

use core::time::Duration;

/// The usual round-trip time takes a sample as at most this many times itself, unless its timeout
/// is longer: a frame that waited for the end of an outage changes it little, and a path that has
/// become longer is followed within a few samples.
const USUAL_FACTOR: u32 = 4;
/// Samples below this count in full: a round trip of zero would never grow.
const USUAL_MIN: Duration = Duration::from_millis(1);

/// Smoothed round-trip time and its mean deviation, of all samples and without outliers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    all: Option<Smoothed>,
    usual: Option<Smoothed>,
}

/// SRTT and RTTVAR.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Smoothed {
    srtt: Duration,
    var: Duration,
}

impl Smoothed {
    /// Adds a sample: alpha = 1/8, beta = 1/4.
    fn with(before: Option<Smoothed>, rtt: Duration) -> Smoothed {
        match before {
            None => Smoothed { srtt: rtt, var: rtt / 2 },
            Some(Smoothed { srtt, var }) => {
                Smoothed { srtt: (srtt * 7 + rtt) / 8, var: (var * 3 + srtt.abs_diff(rtt)) / 4 }
            }
        }
    }

    pub(crate) fn srtt(self) -> Duration {
        self.srtt
    }

    /// SRTT + 4 RTTVAR.
    pub(crate) fn timeout(self) -> Duration {
        self.srtt + 4 * self.var
    }
}

impl RttEstimator {
    pub(crate) fn new() -> Self {
        RttEstimator { all: None, usual: None }
    }

    /// Adds a sample.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        self.all = Some(Smoothed::with(self.all, rtt));
        let most = self.usual.map_or(Duration::MAX, |usual| {
            usual.timeout().max(USUAL_FACTOR * usual.srtt).max(USUAL_MIN)
        });
        self.usual = Some(Smoothed::with(self.usual, rtt.min(most)));
    }

    /// SRTT; `None` before the first sample.
    pub(crate) fn measured(&self) -> Option<Duration> {
        self.all.map(Smoothed::srtt)
    }

    /// SRTT; zero before the first sample.
    pub(crate) fn smoothed(&self) -> Duration {
        self.measured().unwrap_or(Duration::ZERO)
    }

    /// SRTT + 4 RTTVAR; zero before the first sample.
    pub(crate) fn timeout(&self) -> Duration {
        self.all.map_or(Duration::ZERO, Smoothed::timeout)
    }

    /// The same without outliers, which say nothing about the path as it usually is; `None` before
    /// the first sample.
    pub(crate) fn usual(&self) -> Option<Smoothed> {
        self.usual
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

    #[test]
    fn an_outage_changes_the_usual_round_trip_little() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::new();
        assert!(rtt.usual().is_none());
        (0..100).for_each(|_| rtt.sample(ms(20)));
        rtt.sample(ms(6_000));
        let usual = rtt.usual().expect("samples were added");
        assert!(usual.timeout() < ms(100), "{usual:?}");
        assert!(rtt.timeout() > ms(6_000), "{:?}", rtt.timeout());
    }

    #[test]
    fn a_path_that_has_become_longer_is_followed_within_twenty_samples() {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::new();
        (0..100).for_each(|_| rtt.sample(ms(0)));
        (0..20).for_each(|_| rtt.sample(ms(300)));
        let usual = rtt.usual().expect("samples were added");
        assert!(usual.timeout() > ms(300), "{usual:?}");
        (0..30).for_each(|_| rtt.sample(ms(300)));
        let usual = rtt.usual().expect("samples were added");
        assert!(usual.srtt().abs_diff(ms(300)) < ms(15), "{usual:?}");
    }
}
