//! `corridor sim draw`: a drawing of a plan's network, with who hears whom.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use corridor_scenario::{Plan, ScenarioError};
use corridor_sim::{Reach, SimError, Sketch, sketch};

use crate::exit::{self, Exit};
use crate::plot::{Anchor, Font, Picture, nice_max};

/// Width of the drawing, and of its margin.
const WIDTH: f64 = 900.0;
const EDGE: f64 = 60.0;
/// Space below the network for the legend.
const LEGEND: f64 = 70.0;
/// Minimum width of a drawing in metres, as nodes may be in a vertical line.
const SPAN_MIN_M: f64 = 1.0;
/// Limits of the drawing's aspect ratio, which is otherwise that of the network.
const SHAPES: (f64, f64) = (0.12, 1.0);
/// With more nodes, their numbers are left out.
const NUMBERED_MAX: usize = 400;

const HEARD: &str = "#1f6feb";
const ONE_WAY: &str = "#d97706";
const SENSED: &str = "#c9ced6";
const WIRE: &str = "#444c56";
const INK: &str = "#24292f";

/// Arguments of `corridor sim draw`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Plan
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Index of the point to draw, from 0
    #[arg(long, value_name = "POINT", default_value_t = 0)]
    only: usize,
    /// Output file
    #[arg(long, value_name = "FILE.svg")]
    out: PathBuf,
}

/// Why there is no drawing.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Plan(#[from] ScenarioError),
    #[error("--only {given}: expected 0 to {max}, a point of this plan")]
    Only { given: usize, max: usize },
    #[error("--out {}: expected a file name ending in .svg", given.display())]
    Kind { given: PathBuf },
    #[error(transparent)]
    Sim(#[from] SimError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Runs `corridor sim draw`.
pub fn run(arguments: &Arguments) -> ExitCode {
    match draw(arguments) {
        Ok(said) => {
            println!("{}: {said}", arguments.out.display());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            let (rendered, exit) = match &failure {
                Failure::Plan(error) => (exit::rendered(error), error.into()),
                Failure::Only { .. } | Failure::Kind { .. } => {
                    (format!("error: {failure}"), Exit::Usage)
                }
                _ => (format!("error: {failure}"), Exit::Failure),
            };
            eprintln!("{rendered}");
            exit.into()
        }
    }
}

fn draw(arguments: &Arguments) -> Result<String, Failure> {
    let ending = arguments.out.extension();
    if !ending.is_some_and(|ending| ending.eq_ignore_ascii_case("svg")) {
        return Err(Failure::Kind { given: arguments.out.clone() });
    }
    let plan = Plan::read(&arguments.plan)?;
    exit::warn(&plan.warnings);
    let (given, max) = (arguments.only, plan.points.len() - 1);
    let point = plan.points.get(given).ok_or(Failure::Only { given, max })?;
    let sketch = sketch(point)?;
    let links = Links::of(&sketch);
    let said = links.said(&sketch);
    let title = [plan.name.as_str(), point.title()].join(" ");
    let svg = picture(&sketch, &links, title.trim(), &said);
    let refused = |source| Failure::Write { path: arguments.out.clone(), source };
    fs::write(&arguments.out, svg).map_err(refused)?;
    Ok(said)
}

/// Pairs of nodes, by their relation, each once.
struct Links {
    heard: Vec<(usize, usize)>,
    one_way: Vec<(usize, usize)>,
    sensed: Vec<(usize, usize)>,
}

impl Links {
    fn of(sketch: &Sketch) -> Self {
        let find = |from: usize, to: usize| {
            let reaches = &sketch.reaches;
            let place = reaches.binary_search_by_key(&(from, to), |reach| (reach.from, reach.to));
            place.ok().map(|place| reaches[place])
        };
        let (mut heard, mut one_way, mut sensed) = (Vec::new(), Vec::new(), Vec::new());
        for &there in &sketch.reaches {
            let back = find(there.to, there.from);
            if back.is_some() && there.from > there.to {
                continue;
            }
            let pair = (there.from, there.to);
            let hears = |reach: Reach| reach.hears;
            let senses = there.senses || back.is_some_and(|back| back.senses);
            match (hears(there), back.is_some_and(hears)) {
                (true, true) => heard.push(pair),
                (true, false) | (false, true) => one_way.push(pair),
                (false, false) if senses => sensed.push(pair),
                (false, false) => {}
            }
        }
        Links { heard, one_way, sensed }
    }

    fn said(&self, sketch: &Sketch) -> String {
        let mut words = vec![format!("{} nodes", sketch.places.len())];
        let counts = [
            (sketch.pipes.len(), ["joined by a pipe", "joined by pipes"]),
            (self.heard.len(), ["hears each other", "hear each other"]),
            (self.one_way.len(), ["heard one way", "heard one way"]),
            (self.sensed.len(), ["only senses each other", "only sense each other"]),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        words.extend(counts.map(|(count, [one, many])| match count {
            1 => format!("1 pair {one}"),
            count => format!("{count} pairs {many}"),
        }));
        words.join(", ")
    }
}

fn picture(sketch: &Sketch, links: &Links, title: &str, said: &str) -> String {
    let reach = |axis: usize| {
        let values = || sketch.places.iter().map(move |place| place[axis]);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    };
    let ((left, right), (bottom, top)) = (reach(0), reach(1));
    let span = (right - left).max((top - bottom) / SHAPES.1).max(SPAN_MIN_M);
    let inner = WIDTH - 2.0 * EDGE;
    let scale = inner / span;
    let height = inner * ((top - bottom) / span).clamp(SHAPES.0, SHAPES.1);
    let middle = EDGE + height / 2.0;
    // North is up.
    let at = |node: usize| {
        let [x, y] = sketch.places[node];
        let (x, y) = (x - (left + right) / 2.0, y - (bottom + top) / 2.0);
        (WIDTH / 2.0 + scale * x, middle - scale * y)
    };
    let mut picture = Picture::new(WIDTH, height + 2.0 * EDGE + LEGEND, title);
    let lines = [
        (&links.sensed, 1.0, "2 4", SENSED),
        (&links.one_way, 1.5, "6 4", ONE_WAY),
        (&links.heard, 1.5, "", HEARD),
        (&sketch.pipes, 2.5, "", WIRE),
    ];
    for (pairs, width, dash, colour) in lines {
        for &(a, b) in pairs {
            picture.path(&[at(a), at(b)], width, dash, colour);
        }
    }
    let radius = if sketch.places.len() > NUMBERED_MAX { 3.0 } else { 9.0 };
    let is_end = |node: usize| sketch.flows.iter().any(|&(a, b)| a == node || b == node);
    for node in 0..sketch.places.len() {
        picture.dot(at(node), radius, is_end(node), INK);
        if sketch.places.len() <= NUMBERED_MAX {
            let (x, y) = at(node);
            let colour = if is_end(node) { "#ffffff" } else { INK };
            let font = Font { size: 10.0, bold: true, colour, anchor: Anchor::Middle };
            picture.text((x, y + 3.5), font, &node.to_string());
        }
    }
    legend(&mut picture, sketch, height + 2.0 * EDGE, scale, title, said);
    picture.finish()
}

fn legend(picture: &mut Picture, sketch: &Sketch, top: f64, scale: f64, title: &str, said: &str) {
    let font = |bold| Font { size: 13.0, bold, colour: INK, anchor: Anchor::Start };
    picture.text((EDGE, 30.0), Font { size: 16.0, ..font(true) }, title);
    picture.text((EDGE, top), font(false), said);
    let mut x = EDGE;
    let mut entry = |dash: &str, colour: &str, what: &str| {
        picture.path(&[(x, top + 24.0), (x + 30.0, top + 24.0)], 2.0, dash, colour);
        picture.text((x + 38.0, top + 28.0), font(false), what);
        x += 60.0 + 7.5 * what.len() as f64;
    };
    if !sketch.pipes.is_empty() {
        entry("", WIRE, "a pipe");
    }
    if !sketch.reaches.is_empty() {
        entry("", HEARD, "hear each other");
        entry("6 4", ONE_WAY, "one hears the other");
        entry("2 4", SENSED, "only sense each other");
    }
    if sketch.is_to_scale {
        // A round length that fits.
        let metres = nice_max(120.0 / scale).0;
        let (left, y) = (EDGE, top + 50.0);
        picture.line((left, y), (left + metres * scale, y), 2.0, INK);
        let at = (left + metres * scale + 8.0, y + 4.0);
        picture.text(at, font(false), &format!("{metres} m"));
    }
}
