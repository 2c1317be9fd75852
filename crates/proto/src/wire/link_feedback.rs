//! Feedback about a link's frames, independent of the flows in them: which arrived, when, and how
//! many were lost.

use core::time::Duration;

use super::{Reader, write_ratio};

/// Bytes of it where no frame overtakes another.
pub const LINK_FEEDBACK_LEN: usize = 17;
/// Bytes of the lateness, where there is one.
pub const LATENESS_LEN: usize = 2;
/// Unit of the delay and of the lateness in nanoseconds.
const DELAY_UNIT_NS: u64 = 16_384;

/// Bit in the first byte: the channel is shared.
const HALF_DUPLEX: u8 = 1 << 7;
/// Set in the first byte: the lateness follows at the end.
const OVERTAKES: u8 = 1 << 6;

/// A path between two stations, with counters of its own. At present there is only path 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathId(u8);

impl PathId {
    /// The largest number on the wire.
    pub const MAX: Self = PathId(OVERTAKES - 1);

    /// A path's number; `None` above [`MAX`](Self::MAX).
    pub fn new(number: u8) -> Option<Self> {
        (number <= Self::MAX.0).then_some(PathId(number))
    }
}

/// Feedback about frames with symbols.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFeedback {
    /// The path that these frames used.
    pub path: PathId,
    /// Both directions share the channel, as far as this station can tell from its own frames.
    pub half_duplex: bool,
    /// Newest counter of a frame with a symbol.
    pub counter: u32,
    /// Time between the arrival of that frame and this feedback, at most about a second.
    pub delay: Duration,
    /// When that frame arrived: microseconds of the receiver's clock, modulo 2^32.
    pub received_at_us: u32,
    /// Frames with symbols received so far, modulo 2^32.
    pub frames: u32,
    /// Loss ratio of all frames in this direction.
    pub loss_ratio: f64,
    /// How long after a newer frame overtaken frames arrive; about one frame in a hundred is later
    /// (`link/arrivals.rs`).
    pub lateness: Duration,
}

impl LinkFeedback {
    /// The longest delay that can be expressed; the true one may be longer.
    pub const DELAY_MAX: Duration = Duration::from_nanos(u16::MAX as u64 * DELAY_UNIT_NS);

    /// Bytes of feedback that reports this lateness.
    pub fn len(lateness: Duration) -> usize {
        LINK_FEEDBACK_LEN + if units(lateness) > 0 { LATENESS_LEN } else { 0 }
    }

    /// Appends it to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let half_duplex = if self.half_duplex { HALF_DUPLEX } else { 0 };
        let lateness = units(self.lateness);
        let overtakes = if lateness > 0 { OVERTAKES } else { 0 };
        out.push(self.path.0 | half_duplex | overtakes);
        out.extend_from_slice(&self.counter.to_be_bytes());
        out.extend_from_slice(&units(self.delay).to_be_bytes());
        out.extend_from_slice(&self.received_at_us.to_be_bytes());
        out.extend_from_slice(&self.frames.to_be_bytes());
        write_ratio(self.loss_ratio, out);
        if lateness > 0 {
            out.extend_from_slice(&lateness.to_be_bytes());
        }
    }

    /// Parses it; returns it and what follows it.
    pub fn parse(body: &[u8]) -> Option<(Self, &[u8])> {
        let mut read = Reader(body);
        let first = read.u8()?;
        let feedback = LinkFeedback {
            path: PathId(first & PathId::MAX.0),
            half_duplex: first & HALF_DUPLEX != 0,
            counter: read.u32()?,
            delay: of_units(read.u16()?),
            received_at_us: read.u32()?,
            frames: read.u32()?,
            loss_ratio: read.ratio()?,
            lateness: if first & OVERTAKES == 0 {
                Duration::ZERO
            } else {
                of_units(read.u16().filter(|&units| units > 0)?)
            },
        };
        Some((feedback, read.0))
    }
}

/// A time in units, limited to what fits.
fn units(time: Duration) -> u16 {
    u16::try_from(time.as_nanos() / u128::from(DELAY_UNIT_NS)).unwrap_or(u16::MAX)
}

fn of_units(units: u16) -> Duration {
    Duration::from_nanos(u64::from(units) * DELAY_UNIT_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn it_survives_the_wire(
            path in 0..=PathId::MAX.0, half_duplex: bool, counter: u32, units: u16,
            received_at_us: u32, frames: u32, late in 0..4u16,
        ) {
            let (delay, lateness) = (of_units(units), of_units(late));
            let path = PathId::new(path).unwrap();
            let loss_ratio = 1.0;
            let feedback = LinkFeedback {
                path, half_duplex, counter, delay, received_at_us, frames, loss_ratio, lateness,
            };
            let mut bytes = Vec::new();
            feedback.write(&mut bytes);
            prop_assert_eq!(bytes.len(), LinkFeedback::len(lateness));
            for len in 0..bytes.len() {
                prop_assert_eq!(LinkFeedback::parse(&bytes[..len]), None);
            }
            bytes.extend_from_slice(b"rest");
            prop_assert_eq!(LinkFeedback::parse(&bytes), Some((feedback, &b"rest"[..])));
        }
    }
}
