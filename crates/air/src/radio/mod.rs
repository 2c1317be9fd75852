//! Stations that contend, collide, and are hidden from each other: radios, and the MACs of
//! standards over them.
//!
//! [`RadioMedium`] is what a simulator drives: stations with queues, MACs and radios, through
//! virtual time. It is one entity with the verbs of the run loop, and knows stations (indices from
//! 0) and opaque payloads of a type `P` with a length: an index, a length alone, an `Arc`. `P` is
//! cloned for each receiver of a frame and for nobody else.
//!
//! # Driving it
//!
//! In, at a time `now` that never goes back (everything due before it happens first, each at its
//! own time, so that a driver in real time may be late):
//!
//! - [`RadioMedium::offer`]: station `from` has a frame for [`Address`](crate::Address) `to`, of so
//!   many bytes. It is taken into the station's bounded queue, or comes back
//!   ([`QueueFull`](crate::QueueFull)).
//! - [`RadioMedium::handle_timeout`]: so late is it. To be called when
//!   [`RadioMedium::poll_timeout`] says so; an instant's work is done when that lies in the future.
//!
//! Out, to be drained after each of these until it returns `None`:
//!
//! - [`RadioMedium::poll_event`]: [`MacEvent::Received`], a frame of data at a station, with power
//!   and link quality; [`MacEvent::Sent`], what became of a frame of a station's own
//!   ([`SendOutcome`]), and after how many attempts. Every frame that was taken brings one `Sent`.
//! - [`RadioMedium::poll_timeout`]: when there is something to do next; `None` if nothing ever.
//!
//! [`RadioMedium::has_room`], [`RadioMedium::backlog`], [`RadioMedium::waiting_mut`] (frames that
//! wait may still be changed, as acknowledgements that are brought up to date) and
//! [`RadioMedium::stats`] look into a station.
//!
//! At one instant, receptions end first, then stations decide, then what they send begins: stations
//! whose backoff ends at the same instant all send, and collide. What a driver offers at an instant
//! while it drains events is there before that instant's decisions, if it calls `handle_timeout`
//! with that instant again, which `poll_timeout` then asks for.
//!
//! # In it
//!
//! - [`Radio`] (`phy/reception.rs`): who receives what, when, with which power; interference,
//!   carrier sense, capture. Links come of a matrix or of positions (`phy/propagation.rs`), and
//!   vary in time (`phy/fading.rs`, `phy/waves.rs`).
//! - a MAC for each station: [`crate::dcf`] (IEEE 802.11 a, b, g) or [`crate::wpan`] (IEEE
//!   802.15.4), state machines of their own that get channel state and receptions, and give
//!   transmissions. The lottery of [`crate::Medium`] is the ideal MAC, without a radio.
//! - `driver.rs`: an agenda of their timers and of the ends of transmissions, by a binary heap.

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
