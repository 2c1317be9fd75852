//! Feedback about a link's frames, independent of the flows in them: which arrived, when, and how
//! many were lost.

use core::time::Duration;

use super::{Reader, write_ratio};

/// Bytes of it where no frame overtakes another.
pub const LINK_FEEDBACK_LEN: usize = 17;
/// Bytes of the lateness, where there is one.
pub const LATENESS_LEN: usize = 2;
/// Bytes of the gap of a pair, where there is one.
pub const PAIR_GAP_LEN: usize = 5;
/// Unit of the delay and of the lateness in nanoseconds.
const DELAY_UNIT_NS: u64 = 16_384;

/// Bit in the first byte: the channel is shared.
const HALF_DUPLEX: u8 = 1 << 7;
/// Set in the first byte: the lateness follows at the end.
const OVERTAKES: u8 = 1 << 6;
/// Set in the first byte: the gap of a pair follows at the end, after the lateness.
const HAS_PAIR: u8 = 1 << 5;

/// A path between two stations, with counters of its own. At present there is only path 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathId(u8);

impl PathId {
    /// The largest number on the wire.
    pub const MAX: Self = PathId(HAS_PAIR - 1);

    /// A path's number; `None` above [`MAX`](Self::MAX).
    pub fn new(number: u8) -> Option<Self> {
        (number <= Self::MAX.0).then_some(PathId(number))
    }
}

/// How far apart the two frames of a pair arrived, which had left together: as long as the
/// bottleneck takes for the second one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairGap {
    /// The gap in nanoseconds, at most about four seconds; zero: the last ones differed by much.
    pub gap_ns: u32,
    /// Which gap of those reported this is, modulo 256: feedback repeats the newest.
    pub number: u8,
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
    /// The newest gap of a pair; `None`: there was none.
    pub pair: Option<PairGap>,
}

impl LinkFeedback {
    /// The longest delay that can be expressed; the true one may be longer.
    pub const DELAY_MAX: Duration = Duration::from_nanos(u16::MAX as u64 * DELAY_UNIT_NS);

    /// Bytes of feedback that reports this lateness, and the gap of a pair if it `has_pair`.
    pub fn len(lateness: Duration, has_pair: bool) -> usize {
        let lateness = if units(lateness) > 0 { LATENESS_LEN } else { 0 };
        LINK_FEEDBACK_LEN + lateness + if has_pair { PAIR_GAP_LEN } else { 0 }
    }

    /// Appends it to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let half_duplex = if self.half_duplex { HALF_DUPLEX } else { 0 };
        let lateness = units(self.lateness);
        let overtakes = if lateness > 0 { OVERTAKES } else { 0 };
        let has_pair = if self.pair.is_some() { HAS_PAIR } else { 0 };
        out.push(self.path.0 | half_duplex | overtakes | has_pair);
        out.extend_from_slice(&self.counter.to_be_bytes());
        out.extend_from_slice(&units(self.delay).to_be_bytes());
        out.extend_from_slice(&self.received_at_us.to_be_bytes());
        out.extend_from_slice(&self.frames.to_be_bytes());
        write_ratio(self.loss_ratio, out);
        if lateness > 0 {
            out.extend_from_slice(&lateness.to_be_bytes());
        }
        if let Some(PairGap { gap_ns, number }) = self.pair {
            out.extend_from_slice(&gap_ns.to_be_bytes());
            out.push(number);
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
            pair: if first & HAS_PAIR == 0 {
                None
            } else {
                Some(PairGap { gap_ns: read.u32()?, number: read.u8()? })
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
            received_at_us: u32, frames: u32, late in 0..4u16, pair: Option<(u32, u8)>,
        ) {
            let (delay, lateness) = (of_units(units), of_units(late));
            let path = PathId::new(path).unwrap();
            let loss_ratio = 1.0;
            let pair = pair.map(|(gap_ns, number)| PairGap { gap_ns, number });
            let feedback = LinkFeedback {
                path, half_duplex, counter, delay, received_at_us, frames, loss_ratio, lateness,
                pair,
            };
            let mut bytes = Vec::new();
            feedback.write(&mut bytes);
            prop_assert_eq!(bytes.len(), LinkFeedback::len(lateness, pair.is_some()));
            for len in 0..bytes.len() {
                prop_assert_eq!(LinkFeedback::parse(&bytes[..len]), None);
            }
            bytes.extend_from_slice(b"rest");
            prop_assert_eq!(LinkFeedback::parse(&bytes), Some((feedback, &b"rest"[..])));
        }
    }
}
