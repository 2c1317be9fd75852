//! Compares the simulator with a recording, path by path, and checks the result.

use corridor_results::Estimate;
use corridor_results::checks::Check;
use serde::Serialize;

use crate::Outcome;
use crate::kernel::{Record, Recorded};
use crate::model::{Key, simulate};
use crate::paths::Path;

/// Random draws of BBR per run.
const DRAWS: u64 = 4;
/// Maximum difference of the mean goodput ratio from 1.
const MEAN_ERROR_MAX: f64 = 0.03;
/// A path matches if its goodput differs by no more, or lies within the kernel's interval.
const PATH_ERROR_MAX: f64 = 0.10;
/// Minimum fraction of matching paths; for four fresh ones, with few runs each.
const NEAR_MIN: f64 = 0.9;
const NEAR_FRESH_MIN: f64 = 0.75;
/// Maximum difference of the fraction of packets retransmitted, averaged over all paths.
const AGAIN_ERROR_MAX: f64 = 0.01;
/// Two lossless links that a window fills: minimum goodput, maximum of retransmissions.
const EXAMPLE_BPS_MIN: f64 = 1.85e6;
const EXAMPLE_AGAIN_MAX: f64 = 0.05;

/// A path, with the kernel's and the simulator's results.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Congestion control.
    pub congestion: String,
    /// The path's number.
    pub index: u64,
    /// The path.
    pub path: Path,
    /// The kernel's mean, and the half-width of its 95 % interval.
    pub kernel_bps: f64,
    pub kernel_half_bps: f64,
    /// The simulator's mean.
    pub simulated_bps: f64,
    /// Their ratio.
    pub ratio: f64,
    /// Whether the path matches.
    pub near: bool,
    /// Fraction of packets retransmitted.
    pub kernel_retransmitted_ratio: f64,
    pub simulated_retransmitted_ratio: f64,
}

/// Compares all recorded paths with one congestion control.
pub fn compare(record: &Record, congestion: &str) -> Outcome<Vec<Compared>> {
    let of_path = |recorded: &Recorded| compare_path(record, recorded, congestion).transpose();
    record.paths.iter().filter_map(of_path).collect()
}

fn compare_path(
    record: &Record,
    recorded: &Recorded,
    congestion: &str,
) -> Outcome<Option<Compared>> {
    let runs = recorded.runs.iter().find(|runs| runs.congestion == congestion);
    let Some((runs, kernel)) = runs.and_then(|runs| Some((runs, Estimate::of(&runs.goodput_bps)?)))
    else {
        return Ok(None);
    };
    let (mut bps, mut again) = (0.0, 0.0);
    // The kernel's replications, which see the same losses in the same order. BBR's cycles start
    // randomly, which the kernel does not reveal: average a few.
    let draws = if congestion == "bbr" { DRAWS } else { 1 };
    let count = (kernel.count * draws) as f64;
    for (replication, draw) in runs.replications().flat_map(|run| (0..draws).map(move |d| (run, d)))
    {
        let key = Key { seed: record.seed, replication, draw };
        let run = simulate(&recorded.path, 1, congestion, key, record.duration_s)?;
        bps += run.goodput_bps / count;
        again += run.retransmitted_ratio / count;
    }
    let half = kernel.half_width_at(0.95).unwrap_or(0.0);
    let ratio = bps / kernel.mean;
    let ratios = &runs.retransmitted_ratio;
    Ok(Some(Compared {
        congestion: congestion.to_owned(),
        index: recorded.index,
        path: recorded.path,
        kernel_bps: kernel.mean,
        kernel_half_bps: half,
        simulated_bps: bps,
        ratio,
        near: (ratio - 1.0).abs() <= PATH_ERROR_MAX || (bps - kernel.mean).abs() <= half,
        kernel_retransmitted_ratio: ratios.iter().sum::<f64>() / ratios.len().max(1) as f64,
        simulated_retransmitted_ratio: again,
    }))
}

impl Compared {
    /// A line of text.
    pub fn line(&self) -> String {
        format!(
            "{:6} {:3} {:45} kernel {:7.3} +-{:6.3} simulated {:7.3} Mbit/s, ratio {:.3}{}; sent \
             again {:.4}, {:.4}",
            self.congestion,
            self.index,
            self.path.title(),
            self.kernel_bps / 1e6,
            self.kernel_half_bps / 1e6,
            self.simulated_bps / 1e6,
            self.ratio,
            if self.near { "" } else { " (far)" },
            self.kernel_retransmitted_ratio,
            self.simulated_retransmitted_ratio,
        )
    }
}

/// Checks of the recorded paths.
pub fn checks(congestion: &str, paths: &[Compared]) -> Vec<Check> {
    let mean = |of: &dyn Fn(&Compared) -> f64| {
        paths.iter().map(of).sum::<f64>() / paths.len().max(1) as f64
    };
    let error = (mean(&|path| path.ratio) - 1.0).abs();
    let again =
        mean(&|path| (path.kernel_retransmitted_ratio - path.simulated_retransmitted_ratio).abs());
    vec![
        Check::at_most(
            format!("{congestion} goodput, mean ratio less 1"),
            Some(error),
            MEAN_ERROR_MAX,
            "",
        ),
        Check::at_least(format!("{congestion} paths near"), Some(near(paths)), NEAR_MIN, ""),
        Check::at_most(
            format!("{congestion} sent again, mean difference"),
            Some(again),
            AGAIN_ERROR_MAX,
            "",
        ),
    ]
}

/// Check of a few fresh paths.
pub fn fresh_check(paths: &[Compared]) -> Check {
    Check::at_least("fresh paths near", Some(near(paths)), NEAR_FRESH_MIN, "")
}

fn near(paths: &[Compared]) -> f64 {
    paths.iter().filter(|path| path.near).count() as f64 / paths.len().max(1) as f64
}

/// Two lossless links of 2 Mbit/s, 20 ms and 50 packets, for a minute.
pub fn example() -> Outcome<Vec<Check>> {
    let path = Path { rate_bps: 2_000_000, rtt_ms: 40.0, loss_ratio: 0.0, queue_packets: 50 };
    let run = simulate(&path, 2, "cubic", Key { seed: 1, replication: 0, draw: 0 }, 60.0)?;
    let again = run.retransmitted_ratio;
    Ok(vec![
        Check::at_least(
            "two links, cubic, goodput",
            Some(run.goodput_bps),
            EXAMPLE_BPS_MIN,
            "bit/s",
        ),
        Check::at_most("two links, cubic, sent again", Some(again), EXAMPLE_AGAIN_MAX, ""),
    ])
}
