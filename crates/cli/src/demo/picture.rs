//! The demo's plot: TCP's goodput and delay over frame loss, and UDP with and without a helper.

use corridor_scenario::{Row, Scenario};

use super::findings::{
    Crossing, Kind, delay, doubt, find, headline, is_stalled, left_bps, never_arrived, rate, share,
    tcp_losses,
};
use super::table::{setting, udp_title};
use crate::panel::{self, Beyond, Curve, FAINT_INK, Frame, INK, NOTE, PANEL, Spot, TITLE};
use crate::plot::{Anchor, Font, Picture, Scale};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 48.0;
/// Height of the header: headline and setting.
const HEADER: f64 = 112.0;
/// Height of the TCP panels, with titles and axes.
const CURVES: f64 = 428.0;
/// Height of the UDP panel.
const BARS: f64 = 244.0;
const FOOTER: f64 = 52.0;

/// Draws the plot as SVG.
pub fn draw(scenario: &Scenario, rows: &[Row]) -> String {
    let losses = tcp_losses(rows);
    let curves = if losses.is_empty() { 0.0 } else { CURVES };
    let udp: Vec<(Kind, &Row)> = Kind::UDP
        .into_iter()
        .filter_map(|kind| Some((kind, rows.iter().find(|row| Kind::of(row) == Some(kind))?)))
        .collect();
    let bars = if udp.is_empty() { 0.0 } else { BARS };
    let mut picture =
        Picture::new(WIDTH, HEADER + curves + bars + FOOTER, &headline(scenario, rows));
    draw_header(&mut picture, scenario, rows);
    if !losses.is_empty() {
        draw_goodput(&mut picture, scenario, rows, &losses);
        draw_delay(&mut picture, scenario, rows, &losses);
    }
    if !udp.is_empty() {
        draw_udp(&mut picture, HEADER + curves, rows, &udp);
    }
    draw_footer(&mut picture, HEADER + curves + bars, scenario, rows);
    picture.finish()
}

fn draw_header(picture: &mut Picture, scenario: &Scenario, rows: &[Row]) {
    let headline = headline(scenario, rows);
    // Approximate width of a bold letter, in the widest of the fonts.
    let most = (WIDTH - 2.0 * MARGIN) / (0.55 * headline.chars().count() as f64);
    picture.text((MARGIN, 52.0), Font { size: TITLE.size.min(most).floor(), ..TITLE }, &headline);
    let setting = setting(scenario, rows).join(" ");
    picture.text((MARGIN, 80.0), Font { size: 15.0, ..NOTE }, &setting);
}

/// Colours of Okabe and Ito, which can be told apart with any colour vision; one for each
/// transport, the same in all panels. Uncoded transports are grey and orange.
fn colour(crossing: Crossing) -> &'static str {
    match crossing {
        Crossing::Plain => "#7b8794",
        Crossing::PlainBbr => "#b86e00",
        Crossing::Paper => "#3d9bd1",
        Crossing::Blocks => "#9a4f86",
        Crossing::Window => "#005a9c",
        Crossing::Helper => "#00805c",
    }
}

fn width(crossing: Crossing) -> f64 {
    match crossing {
        Crossing::Window => 4.0,
        _ => 2.5,
    }
}

fn dash(crossing: Crossing) -> &'static str {
    match crossing {
        Crossing::Paper => "9 6",
        Crossing::PlainBbr => "2 6",
        _ => "none",
    }
}

/// Area of the data in TCP's panels.
const fn frame(left: f64, right: f64) -> Frame {
    Frame { left, right, top: HEADER + 70.0, bottom: HEADER + CURVES - 74.0 }
}

fn draw_goodput(picture: &mut Picture, scenario: &Scenario, rows: &[Row], losses: &[f64]) {
    let value = |row: &Row| Some((row.goodput_bps / 1e6, rate(row.goodput_bps)));
    let mut curves = curves(rows, losses, Beyond::Nothing, &value);
    curves.insert(0, left(scenario, losses));
    let frame = frame(MARGIN + 34.0, 444.0);
    panel::draw_goodput(picture, &frame, "TCP goodput, Mbit/s", losses, &curves);
}

/// What losses leave of the radio's capacity, an upper limit of all curves.
fn left(scenario: &Scenario, losses: &[f64]) -> Curve {
    let spot = |&loss: &f64| {
        let bps = left_bps(scenario, loss);
        Spot { loss, value: bps / 1e6, words: rate(bps), valid: true }
    };
    Curve {
        label: "what the losses leave".to_owned(),
        colour: FAINT_INK,
        width: 1.5,
        dash: "1 5",
        has_dots: false,
        spots: losses.iter().map(spot).collect(),
        beyond: Beyond::Nothing,
    }
}

fn draw_delay(picture: &mut Picture, scenario: &Scenario, rows: &[Row], losses: &[f64]) {
    let value = |row: &Row| {
        let seconds = row.delays.delay_p95_s.filter(|_| !is_stalled(scenario, row))?;
        Some((seconds, delay(Some(seconds))))
    };
    let curves = curves(rows, losses, Beyond::Stalled, &value);
    let title = "TCP delay, one way and in order";
    panel::draw_delay(picture, &frame(726.0, 966.0), title, losses, &curves);
}

/// A curve for each kind, from the rows with a value; the value is also given in words.
fn curves(
    rows: &[Row],
    losses: &[f64],
    beyond: Beyond,
    value: &dyn Fn(&Row) -> Option<(f64, String)>,
) -> Vec<Curve> {
    let spots = |kind| {
        let found = losses.iter().filter_map(|&loss| find(rows, kind, loss));
        let spot = |row: &Row| {
            let (value, words) = value(row)?;
            Some(Spot { loss: row.loss_ratio, value, words, valid: row.valid })
        };
        found.filter_map(spot).collect()
    };
    let curve = |kind: Kind| Curve {
        label: kind.label().to_owned(),
        colour: colour(kind.crossing),
        width: width(kind.crossing),
        dash: dash(kind.crossing),
        has_dots: true,
        spots: spots(kind),
        beyond,
    };
    Kind::TCP.map(curve).into()
}

/// A UDP metric: its name, its value, and the value in words.
type Measure = (&'static str, fn(&Row) -> Option<f64>, fn(f64) -> String);

const MEASURES: [Measure; 4] = [
    ("packets that never arrived", never_arrived, share),
    ("goodput", |row| Some(row.goodput_bps), rate),
    ("delay, 95 % arrive within", |row| row.delays.delay_p95_s, |s| delay(Some(s))),
    ("frames on the air per packet", |row| row.air_frames_per_packet, |n| format!("{n:.2}")),
];

/// Start of the first metric's bars, and distance between metrics.
const BARS_LEFT: f64 = 244.0;
const BARS_STEP: f64 = 238.0;
/// Length of the longest bar.
const BAR: f64 = 120.0;

/// Metrics side by side, one bar for each contender.
fn draw_udp(picture: &mut Picture, top: f64, rows: &[Row], udp: &[(Kind, &Row)]) {
    picture.text((MARGIN, top + 14.0), PANEL, &udp_title(udp[0].1, rows));
    let note = "What is lost stays lost on the plain link; coding brings it back, for some delay and \
                frames. Window mode fills idle air with repair. Less is better, but for goodput.";
    picture.text((MARGIN, top + 36.0), NOTE, note);
    for (place, (kind, row)) in udp.iter().enumerate() {
        let colour = colour(kind.crossing);
        let font = Font { size: 15.0, bold: true, colour, anchor: Anchor::End };
        let (right, top) = (BARS_LEFT - 18.0, bar_top(top, place));
        picture.text((right, top + if row.valid { 17.0 } else { 11.0 }), font, kind.label());
        if !row.valid {
            let font = Font { size: 12.0, anchor: Anchor::End, ..NOTE };
            picture.text((right, top + 25.0), font, "not valid");
        }
    }
    for (index, (name, measure, words)) in MEASURES.into_iter().enumerate() {
        let left = BARS_LEFT + BARS_STEP * index as f64;
        picture.text((left, top + 72.0), NOTE, name);
        let most = udp.iter().filter_map(|(_, row)| measure(row)).fold(0.0, f64::max);
        let x = Scale::linear((0.0, most.max(f64::MIN_POSITIVE)), (0.0, BAR));
        for (place, (kind, row)) in udp.iter().enumerate() {
            let Some(value) = measure(row) else { continue };
            let (at, size) = ((left, bar_top(top, place)), (x.at(value).max(1.5), 24.0));
            match row.valid {
                true => picture.rect(at, size, 2.0, colour(kind.crossing)),
                false => picture.frame(at, size, 2.0, colour(kind.crossing)),
            }
            let font = Font { size: 15.0, colour: INK, ..NOTE };
            picture.text((left + size.0 + 9.0, at.1 + 17.0), font, &words(value));
        }
    }
}

fn bar_top(top: f64, place: usize) -> f64 {
    top + 86.0 + 35.0 * place as f64
}

fn draw_footer(picture: &mut Picture, top: f64, scenario: &Scenario, rows: &[Row]) {
    let seconds = rows.first().map_or(0.0, |row| row.duration_s);
    let words = format!(
        "Each point is one run of {seconds:.0} s, seed {}. Goodput counts payload only. What the losses \
         leave: of full frames back to back, without acknowledgements of TCP.",
        scenario.seed
    );
    let font = Font { size: 13.0, ..NOTE };
    picture.text((MARGIN, top + 12.0), font, &words);
    if let Some(doubt) = doubt(rows) {
        let words =
            format!("{doubt}, and drawn hollow: the machine spoilt them (demo.json says how).");
        picture.text((MARGIN, top + 31.0), Font { bold: true, colour: INK, ..font }, &words);
    }
}
