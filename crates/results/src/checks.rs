//! What a measurement is held against: each value with its limit, for people and for machines.

use serde::Serialize;

/// A value, and the limit that it has to keep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is measured, and under which conditions.
    pub name: String,
    /// The value; `None`: there is none, so the check does not hold.
    pub value: Option<f64>,
    /// In what value and limit are counted.
    pub unit: &'static str,
    /// `at least` or `at most`.
    pub sense: Sense,
    /// The limit.
    pub limit: f64,
    /// Whether it keeps the limit; where values vary, whether that is sure enough.
    pub holds: bool,
    /// The interval that a value which varies is known to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// How many values it was found from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
}

/// Which side of the limit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Sense {
    /// Values below the limit break it.
    #[serde(rename = "at least")]
    AtLeast,
    /// Values above the limit break it.
    #[serde(rename = "at most")]
    AtMost,
}

impl Check {
    /// A value that is to be the limit at most. What there is none of does not hold.
    pub fn at_most(
        name: impl Into<String>,
        value: Option<f64>,
        limit: f64,
        unit: &'static str,
    ) -> Self {
        Check::new(name.into(), value, Sense::AtMost, limit, unit)
    }

    /// A value that is to be the limit at least.
    pub fn at_least(
        name: impl Into<String>,
        value: Option<f64>,
        limit: f64,
        unit: &'static str,
    ) -> Self {
        Check::new(name.into(), value, Sense::AtLeast, limit, unit)
    }

    /// A value that is to be on that side of the limit. What there is none of does not hold.
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

    /// The same of a value that varies, with the interval that it is known to from so many. It
    /// holds as before; see [`surely`](Self::surely).
    pub fn known_to(self, interval: [f64; 2], samples: usize) -> Self {
        Check { interval: Some(interval), samples: Some(samples), ..self }
    }

    /// Holds only if the worse end of the interval keeps the limit too.
    pub fn surely(mut self) -> Self {
        self.holds &= self.interval.is_none_or(|ends| {
            let [low, high] = ends;
            let worse = if self.sense == Sense::AtLeast { low } else { high };
            self.sense.holds(worse, self.limit)
        });
        self
    }

    /// A line for people: `holds` or `DOES NOT HOLD`, the name, the value and its limit, and what
    /// is known of how it varies.
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
    /// As people say it.
    pub fn words(self) -> &'static str {
        match self {
            Sense::AtLeast => "at least",
            Sense::AtMost => "at most",
        }
    }

    /// Whether a value keeps a limit.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Sense::AtLeast => value >= limit,
            Sense::AtMost => value <= limit,
        }
    }
}

/// How many of the checks do not hold.
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
