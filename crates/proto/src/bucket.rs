//! So many a second, and so many at once.

use core::time::Duration;

use corridor_base::Time;

/// Lets so many through per second, and so many at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// When all that were let through would have been at an even pace.
    even_at: Time,
}

impl Bucket {
    pub(crate) fn full(now: Time) -> Self {
        Bucket { even_at: now }
    }

    /// Whether all that were let through would have been by now at an even pace.
    pub(crate) fn is_full(&self, now: Time) -> bool {
        self.even_at <= now
    }

    /// Whether one more may pass, which does not count as one.
    pub(crate) fn has_room(&self, now: Time, per_second: u32, burst: u32) -> bool {
        self.even_at.max(now) - now < Duration::from_secs(1) / per_second * burst
    }

    /// Whether one more may pass.
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
