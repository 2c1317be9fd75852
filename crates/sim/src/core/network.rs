//! The network: nodes, the links that join them, and virtual time. Every simulation runs in one.
//!
//! A node has agents, a router that looks up next hops, links to other nodes (pipes, or places on
//! radios), and optionally a Corridor station, which carries its agents' packets in frames of its
//! own. A packet costs one event for each pipe that it crosses: its delivery at the other end,
//! where it enters the next link's queue or reaches the agent of its flow. The packet itself stays
//! in one place meanwhile; a ticket with what routers and links need moves from queue to queue.
//! Nothing is allocated once the queues have grown to their full lengths.
//!
//! Pipes, radios, stations, hosts and agents are the entities of one [`Agenda`]. A run is a
//! function of the topology, of what the nodes carry and of the seed, on every machine.
//!
//! # Order within an instant
//!
//! Stations' timers come first, then the radios, until nothing is left to do for either. Everything
//! else follows in the order in which it asked to be woken. What agents send goes to the radios
//! only when all of them have had their turn, so that all who answer at the same instant contend
//! for the channel together.

mod air;
mod bridges;
mod interfaces;
mod outcomes;
mod overhearing;
mod relays;
mod router;
mod routing;
mod stations;
mod topology;

use std::collections::BTreeMap;
use std::sync::Arc;

use corridor_air::{Address, Pipe, PipeStats};
use corridor_base::{StreamKey, Time};
use corridor_scenario::FrameEnd;
use slab::Slab;

use crate::core::agenda::{Agenda, Rank};
use crate::core::agent::{Agent, BROADCAST, NodeIndex, Packet, TTL_MAX};
use crate::core::watch::{Crossing, Watcher};
use air::Radio;
pub use air::{Frame, RadioIndex, Reach};
use bridges::Bridge;
pub use bridges::BridgeEnds;
pub use interfaces::{FrameCounts, Interface};
pub use outcomes::FrameFate;
pub use overhearing::Hop;
use router::{Link, Router};
use routing::Routing;
pub use routing::{ROUTING_FLOW, RouteLinks};
use stations::Seat as StationSeat;
pub use stations::{FlowOf, StationIndex};
pub use topology::{
    AirConfig, MAX_NODES, MAX_PIPES, MAX_RADIOS, NetworkError, RadioSite, Topology,
};

/// An agent of a network, as returned by [`Network::add_agent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentIndex(usize);

/// Counters of the whole network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkStats {
    /// Events handled: deliveries at the end of a pipe, agents' timeouts, instants at which
    /// stations and radios did something, deliveries from a station to its host.
    pub events: u64,
    /// Links crossed, summed over all packets.
    pub packet_hops: u64,
    /// Packets that agents have sent.
    pub sent: u64,
    /// Packets that reached the agent they were for.
    pub delivered: u64,
    /// Packets dropped because a link's queue was full.
    pub refused: u64,
    /// Packets lost by pipes.
    pub erased: u64,
    /// Packets dropped for want of a route, or of an agent of the flow at the destination;
    /// broadcasts are not counted.
    pub undeliverable: u64,
    /// Packets dropped because they had crossed as many links as they may.
    pub expired: u64,
    /// Frames that MACs gave up.
    pub given_up: u64,
    /// Packets that relays decoded to other bytes than were sent.
    pub corrupted: u64,
}

/// Represents a packet in the pipes' queues.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    /// Where the packet is stored.
    packet: u32,
    to: NodeIndex,
    len_bytes: u32,
    ttl: u16,
}

/// Most packets of a paced agent that a MAC has at once: one on the air, and one behind it.
const PACED_PACKETS: u32 = 2;

/// An agent that sends only when its radios have room.
struct Paced {
    /// Its destinations.
    to: Vec<NodeIndex>,
    /// Its packets that the MAC has not finished with.
    under_way: u32,
}

/// A node.
#[derive(Default)]
struct Node {
    /// The agents here, sorted by flow.
    agents: Vec<(u32, u32)>,
    /// Its places on radios.
    places: Vec<(RadioIndex, usize)>,
    /// The station that carries its agents' bytes, if it has one.
    station: Option<u32>,
    /// The agent that learns the outcome of all that the node sends by radio.
    listener: Option<u32>,
    /// The agents here that send only when their radios have room.
    paced: Vec<u32>,
    /// The agents here that also receive overheard packets of their flows, by flow.
    overhearing: Vec<(u32, u32)>,
}

/// An agent and its node.
struct Seat {
    agent: Box<dyn Agent>,
    node: NodeIndex,
    entity: usize,
    /// Most links that its packets may cross.
    links_max: u16,
    /// Set if it sends only when its radios have room.
    paced: Option<Paced>,
    /// See [`Agent::updates_waiting`].
    updates: bool,
}

/// What the agenda wakes; pipes come before these.
#[derive(Clone, Copy, Debug)]
enum Entity {
    Agent(u32),
    Radio(u32),
    Station(u32),
    Relay(u32),
    /// The host that receives the packets of a station.
    Host(u32),
    /// The router of a node that discovers routes itself.
    Routing(NodeIndex),
}

/// A topology with agents and stations, run in virtual time. See the module's overview.
pub struct Network {
    now: Time,
    agenda: Agenda,
    pipes: Vec<Pipe<Ticket>>,
    /// The packets in pipes, bounded by the pipes' capacities.
    packets: Slab<Packet>,
    router: Router,
    /// Where nodes discover routes themselves.
    routing: Option<Box<Routing>>,
    nodes: Vec<Node>,
    agents: Vec<Seat>,
    radios: Vec<Radio>,
    stations: Vec<StationSeat>,
    /// Hosts that forward stations' frames.
    bridges: Vec<Bridge>,
    relays: Vec<relays::Seat>,
    /// The relay at each place of a radio.
    relay_at: BTreeMap<(RadioIndex, usize), u32>,
    /// Packets that relays' frames refer to.
    under_way: relays::UnderWay,
    /// Entities by their number in the agenda, less the number of pipes.
    entities: Vec<Entity>,
    /// Work to do once everything else at this instant has had its turn.
    unsettled: air::Unsettled,
    /// Stations being served; empty between events.
    serving: Vec<usize>,
    /// Radios being stepped; empty between events.
    stepping: Vec<RadioIndex>,
    stats: NetworkStats,
    watcher: Option<Box<dyn Watcher>>,
    /// Outcomes of frames, if they are counted.
    fates: Option<Box<outcomes::Fates>>,
}

impl Network {
    /// An idle network at time zero.
    ///
    /// # Errors
    /// The first field of `topology` that is out of range.
    pub fn new(topology: &Topology, seed: u64, replication: u64) -> Result<Self, NetworkError> {
        topology.check()?;
        let mut pipes = Vec::with_capacity(topology.pipes.len());
        for (index, (from, to, config)) in topology.pipes.iter().enumerate() {
            // Keyed by its ends: a link keeps its losses when another one joins the topology.
            let entity = u64::from(*from) << 32 | u64::from(*to);
            let key = StreamKey { seed, replication, entity, purpose: "erasure" };
            let pipe = Pipe::new(config, key);
            pipes.push(pipe.map_err(|source| NetworkError::Pipe { index, source })?);
        }
        let ends = topology.pipes.iter().map(|&(from, to, _)| (from, to));
        let sites = topology.radios.iter().enumerate();
        let radios = sites.map(|(index, site)| Radio::new(index, site, seed, replication));
        let radios = radios.collect::<Result<Vec<_>, _>>()?;
        let mut network = Network {
            now: Time::ZERO,
            agenda: Agenda::new(pipes.len()),
            pipes,
            packets: Slab::new(),
            router: Router::new(topology.nodes, ends, air::links(&radios)),
            routing: None,
            nodes: (0..topology.nodes).map(|_| Node::default()).collect(),
            agents: Vec::new(),
            radios,
            stations: Vec::new(),
            bridges: Vec::new(),
            relays: Vec::new(),
            relay_at: BTreeMap::new(),
            under_way: relays::UnderWay::default(),
            entities: Vec::new(),
            unsettled: air::Unsettled::default(),
            serving: Vec::new(),
            stepping: Vec::new(),
            stats: NetworkStats::default(),
            watcher: None,
            fates: None,
        };
        for (index, site) in topology.radios.iter().enumerate() {
            network.radios[index].entity = network.add_entity(Entity::Radio(index as u32));
            for (place, &node) in site.nodes.iter().enumerate() {
                network.nodes[node as usize].places.push((index, place));
            }
        }
        Ok(network)
    }

    /// Adds an agent to `node`; it receives the packets of `flow` that are addressed to this node.
    ///
    /// # Errors
    /// [`NetworkError::AgentNode`], [`NetworkError::DuplicateAgent`].
    pub fn add_agent(
        &mut self,
        node: NodeIndex,
        flow: u32,
        agent: impl Agent,
    ) -> Result<AgentIndex, NetworkError> {
        let nodes = self.nodes.len();
        let Some(host) = self.nodes.get_mut(node as usize) else {
            return Err(NetworkError::AgentNode { given: node, nodes });
        };
        let Err(place) = host.agents.binary_search_by_key(&flow, |&(flow, _)| flow) else {
            return Err(NetworkError::DuplicateAgent { node, flow });
        };
        let index = self.agents.len();
        host.agents.insert(place, (flow, index as u32));
        let entity = self.add_entity(Entity::Agent(index as u32));
        self.agenda.wake(entity, agent.poll_timeout());
        let (updates, agent) = (agent.updates_waiting(), Box::new(agent));
        self.agents.push(Seat { agent, node, entity, links_max: TTL_MAX, paced: None, updates });
        Ok(AgentIndex(index))
    }

    /// Limits the links that an agent's packets may cross.
    pub fn limit_links(&mut self, agent: AgentIndex, links_max: u16) {
        if let Some(seat) = self.agents.get_mut(agent.0) {
            seat.links_max = links_max;
        }
    }

    /// Paces an agent that only sends to the nodes `to`: it is asked for packets only while each
    /// radio by which they leave its node has room, as a blocking socket would. Wires have no
    /// back-pressure; they accept everything and drop what exceeds their queue.
    pub fn pace(&mut self, agent: AgentIndex, to: &[NodeIndex]) {
        if let Some(seat) = self.agents.get_mut(agent.0) {
            seat.paced = Some(Paced { to: to.to_vec(), under_way: 0 });
            self.nodes[seat.node as usize].paced.push(agent.0 as u32);
        }
    }

    /// Routes packets for `to` from `node` to its neighbour `next`, whichever route is shortest.
    ///
    /// # Errors
    /// [`NetworkError::NoLink`].
    pub fn set_route(
        &mut self,
        node: NodeIndex,
        to: NodeIndex,
        next: NodeIndex,
    ) -> Result<(), NetworkError> {
        self.set_route_by(node, to, (next, None))
    }

    /// Like [`set_route`](Self::set_route), by a radio that both are on.
    ///
    /// # Errors
    /// [`NetworkError::NoLink`].
    pub fn set_route_by(
        &mut self,
        node: NodeIndex,
        to: NodeIndex,
        (next, radio): (NodeIndex, Option<RadioIndex>),
    ) -> Result<(), NetworkError> {
        let link = match radio {
            None => self.router.link(node, next),
            Some(radio) => self.router.link_by(node, next, radio),
        };
        let link = link.ok_or(NetworkError::NoLink { node, next })?;
        self.router.set(node, to, Some(link));
        Ok(())
    }

    /// Makes an agent learn the outcome of every packet that its node has sent by radio, its own
    /// and forwarded ones, as a routing protocol needs.
    pub fn set_listener(&mut self, agent: AgentIndex) {
        if let Some(seat) = self.agents.get(agent.0) {
            self.nodes[seat.node as usize].listener = Some(agent.0 as u32);
        }
    }

    fn add_entity(&mut self, entity: Entity) -> usize {
        self.entities.push(entity);
        let count = self.pipes.len() + self.entities.len();
        self.agenda.grow(count);
        count - 1
    }

    /// Sets a watcher, which sees everything from now on. It changes nothing that happens.
    pub fn set_watcher(&mut self, watcher: Box<dyn Watcher>) {
        self.radios.iter_mut().for_each(Radio::keep_transmissions);
        self.watcher = Some(watcher);
    }

    /// Whether there is a watcher that has seen enough.
    pub fn is_watched_enough(&self) -> bool {
        self.watcher.as_ref().is_some_and(|watcher| watcher.has_enough())
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// An agent, if it is of type `A`.
    pub fn agent<A: Agent>(&self, index: AgentIndex) -> Option<&A> {
        let agent: &dyn core::any::Any = &*self.agents.get(index.0)?.agent;
        agent.downcast_ref()
    }

    /// Calls `tell` on an agent, if it is of type `A`, and re-reads the agent's timeout.
    pub fn tell<A: Agent, R>(
        &mut self,
        index: AgentIndex,
        tell: impl FnOnce(&mut A) -> R,
    ) -> Option<R> {
        let seat = self.agents.get_mut(index.0)?;
        let agent: &mut dyn core::any::Any = &mut *seat.agent;
        let told = tell(agent.downcast_mut()?);
        self.agenda.wake(seat.entity, seat.agent.poll_timeout());
        Some(told)
    }

    /// Has an agent handle its timeout now, before anything else, and takes what it sends.
    pub fn ask(&mut self, index: AgentIndex) {
        if let Some(seat) = self.agents.get_mut(index.0) {
            seat.agent.handle_timeout(self.now);
            self.drain_agent(index.0);
        }
    }

    /// Counters of the pipe from one node to another, if there is one.
    pub fn pipe_stats(&self, from: NodeIndex, to: NodeIndex) -> Option<PipeStats> {
        self.router.pipe(from, to).map(|index| *self.pipes[index].stats())
    }

    /// Packets waiting for the transmitter of the pipe from one node to another, if there is one.
    pub fn backlog(&self, from: NodeIndex, to: NodeIndex) -> Option<usize> {
        self.router.pipe(from, to).map(|index| self.pipes[index].backlog(self.now))
    }

    /// Packets in pipes.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Counters so far.
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }

    /// When the next event is due.
    pub fn next_event(&mut self) -> Option<Time> {
        self.rest();
        self.agenda.next_at()
    }

    /// Advances to `until`, handling all events up to then.
    pub fn run_until(&mut self, until: Time) {
        while self.step_until(until) {}
        self.now = self.now.max(until);
    }

    /// Advances event by event until `is_done` returns true, the watcher has seen enough, or
    /// `until`.
    pub fn run_until_or(&mut self, until: Time, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) && !self.is_watched_enough() {
            if !self.step_until(until) {
                self.now = self.now.max(until);
                return;
            }
        }
    }

    /// Handles the next event. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        self.step_until(Time::MAX)
    }

    /// Like [`step`](Self::step), unless the event is later than `until`.
    fn step_until(&mut self, until: Time) -> bool {
        self.rest();
        let Some((at, entity)) = self.agenda.pop_until(until) else { return false };
        self.now = self.now.max(at);
        self.stats.events += 1;
        match entity.checked_sub(self.pipes.len()) {
            None => self.deliver(entity),
            Some(other) => match self.entities[other] {
                Entity::Agent(agent) => {
                    self.agents[agent as usize].agent.handle_timeout(self.now);
                    self.drain_agent(agent as usize);
                }
                Entity::Relay(relay) => self.wake_relay(relay),
                Entity::Host(station) => self.deliver_to_host(station as usize),
                Entity::Routing(node) => self.handle_routing_timeout(node),
                first @ (Entity::Radio(_) | Entity::Station(_)) => self.step_radios(first),
            },
        }
        true
    }

    /// Moves a packet from the end of a pipe to where it goes next.
    fn deliver(&mut self, index: usize) {
        let pipe = &mut self.pipes[index];
        let ticket = pipe.poll_delivery(self.now);
        self.agenda.wake(index, pipe.poll_timeout());
        let Some(ticket) = ticket else { return };
        self.stats.packet_hops += 1;
        let node = self.router.ends(index as Link).1;
        if ticket.to != node && ticket.to != BROADCAST {
            return self.pass_on(node, ticket);
        }
        let packet = self.packets.remove(ticket.packet as usize);
        self.hand_over(node, packet);
    }

    /// Hands a packet to the agent of its flow.
    fn hand_over(&mut self, node: NodeIndex, packet: Packet) {
        let agents = &self.nodes[node as usize].agents;
        let Ok(place) = agents.binary_search_by_key(&packet.flow, |&(flow, _)| flow) else {
            // A broadcast is only for those nodes that have an agent of its flow.
            self.stats.undeliverable += u64::from(packet.to != BROADCAST);
            return;
        };
        let agent = agents[place].1 as usize;
        self.stats.delivered += 1;
        if let Some(watcher) = &mut self.watcher {
            watcher.take_packet(self.now, node, &packet, Crossing::Arrived);
        }
        self.agents[agent].agent.handle_packet(self.now, packet);
        self.drain_agent(agent);
    }

    /// Forwards a packet that has come to `node` by a pipe.
    fn pass_on(&mut self, node: NodeIndex, ticket: Ticket) {
        let ttl = ticket.ttl.saturating_sub(1);
        if ttl == 0 {
            self.stats.expired += 1;
            return self.drop_ticket(node, ticket, Crossing::Expired);
        }
        let Some(link) = self.router.next(node, ticket.to) else {
            self.stats.undeliverable += 1;
            return self.drop_ticket(node, ticket, Crossing::Unroutable);
        };
        if (link as usize) < self.pipes.len() {
            return self.forward(node, link as usize, Ticket { ttl, ..ticket });
        }
        let packet = self.packets.remove(ticket.packet as usize);
        self.send_on_air(node, link, packet.into(), ttl);
    }

    fn drop_ticket(&mut self, node: NodeIndex, ticket: Ticket, why: Crossing) {
        let packet = self.packets.remove(ticket.packet as usize);
        if let Some(watcher) = &mut self.watcher {
            watcher.take_packet(self.now, node, &packet, why);
        }
    }

    /// Puts a packet into the queue of a pipe.
    fn forward(&mut self, node: NodeIndex, index: usize, ticket: Ticket) {
        let pipe = &mut self.pipes[index];
        let offered = pipe.offer(self.now, ticket.len_bytes, ticket);
        if let Some(watcher) = &mut self.watcher {
            let next = self.router.ends(index as Link).1;
            let crossing = match offered {
                Ok(None) => Crossing::Sent(next),
                Ok(Some(_)) => Crossing::Lost(next),
                Err(_) => Crossing::Dropped(next),
            };
            let packet = &self.packets[ticket.packet as usize];
            watcher.take_packet(self.now, node, packet, crossing);
        }
        if self.fates.is_some() {
            let next = self.router.ends(index as Link).1;
            let (end, attempts) = match offered {
                Ok(None) => (FrameEnd::Delivered, 1),
                Ok(Some(_)) => (FrameEnd::Lost, 1),
                Err(_) => (FrameEnd::Refused, 0),
            };
            self.note_fate((node, next), end, attempts);
        }
        let pipe = &self.pipes[index];
        match offered {
            // Behind others it waits for its turn: only the head's delivery is an event. On a pipe
            // that reorders, a packet that overtakes may become the head.
            Ok(None) if pipe.under_way() > 1 && !pipe.reorders() => return,
            Ok(None) => return self.agenda.wake(index, pipe.poll_timeout()),
            Ok(Some(_)) => self.stats.erased += 1,
            Err(_) => self.stats.refused += 1,
        }
        self.packets.remove(ticket.packet as usize);
    }

    /// Takes all packets that an agent sends, and its next timeout.
    fn drain_agent(&mut self, index: usize) {
        let Seat { node, links_max, updates, ref paced, .. } = self.agents[index];
        let is_paced = paced.is_some();
        while (!is_paced || self.may_send(index))
            && let Some(mut packet) = self.agents[index].agent.poll_transmit(self.now)
        {
            self.stats.sent += 1;
            packet.ttl = packet.ttl.min(links_max);
            if updates && self.update_waiting(node, &packet) {
                continue;
            }
            // MACs report when they have finished with a packet; wires do not.
            let is_told_of = is_paced && self.leaves_by_air(node, packet.to);
            self.send(node, packet);
            if let Some(paced) = self.agents[index].paced.as_mut().filter(|_| is_told_of) {
                paced.under_way = paced.under_way.saturating_add(1);
            }
        }
        let Seat { agent, entity, .. } = &self.agents[index];
        self.agenda.wake(*entity, agent.poll_timeout());
    }

    /// Whether to ask an agent for a packet.
    fn may_send(&mut self, index: usize) -> bool {
        let Seat { node, paced: Some(Paced { to, under_way }), .. } = &self.agents[index] else {
            return true;
        };
        to.iter().all(|&to| {
            let link = self.router.next(*node, to);
            let Some(on_air) = link.and_then(|link| self.router.on_air(link)) else { return true };
            let (radio, place) = (on_air.radio as usize, on_air.from as usize);
            self.radios[radio].has_room_for_paced(place, *under_way)
        })
    }

    /// Whether packets for a node leave another by a radio.
    fn leaves_by_air(&mut self, node: NodeIndex, to: NodeIndex) -> bool {
        to == BROADCAST || {
            let link = self.router.next(node, to);
            link.is_some_and(|link| self.router.on_air(link).is_some())
        }
    }

    /// Sends a packet from its source node: by the node's station, or by its router.
    #[inline]
    fn send(&mut self, node: NodeIndex, packet: Packet) {
        if let Some(station) = self.nodes[node as usize].station
            && self.is_taken_by(station as usize, &packet)
        {
            return;
        }
        if packet.to == BROADCAST {
            return self.broadcast(node, packet);
        }
        if self.routing.is_some() {
            return self.send_by_routing(node, packet);
        }
        let Some(link) = self.router.next(node, packet.to) else {
            self.stats.undeliverable += 1;
            if let Some(watcher) = &mut self.watcher {
                watcher.take_packet(self.now, node, &packet, Crossing::Unroutable);
            }
            return;
        };
        self.send_by(node, link, packet);
    }

    #[inline]
    fn send_by(&mut self, node: NodeIndex, link: Link, packet: Packet) {
        let Packet { to, len_bytes, ttl, .. } = packet;
        if (link as usize) < self.pipes.len() {
            let packet = self.packets.insert(packet) as u32;
            self.forward(node, link as usize, Ticket { packet, to, len_bytes, ttl });
        } else {
            self.send_on_air(node, link, packet.into(), ttl);
        }
    }

    /// Sends a packet once by each pipe of a node and once by each of its places on radios.
    fn broadcast(&mut self, node: NodeIndex, packet: Packet) {
        let links = self.router.links_from(node).to_vec();
        let pipes = self.pipes.len();
        for link in links.into_iter().filter(|&link| (link as usize) < pipes) {
            self.send_by(node, link, packet.clone());
        }
        // A station in range of a broadcast, which has a rate of its own, need not be a next hop of
        // any route.
        let ttl = packet.ttl;
        let packet = Arc::new(packet);
        for place in self.nodes[node as usize].places.clone() {
            let to = (Address::All, BROADCAST);
            self.put_on_air(node, place, to, Arc::clone(&packet), ttl);
        }
    }

    /// Once all others have had their turn at this instant, lets stations and radios act on what
    /// happened.
    fn rest(&mut self) {
        if !self.unsettled.is_empty() && !self.is_somebody_due() {
            self.settle();
        }
    }

    /// Whether anything but stations and radios is due at this instant.
    fn is_somebody_due(&mut self) -> bool {
        self.agenda.peek().is_some_and(|(at, rank)| at <= self.now && rank == Rank::Second)
    }
}
