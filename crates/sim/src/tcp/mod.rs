//! TCP without I/O, in the variants that the papers compare.
//!
//! [`Sender`] and [`Receiver`] are state machines: a driver feeds them segments and the time, and
//! takes out segments and the time of the next timer. Sequence numbers and windows count packets of
//! equal size, as in ns-2 and in the papers. The variants combine shared building blocks of loss
//! recovery; see [`Variant`], and [`SenderConfig::ns2`] for the settings of ns-2. [`linux`] is TCP
//! as in current Linux kernels; [`AnySender`] and [`AnyReceiver`] wrap either kind.

mod config;
mod core;
mod either;
mod flight;
pub mod linux;
mod reassembly;
mod receiver;
mod rto;
mod segment;
mod sender;
mod state;
mod variant;

pub use self::config::{
    Acks, ConfigError, DUPLICATES_THRESHOLD, LOSS_WINDOW_PACKETS, ReceiverConfig, Reduction,
    RttSampling, SenderConfig, Variant, VegasConfig, WINDOW_PACKETS_LIMIT,
};
pub use self::core::SenderStats;
pub use self::either::{AnyReceiver, AnySender, ReceiverSettings, SenderSettings};
pub use self::receiver::{POSITIVE_ACKS_WAITING_MAX, Receiver, ReceiverStats};
pub use self::rto::{COAP_SPREAD, COAP_TIMEOUT, RtoConfig, RtoEstimator};
pub use self::segment::{SACK_RANGES_MAX, SackRange, Segment};
pub use self::sender::Sender;
pub use self::state::{EVENTS, Event, STATES, State};
