//! Per-neighbour windows: packets that neighbours hold and have not forwarded yet. If a neighbour's
//! window is full, further packets for it wait here.
//!
//! On a radio this needs no signalling: a node overhears the next one forward its packets.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use corridor_base::Time;

use crate::neighbours::NEIGHBOURS_MAX;
use crate::owed::Takes;
use crate::queue::{Queued, Waiting};
use crate::wire::{NodeId, PacketId};

/// Bounds of the time to wait for a neighbour with a full window to forward something.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// Which of a frame's packets may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    All,
    First,
    Second,
    Nothing,
}

/// Packets in flight, by the neighbour that holds them.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// Window per neighbour; none: unlimited.
    most: Option<usize>,
    hops: BTreeMap<NodeId, Hop>,
}

/// Packets that one neighbour holds.
#[derive(Debug, Default)]
struct Hop {
    /// In sending order.
    packets: VecDeque<(PacketId, Time)>,
    /// Since when it has forwarded nothing; none: it has not forwarded any of our packets yet, and
    /// counts as their destination.
    silent_since: Option<Time>,
    /// Packets that it was not overheard forwarding in time, since it was last overheard.
    given_up: usize,
    takes: Takes,
}

impl Hop {
    fn has_room(&self, now: Time, most: usize) -> bool {
        self.packets.len() < most || self.due().is_none_or(|due| due <= now)
    }

    /// When the oldest packet there counts as forwarded, if it is not overheard before.
    fn due(&self) -> Option<Time> {
        let (least, longest) = PATIENCE;
        Some(self.silent_since? + self.takes.patience(least, longest))
    }

    /// Counts the oldest packet as forwarded; or all of them, if the neighbour was waited for as
    /// many times as the window has packets: it no longer forwards anything.
    fn give_up(&mut self, now: Time, most: usize) {
        self.packets.pop_front();
        self.given_up += 1;
        if self.given_up >= most {
            *self = Hop::default();
        } else {
            self.silent_since = Some(now);
        }
    }
}

impl UnderWay {
    pub fn new(most: Option<usize>) -> Self {
        UnderWay { most, hops: BTreeMap::new() }
    }

    /// Whether windows are in use, so that overhearing neighbours is useful.
    pub fn is_bounded(&self) -> bool {
        self.most.is_some()
    }

    /// Which of a frame's packets may be sent: both if one of the receivers has room and neither
    /// exceeds twice its window, since the other one's packet costs nothing; otherwise the one for
    /// which there is room. Retransmissions always may: they are waited for.
    pub fn goes(&self, now: Time, queued: &Queued) -> Goes {
        let Some(most) = self.most.filter(|_| queued.order > 0) else { return Goes::All };
        let room = |waiting: &Waiting, most: usize| {
            self.hops.get(&waiting.next).is_none_or(|hop| hop.has_room(now, most))
        };
        let (first, second) = (&queued.first, queued.second.as_ref());
        let alone = if room(first, most) { Goes::First } else { Goes::Nothing };
        let Some(second) = second else {
            return if alone == Goes::First { Goes::All } else { Goes::Nothing };
        };
        let alone = if room(second, most) && alone == Goes::Nothing { Goes::Second } else { alone };
        let fits = |waiting: &Waiting| room(waiting, 2 * most);
        if alone != Goes::Nothing && fits(first) && fits(second) { Goes::All } else { alone }
    }

    /// Records a packet sent to a neighbour.
    pub fn note_sent(&mut self, now: Time, to: NodeId, id: PacketId) {
        let Some(most) = self.most else { return };
        if self.hops.len() >= NEIGHBOURS_MAX && !self.hops.contains_key(&to) {
            return;
        }
        let hop = self.hops.entry(to).or_default();
        if hop.packets.len() >= most && hop.due().is_some_and(|due| due <= now) {
            hop.give_up(now, most);
        }
        if let Some(place) = hop.packets.iter().position(|&(there, _)| there == id) {
            hop.packets.remove(place);
        }
        if hop.packets.is_empty() && hop.silent_since.is_some() {
            hop.silent_since = Some(now);
        }
        if hop.packets.len() >= 2 * most {
            hop.packets.pop_front();
        }
        hop.packets.push_back((id, now));
    }

    /// Records that a neighbour was overheard sending a packet: it has also forwarded those before
    /// it.
    pub fn hear(&mut self, now: Time, from: NodeId, id: PacketId) {
        let Some(hop) = self.hops.get_mut(&from) else { return };
        let Some(place) = hop.packets.iter().position(|&(there, _)| there == id) else { return };
        hop.takes.note(now.since(hop.packets[place].1));
        hop.packets.drain(..=place);
        (hop.silent_since, hop.given_up) = (Some(now), 0);
    }

    /// When the wait for a neighbour with a full window ends.
    pub fn due(&self, now: Time) -> Option<Time> {
        let most = self.most?;
        let full = self.hops.values().filter(|hop| !hop.has_room(now, most));
        full.filter_map(Hop::due).min()
    }

    /// Forgets a neighbour's packets.
    pub fn forget_node(&mut self, node: NodeId) {
        self.hops.remove(&node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: NodeId = NodeId(2);

    fn waiting(next: NodeId, number: u64) -> Waiting {
        Waiting {
            previous: Some(NodeId(9)),
            next,
            ttl: 9,
            id: PacketId(number),
            packet: [1].as_slice().into(),
            was_coded: false,
            since: Time::ZERO,
            goes_again: false,
        }
    }

    fn queued(receivers: &[NodeId], order: u64) -> Queued {
        let one = |at: usize| receivers.get(at).map(|&node| waiting(node, 99));
        let first = one(0).expect("one receiver at least");
        Queued { first, second: one(1), ready_at: Time::ZERO, order }
    }

    /// A neighbour that forwards packets, and holds `count` of them.
    fn with(under_way: &mut UnderWay, node: NodeId, count: u64) {
        under_way.note_sent(Time::ZERO, node, PacketId(1000));
        under_way.hear(Time::ZERO, node, PacketId(1000));
        (0..count).for_each(|number| under_way.note_sent(Time::ZERO, node, PacketId(number)));
    }

    #[test]
    fn a_neighbour_that_passes_nothing_on_is_an_end_and_has_room() {
        let mut under_way = UnderWay::new(Some(2));
        (0..50).for_each(|number| under_way.note_sent(Time::ZERO, NEXT, PacketId(number)));
        assert_eq!(under_way.goes(Time::ZERO, &queued(&[NEXT], 1)), Goes::All);
        assert_eq!(under_way.due(Time::ZERO), None);
        assert!(under_way.hops[&NEXT].packets.len() <= 4, "bounded all the same");
    }

    #[test]
    fn what_is_beyond_the_window_waits_until_a_packet_is_heard_to_go_on() {
        let (mut under_way, ms) = (UnderWay::new(Some(3)), Time::from_millis);
        with(&mut under_way, NEXT, 3);
        let goes = |under_way: &UnderWay, node| under_way.goes(ms(1), &queued(&[node], 1));
        assert_eq!(goes(&under_way, NEXT), Goes::Nothing);
        assert_eq!(goes(&under_way, NodeId(5)), Goes::All, "another one has room");
        let again = under_way.goes(ms(1), &queued(&[NEXT], 0));
        assert_eq!(again, Goes::All, "what goes again is waited for there");
        under_way.hear(ms(1), NodeId(5), PacketId(0));
        under_way.hear(ms(1), NEXT, PacketId(77));
        assert_eq!(goes(&under_way, NEXT), Goes::Nothing, "it is another's, or another packet");
        under_way.hear(ms(1), NEXT, PacketId(1));
        let left: Vec<u64> = under_way.hops[&NEXT].packets.iter().map(|&(id, _)| id.0).collect();
        assert_eq!(left, [2], "what went before has gone, too");
        assert_eq!(goes(&under_way, NEXT), Goes::All);
    }

    /// A pair costs no more than the packet that may be sent; but the excess it causes at a full
    /// neighbour is bounded, and beyond it the other packet goes alone: otherwise two neighbours
    /// might wait for each other.
    #[test]
    fn a_pair_goes_if_one_has_room_up_to_twice_the_window() {
        let mut under_way = UnderWay::new(Some(2));
        let other = NodeId(3);
        with(&mut under_way, NEXT, 2);
        let goes = |under_way: &UnderWay| {
            [&[NEXT][..], &[NEXT, other], &[other, NEXT]]
                .map(|receivers| under_way.goes(Time::ZERO, &queued(receivers, 1)))
        };
        assert_eq!(goes(&under_way), [Goes::Nothing, Goes::All, Goes::All]);
        (2..4).for_each(|number| under_way.note_sent(Time::ZERO, NEXT, PacketId(number)));
        assert_eq!(goes(&under_way), [Goes::Nothing, Goes::Second, Goes::First]);
        under_way.hear(Time::ZERO, NEXT, PacketId(1));
        with(&mut under_way, other, 2);
        assert_eq!(goes(&under_way), [Goes::Nothing; 3], "neither has room");
    }

    #[test]
    fn a_neighbour_that_falls_silent_gets_a_packet_now_and_then_and_is_an_end_in_the_end() {
        let (mut under_way, ms) = (UnderWay::new(Some(2)), Time::from_millis);
        with(&mut under_way, NEXT, 2);
        let goes = |under_way: &UnderWay, at| under_way.goes(at, &queued(&[NEXT], 1)) == Goes::All;
        assert_eq!(under_way.due(Time::ZERO), Some(ms(200)));
        assert!(!goes(&under_way, ms(199)) && goes(&under_way, ms(200)));
        under_way.note_sent(ms(200), NEXT, PacketId(10));
        assert!(!goes(&under_way, ms(399)) && goes(&under_way, ms(400)));
        under_way.note_sent(ms(400), NEXT, PacketId(11));
        (20..30).for_each(|number| under_way.note_sent(ms(400), NEXT, PacketId(number)));
        assert!(goes(&under_way, ms(400)) && under_way.due(ms(400)).is_none(), "it is an end");
        under_way.hear(ms(500), NEXT, PacketId(28));
        under_way.note_sent(ms(500), NEXT, PacketId(30));
        assert!(!goes(&under_way, ms(500)), "and none any more once it is heard");
    }

    #[test]
    fn a_neighbour_that_is_heard_now_and_then_is_no_end() {
        let (mut under_way, ms) = (UnderWay::new(Some(2)), Time::from_millis);
        with(&mut under_way, NEXT, 2);
        for round in 1..20 {
            let at = ms(1_000 * round);
            under_way.note_sent(at, NEXT, PacketId(10 * round));
            assert_eq!(under_way.goes(at, &queued(&[NEXT], 1)), Goes::Nothing);
            under_way.hear(at, NEXT, PacketId(10 * round));
            (1..3).for_each(|more| under_way.note_sent(at, NEXT, PacketId(10 * round + more)));
        }
    }

    #[test]
    fn a_packet_that_goes_again_counts_once() {
        let mut under_way = UnderWay::new(Some(4));
        with(&mut under_way, NEXT, 3);
        under_way.note_sent(Time::ZERO, NEXT, PacketId(0));
        assert_eq!(under_way.hops[&NEXT].packets.len(), 3);
    }

    #[test]
    fn no_more_neighbours_are_remembered_than_the_bound() {
        let mut under_way = UnderWay::new(Some(1));
        (0..1000).for_each(|node| under_way.note_sent(Time::ZERO, NodeId(node), PacketId(1)));
        assert_eq!(under_way.hops.len(), NEIGHBOURS_MAX);
        under_way.forget_node(NodeId(0));
        assert_eq!(under_way.hops.len(), NEIGHBOURS_MAX - 1);
    }
}
