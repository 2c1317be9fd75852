//! Segments as IPv4 packets, with the headers and options of a Linux kernel.
//!
//! Data packets carry timestamps; acknowledgments carry timestamps and SACK ranges. The timestamp
//! clock ticks in microseconds (RFC 7323, Section 5.4, allows less than a millisecond). TCP's
//! checksum is left to the network card, as kernels do. The SYNs carry the same options as Linux's.

use std::net::Ipv4Addr;

use corridor_base::Time;
use corridor_proto::packet::tcp_header::flags::{ACK, PSH, SYN};
use corridor_proto::packet::{IPV4_LEN, protocol, set_ip_len};

use crate::agents::source::FlowEnd;
use crate::core::agent::NodeIndex;
use crate::tcp::{SACK_RANGES_MAX, SackRange, Segment};

/// Bytes of the IPv4 and TCP headers without options.
const HEADERS_LEN: usize = 40;
/// Bytes of the timestamps option, with two bytes of alignment.
pub(super) const TIMESTAMPS_LEN: usize = 12;
/// Bytes of a data packet's headers.
pub(crate) const DATA_HEADERS_LEN: usize = HEADERS_LEN + TIMESTAMPS_LEN;
/// Sequence number of the first byte of data: the SYN took the one before.
const FIRST_BYTE: u64 = 1;
/// First bytes of the timestamps option, aligned (RFC 7323, Appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// Port of the receiver of the first direction's flow; the other direction has the next port.
const PORT: u16 = 7700;
/// Port of both flows' senders.
const SENDER_PORT: u16 = 40_000;
/// Offset of the window scale among the options of a SYN, which always have the same layout.
const SCALE_AT: usize = 39;
/// Largest window scale, bits (RFC 7323, Section 2.3).
const SCALE_MAX: u8 = 14;
/// The window in SYNs, which is not scaled.
const SYN_WINDOW: u16 = 64_240;
const SYN_ACK_WINDOW: u16 = 65_160;
/// The window of the direction in which no data flows, bytes: Linux's initial one, of 64 KiB.
const IDLE_WINDOW: u32 = 64_256;

/// What a packet contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The data sender's SYN.
    Syn,
    /// The data receiver's SYN-ACK.
    SynAck,
    /// The data sender's ACK, which completes the handshake.
    Confirmation,
    Segment(Segment),
}

/// Writes a packet of one end of a flow into an empty buffer; `payload_bytes` is the payload of a
/// full segment, `scale` this end's window scale.
pub(super) fn write(
    content: &Content,
    end: &FlowEnd,
    (payload_bytes, scale): (u32, u8),
    now: Time,
    out: &mut Vec<u8>,
) {
    let idle_window = (IDLE_WINDOW >> scale) as u16;
    let (sender, receiver) = (SENDER_PORT + end.flow as u16, PORT + end.flow as u16);
    let (forth, back) = ((sender, receiver), (receiver, sender));
    let number = |packets: u64| (FIRST_BYTE + packets * u64::from(payload_bytes)) as u32;
    let first = FIRST_BYTE as u32;
    let mss = (payload_bytes as usize + TIMESTAMPS_LEN) as u16;
    let mut payload_len = 0;
    out.resize(IPV4_LEN, 0);
    match content {
        Content::Syn => {
            write_tcp(out, forth, (first - 1, 0), SYN, SYN_WINDOW);
            write_first_options(out, mss, scale, (now, Time::ZERO));
        }
        Content::SynAck => {
            write_tcp(out, back, (first - 1, first), SYN | ACK, SYN_ACK_WINDOW);
            write_first_options(out, mss, scale, (now, now));
        }
        Content::Confirmation => {
            write_tcp(out, forth, (first, first), ACK, idle_window);
            write_timestamps(out, now, now);
        }
        Content::Segment(Segment::Data { sequence, sent_at, .. }) => {
            let flags = PSH | ACK;
            write_tcp(out, forth, (number(*sequence), first), flags, idle_window);
            write_timestamps(out, *sent_at, Time::ZERO);
            payload_len = payload_bytes as usize;
        }
        Content::Segment(Segment::Ack { next, echo, sack, window_end, .. }) => {
            let window = window_end.map_or(u16::MAX, |end| {
                let bytes = end.saturating_sub(*next) * u64::from(payload_bytes);
                // As in Linux: the free space is rounded up to whole units of the scale.
                bytes.div_ceil(1 << scale).min(u16::MAX.into()) as u16
            });
            write_tcp(out, back, (first, number(*next)), ACK, window);
            write_timestamps(out, now, *echo);
            let ranges = sack.iter().filter(|range| range.end > range.start);
            let count = ranges.clone().count();
            if count > 0 {
                out.extend([1, 1, 5, 2 + 8 * count as u8]);
            }
            for range in ranges {
                out.extend(number(range.start).to_be_bytes());
                out.extend(number(range.end).to_be_bytes());
            }
        }
    }
    out[IPV4_LEN + 12] = (((out.len() - IPV4_LEN) / 4) as u8) << 4;
    out.resize(out.len() + payload_len, 0);
    write_ipv4(out, end);
}

/// Writes a TCP header with its sequence and acknowledgment numbers.
fn write_tcp(out: &mut Vec<u8>, ports: (u16, u16), numbers: (u32, u32), flags: u8, window: u16) {
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(numbers.0.to_be_bytes());
    out.extend(numbers.1.to_be_bytes());
    // Data offset, filled in later.
    out.extend([0, flags]);
    out.extend(window.to_be_bytes());
    // Checksum, urgent pointer.
    out.extend([0; 4]);
}

/// Writes a SYN's options in Linux's order: MSS, SACK permitted, timestamps, window scale.
fn write_first_options(out: &mut Vec<u8>, mss: u16, scale: u8, (value, echo): (Time, Time)) {
    out.extend([2, 4]);
    out.extend(mss.to_be_bytes());
    out.extend([4, 2, 8, 10]);
    out.extend(micros(value).to_be_bytes());
    out.extend(micros(echo).to_be_bytes());
    out.extend([1, 3, 3, scale]);
}

fn write_timestamps(out: &mut Vec<u8>, value: Time, echo: Time) {
    out.extend(TIMESTAMPS);
    out.extend(micros(value).to_be_bytes());
    out.extend(micros(echo).to_be_bytes());
}

fn micros(time: Time) -> u32 {
    (time.as_nanos() / 1_000) as u32
}

/// The address of a node's host: that of node 0 is 10.77.0.1.
pub(crate) fn address(node: NodeIndex) -> Ipv4Addr {
    let [.., high, low] = (node + 1).to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// Writes the IPv4 header of a packet from this end of a flow to the other.
fn write_ipv4(out: &mut [u8], end: &FlowEnd) {
    let (from, to) = (address(end.node).octets(), address(end.peer).octets());
    out[..2].copy_from_slice(&[0x45, 0]);
    out[6..10].copy_from_slice(&[0x40, 0, 64, protocol::TCP]);
    out[12..16].copy_from_slice(&from);
    out[16..20].copy_from_slice(&to);
    let len = out.len();
    set_ip_len(out, len);
}

/// A parsed packet, with numbers as they are on the wire.
pub(super) struct Parsed<'a> {
    /// Its flow.
    pub(super) flow: usize,
    pub(super) kind: Kind,
    tcp: &'a [u8],
}

/// What a packet contains, as far as its flags and ports tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Syn,
    SynAck,
    /// From the sender, without data: the handshake's last ACK, or a window update for unused data.
    Bare,
    Data,
    Ack,
}

/// Parses a packet; `None` if it is not one of our segments.
pub(super) fn parse(packet: &[u8]) -> Option<Parsed<'_>> {
    let tcp = packet.get(IPV4_LEN..).filter(|tcp| tcp.len() >= DATA_HEADERS_LEN - IPV4_LEN)?;
    let is_syn = tcp[13] & SYN != 0;
    if packet[9] != protocol::TCP || !(is_syn || tcp[20..24] == TIMESTAMPS) {
        return None;
    }
    let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let is_from_sender = port(0) >= SENDER_PORT;
    let receiver = if is_from_sender { port(2) } else { port(0) };
    let flow = usize::from(receiver.checked_sub(PORT)?);
    let has_data = tcp.len() > 4 * usize::from(tcp[12] >> 4);
    let kind = match (is_from_sender, is_syn) {
        (true, true) => Kind::Syn,
        (false, true) => Kind::SynAck,
        (true, false) if has_data => Kind::Data,
        (true, false) => Kind::Bare,
        (false, false) => Kind::Ack,
    };
    Some(Parsed { flow, kind, tcp })
}

impl Parsed<'_> {
    /// The window scale of its sender, if it is a SYN; otherwise 0.
    pub(super) fn scale(&self) -> u8 {
        let is_first = matches!(self.kind, Kind::Syn | Kind::SynAck);
        let scale = self.tcp.get(SCALE_AT).filter(|_| is_first);
        scale.map_or(0, |&scale| scale.min(SCALE_MAX))
    }

    /// Converts the packet to a segment. Of the numbers, which wrap at 2^32 bytes, takes those
    /// nearest to packet `near`, and of the times those nearest to `now`. `scale` is the window
    /// scale in bits.
    pub(super) fn segment(
        &self,
        now: Time,
        near: u64,
        (payload_bytes, scale): (u32, u8),
    ) -> Segment {
        let near = FIRST_BYTE + near * u64::from(payload_bytes);
        let byte = |at: usize| nearest(self.word(at), near);
        let whole = |byte: u64| (byte - FIRST_BYTE) / u64::from(payload_bytes);
        let packets = |at: usize| whole(byte(at));
        let time = |at| Time::from_nanos(1_000 * nearest(self.word(at), now.as_nanos() / 1_000));
        if self.kind == Kind::Data {
            return Segment::Data {
                sequence: packets(4),
                sent_at: time(24),
                retransmission: false,
                congestion_experienced: false,
                window_reduced: false,
            };
        }
        let mut sack = [SackRange::default(); SACK_RANGES_MAX];
        let count = self.tcp.len().saturating_sub(36) / 8;
        for (index, range) in sack.iter_mut().enumerate().take(count) {
            let (start, end) = (packets(36 + 8 * index), packets(40 + 8 * index));
            *range = SackRange { start, end };
        }
        let window = u64::from(self.word(12) & 0xffff) << scale;
        Segment::Ack {
            next: packets(8),
            echo: time(28),
            echo_retransmission: false,
            sack,
            congestion_echo: false,
            // Rounded down: a part of a packet must not be sent.
            window_end: Some(whole(byte(8) + window)),
        }
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.tcp.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_be_bytes(bytes.unwrap_or_default())
    }
}

/// The number whose low 32 bits are `low` and which is nearest to `near`.
fn nearest(low: u32, near: u64) -> u64 {
    let offset = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u32 = 1_400;
    const SCALE: u8 = 7;

    fn end(flow: u32) -> FlowEnd {
        FlowEnd { flow, node: flow, peer: 1 - flow }
    }

    fn through(segment: Segment, flow: u32, near: u64) -> (Segment, usize) {
        let now = Time::from_millis(5_000_000);
        let mut packet = Vec::new();
        write(&Content::Segment(segment), &end(flow), (PAYLOAD, SCALE), now, &mut packet);
        let parsed = parse(&packet).expect("it is ours");
        let is_data = matches!(segment, Segment::Data { .. });
        assert_eq!((parsed.flow, parsed.kind == Kind::Data), (flow as usize, is_data));
        (parsed.segment(now, near, (PAYLOAD, SCALE)), packet.len())
    }

    #[test]
    fn data_comes_out_as_it_went_in_whatever_wraps() {
        for sequence in [0, 1, 3_067_833, 3_067_834, 10_000_000] {
            let sent_at = Time::from_millis(4_999_900);
            let data = Segment::Data {
                sequence,
                sent_at,
                retransmission: false,
                congestion_experienced: false,
                window_reduced: false,
            };
            let (out, len) = through(data, 0, sequence.saturating_sub(2_000));
            assert_eq!((out, len), (data, 20 + 20 + 12 + 1_400));
        }
    }

    #[test]
    fn acknowledgements_tell_what_came_beyond_the_gap() {
        for count in 0..=SACK_RANGES_MAX {
            let mut sack = [SackRange::default(); SACK_RANGES_MAX];
            for (index, range) in (0u64..).zip(&mut sack[..count]) {
                *range = SackRange { start: 9_000_010 + 3 * index, end: 9_000_011 + 3 * index };
            }
            let ack = Segment::Ack {
                next: 9_000_000,
                echo: Time::from_millis(4_999_000),
                echo_retransmission: false,
                sack,
                congestion_echo: false,
                window_end: Some(9_000_000 + 2_048),
            };
            let (out, len) = through(ack, 1, 8_999_000);
            let options = 12 + if count > 0 { 4 + 8 * count } else { 0 };
            assert_eq!((out, len), (ack, 40 + options));
        }
    }

    /// The window is rounded up to units of 128 bytes, and down to whole packets.
    #[test]
    fn windows_come_out_as_they_went_in() {
        for window in [0, 1, 2, 3, 10, 2_048, 5_991] {
            let ack = Segment::Ack {
                next: 7,
                echo: Time::from_millis(4_999_000),
                echo_retransmission: false,
                sack: [SackRange::default(); SACK_RANGES_MAX],
                congestion_echo: false,
                window_end: Some(7 + window),
            };
            assert_eq!(through(ack, 0, 0).0, ack);
        }
    }

    #[test]
    fn first_segments_say_what_windows_mean() {
        let mut packet = Vec::new();
        for (content, kind) in [(Content::Syn, Kind::Syn), (Content::SynAck, Kind::SynAck)] {
            packet.clear();
            write(&content, &end(1), (PAYLOAD, 10), Time::from_millis(3), &mut packet);
            let parsed = parse(&packet).expect("it is ours");
            assert_eq!((parsed.flow, parsed.kind, packet.len()), (1, kind, 60));
            assert_eq!(parsed.scale(), 10);
            let Ok(sliced) = etherparse::SlicedPacket::from_ip(&packet) else { panic!("no IP") };
            let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else {
                panic!("no TCP")
            };
            assert_eq!((tcp.syn(), tcp.ack()), (true, kind == Kind::SynAck));
            use etherparse::TcpOptionElement::{
                MaximumSegmentSize, Noop, SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
            };
            let echo = if kind == Kind::SynAck { 3_000 } else { 0 };
            let options: Result<Vec<_>, _> = tcp.options_iterator().collect();
            let told = [
                MaximumSegmentSize(1_412),
                SelectiveAcknowledgementPermitted,
                Timestamp(3_000, echo),
                Noop,
                WindowScale(10),
            ];
            assert_eq!(options.expect("options can be read"), told);
        }
        packet.clear();
        write(&Content::Confirmation, &end(0), (PAYLOAD, SCALE), Time::ZERO, &mut packet);
        let parsed = parse(&packet).map(|parsed| (parsed.kind, parsed.scale()));
        assert_eq!(parsed, Some((Kind::Bare, 0)));
    }

    #[test]
    fn other_packets_are_nobody_s() {
        for len in [0, 19, 20, 51, 52, 100] {
            assert!(parse(&vec![0; len]).is_none(), "{len} bytes");
        }
    }
}
