//! Sweeps: which values of which fields to try, and how they are put into the file's tables.

use corridor_document::rate::Rate;
use toml::{Table, Value as Toml};

use crate::error::ScenarioError;
use crate::record::Value;

/// Most points of a plan.
pub const POINTS_MAX: usize = 100_000;
/// Parts of a file that say how to run it, not what to run: they are the same for all points.
const NOT_SWEPT: [&str; 7] =
    ["name", "description", "repeats", "replications", "stop", "sweep", "output"];

/// One value for each swept path.
pub(crate) type Setting = Vec<(String, Toml)>;

/// All settings of these sweeps, in order: tables are crossed, the first one outermost; the lists
/// of one table advance in parallel. Without sweeps there is one empty setting.
pub(crate) fn settings(sweeps: &[Table]) -> Result<Vec<Setting>, ScenarioError> {
    let mut all = vec![Setting::new()];
    let mut paths: Vec<String> = Vec::new();
    for (index, sweep) in sweeps.iter().enumerate() {
        let mut lists = Vec::new();
        flattened("", sweep, &mut lists);
        lists.sort_by(|(a, _), (b, _)| a.cmp(b));
        let steps = steps(index, &lists)?;
        for (path, _) in lists {
            let clashes = |other: &&String| is_within(&path, other) || is_within(other, &path);
            if let Some(other) = paths.iter().find(clashes) {
                let expected = format!("another path: \"{other}\" is already swept");
                return Err(refused(index, &path, "again", expected));
            }
            paths.push(path);
        }
        let given = all.len().saturating_mul(steps.len());
        if given > POINTS_MAX {
            return Err(ScenarioError::TooManyPoints { given, max: POINTS_MAX });
        }
        let crossed = all.iter().flat_map(|outer| {
            steps.iter().map(|step| outer.iter().chain(step).cloned().collect::<Setting>())
        });
        all = crossed.collect();
    }
    Ok(all)
}

/// Whether `inner` equals `outer` or is a part of it.
fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The lists of one table, in parallel.
fn steps(index: usize, sweep: &[(String, Toml)]) -> Result<Vec<Setting>, ScenarioError> {
    let mut steps: Vec<Setting> = Vec::new();
    for (path, values) in sweep {
        let first = path.split('.').next().unwrap_or_default();
        if NOT_SWEPT.contains(&first) {
            let expected = "a path of a simulated value, such as \"network.links.erasure_ratio\"";
            return Err(refused(index, path, values, expected));
        }
        let values = match values {
            Toml::Array(values) if !values.is_empty() => values,
            _ => return Err(refused(index, path, values, "a list of one value or more")),
        };
        if steps.is_empty() {
            steps = vec![Setting::new(); values.len()];
        }
        if steps.len() != values.len() {
            let expected =
                format!("{} values, like the other lists of this [[sweep]]", steps.len());
            return Err(refused(index, path, format!("{} values", values.len()), expected));
        }
        for (step, value) in steps.iter_mut().zip(values) {
            step.push((path.clone(), number_of_rate(path, value)));
        }
    }
    if steps.is_empty() {
        return Err(ScenarioError::value(
            format!("sweep[{index}]"),
            "{}",
            "a list of values for a path, such as medium.rtt_ms = [4, 8]",
        ));
    }
    Ok(steps)
}

/// Converts a rate to a number, so that its column is numeric however the plan spells it.
fn number_of_rate(path: &str, value: &Toml) -> Toml {
    let rate = value.as_str().filter(|_| path.ends_with("_bps")).and_then(Rate::parse);
    match rate {
        Some(Rate(bps)) if bps.fract() == 0.0 => Toml::Integer(bps as i64),
        Some(Rate(bps)) => Toml::Float(bps),
        None => value.clone(),
    }
}

/// The paths of a sweep with their values; TOML makes tables of unquoted dots.
fn flattened(before: &str, table: &Table, paths: &mut Vec<(String, Toml)>) {
    for (key, value) in table {
        let path = if before.is_empty() { key.clone() } else { format!("{before}.{key}") };
        match value {
            Toml::Table(inner) => flattened(&path, inner, paths),
            list => paths.push((path, list.clone())),
        }
    }
}

fn refused(
    index: usize,
    path: &str,
    given: impl ToString,
    expected: impl Into<String>,
) -> ScenarioError {
    ScenarioError::value(format!("sweep[{index}].\"{path}\""), given, expected)
}

/// Sets the value at a path, and creates missing tables on the way.
pub(crate) fn set(file: &mut Table, path: &str, value: &Toml) -> Result<(), ScenarioError> {
    let fault = |expected: String| {
        ScenarioError::value(format!("sweep \"{path}\""), value.to_string(), expected)
    };
    let words: Vec<&str> = path.split('.').collect();
    if words.iter().any(|word| word.is_empty()) {
        return Err(fault("names with single dots between them".to_owned()));
    }
    let (last, way) = words.split_last().expect("a text has a part before its first dot");
    let mut at: Option<&mut Toml> = None;
    for (depth, word) in way.iter().enumerate() {
        let next = match at {
            None => file.entry(*word).or_insert_with(|| Toml::Table(Table::new())),
            Some(here) => child(here, word, &words[..depth]).map_err(fault)?,
        };
        at = Some(next);
    }
    match at {
        None => {
            file.insert((*last).to_owned(), value.clone());
        }
        Some(here) => *child(here, last, way).map_err(fault)? = value.clone(),
    }
    Ok(())
}

/// The part of a table or list that a word names; `before` are the words that lead to it.
fn child<'a>(here: &'a mut Toml, word: &str, before: &[&str]) -> Result<&'a mut Toml, String> {
    let place = before.join(".");
    match here {
        Toml::Table(table) => Ok(table.entry(word).or_insert_with(|| Toml::Table(Table::new()))),
        Toml::Array(list) => {
            let max = list.len().saturating_sub(1);
            let index = word.parse::<usize>().ok().filter(|&index| index <= max);
            match index.and_then(|index| list.get_mut(index)) {
                Some(item) => Ok(item),
                None => Err(format!("a number from 0 to {max} after \"{place}\", not \"{word}\"")),
            }
        }
        other => Err(format!("a path that exists: \"{place}\" is {other}, not a table")),
    }
}

/// A swept value as stored in a record: lists and tables as their text.
pub(crate) fn value_of(value: &Toml) -> Value {
    match value {
        Toml::Boolean(value) => Value::Flag(*value),
        Toml::Integer(value) => Value::Integer(*value),
        Toml::Float(value) => Value::from(*value),
        Toml::String(text) => Value::Text(text.clone()),
        other => Value::Text(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweeps(text: &str) -> Result<Vec<Setting>, ScenarioError> {
        let file: Table = toml::from_str(text).unwrap();
        let sweeps: Vec<Table> = file["sweep"].clone().try_into().unwrap();
        settings(&sweeps)
    }

    fn refusal(text: &str) -> String {
        sweeps(text).unwrap_err().to_string()
    }

    #[test]
    fn tables_are_crossed_and_lists_of_one_table_go_side_by_side() {
        let settings =
            sweeps("[[sweep]]\n'a.x' = [1, 2]\na.y = ['p', 'q']\n[[sweep]]\nb = [3, 4, 5]")
                .unwrap();
        let told: Vec<String> = settings
            .iter()
            .map(|s| s.iter().map(|(path, value)| format!("{path}={value} ")).collect())
            .collect();
        assert_eq!(told.len(), 6);
        assert_eq!(told[0], "a.x=1 a.y=\"p\" b=3 ");
        assert_eq!(told[1], "a.x=1 a.y=\"p\" b=4 ");
        assert_eq!(told[5], "a.x=2 a.y=\"q\" b=5 ");
    }

    #[test]
    fn a_faulty_sweep_is_refused_by_name() {
        assert_eq!(
            refusal("[[sweep]]\n'a.x' = [1, 2]\n'b' = [1]"),
            "sweep[0].\"b\" = 1 values: expected 2 values, like the other lists of this [[sweep]]"
        );
        assert_eq!(
            refusal("[[sweep]]\na = []"),
            "sweep[0].\"a\" = []: expected a list of one value or more"
        );
        assert!(refusal("[[sweep]]").contains("sweep[0] = {}: expected a list"));
        assert!(refusal("[[sweep]]\nrepeats = [1]").contains("a path of a simulated value"));
        assert!(
            refusal("[[sweep]]\na = [1]\n[[sweep]]\n'a.b' = [1]").contains("expected another path")
        );
        let many = (0..317).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let text = format!("[[sweep]]\na = [{many}]\n[[sweep]]\nb = [{many}]");
        assert!(refusal(&text).contains("100489 points: expected at most 100000"));
    }

    #[test]
    fn a_path_goes_through_tables_and_lists() {
        let mut file: Table = toml::from_str("[[flow]]\nto = 4\n[medium]\nrate_bps = 1").unwrap();
        set(&mut file, "flow.0.tcp.variant", &Toml::String("tahoe".into())).unwrap();
        set(&mut file, "medium.rate_bps", &Toml::Integer(2)).unwrap();
        set(&mut file, "seed", &Toml::Integer(3)).unwrap();
        assert_eq!(file["flow"][0]["tcp"]["variant"].as_str(), Some("tahoe"));
        assert_eq!(file["medium"]["rate_bps"].as_integer(), Some(2));
        assert_eq!(file["seed"].as_integer(), Some(3));

        let mut fault = |path| set(&mut file, path, &Toml::Integer(7)).unwrap_err().to_string();
        assert_eq!(
            fault("flow.1.to"),
            "sweep \"flow.1.to\" = 7: expected a number from 0 to 0 after \"flow\", not \"1\""
        );
        assert_eq!(
            fault("medium.rate_bps.x"),
            "sweep \"medium.rate_bps.x\" = 7: expected a path that exists: \"medium.rate_bps\" is 2, not a table"
        );
        assert!(fault("medium..x").contains("single dots"));
    }
}
