//! The coefficients of a block's symbols, apart from their payloads.
//!
//! Each innovative symbol gets the number of a source symbol, its *pivot*, and its payload is kept
//! as it came in the slot of that number. Source symbol `p` whose number is held is then
//!
//! ```text
//! x_p = sum of T[p][q] * payload q, over the numbers q that are held
//!     + sum of T[p][q] * x_q, over those that are not
//! ```
//!
//! and one row of coefficients has room for both: this is Gauss-Jordan elimination in place, with
//! the multipliers where the eliminated columns were. What that gives:
//!
//! - a symbol is dependent, or a source symbol determined, if nothing is left in the columns that
//!   are not held: this is known without a look at any payload;
//! - a payload is needed when a source symbol is wanted, and then as one combination of payloads;
//! - a source symbol that arrives where nothing is held changes no coefficient at all: its column
//!   counts as a multiplier from then on. Its own row stays unwritten.

use crate::kernel::{Backend, Terms};
use crate::rows::{IndexSet, Matrix, Shape};
use crate::{Field, MAX_BLOCK_SIZE};

/// Bytes of the longest coding vector, padded.
pub(crate) const VECTOR_LEN_MAX: usize = MAX_BLOCK_SIZE;

/// Bytes of a coding vector as most blocks have them, padded.
pub(crate) const VECTOR_LEN_SMALL: usize = 192;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Tableau {
    shape: Shape,
    rows: Matrix,
    /// What is arriving, a multiple of it, and its factors of rows held.
    scratch: Matrix,
    sum: Matrix,
    /// Rows of bits: all set for the coefficients of numbers that are not held, and for those that
    /// are not held or whose payload is the source symbol.
    masks: Matrix,
    /// Numbers whose slot has a payload.
    held: IndexSet,
    /// Numbers whose payload is the source symbol itself.
    sources: IndexSet,
    /// Numbers whose source symbol is determined.
    determined: IndexSet,
    determined_count: usize,
    /// Those of them that were not asked for yet, and are not there as payloads.
    fresh: IndexSet,
    fresh_count: usize,
    rank: usize,
}

const ARRIVING: usize = 0;
const MULTIPLE: usize = 1;
const FACTORS: usize = 2;
const UNHELD: usize = 0;
const UNSOLVED: usize = 1;

impl Tableau {
    pub fn new(shape: &Shape, backend: Backend) -> Self {
        let mut tableau = Self {
            shape: *shape,
            rows: Matrix::with_backend(shape, backend, shape.block_size),
            scratch: Matrix::with_backend(shape, backend, 3),
            sum: Matrix::with_backend(shape, backend, 1),
            masks: Matrix::with_backend(shape, backend, 2),
            held: IndexSet::EMPTY,
            sources: IndexSet::EMPTY,
            determined: IndexSet::EMPTY,
            determined_count: 0,
            fresh: IndexSet::EMPTY,
            fresh_count: 0,
            rank: 0,
        };
        tableau.reset();
        tableau
    }

    pub fn reset(&mut self) {
        self.held = IndexSet::EMPTY;
        self.sources = IndexSet::EMPTY;
        self.determined = IndexSet::EMPTY;
        self.fresh = IndexSet::EMPTY;
        (self.determined_count, self.fresh_count, self.rank) = (0, 0, 0);
        let len = self.shape.field.vector_len_bytes(self.shape.block_size);
        for mask in [UNHELD, UNSOLVED] {
            let row = self.masks.row_mut(mask);
            row[..len].fill(0xFF);
            row[len..].fill(0);
            self.shape.field.mask_unused(row, self.shape.block_size);
        }
    }

    /// Innovative symbols: numbers held.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Numbers whose slot has a payload.
    pub fn held(&self) -> &IndexSet {
        &self.held
    }

    /// Numbers whose source symbol is determined.
    pub fn determined(&self) -> &IndexSet {
        &self.determined
    }

    /// The source symbols determined since the last call, other than those that came as such.
    pub fn take_fresh(&mut self) -> Option<IndexSet> {
        (self.fresh_count > 0).then(|| {
            self.fresh_count = 0;
            core::mem::replace(&mut self.fresh, IndexSet::EMPTY)
        })
    }

    /// Whether the payload of that number is the source symbol itself.
    pub fn is_source(&self, index: usize) -> bool {
        self.sources.contains(index)
    }

    /// Row `index`: once determined, multipliers of the payloads held.
    pub fn row(&self, index: usize) -> &[u8] {
        self.rows.row(index)
    }

    /// Takes in a source symbol. Returns the slot for its payload if it is innovative.
    pub fn add_source(&mut self, index: usize) -> Option<usize> {
        if self.determined.contains(index) {
            return None;
        }
        if self.held.contains(index) {
            self.scratch.set_unit(ARRIVING, index);
            return self.add_arriving();
        }
        self.hold(index);
        self.sources.insert(index);
        self.determined.insert(index);
        self.determined_count += 1;
        let ones = self.ones();
        self.shape.field.set_coefficient(self.masks.row_mut(UNSOLVED), index, ones);
        if self.determined_count < self.rank {
            // The column of a symbol that is known now: rows that had it may be complete.
            let (held, determined) = (self.held.clone(), self.determined.clone());
            let unheld_start = self.unheld_start();
            for row in held.difference(&determined) {
                if self.rows.coefficient(row, index) != 0 {
                    self.note_if_determined(row, unheld_start);
                }
            }
        }
        Some(index)
    }

    /// Takes in a coded symbol with that vector over the first `count` symbols. Returns the slot
    /// for its payload if it is innovative.
    pub fn add_coded(&mut self, vector: &[u8], count: usize) -> Option<usize> {
        self.scratch.set(ARRIVING, vector, count);
        self.add_arriving()
    }

    /// Combinations of the rows held, as numbered: of the factors in `factors[i]` it makes the
    /// multipliers of the payloads, and writes the coding vector to `vectors[i]` as far as that
    /// reaches.
    pub fn recode<const N: usize, const L: usize>(
        &self,
        factors: &mut [[u8; L]; N],
        vectors: &mut [&mut [u8]],
    ) {
        let len = self.rows.stride();
        let (unheld, unsolved) = (self.masks.row(UNHELD), self.masks.row(UNSOLVED));
        let mut sums = [[0; L]; N];
        let mut solved = [[0; L]; N];
        for (solved, factors) in solved.iter_mut().zip(&*factors) {
            for ((solved, &factor), mask) in solved.iter_mut().zip(factors).zip(unsolved) {
                *solved = factor & !mask;
            }
        }
        let mut outs = sums.each_mut().map(|sum| &mut sum[..]);
        let solved = solved.each_ref().map(|solved| &solved[..]);
        let count = vectors.len().min(N);
        self.rows.combine(&solved[..count], self.shape.block_size, &mut outs[..count], len);
        for ((sum, factors), vector) in sums.iter_mut().zip(factors).zip(vectors) {
            let pairs = sum.iter_mut().zip(factors.iter_mut());
            for (((sum, factor), unheld), unsolved) in pairs.zip(unheld).zip(unsolved) {
                *sum ^= *factor & unsolved;
                (*factor, *sum) = (*sum & !unheld, (*factor & !unheld) | (*sum & unheld));
            }
            let len = vector.len().min(L);
            vector[..len].copy_from_slice(&sum[..len]);
        }
    }

    /// The byte of a coefficient with all bits set.
    fn ones(&self) -> u8 {
        (self.shape.field.order() - 1) as u8
    }

    fn hold(&mut self, index: usize) {
        self.rank += 1;
        self.held.insert(index);
        for mask in [UNHELD, UNSOLVED] {
            self.shape.field.set_coefficient(self.masks.row_mut(mask), index, 0);
        }
    }

    fn add_arriving(&mut self) -> Option<usize> {
        let pivot = self.reduce()?;
        let field = self.shape.field;
        // What is left becomes the row of its first symbol that is not held; the payload itself
        // has the factor that the symbol had.
        let arriving = self.scratch.row_mut(ARRIVING);
        let inverse = field.invert(field.coefficient(arriving, pivot));
        field.set_coefficient(arriving, pivot, 1);
        self.scratch.copy(MULTIPLE, ARRIVING);
        self.scratch.scale(MULTIPLE, inverse);
        // The other rows have it in place of the symbol.
        let mut terms = Terms::new();
        let rows = self.held.difference(&self.determined);
        self.rows.take_column(pivot, rows, &mut terms);
        self.rows.update(&terms, self.scratch.row(MULTIPLE));
        self.rows.row_mut(pivot).copy_from_slice(self.scratch.row(MULTIPLE));
        self.hold(pivot);
        let unheld_start = self.unheld_start();
        self.note_if_determined(pivot, unheld_start);
        let stride = self.rows.stride();
        for offset in terms.offsets() {
            self.note_if_determined(offset / stride, unheld_start);
        }
        Some(pivot)
    }

    /// Puts the rows held in place of their symbols in what is arriving. Returns the first symbol
    /// that is left.
    fn reduce(&mut self) -> Option<usize> {
        let unsolved = self.masks.row(UNSOLVED);
        let (arriving, factors) = self.scratch.two_rows(ARRIVING, FACTORS);
        let mut any = 0;
        for ((arriving, factor), mask) in arriving.iter_mut().zip(&mut *factors).zip(unsolved) {
            *factor = *arriving & !mask;
            *arriving &= mask;
            any |= *factor;
        }
        if any != 0 {
            let (count, len) = (self.shape.block_size, self.rows.stride());
            self.rows.combine(&[factors], count, &mut [self.sum.row_mut(0)], len);
            let sum = self.sum.row(0);
            arriving.iter_mut().zip(sum).for_each(|(arriving, sum)| *arriving ^= sum);
        }
        first_common(self.shape.field, self.scratch.row(ARRIVING), self.masks.row(UNHELD))
    }

    /// The symbol of a row is determined when all that is left in it is held.
    fn note_if_determined(&mut self, row: usize, unheld_start: usize) {
        if !any_common(self.rows.row(row), self.masks.row(UNHELD), unheld_start) {
            self.determined.insert(row);
            self.determined_count += 1;
            self.fresh.insert(row);
            self.fresh_count += 1;
        }
    }

    /// Byte of a row before which all coefficients are of numbers that are held.
    fn unheld_start(&self) -> usize {
        let first = self.held.first_absent();
        match self.shape.field {
            Field::Gf2 => first / 8,
            Field::Gf16 => first / 2,
            Field::Gf256 => first,
        }
    }
}

/// Whether two rows have a bit in common; they have none in the first `start` bytes.
fn any_common(a: &[u8], b: &[u8], start: usize) -> bool {
    let start = start / 8;
    let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let (a, b) = (a.get(start..).unwrap_or(&[]), b.get(start..).unwrap_or(&[]));
    a.iter().zip(b).any(|(a, b)| u64::from_ne_bytes(*a) & u64::from_ne_bytes(*b) != 0)
}

/// The first coefficient of `row` that is not zero where `mask` is set.
fn first_common(field: Field, row: &[u8], mask: &[u8]) -> Option<usize> {
    let place = row.iter().zip(mask).position(|(row, mask)| row & mask != 0)?;
    let bit = (row[place] & mask[place]).trailing_zeros() as usize;
    let bits = match field {
        Field::Gf2 => 1,
        Field::Gf16 => 4,
        Field::Gf256 => 8,
    };
    Some((place * 8 + bit) / bits)
}
