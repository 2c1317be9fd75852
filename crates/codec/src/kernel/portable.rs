//! Portable code: words that the compiler may vectorise.
//!
//! A combination is computed bit by bit of the coefficients, from the highest: double the sum, and
//! add the rows whose coefficient has the bit set. So a row costs one addition per set bit, and
//! there are only eight doublings for all rows together.

use core::mem::MaybeUninit;

use super::arrive::{self, Arrival, Arriving};
use super::eliminate::{self, Listed, Pivot};
use super::simd::{self, Simd};
use super::{Combinations, Functions, Tables, Term};
use crate::MAX_BLOCK_SIZE;

const WORDS: usize = 4;
const ONES: u64 = 0x0101_0101_0101_0101;

type Words = [u64; WORDS];

/// There is nothing to prove.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Portable {
    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

impl Simd for Portable {
    const WIDTH: usize = 8 * WORDS;
    type Reg = Words;
    type Parts = Words;
    /// The value of each bit.
    type Factor = [u64; 8];

    #[inline(always)]
    unsafe fn zero() -> Words {
        [0; WORDS]
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Words {
        // SAFETY: the trait's contract.
        unsafe { from.cast::<Words>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u8, value: Words) {
        // SAFETY: the trait's contract.
        unsafe { to.cast::<Words>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, len: usize, value: Words) {
        // SAFETY: the trait's contract; words are bytes in the order of memory.
        unsafe { core::ptr::copy_nonoverlapping(value.as_ptr().cast(), to, len) }
    }
    #[inline(always)]
    unsafe fn xor(mut a: Words, b: Words) -> Words {
        for i in 0..WORDS {
            a[i] ^= b[i];
        }
        a
    }
    #[inline(always)]
    unsafe fn xor3(mut a: Words, b: Words, c: Words) -> Words {
        for i in 0..WORDS {
            a[i] ^= b[i] ^ c[i];
        }
        a
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, coefficient: u8) -> [u64; 8] {
        let table = &tables.shuffle[coefficient as usize];
        [1, 2, 4, 8, 17, 18, 20, 24].map(|place: usize| u64::from(table[place]) * ONES)
    }
    #[inline(always)]
    unsafe fn split(value: Words) -> Words {
        value
    }
    #[inline(always)]
    unsafe fn multiply(factor: [u64; 8], parts: Words) -> Words {
        let mut product = [0; WORDS];
        for i in 0..WORDS {
            for (bit, image) in factor.iter().enumerate() {
                let bits = (parts[i] >> bit) & ONES;
                product[i] ^= ((bits << 8).wrapping_sub(bits)) & image;
            }
        }
        product
    }
}

/// Vectors per strip, whose sums the compiler can keep in registers.
const STRIP: usize = 4;

/// Twice each element of a word.
#[derive(Clone, Copy)]
struct Doubling {
    /// Bits of an element, less one.
    top: u32,
    /// The lowest bit of each element.
    ones: u64,
    /// What the highest bit of each element becomes.
    overflow: u64,
}

impl Doubling {
    fn new(tables: &Tables) -> Self {
        let two = &tables.shuffle[2];
        // Elements are bytes if doubling carries a bit across the middle of a byte.
        if two[8] == 0x10 {
            Self { top: 7, ones: ONES, overflow: u64::from(two[16 + 8]) * ONES }
        } else {
            Self { top: 3, ones: 0x11 * ONES, overflow: u64::from(two[8]) * 0x11 * ONES }
        }
    }

    #[inline(always)]
    fn of(self, word: u64) -> u64 {
        let over = (word >> self.top) & self.ones;
        let all_over = (over << self.top << 1).wrapping_sub(over);
        ((word & !(self.ones << self.top)) << 1) ^ (all_over & self.overflow)
    }
}

/// For each bit of the factors, the places of the terms that have it set.
struct ByBit {
    places: [[MaybeUninit<u16>; MAX_BLOCK_SIZE]; 8],
    counts: [usize; 8],
}

impl ByBit {
    fn new() -> Self {
        let none = [const { MaybeUninit::uninit() }; MAX_BLOCK_SIZE];
        Self { places: [none; 8], counts: [0; 8] }
    }

    #[inline(never)]
    fn fill(&mut self, terms: &[Term], output: usize) {
        for (bit, (places, count)) in self.places.iter_mut().zip(&mut self.counts).enumerate() {
            *count = 0;
            for (place, term) in (0..).zip(terms) {
                if let Some(to) = places.get_mut(*count) {
                    to.write(place);
                    *count += usize::from((term.factors[output] >> bit) & 1);
                }
            }
        }
    }

    fn of(&self, bit: usize) -> impl Iterator<Item = usize> {
        // SAFETY: so many are written.
        self.places[bit][..self.counts[bit]]
            .iter()
            .map(|place| unsafe { place.assume_init() }.into())
    }
}

/// # Safety
/// As for [`simd::combine`].
unsafe fn combine(tables: &Tables, base: *const u8, terms: &[Term], outs: &[*mut u8], len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if let (&[_], &[out]) = (terms, outs) {
            // The output may be the row itself.
            return simd::combine::<Portable, 1, 1>(tables, base, terms, &[out], len);
        }
        let mut by_bit = ByBit::new();
        let doubling = Doubling::new(tables);
        for (output, &out) in outs.iter().enumerate() {
            by_bit.fill(terms, output);
            let mut at = 0;
            while at < len {
                let (base, out, rest) = (base.add(at), out.add(at), len - at);
                if rest > (STRIP - 1) * Portable::WIDTH {
                    strip::<STRIP>(doubling, base, terms, &by_bit, out, rest);
                    at += STRIP * Portable::WIDTH;
                } else {
                    strip::<1>(doubling, base, terms, &by_bit, out, rest);
                    at += Portable::WIDTH;
                }
            }
        }
    }
}

/// # Safety
/// As for [`combine`], from the first column of a strip on.
#[inline(always)]
unsafe fn strip<const V: usize>(
    doubling: Doubling,
    base: *const u8,
    terms: &[Term],
    by_bit: &ByBit,
    out: *mut u8,
    rest: usize,
) {
    let mut sums = [[0; WORDS]; V];
    // SAFETY: the caller's promise; what is read is padded.
    unsafe {
        for bit in (0..8).rev() {
            for word in sums.as_flattened_mut() {
                *word = doubling.of(*word);
            }
            for place in by_bit.of(bit) {
                let from = base.add(terms[place].offset as usize);
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = Portable::xor(*sum, Portable::load(from.add(v * Portable::WIDTH)));
                }
            }
        }
        simd::store_strip::<Portable, V>(out, rest, &sums);
    }
}

/// # Safety
/// As for [`simd::sum`].
unsafe fn sum(base: *const u8, terms: &[Term], out: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { simd::sum::<Portable, STRIP>(base, terms, out, len) }
}

/// # Safety
/// As for [`simd::update`].
unsafe fn update(tables: &Tables, base: *mut u8, terms: &[Term], from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { simd::update::<Portable>(tables, base, terms, from, len) }
}

/// # Safety
/// As for [`eliminate::reduce`].
unsafe fn reduce(tables: &Tables, rows: &Listed, vector: *const u8, sum: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { eliminate::reduce::<Portable>(tables, rows, vector, sum, len) }
}

/// # Safety
/// As for [`eliminate::eliminate`].
unsafe fn eliminate_column(
    tables: &Tables,
    rows: &Listed,
    pivot: Pivot,
    from: *const u8,
    found: *mut u16,
    len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { eliminate::eliminate::<Portable>(tables, rows, pivot, from, found, len) }
}

/// # Safety
/// As for [`arrive::arrive`].
unsafe fn arrive(
    tables: &Tables,
    rows: &Listed,
    arriving: Arriving,
    found: *mut u16,
) -> Option<Arrival> {
    // SAFETY: the caller's promise.
    unsafe { arrive::arrive::<Portable>(tables, rows, arriving, found) }
}

static KERNELS: Functions = Functions {
    name: "portable",
    listed: Combinations { one: combine, two: combine, four: combine },
    every: None,
    beside: None,
    sum,
    update,
    reduce,
    eliminate: eliminate_column,
    arrive,
    groups: None,
};
