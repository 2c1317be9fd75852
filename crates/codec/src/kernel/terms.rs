//! Input of the kernels: rows, with a factor for each output.

use core::mem::MaybeUninit;

use crate::{Field, MAX_BLOCK_SIZE};

/// Rows in the order they are read, with their factors for `M` outputs.
pub(super) trait Factored<const M: usize> {
    fn count(&self) -> usize;

    /// The offset of a row.
    ///
    /// # Safety
    /// `place` is below the count.
    unsafe fn offset(&self, place: usize) -> usize;

    /// The factor of a row for output `m`, which is below `M`.
    ///
    /// # Safety
    /// `place` is below the count.
    unsafe fn factor(&self, place: usize, m: usize) -> u8;
}

/// Every row at a multiple of `stride`, with factors read directly from coding vectors over
/// GF(2^8).
///
/// Each of the vectors present has `count` readable factors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Every {
    pub stride: usize,
    pub count: usize,
    pub vectors: [*const u8; 4],
}

impl<const M: usize> Factored<M> for Every {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    unsafe fn offset(&self, place: usize) -> usize {
        place * self.stride
    }

    #[inline(always)]
    unsafe fn factor(&self, place: usize, m: usize) -> u8 {
        // SAFETY: the vectors have that many factors.
        unsafe { *self.vectors[m].add(place) }
    }
}

impl<const M: usize> Factored<M> for [Term] {
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    unsafe fn offset(&self, place: usize) -> usize {
        // SAFETY: there is such a place.
        unsafe { self.get_unchecked(place).offset as usize }
    }

    #[inline(always)]
    unsafe fn factor(&self, place: usize, m: usize) -> u8 {
        // SAFETY: there is such a place.
        unsafe { self.get_unchecked(place).factors[m] }
    }
}

/// One row of a combination, with its factor for each output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub offset: u32,
    pub factors: [u8; 4],
}

/// The rows of a combination with nonzero factors.
pub(super) struct Terms {
    terms: [MaybeUninit<Term>; MAX_BLOCK_SIZE],
    count: usize,
}

impl Terms {
    pub fn new() -> Self {
        Self { terms: [const { MaybeUninit::uninit() }; MAX_BLOCK_SIZE], count: 0 }
    }

    #[inline(always)]
    fn put(&mut self, offset: u32, factors: [u8; 4]) {
        if let Some(term) = self.terms.get_mut(self.count) {
            term.write(Term { offset, factors });
            self.count += usize::from(u32::from_ne_bytes(factors) != 0);
        }
    }

    /// The terms of `count` rows at multiples of `stride`, with the `factors` of each. `is_zero`:
    /// the eight rows from there on have none. The number of terms stays in a register.
    #[inline(always)]
    fn put_rows(
        &mut self,
        (count, stride): (usize, u32),
        is_zero: impl Fn(usize) -> bool,
        factors: impl Fn(usize) -> [u8; 4],
    ) {
        let Some(terms) = self.terms.get_mut(..count) else {
            debug_assert!(false, "no block has more rows");
            return;
        };
        let (mut end, mut row) = (0, 0);
        while row < count {
            if row + 8 <= count && is_zero(row) {
                row += 8;
                continue;
            }
            for row in row..count.min(row + 8) {
                let (offset, factors) = (row as u32 * stride, factors(row));
                // SAFETY: no more terms than rows have been written.
                let term = unsafe { terms.get_unchecked_mut(end) };
                term.write(Term { offset, factors });
                end += usize::from(u32::from_ne_bytes(factors) != 0);
            }
            row += 8;
        }
        self.count = end;
    }

    fn clear(&mut self) {
        self.count = 0;
    }

    /// The terms of up to four coding vectors over rows at multiples of `stride`.
    pub fn fill(&mut self, field: Field, vectors: &[&[u8]], count: usize, stride: usize) {
        self.clear();
        let stride = stride as u32;
        match (field, vectors) {
            (Field::Gf2, &[a]) => self.fill_bits(a, count, stride),
            (Field::Gf16, &[a]) => self.fill_halves([a, &[], &[], &[]], count, stride),
            (Field::Gf16, &[a, b]) => self.fill_halves([a, b, &[], &[]], count, stride),
            (Field::Gf16, &[a, b, c, d]) => self.fill_halves([a, b, c, d], count, stride),
            (_, &[a]) => {
                // A window fills part of its ring.
                let a = &a[..count];
                let is_zero = |row: usize| a[row..row + 8] == [0; 8];
                self.put_rows((count, stride), is_zero, |row| [a[row], 0, 0, 0]);
            }
            (_, &[a, b]) => {
                let (a, b) = (&a[..count], &b[..count]);
                self.put_rows((count, stride), |_| false, |row| [a[row], b[row], 0, 0]);
            }
            (_, &[a, b, c, d]) => {
                let (a, b, c, d) = (&a[..count], &b[..count], &c[..count], &d[..count]);
                let factors = |row: usize| [a[row], b[row], c[row], d[row]];
                self.put_rows((count, stride), |_| false, factors);
            }
            _ => debug_assert!(false, "one, two or four outputs are made at a time"),
        }
    }

    /// The set bits, eight bytes at a time.
    fn fill_bits(&mut self, vector: &[u8], count: usize, stride: u32) {
        for (place, bytes) in (0..).zip(vector[..count.div_ceil(8)].chunks(8)) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let mut word = u64::from_le_bytes(word);
            let rows = count - place as usize * 64;
            if rows < 64 {
                word &= !(u64::MAX << rows);
            }
            while word != 0 {
                self.put((place * 64 + word.trailing_zeros()) * stride, [1, 0, 0, 0]);
                word &= word - 1;
            }
        }
    }

    /// Half bytes of vectors that are as long as the first one, or empty.
    fn fill_halves(&mut self, vectors: [&[u8]; 4], count: usize, stride: u32) {
        let factors = |place: usize| vectors.map(|v| v.get(place).copied().unwrap_or(0));
        for place in 0..count / 2 {
            let (factors, row) = (factors(place), place as u32 * 2);
            self.put(row * stride, factors.map(|byte| byte & 0xF));
            self.put((row + 1) * stride, factors.map(|byte| byte >> 4));
        }
        if count % 2 == 1 {
            let factors = factors(count / 2).map(|byte| byte & 0xF);
            self.put((count as u32 - 1) * stride, factors);
        }
    }

    pub fn as_slice(&self) -> &[Term] {
        let terms = &self.terms[..self.count];
        // SAFETY: the first `count` are written.
        unsafe { core::slice::from_raw_parts(terms.as_ptr().cast(), terms.len()) }
    }
}
