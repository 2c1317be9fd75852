//! Relays that combine packets of different flows, as a plan's file spells them.

use core::time::Duration;

use corridor_relay::{Adaptive, Candidates, Hold, RelayConfig, SwitchOff};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ScenarioError;
use crate::values::replace;

/// The `[network.relay]` table: every node of the radio is a relay that may send two packets of
/// different flows as one frame (CATWOMAN). A preset, and what is different from it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelayTable {
    /// Where the defaults come from.
    #[serde(default)]
    pub preset: RelayPreset,
    /// Whether packets are combined at all.
    #[serde(default)]
    pub coding: Option<bool>,
    /// How long a packet of others waits for a partner, milliseconds; 0: not at all.
    #[serde(default)]
    pub hold_ms: Option<f64>,
    /// Whether the hold lasts only until a partner is expected by the last arrivals, and while the
    /// channel is congested; `hold_ms` is the most then.
    #[serde(default)]
    pub hold_learned: bool,
    /// Whether all that waits for the air may be combined, and not only what is held.
    #[serde(default)]
    pub combines_waiting: Option<bool>,
    /// How long packets are kept by which others are decoded, milliseconds.
    #[serde(default)]
    pub decode_ms: Option<f64>,
    /// What the MAC's retries decide.
    #[serde(default)]
    pub adaptive: Option<AdaptiveKind>,
    /// Retries in a second beyond which the channel counts as congested.
    #[serde(default)]
    pub retries_per_second: Option<u32>,
    /// Whether receivers that hear too little, or fail to decode, are sent no coded frames.
    #[serde(default)]
    pub switch_off: Option<bool>,
    /// With `switch_off`: least share of a relay's frames to others that a receiver must hear.
    #[serde(default)]
    pub heard_ratio_min: Option<f64>,
    /// With `switch_off`: greatest share of coded frames that a receiver may fail to decode.
    #[serde(default)]
    pub failed_ratio_max: Option<f64>,
    /// Packets that wait at a node, those held among them; others are dropped.
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// How often neighbours are told who is heard, milliseconds.
    #[serde(default)]
    pub announce_ms: Option<f64>,
}

/// Presets of relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayPreset {
    /// For use: what waits is combined, and only for who hears and decodes; held is what a partner
    /// is expected for, while the channel is congested.
    #[default]
    Default,
    /// CATWOMAN as published: 50 ms of hold, 1500 ms for decoding, always coding.
    Paper,
    /// The same with adaptive buffering as Section IV-B has it: coding while congested.
    PaperAdaptive,
    /// Pure relaying.
    Plain,
}

/// What the MAC's retries decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdaptiveKind {
    /// Nothing.
    Off,
    /// Whether packets are held (Section II-A of the paper).
    Holding,
    /// Whether they are combined, and held for it (Section IV-B).
    Coding,
}

/// Understands the table.
pub(crate) fn relay(table: &RelayTable) -> Result<RelayConfig, ScenarioError> {
    let mut config = match table.preset {
        RelayPreset::Default => RelayConfig::default(),
        RelayPreset::Paper => RelayConfig::paper(),
        RelayPreset::PaperAdaptive => RelayConfig::paper_adaptive(),
        RelayPreset::Plain => RelayConfig::plain(),
    };
    replace(&mut config.coding, table.coding);
    replace(&mut config.decode_for, milliseconds("decode_ms", table.decode_ms)?);
    replace(&mut config.announce_every, milliseconds("announce_ms", table.announce_ms)?);
    replace(&mut config.retries_per_second, table.retries_per_second);
    replace(&mut config.queue_packets, table.queue_packets);
    match milliseconds("hold_ms", table.hold_ms)? {
        Some(most) if table.hold_learned => config.hold = Hold::Learned { most },
        Some(hold) if hold.is_zero() => config.hold = Hold::None,
        Some(hold) => config.hold = Hold::Fixed(hold),
        None if table.hold_learned => {
            let expected = "the longest wait, with hold_learned";
            return Err(ScenarioError::missing("network.relay.hold_ms", expected));
        }
        None => {}
    }
    if let Some(waiting) = table.combines_waiting {
        config.candidates = if waiting { Candidates::Waiting } else { Candidates::Held };
    }
    if let Some(adaptive) = table.adaptive {
        config.adaptive = match adaptive {
            AdaptiveKind::Off => Adaptive::Off,
            AdaptiveKind::Holding => Adaptive::Holding,
            AdaptiveKind::Coding => Adaptive::Coding,
        };
    }
    match table.switch_off {
        Some(true) => config.switch_off = config.switch_off.or(RelayConfig::default().switch_off),
        Some(false) => config.switch_off = None,
        None => {}
    }
    let given =
        [("heard_ratio_min", table.heard_ratio_min), ("failed_ratio_max", table.failed_ratio_max)];
    match &mut config.switch_off {
        Some(SwitchOff { heard_ratio_min, failed_ratio_max }) => {
            replace(heard_ratio_min, table.heard_ratio_min);
            replace(failed_ratio_max, table.failed_ratio_max);
        }
        None => {
            if let Some((name, Some(given))) = given.iter().find(|(_, given)| given.is_some()) {
                let expected = "nothing without switch_off";
                return Err(ScenarioError::value(format!("network.relay.{name}"), given, expected));
            }
        }
    }
    let refused = |error| {
        ScenarioError::value("network.relay", "a table", format!("values that can be: {error}"))
    };
    config.check().map_err(refused)?;
    Ok(config)
}

fn milliseconds(name: &str, ms: Option<f64>) -> Result<Option<Duration>, ScenarioError> {
    match ms {
        Some(ms) if !(0.0..=60_000.0).contains(&ms) => {
            let field = format!("network.relay.{name}");
            Err(ScenarioError::value(field, ms, "0 to 60000 ms"))
        }
        ms => Ok(ms.map(|ms| Duration::from_nanos((ms * 1e6).round() as u64))),
    }
}
