//! Elimination of coefficients, one arriving row at a time. A row has as many bytes as there are
//! rows to go through, so the work per row must be minimal.

use alloc::vec::Vec;

use super::simd::Simd;
use super::{Backend, PADDING, Tables};
use crate::Field;

/// Rows of a matrix that elimination visits; the active ones, which may still change, come first.
#[derive(Clone, Debug)]
pub(crate) struct RowList {
    /// All below `limit`.
    rows: Vec<u16>,
    active: usize,
    limit: usize,
}

impl RowList {
    /// An empty list of rows below `limit`.
    pub fn new(limit: usize) -> Self {
        Self { rows: Vec::with_capacity(limit), active: 0, limit }
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.active = 0;
    }

    /// Adds an active row.
    #[inline]
    pub fn push(&mut self, row: usize) {
        assert!(row < self.limit && self.rows.len() < self.limit);
        self.rows.push(row as u16);
        let last = self.rows.len() - 1;
        self.rows.swap(self.active, last);
        self.active += 1;
    }

    /// Deactivates the row at that place; another one takes its place.
    pub fn retire(&mut self, place: usize) {
        self.active -= 1;
        self.rows.swap(place, self.active);
    }

    #[inline]
    pub fn active(&self) -> &[u16] {
        &self.rows[..self.active]
    }

    #[inline]
    pub fn all(&self) -> &[u16] {
        &self.rows
    }

    /// Bound: all rows are below it.
    #[inline]
    pub fn limit(&self) -> usize {
        self.limit
    }
}

/// The matrix to work on.
#[derive(Debug)]
pub(crate) struct Grid<'a> {
    pub field: Field,
    /// For each row, the bytes from `start` to `len`, at this distance.
    pub bytes: &'a mut [u8],
    pub stride: usize,
    pub len: usize,
    pub start: usize,
}

/// Operation for an arriving row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pivot {
    /// The number of its row, and of the coefficient eliminated from the others.
    pub index: usize,
    /// Factor to scale the arriving row with first.
    pub inverse: u8,
    /// Position of a word in a row, and bits in it.
    pub witness: (usize, u64),
}

impl Backend {
    /// Adds to `sum`, for each row of the list, the row times `vector`'s coefficient at the row's
    /// number.
    ///
    /// # Panics
    /// If a length does not match.
    #[inline]
    pub(crate) fn reduce(self, grid: &Grid<'_>, list: &RowList, vector: &[u8], sum: &mut [u8]) {
        // Callers that only read do not write through this pointer.
        let rows = list.check(grid, list.all(), grid.bytes.as_ptr().cast_mut());
        assert!(vector.len() >= grid.field.vector_len_bytes(list.limit) && sum.len() == grid.len);
        let (vector, sum) = (vector.as_ptr(), sum.as_mut_ptr());
        // SAFETY: this backend has its instructions; all rows are within the grid.
        unsafe { (self.0.reduce)(grid.field.tables(), &rows, vector, sum, grid.len) }
    }

    /// Turns `from`, scaled, into row `pivot.index`, and adds it to each active row, times that
    /// row's coefficient `pivot.index`. Writes to `found` the places in the list of rows that now
    /// have none of the witness's bits, if they changed or the field is GF(2); returns their
    /// number.
    ///
    /// # Panics
    /// If a length does not match.
    #[inline]
    pub(crate) fn eliminate(
        self,
        grid: &mut Grid<'_>,
        list: &RowList,
        pivot: Pivot,
        from: &[u8],
        found: &mut [u16],
    ) -> usize {
        let base = grid.bytes.as_mut_ptr();
        let rows = list.check(grid, list.active(), base);
        assert!(grid.field.vector_len_bytes(list.limit) <= grid.len);
        assert!(grid.field.vector_len_bytes(pivot.index + 1) > grid.start);
        assert!(pivot.index < list.limit && pivot.witness.0 + 8 <= grid.len);
        assert!(pivot.witness.0 >= grid.start);
        assert!(from.len() == grid.len && found.len() >= rows.count);
        let (from, found) = (from.as_ptr(), found.as_mut_ptr());
        // SAFETY: this backend has its instructions; all rows are within the grid, which is
        // borrowed apart from the rest.
        unsafe { (self.0.eliminate)(grid.field.tables(), &rows, pivot, from, found, grid.len) }
    }
}

impl RowList {
    /// Pointers to rows of this list in a grid.
    #[inline]
    pub(super) fn check(&self, grid: &Grid<'_>, rows: &[u16], base: *mut u8) -> Listed {
        let Grid { stride, len, start, .. } = *grid;
        assert!(len.is_multiple_of(PADDING));
        assert!(start.is_multiple_of(PADDING) && start <= len && len - start <= stride);
        assert!(self.limit * stride <= grid.bytes.len());
        // Where a whole row would start.
        let base = base.wrapping_sub(start);
        Listed { base, stride, start, rows: rows.as_ptr(), count: rows.len(), field: grid.field }
    }
}

/// Rows of a list: every number refers to a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    base: *mut u8,
    stride: usize,
    start: usize,
    rows: *const u16,
    count: usize,
    pub field: Field,
}

impl Listed {
    /// The numbers of the rows.
    ///
    /// # Safety
    /// The list they are of is still there, and the same.
    #[inline(always)]
    pub unsafe fn numbers(&self) -> &[u16] {
        // SAFETY: as promised by the caller, these are so many.
        unsafe { core::slice::from_raw_parts(self.rows, self.count) }
    }

    /// Where the row of that number starts, or would start if it were whole.
    #[inline(always)]
    pub fn row(&self, number: usize) -> *mut u8 {
        self.base.wrapping_add(number * self.stride)
    }
}

pub(super) type Reduce = unsafe fn(&Tables, &Listed, *const u8, *mut u8, usize);
pub(super) type Eliminate = unsafe fn(&Tables, &Listed, Pivot, *const u8, *mut u16, usize) -> usize;

/// A coefficient of `BITS` bits.
///
/// # Safety
/// The vector has it.
#[inline(always)]
pub(super) unsafe fn coefficient<const BITS: usize>(vector: *const u8, index: usize) -> u8 {
    // SAFETY: as promised by the caller.
    let byte = unsafe { *vector.wrapping_add(index * BITS / 8) };
    (byte >> (index * BITS % 8)) & (0xFF >> (8 - BITS))
}

/// Over GF(2), half of the coefficients are zero, unpredictably: so all rows are multiplied.
#[inline(always)]
pub(super) fn skipped<const BITS: usize>(coefficient: u8) -> bool {
    BITS > 1 && coefficient == 0
}

/// See [`Backend::reduce`].
///
/// # Safety
/// The instructions; the rows and the vector are readable, the sum is writable for `len` bytes, a
/// multiple of [`PADDING`], and it does not overlap them.
#[inline(always)]
pub(super) unsafe fn reduce<S: Simd>(
    tables: &Tables,
    rows: &Listed,
    vector: *const u8,
    sum: *mut u8,
    len: usize,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match rows.field {
            Field::Gf2 => reduce_by::<S, 1>(tables, rows, vector, sum, len),
            Field::Gf16 => reduce_by::<S, 4>(tables, rows, vector, sum, len),
            Field::Gf256 => reduce_by::<S, 8>(tables, rows, vector, sum, len),
        }
    }
}

#[inline(always)]
unsafe fn reduce_by<S: Simd, const BITS: usize>(
    tables: &Tables,
    rows: &Listed,
    vector: *const u8,
    sum: *mut u8,
    len: usize,
) {
    let mut at = rows.start;
    while at < len {
        // SAFETY: as promised by the caller of `reduce`; each strip ends at `len` at the latest.
        unsafe {
            let vectors = (len - at) / S::WIDTH;
            if vectors >= 8 {
                reduce_strip::<S, BITS, 8>(tables, rows, vector, sum, at);
                at += 8 * S::WIDTH;
            } else if vectors >= 4 {
                reduce_strip::<S, BITS, 4>(tables, rows, vector, sum, at);
                at += 4 * S::WIDTH;
            } else if vectors >= 2 {
                reduce_strip::<S, BITS, 2>(tables, rows, vector, sum, at);
                at += 2 * S::WIDTH;
            } else {
                reduce_strip::<S, BITS, 1>(tables, rows, vector, sum, at);
                at += S::WIDTH;
            }
        }
    }
}

#[inline(always)]
unsafe fn reduce_strip<S: Simd, const BITS: usize, const V: usize>(
    tables: &Tables,
    rows: &Listed,
    vector: *const u8,
    sum: *mut u8,
    at: usize,
) {
    // SAFETY: as promised by the caller of `reduce`; the strip is within the rows.
    unsafe {
        let mut sums = [S::zero(); V];
        for (v, value) in sums.iter_mut().enumerate() {
            *value = S::load(sum.add(at + v * S::WIDTH));
        }
        for place in 0..rows.count {
            let row = usize::from(*rows.rows.add(place));
            let coefficient = coefficient::<BITS>(vector, row);
            if skipped::<BITS>(coefficient) {
                continue;
            }
            let factor = S::factor(tables, coefficient);
            let from = rows.base.wrapping_add(row * rows.stride + at);
            for (v, value) in sums.iter_mut().enumerate() {
                let parts = S::split(S::load(from.add(v * S::WIDTH)));
                *value = S::xor(*value, S::multiply(factor, parts));
            }
        }
        for (v, value) in sums.into_iter().enumerate() {
            S::store(sum.add(at + v * S::WIDTH), value);
        }
    }
}

/// See [`Backend::eliminate`].
///
/// # Safety
/// The instructions; the rows are writable and `from` is readable for `len` bytes, a multiple of
/// [`PADDING`]; the row of the pivot is another one than these; `found` has room for as many.
#[inline(always)]
pub(super) unsafe fn eliminate<S: Simd>(
    tables: &Tables,
    rows: &Listed,
    pivot: Pivot,
    from: *const u8,
    found: *mut u16,
    len: usize,
) -> usize {
    // SAFETY: as promised by the caller.
    unsafe {
        match rows.field {
            Field::Gf2 => eliminate_by::<S, 1>(tables, rows, pivot, from, found, len),
            Field::Gf16 => eliminate_by::<S, 4>(tables, rows, pivot, from, found, len),
            Field::Gf256 => eliminate_by::<S, 8>(tables, rows, pivot, from, found, len),
        }
    }
}

#[inline(always)]
unsafe fn eliminate_by<S: Simd, const BITS: usize>(
    tables: &Tables,
    rows: &Listed,
    pivot: Pivot,
    from: *const u8,
    found: *mut u16,
    len: usize,
) -> usize {
    // SAFETY: as promised by the caller of `eliminate`.
    unsafe {
        let own = rows.base.wrapping_add(pivot.index * rows.stride);
        let inverse = S::factor(tables, pivot.inverse);
        let mut at = rows.start;
        while at < len {
            S::store(own.wrapping_add(at), S::multiply(inverse, S::split(S::load(from.add(at)))));
            at += S::WIDTH;
        }
        // A few vectors stay in registers for all rows.
        match if rows.start == 0 { len / S::WIDTH } else { 0 } {
            1 => eliminate_rows::<S, BITS, 1>(tables, rows, pivot, own, found, len),
            2 => eliminate_rows::<S, BITS, 2>(tables, rows, pivot, own, found, len),
            3 => eliminate_rows::<S, BITS, 3>(tables, rows, pivot, own, found, len),
            4 => eliminate_rows::<S, BITS, 4>(tables, rows, pivot, own, found, len),
            _ => eliminate_rows::<S, BITS, 0>(tables, rows, pivot, own, found, len),
        }
    }
}

/// With `V` vectors per row, or any number if `V` is 0.
#[inline(always)]
unsafe fn eliminate_rows<S: Simd, const BITS: usize, const V: usize>(
    tables: &Tables,
    rows: &Listed,
    pivot: Pivot,
    own: *const u8,
    found: *mut u16,
    len: usize,
) -> usize {
    // SAFETY: as promised by the caller of `eliminate`; the witness is within a row.
    unsafe {
        let mut parts = [S::split(S::zero()); V];
        for (v, parts) in parts.iter_mut().enumerate() {
            *parts = S::split(S::load(own.add(v * S::WIDTH)));
        }
        let (witness, bits) = pivot.witness;
        let mut count = 0;
        for place in 0..rows.count {
            let to = rows.base.wrapping_add(usize::from(*rows.rows.add(place)) * rows.stride);
            let coefficient = coefficient::<BITS>(to, pivot.index);
            if skipped::<BITS>(coefficient) {
                continue;
            }
            let factor = S::factor(tables, coefficient);
            for (v, &parts) in parts.iter().enumerate() {
                let to = to.add(v * S::WIDTH);
                S::store(to, S::xor(S::load(to), S::multiply(factor, parts)));
            }
            let mut at = if V == 0 { rows.start } else { len };
            while at < len {
                let parts = S::split(S::load(own.wrapping_add(at)));
                let to = to.wrapping_add(at);
                S::store(to, S::xor(S::load(to), S::multiply(factor, parts)));
                at += S::WIDTH;
            }
            *found.add(count) = place as u16;
            if V == 0 {
                count += 1;
                continue;
            }
            let word = to.wrapping_add(witness).cast::<u64>().read_unaligned();
            count += usize::from(u64::from_le(word) & bits == 0);
        }
        if V == 0 {
            // Deferred, because a word that was just stored takes long to load.
            let changed = count;
            count = 0;
            for place in 0..changed {
                let place = *found.add(place);
                let row = usize::from(*rows.rows.add(place.into()));
                let word = rows.base.wrapping_add(row * rows.stride + witness).cast::<u64>();
                *found.add(count) = place;
                count += usize::from(u64::from_le(word.read_unaligned()) & bits == 0);
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::naive::multiply_byte;

    const FIELDS: [Field; 3] = [Field::Gf2, Field::Gf16, Field::Gf256];

    /// A matrix of random rows, four of them listed, two of which are active.
    struct Case {
        field: Field,
        bytes: Vec<u8>,
        len: usize,
        stride: usize,
        start: usize,
        /// A pivot.
        index: usize,
        list: RowList,
    }

    impl Case {
        fn new(rng: &mut ChaCha8Rng, field: Field, len: usize) -> Self {
            // Memory holds whole rows: a grid of partial rows starts with the first part.
            let start = if len > 64 { (rng.next_u32() % 2) as usize * 64 } else { 0 };
            let index = start * 8 / field.order().ilog2() as usize + 5;
            let (count, stride) = (index + 4, len + PADDING);
            let bytes = random(rng, (count + 1) * stride);
            let mut list = RowList::new(count);
            for row in [7, 2, 4, 8] {
                list.push(row);
            }
            for _ in 0..2 {
                list.retire(0);
            }
            assert_eq!(list.active().len(), 2);
            Self { field, bytes, len, stride, start, index, list }
        }

        fn grid(&mut self) -> Grid<'_> {
            let Self { field, len, stride, start, .. } = *self;
            Grid { field, bytes: &mut self.bytes[start..], stride, len, start }
        }

        fn row(&self, row: usize) -> &[u8] {
            &self.bytes[row * self.stride..][..self.len]
        }

        /// Row `to += factor * from`, by the naive method.
        fn add(&mut self, to: usize, factor: u8, from: &[u8]) {
            let row = self.bytes[to * self.stride..].iter_mut();
            for (to, &from) in row.zip(from).skip(self.start) {
                *to ^= multiply_byte(self.field, factor, from);
            }
        }
    }

    fn random(rng: &mut ChaCha8Rng, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        rng.fill_bytes(&mut bytes);
        bytes
    }

    fn each_case(mut check: impl FnMut(&mut ChaCha8Rng, Backend, Case)) {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        for backend in Backend::available() {
            for field in FIELDS {
                for len in [64, 128, 192, 256, 320, 960, 1024] {
                    let case = Case::new(&mut rng, field, len);
                    check(&mut rng, backend, case);
                }
            }
        }
    }

    #[test]
    fn reduction_agrees_with_the_schoolbook() {
        each_case(|rng, backend, mut case| {
            let mut vector = random(rng, case.len);
            case.field.set_coefficient(&mut vector, 2, 0);
            let mut sum = random(rng, case.len);
            let mut expected = sum.clone();
            for &row in case.list.all() {
                let factor = case.field.coefficient(&vector, row.into());
                let row = case.row(row.into());
                for (sum, &byte) in expected.iter_mut().zip(row).skip(case.start) {
                    *sum ^= multiply_byte(case.field, factor, byte);
                }
            }
            let list = case.list.clone();
            backend.reduce(&case.grid(), &list, &vector, &mut sum);
            assert_eq!(sum, expected, "{backend:?} {:?} {}", case.field, case.len);
        });
    }

    #[test]
    fn elimination_agrees_with_the_schoolbook() {
        each_case(|rng, backend, mut case| {
            let from = random(rng, case.len);
            let at = case.len - 11;
            let one = |value: u8| (u32::from(value) % case.field.order()) as u8;
            let (index, inverse, factor) = (case.index, one(11), one(3));
            // One of the rows loses its witness bits, the other is unchanged.
            let rows: Vec<usize> = case.list.active().iter().map(|&row| row.into()).collect();
            let start = rows[0] * case.stride;
            case.field.set_coefficient(&mut case.bytes[start..], index, factor);
            let word = case.bytes[start + at..].iter_mut().zip(&from[at..]).take(8);
            word.for_each(|(byte, &from)| {
                let added = multiply_byte(case.field, inverse, from);
                *byte = multiply_byte(case.field, factor, added);
            });
            let start = rows[1] * case.stride;
            case.field.set_coefficient(&mut case.bytes[start..], index, 0);

            let own: Vec<u8> =
                from.iter().map(|&byte| multiply_byte(case.field, inverse, byte)).collect();
            let mut expected = Case { bytes: case.bytes.clone(), list: case.list.clone(), ..case };
            expected.add(rows[0], factor, &own);
            expected.bytes[index * case.stride..][case.start..case.len]
                .copy_from_slice(&own[case.start..]);

            let (list, mut found) = (case.list.clone(), [0; 9]);
            let pivot = Pivot { index, inverse, witness: (at, u64::MAX) };
            let count = backend.eliminate(&mut case.grid(), &list, pivot, &from, &mut found);
            let what = (backend, case.field, case.len);
            assert_eq!(case.bytes, expected.bytes, "{what:?}");
            assert_eq!(found[..count], [0], "{what:?}");
        });
    }
}
