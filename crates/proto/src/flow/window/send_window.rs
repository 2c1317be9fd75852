//! Source symbols that are not acknowledged, and what is known about each.
//!
//! Feedback and silence change the fates of symbols, and with them what the receiver is believed to
//! lack. Both change in this module only, so that nothing derived from fates can become stale.
//!
//! As long as one lane is long enough, it holds all symbols. When it is full and more packets wait,
//! new symbols are dealt to as many lanes as the path needs, and the old lane drains. They are also
//! dealt to more lanes where coding over all that is held would take too much of a processor. When
//! the window has been longer than needed for a while, symbols are dealt to fewer lanes.

use std::collections::VecDeque;

use core::num::NonZeroU16;
use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_codec::CodecError;

use super::FLOW;
use super::repair::ExpectedLate;
use super::repair::belief::{Late, Stakes, Weigh};
use super::send_lane::{Deal, LaneShape, SendLane};
use crate::bounds::WINDOW_NARROW_AFTER;
use crate::config::{CodingParams, Delivery};
use crate::flow::symbol;
use crate::host::compression::Contexts;
use crate::host::queue::IngressQueue;
use crate::link::arrivals::LATE_FRAMES;
use crate::link::sent::{FrameNumber, Sent, SentLog, What};
use crate::link::usage::LinkUsage;
use crate::memory::WindowShape;
use crate::stats::Stats;
use crate::wire::{CodedSeed, Lanes, WindowFeedback, WindowForm, WindowSymbol};

/// When a window gets fewer lanes, it keeps room for this many times what it held at most.
const ROOM_NARROWED: usize = 2;

/// A full window stops counting as full when less than this fraction of it is used, and a long run
/// as long.
const ROOM_AFTER_FULL: usize = 2;

/// Bytes/s that the encoder may read to make coded symbols, before these cover fewer symbols: a
/// tenth of what a processor with GFNI combines. Decoding reads as many.
const READ_BYTES_PER_S: f64 = 1e10;

/// Lanes may hold this many for certain: over few symbols, losses vary by more, and more repair is
/// spurious. Twice as many lanes then hold half of it each.
const RUN_MIN: usize = 256;

/// A source symbol that is not acknowledged.
struct Source {
    added_at: Time,
    /// The frame that last carried it.
    carried: FrameNumber,
    packets: u16,
    fate: Fate,
}

/// Share of the frames that arrive later than `late`, where at most one in `LATE_FRAMES` arrives
/// later than `lateness`; the lateness is taken as exponentially distributed.
fn comes_later_than(late: Duration, lateness: Duration) -> f64 {
    if late >= lateness {
        return 0.0;
    }
    f64::from(LATE_FRAMES).powf(-late.div_duration_f64(lateness))
}

/// What is known about a source symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// In flight, or not clearly reported.
    Unknown,
    /// The receiver reported that it needs it, or its silence indicates so.
    Needed,
    /// The receiver does not need it: it has the symbol, or a coded symbol that stands for it.
    Received,
    /// It was reported as received, but the coded symbol that stands for it may combine a symbol
    /// that was given up since.
    Doubtful,
}

/// How much of the window was used.
struct Used {
    /// Most symbols held since `most_since`.
    most: usize,
    most_since: Time,
    /// Since when the window has been full, or nearly so.
    full_since: Option<Time>,
    /// Since when lanes have held more than coding may cover, or nearly so.
    long_since: Option<Time>,
}

/// What the number of lanes depends on.
pub(super) struct Path<F> {
    pub(super) now: Time,
    pub(super) round_trip: Duration,
    /// Symbols that the path holds.
    pub(super) needed: F,
    /// Coded symbols that the losses take, per second.
    pub(super) coded_per_s: f64,
}

/// The symbols from `base` on.
pub(super) struct SendWindow {
    /// Longest symbol that the path carries now.
    symbol_len_max: usize,
    sources: VecDeque<Source>,
    base: u64,
    /// The lanes; the first `draining` of them only drain, because new symbols are dealt to the
    /// others.
    lanes: Vec<SendLane>,
    draining: usize,
    /// Lanes for as many symbols as may be held; there may be more, with fewer symbols in each.
    length: Lanes,
    shape: LaneShape,
    /// Number of coded symbols so far, modulo 2^16; identifies a coded symbol.
    coded: u16,
    /// Symbols that may be held, and lanes of that size that the receiver accepts.
    size_max: usize,
    lanes_max: Lanes,
    used: Used,
    /// What the receiver said it had delivered or skipped: everything before this symbol.
    told_next: u64,
    /// TCP headers as the receiver knows them.
    contexts: Contexts,
    /// When the next overtaken frame can no longer arrive late.
    settles_at: Option<Time>,
    /// A buffer for the overtaken frames that may still arrive, reused.
    late: Vec<Late>,
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
        // Numbers from an earlier run of this station mean nothing now.
        let base = u64::from(rng.next_u32());
        let deal = Deal { lanes: Lanes::ONE, lane: 0, from: base };
        Ok(SendWindow {
            symbol_len_max: symbol_size_max,
            sources: VecDeque::new(),
            base,
            lanes: vec![SendLane::new(shape, deal, now)?],
            draining: 0,
            length: Lanes::ONE,
            shape,
            coded: 0,
            size_max: params.window_size.into(),
            lanes_max: Lanes::ONE,
            used: Used { most: 0, most_since: now, full_since: None, long_since: None },
            told_next: base,
            contexts: Contexts::new(),
            settles_at: None,
            late: Vec::new(),
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
        let dealt = self.end() - self.lanes[self.draining].deal.from.max(self.base);
        self.sources.len() >= self.size_max
            || dealt >= self.room() as u64
            || self.lanes[self.next_lane()].is_full()
    }

    /// Most symbols that may be held, besides those of lanes that drain.
    fn room(&self) -> usize {
        self.length.count() * self.shape.lane_size
    }

    /// When the oldest symbol was added.
    pub(super) fn oldest_added_at(&self) -> Option<Time> {
        self.sources.front().map(|oldest| oldest.added_at)
    }

    /// Longest possible symbol in bytes.
    pub(super) fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let LaneShape { field, lane_size, symbol_size_max } = self.shape;
        let of_symbols = WindowShape::payload_bytes(field, lane_size, symbol_size_max);
        let lanes: usize = self.lanes.iter().map(|lane| of_symbols + lane.log.bytes()).sum();
        lanes + self.sources.capacity() * size_of::<Source>()
    }

    /// Frames in the longest log of any lane.
    pub(super) fn longest_log(&self) -> usize {
        self.lanes.iter().map(|lane| lane.log.len()).max().unwrap_or_default()
    }

    // ---- lanes --------------------------------------------------------------------------------

    /// Number of lanes; one on short paths.
    pub(super) fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    /// Lanes for as many symbols as may be held.
    pub(super) fn length(&self) -> Lanes {
        self.length
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

    /// The lane that feedback reports on, if it still exists.
    pub(super) fn lane_told(&self, feedback: &WindowFeedback) -> Option<usize> {
        let is_it = |lane: &SendLane| {
            (lane.deal.lanes, lane.deal.lane) == (feedback.lanes, usize::from(feedback.lane))
        };
        self.lanes.iter().position(is_it)
    }

    /// Adopts the longest window that the receiver accepts, if it has changed. If it accepts fewer
    /// lanes than there are, or lanes of another size, all symbols are given up, as they cannot be
    /// described to it.
    fn limit_shape(&mut self, now: Time, takes: WindowShape, stats: &mut Stats) {
        self.lanes_max = takes.lanes;
        let lane_size = usize::from(takes.lane_size);
        let has_more = self.lanes.iter().any(|lane| lane.deal.lanes > takes.lanes);
        if has_more || self.shape.lane_size != lane_size {
            (0..self.sources.len()).for_each(|_| self.give_up_oldest(stats));
            self.shape.lane_size = lane_size;
            self.length = Lanes::ONE;
            self.deal(now, Lanes::ONE, None);
            self.lanes.drain(..self.draining);
            self.draining = 0;
        }
    }

    /// Adjusts the number of lanes before another symbol is added: more if the window is full and
    /// the path holds more, or if coding reads too much; fewer if it has been too long for a while.
    /// `log`: frames in flight.
    ///
    /// Lanes that drain have to be done first, and the receiver has to have said that it is behind
    /// where the present ones begin: it has decoders for no others. That symbols were given up here
    /// says nothing of the receiver.
    pub(super) fn fit(
        &mut self,
        path: Path<impl FnOnce() -> usize>,
        log: &SentLog,
        stats: &mut Stats,
    ) {
        let Path { now, round_trip, needed, coded_per_s } = path;
        let newest = self.lanes[self.draining].deal;
        let lane_size = self.shape.lane_size;
        let run = self.run_max(coded_per_s);
        let is_settled = self.draining == 0 && self.told_next > newest.from;
        let is_full_for_long = self.is_full_for(now, round_trip);
        let is_long_for_long = self.is_long_for(now, round_trip, run);
        let mut lanes = newest.lanes;
        if self.length < self.lanes_max && is_settled && is_full_for_long {
            let (needed, room) = (needed(), self.room());
            // A window that is full for another reason than its length gains nothing from more
            // lanes.
            if needed > room {
                let length = Lanes::holding(needed.max(2 * room), lane_size);
                self.length = length.min(self.lanes_max);
                lanes = lanes.max(self.length);
                (self.used.most, self.used.most_since) = (self.sources.len(), now);
            }
        }
        if is_settled && is_long_for_long {
            lanes = lanes.max(newest.lanes.doubled()).min(self.lanes_max);
        }
        if lanes == newest.lanes && lanes > Lanes::ONE {
            if now - self.used.most_since < WINDOW_NARROW_AFTER {
                return;
            }
            let roomy = ROOM_NARROWED * self.used.most;
            let length = Lanes::holding(roomy, lane_size);
            if is_settled {
                self.length = self.length.min(length);
                lanes = lanes.min(self.length.max(Lanes::holding(roomy, run)));
            }
            (self.used.most, self.used.most_since) = (self.sources.len(), now);
        }
        if lanes != newest.lanes {
            self.deal(now, lanes, Some(log));
            stats.windows_dealt += 1;
        }
    }

    /// Most symbols that a coded symbol may cover, if so many are sent per second.
    fn run_max(&self, coded_per_s: f64) -> usize {
        let bytes_per_s = coded_per_s * self.symbol_len_max as f64;
        ((READ_BYTES_PER_S / bytes_per_s) as usize).max(RUN_MIN)
    }

    /// Whether the window has been full, or nearly so, for `span`. A window filled by a burst of
    /// losses has room again once that is repaired.
    fn is_full_for(&mut self, now: Time, span: Duration) -> bool {
        let room = self.room().min(self.size_max);
        if ROOM_AFTER_FULL * self.sources.len() < room {
            self.used.full_since = None;
        }
        self.is_full() && now - *self.used.full_since.get_or_insert(now) >= span
    }

    /// Whether each lane has held more than `run` symbols, or nearly so, for `span`.
    fn is_long_for(&mut self, now: Time, span: Duration, run: usize) -> bool {
        let held = self.sources.len() / self.lanes[self.draining].deal.lanes.count();
        if ROOM_AFTER_FULL * held < run {
            self.used.long_since = None;
        }
        held > run && now - *self.used.long_since.get_or_insert(now) >= span
    }

    /// Deals symbols to `lanes` from the next one on.
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
        self.used.long_since = None;
        (self.used.most, self.used.most_since) = (self.sources.len(), now);
    }

    // ---- symbols ------------------------------------------------------------------------------

    /// Makes a source symbol of waiting packets, for this frame. `buffer` is scratch space. Returns
    /// its number and whether it is needed soon; `None` if the queue dropped all waiting packets as
    /// congestion signals.
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
        self.used.most = self.used.most.max(self.sources.len());
        stats.symbols_added += 1;
        Some((id, soon))
    }

    /// The source symbols of a lane from a place on that it has, or is about to have.
    fn sources_of(&self, lane: &SendLane, place: u64) -> impl Iterator<Item = &Source> {
        let (skipped, count) = self.places_of(lane, place);
        self.sources.iter().skip(skipped).step_by(lane.deal.lanes.count()).take(count)
    }

    /// How many symbols precede the one at a place of a lane, and how many symbols of the lane
    /// there are from it on.
    fn places_of(&self, lane: &SendLane, place: u64) -> (usize, usize) {
        let skipped = lane.id(place).saturating_sub(self.base) as usize;
        (skipped, lane.end().saturating_sub(place) as usize)
    }

    /// The oldest symbol of a lane that is known to be needed and has no copy in flight.
    pub(super) fn lying_still(&self, lane: usize) -> Option<u64> {
        let lane = &self.lanes[lane];
        let lies_still =
            |source: &Source| source.fate == Fate::Needed && source.carried < lane.settled_before;
        let at = self.sources_of(lane, lane.base()).position(lies_still)?;
        Some(lane.id(lane.base() + at as u64))
    }

    /// Writes a copy of a symbol, for this frame.
    pub(super) fn write_copy(&mut self, id: u64, frame: FrameNumber, body: &mut Vec<u8>) {
        self.sources[(id - self.base) as usize].carried = frame;
        self.write_source(id, body);
    }

    /// Records that this frame carries a symbol, or its last part.
    pub(super) fn note_carried(&mut self, id: u64, frame: FrameNumber) {
        let at = id.checked_sub(self.base).map(|at| at as usize);
        if let Some(source) = at.and_then(|at| self.sources.get_mut(at)) {
            source.carried = frame;
        }
    }

    /// Whether nothing is known yet about a symbol held.
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

    /// Writes a coded symbol over everything that a lane holds.
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

    /// The frames in flight that carry symbols of a lane; with only one lane, all frames of the
    /// link.
    pub(super) fn log<'a>(&'a self, lane: usize, link: &'a LinkUsage) -> &'a SentLog {
        if self.is_single() { link.log() } else { &self.lanes[lane].log }
    }

    /// Records a frame sent for this lane; `forgotten`: the frame that the link's log dropped for
    /// it.
    pub(super) fn note_sent(&mut self, lane: usize, link: &LinkUsage, forgotten: Option<Sent>) {
        let Some(sent) = link.log().newest() else { return };
        let is_single = self.is_single();
        let lane = &mut self.lanes[lane];
        lane.note_sent(sent, link.loss_ratio());
        let forgotten = if is_single { forgotten } else { lane.log.push(*sent) };
        // Feedback tells of a late one, if it has reported on its symbol.
        if let Some(What::Source(id)) = forgotten.map(|sent| sent.what)
            && lane.deal.lanes.place(id) >= lane.told_end
        {
            self.take_for_lost(id);
        }
    }

    /// The stakes of a repair symbol sent for a lane now, with all news taken into account.
    pub(super) fn stakes(
        &mut self,
        now: Time,
        lane: usize,
        link: &LinkUsage,
        (round_trip, weigh): (core::time::Duration, Weigh),
    ) -> Stakes {
        let log = self.log(lane, link);
        let frames = log.sources() + log.repairs() + log.covered().len();
        if self.lanes[lane].has_news && self.lanes[lane].affords(frames) {
            let held = &self.lanes[lane];
            let oldest = self.sources_of(held, held.base()).next();
            let since = oldest.map_or(now, |oldest| oldest.added_at);
            let mut late = core::mem::take(&mut self.late);
            late.clear();
            let mut may_come = 0;
            late.extend(self.late(now, lane, link).map(|(late, lacks)| {
                may_come += usize::from(lacks);
                late
            }));
            let known = (self.deficit(lane).saturating_sub(may_come), since);
            let log = self.is_single().then(|| link.log());
            self.lanes[lane].take_news((&late, log), known, link.loss_ratio(), now);
            self.late = late;
        }
        self.lanes[lane].belief().stakes(now, round_trip, weigh)
    }

    // ---- fates --------------------------------------------------------------------------------

    /// What the receiver is known to lack of a lane: what it reported, plus later symbols taken for
    /// lost.
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

    /// The receiver has delivered or skipped everything before `next`.
    pub(super) fn tell(&mut self, next: u64) {
        self.told_next = self.told_next.max(next);
        self.advance(next);
    }

    /// Everything before `next` is done.
    fn advance(&mut self, next: u64) {
        let done = (next.saturating_sub(self.base) as usize).min(self.sources.len());
        self.sources.drain(..done);
        self.base += done as u64;
        // Nothing is sent of the old lanes any more.
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

    /// Applies feedback about a lane: what the receiver knew of it when it had frames up to
    /// `newest`.
    pub(super) fn note_told(
        &mut self,
        lane: usize,
        next: u64,
        feedback: &WindowFeedback,
        newest: FrameNumber,
    ) {
        let held = &mut self.lanes[lane];
        let told_end = held.first_place(next) + u64::from(feedback.span);
        held.note_told(told_end, usize::from(feedback.deficit));
        held.log.tell(newest, |_| {});
        held.told_before = newest.following();
    }

    /// Settles the covered frames that can no longer arrive late, or are not awaited.
    pub(super) fn settle(&mut self, now: Time, link: &mut LinkUsage) {
        let (is_single, age_max) = (self.is_single(), link.age_max());
        if !is_single {
            // The lanes have their own logs.
            while link.pop_settled(now, false).is_some() {}
        }
        self.settles_at = None;
        for lane in 0..self.lanes.len() {
            let mut first = None;
            while let Some(sent) = self.log(lane, link).oldest_covered().copied() {
                let is_awaited = self.is_awaited(lane, &sent);
                let log = &mut self.lanes[lane].log;
                let settled = match is_single {
                    true => link.pop_settled(now, is_awaited),
                    false => log.pop_settled(now, age_max, is_awaited),
                };
                if settled.is_none() {
                    first = Some(sent);
                    break;
                }
                if is_awaited {
                    self.note_settled(lane, &sent);
                }
            }
            let held = &mut self.lanes[lane];
            let number = first.map_or(held.told_before, |sent| sent.number);
            held.settled_before = number.min(held.told_before);
            let settles_at = first.map(|sent| sent.at + age_max);
            self.settles_at = self.settles_at.into_iter().chain(settles_at).min();
        }
    }

    /// Whether an overtaken frame of a lane would change anything, if it arrived or was lost.
    fn is_awaited(&self, lane: usize, sent: &Sent) -> bool {
        match sent.what {
            What::Source(id) | What::Copy(id) => self.source(id).is_some_and(|source| {
                // Otherwise there is a newer copy.
                source.carried == sent.number && matches!(source.fate, Fate::Unknown | Fate::Needed)
            }),
            // Otherwise all that it combines is done.
            What::Coded => {
                let held = &self.lanes[lane];
                let oldest = self.sources_of(held, held.base()).next();
                oldest.is_some_and(|oldest| oldest.added_at <= sent.at)
            }
            What::Ahead | What::Part => false,
        }
    }

    /// An awaited frame that carried something of this lane can no longer arrive late: it was
    /// received or is lost.
    fn note_settled(&mut self, lane: usize, sent: &Sent) {
        let held = &mut self.lanes[lane];
        held.has_news = true;
        match sent.what {
            // Feedback about this lane should report it, and does not.
            What::Source(id)
                if sent.number < held.told_before && held.deal.lanes.place(id) >= held.told_end =>
            {
                self.take_for_lost(id);
            }
            _ => {}
        }
    }

    /// When the next overtaken frame can no longer arrive late.
    pub(super) fn settles_at(&self) -> Option<Time> {
        self.settles_at
    }

    /// The overtaken frames that may still arrive, and whether each carries what the receiver
    /// reported as missing.
    fn late<'a>(
        &'a self,
        now: Time,
        lane: usize,
        link: &'a LinkUsage,
    ) -> impl Iterator<Item = (Late, bool)> + 'a {
        let held = &self.lanes[lane];
        self.log(lane, link).covered().filter_map(move |sent| {
            let lost = sent.loss_ratio(link.loss_ratio());
            let late = now - (sent.at + link.transit());
            let comes = (1.0 - lost) * comes_later_than(late, link.lateness());
            let with = |loss_ratio| Late { what: sent.what, at: sent.at, loss_ratio };
            let source = match sent.what {
                What::Source(id) | What::Copy(id) => self.source(id)?,
                What::Coded => return Some((with(1.0 - comes), false)),
                What::Ahead | What::Part => return None,
            };
            let first = if let What::Source(id) = sent.what { Some(id) } else { None };
            let is_needed = source.fate == Fate::Needed;
            let is_unknown = first.is_some_and(|id| held.deal.lanes.place(id) >= held.told_end);
            // Otherwise it is acknowledged, or there is a newer copy.
            let counts = source.carried == sent.number && (is_needed || is_unknown);
            let loss_ratio = lost / (lost + comes).max(f64::MIN_POSITIVE);
            counts.then(|| (with(loss_ratio), is_needed && first.is_some()))
        })
    }

    /// What overtaken frames of a lane change about what the receiver is expected to lack.
    pub(super) fn expected_late(&self, now: Time, lane: usize, link: &LinkUsage) -> ExpectedLate {
        let mut expected = ExpectedLate::default();
        self.late(now, lane, link).for_each(|(late, lacks)| expected.add(late, lacks));
        expected
    }

    fn source(&self, id: u64) -> Option<&Source> {
        self.sources.get(id.checked_sub(self.base)? as usize)
    }

    /// Applies what feedback says about each symbol of a lane from `next` on.
    pub(super) fn read_bitmap(&mut self, lane: usize, next: u64, feedback: &WindowFeedback) {
        let held = &self.lanes[lane];
        // Feedback that was overtaken may report on symbols that are gone.
        let skip = held.base().saturating_sub(held.first_place(next)) as usize;
        let (skipped, count) = self.places_of(held, held.base());
        let step = held.deal.lanes.count();
        let sources = self.sources.iter_mut().skip(skipped).step_by(step).take(count);
        let was_overtaken = next < self.base;
        for (at, source) in sources.enumerate() {
            match feedback.is_needed(at + skip) {
                Some(true) => source.fate = Fate::Needed,
                // What stands for it may combine symbols that were given up here.
                Some(false) if was_overtaken => source.fate = Fate::Doubtful,
                Some(false) => source.fate = Fate::Received,
                None => break,
            }
        }
        self.lanes[lane].note_change();
    }

    /// Takes a symbol for lost that feedback should report and does not.
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

    /// Gives up the oldest symbol. The receiver skips it, if it does not have it, and clears all
    /// contexts. Coded symbols that it holds may combine it, and then no longer stand for another.
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

    /// Limits the length of new symbols, in bytes. Longer ones that are held are sent in parts.
    /// Returns whether there may be any.
    pub(super) fn limit(&mut self, len: usize) -> bool {
        let before = self.symbol_len_max;
        self.symbol_len_max = len.min(self.shape.symbol_size_max);
        self.symbol_len_max < before && !self.is_empty()
    }

    /// The receiver restarted: it has nothing, and accepts windows of this shape.
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

    /// Nothing more will be reported about frames in flight before this one.
    pub(super) fn forget_frames(&mut self, before: FrameNumber) {
        for source in &mut self.sources {
            if source.fate == Fate::Unknown {
                source.fate = Fate::Needed;
            }
        }
        for lane in &mut self.lanes {
            (lane.told_before, lane.settled_before) = (before, before);
            lane.log.clear();
            lane.note_change();
        }
    }
}
