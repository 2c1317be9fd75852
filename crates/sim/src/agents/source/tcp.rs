//! TCP on a host: a sender with the application behind it, and a receiver.

use core::time::Duration;

use corridor_base::{Time, earlier};

use super::{Active, FlowEnd};
use crate::core::agent::{Agent, Body, Packet};
use crate::tcp::{AnyReceiver, AnySender, ConfigError, ReceiverSettings, Segment, SenderSettings};

/// What an application sends, in packets of the sender's size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Supply {
    /// Unlimited data, as FTP in ns-2.
    Endless,
    /// A fixed number of packets, all available at the start.
    Packets(u64),
    /// One packet at a time at a rate, whether or not TCP keeps up.
    Paced {
        /// From one packet to the next, more than zero: the inverse of the rate.
        interval: Duration,
        /// How many; `u64::MAX` for no end.
        packets: u64,
    },
    /// One packet at a time at a rate, as long as TCP keeps up: the application blocks when its
    /// socket would.
    Written {
        /// From one packet to the next, nanoseconds: the inverse of the rate.
        interval_ns: f64,
        /// Most unsent packets before the application blocks.
        unsent_max: u64,
    },
}

/// Bytes of a flow by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowBytes {
    /// Payload bytes.
    pub payload_bytes: u64,
    /// Bytes of transport and network headers.
    pub header_bytes: u64,
}

impl FlowBytes {
    fn add(&mut self, payload_bytes: u32, header_bytes: u32) {
        self.payload_bytes += u64::from(payload_bytes);
        self.header_bytes += u64::from(header_bytes);
    }
}

/// A TCP sender, and the application behind it.
#[derive(Clone, Debug)]
pub struct TcpSource {
    end: FlowEnd,
    active: Active,
    sender: AnySender,
    /// When the application has its next packets.
    supply_at: Option<Time>,
    supply: Supply,
    silent: bool,
    sent: FlowBytes,
    finished_at: Option<Time>,
    /// Timeouts in a row after which it gives up; `None`: never.
    timeouts_max: Option<u32>,
    /// Packets acknowledged, and the number of timeouts when the last of them was.
    progress: (u64, u64),
    failed_at: Option<Time>,
}

impl TcpSource {
    /// A sender that begins when `active` says; with a beginning at the end of time, when
    /// [`begin`](Self::begin) is called.
    ///
    /// # Errors
    /// As [`AnySender::new`]; [`ConfigError`] with the field `interval` for a rate without
    /// interval.
    pub fn new(
        end: FlowEnd,
        active: Active,
        supply: Supply,
        config: impl Into<SenderSettings>,
    ) -> Result<Self, ConfigError> {
        if let Supply::Paced { interval: Duration::ZERO, .. } = supply {
            let expected = "more than 0".to_owned();
            return Err(ConfigError { field: "interval", given: "0ns".to_owned(), expected });
        }
        Ok(TcpSource {
            end,
            active,
            sender: AnySender::new(config.into())?,
            supply_at: Some(active.from).filter(|&at| at < Time::MAX),
            supply,
            silent: false,
            sent: FlowBytes::default(),
            finished_at: None,
            timeouts_max: None,
            progress: (0, 0),
            failed_at: None,
        })
    }

    /// Gives up after this many timeouts in a row, from 1, or if no route is found; `None`: never.
    #[must_use]
    pub fn giving_up_after(self, timeouts_max: Option<u32>) -> Self {
        TcpSource { timeouts_max, ..self }
    }

    /// Whether its data is a fixed amount, all available at the start.
    pub fn is_fixed(&self) -> bool {
        matches!(self.supply, Supply::Packets(_))
    }

    /// When it gave up.
    pub fn failed_at(&self) -> Option<Time> {
        self.failed_at
    }

    /// Gives up, unless the transfer is complete.
    fn fail(&mut self, now: Time) {
        if self.finished_at.is_none() {
            self.silent = true;
            self.failed_at.get_or_insert(now);
        }
    }

    /// Gives up after too many timeouts without an acknowledgment.
    fn fail_if_stuck(&mut self, now: Time) {
        let (acknowledged, timeouts) = (self.sender.acknowledged(), self.sender.timeouts());
        if acknowledged != self.progress.0 {
            self.progress = (acknowledged, timeouts);
        }
        let in_a_row = timeouts - self.progress.1;
        if self.timeouts_max.is_some_and(|most| in_a_row >= u64::from(most)) {
            self.fail(now);
        }
    }

    /// The TCP sender, for its statistics.
    pub fn sender(&self) -> &AnySender {
        &self.sender
    }

    /// Begins at `now`, whatever `active` says.
    pub fn begin(&mut self, now: Time) {
        (self.active.from, self.supply_at) = (now, Some(now));
    }

    /// When a rate-limited application wrote a packet; `None` for data that was available at the
    /// start.
    pub fn written_at(&self, sequence: u64) -> Option<Time> {
        let Supply::Written { interval_ns, .. } = self.supply else { return None };
        Some(self.active.from + Duration::from_nanos((sequence as f64 * interval_ns) as u64))
    }

    /// Bytes sent, retransmissions included.
    pub fn sent(&self) -> &FlowBytes {
        &self.sent
    }

    /// When all data of a finite [`Supply`] had been acknowledged.
    pub fn finished_at(&self) -> Option<Time> {
        self.finished_at
    }

    /// Has a rate-limited application write what is due, unless it is blocked.
    fn write(&mut self, now: Time) {
        if matches!(self.supply, Supply::Written { .. }) && self.active.from <= now {
            while self.write_at().is_some_and(|at| at <= now) {
                self.sender.offer(1);
            }
        }
    }

    /// When a rate-limited application writes next; `None` while it is blocked, and for other
    /// supplies.
    fn write_at(&self) -> Option<Time> {
        let Supply::Written { unsent_max, .. } = self.supply else { return None };
        if self.active.from == Time::MAX {
            return None;
        }
        let sender = &self.sender;
        let unsent = sender.offered() - sender.acknowledged() - sender.in_flight();
        self.written_at(sender.offered()).filter(|_| unsent < unsent_max)
    }

    /// Has the application offer what is due.
    fn supply(&mut self, now: Time) {
        while let Some(at) = self.supply_at.filter(|&at| at <= now) {
            self.supply_at = None;
            match &mut self.supply {
                Supply::Written { .. } => self.write(now),
                Supply::Endless => self.sender.offer(u64::MAX),
                Supply::Packets(packets) => self.sender.offer(*packets),
                Supply::Paced { packets: 0, .. } => {}
                Supply::Paced { interval, packets } => {
                    self.sender.offer(1);
                    *packets = if *packets == u64::MAX { u64::MAX } else { *packets - 1 };
                    self.supply_at = (*packets > 0).then_some(at + *interval);
                }
            }
        }
    }
}

impl Agent for TcpSource {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Body::Segment(segment) = packet.body {
            self.sender.handle_segment(now, &segment);
            self.fail_if_stuck(now);
            self.write(now);
            let ends = !matches!(self.supply, Supply::Written { .. });
            let is_over = ends && self.supply_at.is_none() && self.sender.is_done();
            if self.finished_at.is_none() && self.failed_at.is_none() && is_over {
                self.finished_at = Some(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.silent |= now >= self.active.until;
        if self.silent {
            return;
        }
        self.supply(now);
        self.sender.handle_timeout(now);
        self.fail_if_stuck(now);
        self.write(now);
    }

    fn handle_unreachable(&mut self, now: Time) {
        if self.timeouts_max.is_some() {
            self.fail(now);
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.silent || now >= self.active.until {
            return None;
        }
        let segment = self.sender.poll_transmit(now)?;
        let (payload_bytes, header_bytes) =
            (self.sender.payload_bytes(), self.sender.header_bytes());
        self.sent.add(payload_bytes, header_bytes);
        self.write(now);
        Some(self.end.packet(payload_bytes + header_bytes, Body::Segment(segment)))
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.silent {
            return None;
        }
        let write_at = || self.write_at();
        earlier(self.sender.poll_timeout(), self.supply_at.or_else(write_at))
    }
}

/// A TCP receiver whose application reads at once.
#[derive(Clone, Debug)]
pub struct TcpSink {
    end: FlowEnd,
    receiver: AnyReceiver,
    /// Header bytes of each data packet.
    header_bytes: u32,
    received: FlowBytes,
    delivered_bytes: u64,
    ack_bytes: u64,
    updates: bool,
}

impl TcpSink {
    /// A receiver of packets with `header_bytes` of headers.
    ///
    /// # Errors
    /// As [`AnyReceiver::new`].
    pub fn new(
        end: FlowEnd,
        header_bytes: u32,
        config: impl Into<ReceiverSettings>,
    ) -> Result<Self, ConfigError> {
        Ok(TcpSink {
            end,
            receiver: AnyReceiver::new(config.into())?,
            header_bytes,
            received: FlowBytes::default(),
            delivered_bytes: 0,
            ack_bytes: 0,
            updates: false,
        })
    }

    /// Whether a new acknowledgment replaces one that still waits at the node ("the ACK packet is
    /// updated before its transmission", constrained-defaults-2012, Section III-C1).
    #[must_use]
    pub fn updating(self, updates: bool) -> Self {
        TcpSink { updates, ..self }
    }

    /// The TCP receiver, for its statistics.
    pub fn receiver(&self) -> &AnyReceiver {
        &self.receiver
    }

    /// Bytes received, duplicates included.
    pub fn received(&self) -> &FlowBytes {
        &self.received
    }

    /// Payload bytes delivered to the application in order: goodput without headers.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Bytes of acknowledgments sent, all of them headers.
    pub fn ack_bytes(&self) -> u64 {
        self.ack_bytes
    }
}

impl Agent for TcpSink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let Body::Segment(segment @ Segment::Data { .. }) = packet.body else { return };
        let payload_bytes = packet.len_bytes.saturating_sub(self.header_bytes);
        self.received.add(payload_bytes, packet.len_bytes - payload_bytes);
        let before = self.receiver.delivered();
        self.receiver.handle_segment(now, &segment);
        // Packets of a flow are of equal size.
        let delivered = self.receiver.delivered() - before;
        self.delivered_bytes += delivered * u64::from(payload_bytes);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.receiver.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let segment = self.receiver.poll_transmit(now)?;
        let len_bytes = self.receiver.ack_len_bytes(&segment);
        self.ack_bytes += u64::from(len_bytes);
        Some(self.end.packet(len_bytes, Body::Segment(segment)))
    }

    fn updates_waiting(&self) -> bool {
        self.updates
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.receiver.poll_timeout()
    }
}
