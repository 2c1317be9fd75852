//! Relays at nodes: all packets that cross a radio there pass through the relay, which turns them
//! into frames of bytes.
//!
//! Packets of agents have a length but no bytes. A relay gets bytes of that length: a number that
//! identifies the packet, then bytes that follow from the number, so that a wrongly decoded packet
//! is noticed.

use std::collections::VecDeque;
use std::sync::Arc;

use corridor_air::Address;
use corridor_base::Time;
use corridor_relay::in_order::{InOrder, InOrderStats, Segment, SegmentKind};
use corridor_relay::{
    LinkDestination, NodeId, Received, Relay, RelayConfig, RelayError, RelayStats, Transmit,
};

use super::air::RadioIndex;
use super::topology::NetworkError;
use super::{Entity, Network};
use crate::core::agent::{Body, NodeIndex, Packet};
use crate::core::network::air::Frame;
use crate::core::watch::Crossing;
use crate::tcp;

/// Frames that a relay hands to the MAC at once: one on the air, and one behind it. The others wait
/// in the relay, where they may still find a partner to be XORed with.
const FRAMES_AT_MAC: usize = 2;
/// Most packets that relays may have in flight in the whole network; the oldest are given up.
const UNDER_WAY_MAX: usize = 1 << 17;
/// Bytes of the number that identifies a packet.
const NUMBER_BYTES: usize = 8;

/// The relay at a node's place on a radio.
pub(super) struct Seat {
    relay: Relay,
    /// Packets for the node's agents; TCP segments wait here for those before them.
    in_order: InOrder<u32, Packet>,
    node: NodeIndex,
    place: (RadioIndex, usize),
    entity: usize,
    /// Frames that the MAC has.
    at_mac: usize,
}

/// The packets that the numbers in frames identify.
#[derive(Default)]
pub(super) struct UnderWay {
    /// Number of the first one.
    first: u64,
    packets: VecDeque<Arc<Packet>>,
}

/// Why bytes identify no packet.
#[derive(Clone, Copy, Debug)]
enum NotFound {
    /// More than [`UNDER_WAY_MAX`] packets have begun since.
    GivenUp,
    /// They differ from what was sent.
    Corrupted,
}

impl UnderWay {
    /// The bytes that represent a packet: its number, and what follows from it.
    fn begin(&mut self, packet: Arc<Packet>) -> Arc<[u8]> {
        let number = self.first + self.packets.len() as u64;
        let bytes = bytes_of(number, packet.len_bytes as usize);
        self.packets.push_back(packet);
        if self.packets.len() > UNDER_WAY_MAX {
            self.packets.pop_front();
            self.first += 1;
        }
        bytes
    }

    /// The packet that these bytes represent.
    fn find(&self, bytes: &[u8]) -> Result<Arc<Packet>, NotFound> {
        let head = bytes.first_chunk::<NUMBER_BYTES>().ok_or(NotFound::Corrupted)?;
        let number = u64::from_be_bytes(*head);
        let place = number.checked_sub(self.first).ok_or(NotFound::GivenUp)?;
        let packet = usize::try_from(place).ok().and_then(|place| self.packets.get(place));
        let packet = packet.ok_or(NotFound::Corrupted)?;
        match *bytes_of(number, packet.len_bytes as usize) == *bytes {
            true => Ok(Arc::clone(packet)),
            false => Err(NotFound::Corrupted),
        }
    }
}

fn bytes_of(number: u64, len_bytes: usize) -> Arc<[u8]> {
    let mut bytes = Vec::with_capacity(len_bytes.max(NUMBER_BYTES) + NUMBER_BYTES);
    bytes.extend_from_slice(&number.to_be_bytes());
    let mut word = number;
    while bytes.len() < len_bytes {
        // SplitMix64's increment and mixing; any function of number and position would do.
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 27)).to_be_bytes());
    }
    bytes.truncate(len_bytes.max(NUMBER_BYTES));
    bytes.into()
}

impl Network {
    /// Sends all packets that leave a node by its place on a radio through a relay there. The MAC
    /// has to be promiscuous for the relay to overhear anything.
    ///
    /// # Errors
    /// [`NetworkError::RelayPlace`], [`NetworkError::Relay`].
    pub fn add_relay(
        &mut self,
        radio: RadioIndex,
        place: usize,
        config: RelayConfig,
    ) -> Result<(), NetworkError> {
        let there = self.radios.get(radio).and_then(|radio| radio.places.get(place).copied());
        let id = u16::try_from(place).ok().map(NodeId);
        let (Some((node, None)), Some(id)) = (there, id) else {
            return Err(NetworkError::RelayPlace { radio, place });
        };
        let in_order = InOrder::new(config.in_order);
        let relay = Relay::new(id, config, self.now);
        let relay = relay.map_err(|source| NetworkError::Relay { node, source })?;
        let index = self.relays.len() as u32;
        let entity = self.add_entity(Entity::Relay(index));
        self.agenda.wake(entity, relay.poll_timeout());
        self.relays.push(Seat { relay, in_order, node, place: (radio, place), entity, at_mac: 0 });
        self.relay_at.insert((radio, place), index);
        Ok(())
    }

    /// Counters of the relay at a place of a radio, if there is one.
    pub fn relay_stats(&self, radio: RadioIndex, place: usize) -> Option<RelayStats> {
        let index = *self.relay_at.get(&(radio, place))?;
        Some(self.relays[index as usize].relay.stats())
    }

    /// Counters of all relays together.
    pub fn relays_stats(&self) -> impl Iterator<Item = RelayStats> {
        self.relays.iter().map(|seat| seat.relay.stats())
    }

    /// Counters of in-order delivery at all relays' nodes.
    pub fn in_order_stats(&self) -> impl Iterator<Item = InOrderStats> {
        self.relays.iter().map(|seat| seat.in_order.stats())
    }

    /// Gives the relay at a place a packet that its own node sends.
    pub(super) fn send_by_relay(
        &mut self,
        index: u32,
        (to, next): (usize, NodeIndex),
        packet: &Arc<Packet>,
        ttl: u16,
    ) {
        let bytes = self.under_way.begin(Arc::clone(packet));
        let relay = &mut self.relays[index as usize].relay;
        let taken = relay.send(self.now, NodeId(to as u16), ttl, bytes);
        self.note_taken(index, next, packet, taken);
        self.drain_relay(index);
    }

    fn note_taken(
        &mut self,
        index: u32,
        next: NodeIndex,
        packet: &Packet,
        taken: Result<(), RelayError>,
    ) {
        let node = self.relays[index as usize].node;
        let crossing = match taken {
            Ok(()) => Crossing::Sent(next),
            Err(RelayError::Expired) => {
                self.stats.expired += 1;
                Crossing::Expired
            }
            Err(_) => {
                self.stats.refused += 1;
                Crossing::Dropped(next)
            }
        };
        if let Some(watcher) = &mut self.watcher {
            watcher.take_packet(self.now, node, packet, crossing);
        }
    }

    /// Handles a frame of another relay that has arrived at a place.
    pub(super) fn take_relayed(
        &mut self,
        (radio, from, to): (RadioIndex, usize, usize),
        at: Time,
        addressed: bool,
        frame: &[u8],
    ) {
        let Some(&index) = self.relay_at.get(&(radio, to)) else { return };
        let relay = &mut self.relays[index as usize].relay;
        relay.handle_frame(at, NodeId(from as u16), addressed, frame);
        while let Some(received) = self.relays[index as usize].relay.poll_received() {
            self.take_from_relay(index, received);
        }
        self.drain_relay(index);
    }

    /// Passes what a relay has extracted from a frame to its destination, or on.
    fn take_from_relay(&mut self, index: u32, received: Received) {
        let Seat { node, place: (radio, _), .. } = self.relays[index as usize];
        let packet = match self.under_way.find(&received.packet) {
            Ok(packet) => packet,
            Err(NotFound::GivenUp) => return self.stats.refused += 1,
            Err(NotFound::Corrupted) => return self.stats.corrupted += 1,
        };
        self.stats.packet_hops += 1;
        if packet.to == node {
            let packet = Arc::unwrap_or_clone(packet);
            let in_order = &mut self.relays[index as usize].in_order;
            in_order.take(self.now, segment(&packet), packet);
            return self.hand_over_ordered(index);
        }
        let next = self.router.next(node, packet.to);
        let hop = next.and_then(|link| self.router.on_air(link).map(|air| (link, air)));
        let Some((link, air)) = hop.filter(|(_, air)| air.radio as usize == radio) else {
            // Forwarded by another radio or a pipe, or without any route.
            return self.take_from_air(node, packet, received.ttl.saturating_add(1));
        };
        let next = self.router.ends(link).1;
        let relay = &mut self.relays[index as usize].relay;
        let hops = (received.from, NodeId(air.to as u16));
        let bytes = (received.packet, received.was_coded);
        let taken = relay.forward_received(self.now, hops, received.ttl, bytes);
        self.note_taken(index, next, &packet, taken);
    }

    /// Delivers the packets that no longer wait for earlier ones.
    fn hand_over_ordered(&mut self, index: u32) {
        let node = self.relays[index as usize].node;
        while let Some(packet) = self.relays[index as usize].in_order.poll() {
            self.hand_over(node, packet);
        }
    }

    /// The MAC has finished with a relay's frame.
    pub(super) fn take_relay_outcome(
        &mut self,
        (radio, from): (RadioIndex, usize),
        to: Address,
        (delivered, attempts): (bool, u32),
    ) {
        let Some(&index) = self.relay_at.get(&(radio, from)) else { return };
        let to = match to {
            Address::All => LinkDestination::Broadcast,
            Address::Station(place) => LinkDestination::Unicast(NodeId(place as u16)),
        };
        let seat = &mut self.relays[index as usize];
        seat.at_mac = seat.at_mac.saturating_sub(1);
        seat.relay.handle_outcome(self.now, to, attempts, delivered);
        self.drain_relay(index);
    }

    /// Handles a relay's timeout.
    pub(super) fn wake_relay(&mut self, index: u32) {
        let seat = &mut self.relays[index as usize];
        seat.relay.handle_timeout(self.now);
        seat.in_order.handle_timeout(self.now);
        self.hand_over_ordered(index);
        self.drain_relay(index);
    }

    /// Hands the MAC as many frames as it may have.
    fn drain_relay(&mut self, index: u32) {
        let seat = &mut self.relays[index as usize];
        let (radio, place) = seat.place;
        while seat.at_mac < FRAMES_AT_MAC && self.radios[radio].air.has_room(place) {
            let Some(Transmit { to, frame }) = seat.relay.poll_transmit(self.now) else { break };
            let to = match to {
                LinkDestination::Broadcast => Address::All,
                LinkDestination::Unicast(NodeId(place)) => Address::Station(place.into()),
            };
            let frame = Frame::Relayed(frame.into());
            if self.radios[radio].air.offer(self.now, place, to, frame) {
                seat.at_mac += 1;
            } else {
                self.stats.refused += 1;
            }
            self.unsettled.radios.insert(radio);
        }
        let due = [seat.relay.poll_timeout(), seat.in_order.poll_timeout()];
        self.agenda.wake(seat.entity, due.into_iter().flatten().min());
    }
}

/// A packet's TCP sequence numbers, if it has to be delivered in order. Timestamps tick in
/// milliseconds, as in Linux.
fn segment(packet: &Packet) -> Option<Segment<u32>> {
    let Body::Segment(tcp::Segment::Data { sequence, sent_at, .. }) = packet.body else {
        return None;
    };
    let begin = sequence as u32;
    let stamp = (sent_at.as_nanos() / 1_000_000) as u32;
    let (flow, kind, end) = (packet.flow, SegmentKind::Brings, begin.wrapping_add(1));
    Some(Segment { flow, kind, begin, end, stamp: Some(stamp) })
}
