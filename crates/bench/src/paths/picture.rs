//! Plots of the cumulative distributions over all paths.

use corridor_bench::distributions::{self, Panel};

use crate::measure::{Got, Measured};

const WAYS: [(&str, &str); 3] = [("window", "#0b6e99"), ("cubic", "#b5651d"), ("bbr", "#6a3d9a")];

/// Plots goodput on steady and on varying paths, drops and queueing delays.
pub fn draw(paths: &[Measured], seed: u64) -> String {
    let is_steady = |path: &&Measured| !path.path.is_varying();
    let is_varying = |path: &&Measured| path.path.is_varying();
    let steady: Vec<_> = paths.iter().filter(is_steady).collect();
    let varied: Vec<_> = paths.iter().filter(is_varying).collect();
    let all: Vec<_> = paths.iter().collect();
    let goodput = Panel {
        title: "Goodput, steady paths",
        axis: "of what losses leave of the capacity, less headers",
        range: (0.0, 1.1),
        ticks: &[0.0, 0.25, 0.5, 0.75, 1.0],
        curves: curves(&steady, |got| got.share),
    };
    let varying = Panel {
        title: "Goodput, varying paths",
        curves: curves(&varied, |got| got.share),
        ..goodput
    };
    let drops = Panel {
        title: "Dropped by buffers and policers",
        axis: "share of the frames, after the start",
        range: (1e-4, 1.0),
        ticks: &[1e-4, 1e-3, 1e-2, 0.1, 1.0],
        curves: curves(&all, |got| got.dropped_ratio),
    };
    let waits = Panel {
        title: "Wait in the buffer, 95th percentile",
        axis: "milliseconds",
        range: (0.1, 10_000.0),
        ticks: &[0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0],
        curves: curves(&all, |got| got.wait_p95_ms),
    };
    let heading = format!(
        "{} drawn paths, seed {seed}: share of the paths with at most so much",
        paths.len()
    );
    let title = "Goodput, drops and waits on drawn paths";
    distributions::draw(title, &heading, &WAYS, &[goodput, varying, drops, waits])
}

/// A value of each transport on these paths.
fn curves(paths: &[&Measured], value: fn(&Got) -> f64) -> Vec<(&'static str, Vec<f64>)> {
    let curve = |(way, (_, colour)): (usize, &(&str, &'static str))| {
        let of = |path: &&Measured| value([&path.window, &path.cubic, &path.bbr][way]);
        (*colour, paths.iter().map(of).collect())
    };
    WAYS.iter().enumerate().map(curve).collect()
}
