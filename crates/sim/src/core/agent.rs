//! What sits on the hosts of a [`Network`](crate::Network), and what they send each other.
//!
//! An agent is a state machine without I/O, driven as the daemon's stations are: one thing in
//! ([`Agent::handle_packet`] or [`Agent::handle_timeout`]), then everything out
//! ([`Agent::poll_transmit`] until it returns nothing), then its next [`Agent::poll_timeout`]. The
//! network asks for nothing before the first timeout, so an agent that is to begin by itself names
//! the time at which it begins.

use core::any::Any;
use std::sync::Arc;

use corridor_base::Time;

use crate::tcp;

/// A node of a network: its index, from 0.
pub type NodeIndex = u32;

/// Most links that a packet may cross: as many as a network may have nodes.
pub const TTL_MAX: u16 = u16::MAX;

/// In place of a packet's destination: all neighbours. None of them passes it on.
pub const BROADCAST: NodeIndex = NodeIndex::MAX;

/// A packet between two agents. It is moved from queue to queue, and never copied.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Which of the agents on a node it is for.
    pub flow: u32,
    /// Where it comes from.
    pub from: NodeIndex,
    /// Where it goes, or [`BROADCAST`].
    pub to: NodeIndex,
    /// Its length with all headers: what the links transmit.
    pub len_bytes: u32,
    /// Links that it may still cross, from 1. [`TTL_MAX`] is no limit but to loops.
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
    /// A frame of a Corridor station's, over UDP.
    Sealed(Arc<[u8]>),
    /// The same, right over a radio.
    Bare(Arc<[u8]>),
}

/// What became of a packet on one link of a radio with a MAC.
#[derive(Clone, Copy, Debug)]
pub struct LinkOutcome<'a> {
    /// The node that it was sent to, or [`BROADCAST`].
    pub next: NodeIndex,
    /// Whether it was acknowledged, or nobody was asked to.
    pub delivered: bool,
    /// How often it was tried; 0 if the channel was never free.
    pub attempts: u32,
    /// The packet.
    pub packet: &'a Packet,
}

/// A protocol's end on a host.
///
/// Results are read from the agent itself after the run: [`Network::agent`](crate::Network::agent)
/// gives it back under its own type.
pub trait Agent: Any {
    /// A packet of the agent's flow has arrived.
    fn handle_packet(&mut self, now: Time, packet: Packet);

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come.
    fn handle_timeout(&mut self, now: Time);

    /// The next packet to be sent. It is taken, even if the queue that it goes to has no room.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;

    /// A MAC is through with a packet that the agent has sent, or its node, if it listens
    /// ([`Network::set_listener`](crate::Network::set_listener)).
    fn handle_outcome(&mut self, _now: Time, _outcome: &LinkOutcome<'_>) {}

    /// No route was found to where a packet of the agent's was to go, and it was dropped
    /// ([`Network::set_routing`](crate::Network::set_routing)).
    fn handle_unreachable(&mut self, _now: Time) {}

    /// Whether a packet takes the place of an earlier one that waits at the agent's own node, for
    /// the same destination and of the same length. Asked once, when the agent is added.
    fn updates_waiting(&self) -> bool {
        false
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if nothing arrives before.
    fn poll_timeout(&self) -> Option<Time>;
}
