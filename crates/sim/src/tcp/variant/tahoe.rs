//! Tahoe: slow start after every loss (Jacobson, "Congestion Avoidance and Control", 1988).

use corridor_base::Time;

use super::reno;
use crate::tcp::config::DUPLICATES_THRESHOLD;
use crate::tcp::core::{Core, Progress};
use crate::tcp::state::Event;

pub(super) fn on_progress(core: &mut Core, now: Time, progress: &Progress) {
    core.settle(now, progress);
    core.duplicates = 0;
    reno::grow(core, progress);
}

pub(super) fn on_duplicate(core: &mut Core, now: Time) {
    if core.duplicates != DUPLICATES_THRESHOLD || !core.is_news() {
        return;
    }
    core.reduce_unless_echoed(reno::REDUCTION);
    core.cwnd = 1.0;
    core.enter(Event::Collapse);
    core.remember_loss();
    core.flight.go_back();
    core.abandon_timing();
    core.restart_timer(now);
    core.counts.fast_retransmits += 1;
}
