//! Frames on their way: sent, and not yet spoken of by any feedback.

use std::collections::VecDeque;

use corridor_base::Time;

use crate::bounds::WINDOW_SENT_LOG_MAX;

/// A frame among all with symbols that this station has sent over a link, whatever sessions they
/// were of: later ones have greater numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameNumber(u64);

impl FrameNumber {
    /// The frame of this counter in a session, so many sessions after the first one.
    pub(crate) fn new(session: u32, counter: u32) -> Self {
        FrameNumber(u64::from(session) << 32 | u64::from(counter))
    }

    /// The frame of this counter in the same session.
    pub(super) fn of_counter(self, counter: u32) -> Self {
        FrameNumber::new((self.0 >> 32) as u32, counter)
    }

    /// The first one of the next session.
    pub(super) fn of_next_session(self) -> Self {
        FrameNumber::new((self.0 >> 32) as u32 + 1, 0)
    }

    /// The one behind it.
    pub(crate) fn following(self) -> Self {
        FrameNumber(self.0 + 1)
    }
}

/// What a frame carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A source symbol, for the first time.
    Source(u64),
    /// The same again.
    Copy,
    /// The same again ahead of need: it is about nothing else that may be lacking.
    Ahead,
    /// A coded symbol.
    Coded,
    /// A part of one of these, and not the last: nothing comes of it by itself.
    Part,
}

/// A frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) number: FrameNumber,
    pub(crate) at: Time,
    pub(crate) what: What,
    /// It had to wait for the rate: the time before it was not idle.
    pub(crate) held: bool,
    /// Before it there was nothing to send for a while, or nothing was sent on purpose.
    pub(crate) after_gap: bool,
    /// Bytes of its body.
    pub(crate) len: u16,
    /// The frames that have to come for what it carries: those of all parts, if it is the last.
    pub(crate) parts: u8,
}

impl Sent {
    /// The share of such that do not come, where so many frames get lost.
    pub(crate) fn loss_ratio(&self, of_frames: f64) -> f64 {
        if self.parts <= 1 { of_frames } else { 1.0 - (1.0 - of_frames).powi(self.parts.into()) }
    }
}

/// The frames on their way, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct SentLog {
    frames: VecDeque<Sent>,
    sources: usize,
    frames_max: usize,
    lane_frames_max: usize,
    /// Copies ahead of need.
    aheads: usize,
}

impl SentLog {
    /// Has room for so many, of one lane.
    pub(crate) fn new(frames_max: usize) -> Self {
        let frames = VecDeque::new();
        SentLog { frames, sources: 0, frames_max, lane_frames_max: frames_max, aheads: 0 }
    }

    /// Has room for those of so many lanes from now on. What is too many goes as feedback tells of
    /// it.
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        self.frames_max = (lanes * self.lane_frames_max).min(WINDOW_SENT_LOG_MAX);
    }

    /// Takes note of a frame. When there are too many, the oldest is returned, as if lost.
    pub(crate) fn push(&mut self, sent: Sent) -> Option<Sent> {
        let oldest = if self.frames.len() >= self.frames_max { self.pop() } else { None };
        self.sources += usize::from(matches!(sent.what, What::Source(_)));
        self.aheads += usize::from(sent.what == What::Ahead);
        self.frames.push_back(sent);
        oldest
    }

    /// Takes out the oldest frame if feedback about this one tells of it too.
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

    /// The frames on their way, oldest first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Sent> {
        self.frames.iter()
    }

    /// The oldest frame on its way.
    pub(crate) fn oldest(&self) -> Option<&Sent> {
        self.frames.front()
    }

    /// How many those are.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Sent>()
    }

    /// Source symbols on their way.
    pub(crate) fn sources(&self) -> usize {
        self.sources
    }

    /// Copies and coded symbols on their way that may be about what is lacking.
    pub(crate) fn repairs(&self) -> usize {
        self.frames.len() - self.sources - self.aheads
    }
}
