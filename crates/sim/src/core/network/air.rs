//! Radios of a network: what joins the nodes at a radio's places, and the order of steps within an
//! instant.

use std::sync::Arc;

pub use corridor_air::radio::Reach;
use corridor_air::radio::{MacEvent, Quality, RadioMedium, SendOutcome};
use corridor_air::{Address, Carried, Line, LineConfig, Medium};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_scenario::FrameEnd;

use super::router::{Link, OnAir};
use super::topology::{AirConfig, NetworkError, RadioSite};
use super::{Entity, Network, Node, PACED_PACKETS, Paced};
use crate::core::agenda::Rank;
use crate::core::agent::{BROADCAST, LinkOutcome, NodeIndex, Packet};
use crate::core::watch::Crossing;

/// A radio of a network: its index in [`Topology::radios`](super::Topology::radios).
pub type RadioIndex = usize;

/// What crosses a radio. All receivers share one copy.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// A frame that a Corridor station has made.
    Sealed(Arc<[u8]>),
    /// A packet of an agent's, and the number of links that it may still cross, including this one.
    Packet(Arc<Packet>, u16),
    /// A frame that a relay has made.
    Relayed(Arc<[u8]>),
}

impl Carried for Frame {
    fn len_bytes(&self) -> usize {
        match self {
            Frame::Sealed(bytes) | Frame::Relayed(bytes) => bytes.len(),
            Frame::Packet(packet, _) => packet.len_bytes as usize,
        }
    }
}

/// What joins the places of a radio.
pub(super) enum Air {
    /// An ideal medium: draws the next sender at random, without collisions.
    Ideal(Box<Medium<Frame>>),
    /// Radios with a standard's MAC.
    Mac(Box<RadioMedium<Frame>>),
    /// A path between two places that carries no other traffic.
    Line(Box<Line<Frame>>),
}

/// What the air reports.
enum Told {
    /// A frame has arrived at a place.
    Heard {
        at: Time,
        from: usize,
        to: usize,
        addressed: bool,
        frame: Frame,
        /// Signal quality, with a standard's MAC.
        quality: Option<Quality>,
    },
    /// A place whose queue was full has room again.
    Room(usize),
    /// A place's MAC has finished with a frame.
    Sent { from: usize, to: Address, outcome: SendOutcome, attempts: u32, frame: Frame },
}

impl Air {
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self {
            Air::Ideal(medium) => medium.poll_timeout(),
            Air::Mac(medium) => medium.poll_timeout(),
            Air::Line(line) => line.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Air::Ideal(medium) => medium.handle_timeout(now),
            Air::Mac(medium) => medium.handle_timeout(now),
            Air::Line(line) => line.handle_timeout(now),
        }
    }

    pub(super) fn has_room(&self, place: usize) -> bool {
        match self {
            Air::Ideal(medium) => medium.has_room(place),
            Air::Mac(medium) => medium.has_room(place),
            Air::Line(line) => line.has_room(place),
        }
    }

    /// Puts a frame into a place's queue; returns whether there was room.
    pub(super) fn offer(&mut self, now: Time, from: usize, to: Address, frame: Frame) -> bool {
        match self {
            Air::Ideal(medium) => medium.offer(now, from, to, frame).is_ok(),
            Air::Mac(medium) => {
                let len_bytes = frame.len_bytes() as u32;
                medium.offer(now, from, to, len_bytes, frame).is_ok()
            }
            Air::Line(line) => line.offer(now, from, to, frame).is_ok(),
        }
    }

    fn poll(&mut self) -> Option<Told> {
        match self {
            Air::Ideal(medium) => match medium.poll_delivery() {
                Some(heard) => {
                    let corridor_air::Delivery { at, from, to, addressed, frame } = heard;
                    Some(Told::Heard { at, from, to, addressed, frame, quality: None })
                }
                None => medium.poll_room().map(Told::Room),
            },
            Air::Line(line) => match line.poll_delivery() {
                Some(heard) => {
                    let corridor_air::Delivery { at, from, to, addressed, frame } = heard;
                    Some(Told::Heard { at, from, to, addressed, frame, quality: None })
                }
                None => line.poll_room().map(Told::Room),
            },
            Air::Mac(medium) => Some(match medium.poll_event()? {
                MacEvent::Received { at, station, from, addressed, quality, payload, .. } => {
                    let (to, frame, quality) = (station, payload, Some(quality));
                    Told::Heard { at, from, to, addressed, frame, quality }
                }
                MacEvent::Sent { station, to, outcome, attempts, payload, .. } => {
                    Told::Sent { from: station, to, outcome, attempts, frame: payload }
                }
            }),
        }
    }
}

/// Who hears and who senses whom at the links' mean power, by (from, to).
pub(super) fn reaches(air: &Air, config: &AirConfig) -> Vec<Reach> {
    match (air, config) {
        (Air::Mac(medium), AirConfig::Mac(config)) => medium.reaches(config),
        (_, AirConfig::Ideal(config)) => {
            let reach = |link: &corridor_air::Link| {
                let (from, to) = (link.from, link.to);
                Reach { from, to, hears: true, senses: true, power_dbm: None }
            };
            let mut reaches: Vec<_> = config.links.iter().map(reach).collect();
            reaches.sort_unstable_by_key(|reach| (reach.from, reach.to));
            reaches
        }
        (_, AirConfig::Line(_)) => [(0, 1), (1, 0)]
            .map(|(from, to)| Reach { from, to, hears: true, senses: false, power_dbm: None })
            .to_vec(),
        (_, AirConfig::Mac(_)) => Vec::new(),
    }
}

pub(super) struct Radio {
    pub(super) air: Air,
    /// Who hears and who senses whom.
    pub(super) reaches: Vec<Reach>,
    /// By place: the node, and its station if it has one here.
    pub(super) places: Vec<(NodeIndex, Option<u32>)>,
    pub(super) entity: usize,
    /// Stations whose timer is overdue; the next event serves them, whichever it is.
    pub(super) overdue: Set,
}

impl Radio {
    pub(super) fn new(
        index: RadioIndex,
        site: &RadioSite,
        seed: u64,
        replication: u64,
    ) -> Result<Self, NetworkError> {
        // Links of different radios have the same keys, so each radio needs its own seed.
        let seed = match index {
            0 => seed,
            _ => StreamKey { seed, replication, entity: index as u64, purpose: "radio" }
                .stream()
                .next_u64(),
        };
        let air = match &site.air {
            AirConfig::Ideal(config) => {
                let config = corridor_air::MediumConfig { seed, replication, ..config.clone() };
                let medium = Medium::new(config);
                let medium = medium.map_err(|source| NetworkError::Medium { index, source })?;
                Air::Ideal(Box::new(medium))
            }
            AirConfig::Mac(config) => {
                let mut config = config.clone();
                (config.radio.seed, config.radio.replication) = (seed, replication);
                let medium = RadioMedium::new(&config);
                let medium = medium.map_err(|source| NetworkError::Radio { index, source })?;
                Air::Mac(Box::new(medium))
            }
            AirConfig::Line(config) => {
                let config = LineConfig { seed, replication, ..LineConfig::clone(config) };
                let line = Line::new(&config);
                let line = line.map_err(|source| NetworkError::Line { index, source })?;
                Air::Line(Box::new(line))
            }
        };
        let reaches = reaches(&air, &site.air);
        let places = site.nodes.iter().map(|&node| (node, None)).collect();
        Ok(Radio { air, reaches, places, entity: 0, overdue: Set::default() })
    }

    pub(super) fn keep_transmissions(&mut self) {
        match &mut self.air {
            Air::Ideal(medium) => medium.keep_transmissions(),
            Air::Mac(medium) => medium.keep_transmissions(),
            Air::Line(line) => line.keep_transmissions(),
        }
    }

    /// Whether a place receives another's frames when no other place sends.
    pub(super) fn hears(&self, from: usize, to: usize) -> bool {
        let place = self.reaches.binary_search_by_key(&(from, to), |reach| (reach.from, reach.to));
        place.is_ok_and(|place| self.reaches[place].hears)
    }

    /// Whether a place has room for another packet of a paced agent of which `under_way` packets
    /// are at the MAC. An ideal medium does not report when it has finished with a packet, so there
    /// all frames that wait at the place count.
    pub(super) fn has_room_for_paced(&self, place: usize, under_way: u32) -> bool {
        let has_few = match &self.air {
            Air::Mac(_) => under_way < PACED_PACKETS,
            Air::Ideal(medium) => medium.backlog(place) < PACED_PACKETS as usize,
            Air::Line(_) => true,
        };
        has_few && self.air.has_room(place)
    }

    /// When to wake the radio next; an overdue time becomes `now`.
    fn timeout(&self, now: Time) -> Option<Time> {
        self.air.poll_timeout().map(|at| at.max(now))
    }
}

/// A set of stations or radios.
#[derive(Default)]
pub(super) struct Set {
    list: Vec<usize>,
    has: Vec<bool>,
}

impl Set {
    pub(super) fn insert(&mut self, index: usize) {
        if index >= self.has.len() {
            self.has.resize(index + 1, false);
        }
        if !core::mem::replace(&mut self.has[index], true) {
            self.list.push(index);
        }
    }

    /// Moves all elements into `list`.
    fn take(&mut self, list: &mut Vec<usize>) {
        self.list.iter().for_each(|&index| self.has[index] = false);
        list.append(&mut self.list);
    }
}

/// Work that waits until everything else at an instant has had its turn.
#[derive(Default)]
pub(super) struct Unsettled {
    /// Stations to be drained.
    pub(super) stations: Set,
    /// Radios whose next timeout may have changed.
    pub(super) radios: Set,
}

impl Unsettled {
    pub(super) fn is_empty(&self) -> bool {
        self.stations.list.is_empty() && self.radios.list.is_empty()
    }
}

/// The links that radios make between nodes: (from, to) wherever a frame is received.
pub(super) fn links(radios: &[Radio]) -> impl Iterator<Item = (NodeIndex, NodeIndex, OnAir)> {
    radios.iter().enumerate().flat_map(|(index, radio)| {
        radio.reaches.iter().filter(|reach| reach.hears).map(move |reach| {
            let node = |place: usize| radio.places[place].0;
            let air = OnAir { radio: index as u32, from: reach.from as u32, to: reach.to as u32 };
            (node(reach.from), node(reach.to), air)
        })
    })
}

impl Network {
    /// Who hears and who senses whom on a radio, by (from, to); empty if there is no such radio.
    pub fn reaches(&self, radio: RadioIndex) -> &[Reach] {
        self.radios.get(radio).map_or(&[], |radio| &radio.reaches)
    }

    /// The medium of a radio with a standard's MAC, for its statistics.
    pub fn mac(&self, radio: RadioIndex) -> Option<&RadioMedium<Frame>> {
        match &self.radios.get(radio)?.air {
            Air::Mac(medium) => Some(medium),
            Air::Ideal(_) | Air::Line(_) => None,
        }
    }

    /// The medium of a radio without a standard's MAC, for its statistics.
    pub fn medium(&self, radio: RadioIndex) -> Option<&Medium<Frame>> {
        match &self.radios.get(radio)?.air {
            Air::Ideal(medium) => Some(medium),
            Air::Mac(_) | Air::Line(_) => None,
        }
    }

    /// The line of a radio that is one, for its statistics.
    pub fn line(&self, radio: RadioIndex) -> Option<&Line<Frame>> {
        match &self.radios.get(radio)?.air {
            Air::Line(line) => Some(line),
            Air::Ideal(_) | Air::Mac(_) => None,
        }
    }

    /// Restarts the lines' time-varying rates now, so that they begin with the load however long
    /// the stations took to set up sessions.
    pub fn restart_rates(&mut self) {
        for radio in &mut self.radios {
            if let Air::Line(line) = &mut radio.air {
                line.restart_rates(self.now);
            }
        }
    }

    /// From now on, lines record how long frames wait in them.
    pub fn keep_waits(&mut self) {
        for radio in &mut self.radios {
            if let Air::Line(line) = &mut radio.air {
                line.keep_waits();
            }
        }
    }

    /// Sends a packet by its node's place on a radio.
    pub(super) fn send_on_air(
        &mut self,
        node: NodeIndex,
        link: Link,
        packet: Arc<Packet>,
        ttl: u16,
    ) {
        let Some(OnAir { radio, from, to }) = self.router.on_air(link) else { return };
        let to = (Address::Station(to as usize), self.router.ends(link).1);
        self.put_on_air(node, (radio as usize, from as usize), to, packet, ttl);
    }

    /// Puts a packet into the queue of one of its node's places, for an address and the node there.
    pub(super) fn put_on_air(
        &mut self,
        node: NodeIndex,
        (radio, from): (RadioIndex, usize),
        (address, next): (Address, NodeIndex),
        packet: Arc<Packet>,
        ttl: u16,
    ) {
        if let (Some(&relay), Address::Station(to)) = (self.relay_at.get(&(radio, from)), address) {
            return self.send_by_relay(relay, (to, next), &packet, ttl);
        }
        let seen = self.watcher.is_some().then(|| Arc::clone(&packet));
        let frame = Frame::Packet(packet, ttl);
        let refused = !self.radios[radio].air.offer(self.now, from, address, frame);
        self.unsettled.radios.insert(radio);
        if refused {
            self.stats.refused += 1;
            // Other media are counted as a whole.
            if matches!(self.radios[radio].air, Air::Mac(_)) {
                self.note_fate((node, next), FrameEnd::Refused, 0);
            }
        }
        if let (Some(watcher), Some(packet)) = (&mut self.watcher, seen) {
            let crossing = if refused { Crossing::Dropped(next) } else { Crossing::Sent(next) };
            watcher.take_packet(self.now, node, &packet, crossing);
        }
    }

    /// Handles everything that stations and radios have to do at this instant: the stations' timers
    /// first, then the radios.
    pub(super) fn step_radios(&mut self, first: Entity) {
        let at = self.now;
        let mut due = core::mem::take(&mut self.serving);
        let mut radios = core::mem::take(&mut self.stepping);
        let mut next = Some(first);
        while let Some(entity) = next {
            match entity {
                Entity::Station(station) => {
                    due.push(station as usize);
                    radios.push(self.stations[station as usize].radio);
                }
                Entity::Radio(radio) => radios.push(radio as usize),
                Entity::Agent(_) | Entity::Host(_) | Entity::Relay(_) | Entity::Routing(_) => {}
            }
            next = self.pop_first();
        }
        radios.sort_unstable();
        radios.dedup();
        for &radio in &radios {
            self.radios[radio].overdue.take(&mut due);
        }
        due.sort_unstable();
        due.dedup();
        for &index in &due {
            self.serve_timer(index, at);
        }
        due.clear();
        self.serving = due;
        for &radio in &radios {
            let air = &mut self.radios[radio].air;
            if air.poll_timeout().is_some_and(|due| due <= at) {
                air.handle_timeout(at);
                self.take_told(radio);
                self.serve_touched();
            }
        }
        radios.iter().for_each(|&radio| self.unsettled.radios.insert(radio));
        radios.clear();
        self.stepping = radios;
        self.wake_radios();
    }

    /// The next station or radio with something to do at this instant.
    fn pop_first(&mut self) -> Option<Entity> {
        let (at, rank) = self.agenda.peek()?;
        if at > self.now || rank != Rank::First {
            return None;
        }
        let (_, entity) = self.agenda.pop()?;
        entity.checked_sub(self.pipes.len()).map(|other| self.entities[other])
    }

    /// Passes on what the media deliver and takes what the stations send, until neither is left.
    pub fn settle(&mut self) {
        let mut radios = Vec::new();
        self.unsettled.radios.take(&mut radios);
        for &radio in &radios {
            self.take_told(radio);
            self.unsettled.radios.insert(radio);
        }
        self.serve_touched();
        if !self.is_somebody_due() {
            self.wake_radios();
        }
    }

    fn wake_radios(&mut self) {
        let mut radios = core::mem::take(&mut self.unsettled.radios.list);
        for &index in &radios {
            self.unsettled.radios.has[index] = false;
            let radio = &self.radios[index];
            self.agenda.wake_as(radio.entity, radio.timeout(self.now), Rank::First);
        }
        radios.clear();
        self.unsettled.radios.list = radios;
    }

    /// Delivers received frames, marks stations whose queues have room again, and reports outcomes
    /// to the senders of frames.
    fn take_told(&mut self, radio: RadioIndex) {
        self.show_transmissions(radio);
        while let Some(told) = self.radios[radio].air.poll() {
            match told {
                Told::Heard { at, from, to, addressed, frame, quality } => {
                    self.take_frame((radio, from, to), at, addressed, frame, quality);
                }
                Told::Room(place) => self.touch(radio, place),
                Told::Sent { from, to, outcome, attempts, frame } => {
                    self.touch(radio, from);
                    self.take_outcome(radio, (from, to), (outcome, attempts), &frame);
                }
            }
            self.show_transmissions(radio);
        }
    }

    fn touch(&mut self, radio: RadioIndex, place: usize) {
        self.drain_bridge(radio, place);
        let (node, station) = self.radios[radio].places[place];
        if let Some(station) = station {
            self.unsettled.stations.insert(station as usize);
        }
        for at in 0..self.nodes[node as usize].paced.len() {
            self.drain_agent(self.nodes[node as usize].paced[at] as usize);
        }
    }

    /// Reports a packet's outcome on its link to its sender, and to the listener at the node.
    fn take_outcome(
        &mut self,
        radio: RadioIndex,
        (from, to): (usize, Address),
        (outcome, attempts): (SendOutcome, u32),
        frame: &Frame,
    ) {
        let delivered = matches!(outcome, SendOutcome::Acknowledged | SendOutcome::Sent);
        self.stats.given_up += u64::from(!delivered);
        let places = &self.radios[radio].places;
        let node = places[from].0;
        let next = match to {
            Address::All => BROADCAST,
            Address::Station(place) => places[place].0,
        };
        self.note_fate((node, next), FrameEnd::from(outcome), attempts);
        if let Frame::Relayed(_) = frame {
            return self.take_relay_outcome((radio, from), to, (delivered, attempts));
        }
        let Frame::Packet(packet, _) = frame else { return };
        let Node { agents, listener, .. } = &self.nodes[node as usize];
        let own = agents.binary_search_by_key(&packet.flow, |&(flow, _)| flow);
        let own = own.ok().map(|place| agents[place].1);
        let told = [own, listener.filter(|&listener| Some(listener) != own)];
        if let Some(Paced { under_way, .. }) = own
            .filter(|_| packet.from == node)
            .and_then(|own| self.agents[own as usize].paced.as_mut())
        {
            *under_way = under_way.saturating_sub(1);
        }
        for agent in told.into_iter().flatten() {
            let outcome = LinkOutcome { next, delivered, attempts, packet };
            self.agents[agent as usize].agent.handle_outcome(self.now, &outcome);
            self.drain_agent(agent as usize);
        }
        if self.routing.is_some() {
            self.route_outcome(node, next, delivered, frame);
        }
    }

    /// Drains the stations that have had input.
    fn serve_touched(&mut self) {
        let mut ready = core::mem::take(&mut self.serving);
        self.unsettled.stations.take(&mut ready);
        ready.sort_unstable();
        ready.iter().for_each(|&index| self.drain_station(index));
        ready.clear();
        self.serving = ready;
    }

    fn take_frame(
        &mut self,
        way: (RadioIndex, usize, usize),
        at: Time,
        addressed: bool,
        frame: Frame,
        quality: Option<Quality>,
    ) {
        let (radio, from, to) = way;
        let (node, station) = self.radios[radio].places[to];
        match (frame, station) {
            (Frame::Sealed(_), Some(station)) if !addressed && self.is_deaf(station as usize) => {}
            (Frame::Sealed(bytes), Some(station)) => {
                self.deliver_frame(station as usize, way, at, &bytes);
            }
            (Frame::Relayed(bytes), _) => self.take_relayed(way, at, addressed, &bytes),
            (Frame::Packet(packet, ttl), _) if addressed => {
                self.stats.packet_hops += 1;
                match quality.filter(|_| self.routing.is_some()) {
                    Some(quality) => {
                        let from = self.radios[radio].places[from].0;
                        self.take_by_routing((from, node), quality, packet, ttl);
                    }
                    None => self.take_from_air(node, packet, ttl),
                }
            }
            (Frame::Packet(packet, _), _) => self.overhear_packet(node, &packet),
            (Frame::Sealed(bytes), None) if addressed => self.bridge((radio, to), bytes),
            // Overheard, or for no agent here.
            _ => {}
        }
    }

    /// Handles a packet that has come to a node by a radio.
    pub(super) fn take_from_air(&mut self, node: NodeIndex, packet: Arc<Packet>, ttl: u16) {
        if packet.to == node || packet.to == BROADCAST {
            return self.hand_over(node, Arc::unwrap_or_clone(packet));
        }
        if self.nodes[node as usize].overhearing.is_empty() {
            return self.pass_on_from_air(node, packet, ttl);
        }
        self.pass_on_from_air(node, Arc::clone(&packet), ttl);
        self.overhear_packet(node, &packet);
    }

    /// Forwards a packet that has come to a node by a radio.
    fn pass_on_from_air(&mut self, node: NodeIndex, packet: Arc<Packet>, ttl: u16) {
        let ttl = ttl.saturating_sub(1);
        let next = self.router.next(node, packet.to);
        let why = match next {
            Some(_) if ttl == 0 => {
                self.stats.expired += 1;
                Crossing::Expired
            }
            Some(link) if (link as usize) < self.pipes.len() => {
                let packet = Packet { ttl, ..Arc::unwrap_or_clone(packet) };
                return self.send_by(node, link, packet);
            }
            Some(link) => return self.send_on_air(node, link, packet, ttl),
            None => {
                self.stats.undeliverable += 1;
                Crossing::Unroutable
            }
        };
        if let Some(watcher) = &mut self.watcher {
            watcher.take_packet(self.now, node, &packet, why);
        }
    }

    fn show_transmissions(&mut self, radio: RadioIndex) {
        let Some(watcher) = &mut self.watcher else { return };
        match &mut self.radios[radio].air {
            Air::Ideal(medium) => {
                while let Some(sent) = medium.poll_transmission() {
                    watcher.take_transmission(radio, sent);
                }
            }
            Air::Line(line) => {
                while let Some(sent) = line.poll_transmission() {
                    watcher.take_transmission(radio, sent);
                }
            }
            Air::Mac(medium) => {
                while let Some(begun) = medium.poll_transmission() {
                    watcher.take_begun(radio, &begun);
                }
            }
        }
    }
}
