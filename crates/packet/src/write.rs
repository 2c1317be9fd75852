//! Headers and checksums that are written, and what is changed in packets that pass.

use std::net::IpAddr;

use crate::IPV4_LEN;
use crate::view::{Ip, PacketBuf};

/// Hops of packets made here.
const HOP_LIMIT: u8 = 64;
/// Both bits that tell of congestion (RFC 3168).
const CONGESTED: u8 = 3;

/// Appends an IP header; both addresses are of the same version.
pub fn write_ip(from: IpAddr, to: IpAddr, protocol: u8, payload_len: usize, out: &mut Vec<u8>) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let start = out.len();
            let total = (IPV4_LEN + payload_len) as u16;
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&total.to_be_bytes());
            // Not to be fragmented, so that it needs no number.
            out.extend_from_slice(&[0, 0, 0x40, 0, HOP_LIMIT, protocol, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let sum = !folded(sum(&out[start..]));
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
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

/// The sum of the 16-bit words of RFC 1071, not yet folded: two words at a time, of which the first
/// counts 2^16 times, which is once when it is folded.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let number = |word: &[u8; 4]| u64::from(u32::from_be_bytes(*word));
    words.iter().map(number).sum::<u64>() + number(&last)
}

/// Such a sum in 16 bits.
#[inline]
pub fn folded(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

impl PacketBuf {
    /// Marks the packet as having met congestion (RFC 3168), if its sender understands that.
    /// Returns whether it does.
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

    /// Takes one hop off the packet, as each router does (RFC 1812, Section 5.3.1; RFC 8200,
    /// Section 3). Returns whether any is left: without one it goes no further, and is unchanged.
    pub fn take_hop(&mut self) -> bool {
        let at = match self.view.ip {
            Ip::V4 => 8,
            Ip::V6 => 7,
            Ip::None => return false,
        };
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

    /// Writes another window into a segment of TCP, of which `tcp` is the closer look.
    pub fn set_window(&mut self, tcp: &crate::TcpView, window: u16) {
        tcp.set_window(&mut self.bytes, window);
    }

    /// Of a SYN of TCP, of which `tcp` is the closer look: takes out the permission of selective
    /// acknowledgements, and lowers the longest segment to `mss_max` bytes.
    pub fn restrict_syn(&mut self, tcp: &crate::TcpView, mss_max: u16) {
        tcp.restrict_syn(&mut self.bytes, mss_max);
    }
}

/// Changes a word of IPv4's header, and the header's checksum with it (RFC 1624, Eq. 3).
fn change_word(packet: &mut [u8], at: usize, change: impl FnOnce([u8; 2]) -> [u8; 2]) {
    let before = [packet[at], packet[at + 1]];
    let after = change(before);
    packet[at..at + 2].copy_from_slice(&after);
    let word = |bytes| u64::from(u16::from_be_bytes(bytes));
    let not = |bytes| u64::from(!u16::from_be_bytes(bytes));
    let changed = not([packet[10], packet[11]]) + not(before) + word(after);
    packet[10..12].copy_from_slice(&(!folded(changed)).to_be_bytes());
}
