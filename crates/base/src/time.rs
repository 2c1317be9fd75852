//! Points in time: whole nanoseconds since an origin that the caller chooses.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an arbitrary origin (process start, start of simulation).
///
/// Range: 584 years. Arithmetic saturates, so that no wrong clock makes a state machine panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// The end of time: later than any timer.
    pub const MAX: Time = Time(u64::MAX);

    /// The point `ns` nanoseconds after the origin.
    pub const fn from_nanos(ns: u64) -> Self {
        Time(ns)
    }

    /// The point `ms` milliseconds after the origin.
    pub const fn from_millis(ms: u64) -> Self {
        Time(ms.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, as a rounded float; for reports, never for the protocol.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// As [`since`](Self::since), in nanoseconds: creating a [`Duration`] takes a division.
    pub const fn nanos_since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The earlier of two due times, if there is any. Called for each event, where it is faster than an
/// iterator's minimum.
pub fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        let ns = span.as_secs().saturating_mul(1_000_000_000);
        Time(self.0.saturating_add(ns.saturating_add(u64::from(span.subsec_nanos()))))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO + Duration::MAX, Time::MAX);
        assert_eq!(Time::ZERO - Time::from_millis(1), Duration::ZERO);
        assert_eq!(Time::from_millis(3) - Time::from_millis(1), Duration::from_millis(2));
    }

    #[test]
    fn the_earlier_is_whichever_there_is() {
        let [one, two] = [1, 2].map(|ms| Some(Time::from_millis(ms)));
        assert_eq!((earlier(one, two), earlier(two, one)), (one, one));
        assert_eq!((earlier(None, two), earlier(one, None), earlier(None, None)), (two, one, None));
        assert_eq!(Time::from_millis(2).nanos_since(Time::from_millis(1)), 1_000_000);
        assert_eq!(Time::from_millis(1).nanos_since(Time::from_millis(2)), 0);
    }

    #[test]
    fn display_has_nine_decimals() {
        assert_eq!(Time::from_nanos(1_000_000_001).to_string(), "1.000000001s");
    }
}
