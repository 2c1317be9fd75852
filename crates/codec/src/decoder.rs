//! Last coding step on the way of a packet: source and coded symbols in, source symbols out as
//! soon as they are determined.
//!
//! 1. The coefficients of what arrived are eliminated, without its payload: see
//!    [`tableau`](crate::tableau). Nothing left: the symbol is dependent, and its payload was never
//!    touched.
//! 2. An innovative payload is kept as it came.
//! 3. Source symbols that have become determined by it are solved for, all at once: each is one
//!    combination of payloads. When the last symbol of a dense block arrives that is all of them,
//!    when a source symbol does it is none, and after the loss of `e` symbols it is the `e`.

use alloc::vec::Vec;

use rand::Rng;

use crate::kernel::OUTPUTS_MAX;
use crate::recoder::{TILE, draw_factors, tile};
use crate::rows::{IndexSet, Layout, Payloads, Shape};
use crate::storage::{Heap, Lent, Storage, Supply};
use crate::tableau::{Tableau, VECTOR_LEN_MAX, VECTOR_LEN_SMALL};
use crate::{Backend, CodecError, Field, Recoded};

/// What an arriving symbol was worth.
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
    /// It raised the rank by one.
    Innovative,
    /// It is a combination of what was there before, and is dropped.
    Dependent,
}

/// A progressive decoder of one block.
///
/// A symbol is decoded at the moment when the symbols received determine it, whether or not the
/// block is complete (partial decoding). The payload of a coded symbol is taken at its word: an
/// inconsistent one is not detected, and changes what is decoded.
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
    /// What came, by pivot.
    payloads: Payloads<S>,
    /// Source symbols that did not come as such.
    solved: Payloads<S>,
    known_count: usize,
}

impl BlockDecoder {
    /// A decoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes.
    ///
    /// All memory is taken here: twice `block_size * symbol_size_max` bytes, two or three times
    /// `block_size` coding vectors, and a little; payloads once more where symbols are interleaved
    /// to be solved for (GFNI, GF(2) and GF(2^4)).
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

    /// The same, with instructions of one's own choice.
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

/// In memory lent to it.
impl<'a> BlockDecoder<&'a mut [u8]> {
    /// A decoder that keeps payloads in `storage`, which is lent to it, and has instructions of
    /// one's own choice. What is in the memory does not matter, nor how it is aligned; what is left
    /// of it is not touched. Coding vectors and bookkeeping are its own. All else is as for
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

    /// Bytes of storage that such a decoder takes; without a backend, the most that any takes, on
    /// whatever machine.
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

    /// Takes in source symbol `index`. It is dependent if that symbol is decoded already, even if
    /// what was decoded is longer by trailing zeros.
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
            // It has its own length as it came.
            self.solved.set(index, symbol);
        }
        if self.tableau.has_fresh() {
            let mut fresh = self.tableau.take_fresh();
            fresh.remove(index);
            self.solve(&fresh);
        }
        Ok(Outcome::Innovative)
    }

    /// Takes in a coded symbol: the combination `payload` of the first `count` symbols with coding
    /// vector `vector`. A payload shorter than others stands for one padded with zeros; unused
    /// bits of the vector's last byte are ignored; a vector that is all zero is dependent.
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

    /// Draws a combination of all rows held, uniform among those that are not zero, and writes its
    /// coding vector over the first [`known_count`](Self::known_count) symbols and its payload.
    ///
    /// `None` when no row is held, or when a buffer is too short:
    /// [`vector_len_bytes`](Field::vector_len_bytes) of the block size and `symbol_size_max` are
    /// always enough.
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

    /// Draws several combinations at once, faster than one by one: writes as many coding vectors
    /// to `vectors_out`, one after the other, as there are `payloads_out`. All payloads of a batch
    /// are as long as the longest of them.
    ///
    /// `None` when no row is held, or when a buffer is too short.
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
        // Every payload was written so far.
        Some(Recoded { count, len: self.payloads.longest() })
    }

    /// Number of innovative symbols received: rows held.
    pub fn rank(&self) -> usize {
        self.tableau.rank()
    }

    /// Whether all symbols of the block are decoded: the rank is the block size.
    pub fn is_complete(&self) -> bool {
        self.rank() == self.shape.block_size
    }

    /// One more than the highest symbol index referred to so far, by a source symbol or by the
    /// count of a coded one, innovative or not; 0 at first.
    pub fn known_count(&self) -> usize {
        self.known_count
    }

    /// Number of decoded symbols; never more than the rank.
    pub fn decoded_count(&self) -> usize {
        self.tableau.determined_count()
    }

    /// Whether symbol `index` is decoded; false for an index that the block does not have.
    pub fn is_decoded(&self, index: usize) -> bool {
        self.tableau.is_determined(index)
    }

    /// Writes which symbols are decoded: bit `i % 8` (least significant first) of byte `i / 8` for
    /// symbol `i`, as far as `out` reaches; bits beyond the block are zero.
    pub fn decoded_bitmap(&self, out: &mut [u8]) {
        self.tableau.write_determined(out);
    }

    /// Symbol `index`, once decoded.
    ///
    /// A symbol that came as a source symbol has its own length. One that was solved for is as
    /// long as the longest payload that went into it: trailing zeros may be padding.
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        let from = if self.tableau.is_source(index) { &self.payloads } else { &self.solved };
        self.is_decoded(index).then(|| from.payload(index))
    }

    /// Shows the symbols held to `see`: coding vector over the first
    /// [`known_count`](Self::known_count) symbols, and payload. A new decoder that takes them in
    /// with that count has the rank of this one, and decodes what this one does.
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

    /// Forgets the block, for the next one; the memory is kept.
    pub fn reset(&mut self) {
        self.tableau.reset();
        self.payloads.clear();
        self.known_count = 0;
    }

    /// The field of the coefficients.
    pub fn field(&self) -> Field {
        self.shape.field
    }

    /// Symbols in the block.
    pub fn block_size(&self) -> usize {
        self.shape.block_size
    }

    /// Length of the longest symbol that the decoder takes, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// Stage 2.
    #[inline(always)]
    fn keep(&mut self, slot: usize, payload: &[u8]) {
        self.payloads.set(slot, payload);
    }

    /// Stage 3 when nothing is left to come, for a few symbols: each is put in the place of the
    /// payload that brought it, which is of no use any more. Returns whether it was done.
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

    /// Stage 3: source symbols that are determined by now, other than those that came as such.
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

    /// Up to `N` combinations; the buffers are long enough. Returns the length of the payloads.
    fn recode_tile<const N: usize>(
        &self,
        rng: &mut (impl Rng + ?Sized),
        vectors: &mut [&mut [u8]],
        outs: &mut [&mut [u8]],
    ) -> Option<usize> {
        // Small blocks do not pay for the zeros of large ones.
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

/// What came, and what is solved for.
fn layouts(shape: &Shape, backend: Option<Backend>) -> [Layout; 2] {
    [true, false].map(|mirrored| Layout::of_payloads(shape, backend, mirrored))
}
