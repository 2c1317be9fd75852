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
    /// The simulator does not (yet) support this.
    #[error("{field} = {given}: the simulator runs {expected}")]
    Unsupported {
        /// The field of the run.
        field: &'static str,
        /// Its value.
        given: String,
        /// Values that are supported.
        expected: &'static str,
    },
    /// The scenario has no network to sketch.
    #[error("expected a plan with a [network]: [medium] has S and D alone, and H between them")]
    NothingToSketch,
    /// An invalid medium.
    #[error(transparent)]
    Air(#[from] AirError),
    /// An invalid network.
    #[error("network.{0}")]
    Network(#[from] NetworkError),
    /// Invalid TCP settings of a flow.
    #[error("flow[{flow}].tcp: {source}")]
    Tcp {
        /// The flow, counted from 0.
        flow: usize,
        /// What is wrong with them.
        source: tcp::ConfigError,
    },
    /// A flow's packets are too long for the frames of the network's MAC.
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
        /// Further bytes in the same frame.
        beside: u32,
        /// Most bytes that a frame carries, without the MAC's headers.
        most: u32,
        /// The MAC, as spelt in plans.
        mac: &'static str,
    },
    /// A flow's packets are too long for its tunnel.
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
    /// A flow has no route.
    #[error(
        "flow[{flow}].to = {to}: expected a node that links lead to from node {from}: frames have to \
         come through at mean power"
    )]
    NoRoute {
        /// The flow, counted from 0.
        flow: usize,
        /// Its source.
        from: usize,
        /// Its destination, which no route reaches.
        to: usize,
    },
    /// A node cannot be a tunnel's helper.
    #[error("network.tunnel[{tunnel}].helper = {helper}: expected {expected}")]
    Helper {
        /// The tunnel, counted from 0.
        tunnel: usize,
        /// The node.
        helper: usize,
        /// Nodes that could be.
        expected: String,
    },
    /// Invalid TCP/NC settings of a flow.
    #[error("flow[{flow}].tcp_nc: {source}")]
    TcpNc {
        /// The flow, counted from 0.
        flow: usize,
        /// What is wrong with them.
        source: NcError,
    },
    /// An invalid configuration of a station.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Invalid TCP settings for a run through a tunnel.
    #[error(transparent)]
    TunnelTcp(#[from] tcp::ConfigError),
}

impl SimError {
    /// The same as an error of the plan if a single value is at fault, so that it can be located in
    /// its file.
    pub fn value(&self) -> Option<ScenarioError> {
        let SimError::Helper { tunnel, helper, expected } = self else { return None };
        let (field, given) = (format!("network.tunnel[{tunnel}].helper"), helper.to_string());
        Some(ScenarioError::Value { field, given, expected: expected.clone() })
    }
}
