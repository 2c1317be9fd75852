//! Views compared with etherparse, and with readers that each parse one field.

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use crate::checksum::{self, fold, sum};
use crate::{End, Fragment, PacketBuf, PacketRef, PacketView, PureAck, protocol};

const FRAGMENT: u16 = 0x3fff;

/// Readers of one field each, without a view.
mod twin {
    use super::{FRAGMENT, protocol};

    /// The transport protocol and its bytes; `None` for fragments.
    pub fn transport(packet: &[u8]) -> Option<(u8, &[u8])> {
        match packet.first()? >> 4 {
            4 if packet.len() >= 20 && packet[0] & 0xf >= 5 => {
                let fragment = u16::from_be_bytes([packet[6], packet[7]]) & FRAGMENT;
                let segment = packet.get(4 * usize::from(packet[0] & 0xf)..)?;
                (fragment == 0).then_some((packet[9], segment))
            }
            6 if packet.len() >= 40 => Some((packet[6], &packet[40..])),
            _ => None,
        }
    }

    pub fn is_pure_ack(packet: &[u8]) -> bool {
        let Some((protocol::TCP, segment)) = transport(packet) else { return false };
        let header_len = segment.get(12).map_or(0, |byte| 4 * usize::from(byte >> 4));
        header_len >= 20 && header_len == segment.len() && segment[13] & 0x37 == 0x10
    }

    pub fn tolerates_reordering(packet: &[u8]) -> bool {
        matches!(transport(packet), Some((1 | 17 | 58, _))) || is_pure_ack(packet)
    }

    /// Offset of TCP or UDP data after a complete header.
    pub fn payload(packet: &[u8]) -> Option<usize> {
        let (number, segment) = transport(packet)?;
        let start = packet.len() - segment.len();
        let header_len = match number {
            protocol::UDP => 8,
            protocol::TCP if segment.len() >= 20 => 4 * usize::from(segment[12] >> 4).max(1),
            _ => return None,
        };
        let least = if number == protocol::TCP { 20 } else { 8 };
        (least..=segment.len()).contains(&header_len).then_some(start + header_len)
    }
}

/// Addresses, ports, and offsets of TCP, its data, and the packet's end.
type Read = (End, End, [usize; 3]);

fn by_etherparse(packet: &[u8]) -> Option<Read> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (from, to) = match sliced.net.as_ref()? {
        NetSlice::Ipv4(ip) if !ip.payload().fragmented => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        NetSlice::Ipv6(ip) if !ip.payload().fragmented => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        _ => return None,
    };
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
    let start = tcp.slice().as_ptr().addr() - packet.as_ptr().addr();
    let places = [0, tcp.header_slice().len(), tcp.slice().len()].map(|len| start + len);
    Some(((from, tcp.source_port()), (to, tcp.destination_port()), places))
}

fn segment(v6: bool, payload_len: usize) -> Vec<u8> {
    let builder = if v6 {
        PacketBuilder::ipv6([0xfd; 16], [0xfc; 16], 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    };
    let tcp = builder.tcp(40_000, 7_700, 0x0102_0304, 0x0506).ack(0x0708_090a);
    let tcp = tcp.options_raw(&[1, 3, 3, 7]).expect("options fit");
    let mut packet = Vec::new();
    tcp.write(&mut packet, &vec![0x33; payload_len]).expect("a segment fits");
    packet
}

fn ipv4(class: u8, number: u8, ports: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, class, 0, 24, 1, 2, 0x40, 0, 64, number, 0, 0];
    packet.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = checksum::of(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend_from_slice(&ports);
    packet
}

#[test]
fn a_hop_is_taken_off_and_nothing_else_changes_but_the_checksum() {
    for (v6, at) in [(false, 8), (true, 7)] {
        for hops in 0..=u8::MAX {
            let mut before = segment(v6, 9);
            before[at] = hops;
            if !v6 {
                before[10..12].fill(0);
                let checksum = checksum::of(&before[..20]);
                before[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            let mut packet = PacketBuf::read(before.clone());
            assert_eq!(packet.take_hop(), hops > 1);
            assert_eq!(packet.packet(), PacketRef::read(&packet));
            let mut expected = before;
            if hops > 1 {
                expected[at] -= 1;
            }
            if !v6 {
                assert_eq!(fold(sum(&packet[..20])), 0xffff, "{hops} hops");
                expected[10..12].copy_from_slice(&packet[10..12]);
            }
            assert_eq!(&*packet, expected);
        }
    }
    assert!(!PacketBuf::read(b"no IP".to_vec()).take_hop());
}

#[test]
fn marked_headers_have_a_right_checksum() {
    for class in [1, 2, 0xb9, 0x02] {
        let mut packet = PacketBuf::read(ipv4(class, protocol::TCP, [0; 4]));
        assert!(packet.mark_congestion());
        assert_eq!(packet[1], class | 3);
        assert_eq!(packet.packet().view().ecn(), 3);
        assert_eq!(packet.packet().view().dscp(), class >> 2);
        assert_eq!(fold(sum(&packet[..20])), 0xffff, "a sum over all is minus zero");
    }
    let mut not_capable = PacketBuf::read(ipv4(0xb8, protocol::TCP, [0; 4]));
    assert!(!not_capable.mark_congestion());
    assert_eq!(not_capable[..], ipv4(0xb8, protocol::TCP, [0; 4]));
    let mut six = vec![0x60; 48];
    six[1] = 0x20;
    let mut capable = PacketBuf::read(six.clone());
    assert!(capable.mark_congestion() && capable[1] == 0x30);
    six[1] = 0x0f;
    let mut six = PacketBuf::read(six);
    assert!(!six.mark_congestion() && six[1] == 0x0f);
}

#[test]
fn flows_are_told_apart_by_their_ports() {
    let hash = |packet: &[u8]| PacketRef::read(packet).flow_hash(7);
    let back = |packet: &[u8]| PacketRef::read(packet).flow_hash_back(7);
    let a = ipv4(0, protocol::TCP, [0, 1, 0, 2]);
    assert_eq!(hash(&a), hash(&ipv4(3, protocol::TCP, [0, 1, 0, 2])));
    assert_ne!(hash(&a), hash(&ipv4(0, protocol::TCP, [0, 1, 0, 3])));
    let mut answer = ipv4(0, protocol::TCP, [0, 2, 0, 1]);
    answer[12..20].rotate_left(4);
    assert_eq!((hash(&a), back(&a)), (back(&answer), hash(&answer)));
    let ping = |ports| ipv4(0, protocol::ICMP, ports);
    assert_eq!(hash(&ping([0, 1, 0, 2])), hash(&ping([0, 1, 0, 3])));
    assert_eq!(hash(b"no packet"), hash(b""));
}

#[test]
fn fragments_are_told_apart() {
    for (word, fragment) in
        [(0x4000, Fragment::Whole), (0x2000, Fragment::First), (0x2007, Fragment::Later)]
    {
        let mut packet = ipv4(0, protocol::UDP, [0; 4]);
        packet[6..8].copy_from_slice(&u16::to_be_bytes(word));
        assert_eq!(PacketView::read(&packet).fragment(), fragment);
    }
}

#[test]
fn what_follows_the_ip_packet_can_be_left_out() {
    let mut packet = segment(false, 9);
    let len = packet.len();
    packet.extend_from_slice(b"more");
    let read = PacketRef::read(&packet);
    assert!(!read.view().is_exact());
    assert_eq!(read.trimmed(), PacketRef::read(&packet[..len]));
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn packets_are_read_as_others_read_them(
        v6: bool,
        payload_len in 0..40usize,
        spoil in proptest::collection::vec((0..60usize, any::<u8>()), 0..3),
        cut in 0..80usize,
    ) {
        let mut packet = segment(v6, payload_len);
        packet.truncate(120 - cut);
        for (at, byte) in spoil {
            packet.get_mut(at).into_iter().for_each(|spoilt| *spoilt = byte);
        }
        let read = PacketRef::read(&packet);
        prop_assert_eq!(read.view().payload(), twin::payload(&packet));
        prop_assert_eq!(
            read.view().is_pure_ack(),
            twin::is_pure_ack(&packet)
        );
        prop_assert_eq!(read.view().tolerates_reordering(), twin::tolerates_reordering(&packet));
        // Extension headers before TCP's are not parsed; a length of zero has no meaning.
        let is_tcp = packet.get(6) == Some(&protocol::TCP) && packet.get(4..6) != Some(&[0, 0]);
        prop_assume!(!v6 || is_tcp);
        let places = read.tcp().map(|view| (view.from, view.to, view.places()));
        prop_assert_eq!(places, by_etherparse(&packet));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..90), first: u8) {
        let mut bytes = bytes;
        bytes.first_mut().into_iter().for_each(|byte| *byte = first);
        let read = PacketRef::read(&bytes);
        prop_assert_eq!(read.view().payload(), twin::payload(&bytes));
        prop_assert_eq!(read.view().tolerates_reordering(), twin::tolerates_reordering(&bytes));
        let _ = (read.flow_hash(1), read.flow_hash_back(1), read.addresses());
        read.trimmed().to_buf().mark_congestion();
        let mut packet = read.to_buf();
        let tcp = read.tcp();
        packet.mark_congestion();
        packet.take_hop();
        if let Some(tcp) = tcp {
            packet.set_window(&tcp, 7);
            packet.restrict_syn(&tcp, 500);
        }
        prop_assert_eq!(packet.len(), bytes.len());
        // Modifications keep the view valid.
        prop_assert_eq!(packet.packet(), PacketRef::read(&packet));
    }

    #[test]
    fn acknowledgements_are_read_as_they_are_written(
        v6: bool,
        sequence: u32,
        ack: u32,
        window: u16,
        timestamps: Option<(u32, u32)>,
    ) {
        let (from, to) = match v6 {
            false => (([10, 0, 0, 1].into(), 1), ([10, 0, 0, 2].into(), 2)),
            true => (([0xfd; 16].into(), 3), ([0xfc; 16].into(), 4)),
        };
        let packet = PureAck { from, to, sequence, ack, window, timestamps }.to_packet();
        let read = PacketRef::read(&packet);
        prop_assert!(read.view().is_pure_ack() && read.view().is_exact());
        let tcp = read.tcp().expect("it is whole");
        prop_assert_eq!((tcp.from, tcp.to, tcp.sequence, tcp.ack), (from, to, sequence, ack));
        prop_assert_eq!((tcp.window, tcp.options().timestamps), (window, timestamps));
    }
}
