//! Merges results of parts of a plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::ResultsError;
use crate::results::Results;

/// Metadata in which parts may differ.
const OF_PARTS: [&str; 2] = ["corridor.complete_points", "corridor.complete"];

/// Merges results of different points of one plan, as if all had been run at once.
///
/// # Errors
/// [`ResultsError::Apart`] for parts of different plans, or of different versions of the code;
/// [`ResultsError::PointTwice`]; [`ResultsError::Format`] without parts.
pub fn merge(parts: Vec<(PathBuf, Results)>) -> Result<Results, ResultsError> {
    let mut parts = parts.into_iter();
    let Some((first, mut merged)) = parts.next() else {
        return Err(ResultsError::format("", "there are none"));
    };
    let mut homes: BTreeMap<usize, PathBuf> = BTreeMap::new();
    add_points(&mut homes, &first, &merged)?;
    let mut complete = complete_points(&first, &merged)?;
    for (path, part) in parts {
        compare(&first, &merged, &path, &part)?;
        add_points(&mut homes, &path, &part)?;
        complete += complete_points(&path, &part)?;
        merged.records.extend(part.records);
    }
    merged.records.sort_by_key(|record| (record.point, record.replication));
    let all = merged.metadata("points") == Some(&complete.to_string());
    for (name, value) in &mut merged.metadata {
        match &name[..] {
            "corridor.complete_points" => *value = complete.to_string(),
            "corridor.complete" => *value = all.to_string(),
            _ => {}
        }
    }
    Ok(merged)
}

fn compare(
    first: &Path,
    expected: &Results,
    path: &Path,
    given: &Results,
) -> Result<(), ResultsError> {
    let apart = |name: &str, given: String, expected: String| ResultsError::Apart {
        path: path.into(),
        name: name.to_owned(),
        given,
        expected,
        first: first.into(),
    };
    for (name, value) in &expected.metadata {
        let found = given.metadata.iter().find(|(other, _)| other == name);
        let found = found.map_or("absent", |(_, value)| value);
        let short = name.trim_start_matches("corridor.");
        if found != value && !OF_PARTS.contains(&&name[..]) {
            let [found, value] = [found, value].map(|text| match short {
                "plan" => "another text".to_owned(),
                _ => text.to_owned(),
            });
            return Err(apart(short, found, value));
        }
    }
    if given.columns != expected.columns {
        let names = |results: &Results| format!("of {} columns", results.columns.len());
        return Err(apart("the table", names(given), names(expected)));
    }
    Ok(())
}

/// Records which part these points are from.
fn add_points(
    homes: &mut BTreeMap<usize, PathBuf>,
    path: &Path,
    part: &Results,
) -> Result<(), ResultsError> {
    for record in &part.records {
        let home = homes.entry(record.point).or_insert_with(|| path.into());
        if home != path {
            let (point, other) = (record.point, home.clone());
            return Err(ResultsError::PointTwice { path: path.into(), point, other });
        }
    }
    Ok(())
}

fn complete_points(path: &Path, part: &Results) -> Result<usize, ResultsError> {
    let told = part.metadata("complete_points").and_then(|count| count.parse().ok());
    told.ok_or_else(|| ResultsError::format(path, "they do not say how many points are complete"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_scenario::{Measures, Plan};

    use crate::results::Provenance;

    fn part(points: &[usize], version: &str) -> Results {
        let text = "name = 't'\nseed = 1\nreplications = 2\nmedium = { duplex = 'half', \
             rate_bps = 12000000, rtt_ms = 4, queue_frames = 4 }\n[[run]]\npath = 'plain'\n\
             transport = 'udp'\noffered_bps = 1e6\ne3 = [0, 0.1, 0.2]\nduration_s = 1\n";
        let plan = Plan::parse(text, Path::new(".")).unwrap();
        let record = |(point, replication): (usize, u64)| {
            let mut measures = Measures::default();
            measures.set("goodput_bps", (10 * point) as f64 + replication as f64);
            plan.record(point, replication, &measures)
        };
        let rows = points.iter().flat_map(|&point| [(point, 0), (point, 1)]);
        let [commit, code_version] = ["abc", version].map(str::to_owned);
        let provenance = Provenance { commit, code_version, complete_points: points.len() };
        Results::new(&plan, rows.map(record).collect(), &provenance)
    }

    fn named(parts: &[(&str, Results)]) -> Vec<(PathBuf, Results)> {
        parts.iter().map(|(name, part)| (PathBuf::from(name), part.clone())).collect()
    }

    #[test]
    fn parts_are_as_if_all_had_been_run_at_once() {
        let whole = part(&[0, 1, 2], "v");
        let merged = merge(named(&[("b", part(&[1], "v")), ("a", part(&[0, 2], "v"))])).unwrap();
        assert_eq!((&merged.columns, &merged.records), (&whole.columns, &whole.records));
        assert_eq!(merged.metadata, whole.metadata);
        let some = merge(named(&[("b", part(&[1], "v")), ("c", part(&[2], "v"))])).unwrap();
        assert_eq!(some.metadata("complete"), Some("false"));
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let error = |parts: &[(&str, Results)]| merge(named(parts)).unwrap_err().to_string();
        let other = error(&[("a", part(&[0], "v")), ("b", part(&[1], "w"))]);
        assert_eq!(other, "b: code_version is w, expected v, as in a");
        let twice = error(&[("a", part(&[0, 1], "v")), ("b", part(&[1], "v"))]);
        assert_eq!(twice, "b: point 1 is also in a: expected each point in one part");
        assert!(error(&[]).contains("there are none"));
    }
}
