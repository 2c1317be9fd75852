//! The wire format, version 9: the layout of frames.
//!
//! ```text
//!  0        1        3            7                                             len-16    len
//!  +--------+--------+------------+---------------------------------------------+---------+
//!  | v | f  |  tag   |  counter   |  sealed chunks                              | AEAD tag|
//!  +--------+--------+------------+---------------------------------------------+---------+
//!   header, authenticated, in clear
//! ```
//! `v` is the version (4 bits), `f` the form of the frame. `tag` is the first two bytes of the
//! sender's session id, a hint for the key. `counter` is the sender's frame counter: it is the
//! nonce, protects against replay, and its gaps show the link's losses. All numbers are big-endian.
//!
//! A frame carries chunks, each of a [`Kind`]: see `wire/chunk.rs`. A HELLO has more fields in
//! clear before them (`wire/hello.rs`). A key exchange message has a layout of its own
//! (`wire/key_exchange.rs`).
//!
//! Station numbers have two bytes. An ENC is `flow (2), block (2), form and index (2)`; then,
//! depending on the form, the coding vector's seed (4), or the encoder's run (1) and the vector
//! itself; then the symbol. A source symbol contains packets, each preceded by its length (2). The
//! overhead is 32 bytes beyond the Ethernet header, and 33 in window mode. docs/wire.md has tables
//! of everything.

mod chunk;
pub mod cookie;
#[cfg(test)]
mod document;
mod hello;
pub mod intervals;
mod key_exchange;
mod lanes;
mod link_feedback;
mod part;
mod probe;
mod relayed;
mod window;

use core::num::NonZeroU16;

use corridor_codec::Field;

pub use chunk::{Chunk, Chunks, Kind, LAST_CHUNK_LEN, chunk_len};
pub(crate) use hello::hello_clear;
pub use hello::{HELLO_CLEAR_LEN, Hello, HelloTo, Instead};
pub(crate) use hello::{HELLO_LEN, HELLO_TO_LEN};
pub use key_exchange::{
    HANDOUT_LEN, HANDOUT_NOISE_LEN, HANDOUT_SECRETS_LEN, INITIATION_LEN, INITIATION_NOISE_LEN,
    KEY_EXCHANGE_HEAD_LEN, KEY_EXCHANGE_MAC_LEN, KeyExchange, RESPONSE_LEN, RESPONSE_NOISE_LEN,
    Step, TIMESTAMP_LEN,
};
pub use lanes::Lanes;
pub use link_feedback::{
    LATENESS_LEN, LINK_FEEDBACK_LEN, LinkFeedback, PAIR_GAP_LEN, PairGap, PathId,
};
pub(crate) use part::parts_of;
pub use part::{PART_LEN, Part};
pub use probe::{ChallengeToken, Echo, PATH_CHALLENGE_LEN, Word};
pub use relayed::{RELAYED_LEN, Relayed, Trailer};
pub use window::{
    CodedSeed, FlowId, WINDOW_BITMAP_LEN_MAX, WINDOW_CREDIT_LEN, WINDOW_FEEDBACK_LEN,
    WINDOW_SYMBOL_LEN, WindowFeedback, WindowForm, WindowSymbol,
};

use crate::bounds::{ACK_BLOCKS_MAX, FRAME_LEN_MAX, PEERS_MAX};
use crate::config::{CodingParams, Mode, StationId};

/// Version of the wire format.
pub const VERSION: u8 = 9;
/// Bytes of the header in clear.
pub const HEADER_LEN: usize = 7;
/// Bytes of the AEAD tag at the end of every frame.
pub const TAG_LEN: usize = 16;
/// Overhead of a frame with one chunk, in bytes: everything but that chunk's body.
pub const OVERHEAD_LEN: usize = HEADER_LEN + LAST_CHUNK_LEN + TAG_LEN;
/// Bytes of an ENC body before the coding vector or symbol.
pub const ENC_LEN: usize = 6;
/// Bytes of an end's tag, which only the two ends of a flow can make and check.
pub const END_TAG_LEN: usize = 8;
/// Bytes of the number and tag that follow a packet between ends across relays.
pub const END_TRAILER_LEN: usize = 7 + END_TAG_LEN;
/// Bytes of the length in front of each packet in a symbol.
pub const PACKET_PREFIX_LEN: usize = 2;
/// Bytes in front of an explicit coding vector for the low bits of the encoder's run; its highest
/// bits are in the index field.
pub const RUN_LEN: usize = 1;
/// The bits of an encoder's instance that distinguish its runs.
pub const RUN_MASK: u16 = (1 << 11) - 1;
/// Bytes of the seed of a coding vector.
pub const SEED_LEN: usize = 4;

/// Longest symbol in bytes that fits a frame of `frame_len_max` bytes, coded. If a helper may
/// recode it, it has to fit together with its full coding vector; an encoder sends only the seed of
/// one.
pub fn symbol_size_max(frame_len_max: usize, coding: &CodingParams, recoded: bool) -> usize {
    if coding.mode == Mode::Window {
        return frame_len_max.saturating_sub(OVERHEAD_LEN + WINDOW_SYMBOL_LEN);
    }
    let vector = coding.field.vector_len_bytes(usize::from(coding.block_size));
    let vector = if recoded { (RUN_LEN + vector).max(SEED_LEN) } else { SEED_LEN };
    frame_len_max.saturating_sub(OVERHEAD_LEN + ENC_LEN + vector)
}

/// Longest chunk in bytes (kind and body) with symbols of this size, whether a helper may recode
/// them or not: the inverse of [`symbol_size_max`].
pub(crate) fn chunk_len_max(
    mode: Mode,
    (field, block_size): (Field, u16),
    symbol_size: u16,
) -> usize {
    let beside = match mode {
        Mode::Window => WINDOW_SYMBOL_LEN,
        Mode::Block => {
            ENC_LEN + (RUN_LEN + field.vector_len_bytes(block_size.into())).max(SEED_LEN)
        }
    };
    (1 + beside + usize::from(symbol_size)).min(FRAME_LEN_MAX)
}

/// Forms of a frame, in the low bits of its first byte: chunks after the header; HELLO; a key
/// exchange message, which has no header. Other values are reserved for headers with more fields,
/// such as which of several paths the counter belongs to, or which of the receiver's neighbours
/// sends.
const CHUNKS: u8 = 0;
const HELLO: u8 = 2;
const KEY_EXCHANGE: u8 = 3;
const FORM_MASK: u8 = 0xf;

/// The part of a frame in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The frame is a HELLO. It has more fields in clear, so that a receiver that does not know the
    /// session can derive its key: see [`Hello`].
    pub is_hello: bool,
    /// First two bytes of the sender's session id.
    pub session_tag: u16,
    /// Number of the frame within the session, from 0.
    pub counter: u32,
}

/// The version that a frame claims, 0 to 15; `None` if it is too short for header and tag.
pub fn version(frame: &[u8]) -> Option<u8> {
    frame.first().filter(|_| frame.len() >= HEADER_LEN + TAG_LEN).map(|first| first >> 4)
}

impl Header {
    /// Appends the header's [`HEADER_LEN`] bytes to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(VERSION << 4 | if self.is_hello { HELLO } else { CHUNKS });
        out.extend_from_slice(&self.session_tag.to_be_bytes());
        out.extend_from_slice(&self.counter.to_be_bytes());
    }

    /// Parses a header; `None` for another version or form, or if the frame is too short for header
    /// and tag.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        if frame.len() < HEADER_LEN + TAG_LEN {
            return None;
        }
        let mut read = Reader(frame);
        let first = read.u8()?;
        if first >> 4 != VERSION {
            return None;
        }
        let is_hello = match first & FORM_MASK {
            CHUNKS => false,
            HELLO => true,
            _ => return None,
        };
        Some(Header { is_hello, session_tag: read.u16()?, counter: read.u32()? })
    }

    /// Bytes in clear: the header, and the fields that a HELLO has after it.
    pub fn clear_len(&self) -> usize {
        HEADER_LEN + if self.is_hello { HELLO_CLEAR_LEN } else { 0 }
    }
}

/// How an ENC specifies what its symbol combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    /// The source symbol with this index.
    Source {
        /// Position in the block.
        index: u16,
    },
    /// The same, in a flow whose source symbols begin with a tag of the ends.
    Tagged {
        /// Position in the block.
        index: u16,
    },
    /// A combination of the first `count` symbols with coefficients expanded from a seed.
    Seeded {
        /// Number of symbols combined: as many as the encoder had added.
        count: NonZeroU16,
        /// See [`Field::expand_seed`].
        seed: u32,
    },
    /// A combination of the first `count` symbols, with its coding vector: recoded by a helper.
    Explicit {
        /// The encoder's run, as the [low bits](RUN_MASK) of [`Hello::instance`]. A helper that has
        /// not noticed that an encoder restarted recodes blocks of the previous run, whose numbers
        /// may occur again.
        run: u16,
        /// Number of symbols combined.
        count: NonZeroU16,
        /// The coding vector, as [`Field`] packs it.
        vector: &'a [u8],
    },
}

const FORM_SHIFT: u32 = 14;
const INDEX_MASK: u16 = (1 << FORM_SHIFT) - 1;
/// With an explicit vector: bits of the index field for the number of symbols combined. The bits
/// above are the highest bits of the run.
const COUNT_BITS: u32 = 11;
const COUNT_MASK: u16 = (1 << COUNT_BITS) - 1;

/// Body of a [`Kind::Enc`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enc<'a> {
    /// The flow's encoder, which in frames of a helper is not the sender.
    pub flow: StationId,
    /// Number of the block, modulo 2^16.
    pub block: u16,
    /// What the symbol combines.
    pub form: Form<'a>,
    /// The symbol.
    pub symbol: &'a [u8],
}

impl<'a> Enc<'a> {
    /// Appends everything but the symbol, which the caller appends (it is often computed in place).
    pub fn write_head(flow: StationId, block: u16, form: Form<'_>, out: &mut Vec<u8>) {
        write_station(flow, out);
        out.extend_from_slice(&block.to_be_bytes());
        let (code, index) = match form {
            Form::Source { index } => (0, index),
            Form::Tagged { index } => (3, index),
            Form::Seeded { count, .. } => (1, count.get()),
            Form::Explicit { run, count, .. } => {
                (2, (run & RUN_MASK) >> 8 << COUNT_BITS | count.get() & COUNT_MASK)
            }
        };
        out.extend_from_slice(&(code << FORM_SHIFT | index & INDEX_MASK).to_be_bytes());
        match form {
            Form::Source { .. } | Form::Tagged { .. } => {}
            Form::Seeded { seed, .. } => out.extend_from_slice(&seed.to_be_bytes()),
            Form::Explicit { run, vector, .. } => {
                out.push(run as u8);
                out.extend_from_slice(vector);
            }
        }
    }

    /// Parses a body. `field` gives the field size, which determines the length of an explicit
    /// vector.
    pub fn parse(body: &'a [u8], field: impl FnOnce(StationId) -> Option<Field>) -> Option<Self> {
        let mut read = Reader(body);
        let flow = read.station()?;
        let block = read.u16()?;
        let word = read.u16()?;
        let index = word & INDEX_MASK;
        let form = match word >> FORM_SHIFT {
            0 => Form::Source { index },
            1 => Form::Seeded { count: NonZeroU16::new(index)?, seed: read.u32()? },
            2 => {
                let count = NonZeroU16::new(index & COUNT_MASK)?;
                let len = field(flow)?.vector_len_bytes(count.get().into());
                let run = index >> COUNT_BITS << 8 | u16::from(read.u8()?);
                Form::Explicit { run, count, vector: read.take(len)? }
            }
            _ => Form::Tagged { index },
        };
        (!read.0.is_empty()).then_some(Enc { flow, block, form, symbol: read.0 })
    }
}

/// A decoder's feedback about one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockAck {
    /// Number of the block.
    pub block: u16,
    /// The decoder has delivered what it had, and needs no more of this block.
    pub given_up: bool,
    /// Innovative symbols received.
    pub rank: u16,
    /// Number of source symbols that the decoder knows to exist.
    pub known: u16,
    /// One bit per known symbol, lowest bit first: whether it is decoded.
    pub decoded: Vec<u8>,
}

/// Body of a [`Kind::Ack`]: rank and bitmap of decoded symbols (Section II-C) for each block, and
/// the erasure ratios that the decoder measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// The encoder this is for.
    pub flow: StationId,
    /// First unfinished block; all before it were delivered or given up.
    pub base: u16,
    /// Newest frame counter heard from the encoder.
    pub encoder_counter: u32,
    /// Newest frame counter heard from the helper; `u32::MAX` if none.
    pub helper_counter: u32,
    /// Erasure ratio helper to decoder.
    pub e2: f64,
    /// Erasure ratio encoder to decoder.
    pub e3: f64,
    /// Blocks with something to report, at most [`ACK_BLOCKS_MAX`].
    pub blocks: Vec<BlockAck>,
}

impl Ack {
    /// Upper bound of the bytes of an acknowledgment with this many blocks of this size.
    pub fn len_bytes_max((blocks, block_size): (usize, u16)) -> usize {
        17 + blocks * (6 + usize::from(block_size).div_ceil(8))
    }

    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_station(self.flow, out);
        out.extend_from_slice(&self.base.to_be_bytes());
        out.extend_from_slice(&self.encoder_counter.to_be_bytes());
        out.extend_from_slice(&self.helper_counter.to_be_bytes());
        write_ratio(self.e2, out);
        write_ratio(self.e3, out);
        debug_assert!(self.blocks.len() <= ACK_BLOCKS_MAX);
        out.push(self.blocks.len() as u8);
        for block in &self.blocks {
            out.extend_from_slice(&block.block.to_be_bytes());
            out.extend_from_slice(&(block.rank | u16::from(block.given_up) << 15).to_be_bytes());
            out.extend_from_slice(&block.known.to_be_bytes());
            // A full rank needs no bitmap: everything is decoded.
            if block.rank != block.known {
                out.extend_from_slice(&block.decoded);
            }
        }
    }

    /// Parses a body; returns it and what follows it.
    pub fn parse(body: &[u8]) -> Option<(Self, &[u8])> {
        let mut read = Reader(body);
        let mut ack = Ack {
            flow: read.station()?,
            base: read.u16()?,
            encoder_counter: read.u32()?,
            helper_counter: read.u32()?,
            e2: read.ratio()?,
            e3: read.ratio()?,
            blocks: Vec::new(),
        };
        let count = usize::from(read.u8()?);
        if count > ACK_BLOCKS_MAX {
            return None;
        }
        for _ in 0..count {
            let block = read.u16()?;
            let word = read.u16()?;
            let (rank, known) = (word & 0x7fff, read.u16()?);
            if rank > known || usize::from(known) > corridor_codec::MAX_BLOCK_SIZE {
                return None;
            }
            let len = usize::from(known).div_ceil(8);
            let decoded = if rank == known { full_bitmap(known) } else { read.take(len)?.to_vec() };
            ack.blocks.push(BlockAck { block, given_up: word >> 15 == 1, rank, known, decoded });
        }
        Some((ack, read.0))
    }
}

/// A bitmap of `count` ones.
fn full_bitmap(count: u16) -> Vec<u8> {
    let mut bits = vec![0xff; usize::from(count).div_ceil(8)];
    if let (Some(last), rest @ 1..) = (bits.last_mut(), count % 8) {
        *last = (1 << rest) - 1;
    }
    bits
}

/// Body of a [`Kind::Report`]: what a helper hears, and whom its own frames were for.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// One entry per encoder.
    pub encoders: Vec<EncoderReport>,
}

/// A helper's report about, and to, an encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderReport {
    /// The encoder.
    pub flow: StationId,
    /// Erasure ratio from the encoder to the helper; 1: the helper hears nothing sent to others.
    pub e1: f64,
    /// Frames of the helper's session before this one that were for the encoder's station, or for
    /// all. Frames to others are not losses of that link if a switch withholds them.
    pub frames: u32,
}

impl Report {
    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(self.encoders.len() <= PEERS_MAX);
        out.push(self.encoders.len() as u8);
        for encoder in &self.encoders {
            write_station(encoder.flow, out);
            write_ratio(encoder.e1, out);
            out.extend_from_slice(&encoder.frames.to_be_bytes());
        }
    }

    /// Parses a body; returns it and what follows it.
    pub fn parse(body: &[u8]) -> Option<(Self, &[u8])> {
        let mut read = Reader(body);
        let count = usize::from(read.u8()?);
        if count > PEERS_MAX {
            return None;
        }
        let encoders = (0..count)
            .map(|_| {
                let (flow, e1, frames) = (read.station()?, read.ratio()?, read.u32()?);
                Some(EncoderReport { flow, e1, frames })
            })
            .collect::<Option<Vec<_>>>()?;
        Some((Report { encoders }, read.0))
    }
}

/// 128 random bits: a session id, a challenge.
pub type Random128 = [u8; 16];

/// Appends a station's number to `out`.
pub(crate) fn write_station(station: StationId, out: &mut Vec<u8>) {
    out.extend_from_slice(&station.0.to_be_bytes());
}

fn write_ratio(ratio: f64, out: &mut Vec<u8>) {
    let fixed = (ratio.clamp(0.0, 1.0) * f64::from(u16::MAX)).round() as u16;
    out.extend_from_slice(&fixed.to_be_bytes());
}

/// A cursor that never reads past the end.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn station(&mut self) -> Option<StationId> {
        self.u16().map(StationId)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn ratio(&mut self) -> Option<f64> {
        self.u16().map(|fixed| f64::from(fixed) / f64::from(u16::MAX))
    }
}

/// How far block `to` is ahead of block `from`, by the shorter way modulo 2^16.
pub fn block_distance(from: u16, to: u16) -> i32 {
    i32::from(to.wrapping_sub(from) as i16)
}

#[cfg(test)]
mod tests;
