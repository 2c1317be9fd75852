//! Conversion of values in tables to those that the engines use.

use core::time::Duration;

/// Seconds as a duration, to the nanosecond; invalid values have been rejected before.
pub fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

/// Replaces a value if another one is given.
pub fn replace<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}
