//! The bit matrices that multiply interleaved symbols, built from coding vectors.

use core::mem::MaybeUninit;

use super::tables;
use crate::MAX_BLOCK_SIZE;

/// Symbols over GF(2) per group, and outputs per matrix.
const BITS: usize = 8;

/// Over GF(2): writes the matrices of up to eight outputs, one for each of `groups` groups, to
/// `out`, `distance` apart. A matrix has a byte of each vector; bits of the last one that are not
/// in `used` are ignored.
pub(super) fn of_bits(
    vectors: &[&[u8]],
    (groups, used): (usize, u8),
    out: &mut [MaybeUninit<u64>],
    distance: usize,
) {
    let none = [0; MAX_BLOCK_SIZE / BITS];
    let mut all = [&none[..groups]; BITS];
    all.iter_mut().zip(vectors).for_each(|(to, from)| *to = &from[..groups]);
    let mut places = out.iter_mut().step_by(distance);
    let whole = groups / BITS * BITS;
    for first in (0..whole).step_by(BITS) {
        let words = all.map(|vector| vector[first..].first_chunk().map_or(0, word));
        let matrices = transpose_bytes(words);
        matrices.iter().zip(&mut places).for_each(|(matrix, place)| _ = place.write(*matrix));
    }
    if whole < groups {
        let rest = |vector: &[u8]| {
            let bytes = vector[whole..].iter().rev();
            bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        let matrices = transpose_bytes(all.map(rest));
        matrices[..groups - whole].iter().zip(&mut places).for_each(|(matrix, place)| {
            place.write(*matrix);
        });
    }
    if let Some(last) = groups.checked_sub(1)
        && used != 0xFF
    {
        let matrix = all.map(|vector| vector[last] & used);
        out[last * distance].write(u64::from_le_bytes(matrix));
    }
}

fn word(bytes: &[u8; BITS]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// Byte `i` of word `j` becomes byte `j` of word `i`. Each round exchanges one bit of a byte's
/// position for one of its word's. The words are named individually, since the compiler would
/// otherwise go through memory.
fn transpose_bytes([a, b, c, d, e, f, g, h]: [u64; BITS]) -> [u64; BITS] {
    let exchange = |bit: u32, without: u64, low: u64, high: u64| {
        let shift = 8 * bit;
        (low & without | (high & without) << shift, (low >> shift) & without | high & !without)
    };
    let bytes = |low, high| exchange(1, 0x00FF_00FF_00FF_00FF, low, high);
    let ((a, b), (c, d), (e, f), (g, h)) = (bytes(a, b), bytes(c, d), bytes(e, f), bytes(g, h));
    let pairs = |low, high| exchange(2, 0x0000_FFFF_0000_FFFF, low, high);
    let ((a, c), (b, d), (e, g), (f, h)) = (pairs(a, c), pairs(b, d), pairs(e, g), pairs(f, h));
    let halves = |low, high| exchange(4, 0x0000_0000_FFFF_FFFF, low, high);
    let ((a, e), (b, f), (c, g), (d, h)) = (halves(a, e), halves(b, f), halves(c, g), halves(d, h));
    [a, b, c, d, e, f, g, h]
}

/// Over GF(2^4): the same for up to two outputs, over groups of two symbols.
pub(super) fn of_halves(
    vectors: &[&[u8]],
    (groups, used): (usize, u8),
    out: &mut [MaybeUninit<u64>],
    distance: usize,
) {
    let places = out.iter_mut().step_by(distance);
    for (group, place) in (0..groups).zip(places) {
        let used = if group + 1 == groups { used } else { 0xFF };
        let byte = |output: usize| vectors.get(output).map_or(0, |vector| vector[group] & used);
        place.write(of_two(byte(0), byte(1)));
    }
}

/// The matrix of two outputs over two symbols of GF(2^4), of the coefficients in one byte each.
fn of_two(first: u8, second: u8) -> u64 {
    // Rows of the matrix are bytes, the lowest output bit last.
    const LOW: u64 = 0x0F0F_0F0F_0000_0000;
    const HIGH: u64 = 0x0000_0000_F0F0_F0F0;
    let affine = |coefficient: u8| tables::GF16.affine[coefficient as usize];
    let low = affine(first & 0xF) & LOW | (affine(first >> 4) & LOW) << 4;
    let high = (affine(second & 0xF) & HIGH) >> 4 | affine(second >> 4) & HIGH;
    low | high
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_matrix_has_a_byte_of_each_vector() {
        for (groups, outputs) in [(1, 1), (7, 8), (8, 3), (9, 8), (19, 5), (128, 8)] {
            let vectors: Vec<Vec<u8>> = (0..outputs)
                .map(|output| (0..groups).map(|group| (group * 11 + output * 37) as u8).collect())
                .collect();
            let rows: Vec<&[u8]> = vectors.iter().map(|vector| &vector[..]).collect();
            let mut out = [MaybeUninit::new(u64::MAX); 2 * 128];
            of_bits(&rows, (groups, 0x3F), &mut out[1..], 2);
            for group in 0..groups {
                // SAFETY: all of it was written above.
                let matrix = unsafe { out[1 + 2 * group].assume_init() }.to_le_bytes();
                let used = if group + 1 == groups { 0x3F } else { 0xFF };
                for (output, byte) in matrix.into_iter().enumerate() {
                    let expected = vectors.get(output).map_or(0, |vector| vector[group] & used);
                    assert_eq!(byte, expected, "{groups} {outputs} {group} {output}");
                }
                // SAFETY: the same.
                assert_eq!(unsafe { out[2 * group].assume_init() }, u64::MAX, "between");
            }
        }
    }
}
