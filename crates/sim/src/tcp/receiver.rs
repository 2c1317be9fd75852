//! The receiving side: which packets arrived, what is delivered, and when to acknowledge.

use std::collections::VecDeque;

use corridor_base::Time;

use super::config::{Acks, ConfigError, ReceiverConfig};
use super::reassembly::Reassembly;
use super::segment::{SACK_RANGES_MAX, SackRange, Segment};

/// Most positive acknowledgments that wait to be sent; beyond it the oldest is dropped.
pub const POSITIVE_ACKS_WAITING_MAX: usize = 1024;

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Packets received, including duplicates.
    pub packets_received: u64,
    /// Of these, duplicates.
    pub duplicates: u64,
    /// Of these, those discarded because they came beyond a gap.
    pub discarded: u64,
    /// Acknowledgments sent.
    pub acks_sent: u64,
    /// Positive acknowledgments dropped because too many waited.
    pub acks_dropped: u64,
}

/// A TCP receiver: packets in, acknowledgments out, time as an argument.
///
/// Echoes a congestion mark once, with the next acknowledgment, without waiting for CWR (unlike
/// RFC 3168, Section 6.1.3): if that acknowledgment is lost, so is the echo.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    arrived: Reassembly,
    /// Acknowledgments to send; at most one if they are cumulative.
    waiting: VecDeque<Segment>,
    /// In-order packets not acknowledged yet.
    unconfirmed: u32,
    /// Of the first of these, or else of the last arrival: its timestamp, and whether it was a
    /// retransmission.
    echo: (Time, bool),
    delayed_until: Option<Time>,
    congestion: bool,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver that expects number 0.
    ///
    /// # Errors
    /// [`ConfigError`] names the field that is out of its range.
    pub fn new(config: ReceiverConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Receiver {
            config,
            arrived: Reassembly::new(SACK_RANGES_MAX),
            waiting: VecDeque::new(),
            unconfirmed: 0,
            echo: (Time::ZERO, false),
            delayed_until: None,
            congestion: false,
            stats: ReceiverStats::default(),
        })
    }

    /// The settings.
    pub fn config(&self) -> &ReceiverConfig {
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

    /// Counters since the start.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    /// Processes a data packet; ignores acknowledgments.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        let Segment::Data { sequence, sent_at, retransmission, congestion_experienced, .. } =
            *segment
        else {
            return;
        };
        self.stats.packets_received += 1;
        self.congestion |= congestion_experienced;
        let filled_gap = !self.arrived.is_whole();
        let in_order = sequence == self.arrived.next();
        self.take(sequence);
        // Echoing the earliest of the packets acknowledged together gives the longest round-trip
        // time (RFC 7323, Section 4.3).
        if self.unconfirmed == 0 || !in_order {
            self.echo = (sent_at, retransmission);
        }
        self.unconfirmed += u32::from(in_order);
        match self.config.acks {
            Acks::Positive => self.acknowledge(Some(sequence)),
            Acks::Cumulative => {
                // RFC 5681, Section 4.2: acknowledge at once what is out of order or fills a gap.
                let urgent = !in_order || filled_gap;
                if urgent || self.unconfirmed >= self.config.delayed_ack_packets {
                    self.acknowledge(None);
                } else if self.delayed_until.is_none() {
                    self.delayed_until = Some(now + self.config.delayed_ack_timeout);
                }
            }
        }
    }

    /// The clock has reached `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.delayed_until.is_some_and(|at| at <= now) {
            self.acknowledge(None);
        }
    }

    /// When to call [`Receiver::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.delayed_until
    }

    /// The next acknowledgment to send. A cumulative one is updated by every arrival until it is
    /// taken.
    pub fn poll_transmit(&mut self, _now: Time) -> Option<Segment> {
        let ack = self.waiting.pop_front()?;
        self.stats.acks_sent += 1;
        Some(ack)
    }

    /// Takes a packet, unless it is a duplicate or is not to be buffered.
    fn take(&mut self, sequence: u64) {
        let next = self.arrived.next();
        let is_kept = sequence == next || self.config.keeps_out_of_order;
        if self.arrived.contains(sequence) {
            self.stats.duplicates += 1;
            self.arrived.remember(sequence);
        } else if !is_kept || sequence - next >= u64::from(self.config.window_packets_max) {
            self.stats.discarded += 1;
        } else {
            self.arrived.insert(sequence);
        }
    }

    /// Queues an acknowledgment; a positive one names the packet that it confirms.
    fn acknowledge(&mut self, positive: Option<u64>) {
        let sack = match positive {
            _ if !self.config.sack => Default::default(),
            // A range of one packet if it lies beyond a gap; `next` covers the rest.
            Some(sequence) => {
                let mut sack = [SackRange::default(); SACK_RANGES_MAX];
                if self.arrived.range_of(sequence).is_some() {
                    sack[0] = SackRange { start: sequence, end: sequence + 1 };
                }
                sack
            }
            None => self.arrived.sack(None),
        };
        let ack = Segment::Ack {
            next: self.arrived.next(),
            echo: self.echo.0,
            echo_retransmission: self.echo.1,
            sack,
            congestion_echo: core::mem::take(&mut self.congestion),
            window_end: self.window_end(),
        };
        if positive.is_none() {
            self.replace_waiting(ack);
        } else {
            if self.waiting.len() == POSITIVE_ACKS_WAITING_MAX {
                self.waiting.pop_front();
                self.stats.acks_dropped += 1;
            }
            self.waiting.push_back(ack);
        }
        self.unconfirmed = 0;
        self.delayed_until = None;
    }

    /// The application reads at once, and what waits beyond a gap is within the window already.
    fn window_end(&self) -> Option<u64> {
        let window = u64::from(self.config.window_packets_max);
        self.config.tells_window.then_some(self.arrived.next() + window)
    }

    /// Replaces the waiting cumulative acknowledgment, keeping its congestion echo.
    fn replace_waiting(&mut self, mut ack: Segment) {
        let echoed =
            matches!(self.waiting.pop_back(), Some(Segment::Ack { congestion_echo: true, .. }));
        if let Segment::Ack { congestion_echo, .. } = &mut ack {
            *congestion_echo |= echoed;
        }
        self.waiting.push_back(ack);
    }
}
