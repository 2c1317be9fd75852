//! `bench-paths`: window mode compared with plain cubic and plain BBR on random paths, in virtual
//! time.
//!
//! The seed is fresh, and printed; the same seed reproduces everything. Writes every path's
//! figures, and `checks`: what must hold, its value, and whether it holds; a plot of the
//! distributions; and the ten worst paths with the command that reruns each. Exits with 1 if a
//! check fails.

mod draw;
mod judge;
mod lab;
mod measure;
mod picture;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use corridor_air::RateTrace;
use corridor_bench::frame::{self, Outcome};
use corridor_bench::parallel;
use corridor_bench::random::fresh_seed;
use corridor_results::checks::Check;
use serde::Serialize;

use draw::{Drawn, Way};
use measure::{Measured, Spans, measure};

/// Number of worst paths to list.
const WORST: usize = 10;
/// Loss ratios for recorded rates.
const TRACE_LOSSES: [f64; 2] = [0.0, 0.1];

/// Compares window mode with plain TCP on random paths.
#[derive(Debug, Parser)]
#[command(name = "bench-paths")]
struct Arguments {
    /// Seed of the paths and of everything random on them, instead of a fresh one.
    #[arg(long)]
    seed: Option<u64>,
    /// Number of paths.
    #[arg(long, default_value_t = 500)]
    count: u64,
    /// A single path: prints its scenario, and writes no file.
    #[arg(long)]
    only: Option<u64>,
    /// Instead of random paths, compare a few in the lab, with this machine's kernel, with the
    /// simulator.
    #[arg(long)]
    lab: bool,
    /// Of these, only those with this in their name, such as "jitter" or "steps: bbr".
    #[arg(long, value_name = "TEXT", default_value = "", requires = "lab")]
    of: String,
    /// Maximum runs of each in the lab; fewer if these suffice, more if they are too uncertain.
    #[arg(long, value_name = "N", default_value_t = 24, requires = "lab")]
    replications: u64,
    /// Number of concurrent runs [default: the number of processors].
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Transports to compare with window mode.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["known", "cubic", "bbr", "lossless"])]
    ways: Vec<Way>,
    /// Packets to which runs on fast paths are shortened; from 20000.
    #[arg(long, default_value_t = 1_000_000)]
    packets_max: u64,
    /// Only paths with a mean rate of at most this many Mbit/s: they are the fastest to run.
    #[arg(long)]
    rate_max_mbps: Option<f64>,
    /// Directory of recorded rates in Mahimahi's format to try as well: all of its files.
    #[arg(long)]
    traces: Option<PathBuf>,
    /// The file to write; the plot goes beside it.
    #[arg(long, default_value = "out/bench/paths.json")]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    seed: u64,
    code_version: &'static str,
    packets_max: u64,
    /// Number of paths with shortened runs.
    shortened: usize,
    checks: Vec<Check>,
    worst: Vec<Worst>,
    paths: Vec<Measured>,
    /// Results on recorded rates.
    traces: Vec<Measured>,
}

/// One of the worst paths.
#[derive(Debug, Serialize)]
struct Worst {
    index: u64,
    share: f64,
    title: String,
    command: String,
}

fn main() -> ExitCode {
    frame::exit("bench-paths", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    let seed = arguments.seed.unwrap_or_else(fresh_seed);
    let packets_max = arguments.packets_max.max(20_000) as f64;
    if let Some(index) = arguments.only {
        let path = Drawn::new(seed, index);
        let Spans { duration_s, .. } = Spans::of(&path, packets_max);
        frame::print(&path.scenario(seed, Way::Window, duration_s))?;
        let measured = measure(&path, seed, packets_max, &arguments.ways)?;
        frame::print(&measured.line())?;
        frame::print(&serde_json::to_string_pretty(&measured)?)?;
        return Ok(true);
    }
    if arguments.lab {
        return beside_lab(arguments, seed);
    }
    println!("seed {seed}: bench-paths --seed {seed} --count {}", arguments.count);
    let most_bps = 1e6 * arguments.rate_max_mbps.unwrap_or(f64::INFINITY);
    let drawn = (0..arguments.count).map(|index| Drawn::new(seed, index));
    let drawn = drawn.filter(|path| path.mean_bps <= most_bps).collect();
    let paths = measure_all(drawn, seed, packets_max, arguments)?;
    let mut checks = judge::checks(&paths);
    let traces = match &arguments.traces {
        Some(directory) => {
            let traced = recorded(directory, arguments.count)?;
            measure_all(traced, seed, packets_max, arguments)?
        }
        None => Vec::new(),
    };
    if traces.is_empty() {
        println!("absent: recorded rates; --traces names a directory of them");
    }
    checks.extend(judge::trace_checks(&traces));
    let worst = worst(&paths, seed, arguments.packets_max);
    let shortened = paths.iter().filter(|path| path.shortened).count();
    let picture = arguments.out.with_extension("svg");
    frame::write(&picture, picture::draw(&paths, seed))?;
    let report = Report {
        schema: 1,
        seed,
        code_version: corridor_sim::CODE_VERSION,
        packets_max: arguments.packets_max,
        shortened,
        checks,
        worst,
        paths,
        traces,
    };
    frame::write_report(&arguments.out, &report)?;
    Ok(say(&report))
}

/// Compares the simulator with the lab.
fn beside_lab(arguments: &Arguments, seed: u64) -> Outcome<bool> {
    println!("seed {seed}: bench-paths --lab --seed {seed}");
    let replications = arguments.replications.max(2);
    let asked = lab::Asked { seed, replications, only: arguments.of.clone() };
    let (pairs, checks) = match lab::compare(&asked) {
        Ok(compared) => compared,
        Err(error) if error.to_string().starts_with("absent:") => {
            println!("{error}");
            return Ok(true);
        }
        Err(error) => return Err(error),
    };
    let report = serde_json::json!({ "schema": 1, "seed": seed, "checks": checks, "pairs": pairs });
    frame::write_report(&arguments.out, &report)?;
    Ok(frame::say(&checks))
}

/// Prints the results. Returns whether all checks hold.
fn say(report: &Report) -> bool {
    println!("worst:");
    for Worst { share, title, command, .. } in &report.worst {
        println!("  {share:.3} {title}\n        {command}");
    }
    let Report { seed, shortened, paths, .. } = report;
    println!("seed {seed}, {} paths, {shortened} of them shortened", paths.len());
    frame::say(&report.checks)
}

/// Measures all, several at once, returning results in order.
fn measure_all(
    paths: Vec<Drawn>,
    seed: u64,
    packets_max: f64,
    arguments: &Arguments,
) -> Outcome<Vec<Measured>> {
    parallel::map(paths, arguments.jobs, |path| {
        let measured = measure(path, seed, packets_max, &arguments.ways)?;
        println!("{}", measured.line());
        Ok(measured)
    })
}

/// Paths with the recorded rates of a directory.
fn recorded(directory: &Path, first: u64) -> Outcome<Vec<Drawn>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        files.push(entry?.path());
    }
    files.sort();
    let mut paths = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let trace =
            RateTrace::parse(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = fs::canonicalize(&file)?.display().to_string();
        for loss_ratio in TRACE_LOSSES {
            let index = first + paths.len() as u64;
            paths.push(Drawn::of_trace(index, &name, trace.mean_bps(), loss_ratio));
        }
    }
    Ok(paths)
}

/// The paths with the least goodput, of what they are compared with.
fn worst(paths: &[Measured], seed: u64, packets_max: u64) -> Vec<Worst> {
    let mut sorted: Vec<&Measured> = paths.iter().collect();
    sorted.sort_by(|a, b| a.of_reference.total_cmp(&b.of_reference));
    let worst = |path: &&Measured| {
        let index = path.path.index;
        Worst {
            index,
            share: path.of_reference,
            title: path.title.clone(),
            command: format!(
                "bench-paths --seed {seed} --only {index} --packets-max {packets_max}"
            ),
        }
    };
    sorted.iter().take(WORST).map(worst).collect()
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-paths", "bench-paths", &[]);
        reads::<super::Arguments>("bench-paths", "bench-paths", &["SEED=1", "COUNT=60"]);
        reads::<super::Arguments>("bench-paths", "bench-paths-lab", &["SEED=1"]);
    }
}
