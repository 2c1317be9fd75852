//! Frames in flight: sent, and not yet covered by feedback; and those that may be late.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use crate::bounds::WINDOW_SENT_LOG_MAX;

/// Numbers all frames with symbols that this station has sent over a link, across sessions: later
/// frames have greater numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameNumber(u64);

impl FrameNumber {
    /// The frame with this counter in the session that is `session` sessions after the first.
    pub(crate) fn new(session: u32, counter: u32) -> Self {
        FrameNumber(u64::from(session) << 32 | u64::from(counter))
    }

    /// The frame with this counter in the same session.
    pub(super) fn of_counter(self, counter: u32) -> Self {
        FrameNumber::new((self.0 >> 32) as u32, counter)
    }

    /// The first frame of the next session.
    pub(super) fn of_next_session(self) -> Self {
        FrameNumber::new((self.0 >> 32) as u32 + 1, 0)
    }

    /// The frame after this one.
    pub(crate) fn following(self) -> Self {
        FrameNumber(self.0 + 1)
    }
}

/// What a frame carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A source symbol, sent for the first time.
    Source(u64),
    /// A copy of a source symbol.
    Copy(u64),
    /// A copy sent ahead of need: it can repair nothing else that may be missing.
    Ahead,
    /// A coded symbol.
    Coded,
    /// A part of one of these, and not the last: it is of no use by itself.
    Part,
}

/// A frame in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) number: FrameNumber,
    pub(crate) at: Time,
    pub(crate) what: What,
    /// It had to wait for the rate: the sender was not idle before it.
    pub(crate) held: bool,
    /// Before it there was nothing to send for a while, or the sender paused on purpose.
    pub(crate) after_gap: bool,
    /// Bytes of its body.
    pub(crate) len: u16,
    /// Bytes sent since the frame before in frames without symbols, feedback mostly, and what was
    /// piggybacked on that frame; at most a long frame's, and none after a gap.
    pub(crate) beside: u16,
    /// Number of frames that have to arrive for its content: all parts, if it is the last one.
    pub(crate) parts: u8,
}

impl Sent {
    /// Probability that its content does not arrive, at a loss ratio of frames of `of_frames`.
    pub(crate) fn loss_ratio(&self, of_frames: f64) -> f64 {
        if self.parts <= 1 { of_frames } else { 1.0 - (1.0 - of_frames).powi(self.parts.into()) }
    }
}

/// The frames in flight, oldest first, and before them those that feedback covers and that may
/// still arrive late.
#[derive(Clone, Debug)]
pub(crate) struct SentLog {
    frames: VecDeque<Sent>,
    /// How many of them feedback covers.
    covered: usize,
    sources: usize,
    frames_max: usize,
    lane_frames_max: usize,
    /// Number of copies ahead of need.
    aheads: usize,
}

impl SentLog {
    /// Has room for `frames_max` frames, of one lane.
    pub(crate) fn new(frames_max: usize) -> Self {
        let frames = VecDeque::new();
        let lane_frames_max = frames_max;
        SentLog { frames, covered: 0, sources: 0, frames_max, lane_frames_max, aheads: 0 }
    }

    /// Has room for the frames of this many lanes from now on. Any excess goes as feedback covers
    /// it.
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        self.frames_max = (lanes * self.lane_frames_max).min(WINDOW_SENT_LOG_MAX);
    }

    /// Records a frame. If there are too many, returns the oldest, as if it were lost.
    #[inline]
    pub(crate) fn push(&mut self, sent: Sent) -> Option<Sent> {
        let oldest = if self.frames.len() >= self.frames_max { self.pop() } else { None };
        self.sources += usize::from(matches!(sent.what, What::Source(_)));
        self.aheads += usize::from(sent.what == What::Ahead);
        self.frames.push_back(sent);
        oldest
    }

    /// The newest frame, in flight or covered.
    pub(crate) fn newest(&self) -> Option<&Sent> {
        self.frames.back()
    }

    /// The newest frame in flight up to this one.
    pub(super) fn newest_until(&self, number: FrameNumber) -> Option<&Sent> {
        let until = self.frames.partition_point(|sent| sent.number <= number);
        self.frames.get(until.checked_sub(1)?).filter(|_| until > self.covered)
    }

    /// Feedback covers frame `newest` and all before it. Calls `each` with every frame that it
    /// newly covers.
    pub(crate) fn tell(&mut self, newest: FrameNumber, mut each: impl FnMut(&Sent)) {
        while let Some(sent) = self.oldest().copied().filter(|sent| sent.number <= newest) {
            self.covered += 1;
            self.leave_flight(&sent);
            each(&sent);
        }
    }

    /// Removes the oldest covered frame if it can no longer arrive late: it was sent longer ago
    /// than `age_max`, or there are too many. One that is not awaited goes at once.
    pub(crate) fn pop_settled(
        &mut self,
        now: Time,
        age_max: Duration,
        is_awaited: bool,
    ) -> Option<Sent> {
        let too_many = self.frames.len() > self.frames_max;
        let oldest = self.oldest_covered()?;
        if is_awaited && !too_many && now < oldest.at + age_max {
            return None;
        }
        self.pop()
    }

    fn pop(&mut self) -> Option<Sent> {
        let sent = self.frames.pop_front()?;
        match self.covered.checked_sub(1) {
            Some(covered) => self.covered = covered,
            None => self.leave_flight(&sent),
        }
        Some(sent)
    }

    fn leave_flight(&mut self, sent: &Sent) {
        self.sources -= usize::from(matches!(sent.what, What::Source(_)));
        self.aheads -= usize::from(sent.what == What::Ahead);
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        (self.covered, self.sources, self.aheads) = (0, 0, 0);
    }

    /// The oldest covered frame.
    pub(crate) fn oldest_covered(&self) -> Option<&Sent> {
        self.frames.front().filter(|_| self.covered > 0)
    }

    /// Covered frames that may still arrive late, oldest first.
    pub(crate) fn covered(&self) -> impl ExactSizeIterator<Item = &Sent> {
        self.frames.range(..self.covered)
    }

    /// The frames in flight, oldest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Sent> {
        self.frames.range(self.covered..)
    }

    /// The oldest frame in flight.
    pub(crate) fn oldest(&self) -> Option<&Sent> {
        self.frames.get(self.covered)
    }

    /// Number of frames in flight.
    pub(crate) fn len(&self) -> usize {
        self.frames.len() - self.covered
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Sent>()
    }

    /// Source symbols in flight.
    pub(crate) fn sources(&self) -> usize {
        self.sources
    }

    /// Copies and coded symbols in flight that may repair what is missing.
    pub(crate) fn repairs(&self) -> usize {
        self.len() - self.sources - self.aheads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(counter: u32, at_ms: u64) -> Sent {
        let (number, at) = (FrameNumber::new(0, counter), Time::from_millis(at_ms));
        let what = What::Source(counter.into());
        Sent { number, at, what, held: false, after_gap: false, len: 100, beside: 0, parts: 1 }
    }

    #[test]
    fn a_covered_frame_settles_once_it_would_be_too_late() {
        let mut log = SentLog::new(10);
        for counter in 0..4 {
            log.push(sent(counter, 4 * u64::from(counter)));
        }
        let mut told = 0;
        log.tell(FrameNumber::new(0, 2), |_| told += 1);
        assert_eq!((told, log.len(), log.sources(), log.covered().len()), (3, 1, 1, 3));
        let mut settled = |now: u64| {
            let (now, age_max) = (Time::from_millis(now), Duration::from_millis(100));
            core::iter::from_fn(|| log.pop_settled(now, age_max, true)).count()
        };
        assert_eq!([99, 100, 107, 108, 1_000].map(&mut settled), [0, 1, 1, 1, 0]);
    }

    #[test]
    fn a_frame_that_is_not_awaited_goes_at_once() {
        let mut log = SentLog::new(10);
        log.push(sent(0, 0));
        log.tell(FrameNumber::new(0, 0), |_| {});
        let mut settles = |is_awaited| {
            log.pop_settled(Time::ZERO, Duration::from_millis(10), is_awaited).is_some()
        };
        assert_eq!([settles(true), settles(false)], [false, true]);
    }

    /// Whatever lateness the peer reports, all frames together are bounded, and those in flight are
    /// forgotten last.
    #[test]
    fn frames_in_flight_and_late_ones_share_a_bound() {
        let mut log = SentLog::new(4);
        for counter in 0..6 {
            let forgotten = log.push(sent(counter, 0));
            assert_eq!(forgotten.is_some(), counter >= 4);
            if counter % 2 == 1 {
                log.tell(FrameNumber::new(0, counter), |_| {});
            }
            assert!(log.len() + log.covered().len() <= 4);
        }
        for counter in 6..10 {
            log.push(sent(counter, 0));
        }
        assert_eq!((log.len(), log.sources(), log.covered().len()), (4, 4, 0));
    }
}
