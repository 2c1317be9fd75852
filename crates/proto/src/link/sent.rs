//! Frames in flight: sent, and not yet covered by feedback.

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
    Copy,
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

/// The frames in flight, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct SentLog {
    frames: VecDeque<Sent>,
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
        SentLog { frames, sources: 0, frames_max, lane_frames_max: frames_max, aheads: 0 }
    }

    /// Has room for the frames of this many lanes from now on. Any excess goes as feedback covers
    /// it.
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        self.frames_max = (lanes * self.lane_frames_max).min(WINDOW_SENT_LOG_MAX);
    }

    /// Records a frame. If there are too many, returns the oldest, as if it were lost.
    pub(crate) fn push(&mut self, sent: Sent) -> Option<Sent> {
        let oldest = if self.frames.len() >= self.frames_max { self.pop() } else { None };
        self.sources += usize::from(matches!(sent.what, What::Source(_)));
        self.aheads += usize::from(sent.what == What::Ahead);
        self.frames.push_back(sent);
        oldest
    }

    /// Removes the oldest frame if feedback about frame `number` covers it too.
    pub(crate) fn pop_until(&mut self, number: FrameNumber) -> Option<Sent> {
        self.frames.front().filter(|sent| sent.number <= number)?;
        self.pop()
    }

    fn pop(&mut self) -> Option<Sent> {
        let sent = self.frames.pop_front()?;
        self.sources -= usize::from(matches!(sent.what, What::Source(_)));
        self.aheads -= usize::from(sent.what == What::Ahead);
        Some(sent)
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
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
