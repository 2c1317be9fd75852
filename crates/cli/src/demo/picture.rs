//! The demo's picture: TCP's goodput and delay over frame loss, and UDP with and without a helper.

use corridor_scenario::{Row, Scenario};

use super::findings::{Kind, delay, find, headline, rate, tcp_losses};
use super::table::{setting, udp_title};
use crate::plot::{Anchor, Font, Picture, Scale, nice_max, spread};

const INK: &str = "#1f2933";
const FAINT_INK: &str = "#616e7c";
const GRID: &str = "#e4e7eb";
/// From the end of a curve to its label.
const LEADER: &str = "#cbd2d9";
const AXIS: &str = "#9aa5b1";

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 48.0;
/// Height of the header: headline and setting.
const HEADER: f64 = 112.0;
/// Height of the panels of TCP, titles and axes included.
const CURVES: f64 = 428.0;
/// Height of the panel of UDP.
const BARS: f64 = 212.0;
const FOOTER: f64 = 40.0;
/// Base lines of labels are this far apart at least.
const LABEL_GAP: f64 = 19.0;

const TITLE: Font = Font { size: 25.0, bold: true, colour: INK, anchor: Anchor::Start };
const PANEL: Font = Font { size: 17.0, bold: true, colour: INK, anchor: Anchor::Start };
const NOTE: Font = Font { size: 14.0, bold: false, colour: FAINT_INK, anchor: Anchor::Start };

/// Draws the picture as SVG.
pub fn draw(scenario: &Scenario, rows: &[Row]) -> String {
    let losses = tcp_losses(rows);
    let curves = if losses.is_empty() { 0.0 } else { CURVES };
    let udp: Vec<(Kind, &Row)> = Kind::UDP
        .into_iter()
        .filter_map(|kind| Some((kind, rows.iter().find(|row| Kind::of(row) == Some(kind))?)))
        .collect();
    let bars = if udp.is_empty() { 0.0 } else { BARS };
    let mut picture = Picture::new(WIDTH, HEADER + curves + bars + FOOTER, &headline(rows));
    draw_header(&mut picture, scenario, rows);
    if !losses.is_empty() {
        draw_goodput(&mut picture, rows, &losses);
        draw_delay(&mut picture, rows, &losses);
    }
    if !udp.is_empty() {
        draw_udp(&mut picture, HEADER + curves, rows, &udp);
    }
    draw_footer(&mut picture, HEADER + curves + bars, scenario, rows);
    picture.finish()
}

fn draw_header(picture: &mut Picture, scenario: &Scenario, rows: &[Row]) {
    let headline = headline(rows);
    // A bold letter is about this wide, in the widest of the fonts.
    let most = (WIDTH - 2.0 * MARGIN) / (0.55 * headline.chars().count() as f64);
    picture.text((MARGIN, 52.0), Font { size: TITLE.size.min(most).floor(), ..TITLE }, &headline);
    let setting = setting(scenario, rows).join(" ");
    picture.text((MARGIN, 80.0), Font { size: 15.0, ..NOTE }, &setting);
}

/// Colours of Okabe and Ito, which people with any colour vision tell apart; what is not coded is
/// grey and thin.
fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::PlainCubic | Kind::UdpPlain => "#7b8794",
        Kind::PlainBbr => "#b86e00",
        Kind::CodedPaper => "#3d9bd1",
        Kind::CodedDefault | Kind::UdpCoded => "#005a9c",
        Kind::UdpHelper => "#00805c",
    }
}

fn width(kind: Kind) -> f64 {
    match kind {
        Kind::CodedPaper | Kind::CodedDefault => 3.5,
        _ => 2.5,
    }
}

fn dash(kind: Kind) -> &'static str {
    match kind {
        Kind::CodedPaper => "9 6",
        Kind::PlainBbr => "2 6",
        _ => "none",
    }
}

/// Where a panel's data goes: left, right, top and bottom edge.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    const fn new(left: f64, right: f64) -> Self {
        Frame { left, right, top: HEADER + 70.0, bottom: HEADER + CURVES - 74.0 }
    }
}

fn draw_goodput(picture: &mut Picture, rows: &[Row], losses: &[f64]) {
    let frame = Frame::new(MARGIN + 34.0, 444.0);
    let highest = rows.iter().filter(|row| row.congestion.is_some()).map(|row| row.goodput_bps);
    let (most, step) = nice_max(highest.fold(0.0, f64::max) / 1e6);
    let y = Scale::linear((0.0, most), (frame.bottom, frame.top));
    draw_titles(picture, &frame, "TCP goodput, Mbit/s", "higher is better");
    let ticks = (0..=(most / step).round() as u32).map(|tick| f64::from(tick) * step);
    for tick in ticks {
        draw_tick(picture, &frame, y.at(tick), &format!("{tick}"));
    }
    let value = |row: &Row| Some(row.goodput_bps / 1e6);
    draw_curves(picture, &frame, rows, losses, &y, &value, &|row| rate(row.goodput_bps));
}

fn draw_delay(picture: &mut Picture, rows: &[Row], losses: &[f64]) {
    let frame = Frame::new(726.0, 966.0);
    let y = Scale::log((0.002, 10.0), (frame.bottom, frame.top));
    draw_titles(
        picture,
        &frame,
        "TCP delay, one way and in order",
        "95 % arrive within; lower is better",
    );
    for (tick, label) in [(0.01, "10 ms"), (0.1, "100 ms"), (1.0, "1 s"), (10.0, "10 s")] {
        draw_tick(picture, &frame, y.at(tick), label);
    }
    let value = |row: &Row| row.delays.delay_p95_s;
    draw_curves(picture, &frame, rows, losses, &y, &value, &|row| delay(row.delays.delay_p95_s));
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

fn draw_curves(
    picture: &mut Picture,
    frame: &Frame,
    rows: &[Row],
    losses: &[f64],
    y: &Scale,
    value: &dyn Fn(&Row) -> Option<f64>,
    words: &dyn Fn(&Row) -> String,
) {
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
    for kind in Kind::TCP {
        let found = losses.iter().filter_map(|&loss| find(rows, kind, loss));
        let points: Vec<_> =
            found.filter_map(|row| Some((x.at(row.loss_ratio), y.at(value(row)?), row))).collect();
        let places: Vec<_> = points.iter().map(|&(x, y, _)| (x, y)).collect();
        picture.curve(&places, width(kind), dash(kind), colour(kind));
        if let Some(&(x, y, row)) = points.last() {
            ends.push((kind, (x, y), words(row), row.loss_ratio));
        }
    }
    let mut places: Vec<f64> = ends.iter().map(|(_, (_, y), ..)| *y).collect();
    spread(&mut places, 2.0 * LABEL_GAP, frame.top, frame.bottom - LABEL_GAP);
    for ((kind, (x, y), words, loss), &place) in ends.iter().zip(&places) {
        let left = frame.right + 22.0;
        picture.line((x + 7.0, *y), (left - 4.0, place - 3.0), 1.0, LEADER);
        let font = Font { size: 15.0, bold: true, colour: colour(*kind), anchor: Anchor::Start };
        picture.text((left, place + 2.0), font, kind.label());
        let then = if *loss < most { ", then nothing" } else { "" };
        let at = format!("{words} at {:.0} %{then}", 100.0 * loss);
        picture.text((left, place + 19.0), Font { size: 13.0, ..NOTE }, &at);
    }
}

/// Three measures side by side, one bar for each path.
fn draw_udp(picture: &mut Picture, top: f64, rows: &[Row], udp: &[(Kind, &Row)]) {
    picture.text((MARGIN, top + 14.0), PANEL, &udp_title(udp[0].1, rows));
    let note = "plain: what is lost stays lost; coded: what is lost is recovered";
    picture.text((MARGIN, top + 36.0), NOTE, note);
    let measures: [Measure; 3] = [
        ("goodput (more is better)", 190.0, |row| Some(row.goodput_bps), rate),
        (
            "frames on the air per packet delivered (less)",
            545.0,
            |row| row.air_frames_per_packet,
            |frames| format!("{frames:.2}"),
        ),
        (
            "delay, 95 % arrive within (less)",
            900.0,
            |row| row.delays.delay_p95_s,
            |s| delay(Some(s)),
        ),
    ];
    for (place, (kind, _)) in udp.iter().enumerate() {
        let font = Font { size: 15.0, bold: true, colour: colour(*kind), anchor: Anchor::End };
        picture.text((172.0, bar_top(top, place) + 18.0), font, kind.label());
    }
    for (name, left, measure, words) in measures {
        picture.text((left, top + 72.0), NOTE, name);
        let most = udp.iter().filter_map(|(_, row)| measure(row)).fold(0.0, f64::max);
        let x = Scale::linear((0.0, most.max(f64::MIN_POSITIVE)), (0.0, 150.0));
        for (place, (kind, row)) in udp.iter().enumerate() {
            let Some(value) = measure(row) else { continue };
            let y = bar_top(top, place);
            picture.rect((left, y), (x.at(value).max(1.0), 26.0), 2.0, colour(*kind));
            let font = Font { size: 15.0, colour: INK, ..NOTE };
            picture.text((left + x.at(value) + 10.0, y + 18.0), font, &words(value));
        }
    }
}

/// What it is called, where its bars begin, its value, and the value in words.
type Measure = (&'static str, f64, fn(&Row) -> Option<f64>, fn(f64) -> String);

fn bar_top(top: f64, place: usize) -> f64 {
    top + 86.0 + 36.0 * place as f64
}

fn draw_footer(picture: &mut Picture, top: f64, scenario: &Scenario, rows: &[Row]) {
    let seconds = rows.first().map_or(0.0, |row| row.duration_s);
    let doubtful = rows.iter().filter(|row| !row.valid).count();
    let doubt = match doubtful {
        0 => String::new(),
        1 => " One run was disturbed by the machine (see demo.json).".to_owned(),
        more => format!(" {more} runs were disturbed by the machine (see demo.json)."),
    };
    let words = format!(
        "Each point is one run of {seconds:.0} s, seed {}. Goodput counts payload only.{doubt}",
        scenario.seed
    );
    picture.text((MARGIN, top + 16.0), Font { size: 13.0, ..NOTE }, &words);
}
