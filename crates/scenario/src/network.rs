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
    /// Topology.
    pub kind: Shape,
    /// Chain: parameters of all links, and their `count`.
    #[serde(default)]
    pub links: Option<LinkTable>,
    /// Dumbbell: number of senders, and of receivers.
    #[serde(default)]
    pub pairs: Option<usize>,
    /// Dumbbell: parameters of all links between hosts and routers.
    #[serde(default)]
    pub access: Option<LinkTable>,
    /// Dumbbell: the link between the routers.
    #[serde(default)]
    pub bottleneck: Option<LinkTable>,
    /// Explicit, line, star, random, matrix: number of nodes.
    #[serde(default)]
    pub nodes: Option<usize>,
    /// Explicit, and wires beside radios: one table per link, with the nodes it is `between`.
    #[serde(default)]
    pub link: Vec<LinkTable>,
    /// Grid: nodes per row.
    #[serde(default)]
    pub columns: Option<usize>,
    /// Grid: number of rows.
    #[serde(default)]
    pub rows: Option<usize>,
    /// Line, grid: distance between neighbouring nodes, metres. Star: distance from the centre.
    #[serde(default)]
    pub spacing_m: Option<f64>,
    /// Grid: distance between rows, metres; none = as `spacing_m`.
    #[serde(default)]
    pub row_spacing_m: Option<f64>,
    /// Random: of the area, metres.
    #[serde(default)]
    pub width_m: Option<f64>,
    /// Random: of the area, metres.
    #[serde(default)]
    pub height_m: Option<f64>,
    /// Positions: file with one node per line: x, y and optionally z, in metres. Matrix: file with
    /// one link per line: from, to, and the path loss in dB (with an ideal MAC: the share of frames
    /// lost), optionally followed by the share of frames lost regardless of power. The path is
    /// relative to the plan.
    #[serde(default)]
    pub path: Option<String>,
    /// Radio topologies: the radios and their MAC. An array of tables: several radios per node,
    /// each on a separate channel without mutual interference.
    #[serde(default)]
    pub radio: Option<OneOrMany<RadioTable>>,
    /// Radio topologies: make the nodes relays that combine packets of different flows.
    #[serde(default)]
    pub relay: Option<RelayTable>,
    /// Tunnels between nodes, for use by flows.
    #[serde(default)]
    pub tunnel: Vec<TunnelTable>,
    /// Explicit routes; all other packets take the route with the fewest links.
    #[serde(default)]
    pub route: Vec<RouteTable>,
    /// Radio topologies: routing protocol; none = nodes know the routes with the fewest links.
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
    /// Links listed individually.
    Explicit,
    /// Radios in a row.
    Line,
    /// Radios in rows and columns, numbered row by row.
    Grid,
    /// Node 0 in the centre and the others around it.
    Star,
    /// Radios at random positions in an area, the same in all replications.
    Random,
    /// Radios at positions given in a file.
    Positions,
    /// Radios with links given in a file.
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
    /// Chain: number of links.
    #[serde(default)]
    pub count: Option<usize>,
    /// Explicit: the two nodes it connects; "forward" is from the first to the second.
    #[serde(default)]
    pub between: Option<[usize; 2]>,
    /// Constant rate, bits per second.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<u64>,
    /// Time-varying rate.
    #[serde(default)]
    pub rate: Option<RateTable>,
    /// Outages, during which nothing is sent; none = no outages.
    #[serde(default)]
    pub outage: Option<OutageTable>,
    /// Policer in front of the queue; none = no policer.
    #[serde(default)]
    pub policer: Option<PolicerTable>,
    /// One-way propagation delay, milliseconds.
    pub delay_ms: f64,
    /// Random additional delay of each packet; none = no jitter.
    #[serde(default)]
    pub jitter: Option<JitterTable>,
    /// Queue length per direction, packets; more are tail-dropped.
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// Queue length in bytes, instead of packets.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// Maximum queueing delay, milliseconds, instead of packets: a packet that would wait longer is
    /// dropped on arrival.
    #[serde(default)]
    pub queue_ms: Option<f64>,
    /// Share of packets lost independently; none = 0.
    #[serde(default)]
    pub erasure_ratio: Option<f64>,
    /// Loss process, for losses that are not independent.
    #[serde(default)]
    pub erasure: Option<ErasureTable>,
    /// Overrides for the direction from the first end to the second.
    #[serde(default)]
    pub forward: Option<DirectionTable>,
    /// Overrides for the direction from the second end to the first.
    #[serde(default)]
    pub backward: Option<DirectionTable>,
}

/// What is different in one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectionTable {
    /// `rate_bps` for this direction.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<u64>,
    /// `rate` for this direction.
    #[serde(default)]
    pub rate: Option<RateTable>,
    /// `outage` for this direction.
    #[serde(default)]
    pub outage: Option<OutageTable>,
    /// `policer` for this direction.
    #[serde(default)]
    pub policer: Option<PolicerTable>,
    /// `delay_ms` for this direction.
    #[serde(default)]
    pub delay_ms: Option<f64>,
    /// `jitter` for this direction.
    #[serde(default)]
    pub jitter: Option<JitterTable>,
    /// `queue_packets` for this direction.
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// `queue_bytes` for this direction.
    #[serde(default)]
    pub queue_bytes: Option<u64>,
    /// `queue_ms` for this direction.
    #[serde(default)]
    pub queue_ms: Option<f64>,
    /// `erasure_ratio` for this direction.
    #[serde(default)]
    pub erasure_ratio: Option<f64>,
    /// `erasure` for this direction.
    #[serde(default)]
    pub erasure: Option<ErasureTable>,
}

/// How packets are lost.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErasureTable {
    /// Kind of process.
    pub kind: ErasureKind,
    /// Bernoulli, Gilbert-Elliott: share of packets lost.
    #[serde(default)]
    pub loss_ratio: Option<f64>,
    /// Gilbert-Elliott: mean duration of the bad state, packets, at least 1.
    #[serde(default)]
    pub burst_packets: Option<f64>,
    /// Gilbert-Elliott: share of packets lost in the good state; none = 0.
    #[serde(default)]
    pub good_loss_ratio: Option<f64>,
    /// Gilbert-Elliott: share of packets lost in the bad state; none = 1.
    #[serde(default)]
    pub bad_loss_ratio: Option<f64>,
    /// Trace: file with a 1 for each lost packet and a 0 for each other, repeated at its end; the
    /// path is relative to the plan.
    #[serde(default)]
    pub path: Option<String>,
}

/// Erasure processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErasureKind {
    /// Independent losses.
    Bernoulli,
    /// Bursty losses, with a good and a bad state.
    GilbertElliott,
    /// Losses given in a file.
    Trace,
}

/// A `[[network.tunnel]]` table: Corridor's endpoints at two nodes. Their frames go over UDP, hop
/// by hop as other packets do, however many links, wires or radios lie between. On a radio that
/// their node sends by first they keep at most two frames in the MAC; a wire's queue drops what it
/// cannot hold.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunnelTable {
    /// The two nodes it connects.
    pub between: [usize; 2],
    /// Helper node, which overhears the tunnel's frames, recodes them and sends to either end; none
    /// = no helper. If it and both ends are in range on one radio, frames are sent there without
    /// UDP. Otherwise they are sent over UDP, hop by hop: it overhears them on any radio hop in its
    /// range, and its own frames take the network's routes.
    #[serde(default)]
    pub helper: Option<usize>,
    /// Coding parameters; none = default window mode, or blocks with a helper.
    #[serde(default)]
    pub coding: Option<CodingTable>,
    /// Forward packets without coding and without reliability.
    #[serde(default)]
    pub plain: bool,
    /// Ingress queue of an end, packets; none = depends on its coding.
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
    /// Start time, seconds.
    #[serde(default)]
    pub start_s: f64,
    /// Time at which the application stops sending, seconds; none = at the end.
    #[serde(default)]
    pub stop_s: Option<f64>,
    /// Traffic that the application sends.
    pub source: SourceTable,
    /// Index of the tunnel to use, from 0, which must connect the same nodes; none = no tunnel.
    #[serde(default)]
    pub tunnel: Option<usize>,
    /// Datagrams: broadcast to all nodes in range, which do not forward them; `to` is the node that
    /// counts them.
    #[serde(default)]
    pub broadcast: bool,
    /// Hop limit of its packets; none = unlimited.
    #[serde(default)]
    pub links_max: Option<u16>,
    /// TCP settings; not for sources of datagrams.
    #[serde(default)]
    pub tcp: Option<TcpTable>,
    /// TCP/NC below this flow's TCP; none = plain TCP.
    #[serde(default)]
    pub tcp_nc: Option<TcpNcTable>,
    /// Payload per packet, bytes; none = as in the TCP preset, 1000 without TCP.
    #[serde(default)]
    pub payload_bytes: Option<u32>,
    /// Headers per packet, bytes; none = as in the TCP preset, 28 without TCP.
    #[serde(default)]
    pub header_bytes: Option<u32>,
    /// TCP without TCP/NC: time each end takes to process a received packet, one at a time,
    /// milliseconds; none = 0.
    #[serde(default)]
    pub processing_ms: Option<f64>,
}

/// What an application sends.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceTable {
    /// Kind of source.
    pub kind: SourceKind,
    /// Fixed: number of packets.
    #[serde(default)]
    pub packets: Option<u64>,
    /// Rate, cbr, poisson, on-off: bits of payload per second; on-off: during on periods.
    #[serde(default, deserialize_with = "rate::real_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<f64>,
    /// On-off: mean duration of on periods (`on_s`) and off periods (`off_s`), exponentially
    /// distributed, seconds.
    #[serde(default)]
    pub on_s: Option<f64>,
    /// See `on_s`.
    #[serde(default)]
    pub off_s: Option<f64>,
    /// Trace: file with one datagram per line: seconds after the flow's start, and bytes of
    /// payload; the path is relative to the plan.
    #[serde(default)]
    pub path: Option<String>,
}

/// Kinds of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// TCP, unlimited data.
    Ftp,
    /// TCP, a fixed number of packets.
    Fixed,
    /// TCP, limited to a rate.
    Rate,
    /// Datagrams at a constant rate.
    Cbr,
    /// Datagrams at exponentially distributed intervals.
    Poisson,
    /// Datagrams at a constant rate during on periods.
    #[serde(rename = "on-off")]
    OnOff,
    /// Datagrams at times given in a file.
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
    /// Set of default parameters.
    #[serde(default)]
    pub preset: TcpPreset,
    /// Congestion control; none = cubic with "linux" and "linux-2014", newreno with the others.
    #[serde(default)]
    pub variant: Option<TcpVariant>,
    /// Maximum window, packets.
    #[serde(default)]
    pub window_packets_max: Option<u32>,
    /// Initial congestion window, packets.
    #[serde(default)]
    pub initial_window_packets: Option<u32>,
    /// Initial slow-start threshold, packets.
    #[serde(default)]
    pub initial_ssthresh_packets: Option<u32>,
    /// What the receiver does with packets beyond a gap.
    #[serde(default)]
    pub receiver: Option<Beyond>,
    /// In-order packets per acknowledgement (beta in the papers), at least 1.
    #[serde(default)]
    pub delayed_ack_packets: Option<u32>,
    /// Delayed acknowledgement timeout, milliseconds.
    #[serde(default)]
    pub delayed_ack_timeout_ms: Option<f64>,
    /// What an acknowledgement confirms.
    #[serde(default)]
    pub acks: Option<AckKind>,
    /// Size of an acknowledgement, bytes.
    #[serde(default)]
    pub ack_bytes: Option<u32>,
    /// Whether the receiver sends selective acknowledgements; none = as the variant requires.
    #[serde(default)]
    pub sack: Option<bool>,
    /// Retransmission timeout algorithm; none = rfc6298.
    #[serde(default)]
    pub rto: Option<RtoKind>,
    /// Consecutive timeouts after which the sender gives up, at least 1; none = never.
    #[serde(default)]
    pub timeouts_max: Option<u32>,
    /// Initial retransmission timeout, seconds.
    #[serde(default)]
    pub rto_initial_s: Option<f64>,
    /// Minimum retransmission timeout, seconds.
    #[serde(default)]
    pub rto_min_s: Option<f64>,
    /// Maximum retransmission timeout, seconds.
    #[serde(default)]
    pub rto_max_s: Option<f64>,
    /// Granularity of the retransmission timer, seconds.
    #[serde(default)]
    pub rto_granularity_s: Option<f64>,
    /// Limited Transmit: new packets for the first two duplicate acknowledgements (RFC 3042).
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
    /// ECN (RFC 3168).
    #[serde(default)]
    pub ecn: Option<bool>,
    /// Linux: pacing, as with the fq queueing discipline; bbr always paces.
    #[serde(default)]
    pub pacing: Option<bool>,
    /// Linux: HyStart, which ends cubic's slow start at the first signs of a queue.
    #[serde(default)]
    pub hystart: Option<bool>,
}

/// A flow's `tcp_nc` table: TCP/NC of network-coded-tcp-2012.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpNcTable {
    /// Redundancy factor R, linear combinations per TCP segment; with `adaptive`, their long-term
    /// maximum. None = 1, adaptive 2.
    #[serde(default)]
    pub redundancy: Option<f64>,
    /// Field of the coefficients; none = gf256.
    #[serde(default)]
    pub field: Option<FieldName>,
    /// Send as many combinations as the receiver is missing instead of a fixed factor.
    #[serde(default)]
    pub adaptive: bool,
    /// Adaptive: initial estimate of the loss ratio; none = 0.
    #[serde(default)]
    pub loss_ratio: Option<f64>,
    /// Size of the coding buffer, segments; none = the maximum.
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
    /// Linux as of 2014, without RACK and tail loss probes.
    #[serde(rename = "linux-2014")]
    Linux2014,
    /// Current Linux: cubic, reno or bbr.
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
    /// Slow start only; losses are detected by timeouts.
    SlowStart,
}

/// How retransmission timeouts follow round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoKind {
    /// Smoothed round-trip time plus four times its variation (RFC 6298).
    #[serde(rename = "rfc6298")]
    Rfc6298,
    /// 2 to 3 s, drawn at random for each packet (CoAP).
    Coap,
    /// Four times the first measured round-trip time, constant.
    SemiDynamic,
}

impl TcpVariant {
    /// Whether its sender uses selective acknowledgments.
    pub fn uses_sack(self) -> bool {
        matches!(self, TcpVariant::Sack | TcpVariant::Cubic)
    }
}

/// What a receiver does with packets beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Beyond {
    /// Keep them.
    Keep,
    /// Discard them: go-back-N.
    Discard,
}

/// What an acknowledgement confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AckKind {
    /// All packets received in order.
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
    /// The amount in flight (RFC 5681).
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
