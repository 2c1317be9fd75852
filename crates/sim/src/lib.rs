//! Virtual time: the daemon's own state machines over the emulated medium.
//!
//! [`World`] is the driver: stations of `corridor-proto`, the medium of `corridor-air`, and a
//! clock that jumps from event to event. [`run_udp`] loads one with datagrams as a scenario says,
//! [`run_tcp`] with TCP.
//! [`Network`] is the other driver: agents on point-to-point links. [`run()`] does what a plan
//! says, in either. A run is a function of (plan, point, replication): the same bytes on every
//! machine.
#![forbid(unsafe_code)]

mod agents;
mod capture;
mod core;
pub mod frontier;
mod plan;
pub mod tcp;
mod world;

use std::time::Duration;

use corridor_scenario::{Row, Run, Scenario, Transport};

pub use self::core::agenda::{Agenda, MAX_ENTITIES};
pub use self::core::agent::{Agent, Body, NodeIndex, Packet};
pub use self::core::network::{
    AgentIndex, MAX_NODES, MAX_PIPES, Network, NetworkError, NetworkStats, Topology,
};
pub use self::core::watch::{Crossing, PacketWatcher, Reception, SymbolCounts, Watcher};
pub use agents::{source, tcpnc};
pub use capture::{
    CaptureCounts, CaptureError, CaptureLimits, CapturedFlow, NetworkCapture, capture_point,
    capture_udp,
};
pub use plan::radio_tcp::run_tcp;
pub use plan::run::{CODE_VERSION, COMMIT, check_plan, run};
pub use plan::udp::{SimError, run_udp};
use plan::{radio_tcp, udp};
pub use world::{Node, World};

/// Runs a scenario's run over its path in virtual time, with the load that it names.
///
/// # Errors
/// See [`run_udp`] and [`run_tcp`].
pub fn run_radio(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    run_radio_after(scenario, run, udp::WARM_UP)
}

/// The same after so much load that is not measured.
pub(crate) fn run_radio_after(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
) -> Result<Row, SimError> {
    match run.transport {
        Transport::Udp => udp::run_udp_after(scenario, run, warm_up),
        Transport::Tcp => radio_tcp::run_tcp_after(scenario, run, warm_up),
    }
}

/// The same before the eyes of somebody.
pub(crate) fn watch_radio(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    watcher: Box<dyn Watcher>,
) -> Result<Row, SimError> {
    match run.transport {
        Transport::Udp => udp::watch_udp(scenario, run, warm_up, watcher),
        Transport::Tcp => radio_tcp::watch_tcp(scenario, run, warm_up, watcher),
    }
}
