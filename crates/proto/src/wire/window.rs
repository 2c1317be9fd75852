//! The bodies of window mode: symbols of a sliding window, and feedback about it.
//!
//! A symbol's body is `form and number (2), id (4)`, then the symbol. For a source symbol the
//! number says how far its id is ahead of the oldest symbol that the sender still holds; for a
//! coded one, which covers all from `id` on, how many it covers. Ids are sent as their lowest 32
//! bits.
//!
//! Where symbols are dealt to several [`Lanes`], each has two more forms: the highest three bits of
//! the number are the logarithm of how many lanes there are, and the rest counts places of the
//! symbol's lane. Feedback is about one lane then: the logarithm is in the highest three bits of
//! the span, and the lane in the highest four of the deficit. Neither goes to a station that has
//! not said in its HELLO that it takes so many.

use core::num::NonZeroU16;
use core::time::Duration;

use arrayvec::ArrayVec;

use super::{Lanes, Reader, write_ratio};

/// Bytes of a body before the symbol.
pub const WINDOW_SYMBOL_LEN: usize = 6;
/// Most bytes of the bitmap in a [`WindowAck`]: symbols of which it tells apart what is needed.
pub const WINDOW_BITMAP_LEN_MAX: usize = 63;
/// Bytes of a [`WindowAck`] before the bitmap.
pub const WINDOW_ACK_LEN: usize = 27;
/// Bytes of the credit behind the bitmap, where there is one.
pub const WINDOW_CREDIT_LEN: usize = 2;
/// Unit of the delay in a [`WindowAck`].
const DELAY_UNIT_NS: u64 = 16_384;

/// Set in the length of the bitmap: both directions share the channel.
const HALF_DUPLEX: u8 = 1 << 7;
/// The same: a credit is behind the bitmap.
const HAS_CREDIT: u8 = 1 << 6;

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
    /// All `count` symbols of a lane from `first` on, the oldest of it that the sender holds. The
    /// seed of the coding vector is the frame's counter, which no other frame of the session has.
    Coded {
        /// Id of the oldest one.
        first: u32,
        /// How many.
        count: NonZeroU16,
        /// How many lanes there are.
        lanes: Lanes,
    },
}

/// Body of a symbol in window mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSymbol<'a> {
    /// What it combines.
    pub form: WindowForm,
    /// The symbol.
    pub symbol: &'a [u8],
}

impl<'a> WindowSymbol<'a> {
    /// Appends everything but the symbol to `out`.
    pub fn write_head(form: WindowForm, out: &mut Vec<u8>) {
        let (code, number, id, lanes) = match form {
            WindowForm::Source { id, distance, lanes } => (0, distance, id, lanes),
            WindowForm::Coded { first, count, lanes } => (1, count.get(), first, lanes),
        };
        let (code, number) = match lanes {
            Lanes::ONE => (code, number),
            lanes => (code + 2, u16::from(lanes.code()) << LANES_SHIFT | number & PLACES_MASK),
        };
        out.extend_from_slice(&(code << FORM_SHIFT | number & NUMBER_MASK).to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
    }

    /// Reads a body; `None` for a number of lanes that cannot be, a count of zero, or no symbol.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut read = Reader(body);
        let word = read.u16()?;
        let (code, number, id) = (word >> FORM_SHIFT, word & NUMBER_MASK, read.u32()?);
        let (lanes, number) = match code {
            0 | 1 => (Lanes::ONE, number),
            _ => (Lanes::from_code((number >> LANES_SHIFT) as u8)?, number & PLACES_MASK),
        };
        if code > 1 && lanes == Lanes::ONE {
            return None;
        }
        let form = match code % 2 {
            0 => WindowForm::Source { id, distance: number, lanes },
            _ => WindowForm::Coded { first: id, count: NonZeroU16::new(number)?, lanes },
        };
        (!read.0.is_empty()).then_some(WindowSymbol { form, symbol: read.0 })
    }
}

/// Feedback of window mode: rank, bitmap, loss and delay.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowAck {
    /// Id of the first symbol not delivered or passed over.
    pub next: u32,
    /// How many lanes there are, and the one that this is about.
    pub lanes: Lanes,
    /// See `lanes`.
    pub lane: u8,
    /// How many places of the lane the receiver knows of, from the first one on whose symbol is
    /// not before `next`.
    pub span: u16,
    /// Newest counter of a frame with a symbol.
    pub counter: u32,
    /// How long before this feedback that frame came, at most about a second.
    pub delay: Duration,
    /// When that frame came, microseconds of the receiver's clock, modulo 2^32.
    pub received_at_us: u32,
    /// Frames with symbols received so far, modulo 2^32.
    pub frames: u32,
    /// Share of the frames lost on the way here.
    pub loss_ratio: f64,
    /// Innovative symbols that it takes to decode all of the lane that the receiver knows of.
    pub deficit: u16,
    /// Symbols received so far that brought nothing, modulo 2^16: what repair wastes.
    pub useless: u16,
    /// Both directions share the channel, as far as this station can tell from its own frames.
    pub half_duplex: bool,
    /// One bit for each place that `span` counts, lowest bit first: needed, which is to be missing
    /// while no coded symbol held stands for it. Each of the latter stands for the newest missing
    /// symbol that it is about, so with the first needed one everything before the second can be
    /// decoded. What is beyond is not told; at most [`WINDOW_BITMAP_LEN_MAX`] bytes.
    pub needed: ArrayVec<u8, WINDOW_BITMAP_LEN_MAX>,
    /// How many symbols from `next` on there is room for, of those that are sent for the first
    /// time: what goes on from here cannot leave as fast as it comes. `None`: for all.
    pub credit: Option<u16>,
}

impl WindowAck {
    /// The longest delay that can be told: it may have been longer.
    pub const DELAY_MAX: Duration = Duration::from_nanos(u16::MAX as u64 * DELAY_UNIT_NS);

    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.next.to_be_bytes());
        let lanes = u16::from(self.lanes.code()) << SPAN_SHIFT;
        out.extend_from_slice(&(lanes | self.span & SPAN_MASK).to_be_bytes());
        out.extend_from_slice(&self.counter.to_be_bytes());
        let units = self.delay.as_nanos() / u128::from(DELAY_UNIT_NS);
        out.extend_from_slice(&u16::try_from(units).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(&self.received_at_us.to_be_bytes());
        out.extend_from_slice(&self.frames.to_be_bytes());
        write_ratio(self.loss_ratio, out);
        let lane = u16::from(self.lane) << LANE_SHIFT;
        out.extend_from_slice(&(lane | self.deficit & DEFICIT_MASK).to_be_bytes());
        out.extend_from_slice(&self.useless.to_be_bytes());
        let half_duplex = if self.half_duplex { HALF_DUPLEX } else { 0 };
        let has_credit = if self.credit.is_some() { HAS_CREDIT } else { 0 };
        out.push(self.needed.len() as u8 | half_duplex | has_credit);
        out.extend_from_slice(&self.needed);
        out.extend(self.credit.iter().flat_map(|credit| credit.to_be_bytes()));
    }

    /// Reads a body; returns it and what follows it.
    pub fn parse(body: &[u8]) -> Option<(Self, &[u8])> {
        let mut read = Reader(body);
        let mut ack = WindowAck {
            next: read.u32()?,
            lanes: Lanes::ONE,
            lane: 0,
            span: read.u16()?,
            counter: read.u32()?,
            delay: Duration::from_nanos(u64::from(read.u16()?) * DELAY_UNIT_NS),
            received_at_us: read.u32()?,
            frames: read.u32()?,
            loss_ratio: read.ratio()?,
            deficit: read.u16()?,
            useless: read.u16()?,
            half_duplex: false,
            needed: ArrayVec::new(),
            credit: None,
        };
        let len = read.u8()?;
        ack.half_duplex = len & HALF_DUPLEX != 0;
        let has_credit = len & HAS_CREDIT != 0;
        let len = usize::from(len & !(HALF_DUPLEX | HAS_CREDIT));
        ack.lanes = Lanes::from_code((ack.span >> SPAN_SHIFT) as u8)?;
        ack.lane = (ack.deficit >> LANE_SHIFT) as u8;
        (ack.span, ack.deficit) = (ack.span & SPAN_MASK, ack.deficit & DEFICIT_MASK);
        if ack.deficit > ack.span || usize::from(ack.lane) >= ack.lanes.count() {
            return None;
        }
        ack.needed.try_extend_from_slice(read.take(len)?).ok()?;
        ack.credit = if has_credit { Some(read.u16()?) } else { None };
        Some((ack, read.0))
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
            coded: bool, id: u32, number in 1u16..=NUMBER_MASK, code in 0u8..=4,
            symbol in proptest::collection::vec(any::<u8>(), 1..50),
        ) {
            let lanes = Lanes::from_code(code).unwrap();
            let number = if code > 0 { 1 + number % PLACES_MASK } else { number };
            let form = match (coded, NonZeroU16::new(number)) {
                (true, Some(count)) => WindowForm::Coded { first: id, count, lanes },
                _ => WindowForm::Source { id, distance: number, lanes },
            };
            let mut bytes = Vec::new();
            WindowSymbol::write_head(form, &mut bytes);
            prop_assert_eq!(bytes.len(), WINDOW_SYMBOL_LEN);
            bytes.extend_from_slice(&symbol);
            let parsed = WindowSymbol::parse(&bytes);
            prop_assert_eq!(parsed, Some(WindowSymbol { form, symbol: &symbol }));
        }

        #[test]
        fn feedback_survives_the_wire(
            next: u32, counter: u32, units: u16, received_at_us: u32, span in 0..=SPAN_MASK,
            deficit in 0..=DEFICIT_MASK, useless: u16, frames: u32, half_duplex: bool,
            code in 0u8..=4, lane: u8, credit: Option<u16>,
            needed in proptest::collection::vec(any::<u8>(), 0..WINDOW_BITMAP_LEN_MAX),
        ) {
            let delay = Duration::from_nanos(u64::from(units) * DELAY_UNIT_NS);
            let (loss_ratio, deficit) = (1.0, deficit.min(span));
            let needed = needed.into_iter().collect();
            let lanes = Lanes::from_code(code).unwrap();
            let lane = lane % lanes.count() as u8;
            let ack = WindowAck {
                next, lanes, lane, span, counter, delay, received_at_us, frames, loss_ratio, deficit, useless,
                half_duplex, needed, credit,
            };
            let mut bytes = Vec::new();
            ack.write(&mut bytes);
            let credit_len = if credit.is_some() { WINDOW_CREDIT_LEN } else { 0 };
            prop_assert_eq!(bytes.len(), WINDOW_ACK_LEN + ack.needed.len() + credit_len);
            for len in 0..bytes.len() {
                prop_assert_eq!(WindowAck::parse(&bytes[..len]), None);
            }
            bytes.extend_from_slice(b"rest");
            prop_assert_eq!(WindowAck::parse(&bytes), Some((ack, &b"rest"[..])));
        }

        #[test]
        fn lanes_that_cannot_be_are_refused(code in 5_u16..8, coded: bool) {
            let body = |form: u16, code: u16| {
                [(form << FORM_SHIFT | code << LANES_SHIFT | 1).to_be_bytes(), [0; 2], [0; 2], [9; 2]]
                    .concat()
            };
            let form = 2 + u16::from(coded);
            let parses = |code| WindowSymbol::parse(&body(form, code)).is_some();
            prop_assert!(!parses(code) && parses(4));
            prop_assert!(!parses(0), "one lane has forms of its own");
        }

        #[test]
        fn no_parser_panics(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = WindowSymbol::parse(&bytes);
            if let Some((ack, _)) = WindowAck::parse(&bytes) {
                (0..2_000).for_each(|ahead| { let _ = ack.is_needed(ahead); });
            }
        }
    }
}
