//! Which missing symbols have to be repaired so that all missing ones can be decoded.
//!
//! A coded symbol that the receiver holds, and that is not used up, will yield one of the missing
//! symbols that it combines once the others are known. Let each of them stand for the newest
//! missing symbol that it combines and no other stands for. This leaves as many missing symbols as
//! the deficit: those that are *needed*. With the first of these in hand everything before the
//! second can be decoded, with two of them everything before the third; no other choice allows so
//! much to be delivered so early. It is the mirror image of *seen* symbols (Sundararajan et al.,
//! Network Coding Meets TCP, 2011), where a coded symbol stands for the oldest.

use std::collections::VecDeque;

/// The coded symbols held that are not used up, each by the end of the run that it combines. All
/// runs begin at or before the first missing symbol.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Ascending.
    ends: VecDeque<u64>,
}

impl Held {
    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.ends.capacity() * size_of::<u64>()
    }

    /// Records an innovative coded symbol that combines all symbols before `end`.
    pub(crate) fn add(&mut self, end: u64) {
        let at = self.ends.partition_point(|&other| other <= end);
        self.ends.insert(at, end);
    }

    /// Keeps the newest `count` coded symbols: those over the oldest symbols are used up first.
    pub(crate) fn retain_newest(&mut self, count: usize) {
        let used_up = self.ends.len().saturating_sub(count);
        self.ends.drain(..used_up);
    }

    /// Picks from the missing symbols, ascending, those that are needed.
    pub(crate) fn needed(&self, missing: impl Iterator<Item = u64>, needed: &mut Vec<u64>) {
        needed.clear();
        let mut ends = self.ends.iter().peekable();
        for id in missing {
            while ends.next_if(|&&end| end <= id).is_some() {
                needed.pop();
            }
            needed.push(id);
        }
        ends.for_each(|_| {
            needed.pop();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::Stream;
    use corridor_base::rand::{Rng, SeedableRng};
    use corridor_codec::{Coefficients, Field, WindowDecoder, WindowEncoder, WindowOutcome};

    fn needed(ends: &[u64], missing: &[u64]) -> Vec<u64> {
        let (mut held, mut needed) = (Held::default(), vec![7]);
        ends.iter().for_each(|&end| held.add(end));
        held.needed(missing.iter().copied(), &mut needed);
        needed
    }

    #[test]
    fn a_coded_symbol_stands_for_the_newest_missing_one_that_it_is_about() {
        assert_eq!(needed(&[], &[3, 5]), [3, 5]);
        assert_eq!(needed(&[8], &[3, 5, 8]), [3, 8]);
        assert_eq!(needed(&[9], &[3, 5, 8]), [3, 5]);
        // The order of arrival does not matter.
        assert_eq!(needed(&[6, 5], &[3, 4, 5, 9]), [3, 9]);
        assert_eq!(needed(&[20, 6], &[3, 4, 5, 9, 12]), [3, 4, 9]);
        assert_eq!(needed(&[20, 20, 20], &[3, 5]), [] as [u64; 0]);
    }

    #[test]
    fn what_is_used_up_was_about_the_oldest() {
        let (mut held, mut needed) = (Held::default(), Vec::new());
        [6, 9, 12].into_iter().for_each(|end| held.add(end));
        held.retain_newest(5);
        held.retain_newest(1);
        held.needed([7, 8, 10, 11].into_iter(), &mut needed);
        assert_eq!(needed, [7, 8, 10]);
    }

    /// A decoder that has received most of what was sent can deliver everything before the second
    /// needed symbol once it gets the first, and so on up to the last: whatever was lost, and
    /// whenever repair arrived.
    #[test]
    fn each_needed_symbol_lets_everything_before_the_next_be_delivered() {
        let mut draws = Stream::from_seed([9; 32]);
        let mut draw = |one_in: u32| draws.next_u32() % one_in == 0;
        let (mut told, mut exact) = (0, 0);
        for _ in 0..300 {
            let mut encoder = WindowEncoder::new(Field::Gf256, 64, 8).unwrap();
            let mut decoder = WindowDecoder::new(Field::Gf256, 64, 8).unwrap();
            let (mut held, mut list) = (Held::default(), Vec::new());
            for seed in 0..60 {
                let repair = encoder.count() > 0 && draw(4);
                let id = if repair { 0 } else { encoder.push(&[seed as u8 + 1; 8]).unwrap() };
                if draw(3) {
                    continue; // Lost.
                }
                if !repair {
                    decoder.add_source(id, encoder.symbol(id).unwrap()).unwrap();
                    continue;
                }
                let (count, coefficients) = (encoder.count(), Coefficients::Seed(seed));
                let mut symbol = [0; 8];
                encoder.encode(0, count, coefficients, &mut symbol).unwrap();
                if decoder.add_coded(0, count, coefficients, &symbol).unwrap()
                    == WindowOutcome::Innovative
                {
                    held.add(count as u64);
                }
                held.retain_newest(decoder.missing_count() - decoder.deficit());
            }
            let missing = (0..decoder.end()).filter(|&id| !decoder.is_decoded(id));
            held.needed(missing, &mut list);
            assert_eq!(list.len(), decoder.deficit());
            assert_eq!(list.first().copied().unwrap_or(decoder.end()), decoder.in_order_end());
            for (at, &id) in list.iter().enumerate() {
                decoder.add_source(id, encoder.symbol(id).unwrap()).unwrap();
                let next = list.get(at + 1).copied().unwrap_or(decoder.end());
                told += 1;
                exact += usize::from(decoder.in_order_end() == next);
            }
        }
        // Random coding vectors are dependent now and then.
        assert!(told > 1_000 && exact * 50 > told * 49, "{exact} of {told}");
    }
}
