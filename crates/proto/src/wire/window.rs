//! The bodies of window mode: symbols of a sliding window, and feedback about them.
//!
//! A symbol's body is `flow and pairing (1), form and number (2), id or seed (4)`, then the
//! symbol. For a source symbol, the number is how far its id is ahead of the oldest symbol that
//! the sender holds; for a coded symbol, how many symbols it covers. Ids are sent as their low 32
//! bits. The seed of a coded symbol consists of the low 20 bits of the id of the first symbol that
//! it covers, and a serial number. Nothing depends on the frame around it, so it could be sent
//! over another link unchanged. The highest bit of the first byte alone is about the frame: it has
//! left together with the one before it, so that both are a pair
//! (`link/path_control/dispersion.rs`).
//!
//! With several [`Lanes`], each form has a variant: the three highest bits of the number are the
//! logarithm of the number of lanes, and the rest counts places of the symbol's lane. Feedback then
//! is about one lane: the logarithm is in the three highest bits of the span, and the lane in the
//! four highest of the deficit. Neither is sent to a station that has not announced in its HELLO
//! that it accepts that many lanes.

use core::num::NonZeroU16;

use arrayvec::ArrayVec;
use corridor_codec::widen_id;

use super::{Lanes, Reader};

/// Bytes of a body before the symbol.
pub const WINDOW_SYMBOL_LEN: usize = 7;
/// Longest bitmap in [`WindowFeedback`], in bytes; limits the symbols that are reported on
/// individually.
pub const WINDOW_BITMAP_LEN_MAX: usize = 63;
/// Bytes of [`WindowFeedback`] before the bitmap.
pub const WINDOW_FEEDBACK_LEN: usize = 12;
/// Bytes of the credit after the bitmap, if there is one.
pub const WINDOW_CREDIT_LEN: usize = 2;

/// Bit in the bitmap's length: a credit follows the bitmap.
const HAS_CREDIT: u8 = 1 << 7;

/// In the seed of a coded symbol: shift of the id of the first symbol that it covers. The bits
/// below are the serial number.
const FIRST_SHIFT: u32 = 12;
const FIRST_MASK: u32 = u32::MAX >> FIRST_SHIFT;
const SERIAL_MASK: u16 = (1 << FIRST_SHIFT) - 1;

/// Set in the first byte: the frame has left together with the one before it.
const IS_PAIRED: u8 = 1 << 7;

const FORM_SHIFT: u32 = 14;
const NUMBER_MASK: u16 = (1 << FORM_SHIFT) - 1;
/// In a number: shift of the number of lanes. The bits below count places.
const LANES_SHIFT: u32 = 11;
const PLACES_MASK: u16 = (1 << LANES_SHIFT) - 1;
/// The same in the span of feedback.
const SPAN_SHIFT: u32 = 13;
const SPAN_MASK: u16 = (1 << SPAN_SHIFT) - 1;
/// In the deficit: shift of the lane.
const LANE_SHIFT: u32 = 12;
const DEFICIT_MASK: u16 = (1 << LANE_SHIFT) - 1;

/// A flow of a station to its peer, with a window of its own, below 128. At present there is only
/// flow 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowId(pub u8);

/// What a symbol of a window combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowForm {
    /// A source symbol, uncoded.
    Source {
        /// Its id.
        id: u32,
        /// Symbols of its lane before it that the sender still holds: none before those will be
        /// sent again.
        distance: u16,
        /// Number of lanes.
        lanes: Lanes,
    },
    /// A combination of `count` symbols of a lane from `first` on, the oldest one that the sender
    /// holds.
    Coded {
        /// Determines the coefficients, and the oldest symbol.
        seed: CodedSeed,
        /// Number of symbols combined.
        count: NonZeroU16,
        /// Number of lanes.
        lanes: Lanes,
    },
}

/// The seed of a coded symbol's coding vector: the id of the first symbol that it covers, and a
/// serial number of coded symbols, modulo 2^12. A seed can recur over the same symbols only after
/// 4096 others, and is then no less useful than a copy.
///
/// ```
/// use corridor_proto::wire::CodedSeed;
///
/// let seed = CodedSeed::new(0x7_0000_0001, 2);
/// assert_eq!(seed.value(), 0x0000_1002);
/// // The receiver knows about where the first one is.
/// assert_eq!(seed.first(0x7_0000_4001), 0x7_0000_0001);
/// assert_eq!(seed.first(0x6_ffff_fff0), 0x7_0000_0001);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodedSeed(u32);

impl CodedSeed {
    /// The seed of a coded symbol that covers symbols from `first` on.
    pub fn new(first: u64, serial: u16) -> Self {
        CodedSeed((first as u32) << FIRST_SHIFT | u32::from(serial & SERIAL_MASK))
    }

    /// The value that coefficients are expanded from: see
    /// [`Field::expand_seed`](corridor_codec::Field).
    pub fn value(self) -> u32 {
        self.0
    }

    /// The id of the first symbol: the id nearest to `near` with these low 20 bits.
    pub fn first(self, near: u64) -> u64 {
        let ahead = self.low_bits().wrapping_sub(near as u32) & FIRST_MASK;
        // As a signed number of 20 bits.
        let ahead = (ahead << FIRST_SHIFT) as i32 >> FIRST_SHIFT;
        widen_id((near as u32).wrapping_add_signed(ahead), near)
    }

    /// The lowest 20 bits of the first symbol's id.
    pub fn low_bits(self) -> u32 {
        self.0 >> FIRST_SHIFT
    }
}

/// Body of a symbol in window mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSymbol<'a> {
    /// The flow of the sender that it belongs to.
    pub flow: FlowId,
    /// What it combines.
    pub form: WindowForm,
    /// Its frame has left together with the one before it.
    pub is_paired: bool,
    /// The symbol.
    pub symbol: &'a [u8],
}

impl<'a> WindowSymbol<'a> {
    /// Appends everything but the symbol to `out`.
    pub fn write_head(flow: FlowId, form: WindowForm, out: &mut Vec<u8>) {
        out.push(flow.0 & !IS_PAIRED);
        let (code, number, word, lanes) = match form {
            WindowForm::Source { id, distance, lanes } => (0, distance, id, lanes),
            WindowForm::Coded { seed, count, lanes } => (1, count.get(), seed.0, lanes),
        };
        let (code, number) = match lanes {
            Lanes::ONE => (code, number),
            lanes => (code + 2, u16::from(lanes.code()) << LANES_SHIFT | number & PLACES_MASK),
        };
        out.extend_from_slice(&(code << FORM_SHIFT | number & NUMBER_MASK).to_be_bytes());
        out.extend_from_slice(&word.to_be_bytes());
    }

    /// Marks this body as that of the second frame of a pair.
    pub fn pair(body: &mut [u8]) {
        if let Some(first) = body.first_mut() {
            *first |= IS_PAIRED;
        }
    }

    /// Parses a body; `None` if the number of lanes is impossible, the count is zero, or there is
    /// no symbol.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut read = Reader(body);
        let first = read.u8()?;
        let (flow, is_paired) = (FlowId(first & !IS_PAIRED), first & IS_PAIRED != 0);
        let word = read.u16()?;
        let (code, number, id_or_seed) = (word >> FORM_SHIFT, word & NUMBER_MASK, read.u32()?);
        let (lanes, number) = match code {
            0 | 1 => (Lanes::ONE, number),
            _ => (Lanes::from_code((number >> LANES_SHIFT) as u8)?, number & PLACES_MASK),
        };
        if code > 1 && lanes == Lanes::ONE {
            return None;
        }
        let form = match code % 2 {
            0 => WindowForm::Source { id: id_or_seed, distance: number, lanes },
            _ => {
                let (seed, count) = (CodedSeed(id_or_seed), NonZeroU16::new(number)?);
                WindowForm::Coded { seed, count, lanes }
            }
        };
        (!read.0.is_empty()).then_some(WindowSymbol { flow, form, is_paired, symbol: read.0 })
    }
}

/// Feedback about the symbols of a window: which of them are needed. Feedback about the frames that
/// they came in is a [`LinkFeedback`](super::LinkFeedback).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFeedback {
    /// The flow of the other station that this is about.
    pub flow: FlowId,
    /// Id of the first symbol not delivered or skipped.
    pub next: u32,
    /// Number of lanes, and the lane that this is about.
    pub lanes: Lanes,
    /// See `lanes`.
    pub lane: u8,
    /// How many places of the lane the receiver knows of, from the first one whose symbol is not
    /// before `next`.
    pub span: u16,
    /// Innovative symbols that the receiver lacks to decode everything it knows of in the lane.
    pub deficit: u16,
    /// Useless symbols received so far, modulo 2^16: the cost of spurious repair.
    pub useless: u16,
    /// One bit per place that `span` counts, lowest bit first: whether it is needed, that is,
    /// missing and not covered by a coded symbol held. Each coded symbol covers the newest missing
    /// symbol that it combines, so with the first needed symbol everything before the second can be
    /// decoded. At most [`WINDOW_BITMAP_LEN_MAX`] bytes; later places are not reported.
    pub needed: ArrayVec<u8, WINDOW_BITMAP_LEN_MAX>,
    /// Credit: how many symbols from `next` on there is room for, not counting repair. Granted by a
    /// receiver that cannot forward as fast as it receives. `None`: no limit.
    pub credit: Option<u16>,
}

impl WindowFeedback {
    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(self.flow.0);
        out.extend_from_slice(&self.next.to_be_bytes());
        let lanes = u16::from(self.lanes.code()) << SPAN_SHIFT;
        out.extend_from_slice(&(lanes | self.span & SPAN_MASK).to_be_bytes());
        let lane = u16::from(self.lane) << LANE_SHIFT;
        out.extend_from_slice(&(lane | self.deficit & DEFICIT_MASK).to_be_bytes());
        out.extend_from_slice(&self.useless.to_be_bytes());
        let has_credit = if self.credit.is_some() { HAS_CREDIT } else { 0 };
        out.push(self.needed.len() as u8 | has_credit);
        out.extend_from_slice(&self.needed);
        out.extend(self.credit.iter().flat_map(|credit| credit.to_be_bytes()));
    }

    /// Parses a body; returns it and what follows it.
    pub fn parse(body: &[u8]) -> Option<(Self, &[u8])> {
        let mut read = Reader(body);
        let (flow, next) = (FlowId(read.u8()?), read.u32()?);
        let (span, deficit, useless) = (read.u16()?, read.u16()?, read.u16()?);
        let lanes = Lanes::from_code((span >> SPAN_SHIFT) as u8)?;
        let lane = (deficit >> LANE_SHIFT) as u8;
        let (span, deficit) = (span & SPAN_MASK, deficit & DEFICIT_MASK);
        if deficit > span || usize::from(lane) >= lanes.count() {
            return None;
        }
        let len = read.u8()?;
        let mut needed = ArrayVec::new();
        needed.try_extend_from_slice(read.take(usize::from(len & !HAS_CREDIT))?).ok()?;
        let credit = if len & HAS_CREDIT != 0 { Some(read.u16()?) } else { None };
        let feedback =
            WindowFeedback { flow, next, lanes, lane, span, deficit, useless, needed, credit };
        Some((feedback, read.0))
    }

    /// Most places that can be reported on.
    pub const SPAN_MAX: u16 = SPAN_MASK;

    /// Whether the symbol `ahead` places after the first one is needed; `None` if the bitmap does
    /// not cover it.
    pub fn is_needed(&self, ahead: usize) -> Option<bool> {
        if ahead >= usize::from(self.span) {
            return None;
        }
        self.needed.get(ahead / 8).map(|byte| byte >> (ahead % 8) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn symbols_survive_the_wire(
            coded: bool, flow in 0..IS_PAIRED, is_paired: bool, id: u32,
            number in 1u16..=NUMBER_MASK, code in 0u8..=4,
            symbol in proptest::collection::vec(any::<u8>(), 1..50),
        ) {
            let lanes = Lanes::from_code(code).unwrap();
            let number = if code > 0 { 1 + number % PLACES_MASK } else { number };
            let form = match (coded, NonZeroU16::new(number)) {
                (true, Some(count)) => WindowForm::Coded { seed: CodedSeed(id), count, lanes },
                _ => WindowForm::Source { id, distance: number, lanes },
            };
            let (flow, mut bytes) = (FlowId(flow), Vec::new());
            WindowSymbol::write_head(flow, form, &mut bytes);
            prop_assert_eq!(bytes.len(), WINDOW_SYMBOL_LEN);
            for len in 0..=bytes.len() {
                prop_assert_eq!(WindowSymbol::parse(&bytes[..len]), None);
            }
            bytes.extend_from_slice(&symbol);
            if is_paired {
                WindowSymbol::pair(&mut bytes);
            }
            let parsed = WindowSymbol::parse(&bytes);
            let symbol = &symbol[..];
            prop_assert_eq!(parsed, Some(WindowSymbol { flow, form, is_paired, symbol }));
        }

        #[test]
        fn feedback_survives_the_wire(
            flow: u8, next: u32, span in 0..=SPAN_MASK, deficit in 0..=DEFICIT_MASK, useless: u16,
            code in 0u8..=4, lane: u8, credit: Option<u16>,
            needed in proptest::collection::vec(any::<u8>(), 0..WINDOW_BITMAP_LEN_MAX),
        ) {
            let (flow, deficit) = (FlowId(flow), deficit.min(span));
            let needed = needed.into_iter().collect();
            let lanes = Lanes::from_code(code).unwrap();
            let lane = lane % lanes.count() as u8;
            let feedback = WindowFeedback {
                flow, next, lanes, lane, span, deficit, useless, needed, credit,
            };
            let mut bytes = Vec::new();
            feedback.write(&mut bytes);
            let credit_len = if credit.is_some() { WINDOW_CREDIT_LEN } else { 0 };
            let len = WINDOW_FEEDBACK_LEN + feedback.needed.len() + credit_len;
            prop_assert_eq!(bytes.len(), len);
            for len in 0..bytes.len() {
                prop_assert_eq!(WindowFeedback::parse(&bytes[..len]), None);
            }
            bytes.extend_from_slice(b"rest");
            prop_assert_eq!(WindowFeedback::parse(&bytes), Some((feedback, &b"rest"[..])));
        }

        /// Works wherever the receiver is, as long as it is less than 2^19 symbols away.
        #[test]
        fn the_first_symbol_of_a_coded_one_is_found(
            first in 0u64..1 << 40, away in -(1i64 << 19)..1 << 19, serial: u16,
        ) {
            let seed = CodedSeed::new(first, serial);
            let near = first.saturating_add_signed(away.wrapping_neg());
            prop_assume!(near > 1 << 20);
            prop_assert_eq!(seed.first(near), first);
            prop_assert_eq!(seed.value() & 0xfff, u32::from(serial) & 0xfff);
            prop_assert_eq!(u64::from(seed.low_bits()), first & 0xf_ffff);
        }

        #[test]
        fn lanes_that_cannot_be_are_refused(code in 5_u16..8, coded: bool) {
            let body = |form: u16, code: u16| {
                let word = (form << FORM_SHIFT | code << LANES_SHIFT | 1).to_be_bytes();
                [&[0][..], &word, &[0; 4], &[9; 4]].concat()
            };
            let form = 2 + u16::from(coded);
            let parses = |code| WindowSymbol::parse(&body(form, code)).is_some();
            prop_assert!(!parses(code) && parses(4));
            prop_assert!(!parses(0), "one lane has forms of its own");
        }

        #[test]
        fn no_parser_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = WindowSymbol::parse(&bytes);
            if let Some((feedback, _)) = WindowFeedback::parse(&bytes) {
                (0..2_000).for_each(|ahead| { let _ = feedback.is_needed(ahead); });
            }
        }
    }
}
