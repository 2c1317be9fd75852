//! Time-varying links, as files spell them and as the air models them: rates, outages, policers,
//! jitter.

use core::time::Duration;
use std::fs;
use std::path::Path;

use corridor_air::{
    Jitter, OutageConfig, PipeError, PolicerConfig, RateConfig, RateError, RateSteps, RateTrace,
    RateWalk,
};
use corridor_document::rate::{self, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ScenarioError;
use crate::limits::TRACE_BYTES_MAX;

/// How a link's rate changes with time, by itself and not by what is sent: all that is compared
/// finds the same rates.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateTable {
    /// Kind of process.
    pub kind: RateKind,
    /// Trace: file in Mahimahi's format, one line per opportunity to send 1504 bytes, in
    /// milliseconds since the start, repeated at its end; the path is relative to the plan.
    #[serde(default)]
    pub path: Option<String>,
    /// Steps: the rates and their start times, the first at 0.
    #[serde(default)]
    pub steps: Option<Vec<StepTable>>,
    /// Steps: period after which they repeat, seconds; none = the last rate stays.
    #[serde(default)]
    pub period_s: Option<f64>,
    /// Markov: 2 to 64 rates, bits per second, with equal transition probabilities.
    #[serde(default)]
    pub rates_bps: Option<Vec<Rate>>,
    /// Markov: mean time at a rate, exponentially distributed, seconds.
    #[serde(default)]
    pub dwell_s: Option<f64>,
    /// Walk: minimum rate, bits per second.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub least_bps: Option<u64>,
    /// Walk: maximum rate, bits per second.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub most_bps: Option<u64>,
    /// Walk: interval between steps, milliseconds.
    #[serde(default)]
    pub interval_ms: Option<f64>,
    /// Walk: standard deviation of the change of the rate's natural logarithm per step.
    #[serde(default)]
    pub deviation: Option<f64>,
}

/// Processes of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateKind {
    /// Rates given in a trace file.
    Trace,
    /// Rates given in a list.
    Steps,
    /// Random changes between several rates.
    Markov,
    /// Bounded random walk of the rate's logarithm.
    Walk,
}

/// A step of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepTable {
    /// Start time, seconds.
    pub at_s: f64,
    /// Rate from then on, bits per second; 0: nothing is sent.
    #[serde(deserialize_with = "rate::whole")]
    #[schemars(with = "Rate")]
    pub rate_bps: u64,
}

/// Times at which a link sends nothing, after times at which it sends.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageTable {
    /// How the times are distributed.
    #[serde(default)]
    pub kind: OutageKind,
    /// Time the link is up, seconds.
    pub up_s: f64,
    /// Time the link is down, seconds.
    pub down_s: f64,
}

/// How outages come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutageKind {
    /// Constant times.
    #[default]
    Periodic,
    /// Exponentially distributed times with these means.
    Exponential,
}

/// A token bucket in front of a link's queue, which drops what exceeds it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerTable {
    /// Token rate, bits per second.
    #[serde(deserialize_with = "rate::whole")]
    #[schemars(with = "Rate")]
    pub rate_bps: u64,
    /// Bucket size, bytes, at least one packet.
    pub burst_bytes: u64,
}

/// By how much each packet is late on a link.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterTable {
    /// Distribution of the additional delay.
    pub kind: JitterKind,
    /// Mean, milliseconds; uniform: from zero to twice the mean.
    pub mean_ms: f64,
    /// Normal: standard deviation, milliseconds; negative values count as zero.
    #[serde(default)]
    pub deviation_ms: Option<f64>,
    /// Whether packets may overtake each other; otherwise a late packet delays those behind it.
    #[serde(default)]
    pub reorders: bool,
}

/// Distributions of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum JitterKind {
    /// Exponential.
    Exponential,
    /// Normal.
    Normal,
    /// Uniform.
    Uniform,
}

impl RateTable {
    /// The process; its trace is looked up in `directory`.
    pub(crate) fn config(
        &self,
        field: &str,
        directory: &Path,
    ) -> Result<RateConfig, ScenarioError> {
        let name = |name: &str| format!("{field}.{name}");
        self.check_fields(&name)?;
        let config = match self.kind {
            RateKind::Trace => {
                let path = self.path.as_deref().unwrap_or_default();
                let refused = |expected| ScenarioError::value(name("path"), path, expected);
                RateConfig::Trace(read_trace(&directory.join(path)).map_err(refused)?)
            }
            RateKind::Steps => {
                let steps = self.steps.iter().flatten().enumerate();
                let step = |(index, step): (usize, &StepTable)| {
                    let field = name(&format!("steps[{index}].at_s"));
                    Ok((seconds(&field, step.at_s)?, step.rate_bps))
                };
                let steps = steps.map(step).collect::<Result<_, ScenarioError>>()?;
                let period = self.period_s.map(|s| seconds(&name("period_s"), s)).transpose()?;
                RateConfig::Steps(RateSteps { steps, period })
            }
            RateKind::Markov => {
                let rates = self.rates_bps.iter().flatten().enumerate();
                let whole = |(index, rate): (usize, &Rate)| match rate.0 {
                    bps if (0.0..=1e12).contains(&bps) => Ok(bps.round() as u64),
                    bps => {
                        let field = name(&format!("rates_bps[{index}]"));
                        Err(ScenarioError::value(field, bps, "0 to 1000000000000 bit/s"))
                    }
                };
                let rates_bps = rates.map(whole).collect::<Result<_, ScenarioError>>()?;
                let dwell = seconds(&name("dwell_s"), self.dwell_s.unwrap_or_default())?;
                RateConfig::Markov { rates_bps, dwell }
            }
            RateKind::Walk => {
                let interval_s = self.interval_ms.unwrap_or_default() / 1e3;
                RateConfig::Walk(RateWalk {
                    least_bps: self.least_bps.unwrap_or_default(),
                    most_bps: self.most_bps.unwrap_or_default(),
                    interval: seconds(&name("interval_ms"), interval_s)?,
                    deviation: self.deviation.unwrap_or_default(),
                })
            }
        };
        config.check().map_err(|error| refused_rate(field, &error))?;
        Ok(config)
    }

    /// Rejects missing fields of a kind, and fields of other kinds.
    fn check_fields(&self, name: &impl Fn(&str) -> String) -> Result<(), ScenarioError> {
        use RateKind::{Markov, Steps, Trace, Walk};
        let given = [
            ("path", Trace, true, self.path.is_some()),
            ("steps", Steps, true, self.steps.is_some()),
            ("period_s", Steps, false, self.period_s.is_some()),
            ("rates_bps", Markov, true, self.rates_bps.is_some()),
            ("dwell_s", Markov, true, self.dwell_s.is_some()),
            ("least_bps", Walk, true, self.least_bps.is_some()),
            ("most_bps", Walk, true, self.most_bps.is_some()),
            ("interval_ms", Walk, true, self.interval_ms.is_some()),
            ("deviation", Walk, true, self.deviation.is_some()),
        ];
        for (field, kind, is_needed, is_given) in given {
            if kind == self.kind && is_needed && !is_given {
                return Err(ScenarioError::missing(name(field), "a value for this kind of rate"));
            }
            if kind != self.kind && is_given {
                let expected = "nothing, for this kind of rate";
                return Err(ScenarioError::value(name(field), "a value", expected));
            }
        }
        Ok(())
    }
}

impl OutageTable {
    pub(crate) fn config(&self, field: &str) -> Result<OutageConfig, ScenarioError> {
        let config = OutageConfig {
            up: seconds(&format!("{field}.up_s"), self.up_s)?,
            down: seconds(&format!("{field}.down_s"), self.down_s)?,
            is_random: self.kind == OutageKind::Exponential,
        };
        config.check().map_err(|error| refused_rate(field, &error))?;
        Ok(config)
    }
}

impl PolicerTable {
    pub(crate) fn config(&self, field: &str) -> Result<PolicerConfig, ScenarioError> {
        let PolicerTable { rate_bps, burst_bytes } = *self;
        let config = PolicerConfig { rate_bps, burst_bytes };
        config.check().map_err(|error: PipeError| {
            let given = format!("{rate_bps} bit/s, {burst_bytes} bytes");
            ScenarioError::value(field, given, error.to_string())
        })?;
        Ok(config)
    }
}

impl JitterTable {
    pub(crate) fn config(&self, field: &str) -> Result<Jitter, ScenarioError> {
        let name = |name: &str| format!("{field}.{name}");
        let mean = seconds(&name("mean_ms"), self.mean_ms / 1e3)?;
        match (self.kind, self.deviation_ms) {
            (JitterKind::Normal, None) => {
                Err(ScenarioError::missing(name("deviation_ms"), "a value for normal jitter"))
            }
            (JitterKind::Normal, Some(ms)) => {
                let deviation = seconds(&name("deviation_ms"), ms / 1e3)?;
                Ok(Jitter::Normal { mean, deviation })
            }
            (_, Some(ms)) => {
                let expected = "nothing: only normal jitter has one";
                Err(ScenarioError::value(name("deviation_ms"), ms, expected))
            }
            (JitterKind::Exponential, None) => Ok(Jitter::Exponential(mean)),
            (JitterKind::Uniform, None) => Ok(Jitter::Uniform(2 * mean)),
        }
    }
}

/// Seconds as a duration, to the nanosecond.
fn seconds(field: &str, given: f64) -> Result<Duration, ScenarioError> {
    match given {
        given if (0.0..=3_600.0).contains(&given) => {
            Ok(Duration::from_nanos((given * 1e9).round() as u64))
        }
        given => Err(ScenarioError::value(field, given, "a time of 0 to an hour")),
    }
}

fn refused_rate(field: &str, error: &RateError) -> ScenarioError {
    ScenarioError::value(field, "a table", format!("other values: {error}"))
}

fn read_trace(path: &Path) -> Result<RateTrace, String> {
    let unreadable = |error| format!("a file to read: {error}");
    let len = fs::metadata(path).map_err(unreadable)?.len();
    if len > TRACE_BYTES_MAX {
        return Err(format!("a file of at most {TRACE_BYTES_MAX} bytes, not {len}"));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    RateTrace::parse(&text).map_err(|error| format!("a trace of milliseconds: {error}"))
}
