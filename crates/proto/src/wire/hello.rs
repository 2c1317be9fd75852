//! HELLO: who is there, and under which session. The first bytes are in clear, so that receivers
//! can derive the key; the rest is the frame's only chunk.

use corridor_codec::{Field, MAX_WINDOW_SIZE};

use super::intervals::Intervals;
use super::{Chunks, HEADER_LEN, Kind, Lanes, Random128, Reader, write_station};
use crate::bounds::{FRAME_LEN_MAX, PEERS_MAX, SYMBOL_SIZE_MIN};
use crate::config::{Crossing, Mode, StationId};

/// Bytes of the clear part of a HELLO, after the header: sender and session.
pub const HELLO_CLEAR_LEN: usize = 18;

/// Parses the sender's number and its session id. Both are only claims until the rest of the frame
/// has been opened.
pub(crate) fn hello_clear(frame: &[u8]) -> Option<(StationId, Random128)> {
    let mut clear = Reader(frame.get(HEADER_LEN..)?);
    Some((clear.station()?, clear.array()?))
}

/// Body of a [`Kind::Hello`]; see [`crate::link::handshake`] for its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Random per start of the station: distinguishes a restart from a change of keys.
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
    /// Entries for stations that the sender has heard, at most [`PEERS_MAX`].
    pub to: Vec<HelloTo>,
    /// The sender's intervals.
    pub intervals: Intervals,
}

/// The entry of a HELLO for one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloTo {
    /// The station.
    pub station: StationId,
    /// The session of that station that this is about.
    pub session: Random128,
    /// A challenge for that session to answer; zero if none is open.
    pub challenge: Random128,
    /// The answer to that session's challenge; zero if there was none.
    pub answer: Random128,
    /// That session has answered, and its frames are accepted.
    pub accepted: bool,
    /// The sender asks whether that session accepts it.
    pub asks: bool,
    /// How the sender carries packets, if not coded as in [`Hello::mode`].
    pub instead: Option<Instead>,
    /// Most lanes of that station's window that the sender accepts.
    pub lanes: Lanes,
    /// Most symbols of each lane, 1 to [`MAX_WINDOW_SIZE`].
    pub lane_size: u16,
}

/// Ways to carry packets without a coded flow.
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
    /// The value for a way that [`Hello::mode`] cannot express.
    pub fn of(crossing: Crossing) -> Option<Self> {
        match crossing {
            Crossing::Block | Crossing::Window => None,
            Crossing::TcpNc => Some(Instead::TcpNc),
            Crossing::Plain => Some(Instead::Plain),
            Crossing::Relay => Some(Instead::Relay),
        }
    }

    /// From two bits; a value that this version does not know is ignored.
    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Instead::TcpNc),
            2 => Some(Instead::Plain),
            3 => Some(Instead::Relay),
            _ => None,
        }
    }

    /// As two bits.
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

/// Bytes of the body, without and for each entry.
pub(crate) const HELLO_LEN: usize = 8 + 1 + 2 + 2 + 1 + 4 + 1 + 4;
pub(crate) const HELLO_TO_LEN: usize = 2 + 16 + 16 + 16 + 1 + 2;

const ACCEPTED_BIT: u8 = 1;
const ASKS_BIT: u8 = 1 << 1;
const INSTEAD_SHIFT: u32 = 2;
const INSTEAD_MASK: u8 = 0b11;
const LANES_SHIFT: u32 = 4;
const LANES_MASK: u8 = 0b111;

impl Hello {
    /// Appends what the sender announces about itself: the body up to the entries.
    pub fn write_own(&self, out: &mut Vec<u8>) {
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
    }

    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_own(out);
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

    /// Parses a HELLO, which is the frame's only chunk.
    pub fn find(chunks: &[u8]) -> Option<Self> {
        let only = Chunks::only(chunks).filter(|chunk| chunk.kind == Kind::Hello)?;
        Hello::parse(only.body)
    }

    /// Parses a body.
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
                // A larger number than this version supports is taken for the largest supported.
                let lanes = Lanes::from_code(flags >> LANES_SHIFT & LANES_MASK);
                let lanes = lanes.unwrap_or(Lanes::MOST);
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
        let intervals = Intervals::read(&mut read);
        Some(Hello { instance, field, block_size, symbol_size, mode, base, to, intervals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::intervals::INTERVALS_LEN;
    use proptest::prelude::*;

    #[test]
    fn truncated_bodies_are_refused_at_every_length() {
        let hello = Hello {
            instance: 1,
            field: Field::Gf2,
            block_size: 150,
            symbol_size: 1450,
            mode: Mode::Window,
            base: 0,
            to: vec![HelloTo {
                station: StationId(2),
                session: [1; 16],
                challenge: [2; 16],
                answer: [3; 16],
                accepted: true,
                asks: false,
                instead: Some(Instead::TcpNc),
                lanes: Lanes::MOST,
                lane_size: 1_024,
            }],
            intervals: Intervals::default(),
        };
        let mut hello_bytes = Vec::new();
        hello.write(&mut hello_bytes);
        assert_eq!(Hello::parse(&hello_bytes), Some(hello));
        for len in 0..hello_bytes.len() - INTERVALS_LEN {
            assert_eq!(Hello::parse(&hello_bytes[..len]), None);
        }
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn no_parser_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Hello::parse(&bytes);
            let _ = Hello::find(&bytes);
        }
    }
}
