//! Radios of a network, as a plan's file spells them: what they are, and which MAC is over them.

use corridor_document::rate::{self, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The `[network.radio]` table: one radio for every node, all alike. A list of tables is several
/// radios, each on a channel of its own.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RadioTable {
    /// Who may send when.
    pub mac: MacKind,
    /// The nodes that have this radio; none = all.
    #[serde(default)]
    pub nodes: Option<Vec<usize>>,
    /// Matrix: a file for this radio alone, in place of the network's. Of either file, links to
    /// nodes without the radio are passed over.
    #[serde(default)]
    pub path: Option<String>,
    /// DCF: which of IEEE 802.11's physical layers; none = a.
    #[serde(default)]
    pub standard: Option<Dot11>,
    /// Bits per second of data frames: one of the standard's; ideal: any. 802.15.4 has one alone.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub rate_bps: Option<u64>,
    /// DCF: let rates be chosen by what is acknowledged, out of all of the standard's.
    #[serde(default)]
    pub rate_control: bool,
    /// DCF: the rates that are chosen of, bits per second, ascending; none = all of the standard's.
    #[serde(default)]
    pub rates_bps: Option<Vec<u64>>,
    /// Frames that wait at a node, or are on the air; more are dropped.
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
    /// DCF: frames longer than this are announced by an RTS; none = none are.
    #[serde(default)]
    pub rts_threshold_bytes: Option<u32>,
    /// 802.15.4: how long a node waits before it looks whether the channel is free.
    #[serde(default)]
    pub backoff: Option<BackoffKind>,
    /// 802.15.4: how long a node waits for an acknowledgement, milliseconds; none = 0.864, the
    /// standard's. TinyOS waits 7.8.
    #[serde(default)]
    pub ack_wait_ms: Option<f64>,
    /// 802.15.4: whether frames to single nodes are acknowledged; none = true.
    #[serde(default)]
    pub acknowledged: Option<bool>,
    /// Power that nodes send with, dBm; none = 16 (DCF), 0 (802.15.4).
    #[serde(default)]
    pub power_dbm: Option<f64>,
    /// The same of each node that has the radio, dBm, in the order of `nodes`, in place of one for
    /// all.
    #[serde(default)]
    pub powers_dbm: Option<Vec<f64>>,
    /// Noise of a receiver, dBm; none = -94 (DCF), -98 (802.15.4).
    #[serde(default)]
    pub noise_dbm: Option<f64>,
    /// Least power of a frame that a receiver takes, dBm; none = -82 (DCF), -95 (802.15.4).
    #[serde(default)]
    pub sensitivity_dbm: Option<f64>,
    /// Least power at which the channel is busy, dBm; none = -82 (DCF), -77 (802.15.4).
    #[serde(default)]
    pub sense_dbm: Option<f64>,
    /// Least ratio of power to noise and interference at which a frame is received, dB; none = the
    /// rate's own (DCF), by bit errors (802.15.4).
    #[serde(default)]
    pub sinr_db: Option<f64>,
    /// A frame stronger than all else by so much is taken instead of the one that is being
    /// received, dB; none = it is not.
    #[serde(default)]
    pub capture_db: Option<f64>,
    /// With `capture_db`: only so long after the reception began, microseconds; none = as long as
    /// it lasts.
    #[serde(default)]
    pub capture_us: Option<f64>,
    /// How power falls with distance, where nodes have places.
    #[serde(default)]
    pub path_loss: Option<PathLossTable>,
    /// How power varies in time.
    #[serde(default)]
    pub fading: Option<FadingTable>,
    /// Ideal: who hears whom, metres: everybody so near.
    #[serde(default)]
    pub reach_m: Option<f64>,
    /// Ideal: share of frames lost, on each link by itself; none = 0.
    #[serde(default)]
    pub erasure_ratio: Option<f64>,
    /// Ideal: time a frame takes beyond its bits, microseconds; none = 0.
    #[serde(default)]
    pub overhead_us: Option<f64>,
    /// From sending to receiving, microseconds.
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
    /// One channel; when it is idle, one of those who wait is drawn. Nobody collides.
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
    /// The standard's: a frame is given up when the channel was busy five times.
    #[default]
    Standard,
    /// The standard's windows as constrained-defaults-2012 words them: a channel that was busy five
    /// times costs one of the retries.
    ExponentialPaper,
    /// TinyOS's, as constrained-defaults-2012 words it.
    TinyosPaper,
    /// TinyOS's, as its source has it.
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
    /// 2 in free space, 3 to 4 indoors.
    #[serde(default = "indoors")]
    pub exponent: f64,
    /// Standard deviation of what differs from pair to pair, dB.
    #[serde(default)]
    pub shadowing_db: f64,
    /// Whether that is the same in all replications, as walls are.
    #[serde(default)]
    pub fixed: bool,
    /// Loss of every link besides, as of an attenuator, dB.
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
    /// Power of the direct wave over that of the scattered ones; none = 0, Rayleigh fading.
    #[serde(default)]
    pub k: Option<f64>,
    /// Greatest Doppler shift, Hz.
    #[serde(default)]
    pub doppler_hz: Option<f64>,
    /// Standard deviation of what varies normally in decibels, dB.
    #[serde(default)]
    pub sigma_db: Option<f64>,
    /// Shortest period of what varies in decibels, seconds; the longest is ten times that.
    #[serde(default)]
    pub period_s: Option<f64>,
}

/// The `[network.routing]` table: nodes look for routes themselves.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingTable {
    /// How.
    pub kind: RoutingKind,
    /// What makes one route better than another.
    #[serde(default)]
    pub metric: RoutingMetric,
    /// Routes are looked for once, beforehand, over links of mean power that nobody else uses, and
    /// stay as they are.
    #[serde(default, rename = "static")]
    pub is_static: bool,
    /// Nodes pass requests on after up to so long, milliseconds; none = 20.
    #[serde(default)]
    pub jitter_ms: Option<f64>,
    /// Seconds before the second request, and from each to the next twice as many; none = 0.5.
    #[serde(default)]
    pub discovery_wait_s: Option<f64>,
    /// Seconds until no route was found; none = 10.
    #[serde(default)]
    pub discovery_limit_s: Option<f64>,
    /// path-dr: LQI at which half of the frames come through; none = 102.
    #[serde(default)]
    pub half_lqi: Option<f64>,
    /// path-dr: by how much LQI differ whose odds differ by e; none = 22.
    #[serde(default)]
    pub scale_lqi: Option<f64>,
}

/// Protocols by which nodes look for routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingKind {
    /// AODV without local repair, lifetimes, and replies of others than the destination.
    NstAodv,
}

/// What makes one route better than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingMetric {
    /// Fewer links.
    #[default]
    HopCount,
    /// A greater product of the delivery ratios that the links' LQI stand for.
    PathDr,
}

/// A `[[network.route]]` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteTable {
    /// The nodes that packets pass, from the first to the last, which they are for.
    pub path: Vec<usize>,
    /// By which radio each hop is made, counted from 0, where nodes have several; none = a wire
    /// where there is one, else the first radio.
    #[serde(default)]
    pub radios: Option<Vec<usize>>,
    /// Whether packets for the first take the same route back.
    #[serde(default = "yes")]
    pub both_ways: bool,
}

fn yes() -> bool {
    true
}
