//! Timestamped datagrams as IPv4 packets, and the sink that reads them: the load with which the lab
//! measures.

use std::sync::Arc;

use core::time::Duration;

use corridor_base::Time;
use hdrhistogram::Histogram;

use super::headers::write_datagram;
use super::metered::{Recent, delay_histogram};
use super::source::FlowEnd;
use crate::core::agent::{Agent, Body, Packet};

/// Bytes of the IPv4 and UDP headers, as the lab's packets have them.
pub(crate) const UDP_HEADERS_LEN: usize = 28;
/// Bytes of the sequence number and the time of sending, at the front of each payload.
const STAMP_LEN: usize = 16;
/// Source and destination port: discard (RFC 863).
const PORT: u16 = 9;
/// Offsets in an IPv4 header of the protocol and of the last byte of the source address.
const IP_PROTOCOL: usize = 9;
const IP_SOURCE_END: usize = 15;
const PROTOCOL_UDP: u8 = 17;

/// The flow of an IP packet: node k, with the address 10.0.0.k+1, sends flow k.
pub(crate) fn flow_of(packet: &[u8]) -> Option<u32> {
    let is_udp = *packet.get(IP_PROTOCOL)? == PROTOCOL_UDP;
    let source = packet.get(IP_SOURCE_END)?.checked_sub(1)?;
    is_udp.then_some(u32::from(source))
}

/// Sends datagrams at a rate between two times.
pub(crate) struct StampedSource {
    end: FlowEnd,
    /// Buffer of the next datagram, headers included.
    packet: Vec<u8>,
    interval_ns: f64,
    sequence: u64,
    /// When to begin, from when datagrams count, and when to end.
    times: Option<(Time, Time, Time)>,
    sent: u64,
}

impl StampedSource {
    /// A source of IP packets of `len_bytes`, headers included; [`begin`](Self::begin) starts it.
    pub(crate) fn new(end: FlowEnd, len_bytes: usize, interval_ns: f64) -> Self {
        let len = len_bytes.max(UDP_HEADERS_LEN + STAMP_LEN);
        let mut packet = Vec::with_capacity(len);
        let payload_len = (len - UDP_HEADERS_LEN) as u16;
        write_datagram(end.node, end.peer, (PORT, PORT), payload_len, &mut packet);
        packet.resize(len, 0);
        StampedSource { end, packet, interval_ns, sequence: 0, times: None, sent: 0 }
    }

    /// Sends from `begin` to before `end`, and counts datagrams from `start` on.
    pub(crate) fn begin(&mut self, begin: Time, (start, end): (Time, Time)) {
        self.times = Some((begin, start, end));
    }

    /// Datagrams sent in the measured interval.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }
}

impl Agent for StampedSource {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let at = self.poll_timeout().filter(|&at| at <= now)?;
        let start = self.times?.1;
        let stamp = &mut self.packet[UDP_HEADERS_LEN..][..STAMP_LEN];
        stamp[..8].copy_from_slice(&self.sequence.to_be_bytes());
        stamp[8..].copy_from_slice(&at.as_nanos().to_be_bytes());
        self.sequence += 1;
        self.sent += u64::from(at >= start);
        let bytes = Arc::<[u8]>::from(self.packet.as_slice());
        Some(self.end.packet(bytes.len() as u32, Body::Bytes(bytes)))
    }

    fn poll_timeout(&self) -> Option<Time> {
        let (begin, _, end) = self.times?;
        let after = Duration::from_nanos((self.sequence as f64 * self.interval_ns) as u64);
        Some(begin + after).filter(|&at| at < end)
    }
}

/// Receives datagrams at a host and measures them.
pub(crate) struct StampedSink {
    measured_from: Time,
    measured_until: Time,
    bytes: u64,
    /// Payload bytes received since the start, without duplicates.
    all_bytes: u64,
    received: u64,
    out_of_order: u64,
    duplicated: u64,
    highest: Option<u64>,
    seen: Vec<bool>,
    delays: Histogram<u64>,
    recent: Option<Recent>,
}

impl StampedSink {
    /// A sink; [`measure`](Self::measure) sets what it measures.
    pub(crate) fn new() -> Self {
        StampedSink {
            measured_from: Time::MAX,
            measured_until: Time::MAX,
            bytes: 0,
            all_bytes: 0,
            received: 0,
            out_of_order: 0,
            duplicated: 0,
            highest: None,
            seen: Vec::new(),
            delays: delay_histogram(),
            recent: None,
        }
    }

    /// Also keeps recent delays, if `is_kept`.
    pub(crate) fn with_recent(self, is_kept: bool) -> Self {
        StampedSink { recent: is_kept.then(Recent::new), ..self }
    }

    /// Recent delays, if they are kept.
    pub(crate) fn recent(&self) -> Option<&Recent> {
        self.recent.as_ref()
    }

    /// Payload bytes received since the start, without duplicates.
    pub(crate) fn all_bytes(&self) -> u64 {
        self.all_bytes
    }

    /// Measures what arrives, and what was sent, from `start` to before `end`.
    pub(crate) fn measure(&mut self, (start, end): (Time, Time)) {
        (self.measured_from, self.measured_until) = (start, end);
    }

    /// Payload bytes received in the measured interval, without duplicates.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Datagrams received that were sent in the measured interval, without duplicates.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Of these, those that arrived after a later one.
    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Duplicates of these.
    pub(crate) fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// One-way delays in the measured interval, nanoseconds.
    pub(crate) fn delays(&self) -> &Histogram<u64> {
        &self.delays
    }
}

impl Agent for StampedSink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let Body::Bytes(bytes) = &packet.body else { return };
        let Some((sequence, sent)) = read_stamp(bytes) else { return };
        let index = sequence as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, false);
        }
        let again = core::mem::replace(&mut self.seen[index], true);
        let late = self.highest.is_some_and(|highest| sequence < highest);
        self.highest = self.highest.max(Some(sequence));
        let payload = if again { 0 } else { (bytes.len() - UDP_HEADERS_LEN) as u64 };
        self.all_bytes += payload;
        if let Some(recent) = self.recent.as_ref().filter(|_| !again) {
            recent.record(now - sent);
        }
        if now >= self.measured_from && now < self.measured_until && !again {
            self.bytes += payload;
            self.delays.saturating_record((now - sent).as_nanos() as u64);
        }
        if sent >= self.measured_from && sent < self.measured_until {
            self.received += u64::from(!again);
            self.duplicated += u64::from(again);
            self.out_of_order += u64::from(late);
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

fn read_stamp(packet: &[u8]) -> Option<(u64, Time)> {
    let stamp = packet.get(UDP_HEADERS_LEN..)?;
    let sequence = u64::from_be_bytes(stamp.get(..8)?.try_into().ok()?);
    let nanos = u64::from_be_bytes(stamp.get(8..STAMP_LEN)?.try_into().ok()?);
    Some((sequence, Time::from_nanos(nanos)))
}
