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

    fn new(name: String, value: Option<f64>, sense: Sense, limit: f64, unit: &'static str) -> Self {
        let holds = value.is_some_and(|value| sense.holds(value, limit));
        Check { name, value, unit, sense, limit, holds }
    }

    /// A line for people: `holds` or `DOES NOT HOLD`, the name, the value and its limit.
    pub fn line(&self) -> String {
        let verdict = if self.holds { "holds" } else { "DOES NOT HOLD" };
        let value = self.value.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let Check { name, unit, sense, limit, .. } = self;
        format!("{name:<46} {value:>9} {unit}, {} {limit:<7} {verdict}", sense.words())
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
