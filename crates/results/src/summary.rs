//! Means with confidence intervals, grouped by any columns.

use std::collections::BTreeMap;

use corridor_scenario::{Column, Role, Value, matches};

use crate::error::ResultsError;
use crate::estimate::Estimate;
use crate::results::Results;

/// Means of some metrics, per group of rows.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Columns by which rows are grouped.
    pub by: Vec<Column>,
    /// Metrics.
    pub metrics: Vec<Column>,
    /// Groups, in the order of their first rows.
    pub groups: Vec<Group>,
}

/// Rows with equal values in some columns.
#[derive(Clone, Debug)]
pub struct Group {
    /// These values.
    pub values: Vec<Value>,
    /// Number of rows.
    pub rows: u64,
    /// A mean per metric; `None` if no row has a value.
    pub estimates: Vec<Option<Estimate>>,
}

/// Groups rows, and computes the means of their metrics.
///
/// Without `by`, a group is a point, identified by the parameters that vary; without `metrics`,
/// they are the headline metrics that have values. `*` stands for any flow number.
///
/// # Errors
/// [`ResultsError::Column`].
pub fn summarise(
    results: &Results,
    by: &[String],
    metrics: &[String],
) -> Result<Summary, ResultsError> {
    let columns = &results.columns;
    let group_by = match by {
        [] => parameters_that_vary(results),
        _ => chosen(columns, "--by", by, |column| !column.is_metric())?,
    };
    let measured = match metrics {
        [] => headlines(results),
        _ => chosen(columns, "--metric", metrics, Column::is_metric)?,
    };
    // Also by point if grouping is by point: points may have equal parameters.
    let point = by.is_empty().then_some(0);
    let mut places: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut groups: Vec<(Vec<Value>, Vec<&Vec<Value>>)> = Vec::new();
    for record in &results.records {
        let key = point.iter().chain(&group_by).map(|&column| record.values[column].to_string());
        let place = *places.entry(key.collect()).or_insert_with(|| {
            groups.push((group_by.iter().map(|&c| record.values[c].clone()).collect(), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(&record.values);
    }
    let estimate = |rows: &[&Vec<Value>], column: usize| {
        let values: Vec<f64> = rows.iter().filter_map(|row| row[column].number()).collect();
        Estimate::of(&values)
    };
    let group = |(values, rows): (Vec<Value>, Vec<&Vec<Value>>)| Group {
        values,
        rows: rows.len() as u64,
        estimates: measured.iter().map(|&column| estimate(&rows, column)).collect(),
    };
    let take = |places: &[usize]| places.iter().map(|&place| columns[place].clone()).collect();
    Ok(Summary {
        by: take(&group_by),
        metrics: take(&measured),
        groups: groups.into_iter().map(group).collect(),
    })
}

/// Parameters with more than one value; the point if there are none.
fn parameters_that_vary(results: &Results) -> Vec<usize> {
    let varies = |place: usize| {
        let mut values = results.records.iter().map(|record| &record.values[place]);
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let parameters = results.columns.iter().enumerate();
    let parameters = parameters.filter(|(_, column)| column.role == Role::Parameter);
    let varying: Vec<usize> = parameters.map(|(place, _)| place).filter(|&p| varies(p)).collect();
    if varying.is_empty() { vec![0] } else { varying }
}

/// Headline metrics with a value in any row.
fn headlines(results: &Results) -> Vec<usize> {
    let has_values =
        |place: usize| results.records.iter().any(|record| record.values[place].number().is_some());
    let metrics = results.columns.iter().enumerate().filter(|(_, column)| column.is_metric());
    let (headlines, others): (Vec<_>, Vec<_>) =
        metrics.partition(|(_, column)| column.role == Role::Headline);
    // If a plan keeps none of them, show what it keeps.
    let shown = if headlines.is_empty() { others } else { headlines };
    shown.into_iter().map(|(place, _)| place).filter(|&place| has_values(place)).collect()
}

fn chosen(
    columns: &[Column],
    option: &'static str,
    names: &[String],
    of: impl Fn(&Column) -> bool,
) -> Result<Vec<usize>, ResultsError> {
    let mut places = Vec::new();
    for name in names {
        let all = columns.iter().enumerate().filter(|(_, column)| of(column));
        let found = all.filter(|(_, column)| matches(name, &column.name));
        let before = places.len();
        places.extend(found.map(|(place, _)| place));
        if places.len() == before {
            let names = columns.iter().filter(|column| of(column)).map(|column| &column.name[..]);
            let expected = names.collect::<Vec<_>>().join(", ");
            return Err(ResultsError::Column { option, given: name.clone(), expected });
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_scenario::{Kind, Record};

    fn results() -> Results {
        let column = |name: &str, role, kind| Column {
            name: name.into(),
            unit: "1".into(),
            meaning: String::new(),
            role,
            kind,
        };
        let columns = vec![
            column("point", Role::Key, Kind::Integer),
            column("replication", Role::Key, Kind::Integer),
            column("q", Role::Parameter, Kind::Real),
            column("kind", Role::Parameter, Kind::Text),
            column("goodput_bps", Role::Headline, Kind::Real),
            column("flow.0.timeouts", Role::Metric, Kind::Integer),
            column("flow.1.timeouts", Role::Metric, Kind::Integer),
        ];
        let record = |(point, replication, q, goodput): (usize, u64, f64, Option<f64>)| Record {
            point,
            replication,
            values: vec![
                Value::from(point as u64),
                replication.into(),
                q.into(),
                Value::Text("a".into()),
                goodput.into(),
                3u64.into(),
                5u64.into(),
            ],
        };
        let rows = [
            (0, 0, 0.1, Some(1.0)),
            (0, 1, 0.1, Some(3.0)),
            (1, 0, 0.2, None),
            (1, 1, 0.2, Some(8.0)),
        ];
        Results { columns, records: rows.map(record).into(), metadata: Vec::new() }
    }

    #[test]
    fn points_are_told_by_what_varies() {
        let summary = summarise(&results(), &[], &[]).unwrap();
        assert_eq!((summary.by.len(), summary.by[0].name.as_str()), (1, "q"));
        assert_eq!((summary.metrics.len(), summary.metrics[0].name.as_str()), (1, "goodput_bps"));
        assert_eq!(summary.groups.len(), 2);
        let first = summary.groups[0].estimates[0].unwrap();
        assert_eq!((first.mean, first.count), (2.0, 2));
        assert_eq!((summary.groups[1].rows, summary.groups[1].estimates[0].unwrap().count), (2, 1));
    }

    #[test]
    fn columns_and_metrics_can_be_chosen() {
        let by = ["kind".to_owned()];
        let summary = summarise(&results(), &by, &["flow.*.timeouts".to_owned()]).unwrap();
        assert_eq!((summary.groups.len(), summary.metrics.len()), (1, 2));
        assert_eq!(summary.groups[0].estimates[1].unwrap().mean, 5.0);
        let error = summarise(&results(), &["goodput_bps".to_owned()], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--by goodput_bps: expected one of point, replication, q, kind"
        );
        assert!(summarise(&results(), &[], &["q".to_owned()]).is_err());
    }
}
