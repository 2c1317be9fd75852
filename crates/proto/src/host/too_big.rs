//! What a host is told about a packet that is longer than the tunnel carries: ICMP's "fragmentation
//! needed" (RFC 792, RFC 1191) and ICMPv6's "packet too big" (RFC 4443, Section 3.2).
//!
//! While the tunnel's device has the tunnel's MTU, the host does this by itself. This module is
//! needed for packets already on their way when the MTU shrinks, and where IPv6 forbids a device
//! MTU so small.

use std::net::IpAddr;

use corridor_packet::{Ip, PacketRef, may_be_fragmented};

use super::icmp_error::{Message, quote};

/// Lowest MTU that an ICMPv6 message may report (RFC 8201, Section 4).
const IPV6_MTU_MIN: usize = 1280;

/// Appends the message that a packet is longer than `mtu` bytes. Its source is `from`, or the
/// packet's destination if `from` is `None`: the host ignores messages from its own addresses.
/// Returns whether there is a message: none is sent about packets that may be fragmented, about
/// error messages, and about packets without a single sender and receiver.
pub(crate) fn write_too_big(
    packet: PacketRef<'_>,
    from: Option<IpAddr>,
    mtu: usize,
    out: &mut Vec<u8>,
) -> bool {
    let message = match packet.view().ip() {
        Ip::V4 if may_be_fragmented(&packet) => None,
        Ip::V4 => Some(Message::fragmentation_needed(u16::try_from(mtu).unwrap_or(u16::MAX))),
        // No lower MTU can be reported.
        Ip::V6 if mtu < IPV6_MTU_MIN && packet.len() <= IPV6_MTU_MIN => None,
        Ip::V6 => Some(Message::packet_too_big(mtu.max(IPV6_MTU_MIN) as u32)),
        Ip::None => None,
    };
    message.and_then(|message| quote(packet, from, message, out)).is_some()
}

#[cfg(test)]
mod tests {
    use etherparse::{IcmpEchoHeader, Icmpv4Type, Icmpv6Type, PacketBuilder, SlicedPacket};
    use etherparse::{TransportSlice, icmpv4, icmpv6};
    use proptest::prelude::*;

    use corridor_packet::checksum;

    use super::super::icmp_error::IPV4_MESSAGE_LEN_MAX;
    use super::*;

    const FROM: [u8; 4] = [10, 9, 0, 1];
    const TO: [u8; 4] = [10, 9, 0, 2];
    const FROM6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    const TO6: [u8; 16] = [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

    fn datagram(len: usize) -> Vec<u8> {
        let builder = PacketBuilder::ipv4(FROM, TO, 64).udp(1, 2);
        let mut packet = Vec::new();
        builder.write(&mut packet, &vec![7; len - 28]).unwrap();
        packet
    }

    fn datagram6(len: usize) -> Vec<u8> {
        let mut packet = Vec::new();
        PacketBuilder::ipv6(FROM6, TO6, 64)
            .udp(1, 2)
            .write(&mut packet, &vec![7; len - 48])
            .unwrap();
        packet
    }

    fn told(packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        write_too_big(PacketRef::read(packet), None, mtu, &mut out).then_some(out)
    }

    #[test]
    fn a_host_is_told_what_fits_over_ipv4() {
        let packet = datagram(1_400);
        let message = told(&packet, 1_161).unwrap();
        assert!(message.len() <= IPV4_MESSAGE_LEN_MAX);
        let sliced = SlicedPacket::from_ip(&message).unwrap();
        assert_eq!(&message[12..20], [TO, FROM].concat());
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("no ICMP") };
        let needed = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1_161 };
        assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(needed));
        assert_eq!(icmp.payload(), &packet[..icmp.payload().len()]);
        assert_eq!(checksum::fold(checksum::sum(icmp.slice())), 0xffff);
    }

    #[test]
    fn a_host_is_told_what_fits_over_ipv6_but_never_less_than_ipv6_needs() {
        let packet = datagram6(1_400);
        for (mtu, expected) in [(1_300, 1_300), (1_161, 1_280)] {
            let message = told(&packet, mtu).unwrap();
            assert_eq!(message.len(), IPV6_MTU_MIN);
            let sliced = SlicedPacket::from_ip(&message).unwrap();
            let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("no ICMP") };
            assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: expected });
            assert!(icmp.is_checksum_valid(TO6, FROM6));
            assert_eq!(icmp.payload(), &packet[..icmp.payload().len()]);
        }
        assert_eq!(told(&datagram6(1_280), 1_161), None);
    }

    #[test]
    fn nobody_is_told_of_errors_of_fragments_and_of_what_goes_to_many() {
        let mut free = datagram(1_400);
        free[6] = 0;
        let mut later = datagram(1_400);
        later[7] = 9;
        let mut many = datagram(1_400);
        many[16] = 224;
        for packet in [free, later, many] {
            assert_eq!(told(&packet, 1_161), None);
        }
        let mut echo = Vec::new();
        let id = IcmpEchoHeader { id: 1, seq: 1 };
        let ask = PacketBuilder::ipv4(FROM, TO, 64).icmpv4(Icmpv4Type::EchoRequest(id));
        ask.write(&mut echo, &[0; 1_300]).unwrap();
        assert!(told(&echo, 1_161).is_some());
        let error = told(&echo, 1_161).unwrap();
        assert_eq!(told(&error, 500), None, "a message about a message");
        let mut error6 = Vec::new();
        PacketBuilder::ipv6(FROM6, TO6, 64)
            .icmpv6(Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute))
            .write(&mut error6, &[0; 1_400])
            .unwrap();
        assert_eq!(told(&error6, 1_300), None);
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]
        #[test]
        fn no_bytes_make_it_panic_or_long(
            bytes in proptest::collection::vec(any::<u8>(), 0..1_500), mtu in 68usize..2_000,
        ) {
            if let Some(message) = told(&bytes, mtu) {
                prop_assert!(message.len() <= IPV6_MTU_MIN);
            }
        }
    }
}
