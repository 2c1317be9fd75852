//! The plot of a comparison: goodput and delay over losses, a curve for each contender.

use super::table::Line;
use crate::demo::{delay, rate};
use crate::panel::{self, Beyond, Curve, FAINT_INK, Frame, NOTE, PANEL, Spot, TITLE};
use crate::plot::{Font, Picture};

const WIDTH: f64 = 1320.0;
const MARGIN: f64 = 48.0;
const HEADER: f64 = 84.0;
const FOOTER: f64 = 40.0;
/// Margins above and below the data of a pair of panels, for titles and axis.
const ABOVE: f64 = 136.0;
const BELOW: f64 = 92.0;
/// Height of the data, and the part of it that a curve's label needs.
const DATA: f64 = 290.0;
const LABEL: f64 = 39.0;

/// Colours after Okabe and Ito, which can be told apart with any colour vision, darkened for text.
const COLOURS: [&str; 10] = [
    "#7b8794", "#b86e00", "#3d9bd1", "#005a9c", "#00805c", "#c2479b", "#a23b00", "#6f55b5",
    "#5f6b00", "#8c1d40",
];
const DASHES: [&str; 3] = ["none", "9 6", "2 6"];

/// If less than this share of C (1 - p) arrives, its delay says nothing.
const SHARE_MIN: f64 = 0.01;

/// Draws the plot as SVG.
pub(super) fn draw(lines: &[Line]) -> String {
    let mut groups: Vec<(&str, String)> = Vec::new();
    let mut ways: Vec<&str> = Vec::new();
    for line in lines {
        let place = (line.medium.as_str(), group(line));
        if !groups.contains(&place) {
            groups.push(place);
        }
        if !ways.contains(&line.way.as_str()) {
            ways.push(&line.way);
        }
    }
    let data = DATA.max(LABEL * (ways.len() + 1) as f64);
    let panels = ABOVE + data + BELOW;
    let height = HEADER + panels * groups.len() as f64 + FOOTER;
    let title = "Contenders on a lossy link";
    let mut picture = Picture::new(WIDTH, height, title);
    picture.text((MARGIN, 54.0), TITLE, title);
    for (index, (medium, load)) in groups.iter().enumerate() {
        let top = HEADER + panels * index as f64;
        let mine: Vec<&Line> =
            lines.iter().filter(|line| line.medium == *medium && group(line) == *load).collect();
        picture.text((MARGIN, top + 22.0), PANEL, load);
        picture.text((MARGIN, top + 46.0), Font { size: 15.0, ..NOTE }, medium);
        draw_load(&mut picture, (top + ABOVE, top + ABOVE + data), &ways, &mine);
    }
    let runs = lines.iter().map(|line| line.runs).max().unwrap_or(0);
    let runs =
        if runs == 1 { "One run each".to_owned() } else { format!("Medians of {runs} runs") };
    let words = [
        format!("{runs}. Goodput counts payload only. What the link lets through: plain cubic"),
        "without losses, less the share of frames lost. No delay is drawn where next to nothing"
            .to_owned(),
        "arrives.".to_owned(),
    ];
    let words = words.join(" ");
    picture.text((MARGIN, height - 22.0), Font { size: 13.0, ..NOTE }, &words);
    picture.finish()
}

/// What the curves in a pair of panels have in common: traffic and bursts; lossless ones are in
/// all.
fn group(line: &Line) -> String {
    let bursts = line.conditions.split_once(" in bursts").map_or("", |(_, bursts)| bursts);
    if bursts.is_empty() { line.load.clone() } else { format!("{}, bursts{bursts}", line.load) }
}

fn draw_load(picture: &mut Picture, (top, bottom): (f64, f64), ways: &[&str], lines: &[&Line]) {
    let mut losses: Vec<f64> = lines.iter().map(|line| line.loss_ratio).collect();
    losses.sort_by(f64::total_cmp);
    losses.dedup();
    let frame = |left, right| Frame { left, right, top, bottom };
    let mut goodputs = curves(ways, lines, |line| {
        let bps = line.goodput_bps?;
        Some((bps / 1e6, rate(bps)))
    });
    goodputs.push(limit(&losses, lines));
    let place = frame(MARGIN + 34.0, 466.0);
    panel::draw_goodput(picture, &place, "Goodput, Mbit/s", &losses, &goodputs);
    let delays = curves(ways, lines, |line| {
        let has_flow = line.share.is_none_or(|share| share >= SHARE_MIN);
        let seconds = line.delay_p95_s.filter(|_| has_flow)?;
        Some((seconds, delay(Some(seconds))))
    });
    let place = frame(800.0, 1072.0);
    panel::draw_delay(picture, &place, "Delay, one way and in order", &losses, &delays);
}

/// What the link delivers, C (1 - p).
fn limit(losses: &[f64], lines: &[&Line]) -> Curve {
    let spot = |&loss: &f64| {
        let mine = lines.iter().filter(|line| line.loss_ratio == loss);
        let known = mine.filter_map(|line| Some((line.goodput_bps?, line.share?)));
        let bps = known.filter(|&(_, share)| share > 0.0).map(|(bps, share)| bps / share).next()?;
        Some(Spot { loss, value: bps / 1e6, words: rate(bps), valid: true })
    };
    Curve {
        label: "what the link lets through".to_owned(),
        colour: FAINT_INK,
        width: 1.5,
        dash: "2 6",
        has_dots: false,
        beyond: Beyond::Nothing,
        spots: losses.iter().filter_map(spot).collect(),
    }
}

/// A curve for each contender, in the same colour in all panels.
fn curves(
    ways: &[&str],
    lines: &[&Line],
    value: impl Fn(&Line) -> Option<(f64, String)>,
) -> Vec<Curve> {
    let curve = |(index, way): (usize, &&str)| {
        let mine = lines.iter().filter(|line| line.way == *way);
        let spot = |line: &&Line| {
            let (value, words) = value(line)?;
            Some(Spot { loss: line.loss_ratio, value, words, valid: line.valid > 0 })
        };
        let mut spots: Vec<Spot> = mine.filter_map(spot).collect();
        spots.sort_by(|a, b| a.loss.total_cmp(&b.loss));
        Curve {
            label: (*way).to_owned(),
            colour: COLOURS[index % COLOURS.len()],
            width: 3.0,
            dash: DASHES[index / COLOURS.len() % DASHES.len()],
            has_dots: true,
            beyond: Beyond::Nothing,
            spots,
        }
    };
    ways.iter().enumerate().map(curve).collect()
}
