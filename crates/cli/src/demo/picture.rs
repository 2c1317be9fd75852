//! The demo's picture: TCP's goodput and delay over frame loss, and UDP with and without a helper.

use corridor_scenario::{Row, Scenario};

use super::findings::{Kind, delay, find, headline, rate, tcp_losses};
use super::table::{setting, udp_title};
use crate::panel::{self, Curve, Frame, INK, NOTE, PANEL, Spot, TITLE};
use crate::plot::{Anchor, Font, Picture, Scale};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 48.0;
/// Height of the header: headline and setting.
const HEADER: f64 = 112.0;
/// Height of the panels of TCP, titles and axes included.
const CURVES: f64 = 428.0;
/// Height of the panel of UDP.
const BARS: f64 = 212.0;
const FOOTER: f64 = 40.0;

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
        Kind::CodedDefault => "#9a4f86",
        Kind::Window | Kind::UdpCoded => "#005a9c",
        Kind::UdpHelper => "#00805c",
    }
}

fn width(kind: Kind) -> f64 {
    match kind {
        Kind::Window => 4.0,
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

/// Where the data of TCP's panels goes.
const fn frame(left: f64, right: f64) -> Frame {
    Frame { left, right, top: HEADER + 70.0, bottom: HEADER + CURVES - 74.0 }
}

fn draw_goodput(picture: &mut Picture, rows: &[Row], losses: &[f64]) {
    let value = |row: &Row| Some(row.goodput_bps / 1e6);
    let curves = curves(rows, losses, &value, &|row| rate(row.goodput_bps));
    let frame = frame(MARGIN + 34.0, 444.0);
    panel::draw_goodput(picture, &frame, "TCP goodput, Mbit/s", losses, &curves);
}

fn draw_delay(picture: &mut Picture, rows: &[Row], losses: &[f64]) {
    let value = |row: &Row| row.delays.delay_p95_s;
    let curves = curves(rows, losses, &value, &|row| delay(row.delays.delay_p95_s));
    let title = "TCP delay, one way and in order";
    panel::draw_delay(picture, &frame(726.0, 966.0), title, losses, &curves);
}

fn curves(
    rows: &[Row],
    losses: &[f64],
    value: &dyn Fn(&Row) -> Option<f64>,
    words: &dyn Fn(&Row) -> String,
) -> Vec<Curve> {
    let spots = |kind| {
        let found = losses.iter().filter_map(|&loss| find(rows, kind, loss));
        let spot =
            |row: &Row| Some(Spot { loss: row.loss_ratio, value: value(row)?, words: words(row) });
        found.filter_map(spot).collect()
    };
    let curve = |kind: Kind| Curve {
        label: kind.label().to_owned(),
        colour: colour(kind),
        width: width(kind),
        dash: dash(kind),
        spots: spots(kind),
    };
    Kind::TCP.map(curve).into()
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
