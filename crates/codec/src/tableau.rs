//! The coefficients of a block's symbols, apart from their payloads.
//!
//! Each innovative symbol is assigned the number of a source symbol, its *pivot*, and its payload
//! is stored unchanged in the slot of that number. A number with a payload is *held*. Source symbol
//! `p`, if its number is held, is then
//!
//! ```text
//! x_p = sum of T[p][q] * payload q, over the numbers q that are held
//!     + sum of T[p][q] * x_q, over those that are not
//! ```
//!
//! and one row of coefficients has room for both: this is Gauss-Jordan elimination in place, with
//! the multipliers where the eliminated columns were. It follows that:
//!
//! - a symbol is dependent, or a source symbol determined, if nothing is left in the columns that
//!   are not held: this is known without touching any payload;
//! - payloads are only needed when a source symbol is wanted, and then as one combination;
//! - a source symbol that arrives at a number not held changes no coefficient at all: its column
//!   counts as a multiplier from then on. Its own row stays unwritten.
//!
//! In large blocks, the front columns, once all of them are held, no longer decide anything:
//! updates to them *wait* until several symbols have come. Meanwhile, instead of its payload `y`, a
//! symbol is treated as if it had brought `y` minus its *offset*, its combination by the waiting
//! columns; `rows` has the remaining columns, up to date for such payloads. Settling takes two
//! matrix products: the factors of the symbols times the waiting columns are their offsets, and the
//! multipliers of these payloads times the offsets are what each row's waiting columns lack.

mod held;
mod waiting;

use alloc::{vec, vec::Vec};

use crate::bits;
use crate::kernel::{Arrival, Backend, PADDING, Pivot, RowList};
use crate::rows::{IndexSet, Matrix, Shape};
use crate::{Field, MAX_BLOCK_SIZE};
use held::Held;
use waiting::{WAITING_MAX, Waiting};

/// Bytes of the longest coding vector, padded.
pub(crate) const VECTOR_LEN_MAX: usize = MAX_BLOCK_SIZE;

/// Length of a typical block's coding vector, in bytes, padded.
pub(crate) const VECTOR_LEN_SMALL: usize = 192;

/// Minimum row length, in bytes, for which columns that are all held wait.
const WAITING_LEN_MIN: usize = 512;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Tableau {
    shape: Shape,
    backend: Backend,
    /// Rows, without the front columns that wait.
    rows: Matrix,
    waiting: Waiting,
    /// The received coding vectors, by pivot.
    arrived: Matrix,
    /// Written rows; the active ones are those whose symbols are not determined.
    written: RowList,
    /// The arriving vector, and its remainder.
    scratch: Matrix,
    /// Places in the list of rows that may be determined.
    found: Vec<u16>,
    /// Numbers whose slot has a payload.
    held: Held,
    /// As a row, all bits set for the coefficients of numbers that are not held, and of those whose
    /// payload is the source symbol.
    unsolved: Vec<u8>,
    /// Held numbers whose payload is not the source symbol itself, and among these those whose
    /// source symbol is not determined: the active rows.
    coded: IndexSet,
    open: IndexSet,
    /// Numbers whose source symbol is determined, not yet taken, and not available as a payload.
    fresh: IndexSet,
    fresh_count: usize,
}

const ARRIVING: usize = 0;
const LEFT: usize = 1;

impl Tableau {
    /// For a decoder; a recoder needs no multipliers.
    pub fn new(shape: &Shape, backend: Backend, multiplying: bool) -> Self {
        let vector_len = shape.field.vector_len_bytes(shape.block_size);
        let waiting_max = if vector_len < WAITING_LEN_MIN { 0 } else { WAITING_MAX };
        Self::waiting(shape, backend, multiplying, waiting_max)
    }

    /// With up to `waiting_max` waiting symbols.
    fn waiting(shape: &Shape, backend: Backend, multiplying: bool, waiting_max: usize) -> Self {
        let rows = Matrix::with_backend(shape, backend, shape.block_size);
        let mut tableau = Self {
            shape: *shape,
            backend,
            waiting: Waiting::new(shape, backend, multiplying, waiting_max),
            arrived: Matrix::with_backend(shape, backend, shape.block_size),
            written: RowList::new(shape.block_size),
            scratch: Matrix::with_backend(shape, backend, 2),
            found: vec![0; shape.block_size],
            held: Held::new(shape, rows.len()),
            unsolved: vec![0; rows.len()],
            coded: IndexSet::new(shape.block_size),
            open: IndexSet::new(shape.block_size),
            fresh: IndexSet::new(shape.block_size),
            fresh_count: 0,
            rows,
        };
        tableau.reset();
        tableau
    }

    pub fn reset(&mut self) {
        self.written.clear();
        self.waiting.clear();
        self.rows.widen();
        self.held.clear();
        self.coded.clear();
        self.open.clear();
        self.fresh.clear();
        self.fresh_count = 0;
        self.unsolved.copy_from_slice(self.held.absent());
    }

    /// Rank: number of numbers held.
    pub fn rank(&self) -> usize {
        self.held.count()
    }

    /// Numbers whose slot has a payload.
    pub fn held(&self) -> &IndexSet {
        self.held.numbers()
    }

    /// Whether the source symbol of that number is determined; any number is allowed.
    #[inline(always)]
    pub fn is_determined(&self, index: usize) -> bool {
        self.held.contains(index) && !self.open.contains(index)
    }

    /// Number of source symbols determined.
    pub fn determined_count(&self) -> usize {
        self.held.count() - self.written.active().len()
    }

    /// Writes the determined source symbols as a bitmap, least significant bit first, as far as
    /// `out` reaches.
    pub fn write_determined(&self, out: &mut [u8]) {
        self.held.numbers().write_bitmap_without(&self.open, out);
    }

    /// Whether source symbols have been determined since they were last taken, other than those
    /// received as such.
    #[inline]
    pub fn has_fresh(&self) -> bool {
        self.fresh_count > 0
    }

    /// Takes these; their rows are up to date from then on.
    pub fn take_fresh(&mut self) -> IndexSet {
        self.settle();
        self.fresh_count = 0;
        let fresh = self.fresh.take();
        self.waiting.complete(&self.rows, fresh.iter());
        fresh
    }

    /// Whether the payload of that held number is the source symbol itself.
    #[inline(always)]
    pub fn is_source(&self, index: usize) -> bool {
        !self.coded.contains(index)
    }

    /// The coding vector of the payload of that held number, which is not a source symbol.
    pub fn arrived(&self, index: usize) -> &[u8] {
        self.arrived.row(index)
    }

    /// Row `index`: once determined, multipliers of the payloads held.
    #[inline(always)]
    pub fn row(&self, index: usize) -> &[u8] {
        if self.waiting.is_used() { self.waiting.row(index) } else { self.rows.row(index) }
    }

    /// The payload of that number becomes the source symbol; all others are source symbols, or have
    /// been taken: no row matters any more.
    pub fn replace(&mut self, index: usize) {
        self.coded.remove(index);
        let ones = (self.shape.field.order() - 1) as u8;
        self.shape.field.set_coefficient(&mut self.unsolved, index, ones);
    }

    /// Adds a source symbol. Returns the slot for its payload if it is innovative.
    #[inline]
    pub fn add_source(&mut self, index: usize) -> Option<usize> {
        if self.held.contains(index) {
            if !self.open.contains(index) {
                return None;
            }
            self.scratch.set_unit(ARRIVING, index);
            return self.add_arriving();
        }
        self.held.insert(index);
        if self.written.active().is_empty() {
            return Some(index);
        }
        // The column of a symbol known from now on: rows that had it may be complete.
        self.held.find_first_absent();
        for place in (0..self.written.active().len()).rev() {
            let row = self.written.active()[place].into();
            if self.rows.coefficient(row, index) != 0 {
                self.note_if_determined(place, row);
            }
        }
        Some(index)
    }

    /// Adds a coded symbol with that vector over the first `count` symbols. Returns the slot for
    /// its payload if it is innovative.
    pub fn add_coded(&mut self, vector: &[u8], count: usize) -> Option<usize> {
        self.scratch.set(ARRIVING, vector, count);
        self.add_arriving()
    }

    /// Writes to `outs` the coding vectors of combinations of what is held: `factors[i]` has the
    /// payloads' factors, by their numbers.
    pub fn recode<const N: usize, const L: usize>(
        &self,
        factors: &[[u8; L]; N],
        outs: &mut [&mut [u8]],
    ) {
        let mut written = *factors;
        for factors in &mut written {
            factors.iter_mut().zip(&self.unsolved).for_each(|(factor, mask)| *factor &= !mask);
        }
        let mut sums = [[0; L]; N];
        let mut to = sums.each_mut().map(|sum| &mut sum[..]);
        let written = written.each_ref().map(|factors| &factors[..]);
        let (count, len) = (outs.len().min(N), self.arrived.len());
        self.arrived.combine(&written[..count], self.shape.block_size, &mut to[..count], len);
        for ((sum, factors), out) in sums.iter_mut().zip(factors).zip(outs) {
            for ((sum, factor), mask) in sum.iter_mut().zip(factors).zip(&self.unsolved) {
                *sum ^= factor & mask;
            }
            let len = out.len().min(L);
            out[..len].copy_from_slice(&sum[..len]);
        }
    }

    fn add_arriving(&mut self) -> Option<usize> {
        let (pivot, found) = if self.of_lines() {
            let Arrival { pivot, found } = self.arrive()?;
            self.hold_coded(pivot);
            (pivot, found)
        } else {
            self.held.find_first_absent();
            let pivot = self.reduce()?;
            self.hold_coded(pivot);
            (pivot, self.eliminate(pivot))
        };
        self.written.push(pivot);
        self.wait(pivot);
        if self.held.count() == self.shape.block_size {
            self.note_all();
            return Some(pivot);
        }
        // From the last place down: a row that moves to a freed place has already been checked.
        self.note_if_determined(self.written.active().len() - 1, pivot);
        for found in (0..found).rev() {
            let place = self.found[found].into();
            self.note_if_determined(place, self.written.active()[place].into());
        }
        Some(pivot)
    }

    /// The payload of that number is not the source symbol.
    #[inline(always)]
    fn hold_coded(&mut self, pivot: usize) {
        self.held.insert(pivot);
        self.coded.insert(pivot);
        self.open.insert(pivot);
        self.held.find_first_absent();
        self.shape.field.set_coefficient(&mut self.unsolved, pivot, 0);
    }

    /// Whether a row is one cache line, and arrivals are processed in one step.
    fn of_lines(&self) -> bool {
        self.shape.field != Field::Gf2 && self.arrived.len() == PADDING
    }

    /// Turns the arriving vector into a row, if it has a remainder.
    fn arrive(&mut self) -> Option<Arrival> {
        let last_word = self.held.last_absent_word();
        let (arriving, left) = self.scratch.two_rows(ARRIVING, LEFT);
        for ((left, arriving), mask) in left.iter_mut().zip(&*arriving).zip(&self.unsolved) {
            *left = arriving & mask;
        }
        let (lines, found) = ([&*arriving, &*left, self.held.absent()], &mut self.found);
        self.backend.arrive(&mut self.rows.grid(), &self.written, lines, last_word, found)
    }

    /// Whether a row is a word of bits.
    fn of_words(&self) -> bool {
        self.shape.field == Field::Gf2 && self.shape.block_size <= bits::BLOCK_SIZE_MAX
    }

    /// Substitutes the held rows for their symbols in the arriving vector. Returns the first symbol
    /// left.
    fn reduce(&mut self) -> Option<usize> {
        let (of_words, start) = (self.of_words(), self.held.first_absent_byte());
        let (unsolved, absent) = (&self.unsolved, self.held.absent());
        let (arriving, left) = self.scratch.two_rows(ARRIVING, LEFT);
        if of_words {
            let (arriving, unsolved) = (bits::word(arriving), bits::word(unsolved));
            let sum = bits::reduce(&self.rows.grid(), arriving & !unsolved, arriving & unsolved);
            left[..8].copy_from_slice(&sum.to_le_bytes());
            let first = (sum & bits::word(absent)).trailing_zeros();
            return (first < u64::BITS).then_some(first as usize);
        }
        for ((left, arriving), mask) in left.iter_mut().zip(&*arriving).zip(unsolved) {
            *left = arriving & mask;
        }
        if !self.written.all().is_empty() {
            self.backend.reduce(&self.rows.grid(), &self.written, arriving, left);
        }
        first_common(self.shape.field, left, absent, start)
    }

    /// Turns the remainder of the arriving vector into the row of its first symbol that was not
    /// held, and substitutes it in the other rows. Returns how many of them may be complete.
    fn eliminate(&mut self, index: usize) -> usize {
        let (field, of_words) = (self.shape.field, self.of_words());
        let last_word = self.held.last_absent_word();
        let (left, absent) = (self.scratch.row_mut(LEFT), self.held.absent());
        let (mut grid, found) = (self.rows.grid(), &mut self.found);
        if of_words {
            let (left, absent) = (bits::word(left), bits::word(absent));
            return bits::eliminate(&mut grid, &self.written, index, left, absent, found);
        }
        // The payload itself has the factor that the symbol had. The other rows already have a
        // coefficient where their multiplier of it belongs: hence one more.
        let own = field.coefficient(left, index);
        let inverse = field.invert(own);
        field.set_coefficient(left, index, own ^ 1);
        // The last word, because numbers become held from the first one on.
        let word = bits::word(&absent[last_word * 8..]);
        let witness = ((last_word * 8).max(grid.start), word);
        let pivot = Pivot { index, inverse, witness };
        let found = self.backend.eliminate(&mut grid, &self.written, pivot, left, found);
        self.rows.set_coefficient(index, index, inverse);
        found
    }

    /// Lets the symbol of that row wait, if worthwhile.
    fn wait(&mut self, row: usize) {
        self.arrived.row_mut(row).copy_from_slice(self.scratch.row(ARRIVING));
        if self.waiting.is_used() {
            self.waiting.push(row, self.rows.start());
            if self.waiting.is_full() {
                self.settle();
            }
        }
    }

    /// Brings the waiting columns up to date; more of them wait from now on.
    fn settle(&mut self) {
        if !self.waiting.is_used() {
            return;
        }
        let written = self.written.all();
        self.waiting.settle(&self.rows, written, &self.arrived, &self.unsolved);
        let next = self.held.first_absent_byte() / PADDING * PADDING;
        if next > self.rows.start() {
            self.waiting.extend(&self.rows, written, next);
            self.rows.narrow(next);
        }
    }

    /// A row's symbol is determined if all its remaining coefficients are held.
    fn note_if_determined(&mut self, place: usize, row: usize) {
        let (row_left, start) = (self.rows.row(row), self.rows.start());
        if !any_common(
            row_left,
            &self.held.absent()[start..],
            self.held.first_absent_byte() - start,
        ) {
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
        self.open.remove(row);
        self.fresh.insert(row);
        self.fresh_count += 1;
    }
}

/// Whether two rows have a bit in common; they have none in the first `start` bytes.
fn any_common(a: &[u8], b: &[u8], start: usize) -> bool {
    let start = start / 8;
    let (a, b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let (a, b) = (a.get(start..).unwrap_or(&[]), b.get(start..).unwrap_or(&[]));
    a.iter().zip(b).any(|(a, b)| u64::from_ne_bytes(*a) & u64::from_ne_bytes(*b) != 0)
}

/// The first nonzero coefficient of `row` where `mask` is set; there is none in the first `start`
/// bytes.
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

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// A vector that is dense, sparse, or over a few symbols only.
    fn draw(rng: &mut ChaCha8Rng, shape: &Shape) -> Vec<u8> {
        let mut vector = vec![0; shape.field.vector_len_bytes(shape.block_size)];
        let dense = rng.next_u32().is_multiple_of(2);
        let terms = if dense { shape.block_size * 4 } else { 1 + (rng.next_u32() % 3) as usize };
        for _ in 0..terms {
            let index = rng.next_u32() as usize % shape.block_size;
            let value = rng.next_u32() % shape.field.order();
            shape.field.set_coefficient(&mut vector, index, value as u8);
        }
        vector
    }

    /// Waiting changes nothing: neither what is innovative or determined, nor any row once settled.
    #[test]
    fn rows_that_wait_come_to_the_same() {
        let mut rng = ChaCha8Rng::seed_from_u64(12);
        for (field, block_size) in [(Field::Gf256, 200), (Field::Gf256, 321), (Field::Gf16, 400)] {
            for backend in Backend::available().take(2) {
                let shape = Shape { field, block_size, symbol_size_max: 1 };
                let mut waiting = Tableau::waiting(&shape, backend, true, WAITING_MAX);
                let mut plain = Tableau::waiting(&shape, backend, true, 0);
                let mut blind = Tableau::waiting(&shape, backend, false, WAITING_MAX);
                let sources_share = rng.next_u32() % 4;
                while plain.rank() < block_size {
                    let slot = if rng.next_u32() % 8 < sources_share {
                        let index = rng.next_u32() as usize % block_size;
                        assert_eq!(blind.add_source(index), waiting.add_source(index));
                        plain.add_source(index)
                    } else {
                        let vector = draw(&mut rng, &shape);
                        let slot = waiting.add_coded(&vector, block_size);
                        assert_eq!(blind.add_coded(&vector, block_size), slot);
                        plain.add_coded(&vector, block_size)
                    };
                    assert_eq!(slot.map(|slot| waiting.held.contains(slot)), slot.map(|_| true));
                    for other in [&waiting, &blind] {
                        assert_eq!(other.rank(), plain.rank());
                        assert!(
                            (0..block_size)
                                .all(|i| other.is_determined(i) == plain.is_determined(i))
                        );
                    }
                    if plain.has_fresh() || rng.next_u32().is_multiple_of(20) {
                        assert!(plain.take_fresh().iter().eq(waiting.take_fresh().iter()));
                        for &row in &plain.written.all()[plain.written.active().len()..] {
                            assert_eq!(plain.row(row.into()), waiting.row(row.into()));
                        }
                    }
                }
                assert!(waiting.rows.start() > 0, "something waited");
            }
        }
    }
}
