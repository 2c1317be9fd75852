//! TCP segments of two hosts, sent through two stations in window mode that clamp TCP's windows.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::{
    CodingParams, LinkErrors, Role, Station, StationConfig, StationId, bounds::INGRESS_QUANTUM,
};

use crate::input::Input;

/// Maximum number of steps of one input.
const OPERATIONS_MAX: usize = 300;
/// Connections; those with odd numbers are IPv6.
const CONNECTIONS: usize = 4;
/// Capacity of a station's ingress queue, packets.
const INGRESS_PACKETS: usize = 40;
/// Capacity of an egress queue, packets, for frames that arrive together.
const EGRESS_PACKETS_MAX: usize = 4_096;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Interprets `data` as what two hosts send through a tunnel, and what happens to its frames.
/// Returns the number of windows that were reduced, and of window updates that were generated.
///
/// # Panics
/// If a host receives a packet that the other has not sent, apart from a smaller window, congestion
/// marks and checksums, and apart from correct window updates; if there are more updates than
/// packets of the host that receives them; or if a queue exceeds its bound.
pub fn clamp(data: &[u8]) -> (u64, u64) {
    let mut input = Input::new(data);
    let mut tunnel = Tunnel::new();
    tunnel.exchange(200, |_| true);
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            break;
        }
        tunnel.operate(&mut input);
        tunnel.check();
    }
    tunnel.exchange(500, |_| true);
    tunnel.check();
    let sum = |count: fn(&Station) -> u64| tunnel.ends.iter().map(|end| count(&end.station)).sum();
    (sum(|station| station.stats().windows_clamped), sum(|s| s.stats().window_updates_sent))
}

/// A connection with both hosts' sequence numbers.
#[derive(Clone, Copy, Default)]
struct Connection {
    next: [u32; 2],
    acked: [u32; 2],
}

/// A host and its station.
struct End {
    station: Station,
    /// Packets that the host has sent.
    sent: Vec<Vec<u8>>,
    updates: usize,
    /// Messages that a packet is too long.
    too_big: usize,
}

struct Tunnel {
    ends: [End; 2],
    connections: [Connection; CONNECTIONS],
    now: Time,
}

impl Tunnel {
    fn new() -> Self {
        let end = |id: u8| {
            let config = StationConfig {
                id: StationId(u16::from(id)),
                role: Role::Endpoint { peer: StationId(u16::from(3 - id)), helper: None },
                security: [7; 32].into(),
                coding: CodingParams::window(),
                link_errors: LinkErrors::Measured,
                ingress_packets: INGRESS_PACKETS,
                frame_len_max: 1500,
                frame_len_min: 46,
                memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
                rate_bps: None,
            };
            let station = Station::new(config, [id; 32], Time::ZERO).expect("it is sound");
            End { station, sent: Vec::new(), updates: 0, too_big: 0 }
        };
        let connections = [Connection { next: [u32::MAX - 900; 2], acked: [0; 2] }; CONNECTIONS];
        Tunnel { ends: [end(1), end(2)], connections, now: Time::ZERO }
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        let (host, flow) = (input.below(2), input.below(CONNECTIONS));
        match input.below(12) {
            // A connection is established.
            0 => {
                for (host, flags) in [(host, SYN), (1 - host, SYN | ACK)] {
                    self.segment(host, flow, flags, 0, input);
                    self.exchange(3, |_| true);
                }
            }
            1 => {
                let flags = [SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, input.byte()];
                let flags = flags[input.below(6)];
                self.segment(host, flow, flags, 0, input);
            }
            2 | 3 => {
                let len = input.below(200);
                for _ in 0..1 + input.below(30) {
                    self.segment(host, flow, ACK, len, input);
                }
            }
            // The host sends faster than the tunnel for a while, and the other acknowledges.
            4 | 5 => {
                let (len, count) = (8 * input.below(180), 1 + input.below(12));
                for _ in 0..1 + input.below(6) {
                    (0..count).for_each(|_| self.segment(host, flow, ACK, len, input));
                    self.exchange(2, |_| true);
                    self.acknowledge(1 - host, flow, 0, input);
                }
            }
            // All that was sent is acknowledged, or a part of it.
            6 | 7 => {
                let back = if input.below(3) == 0 { input.u32() % 3_000 } else { 0 };
                self.acknowledge(host, flow, back, input);
            }
            8 => {
                let len = input.below(120);
                let packet = input.vec(len);
                self.send(host, packet);
            }
            9 => {
                // A packet that was sent before, possibly modified.
                let many = self.ends[host].sent.len().max(1);
                let at = input.u32() as usize % many;
                let Some(mut packet) = self.ends[host].sent.get(at).cloned() else { return };
                let bent = input.below(packet.len().clamp(1, 90));
                packet.get_mut(bent).into_iter().for_each(|byte| *byte ^= input.byte());
                self.send(host, packet);
            }
            10 => {
                let (steps, losses) = (input.below(20), input.u32());
                self.exchange(steps as u64, |frame| losses >> (frame % 32) & 1 == 0);
            }
            _ => self.exchange(1 + input.below(30) as u64, |_| true),
        }
    }

    /// A host acknowledges what the other has sent, possibly except for the last bytes.
    fn acknowledge(&mut self, host: usize, flow: usize, back: u32, input: &mut Input<'_>) {
        self.connections[flow].acked[host] =
            self.connections[flow].next[1 - host].wrapping_sub(back);
        self.segment(host, flow, ACK, 0, input);
    }

    /// The next segment of a host.
    fn segment(&mut self, host: usize, flow: usize, flags: u8, len: usize, input: &mut Input<'_>) {
        let connection = &mut self.connections[flow];
        let sequence = connection.next[host];
        let taken = len as u32 + u32::from(flags & (SYN | FIN) != 0);
        connection.next[host] = sequence.wrapping_add(taken);
        if flags == SYN | ACK {
            connection.acked[host] = connection.next[1 - host];
        }
        let (ack, window) = (connection.acked[host], [input.byte(), input.byte()]);
        let mut options = vec![1, 1, 8, 10, 0, 0, 0, input.byte(), 0, 0, 0, 1];
        if flags & SYN != 0 {
            options = vec![2, 4, 5, 100, 1, 3, 3, input.byte() % 20];
            let kind = [0, 0, 0, 0, 0, 0, 19, 29, 30][input.below(9)];
            options.extend([kind, 4, 1, 1]);
        }
        let ports = [[40, flow as u8], [1, 80]];
        let mut tcp = [ports[host], ports[1 - host]].concat();
        tcp.extend(sequence.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([(5 + options.len() as u8 / 4) << 4, flags, window[0], window[1], 3, 4, 0, 0]);
        tcp.extend(options);
        tcp.resize(tcp.len() + len, flow as u8);
        let v6 = flow % 2 == 1;
        self.send(host, if v6 { ipv6(host, &tcp) } else { ipv4(host, &tcp) });
    }

    fn send(&mut self, host: usize, packet: Vec<u8>) {
        let end = &mut self.ends[host];
        end.station.handle_packet(self.now, &packet);
        end.sent.push(packet);
    }

    /// Milliseconds pass, in which frames arrive as `arrives` says; hosts take their packets.
    fn exchange(&mut self, steps: u64, arrives: impl Fn(usize) -> bool) {
        for step in 0..=steps {
            for from in 0..2 {
                let mut frames = Vec::new();
                let station = &mut self.ends[from].station;
                station.handle_timeout(self.now);
                // One frame per millisecond, so that queues build up.
                frames.extend(station.poll_transmit(self.now).map(|sent| sent.frame.to_vec()));
                for frame in frames.iter().filter(|_| arrives(step as usize + 7 * from)) {
                    self.ends[1 - from].station.handle_frame(self.now, frame);
                }
                (0..2).for_each(|host| self.take(host));
            }
            self.now += Duration::from_millis(1);
        }
    }

    /// A host takes its packets.
    fn take(&mut self, host: usize) {
        let (near, far) = self.ends.split_at_mut(1);
        let (own, other) =
            if host == 0 { (&mut near[0], &far[0]) } else { (&mut far[0], &near[0]) };
        while let Some(packet) = own.station.poll_packet() {
            let packet = packet.bytes();
            let was_sent = other.sent.iter().rev().any(|sent| is_copy(sent, packet));
            if !was_sent && is_too_big(packet, &own.sent) {
                own.too_big += 1;
            } else if !was_sent {
                assert!(is_update(packet, host), "nobody has sent {packet:02x?}");
                own.updates += 1;
            }
        }
    }

    fn check(&self) {
        for end in &self.ends {
            let (view, stats) = (end.station.inspect(), end.station.stats());
            assert!(view.ingress_packets <= INGRESS_PACKETS, "{}", view.ingress_packets);
            assert!(view.egress_packets <= EGRESS_PACKETS_MAX, "{}", view.egress_packets);
            assert!(end.too_big as u64 <= stats.too_big_told, "{stats:?}");
            assert!(end.updates as u64 <= stats.window_updates_sent);
            // One when it is sent, and one when its sender has deferred the next.
            assert!(stats.window_updates_sent <= 2 * end.sent.len() as u64, "two for a packet");
        }
    }
}

/// Whether a packet was sent before, apart from window, marks and checksums.
fn is_copy(sent: &[u8], came: &[u8]) -> bool {
    if sent.len() != came.len() {
        return false;
    }
    let is_marking = |at: &usize| matches!(at, 1 | 10 | 11);
    let differs = (0..sent.len()).filter(|&at| sent[at] != came[at]).filter(|at| !is_marking(at));
    let differs: Vec<usize> = differs.collect();
    let (Some(first), Some(last)) = (differs.first(), differs.last()) else { return true };
    // The window is right before the checksum, at an even offset; it may begin with the first byte
    // that differs, or before it.
    let starts = (first.saturating_sub(3)..=*first).filter(|start| start % 2 == 0);
    let word = |packet: &[u8], at: usize| {
        let bytes = packet.get(at..at + 2).unwrap_or(&[0; 2]);
        u16::from_be_bytes([bytes[0], bytes[1]])
    };
    starts.into_iter().any(|start| *last < start + 4 && word(came, start) < word(sent, start))
}

/// Whether a packet reports with ICMP or ICMPv6 that a packet of the host is too long: addressed to
/// its sender, and quoting it.
fn is_too_big(packet: &[u8], sent: &[Vec<u8>]) -> bool {
    let (is_told, quoted, back) = match packet[0] >> 4 {
        4 => (packet[9] == 1 && packet[20..22] == [3, 4], &packet[28..], &packet[16..20]),
        _ => (packet[6] == 58 && packet[40..42] == [2, 0], &packet[48..], &packet[24..40]),
    };
    let sender = if back.len() == 4 { 12..16 } else { 8..24 };
    let is_quoted =
        |sent: &Vec<u8>| sent.starts_with(quoted) && sent.get(sender.clone()) == Some(back);
    is_told && sent.iter().any(is_quoted)
}

/// Whether a packet for `host` is a pure window update, and correct.
fn is_update(packet: &[u8], host: usize) -> bool {
    let (ip_len, protocol, to) = match packet[0] >> 4 {
        4 => (20, packet[9], packet[19]),
        _ => (40, packet[6], packet[39]),
    };
    let tcp = &packet[ip_len..];
    let header_len = 4 * usize::from(tcp[12] >> 4);
    let addresses = if ip_len == 20 { &packet[12..20] } else { &packet[8..40] };
    let pseudo = sum(addresses) + 6 + tcp.len() as u64;
    protocol == 6
        && usize::from(to) == host + 1
        && tcp.len() == header_len
        && matches!(header_len, 20 | 32)
        && tcp[13] == ACK
        && folded(pseudo + sum(tcp)) == 0xffff
        && (ip_len == 40 || folded(sum(&packet[..20])) == 0xffff)
        && packet.len() < INGRESS_QUANTUM as usize
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|two| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0))).sum()
}

fn folded(mut sum: u64) -> u64 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn ipv4(host: usize, tcp: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + tcp.len() as u16).to_be_bytes();
    let (from, to) = (host as u8 + 1, 2 - host as u8);
    let mut header = [0x45, 2, high, low, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to];
    let checksum = !folded(sum(&header)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    [&header, tcp].concat()
}

fn ipv6(host: usize, tcp: &[u8]) -> Vec<u8> {
    let [high, low] = (tcp.len() as u16).to_be_bytes();
    let mut header = vec![0x60, 0, 0, 0, high, low, 6, 64];
    for address in [host as u8 + 1, 2 - host as u8] {
        header.extend([0xfd; 15]);
        header.push(address);
    }
    [&header, tcp].concat()
}
