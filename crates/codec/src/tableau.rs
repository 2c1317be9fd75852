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
//!
//! In large blocks the columns at the front, once all of them are held, decide nothing any more:
//! they wait until several symbols have come. Meanwhile, instead of its payload `y`, a symbol is
//! taken to have brought `y` less what the waiting columns make of it; `rows` has the columns
//! that are left, up to date for such payloads. When that is settled, two products of matrices do
//! all at once: the factors of the symbols times the waiting columns are their offsets, and the
//! multipliers of these payloads times the offsets are what each row's waiting columns lack.

use alloc::{vec, vec::Vec};

use crate::bits;
use crate::kernel::{Arrival, Backend, PADDING, Pivot, RowList};
use crate::rows::{IndexSet, Matrix, Shape};
use crate::{Field, MAX_BLOCK_SIZE};

/// Bytes of the longest coding vector, padded.
pub(crate) const VECTOR_LEN_MAX: usize = MAX_BLOCK_SIZE;

/// Bytes of a coding vector as most blocks have them, padded.
pub(crate) const VECTOR_LEN_SMALL: usize = 192;

/// Bytes of rows from which on what is left of the columns that are all held waits.
const WAITING_LEN_MIN: usize = 512;

/// Symbols that they wait for at most.
const WAITING_MAX: usize = 16;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Tableau {
    shape: Shape,
    backend: Backend,
    /// Rows, but the columns at the front that wait.
    rows: Matrix,
    /// These, and whole rows that were asked for.
    fronts: Matrix,
    /// The coding vectors that came, by pivot.
    arrived: Matrix,
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
    /// Those of them whose payload is not the source symbol itself, and those of these whose
    /// source symbol is not determined: the active rows.
    coded: IndexSet,
    open: IndexSet,
    /// Numbers whose source symbol has been determined, not asked for yet, and is not there as
    /// payload.
    fresh: IndexSet,
    fresh_count: usize,
    rank: usize,
    /// Whether multipliers of payloads are asked for at all.
    multiplying: bool,
    /// What has come with these pivots is still to be done to the columns that wait.
    waiting: Vec<u16>,
    /// For each of these, its factors of rows, and what they come to in the columns that wait.
    factors: Matrix,
    offsets: Matrix,
    offsets_listed: RowList,
}

const ARRIVING: usize = 0;
const LEFT: usize = 1;

impl Tableau {
    /// For a decoder; a recoder asks for no multipliers.
    pub fn new(shape: &Shape, backend: Backend, multiplying: bool) -> Self {
        let vector_len = shape.field.vector_len_bytes(shape.block_size);
        let waiting_max = if vector_len < WAITING_LEN_MIN { 0 } else { WAITING_MAX };
        Self::waiting(shape, backend, multiplying, waiting_max)
    }

    /// With up to so many symbols that wait.
    fn waiting(shape: &Shape, backend: Backend, multiplying: bool, waiting_max: usize) -> Self {
        let waits = waiting_max > 0 && multiplying;
        let mut tableau = Self {
            shape: *shape,
            backend,
            rows: Matrix::with_backend(shape, backend, shape.block_size),
            fronts: Matrix::with_backend(shape, backend, if waits { shape.block_size } else { 0 }),
            arrived: Matrix::with_backend(shape, backend, shape.block_size),
            written: RowList::new(shape.block_size),
            scratch: Matrix::with_backend(shape, backend, 2),
            found: vec![0; shape.block_size],
            unheld: Vec::new(),
            unsolved: Vec::new(),
            held: IndexSet::new(shape.block_size),
            unheld_first: 0,
            unheld_word: 0,
            coded: IndexSet::new(shape.block_size),
            open: IndexSet::new(shape.block_size),
            fresh: IndexSet::new(shape.block_size),
            fresh_count: 0,
            rank: 0,
            multiplying,
            waiting: Vec::with_capacity(waiting_max),
            factors: Matrix::with_backend(shape, backend, waiting_max),
            offsets: Matrix::with_backend(shape, backend, waiting_max),
            offsets_listed: RowList::new(waiting_max),
        };
        tableau.unheld = vec![0; tableau.rows.len()];
        tableau.unsolved = vec![0; tableau.rows.len()];
        tableau.reset();
        tableau
    }

    pub fn reset(&mut self) {
        self.written.clear();
        self.waiting.clear();
        self.rows.widen();
        self.held.clear();
        self.unheld_first = 0;
        self.unheld_word = self.unheld.len() / 8 - 1;
        self.coded.clear();
        self.open.clear();
        self.fresh.clear();
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

    /// Whether the source symbol of that number is determined; any number may be asked for.
    #[inline(always)]
    pub fn is_determined(&self, index: usize) -> bool {
        self.held.contains(index) && !self.open.contains(index)
    }

    /// How many source symbols are determined.
    pub fn determined_count(&self) -> usize {
        self.rank - self.written.active().len()
    }

    /// Writes which source symbols are determined as a bitmap, least significant bit first, as far
    /// as `out` reaches.
    pub fn write_determined(&self, out: &mut [u8]) {
        self.held.write_bitmap_without(&self.open, out);
    }

    /// Whether source symbols were determined since they were last taken, other than those that
    /// came as such.
    #[inline]
    pub fn has_fresh(&self) -> bool {
        self.fresh_count > 0
    }

    /// Takes these; their rows are as they should be from then on.
    pub fn take_fresh(&mut self) -> IndexSet {
        self.settle();
        self.fresh_count = 0;
        let fresh = self.fresh.take();
        if self.may_wait() && self.multiplying {
            let start = self.rows.start();
            for row in fresh.iter() {
                self.fronts.row_mut(row)[start..].copy_from_slice(self.rows.row(row));
            }
        }
        fresh
    }

    /// Whether the payload of that number, which is held, is the source symbol itself.
    #[inline(always)]
    pub fn is_source(&self, index: usize) -> bool {
        !self.coded.contains(index)
    }

    /// The coding vector of the payload of that number, which is held and no source symbol.
    pub fn arrived(&self, index: usize) -> &[u8] {
        self.arrived.row(index)
    }

    /// Row `index`: once determined, multipliers of the payloads held.
    #[inline(always)]
    pub fn row(&self, index: usize) -> &[u8] {
        if self.may_wait() { self.fronts.row(index) } else { self.rows.row(index) }
    }

    #[inline(always)]
    fn may_wait(&self) -> bool {
        self.waiting.capacity() > 0
    }

    /// The payload of that number is the source symbol from now on, as all others are or their
    /// source symbols have been asked for: no row matters any more.
    pub fn replace(&mut self, index: usize) {
        self.coded.remove(index);
        let ones = (self.shape.field.order() - 1) as u8;
        self.shape.field.set_coefficient(&mut self.unsolved, index, ones);
    }

    /// Takes in a source symbol. Returns the slot for its payload if it is innovative.
    #[inline]
    pub fn add_source(&mut self, index: usize) -> Option<usize> {
        if self.held.contains(index) {
            if !self.open.contains(index) {
                return None;
            }
            self.scratch.set_unit(ARRIVING, index);
            return self.add_arriving();
        }
        self.hold(index);
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

    /// Writes to `outs` the coding vectors of combinations of what is held: `factors[i]` has those
    /// of the payloads, by their numbers.
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

    #[inline(always)]
    fn hold(&mut self, index: usize) {
        self.rank += 1;
        self.held.insert(index);
        self.shape.field.set_coefficient(&mut self.unheld, index, 0);
    }

    fn add_arriving(&mut self) -> Option<usize> {
        let (pivot, found) = if self.of_lines() {
            let Arrival { pivot, found } = self.arrive()?;
            self.hold_coded(pivot);
            (pivot, found)
        } else {
            self.unheld_first = self.held.absent_from(self.unheld_first);
            let pivot = self.reduce()?;
            self.hold_coded(pivot);
            (pivot, self.eliminate(pivot))
        };
        self.written.push(pivot);
        self.wait(pivot);
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

    /// The payload of that number is not the source symbol.
    #[inline(always)]
    fn hold_coded(&mut self, pivot: usize) {
        self.hold(pivot);
        self.coded.insert(pivot);
        self.open.insert(pivot);
        self.unheld_first = self.held.absent_from(self.unheld_first);
        self.shape.field.set_coefficient(&mut self.unsolved, pivot, 0);
    }

    /// Whether a row is one cache line, and what arrives is dealt with at once.
    fn of_lines(&self) -> bool {
        self.shape.field != Field::Gf2 && self.arrived.len() == PADDING
    }

    /// What arrives becomes a row, if there is anything left of it.
    fn arrive(&mut self) -> Option<Arrival> {
        let last_word = self.unheld_last_word();
        let (arriving, left) = self.scratch.two_rows(ARRIVING, LEFT);
        for ((left, arriving), mask) in left.iter_mut().zip(&*arriving).zip(&self.unsolved) {
            *left = arriving & mask;
        }
        let (lines, found) = ([&*arriving, &*left, &self.unheld[..]], &mut self.found);
        self.backend.arrive(&mut self.rows.grid(), &self.written, lines, last_word, found)
    }

    /// No word of the mask of numbers that are not held has a bit set after this one.
    fn unheld_last_word(&mut self) -> usize {
        let words = self.unheld.as_chunks::<8>().0;
        while self.unheld_word > 0 && words[self.unheld_word] == [0; 8] {
            self.unheld_word -= 1;
        }
        self.unheld_word
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
        let last_word = self.unheld_last_word();
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
        let word = bits::word(&unheld[last_word * 8..]);
        let witness = ((last_word * 8).max(grid.start), word);
        let pivot = Pivot { index, inverse, witness };
        let found = self.backend.eliminate(&mut grid, &self.written, pivot, left, found);
        self.rows.set_coefficient(index, index, inverse);
        found
    }

    /// The symbol that has become that row waits, if that is worth while.
    fn wait(&mut self, row: usize) {
        self.arrived.row_mut(row).copy_from_slice(self.scratch.row(ARRIVING));
        if self.may_wait() {
            if self.multiplying {
                self.fronts.row_mut(row)[..self.rows.start()].fill(0);
            }
            self.waiting.push(row as u16);
            if self.waiting.len() == WAITING_MAX {
                self.settle();
            }
        }
    }

    /// Brings the waiting columns up to date; more of them wait from now on.
    fn settle(&mut self) {
        if !self.may_wait() {
            return;
        }
        let (start, next) = (self.rows.start(), self.unheld_start() / PADDING * PADDING);
        if self.multiplying && start > 0 && !self.waiting.is_empty() {
            self.settle_rows();
        }
        self.waiting.clear();
        if next > start {
            if self.multiplying {
                for &row in self.written.all() {
                    let from = &self.rows.row(row.into())[..next - start];
                    self.fronts.row_mut(row.into())[start..next].copy_from_slice(from);
                }
            }
            self.rows.narrow(next);
        }
    }

    fn settle_rows(&mut self) {
        let (field, len, count) = (self.shape.field, self.rows.start(), self.waiting.len());
        for (&row, factors) in self.waiting.iter().zip(self.factors.rows_mut()) {
            let pairs = self.arrived.row(row.into()).iter().zip(&self.unsolved);
            factors.iter_mut().zip(pairs).for_each(|(to, (byte, mask))| *to = byte & !mask);
        }
        let factors: [&[u8]; WAITING_MAX] =
            core::array::from_fn(|place| if place < count { self.factors.row(place) } else { &[] });
        let mut outs: [&mut [u8]; WAITING_MAX] = Default::default();
        outs.iter_mut().zip(self.offsets.rows_mut()).for_each(|(to, row)| *to = row);
        self.fronts.combine(&factors[..count], self.shape.block_size, &mut outs[..count], len);
        for (&row, offset) in self.waiting.iter().zip(outs) {
            let pairs = self.arrived.row(row.into()).iter().zip(&self.unsolved);
            offset[..len].iter_mut().zip(pairs).for_each(|(to, (byte, mask))| *to ^= byte & mask);
        }
        self.offsets_listed.clear();
        (0..count).for_each(|place| self.offsets_listed.push(place));
        let mut offsets = self.offsets.grid();
        offsets.len = len;
        for &row in self.written.all() {
            let row = usize::from(row);
            let mut multipliers = [0; WAITING_MAX];
            for (place, &index) in self.waiting.iter().enumerate() {
                let multiplier = self.rows.coefficient(row, index.into());
                field.set_coefficient(&mut multipliers, place, multiplier);
            }
            let row = &mut self.fronts.row_mut(row)[..len];
            self.backend.reduce(&offsets, &self.offsets_listed, &multipliers, row);
        }
    }

    /// The symbol of a row is determined when all that is left in it is held.
    fn note_if_determined(&mut self, place: usize, row: usize) {
        let (row_left, start) = (self.rows.row(row), self.rows.start());
        if !any_common(row_left, &self.unheld[start..], self.unheld_start() - start) {
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

    /// What waits changes nothing: neither what is innovative or determined, nor any row once
    /// they are settled.
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
