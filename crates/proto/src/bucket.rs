//! A token bucket.

use core::time::Duration;

use corridor_base::Time;

/// Lets `per_second` items per second pass, and a burst of up to `burst`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// When all items so far would have passed at an even pace.
    even_at: Time,
}

impl Bucket {
    pub(crate) fn full(now: Time) -> Self {
        Bucket { even_at: now }
    }

    /// Whether the bucket is full: at an even pace all items would have passed by now.
    pub(crate) fn is_full(&self, now: Time) -> bool {
        self.even_at <= now
    }

    /// Whether one more item may pass; does not count it.
    pub(crate) fn has_room(&self, now: Time, per_second: u32, burst: u32) -> bool {
        self.even_at.max(now) - now < Duration::from_secs(1) / per_second * burst
    }

    /// Whether one more item may pass; if so, counts it.
    pub(crate) fn take(&mut self, now: Time, per_second: u32, burst: u32) -> bool {
        let interval = Duration::from_secs(1) / per_second;
        let even_at = self.even_at.max(now);
        let has_room = even_at - now < interval * burst;
        if has_room {
            self.even_at = even_at + interval;
        }
        has_room
    }
}
