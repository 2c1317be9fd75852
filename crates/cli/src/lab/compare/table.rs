//! The table of a comparison: a group for each condition, a line for each contender.

use std::io::{self, Write};

use corridor_scenario::{Congestion, Direction, Duplex, Path, Row, Scenario, Transport};
use serde::Serialize;

use super::super::median;
use super::Compared;

/// One contender's result under one condition: medians over the valid repeats, or over all if none
/// is valid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Line {
    /// Name of the contender.
    pub(super) way: String,
    /// The radio, in one line.
    pub(super) medium: String,
    /// Traffic and losses, for people; the same for all contenders.
    pub(super) conditions: String,
    /// The same without the losses.
    pub(super) load: String,
    /// Erasure ratio.
    pub(super) loss_ratio: f64,
    /// Number of runs.
    pub(super) runs: usize,
    /// Number of valid runs.
    pub(super) valid: usize,
    /// Number of failed runs: the tunnel did not come up, or ended by itself.
    pub(super) failed: usize,
    /// `None` if all failed.
    pub(super) goodput_bps: Option<f64>,
    /// Goodput over C (1 - p), where C is the goodput of the kernel's cubic without losses and with
    /// the same traffic; for datagrams over the offered rate times 1 - p.
    pub(super) share: Option<f64>,
    pub(super) delay_p50_s: Option<f64>,
    pub(super) delay_p95_s: Option<f64>,
    /// Datagrams that did not arrive in time, over those sent.
    pub(super) missed_ratio: Option<f64>,
    /// 95th percentile of the concurrent echo's delay.
    pub(super) ping_p95_s: Option<f64>,
    /// Goodput of the concurrent flow.
    pub(super) beside_bps: Option<f64>,
    pub(super) air_bytes_per_byte: Option<f64>,
}

/// A line for each point, in the order of the points.
pub(super) fn summarise(rows: &[Compared]) -> Vec<Line> {
    let mut points: Vec<usize> = rows.iter().map(|compared| compared.row.point).collect();
    points.sort_unstable();
    points.dedup();
    let mut lines: Vec<Line> = Vec::new();
    for point in points {
        let mine: Vec<_> = rows.iter().filter(|compared| compared.row.point == point).collect();
        lines.push(line(&mine));
    }
    let references: Vec<Line> = lines
        .iter()
        .zip(first_rows(rows))
        .filter(|(_, row)| is_reference(row))
        .map(|(line, _)| line.clone())
        .collect();
    for (line, row) in lines.iter_mut().zip(first_rows(rows)) {
        let capacity_bps = match row.transport {
            Transport::Udp => row.offered_bps.map(|bps| bps * row.sides.len().max(1) as f64),
            Transport::Tcp => references
                .iter()
                .find(|other| other.load == line.load && other.medium == line.medium)
                .and_then(|other| other.goodput_bps),
        };
        let most = capacity_bps.map(|bps| bps * (1.0 - line.loss_ratio)).filter(|&bps| bps > 0.0);
        line.share = most.and_then(|most| Some(line.goodput_bps? / most));
    }
    lines
}

/// A row of each point.
fn first_rows(rows: &[Compared]) -> impl Iterator<Item = &Row> {
    let mut points: Vec<usize> = rows.iter().map(|compared| compared.row.point).collect();
    points.sort_unstable();
    points.dedup();
    let first = |point| rows.iter().map(|c| &c.row).find(move |row| row.point == point);
    points.into_iter().filter_map(first)
}

/// Whether shares are relative to it.
fn is_reference(row: &Row) -> bool {
    row.path == Path::Kernel
        && row.tunnel.is_none()
        && row.congestion == Some(Congestion::Cubic)
        && row.loss_ratio == 0.0
}

fn line(mine: &[&Compared]) -> Line {
    let first = &mine[0];
    let made: Vec<&Row> = mine.iter().filter(|c| c.failure.is_none()).map(|c| &c.row).collect();
    let valid: Vec<&Row> = made.iter().copied().filter(|row| row.valid).collect();
    let used = if valid.is_empty() { &made } else { &valid };
    let middle = |field: &dyn Fn(&Row) -> Option<f64>| {
        median(used.iter().filter_map(|row| field(row)).collect())
    };
    Line {
        way: first.way.clone(),
        medium: first.medium.clone(),
        conditions: conditions(&first.row),
        load: load(&first.row),
        loss_ratio: first.row.loss_ratio,
        runs: mine.len(),
        valid: valid.len(),
        failed: mine.len() - made.len(),
        goodput_bps: middle(&|row| Some(row.goodput_bps)),
        share: None,
        delay_p50_s: middle(&|row| row.delays.delay_p50_s),
        delay_p95_s: middle(&|row| row.delays.delay_p95_s),
        missed_ratio: middle(&Row::missed_ratio),
        ping_p95_s: middle(&|row| row.pings.as_ref()?.p95_s),
        beside_bps: middle(&|row| row.beside.as_ref().map(|side| side.goodput_bps)),
        air_bytes_per_byte: middle(&|row| row.air_bytes_per_byte),
    }
}

/// The traffic on the path, the same for all contenders.
fn load(row: &Row) -> String {
    let mut words = vec![match row.transport {
        Transport::Tcp => "TCP".to_owned(),
        Transport::Udp => "UDP".to_owned(),
    }];
    if let Some(bps) = row.offered_bps {
        words.push(format!("at {} Mbit/s", bps / 1e6));
    }
    if row.direction == Direction::Both {
        words.push("both ways".to_owned());
    }
    if row.ecn {
        words.push("with ECN".to_owned());
    }
    words.join(" ")
}

fn conditions(row: &Row) -> String {
    let bursts = row.burst_frames.filter(|_| row.loss_ratio > 0.0);
    let bursts = bursts.map_or(String::new(), |frames| format!(" in bursts of {frames}"));
    let lost = (1e3 * row.loss_ratio).round() / 10.0;
    format!("{}, {lost} % of frames lost{bursts}", load(row))
}

/// The radio, in one line.
pub(super) fn setting(scenario: &Scenario) -> String {
    let medium = &scenario.medium;
    let duplex = match medium.duplex {
        Duplex::Half => "half",
        Duplex::Full => "full",
    };
    let overhead = match medium.overhead_us {
        us if us > 0.0 => format!(", {us} us of overhead per frame"),
        _ => String::new(),
    };
    let retries = match medium.retry_limit {
        0 => String::new(),
        limit => format!(", up to {limit} retransmissions by the MAC"),
    };
    format!(
        "{duplex}-duplex, {} Mbit/s, RTT {} ms, queue of {} frames{overhead}{retries}",
        medium.rate_bps as f64 / 1e6,
        medium.rtt_ms,
        medium.queue_frames
    )
}

/// A column: its head, and its value in a line.
type Column = (&'static str, fn(&Line) -> Option<String>);

/// The columns, except those that are empty in all lines.
const COLUMNS: [Column; 9] = [
    ("Mbit/s", |line| line.goodput_bps.map(|bps| format!("{:.3}", bps / 1e6))),
    ("of C(1-p)", |line| line.share.map(|share| format!("{share:.3}"))),
    ("p50 ms", |line| ms(line.delay_p50_s)),
    ("p95 ms", |line| ms(line.delay_p95_s)),
    ("missed %", |line| line.missed_ratio.map(|ratio| format!("{:.3}", 100.0 * ratio))),
    ("ping p95 ms", |line| ms(line.ping_p95_s)),
    ("beside Mbit/s", |line| line.beside_bps.map(|bps| format!("{:.3}", bps / 1e6))),
    ("air B/B", |line| line.air_bytes_per_byte.map(|ratio| format!("{ratio:.3}"))),
    ("runs", |line| Some(format!("{}/{}", line.valid, line.runs))),
];

fn ms(seconds: Option<f64>) -> Option<String> {
    seconds.map(|seconds| format!("{:.1}", seconds * 1e3))
}

/// Writes all groups and a legend.
pub(super) fn write(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(_, cell)| lines.iter().any(|line| cell(line).is_some())).collect();
    let ways = lines.iter().map(|line| line.way.chars().count()).max().unwrap_or(0);
    let mut order: Vec<(&str, &str)> = Vec::new();
    for line in lines {
        let place = (line.medium.as_str(), line.conditions.as_str());
        if !order.contains(&place) {
            order.push(place);
        }
    }
    let mut above = "";
    for (medium, conditions) in order {
        if medium != above {
            let gap = if above.is_empty() { "" } else { "\n" };
            writeln!(out, "{gap}{medium}")?;
            above = medium;
        }
        writeln!(out, "\n{conditions}")?;
        let heads: Vec<_> = columns.iter().map(|(head, _)| format!("{head:>9}")).collect();
        writeln!(out, "  {:<ways$}  {}", "", heads.join("  "))?;
        let mine =
            lines.iter().filter(|line| (&*line.medium, &*line.conditions) == (medium, conditions));
        for line in mine {
            let cells = columns.iter().map(|(head, cell)| {
                let width = head.len().max(9);
                format!("{:>width$}", cell(line).unwrap_or_else(|| "-".to_owned()))
            });
            let cells = cells.collect::<Vec<_>>().join("  ");
            writeln!(out, "  {:<ways$}  {cells}{}", line.way, trust(line))?;
        }
    }
    writeln!(out)?;
    writeln!(
        out,
        "p: share of frames lost; C: the kernel's cubic without losses (for UDP what was offered)."
    )?;
    writeln!(out, "p50, p95: delay, one way and in order. Medians over the runs that are valid.")
}

/// Remarks about a line.
fn trust(line: &Line) -> String {
    match (line.failed, line.valid) {
        (0, 0) => "  not valid".to_owned(),
        (0, _) => String::new(),
        (failed, _) => format!("  {failed} failed"),
    }
}
