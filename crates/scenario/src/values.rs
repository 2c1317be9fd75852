//! Values of tables, as those take them that run what the tables say.

use core::time::Duration;

/// Seconds as a span, to the nanosecond; checks have refused what is none.
pub fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}
