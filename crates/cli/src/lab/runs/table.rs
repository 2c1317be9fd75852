//! Runs of the lab as a table.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter;

use corridor_scenario::{Engine, Row, Transport};

use crate::lab::median;

/// A line for each point and engine; with repeats, medians over the valid ones.
pub(super) fn write_table(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut points: BTreeMap<(usize, bool), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        points.entry((row.point, row.engine == Engine::Sim)).or_default().push(row);
    }
    let head = [
        "path",
        "policy",
        "load",
        "e1/e2/e3 %",
        "runs",
        "Mbit/s",
        "p50 ms",
        "p95 ms",
        "lost %",
        "tx/block",
        "air B/B",
        "late ms",
        "",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(points.values().map(|rows| table_line(rows)));
    if rows.iter().any(|row| !row.swept.is_empty()) {
        let swept = points.values().map(|rows| swept(rows[0]));
        let cells = iter::once("point".to_owned()).chain(swept);
        lines.iter_mut().zip(cells).for_each(|(line, cell)| line.insert(0, cell));
    }
    if rows.iter().any(|row| row.engine == Engine::Sim) {
        let engines = points.keys().map(|&(_, is_simulated)| match is_simulated {
            true => "simulator",
            false => "lab",
        });
        let cells = iter::once("engine").chain(engines);
        lines.iter_mut().zip(cells).for_each(|(line, cell)| line.insert(0, cell.to_owned()));
    }
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let texts = lines[0].len() - head.len() + 3;
    let widths: Vec<_> = (0..lines[0].len()).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < texts { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn table_line(rows: &[&Row]) -> Vec<String> {
    let first = rows[0];
    let valid: Vec<_> = rows.iter().filter(|row| row.valid).copied().collect();
    let used = if valid.is_empty() { rows.to_vec() } else { valid.clone() };
    let cell = |decimals: usize, field: &dyn Fn(&Row) -> Option<f64>| {
        let value = median(used.iter().filter_map(|row| field(row)).collect());
        value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let ms = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
    let lost = |row: &Row| match (row.packets_sent, row.packets_received) {
        (Some(sent), Some(received)) if sent > 0 => {
            Some(100.0 * (1.0 - received as f64 / sent as f64))
        }
        _ => None,
    };
    vec![
        first.path.to_string(),
        first.policy.clone(),
        load(first),
        erasures(first),
        format!("{}/{}", valid.len(), rows.len()),
        cell(3, &|row| Some(row.goodput_bps / 1e6)),
        cell(1, &|row| ms(row.delays.delay_p50_s)),
        cell(1, &|row| ms(row.delays.delay_p95_s)),
        cell(2, &lost),
        cell(1, &|row| row.transmissions_per_block),
        cell(2, &|row| row.air_bytes_per_byte),
        cell(2, &|row| ms(row.lateness_p99_s)),
        if valid.is_empty() { "not valid".to_owned() } else { String::new() },
    ]
}

/// The swept parameters, in words.
fn swept(row: &Row) -> String {
    row.swept.iter().map(|(path, value)| format!("{path} = {value}")).collect::<Vec<_>>().join(", ")
}

/// `-/-/20` without helper.
fn erasures(row: &Row) -> String {
    let percent = |ratio: Option<f64>| {
        // Tenths of a percent are shown if there are any.
        ratio.map_or("-".to_owned(), |ratio| format!("{}", (1e3 * ratio).round() / 10.0))
    };
    [row.e1, row.e2, Some(row.e3)].map(percent).join("/")
}

fn load(row: &Row) -> String {
    let kind = match (row.transport, row.congestion) {
        (Transport::Tcp, Some(congestion)) => format!("tcp {congestion}"),
        (Transport::Tcp, None) => "tcp".to_owned(),
        (Transport::Udp, _) => "udp".to_owned(),
    };
    let rate = row.offered_bps.map_or(String::new(), |bps| format!(" {:.2}M", bps / 1e6));
    let both = if row.sides.len() > 1 { " x2" } else { "" };
    kind + &rate + both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::runs::tests::rows;

    fn table(rows: &[Row]) -> Vec<String> {
        let mut out = Vec::new();
        write_table(&mut out, rows).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_table_has_a_line_for_each_point_with_medians() {
        let mut rows = rows();
        let lines = table(&rows);
        assert_eq!(lines.len(), 3);
        // Points alternate: kernel has 1, 3, 5 Mbit/s.
        assert!(lines[1].starts_with("kernel") && lines[1].contains(" 3.000 "), "{}", lines[1]);
        assert!(lines[2].contains(" 4.000 ") && lines[2].contains("3/3"), "{}", lines[2]);
        let place = |line: &str, text: &str| line.find(text).map(|at| at + text.len());
        assert_eq!(place(&lines[0], "Mbit/s"), place(&lines[1], "3.000"));

        rows[0].distrust("late");
        assert!(table(&rows)[1].contains(" 4.000 ") && table(&rows)[1].contains("2/3"));
        rows.iter_mut().for_each(|row| row.distrust("late"));
        assert!(table(&rows)[1].ends_with("not valid"));
    }

    #[test]
    fn what_is_swept_and_who_ran_it_are_told_where_there_is_something_to_tell() {
        let mut rows = rows();
        rows.iter_mut().for_each(|row| {
            row.swept.insert("medium.rtt_ms".to_owned(), 8.0.into());
        });
        rows[0].engine = Engine::Sim;
        let lines = table(&rows);
        assert_eq!(lines.len(), 4);
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines[0])[..3], ["engine", "point", "path"]);
        assert_eq!(words(&lines[2])[..4], ["simulator", "medium.rtt_ms", "=", "8"]);
    }
}
