//! What can be wrong: a configuration, or the moment of an offer.

use core::time::Duration;

use crate::config::{MAX_QUEUE_FRAMES, MAX_SPAN, MAX_STATIONS};

/// A configuration that cannot be: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum AirError {
    /// No stations, or too many.
    #[error("stations is {given}, expected 1 to {MAX_STATIONS}")]
    Stations {
        /// Number of stations given.
        given: usize,
    },
    /// No PHY rate: a frame would never end.
    #[error("rate_bps is {given}, expected 1 or more")]
    Rate {
        /// Rate given, in bit/s.
        given: u64,
    },
    /// Queues that hold nothing, or too much.
    #[error("queue_frames is {given}, expected 1 to {MAX_QUEUE_FRAMES}")]
    QueueFrames {
        /// Queue length given, in frames.
        given: usize,
    },
    /// An overhead that is probably in a wrong unit.
    #[error("overhead is {given:?}, expected at most {MAX_SPAN:?}")]
    Overhead {
        /// Overhead given.
        given: Duration,
    },
    /// A propagation delay that is probably in a wrong unit.
    #[error("propagation is {given:?}, expected at most {MAX_SPAN:?}")]
    Propagation {
        /// Delay given.
        given: Duration,
    },
    /// A link from a station that does not exist.
    #[error("links[{index}].from is {given}, expected a station below {stations}")]
    LinkFrom {
        /// Place of the link in the list.
        index: usize,
        /// Station given.
        given: usize,
        /// Number of stations.
        stations: usize,
    },
    /// A link to a station that does not exist.
    #[error("links[{index}].to is {given}, expected a station below {stations}")]
    LinkTo {
        /// Place of the link in the list.
        index: usize,
        /// Station given.
        given: usize,
        /// Number of stations.
        stations: usize,
    },
    /// A link from a station to itself.
    #[error("links[{index}].to is {given}, expected a station other than its from")]
    LinkToItself {
        /// Place of the link in the list.
        index: usize,
        /// Station given at both ends.
        given: usize,
    },
    /// An erasure ratio that is no probability.
    #[error("links[{index}].erasure_ratio ({from} to {to}) is {given}, expected 0 to 1")]
    ErasureRatio {
        /// Place of the link in the list.
        index: usize,
        /// Sending station of the link.
        from: usize,
        /// Hearing station of the link.
        to: usize,
        /// Ratio given.
        given: f64,
    },
    /// The same link twice.
    #[error("links has {from} to {to} more than once, expected each pair at most once")]
    DuplicateLink {
        /// Sending station of the link.
        from: usize,
        /// Hearing station of the link.
        to: usize,
    },
}

/// The frame was not taken, and comes back: there was no room for it, see
/// [`crate::Medium::has_room`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room in the station's queue")]
pub struct QueueFull<F> {
    /// The frame, as it was offered.
    pub frame: F,
}
