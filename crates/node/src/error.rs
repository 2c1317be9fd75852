//! Errors that end a node, or keep it from starting.

use std::io;
use std::path::PathBuf;

use corridor_document::Diagnostic;

/// Why a node does not start, or stopped on its own.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration file, or a file named in it, cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadConfig {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The configuration has an invalid value; points at its line.
    #[error("{0}")]
    Config(Box<Diagnostic>),
    /// The statistics file is in a place where no file can be created.
    #[error("--stats-file {}: {} is not a directory", path.display(), directory.display())]
    StatsDirectory {
        /// The statistics file.
        path: PathBuf,
        /// The directory in which it should be.
        directory: PathBuf,
    },
    /// The statistics could not be written.
    #[error("cannot write the statistics to {}: {source}", path.display())]
    StatsFile {
        /// The statistics file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused because of missing privileges.
    #[error("no permission to {action}: run as root or with {capability}")]
    Permission {
        /// What was attempted.
        action: String,
        /// The capability that allows it.
        capability: &'static str,
    },
    /// The kernel offers no TUN devices.
    #[error(
        "/dev/net/tun is missing: load the tun kernel module (modprobe tun), or pass the device \
         to the container"
    )]
    TunMissing,
    /// Another network interface already has the TUN device's name.
    #[error("interface {name} already exists: choose another tun.name, or stop its owner")]
    TunNameTaken {
        /// The name.
        name: String,
    },
    /// The TUN device was removed while the node ran.
    #[error("TUN device {name} has disappeared: {source}")]
    TunGone {
        /// Its name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The interface to send on is not an Ethernet interface.
    #[error("interface {name} has no Ethernet address, which the ethernet underlay requires")]
    InterfaceNotEthernet {
        /// The name.
        name: String,
    },
    /// The kernel refused to change an address, a route or a link.
    #[error("cannot {action}: {reason}")]
    Netlink {
        /// What was attempted.
        action: String,
        /// The kernel's error.
        reason: io::Error,
    },
    /// Another system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was attempted.
        action: String,
        /// The system's error.
        source: io::Error,
    },
}

impl NodeError {
    /// The meaning of a failed call: distinguishes missing privileges from other errors.
    pub(crate) fn system(
        action: impl Into<String>,
        capability: &'static str,
        source: impl Into<io::Error>,
    ) -> Self {
        let (action, source) = (action.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => NodeError::Permission { action, capability },
            _ => NodeError::System { action, source },
        }
    }

    /// Whether the object to be created already exists.
    pub(crate) fn is_there_already(&self) -> bool {
        matches!(self, NodeError::Netlink { reason, .. }
            if reason.kind() == io::ErrorKind::AlreadyExists)
    }
}

impl From<Box<Diagnostic>> for NodeError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        NodeError::Config(diagnostic)
    }
}

/// The capability that a raw socket needs.
pub(crate) const CAP_NET_RAW: &str = "CAP_NET_RAW";
/// The capability that devices, addresses and routes need.
pub(crate) const CAP_NET_ADMIN: &str = "CAP_NET_ADMIN";
