//! ICMP (RFC 792) and ICMPv6 (RFC 4443) error messages to the sender of a packet that cannot be
//! forwarded. They quote the beginning of the packet, so that the sender can tell what they are
//! about.

use std::net::IpAddr;

use corridor_packet::{Fragment, IPV4_LEN, IPV6_LEN, Ip, PacketRef, checksum, protocol, write_ip};

/// Longest ICMP error message, including its IP header (RFC 1812, Section 4.3.2.3).
pub(crate) const IPV4_MESSAGE_LEN_MAX: usize = 576;
/// Longest ICMPv6 error message: IPv6's minimum MTU (RFC 4443, Section 3).
pub(crate) const IPV6_MESSAGE_LEN_MAX: usize = 1280;
/// Type, code, checksum, and four bytes that depend on the type.
const ICMP_HEADER_LEN: usize = 8;

/// The part of a message before the quoted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Type and code.
    kind: [u8; 2],
    /// The four bytes after the checksum; their meaning depends on the type.
    rest: u32,
}

impl Message {
    /// ICMP's "fragmentation needed and DF set", with the MTU of the next hop.
    pub(crate) fn fragmentation_needed(mtu: u16) -> Self {
        Message { kind: [3, 4], rest: mtu.into() }
    }

    /// ICMPv6's "packet too big", with the MTU of the next hop.
    pub(crate) fn packet_too_big(mtu: u32) -> Self {
        Message { kind: [2, 0], rest: mtu }
    }
}

/// Why a packet goes no further, other than its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Its hop limit is used up.
    HopsUsedUp,
    /// Its destination is not known.
    NoRoute,
}

impl Stopped {
    /// Time exceeded in transit, or host unreachable; for IPv6, hop limit exceeded in transit, or
    /// no route to destination.
    fn message(self, ip: Ip) -> Message {
        let kind = match (self, ip) {
            (Stopped::HopsUsedUp, Ip::V6) => [3, 0],
            (Stopped::HopsUsedUp, _) => [11, 0],
            (Stopped::NoRoute, Ip::V6) => [1, 0],
            (Stopped::NoRoute, _) => [3, 1],
        };
        Message { kind, rest: 0 }
    }
}

/// Appends the message that a packet cannot be forwarded. Its source is `from`, or the packet's
/// destination if `from` is `None`. Returns whether a message was written, as in [`quote`].
pub(crate) fn write_stopped(
    packet: PacketRef<'_>,
    from: Option<IpAddr>,
    why: Stopped,
    out: &mut Vec<u8>,
) -> bool {
    quote(packet, from, why.message(packet.view().ip()), out).is_some()
}

/// Appends a message about a packet. Its source is `from`, or the packet's destination if `from` is
/// `None`. `None`: no message is sent about error messages, about packets without a single sender
/// and receiver (RFC 1812, Section 4.3.2.7; RFC 4443, Section 2.4), and about what is not IP.
pub(crate) fn quote(
    packet: PacketRef<'_>,
    from: Option<IpAddr>,
    message: Message,
    out: &mut Vec<u8>,
) -> Option<()> {
    let (sender, receiver) = packet.addresses()?;
    if is_error(packet)? || sender.is_unspecified() || !is_single(sender) || !is_single(receiver) {
        return None;
    }
    let is_v4 = sender.is_ipv4();
    let from = from.filter(|from| from.is_ipv4() == is_v4).unwrap_or(receiver);
    let (protocol, room) = match is_v4 {
        true => (protocol::ICMP, IPV4_MESSAGE_LEN_MAX - IPV4_LEN),
        false => (protocol::ICMPV6, IPV6_MESSAGE_LEN_MAX - IPV6_LEN),
    };
    let quoted = packet.len().min(room - ICMP_HEADER_LEN);
    let len = ICMP_HEADER_LEN + quoted;
    write_ip(from, sender, protocol, len, out);
    let start = out.len();
    out.extend_from_slice(&[message.kind[0], message.kind[1], 0, 0]);
    out.extend_from_slice(&message.rest.to_be_bytes());
    out.extend_from_slice(&packet[..quoted]);
    // Only ICMPv6 has one (RFC 4443, Section 2.3).
    let pseudo_header =
        if is_v4 { 0 } else { checksum::pseudo_header(from, sender, protocol, len) };
    let checksum = !checksum::fold(pseudo_header + checksum::sum(&out[start..]));
    out[start + 2..start + 4].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// Whether a packet is, or may be, an error message; `None` if its transport header is missing.
fn is_error(packet: PacketRef<'_>) -> Option<bool> {
    let view = packet.view();
    if view.fragment() == Fragment::Later {
        return None;
    }
    let kind = packet.get(view.transport()..)?.first();
    Some(match (view.ip(), view.protocol()) {
        // Echo requests and replies may be answered; every other kind counts as an error.
        (Ip::V4, protocol::ICMP) => !matches!(kind, Some(0 | 8)),
        (Ip::V6, protocol::ICMPV6) => kind.is_none_or(|&kind| kind < 128),
        _ => false,
    })
}

/// Whether an address is that of a single host.
fn is_single(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_multicast() && !v4.is_broadcast(),
        IpAddr::V6(v6) => !v6.is_multicast(),
    }
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
        assert_eq!(checksum::fold(checksum::sum(icmp.slice())), 0xffff);
        // No error message is sent about an error message: that would never end.
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
