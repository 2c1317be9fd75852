//! Integer time, keyed random streams and CoDel: the pages of code every other room may know.
#![forbid(unsafe_code)]

pub mod codel;
mod stream;
mod time;

pub use rand;
pub use stream::{Stream, StreamKey};
pub use time::{Time, earlier};
