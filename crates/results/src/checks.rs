//! Checks of measurements: each value with its limit, as text and machine-readable.

use serde::Serialize;

/// A value, and its limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The measured quantity, and its conditions.
    pub name: String,
    /// The value; `None`: missing, so the check does not hold.
    pub value: Option<f64>,
    /// Unit of value and limit.
    pub unit: &'static str,
    /// `at least` or `at most`.
    pub sense: Sense,
    /// The limit.
    pub limit: f64,
    /// Whether it is within the limit; for varying values, with enough certainty.
    pub holds: bool,
    /// Confidence interval of a varying value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Number of samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
}

/// The good side of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Sense {
    /// Values below the limit violate it.
    #[serde(rename = "at least")]
    AtLeast,
    /// Values above the limit violate it.
    #[serde(rename = "at most")]
    AtMost,
}

impl Check {
    /// A value that must be at most the limit. A missing value does not hold.
    pub fn at_most(
        name: impl Into<String>,
        value: Option<f64>,
        limit: f64,
        unit: &'static str,
    ) -> Self {
        Check::new(name.into(), value, Sense::AtMost, limit, unit)
    }

    /// A value that must be at least the limit.
    pub fn at_least(
        name: impl Into<String>,
        value: Option<f64>,
        limit: f64,
        unit: &'static str,
    ) -> Self {
        Check::new(name.into(), value, Sense::AtLeast, limit, unit)
    }

    /// A value that must be on the given side of the limit. A missing value does not hold.
    pub fn new(
        name: String,
        value: Option<f64>,
        sense: Sense,
        limit: f64,
        unit: &'static str,
    ) -> Self {
        let holds = value.is_some_and(|value| sense.holds(value, limit));
        Check { name, value, unit, sense, limit, holds, interval: None, samples: None }
    }

    /// Adds the confidence interval of a varying value, and the number of samples. Whether it holds
    /// is unchanged; see [`surely`](Self::surely).
    pub fn known_to(self, interval: [f64; 2], samples: usize) -> Self {
        Check { interval: Some(interval), samples: Some(samples), ..self }
    }

    /// Requires the worse end of the interval to be within the limit, too.
    pub fn surely(mut self) -> Self {
        self.holds &= self.interval.is_none_or(|ends| {
            let [low, high] = ends;
            let worse = if self.sense == Sense::AtLeast { low } else { high };
            self.sense.holds(worse, self.limit)
        });
        self
    }

    /// A line of text: `holds` or `DOES NOT HOLD`, the name, the value and its limit, and its
    /// variation if known.
    pub fn line(&self) -> String {
        let verdict = if self.holds { "holds" } else { "DOES NOT HOLD" };
        let value = self.value.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let interval = self.interval.map(|[low, high]| format!(" [{low:.4}, {high:.4}]"));
        let samples = self.samples.map(|samples| format!(" of {samples}"));
        let (interval, samples) = (interval.unwrap_or_default(), samples.unwrap_or_default());
        let Check { name, unit, sense, limit, .. } = self;
        let sense = sense.words();
        format!("{name:<46} {value:>9} {unit}, {sense} {limit:<7} {verdict}{interval}{samples}")
    }
}

impl Sense {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Sense::AtLeast => "at least",
            Sense::AtMost => "at most",
        }
    }

    /// Whether a value is within a limit.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Sense::AtLeast => value >= limit,
            Sense::AtMost => value <= limit,
        }
    }
}

/// Number of checks that do not hold.
pub fn broken(checks: &[Check]) -> usize {
    checks.iter().filter(|check| !check.holds).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_surely_holds_by_the_worse_end_of_the_interval() {
        let known = |check: Check| check.known_to([40.0, 60.0], 101);
        let least = |limit| known(Check::at_least("", Some(50.0), limit, "")).surely().holds;
        let most = |limit| known(Check::at_most("", Some(50.0), limit, "")).surely().holds;
        assert!(least(40.0) && !least(41.0));
        assert!(most(60.0) && !most(59.0));
        assert!(known(Check::at_most("", Some(50.0), 59.0, "")).holds, "by its value alone");
        let nothing = Check::at_least("", None, 0.0, "").known_to([1.0, 2.0], 0).surely();
        assert!(!nothing.holds, "of nothing nothing holds");
    }
}
