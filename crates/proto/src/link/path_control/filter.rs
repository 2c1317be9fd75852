//! A sliding-window minimum.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

/// The minimum of recent values.
#[derive(Debug, Default)]
pub(crate) struct MinFilter {
    /// Ascending in both: a value that is larger and older than another can never be the minimum
    /// again.
    values: VecDeque<(Time, i64)>,
}

impl MinFilter {
    /// Bytes at the maximum length.
    pub(super) const BYTES_MAX: usize = crate::bounds::WINDOW_DELAYS_MAX * size_of::<(Time, i64)>();

    pub(crate) fn push(&mut self, now: Time, value: i64, memory: Duration) {
        while self.values.back().is_some_and(|&(_, last)| last >= value) {
            self.values.pop_back();
        }
        if self.values.len() == crate::bounds::WINDOW_DELAYS_MAX {
            self.values.pop_back(); // The minimum is at the front.
        }
        self.values.push_back((now, value));
        while self.values.len() > 1 && self.values.front().is_some_and(|&(at, _)| at + memory < now)
        {
            self.values.pop_front();
        }
    }

    /// Drops values pushed before `then`, but never the newest.
    pub(crate) fn forget_before(&mut self, then: Time) {
        while self.values.len() > 1 && self.values.front().is_some_and(|&(at, _)| at < then) {
            self.values.pop_front();
        }
    }

    pub(crate) fn least(&self) -> Option<i64> {
        self.values.front().map(|&(_, value)| value)
    }
}
