//! Radios of a network, as a plan's file spells them: what they are, and which MAC is over them.

use corridor_document::rate::{self, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[network.radio]` table: one radio for every node, all alike. A list of tables is several
/// radios, each on a channel of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RadioTable {
    /// MAC protocol.
    pub mac: MacKind,
    /// The nodes that have this radio; none = all.
    #[serde(default)]
    pub nodes: Option<Vec<usize>>,
    /// Matrix: file for this radio, instead of the network's. Links to nodes without this radio are
    /// ignored.
    #[serde(default)]
    pub path: Option<String>,
    /// DCF: IEEE 802.11 physical layer; none = a.
    #[serde(default)]
    pub standard: Option<Dot11>,
    /// Rate of data frames, bits per second: one of the standard's rates; ideal: any. 802.15.4 has
    /// only one.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<u64>,
    /// DCF: adapt the rate to acknowledgements, among all rates of the standard.
    #[serde(default)]
    pub rate_control: bool,
    /// DCF: rates to choose from, bits per second, ascending; none = all of the standard's.
    #[serde(default)]
    pub rates_bps: Option<Vec<u64>>,
    /// Frames queued or in transmission at a node; more are dropped.
    #[serde(default = "queue_frames")]
    pub queue_frames: usize,
    /// Bytes of the MAC's header and check sequence; none = 36 (DCF, with LLC and SNAP), 11
    /// (802.15.4).
    #[serde(default)]
    pub header_bytes: Option<u32>,
    /// DCF: attempts of a frame, from 1, and as many behind CTS; none = 7, and 4. 802.15.4:
    /// retries, 0 to 7; none = 3. Ideal: retries; none = 0.
    #[serde(default)]
    pub retries: Option<u32>,
    /// DCF: frames longer than this use RTS/CTS; none = no RTS.
    #[serde(default)]
    pub rts_threshold_bytes: Option<u32>,
    /// 802.15.4: backoff before channel assessment.
    #[serde(default)]
    pub backoff: Option<BackoffKind>,
    /// 802.15.4: acknowledgement timeout, milliseconds; none = 0.864 as in the standard. TinyOS
    /// uses 7.8.
    #[serde(default)]
    pub ack_wait_ms: Option<f64>,
    /// 802.15.4: whether unicast frames are acknowledged; none = true.
    #[serde(default)]
    pub acknowledged: Option<bool>,
    /// Transmit power, dBm; none = 16 (DCF), 0 (802.15.4).
    #[serde(default)]
    pub power_dbm: Option<f64>,
    /// Transmit power of each node that has the radio, dBm, in the order of `nodes`, instead of one
    /// for all.
    #[serde(default)]
    pub powers_dbm: Option<Vec<f64>>,
    /// Receiver noise floor, dBm; none = -94 (DCF), -98 (802.15.4).
    #[serde(default)]
    pub noise_dbm: Option<f64>,
    /// Receiver sensitivity, dBm; none = -82 (DCF), -95 (802.15.4).
    #[serde(default)]
    pub sensitivity_dbm: Option<f64>,
    /// Carrier sense threshold, dBm; none = -82 (DCF), -77 (802.15.4).
    #[serde(default)]
    pub sense_dbm: Option<f64>,
    /// Minimum signal to interference and noise ratio for reception, dB; none = as the rate
    /// requires (DCF), from bit errors (802.15.4).
    #[serde(default)]
    pub sinr_db: Option<f64>,
    /// Capture: a frame stronger than everything else by this much replaces the one being received,
    /// dB; none = no capture.
    #[serde(default)]
    pub capture_db: Option<f64>,
    /// With `capture_db`: maximum time after the start of the reception, microseconds; none = until
    /// its end.
    #[serde(default)]
    pub capture_us: Option<f64>,
    /// Path loss over distance, for nodes with positions.
    #[serde(default)]
    pub path_loss: Option<PathLossTable>,
    /// Variation of received power in time.
    #[serde(default)]
    pub fading: Option<FadingTable>,
    /// Ideal: reception range, metres.
    #[serde(default)]
    pub reach_m: Option<f64>,
    /// Ideal: share of frames lost, independently on each link; none = 0.
    #[serde(default)]
    pub erasure_ratio: Option<f64>,
    /// Ideal: per-frame overhead, microseconds; none = 0.
    #[serde(default)]
    pub overhead_us: Option<f64>,
    /// Propagation delay, microseconds.
    #[serde(default)]
    pub propagation_us: f64,
}

fn queue_frames() -> usize {
    50
}

/// MACs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MacKind {
    /// One channel without collisions; when it is idle, a random waiting node sends.
    Ideal,
    /// IEEE 802.11's distributed coordination function.
    Dcf,
    /// IEEE 802.15.4, unslotted.
    #[serde(rename = "802.15.4")]
    Wpan,
}

/// Physical layers of IEEE 802.11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dot11 {
    /// OFDM at 5 GHz.
    #[default]
    A,
    /// DSSS, long preambles.
    B,
    /// OFDM at 2.4 GHz, short slots.
    G,
}

/// Backoffs of 802.15.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackoffKind {
    /// As in the standard: a frame is given up after five busy channel assessments.
    #[default]
    Standard,
    /// The standard's windows as described in constrained-defaults-2012: five busy channel
    /// assessments cost one retry.
    ExponentialPaper,
    /// TinyOS, as described in constrained-defaults-2012.
    TinyosPaper,
    /// TinyOS, as in its source code.
    TinyosSource,
}

/// Loss over distance: `reference_db` + 10 `exponent` log10(d / `reference_m`), and shadowing.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathLossTable {
    /// Loss at the reference distance, dB; none = that of free space at a metre: 46.68 at 5.15 GHz
    /// (802.11a), 40.05 at 2.4 GHz (802.11b and g, 802.15.4).
    #[serde(default)]
    pub reference_db: Option<f64>,
    /// Reference distance, metres.
    #[serde(default = "one_metre")]
    pub reference_m: f64,
    /// Path loss exponent: 2 in free space, 3 to 4 indoors.
    #[serde(default = "indoors")]
    pub exponent: f64,
    /// Shadowing: standard deviation between pairs of nodes, dB.
    #[serde(default)]
    pub shadowing_db: f64,
    /// Whether shadowing is the same in all replications, like walls.
    #[serde(default)]
    pub fixed: bool,
    /// Additional loss of every link, as by an attenuator, dB.
    #[serde(default)]
    pub extra_db: f64,
}

impl Default for PathLossTable {
    fn default() -> Self {
        PathLossTable {
            reference_db: None,
            reference_m: one_metre(),
            exponent: indoors(),
            shadowing_db: 0.0,
            fixed: false,
            extra_db: 0.0,
        }
    }
}

fn one_metre() -> f64 {
    1.0
}

fn indoors() -> f64 {
    3.0
}

/// How power varies in time, about its mean: by waves that are scattered (`k`, `doppler_hz`), or
/// slowly and in decibels (`sigma_db`, `period_s`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FadingTable {
    /// Rician K: ratio of direct to scattered power; none = 0, Rayleigh fading.
    #[serde(default)]
    pub k: Option<f64>,
    /// Maximum Doppler shift, Hz.
    #[serde(default)]
    pub doppler_hz: Option<f64>,
    /// Standard deviation of slow variation (normal in decibels), dB.
    #[serde(default)]
    pub sigma_db: Option<f64>,
    /// Shortest period of the slow variation, seconds; the longest is ten times that.
    #[serde(default)]
    pub period_s: Option<f64>,
}

/// The `[network.routing]` table: nodes look for routes themselves.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingTable {
    /// Routing protocol.
    pub kind: RoutingKind,
    /// What makes one route better than another.
    #[serde(default)]
    pub metric: RoutingMetric,
    /// Discover routes once, in advance, over otherwise idle links at mean power, and keep them.
    #[serde(default, rename = "static")]
    pub is_static: bool,
    /// Maximum random delay before forwarding a request, milliseconds; none = 20.
    #[serde(default)]
    pub jitter_ms: Option<f64>,
    /// Time before the second request, seconds, doubled for each further one; none = 0.5.
    #[serde(default)]
    pub discovery_wait_s: Option<f64>,
    /// Time after which route discovery fails, seconds; none = 10.
    #[serde(default)]
    pub discovery_limit_s: Option<f64>,
    /// path-dr: LQI at which half of the frames are received; none = 102.
    #[serde(default)]
    pub half_lqi: Option<f64>,
    /// path-dr: change in LQI that changes the odds of reception by a factor of e; none = 22.
    #[serde(default)]
    pub scale_lqi: Option<f64>,
}

/// Protocols by which nodes look for routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingKind {
    /// AODV without local repair, route lifetimes and intermediate replies.
    NstAodv,
}

/// What makes one route better than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingMetric {
    /// Fewer links.
    #[default]
    HopCount,
    /// Higher product of the links' delivery ratios, estimated from LQI.
    PathDr,
}

/// A `[[network.route]]` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteTable {
    /// Nodes on the route, from the first to the last, which is the destination.
    pub path: Vec<usize>,
    /// Index of the radio used for each hop, from 0, if nodes have several; none = a wire if there
    /// is one, otherwise the first radio.
    #[serde(default)]
    pub radios: Option<Vec<usize>>,
    /// Whether packets to the first node take the reverse route.
    #[serde(default = "yes")]
    pub both_ways: bool,
}

fn yes() -> bool {
    true
}
