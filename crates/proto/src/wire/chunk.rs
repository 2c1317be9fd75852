//! Chunks: the elements of a frame. This module reads and writes them independent of their
//! contents.
//!
//! ```text
//! 1 and kind (1), length (1 or 2), body      a chunk that is followed by another
//! 0 and kind (1), body to the frame's end    the last chunk
//! ```
//! A length below 128 takes one byte, a longer one two, with the highest bit set; encoding a short
//! length in two bytes is invalid. The last body may be followed by padding up to the AEAD tag;
//! each body is encoded so that it can be told apart from these zeros. A body with a length has no
//! padding.

use super::Reader;
use crate::bounds::CHUNKS_MAX;

/// Bytes of a frame's last chunk before its body.
pub const LAST_CHUNK_LEN: usize = 1;

/// Bit in the first byte: a length follows, and another chunk after the body.
const FOLLOWED: u8 = 1 << 7;
/// Bit in the first byte of a two-byte length.
const LONG: u8 = 1 << 7;

/// What a chunk is. The first two are FRANC's packet types (Section II-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A symbol of a block, from encoder or helper.
    Enc,
    /// Feedback about blocks, from a decoder.
    Ack,
    /// Erasure ratios measured by a helper.
    Report,
    /// Handshake.
    Hello,
    /// Packets of the unreliable forwarder.
    Plain,
    /// A symbol of a sliding window.
    Window,
    /// Feedback about the symbols of a window.
    WindowAck,
    /// Feedback about the frames of a link.
    Link,
    /// A path MTU probe.
    Probe,
    /// Echoes of path MTU probes.
    Echoes,
    /// An address challenge.
    Challenge,
    /// The answer to a challenge.
    Answer,
    /// The sender's session ends here.
    Goodbye,
    /// Confirms a goodbye.
    GoodbyeHeard,
    /// A frame of relays that XOR packets.
    Relayed,
    /// A part of a chunk that does not fit one frame.
    Part,
}

impl Kind {
    /// All kinds in the order of their codes, from 1 on: a zero is not a chunk.
    const ALL: [Self; 16] = [
        Kind::Enc,
        Kind::Ack,
        Kind::Report,
        Kind::Hello,
        Kind::Plain,
        Kind::Window,
        Kind::WindowAck,
        Kind::Link,
        Kind::Probe,
        Kind::Echoes,
        Kind::Challenge,
        Kind::Answer,
        Kind::Goodbye,
        Kind::GoodbyeHeard,
        Kind::Relayed,
        Kind::Part,
    ];

    /// Its code on the wire.
    pub fn code(self) -> u8 {
        self as u8 + 1
    }

    fn from_code(code: u8) -> Option<Self> {
        Kind::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Whether it is a [`Word`](super::Word) about the path or the sender, independent of any flow.
    pub(crate) fn is_word(self) -> bool {
        match self {
            Kind::Probe
            | Kind::Echoes
            | Kind::Challenge
            | Kind::Answer
            | Kind::Goodbye
            | Kind::GoodbyeHeard => true,
            Kind::Enc
            | Kind::Ack
            | Kind::Report
            | Kind::Hello
            | Kind::Plain
            | Kind::Window
            | Kind::WindowAck
            | Kind::Link
            | Kind::Relayed
            | Kind::Part => false,
        }
    }

    /// Begins the last chunk of a frame at the end of `frame`; the caller appends the body.
    pub fn begin_last(self, frame: &mut Vec<u8>) {
        frame.push(self.code());
    }

    /// Appends a chunk that is followed by another.
    pub fn write(self, body: &[u8], frame: &mut Vec<u8>) {
        frame.push(self.code() | FOLLOWED);
        debug_assert!(body.len() < usize::from(LONG) << 8);
        let [high, low] = (body.len() as u16).to_be_bytes();
        if body.len() < usize::from(LONG) {
            frame.push(low);
        } else {
            frame.extend_from_slice(&[high | LONG, low]);
        }
        frame.extend_from_slice(body);
    }
}

/// Bytes of a chunk that is followed by another.
pub fn chunk_len(body_len: usize) -> usize {
    let length_len = if body_len < usize::from(LONG) { 1 } else { 2 };
    1 + length_len + body_len
}

/// A chunk of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its content.
    pub body: &'a [u8],
    /// It is the frame's last chunk, so padding may follow the body.
    pub is_last: bool,
}

impl<'a> Chunk<'a> {
    /// Parses the body with `parse`, which returns what follows the content: this has to be zeros
    /// in the last chunk, and empty in others.
    pub fn read<T>(&self, parse: impl FnOnce(&'a [u8]) -> Option<(T, &'a [u8])>) -> Option<T> {
        let (read, rest) = parse(self.body)?;
        let is_padding = self.is_last && rest.iter().all(|&byte| byte == 0);
        (rest.is_empty() || is_padding).then_some(read)
    }
}

/// Iterates over the chunks of an opened frame, in order. A `None` item is the last: it stands for
/// a chunk that cannot be read because its kind is unknown, it claims to be longer than the frame,
/// or it exceeds [`CHUNKS_MAX`].
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    /// `None`: the last chunk was returned.
    rest: Option<&'a [u8]>,
    count: usize,
}

impl<'a> Chunks<'a> {
    /// The chunks of a frame's sealed part, opened.
    pub fn new(body: &'a [u8]) -> Self {
        Chunks { rest: Some(body), count: 0 }
    }

    /// The first chunk of this kind, if all before it can be read.
    pub fn find(body: &'a [u8], kind: Kind) -> Option<Chunk<'a>> {
        let mut chunks = Chunks::new(body).map_while(|chunk| chunk);
        chunks.find(|chunk| chunk.kind == kind)
    }

    /// The frame's chunk, if it has only one.
    pub fn only(body: &'a [u8]) -> Option<Chunk<'a>> {
        let mut chunks = Chunks::new(body);
        chunks.next().flatten().filter(|_| chunks.next().is_none())
    }

    fn read(&mut self) -> Option<Chunk<'a>> {
        // Ends the iteration, unless it is put back.
        let mut read = Reader(self.rest.take()?);
        if self.count == CHUNKS_MAX {
            return None;
        }
        self.count += 1;
        let first = read.u8()?;
        let kind = Kind::from_code(first & !FOLLOWED)?;
        if first & FOLLOWED == 0 {
            return Some(Chunk { kind, body: read.0, is_last: true });
        }
        let len = match read.u8()? {
            high if high & LONG != 0 => {
                let len = u16::from_be_bytes([high & !LONG, read.u8()?]);
                // Lengths that fit one byte have to be encoded in one.
                Some(len).filter(|&len| len >= LONG.into())?
            }
            low => low.into(),
        };
        let body = read.take(len.into())?;
        self.rest = Some(read.0);
        Some(Chunk { kind, body, is_last: false })
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Option<Chunk<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rest.is_some().then(|| self.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_are_those_of_their_order() {
        for (code, kind) in (1..).zip(Kind::ALL) {
            assert_eq!((kind.code(), Kind::from_code(code)), (code, Some(kind)));
        }
        assert_eq!((Kind::from_code(0), Kind::from_code(17)), (None, None));
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn lists_survive_the_wire_and_shorter_ones_do_not_pass_for_them(
            kinds in proptest::collection::vec(0..Kind::ALL.len(), 1..=CHUNKS_MAX),
            len in 0_usize..300,
        ) {
            let bodies: Vec<Vec<u8>> = kinds.iter().map(|&at| vec![at as u8; len]).collect();
            let (mut bytes, last) = (Vec::new(), kinds.len() - 1);
            for (&at, body) in kinds[..last].iter().zip(&bodies) {
                let before = bytes.len();
                Kind::ALL[at].write(body, &mut bytes);
                prop_assert_eq!(bytes.len() - before, chunk_len(len));
            }
            Kind::ALL[kinds[last]].begin_last(&mut bytes);
            let begins_at = bytes.len();
            bytes.extend_from_slice(&bodies[last]);
            let wanted: Vec<_> = kinds.iter().zip(&bodies).enumerate()
                .map(|(place, (&at, body))| {
                    Some(Chunk { kind: Kind::ALL[at], body, is_last: place == last })
                })
                .collect();
            prop_assert_eq!(Chunks::new(&bytes).collect::<Vec<_>>(), wanted);
            for cut in 0..begins_at {
                prop_assert_eq!(Chunks::new(&bytes[..cut]).last(), Some(None), "{} bytes", cut);
            }
        }

        #[test]
        fn what_is_no_list_ends_and_nothing_is_read_twice(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut len = 0;
            for (at, chunk) in Chunks::new(&bytes).enumerate() {
                prop_assert!(at <= CHUNKS_MAX);
                len += chunk.map_or(0, |chunk| LAST_CHUNK_LEN + chunk.body.len());
            }
            prop_assert!(len <= bytes.len());
        }
    }

    #[test]
    fn a_short_length_in_two_bytes_is_none() {
        for (len, is_taken) in [(0_u16, false), (5, false), (127, false), (128, true)] {
            let [high, low] = (len | 0x8000).to_be_bytes();
            let mut bytes = vec![FOLLOWED | Kind::Window.code(), high, low];
            bytes.resize(bytes.len() + usize::from(len), 7);
            Kind::Goodbye.begin_last(&mut bytes);
            assert_eq!(Chunks::new(&bytes).all(|chunk| chunk.is_some()), is_taken, "{len}");
        }
    }

    #[test]
    fn behind_a_body_are_zeros_of_the_last_chunk_alone() {
        let one = |body| Reader(body).u8().map(|first| (first, &body[1..]));
        for (body, is_last, is_read) in [
            (&[1][..], false, true),
            (&[1], true, true),
            (&[1, 0, 0], true, true),
            (&[1, 0, 0], false, false),
            (&[1, 0, 2], true, false),
            (&[], true, false),
        ] {
            let chunk = Chunk { kind: Kind::Report, body, is_last };
            assert_eq!(chunk.read(one), is_read.then_some(1), "{body:?} {is_last}");
        }
    }

    #[test]
    fn one_more_than_there_may_be_is_refused() {
        let mut bytes = Vec::new();
        (0..CHUNKS_MAX).for_each(|_| Kind::Goodbye.write(&[], &mut bytes));
        Kind::Goodbye.begin_last(&mut bytes);
        let read: Vec<_> = Chunks::new(&bytes).collect();
        assert_eq!(read.len(), CHUNKS_MAX + 1);
        assert_eq!((read[CHUNKS_MAX], read[0].is_some()), (None, true));
    }
}
