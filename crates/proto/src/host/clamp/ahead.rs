//! How far a sender may be ahead of the packets that leave the queue: enough to bridge the time
//! that it takes to answer, and a small margin.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use corridor_packet::sequence::is_after;

/// Packets that a sender may always be ahead: it takes a moment to answer a longer window, and TCP
/// sends two segments at once.
pub(crate) const AHEAD_MIN: u32 = 2;
/// Margin in time on top of the answer time, which varies.
const AHEAD: Duration = Duration::from_millis(1);
/// This margin is shared by flows, but not cut below this many packets for each: TCP makes many
/// segments at once.
const AHEAD_EACH: f64 = 44.0;
/// Upper bound in packets, so that no sum wraps.
const AHEAD_MAX: f64 = 8_192.0;
/// Factor on the measured answer time, as margin.
const ANSWER_FACTOR: f64 = 1.1;
/// Number of recent answers of which the fastest counts: the slower ones had to wait for something
/// else.
const ANSWERS: usize = 16;
/// An answer slower than this does not count: the sender had nothing to send.
pub(crate) const ANSWER_MAX: Duration = Duration::from_millis(250);
/// Longest queueing time that a clamped window may account for.
const GRACE_MAX: Duration = Duration::from_millis(250);

/// How fast packets leave the queue, and how many flows share this rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Packets per second, of all flows.
    pub(crate) packets_per_s: f64,
    /// Flows with clamped windows that have data to send.
    pub(crate) flows: usize,
}

impl Pace {
    /// Packets that one flow may be ahead of what has left, if it answers after `answer`.
    pub(crate) fn ahead(self, answer: Duration) -> u32 {
        let is_pace = self.packets_per_s.is_finite();
        let per_s = if is_pace { self.packets_per_s.max(0.0) } else { 0.0 };
        let flows = self.flows.max(1) as f64;
        let spare = per_s * AHEAD.as_secs_f64();
        let answering = per_s * ANSWER_FACTOR * answer.as_secs_f64() / flows;
        let ahead = f64::from(AHEAD_MIN) + spare.min(AHEAD_EACH.max(spare / flows)) + answering;
        ahead.min(AHEAD_MAX).ceil() as u32
    }

    /// How long packets of all flows together wait if each flow is `ahead` packets ahead.
    pub(crate) fn grace(self, ahead: u32) -> Duration {
        let packets = f64::from(2 * ahead) * self.flows.max(1) as f64;
        let seconds = packets / self.packets_per_s.max(1.0);
        GRACE_MAX.min(Duration::try_from_secs_f64(seconds).unwrap_or(GRACE_MAX))
    }
}

/// Measures how long a sender takes to go on once it may.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// Since when the sender knows that it may go beyond this sequence number.
    asked: Option<(Time, u32)>,
    /// Recent answer times in nanoseconds, at most [`ANSWER_MAX`].
    took: ArrayVec<u32, ANSWERS>,
    soonest: Duration,
    seen: usize,
}

impl Answers {
    /// Records that the sender is allowed beyond `edge`, further than ever before.
    pub(crate) fn ask(&mut self, now: Time, edge: u32) {
        if self.asked.is_none_or(|(at, _)| now - at > ANSWER_MAX) {
            self.asked = Some((now, edge));
        }
    }

    /// Records that the sender has sent everything up to `sent_end`; returns whether this is an
    /// answer.
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

    /// Keeps the last answer only.
    pub(crate) fn forget_others(&mut self) {
        let last = self.took.get(self.seen.saturating_sub(1) % ANSWERS).copied();
        self.took = last.into_iter().collect();
        self.seen = self.took.len();
        self.find_soonest();
    }

    /// Stops waiting for an answer.
    pub(crate) fn end(&mut self) {
        self.asked = None;
    }

    /// The fastest recent answer; zero before the first.
    pub(crate) fn soonest(&self) -> Duration {
        self.soonest
    }

    fn find_soonest(&mut self) {
        let soonest = self.took.iter().min().copied().unwrap_or_default();
        self.soonest = Duration::from_nanos(soonest.into());
    }
}
