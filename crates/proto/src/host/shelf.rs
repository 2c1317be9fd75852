//! Several queues in one pool of places: a place that one queue frees is available to all, so that
//! memory is bounded by the total that waits, however it is spread over the queues.

use crate::memory::QUEUE_PLACES_MIN;

/// The pool.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    places: Vec<Place<T>>,
    /// Head of the list of free places; each links to the next.
    free: Option<u32>,
}

/// One item, and the next place: of its queue, or of the free list.
#[derive(Debug)]
struct Place<T> {
    item: Option<T>,
    next: Option<u32>,
}

/// One queue: its places in the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// First and last place.
    ends: Option<(u32, u32)>,
    len: usize,
}

impl Row {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Shelf<T> {
    /// Bytes per item.
    pub(super) const ITEM_BYTES: usize = size_of::<Place<T>>();

    pub(super) fn new() -> Self {
        Shelf { places: Vec::new(), free: None }
    }

    /// Appends an item to a queue.
    pub(super) fn push_back(&mut self, row: &mut Row, item: T) {
        let at = match self.free {
            Some(at) => {
                let place = &mut self.places[at as usize];
                self.free = place.next.take();
                place.item = Some(item);
                at
            }
            None => {
                if self.places.len() == self.places.capacity() {
                    self.places.reserve_exact((self.places.len() / 8).max(QUEUE_PLACES_MIN));
                }
                self.places.push(Place { item: Some(item), next: None });
                (self.places.len() - 1) as u32
            }
        };
        let first = match row.ends {
            Some((first, last)) => {
                self.places[last as usize].next = Some(at);
                first
            }
            None => at,
        };
        row.ends = Some((first, at));
        row.len += 1;
    }

    /// Removes the item at the front of a queue.
    pub(super) fn pop_front(&mut self, row: &mut Row) -> Option<T> {
        let (first, last) = row.ends?;
        let place = &mut self.places[first as usize];
        let item = place.item.take();
        let next = core::mem::replace(&mut place.next, self.free);
        self.free = Some(first);
        row.ends = next.map(|next| (next, last));
        row.len -= 1;
        item
    }

    pub(super) fn front(&self, row: &Row) -> Option<&T> {
        let (first, _) = row.ends?;
        self.places[first as usize].item.as_ref()
    }

    pub(super) fn front_mut(&mut self, row: &Row) -> Option<&mut T> {
        let (first, _) = row.ends?;
        self.places[first as usize].item.as_mut()
    }

    /// Bytes of all places, without what the items themselves have allocated.
    pub(super) fn bytes(&self) -> usize {
        self.places.capacity() * Self::ITEM_BYTES
    }

    /// All items of all queues, in no particular order.
    pub(super) fn items(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.item.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn queues_on_a_shelf_are_queues_and_take_no_more_than_what_waits_at_most(
            steps in proptest::collection::vec((0..4_usize, any::<bool>()), 0..400),
        ) {
            let (mut shelf, mut rows) = (Shelf::new(), [Row::default(); 4]);
            let mut twins: [VecDeque<usize>; 4] = Default::default();
            let mut most = 0;
            for (number, (at, comes)) in steps.into_iter().enumerate() {
                if comes {
                    shelf.push_back(&mut rows[at], number);
                    twins[at].push_back(number);
                } else {
                    prop_assert_eq!(shelf.pop_front(&mut rows[at]), twins[at].pop_front());
                }
                most = most.max(twins.iter().map(VecDeque::len).sum());
                prop_assert_eq!(rows[at].len(), twins[at].len());
                prop_assert_eq!(rows[at].is_empty(), twins[at].is_empty());
                prop_assert_eq!(shelf.front(&rows[at]), twins[at].front());
                prop_assert_eq!(shelf.front_mut(&rows[at]).copied(), twins[at].front().copied());
                let mut items: Vec<usize> = shelf.items().copied().collect();
                let mut wanted: Vec<usize> = twins.iter().flatten().copied().collect();
                items.sort_unstable();
                wanted.sort_unstable();
                prop_assert_eq!(items, wanted);
                prop_assert_eq!(shelf.places.len(), most);
            }
        }
    }
}
