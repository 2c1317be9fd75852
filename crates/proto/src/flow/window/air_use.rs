//! Air that this sender leaves empty, and whether it was somebody's.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::PACE_BURST;
use crate::config::Goal;
use crate::host::bulk::Bulk;

/// Time without anything to send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    pub(super) all: Duration,
    /// That of it in the midst of a bulk transfer.
    pub(super) starved: Duration,
}

impl Idle {
    /// Where repair goes for free: in all of it, or, where bytes are paid for, only where it makes
    /// a transfer faster.
    pub(super) fn free(self, goal: Goal) -> Duration {
        if goal == Goal::Bulk { self.starved } else { self.all }
    }
}

/// When nothing was to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct AirUse {
    /// Nothing was to be sent since then.
    idle_since: Option<Time>,
    /// That since feedback was taken last.
    idle: Idle,
    /// Until when a pause is no air that could have been used.
    made_up_until: Time,
    pub(super) bulk: Bulk,
}

impl AirUse {
    pub(super) fn new(now: Time) -> Self {
        let (idle_since, idle, bulk) = (None, Idle::default(), Bulk::new(now));
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
    pub(super) fn end_idle(&mut self, now: Time, rtt: Duration) -> Option<Idle> {
        let since = self.idle_since.take()?;
        let is_starved = self.bulk.note_empty(since, now - since, rtt);
        let starved = |all| Idle { all, starved: if is_starved { all } else { Duration::ZERO } };
        let idle = starved(now - since);
        self.idle.all += idle.all;
        self.idle.starved += idle.starved;
        Some(starved(now - since.max(self.made_up_until.min(now))))
    }

    /// Nothing is to be sent still.
    pub(super) fn go_on_idle(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// How long there was nothing to send since this was asked last.
    pub(super) fn take_idle(&mut self) -> Idle {
        core::mem::take(&mut self.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    /// Free air of a gap of 20 ms, of which the first is made up for, behind so many packets.
    fn free(waited: usize, goal: Goal) -> Duration {
        let mut air = AirUse::new(Time::ZERO);
        air.bulk.note_queue(Time::ZERO, waited);
        air.begin_idle(Time::from_millis(10), || Duration::from_millis(1));
        let lost = air.end_idle(Time::from_millis(30), RTT).unwrap();
        assert_eq!(lost.all, Duration::from_millis(20) - PACE_BURST.max(Duration::from_millis(1)));
        assert_eq!(air.take_idle().all, Duration::from_millis(20));
        lost.free(goal)
    }

    #[test]
    fn where_bytes_are_paid_for_only_air_that_a_transfer_leaves_empty_is_free() {
        for goal in [Goal::Throughput, Goal::LowDelay, Goal::Bulk] {
            assert!(free(10, goal) > Duration::from_millis(10), "{goal:?} in a transfer");
        }
        assert!(free(1, Goal::Throughput) > Duration::from_millis(10));
        assert_eq!(free(1, Goal::Bulk), Duration::ZERO, "a sparse flow");
    }
}
