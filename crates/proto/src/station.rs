//! The one type a driver holds: a station in any role, without clocks or sockets.
//!
//! A driver puts one thing in (`handle_packet`, `handle_frame`, `handle_timeout`), then drains
//! `poll_transmit`, `poll_packet`, `poll_event` until they return nothing, and calls again at
//! `poll_timeout`. `poll_transmit` is called only while the underlay can take a frame: frames are
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

/// What became of a packet from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// It waits in the ingress queue.
    Accepted,
    /// The ingress queue is full; the packet is counted and gone.
    QueueFull,
    /// It is longer than [`Station::tunnel_mtu`], in bytes.
    TooLong {
        /// Its length.
        len: usize,
        /// The longest there may be.
        max: usize,
    },
    /// It has no bytes.
    Empty,
    /// This role carries no packets of its own host (a helper).
    NotCarried,
    /// It is for nobody whom a hub knows.
    NoRoute,
}

/// What became of a frame from the underlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// It opened under an accepted session, or can be no recording since it hangs on a secret that
    /// was agreed on just now (RFC 9000, Section 8.1): the underlay address it came from is its
    /// sender's.
    Accepted {
        /// The station that sealed it.
        from: StationId,
    },
    /// It is an authentic handshake frame; its address may be used to answer, not yet to send data.
    Handshake {
        /// The station that sealed it.
        from: StationId,
    },
    /// It begins a key exchange, as only its sender can: its address may be used to answer, with no
    /// more bytes than came from there.
    Initiation {
        /// The station that made it.
        from: StationId,
    },
    /// Its sender repeats what it was asked, by [`Station::challenge`], at some address: who hears
    /// there has told it.
    Answered {
        /// The station that sealed it.
        from: StationId,
        /// What it repeats.
        token: ChallengeToken,
    },
    /// It was noted, and says nothing of where anybody is: a cookie, or part of a key exchange
    /// between others.
    Noted,
    /// It left no trace but a counter.
    Rejected(Rejection),
}

/// Why a frame was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Not a frame of ours: too short, or of another wire version.
    Malformed,
    /// Sealed by nobody we know, or changed on the way.
    NotAuthentic,
    /// Heard before, or too old to tell.
    Replayed,
    /// Sealed under a session that has not answered our challenge.
    UnknownSession,
    /// Authentic, but not for this station or role.
    NotForUs,
    /// Held up on its way: what is in it was sent again, or is.
    HeldUp,
}

/// To whom a frame goes. Who else overhears is the medium's matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// One station.
    Station(StationId),
    /// One station, wherever it may be: a handshake of a hub, which has one for each neighbour.
    Search(StationId),
    /// All stations in reach.
    All,
}

/// A frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// To whom.
    pub to: Destination,
    /// Its bytes, sealed.
    pub frame: &'a [u8],
    /// It is to show whether a frame of its length passes, and must not be cut from a longer one.
    pub probes: bool,
}

/// Something an operator wants to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A peer proved that it is there, with a session of its own.
    SessionUp {
        /// The peer.
        peer: StationId,
        /// It had been known before, and has lost its state since.
        restarted: bool,
    },
    /// A peer's packets cross otherwise than this station's: nothing gets through until both are
    /// set alike.
    ModeDiffers {
        /// The peer.
        peer: StationId,
        /// How they cross there.
        theirs: Crossing,
        /// And here.
        ours: Crossing,
    },
    /// Frames to the peer may be longer than before, or have to be shorter.
    PathMtu {
        /// The peer.
        peer: StationId,
        /// Longest frame, bytes.
        frame_len: usize,
        /// What [`Station::tunnel_mtu`] has become, bytes.
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
    /// What the helper has sent of a flow was not made of what its encoder had: none of that was
    /// delivered, and what the helper sends is not taken for a while.
    HelperLeftOut {
        /// The helper.
        helper: StationId,
        /// The encoder.
        flow: StationId,
        /// Whether it must have been the helper. Else somebody may have sealed rows in the
        /// encoder's name: the block was given up before that was known.
        is_proven: bool,
        /// For how long.
        span: Duration,
    },
    /// Blocks of a peer take more memory than there is for two of them, or for one where they are
    /// to be recoded: nothing of what it sends gets through here until its blocks are shorter, or
    /// the share is larger.
    BlocksTooLong {
        /// The peer.
        peer: StationId,
        /// Bytes that one block takes.
        block_bytes: usize,
    },
    /// Coded symbols in an encoder's name are not its own: somebody else seals under its secret, as
    /// its neighbours could. Nothing of them was delivered.
    RowsForged {
        /// The encoder.
        flow: StationId,
    },
    /// A packet across relays is not what its end has sent, or that end puts no tags behind what it
    /// sends here. It was dropped.
    PacketForged {
        /// Its source.
        from: IpAddr,
    },
    /// A packet across relays came from its end before, or its number is lower than that end has
    /// sent, as when its clock was put back. It was dropped.
    PacketRepeated {
        /// Its source.
        from: IpAddr,
    },
}

/// A station in any role.
pub struct Station {
    shared: Shared,
    role: Box<dyn role::Role>,
}

/// What every role has.
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
    /// What goes, and what comes, in parts.
    pub(crate) cut: Cut,
    parts: Parts,
    /// The frame being made, and the body of the frame being read.
    pub(crate) frame: Vec<u8>,
    body: Vec<u8>,
    part: Vec<u8>,
    shortages: Shortages,
}

impl Station {
    /// A station that starts now, by both [clocks](Clocks) where a driver has two. `entropy` is 32
    /// bytes of fresh randomness: session ids, and with them all nonces, come from it. In a
    /// simulation it comes from the seed.
    ///
    /// # Errors
    /// As [`StationConfig::check`]; or memory that is too little.
    pub fn new(
        mut config: StationConfig,
        entropy: [u8; 32],
        clocks: impl Into<Clocks>,
    ) -> Result<Self, ConfigError> {
        let clocks = clocks.into();
        let now = clocks.now;
        config.check()?;
        if let Role::Plain { .. } = config.role {
            // It has no symbols: what it says of them is how long packets may be.
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

    /// Shortest frame, in bytes, that carries a packet of this length; `None` if none does.
    pub fn frame_len_for(&self, packet_len: usize) -> Option<usize> {
        let longest = self.shared.config.frame_len_max;
        (FRAME_LEN_MIN..=longest).find(|&len| self.tunnel_mtu_of(len) >= packet_len)
    }

    /// The tunnel's MTU with frames of this length.
    fn tunnel_mtu_of(&self, frame_len: usize) -> usize {
        self.role.packet_len_max(&self.shared, frame_len)
    }

    // ---- the path's MTU -----------------------------------------------------------------------

    /// Looks for the longest frame that the path to the peer carries, by probes. Until it is found,
    /// frames are no longer than `lens.base`. Not for a helper.
    pub fn find_path_mtu(&mut self, now: Time, lens: FrameLens) {
        if self.role.carries_packets() {
            self.shared.path.search(lens);
            if self.shared.path.update() {
                self.limit_symbols(now);
            }
        }
    }

    /// Frames longer than this many bytes are refused by the interface, or no longer are.
    pub fn limit_frames(&mut self, now: Time, len: usize) {
        let len = len.clamp(FRAME_LEN_MIN, self.shared.config.frame_len_max);
        self.shared.path.limit(now, len);
        self.shared.group.limit_frames(len);
        self.follow_path(now);
    }

    /// Frames take another path from here on: what was found out about its MTU is looked into.
    pub fn note_path_changed(&mut self, now: Time) {
        self.shared.path.restart(now);
        self.shared.group.hurry_hello(now);
    }

    /// A router says that frames are too long for the path. That is looked into, not believed.
    pub fn note_too_long(&mut self, now: Time) {
        self.shared.path.hint(now);
    }

    /// Longest frame to be sent to the peer, bytes.
    pub fn frame_len(&self) -> usize {
        self.shared.path.frame_len()
    }

    /// Lets everybody know what has been found out about the path.
    fn follow_path(&mut self, now: Time) {
        if self.shared.path.update() {
            self.limit_symbols(now);
            let (peer, frame_len) = (self.shared.path.peer, self.shared.path.frame_len());
            let tunnel_mtu = self.tunnel_mtu();
            self.shared.push_event(Event::PathMtu { peer, frame_len, tunnel_mtu });
        }
    }

    /// Source symbols are as long from here on as a frame has room for.
    fn limit_symbols(&mut self, now: Time) {
        let shared = &self.shared;
        let symbol_len_max = shared.symbol_len_max(shared.path.frame_len());
        self.role.limit_symbols(now, symbol_len_max);
    }

    /// Takes an IP packet from the host.
    pub fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome {
        // Read here, and nowhere else on its way.
        self.take_packet(now, PacketRef::read(packet))
    }

    /// Takes an IP packet that was read already.
    pub(crate) fn take_packet(&mut self, now: Time, packet: PacketRef<'_>) -> PacketOutcome {
        self.admit_packet(now, packet, false)
    }

    /// Takes a packet that another neighbour has sent, who is told how much there is
    /// [room](Self::room) for.
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
                // Before the first packet of those that have waited goes.
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

    /// The next frame, made now; `None` when there is nothing to send before the next input or
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

    /// Frames are counted anew if the last one was the last of its session.
    fn restart_session_if_new(&mut self) {
        if self.shared.group.next_counter() == 0 {
            self.role.restart_session();
        }
    }

    /// The next packet for the host, valid until the next call, with what was read of it.
    pub fn poll_packet(&mut self) -> Option<PacketRef<'_>> {
        self.advance_packet().then(|| self.shared.egress.current())
    }

    /// Goes on to the next packet for the host; whether there is one.
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

    /// The packet that [`advance_packet`](Self::advance_packet) went on to.
    pub(crate) fn packet(&self) -> PacketRef<'_> {
        self.shared.egress.current()
    }

    /// The frame that [`poll_transmit`](Self::poll_transmit) made last.
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

    /// What the station was told.
    pub fn config(&self) -> &StationConfig {
        &self.shared.config
    }

    /// What is inside, to be watched.
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

    /// The chunk that is sent in parts at present, or was last: its kind and its body. For tests.
    #[doc(hidden)]
    pub fn cut_chunk(&self) -> &[u8] {
        self.shared.cut.whole()
    }

    /// The neighbours, in the order of the configuration's role.
    pub fn peers(&self) -> Vec<PeerView> {
        self.shared.group.inspect()
    }

    /// The queue and the round trip of this station's own flow, for those who ask now and then.
    pub fn path(&self, now: Time) -> PathView {
        PathView { queue: self.shared.ingress.view(now), round_trip: self.round_trip() }
    }

    /// What a frame that was rejected shows all the same. It derives a key for a HELLO, so ask for
    /// few of them.
    pub fn examine(&self, frame: &[u8]) -> Unopened {
        self.shared.group.examine(frame)
    }

    /// Paces frames from here on at so many bits per second; `None`: as the mode finds out, or as
    /// fast as the underlay takes them.
    pub fn set_rate_bps(&mut self, rate_bps: Option<u64>) {
        let shared = &mut self.shared;
        shared.config.rate_bps = rate_bps;
        shared.stats.rate_bps = None;
        shared.pacer.set_configured(rate_bps);
        self.role.set_rate(shared);
    }

    /// Whether a frame may be of an accepted session of a peer, as far as its header says.
    pub(crate) fn may_open(&self, header: &Header) -> bool {
        self.shared.group.has_session_tag(header.session_tag)
    }

    /// Whether a frame is of an accepted session of a peer. It is opened for that, and nothing is
    /// noted of it.
    pub(crate) fn is_authentic(&self, header: &Header, frame: &[u8]) -> bool {
        self.shared.group.is_authentic(header, frame)
    }

    /// Lets a frame go now, whatever the rate that window mode has found out: somebody else divides
    /// the channel. A configured rate is kept to.
    pub(crate) fn grant(&mut self, now: Time) {
        if self.shared.config.rate_bps.is_none() {
            self.shared.pacer.grant(now);
        }
    }

    /// Both directions share the channel, as configured or found out.
    pub(crate) fn is_half_duplex(&self) -> bool {
        self.shared.stats.half_duplex
    }

    /// Whether the peer is there, and it is known how long frames to it may be.
    pub(crate) fn is_path_known(&self) -> bool {
        self.shared.group.is_up(self.shared.path.peer) && self.shared.path.is_settled()
    }

    /// Whether frames can be exchanged with this peer.
    pub fn is_up(&self, peer: StationId) -> bool {
        self.shared.group.is_up(peer)
    }
}

impl Shared {
    /// Longest source symbol that a frame of this length has room for, bytes.
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

    /// Seals `self.frame`, which `group.begin` began.
    pub(crate) fn seal(&mut self) {
        self.group.seal(&mut self.frame, self.config.frame_len_min);
    }
}

/// Counts a frame that was not taken.
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
