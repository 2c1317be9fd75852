//! AVX2: two byte shuffles multiply 32 bytes.

use core::arch::x86_64::*;

use super::simd::{self, Simd, kernel_functions};
use super::{Functions, Tables, Term, detected};

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub fn new() -> Option<Self> {
        detected!("avx2").then_some(Self(()))
    }

    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

/// # Safety
/// AVX2; 32 bytes are readable.
#[inline(always)]
pub(super) unsafe fn load(from: *const u8) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
/// AVX2; 32 bytes are writable.
#[inline(always)]
pub(super) unsafe fn store(to: *mut u8, value: __m256i) {
    // SAFETY: the caller's promise.
    unsafe { _mm256_storeu_si256(to.cast(), value) }
}

/// # Safety
/// AVX2; `len` bytes, less than 32, are writable.
#[inline(always)]
pub(super) unsafe fn store_part(to: *mut u8, len: usize, value: __m256i) {
    let mut bytes = [0; 32];
    // SAFETY: the caller's promise; the bytes are there.
    unsafe {
        store(bytes.as_mut_ptr(), value);
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
    }
}

impl Simd for Avx2 {
    const WIDTH: usize = 32;
    type Reg = __m256i;
    type Parts = (__m256i, __m256i);
    type Factor = (__m256i, __m256i);

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
    unsafe fn factor(tables: &Tables, coefficient: u8) -> (__m256i, __m256i) {
        let table = &tables.shuffle[coefficient as usize];
        unsafe {
            (
                _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(table[16..].as_ptr().cast())),
            )
        }
    }
    #[inline(always)]
    unsafe fn split(value: __m256i) -> (__m256i, __m256i) {
        unsafe {
            let low = _mm256_set1_epi8(0x0F);
            let high = _mm256_srli_epi16::<4>(value);
            (_mm256_and_si256(value, low), _mm256_and_si256(high, low))
        }
    }
    #[inline(always)]
    unsafe fn multiply(factor: (__m256i, __m256i), parts: (__m256i, __m256i)) -> __m256i {
        unsafe {
            _mm256_xor_si256(
                _mm256_shuffle_epi8(factor.0, parts.0),
                _mm256_shuffle_epi8(factor.1, parts.1),
            )
        }
    }
}

kernel_functions!(Avx2, "avx2", #[target_feature(enable = "avx2")]
    tile 2, one 4, near 4, factors beside::LookedUp, sum 8, groups None);
