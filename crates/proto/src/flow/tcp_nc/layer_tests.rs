//! Scripts of two hosts with a layer each, and packets that TCP could send.

use corridor_base::rand::SeedableRng;
use corridor_packet::{PacketBuf, PacketRef};
use etherparse::{PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice};
use proptest::prelude::*;

use super::super::Redundancy;
use super::*;

const NOW: Time = Time::ZERO;
/// Longest packet of the hosts.
const LEN_MAX: usize = 1380;
const CLIENT: u16 = 40_000;
const SERVER: u16 = 80;
/// Where each side's data begins: one after its SYN.
const CLIENT_DATA: u32 = 1001;
const SERVER_DATA: u32 = u32::MAX - 1000;
/// Bytes of data in a segment.
const DATA: u32 = 100;

/// A packet of one of the hosts, not yet serialised.
#[derive(Clone, Default)]
struct Tcp {
    from_server: bool,
    v6: bool,
    sequence: u32,
    ack: Option<u32>,
    window: u16,
    flags: &'static str,
    options: Vec<TcpOptionElement>,
    data: Vec<u8>,
}

impl Tcp {
    fn packet(&self) -> Vec<u8> {
        let (from, to) = if self.from_server { (2, 1) } else { (1, 2) };
        let ports = if self.from_server { (SERVER, CLIENT) } else { (CLIENT, SERVER) };
        let address = |last| {
            let mut address = [0; 16];
            (address[0], address[15]) = (0xFD, last);
            address
        };
        let ip = match self.v6 {
            true => PacketBuilder::ipv6(address(from), address(to), 61),
            false => PacketBuilder::ipv4([10, 0, 0, from], [10, 0, 0, to], 61),
        };
        let mut tcp = ip.tcp(ports.0, ports.1, self.sequence, self.window);
        tcp = match self.ack {
            Some(ack) => tcp.ack(ack),
            None => tcp,
        };
        tcp = if self.flags.contains('S') { tcp.syn() } else { tcp };
        tcp = if self.flags.contains('F') { tcp.fin() } else { tcp };
        tcp = if self.flags.contains('R') { tcp.rst() } else { tcp };
        let tcp = tcp.options(&self.options).unwrap();
        let mut packet = Vec::new();
        tcp.write(&mut packet, &self.data).unwrap();
        packet
    }
}

fn layer(redundancy: Redundancy, seed: u8) -> NcLayer {
    let params = NcParams { redundancy, buffer_segments: 64, ..NcParams::default() };
    NcLayer::new(params, LEN_MAX, Stream::from_seed([seed; 32])).unwrap()
}

struct Hosts {
    client: NcLayer,
    server: NcLayer,
    v6: bool,
}

impl Hosts {
    /// After the handshake: the client's windows are shifted by 7, the server's by 3.
    fn connected(redundancy: Redundancy, v6: bool) -> Self {
        let mut hosts = Hosts { client: layer(redundancy, 1), server: layer(redundancy, 2), v6 };
        let syn = Tcp { flags: "S", sequence: CLIENT_DATA - 1, ..hosts.tcp(false, 7, 5) };
        hosts.client.handle_host_packet(NOW, PacketRef::read(&syn.packet()));
        hosts.reach_server();
        let ack = Some(CLIENT_DATA);
        let syn = Tcp { flags: "S", sequence: SERVER_DATA - 1, ack, ..hosts.tcp(true, 3, 6) };
        hosts.server.handle_host_packet(NOW, PacketRef::read(&syn.packet()));
        hosts.reach_client();
        hosts
    }

    /// A SYN with all options.
    fn tcp(&self, from_server: bool, scale: u8, stamp: u32) -> Tcp {
        let options = vec![
            TcpOptionElement::MaximumSegmentSize(1460),
            TcpOptionElement::SelectiveAcknowledgementPermitted,
            TcpOptionElement::Timestamp(stamp, 0),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(scale),
        ];
        Tcp { from_server, v6: self.v6, window: 64_000, options, ..Tcp::default() }
    }

    fn data(&self, number: u32) -> Tcp {
        Tcp {
            v6: self.v6,
            sequence: CLIENT_DATA + number * DATA,
            ack: Some(SERVER_DATA),
            window: 500,
            options: vec![TcpOptionElement::Timestamp(100 + number, 6)],
            data: (0..DATA).map(|byte| (byte * (number + 3)) as u8).collect(),
            ..Tcp::default()
        }
    }

    /// A pure acknowledgment of the server's kernel.
    fn ack(&self, ack: u32, window: u16) -> Tcp {
        Tcp {
            from_server: true,
            v6: self.v6,
            sequence: SERVER_DATA,
            ack: Some(ack),
            window,
            options: vec![TcpOptionElement::Timestamp(700, 1)],
            ..Tcp::default()
        }
    }

    fn send(&mut self, number: u32) -> Vec<Vec<u8>> {
        let packet = self.data(number).packet();
        self.client.handle_host_packet(NOW, PacketRef::read(&packet));
        std::iter::from_fn(|| self.client.poll_path().map(PacketBuf::into_bytes)).collect()
    }

    fn reach_server(&mut self) {
        while let Some(packet) = self.client.poll_path().map(PacketBuf::into_bytes) {
            self.server.handle_path_packet(NOW, PacketRef::read(&packet));
        }
    }

    fn reach_client(&mut self) {
        while let Some(packet) = self.server.poll_path().map(PacketBuf::into_bytes) {
            self.client.handle_path_packet(NOW, PacketRef::read(&packet));
        }
    }

    fn at_server(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.server.poll_host().map(PacketBuf::into_bytes)).collect()
    }

    fn at_client(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.client.poll_host().map(PacketBuf::into_bytes)).collect()
    }
}

const FIXED: Redundancy = Redundancy::Fixed { factor: 1.0 };
const ADAPTIVE: Redundancy = Redundancy::Adaptive { loss_ratio: 0.0, factor_max: 2.0 };

/// The TCP header of a packet with a valid checksum.
fn header(packet: &[u8]) -> etherparse::TcpHeader {
    let sliced = SlicedPacket::from_ip(packet).expect("an IP packet");
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
    let sum = match sliced.net.unwrap() {
        etherparse::NetSlice::Ipv4(ip) => {
            assert_eq!(
                ip.header().header_checksum(),
                ip.header().to_header().calc_header_checksum()
            );
            tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination()).unwrap()
        }
        etherparse::NetSlice::Ipv6(ip) => {
            tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination()).unwrap()
        }
        etherparse::NetSlice::Arp(_) => panic!("no IP"),
    };
    assert_eq!(tcp.checksum(), sum, "checksum");
    tcp.to_header()
}

fn stamps(header: &etherparse::TcpHeader) -> Option<(u32, u32)> {
    header.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::Timestamp(own, echoed)) => Some((own, echoed)),
        _ => None,
    })
}

#[test]
fn a_syn_loses_its_permission_of_sack_and_segments_become_shorter() {
    for v6 in [false, true] {
        let mut hosts = Hosts::connected(FIXED, v6);
        let syn = hosts.at_server();
        let syn_ack = hosts.at_client();
        for packet in [&syn[0], &syn_ack[0]] {
            let header = header(packet);
            let options: Vec<_> = header.options_iterator().flatten().collect();
            assert!(header.syn);
            assert_eq!(options[0], TcpOptionElement::MaximumSegmentSize(1320));
            assert!(!options.contains(&TcpOptionElement::SelectiveAcknowledgementPermitted));
            assert!(options.iter().any(|o| matches!(o, TcpOptionElement::WindowScale(3 | 7))));
        }
    }
}

#[test]
fn data_comes_back_byte_for_byte_and_is_acknowledged_as_the_kernel_would() {
    for v6 in [false, true] {
        let mut hosts = Hosts::connected(FIXED, v6);
        hosts.at_server();
        for number in 0..3 {
            let coded = hosts.send(number);
            assert_eq!(coded.len(), 1);
            hosts.server.handle_path_packet(NOW, PacketRef::read(&coded[0]));
            assert_eq!(hosts.at_server(), [hosts.data(number).packet()]);
            let ack = hosts.server.poll_path().map(PacketBuf::into_bytes).unwrap();
            let header = header(&ack);
            assert_eq!(header.acknowledgment_number, CLIENT_DATA + (number + 1) * DATA);
            assert_eq!(header.sequence_number, SERVER_DATA);
            assert_eq!(stamps(&header), Some((6, 100 + number)), "its own, and what came");
            // The SYN's window of 64,000 is not scaled, others are by 3.
            let window = 64_000 - (number + 1) * DATA;
            assert_eq!(u32::from(header.window_size), window / 8);
            hosts.client.handle_path_packet(NOW, PacketRef::read(&ack));
            assert_eq!(hosts.client.connections[0].sender.as_ref().unwrap().buffered(), 0);
        }
    }
}

#[test]
fn a_loss_is_hidden_and_repaired() {
    for redundancy in [FIXED, ADAPTIVE] {
        let mut hosts = Hosts::connected(redundancy, false);
        hosts.at_server();
        hosts.at_client();
        let packets: Vec<_> = (0..3).flat_map(|number| hosts.send(number)).collect();
        for (index, packet) in packets[1..].iter().enumerate() {
            hosts.server.handle_path_packet(NOW, PacketRef::read(packet));
            hosts.reach_client();
            let told = hosts.at_client();
            let seen = CLIENT_DATA + (index as u32 + 1) * DATA;
            assert_eq!(header(&told[0]).acknowledgment_number, seen);
        }
        assert_eq!(hosts.at_server().len(), 0, "nothing is decoded");
        // The adaptive layer knows that one is missing and none is in flight; the other layer waits
        // for TCP to retransmit.
        if redundancy == FIXED {
            let again = hosts.data(2).packet();
            hosts.client.handle_host_packet(NOW, PacketRef::read(&again));
        }
        hosts.reach_server();
        let expected: Vec<_> = (0..3).map(|number| hosts.data(number).packet()).collect();
        assert_eq!(hosts.at_server(), expected);
    }
}

#[test]
fn the_kernels_own_acknowledgements_are_held_back_while_they_are_behind() {
    let mut hosts = Hosts::connected(FIXED, false);
    hosts.at_server();
    let coded = hosts.send(0);
    hosts.server.handle_path_packet(NOW, PacketRef::read(&coded[0]));
    while hosts.server.poll_path().map(PacketBuf::into_bytes).is_some() {}
    let ack = hosts.ack(CLIENT_DATA + DATA, 8_000).packet();
    hosts.server.handle_host_packet(NOW, PacketRef::read(&ack));
    assert_eq!(hosts.server.poll_path().map(PacketBuf::into_bytes), None, "said already");
    hosts.server.handle_host_packet(NOW, PacketRef::read(&ack));
    assert_eq!(
        hosts.server.poll_path().map(PacketBuf::into_bytes),
        Some(ack),
        "an answer to a probe"
    );
    // The next acknowledgment has the kernel's newest stamp and window.
    let coded = hosts.send(1);
    hosts.server.handle_path_packet(NOW, PacketRef::read(&coded[0]));
    let header = header(&hosts.server.poll_path().map(PacketBuf::into_bytes).unwrap());
    assert_eq!((stamps(&header), header.window_size), (Some((700, 101)), 8_000 - 13));
    assert_eq!(hosts.server.stats().acks_suppressed, 1);
}

#[test]
fn a_window_that_opens_is_told_at_once() {
    let mut hosts = Hosts::connected(FIXED, false);
    hosts.at_server();
    let packets: Vec<_> = (0..3).flat_map(|number| hosts.send(number)).collect();
    hosts.server.handle_host_packet(NOW, PacketRef::read(&hosts.ack(CLIENT_DATA, 25).packet()));
    while hosts.server.poll_path().map(PacketBuf::into_bytes).is_some() {}
    // The first is lost: the kernel's acknowledgment stays, what is seen is ahead.
    hosts.server.handle_path_packet(NOW, PacketRef::read(&packets[1]));
    hosts.server.handle_path_packet(NOW, PacketRef::read(&packets[2]));
    let told: Vec<_> =
        std::iter::from_fn(|| hosts.server.poll_path().map(PacketBuf::into_bytes)).collect();
    assert_eq!(header(&told[1]).window_size, 0, "200 bytes, and 200 are on their way");
    hosts.server.handle_host_packet(NOW, PacketRef::read(&hosts.ack(CLIENT_DATA, 9_000).packet()));
    let opened = header(&hosts.server.poll_path().map(PacketBuf::into_bytes).unwrap());
    assert_eq!(opened.acknowledgment_number, CLIENT_DATA + 2 * DATA);
    assert_eq!(opened.window_size, 9_000 - 25);
}

#[test]
fn a_window_larger_than_the_buffer_is_clamped() {
    let mut hosts = Hosts::connected(FIXED, false);
    hosts.at_client();
    let ack = hosts.ack(CLIENT_DATA, 60_000).packet();
    hosts.client.handle_path_packet(NOW, PacketRef::read(&ack));
    let clamped = header(&hosts.at_client()[0]);
    assert_eq!(usize::from(clamped.window_size), (64 * 1320) >> 3);
}

#[test]
fn a_peer_with_a_longer_buffer_is_offered_what_this_one_can_decode() {
    let mut hosts = Hosts::connected(FIXED, false);
    hosts.at_client();
    hosts.server.connections[0].window_max = 16 * 1320;
    hosts.send(0).iter().for_each(|packet| {
        hosts.server.handle_path_packet(NOW, PacketRef::read(packet));
    });
    hosts.reach_client();
    let told = header(&hosts.at_client()[0]).window_size;
    assert_eq!(usize::from(told), (16 * 1320) >> 3);
}

#[test]
fn tcp_is_offered_no_more_than_there_is_room_for() {
    let mut hosts = Hosts::connected(FIXED, false);
    hosts.at_server();
    hosts.at_client();
    let packets: Vec<_> = (0..30).flat_map(|number| hosts.send(number)).collect();
    for (room, expected) in [(20, 29 * 100 + 10 * 1320), (0, 4 * 1320)] {
        hosts.client.set_room(room);
        hosts.server.handle_path_packet(NOW, PacketRef::read(&packets[0]));
        hosts.reach_client();
        let window = header(&hosts.at_client()[0]).window_size;
        assert_eq!(usize::from(window), expected.min(64_000 - 100) >> 3, "room for {room}");
    }
}

#[test]
fn combinations_wait_for_room() {
    let mut hosts = Hosts::connected(FIXED, false);
    hosts.at_client();
    hosts.client.set_room(2);
    let sent: usize = (0..5).map(|number| hosts.send(number).len()).sum();
    assert_eq!(sent, 2);
    hosts.client.set_room(1);
    hosts.client.fill_room(NOW);
    assert_eq!(
        core::iter::from_fn(|| hosts.client.poll_path().map(PacketBuf::into_bytes)).count(),
        1
    );
    hosts.client.set_room(100);
    hosts.client.fill_room(NOW);
    let rest = core::iter::from_fn(|| hosts.client.poll_path().map(PacketBuf::into_bytes)).count();
    assert_eq!(rest, 2, "five segments have earned five");
    assert_eq!(hosts.client.stats().coded_sent as usize, 3 + rest);
}

#[test]
fn fin_and_rst_pass() {
    let mut hosts = Hosts::connected(FIXED, false);
    hosts.at_server();
    for flags in ["F", "R"] {
        let packet = Tcp { flags, data: vec![], ..hosts.data(0) }.packet();
        hosts.client.handle_host_packet(NOW, PacketRef::read(&packet));
        assert_eq!(
            hosts.client.poll_path().map(PacketBuf::into_bytes).as_deref(),
            Some(&packet[..])
        );
        hosts.server.handle_path_packet(NOW, PacketRef::read(&packet));
        assert_eq!(hosts.at_server(), [packet]);
    }
    assert_eq!((hosts.client.connections(), hosts.server.connections()), (0, 0));
}

#[test]
fn what_is_no_tcp_passes_and_so_do_connections_beyond_the_last() {
    let mut client = layer(FIXED, 1);
    client.handle_host_packet(NOW, PacketRef::read(b"no IP at all"));
    assert_eq!(client.poll_path().map(PacketBuf::into_bytes).unwrap(), b"no IP at all");
    let packet = |port: u16| {
        let tcp = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(port, 80, 1, 500);
        let mut packet = Vec::new();
        tcp.ack(1).write(&mut packet, b"data").unwrap();
        packet
    };
    for port in 0..CONNECTIONS_MAX as u16 {
        client.handle_host_packet(NOW, PacketRef::read(&packet(port)));
        assert_ne!(client.poll_path().map(PacketBuf::into_bytes).unwrap(), packet(port));
    }
    client.handle_host_packet(NOW, PacketRef::read(&packet(5_000)));
    assert_eq!(client.poll_path().map(PacketBuf::into_bytes).unwrap(), packet(5_000));
    // The connection has been silent for long.
    let later = Time::ZERO + CONNECTION_IDLE;
    client.handle_host_packet(later, PacketRef::read(&packet(5_001)));
    assert_ne!(client.poll_path().map(PacketBuf::into_bytes).unwrap(), packet(5_001));
    assert_eq!(client.connections(), CONNECTIONS_MAX);
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    /// Coded packets and acknowledgments are lost at random, in both directions. TCP is modelled as
    /// a sender with eight segments in flight that retransmits the oldest from time to time.
    #[test]
    fn a_transfer_over_a_bad_path_is_the_same_byte_for_byte(
        adaptive in any::<bool>(),
        v6 in any::<bool>(),
        lost in proptest::collection::vec(0..5_u8, 300..500),
    ) {
        let redundancy = if adaptive { ADAPTIVE } else { Redundancy::Fixed { factor: 1.2 } };
        let mut hosts = Hosts::connected(redundancy, v6);
        hosts.at_server();
    hosts.at_client();
        let mut fates = lost.iter().cycle();
        let mut is_lost = || fates.next() == Some(&0);
        let (total, mut next, mut acked) = (60_u32, 0, 0);
        let mut received: Vec<Vec<u8>> = Vec::new();
        for step in 0..4_000_u64 {
            let number = if step % 5 == 4 || next == total.min(acked + 8) { acked } else { next };
            next = next.max(number + 1);
            hosts.client.handle_host_packet(NOW, PacketRef::read(&hosts.data(number).packet()));
            hosts.client.handle_timeout(Time::from_millis(100 * step));
            while let Some(packet) = hosts.client.poll_path().map(PacketBuf::into_bytes) {
                if !is_lost() {
                    hosts.server.handle_path_packet(NOW, PacketRef::read(&packet));
                }
                received.extend(hosts.at_server());
            }
            while let Some(packet) = hosts.server.poll_path().map(PacketBuf::into_bytes) {
                if !is_lost() {
                    hosts.client.handle_path_packet(NOW, PacketRef::read(&packet));
                }
            }
            for packet in hosts.at_client() {
                let told = (header(&packet).acknowledgment_number - CLIENT_DATA) / DATA;
                prop_assert!(told <= next, "acknowledged what was never sent");
                acked = acked.max(told);
            }
            if acked == total {
                break;
            }
        }
        prop_assert_eq!(acked, total);
        let expected: Vec<_> = (0..total).map(|number| hosts.data(number).packet()).collect();
        prop_assert!(received == expected, "{} packets came", received.len());
    }

    #[test]
    fn whatever_comes_from_either_side_is_no_panic(
        inputs in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)),
            1..30,
        ),
    ) {
        let mut hosts = Hosts::connected(ADAPTIVE, false);
        let coded = hosts.send(0);
        hosts.server.handle_path_packet(NOW, PacketRef::read(&coded[0]));
        let ack = hosts.server.poll_path().map(PacketBuf::into_bytes).unwrap();
        let seeds = [coded[0].clone(), ack, hosts.data(1).packet(), hosts.tcp(false, 3, 9).packet()];
        for (step, (from_path, changes)) in inputs.into_iter().enumerate() {
            let mut packet = seeds[step % seeds.len()].clone();
            for (place, byte) in changes {
                let place = place.index(packet.len());
                packet[place] = byte;
            }
            for layer in [&mut hosts.client, &mut hosts.server] {
                if from_path {
                    layer.handle_path_packet(NOW, PacketRef::read(&packet));
                } else {
                    layer.handle_host_packet(NOW, PacketRef::read(&packet));
                }
                while layer.poll_path().map(PacketBuf::into_bytes).is_some() {}
                while layer.poll_host().map(PacketBuf::into_bytes).is_some() {}
                layer.handle_timeout(Time::from_millis(10 * step as u64));
                prop_assert!(layer.connections() <= CONNECTIONS_MAX);
            }
        }
    }
}
