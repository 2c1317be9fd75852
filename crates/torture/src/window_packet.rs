//! Packets for flows in window mode, which inspects them: their flow, whether they need order, and
//! whether they can be marked with ECN. Written from the tunnel's specification, independently of
//! the code under test.

use corridor_proto::Delivery;

const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
/// Shortest unique packet: no IP, and three bytes of its number.
pub(super) const PACKET_LEN_MIN: usize = 4;
/// Bytes after the IP header: ports and number.
const BEHIND_IP: usize = 8;

const TCP_LEN: usize = 20;
const TIMESTAMPS_LEN: usize = 12;
/// Connections of a host; the first half use IPv4.
const CONNECTIONS: usize = 6;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
const FIN: u8 = 0x01;

/// The connections of a host, with consecutive segments.
pub(super) struct Host([Connection; CONNECTIONS]);

/// The state of a connection.
#[derive(Clone, Copy, Debug)]
struct Connection {
    next: u32,
    ack: u32,
    stamps: [u32; 2],
    ident: u16,
}

impl Host {
    pub(super) fn new() -> Self {
        // Sequence numbers wrap early.
        let first = Connection { next: 0, ack: 5, stamps: [1, 2], ident: 9 }.back(5_000);
        Host([first; CONNECTIONS])
    }

    /// Fills a packet with unique contents. Its number determines its type.
    pub(super) fn fill(&mut self, number: u32, packet: &mut [u8]) {
        packet.fill(0);
        if !matches!(number % 8, 0 | 3 | 4) || !self.fill_segment(number, packet) {
            fill_other(number, packet);
        }
    }

    /// Fills a packet with the next segment of some connection, if it has room for headers and
    /// number. TCP checksums are wrong: nothing on the path checks them.
    fn fill_segment(&mut self, number: u32, packet: &mut [u8]) -> bool {
        let mut dice = Few(number.wrapping_mul(0x9e37_79b1));
        let flow = dice.below(CONNECTIONS as u32) as usize;
        let ip = if flow < CONNECTIONS / 2 { IPV4_LEN } else { IPV6_LEN };
        let options = if flow.is_multiple_of(2) { TIMESTAMPS_LEN } else { 0 };
        let data = ip + TCP_LEN + options;
        if packet.len() < data + 4 {
            return false;
        }
        let connection = &mut self.0[flow];
        let sequence = connection.step(&mut dice, packet.len() - data);
        let (header, payload) = packet.split_at_mut(data);
        payload[..4].copy_from_slice(&number.to_be_bytes());
        let tcp = &mut header[ip..];
        tcp[..4].copy_from_slice(&[40, flow as u8, 0, 80]);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        tcp[8..12].copy_from_slice(&connection.ack.to_be_bytes());
        tcp[12] = ((TCP_LEN + options) as u8 / 4) << 4;
        tcp[13] = ACK | dice.seldom(8, PSH) | dice.seldom(60, FIN);
        tcp[15] = 200 + dice.seldom(5, 1);
        tcp[16..18].copy_from_slice(&(number as u16).to_be_bytes());
        if options > 0 {
            tcp[20..24].copy_from_slice(&[1, 1, 8, 10]);
            tcp[24..28].copy_from_slice(&connection.stamps[0].to_be_bytes());
            tcp[28..32].copy_from_slice(&connection.stamps[1].to_be_bytes());
        }
        let class = if flow.is_multiple_of(3) { 0x0a } else { 0x08 } | dice.seldom(50, 0x40);
        if ip == IPV4_LEN {
            connection.write_ipv4(class, packet);
            packet[10] ^= dice.seldom(30, 1); // A wrong checksum has to stay wrong.
        } else {
            write_ipv6(class, packet);
        }
        true
    }
}

/// Derives small numbers from a number.
struct Few(u32);

impl Few {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % limit
    }

    /// `bits` once in `times` cases, otherwise 0.
    fn seldom(&mut self, times: u32, bits: u8) -> u8 {
        if self.below(times) == 0 { bits } else { 0 }
    }
}

impl Connection {
    fn back(self, by: u32) -> Self {
        let stamps = self.stamps.map(|stamp| stamp.wrapping_sub(by / 10));
        let (next, ack) = (self.next.wrapping_sub(by), self.ack.wrapping_sub(by));
        Connection { next, ack, stamps, ident: self.ident.wrapping_sub(20) }
    }

    /// Advances; returns the sequence number of a segment with this payload length.
    fn step(&mut self, dice: &mut Few, payload_len: usize) -> u32 {
        self.ack = self.ack.wrapping_add(700 * dice.below(2));
        let ahead = match dice.below(40) {
            0 => 70_000,
            few => few % 3,
        };
        self.stamps[0] = self.stamps[0].wrapping_add(ahead);
        self.stamps[1] = self.stamps[1].wrapping_add(ahead * dice.below(2));
        self.ident = self.ident.wrapping_add(1 + u16::from(dice.seldom(9, 1)));
        match dice.below(16) {
            0 => return self.next.wrapping_sub(300), // Retransmission.
            1 => self.next = self.next.wrapping_add(1_000),
            _ => {}
        }
        let sequence = self.next;
        self.next = sequence.wrapping_add(payload_len as u32);
        sequence
    }

    fn write_ipv4(&self, class: u8, packet: &mut [u8]) {
        let len = (packet.len() as u16).to_be_bytes();
        packet[..4].copy_from_slice(&[0x45, class, len[0], len[1]]);
        packet[4..6].copy_from_slice(&self.ident.to_be_bytes());
        packet[6..10].copy_from_slice(&[0x40, 0, 64, TCP]);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = !ones_sum(&packet[..IPV4_LEN]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

fn write_ipv6(class: u8, packet: &mut [u8]) {
    let len = ((packet.len() - IPV6_LEN) as u16).to_be_bytes();
    packet[..2].copy_from_slice(&[0x60 | class >> 4, class << 4]);
    packet[4..8].copy_from_slice(&[len[0], len[1], TCP, 64]);
    packet[23] = 1;
    packet[39] = 2;
}

/// The one's complement sum of RFC 1071, not inverted.
pub(super) fn ones_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|two| 256 * u32::from(two[0]) + u32::from(two[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// Fills a packet with something else, or with what only resembles TCP.
fn fill_other(number: u32, packet: &mut [u8]) {
    let kind = number % 8;
    let number = number.to_be_bytes();
    let ip_len = match kind {
        0..3 => 0,
        3..7 => IPV4_LEN,
        _ => IPV6_LEN,
    };
    if ip_len == 0 || packet.len() < ip_len + BEHIND_IP {
        packet[0] = number[3] & 0xf; // Not a version of IP.
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

/// What packets of a flow have in common; they must not overtake each other in queues.
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

/// The IP protocol; TCP for packets without IP.
fn protocol(packet: &[u8]) -> u8 {
    match version(packet) {
        4 if packet.len() >= IPV4_LEN => packet[9],
        6 if packet.len() >= IPV6_LEN => packet[6],
        _ => TCP,
    }
}

/// Whether it is a UDP packet.
pub(super) fn is_datagram(packet: &[u8]) -> bool {
    protocol(packet) == UDP
}

/// Whether a packet has to stay behind those sent before it; `None`: its sender decides, and its
/// receiver stops waiting after a while.
pub(super) fn needs_order(packet: &[u8], delivery: Delivery) -> Option<bool> {
    match delivery {
        Delivery::InOrder => Some(true),
        Delivery::Immediate => Some(false),
        Delivery::Auto if protocol(packet) == UDP => None,
        Delivery::Auto => Some(!matches!(protocol(packet), ICMP | ICMPV6)),
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

/// The packet without a congestion mark.
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

/// Whether a packet equals one that was sent, except for a valid congestion mark.
pub(super) fn is_marked_copy(given: &[u8], sent: &[u8]) -> bool {
    let sound = |packet: &[u8]| {
        version(packet) != 4 || packet.len() < IPV4_LEN || ones_sum(&packet[..IPV4_LEN]) == 0xffff
    };
    let marked = unmarked(given) == unmarked(sent) && ecn(given) != 0 && ecn(sent) == 3;
    given == sent || (marked && sound(given) == sound(sent))
}
