//! The event queue: who is to be woken when, ordered by (time, sequence).
//!
//! Every entity has at most one pending time, as a state machine has one `poll_timeout`.
//!
//! Timers mostly move later: a retransmission timer is pushed back by every acknowledgement and
//! almost never fires. [`Agenda::wake`] only writes such a change down. The entry stays where it
//! is, too early, until it comes to the front, and is moved to its place then: once for all the
//! times that the timer moved meanwhile. The order of events is that of a queue without this
//! trick, because the sequence number is given by `wake` and not by the move.
//!
//! A timer that moves earlier gets another entry, and the old one is left over, to be dropped when
//! it comes to the front. Before such entries outnumber the entities the queue is rebuilt without
//! them, so that its length is bounded whatever the entities do.

mod queue;

use corridor_base::Time;

use queue::Queue;

/// Most entities of one agenda.
pub const MAX_ENTITIES: usize = 1 << 31;

/// Left-over entries that are no reason to rebuild the queue, however few entities there are.
const LEFT_OVER_MIN: usize = 64;

/// Stands for the sequence number of nothing.
const NONE: u32 = u32::MAX;

/// Bit of a sequence number that puts it behind all without it: [`Rank::Second`].
const SECOND: u32 = 1 << 31;

/// Where sequence numbers end, the bit of the rank aside.
const SEQUENCE_END: u32 = SECOND - 1;

/// Which of the events of one instant go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Before all others, even those that asked earlier.
    First,
    /// After these, in the order in which they asked.
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

/// An entry of the queue: when, in which order at the same instant, and who. It is one number,
/// which the processor compares without branches; from its highest bits: 64 of time, 32 of
/// sequence number (the highest is the rank), 32 of entity.
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

/// What an entity wants, and what the queue knows about it.
#[derive(Clone, Copy, Debug)]
struct Entity {
    /// When it is to be woken, unless `sequence` is [`NONE`].
    at: Time,
    sequence: u32,
    /// Sequence number of the queue's entry that stands for it, or [`NONE`]; its other entries are
    /// left over.
    entry: u32,
    /// Time of this entry: never after `at`.
    entry_at: Time,
}

impl Entity {
    const ASLEEP: Entity =
        Entity { at: Time::MAX, sequence: NONE, entry: NONE, entry_at: Time::MAX };
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
    queue: Queue,
    entities: Vec<Entity>,
    /// Of the next time written down, without its rank; below [`SEQUENCE_END`].
    sequence: u32,
}

impl Agenda {
    /// An agenda for the entities 0 to `entities` - 1, of which none is to be woken.
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

    /// Lets `entity` be woken at `at`, and not at the time it named before; `None`: not at all.
    ///
    /// To repeat the pending time changes nothing; any other time goes behind the entities that
    /// have named this time already.
    ///
    /// # Panics
    /// If there is no such entity.
    pub fn wake(&mut self, entity: usize, at: Option<Time>) {
        self.wake_as(entity, at, Rank::Second);
    }

    /// The same for an entity of this rank. One entity has the same rank all its life.
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
        // At the same time as the entry it would be behind it, as its sequence number is higher.
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

    /// The earliest pending time, and the rank of who is to be woken then.
    pub fn peek(&mut self) -> Option<(Time, Rank)> {
        self.settle(Time::MAX).map(|first| (first.at(), Rank::of(first.sequence())))
    }

    /// The entity to be woken next, and when. Nothing is pending for it from here on.
    pub fn pop(&mut self) -> Option<(Time, usize)> {
        self.pop_until(Time::MAX)
    }

    /// The same, unless this is later than `until`.
    pub fn pop_until(&mut self, until: Time) -> Option<(Time, usize)> {
        let first = self.settle(until)?;
        self.queue.drop_first();
        let slot = &mut self.entities[first.entity()];
        (slot.sequence, slot.entry) = (NONE, NONE);
        Some((first.at(), first.entity()))
    }

    /// Drops what is left over in front, moves what is too early, and returns what is neither,
    /// unless it is later than `until`.
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

    /// Makes the queue anew of what is pending, in order, with sequence numbers from 0.
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

    /// The agenda as one would write it first: looks at everybody, every time.
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

    /// Some of the entities are ahead of the others.
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
            // The sequence numbers run out on the way.
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
