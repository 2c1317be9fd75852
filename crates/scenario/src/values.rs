//! Values of tables, as those take them that run what the tables say.

use core::time::Duration;

/// Seconds as a span, to the nanosecond; checks have refused what is none.
pub fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

/// Puts a value that is given in the place of another.
pub fn replace<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}
