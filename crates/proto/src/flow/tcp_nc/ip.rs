//! IP packets between the layers.

use corridor_packet::{End, IPV6_LEN, PacketRef, write_ip};

/// Protocol number of coded packets and feedback: the one for experiments (RFC 3692).
pub const IP_PROTOCOL: u8 = 253;

/// Prepends an IP header and the connection's ports to a message of the layers.
pub fn wrap(from: End, to: End, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(IPV6_LEN + 4 + payload.len());
    write_ip(from.0, to.0, IP_PROTOCOL, 4 + payload.len(), &mut packet);
    packet.extend_from_slice(&from.1.to_be_bytes());
    packet.extend_from_slice(&to.1.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// The ends and the message in a packet between layers; `None` if it is not one.
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
