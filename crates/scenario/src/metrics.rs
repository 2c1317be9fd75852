//! The columns of a plan's records, and the measurements for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::file::{Direction, Transport};
use crate::plan::Load;
use crate::record::{Column, Kind, Role, Value};
use crate::row::{Row, Side};
use crate::tables::TableKind;

/// Measurements of one replication, by column name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Measures(BTreeMap<String, Value>);

impl Measures {
    /// Sets a measurement.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a measurement of one flow.
    pub fn set_flow(&mut self, flow: usize, name: &str, value: impl Into<Value>) {
        self.0.insert(flow_column(flow, name), value.into());
    }

    /// The measurement with this name; absent if there is none.
    pub fn value(&self, name: &str) -> Value {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The measurements in a row of the simulator.
    pub fn of_row(row: &Row) -> Self {
        let mut measures = Measures::default();
        for (metric, value) in ROW {
            measures.set(metric.name, value(row));
        }
        for side in &row.sides {
            for (metric, value) in SIDE {
                measures.set_flow(side.from, metric.name, value(side));
            }
        }
        measures
    }
}

/// A metric: its column, before a flow number is added.
#[derive(Clone, Copy)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    kind: Kind,
    unit: &'static str,
    role: Role,
    meaning: &'static str,
}

pub(crate) const fn real(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: Kind::Real, unit, role: Role::Metric, meaning }
}

pub(crate) const fn count(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: Kind::Integer, unit, role: Role::Metric, meaning }
}

pub(crate) const fn word(name: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: Kind::Text, unit: "", role: Role::Metric, meaning }
}

impl Metric {
    const fn headline(self) -> Metric {
        Metric { role: Role::Headline, ..self }
    }

    pub(crate) fn column(&self) -> Column {
        Column::new(self.name, self.role, self.kind, self.unit, self.meaning)
    }

    fn flow_column(&self, flow: usize) -> Column {
        let meaning = format!("flow {flow}: {}", self.meaning);
        let name = flow_column(flow, self.name);
        // A short table only shows the totals.
        Column::new(&name, Role::Metric, self.kind, self.unit, &meaning)
    }
}

pub(crate) fn flow_column(flow: usize, name: &str) -> String {
    format!("flow.{flow}.{name}")
}

/// A metric, and its field in a row of the simulator.
type FromRow<T> = (Metric, fn(&T) -> Value);

const GOODPUT: Metric = real("goodput_bps", "bit/s", "data received per second, without headers");
const DELAY_P50: Metric = real("delay_p50_s", "s", "one-way delay in order, median");
const DELAY_P95: Metric = real("delay_p95_s", "s", "one-way delay in order, 95th percentile");
const DELAY_P99: Metric = real("delay_p99_s", "s", "one-way delay in order, 99th percentile");
const DELAY_MAX: Metric = real("delay_max_s", "s", "one-way delay in order, largest");
const LOSS: Metric = real("packet_loss_ratio", "1", "share of packets sent but never received");
const CWND: Metric = real("cwnd_mean_packets", "packets", "congestion window, mean over time");
const SRTT: Metric = real("srtt_s", "s", "smoothed round-trip time at the end");
const RETRANSMITTED: Metric = count("packets_retransmitted", "packets", "packets retransmitted");
const SILENCE: Metric = real("silence_max_s", "s", "longest time without a delivery");
const TIMEOUTS: Metric = count("timeouts", "1", "retransmission timeouts");

const ROW: [FromRow<Row>; 31] = [
    (GOODPUT.headline(), |row| row.goodput_bps.into()),
    (DELAY_P50.headline(), |row| row.delays.delay_p50_s.into()),
    (DELAY_P95.headline(), |row| row.delays.delay_p95_s.into()),
    (DELAY_P99, |row| row.delays.delay_p99_s.into()),
    (DELAY_MAX, |row| row.delays.delay_max_s.into()),
    (LOSS.headline(), |row| loss(row.packets_sent, row.packets_received)),
    (count("packets_sent", "packets", "sent in the measured interval"), |row| {
        row.packets_sent.into()
    }),
    (count("packets_received", "packets", "of these, received"), |row| row.packets_received.into()),
    (count("packets_out_of_order", "packets", "received after a later one"), |row| {
        row.packets_out_of_order.into()
    }),
    (count("packets_duplicated", "packets", "duplicates received"), |row| {
        row.packets_duplicated.into()
    }),
    (
        real("transmissions_per_block", "1", "frames with symbols per block of source symbols")
            .headline(),
        |row| row.transmissions_per_block.into(),
    ),
    (real("encoder_transmissions_per_block", "1", "of these, sent by the encoder"), |row| {
        row.encoder_transmissions_per_block.into()
    }),
    (real("helper_transmissions_per_block", "1", "of these, sent by the helper"), |row| {
        row.helper_transmissions_per_block.into()
    }),
    (real("timeouts_per_block", "1", "expired acknowledgement timers per block"), |row| {
        row.timeouts_per_block.into()
    }),
    (real("air_frames_per_packet", "1", "frames on the air per packet received"), |row| {
        row.air_frames_per_packet.into()
    }),
    (
        real("air_bytes_per_byte", "1", "bytes on the air per byte of data received").headline(),
        |row| row.air_bytes_per_byte.into(),
    ),
    (
        real("air_drop_ratio", "1", "share of the frames dropped by full queues of the medium"),
        |row| row.air_drop_ratio.into(),
    ),
    (real("air_utilisation", "1", "share of time the channel was busy"), |row| {
        row.air_utilisation.into()
    }),
    (count("ingress_drops", "packets", "dropped because the sender's queue was full"), |row| {
        row.ingress_drops.into()
    }),
    (count("codel_drops", "packets", "dropped at ingress to signal congestion"), |row| {
        row.codel_drops.into()
    }),
    (count("codel_marks", "packets", "marked (ECN) at ingress to signal congestion"), |row| {
        row.codel_marks.into()
    }),
    (count("windows_clamped", "packets", "TCP acknowledgements with a reduced window"), |row| {
        row.windows_clamped.into()
    }),
    (
        count(
            "rate_competitions",
            "1",
            "times the queue on the path was attributed to another flow",
        ),
        |row| row.rate_competitions.into(),
    ),
    (count("rate_probes", "1", "times the rate was lowered to probe for a short queue"), |row| {
        row.rate_probes.into()
    }),
    (
        count("rate_drains", "1", "times the rate was lowered to test for a self-made queue"),
        |row| row.rate_drains.into(),
    ),
    (count("rate_bps", "bit/s", "estimated frame rate at the end"), |row| row.rate_bps.into()),
    (SILENCE, |row| row.silence_max_s.into()),
    (CWND, |row| row.cwnd_mean_packets.into()),
    (SRTT, |row| row.srtt_s.into()),
    (RETRANSMITTED, |row| row.packets_retransmitted.into()),
    (TIMEOUTS, |row| row.timeouts.into()),
];

const SIDE: [FromRow<Side>; 17] = [
    (GOODPUT, |side| side.goodput_bps.into()),
    (DELAY_P50, |side| side.delays.delay_p50_s.into()),
    (DELAY_P95, |side| side.delays.delay_p95_s.into()),
    (DELAY_P99, |side| side.delays.delay_p99_s.into()),
    (DELAY_MAX, |side| side.delays.delay_max_s.into()),
    (LOSS, |side| loss(side.packets_sent, side.packets_received)),
    (count("packets_sent", "packets", "sent in the measured interval"), |side| {
        side.packets_sent.into()
    }),
    (count("packets_received", "packets", "of these, received"), |side| {
        side.packets_received.into()
    }),
    (count("packets_out_of_order", "packets", "received after a later one"), |side| {
        side.packets_out_of_order.into()
    }),
    (count("packets_duplicated", "packets", "duplicates received"), |side| {
        side.packets_duplicated.into()
    }),
    (CWND, |side| side.cwnd_mean_packets.into()),
    (SRTT, |side| side.srtt_s.into()),
    (RETRANSMITTED, |side| side.packets_retransmitted.into()),
    (TIMEOUTS, |side| side.timeouts.into()),
    (
        real("tcp_window_limited_ratio", "1", "share of time limited by the receive window"),
        |side| side.tcp_window_limited_ratio.into(),
    ),
    (real("tcp_buffer_limited_ratio", "1", "share of time limited by the send buffer"), |side| {
        side.tcp_buffer_limited_ratio.into()
    }),
    (SILENCE, |side| side.silence_max_s.into()),
];

fn loss(sent: Option<u64>, received: Option<u64>) -> Value {
    match (sent, received) {
        (Some(sent), Some(received)) if sent > 0 => {
            Value::from(1.0 - received as f64 / sent as f64)
        }
        _ => Value::Absent,
    }
}

const NETWORK: [Metric; 7] = [
    GOODPUT.headline(),
    real(
        "throughput_bps",
        "bit/s",
        "packets received per second, including headers and duplicates",
    )
    .headline(),
    real("fairness_ratio", "1", "Jain's fairness index of the flows' goodput: 1 is fair"),
    count("packets_dropped", "packets", "dropped by full queues of links"),
    count("packets_erased", "packets", "lost on links"),
    count("packet_hops", "packets", "packets times links traversed"),
    count("events", "1", "events handled"),
];

/// Additional metrics of networks of radios.
const ON_AIR: [Metric; 8] = [
    count("frames_sent", "frames", "frames completed by the MACs"),
    count("frame_attempts", "1", "transmissions of these, and RTS without CTS"),
    count("frames_given_up", "frames", "of these, not acknowledged after the last attempt"),
    count("frames_blocked", "frames", "of these, given up because the channel was never free"),
    count("frames_undecoded", "1", "receptions started but not decoded"),
    real("air_utilisation", "1", "airtime of all nodes over time"),
    real("sending_s", "s", "transmit time of radios, all nodes together"),
    real("receiving_s", "s", "receive time of radios, all nodes together"),
];

/// Additional metrics of networks with tunnels.
const TUNNELS: [Metric; 4] = [
    count("tunnel_frames_sent", "frames", "frames sent by all tunnel ends and helpers"),
    count("tunnel_bytes_sent", "B", "bytes of these, without headers of UDP and below"),
    count("tunnel_packets_delivered", "packets", "packets delivered to hosts by tunnels"),
    count("tunnel_symbols_repaired", "symbols", "lost symbols of tunnels that were repaired"),
];

/// Additional metrics of networks of relays.
const RELAYS: [Metric; 18] = [
    count("relay_frames_plain", "frames", "relay frames with one packet"),
    count("relay_frames_coded", "frames", "relay frames with two packets"),
    count("relay_packets_forwarded", "packets", "packets accepted by relays for forwarding"),
    count("relay_packets_recoded", "packets", "received in a coded frame and sent on in another"),
    count("relay_packets_decoded", "packets", "packets decoded from coded frames"),
    count("relay_decode_failures", "1", "coded frames received but not decoded"),
    count("relay_packets_resent", "packets", "packets of coded frames sent again"),
    count("relay_repairs_sent", "frames", "combinations of packets that receivers may miss"),
    count("relay_packets_repaired", "packets", "packets recovered from such combinations"),
    count("relay_segments_late", "segments", "TCP segments that arrived after later ones"),
    count("relay_segments_late_us", "us", "total delay of late segments"),
    count("relay_segments_held", "segments", "TCP segments held at the end for earlier ones"),
    count("relay_segments_held_us", "us", "total time segments were held"),
    count("relay_segments_overdue", "1", "times the awaited segments did not arrive in time"),
    count("relay_queue_drops", "packets", "dropped by full queues of relays"),
    count("relay_codel_drops", "packets", "dropped by CoDel at relays"),
    count("relay_switched_off", "1", "times coding to a receiver was switched off"),
    count("relay_congested_s", "s", "seconds with MAC retries above the threshold, all relays"),
];

const FLOW: [Metric; 15] = [
    GOODPUT,
    real(
        "throughput_bps",
        "bit/s",
        "packets received per second, including headers and duplicates",
    ),
    CWND,
    SRTT,
    real("delay_mean_s", "s", "one-way delay in order, mean"),
    DELAY_P50,
    DELAY_P95,
    DELAY_MAX,
    LOSS,
    count("packets_sent", "packets", "packets sent, without retransmissions"),
    RETRANSMITTED,
    count("packets_received", "packets", "of these, received, duplicates not counted"),
    TIMEOUTS,
    count("fast_retransmits", "1", "losses detected by duplicate acknowledgements"),
    real("completion_s", "s", "time when all data was acknowledged, for sources of fixed size"),
];

/// Additional metrics of flows in plans that end when all flows are complete.
const TRANSFER: [Metric; 6] = [
    count("completed", "1", "1 if all data was acknowledged, otherwise 0"),
    real("transfer_s", "s", "from the start until all data was acknowledged"),
    real("spent_s", "s", "from the start until completion, giving up or the end"),
    real("transfer_goodput_bps", "bit/s", "goodput of a completed transfer"),
    real("rtt_mean_s", "s", "round-trip times of packets sent once, mean"),
    real("rto_mean_s", "s", "retransmission timeout at acknowledgements, mean"),
];

/// Additional metrics of flows with route discovery.
const ROUTED_FLOW: [Metric; 1] =
    [real("route_links_mean", "links", "route length of its packets, as known to the source")];

/// Additional metrics of networks with route discovery.
const ROUTED: [Metric; 7] = [
    count("route_discoveries", "1", "route discoveries started"),
    count("routes_found", "1", "of these, successful"),
    real("route_found_s", "s", "from the first request until a route was found, mean"),
    count("route_requests", "packets", "requests sent, own and forwarded"),
    count("route_replies", "packets", "replies sent, own and forwarded"),
    count("route_errors", "packets", "route errors sent"),
    count("links_lost", "1", "unacknowledged frames that broke a route"),
];

/// The parameter columns of radios, and their fields in a row.
fn radio_parameters() -> Vec<Column> {
    let column =
        |name, kind, unit, meaning| Column::new(name, Role::Parameter, kind, unit, meaning);
    vec![
        column("path", Kind::Text, "", "how packets were carried"),
        column("policy", Kind::Text, "", "coding preset and overrides"),
        column("transport", Kind::Text, "", "transport protocol of the load"),
        column("congestion", Kind::Text, "", "TCP: congestion control of the sender"),
        column("tcp", Kind::Text, "", "TCP implementation of the hosts"),
        column("direction", Kind::Text, "", "direction of the load"),
        column(
            "offered_bps",
            Kind::Real,
            "bit/s",
            "offered load, bits of payload per second in one direction",
        ),
        column("datagram_bytes", Kind::Integer, "B", "payload per datagram"),
        column("e1", Kind::Real, "1", "erasure ratio S-H"),
        column("e2", Kind::Real, "1", "erasure ratio H-D"),
        column("e3", Kind::Real, "1", "erasure ratio S-D"),
        column("e3_back", Kind::Real, "1", "erasure ratio D-S, if different"),
        column("duration_s", Kind::Real, "s", "length of the measured interval"),
    ]
}

/// All metrics of flows of any kind, each name once.
pub(crate) fn of_flows() -> Vec<Metric> {
    let sides = SIDE.iter().map(|(metric, _)| metric);
    let all = FLOW.iter().chain(&TRANSFER).chain(&ROUTED_FLOW).chain(sides);
    let mut metrics: Vec<Metric> = Vec::new();
    for metric in all {
        if metrics.iter().all(|known| known.name != metric.name) {
            metrics.push(*metric);
        }
    }
    metrics
}

/// A description of a results table: its name, what a row describes, and its columns.
pub struct Described {
    /// Name of its file without the ending.
    pub name: &'static str,
    /// What a row describes, or which results have these columns, in a few words.
    pub meaning: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
}

/// All columns that results may have, by table; `results` is split into parts.
pub fn catalogue() -> Vec<Described> {
    let of = |metrics: &[Metric]| metrics.iter().map(Metric::column).collect::<Vec<Column>>();
    let row: Vec<Metric> = ROW.iter().map(|(metric, _)| *metric).collect();
    let part = |meaning, columns| Described { name: "results", meaning, columns };
    let records = [
        part("a run on a radio: its parameters", radio_parameters()),
        part("a run on a radio: what was measured", of(&row)),
        part("a network", of(&NETWORK)),
        part("a network on radios, in addition", of(&ON_AIR)),
        part("a network with tunnels, in addition", of(&TUNNELS)),
        part("a network with relays, in addition", of(&RELAYS)),
        part("a network with routing, in addition", of(&ROUTED)),
    ];
    let tables = TableKind::ALL.into_iter().map(|kind| Described {
        name: kind.name(),
        meaning: kind.meaning(),
        columns: kind.columns(),
    });
    records.into_iter().chain(tables).collect()
}

/// Names of the parameters that a load has without sweeps.
pub(crate) fn parameter_names(load: &Load) -> Vec<String> {
    match load {
        Load::Radio(_) => radio_parameters().into_iter().map(|column| column.name).collect(),
        Load::Network(_) => Vec::new(),
    }
}

/// Values of the parameters that a load has without sweeps.
pub(crate) fn parameters(load: &Load) -> Vec<Value> {
    let Load::Radio(radio) = load else { return Vec::new() };
    let run = &radio.run;
    let helper = run.path == crate::file::Path::CodedHelper;
    let direction = if run.direction == Direction::Both { "both" } else { "forward" };
    vec![
        Value::from(run.path.to_string()),
        Value::from(run.policy()),
        Value::from(format!("{:?}", run.transport).to_lowercase()),
        run.congestion.map_or(Value::Absent, |congestion| Value::from(congestion.to_string())),
        match run.transport {
            Transport::Tcp => Value::from(run.tcp.to_string()),
            Transport::Udp => Value::Absent,
        },
        Value::from(direction.to_owned()),
        run.offered_bps.into(),
        run.datagram_bytes.map(|bytes| bytes as u64).into(),
        helper.then_some(run.erasures.e1).into(),
        helper.then_some(run.erasures.e2).into(),
        run.erasures.e3.into(),
        run.e3_back.into(),
        run.duration_s.into(),
    ]
}

/// Properties without a column in which runs of a plan may differ, by key; networks only differ in
/// swept values.
pub(crate) fn columnless(load: &Load) -> Vec<(&'static str, String)> {
    let Load::Radio(radio) = load else { return Vec::new() };
    let run = &radio.run;
    vec![
        ("burst_frames", format!("{:?}", run.burst_frames)),
        ("underlay", format!("{:?}", run.underlay)),
    ]
}

/// Columns other than keys and sweeps. All loads of a plan are of one kind.
pub(crate) fn columns(loads: &[&Load]) -> Vec<Column> {
    let flows = |load: &&Load| match load {
        Load::Radio(radio) if radio.run.direction == Direction::Both => 2,
        Load::Radio(_) => 1,
        Load::Network(network) => network.flows.len(),
    };
    let flows = loads.iter().map(flows).max().unwrap_or(0);
    let is_radio = matches!(loads.first(), Some(Load::Radio(_)));
    let (mut columns, totals, each): (_, Vec<Metric>, Vec<Metric>) = match is_radio {
        true => (radio_parameters(), ROW.map(|(m, _)| m).into(), SIDE.map(|(m, _)| m).into()),
        false => {
            let on_air = |load: &&Load| matches!(load, Load::Network(n) if !n.radios.is_empty());
            let relays = |load: &&Load| matches!(load, Load::Network(n) if n.relay.is_some());
            let besides: &[Metric] = if loads.iter().any(on_air) { &ON_AIR } else { &[] };
            let routed =
                loads.iter().any(|load| matches!(load, Load::Network(n) if n.routing.is_some()));
            let ends = |load: &&Load| matches!(load, Load::Network(n) if n.until_done);
            let none: &[Metric] = &[];
            let of_routes = if routed { &ROUTED[..] } else { none };
            let of_transfers = if loads.iter().any(ends) { &TRANSFER[..] } else { none };
            let of_routed = if routed { &ROUTED_FLOW[..] } else { none };
            let each = [&FLOW[..], of_transfers, of_routed].concat();
            let of_relays = if loads.iter().any(relays) { &RELAYS[..] } else { none };
            let tunnels = |load: &&Load| matches!(load, Load::Network(n) if !n.tunnels.is_empty());
            let of_tunnels = if loads.iter().any(tunnels) { &TUNNELS[..] } else { none };
            let totals = [&NETWORK[..], besides, of_tunnels, of_relays, of_routes].concat();
            (Vec::new(), totals, each)
        }
    };
    columns.extend(totals.iter().map(Metric::column));
    // On a radio with one flow, the totals suffice.
    let told_apart = if is_radio && flows == 1 { 0 } else { flows };
    for flow in 0..told_apart {
        columns.extend(each.iter().map(|metric| metric.flow_column(flow)));
    }
    columns
}

/// Whether a name, in which `*` stands for any flow number, refers to a column.
pub fn matches(name: &str, column: &str) -> bool {
    match name.split_once('*') {
        None => name == column,
        Some((before, after)) => column
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()) && !number.is_empty()),
    }
}

/// Names for an error message, with those of flows listed once.
pub(crate) fn listed(names: &[&str]) -> String {
    let mut told: Vec<String> = Vec::new();
    for name in names {
        let mut words: Vec<&str> = name.splitn(3, '.').collect();
        if let ["flow", number, _] = &mut words[..] {
            *number = "*";
        }
        let name = words.join(".");
        if !told.contains(&name) {
            told.push(name);
        }
    }
    told.join(", ")
}
