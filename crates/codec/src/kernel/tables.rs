//! The kernels' tables for a field: for each coefficient its multiplication, once as a bit matrix
//! (GFNI) and once as two tables of sixteen (byte shuffles). In all fields, multiplication by a
//! coefficient is linear over GF(2), even for two elements of GF(2^4) in a byte, so the kernels
//! need not know the field.
//!
//! All tables have 256 entries: any byte is a valid index.

use crate::field::multiply_byte;

/// The multiplications of one field.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Tables {
    /// Bit matrices as `gf2p8affineqb` takes them: the row of output bit `i` is byte `7 - i`.
    pub affine: [u64; 256],
    /// The linear maps from a coefficient to each byte of its bit matrix, as bit matrices.
    pub maps: [u64; 8],
    /// Products with the low halves 0 to 15, then with the high halves.
    pub shuffle: [[u8; 32]; 256],
    /// Inverses of the nonzero elements.
    pub inverses: [u8; 256],
}

pub(crate) static GF2: Tables = Tables::new(2);
pub(crate) static GF16: Tables = Tables::new(16);
pub(crate) static GF256: Tables = Tables::new(256);

impl Tables {
    const fn new(order: u32) -> Self {
        let mut tables =
            Self { affine: [0; 256], maps: [0; 8], shuffle: [[0; 32]; 256], inverses: [0; 256] };
        let mut coefficient = 0;
        while coefficient < 256 {
            let mut images = [0; 8];
            let mut bit = 0;
            while bit < 8 {
                let element = (coefficient as u32 % order) as u8;
                images[bit] = multiply_byte(order, element, 1 << bit);
                bit += 1;
            }
            let mut matrix = [0; 8];
            let mut row = 0;
            while row < 8 {
                let mut column = 0;
                while column < 8 {
                    matrix[7 - row] |= ((images[column] >> row) & 1) << column;
                    column += 1;
                }
                row += 1;
            }
            tables.affine[coefficient] = u64::from_le_bytes(matrix);
            // The multiplicative group has order one less than the field: x to that power is 1.
            let element = (coefficient as u32 % order) as u8;
            let (mut inverse, mut exponent) = (1, 2);
            while exponent < order {
                inverse = multiply_byte(order, element, inverse);
                exponent += 1;
            }
            tables.inverses[coefficient] = inverse;
            let mut half = 0;
            while half < 32 {
                let (value, shift) = (half % 16, half / 16 * 4);
                let mut bit = 0;
                while bit < 4 {
                    if (value >> bit) & 1 == 1 {
                        tables.shuffle[coefficient][half] ^= images[bit + shift];
                    }
                    bit += 1;
                }
                half += 1;
            }
            coefficient += 1;
        }
        let mut byte = 0;
        while byte < 8 {
            let mut matrix = [0; 8];
            let mut column = 0;
            while column < 8 {
                let image = tables.affine[1 << column].to_le_bytes()[byte];
                let mut row = 0;
                while row < 8 {
                    matrix[7 - row] |= ((image >> row) & 1) << column;
                    row += 1;
                }
                column += 1;
            }
            tables.maps[byte] = u64::from_le_bytes(matrix);
            byte += 1;
        }
        tables
    }
}
