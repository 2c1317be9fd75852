//! Reno: fast recovery that ends with the first new acknowledgment (RFC 5681, Section 3.2).

use corridor_base::Time;

use crate::tcp::config::DUPLICATES_THRESHOLD;
use crate::tcp::core::{Core, Progress};
use crate::tcp::state::{Event, State};

/// Factor that a loss applies to the window.
pub(super) const REDUCTION: f64 = 0.5;

pub(super) fn on_progress(core: &mut Core, now: Time, progress: &Progress) {
    if core.state == State::Recovery {
        core.enter(Event::Repaired);
        core.inflation = 0;
    }
    core.settle(now, progress);
    core.duplicates = 0;
    grow(core, progress);
}

pub(super) fn on_duplicate(core: &mut Core, now: Time) {
    if core.state == State::Recovery {
        core.inflation += 1;
    } else if core.duplicates == DUPLICATES_THRESHOLD && core.is_news() {
        core.fast_retransmit(now, REDUCTION);
        core.inflation = u64::from(DUPLICATES_THRESHOLD);
    }
}

/// Slow start: one packet for each acknowledgment. Congestion avoidance: one packet for each
/// window (RFC 5681, equations 2 and 3).
pub(super) fn grow(core: &mut Core, progress: &Progress) {
    if progress.congestion {
        return;
    }
    core.cwnd += if core.in_slow_start() { 1.0 } else { 1.0 / core.cwnd };
}
