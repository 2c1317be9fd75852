//! What a receiver has of a flow: everything before a number, and ranges beyond gaps.

use std::collections::VecDeque;

use super::segment::{SACK_RANGES_MAX, SackRange};

/// Packets that have arrived, ordered by number, and which ranges changed last.
#[derive(Clone, Debug)]
pub(super) struct Reassembly {
    /// Everything before this number has been delivered in order.
    next: u64,
    /// Ranges that have arrived beyond a gap, disjoint and ordered by number. Most are added at the
    /// back and leave from the front.
    ranges: VecDeque<SackRange>,
    /// Packets in these ranges.
    held: u64,
    /// A number within the range that changed last, then one within the range that changed before,
    /// and so on.
    recent: VecDeque<u64>,
    recent_max: usize,
}

impl Reassembly {
    /// Empty; remembers `recent_max` ranges for acknowledgments.
    pub(super) fn new(recent_max: usize) -> Self {
        Reassembly {
            next: 0,
            ranges: VecDeque::new(),
            held: 0,
            recent: VecDeque::new(),
            recent_max,
        }
    }

    /// The number expected next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Whether no packet waits beyond a gap.
    pub(super) fn is_whole(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Packets buffered beyond a gap.
    pub(super) fn out_of_order(&self) -> u64 {
        self.held
    }

    /// Distance from the number expected next to the end of what has arrived; 0 without a gap.
    pub(super) fn span(&self) -> u64 {
        self.ranges.back().map_or(0, |last| last.end - self.next)
    }

    /// Whether a packet has arrived.
    pub(super) fn contains(&self, sequence: u64) -> bool {
        sequence < self.next || self.range_of(sequence).is_some()
    }

    /// The range beyond a gap that contains a packet.
    pub(super) fn range_of(&self, sequence: u64) -> Option<SackRange> {
        let index = self.ranges.partition_point(|range| range.end <= sequence);
        self.ranges.get(index).copied().filter(|range| range.start <= sequence)
    }

    /// Adds a packet that has not arrived before.
    pub(super) fn insert(&mut self, sequence: u64) {
        debug_assert!(!self.contains(sequence), "{sequence} is there");
        if sequence == self.next {
            self.deliver();
        } else {
            self.keep(sequence);
            self.held += 1;
            self.remember(sequence);
        }
    }

    /// Delivers the expected packet, and the range that it joins.
    fn deliver(&mut self) {
        self.next += 1;
        if self.ranges.front().is_some_and(|first| first.start == self.next)
            && let Some(first) = self.ranges.pop_front()
        {
            self.held -= first.end - first.start;
            self.next = first.end;
        }
        let next = self.next;
        self.recent.retain(|&number| number >= next);
    }

    /// Adds a number to the ranges and merges it with its neighbours.
    fn keep(&mut self, sequence: u64) {
        let index = self.ranges.partition_point(|range| range.end <= sequence);
        let joins_left = index > 0 && self.ranges[index - 1].end == sequence;
        let joins_right = self.ranges.get(index).is_some_and(|range| range.start == sequence + 1);
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[index - 1].end = self.ranges[index].end;
                self.ranges.remove(index);
            }
            (true, false) => self.ranges[index - 1].end = sequence + 1,
            (false, true) => self.ranges[index].start = sequence,
            (false, false) => {
                self.ranges.insert(index, SackRange { start: sequence, end: sequence + 1 });
            }
        }
    }

    /// Puts the range of `sequence`, if it is beyond a gap, first among those to acknowledge (RFC
    /// 2018, Section 4).
    pub(super) fn remember(&mut self, sequence: u64) {
        let Some(range) = self.range_of(sequence) else { return };
        self.recent.retain(|number| !(range.start..range.end).contains(number));
        self.recent.push_front(sequence);
        self.recent.truncate(self.recent_max);
    }

    /// How many ranges have changed since the one that a packet beyond a gap would join; the number
    /// of ranges remembered if it joins none.
    pub(super) fn changed_since(&self, sequence: u64) -> usize {
        let joins = |&number: &u64| {
            let range = self.range_of(number);
            range.is_some_and(|range| range.start <= sequence + 1 && sequence <= range.end)
        };
        self.recent.iter().position(joins).unwrap_or(self.recent.len())
    }

    /// The SACK ranges of an acknowledgment: `first`, then those that changed last.
    pub(super) fn sack(&self, first: Option<SackRange>) -> [SackRange; SACK_RANGES_MAX] {
        let mut sack = [SackRange::default(); SACK_RANGES_MAX];
        let recent = self.recent.iter().filter_map(|&number| self.range_of(number));
        let ranges = first.into_iter().chain(recent);
        sack.iter_mut().zip(ranges).for_each(|(place, range)| *place = range);
        sack
    }
}
