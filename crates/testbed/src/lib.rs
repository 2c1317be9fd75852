//! A test bed: stations in virtual time, each driven as a daemon drives its own, and a [`World`]
//! between them that loses, delays, alters and repeats their frames as a test needs.
//!
//! A [`Bed`] has the clock, the stations, and the frames in flight. It fires timers, delivers
//! frames and drains the outputs, and at every step checks what a driver relies on: no station asks
//! to be called in the past, sends without end, or sends longer frames than its interface accepts.
//! Time advances in one of two ways: [`Bed::tick`] serves all stations once per time span, as a
//! driver with a coarse clock does; [`Bed::run_until`] goes from event to event. [`Air`] is a world
//! that suffices for most tests.
//!
//! The multi-station tests in `proto/tests/it` use a bed, and so do the fuzz targets for keys and
//! tags. Torture's two drivers use its [`Schedule`]: they drain stations themselves, since they
//! check a station after each output and plant faults in it.
//!
//! These do not use it, for the following reasons:
//!
//! - The simulator's network carries packets of agents over routers, pipes and radios. It could
//!   only share a single queue with a bed, which in the simulator is made for 2^31 entities; and
//!   the protocol's tests would have to wait for four more crates of 39,000 lines to be built.
//! - `bench-core` measures the processor time of hosts with gates and address books.
//! - `window_allocation` and `hub_memory` count allocations; a bed makes some.
//! - `sim/tests/it/turns` goes from frame to frame, and lets no time pass otherwise.
//! - Unit tests inside `proto` access private items: for them, this crate's station types are
//!   different ones.
//! - Tests of parts of a station (`flow`, `host`, TCP/NC), and those of the crate `relay`, have no
//!   stations.
//! - The fuzz targets `sealed`, `parts`, `gate` and `clamp` choose what happens between frames.
#![forbid(unsafe_code)]

mod air;
mod bed;
pub mod config;
mod schedule;

pub use air::{Air, Logged, Passage};
pub use bed::{Bed, Flying, Sent, Taken, Ways, World};
pub use schedule::{Next, Schedule};
