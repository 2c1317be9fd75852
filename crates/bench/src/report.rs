//! The result of a run: as a file, and as text tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::checks::Gate;
use crate::limits::Limits;
use crate::measure::{Contestant, Rate, median};
use crate::ours;
use crate::plan::{Group, Operation};

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub library: &'static str,
    pub backend: String,
    pub field: &'static str,
    pub operation: &'static str,
    pub block_size: usize,
    pub symbol_size: usize,
    pub payload_bytes_per_s: f64,
    /// Multiply-accumulated bytes per second, by the textbook, over the register limit measured
    /// alternately with it.
    pub ratio_to_limit: Option<f64>,
    /// Interquartile range of the turns over their median.
    pub spread: f64,
}

/// Measurements of a group, pass by pass.
pub struct Tally {
    pub group: Group,
    pub entries: Vec<Entry>,
    /// The register limit, measured once per round.
    pub limits: Vec<f64>,
}

/// Measurements of a contestant.
pub struct Entry {
    pub library: &'static str,
    pub backend: String,
    pub field: &'static str,
    pub payload_bytes: usize,
    /// Seconds per run, turn by turn.
    pub seconds: Vec<f64>,
}

impl From<Contestant> for Entry {
    fn from(contestant: Contestant) -> Self {
        let Contestant { library, backend, field, payload_bytes, .. } = contestant;
        Entry { library, backend, field, payload_bytes, seconds: Vec::new() }
    }
}

impl Tally {
    /// The group's figures.
    pub fn rows(mut self) -> Vec<Row> {
        let limit = median(&mut self.limits);
        let multiplications = self.group.operation.multiplications(self.group.block_size);
        let row = |mut entry: Entry| {
            let rate = Rate::of(entry.payload_bytes, &mut entry.seconds);
            Row {
                library: entry.library,
                backend: entry.backend,
                field: entry.field,
                operation: self.group.operation.name(),
                block_size: self.group.block_size,
                symbol_size: self.group.symbol_size,
                payload_bytes_per_s: rate.payload_bytes_per_s,
                ratio_to_limit: limit
                    .map(|limit| multiplications * rate.payload_bytes_per_s / limit),
                spread: rate.spread,
            }
        };
        self.entries.into_iter().map(row).collect()
    }
}

/// Conditions of the measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Header {
    pub cpu: String,
    pub cpu_features: Vec<&'static str>,
    pub core: usize,
    pub limits_before: Limits,
    pub limits_after: Limits,
    pub validity: Validity,
    pub seed: u64,
    pub passes: usize,
    /// Turns of a contestant per pass.
    pub repeats: usize,
    pub turn_ms: f64,
    pub quick: bool,
    pub rustc: &'static str,
    pub rustflags: &'static str,
    pub profile: &'static str,
    pub default_backend: String,
    pub peers: BTreeMap<&'static str, &'static str>,
    pub seconds: f64,
}

/// Validity of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Validity {
    /// The register loop moved at least 56 bytes per core cycle, before and after.
    pub limit_valid: bool,
    /// Register limit afterwards over before: far from 1 if the machine changed meanwhile.
    pub limit_drift: Option<f64>,
    /// The lowest register limit of a group, over the highest.
    pub limit_least: Option<f64>,
    /// Median of the rows' spreads.
    pub spread_median: f64,
    /// Whether it was built with optimisation.
    pub release: bool,
}

/// The file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub schema: u32,
    pub header: Header,
    pub checks: Vec<Gate>,
    pub rows: Vec<Row>,
}

/// The limits, on a few lines.
pub fn limits_text(limits: &Limits) -> String {
    let gigabytes =
        |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{:.0}", rate / 1e9));
    format!(
        "limits, GB/s: multiply-accumulate from registers {} ({}; {:.1} bytes per cycle at {:.2} \
         GHz), by AVX2 with the halves to split {}\n  in L1 / L2: read {} / {} (L3: {}), y ^= x {} / {}, y += c x {} / {}, four into one {} / {}\n",
        gigabytes(limits.register_mul_add),
        limits.register_loop,
        limits.register_bytes_per_cycle.unwrap_or(0.0),
        limits.clock_hz.unwrap_or(0.0) / 1e9,
        gigabytes(limits.register_mul_add_avx2),
        gigabytes(Some(limits.read_l1)),
        gigabytes(Some(limits.read_l2)),
        gigabytes(Some(limits.read_l3)),
        gigabytes(Some(limits.xor_l1)),
        gigabytes(Some(limits.xor_l2)),
        gigabytes(limits.mul_add_l1),
        gigabytes(limits.mul_add_l2),
        gigabytes(limits.mul_add_4_l1),
        gigabytes(limits.mul_add_4_l2),
    )
}

/// The figures of one operation at one symbol size, in GB/s; one row per contestant.
pub fn table(rows: &[Row], operation: Operation, symbol_size: usize) -> String {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.operation == operation.name() && row.symbol_size == symbol_size)
        .collect();
    let mut block_sizes: Vec<usize> = rows.iter().map(|row| row.block_size).collect();
    block_sizes.sort_unstable();
    block_sizes.dedup();
    let mut lines: Vec<(String, BTreeMap<usize, &Row>)> = Vec::new();
    for row in rows {
        let name = format!("{} {} {}", row.library, row.backend, row.field);
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, cells)) => {
                cells.insert(row.block_size, row);
            }
            None => lines.push((name, BTreeMap::from([(row.block_size, row)]))),
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("{}, {symbol_size} B, GB/s (x limit)\n", operation.title());
    let of = if Operation::WINDOW.contains(&operation) { "window" } else { "block" };
    let _ = write!(text, "{:44}", format!("  symbols of a {of}"));
    for block_size in &block_sizes {
        let _ = write!(text, "{block_size:>15}");
    }
    text.push('\n');
    for (name, cells) in lines {
        let _ = write!(text, "  {name:42}");
        for block_size in &block_sizes {
            let cell = cells.get(block_size).map_or("-".to_owned(), |row| {
                let rate = figures(row.payload_bytes_per_s / 1e9);
                row.ratio_to_limit.map_or(rate.clone(), |ratio| format!("{rate} ({ratio:.2})"))
            });
            let _ = write!(text, "{cell:>15}");
        }
        text.push('\n');
    }
    text
}

/// Formats with three significant digits.
pub fn figures(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value if value >= 0.1 => format!("{value:.3}"),
        value => format!("{value:.4}"),
    }
}

/// Finds figures of a run.
pub struct Figures<'a>(pub &'a [Row]);

impl<'a> Figures<'a> {
    fn find(&self, group: Group, is: impl Fn(&Row) -> bool) -> Option<&'a Row> {
        self.0.iter().find(|row| {
            row.operation == group.operation.name()
                && row.block_size == group.block_size
                && row.symbol_size == group.symbol_size
                && is(row)
        })
    }

    /// Our figure; the default backend is that of the first row.
    pub fn ours(&self, group: Group, field: &str, backend: Option<&str>) -> Option<&'a Row> {
        self.find(group, |row| {
            row.library == ours::LIBRARY
                && row.field == field
                && backend.is_none_or(|backend| row.backend == backend)
        })
    }

    /// The rate of a peer over GF(2^8), or of a limit, in payload bytes per second: with the
    /// detected backend, or the named one.
    pub fn peer(&self, group: Group, library: &str, backend: Option<&str>) -> Option<f64> {
        let row = self.find(group, |row| {
            row.library == library
                && ["GF(2^8)", ""].contains(&row.field)
                && backend.is_none_or(|backend| row.backend == backend)
        });
        row.map(|row| row.payload_bytes_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_count() {
        let texts = [123.4, 12.34, 1.234, 0.1234, 0.01234].map(figures);
        assert_eq!(texts, ["123", "12.3", "1.23", "0.123", "0.0123"]);
    }
}
