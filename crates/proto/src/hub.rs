//! A station with many neighbours: a pairwise station for each, a table of which neighbour has
//! which addresses, and turns in which they send.
//!
//! ```text
//! host -> table of networks -> station of a neighbour -> turns -> underlay
//! host <- is it for us? <- is the source its own? <- station of a neighbour <- whose frame? <-
//!              `-> decrement hop limit -> station of another neighbour
//! ```
//! Each neighbour has a session, queues, a window and a rate of its own: one that is slow or gone
//! takes nothing from another except its own turns. From its own point of view, each neighbour is
//! one of two ends, and need not know that the other is a hub.
//!
//! A hub has the methods of a [`Station`], and is driven in the same way. It sends a HELLO of its
//! own to each neighbour, since each has a session of its own.

mod backpressure;
mod change;
mod channel;
mod credit;
pub(crate) mod icmp;
mod networks;
mod turns;
mod wakes;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_packet::{PacketBuf, PacketRef, is_of_link};
use ipnet::IpNet;

pub use networks::{NetworkError, Networks, Place};

use crate::bounds::{EVENTS_MAX, HUB_NEIGHBOURS_MAX};
use crate::clocks::{Clocks, WallClock};
use crate::config::{Role, StationConfig, StationId};
use crate::diagnosis::Unopened;
use crate::error::ConfigError;
use crate::host::icmp_error::Stopped;
use crate::link::mtu::FrameLens;
use crate::link::pacer::Pacer;
use crate::memory;
use crate::station::{
    Destination, Event, FrameOutcome, PacketOutcome, Rejection, Station, Transmit,
};
use crate::stats::Stats;
use crate::wire::cookie::{self, CookieReply};
use crate::wire::{ChallengeToken, Header, KeyExchange, hello_clear};
use backpressure::Backpressure;
use channel::Channel;
use credit::{Credits, Onward};
use icmp::IcmpErrors;
use turns::Turns;

/// Configuration of a hub.
#[derive(Clone, Debug, PartialEq)]
pub struct HubConfig {
    /// Its configuration towards each neighbour. Of the role only the kind counts: an endpoint
    /// without a helper, or plain. The rate limits everything that is sent together, and each
    /// neighbour gets an equal share of the memory.
    pub station: StationConfig,
    /// The neighbours, and the networks of each.
    pub neighbours: Vec<(StationId, Vec<IpNet>)>,
    /// Addresses of its own host.
    pub own: Vec<IpAddr>,
    /// All neighbours are on one channel, and the driver signals when it is full: raw Ethernet
    /// frames on a radio. Over other networks each has a path of its own beyond the first hop.
    pub one_channel: bool,
}

crate::counters! {
    /// Counters of a hub since it started, beside those of the stations in it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
    pub struct HubStats {
        /// Packets from the host to an address in no peer's networks.
        pub packets_unrouted: u64,
        /// Packets dropped because their source is not in the networks of the peer that sent them.
        pub packets_wrong_source: u64,
        /// Packets from peers dropped because their source is link-local (and not in the peer's
        /// networks) or unspecified; such packets are not forwarded.
        pub packets_link_local: u64,
        /// Packets forwarded from one peer to another.
        pub packets_forwarded: u64,
        /// Bytes of the packets forwarded from one peer to another.
        pub bytes_forwarded: u64,
        /// Packets between peers dropped because their TTL or hop limit expired.
        pub packets_expired: u64,
        /// Packets dropped because they would have been sent back to the peer they came from.
        pub packets_turned_back: u64,
        /// Packets between peers refused by the queue to the second peer.
        pub packets_not_forwarded: u64,
        /// Frames that belong to no configured peer or are not Corridor frames.
        pub frames_of_nobody: u64,
    }
}

/// A station with many neighbours.
pub struct Hub {
    now: Time,
    neighbours: Vec<Neighbour>,
    networks: Networks,
    icmp_errors: IcmpErrors,
    turns: Turns,
    /// Limits what all of them send together to the configured rate.
    pacer: Pacer,
    /// Neighbours that may have packets for us.
    speaking: VecDeque<usize>,
    events: VecDeque<Event>,
    /// The packet being forwarded.
    buffer: Vec<u8>,
    backpressure: Backpressure,
    channel: Channel,
    credits: Credits,
    stats: HubStats,
    /// Counters of neighbours that have left.
    gone: Stats,
    told: Told,
}

/// What the driver has set about the path and sessions, for neighbours that come later.
#[derive(Default)]
struct Told {
    clock: WallClock,
    /// What stations for neighbours have parts of.
    memory_bytes: usize,
    path_lens: Option<FrameLens>,
    frames_limit: Option<usize>,
    reaches_out: bool,
    rekey_interval: Option<Duration>,
    session_frames: Option<u32>,
}

/// The station for one neighbour.
struct Neighbour {
    id: StationId,
    station: Station,
    speaks: bool,
    wrong_sources: u64,
}

impl Neighbour {
    /// A neighbour with this share of the memory.
    fn new(
        config: &StationConfig,
        (id, memory_bytes): (StationId, usize),
        entropy: [u8; 32],
        clocks: Clocks,
    ) -> Result<Self, ConfigError> {
        let station = Station::new(pairwise(config, id, memory_bytes)?, entropy, clocks)?;
        Ok(Neighbour { id, station, speaks: false, wrong_sources: 0 })
    }
}

/// What to do with a packet from a neighbour.
enum Verdict {
    Deliver,
    Forward(usize),
    Drop,
}

impl Hub {
    /// Starts a hub. `entropy` is 32 bytes of fresh randomness, as for [`Station::new`].
    ///
    /// # Errors
    /// As [`StationConfig::check`], for the station of each neighbour; a role that a hub cannot
    /// have; too many neighbours; or one network for two of them.
    pub fn new(
        config: HubConfig,
        entropy: [u8; 32],
        clocks: impl Into<Clocks>,
    ) -> Result<Self, ConfigError> {
        let clocks = clocks.into();
        let now = clocks.now;
        check_ids(&config)?;
        let count = config.neighbours.len();
        let share = memory::share(&config.station, count)?;
        let mut entropy = Stream::from_seed(entropy);
        let mut neighbours: Vec<Neighbour> = Vec::with_capacity(count);
        for (id, _) in &config.neighbours {
            let mut seed = [0; 32];
            entropy.fill_bytes(&mut seed);
            neighbours.push(Neighbour::new(&config.station, (*id, share), seed, clocks)?);
        }
        let mut turns = Turns::new(count);
        (0..count).for_each(|place| turns.enter(place));
        Ok(Hub {
            now,
            neighbours,
            networks: networks(&config)?,
            icmp_errors: IcmpErrors::new(&config.own),
            turns,
            pacer: Pacer::new(config.station.rate_bps),
            speaking: VecDeque::new(),
            events: VecDeque::new(),
            buffer: Vec::new(),
            backpressure: Backpressure::default(),
            channel: Channel::default(),
            credits: Credits::new(count, config.one_channel, now),
            stats: HubStats::default(),
            gone: Stats::default(),
            told: Told {
                clock: clocks.into(),
                memory_bytes: config.station.memory_bytes,
                ..Told::default()
            },
        })
    }

    /// Replaces the networks of all neighbours. Neighbours that are not named have none.
    ///
    /// # Errors
    /// As [`new`](Self::new) for the networks; nothing has changed then.
    pub fn set_networks(
        &mut self,
        neighbours: &[(StationId, Vec<IpNet>)],
        own: &[IpAddr],
    ) -> Result<(), ConfigError> {
        self.networks = table(neighbours, own)?;
        self.icmp_errors.set_own(own);
        Ok(())
    }

    // ---- input --------------------------------------------------------------------------------

    /// Takes an IP packet from the host.
    pub fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome {
        self.now = now;
        let packet = PacketRef::read(packet);
        let place = packet.addresses().and_then(|(_, to)| self.networks.place(to));
        let Some(Place::Neighbour(id)) = place else {
            self.stats.packets_unrouted += 1;
            self.icmp_errors.queue_no_route(now, packet);
            return PacketOutcome::NoRoute;
        };
        let place = self.place_of(id).expect("the table names neighbours only");
        let outcome = self.neighbours[place].station.take_packet(now, packet);
        self.touch(place);
        outcome
    }

    /// Takes a frame from the underlay.
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) -> FrameOutcome {
        self.now = now;
        let (_, frame) = cookie::unwrap(frame);
        let place = match self.addressee(frame) {
            Ok(place) => place,
            Err(rejection) => {
                self.stats.frames_of_nobody += 1;
                return FrameOutcome::Rejected(rejection);
            }
        };
        let outcome = self.neighbours[place].station.handle_frame(now, frame);
        if let FrameOutcome::Accepted { .. } = outcome {
            self.channel.note_came(); // What strangers send says nothing about the neighbours.
        }
        self.touch(place);
        outcome
    }

    /// The neighbour that a frame claims to be from; its station opens the frame. A forger can
    /// cause at most one frame that does not open.
    fn addressee(&self, frame: &[u8]) -> Result<usize, Rejection> {
        let place = |id| self.place_of(id).ok_or(Rejection::NotAuthentic);
        let Some(header) = Header::parse(frame) else {
            let sender = KeyExchange::parse(frame).map(|message| message.sender);
            let sender = sender.or_else(|| Some(CookieReply::parse(frame)?.sender));
            return place(sender.ok_or(Rejection::Malformed)?);
        };
        if header.is_hello {
            return place(hello_clear(frame).ok_or(Rejection::Malformed)?.0);
        }
        let may_open = |&place: &usize| self.neighbours[place].station.may_open(&header);
        let mut candidates = (0..self.neighbours.len()).filter(may_open);
        let first = candidates.next().ok_or(Rejection::UnknownSession)?;
        if candidates.next().is_none() {
            return Ok(first);
        }
        // Two sessions with the same tag: this happens for one in 2^16 pairs.
        let opens = |&place: &usize| self.neighbours[place].station.is_authentic(&header, frame);
        (first..self.neighbours.len()).find(opens).ok_or(Rejection::NotAuthentic)
    }

    /// Fires the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        for place in 0..self.neighbours.len() {
            let station = &mut self.neighbours[place].station;
            let due = self.turns.wakes.of(place, || station.poll_timeout());
            if due.is_some_and(|due| due <= now) {
                station.handle_timeout(now);
                self.touch(place);
            }
        }
    }

    /// Something has happened to a neighbour's station: it may have output.
    fn touch(&mut self, place: usize) {
        self.turns.enter(place);
        self.turns.wakes.forget(place);
        let neighbour = &mut self.neighbours[place];
        if !neighbour.speaks {
            neighbour.speaks = true;
            self.speaking.push_back(place);
        }
        while let Some(event) = self.neighbours[place].station.poll_event() {
            let event = match event {
                Event::PathMtu { peer, frame_len, .. } => {
                    Event::PathMtu { peer, frame_len, tunnel_mtu: self.tunnel_mtu() }
                }
                event => event,
            };
            // There may be fewer neighbours by now.
            while self.events.len() >= EVENTS_MAX * self.neighbours.len() {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }

    // ---- output -------------------------------------------------------------------------------

    /// The next frame, made now, of the neighbour whose turn it is; as [`Station::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
        self.now = now;
        self.pacer.begin_poll();
        self.backpressure.begin_poll(now);
        self.look_at_channel(now);
        let is_divided = self.credits.one_channel()
            && self.backpressure.is_felt(now)
            && (self.channel.is_shared() || self.stations().any(Station::is_half_duplex));
        while let Some(place) = self.turns.current() {
            if !self.pacer.allows(now) {
                return None;
            }
            let neighbour = &mut self.neighbours[place];
            if self.turns.has_changed() {
                neighbour.station.note_other_left();
            }
            // A rate measured from what came through would perpetuate whatever share each has had
            // of a full channel so far: turns divide it equally.
            let waiting = neighbour.station.kept_bytes();
            if is_divided {
                neighbour.station.grant(now);
            }
            let made = neighbour.station.poll_transmit(now);
            let made = made.map(|made| (made.to, made.frame.len(), made.probes));
            self.note_left(place, waiting);
            self.touch(place);
            let Some((to, len_bytes, probes)) = made else {
                self.turns.leave();
                continue;
            };
            self.turns.charge(len_bytes);
            self.backpressure.note_made(now);
            self.channel.note_sent(now, len_bytes);
            self.pacer.note_sent(now, len_bytes);
            // Its session is for one neighbour, even if others hear it.
            let to = match to {
                Destination::All => Destination::Search(self.neighbours[place].id),
                to => to,
            };
            let frame = self.neighbours[place].station.frame();
            return Some(Transmit { to, frame, probes });
        }
        self.channel.begin_idle(now);
        None
    }

    /// Checks whether all share one channel, and tells the neighbours' stations.
    fn look_at_channel(&mut self, now: Time) {
        if !self.credits.one_channel() || !self.channel.look(now) {
            return;
        }
        let is_shared = self.channel.is_shared();
        let stations = self.neighbours.iter_mut().map(|neighbour| &mut neighbour.station);
        stations.for_each(|station| station.set_air_shared(is_shared));
        self.turns.wakes.forget_all();
    }

    /// The next packet for the host, valid until the next call. Forwards packets for other
    /// neighbours on the way.
    pub fn poll_packet(&mut self) -> Option<PacketRef<'_>> {
        while !self.icmp_errors.has_queued()
            && let Some(&place) = self.speaking.front()
        {
            self.turns.wakes.forget(place);
            if !self.neighbours[place].station.advance_packet() {
                self.neighbours[place].speaks = false;
                self.speaking.pop_front();
                continue;
            }
            match self.judge(place) {
                Verdict::Deliver => {
                    self.credits.note(self.now, place, Onward::Host);
                    self.give_credit(place);
                    return Some(self.neighbours[place].station.packet());
                }
                Verdict::Forward(to) => self.forward(place, to),
                Verdict::Drop => {}
            }
        }
        self.icmp_errors.pop()
    }

    /// What to do with the packet that a neighbour's station has just returned. Packets that a
    /// station itself makes, such as messages that a packet is too long, have a source of its
    /// neighbour.
    fn judge(&mut self, place: usize) -> Verdict {
        let neighbour = &mut self.neighbours[place];
        let from_and_to = neighbour.station.packet().addresses();
        let is_own = |from| self.networks.place(from) == Some(Place::Neighbour(neighbour.id));
        if from_and_to.is_some_and(|(from, _)| !is_own(from) && is_of_link(from, from)) {
            self.stats.packets_link_local += 1;
            return Verdict::Drop;
        }
        let Some((_, to)) = from_and_to.filter(|&(from, _)| is_own(from)) else {
            neighbour.wrong_sources += 1;
            self.stats.packets_wrong_source += 1;
            return Verdict::Drop;
        };
        match self.networks.place(to) {
            Some(Place::Neighbour(id)) if id == neighbour.id => {
                self.stats.packets_turned_back += 1;
                Verdict::Drop
            }
            Some(Place::Neighbour(id)) => self.place_of(id).map_or(Verdict::Drop, Verdict::Forward),
            Some(Place::Host) | None => Verdict::Deliver,
        }
    }

    /// Hands the packet that one neighbour's station has just returned to another's.
    fn forward(&mut self, from: usize, to: usize) {
        let buffer = core::mem::take(&mut self.buffer);
        let mut packet = PacketBuf::copy(self.neighbours[from].station.packet(), buffer);
        if packet.take_hop() {
            self.credits.note(self.now, from, Onward::Neighbour(to));
            let station = &mut self.neighbours[to].station;
            if station.kept_bytes() == 0 {
                self.credits.note_moved(self.now, to);
            }
            let outcome = match self.credits.holds_back(self.now, from, to) {
                true => station.take_kept(self.now, packet.packet()),
                false => station.take_packet(self.now, packet.packet()),
            };
            if outcome == PacketOutcome::Accepted {
                self.stats.packets_forwarded += 1;
                self.stats.bytes_forwarded += packet.len() as u64;
            } else {
                self.stats.packets_not_forwarded += 1;
            }
            self.touch(to);
            self.give_credit(from);
        } else {
            self.stats.packets_expired += 1;
            if let Some(message) =
                self.icmp_errors.write(self.now, packet.packet(), Stopped::HopsUsedUp)
            {
                self.neighbours[from].station.take_packet(self.now, message.packet());
                self.touch(from);
            }
        }
        self.buffer = packet.into_bytes();
    }

    // ---- credit between hops ------------------------------------------------------------------

    /// A neighbour's station was asked for a frame; before that, `waiting` bytes of others waited
    /// in it.
    fn note_left(&mut self, to: usize, waiting: usize) {
        if self.neighbours[to].station.kept_bytes() >= waiting {
            return;
        }
        self.credits.note_moved(self.now, to);
        let feeders: Vec<usize> = self.credits.feeders(self.now, to).collect();
        feeders.into_iter().for_each(|from| self.give_credit(from));
    }

    /// Tells a neighbour how much room there is in the queues to those whom it sends to; all that
    /// send to the same neighbour get equal shares.
    fn give_credit(&mut self, from: usize) {
        let (now, credits) = (self.now, &self.credits);
        let round_trip = self.neighbours[from].station.round_trip().unwrap_or_default();
        let room = credits.queues_before(now, from).filter_map(|to| {
            let room = self.neighbours[to].station.room(round_trip)?;
            Some(room / credits.feeders(now, to).count().max(1))
        });
        let symbols = room.min().map(|room| u16::try_from(room).unwrap_or(u16::MAX));
        self.turns.wakes.forget(from);
        if self.neighbours[from].station.set_credit(now, symbols) {
            self.touch(from);
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and
    /// [`poll_transmit`](Self::poll_transmit) next, if nothing comes in before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let pace = self.pacer.poll_timeout();
        (0..self.neighbours.len()).filter_map(|place| self.timeout_of(place, pace)).min()
    }

    /// The same of one neighbour, where no frame may leave before `pace`.
    fn timeout_of(&self, place: usize, pace: Option<Time>) -> Option<Time> {
        let wake = || self.turns.wakes.of(place, || self.neighbours[place].station.poll_timeout());
        match pace {
            _ if !self.turns.waits(place) => wake(),
            // Nobody has asked it yet whether it has something to send.
            None => Some(self.now),
            // It may send nothing before that, but may have something for the host.
            Some(pace) => {
                let sooner = wake().filter(|&due| due > self.now);
                Some(sooner.map_or(pace, |due| due.min(pace)))
            }
        }
    }

    // ---- what others read ---------------------------------------------------------------------

    /// The MTU to set on the TUN device, in bytes: the minimum over the neighbours for which it is
    /// known. The host learns of a neighbour with a smaller one when a packet is too long.
    pub fn tunnel_mtu(&self) -> usize {
        let known = self.stations().filter(|station| station.is_path_known());
        let least = known.map(Station::tunnel_mtu).min();
        let all = || self.stations().map(Station::tunnel_mtu).min().unwrap_or(0);
        least.unwrap_or_else(all)
    }

    /// The stations of the neighbours, in the order of the configuration.
    pub fn stations(&self) -> impl Iterator<Item = &Station> {
        self.neighbours.iter().map(|neighbour| &neighbour.station)
    }

    /// The station of the neighbour at an index.
    pub(crate) fn station_at(&self, place: usize) -> Option<&Station> {
        self.neighbours.get(place).map(|neighbour| &neighbour.station)
    }

    /// Bytes that the queues and windows of all neighbours may hold, those that may come included.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.told.memory_bytes
    }

    /// Counters of the stations of neighbours that have left.
    pub(crate) fn gone(&self) -> &Stats {
        &self.gone
    }

    /// The station of the first neighbour: for settings that all have in common.
    pub(crate) fn first(&self) -> &Station {
        &self.neighbours[0].station
    }

    /// The station of a neighbour.
    pub fn station(&self, neighbour: StationId) -> Option<&Station> {
        self.place_of(neighbour).map(|place| &self.neighbours[place].station)
    }

    /// Counters since the start, in addition to those of the stations.
    pub fn stats(&self) -> &HubStats {
        &self.stats
    }

    /// Packets from a neighbour that were dropped because of their source.
    pub fn wrong_sources(&self, neighbour: StationId) -> u64 {
        self.place_of(neighbour).map_or(0, |place| self.neighbours[place].wrong_sources)
    }

    /// As [`Station::examine`].
    pub fn examine(&self, frame: &[u8]) -> Unopened {
        let named = Header::parse(frame).filter(|header| header.is_hello);
        let sender = named.and_then(|_| hello_clear(frame)).map(|(sender, _)| sender);
        let sender = sender.or_else(|| KeyExchange::parse(frame).map(|message| message.sender));
        let place = sender.and_then(|sender| self.place_of(sender)).unwrap_or(0);
        let seen = self.neighbours[place].station.examine(frame);
        let is_own = || self.stations().any(|station| station.examine(frame) == Unopened::Own);
        if seen == Unopened::Sealed && sender.is_none() && is_own() { Unopened::Own } else { seen }
    }

    // ---- what an operator changes, and the path ------------------------------------------------

    /// As [`Station::find_path_mtu`], for each neighbour.
    pub fn find_path_mtu(&mut self, now: Time, lens: FrameLens) {
        self.told.path_lens = Some(lens);
        self.each(now, |station| station.find_path_mtu(now, lens));
    }

    /// As [`Station::limit_frames`], for each neighbour.
    pub fn limit_frames(&mut self, now: Time, len: usize) {
        self.told.frames_limit = Some(len);
        self.each(now, |station| station.limit_frames(now, len));
    }

    /// As [`Station::note_path_changed`]: for one neighbour, or for all of them.
    pub fn note_path_changed(&mut self, now: Time, neighbour: Option<StationId>) {
        let is_meant = |id| neighbour.is_none_or(|neighbour| neighbour == id);
        self.each(now, |station| {
            if station.peers().iter().any(|peer| is_meant(peer.id)) {
                station.note_path_changed(now);
            }
        });
    }

    /// As [`Station::note_too_long`], for each neighbour.
    pub fn note_too_long(&mut self, now: Time) {
        self.each(now, |station| station.note_too_long(now));
    }

    /// As [`Station::set_rate_bps`]: for everything that is sent together.
    pub fn set_rate_bps(&mut self, rate_bps: Option<u64>) {
        self.pacer.set_configured(rate_bps);
        self.each(self.now, |station| station.set_rate_bps(rate_bps));
    }

    /// As [`Station::greet`], for each neighbour.
    pub fn greet(&mut self, now: Time) {
        self.each(now, |station| station.greet(now));
    }

    /// As [`Station::reach_out`], for each neighbour: `called` ones are called.
    pub fn reach_out(&mut self, now: Time, called: &[StationId]) {
        self.told.reaches_out = true;
        self.each(now, |station| {
            let calls = station.peers().iter().any(|peer| called.contains(&peer.id));
            station.reach_out(now, calls);
        });
    }

    /// As [`Station::set_clock`], for present and future neighbours. Costs hardly anything as long
    /// as nobody sets the clock.
    pub fn set_clock(&mut self, clocks: Clocks) {
        let clock = WallClock::from(clocks);
        if clock.was_set_since(self.told.clock) {
            self.told.clock = clock;
            self.each(clocks.now, |station| station.set_clock(clocks));
        }
    }

    /// As [`Station::set_rekey_interval`], for present and future neighbours.
    pub fn set_rekey_interval(&mut self, interval: Duration) {
        self.told.rekey_interval = Some(interval);
        self.each(self.now, |station| station.set_rekey_interval(interval));
    }

    /// As [`Station::set_session_frames`], for present and future neighbours.
    pub fn set_session_frames(&mut self, frames: u32) {
        self.told.session_frames = Some(frames);
        self.each(self.now, |station| station.set_session_frames(frames));
    }

    /// As [`Station::expects`], for the neighbour that the frame names.
    pub fn expects(&self, frame: &[u8]) -> bool {
        let named = self.addressee(frame).ok();
        named.is_some_and(|place| self.neighbours[place].station.expects(frame))
    }

    /// As [`Station::challenge`].
    pub fn challenge(&mut self, peer: StationId, token: ChallengeToken) -> Option<&[u8]> {
        let place = self.place_of(peer)?;
        self.neighbours[place].station.challenge(peer, token)?;
        // It may have been the last frame of its session.
        self.touch(place);
        Some(self.neighbours[place].station.frame())
    }

    /// As [`Station::close`], for each neighbour.
    pub fn close(&mut self, now: Time) {
        self.each(now, |station| station.close(now));
    }

    /// As [`Station::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.stations().all(Station::is_closed)
    }

    fn each(&mut self, now: Time, mut change: impl FnMut(&mut Station)) {
        self.now = now;
        for place in 0..self.neighbours.len() {
            change(&mut self.neighbours[place].station);
            self.touch(place);
        }
    }

    fn place_of(&self, id: StationId) -> Option<usize> {
        self.neighbours.iter().position(|neighbour| neighbour.id == id)
    }
}

/// Checks the number of neighbours, and that no two have the same number.
fn check_ids(config: &HubConfig) -> Result<(), ConfigError> {
    let count = config.neighbours.len();
    if !(1..=HUB_NEIGHBOURS_MAX).contains(&count) {
        let expected = format!("1 to {HUB_NEIGHBOURS_MAX} neighbours");
        return Err(ConfigError::new("peer", count, expected));
    }
    for (index, (id, _)) in config.neighbours.iter().enumerate() {
        if config.neighbours[..index].iter().any(|(other, _)| other == id) {
            let expected = "a number no other station of the group has";
            return Err(ConfigError::new("peer.id", id.0, expected));
        }
    }
    Ok(())
}

/// The configuration of a neighbour's station, with its share of the memory.
fn pairwise(
    config: &StationConfig,
    peer: StationId,
    memory_bytes: usize,
) -> Result<StationConfig, ConfigError> {
    let role = match config.role {
        Role::Endpoint { helper: None, .. } => Role::Endpoint { peer, helper: None },
        Role::Plain { .. } => Role::Plain { peer },
        Role::Endpoint { helper: Some(_), .. } | Role::Helper { .. } | Role::Relay => {
            let expected = "endpoint or plain, without a helper";
            return Err(ConfigError::new("station.role", "a hub with a helper", expected));
        }
    };
    let security = config.security.for_peers(&[peer])?;
    Ok(StationConfig { role, security, memory_bytes, ..config.clone() })
}

fn networks(config: &HubConfig) -> Result<Networks, ConfigError> {
    table(&config.neighbours, &config.own)
}

/// Builds the table of networks.
pub(crate) fn table(
    neighbours: &[(StationId, Vec<IpNet>)],
    own: &[IpAddr],
) -> Result<Networks, ConfigError> {
    let mut table = Networks::default();
    let own = own.iter().map(|&address| (IpNet::from(address), Place::Host));
    let theirs = neighbours.iter().flat_map(|(id, networks)| {
        networks.iter().map(|&network| (network, Place::Neighbour(*id)))
    });
    for (network, place) in own.chain(theirs) {
        table.insert(network, place).map_err(|error| {
            let expected = format!("networks of one peer each: {error}");
            ConfigError::new("peer.allowed", network, expected)
        })?;
    }
    Ok(table)
}
