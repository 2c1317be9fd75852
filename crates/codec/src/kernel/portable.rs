//! No instruction set in particular: a product is the sum over the bits of each byte, in words
//! that the compiler may make vectors of.

use super::simd::{self, Simd, kernel_functions};
use super::{Functions, Tables, Term};

const WORDS: usize = 4;
const ONES: u64 = 0x0101_0101_0101_0101;

type Words = [u64; WORDS];

/// There is nothing to prove.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Portable {
    pub fn functions(self) -> &'static Functions {
        &KERNELS
    }
}

impl Simd for Portable {
    const WIDTH: usize = 8 * WORDS;
    type Reg = Words;
    type Parts = Words;
    /// What each bit stands for.
    type Factor = [u64; 8];

    #[inline(always)]
    unsafe fn zero() -> Words {
        [0; WORDS]
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Words {
        // SAFETY: the trait's contract.
        unsafe { from.cast::<Words>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut u8, value: Words) {
        // SAFETY: the trait's contract.
        unsafe { to.cast::<Words>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn store_part(to: *mut u8, len: usize, value: Words) {
        // SAFETY: the trait's contract; words are bytes in the order of memory.
        unsafe { core::ptr::copy_nonoverlapping(value.as_ptr().cast(), to, len) }
    }
    #[inline(always)]
    unsafe fn xor(mut a: Words, b: Words) -> Words {
        for i in 0..WORDS {
            a[i] ^= b[i];
        }
        a
    }
    #[inline(always)]
    unsafe fn xor3(mut a: Words, b: Words, c: Words) -> Words {
        for i in 0..WORDS {
            a[i] ^= b[i] ^ c[i];
        }
        a
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, coefficient: u8) -> [u64; 8] {
        let table = &tables.shuffle[coefficient as usize];
        [1, 2, 4, 8, 17, 18, 20, 24].map(|place: usize| u64::from(table[place]) * ONES)
    }
    #[inline(always)]
    unsafe fn split(value: Words) -> Words {
        value
    }
    #[inline(always)]
    unsafe fn multiply(factor: [u64; 8], parts: Words) -> Words {
        let mut product = [0; WORDS];
        for i in 0..WORDS {
            for (bit, image) in factor.iter().enumerate() {
                let bits = (parts[i] >> bit) & ONES;
                product[i] ^= ((bits << 8).wrapping_sub(bits)) & image;
            }
        }
        product
    }
}

kernel_functions!(Portable, "portable", tile 1, one 1, near 1, sum 4, groups None);
