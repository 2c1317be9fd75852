//! The daemon around a [`corridor_proto::Station`]: a TUN device on one side, a raw Ethernet
//! interface or a UDP socket on the other, and one thread that waits for either of them or for a
//! timer.
//!
//! There is no protocol logic here: packets and frames pass through unchanged, and the station
//! decides what to send, when and to whom.

mod clock;
pub mod config;
mod control;
mod default_route;
mod diagnosis;
mod error;
mod events;
mod links;
mod loss;
mod memory;
mod names;
mod netlink;
mod reload;
mod retries;
mod run;
mod signals;
mod stats_file;
mod status;
mod syscalls;
mod tun;
mod underlay;
mod verbose;

pub use config::{NodeConfig, generate_key, generate_psk, public_key, schema};
pub use control::{Answer, CONTROL_VERSION, Request, control_directory, control_socket};
pub use corridor_document::Diagnostic;
pub use error::NodeError;
pub use names::Endpoint;
pub use run::{RunOptions, run};
pub use status::{
    Counter, MemoryStatus, OverheadStatus, OverhearingStatus, OwnStatus, PeerSince, PeerStatus,
    QueueStatus, RelayStatus, RepairStatus, Since, Status, counters_of_all_kinds,
};

/// Checks a configuration on this machine. Returns the MTU of its TUN device in bytes (0 for a
/// helper) on the underlay as it is now. A missing interface is assumed to have an MTU of 1500
/// bytes.
///
/// # Errors
/// An invalid value, with its place in the file.
pub fn check(config: &NodeConfig) -> Result<usize, NodeError> {
    Ok(config.check(underlay::Underlay::frame_len_max_expected(config))?)
}
