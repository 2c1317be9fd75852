//! Virtual time: the daemon's own state machines over the emulated medium.
//!
//! [`World`] is the driver: stations of `corridor-proto`, the medium of `corridor-air`, and a
//! clock that jumps from event to event. [`run_udp`] loads one with datagrams as a scenario says,
//! [`run_tcp`] with TCP.
//! A run is a function of (scenario, point, replication): the same bytes on every machine.
#![forbid(unsafe_code)]

mod agenda;
mod agent;
mod network;
mod radio_tcp;
pub mod source;
pub mod tcp;
mod udp;
mod world;

use corridor_scenario::{Row, Run, Scenario, Transport};

pub use agenda::{Agenda, MAX_ENTITIES};
pub use agent::{Agent, Body, NodeIndex, Packet};
pub use network::{
    AgentIndex, MAX_NODES, MAX_PIPES, Network, NetworkError, NetworkStats, Topology,
};
pub use radio_tcp::run_tcp;
pub use udp::{SimError, run_udp};
pub use world::{Node, World};

/// Runs a scenario's run over its path in virtual time, with the load that it names.
///
/// # Errors
/// See [`run_udp`] and [`run_tcp`].
pub fn run_radio(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    match run.transport {
        Transport::Udp => run_udp(scenario, run),
        Transport::Tcp => run_tcp(scenario, run),
    }
}
