//! Messages of ICMP (RFC 792) and ICMPv6 (RFC 4443) to the sender of a packet that goes no further,
//! with the packet's beginning, by which the sender knows what it is about.

use std::net::{IpAddr, Ipv4Addr};

use corridor_packet::{
    Fragment, IPV4_LEN, IPV6_LEN, Ip, PacketRef, folded, protocol, sum, write_ip,
};

/// Longest message, with its IP header (RFC 1812, Section 4.3.2.3).
pub(crate) const IPV4_MESSAGE_LEN_MAX: usize = 576;
/// The same of ICMPv6: the least MTU of IPv6 (RFC 4443, Section 3).
const IPV6_MESSAGE_LEN_MAX: usize = 1280;
/// Type, code, checksum, and four bytes that depend on the type.
const ICMP_HEADER_LEN: usize = 8;

/// Type and code: "fragmentation needed and DF set".
pub(crate) const UNREACHABLE_TOO_LONG: [u8; 2] = [3, 4];
/// Type and code of ICMPv6's "packet too big".
pub(crate) const ICMPV6_PACKET_TOO_BIG: [u8; 2] = [2, 0];

/// Why a packet goes no further, where its length is not the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It has crossed as many routers as it may.
    HopsUsedUp,
    /// Nobody is known to have its destination.
    NoRoute,
}

impl Stopped {
    /// Type and code for IPv4: time exceeded in transit; host unreachable.
    fn v4(self) -> [u8; 2] {
        match self {
            Stopped::HopsUsedUp => [11, 0],
            Stopped::NoRoute => [3, 1],
        }
    }

    /// Type and code for IPv6: hop limit exceeded in transit; no route to destination.
    fn v6(self) -> [u8; 2] {
        match self {
            Stopped::HopsUsedUp => [3, 0],
            Stopped::NoRoute => [1, 0],
        }
    }
}

/// Appends the message that a packet goes no further, as if from `from`, or else from where it goes
/// to. Whether there is one, as in [`quote_v4`].
pub(crate) fn write_stopped(
    packet: PacketRef<'_>,
    from: Option<IpAddr>,
    why: Stopped,
    out: &mut Vec<u8>,
) -> bool {
    match packet.view().ip() {
        Ip::V4 => quote_v4(packet, from, why.v4(), 0, out),
        Ip::V6 => quote_v6(packet, from, why.v6(), 0, out),
        Ip::None => None,
    }
    .is_some()
}

/// Appends a message about a packet of IPv4, as if from `from`, or else from where it goes to;
/// `rest` is what follows the checksum. `None`: there is no message for messages of errors, and for
/// what has no single sender and receiver (RFC 1812, Section 4.3.2.7).
pub(crate) fn quote_v4(
    packet: PacketRef<'_>,
    from: Option<IpAddr>,
    kind: [u8; 2],
    rest: u32,
    out: &mut Vec<u8>,
) -> Option<()> {
    let view = packet.view();
    if view.fragment() == Fragment::Later {
        return None;
    }
    let payload = packet.get(view.transport()..)?;
    // Echoes are answered; of all other kinds none is taken for a question.
    let is_question = |kind: &u8| matches!(kind, 0 | 8);
    if view.protocol() == protocol::ICMP && !payload.first().is_some_and(is_question) {
        return None;
    }
    let (IpAddr::V4(sender), IpAddr::V4(receiver)) = packet.addresses()? else { return None };
    let is_single = |address: Ipv4Addr| {
        !address.is_unspecified() && !address.is_multicast() && !address.is_broadcast()
    };
    if !is_single(sender) || !is_single(receiver) {
        return None;
    }
    let quoted = packet.len().min(IPV4_MESSAGE_LEN_MAX - IPV4_LEN - ICMP_HEADER_LEN);
    let from = from.unwrap_or(receiver.into());
    write_ip(from, sender.into(), protocol::ICMP, ICMP_HEADER_LEN + quoted, out);
    let start = out.len();
    write_body(kind, rest, &packet[..quoted], out);
    let checksum = !folded(sum(&out[start..]));
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// The same of IPv6 (RFC 4443, Section 2.4).
pub(crate) fn quote_v6(
    packet: PacketRef<'_>,
    from: Option<IpAddr>,
    kind: [u8; 2],
    rest: u32,
    out: &mut Vec<u8>,
) -> Option<()> {
    let view = packet.view();
    let is_error = |kind: &u8| *kind < 128;
    if view.protocol() == protocol::ICMPV6 && packet.get(view.transport()).is_none_or(is_error) {
        return None;
    }
    let (IpAddr::V6(sender), IpAddr::V6(receiver)) = packet.addresses()? else { return None };
    if sender.is_unspecified() || sender.is_multicast() || receiver.is_multicast() {
        return None;
    }
    let quoted = packet.len().min(IPV6_MESSAGE_LEN_MAX - IPV6_LEN - ICMP_HEADER_LEN);
    let len = ICMP_HEADER_LEN + quoted;
    let from = match from {
        Some(IpAddr::V6(from)) => from,
        _ => receiver,
    };
    write_ip(from.into(), sender.into(), protocol::ICMPV6, len, out);
    let start = out.len();
    write_body(kind, rest, &packet[..quoted], out);
    let pseudo =
        sum(&from.octets()) + sum(&sender.octets()) + len as u64 + u64::from(protocol::ICMPV6);
    let checksum = !folded(pseudo + sum(&out[start..]));
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

fn write_body(kind: [u8; 2], rest: u32, quoted: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind[0], kind[1], 0, 0]);
    out.extend_from_slice(&rest.to_be_bytes());
    out.extend_from_slice(quoted);
}

#[cfg(test)]
mod tests {
    use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, SlicedPacket, TransportSlice};
    use etherparse::{icmpv4, icmpv6};

    use super::*;

    const FROM: [u8; 4] = [10, 9, 0, 1];
    const TO: [u8; 4] = [10, 9, 0, 2];
    const ROUTER: [u8; 4] = [10, 9, 0, 9];
    const FROM6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    const TO6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

    #[test]
    fn a_router_says_that_a_packet_has_used_up_its_hops() {
        let mut packet = Vec::new();
        PacketBuilder::ipv4(FROM, TO, 1).udp(1, 2).write(&mut packet, b"data").unwrap();
        let mut message = Vec::new();
        let packet = PacketRef::read(&packet);
        assert!(write_stopped(packet, Some(ROUTER.into()), Stopped::HopsUsedUp, &mut message));
        assert_eq!(&message[12..20], [ROUTER, FROM].concat());
        let sliced = SlicedPacket::from_ip(&message).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("no ICMP") };
        let expected = icmpv4::TimeExceededCode::TtlExceededInTransit;
        assert_eq!(icmp.icmp_type(), Icmpv4Type::TimeExceeded(expected));
        assert_eq!(icmp.payload(), packet.bytes());
        assert_eq!(folded(sum(icmp.slice())), 0xffff);
        // An error about an error would never end.
        let error = message.clone();
        let router = Some(ROUTER.into());
        let mut none = Vec::new();
        assert!(!write_stopped(PacketRef::read(&error), router, Stopped::NoRoute, &mut none));
    }

    #[test]
    fn nobody_but_the_destination_says_that_there_is_no_route() {
        let mut packet = Vec::new();
        PacketBuilder::ipv6(FROM6, TO6, 64).udp(1, 2).write(&mut packet, b"data").unwrap();
        let mut message = Vec::new();
        assert!(write_stopped(PacketRef::read(&packet), None, Stopped::NoRoute, &mut message));
        let sliced = SlicedPacket::from_ip(&message).unwrap();
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("no ICMP") };
        let expected = icmpv6::DestUnreachableCode::NoRoute;
        assert_eq!(icmp.icmp_type(), Icmpv6Type::DestinationUnreachable(expected));
        assert!(icmp.is_checksum_valid(TO6, FROM6));
        assert_eq!(&message[8..24], TO6);
    }
}
