//! From the tables of a network to its nodes and one-way links, with every value checked.

use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use corridor_relay::RelayConfig;

use corridor_air::PipeConfig;
use corridor_base::StreamKey;
use corridor_base::rand::Rng;

use crate::error::ScenarioError;
use crate::limits::*;
use crate::link::both_ways;
use crate::network::*;
use crate::one_or_many::OneOrMany;
use crate::placement::{Air, Cell, cells, check_routes};
use crate::radio::{MacKind, RouteTable, RoutingTable};
use crate::relay;
use crate::traffic::{check_tunnels, check_way, schedule};
use crate::values::span;

/// Default jitter of flows' starting times, seconds: it makes replications of a network without
/// losses differ.
const START_JITTER_S: f64 = 0.1;
/// Largest jitter that a plan may set, seconds.
const START_JITTER_S_MAX: f64 = 3_600.0;
/// Longest time setting of route discovery, seconds.
const ROUTING_S_MAX: f64 = 3_600.0;
/// Longest processing time of a packet at an end of a flow, milliseconds.
const PROCESSING_MS_MAX: f64 = 60_000.0;
/// Largest payload or header length of a packet, bytes.
const BYTES_MAX: u32 = u16::MAX as u32;

/// A network, its flows, and how long it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Number of nodes.
    pub nodes: usize,
    /// One-way links; the reverse of `links[2 k]` is `links[2 k + 1]`.
    pub links: Vec<NetworkLink>,
    /// The radios, each on a channel of its own.
    pub radios: Vec<Cell>,
    /// Positions of nodes with radios, metres; `None` if only their links are known.
    pub metres: Option<Vec<[f64; 3]>>,
    /// Tunnels between nodes.
    pub tunnels: Vec<TunnelTable>,
    /// The relays at all nodes of the radio, if there are any.
    pub relay: Option<RelayConfig>,
    /// Routes that differ from the shortest ones.
    pub routes: Vec<RouteTable>,
    /// Settings of route discovery, if nodes discover routes.
    pub routing: Option<RoutingTable>,
    /// Each flow starts later by a time of its own, uniform from zero to this.
    pub start_jitter: Duration,
    /// Flows, checked except for TCP's own checks.
    pub flows: Vec<FlowTable>,
    /// For each flow of a trace, the sending times of datagrams after its start, with their payload
    /// bytes.
    pub schedules: Vec<Arc<[(Duration, u32)]>>,
    /// When it ends.
    pub duration: Duration,
    /// When the measured interval begins.
    pub warm_up: Duration,
    /// Whether it ends as soon as all flows are complete or have given up.
    pub until_done: bool,
}

impl Network {
    /// What joins its nodes, if all of them are on its only radio.
    pub fn air(&self) -> Option<&Air> {
        match &self.radios[..] {
            [cell] if cell.nodes.len() == self.nodes => Some(&cell.air),
            _ => None,
        }
    }

    /// Number of stations of all tunnels: their ends and helpers.
    pub fn stations(&self) -> usize {
        self.tunnels.iter().map(|tunnel| 2 + usize::from(tunnel.helper.is_some())).sum()
    }

    /// Number of places on all radios.
    pub fn places(&self) -> usize {
        self.radios.iter().map(|cell| cell.nodes.len()).sum()
    }
}

/// How much later a flow starts in a replication, with this [jitter](Network::start_jitter).
pub fn start_after(jitter: Duration, flow: usize, seed: u64, replication: u64) -> Duration {
    let key = StreamKey { seed, replication, entity: flow as u64, purpose: "start" };
    let most = u128::from(key.stream().next_u64()) * (jitter.as_nanos() + 1);
    Duration::from_nanos((most >> 64) as u64)
}

/// A one-way link.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkLink {
    /// Node that sends.
    pub from: usize,
    /// Node that receives.
    pub to: usize,
    /// Rate, delay, queue, losses.
    pub pipe: PipeConfig,
}

/// Makes a network; traces are looked up in `directory`.
///
/// # Errors
/// The first invalid value, by its name in the file.
pub(crate) fn network(
    table: &NetworkTable,
    flows: &[FlowTable],
    Times { duration_s, warm_up_s, start_jitter_s, until_done }: Times,
    seed: u64,
    directory: &Path,
) -> Result<Network, ScenarioError> {
    let (mut metres, mut radios) = (None, Vec::new());
    let (nodes, links) = match table.kind {
        Shape::Chain => chain(table, directory)?,
        Shape::Dumbbell => dumbbell(table, directory)?,
        Shape::Explicit => explicit(table, directory)?,
        _ => {
            let (nodes, places, cells) = cells(table, seed, directory)?;
            (metres, radios) = (places, cells);
            (nodes, wires(table, nodes, directory)?)
        }
    };
    check_unused(table)?;
    check_routes(&table.route, nodes, radios.len())?;
    check_tunnels(table, nodes, &radios)?;
    let relay = table.relay.as_ref().map(relay::relay).transpose()?;
    if relay.is_some() && !radios.iter().all(|cell| matches!(cell.air, Air::Mac(_))) {
        let expected = "nothing without a MAC that counts retries: dcf, 802.15.4";
        return Err(ScenarioError::value("network.relay", "a table", expected));
    }
    let is_one = radios.len() == 1 && radios[0].nodes.len() == nodes && links.is_empty();
    for (name, given) in [("relay", relay.is_some()), ("routing", table.routing.is_some())] {
        if given && !is_one {
            let expected = "nothing unless all nodes are on one radio, and on no wire";
            return Err(ScenarioError::value(format!("network.{name}"), "a table", expected));
        }
    }
    check_routing(table)?;
    check_times(duration_s, warm_up_s)?;
    // For comparison with ns-2, flows start exactly when they say.
    let is_ns2 =
        |flow: &FlowTable| flow.tcp.as_ref().is_some_and(|tcp| tcp.preset == TcpPreset::Ns2);
    let by_default = if flows.iter().any(is_ns2) { 0.0 } else { START_JITTER_S };
    let start_jitter_s = start_jitter_s.unwrap_or(by_default);
    if !(0.0..=START_JITTER_S_MAX).contains(&start_jitter_s) {
        let expected = format!("0 to {START_JITTER_S_MAX} s");
        return Err(ScenarioError::value("start_jitter_s", start_jitter_s, expected));
    }
    if !(1..=FLOWS_MAX).contains(&flows.len()) {
        let expected = format!("1 to {FLOWS_MAX} [[flow]] tables");
        return Err(ScenarioError::value("flow", format!("{} tables", flows.len()), expected));
    }
    let mut schedules = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        check_flow(index, flow, nodes, duration_s)?;
        check_way(index, flow, table)?;
        check_start(index, flow, start_jitter_s, duration_s)?;
        schedules.push(schedule(index, flow, directory)?);
    }
    let [duration, warm_up, start_jitter] = [duration_s, warm_up_s, start_jitter_s].map(span);
    let (flows, routes, routing) = (flows.to_vec(), table.route.clone(), table.routing.clone());
    Ok(Network {
        nodes,
        links,
        radios,
        metres,
        tunnels: table.tunnel.clone(),
        relay,
        routes,
        routing,
        start_jitter,
        flows,
        schedules,
        duration,
        warm_up,
        until_done,
    })
}

/// Times of a network as in its file, seconds.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) duration_s: f64,
    pub(crate) warm_up_s: f64,
    pub(crate) start_jitter_s: Option<f64>,
    pub(crate) until_done: bool,
}

/// Checks that route discovery has a radio whose MAC reports outcomes of frames, or that routes are
/// given.
fn check_routing(table: &NetworkTable) -> Result<(), ScenarioError> {
    let Some(routing) = &table.routing else { return Ok(()) };
    if !table.route.is_empty() {
        let expected = "nothing beside [network.routing]";
        return Err(ScenarioError::value("network.route", "a table", expected));
    }
    if table.relay.is_some() && !routing.is_static {
        let expected = "nothing beside [network.relay], or static = true there";
        return Err(ScenarioError::value("network.routing", "a table", expected));
    }
    let mut radios = table.radio.iter().flat_map(OneOrMany::iter);
    if radios.any(|radio| radio.mac == MacKind::Ideal) {
        let expected = "nothing with mac = \"ideal\", which does not report lost frames";
        return Err(ScenarioError::value("network.routing", "a table", expected));
    }
    let spans = [
        ("jitter_ms", routing.jitter_ms.map(|ms| ms / 1e3), 0.0),
        ("discovery_wait_s", routing.discovery_wait_s, 1e-9),
        ("discovery_limit_s", routing.discovery_limit_s, 1e-9),
    ];
    for (name, given, least) in spans {
        if let Some(given) = given.filter(|given| !(least..=ROUTING_S_MAX).contains(given)) {
            let expected = format!("a span up to {ROUTING_S_MAX} s");
            return Err(ScenarioError::value(format!("network.routing.{name}"), given, expected));
        }
    }
    Ok(())
}

fn check_times(duration_s: f64, warm_up_s: f64) -> Result<(), ScenarioError> {
    if !(duration_s > 0.0 && duration_s <= NETWORK_DURATION_S_MAX) {
        let expected = format!("more than 0, at most {NETWORK_DURATION_S_MAX} s");
        return Err(ScenarioError::value("duration_s", duration_s, expected));
    }
    if !(warm_up_s >= 0.0 && warm_up_s < duration_s) {
        let expected = format!("from 0, less than duration_s, which is {duration_s} s");
        return Err(ScenarioError::value("warm_up_s", warm_up_s, expected));
    }
    Ok(())
}

type Links = (usize, Vec<NetworkLink>);

fn chain(table: &NetworkTable, directory: &Path) -> Result<Links, ScenarioError> {
    let link = required(&table.links, "network.links", "the links of the chain")?;
    let count = required(&link.count, "network.links.count", "the number of links")?;
    if !(1..NODES_MAX).contains(&count) {
        let expected = format!("1 to {}", NODES_MAX - 1);
        return Err(ScenarioError::value("network.links.count", count, expected));
    }
    let both = both_ways("network.links", &LinkTable { count: None, ..link }, directory)?;
    Ok((count + 1, (0..count).flat_map(|at| placed(&both, at, at + 1)).collect()))
}

fn dumbbell(table: &NetworkTable, directory: &Path) -> Result<Links, ScenarioError> {
    let pairs = required(&table.pairs, "network.pairs", "the number of senders and of receivers")?;
    if !(1..=NODES_MAX / 2 - 1).contains(&pairs) {
        let expected = format!("1 to {}", NODES_MAX / 2 - 1);
        return Err(ScenarioError::value("network.pairs", pairs, expected));
    }
    let what = "the links between hosts and routers";
    let access = required(&table.access, "network.access", what)?;
    let access = both_ways("network.access", &access, directory)?;
    let what = "the link between the routers";
    let bottleneck = required(&table.bottleneck, "network.bottleneck", what)?;
    let bottleneck = both_ways("network.bottleneck", &bottleneck, directory)?;
    let (left, right) = (2 * pairs, 2 * pairs + 1);
    let senders = (0..pairs).flat_map(|host| placed(&access, host, left));
    let receivers = (pairs..2 * pairs).flat_map(|host| placed(&access, right, host));
    let links = senders.chain(receivers).chain(placed(&bottleneck, left, right));
    Ok((2 * pairs + 2, links.collect()))
}

fn explicit(table: &NetworkTable, directory: &Path) -> Result<Links, ScenarioError> {
    let nodes = required(&table.nodes, "network.nodes", "the number of nodes")?;
    if !(2..=NODES_MAX).contains(&nodes) {
        let expected = format!("2 to {NODES_MAX}");
        return Err(ScenarioError::value("network.nodes", nodes, expected));
    }
    if !(1..=LINKS_MAX / 2).contains(&table.link.len()) {
        let expected = format!("1 to {} [[network.link]] tables", LINKS_MAX / 2);
        let given = format!("{} tables", table.link.len());
        return Err(ScenarioError::value("network.link", given, expected));
    }
    Ok((nodes, wires(table, nodes, directory)?))
}

/// The links that a network lists, in both directions.
fn wires(
    table: &NetworkTable,
    nodes: usize,
    directory: &Path,
) -> Result<Vec<NetworkLink>, ScenarioError> {
    let mut links = Vec::new();
    for (index, link) in table.link.iter().enumerate() {
        let field = format!("network.link[{index}]");
        let what = "the two nodes at its ends";
        let between = required(&link.between, &format!("{field}.between"), what)?;
        let [a, b] = between;
        if a == b || a.max(b) >= nodes {
            let expected = format!("two nodes from 0 to {}", nodes - 1);
            let given = format!("{between:?}");
            return Err(ScenarioError::value(format!("{field}.between"), given, expected));
        }
        let both = both_ways(&field, &LinkTable { between: None, ..link.clone() }, directory)?;
        links.extend(placed(&both, a, b));
    }
    Ok(links)
}

/// Rejects keys of other shapes.
fn check_unused(table: &NetworkTable) -> Result<(), ScenarioError> {
    use Shape::{Chain, Dumbbell, Explicit, Grid, Line, Matrix, Positions, Random, Star};
    let shape = table.kind;
    let radios = [Line, Grid, Star, Random, Positions, Matrix];
    let given = [
        ("links", &[Chain][..], table.links.is_some()),
        ("pairs", &[Dumbbell], table.pairs.is_some()),
        ("access", &[Dumbbell], table.access.is_some()),
        ("bottleneck", &[Dumbbell], table.bottleneck.is_some()),
        ("nodes", &[Explicit, Line, Star, Random, Matrix], table.nodes.is_some()),
        ("link", &[Explicit, Line, Grid, Star, Random, Positions, Matrix], !table.link.is_empty()),
        ("columns", &[Grid], table.columns.is_some()),
        ("rows", &[Grid], table.rows.is_some()),
        ("spacing_m", &[Line, Grid, Star], table.spacing_m.is_some()),
        ("row_spacing_m", &[Grid], table.row_spacing_m.is_some()),
        ("width_m", &[Random], table.width_m.is_some()),
        ("height_m", &[Random], table.height_m.is_some()),
        ("path", &[Positions, Matrix], table.path.is_some()),
        ("radio", &radios, table.radio.is_some()),
        ("relay", &radios, table.relay.is_some()),
        ("routing", &radios, table.routing.is_some()),
    ];
    match given.iter().find(|(_, of, given)| *given && !of.contains(&shape)) {
        Some((field, of, _)) => {
            let field = format!("network.{field}");
            let name = |shape: &Shape| format!("\"{shape:?}\"").to_lowercase();
            let of: Vec<String> = of.iter().map(name).collect();
            let (of, shape) = (of.join(", "), name(&shape));
            let expected = format!("nothing: that is of kind {of}, and this is {shape}");
            Err(ScenarioError::value(field, "a table", expected))
        }
        None => Ok(()),
    }
}

/// The two directions of a link, between these nodes.
fn placed([there, back]: &[PipeConfig; 2], a: usize, b: usize) -> [NetworkLink; 2] {
    [
        NetworkLink { from: a, to: b, pipe: there.clone() },
        NetworkLink { from: b, to: a, pipe: back.clone() },
    ]
}

/// Checks that a flow has time to send even if it starts as late as possible.
fn check_start(
    index: usize,
    flow: &FlowTable,
    start_jitter_s: f64,
    duration_s: f64,
) -> Result<(), ScenarioError> {
    let latest_s = flow.start_s + start_jitter_s;
    let end_s = flow.stop_s.unwrap_or(duration_s);
    if latest_s < end_s {
        return Ok(());
    }
    let field = format!("flow[{index}].start_s");
    let expected =
        format!("with start_jitter_s = {start_jitter_s} less than {end_s} s, when the flow ends");
    Err(ScenarioError::value(field, flow.start_s, expected))
}

fn check_flow(
    index: usize,
    flow: &FlowTable,
    nodes: usize,
    duration_s: f64,
) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("flow[{index}].{name}");
    for (name, node) in [("from", flow.from), ("to", flow.to)] {
        if node >= nodes {
            let expected = format!("a node from 0 to {}", nodes - 1);
            return Err(ScenarioError::value(field(name), node, expected));
        }
    }
    if flow.from == flow.to {
        return Err(ScenarioError::value(field("to"), flow.to, "another node than `from`"));
    }
    if !(0.0..duration_s).contains(&flow.start_s) {
        let expected = format!("from 0, before the end at {duration_s} s");
        return Err(ScenarioError::value(field("start_s"), flow.start_s, expected));
    }
    if let Some(stop_s) = flow.stop_s.filter(|&stop| !(stop > flow.start_s && stop <= duration_s)) {
        let expected = format!("after start_s = {}, at most {duration_s} s", flow.start_s);
        return Err(ScenarioError::value(field("stop_s"), stop_s, expected));
    }
    for (name, bytes, min) in
        [("payload_bytes", flow.payload_bytes, 1), ("header_bytes", flow.header_bytes, 0)]
    {
        if let Some(bytes) = bytes.filter(|bytes| !(min..=BYTES_MAX).contains(bytes)) {
            let expected = format!("{min} to {BYTES_MAX} bytes");
            return Err(ScenarioError::value(field(name), bytes, expected));
        }
    }
    if let Some(ms) = flow.processing_ms.filter(|ms| !(0.0..=PROCESSING_MS_MAX).contains(ms)) {
        let expected = format!("0 to {PROCESSING_MS_MAX} ms");
        return Err(ScenarioError::value(field("processing_ms"), ms, expected));
    }
    if flow.processing_ms.is_some() && (flow.tcp.is_none() || flow.tcp_nc.is_some()) {
        let expected = "nothing: only TCP without TCP/NC has ends that work";
        return Err(ScenarioError::value(field("processing_ms"), "a value", expected));
    }
    if flow.tcp.as_ref().and_then(|tcp| tcp.timeouts_max) == Some(0) {
        return Err(ScenarioError::value(field("tcp.timeouts_max"), 0, "one timeout or more"));
    }
    check_source(index, flow)
}

fn check_source(index: usize, flow: &FlowTable) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("flow[{index}].{name}");
    let (source, kind) = (&flow.source, flow.source.kind);
    let wants_rate =
        kind == SourceKind::Rate || kind.sends_datagrams() && kind != SourceKind::Trace;
    let pauses = kind == SourceKind::OnOff;
    let given = [
        ("source.packets", kind == SourceKind::Fixed, source.packets.is_some()),
        ("source.rate_bps", wants_rate, source.rate_bps.is_some()),
        ("source.on_s", pauses, source.on_s.is_some()),
        ("source.off_s", pauses, source.off_s.is_some()),
        ("source.path", kind == SourceKind::Trace, source.path.is_some()),
    ];
    for (name, needed, given) in given {
        if needed && !given {
            return Err(ScenarioError::missing(field(name), "a value for this kind of source"));
        }
        if given && !needed {
            let expected = "nothing, for this kind of source";
            return Err(ScenarioError::value(field(name), "a value", expected));
        }
    }
    if source.packets == Some(0) {
        return Err(ScenarioError::value(field("source.packets"), 0, "one packet or more"));
    }
    if let Some(rate) = source.rate_bps.filter(|rate| !(1.0..=1e12).contains(rate)) {
        let expected = "1 to 1000000000000 bit/s";
        return Err(ScenarioError::value(field("source.rate_bps"), rate, expected));
    }
    for (name, mean_s) in [("source.on_s", source.on_s), ("source.off_s", source.off_s)] {
        if let Some(mean_s) = mean_s.filter(|mean_s| !(1e-6..=1e6).contains(mean_s)) {
            return Err(ScenarioError::value(field(name), mean_s, "0.000001 to 1000000 s"));
        }
    }
    let name = format!("{kind:?}").to_lowercase().replace("onoff", "on-off");
    let by_tcp = format!("nothing: {name} sends datagrams; kind = \"rate\" sends over TCP");
    match (kind.sends_datagrams(), &flow.tcp) {
        (true, Some(_)) => Err(ScenarioError::value(field("tcp"), "a table", by_tcp)),
        (true, None) if flow.tcp_nc.is_some() => {
            Err(ScenarioError::value(field("tcp_nc"), "a table", by_tcp))
        }
        (_, tcp) => {
            tcp.as_ref().map_or(Ok(()), |tcp| check_tcp_times(index, tcp))?;
            flow.tcp_nc.as_ref().map_or(Ok(()), |table| check_tcp_nc(index, table))
        }
    }
}

fn check_tcp_nc(index: usize, table: &TcpNcTable) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("flow[{index}].tcp_nc.{name}");
    if let (Some(ratio), false) = (table.loss_ratio, table.adaptive) {
        let expected = "nothing: a fixed redundancy estimates no losses";
        return Err(ScenarioError::value(field("loss_ratio"), ratio, expected));
    }
    table.params().check().map_err(|error| {
        let name = if error.field == "redundancy_max" { "redundancy" } else { error.field };
        ScenarioError::value(field(name), error.given, error.expected)
    })
}

/// Checks the times, which TCP takes as integers; TCP checks the rest itself.
fn check_tcp_times(index: usize, tcp: &TcpTable) -> Result<(), ScenarioError> {
    let times = [
        ("rto_initial_s", tcp.rto_initial_s),
        ("rto_min_s", tcp.rto_min_s),
        ("rto_max_s", tcp.rto_max_s),
        ("rto_granularity_s", tcp.rto_granularity_s),
        ("delayed_ack_timeout_ms", tcp.delayed_ack_timeout_ms),
    ];
    for (name, time) in times {
        if let Some(time) = time.filter(|time| !(0.0..=1e6).contains(time)) {
            let field = format!("flow[{index}].tcp.{name}");
            return Err(ScenarioError::value(field, time, "0 to 1000000"));
        }
    }
    Ok(())
}

fn required<T: Clone>(given: &Option<T>, field: &str, what: &str) -> Result<T, ScenarioError> {
    given.clone().ok_or_else(|| ScenarioError::missing(field, what))
}
