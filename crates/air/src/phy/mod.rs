//! Radios and the types that their MACs share: who receives what, when, with which power; rates;
//! frames and their outcomes. [`crate::radio`] has the overview.

mod arrivals;
mod config;
mod error;
mod error_ratio;
mod fading;
mod limits;
mod mac;
mod propagation;
mod rate;
mod reception;
mod waves;

pub use arrivals::TransmissionIndex;
pub use config::{
    Capture, Decoding, Fading, Links, PathLoss, RadioConfig, RadioLink, RadioStation, Receiver,
};
pub use error::RadioError;
pub use limits::{MAX_DB, MAX_LINKS, MAX_RADIOS};
pub(crate) use mac::Seen;
pub use mac::{FrameKind, MacEvent, MacFrame, MacStats, Quality, Queued, SendOutcome, Transmit};
pub use rate::{DSSS, OFDM, Preamble, Rate};
pub use reception::{Notice, Radio};
