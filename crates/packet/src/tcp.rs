//! TCP segments: the fields the other layers need, and their modifications.

use std::net::IpAddr;

use crate::checksum;
use crate::protocol::TCP;
use crate::tcp_header::flags::{ACK, CWR, ECE, FIN, RST, SYN};
use crate::tcp_header::{ACK_AT, CHECKSUM_AT, FLAGS_AT, SEQUENCE_AT, WINDOW_AT};
use crate::write::write_ip;
use crate::{Ip, PacketView, TCP_LEN};

/// Flags of a SYN that asks for AccECN (RFC 9768): one bit before the flags byte, and two in it.
const FLAGS_BEFORE: u8 = 0x01;
const ECE_CWR: u8 = ECE | CWR;

/// Kinds of TCP options.
const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_MSS: u8 = 2;
const OPTION_SCALE: u8 = 3;
const OPTION_SACK_PERMITTED: u8 = 4;
const OPTION_TIMESTAMPS: u8 = 8;
/// Options that forbid changing the window: signatures over the header (RFC 2385, RFC 5925), and
/// multipath TCP, whose windows cover the whole connection (RFC 8684).
const OPTION_MD5: u8 = 19;
const OPTION_AUTHENTICATION: u8 = 29;
const OPTION_MULTIPATH: u8 = 30;

/// One end of a connection.
pub type End = (IpAddr, u16);

/// A packet with a complete TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct TcpView {
    /// Its sender.
    pub from: End,
    /// Its destination.
    pub to: End,
    /// Offsets of the TCP header, of the data, and of the packet's end.
    tcp: usize,
    data: usize,
    end: usize,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgment number: the number after the last byte that its sender has received.
    pub ack: u32,
    /// The window field, unscaled.
    pub window: u16,
    /// Flags, with the preceding byte.
    flags: [u8; 2],
    options: Options,
}

/// The TCP options that other layers need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Window scale of the sender, at most 14.
    pub scale: Option<u8>,
    /// Maximum segment size the sender accepts, bytes.
    pub mss: Option<u16>,
    /// The sender's timestamp, and the one that it echoes.
    pub timestamps: Option<(u32, u32)>,
    /// Whether the window must not be changed.
    pub is_protected: bool,
}

impl TcpView {
    /// Parses a segment whose header is complete and within the packet.
    #[inline]
    pub(crate) fn read(view: &PacketView, packet: &[u8]) -> Option<TcpView> {
        let (tcp, data, end) = (view.transport(), view.payload()?, view.end());
        let (from, to) = addresses(view, packet)?;
        let segment = packet.get(tcp..data)?;
        let header: &[u8; TCP_LEN] = segment.first_chunk()?;
        let u16_at = |at| u16::from_be_bytes([header[at], header[at + 1]]);
        let u32_at = |at| u32::from(u16_at(at)) << 16 | u32::from(u16_at(at + 2));
        Some(TcpView {
            from: (from, u16_at(0)),
            to: (to, u16_at(2)),
            tcp,
            data,
            end,
            sequence: u32_at(SEQUENCE_AT),
            ack: u32_at(ACK_AT),
            window: u16_at(WINDOW_AT),
            flags: [FLAGS_AT, FLAGS_AT - 1].map(|at| header[at]),
            options: Options::read(&segment[TCP_LEN..]),
        })
    }

    /// Whether it is a SYN.
    pub fn is_syn(&self) -> bool {
        self.flags[0] & SYN != 0
    }

    /// Whether it is a FIN.
    pub fn is_fin(&self) -> bool {
        self.flags[0] & FIN != 0
    }

    /// Whether it is a RST.
    pub fn is_rst(&self) -> bool {
        self.flags[0] & RST != 0
    }

    /// Whether its acknowledgment number is valid.
    pub fn is_ack(&self) -> bool {
        self.flags[0] & ACK != 0
    }

    /// Whether it opens a connection whose acknowledgments shall count congestion marks.
    pub fn asks_for_accurate_ecn(&self) -> bool {
        let [flags, before] = self.flags;
        flags & (SYN | ACK | ECE_CWR) == SYN | ECE_CWR && before & FLAGS_BEFORE != 0
    }

    /// Length of the data, bytes.
    pub fn data_len(&self) -> usize {
        self.end - self.data
    }

    /// Offsets of its header, of the data, and of the packet's end.
    #[cfg(test)]
    pub(crate) fn places(&self) -> [usize; 3] {
        [self.tcp, self.data, self.end]
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Changes the window. A wrong checksum stays wrong (RFC 1624, Eq. 3).
    pub(crate) fn set_window(&self, packet: &mut [u8], window: u16) {
        let at = self.tcp + WINDOW_AT;
        packet[at..at + 2].copy_from_slice(&window.to_be_bytes());
        self.update_checksum(packet, self.window, window);
    }

    /// Sequence number after the last one this segment occupies.
    pub fn sequence_end(&self) -> u32 {
        let flags = u32::from(self.is_syn()) + u32::from(self.is_fin());
        self.sequence.wrapping_add(self.data_len() as u32 + flags)
    }

    /// Changes a SYN: removes the SACK-permitted option, and lowers the maximum segment size to
    /// `mss_max`. A wrong checksum stays wrong (RFC 1624, Eq. 3).
    pub(crate) fn restrict_syn(&self, packet: &mut [u8], mss_max: u16) {
        let options = self.tcp + TCP_LEN..self.data;
        let before = checksum::fold(checksum::sum(&packet[options.clone()]));
        let mut at = self.tcp + TCP_LEN;
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
        let after = checksum::fold(checksum::sum(&packet[options]));
        self.update_checksum(packet, before, after);
    }

    /// Updates the checksum after a change in the sum of these words (RFC 1624, Eq. 3).
    fn update_checksum(&self, packet: &mut [u8], before: u16, after: u16) {
        let at = self.tcp + CHECKSUM_AT;
        let checksum = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let checksum = checksum::updated(checksum, before, after);
        packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Source and destination address of a packet.
#[inline]
pub(crate) fn addresses(view: &PacketView, packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match view.ip() {
        Ip::V4 => {
            let octets = |at: usize| packet.get(at..)?.first_chunk::<4>().copied();
            Some((octets(12)?.into(), octets(16)?.into()))
        }
        Ip::V6 => {
            let octets = |at: usize| packet.get(at..)?.first_chunk::<16>().copied();
            Some((octets(8)?.into(), octets(24)?.into()))
        }
        Ip::None => None,
    }
}

impl Options {
    #[inline]
    fn read(mut rest: &[u8]) -> Options {
        let mut options = Options::default();
        // What nearly all segments have (RFC 7323, Appendix A).
        if let [OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, 10, stamps @ ..] = rest
            && stamps.len() == 8
        {
            options.take(OPTION_TIMESTAMPS, stamps);
            return options;
        }
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
            // RFC 7323, Section 2.3: at most 14.
            (OPTION_SCALE, &[scale]) => self.scale = Some(scale.min(14)),
            (OPTION_TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let stamps = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
                self.timestamps = Some((stamps[0], stamps[1]));
            }
            _ => {}
        }
    }
}

/// A pure acknowledgment (RFC 3168, Section 6.1.4): it has no data.
#[derive(Clone, Copy, Debug)]
pub struct PureAck {
    /// Its sender.
    pub from: End,
    /// Its destination.
    pub to: End,
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Acknowledgment number: the number after the last byte that its sender has received.
    pub ack: u32,
    /// The window field, unscaled.
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
        let tcp_len = TCP_LEN + options_len;
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

/// Writes TCP's checksum.
fn write_checksum(tcp: &mut [u8], from: IpAddr, to: IpAddr) {
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let pseudo_header = checksum::pseudo_header(from, to, TCP, tcp.len());
    let checksum = !checksum::fold(pseudo_header + checksum::sum(tcp));
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
}
