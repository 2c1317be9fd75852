//! Stations in virtual time, each driven as a daemon drives one, and a [`World`] between them that
//! loses, delays, changes and repeats their frames as a test wants it.
//!
//! A [`Bed`] has the clock, the stations, and the frames under way. It fires timers, hears frames
//! and drains what comes of them, and checks at every step what a driver relies on: no station
//! asks to be called in the past, sends without end, or sends more than its interface takes.
//! Time goes on in one of two ways: [`Bed::tick`] looks at all stations once in a span, as a
//! driver on a coarse clock does; [`Bed::run_until`] goes from one event to the next. [`Air`] is a
//! world that does for most tests.
//!
//! The tests of several stations in `proto/tests/it` stand on a bed, and of the fuzz targets those
//! of keys and of tags. Torture's two drivers stand on its [`Schedule`]: they drain stations
//! themselves, since they look at one after each thing, and have faults planted in it.
//!
//! What does not stand here, and why:
//!
//! - The simulator's network carries packets of agents over routers, pipes and radios. All that a
//!   bed could have of it is one queue, which is made for 2^31 entities there; and the tests of the
//!   protocol would have to wait for four more crates to be built, of 39,000 lines.
//! - `bench-core` measures the processor time of hosts with gates and books of addresses.
//! - `window_allocation` and `hub_memory` count allocations; a bed makes some.
//! - `sim/tests/it/turns` goes from frame to frame, and lets no time pass otherwise.
//! - Unit tests inside `proto` see what is private: to them this crate's stations are others.
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
