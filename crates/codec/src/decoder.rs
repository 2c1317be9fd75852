//! Block decoder, the last coding step on a packet's path: it takes source and coded symbols, and
//! gives out source symbols as soon as they are determined.
//!
//! 1. The coefficients of an arriving symbol are eliminated, without its payload: see
//!    [`tableau`](crate::tableau). If nothing is left, the symbol is dependent, and its payload is
//!    never touched.
//! 2. The payload of an innovative symbol is stored unchanged.
//! 3. All source symbols that it determines are solved for together: each is one combination of
//!    payloads. These are all symbols when the last symbol of a dense block arrives, none when a
//!    source symbol does, and `e` after the loss of `e` symbols.

use alloc::vec::Vec;

use rand::Rng;

use crate::kernel::OUTPUTS_MAX;
use crate::recoder::{TILE, draw_factors, tile};
use crate::rows::{IndexSet, Layout, Payloads, Shape};
use crate::storage::{Heap, Lent, Storage, Supply};
use crate::tableau::{Tableau, VECTOR_LEN_MAX, VECTOR_LEN_SMALL};
use crate::{Backend, CodecError, Field, Recoded};

/// Effect of a received symbol.
///
/// ```
/// use corridor_codec::{BlockDecoder, Field, Outcome};
///
/// let mut decoder = BlockDecoder::new(Field::Gf2, 4, 8)?;
/// assert_eq!(decoder.add_source(2, b"two")?, Outcome::Innovative);
/// assert_eq!(decoder.add_source(2, b"two")?, Outcome::Dependent);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Innovative: it raised the rank by one.
    Innovative,
    /// Linearly dependent on the symbols already held; dropped.
    Dependent,
}

/// Progressive decoder of one block.
///
/// A source symbol is decoded as soon as the received symbols determine it, even if the block is
/// not complete (partial decoding). The payload of a coded symbol is trusted: an inconsistent one
/// goes undetected and corrupts decoded symbols.
///
/// ```
/// use corridor_codec::{BlockDecoder, Field};
///
/// let mut decoder = BlockDecoder::new(Field::Gf2, 3, 8)?;
/// // The sum of the first two symbols; then one of them, which gives the other.
/// decoder.add_coded(&[0b11], 2, &[5, 6])?;
/// assert_eq!((decoder.rank(), decoder.decoded_count()), (1, 0));
/// decoder.add_source(1, &[1, 2])?;
/// assert_eq!(decoder.symbol(0), Some(&[4, 4][..]));
/// assert!(!decoder.is_complete());
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockDecoder<S: Storage = Vec<u8>> {
    shape: Shape,
    tableau: Tableau,
    /// Received payloads, by pivot.
    payloads: Payloads<S>,
    /// Source symbols solved for rather than received.
    solved: Payloads<S>,
    known_count: usize,
}

impl BlockDecoder {
    /// A decoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes.
    ///
    /// Allocates all memory: twice `block_size * symbol_size_max` bytes, two or three times
    /// `block_size` coding vectors, and a little more; payloads once more if symbols are
    /// interleaved for solving (GFNI, GF(2) and GF(2^4)).
    ///
    /// # Errors
    /// [`CodecError::BlockSize`] and [`CodecError::SymbolSizeMax`] when a size is zero or beyond
    /// [`MAX_BLOCK_SIZE`](crate::MAX_BLOCK_SIZE), [`MAX_SYMBOL_SIZE`](crate::MAX_SYMBOL_SIZE).
    pub fn new(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
    ) -> Result<Self, CodecError> {
        Self::with_backend(field, block_size, symbol_size_max, Backend::detected())
    }

    /// Like [`new`](Self::new), with a given instruction set.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_backend(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
        backend: Backend,
    ) -> Result<Self, CodecError> {
        Self::build(Shape::new(field, block_size, symbol_size_max)?, backend, &mut Heap)
    }
}

/// In memory lent by the caller.
impl<'a> BlockDecoder<&'a mut [u8]> {
    /// A decoder that stores payloads in the borrowed `storage` and uses a given instruction set.
    /// The memory may have any contents and alignment; bytes that are not needed are not touched.
    /// Coding vectors and bookkeeping are in memory of its own. Otherwise as
    /// [`with_backend`](BlockDecoder::with_backend).
    ///
    /// ```
    /// use corridor_codec::{Backend, BlockDecoder, Field};
    ///
    /// let (field, backend) = (Field::Gf256, Backend::detected());
    /// let mut memory = vec![0; BlockDecoder::storage_len_bytes(field, 2, 8, backend)?];
    /// let mut decoder = BlockDecoder::with_storage(field, 2, 8, backend, &mut memory)?;
    /// decoder.add_coded(&[1, 1], 2, &[5, 6])?;
    /// decoder.add_source(1, &[1, 2])?;
    /// assert_eq!(decoder.symbol(0), Some(&[4, 4][..]));
    /// # Ok::<(), corridor_codec::CodecError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](BlockDecoder::new); [`CodecError::BufferTooShort`] when `storage` has fewer than
    /// [`storage_len_bytes`](Self::storage_len_bytes).
    pub fn with_storage(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
        backend: Backend,
        storage: &'a mut [u8],
    ) -> Result<Self, CodecError> {
        let expected = Self::storage_len_bytes(field, block_size, symbol_size_max, backend)?;
        let mut lent = Lent::new(storage, expected)?;
        Self::build(Shape::new(field, block_size, symbol_size_max)?, backend, &mut lent)
    }

    /// Bytes of storage that [`with_storage`](Self::with_storage) needs; without a backend, the
    /// most that any backend needs, on any machine.
    ///
    /// # Errors
    /// As [`new`](BlockDecoder::new).
    pub fn storage_len_bytes(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
        backend: impl Into<Option<Backend>>,
    ) -> Result<usize, CodecError> {
        let shape = Shape::new(field, block_size, symbol_size_max)?;
        Ok(layouts(&shape, backend.into()).iter().map(Layout::storage_len).sum())
    }
}

impl<S: Storage> BlockDecoder<S> {
    fn build(
        shape: Shape,
        backend: Backend,
        supply: &mut impl Supply<Storage = S>,
    ) -> Result<Self, CodecError> {
        let [payloads, solved] = layouts(&shape, Some(backend));
        Ok(Self {
            shape,
            tableau: Tableau::new(&shape, backend, true),
            payloads: Payloads::new(&shape, backend, payloads, supply),
            solved: Payloads::new(&shape, backend, solved, supply),
            known_count: 0,
        })
    }

    /// Adds source symbol `index`. It is dependent if that symbol is already decoded, even if the
    /// decoded one is longer by trailing zeros.
    ///
    /// # Errors
    /// [`CodecError::IndexOutOfRange`] unless `index` is below the block size;
    /// [`CodecError::SymbolLength`] when the symbol is empty or longer than `symbol_size_max`.
    pub fn add_source(&mut self, index: usize, symbol: &[u8]) -> Result<Outcome, CodecError> {
        self.shape.check_index(index)?;
        self.shape.check_symbol(symbol)?;
        self.known_count = self.known_count.max(index + 1);
        let Some(slot) = self.tableau.add_source(index) else {
            return Ok(Outcome::Dependent);
        };
        self.keep(slot, symbol);
        if slot != index {
            // A received symbol keeps its own length.
            self.solved.set(index, symbol);
        }
        if self.tableau.has_fresh() {
            let mut fresh = self.tableau.take_fresh();
            fresh.remove(index);
            self.solve(&fresh);
        }
        Ok(Outcome::Innovative)
    }

    /// Adds a coded symbol: the combination `payload` of the first `count` symbols with coding
    /// vector `vector`. A shorter payload counts as padded with zeros; unused bits of the vector's
    /// last byte are ignored; an all-zero vector is dependent.
    ///
    /// # Errors
    /// [`CodecError::CountOutOfRange`] unless `count` is in 1..=block size;
    /// [`CodecError::VectorLength`] unless the vector has
    /// [`vector_len_bytes`](Field::vector_len_bytes) of `count` bytes;
    /// [`CodecError::SymbolLength`] when the payload is empty or longer than `symbol_size_max`.
    pub fn add_coded(
        &mut self,
        vector: &[u8],
        count: usize,
        payload: &[u8],
    ) -> Result<Outcome, CodecError> {
        self.shape.check_vector(vector, count, self.shape.block_size)?;
        self.shape.check_symbol(payload)?;
        self.known_count = self.known_count.max(count);
        let Some(slot) = self.tableau.add_coded(vector, count) else {
            return Ok(Outcome::Dependent);
        };
        self.keep(slot, payload);
        if self.tableau.has_fresh() {
            let fresh = self.tableau.take_fresh();
            if !self.is_complete() || !self.solve_in_place(&fresh) {
                self.solve(&fresh);
            }
        }
        Ok(Outcome::Innovative)
    }

    /// Recodes: draws a combination of all rows held, uniformly from the nonzero ones, and writes
    /// its coding vector over the first [`known_count`](Self::known_count) symbols and its payload.
    ///
    /// `None` if no row is held, or a buffer is too short:
    /// [`vector_len_bytes`](Field::vector_len_bytes) of the block size and `symbol_size_max` always
    /// suffice.
    pub fn recode(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vector_out: &mut [u8],
        payload_out: &mut [u8],
    ) -> Option<Recoded> {
        let vector = vector_out.get_mut(..self.shape.field.vector_len_bytes(self.known_count))?;
        if self.rank() == 0 || payload_out.len() < self.payloads.longest() {
            return None;
        }
        let len = self.recode_tile::<1>(rng, &mut [vector], &mut [payload_out])?;
        Some(Recoded { count: self.known_count, len })
    }

    /// Draws several combinations at once, faster than one by one: writes one coding vector per
    /// entry of `payloads_out` to `vectors_out`, one after the other. All payloads of a batch are
    /// as long as the longest of them.
    ///
    /// `None` if no row is held, or a buffer is too short.
    pub fn recode_batch(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vectors_out: &mut [u8],
        payloads_out: &mut [&mut [u8]],
    ) -> Option<Recoded> {
        let (field, count) = (self.shape.field, self.known_count);
        let size = field.vector_len_bytes(count);
        let vectors = vectors_out.get_mut(..size * payloads_out.len())?;
        let short = payloads_out.iter().any(|out| out.len() < self.payloads.longest());
        if self.rank() == 0 || short {
            return None;
        }
        let tile = tile(field);
        for (vectors, outs) in vectors.chunks_mut(size * tile).zip(payloads_out.chunks_mut(tile)) {
            let mut rows: [&mut [u8]; OUTPUTS_MAX] = Default::default();
            rows.iter_mut().zip(vectors.chunks_exact_mut(size)).for_each(|(to, row)| *to = row);
            let rows = &mut rows[..outs.len()];
            if outs.len() <= TILE {
                self.recode_tile::<TILE>(rng, rows, outs)?;
            } else {
                self.recode_tile::<OUTPUTS_MAX>(rng, rows, outs)?;
            }
        }
        // Every payload has been written to this length.
        Some(Recoded { count, len: self.payloads.longest() })
    }

    /// Rank: number of innovative symbols received.
    pub fn rank(&self) -> usize {
        self.tableau.rank()
    }

    /// Whether all symbols of the block are decoded: the rank equals the block size.
    pub fn is_complete(&self) -> bool {
        self.rank() == self.shape.block_size
    }

    /// One more than the highest symbol index seen so far, in a source symbol or in the count of a
    /// coded one, innovative or not; initially 0.
    pub fn known_count(&self) -> usize {
        self.known_count
    }

    /// Number of decoded symbols; never more than the rank.
    pub fn decoded_count(&self) -> usize {
        self.tableau.determined_count()
    }

    /// Whether symbol `index` is decoded; false for an index outside the block.
    pub fn is_decoded(&self, index: usize) -> bool {
        self.tableau.is_determined(index)
    }

    /// Writes a bitmap of decoded symbols: bit `i % 8` (least significant first) of byte `i / 8`
    /// for symbol `i`, as far as `out` reaches; bits beyond the block are zero.
    pub fn decoded_bitmap(&self, out: &mut [u8]) {
        self.tableau.write_determined(out);
    }

    /// Symbol `index`, if it is decoded.
    ///
    /// A symbol received as a source symbol keeps its own length. One that was solved for is as
    /// long as the longest payload it was computed from: trailing zeros may be padding.
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        let from = if self.tableau.is_source(index) { &self.payloads } else { &self.solved };
        self.is_decoded(index).then(|| from.payload(index))
    }

    /// Calls `see` with each symbol held: its coding vector over the first
    /// [`known_count`](Self::known_count) symbols, and its payload. A new decoder that receives
    /// them with that count reaches the same rank, and decodes the same symbols.
    pub fn each_held(&self, mut see: impl FnMut(&[u8], &[u8])) {
        let field = self.shape.field;
        let len = field.vector_len_bytes(self.known_count);
        for slot in self.tableau.held().iter() {
            let mut unit = [0; VECTOR_LEN_MAX];
            let vector = if self.tableau.is_source(slot) {
                field.set_coefficient(&mut unit, slot, 1);
                &unit[..]
            } else {
                self.tableau.arrived(slot)
            };
            see(&vector[..len], self.payloads.payload(slot));
        }
    }

    /// Clears the block for the next one; keeps the memory.
    pub fn reset(&mut self) {
        self.tableau.reset();
        self.payloads.clear();
        self.known_count = 0;
    }

    /// The field of the coefficients.
    pub fn field(&self) -> Field {
        self.shape.field
    }

    /// Number of symbols in the block.
    pub fn block_size(&self) -> usize {
        self.shape.block_size
    }

    /// Maximum symbol size, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// Stage 2.
    #[inline(always)]
    fn keep(&mut self, slot: usize, payload: &[u8]) {
        self.payloads.set(slot, payload);
    }

    /// Stage 3 for a complete block and a few symbols: each replaces the payload that determined
    /// it, which is no longer needed. Returns whether it did so.
    fn solve_in_place(&mut self, wanted: &IndexSet) -> bool {
        let (mut vectors, mut targets, mut outputs) = ([&[][..]; TILE], [0; TILE], 0);
        let Some(len) = self.payloads.common_len().filter(|_| wanted.len() <= TILE) else {
            return false;
        };
        for (row, (vector, target)) in wanted.iter().zip(vectors.iter_mut().zip(&mut targets)) {
            (*vector, *target) = (self.tableau.row(row), row);
            outputs += 1;
        }
        let (vectors, targets) = (&vectors[..outputs], &targets[..outputs]);
        if !self.payloads.combine_in_place(vectors, self.shape.block_size, targets, len) {
            return false;
        }
        targets.iter().for_each(|&target| self.tableau.replace(target));
        true
    }

    /// Stage 3: solves for the source symbols determined by now, except those received as such.
    fn solve(&mut self, wanted: &IndexSet) {
        let wanted_count = wanted.len();
        if wanted_count == 0 {
            return;
        }
        if wanted_count >= TILE {
            self.payloads.mirror_all();
        }
        let (count, tableau, payloads) = (self.shape.block_size, &self.tableau, &self.payloads);
        // None of these rows is all zero.
        let common = payloads.common_len();
        let own_len =
            |row| common.unwrap_or_else(|| payloads.combined_len(tableau.row(row), count));
        let len = common.or_else(|| wanted.iter().map(own_len).max()).unwrap_or(0);
        let mut slots = self.solved.slots_mut(wanted);
        loop {
            let mut vectors = [&[][..]; OUTPUTS_MAX];
            let mut outs: [&mut [u8]; OUTPUTS_MAX] = Default::default();
            let mut outputs = 0;
            for (row, out) in slots.by_ref().take(OUTPUTS_MAX) {
                (vectors[outputs], outs[outputs]) = (tableau.row(row), out);
                outputs += 1;
            }
            if outputs == 0 {
                break;
            }
            payloads.combine(&vectors[..outputs], count, &mut outs[..outputs], len);
        }
        drop(slots);
        for row in wanted.iter() {
            self.solved.set_written(row, own_len(row), len);
        }
    }

    /// Draws up to `N` combinations; the buffers are long enough. Returns the payload length.
    fn recode_tile<const N: usize>(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vectors: &mut [&mut [u8]],
        outs: &mut [&mut [u8]],
    ) -> Option<usize> {
        // Small blocks need not zero the vectors of large ones.
        if self.shape.field.vector_len_bytes(self.shape.block_size) <= VECTOR_LEN_SMALL {
            self.recode_rows::<N, VECTOR_LEN_SMALL>(rng, vectors, outs)
        } else {
            self.recode_rows::<N, VECTOR_LEN_MAX>(rng, vectors, outs)
        }
    }

    fn recode_rows<const N: usize, const L: usize>(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vectors: &mut [&mut [u8]],
        outs: &mut [&mut [u8]],
    ) -> Option<usize> {
        let (field, count) = (self.shape.field, self.shape.block_size);
        let mut factors = [[0; L]; N];
        for factors in factors.iter_mut().take(outs.len()) {
            let mut drawn = [0; L];
            draw_factors(field, self.rank(), rng, &mut drawn)?;
            for (place, row) in self.tableau.held().iter().enumerate() {
                field.set_coefficient(factors, row, field.coefficient(&drawn, place));
            }
        }
        self.tableau.recode(&factors, vectors);
        let factors = factors.each_ref().map(|factors| &factors[..]);
        let factors = &factors[..outs.len()];
        let len = match factors {
            &[one] if N == 1 => self.payloads.combined_len(one, count),
            _ => self.payloads.longest(),
        };
        self.payloads.combine(factors, count, outs, len);
        Some(len)
    }
}

/// Layouts of the received payloads, and of the solved symbols.
fn layouts(shape: &Shape, backend: Option<Backend>) -> [Layout; 2] {
    [true, false].map(|mirrored| Layout::of_payloads(shape, backend, mirrored))
}
