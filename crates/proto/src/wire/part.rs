//! A part of a chunk that is longer than a frame, because the path's MTU has shrunk since its
//! symbol was made.
//!
//! ```text
//! whole (2), length (2), at (2), bytes
//! ```
//! `whole` distinguishes successive chunks sent in parts, `length` is the length of the whole chunk
//! (kind and body), and `at` is the offset of these bytes in it. Bytes after its last byte are
//! padding.

use core::num::NonZeroU16;

use super::Reader;

/// Bytes of a part's body before its share of the whole.
pub const PART_LEN: usize = 6;

/// Number of frames for a chunk's body, if each has room for `room` bytes of a body.
pub(crate) fn parts_of(body_len: usize, room: usize) -> usize {
    if body_len <= room {
        return 1;
    }
    (1 + body_len).div_ceil(room.saturating_sub(PART_LEN).max(1))
}

/// Body of a [`Kind::Part`](super::Kind::Part).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Number of the whole chunk among those that its sender has split, modulo 2^16.
    pub whole: u16,
    /// Bytes of the whole chunk.
    pub len: NonZeroU16,
    /// Offset of this part in the whole.
    pub at: u16,
    /// The part.
    pub bytes: &'a [u8],
}

impl<'a> Part<'a> {
    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.whole.to_be_bytes());
        out.extend_from_slice(&self.len.get().to_be_bytes());
        out.extend_from_slice(&self.at.to_be_bytes());
        out.extend_from_slice(self.bytes);
    }

    /// Parses a body; `None` if it contains no byte of the whole.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut read = Reader(body);
        let (whole, len, at) = (read.u16()?, NonZeroU16::new(read.u16()?)?, read.u16()?);
        let left = usize::from(len.get().checked_sub(at)?);
        let bytes = &read.0[..left.min(read.0.len())];
        (!bytes.is_empty()).then_some(Part { whole, len, at, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn parts_survive_the_wire_and_padding_is_none_of_them(
            whole in any::<u16>(),
            at in 0..u16::MAX - 100,
            bytes in proptest::collection::vec(any::<u8>(), 1..100),
            follow in 0..100_u16,
            zeros in 0..50_usize,
        ) {
            let len = NonZeroU16::new((at + bytes.len() as u16).saturating_add(follow)).unwrap();
            let part = Part { whole, len, at, bytes: &bytes };
            let mut written = Vec::new();
            part.write(&mut written);
            for cut in 0..=PART_LEN {
                prop_assert_eq!(Part::parse(&written[..cut]), None);
            }
            prop_assert_eq!(Part::parse(&written), Some(part));
            if follow == 0 {
                written.resize(written.len() + zeros, 0);
                prop_assert_eq!(Part::parse(&written), Some(part));
            }
        }
    }

    #[test]
    fn a_part_of_nothing_or_behind_the_end_is_none() {
        for body in [[0, 1, 0, 0, 0, 0, 9], [0, 1, 0, 4, 0, 4, 9], [0, 1, 0, 4, 0, 5, 9]] {
            assert_eq!(Part::parse(&body), None);
        }
    }
}
