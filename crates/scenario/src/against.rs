//! Finds the point that a stop rule compares each point with: the one that has the values that the
//! rule names, and is otherwise equal.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use toml::Value as Toml;

use crate::error::ScenarioError;
use crate::record::{Column, Value};
use crate::sweep;

/// The relevant properties of a point.
pub(crate) struct Compared<'a> {
    /// Seed of its random streams.
    pub(crate) seed: u64,
    /// Values of its parameters, in the order of their columns.
    pub(crate) parameters: &'a [Value],
    /// Other properties in which it may differ, without columns; the same keys in all points.
    pub(crate) columnless: Vec<(&'static str, String)>,
    /// Its title, for messages.
    pub(crate) title: &'a str,
}

/// The values that a rule names, by parameter column.
struct Wanted<'a> {
    columns: &'a [&'a Column],
    values: Vec<Option<Value>>,
    /// The rule's table, for messages.
    told: String,
    /// Names of the parameters that the rule names.
    names: Vec<&'a str>,
}

/// The point that each point is compared with; `None` for points that others are compared with.
///
/// # Errors
/// [`ScenarioError::Value`] for a point that has no counterpart, or several, or one that differs in
/// other ways.
pub(crate) fn bases(
    against: &BTreeMap<String, Toml>,
    columns: &[&Column],
    points: &[Compared<'_>],
) -> Result<Vec<Option<usize>>, ScenarioError> {
    let wanted = Wanted::of(against, columns)?;
    let mut bases: BTreeMap<String, usize> = BTreeMap::new();
    for (index, point) in points.iter().enumerate().filter(|(_, point)| wanted.is_met(point)) {
        match bases.entry(wanted.others(point)) {
            Entry::Vacant(place) => {
                place.insert(index);
            }
            Entry::Occupied(place) => {
                return Err(wanted.refuse_two(&points[*place.get()], point));
            }
        }
    }
    let mut found = Vec::with_capacity(points.len());
    for (index, point) in points.iter().enumerate() {
        let Some(&base) = bases.get(&wanted.others(point)) else {
            let candidates = bases.values().map(|&base| &points[base]);
            return Err(wanted.refuse_lonely(point, candidates));
        };
        wanted.check_alike(&points[base], point)?;
        found.push((base != index).then_some(base));
    }
    if found.iter().all(Option::is_none) {
        return Err(wanted.refusal("values that some points do not have: nothing to compare"));
    }
    Ok(found)
}

impl<'a> Wanted<'a> {
    fn of(
        against: &'a BTreeMap<String, Toml>,
        columns: &'a [&'a Column],
    ) -> Result<Self, ScenarioError> {
        let mut values: Vec<Option<Value>> = vec![None; columns.len()];
        for (name, value) in against {
            let Some(place) = columns.iter().position(|column| column.name == *name) else {
                let names: Vec<&str> = columns.iter().map(|column| &column.name[..]).collect();
                let expected = format!("parameters that vary, of {}", names.join(", "));
                return Err(ScenarioError::value("stop.against", name, expected));
            };
            values[place] = Some(sweep::value_of(value).into_kind(columns[place].kind));
        }
        let pairs = against.iter().map(|(name, value)| format!("\"{name}\" = {value}"));
        let told = format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "));
        Ok(Wanted { columns, values, told, names: against.keys().map(String::as_str).collect() })
    }

    fn is_met(&self, point: &Compared<'_>) -> bool {
        let mut pairs = point.parameters.iter().zip(&self.values);
        pairs.all(|(value, wanted)| wanted.as_ref().is_none_or(|wanted| wanted == value))
    }

    /// A point's other values as text: equal texts mean equal values.
    fn others(&self, point: &Compared<'_>) -> String {
        let kept = point.parameters.iter().zip(&self.values).filter(|(_, wanted)| wanted.is_none());
        format!("{} {:?}", point.seed, kept.map(|(value, _)| value).collect::<Vec<_>>())
    }

    /// Names of the other columns in which two points differ.
    fn differing(&self, one: &Compared<'_>, other: &Compared<'_>) -> Vec<&'a str> {
        let seed = (one.seed != other.seed).then_some("seed");
        let pairs = one.parameters.iter().zip(other.parameters);
        let kept = self.columns.iter().zip(&self.values).zip(pairs);
        let differing = kept.filter(|((_, wanted), (one, other))| wanted.is_none() && one != other);
        seed.into_iter().chain(differing.map(|((column, _), _)| &column.name[..])).collect()
    }

    /// Checks that two points with equal columns are equal in their properties without columns too,
    /// except for what the rule itself names.
    fn check_alike(&self, base: &Compared<'_>, point: &Compared<'_>) -> Result<(), ScenarioError> {
        let is_named =
            |key: &str| self.names.iter().any(|name| name.rsplit('.').next() == Some(key));
        let mut differing = columnless(base, point);
        differing.retain(|key| !is_named(key));
        if differing.is_empty() {
            return Ok(());
        }
        let expected = format!(
            "points that are otherwise equal: \"{}\" and \"{}\" differ by {}",
            base.title,
            point.title,
            unnamed(&differing)
        );
        Err(self.refusal(expected))
    }

    fn refuse_two(&self, one: &Compared<'_>, other: &Compared<'_>) -> ScenarioError {
        let differing = columnless(one, other);
        let how = match differing.is_empty() {
            true => "are the same".to_owned(),
            false => format!("differ by {}", unnamed(&differing)),
        };
        let (one, other) = (one.title, other.title);
        self.refusal(format!("values of one point each: \"{one}\" and \"{other}\" {how}"))
    }

    fn refuse_lonely<'p>(
        &self,
        point: &Compared<'_>,
        candidates: impl Iterator<Item = &'p Compared<'p>>,
    ) -> ScenarioError {
        let told = candidates.map(|base| (self.differing(base, point), base.title));
        let nearest = told.min_by_key(|(differing, _)| differing.len());
        let how = match nearest {
            None => "no point has these values".to_owned(),
            Some((by, title)) => format!("the nearest, \"{title}\", differs by {}", by.join(", ")),
        };
        let title = point.title;
        self.refusal(format!("values of a point otherwise equal to \"{title}\": {how}"))
    }

    fn refusal(&self, expected: impl Into<String>) -> ScenarioError {
        ScenarioError::value("stop.against", &self.told, expected)
    }
}

fn columnless(one: &Compared<'_>, other: &Compared<'_>) -> Vec<&'static str> {
    let pairs = one.columnless.iter().zip(&other.columnless);
    pairs.filter(|(one, other)| one != other).map(|((key, _), _)| *key).collect()
}

fn unnamed(keys: &[&str]) -> String {
    format!("{}, which has no column unless it is in a [[sweep]]", keys.join(" and "))
}
