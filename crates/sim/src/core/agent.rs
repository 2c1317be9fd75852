//! Agents, the protocol endpoints on hosts of a [`Network`](crate::Network), and the packets that
//! they exchange.
//!
//! An agent is a state machine without I/O, driven as the daemon's stations are: one input
//! ([`Agent::handle_packet`] or [`Agent::handle_timeout`]), then all outputs
//! ([`Agent::poll_transmit`] until it returns nothing), then the next [`Agent::poll_timeout`]. The
//! network asks for no packets before the first timeout, so an agent that starts by itself has to
//! name its starting time there.

use core::any::Any;
use std::sync::Arc;

use corridor_base::Time;

use crate::tcp;

/// A node of a network: its index, from 0.
pub type NodeIndex = u32;

/// Most links that a packet may cross: one for each node that a network may have.
pub const TTL_MAX: u16 = u16::MAX;

/// As destination of a packet: all neighbours. They do not forward it.
pub const BROADCAST: NodeIndex = NodeIndex::MAX;

/// A packet between two agents. It moves from queue to queue and is never copied.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// The flow, which tells the agents on a node apart.
    pub flow: u32,
    /// Node that it comes from.
    pub from: NodeIndex,
    /// Node that it goes to, or [`BROADCAST`].
    pub to: NodeIndex,
    /// Its length with all headers, as the links transmit it.
    pub len_bytes: u32,
    /// Links that it may still cross, from 1. [`TTL_MAX`] only ends loops.
    pub ttl: u16,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// TCP.
    Segment(tcp::Segment),
    /// A datagram of a constant-rate source.
    Datagram {
        /// Its number, from 0.
        sequence: u64,
        /// When it was sent, for its delay.
        sent_at: Time,
    },
    /// Bytes that only the agents at both ends understand.
    Bytes(Arc<[u8]>),
    /// A frame of a Corridor station, over UDP.
    Sealed(Arc<[u8]>),
    /// A frame of a Corridor station, directly over a radio.
    Bare(Arc<[u8]>),
}

/// What became of a packet on one link of a radio with a MAC.
#[derive(Clone, Copy, Debug)]
pub struct LinkOutcome<'a> {
    /// The node that it was sent to, or [`BROADCAST`].
    pub next: NodeIndex,
    /// Whether it was acknowledged, or needed no acknowledgment.
    pub delivered: bool,
    /// Number of transmissions; 0 if the channel was never free.
    pub attempts: u32,
    /// The packet.
    pub packet: &'a Packet,
}

/// A protocol's end on a host.
///
/// After the run, results are read from the agent itself: [`Network::agent`](crate::Network::agent)
/// returns it as its own type.
pub trait Agent: Any {
    /// A packet of the agent's flow has arrived.
    fn handle_packet(&mut self, now: Time, packet: Packet);

    /// The time given by [`poll_timeout`](Self::poll_timeout) has come.
    fn handle_timeout(&mut self, now: Time);

    /// The next packet to send. The agent is rid of it even if the queue it goes to is full.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;

    /// A MAC has finished with a packet that the agent has sent; for a listener, with any packet
    /// that its node has sent ([`Network::set_listener`](crate::Network::set_listener)).
    fn handle_outcome(&mut self, _now: Time, _outcome: &LinkOutcome<'_>) {}

    /// A packet of the agent was dropped because no route to its destination was found
    /// ([`Network::set_routing`](crate::Network::set_routing)).
    fn handle_unreachable(&mut self, _now: Time) {}

    /// Whether a new packet replaces an earlier one of the same destination and length that still
    /// waits at the agent's node. Queried once, when the agent is added.
    fn updates_waiting(&self) -> bool {
        false
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, unless something arrives before.
    fn poll_timeout(&self) -> Option<Time>;
}
