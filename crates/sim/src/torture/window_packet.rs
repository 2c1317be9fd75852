//! Packets for flows in window mode, which looks into them: at their flow, at whether they need
//! order, and at whether congestion can be marked on them. Written from what the tunnel promises,
//! apart from the code that is looked at.

use corridor_proto::Delivery;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
/// Shortest packet that is unlike all others: no IP, and three bytes of its number.
pub(super) const PACKET_LEN_MIN: usize = 4;
/// Ports and number, behind the header of IP.
const BEHIND_IP: usize = 8;

/// Fills a packet so that no other of the run is like it. Its number decides what it is.
pub(super) fn fill(number: u32, packet: &mut [u8]) {
    packet.fill(0);
    let kind = number % 8;
    let number = number.to_be_bytes();
    let ip_len = match kind {
        0..3 => 0,
        3..7 => IPV4_LEN,
        _ => IPV6_LEN,
    };
    if ip_len == 0 || packet.len() < ip_len + BEHIND_IP {
        packet[0] = number[3] & 0xf; // No version of IP.
        packet[1..PACKET_LEN_MIN].copy_from_slice(&number[1..]);
        return;
    }
    let ecn = number[3] / 8 % 4;
    if ip_len == IPV4_LEN {
        let protocol = match kind {
            3 | 4 => TCP,
            5 => UDP,
            _ => ICMP,
        };
        packet[..2].copy_from_slice(&[0x45, 0xa0 | ecn]);
        packet[8..10].copy_from_slice(&[64, protocol]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    } else {
        packet[..2].copy_from_slice(&[0x6a, ecn << 4]);
        packet[6] = if number[3] % 16 == 7 { UDP } else { ICMPV6 };
        packet[23] = 1;
        packet[39] = 2;
    }
    packet[ip_len + 1] = number[3] / 32 % 3;
    packet[ip_len + 4..ip_len + BEHIND_IP].copy_from_slice(&number);
}

fn version(packet: &[u8]) -> u8 {
    packet.first().map_or(0, |first| first >> 4)
}

/// What packets of one flow share; they must not overtake each other in queues.
pub(super) fn flow_of(packet: &[u8]) -> Vec<u8> {
    let (key, protocol, ports) = match version(packet) {
        4 if packet.len() >= IPV4_LEN + BEHIND_IP => (&packet[12..20], packet[9], IPV4_LEN),
        6 if packet.len() >= IPV6_LEN + BEHIND_IP => (&packet[8..40], packet[6], IPV6_LEN),
        _ => return Vec::new(),
    };
    let mut flow = [key, &[protocol]].concat();
    if matches!(protocol, TCP | UDP) {
        flow.extend_from_slice(&packet[ports..ports + 4]);
    }
    flow
}

/// Whether a packet has to stay behind those that were sent before it.
pub(super) fn needs_order(packet: &[u8], delivery: Delivery) -> bool {
    let protocol = match version(packet) {
        4 if packet.len() >= IPV4_LEN => packet[9],
        6 if packet.len() >= IPV6_LEN => packet[6],
        _ => TCP,
    };
    match delivery {
        Delivery::InOrder => true,
        Delivery::Immediate => false,
        Delivery::Auto => !matches!(protocol, ICMP | UDP | ICMPV6),
    }
}

/// The two bits of ECN (RFC 3168).
fn ecn(packet: &[u8]) -> u8 {
    match version(packet) {
        4 if packet.len() >= IPV4_LEN => packet[1] & 3,
        6 if packet.len() >= IPV6_LEN => packet[1] >> 4 & 3,
        _ => 0,
    }
}

/// The packet as it is whether congestion was marked on it or not.
pub(super) fn unmarked(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    match version(&packet) {
        4 if packet.len() >= IPV4_LEN => {
            packet[1] &= !3;
            packet[10..12].fill(0);
        }
        6 if packet.len() >= IPV6_LEN => packet[1] &= 0xcf,
        _ => {}
    }
    packet
}

/// Whether a packet is one that went in, or that with congestion marked by the rules.
pub(super) fn is_marked_copy(given: &[u8], sent: &[u8]) -> bool {
    given == sent || (unmarked(given) == unmarked(sent) && ecn(given) != 0 && ecn(sent) == 3)
}
