//! The kernels, written once for all instruction sets. Every function here is inlined into a
//! function that enables the instructions: see [`kernel_functions`].
//!
//! What is read is padded: rows may be read up to the next multiple of [`PADDING`] bytes. What is
//! written is not, so only stores have a masked form.

// Indices number registers, of several arrays at once.
#![allow(clippy::needless_range_loop)]
// What needs GFNI is for one architecture only.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_macros, unused_imports))]

use core::mem::MaybeUninit;

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

/// What GFNI can do beyond that: multiply any 8x8 bit matrix.
///
/// # Safety
/// As for [`Simd`].
pub(super) trait Affine: Simd {
    /// The bit matrix in every eight bytes.
    unsafe fn matrix(matrix: u64) -> Self::Reg;
    /// `matrix` times each byte of `value`.
    unsafe fn affine(value: Self::Reg, matrix: Self::Reg) -> Self::Reg;
    /// Brings the bytes of one column together: in each eight bytes, byte `s` becomes that of
    /// register `s`. Which column goes where is free, if only `part_columns` takes it back.
    unsafe fn join_columns(rows: [Self::Reg; 8]) -> [Self::Reg; 8];
    /// The inverse.
    unsafe fn part_columns(columns: [Self::Reg; 8]) -> [Self::Reg; 8];
    /// The low halves of the bytes of `a` below those of `b`, and the high halves likewise. This
    /// is its own inverse.
    unsafe fn exchange_halves(a: Self::Reg, b: Self::Reg) -> (Self::Reg, Self::Reg);
}

/// `outs[m] = sum of terms[j].factors[m] * row at terms[j].offset`, `len` bytes of each.
///
/// Columns are taken in strips of `V` vectors, whose sums stay in registers for all `M` outputs.
///
/// # Safety
/// The instructions; each term's row is readable, each output writable for `len` bytes, and no
/// output overlaps a row, unless there is but one of each, in one place.
#[inline(always)]
pub(super) unsafe fn combine<S: Simd, const M: usize, const V: usize>(
    tables: &Tables,
    base: *const u8,
    terms: &[Term],
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

/// [`combine`] for one output, rows read whole and one after the other as far as the registers
/// have room for their sums: so sources that are not in the nearest cache come fastest, by half
/// again against narrow strips.
///
/// # Safety
/// As for [`combine`].
#[inline(always)]
pub(super) unsafe fn combine_in_order<S: Simd>(
    tables: &Tables,
    base: *const u8,
    terms: &[Term],
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
    terms: &[Term],
    out: *mut u8,
    at: usize,
    rest: usize,
) {
    // SAFETY: as promised by the caller of `combine_in_order`; `at` is within rows and output.
    unsafe {
        let mut sums = [S::zero(); V];
        for term in terms {
            let from = base.add(at + term.offset as usize);
            let factor = S::factor(tables, term.factors[0]);
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
    terms: &[Term],
    outs: &[*mut u8; M],
    at: usize,
    rest: usize,
) {
    // SAFETY: as promised by the caller of `combine`; `at` is within the rows and outputs.
    unsafe {
        let base = base.add(at);
        let mut sums = [[S::zero(); V]; M];
        let (pairs, last) = terms.as_chunks::<2>();
        if M == 1 {
            // Nothing is used twice: no more than the sums is kept.
            for [a, b] in pairs {
                let (from_a, from_b) = (base.add(a.offset as usize), base.add(b.offset as usize));
                let factor_a = S::factor(tables, a.factors[0]);
                let factor_b = S::factor(tables, b.factors[0]);
                for v in 0..V {
                    let (at_a, at_b) = (from_a.add(v * S::WIDTH), from_b.add(v * S::WIDTH));
                    let first = S::multiply(factor_a, S::split(S::load(at_a)));
                    let second = S::multiply(factor_b, S::split(S::load(at_b)));
                    sums[0][v] = S::xor3(sums[0][v], first, second);
                }
            }
        }
        let pairs = if M == 1 { &[] } else { pairs };
        for [a, b] in pairs {
            let (from_a, from_b) = (base.add(a.offset as usize), base.add(b.offset as usize));
            let mut parts = [[S::split(S::zero()); V]; 2];
            for v in 0..V {
                parts[0][v] = S::split(S::load(from_a.add(v * S::WIDTH)));
                parts[1][v] = S::split(S::load(from_b.add(v * S::WIDTH)));
            }
            for m in 0..M {
                let factor_a = S::factor(tables, a.factors[m]);
                let factor_b = S::factor(tables, b.factors[m]);
                for v in 0..V {
                    sums[m][v] = S::xor3(
                        sums[m][v],
                        S::multiply(factor_a, parts[0][v]),
                        S::multiply(factor_b, parts[1][v]),
                    );
                }
            }
        }
        for term in last {
            let from = base.add(term.offset as usize);
            for v in 0..V {
                let parts = S::split(S::load(from.add(v * S::WIDTH)));
                for m in 0..M {
                    let factor = S::factor(tables, term.factors[m]);
                    sums[m][v] = S::xor(sums[m][v], S::multiply(factor, parts));
                }
            }
        }
        for m in 0..M {
            store_strip::<S, V>(outs[m].add(at), rest, &sums[m]);
        }
    }
}

/// Stores as much of `V` vectors as `rest` bytes have room for; all but the last have.
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
    // Row by row: there are more of them than a cache has room for.
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

/// A way of keeping `G` symbols interleaved, so that eight bytes have bits of all of them.
pub(super) trait Interleaving<S: Affine, const G: usize> {
    /// Whether two groups at a time are best, which saves additions but reads less in order.
    const PAIRS: bool;
    /// # Safety
    /// The instructions.
    unsafe fn interleave(rows: [S::Reg; G]) -> [S::Reg; G];
    /// The product of interleaved sources and the matrix of their coefficients.
    ///
    /// # Safety
    /// The instructions.
    unsafe fn multiply(sources: S::Reg, matrix: S::Reg) -> S::Reg;
    /// From sums of such products to outputs.
    ///
    /// # Safety
    /// The instructions.
    unsafe fn restore(sums: [S::Reg; G]) -> [S::Reg; G];
}

/// Eight symbols over GF(2). Of each column's eight bytes one matrix is made, whose rows are the
/// bits of a byte and whose columns are the symbols. Coefficients are the vectors that it is
/// multiplied with: each gives a byte of an output, with its bits in their order.
pub(super) struct Bits;

/// Turns the bits of each eight bytes about, with a matrix of bytes as its argument.
const TRANSPOSE: u64 = 0x0102_0408_1020_4080;

impl<S: Affine> Interleaving<S, 8> for Bits {
    const PAIRS: bool = false;

    #[inline(always)]
    unsafe fn interleave(mut rows: [S::Reg; 8]) -> [S::Reg; 8] {
        // SAFETY: the caller has the instructions.
        unsafe {
            // The first row of a matrix belongs to the highest bit: then so must the first symbol.
            rows.reverse();
            let mut columns = S::join_columns(rows);
            for column in &mut columns {
                *column = S::affine(S::matrix(TRANSPOSE), *column);
            }
            columns
        }
    }

    #[inline(always)]
    unsafe fn multiply(sources: S::Reg, matrix: S::Reg) -> S::Reg {
        // SAFETY: the caller has the instructions.
        unsafe { S::affine(matrix, sources) }
    }

    #[inline(always)]
    unsafe fn restore(sums: [S::Reg; 8]) -> [S::Reg; 8] {
        // SAFETY: the caller has the instructions.
        unsafe { S::part_columns(sums) }
    }
}

/// Two symbols over GF(2^4): the low half of each byte belongs to the first.
pub(super) struct Halves;

impl<S: Affine> Interleaving<S, 2> for Halves {
    const PAIRS: bool = true;

    #[inline(always)]
    unsafe fn interleave([a, b]: [S::Reg; 2]) -> [S::Reg; 2] {
        // SAFETY: the caller has the instructions.
        unsafe { S::exchange_halves(a, b).into() }
    }

    #[inline(always)]
    unsafe fn multiply(sources: S::Reg, matrix: S::Reg) -> S::Reg {
        // SAFETY: the caller has the instructions.
        unsafe { S::affine(sources, matrix) }
    }

    #[inline(always)]
    unsafe fn restore([a, b]: [S::Reg; 2]) -> [S::Reg; 2] {
        // SAFETY: the caller has the instructions.
        unsafe { S::exchange_halves(a, b).into() }
    }
}

/// Interleaves up to `G` rows, `len` bytes of each: each vector of columns to `G` vectors, which
/// are `pitch` bytes after those of the columns before; `len` is a multiple of [`PADDING`].
/// Missing rows are zeros.
///
/// # Safety
/// The instructions; the rows are readable, the output is writable, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn interleave<S: Affine, I: Interleaving<S, G>, const G: usize>(
    base: *const u8,
    stride: usize,
    rows: usize,
    out: *mut u8,
    pitch: usize,
    len: usize,
) {
    let mut at = 0;
    while at < len {
        // SAFETY: as promised by the caller; `at` stays below `len`, a multiple of the width.
        unsafe {
            let mixed = I::interleave(load_rows::<S, G>(base.add(at), stride, rows));
            let out = out.add(at / S::WIDTH * pitch);
            for (g, value) in mixed.into_iter().enumerate() {
                S::store(out.add(g * S::WIDTH), value);
            }
        }
        at += S::WIDTH;
    }
}

#[inline(always)]
unsafe fn load_rows<S: Simd, const G: usize>(
    base: *const u8,
    stride: usize,
    rows: usize,
) -> [S::Reg; G] {
    // SAFETY: as promised by the caller of `interleave`.
    unsafe {
        let mut values = [S::zero(); G];
        for (g, value) in values.iter_mut().enumerate() {
            if g < rows {
                *value = S::load(base.add(g * stride));
            }
        }
        values
    }
}

/// Interleaved sources, and rows that are not yet: fewer than a group. For each vector of columns
/// the groups follow each other, so that they are read from front to back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    pub base: *const u8,
    /// From the groups of one vector of columns to those of the next, in bytes.
    pub pitch: usize,
    pub count: usize,
    pub tail: *const u8,
    pub tail_stride: usize,
    pub tail_rows: usize,
}

/// `outs = matrices * sources`, by blocks of `G` outputs and `G` sources: one instruction each.
/// `T` groups of outputs and `C` columns of vectors are in registers at a time. The matrices of
/// one group of sources are next to each other.
///
/// # Safety
/// The instructions; all groups and rows are readable, the outputs that are there, `T * G` at most,
/// are writable for `len` bytes and overlap nothing; there are `T` matrices for each group, the
/// tail included if it has rows.
#[inline(always)]
pub(super) unsafe fn combine_groups<
    S: Affine,
    I: Interleaving<S, G>,
    const G: usize,
    const C: usize,
    const T: usize,
>(
    groups: &Groups,
    matrices: *const u64,
    outs: &[*mut u8],
    len: usize,
) {
    let mut at = 0;
    while at < len {
        // SAFETY: as promised by the caller; what is read is padded to whole vectors.
        unsafe {
            if C > 1 && len - at > (C - 1) * S::WIDTH {
                group_strip::<S, I, G, C, T>(groups, matrices, outs, at, len - at);
                at += C * S::WIDTH;
            } else {
                group_strip::<S, I, G, 1, T>(groups, matrices, outs, at, len - at);
                at += S::WIDTH;
            }
        }
    }
}

#[inline(always)]
unsafe fn group_strip<
    S: Affine,
    I: Interleaving<S, G>,
    const G: usize,
    const C: usize,
    const T: usize,
>(
    groups: &Groups,
    matrices: *const u64,
    outs: &[*mut u8],
    at: usize,
    rest: usize,
) {
    // SAFETY: as promised by the caller of `combine_groups`.
    unsafe {
        // First of all, while there are no sums that would have to make room.
        let mut tail = [[const { MaybeUninit::<S::Reg>::uninit() }; G]; C];
        if groups.tail_rows > 0 {
            for c in 0..C {
                let from = groups.tail.add(at + c * S::WIDTH);
                let rows = load_rows::<S, G>(from, groups.tail_stride, groups.tail_rows);
                let mixed = I::interleave(rows);
                for g in 0..G {
                    tail[c][g].write(mixed[g]);
                }
            }
        }
        let mut sums = [[[S::zero(); G]; C]; T];
        let base = groups.base.add(at / S::WIDTH * groups.pitch);
        let mut group = 0;
        while I::PAIRS && group + 2 <= groups.count {
            let mut pair = [[S::zero(); T]; 2];
            for t in 0..T {
                pair[0][t] = S::matrix(*matrices.add(group * T + t));
                pair[1][t] = S::matrix(*matrices.add(group * T + T + t));
            }
            for c in 0..C {
                let from = base.add(c * groups.pitch + group * G * S::WIDTH);
                for g in 0..G {
                    let first = S::load(from.add(g * S::WIDTH));
                    let second = S::load(from.add((G + g) * S::WIDTH));
                    for t in 0..T {
                        sums[t][c][g] = S::xor3(
                            sums[t][c][g],
                            I::multiply(first, pair[0][t]),
                            I::multiply(second, pair[1][t]),
                        );
                    }
                }
            }
            group += 2;
        }
        while group < groups.count {
            let from = base.add(group * G * S::WIDTH);
            add_group::<S, I, G, C, T>(&mut sums, from, groups.pitch, matrices.add(group * T));
            group += 1;
        }
        if groups.tail_rows > 0 {
            let (from, pitch) = (tail.as_ptr().cast(), G * S::WIDTH);
            add_group::<S, I, G, C, T>(&mut sums, from, pitch, matrices.add(group * T));
        }
        for t in 0..T {
            for c in 0..C {
                let rows = I::restore(core::array::from_fn(|g| sums[t][c][g]));
                for g in 0..G {
                    if let Some(out) = outs.get(t * G + g) {
                        let done = c * S::WIDTH;
                        store_strip::<S, 1>(out.add(at + done), rest - done, &[rows[g]]);
                    }
                }
            }
        }
    }
}

/// Adds the products of one group of sources and its matrices.
#[inline(always)]
unsafe fn add_group<
    S: Affine,
    I: Interleaving<S, G>,
    const G: usize,
    const C: usize,
    const T: usize,
>(
    sums: &mut [[[S::Reg; G]; C]; T],
    from: *const u8,
    pitch: usize,
    matrices: *const u64,
) {
    // SAFETY: as promised by the caller of `combine_groups`.
    unsafe {
        let mut of_group = [S::zero(); T];
        for t in 0..T {
            of_group[t] = S::matrix(*matrices.add(t));
        }
        for c in 0..C {
            for g in 0..G {
                let sources = S::load(from.add(c * pitch + g * S::WIDTH));
                for t in 0..T {
                    sums[t][c][g] = S::xor(sums[t][c][g], I::multiply(sources, of_group[t]));
                }
            }
        }
    }
}

/// Sources of so many bytes are in the nearest cache: then wide strips are best.
pub(super) const NEAR_BYTES: usize = 48 << 10;

/// One output of sources that are far, in strips of so many vectors or reading rows in order.
macro_rules! far {
    ($simd:ty, in_order, $tables:expr, $base:expr, $terms:expr, $outs:expr, $len:expr) => {
        simd::combine_in_order::<$simd>($tables, $base, $terms, $outs[0], $len)
    };
    ($simd:ty, $one:literal, $tables:expr, $base:expr, $terms:expr, $outs:expr, $len:expr) => {
        simd::combine::<$simd, 1, $one>($tables, $base, $terms, $outs, $len)
    };
}

/// Makes the functions of one instruction set of the ones above, and the table of them.
macro_rules! kernel_functions {
    ($simd:ty, $name:literal, $(#[$enable:meta])* tile $tile:literal, one $one:tt, near $near:literal,
     sum $sum:literal, groups $groups:expr) => {
        use $crate::kernel::eliminate::{self, Listed, Pivot};

        $(#[$enable])*
        unsafe fn combine_1(
            tables: &Tables, base: *const u8, terms: &[Term], outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise; it gives one output.
            unsafe {
                let outs = &*outs.as_ptr().cast::<[*mut u8; 1]>();
                if terms.len() * len <= simd::NEAR_BYTES {
                    simd::combine::<$simd, 1, $near>(tables, base, terms, outs, len);
                } else {
                    simd::far!($simd, $one, tables, base, terms, outs, len);
                }
            }
        }

        $(#[$enable])*
        unsafe fn combine_4(
            tables: &Tables, base: *const u8, terms: &[Term], outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise; it gives four outputs.
            unsafe {
                let outs = &*outs.as_ptr().cast::<[*mut u8; 4]>();
                simd::combine::<$simd, 4, $tile>(tables, base, terms, outs, len);
            }
        }

        $(#[$enable])*
        unsafe fn combine_2(
            tables: &Tables, base: *const u8, terms: &[Term], outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise; it gives two outputs.
            unsafe {
                let outs = &*outs.as_ptr().cast::<[*mut u8; 2]>();
                simd::combine::<$simd, 2, $tile>(tables, base, terms, outs, len);
            }
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

        static KERNELS: Functions = Functions {
            name: $name,
            combine_1,
            combine_2,
            combine_4,
            sum,
            update,
            reduce,
            eliminate: eliminate_column,
            groups: $groups,
        };
    };
}

/// The same for the functions that need GFNI.
macro_rules! grouped_kernels {
    ($simd:ty, $(#[$enable:meta])* bits $bits:literal, halves $halves:literal) => {
        $(#[$enable])*
        unsafe fn interleave_bits(
            base: *const u8, stride: usize, rows: usize, out: *mut u8, pitch: usize, len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { simd::interleave::<$simd, simd::Bits, 8>(base, stride, rows, out, pitch, len) }
        }

        $(#[$enable])*
        unsafe fn interleave_halves(
            base: *const u8, stride: usize, rows: usize, out: *mut u8, pitch: usize, len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { simd::interleave::<$simd, simd::Halves, 2>(base, stride, rows, out, pitch, len) }
        }

        /// With `T` groups of outputs.
        $(#[$enable])*
        unsafe fn combine_bits<const T: usize>(
            groups: &simd::Groups, matrices: *const u64, outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                simd::combine_groups::<$simd, simd::Bits, 8, 1, T>(groups, matrices, outs, len);
            }
        }

        /// With `T` groups of outputs.
        $(#[$enable])*
        unsafe fn combine_halves<const T: usize>(
            groups: &simd::Groups, matrices: *const u64, outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                simd::combine_groups::<$simd, simd::Halves, 2, 2, T>(groups, matrices, outs, len);
            }
        }

        static GROUPED: Grouped = Grouped {
            width: <$simd as Simd>::WIDTH,
            bits: Grouping {
                interleave: interleave_bits,
                few: (1, combine_bits::<1>),
                many: ($bits, combine_bits::<$bits>),
            },
            halves: Grouping {
                interleave: interleave_halves,
                few: (2, combine_halves::<2>),
                many: ($halves, combine_halves::<$halves>),
            },
        };
    };
}

pub(super) use {far, grouped_kernels, kernel_functions};
