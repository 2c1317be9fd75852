//! A lane of the sender's window: symbols that are coded together, and what the receiver is
//! believed to lack of them.

use core::cell::Cell;

use corridor_base::Time;
use corridor_codec::{CodecError, Coefficients, Field, WindowEncoder};

use super::repair::belief::{Belief, Late};
use crate::bounds::sent_log_max;
use crate::link::sent::{FrameNumber, Sent, SentLog};
use crate::wire::Lanes;

/// What all lanes have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneShape {
    pub(super) field: Field,
    /// Symbols per lane, and bytes of the longest symbol.
    pub(super) lane_size: usize,
    pub(super) symbol_size_max: usize,
}

/// Which lane it is, and the first symbol dealt to that many lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deal {
    pub(super) lanes: Lanes,
    pub(super) lane: usize,
    /// The first symbol that was dealt so.
    pub(super) from: u64,
}

/// One lane. Places are numbered within the lane.
pub(super) struct SendLane {
    pub(super) deal: Deal,
    coder: WindowEncoder,
    /// The receiver has reported on all places before this one,
    pub(super) told_end: u64,
    /// and lacked this many of them.
    pub(super) told_deficit: usize,
    /// Symbols from `told_end` on that are taken for lost; `None`: to be counted again.
    pub(super) lost_beyond: Cell<Option<usize>>,
    /// What is known has changed since the belief was last restarted.
    pub(super) has_news: bool,
    belief: Belief,
    /// Frames in flight that carry symbols of this lane, if there are other lanes.
    pub(super) log: SentLog,
    /// Feedback about this lane has reported on all frames before this one.
    pub(super) told_before: FrameNumber,
    /// No frame before this one is awaited any more.
    pub(super) settled_before: FrameNumber,
}

impl SendLane {
    pub(super) fn new(shape: LaneShape, deal: Deal, now: Time) -> Result<Self, CodecError> {
        let LaneShape { field, lane_size, symbol_size_max } = shape;
        let mut coder = WindowEncoder::new(field, lane_size, symbol_size_max)?;
        coder.reset(deal.lanes.first_place(deal.lane, deal.from));
        Ok(SendLane {
            deal,
            told_end: coder.base(),
            coder,
            told_deficit: 0,
            lost_beyond: Cell::new(None),
            has_news: false,
            belief: Belief::new(now),
            log: SentLog::new(sent_log_max(lane_size)),
            told_before: FrameNumber::default(),
            settled_before: FrameNumber::default(),
        })
    }

    // ---- symbols ------------------------------------------------------------------------------

    /// The place of the oldest symbol held, and the one after the newest.
    pub(super) fn base(&self) -> u64 {
        self.coder.base()
    }

    pub(super) fn end(&self) -> u64 {
        self.coder.end()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.coder.count() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.coder.is_full()
    }

    pub(super) fn symbol(&self, place: u64) -> Option<&[u8]> {
        self.coder.symbol(place)
    }

    /// The number of the symbol at a place.
    pub(super) fn id(&self, place: u64) -> u64 {
        self.deal.lanes.id(self.deal.lane, place)
    }

    /// The first place whose symbol is not before this one.
    pub(super) fn first_place(&self, id: u64) -> u64 {
        self.deal.lanes.first_place(self.deal.lane, id)
    }

    /// Appends a symbol.
    pub(super) fn push(&mut self, symbol: &[u8]) -> Result<u64, CodecError> {
        self.coder.push(symbol)
    }

    /// Appends a coded symbol over everything held to `body`.
    pub(super) fn encode(&self, seed: u32, body: &mut Vec<u8>) {
        let (first, count) = (self.coder.base(), self.coder.count());
        let start = body.len();
        body.resize(start + self.coder.symbol_size_max(), 0);
        let len = self.coder.encode(first, count, Coefficients::Seed(seed), &mut body[start..]);
        debug_assert!(len.is_ok(), "run and buffer were made to fit: {len:?}");
        // An all-zero symbol still needs one byte.
        body.truncate(start + len.unwrap_or(0).max(1));
    }

    /// All symbols before this one are done.
    pub(super) fn advance(&mut self, id: u64) {
        self.coder.advance_to(self.first_place(id));
        self.lost_beyond.set(None);
    }

    // ---- what is known ------------------------------------------------------------------------

    pub(super) fn note_change(&mut self) {
        self.lost_beyond.set(None);
        self.has_news = true;
    }

    /// With several lanes, reported on in turn, a lane's last reported deficit ends once all
    /// symbols reported on are done.
    pub(super) fn forget_done(&mut self) {
        if self.told_end <= self.coder.base() && self.told_deficit > 0 {
            self.told_deficit = 0;
            self.has_news = true;
        }
    }

    /// The receiver knew of all places before `end`, and lacked `deficit` of them.
    pub(super) fn note_told(&mut self, end: u64, deficit: usize) {
        self.told_end = end.min(self.coder.end()).max(self.told_end);
        self.told_deficit = deficit;
        self.note_change();
    }

    pub(super) fn belief(&self) -> &Belief {
        &self.belief
    }

    /// Records a frame sent for this lane.
    pub(super) fn note_sent(&mut self, sent: &Sent, loss_ratio: f64) {
        self.belief.add(sent, loss_ratio);
    }

    /// Restarts the belief from the latest news: what the receiver lacked and since when, and the
    /// frames in flight. These are the link's if this is the only lane.
    pub(super) fn take_news(
        &mut self,
        (late, link): (&[Late], Option<&SentLog>),
        known: (usize, Time),
        loss_ratio: f64,
        now: Time,
    ) {
        self.has_news = false;
        let log = link.unwrap_or(&self.log);
        self.belief.restart(known, (late, log.frames()), loss_ratio, now);
    }

    /// Whether the cost of replaying `frames` frames in flight is affordable now.
    pub(super) fn affords(&mut self, frames: usize) -> bool {
        self.belief.affords(frames)
    }
}
