//! Virtual time: the daemon's own state machines over the emulated medium.
//!
//! [`World`] is the driver: stations of `corridor-proto`, the medium of `corridor-air`, and a
//! clock that jumps from event to event. [`run_udp`] loads one with datagrams as a scenario says.
//! [`torture`] drives stations through a network that does its worst.
//! A run is a function of (scenario, point, replication): the same bytes on every machine.
#![forbid(unsafe_code)]

pub mod tcp;
pub mod torture;
mod udp;
mod world;

pub use udp::{SimError, run_udp};
pub use world::{Node, World};
