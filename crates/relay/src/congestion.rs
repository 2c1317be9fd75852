//! Congestion detection from the MAC's retries (CATWOMAN 2013, Section II-A).

use core::time::Duration;

use corridor_base::Time;

/// Interval at which retries are evaluated.
const SECOND: Duration = Duration::from_secs(1);

/// Counts retries per second.
#[derive(Debug)]
pub struct Congestion {
    /// Start of the current second.
    since: Time,
    retries: u64,
    congested: bool,
    threshold: u64,
    /// Number of congested seconds.
    seconds: u64,
    /// Whether retries have ever been reported.
    is_told: bool,
}

impl Congestion {
    pub fn new(now: Time, threshold: u32) -> Self {
        Congestion {
            since: now,
            retries: 0,
            congested: false,
            threshold: threshold.into(),
            seconds: 0,
            is_told: false,
        }
    }

    /// Counts retries reported by the MAC.
    pub fn count(&mut self, now: Time, retries: u32) {
        self.turn(now);
        self.is_told = true;
        self.retries += u64::from(retries);
    }

    /// Whether the last complete second had more retries than the threshold.
    pub fn is_congested(&mut self, now: Time) -> bool {
        self.turn(now);
        self.congested
    }

    /// Whether retries were ever reported: otherwise no channel counts as congested.
    pub fn is_told(&self) -> bool {
        self.is_told
    }

    pub fn seconds(&self) -> u64 {
        self.seconds
    }

    fn turn(&mut self, now: Time) {
        let passed = now.since(self.since).as_nanos() / SECOND.as_nanos();
        if passed == 0 {
            return;
        }
        // Of several seconds since the last call, only the first can have had retries.
        let over = self.retries > self.threshold;
        self.seconds += u64::from(over);
        self.congested = over && passed == 1;
        self.retries = 0;
        self.since += SECOND * u32::try_from(passed).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_with_more_retries_than_the_threshold_makes_the_next_one_congested() {
        let ms = Time::from_millis;
        let mut congestion = Congestion::new(ms(0), 50);
        congestion.count(ms(100), 50);
        assert!(!congestion.is_congested(ms(1000)), "no more than the threshold");
        congestion.count(ms(1500), 30);
        congestion.count(ms(1999), 21);
        assert!(!congestion.is_congested(ms(1999)), "the second is not over");
        assert!(congestion.is_congested(ms(2000)) && congestion.is_congested(ms(2999)));
        assert!(!congestion.is_congested(ms(3000)));
        congestion.count(ms(3000), 500);
        assert!(!congestion.is_congested(ms(9000)), "long ago");
        assert_eq!(congestion.seconds(), 2);
    }
}
