//! IP packets with TCP in them: what of them is looked at, what is changed, and what is made.

use std::net::IpAddr;

use etherparse::NetSlice;

/// IP's number of TCP.
const TCP: u8 = 6;
/// Bytes of an IPv6 header, the longer of the two that are made here.
pub const IP_HEADER_LEN_MAX: usize = 40;
/// Bytes of an IPv4 header without options.
const IPV4_HEADER_LEN: usize = 20;
/// Fragment offset and "more fragments" of IPv4.
const IPV4_FRAGMENT: u16 = 0x3fff;
/// Bytes of a TCP header without options.
const TCP_HEADER_LEN: usize = 20;
/// Where TCP's header has the flags, the window and the checksum.
const FLAGS_AT: usize = 13;
const WINDOW_AT: usize = 14;
const CHECKSUM_AT: usize = 16;
/// Hops of packets made here.
const HOP_LIMIT: u8 = 64;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// What a SYN has that asks for AccECN (RFC 9768): one bit before the flags, and two of them.
const FLAGS_BEFORE: u8 = 0x01;
const ECE_CWR: u8 = 0xc0;

/// Kinds of TCP options.
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_MSS: u8 = 2;
const OPTION_SCALE: u8 = 3;
const OPTION_SACK_PERMITTED: u8 = 4;
const OPTION_TIMESTAMPS: u8 = 8;
/// What forbids to write another window: signatures over the header (RFC 2385, RFC 5925), and
/// multipath TCP, whose windows are of the whole connection (RFC 8684).
const OPTION_MD5: u8 = 19;
const OPTION_AUTHENTICATION: u8 = 29;
const OPTION_MULTIPATH: u8 = 30;

/// One end of a connection.
pub type End = (IpAddr, u16);

/// A packet with a whole TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct TcpView {
    pub from: End,
    pub to: End,
    /// Where TCP's header begins, where data begins, and where the packet ends.
    tcp: usize,
    data: usize,
    end: usize,
    pub sequence: u32,
    pub ack: u32,
    pub window: u16,
    /// And the byte before them.
    flags: [u8; 2],
    options: Options,
}

/// What the layers want to know of TCP's options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub scale: Option<u8>,
    /// Longest segment that the sender of this takes, bytes.
    pub mss: Option<u16>,
    /// The sender's timestamp, and the one that it echoes.
    pub timestamps: Option<(u32, u32)>,
    /// The window is not to be touched.
    pub is_protected: bool,
}

impl TcpView {
    /// Looks at a packet; `None` for what is no TCP, or not all of it, and where IPv6 has headers
    /// before TCP's. By hand, since this is done for each packet, and other ways to read it take
    /// several times as long.
    pub fn of(packet: &[u8]) -> Option<TcpView> {
        let (from, to, start, end) = match packet.first()? >> 4 {
            4 => ipv4_of_tcp(packet)?,
            6 => ipv6_of_tcp(packet)?,
            _ => return None,
        };
        let segment = packet.get(start..end)?;
        let header: &[u8; TCP_HEADER_LEN] = segment.first_chunk()?;
        let u16_at = |at| u16::from_be_bytes([header[at], header[at + 1]]);
        let u32_at = |at| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        let header_len = 4 * usize::from(header[FLAGS_AT - 1] >> 4);
        let options = segment.get(TCP_HEADER_LEN..header_len)?;
        Some(TcpView {
            from: (from, u16_at(0)),
            to: (to, u16_at(2)),
            tcp: start,
            data: start + header_len,
            end,
            sequence: u32_at(4),
            ack: u32_at(8),
            window: u16_at(WINDOW_AT),
            flags: [FLAGS_AT, FLAGS_AT - 1].map(|at| header[at]),
            options: Options::read(options),
        })
    }

    pub fn is_syn(&self) -> bool {
        self.flags[0] & SYN != 0
    }

    pub fn is_fin(&self) -> bool {
        self.flags[0] & FIN != 0
    }

    pub fn is_rst(&self) -> bool {
        self.flags[0] & RST != 0
    }

    pub fn is_ack(&self) -> bool {
        self.flags[0] & ACK != 0
    }

    /// Whether this opens a connection whose acknowledgements shall count marks of congestion.
    pub fn asks_for_accurate_ecn(&self) -> bool {
        let [flags, before] = self.flags;
        flags & (SYN | ACK | ECE_CWR) == SYN | ECE_CWR && before & FLAGS_BEFORE != 0
    }

    pub fn data_len(&self) -> usize {
        self.end - self.data
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The packet without what may follow the IP packet.
    pub fn trimmed<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[..self.end]
    }

    /// Writes another window. A checksum that was wrong stays wrong (RFC 1624, Eq. 3).
    pub fn set_window(&self, packet: &mut [u8], window: u16) {
        let at = self.tcp + WINDOW_AT;
        packet[at..at + 2].copy_from_slice(&window.to_be_bytes());
        let at = self.tcp + CHECKSUM_AT;
        let checksum = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let changed = u64::from(!checksum) + u64::from(!self.window) + u64::from(window);
        packet[at..at + 2].copy_from_slice(&(!folded(changed)).to_be_bytes());
    }

    /// Number after the last byte that this takes of the sequence.
    pub fn sequence_end(&self) -> u32 {
        let flags = u32::from(self.is_syn()) + u32::from(self.is_fin());
        self.sequence.wrapping_add(self.data_len() as u32 + flags)
    }

    /// Of a SYN: takes out the permission of selective acknowledgements, and lowers the longest
    /// segment to `mss_max`.
    pub fn restrict_syn(&self, packet: &mut [u8], mss_max: u16) {
        let mut at = self.tcp + TCP_HEADER_LEN;
        while at < self.data {
            match packet[at] {
                OPTION_END => break,
                OPTION_NOP => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let len = packet.get(at + 1).map_or(0, |&len| usize::from(len));
            if len < 2 || at + len > self.data {
                break;
            }
            match (packet[at], len) {
                (OPTION_SACK_PERMITTED, 2) => packet[at..at + 2].fill(OPTION_NOP),
                (OPTION_MSS, 4) => {
                    let mss = u16::from_be_bytes([packet[at + 2], packet[at + 3]]).min(mss_max);
                    packet[at + 2..at + 4].copy_from_slice(&mss.to_be_bytes());
                }
                _ => {}
            }
            at += len;
        }
        self.seal(packet);
    }

    /// Makes TCP's checksum right.
    fn seal(&self, packet: &mut [u8]) {
        let (from, to) = (self.from.0, self.to.0);
        write_checksum(&mut packet[self.tcp..self.end], from, to);
    }
}

/// Addresses of an IPv4 packet with TCP, where that begins, and where the packet ends.
fn ipv4_of_tcp(packet: &[u8]) -> Option<(IpAddr, IpAddr, usize, usize)> {
    let header: &[u8; IPV4_HEADER_LEN] = packet.first_chunk()?;
    let header_len = 4 * usize::from(header[0] & 0xf);
    let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_whole = u16::from_be_bytes([header[6], header[7]]) & IPV4_FRAGMENT == 0;
    let is_sound = header_len >= IPV4_HEADER_LEN && header[9] == TCP;
    let address = |at: usize| IpAddr::from([0, 1, 2, 3].map(|byte| header[at + byte]));
    (is_whole && is_sound).then(|| (address(12), address(16), header_len, end))
}

/// The same of an IPv6 packet.
fn ipv6_of_tcp(packet: &[u8]) -> Option<(IpAddr, IpAddr, usize, usize)> {
    let header: &[u8; IP_HEADER_LEN_MAX] = packet.first_chunk()?;
    let end = IP_HEADER_LEN_MAX + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| header[at..].first_chunk::<16>().map(|&octets| octets.into());
    let (from, to) = (address(8)?, address(24)?);
    (header[6] == TCP).then_some((from, to, IP_HEADER_LEN_MAX, end))
}

pub(crate) fn addresses(net: &NetSlice<'_>) -> Option<(IpAddr, IpAddr)> {
    match net {
        NetSlice::Ipv4(ip) if !ip.payload().fragmented => {
            let header = ip.header();
            Some((header.source_addr().into(), header.destination_addr().into()))
        }
        NetSlice::Ipv6(ip) if !ip.payload().fragmented => {
            let header = ip.header();
            Some((header.source_addr().into(), header.destination_addr().into()))
        }
        _ => None,
    }
}

impl Options {
    fn read(mut rest: &[u8]) -> Options {
        let mut options = Options::default();
        while let [kind, tail @ ..] = rest {
            rest = match *kind {
                OPTION_END => break,
                OPTION_NOP => tail,
                kind => {
                    let Some(&len) = tail.first().filter(|&&len| len >= 2) else { break };
                    let Some((body, after)) = tail[1..].split_at_checked(usize::from(len) - 2)
                    else {
                        break;
                    };
                    options.take(kind, body);
                    after
                }
            };
        }
        options
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (OPTION_MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (OPTION_MD5 | OPTION_AUTHENTICATION | OPTION_MULTIPATH, _) => self.is_protected = true,
            // RFC 7323, Section 2.3: no more than 14.
            (OPTION_SCALE, &[scale]) => self.scale = Some(scale.min(14)),
            (OPTION_TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let stamps = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
                self.timestamps = Some((stamps[0], stamps[1]));
            }
            _ => {}
        }
    }
}

/// A pure acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct PureAck {
    pub from: End,
    pub to: End,
    pub sequence: u32,
    pub ack: u32,
    pub window: u16,
    /// The sender's timestamp, and the one that it echoes.
    pub timestamps: Option<(u32, u32)>,
}

impl PureAck {
    /// The packet.
    pub fn to_packet(self) -> Vec<u8> {
        let mut packet = Vec::new();
        self.write(&mut packet);
        packet
    }

    /// Writes the packet into an empty buffer.
    pub fn write(self, packet: &mut Vec<u8>) {
        let options_len = if self.timestamps.is_some() { 12 } else { 0 };
        let tcp_len = TCP_HEADER_LEN + options_len;
        write_ip(self.from.0, self.to.0, TCP, tcp_len, packet);
        let start = packet.len();
        packet.extend_from_slice(&self.from.1.to_be_bytes());
        packet.extend_from_slice(&self.to.1.to_be_bytes());
        packet.extend_from_slice(&self.sequence.to_be_bytes());
        packet.extend_from_slice(&self.ack.to_be_bytes());
        packet.extend_from_slice(&[(tcp_len as u8 / 4) << 4, ACK]);
        packet.extend_from_slice(&self.window.to_be_bytes());
        packet.extend_from_slice(&[0; 4]);
        if let Some((own, echoed)) = self.timestamps {
            packet.extend_from_slice(&[OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, 10]);
            packet.extend_from_slice(&own.to_be_bytes());
            packet.extend_from_slice(&echoed.to_be_bytes());
        }
        write_checksum(&mut packet[start..], self.from.0, self.to.0);
    }
}

/// Appends an IP header; both addresses are of the same version.
pub(crate) fn write_ip(
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    payload_len: usize,
    out: &mut Vec<u8>,
) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let start = out.len();
            let total = (IPV4_HEADER_LEN + payload_len) as u16;
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

/// Writes TCP's checksum (RFC 9293, Section 3.1; RFC 8200, Section 8.1).
fn write_checksum(tcp: &mut [u8], from: IpAddr, to: IpAddr) {
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let address = |end| match end {
        IpAddr::V4(end) => sum(&end.octets()),
        IpAddr::V6(end) => sum(&end.octets()),
    };
    let pseudo = address(from) + address(to) + u64::from(TCP) + tcp.len() as u64;
    let checksum = !folded(pseudo + sum(tcp));
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum of the 16-bit words of RFC 1071, not yet folded.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words.map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0))).sum()
}

pub(crate) fn folded(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    use super::*;

    /// Addresses, ports, where TCP and its data begin, and where the packet ends, as others read
    /// them.
    type Read = (End, End, [usize; 3]);

    fn by_etherparse(packet: &[u8]) -> Option<Read> {
        let sliced = SlicedPacket::from_ip(packet).ok()?;
        let (from, to) = addresses(sliced.net.as_ref()?)?;
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
        let start = tcp.slice().as_ptr().addr() - packet.as_ptr().addr();
        let places = [0, tcp.header_slice().len(), tcp.slice().len()].map(|len| start + len);
        Some(((from, tcp.source_port()), (to, tcp.destination_port()), places))
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn packets_are_read_as_others_read_them(
            v6: bool,
            payload_len in 0..40usize,
            spoil in proptest::collection::vec((0..60usize, any::<u8>()), 0..3),
            cut in 0..80usize,
        ) {
            let builder = if v6 {
                PacketBuilder::ipv6([0xfd; 16], [0xfc; 16], 64)
            } else {
                PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            };
            let tcp = builder.tcp(40_000, 7_700, 0x0102_0304, 0x0506).ack(0x0708_090a);
            let tcp = tcp.options_raw(&[1, 3, 3, 7]).expect("options fit");
            let mut packet = Vec::new();
            tcp.write(&mut packet, &vec![0x33; payload_len]).expect("a segment fits");
            packet.truncate(120 - cut);
            for (at, byte) in spoil {
                if let Some(spoilt) = packet.get_mut(at) {
                    *spoilt = byte;
                }
            }
            // Headers before TCP's are not looked for; a length of zero has no meaning.
            let is_plain = !v6 || packet.get(6) == Some(&TCP) && packet.get(4..6) != Some(&[0, 0]);
            prop_assume!(is_plain);
            let read = TcpView::of(&packet);
            let places = read.map(|view| (view.from, view.to, [view.tcp, view.data, view.end]));
            prop_assert_eq!(places, by_etherparse(&packet));
        }
    }
}
