//! Air that this sender leaves empty, and whether it was somebody's.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::PACE_BURST;
use crate::host::bulk::Bulk;

/// When nothing was to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct AirUse {
    /// Nothing was to be sent since then.
    idle_since: Option<Time>,
    /// Time without anything to send since feedback was taken last.
    idle: Duration,
    /// Until when a pause is no air that could have been used.
    made_up_until: Time,
    pub(super) bulk: Bulk,
}

impl AirUse {
    pub(super) fn new(now: Time) -> Self {
        let (idle_since, idle, bulk) = (None, Duration::ZERO, Bulk::new(now));
        AirUse { idle_since, idle, made_up_until: now, bulk }
    }

    /// Whether what is sent now comes after a gap.
    pub(super) fn is_gap(&self, now: Time) -> bool {
        self.idle_since.is_some() && now > self.made_up_until
    }

    /// There is nothing to be sent. The frame before has its own time, and pauses that are short
    /// are made up for.
    pub(super) fn begin_idle(&mut self, now: Time, frame_time: impl FnOnce() -> Duration) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
            self.made_up_until = now + frame_time().max(PACE_BURST);
        }
    }

    /// There is something to be sent again, or it is counted until now. Returns for how long air
    /// was lost that could have been used, if there was nothing to be sent.
    pub(super) fn end_idle(&mut self, now: Time, rtt: Duration) -> Option<Duration> {
        let since = self.idle_since.take()?;
        self.idle += now - since;
        self.bulk.note_empty(since, now - since, rtt);
        Some(now - since.max(self.made_up_until.min(now)))
    }

    /// Nothing is to be sent still.
    pub(super) fn go_on_idle(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// How long there was nothing to send since this was asked last.
    pub(super) fn take_idle(&mut self) -> Duration {
        core::mem::take(&mut self.idle)
    }
}
