//! A relay between neighbours: sends packets of the host and of neighbours to the next hop, two of
//! different flows as one frame if both receivers can decode it.
//!
//! ```text
//! host -> (1) table of networks -> (2) queue, partner -> (3) sealed for all neighbours -> underlay
//! host <- (7) in order <- (6) is it for us? <- (5) is the source its own? <- [`corridor_relay`]
//!                              `-> decrement hop limit -> (2)                  <- (4) opened <-
//! ```
//! [`corridor_relay`] decides what is combined and who can decode it; this module adds keys and
//! routes. Frames are sealed under the neighbourhood's secret, with a key for each sender and
//! session as between two stations (`link/handshake.rs`), so that every neighbour can overhear them
//! and nobody else can. Only new frames that open under the accepted session of a configured
//! neighbour reach the relay. The key that opened a frame identifies its sender, and the body names
//! its receiver.
//!
//! Where two hosts know each other's keys, packets between them are followed by a tag
//! (`relay_station/ends.rs`), and no relay needs to know about it.
//!
//! Frames made for a longer limit than the interface's present one are sent in parts (`parts.rs`).
//!
//! A packet's bytes are the same on every hop, because they identify it once it has been combined.
//! Its hop limit is carried beside it, and written into it where it is delivered to its host.

mod counters;
mod ends;
mod late;
mod parts;
mod to_host;
mod view;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;

use corridor_base::rand::SeedableRng;
use corridor_base::{Stream, Time};
use corridor_packet::{PacketBuf, PacketRef};
use corridor_relay::wire::{CODED_BYTES, Frame, REPORTS_BYTES_MAX};
use corridor_relay::{
    LinkDestination, NodeId, Received, Relay, RelayConfig, RelayError, Sent, Taken,
};
use ipnet::IpNet;

pub use counters::RelayCounters;
pub use ends::RelayEnd;
pub use view::{RelayNeighbourView, RelayView};

use crate::bounds::{EVENTS_MAX, FRAME_LEN_MIN, RELAY_NEIGHBOURS_MAX};
use crate::clocks::Clocks;
use crate::config::{Role, STATION_NUMBER, StationConfig, StationId};
use crate::error::ConfigError;
use crate::host::icmp_error::{IPV6_MESSAGE_LEN_MAX, Stopped};
use crate::hub::icmp::IcmpErrors;
use crate::hub::{Networks, Place, table};
use crate::link::handshake::{Group, Opening, Setting};
use crate::link::pacer::Pacer;
use crate::station::{
    Destination, Event, FrameOutcome, PacketOutcome, Rejection, Transmit, count_refused,
};
use crate::stats::Stats;
use crate::wire::{self, Chunk, Chunks, END_TRAILER_LEN, Kind, OVERHEAD_LEN, RELAYED_LEN, Relayed};
use counters::Drops;
use ends::{Ends, Refused};
use parts::Frames;
use to_host::ToHost;

/// Bytes of a frame in addition to the longer of its two packets.
const OVERHEAD_BYTES: usize = OVERHEAD_LEN + RELAYED_LEN + REPORTS_BYTES_MAX + CODED_BYTES;

/// Bytes of a frame with a message about a packet, which is sent in parts if it is too long.
const ANSWER_BYTES_MAX: usize = IPV6_MESSAGE_LEN_MAX + END_TRAILER_LEN + OVERHEAD_BYTES;

/// Configuration of a relay.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayStationConfig {
    /// Common settings; the role is [`Role::Relay`]. Waiting packets, of the host and of others
    /// together, are bounded by [`RelayConfig::queue_packets`], and retransmissions in addition by
    /// [`OWED_MAX`](corridor_relay::OWED_MAX). TCP segments for the host that wait for earlier ones
    /// are bounded by [`HELD_MAX`](corridor_relay::in_order::HELD_MAX).
    pub station: StationConfig,
    /// Settings of coding, and of waiting for partners.
    pub relay: RelayConfig,
    /// The neighbours, and the networks that each leads to.
    pub neighbours: Vec<(StationId, Vec<IpNet>)>,
    /// Addresses of its own host.
    pub own: Vec<IpAddr>,
    /// Address all frames to all neighbours on the link: for links that withhold frames for others.
    /// MACs do not acknowledge such frames, so what neighbours do not report is sent again.
    pub broadcast: bool,
    /// Ends with which this host exchanges packets with tags that only the two can make, across any
    /// relays. Only where stations have key pairs.
    pub ends: Vec<RelayEnd>,
}

/// A relay with its keys and routes. It has the methods of a [`crate::Station`].
pub struct RelayStation {
    now: Time,
    config: StationConfig,
    broadcast: bool,
    group: Group,
    relay: Relay,
    table: Table,
    icmp_errors: IcmpErrors,
    pacer: Pacer,
    frames: Frames,
    to_host: ToHost,
    events: VecDeque<Event>,
    /// The frame being made, and the body of the frame being read.
    frame: Vec<u8>,
    body: Vec<u8>,
    stats: Stats,
    drops: Drops,
}

/// The sender of a frame, and how the frame came.
#[derive(Clone, Copy)]
struct Sender {
    id: StationId,
    /// It was delayed in transit for too long.
    is_held_up: bool,
}

/// The owners of addresses.
struct Table {
    /// The neighbour that leads to a network.
    networks: Networks,
    /// Ends whose packets have tags.
    ends: Ends,
}

impl RelayStation {
    /// Starts a relay. `entropy` is 32 bytes of fresh randomness, as for [`crate::Station::new`].
    ///
    /// # Errors
    /// As [`StationConfig::check`]; a setting of the relay out of range; no neighbours or too many;
    /// or one network for two of them.
    pub fn new(
        config: RelayStationConfig,
        entropy: [u8; 32],
        clocks: impl Into<Clocks>,
    ) -> Result<Self, ConfigError> {
        let clocks = clocks.into();
        let now = clocks.now;
        let RelayStationConfig { mut station, relay, neighbours, own, broadcast, ends } = config;
        station.check()?;
        check_neighbours(&station, &neighbours)?;
        let networks = table(&neighbours, &own)?;
        let ends = Ends::new(&ends, &station.security, clocks.into())?;
        let in_order = relay.in_order;
        let relay = Relay::new(NodeId(station.id.0), relay, now).map_err(setting)?;
        let relay = if broadcast { relay.unacknowledged() } else { relay };
        // HELLOs state a symbol size, though a relay has no symbols.
        let most = wire::symbol_size_max(station.frame_len_max, &station.coding, true);
        station.coding.symbol_size = most.min(usize::from(u16::MAX)) as u16;
        let peers: Vec<StationId> = neighbours.iter().map(|&(id, _)| id).collect();
        let security = station.security.for_peers(&peers)?;
        let rng = Stream::from_rng(&mut Stream::from_seed(entropy));
        // No relay has a window.
        let (coding, crossing) = (station.coding, station.crossing());
        let setting =
            Setting { coding, crossing, received_bytes: 0, feedback: coding.ack_interval };
        let mut group = Group::new(station.id, &security, &peers, setting, rng, clocks);
        group.limit_frames(station.frame_len_max);
        Ok(RelayStation {
            now,
            broadcast,
            group,
            relay,
            table: Table { networks, ends },
            icmp_errors: IcmpErrors::new(&own),
            pacer: Pacer::new(station.rate_bps),
            frames: Frames::new(station.frame_len_max),
            to_host: ToHost::new(in_order),
            events: VecDeque::new(),
            frame: Vec::new(),
            body: Vec::new(),
            stats: Stats::default(),
            drops: Drops::default(),
            config: station,
        })
    }

    /// Replaces the networks that neighbours lead to. Neighbours that are not named lead nowhere.
    ///
    /// # Errors
    /// As [`new`](Self::new) for the networks; nothing has changed then.
    pub fn set_networks(
        &mut self,
        neighbours: &[(StationId, Vec<IpNet>)],
        own: &[IpAddr],
    ) -> Result<(), ConfigError> {
        self.table.networks = table(neighbours, own)?;
        self.icmp_errors.set_own(own);
        Ok(())
    }

    /// As [`crate::Station::set_clock`]; other ends also use it to distinguish new packets from
    /// replays.
    pub fn set_clock(&mut self, clocks: Clocks) {
        self.group.set_clock(clocks);
        self.table.ends.set_clock(clocks.into());
    }

    // ---- input --------------------------------------------------------------------------------

    /// Takes an IP packet from the host.
    pub fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome {
        self.now = now;
        let packet = PacketRef::read(packet);
        let (len, max) = (packet.len(), self.tunnel_mtu());
        if packet.is_empty() {
            self.stats.packets_refused += 1;
            return PacketOutcome::Empty;
        }
        let place = packet.addresses().and_then(|(_, to)| self.table.networks.place(to));
        let next = match place {
            Some(Place::Neighbour(next)) if self.group.is_reachable(next) => next,
            place => {
                let is_known = matches!(place, Some(Place::Neighbour(_)));
                let count =
                    if is_known { &mut self.drops.silent } else { &mut self.drops.unrouted };
                *count += 1;
                self.icmp_errors.queue_no_route(now, packet);
                return PacketOutcome::NoRoute;
            }
        };
        if len > max {
            self.stats.packets_refused += 1;
            self.icmp_errors.queue_too_big(now, packet, max);
            return PacketOutcome::TooLong { len, max };
        }
        match self.send(next, packet) {
            Ok(()) => {
                self.stats.note_accepted(len);
                PacketOutcome::Accepted
            }
            Err(RelayError::Full { .. }) => {
                self.stats.packets_dropped_ingress += 1;
                PacketOutcome::QueueFull
            }
            Err(_) => PacketOutcome::NotCarried,
        }
    }

    /// Queues a packet that was made or accepted here for a neighbour.
    fn send(&mut self, next: StationId, packet: PacketRef<'_>) -> Result<(), RelayError> {
        let hops = packet.hops().unwrap_or(0);
        let mut bytes = packet.bytes().to_vec();
        if let Some((_, to)) = packet.addresses() {
            self.table.ends.seal(self.now, to, &mut bytes);
        }
        self.relay.send(self.now, node(next), hops.into(), bytes.into())
    }

    /// Takes a frame from the underlay.
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) -> FrameOutcome {
        self.now = now;
        let mut body = core::mem::take(&mut self.body);
        let outcome = match self.group.open(now, frame, &mut body) {
            Opening::Frame(opened) => {
                let after = self.relay.config().held_up_after();
                let is_held_up = self.frames.heard.note(now, opened, after);
                let from = Sender { id: opened.from, is_held_up };
                // A chunk that is refused ends the frame.
                let taken = Chunks::new(&body).try_for_each(|chunk| self.take_chunk(from, chunk));
                self.route_received();
                match taken {
                    Ok(()) => {
                        self.stats.frames_accepted += 1;
                        FrameOutcome::Accepted { from: opened.from }
                    }
                    Err(rejection) => FrameOutcome::Rejected(rejection),
                }
            }
            Opening::Hello { from, accepted, joined, differs } => {
                if let Some(joined) = joined {
                    self.stats.sessions_accepted += 1;
                    let restarted = joined.new_instance && !joined.first;
                    self.frames.heard.forget(from);
                    if joined.new_instance {
                        self.relay.forget(node(from));
                        let longest = joined.chunk_len_max().max(ANSWER_BYTES_MAX);
                        self.frames.expect(from, longest);
                    }
                    self.push_event(Event::SessionUp { peer: from, restarted });
                }
                if let Some(theirs) = differs {
                    let ours = self.config.crossing();
                    self.push_event(Event::ModeDiffers { peer: from, theirs, ours });
                }
                match accepted {
                    true => FrameOutcome::Accepted { from },
                    false => FrameOutcome::Handshake { from },
                }
            }
            Opening::Initiation { from } => FrameOutcome::Initiation { from },
            Opening::Response { from } => {
                self.stats.secrets_agreed += 1;
                FrameOutcome::Accepted { from }
            }
            Opening::Cookie => {
                self.stats.cookies_taken += 1;
                FrameOutcome::Noted
            }
            Opening::Overheard => FrameOutcome::Noted,
            refused => FrameOutcome::Rejected(count_refused(&mut self.stats, &refused)),
        };
        self.body = body;
        outcome
    }

    /// Passes a neighbour's frame to the relay.
    fn take_chunk(&mut self, from: Sender, chunk: Option<Chunk<'_>>) -> Result<(), Rejection> {
        if let Some(Chunk { kind: Kind::Part, body, .. }) = chunk {
            return self.take_part(from, body);
        }
        let relayed = chunk.filter(|chunk| chunk.kind == Kind::Relayed);
        let relayed = relayed.and_then(|chunk| Relayed::parse(chunk.body));
        // Only announcements are for all: a packet has one next hop.
        let is_sound =
            |relayed: &Relayed<'_>| relayed.to.is_none() == Frame::is_for_all(relayed.frame);
        let Some(relayed) = relayed.filter(is_sound) else {
            self.drops.malformed += 1;
            return Err(Rejection::NotForUs);
        };
        let addressed = relayed.to == Some(self.config.id);
        let take = if from.is_held_up { Relay::handle_held_up } else { Relay::handle_frame };
        match take(&mut self.relay, self.now, node(from.id), addressed, relayed.frame) {
            Taken::Yes => Ok(()),
            Taken::Malformed => Err(Rejection::NotForUs),
            Taken::HeldUp => Err(Rejection::HeldUp),
        }
    }

    /// Routes all packets that the relay has received.
    fn route_received(&mut self) {
        while let Some(received) = self.relay.poll_received() {
            let from = StationId(received.from.0);
            let bytes = received.packet.clone();
            let packet = PacketRef::read(&bytes);
            let is_own = |source| self.table.networks.place(source) == Some(Place::Neighbour(from));
            let Some((_, to)) = packet.addresses().filter(|&(source, _)| is_own(source)) else {
                self.drops.wrong_source += 1;
                continue;
            };
            match self.table.networks.place(to) {
                Some(Place::Neighbour(next)) if next == from => self.drops.turned_back += 1,
                Some(Place::Neighbour(next)) => self.forward((from, next), received, packet),
                Some(Place::Host) | None => self.deliver(received.ttl, packet),
            }
        }
    }

    /// Forwards a packet from one neighbour to another.
    fn forward(
        &mut self,
        (from, next): (StationId, StationId),
        received: Received,
        packet: PacketRef<'_>,
    ) {
        if received.ttl == 0 {
            self.drops.expired += 1;
            let error = self.icmp_errors.write(self.now, packet, Stopped::HopsUsedUp);
            return self.answer(from, error);
        }
        // The sending host does not know of the trailer, so that is not counted in the length it is
        // told.
        let max = self.forwarded_len_max();
        if packet.len() > max {
            self.drops.too_long += 1;
            let max = max.saturating_sub(packet.len().saturating_sub(packet.view().end()));
            let error = self.icmp_errors.write_too_big(self.now, packet, max);
            return self.answer(from, error);
        }
        if !self.group.is_reachable(next) {
            self.drops.silent += 1;
            let error = self.icmp_errors.write(self.now, packet, Stopped::NoRoute);
            return self.answer(from, error);
        }
        let (hops, coded) = ((node(from), node(next)), received.was_coded);
        // The relay itself counts what the queue has no room for.
        let _ = self.relay.forward_received(self.now, hops, received.ttl, (received.packet, coded));
    }

    /// Sends a message about a packet back to where the packet came from.
    fn answer(&mut self, to: StationId, message: Option<PacketBuf>) {
        let Some(message) = message else { return };
        // A message that quotes more than a frame carries is sent in parts.
        let _ = self.send(to, message.packet());
    }

    /// Delivers a packet to the host in order, with its remaining hop limit, if it is what its end
    /// sent.
    fn deliver(&mut self, ttl: u16, packet: PacketRef<'_>) {
        self.drops.unnamed += u64::from(self.table.ends.is_unnamed(packet));
        let len = match self.table.ends.open(packet) {
            Ok(len) => len,
            Err(refused) => return self.refuse(refused, packet),
        };
        let packet = PacketRef::read(&packet.bytes()[..len]);
        let mut packet = PacketBuf::copy(packet, self.to_host.buffer());
        // Where a packet ends, the hop limit is not decremented.
        packet.limit_hops(u8::try_from(ttl.saturating_add(1)).unwrap_or(u8::MAX));
        self.to_host.take(self.now, packet, &mut self.stats);
    }

    /// Counts a packet that was refused, and reports it now and then.
    fn refuse(&mut self, refused: Refused, packet: PacketRef<'_>) {
        let told = self.table.ends.tells_of(self.now, refused, packet);
        let (count, event) = match refused {
            Refused::Forged => {
                (&mut self.drops.forged, told.map(|from| Event::PacketForged { from }))
            }
            Refused::Replayed => {
                (&mut self.drops.replayed, told.map(|from| Event::PacketRepeated { from }))
            }
        };
        *count += 1;
        if let Some(event) = event {
            self.push_event(event);
        }
    }

    /// Reports what the interface's MAC did for a neighbour since the last call. Without such
    /// calls, no channel counts as congested, and all neighbours as equally reachable.
    pub fn handle_retries(&mut self, now: Time, to: StationId, sent: Sent) {
        self.now = now;
        self.relay.handle_retries(now, node(to), sent);
    }

    /// Fires the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        while let Some(peer) = self.group.newly_silent(now) {
            self.push_event(Event::PeerSilent { peer });
        }
        self.group.handle_timeout(now);
        self.relay.handle_timeout(now);
        self.to_host.handle_timeout(now, &mut self.stats);
    }

    // ---- output -------------------------------------------------------------------------------

    /// The next frame, made now, as [`crate::Station::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
        self.now = now;
        self.pacer.begin_poll();
        let len_min = self.config.frame_len_min;
        let to = if let Some(peer) = self.group.poll_exchange(now, &mut self.frame) {
            self.stats.control_frames_sent += 1;
            Destination::Search(peer)
        } else if self.group.hello_due() <= now {
            self.group.write_hello(now, 0, &mut self.frame, len_min);
            self.stats.control_frames_sent += 1;
            Destination::All
        } else {
            // Packets that may not be sent yet are not taken: while they wait they may still get a
            // partner.
            let is_ready = self.frames.is_cutting() || self.relay.is_ready_at(now);
            if !is_ready || !self.pacer.allows(now) {
                return None;
            }
            self.group.begin(&mut self.frame);
            let to = if self.frames.is_cutting() {
                self.write_part()
            } else {
                let corridor_relay::Transmit { to, frame } = self.relay.poll_transmit(now)?;
                let to = match to {
                    LinkDestination::Unicast(NodeId(to)) => Some(StationId(to)),
                    LinkDestination::Broadcast => None,
                };
                self.write_relayed(&Relayed { to, frame: &frame });
                to
            };
            self.group.seal(&mut self.frame, len_min);
            to.filter(|_| !self.broadcast).map_or(Destination::All, Destination::Station)
        };
        self.stats.frames_sent += 1;
        self.stats.bytes_sent += self.frame.len() as u64;
        self.pacer.note_sent(now, self.frame.len());
        Some(Transmit { to, frame: &self.frame, probes: false })
    }

    /// The next packet for the host, valid until the next call.
    pub fn poll_packet(&mut self) -> Option<PacketRef<'_>> {
        if self.icmp_errors.has_queued() {
            return self.icmp_errors.pop();
        }
        self.to_host.pop()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) next, if nothing comes in before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let hello = Some(self.group.hello_due());
        let relay = self.relay.poll_timeout();
        let order = self.to_host.poll_timeout();
        let ready = match self.pacer.poll_timeout() {
            Some(pace) => Some(pace),
            None => {
                let is_ready = self.frames.is_cutting() || self.relay.is_ready();
                is_ready.then_some(self.now)
            }
        };
        [hello, self.group.exchange_due(), relay, order, ready].into_iter().flatten().min()
    }

    fn push_event(&mut self, event: Event) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    // ---- what others read, and what an operator sets ------------------------------------------

    /// The MTU to set on the TUN device, in bytes: such a packet, with its trailer for another end,
    /// fits a frame together with another packet.
    pub fn tunnel_mtu(&self) -> usize {
        self.forwarded_len_max().saturating_sub(self.table.ends.trailer_len_max())
    }

    /// Longest packet to forward, in bytes.
    fn forwarded_len_max(&self) -> usize {
        self.frames.frame_len.saturating_sub(OVERHEAD_BYTES)
    }

    /// Shortest frame in bytes that carries a packet of this length; `None` if none does.
    pub fn frame_len_for(&self, packet_len: usize) -> Option<usize> {
        let packet_len = packet_len + self.table.ends.trailer_len_max();
        let len = (packet_len + OVERHEAD_BYTES).max(FRAME_LEN_MIN);
        (len <= self.config.frame_len_max).then_some(len)
    }

    /// Longest frame in bytes.
    pub fn frame_len(&self) -> usize {
        self.frames.frame_len
    }

    /// Sets the longest frame that the interface accepts, in bytes, which may be more than before.
    /// Waiting packets that were made for longer ones are sent in parts.
    pub fn limit_frames(&mut self, now: Time, len: usize) {
        self.now = now;
        let frame_len = len.clamp(FRAME_LEN_MIN, self.config.frame_len_max);
        if frame_len == core::mem::replace(&mut self.frames.frame_len, frame_len) {
            return;
        }
        self.group.limit_frames(frame_len);
        let tunnel_mtu = self.tunnel_mtu();
        if let Some(peer) = self.group.inspect().first().map(|peer| peer.id) {
            self.push_event(Event::PathMtu { peer, frame_len, tunnel_mtu });
        }
    }

    /// Paces frames from now on at this rate in bit/s; `None`: as fast as the underlay takes them.
    pub fn set_rate_bps(&mut self, rate_bps: Option<u64>) {
        self.config.rate_bps = rate_bps;
        self.pacer.set_configured(rate_bps);
    }

    /// As [`crate::Station::set_rekey_interval`].
    pub fn set_rekey_interval(&mut self, interval: Duration) {
        self.group.set_rekey_interval(interval);
    }

    /// Sends a HELLO soon.
    pub fn greet(&mut self, now: Time) {
        self.group.hurry_hello(now);
    }

    /// As [`Station::set_session_frames`](crate::Station::set_session_frames).
    pub fn set_session_frames(&mut self, frames: u32) {
        self.group.set_session_frames(frames);
    }

    /// The common settings.
    pub fn config(&self) -> &StationConfig {
        &self.config
    }

    /// The counters since the start that every station has.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

fn node(id: StationId) -> NodeId {
    NodeId(id.0)
}

/// Checks the neighbours.
fn check_neighbours(
    station: &StationConfig,
    neighbours: &[(StationId, Vec<IpNet>)],
) -> Result<(), ConfigError> {
    if station.role != Role::Relay {
        return Err(ConfigError::new("station.role", "another", "relay"));
    }
    let count = neighbours.len();
    if !(1..=RELAY_NEIGHBOURS_MAX).contains(&count) {
        let expected = format!("1 to {RELAY_NEIGHBOURS_MAX} neighbours");
        return Err(ConfigError::new("peer", count, expected));
    }
    for (index, &(id, _)) in neighbours.iter().enumerate() {
        if id.0 == 0 {
            return Err(ConfigError::new("peer.id", id.0, STATION_NUMBER));
        }
        let before = neighbours[..index].iter().any(|&(other, _)| other == id);
        if before || id == station.id {
            let expected = "a number no other station of the group has";
            return Err(ConfigError::new("peer.id", id.0, expected));
        }
    }
    Ok(())
}

/// An invalid setting of the relay, by its name in configuration files.
pub(crate) fn setting(error: RelayError) -> ConfigError {
    match error {
        RelayError::Setting { field, given, expected } => {
            let field = match field {
                "hold" => "relay.hold_ms",
                "decode_for" => "relay.decode_ms",
                "announce_every" => "relay.announce_ms",
                "heard_ratio_min" => "relay.heard_ratio_min",
                "failed_ratio_max" => "relay.failed_ratio_max",
                "queue_target" => "relay.queue_target_ms",
                "queue_packets" => "relay.queue_packets",
                "window_packets" => "relay.window_packets",
                _ => "relay",
            };
            ConfigError::new(field, given, expected)
        }
        other => ConfigError::new("relay", other, "settings that can be"),
    }
}
