//! Integer time and keyed random streams: the page of code every other room may know.
#![forbid(unsafe_code)]

mod stream;
mod time;

pub use rand;
pub use stream::{Stream, StreamKey};
pub use time::{Time, earlier};
