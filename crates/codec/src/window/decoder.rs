//! Source and coded symbols in, in any order; source symbols out as soon as they are determined.
//!
//! Coded symbols are kept in reduced row echelon form, restricted to what is missing:
//!
//! 1. Reduce the coefficients of what arrived by what is decoded and by the rows held. In reduced
//!    form the factors are the arriving coefficients themselves. Nothing left: the symbol is
//!    dependent, and its payload was never touched.
//! 2. The lowest id left is the new row's pivot, and gives it its slot. Build its payload there
//!    and scale both to a pivot of 1.
//! 3. Clear the pivot's column in the other rows. A row left with its pivot only is a decoded
//!    symbol.
//!
//! Because a pivot is the lowest id of its row, to give up the ids before `id` is to drop the rows
//! with a pivot before it: no other row has them. What is kept has the highest rank possible.

use alloc::{vec, vec::Vec};

use rand::Rng;

use crate::field::is_zero;
use crate::rows::{Matrix, Payloads, Shape};
use crate::window::ring::{Ring, RingSet};
use crate::window::{Coefficients, WindowOutcome, check_run, check_sizes, end_of};
use crate::{CodecError, Field, MAX_BLOCK_SIZE, Recoded};

/// A progressive decoder, and recoder, of a stream of source symbols.
///
/// The window is `base..end`: from the first symbol that the caller has not let go of to the last
/// one that anything received was about. A relay that does not read the symbols uses the same
/// type, and [recodes](Self::recode).
///
/// The payload of a coded symbol is taken at its word: an inconsistent one is not detected, and
/// changes what is decoded. Lengths are as in [`BlockDecoder`](crate::BlockDecoder): a symbol that
/// was solved for can have trailing zeros that its sender did not write.
///
/// ```
/// use corridor_codec::{Coefficients, Field, WindowDecoder, WindowEncoder, WindowOutcome};
///
/// let mut encoder = WindowEncoder::new(Field::Gf256, 64, 16)?;
/// let mut decoder = WindowDecoder::new(Field::Gf256, 64, 16)?;
/// for symbol in [b"zero", b"one.", b"two."] {
///     encoder.push(symbol)?;
/// }
///
/// // Symbol 1 is lost. A coded symbol over 0..3 repairs it.
/// decoder.add_source(0, encoder.symbol(0).unwrap())?;
/// decoder.add_source(2, encoder.symbol(2).unwrap())?;
/// assert_eq!((decoder.in_order_end(), decoder.missing_count()), (1, 1));
/// let mut payload = [0; 16];
/// let len = encoder.encode(0, 3, Coefficients::Seed(7), &mut payload)?;
/// let outcome = decoder.add_coded(0, 3, Coefficients::Seed(7), &payload[..len])?;
/// assert_eq!(outcome, WindowOutcome::Innovative);
/// assert_eq!(decoder.symbol(1), Some(&b"one."[..]));
///
/// // Delivered: both sides let go.
/// decoder.advance_to(3);
/// encoder.advance_to(3);
/// assert_eq!(decoder.add_source(1, b"one.")?, WindowOutcome::Stale);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WindowDecoder {
    shape: Shape,
    window_size: usize,
    ring: Ring,
    base: u64,
    end: u64,
    /// A row has the slot of its pivot; two more rows are for what is arriving. Columns of decoded
    /// symbols are zero, and rows of decoded symbols are neither read nor written.
    coefficients: Matrix,
    payloads: Payloads,
    /// A payload in the making.
    scratch: Vec<u8>,
    /// Ids of the symbols decoded.
    decoded: RingSet,
    /// Pivots of the rows that are not decoded symbols.
    pivots: RingSet,
    /// Ids decoded that the caller has not been told of.
    fresh: RingSet,
}

impl WindowDecoder {
    /// A decoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes. The
    /// window begins with id 0; [`reset`](Self::reset) and [`advance_to`](Self::advance_to) move
    /// it.
    ///
    /// All memory is taken here: `window_size * symbol_size_max` bytes, `window_size + 2` coding
    /// vectors of that many symbols, and a little.
    ///
    /// # Errors
    /// [`CodecError::WindowSize`] and [`CodecError::SymbolSizeMax`] when a size is zero or beyond
    /// [`MAX_WINDOW_SIZE`](crate::MAX_WINDOW_SIZE), [`MAX_SYMBOL_SIZE`](crate::MAX_SYMBOL_SIZE).
    pub fn new(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
    ) -> Result<Self, CodecError> {
        check_sizes(window_size, symbol_size_max)?;
        let ring = Ring::new(window_size);
        let shape = Shape::new(field, ring.slots(), symbol_size_max)?;
        Ok(Self {
            shape,
            window_size,
            ring,
            base: 0,
            end: 0,
            coefficients: Matrix::new(&shape, ring.slots() + 2),
            payloads: Payloads::new(&shape),
            scratch: vec![0; symbol_size_max],
            decoded: RingSet::new(ring),
            pivots: RingSet::new(ring),
            fresh: RingSet::new(ring),
        })
    }

    /// Takes in source symbol `id`. It is dependent if that symbol is decoded already, even if
    /// what was decoded is longer by trailing zeros.
    ///
    /// # Errors
    /// [`CodecError::SymbolLength`] when the symbol is empty or longer than `symbol_size_max`;
    /// [`CodecError::IdRange`] for the id `u64::MAX`.
    pub fn add_source(&mut self, id: u64, symbol: &[u8]) -> Result<WindowOutcome, CodecError> {
        let end = end_of(id, 1)?;
        self.shape.check_symbol(symbol)?;
        if let Some(outcome) = self.misplaced(end) {
            return Ok(outcome);
        }
        self.end = self.end.max(end);
        if self.decoded.contains(id) {
            return Ok(WindowOutcome::Dependent);
        }
        if self.pivots.contains(id) {
            self.replace_by_source(id, symbol);
        } else {
            self.payloads.set(self.ring.slot(id), symbol);
            self.note_decoded(id);
            self.clear_column(id);
        }
        Ok(WindowOutcome::Innovative)
    }

    /// Takes in a coded symbol: the combination `payload` of the `count` symbols from id `first`
    /// on. A payload shorter than others stands for one padded with zeros; a vector that is all
    /// zero is dependent.
    ///
    /// The run may begin before the window. The symbol is stale only if it ends there as well, or
    /// if a symbol that was let go of has a coefficient that is not zero.
    ///
    /// # Errors
    /// [`CodecError::CountOutOfRange`] unless `count` is in 1..=window size;
    /// [`CodecError::VectorLength`] for a vector that is not as long as the count makes it;
    /// [`CodecError::SymbolLength`] when the payload is empty or longer than `symbol_size_max`;
    /// [`CodecError::IdRange`]; [`CodecError::RepairKeyField`].
    pub fn add_coded(
        &mut self,
        first: u64,
        count: usize,
        coefficients: Coefficients<'_>,
        payload: &[u8],
    ) -> Result<WindowOutcome, CodecError> {
        let field = self.shape.field;
        if !(1..=self.window_size).contains(&count) {
            let expected_max = self.window_size;
            return Err(CodecError::CountOutOfRange { expected_max, given: count });
        }
        let end = end_of(first, count)?;
        coefficients.check(field, count)?;
        self.shape.check_symbol(payload)?;
        if let Some(outcome) = self.misplaced(end) {
            return Ok(outcome);
        }
        let mut vector = [0; MAX_BLOCK_SIZE];
        coefficients.expand(field, count, &mut vector)?;
        let vector = &vector[..field.vector_len_bytes(count)];
        let start = field.first_nonzero(vector, 0).map(|index| first + index as u64);
        if start.is_some_and(|start| start < self.base) {
            return Ok(WindowOutcome::Stale);
        }
        self.end = self.end.max(end);
        let Some(start) = start else {
            return Ok(WindowOutcome::Dependent);
        };
        let (arrived, len) = (self.arrived(), self.vector_len());
        let around = &mut self.coefficients.row_mut(arrived)[..len];
        self.ring.wrap_vector(field, vector, first, around);
        let Some(pivot) = self.reduce_arrived(start, end) else {
            return Ok(WindowOutcome::Dependent);
        };
        self.coefficients.copy(self.ring.slot(pivot), self.reduced());
        self.fold(pivot, payload, start, end);
        self.settle(pivot);
        Ok(WindowOutcome::Innovative)
    }

    /// Lets go of all symbols before `id`, decoded or not, and returns how many of them were not.
    /// An id behind the window changes nothing; one beyond it empties the window, and what is
    /// between was not decoded.
    pub fn advance_to(&mut self, id: u64) -> u64 {
        if id <= self.base {
            return 0;
        }
        let mut missed = id - self.base;
        let mut next = self.base;
        while let Some(decoded) = self.decoded.first_in(next, id.min(self.end)) {
            self.decoded.remove(decoded);
            self.fresh.remove(decoded);
            missed -= 1;
            next = decoded + 1;
        }
        while let Some(pivot) = self.pivots.first_in(self.base, id.min(self.end)) {
            self.pivots.remove(pivot);
        }
        self.base = id;
        self.end = self.end.max(id);
        missed
    }

    /// Draws a combination of the rows held that are about no other symbols than the `count` from
    /// id `first` on, uniform among those that are not zero, and writes its coding vector over
    /// this run and its payload.
    ///
    /// `None` when there is no such row. Over the whole window, [`base`](Self::base)..
    /// [`end`](Self::end), all rows are.
    ///
    /// # Errors
    /// [`CodecError::OutsideWindow`] unless the run is in the window and has a symbol;
    /// [`CodecError::BufferTooShort`]: [`vector_len_bytes`](Field::vector_len_bytes) of `count`
    /// and `symbol_size_max` are always enough.
    pub fn recode(
        &self,
        first: u64,
        count: usize,
        rng: &mut (impl Rng + ?Sized),
        vector_out: &mut [u8],
        payload_out: &mut [u8],
    ) -> Result<Option<Recoded>, CodecError> {
        let field = self.shape.field;
        check_run(first, count, self.base, self.end)?;
        let (expected, given) = (field.vector_len_bytes(count), vector_out.len());
        let vector_out = vector_out.get_mut(..expected);
        let vector_out = vector_out.ok_or(CodecError::BufferTooShort { expected, given })?;
        let rows = self.rows_within(first, first + count as u64);
        let (expected, given) = (self.payload_len_max(&rows), payload_out.len());
        if given < expected {
            return Err(CodecError::BufferTooShort { expected, given });
        }
        if rows.len() == 0 {
            return Ok(None);
        }
        let mut drawn = [0; MAX_BLOCK_SIZE];
        field.draw_vector(rows.len(), rng, &mut drawn)?;
        // The drawn factors by slots; those of coded symbols; and what the latter combine to.
        let mut buffers = [[0; MAX_BLOCK_SIZE]; 3];
        let [factors, coded_factors, around] =
            buffers.each_mut().map(|buffer| &mut buffer[..self.vector_len()]);
        let (mut place, mut next) = (0, self.base);
        while let Some(id) = rows.first_in(next, self.end) {
            let (slot, factor) = (self.ring.slot(id), field.coefficient(&drawn, place));
            field.set_coefficient(factors, slot, factor);
            if !self.decoded.contains(id) {
                field.set_coefficient(coded_factors, slot, factor);
            }
            (place, next) = (place + 1, id + 1);
        }
        let (slots, row_len) = (self.ring.slots(), around.len());
        self.coefficients.combine(&[coded_factors], slots, &mut [around], row_len);
        for ((around, factors), coded) in around.iter_mut().zip(&*factors).zip(&*coded_factors) {
            *around ^= factors ^ coded;
        }
        let len = self.payloads.combined_len(factors, slots);
        self.payloads.combine(&[factors], slots, &mut [payload_out], len);
        self.ring.unwrap_vector(field, around, first, vector_out);
        field.mask_unused(vector_out, count);
        Ok(Some(Recoded { count, len }))
    }

    /// Id of the first symbol of the window.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// One more than the highest id in the window that a symbol received was about, innovative or
    /// dependent, or that the window was advanced to.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Id of the first symbol of the window that is not decoded; [`end`](Self::end) if all are.
    /// What is before can be delivered in order.
    pub fn in_order_end(&self) -> u64 {
        self.decoded.first_absent(self.base, self.end).unwrap_or(self.end)
    }

    /// Rows held: symbols decoded, and coded symbols that are not used up.
    pub fn rank(&self) -> usize {
        self.decoded_count() + self.pivots.len()
    }

    /// Symbols of the window that are decoded; never more than the rank.
    pub fn decoded_count(&self) -> usize {
        self.decoded.len()
    }

    /// Symbols of the window that are not decoded.
    pub fn missing_count(&self) -> usize {
        (self.end - self.base) as usize - self.decoded_count()
    }

    /// Innovative symbols that it takes to decode all of the window: what is missing, less the
    /// coded symbols held.
    pub fn deficit(&self) -> usize {
        (self.end - self.base) as usize - self.rank()
    }

    /// Whether symbol `id` is in the window and *seen* (Sundararajan et al., Network Coding Meets
    /// TCP, 2011): what is held determines it but for symbols with higher ids. In reduced form that
    /// is to be a pivot, and decoded symbols are pivots of rows with nothing else.
    pub fn is_seen(&self, id: u64) -> bool {
        (self.base..self.end).contains(&id)
            && (self.decoded.contains(id) || self.pivots.contains(id))
    }

    /// Id of the first symbol of the window that is not [seen](Self::is_seen);
    /// [`end`](Self::end) if all are. TCP/NC acknowledges what is before.
    pub fn seen_end(&self) -> u64 {
        let mut next = self.base;
        loop {
            next = self.decoded.first_absent(next, self.end).unwrap_or(self.end);
            let unseen = self.pivots.first_absent(next, self.end).unwrap_or(self.end);
            if unseen == next {
                return next;
            }
            next = unseen;
        }
    }

    /// Whether symbol `id` is in the window and decoded.
    pub fn is_decoded(&self, id: u64) -> bool {
        (self.base..self.end).contains(&id) && self.decoded.contains(id)
    }

    /// Writes which symbols are missing: bit `i % 8` (least significant first) of byte `i / 8` for
    /// id `base + i`, as far as `out` reaches; bits from [`end`](Self::end) on are zero.
    pub fn missing_bitmap(&self, out: &mut [u8]) {
        out.fill(0);
        let reach = self.base.saturating_add(8 * out.len() as u64).min(self.end);
        let mut next = self.base;
        while let Some(id) = self.decoded.first_absent(next, reach) {
            let index = (id - self.base) as usize;
            out[index / 8] |= 1 << (index % 8);
            next = id + 1;
        }
    }

    /// The lowest id of the window that was decoded, and that this call has not returned since.
    ///
    /// To drain it after each arrival is to learn what the arrival brought.
    pub fn poll_decoded(&mut self) -> Option<u64> {
        let id = self.fresh.first_in(self.base, self.end)?;
        self.fresh.remove(id);
        Some(id)
    }

    /// Symbol `id`, once decoded and until it is let go of.
    pub fn symbol(&self, id: u64) -> Option<&[u8]> {
        self.is_decoded(id).then(|| self.payloads.payload(self.ring.slot(id)))
    }

    /// Forgets everything; the window begins with `first`. The memory is kept.
    pub fn reset(&mut self, first: u64) {
        self.decoded.clear();
        self.pivots.clear();
        self.fresh.clear();
        (self.base, self.end) = (first, first);
    }

    /// The field of the coefficients.
    pub fn field(&self) -> Field {
        self.shape.field
    }

    /// Symbols that the window can have.
    pub fn window_size(&self) -> usize {
        self.window_size
    }

    /// Length of the longest symbol that the decoder takes, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// What becomes of a symbol that ends before or beyond what the window can have.
    fn misplaced(&self, end: u64) -> Option<WindowOutcome> {
        if end <= self.base {
            Some(WindowOutcome::Stale)
        } else if end - self.base > self.window_size as u64 {
            Some(WindowOutcome::Ahead)
        } else {
            None
        }
    }

    /// Bytes of a coding vector around the ring.
    fn vector_len(&self) -> usize {
        self.shape.field.vector_len_bytes(self.ring.slots())
    }

    /// The matrix row with an arriving vector as it came.
    fn arrived(&self) -> usize {
        self.ring.slots()
    }

    /// The matrix row with an arriving vector after reduction.
    fn reduced(&self) -> usize {
        self.ring.slots() + 1
    }

    /// Stage 1: the arrived vector minus its part in what is held; the lowest id left.
    fn reduce_arrived(&mut self, start: u64, end: u64) -> Option<u64> {
        let (field, arrived, reduced) = (self.shape.field, self.arrived(), self.reduced());
        self.coefficients.row_mut(reduced).fill(0);
        let mut next = start;
        while let Some(id) = self.decoded.first_absent(next, end) {
            let slot = self.ring.slot(id);
            let coefficient = self.coefficients.coefficient(arrived, slot);
            field.set_coefficient(self.coefficients.row_mut(reduced), slot, coefficient);
            next = id + 1;
        }
        if is_zero(self.coefficients.row(reduced)) {
            return None;
        }
        let mut next = start;
        while let Some(id) = self.pivots.first_in(next, end) {
            let slot = self.ring.slot(id);
            let factor = self.coefficients.coefficient(arrived, slot);
            if factor != 0 {
                self.coefficients.add_scaled(reduced, factor, slot);
            }
            next = id + 1;
        }
        Some(self.base + self.distance_to_nonzero(reduced, self.base)? as u64)
    }

    /// Stage 2, the payload: what arrived minus its part in what is held. Nearly all the work of
    /// a coded symbol is here, in one call of the kernels.
    fn fold(&mut self, pivot: u64, payload: &[u8], start: u64, end: u64) {
        let arrived = self.arrived();
        let mut next = start;
        while let Some(id) = self.decoded.first_absent(next, end) {
            if !self.pivots.contains(id) {
                self.coefficients.clear_coefficient(arrived, self.ring.slot(id));
            }
            next = id + 1;
        }
        let (factors, slots) = (self.coefficients.row(arrived), self.ring.slots());
        let len = self.payloads.combined_len(factors, slots);
        self.payloads.combine(&[factors], slots, &mut [&mut self.scratch], len);
        let len = self.shape.field.accumulate(&mut self.scratch, len, 1, payload);
        self.payloads.set(self.ring.slot(pivot), &self.scratch[..len]);
    }

    /// A source symbol takes the place of the row that has its id as pivot, and keeps its own
    /// length; the row, less the symbol, moves on to its next coefficient. It has one: else it
    /// would be decoded.
    fn replace_by_source(&mut self, id: u64, symbol: &[u8]) {
        let slot = self.ring.slot(id);
        self.coefficients.clear_coefficient(slot, slot);
        self.pivots.remove(id);
        let Some(distance) = self.distance_to_nonzero(slot, id) else {
            debug_assert!(false, "row {id} has its pivot only and is not decoded");
            return;
        };
        let pivot = id + distance as u64;
        let to = self.ring.slot(pivot);
        self.coefficients.copy(to, slot);
        self.payloads.copy(to, slot);
        self.payloads.set(slot, symbol);
        self.payloads.add_scaled(to, 1, slot);
        self.note_decoded(id);
        self.settle(pivot);
    }

    /// Stages 2 and 3 for the new row of `pivot`, which is reduced by what is held.
    fn settle(&mut self, pivot: u64) {
        let slot = self.ring.slot(pivot);
        let inverse = self.shape.field.invert(self.coefficients.coefficient(slot, slot));
        self.coefficients.scale(slot, inverse);
        self.payloads.scale(slot, inverse);
        self.pivots.insert(pivot);
        self.note_if_decoded(pivot);
        self.clear_column(pivot);
    }

    /// Stage 3: subtracts row `pivot` from the rows that have its column. Only rows with a lower
    /// pivot can: a row starts at its pivot.
    fn clear_column(&mut self, pivot: u64) {
        let (slot, is_decoded) = (self.ring.slot(pivot), self.decoded.contains(pivot));
        let mut next = self.base;
        while let Some(id) = self.pivots.first_in(next, pivot) {
            next = id + 1;
            let row = self.ring.slot(id);
            let factor = self.coefficients.coefficient(row, slot);
            if factor == 0 {
                continue;
            }
            if is_decoded {
                self.coefficients.clear_coefficient(row, slot);
            } else {
                self.coefficients.add_scaled(row, factor, slot);
            }
            self.payloads.add_scaled(row, factor, slot);
            self.note_if_decoded(id);
        }
    }

    fn note_if_decoded(&mut self, pivot: u64) {
        let slot = self.ring.slot(pivot);
        let after = (slot + 1) % self.ring.slots();
        // Around the ring from behind the pivot, the pivot itself comes last.
        if self.slots_to_nonzero(slot, after) == Some(self.ring.slots() - 1) {
            self.pivots.remove(pivot);
            self.note_decoded(pivot);
        }
    }

    fn note_decoded(&mut self, id: u64) {
        self.decoded.insert(id);
        self.fresh.insert(id);
    }

    /// How far after `id` the first coefficient of a row is that is not zero.
    fn distance_to_nonzero(&self, row: usize, id: u64) -> Option<usize> {
        self.slots_to_nonzero(row, self.ring.slot(id))
    }

    fn slots_to_nonzero(&self, row: usize, start: usize) -> Option<usize> {
        if let Some(slot) = self.coefficients.first_nonzero(row, start) {
            return Some(slot - start);
        }
        Some(self.coefficients.first_nonzero(row, 0)? + self.ring.slots() - start)
    }

    /// Rows that are about symbols in `first..end` only, by their pivots.
    fn rows_within(&self, first: u64, end: u64) -> RingSet {
        let mut rows = RingSet::new(self.ring);
        let mut next = first;
        while let Some(id) = self.decoded.first_in(next, end) {
            rows.insert(id);
            next = id + 1;
        }
        let beyond = (self.end - end) as usize;
        let mut next = first;
        while let Some(id) = self.pivots.first_in(next, end) {
            let distance = self.distance_to_nonzero(self.ring.slot(id), end);
            if distance.is_none_or(|distance| distance >= beyond) {
                rows.insert(id);
            }
            next = id + 1;
        }
        rows
    }

    fn payload_len_max(&self, rows: &RingSet) -> usize {
        let (mut len_max, mut next) = (0, self.base);
        while let Some(id) = rows.first_in(next, self.end) {
            len_max = len_max.max(self.payloads.payload(self.ring.slot(id)).len());
            next = id + 1;
        }
        len_max
    }
}
