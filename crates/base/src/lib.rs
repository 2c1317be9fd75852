//! Integer time, keyed random streams and CoDel: code that all other crates may use.
#![forbid(unsafe_code)]

pub mod codel;
mod stream;
mod time;

pub use rand;
pub use stream::{Stream, StreamKey};
pub use time::{Time, earlier};
