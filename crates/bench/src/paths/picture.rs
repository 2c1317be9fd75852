//! Plots of the cumulative distributions over all paths.

use core::fmt::Write as _;

use crate::measure::{Got, Measured};

const WIDTH: f64 = 1_080.0;
const HEIGHT: f64 = 720.0;
const PANEL: (f64, f64) = (440.0, 240.0);
const PLACES: [(f64, f64); 4] = [(70.0, 80.0), (600.0, 80.0), (70.0, 420.0), (600.0, 420.0)];
const WAYS: [(&str, &str); 3] = [("window", "#0b6e99"), ("cubic", "#b5651d"), ("bbr", "#6a3d9a")];

/// One of the panels.
struct Panel<'a> {
    title: &'a str,
    axis: &'a str,
    /// Range of the axis; logarithmic if it begins above zero.
    range: (f64, f64),
    ticks: &'a [f64],
    value: fn(&Got) -> f64,
}

/// Plots goodput on steady and on varying paths, drops and queueing delays.
pub fn draw(paths: &[Measured], seed: u64) -> String {
    let mut body = format!(
        "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n<text x=\"70\" y=\"36\" \
         font-size=\"20\" font-weight=\"600\">{} drawn paths, seed {seed}: share of the paths with at \
         most so much</text>\n",
        paths.len()
    );
    for (index, (name, colour)) in WAYS.iter().enumerate() {
        let x = 70 + 120 * index;
        let _ = writeln!(
            body,
            "<line x1=\"{x}\" y1=\"52\" x2=\"{}\" y2=\"52\" stroke=\"{colour}\" \
             stroke-width=\"3\"/><text x=\"{}\" y=\"57\">{name}</text>",
            x + 24,
            x + 32
        );
    }
    let goodput = Panel {
        title: "Goodput, steady paths",
        axis: "of what losses leave of the capacity, less headers",
        range: (0.0, 1.1),
        ticks: &[0.0, 0.25, 0.5, 0.75, 1.0],
        value: |got| got.share,
    };
    let varying = Panel { title: "Goodput, varying paths", ..goodput };
    let drops = Panel {
        title: "Dropped by buffers and policers",
        axis: "share of the frames, after the start",
        range: (1e-4, 1.0),
        ticks: &[1e-4, 1e-3, 1e-2, 0.1, 1.0],
        value: |got| got.dropped_ratio,
    };
    let waits = Panel {
        title: "Wait in the buffer, 95th percentile",
        axis: "milliseconds",
        range: (0.1, 10_000.0),
        ticks: &[0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0],
        value: |got| got.wait_p95_ms,
    };
    let is_steady = |path: &&Measured| !path.path.is_varying();
    let is_varying = |path: &&Measured| path.path.is_varying();
    let steady: Vec<_> = paths.iter().filter(is_steady).collect();
    let varied: Vec<_> = paths.iter().filter(is_varying).collect();
    let all: Vec<_> = paths.iter().collect();
    for (place, panel, paths) in [
        (PLACES[0], &goodput, &steady),
        (PLACES[1], &varying, &varied),
        (PLACES[2], &drops, &all),
        (PLACES[3], &waits, &all),
    ] {
        panel.draw(&mut body, place, paths);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"13\" fill=\"#1b1b1b\">\n<title>Goodput, drops and waits on drawn paths</title>\n\
         {body}</svg>\n"
    )
}

impl Panel<'_> {
    /// Position of a value on the axis, 0 to 1.
    fn along(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = match low > 0.0 {
            true => (value.max(low) / low).ln() / (high / low).ln(),
            false => (value - low) / (high - low),
        };
        share.clamp(0.0, 1.0)
    }

    fn draw(&self, body: &mut String, (x, y): (f64, f64), paths: &[&Measured]) {
        let (width, height) = PANEL;
        let Panel { title, axis, .. } = self;
        let _ = writeln!(
            body,
            "<text x=\"{x}\" y=\"{}\" font-weight=\"600\">{title} ({})</text>\n<rect x=\"{x}\" \
             y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#999999\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555555\">{axis}</text>",
            y - 8.0,
            paths.len(),
            x + width / 2.0,
            y + height + 36.0
        );
        for &tick in self.ticks {
            let at = x + width * self.along(tick);
            let _ = writeln!(
                body,
                "<line x1=\"{at:.1}\" y1=\"{y}\" x2=\"{at:.1}\" y2=\"{}\" stroke=\"#dddddd\"/>\n\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>",
                y + height,
                y + height + 16.0
            );
        }
        for tick in [0.1, 0.5, 0.9] {
            let at = y + height * (1.0 - tick);
            let _ = writeln!(
                body,
                "<line x1=\"{x}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\n\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                x + width,
                x - 6.0,
                at + 4.0
            );
        }
        for (way, (_, colour)) in WAYS.iter().enumerate() {
            let value =
                |path: &&Measured| (self.value)([&path.window, &path.cubic, &path.bbr][way]);
            let mut values: Vec<f64> = paths.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            let count = values.len().max(1) as f64;
            let mut points = String::new();
            for (rank, value) in values.iter().enumerate() {
                let at = x + width * self.along(*value);
                for share in [rank as f64 / count, (rank as f64 + 1.0) / count] {
                    let _ = write!(points, "{at:.1},{:.1} ", y + height * (1.0 - share));
                }
            }
            let _ = writeln!(
                body,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                points.trim_end()
            );
        }
    }
}
