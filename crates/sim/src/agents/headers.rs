//! The IP packets that the simulator's segments and datagrams stand for.
//!
//! In the simulator segments have numbers and no contents. Here their numbers are multiplied by the
//! payload size, as if the connection had begun with sequence number 0. Payload is all zeros, and
//! is not written. Headers are IPv4 and TCP or UDP without timestamps: 40 bytes, the default that a
//! flow is charged for headers. An acknowledgment with SACK ranges is longer here by its SACK
//! option.

use corridor_base::Time;
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};

use crate::core::agent::{BROADCAST, Body, NodeIndex, Packet};
use crate::tcp::{SackRange, Segment};

/// Bytes of a segment's headers without options: IPv4, TCP.
const TCP_HEADERS_LEN: u32 = 40;
/// Bytes of a datagram's headers: IPv4, UDP.
const UDP_HEADERS_LEN: u32 = 28;
/// Longest IP packet.
const IP_LEN_MAX: u32 = u16::MAX as u32;
/// Longest payload beside the longest headers: IPv4 without options, TCP with all options.
const PAYLOAD_LEN_MAX: u32 = IP_LEN_MAX - 80;
const TIME_TO_LIVE: u8 = 64;
/// Port of all receivers.
const SINK_PORT: u16 = 5001;
/// The sender of flow f has this port plus f, modulo the ports that are left.
const SOURCE_PORT_MIN: u16 = 10_000;
/// Datagrams go to discard (RFC 863).
const DISCARD_PORT: u16 = 9;
/// The simulator's receivers do not limit the window here: the largest value without scaling.
const WINDOW: u16 = u16::MAX;
/// The port of Corridor's stations, whose frames go over UDP.
const CORRIDOR_PORT: u16 = 4242;
/// Bytes of the sequence number and the time of sending, at the front of a datagram.
const STAMP_LEN: usize = 16;

/// The address of a node: 10.0.0.1 is node 0. Broadcasts have the limited broadcast address, which
/// routers do not forward (RFC 919, Section 7).
fn address(node: NodeIndex) -> [u8; 4] {
    if node == BROADCAST {
        return [255; 4];
    }
    let [_, high, middle, low] = (node + 1).to_be_bytes();
    [10, high, middle, low]
}

fn source_port(flow: u32) -> u16 {
    SOURCE_PORT_MIN + (flow % u32::from(u16::MAX - SOURCE_PORT_MIN)) as u16
}

/// Reads a datagram that [`write_packet`] wrote: its flow, sequence number and time of sending.
/// Only for flows whose numbers their ports can tell apart.
pub(crate) fn read_datagram(packet: &[u8]) -> Option<(u32, u64, Time)> {
    let is_udp = *packet.get(9)? == IpNumber::UDP.0;
    let word = |at: usize| Some(u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?));
    let (from, to) = (word(20)?, word(22)?);
    let stamp = packet.get(UDP_HEADERS_LEN as usize..)?;
    let number = |at: usize| Some(u64::from_be_bytes(stamp.get(at..at + 8)?.try_into().ok()?));
    let flow = from.checked_sub(SOURCE_PORT_MIN)?;
    let is_it = is_udp && to == DISCARD_PORT;
    is_it.then_some((flow.into(), number(0)?, Time::from_nanos(number(8)?)))
}

/// The TCP sequence number of a segment's first byte. The one before is the SYN's, which is not
/// sent.
fn byte_number(segment: u64, payload_bytes: u32) -> u32 {
    (segment.wrapping_mul(u64::from(payload_bytes)) as u32).wrapping_add(1)
}

/// Replaces the contents of `out` by the beginning of an IP packet; returns the packet's full
/// length in bytes. `payload_bytes` is the payload of the flow's segments; `None`: all beyond 40
/// bytes.
pub(crate) fn write_packet(
    packet: &Packet,
    payload_bytes: Option<u32>,
    zeros: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> usize {
    out.clear();
    match &packet.body {
        Body::Segment(segment) => {
            let beyond = packet.len_bytes.saturating_sub(TCP_HEADERS_LEN);
            let payload = payload_bytes.unwrap_or(beyond).min(PAYLOAD_LEN_MAX);
            write_segment(packet, segment, payload, zeros, out)
        }
        Body::Datagram { sequence, sent_at } => {
            let len = packet.len_bytes.clamp(UDP_HEADERS_LEN, IP_LEN_MAX) - UDP_HEADERS_LEN;
            let mut stamp = sequence.to_be_bytes().to_vec();
            stamp.extend_from_slice(&sent_at.as_nanos().to_be_bytes());
            let kept = STAMP_LEN.min(len as usize);
            let ports = (source_port(packet.flow), DISCARD_PORT);
            write_datagram(packet.from, packet.to, ports, len as u16, out);
            out.extend_from_slice(&stamp[..kept]);
            (len + UDP_HEADERS_LEN) as usize
        }
        // Bare frames have no such headers; callers do not pass them here.
        Body::Sealed(bytes) | Body::Bare(bytes) => {
            let len = bytes.len().min(PAYLOAD_LEN_MAX as usize);
            let ports = (CORRIDOR_PORT, CORRIDOR_PORT);
            write_datagram(packet.from, packet.to, ports, len as u16, out);
            out.extend_from_slice(&bytes[..len]);
            out.len()
        }
        Body::Bytes(bytes) => {
            let len = bytes.len().min(PAYLOAD_LEN_MAX as usize);
            let number = IpNumber::EXPERIMENTAL_AND_TESTING_0;
            write_ip(ip(packet.from, packet.to, number, len as u16), out);
            out.extend_from_slice(&bytes[..len]);
            out.len()
        }
    }
}

fn ip(from: NodeIndex, to: NodeIndex, protocol: IpNumber, payload_len: u16) -> Ipv4Header {
    Ipv4Header {
        total_len: payload_len + Ipv4Header::MIN_LEN_U16,
        time_to_live: TIME_TO_LIVE,
        protocol,
        dont_fragment: true,
        source: address(from),
        destination: address(to),
        ..Ipv4Header::default()
    }
}

fn write_ip(mut header: Ipv4Header, out: &mut Vec<u8>) {
    header.header_checksum = header.calc_header_checksum();
    out.extend_from_slice(&header.to_bytes());
}

/// Headers of a datagram with `payload_len` bytes; a checksum of zero means "no checksum".
pub(crate) fn write_datagram(
    from: NodeIndex,
    to: NodeIndex,
    (source_port, destination_port): (u16, u16),
    payload_len: u16,
    out: &mut Vec<u8>,
) {
    let length = payload_len + UdpHeader::LEN as u16;
    write_ip(ip(from, to, IpNumber::UDP, length), out);
    let udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
    out.extend_from_slice(&udp.to_bytes());
}

fn write_segment(
    packet: &Packet,
    segment: &Segment,
    payload_bytes: u32,
    zeros: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> usize {
    let ports = (source_port(packet.flow), SINK_PORT);
    let mut ecn = IpEcn::NotEct;
    let (tcp, payload) = match *segment {
        Segment::Data { sequence, congestion_experienced, window_reduced, .. } => {
            let number = byte_number(sequence, payload_bytes);
            let mut tcp = TcpHeader::new(ports.0, ports.1, number, WINDOW);
            (tcp.ack, tcp.acknowledgment_number, tcp.cwr) = (true, 1, window_reduced);
            if congestion_experienced {
                ecn = IpEcn::CongestionExperienced;
            }
            (tcp, payload_bytes)
        }
        Segment::Ack { next, sack, congestion_echo, .. } => {
            let mut tcp = TcpHeader::new(ports.1, ports.0, 1, WINDOW);
            tcp.ack = true;
            tcp.acknowledgment_number = byte_number(next, payload_bytes);
            tcp.ece = congestion_echo;
            if let Some(option) = sack_option(&sack, payload_bytes) {
                let options = [TcpOptionElement::Noop, TcpOptionElement::Noop, option];
                // Three ranges and the option's head take 28 of the 40 bytes for options.
                let fits = tcp.set_options(&options);
                debug_assert!(fits.is_ok());
            }
            (tcp, 0)
        }
    };
    let payload_len = tcp.header_len_u16() + payload as u16;
    let ip = Ipv4Header { ecn, ..ip(packet.from, packet.to, IpNumber::TCP, payload_len) };
    write_tcp(ip, tcp, payload as usize, zeros, out)
}

fn write_tcp(
    ip: Ipv4Header,
    mut tcp: TcpHeader,
    payload_len: usize,
    zeros: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> usize {
    zeros.resize(payload_len.max(zeros.len()), 0);
    // A payload length that fits into IPv4 always has a checksum.
    let checksum = tcp.calc_checksum_ipv4(&ip, &zeros[..payload_len]);
    tcp.checksum = checksum.unwrap_or(0);
    let len = usize::from(ip.total_len);
    write_ip(ip, out);
    out.extend_from_slice(&tcp.to_bytes());
    len
}

/// The SACK option (RFC 2018); `None` if nothing has arrived beyond a gap.
fn sack_option(sack: &[SackRange], payload_bytes: u32) -> Option<TcpOptionElement> {
    let mut ranges = sack.iter().filter(|range| range.start < range.end).map(|range| {
        (byte_number(range.start, payload_bytes), byte_number(range.end, payload_bytes))
    });
    let first = ranges.next()?;
    Some(TcpOptionElement::SelectiveAcknowledgement(first, [ranges.next(), ranges.next(), None]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_the_address_of_broadcast() {
        assert_eq!(address(0), [10, 0, 0, 1]);
        assert_eq!(address(65_535), [10, 1, 0, 0]);
        let mut out = Vec::new();
        write_datagram(2, BROADCAST, (1, 2), 0, &mut out);
        assert_eq!((&out[12..16], &out[16..20]), (&[10, 0, 0, 3][..], &[255; 4][..]));
    }
}
