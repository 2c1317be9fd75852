//! Test flows drawn from declared distributions, sent through the queue and over a link.
//!
//! Sources that ignore feedback are lists of packets. Bulk sources have a window like TCP CUBIC's
//! (RFC 9438), which shrinks to a fraction when a packet is dropped. The link serves the queue at 1
//! to 50 Mbit/s, and its round-trip time is 4 to 200 ms; both are drawn log-uniform.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::rand::{Rng, RngExt};
use corridor_base::{Stream, Time};

use crate::config::CodingParams;
use crate::host::codel_target::Air;
use crate::host::order::Need;
use crate::host::queue::IngressQueue;
use crate::link::rtt::RttEstimator;
use crate::stats::Stats;

/// Length of the IPv4 and UDP headers.
const HEADERS_LEN: usize = 28;

/// Kinds of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// RTP: 20 to 160 bytes every 10 to 60 ms.
    Voice,
    /// RTP: frames in packets of 1,100 to 1,200 bytes, 24 to 60 frames a second, 0.3 to 0.9 of the
    /// link's rate; the length of frames varies by half, and every 2 s one is up to four times as
    /// long.
    Video,
    /// The same with an unknown protocol, at 0.3 to 0.7 of the link's rate.
    UnknownVideo,
    /// 40 to 400 bytes, 10 to 128 packets a second, with an occasional burst of up to 6.
    Game,
    /// Requests and answers: 40 to 1,232 bytes, 1 to 20 a second.
    Dns,
    /// QUIC's handshake, then requests of 60 to 1,200 bytes or answers of 200 to 2,400 bytes every
    /// 0.7 to 5 s.
    QuicRequests,
    /// QUIC's acknowledgments of a transfer in the other direction: 26 to 60 bytes, up to 500 a
    /// second.
    QuicAcks,
    /// QUIC from its handshake on, 1,200 to 1,400 bytes, with a window that random losses of 0.01
    /// to 3 % reduce.
    QuicBulk,
    /// The same, first seen in the middle of the connection: short headers only.
    QuicBulkAmid,
    /// A WireGuard tunnel that carries CUBIC, 1,312 to 1,400 bytes.
    Tunnel,
}

impl Kind {
    /// Kinds to be delivered at once, and kinds to be delivered in order.
    pub(super) const AT_ONCE: [Kind; 7] = [
        Kind::Voice,
        Kind::Video,
        Kind::UnknownVideo,
        Kind::Game,
        Kind::Dns,
        Kind::QuicRequests,
        Kind::QuicAcks,
    ];
    pub(super) const IN_ORDER: [Kind; 3] = [Kind::QuicBulk, Kind::QuicBulkAmid, Kind::Tunnel];
}

/// Draws log-uniform.
pub(super) fn log_uniform(rng: &mut Stream, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.random::<f64>())
}

/// A link and its queue's limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) rate_bps: f64,
    pub(super) rtt_s: f64,
}

impl Link {
    pub(super) fn draw(rng: &mut Stream) -> Self {
        let (rate_bps, rtt_s) = (log_uniform(rng, 1e6, 50e6), log_uniform(rng, 0.004, 0.2));
        Link { rate_bps, rtt_s }
    }
}

/// How much of a flow was sent in order, counted after a time to get to know it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) in_order: u64,
}

impl Sent {
    /// Share of its packets that was sent in order.
    pub(super) fn share(&self) -> f64 {
        self.in_order as f64 / self.packets.max(1) as f64
    }
}

/// A flow of UDP.
pub(super) struct Source {
    kind: Kind,
    port: u16,
    /// Bytes that are the same in all of its packets: identifiers and keys.
    id: [u8; 8],
    /// Packets made so far.
    count: u64,
}

impl Source {
    pub(super) fn new(kind: Kind, rng: &mut Stream) -> Self {
        Source { kind, port: rng.random(), id: rng.random(), count: 0 }
    }

    /// The next packet, with `len` bytes of data, at `at_s` seconds.
    pub(super) fn packet(&mut self, len: usize, at_s: f64, rng: &mut Stream) -> Vec<u8> {
        let mut packet = vec![0; HEADERS_LEN + len];
        let total = (packet.len() as u16).to_be_bytes();
        packet[..4].copy_from_slice(&[0x45, 0, total[0], total[1]]);
        (packet[8], packet[9]) = (64, 17);
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..22].copy_from_slice(&self.port.to_be_bytes());
        packet[22..24].copy_from_slice(&443u16.to_be_bytes());
        let mut data = vec![0; len];
        rng.fill_bytes(&mut data[..len.min(64)]);
        self.write_head(&mut data, at_s);
        packet[HEADERS_LEN..].copy_from_slice(&data);
        self.count += 1;
        packet
    }

    /// Writes what reveals the protocol; the rest is noise, like encrypted data.
    fn write_head(&self, data: &mut [u8], at_s: f64) {
        let Some(head) = data.first_chunk_mut::<20>() else { return };
        match self.kind {
            Kind::Voice | Kind::Video => {
                (head[0], head[1]) = (0x80, self.id[0] & 0x7f);
                let sequence = u16::from_be_bytes([self.id[1], self.id[2]]);
                let sequence = sequence.wrapping_add(self.count as u16);
                head[2..4].copy_from_slice(&sequence.to_be_bytes());
                head[4..8].copy_from_slice(&((9e4 * at_s) as u32).to_be_bytes());
                head[8..12].copy_from_slice(&self.id[4..]);
            }
            Kind::UnknownVideo | Kind::Game => {
                head[..4].copy_from_slice(&(self.count as u32).to_be_bytes());
            }
            Kind::Dns => {}
            Kind::QuicRequests | Kind::QuicAcks | Kind::QuicBulk if self.count < 4 => {
                head[0] |= 0xc0;
                head[1..5].copy_from_slice(&1u32.to_be_bytes());
                (head[5], head[14]) = (8, 0);
                head[6..14].copy_from_slice(&self.id);
            }
            Kind::QuicRequests | Kind::QuicAcks | Kind::QuicBulk | Kind::QuicBulkAmid => {
                head[0] = 0x40 | (head[0] & 0x3f);
                head[1..9].copy_from_slice(&self.id);
            }
            Kind::Tunnel => {
                head[..4].copy_from_slice(&[4, 0, 0, 0]);
                head[4..8].copy_from_slice(&self.id[..4]);
                head[8..16].copy_from_slice(&self.count.to_le_bytes());
            }
        }
    }
}

/// Arrival times of packets in seconds, and the lengths of their data.
pub(super) fn schedule(
    kind: Kind,
    link: Link,
    seconds: f64,
    rng: &mut Stream,
) -> Vec<(f64, usize)> {
    let mut list = Vec::new();
    match kind {
        Kind::Voice => {
            let (gap, len) = (rng.random_range(0.01..0.06), rng.random_range(20..160));
            let count = (seconds / gap) as usize;
            list.extend((0..count).map(|n| (n as f64 * gap + rng.random_range(0.0..0.002), len)));
        }
        Kind::Video => frames(link, 0.9, seconds, rng, &mut list),
        Kind::UnknownVideo => frames(link, 0.7, seconds, rng, &mut list),
        Kind::Game => {
            let gap = 1.0 / log_uniform(rng, 10.0, 128.0);
            let len = rng.random_range(40..400);
            let mut at = 0.0;
            while at < seconds {
                let burst = if rng.random_bool(0.02) { rng.random_range(2..=6) } else { 1 };
                list.extend((0..burst).map(|_| (at, len)));
                at += gap;
            }
        }
        Kind::Dns => {
            let mean = 1.0 / log_uniform(rng, 1.0, 20.0);
            each(mean, seconds, rng, |at, rng| list.push((at, rng.random_range(40..=1_232))));
        }
        Kind::QuicRequests => {
            let answers = rng.random_bool(0.5);
            list.extend([(0.0, 1_200), (0.0, 1_200), (link.rtt_s, 1_200), (link.rtt_s, 100)]);
            each(log_uniform(rng, 0.7, 5.0), seconds, rng, |at, rng| {
                let all = match answers {
                    true => log_uniform(rng, 200.0, 2_400.0) as usize,
                    false => rng.random_range(60..=1_200),
                };
                let full = (0..all / 1_200).map(|_| (at, 1_200));
                list.extend(full.chain([(at, (all % 1_200).max(30))]));
            });
        }
        Kind::QuicAcks => {
            let mean = 1.0 / log_uniform(rng, 10.0, 500.0);
            list.extend([(0.0, 1_200), (0.0, 1_200), (link.rtt_s, 1_200), (link.rtt_s, 100)]);
            each(mean, seconds, rng, |at, rng| list.push((at, rng.random_range(26..60))));
        }
        Kind::QuicBulk | Kind::QuicBulkAmid | Kind::Tunnel => {}
    }
    list.sort_by(|a, b| a.0.total_cmp(&b.0));
    list
}

/// Calls `does` at random, independent times.
fn each(mean: f64, seconds: f64, rng: &mut Stream, mut does: impl FnMut(f64, &mut Stream)) {
    let mut at = 0.0;
    loop {
        at -= mean * (1.0 - rng.random::<f64>()).ln();
        if at >= seconds {
            return;
        }
        does(at, rng);
    }
}

/// Video frames, from 0.3 to `most` of the link's rate, sent as they are made.
fn frames(link: Link, most: f64, seconds: f64, rng: &mut Stream, list: &mut Vec<(f64, usize)>) {
    let (per_s, share) = (rng.random_range(24.0..60.0), rng.random_range(0.3..most));
    let (len, mean) = (rng.random_range(1_100..=1_200), share * link.rate_bps / 8.0 / per_s);
    let (mut at, mut key_at) = (0.0, 0.0);
    while at < seconds {
        let mut bytes = mean * rng.random_range(0.5..1.5);
        if at >= key_at {
            bytes *= rng.random_range(1.0..4.0);
            key_at = at + 2.0;
        }
        let bytes = bytes as usize;
        list.extend((0..bytes / len).map(|_| (at, len)));
        list.push((at, (bytes % len).max(40)));
        at += 1.0 / per_s;
    }
}

/// A window of packets, like CUBIC's.
struct Window {
    size: f64,
    before: f64,
    cut_at_s: f64,
    threshold: f64,
    in_flight: f64,
    loss_ratio: f64,
}

impl Window {
    fn new(loss_ratio: f64) -> Self {
        Window {
            size: 10.0,
            before: 0.0,
            cut_at_s: f64::NEG_INFINITY,
            threshold: f64::INFINITY,
            in_flight: 0.0,
            loss_ratio,
        }
    }

    /// Records that a packet was acknowledged, or reported lost.
    fn note(&mut self, now_s: f64, link: Link, is_lost: bool) {
        self.in_flight -= 1.0;
        if is_lost {
            if now_s - self.cut_at_s > link.rtt_s {
                (self.before, self.cut_at_s) = (self.size, now_s);
                self.size = (0.7 * self.size).max(2.0);
                self.threshold = self.size;
            }
        } else if self.size < self.threshold {
            self.size += 1.0;
        } else {
            let since = now_s - self.cut_at_s;
            let k = (self.before * 0.3 / 0.4).cbrt();
            let cubic = 0.4 * (since + link.rtt_s - k).powi(3) + self.before;
            self.size += ((cubic - self.size) / self.size).clamp(0.5 / self.size, 0.5);
        }
    }
}

/// When the sender learns of a packet's fate, in nanoseconds.
fn told_at(now_s: f64, link: Link) -> u64 {
    (1e9 * (now_s + link.rtt_s)) as u64
}

/// A queue in front of a link, with CoDel's initial target.
fn queue_of(link: Link, seed: u64) -> IngressQueue {
    let mut queue = IngressQueue::fair(1_000, &CodingParams::window(), seed);
    let mut rtt = RttEstimator::new();
    (0..50).for_each(|_| rtt.sample(Duration::from_secs_f64(link.rtt_s)));
    let bulk = Duration::from_millis(1);
    let packets_per_s = link.rate_bps / 8.0 / 1_400.0;
    queue.note_air(&rtt, Air { bulk, loss_ratio: 0.1, packets_per_s, ..Air::default() });
    queue
}

/// Sends a flow over a link for `seconds`; returns how much was sent in order of the packets that
/// left after `from_s`.
pub(super) fn run(kind: Kind, link: Link, seconds: f64, from_s: f64, rng: &mut Stream) -> Sent {
    let mut queue = queue_of(link, rng.next_u64());
    let (mut stats, mut sent) = (Stats::default(), Sent::default());
    let mut source = Source::new(kind, rng);
    let mut list = schedule(kind, link, seconds, rng).into_iter().peekable();
    let is_bulk = Kind::IN_ORDER.contains(&kind);
    let loss_ratio = if kind == Kind::Tunnel { 0.0 } else { log_uniform(rng, 1e-4, 0.03) };
    let mut window = Window::new(loss_ratio);
    let bulk_len = if kind == Kind::Tunnel { 1_312..1_400 } else { 1_200..1_400 };
    let bulk_len = rng.random_range(bulk_len);
    // What is acknowledged when, in nanoseconds, and whether as lost.
    let mut told: BTreeMap<(u64, u64), bool> = BTreeMap::new();
    let (mut free_at, mut now, mut number) = (0.0_f64, 0.0_f64, 0_u64);
    while now < seconds {
        let time = Time::from_nanos((1e9 * now) as u64);
        while let Some((at, len)) = list.next_if(|&(at, _)| at <= now) {
            queue.push_bytes(time, &source.packet(len, at, rng), &mut stats);
        }
        while let Some(entry) = told.first_entry().filter(|entry| entry.key().0 <= time.as_nanos())
        {
            window.note(now, link, entry.remove());
        }
        while is_bulk && window.in_flight < window.size {
            window.in_flight += 1.0;
            if !queue.push_bytes(time, &source.packet(bulk_len, now, rng), &mut stats) {
                number += 1;
                told.insert((told_at(now, link), number), true);
            }
        }
        let mut tell = |now: f64, is_lost| {
            number += 1;
            told.insert((told_at(now, link), number), is_lost);
        };
        if free_at <= now {
            let dropped = stats.packets_dropped_codel;
            let front = queue.front_with_need(time, &mut stats);
            let left = front.map(|(packet, need)| (packet.len(), need == Need::Order));
            for _ in dropped..stats.packets_dropped_codel {
                tell(now, true);
            }
            if let Some((len, is_ordered)) = left {
                queue.pop();
                free_at = now + 8.0 * len as f64 / link.rate_bps;
                tell(free_at, is_bulk && rng.random_bool(window.loss_ratio));
                if now >= from_s {
                    sent.packets += 1;
                    sent.in_order += u64::from(is_ordered);
                }
            }
        }
        let next_told = told.first_key_value().map(|((at, _), _)| *at as f64 / 1e9 + 1e-9);
        let next_sent = list.peek().map(|&(at, _)| at);
        let next_free = (!queue.is_empty()).then_some(free_at);
        let next = [next_told, next_sent, next_free].into_iter().flatten().reduce(f64::min);
        now = next.map_or(seconds, |next| next.max(now + 1e-9));
    }
    sent
}
