//! IP packets that carry what the layers say to each other.

use corridor_packet::{End, IPV6_LEN, PacketRef, write_ip};

/// Protocol number of coded packets and of feedback: for experiments (RFC 3692).
pub const IP_PROTOCOL: u8 = 253;

/// Puts what the layers say to each other behind an IP header and the connection's ports.
pub fn wrap(from: End, to: End, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(IPV6_LEN + 4 + payload.len());
    write_ip(from.0, to.0, IP_PROTOCOL, 4 + payload.len(), &mut packet);
    packet.extend_from_slice(&from.1.to_be_bytes());
    packet.extend_from_slice(&to.1.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// What the layers say to each other: from whom to whom, and what.
pub fn unwrap(packet: PacketRef<'_>) -> Option<(End, End, &[u8])> {
    let view = packet.view();
    if view.protocol() != IP_PROTOCOL || !view.is_whole() {
        return None;
    }
    let (from, to) = packet.addresses()?;
    let said = packet.bytes().get(view.transport()..view.end())?;
    let (&[a, b, c, d], rest) = said.split_first_chunk()?;
    Some(((from, u16::from_be_bytes([a, b])), (to, u16::from_be_bytes([c, d])), rest))
}
