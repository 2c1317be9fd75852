//! Coding coefficients as generated in RFC 8681: TinyMT32 of RFC 8682 expands a 16-bit repair key,
//! and a density threshold determines how many coefficients are zero.

use crate::{CodecError, Field};

/// Parameters of the generator, RFC 8682 section 2.1.
const MAT1: u32 = 0x8F70_11EE;
const MAT2: u32 = 0xFC78_FF1F;
const TMAT: u32 = 0x3793_FDFF;

/// Steps of the initialisation, RFC 8682 section 2.1.
const MIN_LOOP: usize = 8;
const PRE_LOOP: usize = 8;

/// Highest density threshold of RFC 8681.
const DENSITY_MAX: u8 = 15;

/// The 32-bit generator of RFC 8682, for coefficients only: it is neither secret nor of sufficient
/// quality for anything else.
///
/// Its state is linear over GF(2) and has 127 bits. Vectors drawn bit by bit from one long-lived
/// generator, as RFC 8681 does for GF(2), would not exceed that rank; but each repair key starts a
/// new one, and its output is not linear in the key.
///
/// ```
/// use corridor_codec::TinyMt32;
///
/// // The first value of RFC 8682, figure 2.
/// assert_eq!(TinyMt32::new(1).next_u32(), 2_545_341_989);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TinyMt32 {
    state: [u32; 4],
}

impl TinyMt32 {
    /// The generator started from a seed. Equal seeds give equal numbers on every machine.
    pub fn new(seed: u32) -> Self {
        let mut state = [seed, MAT1, MAT2, TMAT];
        for i in 1..MIN_LOOP {
            let before = state[(i - 1) % 4];
            let mixed = (before ^ (before >> 30)).wrapping_mul(1_812_433_253);
            state[i % 4] ^= mixed.wrapping_add(i as u32);
        }
        let mut generator = Self { state };
        (0..PRE_LOOP).for_each(|_| generator.step());
        generator
    }

    /// The next number, of 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        self.step();
        let sum = self.state[0].wrapping_add(self.state[2] >> 8);
        self.state[3] ^ sum ^ mask(sum, TMAT)
    }

    /// The next number's lowest 8 bits: `tinymt32_rand256` of RFC 8681, section 3.5.
    pub fn next_u8(&mut self) -> u8 {
        self.next_u32() as u8
    }

    /// The next number's lowest 4 bits: `tinymt32_rand16` of RFC 8681, section 3.5.
    pub fn next_u4(&mut self) -> u8 {
        self.next_u32() as u8 & 0xF
    }

    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.state;
        let mut x = (s0 & 0x7FFF_FFFF) ^ s1 ^ s2;
        x ^= x << 1;
        let y = s3 ^ (s3 >> 1) ^ x;
        self.state = [s1, s2 ^ mask(y, MAT1), x ^ (y << 10) ^ mask(y, MAT2), y];
    }
}

/// `word` if `number` is odd, else zero.
fn mask(number: u32, word: u32) -> u32 {
    (number & 1).wrapping_neg() & word
}

/// The density threshold DT of RFC 8681: a coefficient is non-zero with probability (DT + 1) / 16.
///
/// ```
/// use corridor_codec::{CodecError, Density};
///
/// assert_eq!(Density::new(15), Ok(Density::FULL));
/// assert_eq!(Density::new(16), Err(CodecError::DensityThreshold { given: 16 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Density(u8);

impl Density {
    /// No coefficient is zero.
    pub const FULL: Self = Self(DENSITY_MAX);

    /// A threshold in 0..=15.
    ///
    /// # Errors
    /// [`CodecError::DensityThreshold`] beyond 15.
    pub fn new(threshold: u8) -> Result<Self, CodecError> {
        if threshold > DENSITY_MAX {
            return Err(CodecError::DensityThreshold { given: threshold });
        }
        Ok(Self(threshold))
    }

    /// The threshold, in 0..=15.
    pub const fn threshold(self) -> u8 {
        self.0
    }
}

impl Field {
    /// Expands a repair key into a coding vector over `count` symbols, like
    /// `generate_coding_coefficients` of RFC 8681 (section 3.6), over GF(2) or GF(2^8); the
    /// polynomial, 0x11D, is the same as well.
    ///
    /// Writes the first [`vector_len_bytes`](Self::vector_len_bytes) bytes of `out`, packed as
    /// everywhere in this crate. Over GF(2) with full density every coefficient is 1, whatever the
    /// key. With lower densities the vector can be all zero; such a symbol is dependent.
    ///
    /// ```
    /// use corridor_codec::{Density, Field};
    ///
    /// let mut vector = [0; 5];
    /// Field::Gf256.expand_repair_key(1, Density::FULL, 5, &mut vector)?;
    /// // RFC 8681, figure 9, which has no zeros among its first numbers.
    /// assert_eq!(vector, [37, 225, 177, 176, 21]);
    /// # Ok::<(), corridor_codec::CodecError>(())
    /// ```
    ///
    /// # Errors
    /// [`CodecError::BufferTooShort`] when `out` has fewer bytes than the vector;
    /// [`CodecError::RepairKeyField`] over a field that RFC 8681 does not have.
    pub fn expand_repair_key(
        self,
        repair_key: u16,
        density: Density,
        count: usize,
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let (expected, given) = (self.vector_len_bytes(count), out.len());
        let vector = out.get_mut(..expected);
        let vector = vector.ok_or(CodecError::BufferTooShort { expected, given })?;
        let mut generator = TinyMt32::new(repair_key.into());
        if self == Self::Gf2 {
            vector.fill(0);
            for index in 0..count {
                if density == Density::FULL || generator.next_u4() <= density.threshold() {
                    vector[index / 8] |= 1 << (index % 8);
                }
            }
        } else if self == Self::Gf256 {
            for coefficient in vector {
                *coefficient = 0;
                if density == Density::FULL || generator.next_u4() <= density.threshold() {
                    // Ends: a generator that gave zeros only would be in its all-zero state,
                    // which no seed leads to.
                    while *coefficient == 0 {
                        *coefficient = generator.next_u8();
                    }
                }
            }
        } else {
            return Err(CodecError::RepairKeyField { given: self });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// RFC 8682, figure 2: the first 50 numbers of seed 1.
    const FIGURE_2: [u32; 50] = [
        2545341989, 981918433, 3715302833, 2387538352, 3591001365, 3820442102, 2114400566,
        2196103051, 2783359912, 764534509, 643179475, 1822416315, 881558334, 4207026366,
        3690273640, 3240535687, 2921447122, 3984931427, 4092394160, 44209675, 2188315343,
        2908663843, 1834519336, 3774670961, 3019990707, 4065554902, 1239765502, 4035716197,
        3412127188, 552822483, 161364450, 353727785, 140085994, 149132008, 2547770827, 4064042525,
        4078297538, 2057335507, 622384752, 2041665899, 2193913817, 1080849512, 33160901, 662956935,
        642999063, 3384709977, 1723175122, 3866752252, 521822317, 2292524454,
    ];

    fn coefficients(field: Field, key: u16, density: Density, count: usize) -> Vec<u8> {
        let mut out = std::vec![0xEE; field.vector_len_bytes(count)];
        field.expand_repair_key(key, density, count, &mut out).unwrap();
        (0..count).map(|index| field.coefficient(&out, index)).collect()
    }

    #[test]
    fn rfc_8682_figure_2() {
        let mut generator = TinyMt32::new(1);
        assert!(FIGURE_2.iter().all(|&number| generator.next_u32() == number));
    }

    /// RFC 8681 appendix A: numbers below 256 and below 16 are the lowest bits.
    #[test]
    fn rfc_8681_small_numbers_are_the_lowest_bits() {
        let (mut bytes, mut nibbles) = (TinyMt32::new(1), TinyMt32::new(1));
        for number in FIGURE_2 {
            assert_eq!(u32::from(bytes.next_u8()), number & 0xFF);
            assert_eq!(u32::from(nibbles.next_u4()), number & 0xF);
        }
    }

    /// RFC 8681 section 3.6, retold from the figure of RFC 8682 for repair key 1.
    #[test]
    fn rfc_8681_coefficients_follow_the_generator() {
        let numbers = FIGURE_2.map(|number| number as u8);
        assert_eq!(coefficients(Field::Gf256, 1, Density::FULL, 50), {
            let mut generator = TinyMt32::new(1);
            let numbers = core::iter::repeat_with(|| generator.next_u8()).filter(|&n| n != 0);
            numbers.take(50).collect::<Vec<_>>()
        });
        assert_eq!(coefficients(Field::Gf256, 1, Density::FULL, 8), numbers[..8]);
        let half = Density::new(7).unwrap();
        let bits: Vec<u8> = numbers.iter().map(|number| u8::from(number & 0xF <= 7)).collect();
        assert_eq!(coefficients(Field::Gf2, 1, half, 50), bits);
        assert_eq!(coefficients(Field::Gf2, 9, Density::FULL, 50), [1; 50]);
        let mut rest = numbers.iter().copied();
        let mut expected = Vec::new();
        while expected.len() < 20 {
            let dense = rest.next().unwrap() & 0xF <= 7;
            expected.push(if dense { rest.find(|&number| number != 0).unwrap() } else { 0 });
        }
        assert_eq!(coefficients(Field::Gf256, 1, half, 20), expected);
    }

    #[test]
    fn the_share_of_non_zero_coefficients_is_what_the_threshold_says() {
        for field in [Field::Gf2, Field::Gf256] {
            for threshold in 0..=15 {
                let density = Density::new(threshold).unwrap();
                let nonzero: usize = (0..200)
                    .map(|key| {
                        let vector = coefficients(field, key * 300 + 1, density, 100);
                        vector.iter().filter(|&&coefficient| coefficient != 0).count()
                    })
                    .sum();
                let share = f64::from(threshold + 1) / 16.;
                let bound = 4. * (share * (1. - share) / 20_000.).sqrt();
                assert!((nonzero as f64 / 20_000. - share).abs() <= bound, "{field:?} {threshold}");
            }
        }
    }

    #[test]
    fn misuse_is_a_typed_error() {
        let error = Err(CodecError::BufferTooShort { expected: 2, given: 1 });
        assert_eq!(Field::Gf2.expand_repair_key(1, Density::FULL, 9, &mut [0]), error);
        let error = Err(CodecError::RepairKeyField { given: Field::Gf16 });
        assert_eq!(Field::Gf16.expand_repair_key(1, Density::FULL, 9, &mut [0; 9]), error);
    }
}
