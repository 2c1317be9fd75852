//! The plot of the gates: how far each value is from its limit.

use super::judge::{Judged, number};
use crate::panel::{INK, NOTE, TITLE};
use crate::plot::{Anchor, Font, Picture, Scale};
use corridor_results::checks::Sense;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 48.0;
const HEADER: f64 = 110.0;
/// Height of a gate's line.
const LINE: f64 = 24.0;
/// Range of values: from a quarter of the limit to four times the limit.
const TRACK: (f64, f64) = (360.0, 760.0);
const RANGE: f64 = 4.0;

const GOOD: &str = "#00805c";
const BAD: &str = "#b3261e";
const UNKNOWN: &str = "#7b8794";
const FIELD: &str = "#e6f2ee";
const GRID: &str = "#e4e7eb";

/// Draws the plot as SVG.
pub(super) fn draw(judged: &[Judged]) -> String {
    let passed = judged.iter().filter(|row| row.pass == Some(true)).count();
    let title = format!("Promises: {passed} of {} gates pass", judged.len());
    let height = HEADER + LINE * judged.len() as f64 + 40.0;
    let mut picture = Picture::new(WIDTH, height, &title);
    picture.text((MARGIN, 48.0), TITLE, &title);
    let words = "Means and confidence intervals (95 %; wider where fewer repeats were enough) over \
                 their limits, logarithmic; the limit is in the middle, the good side is tinted.";
    picture.text((MARGIN, 76.0), NOTE, words);
    for (index, row) in judged.iter().enumerate() {
        draw_line(&mut picture, HEADER + LINE * index as f64, row);
    }
    picture.finish()
}

fn draw_line(picture: &mut Picture, top: f64, row: &Judged) {
    let x = Scale::log((1.0 / RANGE, RANGE), TRACK);
    let middle = top + LINE / 2.0;
    let limit = x.at(1.0);
    let left = if row.sense == Sense::AtLeast { limit } else { TRACK.0 };
    picture.rect((left, top + 2.0), (limit - TRACK.0, LINE - 4.0), 0.0, FIELD);
    picture.line((TRACK.0, middle), (TRACK.1, middle), 1.0, GRID);
    picture.line((limit, top + 2.0), (limit, top + LINE - 2.0), 1.5, UNKNOWN);
    let (word, colour) = match row.pass {
        Some(true) => ("pass", GOOD),
        Some(false) => ("FAIL", BAD),
        None => ("not measured", UNKNOWN),
    };
    // Values at or below zero are at the left end.
    let place = |value: f64| x.at(value / row.limit);
    if let Some([low, high]) = row.interval {
        picture.line((place(low), middle), (place(high), middle), 3.0, colour);
    }
    if let Some(value) = row.value {
        picture.curve(&[(place(value), middle)], 2.0, "none", colour);
    }
    let base = middle + 5.0;
    let name = Font { size: 13.0, colour: INK, anchor: Anchor::End, ..NOTE };
    picture.text((TRACK.0 - 16.0, base), name, &row.gate);
    let value = row.value.map_or("-".to_owned(), number);
    let words = format!("{value} {}, {} {}", row.unit, row.sense.words(), number(row.limit));
    picture.text((TRACK.1 + 16.0, base), Font { size: 13.0, ..NOTE }, &words);
    let verdict = Font { size: 13.0, bold: true, colour, anchor: Anchor::End };
    picture.text((WIDTH - MARGIN, base), verdict, word);
}
