//! The links of Corridor's lab and simulator, without I/O: a radio medium and point-to-point links.
//!
//! [`Medium`] is a channel that stations share; this page is about it. [`Pipe`] is a one-way link
//! between two nodes, with a rate, a delay and a drop-tail queue, for wires or for radios that do
//! not disturb each other; its rate and delay may vary ([`RateConfig`], [`OutageConfig`],
//! [`PolicerConfig`], [`Jitter`]). [`Line`] is two pipes between two stations, [`Links`] any number
//! of pipes between any nodes. All of them lose packets according to an [`ErasureConfig`]:
//! independently, in bursts ([`GilbertElliott`]), or as recorded ([`LossTrace`]).
//!
//! The medium knows stations, numbered from 0, and opaque frames. Every frame takes airtime at the
//! PHY rate, is lost or not on each of its sender's directed links independently, and otherwise
//! reaches the station at the end of that link, whether or not it is addressed to it: every station
//! overhears.
//!
//! # The path of a frame
//!
//! 1. [`Medium::offer`] puts it into its station's queue, which is finite.
//! 2. *Access.* In [`Duplex::Half`] all stations share one channel; when it is idle, one of the
//!    stations with a waiting frame is chosen, uniformly at random. In [`Duplex::Full`] every
//!    station has a channel of its own.
//! 3. *Airtime.* The head frame of that station occupies the channel for the overhead plus its bits
//!    at the PHY rate ([`Medium::airtime`]).
//! 4. *Erasure.* At the end of the airtime every link of the sender draws, each from a random
//!    stream of its own: the `k`-th draw of a link belongs to the `k`-th transmission of its
//!    sender. Two runs with different protocols see the same losses.
//! 5. *Delivery.* Stations that heard the frame get it from [`Medium::poll_delivery`] after the
//!    propagation delay.
//! 6. *Retry.* If the addressed station did not hear it and its link allows retransmissions, the
//!    frame stays at the head of the queue and contends again. The sender learns this at no cost:
//!    link-layer acknowledgments take airtime only as part of [`MediumConfig::overhead`].
//!
//! What is not modelled: collisions, capture, and a station that misses a frame because it is
//! sending when the frame arrives (possible only with a propagation delay).
//!
//! # Another MAC
//!
//! Steps 2 and 6, access and retry, belong to the MAC, the others to the radio. A standard's MAC
//! would replace two private functions of `medium.rs`: `contend` and `decide_access` choose who
//! begins when (802.11 DCF: slots of backoff, with collisions when two reach zero together;
//! 802.15.4: a bounded number of backoffs, then a channel access failure), and `retry_or_release`
//! decides on the next attempt. Both depend on [`Duplex`] today. Such a MAC needs the number of
//! attempts of each queued frame, which is there, and a random stream of its own, keyed like
//! `"access"`.
//!
//! # Driving it
//!
//! Time is an argument, and never goes back: a `now` before the latest one counts as the latest.
//! The driver calls [`Medium::handle_timeout`] when [`Medium::poll_timeout`] says so, then drains
//! [`Medium::poll_delivery`] and offers new frames, until `poll_timeout` lies in the future.
//!
//! A late driver does not slow the medium down: everything happens at its own virtual time, in
//! order, as soon as the driver says that this time has passed. A transmission begins at the
//! virtual end of the one before, and never before its frame was offered.
//!
//! At one instant, transmissions end and deliveries are handed out first; the next call to
//! [`Medium::handle_timeout`], at that instant or later, decides access. So a station that answers
//! a frame, or refills its queue, at the very instant the channel becomes idle contends with all
//! others, and the order in which the driver visits its stations favours none of them. A driver
//! with other timers at that instant serves those before the medium's.
//!
//! ```
//! use core::time::Duration;
//! use corridor_air::{Address, Duplex, Jitter, Link, Medium, MediumConfig};
//! use corridor_base::Time;
//!
//! // Station 0 sends to station 1; station 2 overhears.
//! let mut medium: Medium = Medium::new(MediumConfig {
//!     mode: Duplex::Half,
//!     rate_bps: 1_000_000,
//!     overhead: Duration::from_micros(100),
//!     propagation: Duration::from_micros(1),
//!     jitter: Jitter::None,
//!     queue_frames: 4,
//!     drops_when_full: false,
//!     stations: 3,
//!     links: vec![
//!         Link { from: 0, to: 1, erasure: 0.0.into(), retry_limit: 7 },
//!         Link { from: 0, to: 2, erasure: 0.0.into(), retry_limit: 0 },
//!     ],
//!     seed: 1,
//!     replication: 0,
//! })?;
//!
//! medium.offer(Time::ZERO, 0, Address::Station(1), vec![0xC0; 125]).expect("the queue is empty");
//!
//! let mut heard = Vec::new();
//! while let Some(now) = medium.poll_timeout() {
//!     medium.handle_timeout(now);
//!     while let Some(delivery) = medium.poll_delivery() {
//!         heard.push((delivery.at, delivery.to, delivery.addressed));
//!     }
//! }
//!
//! // 100 us of overhead, 1000 bits at 1 Mbit/s, 1 us of propagation.
//! let at = Time::from_nanos(1_101_000);
//! assert_eq!(heard, [(at, 1, true), (at, 2, false)]);
//! # Ok::<(), corridor_air::AirError>(())
//! ```
#![forbid(unsafe_code)]

mod config;
pub mod dcf;
mod draw;
mod erasure;
mod error;
mod jitter;
mod limits;
mod line;
mod link;
mod links;
mod medium;
mod opportunities;
mod phy;
mod pipe;
mod policer;
pub mod radio;
mod service;
mod stats;
mod trace;
pub mod wpan;

pub use config::{Duplex, Link, MediumConfig, Station};
pub use erasure::{ErasureConfig, GilbertElliott};
pub use error::{AirError, ErasureError, PipeError, QueueFull, RateError, RateTraceError};
pub use jitter::Jitter;
pub use limits::{
    MAX_BURST_BYTES, MAX_OPPORTUNITIES, MAX_QUEUE_BYTES, MAX_QUEUE_FRAMES, MAX_QUEUE_PACKETS,
    MAX_SPAN, MAX_STATIONS, MAX_TRACE_MS, MAX_TRACE_RUNS,
};
pub use line::{Line, LineConfig};
pub use links::{Links, LinksConfig};
pub use medium::{Address, Carried, Delivery, Frame, MAX_DELIVERIES, Medium, Transmission};
pub use opportunities::{OPPORTUNITY_BYTES, RateTrace};
pub use pipe::{MAX_UNDER_WAY_PACKETS, Pipe, PipeConfig, PipeStats, QueueLimit};
pub use policer::PolicerConfig;
pub use service::{
    LEAST_DWELL, MAX_DWELL, MAX_RATES, MAX_STEPS, OutageConfig, RateConfig, RateSteps, RateWalk,
};
pub use stats::{LinkStats, StationStats};
pub use trace::LossTrace;
