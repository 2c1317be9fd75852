//! Waiting packets: held for a partner, and then queued for the channel.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use corridor_base::Time;
use corridor_base::codel::{Codel, CodelParams, Verdict};

use crate::under_way::{Goes, UnderWay};
use crate::wire::{NodeId, PacketId};

/// CoDel's interval: how long packets may wait for the channel beyond the target (RFC 8289, 4.2),
/// about the longest round-trip time of the senders that are to slow down.
const CODEL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of pairs of neighbours whose arrivals are tracked.
const FLOWS_MAX: usize = 256;
/// Weight of one gap in their mean.
const GAP_STEP: f64 = 1.0 / 8.0;
/// Minimum number of gaps before they are relied on.
const GAPS_MIN: u32 = 4;
/// A packet is late if it exceeds its expected time by more than this fraction of the mean gap.
const LATE: f64 = 0.5;

/// A packet on its way to a neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The neighbour it came from; none: this node.
    pub previous: Option<NodeId>,
    pub next: NodeId,
    pub ttl: u16,
    pub id: PacketId,
    pub packet: Arc<[u8]>,
    /// Whether it arrived in a coded frame.
    pub was_coded: bool,
    /// Start of its wait.
    pub since: Time,
    /// Whether it was sent before, and may have arrived.
    pub goes_again: bool,
}

impl Waiting {
    /// Whether this goes to where the other came from, and vice versa.
    pub fn is_opposite(&self, other: &Waiting) -> bool {
        self.previous == Some(other.next) && other.previous == Some(self.next)
    }
}

/// One packet, or two that will be sent as one frame.
#[derive(Debug)]
pub struct Queued {
    pub first: Waiting,
    pub second: Option<Waiting>,
    /// When it may be sent.
    pub ready_at: Time,
    /// Order among packets that became ready together.
    pub order: u64,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    entries: Vec<Queued>,
    packets: usize,
    taken: u64,
    waits: Waits,
    codel: Codel,
    /// The windows of neighbours.
    pub under_way: UnderWay,
    /// Predicts their next arrivals.
    pub arrivals: Arrivals,
}

impl Queue {
    /// An empty queue; `window_packets` limits the packets a neighbour may hold without forwarding
    /// them.
    pub fn new(window_packets: Option<usize>) -> Self {
        Queue { under_way: UnderWay::new(window_packets), ..Queue::default() }
    }

    /// Number of waiting packets.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Their size, bytes.
    pub fn bytes(&self) -> usize {
        let of = |entry: &Queued| {
            let second = entry.second.as_ref().map_or(0, |second| second.packet.len());
            entry.first.packet.len() + second
        };
        self.entries.iter().map(of).sum()
    }

    /// Start of the longest wait.
    pub fn oldest(&self) -> Option<Time> {
        self.entries.iter().map(|entry| entry.first.since).min()
    }

    /// Number of packets still held for a partner.
    pub fn held(&self, now: Time) -> usize {
        self.entries.iter().filter(|entry| entry.ready_at > now).count()
    }

    /// Queues a packet: held until `ready_at`, and then waiting for the channel.
    pub fn push(&mut self, first: Waiting, ready_at: Time) {
        let order = self.number();
        self.packets += 1;
        self.entries.push(Queued { first, second: None, ready_at, order });
    }

    /// Pairs the packet at a place with a partner: both are ready now, or since the first one was.
    pub fn pair(&mut self, now: Time, place: usize, second: Waiting) {
        let order = self.number();
        let Some(entry) = self.entries.get_mut(place) else { return };
        if entry.ready_at > now {
            (entry.ready_at, entry.order) = (now, order);
        }
        self.packets += 1;
        entry.second = Some(second);
    }

    /// Puts the remaining packet of a pair back into its place.
    pub fn put_back(&mut self, first: Waiting, (ready_at, order): (Time, u64)) {
        let place = self.entries.partition_point(|entry| entry.first.since <= first.since);
        self.packets += 1;
        self.entries.insert(place, Queued { first, second: None, ready_at, order });
    }

    fn number(&mut self) -> u64 {
        self.taken += 1;
        self.taken
    }

    /// Unpaired packets, longest wait first, and their places.
    pub fn singles(&self) -> impl Iterator<Item = (usize, &Queued)> {
        // In order of arrival: entries are removed from the middle, and added at the end.
        self.entries.iter().enumerate().filter(|(_, entry)| entry.second.is_none())
    }

    /// Takes the next entry that neighbours have room for. If there is a CoDel target, drops
    /// packets that have waited for the channel too long, and returns their number. A hold does not
    /// count as waiting. If neighbours' windows are known, packets forwarded for a neighbour are no
    /// longer dropped: they are held back at that neighbour instead.
    pub fn take(&mut self, now: Time, target: Option<Duration>) -> (Option<Queued>, u64) {
        let mut dropped = 0;
        while let Some(queued) = self.pop(now) {
            if queued.order == 0 {
                return (Some(queued), dropped); // It goes again, and has waited for a report.
            }
            let wait = now.since(queued.ready_at);
            self.waits.note(now, wait);
            let may_drop = !self.under_way.is_bounded() || queued.first.previous.is_none();
            let Some(target) = target.filter(|_| may_drop) else {
                return (Some(queued), dropped);
            };
            let params = CodelParams { target, interval: CODEL_INTERVAL };
            if self.codel.judge(now, wait, self.packets > 0, dropped > 0, params) == Verdict::Pass {
                return (Some(queued), dropped);
            }
            dropped += 1 + u64::from(queued.second.is_some());
        }
        (None, dropped)
    }

    /// Longest wait for the channel in this second and the last one.
    pub fn longest_wait(&self, now: Time) -> Duration {
        self.waits.longest(now)
    }

    /// Takes the entry ready for longest; of a pair, only the packet that may go if not both may.
    fn pop(&mut self, now: Time) -> Option<Queued> {
        let ready = self.entries.iter().enumerate().filter(|(_, entry)| entry.ready_at <= now);
        let goes = |entry| self.under_way.goes(now, entry);
        let going = ready.map(|(place, entry)| (place, entry, goes(entry)));
        let going = going.filter(|&(_, _, goes)| goes != Goes::Nothing);
        let (place, _, goes) = going.min_by_key(|(_, entry, _)| (entry.ready_at, entry.order))?;
        let mut entry = self.entries.remove(place);
        self.packets -= 1 + usize::from(entry.second.is_some());
        if let Some(second) = entry.second.take_if(|_| goes != Goes::All) {
            let (goes, stays) = match goes {
                Goes::Second => (second, entry.first),
                _ => (entry.first, second),
            };
            self.put_back(stays, (entry.ready_at, entry.order));
            entry.first = goes;
        }
        Some(entry)
    }

    /// When the next packet becomes ready after `now`.
    pub fn next_ready(&self, now: Time) -> Option<Time> {
        self.entries.iter().map(|entry| entry.ready_at).filter(|&at| at > now).min()
    }

    /// Whether a packet is ready and may be sent.
    pub fn is_ready(&self, now: Time) -> bool {
        let goes = |entry| self.under_way.goes(now, entry) != Goes::Nothing;
        self.entries.iter().any(|entry| entry.ready_at <= now && goes(entry))
    }
}

/// Longest wait for the channel in this second and the last one.
#[derive(Debug, Default)]
struct Waits {
    longest: [Duration; 2],
    /// The second of the first value.
    second: u64,
}

impl Waits {
    /// Records that a packet is sent after waiting this long for the channel.
    fn note(&mut self, now: Time, wait: Duration) {
        let second = second_of(now);
        if second > self.second {
            self.longest = [Duration::ZERO, self.longest(now)];
            self.second = second;
        }
        self.longest[0] = self.longest[0].max(wait);
    }

    fn longest(&self, now: Time) -> Duration {
        match second_of(now).saturating_sub(self.second) {
            0 => self.longest[0].max(self.longest[1]),
            1 => self.longest[0],
            _ => Duration::ZERO,
        }
    }
}

fn second_of(now: Time) -> u64 {
    now.as_nanos() / 1_000_000_000
}

/// Predicts packets between two neighbours from the gaps between the last ones.
#[derive(Debug, Default)]
pub struct Arrivals {
    flows: BTreeMap<(NodeId, NodeId), Flow>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    last: Time,
    gap_s: f64,
    gaps: u32,
}

impl Arrivals {
    /// Records a packet from one neighbour for the other.
    pub fn note(&mut self, now: Time, previous: NodeId, next: NodeId) {
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&(previous, next)) {
            let oldest = self.flows.iter().min_by_key(|(_, flow)| flow.last);
            let Some(oldest) = oldest.map(|(&key, _)| key) else { return };
            self.flows.remove(&oldest);
        }
        let flow =
            self.flows.entry((previous, next)).or_insert(Flow { last: now, gap_s: 0.0, gaps: 0 });
        let gap_s = now.since(flow.last).as_secs_f64();
        if flow.last < now {
            flow.gaps = flow.gaps.saturating_add(1);
            let step = GAP_STEP.max(1.0 / f64::from(flow.gaps));
            flow.gap_s += step * (gap_s - flow.gap_s);
        }
        flow.last = now;
    }

    /// How long to wait for the next packet from one neighbour to the other, at most `most`; zero
    /// if none is expected so soon, or it is already late.
    pub fn wait(
        &self,
        now: Time,
        previous: NodeId,
        next: NodeId,
        most: Duration,
    ) -> Option<Duration> {
        let flow = self.flows.get(&(previous, next)).filter(|flow| flow.gaps >= GAPS_MIN)?;
        let since_s = now.since(flow.last).as_secs_f64();
        let left_s = flow.gap_s * (1.0 + LATE) - since_s;
        let expected = flow.gap_s - since_s <= most.as_secs_f64() && left_s > 0.0;
        expected.then(|| Duration::from_secs_f64(left_s).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    #[test]
    fn the_next_packet_is_expected_by_the_gaps_before() {
        let (ms, most) = (Time::from_millis, Duration::from_millis(20));
        let mut arrivals = Arrivals::default();
        (0..10).for_each(|number| arrivals.note(ms(10 * number), A, B));
        let wait = |at: u64| arrivals.wait(ms(at), A, B, most).map(|wait| wait.as_millis());
        assert_eq!(wait(91), Some(14));
        assert_eq!(wait(104), Some(1), "it is late, and may still come");
        assert_eq!(wait(106), None, "too late");
        assert_eq!(arrivals.wait(ms(91), B, A, most), None, "of that flow nothing is known");
        assert_eq!(arrivals.wait(ms(91), A, B, Duration::from_millis(5)), None, "too far");
    }

    #[test]
    fn the_longest_wait_of_this_second_and_the_last_one_counts() {
        let (ms, span) = (Time::from_millis, Duration::from_millis);
        let mut waits = Waits::default();
        waits.note(ms(1_900), span(30));
        waits.note(ms(1_950), span(10));
        assert_eq!(waits.longest(ms(1_999)), span(30));
        waits.note(ms(2_100), span(20));
        assert_eq!(waits.longest(ms(2_999)), span(30), "of the last second");
        assert_eq!(waits.longest(ms(3_000)), span(20));
        waits.note(ms(3_500), span(5));
        assert_eq!(waits.longest(ms(3_600)), span(20));
        assert_eq!(waits.longest(ms(4_999)), span(5));
        assert_eq!(waits.longest(ms(5_000)), Duration::ZERO);
    }

    #[test]
    fn no_more_flows_are_remembered_than_the_bound() {
        let mut arrivals = Arrivals::default();
        for number in 0..2000_u16 {
            arrivals.note(Time::from_millis(number.into()), NodeId(number), B);
        }
        assert_eq!(arrivals.flows.len(), FLOWS_MAX);
    }
}
