//! Corridor's protocols as sans-IO state machines: they read no clock, open no socket, start no
//! thread and draw no randomness from the operating system. The daemon, the simulator and the tests
//! all run this code.
//!
//! A packet's way through a station, and where each step is documented:
//!
//! ```text
//! host -> queue -> encoder -> link/seal ~~~ air ~~~ link/seal -> decoder -> egress -> host
//!          (1)       (2)         (3)      helper      (4)         (5)        (6)
//! ```
//! The crate has four parts: `host` handles packets and knows nothing of frames; `flow` handles
//! symbols and their repair; `link` handles frames, their keys, losses and rate; `wire` encodes and
//! decodes frames. [`Station`] combines them for each role; in `station/endpoint.rs` packets become
//! frames and frames become packets. Feedback travels the other way: `decoder` -> [`wire::Ack`] ->
//! `encoder`. [`budget`] is the only place with FRANC's formulas, [`bounds`] the only place with
//! limits.
//!
//! # Example
//! Two endpoints that hand each other their frames directly:
//! ```
//! use corridor_base::Time;
//! use corridor_proto::*;
//!
//! let config = |id, peer| StationConfig {
//!     id: StationId(id),
//!     role: Role::Endpoint { peer: StationId(peer), helper: None },
//!     security: [7; 32].into(),
//!     coding: CodingParams::default(),
//!     link_errors: LinkErrors::Measured,
//!     ingress_packets: 100,
//!     frame_len_max: 1500,
//!     frame_len_min: 46,
//!     memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
//!     rate_bps: None,
//! };
//! let mut a = Station::new(config(1, 2), [1; 32], Time::ZERO)?;
//! let mut b = Station::new(config(2, 1), [2; 32], Time::ZERO)?;
//! a.handle_packet(Time::ZERO, b"a packet");
//!
//! let mut received = Vec::new();
//! for ms in 0..200 {
//!     let now = Time::from_millis(ms);
//!     for (from, to) in [(&mut a, &mut b)] {
//!         from.handle_timeout(now);
//!         to.handle_timeout(now);
//!         while let Some(transmit) = from.poll_transmit(now) {
//!             to.handle_frame(now, transmit.frame);
//!         }
//!         while let Some(transmit) = to.poll_transmit(now) {
//!             from.handle_frame(now, transmit.frame);
//!         }
//!     }
//!     received.extend(b.poll_packet().map(|packet| packet.to_vec()));
//! }
//! assert_eq!(received, [b"a packet"]);
//! # Ok::<(), ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod any_station;
pub mod bounds;
mod bucket;
mod check;
mod clocks;
mod coding_table;
pub mod config;
pub mod diagnosis;
mod end_keys;
mod error;
mod flow;
mod gate;
mod host;
pub mod hub;
mod id;
pub mod inspect;
mod keys;
mod link;
mod memory;
mod places;
mod psk;
mod relay_station;
mod relay_table;
mod sizes;
mod station;
pub mod stats;
mod unseal;
pub mod wire;

pub use any_station::{AnyStation, Driven};
pub use clocks::Clocks;
pub use coding_table::{
    Auto, CodingTable, DeliveryName, FieldName, GoalName, HalfDuplex, OrderName, PolicyName,
    Preset, UdpDeliveryTable,
};
pub use config::{
    CodingParams, Crossing, Delivery, ErasureRatios, Goal, LinkErrors, Mode, Order, Policy, Role,
    StationConfig, StationId, UdpDelivery,
};
pub use corridor_codec::Field;
pub use corridor_packet as packet;
pub use corridor_relay as relay;
pub use error::ConfigError;
pub use flow::block::budget;
pub use flow::tcp_nc as tcpnc;
pub use gate::{Admission, Gate};
#[doc(hidden)] // For fuzz targets and benchmarks.
pub use host::compression::Contexts as HeaderContexts;
pub use hub::{Hub, HubConfig, HubStats};
pub use keys::{KEY_LEN, Keys, PeerKey, PrivateKey, PublicKey, Security};
pub use link::mtu::FrameLens;
pub use memory::{Counted, MemoryView, Shortage};
pub use places::{Certainty, Challenge, Learned, PeerBook};
pub use psk::{PSK_LEN, Psk};
pub use relay_station::{
    RelayCounters, RelayEnd, RelayNeighbourView, RelayStation, RelayStationConfig, RelayView,
};
pub use relay_table::{AdaptiveKind, RelayPreset, RelayTable};
pub use station::{Destination, Event, FrameOutcome, PacketOutcome, Rejection, Station, Transmit};
pub use stats::Stats;
pub use unseal::Unsealer;
