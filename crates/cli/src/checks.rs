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
    pub limit: f64,
    /// Whether it keeps the limit; where values vary, whether that is sure enough.
    pub holds: bool,
}

/// Which side of the limit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Sense {
    #[serde(rename = "at least")]
    AtLeast,
    #[serde(rename = "at most")]
    AtMost,
}

impl Sense {
    pub fn words(self) -> &'static str {
        match self {
            Sense::AtLeast => "at least",
            Sense::AtMost => "at most",
        }
    }

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
