//! What a network consists of, as plain data, and what may be wrong with it.

use corridor_air::radio::{RadioError, RadioMediumConfig};
use corridor_air::{AirError, LineConfig, MediumConfig, PipeConfig, PipeError};

use crate::aodv::AodvError;
use crate::core::agent::NodeIndex;
use crate::core::network::BridgeEnds;

/// Most nodes of a network.
pub const MAX_NODES: usize = 65_536;

/// Most one-way links of a network.
pub const MAX_PIPES: usize = 1 << 20;

/// Most radios of a network.
pub const MAX_RADIOS: usize = 65_536;

/// A radio, and the nodes on it.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioSite {
    /// The node at each of its places.
    pub nodes: Vec<NodeIndex>,
    /// What joins the places.
    pub air: AirConfig,
}

/// What joins the places of a radio. The network provides seeds and replications.
#[derive(Clone, Debug, PartialEq)]
pub enum AirConfig {
    /// An ideal medium: draws the next sender at random, without collisions.
    Ideal(MediumConfig),
    /// Radios with a standard's MAC.
    Mac(Box<RadioMediumConfig>),
    /// A path between two places that carries no other traffic.
    Line(Box<LineConfig>),
}

impl AirConfig {
    /// Number of places.
    pub fn places(&self) -> usize {
        match self {
            AirConfig::Ideal(medium) => medium.stations,
            AirConfig::Mac(config) => config.radio.stations.len(),
            AirConfig::Line(config) => config.pipes.len(),
        }
    }
}

/// Nodes, and the links that join them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// Number of nodes, 1 to [`MAX_NODES`].
    pub nodes: usize,
    /// The links: from, to, and their properties. Each pair at most once; at most [`MAX_PIPES`].
    pub pipes: Vec<(NodeIndex, NodeIndex, PipeConfig)>,
    /// The radios, at most [`MAX_RADIOS`].
    pub radios: Vec<RadioSite>,
}

impl Topology {
    /// Nodes 0 to `nodes` - 1 in a row, with a link `config` in each direction between neighbours.
    pub fn chain(nodes: usize, config: &PipeConfig) -> Self {
        let mut topology = Topology { nodes, ..Topology::default() };
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

    /// Checks the ranges that the fields' documentation names, except those of the links.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn check(&self) -> Result<(), NetworkError> {
        let Topology { nodes, pipes, radios } = self;
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
        if radios.len() > MAX_RADIOS {
            return Err(NetworkError::Radios { given: radios.len() });
        }
        for (index, radio) in radios.iter().enumerate() {
            radio.check(index, *nodes)?;
        }
        let mut pairs: Vec<_> = pipes.iter().map(|&(from, to, _)| (from, to)).collect();
        pairs.sort_unstable();
        match pairs.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(NetworkError::DuplicatePipe { from: pair[0].0, to: pair[0].1 }),
            None => Ok(()),
        }
    }
}

impl RadioSite {
    fn check(&self, index: usize, nodes: usize) -> Result<(), NetworkError> {
        let (given, expected) = (self.nodes.len(), self.air.places());
        if given != expected {
            return Err(NetworkError::RadioPlaces { index, given, expected });
        }
        match self.nodes.iter().find(|&&node| node as usize >= nodes) {
            Some(&given) => Err(NetworkError::RadioNode { index, given, nodes }),
            None => Ok(()),
        }
    }
}

/// An invalid topology: which field, what was given, what is expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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
    /// Two bridges that take frames from the same place, or to the same place.
    #[error(
        "bridges from {held} and from {given}: expected no two from the same place, or to the same place"
    )]
    DuplicateBridge {
        /// The existing one.
        held: BridgeEnds,
        /// The one to be added.
        given: BridgeEnds,
    },
    /// A relay at a place that does not exist or has a station, or with a number beyond two bytes.
    #[error("place {place} of radio {radio} has no room for a relay, expected one without station")]
    RelayPlace {
        /// The radio.
        radio: usize,
        /// The place on it.
        place: usize,
    },
    /// An invalid relay.
    #[error("relay of node {node}: {source}")]
    Relay {
        /// Its node.
        node: NodeIndex,
        /// What is wrong with it.
        source: corridor_relay::RelayError,
    },
    /// An invalid link.
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
    /// Too many radios.
    #[error("radios has {given} radios, expected at most {MAX_RADIOS}")]
    Radios {
        /// Number of radios given.
        given: usize,
    },
    /// A radio with more or fewer nodes than its medium has places.
    #[error("radios[{index}].nodes has {given} nodes, expected {expected}, as its medium has")]
    RadioPlaces {
        /// Place of the radio in the list.
        index: usize,
        /// Number of nodes given.
        given: usize,
        /// Stations of the medium.
        expected: usize,
    },
    /// A node on a radio that does not exist.
    #[error("radios[{index}].nodes has node {given}, expected nodes below {nodes}")]
    RadioNode {
        /// Place of the radio in the list.
        index: usize,
        /// Node given.
        given: NodeIndex,
        /// Number of nodes.
        nodes: usize,
    },
    /// An invalid medium.
    #[error("radios[{index}].{source}")]
    Medium {
        /// Place of the radio in the list.
        index: usize,
        /// What is wrong with it.
        source: AirError,
    },
    /// An invalid line.
    #[error("radios[{index}].{source}")]
    Line {
        /// Place of the radio in the list.
        index: usize,
        /// What is wrong with it.
        source: PipeError,
    },
    /// Invalid radios, or an invalid MAC.
    #[error("radios[{index}].{source}")]
    Radio {
        /// Place of the radio in the list.
        index: usize,
        /// What is wrong with it.
        source: RadioError,
    },
    /// A station at a place that does not exist, or that has one already.
    #[error("radio {radio} has no free place {place}, expected one without a station")]
    StationPlace {
        /// The radio.
        radio: usize,
        /// The place on it.
        place: usize,
    },
    /// Nodes cannot discover routes here.
    #[error("routing: {given}, expected {expected}")]
    Routing {
        /// What the network has.
        given: String,
        /// What it needs.
        expected: &'static str,
    },
    /// An invalid router.
    #[error("routing.{0}")]
    Aodv(#[from] AodvError),
    /// A route over a link that does not exist.
    #[error("node {node} has no link to node {next}, expected one for a route")]
    NoLink {
        /// Where the route begins.
        node: NodeIndex,
        /// Where it is to go next.
        next: NodeIndex,
    },
}
