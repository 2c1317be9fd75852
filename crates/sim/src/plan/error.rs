//! Why something cannot be simulated.

use corridor_air::AirError;
use corridor_proto::ConfigError;
use corridor_proto::tcpnc::NcError;
use corridor_scenario::ScenarioError;

use crate::core::network::NetworkError;
use crate::tcp;

/// Why a run cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// Not (yet) a matter of the simulator.
    #[error("{field} = {given}: the simulator runs {expected}")]
    Unsupported {
        /// Which field of the run.
        field: &'static str,
        /// What it says.
        given: String,
        /// What can be run.
        expected: &'static str,
    },
    /// A scenario has no network to be sketched.
    #[error("expected a plan with a [network]: [medium] has S and D alone, and H between them")]
    NothingToSketch,
    /// The medium cannot be.
    #[error(transparent)]
    Air(#[from] AirError),
    /// A network cannot be.
    #[error("network.{0}")]
    Network(#[from] NetworkError),
    /// A flow's TCP cannot be.
    #[error("flow[{flow}].tcp: {source}")]
    Tcp {
        /// The flow, counted from 0.
        flow: usize,
        /// What is wrong.
        source: tcp::ConfigError,
    },
    /// A flow has packets that no frame of the network's MAC has room for.
    #[error(
        "flow[{flow}].{field} = {given}: expected at most {} beside {beside} bytes of headers: \
         frames of network.radio.mac = \"{mac}\" carry at most {most} bytes",
        most.saturating_sub(*beside)
    )]
    PacketLen {
        /// The flow, counted from 0.
        flow: usize,
        /// Which of its lengths.
        field: &'static str,
        /// Bytes given.
        given: u32,
        /// Bytes that come to them in the same frame.
        beside: u32,
        /// Most bytes that a frame carries, headers of the MAC aside.
        most: u32,
        /// The MAC, as plans spell it.
        mac: &'static str,
    },
    /// A flow has packets that do not fit into its tunnel.
    #[error(
        "flow[{flow}].payload_bytes = {given}: expected at most {} beside {beside} bytes of headers: \
         packets of the tunnel have at most {most} bytes",
        most.saturating_sub(*beside)
    )]
    TunnelLen {
        /// The flow, counted from 0.
        flow: usize,
        /// Bytes given.
        given: usize,
        /// Bytes of headers.
        beside: usize,
        /// Most bytes of a packet.
        most: usize,
    },
    /// There is no route for a flow.
    #[error(
        "flow[{flow}].to = {to}: expected a node that links lead to from node {from}: frames have to \
         come through at mean power"
    )]
    NoRoute {
        /// The flow, counted from 0.
        flow: usize,
        /// Where it begins.
        from: usize,
        /// Where no route leads.
        to: usize,
    },
    /// A node cannot help a tunnel.
    #[error("network.tunnel[{tunnel}].helper = {helper}: expected {expected}")]
    Helper {
        /// The tunnel, counted from 0.
        tunnel: usize,
        /// The node.
        helper: usize,
        /// What could be.
        expected: String,
    },
    /// A flow's TCP/NC cannot be.
    #[error("flow[{flow}].tcp_nc: {source}")]
    TcpNc {
        /// The flow, counted from 0.
        flow: usize,
        /// What is wrong.
        source: NcError,
    },
    /// A station cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The TCP of a run through a tunnel cannot be set so.
    #[error(transparent)]
    TunnelTcp(#[from] tcp::ConfigError),
}

impl SimError {
    /// The same as an error of the plan, where it is one value's fault, to be found in its file.
    pub fn value(&self) -> Option<ScenarioError> {
        let SimError::Helper { tunnel, helper, expected } = self else { return None };
        let (field, given) = (format!("network.tunnel[{tunnel}].helper"), helper.to_string());
        Some(ScenarioError::Value { field, given, expected: expected.clone() })
    }
}
