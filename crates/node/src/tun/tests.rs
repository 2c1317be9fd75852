//! Super-packets against a naive implementation that cuts one packet at a time.

use corridor_base::Stream;
use corridor_base::rand::{Rng, SeedableRng};
use corridor_proto::packet::PacketRef;
use corridor_proto::packet::protocol::{TCP, UDP};
use corridor_proto::packet::tcp_header::flags::{ACK, CWR, ECE, FIN, PSH};
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr, gso_split};

use super::join::Joiner;
use super::mend_zero_checksum;

/// The header fields of a packet.
#[derive(Clone, Copy, Debug)]
struct Fields {
    is_v6: bool,
    protocol: u8,
    port: u16,
    ecn: u8,
    id: u16,
    dont_fragment: bool,
    sequence: u32,
    acknowledgement: u32,
    window: u16,
    flags: u8,
    /// Bytes of TCP options.
    options: usize,
}

const PLAIN: Fields = Fields {
    is_v6: false,
    protocol: TCP,
    port: 1,
    ecn: 2,
    id: 7,
    dont_fragment: true,
    sequence: 1_000,
    acknowledgement: 5,
    window: 100,
    flags: ACK,
    options: 12,
};

/// The Internet checksum, word by word.
fn checksum(bytes: &[u8], mut sum: u32) -> u16 {
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

impl Fields {
    fn transport(self) -> usize {
        if self.is_v6 { 40 } else { 20 }
    }

    fn header_len(self) -> usize {
        self.transport() + if self.protocol == TCP { 20 + self.options } else { 8 }
    }

    /// A packet with valid lengths and checksums.
    fn packet(self, payload: &[u8]) -> Vec<u8> {
        let transport_len = self.header_len() - self.transport() + payload.len();
        let mut packet = if self.is_v6 {
            let mut header = vec![0x60, self.ecn << 4, 0, 0, 0, 0, self.protocol, 64];
            header[4..6].copy_from_slice(&(transport_len as u16).to_be_bytes());
            header.extend_from_slice(&[0xfd; 32]);
            header
        } else {
            let mut header = vec![0x45, self.ecn, 0, 0, 0, 0, 0, 0, 64, self.protocol, 0, 0];
            header[2..4].copy_from_slice(&(20 + transport_len as u16).to_be_bytes());
            header[4..6].copy_from_slice(&self.id.to_be_bytes());
            header[6] = if self.dont_fragment { 0x40 } else { 0 };
            header.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            let sum = checksum(&header, 0);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            header
        };
        packet.extend_from_slice(&self.port.to_be_bytes());
        packet.extend_from_slice(&80_u16.to_be_bytes());
        if self.protocol == TCP {
            packet.extend_from_slice(&self.sequence.to_be_bytes());
            packet.extend_from_slice(&self.acknowledgement.to_be_bytes());
            packet.extend_from_slice(&[((20 + self.options) << 2) as u8, self.flags]);
            packet.extend_from_slice(&self.window.to_be_bytes());
            packet.extend_from_slice(&[0; 4]);
            packet.extend(std::iter::repeat_n(1, self.options));
        } else {
            packet.extend_from_slice(&(transport_len as u16).to_be_bytes());
            packet.extend_from_slice(&[0; 2]);
        }
        packet.extend_from_slice(payload);
        self.set_checksum(&mut packet);
        packet
    }

    fn checksum_at(self) -> usize {
        self.transport() + if self.protocol == TCP { 16 } else { 6 }
    }

    fn pseudo_header(self, packet: &[u8]) -> Vec<u8> {
        let addresses = if self.is_v6 { &packet[8..40] } else { &packet[12..20] };
        let len = (packet.len() - self.transport()) as u32;
        [addresses, &len.to_be_bytes(), &[0, 0, 0, self.protocol]].concat()
    }

    fn set_checksum(self, packet: &mut [u8]) {
        let at = self.checksum_at();
        packet[at..at + 2].fill(0);
        let sum = u32::from(!checksum(&self.pseudo_header(packet), 0));
        let sum = checksum(&packet[self.transport()..], sum);
        let sum = if self.protocol == UDP && sum == 0 { 0xffff } else { sum };
        packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// The packets that a super-packet with this payload stands for.
    fn cut(self, payload: &[u8], segment_len: usize) -> Vec<Vec<u8>> {
        let count = payload.len().div_ceil(segment_len);
        let segment = |(at, part): (usize, &[u8])| {
            let mut fields = self;
            fields.id = fields.id.wrapping_add(at as u16);
            fields.sequence = fields.sequence.wrapping_add((at * segment_len) as u32);
            if at > 0 {
                fields.flags &= !CWR;
            }
            if at + 1 < count {
                fields.flags &= !(FIN | PSH);
            }
            fields.packet(part)
        };
        payload.chunks(segment_len).enumerate().map(segment).collect()
    }

    /// Reads the header fields of a packet.
    fn of(packet: &[u8]) -> Fields {
        let is_v6 = packet[0] >> 4 == 6;
        let transport = if is_v6 { 40 } else { 20 };
        let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let long = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
        let protocol = if is_v6 { packet[6] } else { packet[9] };
        Fields {
            is_v6,
            protocol,
            port: word(transport),
            ecn: if is_v6 { packet[1] >> 4 } else { packet[1] },
            id: if is_v6 { 0 } else { word(4) },
            dont_fragment: packet[6] & 0x40 != 0,
            sequence: if protocol == TCP { long(transport + 4) } else { 0 },
            acknowledgement: if protocol == TCP { long(transport + 8) } else { 0 },
            window: if protocol == TCP { word(transport + 14) } else { 0 },
            flags: if protocol == TCP { packet[transport + 13] } else { 0 },
            options: if protocol == TCP {
                usize::from(packet[transport + 12] >> 2) - 20
            } else {
                0
            },
        }
    }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * index % 251) as u8).collect()
}

#[test]
fn what_the_kernel_hands_over_is_cut_by_the_book() {
    for (is_v6, protocol) in [(false, TCP), (true, TCP), (false, UDP), (true, UDP)] {
        for flags in [ACK, ACK | PSH, ACK | FIN | PSH, ACK | CWR | ECE] {
            for (len, segment_len) in [(10_000, 1_357), (4_000, 1_000), (1_001, 1_000), (7, 7)] {
                let options = if flags == ACK { 0 } else { 12 };
                let fields = Fields { is_v6, protocol, flags, options, id: u16::MAX - 2, ..PLAIN };
                let payload = payload(len);
                let mut whole = fields.packet(&payload);
                let header = VirtioNetHdr {
                    flags: 1,
                    gso_type: if protocol == UDP {
                        5
                    } else if is_v6 {
                        4
                    } else {
                        1
                    },
                    hdr_len: fields.header_len() as u16,
                    gso_size: segment_len as u16,
                    csum_start: fields.transport() as u16,
                    csum_offset: (fields.checksum_at() - fields.transport()) as u16,
                };
                let (mut packets, mut lens) = (vec![vec![0; 2_000]; 64], [0; 64]);
                let count =
                    gso_split(&mut whole, header, &mut packets, &mut lens, 0, is_v6).unwrap();
                let cut: Vec<_> =
                    packets.iter().zip(lens).map(|(packet, len)| packet[..len].to_vec()).collect();
                assert_eq!(cut[..count], fields.cut(&payload, segment_len), "{fields:?}");
            }
        }
    }
}

/// Passes packets through a joiner, and returns what it wrote.
fn join(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut joiner, mut written) = (Joiner::new(true), Vec::new());
    for packet in packets {
        joiner.push(PacketRef::read(packet), |bytes| written.push(bytes.to_vec()));
    }
    joiner.flush(|bytes| written.push(bytes.to_vec()));
    written
}

/// The packets that a buffer for the kernel stands for.
fn packets_of(written: &[u8]) -> Vec<Vec<u8>> {
    let (header, packet) = written.split_at(VIRTIO_NET_HDR_LEN);
    let header = VirtioNetHdr::decode(header).unwrap();
    if header.gso_type == 0 {
        assert_eq!(header.flags, 0, "a packet alone has its checksum");
        return vec![packet.to_vec()];
    }
    let fields = Fields::of(packet);
    assert_eq!(usize::from(header.hdr_len), fields.header_len());
    assert_eq!(usize::from(header.csum_start), fields.transport());
    assert_eq!(header.flags, 1);
    let at = fields.transport() + usize::from(header.csum_offset);
    assert_eq!(at, fields.checksum_at());
    let sum = u16::from_be_bytes([packet[at], packet[at + 1]]);
    assert_eq!(sum, !checksum(&fields.pseudo_header(packet), 0), "the sum that the kernel expects");
    let payload = &packet[fields.header_len()..];
    let mut whole = fields.packet(payload);
    whole[at..at + 2].copy_from_slice(&packet[at..at + 2]);
    assert_eq!(whole, packet, "lengths and header checksum");
    fields.cut(payload, usize::from(header.gso_size))
}

fn is_joined(written: &[u8]) -> bool {
    written[1] != 0
}

/// A run of segments with contiguous sequence numbers.
fn run(fields: Fields, lens: &[usize]) -> Vec<Vec<u8>> {
    let mut next = fields;
    let segment = |&len: &usize| {
        let packet = next.packet(&payload(len));
        next.sequence = next.sequence.wrapping_add(len as u32);
        next.id = next.id.wrapping_add(1);
        packet
    };
    lens.iter().map(segment).collect()
}

#[test]
fn a_run_becomes_one_super_packet() {
    for (is_v6, protocol) in [(false, TCP), (true, TCP), (false, UDP), (true, UDP)] {
        let fields = Fields { is_v6, protocol, dont_fragment: false, ..PLAIN };
        let fields = Fields { sequence: u32::MAX - 5_000, id: u16::MAX - 3, ..fields };
        let packets = run(fields, &[&[1_200; 40][..], &[17]].concat());
        let written = join(&packets);
        assert_eq!(written.len(), 1, "{fields:?}");
        assert_eq!(packets_of(&written[0]), packets);
    }
    // No longer than an IP packet, and no more datagrams than the kernel can cut.
    let packets = run(PLAIN, &[1_400; 100]);
    assert_eq!(join(&packets).len(), 3);
    let packets = run(Fields { protocol: UDP, ..PLAIN }, &[100; 100]);
    assert_eq!(join(&packets).len(), 2);
}

#[test]
fn what_differs_is_not_joined() {
    let changes: [fn(&mut Fields); 10] = [
        |fields| fields.ecn = 3,
        |fields| fields.acknowledgement += 1,
        |fields| fields.window += 1,
        |fields| fields.sequence += 1,
        |fields| fields.flags |= CWR,
        |fields| fields.flags |= ECE,
        |fields| fields.flags |= FIN,
        |fields| fields.options = 16,
        |fields| fields.dont_fragment = false,
        |fields| fields.port += 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let first = PLAIN;
        let mut second = Fields { sequence: PLAIN.sequence + 1_000, id: PLAIN.id + 1, ..PLAIN };
        change(&mut second);
        let packets = [first.packet(&payload(1_000)), second.packet(&payload(1_000))];
        let written = join(&packets);
        assert_eq!(written.len(), 2, "change {number}");
        assert!(!written.iter().any(|bytes| is_joined(bytes)));
        let alone: Vec<_> = written.iter().flat_map(|bytes| packets_of(bytes)).collect();
        assert_eq!(alone, packets, "change {number}");
    }
    // After a pushed or a shorter segment, a new super-packet begins.
    let mut packets = run(PLAIN, &[1_000, 1_000, 900, 1_000, 1_000]);
    assert_eq!(join(&packets).len(), 2);
    packets[1] = {
        let fields = Fields::of(&packets[1]);
        Fields { flags: ACK | PSH, ..fields }.packet(&payload(1_000))
    };
    let written = join(&packets);
    assert_eq!(written.len(), 3);
    assert_eq!(written.iter().flat_map(|bytes| packets_of(bytes)).collect::<Vec<_>>(), packets);
    // Identifications that are not consecutive, in packets that may be fragmented.
    let mut packets = run(Fields { dont_fragment: false, ..PLAIN }, &[1_000; 2]);
    packets[1] = Fields { id: 77, ..Fields::of(&packets[1]) }.packet(&payload(1_000));
    assert_eq!(join(&packets), packets.map_with_header());
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    for bad in [0, 1, 2] {
        let mut packets = run(PLAIN, &[1_000; 4]);
        packets[bad][500] ^= 1;
        let written = join(&packets);
        assert_eq!(written.iter().flat_map(|bytes| packets_of(bytes)).collect::<Vec<_>>(), packets);
    }
    // Without a checksum, and it stays so.
    let mut packets = run(Fields { protocol: UDP, ..PLAIN }, &[1_000; 3]);
    packets.iter_mut().for_each(|packet| packet[26..28].fill(0));
    assert_eq!(join(&packets), packets.map_with_header());
}

trait MapWithHeader {
    /// Each packet as it is written alone.
    fn map_with_header(&self) -> Vec<Vec<u8>>;
}

impl MapWithHeader for Vec<Vec<u8>> {
    fn map_with_header(&self) -> Vec<Vec<u8>> {
        self.iter().map(|packet| [&[0; VIRTIO_NET_HDR_LEN][..], packet].concat()).collect()
    }
}

/// A flow's next packet, usually one that can be joined.
fn draw(fields: &mut Fields, dice: &mut Stream) -> Vec<u8> {
    let mut roll = |sides: u32| dice.next_u32() % sides;
    let len = match roll(8) {
        0 => roll(1_000) as usize,
        _ => 1_000,
    };
    let mut now = *fields;
    now.flags |= [PSH, FIN, CWR, ECE][roll(4) as usize] * u8::from(roll(12) == 0);
    now.ecn |= u8::from(roll(20) == 0);
    fields.acknowledgement += u32::from(roll(10) == 0);
    fields.sequence = now.sequence.wrapping_add(len as u32).wrapping_add(u32::from(roll(15) == 0));
    fields.id = now.id.wrapping_add(1);
    let mut packet = now.packet(&payload(len));
    match roll(30) {
        0 => packet[now.header_len() - 1] ^= 0x10,
        // A fragment.
        1 if !now.is_v6 => packet[6] |= 0x20,
        _ => {}
    }
    packet
}

#[test]
fn whatever_comes_goes_to_the_host_as_it_was_and_in_order() {
    let mut joined = 0;
    for seed in 0..300 {
        let mut dice = Stream::from_seed([seed as u8; 32]);
        let mut flows: Vec<Fields> = (0..1 + seed % 12)
            .map(|port| Fields {
                is_v6: port % 3 == 1,
                protocol: if port % 4 == 2 { UDP } else { TCP },
                dont_fragment: port % 2 == 0,
                options: [0, 12][port as usize % 2],
                port,
                ..PLAIN
            })
            .collect();
        let mut packets = Vec::new();
        while packets.len() < 100 {
            let flow = dice.next_u32() as usize % flows.len();
            for _ in 0..dice.next_u32() % 8 {
                packets.push(draw(&mut flows[flow], &mut dice));
            }
        }
        let written = join(&packets);
        joined += written.iter().filter(|bytes| is_joined(bytes)).count();
        let came: Vec<_> = written.iter().flat_map(|bytes| packets_of(bytes)).collect();
        assert_eq!(came.len(), packets.len());
        for port in 0..flows.len() as u16 {
            let of_flow = |packets: &[Vec<u8>]| -> Vec<_> {
                let is_of = |packet: &&Vec<u8>| Fields::of(packet).port == port;
                packets.iter().filter(is_of).cloned().collect()
            };
            assert_eq!(of_flow(&came), of_flow(&packets), "seed {seed}, flow {port}");
        }
    }
    assert!(joined > 1_000, "{joined} super-packets");
}

#[test]
fn no_bytes_make_it_panic_or_change() {
    let mut dice = Stream::from_seed([9; 32]);
    for _ in 0..2_000 {
        let packets: Vec<Vec<u8>> = (0..5)
            .map(|_| {
                let mut packet = PLAIN.packet(&payload(dice.next_u32() as usize % 40));
                packet.truncate(1 + dice.next_u32() as usize % packet.len());
                for _ in 0..dice.next_u32() % 4 {
                    let at = dice.next_u32() as usize % packet.len().min(44);
                    packet[at] = dice.next_u32() as u8;
                }
                packet
            })
            .collect();
        // None of them continues another: each is written alone, and those of a flow in order.
        let mut came: Vec<_> = join(&packets);
        let mut sent = packets.map_with_header();
        came.sort();
        sent.sort();
        assert_eq!(came, sent);
    }
}

/// As parsed and summed by the library, whether the result is zero or not.
#[test]
fn a_checksum_of_udp_that_is_zero_is_sent_as_all_ones() {
    for is_v6 in [false, true] {
        let fields = Fields { is_v6, protocol: UDP, ..PLAIN };
        let at = fields.checksum_at();
        let header = VirtioNetHdr {
            flags: 1,
            csum_start: fields.transport() as u16,
            csum_offset: 6,
            ..VirtioNetHdr::default()
        };
        let mut bytes = [0; VIRTIO_NET_HDR_LEN];
        header.encode(&mut bytes).unwrap();
        let mut zeros = 0;
        for number in 0..=u16::MAX {
            let by_the_book = fields.packet(&number.to_be_bytes());
            let mut packet = by_the_book.clone();
            if packet[at..at + 2] == [0xff, 0xff] {
                packet[at..at + 2].fill(0);
                zeros += 1;
            }
            mend_zero_checksum(&bytes, &mut packet);
            assert_eq!(packet, by_the_book, "{number}");
        }
        assert!(zeros > 0);
        // A checksum that its sender left out stays out.
        let header = VirtioNetHdr { flags: 0, ..header };
        header.encode(&mut bytes).unwrap();
        let mut packet = fields.packet(&[]);
        packet[at..at + 2].fill(0);
        mend_zero_checksum(&bytes, &mut packet);
        assert_eq!(packet[at..at + 2], [0, 0]);
    }
}
