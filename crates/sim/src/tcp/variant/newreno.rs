//! NewReno: fast recovery until everything that was in flight is acknowledged (RFC 6582).
//!
//! A partial acknowledgment causes the next missing packet to be retransmitted at once; only the
//! first partial acknowledgment restarts the timer ("impatient", RFC 6582, Section 4), as in ns-2.

use corridor_base::Time;

use super::reno;
use crate::tcp::config::DUPLICATES_THRESHOLD;
use crate::tcp::core::{Core, Progress};
use crate::tcp::state::{Event, State};

/// New packets that an acknowledgment may release in recovery, to limit bursts (RFC 6582, Section
/// 3.2, step 3).
const BURST_PACKETS_MAX: u32 = 2;

/// NewReno's state.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct NewReno {
    /// Whether a partial acknowledgment has come in this recovery.
    partial: bool,
}

impl NewReno {
    pub(super) fn on_progress(&mut self, core: &mut Core, now: Time, progress: &Progress) {
        if core.state == State::Recovery && !core.is_repaired() {
            return self.on_partial(core, now, progress);
        }
        if core.state == State::Recovery {
            core.enter(Event::Repaired);
            core.inflation = 0;
        }
        core.settle(now, progress);
        core.duplicates = 0;
        reno::grow(core, progress);
    }

    /// RFC 6582, Section 3.2, step 3: deflates the window by what was acknowledged, less the packet
    /// that is retransmitted.
    fn on_partial(&mut self, core: &mut Core, now: Time, progress: &Progress) {
        core.settle_partial(now, progress);
        if !self.partial {
            core.restart_timer(now);
            self.partial = true;
        }
        if core.inflation > progress.count {
            core.inflation -= progress.count - 1;
        } else {
            core.cwnd = (core.cwnd - (progress.count - core.inflation) as f64).max(1.0);
            core.inflation = 1;
        }
        core.urgent = Some(core.flight.una());
        core.burst = BURST_PACKETS_MAX;
    }

    pub(super) fn on_duplicate(&mut self, core: &mut Core, now: Time) {
        if core.state == State::Recovery {
            core.inflation += 1;
        } else if core.duplicates == DUPLICATES_THRESHOLD && core.is_news() {
            core.fast_retransmit(now, reno::REDUCTION);
            core.inflation = u64::from(DUPLICATES_THRESHOLD);
            self.partial = false;
        }
        if core.duplicates >= DUPLICATES_THRESHOLD {
            core.burst = BURST_PACKETS_MAX;
        }
    }
}
