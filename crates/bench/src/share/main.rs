//! `bench-share`: how a tunnel in window mode shares random bottlenecks, in virtual time: with
//! other tunnels, with plain TCP cubic, and with plain TCP BBR.
//!
//! Beside BBR, plain cubic in the tunnel's place is the reference. The seed is fresh, and printed;
//! the same seed reproduces everything. Writes every bottleneck's figures, and `checks`: what must
//! hold, its value, and whether it holds; a plot of the distributions; and the worst bottlenecks
//! with the command that reruns each. Exits with 1 if a check fails.

mod draw;
mod judge;
mod measure;
mod picture;

use std::io::{self, IsTerminal};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use corridor_bench::frame::{self, Outcome};
use corridor_bench::parallel;
use corridor_bench::random::fresh_seed;
use corridor_results::checks::Check;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use draw::{Bottleneck, Draws, Kind, WARM_UP_S};
use judge::Distribution;
use measure::{Measured, measure};

/// Number of worst bottlenecks to list by each quantity.
const WORST: usize = 3;

/// Measures how a tunnel in window mode shares random bottlenecks.
#[derive(Debug, Parser)]
#[command(name = "bench-share")]
struct Arguments {
    /// Seed of the bottlenecks and of everything random on them, instead of a fresh one.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of bottlenecks.
    #[arg(long, default_value_t = 60)]
    count: u64,
    /// A single bottleneck: prints its plans and figures, and writes no file.
    #[arg(long, value_name = "INDEX")]
    only: Option<u64>,
    /// Runs of each kind on each bottleneck, with other start times and losses.
    #[arg(long, value_name = "N", default_value = "3")]
    replications: NonZeroU64,
    /// Number of concurrent runs [default: the number of processors].
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// The file to write; the plot goes beside it.
    #[arg(long, default_value = "out/bench/share.json")]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    seed: u64,
    code_version: &'static str,
    replications: u64,
    warm_up_s: f64,
    checks: Vec<Check>,
    distributions: Vec<Distribution>,
    worst: Vec<Worst>,
    bottlenecks: Vec<Measured>,
}

/// One of the worst bottlenecks.
#[derive(Debug, Serialize)]
struct Worst {
    index: u64,
    /// The quantity by which it is one.
    what: &'static str,
    value: f64,
    title: String,
    command: String,
}

fn main() -> ExitCode {
    frame::exit("bench-share", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    let seed = arguments.seed.unwrap_or_else(fresh_seed);
    let (count, replications) = (arguments.count, arguments.replications.get());
    if let Some(index) = arguments.only {
        return show(seed, index, replications);
    }
    println!(
        "seed {seed}: bench-share --seed {seed} --count {count} --replications {replications}"
    );
    let drawn = (0..count).map(|index| Bottleneck::new(seed, index)).collect();
    let bar = progress_bar(count);
    let bottlenecks = parallel::map(drawn, arguments.jobs, |bottleneck| {
        let measured = measure(bottleneck, seed, replications)?;
        bar.suspend(|| println!("{}", measured.line()));
        bar.inc(1);
        Ok(measured)
    })?;
    bar.finish_and_clear();
    let plot = picture::draw(&bottlenecks, seed);
    frame::write(&arguments.out.with_extension("svg"), plot)?;
    let report = Report {
        schema: 1,
        seed,
        code_version: corridor_sim::CODE_VERSION,
        replications,
        warm_up_s: WARM_UP_S,
        checks: judge::checks(&bottlenecks),
        distributions: judge::distributions(&bottlenecks),
        worst: worst(&bottlenecks, seed, replications),
        bottlenecks,
    };
    frame::write_report(&arguments.out, &report)?;
    Ok(say(&report))
}

/// Prints the plans of a bottleneck, which `corridor sim run` runs as well, and its figures.
fn show(seed: u64, index: u64, replications: u64) -> Outcome<bool> {
    let bottleneck = Bottleneck::new(seed, index);
    for kind in Kind::ALL {
        for replication in 0..replications {
            let plan = bottleneck.plan(kind, &Draws::new(seed, index, replication));
            frame::print(&format!("# {}, replication {replication}\n{plan}", kind.name()))?;
        }
    }
    let measured = measure(&bottleneck, seed, replications)?;
    frame::print(&measured.line())?;
    frame::print(&serde_json::to_string_pretty(&measured)?)?;
    Ok(true)
}

/// Prints the results. Returns whether all checks hold.
fn say(report: &Report) -> bool {
    println!("worst:");
    for Worst { what, value, title, command, .. } in &report.worst {
        println!("  {value:.3} {what}: {title}\n        {command}");
    }
    let Report { seed, replications, bottlenecks, .. } = report;
    println!("seed {seed}, {} bottlenecks, {replications} runs of each kind", bottlenecks.len());
    println!("{}", Distribution::heading());
    report.distributions.iter().for_each(|distribution| println!("{}", distribution.line()));
    frame::say(&report.checks)
}

/// The worst bottlenecks by each quantity that is checked.
fn worst(bottlenecks: &[Measured], seed: u64, replications: u64) -> Vec<Worst> {
    type Of = fn(&Measured) -> f64;
    // The quantity, and what is the smaller the worse it is.
    let quantities: [(&str, Of, Of); 4] = [
        ("four: Jain's index", |of| of.four.value, |of| of.four.value),
        ("cubic: share", |of| of.cubic.value, |of| -(of.cubic.value - 0.5).abs()),
        ("bbr: share less cubic's in its place", Measured::above_cubic, Measured::above_cubic),
        ("bbr: share", |of| of.bbr.value, |of| -of.bbr.value),
    ];
    let mut all = Vec::new();
    for (what, value, goodness) in quantities {
        let mut sorted: Vec<&Measured> = bottlenecks.iter().collect();
        sorted.sort_by(|a, b| goodness(a).total_cmp(&goodness(b)));
        all.extend(sorted.into_iter().take(WORST).map(|measured| {
            let index = measured.bottleneck.index;
            let command =
                format!("bench-share --seed {seed} --only {index} --replications {replications}");
            let (value, title) = (value(measured), measured.title.clone());
            Worst { index, what, value, title, command }
        }));
    }
    all
}

/// A progress bar on standard error, if it is a terminal; otherwise nothing, since each bottleneck
/// prints a line.
fn progress_bar(count: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(count);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use corridor_bench::parallel;

    use super::recipe::reads;

    #[test]
    fn concurrent_results_are_in_order_and_errors_are_returned() {
        let items: Vec<u64> = (0..50).collect();
        let half = |item: &u64| if *item < 40 { Ok(item / 2) } else { Err("too large".into()) };
        let jobs = NonZeroUsize::new(4);
        let halves = parallel::map(items[..40].to_vec(), jobs, half).expect("none is too large");
        assert_eq!(halves, (0..40).map(|item| item / 2).collect::<Vec<u64>>());
        assert!(parallel::map(items, jobs, half).is_err());
    }

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-share", "bench-share", &[]);
        reads::<super::Arguments>("bench-share", "bench-share", &["SEED=1", "COUNT=12"]);
    }
}
