//! Agents that are watched: the window over time, and the delays of packets.
//!
//! What is watched does not change what happens: the agents inside are driven as they are.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use corridor_base::Time;
use hdrhistogram::Histogram;

use super::ip::Numbered;
use super::source::{Active, DatagramSink, DatagramStats, TcpSink, TcpSource};
use crate::core::agent::{Agent, Body, Packet};
use crate::tcp::Segment;

/// Delays from a microsecond to ten minutes, in nanoseconds, to three digits.
pub(crate) fn delay_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 600_000_000_000, 3).expect("bounds are within range")
}

/// From when the delays of packets count, from the one that the receiver expects next on: from when
/// they were sent first, or had been written by an application that TCP may keep waiting.
type FirstSent = Rc<RefCell<VecDeque<Time>>>;

/// A TCP source whose congestion window is watched while it is active.
pub(crate) struct MeteredSource {
    inner: TcpSource,
    /// When watching begins, and ends.
    watched: (Time, Time),
    since: Time,
    window: f64,
    /// Packets times nanoseconds, up to `since`.
    area: f64,
    /// Packets sent for the first time.
    first_sent: u64,
    under_way: FirstSent,
}

impl MeteredSource {
    pub(crate) fn new(inner: TcpSource, active: Active, begin: Time) -> Self {
        let watched = (active.from.max(begin), active.until);
        let (window, since) = (window(&inner), watched.0);
        let under_way = FirstSent::default();
        MeteredSource { inner, watched, since, window, area: 0.0, first_sent: 0, under_way }
    }

    /// The source inside.
    pub(crate) fn inner(&self) -> &TcpSource {
        &self.inner
    }

    /// Packets sent for the first time.
    pub(crate) fn first_sent(&self) -> u64 {
        self.first_sent
    }

    /// Lets the source begin at `now`.
    pub(crate) fn begin(&mut self, now: Time) {
        self.inner.begin(now);
    }

    /// Watches the window from `start` to `end`, which have not been yet.
    pub(crate) fn measure(&mut self, (start, end): (Time, Time)) {
        (self.watched, self.since, self.area) = ((start, end), start, 0.0);
    }

    /// The window that was in force until now has been so large.
    fn watch(&mut self, now: Time) {
        let now = now.clamp(self.watched.0, self.watched.1.max(self.watched.0));
        self.area += self.window * (now - self.since).as_nanos() as f64;
        self.since = now;
        self.window = window(&self.inner);
    }

    /// The mean of the window over the time that it was watched; `None` of no time.
    pub(crate) fn mean_window(&self, now: Time) -> Option<f64> {
        let end = now.min(self.watched.1);
        let area = self.area + self.window * (end - self.since).as_nanos() as f64;
        let span_ns = (end - self.watched.0).as_nanos() as f64;
        (span_ns > 0.0).then(|| area / span_ns)
    }
}

/// The window that counts: the congestion window, or the maximum where that is less.
fn window(source: &TcpSource) -> f64 {
    let max = f64::from(source.sender().settings().window_packets_max());
    source.sender().stats().cwnd_packets.min(max)
}

impl Agent for MeteredSource {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        self.inner.handle_packet(now, packet);
        self.watch(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
        self.watch(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let packet = self.inner.poll_transmit(now)?;
        if let Body::Segment(Segment::Data { sequence, .. }) = packet.body
            && sequence == self.first_sent
        {
            self.first_sent += 1;
            let from = self.inner.written_at(sequence).unwrap_or(now);
            self.under_way.borrow_mut().push_back(from);
        }
        Some(packet)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }
}

/// A TCP sink that takes the delay of each packet, to when the application has it, in order.
pub(crate) struct MeteredSink {
    inner: TcpSink,
    /// When packets count, and when no longer.
    measured: (Time, Time),
    packets: u64,
    under_way: FirstSent,
    delays: Histogram<u64>,
}

impl MeteredSink {
    pub(crate) fn new(inner: TcpSink, source: &MeteredSource, begin: Time) -> Self {
        let under_way = Rc::clone(&source.under_way);
        let measured = (begin, Time::MAX);
        MeteredSink { inner, measured, packets: 0, under_way, delays: delay_histogram() }
    }

    /// The sink inside.
    pub(crate) fn inner(&self) -> &TcpSink {
        &self.inner
    }

    /// Lets count what comes from `start` to before `end`.
    pub(crate) fn measure(&mut self, (start, end): (Time, Time)) {
        self.measured = (start, end);
    }

    /// Packets that counted.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Their delays, nanoseconds.
    pub(crate) fn delays(&self) -> &Histogram<u64> {
        &self.delays
    }
}

impl Agent for MeteredSink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let before = self.inner.receiver().delivered();
        self.inner.handle_packet(now, packet);
        for _ in before..self.inner.receiver().delivered() {
            let Some(sent) = self.under_way.borrow_mut().pop_front() else { break };
            if now >= self.measured.0 && now < self.measured.1 {
                self.packets += 1;
                self.delays.saturating_record((now - sent).as_nanos() as u64);
            }
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.inner.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }
}

/// A sink of datagrams that takes the delay of each.
pub(crate) struct MeteredDatagrams {
    inner: DatagramSink,
    payload_bytes: u32,
    begin: Time,
    /// Datagrams received that were sent since.
    packets: u64,
    delays: Histogram<u64>,
}

impl MeteredDatagrams {
    pub(crate) fn new(payload_bytes: u32, begin: Time) -> Self {
        let inner = DatagramSink::default();
        MeteredDatagrams { inner, payload_bytes, begin, packets: 0, delays: delay_histogram() }
    }

    /// What has arrived.
    pub(crate) fn stats(&self) -> &DatagramStats {
        self.inner.stats()
    }

    /// Datagrams received that were sent after the beginning, or from the start of time on.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of payload in a datagram.
    pub(crate) fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    /// One-way delays, nanoseconds.
    pub(crate) fn delays(&self) -> &Histogram<u64> {
        &self.delays
    }
}

impl Agent for MeteredDatagrams {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Body::Datagram { sent_at, .. } = packet.body
            && now >= self.begin
        {
            self.delays.saturating_record((now - sent_at).as_nanos() as u64);
            self.packets += u64::from(sent_at > self.begin || self.begin == Time::ZERO);
        }
        self.inner.handle_packet(now, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.inner.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }
}

impl Numbered for MeteredSource {
    fn near(&self) -> u64 {
        self.inner.near()
    }
}

impl Numbered for MeteredSink {
    fn near(&self) -> u64 {
        self.inner.near()
    }
}
