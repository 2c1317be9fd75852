//! Agents that are watched: the window over time, and the delays of packets.
//!
//! What is watched does not change what happens: the agents inside are driven as they are.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use corridor_base::Time;
use corridor_scenario::Measures;
use hdrhistogram::Histogram;

use crate::agents::source::{Active, CbrSource, DatagramSink, TcpSink, TcpSource};
use crate::agents::tcpnc::{NcSink, NcSource};
use crate::core::agent::{Agent, Body, Packet};
use crate::core::network::{AgentIndex, Network};
use crate::plan::flows::bps;
use crate::plan::udp::delay_histogram;
use crate::tcp::Segment;

/// When packets were sent first, from the one that the receiver expects next.
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

    /// The window that was in force until now has been so large.
    fn watch(&mut self, now: Time) {
        let now = now.clamp(self.watched.0, self.watched.1.max(self.watched.0));
        self.area += self.window * (now - self.since).as_nanos() as f64;
        self.since = now;
        self.window = window(&self.inner);
    }

    fn mean_window(&self, now: Time) -> Option<f64> {
        let end = now.min(self.watched.1);
        let area = self.area + self.window * (end - self.since).as_nanos() as f64;
        let span_ns = (end - self.watched.0).as_nanos() as f64;
        (span_ns > 0.0).then(|| area / span_ns)
    }
}

/// The window that counts: the congestion window, or the maximum where that is less.
fn window(source: &TcpSource) -> f64 {
    let max = f64::from(source.sender().config().window_packets_max);
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
            self.under_way.borrow_mut().push_back(now);
        }
        Some(packet)
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }
}

/// A TCP sink that takes the delay of each packet: from when it was sent first, to when the
/// application has it, in order.
pub(crate) struct MeteredSink {
    inner: TcpSink,
    begin: Time,
    under_way: FirstSent,
    delays: Histogram<u64>,
}

impl MeteredSink {
    pub(crate) fn new(inner: TcpSink, source: &MeteredSource, begin: Time) -> Self {
        let under_way = Rc::clone(&source.under_way);
        MeteredSink { inner, begin, under_way, delays: delay_histogram() }
    }
}

impl Agent for MeteredSink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let before = self.inner.receiver().delivered();
        self.inner.handle_packet(now, packet);
        for _ in before..self.inner.receiver().delivered() {
            let Some(sent) = self.under_way.borrow_mut().pop_front() else { break };
            if now >= self.begin {
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
    delays: Histogram<u64>,
}

impl MeteredDatagrams {
    pub(crate) fn new(payload_bytes: u32, begin: Time) -> Self {
        let inner = DatagramSink::default();
        MeteredDatagrams { inner, payload_bytes, begin, delays: delay_histogram() }
    }
}

impl Agent for MeteredDatagrams {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Body::Datagram { sent_at, .. } = packet.body
            && now >= self.begin
        {
            self.delays.saturating_record((now - sent_at).as_nanos() as u64);
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

/// The agents of a flow, from which its measures are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meter {
    /// [`MeteredSource`] and [`MeteredSink`].
    Tcp { source: AgentIndex, sink: AgentIndex },
    /// The same, each with a layer of TCP/NC below it.
    TcpNc { source: AgentIndex, sink: AgentIndex },
    /// [`CbrSource`] and [`MeteredDatagrams`].
    Datagrams { source: AgentIndex, sink: AgentIndex },
}

impl Meter {
    /// Counters since the start.
    pub(crate) fn counts(self, network: &Network) -> Counts {
        let counts = match self {
            Meter::Tcp { .. } | Meter::TcpNc { .. } => {
                self.tcp(network).map(|(source, sink)| tcp_counts(source, sink))
            }
            Meter::Datagrams { source, sink } => network
                .agent(source)
                .zip(network.agent(sink))
                .map(|(source, sink)| datagram_counts(source, sink)),
        };
        counts.unwrap_or_default()
    }

    /// TCP's agents, with a layer below them or without.
    fn tcp(self, network: &Network) -> Option<(&MeteredSource, &MeteredSink)> {
        match self {
            Meter::Tcp { source, sink } => network.agent(source).zip(network.agent(sink)),
            Meter::TcpNc { source, sink } => {
                let source = network.agent::<NcSource<MeteredSource>>(source)?.inner();
                Some((source, network.agent::<NcSink<MeteredSink>>(sink)?.inner()))
            }
            Meter::Datagrams { .. } => None,
        }
    }

    /// Sets what is no counter: window, round-trip time, delays, completion.
    pub(crate) fn set(self, measures: &mut Measures, flow: usize, network: &Network) {
        let delays = match self {
            Meter::Tcp { .. } | Meter::TcpNc { .. } => {
                let ends = self.tcp(network);
                if let Some((source, _)) = ends {
                    let stats = source.inner.sender().stats();
                    let window = source.mean_window(network.now());
                    measures.set_flow(flow, "cwnd_mean_packets", window);
                    measures.set_flow(flow, "srtt_s", stats.srtt.map(|srtt| srtt.as_secs_f64()));
                    let finished = source.inner.finished_at().map(|at| at.as_secs_f64());
                    measures.set_flow(flow, "completion_s", finished);
                }
                ends.map(|(_, sink)| &sink.delays)
            }
            Meter::Datagrams { sink, .. } => {
                network.agent::<MeteredDatagrams>(sink).map(|sink| &sink.delays)
            }
        };
        if let Some(delays) = delays.filter(|delays| !delays.is_empty()) {
            let quantile = |q| delays.value_at_quantile(q) as f64 / 1e9;
            measures.set_flow(flow, "delay_p50_s", quantile(0.5));
            measures.set_flow(flow, "delay_p95_s", quantile(0.95));
            measures.set_flow(flow, "delay_max_s", delays.max() as f64 / 1e9);
        }
    }
}

/// Counters of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Data given to the application.
    pub(crate) payload_bytes: u64,
    /// All that came, with headers and repeats.
    pub(crate) received_bytes: u64,
    packets_sent: u64,
    packets_received: u64,
    tcp: Option<TcpCounts>,
    /// Datagrams: numbers up to the last that came.
    numbers: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TcpCounts {
    retransmissions: u64,
    timeouts: u64,
    fast_retransmits: u64,
}

fn tcp_counts(source: &MeteredSource, sink: &MeteredSink) -> Counts {
    let (sent, received) = (source.inner.sender().stats(), sink.inner.received());
    Counts {
        payload_bytes: sink.inner.delivered_bytes(),
        received_bytes: received.payload_bytes + received.header_bytes,
        packets_sent: source.first_sent,
        packets_received: sink.inner.receiver().delivered(),
        tcp: Some(TcpCounts {
            retransmissions: sent.retransmissions,
            timeouts: sent.timeouts,
            fast_retransmits: sent.fast_retransmits,
        }),
        numbers: None,
    }
}

fn datagram_counts(source: &CbrSource, sink: &MeteredDatagrams) -> Counts {
    let stats = sink.inner.stats();
    Counts {
        payload_bytes: stats.received * u64::from(sink.payload_bytes),
        received_bytes: stats.received_bytes,
        packets_sent: source.sent(),
        packets_received: stats.received,
        tcp: None,
        numbers: Some(stats.numbers),
    }
}

impl Counts {
    /// What has been added since `before`.
    pub(crate) fn since(&self, before: &Counts) -> Counts {
        let tcp_before = before.tcp.unwrap_or_default();
        Counts {
            payload_bytes: self.payload_bytes - before.payload_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
            packets_sent: self.packets_sent - before.packets_sent,
            packets_received: self.packets_received - before.packets_received,
            tcp: self.tcp.map(|tcp| TcpCounts {
                retransmissions: tcp.retransmissions - tcp_before.retransmissions,
                timeouts: tcp.timeouts - tcp_before.timeouts,
                fast_retransmits: tcp.fast_retransmits - tcp_before.fast_retransmits,
            }),
            numbers: self.numbers.map(|numbers| numbers - before.numbers.unwrap_or(0)),
        }
    }

    /// Sets the measures of a flow that was active for so long.
    pub(crate) fn set(&self, measures: &mut Measures, flow: usize, active_s: f64) {
        measures.set_flow(flow, "goodput_bps", bps(self.payload_bytes, active_s));
        measures.set_flow(flow, "throughput_bps", bps(self.received_bytes, active_s));
        measures.set_flow(flow, "packets_sent", self.packets_sent);
        measures.set_flow(flow, "packets_received", self.packets_received);
        let tcp = self.tcp;
        measures.set_flow(flow, "packets_retransmitted", tcp.map(|tcp| tcp.retransmissions));
        measures.set_flow(flow, "timeouts", tcp.map(|tcp| tcp.timeouts));
        measures.set_flow(flow, "fast_retransmits", tcp.map(|tcp| tcp.fast_retransmits));
        // Packets after the last that came may still be under way.
        let numbers = self.numbers.filter(|&numbers| numbers > 0);
        let lost = numbers.map(|n| 1.0 - self.packets_received as f64 / n as f64);
        measures.set_flow(flow, "packet_loss_ratio", lost);
    }
}
