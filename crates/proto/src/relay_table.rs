//! The settings of relays that combine packets of different flows, in configurations, scenarios and
//! plans.

use core::time::Duration;

use corridor_relay::{Adaptive, Candidates, Hold, RelayConfig, SwitchOff};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::relay_station::setting;

/// A table of a relay that may send two packets of different flows as one frame (CATWOMAN). A
/// preset, and what is different from it.
// Flat, like the table in a file: serde could not reject unknown keys beside flattened groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelayTable {
    /// Set of default parameters.
    #[serde(default)]
    pub preset: RelayPreset,
    /// Whether to combine packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<bool>,
    /// How long a packet to forward is held for a coding partner, milliseconds; 0: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_ms: Option<f64>,
    /// What may shorten the hold time, of which `hold_ms` is then the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_learned: Option<HoldLearned>,
    /// Whether all queued packets may be combined, not only those held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combines_waiting: Option<bool>,
    /// How long packets are kept for decoding, milliseconds. A frame that arrives more than a
    /// twelfth of this time, and more than 120 ms, after one that its sender sent later is dropped
    /// as stale if its packets are retransmitted (`relay_frames_held_up`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode_ms: Option<f64>,
    /// What MAC retries control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveKind>,
    /// MAC retries per second above which the channel counts as congested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries_per_second: Option<u32>,
    /// Whether to stop sending coded frames to receivers that overhear too little or fail to
    /// decode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_off: Option<bool>,
    /// With `switch_off`: minimum share of a relay's frames to others that a receiver must
    /// overhear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_ratio_min: Option<f64>,
    /// With `switch_off`: maximum share of coded frames that a receiver may fail to decode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_ratio_max: Option<f64>,
    /// Whether to report received packets to neighbours and retransmit what they miss where the MAC
    /// does not: of coded frames, the packet for the receiver without MAC retries; all packets to a
    /// receiver for which the MAC gives up more than 1 in 100 frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend: Option<bool>,
    /// With `resend`: whether to use idle time to send receivers that are likely to miss packets
    /// combinations of those they have not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<bool>,
    /// Whether TCP segments for this node's own host wait for those they have overtaken, as long as
    /// earlier ones were late, and at most 200 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_order: Option<bool>,
    /// Target queueing delay, milliseconds, above which packets are dropped (CoDel, RFC 8289); 0:
    /// drop only when the queue is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_target_ms: Option<f64>,
    /// Maximum number of packets queued at a node, including those held; more are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<usize>,
    /// Maximum number of this node's packets that a neighbour may have without having been heard to
    /// forward them; more wait at this node, where only packets of its own host are dropped
    /// (`queue_target_ms`). 0: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_packets: Option<usize>,
    /// Interval of announcements of the neighbours heard, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce_ms: Option<f64>,
}

/// Presets of relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayPreset {
    /// For production: combines queued packets, only for receivers that overhear and decode; holds
    /// packets no longer than others wait for the channel, and drops from standing queues.
    #[default]
    Default,
    /// CATWOMAN as published: 50 ms hold time, 1500 ms for decoding, always coding.
    Paper,
    /// CATWOMAN with the adaptive buffering of Section IV-B: coding only during congestion.
    PaperAdaptive,
    /// Forwarding without coding.
    Plain,
}

/// By what a hold may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HoldLearned {
    /// Nothing.
    No,
    /// Hold until recent arrivals suggest a partner, and only while the channel is congested.
    Arrivals,
    /// Hold as long as packets recently waited for the channel and, if MAC retries are known, only
    /// while it is congested.
    Waits,
}

/// What the MAC's retries decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AdaptiveKind {
    /// Nothing.
    Off,
    /// Whether packets are held (Section II-A of the paper).
    Holding,
    /// Whether packets are combined, and held for it (Section IV-B of the paper).
    Coding,
}

impl RelayPreset {
    /// What it stands for.
    fn config(self) -> RelayConfig {
        match self {
            RelayPreset::Default => RelayConfig::default(),
            RelayPreset::Paper => RelayConfig::paper(),
            RelayPreset::PaperAdaptive => RelayConfig::paper_adaptive(),
            RelayPreset::Plain => RelayConfig::plain(),
        }
    }
}

impl core::fmt::Display for RelayPreset {
    /// As files spell it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            RelayPreset::Default => "default",
            RelayPreset::Paper => "paper",
            RelayPreset::PaperAdaptive => "paper-adaptive",
            RelayPreset::Plain => "plain",
        })
    }
}

impl From<&RelayConfig> for RelayTable {
    /// The table that says all of a relay's settings, whatever presets stand for.
    fn from(config: &RelayConfig) -> Self {
        let ms = |span: Duration| Some(1e3 * span.as_secs_f64());
        let (hold_ms, hold_learned) = match config.hold {
            Hold::None => (Some(0.0), HoldLearned::No),
            Hold::Fixed(hold) => (ms(hold), HoldLearned::No),
            Hold::Learned { most } => (ms(most), HoldLearned::Arrivals),
            Hold::Waits { most } => (ms(most), HoldLearned::Waits),
        };
        RelayTable {
            preset: RelayPreset::Default,
            coding: Some(config.coding),
            hold_ms,
            hold_learned: Some(hold_learned),
            combines_waiting: Some(config.candidates == Candidates::Waiting),
            decode_ms: ms(config.decode_for),
            adaptive: Some(match config.adaptive {
                Adaptive::Off => AdaptiveKind::Off,
                Adaptive::Holding => AdaptiveKind::Holding,
                Adaptive::Coding => AdaptiveKind::Coding,
            }),
            retries_per_second: Some(config.retries_per_second),
            switch_off: Some(config.switch_off.is_some()),
            heard_ratio_min: config.switch_off.map(|off| off.heard_ratio_min),
            failed_ratio_max: config.switch_off.map(|off| off.failed_ratio_max),
            resend: Some(config.resend),
            repair: Some(config.repair),
            in_order: Some(config.in_order),
            queue_target_ms: ms(config.queue_target.unwrap_or_default()),
            queue_packets: Some(config.queue_packets),
            window_packets: Some(config.window_packets.unwrap_or_default()),
            announce_ms: ms(config.announce_every),
        }
    }
}

impl RelayTable {
    /// Understands the table.
    ///
    /// # Errors
    /// The first value that cannot be; its field begins with `relay.`.
    pub fn resolve(&self) -> Result<RelayConfig, ConfigError> {
        let mut config = self.preset.config();
        config.coding = self.coding.unwrap_or(config.coding);
        let decode_for = milliseconds("relay.decode_ms", self.decode_ms)?;
        let announce_every = milliseconds("relay.announce_ms", self.announce_ms)?;
        config.decode_for = decode_for.unwrap_or(config.decode_for);
        config.announce_every = announce_every.unwrap_or(config.announce_every);
        config.retries_per_second = self.retries_per_second.unwrap_or(config.retries_per_second);
        config.queue_packets = self.queue_packets.unwrap_or(config.queue_packets);
        config.resend = self.resend.unwrap_or(config.resend);
        config.repair = self.repair.unwrap_or(config.repair);
        config.in_order = self.in_order.unwrap_or(config.in_order);
        config.hold = self.hold(config.hold)?;
        if let Some(packets) = self.window_packets {
            config.window_packets = (packets > 0).then_some(packets);
        }
        if let Some(target) = milliseconds("relay.queue_target_ms", self.queue_target_ms)? {
            config.queue_target = (!target.is_zero()).then_some(target);
        }
        if let Some(waiting) = self.combines_waiting {
            config.candidates = if waiting { Candidates::Waiting } else { Candidates::Held };
        }
        if let Some(adaptive) = self.adaptive {
            config.adaptive = match adaptive {
                AdaptiveKind::Off => Adaptive::Off,
                AdaptiveKind::Holding => Adaptive::Holding,
                AdaptiveKind::Coding => Adaptive::Coding,
            };
        }
        config.switch_off = self.switch_off(config.switch_off)?;
        config.check().map_err(setting)?;
        Ok(config)
    }

    fn hold(&self, preset: Hold) -> Result<Hold, ConfigError> {
        let (most, learned) = match preset {
            Hold::None => (None, HoldLearned::No),
            Hold::Fixed(hold) => (Some(hold), HoldLearned::No),
            Hold::Learned { most } => (Some(most), HoldLearned::Arrivals),
            Hold::Waits { most } => (Some(most), HoldLearned::Waits),
        };
        let given = milliseconds("relay.hold_ms", self.hold_ms)?;
        let learned = self.hold_learned.unwrap_or(learned);
        match (given.or(most).filter(|most| !most.is_zero()), learned) {
            (Some(most), HoldLearned::Arrivals) => Ok(Hold::Learned { most }),
            (Some(most), HoldLearned::Waits) => Ok(Hold::Waits { most }),
            (Some(hold), HoldLearned::No) => Ok(Hold::Fixed(hold)),
            (None, HoldLearned::No) => Ok(Hold::None),
            (None, _) if given.is_some() => Ok(Hold::None),
            (None, _) => {
                let expected = "the longest wait, with hold_learned";
                Err(ConfigError::new("relay.hold_ms", "nothing", expected))
            }
        }
    }

    fn switch_off(&self, preset: Option<SwitchOff>) -> Result<Option<SwitchOff>, ConfigError> {
        let switch_off = match self.switch_off {
            Some(true) => preset.or(RelayConfig::default().switch_off),
            Some(false) => None,
            None => preset,
        };
        let Some(SwitchOff { heard_ratio_min, failed_ratio_max }) = switch_off else {
            let given = [
                ("relay.heard_ratio_min", self.heard_ratio_min),
                ("relay.failed_ratio_max", self.failed_ratio_max),
            ];
            return match given.iter().find_map(|&(name, given)| Some((name, given?))) {
                Some((name, given)) => {
                    Err(ConfigError::new(name, given, "nothing without switch_off"))
                }
                None => Ok(None),
            };
        };
        Ok(Some(SwitchOff {
            heard_ratio_min: self.heard_ratio_min.unwrap_or(heard_ratio_min),
            failed_ratio_max: self.failed_ratio_max.unwrap_or(failed_ratio_max),
        }))
    }
}

fn milliseconds(name: &'static str, ms: Option<f64>) -> Result<Option<Duration>, ConfigError> {
    match ms {
        Some(ms) if !(0.0..=60_000.0).contains(&ms) => {
            Err(ConfigError::new(name, ms, "0 to 60000 ms"))
        }
        ms => Ok(ms.map(|ms| Duration::from_nanos((ms * 1e6).round() as u64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_all_settings_stands_for_the_same_relay() {
        use RelayPreset::{Default, Paper, PaperAdaptive, Plain};
        for preset in [Default, Paper, PaperAdaptive, Plain] {
            let config = preset.config();
            assert_eq!(RelayTable::from(&config).resolve(), Ok(config), "{preset}");
        }
    }
}
