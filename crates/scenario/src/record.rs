//! Records: the result of a replication of a plan's point, with a value for each of the plan's
//! columns.

use serde::{Deserialize, Serialize};

/// A value of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Not applicable, or could not be measured.
    #[default]
    Absent,
    /// Yes or no.
    Flag(bool),
    /// A count.
    Integer(i64),
    /// A measurement; finite.
    Real(f64),
    /// A word.
    Text(String),
}

impl Value {
    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Real(value) => Some(*value),
            Value::Absent | Value::Flag(_) | Value::Text(_) => None,
        }
    }

    /// The kind that it can be stored as.
    fn kind(&self) -> Option<Kind> {
        match self {
            Value::Absent => None,
            Value::Flag(_) => Some(Kind::Flag),
            Value::Integer(_) => Some(Kind::Integer),
            Value::Real(_) => Some(Kind::Real),
            Value::Text(_) => Some(Kind::Text),
        }
    }

    /// Converts the value to a column's kind: counts to measurements where a column has both, and
    /// everything to text.
    pub(crate) fn into_kind(self, kind: Kind) -> Value {
        match (self, kind) {
            (Value::Integer(value), Kind::Real) => Value::Real(value as f64),
            (Value::Absent, _) => Value::Absent,
            (value @ Value::Text(_), Kind::Text) => value,
            (value, Kind::Text) => Value::Text(value.to_string()),
            (value, _) => value,
        }
    }
}

impl core::fmt::Display for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Value::Absent => f.pad("-"),
            Value::Flag(value) => f.pad(if *value { "true" } else { "false" }),
            Value::Integer(value) => f.pad(&value.to_string()),
            Value::Real(value) => f.pad(&value.to_string()),
            Value::Text(text) => f.pad(text),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Flag(value)
    }
}

impl From<u64> for Value {
    /// Counts never reach 2^63.
    fn from(value: u64) -> Self {
        Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Value {
    /// A value that is not finite could not be measured.
    fn from(value: f64) -> Self {
        if value.is_finite() { Value::Real(value) } else { Value::Absent }
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Absent, Into::into)
    }
}

/// The type in which a column's values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// [`Value::Flag`].
    Flag,
    /// [`Value::Integer`].
    Integer,
    /// [`Value::Real`].
    Real,
    /// [`Value::Text`].
    Text,
}

/// The purpose of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Identifies point and replication.
    Key,
    /// The same for all replications of a point, and known before they run.
    Parameter,
    /// A result.
    Metric,
    /// A result that a short table shows.
    Headline,
}

/// A column of a plan's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name with the unit last; for a swept parameter, its path.
    pub name: String,
    /// Unit in SI spelling, "1" for ratios and counts; empty for texts.
    pub unit: String,
    /// Its meaning, in a few words.
    pub meaning: String,
    /// Its purpose.
    pub role: Role,
    /// The type in which its values are stored.
    pub kind: Kind,
}

impl Column {
    pub(crate) fn new(name: &str, role: Role, kind: Kind, unit: &str, meaning: &str) -> Self {
        let [name, unit, meaning] = [name, unit, meaning].map(str::to_owned);
        Column { name, unit, meaning, role, kind }
    }

    /// Whether its values are results.
    pub fn is_metric(&self) -> bool {
        matches!(self.role, Role::Metric | Role::Headline)
    }

    /// A column for the values of a swept path: of the kind that holds them all, with the unit from
    /// the end of its name.
    pub(crate) fn of_values(name: &str, values: &mut [Value]) -> Self {
        let kinds = values.iter().filter_map(Value::kind);
        let kind = kinds.reduce(|a, b| match (a, b) {
            (a, b) if a == b => a,
            (Kind::Integer | Kind::Real, Kind::Integer | Kind::Real) => Kind::Real,
            _ => Kind::Text,
        });
        let kind = kind.unwrap_or(Kind::Text);
        for value in values {
            *value = core::mem::take(value).into_kind(kind);
        }
        let unit = if matches!(kind, Kind::Integer | Kind::Real) { unit_of(name) } else { "" };
        Column::new(name, Role::Parameter, kind, unit, "swept by the plan")
    }
}

/// The unit that a name ends with.
fn unit_of(name: &str) -> &'static str {
    let words = [
        ("_bps", "bit/s"),
        ("_ms", "ms"),
        ("_us", "us"),
        ("_s", "s"),
        ("_packets", "packets"),
        ("_packets_max", "packets"),
        ("_frames", "frames"),
        ("_bytes", "B"),
    ];
    words.iter().find(|(end, _)| name.ends_with(end)).map_or("1", |(_, unit)| unit)
}

/// One replication's values, in the order of [`Plan::columns`](crate::Plan::columns).
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The point, from 0.
    pub point: usize,
    /// The replication, from 0.
    pub replication: u64,
    /// Values, one for each column; the first two repeat point and replication.
    pub values: Vec<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_counts_and_measures_holds_measures() {
        let mut values = [Value::Integer(1), Value::Real(0.5), Value::Absent];
        let column = Column::of_values("medium.rtt_ms", &mut values);
        assert_eq!((column.kind, column.unit.as_str()), (Kind::Real, "ms"));
        assert_eq!(values, [Value::Real(1.0), Value::Real(0.5), Value::Absent]);

        let mut values = [Value::Text("half".into()), Value::Integer(3)];
        let column = Column::of_values("run.0.path", &mut values);
        assert_eq!((column.kind, column.unit.as_str()), (Kind::Text, ""));
        assert_eq!(values[1], Value::Text("3".into()));
    }

    #[test]
    fn what_is_not_finite_is_absent() {
        assert_eq!(Value::from(f64::NAN), Value::Absent);
        assert_eq!(Value::from(1.0 / 0.0), Value::Absent);
        assert_eq!(Value::from(None::<f64>), Value::Absent);
    }
}
