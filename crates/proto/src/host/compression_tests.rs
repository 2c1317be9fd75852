//! Headers that pass through the contexts of both ends.

use corridor_packet::PacketRef;
use etherparse::{PacketBuilder, TcpOptionElement};
use proptest::prelude::*;

use crate::host::compression::Contexts;

/// Longest packet that garbage may expand to.
const LEN_MAX: usize = 90;

/// The fields of a segment apart from its flow.
#[derive(Clone, Debug)]
struct Segment {
    flow: u8,
    sequence: u32,
    ack: u32,
    window: u16,
    push: bool,
    stamps: Option<(u32, u32)>,
    ident: u16,
    class: u8,
    payload_len: usize,
}

impl Segment {
    fn new(sequence: u32, payload_len: usize) -> Self {
        let stamps = Some((1_000, 2_000));
        let (ack, window, ident) = (7, 500, 1);
        let (flow, push, class) = (0, false, 2);
        Segment { flow, sequence, ack, window, push, stamps, ident, class, payload_len }
    }

    /// Flows with odd numbers are IPv6.
    fn packet(&self) -> Vec<u8> {
        let port = 40_000 + u16::from(self.flow);
        let mut options = Vec::new();
        if let Some((stamp, echo)) = self.stamps {
            let no_operation = TcpOptionElement::Noop;
            options = vec![no_operation.clone(), no_operation];
            options.push(TcpOptionElement::Timestamp(stamp, echo));
        }
        let payload = vec![self.sequence as u8; self.payload_len];
        let mut packet = Vec::new();
        let ip = if self.flow.is_multiple_of(2) {
            PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        } else {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
        };
        let mut tcp = ip.tcp(port, 80, self.sequence, self.window).ack(self.ack);
        tcp = if self.push { tcp.psh() } else { tcp };
        let tcp = tcp.options(&options).expect("they fit");
        tcp.write(&mut packet, &payload).expect("it is a vector");
        if self.flow.is_multiple_of(2) {
            packet[1] = self.class;
            packet[4..6].copy_from_slice(&self.ident.to_be_bytes());
            packet[10..12].fill(0);
            let sum = etherparse::Ipv4HeaderSlice::from_slice(&packet)
                .expect("it is IPv4")
                .to_header()
                .calc_header_checksum();
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        packet
    }
}

/// Both ends of a tunnel, and the length of the last packet in between.
struct Pair {
    sender: Contexts,
    receiver: Contexts,
    len: usize,
}

impl Pair {
    fn new() -> Self {
        Pair { sender: Contexts::new(), receiver: Contexts::new(), len: 0 }
    }

    /// The packet as delivered; `None`: it cannot be expanded.
    fn pass(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let mut difference = Vec::new();
        if self.sender.compress(PacketRef::read(packet), &mut difference) {
            self.len = difference.len();
            let mut out = Vec::new();
            return self.receiver.expand(&difference, packet.len(), &mut out).map(|()| out);
        }
        assert!(difference.is_empty(), "nothing is left behind");
        self.sender.note_verbatim(PacketRef::read(packet));
        self.receiver.note_verbatim(PacketRef::read(packet));
        self.len = packet.len();
        Some(packet.to_vec())
    }

    /// The context of a flow: the first byte of its differences.
    fn place_of(&self, packet: &[u8]) -> u8 {
        let mut contexts = Contexts::new();
        contexts.note_verbatim(PacketRef::read(packet));
        let mut difference = Vec::new();
        let header_len = if packet[0] == 0x45 { 20 } else { 40 };
        let sequence_at = header_len + 4;
        let mut next = packet.to_vec();
        let payload_len = packet.len() - header_len - 4 * usize::from(packet[header_len + 12] >> 4);
        let sequence = u32::from_be_bytes(packet[sequence_at..][..4].try_into().expect("four"));
        let sequence = sequence.wrapping_add(payload_len as u32).to_be_bytes();
        next[sequence_at..sequence_at + 4].copy_from_slice(&sequence);
        assert!(contexts.compress(PacketRef::read(&next), &mut difference));
        difference[0]
    }
}

#[test]
fn a_bulk_transfer_pays_a_few_bytes_for_its_headers() {
    for flow in [0, 1] {
        let mut pair = Pair::new();
        let mut segment = Segment { flow, ..Segment::new(u32::MAX - 5_000, 1_400) };
        for number in 0..64 {
            let packet = segment.packet();
            assert_eq!(pair.pass(&packet).as_deref(), Some(&packet[..]), "packet {number}");
            let headers = pair.len - 1_400;
            if number == 0 {
                assert_eq!(headers, if flow == 0 { 52 } else { 72 });
            } else {
                assert_eq!(headers, if number % 8 == 1 { 5 } else { 4 }, "packet {number}");
            }
            segment.sequence = segment.sequence.wrapping_add(1_400);
            segment.ident += 1;
            let stamps = segment.stamps.as_mut().expect("it has them");
            stamps.0 += u32::from(number % 8 == 0);
        }
        // From time to time one is sent verbatim.
        pair.pass(&segment.packet());
        assert_eq!(pair.len - 1_400, if flow == 0 { 52 } else { 72 });
    }
}

#[test]
fn what_is_sent_again_goes_verbatim() {
    let mut pair = Pair::new();
    let (first, second) = (Segment::new(1, 100).packet(), Segment::new(101, 100).packet());
    for packet in [&first, &second] {
        pair.pass(packet);
    }
    assert!(pair.len < second.len());
    pair.pass(&first);
    assert_eq!(pair.len, first.len());
}

#[test]
fn a_receiver_that_lost_its_contexts_waits_for_a_verbatim_packet() {
    let mut pair = Pair::new();
    let packets: Vec<_> = (0..70).map(|at| Segment::new(1 + 100 * at, 100).packet()).collect();
    pair.pass(&packets[0]);
    pair.receiver.clear();
    let outcomes: Vec<_> = packets[1..].iter().map(|packet| pair.pass(packet)).collect();
    let again = outcomes.iter().position(Option::is_some).expect("one goes verbatim");
    assert!(
        outcomes[again..].iter().zip(&packets[1 + again..]).all(|(o, p)| o.as_ref() == Some(p))
    );
    assert!(again < 64, "it took {again} packets");
}

#[test]
fn headers_that_are_odd_go_verbatim() {
    let mut pair = Pair::new();
    pair.pass(&Segment::new(1, 100).packet());
    let good = Segment::new(101, 100).packet();
    let change = |at: usize, to: u8| {
        let mut packet = good.clone();
        packet[at] = to;
        packet
    };
    let odd = [
        ("a wrong sum", change(10, good[10] ^ 1)),
        ("a wrong length", change(3, good[3] ^ 1)),
        ("a fragment", change(6, 0x20)),
        ("a hop limit", change(8, 63)),
        ("the end of a connection", change(33, 0x11)),
        ("an urgent pointer", change(38, 1)),
        ("an option", change(40, 0)),
        ("options beyond the packet", change(32, 0xf0)[..60].to_vec()),
    ];
    for (what, packet) in odd {
        assert!(!pair.sender.compress(PacketRef::read(&packet), &mut Vec::new()), "{what}");
    }
    assert!(pair.sender.compress(PacketRef::read(&good), &mut Vec::new()));
}

/// A segment whose header has room for this many bytes of options.
fn with_options(flow: u8, sequence: u32, options: &[u8]) -> Vec<u8> {
    let mut packet = Segment { flow, stamps: None, ..Segment::new(sequence, 100) }.packet();
    packet.splice(40..40, options.iter().copied());
    packet[32] = (5 + options.len() as u8 / 4) << 4;
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    packet[10..12].fill(0);
    let sum = etherparse::Ipv4HeaderSlice::from_slice(&packet)
        .expect("it is IPv4")
        .to_header()
        .calc_header_checksum();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

#[test]
fn timestamps_that_end_early_are_no_timestamps() {
    for options in [&[1, 1, 8, 10][..], &[1, 1, 8, 10, 9, 9, 9, 9]] {
        let mut pair = Pair::new();
        for sequence in [1, 101] {
            let packet = with_options(0, sequence, options);
            assert_eq!(pair.pass(&packet), Some(packet));
        }
        assert_eq!(pair.len, 6 + 100, "it went as a difference, with its identification");
        // A peer that claims such options cannot cause anything to be read or written beyond them.
        let (mask, place) = (1 << 5 | 1 << 6, pair.place_of(&with_options(0, 201, options)));
        let difference = [place, mask, 0, 0, 1, 1, 7];
        assert!(pair.receiver.expand(&difference, 1_000, &mut Vec::new()).is_some());
    }
}

#[test]
fn no_packet_is_made_longer_than_the_tunnel_takes() {
    let mut pair = Pair::new();
    pair.pass(&Segment::new(1, 100).packet());
    let packet = Segment::new(101, 100).packet();
    let (mut difference, mut out) = (Vec::new(), Vec::new());
    assert!(pair.sender.compress(PacketRef::read(&packet), &mut difference));
    assert_eq!(pair.receiver.expand(&difference, packet.len() - 1, &mut out), None);
    assert_eq!(pair.receiver.expand(&difference, packet.len(), &mut out), Some(()));
    assert_eq!(out, packet);
}

#[test]
fn flows_of_one_place_do_not_mix() {
    // IPv4 and IPv6, with the same header lengths and the same context.
    let mut pair = Pair::new();
    let four = |flow, at: u32| with_options(flow, 1 + 100 * at, &[1; 32]);
    let six = |flow, at: u32| Segment { flow, ..Segment::new(1 + 100 * at, 100) }.packet();
    let flows = (0..=254).step_by(2).flat_map(|a| (1..=255).step_by(2).map(move |b| (a, b)));
    let mut flows = flows.filter(|&(a, b)| pair.place_of(&four(a, 0)) == pair.place_of(&six(b, 0)));
    let (a, b) = flows.next().expect("some of 16384 pairs of flows share a place of 256");
    drop(flows);
    for at in 0..10 {
        for packet in [four(a, at), six(b, at), four(a, at + 100)] {
            assert_eq!(pair.pass(&packet), Some(packet));
        }
    }
}

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let segment = (
        (0u8..4, 0u32..4, any::<bool>(), prop_oneof![Just(0u32), 0u32..5_000]),
        (0u32..3, 0u16..2, 0u32..70_000, 0u32..200),
        (0u16..3, 0u8..4, 0usize..200, any::<bool>()),
    );
    proptest::collection::vec(segment, 1..100).prop_map(|steps| {
        let mut next = [u32::MAX - 300, 1, 2, 3];
        let mut ident = 0;
        let mut stamp = u32::MAX - 10_000;
        let of = |(first, second, third)| {
            let (flow, back, push, skip): (u8, u32, bool, u32) = first;
            let (ack, window, ahead, echo) = second;
            let (ident_step, class, payload_len, has_stamps): (u16, u8, usize, bool) = third;
            let at: &mut u32 = &mut next[usize::from(flow)];
            let sequence = at.wrapping_add(skip).wrapping_sub(if back == 3 { 500 } else { 0 });
            *at = sequence.wrapping_add(payload_len as u32);
            ident += ident_step;
            stamp = u32::wrapping_add(stamp, ahead);
            let stamps = has_stamps.then_some((stamp, stamp.wrapping_sub(echo)));
            Segment { flow, sequence, ack, window, push, stamps, ident, class, payload_len }
        };
        steps.into_iter().map(of).collect()
    })
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn all_come_out_as_they_went_in(segments in segments()) {
        let mut pair = Pair::new();
        for segment in segments {
            let packet = segment.packet();
            prop_assert_eq!(pair.pass(&packet), Some(packet));
        }
    }

    #[test]
    fn garbage_is_refused_or_makes_some_packet(
        packets in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..120),
                (0u32..3, 0usize..50).prop_map(|(at, len)| Segment::new(at, len).packet()),
            ],
            0..20,
        ),
        difference in proptest::collection::vec(any::<u8>(), 0..60),
        byte: u8,
    ) {
        let mut contexts = Contexts::new();
        for packet in &packets {
            contexts.note_verbatim(PacketRef::read(packet));
            let mut difference = difference.clone();
            if let Some(mask) = difference.get_mut(1) {
                *mask &= byte;
            }
            let mut out = Vec::new();
            for place in 0..=255 {
                if let Some(first) = difference.first_mut() {
                    *first = place;
                }
                let made = contexts.expand(&difference, LEN_MAX, &mut out);
                prop_assert!(made.is_none() || out.len() <= LEN_MAX.min(difference.len() + 100));
            }
        }
    }
}
