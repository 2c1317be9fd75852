//! The naive counterpart of the coders, for tests: it keeps every received symbol, padded to full
//! length, and solves the whole system anew for every query.

use std::{vec, vec::Vec};

use crate::Field;

/// Product in GF(2^8): multiply the polynomials, then divide by x^8 + x^4 + x^3 + x^2 + 1.
pub fn multiply(a: u8, b: u8) -> u8 {
    let product = (0..8)
        .filter(|shift| (b >> shift) & 1 == 1)
        .fold(0_u16, |sum, shift| sum ^ (u16::from(a) << shift));
    let rest = (8..15).rev().fold(product, |rest, degree| {
        if (rest >> degree) & 1 == 1 { rest ^ (0x11D << (degree - 8)) } else { rest }
    });
    rest as u8
}

/// Product in GF(2^4): likewise, divided by x^4 + x + 1.
pub fn multiply_16(a: u8, b: u8) -> u8 {
    let product = (0..4).filter(|shift| (b >> shift) & 1 == 1).fold(0, |sum, n| sum ^ (a << n));
    (4..7).rev().fold(product, |rest, degree| {
        if (rest >> degree) & 1 == 1 { rest ^ (0x13 << (degree - 4)) } else { rest }
    })
}

/// A coefficient times the elements in one byte of a symbol.
pub fn multiply_byte(field: Field, coefficient: u8, byte: u8) -> u8 {
    match field {
        Field::Gf2 | Field::Gf256 => multiply(coefficient, byte),
        Field::Gf16 => {
            multiply_16(coefficient, byte & 0xF) | multiply_16(coefficient, byte >> 4) << 4
        }
    }
}

/// Inverse of a coefficient, by trying all.
fn invert(field: Field, a: u8) -> u8 {
    let multiply = if field == Field::Gf16 { multiply_16 } else { multiply };
    (1..=255).find(|&b| multiply(a, b) == 1).expect("every element but 0 has an inverse")
}

/// The coefficients of a packed vector, one byte each.
pub fn unpack(field: Field, vector: &[u8], count: usize) -> Vec<u8> {
    match field {
        Field::Gf2 => (0..count).map(|i| vector[i / 8] >> (i % 8) & 1).collect(),
        Field::Gf16 => (0..count).map(|i| vector[i / 2] >> (i % 2 * 4) & 0xF).collect(),
        Field::Gf256 => vector[..count].to_vec(),
    }
}

/// The combination of `symbols`, as long as the longest with a nonzero coefficient.
pub fn combine(field: Field, coefficients: &[u8], symbols: &[Vec<u8>]) -> Vec<u8> {
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

/// A decoder that keeps everything it received.
pub struct NaiveDecoder {
    field: Field,
    block_size: usize,
    symbol_size_max: usize,
    /// Each row: coefficients over the whole block, one to a byte (and over GF(2^4) in its low
    /// half, so that one product serves coefficients and payload), then the payload padded with
    /// zeros.
    rows: Vec<Vec<u8>>,
}

impl NaiveDecoder {
    pub fn new(field: Field, block_size: usize, symbol_size_max: usize) -> Self {
        Self { field, block_size, symbol_size_max, rows: vec![] }
    }

    pub fn add(&mut self, coefficients: &[u8], payload: &[u8]) {
        let mut row = coefficients.to_vec();
        row.resize(self.block_size, 0);
        row.extend(payload);
        row.resize(self.block_size + self.symbol_size_max, 0);
        self.rows.push(row);
    }

    pub fn rank(&self) -> usize {
        self.solve().len()
    }

    /// For each symbol its bytes, padded, if the input determines it.
    pub fn symbols(&self) -> Vec<Option<Vec<u8>>> {
        let mut symbols = vec![None; self.block_size];
        for row in self.solve() {
            let (coefficients, payload) = row.split_at(self.block_size);
            let mut nonzero = (0..self.block_size).filter(|&i| coefficients[i] != 0);
            if let (Some(index), None) = (nonzero.next(), nonzero.next()) {
                symbols[index] = Some(payload.to_vec());
            }
        }
        symbols
    }

    /// Gauss-Jordan elimination, column by column; returns the nonzero rows.
    fn solve(&self) -> Vec<Vec<u8>> {
        let mut rows = self.rows.clone();
        let mut rank = 0;
        for column in 0..self.block_size {
            let Some(found) = (rank..rows.len()).find(|&row| rows[row][column] != 0) else {
                continue;
            };
            rows.swap(rank, found);
            let inverse = invert(self.field, rows[rank][column]);
            for byte in &mut rows[rank] {
                *byte = multiply_byte(self.field, inverse, *byte);
            }
            let pivot_row = rows[rank].clone();
            for (place, row) in rows.iter_mut().enumerate() {
                let factor = row[column];
                if place != rank && factor != 0 {
                    for (byte, &pivot) in row.iter_mut().zip(&pivot_row) {
                        *byte ^= multiply_byte(self.field, factor, pivot);
                    }
                }
            }
            rank += 1;
        }
        rows.truncate(rank);
        rows
    }
}
