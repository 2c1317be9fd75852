//! A small drawing library for SVG plots: scales, primitives, and labels that do not overlap.

use std::fmt::Write;

/// Text is set in the first of these fonts that is available.
const FONTS: &str = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";

/// A linear or logarithmic map from values to positions.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    from: (f64, f64),
    to: (f64, f64),
    log: bool,
}

impl Scale {
    /// Maps `from.0` to `to.0` and `from.1` to `to.1`.
    pub fn linear(from: (f64, f64), to: (f64, f64)) -> Self {
        Scale { from, to, log: false }
    }

    /// The same with logarithms; both ends of `from` are positive.
    pub fn log(from: (f64, f64), to: (f64, f64)) -> Self {
        Scale { from: (from.0.ln(), from.1.ln()), to, log: true }
    }

    /// The position of a value; values outside are placed at the end.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let share = (value - self.from.0) / (self.from.1 - self.from.0);
        self.to.0 + share.clamp(0.0, 1.0) * (self.to.1 - self.to.0)
    }
}

/// The smallest of a few round numbers, times 10^k, that is not below `value`, with the step of its
/// axis.
pub fn nice_max(value: f64) -> (f64, f64) {
    let decade = 10f64.powf(value.max(1e-9).log10().floor());
    let steps = [
        (1.0, 0.2),
        (1.2, 0.2),
        (1.5, 0.5),
        (2.0, 0.5),
        (3.0, 1.0),
        (4.0, 1.0),
        (5.0, 1.0),
        (6.0, 2.0),
        (8.0, 2.0),
    ];
    let fits = steps.iter().find(|(max, _)| max * decade >= value * 0.999);
    let (max, step) = fits.copied().unwrap_or((10.0, 2.0));
    (max * decade, step * decade)
}

/// Moves positions apart until neighbours are `gap` from each other, in their order, between `low`
/// and `high` if that is possible.
pub fn spread(places: &mut [f64], gap: f64, low: f64, high: f64) {
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

/// Where a text is anchored.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The style of a text.
#[derive(Clone, Copy, Debug)]
pub struct Font {
    pub size: f64,
    pub bold: bool,
    pub colour: &'static str,
    pub anchor: Anchor,
}

/// A plot being drawn; later elements are on top.
pub struct Picture {
    width: f64,
    height: f64,
    body: String,
}

impl Picture {
    /// An empty plot; screen readers read `description`.
    pub fn new(width: f64, height: f64, description: &str) -> Self {
        let mut picture = Picture { width, height, body: String::new() };
        picture.push(&format!("<title>{}</title>", escape(description)));
        picture.rect((0.0, 0.0), (width, height), 0.0, "#ffffff");
        picture
    }

    /// The SVG file.
    pub fn finish(self) -> String {
        let Picture { width, height, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"{FONTS}\">\n\
             {body}</svg>\n"
        )
    }

    /// A filled rectangle.
    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), radius: f64, colour: &str) {
        let ((x, y), (width, height)) = (at, size);
        self.push(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             rx=\"{radius}\" fill=\"{colour}\"/>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: &str) {
        self.push(&format!(
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
             stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through points, with a dot at each.
    pub fn curve(&mut self, points: &[(f64, f64)], width: f64, dash: &str, colour: &str) {
        self.path(points, width, dash, colour);
        for &at in points {
            self.dot(at, width + 2.0, true, colour);
        }
    }

    /// A line through points.
    pub fn path(&mut self, points: &[(f64, f64)], width: f64, dash: &str, colour: &str) {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        self.push(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\" stroke-dasharray=\"{dash}\"/>",
            path.trim_end()
        ));
    }

    /// A dot, or a ring.
    pub fn dot(&mut self, at: (f64, f64), radius: f64, is_filled: bool, colour: &str) {
        let (fill, stroke, width) =
            if is_filled { (colour, "#ffffff", 1.5) } else { ("#ffffff", colour, 2.0) };
        self.push(&format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{fill}\" \
             stroke=\"{stroke}\" stroke-width=\"{width}\"/>",
            at.0, at.1
        ));
    }

    /// The edge of a rectangle.
    pub fn frame(&mut self, at: (f64, f64), size: (f64, f64), radius: f64, colour: &str) {
        let ((x, y), (width, height)) = (at, size);
        self.push(&format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             rx=\"{radius}\" fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        ));
    }

    /// A text; `at` is on its base line.
    pub fn text(&mut self, at: (f64, f64), font: Font, text: &str) {
        let anchor = match font.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if font.bold { "600" } else { "400" };
        self.push(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{}\" font-weight=\"{weight}\" \
             fill=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            font.size,
            font.colour,
            escape(text)
        ));
    }

    fn push(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_map_their_ends_and_hold_what_is_outside() {
        let scale = Scale::linear((0.0, 10.0), (100.0, 0.0));
        assert_eq!([scale.at(0.0), scale.at(5.0), scale.at(20.0)], [100.0, 50.0, 0.0]);
        let scale = Scale::log((0.001, 10.0), (0.0, 4.0));
        assert!((scale.at(0.1) - 2.0).abs() < 1e-12);
        assert_eq!(scale.at(0.0), 0.0);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(nice_max(7.1), (8.0, 2.0));
        assert_eq!(nice_max(9.0), (10.0, 2.0));
        assert_eq!(nice_max(11.5), (12.0, 2.0));
        assert_eq!(nice_max(2.0), (2.0, 0.5));
    }

    #[test]
    fn labels_keep_their_order_and_distance() {
        let mut places = [50.0, 100.0, 99.0, 98.0];
        spread(&mut places, 10.0, 0.0, 100.0);
        assert_eq!(places, [50.0, 100.0, 90.0, 80.0]);
    }

    #[test]
    fn text_is_escaped() {
        let mut picture = Picture::new(1.0, 1.0, "a < b");
        let font = Font { size: 1.0, bold: false, colour: "#000", anchor: Anchor::Start };
        picture.text((0.0, 0.0), font, "x & <y>");
        let svg = picture.finish();
        assert!(svg.contains("a &lt; b") && svg.contains("x &amp; &lt;y&gt;"), "{svg}");
    }
}
