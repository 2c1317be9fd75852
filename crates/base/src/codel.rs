//! CoDel (RFC 8289): distinguishes a standing queue from a burst by packets' sojourn times.

use core::time::Duration;

use crate::time::Time;

/// The target of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// A sojourn time that is acceptable permanently.
    pub target: Duration,
    /// How long a longer one is tolerated: about the longest round trip through the queue.
    pub interval: Duration,
}

/// The state of one queue, with the names of RFC 8289.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codel {
    first_above_time: Option<Time>,
    drop_next: Time,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

/// What happens to the packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent.
    Pass,
    /// It is dropped, and the next one judged; or it is marked, and sent.
    Signal,
}

impl Codel {
    /// Judges the packet at the head, which has been queued for `stay`; `more`: it is not the last
    /// one.
    ///
    /// `again`: the packet before was dropped at the same instant.
    pub fn judge(
        &mut self,
        now: Time,
        stay: Duration,
        more: bool,
        again: bool,
        params: CodelParams,
    ) -> Verdict {
        let ok_to_drop = self.is_above(now, stay, more, params);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
                return Verdict::Pass;
            }
            // The first drop of a sequence has already set the time of the next.
            if again && self.count != self.lastcount {
                self.drop_next = self.control_law(self.drop_next, params);
            }
            if now >= self.drop_next {
                self.count += 1;
                return Verdict::Signal;
            }
        } else if ok_to_drop {
            self.dropping = true;
            // A queue that was controlled until recently resumes near the previous drop rate.
            let delta = self.count - self.lastcount;
            let recent = now - self.drop_next < 16 * params.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.lastcount = self.count;
            self.drop_next = self.control_law(now, params);
            return Verdict::Signal;
        }
        Verdict::Pass
    }

    /// The packet that was to be dropped is marked instead, and sent.
    pub fn note_marked(&mut self, params: CodelParams) {
        if self.count != self.lastcount {
            self.drop_next = self.control_law(self.drop_next, params);
        }
    }

    fn is_above(&mut self, now: Time, stay: Duration, more: bool, params: CodelParams) -> bool {
        if stay < params.target || !more {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + params.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    fn control_law(&self, from: Time, params: CodelParams) -> Time {
        from + params.interval.div_f64(f64::from(self.count.max(1)).sqrt())
    }
}
