//! Load of TCP connections, as from the kernel with the lab's applications.
//!
//! Each application record fills a segment. Without a rate there is always a next record, and its
//! delay begins when it is first sent; with a rate, the delay begins when the record is due and so
//! includes the wait for TCP. It ends when all earlier records have arrived too. As in the lab,
//! connections are established before the load begins, or not at all.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_scenario::{
    Congestion, ETHERNET_MTU, Keep, Run, Scenario, Side, TcpPreset, TcpTable, TcpVariant,
};

use super::{MEETING_MAX, Measured, Seen, delays};
pub(super) use crate::agents::ip::flow_of;
use crate::agents::ip::{DATA_HEADERS_LEN, IpSink, IpSource};
use crate::agents::metered::{MeteredSink, MeteredSource, delay_histogram};
use crate::agents::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use crate::core::agent::NodeIndex;
use crate::core::network::{AgentIndex, Network};
use crate::plan::error::SimError;
use crate::plan::seen::FlowSeen;
use crate::plan::tcp::{seeded, tcp_ends};
use crate::tcp::{ReceiverSettings, SenderSettings};

/// With a rate, most unsent packets before the application blocks, about what a kernel's send
/// buffer grows to.
const BACKLOG_PACKETS_MAX: u64 = 4_096;
/// Longest time until all connections are established on a radio; as in the lab, later ones never
/// send.
const CONNECT_MAX: Duration = Duration::from_secs(5);

type Source = IpSource<MeteredSource>;
type Sink = IpSink<MeteredSink>;

/// A connection that carries data in one direction.
pub(super) struct Flow {
    from: NodeIndex,
    source: AgentIndex,
    sink: AgentIndex,
    payload_bytes: u32,
}

/// Adds a sender and a receiver to the hosts for each direction.
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
    // They are told later when to begin.
    let active = Active { from: Time::MAX, until: Time::MAX };
    let mut flows = Vec::new();
    for (&(from, to), flow) in ways.iter().zip(0..) {
        let (here, there) = FlowEnd::pair(flow, from, to);
        let source = TcpSource::new(here, active, supply, config)?;
        let source = MeteredSource::new(source, active, Time::MAX);
        let sink = TcpSink::new(there, header_bytes, receiver)?;
        let sink = MeteredSink::new(sink, &source, Time::MAX);
        let sink = sink.with_recent(keep.series.is_some());
        let scale = receiver.window_scale();
        let source = IpSource::new(source, here, payload_bytes, scale);
        let sink = IpSink::new(sink, there, payload_bytes, scale);
        let source = network.add_agent(from, flow, source)?;
        let sink = network.add_agent(to, flow, sink)?;
        flows.push(Flow { from, source, sink, payload_bytes });
    }
    Ok(flows)
}

/// Has all connections open, as far as they can.
pub(super) fn connect(flows: &[Flow], network: &mut Network) {
    // A line may be down or lose a whole burst; what is measured comes afterwards.
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

/// Has the applications write from now on.
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

/// Checks that the simulator has this TCP.
pub(super) fn check(scenario: &Scenario, run: &Run) -> Result<(), SimError> {
    settings(scenario, run, (ETHERNET_MTU, 0)).map(|_| ())
}

/// Settings of both ends, for packets of up to `mtu` bytes. Random choices of a sender follow
/// `draw`.
fn settings(
    scenario: &Scenario,
    run: &Run,
    (mtu, draw): (usize, u64),
) -> Result<(SenderSettings, ReceiverSettings), SimError> {
    let congestion = run.congestion.unwrap_or(Congestion::Cubic);
    let table =
        TcpTable { preset: run.tcp, variant: Some(variant(congestion)), ..TcpTable::default() };
    let payload_bytes = mtu.saturating_sub(DATA_HEADERS_LEN) as u32;
    let lens_bytes = (Some(payload_bytes), Some(DATA_HEADERS_LEN as u32));
    // Of the table's values only the congestion control may not fit the preset.
    let (sender, receiver) =
        tcp_ends(&table, lens_bytes).map_err(|error| SimError::Unsupported {
            field: "congestion",
            given: error.given,
            expected: match run.tcp {
                TcpPreset::Linux => "cubic, reno and bbr, and others with tcp = \"linux-2014\"",
                _ => "bbr with tcp = \"linux\" alone",
            },
        })?;
    let (seed, replication) = (scenario.seed, run.replication);
    let draws = StreamKey { seed, replication, entity: draw, purpose: "sender" };
    Ok((seeded(sender, draws.stream().next_u64(), 0), receiver))
}

/// The run's congestion control as a variant of plans.
fn variant(congestion: Congestion) -> TcpVariant {
    match congestion {
        Congestion::Cubic => TcpVariant::Cubic,
        Congestion::Reno => TcpVariant::Reno,
        Congestion::NewReno => TcpVariant::NewReno,
        Congestion::Sack => TcpVariant::Sack,
        Congestion::Vegas => TcpVariant::Vegas,
        Congestion::Tahoe => TcpVariant::Tahoe,
        Congestion::Bbr => TcpVariant::Bbr,
    }
}
