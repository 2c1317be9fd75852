//! Virtual time: the daemon's own state machines over the emulated medium.
//!
//! [`World`] is the driver: stations of `corridor-proto`, the medium of `corridor-air`, and a
//! clock that jumps from event to event. [`run_udp`] loads one with datagrams as a scenario says.
//! [`torture`] drives stations through a network that does its worst.
//! A run is a function of (scenario, point, replication): the same bytes on every machine.
//! [`Network`] is the other driver: agents on point-to-point links. [`run()`] does what a plan
//! says, in either. A run is a function of (plan, point, replication): the same bytes on every
//! machine.
#![forbid(unsafe_code)]

mod agenda;
mod agent;
mod capture;
mod flows;
mod meter;
mod network;
mod run;
pub mod source;
pub mod tcp;
pub mod torture;
mod udp;
mod watch;
mod world;

pub use agenda::{Agenda, MAX_ENTITIES};
pub use agent::{Agent, Body, NodeIndex, Packet};
pub use capture::{
    CaptureCounts, CaptureError, CaptureLimits, CapturedFlow, NetworkCapture, capture_point,
    capture_udp,
};
pub use network::{
    AgentIndex, MAX_NODES, MAX_PIPES, Network, NetworkError, NetworkStats, Topology,
};
pub use run::{CODE_VERSION, COMMIT, check_plan, run};
pub use udp::{SimError, run_udp};
pub use watch::{Crossing, PacketWatcher, Reception, SymbolCounts, Watcher};
pub use world::{Node, World};
