//! The wire format, version 5: what a frame looks like, in bytes.
//!
//! ```text
//!  0        1        3            7                                             len-16    len
//!  +--------+--------+------------+---------------------------------------------+---------+
//!  | v | k  |  tag   |  counter   |  sealed body                                 | AEAD tag|
//!  +--------+--------+------------+---------------------------------------------+---------+
//!   header, authenticated, in clear
//! ```
//! `v` is the version (4 bits), `k` the [`Kind`] (3 bits) and, in the lowest bit, whether an
//! acknowledgement rides at the front of the body; `tag` the first two bytes of the sender's
//! session id, a hint for the key; `counter` the sender's frame counter: nonce, replay protection
//! and the sequence whose gaps are the link's losses. All numbers are big-endian.
//!
//! A HELLO with its lowest bit set is none: `wire/key_exchange.rs` has what it is. A PLAIN with its
//! lowest bit set is a frame of relays: `wire/relayed.rs`.
//!
//! Stations have numbers of two bytes. An ENC body is `flow (2), block (2), form and index (2)`,
//! then the coding vector's seed (4), or the encoder's run (2) and the vector itself, where the
//! form has one, then the symbol. A source symbol holds packets, each behind its length (2): 31
//! bytes in all beyond the Ethernet header. docs/wire.md has all of it in tables.

pub mod cookie;
#[cfg(test)]
mod document;
pub mod intervals;
mod key_exchange;
mod lanes;
mod link_feedback;
mod probe;
mod relayed;
mod window;

use core::num::NonZeroU16;

use corridor_codec::{Field, MAX_WINDOW_SIZE};

pub use key_exchange::{
    HANDOUT_LEN, HANDOUT_NOISE_LEN, HANDOUT_SECRETS_LEN, INITIATION_LEN, INITIATION_NOISE_LEN,
    KEY_EXCHANGE_HEAD_LEN, KEY_EXCHANGE_MAC_LEN, KeyExchange, RESPONSE_LEN, RESPONSE_NOISE_LEN,
    Step, TIMESTAMP_LEN,
};
pub use lanes::Lanes;
pub use link_feedback::{LINK_FEEDBACK_LEN, LinkFeedback, PathId};
pub use probe::{ChallengeToken, Echo, PATH_CHALLENGE_LEN, ProbeBody};
pub use relayed::{RELAYED_LEN, Relayed};
pub use window::{
    CodedSeed, FlowId, WINDOW_BITMAP_LEN_MAX, WINDOW_CREDIT_LEN, WINDOW_FEEDBACK_LEN,
    WINDOW_SYMBOL_LEN, WindowFeedback, WindowForm, WindowSymbol,
};

use crate::bounds::{ACK_BLOCKS_MAX, FRAME_LEN_MAX, PEERS_MAX, SYMBOL_SIZE_MIN};
use crate::config::{CodingParams, Crossing, Mode, StationId};

/// Version of everything on this page.
pub const VERSION: u8 = 5;
/// Bytes of the header in clear.
pub const HEADER_LEN: usize = 7;
/// Bytes of the AEAD tag at the end of every frame.
pub const TAG_LEN: usize = 16;
/// Bytes of an ENC body before the coding vector or symbol.
pub const ENC_LEN: usize = 6;
/// Bytes in front of each packet in a symbol.
pub const PACKET_PREFIX_LEN: usize = 2;
/// Bytes that tell, in front of an explicit coding vector, the encoder's run.
pub const RUN_LEN: usize = 2;
/// Bytes of the seed of a coding vector.
pub const SEED_LEN: usize = 4;

/// Longest symbol that fits a frame of `frame_len_max` bytes, coded. Where a helper may recode it,
/// it must fit beside its coding vector in full; an encoder sends only the seed of one.
pub fn symbol_size_max(frame_len_max: usize, coding: &CodingParams, recoded: bool) -> usize {
    if coding.mode == Mode::Window {
        return frame_len_max.saturating_sub(HEADER_LEN + WINDOW_SYMBOL_LEN + TAG_LEN);
    }
    let vector = coding.field.vector_len_bytes(usize::from(coding.block_size));
    let vector = if recoded { (RUN_LEN + vector).max(SEED_LEN) } else { SEED_LEN };
    frame_len_max.saturating_sub(HEADER_LEN + ENC_LEN + vector + TAG_LEN)
}

/// What a frame is. The first two are FRANC's packet types (Section II-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A symbol, from encoder or helper.
    Enc,
    /// Feedback from a decoder.
    Ack,
    /// Erasure ratios as measured by a helper.
    Report,
    /// Handshake.
    Hello,
    /// A packet of the unreliable forwarder.
    Plain,
    /// A symbol of a sliding window.
    Window,
    /// Feedback about a sliding window.
    WindowAck,
    /// A probe of the path's MTU, or echoes of such probes.
    Probe,
    /// A frame of relays that XOR packets: `wire/relayed.rs`.
    Relayed,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Enc => 0,
            Kind::Ack => 1,
            Kind::Report => 2,
            Kind::Hello => 3,
            // No feedback rides at the front of either: the lowest bit tells them apart.
            Kind::Plain | Kind::Relayed => 4,
            Kind::Window => 5,
            Kind::WindowAck => 6,
            Kind::Probe => 7,
        }
    }

    /// The kind of a code, and of the lowest bit behind it; and whether feedback is there.
    fn from_code(code: u8, bit: bool) -> Option<(Self, bool)> {
        let kind = [
            Kind::Enc,
            Kind::Ack,
            Kind::Report,
            Kind::Hello,
            Kind::Plain,
            Kind::Window,
            Kind::WindowAck,
            Kind::Probe,
        ]
        .into_iter()
        .find(|kind| kind.code() == code)?;
        match kind {
            Kind::Plain if bit => Some((Kind::Relayed, false)),
            kind => (kind.carries_ack() || !bit).then_some((kind, bit)),
        }
    }

    /// Whether feedback may ride at the front of such a frame.
    fn carries_ack(self) -> bool {
        matches!(self, Kind::Enc | Kind::Window)
    }
}

/// The part of a frame in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame is.
    pub kind: Kind,
    /// An [`Ack`] rides at the front of the body; of a [`Kind::Window`], [`LinkFeedback`] and
    /// [`WindowFeedback`].
    pub has_ack: bool,
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
        let bit = self.has_ack || self.kind == Kind::Relayed;
        out.push(VERSION << 4 | self.kind.code() << 1 | u8::from(bit));
        out.extend_from_slice(&self.session_tag.to_be_bytes());
        out.extend_from_slice(&self.counter.to_be_bytes());
    }

    /// Reads a header; `None` for another version, an unknown kind, or a frame too short to hold
    /// header and tag.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        if frame.len() < HEADER_LEN + TAG_LEN {
            return None;
        }
        let mut read = Reader(frame);
        let first = read.u8()?;
        if first >> 4 != VERSION {
            return None;
        }
        let (kind, has_ack) = Kind::from_code(first >> 1 & 0b111, first & 1 == 1)?;
        Some(Header { kind, has_ack, session_tag: read.u16()?, counter: read.u32()? })
    }
}

/// How an ENC frame says what its symbol combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form<'a> {
    /// The source symbol of this index, as it is.
    Source {
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
        /// Which run of the encoder the symbol is of, the low bits of [`Hello::instance`]: a helper
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

/// Body of an ENC frame.
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
            Form::Seeded { count, .. } => (1, count.get()),
            Form::Explicit { count, .. } => (2, count.get()),
        };
        out.extend_from_slice(&(code << FORM_SHIFT | index & INDEX_MASK).to_be_bytes());
        match form {
            Form::Source { .. } => {}
            Form::Seeded { seed, .. } => out.extend_from_slice(&seed.to_be_bytes()),
            Form::Explicit { run, vector, .. } => {
                out.extend_from_slice(&run.to_be_bytes());
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
                let count = NonZeroU16::new(index)?;
                let len = field(flow)?.vector_len_bytes(usize::from(index));
                Form::Explicit { run: read.u16()?, count, vector: read.take(len)? }
            }
            _ => return None,
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

/// Body of an ACK: rank and bitmap of decoded symbols (Section II-C), block by block, and what
/// the decoder measured.
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

/// Body of a REPORT: e1 as a helper measures it, for each encoder it hears.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Encoder, and erasure ratio from it to the helper.
    pub e1: Vec<(StationId, f64)>,
}

impl Report {
    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        debug_assert!(self.e1.len() <= PEERS_MAX);
        out.push(self.e1.len() as u8);
        for &(flow, ratio) in &self.e1 {
            write_station(flow, out);
            write_ratio(ratio, out);
        }
    }

    /// Reads a body.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut read = Reader(body);
        let count = usize::from(read.u8()?);
        if count > PEERS_MAX {
            return None;
        }
        let e1 = (0..count)
            .map(|_| Some((read.station()?, read.ratio()?)))
            .collect::<Option<Vec<_>>>()?;
        Some(Report { e1 })
    }
}

/// 128 random bits: a session id, a challenge.
pub type Random128 = [u8; 16];

/// The clear part of a HELLO, behind the header: who claims to speak under which session.
pub const HELLO_CLEAR_LEN: usize = 18;

/// Reads it: the sender's number, and its session id. Nothing vouches for either before the rest of
/// the frame has opened.
pub(crate) fn hello_clear(frame: &[u8]) -> Option<(StationId, Random128)> {
    let mut clear = Reader(frame.get(HEADER_LEN..)?);
    Some((clear.station()?, clear.array()?))
}

/// Body of a HELLO; see [`crate::link::handshake`] for what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Random per start of the station: tells a restart from a mere change of keys.
    pub instance: u64,
    /// Field of the sender's own flow.
    pub field: Field,
    /// Block or window size of the sender's own flow.
    pub block_size: u16,
    /// Longest source symbol of the sender's own flow.
    pub symbol_size: u16,
    /// Whether that flow is coded in blocks or in a sliding window.
    pub mode: Mode,
    /// Oldest block the sender's encoder still holds; in window mode, oldest symbol.
    pub base: u32,
    /// What the sender says to each station it has heard, at most [`PEERS_MAX`].
    pub to: Vec<HelloTo>,
    /// How often the sender says something.
    pub intervals: intervals::Intervals,
}

/// The part of a HELLO that is meant for one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloTo {
    /// The station.
    pub station: StationId,
    /// Its session that this is about.
    pub session: Random128,
    /// A challenge for that session to answer; zero when none is open.
    pub challenge: Random128,
    /// The answer to that session's challenge; zero when there was none.
    pub answer: Random128,
    /// That session has answered, and its frames are accepted.
    pub accepted: bool,
    /// The sender does not know yet whether that session accepts it: please tell.
    pub asks: bool,
    /// What the sender does with packets instead of coding them as [`Hello::mode`] has it.
    pub instead: Option<Instead>,
    /// Most lanes of the other's window that the sender of this takes.
    pub lanes: Lanes,
    /// Most symbols of each of them, 1 to [`MAX_WINDOW_SIZE`].
    pub lane_size: u16,
}

/// Ways for packets to cross that are no coded flow of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// [`Crossing::TcpNc`].
    TcpNc,
    /// [`Crossing::Plain`].
    Plain,
    /// [`Crossing::Relay`].
    Relay,
}

impl Instead {
    /// What to say of a way to cross that [`Hello::mode`] has no value for.
    pub fn of(crossing: Crossing) -> Option<Self> {
        match crossing {
            Crossing::Block | Crossing::Window => None,
            Crossing::TcpNc => Some(Instead::TcpNc),
            Crossing::Plain => Some(Instead::Plain),
            Crossing::Relay => Some(Instead::Relay),
        }
    }

    /// Two bits; what this build does not know is as if nothing had been said.
    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Instead::TcpNc),
            2 => Some(Instead::Plain),
            3 => Some(Instead::Relay),
            _ => None,
        }
    }

    /// The two bits.
    pub fn code(self) -> u8 {
        match self {
            Instead::TcpNc => 1,
            Instead::Plain => 2,
            Instead::Relay => 3,
        }
    }
}

impl From<Instead> for Crossing {
    fn from(instead: Instead) -> Self {
        match instead {
            Instead::TcpNc => Crossing::TcpNc,
            Instead::Plain => Crossing::Plain,
            Instead::Relay => Crossing::Relay,
        }
    }
}

const ACCEPTED_BIT: u8 = 1;
const ASKS_BIT: u8 = 1 << 1;
const INSTEAD_SHIFT: u32 = 2;
const INSTEAD_MASK: u8 = 0b11;
const LANES_SHIFT: u32 = 4;
const LANES_MASK: u8 = 0b111;

impl Hello {
    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.instance.to_be_bytes());
        out.push(match self.field {
            Field::Gf2 => 1,
            Field::Gf16 => 4,
            Field::Gf256 => 8,
        });
        out.extend_from_slice(&self.block_size.to_be_bytes());
        out.extend_from_slice(&self.symbol_size.to_be_bytes());
        out.push(match self.mode {
            Mode::Block => 0,
            Mode::Window => 1,
        });
        out.extend_from_slice(&self.base.to_be_bytes());
        debug_assert!(self.to.len() <= PEERS_MAX);
        out.push(self.to.len() as u8);
        for to in &self.to {
            write_station(to.station, out);
            out.extend_from_slice(&to.session);
            out.extend_from_slice(&to.challenge);
            out.extend_from_slice(&to.answer);
            let accepted = if to.accepted { ACCEPTED_BIT } else { 0 };
            let asks = if to.asks { ASKS_BIT } else { 0 };
            let instead = to.instead.map_or(0, Instead::code) << INSTEAD_SHIFT;
            out.push(accepted | asks | instead | to.lanes.code() << LANES_SHIFT);
            out.extend_from_slice(&to.lane_size.to_be_bytes());
        }
        self.intervals.write(out);
    }

    /// Reads a body.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut read = Reader(body);
        let instance = u64::from_be_bytes(read.array()?);
        let field = match read.u8()? {
            1 => Field::Gf2,
            4 => Field::Gf16,
            8 => Field::Gf256,
            _ => return None,
        };
        let block_size = read.u16()?;
        if !(1..=corridor_codec::MAX_BLOCK_SIZE).contains(&usize::from(block_size)) {
            return None;
        }
        let symbol_size = read.u16()?;
        if !(SYMBOL_SIZE_MIN..=FRAME_LEN_MAX).contains(&usize::from(symbol_size)) {
            return None;
        }
        let mode = match read.u8()? {
            0 => Mode::Block,
            1 => Mode::Window,
            _ => return None,
        };
        let base = read.u32()?;
        let count = usize::from(read.u8()?);
        if count > PEERS_MAX {
            return None;
        }
        let to = (0..count)
            .map(|_| {
                let station = read.station()?;
                let (session, challenge, answer) = (read.array()?, read.array()?, read.array()?);
                let flags = read.u8()?;
                let (accepted, asks) = (flags & ACCEPTED_BIT != 0, flags & ASKS_BIT != 0);
                let instead = Instead::from_code(flags >> INSTEAD_SHIFT & INSTEAD_MASK);
                // More than this build knows of is the most that it knows of.
                let lanes =
                    Lanes::from_code(flags >> LANES_SHIFT & LANES_MASK).unwrap_or(Lanes::MOST);
                let lane_size = read.u16()?;
                if !(1..=MAX_WINDOW_SIZE).contains(&usize::from(lane_size)) {
                    return None;
                }
                Some(HelloTo {
                    station,
                    session,
                    challenge,
                    answer,
                    accepted,
                    asks,
                    instead,
                    lanes,
                    lane_size,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        let intervals = intervals::Intervals::read(&mut read);
        Some(Hello { instance, field, block_size, symbol_size, mode, base, to, intervals })
    }
}

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
