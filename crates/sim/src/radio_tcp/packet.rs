//! Segments as IPv4 packets, with the headers and options that a kernel gives them.
//!
//! Data carries timestamps; acknowledgements carry timestamps and what arrived beyond a gap. The
//! timestamps' clock ticks in microseconds (RFC 7323, Section 5.4, allows less than a millisecond).
//! The checksum of TCP is left to the network card, as kernels do.

use corridor_base::Time;

use crate::tcp::{SACK_RANGES_MAX, SackRange, Segment};

/// IPv4 and TCP, without options.
const HEADERS_LEN: usize = 40;
/// Timestamps, and two bytes that align them.
const TIMESTAMPS_LEN: usize = 12;
/// Headers of a packet of data.
pub(super) const DATA_HEADERS_LEN: usize = HEADERS_LEN + TIMESTAMPS_LEN;
/// Sequence number of the first byte: the handshake took one.
const FIRST_BYTE: u64 = 1;
/// First bytes of the timestamps option, aligned (RFC 7323, Appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
const IPV4_LEN: usize = 20;
const PROTOCOL_TCP: u8 = 6;
const FLAG_PSH: u8 = 0x08;
const FLAG_ACK: u8 = 0x10;
/// Port of the first flow's receiver; the other direction's is the next.
const PORT: u16 = 7700;
/// Port of each flow's sender.
const SENDER_PORT: u16 = 40_000;

/// Writes a segment of `flow` into an empty buffer; `payload_bytes` is the length of a full one.
pub(super) fn write(
    segment: &Segment,
    flow: usize,
    payload_bytes: u32,
    now: Time,
    out: &mut Vec<u8>,
) {
    let (sender, receiver) = (SENDER_PORT + flow as u16, PORT + flow as u16);
    let number = |packets: u64| (FIRST_BYTE + packets * u64::from(payload_bytes)) as u32;
    out.resize(IPV4_LEN, 0);
    match segment {
        Segment::Data { sequence, sent_at, .. } => {
            let flags = FLAG_PSH | FLAG_ACK;
            write_tcp(out, (sender, receiver), number(*sequence), FIRST_BYTE as u32, flags);
            write_timestamps(out, *sent_at, Time::ZERO);
            out.resize(out.len() + payload_bytes as usize, 0);
        }
        Segment::Ack { next, echo, sack, .. } => {
            write_tcp(out, (receiver, sender), FIRST_BYTE as u32, number(*next), FLAG_ACK);
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
    let options_end =
        if matches!(segment, Segment::Data { .. }) { DATA_HEADERS_LEN } else { out.len() };
    out[IPV4_LEN + 12] = (((options_end - IPV4_LEN) / 4) as u8) << 4;
    write_ipv4(out, flow, matches!(segment, Segment::Data { .. }));
}

fn write_tcp(out: &mut Vec<u8>, ports: (u16, u16), sequence: u32, ack: u32, flags: u8) {
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(sequence.to_be_bytes());
    out.extend(ack.to_be_bytes());
    // Data offset, to be filled in; flags; window, checksum, urgent pointer.
    out.extend([0, flags, 0xff, 0xff, 0, 0, 0, 0]);
}

fn write_timestamps(out: &mut Vec<u8>, value: Time, echo: Time) {
    out.extend(TIMESTAMPS);
    out.extend(micros(value).to_be_bytes());
    out.extend(micros(echo).to_be_bytes());
}

fn micros(time: Time) -> u32 {
    (time.as_nanos() / 1_000) as u32
}

/// Flow 0 goes from 10.77.0.1 to 10.77.0.2, flow 1 the other way, their acknowledgements back.
fn write_ipv4(out: &mut [u8], flow: usize, is_data: bool) {
    let (s, d) = ([10, 77, 0, 1], [10, 77, 0, 2]);
    let (from, to) = if (flow == 0) == is_data { (s, d) } else { (d, s) };
    let len = out.len() as u16;
    out[..4].copy_from_slice(&[0x45, 0, (len >> 8) as u8, len as u8]);
    out[6..10].copy_from_slice(&[0x40, 0, 64, PROTOCOL_TCP]);
    out[12..16].copy_from_slice(&from);
    out[16..20].copy_from_slice(&to);
    let words = out[..IPV4_LEN].chunks_exact(2);
    let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// What a packet is, before its numbers are made whole.
pub(super) struct Parsed<'a> {
    /// Which flow it is of.
    pub(super) flow: usize,
    /// Whether it goes from sender to receiver.
    pub(super) is_data: bool,
    tcp: &'a [u8],
}

/// Reads a packet; `None` for what is no segment of ours.
pub(super) fn parse(packet: &[u8]) -> Option<Parsed<'_>> {
    let tcp = packet.get(IPV4_LEN..).filter(|tcp| tcp.len() >= DATA_HEADERS_LEN - IPV4_LEN)?;
    if packet[9] != PROTOCOL_TCP || tcp[20..24] != TIMESTAMPS {
        return None;
    }
    let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    let is_data = port(0) >= SENDER_PORT;
    let receiver = if is_data { port(2) } else { port(0) };
    let flow = usize::from(receiver.checked_sub(PORT)?);
    Some(Parsed { flow, is_data, tcp })
}

impl Parsed<'_> {
    /// The segment; numbers wrap around at 2^32 bytes, and are the ones nearest to packet `near`,
    /// times those nearest to `now`.
    pub(super) fn segment(&self, now: Time, near: u64, payload_bytes: u32) -> Segment {
        let packets = |at: usize| {
            let near = FIRST_BYTE + near * u64::from(payload_bytes);
            (nearest(self.word(at), near) - FIRST_BYTE) / u64::from(payload_bytes)
        };
        let time = |at| Time::from_nanos(1_000 * nearest(self.word(at), now.as_nanos() / 1_000));
        if self.is_data {
            return Segment::Data {
                sequence: packets(4),
                sent_at: time(24),
                retransmission: false,
                congestion_experienced: false,
            };
        }
        let mut sack = [SackRange::default(); SACK_RANGES_MAX];
        let count = self.tcp.len().saturating_sub(36) / 8;
        for (index, range) in sack.iter_mut().enumerate().take(count) {
            let (start, end) = (packets(36 + 8 * index), packets(40 + 8 * index));
            *range = SackRange { start, end };
        }
        Segment::Ack {
            next: packets(8),
            echo: time(28),
            echo_retransmission: false,
            sack,
            congestion_echo: false,
        }
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.tcp.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        u32::from_be_bytes(bytes.unwrap_or_default())
    }
}

/// The number that ends in `low` and is nearest to `near`.
fn nearest(low: u32, near: u64) -> u64 {
    let offset = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u32 = 1_400;

    fn through(segment: Segment, flow: usize, near: u64) -> (Segment, usize) {
        let now = Time::from_millis(5_000_000);
        let mut packet = Vec::new();
        write(&segment, flow, PAYLOAD, now, &mut packet);
        let parsed = parse(&packet).expect("it is ours");
        assert_eq!((parsed.flow, parsed.is_data), (flow, matches!(segment, Segment::Data { .. })));
        (parsed.segment(now, near, PAYLOAD), packet.len())
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
            };
            let (out, len) = through(ack, 1, 8_999_000);
            let options = 12 + if count > 0 { 4 + 8 * count } else { 0 };
            assert_eq!((out, len), (ack, 40 + options));
        }
    }

    #[test]
    fn other_packets_are_nobody_s() {
        for len in [0, 19, 20, 51, 52, 100] {
            assert!(parse(&vec![0; len]).is_none(), "{len} bytes");
        }
    }
}
