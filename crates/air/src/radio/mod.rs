//! Stations that contend, collide, and are hidden from each other: radios with the MACs of
//! standards.
//!
//! [`RadioMedium`] is what a simulator drives: stations with queues, MACs and radios in virtual
//! time. It knows stations (indices from 0) and opaque payloads of a type `P` with a length: an
//! index, a length alone, an `Arc`. `P` is only cloned for receivers of a frame.
//!
//! # Driving it
//!
//! Inputs, at a time `now` that must not decrease (everything due before it is handled first, each
//! at its own time, so that a driver in real time may be late):
//!
//! - [`RadioMedium::offer`]: station `from` has a frame of some length for
//!   [`Address`](crate::Address) `to`. It enters the station's bounded queue, or is returned
//!   ([`QueueFull`](crate::QueueFull)).
//! - [`RadioMedium::handle_timeout`]: the time has advanced. To be called when
//!   [`RadioMedium::poll_timeout`] says so; an instant's work is done when that lies in the future.
//!
//! Outputs, to be drained after each of these until they return `None`:
//!
//! - [`RadioMedium::poll_event`]: [`MacEvent::Received`], a data frame received by a station, with
//!   power and link quality; [`MacEvent::Sent`], the outcome of a station's own frame
//!   ([`SendOutcome`]), and its number of attempts. Every frame accepted causes one `Sent`.
//! - [`RadioMedium::poll_timeout`]: when there is something to do next; `None` if never.
//!
//! [`RadioMedium::has_room`], [`RadioMedium::backlog`], [`RadioMedium::waiting_mut`] (waiting
//! frames may still be changed, such as acknowledgments that are updated) and
//! [`RadioMedium::stats`] inspect a station.
//!
//! At one instant, receptions end first, then stations decide, then what they send begins: stations
//! whose backoff ends at the same instant all send, and collide. What a driver offers at an instant
//! while it drains events takes part in that instant's decisions, provided that it calls
//! `handle_timeout` with that instant again, as `poll_timeout` then asks.
//!
//! # Parts
//!
//! - [`Radio`] (`phy/reception.rs`): who receives what, when, with which power; interference,
//!   carrier sense, capture. Links follow from a matrix or from positions (`phy/propagation.rs`),
//!   and vary over time (`phy/fading.rs`, `phy/waves.rs`).
//! - a MAC for each station: [`crate::dcf`] (IEEE 802.11 a, b, g) or [`crate::wpan`] (IEEE
//!   802.15.4), state machines of their own that take channel state and receptions, and return
//!   transmissions. [`crate::Medium`] is the ideal MAC, without a radio.
//! - `driver.rs`: an agenda of their timers and of the ends of transmissions, in a binary heap.

mod driver;
mod reach;

pub use crate::phy::{
    Capture, DSSS, Decoding, Fading, FrameKind, Links, MAX_DB, MAX_LINKS, MAX_RADIOS, MacEvent,
    MacFrame, MacStats, Notice, OFDM, PathLoss, Preamble, Quality, Queued, Radio, RadioConfig,
    RadioError, RadioLink, RadioStation, Rate, Receiver, SendOutcome, TransmissionIndex, Transmit,
};
pub use driver::{
    Begun, MAX_BEGUN, MAX_DCF_FRAME_BYTES, MacConfig, RadioMedium, RadioMediumConfig,
};
pub use reach::Reach;
