//! `bench-tcp`: the simulator's TCP beside the kernel's own, on drawn paths.

mod kernel;
mod model;
mod paths;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use kernel::{Job, Record};
use paths::Path;

/// What can go wrong is said to people, and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Holds `preset = "linux"` against a recording of the kernel, or makes one.
#[derive(Debug, Parser)]
#[command(name = "bench-tcp")]
struct Arguments {
    /// Record this machine's kernel into the file, beside what is there, and compare nothing.
    #[arg(long)]
    record: bool,
    /// The recording.
    #[arg(long, default_value = "crates/bench/data/tcp-kernel.json")]
    data: PathBuf,
    /// Paths that are recorded.
    #[arg(long, default_value_t = 40)]
    paths: u64,
    /// Runs on each.
    #[arg(long, default_value_t = 6)]
    runs: u64,
    /// Seconds of each.
    #[arg(long, default_value_t = 30.0)]
    duration_s: f64,
    /// Congestion controls.
    #[arg(long, value_delimiter = ',', default_value = "cubic,bbr")]
    congestion: Vec<String>,
    /// Seed of the paths.
    #[arg(long, default_value_t = 21)]
    seed: u64,
    /// Runs of the kernel at once.
    #[arg(long, default_value_t = 6)]
    at_once: usize,
    /// Tell more of each run.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Outcome<ExitCode> {
    if arguments.record {
        record(arguments)?;
    } else {
        compare(arguments)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(arguments: &Arguments) -> Outcome<()> {
    let record = Record::read(&arguments.data)?;
    let seconds = record.duration_s as u64;
    for congestion in &arguments.congestion {
        let mut ratios = Vec::new();
        let mut near = 0;
        for recorded in &record.paths {
            let Some(runs) = recorded.runs.iter().find(|runs| runs.congestion == *congestion)
            else {
                continue;
            };
            let kernel = corridor_results::Estimate::of(&runs.goodput_bps);
            let mut ours = Vec::new();
            let mut again = Vec::new();
            let mut timeouts = 0;
            for replication in 0..arguments.runs {
                let run =
                    model::simulate(&recorded.path, congestion, record.seed, replication, seconds)?;
                ours.push(run.goodput_bps);
                again.push(run.retransmitted_ratio);
                timeouts += run.timeouts;
                if arguments.verbose {
                    eprintln!("{:?} {:?}", run.course_bytes, run.windows);
                }
            }
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let ratio = mean(&ours) / mean(&runs.goodput_bps);
            ratios.push(ratio);
            let _ = &kernel;
            let m = mean(&runs.goodput_bps);
            let var = runs.goodput_bps.iter().map(|g| (g - m).powi(2)).sum::<f64>()
                / (runs.goodput_bps.len() as f64 - 1.0).max(1.0);
            let half = 2.571 * (var / runs.goodput_bps.len() as f64).sqrt();
            let ok = (ratio - 1.0).abs() <= 0.1 || (mean(&ours) - m).abs() <= half;
            near += usize::from(ok);
            println!(
                "{:3} {congestion:6} {:48} kernel {:8.3} +-{:6.3} ours {:8.3} ratio {ratio:.3} {} again {:.4} {:.4} rto {timeouts}",
                recorded.index,
                recorded.path.title(),
                m / 1e6,
                half / 1e6,
                mean(&ours) / 1e6,
                if ok { "ok  " } else { "FAR " },
                mean(&runs.retransmitted_ratio),
                mean(&again),
            );
        }
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        println!("{congestion}: mean ratio {mean:.4}, near {near} of {}", ratios.len());
    }
    Ok(())
}

/// Adds the runs that the recording lacks, all paths once before any twice.
fn record(arguments: &Arguments) -> Outcome<()> {
    kernel::prepare(&arguments.congestion)?;
    let record = if arguments.data.exists() {
        Record::read(&arguments.data)?
    } else {
        Record::here(arguments.seed, arguments.duration_s)?
    };
    let mut jobs = Vec::new();
    for replication in 0..arguments.runs {
        for index in 0..arguments.paths {
            for congestion in &arguments.congestion {
                if record.count(index, congestion) as u64 <= replication {
                    let path = Path::draw(record.seed, index);
                    jobs.push(Job { index, path, congestion: congestion.clone(), replication });
                }
            }
        }
    }
    let save = |record: &Record| record.write(&arguments.data);
    kernel::record(record, jobs, arguments.at_once, arguments.verbose, save)?;
    Ok(())
}
