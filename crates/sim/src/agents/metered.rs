//! Metered agents, which record the window over time and packets' delays.
//!
//! Metering does not change what happens: the agents inside are driven as they would be without it.

use core::time::Duration;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use corridor_base::Time;
use hdrhistogram::Histogram;

use super::ip::Numbered;
use super::source::{Active, DatagramSink, DatagramStats, TcpSink, TcpSource};
use crate::core::agent::{Agent, Body, Packet};
use crate::tcp::Segment;

/// Nanoseconds in a second, for delay histograms.
pub(crate) const NANOS_PER_S: f64 = 1e9;

/// A histogram of delays from a microsecond to ten minutes, in nanoseconds, to three digits.
pub(crate) fn delay_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 600_000_000_000, 3).expect("bounds are within range")
}

/// As [`delay_histogram`], to two digits, for the delays of an interval.
fn coarse_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 600_000_000_000, 2).expect("bounds are within range")
}

/// Delays since they were last taken.
pub(crate) struct Recent {
    delays: RefCell<(Mean, Histogram<u64>)>,
}

/// Delays since they were last taken, seconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct RecentDelays {
    pub(crate) mean_s: Option<f64>,
    pub(crate) p95_s: Option<f64>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Recent { delays: RefCell::new((Mean::default(), coarse_histogram())) }
    }

    pub(crate) fn record(&self, delay: Duration) {
        let (mean, histogram) = &mut *self.delays.borrow_mut();
        mean.add(delay);
        histogram.saturating_record(delay.as_nanos() as u64);
    }

    /// Takes the delays so far and starts over.
    pub(crate) fn take(&self) -> RecentDelays {
        let (mean, histogram) = &mut *self.delays.borrow_mut();
        let p95 = (mean.count > 0).then(|| histogram.value_at_quantile(0.95) as f64 / NANOS_PER_S);
        histogram.reset();
        RecentDelays { mean_s: core::mem::take(mean).seconds(), p95_s: p95 }
    }
}

/// Most packets that an endpoint processes or queues; more are dropped.
const WORK_MAX: usize = 1_024;

/// An endpoint's processing time for each packet, one packet after the other.
#[derive(Default)]
struct Work {
    each: Duration,
    /// Packets, and when the processing of each is done.
    waiting: VecDeque<(Time, Packet)>,
}

impl Work {
    fn of(each: Duration) -> Self {
        Work { each, waiting: VecDeque::new() }
    }

    /// Takes a packet; returns it at once if no processing time is set.
    fn take(&mut self, now: Time, packet: Packet) -> Option<Packet> {
        if self.each.is_zero() {
            return Some(packet);
        }
        let begun = self.waiting.back().map_or(now, |&(at, _)| at.max(now));
        if self.waiting.len() < WORK_MAX {
            self.waiting.push_back((begun + self.each, packet));
        }
        None
    }

    /// The next packet whose processing is done.
    fn done(&mut self, now: Time) -> Option<Packet> {
        let is_done = self.next().is_some_and(|at| at <= now);
        if is_done { self.waiting.pop_front().map(|(_, packet)| packet) } else { None }
    }

    fn next(&self) -> Option<Time> {
        self.waiting.front().map(|&(at, _)| at)
    }
}

/// The earlier of two times.
fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    [a, b].into_iter().flatten().min()
}

/// A mean of durations.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mean {
    sum_ns: u128,
    count: u64,
}

impl Mean {
    fn add(&mut self, span: Duration) {
        self.sum_ns += span.as_nanos();
        self.count += 1;
    }

    /// The mean of what was added since `before`.
    pub(crate) fn since(self, before: Mean) -> Mean {
        Mean { sum_ns: self.sum_ns - before.sum_ns, count: self.count - before.count }
    }

    pub(crate) fn seconds(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64 / 1e9)
    }
}

/// The integral of a window over time, packets times nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Area {
    packet_ns: f64,
    span_ns: f64,
}

impl Area {
    /// The mean of the window since `before`; `None` if no time has passed.
    pub(crate) fn mean_since(self, before: Area) -> Option<f64> {
        let span_ns = self.span_ns - before.span_ns;
        (span_ns > 0.0).then(|| (self.packet_ns - before.packet_ns) / span_ns)
    }
}

/// A window, integrated over a span of time.
#[derive(Clone, Copy)]
struct Watched {
    from: Time,
    until: Time,
    /// Up to when `packet_ns` has been integrated.
    since: Time,
    packet_ns: f64,
}

impl Watched {
    fn new((from, until): (Time, Time)) -> Self {
        Watched { from, until, since: from, packet_ns: 0.0 }
    }

    /// Adds the time until now, during which the window was `window`.
    fn add(&mut self, now: Time, window: f64) {
        let now = now.clamp(self.from, self.until.max(self.from));
        self.packet_ns += window * (now - self.since).as_nanos() as f64;
        self.since = now;
    }

    fn area(&self, now: Time, window: f64) -> Area {
        let end = now.min(self.until);
        let packet_ns = self.packet_ns + window * (end - self.since).as_nanos() as f64;
        Area { packet_ns, span_ns: (end - self.from).as_nanos() as f64 }
    }
}

/// Start times of packets' delays, from the packet that the receiver expects next: when each was
/// first sent, or when a rate-limited application wrote it, which TCP may keep waiting.
type FirstSent = Rc<RefCell<VecDeque<Time>>>;

/// A TCP source whose congestion window is recorded while it is active.
pub(crate) struct MeteredSource {
    inner: TcpSource,
    window: f64,
    /// The window's integral in the measured interval, then while the source is active.
    measured: Watched,
    active: Watched,
    /// Packets sent, not counting retransmissions.
    first_sent: u64,
    under_way: FirstSent,
    work: Work,
    rtt: Mean,
    rto: Mean,
    /// When it was to begin.
    from: Time,
}

impl MeteredSource {
    pub(crate) fn new(inner: TcpSource, active: Active, begin: Time) -> Self {
        let window = window(&inner);
        let under_way = FirstSent::default();
        MeteredSource {
            inner,
            window,
            measured: Watched::new((active.from.max(begin), active.until)),
            active: Watched::new((active.from, active.until)),
            first_sent: 0,
            under_way,
            work: Work::default(),
            rtt: Mean::default(),
            rto: Mean::default(),
            from: active.from,
        }
    }

    /// Sets a processing time for each packet that arrives.
    pub(crate) fn working(self, each: Duration) -> Self {
        MeteredSource { work: Work::of(each), ..self }
    }

    /// Mean round-trip time of packets that were sent once, seconds.
    pub(crate) fn rtt_mean_s(&self) -> Option<f64> {
        self.rtt.seconds()
    }

    /// The sum and number of these round-trip times, to take differences.
    pub(crate) fn rtt(&self) -> Mean {
        self.rtt
    }

    /// Mean retransmission timeout at the arrival of acknowledgments, seconds.
    pub(crate) fn rto_mean_s(&self) -> Option<f64> {
        self.rto.seconds()
    }

    /// How long a transfer of fixed size took, seconds, if it is complete.
    pub(crate) fn transfer_s(&self) -> Option<f64> {
        self.inner.finished_at().map(|at| (at - self.from).as_secs_f64())
    }

    /// How long a transfer of fixed size has taken, seconds: until it was complete or given up, or
    /// until `now`.
    pub(crate) fn spent_s(&self, now: Time) -> f64 {
        let over = self.inner.finished_at().or(self.inner.failed_at());
        over.unwrap_or(now).since(self.from).as_secs_f64()
    }

    /// Whether a transfer of fixed size is complete or given up.
    pub(crate) fn is_over(&self) -> bool {
        self.inner.finished_at().is_some() || self.inner.failed_at().is_some()
    }

    fn handle(&mut self, now: Time, packet: Packet) {
        if let Body::Segment(Segment::Ack { next, echo, echo_retransmission, .. }) = packet.body {
            if next > self.inner.sender().acknowledged() && !echo_retransmission {
                self.rtt.add(now - echo);
            }
            self.rto.add(self.inner.sender().rto());
        }
        self.inner.handle_packet(now, packet);
        self.watch(now);
    }

    /// The source inside.
    pub(crate) fn inner(&self) -> &TcpSource {
        &self.inner
    }

    /// Packets sent, not counting retransmissions.
    pub(crate) fn first_sent(&self) -> u64 {
        self.first_sent
    }

    /// Has the source begin at `now`.
    pub(crate) fn begin(&mut self, now: Time) {
        self.active = Watched::new((now, Time::MAX));
        self.inner.begin(now);
    }

    /// Measures the window from `start` to `end`, both in the future.
    pub(crate) fn measure(&mut self, span: (Time, Time)) {
        self.measured = Watched::new(span);
    }

    /// Accounts for the time until now with the window that was in force.
    fn watch(&mut self, now: Time) {
        self.measured.add(now, self.window);
        self.active.add(now, self.window);
        self.window = window(&self.inner);
    }

    /// Mean of the window over the measured time; `None` if that is zero.
    pub(crate) fn mean_window(&self, now: Time) -> Option<f64> {
        self.measured.area(now, self.window).mean_since(Area::default())
    }

    /// Integral of the window over the time that the source has been active.
    pub(crate) fn area(&self, now: Time) -> Area {
        self.active.area(now, self.window)
    }
}

/// The effective window: the congestion window, or the maximum window if that is smaller.
fn window(source: &TcpSource) -> f64 {
    let max = f64::from(source.sender().window_packets_max());
    source.sender().cwnd_packets().min(max)
}

impl Agent for MeteredSource {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Some(packet) = self.work.take(now, packet) {
            self.handle(now, packet);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(packet) = self.work.done(now) {
            self.handle(now, packet);
        }
        self.inner.handle_timeout(now);
        self.watch(now);
    }

    fn handle_unreachable(&mut self, now: Time) {
        self.inner.handle_unreachable(now);
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
        earlier(self.work.next(), self.inner.poll_timeout())
    }
}

/// A TCP sink that records each packet's delay until in-order delivery to the application.
pub(crate) struct MeteredSink {
    inner: TcpSink,
    /// Start and end of the measured interval.
    measured: (Time, Time),
    packets: u64,
    under_way: FirstSent,
    delays: Histogram<u64>,
    recent: Option<Recent>,
    work: Work,
}

impl MeteredSink {
    pub(crate) fn new(inner: TcpSink, source: &MeteredSource, begin: Time) -> Self {
        let under_way = Rc::clone(&source.under_way);
        let measured = (begin, Time::MAX);
        let (delays, work) = (delay_histogram(), Work::default());
        MeteredSink { inner, measured, packets: 0, under_way, delays, recent: None, work }
    }

    /// Also keeps recent delays, if `is_kept`.
    pub(crate) fn with_recent(self, is_kept: bool) -> Self {
        MeteredSink { recent: is_kept.then(Recent::new), ..self }
    }

    /// Recent delays, if they are kept.
    pub(crate) fn recent(&self) -> Option<&Recent> {
        self.recent.as_ref()
    }

    /// Sets a processing time for each packet that arrives.
    pub(crate) fn working(self, each: Duration) -> Self {
        MeteredSink { work: Work::of(each), ..self }
    }

    /// The sink inside.
    pub(crate) fn inner(&self) -> &TcpSink {
        &self.inner
    }

    /// Measures packets that arrive from `start` to before `end`.
    pub(crate) fn measure(&mut self, (start, end): (Time, Time)) {
        self.measured = (start, end);
    }

    /// Packets measured.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Their delays, nanoseconds.
    pub(crate) fn delays(&self) -> &Histogram<u64> {
        &self.delays
    }
}

impl MeteredSink {
    fn handle(&mut self, now: Time, packet: Packet) {
        let before = self.inner.receiver().delivered();
        self.inner.handle_packet(now, packet);
        for _ in before..self.inner.receiver().delivered() {
            let Some(sent) = self.under_way.borrow_mut().pop_front() else { break };
            if let Some(recent) = &self.recent {
                recent.record(now - sent);
            }
            if now >= self.measured.0 && now < self.measured.1 {
                self.packets += 1;
                self.delays.saturating_record((now - sent).as_nanos() as u64);
            }
        }
    }
}

impl Agent for MeteredSink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Some(packet) = self.work.take(now, packet) {
            self.handle(now, packet);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(packet) = self.work.done(now) {
            self.handle(now, packet);
        }
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.inner.poll_transmit(now)
    }

    fn updates_waiting(&self) -> bool {
        self.inner.updates_waiting()
    }

    fn poll_timeout(&self) -> Option<Time> {
        earlier(self.work.next(), self.inner.poll_timeout())
    }
}

/// A sink of datagrams that records the delay of each.
pub(crate) struct MeteredDatagrams {
    inner: DatagramSink,
    /// Header bytes of a datagram.
    header_bytes: u32,
    begin: Time,
    /// Datagrams received that were sent after `begin`.
    packets: u64,
    delays: Histogram<u64>,
    recent: Option<Recent>,
}

impl MeteredDatagrams {
    pub(crate) fn new(header_bytes: u32, begin: Time) -> Self {
        let (inner, delays) = (DatagramSink::default(), delay_histogram());
        MeteredDatagrams { inner, header_bytes, begin, packets: 0, delays, recent: None }
    }

    /// Also keeps recent delays, if `is_kept`.
    pub(crate) fn with_recent(self, is_kept: bool) -> Self {
        MeteredDatagrams { recent: is_kept.then(Recent::new), ..self }
    }

    /// Recent delays, if they are kept.
    pub(crate) fn recent(&self) -> Option<&Recent> {
        self.recent.as_ref()
    }

    /// Counters of what has arrived.
    pub(crate) fn stats(&self) -> &DatagramStats {
        self.inner.stats()
    }

    /// Datagrams received that were sent after the beginning of the measurement, or at time zero if
    /// it begins there.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Payload bytes received.
    pub(crate) fn payload_bytes(&self) -> u64 {
        let DatagramStats { received, received_bytes, .. } = *self.inner.stats();
        received_bytes - received * u64::from(self.header_bytes)
    }

    /// One-way delays, nanoseconds.
    pub(crate) fn delays(&self) -> &Histogram<u64> {
        &self.delays
    }
}

impl Agent for MeteredDatagrams {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let (Some(recent), Body::Datagram { sent_at, .. }) = (&self.recent, &packet.body) {
            recent.record(now - *sent_at);
        }
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

    fn begin(&mut self, now: Time) {
        MeteredSource::begin(self, now);
    }
}

impl Numbered for MeteredSink {
    fn near(&self) -> u64 {
        self.inner.near()
    }
}
