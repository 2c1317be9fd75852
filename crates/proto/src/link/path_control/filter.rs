//! The least of what was of late.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

/// The least of what was pushed of late.
#[derive(Debug, Default)]
pub(crate) struct MinFilter {
    /// Rising in both: whatever is larger and older can never be the least again.
    values: VecDeque<(Time, i64)>,
}

impl MinFilter {
    /// Bytes of the longest.
    pub(super) const BYTES_MAX: usize = crate::bounds::WINDOW_DELAYS_MAX * size_of::<(Time, i64)>();

    pub(crate) fn push(&mut self, now: Time, value: i64, memory: Duration) {
        while self.values.back().is_some_and(|&(_, last)| last >= value) {
            self.values.pop_back();
        }
        if self.values.len() == crate::bounds::WINDOW_DELAYS_MAX {
            self.values.pop_back(); // The least is at the front.
        }
        self.values.push_back((now, value));
        while self.values.len() > 1 && self.values.front().is_some_and(|&(at, _)| at + memory < now)
        {
            self.values.pop_front();
        }
    }

    /// What was pushed before then does not count any more; the newest always does.
    pub(crate) fn forget_before(&mut self, then: Time) {
        while self.values.len() > 1 && self.values.front().is_some_and(|&(at, _)| at < then) {
            self.values.pop_front();
        }
    }

    pub(crate) fn least(&self) -> Option<i64> {
        self.values.front().map(|&(_, value)| value)
    }
}
