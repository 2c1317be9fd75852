//! Front columns that no longer decide anything, and whose updates wait until several symbols have
//! come.

use alloc::vec::Vec;

use crate::kernel::{Backend, RowList};
use crate::rows::{Matrix, Shape};

/// Maximum number of symbols to wait for.
pub(super) const WAITING_MAX: usize = 16;

/// The waiting columns, and the symbols they wait for.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    shape: Shape,
    backend: Backend,
    /// Whether multipliers of payloads are needed at all.
    multiplying: bool,
    /// The waiting columns, and completed rows.
    fronts: Matrix,
    /// Pivots of symbols not yet applied to the columns.
    pivots: Vec<u16>,
    /// For each of these, its factors in the rows, and its offset in the columns.
    factors: Matrix,
    offsets: Matrix,
    offsets_listed: RowList,
}

impl Waiting {
    /// Initially without columns. They will wait for up to that many symbols; with 0, none ever
    /// waits.
    pub(super) fn new(
        shape: &Shape,
        backend: Backend,
        multiplying: bool,
        symbols_max: usize,
    ) -> Self {
        let fronts = if symbols_max > 0 && multiplying { shape.block_size } else { 0 };
        Waiting {
            shape: *shape,
            backend,
            multiplying,
            fronts: Matrix::with_backend(shape, backend, fronts),
            pivots: Vec::with_capacity(symbols_max),
            factors: Matrix::with_backend(shape, backend, symbols_max),
            offsets: Matrix::with_backend(shape, backend, symbols_max),
            offsets_listed: RowList::new(symbols_max),
        }
    }

    pub(super) fn clear(&mut self) {
        self.pivots.clear();
    }

    /// Whether columns ever wait.
    #[inline(always)]
    pub(super) fn is_used(&self) -> bool {
        self.pivots.capacity() > 0
    }

    /// Row `index`, whole if it was completed.
    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> &[u8] {
        self.fronts.row(index)
    }

    /// A symbol has become row `pivot`; the columns before byte `start` wait for it.
    pub(super) fn push(&mut self, pivot: usize, start: usize) {
        if self.multiplying {
            self.fronts.row_mut(pivot)[..start].fill(0);
        }
        self.pivots.push(pivot as u16);
    }

    /// Whether no further symbol can be waited for.
    pub(super) fn is_full(&self) -> bool {
        self.pivots.len() == WAITING_MAX
    }

    /// Copies the columns of some of `rows` that do not wait.
    pub(super) fn complete(&mut self, rows: &Matrix, of: impl Iterator<Item = usize>) {
        if self.is_used() && self.multiplying {
            let start = rows.start();
            of.for_each(|row| self.fronts.row_mut(row)[start..].copy_from_slice(rows.row(row)));
        }
    }

    /// The columns of `rows` before byte `next` wait from now on.
    pub(super) fn extend(&mut self, rows: &Matrix, written: &[u16], next: usize) {
        if !self.multiplying {
            return;
        }
        let start = rows.start();
        for &row in written {
            let from = &rows.row(row.into())[..next - start];
            self.fronts.row_mut(row.into())[start..next].copy_from_slice(from);
        }
    }

    /// Brings the columns up to date, in the written rows: `arrived` has the coding vectors of the
    /// payloads, and `unsolved` is the mask of their non-payload coefficients.
    pub(super) fn settle(
        &mut self,
        rows: &Matrix,
        written: &[u16],
        arrived: &Matrix,
        unsolved: &[u8],
    ) {
        if self.multiplying && rows.start() > 0 && !self.pivots.is_empty() {
            self.settle_rows(rows, written, arrived, unsolved);
        }
        self.pivots.clear();
    }

    fn settle_rows(&mut self, rows: &Matrix, written: &[u16], arrived: &Matrix, unsolved: &[u8]) {
        let (field, len, count) = (self.shape.field, rows.start(), self.pivots.len());
        for (&row, factors) in self.pivots.iter().zip(self.factors.rows_mut()) {
            let pairs = arrived.row(row.into()).iter().zip(unsolved);
            factors.iter_mut().zip(pairs).for_each(|(to, (byte, mask))| *to = byte & !mask);
        }
        let factors: [&[u8]; WAITING_MAX] =
            core::array::from_fn(|place| if place < count { self.factors.row(place) } else { &[] });
        let mut outs: [&mut [u8]; WAITING_MAX] = Default::default();
        outs.iter_mut().zip(self.offsets.rows_mut()).for_each(|(to, row)| *to = row);
        self.fronts.combine(&factors[..count], self.shape.block_size, &mut outs[..count], len);
        for (&row, offset) in self.pivots.iter().zip(outs) {
            let pairs = arrived.row(row.into()).iter().zip(unsolved);
            offset[..len].iter_mut().zip(pairs).for_each(|(to, (byte, mask))| *to ^= byte & mask);
        }
        self.offsets_listed.clear();
        (0..count).for_each(|place| self.offsets_listed.push(place));
        let mut offsets = self.offsets.grid();
        offsets.len = len;
        for &row in written {
            let row = usize::from(row);
            let mut multipliers = [0; WAITING_MAX];
            for (place, &index) in self.pivots.iter().enumerate() {
                let multiplier = rows.coefficient(row, index.into());
                field.set_coefficient(&mut multipliers, place, multiplier);
            }
            let row = &mut self.fronts.row_mut(row)[..len];
            self.backend.reduce(&offsets, &self.offsets_listed, &multipliers, row);
        }
    }
}
