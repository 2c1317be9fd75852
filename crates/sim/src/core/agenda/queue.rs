//! A priority queue whose cost barely grows with its length: a hierarchical timing wheel.
//!
//! Times are numbers of eleven base-64 digits. An entry's slot is given by the highest digit in
//! which its time differs from a base time that advances with the queue, and by its value of this
//! digit (G. Varghese and T. Lauck, "Hashed and hierarchical timing wheels", SOSP 1987). The slots
//! are therefore in order of time, the lowest digit first. The first slot that is not empty is
//! sorted if it is small or all its times are equal; otherwise its entries are spread over the
//! slots of lower digits.
//!
//! An entry that arrives after its slot was sorted, and that precedes the last entry of it, goes to
//! a heap. This is rare, since sorted slots are small; at worst every entry goes to the heap, at a
//! heap's cost. The order of entries does not depend on any of this.

use super::Entry;

/// Bits of a digit.
const DIGIT_BITS: u32 = 6;
/// Slots of a digit.
const SLOTS: usize = 1 << DIGIT_BITS;
/// Digits of a time.
const DIGITS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// A slot with more entries than this, of different times, is spread before it is sorted.
const SORTED_MAX: usize = 32;

/// Children of a node of the heap. Four rather than two: half the depth, and siblings are adjacent
/// in memory.
const ARITY: usize = 4;

/// Marks the end of a list.
const END: u32 = u32::MAX;

/// An entry in a slot's list.
#[derive(Clone, Copy, Debug)]
struct Link {
    entry: Entry,
    next: u32,
}

/// Entries by (time, sequence). See the module's overview.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Sorted, the earliest last. Every entry in the slots comes later.
    front: Vec<Entry>,
    /// Entries that came too late for the slots: a heap of [`ARITY`] with the lowest entry in
    /// front.
    heap: Vec<Entry>,
    /// The slots only take times later than this one.
    closed_ns: u64,
    /// Times are compared with this one to find their slots: at most the earliest time in the
    /// slots.
    base_ns: u64,
    /// Bitmap of the digits that have slots with entries.
    digits: u32,
    /// By digit, a bitmap of the slots with entries.
    slots: [u64; DIGITS],
    /// By slot, the head of its list: the entry that came last.
    heads: Box<[[u32; SLOTS]; DIGITS]>,
    /// The entries of all slots, and free places, which form a list of their own.
    links: Vec<Link>,
    free: u32,
    len: usize,
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue {
            front: Vec::new(),
            heap: Vec::new(),
            closed_ns: 0,
            base_ns: 0,
            digits: 0,
            slots: [0; DIGITS],
            heads: Box::new([[END; SLOTS]; DIGITS]),
            links: Vec::new(),
            free: END,
            len: 0,
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Drops all entries.
    pub(super) fn clear(&mut self) {
        self.front.clear();
        self.heap.clear();
        self.links.clear();
        *self.heads = [[END; SLOTS]; DIGITS];
        (self.slots, self.digits, self.free, self.len) = ([0; DIGITS], 0, END, 0);
        (self.closed_ns, self.base_ns) = (0, 0);
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.len += 1;
        if entry.at_ns() > self.closed_ns {
            self.put(entry);
        } else {
            self.heap.push(entry);
            self.rise(self.heap.len() - 1);
        }
    }

    /// The lowest entry.
    #[inline]
    pub(super) fn first(&mut self) -> Option<Entry> {
        if self.front.is_empty() && self.heap.is_empty() && !self.advance() {
            return None;
        }
        match (self.front.last(), self.heap.first()) {
            (Some(&front), Some(&heap)) => Some(front.min(heap)),
            (front, heap) => front.or(heap).copied(),
        }
    }

    /// Drops the entry that [`first`](Self::first) has just returned.
    #[inline]
    pub(super) fn drop_first(&mut self) {
        self.len -= 1;
        match (self.front.last(), self.heap.first()) {
            (Some(front), Some(heap)) if heap < front => self.drop_heap(),
            (Some(_), _) => _ = self.front.pop(),
            (None, _) => self.drop_heap(),
        }
    }

    /// Puts an entry, which must not precede the base, into its slot.
    fn put(&mut self, entry: Entry) {
        let at_ns = entry.at_ns();
        let digit = ((at_ns ^ self.base_ns) | 1).ilog2() / DIGIT_BITS;
        let slot = (at_ns >> (digit * DIGIT_BITS)) as usize % SLOTS;
        let head = &mut self.heads[digit as usize][slot];
        let link = Link { entry, next: *head };
        if let Some(free) = self.links.get_mut(self.free as usize) {
            *head = self.free;
            self.free = free.next;
            *free = link;
        } else {
            *head = self.links.len() as u32;
            self.links.push(link);
        }
        self.slots[digit as usize] |= 1 << slot;
        self.digits |= 1 << digit;
    }

    /// Refills the front from the first slots. Returns whether there is an entry.
    fn advance(&mut self) -> bool {
        while self.digits != 0 {
            let (earliest_ns, latest_ns) = self.empty_first_slot();
            if self.front.len() <= SORTED_MAX || earliest_ns == latest_ns {
                // Mostly sorted already: of entries with the same time the last one came first.
                self.front.sort_unstable_by(|a, b| b.cmp(a));
                (self.base_ns, self.closed_ns) = (latest_ns, latest_ns);
                return true;
            }
            // Later than all times closed before, and so not zero.
            (self.base_ns, self.closed_ns) = (earliest_ns, earliest_ns - 1);
            while let Some(entry) = self.front.pop() {
                self.put(entry);
            }
        }
        false
    }

    /// Moves the list of the first slot, which must exist, to the front. Returns the earliest and
    /// the latest time in it.
    fn empty_first_slot(&mut self) -> (u64, u64) {
        let digit = self.digits.trailing_zeros() as usize;
        let slot = self.slots[digit].trailing_zeros() as usize;
        self.slots[digit] &= !(1 << slot);
        self.digits &= !(u32::from(self.slots[digit] == 0) << digit);
        let (mut earliest_ns, mut latest_ns) = (u64::MAX, 0);
        let mut place = core::mem::replace(&mut self.heads[digit][slot], END);
        while let Some(link) = self.links.get_mut(place as usize) {
            let at_ns = link.entry.at_ns();
            (earliest_ns, latest_ns) = (earliest_ns.min(at_ns), latest_ns.max(at_ns));
            self.front.push(link.entry);
            let next = core::mem::replace(&mut link.next, self.free);
            (self.free, place) = (place, next);
        }
        (earliest_ns, latest_ns)
    }

    fn drop_heap(&mut self) {
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sink(last);
        }
    }

    /// Moves an entry of the heap towards its front as far as its order allows.
    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = entry;
    }

    /// Replaces the front of the heap by `entry`, and restores the heap.
    ///
    /// Fills the gap from below down to the end of the heap and lets the entry rise from there: it
    /// mostly belongs far behind, and comparing it on the way down would cost unpredictable
    /// branches.
    fn sink(&mut self, entry: Entry) {
        let heap = &mut self.heap[..];
        let mut place = 0;
        loop {
            let first = place * ARITY + 1;
            let least = match heap.get(first..first + ARITY) {
                Some(&[a, b, c, d]) => {
                    let (left, right) = (usize::from(b < a), 2 + usize::from(d < c));
                    first + if c.min(d) < a.min(b) { right } else { left }
                }
                _ => match (first..heap.len()).min_by_key(|&child| heap[child]) {
                    Some(least) => least,
                    None => break,
                },
            };
            heap[place] = heap[least];
            place = least;
        }
        heap[place] = entry;
        self.rise(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::Time;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn entry(at_ns: u64, sequence: u32) -> Entry {
        Entry::new(Time::from_nanos(at_ns), sequence, 0)
    }

    /// How far each new entry lies ahead of the latest one taken: steps in every digit, and into
    /// the past.
    fn steps() -> impl Strategy<Value = Vec<Option<i64>>> {
        let ahead = (0_u32..63, 0_i64..64).prop_map(|(bits, times)| times << bits >> 6);
        let push = prop_oneof![6 => ahead, 1 => -50_i64..0, 1 => Just(i64::MAX)];
        prop::collection::vec(prop::option::weighted(0.7, push), 0..600)
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn gives_the_entries_in_order(steps in steps(), start_ns in prop_oneof![
            Just(0), 0_u64..1 << 40, Just(u64::MAX - 100)])
        {
            let (mut queue, mut sorted) = (Queue::new(), BTreeSet::new());
            let mut now_ns = start_ns;
            let steps = steps.into_iter().enumerate();
            for (sequence, step) in steps.chain((0..600).map(|sequence| (sequence, None))) {
                if let Some(ahead_ns) = step {
                    let at_ns = now_ns.saturating_add_signed(ahead_ns);
                    queue.push(entry(at_ns, sequence as u32));
                    sorted.insert(entry(at_ns, sequence as u32));
                    continue;
                }
                let first = queue.first();
                prop_assert_eq!(first, sorted.pop_first());
                if let Some(first) = first {
                    now_ns = now_ns.max(first.at_ns());
                    queue.drop_first();
                }
                prop_assert_eq!(queue.len(), sorted.len());
            }
            prop_assert_eq!(queue.first(), None);
        }
    }

    #[test]
    fn many_entries_of_one_slot_are_spread() {
        let mut queue = Queue::new();
        let times =
            |round: u64| (0..1000).map(move |index| (1 << 40) + (index * 7919 + round) % 5000);
        for at_ns in times(0).chain(times(3)) {
            queue.push(entry(at_ns, at_ns as u32 % 17));
        }
        assert_eq!(queue.digits.count_ones(), 1, "all differ from zero in the same digit");
        let first = queue.first();
        assert!(queue.front.len() <= SORTED_MAX, "{} were sorted", queue.front.len());
        assert_eq!(first, times(0).chain(times(3)).map(|at| entry(at, at as u32 % 17)).min());
    }

    #[test]
    fn places_are_used_again() {
        let mut queue = Queue::new();
        for round in 1..100 {
            (0..10).for_each(|index| queue.push(entry(round * 1000 + index * 100, 0)));
            (0..10).for_each(|_| {
                assert!(queue.first().is_some());
                queue.drop_first();
            });
        }
        assert_eq!((queue.len(), queue.links.len()), (0, 10));
    }
}
