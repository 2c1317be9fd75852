//! What TCP agents exchange: headers without the data, which nobody looks at.

use corridor_base::Time;

/// Most ranges of a selective acknowledgement, as many as fit beside timestamps (RFC 2018,
/// Section 3).
pub const SACK_RANGES_MAX: usize = 3;

/// Segments received beyond the first gap: numbers `start` to `end` - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRange {
    /// First number of the range.
    pub start: u64,
    /// Number after the last one; equal to `start` for a range that is not there.
    pub end: u64,
}

/// A TCP segment. Sequence numbers count segments of equal size, from 0, as in ns-2 and in the
/// papers: windows there are numbers of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From the sender.
    Data {
        /// Its number.
        sequence: u64,
        /// When this copy of it was sent, for the receiver to echo.
        sent_at: Time,
        /// Sent before.
        retransmission: bool,
        /// Its network saw congestion on its way (ECN).
        congestion_experienced: bool,
        /// The sender has reduced its window since congestion was echoed (CWR, RFC 3168,
        /// Section 6.1.2).
        window_reduced: bool,
    },
    /// From the receiver.
    Ack {
        /// The number of the segment expected next: all before it have arrived.
        next: u64,
        /// `sent_at` of the segment that caused this acknowledgement, for a round-trip time.
        echo: Time,
        /// The segment that caused it was sent before; Karn's rule may want to know.
        echo_retransmission: bool,
        /// What has arrived beyond `next`, the latest change first; the rest are empty.
        sack: [SackRange; SACK_RANGES_MAX],
        /// Congestion was seen since the last acknowledgement (ECN).
        congestion_echo: bool,
        /// The end of the receiver's window: the first number beyond what may be sent; `None` where
        /// nobody limits it.
        window_end: Option<u64>,
    },
}
