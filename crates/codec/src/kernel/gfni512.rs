//! AVX-512 with GFNI: one instruction multiplies 64 bytes by any matrix of 8x8 bits.

use core::arch::x86_64::*;

use super::simd::{self, Affine, Simd, grouped_kernels, kernel_functions};
use super::{Functions, Grouped, Grouping, Tables, Term, detected};

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Gfni512(());

impl Gfni512 {
    pub fn new() -> Option<Self> {
        detected!("gfni", "avx512f", "avx512bw", "avx512vl").then_some(Self(()))
    }

    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

impl Simd for Gfni512 {
    const WIDTH: usize = 64;
    type Reg = __m512i;
    type Parts = __m512i;
    type Factor = __m512i;

    // SAFETY, of all of these: the trait's contract is the intrinsics' one.
    #[inline(always)]
    unsafe fn zero() -> __m512i {
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u8, value: __m512i) {
        unsafe { _mm512_storeu_si512(to.cast(), value) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, len: usize, value: __m512i) {
        unsafe { _mm512_mask_storeu_epi8(to.cast(), u64::MAX >> (64 - len), value) }
    }
    #[inline(always)]
    unsafe fn xor(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn xor3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        unsafe { _mm512_ternarylogic_epi64::<0x96>(a, b, c) }
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, coefficient: u8) -> __m512i {
        unsafe { _mm512_set1_epi64(tables.affine[coefficient as usize] as i64) }
    }
    #[inline(always)]
    unsafe fn split(value: __m512i) -> __m512i {
        value
    }
    #[inline(always)]
    unsafe fn multiply(factor: __m512i, parts: __m512i) -> __m512i {
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(parts, factor) }
    }
}

impl Affine for Gfni512 {
    // SAFETY, of all of these: the trait's contract is the intrinsics' one.
    #[inline(always)]
    unsafe fn matrix(matrix: u64) -> __m512i {
        unsafe { _mm512_set1_epi64(matrix as i64) }
    }
    #[inline(always)]
    unsafe fn affine(value: __m512i, matrix: __m512i) -> __m512i {
        unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(value, matrix) }
    }
    #[inline(always)]
    unsafe fn unpack_8(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        unsafe { (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)) }
    }
    #[inline(always)]
    unsafe fn unpack_64(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        unsafe { (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)) }
    }
    #[inline(always)]
    unsafe fn spread_columns(value: __m512i) -> __m512i {
        unsafe {
            let places = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
            _mm512_shuffle_epi8(value, _mm512_broadcast_i32x4(places))
        }
    }
    #[inline(always)]
    unsafe fn exchange_halves(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        unsafe {
            let low = _mm512_set1_epi8(0x0F);
            (
                // 0xCA: where the mask is set the second operand, else the third.
                _mm512_ternarylogic_epi64::<0xCA>(low, a, _mm512_slli_epi16::<4>(b)),
                _mm512_ternarylogic_epi64::<0xCA>(low, _mm512_srli_epi16::<4>(a), b),
            )
        }
    }
}

kernel_functions!(Gfni512, "gfni512", #[target_feature(enable = "gfni,avx512f,avx512bw,avx512vl")]
    tile 4, one 8, near 23, sum 8, groups Some(&GROUPED));
grouped_kernels!(Gfni512, #[target_feature(enable = "gfni,avx512f,avx512bw,avx512vl")]
    bits 2, halves 4);
