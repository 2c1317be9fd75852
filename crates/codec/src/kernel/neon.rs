//! NEON: two table look-ups multiply 16 bytes. Every AArch64 has it.

use core::arch::aarch64::*;

use super::simd::{self, Simd, kernel_functions};
use super::{Functions, Tables, Term};

/// Proof that the machine has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    pub fn new() -> Option<Self> {
        cfg!(target_feature = "neon").then_some(Self(()))
    }

    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

impl Simd for Neon {
    const WIDTH: usize = 16;
    type Reg = uint8x16_t;
    type Parts = (uint8x16_t, uint8x16_t);
    type Factor = (uint8x16_t, uint8x16_t);

    // SAFETY, of all of these: the trait's contract is the intrinsics' one.
    #[inline(always)]
    unsafe fn zero() -> uint8x16_t {
        unsafe { vdupq_n_u8(0) }
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> uint8x16_t {
        unsafe { vld1q_u8(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u8, value: uint8x16_t) {
        unsafe { vst1q_u8(to, value) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, len: usize, value: uint8x16_t) {
        let mut bytes = [0_u8; 16];
        unsafe {
            vst1q_u8(bytes.as_mut_ptr(), value);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
    }
    #[inline(always)]
    unsafe fn xor(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        unsafe { veorq_u8(a, b) }
    }
    #[inline(always)]
    unsafe fn xor3(a: uint8x16_t, b: uint8x16_t, c: uint8x16_t) -> uint8x16_t {
        unsafe { veorq_u8(a, veorq_u8(b, c)) }
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, coefficient: u8) -> (uint8x16_t, uint8x16_t) {
        let table = &tables.shuffle[coefficient as usize];
        unsafe { (vld1q_u8(table.as_ptr()), vld1q_u8(table[16..].as_ptr())) }
    }
    #[inline(always)]
    unsafe fn split(value: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
        unsafe { (vandq_u8(value, vdupq_n_u8(0x0F)), vshrq_n_u8::<4>(value)) }
    }
    #[inline(always)]
    unsafe fn multiply(
        factor: (uint8x16_t, uint8x16_t),
        parts: (uint8x16_t, uint8x16_t),
    ) -> uint8x16_t {
        unsafe { veorq_u8(vqtbl1q_u8(factor.0, parts.0), vqtbl1q_u8(factor.1, parts.1)) }
    }
}

kernel_functions!(Neon, "neon", tile 2, one 4, near 4, factors beside::LookedUp, sum 8, groups None);
