//! The picture of a comparison: goodput and delay over losses, a curve for each way to cross.

use corridor_scenario::Scenario;

use super::table::{Line, setting};
use crate::demo::{delay, rate};
use crate::panel::{self, Curve, Frame, NOTE, PANEL, Spot, TITLE};
use crate::plot::{Font, Picture};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 48.0;
const HEADER: f64 = 96.0;
/// Height of the panels of one load, titles and axes included.
const PANELS: f64 = 470.0;
const FOOTER: f64 = 40.0;

/// Colours of Okabe and Ito, which people with any colour vision tell apart, darkened for text.
const COLOURS: [&str; 7] =
    ["#7b8794", "#b86e00", "#3d9bd1", "#005a9c", "#00805c", "#c2479b", "#a23b00"];
const DASHES: [&str; 3] = ["none", "9 6", "2 6"];

/// Draws the picture as SVG.
pub(super) fn draw(scenario: &Scenario, lines: &[Line]) -> String {
    let mut loads: Vec<(String, String)> = Vec::new();
    for line in lines {
        let load = group(line);
        if !loads.iter().any(|(known, _)| *known == load) {
            loads.push((load, line.load.clone()));
        }
    }
    let height = HEADER + PANELS * loads.len() as f64 + FOOTER;
    let title = format!("Ways across a lossy link: {}", scenario.name);
    let mut picture = Picture::new(WIDTH, height, &title);
    picture.text((MARGIN, 48.0), TITLE, &title);
    picture.text((MARGIN, 76.0), Font { size: 15.0, ..NOTE }, &setting(scenario));
    for (index, (load, _)) in loads.iter().enumerate() {
        let top = HEADER + PANELS * index as f64;
        let mine: Vec<&Line> = lines.iter().filter(|line| group(line) == *load).collect();
        draw_load(&mut picture, top, load, &mine);
    }
    let words = "Medians over the runs that are valid. Goodput counts payload only.";
    picture.text((MARGIN, height - 16.0), Font { size: 13.0, ..NOTE }, words);
    picture.finish()
}

/// What lines have in common in a pair of panels: load and bursts; lossless ones are in all.
fn group(line: &Line) -> String {
    let bursts = line.conditions.split_once(" in bursts").map_or("", |(_, bursts)| bursts);
    if bursts.is_empty() { line.load.clone() } else { format!("{}, bursts{bursts}", line.load) }
}

fn draw_load(picture: &mut Picture, top: f64, load: &str, lines: &[&Line]) {
    let mut losses: Vec<f64> = lines.iter().map(|line| line.loss_ratio).collect();
    losses.sort_by(f64::total_cmp);
    losses.dedup();
    picture.text((MARGIN, top + 20.0), PANEL, load);
    let frame = |left, right| Frame { left, right, top: top + 100.0, bottom: top + PANELS - 84.0 };
    let goodputs = curves(lines, |line| Some((line.goodput_bps / 1e6, rate(line.goodput_bps))));
    let place = frame(MARGIN + 34.0, 444.0);
    panel::draw_goodput(picture, &place, "Goodput, Mbit/s", &losses, &goodputs);
    let delays = curves(lines, |line| Some((line.delay_p95_s?, delay(line.delay_p95_s))));
    let place = frame(726.0, 966.0);
    panel::draw_delay(picture, &place, "Delay, one way and in order", &losses, &delays);
}

fn curves(lines: &[&Line], value: impl Fn(&Line) -> Option<(f64, String)>) -> Vec<Curve> {
    let mut ways: Vec<&str> = Vec::new();
    for line in lines {
        if !ways.contains(&line.way.as_str()) {
            ways.push(&line.way);
        }
    }
    let curve = |(index, way): (usize, &&str)| {
        let mine = lines.iter().filter(|line| line.way == *way);
        let spot = |line: &&Line| {
            let (value, words) = value(line)?;
            Some(Spot { loss: line.loss_ratio, value, words })
        };
        let mut spots: Vec<Spot> = mine.filter_map(spot).collect();
        spots.sort_by(|a, b| a.loss.total_cmp(&b.loss));
        Curve {
            label: (*way).to_owned(),
            colour: COLOURS[index % COLOURS.len()],
            width: 3.0,
            dash: DASHES[index / COLOURS.len() % DASHES.len()],
            spots,
        }
    };
    ways.iter().enumerate().map(curve).collect()
}
