//! Intervals that a station announces, so that others need not assume how long to wait for it.

use core::time::Duration;

use super::Reader;
use crate::bounds::{FEEDBACK_INTERVAL_MAX, HELLO_INTERVAL_TOLD_MAX, HELLO_INTERVAL_TOLD_MIN};

/// Bytes of the intervals.
pub const INTERVALS_LEN: usize = 4;

/// Intervals of the sender of a HELLO, within the receiver's bounds. If one is not announced,
/// receivers assume their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intervals {
    /// How long feedback about frames waits at most; for a helper, the time between reports.
    pub feedback: Option<Duration>,
    /// Time between HELLOs when there is nothing else to send.
    pub hello: Option<Duration>,
}

impl Intervals {
    /// Appends them to `out`, in milliseconds, rounded up.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for interval in [self.feedback, self.hello] {
            let ms = interval.map_or(0, |it| it.as_nanos().div_ceil(1_000_000));
            out.extend_from_slice(&u16::try_from(ms).unwrap_or(u16::MAX).to_be_bytes());
        }
    }

    /// Parses them. Zero, as in padding, means not announced; values out of bounds are clamped.
    pub(super) fn read(read: &mut Reader<'_>) -> Self {
        let mut told = |least: Duration, most: Duration| {
            let ms = read.u16().filter(|&ms| ms > 0)?;
            Some(Duration::from_millis(ms.into()).clamp(least, most))
        };
        Intervals {
            feedback: told(Duration::from_millis(1), FEEDBACK_INTERVAL_MAX),
            hello: told(HELLO_INTERVAL_TOLD_MIN, HELLO_INTERVAL_TOLD_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    fn read(bytes: &[u8]) -> Intervals {
        Intervals::read(&mut Reader(bytes))
    }

    #[test]
    fn what_is_written_is_read_and_nothing_out_of_bounds() {
        let mut bytes = Vec::new();
        let told = Intervals { feedback: Some(Duration::from_micros(1_500)), hello: ms(5_000) };
        told.write(&mut bytes);
        assert_eq!(bytes, [0, 2, 0x13, 0x88]);
        assert_eq!(bytes.len(), INTERVALS_LEN);
        assert_eq!(read(&bytes), Intervals { feedback: ms(2), hello: ms(5_000) });
        assert_eq!(read(&[0, 1, 0, 1]), Intervals { feedback: ms(1), hello: ms(1_000) });
        assert_eq!(read(&[0xff; 4]), Intervals { feedback: ms(60_000), hello: ms(60_000) });
    }

    #[test]
    fn of_a_station_that_says_nothing_nothing_is_known() {
        for silent in [&[][..], &[0; 3], &[0; 4], &[0; 200]] {
            assert_eq!(read(silent), Intervals::default());
        }
        assert_eq!(read(&[7]), Intervals::default());
    }
}
