//! Ids on a ring: their slots, sets of them, and coding vectors laid around it.

use crate::Field;
use crate::window::MAX_WINDOW_SIZE;

/// The slots of a window. There are a few more than symbols in the window, so that a coding vector
/// goes around at a byte's edge, whatever the size of a coefficient.
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

    /// Writes around the ring the vector of the run from `first` on, whose unused bits are zero;
    /// what is not in the run becomes zero.
    pub fn wrap_vector(self, field: Field, vector: &[u8], first: u64, out: &mut [u8]) {
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

    /// The inverse: writes the vector of the run from `first` on. What follows the run shows in
    /// the unused bits of its last byte.
    pub fn unwrap_vector(self, field: Field, around: &[u8], first: u64, out: &mut [u8]) {
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

    /// How many bytes go around the ring, and in which of them, at which bit, an id is.
    fn position(self, field: Field, id: u64) -> (usize, usize, usize) {
        let bit = self.slot(id) * field.vector_len_bytes(8);
        (field.vector_len_bytes(self.slots), bit / 8, bit % 8)
    }
}

/// A set of ids of the window.
#[derive(Clone, Debug)]
pub struct RingSet {
    ring: Ring,
    words: [u64; MAX_WINDOW_SIZE / 64],
}

impl RingSet {
    pub fn new(ring: Ring) -> Self {
        Self { ring, words: [0; MAX_WINDOW_SIZE / 64] }
    }

    pub fn insert(&mut self, id: u64) {
        let slot = self.ring.slot(id);
        self.words[slot / 64] |= 1 << (slot % 64);
    }

    pub fn remove(&mut self, id: u64) {
        let slot = self.ring.slot(id);
        self.words[slot / 64] &= !(1 << (slot % 64));
    }

    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    pub fn contains(&self, id: u64) -> bool {
        let slot = self.ring.slot(id);
        (self.words[slot / 64] >> (slot % 64)) & 1 == 1
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The first id in `from..to` that is in the set. The range is no longer than the ring.
    pub fn first_in(&self, from: u64, to: u64) -> Option<u64> {
        self.find(from, to, 0)
    }

    /// The first id in `from..to` that is not in the set. The range is no longer than the ring.
    pub fn first_absent(&self, from: u64, to: u64) -> Option<u64> {
        self.find(from, to, u64::MAX)
    }

    /// The first id in the range whose bit, flipped as `flip` says, is set.
    fn find(&self, from: u64, to: u64, flip: u64) -> Option<u64> {
        let count = to.saturating_sub(from) as usize;
        let start = self.ring.slot(from);
        let before = count.min(self.ring.slots - start);
        let found = find_bit(&self.words, start, start + before, flip).map(|slot| slot - start);
        let found = found
            .or_else(|| find_bit(&self.words, 0, count - before, flip).map(|slot| slot + before))?;
        Some(from + found as u64)
    }
}

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
                let ids = base..base + size as u64;
                let wanted = |id: &u64| (id - base) % 3 == 1;
                ids.clone().filter(wanted).for_each(|id| set.insert(id));
                assert_eq!(set.len(), ids.clone().filter(wanted).count());
                for from in ids.clone().step_by(5) {
                    for to in (from..=ids.end).step_by(7) {
                        let expected = (from..to).find(wanted);
                        assert_eq!(set.first_in(from, to), expected, "{size} {base} {from}..{to}");
                        let expected = (from..to).find(|id| !wanted(id));
                        assert_eq!(set.first_absent(from, to), expected);
                    }
                }
                ids.clone().for_each(|id| set.remove(id));
                assert_eq!(set.first_in(base, ids.end), None);
                assert_eq!(set.first_absent(base, base), None);
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
                    ring.wrap_vector(field, &vector, first, &mut around);
                    for index in 0..ring.slots() {
                        let slot = ring.slot(first + index as u64);
                        let expected =
                            if index < count { field.coefficient(&vector, index) } else { 0 };
                        assert_eq!(field.coefficient(&around, slot), expected);
                    }
                    let mut back = vec![0xEE; vector.len()];
                    ring.unwrap_vector(field, &around, first, &mut back);
                    assert_eq!(back, vector);
                }
            }
        }
    }
}
