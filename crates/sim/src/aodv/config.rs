//! Settings of a router, and the errors in them.

use core::time::Duration;

/// How routes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Fewer links are better.
    HopCount,
    /// A greater product of the links' delivery ratios is better (PATH-DR of C. Gomez, A. Boix and
    /// J. Paradells, EURASIP J. Wirel. Commun. Netw. 2010); among equals, fewer links.
    PathDr,
}

/// Maps the link quality indication (LQI) of a frame to its link's delivery ratio by a logistic
/// function, 1 / (1 + exp((`half_lqi` - lqi) / `scale_lqi`)).
///
/// The authors' curve was not published. Ours is the delivery ratio of a link whose power varies
/// normally about the observed value, with a receiver that decodes everything above its
/// sensitivity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LqiCurve {
    /// LQI at which half of the frames come through, 0 to 255.
    pub half_lqi: f64,
    /// Inverse steepness, more than 0: the difference in LQI that changes the odds by a factor of
    /// e.
    pub scale_lqi: f64,
}

impl LqiCurve {
    /// One half at the sensitivity of the CC2420, 3 dB above noise; the power's deviation is 3 dB.
    pub const DEFAULT: LqiCurve = LqiCurve { half_lqi: 102.0, scale_lqi: 22.0 };

    /// Delivery ratio, in parts of 65535.
    pub fn quality(&self, lqi: u8) -> u16 {
        let odds = libm::exp((f64::from(lqi) - self.half_lqi) / self.scale_lqi);
        libm::round(f64::from(u16::MAX) * odds / (1.0 + odds)) as u16
    }
}

/// Settings of a router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AodvConfig {
    /// How routes are compared.
    pub metric: Metric,
    /// Delivery ratios of links, from LQI.
    pub curve: LqiCurve,
    /// Requests are forwarded after a random delay, uniform from zero to this, because all
    /// neighbours heard them at the same instant (RFC 5148).
    pub jitter_max: Duration,
    /// Granularity of this delay, which may take any multiple from 0 to `jitter_max`; zero:
    /// continuous.
    pub jitter_step: Duration,
    /// Whether a copy of a request that came by a better path is forwarded and answered too. RFC
    /// 3561, 6.5, only handles the first copy.
    pub takes_better_copies: bool,
    /// How long an origin waits for the reply to its first request, more than zero; doubled for
    /// each further request (RFC 3561, 6.3).
    pub discovery_wait: Duration,
    /// When an origin gives up and drops the packets that it holds.
    pub discovery_limit: Duration,
    /// Most links that a request crosses: NET_DIAMETER, from 1.
    pub hops_max: u8,
}

impl AodvConfig {
    /// Defaults for a metric. Our own choices: a jitter of 20 ms, requests after 0, 0.5, 1.5, 3.5
    /// and 7.5 s, and giving up after 10 s. NET_DIAMETER is 35 as in RFC 3561.
    pub fn new(metric: Metric) -> Self {
        AodvConfig {
            metric,
            curve: LqiCurve::DEFAULT,
            jitter_max: Duration::from_millis(20),
            jitter_step: Duration::ZERO,
            takes_better_copies: true,
            discovery_wait: Duration::from_millis(500),
            discovery_limit: Duration::from_secs(10),
            hops_max: 35,
        }
    }

    /// The jitter that 32 random bits map to.
    pub(super) fn jitter(&self, drawn: u32) -> Duration {
        let of = |count: u128| (u128::from(drawn) * count) >> 32;
        let most_ns = self.jitter_max.as_nanos();
        let ns = match self.jitter_step.as_nanos() {
            0 => of(most_ns),
            step_ns => step_ns * of(most_ns / step_ns + 1),
        };
        Duration::from_nanos(ns as u64)
    }

    /// Checks the ranges of the settings.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn check(&self) -> Result<(), AodvError> {
        let error = |field, given: String, expected| Err(AodvError { field, given, expected });
        let LqiCurve { half_lqi, scale_lqi } = self.curve;
        if !(0.0..=255.0).contains(&half_lqi) {
            return error("half_lqi", half_lqi.to_string(), "0 to 255");
        }
        if !(scale_lqi > 0.0 && scale_lqi <= 255.0) {
            return error("scale_lqi", scale_lqi.to_string(), "more than 0, at most 255");
        }
        let hour = Duration::from_secs(3_600);
        if self.jitter_max > hour {
            return error("jitter_max", format!("{:?}", self.jitter_max), "at most an hour");
        }
        if self.jitter_step > self.jitter_max {
            return error("jitter_step", format!("{:?}", self.jitter_step), "at most jitter_max");
        }
        if self.discovery_wait.is_zero() || self.discovery_wait > hour {
            let given = format!("{:?}", self.discovery_wait);
            return error("discovery_wait", given, "more than 0, at most an hour");
        }
        if self.discovery_limit < self.discovery_wait || self.discovery_limit > hour {
            let given = format!("{:?}", self.discovery_limit);
            return error("discovery_limit", given, "from discovery_wait to an hour");
        }
        if self.hops_max == 0 {
            return error("hops_max", "0".to_owned(), "1 to 255");
        }
        Ok(())
    }
}

/// A setting that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {given}: expected {expected}")]
pub struct AodvError {
    /// Name of the field.
    pub field: &'static str,
    /// Its value.
    pub given: String,
    /// The values allowed.
    pub expected: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_rises_from_nothing_to_everything() {
        let curve = LqiCurve::DEFAULT;
        assert_eq!(curve.quality(102), 32_768, "half");
        let all: Vec<u16> = (0..=255).map(|lqi| curve.quality(lqi)).collect();
        assert!(all.is_sorted());
        assert!(all[0] < 700 && all[255] > 65_400, "{} {}", all[0], all[255]);
    }

    #[test]
    fn errors_name_the_field() {
        let good = AodvConfig::new(Metric::PathDr);
        assert_eq!(good.check(), Ok(()));
        let told = |config: AodvConfig| config.check().unwrap_err().to_string();
        let curve = LqiCurve { half_lqi: 256.0, ..good.curve };
        assert_eq!(told(AodvConfig { curve, ..good }), "half_lqi is 256: expected 0 to 255");
        let discovery_limit = Duration::from_millis(100);
        assert_eq!(
            told(AodvConfig { discovery_limit, ..good }),
            "discovery_limit is 100ms: expected from discovery_wait to an hour"
        );
        let jitter_step = Duration::from_secs(1);
        assert_eq!(
            told(AodvConfig { jitter_step, ..good }),
            "jitter_step is 1s: expected at most jitter_max"
        );
        let hops = AodvConfig { hops_max: 0, ..good };
        assert_eq!(told(hops), "hops_max is 0: expected 1 to 255");
    }
}
