//! Results for people and for programs: a table with units in its head, or JSON lines.

use std::io::{self, IsTerminal, Write};

use corridor_results::{Estimate, Results, Summary};
use corridor_scenario::{Column, Value};
use serde_json::{Map, Number, json};

/// Maximum number of digits before and after the decimal point of a mean, as far as it is known.
const DIGITS_MAX: i32 = 6;
/// Digits of a half-width, and of a mean that has none.
const WIDTH_DIGITS: i32 = 2;
const MEAN_DIGITS: i32 = 4;

/// Writes means with confidence intervals, a line for each group.
pub fn write(out: &mut impl Write, summary: &Summary, results: &Results) -> io::Result<()> {
    let name = results.metadata("plan_name").unwrap_or("results");
    let rows: u64 = summary.groups.iter().map(|group| group.rows).sum();
    let unfinished =
        if results.metadata("complete") == Some("false") { ", unfinished" } else { "" };
    writeln!(out, "{name}: {rows} replications{unfinished}, means \u{b1} 95 % confidence")?;
    let mut cells: Vec<Vec<String>> = Vec::new();
    for (place, column) in summary.by.iter().enumerate() {
        let values = summary.groups.iter().map(|group| group.values[place].to_string());
        let head = [spoken(short_path(&column.name, &summary.by)), shown_unit(column)];
        cells.push(head.into_iter().chain(values).collect());
    }
    let counts = summary.groups.iter().map(|group| group.rows.to_string());
    cells.push(["runs".to_owned(), String::new()].into_iter().chain(counts).collect());
    for (place, column) in summary.metrics.iter().enumerate() {
        let estimates: Vec<Option<Estimate>> =
            summary.groups.iter().map(|group| group.estimates[place]).collect();
        cells.push(metric_cells(column, &estimates));
    }
    let is_left = |column: usize| {
        summary.by.get(column).is_some_and(|by| by.kind == corridor_scenario::Kind::Text)
    };
    write_aligned(out, &cells, is_left)
}

/// Head, unit, and a cell for each group.
fn metric_cells(column: &Column, estimates: &[Option<Estimate>]) -> Vec<String> {
    let means = estimates.iter().flatten().map(|estimate| estimate.mean.abs());
    let (unit, factor) = scale(&column.unit, means.fold(0.0, f64::max));
    let scaled: Vec<Option<(f64, Option<f64>)>> = estimates
        .iter()
        .map(|estimate| estimate.map(|e| (e.mean * factor, e.half_width.map(|half| half * factor))))
        .collect();
    let decimals = scaled.iter().flatten().map(|&(mean, half)| decimals(mean, half)).max();
    let decimals = decimals.unwrap_or(0);
    let widths = scaled.iter().flatten().filter_map(|(_, half)| *half);
    let width = widths.map(|half| format!("{half:.decimals$}").len()).max().unwrap_or(0);
    let cell = |value: &Option<(f64, Option<f64>)>| match value {
        None => "-".to_owned(),
        Some((mean, Some(half))) => format!("{mean:.decimals$} \u{b1} {half:>width$.decimals$}"),
        Some((mean, None)) if width > 0 => {
            format!("{mean:.decimals$}   {:width$}", "")
        }
        Some((mean, None)) => format!("{mean:.decimals$}"),
    };
    let head = [spoken(&column.name), unit];
    head.into_iter().chain(scaled.iter().map(cell)).collect()
}

/// Number of significant digits after the decimal point.
fn decimals(mean: f64, half: Option<f64>) -> usize {
    let place = |value: f64| value.abs().log10().floor() as i32;
    let (mut wanted, mut most) = (0, DIGITS_MAX);
    if mean != 0.0 {
        wanted = MEAN_DIGITS - 1 - place(mean);
        most = DIGITS_MAX - 1 - place(mean);
    }
    if let Some(half) = half.filter(|&half| half > 0.0) {
        wanted = WIDTH_DIGITS - 1 - place(half);
    }
    wanted.min(most).clamp(0, DIGITS_MAX) as usize
}

/// A unit in which the largest value is easy to read, and the factor to it.
fn scale(unit: &str, largest: f64) -> (String, f64) {
    match unit {
        "bit/s" if largest >= 1e4 => ("Mbit/s".to_owned(), 1e-6),
        "s" if largest < 1.0 => ("ms".to_owned(), 1e3),
        "1" => (String::new(), 1.0),
        unit => (unit.to_owned(), 1.0),
    }
}

/// Parameters are shown as they are written.
fn shown_unit(column: &Column) -> String {
    if column.unit == "1" { String::new() } else { column.unit.clone() }
}

/// The last name of a swept path, if no other shown column ends with the same.
fn short_path<'a>(path: &'a str, by: &[Column]) -> &'a str {
    let last = |path: &'a str| path.rsplit('.').next().unwrap_or(path);
    let same = by.iter().filter(|column| column.name.rsplit('.').next() == Some(last(path)));
    if same.count() == 1 { last(path) } else { path }
}

/// A column's name without its unit, which is shown below it.
fn spoken(name: &str) -> String {
    let name =
        ["_bps", "_ms", "_us", "_s"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    name.replace('_', " ")
}

/// Writes columns of cells side by side; the first two lines are the head.
fn write_aligned(
    out: &mut impl Write,
    columns: &[Vec<String>],
    is_left: impl Fn(usize) -> bool,
) -> io::Result<()> {
    let width = |cells: &Vec<String>| cells.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(width).collect();
    let lines = columns.first().map_or(0, Vec::len);
    let bold = is_coloured();
    for line in 0..lines {
        let cells = columns.iter().zip(&widths).enumerate().map(|(place, (cells, &width))| {
            let cell = &cells[line];
            if is_left(place) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let text = cells.collect::<Vec<_>>().join("  ");
        match text.trim_end() {
            "" => {}
            text if line < 2 && bold => writeln!(out, "\u{1b}[1m{text}\u{1b}[0m")?,
            text => writeln!(out, "{text}")?,
        }
    }
    Ok(())
}

fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes means with confidence intervals as JSON lines.
pub fn write_json(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    for group in &summary.groups {
        let by = summary.by.iter().zip(&group.values);
        let by: Map<_, _> = by.map(|(column, value)| (column.name.clone(), plain(value))).collect();
        let metrics = summary.metrics.iter().zip(&group.estimates);
        let metrics: Map<_, _> = metrics
            .map(|(column, estimate)| {
                let told = estimate.map(|estimate| {
                    json!({
                        "mean": estimate.mean,
                        "ci95_half_width": estimate.half_width,
                        "count": estimate.count,
                        "unit": column.unit,
                    })
                });
                (column.name.clone(), told.unwrap_or(serde_json::Value::Null))
            })
            .collect();
        writeln!(out, "{}", json!({ "by": by, "replications": group.rows, "metrics": metrics }))?;
    }
    Ok(())
}

/// Writes every row as a JSON line.
pub fn write_rows(out: &mut impl Write, results: &Results) -> io::Result<()> {
    let columns = &results.columns;
    for record in &results.records {
        let pairs = columns.iter().zip(&record.values);
        let row: Map<_, _> =
            pairs.map(|(column, value)| (column.name.clone(), plain(value))).collect();
        writeln!(out, "{}", serde_json::Value::Object(row))?;
    }
    Ok(())
}

fn plain(value: &Value) -> serde_json::Value {
    match value {
        Value::Absent => serde_json::Value::Null,
        Value::Flag(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Real(value) => Number::from_f64(*value).into(),
        Value::Text(text) => text.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_results::Group;
    use corridor_scenario::{Kind, Role};

    fn column(name: &str, unit: &str, kind: Kind) -> Column {
        let [name, unit] = [name, unit].map(str::to_owned);
        Column { name, unit, meaning: String::new(), role: Role::Metric, kind }
    }

    fn summary() -> Summary {
        let estimate = |mean, half_width| Some(Estimate { count: 9, mean, half_width });
        let group = |path: &str, q: f64, estimates| Group {
            values: vec![Value::Text(path.into()), Value::Real(q)],
            rows: 9,
            estimates,
        };
        Summary {
            by: vec![column("path", "", Kind::Text), column("network.q", "1", Kind::Real)],
            metrics: vec![
                column("goodput_bps", "bit/s", Kind::Real),
                column("delay_p95_s", "s", Kind::Real),
            ],
            groups: vec![
                group("plain", 0.0, vec![estimate(5e5, Some(0.0)), estimate(0.0123, None)]),
                group("coded", 0.005, vec![estimate(68_812.3, Some(1_234.0)), None]),
            ],
        }
    }

    fn results() -> Results {
        Results { columns: Vec::new(), records: Vec::new(), metadata: Vec::new() }
    }

    #[test]
    fn the_table_has_units_in_its_head_and_no_more_digits_than_are_known() {
        let mut out = Vec::new();
        write(&mut out, &summary(), &results()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "results: 18 replications, means \u{b1} 95 % confidence");
        assert_eq!(lines[1].trim_end(), "path       q  runs          goodput  delay p95");
        assert!(lines[2].ends_with("Mbit/s         ms"), "{text}");
        assert!(
            lines[3].starts_with("plain      0     9  0.5000 \u{b1} 0.0000      12.30"),
            "{text}"
        );
        assert!(
            lines[4].starts_with("coded  0.005     9  0.0688 \u{b1} 0.0012          -"),
            "{text}"
        );
    }

    #[test]
    fn json_has_plain_numbers_in_si_units() {
        let mut out = Vec::new();
        write_json(&mut out, &summary()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!(line["by"]["path"], "coded");
        assert_eq!(line["metrics"]["goodput_bps"]["mean"], 68_812.3);
        assert_eq!(line["metrics"]["goodput_bps"]["ci95_half_width"], 1_234.0);
        assert!(line["metrics"]["delay_p95_s"].is_null());
    }
}
