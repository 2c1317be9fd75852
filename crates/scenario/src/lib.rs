//! Scenario files and result rows, shared by the lab (real time, kernel TCP) and the simulator.
//!
//! A scenario is a medium, and a list of runs. A field of a run that is a list stands for one run
//! per value; the product is taken in the order of the fields below, and repeats are interleaved
//! (all runs once, then all again), so that a slow minute of the machine touches them all alike.
#![forbid(unsafe_code)]

mod error;
mod expand;
mod file;
mod row;

pub use error::ScenarioError;
pub use expand::{
    DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, DESTINATION, DURATION_S_MAX, ETHERNET_MTU, HELPER,
    RUNS_MAX, Run, SOURCE, expand, medium_config,
};
pub use file::{
    Congestion, Direction, Duplex, MediumTable, OneOrMany, Path, RunTable, Scenario, Transport,
    UnderlayKind,
};
pub use row::{CodingCounts, Delays, Engine, Row, Side};
