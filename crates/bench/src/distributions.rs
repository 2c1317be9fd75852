//! Plots of cumulative distributions, in four panels.

use core::fmt::Write as _;

const WIDTH: f64 = 1_080.0;
const HEIGHT: f64 = 720.0;
const PANEL: (f64, f64) = (440.0, 240.0);
const PLACES: [(f64, f64); 4] = [(70.0, 80.0), (600.0, 80.0), (70.0, 420.0), (600.0, 420.0)];

/// One of the panels.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// Its title.
    pub title: &'a str,
    /// What the axis shows.
    pub axis: &'a str,
    /// Range of the axis; logarithmic if it begins above zero.
    pub range: (f64, f64),
    /// Marked values of the axis.
    pub ticks: &'a [f64],
    /// Values, each with the colour of its curve.
    pub curves: Vec<(&'a str, Vec<f64>)>,
}

/// Draws the panels as SVG, below a heading and a legend of names and their colours.
pub fn draw(title: &str, heading: &str, legend: &[(&str, &str)], panels: &[Panel; 4]) -> String {
    let mut body = format!(
        "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n<text x=\"70\" y=\"36\" \
         font-size=\"20\" font-weight=\"600\">{heading}</text>\n"
    );
    for (index, (name, colour)) in legend.iter().enumerate() {
        let x = 70 + 120 * index;
        let _ = writeln!(
            body,
            "<line x1=\"{x}\" y1=\"52\" x2=\"{}\" y2=\"52\" stroke=\"{colour}\" \
             stroke-width=\"3\"/><text x=\"{}\" y=\"57\">{name}</text>",
            x + 24,
            x + 32
        );
    }
    for (panel, place) in panels.iter().zip(PLACES) {
        panel.draw(&mut body, place);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" font-family=\"sans-serif\" \
         font-size=\"13\" fill=\"#1b1b1b\">\n<title>{title}</title>\n{body}</svg>\n"
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

    fn draw(&self, body: &mut String, (x, y): (f64, f64)) {
        self.draw_axes(body, (x, y));
        let (width, height) = PANEL;
        for (colour, values) in &self.curves {
            let mut values = values.clone();
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

    fn draw_axes(&self, body: &mut String, (x, y): (f64, f64)) {
        let (width, height) = PANEL;
        let Panel { title, axis, .. } = self;
        let _ = writeln!(
            body,
            "<text x=\"{x}\" y=\"{}\" font-weight=\"600\">{title} ({})</text>\n<rect x=\"{x}\" \
             y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#999999\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555555\">{axis}</text>",
            y - 8.0,
            self.curves.first().map_or(0, |(_, values)| values.len()),
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
    }
}
