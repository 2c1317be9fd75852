//! What can go wrong in a lab.

use std::io;
use std::path::PathBuf;

use corridor_air::AirError;

/// Why a run could not be made. Losses, connections that never come about and late frames are
/// results, not errors.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The system does not let this process make network namespaces.
    #[error("{what} is not permitted: {source}\n{help}")]
    NotPermitted {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        source: io::Error,
        /// How to allow it.
        help: &'static str,
    },
    /// The system refused something that is usually allowed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// A request to the kernel's network configuration failed.
    #[error("{what}: {message}")]
    Netlink {
        /// What was asked for.
        what: String,
        /// What the kernel says.
        message: String,
    },
    /// The medium refused its configuration.
    #[error("medium: {0}")]
    Medium(#[from] AirError),
    /// A pipe refused its configuration.
    #[error("pipe: {source}")]
    Pipe {
        /// What it says.
        source: corridor_air::PipeError,
    },
    /// The program that is to run as a node could not be started.
    #[error("cannot start a node: {}: {source}", path.display())]
    Spawn {
        /// The program.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A node ended while it was needed.
    #[error("node {station} ended with {status}; it said:\n{stderr}")]
    NodeEnded {
        /// Name of the station: S, D or H.
        station: &'static str,
        /// How it ended.
        status: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// The nodes run, but do not hear each other.
    #[error("no tunnel after {seconds} s ({missing}); its ends said:\n{stderr}")]
    NoTunnel {
        /// How long it was waited for, seconds.
        seconds: u64,
        /// What is missing.
        missing: String,
        /// The end of what they said.
        stderr: String,
    },
    /// An external tunnel is for TCP connections only.
    #[error("{name} is a proxy for TCP connections: it does not carry {load}")]
    Tunnel {
        /// What it is called.
        name: String,
        /// What it was to carry.
        load: &'static str,
    },
    /// UDP datagrams of this size do not fit into a packet on this path.
    #[error(
        "datagram_bytes = {given}: expected at most {max}, what the path carries in one packet"
    )]
    DatagramTooLong {
        /// Bytes asked for.
        given: usize,
        /// Most bytes.
        max: usize,
    },
    /// A plan says what the lab does not do.
    #[error("{field} = {given}: expected {expected} in the lab")]
    Plan {
        /// Where in the plan.
        field: String,
        /// What it says.
        given: String,
        /// What it could say.
        expected: String,
    },
    /// Radios refused their configuration.
    #[error("radios: {0}")]
    Radio(#[from] corridor_air::radio::RadioError),
    /// The run was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Says what was tried when the system refuses.
pub(crate) trait Context<T> {
    fn what(self, what: impl Into<String>) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn what(self, what: impl Into<String>) -> Result<T, LabError> {
        self.map_err(|error| LabError::System { what: what.into(), source: error.into() })
    }
}
