//! The header of a coded packet, and the feedback for adaptive redundancy.
//!
//! After Sundararajan et al. (2011, Fig. 6): window base, count, and for each segment its range of
//! sequence numbers and its coefficient, so that the receiver can acknowledge a segment before
//! decoding it. Here a seed stands for the coefficients, and ranges are encoded as runs of equal
//! lengths. This takes 25 bytes for a window of segments of one size; the original spends five
//! bytes per segment.
//!
//! ```text
//!  0  kind and version (1)   runs (1)   stream (2)
//!  4  window base: id of the first segment, low bits (4)
//!  8  serial number, also the seed of the coefficients (4)
//! 12  TCP's sequence number where the first segment begins (4)
//! 16  stamp: for the acknowledgment to echo, TCP's timestamp (4)
//! 20  runs of: segments (1), bytes of each (2)
//!     payload
//! ```

use super::RUNS_MAX;
use crate::wire::Reader;

/// Bytes before the runs.
pub const HEAD_LEN: usize = 20;
/// Bytes of a run.
pub const RUN_LEN: usize = 3;
/// Bytes of a [`Feedback`].
pub const FEEDBACK_LEN: usize = 12;

/// First byte of a coded packet of this version.
const CODED: u8 = 0xC1;
/// First byte of feedback of this version.
const FEEDBACK: u8 = 0xF1;

/// A run of consecutive segments of the same length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Number of segments, at least 1.
    pub segments: u8,
    /// Bytes of sequence space of each segment, at least 1.
    pub len: u16,
}

/// What precedes the combination in a coded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Identifies the sender among those the connection has had: changes when one restarts.
    pub stream: u16,
    /// Low bits of the id of the first segment in the coding window.
    pub first: u32,
    /// Number of the coded packet, and seed of its coefficients.
    pub serial: u32,
    /// TCP sequence number at which the first segment begins.
    pub sequence: u32,
    /// For the acknowledgment to echo.
    pub stamp: u32,
    runs: [Run; RUNS_MAX],
    runs_count: usize,
}

impl Header {
    /// A header that covers no segment yet.
    pub(super) fn new(stream: u16, first: u32, serial: u32, sequence: u32, stamp: u32) -> Self {
        let runs = [Run::default(); RUNS_MAX];
        Header { stream, first, serial, sequence, stamp, runs, runs_count: 0 }
    }

    /// Covers one more segment; returns false if there is no room for it.
    pub(super) fn push(&mut self, len: u16) -> bool {
        if let Some(run) = self.runs[..self.runs_count].last_mut()
            && run.len == len
            && run.segments < u8::MAX
        {
            run.segments += 1;
            return true;
        }
        let Some(run) = self.runs.get_mut(self.runs_count) else { return false };
        *run = Run { segments: 1, len };
        self.runs_count += 1;
        true
    }

    /// The runs, from the first segment on.
    pub fn runs(&self) -> &[Run] {
        &self.runs[..self.runs_count]
    }

    /// Number of segments covered.
    pub fn count(&self) -> usize {
        self.runs().iter().map(|run| usize::from(run.segments)).sum()
    }

    /// Appends the header.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[CODED, self.runs_count as u8]);
        out.extend_from_slice(&self.stream.to_be_bytes());
        for word in [self.first, self.serial, self.sequence, self.stamp] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        for run in self.runs() {
            out.push(run.segments);
            out.extend_from_slice(&run.len.to_be_bytes());
        }
    }

    /// Parses a coded packet into header and payload; `None` if it is not one.
    pub fn read(packet: &[u8]) -> Option<(Header, &[u8])> {
        let mut read = Reader(packet);
        let (kind, runs_count) = (read.u8()?, usize::from(read.u8()?));
        if kind != CODED || !(1..=RUNS_MAX).contains(&runs_count) {
            return None;
        }
        let stream = read.u16()?;
        let mut word = || read.array().map(u32::from_be_bytes);
        let mut header = Header::new(stream, word()?, word()?, word()?, word()?);
        for _ in 0..runs_count {
            let run = Run { segments: read.u8()?, len: read.u16()? };
            if run.segments == 0 || run.len == 0 {
                return None;
            }
            header.runs[header.runs_count] = run;
            header.runs_count += 1;
        }
        (!read.0.is_empty()).then_some((header, read.0))
    }
}

/// What a receiver reports to an adaptive sender in addition to TCP's acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// The stream that it is about.
    pub stream: u16,
    /// Segments seen beyond the oldest unseen one, at most 255.
    pub seen_beyond: u8,
    /// Highest serial number received.
    pub serial: u32,
    /// Coded packets received, modulo 2^32.
    pub received: u32,
}

impl Feedback {
    /// Its bytes.
    pub fn to_bytes(self) -> [u8; FEEDBACK_LEN] {
        let mut bytes = [0; FEEDBACK_LEN];
        bytes[..2].copy_from_slice(&[FEEDBACK, self.seen_beyond]);
        bytes[2..4].copy_from_slice(&self.stream.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.serial.to_be_bytes());
        bytes[8..].copy_from_slice(&self.received.to_be_bytes());
        bytes
    }

    /// Parses feedback, and returns what follows it; `None` if it is not feedback.
    pub fn read(bytes: &[u8]) -> Option<(Feedback, &[u8])> {
        let mut read = Reader(bytes);
        if read.u8()? != FEEDBACK {
            return None;
        }
        let (seen_beyond, stream) = (read.u8()?, read.u16()?);
        let mut word = || read.array().map(u32::from_be_bytes);
        let feedback = Feedback { stream, seen_beyond, serial: word()?, received: word()? };
        Some((feedback, read.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_of_equal_segments_costs_a_run() {
        let mut header = Header::new(7, 100, 9, 5000, 77);
        assert!((0..50).all(|_| header.push(1448)));
        assert!(header.push(100));
        let mut packet = Vec::new();
        header.write(&mut packet);
        assert_eq!(packet.len(), HEAD_LEN + 2 * RUN_LEN);
        packet.extend_from_slice(b"payload");
        assert_eq!(Header::read(&packet), Some((header, &b"payload"[..])));
        assert_eq!(header.count(), 51);
    }

    #[test]
    fn a_run_ends_at_255_segments_and_the_header_at_its_last_run() {
        let mut header = Header::new(0, 0, 0, 0, 0);
        assert!((0..300).all(|_| header.push(1)));
        assert_eq!(header.runs().iter().map(|run| run.segments).collect::<Vec<_>>(), [255, 45]);
        let fitted = (0..100_u16).take_while(|&len| header.push(2 + len)).count();
        assert_eq!(fitted, RUNS_MAX - 2);
    }

    #[test]
    fn feedback_comes_back() {
        let feedback = Feedback { stream: 3, seen_beyond: 2, serial: u32::MAX, received: 1 };
        let bytes = [&feedback.to_bytes()[..], b"rest"].concat();
        assert_eq!(Feedback::read(&bytes), Some((feedback, &b"rest"[..])));
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn whatever_is_read_can_be_written(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let bytes = [&[CODED][..], &bytes].concat();
            if let Some((header, payload)) = Header::read(&bytes) {
                let mut written = Vec::new();
                header.write(&mut written);
                written.extend_from_slice(payload);
                prop_assert_eq!(written, bytes);
            }
        }
    }
}
