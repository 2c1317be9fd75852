//! The equations of a window decoder: payloads, and what they are combinations of.
//!
//! Each symbol of the window has a slot. A symbol is either *known*, with its payload in its slot;
//! or the *pivot* of a row; or neither. For each row, one coded symbol is stored unchanged in the
//! slot of a pivot, though not necessarily its own. The pivot's source symbol is then
//!
//! ```text
//! x_p = sum of R[p][i] * x_i, over known symbols i
//!     + sum of R[p][q] * coded symbol q, over pivots q
//!     + sum of R[p][j] * x_j, over all other symbols j
//! ```
//!
//! and a row of coefficients around the ring has room for all three: Gauss-Jordan elimination in
//! place, with the multipliers where the eliminated columns were. It follows that:
//!
//! - A symbol is dependent, or a row determined, if nothing is left in the third part: this is
//!   known without touching any payload.
//! - An arriving source symbol changes no row: its column belongs to the first part from then on.
//! - Newly determined symbols are solved for together, each as one combination of payloads, in
//!   batches of the kernels' preferred size.
//!
//! A symbol that was solved for replaces a coded symbol in the other rows. Symbols are subtracted
//! from the coded symbols held before they leave the window: the received vectors, and which
//! symbols have already been subtracted, determine how.

use alloc::{vec, vec::Vec};

use crate::kernel::{Backend, OUTPUTS_MAX, PADDING, Pivot, RowList};
use crate::rows::{IndexSet, Layout, Matrix, Payloads, Shape};
use crate::storage::{Storage, Supply};
use crate::window::ring::Ring;
use crate::{Field, MAX_BLOCK_SIZE, field};

/// Maximum number of symbols solved for together, which determines the memory needed.
const SOLVED_MAX: usize = 64;

/// See the module documentation. All indices are slots.
#[derive(Clone, Debug)]
pub(super) struct Equations<S: Storage = Vec<u8>> {
    field: Field,
    ring: Ring,
    backend: Backend,
    /// Rows, each in the slot of its pivot.
    rows: Matrix,
    /// Coding vectors of the coded symbols held, by their slots.
    arrived: Matrix,
    /// An arriving vector; its remainder.
    scratch: Matrix,
    /// Vectors of what is subtracted from coded symbols.
    folds: Matrix,
    payloads: Payloads<S>,
    solved: Payloads<S>,
    pivots: RowList,
    /// Places in this list of rows that may be determined.
    found: Vec<u16>,
    /// Pivots whose symbols became known with the last arrival.
    determined: Vec<u16>,
    /// As a row, all bits set for symbols that are neither known nor pivots, including those
    /// outside the window.
    unheld: Vec<u8>,
    /// The same for pivots.
    pivotal: Vec<u8>,
}

const ARRIVING: usize = 0;
const LEFT: usize = 1;

/// Bytes of storage that payloads take.
pub(super) fn storage_len(shape: &Shape, backend: Option<Backend>) -> usize {
    layouts(shape, backend).iter().map(Layout::storage_len).sum()
}

/// Layouts of what is held, and of what is solved for.
fn layouts(shape: &Shape, backend: Option<Backend>) -> [Layout; 2] {
    [*shape, solved_shape(shape)].map(|shape| Layout::of_payloads(&shape, backend, false))
}

fn solved_shape(shape: &Shape) -> Shape {
    Shape { block_size: shape.block_size.min(SOLVED_MAX), ..*shape }
}

impl<S: Storage> Equations<S> {
    /// For symbols of that shape, whose block is the ring.
    pub fn new(
        shape: &Shape,
        ring: Ring,
        backend: Backend,
        supply: &mut impl Supply<Storage = S>,
    ) -> Self {
        let slots = ring.slots();
        let rows = Matrix::with_backend(shape, backend, slots);
        let solved = solved_shape(shape);
        let [of_payloads, of_solved] = layouts(shape, Some(backend));
        let len = rows.len();
        let mut equations = Self {
            field: shape.field,
            ring,
            backend,
            rows,
            arrived: Matrix::with_backend(shape, backend, slots),
            scratch: Matrix::with_backend(shape, backend, 2),
            folds: Matrix::with_backend(shape, backend, OUTPUTS_MAX),
            payloads: Payloads::new(shape, backend, of_payloads, supply),
            solved: Payloads::new(&solved, backend, of_solved, supply),
            pivots: RowList::new(slots),
            found: vec![0; slots],
            determined: Vec::with_capacity(slots),
            unheld: vec![0; len],
            pivotal: vec![0; len],
        };
        equations.reset();
        equations
    }

    /// Clears all knowledge.
    pub fn reset(&mut self) {
        self.payloads.clear();
        self.forget_rows();
        let len = self.field.vector_len_bytes(self.ring.slots());
        self.unheld[..len].fill(0xFF);
    }

    /// Pivots whose symbols became known with the last arrival, except the arriving symbol itself.
    pub fn determined(&self) -> &[u16] {
        &self.determined
    }

    pub fn payload(&self, slot: usize) -> &[u8] {
        self.payloads.payload(slot)
    }

    /// The coding vector, around the ring, of the coded symbol in a pivot's slot.
    pub fn arrived(&self, slot: usize) -> &[u8] {
        self.arrived.row(slot)
    }

    /// Length of the combination of payloads in a row.
    pub fn row_len(&self, row: usize) -> usize {
        let mut held = [0; MAX_BLOCK_SIZE];
        for ((to, byte), mask) in held.iter_mut().zip(self.rows.row(row)).zip(&self.unheld) {
            *to = byte & !mask;
        }
        self.combined_len(&held)
    }

    /// Distance from slot `start` to the first symbol of a row that is neither known nor a pivot.
    pub fn first_left(&self, row: usize, start: usize) -> Option<usize> {
        self.ring.first_common(self.field, self.rows.row(row), &self.unheld, start)
    }

    /// Adds a source symbol that is neither known nor a pivot.
    #[inline]
    pub fn add_source(&mut self, slot: usize, symbol: &[u8]) {
        self.determined.clear();
        self.payloads.set(slot, symbol);
        self.field.set_coefficient(&mut self.unheld, slot, 0);
        if !self.pivots.all().is_empty() {
            self.note_determined(|rows, row| rows.coefficient(row, slot) != 0);
            self.solve();
        }
    }

    /// Adds a coded symbol, whose vector around the ring `write` writes. The window begins with
    /// slot `start`. Returns the new pivot, the first possible one, if it is innovative.
    pub fn add_coded(
        &mut self,
        start: usize,
        write: impl FnOnce(&mut [u8]),
        payload: &[u8],
    ) -> Option<usize> {
        self.determined.clear();
        write(self.scratch.row_mut(ARRIVING));
        let (arriving, left) = self.scratch.two_rows(ARRIVING, LEFT);
        for ((left, arriving), mask) in left.iter_mut().zip(&*arriving).zip(&self.pivotal) {
            *left = arriving & !mask;
        }
        if !self.pivots.all().is_empty() {
            self.backend.reduce(&self.rows.grid(), &self.pivots, arriving, left);
        }
        let distance = self.ring.first_common(self.field, left, &self.unheld, start)?;
        let pivot = self.ring.after(start, distance);
        self.payloads.set(pivot, payload);
        self.arrived.row_mut(pivot).copy_from_slice(arriving);
        let found = self.eliminate(pivot);
        self.set_pivotal(pivot, true);
        self.pivots.push(pivot);
        self.note_found(found);
        self.solve();
        Some(pivot)
    }

    /// Adds the source symbol of a pivot that is not known. The pivot's row then covers the next
    /// symbol left in it, which becomes a pivot in its place and is returned; the window begins
    /// with slot `start`.
    pub fn replace_by_source(&mut self, slot: usize, symbol: &[u8], start: usize) -> Option<usize> {
        self.determined.clear();
        let field = self.field;
        let pivot = self.ring.after(start, self.first_left(slot, start)?);
        // The coded symbol makes room for the source symbol.
        self.payloads.copy(pivot, slot);
        self.arrived.copy(pivot, slot);
        self.payloads.set(slot, symbol);
        let inverse = field.invert(self.rows.coefficient(slot, pivot));
        let multiplier = self.rows.coefficient(slot, slot);
        self.rows.copy(pivot, slot);
        self.rows.set_coefficient(pivot, pivot, multiplier);
        self.rows.set_coefficient(pivot, slot, 1);
        self.rows.scale(pivot, inverse);
        for &row in self.pivots.all().iter().filter(|&&row| usize::from(row) != slot) {
            let row = usize::from(row);
            let factor = self.rows.coefficient(row, pivot);
            let multiplier = self.rows.coefficient(row, slot);
            self.rows.set_coefficient(row, pivot, multiplier);
            self.rows.set_coefficient(row, slot, 0);
            if factor != 0 {
                self.rows.add_scaled(row, factor, pivot);
            }
        }
        self.set_pivotal(slot, false);
        self.keep_pivotal();
        self.set_pivotal(pivot, true);
        self.pivots.push(pivot);
        self.note_determined(|_, _| true);
        self.solve();
        Some(pivot)
    }

    /// Drops the first `count` symbols of the window, from slot `start` on. Rows with pivots there
    /// are dropped.
    pub fn let_go(&mut self, start: usize, count: usize) {
        if !self.pivots.all().is_empty() {
            self.take_out(start, count);
        }
        let whole = (self.field.order() - 1) as u8;
        for distance in 0..count {
            let slot = self.ring.after(start, distance);
            self.field.set_coefficient(&mut self.unheld, slot, whole);
        }
    }

    /// The combinations of rows, over known symbols and pivots only, given by `factors`: their
    /// coding vectors, and the factors with which to combine the available payloads.
    pub fn combine_rows<const N: usize, const L: usize>(
        &self,
        factors: &[[u8; L]; N],
        count: usize,
        vectors: &mut [[u8; L]; N],
        of_payloads: &mut [[u8; L]; N],
    ) {
        let mut of_rows = *factors;
        for of_rows in &mut of_rows[..count] {
            of_rows.iter_mut().zip(&self.pivotal).for_each(|(factor, mask)| *factor &= mask);
        }
        let len = self.field.vector_len_bytes(self.ring.slots());
        let mut sums = vectors.each_mut().map(|vector| &mut vector[..]);
        let of_rows = of_rows.each_ref().map(|factors| &factors[..]);
        self.rows.combine(&of_rows[..count], self.ring.slots(), &mut sums[..count], len);
        let each = vectors.iter_mut().zip(of_payloads).zip(factors).take(count);
        for ((vector, of_payloads), factors) in each {
            let masks = self.unheld.iter().zip(&self.pivotal);
            let bytes = vector.iter_mut().zip(of_payloads).zip(factors).zip(masks);
            for (((vector, of_payloads), factor), (unheld, pivotal)) in bytes.take(len) {
                *of_payloads = (*vector & !unheld) ^ (factor & !pivotal);
                *vector = (*vector & unheld) ^ factor;
            }
        }
    }

    /// Writes combinations of payloads: `len` bytes of each.
    pub fn combine(&self, factors: &[&[u8]], outs: &mut [&mut [u8]], len: usize) {
        self.payloads.combine(factors, self.ring.slots(), outs, len);
    }

    /// Length of a combination of payloads.
    pub fn combined_len(&self, factors: &[u8]) -> usize {
        self.payloads.combined_len(factors, self.ring.slots())
    }

    /// Turns the remainder of the arriving vector into the row of that pivot, and substitutes it in
    /// the other rows. Returns how many of them may be determined now.
    fn eliminate(&mut self, index: usize) -> usize {
        let field = self.field;
        field.set_coefficient(&mut self.unheld, index, 0);
        // The coded symbol itself has the factor that its source symbol had. The other rows already
        // have a coefficient where their multiplier of it belongs: hence one more.
        let left = self.scratch.row_mut(LEFT);
        let own = field.coefficient(left, index);
        let inverse = field.invert(own);
        field.set_coefficient(left, index, own ^ 1);
        let words = self.unheld.as_chunks::<8>().0;
        let place = words.iter().rposition(|word| *word != [0; 8]).unwrap_or(0);
        let witness = (place * 8, u64::from_le_bytes(words[place]));
        let pivot = Pivot { index, inverse, witness };
        let mut grid = self.rows.grid();
        let found = self.backend.eliminate(&mut grid, &self.pivots, pivot, left, &mut self.found);
        self.rows.set_coefficient(index, index, inverse);
        found
    }

    fn set_pivotal(&mut self, slot: usize, is_pivot: bool) {
        let whole = if is_pivot { (self.field.order() - 1) as u8 } else { 0 };
        self.field.set_coefficient(&mut self.pivotal, slot, whole);
        self.field.set_coefficient(&mut self.unheld, slot, 0);
    }

    fn is_pivot(&self, row: u16) -> bool {
        self.field.coefficient(&self.pivotal, row.into()) != 0
    }

    /// Removes rows that are no longer pivots from the list.
    fn keep_pivotal(&mut self) {
        let count = self.pivots.all().len();
        self.found[..count].copy_from_slice(self.pivots.all());
        self.pivots.clear();
        for place in 0..count {
            if self.is_pivot(self.found[place]) {
                self.pivots.push(self.found[place].into());
            }
        }
    }

    /// Notes the rows found by elimination, and the newest one, as possibly determined.
    fn note_found(&mut self, found: usize) {
        let last = self.pivots.all().len() - 1;
        let places = self.found[..found].iter().map(|&place| usize::from(place)).chain([last]);
        for row in places.map(|place| self.pivots.all()[place]) {
            if !any_common(self.rows.row(row.into()), &self.unheld) {
                self.determined.push(row);
            }
        }
    }

    /// Collects the determined rows among those that may have changed.
    fn note_determined(&mut self, changed: impl Fn(&Matrix, usize) -> bool) {
        for &row in self.pivots.all() {
            let bytes = self.rows.row(row.into());
            if changed(&self.rows, row.into()) && !any_common(bytes, &self.unheld) {
                self.determined.push(row);
            }
        }
    }

    /// Solves for the determined symbols, which become known.
    fn solve(&mut self) {
        let mut done = 0;
        while done < self.determined.len() {
            let end = self.determined.len().min(done + SOLVED_MAX.min(self.ring.slots()));
            self.solve_some(done, end);
            done = end;
        }
    }

    /// Solves for some of them, by their places in the list of determined ones.
    fn solve_some(&mut self, from: usize, to: usize) {
        let slots = self.ring.slots();
        let pivots = &self.determined[from..to];
        let own_len = |row: u16| self.payloads.combined_len(self.rows.row(row.into()), slots);
        let len = pivots.iter().map(|&row| own_len(row)).max().unwrap_or(0);
        let wanted = first(pivots.len());
        let mut outs = self.solved.slots_mut(&wanted);
        for pivots in pivots.chunks(OUTPUTS_MAX) {
            let mut vectors = [&[][..]; OUTPUTS_MAX];
            let mut tile: [&mut [u8]; OUTPUTS_MAX] = Default::default();
            for (place, &row) in pivots.iter().enumerate() {
                vectors[place] = self.rows.row(row.into());
                if let Some((_, out)) = outs.next() {
                    tile[place] = out;
                }
            }
            let count = pivots.len();
            self.payloads.combine(&vectors[..count], slots, &mut tile[..count], len);
        }
        drop(outs);
        for (place, &row) in pivots.iter().enumerate() {
            self.solved.set_written(place, own_len(row), len);
        }
        if pivots.len() == self.pivots.all().len() {
            self.forget_rows();
        } else {
            (from..to).for_each(|place| self.exchange(self.determined[place].into()));
            self.keep_pivotal();
        }
        for (place, &row) in self.determined[from..to].iter().enumerate() {
            self.payloads.set(row.into(), self.solved.payload(place));
        }
    }

    /// Marks the symbol of a determined row as known. In the other rows it replaces one of the
    /// coded symbols it is computed from, which is no longer needed.
    fn exchange(&mut self, pivot: usize) {
        let field = self.field;
        let gone = if self.rows.coefficient(pivot, pivot) != 0 {
            pivot
        } else {
            let row = self.rows.row(pivot);
            // One exists: an innovative symbol is not a combination of known symbols.
            self.ring.first_common(field, row, &self.pivotal, 0).unwrap_or(pivot)
        };
        let inverse = field.invert(self.rows.coefficient(pivot, gone));
        self.rows.scale(pivot, inverse);
        for place in 0..self.pivots.all().len() {
            let row = self.pivots.all()[place];
            if usize::from(row) == pivot || !self.is_pivot(row) {
                continue;
            }
            let row = usize::from(row);
            let factor = self.rows.coefficient(row, gone);
            if factor != 0 {
                self.rows.add_scaled(row, factor, pivot);
            }
            if gone != pivot {
                let moved = self.rows.coefficient(row, pivot);
                self.rows.set_coefficient(row, gone, moved);
            }
            let factor = field::multiply_byte(field.order(), inverse, factor);
            self.rows.set_coefficient(row, pivot, factor);
        }
        self.vacate(pivot, gone);
    }

    /// Frees a slot of its coded symbol: its own, if it is not `gone`, moves to the place of the
    /// one that is gone.
    fn vacate(&mut self, pivot: usize, gone: usize) {
        if gone != pivot {
            self.payloads.copy(gone, pivot);
            self.arrived.copy(gone, pivot);
        }
        self.set_pivotal(pivot, false);
    }

    fn forget_rows(&mut self) {
        self.pivots.clear();
        self.pivotal.fill(0);
    }

    /// Subtracts the symbols of a run at the beginning of the window from the coded symbols held,
    /// and drops rows with pivots there.
    fn take_out(&mut self, start: usize, count: usize) {
        let (ring, field) = (self.ring, self.field);
        let is_gone = |row: u16| ring.distance(start, row.into()) < count;
        if self.pivots.all().iter().all(|&row| is_gone(row)) {
            self.forget_rows();
            return;
        }
        while let Some(&row) = self.pivots.all().iter().find(|&&row| is_gone(row)) {
            self.drop_row(row.into());
        }
        let mut gone = (0..count).map(|distance| ring.after(start, distance));
        let is_known = |slot| field.coefficient(&self.unheld, slot) == 0;
        let is_used = |&row: &u16, slot| self.arrived.coefficient(row.into(), slot) != 0;
        if gone.any(|slot| is_known(slot) && self.pivots.all().iter().any(|row| is_used(row, slot)))
        {
            self.fold();
        }
        for &row in self.pivots.all() {
            for distance in 0..count {
                self.arrived.clear_coefficient(row.into(), ring.after(start, distance));
            }
        }
    }

    /// Gives up the symbol of a row: it is eliminated from all coded symbols but one, which is
    /// dropped with it. Other rows keep their meaning.
    fn drop_row(&mut self, pivot: usize) {
        let field = self.field;
        let has = |row: &u16| self.arrived.coefficient((*row).into(), pivot) != 0;
        // Rows are independent, so at least one coded symbol contains the symbol.
        let own = pivot as u16;
        let found = if has(&own) { Some(own) } else { self.pivots.all().iter().copied().find(has) };
        let gone = usize::from(found.unwrap_or(own));
        let inverse = field.invert(self.arrived.coefficient(gone, pivot));
        for &coded in self.pivots.all().iter().filter(|&&coded| usize::from(coded) != gone) {
            let coded = usize::from(coded);
            let factor = self.arrived.coefficient(coded, pivot);
            let factor = field::multiply_byte(field.order(), factor, inverse);
            if factor != 0 {
                self.payloads.add_scaled(coded, factor, gone);
                self.arrived.add_scaled(coded, factor, gone);
            }
        }
        for &row in self.pivots.all().iter().filter(|&&row| usize::from(row) != pivot) {
            let row = usize::from(row);
            if gone != pivot {
                let moved = self.rows.coefficient(row, pivot);
                self.rows.set_coefficient(row, gone, moved);
            }
            self.rows.set_coefficient(row, pivot, 0);
        }
        self.vacate(pivot, gone);
        self.keep_pivotal();
    }

    /// Subtracts all known symbols from the coded symbols held. Most coded symbols need this only
    /// once: what becomes known later is seldom in them.
    fn fold(&mut self) {
        let slots = self.ring.slots();
        for pivots in self.pivots.all().chunks(OUTPUTS_MAX.min(slots)) {
            let (field, count) = (self.field, pivots.len());
            for (&row, vector) in pivots.iter().zip(self.folds.rows_mut()) {
                let masks = self.unheld.iter().zip(&self.pivotal);
                let bytes = vector.iter_mut().zip(self.arrived.row(row.into())).zip(masks);
                bytes.for_each(|((to, byte), (unheld, pivotal))| *to = byte & !(unheld | pivotal));
                field.set_coefficient(vector, row.into(), 1);
            }
            let vectors: [&[u8]; OUTPUTS_MAX] = core::array::from_fn(|place| self.folds.row(place));
            let vectors = &vectors[..count];
            let own_len = |vector| self.payloads.combined_len(vector, slots);
            let len = vectors.iter().map(|vector| own_len(vector)).max().unwrap_or(0);
            let mut outs: [&mut [u8]; OUTPUTS_MAX] = Default::default();
            let wanted = first(count);
            let places = self.solved.slots_mut(&wanted);
            outs.iter_mut().zip(places).for_each(|(to, (_, out))| *to = out);
            self.payloads.combine(vectors, slots, &mut outs[..count], len);
            for (place, (&row, vector)) in pivots.iter().zip(vectors).enumerate() {
                let own = self.payloads.combined_len(vector, slots);
                self.solved.set_written(place, own, len);
                self.payloads.set(row.into(), self.solved.payload(place));
            }
        }
        for &row in self.pivots.all() {
            for matrix in [&mut self.rows, &mut self.arrived] {
                let masks = self.unheld.iter().zip(&self.pivotal);
                let bytes = matrix.row_mut(row.into()).iter_mut().zip(masks);
                bytes.for_each(|(byte, (unheld, pivotal))| *byte &= unheld | pivotal);
            }
        }
    }
}

/// The first `count` numbers.
fn first(count: usize) -> IndexSet {
    let mut numbers = IndexSet::new(count);
    (0..count).for_each(|number| numbers.insert(number));
    numbers
}

/// Whether two rows have a bit in common.
fn any_common(a: &[u8], b: &[u8]) -> bool {
    debug_assert!(a.len() == b.len() && a.len().is_multiple_of(PADDING));
    // A branch per word would cost more than the words.
    let (a, b) = (a.as_chunks::<PADDING>().0, b.as_chunks::<PADDING>().0);
    a.iter().zip(b).any(|(a, b)| a.iter().zip(b).fold(0, |common, (a, b)| common | (a & b)) != 0)
}
