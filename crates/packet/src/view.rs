//! Header parsing, all in one place.

use core::ops::Deref;

use crate::tcp_header::FLAGS_AT;
use crate::tcp_header::flags::{ACK, CWR, ECE, PSH, SYN};
use crate::{IPV4_LEN, IPV6_LEN, TCP_LEN, TcpView, UDP_LEN, protocol};

/// Fragment offset of IPv4, and "more fragments".
const OFFSET: u16 = 0x1fff;
const MORE: u16 = 0x2000;
/// "Don't fragment", in the first byte of these bits.
pub(crate) const DONT_FRAGMENT: u8 = 0x40;

/// IP version of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ip {
    /// Neither: there is no complete header of either.
    #[default]
    None,
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

/// Offset of the hop limit or TTL (RFC 791; RFC 8200).
pub(crate) fn hops_at(ip: Ip) -> Option<usize> {
    match ip {
        Ip::V4 => Some(8),
        Ip::V6 => Some(7),
        Ip::None => None,
    }
}

/// Fragment position of an IPv4 packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// Not fragmented.
    #[default]
    Whole,
    /// The first fragment.
    First,
    /// A later fragment, without a transport header.
    Later,
}

/// The parsed headers of a packet. A view describes the bytes it was read from; only this crate may
/// modify them. Lengths are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketView {
    pub(crate) ip: Ip,
    pub(crate) fragment: Fragment,
    pub(crate) protocol: u8,
    pub(crate) class: u8,
    /// TCP flags; zero without a complete TCP header.
    flags: u8,
    /// Offset of the transport header; beyond the end of a truncated packet.
    transport: u16,
    /// Offset of the data after a complete TCP or UDP header; zero if there is none.
    payload: u16,
    /// The packet's end according to IP, and its actual end.
    end: u32,
    len: u32,
}

impl PacketView {
    /// Parses a packet. A packet that is not IP, or lacks a complete IP header, has a view that
    /// says so. IPv6 extension headers before TCP's or UDP's are not parsed.
    #[inline]
    pub fn read(packet: &[u8]) -> Self {
        #[cfg(feature = "count")]
        READS.set(READS.get() + 1);
        let len = packet.len() as u32;
        let none = PacketView { len, ..PacketView::default() };
        let view = match packet.first().map_or(0, |first| first >> 4) {
            4 => {
                let Some(header) = packet.first_chunk() else { return none };
                read_ipv4(header)
            }
            6 => {
                let Some(header) = packet.first_chunk() else { return none };
                read_ipv6(header)
            }
            _ => return none,
        };
        if view.transport() < IPV4_LEN {
            return none;
        }
        let (payload, flags) = view.read_transport(packet).unwrap_or_default();
        PacketView { len, payload, flags, ..view }
    }

    /// Parses the TCP or UDP header as far as needed to find its end, which is returned with TCP's
    /// flags; `None` if the header is not complete.
    #[inline]
    fn read_transport(&self, packet: &[u8]) -> Option<(u16, u8)> {
        let segment = packet.get(self.transport()..).filter(|_| self.is_whole())?;
        let (header_len, flags) = match (self.protocol, segment.first_chunk::<TCP_LEN>()) {
            (protocol::TCP, Some(header)) => (4 * usize::from(header[12] >> 4), header[FLAGS_AT]),
            (protocol::UDP, _) => (UDP_LEN, 0),
            _ => return None,
        };
        let least = if self.protocol == protocol::TCP { TCP_LEN } else { UDP_LEN };
        let is_complete = (least..=segment.len()).contains(&header_len);
        is_complete.then(|| (self.transport + header_len as u16, flags))
    }

    /// IP version.
    pub fn ip(&self) -> Ip {
        self.ip
    }

    /// Fragment position.
    pub fn fragment(&self) -> Fragment {
        self.fragment
    }

    /// Whether it is unfragmented.
    pub fn is_whole(&self) -> bool {
        self.fragment == Fragment::Whole
    }

    /// IP protocol number, as in [`protocol`]; 0 if it is not IP.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// DSCP, the differentiated services codepoint (RFC 2474), 0..64.
    pub fn dscp(&self) -> u8 {
        self.class >> 2
    }

    /// ECN codepoint (RFC 3168), 0..4; 0: not ECN-capable.
    pub fn ecn(&self) -> u8 {
        self.class & 3
    }

    /// Offset of the transport header; beyond the bytes of a truncated packet.
    pub fn transport(&self) -> usize {
        usize::from(self.transport)
    }

    /// Offset of the data after a complete TCP or UDP header.
    pub fn payload(&self) -> Option<usize> {
        (self.payload > 0).then_some(usize::from(self.payload))
    }

    /// The packet's end according to IP.
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// Whether it ends where IP says.
    pub fn is_exact(&self) -> bool {
        self.end == self.len
    }

    /// Whether it is a TCP SYN.
    pub fn is_syn(&self) -> bool {
        self.flags & SYN != 0
    }

    /// TCP flags; 0 without a complete TCP header.
    pub fn tcp_flags(&self) -> u8 {
        self.flags
    }

    /// Whether it is a pure TCP acknowledgment, which carries no other information.
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        u32::from(self.payload) == self.len && self.flags & !(PSH | ECE | CWR) == ACK
    }

    /// Whether it may be reordered: pure TCP acknowledgments, UDP datagrams, and ICMP.
    #[inline]
    pub fn tolerates_reordering(&self) -> bool {
        let is_loose = matches!(self.protocol, protocol::ICMP | protocol::UDP | protocol::ICMPV6);
        let is_there = self.is_whole() && u32::from(self.transport) <= self.len;
        (is_loose && is_there) || self.is_pure_ack()
    }

    /// A detailed view of a TCP segment; `None` if it is not complete.
    #[inline]
    pub fn tcp(&self, packet: &[u8]) -> Option<TcpView> {
        let is_tcp = self.protocol == protocol::TCP && self.payload > 0;
        let is_there = u32::from(self.payload) <= self.end && self.end <= self.len;
        if is_tcp && is_there { TcpView::read(self, packet) } else { None }
    }
}

/// Parses an IPv4 header; an invalid header length gives too small an offset of the transport
/// header.
#[inline]
fn read_ipv4(header: &[u8; IPV4_LEN]) -> PacketView {
    let fragment = u16::from_be_bytes([header[6], header[7]]) & (OFFSET | MORE);
    PacketView {
        ip: Ip::V4,
        fragment: match (fragment & OFFSET, fragment) {
            (_, 0) => Fragment::Whole,
            (0, _) => Fragment::First,
            _ => Fragment::Later,
        },
        protocol: header[9],
        class: traffic_class(header),
        transport: 4 * u16::from(header[0] & 0xf),
        end: u16::from_be_bytes([header[2], header[3]]).into(),
        ..PacketView::default()
    }
}

#[inline]
fn read_ipv6(header: &[u8; IPV6_LEN]) -> PacketView {
    PacketView {
        ip: Ip::V6,
        protocol: header[6],
        class: traffic_class(header),
        transport: IPV6_LEN as u16,
        end: IPV6_LEN as u32 + u32::from(u16::from_be_bytes([header[4], header[5]])),
        ..PacketView::default()
    }
}

/// IPv4's type of service, or IPv6's traffic class.
///
/// # Panics
/// If the header is incomplete.
#[inline]
pub fn traffic_class(header: &[u8]) -> u8 {
    if header[0] >> 4 == 4 { header[1] } else { header[0] << 4 | header[1] >> 4 }
}

/// Whether a packet is a complete UDP datagram, without parsing the rest.
#[inline]
pub fn is_datagram(packet: &[u8]) -> bool {
    let view = match packet.first().map_or(0, |first| first >> 4) {
        4 => packet.first_chunk().map(read_ipv4),
        6 => packet.first_chunk().map(read_ipv6),
        _ => None,
    };
    view.is_some_and(|view| view.protocol == protocol::UDP && view.is_whole())
}

/// The identification in a header of IPv4 (RFC 6864).
///
/// # Panics
/// If the header is incomplete.
#[inline]
pub fn identification(header: &[u8]) -> u16 {
    u16::from_be_bytes([header[4], header[5]])
}

/// Whether routers may fragment an IPv4 packet.
///
/// # Panics
/// If the header is incomplete.
#[inline]
pub fn may_be_fragmented(header: &[u8]) -> bool {
    header[6] & DONT_FRAGMENT == 0
}

/// A packet and its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRef<'a> {
    view: PacketView,
    bytes: &'a [u8],
}

impl<'a> PacketRef<'a> {
    /// Parses a packet.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Self {
        PacketRef { view: PacketView::read(bytes), bytes }
    }

    /// Its view.
    pub fn view(&self) -> &PacketView {
        &self.view
    }

    /// Its bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// A detailed view of a TCP segment.
    #[inline]
    pub fn tcp(&self) -> Option<TcpView> {
        self.view.tcp(self.bytes)
    }

    /// Remaining hops: IPv4's TTL, IPv6's hop limit.
    pub fn hops(&self) -> Option<u8> {
        hops_at(self.view.ip).map(|at| self.bytes[at])
    }

    /// Copies the packet into its own buffer.
    pub fn to_buf(self) -> PacketBuf {
        PacketBuf { view: self.view, bytes: self.bytes.to_vec() }
    }

    /// The same without bytes after the IP packet.
    pub fn trimmed(mut self) -> Self {
        // A length that excludes the headers themselves is invalid.
        let end = self.view.end();
        if end < self.view.transport() {
            return self;
        }
        if let Some(bytes) = self.bytes.get(..end) {
            self.bytes = bytes;
            self.view.len = self.view.end;
        }
        self
    }
}

impl Deref for PacketRef<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// A packet in its own buffer, and its view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketBuf {
    pub(crate) view: PacketView,
    pub(crate) bytes: Vec<u8>,
}

impl PacketBuf {
    /// Parses a packet.
    #[inline]
    pub fn read(bytes: Vec<u8>) -> Self {
        PacketBuf { view: PacketView::read(&bytes), bytes }
    }

    /// Copies a packet into a buffer, replacing its contents.
    #[inline]
    pub fn copy(packet: PacketRef<'_>, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        // No more than needed: many of them are kept.
        buffer.reserve_exact(packet.bytes.len());
        buffer.extend_from_slice(packet.bytes);
        PacketBuf { view: packet.view, bytes: buffer }
    }

    /// The packet.
    #[inline]
    pub fn packet(&self) -> PacketRef<'_> {
        PacketRef { view: self.view, bytes: &self.bytes }
    }

    /// Capacity of the buffer, bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The buffer.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Deref for PacketBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(feature = "count")]
std::thread_local! {
    static READS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Packets parsed on this thread so far.
#[cfg(feature = "count")]
pub fn read_count() -> u64 {
    READS.get()
}
