//! Radios of a network: places on a medium, nodes at them, and the steps of an instant.

use std::sync::Arc;

use corridor_air::{Address, Carried, Delivery, Medium};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};

use super::router::{Link, OnAir};
use super::topology::{NetworkError, RadioConfig};
use super::{Entity, Network};
use crate::core::agenda::Rank;
use crate::core::agent::{EVERYBODY, NodeIndex, Packet};
use crate::core::watch::Crossing;

/// A radio of a network: its place in [`Topology::radios`](super::Topology::radios).
pub type RadioIndex = usize;

/// What crosses a radio. All who hear it have the same one: nothing is copied.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// What a Corridor station has made.
    Sealed(Arc<[u8]>),
    /// A packet of an agent's, and the links that it may still cross, this one among them.
    Packet(Arc<Packet>, u16),
}

impl Carried for Frame {
    fn len_bytes(&self) -> usize {
        match self {
            Frame::Sealed(bytes) => bytes.len(),
            Frame::Packet(packet, _) => packet.len_bytes as usize,
        }
    }
}

pub(super) struct Radio {
    pub(super) medium: Medium<Frame>,
    /// Who is at each place: the node, and its station if it has one here.
    pub(super) places: Vec<(NodeIndex, Option<u32>)>,
    pub(super) entity: usize,
    /// Stations whose timer has passed: for the next event, whatever it is.
    pub(super) overdue: Set,
}

impl Radio {
    pub(super) fn keep_transmissions(&mut self) {
        self.medium.keep_transmissions();
    }

    /// When it is to be woken next. What has passed waits for now.
    fn timeout(&self, now: Time) -> Option<Time> {
        self.medium.poll_timeout().map(|at| at.max(now))
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

    /// Moves all of them into `list`.
    fn take(&mut self, list: &mut Vec<usize>) {
        self.list.iter().for_each(|&index| self.has[index] = false);
        list.append(&mut self.list);
    }
}

/// What waits until everybody has been asked at an instant.
#[derive(Default)]
pub(super) struct Unsettled {
    /// Stations to be drained.
    pub(super) stations: Set,
    /// Radios whose next time may be another.
    pub(super) radios: Set,
}

impl Unsettled {
    pub(super) fn is_empty(&self) -> bool {
        self.stations.list.is_empty() && self.radios.list.is_empty()
    }
}

/// What radios carry from node to node, in the order of the media's own lists.
pub(super) fn links(radios: &[RadioConfig]) -> impl Iterator<Item = (NodeIndex, NodeIndex, OnAir)> {
    radios.iter().enumerate().flat_map(|(index, radio)| {
        radio.medium.links.iter().filter_map(move |link| {
            let (from, to) = (*radio.nodes.get(link.from)?, *radio.nodes.get(link.to)?);
            let radio = index as u32;
            Some((from, to, OnAir { radio, from: link.from as u32, to: link.to as u32 }))
        })
    })
}

impl Network {
    pub(super) fn add_radio(
        &mut self,
        config: &RadioConfig,
        seed: u64,
        replication: u64,
    ) -> Result<(), NetworkError> {
        let index = self.radios.len();
        let mut medium = config.medium.clone();
        medium.replication = replication;
        medium.seed = match index {
            0 => seed,
            // Links of different radios have the same names.
            _ => StreamKey { seed, replication, entity: index as u64, purpose: "radio" }
                .stream()
                .next_u64(),
        };
        let medium = Medium::new(medium);
        let medium = medium.map_err(|source| NetworkError::Radio { index, source })?;
        let entity = self.add_entity(Entity::Radio(index as u32));
        let places = config.nodes.iter().map(|&node| (node, None)).collect();
        self.radios.push(Radio { medium, places, entity, overdue: Set::default() });
        Ok(())
    }

    /// The medium of a radio, for its statistics.
    ///
    /// # Panics
    /// If there is no such radio.
    pub fn medium(&self, radio: RadioIndex) -> &Medium<Frame> {
        &self.radios[radio].medium
    }

    /// Puts a packet into the queue of its node's place on a radio.
    pub(super) fn send_on_air(
        &mut self,
        node: NodeIndex,
        link: Link,
        packet: Arc<Packet>,
        ttl: u16,
    ) {
        let Some(OnAir { radio, from, to }) = self.router.on_air(link) else { return };
        let address = match packet.to {
            EVERYBODY => Address::All,
            _ => Address::Station(to as usize),
        };
        let medium = &mut self.radios[radio as usize].medium;
        let seen = self.watcher.is_some().then(|| Arc::clone(&packet));
        let frame = Frame::Packet(packet, ttl);
        let refused = medium.offer(self.now, from as usize, address, frame).is_err();
        self.unsettled.radios.insert(radio as usize);
        self.stats.refused += u64::from(refused);
        if let (Some(watcher), Some(packet)) = (&mut self.watcher, seen) {
            let next = match packet.to {
                EVERYBODY => EVERYBODY,
                _ => self.router.ends(link).1,
            };
            let crossing = if refused { Crossing::Dropped(next) } else { Crossing::Sent(next) };
            watcher.take_packet(self.now, node, &packet, crossing);
        }
    }

    /// Handles all that stations and radios have to do at this instant: the stations' timers
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
                Entity::Agent(_) | Entity::Host(_) => {}
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
            let medium = &mut self.radios[radio].medium;
            if medium.poll_timeout().is_some_and(|due| due <= at) {
                medium.handle_timeout(at);
                self.take_deliveries(radio);
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

    /// Passes on what the media deliver and takes what the stations send, until both rest.
    pub fn settle(&mut self) {
        let mut radios = Vec::new();
        self.unsettled.radios.take(&mut radios);
        for &radio in &radios {
            self.take_deliveries(radio);
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

    /// Gives everybody what they have heard, and marks whose queues have room again.
    fn take_deliveries(&mut self, radio: RadioIndex) {
        self.show_transmissions(radio);
        while let Some(delivery) = self.radios[radio].medium.poll_delivery() {
            self.take_delivery(radio, delivery);
            self.show_transmissions(radio);
        }
        while let Some(place) = self.radios[radio].medium.poll_room() {
            if let Some(station) = self.radios[radio].places[place].1 {
                self.unsettled.stations.insert(station as usize);
            }
        }
    }

    /// Drains the stations that something has happened to.
    fn serve_touched(&mut self) {
        let mut ready = core::mem::take(&mut self.serving);
        self.unsettled.stations.take(&mut ready);
        ready.sort_unstable();
        ready.iter().for_each(|&index| self.drain_station(index));
        ready.clear();
        self.serving = ready;
    }

    fn take_delivery(&mut self, radio: RadioIndex, delivery: Delivery<Frame>) {
        let (node, station) = self.radios[radio].places[delivery.to];
        match (delivery.frame, station) {
            (Frame::Sealed(bytes), Some(station)) => {
                let (from, to) = (delivery.from, delivery.to);
                self.deliver_frame(station as usize, (radio, from, to), delivery.at, &bytes);
            }
            (Frame::Packet(packet, ttl), _) if delivery.addressed => {
                self.stats.packet_hops += 1;
                self.take_from_air(node, packet, ttl);
            }
            // Overheard, or for nobody here.
            _ => {}
        }
    }

    /// A packet has come to a node by a radio.
    fn take_from_air(&mut self, node: NodeIndex, packet: Arc<Packet>, ttl: u16) {
        if packet.to == node || packet.to == EVERYBODY {
            return self.hand_over(node, Arc::unwrap_or_clone(packet));
        }
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
        if let Some(watcher) = &mut self.watcher {
            while let Some(sent) = self.radios[radio].medium.poll_transmission() {
                watcher.take_transmission(radio, sent);
            }
        }
    }
}
