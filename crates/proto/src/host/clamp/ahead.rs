//! How far ahead of what leaves the queue a sender is let: what it takes to answer, and a little.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use corridor_packet::sequence::is_after;

/// Packets that a sender may always be ahead: its answer to a longer window takes a moment, and
/// what TCP sends at once is two segments.
pub(crate) const AHEAD_MIN: u32 = 2;
/// How far ahead it may be in time, besides the time that its answer takes: it is not always the
/// same.
const AHEAD: Duration = Duration::from_millis(1);
/// Packets of that that each of many flows may be ahead: TCP makes segments many at once.
const AHEAD_EACH: f64 = 44.0;
/// The most packets, so that no sum wraps.
const AHEAD_MAX: f64 = 8_192.0;
/// An answer may take so much longer.
const ANSWER_FACTOR: f64 = 1.1;
/// Answers of which the soonest counts: those that were later had something else to wait for.
const ANSWERS: usize = 16;
/// Longest answer that is one: a sender that takes longer had nothing to say.
pub(crate) const ANSWER_MAX: Duration = Duration::from_millis(250);
/// Longest that packets may stand which were let in.
const GRACE_MAX: Duration = Duration::from_millis(250);

/// How fast packets leave the queue, and whose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Packets a second, of all flows.
    pub(crate) packets_per_s: f64,
    /// Flows with clamped windows that have something to send.
    pub(crate) flows: usize,
}

impl Pace {
    /// Packets that one of them may be ahead of what has left, if it answers after so long.
    pub(crate) fn ahead(self, answer: Duration) -> u32 {
        let is_pace = self.packets_per_s.is_finite();
        let per_s = if is_pace { self.packets_per_s.max(0.0) } else { 0.0 };
        let flows = self.flows.max(1) as f64;
        let spare = per_s * AHEAD.as_secs_f64();
        let answering = per_s * ANSWER_FACTOR * answer.as_secs_f64() / flows;
        let ahead = f64::from(AHEAD_MIN) + spare.min(AHEAD_EACH.max(spare / flows)) + answering;
        ahead.min(AHEAD_MAX).ceil() as u32
    }

    /// How long packets stand, of all flows together, if each is so far ahead.
    pub(crate) fn grace(self, ahead: u32) -> Duration {
        let packets = f64::from(2 * ahead) * self.flows.max(1) as f64;
        let seconds = packets / self.packets_per_s.max(1.0);
        GRACE_MAX.min(Duration::try_from_secs_f64(seconds).unwrap_or(GRACE_MAX))
    }
}

/// How long a sender takes to go on once it may.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// Since when it knows that it may go on beyond this number.
    asked: Option<(Time, u32)>,
    /// How long it took until it did, of late: nanoseconds, of [`ANSWER_MAX`] at most.
    took: ArrayVec<u32, ANSWERS>,
    soonest: Duration,
    seen: usize,
}

impl Answers {
    /// The sender is told that it may go beyond a number, farther than ever.
    pub(crate) fn ask(&mut self, now: Time, edge: u32) {
        if self.asked.is_none_or(|(at, _)| now - at > ANSWER_MAX) {
            self.asked = Some((now, edge));
        }
    }

    /// It has sent all up to a number. Whether that is an answer.
    pub(crate) fn note(&mut self, now: Time, sent_end: u32) -> bool {
        let Some((at, _)) = self.asked.take_if(|(_, edge)| is_after(sent_end, *edge)) else {
            return false;
        };
        if now - at > ANSWER_MAX {
            return false;
        }
        let took = (now - at).as_nanos() as u32;
        if self.took.is_full() {
            self.took[self.seen % ANSWERS] = took;
        } else {
            self.took.push(took);
        }
        self.seen += 1;
        self.find_soonest();
        true
    }

    /// Only the last answer was one.
    pub(crate) fn forget_others(&mut self) {
        let last = self.took.get(self.seen.saturating_sub(1) % ANSWERS).copied();
        self.took = last.into_iter().collect();
        self.seen = self.took.len();
        self.find_soonest();
    }

    /// Nothing is asked any more.
    pub(crate) fn end(&mut self) {
        self.asked = None;
    }

    /// The soonest of late; none at all before the first.
    pub(crate) fn soonest(&self) -> Duration {
        self.soonest
    }

    fn find_soonest(&mut self) {
        let soonest = self.took.iter().min().copied().unwrap_or_default();
        self.soonest = Duration::from_nanos(soonest.into());
    }
}
