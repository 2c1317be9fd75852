//! A plan's network and flows: from tables to agents, and from agents to metrics.

#[cfg(test)]
mod helped_tests;

use core::time::Duration;
use std::sync::Arc;

use corridor_air::radio::MacConfig;
use corridor_base::{StreamKey, Time};
use corridor_proto::tcpnc::NcParams;
use corridor_proto::tcpnc::wire::{FEEDBACK_LEN, HEAD_LEN, RUN_LEN};
use corridor_relay::RelayConfig;
use corridor_scenario::values::span;
use corridor_scenario::{
    Air, FlowTable, Keep, Measures, Network as NetworkPlan, Replication, RouteTable, SourceKind,
    TcpNcTable, TcpPreset, fairness, start_after,
};

use crate::agents::ip::{DATA_HEADERS_LEN, IpSink, IpSource};
use crate::agents::metered::{MeteredDatagrams, MeteredSink, MeteredSource, NANOS_PER_S};
use crate::agents::source::{
    Active, CbrConfig, CbrSource, FlowEnd, Pattern, PatternSource, Supply, TcpSink, TcpSource,
};
use crate::agents::tcpnc::{NcSink, NcSource, nc_randomness};
use crate::agents::tunnel_end::{IpDatagrams, TunnelEnd};
use crate::aodv::AodvConfig;
use crate::core::agent::{BROADCAST, NodeIndex};
use crate::core::network::{AgentIndex, AirConfig, Network, RadioSite, Topology};
use crate::plan::SimError;
use crate::plan::course::{self, Course};
use crate::plan::meter::{Counts, Meter, bps};
use crate::plan::observed::{Subjects, Totals};
use crate::plan::routing::{self, Beforehand};
use crate::plan::tcp::{seeded, tcp_ends};
use crate::plan::tunnels::Tunnel;
use crate::tcp::{Acks, ReceiverSettings, SenderSettings};

/// A network that is ready to run: its tables checked and resolved.
#[derive(Clone, Debug)]
pub struct Prepared {
    topology: Topology,
    relay: Option<RelayConfig>,
    routes: Vec<RouteTable>,
    /// Settings of route discovery, if nodes discover routes during the run.
    routing: Option<AodvConfig>,
    tunnels: Vec<Tunnel>,
    start_jitter: Duration,
    flows: Vec<Flow>,
    keep: Keep,
}

/// A flow, checked and resolved.
#[derive(Clone, Debug)]
struct Flow {
    ends: (FlowEnd, FlowEnd),
    active: Active,
    payload_bytes: u32,
    header_bytes: u32,
    /// Most links that its packets may cross.
    links_max: Option<u16>,
    /// The tunnel that it uses.
    tunnel: Option<usize>,
    transport: Transport,
}

#[derive(Clone, Debug)]
enum Transport {
    Tcp {
        supply: Supply,
        sender: Box<SenderSettings>,
        receiver: ReceiverSettings,
        /// The TCP/NC layers between TCP and the network, if there are any.
        nc: Option<NcParams>,
        rules: Rules,
    },
    Datagrams(Datagrams),
}

/// When datagrams are sent.
#[derive(Clone, Debug)]
enum Datagrams {
    Constant(Duration),
    /// At exponential intervals with this mean.
    Poisson(Duration),
    /// At this interval, in on periods and silences of these mean lengths.
    OnOff(Duration, [Duration; 2]),
    Listed(Arc<[(Duration, u32)]>),
}

/// Settings of TCP that lie outside its state machines.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Timeouts in a row after which it gives up.
    timeouts_max: Option<u32>,
    /// Whether acknowledgments are updated while they wait at the node.
    updates: bool,
    /// Processing time of each packet at each end.
    work: Duration,
}

impl Prepared {
    /// Checks and resolves a plan's network.
    ///
    /// # Errors
    /// [`SimError::Network`], [`SimError::Tcp`], [`SimError::PacketLen`], [`SimError::NoRoute`].
    pub fn new(plan: &NetworkPlan, seed: u64) -> Result<Self, SimError> {
        Prepared::knowing(plan, seed, &Beforehand::default())
    }

    /// As [`new`](Self::new), with the routes that were found beforehand for similar networks.
    pub(crate) fn knowing(
        plan: &NetworkPlan,
        seed: u64,
        known: &Beforehand,
    ) -> Result<Self, SimError> {
        let overhears = |node: NodeIndex| {
            let helped = plan.tunnels.iter().filter(|tunnel| tunnel.helper.is_some());
            let mut nodes =
                helped.flat_map(|tunnel| tunnel.between.into_iter().chain(tunnel.helper));
            plan.relay.is_some() || nodes.any(|other| other as NodeIndex == node)
        };
        let pipes = plan.links.iter();
        let pipes = pipes.map(|link| (link.from as u32, link.to as u32, link.pipe.clone()));
        let pipes = pipes.collect();
        let radios = plan.radios.iter().map(|cell| RadioSite {
            nodes: cell.nodes.iter().map(|&node| node as NodeIndex).collect(),
            air: match &cell.air {
                Air::Ideal(config) => AirConfig::Ideal(config.clone()),
                Air::Mac(config) => {
                    let mut config = config.clone();
                    let stations = config.radio.stations.iter_mut().zip(&cell.nodes);
                    stations.for_each(|(station, &node)| {
                        station.promiscuous |= overhears(node as NodeIndex);
                    });
                    AirConfig::Mac(config)
                }
            },
        });
        let topology = Topology { nodes: plan.nodes, pipes, radios: radios.collect() };
        let tunnels = Tunnel::of(plan, &topology, seed)?;
        let flows = (0..plan.flows.len()).map(|index| Flow::new(index, plan, &tunnels));
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
                routes = known.routes(&topology, config, &ends, seed)?;
            } else {
                routing = Some(config);
            }
        }
        let relay = plan.relay;
        let keep = Keep::default();
        let prepared =
            Prepared { topology, relay, routes, routing, tunnels, start_jitter, flows, keep };
        // Building the network and the agents once checks their settings.
        prepared.network(seed, 0, Time::ZERO)?;
        Ok(prepared)
    }

    /// Also keeps more than metrics.
    pub(crate) fn keeping(self, keep: Keep) -> Self {
        Prepared { keep, ..self }
    }

    /// The network with its agents, for a watcher rather than for metrics.
    pub(crate) fn to_be_watched(&self, seed: u64, replication: u64) -> Result<Network, SimError> {
        Ok(self.network(seed, replication, Time::ZERO)?.network)
    }

    /// The nodes where flows begin.
    pub(crate) fn sources(&self) -> Vec<NodeIndex> {
        self.flows.iter().map(|flow| flow.ends.0.node).collect()
    }

    /// Payload bytes of each flow's packets.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = (u32, u32)> {
        self.flows.iter().map(|flow| (flow.ends.0.flow, flow.payload_bytes))
    }

    /// The network with its agents, whose metrics begin at `begin`.
    fn network(&self, seed: u64, replication: u64, begin: Time) -> Result<Running, SimError> {
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
        let ends = self.tunnels.iter().map(|tunnel| tunnel.ends(seed, replication));
        let mut ends = ends.collect::<Result<Vec<_>, _>>()?;
        let mut meters = Vec::new();
        for (index, flow) in self.flows.iter().enumerate() {
            let flow = Flow { active: self.active(index, seed, replication), ..flow.clone() };
            let place = Place { index, begin, keep: self.keep, seed, replication };
            meters.push(match flow.tunnel {
                None => Some(flow.attach(&place, &mut network)?),
                Some(tunnel) => {
                    flow.attach_behind(&place, &self.tunnels[tunnel], &mut ends[tunnel])?;
                    None
                }
            });
        }
        let mut placed = Vec::new();
        for (tunnel, ends) in self.tunnels.iter().zip(ends) {
            placed.push(tunnel.place(ends, &mut network)?);
        }
        let meters = self.flows.iter().zip(meters).map(|(flow, meter)| {
            meter.unwrap_or_else(|| flow.meter_behind(&self.tunnels, &placed))
        });
        let meters = meters.collect();
        Ok(Running { network, meters, tunnel_ends: placed.concat() })
    }

    /// When a flow is active in a replication.
    fn active(&self, index: usize, seed: u64, replication: u64) -> Active {
        let Active { from, until } = self.flows[index].active;
        Active { from: from + start_after(self.start_jitter, index, seed, replication), until }
    }
}

/// A network with its agents, and their places in it.
struct Running {
    network: Network,
    meters: Vec<Meter>,
    tunnel_ends: Vec<AgentIndex>,
}

/// The replication and flow of agents, and when their metrics begin.
struct Place {
    index: usize,
    begin: Time,
    keep: Keep,
    seed: u64,
    replication: u64,
}

/// Sets the route of packets for the end of a path, and the way back where the plan has one.
pub(super) fn set_route(network: &mut Network, route: &RouteTable) -> Result<(), SimError> {
    let path: Vec<NodeIndex> = route.path.iter().map(|&node| node as NodeIndex).collect();
    let (Some(&first), Some(&last)) = (path.first(), path.last()) else { return Ok(()) };
    for (at, hop) in path.windows(2).enumerate() {
        let radio = route.radios.as_ref().and_then(|radios| radios.get(at).copied());
        network.set_route_by(hop[0], last, (hop[1], radio))?;
        if route.both_ways {
            network.set_route_by(hop[1], first, (hop[0], radio))?;
        }
    }
    Ok(())
}

impl Flow {
    fn new(index: usize, plan: &NetworkPlan, tunnels: &[Tunnel]) -> Result<Self, SimError> {
        let table = &plan.flows[index];
        let stop = table.stop_s.map_or(plan.duration, span);
        let active = Active { from: Time::ZERO + span(table.start_s), until: Time::ZERO + stop };
        let ends = FlowEnd::pair(index as u32, table.from as NodeIndex, table.to as NodeIndex);
        let (links_max, tunnel) = (table.links_max, table.tunnel);
        if table.source.kind.sends_datagrams() {
            let payload_bytes = table.payload_bytes.unwrap_or(FlowTable::DATAGRAM_PAYLOAD_BYTES);
            let header_bytes = table.header_bytes.unwrap_or(FlowTable::DATAGRAM_HEADER_BYTES);
            let datagrams = datagrams(table, payload_bytes, &plan.schedules[index]);
            let longest = match &datagrams {
                Datagrams::Listed(list) => list.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0),
                _ => payload_bytes,
            };
            if let Some(tunnel) = tunnel {
                check_behind(index, (longest, header_bytes), &tunnels[tunnel])?;
            }
            let (mut source, sink) = ends;
            if table.broadcast {
                source.peer = BROADCAST;
            }
            let (ends, transport) = ((source, sink), Transport::Datagrams(datagrams));
            let payload_bytes = longest;
            return Ok(Flow {
                ends,
                active,
                payload_bytes,
                header_bytes,
                links_max,
                tunnel,
                transport,
            });
        }
        let table = &match tunnel {
            None => table.clone(),
            Some(tunnel) => behind(table, &tunnels[tunnel]),
        };
        let tcp = table.tcp.clone().unwrap_or_default();
        let (sender, receiver) = tcp_ends(&tcp, (table.payload_bytes, table.header_bytes))
            .map_err(|source| SimError::Tcp { flow: index, source })?;
        let refused = |source| SimError::Tcp { flow: index, source };
        sender.check().and_then(|()| receiver.check()).map_err(refused)?;
        let supply = match table.source.kind {
            SourceKind::Fixed => Supply::Packets(table.source.packets.unwrap_or(0)),
            SourceKind::Rate => {
                let interval = interval(table, sender.payload_bytes());
                Supply::Paced { interval, packets: u64::MAX }
            }
            _ => Supply::Endless,
        };
        let (payload_bytes, header_bytes) = (sender.payload_bytes(), sender.header_bytes());
        if let Some(tunnel) = tunnel {
            check_behind(index, (payload_bytes, header_bytes), &tunnels[tunnel])?;
        }
        let nc = table.tcp_nc.as_ref().map(TcpNcTable::params);
        let rules = Rules {
            timeouts_max: tcp.timeouts_max,
            updates: tcp.preset == TcpPreset::Constrained
                && matches!(receiver, ReceiverSettings::Classic(r) if r.acks == Acks::Cumulative),
            work: table.processing_ms.map_or(Duration::ZERO, |ms| span(ms / 1e3)),
        };
        let transport = Transport::Tcp { supply, sender: Box::new(sender), receiver, nc, rules };
        Ok(Flow { ends, active, payload_bytes, header_bytes, links_max, tunnel, transport })
    }

    /// Rejects packets longer than the MAC's frames: all of them would be dropped.
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

    /// Adds both ends of the flow to their nodes.
    fn attach(&self, place: &Place, network: &mut Network) -> Result<Meter, SimError> {
        let (here, there, flow) = (self.ends.0.node, self.ends.1.node, self.ends.0.flow);
        let meter = match &self.transport {
            Transport::Tcp { sender, receiver, nc: Some(params), .. } => {
                let (source, sink) = self.tcp_agents(place, self.active)?;
                let refused = |source| SimError::TcpNc { flow: place.index, source };
                let segment_bytes = sender.data_len_bytes();
                let randomness = nc_randomness(place.seed, place.replication, flow);
                let source = NcSource::new(source, self.ends.0, segment_bytes, *params, randomness);
                let sizes = (segment_bytes, receiver.ack_bytes());
                let sink = NcSink::new(sink, self.ends.1, sizes, *params);
                Meter::TcpNc {
                    source: network.add_agent(here, flow, source.map_err(refused)?)?,
                    sink: network.add_agent(there, flow, sink.map_err(refused)?)?,
                }
            }
            Transport::Tcp { .. } => {
                let (source, sink) = self.tcp_agents(place, self.active)?;
                Meter::Tcp {
                    source: network.add_agent(here, flow, source)?,
                    sink: network.add_agent(there, flow, sink)?,
                }
            }
            Transport::Datagrams(datagrams) => {
                let source = match self.datagram_source(place, datagrams) {
                    Source::Constant(source) => network.add_agent(here, flow, source)?,
                    Source::Pattern(source) => network.add_agent(here, flow, *source)?,
                };
                let sink = network.add_agent(there, flow, self.datagram_sink(place))?;
                Meter::Datagrams { source, sink }
            }
        };
        if let Some(links_max) = self.links_max {
            let (Meter::Tcp { source, sink }
            | Meter::TcpNc { source, sink }
            | Meter::Datagrams { source, sink }
            | Meter::Tunnelled { source, sink, .. }) = meter;
            network.limit_links(source, links_max);
            network.limit_links(sink, links_max);
        }
        Ok(meter)
    }

    /// Adds both ends of the flow behind those of a tunnel. TCP connects when the flow begins.
    fn attach_behind(
        &self,
        place: &Place,
        tunnel: &Tunnel,
        ends: &mut [TunnelEnd],
    ) -> Result<(), SimError> {
        let (source_end, sink_end) = self.ends;
        let flow = source_end.flow;
        let (here, there) = (tunnel.side(source_end.node), tunnel.side(sink_end.node));
        match &self.transport {
            Transport::Tcp { receiver, .. } => {
                let scale = receiver.window_scale();
                let waiting = Active { from: Time::MAX, until: self.active.until };
                let (source, sink) = self.tcp_agents(place, waiting)?;
                let source = IpSource::new(source, source_end, self.payload_bytes, scale);
                ends[here].add(flow, source.connecting_at(self.active.from));
                let sink = IpSink::new(sink, sink_end, self.payload_bytes, scale);
                ends[there].add(flow, sink);
            }
            Transport::Datagrams(datagrams) => {
                match self.datagram_source(place, datagrams) {
                    Source::Constant(it) => ends[here].add(flow, IpDatagrams::new(it, source_end)),
                    Source::Pattern(it) => ends[here].add(flow, IpDatagrams::new(*it, source_end)),
                }
                let sink = self.datagram_sink(place);
                ends[there].add(flow, IpDatagrams::new(sink, sink_end));
            }
        }
        Ok(())
    }

    /// The meter of the agents behind a tunnel.
    fn meter_behind(&self, tunnels: &[Tunnel], placed: &[Vec<AgentIndex>]) -> Meter {
        let tunnel = self.tunnel.unwrap_or_default();
        let at = |end: FlowEnd| placed[tunnel][tunnels[tunnel].side(end.node)];
        Meter::Tunnelled {
            source: at(self.ends.0),
            sink: at(self.ends.1),
            flow: self.ends.0.flow,
            is_tcp: matches!(self.transport, Transport::Tcp { .. }),
        }
    }

    /// Both TCP endpoints; the source sends while `sends` says so.
    fn tcp_agents(
        &self,
        place: &Place,
        sends: Active,
    ) -> Result<(MeteredSource, MeteredSink), SimError> {
        let (source_end, sink_end) = self.ends;
        let refused = |source| SimError::Tcp { flow: place.index, source };
        let Transport::Tcp { supply, sender, receiver, rules, .. } = &self.transport else {
            unreachable!("asked for flows of TCP alone");
        };
        let randomness = nc_randomness(place.seed, place.replication, source_end.flow);
        let settings = seeded(**sender, randomness, source_end.flow);
        let source = TcpSource::new(source_end, sends, *supply, settings);
        let source = source.map_err(refused)?.giving_up_after(rules.timeouts_max);
        let source = MeteredSource::new(source, self.active, place.begin).working(rules.work);
        let sink = TcpSink::new(sink_end, self.header_bytes, *receiver);
        let sink = sink.map_err(refused)?.updating(rules.updates);
        let sink = MeteredSink::new(sink, &source, place.begin).working(rules.work);
        Ok((source, sink.with_recent(place.keep.series.is_some())))
    }

    fn datagram_source(&self, place: &Place, datagrams: &Datagrams) -> Source {
        let (end, active) = (self.ends.0, self.active);
        let Place { seed, replication, .. } = *place;
        let draws =
            || StreamKey { seed, replication, entity: end.flow.into(), purpose: "source" }.stream();
        let pattern = match datagrams {
            &Datagrams::Constant(interval) => {
                let len_bytes = self.payload_bytes + self.header_bytes;
                let config = CbrConfig { len_bytes, interval, active };
                return Source::Constant(CbrSource::new(end, config));
            }
            &Datagrams::Poisson(mean) => Pattern::Poisson { mean, draws: draws() },
            &Datagrams::OnOff(interval, [on, off]) => {
                Pattern::OnOff { interval, on, off, draws: draws() }
            }
            Datagrams::Listed(list) => Pattern::Listed(Arc::clone(list)),
        };
        let lens_bytes = (self.payload_bytes, self.header_bytes);
        Source::Pattern(Box::new(PatternSource::new(end, pattern, active, lens_bytes)))
    }

    fn datagram_sink(&self, place: &Place) -> MeteredDatagrams {
        let sink = MeteredDatagrams::new(self.header_bytes, place.begin);
        sink.with_recent(place.keep.series.is_some())
    }
}

/// A datagram source.
enum Source {
    Constant(CbrSource),
    Pattern(Box<PatternSource>),
}

/// The sending times that a table describes.
fn datagrams(
    table: &FlowTable,
    payload_bytes: u32,
    schedule: &Arc<[(Duration, u32)]>,
) -> Datagrams {
    let interval = interval(table, payload_bytes);
    match table.source.kind {
        SourceKind::Poisson => Datagrams::Poisson(interval),
        SourceKind::OnOff => {
            let mean = |seconds: Option<f64>| span(seconds.unwrap_or(1.0));
            Datagrams::OnOff(interval, [mean(table.source.on_s), mean(table.source.off_s)])
        }
        SourceKind::Trace => Datagrams::Listed(Arc::clone(schedule)),
        _ => Datagrams::Constant(interval),
    }
}

/// A TCP flow as it is behind a tunnel: with the headers of packets there, and segments as long as
/// fit where the table does not say.
fn behind(table: &FlowTable, tunnel: &Tunnel) -> FlowTable {
    let fits = tunnel.mtu.saturating_sub(DATA_HEADERS_LEN) as u32;
    let payload_bytes = Some(table.payload_bytes.unwrap_or(fits));
    FlowTable { payload_bytes, header_bytes: Some(DATA_HEADERS_LEN as u32), ..table.clone() }
}

/// Rejects packets that do not fit into their tunnel, and those too short for a time stamp.
fn check_behind(flow: usize, lens_bytes: (u32, u32), tunnel: &Tunnel) -> Result<(), SimError> {
    let (given, beside) = (lens_bytes.0 as usize, lens_bytes.1 as usize);
    let most = tunnel.mtu;
    if given + beside <= most {
        return Ok(());
    }
    Err(SimError::TunnelLen { flow, given, beside, most })
}

/// Runs a network, and measures from the end of the warm-up on.
///
/// # Errors
/// As [`Prepared::new`].
pub fn run(
    prepared: &Prepared,
    plan: &NetworkPlan,
    seed: u64,
    replication: u64,
) -> Result<Replication, SimError> {
    let [begin, end] = [plan.warm_up, plan.duration].map(|span| Time::ZERO + span);
    let Running { mut network, meters, tunnel_ends } =
        prepared.network(seed, replication, begin)?;
    let observed = Subjects { meters: &meters, plan, tunnel_ends: &tunnel_ends };
    let series = prepared.keep.series;
    let mut course = series.map(|interval| Course::new(interval, &network, &observed));
    let counts = |network: &Network| -> Vec<Counts> {
        meters.iter().map(|meter| meter.counts(network)).collect()
    };
    // Without a warm-up, what happens at time zero counts too.
    if begin > Time::ZERO {
        course::advance(&mut network, begin, &mut course, &observed, |_| false);
    }
    let totals_before = Totals::of(&network, plan, &tunnel_ends);
    let kept_before = prepared.keep.totals.then(|| course::Totals::of(&mut network, &observed));
    let counts_before = counts(&network);
    let end = if plan.until_done {
        let is_over = |network: &Network| meters.iter().all(|meter| meter.is_over(network));
        course::advance(&mut network, end, &mut course, &observed, is_over);
        // The measured time must not be zero.
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
    let totals = Totals::of(&network, plan, &tunnel_ends);
    totals.since(&totals_before).set(&mut measures, measured_s);
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

/// Most bytes that TCP/NC adds to a segment, and to an acknowledgment.
fn nc_bytes_max(params: &NcParams) -> (u32, u32) {
    // Segments have one length: every run but the last is as long as it may be.
    let runs = usize::from(params.buffer_segments).div_ceil(usize::from(u8::MAX));
    let feedback = if params.redundancy.needs_feedback() { FEEDBACK_LEN } else { 0 };
    ((HEAD_LEN + runs * RUN_LEN) as u32, feedback as u32)
}

/// Interval between packets at the source's data rate.
fn interval(table: &FlowTable, payload_bytes: u32) -> Duration {
    let bits = 8.0 * f64::from(payload_bytes);
    span(bits / table.source.rate_bps.unwrap_or(1.0)).max(Duration::from_nanos(1))
}
