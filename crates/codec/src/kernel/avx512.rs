//! AVX-512 without GFNI: two byte shuffles multiply 64 bytes.

use core::arch::x86_64::*;

use super::simd::{self, Simd, kernel_functions};
use super::{Functions, Tables, Term, detected};

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    pub fn new() -> Option<Self> {
        detected!("avx512f", "avx512bw", "avx512vl").then_some(Self(()))
    }

    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

impl Simd for Avx512 {
    const WIDTH: usize = 64;
    type Reg = __m512i;
    type Parts = (__m512i, __m512i);
    type Factor = (__m512i, __m512i);

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
    unsafe fn factor(tables: &Tables, coefficient: u8) -> (__m512i, __m512i) {
        let table = &tables.shuffle[coefficient as usize];
        unsafe {
            (
                _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())),
                _mm512_broadcast_i32x4(_mm_loadu_si128(table[16..].as_ptr().cast())),
            )
        }
    }
    #[inline(always)]
    unsafe fn split(value: __m512i) -> (__m512i, __m512i) {
        unsafe {
            let low = _mm512_set1_epi8(0x0F);
            let high = _mm512_srli_epi16::<4>(value);
            (_mm512_and_si512(value, low), _mm512_and_si512(high, low))
        }
    }
    #[inline(always)]
    unsafe fn multiply(factor: (__m512i, __m512i), parts: (__m512i, __m512i)) -> __m512i {
        unsafe {
            _mm512_xor_si512(
                _mm512_shuffle_epi8(factor.0, parts.0),
                _mm512_shuffle_epi8(factor.1, parts.1),
            )
        }
    }
}

kernel_functions!(Avx512, "avx512", #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    tile 3, one 8, near 8, factors beside::LookedUp, sum 8, groups None);
