//! Joins successive packets of a flow to a super-packet for the host (GRO).
//!
//! For the host's network stack, a super-packet costs about as much as a packet. Packets are joined
//! only if the host, or one that it forwards to, can cut them again into exactly the same packets:
//! with the same headers, contiguous sequence numbers, equal lengths except for a shorter last one,
//! and valid checksums. A congestion mark, or anything else specific to one packet, ends a
//! super-packet.

use corridor_proto::packet::protocol::{TCP, UDP};
use corridor_proto::packet::tcp_header::flags::{ACK, PSH};
use corridor_proto::packet::tcp_header::{ACK_AT, CHECKSUM_AT, FLAGS_AT, SEQUENCE_AT, WINDOW_AT};
use corridor_proto::packet::{
    IPV6_LEN, Ip, PacketRef, identification, may_be_fragmented, set_ip_len,
};
use tun_rs::{
    VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4,
    VIRTIO_NET_HDR_LEN, VirtioNetHdr, checksum, checksum_no_fold,
};

use super::PACKET_LEN_MAX;

/// Flows whose packets are joined at the same time; the one that has waited longest is written
/// first.
const FLOWS_MAX: usize = 8;
/// Most datagrams in a super-packet: the kernel's limit.
const DATAGRAMS_MAX: usize = 64;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum covers only the pseudo-header.
pub(super) const NEEDS_CHECKSUM: u8 = 1;

/// Joins packets. Every buffer that it writes begins with a virtio header.
pub(super) struct Joiner {
    /// The first `open` of these are in use, oldest first.
    heads: [Head; FLOWS_MAX],
    open: usize,
    joins_udp: bool,
}

/// A packet, and those joined to it.
struct Head {
    /// The virtio header, then the packet.
    bytes: Vec<u8>,
    shape: Shape,
    /// Number of packets in it.
    count: usize,
    /// Payload bytes of the first.
    segment_len: usize,
    /// The last one was shorter than the others, or has to be delivered at once.
    is_closed: bool,
}

/// Offsets in a packet that can be joined with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shape {
    is_v6: bool,
    protocol: u8,
    /// Offset of the transport header, and of the payload.
    transport: usize,
    payload: usize,
}

impl Joiner {
    /// `joins_udp`: the kernel also accepts super-packets of UDP.
    pub(super) fn new(joins_udp: bool) -> Self {
        let head = |_| Head {
            bytes: Vec::with_capacity(VIRTIO_NET_HDR_LEN + PACKET_LEN_MAX),
            shape: Shape::default(),
            count: 0,
            segment_len: 0,
            is_closed: true,
        };
        Joiner { heads: std::array::from_fn(head), open: 0, joins_udp }
    }

    /// Takes a packet. Writes what has to precede it, and what it fills.
    pub(super) fn push(&mut self, packet: PacketRef<'_>, mut write: impl FnMut(&[u8])) {
        let Some(flow) = Flow::of(packet) else {
            // Its flow is unknown, so everything before it has to be written first.
            self.flush(&mut write);
            self.begin(&packet, None);
            return self.flush(&mut write);
        };
        let may_join = flow.shape.may_join(packet, self.joins_udp);
        let at = self.heads[..self.open].iter().position(|head| head.is_of(&flow));
        if let Some(at) = at {
            if may_join && self.heads[at].join(&packet) {
                return;
            }
            self.close(at, &mut write);
        }
        if self.open == FLOWS_MAX {
            self.close(0, &mut write);
        }
        self.begin(&packet, Some(flow.shape));
        if !may_join {
            self.close(self.open - 1, &mut write);
        }
    }

    /// Writes everything.
    pub(super) fn flush(&mut self, mut write: impl FnMut(&[u8])) {
        for head in &mut self.heads[..self.open] {
            write(head.finish());
        }
        self.open = 0;
    }

    fn begin(&mut self, packet: &[u8], shape: Option<Shape>) {
        let head = &mut self.heads[self.open];
        head.shape = shape.unwrap_or_default();
        head.bytes.clear();
        head.bytes.extend_from_slice(&[0; VIRTIO_NET_HDR_LEN]);
        head.bytes.extend_from_slice(packet);
        head.count = 1;
        head.segment_len = packet.len().saturating_sub(head.shape.payload);
        head.is_closed = shape.is_none() || head.shape.pushes(packet);
        self.open += 1;
    }

    fn close(&mut self, at: usize, write: &mut impl FnMut(&[u8])) {
        write(self.heads[at].finish());
        self.heads[at..self.open].rotate_left(1);
        self.open -= 1;
    }
}

/// The flow of a TCP or UDP packet.
struct Flow<'a> {
    shape: Shape,
    addresses: &'a [u8],
    ports: &'a [u8],
}

impl<'a> Flow<'a> {
    /// `None` for fragments, other protocols, and packets without a whole TCP or UDP header.
    fn of(packet: PacketRef<'a>) -> Option<Self> {
        let view = packet.view();
        let (is_v6, protocol) = (view.ip() == Ip::V6, view.protocol());
        let shape =
            Shape { is_v6, protocol, transport: view.transport(), payload: view.payload()? };
        let (addresses, ports) = packet.flow_key();
        Some(Flow { shape, addresses, ports })
    }
}

impl Shape {
    /// Whether a packet of this shape may be joined with others of its flow.
    fn may_join(self, packet: PacketRef<'_>, joins_udp: bool) -> bool {
        let view = packet.view();
        if !view.is_exact() || self.payload >= packet.len() {
            return false;
        }
        if self.protocol == TCP {
            return view.tcp_flags() & !PSH == ACK;
        }
        // Zero means that there is no checksum, and would have to stay so.
        let number = |at| u16_at(&packet, self.transport + at).map(usize::from);
        joins_udp && number(4) == Some(packet.len() - self.transport) && number(6) != Some(0)
    }

    fn addresses(self, packet: &[u8]) -> Option<&[u8]> {
        packet.get(if self.is_v6 { 8..40 } else { 12..20 })
    }

    /// Whether the packet asks for immediate delivery (PSH).
    fn pushes(self, packet: &[u8]) -> bool {
        self.protocol == TCP
            && packet.get(self.transport + FLAGS_AT).is_some_and(|flags| flags & PSH != 0)
    }

    /// Offset of the transport checksum.
    fn checksum_at(self) -> usize {
        self.transport + if self.protocol == TCP { CHECKSUM_AT } else { 6 }
    }

    /// Checksum of the pseudo-header.
    fn pseudo_sum(self, packet: &[u8]) -> u64 {
        let len = (packet.len() - self.transport) as u64;
        let addresses = self.addresses(packet).unwrap_or_default();
        checksum_no_fold(addresses, u64::from(self.protocol) + len)
    }

    /// Whether the transport checksum is valid. (A packet with an invalid one must keep it.)
    fn is_intact(self, packet: &[u8]) -> bool {
        checksum(&packet[self.transport..], self.pseudo_sum(packet)) == u16::MAX
    }

    /// Whether all header fields agree that packets of a super-packet share.
    fn has_same_headers(self, one: &[u8], other: &[u8]) -> bool {
        let same = |range: std::ops::Range<usize>| one.get(range.clone()) == other.get(range);
        let ip = match self.is_v6 {
            // Version, class, flow label; then next header, hop limit, addresses.
            true => same(0..4) && same(6..IPV6_LEN),
            // Not the length, identification and checksum.
            false => same(0..2) && same(6..10) && same(12..self.transport),
        };
        let at = self.transport;
        let transport = match self.protocol {
            // Ports; acknowledgment, offset; window; urgent pointer, options.
            TCP => {
                same(at..at + 4)
                    && same(at + ACK_AT..at + FLAGS_AT)
                    && same(at + WINDOW_AT..at + CHECKSUM_AT)
                    && same(at + CHECKSUM_AT + 2..self.payload)
            }
            _ => same(at..at + 4),
        };
        ip && transport
    }
}

impl Head {
    fn packet(&self) -> &[u8] {
        &self.bytes[VIRTIO_NET_HDR_LEN..]
    }

    fn is_of(&self, flow: &Flow<'_>) -> bool {
        let (shape, own) = (self.shape, self.packet());
        (shape.is_v6, shape.protocol) == (flow.shape.is_v6, flow.shape.protocol)
            && shape.addresses(own) == Some(flow.addresses)
            && own.get(shape.transport..shape.transport + 4) == Some(flow.ports)
    }

    /// Joins a packet of the same flow that may be joined; returns whether it fits.
    fn join(&mut self, packet: &[u8]) -> bool {
        let shape = self.shape;
        let Some(payload) = packet.get(shape.payload..) else { return false };
        let fits = !self.is_closed
            && (1..=self.segment_len).contains(&payload.len())
            && self.packet().len() + payload.len() <= PACKET_LEN_MAX
            && shape.has_same_headers(self.packet(), packet)
            && self.follows(packet)
            && (self.count > 1 || shape.is_intact(self.packet()))
            && shape.is_intact(packet);
        if !fits {
            return false;
        }
        self.bytes.extend_from_slice(payload);
        self.count += 1;
        self.is_closed = payload.len() < self.segment_len;
        if shape.pushes(packet) {
            self.is_closed = true;
            self.bytes[VIRTIO_NET_HDR_LEN + shape.transport + FLAGS_AT] |= PSH;
        }
        true
    }

    /// Whether the packet's numbers are those that the kernel will generate.
    fn follows(&self, packet: &[u8]) -> bool {
        let (shape, own) = (self.shape, self.packet());
        // A packet that must not be fragmented needs no identification (RFC 6864).
        let is_next = shape.is_v6
            || !may_be_fragmented(own)
            || identification(packet) == identification(own).wrapping_add(self.count as u16);
        let in_sequence = match shape.protocol {
            TCP => {
                let joined = (own.len() - shape.payload) as u32;
                let sequence = |packet| u32_at(packet, shape.transport + SEQUENCE_AT).unwrap_or(0);
                sequence(packet) == sequence(own).wrapping_add(joined)
            }
            _ => self.count < DATAGRAMS_MAX,
        };
        is_next && in_sequence
    }

    /// The buffer to write: a packet as it came, or a super-packet with its headers completed.
    fn finish(&mut self) -> &[u8] {
        if self.count > 1 {
            let (header, packet) = self.bytes.split_at_mut(VIRTIO_NET_HDR_LEN);
            set_headers(self.shape, packet);
            let shape = self.shape;
            let virtio = VirtioNetHdr {
                flags: NEEDS_CHECKSUM,
                gso_type: match (shape.protocol, shape.is_v6) {
                    (TCP, false) => VIRTIO_NET_HDR_GSO_TCPV4,
                    (TCP, true) => VIRTIO_NET_HDR_GSO_TCPV6,
                    _ => VIRTIO_NET_HDR_GSO_UDP_L4,
                },
                hdr_len: shape.payload as u16,
                gso_size: self.segment_len as u16,
                csum_start: shape.transport as u16,
                csum_offset: (shape.checksum_at() - shape.transport) as u16,
            };
            let encoded = virtio.encode(header);
            debug_assert!(encoded.is_ok(), "the header has its length");
        }
        &self.bytes
    }
}

/// Sets lengths and checksums of a super-packet; the transport checksum covers only the
/// pseudo-header.
fn set_headers(shape: Shape, packet: &mut [u8]) {
    let len = packet.len();
    set_ip_len(packet, len);
    if shape.protocol == UDP {
        let length = ((len - shape.transport) as u16).to_be_bytes();
        packet[shape.transport + 4..shape.transport + 6].copy_from_slice(&length);
    }
    let sum = checksum(&[], shape.pseudo_sum(packet));
    let at = shape.checksum_at();
    packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
