//! Hosts and routers, one-way links between them, and the time: a network of wires, or of radios
//! that do not disturb each other.
//!
//! A packet takes the route with the fewest links; the routes do not change. On the way it costs
//! one event for each link, its delivery at the other end, where it is moved into the next link's
//! queue or handed to the agent of its flow. Neither allocates anything.
//!
//! Links and agents are the entities of one [`Agenda`]: a run is a function of the topology, the
//! agents and the stream key, whatever the machine.

mod routes;

use corridor_air::{Pipe, PipeConfig, PipeError};
use corridor_base::{StreamKey, Time};

use crate::agenda::Agenda;
use crate::agent::{Agent, NodeIndex, Packet};
use routes::Routes;

/// Most nodes of a network.
pub const MAX_NODES: usize = 65_536;

/// Most one-way links of a network.
pub const MAX_PIPES: usize = 1 << 20;

/// Nodes, and the one-way links between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// Number of nodes, 1 to [`MAX_NODES`].
    pub nodes: usize,
    /// The links: from, to, and what they are like. Each pair at most once; at most [`MAX_PIPES`].
    pub pipes: Vec<(NodeIndex, NodeIndex, PipeConfig)>,
}

impl Topology {
    /// Nodes 0 to `nodes` - 1 in a row; neighbours have a link `config` in each direction.
    pub fn chain(nodes: usize, config: &PipeConfig) -> Self {
        let mut topology = Topology { nodes, pipes: Vec::new() };
        for node in 1..nodes as NodeIndex {
            topology.connect(node - 1, node, config);
        }
        topology
    }

    /// Adds a link `config` in each direction.
    pub fn connect(&mut self, a: NodeIndex, b: NodeIndex, config: &PipeConfig) {
        self.pipes.push((a, b, config.clone()));
        self.pipes.push((b, a, config.clone()));
    }
}

/// A topology that cannot be: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// No nodes, or too many.
    #[error("nodes is {given}, expected 1 to {MAX_NODES}")]
    Nodes {
        /// Number of nodes given.
        given: usize,
    },
    /// Too many links.
    #[error("pipes has {given} links, expected at most {MAX_PIPES}")]
    Pipes {
        /// Number of links given.
        given: usize,
    },
    /// A link that ends at a node that does not exist.
    #[error("pipes[{index}] ends at node {given}, expected a node below {nodes}")]
    PipeEnd {
        /// Place of the link in the list.
        index: usize,
        /// Node given.
        given: NodeIndex,
        /// Number of nodes.
        nodes: usize,
    },
    /// A link from a node to itself.
    #[error("pipes[{index}] goes from node {given} to itself, expected two nodes")]
    PipeToItself {
        /// Place of the link in the list.
        index: usize,
        /// Node given at both ends.
        given: NodeIndex,
    },
    /// The same link twice.
    #[error("pipes has {from} to {to} more than once, expected each pair at most once")]
    DuplicatePipe {
        /// Where it begins.
        from: NodeIndex,
        /// Where it ends.
        to: NodeIndex,
    },
    /// A link that cannot be.
    #[error("pipes[{index}].{source}")]
    Pipe {
        /// Place of the link in the list.
        index: usize,
        /// What is wrong with it.
        source: PipeError,
    },
    /// An agent on a node that does not exist.
    #[error("agent's node is {given}, expected a node below {nodes}")]
    AgentNode {
        /// Node given.
        given: NodeIndex,
        /// Number of nodes.
        nodes: usize,
    },
    /// A second agent for the same flow on the same node.
    #[error("node {node} has an agent of flow {flow} already, expected one at most")]
    DuplicateAgent {
        /// The node.
        node: NodeIndex,
        /// The flow.
        flow: u32,
    },
}

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
    /// Packets dropped because there is no route, or no agent of the flow at its end.
    pub undeliverable: u64,
}

struct Host {
    /// The agents here, sorted by flow.
    agents: Vec<(u32, usize)>,
}

/// A topology with agents on it, driven through virtual time. See the module's overview.
pub struct Network {
    now: Time,
    agenda: Agenda,
    pipes: Vec<Pipe<Packet>>,
    routes: Routes,
    hosts: Vec<Host>,
    agents: Vec<(NodeIndex, Box<dyn Agent>)>,
    stats: NetworkStats,
}

impl Network {
    /// An idle network at time zero.
    ///
    /// # Errors
    /// The first field of `topology` found out of its range.
    pub fn new(topology: &Topology, seed: u64, replication: u64) -> Result<Self, NetworkError> {
        check(topology)?;
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
            routes: Routes::new(topology.nodes, ends),
            hosts: (0..topology.nodes).map(|_| Host { agents: Vec::new() }).collect(),
            agents: Vec::new(),
            stats: NetworkStats::default(),
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
        self.agents.push((node, Box::new(agent)));
        Ok(AgentIndex(index))
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// An agent, if it is of type `A`.
    pub fn agent<A: Agent>(&self, index: AgentIndex) -> Option<&A> {
        let agent: &dyn core::any::Any = &*self.agents.get(index.0)?.1;
        agent.downcast_ref()
    }

    /// The link from one node to another, if there is one.
    pub fn pipe(&self, from: NodeIndex, to: NodeIndex) -> Option<&Pipe<Packet>> {
        self.routes.pipe(from, to).map(|index| &self.pipes[index])
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
        while self.agenda.next_at().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Handles the next event. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        let Some((at, entity)) = self.agenda.pop() else { return false };
        self.now = self.now.max(at);
        self.stats.events += 1;
        match entity.checked_sub(self.pipes.len()) {
            None => self.deliver(entity),
            Some(agent) => {
                self.agents[agent].1.handle_timeout(self.now);
                self.drain(agent);
            }
        }
        true
    }

    /// Takes a packet from the end of a link to where it goes next.
    fn deliver(&mut self, index: usize) {
        let pipe = &mut self.pipes[index];
        let packet = pipe.poll_delivery(self.now);
        self.agenda.wake(index, pipe.poll_timeout());
        let Some(packet) = packet else { return };
        self.stats.packet_hops += 1;
        let node = self.routes.end(index);
        if packet.to != node {
            return self.forward(node, packet);
        }
        let agents = &self.hosts[node as usize].agents;
        let Ok(place) = agents.binary_search_by_key(&packet.flow, |&(flow, _)| flow) else {
            self.stats.undeliverable += 1;
            return;
        };
        let agent = agents[place].1;
        self.stats.delivered += 1;
        self.agents[agent].1.handle_packet(self.now, packet);
        self.drain(agent);
    }

    /// Puts a packet into the queue of the link that leads on from `node`.
    fn forward(&mut self, node: NodeIndex, packet: Packet) {
        let Some(index) = self.routes.next(node, packet.to) else {
            self.stats.undeliverable += 1;
            return;
        };
        let pipe = &mut self.pipes[index];
        match pipe.offer(self.now, packet.len_bytes, packet) {
            Ok(()) => self.agenda.wake(index, pipe.poll_timeout()),
            Err(_) => self.stats.refused += 1,
        }
    }

    /// Takes all that an agent sends, and its next timeout.
    fn drain(&mut self, index: usize) {
        let node = self.agents[index].0;
        while let Some(packet) = self.agents[index].1.poll_transmit(self.now) {
            self.stats.sent += 1;
            self.forward(node, packet);
        }
        self.agenda.wake(self.pipes.len() + index, self.agents[index].1.poll_timeout());
    }
}

fn check(topology: &Topology) -> Result<(), NetworkError> {
    let Topology { nodes, pipes } = topology;
    if !(1..=MAX_NODES).contains(nodes) {
        return Err(NetworkError::Nodes { given: *nodes });
    }
    if pipes.len() > MAX_PIPES {
        return Err(NetworkError::Pipes { given: pipes.len() });
    }
    for (index, &(from, to, _)) in pipes.iter().enumerate() {
        if let Some(given) = [from, to].into_iter().find(|&end| end as usize >= *nodes) {
            return Err(NetworkError::PipeEnd { index, given, nodes: *nodes });
        }
        if from == to {
            return Err(NetworkError::PipeToItself { index, given: from });
        }
    }
    let mut pairs: Vec<_> = pipes.iter().map(|&(from, to, _)| (from, to)).collect();
    pairs.sort_unstable();
    match pairs.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(NetworkError::DuplicatePipe { from: pair[0].0, to: pair[0].1 }),
        None => Ok(()),
    }
}
