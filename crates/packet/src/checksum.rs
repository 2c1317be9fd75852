//! The checksum of IP, TCP, UDP and ICMP (RFC 1071).

use std::net::IpAddr;

/// The checksum over `bytes`, with its own field counted as zero.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// The sum of the 16-bit words, not yet folded: two words at a time, the first of them times 2^16,
/// which folds to 1.
#[inline]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let number = |word: &[u8; 4]| u64::from(u32::from_be_bytes(*word));
    words.iter().map(number).sum::<u64>() + number(&last)
}

/// Folds such a sum to 16 bits; 0xffff over data that includes a correct checksum.
#[inline]
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// The sum over the pseudo-header for `len` bytes of IP payload (RFC 9293, Section 3.1; RFC 8200,
/// Section 8.1).
pub fn pseudo_header(from: IpAddr, to: IpAddr, protocol: u8, len: usize) -> u64 {
    let address = |end| match end {
        IpAddr::V4(end) => sum(&end.octets()),
        IpAddr::V6(end) => sum(&end.octets()),
    };
    address(from) + address(to) + u64::from(protocol) + len as u64
}

/// The updated checksum after a change, given the sum of the changed words before and after. A
/// wrong checksum stays wrong (RFC 1624, Eq. 3).
#[inline]
pub(crate) fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!before) + u64::from(after))
}
