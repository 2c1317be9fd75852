//! The lab's errors.

use std::io;
use std::path::PathBuf;

use corridor_air::AirError;

/// Why a run failed. Losses, connections that are never established and late frames are results,
/// not errors.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The system does not permit this process to create network namespaces.
    #[error("{what} is not permitted: {source}\n{help}")]
    NotPermitted {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
        /// How to allow it.
        help: &'static str,
    },
    /// The system refused something that is usually allowed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A netlink request to the kernel failed.
    #[error("{what}: {message}")]
    Netlink {
        /// What was requested.
        what: String,
        /// The kernel's message.
        message: String,
    },
    /// An invalid configuration of the medium.
    #[error("medium: {0}")]
    Medium(#[from] AirError),
    /// An invalid configuration of a pipe.
    #[error("pipe: {source}")]
    Pipe {
        /// What is wrong with it.
        source: corridor_air::PipeError,
    },
    /// The program that has to run as a node could not be started.
    #[error("cannot start a node: {}: {source}", path.display())]
    Spawn {
        /// The program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A node ended while it was needed.
    #[error("node {station} ended with {status}; it said:\n{stderr}")]
    NodeEnded {
        /// Name of the station: S, D or H.
        station: &'static str,
        /// How it ended.
        status: String,
        /// The end of its standard error output.
        stderr: String,
    },
    /// The nodes run, but do not reach each other.
    #[error("no tunnel after {seconds} s ({missing}); its ends said:\n{stderr}")]
    NoTunnel {
        /// How long the lab waited, seconds.
        seconds: u64,
        /// What is missing.
        missing: String,
        /// The end of their standard error output.
        stderr: String,
    },
    /// An external tunnel that only carries TCP connections.
    #[error("{name} is a proxy for TCP connections: it does not carry {load}")]
    Tunnel {
        /// Its name.
        name: String,
        /// The load that it cannot carry.
        load: &'static str,
    },
    /// Datagrams of this size do not fit into a packet on this path.
    #[error(
        "datagram_bytes = {given}: expected at most {max}, what the path carries in one packet"
    )]
    DatagramTooLong {
        /// Bytes asked for.
        given: usize,
        /// Most bytes.
        max: usize,
    },
    /// A plan has a setting that the lab does not support.
    #[error("{field} = {given}: expected {expected} in the lab")]
    Plan {
        /// Where in the plan.
        field: String,
        /// The value given.
        given: String,
        /// Supported values.
        expected: String,
    },
    /// An invalid configuration of the radios.
    #[error("radios: {0}")]
    Radio(#[from] corridor_air::radio::RadioError),
    /// The run was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// Adds what was tried to an error of the system.
pub(crate) trait Context<T> {
    fn what(self, what: impl Into<String>) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn what(self, what: impl Into<String>) -> Result<T, LabError> {
        self.map_err(|error| LabError::System { what: what.into(), source: error.into() })
    }
}
