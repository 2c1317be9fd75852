//! SSSE3: two byte shuffles multiply 16 bytes.

use core::arch::x86_64::*;

use super::simd::{self, Simd, kernel_functions};
use super::{Functions, Tables, Term, detected};

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Ssse3(());

impl Ssse3 {
    pub fn new() -> Option<Self> {
        detected!("ssse3").then_some(Self(()))
    }

    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

impl Simd for Ssse3 {
    const WIDTH: usize = 16;
    type Reg = __m128i;
    type Parts = (__m128i, __m128i);
    type Factor = (__m128i, __m128i);

    // SAFETY, of all of these: the trait's contract is the intrinsics' one.
    #[inline(always)]
    unsafe fn zero() -> __m128i {
        unsafe { _mm_setzero_si128() }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m128i {
        unsafe { _mm_loadu_si128(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u8, value: __m128i) {
        unsafe { _mm_storeu_si128(to.cast(), value) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, len: usize, value: __m128i) {
        let mut bytes = [0_u8; 16];
        unsafe {
            _mm_storeu_si128(bytes.as_mut_ptr().cast(), value);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
    }
    #[inline(always)]
    unsafe fn xor(a: __m128i, b: __m128i) -> __m128i {
        unsafe { _mm_xor_si128(a, b) }
    }
    #[inline(always)]
    unsafe fn xor3(a: __m128i, b: __m128i, c: __m128i) -> __m128i {
        unsafe { _mm_xor_si128(a, _mm_xor_si128(b, c)) }
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, coefficient: u8) -> (__m128i, __m128i) {
        let table = &tables.shuffle[coefficient as usize];
        unsafe {
            (_mm_loadu_si128(table.as_ptr().cast()), _mm_loadu_si128(table[16..].as_ptr().cast()))
        }
    }
    #[inline(always)]
    unsafe fn split(value: __m128i) -> (__m128i, __m128i) {
        unsafe {
            let low = _mm_set1_epi8(0x0F);
            (_mm_and_si128(value, low), _mm_and_si128(_mm_srli_epi16::<4>(value), low))
        }
    }
    #[inline(always)]
    unsafe fn multiply(factor: (__m128i, __m128i), parts: (__m128i, __m128i)) -> __m128i {
        unsafe {
            _mm_xor_si128(_mm_shuffle_epi8(factor.0, parts.0), _mm_shuffle_epi8(factor.1, parts.1))
        }
    }
}

kernel_functions!(Ssse3, "ssse3", #[target_feature(enable = "ssse3")]
    tile 1, one 4, near 4, factors beside::LookedUp, sum 8, groups None);
