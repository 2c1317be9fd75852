//! The event queue: who is to be woken when, ordered by (time, sequence).
//!
//! Every entity has at most one pending time, as a state machine has one `poll_timeout`. So the
//! queue holds at most one entry for each entity, whatever they do: its length is bounded by their
//! number, and no outdated entry ever piles up.
//!
//! Timers mostly move later: a retransmission timer is pushed back by every acknowledgement and
//! almost never fires. [`Agenda::wake`] only writes such a change down. The entry stays where it
//! is, too early, until it comes to the front, and is moved to its place then: once for all the
//! times that the timer moved meanwhile. The order of events is that of a queue without this
//! trick, because the sequence number is given by `wake` and not by the move.

use corridor_base::Time;

/// Children of a node of the heap. Four instead of two: half the depth, and the keys of siblings
/// share cache lines.
const ARITY: usize = 4;

/// Place of an entity that has no entry in the heap.
const NOWHERE: u32 = u32::MAX;

/// Most entities of one agenda.
pub const MAX_ENTITIES: usize = NOWHERE as usize;

/// When, and in which order at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    at: Time,
    sequence: u64,
}

impl Key {
    /// After every other key: of an entity that is not to be woken.
    const NEVER: Key = Key { at: Time::MAX, sequence: u64::MAX };
}

/// An entry of the heap. Its key is the entity's pending one, or an earlier one.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    entity: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entity {
    /// When it is to be woken.
    pending: Key,
    /// Where its entry is in the heap.
    place: u32,
}

/// Who is to be woken when. See the module's overview.
///
/// ```
/// use corridor_base::Time;
/// use corridor_sim::Agenda;
///
/// let mut agenda = Agenda::new(2);
/// agenda.wake(0, Some(Time::from_millis(5)));
/// agenda.wake(1, Some(Time::from_millis(3)));
/// agenda.wake(1, Some(Time::from_millis(7)));
/// assert_eq!(agenda.pop(), Some((Time::from_millis(5), 0)));
/// assert_eq!(agenda.pop(), Some((Time::from_millis(7), 1)));
/// assert_eq!(agenda.pop(), None);
/// ```
#[derive(Clone, Debug)]
pub struct Agenda {
    /// A heap of [`ARITY`] with the earliest key in front.
    heap: Vec<Entry>,
    entities: Vec<Entity>,
    /// Of the next time written down.
    sequence: u64,
}

impl Agenda {
    /// An agenda for the entities 0 to `entities` - 1, of which none is to be woken.
    pub fn new(entities: usize) -> Self {
        let mut agenda = Agenda { heap: Vec::new(), entities: Vec::new(), sequence: 0 };
        agenda.grow(entities);
        agenda
    }

    /// Makes room for `entities` entities, if there are fewer.
    ///
    /// # Panics
    /// Beyond [`MAX_ENTITIES`].
    pub fn grow(&mut self, entities: usize) {
        assert!(entities <= MAX_ENTITIES, "{entities} entities, expected at most {MAX_ENTITIES}");
        if entities > self.entities.len() {
            self.entities.resize(entities, Entity { pending: Key::NEVER, place: NOWHERE });
            self.heap.reserve(entities - self.heap.len());
        }
    }

    /// Number of entities.
    pub fn entities(&self) -> usize {
        self.entities.len()
    }

    /// Lets `entity` be woken at `at`, and not at the time it named before; `None`: not at all.
    ///
    /// To repeat the pending time changes nothing; any other time goes behind the entities that
    /// have named this time already.
    ///
    /// # Panics
    /// If there is no such entity.
    pub fn wake(&mut self, entity: usize, at: Option<Time>) {
        let Entity { pending, place } = self.entities[entity];
        let Some(at) = at else {
            self.entities[entity].pending = Key::NEVER;
            return;
        };
        if at == pending.at && pending != Key::NEVER {
            return;
        }
        let key = Key { at, sequence: self.sequence };
        self.sequence += 1;
        self.entities[entity].pending = key;
        if place == NOWHERE {
            self.heap.push(Entry { key, entity: entity as u32 });
            self.rise(self.heap.len() - 1);
        } else if key < self.heap[place as usize].key {
            self.heap[place as usize].key = key;
            self.rise(place as usize);
        }
    }

    /// The earliest pending time.
    pub fn next_at(&mut self) -> Option<Time> {
        self.settle().map(|entry| entry.key.at)
    }

    /// The entity to be woken next, and when. Nothing is pending for it from here on.
    pub fn pop(&mut self) -> Option<(Time, usize)> {
        let Entry { key, entity } = self.settle()?;
        // The entry stays: most entities name their next time at once, and it moves there then.
        self.entities[entity as usize].pending = Key::NEVER;
        Some((key.at, entity as usize))
    }

    /// Moves entries that are too early until the one in front is not, and returns it.
    fn settle(&mut self) -> Option<Entry> {
        loop {
            let front = *self.heap.first()?;
            let pending = self.entities[front.entity as usize].pending;
            if front.key == pending {
                return Some(front);
            }
            if pending == Key::NEVER {
                self.remove_front();
            } else {
                self.sink(0, Entry { key: pending, ..front });
            }
        }
    }

    fn remove_front(&mut self) {
        let Some(last) = self.heap.pop() else { return };
        let front = self.heap.first().map_or(last, |front| *front);
        self.entities[front.entity as usize].place = NOWHERE;
        if !self.heap.is_empty() {
            self.sink(0, last);
        }
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.entities[entry.entity as usize].place = place as u32;
    }

    /// Moves the entry at `place` towards the front as far as its key says.
    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent].key <= entry.key {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    /// Puts `entry` at `place`, or as far from the front as its key says. What was there is gone.
    fn sink(&mut self, mut place: usize, entry: Entry) {
        loop {
            let first = place * ARITY + 1;
            let children = first..self.heap.len().min(first + ARITY);
            let Some(least) = children.min_by_key(|&child| self.heap[child].key) else { break };
            if entry.key <= self.heap[least].key {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENTITIES: usize = 12;

    /// The agenda as one would write it first: looks at everybody, every time.
    struct Naive {
        pending: Vec<Option<(Time, u64)>>,
        sequence: u64,
    }

    impl Naive {
        fn wake(&mut self, entity: usize, at: Option<Time>) {
            if self.pending[entity].map(|(at, _)| at) != at {
                self.pending[entity] = at.map(|at| (at, self.sequence));
                self.sequence += 1;
            }
        }

        fn pop(&mut self) -> Option<(Time, usize)> {
            let waiting = self.pending.iter().enumerate();
            let waiting = waiting.filter_map(|(entity, pending)| pending.map(|key| (key, entity)));
            let ((at, _), entity) = waiting.min()?;
            self.pending[entity] = None;
            Some((at, entity))
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Wake(usize, Option<u64>),
        Pop,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Coarse times, so that many are equal; some at the very end of time.
        let at = prop_oneof![8 => (0_u64..20).prop_map(Some), 1 => Just(Some(u64::MAX)),
            2 => Just(None)];
        let wake = (0..ENTITIES, at).prop_map(|(entity, at)| Step::Wake(entity, at));
        prop::collection::vec(prop_oneof![3 => wake, 1 => Just(Step::Pop)], 0..200)
    }

    proptest! {
        #[test]
        fn does_what_its_naive_twin_does(steps in steps()) {
            let mut agenda = Agenda::new(ENTITIES);
            let mut naive = Naive { pending: vec![None; ENTITIES], sequence: 0 };
            for step in steps {
                match step {
                    Step::Wake(entity, at) => {
                        agenda.wake(entity, at.map(Time::from_nanos));
                        naive.wake(entity, at.map(Time::from_nanos));
                    }
                    Step::Pop => {
                        let next = agenda.next_at();
                        let popped = naive.pop();
                        prop_assert_eq!(next, popped.map(|(at, _)| at));
                        prop_assert_eq!(agenda.pop(), popped);
                    }
                }
                prop_assert!(agenda.heap.len() <= ENTITIES);
            }
            while let Some(popped) = naive.pop() {
                prop_assert_eq!(agenda.pop(), Some(popped));
            }
            prop_assert_eq!(agenda.pop(), None);
        }
    }

    #[test]
    fn a_timer_that_moves_later_is_moved_once() {
        let mut agenda = Agenda::new(2);
        for ms in 1..=1000 {
            agenda.wake(0, Some(Time::from_millis(ms)));
        }
        assert_eq!(agenda.heap.len(), 1);
        assert_eq!(agenda.heap[0].key.at, Time::from_millis(1), "nothing has moved yet");
        assert_eq!(agenda.pop(), Some((Time::from_millis(1000), 0)));
        assert_eq!(agenda.next_at(), None);
    }

    #[test]
    fn equal_times_keep_the_order_of_their_naming() {
        let mut agenda = Agenda::new(3);
        let at = Some(Time::from_millis(1));
        agenda.wake(2, at);
        agenda.wake(0, at);
        agenda.wake(1, at);
        agenda.wake(2, at);
        let order: Vec<_> = core::iter::from_fn(|| agenda.pop()).map(|(_, who)| who).collect();
        assert_eq!(order, [2, 0, 1], "to repeat a time does not lose the place");
    }

    #[test]
    fn room_is_made_for_more() {
        let mut agenda = Agenda::new(0);
        assert_eq!(agenda.pop(), None);
        agenda.grow(2);
        agenda.wake(1, Some(Time::MAX));
        agenda.grow(1);
        assert_eq!((agenda.entities(), agenda.pop()), (2, Some((Time::MAX, 1))));
    }
}
