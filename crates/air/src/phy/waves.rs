//! Eight cosines at once, equal to the bit to `libm::cos`: the same operations on each, without
//! branches, so that a compiler can vectorise them.
//!
//! After FreeBSD's `k_cos.c`, `k_sin.c` and `e_rem_pio2.c` as libm has them (Copyright (C) 1993 by
//! Sun Microsystems, Inc. All rights reserved. Developed at SunPro, a Sun Microsystems, Inc.
//! business. Permission to use, copy, modify, and distribute this software is freely granted,
//! provided that this notice is preserved).

/// Waves of each kind: enough for the first two moments and the autocorrelation.
pub(super) const WAVES: usize = 8;

/// One number for each wave.
pub(super) type Lanes = [f64; WAVES];

/// The first 33 bits of a quarter turn, and the rest.
const QUARTER: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
const QUARTER_REST: f64 = f64::from_bits(0x3dd0_b461_1a62_6331);

/// Angles from which the next quarter turn is nearer: odd multiples of an eighth turn, by their
/// high words as in libm.
const EIGHTHS: [f64; 4] = [
    f64::from_bits(0x3fe9_21fc << 32),
    f64::from_bits(0x4002_d97d << 32),
    f64::from_bits(0x400f_6a7b << 32),
    f64::from_bits(0x4015_fdbd << 32),
];

/// High words of angles near a quarter, a half, three quarters and a whole turn, where libm reduces
/// more precisely.
const NEAR: [u32; 4] = [0x3ff9_21fb, 0x4009_21fb, 0x4012_d97c, 0x4019_21fb];

const C: [f64; 6] = [
    f64::from_bits(0x3fa5_5555_5555_554c),
    f64::from_bits(0xbf56_c16c_16c1_5177),
    f64::from_bits(0x3efa_01a0_19cb_1590),
    f64::from_bits(0xbe92_7e4f_809c_52ad),
    f64::from_bits(0x3e21_ee9e_bdb4_b1c4),
    f64::from_bits(0xbda8_fae9_be88_38d4),
];

const S: [f64; 6] = [
    f64::from_bits(0xbfc5_5555_5555_5549),
    f64::from_bits(0x3f81_1111_1110_f8a6),
    f64::from_bits(0xbf2a_01a0_19c1_61d5),
    f64::from_bits(0x3ec7_1de3_57b1_fe7d),
    f64::from_bits(0xbe5a_e5e6_8a2b_9ceb),
    f64::from_bits(0x3de5_d93a_5acf_d57c),
];

/// Below this, adding and subtracting [`TO_WHOLE`] rounds to a whole number.
const WHOLE_MAX: f64 = (1_u64 << 51) as f64;
const TO_WHOLE: f64 = (1_u64 << 52) as f64;

/// The fractional part of each number, none of which is negative.
pub(super) fn fractions(of: Lanes) -> Lanes {
    if of.iter().any(|&number| number >= WHOLE_MAX) {
        return of.map(|number| number - libm::floor(number));
    }
    let mut rest = [0.0; WAVES];
    for (rest, number) in rest.iter_mut().zip(of) {
        let rounded = (number + TO_WHOLE) - TO_WHOLE;
        let whole = if rounded > number { rounded - 1.0 } else { rounded };
        *rest = number - whole;
    }
    rest
}

/// The cosines of angles from zero to a whole turn.
pub(super) fn cosines(angles: Lanes) -> Lanes {
    let mut cosines = [0.0; WAVES];
    for (into, angle) in cosines.iter_mut().zip(angles) {
        *into = cosine(angle);
    }
    for (cosine, angle) in cosines.iter_mut().zip(angles) {
        let highest = (angle.to_bits() >> 32) as u32;
        if NEAR.contains(&highest) {
            *cosine = libm::cos(angle);
        }
    }
    cosines
}

/// The cosine of an angle from zero to a whole turn that is not in [`NEAR`].
#[inline(always)]
fn cosine(angle: f64) -> f64 {
    let mut quarters = 0.0;
    for eighth in EIGHTHS {
        quarters += if angle >= eighth { 1.0 } else { 0.0 };
    }
    let first = angle - quarters * QUARTER;
    let rest = quarters * QUARTER_REST;
    let near = first - rest;
    let (of_cos, of_sin) = kernels(near, (first - near) - rest);
    let is_odd = quarters == 1.0 || quarters == 3.0;
    let size = if is_odd { of_sin } else { of_cos };
    if quarters == 1.0 || quarters == 2.0 { -size } else { size }
}

/// Cosine and sine of an angle up to an eighth of a turn plus its low-order part.
#[inline(always)]
fn kernels(x: f64, rest: f64) -> (f64, f64) {
    let z = x * x;
    let w = z * z;
    let r = z * (C[0] + z * (C[1] + z * C[2])) + w * w * (C[3] + z * (C[4] + z * C[5]));
    let half = 0.5 * z;
    let one = 1.0 - half;
    let cos = one + (((1.0 - one) - half) + (z * r - x * rest));
    let r = S[1] + z * (S[2] + z * S[3]) + z * w * (S[4] + z * S[5]);
    let v = z * x;
    let sin = x - ((z * (0.5 * rest - v * r) - rest) - v * S[0]);
    (cos, sin)
}

#[cfg(test)]
mod tests {
    use core::f64::consts::TAU;

    use super::*;

    fn check(angles: Lanes) {
        for (angle, cosine) in angles.into_iter().zip(cosines(angles)) {
            assert_eq!(cosine.to_bits(), libm::cos(angle).to_bits(), "{angle:e}");
        }
    }

    /// All over the turn, and around every boundary between cases.
    #[test]
    fn cosines_are_those_of_libm_to_the_bit() {
        let mut state = 1_u64;
        for _ in 0..200_000 {
            check([(); WAVES].map(|()| {
                state =
                    state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                TAU * ((state >> 11) as f64 / (1_u64 << 53) as f64)
            }));
        }
        let words = EIGHTHS.map(|eighth| (eighth.to_bits() >> 32) as u32).into_iter().chain(NEAR);
        for word in words.flat_map(|word| [word - 1, word, word + 1]) {
            let low =
                [0, 1, 0x5444_2d18, 0x5444_2d19, 0x7f3b_0000, 0x8000_0000, 0xffff_fffe, u32::MAX];
            let angles = low.map(|low| f64::from_bits(u64::from(word) << 32 | u64::from(low)));
            check(angles.map(|angle| angle.min(TAU)));
        }
        check([0.0, 1e-300, 1e-17, 1e-8, 1.1e-8, 1e-3, TAU, TAU - 1e-15]);
    }

    #[test]
    fn fractions_are_what_is_left_of_floors() {
        let mut number = 1e-9;
        while number < 1e18 {
            let of = [1.0, 1.5, 1.75, 0.999_999, 1.000_001, 3.0, 5.0, 7.0].map(|by| by * number);
            let floors = of.map(|number| number - libm::floor(number));
            assert_eq!(fractions(of).map(f64::to_bits), floors.map(f64::to_bits), "{number}");
            let whole = of.map(libm::floor);
            assert_eq!(fractions(whole), [0.0; WAVES]);
            number *= 1.37;
        }
        assert_eq!(fractions([0.0; WAVES]), [0.0; WAVES]);
    }
}
