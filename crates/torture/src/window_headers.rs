//! Restores TCP segments that are sent as differences from the previous segment of their flow.
//! Written from the tunnel's specification (docs/decisions/0012-header-compression.md),
//! independently of the code under test.

use std::collections::BTreeMap;

use super::window_packet::{TCP, ones_sum};

const PLAIN_IPV4: u8 = 0x45;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const TCP_LEN_MIN: usize = 20;
/// FIN, SYN, RST and URG.
const NOT_PLAIN: u8 = 0x27;
/// Two bytes of padding, then the head of the timestamps option.
const TIMESTAMPS: &[u8] = &[1, 1, 8, 10];

/// A reader of the packets in order: the last segments of flows, by the place where they are
/// remembered.
#[derive(Debug, Default)]
pub struct HeaderTwin {
    last: BTreeMap<u8, Segment>,
}

/// A segment, and the number by which its reader knows it.
#[derive(Clone, Debug)]
struct Segment {
    bytes: Vec<u8>,
    number: usize,
}

/// Ends of the IP and the TCP header, in a segment that can be the reference of a difference.
fn ends(packet: &[u8]) -> Option<(usize, usize)> {
    let (ip, protocol) = match packet.first()? {
        &PLAIN_IPV4 if packet.len() >= IPV4_LEN => {
            let offset = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff;
            (IPV4_LEN, if offset == 0 { packet[9] } else { 0 })
        }
        first if first >> 4 == 6 && packet.len() >= IPV6_LEN => (IPV6_LEN, packet[6]),
        _ => return None,
    };
    let data = ip + 4 * usize::from(packet.get(ip + 12)? >> 4);
    let fits = (ip + TCP_LEN_MIN..=packet.len()).contains(&data);
    let plain = packet.get(ip + 13)? & NOT_PLAIN == 0;
    (protocol == TCP && fits && plain).then_some((ip, data))
}

/// FNV-1a over addresses and ports, folded into a byte.
fn place(packet: &[u8], ip: usize) -> u8 {
    let mut hash = 2_166_136_261_u32;
    let addresses = if ip == IPV4_LEN { &packet[12..20] } else { &packet[8..40] };
    for byte in [addresses, &packet[ip..ip + 4]].concat() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    }
    let [_, second, _, fourth] = hash.to_be_bytes();
    second ^ fourth
}

/// Reads numbers from the front of a difference.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (front, rest) = self.0.split_first_chunk().ok_or("a difference ends early")?;
        self.0 = rest;
        Ok(*front)
    }

    /// Groups of seven bits, the lowest first.
    fn groups(&mut self) -> Result<u32, String> {
        let (mut number, mut weight) = (0_u64, 1);
        loop {
            let [byte] = self.take()?;
            number += u64::from(byte % 128) * weight;
            weight *= 128;
            if byte < 128 {
                return Ok(number as u32);
            }
            if weight > 1 << 32 {
                return Err("a number of more than 5 groups".to_owned());
            }
        }
    }
}

impl HeaderTwin {
    /// A packet was sent verbatim and in order.
    pub fn verbatim(&mut self, packet: &[u8], number: usize) {
        if let Some((ip, _)) = ends(packet) {
            self.last.insert(place(packet, ip), Segment { bytes: packet.to_vec(), number });
        }
    }

    /// The packet that a difference restores to, and the number of its reference.
    ///
    /// # Errors
    /// If there is no reference, or the difference is invalid.
    pub fn expand(&self, difference: &[u8]) -> Result<(Vec<u8>, usize), String> {
        let mut rest = Rest(difference);
        let [place, mask] = rest.take()?;
        let before = self.last.get(&place).ok_or_else(|| format!("nothing is at {place}"))?;
        let old = &before.bytes;
        let four = IPV4_LEN * usize::from(old[0] == PLAIN_IPV4);
        let ip = if four > 0 { IPV4_LEN } else { IPV6_LEN };
        let data = ip + 4 * usize::from(old[ip + 12] >> 4);
        let mut new = old[..data].to_vec();
        let number_at =
            |at: usize| u32::from_be_bytes([old[at], old[at + 1], old[at + 2], old[at + 3]]);
        let on = number_at(ip + 4).wrapping_add((old.len() - data) as u32);
        new[ip + 4..ip + 8].copy_from_slice(&on.to_be_bytes());
        new[ip + 16..ip + 18].copy_from_slice(&rest.take::<2>()?);
        if mask & 0x01 != 0 {
            new[ip + 4..ip + 8].copy_from_slice(&rest.take::<4>()?);
        }
        if mask & 0x02 != 0 {
            new[ip + 8..ip + 12].copy_from_slice(&rest.take::<4>()?);
        }
        if mask & 0x04 != 0 {
            new[ip + 14..ip + 16].copy_from_slice(&rest.take::<2>()?);
        }
        if mask & 0x08 != 0 {
            [new[ip + 13]] = rest.take()?;
        }
        let next = u16::from_be_bytes([old[4], old[5]]).wrapping_add(1).to_be_bytes();
        let ident = if mask & 0x10 != 0 { rest.take()? } else { next };
        for (bit, at) in [(0x20, ip + 24), (0x40, ip + 28)] {
            let ahead = if mask & bit != 0 { rest.groups()? } else { 0 };
            if ahead > 0 && data >= ip + 32 && &old[ip + 20..ip + 24] == TIMESTAMPS {
                let stamp = number_at(at).wrapping_add(ahead);
                new[at..at + 4].copy_from_slice(&stamp.to_be_bytes());
            }
        }
        if mask & 0x80 != 0 {
            let [class] = rest.take()?;
            set_class(&mut new, class);
        }
        new.extend_from_slice(rest.0);
        let len = new.len();
        if four > 0 {
            new[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            new[4..6].copy_from_slice(&ident);
            new[10..12].fill(0);
            let sum = !ones_sum(&new[..IPV4_LEN]);
            new[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            new[4..6].copy_from_slice(&((len - IPV6_LEN) as u16).to_be_bytes());
        }
        Ok((new, before.number))
    }

    /// Remembers the packet to which a difference was restored, at its place.
    pub fn note(&mut self, difference: &[u8], packet: &[u8], number: usize) {
        let segment = Segment { bytes: packet.to_vec(), number };
        difference.first().map(|&place| self.last.insert(place, segment));
    }
}

/// Sets IPv4's type of service, or IPv6's traffic class, which spans two bytes.
fn set_class(packet: &mut [u8], class: u8) {
    if packet[0] == PLAIN_IPV4 {
        packet[1] = class;
    } else {
        packet[0] = 0x60 | class >> 4;
        packet[1] = class << 4 | packet[1] & 0xf;
    }
}
