//! Slots around a ring: sets of slots, and coding vectors laid out around it.

use crate::Field;
use crate::window::MAX_WINDOW_SIZE;

/// The slots of a window. There are a few more than symbols in the window, so that a coding vector
/// wraps around at a byte boundary, whatever the size of a coefficient.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    slots: usize,
}

impl Ring {
    pub fn new(window_size: usize) -> Self {
        Self { slots: window_size.next_multiple_of(8) }
    }

    pub fn slots(self) -> usize {
        self.slots
    }

    pub fn slot(self, id: u64) -> usize {
        (id % self.slots as u64) as usize
    }

    /// The slot at a distance after another one, at most once around.
    #[inline]
    pub fn after(self, slot: usize, distance: usize) -> usize {
        let sum = slot + distance;
        if sum < self.slots { sum } else { sum - self.slots }
    }

    /// Distance from one slot forward to another.
    #[inline]
    pub fn distance(self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots - from }
    }

    /// Writes the vector of the run from slot `first` on around the ring, with unused bits zero;
    /// everything outside the run becomes zero.
    pub fn wrap_vector(self, field: Field, vector: &[u8], first: usize, out: &mut [u8]) {
        out.fill(0);
        let (len, start, shift) = self.position(field, first);
        let before = (len - start).min(vector.len());
        if shift == 0 {
            out[start..start + before].copy_from_slice(&vector[..before]);
            out[..vector.len() - before].copy_from_slice(&vector[before..]);
            return;
        }
        let mut place = start;
        for byte in vector {
            out[place] |= byte << shift;
            place = if place + 1 == len { 0 } else { place + 1 };
            out[place] |= byte >> (8 - shift);
        }
    }

    /// The inverse: writes the vector of the run from slot `first` on. Coefficients after the run
    /// show in the unused bits of its last byte.
    pub fn unwrap_vector(self, field: Field, around: &[u8], first: usize, out: &mut [u8]) {
        let (len, start, shift) = self.position(field, first);
        let before = (len - start).min(out.len());
        if shift == 0 {
            let rest = out.len() - before;
            out[..before].copy_from_slice(&around[start..start + before]);
            out[before..].copy_from_slice(&around[..rest]);
            return;
        }
        let mut place = start;
        for byte in out {
            *byte = around[place] >> shift;
            place = if place + 1 == len { 0 } else { place + 1 };
            *byte |= around[place] << (8 - shift);
        }
    }

    /// Distance from slot `start` to the first nonzero coefficient of `row` where `mask` is set.
    /// Both are padded with zeros to whole words.
    pub fn first_common(
        self,
        field: Field,
        row: &[u8],
        mask: &[u8],
        start: usize,
    ) -> Option<usize> {
        let bits = field.order().ilog2() as usize;
        let (word, shift) = (start * bits / 64, start * bits % 64);
        let (row, mask) = (row.as_chunks::<8>().0, mask.as_chunks::<8>().0);
        let mut words = row.iter().zip(mask).enumerate().map(|(place, (row, mask))| {
            (place, u64::from_le_bytes(*row) & u64::from_le_bytes(*mask))
        });
        let behind = words.clone().skip(word).map(|(place, common)| {
            (place, if place == word { common & (u64::MAX << shift) } else { common })
        });
        let found = { behind }.find(|(_, common)| *common != 0);
        let (place, common) = found.or_else(|| words.find(|(_, common)| *common != 0))?;
        let slot = (place * 64 + common.trailing_zeros() as usize) / bits;
        Some(self.distance(start, slot))
    }

    /// Number of bytes around the ring, and the byte and bit of a slot.
    fn position(self, field: Field, slot: usize) -> (usize, usize, usize) {
        let bit = slot * field.vector_len_bytes(8);
        (field.vector_len_bytes(self.slots), bit / 8, bit % 8)
    }
}

/// A set of slots.
#[derive(Clone, Debug)]
pub struct RingSet {
    slots: usize,
    len: usize,
    words: [u64; MAX_WINDOW_SIZE / 64],
}

impl RingSet {
    pub fn new(ring: Ring) -> Self {
        Self { slots: ring.slots, len: 0, words: [0; MAX_WINDOW_SIZE / 64] }
    }

    #[inline]
    pub fn insert(&mut self, slot: usize) {
        self.len += usize::from(!self.contains(slot));
        self.words[slot / 64] |= 1 << (slot % 64);
    }

    #[inline]
    pub fn remove(&mut self, slot: usize) {
        self.len -= usize::from(self.contains(slot));
        self.words[slot / 64] &= !(1 << (slot % 64));
    }

    pub fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    #[inline]
    pub fn contains(&self, slot: usize) -> bool {
        (self.words[slot / 64] >> (slot % 64)) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Distance from slot `start` to the first one in the set, among `count` slots from there, at
    /// most the whole ring.
    #[inline]
    pub fn first(&self, start: usize, count: usize) -> Option<usize> {
        self.find(start, count, 0)
    }

    /// The same for the first one that is not in the set.
    #[inline]
    pub fn first_absent(&self, start: usize, count: usize) -> Option<usize> {
        self.find(start, count, u64::MAX)
    }

    /// The slots of the set in ring order from `start` on, among `count` slots.
    pub fn iter(&self, start: usize, count: usize) -> impl Iterator<Item = usize> {
        let mut next = 0;
        core::iter::from_fn(move || {
            let from = (start + next) % self.slots;
            let slot = next + self.first(from, count.checked_sub(next)?)?;
            next = slot + 1;
            Some((start + slot) % self.slots)
        })
    }

    /// The first one whose bit, XORed with `flip`, is set.
    #[inline]
    fn find(&self, start: usize, count: usize, flip: u64) -> Option<usize> {
        let before = count.min(self.slots - start);
        let found = find_bit(&self.words, start, start + before, flip).map(|slot| slot - start);
        found.or_else(|| find_bit(&self.words, 0, count - before, flip).map(|slot| slot + before))
    }
}

#[inline]
fn find_bit(words: &[u64], start: usize, end: usize, flip: u64) -> Option<usize> {
    let mut place = start;
    while place < end {
        let word = (words[place / 64] ^ flip) >> (place % 64);
        if word != 0 {
            let found = place + word.trailing_zeros() as usize;
            return (found < end).then_some(found);
        }
        place = (place / 64 + 1) * 64;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    #[test]
    fn a_set_is_searched_around_the_ring() {
        // Miri takes a thousand times as long.
        let sizes = [1, 7, 8, 9, 63, 64, 65, 100, 1024];
        for &size in &sizes[..if cfg!(miri) { 4 } else { 9 }] {
            let ring = Ring::new(size);
            for base in [0, 5, 60, 1000, u64::MAX - 1100] {
                let mut set = RingSet::new(ring);
                let wanted = |index: &usize| index % 3 == 1;
                let slot = |index: usize| ring.slot(base + index as u64);
                // The second time they are there already.
                let twice = (0..size).chain(0..size);
                twice.filter(wanted).for_each(|index| set.insert(slot(index)));
                assert_eq!(set.len(), (0..size).filter(wanted).count());
                assert_eq!(set.is_empty(), size == 1);
                assert!(set.iter(slot(0), size).eq((0..size).filter(wanted).map(slot)));
                for from in (0..size).step_by(5) {
                    assert_eq!(ring.after(slot(0), from), slot(from));
                    assert_eq!(ring.distance(slot(0), slot(from)), from);
                    for to in (from..=size).step_by(7) {
                        let found = set.first(slot(from), to - from).map(|index| index + from);
                        assert_eq!(found, (from..to).find(wanted), "{size} {base} {from}..{to}");
                        let found = set.first_absent(slot(from), to - from);
                        let expected = (from..to).find(|index| !wanted(index));
                        assert_eq!(found.map(|index| index + from), expected);
                    }
                }
                (0..size).for_each(|index| set.remove(slot(index)));
                assert_eq!((set.first(slot(0), size), set.is_empty()), (None, true));
                assert_eq!(set.first_absent(slot(0), 0), None);
                set.insert(slot(0));
                set.remove(slot(size - 1));
                assert_eq!(set.len(), usize::from(size > 1), "{size}");
                set.clear();
                assert_eq!(set.len(), 0);
            }
        }
    }

    #[test]
    fn a_vector_goes_around_the_ring_and_back() {
        for field in [Field::Gf2, Field::Gf16, Field::Gf256] {
            let sizes = [1, 5, 8, 20, 64, 71];
            for &size in &sizes[..if cfg!(miri) { 3 } else { 6 }] {
                let ring = Ring::new(size);
                let firsts = (0..90).step_by(if cfg!(miri) { 29 } else { 1 });
                for (first, count) in firsts.flat_map(|first| (1..=size).map(move |n| (first, n))) {
                    let mut vector = vec![0; field.vector_len_bytes(count)];
                    field.expand_seed(first as u32, count, &mut vector).unwrap();
                    let mut around = vec![0xEE; field.vector_len_bytes(ring.slots())];
                    ring.wrap_vector(field, &vector, ring.slot(first), &mut around);
                    for index in 0..ring.slots() {
                        let slot = ring.slot(first + index as u64);
                        let expected =
                            if index < count { field.coefficient(&vector, index) } else { 0 };
                        assert_eq!(field.coefficient(&around, slot), expected);
                    }
                    let mut back = vec![0xEE; vector.len()];
                    ring.unwrap_vector(field, &around, ring.slot(first), &mut back);
                    assert_eq!(back, vector);
                }
            }
        }
    }

    #[test]
    fn what_two_rows_have_in_common_is_found_around_the_ring() {
        for field in [Field::Gf2, Field::Gf16, Field::Gf256] {
            for &size in if cfg!(miri) { &[5, 20][..] } else { &[5, 64, 100] } {
                let ring = Ring::new(size);
                let len = field.vector_len_bytes(ring.slots()).next_multiple_of(8);
                for (a, b) in (0..size).flat_map(|a| [(a, a / 2), (a, (a * 7 + 1) % size)]) {
                    let (mut row, mask) = (vec![0; len], vec![0xFF; len]);
                    let none = vec![0; len];
                    for slot in [a, b] {
                        field.set_coefficient(&mut row, slot, 1);
                    }
                    for start in 0..ring.slots() {
                        let expected = ring.distance(start, a).min(ring.distance(start, b));
                        let found = ring.first_common(field, &row, &mask, start);
                        assert_eq!(found, Some(expected), "{field:?} {size} {a} {b} {start}");
                        assert_eq!(ring.first_common(field, &row, &none, start), None);
                    }
                }
            }
        }
    }
}
