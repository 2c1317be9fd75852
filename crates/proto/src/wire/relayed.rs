//! Frames of relays: the receiver, and a frame of [`corridor_relay::wire`].
//!
//! ```text
//! to 2 (0: all in reach), length 2, the relay's frame, zeros up to the underlay's minimum frame
//! ```
//! The receiver is sealed with the rest. The link's destination address is not authenticated, and
//! differs if a frame is sent to all, or somebody resends it to another station.

use super::{END_TAG_LEN, END_TRAILER_LEN, Reader, write_station};
use crate::config::StationId;

/// Bytes before the relay's frame.
pub const RELAYED_LEN: usize = 4;
/// The number that stands for all in reach.
const ALL: StationId = StationId(0);

/// Body of a frame of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed<'a> {
    /// The receiver; `None`: all in reach.
    pub to: Option<StationId>,
    /// The relay's frame.
    pub frame: &'a [u8],
}

impl<'a> Relayed<'a> {
    /// Appends the body to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_station(self.to.unwrap_or(ALL), out);
        out.extend_from_slice(&(self.frame.len() as u16).to_be_bytes());
        out.extend_from_slice(self.frame);
    }

    /// Parses a body; `None` if it is malformed.
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let mut read = Reader(body);
        let to = read.station()?;
        let len = read.u16()?;
        let frame = read.take(len.into())?;
        let is_padding = read.0.iter().all(|&byte| byte == 0);
        let to = (to != ALL).then_some(to);
        (is_padding && !frame.is_empty()).then_some(Relayed { to, frame })
    }
}

/// Bytes of a packet's number between ends.
const NUMBER_LEN: usize = END_TRAILER_LEN - END_TAG_LEN;

/// What follows a packet between two ends that know each other's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Greater than in any packet of its sender before; only the low 56 bits are sent.
    pub number: u64,
    /// The authenticator that only the two ends can make.
    pub tag: [u8; END_TAG_LEN],
}

impl Trailer {
    /// A number as it is sent, and as its tag authenticates it.
    pub fn number_bytes(number: u64) -> [u8; NUMBER_LEN] {
        core::array::from_fn(|at| number.to_be_bytes()[8 - NUMBER_LEN + at])
    }

    /// Appends it to a packet.
    pub fn write(&self, packet: &mut Vec<u8>) {
        packet.extend_from_slice(&Self::number_bytes(self.number));
        packet.extend_from_slice(&self.tag);
    }

    /// Splits off the trailer; `None` if there is no room for one.
    pub fn split(bytes: &[u8]) -> Option<(&[u8], Self)> {
        let (packet, trailer) = bytes.split_last_chunk::<END_TRAILER_LEN>()?;
        let (number, tag) = trailer.split_at(NUMBER_LEN);
        let number = number.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
        Some((packet, Trailer { number, tag: tag.try_into().ok()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_survive_the_wire_and_padding_is_none_of_them() {
        for to in [None, Some(StationId(1)), Some(StationId(256)), Some(StationId(u16::MAX))] {
            let relayed = Relayed { to, frame: b"frame" };
            let mut body = Vec::new();
            relayed.write(&mut body);
            assert_eq!(body.len(), RELAYED_LEN + 5);
            assert_eq!(Relayed::parse(&body), Some(relayed));
            body.resize(40, 0);
            assert_eq!(Relayed::parse(&body), Some(relayed));
            body[39] = 1;
            assert_eq!(Relayed::parse(&body), None, "padding that says something");
        }
    }

    #[test]
    fn what_is_behind_a_packet_is_told_from_it() {
        let mut bytes = b"packet".to_vec();
        let trailer = Trailer { number: (1 << 56) - 2, tag: [7; END_TAG_LEN] };
        trailer.write(&mut bytes);
        assert_eq!(bytes.len(), 6 + END_TRAILER_LEN);
        assert_eq!(Trailer::split(&bytes), Some((&b"packet"[..], trailer)));
        assert_eq!(Trailer::split(&bytes[6..]), Some((&b""[..], trailer)));
        assert_eq!(Trailer::split(&bytes[7..]), None);
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        let mut body = Vec::new();
        Relayed { to: Some(StationId(7)), frame: b"frame" }.write(&mut body);
        for len in 0..body.len() {
            assert_eq!(Relayed::parse(&body[..len]), None, "{len}");
        }
        let changed = |at: usize, byte| {
            let mut body = body.clone();
            body[at] = byte;
            Relayed::parse(&body).is_some()
        };
        assert!(!changed(3, 6) && !changed(2, 1) && !changed(3, 0));
        assert!(!changed(3, 4), "what follows is no padding");
    }
}
