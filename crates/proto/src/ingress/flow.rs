//! What the ingress queue reads of an IP packet: to which flow it belongs, and whether congestion
//! can be marked on it.

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Fragment offset and "more fragments" of IPv4: such packets have no ports to rely on.
const FRAGMENT: u16 = 0x3fff;

/// A number that all packets of one flow share: over addresses, protocol, and ports if there are.
/// What is no IP packet belongs to one flow.
pub(crate) fn hash(packet: &[u8], seed: u64) -> u64 {
    let (addresses, ports) = key(packet);
    fold(seed, addresses.iter().chain(ports))
}

/// The number of the flow that goes the other way.
pub(crate) fn hash_reversed(packet: &[u8], seed: u64) -> u64 {
    let (addresses, ports) = key(packet);
    let (from, to) = addresses.split_at(addresses.len() / 2);
    let (from_port, to_port) = ports.split_at(ports.len() / 2);
    fold(seed, to.iter().chain(from).chain(to_port).chain(from_port))
}

fn fold<'a>(seed: u64, key: impl Iterator<Item = &'a u8>) -> u64 {
    key.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Addresses; ports, or the protocol.
fn key(packet: &[u8]) -> (&[u8], &[u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4_key(packet),
        Some(6) => ipv6_key(packet),
        _ => None,
    }
    .unwrap_or_default()
}

/// Addresses, and the ports.
fn ipv4_key(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let header_len = 4 * usize::from(packet[0] & 0xf);
    let addresses = packet.get(12..20)?;
    let whole = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & FRAGMENT == 0;
    let has_ports = whole && matches!(packet[9], TCP | UDP);
    let ports = if has_ports { packet.get(header_len..header_len + 4)? } else { &packet[9..10] };
    Some((addresses, ports))
}

fn ipv6_key(packet: &[u8]) -> Option<(&[u8], &[u8])> {
    let addresses = packet.get(8..40)?;
    let has_ports = matches!(packet[6], TCP | UDP);
    let ports = if has_ports { packet.get(40..44)? } else { &packet[6..7] };
    Some((addresses, ports))
}

/// Marks a packet as having met congestion (RFC 3168), if its sender understands that. Returns
/// whether it does.
pub(crate) fn mark_congestion(packet: &mut [u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 => mark_ipv4(packet),
        Some(6) if packet.len() >= 40 => {
            let capable = packet[1] & 0x30 != 0;
            packet[1] |= if capable { 0x30 } else { 0 };
            capable
        }
        _ => false,
    }
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    if before & 3 == 0 {
        return false;
    }
    let after = before | 3;
    packet[1] = after as u8;
    // The header's checksum, updated (RFC 1624, Eq. 3).
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 =
            header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn ipv4(tos: u8, protocol: u8, ports: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x45, tos, 0, 24, 1, 2, 0x40, 0, 64, protocol, 0, 0];
        packet.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend_from_slice(&ports);
        packet
    }

    #[test]
    fn marked_headers_have_a_right_checksum() {
        for tos in [1, 2, 0xb9, 0x02] {
            let mut packet = ipv4(tos, TCP, [0; 4]);
            assert!(mark_congestion(&mut packet));
            assert_eq!(packet[1], tos | 3);
            assert_eq!(checksum(&packet[..20]), 0, "a sum over all is zero");
        }
        let mut not_capable = ipv4(0xb8, TCP, [0; 4]);
        assert!(!mark_congestion(&mut not_capable));
        assert_eq!(not_capable, ipv4(0xb8, TCP, [0; 4]));
        let mut six = vec![0x60; 48];
        six[1] = 0x20;
        assert!(mark_congestion(&mut six) && six[1] == 0x30);
        six[1] = 0x0f;
        assert!(!mark_congestion(&mut six) && six[1] == 0x0f);
    }

    #[test]
    fn flows_are_told_apart_by_their_ports() {
        let a = hash(&ipv4(0, TCP, [0, 1, 0, 2]), 7);
        assert_eq!(a, hash(&ipv4(3, TCP, [0, 1, 0, 2]), 7));
        assert_ne!(a, hash(&ipv4(0, TCP, [0, 1, 0, 3]), 7));
        let ping = hash(&ipv4(0, 1, [0, 1, 0, 2]), 7);
        assert_eq!(ping, hash(&ipv4(0, 1, [0, 1, 0, 3]), 7));
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn nothing_panics(packet in proptest::collection::vec(any::<u8>(), 0..60), first: u8) {
            let mut packet = packet;
            if let Some(byte) = packet.first_mut() {
                *byte = first;
            }
            let _ = hash(&packet, 1);
            let len = packet.len();
            let _ = mark_congestion(&mut packet);
            prop_assert_eq!(packet.len(), len);
        }
    }
}
