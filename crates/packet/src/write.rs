//! Writes headers and checksums, and modifies packets in transit.

use std::net::IpAddr;

use crate::view::{DONT_FRAGMENT, Ip, PacketBuf, hops_at};
use crate::{IPV4_LEN, IPV6_LEN, checksum};

/// Hop limit of packets created here.
const HOP_LIMIT: u8 = 64;
/// The ECN codepoint CE, both bits set (RFC 3168).
const CONGESTED: u8 = 3;

/// Appends an IP header; both addresses are of the same version.
pub fn write_ip(from: IpAddr, to: IpAddr, protocol: u8, payload_len: usize, out: &mut Vec<u8>) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let start = out.len();
            let total = (IPV4_LEN + payload_len) as u16;
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&total.to_be_bytes());
            // "Don't fragment", so that it needs no identification.
            out.extend_from_slice(&[0, 0, DONT_FRAGMENT, 0, HOP_LIMIT, protocol, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let checksum = checksum::of(&out[start..]);
            out[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
        }
        (from, to) => {
            let octets = |end| match end {
                IpAddr::V6(end) => end.octets(),
                IpAddr::V4(end) => end.to_ipv6_mapped().octets(),
            };
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&(payload_len as u16).to_be_bytes());
            out.extend_from_slice(&[protocol, HOP_LIMIT]);
            out.extend_from_slice(&octets(from));
            out.extend_from_slice(&octets(to));
        }
    }
}

/// Writes the packet's length into an IP header, which may stand alone, and IPv4's header checksum,
/// so this must come last.
///
/// # Panics
/// If the header is incomplete.
#[inline]
pub fn set_ip_len(header: &mut [u8], packet_len: usize) {
    if is_v4(header) {
        let header_len = 4 * usize::from(header[0] & 0xf);
        header[2..4].copy_from_slice(&(packet_len as u16).to_be_bytes());
        header[10..12].fill(0);
        let checksum = checksum::of(&header[..header_len]);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        header[4..6].copy_from_slice(&((packet_len - IPV6_LEN) as u16).to_be_bytes());
    }
}

/// Writes the identification of an IPv4 header (RFC 6864). Its checksum is wrong until
/// [`set_ip_len`].
///
/// # Panics
/// If the header is incomplete.
#[inline]
pub fn set_identification(header: &mut [u8], identification: u16) {
    header[4..6].copy_from_slice(&identification.to_be_bytes());
}

/// Writes IPv4's type of service, or IPv6's traffic class. IPv4's checksum is wrong until
/// [`set_ip_len`].
///
/// # Panics
/// If the header is incomplete.
#[inline]
pub fn set_traffic_class(header: &mut [u8], class: u8) {
    if is_v4(header) {
        header[1] = class;
    } else {
        header[0] = header[0] & 0xf0 | class >> 4;
        header[1] = header[1] & 0x0f | class << 4;
    }
}

#[inline]
fn is_v4(header: &[u8]) -> bool {
    header[0] >> 4 == 4
}

impl PacketBuf {
    /// Marks the packet as having met congestion (RFC 3168), if it is ECN-capable. Returns whether
    /// it is.
    pub fn mark_congestion(&mut self) -> bool {
        if self.view.ecn() == 0 {
            return false;
        }
        self.view.class |= CONGESTED;
        match self.view.ip {
            Ip::V4 => {
                change_word(&mut self.bytes, 0, |[first, class]| [first, class | CONGESTED]);
            }
            Ip::V6 => self.bytes[1] |= CONGESTED << 4,
            Ip::None => {}
        }
        true
    }

    /// Decrements the hop limit or TTL, as each router does (RFC 1812, Section 5.3.1; RFC 8200,
    /// Section 3). Returns whether the packet may go on: otherwise it is unchanged.
    pub fn take_hop(&mut self) -> bool {
        let Some(at) = hops_at(self.view.ip) else { return false };
        if self.bytes[at] <= 1 {
            return false;
        }
        if self.view.ip == Ip::V4 {
            change_word(&mut self.bytes, at, |[hops, protocol]| [hops - 1, protocol]);
        } else {
            self.bytes[at] -= 1;
        }
        true
    }

    /// Sets the remaining hops of a packet whose bytes crossed other hops unchanged. They never
    /// increase; a non-IP packet has none.
    pub fn limit_hops(&mut self, hops: u8) {
        let Some(at) = hops_at(self.view.ip).filter(|&at| hops < self.bytes[at]) else { return };
        if self.view.ip == Ip::V4 {
            change_word(&mut self.bytes, at, |[_, protocol]| [hops, protocol]);
        } else {
            self.bytes[at] = hops;
        }
    }

    /// Changes the window of a TCP segment, of which `tcp` is the view.
    pub fn set_window(&mut self, tcp: &crate::TcpView, window: u16) {
        tcp.set_window(&mut self.bytes, window);
    }

    /// Changes a TCP SYN, of which `tcp` is the view: removes the SACK-permitted option, and lowers
    /// the maximum segment size to `mss_max` bytes.
    pub fn restrict_syn(&mut self, tcp: &crate::TcpView, mss_max: u16) {
        tcp.restrict_syn(&mut self.bytes, mss_max);
    }
}

/// Changes a word of an IPv4 header, and updates its checksum (RFC 1624, Eq. 3).
fn change_word(packet: &mut [u8], at: usize, change: impl FnOnce([u8; 2]) -> [u8; 2]) {
    let before = [packet[at], packet[at + 1]];
    let after = change(before);
    packet[at..at + 2].copy_from_slice(&after);
    let word = u16::from_be_bytes;
    let checksum = checksum::updated(word([packet[10], packet[11]]), word(before), word(after));
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}
