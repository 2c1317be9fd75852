//! The one place where headers are read.

use core::ops::Deref;

use crate::tcp_header::FLAGS_AT;
use crate::tcp_header::flags::{ACK, CWR, ECE, PSH, SYN};
use crate::{IPV4_LEN, IPV6_LEN, TCP_LEN, TcpView, UDP_LEN, protocol};

/// Fragment offset of IPv4, and "more fragments".
const OFFSET: u16 = 0x1fff;
const MORE: u16 = 0x2000;
/// "Don't fragment", in the byte where these bits begin.
pub(crate) const DONT_FRAGMENT: u8 = 0x40;

/// Which IP a packet is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ip {
    /// Neither: what has no whole header of either.
    #[default]
    None,
    /// IPv4 (RFC 791).
    V4,
    /// IPv6 (RFC 8200).
    V6,
}

/// Where the hops stand that are left to a packet (RFC 791; RFC 8200).
pub(crate) fn hops_at(ip: Ip) -> Option<usize> {
    match ip {
        Ip::V4 => Some(8),
        Ip::V6 => Some(7),
        Ip::None => None,
    }
}

/// Which part of a packet of IPv4 this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// All of it.
    #[default]
    Whole,
    /// The first one.
    First,
    /// One without the headers of what IP carries.
    Later,
}

/// What there is to know of a packet, read once. It speaks of the bytes that it was read of; only
/// what this crate writes into them may change. Lengths are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketView {
    pub(crate) ip: Ip,
    pub(crate) fragment: Fragment,
    pub(crate) protocol: u8,
    pub(crate) class: u8,
    /// TCP's flags; zero where there is no whole header of it.
    flags: u8,
    /// Where the header behind IP's begins; that is behind the end of a packet that was cut.
    transport: u16,
    /// Where data begin behind a whole header of TCP or UDP; zero where there is none.
    payload: u16,
    /// Where IP says that the packet ends, and where it does.
    end: u32,
    len: u32,
}

impl PacketView {
    /// Reads a packet. Whatever is not IP, or has no whole header of it, has a view that says so.
    /// Of IPv6, headers before TCP's or UDP's are not looked behind.
    #[inline]
    pub fn read(packet: &[u8]) -> Self {
        #[cfg(feature = "count")]
        READS.set(READS.get() + 1);
        let len = packet.len() as u32;
        let none = PacketView { len, ..PacketView::default() };
        let mut view = match packet.first().map_or(0, |first| first >> 4) {
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
        view.len = len;
        view.read_transport(packet);
        view
    }

    /// Reads as much of TCP's or UDP's header as says where it ends.
    #[inline]
    fn read_transport(&mut self, packet: &[u8]) {
        let Some(segment) = packet.get(self.transport()..).filter(|_| self.is_whole()) else {
            return;
        };
        let (header_len, flags) = match (self.protocol, segment.first_chunk::<TCP_LEN>()) {
            (protocol::TCP, Some(header)) => (4 * usize::from(header[12] >> 4), header[FLAGS_AT]),
            (protocol::UDP, _) => (UDP_LEN, 0),
            _ => return,
        };
        let least = if self.protocol == protocol::TCP { TCP_LEN } else { UDP_LEN };
        if (least..=segment.len()).contains(&header_len) {
            self.payload = self.transport + header_len as u16;
            self.flags = flags;
        }
    }

    /// Which IP it is of.
    pub fn ip(&self) -> Ip {
        self.ip
    }

    /// Which part of a packet it is.
    pub fn fragment(&self) -> Fragment {
        self.fragment
    }

    /// It is no fragment.
    pub fn is_whole(&self) -> bool {
        self.fragment == Fragment::Whole
    }

    /// What IP carries: its number, as in [`protocol`]; 0 of what is not IP.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The codepoint for differentiated services (RFC 2474), 0..64.
    pub fn dscp(&self) -> u8 {
        self.class >> 2
    }

    /// The codepoint for congestion (RFC 3168), 0..4; 0: its sender does not understand marks.
    pub fn ecn(&self) -> u8 {
        self.class & 3
    }

    /// Where the header behind IP's begins; beyond the bytes of a packet that was cut.
    pub fn transport(&self) -> usize {
        usize::from(self.transport)
    }

    /// Where data begin behind a whole header of TCP or UDP.
    pub fn payload(&self) -> Option<usize> {
        (self.payload > 0).then_some(usize::from(self.payload))
    }

    /// Where IP says that the packet ends.
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// Whether it ends where IP says so.
    pub fn is_exact(&self) -> bool {
        self.end == self.len
    }

    /// Whether it sets up a connection of TCP.
    pub fn is_syn(&self) -> bool {
        self.flags & SYN != 0
    }

    /// TCP's flags; 0 where there is no whole header of it.
    pub fn tcp_flags(&self) -> u8 {
        self.flags
    }

    /// Whether it is a pure acknowledgement of TCP, which says nothing but how far the other side
    /// has come.
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        u32::from(self.payload) == self.len && self.flags & !(PSH | ECE | CWR) == ACK
    }

    /// Whether nothing in it minds being overtaken: pure acknowledgements of TCP, datagrams, and
    /// echoes of the network.
    #[inline]
    pub fn tolerates_reordering(&self) -> bool {
        let is_loose = matches!(self.protocol, protocol::ICMP | protocol::UDP | protocol::ICMPV6);
        let is_there = self.is_whole() && u32::from(self.transport) <= self.len;
        (is_loose && is_there) || self.is_pure_ack()
    }

    /// A closer look at a segment of TCP; `None` where it is not there as a whole.
    #[inline]
    pub fn tcp(&self, packet: &[u8]) -> Option<TcpView> {
        let is_tcp = self.protocol == protocol::TCP && self.payload > 0;
        let is_there = u32::from(self.payload) <= self.end && self.end <= self.len;
        (is_tcp && is_there).then(|| TcpView::read(self, packet))?
    }
}

/// What the header of IPv4 says; where the next one begins is too near if that makes no sense.
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
/// If the header is not whole.
#[inline]
pub fn traffic_class(header: &[u8]) -> u8 {
    if header[0] >> 4 == 4 { header[1] } else { header[0] << 4 | header[1] >> 4 }
}

/// Whether a packet is a whole datagram of UDP, without reading the rest of it.
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
/// If the header is not whole.
#[inline]
pub fn identification(header: &[u8]) -> u16 {
    u16::from_be_bytes([header[4], header[5]])
}

/// Whether routers may cut a packet of IPv4 in fragments.
///
/// # Panics
/// If the header is not whole.
#[inline]
pub fn may_be_fragmented(header: &[u8]) -> bool {
    header[6] & DONT_FRAGMENT == 0
}

/// A packet and what was read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRef<'a> {
    view: PacketView,
    bytes: &'a [u8],
}

impl<'a> PacketRef<'a> {
    /// Reads a packet.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Self {
        PacketRef { view: PacketView::read(bytes), bytes }
    }

    /// What was read of it.
    pub fn view(&self) -> &PacketView {
        &self.view
    }

    /// Its bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// A closer look at a segment of TCP.
    #[inline]
    pub fn tcp(&self) -> Option<TcpView> {
        self.view.tcp(self.bytes)
    }

    /// How many hops it may still make: IPv4's time to live, IPv6's hop limit.
    pub fn hops(&self) -> Option<u8> {
        hops_at(self.view.ip).map(|at| self.bytes[at])
    }

    /// The packet in a buffer of its own.
    pub fn to_buf(self) -> PacketBuf {
        PacketBuf { view: self.view, bytes: self.bytes.to_vec() }
    }

    /// The same without what follows the IP packet.
    pub fn trimmed(mut self) -> Self {
        // A length that leaves out the headers themselves says nothing.
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

/// A packet in a buffer of its own, and what was read of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketBuf {
    pub(crate) view: PacketView,
    pub(crate) bytes: Vec<u8>,
}

impl PacketBuf {
    /// Reads a packet.
    #[inline]
    pub fn read(bytes: Vec<u8>) -> Self {
        PacketBuf { view: PacketView::read(&bytes), bytes }
    }

    /// Copies a packet into a buffer, whatever was in it.
    #[inline]
    pub fn copy(packet: PacketRef<'_>, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        // No more than it takes: many of them are kept.
        buffer.reserve_exact(packet.bytes.len());
        buffer.extend_from_slice(packet.bytes);
        PacketBuf { view: packet.view, bytes: buffer }
    }

    /// The packet.
    #[inline]
    pub fn packet(&self) -> PacketRef<'_> {
        PacketRef { view: self.view, bytes: &self.bytes }
    }

    /// Bytes that the buffer has room for.
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

/// Packets read on this thread so far.
#[cfg(feature = "count")]
pub fn read_count() -> u64 {
    READS.get()
}
