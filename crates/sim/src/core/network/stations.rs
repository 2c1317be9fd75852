//! Corridor stations of a network: between the packets of their nodes' agents and the frames of a
//! radio, driven exactly as a daemon is driven through real time: one thing in, then everything
//! out.
//!
//! Only the stations that something happens to are looked at: those whose timer is due, who hear a
//! frame, whose queue has room again, or whom the caller has touched. So an event costs the same
//! however many stations there are.

use std::collections::VecDeque;
use std::sync::Arc;

use corridor_air::Address;
use corridor_base::Time;
use corridor_proto::{AnyStation, Destination, Role, Station, StationId};

use super::air::{Frame, RadioIndex};
use super::{Entity, Network, NetworkError};
use crate::core::agenda::Rank;
use crate::core::agent::{Body, Packet};
use crate::core::watch::{Reception, SymbolCounts};

/// A station of a network, as [`Network::add_station`] named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationIndex(usize);

/// Which flow of its node a packet is of that has come out of a station, as a host's kernel tells
/// by addresses and ports; `None` for one that nobody waits for.
pub type FlowOf = fn(&[u8]) -> Option<u32>;

pub(super) struct Seat {
    station: AnyStation,
    pub(super) radio: RadioIndex,
    place: usize,
    /// Where it is besides: radios, and its places on them.
    ports: Vec<(RadioIndex, usize)>,
    entity: usize,
    /// The agenda's number of its host.
    host: usize,
    flow_of: FlowOf,
    /// Packets for the host's agents.
    inbox: VecDeque<Arc<[u8]>>,
    /// A frame that the radio had no room for.
    held: Option<(Way, Arc<[u8]>)>,
    /// The ways to the stations that it has sent to.
    known: Vec<(StationId, Way)>,
    /// The place of the host that hands its frames on to those whom it does not reach.
    gateway: Option<usize>,
    /// Its interface passes on only what is addressed to it.
    is_deaf: bool,
}

/// Where a frame goes: a radio, the sender's place on it, and the addressee.
type Way = (RadioIndex, usize, Address);

impl Network {
    /// Puts a station at a place on a radio. It carries what the agents of the node there send as
    /// [`Body::Bytes`]; what it has for the host goes to the agent of the flow that `flow_of` says.
    ///
    /// # Errors
    /// [`NetworkError::StationPlace`]: there is no such place, or it has a station.
    pub fn add_station(
        &mut self,
        radio: RadioIndex,
        place: usize,
        station: impl Into<AnyStation>,
        flow_of: FlowOf,
    ) -> Result<StationIndex, NetworkError> {
        let index = self.stations.len();
        let places = self.radios.get_mut(radio).and_then(|radio| radio.places.get_mut(place));
        let Some((node, seat @ None)) = places else {
            return Err(NetworkError::StationPlace { radio, place });
        };
        *seat = Some(index as u32);
        self.nodes[*node as usize].station = Some(index as u32);
        let entity = self.add_entity(Entity::Station(index as u32));
        let host = self.add_entity(Entity::Host(index as u32));
        self.stations.push(Seat {
            station: station.into(),
            radio,
            place,
            ports: Vec::new(),
            entity,
            host,
            flow_of,
            inbox: VecDeque::new(),
            held: None,
            known: Vec::new(),
            gateway: None,
            is_deaf: false,
        });
        self.unsettled.stations.insert(index);
        Ok(StationIndex(index))
    }

    /// Puts a station that is somewhere already at a place on another radio too, as a hub is that
    /// has several interfaces. Frames for all go to the first.
    ///
    /// # Errors
    /// [`NetworkError::StationPlace`]: there is no such place, or it has a station.
    pub fn add_port(
        &mut self,
        index: StationIndex,
        radio: RadioIndex,
        place: usize,
    ) -> Result<(), NetworkError> {
        let places = self.radios.get_mut(radio).and_then(|radio| radio.places.get_mut(place));
        let Some((_, seat @ None)) = places else {
            return Err(NetworkError::StationPlace { radio, place });
        };
        *seat = Some(index.0 as u32);
        self.stations[index.0].ports.push((radio, place));
        Ok(())
    }

    /// Lets a station's frames for those whom it does not reach go to a place on its radio, from
    /// where a [bridge](Self::add_bridge) hands them on.
    pub fn set_gateway(&mut self, index: StationIndex, place: usize) {
        self.stations[index.0].gateway = Some(place);
    }

    /// Lets a station hear only what is addressed to it, or to all, as interfaces do that are not
    /// told otherwise. Else it overhears everything, as helpers have to.
    pub fn set_deaf(&mut self, index: StationIndex) {
        self.stations[index.0].is_deaf = true;
    }

    pub(super) fn is_deaf(&self, index: usize) -> bool {
        self.stations[index].is_deaf
    }

    /// A station; of a hub, that for its first neighbour.
    pub fn station(&self, index: StationIndex) -> &Station {
        let mut stations = self.stations[index.0].station.stations();
        stations.next().expect("a hub has a neighbour")
    }

    /// A station with all its neighbours.
    pub fn any_station(&self, index: StationIndex) -> &AnyStation {
        &self.stations[index.0].station
    }

    /// A station, to put a packet in or to replace it. What follows from it follows before the
    /// next event; [`settle`](Self::settle) lets it follow at once.
    pub fn station_mut(&mut self, index: StationIndex) -> &mut AnyStation {
        self.unsettled.stations.insert(index.0);
        &mut self.stations[index.0].station
    }

    /// Advances until every station has met all that it exchanges frames with, to `until` at most,
    /// or until the watcher has seen enough. A load that begins before would measure handshakes.
    pub fn run_until_met(&mut self, until: Time) {
        self.run_until_or(until, Network::has_everybody_met);
    }

    fn has_everybody_met(&self) -> bool {
        let has_met = |station: &Station| match station.config().role {
            Role::Endpoint { peer, helper } => {
                station.is_up(peer) && helper.is_none_or(|helper| station.is_up(helper))
            }
            Role::Helper { between: (a, b) } => station.is_up(a) && station.is_up(b),
            Role::Plain { peer } => station.is_up(peer),
            // Relays in networks are no stations: see `relays.rs`.
            Role::Relay => true,
        };
        self.stations.iter().flat_map(|seat| seat.station.stations()).all(has_met)
    }

    /// Offers a station a packet of its node's; returns whether it carries such packets at all. A
    /// full ingress queue drops it, and counts.
    pub(super) fn is_taken_by(&mut self, index: usize, packet: &Packet) -> bool {
        let Body::Bytes(bytes) = &packet.body else { return false };
        self.stations[index].station.handle_packet(self.now, bytes);
        self.unsettled.stations.insert(index);
        true
    }

    /// A station's timer may be due.
    pub(super) fn serve_timer(&mut self, index: usize, at: Time) {
        let station = &mut self.stations[index].station;
        // What was overdue may have been put off since.
        if station.poll_timeout().is_some_and(|due| due <= at) {
            station.handle_timeout(at);
            self.drain_station(index);
        }
    }

    /// A station has heard a frame.
    pub(super) fn deliver_frame(
        &mut self,
        index: usize,
        (radio, from, to): (RadioIndex, usize, usize),
        at: Time,
        frame: &[u8],
    ) {
        let station = &mut self.stations[index].station;
        let before = self.watcher.is_some().then(|| SymbolCounts::of(&station.stats()));
        let outcome = station.handle_frame(at, frame);
        if let (Some(watcher), Some(before)) = (&mut self.watcher, before) {
            let symbols = SymbolCounts::of(&station.stats()).since(before);
            watcher.take_reception(&Reception { radio, from, to, outcome, symbols });
        }
        self.drain_station(index);
    }

    /// Takes packets, events and frames from a station, and its next timer.
    pub(super) fn drain_station(&mut self, index: usize) {
        let now = self.now;
        loop {
            self.take_packets(index);
            while self.stations[index].station.poll_event().is_some() {}
            self.offer_frames(index);
            let forwarded = self.forwarded(index);
            // As packets leave the ingress queue, the host may learn of more room.
            self.take_packets(index);
            // What a hub forwards to another neighbour for that leaves in the same way.
            if self.forwarded(index) == forwarded {
                break;
            }
        }
        let Seat { station, entity, radio, .. } = &self.stations[index];
        let (timer, radio) = (station.poll_timeout(), *radio);
        self.agenda.wake_as(*entity, timer.filter(|&at| at > now), Rank::First);
        if timer.is_some_and(|at| at <= now) {
            self.radios[radio].overdue.insert(index);
        }
    }

    /// Packets that a hub has handed from one neighbour to another.
    fn forwarded(&self, index: usize) -> u64 {
        let station = &self.stations[index].station;
        station.hub_stats().map_or(0, |stats| stats.packets_forwarded)
    }

    /// Makes frames as long as a station's radios have room for them.
    fn offer_frames(&mut self, index: usize) {
        let now = self.now;
        while self.ports(index).all(|(radio, place)| self.radios[radio].air.has_room(place)) {
            let (way, frame) = match self.stations[index].held.take() {
                Some(held) => held,
                None => match self.stations[index].station.poll_transmit(now) {
                    Some(transmit) => {
                        let (to, frame) = (transmit.to, Arc::from(transmit.frame));
                        (self.way(index, to), frame)
                    }
                    None => break,
                },
            };
            let sealed = Frame::Sealed(Arc::clone(&frame));
            let (radio, place, to) = way;
            if !self.radios[radio].air.offer(now, place, to, sealed) {
                self.stations[index].held = Some((way, frame));
                self.unsettled.stations.insert(index);
                break;
            }
        }
        let Seat { radio, ports, .. } = &self.stations[index];
        self.unsettled.radios.insert(*radio);
        ports.iter().for_each(|&(radio, _)| self.unsettled.radios.insert(radio));
    }

    /// The radios that a station is on, and its places there.
    fn ports(&self, index: usize) -> impl Iterator<Item = (RadioIndex, usize)> + '_ {
        let Seat { radio, place, ports, .. } = &self.stations[index];
        [(*radio, *place)].into_iter().chain(ports.iter().copied())
    }

    /// Where a station's frame goes. Numbers of stations need only differ among those that hear
    /// each other.
    fn way(&mut self, index: usize, to: Destination) -> Way {
        let Seat { radio, place, known, gateway, .. } = &self.stations[index];
        let (radio, place, gateway) = (*radio, *place, *gateway);
        let (Destination::Station(id) | Destination::Search(id)) = to else {
            return (radio, place, Address::All);
        };
        if let Some(&(_, way)) = known.iter().find(|(known, _)| *known == id) {
            return way;
        }
        let is_it = |radio: RadioIndex, at: usize| {
            let station = self.radios[radio].places[at].1;
            let station = station.map(|index| &self.stations[index as usize].station);
            station.is_some_and(|station| station.config().id == id)
        };
        let others = |(radio, place): (RadioIndex, usize)| {
            let count = self.radios[radio].places.len();
            (0..count).filter(move |&at| at != place).map(move |at| (radio, place, at))
        };
        let ports: Vec<_> = self.ports(index).collect();
        let places = ports.into_iter().flat_map(others);
        let places: Vec<_> = places.filter(|&(radio, _, at)| is_it(radio, at)).collect();
        let hears =
            |&(radio, place, at): &(RadioIndex, usize, usize)| self.radios[radio].hears(place, at);
        let gateway = gateway.map(|at| (radio, place, at));
        let found = places.iter().copied().find(hears).or(gateway).or(places.first().copied());
        let Some((radio, place, at)) = found else {
            // Nobody has this number here: nobody hears it.
            return (radio, place, Address::Station(self.radios[radio].places.len()));
        };
        let way = (radio, place, Address::Station(at));
        self.stations[index].known.push((id, way));
        way
    }

    /// Keeps for the host what there is for it.
    fn take_packets(&mut self, index: usize) {
        let Seat { station, inbox, host, .. } = &mut self.stations[index];
        let was_empty = inbox.is_empty();
        while let Some(packet) = station.poll_packet() {
            inbox.push_back(Arc::from(packet.bytes()));
        }
        if was_empty && !inbox.is_empty() {
            self.agenda.wake(*host, Some(self.now));
        }
    }

    /// Gives the agents of a station's node what has come out of it.
    pub(super) fn deliver_to_host(&mut self, index: usize) {
        let (radio, place) = (self.stations[index].radio, self.stations[index].place);
        let node = self.radios[radio].places[place].0;
        let mut asked = Vec::new();
        while let Some(bytes) = self.stations[index].inbox.pop_front() {
            let agents = &self.nodes[node as usize].agents;
            let flow = (self.stations[index].flow_of)(&bytes);
            let place = flow.map(|flow| agents.binary_search_by_key(&flow, |&(flow, _)| flow));
            let (Some(flow), Some(Ok(place))) = (flow, place) else {
                self.stats.undeliverable += 1;
                continue;
            };
            let agent = agents[place].1 as usize;
            self.stats.delivered += 1;
            let len_bytes = bytes.len() as u32;
            let body = Body::Bytes(bytes);
            let packet = Packet { flow, from: node, to: node, len_bytes, ttl: 1, body };
            self.agents[agent].agent.handle_packet(self.now, packet);
            asked.push(agent);
        }
        asked.sort_unstable();
        asked.dedup();
        asked.into_iter().for_each(|agent| self.drain_agent(agent));
    }
}
