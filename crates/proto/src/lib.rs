//! Corridor's protocols as state machines without I/O.
#![forbid(unsafe_code)]

pub mod bounds;
pub mod budget;
mod coding_table;
pub mod config;
mod decoder;
mod egress;
mod encoder;
mod error;
mod helper;
mod ingress;
mod link;
mod rtt;
mod seal;
mod session;
mod station;
mod stats;
mod symbol;
pub mod wire;

pub use coding_table::{CodingTable, FieldName, OrderName, PolicyName, Preset};
pub use config::{
    CodingParams, ErasureRatios, LinkErrors, Order, Policy, Role, StationConfig, StationId,
};
pub use corridor_codec::Field;
pub use error::ConfigError;
pub use station::{Destination, Event, FrameOutcome, PacketOutcome, Rejection, Station, Transmit};
pub use stats::Stats;
