//! Virtual time: what a network does, and the daemon's own state machines in it.
//!
//! [`Network`] is the one loop: nodes with agents, routers and stations of `corridor-proto`, joined
//! by the pipes and radios of `corridor-air`, and a clock that jumps from event to event. [`run()`]
//! does what a plan says in it, [`run_radio`] what a scenario says. A run is a function of (plan,
//! point, replication): the same bytes on every machine.
//!
//! | folder | what it holds |
//! |---|---|
//! | `core` | the network: who is woken when, what sits on nodes, what joins them |
//! | `tcp`, `aodv`, `agents` | TCP and nst-AODV without I/O; what sits on nodes |
//! | `plan` | how a plan or a scenario becomes agents, and what they saw becomes measures |
//! | `capture` | what a network did, for Wireshark |
#![forbid(unsafe_code)]

mod agents;
pub mod aodv;
mod capture;
pub mod chain;
mod connection;
mod core;
pub mod frontier;
mod plan;
pub mod star;
pub mod tcp;

use ::core::time::Duration;

use corridor_scenario::{Row, Run, Scenario};

pub use self::core::agenda::{Agenda, MAX_ENTITIES, Rank};
pub use self::core::agent::{Agent, BROADCAST, Body, LinkOutcome, NodeIndex, Packet, TTL_MAX};
pub use self::core::network::{
    AgentIndex, AirConfig, BridgeEnds, FlowOf, Frame, FrameCounts, FrameFate, Hop, Interface,
    MAX_NODES, MAX_PIPES, MAX_RADIOS, Network, NetworkError, NetworkStats, ROUTING_FLOW,
    RadioIndex, RadioSite, Reach, StationIndex, Topology,
};
pub use self::core::watch::{Crossing, Reception, SymbolCounts, Watcher};
pub use agents::{source, tcpnc};
pub use capture::{
    CaptureCounts, CaptureError, CaptureLimits, CapturedFlow, NetworkCapture, capture_point,
    capture_udp,
};
pub use plan::SimError;
pub use plan::run::{CODE_VERSION, COMMIT, Runner, check_plan, run};
pub use plan::settings::settings;
pub use plan::sketch::{Sketch, sketch};
pub use plan::tunnel::line::LineSeen;
use plan::tunnel::line::LineSender;

/// Runs a scenario's run over its path in virtual time, with the load that it names.
///
/// # Errors
/// [`SimError::Unsupported`] for kernel paths without a line, and TCP that there is not.
pub fn run_radio(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    plan::tunnel::run_after(scenario, run, plan::tunnel::WARM_UP)
}

/// The same with so much load before the measured interval as the lab has.
///
/// # Errors
/// As [`run_radio`].
pub fn run_as_lab(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    plan::tunnel::run_after(scenario, run, run.lab.warm_up)
}

/// [`run_radio`] over a line, with so much load before the measured interval, and what the line
/// saw.
///
/// # Errors
/// As [`run_radio`]; [`SimError::Unsupported`] for a scenario without a line.
pub fn run_line(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
) -> Result<(Row, LineSeen), SimError> {
    plan::tunnel::run_line(scenario, run, warm_up, LineSender::Finds(0))
}

/// The same with another draw of what the ends draw themselves, as BBR where its cycles begin and a
/// tunnel's stations their sessions, and of how much later than the line's rates the load begins,
/// up to a millisecond. The line is the same, with what it loses of the n-th packet. Draw 0 is that
/// of [`run_line`].
///
/// # Errors
/// As [`run_line`].
pub fn run_line_drawn(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    draw: u64,
) -> Result<(Row, LineSeen), SimError> {
    plan::tunnel::run_line(scenario, run, warm_up, LineSender::Finds(draw))
}

/// The same with a tunnel whose S knows the line: the line holds its frames back, so that each goes
/// when it neither waits nor is dropped, and its rate control does not matter. What is lacking then
/// is not the rate's doing.
///
/// # Errors
/// As [`run_line`].
pub fn run_known_line(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
) -> Result<(Row, LineSeen), SimError> {
    plan::tunnel::run_line(scenario, run, warm_up, LineSender::Knows)
}
