//! The decoders' twin, a textbook implementation: it keeps innovative symbols, padded to full
//! length, and answers every question by Gauss-Jordan elimination from scratch.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use corridor_codec::Field;

/// A decoder of the symbols from an id on, without a limit on their number.
pub struct Twin {
    field: Field,
    symbol_size_max: usize,
    base: u64,
    rows: Vec<Row>,
}

#[derive(Clone)]
struct Row {
    /// Coefficients of the ids from the base on, without trailing zeros.
    coefficients: Vec<u8>,
    /// Length of the longest possible symbol.
    payload: Vec<u8>,
}

impl Row {
    fn coefficient(&self, column: usize) -> u8 {
        self.coefficients.get(column).copied().unwrap_or(0)
    }
}

impl Twin {
    /// A twin without any symbols, starting at `base`.
    pub fn new(field: Field, symbol_size_max: usize, base: u64) -> Self {
        Self { field, symbol_size_max, base, rows: vec![] }
    }

    /// Takes a combination of the symbols from `first` on, with one byte per coefficient, and
    /// returns whether it was innovative. Coefficients of symbols before the base must be zero.
    pub fn add(&mut self, first: u64, coefficients: &[u8], payload: &[u8]) -> bool {
        let mut row = Row { coefficients: vec![], payload: payload.to_vec() };
        row.payload.resize(self.symbol_size_max, 0);
        for (id, &coefficient) in (first..=u64::MAX).zip(coefficients) {
            if coefficient != 0 {
                let column = id.checked_sub(self.base).expect("a symbol before the base") as usize;
                row.coefficients.resize(column + 1, 0);
                row.coefficients[column] = coefficient;
            }
        }
        let rank = self.rows.len();
        self.rows.push(row);
        let solved = self.solve();
        if solved.len() == rank {
            self.rows.pop();
        }
        self.rows.len() > rank
    }

    /// Forgets the symbols before `id`, and everything that cannot be determined without them.
    pub fn advance_to(&mut self, id: u64) {
        let Some(distance) = id.checked_sub(self.base) else {
            return;
        };
        let distance = usize::try_from(distance).unwrap_or(usize::MAX);
        self.rows = self.solve();
        // Echelon form: a row without earlier columns is in the span of such rows.
        self.rows.retain(|row| row.coefficients.iter().take(distance).all(|&c| c == 0));
        for row in &mut self.rows {
            row.coefficients.drain(..distance);
        }
        self.base = id;
    }

    /// The number of innovative combinations held.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// The symbols that are determined, padded with zeros, in ascending order of their ids.
    pub fn symbols(&self) -> Vec<(u64, Vec<u8>)> {
        let units = self.solve().into_iter().filter_map(|row| {
            let mut nonzero = (0..row.coefficients.len()).filter(|&i| row.coefficients[i] != 0);
            match (nonzero.next(), nonzero.next()) {
                (Some(column), None) => Some((self.base + column as u64, row.payload)),
                _ => None,
            }
        });
        units.collect()
    }

    /// The leading symbols of the reduced rows: those that are seen.
    pub fn seen(&self) -> BTreeSet<u64> {
        let first = |row: Row| row.coefficients.iter().position(|&coefficient| coefficient != 0);
        let columns = self.solve().into_iter().filter_map(first);
        columns.map(|column| self.base + column as u64).collect()
    }

    /// Whether all rows held, once solved, are combinations of the symbols from `first` to before
    /// `end`; and the number of those that are.
    pub fn rank_within(&self, first: u64, end: u64) -> usize {
        let rows = self.solve();
        let within = |row: &Row| {
            let ids = (self.base..=u64::MAX).zip(&row.coefficients);
            ids.filter(|&(_, &coefficient)| coefficient != 0)
                .all(|(id, _)| (first..end).contains(&id))
        };
        rows.iter().filter(|row| within(row)).count()
    }

    /// Reduced row echelon form, column by column; returns the rows that are not zero.
    fn solve(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        let columns = rows.iter().map(|row| row.coefficients.len()).max().unwrap_or(0);
        let mut rank = 0;
        for column in 0..columns {
            let Some(found) = (rank..rows.len()).find(|&row| rows[row].coefficient(column) != 0)
            else {
                continue;
            };
            rows.swap(rank, found);
            let factor = invert(self.field, rows[rank].coefficient(column));
            let scaled = rows[rank].clone();
            rows[rank] = Row { coefficients: vec![], payload: vec![0; self.symbol_size_max] };
            add_scaled(self.field, &mut rows[rank], factor, &scaled);
            let pivot = rows[rank].clone();
            for (place, row) in rows.iter_mut().enumerate() {
                let factor = row.coefficient(column);
                if place != rank && factor != 0 {
                    add_scaled(self.field, row, factor, &pivot);
                }
            }
            rank += 1;
        }
        rows.truncate(rank);
        rows
    }
}

fn add_scaled(field: Field, to: &mut Row, factor: u8, from: &Row) {
    let len = to.coefficients.len().max(from.coefficients.len());
    to.coefficients.resize(len, 0);
    for (to, &from) in to.coefficients.iter_mut().zip(&from.coefficients) {
        *to ^= multiply_elements(field, factor, from);
    }
    for (to, &from) in to.payload.iter_mut().zip(&from.payload) {
        *to ^= multiply_byte(field, factor, from);
    }
    while to.coefficients.last() == Some(&0) {
        to.coefficients.pop();
    }
}

/// The combination of `symbols`, as long as the longest one with a non-zero coefficient.
pub fn combine<'a>(
    field: Field,
    coefficients: &[u8],
    symbols: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let mut sum = vec![];
    for (&coefficient, symbol) in coefficients.iter().zip(symbols) {
        if coefficient == 0 {
            continue;
        }
        sum.resize(sum.len().max(symbol.len()), 0);
        for (sum, &byte) in sum.iter_mut().zip(symbol) {
            *sum ^= multiply_byte(field, coefficient, byte);
        }
    }
    sum
}

/// The coefficients of a packed vector, one per byte.
pub fn unpack(field: Field, vector: &[u8], count: usize) -> Vec<u8> {
    let bits = field.order().ilog2() as usize;
    let at = |i: usize| (vector[i * bits / 8] >> (i * bits % 8)) & (0xFF >> (8 - bits));
    (0..count).map(at).collect()
}

/// The inverse in the field, by trial of all elements.
fn invert(field: Field, element: u8) -> u8 {
    let inverse = (1..=255).find(|&other| multiply_elements(field, element, other) == 1);
    inverse.expect("every element but 0 has an inverse")
}

/// A coefficient times all the elements in a byte of a symbol.
fn multiply_byte(field: Field, coefficient: u8, byte: u8) -> u8 {
    match field {
        Field::Gf2 => coefficient * byte,
        Field::Gf16 => {
            let halves = [byte & 0xF, byte >> 4].map(|half| multiply_16(coefficient, half));
            halves[0] | (halves[1] << 4)
        }
        Field::Gf256 => multiply_256(coefficient, byte),
    }
}

fn multiply_elements(field: Field, a: u8, b: u8) -> u8 {
    match field {
        Field::Gf2 => a & b & 1,
        Field::Gf16 => multiply_16(a, b & 0xF),
        Field::Gf256 => multiply_256(a, b),
    }
}

/// Modulo x^4 + x + 1.
fn multiply_16(a: u8, b: u8) -> u8 {
    multiply_polynomials(a, b, 4, 0x13)
}

/// Modulo x^8 + x^4 + x^3 + x^2 + 1, from a table: the twin is slow enough.
fn multiply_256(a: u8, b: u8) -> u8 {
    static PRODUCTS: OnceLock<Vec<u8>> = OnceLock::new();
    let products = PRODUCTS.get_or_init(|| {
        let all = (0..=255).flat_map(|a| (0..=255).map(move |b| (a, b)));
        all.map(|(a, b)| multiply_polynomials(a, b, 8, 0x11D)).collect()
    });
    products[usize::from(a) * 256 + usize::from(b)]
}

/// Multiplies the polynomials, then divides by `modulus` of degree `degree`.
fn multiply_polynomials(a: u8, b: u8, degree: u32, modulus: u16) -> u8 {
    let product = (0..8)
        .filter(|shift| (b >> shift) & 1 == 1)
        .fold(0_u16, |sum, shift| sum ^ (u16::from(a) << shift));
    let rest = (degree..15).rev().fold(product, |rest, power| {
        if (rest >> power) & 1 == 1 { rest ^ (modulus << (power - degree)) } else { rest }
    });
    rest as u8
}
