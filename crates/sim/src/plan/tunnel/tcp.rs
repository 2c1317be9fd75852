//! Load of TCP connections, as kernels and the lab's applications have them.
//!
//! Records of the application fill a segment each. Without a rate there is always another, and its
//! delay begins when it leaves for the first time; with a rate, when it is due, so that the delay
//! includes the wait for TCP. It ends when all before it have arrived too. Connections come about
//! before the load begins, or not at all, as in the lab.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_scenario::{Congestion, ETHERNET_MTU, Keep, Run, Scenario, Side};

use super::{MEETING_MAX, Measured, Seen, delays};
pub(super) use crate::agents::ip::flow_of;
use crate::agents::ip::{DATA_HEADERS_LEN, IpSink, IpSource};
use crate::agents::metered::{MeteredSink, MeteredSource, delay_histogram};
use crate::agents::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use crate::core::agent::NodeIndex;
use crate::core::network::{AgentIndex, Network};
use crate::plan::course::FlowSeen;
use crate::plan::error::SimError;
use crate::tcp::linux::{self, LinuxReceiverConfig, LinuxSenderConfig};
use crate::tcp::{
    ReceiverConfig, ReceiverSettings, Reduction, RtoConfig, SenderConfig, SenderSettings, Variant,
    VegasConfig,
};

/// Packets of data that wait unsent when the application has a rate and TCP cannot follow; the
/// application then waits. About what a kernel's send buffer grows to.
const BACKLOG_PACKETS_MAX: u64 = 4_096;
/// Longest time until all connections are there on a radio; others then never send, as in the lab.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Largest window in packets: what a kernel's receive buffer of 6 MB offers at most.
const WINDOW_PACKETS_MAX: u32 = 2_048;
/// Longest delay of an acknowledgement in the Linux kernel at first (`TCP_DELACK_MIN`).
const DELAYED_ACK: Duration = Duration::from_millis(40);

type Source = IpSource<MeteredSource>;
type Sink = IpSink<MeteredSink>;

/// A connection with data in one direction.
pub(super) struct Flow {
    from: NodeIndex,
    source: AgentIndex,
    sink: AgentIndex,
    payload_bytes: u32,
}

/// Puts a sender and a receiver on the hosts for each way.
pub(super) fn flows(
    (scenario, run, draw): (&Scenario, &Run, u64),
    ways: &[(NodeIndex, NodeIndex)],
    (mtu, keep): (usize, Keep),
    network: &mut Network,
) -> Result<Vec<Flow>, SimError> {
    let (config, receiver) = settings(scenario, run, (mtu, draw))?;
    let (payload_bytes, header_bytes) = (config.payload_bytes(), config.header_bytes());
    let supply = match run.offered_bps {
        None => Supply::Endless,
        Some(bps) => Supply::Written {
            interval_ns: 8e9 * f64::from(payload_bytes) / bps,
            unsent_max: BACKLOG_PACKETS_MAX,
        },
    };
    // They are told when.
    let active = Active { from: Time::MAX, until: Time::MAX };
    let mut flows = Vec::new();
    for (&(from, to), flow) in ways.iter().zip(0..) {
        let (here, there) = FlowEnd::pair(flow, from, to);
        let source = TcpSource::new(here, active, supply, config)?;
        let source = MeteredSource::new(source, active, Time::MAX);
        let sink = TcpSink::new(there, header_bytes, receiver)?;
        let sink = MeteredSink::new(sink, &source, Time::MAX);
        let sink = sink.with_recent(keep.series.is_some());
        let source = IpSource::new(source, here, payload_bytes);
        let sink = IpSink::new(sink, there, payload_bytes);
        let source = network.add_agent(from, flow, source)?;
        let sink = network.add_agent(to, flow, sink)?;
        flows.push(Flow { from, source, sink, payload_bytes });
    }
    Ok(flows)
}

/// Lets all connections come about, as far as they do.
pub(super) fn connect(flows: &[Flow], network: &mut Network) {
    // A line may be out, or lose all of a burst: what is measured is what comes after.
    let within = if network.line(0).is_some() { MEETING_MAX } else { CONNECT_MAX };
    let now = network.now();
    for flow in flows {
        network.tell(flow.source, |source: &mut Source| source.open(now));
        network.ask(flow.source);
    }
    network.run_until_or(now + within, |network| {
        let mut sources = flows.iter().filter_map(|flow| network.agent::<Source>(flow.source));
        sources.all(IpSource::is_open)
    });
}

/// Lets applications write from now on.
pub(super) fn begin(flows: &[Flow], network: &mut Network, begin: Time, measured: Measured) {
    let span = (measured.start, measured.end);
    for flow in flows {
        network.tell(flow.source, |source: &mut Source| {
            source.inner_mut().measure(span);
            if source.is_open() {
                source.inner_mut().begin(begin);
            }
            source.give_up();
        });
        network.tell(flow.sink, |sink: &mut Sink| sink.inner_mut().measure(span));
    }
}

impl Flow {
    /// What it has done since the start, for its course.
    pub(super) fn so_far(&self, network: &Network) -> FlowSeen {
        let source = network.agent::<Source>(self.source).map(IpSource::inner);
        let sink = network.agent::<Sink>(self.sink).map(IpSink::inner);
        let Some((source, sink)) = source.zip(sink) else { return FlowSeen::default() };
        let payload_bytes = sink.inner().delivered_bytes();
        FlowSeen::of_tcp(source, network.now(), payload_bytes).with_delays(sink.recent())
    }

    pub(super) fn seen(&self, network: &Network, measured: Measured) -> Seen {
        let source = network.agent::<Source>(self.source).map(IpSource::inner);
        let sink = network.agent::<Sink>(self.sink).map(IpSink::inner);
        let stats = source.map(|source| source.inner().sender().stats());
        let histogram = sink.map_or_else(delay_histogram, |sink| sink.delays().clone());
        let bytes = sink.map_or(0, MeteredSink::packets) * u64::from(self.payload_bytes);
        let side = Side {
            from: self.from as usize,
            goodput_bps: 8.0 * bytes as f64 / measured.duration_s,
            delays: delays(&histogram),
            packets_retransmitted: stats.map(|stats| stats.retransmissions),
            srtt_s: stats.and_then(|stats| stats.srtt).map(|srtt| srtt.as_secs_f64()),
            timeouts: stats.map(|stats| stats.timeouts),
            cwnd_mean_packets: source.and_then(|source| source.mean_window(network.now())),
            ..Side::default()
        };
        let delivered_bytes = sink.map_or(0, |sink| sink.inner().delivered_bytes());
        Seen { side, delays: histogram, delivered_bytes }
    }
}

/// Whether there is such a TCP.
pub(super) fn check(scenario: &Scenario, run: &Run) -> Result<(), SimError> {
    settings(scenario, run, (ETHERNET_MTU, 0)).map(|_| ())
}

/// Both ends, for packets of up to `mtu` bytes. A sender that draws makes draw `draw`.
fn settings(
    scenario: &Scenario,
    run: &Run,
    (mtu, draw): (usize, u64),
) -> Result<(SenderSettings, ReceiverSettings), SimError> {
    if scenario.pipes().is_none() {
        return Ok((sender_config(variant(run)?, mtu).into(), receiver_config().into()));
    }
    let congestion = match run.congestion.unwrap_or(Congestion::Cubic) {
        Congestion::Cubic => linux::Congestion::Cubic,
        Congestion::Reno => linux::Congestion::Reno,
        Congestion::Bbr => linux::Congestion::Bbr,
        other => {
            let (field, given) = ("congestion", other.to_string());
            let expected = "cubic, reno and bbr on a line";
            return Err(SimError::Unsupported { field, given, expected });
        }
    };
    let (seed, replication) = (scenario.seed, run.replication);
    let draws = StreamKey { seed, replication, entity: draw, purpose: "sender" };
    let payload_bytes = mtu.saturating_sub(DATA_HEADERS_LEN) as u32;
    let header_bytes = DATA_HEADERS_LEN as u32;
    let seed = draws.stream().next_u64();
    let sender = LinuxSenderConfig {
        payload_bytes,
        header_bytes,
        seed,
        ..LinuxSenderConfig::new(congestion)
    };
    let receiver = LinuxReceiverConfig::new(payload_bytes);
    Ok((sender.into(), receiver.into()))
}

/// What the run's congestion control is called here.
fn variant(run: &Run) -> Result<Variant, SimError> {
    match run.congestion.unwrap_or(Congestion::Cubic) {
        Congestion::Cubic => Ok(Variant::Cubic),
        Congestion::Reno => Ok(Variant::Reno),
        Congestion::NewReno => Ok(Variant::NewReno),
        Congestion::Sack => Ok(Variant::Sack),
        Congestion::Vegas => Ok(Variant::Vegas(VegasConfig::default())),
        Congestion::Tahoe => Ok(Variant::Tahoe),
        Congestion::Bbr => Err(SimError::Unsupported {
            field: "congestion",
            given: Congestion::Bbr.to_string(),
            expected: "cubic, reno, newreno, sack, vegas and tahoe without a line",
        }),
    }
}

/// A sender as the Linux kernel's: initial window 10, timestamps, selective acknowledgements where
/// the variant has them, its timeouts, HyStart for Cubic, no ECN.
fn sender_config(variant: Variant, mtu: usize) -> SenderConfig {
    SenderConfig {
        window_packets_max: WINDOW_PACKETS_MAX,
        ecn: false,
        hystart: true,
        // What is in flight grows beyond the window while a packet is missing: half of that would
        // fill the ingress queue anew after each timeout.
        reduction: Reduction::Window,
        rto: RtoConfig::linux(),
        payload_bytes: mtu.saturating_sub(DATA_HEADERS_LEN) as u32,
        header_bytes: DATA_HEADERS_LEN as u32,
        ..SenderConfig::rfc(variant)
    }
}

/// A receiver as the Linux kernel's: every second packet is acknowledged, others after 40 ms, with
/// the window that is left.
fn receiver_config() -> ReceiverConfig {
    ReceiverConfig {
        delayed_ack_packets: 2,
        delayed_ack_timeout: DELAYED_ACK,
        window_packets_max: WINDOW_PACKETS_MAX,
        tells_window: true,
        ..ReceiverConfig::ns2(true)
    }
}
