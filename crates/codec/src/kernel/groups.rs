//! The kernels for interleaved symbols, over GF(2) and GF(2^4): GFNI multiplies any 8x8 bit matrix.
//! As in [`simd`], every function is inlined into one that enables the instructions.

// Indices number registers, across several arrays.
#![allow(clippy::needless_range_loop)]
// Code that needs GFNI is for one architecture only.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_macros, unused_imports))]

use core::mem::MaybeUninit;

use super::simd::{Simd, store_strip};

/// The additional operation of GFNI: multiplication by any 8x8 bit matrix.
///
/// # Safety
/// As for [`Simd`].
pub(super) trait Affine: Simd {
    /// The bit matrix in every eight bytes.
    unsafe fn matrix(matrix: u64) -> Self::Reg;
    /// `matrix` times each byte of `value`.
    unsafe fn affine(value: Self::Reg, matrix: Self::Reg) -> Self::Reg;
    /// Gathers the bytes of each column: in each eight bytes, byte `s` becomes that of register
    /// `s`. The order of columns is free, provided that `part_columns` reverses it.
    unsafe fn join_columns(rows: [Self::Reg; 8]) -> [Self::Reg; 8];
    /// The inverse.
    unsafe fn part_columns(columns: [Self::Reg; 8]) -> [Self::Reg; 8];
    /// The low halves of the bytes of `a` below those of `b`, and the high halves likewise. This
    /// is its own inverse.
    unsafe fn exchange_halves(a: Self::Reg, b: Self::Reg) -> (Self::Reg, Self::Reg);
}

/// A way of interleaving `G` symbols, so that every eight bytes contain bits of all of them.
pub(super) trait Interleaving<S: Affine, const G: usize> {
    /// Whether processing two groups at a time is best: it saves additions but reads less
    /// sequentially.
    const PAIRS: bool;
    /// # Safety
    /// The instructions.
    unsafe fn interleave(rows: [S::Reg; G]) -> [S::Reg; G];
    /// The product of interleaved sources and the matrix of their coefficients.
    ///
    /// # Safety
    /// The instructions.
    unsafe fn multiply(sources: S::Reg, matrix: S::Reg) -> S::Reg;
    /// Converts sums of such products to outputs.
    ///
    /// # Safety
    /// The instructions.
    unsafe fn restore(sums: [S::Reg; G]) -> [S::Reg; G];
}

/// Eight symbols over GF(2). Each column's eight bytes form one matrix, whose rows are the bits of
/// a byte and whose columns are the symbols. It is multiplied by the coefficients as vectors: each
/// gives a byte of an output, with its bits in order.
pub(super) struct Bits;

/// Transposes the bits of each eight bytes, as the argument of an affine operation.
const TRANSPOSE: u64 = 0x0102_0408_1020_4080;

impl<S: Affine> Interleaving<S, 8> for Bits {
    const PAIRS: bool = false;

    #[inline(always)]
    unsafe fn interleave(mut rows: [S::Reg; 8]) -> [S::Reg; 8] {
        // SAFETY: the caller has the instructions.
        unsafe {
            // The first row of a matrix belongs to the highest bit, so the first symbol must too.
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

/// Interleaves up to `G` rows, `len` bytes of each: each vector of columns gives `G` vectors,
/// `pitch` bytes after those of the previous columns; `len` is a multiple of [`PADDING`]. Missing
/// rows count as zeros.
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

/// Interleaved sources, and the remaining rows, fewer than a group. For each vector of columns, the
/// groups follow each other, so that they are read sequentially.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    pub base: *const u8,
    /// Distance from the groups of one vector of columns to those of the next, in bytes.
    pub pitch: usize,
    pub count: usize,
    pub tail: *const u8,
    pub tail_stride: usize,
    pub tail_rows: usize,
}

/// `outs = matrices * sources`, by blocks of `G` outputs and `G` sources: one instruction each. `T`
/// groups of outputs and `C` columns of vectors are in registers at a time. The matrices of one
/// group of sources are adjacent.
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
        // Done first, before sums occupy the registers.
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

/// The same for functions that need GFNI.
macro_rules! grouped_kernels {
    ($simd:ty, $(#[$enable:meta])* bits $bits:literal, halves $halves:literal) => {
        $(#[$enable])*
        unsafe fn interleave_bits(
            base: *const u8, stride: usize, rows: usize, out: *mut u8, pitch: usize, len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { groups::interleave::<$simd, groups::Bits, 8>(base, stride, rows, out, pitch, len) }
        }

        $(#[$enable])*
        unsafe fn interleave_halves(
            base: *const u8, stride: usize, rows: usize, out: *mut u8, pitch: usize, len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe { groups::interleave::<$simd, groups::Halves, 2>(base, stride, rows, out, pitch, len) }
        }

        /// With `T` groups of outputs.
        $(#[$enable])*
        unsafe fn combine_bits<const T: usize>(
            groups: &groups::Groups, matrices: *const u64, outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                groups::combine_groups::<$simd, groups::Bits, 8, 1, T>(groups, matrices, outs, len);
            }
        }

        /// With `T` groups of outputs.
        $(#[$enable])*
        unsafe fn combine_halves<const T: usize>(
            groups: &groups::Groups, matrices: *const u64, outs: &[*mut u8], len: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                groups::combine_groups::<$simd, groups::Halves, 2, 2, T>(groups, matrices, outs, len);
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

pub(super) use grouped_kernels;
