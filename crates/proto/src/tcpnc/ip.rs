//! IP packets that carry what the layers say to each other.

use etherparse::SlicedPacket;

use crate::tcp::{End, IP_HEADER_LEN_MAX, addresses, write_ip};

/// Protocol number of coded packets and of feedback: for experiments (RFC 3692).
pub const IP_PROTOCOL: u8 = 253;

/// Puts what the layers say to each other behind an IP header and the connection's ports.
pub fn wrap(from: End, to: End, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(IP_HEADER_LEN_MAX + 4 + payload.len());
    write_ip(from.0, to.0, IP_PROTOCOL, 4 + payload.len(), &mut packet);
    packet.extend_from_slice(&from.1.to_be_bytes());
    packet.extend_from_slice(&to.1.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// What the layers say to each other: from whom to whom, and what.
pub fn unwrap(packet: &[u8]) -> Option<(End, End, &[u8])> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let net = sliced.net.as_ref()?;
    let (from, to) = addresses(net)?;
    let payload = net.ip_payload_ref().filter(|payload| payload.ip_number.0 == IP_PROTOCOL)?;
    let (&[a, b, c, d], rest) = payload.payload.split_first_chunk()?;
    Some(((from, u16::from_be_bytes([a, b])), (to, u16::from_be_bytes([c, d])), rest))
}
