//! CoDel (RFC 8289): tells a standing queue from a burst by how long packets stay.

use core::time::Duration;

use crate::time::Time;

/// What CoDel holds a queue to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// A stay that is acceptable for good.
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

/// What becomes of the packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes.
    Pass,
    /// It is dropped, and the next one judged; or it is marked, and goes.
    Signal,
}

impl Codel {
    /// Judges the packet at the head, which has stayed for `stay`; `more`: it is not the last one.
    ///
    /// `again`: the packet before was dropped at this very instant.
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
            // The first one of a row has set the time of the next already.
            if again && self.count != self.lastcount {
                self.drop_next = self.control_law(self.drop_next, params);
            }
            if now >= self.drop_next {
                self.count += 1;
                return Verdict::Signal;
            }
        } else if ok_to_drop {
            self.dropping = true;
            // A queue that was controlled until recently goes on near the rate that did it.
            let delta = self.count - self.lastcount;
            let recent = now - self.drop_next < 16 * params.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.lastcount = self.count;
            self.drop_next = self.control_law(now, params);
            return Verdict::Signal;
        }
        Verdict::Pass
    }

    /// The packet that was to be dropped is marked instead, and goes.
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
