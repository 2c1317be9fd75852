//! Hosts and routers, one-way links between them, and the time: a network of wires, or of radios
//! that do not disturb each other.
//!
//! A packet takes the route with the fewest links; the routes do not change. On the way it costs
//! one event for each link, its delivery at the other end, where it enters the next link's queue or
//! is handed to the agent of its flow. Meanwhile it lies still in one place: what moves from queue
//! to queue is a ticket with what routers and links want to know. Once the queues have grown to
//! their lengths nothing is allocated.
//!
//! Links and agents are the entities of one [`Agenda`]: a run is a function of the topology, the
//! agents and the stream key, whatever the machine.

mod routes;
mod topology;

use corridor_air::{Pipe, PipeStats};
use corridor_base::{StreamKey, Time};
use slab::Slab;

use crate::core::agenda::Agenda;
use crate::core::agent::{Agent, NodeIndex, Packet};
use crate::core::watch::{Crossing, PacketWatcher};
use routes::{Place, Routes};
pub use topology::{MAX_NODES, MAX_PIPES, NetworkError, Topology};

/// An agent of a network, as [`Network::add_agent`] named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentIndex(usize);

/// What happened so far in the whole network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkStats {
    /// Events handled: deliveries at the end of a link, and agents' timeouts.
    pub events: u64,
    /// Of these, deliveries: a packet has crossed one link.
    pub packet_hops: u64,
    /// Packets that agents have sent.
    pub sent: u64,
    /// Packets that reached the agent they were for.
    pub delivered: u64,
    /// Packets dropped because a link's queue was full.
    pub refused: u64,
    /// Packets that links have lost.
    pub erased: u64,
    /// Packets dropped because there is no route, or no agent of the flow at its end.
    pub undeliverable: u64,
}

/// Stands for a packet in the links' queues.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    /// Where the packet lies.
    packet: u32,
    /// Where it is on its route.
    place: Place,
    len_bytes: u32,
}

struct Host {
    /// The agents here, sorted by flow.
    agents: Vec<(u32, usize)>,
}

/// An agent and where it is.
struct Seat {
    agent: Box<dyn Agent>,
    node: NodeIndex,
    /// Where its latest packet went, and the route there, if there is one.
    route: (NodeIndex, Option<Place>),
}

/// A topology with agents on it, driven through virtual time. See the module's overview.
pub struct Network {
    now: Time,
    agenda: Agenda,
    pipes: Vec<Pipe<Ticket>>,
    /// The packets under way. No more than fit into the links.
    packets: Slab<Packet>,
    routes: Routes,
    hosts: Vec<Host>,
    agents: Vec<Seat>,
    stats: NetworkStats,
    watcher: Option<Box<dyn PacketWatcher>>,
}

impl Network {
    /// An idle network at time zero.
    ///
    /// # Errors
    /// The first field of `topology` found out of its range.
    pub fn new(topology: &Topology, seed: u64, replication: u64) -> Result<Self, NetworkError> {
        topology.check()?;
        let mut pipes = Vec::with_capacity(topology.pipes.len());
        for (index, (from, to, config)) in topology.pipes.iter().enumerate() {
            // Named by its ends: a link keeps its losses when another one joins the topology.
            let entity = u64::from(*from) << 32 | u64::from(*to);
            let key = StreamKey { seed, replication, entity, purpose: "erasure" };
            let pipe = Pipe::new(config, key);
            pipes.push(pipe.map_err(|source| NetworkError::Pipe { index, source })?);
        }
        let ends = topology.pipes.iter().map(|&(from, to, _)| (from, to)).collect();
        Ok(Network {
            now: Time::ZERO,
            agenda: Agenda::new(pipes.len()),
            pipes,
            packets: Slab::new(),
            routes: Routes::new(topology.nodes, ends),
            hosts: (0..topology.nodes).map(|_| Host { agents: Vec::new() }).collect(),
            agents: Vec::new(),
            stats: NetworkStats::default(),
            watcher: None,
        })
    }

    /// Puts an agent on `node`; it gets the packets of `flow` that are for this node.
    ///
    /// # Errors
    /// [`NetworkError::AgentNode`], [`NetworkError::DuplicateAgent`].
    pub fn add_agent(
        &mut self,
        node: NodeIndex,
        flow: u32,
        agent: impl Agent,
    ) -> Result<AgentIndex, NetworkError> {
        let nodes = self.hosts.len();
        let Some(host) = self.hosts.get_mut(node as usize) else {
            return Err(NetworkError::AgentNode { given: node, nodes });
        };
        let Err(place) = host.agents.binary_search_by_key(&flow, |&(flow, _)| flow) else {
            return Err(NetworkError::DuplicateAgent { node, flow });
        };
        let index = self.agents.len();
        host.agents.insert(place, (flow, index));
        self.agenda.grow(self.pipes.len() + index + 1);
        self.agenda.wake(self.pipes.len() + index, agent.poll_timeout());
        // From a node to itself there is no route.
        self.agents.push(Seat { agent: Box::new(agent), node, route: (node, None) });
        Ok(AgentIndex(index))
    }

    /// Lets somebody see all packets from here on. What happens does not change.
    pub fn set_watcher(&mut self, watcher: Box<dyn PacketWatcher>) {
        self.watcher = Some(watcher);
    }

    /// Whether the watcher, if there is one, has seen enough.
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

    /// Counters of the link from one node to another, if there is one.
    pub fn pipe_stats(&self, from: NodeIndex, to: NodeIndex) -> Option<PipeStats> {
        self.routes.pipe(from, to).map(|index| *self.pipes[index].stats())
    }

    /// Packets that wait for the transmitter of the link from one node to another, if there is one.
    pub fn backlog(&self, from: NodeIndex, to: NodeIndex) -> Option<usize> {
        self.routes.pipe(from, to).map(|index| self.pipes[index].backlog(self.now))
    }

    /// Packets under way.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// What happened so far.
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }

    /// When something happens next.
    pub fn next_event(&mut self) -> Option<Time> {
        self.agenda.next_at()
    }

    /// Advances to `until`, handling all that happens on the way.
    pub fn run_until(&mut self, until: Time) {
        while let Some((at, entity)) = self.agenda.pop_until(until) {
            self.handle(at, entity);
        }
        self.now = self.now.max(until);
    }

    /// Handles the next event. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((at, entity)) = self.agenda.pop() else { return false };
        self.handle(at, entity);
        true
    }

    fn handle(&mut self, at: Time, entity: usize) {
        self.now = self.now.max(at);
        self.stats.events += 1;
        match entity.checked_sub(self.pipes.len()) {
            None => self.deliver(entity),
            Some(agent) => {
                self.agents[agent].agent.handle_timeout(self.now);
                self.drain(agent);
            }
        }
    }

    /// Takes a packet from the end of a link to where it goes next.
    fn deliver(&mut self, index: usize) {
        let pipe = &mut self.pipes[index];
        let ticket = pipe.poll_delivery(self.now);
        self.agenda.wake(index, pipe.poll_timeout());
        let Some(ticket) = ticket else { return };
        self.stats.packet_hops += 1;
        let place = ticket.place.next();
        if let Some(next) = self.routes.link(place) {
            return self.forward(next, Ticket { place, ..ticket });
        }
        let packet = self.packets.remove(ticket.packet as usize);
        let agents = &self.hosts[self.routes.ends(index).1 as usize].agents;
        let Ok(place) = agents.binary_search_by_key(&packet.flow, |&(flow, _)| flow) else {
            self.stats.undeliverable += 1;
            return;
        };
        let agent = agents[place].1;
        self.stats.delivered += 1;
        if let Some(watcher) = &mut self.watcher {
            watcher.take_packet(self.now, packet.to, &packet, Crossing::Arrived);
        }
        self.agents[agent].agent.handle_packet(self.now, packet);
        self.drain(agent);
    }

    /// Puts a packet into the queue of a link.
    fn forward(&mut self, index: usize, ticket: Ticket) {
        let pipe = &mut self.pipes[index];
        let offered = pipe.offer(self.now, ticket.len_bytes, ticket);
        if let Some(watcher) = &mut self.watcher {
            let (node, next) = self.routes.ends(index);
            let crossing = match offered {
                Ok(None) => Crossing::Sent(next),
                Ok(Some(_)) => Crossing::Lost(next),
                Err(_) => Crossing::Dropped(next),
            };
            let packet = &self.packets[ticket.packet as usize];
            watcher.take_packet(self.now, node, packet, crossing);
        }
        match offered {
            // Behind others it waits for its turn: only the head's delivery is an event.
            Ok(None) if pipe.under_way() > 1 => return,
            Ok(None) => return self.agenda.wake(index, pipe.poll_timeout()),
            Ok(Some(_)) => self.stats.erased += 1,
            Err(_) => self.stats.refused += 1,
        }
        self.packets.remove(ticket.packet as usize);
    }

    /// Takes all that an agent sends, and its next timeout.
    fn drain(&mut self, index: usize) {
        while let Some(packet) = self.agents[index].agent.poll_transmit(self.now) {
            let seat = &mut self.agents[index];
            self.stats.sent += 1;
            let Packet { to, len_bytes, .. } = packet;
            if seat.route.0 != to {
                seat.route = (to, self.routes.route(seat.node, to));
            }
            let Some(place) = seat.route.1 else {
                self.stats.undeliverable += 1;
                if let Some(watcher) = &mut self.watcher {
                    watcher.take_packet(self.now, seat.node, &packet, Crossing::Unroutable);
                }
                continue;
            };
            let Some(link) = self.routes.link(place) else { continue };
            let packet = self.packets.insert(packet) as u32;
            self.forward(link, Ticket { packet, place, len_bytes });
        }
        self.agenda.wake(self.pipes.len() + index, self.agents[index].agent.poll_timeout());
    }
}
