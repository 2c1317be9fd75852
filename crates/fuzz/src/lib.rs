//! Fuzz targets of the codec and of the wire format as plain functions.
//!
//! [`block`] and [`window`] interpret arbitrary bytes as a sequence of operations on coders, and
//! check after each one that the decoder agrees with its [`Twin`], which solves the whole system
//! anew; they panic if it does not. [`wire`] interprets them as a frame's body, which must be
//! written as it was read; [`headers`] as packets, which must come out of window mode's header
//! compression unchanged; [`clamp`] as segments of two hosts, whose windows are clamped in transit
//! and which change in nothing else; [`relay`] as events at a relay, which must not deliver a
//! packet that nobody sent; [`sealed`] as events of the encrypted frames of relays in a row;
//! [`keys`] as events of the frames of stations that agree on secrets, or hand them to each other;
//! [`gate`] as frames that reach a station from a friend and from strangers; [`tags`] as what
//! happens to symbols and packets of two ends with tags that nobody between them can make;
//! [`parts`] as events of symbols that are sent in parts. Three callers share them: `cargo fuzz`
//! (in `crates/codec/fuzz`), the replay of the checked-in corpus, and property tests on random
//! bytes.
//!
//! ```
//! corridor_fuzz::window(b"any bytes at all");
//! corridor_fuzz::block(&[]);
//! corridor_fuzz::wire(b"\x06 feedback about a window, perhaps");
//! corridor_fuzz::headers(b"segments of TCP");
//! corridor_fuzz::clamp(b"more segments of TCP");
//! corridor_fuzz::relay(b"\x01 frames for a relay");
//! corridor_fuzz::sealed(b"\x01 what becomes of relays' frames");
//! corridor_fuzz::keys(b"\x00 what becomes of their frames");
//! corridor_fuzz::gate(b"\x03 who comes to a station");
//! corridor_fuzz::parts(b"\x00 packets, and an MTU that falls");
//! corridor_fuzz::tags(b"\x02 what somebody makes of symbols");
//! ```
#![forbid(unsafe_code)]

mod block;
mod clamp;
mod gate;
mod headers;
mod input;
mod keys;
mod parts;
mod relay;
mod sealed;
mod tags;
mod twin;
mod window;
mod wire;

pub use block::block;
pub use clamp::clamp;
pub use gate::gate;
pub use headers::headers;
pub use keys::keys;
pub use parts::parts;
pub use relay::relay;
pub use sealed::sealed;
pub use tags::tags;
pub use twin::{Twin, combine, unpack};
pub use window::window;
pub use wire::wire;
