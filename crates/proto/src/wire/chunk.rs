//! Chunks: what a frame carries, one behind the other. Here they are written and read, whatever is
//! in them.
//!
//! ```text
//! 1 and kind (1), length (1 or 2), body      one that another one follows
//! 0 and kind (1), body to the frame's end    the last one
//! ```
//! A length below 128 takes one byte, a longer one two, with the highest bit set; a short one in
//! two is none. What follows the last body before the AEAD tag is padding, zeros that each body can
//! be told from; behind a body whose length is there nothing is.

use super::Reader;
use crate::bounds::CHUNKS_MAX;

/// Bytes of a chunk before its body, of the last one of a frame.
pub const LAST_CHUNK_LEN: usize = 1;

/// Set in the first byte: a length is there, and another chunk behind it.
const FOLLOWED: u8 = 1 << 7;
/// Set in the first byte of a length of two.
const LONG: u8 = 1 << 7;

/// What a chunk is. The first two are FRANC's packet types (Section II-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A symbol of a block, from encoder or helper.
    Enc,
    /// Feedback about blocks, from a decoder.
    Ack,
    /// Erasure ratios as measured by a helper.
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
    /// A probe of the path's MTU.
    Probe,
    /// Echoes of such probes.
    Echoes,
    /// Please repeat this, from where you are.
    Challenge,
    /// The answer.
    Answer,
    /// The sender's session ends here.
    Goodbye,
    /// A goodbye was heard.
    GoodbyeHeard,
    /// A frame of relays that XOR packets.
    Relayed,
    /// A part of a chunk that is longer than a frame.
    Part,
}

impl Kind {
    /// All of them, by their codes from 1 on: zeros are no chunk.
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

    /// Its code in a frame.
    pub fn code(self) -> u8 {
        self as u8 + 1
    }

    fn from_code(code: u8) -> Option<Self> {
        Kind::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }

    /// Whether it is a [`Word`](super::Word) about the path or the sender, whatever else is said.
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

    /// Begins the last chunk of a frame at the end of `frame`; the caller appends its body.
    pub fn begin_last(self, frame: &mut Vec<u8>) {
        frame.push(self.code());
    }

    /// Appends a chunk that another one follows.
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

/// Bytes that a chunk takes that another one follows.
pub fn chunk_len(body_len: usize) -> usize {
    let length_len = if body_len < usize::from(LONG) { 1 } else { 2 };
    1 + length_len + body_len
}

/// A chunk of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// What it is.
    pub kind: Kind,
    /// What it says.
    pub body: &'a [u8],
    /// Padding may be behind it.
    pub is_last: bool,
}

impl<'a> Chunk<'a> {
    /// Reads the body by what gives it and what is behind it: zeros in the last chunk, nothing in
    /// others, or it is none.
    pub fn read<T>(&self, parse: impl FnOnce(&'a [u8]) -> Option<(T, &'a [u8])>) -> Option<T> {
        let (read, rest) = parse(self.body)?;
        let is_padding = self.is_last && rest.iter().all(|&byte| byte == 0);
        (rest.is_empty() || is_padding).then_some(read)
    }
}

/// The chunks of an opened frame, in their order. `None` is the last of what cannot be read: a
/// chunk of no known kind, that says that it is longer than the frame, or that is one of more than
/// [`CHUNKS_MAX`].
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    /// `None`: the last one was given.
    rest: Option<&'a [u8]>,
    count: usize,
}

impl<'a> Chunks<'a> {
    /// Of a frame's sealed part, opened.
    pub fn new(body: &'a [u8]) -> Self {
        Chunks { rest: Some(body), count: 0 }
    }

    /// The first one of this kind, if all before it can be read.
    pub fn find(body: &'a [u8], kind: Kind) -> Option<Chunk<'a>> {
        let mut chunks = Chunks::new(body).map_while(|chunk| chunk);
        chunks.find(|chunk| chunk.kind == kind)
    }

    /// The only one, if there is no other.
    pub fn only(body: &'a [u8]) -> Option<Chunk<'a>> {
        let mut chunks = Chunks::new(body);
        chunks.next().flatten().filter(|_| chunks.next().is_none())
    }

    fn read(&mut self) -> Option<Chunk<'a>> {
        // Nothing more comes, unless it is put back.
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
                // One byte would do: there is one way to say it.
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
