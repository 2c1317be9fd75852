//! Networks of links and radios with their flows, as a plan's file spells them.

use core::fmt;

use corridor_document::rate::{self, Rate};
use corridor_proto::tcpnc::{BUFFER_SEGMENTS_MAX, NcParams, Redundancy};
use corridor_proto::{CodingTable, FieldName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::one_or_many::OneOrMany;
use crate::radio::{RadioTable, RouteTable, RoutingTable};
use crate::relay::RelayTable;
use crate::varying::{JitterTable, OutageTable, PolicerTable, RateTable};

/// The `[network]` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkTable {
    /// Which shape.
    pub kind: Shape,
    /// Chain: the links, all alike, and their `count`.
    #[serde(default)]
    pub links: Option<LinkTable>,
    /// Dumbbell: senders, and as many receivers.
    #[serde(default)]
    pub pairs: Option<usize>,
    /// Dumbbell: the links between hosts and routers, all alike.
    #[serde(default)]
    pub access: Option<LinkTable>,
    /// Dumbbell: the link between the routers.
    #[serde(default)]
    pub bottleneck: Option<LinkTable>,
    /// Explicit, line, star, random, matrix: how many nodes.
    #[serde(default)]
    pub nodes: Option<usize>,
    /// Explicit, and wires beside radios: each link, and which nodes it is `between`.
    #[serde(default)]
    pub link: Vec<LinkTable>,
    /// Grid: nodes in a row.
    #[serde(default)]
    pub columns: Option<usize>,
    /// Grid: rows of nodes.
    #[serde(default)]
    pub rows: Option<usize>,
    /// Line, grid: from each node to the next, metres. Star: from the centre to the others.
    #[serde(default)]
    pub spacing_m: Option<f64>,
    /// Grid: from each row to the next, metres; none = as `spacing_m`.
    #[serde(default)]
    pub row_spacing_m: Option<f64>,
    /// Random: of the area, metres.
    #[serde(default)]
    pub width_m: Option<f64>,
    /// Random: of the area, metres.
    #[serde(default)]
    pub height_m: Option<f64>,
    /// Positions: a file with x, y, and z where it is not 0, in metres, a node in each line.
    /// Matrix: a file with a link in each line: from, to, and its loss in dB (with an ideal MAC the
    /// share of frames lost); behind it may be the share of frames lost whatever their power. It is
    /// looked for beside the plan.
    #[serde(default)]
    pub path: Option<String>,
    /// Nodes with places: their radios, and the MAC over them. A list: several radios, each on a
    /// channel of its own, where no other is heard.
    #[serde(default)]
    pub radio: Option<OneOrMany<RadioTable>>,
    /// Nodes on radios: relays that combine packets of different flows.
    #[serde(default)]
    pub relay: Option<RelayTable>,
    /// Tunnels between nodes, through which flows may go.
    #[serde(default)]
    pub tunnel: Vec<TunnelTable>,
    /// Routes that packets take; others take the one with the fewest links.
    #[serde(default)]
    pub route: Vec<RouteTable>,
    /// Radios: how nodes look for routes themselves; none = they know those with the fewest links.
    #[serde(default)]
    pub routing: Option<RoutingTable>,
}

/// Shapes of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Nodes 0 to `links.count` in a row.
    Chain,
    /// Senders 0 to n-1, receivers n to 2n-1, routers 2n and 2n+1 with the bottleneck between.
    Dumbbell,
    /// Link by link.
    Explicit,
    /// Radios in a row.
    Line,
    /// Radios in rows and columns, numbered row by row.
    Grid,
    /// A radio in the centre, which is node 0, and the others around it.
    Star,
    /// Radios anywhere in an area, at the same places in all replications.
    Random,
    /// Radios where a file says.
    Positions,
    /// Radios with links as a file says.
    Matrix,
}

impl Shape {
    /// Whether radios join its nodes, rather than links.
    pub fn is_radio(self) -> bool {
        !matches!(self, Shape::Chain | Shape::Dumbbell | Shape::Explicit)
    }
}

/// A link, or several alike.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    /// Chain: how many of them.
    #[serde(default)]
    pub count: Option<usize>,
    /// Explicit: the nodes at its ends; "forward" is from the first to the second.
    #[serde(default)]
    pub between: Option<[usize; 2]>,
    /// Bits per second, where they are always the same.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<u64>,
    /// Bits per second, where they change with time.
    #[serde(default)]
    pub rate: Option<RateTable>,
    /// Times at which nothing is sent; none = never.
    #[serde(default)]
    pub outage: Option<OutageTable>,
    /// What is dropped before it comes to the queue; none = nothing.
    #[serde(default)]
    pub policer: Option<PolicerTable>,
    /// Propagation one way, milliseconds.
    pub delay_ms: f64,
    /// By how much each packet takes longer than that; none = not at all.
    #[serde(default)]
    pub jitter: Option<JitterTable>,
    /// Packets that wait for the link in each direction; more are dropped at the tail.
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// Bytes that wait, in place of packets.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// Longest that a packet may wait, in place of packets, milliseconds: what would wait longer
    /// is dropped when it comes.
    #[serde(default)]
    pub queue_ms: Option<f64>,
    /// Share of packets lost, independently of each other; none = 0.
    #[serde(default)]
    pub erasure_ratio: Option<f64>,
    /// How packets are lost, where they are not lost independently.
    #[serde(default)]
    pub erasure: Option<ErasureTable>,
    /// What is different from the first end to the second.
    #[serde(default)]
    pub forward: Option<DirectionTable>,
    /// What is different from the second end to the first.
    #[serde(default)]
    pub backward: Option<DirectionTable>,
}

/// What is different in one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectionTable {
    /// See [`LinkTable::rate_bps`].
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<u64>,
    /// See [`LinkTable::rate`].
    #[serde(default)]
    pub rate: Option<RateTable>,
    /// See [`LinkTable::outage`].
    #[serde(default)]
    pub outage: Option<OutageTable>,
    /// See [`LinkTable::policer`].
    #[serde(default)]
    pub policer: Option<PolicerTable>,
    /// See [`LinkTable::delay_ms`].
    #[serde(default)]
    pub delay_ms: Option<f64>,
    /// See [`LinkTable::jitter`].
    #[serde(default)]
    pub jitter: Option<JitterTable>,
    /// See [`LinkTable::queue_packets`].
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// See [`LinkTable::queue_bytes`].
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// See [`LinkTable::queue_ms`].
    #[serde(default)]
    pub queue_ms: Option<f64>,
    /// See [`LinkTable::erasure_ratio`].
    #[serde(default)]
    pub erasure_ratio: Option<f64>,
    /// See [`LinkTable::erasure`].
    #[serde(default)]
    pub erasure: Option<ErasureTable>,
}

/// How packets are lost.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErasureTable {
    /// Which process.
    pub kind: ErasureKind,
    /// Bernoulli, Gilbert-Elliott: share of packets lost.
    #[serde(default)]
    pub loss_ratio: Option<f64>,
    /// Gilbert-Elliott: packets in the mean stay in the bad state, from 1.
    #[serde(default)]
    pub burst_packets: Option<f64>,
    /// Gilbert-Elliott: share of packets lost in the good state; none = 0.
    #[serde(default)]
    pub good_loss_ratio: Option<f64>,
    /// Gilbert-Elliott: share of packets lost in the bad state; none = 1.
    #[serde(default)]
    pub bad_loss_ratio: Option<f64>,
    /// Trace: a file with a 1 for each packet lost and a 0 for each that is not; it is looked for
    /// beside the plan, and starts again at its end.
    #[serde(default)]
    pub path: Option<String>,
}

/// Erasure processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErasureKind {
    /// Independent losses.
    Bernoulli,
    /// Losses in bursts: a good state, and a bad one.
    GilbertElliott,
    /// As a file says.
    Trace,
}

/// A `[[network.tunnel]]` table: Corridor's endpoints at two nodes. Their frames go over UDP, hop
/// by hop as other packets do, however many links, wires or radios lie between. On a radio that
/// their node sends by first they keep at most two frames in the MAC; a wire's queue drops what it
/// cannot hold.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunnelTable {
    /// The nodes at its ends.
    pub between: [usize; 2],
    /// A node that overhears the tunnel's frames, recodes them, and sends to either end; none =
    /// none. Where it and both ends hear each other on one radio, frames go on it as they are,
    /// without UDP. Else they go over UDP, hop by hop: it overhears them on any hop by radio in its
    /// range, and its own take the network's routes.
    #[serde(default)]
    pub helper: Option<usize>,
    /// Coding parameters; none = window mode as it is by default, blocks with a helper.
    #[serde(default)]
    pub coding: Option<CodingTable>,
    /// Carry packets as they are, in place of coding: the unreliable forwarder.
    #[serde(default)]
    pub plain: bool,
    /// Packets the ingress queue of an end holds; none = what suits its coding.
    #[serde(default)]
    pub ingress_packets: Option<usize>,
}

/// A `[[flow]]` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTable {
    /// Node of the sender.
    pub from: usize,
    /// Node of the receiver.
    pub to: usize,
    /// When it starts, seconds.
    #[serde(default)]
    pub start_s: f64,
    /// When its application stops, seconds; none = at the end.
    #[serde(default)]
    pub stop_s: Option<f64>,
    /// What its application sends.
    pub source: SourceTable,
    /// The tunnel that it goes through, counted from 0, between the same nodes; none = none.
    #[serde(default)]
    pub tunnel: Option<usize>,
    /// Datagrams: to all that hear the sender, none of whom passes them on; `to` is the node that
    /// counts them.
    #[serde(default)]
    pub broadcast: bool,
    /// Most links that its packets may cross; none = as many as there are.
    #[serde(default)]
    pub links_max: Option<u16>,
    /// TCP's settings; `cbr` has none.
    #[serde(default)]
    pub tcp: Option<TcpTable>,
    /// Network coding between TCP and the network; none = plain TCP.
    #[serde(default)]
    pub tcp_nc: Option<TcpNcTable>,
    /// Bytes of data in a packet; none = as the preset of TCP, 1000 without TCP.
    #[serde(default)]
    pub payload_bytes: Option<u32>,
    /// Bytes of headers on a packet; none = as the preset of TCP, 28 without TCP.
    #[serde(default)]
    pub header_bytes: Option<u32>,
    /// TCP without TCP/NC: how long each end works on a packet that has come, one after the other,
    /// milliseconds; none = 0.
    #[serde(default)]
    pub processing_ms: Option<f64>,
}

/// What an application sends.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceTable {
    /// Which kind.
    pub kind: SourceKind,
    /// Fixed: how many packets.
    #[serde(default)]
    pub packets: Option<u64>,
    /// Rate, cbr, poisson, on-off: bits of data per second; on-off: while it sends.
    #[serde(default, deserialize_with = "rate::real_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<f64>,
    /// On-off: mean time that it sends, and that it is silent, seconds, each drawn exponentially.
    #[serde(default)]
    pub on_s: Option<f64>,
    /// See `on_s`.
    #[serde(default)]
    pub off_s: Option<f64>,
    /// Trace: a file with a datagram in each line: seconds after the flow's start, and bytes of
    /// data. It is looked for beside the plan.
    #[serde(default)]
    pub path: Option<String>,
}

/// Kinds of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// TCP, all that it can.
    Ftp,
    /// TCP, so many packets.
    Fixed,
    /// TCP, no faster than a rate.
    Rate,
    /// Datagrams at a constant rate.
    Cbr,
    /// Datagrams at intervals that are drawn exponentially.
    Poisson,
    /// Datagrams at a constant rate, with silences.
    #[serde(rename = "on-off")]
    OnOff,
    /// Datagrams when a file says.
    Trace,
}

impl SourceKind {
    /// Whether it sends datagrams rather than TCP.
    pub fn sends_datagrams(self) -> bool {
        use SourceKind::{Cbr, OnOff, Poisson, Trace};
        matches!(self, Cbr | Poisson | OnOff | Trace)
    }
}

/// A flow's `tcp` table: a preset, and what is different from it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpTable {
    /// Where the defaults come from.
    #[serde(default)]
    pub preset: TcpPreset,
    /// Congestion control; none = cubic with "linux" and "linux-2014", newreno with the others.
    #[serde(default)]
    pub variant: Option<TcpVariant>,
    /// Largest window, packets.
    #[serde(default)]
    pub window_packets_max: Option<u32>,
    /// Congestion window at the start, packets.
    #[serde(default)]
    pub initial_window_packets: Option<u32>,
    /// Slow-start threshold at the start, packets.
    #[serde(default)]
    pub initial_ssthresh_packets: Option<u32>,
    /// What the receiver does with packets beyond a gap.
    #[serde(default)]
    pub receiver: Option<Beyond>,
    /// Packets in order for each acknowledgement (the papers' beta), from 1.
    #[serde(default)]
    pub delayed_ack_packets: Option<u32>,
    /// Longest that an acknowledgement is delayed, milliseconds.
    #[serde(default)]
    pub delayed_ack_timeout_ms: Option<f64>,
    /// What an acknowledgement confirms.
    #[serde(default)]
    pub acks: Option<AckKind>,
    /// Bytes of an acknowledgement.
    #[serde(default)]
    pub ack_bytes: Option<u32>,
    /// Whether the receiver tells what has arrived beyond a gap; none = as the variant needs.
    #[serde(default)]
    pub sack: Option<bool>,
    /// How the retransmission timeout follows the round-trip times; none = rfc6298.
    #[serde(default)]
    pub rto: Option<RtoKind>,
    /// Timeouts in a row after which the sender gives up, from 1; none = never.
    #[serde(default)]
    pub timeouts_max: Option<u32>,
    /// First retransmission timeout, seconds.
    #[serde(default)]
    pub rto_initial_s: Option<f64>,
    /// Least retransmission timeout, seconds.
    #[serde(default)]
    pub rto_min_s: Option<f64>,
    /// Largest retransmission timeout, seconds.
    #[serde(default)]
    pub rto_max_s: Option<f64>,
    /// Ticks of the clock that times out, seconds.
    #[serde(default)]
    pub rto_granularity_s: Option<f64>,
    /// New packets for the first two duplicate acknowledgements (RFC 3042).
    #[serde(default)]
    pub limited_transmit: Option<bool>,
    /// No second fast retransmit for losses of one window (`bugFix_` of ns-2).
    #[serde(default)]
    pub careful: Option<bool>,
    /// What is halved on loss.
    #[serde(default)]
    pub reduction: Option<ReductionKind>,
    /// Slow start after an idle time.
    #[serde(default)]
    pub slow_start_restart: Option<bool>,
    /// Which round-trip times are measured.
    #[serde(default)]
    pub rtt_sampling: Option<SamplingKind>,
    /// Answer to congestion that the network echoes (RFC 3168).
    #[serde(default)]
    pub ecn: Option<bool>,
    /// Linux: packets leave at a pace, as with the queueing discipline fq; bbr's always do.
    #[serde(default)]
    pub pacing: Option<bool>,
    /// Linux: cubic's slow start ends with the first signs of a queue.
    #[serde(default)]
    pub hystart: Option<bool>,
}

/// A flow's `tcp_nc` table: TCP/NC of network-coded-tcp-2012.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpNcTable {
    /// Redundancy factor R, combinations for each segment of TCP's; adaptive: the most of them, in
    /// the long run. None = 1, adaptive 2.
    #[serde(default)]
    pub redundancy: Option<f64>,
    /// Field of the coefficients; none = gf256.
    #[serde(default)]
    pub field: Option<FieldName>,
    /// Send as many combinations as are missing, not a fixed factor.
    #[serde(default)]
    pub adaptive: bool,
    /// Adaptive: share of packets lost with which the estimate begins; none = 0.
    #[serde(default)]
    pub loss_ratio: Option<f64>,
    /// Segments in the coding buffer; none = as many as there can be.
    #[serde(default)]
    pub buffer_segments: Option<u16>,
}

/// Where a flow's defaults come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TcpPreset {
    /// The agents of ns-2.35.
    Ns2,
    /// Nodes with little memory (Betzler et al. 2012).
    Constrained,
    /// Linux as it was in 2014, with neither RACK nor probes of the tail.
    #[serde(rename = "linux-2014")]
    Linux2014,
    /// Linux as it is today: cubic, reno or bbr.
    #[default]
    Linux,
}

impl TcpPreset {
    /// Its congestion control unless the plan names one.
    pub fn variant(self) -> TcpVariant {
        match self {
            TcpPreset::Linux | TcpPreset::Linux2014 => TcpVariant::Cubic,
            TcpPreset::Ns2 | TcpPreset::Constrained => TcpVariant::NewReno,
        }
    }
}

impl fmt::Display for TcpPreset {
    /// As plans spell it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TcpPreset::Ns2 => "ns2",
            TcpPreset::Constrained => "constrained",
            TcpPreset::Linux2014 => "linux-2014",
            TcpPreset::Linux => "linux",
        })
    }
}

/// Congestion control of a simulated sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum TcpVariant {
    Tahoe,
    Reno,
    NewReno,
    Sack,
    Cubic,
    Vegas,
    Bbr,
    /// Slow start alone: losses are told by timeouts.
    SlowStart,
}

/// How retransmission timeouts follow round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoKind {
    /// Smoothed, and four times their variation (RFC 6298).
    #[serde(rename = "rfc6298")]
    Rfc6298,
    /// Not at all: 2 to 3 s, drawn anew for each packet (CoAP).
    Coap,
    /// Four times the first one, for ever.
    SemiDynamic,
}

impl TcpVariant {
    /// Whether its sender uses selective acknowledgements.
    pub fn uses_sack(self) -> bool {
        matches!(self, TcpVariant::Sack | TcpVariant::Cubic)
    }
}

/// What a receiver does with packets beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Beyond {
    /// Keeps them.
    Keep,
    /// Discards them: go-back-N.
    Discard,
}

/// What an acknowledgement confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AckKind {
    /// All that has arrived in order.
    Cumulative,
    /// One packet.
    Positive,
}

/// What is halved on loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReductionKind {
    /// The window (ns-2).
    Window,
    /// What is in flight (RFC 5681).
    Flight,
}

/// Which round-trip times are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SamplingKind {
    /// One packet at a time.
    OnePacket,
    /// Every acknowledgement of new data.
    Timestamps,
}

impl FlowTable {
    /// Payload bytes of a datagram, unless the plan gives them.
    pub const DATAGRAM_PAYLOAD_BYTES: u32 = 1_000;
    /// Header bytes of a datagram (IPv4 and UDP), unless the plan gives them.
    pub const DATAGRAM_HEADER_BYTES: u32 = 28;
}

impl TcpNcTable {
    /// The layers' parameters.
    pub fn params(&self) -> NcParams {
        let redundancy = if self.adaptive {
            let loss_ratio = self.loss_ratio.unwrap_or(0.0);
            Redundancy::Adaptive { loss_ratio, factor_max: self.redundancy.unwrap_or(2.0) }
        } else {
            Redundancy::Fixed { factor: self.redundancy.unwrap_or(1.0) }
        };
        NcParams {
            field: self.field.unwrap_or(FieldName::Gf256).into(),
            redundancy,
            buffer_segments: self.buffer_segments.unwrap_or(BUFFER_SEGMENTS_MAX),
            ..NcParams::default()
        }
    }
}
