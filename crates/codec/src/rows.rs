//! Flat storage for what the coders hold: numbered payloads, numbered coding vectors, and sets of
//! numbers. All of it is allocated once.

use alloc::{vec, vec::Vec};

use crate::{CodecError, Field, MAX_BLOCK_SIZE, MAX_SYMBOL_SIZE};

/// What the three coders are made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub field: Field,
    pub block_size: usize,
    pub symbol_size_max: usize,
}

impl Shape {
    pub fn new(
        field: Field,
        block_size: usize,
        symbol_size_max: usize,
    ) -> Result<Self, CodecError> {
        if !(1..=MAX_BLOCK_SIZE).contains(&block_size) {
            return Err(CodecError::BlockSize { given: block_size });
        }
        if !(1..=MAX_SYMBOL_SIZE).contains(&symbol_size_max) {
            return Err(CodecError::SymbolSizeMax { given: symbol_size_max });
        }
        Ok(Self { field, block_size, symbol_size_max })
    }

    pub fn check_symbol(&self, symbol: &[u8]) -> Result<(), CodecError> {
        if !(1..=self.symbol_size_max).contains(&symbol.len()) {
            let (expected_max, given) = (self.symbol_size_max, symbol.len());
            return Err(CodecError::SymbolLength { expected_max, given });
        }
        Ok(())
    }

    pub fn check_index(&self, index: usize) -> Result<(), CodecError> {
        if index >= self.block_size {
            let expected_max = self.block_size - 1;
            return Err(CodecError::IndexOutOfRange { expected_max, given: index });
        }
        Ok(())
    }

    /// Checks a vector over `count` of `count_max` symbols.
    pub fn check_vector(
        &self,
        vector: &[u8],
        count: usize,
        count_max: usize,
    ) -> Result<(), CodecError> {
        if !(1..=count_max).contains(&count) {
            return Err(CodecError::CountOutOfRange { expected_max: count_max, given: count });
        }
        let expected = self.field.vector_len_bytes(count);
        if vector.len() != expected {
            return Err(CodecError::VectorLength { expected, given: vector.len() });
        }
        Ok(())
    }
}

/// Payloads, one to a slot, each with a length of its own. The bytes of a slot beyond its length
/// hold anything and stand for zeros.
#[derive(Clone, Debug)]
pub(crate) struct Payloads {
    field: Field,
    stride: usize,
    bytes: Vec<u8>,
    lens: Vec<usize>,
}

impl Payloads {
    pub fn new(shape: &Shape) -> Self {
        Self {
            field: shape.field,
            stride: shape.symbol_size_max,
            bytes: vec![0; shape.block_size * shape.symbol_size_max],
            lens: vec![0; shape.block_size],
        }
    }

    pub fn payload(&self, slot: usize) -> &[u8] {
        &self.bytes[slot * self.stride..][..self.lens[slot]]
    }

    pub fn set(&mut self, slot: usize, payload: &[u8]) {
        self.bytes[slot * self.stride..][..payload.len()].copy_from_slice(payload);
        self.lens[slot] = payload.len();
    }

    pub fn copy(&mut self, to: usize, from: usize) {
        let start = from * self.stride;
        self.bytes.copy_within(start..start + self.lens[from], to * self.stride);
        self.lens[to] = self.lens[from];
    }

    pub fn scale(&mut self, slot: usize, coefficient: u8) {
        let payload = &mut self.bytes[slot * self.stride..][..self.lens[slot]];
        self.field.scale(payload, coefficient);
    }

    /// Adds `coefficient` times the payload of slot `from` to the one of slot `to`.
    pub fn add_scaled(&mut self, to: usize, coefficient: u8, from: usize) {
        let (out, row) = pair(&mut self.bytes, self.stride, to, from);
        let row = &row[..self.lens[from]];
        self.lens[to] = self.field.accumulate(out, self.lens[to], coefficient, row);
    }

    /// Adds `coefficient` times slot `slot` to the payload of `len` bytes in `out`, and returns
    /// the length of the sum.
    pub fn add_to(&self, out: &mut [u8], len: usize, coefficient: u8, slot: usize) -> usize {
        self.field.accumulate(out, len, coefficient, self.payload(slot))
    }
}

/// Coding vectors over the whole block, one to a row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    field: Field,
    stride: usize,
    bytes: Vec<u8>,
}

impl Matrix {
    pub fn new(shape: &Shape, rows: usize) -> Self {
        // Whole words: the kernels run without a remainder.
        let stride = shape.field.vector_len_bytes(shape.block_size).next_multiple_of(8);
        Self { field: shape.field, stride, bytes: vec![0; rows * stride] }
    }

    pub fn row(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.stride..][..self.stride]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.bytes[row * self.stride..][..self.stride]
    }

    /// Sets a row from a vector as it came, over the first `count` symbols.
    pub fn set(&mut self, row: usize, vector: &[u8], count: usize) {
        let field = self.field;
        let out = self.row_mut(row);
        out[..vector.len()].copy_from_slice(vector);
        out[vector.len()..].fill(0);
        field.mask_unused(out, count);
    }

    /// Sets a row to the vector of source symbol `index`.
    pub fn set_unit(&mut self, row: usize, index: usize) {
        let field = self.field;
        let out = self.row_mut(row);
        out.fill(0);
        field.set_coefficient(out, index, 1);
    }

    pub fn copy(&mut self, to: usize, from: usize) {
        let start = from * self.stride;
        self.bytes.copy_within(start..start + self.stride, to * self.stride);
    }

    pub fn coefficient(&self, row: usize, index: usize) -> u8 {
        self.field.coefficient(self.row(row), index)
    }

    pub fn clear_coefficient(&mut self, row: usize, index: usize) {
        let field = self.field;
        field.set_coefficient(self.row_mut(row), index, 0);
    }

    pub fn first_nonzero(&self, row: usize, start: usize) -> Option<usize> {
        self.field.first_nonzero(self.row(row), start)
    }

    pub fn scale(&mut self, row: usize, coefficient: u8) {
        let field = self.field;
        field.scale(self.row_mut(row), coefficient);
    }

    /// Adds `coefficient` times row `from` to row `to`.
    pub fn add_scaled(&mut self, to: usize, coefficient: u8, from: usize) {
        let (out, row) = pair(&mut self.bytes, self.stride, to, from);
        self.field.add_scaled(out, coefficient, row);
    }
}

/// Two different rows of a flat buffer, the first of them to be written.
fn pair(bytes: &mut [u8], stride: usize, to: usize, from: usize) -> (&mut [u8], &[u8]) {
    debug_assert_ne!(to, from);
    if to < from {
        let (head, tail) = bytes.split_at_mut(from * stride);
        (&mut head[to * stride..][..stride], &tail[..stride])
    } else {
        let (head, tail) = bytes.split_at_mut(to * stride);
        (&mut tail[..stride], &head[from * stride..][..stride])
    }
}

/// A set of symbol indices.
#[derive(Clone, Debug)]
pub(crate) struct IndexSet {
    words: [u64; MAX_BLOCK_SIZE / 64],
}

impl IndexSet {
    pub const EMPTY: Self = Self { words: [0; MAX_BLOCK_SIZE / 64] };

    pub fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// Whether the set has this index; any number may be asked for.
    pub fn contains(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| (word >> (index % 64)) & 1 == 1)
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The indices, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(place, &word)| indices_in(place, word))
    }

    /// The indices that `other` lacks, in ascending order.
    pub fn difference(&self, other: &Self) -> impl Iterator<Item = usize> {
        let words = self.words.iter().zip(&other.words).enumerate();
        words.flat_map(|(place, (&word, &other))| indices_in(place, word & !other))
    }

    /// Writes the set as a bitmap, least significant bit first, as far as `out` reaches.
    pub fn write_bitmap(&self, out: &mut [u8]) {
        out.fill(0);
        for (out, word) in out.chunks_mut(8).zip(&self.words) {
            out.copy_from_slice(&word.to_le_bytes()[..out.len()]);
        }
    }
}

fn indices_in(place: usize, mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(place * 64 + bit)
    })
}
