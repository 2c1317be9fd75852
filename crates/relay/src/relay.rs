//! The relay itself. See the crate's overview for its steps.

mod incoming;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use corridor_base::Time;

use crate::buffer::Kept;
use crate::config::{Adaptive, Candidates, Hold, RelayConfig, RelayError};
use crate::congestion::Congestion;
use crate::neighbours::{NeighbourView, Neighbours};
use crate::owed::Owed;
use crate::queue::{Queue, Queued, Waiting};
use crate::reception::Receptions;
use crate::repair::Repairs;
use crate::stats::RelayStats;
use crate::wire::{self, Frame, Frames, NodeId, PACKET_BYTES_MAX, PacketId, Part, Symbol, xor};

pub use incoming::Taken;

/// Minimum announced fraction of another node's frames that a receiver must overhear to be relied
/// on for a packet that it has not sent itself.
const OVERHEARS_MIN: f64 = 0.8;
/// Limits in quarters of the time for which packets are kept for decoding: beyond the first limit
/// no partner is sought, and beyond the second no pair is sent as one frame any more. The rest
/// allows for the packet's wait before it arrived here, and for the MAC. How long losses are
/// retransmitted is [`RelayConfig::goes_again_for`].
const PARTNER_QUARTERS: u32 = 2;
const PAIR_QUARTERS: u32 = 3;
/// The part of that time for which unresolved repairs are held: what they deliver must not arrive
/// when its previous arrival has already been forgotten.
const REPAIR_PARTS: u32 = 8;
/// Nodes announce at different times: number of phases in the interval.
const PHASES: u32 = 16;

/// Link-layer destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDestination {
    /// One neighbour, which acknowledges it.
    Unicast(NodeId),
    /// All of them.
    Broadcast,
}

/// A frame for the MAC.
#[derive(Clone, Debug, PartialEq)]
pub struct Transmit {
    /// Its destination on the link.
    pub to: LinkDestination,
    /// Its bytes.
    pub frame: Vec<u8>,
}

/// The MAC's results for one neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Finished frames, including those given up.
    pub frames: u64,
    /// Transmissions beyond the first of each frame.
    pub retries: u64,
    /// Frames given up.
    pub failed: u64,
}

/// A received packet, for this node or to be forwarded.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// The neighbour it came from.
    pub from: NodeId,
    /// Remaining hops, from 0.
    pub ttl: u16,
    /// The packet.
    pub packet: Arc<[u8]>,
    /// Whether it arrived in a coded frame.
    pub was_coded: bool,
}

/// A node that forwards packets, and combines them. See the crate's overview.
#[derive(Debug)]
pub struct Relay {
    id: NodeId,
    config: RelayConfig,
    now: Time,
    counter: u32,
    queue: Queue,
    neighbours: Neighbours,
    congestion: Congestion,
    /// Packets kept for decoding others.
    kept: Kept<Arc<[u8]>>,
    /// Received packets, and whether in a coded frame: with two relays, one may arrive twice. Timed
    /// by the node's waking time: what arrived while it slept is processed when it wakes.
    seen: Kept<bool>,
    received: VecDeque<Received>,
    /// Which of the neighbours' frames arrived, to report to them.
    receptions: Receptions,
    /// Unreported packets whose delivery the MAC does not guarantee.
    owed: Owed,
    /// Combinations of these, and the packets that neighbours' combinations deliver.
    repairs: Repairs,
    /// Time of the next announcement.
    announce_at: Option<Time>,
    stats: RelayStats,
}

impl Relay {
    /// A relay without packets or neighbours.
    ///
    /// # Errors
    /// [`RelayError::Setting`].
    pub fn new(id: NodeId, config: RelayConfig, now: Time) -> Result<Self, RelayError> {
        config.check()?;
        let phase = config.announce_every * (u32::from(id.0) % PHASES) / PHASES;
        Ok(Relay {
            id,
            config,
            now,
            counter: 0,
            queue: Queue::new(config.window_packets),
            neighbours: Neighbours::new(config.announce_every),
            congestion: Congestion::new(now, config.retries_per_second),
            kept: Kept::new(config.decode_for),
            seen: Kept::new(config.known_for()),
            received: VecDeque::new(),
            receptions: Receptions::new(config.decode_for),
            owed: Owed::default(),
            repairs: Repairs::new(config.decode_for / REPAIR_PARTS),
            announce_at: config.coding.then(|| now + config.announce_every + phase),
            stats: RelayStats::default(),
        })
    }

    /// The same without MAC acknowledgments: with [`RelayConfig::resend`], everything that
    /// neighbours do not report is retransmitted.
    #[must_use]
    pub fn unacknowledged(mut self) -> Self {
        self.neighbours.set_unacknowledged();
        self
    }

    /// The counters so far.
    pub fn stats(&self) -> RelayStats {
        RelayStats { congested_s: self.congestion.seconds(), ..self.stats }
    }

    /// Number of waiting packets.
    pub fn backlog(&self) -> usize {
        self.queue.packets()
    }

    /// Number of neighbours whose packets are kept for their repairs.
    pub fn repairers(&self) -> usize {
        self.repairs.neighbours()
    }

    /// Size of the waiting packets, bytes.
    pub fn backlog_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// The longest current wait of a packet.
    pub fn oldest(&self, now: Time) -> Duration {
        self.queue.oldest().map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Number of waiting packets held for a partner.
    pub fn held(&self, now: Time) -> usize {
        self.queue.held(now)
    }

    /// Its settings.
    pub fn config(&self) -> &RelayConfig {
        &self.config
    }

    /// The neighbours, for monitoring: whom each hears, and whether it gets coded frames.
    pub fn neighbours(&self, now: Time) -> Vec<NeighbourView> {
        self.neighbours.views(now, self.id, self.config.switch_off)
    }

    /// Forgets a neighbour that has restarted.
    pub fn forget(&mut self, neighbour: NodeId) {
        self.neighbours.forget(neighbour);
        self.receptions.forget_node(neighbour);
        self.owed.forget_node(neighbour);
        self.repairs.forget_node(neighbour);
        self.queue.under_way.forget_node(neighbour);
    }

    /// Accepts a packet that this node originates, for a neighbour. It is neither held nor
    /// combined: nobody else can know it.
    ///
    /// # Errors
    /// [`RelayError::PacketLen`], [`RelayError::Expired`], [`RelayError::Full`].
    pub fn send(
        &mut self,
        now: Time,
        next: NodeId,
        ttl: u16,
        packet: Arc<[u8]>,
    ) -> Result<(), RelayError> {
        let waiting = self.admit(now, (None, next), ttl, packet, false)?;
        self.stats.originated += 1;
        self.queue.push(waiting, now);
        Ok(())
    }

    /// Accepts a packet from one neighbour for another: it is sent alone, paired with a waiting
    /// packet, or held to wait for a partner.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn forward(
        &mut self,
        now: Time,
        (previous, next): (NodeId, NodeId),
        ttl: u16,
        packet: Arc<[u8]>,
    ) -> Result<(), RelayError> {
        self.forward_received(now, (previous, next), ttl, (packet, false))
    }

    /// The same, stating whether the packet arrived in a coded frame.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn forward_received(
        &mut self,
        now: Time,
        (previous, next): (NodeId, NodeId),
        ttl: u16,
        (packet, was_coded): (Arc<[u8]>, bool),
    ) -> Result<(), RelayError> {
        let waiting = self.admit(now, (Some(previous), next), ttl, packet, was_coded)?;
        self.stats.forwarded += 1;
        self.queue.arrivals.note(now, previous, next);
        let congested = self.congestion.is_congested(now);
        let combines =
            self.config.coding && (self.config.adaptive != Adaptive::Coding || congested);
        if !combines {
            self.queue.push(waiting, now);
            return Ok(());
        }
        match self.partner(now, &waiting) {
            Some(place) => self.queue.pair(now, place, waiting),
            None => {
                let hold = self.hold(now, (previous, next), congested);
                self.queue.push(waiting, now + hold);
            }
        }
        Ok(())
    }

    /// Advances the clock. A node that was due to be woken long before has slept, or its clock has
    /// jumped: that time does not count for remembering received packets.
    fn advance(&mut self, now: Time) {
        // Neighbours retransmit nothing beyond the remaining time.
        let spare = self.config.held_up_for();
        let passed = now.since(self.now);
        if passed > spare {
            // A ready packet waits for the channel, which is requested at once.
            let due = if self.is_ready() { Some(self.now) } else { self.poll_timeout() };
            let due = due.map_or(now, |due| due.max(self.now));
            if now.since(due) > spare {
                self.seen.sleep(passed);
            }
        }
        self.now = self.now.max(now);
    }

    fn admit(
        &mut self,
        now: Time,
        (previous, next): (Option<NodeId>, NodeId),
        ttl: u16,
        packet: Arc<[u8]>,
        was_coded: bool,
    ) -> Result<Waiting, RelayError> {
        self.advance(now);
        if !(1..=PACKET_BYTES_MAX).contains(&packet.len()) {
            let given = packet.len();
            return Err(RelayError::PacketLen { given, most: PACKET_BYTES_MAX });
        }
        if ttl == 0 {
            self.stats.expired += 1;
            return Err(RelayError::Expired);
        }
        if self.queue.packets() >= self.config.queue_packets {
            self.stats.queue_drops += 1;
            return Err(RelayError::Full { given: self.queue.packets() });
        }
        let id = PacketId::of(&packet);
        let (since, goes_again) = (self.now, false);
        Ok(Waiting { previous, next, ttl, id, packet, was_coded, since, goes_again })
    }

    /// How long an unpaired packet is held.
    fn hold(&self, now: Time, (previous, next): (NodeId, NodeId), congested: bool) -> Duration {
        let says_enough = matches!(self.config.hold, Hold::Waits { .. });
        let may_be = congested || says_enough && !self.congestion.is_told();
        if self.config.adaptive == Adaptive::Holding && !may_be {
            return Duration::ZERO;
        }
        match self.config.hold {
            Hold::None => Duration::ZERO,
            Hold::Fixed(hold) => hold,
            Hold::Learned { most } if congested => {
                self.queue.arrivals.wait(now, next, previous, most).unwrap_or(Duration::ZERO)
            }
            Hold::Learned { .. } => Duration::ZERO,
            Hold::Waits { most } => self.queue.longest_wait(now).min(most),
        }
    }

    /// The place of this packet's partner: one of an opposite flow, or any that both receivers can
    /// decode; of these the one waiting longest.
    fn partner(&self, now: Time, new: &Waiting) -> Option<usize> {
        let may = |entry: &Queued| {
            entry.first.previous.is_some()
                && (self.config.candidates == Candidates::Waiting || entry.ready_at > now)
                && !self.is_late(now, &entry.first, PARTNER_QUARTERS)
                && entry.first.next != new.next
                && entry.first.id != new.id
                && self.knows(now, new.next, &entry.first)
                && self.knows(now, entry.first.next, new)
                && self.pays(now, [entry.first.next, new.next])
        };
        let mut others = self.queue.singles().filter(|(_, entry)| may(entry)).peekable();
        let first = others.peek().map(|&(place, _)| place);
        let opposite = others.find(|(_, entry)| entry.first.is_opposite(new));
        opposite.map(|(place, _)| place).or(first)
    }

    /// Whether a packet has waited for more than this many quarters of the time for which nodes
    /// that have it keep it for decoding.
    fn is_late(&self, now: Time, waiting: &Waiting, quarters: u32) -> bool {
        now.since(waiting.since) > self.config.decode_for * quarters / 4
    }

    /// Whether a receiver knows a packet: it has sent it, or overhears its sender.
    fn knows(&self, now: Time, receiver: NodeId, waiting: &Waiting) -> bool {
        let Some(previous) = waiting.previous else { return false };
        let hears = || self.neighbours.hears(now, receiver, previous);
        receiver == previous || hears().is_some_and(|share| share >= OVERHEARS_MIN)
    }

    /// Whether both receivers can decode, and the one without MAC retries overhears enough.
    fn pays(&self, now: Time, receivers: [NodeId; 2]) -> bool {
        let Some(switch_off) = self.config.switch_off else { return true };
        let heard = receivers.map(|node| self.neighbours.hears(now, node, self.id));
        let [Some(one), Some(other)] = heard else { return false };
        let overhearing = if self.addressee(now, receivers) == 0 { other } else { one };
        overhearing >= switch_off.heard_ratio_min
            && receivers.iter().all(|&node| self.neighbours.decodes(now, node))
    }

    /// The receiver to which the MAC addresses a coded frame, and retransmits it: the one with the
    /// worse link.
    fn addressee(&self, now: Time, receivers: [NodeId; 2]) -> usize {
        let [one, other] = receivers.map(|node| self.neighbours.reached(now, self.id, node));
        usize::from(other < one)
    }

    /// Queues a lost packet for retransmission, in its original position; not if its receiver might
    /// already have forgotten a previous arrival.
    fn resend(&mut self, waiting: Waiting) {
        if self.is_known_no_longer(&waiting) {
            return;
        }
        self.stats.resent += 1;
        let since = waiting.since;
        self.queue.put_back(Waiting { goes_again: true, ..waiting }, (since, 0));
    }

    /// Whether a retransmission has waited so long, for a report and then for the channel, that its
    /// receiver may have forgotten a previous arrival.
    fn comes_too_late(&self, waiting: &Waiting) -> bool {
        waiting.goes_again && self.is_known_no_longer(waiting)
    }

    fn is_known_no_longer(&self, waiting: &Waiting) -> bool {
        self.now.since(waiting.since) > self.config.goes_again_for()
    }

    /// Whether to ask for a report on a packet delivered by the MAC: if the MAC gives up many
    /// frames to that neighbour, or if the packet may already have arrived, so that a node that
    /// holds this frame up must not deliver a copy.
    fn asks(&self, waiting: &Waiting) -> bool {
        self.config.resend && (waiting.goes_again || self.neighbours.is_lossy(waiting.next))
    }

    /// The next entry to send, dropping packets that would arrive too late.
    fn take_queued(&mut self) -> Option<Queued> {
        loop {
            let (next, dropped) = self.queue.take(self.now, self.config.queue_target);
            self.stats.codel_drops += dropped;
            let Queued { first, second, ready_at, order } = next?;
            let second = second.filter(|second| !self.comes_too_late(second));
            if !self.comes_too_late(&first) {
                return Some(Queued { first, second, ready_at, order });
            }
            if let Some(first) = second {
                return Some(Queued { first, second: None, ready_at, order });
            }
        }
    }

    fn resend_overdue(&mut self) {
        while let Some(waiting) = self.owed.overdue(self.now) {
            self.resend(waiting);
        }
    }

    /// The MAC has finished a frame: the number of attempts, and whether it was acknowledged.
    pub fn handle_outcome(
        &mut self,
        now: Time,
        to: LinkDestination,
        attempts: u32,
        delivered: bool,
    ) {
        self.advance(now);
        if let LinkDestination::Unicast(to) = to {
            self.congestion.count(now, attempts.saturating_sub(1));
            self.neighbours.count_attempts(now, to, attempts, delivered);
        }
    }

    /// The MAC's results for one neighbour since the last call, for MACs that report on several
    /// frames together, as drivers of real radios do: finished frames, transmissions beyond the
    /// first of each, and frames given up.
    pub fn handle_retries(&mut self, now: Time, to: NodeId, sent: Sent) {
        self.advance(now);
        let Sent { frames, retries, failed } = sent;
        self.congestion.count(now, u32::try_from(retries).unwrap_or(u32::MAX));
        let vain = retries.saturating_add(failed);
        self.neighbours.count_transmissions(now, to, vain, frames.saturating_sub(failed));
        self.neighbours.count_given_up(now, to, failed, frames);
    }

    /// Whether the MAC's retries are reported: otherwise no channel counts as congested.
    pub fn knows_retries(&self) -> bool {
        self.congestion.is_told()
    }

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.resend_overdue();
    }

    /// When the next packet becomes ready that is not ready yet; ready ones wait for
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn poll_timeout(&self) -> Option<Time> {
        let later = |at: &Time| *at > self.now;
        let announce = self.announce_at.filter(later);
        let report = self.receptions.due().filter(later);
        let queued = self.queue.next_ready(self.now);
        let room = self.queue.under_way.due(self.now).filter(later);
        let repair = self.repair_due().filter(later);
        [queued, announce, report, room, self.owed.due(), repair].into_iter().flatten().min()
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) has a frame.
    pub fn is_ready(&self) -> bool {
        self.is_ready_at(self.now)
    }

    /// The same at a later time.
    pub fn is_ready_at(&self, now: Time) -> bool {
        self.announce_at.is_some_and(|at| at <= now)
            || self.queue.is_ready(now)
            || self.receptions.due().is_some_and(|at| at <= now)
            || self.repair_due().is_some_and(|at| at <= now)
    }

    /// When a repair is due for receivers that may lack something, if there is nothing else to
    /// send.
    fn repair_due(&self) -> Option<Time> {
        let wait = self.queue.longest_wait(self.now);
        if self.config.repair { self.owed.repair_due(wait) } else { None }
    }

    /// The next received packet.
    pub fn poll_received(&mut self) -> Option<Received> {
        self.received.pop_front()
    }

    /// The next frame; call only while the MAC can take one.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.advance(now);
        self.resend_overdue();
        let next = self.next_frame().or_else(|| self.next_repair());
        let is_due = self.receptions.due().is_some_and(|at| at <= self.now);
        if next.is_none() && !is_due {
            return None;
        }
        let reports = self.receptions.take(self.now);
        match next {
            Some(next) if reports.is_empty() => Some(next),
            Some(Transmit { to, frame }) => {
                Some(Transmit { to, frame: wire::with_reports(&reports, &frame) })
            }
            None if reports.is_empty() => None,
            None => {
                self.stats.reports_sent += 1;
                let frame = wire::with_reports(&reports, &[]);
                Some(Transmit { to: LinkDestination::Broadcast, frame })
            }
        }
    }

    fn next_frame(&mut self) -> Option<Transmit> {
        if self.announce_at.is_some_and(|at| at <= self.now) {
            self.announce_at = Some(self.now + self.config.announce_every);
            self.stats.announced += 1;
            let entries = self.neighbours.entries(self.now);
            let frame = Frame::Announcement { counter: self.count(), entries }.to_bytes();
            return Some(Transmit { to: LinkDestination::Broadcast, frame });
        }
        let Queued { first, mut second, ready_at, order } = self.take_queued()?;
        if self.is_late(self.now, &first, PAIR_QUARTERS)
            && let Some(second) = second.take()
        {
            self.queue.put_back(second, (ready_at, order));
        }
        let counter = self.count();
        for waiting in [Some(&first), second.as_ref()].into_iter().flatten() {
            self.queue.under_way.note_sent(self.now, waiting.next, waiting.id);
        }
        let Some(second) = second else {
            self.stats.plain_sent += 1;
            if self.config.coding {
                self.kept.keep(self.now, first.id, Arc::clone(&first.packet));
            }
            let asks = self.asks(&first);
            let Waiting { ttl, packet, next, .. } = &first;
            let frame = Frame::Plain { counter, ttl: *ttl, asks, packet }.to_bytes();
            let to = LinkDestination::Unicast(*next);
            if asks {
                self.owe(counter, first);
            }
            return Some(Transmit { to, frame });
        };
        Some(self.combine(counter, first, second))
    }

    /// A repair: a combination of packets that a neighbour was sent and has not reported.
    fn next_repair(&mut self) -> Option<Transmit> {
        self.repair_due().filter(|&at| at <= self.now)?;
        let counter = self.count();
        let due = self.owed.repair(self.now, self.queue.longest_wait(self.now), counter)?;
        let symbols = due.packets.iter().map(|&(behind, waiting)| {
            let Waiting { ttl, id, packet, .. } = waiting;
            (behind, Symbol { ttl: *ttl, id: *id, packet })
        });
        let (bits, combined) = self.repairs.combine(counter, symbols)?;
        let (to, newest) = (due.to, due.newest as u16);
        self.stats.repairs_sent += 1;
        let covered = Frames { newest, bits };
        let frame = Frame::Repair { counter, covered, combined: &combined }.to_bytes();
        Some(Transmit { to: LinkDestination::Unicast(to), frame })
    }

    /// Combines two packets into one frame, addressed to the receiver with the worse link.
    fn combine(&mut self, counter: u32, first: Waiting, second: Waiting) -> Transmit {
        self.stats.coded_sent += 1;
        self.stats.recoded += u64::from(first.was_coded) + u64::from(second.was_coded);
        let part = |waiting: &Waiting| Part {
            to: waiting.next,
            ttl: waiting.ttl,
            len_bytes: waiting.packet.len() as u16,
            id: waiting.id,
        };
        let xored = xor(&first.packet, &second.packet);
        let parts = [part(&first), part(&second)];
        let receivers = [first.next, second.next];
        let addressee = self.addressee(self.now, receivers);
        let to = receivers[addressee];
        let asks = self.asks(if addressee == 0 { &first } else { &second });
        let frame = Frame::Coded { counter, parts, asks, xored: &xored }.to_bytes();
        // Neighbours' combinations of these come back in coded frames.
        self.kept.keep(self.now, first.id, Arc::clone(&first.packet));
        self.kept.keep(self.now, second.id, Arc::clone(&second.packet));
        let (addressed, overhearing) =
            if addressee == 0 { (first, second) } else { (second, first) };
        if self.config.resend {
            self.owe(counter, overhearing);
        }
        if asks {
            self.owe(counter, addressed);
        }
        Transmit { to: LinkDestination::Unicast(to), frame }
    }

    /// Expects the receiver's report on a packet sent in the frame with this counter.
    fn owe(&mut self, counter: u32, waiting: Waiting) {
        // Its arrival must be remembered until it is reported, and for as long as a repair is held.
        let young = !self.is_late(self.now, &waiting, PARTNER_QUARTERS);
        self.owed.push(self.now, counter, waiting, young);
    }

    fn count(&mut self) -> u32 {
        self.counter = self.counter.wrapping_add(1);
        self.counter
    }
}
