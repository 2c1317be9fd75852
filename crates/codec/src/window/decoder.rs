//! Window decoder: it takes source and coded symbols in any order, and releases source symbols as
//! soon as they are determined.
//!
//! Its knowledge is stored as [equations](crate::window::equations): an arriving coded symbol costs
//! an elimination of coefficients and a copy, and payloads are combined once source symbols are
//! determined, all of them at once.
//!
//! Because a pivot is the lowest id of its row, giving up the ids before `id` means dropping the
//! rows with a pivot before it: no other row contains them. The remainder has the highest rank
//! possible.

use alloc::vec::Vec;

use rand::Rng;

use crate::kernel::OUTPUTS_MAX;
use crate::recoder::{TILE, tile};
use crate::rows::Shape;
use crate::storage::{Heap, Lent, Storage, Supply};
use crate::window::equations::{self, Equations};
use crate::window::ring::{Ring, RingSet};
use crate::window::{Coefficients, WindowOutcome, check_run, end_of, ring_of};
use crate::{Backend, CodecError, Field, MAX_BLOCK_SIZE, Recoded};

/// Progressive decoder, and recoder, of a stream of source symbols.
///
/// The window is `base..end`: from the first symbol that the caller has not dropped to the last one
/// that any received symbol covers. A relay that does not need the source symbols uses the same
/// type, and [recodes](Self::recode).
///
/// The payload of a coded symbol is trusted: an inconsistent one goes undetected and corrupts
/// decoded symbols. Lengths are as in [`BlockDecoder`](crate::BlockDecoder): a symbol that was
/// solved for can have trailing zeros that its sender did not write.
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
/// // Delivered: both sides drop it.
/// decoder.advance_to(3);
/// encoder.advance_to(3);
/// assert_eq!(decoder.add_source(1, b"one.")?, WindowOutcome::Stale);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WindowDecoder<S: Storage = Vec<u8>> {
    shape: Shape,
    window_size: usize,
    ring: Ring,
    base: u64,
    /// The slot of the base.
    start: usize,
    end: u64,
    equations: Equations<S>,
    /// Decoded symbols.
    decoded: RingSet,
    /// Pivots of the rows that are not decoded symbols.
    pivots: RingSet,
    /// Decoded symbols not yet reported to the caller.
    fresh: RingSet,
}

impl WindowDecoder {
    /// A decoder that holds up to `window_size` symbols of up to `symbol_size_max` bytes. The
    /// window begins with id 0; [`reset`](Self::reset) and [`advance_to`](Self::advance_to) move
    /// it.
    ///
    /// Allocates all memory: `window_size * symbol_size_max` bytes, up to 64 symbols more, twice
    /// `window_size` coding vectors of that many symbols, and a little more.
    ///
    /// # Errors
    /// [`CodecError::WindowSize`] and [`CodecError::SymbolSizeMax`] when a size is zero or beyond
    /// [`MAX_WINDOW_SIZE`](crate::MAX_WINDOW_SIZE), [`MAX_SYMBOL_SIZE`](crate::MAX_SYMBOL_SIZE).
    pub fn new(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
    ) -> Result<Self, CodecError> {
        Self::with_backend(field, window_size, symbol_size_max, Backend::detected())
    }

    /// Like [`new`](Self::new), with a given instruction set.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_backend(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: Backend,
    ) -> Result<Self, CodecError> {
        Self::build(field, window_size, symbol_size_max, backend, &mut Heap)
    }
}

/// In memory lent by the caller.
impl<'a> WindowDecoder<&'a mut [u8]> {
    /// A decoder that stores payloads in the borrowed `storage` and uses a given instruction set.
    /// The memory may have any contents and alignment; bytes that are not needed are not touched.
    /// Coding vectors and bookkeeping are in memory of its own. Otherwise as
    /// [`with_backend`](WindowDecoder::with_backend).
    ///
    /// ```
    /// use corridor_codec::{Backend, Field, WindowDecoder};
    ///
    /// let (field, backend) = (Field::Gf256, Backend::detected());
    /// let mut memory = vec![0; WindowDecoder::storage_len_bytes(field, 8, 4, backend)?];
    /// let mut decoder = WindowDecoder::with_storage(field, 8, 4, backend, &mut memory)?;
    /// decoder.add_source(0, b"zero")?;
    /// assert_eq!(decoder.symbol(0), Some(&b"zero"[..]));
    /// # Ok::<(), corridor_codec::CodecError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](WindowDecoder::new); [`CodecError::BufferTooShort`] when `storage` has fewer than
    /// [`storage_len_bytes`](Self::storage_len_bytes).
    pub fn with_storage(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: Backend,
        storage: &'a mut [u8],
    ) -> Result<Self, CodecError> {
        let expected = Self::storage_len_bytes(field, window_size, symbol_size_max, backend)?;
        let mut lent = Lent::new(storage, expected)?;
        Self::build(field, window_size, symbol_size_max, backend, &mut lent)
    }

    /// Bytes of storage that [`with_storage`](Self::with_storage) needs; without a backend, the
    /// most that any backend needs, on any machine.
    ///
    /// # Errors
    /// As [`new`](WindowDecoder::new).
    pub fn storage_len_bytes(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: impl Into<Option<Backend>>,
    ) -> Result<usize, CodecError> {
        let (_, shape) = ring_of(field, window_size, symbol_size_max)?;
        Ok(equations::storage_len(&shape, backend.into()))
    }
}

impl<S: Storage> WindowDecoder<S> {
    fn build(
        field: Field,
        window_size: usize,
        symbol_size_max: usize,
        backend: Backend,
        supply: &mut impl Supply<Storage = S>,
    ) -> Result<Self, CodecError> {
        let (ring, shape) = ring_of(field, window_size, symbol_size_max)?;
        Ok(Self {
            shape,
            window_size,
            ring,
            base: 0,
            start: 0,
            end: 0,
            equations: Equations::new(&shape, ring, backend, supply),
            decoded: RingSet::new(ring),
            pivots: RingSet::new(ring),
            fresh: RingSet::new(ring),
        })
    }

    /// Adds source symbol `id`. It is dependent if that symbol is already decoded, even if the
    /// decoded one is longer by trailing zeros.
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
        let slot = self.slot(id);
        if self.decoded.contains(slot) {
            return Ok(WindowOutcome::Dependent);
        }
        if self.pivots.contains(slot) {
            let pivot = self.equations.replace_by_source(slot, symbol, self.start);
            self.pivots.remove(slot);
            if let Some(pivot) = pivot {
                self.pivots.insert(pivot);
            }
        } else {
            self.equations.add_source(slot, symbol);
        }
        self.note_decoded(slot);
        self.note_determined();
        Ok(WindowOutcome::Innovative)
    }

    /// Adds a coded symbol: the combination `payload` of the `count` symbols from id `first` on. A
    /// shorter payload counts as padded with zeros; an all-zero vector is dependent.
    ///
    /// The run may begin before the window. The symbol is stale only if it also ends there, or if a
    /// dropped symbol has a nonzero coefficient.
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
        if start.is_none() {
            return Ok(WindowOutcome::Dependent);
        }
        let (ring, slot) = (self.ring, self.ring.slot(first));
        let write = |around: &mut [u8]| ring.wrap_vector(field, vector, slot, around);
        let Some(pivot) = self.equations.add_coded(self.start, write, payload) else {
            return Ok(WindowOutcome::Dependent);
        };
        self.pivots.insert(pivot);
        self.note_determined();
        Ok(WindowOutcome::Innovative)
    }

    /// Drops all symbols before `id`, decoded or not, and returns how many of them were not
    /// decoded. An id before the window changes nothing; one beyond it empties the window, and all
    /// ids in between count as not decoded.
    pub fn advance_to(&mut self, id: u64) -> u64 {
        if id <= self.base {
            return 0;
        }
        let count = (id.min(self.end) - self.base) as usize;
        let mut missed = id - self.base;
        self.equations.let_go(self.start, count);
        for distance in 0..count {
            let slot = self.ring.after(self.start, distance);
            missed -= u64::from(self.decoded.contains(slot));
            self.decoded.remove(slot);
            self.fresh.remove(slot);
            self.pivots.remove(slot);
        }
        self.start = self.ring.slot(id);
        self.base = id;
        self.end = self.end.max(id);
        missed
    }

    /// Recodes: draws a combination of the rows held that only cover the `count` symbols from id
    /// `first` on, uniformly from the nonzero ones, and writes its coding vector over this run and
    /// its payload.
    ///
    /// `None` if there is no such row. Over the whole window, [`base`](Self::base)..
    /// [`end`](Self::end), all rows qualify.
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
        self.recode_batch(first, count, rng, vector_out, &mut [payload_out])
    }

    /// Draws several such combinations at once, faster than one by one: writes one coding vector
    /// per entry of `payloads_out` to `vectors_out`, one after the other. All payloads of a batch
    /// are padded with zeros to the longest of them.
    ///
    /// `None` if there is no row to combine.
    ///
    /// # Errors
    /// As [`recode`](Self::recode).
    pub fn recode_batch(
        &self,
        first: u64,
        count: usize,
        rng: &mut (impl Rng + ?Sized),
        vectors_out: &mut [u8],
        payloads_out: &mut [&mut [u8]],
    ) -> Result<Option<Recoded>, CodecError> {
        let field = self.shape.field;
        check_run(first, count, self.base, self.end)?;
        let size = field.vector_len_bytes(count);
        let (expected, given) = (size * payloads_out.len(), vectors_out.len());
        let vectors = vectors_out.get_mut(..expected);
        let vectors = vectors.ok_or(CodecError::BufferTooShort { expected, given })?;
        let rows = self.rows_within(first, first + count as u64);
        let len = self.recoded_len_max(&rows);
        if let Some(out) = payloads_out.iter().find(|out| out.len() < len) {
            return Err(CodecError::BufferTooShort { expected: len, given: out.len() });
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let run = (self.slot(first), count);
        if let [out] = payloads_out {
            let len = self.recode_tile::<1>(run, &rows, rng, &mut [vectors], &mut [out], None)?;
            return Ok(Some(Recoded { count, len }));
        }
        let tile = tile(field);
        for (vectors, outs) in vectors.chunks_mut(size * tile).zip(payloads_out.chunks_mut(tile)) {
            let mut parts: [&mut [u8]; OUTPUTS_MAX] = Default::default();
            parts.iter_mut().zip(vectors.chunks_exact_mut(size)).for_each(|(to, from)| *to = from);
            let parts = &mut parts[..outs.len()];
            if outs.len() <= TILE {
                self.recode_tile::<TILE>(run, &rows, rng, parts, outs, Some(len))?;
            } else {
                self.recode_tile::<OUTPUTS_MAX>(run, &rows, rng, parts, outs, Some(len))?;
            }
        }
        Ok(Some(Recoded { count, len }))
    }

    /// Id of the first symbol of the window.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// One more than the highest id in the window that a received symbol, innovative or dependent,
    /// covers, or that the window was advanced to.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Id of the first symbol of the window that is not decoded; [`end`](Self::end) if all are. All
    /// earlier ones can be delivered in order.
    pub fn in_order_end(&self) -> u64 {
        match self.decoded.first_absent(self.start, self.known()) {
            Some(distance) => self.base + distance as u64,
            None => self.end,
        }
    }

    /// Rank: decoded symbols, plus innovative coded symbols not yet resolved.
    pub fn rank(&self) -> usize {
        self.decoded_count() + self.pivots.len()
    }

    /// Number of decoded symbols in the window; never more than the rank.
    pub fn decoded_count(&self) -> usize {
        self.decoded.len()
    }

    /// Number of symbols in the window that are not decoded.
    pub fn missing_count(&self) -> usize {
        self.known() - self.decoded_count()
    }

    /// Number of innovative symbols needed to decode the whole window: the missing symbols, minus
    /// the coded symbols held.
    pub fn deficit(&self) -> usize {
        self.known() - self.rank()
    }

    /// Whether symbol `id` is in the window and *seen* (Sundararajan et al., Network Coding Meets
    /// TCP, 2011): the received symbols determine it up to symbols with higher ids. In reduced
    /// form, a seen symbol is a pivot, and decoded symbols are pivots of rows with nothing else.
    pub fn is_seen(&self, id: u64) -> bool {
        self.in_window(id)
            .is_some_and(|slot| self.decoded.contains(slot) || self.pivots.contains(slot))
    }

    /// Id of the first symbol of the window that is not [seen](Self::is_seen); [`end`](Self::end)
    /// if all are. TCP/NC acknowledges all earlier ones.
    pub fn seen_end(&self) -> u64 {
        let is_unseen = |distance: &usize| {
            let slot = self.ring.after(self.start, *distance);
            !self.decoded.contains(slot) && !self.pivots.contains(slot)
        };
        (0..self.known()).find(is_unseen).map_or(self.end, |distance| self.base + distance as u64)
    }

    /// Whether symbol `id` is in the window and decoded.
    pub fn is_decoded(&self, id: u64) -> bool {
        self.in_window(id).is_some_and(|slot| self.decoded.contains(slot))
    }

    /// The first decoded symbol in the window at or after `id`.
    pub fn next_decoded(&self, id: u64) -> Option<u64> {
        let from = id.max(self.base);
        let count = self.end.checked_sub(from)? as usize;
        let distance = self.decoded.first(self.slot(from), count)?;
        Some(from + distance as u64)
    }

    /// Writes a bitmap of missing symbols: bit `i % 8` (least significant first) of byte `i / 8`
    /// for id `base + i`, as far as `out` reaches; bits from [`end`](Self::end) on are zero.
    pub fn missing_bitmap(&self, out: &mut [u8]) {
        out.fill(0);
        for index in 0..self.known().min(8 * out.len()) {
            if !self.decoded.contains(self.ring.after(self.start, index)) {
                out[index / 8] |= 1 << (index % 8);
            }
        }
    }

    /// The lowest decoded id of the window that this call has not returned yet.
    ///
    /// Draining it after each arrival gives the symbols that the arrival decoded.
    pub fn poll_decoded(&mut self) -> Option<u64> {
        let distance = self.fresh.first(self.start, self.known())?;
        self.fresh.remove(self.ring.after(self.start, distance));
        Some(self.base + distance as u64)
    }

    /// Symbol `id`, if it is decoded and not dropped yet.
    pub fn symbol(&self, id: u64) -> Option<&[u8]> {
        let slot = self.in_window(id)?;
        self.decoded.contains(slot).then(|| self.equations.payload(slot))
    }

    /// Calls `see` with each unresolved coded symbol held: its coding vector over the whole window,
    /// and its payload. A new decoder whose window begins with the same id, and that receives the
    /// decoded symbols and then these, has the same state and recodes alike.
    pub fn each_coded(&self, mut see: impl FnMut(&[u8], &[u8])) {
        let (field, count) = (self.shape.field, self.known());
        for slot in self.pivots.iter(self.start, count) {
            let mut vector = [0; MAX_BLOCK_SIZE];
            let vector = &mut vector[..field.vector_len_bytes(count)];
            self.ring.unwrap_vector(field, self.equations.arrived(slot), self.start, vector);
            field.mask_unused(vector, count);
            see(vector, self.equations.payload(slot));
        }
    }

    /// Clears the decoder; the window begins with `first`. Keeps the memory.
    pub fn reset(&mut self, first: u64) {
        self.equations.reset();
        self.decoded.clear();
        self.pivots.clear();
        self.fresh.clear();
        (self.base, self.end) = (first, first);
        self.start = self.ring.slot(first);
    }

    /// The field of the coefficients.
    pub fn field(&self) -> Field {
        self.shape.field
    }

    /// Maximum number of symbols in the window.
    pub fn window_size(&self) -> usize {
        self.window_size
    }

    /// Maximum symbol size, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// Outcome for a symbol that ends before or beyond the possible window.
    fn misplaced(&self, end: u64) -> Option<WindowOutcome> {
        if end <= self.base {
            Some(WindowOutcome::Stale)
        } else if end - self.base > self.window_size as u64 {
            Some(WindowOutcome::Ahead)
        } else {
            None
        }
    }

    /// Number of symbols in the window.
    fn known(&self) -> usize {
        (self.end - self.base) as usize
    }

    /// The slot of an id that the window contains or is about to contain.
    #[inline]
    fn slot(&self, id: u64) -> usize {
        self.ring.after(self.start, (id - self.base) as usize)
    }

    /// The slot of an id, if the window contains it.
    #[inline]
    fn in_window(&self, id: u64) -> Option<usize> {
        (self.base..self.end).contains(&id).then(|| self.slot(id))
    }

    #[inline]
    fn note_decoded(&mut self, slot: usize) {
        self.decoded.insert(slot);
        self.fresh.insert(slot);
    }

    /// Turns the rows that the last arrival determined into decoded symbols.
    #[inline]
    fn note_determined(&mut self) {
        for &row in self.equations.determined() {
            self.pivots.remove(row.into());
            self.decoded.insert(row.into());
            self.fresh.insert(row.into());
        }
    }

    /// Pivots of the rows that only cover symbols in `first..end`.
    fn rows_within(&self, first: u64, end: u64) -> RingSet {
        let mut rows = RingSet::new(self.ring);
        let (from, count) = (self.slot(first), (end - first) as usize);
        self.decoded.iter(from, count).for_each(|slot| rows.insert(slot));
        let (behind, beyond) = (self.ring.after(from, count), (self.end - end) as usize);
        for slot in self.pivots.iter(from, count) {
            let left = self.equations.first_left(slot, behind);
            if left.is_none_or(|distance| distance >= beyond) {
                rows.insert(slot);
            }
        }
        rows
    }

    /// Length of the longest payload that a combination of rows can have.
    fn recoded_len_max(&self, rows: &RingSet) -> usize {
        let slots = self.ring.slots();
        let len = |slot| match self.decoded.contains(slot) {
            true => self.equations.payload(slot).len(),
            false => self.equations.row_len(slot),
        };
        rows.iter(0, slots).map(len).max().unwrap_or(0)
    }

    /// Draws up to `N` combinations over a run, given as its first slot and its length; the buffers
    /// are long enough. Payloads are written with length `len`, if given, or else with their own,
    /// which is returned.
    fn recode_tile<const N: usize>(
        &self,
        (first, count): (usize, usize),
        rows: &RingSet,
        rng: &mut (impl Rng + ?Sized),
        vectors_out: &mut [&mut [u8]],
        outs: &mut [&mut [u8]],
        len: Option<usize>,
    ) -> Result<usize, CodecError> {
        let (field, slots) = (self.shape.field, self.ring.slots());
        let mut factors = [[0; MAX_BLOCK_SIZE]; N];
        let row_count = rows.len();
        for factors in factors.iter_mut().take(outs.len()) {
            let mut drawn = [0; MAX_BLOCK_SIZE];
            field.draw_vector(row_count, rng, &mut drawn)?;
            for (place, slot) in rows.iter(self.start, slots).enumerate() {
                field.set_coefficient(factors, slot, field.coefficient(&drawn, place));
            }
        }
        let mut vectors = [[0; MAX_BLOCK_SIZE]; N];
        let mut of_payloads = [[0; MAX_BLOCK_SIZE]; N];
        self.equations.combine_rows(&factors, outs.len(), &mut vectors, &mut of_payloads);
        for (vector, out) in vectors.iter().zip(vectors_out) {
            self.ring.unwrap_vector(field, vector, first, out);
            field.mask_unused(out, count);
        }
        let vector_len = field.vector_len_bytes(slots);
        let of_payloads = of_payloads.each_ref().map(|factors| &factors[..vector_len]);
        let of_payloads = &of_payloads[..outs.len()];
        let own_len = |factors: &&[u8]| self.equations.combined_len(factors);
        let len = len.unwrap_or_else(|| of_payloads.iter().map(own_len).max().unwrap_or(0));
        self.equations.combine(of_payloads, outs, len);
        Ok(len)
    }
}
