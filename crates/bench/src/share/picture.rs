//! Plots of the cumulative distributions over all bottlenecks.

use corridor_bench::distributions::{self, Panel};

use crate::draw::Kind;
use crate::measure::{Got, Measured};

const COLOURS: [&str; 4] = ["#2e7d32", "#b5651d", "#6a3d9a", "#888888"];

/// Plots Jain's index and shares, utilisation, and delay.
pub fn draw(all: &[Measured], seed: u64) -> String {
    let [four, others @ ..] = Kind::ALL;
    let value: fn(&Got) -> f64 = |got| got.value;
    let jain = Panel {
        title: "Jain's index of four tunnels' goodputs",
        axis: "1 is fair",
        range: (0.25, 1.0),
        ticks: &[0.25, 0.5, 0.75, 0.9, 1.0],
        curves: curves(all, &[four], value),
    };
    let shares = Panel {
        title: "Share of both goodputs beside a plain flow",
        axis: "of the tunnel, or of cubic in its place; one half is fair",
        range: (0.0, 1.0),
        ticks: &[0.0, 0.25, 0.5, 0.75, 1.0],
        curves: curves(all, &others, value),
    };
    let used = Panel {
        title: "Sum of the goodputs",
        axis: "of the rate",
        range: (0.5, 1.0),
        ticks: &[0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
        curves: curves(all, &Kind::ALL, |got| got.utilisation),
    };
    let delays = Panel {
        title: "Delay above half the round-trip time, 95th percentile",
        axis: "milliseconds",
        range: (1.0, 1_000.0),
        ticks: &[1.0, 10.0, 100.0, 1_000.0],
        curves: curves(all, &Kind::ALL, |got| got.delay_p95_ms),
    };
    let legend: Vec<_> = Kind::ALL.map(Kind::name).into_iter().zip(COLOURS).collect();
    let heading = format!(
        "{} drawn bottlenecks, seed {seed}: share of the bottlenecks with at most so much",
        all.len()
    );
    distributions::draw(
        "How flows share drawn bottlenecks",
        &heading,
        &legend,
        &[jain, shares, used, delays],
    )
}

/// A value of these kinds.
fn curves(
    all: &[Measured],
    kinds: &[Kind],
    value: fn(&Got) -> f64,
) -> Vec<(&'static str, Vec<f64>)> {
    let curve = |(kind, colour): (&Kind, &'static str)| {
        kinds
            .contains(kind)
            .then(|| (colour, all.iter().map(|measured| value(measured.got(*kind))).collect()))
    };
    Kind::ALL.iter().zip(COLOURS).filter_map(curve).collect()
}
