//! Protection against floods of messages from strangers: a cookie for the address that a message
//! came from, and messages that prove knowledge of it.
//!
//! ```text
//!  0        1        3        4                       20                    36
//!  +--------+--------+--------+-----------------------+---------------------+
//!  | v | 3  | sender |   3    |  what it answers      |  cookie             |
//!  +--------+--------+--------+-----------------------+---------------------+
//!  | v | 3  | sender |   4    |  MAC under a cookie   |  HELLO or initiation ...
//!  +--------+--------+--------+-----------------------+---------------------
//! ```
//! The first byte is that of a key exchange, with a step of its own. A cookie repeats the last 16
//! bytes of the message that it answers (a HELLO's tag, an initiation's MAC), which only a station
//! that has seen that very message knows. It is not authenticated otherwise, and proves no more
//! than an address. A message has at most one such MAC in front.

use super::key_exchange::first_byte;
use super::{Header, KeyExchange, Random128, Reader, Step, TAG_LEN, write_station};
use crate::config::StationId;

const COOKIE: u8 = 3;
const WITH_COOKIE: u8 = 4;

/// Bytes of a cookie's frame: fewer than in any message that it answers.
pub const COOKIE_LEN: usize = 1 + 2 + 1 + 16 + 16;
/// Bytes in front of a message that prove knowledge of a cookie.
pub const COOKIE_MAC_HEAD_LEN: usize = 1 + 2 + 1 + 16;

/// A frame that carries a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieReply {
    /// The sender, as claimed.
    pub sender: StationId,
    /// The part of the message that it answers: see [`asked_by`].
    pub answers: Random128,
    /// The cookie, which messages from the address that this was sent to have to prove to know.
    pub cookie: Random128,
}

impl CookieReply {
    /// The frame.
    pub fn frame(&self) -> [u8; COOKIE_LEN] {
        let mut frame = Vec::with_capacity(COOKIE_LEN);
        write_head(self.sender, COOKIE, &mut frame);
        frame.extend_from_slice(&self.answers);
        frame.extend_from_slice(&self.cookie);
        frame.try_into().expect("as long as its parts")
    }

    /// Parses a frame; `None` for anything else.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let sender = head(frame, COOKIE)?;
        let mut read = Reader(frame.get(4..)?);
        let reply = CookieReply { sender, answers: read.array()?, cookie: read.array()? };
        read.0.is_empty().then_some(reply)
    }
}

/// Puts a MAC in front of a message.
pub fn wrap(sender: StationId, mac: &Random128, message: &mut Vec<u8>) {
    let mut head = Vec::with_capacity(COOKIE_MAC_HEAD_LEN);
    write_head(sender, WITH_COOKIE, &mut head);
    head.extend_from_slice(mac);
    message.splice(..0, head);
}

/// Splits a frame into the MAC, if it has one in front, and the message.
///
/// A frame with a second MAC after the first is not split, and nobody understands it. So splitting
/// again changes nothing: what a [`Gate`](crate::Gate) has examined is what a station accepts.
pub fn unwrap(frame: &[u8]) -> (Option<Random128>, &[u8]) {
    let wrapped = || {
        head(frame, WITH_COOKIE)?;
        let (front, message) = frame.split_at_checked(COOKIE_MAC_HEAD_LEN)?;
        let is_nested = head(message, WITH_COOKIE).is_some();
        Some((front[4..].try_into().ok()?, message)).filter(|_| !is_nested)
    };
    wrapped().map_or((None, frame), |(mac, message)| (Some(mac), message))
}

/// What a cookie that answers this message has to repeat; `None` if it is neither HELLO nor
/// initiation.
pub fn asked_by(message: &[u8]) -> Option<Random128> {
    if Header::parse(message).is_some_and(|header| header.is_hello) {
        return message.last_chunk::<TAG_LEN>().copied();
    }
    let exchange = KeyExchange::parse(message)?;
    (exchange.step == Step::Initiation).then_some(exchange.mac)
}

fn write_head(sender: StationId, step: u8, out: &mut Vec<u8>) {
    out.push(first_byte());
    write_station(sender, out);
    out.push(step);
}

/// The sender of a frame with this step.
fn head(frame: &[u8], step: u8) -> Option<StationId> {
    let mut read = Reader(frame);
    let is_first = read.u8()? == first_byte();
    let sender = read.station()?;
    (is_first && read.u8()? == step).then_some(sender)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_survives_the_wire_and_no_other_length_is_one() {
        let reply = CookieReply { sender: StationId(700), answers: [1; 16], cookie: [2; 16] };
        let frame = reply.frame();
        assert_eq!(CookieReply::parse(&frame), Some(reply));
        assert_eq!((Header::parse(&frame), KeyExchange::parse(&frame)), (None, None));
        let longer = [&frame[..], &[0]].concat();
        for len in 0..COOKIE_LEN {
            assert_eq!(CookieReply::parse(&frame[..len]), None);
        }
        assert_eq!(CookieReply::parse(&longer), None);
    }

    #[test]
    fn a_message_comes_out_of_what_was_put_in_front_of_it() {
        let mut message = vec![7; 50];
        wrap(StationId(3), &[9; 16], &mut message);
        assert_eq!(unwrap(&message), (Some([9; 16]), &[7; 50][..]));
        for len in 0..COOKIE_MAC_HEAD_LEN {
            assert_eq!(unwrap(&message[..len]), (None, &message[..len]));
        }
    }

    #[test]
    fn messages_with_a_cookie_do_not_nest_and_taking_one_apart_again_changes_nothing() {
        let mut message = vec![7; 50];
        for depth in 1..5 {
            wrap(StationId(3), &[9; 16], &mut message);
            let (mac, inner) = unwrap(&message);
            assert_eq!((mac.is_some(), inner.len() < message.len()), (depth == 1, depth == 1));
            assert_eq!(unwrap(inner), (None, inner));
            let understood = (Header::parse(inner), KeyExchange::parse(inner));
            assert_eq!(understood, (None, None), "{depth}");
        }
    }
}
