//! Turns a plan into agents, and their counters into metrics.

mod course;
mod error;
pub(crate) mod flows;
mod meter;
mod observed;
mod routing;
pub(crate) mod run;
mod seen;
pub(crate) mod settings;
pub(crate) mod sketch;
mod tcp;
pub(crate) mod tunnel;
mod tunnels;

pub use error::SimError;
