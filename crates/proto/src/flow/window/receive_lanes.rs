//! The decoders of a window: one, or, where the window is longer than a decoder can handle, one per
//! lane.
//!
//! From some symbol on a sender may deal symbols to more or fewer lanes, a new *stretch*, while the
//! old lanes drain. So there are decoders for at most two stretches, each created when its lane is
//! first heard of. What a symbol claims about lanes is accepted only within this station's limits:
//! a lying sender gets no more decoders than an honest one.

use corridor_codec::{CodecError, Coefficients, Field, WindowDecoder, WindowOutcome};

use super::needs::Held;
use crate::bounds::WINDOW_STRETCHES_MAX;
use crate::memory::WindowShape;
use crate::wire::Lanes;

/// What all decoders have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecoderShape {
    pub(super) field: Field,
    /// Symbols per lane, and bytes of the longest symbol.
    pub(super) lane_size: usize,
    pub(super) symbol_size_max: usize,
    /// Most lanes that this station accepts from the peer.
    pub(super) lanes_max: Lanes,
}

/// Where a symbol belongs: its lane, and places within the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) lanes: Lanes,
    pub(super) lane: usize,
    /// The oldest place that the sender holds.
    pub(super) base: u64,
    /// The first place that the symbol combines, and how many it combines.
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Place {
    /// The number of the last symbol that it combines.
    pub(super) fn last_id(&self) -> u64 {
        self.lanes.id(self.lane, self.first.saturating_add(self.count.saturating_sub(1)))
    }
}

/// One lane; places are numbered within the lane.
pub(super) struct ReceiveLane {
    decoder: WindowDecoder,
    /// The oldest place that the sender held when the lane was first heard of.
    pub(super) first_base: u64,
    /// Coded symbols that are not used up: at most as many as a lane has symbols.
    held: Held,
}

struct Stretch {
    lanes: Lanes,
    /// The first symbol that was dealt so, as far as known.
    from: u64,
    each: Vec<Option<ReceiveLane>>,
}

impl Stretch {
    /// Whether anything is known of a symbol that was not dropped. If not, as at the beginning,
    /// there is nothing to wait for.
    fn knows_any(&self) -> bool {
        self.each.iter().flatten().any(ReceiveLane::knows_any)
    }

    /// The number after the last one that any symbol combined.
    fn end(&self) -> u64 {
        let lanes = self.each.iter().enumerate();
        let ends = lanes.filter_map(|(at, lane)| {
            let last = lane.as_ref().filter(|lane| lane.knows_any())?.end() - 1;
            Some(self.lanes.id(at, last) + 1)
        });
        ends.max().unwrap_or_default()
    }
}

/// Where a symbol belongs.
enum Found {
    /// To this stretch.
    Held(usize),
    /// To one that is not held, which begins with this symbol as far as known.
    New { from: u64 },
}

/// The decoders of up to two stretches, in ascending order.
pub(super) struct ReceiveLanes {
    shape: DecoderShape,
    stretches: Vec<Stretch>,
}

impl ReceiveLanes {
    /// One lane whose first symbol is `base`.
    pub(super) fn new(shape: DecoderShape, base: u64) -> Result<Self, CodecError> {
        let lane = ReceiveLane::new(&shape, base)?;
        let first = Stretch { lanes: Lanes::ONE, from: base, each: vec![Some(lane)] };
        Ok(ReceiveLanes { shape, stretches: vec![first] })
    }

    /// Symbols of the longest window that is accepted.
    pub(super) fn symbols_max(&self) -> usize {
        self.shape.lanes_max.count() * self.shape.lane_size
    }

    fn lanes(&self) -> impl Iterator<Item = (Lanes, usize, &ReceiveLane)> {
        self.stretches.iter().flat_map(|stretch| {
            let each = stretch.each.iter().enumerate();
            each.filter_map(|(at, lane)| Some((stretch.lanes, at, lane.as_ref()?)))
        })
    }

    fn lanes_mut(&mut self) -> impl Iterator<Item = (Lanes, usize, &mut ReceiveLane)> {
        self.stretches.iter_mut().flat_map(|stretch| {
            let lanes = stretch.lanes;
            let each = stretch.each.iter_mut().enumerate();
            each.filter_map(move |(at, lane)| Some((lanes, at, lane.as_mut()?)))
        })
    }

    // ---- finding lanes ------------------------------------------------------------------------

    /// The lane of a symbol, created if necessary; `None` if the symbol only combines symbols
    /// before `next`, or claims more lanes than this station accepts.
    pub(super) fn lane(&mut self, place: &Place, next: u64) -> Option<&mut ReceiveLane> {
        let at = self.stretch_of(place, next)?;
        let stretch = &mut self.stretches[at];
        let lane = &mut stretch.each[place.lane];
        if lane.is_none() {
            // Too late: nothing to create a lane for, and nothing to learn about where the stretch
            // begins.
            if place.last_id() < next {
                return None;
            }
            stretch.from = stretch.from.min(place.lanes.id(place.lane, place.base));
            *lane = ReceiveLane::new(&self.shape, place.base).ok();
            // What was skipped or is done does not come back.
            let next = place.lanes.first_place(place.lane, next);
            lane.iter_mut().for_each(|lane| lane.advance_to(next));
        }
        lane.as_mut()
    }

    /// The stretch of a symbol, created if necessary. With as many as there can be, the oldest one
    /// ends for it: see [`outlived`](Self::outlived).
    fn stretch_of(&mut self, place: &Place, next: u64) -> Option<usize> {
        let from = match self.find(place, next)? {
            Found::Held(at) => return Some(at),
            Found::New { from } => from,
        };
        self.stretches.retain(Stretch::knows_any);
        let mut at = self.stretches.partition_point(|other| other.from <= from);
        if self.stretches.len() == WINDOW_STRETCHES_MAX {
            // The sender has begun all of these after it was done with the symbol's own.
            at = at.checked_sub(1)?;
            self.stretches.remove(0);
        }
        let each = (0..place.lanes.count()).map(|_| None).collect();
        self.stretches.insert(at, Stretch { lanes: place.lanes, from, each });
        Some(at)
    }

    /// Finds the stretch of a symbol; `None` if the symbol is too late, or claims more lanes than
    /// this station accepts.
    fn find(&self, place: &Place, next: u64) -> Option<Found> {
        let newest = self.stretches.len() - 1;
        let older = &self.stretches[..newest];
        if self.stretches[newest].lanes == place.lanes {
            // A stretch with as many lanes may have ended before an older one that is held began.
            let is_of_newest = older.iter().all(|older| older.end() <= place.last_id());
            return is_of_newest.then_some(Found::Held(newest));
        }
        if place.last_id() < next || place.lanes > self.shape.lanes_max {
            return None;
        }
        // Everything before the newest stretch belongs to the one before, and nothing else does.
        let is_before = place.last_id() < self.stretches[newest].from;
        match older.iter().position(|older| older.lanes == place.lanes && is_before) {
            Some(at) => Some(Found::Held(at)),
            None => Some(Found::New { from: place.lanes.id(place.lane, place.base) }),
        }
    }

    /// The end of the stretch that has to go for a symbol's own. All before it has to be delivered
    /// or skipped first: the sender has no more stretches than the receiver, so it has given up
    /// what is missing.
    pub(super) fn outlived(&self, place: &Place, next: u64) -> Option<u64> {
        let Some(Found::New { from }) = self.find(place, next) else { return None };
        let known = || self.stretches.iter().filter(|stretch| stretch.knows_any());
        let oldest = known().next().filter(|_| known().count() == WINDOW_STRETCHES_MAX)?;
        Some(oldest.end()).filter(|&end| oldest.from <= from && end > next)
    }

    /// All symbols before `next` are delivered or skipped: drops the stretches before the one it
    /// belongs to. A lying sender may have made that one begin too early: none goes before its end.
    pub(super) fn forget_done(&mut self, next: u64) {
        let is_done = |stretches: &[Stretch]| {
            stretches[stretches.len() - 1].from < next && stretches[0].end() <= next
        };
        while self.stretches.len() > 1 && is_done(&self.stretches) {
            self.stretches.remove(0);
        }
    }

    // ---- symbols ------------------------------------------------------------------------------

    /// A decoded symbol.
    pub(super) fn symbol(&self, id: u64) -> Option<&[u8]> {
        self.stretches.iter().rev().find_map(|Stretch { lanes, each, .. }| {
            each[lanes.lane(id)].as_ref()?.decoder.symbol(lanes.place(id))
        })
    }

    /// The first decoded symbol not before `id`.
    pub(super) fn next_decoded(&self, id: u64) -> Option<u64> {
        let next = |(lanes, at, lane): (Lanes, usize, &ReceiveLane)| {
            Some(lanes.id(at, lane.decoder.next_decoded(lanes.first_place(at, id))?))
        };
        self.lanes().filter_map(next).min()
    }

    /// Drops all symbols before `id`.
    pub(super) fn advance_to(&mut self, id: u64) {
        for (lanes, at, lane) in self.lanes_mut() {
            lane.advance_to(lanes.first_place(at, id));
        }
    }

    /// Calls `see` with the number and content of each symbol decoded since the last call.
    pub(super) fn each_fresh(&mut self, mut see: impl FnMut(u64, &[u8])) {
        self.lanes_mut().for_each(|(lanes, at, lane)| {
            lane.each_fresh(&mut |place, symbol| see(lanes.id(at, place), symbol));
        });
    }

    /// Bytes of all decoders.
    pub(super) fn bytes(&self) -> usize {
        let DecoderShape { field, lane_size, symbol_size_max, .. } = self.shape;
        let of_lane = WindowShape::decoder_bytes(field, lane_size, symbol_size_max);
        self.lanes().map(|(.., lane)| of_lane + lane.held.bytes()).sum()
    }

    /// Number of decoders.
    #[cfg(test)]
    pub(super) fn decoders(&self) -> usize {
        self.lanes().count()
    }

    // ---- feedback -----------------------------------------------------------------------------

    /// Number of lanes to report on, whether heard of or not.
    pub(super) fn count(&self) -> usize {
        self.stretches.iter().map(|stretch| stretch.each.len()).sum()
    }

    /// The turn of a symbol's lane.
    pub(super) fn turn_of(&self, id: u64) -> usize {
        let at = self.stretches.partition_point(|stretch| stretch.from <= id).saturating_sub(1);
        let before: usize = self.stretches[..at].iter().map(|stretch| stretch.each.len()).sum();
        before + self.stretches[at].lanes.lane(id)
    }

    /// For a turn: how many lanes its stretch has, which one it is, and its state, `None` if
    /// nothing was heard of it.
    pub(super) fn told(&self, turn: usize) -> (Lanes, usize, Option<&ReceiveLane>) {
        let mut at = turn % self.count();
        for Stretch { lanes, each, .. } in &self.stretches {
            match each.get(at) {
                Some(lane) => return (*lanes, at, lane.as_ref()),
                None => at -= each.len(),
            }
        }
        (Lanes::ONE, 0, None)
    }
}

impl ReceiveLane {
    fn new(shape: &DecoderShape, base: u64) -> Result<Self, CodecError> {
        let mut decoder = WindowDecoder::new(shape.field, shape.lane_size, shape.symbol_size_max)?;
        decoder.reset(base);
        Ok(ReceiveLane { decoder, first_base: base, held: Held::default() })
    }

    /// The place after the last one that any symbol combined.
    pub(super) fn end(&self) -> u64 {
        self.decoder.end()
    }

    /// Adds a symbol. Delivered symbols are kept as long as coded symbols may combine them.
    pub(super) fn add(
        &mut self,
        place: &Place,
        seed: Option<u32>,
        symbol: &[u8],
    ) -> Result<WindowOutcome, CodecError> {
        self.decoder.advance_to(place.base);
        let Some(seed) = seed else { return self.decoder.add_source(place.first, symbol) };
        let (first, count) = (place.first, place.count as usize);
        let outcome = self.decoder.add_coded(first, count, Coefficients::Seed(seed), symbol)?;
        if outcome == WindowOutcome::Innovative {
            self.held.add(first + place.count);
        }
        Ok(outcome)
    }

    /// Drops all places before this one.
    fn advance_to(&mut self, place: u64) {
        self.decoder.advance_to(place);
        self.forget_used_up();
    }

    /// Drops coded symbols that are used up: all that they combine is decoded or dropped.
    pub(super) fn forget_used_up(&mut self) {
        self.held.retain_newest(self.decoder.missing_count() - self.decoder.deficit());
    }

    /// Calls `see` with the place and content of each symbol decoded since the last call.
    pub(super) fn each_fresh(&mut self, see: &mut impl FnMut(u64, &[u8])) {
        while let Some(place) = self.decoder.poll_decoded() {
            see(place, self.decoder.symbol(place).unwrap_or_default());
        }
    }

    /// Whether anything is known of a symbol that was not dropped.
    fn knows_any(&self) -> bool {
        self.decoder.end() > self.decoder.base()
    }

    /// Innovative symbols that it takes to decode everything.
    pub(super) fn deficit(&self) -> usize {
        self.decoder.deficit()
    }

    /// The needed places from `first` on, ascending.
    pub(super) fn needed(&self, first: u64, needed: &mut Vec<u64>) {
        let places = first.max(self.decoder.base())..self.decoder.end();
        let missing = places.filter(|&place| !self.decoder.is_decoded(place));
        self.held.needed(missing, needed);
    }
}
