//! From a plan's file and its sweeps to its points, and to the columns of their records.

use corridor_document::{Schema, without_indices};
use toml::{Table, Value as Toml};

use crate::error::ScenarioError;
use crate::metrics;
use crate::plan::{Load, Place, PlanFile, Point};
use crate::record::{Column, Kind, Role, Value};
use crate::sweep::{self, POINTS_MAX, Setting};

/// The file with a setting applied.
pub(crate) fn resolve(tree: &Table, setting: &[(String, Toml)]) -> Result<PlanFile, ScenarioError> {
    let mut tree = tree.clone();
    for (path, value) in setting {
        sweep::set(&mut tree, path, value)?;
    }
    // Through its text, as the file itself is read: a second deserializer for every table would add
    // half a megabyte to the program.
    toml::from_str(&tree.to_string()).map_err(|error: toml::de::Error| {
        let given: Vec<String> = setting.iter().map(|(_, value)| value.to_string()).collect();
        let paths: Vec<String> = setting.iter().map(|(path, _)| format!("\"{path}\"")).collect();
        let field = format!("sweep {}", paths.join(", "));
        let said = error.to_string().trim().replace('\n', " ");
        let schema = Schema::of::<PlanFile>();
        let known = match setting {
            [(path, _)] => schema.key(&without_indices(path)).map(|key| key.expected.clone()),
            _ => None,
        };
        let expected = known.unwrap_or_else(|| format!("a valid value: {said}"));
        ScenarioError::value(field, given.join(", "), expected)
    })
}

/// As [`resolve`], but the error names the single path at fault, if there is one.
fn resolve_or_blame(tree: &Table, setting: &Setting) -> Result<PlanFile, ScenarioError> {
    resolve(tree, setting).map_err(|error| {
        let without = |skipped: usize| -> Setting {
            let kept = setting.iter().enumerate().filter(|(index, _)| *index != skipped);
            kept.map(|(_, pair)| pair.clone()).collect()
        };
        let culprit = (0..setting.len()).find(|&index| resolve(tree, &without(index)).is_ok());
        culprit.and_then(|index| resolve(tree, &setting[index..=index]).err()).unwrap_or(error)
    })
}

/// The points of all settings, and the columns of their records.
pub(crate) fn points(
    tree: &Table,
    settings: &[Setting],
    place: Place<'_>,
) -> Result<(Vec<Point>, Vec<Column>), ScenarioError> {
    let mut points: Vec<Point> = Vec::new();
    for setting in settings {
        let file = resolve_or_blame(tree, setting)?;
        let (seed, output) = (file.seed, file.output.clone());
        for load in file.loads(place)? {
            let own = metrics::parameter_names(&load);
            let swept = setting.iter().filter(|(path, _)| !is_own(&own, path));
            let swept = swept.map(|(_, value)| sweep::value_of(value));
            let parameters = swept.chain(metrics::parameters(&load)).collect();
            let (title, keep) = (title(setting, &load), output.keep(&load)?);
            points.push(Point { index: points.len(), seed, load, keep, parameters, title });
        }
        if points.len() > POINTS_MAX {
            return Err(ScenarioError::TooManyPoints { given: points.len(), max: POINTS_MAX });
        }
    }
    let mut columns = vec![
        Column::new("point", Role::Key, Kind::Integer, "1", "index in the plan, from 0"),
        Column::new(
            "replication",
            Role::Key,
            Kind::Integer,
            "1",
            "index of the replication, from 0",
        ),
        Column::new("seed", Role::Parameter, Kind::Integer, "1", "seed of the random streams"),
    ];
    let own = points.first().map(|point| metrics::parameter_names(&point.load));
    let own = own.unwrap_or_default();
    let paths = settings[0].iter().map(|(path, _)| path).filter(|path| !is_own(&own, path));
    let paths: Vec<String> = paths.cloned().collect();
    for (place, path) in paths.iter().enumerate() {
        let mut values: Vec<Value> =
            points.iter_mut().map(|point| core::mem::take(&mut point.parameters[place])).collect();
        columns.push(Column::of_values(path, &mut values));
        for (point, value) in points.iter_mut().zip(values) {
            point.parameters[place] = value;
        }
    }
    let loads = points.iter().map(|point| &point.load);
    columns.extend(metrics::columns(&loads.collect::<Vec<_>>()));
    Ok((points, columns))
}

/// Whether a path names a column that exists without being swept.
fn is_own(names: &[String], path: &str) -> bool {
    path == "seed" || names.iter().any(|name| name == path)
}

fn title(setting: &Setting, load: &Load) -> String {
    let told = setting.iter().map(|(path, value)| format!("{path} = {value}"));
    let run = match load {
        Load::Radio(radio) => Some(radio.run.title()),
        Load::Network(_) => None,
    };
    told.chain(run).collect::<Vec<_>>().join(", ")
}
