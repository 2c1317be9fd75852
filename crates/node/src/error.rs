//! What ends a node, or keeps it from starting.

use std::io;
use std::path::PathBuf;

use corridor_document::Diagnostic;

/// Why a node does not start, or stopped on its own.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration file, or a file it names, cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadConfig {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The configuration says something that cannot be; points at the line.
    #[error("{0}")]
    Config(Box<Diagnostic>),
    /// The statistics file lies where no file can be made.
    #[error("--stats-file {}: {} is not a directory", path.display(), directory.display())]
    StatsDirectory {
        /// The statistics file.
        path: PathBuf,
        /// Where it should lie.
        directory: PathBuf,
    },
    /// The statistics could not be written.
    #[error("cannot write the statistics to {}: {source}", path.display())]
    StatsFile {
        /// The statistics file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused for lack of privileges.
    #[error("no permission to {action}: run as root or with {capability}")]
    Permission {
        /// What was tried.
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
    /// Another network interface has the name of the TUN device.
    #[error("interface {name} already exists: choose another tun.name, or stop its owner")]
    TunNameTaken {
        /// The name.
        name: String,
    },
    /// The TUN device was taken away while the node ran.
    #[error("TUN device {name} has disappeared: {source}")]
    TunGone {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The interface to send on is not an Ethernet one.
    #[error("interface {name} has no Ethernet address, which the ethernet underlay requires")]
    InterfaceNotEthernet {
        /// The name.
        name: String,
    },
    /// The kernel refused to change an address, a route or a link.
    #[error("cannot {action}: {reason}")]
    Netlink {
        /// What was tried.
        action: String,
        /// What the kernel says.
        reason: io::Error,
    },
    /// Another call to the system failed.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// What the system says.
        source: io::Error,
    },
}

impl NodeError {
    /// What a failed call means: a lack of privileges is told apart from the rest.
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

    /// Whether what was to be made is there already.
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
