//! Stations in virtual time, each driven as a daemon drives one, and a [`World`] between them that
//! loses, delays, changes and repeats their frames as a test wants it.
//!
//! A [`Bed`] has the clock, the stations, and the frames under way. It fires timers, hears frames
//! and drains what comes of them, and checks at every step what a driver relies on: no station
//! asks to be called in the past, sends without end, or sends more than its interface takes.
//! Time goes on in one of two ways: [`Bed::tick`] looks at all stations once in a span, as a
//! driver on a coarse clock does; [`Bed::run_until`] goes from one event to the next. [`Air`] is a
//! world that does for most tests.
#![forbid(unsafe_code)]

mod air;
mod bed;
pub mod config;
mod schedule;

pub use air::{Air, Logged, Passage};
pub use bed::{Bed, Flying, Sent, Taken, Ways, World};
pub use schedule::{Next, Schedule};
