//! Meters, which turn counters of a flow's agents into metrics.

use corridor_base::Time;
use corridor_scenario::{Delays, Measures};
use hdrhistogram::Histogram;

use crate::agents::ip::{IpSink, IpSource};
use crate::agents::metered::{MeteredDatagrams, MeteredSink, MeteredSource, NANOS_PER_S};
use crate::agents::source::{CbrSource, PatternSource};
use crate::agents::tcpnc::{NcSink, NcSource};
use crate::agents::tunnel_end::{IpDatagrams, TunnelEnd};
use crate::core::network::{AgentIndex, Network};
use crate::plan::seen::FlowSeen;

/// Bits per second; 0 if no time has passed.
pub(crate) fn bps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { 8.0 * bytes as f64 / seconds } else { 0.0 }
}

/// A flow's agents, whose counters give its metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meter {
    /// [`MeteredSource`] and [`MeteredSink`].
    Tcp { source: AgentIndex, sink: AgentIndex },
    /// As `Tcp`, each with a TCP/NC layer below it.
    TcpNc { source: AgentIndex, sink: AgentIndex },
    /// [`CbrSource`] or [`PatternSource`], and [`MeteredDatagrams`].
    Datagrams { source: AgentIndex, sink: AgentIndex },
    /// TCP or datagram agents behind [`TunnelEnd`]s, each with a layer below it.
    Tunnelled { source: AgentIndex, sink: AgentIndex, flow: u32, is_tcp: bool },
}

impl Meter {
    /// Counters since the start.
    pub(crate) fn counts(self, network: &Network) -> Counts {
        let of_tcp = || self.tcp(network).map(|(source, sink)| tcp_counts(source, sink));
        let of_datagrams =
            || self.datagrams(network).map(|(sent, sink)| datagram_counts(sent, sink));
        of_tcp().or_else(of_datagrams).unwrap_or_default()
    }

    /// Counters and gauges for the flow's course.
    pub(crate) fn seen(self, network: &Network) -> FlowSeen {
        let payload_bytes = self.counts(network).payload_bytes;
        let Some((source, sink)) = self.tcp(network) else {
            let sink = self.datagrams(network).map(|(_, sink)| sink);
            let recent = sink.and_then(MeteredDatagrams::recent);
            return FlowSeen { payload_bytes, ..FlowSeen::default() }.with_delays(recent);
        };
        FlowSeen::of_tcp(source, network.now(), payload_bytes).with_delays(sink.recent())
    }

    /// The TCP agents, with or without a layer below them.
    fn tcp(self, network: &Network) -> Option<(&MeteredSource, &MeteredSink)> {
        match self {
            Meter::Tcp { source, sink } => network.agent(source).zip(network.agent(sink)),
            Meter::TcpNc { source, sink } => {
                let source = network.agent::<NcSource<MeteredSource>>(source)?.inner();
                Some((source, network.agent::<NcSink<MeteredSink>>(sink)?.inner()))
            }
            Meter::Tunnelled { source, sink, flow, is_tcp: true } => {
                let source = network.agent::<TunnelEnd>(source)?;
                let source = source.agent::<IpSource<MeteredSource>>(flow)?.inner();
                let sink = network.agent::<TunnelEnd>(sink)?;
                Some((source, sink.agent::<IpSink<MeteredSink>>(flow)?.inner()))
            }
            Meter::Datagrams { .. } | Meter::Tunnelled { .. } => None,
        }
    }

    /// The number of datagrams sent, and the sink that counts them.
    fn datagrams(self, network: &Network) -> Option<(u64, &MeteredDatagrams)> {
        match self {
            Meter::Datagrams { source, sink } => {
                let constant = network.agent(source).map(CbrSource::sent);
                let drawn = || network.agent(source).map(PatternSource::sent);
                Some((constant.or_else(drawn)?, network.agent(sink)?))
            }
            Meter::Tunnelled { source, sink, flow, is_tcp: false } => {
                let (source, sink) = (network.agent::<TunnelEnd>(source)?, network.agent(sink)?);
                let constant = source.agent::<IpDatagrams<CbrSource>>(flow);
                let drawn = || source.agent::<IpDatagrams<PatternSource>>(flow);
                let sent = constant.map(|source| source.inner().sent());
                let sent = sent.or_else(|| drawn().map(|source| source.inner().sent()))?;
                let sink: &TunnelEnd = sink;
                Some((sent, sink.agent::<IpDatagrams<MeteredDatagrams>>(flow)?.inner()))
            }
            Meter::Tcp { .. } | Meter::TcpNc { .. } | Meter::Tunnelled { .. } => None,
        }
    }

    /// Whether a flow of fixed size is complete or given up; false for flows without end.
    pub(crate) fn is_over(self, network: &Network) -> bool {
        self.tcp(network).is_some_and(|(source, _)| source.is_over())
    }

    /// Delays of packets received in the measured interval, nanoseconds.
    pub(crate) fn delays(self, network: &Network) -> Option<&Histogram<u64>> {
        let of_tcp = self.tcp(network).map(|(_, sink)| sink.delays());
        of_tcp.or_else(|| self.datagrams(network).map(|(_, sink)| sink.delays()))
    }

    /// Sets the metrics that are not counters: window, round-trip time, delays, completion.
    pub(crate) fn set(self, measures: &mut Measures, flow: usize, network: &Network) {
        if let Some((source, _)) = self.tcp(network) {
            let stats = source.inner().sender().stats();
            let window = source.mean_window(network.now());
            measures.set_flow(flow, "cwnd_mean_packets", window);
            measures.set_flow(flow, "srtt_s", stats.srtt.map(|srtt| srtt.as_secs_f64()));
            let finished = source.inner().finished_at().map(|at| at.as_secs_f64());
            measures.set_flow(flow, "completion_s", finished);
            if source.inner().is_fixed() {
                set_transfer(measures, flow, source, network.now());
            }
        }
        if let Some(delays) = self.delays(network).filter(|delays| !delays.is_empty()) {
            measures.set_flow(flow, "delay_mean_s", delays.mean() / NANOS_PER_S);
            let quantiles = Delays::of(delays, NANOS_PER_S);
            measures.set_flow(flow, "delay_p50_s", quantiles.delay_p50_s);
            measures.set_flow(flow, "delay_p95_s", quantiles.delay_p95_s);
            measures.set_flow(flow, "delay_max_s", quantiles.delay_max_s);
        }
    }
}

/// Sets the additional metrics of transfers of fixed size.
fn set_transfer(measures: &mut Measures, flow: usize, source: &MeteredSource, now: Time) {
    let transfer_s = source.transfer_s();
    let sender = source.inner().sender();
    let payload = sender.offered().saturating_mul(u64::from(sender.payload_bytes()));
    measures.set_flow(flow, "completed", u64::from(transfer_s.is_some()));
    measures.set_flow(flow, "transfer_s", transfer_s);
    measures.set_flow(flow, "spent_s", source.spent_s(now));
    measures.set_flow(flow, "transfer_goodput_bps", transfer_s.map(|s| bps(payload, s)));
    measures.set_flow(flow, "rtt_mean_s", source.rtt_mean_s());
    measures.set_flow(flow, "rto_mean_s", source.rto_mean_s());
}

/// Counters of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Payload bytes delivered to the application.
    pub(crate) payload_bytes: u64,
    /// All bytes received, with headers and duplicates.
    pub(crate) received_bytes: u64,
    packets_sent: u64,
    packets_received: u64,
    tcp: Option<TcpCounts>,
    /// For datagrams: how many were sent up to the last one received.
    numbers: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TcpCounts {
    retransmissions: u64,
    timeouts: u64,
    fast_retransmits: u64,
}

fn tcp_counts(source: &MeteredSource, sink: &MeteredSink) -> Counts {
    let (sent, received) = (source.inner().sender().stats(), sink.inner().received());
    Counts {
        payload_bytes: sink.inner().delivered_bytes(),
        received_bytes: received.payload_bytes + received.header_bytes,
        packets_sent: source.first_sent(),
        packets_received: sink.inner().receiver().delivered(),
        tcp: Some(TcpCounts {
            retransmissions: sent.retransmissions,
            timeouts: sent.timeouts,
            fast_retransmits: sent.fast_retransmits,
        }),
        numbers: None,
    }
}

fn datagram_counts(sent: u64, sink: &MeteredDatagrams) -> Counts {
    let stats = sink.stats();
    Counts {
        payload_bytes: sink.payload_bytes(),
        received_bytes: stats.received_bytes,
        packets_sent: sent,
        packets_received: sink.packets(),
        tcp: None,
        numbers: Some(stats.numbers),
    }
}

impl Counts {
    /// The counters' growth since `before`.
    pub(crate) fn since(&self, before: &Counts) -> Counts {
        let tcp_before = before.tcp.unwrap_or_default();
        Counts {
            payload_bytes: self.payload_bytes - before.payload_bytes,
            received_bytes: self.received_bytes - before.received_bytes,
            packets_sent: self.packets_sent - before.packets_sent,
            // At most the packets sent since then: packets are delivered in order.
            packets_received: match self.tcp {
                Some(_) => self.packets_received.saturating_sub(before.packets_sent),
                None => self.packets_received - before.packets_received,
            },
            tcp: self.tcp.map(|tcp| TcpCounts {
                retransmissions: tcp.retransmissions - tcp_before.retransmissions,
                timeouts: tcp.timeouts - tcp_before.timeouts,
                fast_retransmits: tcp.fast_retransmits - tcp_before.fast_retransmits,
            }),
            numbers: self.numbers.map(|numbers| numbers.saturating_sub(before.packets_sent)),
        }
    }

    /// Sets the metrics of a flow that was active for `active_s`.
    pub(crate) fn set(&self, measures: &mut Measures, flow: usize, active_s: f64) {
        measures.set_flow(flow, "goodput_bps", bps(self.payload_bytes, active_s));
        measures.set_flow(flow, "throughput_bps", bps(self.received_bytes, active_s));
        measures.set_flow(flow, "packets_sent", self.packets_sent);
        measures.set_flow(flow, "packets_received", self.packets_received);
        let tcp = self.tcp;
        measures.set_flow(flow, "packets_retransmitted", tcp.map(|tcp| tcp.retransmissions));
        measures.set_flow(flow, "timeouts", tcp.map(|tcp| tcp.timeouts));
        measures.set_flow(flow, "fast_retransmits", tcp.map(|tcp| tcp.fast_retransmits));
        // Packets after the last one received may still be in flight.
        let numbers = self.numbers.filter(|&numbers| numbers > 0);
        let lost = numbers.map(|n| 1.0 - self.packets_received as f64 / n as f64);
        measures.set_flow(flow, "packet_loss_ratio", lost);
    }
}
