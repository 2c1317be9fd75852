//! The wire format, version 7: what a frame looks like, in bytes.
//!
//! ```text
//!  0        1        3            7                                             len-16    len
//!  +--------+--------+------------+---------------------------------------------+---------+
//!  | v | f  |  tag   |  counter   |  sealed chunks                              | AEAD tag|
//!  +--------+--------+------------+---------------------------------------------+---------+
//!   header, authenticated, in clear
//! ```
//! `v` is the version (4 bits), `f` the frame's form; `tag` the first two bytes of the sender's
//! session id, a hint for the key; `counter` the sender's frame counter: nonce, replay protection
//! and the sequence whose gaps are the link's losses. All numbers are big-endian.
//!
//! What a frame carries are chunks, each of a [`Kind`]: `wire/chunk.rs`. A HELLO has more in clear
//! before them (`wire/hello.rs`), and a message of a key exchange is another thing
//! (`wire/key_exchange.rs`).
//!
//! Stations have numbers of two bytes. An ENC is `flow (2), block (2), form and index (2)`, then
//! the coding vector's seed (4), or the encoder's run (1) and the vector itself, where the form has
//! one, then the symbol. A source symbol holds packets, each behind its length (2): 32 bytes in all
//! beyond the Ethernet header, and 33 in window mode. docs/wire.md has all of it in tables.

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
pub use link_feedback::{LINK_FEEDBACK_LEN, LinkFeedback, PathId};
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

/// Version of everything on this page.
pub const VERSION: u8 = 7;
/// Bytes of the header in clear.
pub const HEADER_LEN: usize = 7;
/// Bytes of the AEAD tag at the end of every frame.
pub const TAG_LEN: usize = 16;
/// Bytes of a frame with one chunk beside that chunk's body.
pub const OVERHEAD_LEN: usize = HEADER_LEN + LAST_CHUNK_LEN + TAG_LEN;
/// Bytes of an ENC body before the coding vector or symbol.
pub const ENC_LEN: usize = 6;
/// Bytes of a tag that only the two ends of a flow can make and check.
pub const END_TAG_LEN: usize = 8;
/// Bytes of a packet's number and tag, behind a packet between ends across relays.
pub const END_TRAILER_LEN: usize = 7 + END_TAG_LEN;
/// Bytes in front of each packet in a symbol.
pub const PACKET_PREFIX_LEN: usize = 2;
/// Bytes that tell, in front of an explicit coding vector, the encoder's run, of which the highest
/// bits stand before.
pub const RUN_LEN: usize = 1;
/// Bits of an encoder's instance that tell its runs apart.
pub const RUN_MASK: u16 = (1 << 11) - 1;
/// Bytes of the seed of a coding vector.
pub const SEED_LEN: usize = 4;

/// Longest symbol that fits a frame of `frame_len_max` bytes, coded. Where a helper may recode it,
/// it must fit beside its coding vector in full; an encoder sends only the seed of one.
pub fn symbol_size_max(frame_len_max: usize, coding: &CodingParams, recoded: bool) -> usize {
    if coding.mode == Mode::Window {
        return frame_len_max.saturating_sub(OVERHEAD_LEN + WINDOW_SYMBOL_LEN);
    }
    let vector = coding.field.vector_len_bytes(usize::from(coding.block_size));
    let vector = if recoded { (RUN_LEN + vector).max(SEED_LEN) } else { SEED_LEN };
    frame_len_max.saturating_sub(OVERHEAD_LEN + ENC_LEN + vector)
}

/// Longest chunk, kind and body, with symbols of so many bytes: the reverse of
/// [`symbol_size_max`], whether a helper may recode them or not.
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

/// Forms of a frame, in the lowest bits of its first byte: chunks behind the header; HELLO; a
/// message of a key exchange, which has no header. What is not here is room for headers that say
/// more, as of which of several paths the counter is, and which of the receiver's neighbours sends.
const CHUNKS: u8 = 0;
const HELLO: u8 = 2;
const KEY_EXCHANGE: u8 = 3;
const FORM_MASK: u8 = 0xf;

/// The part of a frame in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Who has not heard of the session needs more in clear, for the key: see [`Hello`].
    pub is_hello: bool,
    /// First two bytes of the sender's session id.
    pub session_tag: u16,
    /// Number of the frame within the session, from 0.
    pub counter: u32,
}

/// The version that a frame says it is of, 0 to 15; `None` if it is too short for any version.
pub fn version(frame: &[u8]) -> Option<u8> {
    frame.first().filter(|_| frame.len() >= HEADER_LEN + TAG_LEN).map(|first| first >> 4)
}

impl Header {
    /// Writes the header's [`HEADER_LEN`] bytes at the end of `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(VERSION << 4 | if self.is_hello { HELLO } else { CHUNKS });
        out.extend_from_slice(&self.session_tag.to_be_bytes());
        out.extend_from_slice(&self.counter.to_be_bytes());
    }

    /// Reads a header; `None` for another version or form, or a frame too short to hold header and
    /// tag.
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

    /// Bytes in clear: the header, and what a HELLO has behind it.
    pub fn clear_len(&self) -> usize {
        HEADER_LEN + if self.is_hello { HELLO_CLEAR_LEN } else { 0 }
    }
}

/// How an ENC says what its symbol combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    /// The source symbol of this index, as it is.
    Source {
        /// Position in the block.
        index: u16,
    },
    /// The same where source symbols begin with a tag from end to end.
    Tagged {
        /// Position in the block.
        index: u16,
    },
    /// A combination of the first `count` symbols with coefficients expanded from a seed.
    Seeded {
        /// Symbols combined: how many the encoder had added.
        count: NonZeroU16,
        /// See [`Field::expand_seed`].
        seed: u32,
    },
    /// A combination of the first `count` symbols, with its coding vector: recoded by a helper.
    Explicit {
        /// Which run of the encoder the symbol is of, the [low bits](RUN_MASK) of
        /// [`Hello::instance`]: a helper
        /// that has not noticed that an encoder restarted recodes blocks of the run before, and
        /// their numbers may come again.
        run: u16,
        /// Symbols combined.
        count: NonZeroU16,
        /// The coding vector, as [`Field`] packs it.
        vector: &'a [u8],
    },
}

const FORM_SHIFT: u32 = 14;
const INDEX_MASK: u16 = (1 << FORM_SHIFT) - 1;
/// Where a vector is told in full, of the index: how many symbols are combined. What is above are
/// the highest bits of the run.
const COUNT_BITS: u32 = 11;
const COUNT_MASK: u16 = (1 << COUNT_BITS) - 1;

/// Body of a [`Kind::Enc`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enc<'a> {
    /// The station whose packets these are; frames of a helper name the encoder.
    pub flow: StationId,
    /// Number of the block, modulo 2^16.
    pub block: u16,
    /// What the symbol combines.
    pub form: Form<'a>,
    /// The symbol.
    pub symbol: &'a [u8],
}

impl<'a> Enc<'a> {
    /// Writes everything but the symbol, which the caller appends (it is often computed in place).
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

    /// Reads a body. `field` tells how long an explicit vector is.
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

/// What a decoder says about one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockAck {
    /// Number of the block.
    pub block: u16,
    /// The decoder has delivered what it had, and wants no more of it.
    pub given_up: bool,
    /// Innovative symbols received.
    pub rank: u16,
    /// Source symbols the decoder knows to exist.
    pub known: u16,
    /// One bit for each known symbol, lowest bit first: decoded.
    pub decoded: Vec<u8>,
}

/// Body of a [`Kind::Ack`]: rank and bitmap of decoded symbols (Section II-C), block by block, and
/// what the decoder measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// The encoder this is for.
    pub flow: StationId,
    /// First block not finished; all before are, delivered or given up.
    pub base: u16,
    /// Newest frame counter heard from the encoder.
    pub encoder_counter: u32,
    /// Newest frame counter heard from the helper; `u32::MAX` when there is none.
    pub helper_counter: u32,
    /// Erasure ratio helper to decoder.
    pub e2: f64,
    /// Erasure ratio encoder to decoder.
    pub e3: f64,
    /// Blocks with something to tell, at most [`ACK_BLOCKS_MAX`].
    pub blocks: Vec<BlockAck>,
}

impl Ack {
    /// Bytes of an acknowledgement of these blocks, given as (count, symbols in each), at most.
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

    /// Reads a body; returns it and what follows it.
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

/// Body of a [`Kind::Report`]: what a helper hears, and for whom its own frames were.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Of each encoder.
    pub encoders: Vec<EncoderReport>,
}

/// What a helper says of an encoder, and to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderReport {
    /// The encoder.
    pub flow: StationId,
    /// Erasure ratio from it to the helper; 1: the helper hears nothing of what goes to others.
    pub e1: f64,
    /// Frames of the helper's session before this one that were for the encoder's station, or for
    /// all: what others get is none of that link's losses where a switch keeps it from there.
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

    /// Reads a body; returns it and what follows it.
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

/// How far block `to` is ahead of block `from`, the shorter way round 2^16.
pub fn block_distance(from: u16, to: u16) -> i32 {
    i32::from(to.wrapping_sub(from) as i16)
}

#[cfg(test)]
mod tests;
