//! From the tables of a network to its nodes and one-way links, every value checked.

use core::time::Duration;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::error::ScenarioError;
use crate::network::*;

/// Most nodes of a network.
pub const NODES_MAX: usize = 10_000;
/// Most one-way links of a network.
pub const LINKS_MAX: usize = 100_000;
/// Most flows of a network.
pub const FLOWS_MAX: usize = 1_000;
/// Most packets that wait for a link.
pub const LINK_QUEUE_PACKETS_MAX: usize = 1_000_000;
/// Longest propagation over a link, milliseconds.
pub const LINK_DELAY_MS_MAX: f64 = 60_000.0;
/// Fastest link, bits per second.
pub const LINK_RATE_BPS_MAX: u64 = 1_000_000_000_000;
/// Longest replication of a network, simulated seconds.
pub const NETWORK_DURATION_S_MAX: f64 = 1_000_000.0;
/// Most packets of an erasure trace.
pub const TRACE_PACKETS_MAX: usize = 10_000_000;
/// Longest mean burst of losses, packets.
pub const BURST_PACKETS_MAX: f64 = 1e6;
/// Largest packet, data or headers, bytes.
const BYTES_MAX: u32 = u16::MAX as u32;

/// A network, its flows, and how long they are watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// How many nodes.
    pub nodes: usize,
    /// One-way links; the link back of `links[2 k]` is `links[2 k + 1]`.
    pub links: Vec<NetworkLink>,
    /// Flows, checked as far as it can be done without TCP's own check.
    pub flows: Vec<FlowTable>,
    /// When it ends.
    pub duration: Duration,
    /// When measuring begins.
    pub warm_up: Duration,
}

/// A one-way link.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkLink {
    /// Node that sends.
    pub from: usize,
    /// Node that receives.
    pub to: usize,
    /// Bits per second.
    pub rate_bps: u64,
    /// Propagation.
    pub delay: Duration,
    /// Packets that wait.
    pub queue_packets: usize,
    /// What is lost.
    pub erasure: Erasures,
}

/// What a link loses.
#[derive(Clone, Debug, PartialEq)]
pub enum Erasures {
    /// Each packet with the same probability.
    Bernoulli {
        /// Probability, 0 to 1.
        loss_ratio: f64,
    },
    /// Bursts of losses of geometrically distributed lengths.
    GilbertElliott {
        /// Share of packets lost, 0 to 1.
        loss_ratio: f64,
        /// Mean length of a burst, from 1.
        burst_packets: f64,
    },
    /// As recorded; over and over.
    Trace {
        /// Whether each packet is lost.
        lost: Arc<[bool]>,
    },
}

/// Makes a network; traces are looked for in `directory`.
///
/// # Errors
/// The first value that cannot be, by its name in the file.
pub(crate) fn network(
    table: &NetworkTable,
    flows: &[FlowTable],
    (duration_s, warm_up_s): (f64, f64),
    directory: &Path,
) -> Result<Network, ScenarioError> {
    let (nodes, links) = match table.kind {
        Shape::Chain => chain(table, directory)?,
        Shape::Dumbbell => dumbbell(table, directory)?,
        Shape::Explicit => explicit(table, directory)?,
    };
    check_unused(table)?;
    check_times(duration_s, warm_up_s)?;
    if !(1..=FLOWS_MAX).contains(&flows.len()) {
        let expected = format!("1 to {FLOWS_MAX} [[flow]] tables");
        return Err(ScenarioError::value("flow", format!("{} tables", flows.len()), expected));
    }
    for (index, flow) in flows.iter().enumerate() {
        check_flow(index, flow, nodes, duration_s)?;
    }
    let [duration, warm_up] = [duration_s, warm_up_s].map(span);
    Ok(Network { nodes, links, flows: flows.to_vec(), duration, warm_up })
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
    let count = required(&link.count, "network.links.count", "how many links are in a row")?;
    if !(1..NODES_MAX).contains(&count) {
        let expected = format!("1 to {}", NODES_MAX - 1);
        return Err(ScenarioError::value("network.links.count", count, expected));
    }
    let both = both_ways("network.links", &LinkTable { count: None, ..link }, directory)?;
    Ok((count + 1, (0..count).flat_map(|at| placed(&both, at, at + 1)).collect()))
}

fn dumbbell(table: &NetworkTable, directory: &Path) -> Result<Links, ScenarioError> {
    let pairs = required(&table.pairs, "network.pairs", "how many senders, and receivers")?;
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
    let nodes = required(&table.nodes, "network.nodes", "how many nodes there are")?;
    if !(2..=NODES_MAX).contains(&nodes) {
        let expected = format!("2 to {NODES_MAX}");
        return Err(ScenarioError::value("network.nodes", nodes, expected));
    }
    if !(1..=LINKS_MAX / 2).contains(&table.link.len()) {
        let expected = format!("1 to {} [[network.link]] tables", LINKS_MAX / 2);
        let given = format!("{} tables", table.link.len());
        return Err(ScenarioError::value("network.link", given, expected));
    }
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
    Ok((nodes, links))
}

/// Refuses what is said of another shape.
fn check_unused(table: &NetworkTable) -> Result<(), ScenarioError> {
    let shape = table.kind;
    let given = [
        ("links", Shape::Chain, table.links.is_some()),
        ("pairs", Shape::Dumbbell, table.pairs.is_some()),
        ("access", Shape::Dumbbell, table.access.is_some()),
        ("bottleneck", Shape::Dumbbell, table.bottleneck.is_some()),
        ("nodes", Shape::Explicit, table.nodes.is_some()),
        ("link", Shape::Explicit, !table.link.is_empty()),
    ];
    match given.iter().find(|(_, of, given)| *given && *of != shape) {
        Some((field, of, _)) => {
            let field = format!("network.{field}");
            let (of, shape) = [*of, shape].map(|s| format!("{s:?}").to_lowercase()).into();
            let expected = format!("nothing: that is of kind \"{of}\", and this is \"{shape}\"");
            Err(ScenarioError::value(field, "a table", expected))
        }
        None => Ok(()),
    }
}

/// The two directions of a link that is not yet between nodes.
fn both_ways(
    field: &str,
    link: &LinkTable,
    directory: &Path,
) -> Result<[NetworkLink; 2], ScenarioError> {
    let foreign = [("count", link.count.is_some()), ("between", link.between.is_some())];
    if let Some((name, _)) = foreign.iter().find(|(_, given)| *given) {
        let expected = "nothing: `count` is of a chain's links, `between` of explicit links";
        return Err(ScenarioError::value(format!("{field}.{name}"), "a value", expected));
    }
    let common = DirectionTable {
        rate_bps: Some(link.rate_bps),
        delay_ms: Some(link.delay_ms),
        queue_packets: Some(link.queue_packets),
        erasure_ratio: link.erasure_ratio,
        erasure: link.erasure.clone(),
    };
    check_direction(field, &common)?;
    let way = |name: &str, own: &Option<DirectionTable>| {
        let field = format!("{field}.{name}");
        let own = own.clone().unwrap_or_default();
        check_direction(&field, &own)?;
        let loses =
            if own.erasure.is_some() || own.erasure_ratio.is_some() { &own } else { &common };
        Ok(NetworkLink {
            from: 0,
            to: 0,
            rate_bps: own.rate_bps.unwrap_or(link.rate_bps),
            delay: span(own.delay_ms.unwrap_or(link.delay_ms) / 1e3),
            queue_packets: own.queue_packets.unwrap_or(link.queue_packets),
            erasure: erasures(&field, loses, directory)?,
        })
    };
    Ok([way("forward", &link.forward)?, way("backward", &link.backward)?])
}

/// The two directions, between these nodes.
fn placed(both: &[NetworkLink; 2], a: usize, b: usize) -> [NetworkLink; 2] {
    let [there, back] = both.clone();
    [NetworkLink { from: a, to: b, ..there }, NetworkLink { from: b, to: a, ..back }]
}

fn check_direction(field: &str, link: &DirectionTable) -> Result<(), ScenarioError> {
    if let Some(rate_bps) = link.rate_bps.filter(|rate| !(1..=LINK_RATE_BPS_MAX).contains(rate)) {
        let expected = format!("1 to {LINK_RATE_BPS_MAX} bit/s");
        return Err(ScenarioError::value(format!("{field}.rate_bps"), rate_bps, expected));
    }
    if let Some(delay_ms) = link.delay_ms.filter(|ms| !(0.0..=LINK_DELAY_MS_MAX).contains(ms)) {
        let expected = format!("0 to {LINK_DELAY_MS_MAX} ms");
        return Err(ScenarioError::value(format!("{field}.delay_ms"), delay_ms, expected));
    }
    let packets = link.queue_packets;
    if let Some(packets) = packets.filter(|count| !(1..=LINK_QUEUE_PACKETS_MAX).contains(count)) {
        let expected = format!("1 to {LINK_QUEUE_PACKETS_MAX} packets");
        return Err(ScenarioError::value(format!("{field}.queue_packets"), packets, expected));
    }
    if let (Some(ratio), Some(_)) = (link.erasure_ratio, &link.erasure) {
        let expected = "either erasure_ratio or the table erasure";
        return Err(ScenarioError::value(format!("{field}.erasure_ratio"), ratio, expected));
    }
    check_ratio(&format!("{field}.erasure_ratio"), link.erasure_ratio)
}

fn check_ratio(field: &str, ratio: Option<f64>) -> Result<(), ScenarioError> {
    match ratio {
        Some(ratio) if !(0.0..=1.0).contains(&ratio) => {
            Err(ScenarioError::value(field, ratio, "an erasure ratio from 0 to 1"))
        }
        _ => Ok(()),
    }
}

fn erasures(
    field: &str,
    link: &DirectionTable,
    directory: &Path,
) -> Result<Erasures, ScenarioError> {
    let Some(table) = &link.erasure else {
        return Ok(Erasures::Bernoulli { loss_ratio: link.erasure_ratio.unwrap_or(0.0) });
    };
    let field = |name: &str| format!("{field}.erasure.{name}");
    check_ratio(&field("loss_ratio"), table.loss_ratio)?;
    let is_trace = table.kind == ErasureKind::Trace;
    let is_bursty = table.kind == ErasureKind::GilbertElliott;
    let given = [
        ("loss_ratio", !is_trace, table.loss_ratio.is_some()),
        ("burst_packets", is_bursty, table.burst_packets.is_some()),
        ("path", is_trace, table.path.is_some()),
    ];
    for (name, needed, given) in given {
        if needed != given {
            let (given, expected) = match needed {
                true => ("nothing", "a value, for this kind of erasures"),
                false => ("a value", "nothing, for this kind of erasures"),
            };
            return Err(ScenarioError::value(field(name), given, expected));
        }
    }
    let loss_ratio = table.loss_ratio.unwrap_or(0.0);
    let burst_packets = table.burst_packets.unwrap_or(1.0);
    match (table.kind, &table.path) {
        (ErasureKind::Trace, Some(path)) => Ok(Erasures::Trace {
            lost: read_trace(&directory.join(path))
                .map_err(|expected| ScenarioError::value(field("path"), path, expected))?,
        }),
        (ErasureKind::GilbertElliott, _) => {
            // Beyond this the good state would have to be left more than once for each packet.
            let most = burst_packets / (burst_packets + 1.0);
            if !(1.0..=BURST_PACKETS_MAX).contains(&burst_packets) {
                let expected = format!("1 to {BURST_PACKETS_MAX} packets");
                return Err(ScenarioError::value(field("burst_packets"), burst_packets, expected));
            }
            if loss_ratio > most {
                let expected = format!("at most {most:.4} with bursts of {burst_packets} packets");
                return Err(ScenarioError::value(field("loss_ratio"), loss_ratio, expected));
            }
            Ok(Erasures::GilbertElliott { loss_ratio, burst_packets })
        }
        _ => Ok(Erasures::Bernoulli { loss_ratio }),
    }
}

/// Reads ones and zeros; white space and what follows a `#` on its line are passed over.
fn read_trace(path: &Path) -> Result<Arc<[bool]>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("a file to read: {error}"))?;
    let mut lost = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let told = line.split('#').next().unwrap_or_default();
        for word in told.chars().filter(|c| !c.is_whitespace()) {
            match word {
                '0' | '1' if lost.len() < TRACE_PACKETS_MAX => lost.push(word == '1'),
                '0' | '1' => return Err(format!("at most {TRACE_PACKETS_MAX} packets")),
                other => {
                    return Err(format!("ones and zeros, not {other:?} in line {}", number + 1));
                }
            }
        }
    }
    if lost.is_empty() {
        return Err("one packet or more".to_owned());
    }
    Ok(lost.into())
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
    check_source(index, flow)
}

fn check_source(index: usize, flow: &FlowTable) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("flow[{index}].{name}");
    let (source, kind) = (&flow.source, flow.source.kind);
    let wants_rate = matches!(kind, SourceKind::Rate | SourceKind::Cbr);
    let given = [
        ("source.packets", kind == SourceKind::Fixed, source.packets.is_some()),
        ("source.rate_bps", wants_rate, source.rate_bps.is_some()),
    ];
    for (name, needed, given) in given {
        if needed != given {
            let (given, expected) = match needed {
                true => ("nothing", "a value, for this kind of source"),
                false => ("a value", "nothing, for this kind of source"),
            };
            return Err(ScenarioError::value(field(name), given, expected));
        }
    }
    if source.packets == Some(0) {
        return Err(ScenarioError::value(field("source.packets"), 0, "one packet or more"));
    }
    if let Some(rate) = source.rate_bps.filter(|rate| !(1.0..=1e12).contains(rate)) {
        let expected = "1 to 1000000000000 bit/s";
        return Err(ScenarioError::value(field("source.rate_bps"), rate, expected));
    }
    match (kind, &flow.tcp) {
        (SourceKind::Cbr, Some(_)) => {
            let expected = "nothing: cbr sends datagrams; kind = \"rate\" sends over TCP";
            Err(ScenarioError::value(field("tcp"), "a table", expected))
        }
        (_, Some(tcp)) => check_tcp_times(index, tcp),
        (_, None) => Ok(()),
    }
}

/// The times, which TCP takes as integers; it checks the rest itself.
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

/// Seconds as a span, to the nanosecond; the checks have refused what is none.
fn span(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

fn required<T: Clone>(given: &Option<T>, field: &str, what: &str) -> Result<T, ScenarioError> {
    given.clone().ok_or_else(|| ScenarioError::value(field, "nothing", what))
}
