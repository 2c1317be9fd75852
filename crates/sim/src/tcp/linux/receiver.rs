//! The receiving side: what has arrived, when that is acknowledged, and how far the window opens.
//!
//! Every second packet is acknowledged at once; one alone after 40 ms, or as long as packets take
//! to come; the first ones, and those after a gap, at once. Of many packets beyond a gap only some
//! are acknowledged each, the rest together within a millisecond, or before they change more ranges
//! than an acknowledgement is sure to tell.

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

/// Most packets that are acknowledged at once, each, when packets begin to come.
const QUICK_ACKS_MAX: u32 = 16;
/// The same after congestion was seen (RFC 3168).
const QUICK_ACKS_ECN: u32 = 2;
/// Acknowledgements beyond a gap before they are put together (`TCP_FASTRETRANS_THRESH`).
const GAP_ACKS: u32 = 3;
/// Most that are put together, and how long they wait at most (`tcp_comp_sack_nr`, `_delay_ns`).
const COMPRESSED_MAX: u32 = 44;
const COMPRESSED_US: u64 = 1_000;
/// Share of the round trip that they wait: a twentieth.
const COMPRESSED_SHARE: u64 = 20;
/// Ranges that acknowledgements put together may change: the last two are in any that follows, also
/// where one is lost or begins with a duplicate (`TCP_SACK_BLOCKS_EXPECTED`).
const COMPRESSED_RANGES: usize = 2;
/// Most acknowledgements that wait to be taken; later ones are put together as before.
const FLUSHED_MAX: usize = 32;
/// What an acknowledgement with ranges has besides: two bytes name the option, two align it.
pub(crate) const SACK_HEAD_LEN: u32 = 4;
/// Ranges that are remembered for acknowledgements, the latest change first.
const RECENT_MAX: usize = 4;

/// A TCP receiver of Linux's: packets in, acknowledgements out, time as an argument.
///
/// Its application reads at once. Congestion seen by the network is echoed with every
/// acknowledgement until the sender says that it has reduced its window (RFC 3168, Section 6.1.3).
#[derive(Clone, Debug)]
pub struct LinuxReceiver {
    config: LinuxReceiverConfig,
    arrived: Reassembly,
    /// All before this number have been acknowledged.
    acknowledged: u64,
    /// A packet that was there already (RFC 2883).
    duplicate: Option<SackRange>,
    /// The time to be echoed: that of the packet that moved on what had been acknowledged
    /// (RFC 7323, Section 4.3).
    echo: Time,
    echo_retransmission: bool,
    /// An acknowledgement is due now.
    owes: bool,
    /// Packets in order that none has confirmed.
    unconfirmed: bool,
    /// Packets in order that the application has not read.
    unread: bool,
    delayed_until: Option<Time>,
    compressed_until: Option<Time>,
    compressed: u32,
    /// What was put together, and goes before what has come since. Several wait where packets come
    /// in a batch.
    flushed: VecDeque<Segment>,
    gap_acks: u32,
    gap_next: u64,
    quick: u32,
    /// How long an acknowledgement waits, microseconds; 0 before the first packet.
    wait_us: u64,
    received_us: u64,
    /// Congestion was seen, and the sender has not answered.
    congestion: bool,
    window: Window,
    stats: ReceiverStats,
}

impl LinuxReceiver {
    /// A receiver that expects number 0.
    ///
    /// # Errors
    /// [`ConfigError`] names the field out of its range.
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

    /// The settings given.
    pub fn config(&self) -> &LinuxReceiverConfig {
        &self.config
    }

    /// The number expected next: so many packets have been delivered, each once and in order.
    pub fn next_expected(&self) -> u64 {
        self.arrived.next()
    }

    /// Packets delivered to the application, each once and in order.
    pub fn delivered(&self) -> u64 {
        self.arrived.next()
    }

    /// Packets that wait beyond a gap.
    pub fn out_of_order(&self) -> u64 {
        self.arrived.out_of_order()
    }

    /// Packets that may be under way at once, as the window is now.
    pub fn window_packets(&self) -> u64 {
        self.window.packets(self.arrived.out_of_order())
    }

    /// Counts since the start.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    /// Takes in a packet of data; acknowledgements are none of a receiver's business.
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
            // Its own echoes are not modelled: twice the delay of the packet.
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
            // The sender may be slower than it was.
            self.wait_us = (self.wait_us << 1).min(200_000);
            self.owes = true;
        }
        self.owes |= self.compressed_until.take_if(is_due).is_some();
    }

    /// When [`LinuxReceiver::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.delayed_until, self.compressed_until].into_iter().flatten().min()
    }

    /// The next acknowledgement to be sent. Until it is taken, it is updated by whatever arrives.
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

    /// An acknowledgement of what has come so far.
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

    /// Bytes of an acknowledgement, headers and ranges included.
    pub fn ack_len_bytes(&self, ack: &Segment) -> u32 {
        let Segment::Ack { sack, .. } = ack else { return self.config.ack_bytes };
        let ranges = sack.iter().filter(|range| range.end > range.start).count() as u32;
        let head = if ranges > 0 { SACK_HEAD_LEN } else { 0 };
        self.config.ack_bytes + head + ranges * self.config.sack_range_bytes
    }

    /// The application reads what came, once it is acknowledged; only then its window grows.
    fn read(&mut self, now: Time) {
        if core::mem::take(&mut self.unread) {
            self.window.adapt(micros(now), self.arrived.next(), self.arrived.span());
        }
    }

    /// Puts a packet to its place; whether it was not there, and was taken.
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
        // A range that others push out of the acknowledgement would look lost to the sender.
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
            // The sender is to know.
            self.quick |= 1;
        }
        true
    }

    /// What a packet tells of congestion. The sender's window may be as short as one packet then:
    /// no acknowledgement is to wait.
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

    /// So many packets are acknowledged each, but not more than half of the window.
    fn be_quick(&mut self, most: u32) {
        let half = u32::try_from(self.window_packets() / 2).unwrap_or(most).max(2);
        self.quick = self.quick.max(half.min(most));
    }

    /// How long an acknowledgement may wait follows from how packets come.
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
            // Longer than its own timeout: the sender has begun anew.
            self.be_quick(QUICK_ACKS_MAX);
        }
        self.received_us = now_us;
    }

    /// Whether an acknowledgement goes now, or when.
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

    /// Of packets at these times and with these numbers, the ranges of all acknowledgements, which
    /// are taken after each `batch` packets.
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

    /// As of Linux 5.8 (`tcp_sack_new_ofo_skb`): what is put together is sent before a third range
    /// changes, so that each is told first or second at least once.
    #[test]
    fn no_range_is_pushed_out_by_those_that_come_at_the_same_time() {
        // So many that none is acknowledged for itself any more; then a lot of packets, each behind
        // a gap of its own.
        let begin = (0..40).map(|number| (100 + number, number));
        let gap = (0..30).map(|number| (200 + number, 41 + number));
        let lot = (0..6).map(|number| (300, 80 + 2 * number));
        // A tunnel hands over what it repaired at once: nothing is taken between.
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
