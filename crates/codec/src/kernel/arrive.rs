//! Elimination for rows of one cache line: the whole update of the coefficients by an arriving
//! symbol, from its reduction to the rows that contain its pivot, stays in registers. There is no
//! other work to overlap with, so latency from one value to the next matters most.

// Indices number registers, across several arrays.
#![allow(clippy::needless_range_loop)]

use super::eliminate::{Listed, RowList, coefficient, skipped};
use super::simd::Simd;
use super::{Backend, Grid, PADDING, Tables};
use crate::Field;

/// Result of adding an innovative symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The number of its row, and of the coefficient eliminated from the others.
    pub pivot: usize,
    /// Number of rows that may be determined now.
    pub found: usize,
}

/// Pointers to lines, all readable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    /// Coefficients of the symbol.
    vector: *const u8,
    /// Those of them that are not multipliers of rows.
    left: *const u8,
    /// All bits set for the coefficients of numbers that are not held.
    unheld: *const u8,
    /// No word after this one has a bit set.
    last_word: usize,
    /// Number of active rows in the list.
    active: usize,
    /// Number of rows: all below it exist.
    limit: usize,
}

pub(super) type Arrive = unsafe fn(&Tables, &Listed, Arriving, *mut u16) -> Option<Arrival>;

/// Words of a line.
const WORDS: usize = PADDING / 8;

/// Lines with a single coefficient of 1: the line of number `i` starts `i` coefficients before the
/// middle. Over GF(2^4), the 1 is in the low half of its byte, or in the high half.
static UNITS: [[u8; 2 * PADDING]; 2] = {
    let mut units = [[0; 2 * PADDING]; 2];
    units[0][PADDING] = 1;
    units[1][PADDING] = 0x10;
    units
};

impl Backend {
    /// Adds to `left`, for each row of the list, the row times `vector`'s coefficient at the row's
    /// number. The remainder becomes the row of its first number that is not held: scaled to 1
    /// there, it is added to each active row, times that row's coefficient at that number. The
    /// coefficients at that number themselves become multipliers of the symbol's payload. Writes to
    /// `found` the places in the list of rows that changed and may no longer have a coefficient at
    /// a number that is not held. `last_word` is a word of `unheld` after which none has a bit set.
    ///
    /// `None` if there is no remainder; then nothing has changed.
    ///
    /// # Panics
    /// If a row is not one line, over GF(2), and if a length does not match.
    #[inline]
    pub(crate) fn arrive(
        self,
        grid: &mut Grid<'_>,
        list: &RowList,
        [vector, left, unheld]: [&[u8]; 3],
        last_word: usize,
        found: &mut [u16],
    ) -> Option<Arrival> {
        let base = grid.bytes.as_mut_ptr();
        let rows = list.check(grid, list.all(), base);
        let (active, limit) = (list.active().len(), list.limit());
        assert!(grid.len == PADDING && grid.start == 0 && grid.field != Field::Gf2);
        assert!(grid.field.vector_len_bytes(limit) <= PADDING && last_word < WORDS);
        assert!([vector, left, unheld].iter().all(|line| line.len() == PADDING));
        assert!(found.len() >= active && active <= list.all().len());
        let [vector, left, unheld] = [vector, left, unheld].map(<[u8]>::as_ptr);
        let arriving = Arriving { vector, left, unheld, last_word, active, limit };
        // SAFETY: the machine has this backend's instructions; all rows are within the grid, which
        // is borrowed apart from the rest.
        unsafe { (self.0.arrive)(grid.field.tables(), &rows, arriving, found.as_mut_ptr()) }
    }
}

/// See [`Backend::arrive`].
///
/// # Safety
/// The instructions; rows are lines that can be written, those below the limit as those listed,
/// and the lines of what arrives are others; `found` has room for the active rows.
#[inline(always)]
pub(super) unsafe fn arrive<S: Simd>(
    tables: &Tables,
    rows: &Listed,
    arriving: Arriving,
    found: *mut u16,
) -> Option<Arrival> {
    // SAFETY: as promised by the caller; so many vectors are a line.
    unsafe {
        match (PADDING / S::WIDTH, rows.field) {
            (1, Field::Gf16) => arrive_by::<S, 4, 1>(tables, rows, arriving, found),
            (1, _) => arrive_by::<S, 8, 1>(tables, rows, arriving, found),
            (2, Field::Gf16) => arrive_by::<S, 4, 2>(tables, rows, arriving, found),
            (2, _) => arrive_by::<S, 8, 2>(tables, rows, arriving, found),
            (_, Field::Gf16) => arrive_by::<S, 4, 4>(tables, rows, arriving, found),
            _ => arrive_by::<S, 8, 4>(tables, rows, arriving, found),
        }
    }
}

// Loops instead of closures, which would have to be inlined into functions without the
// instructions.

/// A line.
///
/// # Safety
/// The instructions; it is readable, and `V` vectors long.
#[inline(always)]
unsafe fn load<S: Simd, const V: usize>(from: *const u8) -> [S::Reg; V] {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut line = [S::zero(); V];
        for v in 0..V {
            line[v] = S::load(from.add(v * S::WIDTH));
        }
        line
    }
}

/// `sum + factor * line`
///
/// # Safety
/// The instructions.
#[inline(always)]
unsafe fn add<S: Simd, const V: usize>(
    mut sum: [S::Reg; V],
    factor: S::Factor,
    line: [S::Reg; V],
) -> [S::Reg; V] {
    for v in 0..V {
        // SAFETY: as promised by the caller.
        sum[v] = unsafe { S::xor(sum[v], S::multiply(factor, S::split(line[v]))) };
    }
    sum
}

/// # Safety
/// The instructions.
#[inline(always)]
unsafe fn xor<S: Simd, const V: usize>(mut a: [S::Reg; V], b: [S::Reg; V]) -> [S::Reg; V] {
    for v in 0..V {
        // SAFETY: as promised by the caller.
        a[v] = unsafe { S::xor(a[v], b[v]) };
    }
    a
}

/// # Safety
/// The instructions; the line is writable, and `V` vectors long.
#[inline(always)]
unsafe fn store<S: Simd, const V: usize>(to: *mut u8, line: [S::Reg; V]) {
    for v in 0..V {
        // SAFETY: as promised by the caller.
        unsafe { S::store(to.add(v * S::WIDTH), line[v]) };
    }
}

/// # Safety
/// As for [`arrive`]; `V` vectors are a line.
#[inline(always)]
unsafe fn arrive_by<S: Simd, const BITS: usize, const V: usize>(
    tables: &Tables,
    rows: &Listed,
    arriving: Arriving,
    found: *mut u16,
) -> Option<Arrival> {
    // SAFETY: as promised by the caller; the pivot is below the limit, hence in a line.
    unsafe {
        let mut left = load::<S, V>(arriving.left);
        for &row in rows.numbers() {
            let row = usize::from(row);
            let coefficient = coefficient::<BITS>(arriving.vector, row);
            if skipped::<BITS>(coefficient) {
                continue;
            }
            let line = load::<S, V>(rows.row(row));
            left = add::<S, V>(left, S::factor(tables, coefficient), line);
        }
        let mut words = [0_u64; WORDS];
        store::<S, V>(words.as_mut_ptr().cast(), left);
        let unheld =
            |at: usize| u64::from_le(arriving.unheld.cast::<u64>().add(at).read_unaligned());
        let open = |at: usize| u64::from_le(words[at]) & unheld(at);
        let first = (0..=arriving.last_word).find(|&at| open(at) != 0)?;
        let pivot = (first * 64 + open(first).trailing_zeros() as usize) / BITS;
        if pivot >= arriving.limit {
            return None;
        }

        // Other rows already have a coefficient where their multiplier of the payload belongs. So
        // the line added to them has one more there than the new row itself.
        let own = coefficient::<BITS>(words.as_ptr().cast(), pivot);
        let inverse = S::factor(tables, tables.inverses[own as usize]);
        let units = &UNITS[pivot * BITS % 8 / 4];
        let unit = load::<S, V>(units.as_ptr().add(PADDING - pivot * BITS / 8));
        let more = xor::<S, V>(left, unit);
        let multiplied = add::<S, V>([S::zero(); V], inverse, more);
        store::<S, V>(rows.row(pivot), xor::<S, V>(multiplied, unit));

        // The last word, because numbers become held from the first one on.
        let taken = (u64::MAX >> (64 - BITS)) << (pivot * BITS % 64);
        let still = |at: usize| if at == first { unheld(at) & !taken } else { unheld(at) };
        let witness = (0..=arriving.last_word).rev().find(|&at| still(at) != 0).unwrap_or(0);
        let bits = still(witness);
        let mut count = 0;
        for (place, &row) in (0..).zip(&rows.numbers()[..arriving.active]) {
            let row = rows.row(row.into());
            let coefficient = coefficient::<BITS>(row, pivot);
            if skipped::<BITS>(coefficient) {
                continue;
            }
            let sum = add::<S, V>(load::<S, V>(row), S::factor(tables, coefficient), multiplied);
            store::<S, V>(row, sum);
            *found.add(count) = place;
            let word = row.cast::<u64>().add(witness).read_unaligned();
            count += usize::from(u64::from_le(word) & bits == 0);
        }
        Some(Arrival { pivot, found: count })
    }
}

#[cfg(test)]
mod tests {
    use std::{vec, vec::Vec};

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::naive::multiply_byte;

    /// `sum += factor * line`, by the naive method.
    fn add(field: Field, sum: &mut [u8], factor: u8, line: &[u8]) {
        for (sum, &byte) in sum.iter_mut().zip(line) {
            *sum ^= multiply_byte(field, factor, byte);
        }
    }

    fn random(rng: &mut ChaCha8Rng, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        rng.fill_bytes(&mut bytes);
        bytes
    }

    fn any_common(a: &[u8], b: &[u8]) -> bool {
        a.iter().zip(b).any(|(a, b)| a & b != 0)
    }

    /// Random rows, some of them listed and some of those active, and the expected results.
    fn check(rng: &mut ChaCha8Rng, backend: Backend, field: Field, count: usize) {
        let stride = [64, 192][(rng.next_u32() % 2) as usize];
        let mut bytes = random(rng, count * stride);
        let mut list = RowList::new(count);
        let mut unheld = vec![0; PADDING];
        for number in 0..count {
            match rng.next_u32() % 4 {
                0 | 1 => list.push(number),
                2 => field.set_coefficient(&mut unheld, number, (field.order() - 1) as u8),
                _ => {}
            }
        }
        for _ in 0..list.all().len() / 3 {
            list.retire(0);
        }
        // Zero coefficients are skipped: include some.
        let [vector, mut left] = [(); 2].map(|()| random(rng, PADDING));
        for number in (0..count).filter(|number| number % 5 == 2) {
            field.set_coefficient(&mut left, number, 0);
            for row in bytes.chunks_exact_mut(stride) {
                field.set_coefficient(row, number, 0);
            }
        }

        let mut expected = bytes.clone();
        let mut sum = left.clone();
        for row in list.all().iter().copied().map(usize::from) {
            add(field, &mut sum, field.coefficient(&vector, row), &bytes[row * stride..]);
        }
        let open = |&number: &usize| {
            field.coefficient(&unheld, number) != 0 && field.coefficient(&sum, number) != 0
        };
        let pivot = (0..count).find(open);
        let mut still = unheld.clone();
        let mut changed = Vec::new();
        if let Some(pivot) = pivot {
            field.set_coefficient(&mut still, pivot, 0);
            let inverse = field.invert(field.coefficient(&sum, pivot));
            let mut own = vec![0; PADDING];
            add(field, &mut own, inverse, &sum);
            // The multiplier of its own payload.
            field.set_coefficient(&mut own, pivot, inverse);
            expected[pivot * stride..][..PADDING].copy_from_slice(&own);
            for (place, row) in (0..).zip(list.active().iter().copied().map(usize::from)) {
                let row = &mut expected[row * stride..][..PADDING];
                let factor = field.coefficient(row, pivot);
                field.set_coefficient(row, pivot, 0);
                add(field, row, factor, &own);
                if factor != 0 {
                    changed.push((place, !any_common(row, &still)));
                }
            }
        }

        let grid = &mut Grid { field, bytes: &mut bytes, stride, len: PADDING, start: 0 };
        let mut found = vec![0; count];
        let last_word = unheld.chunks(8).rposition(|word| word != [0; 8]).unwrap_or(0);
        let lines = [&vector[..], &left, &unheld];
        let arrival = backend.arrive(grid, &list, lines, last_word, &mut found);
        let what = (backend, field, count);
        assert_eq!(arrival.map(|arrival| arrival.pivot), pivot, "{what:?}");
        assert_eq!(bytes, expected, "{what:?}");
        let found = &found[..arrival.map_or(0, |arrival| arrival.found)];
        let known: Vec<u16> = changed.iter().map(|&(place, _)| place).collect();
        assert!(found.iter().all(|place| known.contains(place)), "{what:?}");
        let mut determined = changed.iter().filter(|(_, determined)| *determined);
        assert!(determined.all(|(place, _)| found.contains(place)), "{what:?}");
    }

    #[test]
    fn what_arrives_does_what_the_schoolbook_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(15);
        for backend in Backend::available() {
            for (field, most) in [(Field::Gf256, 64), (Field::Gf16, 128)] {
                for round in 0..60 {
                    let count = if round < 20 { most } else { 1 + rng.next_u32() as usize % most };
                    check(&mut rng, backend, field, count);
                }
            }
        }
    }
}
