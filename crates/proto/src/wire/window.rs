//! The bodies of window mode: symbols of a sliding window, and feedback about it.
//!
//! A symbol's body is `flow (1), form and number (2), id or seed (4)`, then the symbol. For a
//! source symbol the number says how far its id is ahead of the oldest symbol that the sender still
//! holds; for a coded one how many it covers. Ids are sent as their lowest 32 bits. The seed of a
//! coded one is the lowest 20 bits of the id of the first symbol that it covers, and a number of
//! its own. Nothing hangs on the frame that it comes in: it could cross another link as it is.
//!
//! Where symbols are dealt to several [`Lanes`], each has two more forms: the highest three bits of
//! the number are the logarithm of how many lanes there are, and the rest counts places of the
//! symbol's lane. Feedback is about one lane then: the logarithm is in the highest three bits of
//! the span, and the lane in the highest four of the deficit. Neither goes to a station that has
//! not said in its HELLO that it takes so many.

use core::num::NonZeroU16;

use arrayvec::ArrayVec;
use corridor_codec::widen_id;

use super::{Lanes, Reader};

/// Bytes of a body before the symbol.
pub const WINDOW_SYMBOL_LEN: usize = 7;
/// Most bytes of the bitmap in [`WindowFeedback`]: symbols of which it tells apart what is needed.
pub const WINDOW_BITMAP_LEN_MAX: usize = 63;
/// Bytes of [`WindowFeedback`] before the bitmap.
pub const WINDOW_FEEDBACK_LEN: usize = 12;
/// Bytes of the credit behind the bitmap, where there is one.
pub const WINDOW_CREDIT_LEN: usize = 2;

/// Set in the length of the bitmap: a credit is behind it.
const HAS_CREDIT: u8 = 1 << 7;

/// In the seed of a coded symbol: the id of the first one that it covers. What is below numbers
/// coded symbols.
const FIRST_SHIFT: u32 = 12;
const FIRST_MASK: u32 = u32::MAX >> FIRST_SHIFT;
const SERIAL_MASK: u16 = (1 << FIRST_SHIFT) - 1;

const FORM_SHIFT: u32 = 14;
const NUMBER_MASK: u16 = (1 << FORM_SHIFT) - 1;
/// In a number: how many lanes there are. What is below counts places.
const LANES_SHIFT: u32 = 11;
const PLACES_MASK: u16 = (1 << LANES_SHIFT) - 1;
/// The same in the span of feedback.
const SPAN_SHIFT: u32 = 13;
const SPAN_MASK: u16 = (1 << SPAN_SHIFT) - 1;
/// In the deficit: the lane.
const LANE_SHIFT: u32 = 12;
const DEFICIT_MASK: u16 = (1 << LANE_SHIFT) - 1;

/// One of the flows of a station to its peer, each with a window of its own. There is one today, 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowId(pub u8);

/// What a symbol of a window is a combination of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowForm {
    /// A source symbol, uncoded.
    Source {
        /// Its id.
        id: u32,
        /// Symbols of its lane before it that the sender still holds: all before those are not
        /// needed again.
        distance: u16,
        /// How many lanes there are.
        lanes: Lanes,
    },
    /// All `count` symbols of a lane from `first` on, the oldest of it that the sender holds.
    Coded {
        /// Where the coefficients come from, and which symbol is the oldest one.
        seed: CodedSeed,
        /// How many.
        count: NonZeroU16,
        /// How many lanes there are.
        lanes: Lanes,
    },
}

/// The seed of a coded symbol's coding vector: the id of the first symbol that it covers, and its
/// own number among those that were coded, modulo 2^12. Another seed may come again over the same
/// symbols only where 4096 were coded meanwhile, and is of no less use then than a copy.
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
    /// Of a coded symbol that covers those from `first` on.
    pub fn new(first: u64, serial: u16) -> Self {
        CodedSeed((first as u32) << FIRST_SHIFT | u32::from(serial & SERIAL_MASK))
    }

    /// What the coefficients are expanded from: see [`Field::expand_seed`](corridor_codec::Field).
    pub fn value(self) -> u32 {
        self.0
    }

    /// Id of the first symbol, the one of its lowest 20 bits that is nearest to this one.
    pub fn first(self, near: u64) -> u64 {
        let ahead = self.low_bits().wrapping_sub(near as u32) & FIRST_MASK;
        // As a number of 20 bits with a sign.
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
    /// Which of the sender's flows it is of.
    pub flow: FlowId,
    /// What it combines.
    pub form: WindowForm,
    /// The symbol.
    pub symbol: &'a [u8],
}

impl<'a> WindowSymbol<'a> {
    /// Appends everything but the symbol to `out`.
    pub fn write_head(flow: FlowId, form: WindowForm, out: &mut Vec<u8>) {
        out.push(flow.0);
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

    /// Reads a body; `None` for a number of lanes that cannot be, a count of zero, or no symbol.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut read = Reader(body);
        let flow = FlowId(read.u8()?);
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
        (!read.0.is_empty()).then_some(WindowSymbol { flow, form, symbol: read.0 })
    }
}

/// Feedback about the symbols of a window: what is needed. It says nothing of the frames that they
/// came in: [`LinkFeedback`](super::LinkFeedback) does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowFeedback {
    /// Which of the other's flows this is about.
    pub flow: FlowId,
    /// Id of the first symbol not delivered or passed over.
    pub next: u32,
    /// How many lanes there are, and the one that this is about.
    pub lanes: Lanes,
    /// See `lanes`.
    pub lane: u8,
    /// How many places of the lane the receiver knows of, from the first one on whose symbol is
    /// not before `next`.
    pub span: u16,
    /// Innovative symbols that it takes to decode all of the lane that the receiver knows of.
    pub deficit: u16,
    /// Symbols received so far that brought nothing, modulo 2^16: what repair wastes.
    pub useless: u16,
    /// One bit for each place that `span` counts, lowest bit first: needed, which is to be missing
    /// while no coded symbol held stands for it. Each of the latter stands for the newest missing
    /// symbol that it is about, so with the first needed one everything before the second can be
    /// decoded. What is beyond is not told; at most [`WINDOW_BITMAP_LEN_MAX`] bytes.
    pub needed: ArrayVec<u8, WINDOW_BITMAP_LEN_MAX>,
    /// How many symbols from `next` on there is room for, of those that are sent for the first
    /// time: what goes on from here cannot leave as fast as it comes. `None`: for all.
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

    /// Reads a body; returns it and what follows it.
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

    /// The most places that can be told of.
    pub const SPAN_MAX: u16 = SPAN_MASK;

    /// Whether the symbol `ahead` places after the first one is needed; `None` if the bitmap does
    /// not tell.
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
            coded: bool, flow: u8, id: u32, number in 1u16..=NUMBER_MASK, code in 0u8..=4,
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
            let parsed = WindowSymbol::parse(&bytes);
            prop_assert_eq!(parsed, Some(WindowSymbol { flow, form, symbol: &symbol }));
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

        /// Wherever the receiver is, as long as it is less than 2^19 symbols away.
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
