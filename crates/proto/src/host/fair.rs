//! Fair queueing with CoDel (RFC 8290): flows take turns by bytes, sparse flows go first, and CoDel
//! signals each standing queue early, by a mark or a drop.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;
use corridor_base::codel::{Codel, CodelParams, Verdict};
use corridor_packet::{PacketBuf, PacketRef, protocol};

use crate::bounds::{
    INGRESS_FLOWS, INGRESS_HELD_MAX, INGRESS_PACKETS_LANE, INGRESS_QUANTUM, INGRESS_STAY_MAX,
    INGRESS_STAY_PACKETS, ORDER_STAY_MAX,
};
use crate::config::UdpDelivery;
use crate::host::clamp::{Clamps, Place};
use crate::host::order::{Need, OrderByNeed};
use crate::host::shelf::{Row, Shelf};
use crate::stats::Stats;

/// Bytes of the buffers kept for reuse, and of their list.
pub(super) fn buffers_bytes(spare: &Vec<Vec<u8>>) -> usize {
    let buffers: usize = spare.iter().map(Vec::capacity).sum();
    buffers + spare.capacity() * size_of::<Vec<u8>>()
}

/// Per-flow queues, served in turn.
#[derive(Debug)]
pub(crate) struct FairQueue {
    queues: Vec<FlowQueue>,
    /// The packets of all queues.
    packets: Shelf<Queued>,
    /// RFC 8290's new flows: they were empty when a packet came, and have not used up their first
    /// turn.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    len: usize,
    /// Bytes of `kept` packets that wait.
    kept_bytes: usize,
    room: Room,
    params: CodelParams,
    seed: u64,
    /// The queue whose head is sent next.
    selected: Option<usize>,
    spare: Vec<Vec<u8>>,
    /// Measured rate at which packets leave; `None` until it is known.
    packets_per_s: Option<f64>,
    acknowledgements: Acknowledgements,
    /// Clamps TCP's windows; `None`: windows are left alone.
    clamps: Option<Clamps>,
    /// Finds UDP flows that need order; `None`: the configuration decides.
    order: Option<OrderByNeed>,
}

/// How many packets may wait.
#[derive(Debug)]
struct Room {
    /// The limit now, and the upper bound of that limit.
    packets_max: usize,
    bound: usize,
    /// No limit was configured: it follows the window behind the queue.
    follows_lanes: bool,
}

/// Pure TCP acknowledgments, which are held back to be sent together.
#[derive(Debug, Default)]
struct Acknowledgements {
    /// How long they are held.
    hold: Duration,
    /// How many wait, and since when.
    waiting: usize,
    since: Time,
}

#[derive(Debug, Default)]
struct FlowQueue {
    packets: Row,
    /// Bytes that the flow may still send in this turn.
    deficit: i64,
    listed: bool,
    codel: Codel,
    standing: Standing,
}

/// Tells a standing queue from a burst.
#[derive(Debug, Default)]
struct Standing {
    /// Since when the queue has been too long without dropping well below the limit.
    since: Option<Time>,
}

impl Standing {
    /// Whether the queue is too long, and has been for longer than a burst lasts.
    fn is_over(&mut self, now: Time, stay: Duration, max: Duration, burst: Duration) -> bool {
        if stay <= max / 2 {
            self.since = None;
        }
        stay > max && now - *self.since.get_or_insert(now) >= burst
    }
}

#[derive(Debug)]
struct Queued {
    since: Time,
    packet: PacketBuf,
    /// The connection in whose window it counts as queued.
    clamp: Option<Place>,
    need: Need,
    /// It was received from a neighbour that is granted credit: it is neither dropped nor marked
    /// here, because the queue of its own sender does that.
    kept: bool,
}

impl Queued {
    /// A pure TCP acknowledgment: of several that wait together, the last one says it all, so
    /// waiting hardly hurts.
    fn acknowledges(&self) -> bool {
        self.packet.packet().view().is_pure_ack()
    }
}

/// The flows that take turns, and the rate at which packets leave, if it is known.
#[derive(Clone, Copy)]
struct Turns {
    flows: usize,
    packets_per_s: Option<f64>,
}

impl Turns {
    /// How long a packet may wait if its flow need not react to CoDel. TCP does react; other flows
    /// may offer more than the link carries for any length of time, whatever ECN codepoint they
    /// use. Not inlined, so that it is computed for these only.
    #[inline(never)]
    fn stay_max(self, least: Duration) -> Duration {
        let per_s = |per_s: f64| self.flows.max(1) as f64 / per_s.max(0.1);
        let turn = self.packets_per_s.map_or(0.0, per_s);
        least.max(Duration::from_secs_f64(INGRESS_STAY_PACKETS * turn))
    }
}

impl FairQueue {
    /// Bytes of the empty per-flow queues; `PACKET_BYTES`: overhead of a waiting packet, which is
    /// its place, an eighth more for capacity in reserve, and twice an entry in the list of spare
    /// buffers.
    pub(crate) const BYTES: usize = INGRESS_FLOWS * size_of::<FlowQueue>();
    /// See [`BYTES`](Self::BYTES).
    pub(crate) const PACKET_BYTES: usize =
        Shelf::<Queued>::ITEM_BYTES * 9 / 8 + 2 * size_of::<Vec<u8>>();

    pub(crate) fn new(packets_max: usize, params: CodelParams, seed: u64) -> Self {
        let mut queues = Vec::new();
        queues.resize_with(INGRESS_FLOWS, FlowQueue::default);
        FairQueue {
            queues,
            packets: Shelf::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            len: 0,
            kept_bytes: 0,
            room: Room { packets_max, bound: packets_max, follows_lanes: false },
            params,
            seed,
            selected: None,
            spare: Vec::new(),
            packets_per_s: None,
            acknowledgements: Acknowledgements::default(),
            clamps: None,
            order: None,
        }
    }

    /// Bytes of waiting packets and of buffers kept for reuse.
    pub(crate) fn bytes(&self) -> usize {
        let packets: usize = self.packets.items().map(|queued| queued.packet.capacity()).sum();
        packets + self.packets.bytes() + buffers_bytes(&self.spare)
    }

    /// Bytes of the table of clamped connections.
    pub(crate) fn clamps_bytes(&self) -> usize {
        self.clamps.as_ref().map_or(0, Clamps::bytes)
    }

    /// Lets the queue's limit follow the window behind it, because none is configured.
    pub(crate) fn follow_lanes(&mut self) {
        self.room.follows_lanes = true;
        self.set_lanes(1);
    }

    /// Sets the number of lanes of the window behind the queue.
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        if self.room.follows_lanes {
            self.room.packets_max = self.room.bound.min(lanes * INGRESS_PACKETS_LANE);
        }
    }

    /// Enables order by need for UDP flows.
    pub(crate) fn order_by_need(&mut self, delivery: UdpDelivery) {
        self.order = Some(OrderByNeed::new(delivery));
    }

    /// Sets the time of silence after which everything sent before has most likely arrived.
    pub(crate) fn set_pause(&mut self, pause: Duration) {
        self.order.iter_mut().for_each(|order| order.set_pause(pause));
    }

    /// Enables the window clamp for up to `connections_max` TCP connections.
    pub(crate) fn clamp_windows(&mut self, connections_max: usize) {
        self.clamps = Some(Clamps::new(self.seed, connections_max));
    }

    /// Limits the number of clamped connections; to be called before any is known.
    pub(crate) fn limit_clamps(&mut self, connections_max: usize) {
        if self.clamps.is_some() {
            self.clamp_windows(connections_max);
        }
    }

    /// Sets the measured rate at which packets leave the queue.
    pub(crate) fn set_pace(&mut self, packets_per_s: f64) {
        self.packets_per_s = Some(packets_per_s);
        if let Some(clamps) = &mut self.clamps {
            clamps.set_pace(packets_per_s);
        }
    }

    /// Clamps the window in a packet that is about to be delivered, if it acknowledges data that
    /// passes through this queue.
    pub(crate) fn clamp_window(&mut self, packet: &mut PacketBuf, stats: &mut Stats) {
        if let Some(clamps) = &mut self.clamps {
            clamps.rewrite(packet, stats);
        }
    }

    /// Writes an acknowledgment with a longer window if some sender needs one; returns whether it
    /// did.
    pub(crate) fn window_update(&mut self, out: &mut Vec<u8>, stats: &mut Stats) -> bool {
        self.clamps.as_mut().is_some_and(|clamps| clamps.update(out, stats))
    }

    /// When a sender has to be reminded that it may go on.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.clamps.as_ref().and_then(Clamps::poll_timeout)
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.clamps.iter_mut().for_each(|clamps| clamps.handle_timeout(now));
    }

    /// Sets the time of the event that follows.
    pub(crate) fn set_now(&mut self, now: Time) {
        self.clamps.iter_mut().for_each(|clamps| clamps.set_now(now));
    }

    pub(crate) fn set_params(&mut self, params: CodelParams) {
        self.params = params;
    }

    /// Until when TCP acknowledgments are held back for each other: `None` if anything else waits,
    /// or too many do.
    pub(crate) fn held_until(&mut self, hold: Duration) -> Option<Time> {
        self.acknowledgements.hold = hold;
        let only = self.acknowledgements.waiting == self.len && self.len < INGRESS_HELD_MAX;
        (only && self.len > 0 && !hold.is_zero()).then(|| self.acknowledgements.since + hold)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Waiting bytes of packets that are kept.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Measured rate at which packets leave; `None` until it is known.
    pub(crate) fn pace(&self) -> Option<f64> {
        self.packets_per_s
    }

    pub(crate) fn packets_max(&self) -> usize {
        self.room.packets_max
    }

    /// Arrival time and length in bytes of each waiting packet.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (Time, usize)> {
        self.packets.items().map(|queued| (queued.since, queued.packet.len()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes a packet. If the queues together are full, the longest one loses its oldest packet;
    /// returns false if that was this packet's own queue.
    pub(crate) fn push(
        &mut self,
        now: Time,
        packet: PacketRef<'_>,
        kept: bool,
        stats: &mut Stats,
    ) -> bool {
        let hash = packet.flow_hash(self.seed);
        let at = (hash % INGRESS_FLOWS as u64) as usize;
        let full = self.len >= self.room.packets_max;
        if full && !self.drop_from_longest(at, stats) {
            return false;
        }
        let acknowledges = packet.view().is_pure_ack();
        if acknowledges && self.acknowledgements.waiting == 0 {
            self.acknowledgements.since = now;
        }
        self.acknowledgements.waiting += usize::from(acknowledges);
        // The window of a connection with kept packets is clamped by the station of its sender.
        let clamps = self.clamps.as_mut().filter(|_| !kept);
        let clamp = clamps.and_then(|clamps| clamps.note_sent(now, hash, packet));
        let flow = (hash, !self.queues[at].packets.is_empty());
        let order = self.order.as_mut();
        let need = order.map_or(Need::Unknown, |order| order.note(now, flow, packet, stats));
        let packet = PacketBuf::copy(packet, self.spare.pop().unwrap_or_default());
        let queue = &mut self.queues[at];
        self.kept_bytes += if kept { packet.len() } else { 0 };
        let queued = Queued { since: now, packet, clamp, need, kept };
        self.packets.push_back(&mut queue.packets, queued);
        self.len += 1;
        if !queue.listed {
            queue.listed = true;
            queue.deficit = INGRESS_QUANTUM;
            self.new.push_back(at);
        }
        true
    }

    /// Makes room by dropping from the longest queue; false if that is `at`, the newcomer's own.
    fn drop_from_longest(&mut self, at: usize, stats: &mut Stats) -> bool {
        let by_len = |&index: &usize| self.queues[index].packets.len();
        let Some(longest) = (0..self.queues.len()).max_by_key(by_len) else { return false };
        if self.queues[longest].packets.len() <= self.queues[at].packets.len() + 1 {
            return false;
        }
        stats.packets_dropped_ingress += 1;
        if self.selected == Some(longest) {
            self.selected = None;
        }
        self.drop_head(longest);
        true
    }

    /// Drops packets that arrived before `time`.
    pub(crate) fn drop_before(&mut self, time: Time, stats: &mut Stats) {
        self.selected = None;
        for at in 0..self.queues.len() {
            let head = |queue: &Self| {
                queue.packets.front(&queue.queues[at].packets).is_some_and(|it| it.since < time)
            };
            while head(self) {
                self.drop_head(at);
                stats.packets_stale += 1;
            }
        }
    }

    fn drop_head(&mut self, at: usize) {
        if let Some(queued) = self.packets.pop_front(&mut self.queues[at].packets) {
            self.acknowledgements.waiting -= usize::from(queued.acknowledges());
            self.kept_bytes -= if queued.kept { queued.packet.len() } else { 0 };
            self.spare.push(queued.packet.into_bytes());
            self.len -= 1;
            if let (Some(clamps), Some(place)) = (&mut self.clamps, queued.clamp) {
                clamps.note_left(place);
            }
        }
    }

    /// The packet to send next, and its need; it stays next until it is popped.
    pub(crate) fn front(&mut self, now: Time, stats: &mut Stats) -> Option<(&PacketBuf, Need)> {
        if let Some(clamps) = &mut self.clamps {
            clamps.set_now(now);
        }
        if self.selected.is_none() {
            self.selected = self.select(now, stats);
        }
        let head = self.packets.front(&self.queues[self.selected?].packets)?;
        Some((&head.packet, self.need(head.need, head.packet.packet())))
    }

    /// The need of a packet that leaves now: its flow may need order because of packets that came
    /// after it. That way all of QUIC's first window gets it, which arrives in one burst.
    fn need(&self, need: Need, packet: PacketRef<'_>) -> Need {
        let is_datagram = packet.view().protocol() == protocol::UDP;
        match &self.order {
            Some(order) if need == Need::Unknown && is_datagram => {
                order.need(packet.flow_hash(self.seed))
            }
            _ => need,
        }
    }

    /// Removes the packet at the front.
    pub(crate) fn pop(&mut self) {
        let Some(at) = self.selected.take() else { return };
        let queue = &mut self.queues[at];
        let head = self.packets.front(&queue.packets);
        queue.deficit -= head.map_or(0, |head| head.packet.len() as i64);
        self.drop_head(at);
    }

    fn select(&mut self, now: Time, stats: &mut Stats) -> Option<usize> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = *list.front()?;
            if self.queues[at].deficit <= 0 {
                self.queues[at].deficit += INGRESS_QUANTUM;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            self.signal_congestion(at, now, stats);
            if !self.queues[at].packets.is_empty() {
                return Some(at);
            }
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            if is_new {
                // Otherwise a flow of single packets would be new forever.
                self.old.push_back(at);
            } else {
                self.queues[at].listed = false;
            }
        }
    }

    /// How many flows take turns, and at which rate.
    fn turns(&self) -> Turns {
        Turns { flows: self.new.len() + self.old.len(), packets_per_s: self.packets_per_s }
    }

    /// Lets CoDel mark or drop at the head of a queue, and drops packets there that have waited too
    /// long.
    fn signal_congestion(&mut self, at: usize, now: Time, stats: &mut Stats) {
        let (mut again, turns) = (false, self.turns());
        loop {
            let params = self.params;
            let queue = &mut self.queues[at];
            let more = queue.packets.len() > 1;
            let head = self.packets.front_mut(&queue.packets);
            let Some(head) = head.filter(|head| !head.kept) else { return };
            // Deliberate waiting, and what a clamped window allows for, do not indicate congestion.
            // Nor does less than CoDel's target, whatever the reason.
            let waited = now - head.since;
            let held = match (&self.clamps, head.clamp) {
                _ if waited < params.target => Duration::ZERO,
                (Some(clamps), Some(place)) => clamps.grace(place),
                _ if head.acknowledges() => self.acknowledgements.hold,
                _ => Duration::ZERO,
            };
            let stay = waited.saturating_sub(held);
            let packet = head.packet.packet();
            let view = packet.view();
            let heeds = view.protocol() == protocol::TCP;
            let stands = head.need == Need::Order
                && queue.standing.is_over(
                    now,
                    stay,
                    turns.stay_max(ORDER_STAY_MAX),
                    params.interval,
                );
            if more && !heeds && (stands || stay > turns.stay_max(INGRESS_STAY_MAX)) {
                stats.packets_dropped_codel += 1;
                if let Some(order) = &mut self.order {
                    order.note_unheeding(now, packet.flow_hash(self.seed));
                }
                self.drop_head(at);
                continue;
            }
            if queue.codel.judge(now, stay, more, again, params) == Verdict::Pass {
                return;
            }
            if head.packet.mark_congestion() {
                queue.codel.note_marked(params);
                stats.packets_marked += 1;
                return;
            }
            stats.packets_dropped_codel += 1;
            self.drop_head(at);
            again = true;
        }
    }
}
