//! The simulator: runs networks, and the daemon's own protocol state machines, in virtual time.
//!
//! [`Network`] is the only event loop. It drives nodes that carry agents, routers and the stations
//! of `corridor-proto`; the pipes and radios of `corridor-air` join them; the clock jumps from
//! event to event. [`run()`] runs a point of a plan in such a network, [`run_radio`] a scenario. A
//! run is a function of (plan, point, replication): it gives the same bytes on every machine.
//!
//! | folder | what it holds |
//! |---|---|
//! | `core` | the network: event queue, nodes and what they carry, links |
//! | `tcp`, `aodv`, `agents` | TCP and nst-AODV without I/O; agents, the ends of flows on nodes |
//! | `plan` | turns a plan or a scenario into agents, and their counters into metrics |
//! | `capture` | writes what happens in a network as captures for Wireshark |
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

/// Runs one run of a scenario over its path in virtual time, with the load that the scenario names.
///
/// # Errors
/// [`SimError::Unsupported`] for kernel paths without a line, and for TCP variants that the
/// simulator does not have.
pub fn run_radio(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    plan::tunnel::run_after(scenario, run, plan::tunnel::WARM_UP)
}

/// Like [`run_radio`], but offers load before the measured interval for as long as the lab does.
///
/// # Errors
/// As [`run_radio`].
pub fn run_as_lab(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    plan::tunnel::run_after(scenario, run, run.lab.warm_up)
}

/// Like [`run_radio`], over a line: offers load for `warm_up` before the measured interval, and
/// also returns what the line counted.
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

/// Like [`run_line`], with other random draws at the endpoints: where BBR's cycles begin, the
/// sessions of a tunnel's stations, and how much later than the line's rates the load begins, up to
/// a millisecond. The line itself is the same and loses the same packets by number. Draw 0 is that
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

/// Like [`run_line`], with a tunnel whose station S knows the line: the line holds its frames back
/// until each can go without waiting or being dropped, so rate control does not matter. Goodput
/// that is still lacking is therefore not the rate control's fault.
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
