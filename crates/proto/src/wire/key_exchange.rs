//! Frames in which two stations with key pairs agree on a secret, or one gives another the secrets
//! that it seals under.
//!
//! ```text
//!  0        1        3        4            8                           len-16    len
//!  +--------+--------+--------+------------+---------------------------+---------+
//!  | v |3|1 | sender |  step  |  exchange  |  Noise message            |   MAC   |
//!  +--------+--------+--------+------------+---------------------------+---------+
//! ```
//! The first byte is that of a HELLO with its lowest bit set, which no HELLO has. `sender` is the
//! number of the sending station; `step` is 1 for an initiation, 2 for a response and 5 for a
//! handout; `exchange` is four random bytes of the initiator, which the answer repeats. The Noise
//! messages are those of IKpsk2: the payload of an initiation is the initiator's timestamp (8),
//! that of a response is empty, and that of a handout is the two secrets (32 each) that its sender
//! seals under now and next. The MAC is the first 16 bytes of an HMAC-SHA256 of everything before
//! it, under a key derived from the receiver's public key: a sender that does not know that key
//! cannot make the receiver compute a Diffie-Hellman.

use super::{KEY_EXCHANGE, Reader, VERSION, write_station};
use crate::config::StationId;
use crate::psk::PSK_LEN;

/// Bytes in front of the Noise message.
pub const KEY_EXCHANGE_HEAD_LEN: usize = 8;
/// Bytes of the MAC at the end.
pub const KEY_EXCHANGE_MAC_LEN: usize = 16;
/// Bytes of an initiator's timestamp.
pub const TIMESTAMP_LEN: usize = 8;
/// Bytes of the Noise message of an initiation: an ephemeral key, a sealed static key, a sealed
/// timestamp.
pub const INITIATION_NOISE_LEN: usize = 32 + (32 + 16) + (TIMESTAMP_LEN + 16);
/// Bytes of the Noise message of a response: an ephemeral key, and a tag.
pub const RESPONSE_NOISE_LEN: usize = 32 + 16;
/// Bytes of an initiation.
pub const INITIATION_LEN: usize =
    KEY_EXCHANGE_HEAD_LEN + INITIATION_NOISE_LEN + KEY_EXCHANGE_MAC_LEN;
/// Bytes of a response: fewer than of an initiation, so that it cannot amplify a flood.
pub const RESPONSE_LEN: usize = KEY_EXCHANGE_HEAD_LEN + RESPONSE_NOISE_LEN + KEY_EXCHANGE_MAC_LEN;

/// Bytes of a handout's content: two secrets.
pub const HANDOUT_SECRETS_LEN: usize = 2 * PSK_LEN;
/// Bytes of the Noise message of a handout.
pub const HANDOUT_NOISE_LEN: usize = RESPONSE_NOISE_LEN + HANDOUT_SECRETS_LEN;
/// Bytes of a handout. An initiation that asks for one is padded to the same length with zeros.
pub const HANDOUT_LEN: usize = RESPONSE_LEN + HANDOUT_SECRETS_LEN;

const _: () = assert!(RESPONSE_LEN <= INITIATION_LEN && INITIATION_LEN <= HANDOUT_LEN);

/// The messages of a key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The first.
    Initiation,
    /// The second, between two stations that seal for each other alone.
    Response,
    /// The second, from a station whose frames several stations open: contains its secrets.
    Handout,
}

impl Step {
    fn code(self) -> u8 {
        match self {
            Step::Initiation => 1,
            Step::Response => 2,
            Step::Handout => 5,
        }
    }

    fn frame_len(self) -> usize {
        match self {
            Step::Initiation => INITIATION_LEN,
            Step::Response => RESPONSE_LEN,
            Step::Handout => HANDOUT_LEN,
        }
    }
}

/// A key exchange frame, of the length of its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyExchange<'a> {
    /// The message, without the padding of an initiation.
    pub frame: &'a [u8],
    /// The sender, as claimed.
    pub sender: StationId,
    /// Which message it is.
    pub step: Step,
    /// Random bytes of the initiator.
    pub exchange: [u8; 4],
    /// The Noise message.
    pub noise: &'a [u8],
    /// Everything that the MAC authenticates.
    pub authenticated: &'a [u8],
    /// The MAC.
    pub mac: [u8; KEY_EXCHANGE_MAC_LEN],
}

impl<'a> KeyExchange<'a> {
    /// Appends what precedes the Noise message to `out`.
    pub fn write_head(sender: StationId, step: Step, exchange: [u8; 4], out: &mut Vec<u8>) {
        out.push(first_byte());
        write_station(sender, out);
        out.push(step.code());
        out.extend_from_slice(&exchange);
    }

    /// Parses a frame; `None` for anything else, including any other length. An initiation may be
    /// padded with zeros, which allows a longer answer to its address.
    pub fn parse(frame: &'a [u8]) -> Option<Self> {
        let mut read = Reader(frame);
        if read.u8()? != first_byte() {
            return None;
        }
        let sender = read.station()?;
        let step = match read.u8()? {
            1 => Step::Initiation,
            2 => Step::Response,
            5 => Step::Handout,
            _ => return None,
        };
        let (frame, rest) = frame.split_at_checked(step.frame_len())?;
        let fills = step == Step::Initiation && rest.iter().all(|&byte| byte == 0);
        if !(rest.is_empty() || fills) {
            return None;
        }
        let exchange = read.array()?;
        let (authenticated, mac) = frame.split_at(frame.len() - KEY_EXCHANGE_MAC_LEN);
        let noise = &authenticated[KEY_EXCHANGE_HEAD_LEN..];
        Some(KeyExchange {
            frame,
            sender,
            step,
            exchange,
            noise,
            authenticated,
            mac: mac.try_into().ok()?,
        })
    }
}

pub(super) fn first_byte() -> u8 {
    VERSION << 4 | KEY_EXCHANGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Header;

    #[test]
    fn what_was_written_is_read_and_is_no_frame_of_any_other_kind() {
        let steps = [
            (Step::Initiation, INITIATION_LEN),
            (Step::Response, RESPONSE_LEN),
            (Step::Handout, HANDOUT_LEN),
        ];
        for (step, len) in steps {
            let mut frame = Vec::new();
            KeyExchange::write_head(StationId(60_009), step, [1, 2, 3, 4], &mut frame);
            frame.resize(len, 7);
            let read = KeyExchange::parse(&frame).unwrap();
            assert_eq!((read.sender, read.step), (StationId(60_009), step));
            assert_eq!((read.exchange, read.mac), ([1, 2, 3, 4], [7; 16]));
            assert_eq!(read.noise.len() + KEY_EXCHANGE_HEAD_LEN, read.authenticated.len());
            assert_eq!(Header::parse(&frame), None);
            for other in (0..len).chain([len + 1, 1500]) {
                frame.resize(other, 7);
                assert_eq!(KeyExchange::parse(&frame), None, "{other} bytes");
            }
        }
    }
}
