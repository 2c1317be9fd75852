//! A part of a chunk that is longer than a frame: where the path has become shorter since a symbol
//! was made.
//!
//! ```text
//! whole (2), length (2), at (2), bytes
//! ```
//! `whole` tells one cut chunk from the next, `length` is that of all of it, kind and body, and
//! `at` is where in it these bytes begin. What is behind its last byte is padding.

use core::num::NonZeroU16;

use super::Reader;

/// Bytes of a part's body before the bytes of the whole.
pub const PART_LEN: usize = 6;

/// How many frames a chunk's body goes in, where one has room for so many bytes of a body.
pub(crate) fn parts_of(body_len: usize, room: usize) -> usize {
    if body_len <= room {
        return 1;
    }
    (1 + body_len).div_ceil(room.saturating_sub(PART_LEN).max(1))
}

/// Body of a [`Kind::Part`](super::Kind::Part).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Number of the whole among what its sender has cut, modulo 2^16.
    pub whole: u16,
    /// Bytes of the whole.
    pub len: NonZeroU16,
    /// Where in the whole this part begins.
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

    /// Reads a body; `None` where no byte of the whole is in it.
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
