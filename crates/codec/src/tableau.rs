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

use alloc::{vec, vec::Vec};

use crate::bits;
use crate::kernel::{Backend, Pivot, RowList};
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
    backend: Backend,
    rows: Matrix,
    /// Rows that are written; the active ones are those whose symbols are not determined.
    written: RowList,
    /// What is arriving, and what is left of it.
    scratch: Matrix,
    /// Places in the list of rows that may be determined.
    found: Vec<u16>,
    /// As a row, all bits set for the coefficients of numbers that are not held.
    unheld: Vec<u8>,
    /// The same with those whose payload is the source symbol.
    unsolved: Vec<u8>,
    /// Numbers whose slot has a payload.
    held: IndexSet,
    /// No number before this one is not held.
    unheld_first: usize,
    /// No word of that mask has a bit set after this one.
    unheld_word: usize,
    /// Numbers whose payload is the source symbol itself.
    sources: IndexSet,
    /// Numbers whose source symbol is determined.
    determined: IndexSet,
    /// Those of them that were not asked for yet, and are not there as payloads.
    fresh: IndexSet,
    fresh_count: usize,
    rank: usize,
}

const ARRIVING: usize = 0;
const LEFT: usize = 1;

impl Tableau {
    pub fn new(shape: &Shape, backend: Backend) -> Self {
        let mut tableau = Self {
            shape: *shape,
            backend,
            rows: Matrix::with_backend(shape, backend, shape.block_size),
            written: RowList::new(shape.block_size),
            scratch: Matrix::with_backend(shape, backend, 2),
            found: vec![0; shape.block_size],
            unheld: Vec::new(),
            unsolved: Vec::new(),
            held: IndexSet::EMPTY,
            unheld_first: 0,
            unheld_word: 0,
            sources: IndexSet::EMPTY,
            determined: IndexSet::EMPTY,
            fresh: IndexSet::EMPTY,
            fresh_count: 0,
            rank: 0,
        };
        tableau.unheld = vec![0; tableau.rows.len()];
        tableau.unsolved = vec![0; tableau.rows.len()];
        tableau.reset();
        tableau
    }

    pub fn reset(&mut self) {
        self.written.clear();
        self.held = IndexSet::EMPTY;
        self.unheld_first = 0;
        self.unheld_word = self.unheld.len() / 8 - 1;
        self.sources = IndexSet::EMPTY;
        self.determined = IndexSet::EMPTY;
        self.fresh = IndexSet::EMPTY;
        (self.fresh_count, self.rank) = (0, 0);
        let len = self.shape.field.vector_len_bytes(self.shape.block_size);
        self.unheld[..len].fill(0xFF);
        self.shape.field.mask_unused(&mut self.unheld, self.shape.block_size);
        self.unsolved.copy_from_slice(&self.unheld);
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

    /// Whether source symbols were determined since they were last taken, other than those that
    /// came as such.
    #[inline]
    pub fn has_fresh(&self) -> bool {
        self.fresh_count > 0
    }

    /// Takes these.
    pub fn take_fresh(&mut self) -> IndexSet {
        self.fresh_count = 0;
        core::mem::replace(&mut self.fresh, IndexSet::EMPTY)
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
    #[inline]
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
        if self.written.active().is_empty() {
            return Some(index);
        }
        // The column of a symbol that is known now: rows that had it may be complete.
        self.unheld_first = self.held.absent_from(self.unheld_first);
        for place in (0..self.written.active().len()).rev() {
            let row = self.written.active()[place].into();
            if self.rows.coefficient(row, index) != 0 {
                self.note_if_determined(place, row);
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
        let len = self.rows.len();
        let (unheld, unsolved) = (&self.unheld, &self.unsolved);
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

    #[inline]
    fn hold(&mut self, index: usize) {
        self.rank += 1;
        self.held.insert(index);
        self.shape.field.set_coefficient(&mut self.unheld, index, 0);
    }

    fn add_arriving(&mut self) -> Option<usize> {
        self.unheld_first = self.held.absent_from(self.unheld_first);
        let pivot = self.reduce()?;
        self.hold(pivot);
        self.unheld_first = self.held.absent_from(self.unheld_first);
        self.shape.field.set_coefficient(&mut self.unsolved, pivot, 0);
        let found = self.eliminate(pivot);
        self.written.push(pivot);
        if self.rank == self.shape.block_size {
            self.note_all();
            return Some(pivot);
        }
        // From the last place on: what takes the place of a row has been looked at.
        self.note_if_determined(self.written.active().len() - 1, pivot);
        for found in (0..found).rev() {
            let place = self.found[found].into();
            self.note_if_determined(place, self.written.active()[place].into());
        }
        Some(pivot)
    }

    /// Whether a row is a word of bits.
    fn of_words(&self) -> bool {
        self.shape.field == Field::Gf2 && self.shape.block_size <= bits::BLOCK_SIZE_MAX
    }

    /// Puts the rows held in place of their symbols in what is arriving. Returns the first symbol
    /// that is left.
    fn reduce(&mut self) -> Option<usize> {
        let (of_words, start) = (self.of_words(), self.unheld_start());
        let (unsolved, unheld) = (&self.unsolved, &self.unheld);
        let (arriving, left) = self.scratch.two_rows(ARRIVING, LEFT);
        if of_words {
            let (arriving, unsolved) = (bits::word(arriving), bits::word(unsolved));
            let sum = bits::reduce(&self.rows.grid(), arriving & !unsolved, arriving & unsolved);
            left[..8].copy_from_slice(&sum.to_le_bytes());
            let first = (sum & bits::word(unheld)).trailing_zeros();
            return (first < u64::BITS).then_some(first as usize);
        }
        for ((left, arriving), mask) in left.iter_mut().zip(&*arriving).zip(unsolved) {
            *left = arriving & mask;
        }
        if !self.written.all().is_empty() {
            self.backend.reduce(&self.rows.grid(), &self.written, arriving, left);
        }
        first_common(self.shape.field, left, unheld, start)
    }

    /// What is left of what arrived becomes the row of its first symbol that was not held; the
    /// other rows have it in place of the symbol. Returns how many of them may be complete.
    fn eliminate(&mut self, index: usize) -> usize {
        let (field, of_words) = (self.shape.field, self.of_words());
        let (left, unheld) = (self.scratch.row_mut(LEFT), &self.unheld);
        let (mut grid, found) = (self.rows.grid(), &mut self.found);
        if of_words {
            let (left, unheld) = (bits::word(left), bits::word(unheld));
            return bits::eliminate(&mut grid, &self.written, index, left, unheld, found);
        }
        // The payload itself has the factor that the symbol had. The other rows have a
        // coefficient already where their multiplier of it shall be: hence one more.
        let own = field.coefficient(left, index);
        let inverse = field.invert(own);
        field.set_coefficient(left, index, own ^ 1);
        // The last word, because numbers become held from the first one on.
        let words = unheld.as_chunks::<8>().0;
        while self.unheld_word > 0 && words[self.unheld_word] == [0; 8] {
            self.unheld_word -= 1;
        }
        let witness = (self.unheld_word * 8, u64::from_le_bytes(words[self.unheld_word]));
        let pivot = Pivot { index, inverse, witness };
        let found = self.backend.eliminate(&mut grid, &self.written, pivot, left, found);
        field.set_coefficient(self.rows.row_mut(index), index, inverse);
        found
    }

    /// The symbol of a row is determined when all that is left in it is held.
    fn note_if_determined(&mut self, place: usize, row: usize) {
        if !any_common(self.rows.row(row), &self.unheld, self.unheld_start()) {
            self.written.retire(place);
            self.note_determined(row);
        }
    }

    /// All symbols are determined.
    fn note_all(&mut self) {
        while let Some(&row) = self.written.active().last() {
            self.written.retire(self.written.active().len() - 1);
            self.note_determined(row.into());
        }
    }

    fn note_determined(&mut self, row: usize) {
        self.determined.insert(row);
        self.fresh.insert(row);
        self.fresh_count += 1;
    }

    /// Byte of a row before which all coefficients are of numbers that are held.
    fn unheld_start(&self) -> usize {
        match self.shape.field {
            Field::Gf2 => self.unheld_first / 8,
            Field::Gf16 => self.unheld_first / 2,
            Field::Gf256 => self.unheld_first,
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

/// The first coefficient of `row` that is not zero where `mask` is set; there is none in the first
/// `start` bytes.
fn first_common(field: Field, row: &[u8], mask: &[u8], start: usize) -> Option<usize> {
    let start = start / 8;
    let (row, mask) = (row.as_chunks::<8>().0, mask.as_chunks::<8>().0);
    let pairs = row.iter().zip(mask).enumerate().skip(start);
    let mut words =
        pairs.map(|(place, (a, b))| (place, u64::from_le_bytes(*a) & u64::from_le_bytes(*b)));
    let (place, word) = words.find(|(_, word)| *word != 0)?;
    let bits = field.order().ilog2() as usize;
    Some((place * 64 + word.trailing_zeros() as usize) / bits)
}
