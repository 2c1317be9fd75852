//! Traffic sources and sinks: an application's data, and the transport that carries it.
//!
//! | source | sends | to |
//! |---|---|---|
//! | [`TcpSource`] | without end, as FTP in ns-2; a file; or at a rate: [`Supply`] | [`TcpSink`] |
//! | [`CbrSource`] | datagrams at a constant rate | [`DatagramSink`] |
//! | [`PatternSource`] | datagrams at drawn times, or at those of a list | [`DatagramSink`] |
//!
//! Two agents with the same flow number, on two nodes, are the two ends of a flow.

mod datagram;
mod pattern;
mod tcp;

use corridor_base::Time;

use crate::core::agent::{Body, NodeIndex, Packet, TTL_MAX};

pub use datagram::{CbrConfig, CbrSource, DatagramSink, DatagramStats};
pub use pattern::{Pattern, PatternSource};
pub use tcp::{FlowBytes, Supply, TcpSink, TcpSource};

/// One end of a flow: the flow's number, and the nodes of the agent and of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// The flow.
    pub flow: u32,
    /// The agent's own node.
    pub node: NodeIndex,
    /// The node of the other end.
    pub peer: NodeIndex,
}

impl FlowEnd {
    /// Both ends of a flow: the source on `from`, and the sink on `to`.
    pub fn pair(flow: u32, from: NodeIndex, to: NodeIndex) -> (FlowEnd, FlowEnd) {
        (FlowEnd { flow, node: from, peer: to }, FlowEnd { flow, node: to, peer: from })
    }

    /// A packet from here to the other end.
    pub fn packet(&self, len_bytes: u32, body: Body) -> Packet {
        let FlowEnd { flow, node, peer } = *self;
        Packet { flow, from: node, to: peer, len_bytes, ttl: TTL_MAX, body }
    }
}

/// When a source is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Active {
    /// When it sends its first packet.
    pub from: Time,
    /// From here on it sends nothing, whatever is still in flight.
    pub until: Time,
}

impl Active {
    /// From time zero, without end.
    pub const ALWAYS: Active = Active { from: Time::ZERO, until: Time::MAX };
}
