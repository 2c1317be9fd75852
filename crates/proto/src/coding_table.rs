//! The `[coding]` table as files spell it: a preset, and what differs from it.

use core::time::Duration;

use corridor_codec::Field;
use serde::{Deserialize, Serialize};

use crate::config::{CodingParams, Delivery, Goal, Order, Policy};
use crate::tcpnc::Redundancy;

/// The `[coding]` table of a configuration or scenario file. The preset gives the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodingTable {
    /// Where to start from.
    #[serde(default)]
    pub preset: Preset,
    /// Field of the coding coefficients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<FieldName>,
    /// Order in which symbols leave the encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderName>,
    /// TCP/NC: combinations for each segment of TCP's; adaptive: the most of them, in the long run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<f64>,
    /// TCP/NC: send as many combinations as are missing, not a fixed factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<bool>,
    /// Source symbols in a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u16>,
    /// Window mode: symbols unacknowledged at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_size: Option<u16>,
    /// Window mode: what matters more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalName>,
    /// Window mode: which packets wait for those before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryName>,
    /// Window mode: whether both ways share the air; found out unless told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_duplex: Option<HalfDuplex>,
    /// Window mode: make the windows of TCP's receivers shorter rather than let a queue stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clamp_windows: Option<bool>,
    /// Longest source symbol, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_size: Option<u16>,
    /// Wait for an acknowledgement, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder_timeout_ms: Option<f64>,
    /// Factor on the encoder's budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overshoot: Option<f64>,
    /// Which budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyName>,
    /// Blocks unacknowledged at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_in_flight: Option<u16>,
    /// Bound of in-order delivery, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_deadline_ms: Option<f64>,
    /// Least time between two partial acknowledgements, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_interval_ms: Option<f64>,
}

/// Named sets of coding parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// [`CodingParams::paper`].
    Paper,
    /// [`CodingParams::default`].
    #[default]
    Default,
    /// [`CodingParams::tcp_nc`].
    TcpNc,
    /// [`CodingParams::window`].
    Window,
}

/// Spelling of whether both ways share the air: `"auto"`, `true` or `false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected \"auto\", true or false")]
pub enum HalfDuplex {
    /// It is as told.
    Told(bool),
    /// It is found out.
    Found(Auto),
}

/// The word `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// `"auto"`.
    Auto,
}

/// Spelling of a [`Goal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GoalName {
    /// [`Goal::Throughput`].
    Throughput,
    /// [`Goal::LowDelay`].
    LowDelay,
}

/// Spelling of a [`Delivery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryName {
    /// [`Delivery::Auto`].
    Auto,
    /// [`Delivery::InOrder`].
    InOrder,
    /// [`Delivery::Immediate`].
    Immediate,
}

/// Spelling of a [`Field`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrderName {
    /// [`Order::Systematic`].
    Systematic,
    /// [`Order::Dense`].
    Dense,
    /// [`Order::OnTheFly`].
    OnTheFly,
}

/// Spelling of a [`Policy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// [`Policy::PlayNCool`].
    Playncool,
    /// [`Policy::Credit`].
    Credit,
}

impl CodingTable {
    /// The parameters this table stands for. Ranges are checked by `StationConfig::check`.
    pub fn resolve(&self) -> CodingParams {
        let base = match self.preset {
            Preset::Paper => CodingParams::paper(),
            Preset::Default => CodingParams::default(),
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
            goal: self.goal.map_or(base.goal, |name| match name {
                GoalName::Throughput => Goal::Throughput,
                GoalName::LowDelay => Goal::LowDelay,
            }),
            delivery: self.delivery.map_or(base.delivery, |name| match name {
                DeliveryName::Auto => Delivery::Auto,
                DeliveryName::InOrder => Delivery::InOrder,
                DeliveryName::Immediate => Delivery::Immediate,
            }),
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
            encoder_timeout: span(self.encoder_timeout_ms, base.encoder_timeout),
            overshoot: self.overshoot.unwrap_or(base.overshoot),
            policy: self.policy.map_or(base.policy, |name| match name {
                PolicyName::Playncool => Policy::PlayNCool,
                PolicyName::Credit => Policy::Credit,
            }),
            blocks_in_flight: self.blocks_in_flight.unwrap_or(base.blocks_in_flight),
            delivery_deadline: span(self.delivery_deadline_ms, base.delivery_deadline),
            ack_interval: span(self.ack_interval_ms, base.ack_interval),
        }
    }
}

/// Milliseconds as a span; what is no number of milliseconds becomes zero, which the check refuses.
fn span(ms: Option<f64>, base: Duration) -> Duration {
    ms.map_or(base, |ms| Duration::try_from_secs_f64(ms / 1e3).unwrap_or(Duration::ZERO))
}
