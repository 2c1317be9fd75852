//! Source symbols that are not acknowledged, and what is known of each.
//!
//! What feedback and silence tell changes their fates, and with them what the receiver is believed
//! to lack: both change here only, so that nothing that was derived from fates outlives them.
//!
//! The symbols are those of one lane as long as that is long enough. When it is full, and more
//! wait, those to come are dealt to several lanes, as many as the path needs, and those before
//! drain; and to fewer, when the window has been longer than needed for long.

use std::collections::VecDeque;

use core::num::NonZeroU16;
use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_codec::CodecError;

use super::FLOW;
use super::repair::belief::{Stakes, Weigh};
use super::send_lane::{Deal, LaneShape, SendLane};
use crate::bounds::WINDOW_NARROW_AFTER;
use crate::config::{CodingParams, Delivery};
use crate::flow::symbol;
use crate::host::compression::Contexts;
use crate::host::queue::IngressQueue;
use crate::link::sent::{FrameNumber, Sent, SentLog, What};
use crate::link::usage::LinkUsage;
use crate::memory::WindowShape;
use crate::stats::Stats;
use crate::wire::{CodedSeed, Lanes, WindowFeedback, WindowForm, WindowSymbol};

/// How many times what was held at most a window has room for where it gets fewer lanes.
const ROOM_NARROWED: usize = 2;

/// A window that was full is not so any more when less than this part of it is taken.
const ROOM_AFTER_FULL: usize = 2;

/// A source symbol that is not acknowledged.
struct Source {
    added_at: Time,
    /// Frame that carried it last.
    carried: FrameNumber,
    packets: u16,
    fate: Fate,
}

/// What is known of a source symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// On its way, or reported too vaguely.
    Unknown,
    /// The receiver said that it needs it, or silence does.
    Needed,
    /// The receiver said that it does not need it: it has it, or a coded symbol that stands for it.
    Received,
    /// It said so, but what stands for it may be about a symbol that was given up since.
    Doubtful,
}

/// The symbols from `base` on.
pub(super) struct SendWindow {
    /// Longest symbol that the path carries at present.
    symbol_len_max: usize,
    sources: VecDeque<Source>,
    base: u64,
    /// First those that only drain, as symbols have been dealt to others since.
    lanes: Vec<SendLane>,
    draining: usize,
    shape: LaneShape,
    /// Coded symbols so far, modulo 2^16: of what is coded the number.
    coded: u16,
    /// Symbols that may be held, and lanes that the receiver takes of as many.
    size_max: usize,
    lanes_max: Lanes,
    /// Most symbols held since then.
    most: usize,
    most_since: Time,
    /// Since when there was no room, and not much after that.
    full_since: Option<Time>,
    /// Headers of TCP as the receiver knows them.
    contexts: Contexts,
}

impl SendWindow {
    pub(super) fn new(
        params: &CodingParams,
        symbol_size_max: usize,
        mut rng: Stream,
        now: Time,
    ) -> Result<Self, CodecError> {
        let (field, lane_size) = (params.field, usize::from(params.lane_size()));
        let shape = LaneShape { field, lane_size, symbol_size_max };
        // Numbers of a run before this one mean nothing now.
        let base = u64::from(rng.next_u32());
        let deal = Deal { lanes: Lanes::ONE, lane: 0, from: base };
        Ok(SendWindow {
            symbol_len_max: symbol_size_max,
            sources: VecDeque::new(),
            base,
            lanes: vec![SendLane::new(shape, deal, now)?],
            draining: 0,
            shape,
            coded: 0,
            size_max: params.window_size.into(),
            lanes_max: Lanes::ONE,
            most: 0,
            most_since: now,
            full_since: None,
            contexts: Contexts::new(),
        })
    }

    /// Oldest symbol held, and the one after the newest.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn end(&self) -> u64 {
        self.base + self.sources.len() as u64
    }

    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether there is no room for another symbol.
    pub(super) fn is_full(&self) -> bool {
        self.sources.len() >= self.size_max || self.lanes[self.next_lane()].is_full()
    }

    /// When the oldest symbol was added.
    pub(super) fn oldest_added_at(&self) -> Option<Time> {
        self.sources.front().map(|oldest| oldest.added_at)
    }

    /// Longest symbol that there can be, bytes.
    pub(super) fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let LaneShape { field, lane_size, symbol_size_max } = self.shape;
        let of_symbols = WindowShape::payload_bytes(field, lane_size, symbol_size_max);
        let lanes: usize = self.lanes.iter().map(|lane| of_symbols + lane.log.bytes()).sum();
        lanes + self.sources.capacity() * size_of::<Source>()
    }

    /// Frames that the lane keeps in mind which has most.
    pub(super) fn longest_log(&self) -> usize {
        self.lanes.iter().map(|lane| lane.log.len()).max().unwrap_or_default()
    }

    // ---- lanes --------------------------------------------------------------------------------

    /// Lanes held, of which there is one where paths are short.
    pub(super) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// Lanes that new symbols are dealt to.
    pub(super) fn dealt_to(&self) -> Lanes {
        self.lanes[self.draining].deal.lanes
    }

    /// The lane of the next new symbol.
    pub(super) fn next_lane(&self) -> usize {
        self.lane_of(self.end())
    }

    /// Whether a lane holds nothing.
    pub(super) fn is_lane_empty(&self, lane: usize) -> bool {
        self.lanes[lane].is_empty()
    }

    fn is_single(&self) -> bool {
        self.lanes.len() == 1
    }

    /// The lane of a symbol.
    pub(super) fn lane_of(&self, id: u64) -> usize {
        let newest = self.lanes[self.draining].deal;
        if self.draining == 0 || id >= newest.from {
            return self.draining + newest.lanes.lane(id);
        }
        self.lanes[0].deal.lanes.lane(id)
    }

    /// The lane that feedback is about, if there is such a one still.
    pub(super) fn lane_told(&self, feedback: &WindowFeedback) -> Option<usize> {
        let is_it = |lane: &SendLane| {
            (lane.deal.lanes, lane.deal.lane) == (feedback.lanes, usize::from(feedback.lane))
        };
        self.lanes.iter().position(is_it)
    }

    /// The longest window that the receiver takes, if it is a new one. Where it takes fewer lanes
    /// than there are, or lanes of another size, all is given up, for want of a way to tell it.
    fn limit_shape(&mut self, now: Time, takes: WindowShape, stats: &mut Stats) {
        self.lanes_max = takes.lanes;
        let lane_size = usize::from(takes.lane_size);
        let has_more = self.lanes.iter().any(|lane| lane.deal.lanes > takes.lanes);
        if has_more || self.shape.lane_size != lane_size {
            (0..self.sources.len()).for_each(|_| self.give_up_oldest(stats));
            self.shape.lane_size = lane_size;
            self.deal(now, Lanes::ONE, None);
            self.lanes.drain(..self.draining);
            self.draining = 0;
        }
    }

    /// Gives the window as many lanes as it needs, on a path that holds so many symbols, before
    /// another symbol is added: more where there is no room and the path holds more, fewer after it
    /// has had too much for long. `log` has the frames on their way. Those that drain have to be
    /// done before.
    pub(super) fn fit(
        &mut self,
        (now, round_trip): (Time, Duration),
        needed: impl FnOnce() -> usize,
        log: &SentLog,
        stats: &mut Stats,
    ) {
        let newest = self.lanes[self.draining].deal;
        let (count, lane_size) = (newest.lanes.count(), self.shape.lane_size);
        let is_settled = self.draining == 0 && self.base > newest.from;
        let is_full_for_long = self.is_full_for(now, round_trip);
        if newest.lanes < self.lanes_max && is_settled && is_full_for_long {
            let needed = needed();
            // A window that is full for other reasons than its length gains nothing by more lanes.
            if needed > count * lane_size {
                let lanes = Lanes::holding(needed.max(2 * count * lane_size), lane_size);
                self.deal(now, lanes.min(self.lanes_max), Some(log));
                stats.windows_dealt += 1;
            }
        }
        if newest.lanes == Lanes::ONE || now - self.most_since < WINDOW_NARROW_AFTER {
            return;
        }
        let lanes = Lanes::holding(ROOM_NARROWED * self.most, lane_size);
        if is_settled && lanes < newest.lanes {
            self.deal(now, lanes, Some(log));
            stats.windows_dealt += 1;
        }
        (self.most, self.most_since) = (self.sources.len(), now);
    }

    /// Whether the window has no room, and for so long has not had much: one that a burst of losses
    /// fills has some again once that is repaired.
    fn is_full_for(&mut self, now: Time, span: Duration) -> bool {
        let room = self.lanes[self.draining].deal.lanes.count() * self.shape.lane_size;
        if ROOM_AFTER_FULL * self.sources.len() < room.min(self.size_max) {
            self.full_since = None;
        }
        self.is_full() && now - *self.full_since.get_or_insert(now) >= span
    }

    /// Symbols are dealt to so many lanes from the next one on.
    fn deal(&mut self, now: Time, lanes: Lanes, log: Option<&SentLog>) {
        debug_assert!(self.draining == 0 || log.is_none());
        let from = self.end();
        let make = |lane| SendLane::new(self.shape, Deal { lanes, lane, from }, now);
        let Ok(new) = (0..lanes.count()).map(make).collect::<Result<Vec<_>, _>>() else {
            debug_assert!(false, "the shape has made lanes before");
            return;
        };
        if let (true, Some(log)) = (self.is_single(), log) {
            self.lanes[0].log = log.clone();
        }
        self.draining = self.lanes.len();
        self.lanes.extend(new);
        if self.is_empty() {
            self.lanes.drain(..self.draining);
            self.draining = 0;
        }
        (self.most, self.most_since) = (self.sources.len(), now);
    }

    // ---- symbols ------------------------------------------------------------------------------

    /// Makes a source symbol of packets that wait, for this frame. `buffer` is made
    /// use of. Its number, and whether it is to come soon; unless all that waited was dropped
    /// to tell of congestion.
    pub(super) fn add(
        &mut self,
        (now, carried): (Time, FrameNumber),
        ingress: &mut IngressQueue,
        delivery: Delivery,
        buffer: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> Option<(u64, bool)> {
        buffer.clear();
        let (len_max, alone_max) = (self.symbol_len_max, self.symbol_size_max());
        let room = symbol::Room { len_max, alone_max, packets_max: u16::MAX };
        let contexts = Some(&mut self.contexts);
        let (packets, soon) = symbol::fill(now, ingress, room, delivery, contexts, buffer, stats);
        if packets == 0 {
            return None;
        }
        let (id, lane) = (self.end(), self.next_lane());
        if self.lanes[lane].push(buffer).is_err() {
            debug_assert!(false, "the window has room and the symbol was made to fit");
            return None;
        }
        let fate = Fate::Unknown;
        self.sources.push_back(Source { added_at: now, carried, packets, fate });
        self.most = self.most.max(self.sources.len());
        stats.symbols_added += 1;
        Some((id, soon))
    }

    /// The sources of a lane from a place on that it has, or is about to have.
    fn sources_of(&self, lane: &SendLane, place: u64) -> impl Iterator<Item = &Source> {
        let (skipped, count) = self.places_of(lane, place);
        self.sources.iter().skip(skipped).step_by(lane.deal.lanes.count()).take(count)
    }

    /// How many symbols are before the one at a place of a lane, and how many of the lane are
    /// there from it on.
    fn places_of(&self, lane: &SendLane, place: u64) -> (usize, usize) {
        let skipped = lane.id(place).saturating_sub(self.base) as usize;
        (skipped, lane.end().saturating_sub(place) as usize)
    }

    /// The oldest symbol of a lane that is known to be needed and has no copy on its way.
    pub(super) fn lying_still(&self, lane: usize) -> Option<u64> {
        let lane = &self.lanes[lane];
        let lies_still =
            |source: &Source| source.fate == Fate::Needed && source.carried < lane.told_before;
        let at = self.sources_of(lane, lane.base()).position(lies_still)?;
        Some(lane.id(lane.base() + at as u64))
    }

    /// Writes a symbol once more, for this frame.
    pub(super) fn write_copy(&mut self, id: u64, frame: FrameNumber, body: &mut Vec<u8>) {
        self.sources[(id - self.base) as usize].carried = frame;
        self.write_source(id, body);
    }

    /// The last part of a symbol goes in this frame.
    pub(super) fn note_carried(&mut self, id: u64, frame: FrameNumber) {
        let at = id.checked_sub(self.base).map(|at| at as usize);
        if let Some(source) = at.and_then(|at| self.sources.get_mut(at)) {
            source.carried = frame;
        }
    }

    /// Whether nothing is known yet of a symbol that is held.
    pub(super) fn is_untold(&self, id: u64) -> bool {
        let at = id.checked_sub(self.base).map(|at| at as usize);
        let source = at.and_then(|at| self.sources.get(at));
        source.is_some_and(|source| source.fate == Fate::Unknown)
    }

    pub(super) fn write_source(&self, id: u64, body: &mut Vec<u8>) {
        let lane = &self.lanes[self.lane_of(id)];
        let lanes = lane.deal.lanes;
        let distance = (lanes.place(id) - lane.base()) as u16;
        let form = WindowForm::Source { id: id as u32, distance, lanes };
        WindowSymbol::write_head(FLOW, form, body);
        body.extend_from_slice(lane.symbol(lanes.place(id)).unwrap_or_default());
    }

    /// Writes a coded symbol over all that a lane holds.
    pub(super) fn write_coded(&mut self, lane: usize, body: &mut Vec<u8>) {
        let lane = &self.lanes[lane];
        let (seed, lanes) = (CodedSeed::new(lane.id(lane.base()), self.coded), lane.deal.lanes);
        let count = (lane.end() - lane.base()) as u16;
        let Some(count) = NonZeroU16::new(count) else { return };
        WindowSymbol::write_head(FLOW, WindowForm::Coded { seed, count, lanes }, body);
        lane.encode(seed.value(), body);
        self.coded = self.coded.wrapping_add(1);
    }

    // ---- frames -------------------------------------------------------------------------------

    /// The frames on their way with what is of a lane: all those of the link, where there is one.
    pub(super) fn log<'a>(&'a self, lane: usize, link: &'a LinkUsage) -> &'a SentLog {
        if self.is_single() { link.log() } else { &self.lanes[lane].log }
    }

    /// A frame goes with what is of this lane; the link has no room for `forgotten` any more.
    pub(super) fn note_sent(
        &mut self,
        lane: usize,
        sent: Sent,
        forgotten: Option<Sent>,
        loss_ratio: f64,
    ) {
        let is_single = self.is_single();
        let lane = &mut self.lanes[lane];
        lane.note_sent(&sent, loss_ratio);
        let forgotten = if is_single { forgotten } else { lane.log.push(sent) };
        if let Some(What::Source(id)) = forgotten.map(|sent| sent.what) {
            self.take_for_lost(id);
        }
    }

    /// What is at stake with repair for a lane that is sent now. News are taken into account.
    pub(super) fn stakes(
        &mut self,
        now: Time,
        lane: usize,
        link: &LinkUsage,
        (round_trip, weigh): (core::time::Duration, Weigh),
    ) -> Stakes {
        let log = self.log(lane, link);
        let frames = log.sources() + log.repairs();
        if self.lanes[lane].has_news && self.lanes[lane].affords(frames) {
            let held = &self.lanes[lane];
            let oldest = self.sources_of(held, held.base()).next();
            let known = (self.deficit(lane), oldest.map_or(now, |oldest| oldest.added_at));
            let log = self.is_single().then(|| link.log());
            self.lanes[lane].take_news(log, known, link.loss_ratio(), now);
        }
        self.lanes[lane].belief().stakes(now, round_trip, weigh)
    }

    // ---- fates --------------------------------------------------------------------------------

    /// What the receiver lacks of a lane as far as is known, of what it knows of and of what it
    /// does not.
    pub(super) fn deficit(&self, lane: usize) -> usize {
        let lane = &self.lanes[lane];
        let count = || {
            let needed = |source: &&Source| source.fate == Fate::Needed;
            self.sources_of(lane, lane.told_end.max(lane.base())).filter(needed).count()
        };
        let lost_beyond = lane.lost_beyond.get().unwrap_or_else(count);
        debug_assert_eq!(lost_beyond, count(), "it is forgotten with every change");
        lane.lost_beyond.set(Some(lost_beyond));
        lane.told_deficit + lost_beyond
    }

    /// Everything before `next` is done.
    pub(super) fn advance(&mut self, next: u64) {
        let done = (next.saturating_sub(self.base) as usize).min(self.sources.len());
        self.sources.drain(..done);
        self.base += done as u64;
        // The receiver has something that was dealt anew, and asks for nothing of before.
        if self.draining > 0 && self.base > self.lanes[self.draining].deal.from {
            self.lanes.drain(..self.draining);
            self.draining = 0;
        }
        let (base, is_single) = (self.base, self.is_single());
        for lane in &mut self.lanes {
            lane.advance(base);
            if is_single {
                lane.note_change();
            } else {
                lane.forget_done();
            }
        }
    }

    /// Feedback tells of a lane: what the receiver knew of it, and what became of the frames up to
    /// the newest that it tells of. Those of the link were `settled`, where this is the only lane.
    pub(super) fn note_told(
        &mut self,
        lane: usize,
        next: u64,
        feedback: &WindowFeedback,
        newest: FrameNumber,
    ) {
        let held = &mut self.lanes[lane];
        held.told_before = newest.following();
        let told_end = held.first_place(next) + u64::from(feedback.span);
        held.note_told(told_end, usize::from(feedback.deficit));
        while let Some(sent) = self.lanes[lane].log.pop_until(newest) {
            self.note_settled(lane, next, feedback, &sent);
        }
    }

    /// Feedback tells of a frame with what is of this lane.
    pub(super) fn note_settled(
        &mut self,
        lane: usize,
        next: u64,
        feedback: &WindowFeedback,
        sent: &Sent,
    ) {
        let held = &self.lanes[lane];
        let told_end = held.first_place(next) + u64::from(feedback.span);
        match sent.what {
            // Feedback should know of it, and does not.
            What::Source(id) if held.deal.lanes.place(id) >= told_end => self.take_for_lost(id),
            _ => {}
        }
    }

    /// Takes what feedback says of each symbol of a lane from `next` on.
    pub(super) fn read_bitmap(&mut self, lane: usize, next: u64, feedback: &WindowFeedback) {
        let held = &self.lanes[lane];
        // Feedback that was overtaken may speak of symbols that are gone.
        let skip = held.base().saturating_sub(held.first_place(next)) as usize;
        let (skipped, count) = self.places_of(held, held.base());
        let step = held.deal.lanes.count();
        let sources = self.sources.iter_mut().skip(skipped).step_by(step).take(count);
        let was_overtaken = next < self.base;
        for (at, source) in sources.enumerate() {
            match feedback.is_needed(at + skip) {
                Some(true) => source.fate = Fate::Needed,
                // What stands for it may be about symbols that were given up here.
                Some(false) if was_overtaken => source.fate = Fate::Doubtful,
                Some(false) => source.fate = Fate::Received,
                None => break,
            }
        }
        self.lanes[lane].note_change();
    }

    /// A symbol that feedback should know of, and does not, is taken for lost.
    fn take_for_lost(&mut self, id: u64) {
        let at = id.checked_sub(self.base);
        if let Some(source) = at.and_then(|at| self.sources.get_mut(at as usize))
            && source.fate == Fate::Unknown
        {
            source.fate = Fate::Needed;
            let lane = self.lane_of(id);
            self.lanes[lane].note_change();
        }
    }

    /// Gives the oldest symbol up. The receiver passes over it, if it has not, and forgets all
    /// headers. Coded symbols that it holds may be about it, and stand for nothing any more.
    pub(super) fn give_up_oldest(&mut self, stats: &mut Stats) {
        let Some(source) = self.sources.front() else { return };
        let next = self.base + 1;
        if source.fate != Fate::Received {
            stats.packets_given_up += u64::from(source.packets);
            let at = self.lane_of(self.base);
            let lane = &mut self.lanes[at];
            let told = lane.base() < lane.told_end && source.fate != Fate::Doubtful;
            lane.told_deficit = lane.told_deficit.saturating_sub(usize::from(told));
            lane.note_change();
            self.contexts.clear();
            let (step, lane) = (self.lanes[at].deal.lanes.count(), &self.lanes[at]);
            let (skipped, count) = self.places_of(lane, lane.base());
            let sources = self.sources.iter_mut().skip(skipped).step_by(step).take(count);
            let received = sources.filter(|source| source.fate == Fate::Received);
            received.for_each(|source| source.fate = Fate::Doubtful);
        }
        self.advance(next);
    }

    /// Symbols are no longer than this from here on, bytes. Longer ones that are held go in parts.
    /// Whether there may be any.
    pub(super) fn limit(&mut self, len: usize) -> bool {
        let before = self.symbol_len_max;
        self.symbol_len_max = len.min(self.shape.symbol_size_max);
        self.symbol_len_max < before && !self.is_empty()
    }

    /// The receiver restarted: it has nothing, and takes so many lanes.
    pub(super) fn restart_peer(&mut self, now: Time, takes: WindowShape, stats: &mut Stats) {
        self.contexts.clear();
        for source in &mut self.sources {
            source.fate = Fate::Needed;
            source.added_at = now;
        }
        for lane in &mut self.lanes {
            (lane.told_end, lane.told_deficit) = (lane.base(), 0);
            lane.note_change();
        }
        self.limit_shape(now, takes, stats);
    }

    /// Of the frames before this one, which are on their way, nothing will be told any more.
    pub(super) fn forget_frames(&mut self, before: FrameNumber) {
        for source in &mut self.sources {
            if source.fate == Fate::Unknown {
                source.fate = Fate::Needed;
            }
        }
        for lane in &mut self.lanes {
            lane.told_before = before;
            lane.log.clear();
            lane.note_change();
        }
    }
}
