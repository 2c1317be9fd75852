//! Relays that forward packets, and send two packets of different flows as one frame if both
//! receivers can decode their own: CATWOMAN (coding in chains, 2013), as a state machine without
//! I/O.
//!
//! The path of a packet through a relay, and where to read about each step:
//!
//! ```text
//! (1) air -> wire -> (2) neighbours: who hears whom -> (3) buffer: known packets, decoding
//!         -> (4) host: where next? -> (5) queue: hold, partner -> (6) frame, to the worse link
//!         -> (7) owed: what the other receiver has not reported, retransmitted
//!         -> (8) repair: or combined, while there is nothing else to send
//! air -> ... -> (9) in order: TCP for this node's host waits for retransmissions
//! ```
//!
//! The network needs no configuration: neighbours announce whom they hear and how well, and a relay
//! counts how often its coded frames could not be decoded. All nodes of a network know each other's
//! keys: the driver of a [`Relay`] seals the frames that it sends, and opens those it receives
//! (authenticated encryption). Even so, lengths and claims in received frames are never trusted:
//! see [`wire`].
//!
//! A driver passes in one input at a time ([`Relay::send`], [`Relay::forward`],
//! [`Relay::handle_frame`], [`Relay::handle_outcome`], [`Relay::handle_timeout`]) and drains all
//! outputs ([`Relay::poll_received`]; [`Relay::poll_transmit`], only while the MAC can take a
//! frame).
//!
//! ```
//! use corridor_base::Time;
//! use corridor_relay::{NodeId, Relay, RelayConfig, LinkDestination};
//!
//! // Alice, a relay, Bob: one packet each way.
//! let [alice, relay, bob] = [1, 2, 3].map(NodeId);
//! let config = RelayConfig::paper();
//! let mut node = Relay::new(relay, config, Time::ZERO)?;
//! let now = Time::from_millis(1);
//! node.forward(now, (alice, bob), 9, b"to Bob".as_slice().into())?;
//! assert!(node.poll_transmit(now).is_none(), "it waits for a partner");
//! node.forward(now, (bob, alice), 9, b"to Alice".as_slice().into())?;
//! let coded = node.poll_transmit(now).expect("both in one frame");
//! assert_eq!(coded.to, LinkDestination::Unicast(bob));
//!
//! // Alice overhears it, and knows what she has sent herself.
//! let mut end = Relay::new(alice, RelayConfig::paper(), Time::ZERO)?;
//! end.send(now, relay, 9, b"to Bob".as_slice().into())?;
//! end.poll_transmit(now).expect("her packet");
//! end.handle_frame(now, relay, false, &coded.frame);
//! assert_eq!(&end.poll_received().expect("decoded").packet[..], b"to Alice");
//! # Ok::<(), corridor_relay::RelayError>(())
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod config;
mod congestion;
pub mod in_order;
mod neighbours;
mod owed;
mod queue;
mod reception;
mod relay;
mod repair;
mod stats;
mod under_way;
pub mod wire;

pub use config::{Adaptive, Candidates, Hold, RelayConfig, RelayError, SwitchOff};
pub use neighbours::{NEIGHBOURS_MAX, NeighbourView};
pub use owed::OWED_MAX;
pub use relay::{LinkDestination, Received, Relay, Sent, Taken, Transmit};
pub use repair::REPAIRERS_MAX;
pub use stats::RelayStats;
pub use wire::{NodeId, PacketId};
