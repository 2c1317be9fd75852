//! Airtime that this sender leaves idle, and whether the ingress queue running dry was the reason.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::PACE_BURST;
use crate::config::Goal;
use crate::host::bulk::Bulk;

/// Time with nothing to send.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idle {
    pub(super) all: Duration,
    /// The part of it during a bulk transfer.
    pub(super) starved: Duration,
}

impl Idle {
    /// The part in which repair costs nothing: all of it, or, where bytes cost money, only where
    /// repair speeds up a transfer.
    pub(super) fn free(self, goal: Goal) -> Duration {
        if goal == Goal::Bulk { self.starved } else { self.all }
    }
}

/// Measures the time with nothing to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct AirUse {
    /// Since when there has been nothing to send.
    idle_since: Option<Time>,
    /// Idle time since the last feedback.
    idle: Idle,
    /// Until then a pause loses no airtime.
    made_up_until: Time,
    pub(super) bulk: Bulk,
}

impl AirUse {
    pub(super) fn new(now: Time) -> Self {
        let (idle_since, idle, bulk) = (None, Idle::default(), Bulk::new(now));
        AirUse { idle_since, idle, made_up_until: now, bulk }
    }

    /// Whether what is sent now follows a gap.
    pub(super) fn is_gap(&self, now: Time) -> bool {
        self.idle_since.is_some() && now > self.made_up_until
    }

    /// The sender runs out of data. The last frame still takes its time, and the pacer makes up for
    /// short pauses, so idle time counts only after these.
    pub(super) fn begin_idle(&mut self, now: Time, frame_time: impl FnOnce() -> Duration) {
        if self.idle_since.is_none() {
            self.idle_since = Some(now);
            self.made_up_until = now + frame_time().max(PACE_BURST);
        }
    }

    /// Ends the idle period, or counts it until now. Returns the airtime that was lost, or `None`
    /// if the sender was not idle.
    pub(super) fn end_idle(&mut self, now: Time, rtt: Duration) -> Option<Idle> {
        let since = self.idle_since.take()?;
        let is_starved = self.bulk.note_empty(since, now - since, rtt);
        let starved = |all| Idle { all, starved: if is_starved { all } else { Duration::ZERO } };
        let idle = starved(now - since);
        self.idle.all += idle.all;
        self.idle.starved += idle.starved;
        Some(starved(now - since.max(self.made_up_until.min(now))))
    }

    /// The sender is still idle.
    pub(super) fn go_on_idle(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// Idle time since the last call.
    pub(super) fn take_idle(&mut self) -> Idle {
        core::mem::take(&mut self.idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    /// Airtime lost in a gap of 20 ms, the first part of which the pacer makes up for, behind
    /// `waited` packets.
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
