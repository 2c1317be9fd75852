//! The type that drivers use: a station in any role, without clocks or sockets.
//!
//! A driver makes one input (`handle_packet`, `handle_frame`, `handle_timeout`), then drains
//! `poll_transmit`, `poll_packet` and `poll_event` until they return nothing, and calls again at
//! `poll_timeout`. It calls `poll_transmit` only while the underlay can take a frame: frames are
//! made at the last moment, so that they carry the newest feedback and the most packets.

mod beside;
mod chunks;
mod credit;
mod endpoint;
mod helper_station;
mod left_out;
pub(crate) mod parts;
mod path;
mod plain;
mod presence;
mod role;
mod sessions;
mod tcpnc_endpoint;
mod window_endpoint;
#[cfg(test)]
mod window_tests;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_packet::PacketRef;

use crate::bounds::{EVENTS_MAX, FRAME_LEN_MIN, INGRESS_AGE_MAX, REPORT_INTERVAL};
use crate::clocks::Clocks;
use crate::config::{Crossing, Mode, Role, StationConfig, StationId};
use crate::diagnosis::Unopened;
use crate::error::ConfigError;
use crate::host::egress::EgressQueue;
use crate::host::queue::IngressQueue;
use crate::inspect::{HeldView, Inspection, PathView, PeerView};
use crate::link::handshake::{Group, Joined, Opening, Setting};
use crate::link::mtu::FrameLens;
use crate::link::pacer::Pacer;
use crate::memory::{self, MemoryView, Shortage, Shortages};
use crate::stats::Stats;
use crate::wire::{self, ChallengeToken, Header};
use endpoint::Endpoint;
use helper_station::HelperStation;
use parts::{Cut, Parts};
use path::Path;
use plain::Plain;
use presence::Presence;
use tcpnc_endpoint::TcpNcEndpoint;
use window_endpoint::WindowEndpoint;

/// What happened to a packet from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// It waits in the ingress queue.
    Accepted,
    /// The ingress queue is full; the packet is dropped and counted.
    QueueFull,
    /// It is longer than [`Station::tunnel_mtu`], in bytes.
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// It is empty.
    Empty,
    /// This role carries no packets of its own host (a helper).
    NotCarried,
    /// No neighbour of the hub has its destination.
    NoRoute,
}

/// What happened to a frame from the underlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// It was opened under an accepted session, or cannot be a replay because its key derives from
    /// a secret that was just agreed on (RFC 9000, Section 8.1): its underlay address is its
    /// sender's.
    Accepted {
        /// The station that sealed it.
        from: StationId,
    },
    /// It is an authentic handshake frame; its address may be used for an answer, but not yet for
    /// data.
    Handshake {
        /// The station that sealed it.
        from: StationId,
    },
    /// It is an authentic initiation of a key exchange; its address may be used for an answer, with
    /// no more bytes than were received from there.
    Initiation {
        /// The station that made it.
        from: StationId,
    },
    /// Its sender repeats the token of a [`Station::challenge`], and so receives at the address to
    /// which that was sent.
    Answered {
        /// The station that sealed it.
        from: StationId,
        /// The token that it repeats.
        token: ChallengeToken,
    },
    /// It was processed, but says nothing about anybody's address: a cookie, or part of a key
    /// exchange between other stations.
    Noted,
    /// It was rejected, and only counted.
    Rejected(Rejection),
}

/// Why a frame was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Not a Corridor frame: too short, or of another wire version.
    Malformed,
    /// Not sealed under a known key, or modified.
    NotAuthentic,
    /// Received before, or too old to tell.
    Replayed,
    /// Sealed under a session that has not answered our challenge.
    UnknownSession,
    /// Authentic, but not for this station or role.
    NotForUs,
    /// Delayed in transit for too long: its content has been, or will be, sent again.
    HeldUp,
}

/// The receiver of a frame. Which other stations overhear it depends on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One station.
    Station(StationId),
    /// One station, wherever it may be: an answer to its challenge, a key exchange, or a handshake
    /// of a hub, which sends one to each neighbour.
    Search(StationId),
    /// All stations in reach.
    All,
}

/// A frame to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The receiver.
    pub to: Destination,
    /// Its bytes, sealed.
    pub frame: &'a [u8],
    /// It probes whether a frame of its length passes, and must not be fragmented.
    pub probes: bool,
}

/// Something that an operator may want to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A peer has proved that it is alive, with a session of its own.
    SessionUp {
        /// The peer.
        peer: StationId,
        /// It was known before, and has since lost its state.
        restarted: bool,
    },
    /// A peer carries packets in another way than this station: nothing gets through until both are
    /// configured alike.
    ModeDiffers {
        /// The peer.
        peer: StationId,
        /// The way of the peer.
        theirs: Crossing,
        /// The way of this station.
        ours: Crossing,
    },
    /// Frames to the peer may be longer than before, or have to be shorter.
    PathMtu {
        /// The peer.
        peer: StationId,
        /// Longest frame in bytes.
        frame_len: usize,
        /// The new [`Station::tunnel_mtu`] in bytes.
        tunnel_mtu: usize,
    },
    /// A peer has not been heard for [`crate::bounds::PEER_SILENT_HELLOS`] of its HELLOs.
    PeerSilent {
        /// The peer.
        peer: StationId,
    },
    /// A peer has said goodbye: its session has ended.
    PeerGone {
        /// The peer.
        peer: StationId,
    },
    /// What the helper sent for a flow did not derive from the encoder's symbols. None of it was
    /// delivered, and the helper's frames are ignored for a while.
    HelperLeftOut {
        /// The helper.
        helper: StationId,
        /// The encoder.
        flow: StationId,
        /// Whether it must have been the helper. Otherwise somebody may have forged rows in the
        /// encoder's name, and the block was given up before this could be decided.
        is_proven: bool,
        /// For how long.
        span: Duration,
    },
    /// A peer's blocks are so large that there is memory for fewer than two of them, or fewer than
    /// one where they are recoded: nothing from it gets through until its blocks are smaller or
    /// this share of the memory is larger.
    BlocksTooLong {
        /// The peer.
        peer: StationId,
        /// Bytes that one block takes.
        block_bytes: usize,
    },
    /// Coded symbols in an encoder's name are forged: another station seals under its secret, as
    /// its neighbours could. None of them was delivered.
    RowsForged {
        /// The encoder.
        flow: StationId,
    },
    /// A packet across relays is not what its end has sent, or that end sends packets to this one
    /// without tags. It was dropped.
    PacketForged {
        /// The packet's source.
        from: IpAddr,
    },
    /// A packet across relays was received before, or has a lower number than that end's earlier
    /// packets, for example because its clock was set back. It was dropped.
    PacketRepeated {
        /// The packet's source.
        from: IpAddr,
    },
}

/// A station in any role.
pub struct Station {
    shared: Shared,
    role: Box<dyn role::Role>,
}

/// The state that all roles have.
pub(crate) struct Shared {
    pub(crate) config: StationConfig,
    pub(crate) group: Group,
    pub(crate) ingress: IngressQueue,
    pub(crate) egress: EgressQueue,
    pub(crate) stats: Stats,
    pub(crate) pacer: Pacer,
    pub(crate) path: Path,
    presence: Presence,
    events: VecDeque<Event>,
    /// Chunks being sent and received in parts.
    pub(crate) cut: Cut,
    parts: Parts,
    /// The frame being made, and the body of the frame being read.
    pub(crate) frame: Vec<u8>,
    body: Vec<u8>,
    part: Vec<u8>,
    shortages: Shortages,
}

impl Station {
    /// Starts a station, by both [clocks](Clocks) where a driver has two. `entropy` is 32 bytes of
    /// fresh randomness, from which session ids, and with them all nonces, are derived. In a
    /// simulation it comes from the seed.
    ///
    /// # Errors
    /// As [`StationConfig::check`]; or too little memory.
    pub fn new(
        mut config: StationConfig,
        entropy: [u8; 32],
        clocks: impl Into<Clocks>,
    ) -> Result<Self, ConfigError> {
        let clocks = clocks.into();
        let now = clocks.now;
        config.check()?;
        if let Role::Plain { .. } = config.role {
            // It has no symbols: its symbol size in HELLOs states how long packets may be.
            config.coding.symbol_size = 0;
        }
        config.coding.symbol_size = config.symbol_size();
        let follows_lanes = config.ingress_packets == config.coding.ingress_packets_default();
        let shortages = memory::fit(&mut config)?;
        let mut entropy = Stream::from_seed(entropy);
        let mut fork = || Stream::from_rng(&mut entropy);
        let peers: Vec<StationId> = match config.role {
            Role::Endpoint { peer, helper } => [peer].into_iter().chain(helper).collect(),
            Role::Helper { between: (a, b) } => vec![a, b],
            Role::Plain { peer } => vec![peer],
            Role::Relay => Vec::new(),
        };
        let ingress = match (config.coding.mode, config.role) {
            (Mode::Window, Role::Endpoint { .. }) => {
                let seed = fork().next_u64();
                let mut queue = IngressQueue::fair(config.ingress_packets, &config.coding, seed);
                queue.limit_clamps(memory::spare(&config).clamps);
                if follows_lanes {
                    queue.follow_lanes();
                }
                queue
            }
            _ => IngressQueue::fifo(config.ingress_packets),
        };
        let setting = Setting {
            coding: config.coding,
            crossing: config.crossing(),
            received_bytes: memory::divided(&config).received,
            feedback: match config.role {
                Role::Helper { .. } => REPORT_INTERVAL,
                _ => config.coding.ack_interval,
            },
        };
        let security = config.security.for_peers(&peers)?;
        let mut group = Group::new(config.id, &security, &peers, setting, fork(), clocks);
        group.limit_frames(config.frame_len_max);
        let role: Box<dyn role::Role> = match config.role {
            Role::Endpoint { peer, .. } if config.coding.tcp_nc.is_some() => {
                Box::new(TcpNcEndpoint::new(&config, peer, fork())?)
            }
            Role::Endpoint { peer, .. } if config.coding.mode == Mode::Window => {
                let endpoint = WindowEndpoint::new(&config, peer, fork(), now);
                Box::new(endpoint.map_err(ConfigError::codec)?)
            }
            Role::Endpoint { peer, helper } => {
                Box::new(Endpoint::new(&config, peer, helper, &group, fork(), now))
            }
            Role::Helper { between } => Box::new(HelperStation::new(&config, between, fork, now)),
            Role::Plain { peer } => Box::new(Plain::new(peer)),
            Role::Relay => {
                let expected = "endpoint, helper or plain: a relay has neighbours and no peer";
                return Err(ConfigError::new("station.role", "relay", expected));
            }
        };
        let shared = Shared {
            group,
            ingress,
            egress: EgressQueue::keeping(memory::spare(&config).egress_bytes),
            stats: Stats::default(),
            pacer: Pacer::new(config.rate_bps),
            path: Path::new(&config),
            presence: Presence::default(),
            events: VecDeque::new(),
            cut: Cut::default(),
            parts: Parts::default(),
            frame: Vec::new(),
            body: Vec::new(),
            part: Vec::new(),
            shortages,
            config,
        };
        Ok(Station { shared, role })
    }

    /// How the station's share of the node's memory is divided.
    pub fn memory(&self) -> MemoryView {
        memory::divided(&self.shared.config)
    }

    /// Of what the station has fewer than it was told, because its share is small.
    pub fn shortages(&self) -> &[Shortage] {
        &self.shared.shortages
    }

    /// The MTU to set on the TUN device, in bytes; 0 for a helper, which has none. It changes with
    /// [`Event::PathMtu`].
    pub fn tunnel_mtu(&self) -> usize {
        self.tunnel_mtu_of(self.frame_len())
    }

    /// Shortest frame in bytes that carries a packet of this length; `None` if none does.
    pub fn frame_len_for(&self, packet_len: usize) -> Option<usize> {
        let longest = self.shared.config.frame_len_max;
        (FRAME_LEN_MIN..=longest).find(|&len| self.tunnel_mtu_of(len) >= packet_len)
    }

    /// The tunnel's MTU with frames of this length.
    fn tunnel_mtu_of(&self, frame_len: usize) -> usize {
        self.role.packet_len_max(&self.shared, frame_len)
    }

    // ---- the path's MTU -----------------------------------------------------------------------

    /// Searches for the longest frame that the path to the peer carries, by probes. Until it is
    /// found, frames are no longer than `lens.base`. Not for a helper.
    pub fn find_path_mtu(&mut self, now: Time, lens: FrameLens) {
        if self.role.carries_packets() {
            self.shared.path.search(lens);
            if self.shared.path.update() {
                self.limit_symbols(now);
            }
        }
    }

    /// Sets the longest frame that the interface accepts, in bytes, which may be more than before.
    pub fn limit_frames(&mut self, now: Time, len: usize) {
        let len = len.clamp(FRAME_LEN_MIN, self.shared.config.frame_len_max);
        self.shared.path.limit(now, len);
        self.shared.group.limit_frames(len);
        self.follow_path(now);
    }

    /// Frames use another path from now on: what is known about its MTU is checked again.
    pub fn note_path_changed(&mut self, now: Time) {
        self.shared.path.restart(now);
        self.shared.group.hurry_hello(now);
    }

    /// A router reports that frames are too long for the path. This is checked, not believed.
    pub fn note_too_long(&mut self, now: Time) {
        self.shared.path.hint(now);
    }

    /// Longest frame to send to the peer, in bytes.
    pub fn frame_len(&self) -> usize {
        self.shared.path.frame_len()
    }

    /// Applies news about the path's MTU.
    fn follow_path(&mut self, now: Time) {
        if self.shared.path.update() {
            self.limit_symbols(now);
            let (peer, frame_len) = (self.shared.path.peer, self.shared.path.frame_len());
            let tunnel_mtu = self.tunnel_mtu();
            self.shared.push_event(Event::PathMtu { peer, frame_len, tunnel_mtu });
        }
    }

    /// Limits new source symbols to what a frame has room for.
    fn limit_symbols(&mut self, now: Time) {
        let shared = &self.shared;
        let symbol_len_max = shared.symbol_len_max(shared.path.frame_len());
        self.role.limit_symbols(now, symbol_len_max);
    }

    /// Takes an IP packet from the host.
    pub fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome {
        // Parsed here, and nowhere else on its way.
        self.take_packet(now, PacketRef::read(packet))
    }

    /// Takes an IP packet that was parsed already.
    pub(crate) fn take_packet(&mut self, now: Time, packet: PacketRef<'_>) -> PacketOutcome {
        self.admit_packet(now, packet, false)
    }

    /// Takes a packet from another neighbour, which was granted [room](Self::room) for it.
    pub(crate) fn take_kept(&mut self, now: Time, packet: PacketRef<'_>) -> PacketOutcome {
        self.admit_packet(now, packet, true)
    }

    fn admit_packet(&mut self, now: Time, packet: PacketRef<'_>, kept: bool) -> PacketOutcome {
        if !self.role.carries_packets() {
            return PacketOutcome::NotCarried;
        }
        let (len, max) = (packet.len(), self.tunnel_mtu());
        let shared = &mut self.shared;
        if packet.is_empty() || len > max {
            shared.stats.packets_refused += 1;
            return if len > max {
                shared.tell_too_big(now, packet, max);
                PacketOutcome::TooLong { len, max }
            } else {
                PacketOutcome::Empty
            };
        }
        if !self.role.handle_packet(shared, now, packet, kept) {
            return PacketOutcome::QueueFull;
        }
        shared.stats.note_accepted(len);
        PacketOutcome::Accepted
    }

    /// Takes a frame from the underlay.
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) -> FrameOutcome {
        let shared = &mut self.shared;
        shared.ingress.set_now(now);
        let mut body = core::mem::take(&mut shared.body);
        let outcome = match shared.group.open(now, frame, &mut body) {
            Opening::Frame(opened) => {
                shared.stats.frames_accepted += 1;
                self.take_chunks(now, opened, &body, frame.len())
            }
            Opening::Hello { from, accepted, joined, differs } => {
                if let Some(joined) = joined {
                    self.take_joined(now, &joined);
                }
                if let Some(theirs) = differs {
                    let ours = self.shared.config.crossing();
                    self.shared.push_event(Event::ModeDiffers { peer: from, theirs, ours });
                }
                if accepted {
                    FrameOutcome::Accepted { from }
                } else {
                    FrameOutcome::Handshake { from }
                }
            }
            Opening::Initiation { from } => FrameOutcome::Initiation { from },
            Opening::Cookie => {
                shared.stats.cookies_taken += 1;
                FrameOutcome::Noted
            }
            Opening::Overheard => FrameOutcome::Noted,
            Opening::Response { from } => {
                shared.stats.secrets_agreed += 1;
                FrameOutcome::Accepted { from }
            }
            refused => FrameOutcome::Rejected(count_refused(&mut self.shared.stats, &refused)),
        };
        self.shared.body = body;
        self.follow_path(now);
        outcome
    }

    fn take_joined(&mut self, now: Time, joined: &Joined) {
        let shared = &mut self.shared;
        shared.stats.sessions_accepted += 1;
        let restarted = joined.new_instance && !joined.first;
        if joined.new_instance {
            if joined.peer == shared.path.peer {
                // Before the first waiting packet is sent.
                let oldest = Time::ZERO + (now - Time::ZERO).saturating_sub(INGRESS_AGE_MAX);
                shared.ingress.drop_before(oldest, &mut shared.stats);
            }
            shared.parts.expect(joined.peer, joined.chunk_len_max());
            shared.cut.drop_rest();
        }
        self.role.take_joined(shared, now, joined);
        shared.push_event(Event::SessionUp { peer: joined.peer, restarted });
    }

    /// Fires the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        let shared = &mut self.shared;
        while let Some(peer) = shared.group.newly_silent(now) {
            shared.push_event(Event::PeerSilent { peer });
        }
        shared.group.handle_timeout(now);
        shared.ingress.handle_timeout(now);
        shared.path.handle_timeout(now);
        self.role.handle_timeout(shared, now);
        self.follow_path(now);
    }

    /// The next frame, made now; `None` if there is nothing to send before the next input or
    /// [`poll_timeout`](Self::poll_timeout). Call it only while the underlay can take a frame.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
        let shared = &mut self.shared;
        shared.pacer.begin_poll();
        let mut probes = false;
        let to = if !shared.presence.is_closing()
            && let Some(peer) = shared.group.poll_exchange(now, &mut shared.frame)
        {
            shared.stats.control_frames_sent += 1;
            Destination::Search(peer)
        } else if !shared.group.can_seal() {
            return None;
        } else if let Some(to) = shared.poll_presence(now) {
            self.restart_session_if_new();
            to
        } else if shared.presence.is_closing() {
            return None;
        } else if shared.group.hello_due() <= now {
            self.write_hello(now);
            Destination::All
        } else if let Some(is_probe) = shared.poll_path(now) {
            let peer = shared.path.peer;
            probes = is_probe;
            self.restart_session_if_new();
            Destination::Station(peer)
        } else {
            self.role.poll_transmit(shared, now)?
        };
        let shared = &mut self.shared;
        shared.stats.frames_sent += 1;
        shared.stats.bytes_sent += shared.frame.len() as u64;
        if let Destination::Station(to) = to {
            shared.group.note_addressed(to);
        }
        shared.pacer.note_sent(now, shared.frame.len());
        Some(Transmit { to, frame: &shared.frame, probes })
    }

    fn write_hello(&mut self, now: Time) {
        let base = self.role.base();
        let shared = &mut self.shared;
        shared.group.write_hello(now, base, &mut shared.frame, shared.config.frame_len_min);
        shared.stats.control_frames_sent += 1;
        self.restart_session_if_new();
    }

    /// Restarts frame counters if the last frame was the last of its session.
    fn restart_session_if_new(&mut self) {
        if self.shared.group.next_counter() == 0 {
            self.role.restart_session();
        }
    }

    /// The next packet for the host, parsed; valid until the next call.
    pub fn poll_packet(&mut self) -> Option<PacketRef<'_>> {
        self.advance_packet().then(|| self.shared.egress.current())
    }

    /// Advances to the next packet for the host; returns whether there is one.
    pub(crate) fn advance_packet(&mut self) -> bool {
        let Shared { ingress, egress, stats, .. } = &mut self.shared;
        if egress.len() == 0 {
            let mut update = egress.buffer();
            if ingress.window_update(&mut update, stats) {
                egress.push_made(update);
                return egress.pop().is_some();
            }
            egress.put_back(update);
        }
        let Some(packet) = egress.pop() else { return false };
        ingress.clamp_window(packet, stats);
        true
    }

    /// The packet that [`advance_packet`](Self::advance_packet) advanced to.
    pub(crate) fn packet(&self) -> PacketRef<'_> {
        self.shared.egress.current()
    }

    /// The frame that [`poll_transmit`](Self::poll_transmit) last made.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.shared.frame
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) next, if nothing comes in before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let shared = &self.shared;
        let presence = shared.presence.poll_timeout().filter(|_| shared.group.can_seal());
        if shared.presence.is_closing() {
            return presence;
        }
        let role = self.role.poll_timeout(shared);
        let (hello, pace) = (shared.group.hello_due(), shared.pacer.poll_timeout());
        let path = shared.path.poll_timeout().filter(|_| shared.group.is_up(shared.path.peer));
        let dues = [
            Some(hello),
            presence,
            shared.group.exchange_due(),
            role,
            pace,
            path,
            shared.ingress.poll_timeout(),
        ];
        dues.into_iter().flatten().min()
    }

    /// Counters since the start.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// The configuration.
    pub fn config(&self) -> &StationConfig {
        &self.shared.config
    }

    /// The internal state, for observation.
    pub fn inspect(&self) -> Inspection {
        let shared = &self.shared;
        let mut view = Inspection {
            instance: shared.group.instance(),
            peers: shared.group.inspect(),
            ingress_packets: shared.ingress.len(),
            egress_packets: shared.egress.len(),
            events: shared.events.len(),
            parts: shared.parts.inspect(),
            held: HeldView {
                queue: shared.ingress.bytes(),
                spare: shared.egress.bytes() + shared.ingress.clamps_bytes(),
                ..HeldView::default()
            },
            ..Inspection::default()
        };
        self.role.inspect(shared, &mut view);
        view
    }

    /// The chunk being sent in parts, or the last one that was: its kind and body. For tests.
    #[doc(hidden)]
    pub fn cut_chunk(&self) -> &[u8] {
        self.shared.cut.whole()
    }

    /// The neighbours, in the order of the configuration.
    pub fn peers(&self) -> Vec<PeerView> {
        self.shared.group.inspect()
    }

    /// The queue and the round-trip time of this station's own flow. For occasional calls.
    pub fn path(&self, now: Time) -> PathView {
        PathView { queue: self.shared.ingress.view(now), round_trip: self.round_trip() }
    }

    /// What a rejected frame shows nevertheless. This derives a key for a HELLO, so call it rarely.
    pub fn examine(&self, frame: &[u8]) -> Unopened {
        self.shared.group.examine(frame)
    }

    /// Paces frames from now on at this rate in bit/s; `None`: at the rate that the mode measures,
    /// or as fast as the underlay takes them.
    pub fn set_rate_bps(&mut self, rate_bps: Option<u64>) {
        let shared = &mut self.shared;
        shared.config.rate_bps = rate_bps;
        shared.stats.rate_bps = None;
        shared.pacer.set_configured(rate_bps);
        self.role.set_rate(shared);
    }

    /// Whether a frame may belong to an accepted session of a peer, according to its header.
    pub(crate) fn may_open(&self, header: &Header) -> bool {
        self.shared.group.has_session_tag(header.session_tag)
    }

    /// Whether a frame belongs to an accepted session of a peer. Opens it for that, and records
    /// nothing.
    pub(crate) fn is_authentic(&self, header: &Header, frame: &[u8]) -> bool {
        self.shared.group.is_authentic(header, frame)
    }

    /// Permits a frame now, whatever rate window mode has measured: somebody else divides the
    /// channel. A configured rate still applies.
    pub(crate) fn grant(&mut self, now: Time) {
        if self.shared.config.rate_bps.is_none() {
            self.shared.pacer.grant(now);
        }
    }

    /// Another station's frame has left since this one's last.
    pub(crate) fn note_other_left(&mut self) {
        self.role.note_other_left();
    }

    /// Whether the channel is shared, as configured or detected.
    pub(crate) fn is_half_duplex(&self) -> bool {
        self.shared.stats.half_duplex
    }

    /// Whether the peer is up, and its path's MTU is known.
    pub(crate) fn is_path_known(&self) -> bool {
        self.shared.group.is_up(self.shared.path.peer) && self.shared.path.is_settled()
    }

    /// Whether frames can be exchanged with this peer.
    pub fn is_up(&self, peer: StationId) -> bool {
        self.shared.group.is_up(peer)
    }
}

impl Shared {
    /// Longest source symbol that a frame of this length has room for, in bytes.
    fn symbol_len_max(&self, frame_len: usize) -> usize {
        let (coding, recoded) = (&self.config.coding, self.config.role.is_recoded());
        let fits = wire::symbol_size_max(frame_len, coding, recoded);
        fits.min(usize::from(coding.symbol_size))
    }

    fn push_event(&mut self, event: Event) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Seals `self.frame`, begun by `group.begin`.
    pub(crate) fn seal(&mut self) {
        self.group.seal(&mut self.frame, self.config.frame_len_min);
    }
}

/// Counts a frame that was not accepted.
pub(crate) fn count_refused(stats: &mut Stats, refused: &Opening) -> Rejection {
    let (counter, rejection) = match refused {
        Opening::Malformed => (&mut stats.frames_rejected, Rejection::Malformed),
        Opening::Replayed => (&mut stats.frames_replayed, Rejection::Replayed),
        Opening::UnknownSession => (&mut stats.frames_unknown_session, Rejection::UnknownSession),
        Opening::NotAuthentic
        | Opening::Frame(_)
        | Opening::Hello { .. }
        | Opening::Initiation { .. }
        | Opening::Cookie
        | Opening::Overheard
        | Opening::Response { .. } => (&mut stats.frames_rejected, Rejection::NotAuthentic),
    };
    *counter += 1;
    rejection
}
