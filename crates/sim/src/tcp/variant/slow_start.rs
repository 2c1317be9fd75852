//! RFC 793 with slow start and nothing else (constrained-defaults-2012, Section II-B): the window
//! grows by a packet for each acknowledgment of new data, and returns to one packet after a
//! timeout.

use corridor_base::Time;

use crate::tcp::core::{Core, Progress};

pub(super) fn on_progress(core: &mut Core, now: Time, progress: &Progress) {
    core.settle(now, progress);
    core.duplicates = 0;
    core.cwnd = (core.cwnd + 1.0).min(core.window_max());
}
