//! Packets of hosts in a mesh, written and checked independently of the code under test.

use std::net::Ipv4Addr;

/// What a packet carries; its number follows the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// A datagram of UDP.
    Datagram,
    /// A segment of TCP with timestamps.
    Segment,
}

/// Bytes of the number.
const NUMBER_LEN: usize = 4;
/// Distance between TCP sequence numbers of consecutive packets, which belong to several
/// connections and so mostly leave gaps.
const SEQUENCE_STEP: u32 = 400;

impl Carried {
    const ALL: [Self; 2] = [Carried::Datagram, Carried::Segment];

    fn protocol(self) -> u8 {
        match self {
            Carried::Datagram => 17,
            Carried::Segment => 6,
        }
    }

    /// Bytes of the IPv4 header and of the protocol's own.
    fn headers_len(self) -> usize {
        match self {
            Carried::Datagram => 28,
            Carried::Segment => 52,
        }
    }

    /// The shortest packet.
    pub(super) fn len_min(self) -> usize {
        self.headers_len() + NUMBER_LEN
    }
}

/// The ECN bits, which routers may set: congestion experienced.
const CE: u8 = 0b11;

/// The address of a node's host.
pub(super) fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, node as u8 + 1)
}

/// An address that no host has.
pub(super) fn nobody() -> Ipv4Addr {
    Ipv4Addr::new(10, 99, 0, 1)
}

/// Writes a packet, which is unique by its number.
pub(super) fn write(
    carried: Carried,
    (from, to): (Ipv4Addr, Ipv4Addr),
    (number, len): (u32, usize),
    (class, hops): (u8, u8),
) -> Vec<u8> {
    let mut packet = vec![0; len.max(carried.len_min())];
    let whole = packet.len() as u16;
    packet[..2].copy_from_slice(&[0x45, class]);
    packet[2..4].copy_from_slice(&whole.to_be_bytes());
    packet[6] = 0x40;
    packet[8..10].copy_from_slice(&[hops, carried.protocol()]);
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet[20..24].copy_from_slice(&[0x1f, 0x40 + (number % 4) as u8, 0x1f, 0x90]);
    match carried {
        Carried::Datagram => packet[24..26].copy_from_slice(&(whole - 20).to_be_bytes()),
        Carried::Segment => write_segment(number, &mut packet),
    }
    packet[carried.headers_len()..carried.len_min()].copy_from_slice(&number.to_be_bytes());
    let fill = |(at, byte): (usize, &mut u8)| {
        *byte = (number.wrapping_mul(0x9e37_79b1) >> (at % 24)) as u8 ^ at as u8;
    };
    packet[carried.len_min()..].iter_mut().enumerate().for_each(fill);
    let sum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Sequence number and flags of a segment, and when it was sent; one in 64 opens or resets a
/// connection.
fn write_segment(number: u32, packet: &mut [u8]) {
    packet[24..28].copy_from_slice(&number.wrapping_mul(SEQUENCE_STEP).to_be_bytes());
    let flags = match number / 4 % 64 {
        0 => 0x02,
        1 => 0x14,
        _ => 0x10,
    };
    packet[32..34].copy_from_slice(&[8 << 4, flags]);
    packet[40..44].copy_from_slice(&[1, 1, 8, 10]);
    packet[44..48].copy_from_slice(&number.to_be_bytes());
}

/// The checksum of a header: 0 if it contains a valid one (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// The number of a packet of ours; `None` for others, such as a router's message.
pub(super) fn number(packet: &[u8]) -> Option<u32> {
    let &protocol = packet.get(9).filter(|_| packet[0] == 0x45)?;
    let carried = Carried::ALL.into_iter().find(|carried| carried.protocol() == protocol)?;
    let number = packet.get(carried.headers_len()..carried.len_min())?.try_into().ok()?;
    Some(u32::from_be_bytes(number))
}

/// What is wrong with a delivered packet, given the one sent and the number of forwarders.
pub(super) fn fault(sent: &[u8], came: &[u8], forwarders: u8) -> Option<String> {
    if sent.len() != came.len() {
        return Some(format!("{} bytes, sent with {}", came.len(), sent.len()));
    }
    if came[8] != sent[8].wrapping_sub(forwarders) {
        return Some(format!("{} hops are left of {} after {forwarders}", came[8], sent[8]));
    }
    let marked = sent[1] & CE != 0 && came[1] == sent[1] | CE;
    if came[1] != sent[1] && !marked {
        return Some(format!("class of service {:#x}, sent as {:#x}", came[1], sent[1]));
    }
    if checksum(&came[..20]) != 0 {
        return Some("a header with a wrong checksum".to_owned());
    }
    let differs = |at: &usize| sent[*at] != came[*at] && !matches!(at, 1 | 8 | 10 | 11);
    let at = (0..sent.len()).find(differs)?;
    Some(format!("byte {at} is {:#x}, sent as {:#x}", came[at], sent[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_routers_change_is_no_fault_and_all_else_is() {
        for carried in Carried::ALL {
            let sent = write(carried, (address(0), address(2)), (7, 60), (0xb9, 9));
            assert_eq!((number(&sent), checksum(&sent[..20])), (Some(7), 0));
        }
        let sent = write(Carried::Datagram, (address(0), address(2)), (7, 60), (0xb9, 9));
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut came = sent.clone();
            came[8] = 8;
            change(&mut came);
            (came[10], came[11]) = (0, 0);
            let sum = checksum(&came[..20]);
            came[10..12].copy_from_slice(&sum.to_be_bytes());
            fault(&sent, &came, 1)
        };
        assert_eq!(with(&|_| {}), None);
        assert_eq!(with(&|came| came[1] |= CE), None, "it was marked");
        assert!(with(&|came| came[1] = 0).is_some() && with(&|came| came[8] = 9).is_some());
        assert!(with(&|came| came[40] ^= 1).is_some() && with(&|came| came[16] ^= 1).is_some());
        assert!(with(&|came| came.truncate(came.len() - 1)).is_some());
    }
}
