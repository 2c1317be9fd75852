//! The finite fields, their coding vectors, and the operation that everything else is built from:
//! adding a multiple of one run of symbols to another.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::CodecError;
use crate::kernel::{Tables, tables};

/// x^8 + x^4 + x^3 + x^2 + 1, as in RFC 8681 section 3.6 (and RFC 5510); x generates the field.
const POLYNOMIAL: u16 = 0x11D;

/// x^4 + x + 1; x generates the field.
const POLYNOMIAL_16: u8 = 0x13;

/// All-zero coding vectors drawn in a row after which the generator is considered broken and the
/// first coefficient is set to 1. A working generator gets here with probability at most 2^-64.
const ZERO_DRAWS_MAX: usize = 64;

/// The finite field of the coding coefficients.
///
/// ```
/// use corridor_codec::Field;
///
/// assert_eq!(Field::Gf16.order(), 16);
/// assert_eq!([Field::Gf2, Field::Gf16, Field::Gf256].map(|f| f.vector_len_bytes(9)), [2, 5, 9]);
///
/// // A coding vector that a seed stands for; unused bits are zero.
/// let mut vector = [0; 2];
/// Field::Gf2.expand_seed(1, 9, &mut vector)?;
/// assert!(vector != [0, 0] && vector[1] <= 1);
/// # Ok::<(), corridor_codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// GF(2): a coded symbol is the XOR of a set of symbols. A coefficient takes one bit.
    Gf2,
    /// GF(2^4) over the polynomial 0x13. A coefficient takes four bits, and a byte of a symbol is
    /// two elements, the first in the low half.
    Gf16,
    /// GF(2^8) over the polynomial 0x11D. A coefficient takes one byte.
    Gf256,
}

impl Field {
    /// Number of elements of the field: 2, 16 or 256.
    pub const fn order(self) -> u32 {
        match self {
            Self::Gf2 => 2,
            Self::Gf16 => 16,
            Self::Gf256 => 256,
        }
    }

    /// Length in bytes of a coding vector over `count` symbols.
    ///
    /// Over GF(2) coefficient `i` is bit `i % 8` (least significant first) of byte `i / 8`; over
    /// GF(2^4) it is the low half of byte `i / 2` if `i` is even, else the high half; over GF(2^8)
    /// it is byte `i`.
    pub const fn vector_len_bytes(self, count: usize) -> usize {
        match self {
            Self::Gf2 => count.div_ceil(8),
            Self::Gf16 => count.div_ceil(2),
            Self::Gf256 => count,
        }
    }

    /// Draws a coding vector over `count` symbols, uniformly from the nonzero ones.
    ///
    /// Writes the first [`vector_len_bytes`](Self::vector_len_bytes) bytes of `out`; unused bits
    /// are zero.
    ///
    /// # Errors
    /// [`CodecError::BufferTooShort`] when `out` does not have that many bytes.
    pub fn draw_vector(
        self,
        count: usize,
        rng: &mut (impl Rng + ?Sized),
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let expected = self.vector_len_bytes(count);
        let given = out.len();
        let vector = out.get_mut(..expected);
        let vector = vector.ok_or(CodecError::BufferTooShort { expected, given })?;
        for _ in 0..ZERO_DRAWS_MAX {
            rng.fill_bytes(vector);
            self.mask_unused(vector, count);
            if !is_zero(vector) {
                return Ok(());
            }
        }
        if let Some(first) = vector.first_mut() {
            *first = 1;
        }
        Ok(())
    }

    /// Expands a seed, sent in place of a coding vector over `count` symbols. Equal seeds give
    /// equal, nonzero vectors on every machine.
    ///
    /// The vector is [drawn](Self::draw_vector) from the ChaCha8 keystream whose 256-bit key is the
    /// seed, little endian, then zeros; nonce and counter start at zero; an all-zero draw is
    /// followed by the next one, which starts at a multiple of four bytes. The generator must not
    /// be linear over GF(2): vectors drawn from an xorshift generator span at most as many
    /// dimensions as its state has bits.
    ///
    /// # Errors
    /// [`CodecError::BufferTooShort`] when `out` has fewer bytes than the vector.
    pub fn expand_seed(self, seed: u32, count: usize, out: &mut [u8]) -> Result<(), CodecError> {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&seed.to_le_bytes());
        self.draw_vector(count, &mut ChaCha8Rng::from_seed(key), out)
    }

    /// Coefficient `index` of a vector long enough to have it.
    #[inline]
    pub(crate) fn coefficient(self, vector: &[u8], index: usize) -> u8 {
        match self {
            Self::Gf2 => (vector[index / 8] >> (index % 8)) & 1,
            Self::Gf16 => (vector[index / 2] >> (index % 2 * 4)) & 0xF,
            Self::Gf256 => vector[index],
        }
    }

    /// The kernels' tables.
    pub(crate) fn tables(self) -> &'static Tables {
        match self {
            Self::Gf2 => &tables::GF2,
            Self::Gf16 => &tables::GF16,
            Self::Gf256 => &tables::GF256,
        }
    }

    /// Sets coefficient `index`; over GF(2) `value` is 0 or 1.
    #[inline]
    pub(crate) fn set_coefficient(self, vector: &mut [u8], index: usize, value: u8) {
        match self {
            Self::Gf2 => {
                let byte = &mut vector[index / 8];
                *byte = (*byte & !(1 << (index % 8))) | (value << (index % 8));
            }
            Self::Gf16 => {
                let byte = &mut vector[index / 2];
                *byte = (*byte & (0xF0 >> (index % 2 * 4))) | (value << (index % 2 * 4));
            }
            Self::Gf256 => vector[index] = value,
        }
    }

    /// Adds `value` to coefficient `index`.
    #[cfg(test)]
    pub(crate) fn add_to_coefficient(self, vector: &mut [u8], index: usize, value: u8) {
        match self {
            Self::Gf2 => vector[index / 8] ^= value << (index % 8),
            Self::Gf16 => vector[index / 2] ^= value << (index % 2 * 4),
            Self::Gf256 => vector[index] ^= value,
        }
    }

    /// Index of the first nonzero coefficient at or after `start`.
    #[inline]
    pub(crate) fn first_nonzero(self, vector: &[u8], start: usize) -> Option<usize> {
        match self {
            Self::Gf2 => {
                let first = start / 8;
                let head = vector.get(first)? & (0xFF << (start % 8));
                if head != 0 {
                    return Some(first * 8 + head.trailing_zeros() as usize);
                }
                let rest = vector[first + 1..].iter().position(|&byte| byte != 0)? + first + 1;
                Some(rest * 8 + vector[rest].trailing_zeros() as usize)
            }
            Self::Gf16 => {
                let first = start / 2;
                let head = vector.get(first)? & (0xFF << (start % 2 * 4));
                if head != 0 {
                    return Some(first * 2 + head.trailing_zeros() as usize / 4);
                }
                let rest = vector[first + 1..].iter().position(|&byte| byte != 0)? + first + 1;
                Some(rest * 2 + vector[rest].trailing_zeros() as usize / 4)
            }
            Self::Gf256 => Some(start + vector.get(start..)?.iter().position(|&byte| byte != 0)?),
        }
    }

    /// Clears the unused bits of the last byte.
    pub(crate) fn mask_unused(self, vector: &mut [u8], count: usize) {
        let (place, bits) = match self {
            Self::Gf2 => (count / 8, count % 8),
            Self::Gf16 => (count / 2, count % 2 * 4),
            Self::Gf256 => return,
        };
        if bits != 0
            && let Some(last) = vector.get_mut(place)
        {
            *last &= !(0xFF << bits);
        }
    }

    /// The inverse of a nonzero element.
    pub(crate) fn invert(self, element: u8) -> u8 {
        self.tables().inverses[element as usize]
    }
}

/// Whether all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// `coefficient` times the elements in one byte of a symbol, in the field of that order.
pub(crate) const fn multiply_byte(order: u32, coefficient: u8, byte: u8) -> u8 {
    match order {
        2 => (coefficient & 1) * byte,
        16 => {
            let high = multiply_16(coefficient, byte >> 4);
            multiply_16(coefficient, byte & 0xF) | high << 4
        }
        _ => multiply_256(coefficient, byte),
    }
}

const fn multiply_256(a: u8, b: u8) -> u8 {
    let (mut power, mut product, mut bit) = (a as u16, 0, 0);
    while bit < 8 {
        if (b >> bit) & 1 == 1 {
            product ^= power;
        }
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= POLYNOMIAL;
        }
        bit += 1;
    }
    product as u8
}

const fn multiply_16(a: u8, b: u8) -> u8 {
    let (mut power, mut product, mut bit) = (a, 0, 0);
    while bit < 4 {
        if (b >> bit) & 1 == 1 {
            product ^= power;
        }
        power <<= 1;
        if power & 0x10 != 0 {
            power ^= POLYNOMIAL_16;
        }
        bit += 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;
    use std::vec;

    use rand::TryRng;

    use super::*;
    use crate::{Backend, naive};

    /// A generator that always returns the same byte.
    struct Stuck(u8);

    impl TryRng for Stuck {
        type Error = Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            Ok(u32::from_ne_bytes([self.0; 4]))
        }
        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(u64::from_ne_bytes([self.0; 8]))
        }
        fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
            out.fill(self.0);
            Ok(())
        }
    }

    #[test]
    fn products_and_inverses_are_those_of_the_schoolbook() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply_256(a, b), naive::multiply(a, b), "{a} * {b}");
                let halves = naive::multiply_byte(Field::Gf16, a % 16, b);
                assert_eq!(multiply_byte(16, a % 16, b), halves, "{a} * {b}");
            }
            if a != 0 {
                assert_eq!(naive::multiply(a, Field::Gf256.invert(a)), 1, "1 / {a}");
            }
            if (1..16).contains(&a) {
                assert_eq!(naive::multiply_16(a, Field::Gf16.invert(a)), 1, "1 / {a}");
            }
        }
    }

    #[test]
    fn kernels_agree_with_the_schoolbook_at_every_length_and_offset() {
        let from: vec::Vec<u8> = (0..80_u32).map(|i| (i * 37 + 11) as u8).collect();
        for coefficient in [0, 1, 2, 0x8E, 255] {
            for (len, offset) in (0..=40).flat_map(|len| (0..9).map(move |offset| (len, offset))) {
                let source = &from[offset..offset + len];
                let mut to: vec::Vec<u8> = (0..len as u32).map(|i| (i * 91 + 5) as u8).collect();
                let expected: vec::Vec<u8> = to
                    .iter()
                    .zip(source)
                    .map(|(&to, &from)| to ^ naive::multiply(coefficient, from))
                    .collect();
                Backend::detected().add_scaled(Field::Gf256, &mut to, coefficient, source);
                assert_eq!(to, expected, "{coefficient} * {len} bytes at {offset}");
            }
        }
    }

    #[test]
    fn vectors_are_packed_least_significant_bit_first() {
        assert_eq!([0, 1, 8, 9].map(|count| Field::Gf2.vector_len_bytes(count)), [0, 1, 1, 2]);
        assert_eq!([0, 1, 8, 9].map(|count| Field::Gf256.vector_len_bytes(count)), [0, 1, 8, 9]);
        let vector = [0b0000_0010, 0b1000_0000];
        let ones = (0..16).filter(|&i| Field::Gf2.coefficient(&vector, i) == 1);
        assert!(ones.eq([1, 15]));
        assert_eq!(Field::Gf2.first_nonzero(&vector, 0), Some(1));
        assert_eq!(Field::Gf2.first_nonzero(&vector, 2), Some(15));
        assert_eq!(Field::Gf2.first_nonzero(&vector, 16), None);
    }

    #[test]
    fn a_drawn_vector_is_never_all_zero_and_has_no_unused_bits() {
        for field in [Field::Gf2, Field::Gf16, Field::Gf256] {
            for count in 1..20 {
                let mut out = [0xAA; 24];
                field.draw_vector(count, &mut Stuck(0), &mut out).unwrap();
                assert_eq!(field.first_nonzero(&out, 0), Some(0), "a stuck generator");
                field.draw_vector(count, &mut Stuck(255), &mut out).unwrap();
                let len = field.vector_len_bytes(count);
                assert!(out[len..].iter().all(|&byte| byte == 0xAA), "only the vector is written");
                assert_eq!(field.first_nonzero(&out[..len], count), None, "unused bits");
                for seed in 0..100 {
                    field.expand_seed(seed, count, &mut out).unwrap();
                    assert!(!is_zero(&out[..len]));
                }
            }
        }
    }

    #[test]
    fn a_short_buffer_is_refused() {
        let error = Err(CodecError::BufferTooShort { expected: 2, given: 1 });
        assert_eq!(Field::Gf2.expand_seed(1, 9, &mut [0]), error);
        assert_eq!(Field::Gf256.draw_vector(2, &mut Stuck(1), &mut [0]), error);
    }
}
