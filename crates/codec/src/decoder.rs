//! Last coding step on the way of a packet: source and coded symbols in, source symbols out as
//! soon as they are determined.
//!
//! The rows held are kept in reduced row echelon form on arrival:
//!
//! 1. Reduce the coefficients of what arrived by the rows held. In reduced form the factors are
//!    the arriving coefficients themselves. Nothing left: the symbol is dependent, and its payload
//!    was never touched.
//! 2. The first coefficient left is the new row's pivot, the number of its slot. Build its payload
//!    there, scale both to a pivot of 1.
//! 3. Clear the pivot's column in the other rows. A row left with its pivot only is a decoded
//!    symbol.
//!
//! A decoded row is known by a flag, its coefficients are neither read nor written: with a
//! systematic encoder nearly all rows are such, and a source symbol costs a copy.

use rand::Rng;

use crate::rows::{IndexSet, Matrix, Payloads, Shape};
use crate::{CodecError, Field, MAX_BLOCK_SIZE, Recoded, field::is_zero};

/// What an arriving symbol was worth.
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
#[derive(Clone, Debug)]
pub struct BlockDecoder {
    shape: Shape,
    /// Row `p` has pivot `p`; two more rows are for what is arriving.
    coefficients: Matrix,
    payloads: Payloads,
    /// Pivots of the rows held.
    held: IndexSet,
    /// Pivots of the rows that are decoded symbols.
    decoded: IndexSet,
    rank: usize,
    known_count: usize,
    payload_len_max: usize,
}

impl BlockDecoder {
    /// A decoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes.
    ///
    /// All memory is taken here: `block_size * symbol_size_max` bytes, and `block_size + 2`
    /// coding vectors.
    ///
    /// # Errors
    /// [`CodecError::BlockSize`] and [`CodecError::SymbolSizeMax`] when a size is zero or beyond
    /// [`MAX_BLOCK_SIZE`], [`MAX_SYMBOL_SIZE`](crate::MAX_SYMBOL_SIZE).
    pub fn new(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
    ) -> Result<Self, CodecError> {
        let shape = Shape::new(field, block_size, symbol_size_max)?;
        Ok(Self {
            shape,
            coefficients: Matrix::new(&shape, block_size + 2),
            payloads: Payloads::new(&shape),
            held: IndexSet::EMPTY,
            decoded: IndexSet::EMPTY,
            rank: 0,
            known_count: 0,
            payload_len_max: 0,
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
        if self.decoded.contains(index) {
            return Ok(Outcome::Dependent);
        }
        self.payload_len_max = self.payload_len_max.max(symbol.len());
        self.rank += 1;
        if self.held.contains(index) {
            self.replace_by_source(index, symbol);
        } else {
            self.payloads.set(index, symbol);
            self.held.insert(index);
            self.decoded.insert(index);
            self.clear_column(index);
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
        let (arrived, reduced) = (self.arrived(), self.reduced());
        self.coefficients.set(arrived, vector, count);
        self.reduce_arrived();
        let Some(pivot) = self.coefficients.first_nonzero(reduced, 0) else {
            return Ok(Outcome::Dependent);
        };
        self.payload_len_max = self.payload_len_max.max(payload.len());
        self.rank += 1;
        self.coefficients.copy(pivot, reduced);
        self.payloads.set(pivot, payload);
        for row in self.held.iter() {
            let factor = self.coefficients.coefficient(arrived, row);
            if factor != 0 {
                self.payloads.add_scaled(pivot, factor, row);
            }
        }
        self.settle(pivot);
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
        let (field, count) = (self.shape.field, self.known_count);
        let vector = vector_out.get_mut(..field.vector_len_bytes(count))?;
        if self.rank == 0 || payload_out.len() < self.payload_len_max {
            return None;
        }
        let mut drawn = [0; MAX_BLOCK_SIZE];
        field.draw_vector(self.rank, rng, &mut drawn).ok()?;
        vector.fill(0);
        let mut len = 0;
        for (place, row) in self.held.iter().enumerate() {
            let factor = field.coefficient(&drawn, place);
            if factor == 0 {
                continue;
            }
            if self.decoded.contains(row) {
                field.add_to_coefficient(vector, row, factor);
            } else {
                let coefficients = &self.coefficients.row(row)[..vector.len()];
                field.add_scaled(vector, factor, coefficients);
            }
            len = self.payloads.add_to(payload_out, len, factor, row);
        }
        Some(Recoded { count, len })
    }

    /// Number of innovative symbols received: rows held.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Whether all symbols of the block are decoded: the rank is the block size.
    pub fn is_complete(&self) -> bool {
        self.rank == self.shape.block_size
    }

    /// One more than the highest symbol index referred to so far, by a source symbol or by the
    /// count of a coded one, innovative or not; 0 at first.
    pub fn known_count(&self) -> usize {
        self.known_count
    }

    /// Number of decoded symbols; never more than the rank.
    pub fn decoded_count(&self) -> usize {
        self.decoded.len()
    }

    /// Whether symbol `index` is decoded; false for an index that the block does not have.
    pub fn is_decoded(&self, index: usize) -> bool {
        self.decoded.contains(index)
    }

    /// Writes which symbols are decoded: bit `i % 8` (least significant first) of byte `i / 8` for
    /// symbol `i`, as far as `out` reaches; bits beyond the block are zero.
    pub fn decoded_bitmap(&self, out: &mut [u8]) {
        self.decoded.write_bitmap(out);
    }

    /// Symbol `index`, once decoded.
    ///
    /// A symbol that came as a source symbol has its own length. One that was solved for is as
    /// long as the longest payload that went into it: trailing zeros may be padding.
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        self.decoded.contains(index).then(|| self.payloads.payload(index))
    }

    /// Forgets the block, for the next one; the memory is kept.
    pub fn reset(&mut self) {
        self.held = IndexSet::EMPTY;
        self.decoded = IndexSet::EMPTY;
        self.rank = 0;
        self.known_count = 0;
        self.payload_len_max = 0;
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

    /// The matrix row with an arriving vector as it came.
    fn arrived(&self) -> usize {
        self.shape.block_size
    }

    /// The matrix row with an arriving vector after reduction.
    fn reduced(&self) -> usize {
        self.shape.block_size + 1
    }

    /// Stage 1: the arrived vector minus its part in the rows held.
    fn reduce_arrived(&mut self) {
        let (arrived, reduced) = (self.arrived(), self.reduced());
        self.coefficients.copy(reduced, arrived);
        for row in self.decoded.iter() {
            self.coefficients.clear_coefficient(reduced, row);
        }
        if is_zero(self.coefficients.row(reduced)) {
            return;
        }
        for row in self.held.difference(&self.decoded) {
            let factor = self.coefficients.coefficient(arrived, row);
            if factor != 0 {
                self.coefficients.add_scaled(reduced, factor, row);
            }
        }
    }

    /// A source symbol takes the place of the row that has its index as pivot, and keeps its own
    /// length; the row, less the symbol, moves on to its next coefficient. It has one: else it
    /// would be decoded.
    fn replace_by_source(&mut self, index: usize, symbol: &[u8]) {
        let Some(pivot) = self.coefficients.first_nonzero(index, index + 1) else {
            debug_assert!(false, "row {index} has its pivot only and is not decoded");
            return;
        };
        self.coefficients.copy(pivot, index);
        self.coefficients.clear_coefficient(pivot, index);
        self.payloads.copy(pivot, index);
        self.payloads.set(index, symbol);
        self.payloads.add_scaled(pivot, 1, index);
        self.decoded.insert(index);
        self.settle(pivot);
    }

    /// Stages 2 and 3 for the new row in slot `pivot`, which is reduced by the rows held.
    fn settle(&mut self, pivot: usize) {
        let inverse = self.shape.field.invert(self.coefficients.coefficient(pivot, pivot));
        self.coefficients.scale(pivot, inverse);
        self.payloads.scale(pivot, inverse);
        self.held.insert(pivot);
        self.note_if_decoded(pivot);
        self.clear_column(pivot);
    }

    /// Stage 3: subtracts row `pivot` from the rows that have its column. Only rows with a lower
    /// pivot can: a row starts at its pivot.
    fn clear_column(&mut self, pivot: usize) {
        // The set is copied because rows become decoded on the way, each after its own turn.
        let decoded = self.decoded.clone();
        let held = self.held.clone();
        for row in held.difference(&decoded).take_while(|&row| row < pivot) {
            let factor = self.coefficients.coefficient(row, pivot);
            if factor == 0 {
                continue;
            }
            if decoded.contains(pivot) {
                self.coefficients.clear_coefficient(row, pivot);
            } else {
                self.coefficients.add_scaled(row, factor, pivot);
            }
            self.payloads.add_scaled(row, factor, pivot);
            self.note_if_decoded(row);
        }
    }

    fn note_if_decoded(&mut self, row: usize) {
        if self.coefficients.first_nonzero(row, row + 1).is_none() {
            self.decoded.insert(row);
        }
    }
}
