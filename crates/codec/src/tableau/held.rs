//! The numbers of a block with a payload in their slot.

use alloc::{vec, vec::Vec};

use crate::Field;
use crate::rows::{IndexSet, Shape};

/// The numbers held, and as a mask over coding vectors those that are not.
#[derive(Clone, Debug)]
pub(super) struct Held {
    field: Field,
    block_size: usize,
    numbers: IndexSet,
    count: usize,
    /// As a row, all bits set for the coefficients of numbers that are not held.
    absent: Vec<u8>,
    /// No number before this one is absent.
    first_absent: usize,
    /// No word of the mask after this one has a bit set.
    last_absent_word: usize,
}

impl Held {
    /// The empty set, with a mask of `len` bytes.
    pub(super) fn new(shape: &Shape, len: usize) -> Self {
        let mut held = Held {
            field: shape.field,
            block_size: shape.block_size,
            numbers: IndexSet::new(shape.block_size),
            count: 0,
            absent: vec![0; len],
            first_absent: 0,
            last_absent_word: 0,
        };
        held.clear();
        held
    }

    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.count = 0;
        self.first_absent = 0;
        self.last_absent_word = self.absent.len() / 8 - 1;
        let len = self.field.vector_len_bytes(self.block_size);
        self.absent[..len].fill(0xFF);
        self.field.mask_unused(&mut self.absent, self.block_size);
    }

    /// Adds an absent number.
    #[inline(always)]
    pub(super) fn insert(&mut self, index: usize) {
        self.count += 1;
        self.numbers.insert(index);
        self.field.set_coefficient(&mut self.absent, index, 0);
    }

    #[inline(always)]
    pub(super) fn contains(&self, index: usize) -> bool {
        self.numbers.contains(index)
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub(super) fn numbers(&self) -> &IndexSet {
        &self.numbers
    }

    /// As a row, all bits set for the coefficients of numbers that are not held.
    #[inline(always)]
    pub(super) fn absent(&self) -> &[u8] {
        &self.absent
    }

    /// Advances to the first absent number.
    #[inline(always)]
    pub(super) fn find_first_absent(&mut self) {
        self.first_absent = self.numbers.absent_from(self.first_absent);
    }

    /// Byte of a row before which all coefficients belong to held numbers, as of the last search
    /// for the first absent number.
    #[inline(always)]
    pub(super) fn first_absent_byte(&self) -> usize {
        match self.field {
            Field::Gf2 => self.first_absent / 8,
            Field::Gf16 => self.first_absent / 2,
            Field::Gf256 => self.first_absent,
        }
    }

    /// No word of the mask after this one has a bit set.
    #[inline(always)]
    pub(super) fn last_absent_word(&mut self) -> usize {
        let words = self.absent.as_chunks::<8>().0;
        while self.last_absent_word > 0 && words[self.last_absent_word] == [0; 8] {
            self.last_absent_word -= 1;
        }
        self.last_absent_word
    }
}
