//! Whether flows that fill the air are kept waiting, or the air waits for them.

use core::time::Duration;

use corridor_base::Time;

use crate::host::codel_target::Air;

/// Packets that wait while one goes, from which on there is a bulk transfer.
const QUEUED: usize = 3;
/// How long without that there still is one, and air that is empty is so for want of a queue:
/// bursts of losses keep acknowledgements from the flows for that long.
const MEMORY: Duration = Duration::from_millis(100);
/// The same in round trips.
const MEMORY_ROUND_TRIPS: u32 = 2;

/// Tells air that is empty in the midst of a bulk transfer from air that nobody wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    /// When packets had to wait last.
    queued_at: Option<Time>,
    starved: Duration,
    told_at: Time,
}

impl Bulk {
    pub(crate) fn new(now: Time) -> Self {
        Bulk { queued_at: None, starved: Duration::ZERO, told_at: now }
    }

    /// So many packets wait.
    pub(crate) fn note_queue(&mut self, now: Time, packets: usize) {
        if packets >= QUEUED {
            self.queued_at = Some(now);
        }
    }

    /// Nothing was to be sent from `since` on, or nothing that was needed. Whether that was for
    /// want of a queue.
    pub(crate) fn note_empty(&mut self, since: Time, time: Duration, rtt: Duration) -> bool {
        let is_starved = self.is_on(since, rtt) && time < memory(rtt);
        if is_starved {
            self.starved += time;
        }
        is_starved
    }

    fn is_on(&self, now: Time, rtt: Duration) -> bool {
        self.queued_at.is_some_and(|at| at + memory(rtt) > now)
    }

    /// What was noted since this was asked last.
    pub(crate) fn take(
        &mut self,
        now: Time,
        rtt: Duration,
        (shared, loss_ratio, packets_per_s): (bool, f64, f64),
    ) -> Air {
        let passed = now - core::mem::replace(&mut self.told_at, now);
        let bulk = if self.is_on(now, rtt) { passed } else { Duration::ZERO };
        Air { bulk, starved: core::mem::take(&mut self.starved), shared, loss_ratio, packets_per_s }
    }
}

fn memory(rtt: Duration) -> Duration {
    MEMORY.max(MEMORY_ROUND_TRIPS * rtt)
}
