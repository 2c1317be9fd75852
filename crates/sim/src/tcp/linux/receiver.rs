//! Linux's receiving side: which packets arrived, when to acknowledge, and how far the window
//! opens.
//!
//! Every second packet is acknowledged at once, a single one after a delay of at least 40 ms that
//! follows the packets' spacing; the first packets, and those that fill a gap, are acknowledged at
//! once. Of many packets beyond a gap only some get an acknowledgment each; those for the rest are
//! compressed into one within a millisecond, or before more ranges change than one acknowledgment
//! is sure to report.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use super::clock::{TICK_US, expiry, micros};
use super::config::LinuxReceiverConfig;
use super::window::Window;
use crate::tcp::config::ConfigError;
use crate::tcp::reassembly::Reassembly;
use crate::tcp::receiver::ReceiverStats;
use crate::tcp::segment::{SackRange, Segment};

/// Most packets acknowledged individually when packets begin to arrive (quickack mode).
const QUICK_ACKS_MAX: u32 = 16;
/// The same after a congestion mark (RFC 3168).
const QUICK_ACKS_ECN: u32 = 2;
/// Acknowledgments beyond a gap before compression begins (`TCP_FASTRETRANS_THRESH`).
const GAP_ACKS: u32 = 3;
/// Most acknowledgments compressed into one, and their longest delay (`tcp_comp_sack_nr`,
/// `_delay_ns`).
const COMPRESSED_MAX: u32 = 44;
const COMPRESSED_US: u64 = 1_000;
/// Their delay as a fraction of the round-trip time: a twentieth.
const COMPRESSED_SHARE: u64 = 20;
/// Ranges that may change within a compressed acknowledgment: the two that changed last are in any
/// later one too, even if one is lost or begins with a D-SACK (`TCP_SACK_BLOCKS_EXPECTED`).
const COMPRESSED_RANGES: usize = 2;
/// Most acknowledgments that wait to be taken; beyond it, later ones are compressed further.
const FLUSHED_MAX: usize = 32;
/// Overhead of the SACK option in an acknowledgment: two bytes of option header, two of alignment.
pub(crate) const SACK_HEAD_LEN: u32 = 4;
/// SACK ranges that are remembered, the latest change first.
const RECENT_MAX: usize = 4;

/// A TCP receiver as in Linux: packets in, acknowledgments out, time as an argument.
///
/// Its application reads at once. A congestion mark is echoed with every acknowledgment until the
/// sender says that it has reduced its window (RFC 3168, Section 6.1.3).
#[derive(Clone, Debug)]
pub struct LinuxReceiver {
    config: LinuxReceiverConfig,
    arrived: Reassembly,
    /// All packets before this number have been acknowledged.
    acknowledged: u64,
    /// A duplicate to report (D-SACK, RFC 2883).
    duplicate: Option<SackRange>,
    /// The timestamp to echo: that of the packet that last advanced what is acknowledged (RFC 7323,
    /// Section 4.3).
    echo: Time,
    echo_retransmission: bool,
    /// Whether an acknowledgment is due now.
    owes: bool,
    /// Whether there are in-order packets not acknowledged yet.
    unconfirmed: bool,
    /// Whether there are in-order packets that the application has not read.
    unread: bool,
    delayed_until: Option<Time>,
    compressed_until: Option<Time>,
    compressed: u32,
    /// Compressed acknowledgments that precede the current one. Several may wait if packets come
    /// in a batch.
    flushed: VecDeque<Segment>,
    gap_acks: u32,
    gap_next: u64,
    quick: u32,
    /// Delay of an acknowledgment, microseconds; 0 before the first packet.
    wait_us: u64,
    received_us: u64,
    /// Whether congestion was marked and the sender has not responded yet.
    congestion: bool,
    window: Window,
    stats: ReceiverStats,
}

impl LinuxReceiver {
    /// A receiver that expects number 0.
    ///
    /// # Errors
    /// [`ConfigError`] names the field that is out of its range.
    pub fn new(config: LinuxReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(LinuxReceiver {
            config,
            arrived: Reassembly::new(RECENT_MAX),
            acknowledged: 0,
            duplicate: None,
            echo: Time::ZERO,
            echo_retransmission: false,
            owes: false,
            unconfirmed: false,
            unread: false,
            delayed_until: None,
            compressed_until: None,
            compressed: 0,
            flushed: VecDeque::new(),
            gap_acks: 0,
            gap_next: 0,
            quick: 0,
            wait_us: 0,
            received_us: 0,
            congestion: false,
            window: Window::new(&config),
            stats: ReceiverStats::default(),
        })
    }

    /// The settings.
    pub fn config(&self) -> &LinuxReceiverConfig {
        &self.config
    }

    /// The number expected next, which is also the number of packets delivered.
    pub fn next_expected(&self) -> u64 {
        self.arrived.next()
    }

    /// Packets delivered to the application, each once and in order.
    pub fn delivered(&self) -> u64 {
        self.arrived.next()
    }

    /// Packets buffered beyond a gap.
    pub fn out_of_order(&self) -> u64 {
        self.arrived.out_of_order()
    }

    /// The current window, packets.
    pub fn window_packets(&self) -> u64 {
        self.window.packets(self.arrived.out_of_order())
    }

    /// Counters since the start.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    /// Processes a data packet; ignores acknowledgments.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        let Segment::Data {
            sequence,
            sent_at,
            retransmission,
            congestion_experienced,
            window_reduced,
        } = *segment
        else {
            return;
        };
        self.stats.packets_received += 1;
        self.take_congestion(congestion_experienced, window_reduced);
        if sequence <= self.acknowledged && sent_at >= self.echo {
            (self.echo, self.echo_retransmission) = (sent_at, retransmission);
        }
        let is_new = self.take(sequence);
        self.owes |= !is_new;
        if is_new && sequence < self.arrived.next() {
            self.unread = true;
            // Timestamps of its own are not modelled: takes twice the packet's one-way delay.
            self.window.measure((2 * (micros(now) - micros(sent_at))).max(1));
            self.unconfirmed = true;
            self.time_arrival(now);
        }
        self.decide(now);
    }

    /// The clock has reached `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        let is_due = |at: &mut Time| *at <= now;
        if self.delayed_until.take_if(is_due).is_some() {
            // The sender may have become slower.
            self.wait_us = (self.wait_us << 1).min(200_000);
            self.owes = true;
        }
        self.owes |= self.compressed_until.take_if(is_due).is_some();
    }

    /// When to call [`LinuxReceiver::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.delayed_until, self.compressed_until].into_iter().flatten().min()
    }

    /// The next acknowledgment to send. Every arrival updates it until it is taken.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if let Some(flushed) = self.flushed.pop_front() {
            return Some(flushed);
        }
        if !core::mem::take(&mut self.owes) {
            self.read(now);
            return None;
        }
        Some(self.acknowledge())
    }

    /// An acknowledgment of everything that has arrived so far.
    fn acknowledge(&mut self) -> Segment {
        self.stats.acks_sent += 1;
        self.quick = self.quick.saturating_sub(1);
        (self.delayed_until, self.compressed_until, self.compressed) = (None, None, 0);
        self.unconfirmed = false;
        self.acknowledged = self.arrived.next();
        let sack = self.arrived.sack(self.duplicate.take());
        let window_end = self.window.open(self.arrived.next(), self.arrived.out_of_order());
        Segment::Ack {
            next: self.arrived.next(),
            echo: self.echo,
            echo_retransmission: self.echo_retransmission,
            sack,
            congestion_echo: self.congestion,
            window_end: Some(window_end),
        }
    }

    /// Bytes of an acknowledgment, headers and SACK ranges included.
    pub fn ack_len_bytes(&self, ack: &Segment) -> u32 {
        let Segment::Ack { sack, .. } = ack else { return self.config.ack_bytes };
        let ranges = sack.iter().filter(|range| range.end > range.start).count() as u32;
        let head = if ranges > 0 { SACK_HEAD_LEN } else { 0 };
        self.config.ack_bytes + head + ranges * self.config.sack_range_bytes
    }

    /// The application reads what has arrived once that is acknowledged; only then the window
    /// grows.
    fn read(&mut self, now: Time) {
        if core::mem::take(&mut self.unread) {
            self.window.adapt(micros(now), self.arrived.next(), self.arrived.span());
        }
    }

    /// Takes a packet; returns whether it was new and within the window.
    fn take(&mut self, sequence: u64) -> bool {
        if self.arrived.contains(sequence) {
            self.stats.duplicates += 1;
            self.duplicate = Some(SackRange { start: sequence, end: sequence + 1 });
            self.be_quick(QUICK_ACKS_MAX);
            self.arrived.remember(sequence);
            return false;
        }
        if sequence >= self.window.end() {
            self.stats.discarded += 1;
            return false;
        }
        // The sender would take a range for lost that later ones push out of the acknowledgment.
        let is_pushed_out = sequence > self.arrived.next()
            && self.arrived.changed_since(sequence) >= COMPRESSED_RANGES;
        let is_owed = self.owes || self.compressed > 0;
        if is_pushed_out && is_owed && self.flushed.len() < FLUSHED_MAX {
            self.owes = false;
            let flushed = self.acknowledge();
            self.flushed.push_back(flushed);
        }
        self.arrived.insert(sequence);
        if self.window.take(self.arrived.out_of_order(), self.arrived.span()) {
            // Announce the larger window at once.
            self.quick |= 1;
        }
        true
    }

    /// Processes a packet's ECN marks. After a mark no acknowledgment may be delayed: the sender's
    /// window may shrink to a single packet.
    fn take_congestion(&mut self, experienced: bool, reduced: bool) {
        if reduced {
            self.congestion = false;
            self.owes = true;
        }
        if experienced && !self.congestion {
            self.congestion = true;
            self.be_quick(QUICK_ACKS_ECN);
        }
    }

    /// Acknowledges this many packets individually, but at most half of the window.
    fn be_quick(&mut self, most: u32) {
        let half = u32::try_from(self.window_packets() / 2).unwrap_or(most).max(2);
        self.quick = self.quick.max(half.min(most));
    }

    /// Adapts the delay of acknowledgments to the spacing of packets.
    fn time_arrival(&mut self, now: Time) {
        let (now_us, least_us) = (micros(now), self.config.delayed_ack_timeout.as_micros() as u64);
        let since_us = now_us / TICK_US * TICK_US - self.received_us / TICK_US * TICK_US;
        if self.wait_us == 0 {
            self.be_quick(QUICK_ACKS_MAX);
            self.wait_us = least_us;
        } else if since_us <= least_us / 2 {
            self.wait_us = (self.wait_us >> 1) + least_us / 2;
        } else if since_us < self.wait_us {
            self.wait_us = (self.wait_us >> 1) + since_us;
        } else if since_us > 1_000_000 {
            // A pause longer than the sender's timeout: it has restarted.
            self.be_quick(QUICK_ACKS_MAX);
        }
        self.received_us = now_us;
    }

    /// Decides whether to acknowledge now, or when.
    fn decide(&mut self, now: Time) {
        if self.owes || self.arrived.next() - self.acknowledged >= 2 || self.quick > 0 {
            self.owes = true;
        } else if self.arrived.is_whole() {
            if self.unconfirmed && self.delayed_until.is_none() {
                self.delayed_until = Some(expiry(now, self.wait_us));
            }
        } else {
            self.decide_beyond_gap(now);
        }
    }

    fn decide_beyond_gap(&mut self, now: Time) {
        if core::mem::replace(&mut self.gap_next, self.arrived.next()) != self.arrived.next() {
            self.gap_acks = 0;
        }
        if self.compressed >= COMPRESSED_MAX || self.gap_acks < GAP_ACKS {
            self.gap_acks = (self.gap_acks + 1).min(GAP_ACKS);
            self.owes = true;
            return;
        }
        self.compressed += 1;
        let wait_us = COMPRESSED_US.min(self.window.rtt_us() / COMPRESSED_SHARE);
        self.compressed_until.get_or_insert(now + Duration::from_micros(wait_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SACK ranges of all acknowledgments for packets with these times and numbers; the
    /// acknowledgments are taken after each `batch` packets.
    fn ranges(packets: impl IntoIterator<Item = (u64, u64)>, batch: usize) -> Vec<Vec<(u64, u64)>> {
        let mut receiver = LinuxReceiver::new(LinuxReceiverConfig::new(1_448)).unwrap();
        let mut told = Vec::new();
        for (index, (ms, sequence)) in packets.into_iter().enumerate() {
            let now = Time::from_millis(ms);
            receiver.handle_timeout(now);
            receiver.handle_segment(
                now,
                &Segment::Data {
                    sequence,
                    sent_at: Time::from_millis(ms - 20),
                    retransmission: false,
                    congestion_experienced: false,
                    window_reduced: false,
                },
            );
            if (index + 1) % batch != 0 {
                continue;
            }
            while let Some(Segment::Ack { sack, .. }) = receiver.poll_transmit(now) {
                let ranges = sack.iter().filter(|range| range.end > range.start);
                told.push(ranges.map(|range| (range.start, range.end)).collect());
            }
        }
        told
    }

    /// As since Linux 5.8 (`tcp_sack_new_ofo_skb`): a compressed acknowledgment is sent before a
    /// third range changes, so that each range is reported first or second at least once.
    #[test]
    fn no_range_is_pushed_out_by_those_that_come_at_the_same_time() {
        // Enough packets to begin compression; then a burst of packets, each beyond a gap of its
        // own.
        let begin = (0..40).map(|number| (100 + number, number));
        let gap = (0..30).map(|number| (200 + number, 41 + number));
        let lot = (0..6).map(|number| (300, 80 + 2 * number));
        // A tunnel delivers repaired packets all at once: no acknowledgment is taken in between.
        for batch in [1, 7] {
            let packets = begin.clone().chain(gap.clone()).chain(lot.clone()).chain([(310, 92)]);
            let told = ranges(packets, batch);
            for number in (0..6).map(|number| 80 + 2 * number) {
                let is_told = |ranges: &Vec<(u64, u64)>| {
                    ranges.iter().take(2).any(|&(start, end)| (start..end).contains(&number))
                };
                assert!(told.iter().any(is_told), "{number} was never told: {told:?}");
            }
        }
    }
}
