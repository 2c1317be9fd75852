//! What a network is made of: plain data, and what can be wrong with it.

use corridor_air::{PipeConfig, PipeError};

use crate::core::agent::NodeIndex;

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

    /// Checks every range named in the fields' documentation, but the links' own.
    ///
    /// # Errors
    /// The first field found out of its range.
    pub fn check(&self) -> Result<(), NetworkError> {
        let Topology { nodes, pipes } = self;
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
