//! Detects whether a bulk transfer is in progress, and how long the link idled during it because
//! the ingress queue had run dry.

use core::time::Duration;

use corridor_base::Time;

use crate::host::codel_target::Air;

/// A bulk transfer is in progress once this many packets wait while another is being sent.
const QUEUED: usize = 3;
/// A bulk transfer counts as in progress for this long after packets last had to wait, because a
/// burst of losses can withhold acknowledgments from the senders for that long. Idle time within
/// this period means that the queue was too short.
const MEMORY: Duration = Duration::from_millis(100);
/// The same in round trips; the longer of the two applies.
const MEMORY_ROUND_TRIPS: u32 = 2;

/// Tells idle airtime during a bulk transfer from airtime that nobody needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    /// Last time that [`QUEUED`] packets waited.
    queued_at: Option<Time>,
    starved: Duration,
    told_at: Time,
}

impl Bulk {
    pub(crate) fn new(now: Time) -> Self {
        Bulk { queued_at: None, starved: Duration::ZERO, told_at: now }
    }

    /// Records how many packets are waiting.
    pub(crate) fn note_queue(&mut self, now: Time, packets: usize) {
        if packets >= QUEUED {
            self.queued_at = Some(now);
        }
    }

    /// Records that for `time`, starting at `since`, nothing was sent, or nothing necessary.
    /// Returns whether the queue running dry was the reason.
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

    /// Returns how the air was used since the last call.
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
