//! AVX-512 with GFNI: one instruction multiplies 64 bytes by any matrix of 8x8 bits.

use core::arch::x86_64::*;

use super::beside::Factors;
use super::groups::{self, Affine, grouped_kernels};
use super::simd::{self, Simd, kernel_functions};
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
    /// Each round exchanges one bit of a byte's position within eight for one of the register's
    /// number.
    #[inline(always)]
    unsafe fn join_columns(mut rows: [__m512i; 8]) -> [__m512i; 8] {
        unsafe {
            exchange::<1>(&mut rows, 0x5555_5555_5555_5555);
            exchange::<2>(&mut rows, 0x3333_3333_3333_3333);
            exchange::<4>(&mut rows, 0x0F0F_0F0F_0F0F_0F0F);
            rows
        }
    }
    #[inline(always)]
    unsafe fn part_columns(columns: [__m512i; 8]) -> [__m512i; 8] {
        unsafe { Self::join_columns(columns) }
    }
    #[inline(always)]
    unsafe fn exchange_halves(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        unsafe {
            let low = _mm512_set1_epi8(0x0F);
            (
                // 0xCA: the second operand where the mask is set, else the third.
                _mm512_ternarylogic_epi64::<0xCA>(low, a, _mm512_slli_epi16::<4>(b)),
                _mm512_ternarylogic_epi64::<0xCA>(low, _mm512_srli_epi16::<4>(a), b),
            )
        }
    }
}

/// The bit matrices of eight coefficients, computed: a table of them takes two kilobytes of the L1
/// cache, this takes three cache lines.
pub(super) struct Computed(__m512i);

impl Factors<Gfni512> for Computed {
    const COUNT: usize = 8;
    const LOOKED_UP: bool = false;

    // SAFETY, of both of these: the trait's contract is the intrinsics' one.
    #[inline(always)]
    unsafe fn of(tables: &Tables, coefficients: *const u8) -> Self {
        unsafe {
            let all = _mm512_set1_epi64(coefficients.cast::<i64>().read_unaligned());
            let maps = _mm512_loadu_si512(tables.maps.as_ptr().cast());
            // Byte `r` of each coefficient's matrix in eight bytes `r`: transposed in pairs within
            // a lane, and the pairs among lanes.
            let bytes = _mm512_gf2p8affine_epi64_epi8::<0>(all, maps);
            let pairs = _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
            let words = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(pairs));
            let order: [u16; 32] = core::array::from_fn(|i| (i / 4 + i % 4 * 8) as u16);
            let order = _mm512_loadu_si512(order.as_ptr().cast());
            Self(_mm512_permutexvar_epi16(order, words))
        }
    }

    #[inline(always)]
    unsafe fn get(&self, _: &Tables, place: usize) -> __m512i {
        unsafe { _mm512_permutexvar_epi64(_mm512_set1_epi64(place as i64), self.0) }
    }
}

/// For registers whose numbers differ by `BIT`, swaps the bytes at places with that bit (those not
/// in `without`) of the lower one with the bytes at places without it of the higher one.
///
/// # Safety
/// AVX-512 BW.
#[inline(always)]
unsafe fn exchange<const BIT: usize>(rows: &mut [__m512i; 8], without: u64) {
    let mut places = [0_i8; 16];
    for (at, place) in places.iter_mut().enumerate() {
        *place = (at ^ BIT) as i8;
    }
    // SAFETY: the caller has the instructions; 16 bytes are there.
    unsafe {
        let mut places = _mm_loadu_si128(places.as_ptr().cast());
        // Knowing the places, the compiler would choose other instructions, and more of them.
        core::arch::asm!("/* {0} */", inout(xmm_reg) places, options(pure, nomem, nostack));
        let places = _mm512_broadcast_i32x4(places);
        for i in 0..8 {
            if i & BIT == 0 {
                let (low, high) = (rows[i], rows[i + BIT]);
                rows[i] = _mm512_mask_shuffle_epi8(low, !without, high, places);
                rows[i + BIT] = _mm512_mask_shuffle_epi8(high, without, low, places);
            }
        }
    }
}

kernel_functions!(Gfni512, "gfni512", #[target_feature(enable = "gfni,avx512f,avx512bw,avx512vl")]
    tile 4, one in_order, near 23, factors Computed, sum 8, groups Some(&GROUPED));
grouped_kernels!(Gfni512, #[target_feature(enable = "gfni,avx512f,avx512bw,avx512vl")]
    bits 2, halves 4);
