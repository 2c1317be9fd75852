//! Frames in flight: sent, and not yet covered by feedback.

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
    /// Number of frames that have to arrive for its content: all parts, if it is the last one.
    pub(crate) parts: u8,
}

impl Sent {
    /// Probability that its content does not arrive, at a loss ratio of frames of `of_frames`.
    pub(crate) fn loss_ratio(&self, of_frames: f64) -> f64 {
        if self.parts <= 1 { of_frames } else { 1.0 - (1.0 - of_frames).powi(self.parts.into()) }
    }
}

/// A frame that feedback covers: received, lost, or only overtaken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overtaken {
    pub(crate) sent: Sent,
    /// Since when it is late, if it has not arrived.
    pub(crate) since: Time,
}

/// `span` before `at`.
pub(super) fn before(at: Time, span: Duration) -> Time {
    Time::from_nanos(at.as_nanos().saturating_sub(span.as_nanos() as u64))
}

/// The frames in flight, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct SentLog {
    frames: VecDeque<Sent>,
    /// Frames that feedback covers, as long as they may still arrive late.
    overtaken: VecDeque<Overtaken>,
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
        let overtaken = VecDeque::new();
        let lane_frames_max = frames_max;
        SentLog { frames, overtaken, sources: 0, frames_max, lane_frames_max, aheads: 0 }
    }

    /// Has room for the frames of this many lanes from now on. Any excess goes as feedback covers
    /// it.
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        self.frames_max = (lanes * self.lane_frames_max).min(WINDOW_SENT_LOG_MAX);
    }

    /// Records a frame. If there are too many, returns the oldest, as if it were lost: first those
    /// that may still arrive late.
    pub(crate) fn push(&mut self, sent: Sent) -> Option<Sent> {
        let oldest = if self.remembered() >= self.frames_max { self.pop_any() } else { None };
        self.sources += usize::from(matches!(sent.what, What::Source(_)));
        self.aheads += usize::from(sent.what == What::Ahead);
        self.frames.push_back(sent);
        oldest
    }

    /// Feedback covers frame `newest`, which arrived at `heard_at` as seen from here, and all
    /// before it. Calls `each` with every frame that it newly covers.
    pub(crate) fn tell(
        &mut self,
        newest: FrameNumber,
        heard_at: Time,
        mut each: impl FnMut(&Sent),
    ) {
        let told = self.frames.partition_point(|sent| sent.number <= newest);
        let Some(last) = told.checked_sub(1).map(|at| self.frames[at].at) else { return };
        for _ in 0..told {
            let Some(sent) = self.pop() else { return };
            each(&sent);
            // A frame is late by as much as it was sent earlier.
            let since = before(heard_at, last - sent.at);
            self.overtaken.push_back(Overtaken { sent, since });
        }
    }

    /// Removes the oldest covered frame once it is later than `lateness`, or if there are too many.
    pub(crate) fn pop_settled(&mut self, now: Time, lateness: Duration) -> Option<Sent> {
        let too_many = self.remembered() > self.frames_max;
        let is_late = |late: &&Overtaken| too_many || now >= late.since + lateness;
        self.overtaken.front().filter(is_late)?;
        Some(self.overtaken.pop_front()?.sent)
    }

    /// Covered frames that may still arrive late, oldest first.
    pub(crate) fn overtaken(&self) -> &VecDeque<Overtaken> {
        &self.overtaken
    }

    fn remembered(&self) -> usize {
        self.frames.len() + self.overtaken.len()
    }

    fn pop_any(&mut self) -> Option<Sent> {
        self.overtaken.pop_front().map(|late| late.sent).or_else(|| self.pop())
    }

    fn pop(&mut self) -> Option<Sent> {
        let sent = self.frames.pop_front()?;
        self.sources -= usize::from(matches!(sent.what, What::Source(_)));
        self.aheads -= usize::from(sent.what == What::Ahead);
        Some(sent)
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.overtaken.clear();
        (self.sources, self.aheads) = (0, 0);
    }

    /// The frames in flight, oldest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Sent> {
        self.frames.iter()
    }

    /// The oldest frame in flight.
    pub(crate) fn oldest(&self) -> Option<&Sent> {
        self.frames.front()
    }

    /// Number of frames in flight.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Sent>()
            + self.overtaken.capacity() * size_of::<Overtaken>()
    }

    /// Source symbols in flight.
    pub(crate) fn sources(&self) -> usize {
        self.sources
    }

    /// Copies and coded symbols in flight that may repair what is missing.
    pub(crate) fn repairs(&self) -> usize {
        self.frames.len() - self.sources - self.aheads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(counter: u32, at_ms: u64) -> Sent {
        let (number, at) = (FrameNumber::new(0, counter), Time::from_millis(at_ms));
        let what = What::Source(counter.into());
        Sent { number, at, what, held: false, after_gap: false, len: 100, parts: 1 }
    }

    /// Feedback about the newest of three frames, which were sent 4 ms apart, comes at 100 ms.
    #[test]
    fn what_is_told_of_is_settled_once_it_would_be_too_late() {
        let mut log = SentLog::new(10);
        for counter in 0..4 {
            log.push(sent(counter, 4 * u64::from(counter)));
        }
        let mut told = 0;
        log.tell(FrameNumber::new(0, 2), Time::from_millis(100), |_| told += 1);
        assert_eq!((told, log.len(), log.overtaken().len()), (3, 1, 3));
        let mut settled = |now: u64, lateness: u64| {
            let (now, lateness) = (Time::from_millis(now), Duration::from_millis(lateness));
            core::iter::from_fn(|| log.pop_settled(now, lateness)).count()
        };
        // The oldest is late since 92 ms, and the newest since 100.
        assert_eq!([settled(101, 10), settled(102, 10), settled(109, 10)], [0, 1, 1]);
        assert_eq!(settled(109, 0), 1, "where none is overtaken, none comes late");
    }

    /// Whatever lateness the peer reports, all frames together are bounded, and those on their way
    /// are forgotten last.
    #[test]
    fn frames_on_their_way_and_late_ones_share_a_bound() {
        let mut log = SentLog::new(4);
        for counter in 0..6 {
            let forgotten = log.push(sent(counter, 0));
            assert_eq!(forgotten.is_some(), counter >= 4);
            if counter % 2 == 1 {
                log.tell(FrameNumber::new(0, counter), Time::ZERO, |_| {});
            }
            assert!(log.len() + log.overtaken().len() <= 4);
        }
        for counter in 6..10 {
            log.push(sent(counter, 0));
        }
        assert_eq!((log.len(), log.overtaken().len()), (4, 0));
    }
}
