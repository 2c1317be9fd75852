//! Datagrams at a constant rate, and the sink that counts them.

use core::time::Duration;

use corridor_base::Time;

use super::{Active, FlowEnd};
use crate::core::agent::{Agent, Body, Packet};

/// Datagrams of equal size at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbrConfig {
    /// Length of each datagram with all headers.
    pub len_bytes: u32,
    /// From one datagram to the next, more than zero.
    pub interval: Duration,
    /// When to send.
    pub active: Active,
}

/// A source with a constant bit rate.
#[derive(Clone, Debug)]
pub struct CbrSource {
    end: FlowEnd,
    config: CbrConfig,
    next_at: Time,
    sequence: u64,
}

impl CbrSource {
    /// A source whose first datagram goes when `config.active` begins. An interval of zero becomes
    /// a nanosecond.
    pub fn new(end: FlowEnd, config: CbrConfig) -> Self {
        CbrSource { end, config, next_at: config.active.from, sequence: 0 }
    }

    /// Datagrams sent.
    pub fn sent(&self) -> u64 {
        self.sequence
    }
}

impl Agent for CbrSource {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.next_at > now || self.next_at >= self.config.active.until {
            return None;
        }
        let body = Body::Datagram { sequence: self.sequence, sent_at: now };
        self.sequence += 1;
        self.next_at += self.config.interval.max(Duration::from_nanos(1));
        Some(self.end.packet(self.config.len_bytes, body))
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next_at).filter(|&at| at < self.config.active.until)
    }
}

/// Counters of a [`DatagramSink`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramStats {
    /// Datagrams received.
    pub received: u64,
    /// Bytes in these, with headers.
    pub received_bytes: u64,
    /// Of the datagrams, those that arrived after one with a higher number.
    pub out_of_order: u64,
    /// Datagrams sent, judged by the highest number seen; those not received are lost or late.
    pub numbers: u64,
    /// Sum of the one-way delays.
    pub delay_sum: Duration,
    /// Longest one-way delay.
    pub delay_max: Duration,
}

/// Receives and counts the datagrams of a flow.
#[derive(Clone, Debug, Default)]
pub struct DatagramSink {
    stats: DatagramStats,
}

impl DatagramSink {
    /// What has arrived so far.
    pub fn stats(&self) -> &DatagramStats {
        &self.stats
    }
}

impl Agent for DatagramSink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let Body::Datagram { sequence, sent_at } = packet.body else { return };
        let (stats, delay) = (&mut self.stats, now - sent_at);
        stats.received += 1;
        stats.received_bytes += u64::from(packet.len_bytes);
        stats.out_of_order += u64::from(sequence < stats.numbers);
        stats.numbers = stats.numbers.max(sequence + 1);
        stats.delay_sum = stats.delay_sum.saturating_add(delay);
        stats.delay_max = stats.delay_max.max(delay);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
