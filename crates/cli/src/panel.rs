//! Panels of plots: a metric over frame loss, a curve for each contender.

use crate::plot::{Anchor, Font, Picture, Scale, nice_max, spread};

pub const INK: &str = "#1f2933";
pub const FAINT_INK: &str = "#616e7c";
const GRID: &str = "#e4e7eb";
/// Distance from the end of a curve to its label.
const LEADER: &str = "#cbd2d9";
const AXIS: &str = "#9aa5b1";

/// Minimum distance of labels' base lines.
const LABEL_GAP: f64 = 19.0;

pub const TITLE: Font = Font { size: 25.0, bold: true, colour: INK, anchor: Anchor::Start };
pub const PANEL: Font = Font { size: 17.0, bold: true, colour: INK, anchor: Anchor::Start };
pub const NOTE: Font = Font { size: 14.0, bold: false, colour: FAINT_INK, anchor: Anchor::Start };

/// Area of a panel's data: left, right, top and bottom edge. Titles need 70 above, the axis 74
/// below, the labels of the curves' ends 280 to the right.
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// A curve of a panel.
pub struct Curve {
    pub label: String,
    pub colour: &'static str,
    pub width: f64,
    pub dash: &'static str,
    /// Whether its points were measured; each of these gets a dot.
    pub has_dots: bool,
    /// Ascending by loss.
    pub spots: Vec<Spot>,
    /// The curve's end beyond the last point.
    pub beyond: Beyond,
}

/// A point of a curve.
pub struct Spot {
    /// Frame loss ratio.
    pub loss: f64,
    pub value: f64,
    /// The value for people.
    pub words: String,
    /// Whether it is valid; invalid points are drawn hollow.
    pub valid: bool,
}

/// Why a curve ends before the highest loss ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Nothing was measured.
    Nothing,
    /// There is a value, but it says nothing.
    Stalled,
}

/// Goodput in Mbit/s, from zero.
pub fn draw_goodput(
    picture: &mut Picture,
    frame: &Frame,
    title: &str,
    losses: &[f64],
    curves: &[Curve],
) {
    let values = curves.iter().flat_map(|curve| &curve.spots).map(|spot| spot.value);
    let (most, step) = nice_max(values.fold(0.0, f64::max));
    let y = Scale::linear((0.0, most), (frame.bottom, frame.top));
    draw_titles(picture, frame, title, "higher is better");
    let ticks = (0..=(most / step).round() as u32).map(|tick| f64::from(tick) * step);
    for tick in ticks {
        draw_tick(picture, frame, y.at(tick), &format!("{tick}"));
    }
    draw_curves(picture, frame, losses, &y, curves);
}

/// The delay within which 95 % arrive, in seconds, from 2 ms to 10 s.
pub fn draw_delay(
    picture: &mut Picture,
    frame: &Frame,
    title: &str,
    losses: &[f64],
    curves: &[Curve],
) {
    let y = Scale::log((0.002, 10.0), (frame.bottom, frame.top));
    draw_titles(picture, frame, title, "95 % arrive within; lower is better");
    for (tick, label) in [(0.01, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s")] {
        draw_tick(picture, frame, y.at(tick), label);
    }
    draw_curves(picture, frame, losses, &y, curves);
}

fn draw_titles(picture: &mut Picture, frame: &Frame, title: &str, note: &str) {
    let left = frame.left - 34.0;
    picture.text((left, frame.top - 44.0), PANEL, title);
    picture.text((left, frame.top - 22.0), NOTE, note);
}

fn draw_tick(picture: &mut Picture, frame: &Frame, y: f64, label: &str) {
    picture.line((frame.left, y), (frame.right, y), 1.0, GRID);
    picture.text((frame.left - 10.0, y + 5.0), Font { anchor: Anchor::End, ..NOTE }, label);
}

fn draw_curves(picture: &mut Picture, frame: &Frame, losses: &[f64], y: &Scale, curves: &[Curve]) {
    let most = losses.last().copied().unwrap_or(0.0).max(0.01);
    let x = Scale::linear((0.0, most), (frame.left + 12.0, frame.right));
    picture.line((frame.left, frame.bottom), (frame.right, frame.bottom), 1.5, AXIS);
    for &loss in losses {
        let font = Font { anchor: Anchor::Middle, ..NOTE };
        picture.text((x.at(loss), frame.bottom + 24.0), font, &format!("{:.0} %", 100.0 * loss));
    }
    let middle = f64::midpoint(frame.left, frame.right);
    let font = Font { anchor: Anchor::Middle, ..NOTE };
    picture.text((middle, frame.bottom + 48.0), font, "frames lost on the radio");

    let mut ends = Vec::new();
    for curve in curves {
        let places: Vec<_> =
            curve.spots.iter().map(|spot| (x.at(spot.loss), y.at(spot.value))).collect();
        picture.path(&places, curve.width, curve.dash, curve.colour);
        for (&place, spot) in places.iter().zip(&curve.spots).filter(|_| curve.has_dots) {
            picture.dot(place, curve.width + 2.0, spot.valid, curve.colour);
        }
        if let (Some(&place), Some(spot)) = (places.last(), curve.spots.last()) {
            let (label, colour) = (curve.label.as_str(), curve.colour);
            let words = words_of(curve, spot, losses);
            ends.push(Ending { place, label, colour, words });
        }
    }
    draw_endings(picture, frame, &ends);
}

/// The end of a curve, and its label.
struct Ending<'a> {
    place: (f64, f64),
    label: &'a str,
    colour: &'static str,
    words: String,
}

/// The value at the end of a curve, and what is beyond it.
fn words_of(curve: &Curve, last: &Spot, losses: &[f64]) -> String {
    let is_short = losses.last().is_some_and(|&loss| last.loss < loss);
    let then = match (is_short, curve.beyond) {
        (false, _) => "",
        (true, Beyond::Nothing) => ", then nothing",
        (true, Beyond::Stalled) => ", then stalled",
    };
    let doubt = if last.valid { "" } else { ", not valid" };
    format!("{} at {:.0} %{doubt}{then}", last.words, 100.0 * last.loss)
}

fn draw_endings(picture: &mut Picture, frame: &Frame, ends: &[Ending<'_>]) {
    let mut places: Vec<f64> = ends.iter().map(|ending| ending.place.1).collect();
    spread(&mut places, 2.0 * LABEL_GAP, frame.top, frame.bottom - LABEL_GAP);
    for (&Ending { place: (x, y), label, colour, ref words }, &place) in ends.iter().zip(&places) {
        let left = frame.right + 22.0;
        picture.line((x + 7.0, y), (left - 4.0, place - 3.0), 1.0, LEADER);
        let font = Font { size: 15.0, bold: true, colour, anchor: Anchor::Start };
        picture.text((left, place + 2.0), font, label);
        picture.text((left, place + 19.0), Font { size: 13.0, ..NOTE }, words);
    }
}
