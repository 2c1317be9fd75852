//! A plan's network with its flows: from tables to agents, and from agents to measures.

use core::time::Duration;

use corridor_air::radio::MacConfig;
use corridor_base::{StreamKey, Time};
use corridor_proto::tcpnc::NcParams;
use corridor_proto::tcpnc::wire::{FEEDBACK_LEN, HEAD_LEN, RUN_LEN};
use corridor_relay::{RelayConfig, RelayStats};
use corridor_scenario::values::{replace, span};
use corridor_scenario::{
    AckKind, Air, Beyond, FlowTable, Keep, Measures, Network as NetworkPlan, OnAir, ReductionKind,
    Replication, RouteTable, RtoKind, SamplingKind, SourceKind, TcpNcTable, TcpPreset, TcpTable,
    TcpVariant, fairness, start_after,
};

use crate::agents::metered::{MeteredDatagrams, MeteredSink, MeteredSource, NANOS_PER_S};
use crate::agents::source::{Active, CbrConfig, CbrSource, FlowEnd, Supply, TcpSink, TcpSource};
use crate::agents::tcpnc::{NcSink, NcSource, nc_randomness};
use crate::aodv::{AodvConfig, AodvStats};
use crate::core::agent::NodeIndex;
use crate::core::network::{AirConfig, Network, NetworkStats, RadioSite, Topology};
use crate::plan::SimError;
use crate::plan::course::{self, Course, FlowSeen, Observed, QueueSeen};
use crate::plan::meter::{Counts, Meter, bps};
use crate::plan::routing;
use crate::tcp::linux::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
use crate::tcp::{
    Acks, ConfigError, ReceiverConfig, ReceiverSettings, Reduction, RtoEstimator, RttSampling,
    SenderConfig, SenderSettings, Variant, VegasConfig,
};

/// The semi-dynamic timeout over the first round-trip time (constrained-defaults-2012, III-C2).
const SEMI_DYNAMIC_FACTOR: u32 = 4;

/// A network that can be run: the tables, understood.
#[derive(Clone, Debug)]
pub struct Prepared {
    topology: Topology,
    relay: Option<RelayConfig>,
    routes: Vec<RouteTable>,
    /// Where nodes look for routes themselves while it runs.
    routing: Option<AodvConfig>,
    start_jitter: Duration,
    flows: Vec<Flow>,
    keep: Keep,
}

/// A flow, understood.
#[derive(Clone, Debug)]
struct Flow {
    ends: (FlowEnd, FlowEnd),
    active: Active,
    payload_bytes: u32,
    header_bytes: u32,
    transport: Transport,
}

#[derive(Clone, Debug)]
enum Transport {
    Tcp {
        supply: Supply,
        sender: Box<SenderSettings>,
        receiver: ReceiverSettings,
        /// The layers between TCP and the network, if there are any.
        nc: Option<NcParams>,
        rules: Rules,
    },
    Datagrams {
        interval: Duration,
    },
}

/// What of TCP is not the state machines' affair.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Timeouts in a row after which it gives up.
    timeouts_max: Option<u32>,
    /// Acknowledgements that wait at the node are updated.
    updates: bool,
    /// How long each end works on a packet.
    work: Duration,
}

impl Prepared {
    /// Understands a plan's network.
    ///
    /// # Errors
    /// [`SimError::Network`], [`SimError::Tcp`], [`SimError::PacketLen`], [`SimError::NoRoute`].
    pub fn new(plan: &NetworkPlan, seed: u64) -> Result<Self, SimError> {
        let pipes = plan.links.iter();
        let pipes = pipes.map(|link| (link.from as u32, link.to as u32, link.pipe.clone()));
        let pipes = pipes.collect();
        let radio = plan.radio.iter().map(|cell| RadioSite {
            nodes: (0..plan.nodes as NodeIndex).collect(),
            air: match &cell.air {
                Air::Ideal(config) => AirConfig::Ideal(config.clone()),
                Air::Mac(config) => {
                    let mut config = config.clone();
                    // Relays overhear.
                    let stations = config.radio.stations.iter_mut();
                    stations.for_each(|station| station.promiscuous |= plan.relay.is_some());
                    AirConfig::Mac(config)
                }
            },
        });
        let topology = Topology { nodes: plan.nodes, pipes, radios: radio.collect() };
        let flows = plan.flows.iter().enumerate();
        let flows = flows.map(|(index, table)| Flow::new(index, table, plan.duration));
        let flows = flows.collect::<Result<Vec<_>, _>>()?;
        if let Some(Air::Mac(config)) = plan.air() {
            let fit = |(index, flow): (usize, &Flow)| flow.check_fits(index, &config.mac);
            flows.iter().enumerate().try_for_each(fit)?;
        }
        let (mut routes, start_jitter) = (plan.routes.clone(), plan.start_jitter);
        let mut routing = None;
        if let Some(table) = &plan.routing {
            let ends: Vec<_> = plan.flows.iter().map(|flow| (flow.from, flow.to)).collect();
            let config = routing::config(table);
            routing::check_reachable(&topology, &ends, seed)?;
            if table.is_static {
                routes = routing::found_beforehand(&topology, config, &ends, seed)?;
            } else {
                routing = Some(config);
            }
        }
        let relay = plan.relay;
        let keep = Keep::default();
        let prepared = Prepared { topology, relay, routes, routing, start_jitter, flows, keep };
        // The network and the agents check what they are told when they are made.
        prepared.network(seed, 0, Time::ZERO)?;
        Ok(prepared)
    }

    /// The same, keeping more than measures.
    pub(crate) fn keeping(self, keep: Keep) -> Self {
        Prepared { keep, ..self }
    }

    /// The network with its agents, for somebody who wants to see it and not its measures.
    pub(crate) fn to_be_watched(&self, seed: u64, replication: u64) -> Result<Network, SimError> {
        Ok(self.network(seed, replication, Time::ZERO)?.0)
    }

    /// Where flows begin.
    pub(crate) fn sources(&self) -> Vec<NodeIndex> {
        self.flows.iter().map(|flow| flow.ends.0.node).collect()
    }

    /// The payload of each flow's packets.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = (u32, u32)> {
        self.flows.iter().map(|flow| (flow.ends.0.flow, flow.payload_bytes))
    }

    /// The network with its agents; what they see is measured from `begin` on.
    fn network(
        &self,
        seed: u64,
        replication: u64,
        begin: Time,
    ) -> Result<(Network, Vec<Meter>), SimError> {
        let mut network = Network::new(&self.topology, seed, replication)?;
        for (radio, site) in self.topology.radios.iter().enumerate() {
            for (place, config) in (0..site.nodes.len()).zip(core::iter::repeat(self.relay)) {
                config.map(|config| network.add_relay(radio, place, config)).transpose()?;
            }
        }
        for route in &self.routes {
            set_route(&mut network, route)?;
        }
        if let Some(config) = self.routing {
            network.set_routing(config, seed, replication)?;
        }
        let mut meters = Vec::new();
        for (index, flow) in self.flows.iter().enumerate() {
            let randomness = nc_randomness(seed, replication, index as u32);
            let flow = Flow { active: self.active(index, seed, replication), ..flow.clone() };
            meters.push(flow.attach(index, &mut network, (begin, self.keep), randomness)?);
        }
        Ok((network, meters))
    }

    /// When a flow is active in a replication.
    fn active(&self, index: usize, seed: u64, replication: u64) -> Active {
        let Active { from, until } = self.flows[index].active;
        Active { from: from + start_after(self.start_jitter, index, seed, replication), until }
    }
}

/// Lets packets for the end of a path go along it, and where the plan says so the way back.
fn set_route(network: &mut Network, route: &RouteTable) -> Result<(), SimError> {
    let path: Vec<NodeIndex> = route.path.iter().map(|&node| node as NodeIndex).collect();
    let (Some(&first), Some(&last)) = (path.first(), path.last()) else { return Ok(()) };
    for hop in path.windows(2) {
        network.set_route(hop[0], last, hop[1])?;
        if route.both_ways {
            network.set_route(hop[1], first, hop[0])?;
        }
    }
    Ok(())
}

impl Flow {
    fn new(index: usize, table: &FlowTable, duration: Duration) -> Result<Self, SimError> {
        let stop = table.stop_s.map_or(duration, span);
        let active = Active { from: Time::ZERO + span(table.start_s), until: Time::ZERO + stop };
        let ends = FlowEnd::pair(index as u32, table.from as NodeIndex, table.to as NodeIndex);
        if table.source.kind == SourceKind::Cbr {
            let payload_bytes = table.payload_bytes.unwrap_or(FlowTable::DATAGRAM_PAYLOAD_BYTES);
            let header_bytes = table.header_bytes.unwrap_or(FlowTable::DATAGRAM_HEADER_BYTES);
            let transport = Transport::Datagrams { interval: interval(table, payload_bytes) };
            return Ok(Flow { ends, active, payload_bytes, header_bytes, transport });
        }
        let tcp = table.tcp.clone().unwrap_or_default();
        let (sender, receiver) =
            tcp_ends(&tcp, table).map_err(|source| SimError::Tcp { flow: index, source })?;
        let refused = |source| SimError::Tcp { flow: index, source };
        sender.check().and_then(|()| receiver.check()).map_err(refused)?;
        let supply = match table.source.kind {
            SourceKind::Fixed => Supply::Packets(table.source.packets.unwrap_or(0)),
            SourceKind::Rate => {
                let interval = interval(table, sender.payload_bytes());
                Supply::Paced { interval, packets: u64::MAX }
            }
            SourceKind::Ftp | SourceKind::Cbr => Supply::Endless,
        };
        let (payload_bytes, header_bytes) = (sender.payload_bytes(), sender.header_bytes());
        let nc = table.tcp_nc.as_ref().map(TcpNcTable::params);
        let rules = Rules {
            timeouts_max: tcp.timeouts_max,
            updates: tcp.preset == TcpPreset::Constrained
                && matches!(receiver, ReceiverSettings::Classic(r) if r.acks == Acks::Cumulative),
            work: table.processing_ms.map_or(Duration::ZERO, |ms| span(ms / 1e3)),
        };
        let transport = Transport::Tcp { supply, sender: Box::new(sender), receiver, nc, rules };
        Ok(Flow { ends, active, payload_bytes, header_bytes, transport })
    }

    /// Refuses packets that no frame of the MAC has room for: all of them would be dropped.
    fn check_fits(&self, index: usize, mac: &MacConfig) -> Result<(), SimError> {
        let most = mac.payload_bytes_max();
        let mac = match mac {
            MacConfig::Dcf(_) => "dcf",
            MacConfig::Wpan(_) => "802.15.4",
        };
        let fits = |field, given: u32, beside: u32| {
            if given.saturating_add(beside) <= most {
                return Ok(());
            }
            Err(SimError::PacketLen { flow: index, field, given, beside, most, mac })
        };
        let Transport::Tcp { receiver, nc, .. } = &self.transport else {
            return fits("payload_bytes", self.payload_bytes, self.header_bytes);
        };
        let (coded, feedback) = nc.as_ref().map_or((0, 0), nc_bytes_max);
        fits("payload_bytes", self.payload_bytes, self.header_bytes.saturating_add(coded))?;
        fits("tcp.ack_bytes", receiver.ack_bytes_max(), feedback)
    }

    /// Puts the two ends of the flow on their nodes.
    fn attach(
        &self,
        index: usize,
        network: &mut Network,
        (begin, keep): (Time, Keep),
        randomness: u64,
    ) -> Result<Meter, SimError> {
        let (source_end, sink_end) = self.ends;
        let (flow, active, is_recorded) = (source_end.flow, self.active, keep.series.is_some());
        let refused = |source| SimError::Tcp { flow: index, source };
        match &self.transport {
            Transport::Tcp { supply, sender, receiver, nc, rules } => {
                let settings = seeded(**sender, randomness, flow);
                let source = TcpSource::new(source_end, active, *supply, settings);
                let source = source.map_err(refused)?.giving_up_after(rules.timeouts_max);
                let source = MeteredSource::new(source, active, begin).working(rules.work);
                let sink = TcpSink::new(sink_end, self.header_bytes, *receiver);
                let sink = sink.map_err(refused)?.updating(rules.updates);
                let sink = MeteredSink::new(sink, &source, begin).working(rules.work);
                let sink = sink.with_recent(is_recorded);
                let Some(params) = *nc else {
                    return Ok(Meter::Tcp {
                        source: network.add_agent(source_end.node, flow, source)?,
                        sink: network.add_agent(sink_end.node, flow, sink)?,
                    });
                };
                let refused = |source| SimError::TcpNc { flow: index, source };
                let segment_bytes = sender.data_len_bytes();
                let source = NcSource::new(source, source_end, segment_bytes, params, randomness);
                let sizes = (segment_bytes, receiver.ack_bytes());
                let sink = NcSink::new(sink, sink_end, sizes, params);
                Ok(Meter::TcpNc {
                    source: network.add_agent(source_end.node, flow, source.map_err(refused)?)?,
                    sink: network.add_agent(sink_end.node, flow, sink.map_err(refused)?)?,
                })
            }
            Transport::Datagrams { interval } => {
                let len_bytes = self.payload_bytes + self.header_bytes;
                let config = CbrConfig { len_bytes, interval: *interval, active };
                let source = CbrSource::new(source_end, config);
                let sink = MeteredDatagrams::new(self.payload_bytes, begin);
                let sink = sink.with_recent(is_recorded);
                Ok(Meter::Datagrams {
                    source: network.add_agent(source_end.node, flow, source)?,
                    sink: network.add_agent(sink_end.node, flow, sink)?,
                })
            }
        }
    }
}

/// Runs a network, and measures from the end of the warm-up on.
///
/// # Errors
/// As [`Prepared::new`].
pub fn run(
    prepared: Prepared,
    plan: &NetworkPlan,
    seed: u64,
    replication: u64,
) -> Result<Replication, SimError> {
    let [begin, end] = [plan.warm_up, plan.duration].map(|span| Time::ZERO + span);
    let (mut network, meters) = prepared.network(seed, replication, begin)?;
    let observed = Subjects { meters: &meters, plan };
    let series = prepared.keep.series;
    let mut course = series.map(|interval| Course::new(interval, &network, &observed));
    let counts = |network: &Network| -> Vec<Counts> {
        meters.iter().map(|meter| meter.counts(network)).collect()
    };
    // Without a warm-up what happens in the first instant counts.
    if begin > Time::ZERO {
        course::advance(&mut network, begin, &mut course, &observed, |_| false);
    }
    let totals_before = Totals::of(&network, plan.nodes);
    let kept_before = prepared.keep.totals.then(|| course::Totals::of(&mut network, &observed));
    let counts_before = counts(&network);
    let end = if plan.until_done {
        let is_over = |network: &Network| meters.iter().all(|meter| meter.is_over(network));
        course::advance(&mut network, end, &mut course, &observed, is_over);
        // Something is measured in any case.
        network.now().max(begin + Duration::from_nanos(1))
    } else {
        course::advance(&mut network, end, &mut course, &observed, |_| false);
        end
    };
    let course = course.map(|course| course.finish(&network, &observed));
    let mut tables = course.unwrap_or_default();
    if prepared.keep.delays {
        for (flow, meter) in meters.iter().enumerate() {
            meter.delays(&network).inspect(|of| tables.add_delays(flow, of, NANOS_PER_S));
        }
    }
    if let Some(before) = kept_before {
        before.add(&network, &observed, &mut tables);
    }
    let mut measures = Measures::default();
    let measured_s = (end - begin).as_secs_f64();
    Totals::of(&network, plan.nodes).since(&totals_before).set(&mut measures, measured_s);
    let (mut payload_bytes, mut received_bytes) = (0, 0);
    let mut goodputs = Vec::new();
    for (index, (after, before)) in counts(&network).iter().zip(&counts_before).enumerate() {
        let counts = after.since(before);
        payload_bytes += counts.payload_bytes;
        received_bytes += counts.received_bytes;
        let active = prepared.active(index, seed, replication);
        let active_s = (active.until.min(end) - active.from.max(begin).min(end)).as_secs_f64();
        goodputs.push(bps(counts.payload_bytes, active_s));
        counts.set(&mut measures, index, active_s);
        meters[index].set(&mut measures, index, &network);
        if plan.routing.is_some() {
            routing::set_flow(&mut measures, index, &mut network, prepared.flows[index].ends.0);
        }
    }
    measures.set("goodput_bps", bps(payload_bytes, measured_s));
    measures.set("throughput_bps", bps(received_bytes, measured_s));
    measures.set("fairness_ratio", fairness(&goodputs));
    if prepared.keep.totals {
        (0..meters.len()).for_each(|flow| tables.add_flow(flow, &measures));
    }
    Ok(Replication { measures, tables })
}

/// What is looked at in a plan's network: its flows, and the queues of its links and radios.
struct Subjects<'a> {
    meters: &'a [Meter],
    plan: &'a NetworkPlan,
}

impl Observed for Subjects<'_> {
    fn flows(&self, network: &Network) -> Vec<FlowSeen> {
        self.meters.iter().map(|meter| meter.seen(network)).collect()
    }

    fn queues(&self, network: &Network) -> Vec<QueueSeen> {
        let pipes = self.plan.links.iter().filter_map(|link| {
            let (from, to) = (link.from as NodeIndex, link.to as NodeIndex);
            let interface = network.pipe_interface(from, to)?;
            Some(QueueSeen { from, to: Some(to), interface })
        });
        let places = self.nodes().into_iter().enumerate().map(|(place, node)| QueueSeen {
            from: node,
            to: None,
            interface: network.interface(0, place),
        });
        pipes.chain(places).collect()
    }

    fn nodes(&self) -> Vec<NodeIndex> {
        let places = if self.plan.radio.is_some() { self.plan.nodes } else { 0 };
        (0..places as NodeIndex).collect()
    }
}

/// Counters of the whole network.
struct Totals {
    refused: u64,
    erased: u64,
    packet_hops: u64,
    events: u64,
    corrupted: u64,
    on_air: Option<OnAir>,
    relays: Option<RelayStats>,
    routers: Option<AodvStats>,
}

/// Counters of all relays of a network.
fn of_relays(network: &Network) -> Option<RelayStats> {
    network.relays_stats().reduce(|sum, stats| sum.with(stats, u64::saturating_add))
}

fn set_relays(stats: &RelayStats, corrupted: u64, measures: &mut Measures) {
    measures.set("relay_frames_plain", stats.plain_sent);
    measures.set("relay_frames_coded", stats.coded_sent);
    measures.set("relay_packets_forwarded", stats.forwarded);
    measures.set("relay_packets_recoded", stats.recoded);
    measures.set("relay_packets_decoded", stats.decoded);
    measures.set("relay_decode_failures", stats.undecodable + stats.decode_mismatches + corrupted);
    measures.set("relay_queue_drops", stats.queue_drops);
    measures.set("relay_switched_off", stats.switched_off);
    measures.set("relay_congested_s", stats.congested_s);
}

/// Counters of all places of a network's radio.
fn on_air(network: &Network) -> Option<OnAir> {
    if let Some(medium) = network.medium(0) {
        return Some(OnAir::of_stations((0..medium.stations()).map(|place| medium.stats(place))));
    }
    let mac = network.mac(0)?;
    Some(OnAir::of_macs((0..mac.stations()).map(|place| mac.stats(place))))
}

impl Totals {
    fn of(network: &Network, nodes: usize) -> Self {
        let NetworkStats { refused, erased, packet_hops, events, corrupted, .. } = *network.stats();
        let (on_air, relays) = (on_air(network), of_relays(network));
        let routers = routing::of_routers(network, nodes);
        Totals { refused, erased, packet_hops, events, corrupted, on_air, relays, routers }
    }

    fn since(&self, before: &Totals) -> Totals {
        Totals {
            refused: self.refused - before.refused,
            erased: self.erased - before.erased,
            packet_hops: self.packet_hops - before.packet_hops,
            events: self.events - before.events,
            corrupted: self.corrupted - before.corrupted,
            on_air: self.on_air.zip(before.on_air).map(|(now, before)| now.since(before)),
            relays: self
                .relays
                .zip(before.relays)
                .map(|(now, before)| now.with(before, u64::saturating_sub)),
            routers: self
                .routers
                .zip(before.routers)
                .map(|(now, before)| now.with(before, u64::saturating_sub)),
        }
    }

    fn set(&self, measures: &mut Measures, measured_s: f64) {
        if let Some(on_air) = self.on_air {
            on_air.set(measures, measured_s);
        }
        if let Some(relays) = &self.relays {
            set_relays(relays, self.corrupted, measures);
        }
        if let Some(routers) = &self.routers {
            routing::set(measures, routers);
        }
        measures.set("packets_dropped", self.refused);
        measures.set("packets_erased", self.erased);
        measures.set("packet_hops", self.packet_hops);
        measures.set("events", self.events);
    }
}

/// Bytes that TCP/NC adds to a segment at most, and to an acknowledgement.
fn nc_bytes_max(params: &NcParams) -> (u32, u32) {
    // Segments are of one length: every run but the last is as long as it can be.
    let runs = usize::from(params.buffer_segments).div_ceil(usize::from(u8::MAX));
    let feedback = if params.redundancy.needs_feedback() { FEEDBACK_LEN } else { 0 };
    ((HEAD_LEN + runs * RUN_LEN) as u32, feedback as u32)
}

/// From one packet to the next at the source's rate of data.
fn interval(table: &FlowTable, payload_bytes: u32) -> Duration {
    let bits = 8.0 * f64::from(payload_bytes);
    span(bits / table.source.rate_bps.unwrap_or(1.0)).max(Duration::from_nanos(1))
}

/// Both ends of a preset, with what the table says otherwise.
pub(super) fn tcp_ends(
    tcp: &TcpTable,
    flow: &FlowTable,
) -> Result<(SenderSettings, ReceiverSettings), ConfigError> {
    let preset = match tcp.preset {
        TcpPreset::Linux => {
            let sender = linux_sender(tcp, flow)?;
            return Ok((sender.into(), linux_receiver(tcp, &sender).into()));
        }
        TcpPreset::Ns2 => SenderConfig::ns2,
        TcpPreset::Constrained => SenderConfig::constrained,
    };
    let sender = sender(preset, tcp, flow)?;
    Ok((sender.into(), receiver(tcp, &sender).into()))
}

/// The kernel's sender.
fn linux_sender(tcp: &TcpTable, flow: &FlowTable) -> Result<LinuxSenderConfig, ConfigError> {
    let variant = tcp.variant.unwrap_or(TcpVariant::Cubic);
    let congestion = match variant {
        TcpVariant::Cubic => Congestion::Cubic,
        TcpVariant::Reno | TcpVariant::NewReno => Congestion::Reno,
        TcpVariant::Bbr => Congestion::Bbr,
        TcpVariant::Tahoe | TcpVariant::Sack | TcpVariant::Vegas | TcpVariant::SlowStart => {
            let given = format!("{variant:?}").to_lowercase();
            let expected = "cubic, reno or bbr with preset = \"linux\"".to_owned();
            return Err(ConfigError { field: "variant", given, expected });
        }
    };
    refuse_others(tcp)?;
    let mut config = LinuxSenderConfig::new(congestion);
    replace(&mut config.window_packets_max, tcp.window_packets_max);
    replace(&mut config.initial_window_packets, tcp.initial_window_packets);
    replace(&mut config.ecn, tcp.ecn);
    replace(&mut config.pacing, tcp.pacing);
    replace(&mut config.hystart, tcp.hystart);
    replace(&mut config.payload_bytes, flow.payload_bytes);
    replace(&mut config.header_bytes, flow.header_bytes);
    Ok(config)
}

/// What cannot be told to a kernel.
fn refuse_others(tcp: &TcpTable) -> Result<(), ConfigError> {
    let others = [
        ("initial_ssthresh_packets", tcp.initial_ssthresh_packets.is_some()),
        ("receiver", tcp.receiver.is_some()),
        ("delayed_ack_packets", tcp.delayed_ack_packets.is_some()),
        ("acks", tcp.acks.is_some()),
        ("sack", tcp.sack.is_some()),
        ("rto_initial_s", tcp.rto_initial_s.is_some()),
        ("rto_min_s", tcp.rto_min_s.is_some()),
        ("rto_max_s", tcp.rto_max_s.is_some()),
        ("rto_granularity_s", tcp.rto_granularity_s.is_some()),
        ("limited_transmit", tcp.limited_transmit.is_some()),
        ("careful", tcp.careful.is_some()),
        ("reduction", tcp.reduction.is_some()),
        ("slow_start_restart", tcp.slow_start_restart.is_some()),
        ("rtt_sampling", tcp.rtt_sampling.is_some()),
    ];
    match others.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some(&(field, _)) => {
            let expected = "nothing with preset = \"linux\"".to_owned();
            Err(ConfigError { field, given: "set".to_owned(), expected })
        }
    }
}

/// The kernel's receiver for this sender.
fn linux_receiver(tcp: &TcpTable, sender: &LinuxSenderConfig) -> LinuxReceiverConfig {
    let mut config = LinuxReceiverConfig::new(sender.payload_bytes);
    config.ack_bytes = sender.header_bytes.max(1);
    replace(&mut config.window_packets_max, tcp.window_packets_max);
    replace(&mut config.delayed_ack_timeout, tcp.delayed_ack_timeout_ms.map(|ms| span(ms / 1e3)));
    replace(&mut config.ack_bytes, tcp.ack_bytes);
    config
}

/// The same settings with a seed of the replication's, for what draws.
fn seeded(settings: SenderSettings, seed: u64, flow: u32) -> SenderSettings {
    match settings {
        SenderSettings::Linux(config) => LinuxSenderConfig { seed, ..config }.into(),
        SenderSettings::Classic(mut config) => {
            if let RtoEstimator::Coap { key } = &mut config.rto.estimator {
                (key.seed, key.entity) = (seed, u64::from(flow));
            }
            config.into()
        }
    }
}

/// The sender of a preset, with what the table says otherwise.
fn sender(
    preset: fn(Variant) -> SenderConfig,
    tcp: &TcpTable,
    flow: &FlowTable,
) -> Result<SenderConfig, ConfigError> {
    let variant = match tcp.variant.unwrap_or(TcpVariant::NewReno) {
        TcpVariant::Tahoe => Variant::Tahoe,
        TcpVariant::Reno => Variant::Reno,
        TcpVariant::NewReno => Variant::NewReno,
        TcpVariant::Sack => Variant::Sack,
        TcpVariant::Cubic => Variant::Cubic,
        TcpVariant::Vegas => Variant::Vegas(VegasConfig::default()),
        TcpVariant::SlowStart => Variant::SlowStart,
        TcpVariant::Bbr => {
            let (field, given) = ("variant", "bbr".to_owned());
            let expected = "preset = \"linux\" for it".to_owned();
            return Err(ConfigError { field, given, expected });
        }
    };
    let mut config = preset(variant);
    replace(&mut config.window_packets_max, tcp.window_packets_max);
    replace(&mut config.initial_window_packets, tcp.initial_window_packets);
    replace(&mut config.initial_ssthresh_packets, tcp.initial_ssthresh_packets.map(Some));
    replace(&mut config.limited_transmit, tcp.limited_transmit);
    replace(&mut config.careful, tcp.careful);
    replace(&mut config.slow_start_restart, tcp.slow_start_restart);
    replace(&mut config.ecn, tcp.ecn);
    let reduction = tcp.reduction.map(|kind| match kind {
        ReductionKind::Window => Reduction::Window,
        ReductionKind::Flight => Reduction::Flight,
    });
    replace(&mut config.reduction, reduction);
    let sampling = tcp.rtt_sampling.map(|kind| match kind {
        SamplingKind::OnePacket => RttSampling::OnePacket,
        SamplingKind::Timestamps => RttSampling::Timestamps,
    });
    replace(&mut config.rtt_sampling, sampling);
    match tcp.rto {
        None | Some(RtoKind::Rfc6298) => {}
        Some(RtoKind::Coap) => {
            // Named by its flow when it is attached.
            let key = StreamKey { seed: 0, replication: 0, entity: 0, purpose: "rto" };
            config.rto.estimator = RtoEstimator::Coap { key };
        }
        Some(RtoKind::SemiDynamic) => {
            config.rto.estimator = RtoEstimator::FirstSample { k: SEMI_DYNAMIC_FACTOR };
            // "During the session, the value of RTO does not change."
            config.rto.backoff = false;
        }
    }
    replace(&mut config.rto.initial, tcp.rto_initial_s.map(span));
    replace(&mut config.rto.min, tcp.rto_min_s.map(span));
    replace(&mut config.rto.max, tcp.rto_max_s.map(span));
    replace(&mut config.rto.granularity, tcp.rto_granularity_s.map(span));
    replace(&mut config.payload_bytes, flow.payload_bytes);
    replace(&mut config.header_bytes, flow.header_bytes);
    Ok(config)
}

/// The receiver for this sender.
fn receiver(tcp: &TcpTable, sender: &SenderConfig) -> ReceiverConfig {
    let uses_sack = tcp.variant.is_some_and(TcpVariant::uses_sack);
    let mut config = ReceiverConfig::ns2(tcp.sack.unwrap_or(uses_sack));
    config.window_packets_max = sender.window_packets_max;
    replace(&mut config.keeps_out_of_order, tcp.receiver.map(|beyond| beyond == Beyond::Keep));
    replace(&mut config.delayed_ack_packets, tcp.delayed_ack_packets);
    replace(&mut config.delayed_ack_timeout, tcp.delayed_ack_timeout_ms.map(|ms| span(ms / 1e3)));
    replace(&mut config.ack_bytes, tcp.ack_bytes);
    let acks = tcp.acks.map(|kind| match kind {
        AckKind::Cumulative => Acks::Cumulative,
        AckKind::Positive => Acks::Positive,
    });
    replace(&mut config.acks, acks);
    config
}
