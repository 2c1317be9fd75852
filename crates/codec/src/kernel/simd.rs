//! The kernels, written once for all instruction sets. Every function here is inlined into a
//! function that enables the instructions: see [`kernel_functions`].
//!
//! Reads are padded: rows may be read up to the next multiple of [`PADDING`] bytes. Writes are not,
//! so only stores have a masked form.

// Indices number registers, across several arrays.
#![allow(clippy::needless_range_loop)]
// Code that needs GFNI is for one architecture only.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_macros, unused_imports))]

use super::terms::Factored;
use super::{PADDING, Tables, Term};

/// The operations of one instruction set.
///
/// # Safety
/// All functions need the instructions. `load` reads and `store` writes `WIDTH` bytes,
/// `store_part` the first `len`, at any alignment. `WIDTH` divides [`PADDING`].
pub(super) trait Simd {
    const WIDTH: usize;
    /// A vector of bytes.
    type Reg: Copy;
    /// A vector, ready to be multiplied.
    type Parts: Copy;
    /// A coefficient, ready to multiply with.
    type Factor: Copy;
    unsafe fn zero() -> Self::Reg;
    unsafe fn load(from: *const u8) -> Self::Reg;
    unsafe fn store(to: *mut u8, value: Self::Reg);
    unsafe fn store_part(to: *mut u8, len: usize, value: Self::Reg);
    unsafe fn xor(a: Self::Reg, b: Self::Reg) -> Self::Reg;
    unsafe fn xor3(a: Self::Reg, b: Self::Reg, c: Self::Reg) -> Self::Reg;
    unsafe fn factor(tables: &Tables, coefficient: u8) -> Self::Factor;
    unsafe fn split(value: Self::Reg) -> Self::Parts;
    unsafe fn multiply(factor: Self::Factor, parts: Self::Parts) -> Self::Reg;
}

/// `outs[m] = sum of terms' factors [m] * their rows`, `len` bytes of each.
///
/// Columns are taken in strips of `V` vectors, whose sums stay in registers for all `M` outputs.
///
/// # Safety
/// The instructions; each term's row is readable, each output writable for `len` bytes, and no
/// output overlaps a row, unless it is one: what there is in a strip is read before any of it is
/// written.
#[inline(always)]
pub(super) unsafe fn combine<S: Simd, const M: usize, const V: usize>(
    tables: &Tables,
    base: *const u8,
    terms: &(impl Factored<M> + ?Sized),
    outs: &[*mut u8; M],
    len: usize,
) {
    let mut at = 0;
    while at < len {
        let (vectors, rest) = ((len - at).div_ceil(S::WIDTH), len - at);
        // SAFETY: as promised by the caller; each strip ends in the last vector at the latest.
        unsafe {
            if vectors >= V {
                strip::<S, M, V>(tables, base, terms, outs, at, rest);
                at += V * S::WIDTH;
            } else if V > 4 && vectors >= 4 {
                strip::<S, M, 4>(tables, base, terms, outs, at, rest);
                at += 4 * S::WIDTH;
            } else if V > 3 && vectors == 3 {
                strip::<S, M, 3>(tables, base, terms, outs, at, rest);
                at += 3 * S::WIDTH;
            } else if V > 2 && vectors == 2 {
                strip::<S, M, 2>(tables, base, terms, outs, at, rest);
                at += 2 * S::WIDTH;
            } else {
                strip::<S, M, 1>(tables, base, terms, outs, at, rest);
                at += S::WIDTH;
            }
        }
    }
}

/// [`combine`] for one output, reading rows whole and one after the other as far as the registers
/// have room for their sums: the fastest way for sources outside the L1 cache, by half compared
/// with narrow strips.
///
/// # Safety
/// As for [`combine`].
#[inline(always)]
pub(super) unsafe fn combine_in_order<S: Simd>(
    tables: &Tables,
    base: *const u8,
    terms: &(impl Factored<1> + ?Sized),
    out: *mut u8,
    len: usize,
) {
    let mut at = 0;
    while at < len {
        let (vectors, rest) = ((len - at).div_ceil(S::WIDTH), len - at);
        // Strips of about one width.
        let width = vectors.div_ceil(vectors.div_ceil(ROW_VECTORS_MAX));
        macro_rules! by_width {
            ($($width:literal)+) => {
                match width {
                    // SAFETY: as promised by the caller; the strip ends in the last vector.
                    $($width => unsafe {
                        row_strip::<S, $width>(tables, base, terms, out, at, rest);
                    },)+
                    _ => debug_assert!(false, "no strip is wider"),
                }
            };
        }
        by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);
        at += width * S::WIDTH;
    }
}

/// Sums of one strip of [`combine_in_order`].
const ROW_VECTORS_MAX: usize = 24;

#[inline(always)]
unsafe fn row_strip<S: Simd, const V: usize>(
    tables: &Tables,
    base: *const u8,
    terms: &(impl Factored<1> + ?Sized),
    out: *mut u8,
    at: usize,
    rest: usize,
) {
    // SAFETY: as promised by the caller of `combine_in_order`; `at` is within rows and output.
    unsafe {
        let mut sums = [S::zero(); V];
        for place in 0..terms.count() {
            let from = base.add(at + terms.offset(place));
            let factor = S::factor(tables, terms.factor(place, 0));
            for v in 0..V {
                let parts = S::split(S::load(from.add(v * S::WIDTH)));
                sums[v] = S::xor(sums[v], S::multiply(factor, parts));
            }
        }
        store_strip::<S, V>(out.add(at), rest, &sums);
    }
}

#[inline(always)]
unsafe fn strip<S: Simd, const M: usize, const V: usize>(
    tables: &Tables,
    base: *const u8,
    terms: &(impl Factored<M> + ?Sized),
    outs: &[*mut u8; M],
    at: usize,
    rest: usize,
) {
    // SAFETY: as promised by the caller of `combine`; `at` is within the rows and outputs.
    unsafe {
        let base = base.add(at);
        let mut sums = [[S::zero(); V]; M];
        let (count, mut place) = (terms.count(), 0);
        while place + 2 <= count {
            let from_a = base.add(terms.offset(place));
            let from_b = base.add(terms.offset(place + 1));
            if M == 1 {
                // No value is used twice: only the sums stay in registers.
                let factor_a = S::factor(tables, terms.factor(place, 0));
                let factor_b = S::factor(tables, terms.factor(place + 1, 0));
                for v in 0..V {
                    let (at_a, at_b) = (from_a.add(v * S::WIDTH), from_b.add(v * S::WIDTH));
                    let first = S::multiply(factor_a, S::split(S::load(at_a)));
                    let second = S::multiply(factor_b, S::split(S::load(at_b)));
                    sums[0][v] = S::xor3(sums[0][v], first, second);
                }
            } else {
                let mut parts = [[S::split(S::zero()); V]; 2];
                for v in 0..V {
                    parts[0][v] = S::split(S::load(from_a.add(v * S::WIDTH)));
                    parts[1][v] = S::split(S::load(from_b.add(v * S::WIDTH)));
                }
                for m in 0..M {
                    let factor_a = S::factor(tables, terms.factor(place, m));
                    let factor_b = S::factor(tables, terms.factor(place + 1, m));
                    for v in 0..V {
                        sums[m][v] = S::xor3(
                            sums[m][v],
                            S::multiply(factor_a, parts[0][v]),
                            S::multiply(factor_b, parts[1][v]),
                        );
                    }
                }
            }
            place += 2;
        }
        if place < count {
            let from = base.add(terms.offset(place));
            for v in 0..V {
                let parts = S::split(S::load(from.add(v * S::WIDTH)));
                for m in 0..M {
                    let factor = S::factor(tables, terms.factor(place, m));
                    sums[m][v] = S::xor(sums[m][v], S::multiply(factor, parts));
                }
            }
        }
        for m in 0..M {
            store_strip::<S, V>(outs[m].add(at), rest, &sums[m]);
        }
    }
}

/// Stores as much of `V` vectors as fits in `rest` bytes; all but the last fit.
#[inline(always)]
pub(super) unsafe fn store_strip<S: Simd, const V: usize>(
    to: *mut u8,
    rest: usize,
    sums: &[S::Reg; V],
) {
    // SAFETY: `rest` bytes are writable from `to` on.
    unsafe {
        for v in 0..V - 1 {
            S::store(to.add(v * S::WIDTH), sums[v]);
        }
        let (done, last) = ((V - 1) * S::WIDTH, sums[V - 1]);
        if rest >= V * S::WIDTH {
            S::store(to.add(done), last);
        } else {
            S::store_part(to.add(done), rest - done, last);
        }
    }
}

/// `out = sum of the rows at terms[j].offset`, whatever their factors.
///
/// # Safety
/// As for [`combine`].
#[inline(always)]
pub(super) unsafe fn sum<S: Simd, const V: usize>(
    base: *const u8,
    terms: &[Term],
    out: *mut u8,
    len: usize,
) {
    let mut at = 0;
    while at < len {
        let (vectors, rest) = ((len - at).div_ceil(S::WIDTH), len - at);
        // SAFETY: as promised by the caller; each strip ends in the last vector at the latest.
        unsafe {
            if vectors >= V {
                sum_strip::<S, V>(base, terms, out, at, rest);
                at += V * S::WIDTH;
            } else if V > 8 && vectors >= 8 {
                sum_strip::<S, 8>(base, terms, out, at, rest);
                at += 8 * S::WIDTH;
            } else if V > 4 && vectors >= 4 {
                sum_strip::<S, 4>(base, terms, out, at, rest);
                at += 4 * S::WIDTH;
            } else if V > 2 && vectors >= 2 {
                sum_strip::<S, 2>(base, terms, out, at, rest);
                at += 2 * S::WIDTH;
            } else {
                sum_strip::<S, 1>(base, terms, out, at, rest);
                at += S::WIDTH;
            }
        }
    }
}

#[inline(always)]
unsafe fn sum_strip<S: Simd, const V: usize>(
    base: *const u8,
    terms: &[Term],
    out: *mut u8,
    at: usize,
    rest: usize,
) {
    // SAFETY: as promised by the caller of `sum`; `at` is within the rows and the output.
    unsafe {
        let base = base.add(at);
        let mut sums = [S::zero(); V];
        let (pairs, last) = terms.as_chunks::<2>();
        for [a, b] in pairs {
            let (from_a, from_b) = (base.add(a.offset as usize), base.add(b.offset as usize));
            for v in 0..V {
                let (a, b) = (from_a.add(v * S::WIDTH), from_b.add(v * S::WIDTH));
                sums[v] = S::xor3(sums[v], S::load(a), S::load(b));
            }
        }
        for term in last {
            let from = base.add(term.offset as usize);
            for v in 0..V {
                sums[v] = S::xor(sums[v], S::load(from.add(v * S::WIDTH)));
            }
        }
        store_strip::<S, V>(out.add(at), rest, &sums);
    }
}

/// `row at terms[i].offset += terms[i].factors[0] * from`, `len` bytes, a multiple of [`PADDING`].
///
/// # Safety
/// The instructions; each term's row is writable and `from` readable for `len` bytes, and they do
/// not overlap.
#[inline(always)]
pub(super) unsafe fn update<S: Simd>(
    tables: &Tables,
    base: *mut u8,
    terms: &[Term],
    from: *const u8,
    len: usize,
) {
    debug_assert!(len.is_multiple_of(PADDING));
    // Row by row: there are more rows than fit in a cache.
    for term in terms {
        // SAFETY: as promised by the caller; `at` stays below `len`, a multiple of the width.
        unsafe {
            let factor = S::factor(tables, term.factors[0]);
            let to = base.add(term.offset as usize);
            let mut at = 0;
            while at < len {
                let parts = S::split(S::load(from.add(at)));
                let sum = S::xor(S::load(to.add(at)), S::multiply(factor, parts));
                S::store(to.add(at), sum);
                at += S::WIDTH;
            }
        }
    }
}

/// Sources up to this size, in bytes, fit in the L1 cache, where wide strips are best.
pub(super) const NEAR_BYTES: usize = 48 << 10;

/// One output from sources outside the cache, in strips of a number of vectors, or reading rows in
/// order.
macro_rules! far {
    ($simd:ty, in_order, $tables:expr, $base:expr, $terms:expr, $outs:expr, $len:expr) => {
        simd::combine_in_order::<$simd>($tables, $base, $terms, $outs[0], $len)
    };
    ($simd:ty, $one:literal, $tables:expr, $base:expr, $terms:expr, $outs:expr, $len:expr) => {
        simd::combine::<$simd, 1, $one>($tables, $base, $terms, $outs, $len)
    };
}

/// Instantiates the functions above for one instruction set, and the table of them.
macro_rules! kernel_functions {
    ($simd:ty, $name:literal, $(#[$enable:meta])* tile $tile:literal, one $one:tt, near $near:literal,
     factors $factors:ty, sum $sum:literal, groups $groups:expr) => {
        use $crate::kernel::Combinations;
        use $crate::kernel::arrive::{self, Arrival, Arriving};
        use $crate::kernel::beside::{self, Beside, BesideKernel};
        use $crate::kernel::eliminate::{self, Listed, Pivot};
        use $crate::kernel::terms::{Every, Factored};

        $(#[$enable])*
        unsafe fn combine_1<T: Factored<1> + ?Sized>(
            tables: &Tables, base: *const u8, terms: &T, outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise; it gives one output.
            unsafe {
                let outs = &*outs.as_ptr().cast::<[*mut u8; 1]>();
                if terms.count() * len <= simd::NEAR_BYTES {
                    simd::combine::<$simd, 1, $near>(tables, base, terms, outs, len);
                } else {
                    simd::far!($simd, $one, tables, base, terms, outs, len);
                }
            }
        }

        $(#[$enable])*
        unsafe fn combine_2<T: Factored<2> + ?Sized>(
            tables: &Tables, base: *const u8, terms: &T, outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise; it gives two outputs.
            unsafe {
                let outs = &*outs.as_ptr().cast::<[*mut u8; 2]>();
                simd::combine::<$simd, 2, $tile>(tables, base, terms, outs, len);
            }
        }

        $(#[$enable])*
        unsafe fn combine_4<T: Factored<4> + ?Sized>(
            tables: &Tables, base: *const u8, terms: &T, outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise; it gives four outputs.
            unsafe {
                let outs = &*outs.as_ptr().cast::<[*mut u8; 4]>();
                simd::combine::<$simd, 4, $tile>(tables, base, terms, outs, len);
            }
        }

        $(#[$enable])*
        unsafe fn combine_beside(
            tables: &Tables, base: *const u8, every: &Every, out: *mut u8, len: usize,
            beside: &Beside,
        ) {
            // SAFETY: the caller's promise.
            unsafe { beside::combine::<$simd, $factors, $near>(tables, base, every, out, len, beside) }
        }

        $(#[$enable])*
        unsafe fn sum(base: *const u8, terms: &[Term], out: *mut u8, len: usize) {
            // SAFETY: the caller's promise.
            unsafe { simd::sum::<$simd, $sum>(base, terms, out, len) }
        }

        $(#[$enable])*
        unsafe fn update(
            tables: &Tables, base: *mut u8, terms: &[Term], from: *const u8, len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { simd::update::<$simd>(tables, base, terms, from, len) }
        }

        $(#[$enable])*
        unsafe fn reduce(
            tables: &Tables, rows: &Listed, vector: *const u8, sum: *mut u8, len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { eliminate::reduce::<$simd>(tables, rows, vector, sum, len) }
        }

        $(#[$enable])*
        unsafe fn eliminate_column(
            tables: &Tables, rows: &Listed, pivot: Pivot, from: *const u8, found: *mut u16, len: usize,
        ) -> usize {
            // SAFETY: the caller's promise.
            unsafe { eliminate::eliminate::<$simd>(tables, rows, pivot, from, found, len) }
        }

        $(#[$enable])*
        unsafe fn arrive(
            tables: &Tables, rows: &Listed, arriving: Arriving, found: *mut u16,
        ) -> Option<Arrival> {
            // SAFETY: the caller's promise.
            unsafe { arrive::arrive::<$simd>(tables, rows, arriving, found) }
        }

        static KERNELS: Functions = Functions {
            name: $name,
            listed: Combinations {
                one: combine_1::<[Term]>, two: combine_2::<[Term]>, four: combine_4::<[Term]>,
            },
            every: Some(Combinations {
                one: combine_1::<Every>, two: combine_2::<Every>, four: combine_4::<Every>,
            }),
            beside: Some(BesideKernel {
                combine: combine_beside, width: <$simd as simd::Simd>::WIDTH,
            }),
            sum,
            update,
            reduce,
            eliminate: eliminate_column,
            arrive,
            groups: $groups,
        };
    };
}

pub(super) use {far, kernel_functions};
