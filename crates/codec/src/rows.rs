//! Flat storage of the coders: numbered payloads, numbered coding vectors, and sets of numbers. All
//! of it is allocated once, or lent ([`storage`](crate::storage)).

use alloc::{vec, vec::Vec};

use crate::kernel::{Backend, Grid, Mirror, PADDING, Rows, RowsMut, group_size_any};
use crate::storage::{Aligned, Storage, Supply};
use crate::{CodecError, Field, MAX_BLOCK_SIZE, MAX_SYMBOL_SIZE};

/// Parameters shared by the three coders.
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

/// Bytes of a row that a batch processes at a time.
const STRIP_LEN: usize = 4 * PADDING;

/// The distance between rows of that length: an odd number of whole cache lines, so that the rows'
/// columns spread over the sets of a cache.
fn padded_stride(len: usize) -> usize {
    (len.div_ceil(PADDING) | 1) * PADDING
}

/// Sizes of a slot, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// Length of the payload.
    len: u16,
    /// All bytes from here on are zero: the longest payload there has been.
    used: u16,
}

/// Memory layout of payloads, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    stride: usize,
    /// Size of all slots; of all groups.
    slots_len: usize,
    mirror_len: usize,
}

impl Layout {
    /// Slots for a whole block; if `mirrored`, they can be interleaved. Without a backend, as a
    /// backend that interleaves lays them out.
    pub fn of_payloads(shape: &Shape, backend: Option<Backend>, mirrored: bool) -> Self {
        let group = backend.map_or(group_size_any(shape.field), |it| it.group_size(shape.field));
        let group = group.filter(|_| mirrored);
        Self::with_stride(shape, group, padded_stride(shape.symbol_size_max))
    }

    /// Slots for the coding vectors of a whole block, to be set and combined. Short ones that are
    /// never interleaved are packed, to save L1 cache; vectors that a batch reads whole, as wide as
    /// a strip, need not spread over its sets.
    pub fn of_vectors(shape: &Shape, backend: Backend) -> Self {
        let size = shape.field.vector_len_bytes(shape.block_size);
        let group = backend.group_size(shape.field);
        let close = size <= PADDING && group.is_none();
        let stride = match size {
            _ if close => size.next_power_of_two(),
            ..=STRIP_LEN => size.next_multiple_of(PADDING),
            _ => padded_stride(size),
        };
        Self::with_stride(shape, group, stride)
    }

    /// Slots of which groups of `group` are interleaved, if any.
    fn with_stride(shape: &Shape, group: Option<usize>, stride: usize) -> Self {
        let groups = group.map_or(0, |size| shape.block_size.next_multiple_of(size));
        // The last slot is read in whole cache lines.
        let beyond = if stride.is_multiple_of(PADDING) { 0 } else { PADDING };
        let slots_len = (shape.block_size * stride).next_multiple_of(PADDING) + beyond;
        Self { stride, slots_len, mirror_len: groups * stride }
    }

    /// Bytes of storage needed in total.
    pub fn storage_len(&self) -> usize {
        [self.slots_len, self.mirror_len].map(Aligned::<Vec<u8>>::taken).iter().sum()
    }
}

/// Payloads, one per slot, each with its own length, followed by zeros.
#[derive(Clone, Debug)]
pub(crate) struct Payloads<S: Storage = Vec<u8>> {
    field: Field,
    backend: Backend,
    stride: usize,
    bytes: Aligned<S>,
    sizes: Vec<Size>,
    /// Length of the shortest and of the longest payload since the last [`clear`](Self::clear).
    shortest: u16,
    longest: u16,
    /// Interleaved groups of slots, for a backend and field that use them.
    mirror: Aligned<S>,
    mirrored: usize,
}

impl<S: Storage> Payloads<S> {
    /// Slots for a whole block, with the given layout.
    pub fn new(
        shape: &Shape,
        backend: Backend,
        layout: Layout,
        supply: &mut impl Supply<Storage = S>,
    ) -> Self {
        Self {
            field: shape.field,
            backend,
            stride: layout.stride,
            bytes: Aligned::from_supply(layout.slots_len, supply),
            sizes: vec![Size::default(); shape.block_size],
            shortest: u16::MAX,
            longest: 0,
            mirror: Aligned::from_supply(layout.mirror_len, supply),
            mirrored: 0,
        }
    }

    #[inline]
    pub fn payload(&self, slot: usize) -> &[u8] {
        &self.bytes[slot * self.stride..][..self.len(slot)]
    }

    #[inline]
    pub fn len(&self, slot: usize) -> usize {
        self.sizes[slot].len.into()
    }

    /// Sets a slot to a payload no longer than the shape allows.
    #[inline(always)]
    pub fn set(&mut self, slot: usize, payload: &[u8]) {
        let start = slot * self.stride;
        self.bytes[start..start + payload.len()].copy_from_slice(payload);
        self.set_len(slot, payload.len());
    }

    /// A slot changes: only groups before it remain validly interleaved.
    #[inline(always)]
    fn touch(&mut self, slot: usize) {
        if self.mirrored > 0 {
            let group = self.backend.group_size(self.field).map_or(0, |size| slot / size);
            self.mirrored = self.mirrored.min(group);
        }
    }

    /// Sets the length of a slot's payload, and clears the rest of a longer one.
    #[inline(always)]
    fn set_len(&mut self, slot: usize, len: usize) {
        self.touch(slot);
        let size = Size { len: len as u16, used: len as u16 };
        let used = core::mem::replace(&mut self.sizes[slot], size).used.into();
        if len < used {
            self.bytes[slot * self.stride..][len..used].fill(0);
        }
        // Most payloads have the same length: then there is nothing to write.
        if (self.shortest, self.longest) != (size.len, size.len) {
            self.shortest = self.shortest.min(size.len);
            self.longest = self.longest.max(size.len);
        }
    }

    /// Marks all slots as unset.
    pub fn clear(&mut self) {
        (self.shortest, self.longest, self.mirrored) = (u16::MAX, 0, 0);
    }

    #[inline]
    pub fn copy(&mut self, to: usize, from: usize) {
        let (start, len) = (from * self.stride, self.len(from));
        self.bytes.copy_within(start..start + len, to * self.stride);
        self.set_len(to, len);
    }

    /// Adds `coefficient` times the payload of slot `from` to the one of slot `to`.
    pub fn add_scaled(&mut self, to: usize, coefficient: u8, from: usize) {
        self.touch(to);
        let (from_len, to_len) = (self.sizes[from].len, self.sizes[to].len);
        let len = usize::from(from_len).next_multiple_of(PADDING);
        let (out, row) = pair(&mut self.bytes, self.stride, to, from);
        self.backend.add_scaled(self.field, &mut out[..len], coefficient, &row[..len]);
        let used = self.sizes[to].used.max(from_len);
        self.sizes[to] = Size { len: to_len.max(from_len), used };
    }

    /// The common length of all payloads since the last [`clear`](Self::clear), if there is one.
    #[inline]
    pub fn common_len(&self) -> Option<usize> {
        (self.shortest == self.longest).then(|| self.longest.into())
    }

    /// Length of the longest payload since the last [`clear`](Self::clear).
    pub fn longest(&self) -> usize {
        self.longest.into()
    }

    /// Length of a combination: that of the longest of the first `count` payloads with a nonzero
    /// coefficient.
    pub fn combined_len(&self, vector: &[u8], count: usize) -> usize {
        if self.shortest == self.longest {
            let first = self.field.first_nonzero(vector, 0);
            return first.filter(|&slot| slot < count).map_or(0, |_| self.longest.into());
        }
        if self.field == Field::Gf256 {
            // Without branches: the compiler makes vectors of it.
            let lens = vector.iter().zip(&self.sizes[..count]);
            let longest = lens.map(|(&factor, size)| if factor == 0 { 0 } else { size.len });
            return longest.fold(0, u16::max).into();
        }
        (0..count)
            .filter(|&slot| self.field.coefficient(vector, slot) != 0)
            .map(|slot| self.len(slot))
            .max()
            .unwrap_or(0)
    }

    fn rows(&self, count: usize) -> Rows<'_> {
        Rows { bytes: &self.bytes, stride: self.stride, count }
    }

    /// Writes the first `len` bytes of combinations of the first `count` payloads: to `outs[i]` the
    /// one with coding vector `vectors[i]`.
    pub fn combine(&self, vectors: &[&[u8]], count: usize, outs: &mut [&mut [u8]], len: usize) {
        let rows = self.rows(count);
        let (groups, groups_max) = (self.mirrored, self.mirror_groups());
        let mirror = Mirror { bytes: &self.mirror, groups, groups_max };
        let mirror = (!self.mirror.is_empty()).then_some(mirror);
        self.backend.combine(self.field, rows, mirror, vectors, outs, len);
    }

    /// Writes the combination of the first `count` payloads with coding vector `vector` to all of
    /// `out`, and that of the rows `beside` to all of `beside_out`.
    pub fn combine_beside(
        &self,
        beside: &Payloads,
        (vector, count): (&[u8], usize),
        out: &mut [u8],
        beside_out: &mut [u8],
    ) {
        let both = (self.rows(count), beside.rows(count));
        let outs = (&mut *out, &mut *beside_out);
        if !self.backend.combine_beside(self.field, both, vector, outs) {
            let (len, beside_len) = (out.len(), beside_out.len());
            beside.combine(&[vector], count, &mut [beside_out], beside_len);
            self.combine(&[vector], count, &mut [out], len);
        }
    }

    /// Replaces some of the first `count` payloads, all of `len` bytes, by combinations of them:
    /// slot `targets[i]` by the one with coding vector `vectors[i]`. Returns whether it did so:
    /// over GF(2^8), for one, two or four of them.
    pub fn combine_in_place(
        &mut self,
        vectors: &[&[u8]],
        count: usize,
        targets: &[usize],
        len: usize,
    ) -> bool {
        let rows = RowsMut { bytes: &mut self.bytes, stride: self.stride, count };
        self.field == Field::Gf256 && self.backend.combine_in_place(rows, vectors, targets, len)
    }

    /// Interleaves the remaining groups that the first `count` slots fill; all if these are all
    /// slots.
    pub fn mirror_complete(&mut self, count: usize) {
        if count == self.sizes.len() {
            self.mirror_all();
        } else if let Some(size) = self.backend.group_size(self.field) {
            while (self.mirrored + 1) * size <= count && !self.mirror.is_empty() {
                self.mirror_group(size);
            }
        }
    }

    /// Interleaves the remaining groups of all slots.
    pub fn mirror_all(&mut self) {
        if let Some(size) = self.backend.group_size(self.field) {
            while self.mirrored * size < self.sizes.len() && !self.mirror.is_empty() {
                self.mirror_group(size);
            }
        }
    }

    fn mirror_groups(&self) -> usize {
        self.backend.group_size(self.field).map_or(0, |size| self.sizes.len().div_ceil(size))
    }

    fn mirror_group(&mut self, size: usize) {
        let first = self.mirrored * size;
        let count = size.min(self.sizes.len() - first);
        let (bytes, stride) = (&self.bytes[first * self.stride..], self.stride);
        let (group, groups) = (self.mirrored, self.mirror_groups());
        let rows = Rows { bytes, stride, count };
        self.backend.interleave(self.field, rows, &mut self.mirror, group, groups);
        self.mirrored += 1;
    }

    /// The slots in `wanted`, whole and writable, in ascending order; the caller reports their new
    /// lengths with [`set_written`](Self::set_written).
    pub fn slots_mut(&mut self, wanted: &IndexSet) -> impl Iterator<Item = (usize, &mut [u8])> {
        let mut slots = self.bytes.chunks_exact_mut(self.stride);
        let mut next = 0;
        wanted.iter().filter_map(move |slot| {
            let skipped = slot - core::mem::replace(&mut next, slot + 1);
            slots.nth(skipped).map(|bytes| (slot, bytes))
        })
    }

    /// A slot has been written: `written` bytes, of which `len` are the payload and the rest zeros.
    pub fn set_written(&mut self, slot: usize, len: usize, written: usize) {
        self.sizes[slot].used = self.sizes[slot].used.max(written as u16);
        self.set_len(slot, len);
    }
}

/// Coding vectors over the whole block, one per row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    field: Field,
    backend: Backend,
    /// Length of rows, whole cache lines, and their distance.
    len: usize,
    stride: usize,
    /// Bytes removed from the front of rows.
    start: usize,
    bytes: Aligned,
}

impl Matrix {
    pub fn with_backend(shape: &Shape, backend: Backend, rows: usize) -> Self {
        let vector_len = shape.field.vector_len_bytes(shape.block_size);
        let (len, stride) = (vector_len.next_multiple_of(PADDING), padded_stride(vector_len));
        let bytes = Aligned::new(rows * stride);
        Self { field: shape.field, backend, len, stride, start: 0, bytes }
    }

    #[inline(always)]
    pub fn row(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.stride..][..self.len - self.start]
    }

    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.bytes[row * self.stride..][..self.len - self.start]
    }

    /// Removes the bytes before `start`, a whole number of cache lines, from all rows, and packs
    /// them closer.
    pub fn narrow(&mut self, start: usize) {
        let (lost, len) = (start - self.start, self.len - start);
        let rows = self.bytes.len() / self.stride.max(1);
        let stride = padded_stride(len).min(self.stride);
        for row in 0..rows {
            let from = row * self.stride + lost;
            self.bytes.copy_within(from..from + len, row * stride);
        }
        (self.start, self.stride) = (start, stride);
    }

    /// Restores the full row width; the contents are lost.
    pub fn widen(&mut self) {
        (self.start, self.stride) = (0, padded_stride(self.len));
    }

    /// The first byte present in rows.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The index of a coefficient in the present part of a row.
    #[inline]
    fn place(&self, index: usize) -> usize {
        index - self.start * 8 / self.field.order().ilog2() as usize
    }

    #[inline]
    pub fn set_coefficient(&mut self, row: usize, index: usize, value: u8) {
        let (field, place) = (self.field, self.place(index));
        field.set_coefficient(self.row_mut(row), place, value);
    }

    /// The rows, in their order.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let len = self.len;
        self.bytes.chunks_exact_mut(self.stride).map(move |row| &mut row[..len])
    }

    /// Two different rows, in ascending order.
    pub fn two_rows(&mut self, first: usize, second: usize) -> (&mut [u8], &mut [u8]) {
        let (head, tail) = self.bytes.split_at_mut(second * self.stride);
        (&mut head[first * self.stride..][..self.len], &mut tail[..self.len])
    }

    /// Length of rows in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The whole matrix, for elimination.
    #[inline]
    pub fn grid(&mut self) -> Grid<'_> {
        let Self { field, len, stride, start, .. } = *self;
        Grid { field, bytes: &mut self.bytes, stride, len, start }
    }

    /// Sets a row from a received vector over the first `count` symbols.
    #[inline]
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

    #[inline]
    pub fn copy(&mut self, to: usize, from: usize) {
        let start = from * self.stride;
        self.bytes.copy_within(start..start + self.len, to * self.stride);
    }

    #[inline]
    pub fn coefficient(&self, row: usize, index: usize) -> u8 {
        self.field.coefficient(self.row(row), self.place(index))
    }

    pub fn clear_coefficient(&mut self, row: usize, index: usize) {
        let field = self.field;
        field.set_coefficient(self.row_mut(row), index, 0);
    }

    pub fn scale(&mut self, row: usize, coefficient: u8) {
        let (field, backend) = (self.field, self.backend);
        backend.scale(field, self.row_mut(row), coefficient);
    }

    /// Adds `coefficient` times row `from` to row `to`.
    pub fn add_scaled(&mut self, to: usize, coefficient: u8, from: usize) {
        let (out, row) = pair(&mut self.bytes, self.stride, to, from);
        self.backend.add_scaled(self.field, out, coefficient, row);
    }

    /// Writes combinations of the first `count` rows: to `outs[i]` the first `len` bytes of the one
    /// with coding vector `vectors[i]`.
    pub fn combine(&self, vectors: &[&[u8]], count: usize, outs: &mut [&mut [u8]], len: usize) {
        let rows = Rows { bytes: &self.bytes, stride: self.stride, count };
        self.backend.combine(self.field, rows, None, vectors, outs, len);
    }
}

/// Two different rows of a flat buffer, the first of them writable.
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
    /// Number of words in use: small blocks should not pay for large ones.
    used: usize,
}

impl IndexSet {
    /// An empty set of indices of up to `count` symbols.
    pub fn new(count: usize) -> Self {
        Self { words: [0; MAX_BLOCK_SIZE / 64], used: count.div_ceil(64) }
    }

    pub fn clear(&mut self) {
        self.words.iter_mut().take(self.used).for_each(|word| *word = 0);
    }

    #[inline]
    pub fn insert(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }

    /// Whether the set has this index; any number is allowed.
    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| (word >> (index % 64)) & 1 == 1)
    }

    /// The first index at or after `start` that is not in the set.
    #[inline]
    pub fn absent_from(&self, start: usize) -> usize {
        let mut index = start;
        while let Some(word) = self.words.get(index / 64) {
            let ones = (word >> (index % 64)).trailing_ones() as usize;
            index += ones;
            if ones == 0 || !index.is_multiple_of(64) {
                break;
            }
        }
        index
    }

    #[inline]
    pub fn remove(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    /// The words that may have a bit set.
    #[inline]
    fn used_words(&self) -> &[u64] {
        self.words.get(..self.used).unwrap_or(&self.words)
    }

    /// Takes the set, leaving it empty.
    #[inline]
    pub fn take(&mut self) -> Self {
        let mut taken = Self { words: [0; MAX_BLOCK_SIZE / 64], used: self.used };
        // Word by word: vector loads of recently written words would stall.
        for (to, from) in taken.words.iter_mut().zip(&mut self.words).take(self.used) {
            *to = core::mem::take(from);
        }
        taken
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.used_words().iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The indices, in ascending order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.used_words().iter().enumerate().flat_map(|(place, &word)| indices_in(place, word))
    }

    /// Writes the set without `other` as a bitmap, least significant bit first, as far as `out`
    /// reaches.
    pub fn write_bitmap_without(&self, other: &Self, out: &mut [u8]) {
        out.fill(0);
        for (out, (word, other)) in out.chunks_mut(8).zip(self.words.iter().zip(&other.words)) {
            out.copy_from_slice(&(word & !other).to_le_bytes()[..out.len()]);
        }
    }
}

#[inline]
fn indices_in(place: usize, mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(place * 64 + bit)
    })
}
