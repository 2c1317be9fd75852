//! TCP/NC: network coding between TCP and IP (Sundararajan et al. 2011; network-coded-tcp-2012,
//! Section II).
//!
//! | step | where |
//! |---|---|
//! | TCP's segments wait until acknowledged; linear combinations of them are sent | [`NcSender`] |
//! | how many: NUM += R per segment, or as many as are missing | `redundancy` |
//! | header: window base, count, coefficients as a seed, ranges of sequence numbers | [`wire`] |
//! | elimination; *seen* segments are acknowledged, decoded ones delivered | [`NcReceiver`] |
//!
//! A segment is *seen* once it is a pivot, that is, determined up to a combination of later
//! segments. Every innovative packet makes one more segment seen. TCP thus receives an in-order
//! acknowledgment for each degree of freedom, and notices no losses as long as redundancy makes up
//! for them. The sender drops a segment once it is acknowledged, decoded or not, so the receiver
//! must keep it until it is delivered.
//!
//! Both ends are sans-IO. They treat the contents of segments as opaque, together with the range of
//! TCP sequence numbers that they cover: whole IP packets in the daemon, numbers of segments in the
//! simulator.

mod ip;
mod layer;
mod receiver;
mod redundancy;
mod sender;
pub mod wire;

use corridor_codec::{Coefficients, Field, MAX_SYMBOL_SIZE, MAX_WINDOW_SIZE};

pub use crate::bounds::{
    TCP_NC_CONNECTIONS_MAX as CONNECTIONS_MAX, TCP_NC_IN_FLIGHT_MAX as IN_FLIGHT_MAX,
    TCP_NC_SEGMENTS_MAX as BUFFER_SEGMENTS_MAX,
};
pub use crate::config::Redundancy;
pub use layer::{
    CONNECTION_CLOSED, CONNECTION_IDLE, LAYER_OVERHEAD_MAX, NcLayer, NcLayerStats, packet_len_max,
};
pub use receiver::{NcReceiver, NcReceiverStats};
pub use sender::{NcSender, NcSenderStats, Segment, SegmentOutcome};

/// Most runs of segments of equal length that one combination may cover; bounds the header.
pub const RUNS_MAX: usize = 16;
/// Largest redundancy factor.
pub const REDUNDANCY_MAX: f64 = 10.0;
/// Bytes of the length that precedes a segment in its symbol; needed because a decoded symbol may
/// end with padding zeros.
pub const SEGMENT_PREFIX_LEN: usize = 2;

/// Parameters of both ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NcParams {
    /// Field of the coefficients.
    pub field: Field,
    /// How many combinations are sent.
    pub redundancy: Redundancy,
    /// Segments in the coding buffer, 1 to [`BUFFER_SEGMENTS_MAX`]; further ones are dropped, which
    /// TCP takes for a loss. The receiver keeps up to twice as many.
    pub buffer_segments: u16,
    /// Longest segment in bytes, 1 to 65,533.
    pub segment_len_max: usize,
}

impl Default for NcParams {
    /// GF(2^8), adaptive redundancy, the largest buffer, segments for an MTU of 1500 bytes.
    fn default() -> Self {
        NcParams {
            field: Field::Gf256,
            redundancy: Redundancy::Adaptive { loss_ratio: 0.0, factor_max: 2.0 },
            buffer_segments: BUFFER_SEGMENTS_MAX,
            segment_len_max: 1500,
        }
    }
}

/// A parameter out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {given}: expected {expected}")]
pub struct NcError {
    /// Name of the field.
    pub field: &'static str,
    /// Its value.
    pub given: String,
    /// The values allowed.
    pub expected: String,
}

impl NcParams {
    /// Checks every range stated in the fields' documentation.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn check(&self) -> Result<(), NcError> {
        let error =
            |field, given: String, expected: String| Err(NcError { field, given, expected });
        if !(1..=BUFFER_SEGMENTS_MAX).contains(&self.buffer_segments) {
            let expected = format!("1 to {BUFFER_SEGMENTS_MAX} segments");
            return error("buffer_segments", self.buffer_segments.to_string(), expected);
        }
        let len_max = MAX_SYMBOL_SIZE - SEGMENT_PREFIX_LEN;
        if !(1..=len_max).contains(&self.segment_len_max) {
            let expected = format!("1 to {len_max} bytes");
            return error("segment_len_max", self.segment_len_max.to_string(), expected);
        }
        let (field, factor) = match self.redundancy {
            Redundancy::Fixed { factor } => ("redundancy", factor),
            Redundancy::Adaptive { loss_ratio, factor_max } => {
                if !(0.0..1.0).contains(&loss_ratio) {
                    let expected = "a share from 0, below 1".to_owned();
                    return error("loss_ratio", loss_ratio.to_string(), expected);
                }
                ("redundancy_max", factor_max)
            }
        };
        if !(1.0..=REDUNDANCY_MAX).contains(&factor) {
            return error(
                field,
                factor.to_string(),
                format!("a factor from 1 to {REDUNDANCY_MAX}"),
            );
        }
        Ok(())
    }

    /// Longest symbol, prefix included.
    fn symbol_size_max(&self) -> usize {
        self.segment_len_max + SEGMENT_PREFIX_LEN
    }
}

/// Writes the coefficients of packet `serial` over `count` segments to `out`, and returns them in
/// the codec's form. They are derived from the serial number as a seed, except that the newest
/// segment's is never zero: on a lossless path each packet then makes its segment seen, however
/// small the field.
fn coefficients(
    field: Field,
    serial: u32,
    count: usize,
    out: &mut [u8; MAX_WINDOW_SIZE],
) -> Option<Coefficients<'_>> {
    let out = &mut out[..field.vector_len_bytes(count)];
    field.expand_seed(serial, count, out).ok()?;
    let (last, mask, one) = match (field, (count - 1) % 8) {
        (Field::Gf2, bit) => (out.last_mut()?, 1 << bit, 1 << bit),
        (Field::Gf16, nibble) if nibble % 2 == 1 => (out.last_mut()?, 0xF0, 0x10),
        (Field::Gf16, _) => (out.last_mut()?, 0x0F, 0x01),
        (Field::Gf256, _) => (out.last_mut()?, 0xFF, 0x01),
    };
    if *last & mask == 0 {
        *last |= one;
    }
    Some(Coefficients::Vector(out))
}

/// By how many bytes a coded packet may exceed the longest segment that it combines.
pub const OVERHEAD_MAX: usize = wire::HEAD_LEN + RUNS_MAX * wire::RUN_LEN + SEGMENT_PREFIX_LEN;

#[cfg(test)]
mod tests;
