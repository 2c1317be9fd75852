//! What a helper or relay holds of a block it does not have to read: overheard symbols in, fresh
//! combinations of them out.
//!
//! Only coefficients are eliminated, and only forward (echelon form), to tell what is innovative.
//! Payloads stay as they came, so that an arriving symbol costs one copy of its payload, and a
//! dependent one not even that.

use rand::Rng;

use crate::rows::{IndexSet, Matrix, Payloads, Shape};
use crate::{CodecError, Field, MAX_BLOCK_SIZE, Outcome};

/// The size of a recoded symbol, written to the caller's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recoded {
    /// Symbols that the coding vector covers.
    pub count: usize,
    /// Length of the payload, in bytes: that of the longest payload combined.
    pub len: usize,
}

/// The innovative symbols of one block, as they came.
#[derive(Clone, Debug)]
pub struct Recoder {
    shape: Shape,
    /// Coding vectors in order of arrival, those of `payloads`.
    vectors: Matrix,
    payloads: Payloads,
    /// Echelon form of `vectors`: row `p` has pivot `p`, with coefficient 1. One more row is for
    /// what is arriving.
    echelon: Matrix,
    /// Pivots of the rows of the echelon form.
    pivots: IndexSet,
    /// Pivots whose row is a unit vector; its coefficients are neither read nor written.
    units: IndexSet,
    rank: usize,
    known_count: usize,
    payload_len_max: usize,
}

impl Recoder {
    /// A recoder of blocks of `block_size` symbols of up to `symbol_size_max` bytes.
    ///
    /// All memory is taken here: `block_size * symbol_size_max` bytes, and twice `block_size`
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
            vectors: Matrix::new(&shape, block_size),
            payloads: Payloads::new(&shape),
            echelon: Matrix::new(&shape, block_size + 1),
            pivots: IndexSet::EMPTY,
            units: IndexSet::EMPTY,
            rank: 0,
            known_count: 0,
            payload_len_max: 0,
        })
    }

    /// Takes in source symbol `index`.
    ///
    /// # Errors
    /// As [`BlockDecoder::add_source`](crate::BlockDecoder::add_source).
    pub fn add_source(&mut self, index: usize, symbol: &[u8]) -> Result<Outcome, CodecError> {
        self.shape.check_index(index)?;
        self.shape.check_symbol(symbol)?;
        self.known_count = self.known_count.max(index + 1);
        if self.units.contains(index) {
            return Ok(Outcome::Dependent);
        }
        // The unit vector becomes the row of its pivot. A row that was there goes on without it,
        // and what is left of it tells whether the rank is higher now.
        let displaced = self.pivots.contains(index);
        self.pivots.insert(index);
        self.units.insert(index);
        if displaced {
            self.echelon.copy(self.arriving(), index);
            if self.eliminate() == Outcome::Dependent {
                return Ok(Outcome::Dependent);
            }
        }
        self.vectors.set_unit(self.rank, index);
        self.keep(symbol);
        Ok(Outcome::Innovative)
    }

    /// Takes in a coded symbol: the combination `payload` of the first `count` symbols with coding
    /// vector `vector`.
    ///
    /// # Errors
    /// As [`BlockDecoder::add_coded`](crate::BlockDecoder::add_coded).
    pub fn add_coded(
        &mut self,
        vector: &[u8],
        count: usize,
        payload: &[u8],
    ) -> Result<Outcome, CodecError> {
        self.shape.check_vector(vector, count, self.shape.block_size)?;
        self.shape.check_symbol(payload)?;
        self.known_count = self.known_count.max(count);
        self.echelon.set(self.arriving(), vector, count);
        if self.eliminate() == Outcome::Dependent {
            return Ok(Outcome::Dependent);
        }
        self.vectors.set(self.rank, vector, count);
        self.keep(payload);
        Ok(Outcome::Innovative)
    }

    /// Draws a combination of all symbols held, uniform among those that are not zero, and writes
    /// its coding vector over the first [`known_count`](Self::known_count) symbols and its
    /// payload.
    ///
    /// `None` when nothing is held, or when a buffer is too short:
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
        for slot in 0..self.rank {
            let factor = field.coefficient(&drawn, slot);
            if factor != 0 {
                field.add_scaled(vector, factor, &self.vectors.row(slot)[..vector.len()]);
                len = self.payloads.add_to(payload_out, len, factor, slot);
            }
        }
        Some(Recoded { count, len })
    }

    /// Number of innovative symbols received: symbols held.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// One more than the highest symbol index referred to so far, by a source symbol or by the
    /// count of a coded one, innovative or not; 0 at first.
    pub fn known_count(&self) -> usize {
        self.known_count
    }

    /// Forgets the block, for the next one; the memory is kept.
    pub fn reset(&mut self) {
        self.pivots = IndexSet::EMPTY;
        self.units = IndexSet::EMPTY;
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

    /// Length of the longest symbol that the recoder takes, in bytes.
    pub fn symbol_size_max(&self) -> usize {
        self.shape.symbol_size_max
    }

    /// The row of the echelon form with a vector that is arriving.
    fn arriving(&self) -> usize {
        self.shape.block_size
    }

    /// Reduces the arriving vector from left to right, and makes what is left a new row.
    fn eliminate(&mut self) -> Outcome {
        let arriving = self.arriving();
        let mut start = 0;
        while let Some(index) = self.echelon.first_nonzero(arriving, start) {
            let coefficient = self.echelon.coefficient(arriving, index);
            if self.units.contains(index) {
                self.echelon.clear_coefficient(arriving, index);
            } else if self.pivots.contains(index) {
                self.echelon.add_scaled(arriving, coefficient, index);
            } else {
                self.echelon.copy(index, arriving);
                self.echelon.scale(index, self.shape.field.invert(coefficient));
                self.pivots.insert(index);
                return Outcome::Innovative;
            }
            start = index + 1;
        }
        Outcome::Dependent
    }

    /// Holds the payload of the vector just put in place.
    fn keep(&mut self, payload: &[u8]) {
        self.payloads.set(self.rank, payload);
        self.payload_len_max = self.payload_len_max.max(payload.len());
        self.rank += 1;
    }
}
