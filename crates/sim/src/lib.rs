//! Virtual time: the daemon's own state machines over the emulated medium.
//!
//! [`World`] is the driver: stations of `corridor-proto`, the medium of `corridor-air`, and a
//! clock that jumps from event to event. [`run_udp`] loads one with datagrams as a scenario says.
//! A run is a function of (scenario, point, replication): the same bytes on every machine.
#![forbid(unsafe_code)]

mod agenda;
mod agent;
mod network;
pub mod source;
pub mod tcp;
mod udp;
mod world;

pub use agenda::{Agenda, MAX_ENTITIES};
pub use agent::{Agent, Body, NodeIndex, Packet};
pub use network::{
    AgentIndex, MAX_NODES, MAX_PIPES, Network, NetworkError, NetworkStats, Topology,
};
pub use udp::{SimError, run_udp};
pub use world::{Node, World};
