//! The way of a packet, step 1: the bounded ingress queue. It is first in, first out in the modes
//! from the papers, and fair, with early congestion signals, in window mode.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;
use corridor_packet::{PacketBuf, PacketRef};

use crate::bounds::CLAMPS_MAX;
use crate::config::{CodingParams, Delivery};
use crate::host::codel_target::{Air, CodelTarget};
use crate::host::fair::{FairQueue, buffers_bytes};
use crate::host::order::{Need, hold_max};
use crate::inspect::QueueView;
use crate::link::rtt::RttEstimator;
use crate::stats::Stats;

/// Packets from the host that wait to become source symbols.
#[derive(Debug)]
pub(crate) enum IngressQueue {
    /// First in, first out.
    Fifo(Fifo),
    /// Fair queueing with CoDel, and what sets CoDel's target.
    Fair(Box<(FairQueue, CodelTarget)>),
}

impl IngressQueue {
    pub(crate) fn fifo(packets_max: usize) -> Self {
        let (packets, spare) = (VecDeque::new(), Vec::new());
        IngressQueue::Fifo(Fifo { packets, packets_max, spare })
    }

    /// A fair queue; `seed` randomises which queue a flow hashes to.
    pub(crate) fn fair(packets_max: usize, coding: &CodingParams, seed: u64) -> Self {
        let target = CodelTarget::new(coding.goal);
        let params = target.params(Duration::ZERO);
        let mut queue = FairQueue::new(packets_max, params, seed);
        if coding.clamp_windows {
            queue.clamp_windows(CLAMPS_MAX);
        }
        if coding.delivery == Delivery::Auto {
            queue.order_by_need(coding.delivery_udp);
        }
        IngressQueue::Fair(Box::new((queue, target)))
    }

    /// Reports the tunnel's measured round-trip time, and how the air was used since the last
    /// report.
    pub(crate) fn note_air(&mut self, rtt: &RttEstimator, air: Air) {
        if let IngressQueue::Fair(fair) = self {
            let (queue, target) = &mut **fair;
            target.note(rtt.smoothed(), air);
            queue.set_params(target.params(rtt.timeout()));
            queue.set_pace(air.packets_per_s);
            queue.set_pause(hold_max(rtt));
        }
    }

    /// Takes a packet, or drops it if there is no room.
    pub(crate) fn push(&mut self, now: Time, packet: PacketRef<'_>, stats: &mut Stats) -> bool {
        match self {
            IngressQueue::Fifo(queue) => queue.push(now, packet),
            IngressQueue::Fair(fair) => fair.0.push(now, packet, false, stats),
        }
    }

    /// Takes a packet whose sender is granted credit: a fair queue does not drop it as a congestion
    /// signal.
    pub(crate) fn push_kept(
        &mut self,
        now: Time,
        packet: PacketRef<'_>,
        stats: &mut Stats,
    ) -> bool {
        match self {
            IngressQueue::Fifo(queue) => queue.push(now, packet),
            IngressQueue::Fair(fair) => fair.0.push(now, packet, true, stats),
        }
    }

    /// State of the packets that are kept; `None`: this queue keeps none.
    pub(crate) fn kept(&self) -> Option<Kept> {
        match self {
            IngressQueue::Fifo(_) => None,
            IngressQueue::Fair(fair) => Some(Kept {
                bytes: fair.0.kept_bytes(),
                packets_free: fair.0.packets_max().saturating_sub(fair.0.len()),
                packets_per_s: fair.0.pace(),
            }),
        }
    }

    /// Clamps the window in a packet that is about to be delivered to the host, if necessary.
    pub(crate) fn clamp_window(&mut self, packet: &mut PacketBuf, stats: &mut Stats) {
        if let IngressQueue::Fair(fair) = self {
            fair.0.clamp_window(packet, stats);
        }
    }

    /// Writes a packet that grants a TCP sender of the host a longer window, if one needs it;
    /// returns whether it did.
    pub(crate) fn window_update(&mut self, out: &mut Vec<u8>, stats: &mut Stats) -> bool {
        match self {
            IngressQueue::Fifo(_) => false,
            IngressQueue::Fair(fair) => fair.0.window_update(out, stats),
        }
    }

    /// Sets the time of the event that follows.
    pub(crate) fn set_now(&mut self, now: Time) {
        if let IngressQueue::Fair(fair) = self {
            fair.0.set_now(now);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing happens before.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match self {
            IngressQueue::Fifo(_) => None,
            IngressQueue::Fair(fair) => fair.0.poll_timeout(),
        }
    }

    /// Reminds senders that have not used their window, if this is due.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if let IngressQueue::Fair(fair) = self {
            fair.0.handle_timeout(now);
        }
    }

    /// The packet to send next.
    pub(crate) fn front(&mut self, now: Time, stats: &mut Stats) -> Option<PacketRef<'_>> {
        self.front_with_need(now, stats).map(|(packet, _)| packet.packet())
    }

    /// The packet to send next, and what it needs.
    pub(crate) fn front_with_need(
        &mut self,
        now: Time,
        stats: &mut Stats,
    ) -> Option<(&PacketBuf, Need)> {
        match self {
            IngressQueue::Fifo(queue) => {
                queue.packets.front().map(|(_, packet)| (packet, Need::Unknown))
            }
            IngressQueue::Fair(fair) => fair.0.front(now, stats),
        }
    }

    /// Removes the packet that `front` returned.
    pub(crate) fn pop(&mut self) {
        match self {
            IngressQueue::Fifo(queue) => queue.pop(),
            IngressQueue::Fair(fair) => fair.0.pop(),
        }
    }

    /// Until when the queue is held back; `None`: it may be sent now. On a shared channel, TCP
    /// acknowledgments wait up to `hold` for each other while nothing else waits.
    pub(crate) fn held_until(&mut self, now: Time, hold: Duration) -> Option<Time> {
        match self {
            IngressQueue::Fifo(_) => None,
            IngressQueue::Fair(fair) => fair.0.held_until(hold).filter(|&until| until > now),
        }
    }

    /// Limits the number of TCP connections whose windows are clamped; to be called before any
    /// packet comes.
    pub(crate) fn limit_clamps(&mut self, connections_max: usize) {
        if let IngressQueue::Fair(fair) = self {
            fair.0.limit_clamps(connections_max);
        }
    }

    /// Lets the queue's limit follow the window behind it, because none is configured.
    pub(crate) fn follow_lanes(&mut self) {
        if let IngressQueue::Fair(fair) = self {
            fair.0.follow_lanes();
        }
    }

    /// Sets the number of lanes of the window behind the queue.
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        if let IngressQueue::Fair(fair) = self {
            fair.0.set_lanes(lanes);
            fair.1.set_long(lanes > 1);
        }
    }

    /// Drops packets that came before `time`: they are too old to be of use. The queue of the
    /// papers' modes keeps them, since these modes deliver all they accept.
    pub(crate) fn drop_before(&mut self, time: Time, stats: &mut Stats) {
        if let IngressQueue::Fair(fair) = self {
            fair.0.drop_before(time, stats);
        }
    }

    /// Bytes of waiting packets and of buffers kept for reuse.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            IngressQueue::Fifo(queue) => queue.bytes(),
            IngressQueue::Fair(fair) => fair.0.bytes(),
        }
    }

    /// Bytes of the table of clamped connections.
    pub(crate) fn clamps_bytes(&self) -> usize {
        match self {
            IngressQueue::Fifo(_) => 0,
            IngressQueue::Fair(fair) => fair.0.clamps_bytes(),
        }
    }

    /// Number of waiting packets.
    pub(crate) fn len(&self) -> usize {
        match self {
            IngressQueue::Fifo(queue) => queue.packets.len(),
            IngressQueue::Fair(fair) => fair.0.len(),
        }
    }

    /// A snapshot of the queue. It is counted on each call, so not for the packet path.
    pub(crate) fn view(&self, now: Time) -> QueueView {
        match self {
            IngressQueue::Fifo(queue) => {
                let waiting = queue.packets.iter().map(|(since, packet)| (*since, packet.len()));
                view(now, queue.packets_max, waiting)
            }
            IngressQueue::Fair(fair) => view(now, fair.0.packets_max(), fair.0.waiting()),
        }
    }

    /// Whether no packet waits. One that waits may still be dropped when its turn comes.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            IngressQueue::Fifo(queue) => queue.packets.is_empty(),
            IngressQueue::Fair(fair) => fair.0.is_empty(),
        }
    }
}

/// State of the packets that are kept, and of the queue that holds them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Waiting bytes of kept packets.
    pub(crate) bytes: usize,
    /// Packets that the queue still has room for.
    pub(crate) packets_free: usize,
    /// Measured rate at which packets leave; `None` until it is known.
    pub(crate) packets_per_s: Option<f64>,
}

/// A snapshot of a queue from the arrival times and lengths in bytes of its packets.
fn view(now: Time, packets_max: usize, waiting: impl Iterator<Item = (Time, usize)>) -> QueueView {
    let empty = QueueView { packets_max, ..QueueView::default() };
    waiting.fold(empty, |view, (since, len)| QueueView {
        packets: view.packets + 1,
        bytes: view.bytes + len,
        delay: view.delay.max(now - since),
        ..view
    })
}

/// A first-in, first-out queue that drops what finds it full.
#[derive(Debug)]
pub(crate) struct Fifo {
    /// Each with its arrival time.
    packets: VecDeque<(Time, PacketBuf)>,
    packets_max: usize,
    /// Buffers of sent packets, kept for reuse.
    spare: Vec<Vec<u8>>,
}

impl Fifo {
    fn bytes(&self) -> usize {
        let packets: usize = self.packets.iter().map(|(_, packet)| packet.capacity()).sum();
        let places = self.packets.capacity() * size_of::<(Time, PacketBuf)>();
        packets + places + buffers_bytes(&self.spare)
    }

    fn push(&mut self, now: Time, packet: PacketRef<'_>) -> bool {
        if self.packets.len() >= self.packets_max {
            return false;
        }
        let buffer = self.spare.pop().unwrap_or_default();
        self.packets.push_back((now, PacketBuf::copy(packet, buffer)));
        true
    }

    fn pop(&mut self) {
        if let Some((_, packet)) = self.packets.pop_front() {
            self.spare.push(packet.into_bytes());
        }
    }
}

#[cfg(test)]
impl IngressQueue {
    /// Takes a packet that has not been parsed yet.
    pub(crate) fn push_bytes(&mut self, now: Time, packet: &[u8], stats: &mut Stats) -> bool {
        self.push(now, PacketRef::read(packet), stats)
    }

    /// Clamps the window in a packet that has not been parsed yet.
    pub(crate) fn clamp_bytes(&mut self, packet: &mut Vec<u8>, stats: &mut Stats) {
        let mut read = PacketBuf::read(core::mem::take(packet));
        self.clamp_window(&mut read, stats);
        *packet = read.into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(port: u8, len: usize, ecn: u8) -> Vec<u8> {
        let mut packet = vec![0; len];
        packet[..10].copy_from_slice(&[0x45, ecn, 0, 0, 0, 0, 0, 0, 64, 17]);
        packet[21] = port;
        packet
    }

    #[test]
    fn first_in_first_out_is_bounded_and_in_order() {
        let mut queue = IngressQueue::fifo(2);
        let mut stats = Stats::default();
        let mut push = |queue: &mut IngressQueue, packet| {
            queue.push(Time::ZERO, PacketRef::read(packet), &mut stats)
        };
        assert!(push(&mut queue, b"a") && push(&mut queue, b"b") && !push(&mut queue, b"c"));
        let mut stats = Stats::default();
        assert_eq!(queue.front(Time::ZERO, &mut stats).map(PacketRef::bytes), Some(&b"a"[..]));
        queue.pop();
        queue.pop();
        assert!(queue.is_empty());
    }

    #[test]
    fn what_an_operator_says_holds_whatever_the_window() {
        let mut queue = IngressQueue::fair(5_000, &CodingParams::window(), 1);
        let room = |queue: &IngressQueue| queue.view(Time::ZERO).packets_max;
        queue.set_lanes(1);
        assert_eq!(room(&queue), 5_000);
        queue.follow_lanes();
        let rooms = [1, 2, 4, 8].map(|lanes| {
            queue.set_lanes(lanes);
            room(&queue)
        });
        assert_eq!(rooms, [1_000, 2_000, 4_000, 5_000]);
    }

    #[test]
    fn a_queue_is_seen_as_it_is() {
        for mut queue in [IngressQueue::fifo(9), IngressQueue::fair(9, &CodingParams::window(), 1)]
        {
            let mut stats = Stats::default();
            let empty = QueueView { packets_max: 9, ..QueueView::default() };
            assert_eq!(queue.view(Time::from_millis(7)), empty);
            queue.push_bytes(Time::from_millis(1), &udp(1, 100, 0), &mut stats);
            queue.push_bytes(Time::from_millis(3), &udp(2, 50, 0), &mut stats);
            let delay = Duration::from_millis(6);
            let two = QueueView { packets: 2, packets_max: 9, bytes: 150, delay };
            assert_eq!(queue.view(Time::from_millis(7)), two);
        }
    }

    #[test]
    fn what_is_too_old_is_dropped_and_nothing_else() {
        let (mut queue, mut stats) =
            (IngressQueue::fair(9, &CodingParams::window(), 1), Stats::default());
        for (ms, port) in [(1, 1), (2, 2), (3, 1), (7, 2), (8, 1)] {
            queue.push_bytes(Time::from_millis(ms), &udp(port, 100, 0), &mut stats);
        }
        queue.front(Time::from_millis(9), &mut stats);
        queue.drop_before(Time::from_millis(7), &mut stats);
        assert_eq!((queue.len(), stats.packets_stale), (2, 3));
        assert_eq!(queue.view(Time::from_millis(9)).delay, Duration::from_millis(2));
        while queue.front(Time::from_millis(9), &mut stats).is_some() {
            queue.pop();
        }
        assert!(queue.is_empty());
    }

    /// A pure TCP acknowledgment.
    fn acknowledgement(port: u8) -> Vec<u8> {
        let mut packet = udp(port, 40, 0);
        packet[9] = 6;
        (packet[32], packet[33]) = (5 << 4, 0x10);
        packet
    }

    #[test]
    fn acknowledgements_wait_for_each_other_and_for_nobody_else() {
        let (mut queue, mut stats) =
            (IngressQueue::fair(100, &CodingParams::window(), 1), Stats::default());
        let hold = Duration::from_millis(10);
        let (begin, later) = (Time::from_millis(5), Time::from_millis(9));
        assert_eq!(queue.held_until(begin, hold), None, "there is nothing to hold");
        queue.push_bytes(begin, &acknowledgement(1), &mut stats);
        queue.push_bytes(later, &acknowledgement(1), &mut stats);
        assert_eq!(queue.held_until(later, hold), Some(begin + hold));
        assert_eq!(queue.held_until(begin + hold, hold), None, "they have waited enough");
        assert_eq!(queue.held_until(later, Duration::ZERO), None);
        queue.push_bytes(later, &udp(2, 100, 0), &mut stats);
        assert_eq!(queue.held_until(later, hold), None, "something else waits");
        while queue.front(later, &mut stats).is_some() {
            queue.pop();
        }
        for _ in 0..crate::bounds::INGRESS_HELD_MAX {
            assert!(queue.is_empty() || queue.held_until(later, hold) == Some(later + hold));
            queue.push_bytes(later, &acknowledgement(1), &mut stats);
        }
        assert_eq!(queue.held_until(later, hold), None, "there are enough for a frame");
    }

    #[test]
    fn waiting_by_intent_is_not_taken_for_congestion() {
        let (mut queue, mut stats) =
            (IngressQueue::fair(100, &CodingParams::window(), 1), Stats::default());
        let hold = Duration::from_millis(10);
        for ms in 0..5_000u64 {
            let now = Time::from_millis(ms);
            queue.push_bytes(now, &acknowledgement(1), &mut stats);
            if queue.held_until(now, hold).is_none() {
                while queue.front(now, &mut stats).is_some() {
                    queue.pop();
                }
            }
        }
        assert_eq!(stats.packets_dropped_codel, 0);
    }

    #[test]
    fn a_small_flow_does_not_wait_behind_a_large_one() {
        let (mut queue, mut stats) =
            (IngressQueue::fair(100, &CodingParams::window(), 1), Stats::default());
        for _ in 0..50 {
            queue.push_bytes(Time::ZERO, &udp(1, 1400, 0), &mut stats);
        }
        queue.front(Time::ZERO, &mut stats);
        queue.pop();
        queue.push_bytes(Time::ZERO, &udp(2, 100, 0), &mut stats);
        // At most the rest of the large flow's turn goes before it.
        let gone: Vec<u8> = (0..3)
            .map(|_| {
                let port = queue.front(Time::ZERO, &mut stats).unwrap()[21];
                queue.pop();
                port
            })
            .collect();
        assert!(gone.contains(&2), "{gone:?}");
    }

    #[test]
    fn two_large_flows_share_by_bytes() {
        let (mut queue, mut stats) =
            (IngressQueue::fair(1_000, &CodingParams::window(), 1), Stats::default());
        for _ in 0..300 {
            queue.push_bytes(Time::ZERO, &udp(1, 1400, 0), &mut stats);
            queue.push_bytes(Time::ZERO, &udp(2, 700, 0), &mut stats);
        }
        let mut bytes = [0; 3];
        for _ in 0..150 {
            let packet = queue.front(Time::ZERO, &mut stats).unwrap();
            bytes[usize::from(packet[21])] += packet.len();
            queue.pop();
        }
        assert!(bytes[1].abs_diff(bytes[2]) < 3_000, "{bytes:?}");
    }

    #[test]
    fn the_longest_queue_pays_when_all_are_full() {
        let (mut queue, mut stats) =
            (IngressQueue::fair(10, &CodingParams::window(), 1), Stats::default());
        for _ in 0..10 {
            assert!(queue.push_bytes(Time::ZERO, &udp(1, 1400, 0), &mut stats));
        }
        assert!(!queue.push_bytes(Time::ZERO, &udp(1, 1400, 0), &mut stats));
        assert!(queue.push_bytes(Time::ZERO, &udp(2, 1400, 0), &mut stats));
        assert_eq!(stats.packets_dropped_ingress, 1);
    }

    /// 1000 packets a second come, 900 leave: without control the queue would grow forever.
    fn overload(ecn: u8) -> (Duration, Stats) {
        let (mut queue, mut stats) =
            (IngressQueue::fair(10_000, &CodingParams::window(), 1), Stats::default());
        let mut longest_late = Duration::ZERO;
        let mut entered = VecDeque::new();
        for ms in 0..20_000u64 {
            let now = Time::from_millis(ms);
            let mut packet = udp(1, 1400, ecn);
            packet[24..32].copy_from_slice(&ms.to_be_bytes());
            queue.push_bytes(now, &packet, &mut stats);
            entered.push_back(ms);
            // A tenth of the turns is skipped.
            if ms % 10 != 0
                && let Some(packet) = queue.front(now, &mut stats)
            {
                let since = u64::from_be_bytes(packet[24..32].try_into().unwrap());
                if ms > 15_000 {
                    longest_late = longest_late.max(Duration::from_millis(ms - since));
                }
                queue.pop();
            }
        }
        (longest_late, stats)
    }

    #[test]
    fn a_standing_queue_is_drained_by_drops() {
        let (longest, stats) = overload(0);
        assert!(longest < Duration::from_millis(400), "{longest:?}");
        assert!(stats.packets_dropped_codel > 500 && stats.packets_marked == 0, "{stats:?}");
    }

    #[test]
    fn flows_that_ignore_marks_are_bounded_in_time() {
        let (longest, stats) = overload(2);
        assert!(stats.packets_marked > 10 && stats.packets_dropped_codel > 500, "{stats:?}");
        assert!(longest <= crate::bounds::INGRESS_STAY_MAX, "{longest:?}");
    }

    #[test]
    fn flows_that_heed_marks_lose_nothing() {
        let (mut queue, mut stats) =
            (IngressQueue::fair(10_000, &CodingParams::window(), 1), Stats::default());
        let mut slow_until = 0;
        for ms in 0..20_000u64 {
            let now = Time::from_millis(ms);
            if ms % 2 == 0 || ms >= slow_until {
                queue.push_bytes(now, &udp(1, 1400, 2), &mut stats);
            }
            if ms % 10 != 0
                && let Some(packet) = queue.front(now, &mut stats)
            {
                let is_marked = packet[1] & 3 == 3;
                queue.pop();
                // The sender halves its rate for a while when it is told to.
                slow_until = if is_marked { ms + 200 } else { slow_until };
            }
        }
        assert!(stats.packets_marked > 10 && stats.packets_dropped_codel == 0, "{stats:?}");
    }
}
