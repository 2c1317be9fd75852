//! The event queue: which entity to wake when, ordered by (time, sequence number).
//!
//! Every entity has at most one pending time, as a state machine has one `poll_timeout`.
//!
//! Timers mostly move later: every acknowledgment pushes a retransmission timer back, and it
//! almost never fires. [`Agenda::wake`] only records such a change. The entry keeps its place,
//! which is now too early, and moves to the right one when it comes to the front: once, however
//! often the timer moved meanwhile. Events still come in the order of a queue without this trick,
//! because `wake` assigns the sequence number, not the move.
//!
//! A timer that moves earlier gets a second entry; the old one is stale and is dropped when it
//! comes to the front. The queue is rebuilt without stale entries before they outnumber the
//! entities, so its length is bounded whatever the entities do.

mod queue;

use corridor_base::Time;

use queue::Queue;

/// Most entities of one agenda.
pub const MAX_ENTITIES: usize = 1 << 31;

/// The queue is not rebuilt for fewer stale entries than this, however few entities there are.
const LEFT_OVER_MIN: usize = 64;

/// Stands for "no sequence number".
const NONE: u32 = u32::MAX;

/// Bit of a sequence number that orders it behind all without the bit: [`Rank::Second`].
const SECOND: u32 = 1 << 31;

/// Where sequence numbers end, without the rank's bit.
const SEQUENCE_END: u32 = SECOND - 1;

/// Which events of the same instant come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Before all others, even those requested earlier.
    First,
    /// After these, in the order of the requests.
    Second,
}

impl Rank {
    fn bit(self) -> u32 {
        match self {
            Rank::First => 0,
            Rank::Second => SECOND,
        }
    }

    fn of(sequence: u32) -> Rank {
        if sequence & SECOND == 0 { Rank::First } else { Rank::Second }
    }
}

/// An entry of the queue: time, order within the same instant, and entity, packed into one number
/// so that comparing two takes no branch. From the highest bits: 64 of time, 32 of sequence number
/// (whose highest is the rank), 32 of entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Time, sequence: u32, entity: u32) -> Self {
        let order = u64::from(sequence) << 32 | u64::from(entity);
        Entry(u128::from(at.as_nanos()) << 64 | u128::from(order))
    }

    fn at(self) -> Time {
        Time::from_nanos(self.at_ns())
    }

    fn at_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    fn sequence(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn entity(self) -> usize {
        self.0 as u32 as usize
    }
}

/// An entity's pending time, and its entry in the queue.
#[derive(Clone, Copy, Debug)]
struct Entity {
    /// When it is to be woken, unless `sequence` is [`NONE`].
    at: Time,
    sequence: u32,
    /// Sequence number of the entity's valid entry in the queue, or [`NONE`]; its other entries are
    /// stale.
    entry: u32,
    /// Time of this entry: never after `at`.
    entry_at: Time,
}

impl Entity {
    const ASLEEP: Entity =
        Entity { at: Time::MAX, sequence: NONE, entry: NONE, entry_at: Time::MAX };
}

/// Which entity to wake when. See the module's overview.
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
    queue: Queue,
    entities: Vec<Entity>,
    /// Next sequence number to assign, without the rank; below [`SEQUENCE_END`].
    sequence: u32,
}

impl Agenda {
    /// An agenda for the entities 0 to `entities` - 1, without any pending time.
    pub fn new(entities: usize) -> Self {
        let mut agenda = Agenda { queue: Queue::new(), entities: Vec::new(), sequence: 0 };
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
            self.entities.resize(entities, Entity::ASLEEP);
        }
    }

    /// Number of entities.
    pub fn entities(&self) -> usize {
        self.entities.len()
    }

    /// Sets when to wake `entity`, in place of its previous time; `None`: not at all.
    ///
    /// Repeating the pending time changes nothing. Any other time is ordered behind the entities
    /// that already have the same time.
    ///
    /// # Panics
    /// If there is no such entity.
    pub fn wake(&mut self, entity: usize, at: Option<Time>) {
        self.wake_as(entity, at, Rank::Second);
    }

    /// Like [`wake`](Self::wake), for an entity of this rank. An entity must always have the same
    /// rank.
    ///
    /// # Panics
    /// If there is no such entity.
    pub fn wake_as(&mut self, entity: usize, at: Option<Time>, rank: Rank) {
        let slot = &mut self.entities[entity];
        let Some(at) = at else {
            slot.sequence = NONE;
            return;
        };
        if slot.at == at && slot.sequence != NONE {
            return;
        }
        let sequence = self.sequence | rank.bit();
        (slot.at, slot.sequence) = (at, sequence);
        self.sequence += 1;
        let mut is_full = self.sequence == SEQUENCE_END;
        // At an equal time the entry already comes first: its sequence number is lower.
        if slot.entry == NONE || at < slot.entry_at {
            (slot.entry, slot.entry_at) = (sequence, at);
            self.queue.push(Entry::new(at, sequence, entity as u32));
            is_full |= self.queue.len() > 2 * self.entities.len() + LEFT_OVER_MIN;
        }
        if is_full {
            self.rebuild();
        }
    }

    /// The earliest pending time.
    pub fn next_at(&mut self) -> Option<Time> {
        self.peek().map(|(at, _)| at)
    }

    /// The earliest pending time, and the rank of the entity to wake then.
    pub fn peek(&mut self) -> Option<(Time, Rank)> {
        self.settle(Time::MAX).map(|first| (first.at(), Rank::of(first.sequence())))
    }

    /// Removes the next entity to wake, and returns it with its time.
    pub fn pop(&mut self) -> Option<(Time, usize)> {
        self.pop_until(Time::MAX)
    }

    /// Like [`pop`](Self::pop), unless the time is later than `until`.
    pub fn pop_until(&mut self, until: Time) -> Option<(Time, usize)> {
        let first = self.settle(until)?;
        self.queue.drop_first();
        let slot = &mut self.entities[first.entity()];
        (slot.sequence, slot.entry) = (NONE, NONE);
        Some((first.at(), first.entity()))
    }

    /// Drops stale entries at the front, moves those that are too early, and returns the first
    /// valid one, unless it is later than `until`.
    fn settle(&mut self, until: Time) -> Option<Entry> {
        loop {
            let first = self.queue.first().filter(|first| first.at() <= until)?;
            let slot = &mut self.entities[first.entity()];
            if first.sequence() == slot.sequence {
                return Some(first);
            }
            self.queue.drop_first();
            if first.sequence() == slot.entry {
                (slot.entry, slot.entry_at) = (slot.sequence, slot.at);
                if slot.sequence != NONE {
                    let moved = Entry::new(slot.at, slot.sequence, first.entity() as u32);
                    self.queue.push(moved);
                }
            }
        }
    }

    /// Rebuilds the queue from the pending times, in order, with sequence numbers from 0.
    fn rebuild(&mut self) {
        let pending = |(entity, slot): (usize, &Entity)| {
            let entry = Entry::new(slot.at, slot.sequence, entity as u32);
            (slot.sequence != NONE).then_some(entry)
        };
        let mut entries: Vec<_> = self.entities.iter().enumerate().filter_map(pending).collect();
        entries.sort_unstable();
        self.queue.clear();
        self.entities.iter_mut().for_each(|slot| slot.entry = NONE);
        self.sequence = 0;
        for entry in entries {
            let slot = &mut self.entities[entry.entity()];
            let sequence = self.sequence | Rank::of(entry.sequence()).bit();
            (slot.sequence, slot.entry, slot.entry_at) = (sequence, sequence, slot.at);
            self.queue.push(Entry::new(entry.at(), sequence, entry.entity() as u32));
            self.sequence += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENTITIES: usize = 12;

    /// The simplest possible agenda: scans all entities every time.
    struct Naive {
        pending: Vec<Option<(Time, bool, u64)>>,
        sequence: u64,
    }

    impl Naive {
        fn wake(&mut self, entity: usize, at: Option<Time>) {
            if self.pending[entity].map(|(at, _, _)| at) != at {
                self.pending[entity] =
                    at.map(|at| (at, rank(entity) == Rank::Second, self.sequence));
                self.sequence += 1;
            }
        }

        fn pop(&mut self) -> Option<(Time, usize)> {
            let waiting = self.pending.iter().enumerate();
            let waiting = waiting.filter_map(|(entity, pending)| pending.map(|key| (key, entity)));
            let ((at, _, _), entity) = waiting.min()?;
            self.pending[entity] = None;
            Some((at, entity))
        }
    }

    /// Some of the entities have the first rank.
    fn rank(entity: usize) -> Rank {
        if entity.is_multiple_of(3) { Rank::First } else { Rank::Second }
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
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn does_what_its_naive_twin_does(steps in steps(), before_end in 0_u32..300) {
            let mut agenda = Agenda::new(ENTITIES);
            // The sequence numbers wrap during the test.
            agenda.sequence = SEQUENCE_END - 1 - before_end;
            let mut naive = Naive { pending: vec![None; ENTITIES], sequence: 0 };
            for step in steps {
                match step {
                    Step::Wake(entity, at) => {
                        agenda.wake_as(entity, at.map(Time::from_nanos), rank(entity));
                        naive.wake(entity, at.map(Time::from_nanos));
                    }
                    Step::Pop => {
                        let next = agenda.next_at();
                        let popped = naive.pop();
                        prop_assert_eq!(next, popped.map(|(at, _)| at));
                        prop_assert_eq!(agenda.pop(), popped);
                    }
                }
                prop_assert!(agenda.queue.len() <= 2 * ENTITIES + LEFT_OVER_MIN);
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
        assert_eq!(agenda.queue.len(), 1);
        let first = agenda.queue.first().map(Entry::at);
        assert_eq!(first, Some(Time::from_millis(1)), "nothing has moved yet");
        assert_eq!(agenda.pop(), Some((Time::from_millis(1000), 0)));
        assert_eq!(agenda.next_at(), None);
    }

    #[test]
    fn timers_that_move_earlier_do_not_pile_up() {
        let mut agenda = Agenda::new(2);
        agenda.wake(1, Some(Time::from_nanos(5_000)));
        for ns in (0..10_000).rev() {
            agenda.wake(0, Some(Time::from_nanos(ns)));
            assert!(agenda.queue.len() <= 2 * 2 + LEFT_OVER_MIN);
        }
        let order: Vec<_> = core::iter::from_fn(|| agenda.pop()).collect();
        assert_eq!(order, [(Time::ZERO, 0), (Time::from_nanos(5_000), 1)]);
        assert_eq!(agenda.queue.len(), 0);
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
