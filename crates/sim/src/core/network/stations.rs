//! Corridor stations in a network, between the packets of their nodes' agents and the frames of a
//! radio. They are driven as the daemon drives them in real time: one input, then all outputs.
//!
//! Only stations with input are served: those with a timer due, a frame received, room in a queue
//! that was full, or a call by the user. The cost of an event therefore does not depend on the
//! number of stations.

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

/// A station of a network, as returned by [`Network::add_station`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationIndex(usize);

/// Maps a packet that a station delivers to the flow of its node that it belongs to, as a kernel
/// does by addresses and ports; `None` if no flow wants it.
pub type FlowOf = fn(&[u8]) -> Option<u32>;

pub(super) struct Seat {
    station: AnyStation,
    pub(super) radio: RadioIndex,
    place: usize,
    /// Its other radios, and its places on them.
    ports: Vec<(RadioIndex, usize)>,
    entity: usize,
    /// The number of its host in the agenda.
    host: usize,
    flow_of: FlowOf,
    /// Packets for the host's agents.
    inbox: VecDeque<Arc<[u8]>>,
    /// A frame that the radio had no room for.
    held: Option<(Way, Arc<[u8]>)>,
    /// Where frames go for each station that it has sent to.
    known: Vec<(StationId, Way)>,
    /// The place of the bridge that forwards its frames to stations out of its reach.
    gateway: Option<usize>,
    /// Whether its interface passes on only frames addressed to it.
    is_deaf: bool,
}

/// Where a frame goes: a radio, the sender's place on it, and the addressee.
type Way = (RadioIndex, usize, Address);

impl Network {
    /// Adds a station at a place on a radio. It carries what the agents of that node send as
    /// [`Body::Bytes`]; what it delivers goes to the agent of the flow that `flow_of` names.
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

    /// Adds a place on another radio to an existing station, like a further interface of a hub.
    /// Broadcasts go to the first place only.
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

    /// Sends a station's frames for stations out of its reach to a place on its radio, from where a
    /// [bridge](Self::add_bridge) forwards them.
    pub fn set_gateway(&mut self, index: StationIndex, place: usize) {
        self.stations[index.0].gateway = Some(place);
    }

    /// Makes a station receive only what is addressed to it or broadcast, as interfaces do by
    /// default. Otherwise it overhears everything, as helpers need.
    pub fn set_deaf(&mut self, index: StationIndex) {
        self.stations[index.0].is_deaf = true;
    }

    pub(super) fn is_deaf(&self, index: usize) -> bool {
        self.stations[index].is_deaf
    }

    /// A station; of a hub, its station for the first neighbour.
    pub fn station(&self, index: StationIndex) -> &Station {
        let mut stations = self.stations[index.0].station.stations();
        stations.next().expect("a hub has a neighbour")
    }

    /// A station, or a hub with the stations for all its neighbours.
    pub fn any_station(&self, index: StationIndex) -> &AnyStation {
        &self.stations[index.0].station
    }

    /// A station, to give it a packet or to replace it. The consequences take effect before the
    /// next event; [`settle`](Self::settle) brings them about at once.
    pub fn station_mut(&mut self, index: StationIndex) -> &mut AnyStation {
        self.unsettled.stations.insert(index.0);
        &mut self.stations[index.0].station
    }

    /// Advances until every station has sessions with all that it exchanges frames with, but not
    /// beyond `until`, and stops when the watcher has seen enough. A load that began earlier would
    /// measure handshakes.
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

    /// Offers a station a packet of its node; returns whether it carries such packets at all. A
    /// full ingress queue drops the packet and counts it.
    pub(super) fn is_taken_by(&mut self, index: usize, packet: &Packet) -> bool {
        let Body::Bytes(bytes) = &packet.body else { return false };
        self.stations[index].station.handle_packet(self.now, bytes);
        self.unsettled.stations.insert(index);
        true
    }

    /// Serves a station whose timer may be due.
    pub(super) fn serve_timer(&mut self, index: usize, at: Time) {
        let station = &mut self.stations[index].station;
        // The timer may have been moved since it was overdue.
        if station.poll_timeout().is_some_and(|due| due <= at) {
            station.handle_timeout(at);
            self.drain_station(index);
        }
    }

    /// Gives a station a frame that it has heard.
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

    /// Takes packets, events and frames from a station, and its next timeout.
    pub(super) fn drain_station(&mut self, index: usize) {
        let now = self.now;
        loop {
            self.take_packets(index);
            while self.stations[index].station.poll_event().is_some() {}
            self.offer_frames(index);
            let forwarded = self.forwarded(index);
            // As the ingress queue drains, the station may have packets that announce more room to
            // its host.
            self.take_packets(index);
            // Another round sends what the hub has forwarded to another neighbour meanwhile.
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

    /// Packets that a hub has forwarded from one neighbour to another.
    fn forwarded(&self, index: usize) -> u64 {
        let station = &self.stations[index].station;
        station.hub_stats().map_or(0, |stats| stats.packets_forwarded)
    }

    /// Takes frames from a station while its radios have room for them.
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

    /// A station's radios, and its places on them.
    fn ports(&self, index: usize) -> impl Iterator<Item = (RadioIndex, usize)> + '_ {
        let Seat { radio, place, ports, .. } = &self.stations[index];
        [(*radio, *place)].into_iter().chain(ports.iter().copied())
    }

    /// Where a station's frame goes. Station numbers only need to be unique among stations that
    /// hear each other.
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
            // No station here has this number, so none hears the frame.
            return (radio, place, Address::Station(self.radios[radio].places.len()));
        };
        let way = (radio, place, Address::Station(at));
        self.stations[index].known.push((id, way));
        way
    }

    /// Keeps packets that a station has for its host.
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

    /// Delivers to the agents of a station's node what the station has decoded.
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
