//! Segments that TCP agents exchange: headers without payload, whose bytes do not matter.

use corridor_base::Time;

/// Most SACK ranges in an acknowledgment: as many as fit beside timestamps (RFC 2018, Section 3).
pub const SACK_RANGES_MAX: usize = 3;

/// Segments received beyond the first gap: numbers `start` to `end` - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackRange {
    /// First number of the range.
    pub start: u64,
    /// Number after the last one; equal to `start` for an empty range.
    pub end: u64,
}

/// A TCP segment. As in ns-2 and in the papers, sequence numbers count segments of equal size from
/// 0, and windows are numbers of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From the sender.
    Data {
        /// Its number.
        sequence: u64,
        /// When this copy of it was sent, for the receiver to echo.
        sent_at: Time,
        /// Whether it has been sent before.
        retransmission: bool,
        /// Whether the network marked it with congestion (ECN CE).
        congestion_experienced: bool,
        /// Whether the sender has reduced its window in response to an echo of congestion (CWR, RFC
        /// 3168, Section 6.1.2).
        window_reduced: bool,
    },
    /// From the receiver.
    Ack {
        /// The number of the segment expected next: all before it have arrived.
        next: u64,
        /// `sent_at` of the segment that caused this acknowledgment, for RTT measurement.
        echo: Time,
        /// Whether the segment that caused it was a retransmission, for Karn's rule.
        echo_retransmission: bool,
        /// Ranges that have arrived beyond `next`, the latest change first; unused ones are empty.
        sack: [SackRange; SACK_RANGES_MAX],
        /// Whether congestion was seen since the last acknowledgment (ECN Echo).
        congestion_echo: bool,
        /// End of the receiver's window: the first number that must not be sent; `None` if no
        /// window is advertised.
        window_end: Option<u64>,
    },
}
