//! Plot of a run: rate over block or window size, both logarithmic, one panel per operation.

use std::fmt::Write;

use crate::limits::ReadSources;
use crate::ours;
use crate::peers::simdx;
use crate::plan::Operation;
use crate::report::Row;

const WIDTH: f64 = 1180.0;
const HEIGHT: f64 = 1385.0;
/// Position and size of the plots, and space for the labels beside each.
const PLOT_SIZE: (f64, f64) = (330.0, 330.0);
const COLUMNS: [f64; 2] = [70.0, 655.0];
const LINES: [f64; 3] = [120.0, 545.0, 970.0];

/// Range of rates, in GB/s: the same in every panel, so that panels can be compared.
const RATES: (f64, f64) = (0.001, 100.0);

const INK: &str = "#1f2933";
const FAINT: &str = "#d9dee4";
const QUIET: &str = "#66717e";
const FONTS: &str = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";

const PANELS: [Operation; 6] = [
    Operation::Encode,
    Operation::EncodeBatch,
    Operation::Recode,
    Operation::Decode,
    Operation::WindowEncode,
    Operation::WindowDecode,
];

/// A line of a panel.
struct Series {
    name: String,
    colour: &'static str,
    dash: &'static str,
    width: f64,
    /// Block sizes and rates in GB/s.
    points: Vec<(f64, f64)>,
}

/// Line style of a contestant: ours blue and thick, its other backends paler, its other fields
/// green, each peer in its own colour.
fn look(row: &Row, default_backend: &str) -> (&'static str, &'static str, f64) {
    match (row.library, row.field) {
        (ours::LIBRARY, "GF(2^8)") if row.backend == default_backend => ("#0b5cad", "", 3.2),
        (ours::LIBRARY, "GF(2^8)") => match row.backend.as_str() {
            "portable" => ("#a9c3de", "2 4", 2.0),
            "avx2" => ("#4a90d0", "7 4", 2.0),
            _ => ("#7fb0dc", "", 1.6),
        },
        (ours::LIBRARY, "GF(2)") => ("#11805a", "", 2.2),
        (ours::LIBRARY, _) => ("#5db075", "", 2.2),
        (ReadSources::LIBRARY, _) => ("#7b8794", "1 3", 1.4),
        ("rlnc", _) => ("#b3261e", "", 2.0),
        ("rlnc-simdx", _) => ("#e0832c", "", 2.0),
        ("reed-solomon-simd", _) => ("#8a5fbf", "5 3", 1.6),
        ("raptorq", _) => ("#b0619a", "5 3", 1.6),
        _ => ("#8b8f97", "5 3", 1.6),
    }
}

fn series(rows: &[Row], operation: Operation, symbol_size: usize) -> Vec<Series> {
    let default_backend = rows.iter().find(|row| row.library == ours::LIBRARY);
    let default_backend = default_backend.map_or("", |row| row.backend.as_str());
    let mut all: Vec<Series> = Vec::new();
    let of_panel = |row: &&Row| row.operation == operation.name() && row.symbol_size == symbol_size;
    for row in rows.iter().filter(of_panel) {
        let ours = row.library == ours::LIBRARY;
        // Other fields with other backends would only clutter the panel; so would a peer's.
        let forced = row.library == "rlnc-simdx" && row.backend == simdx::AVX2;
        if forced || ours && row.field != "GF(2^8)" && row.backend != default_backend {
            continue;
        }
        let name = match row.library {
            ours::LIBRARY if row.field == "GF(2^8)" => format!("corridor {}", row.backend),
            ours::LIBRARY => format!("corridor {}", row.field),
            ReadSources::LIBRARY => "reading alone".to_owned(),
            "cu-fec" if row.field == "GF(2)" => "cu-fec GF(2)".to_owned(),
            library => library.to_owned(),
        };
        let point = (row.block_size as f64, row.payload_bytes_per_s / 1e9);
        if let Some(known) = all.iter_mut().find(|series| series.name == name) {
            known.points.push(point);
            continue;
        }
        let (colour, dash, width) = look(row, default_backend);
        all.push(Series { name, colour, dash, width, points: vec![point] });
    }
    all
}

/// Plots the dense operations, and those on windows, at one symbol size; `limit` is in bytes per
/// second.
pub fn draw(rows: &[Row], symbol_size: usize, limit: Option<f64>, machine: &str) -> String {
    let mut body = String::new();
    rect(&mut body, (0.0, 0.0), (WIDTH, HEIGHT), "#ffffff");
    text(&mut body, (COLUMNS[0], 42.0), 24.0, "600", INK, "start", "Network coding on one core");
    let subtitle = format!(
        "Payload rate over symbols in a block or window, symbols of {symbol_size} bytes, GF(2^8) unless \
         named otherwise. {machine}"
    );
    text(&mut body, (COLUMNS[0], 66.0), 13.0, "400", QUIET, "start", &subtitle);
    for (index, operation) in PANELS.into_iter().enumerate() {
        let at = (COLUMNS[index % 2], LINES[index / 2]);
        panel(&mut body, at, operation, &series(rows, operation, symbol_size), limit);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" font-family=\"{FONTS}\">\n\
         <title>Coding rate over size of block and window, ours and peers</title>\n{body}</svg>\n"
    )
}

fn panel(
    body: &mut String,
    at: (f64, f64),
    operation: Operation,
    all: &[Series],
    limit: Option<f64>,
) {
    let points = || all.iter().flat_map(|series| &series.points);
    let Some(block_min) = points().map(|point| point.0).min_by(f64::total_cmp) else { return };
    let block_max = points().map(|point| point.0).fold(block_min, f64::max);
    let (low, high) = RATES;
    let share = |value: f64, low: f64, high: f64| (value / low).ln() / (high / low).ln();
    let x = |block: f64| at.0 + share(block, block_min, block_max) * PLOT_SIZE.0;
    let y = |rate: f64| at.1 + (1.0 - share(rate, low, high).clamp(0.0, 1.0)) * PLOT_SIZE.1;
    let (right, bottom) = (at.0 + PLOT_SIZE.0, at.1 + PLOT_SIZE.1);

    text(body, (at.0, at.1 - 16.0), 15.0, "600", INK, "start", operation.title());
    let mut rate = low;
    while rate <= high * 1.001 {
        line(body, &[(at.0, y(rate)), (right, y(rate))], 1.0, "", FAINT);
        let name = if rate >= 1.0 { format!("{rate:.0}") } else { format!("{rate}") };
        text(body, (at.0 - 8.0, y(rate) + 4.0), 11.5, "400", QUIET, "end", &name);
        rate *= 10.0;
    }
    text(body, (at.0 - 8.0, at.1 - 16.0), 11.5, "400", QUIET, "end", "GB/s");
    let mut blocks: Vec<f64> = points().map(|point| point.0).collect();
    blocks.sort_by(f64::total_cmp);
    blocks.dedup();
    for block in blocks {
        line(body, &[(x(block), bottom), (x(block), bottom + 4.0)], 1.0, "", QUIET);
        text(body, (x(block), bottom + 18.0), 11.5, "400", QUIET, "middle", &block.to_string());
    }
    text(body, (right + 22.0, bottom + 18.0), 11.5, "400", QUIET, "start", "symbols");

    let mut names: Vec<((f64, f64), &str, &str, bool)> = Vec::new();
    if let Some(limit) = limit {
        let rate = |block: f64| limit / 1e9 / operation.multiplications(block as usize);
        let at_block = |block: f64| (x(block), y(rate(block)));
        line(body, &[at_block(block_min), at_block(block_max)], 1.4, "1 3", INK);
        names.push((at_block(block_max), "register limit", INK, false));
    }
    // The most important lines are on top.
    for series in all.iter().rev() {
        let places: Vec<_> =
            series.points.iter().map(|&(block, rate)| (x(block), y(rate))).collect();
        line(body, &places, series.width, series.dash, series.colour);
        for (x, y) in &places {
            let _ = writeln!(
                body,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{}\"/>",
                series.width / 2.0 + 1.4,
                series.colour
            );
        }
        if let Some(&last) = places.last() {
            names.push((last, &series.name, series.colour, series.width > 3.0));
        }
    }
    let mut places: Vec<f64> = names.iter().map(|name| name.0.1).collect();
    spread(&mut places, 15.0, at.1, bottom);
    for ((from, name, colour, bold), place) in names.into_iter().zip(places) {
        line(body, &[(from.0 + 6.0, from.1), (right + 16.0, place)], 0.8, "", FAINT);
        let weight = if bold { "700" } else { "500" };
        text(body, (right + 20.0, place + 4.0), 12.0, weight, colour, "start", name);
    }
}

/// Spreads positions until neighbours are `gap` apart, in order, between `low` and `high` if there
/// is room.
fn spread(places: &mut [f64], gap: f64, low: f64, high: f64) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
    let mut least = low;
    for &index in &order {
        places[index] = places[index].max(least);
        least = places[index] + gap;
    }
    let mut most = high;
    for &index in order.iter().rev() {
        places[index] = places[index].min(most);
        most = places[index] - gap;
    }
}

fn rect(body: &mut String, at: (f64, f64), size: (f64, f64), colour: &str) {
    let ((x, y), (width, height)) = (at, size);
    let _ = writeln!(
        body,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"
    );
}

fn line(body: &mut String, places: &[(f64, f64)], width: f64, dash: &str, colour: &str) {
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        body,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
         stroke-linejoin=\"round\" stroke-linecap=\"round\" stroke-dasharray=\"{dash}\"/>",
        path.join(" ")
    );
}

fn text(
    body: &mut String,
    at: (f64, f64),
    size: f64,
    weight: &str,
    colour: &str,
    anchor: &str,
    words: &str,
) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        body,
        "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" \
         fill=\"{colour}\" text-anchor=\"{anchor}\">{words}</text>",
        at.0, at.1
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_distance() {
        let mut places = [50.0, 100.0, 99.0, 98.0];
        spread(&mut places, 10.0, 0.0, 100.0);
        assert_eq!(places, [50.0, 100.0, 90.0, 80.0]);
    }

    #[test]
    fn an_empty_run_has_a_picture_too() {
        let svg = draw(&[], 1450, None, "a < b");
        assert!(svg.starts_with("<svg") && svg.contains("a &lt; b"), "{svg}");
    }
}
