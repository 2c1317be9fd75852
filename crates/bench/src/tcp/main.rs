//! `bench-tcp`: compares the simulator's TCP with the kernel's, on random paths.
//!
//! The kernel's runs are recorded once (`--record`, an hour); the comparison takes a minute, and
//! two more for fresh paths, if network namespaces are permitted. Writes every figure, and
//! `checks`: name, value, limit, and whether it holds. Exits with 1 if one does not hold.

mod compare;
mod kernel;
mod model;
mod paths;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

use compare::Compared;
use corridor_bench::frame::{self, Outcome};
use corridor_results::checks::Check;
use kernel::{Job, Record};
use paths::Path;

/// Number of fresh paths, and runs on each.
const FRESH: (u64, u64) = (4, 3);

/// Compares `preset = "linux"` with a recording of the kernel, or makes one.
#[derive(Debug, Parser)]
#[command(name = "bench-tcp")]
struct Arguments {
    /// Record this machine's kernel, adding to the file, and compare nothing.
    #[arg(long)]
    record: bool,
    /// The recording.
    #[arg(long, default_value = "crates/bench/data/tcp-kernel.json")]
    data: PathBuf,
    /// Number of paths to record.
    #[arg(long, default_value_t = 40)]
    paths: u64,
    /// Runs per path.
    #[arg(long, default_value_t = 6)]
    runs: u64,
    /// Seconds per run.
    #[arg(long, default_value_t = 30.0)]
    duration_s: f64,
    /// Congestion controls.
    #[arg(long, value_delimiter = ',', default_value = "cubic,bbr")]
    congestion: Vec<String>,
    /// Seed of the paths.
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// Number of concurrent runs of the kernel.
    #[arg(long, default_value_t = 6)]
    at_once: usize,
    /// Seed of the fresh paths, instead of the day's.
    #[arg(long)]
    fresh_seed: Option<u64>,
    /// The file to write.
    #[arg(long, default_value = "out/bench/tcp.json")]
    out: PathBuf,
}

fn main() -> ExitCode {
    frame::exit("bench-tcp", run(&Arguments::parse()))
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    kernel: String,
    seed: u64,
    /// Seed of the fresh paths; different in each run.
    fresh_seed: u64,
    checks: Vec<Check>,
    paths: Vec<Compared>,
    fresh: Vec<Compared>,
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    if arguments.record {
        record(arguments)?;
        return Ok(true);
    }
    let report = compare(arguments)?;
    frame::write_report(&arguments.out, &report)?;
    Ok(frame::say(&report.checks))
}

/// Compares the simulator with the recording, and with fresh runs of this machine's kernel.
fn compare(arguments: &Arguments) -> Outcome<Report> {
    let record = Record::read(&arguments.data)?;
    println!("recorded: Linux {}, seed {}", record.kernel, record.seed);
    let mut checks = compare::example()?;
    let (mut paths, mut fresh) = (Vec::new(), Vec::new());
    for congestion in &arguments.congestion {
        let compared = compare::compare(&record, congestion)?;
        compared.iter().for_each(|path| println!("{}", path.line()));
        checks.extend(compare::checks(congestion, &compared));
        paths.extend(compared);
    }
    let fresh_seed = arguments.fresh_seed.unwrap_or_else(kernel::seed_of_the_day);
    match kernel::prepare(&arguments.congestion) {
        Err(error) => println!("absent: no fresh paths: {error}"),
        Ok(()) => {
            println!("fresh paths: seed {fresh_seed}");
            let here = Record::here(fresh_seed, record.duration_s)?;
            let jobs = jobs(arguments, &here, FRESH);
            let here = kernel::record(here, jobs, arguments.at_once, &|_| Ok(()))?;
            for congestion in &arguments.congestion {
                fresh.extend(compare::compare(&here, congestion)?);
            }
            fresh.iter().for_each(|path| println!("{}", path.line()));
            checks.push(compare::fresh_check(&fresh));
        }
    }
    let (kernel, seed) = (record.kernel, record.seed);
    Ok(Report { schema: 1, kernel, seed, fresh_seed, checks, paths, fresh })
}

/// Runs missing from a recording, for a number of paths and runs: all once before any twice.
fn jobs(arguments: &Arguments, record: &Record, (paths, runs): (u64, u64)) -> Vec<Job> {
    let mut jobs = Vec::new();
    for replication in 0..runs {
        for index in 0..paths {
            for congestion in &arguments.congestion {
                if !record.has(index, congestion, replication) {
                    let path = Path::draw(record.seed, index);
                    jobs.push(Job { index, path, congestion: congestion.clone(), replication });
                }
            }
        }
    }
    jobs
}

/// Adds the runs that the recording lacks.
fn record(arguments: &Arguments) -> Outcome<()> {
    kernel::prepare(&arguments.congestion)?;
    let record = if arguments.data.exists() {
        Record::read(&arguments.data)?
    } else {
        Record::here(arguments.seed, arguments.duration_s)?
    };
    println!("paths: seed {}", record.seed);
    let jobs = jobs(arguments, &record, (arguments.paths, arguments.runs));
    let save = |record: &Record| record.write(&arguments.data);
    kernel::record(record, jobs, arguments.at_once, &save)?;
    Ok(())
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-tcp", "bench-tcp", &[]);
    }
}
