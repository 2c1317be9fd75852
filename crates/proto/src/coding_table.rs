//! The `[coding]` table of configuration files: a preset, and what differs from it.

use core::time::Duration;

use corridor_codec::{Field, MAX_BLOCK_SIZE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{BLOCKS_IN_FLIGHT_MAX, WINDOW_SYMBOLS_MAX};
use crate::config::{CodingParams, Delivery, Goal, Order, Policy, Redundancy, UdpDelivery};

/// The `[coding]` table of a configuration or scenario file. The preset gives the rest.
// Flat, like the table in a file: serde could not reject unknown keys beside flattened groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodingTable {
    /// Set of default parameters; must be the same at both ends. Default: `window` without a
    /// helper, `block` with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// Field of the coding coefficients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldName>,
    /// Blocks: the order in which symbols leave the encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderName>,
    /// TCP/NC: linear combinations sent per TCP segment; with `adaptive`, their long-term maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub redundancy: Option<f64>,
    /// TCP/NC: send as many combinations as the receiver is missing instead of a fixed factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<bool>,
    /// Blocks: source symbols per block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_BLOCK_SIZE))]
    pub block_size: Option<u16>,
    /// Window mode: maximum number of symbols in flight (sent and not acknowledged); the window
    /// uses as many of them as the path needs. For the receiving direction it only limits the
    /// number of lanes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = WINDOW_SYMBOLS_MAX))]
    pub window_size: Option<u16>,
    /// Window mode: optimization goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalName>,
    /// Window mode: maximum bytes of repair symbols per byte of source symbols, over about one
    /// window. Losses that cannot be repaired within this limit are given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-expected" = "a ratio above 0, at most 10"))]
    pub max_overhead: Option<f64>,
    /// Window mode: which packets are delivered in order, waiting for earlier ones. Set in-order at
    /// both ends: the sender marks the packets, the receiver decides how long they wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryName>,
    /// Window mode, delivery auto: delivery of UDP flows by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_udp: Option<UdpDeliveryTable>,
    /// Window mode: whether the channel is half-duplex, shared by both directions as on Wi-Fi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-expected" = "true, false or \"auto\""))]
    pub half_duplex: Option<HalfDuplex>,
    /// Window mode: reduce the receive windows that TCP advertises instead of building up a queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clamp_windows: Option<bool>,
    /// Maximum length of a source symbol, bytes; 0: as large as fits the underlay. It limits the
    /// tunnel's MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-expected" = "a number of bytes, or 0 for as large as fits the underlay"))]
    pub symbol_size: Option<u16>,
    /// Blocks: acknowledgement timeout of the encoder, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub encoder_timeout_ms: Option<f64>,
    /// Blocks, policy playncool: factor on the helper's maximum budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub helper_overshoot: Option<f64>,
    /// Blocks: factor on the encoder's budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub overshoot: Option<f64>,
    /// Blocks: how many coded symbols the encoder and the helper send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// Blocks, policy playncool: repair with a margin, so that one round usually suffices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_margin: Option<bool>,
    /// Blocks: put several packets into one source symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<bool>,
    /// Blocks: maximum number of unacknowledged blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = BLOCKS_IN_FLIGHT_MAX))]
    pub blocks_in_flight: Option<u16>,
    /// Blocks and window mode: maximum time that in-order delivery waits for missing packets,
    /// milliseconds. If set to a second or more, or if the window has several lanes, it is raised
    /// to at least 8 round trips (each counted as at most 1 s) and the time of 150 frames, up to 30
    /// s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub delivery_deadline_ms: Option<f64>,
    /// Blocks and window mode: minimum time between two acknowledgements that complete nothing,
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60_000))]
    pub ack_interval_ms: Option<f64>,
}

/// Named sets of coding parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Sliding window between two ends: low delay, handles any loss, needs no tuning.
    Window,
    /// Systematic blocks over GF(2^8), several in flight; a helper can recode them.
    // The name it had while it was the default.
    #[serde(alias = "default")]
    Block,
    /// Blocks with the parameters of the FRANC paper's tests.
    Paper,
    /// TCP/NC, below each TCP connection separately.
    TcpNc,
}

impl core::fmt::Display for Preset {
    /// As files spell it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Preset::Window => "window",
            Preset::Block => "block",
            Preset::Paper => "paper",
            Preset::TcpNc => "tcp-nc",
        })
    }
}

/// Spelling of whether the channel is half-duplex: `"auto"`, `true` or `false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected \"auto\", true or false")]
pub enum HalfDuplex {
    /// It is as told.
    Told(bool),
    /// It is found out.
    Found(Auto),
}

/// The word `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// Detected automatically.
    Auto,
}

/// Spelling of a [`Goal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GoalName {
    /// Nearly all capacity carries packets; losses are repaired once they are reported.
    Throughput,
    /// Part of the capacity carries repair symbols before any loss is reported.
    LowDelay,
    /// Almost no spurious repair symbols, for links charged by volume.
    Bulk,
}

/// Spelling of a [`Delivery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryName {
    /// By flow: TCP and bulk UDP in order, real-time and sparse flows immediately.
    Auto,
    /// All packets in order.
    InOrder,
    /// Each packet as soon as it is received or decoded.
    Immediate,
}

impl From<DeliveryName> for Delivery {
    fn from(name: DeliveryName) -> Delivery {
        match name {
            DeliveryName::Auto => Delivery::Auto,
            DeliveryName::InOrder => Delivery::InOrder,
            DeliveryName::Immediate => Delivery::Immediate,
        }
    }
}

/// How flows of UDP are delivered; what is left out is found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdpDeliveryTable {
    /// QUIC; auto: in order during bulk transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<DeliveryName>,
    /// Unknown flows that send full packets and build a standing queue; auto: in order, unless they
    /// do not react to drops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<DeliveryName>,
    /// RTP, and packets whose DSCP marks them as real-time; auto: immediate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_time: Option<DeliveryName>,
    /// All other flows except bulk; auto: immediate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<DeliveryName>,
}

impl UdpDeliveryTable {
    /// What this table stands for, over a preset.
    fn resolve(self, base: UdpDelivery) -> UdpDelivery {
        UdpDelivery {
            quic: self.quic.map_or(base.quic, Delivery::from),
            bulk: self.bulk.map_or(base.bulk, Delivery::from),
            real_time: self.real_time.map_or(base.real_time, Delivery::from),
            other: self.other.map_or(base.other, Delivery::from),
        }
    }
}

/// Spelling of a [`Field`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldName {
    /// GF(2).
    Gf2,
    /// GF(2^4), polynomial 0x13.
    Gf16,
    /// GF(2^8), polynomial 0x11D.
    Gf256,
}

impl From<FieldName> for Field {
    fn from(name: FieldName) -> Field {
        match name {
            FieldName::Gf2 => Field::Gf2,
            FieldName::Gf16 => Field::Gf16,
            FieldName::Gf256 => Field::Gf256,
        }
    }
}

/// Spelling of an [`Order`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// Uncoded source symbols as they are added, then coded symbols.
    Systematic,
    /// Only coded symbols, over the whole block.
    Dense,
    /// Only coded symbols, each over the source symbols added so far.
    OnTheFly,
}

/// Spelling of a [`Policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// Budgets of PlayNCool, as used in the FRANC paper.
    Playncool,
    /// Credits from the optimal number of transmissions, then repair by feedback.
    Credit,
}

impl CodingTable {
    /// The preset, given or not: a window for two ends, blocks where a helper recodes.
    pub fn preset_for(&self, has_helper: bool) -> Preset {
        self.preset.unwrap_or(if has_helper { Preset::Block } else { Preset::Window })
    }

    /// Keys that are given, and have no effect under the preset.
    pub fn without_effect(&self, has_helper: bool) -> Vec<&'static str> {
        let preset = self.preset_for(has_helper);
        let (window, tcp_nc) = (preset == Preset::Window, preset == Preset::TcpNc);
        let block = !window && !tcp_nc;
        let by_need = window && self.delivery.is_none_or(|name| name == DeliveryName::Auto);
        let keys = [
            ("order", block, self.order.is_some()),
            ("redundancy", tcp_nc, self.redundancy.is_some()),
            ("adaptive", tcp_nc, self.adaptive.is_some()),
            ("block_size", block, self.block_size.is_some()),
            ("window_size", window, self.window_size.is_some()),
            ("goal", window, self.goal.is_some()),
            ("max_overhead", window, self.max_overhead.is_some()),
            ("delivery", window, self.delivery.is_some()),
            ("delivery_udp", by_need, self.delivery_udp.is_some()),
            ("half_duplex", window, self.half_duplex.is_some()),
            ("clamp_windows", window, self.clamp_windows.is_some()),
            ("symbol_size", !tcp_nc, self.symbol_size.is_some()),
            ("encoder_timeout_ms", block, self.encoder_timeout_ms.is_some()),
            ("overshoot", block, self.overshoot.is_some()),
            ("helper_overshoot", block, self.helper_overshoot.is_some()),
            ("policy", block, self.policy.is_some()),
            ("repair_margin", block, self.repair_margin.is_some()),
            ("bundle", block, self.bundle.is_some()),
            ("blocks_in_flight", block, self.blocks_in_flight.is_some()),
            ("delivery_deadline_ms", !tcp_nc, self.delivery_deadline_ms.is_some()),
            ("ack_interval_ms", !tcp_nc, self.ack_interval_ms.is_some()),
        ];
        let idle = keys.into_iter().filter(|(_, has_effect, is_given)| *is_given && !has_effect);
        idle.map(|(name, ..)| name).collect()
    }

    /// The parameters this table stands for. Ranges are checked by `StationConfig::check`.
    pub fn resolve(&self, has_helper: bool) -> CodingParams {
        let base = match self.preset_for(has_helper) {
            Preset::Paper => CodingParams::paper(),
            Preset::Block => CodingParams::default(),
            Preset::TcpNc => CodingParams::tcp_nc(),
            Preset::Window => CodingParams::window(),
        };
        CodingParams {
            half_duplex: match self.half_duplex {
                Some(HalfDuplex::Told(told)) => Some(told),
                Some(HalfDuplex::Found(Auto::Auto)) => None,
                None => base.half_duplex,
            },
            clamp_windows: self.clamp_windows.unwrap_or(base.clamp_windows),
            mode: base.mode,
            window_size: self.window_size.unwrap_or(base.window_size),
            window_lane: base.window_lane,
            goal: self.goal.map_or(base.goal, |name| match name {
                GoalName::Throughput => Goal::Throughput,
                GoalName::LowDelay => Goal::LowDelay,
                GoalName::Bulk => Goal::Bulk,
            }),
            max_overhead: self.max_overhead.or(base.max_overhead),
            delivery: self.delivery.map_or(base.delivery, Delivery::from),
            delivery_udp: self.delivery_udp.unwrap_or_default().resolve(base.delivery_udp),
            tcp_nc: base.tcp_nc.map(|redundancy| match (self.adaptive, self.redundancy) {
                (Some(true), factor) => {
                    Redundancy::Adaptive { loss_ratio: 0.0, factor_max: factor.unwrap_or(2.0) }
                }
                (_, Some(factor)) => Redundancy::Fixed { factor },
                (_, None) => redundancy,
            }),
            field: self.field.map_or(base.field, Field::from),
            order: self.order.map_or(base.order, |name| match name {
                OrderName::Systematic => Order::Systematic,
                OrderName::Dense => Order::Dense,
                OrderName::OnTheFly => Order::OnTheFly,
            }),
            block_size: self.block_size.unwrap_or(base.block_size),
            symbol_size: self.symbol_size.unwrap_or(base.symbol_size),
            encoder_timeout: milliseconds(self.encoder_timeout_ms, base.encoder_timeout),
            overshoot: self.overshoot.unwrap_or(base.overshoot),
            helper_overshoot: self.helper_overshoot.unwrap_or(base.helper_overshoot),
            policy: self.policy.map_or(base.policy, |name| match name {
                PolicyName::Playncool => Policy::PlayNCool,
                PolicyName::Credit => Policy::Credit,
            }),
            repair_margin: self.repair_margin.unwrap_or(base.repair_margin),
            bundle: self.bundle.unwrap_or(base.bundle),
            blocks_in_flight: self.blocks_in_flight.unwrap_or(base.blocks_in_flight),
            delivery_deadline: milliseconds(self.delivery_deadline_ms, base.delivery_deadline),
            ack_interval: milliseconds(self.ack_interval_ms, base.ack_interval),
        }
    }
}

/// Milliseconds as a span; what is no number of milliseconds becomes zero, which the check refuses.
fn milliseconds(ms: Option<f64>, base: Duration) -> Duration {
    ms.map_or(base, |ms| Duration::try_from_secs_f64(ms / 1e3).unwrap_or(Duration::ZERO))
}
