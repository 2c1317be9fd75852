//! One combination of two sets of rows at once: payloads, and alongside them their coding vectors,
//! each no longer than one machine vector. The vectors are processed with the first strip of
//! payloads, which saves a call and the preparation of factors.

// Indices number registers, across several arrays.
#![allow(clippy::needless_range_loop)]
// Some machines have no backend that uses it.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::simd::{self, Simd, store_strip};
use super::terms::{Every, Factored};
use super::{Backend, FAR_BYTES, PADDING, Rows, Tables, is_sparse};
use crate::{Field, MAX_BLOCK_SIZE};

/// A way of computing factors from coefficients, `COUNT` at a time, an even number.
pub(super) trait Factors<S: Simd> {
    const COUNT: usize;
    /// Whether they are looked up in a table, which occupies part of the L1 cache.
    const LOOKED_UP: bool;
    /// # Safety
    /// The instructions; `COUNT` coefficients are readable.
    unsafe fn of(tables: &Tables, coefficients: *const u8) -> Self;
    /// The factor of coefficient `place`, which is below `COUNT`.
    ///
    /// # Safety
    /// The instructions.
    unsafe fn get(&self, tables: &Tables, place: usize) -> S::Factor;
}

/// Factors from a table, as everywhere else.
pub(super) struct LookedUp([u8; 2]);

impl<S: Simd> Factors<S> for LookedUp {
    const COUNT: usize = 2;
    const LOOKED_UP: bool = true;
    #[inline(always)]
    unsafe fn of(_: &Tables, coefficients: *const u8) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { coefficients.cast::<[u8; 2]>().read() })
    }
    #[inline(always)]
    unsafe fn get(&self, tables: &Tables, place: usize) -> S::Factor {
        // SAFETY: the caller has the instructions.
        unsafe { S::factor(tables, self.0[place]) }
    }
}

/// A strip of rows no wider than one machine vector, and its output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub base: *const u8,
    pub stride: usize,
    pub out: *mut u8,
    pub len: usize,
}

/// Combines payloads as in `every`, and the rows alongside in the same way.
pub(super) type CombineBeside = unsafe fn(&Tables, *const u8, &Every, *mut u8, usize, &Beside);

/// The backend's function, and its maximum width.
pub(super) struct BesideKernel {
    pub combine: CombineBeside,
    /// Machine vector size, in bytes.
    pub width: usize,
}

impl Backend {
    /// Writes the start of the combination of `rows` with coding vector `vector` to all of `out`,
    /// and that of `beside`, with as many rows, to all of `beside_out`. Returns whether it did so:
    /// only for rows in the L1 cache, a dense vector over GF(2^8), and a `beside_out` no longer
    /// than a machine vector.
    ///
    /// # Panics
    /// If the vector or rows are too short.
    pub(crate) fn combine_beside(
        self,
        field: Field,
        (rows, beside): (Rows<'_>, Rows<'_>),
        vector: &[u8],
        (out, beside_out): (&mut [u8], &mut [u8]),
    ) -> bool {
        let Some(kernel) = &self.0.beside else { return false };
        let (count, len, beside_len) = (rows.count, out.len(), beside_out.len());
        let served = field == Field::Gf256
            && (1..=kernel.width).contains(&beside_len)
            && count * len <= simd::NEAR_BYTES
            && !is_sparse(&[vector], count);
        let Some(last) = count.checked_sub(1).filter(|_| served) else { return false };
        assert!(count <= MAX_BLOCK_SIZE && vector.len() >= count && beside.count == count);
        assert!(last * rows.stride + len.next_multiple_of(PADDING) <= rows.bytes.len());
        assert!(last * beside.stride + PADDING <= beside.bytes.len());
        let vectors = [vector.as_ptr(), core::ptr::null(), core::ptr::null(), core::ptr::null()];
        let every = Every { stride: rows.stride, count, vectors };
        let (base, stride) = (beside.bytes.as_ptr(), beside.stride);
        let beside = Beside { base, stride, out: beside_out.as_mut_ptr(), len: beside_len };
        let (base, out) = (rows.bytes.as_ptr(), out.as_mut_ptr());
        // SAFETY: the machine has this backend's instructions; the lengths were checked just now,
        // and the outputs are borrowed exclusively.
        unsafe { (kernel.combine)(field.tables(), base, &every, out, len, &beside) };
        true
    }
}

/// With factors computed by `F` if the rows leave no room for a table in the cache.
///
/// # Safety
/// The instructions; each row is readable, and `out` writable, for `len` bytes; each row beside is
/// readable for one vector, and its output writable for its length, which is not more and not
/// zero; outputs overlap nothing.
#[inline(always)]
pub(super) unsafe fn combine<S: Simd, F: Factors<S>, const V: usize>(
    tables: &Tables,
    base: *const u8,
    every: &Every,
    out: *mut u8,
    len: usize,
    beside: &Beside,
) {
    // SAFETY: as promised by the caller; the strip ends in the last vector at the latest.
    unsafe {
        let mut done = V * S::WIDTH;
        if len.div_ceil(S::WIDTH) < V {
            let rows = Every { stride: beside.stride, ..*every };
            simd::combine::<S, 1, 1>(tables, beside.base, &rows, &[beside.out], beside.len);
            done = 0;
        } else if F::LOOKED_UP || every.count * len <= FAR_BYTES {
            first_strip::<S, LookedUp, V>(tables, base, every, out, len, beside);
        } else {
            first_strip::<S, F, V>(tables, base, every, out, len, beside);
        }
        if done < len {
            let (base, outs) = (base.add(done), [out.add(done)]);
            simd::combine::<S, 1, V>(tables, base, every, &outs, len - done);
        }
    }
}

#[inline(always)]
unsafe fn first_strip<S: Simd, F: Factors<S>, const V: usize>(
    tables: &Tables,
    base: *const u8,
    every: &Every,
    out: *mut u8,
    len: usize,
    beside: &Beside,
) {
    // SAFETY: as promised by the caller of `combine`.
    unsafe {
        let (mut sums, mut sum) = ([S::zero(); V], S::zero());
        let (count, mut place) = (every.count, 0);
        let product = |factor, from| S::multiply(factor, S::split(S::load(from)));
        while place + F::COUNT <= count {
            let factors = F::of(tables, every.vectors[0].add(place));
            for pair in 0..F::COUNT / 2 {
                let factor_a = factors.get(tables, 2 * pair);
                let factor_b = factors.get(tables, 2 * pair + 1);
                let from_a = base.add(place * every.stride);
                let from_b = from_a.add(every.stride);
                for v in 0..V {
                    let first = product(factor_a, from_a.add(v * S::WIDTH));
                    let second = product(factor_b, from_b.add(v * S::WIDTH));
                    sums[v] = S::xor3(sums[v], first, second);
                }
                let from_a = beside.base.add(place * beside.stride);
                let from_b = from_a.add(beside.stride);
                sum = S::xor3(sum, product(factor_a, from_a), product(factor_b, from_b));
                place += 2;
            }
        }
        while place < count {
            let factor = S::factor(tables, Factored::<1>::factor(every, place, 0));
            let from = base.add(place * every.stride);
            for v in 0..V {
                sums[v] = S::xor(sums[v], product(factor, from.add(v * S::WIDTH)));
            }
            sum = S::xor(sum, product(factor, beside.base.add(place * beside.stride)));
            place += 1;
        }
        store_strip::<S, V>(out, len, &sums);
        store_strip::<S, 1>(beside.out, beside.len, &[sum]);
    }
}
