//! Routing messages as bytes: the fields of RFC 3561, Sections 5.1 to 5.3, with the short addresses
//! of IEEE 802.15.4, and the quality of the route so far.
//!
//! What nst-AODV omits of RFC 3561 has no field: lifetimes, prefixes, and all flags but "unknown
//! sequence number". Every request is answered by its destination only.

/// Address of a node.
pub type Address = u16;

/// Most destinations in a route error; a further error carries the rest.
pub const LOST_MAX: usize = 16;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ERROR: u8 = 3;
/// Flag of a request: the destination's sequence number is not known (RFC 3561, 5.1, "U").
const UNKNOWN: u8 = 0x80;

/// Length and quality of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Number of links.
    pub hops: u8,
    /// Product of the links' delivery ratios, in parts of 65535.
    pub quality: u16,
}

impl Cost {
    /// The cost of the empty route.
    pub const NONE: Cost = Cost { hops: 0, quality: u16::MAX };

    /// The cost with one more link of this quality; counts up to 255 links.
    #[must_use]
    pub fn with_link(self, quality: u16) -> Cost {
        let product = u32::from(self.quality) * u32::from(quality);
        let quality = (product + u32::from(u16::MAX) / 2) / u32::from(u16::MAX);
        Cost { hops: self.hops.saturating_add(1), quality: quality as u16 }
    }
}

/// A route request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Distinguishes it from other requests of the same origin.
    pub id: u16,
    /// The node that is looked for.
    pub destination: Address,
    /// The last sequence number of the destination known to the origin.
    pub destination_sequence: Option<u16>,
    /// The node that looks for a route.
    pub origin: Address,
    /// The origin's own sequence number.
    pub origin_sequence: u16,
    /// The route from the origin to the sender of this copy.
    pub cost: Cost,
}

/// A route reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The node that was looked for, which made this reply.
    pub destination: Address,
    /// The destination's own sequence number.
    pub destination_sequence: u16,
    /// The node that looked for a route.
    pub origin: Address,
    /// The route from the sender of this copy to the destination.
    pub cost: Cost,
}

/// A lost destination, and the sequence number that a new route to it must exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The destination.
    pub destination: Address,
    /// Its sequence number.
    pub sequence: u16,
}

/// Routing messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// RREQ, to all neighbours.
    Request(Request),
    /// RREP, along the route back to the origin.
    Reply(Reply),
    /// RERR, to the neighbours that route through this node; 1 to [`LOST_MAX`] destinations.
    Error(Vec<Lost>),
}

impl Message {
    /// The bytes: 14 for a request, 10 for a reply, 2 plus 4 for each destination for an error.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(14);
        let word = |bytes: &mut Vec<u8>, word: u16| bytes.extend(word.to_be_bytes());
        match self {
            Message::Request(request) => {
                let unknown = if request.destination_sequence.is_none() { UNKNOWN } else { 0 };
                bytes.extend([REQUEST | unknown, request.cost.hops]);
                word(&mut bytes, request.id);
                word(&mut bytes, request.destination);
                word(&mut bytes, request.destination_sequence.unwrap_or(0));
                word(&mut bytes, request.origin);
                word(&mut bytes, request.origin_sequence);
                word(&mut bytes, request.cost.quality);
            }
            Message::Reply(reply) => {
                bytes.extend([REPLY, reply.cost.hops]);
                word(&mut bytes, reply.destination);
                word(&mut bytes, reply.destination_sequence);
                word(&mut bytes, reply.origin);
                word(&mut bytes, reply.cost.quality);
            }
            Message::Error(lost) => {
                bytes.extend([ERROR, lost.len().min(LOST_MAX) as u8]);
                for lost in lost.iter().take(LOST_MAX) {
                    word(&mut bytes, lost.destination);
                    word(&mut bytes, lost.sequence);
                }
            }
        }
        bytes
    }

    /// Parses a message; `None` if it is malformed, or has the wrong length.
    pub fn parse(bytes: &[u8]) -> Option<Message> {
        let (&[kind, count], rest) = bytes.split_first_chunk::<2>()?;
        let words: Vec<u16> =
            rest.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        if rest.len() % 2 != 0 {
            return None;
        }
        match (kind & !UNKNOWN, &words[..]) {
            (REQUEST, &[id, destination, sequence, origin, origin_sequence, quality]) => {
                let destination_sequence = (kind & UNKNOWN == 0).then_some(sequence);
                let cost = Cost { hops: count, quality };
                Some(Message::Request(Request {
                    id,
                    destination,
                    destination_sequence,
                    origin,
                    origin_sequence,
                    cost,
                }))
            }
            (REPLY, &[destination, destination_sequence, origin, quality]) if kind == REPLY => {
                let cost = Cost { hops: count, quality };
                Some(Message::Reply(Reply { destination, destination_sequence, origin, cost }))
            }
            (ERROR, words)
                if kind == ERROR
                    && (1..=LOST_MAX).contains(&usize::from(count))
                    && words.len() == 2 * usize::from(count) =>
            {
                let lost = |pair: &[u16]| Lost { destination: pair[0], sequence: pair[1] };
                Some(Message::Error(words.chunks_exact(2).map(lost).collect()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> [Message; 4] {
        let request = Request {
            id: 0x0102,
            destination: 3,
            destination_sequence: Some(4),
            origin: 5,
            origin_sequence: 6,
            cost: Cost { hops: 7, quality: 0x0809 },
        };
        let lost = |destination| Lost { destination, sequence: 0xfffe };
        [
            Message::Request(request),
            Message::Request(Request { destination_sequence: None, ..request }),
            Message::Reply(Reply {
                destination: 1,
                destination_sequence: 2,
                origin: 3,
                cost: Cost { hops: 4, quality: 5 },
            }),
            Message::Error(vec![lost(1), lost(2)]),
        ]
    }

    #[test]
    fn messages_are_what_their_bytes_say() {
        let lengths = messages().map(|message| {
            let bytes = message.to_bytes();
            assert_eq!(Message::parse(&bytes), Some(message));
            bytes.len()
        });
        assert_eq!(lengths, [14, 14, 10, 10]);
        let known = [1, 7, 1, 2, 0, 3, 0, 4, 0, 5, 0, 6, 8, 9];
        assert_eq!(messages()[0].to_bytes(), known);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for message in messages() {
            let bytes = message.to_bytes();
            for len in 0..bytes.len() {
                assert_eq!(Message::parse(&bytes[..len]), None, "{len} bytes of {message:?}");
            }
            assert_eq!(Message::parse(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!(Message::parse(&[ERROR, 0]), None, "an error about nothing");
        assert_eq!(Message::parse(&[4, 0, 0, 0]), None, "no such kind");
        let many = [&[ERROR, 17][..], &[0; 68]].concat();
        assert_eq!(Message::parse(&many), None, "more than an error may have");
    }

    #[test]
    fn the_quality_of_a_way_is_the_product_of_its_links() {
        let half = u16::MAX / 2;
        let route = Cost::NONE.with_link(half).with_link(half);
        assert_eq!((route.hops, route.quality), (2, 16_383));
        assert_eq!(Cost::NONE.with_link(u16::MAX).quality, u16::MAX);
        assert_eq!(Cost { hops: 255, quality: 0 }.with_link(7), Cost { hops: 255, quality: 0 });
    }
}
