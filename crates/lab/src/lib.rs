//! The emulated radio in real time: network namespaces, each with a TAP interface, and a
//! [`corridor_air::Medium`] between them, so that real kernel TCP crosses it.
//!
//! # Stages of a run
//!
//! 1. [`prepare`] obtains the necessary rights, once for the process.
//! 2. `station`: a namespace with a TAP for each station, set up by netlink; on a path of several
//!    hops, `forwarder`: one with two TAPs for each host in between.
//! 3. `emulator`: one thread carries frames between the TAPs through the medium.
//! 4. `node`: for paths with Corridor nodes, a child process for each station; or `external`: a
//!    command of the user's for each.
//! 5. `load`: UDP or TCP sockets in the namespaces of S and D send, receive and measure.
//! 6. `run`: stops the nodes, reads their counters, and makes a row of everything.
//!
//! Other loads use `stage`: steps 2 to 4, and threads of their own in the namespaces.
//!
//! Nothing has a name outside of the process: only file descriptors hold the namespaces, and child
//! processes die with their parent. However the lab ends, nothing is left behind.
#![deny(unsafe_code)]

mod cell;
mod clock;
mod echo;
mod emulator;
mod error;
mod external;
mod forwarder;
mod line;
mod load;
mod netns;
mod node;
mod outcomes;
mod priority;
mod rights;
mod run;
mod said;
mod scratch;
mod stage;
mod station;
mod sys;
mod template;
mod waiting;

pub use cell::{NETWORK_NODES_MAX, NetworkRun, check_network, network_time_needed, run_network};
pub use error::LabError;
pub use external::Tunnel;
pub use line::{LineReport, LineRun, run_line};
pub use load::has_congestion;
pub use priority::missing_rights;
pub use rights::prepare;
pub use run::{
    LATENESS_MAX, Options, WAIT_RATIO_MAX, is_spoilt, run, run_tunnel, spoilage, time_needed,
};
pub use stage::{Guest, Side, Stage, StageReport};

/// Identifies the code that results depend on, beside their plan and the kernel: changes with the
/// code of radios, stations and nodes.
pub const CODE_VERSION: &str = env!("CORRIDOR_CODE_VERSION");
