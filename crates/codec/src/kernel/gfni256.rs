//! AVX2 with GFNI: like [`gfni512`](super::gfni512), 32 bytes at a time.

use core::arch::x86_64::*;

use super::avx2::{load, store, store_part};
use super::groups::{self, Affine, grouped_kernels};
use super::simd::{self, Simd, kernel_functions};
use super::{Functions, Grouped, Grouping, Tables, Term, detected};

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Gfni256(());

impl Gfni256 {
    pub fn new() -> Option<Self> {
        detected!("gfni", "avx2").then_some(Self(()))
    }

    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

impl Simd for Gfni256 {
    const WIDTH: usize = 32;
    type Reg = __m256i;
    type Parts = __m256i;
    type Factor = __m256i;

    // SAFETY, of all of these: the trait's contract is the intrinsics' one.
    #[inline(always)]
    unsafe fn zero() -> __m256i {
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m256i {
        unsafe { load(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u8, value: __m256i) {
        unsafe { store(to, value) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, len: usize, value: __m256i) {
        unsafe { store_part(to, len, value) }
    }
    #[inline(always)]
    unsafe fn xor(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_xor_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn xor3(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        unsafe { _mm256_xor_si256(a, _mm256_xor_si256(b, c)) }
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, coefficient: u8) -> __m256i {
        unsafe { _mm256_set1_epi64x(tables.affine[coefficient as usize] as i64) }
    }
    #[inline(always)]
    unsafe fn split(value: __m256i) -> __m256i {
        value
    }
    #[inline(always)]
    unsafe fn multiply(factor: __m256i, parts: __m256i) -> __m256i {
        unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(parts, factor) }
    }
}

impl Affine for Gfni256 {
    // SAFETY, of all of these: the trait's contract is the intrinsics' one.
    #[inline(always)]
    unsafe fn matrix(matrix: u64) -> __m256i {
        unsafe { _mm256_set1_epi64x(matrix as i64) }
    }
    #[inline(always)]
    unsafe fn affine(value: __m256i, matrix: __m256i) -> __m256i {
        unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(value, matrix) }
    }
    #[inline(always)]
    unsafe fn join_columns(mut rows: [__m256i; 8]) -> [__m256i; 8] {
        // In each 16 bytes: first the even places take the first eight bytes, in order, the odd
        // ones the rest.
        unsafe {
            let places = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
            let places = _mm256_broadcastsi128_si256(places);
            for row in &mut rows {
                *row = _mm256_shuffle_epi8(*row, places);
            }
            unpack_rounds(&mut rows);
            rows
        }
    }
    #[inline(always)]
    unsafe fn part_columns(mut columns: [__m256i; 8]) -> [__m256i; 8] {
        unsafe {
            unpack_rounds(&mut columns);
            for i in 0..4 {
                let (a, b) = (columns[i], columns[i + 4]);
                columns[i] = _mm256_unpacklo_epi64(a, b);
                columns[i + 4] = _mm256_unpackhi_epi64(a, b);
            }
            let [g0, g1, g2, g3, g4, g5, g6, g7] = columns;
            [g0, g4, g1, g5, g2, g6, g3, g7]
        }
    }
    #[inline(always)]
    unsafe fn exchange_halves(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        unsafe {
            let low = _mm256_set1_epi8(0x0F);
            let (up, down) = (_mm256_slli_epi16::<4>(b), _mm256_srli_epi16::<4>(a));
            (
                _mm256_or_si256(_mm256_and_si256(low, a), _mm256_andnot_si256(low, up)),
                _mm256_or_si256(_mm256_and_si256(low, down), _mm256_andnot_si256(low, b)),
            )
        }
    }
}

/// Each round moves one bit of a byte's position from the register's number to the position within
/// 16 bytes.
///
/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn unpack_rounds(rows: &mut [__m256i; 8]) {
    for half in [4, 2, 1] {
        for i in 0..8 {
            if i & half == 0 {
                let (a, b) = (rows[i], rows[i + half]);
                // SAFETY: the caller has the instructions.
                unsafe {
                    rows[i] = _mm256_unpacklo_epi8(a, b);
                    rows[i + half] = _mm256_unpackhi_epi8(a, b);
                }
            }
        }
    }
}

kernel_functions!(Gfni256, "gfni256", #[target_feature(enable = "gfni,avx2")]
    tile 2, one 6, near 6, factors beside::LookedUp, sum 8, groups Some(&GROUPED));
grouped_kernels!(Gfni256, #[target_feature(enable = "gfni,avx2")]
    bits 1, halves 2);
