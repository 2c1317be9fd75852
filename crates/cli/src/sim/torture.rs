//! `corridor sim torture`: seeds on all processors, failures shrunk, and coverage.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use corridor_torture::{Failure, Feature, Invariant, Outcome, Scenario, Shrunk, Tally, Violation};
use indicatif::{ProgressBar, ProgressStyle};
use nix::time::ClockId;
use serde_json::{Value, json};

use crate::engine::stop_on_signals;
use crate::exit::Exit;

/// Maximum number of failures that are shrunk, each of another kind.
const SHRUNK_MAX: usize = 3;
/// Maximum number of runs to shrink one of them.
const SHRINK_RUNS_MAX: u32 = 3_000;

/// Arguments of `corridor sim torture`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of seeds to run
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    seeds: u64,
    /// First seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    first: u64,
    /// Run only this seed; with -v, print a trace
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first", "scenario"])]
    seed: Option<u64>,
    /// Run only this scenario, a JSON object as printed for failures; with -v, print a trace
    #[arg(long, value_name = "JSON", conflicts_with_all = ["seeds", "first"])]
    scenario: Option<String>,
    /// Run at most N seeds in parallel [default: number of processors]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Write results to standard output as a JSON object
    #[arg(long)]
    json: bool,
}

thread_local! {
    /// Where this thread last panicked.
    static PANICKED_AT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Processor time of each seed.
type Times = Vec<(Duration, u64)>;

/// Runs `corridor sim torture`.
pub fn run(arguments: &Arguments, verbose: bool) -> ExitCode {
    // A panic is a result here: it is reported with its seed, not when it happens.
    std::panic::set_hook(Box::new(|info| {
        PANICKED_AT.set(info.location().map(|at| format!("{}:{}", at.file(), at.line())));
    }));
    let alone = match (&arguments.scenario, arguments.seed) {
        (Some(text), _) => match read_scenario(text) {
            Ok(scenario) => Some(scenario),
            Err(error) => {
                eprintln!("--scenario: {error}");
                return ExitCode::from(2);
            }
        },
        (None, seed) => seed.map(Scenario::draw),
    };
    let stop = stop_on_signals();
    let began = Instant::now();
    let jobs = match arguments.jobs {
        _ if alone.is_some() => 1,
        Some(jobs) => jobs.get(),
        None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    let (tally, times) = match &alone {
        Some(scenario) => run_alone(scenario, verbose),
        None => run_seeds(arguments, jobs, &stop),
    };
    let took = began.elapsed();
    let small = shrink_failures(&tally, alone.as_ref(), &stop);
    let given = alone.filter(|_| arguments.scenario.is_some());
    let results = Results { tally, small, given, took, jobs };
    let written =
        if arguments.json { results.write_json(times) } else { results.write_text(times) };
    match written {
        Err(error) => {
            eprintln!("cannot write to standard output: {error}");
            ExitCode::FAILURE
        }
        Ok(()) if results.tally.failed > 0 => ExitCode::FAILURE,
        Ok(()) if stop.load(Ordering::Relaxed) => Exit::Interrupted.into(),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn read_scenario(text: &str) -> Result<Scenario, Box<dyn std::error::Error>> {
    let scenario: Scenario = serde_json::from_str(text)?;
    scenario.check()?;
    Ok(scenario)
}

// ---- running ----------------------------------------------------------------------------------

fn run_alone(scenario: &Scenario, verbose: bool) -> (Tally, Times) {
    let began = processor_time();
    let mut out = io::stdout().lock();
    let mut trace = |at: corridor_base::Time, what: std::fmt::Arguments<'_>| {
        // A closed pipe does not change the results.
        let _ = writeln!(out, "{at} {what}");
    };
    let outcome = corridor_torture::run_traced(scenario, verbose.then_some(&mut trace));
    let mut tally = Tally::default();
    tally.add(scenario.seed, with_place(outcome));
    (tally, vec![(processor_time().saturating_sub(began), scenario.seed)])
}

fn run_seeds(arguments: &Arguments, jobs: usize, stop: &AtomicBool) -> (Tally, Times) {
    let next = AtomicU64::new(0);
    let bar = progress_bar(arguments.seeds);
    let work = || {
        let (mut tally, mut times) = (Tally::default(), Times::new());
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= arguments.seeds {
                break;
            }
            let seed = arguments.first.wrapping_add(index);
            let began = processor_time();
            let outcome = with_place(corridor_torture::run(&Scenario::draw(seed)));
            times.push((processor_time().saturating_sub(began), seed));
            if let Some(violation) = &outcome.violation {
                bar.suspend(|| eprintln!("seed {seed}: {}", first_line(violation)));
            }
            tally.add(seed, outcome);
            bar.inc(1);
        }
        (tally, times)
    };
    let (mut tally, mut times) = (Tally::default(), Times::new());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Ok((more, took)) = worker.join() {
                tally.merge(more);
                times.extend(took);
            }
        }
    });
    bar.finish_and_clear();
    (tally, times)
}

/// Reports where a panic was.
fn with_place(mut outcome: Outcome) -> Outcome {
    let panic = outcome.violation.as_mut().filter(|found| found.invariant == Invariant::Panic);
    if let (Some(violation), Some(place)) = (panic, PANICKED_AT.take()) {
        violation.text = format!("{} at {place}", violation.text);
    }
    outcome
}

fn processor_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map_or(Duration::ZERO, Duration::from)
}

fn progress_bar(seeds: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(seeds);
    let template = "{bar:24} {pos}/{len} seeds, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

// ---- failures ---------------------------------------------------------------------------------

/// A failure that was shrunk.
struct Small {
    seed: u64,
    shrunk: Shrunk,
}

/// Shrinks the first failures of each kind.
fn shrink_failures(tally: &Tally, alone: Option<&Scenario>, stop: &AtomicBool) -> Vec<Small> {
    let mut kinds: Vec<Invariant> = Vec::new();
    let mut small = Vec::new();
    for failure in &tally.failures {
        let kind = failure.violation.invariant;
        if kinds.contains(&kind) || small.len() == SHRUNK_MAX {
            continue;
        }
        kinds.push(kind);
        let scenario = alone.cloned().unwrap_or_else(|| Scenario::draw(failure.seed));
        let stopped = || stop.load(Ordering::Relaxed);
        let shrunk = corridor_torture::shrink(&scenario, kind, SHRINK_RUNS_MAX, stopped);
        small.push(Small { seed: failure.seed, shrunk });
    }
    small
}

fn first_line(violation: &Violation) -> String {
    violation.to_string().lines().next().unwrap_or_default().to_owned()
}

fn replay_of_scenario(scenario: &Scenario) -> String {
    // It contains no quote that a shell would interpret.
    let text = serde_json::to_string(scenario).unwrap_or_default();
    format!("corridor sim torture --scenario '{text}' -v")
}

// ---- results ----------------------------------------------------------------------------------

/// Processor times at these shares of the seeds, in ascending order.
fn quantiles(times: &mut Times) -> [(&'static str, f64); 5] {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (share * times.len().saturating_sub(1) as f64).round() as usize;
        times.get(index).map_or(0.0, |(time, _)| time.as_secs_f64())
    };
    let sum: f64 = times.iter().map(|(time, _)| time.as_secs_f64()).sum();
    let mean = sum / times.len().max(1) as f64;
    [("mean", mean), ("p50", at(0.5)), ("p90", at(0.9)), ("p99", at(0.99)), ("max", at(1.0))]
}

struct Results {
    tally: Tally,
    small: Vec<Small>,
    /// The scenario given on the command line, if any.
    given: Option<Scenario>,
    took: Duration,
    jobs: usize,
}

impl Results {
    /// The command that repeats a failed seed, or the given scenario.
    fn replay(&self, seed: u64) -> String {
        let of_seed = || format!("corridor sim torture --seed {seed} -v");
        self.given.as_ref().map_or_else(of_seed, replay_of_scenario)
    }

    fn write_json(&self, mut times: Times) -> io::Result<()> {
        let quantiles = quantiles(&mut times);
        let per_seed: serde_json::Map<String, Value> =
            quantiles.iter().map(|(name, time)| (format!("{name}_s"), json!(time))).collect();
        let replay =
            |failure: &Failure| json!({"seed": failure.seed, "replay": self.replay(failure.seed)});
        let small = |small: &Small| {
            json!({
                "seed": small.seed,
                "scenario": small.shrunk.scenario,
                "runs": small.shrunk.runs,
                "replay": replay_of_scenario(&small.shrunk.scenario),
            })
        };
        let results = json!({
            // These are the same on every machine and with any number of jobs.
            "result": self.tally,
            "replays": self.tally.failures.iter().map(replay).collect::<Vec<_>>(),
            "shrunk": self.small.iter().map(small).collect::<Vec<_>>(),
            "time": {
                "wall_s": self.took.as_secs_f64(),
                "jobs": self.jobs,
                "seed_cpu": per_seed,
                "slowest_seed": times.last().map(|(_, seed)| seed),
            },
        });
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &results)?;
        writeln!(out)
    }

    fn write_text(&self, mut times: Times) -> io::Result<()> {
        let (tally, quantiles) = (&self.tally, quantiles(&mut times));
        let mut out = io::stdout().lock();
        for failure in &tally.failures {
            writeln!(out, "seed {}: {}", failure.seed, failure.violation)?;
            writeln!(out, "  replay: {}", self.replay(failure.seed))?;
            if let Some(small) = self.small.iter().find(|small| small.seed == failure.seed) {
                writeln!(out, "  shrunk in {} runs to:", small.shrunk.runs)?;
                writeln!(out, "  {}", replay_of_scenario(&small.shrunk.scenario))?;
            }
        }
        writeln!(out, "{:32} {:>9} {:>13}", "touched", "seeds", "in all")?;
        for &feature in Feature::ALL {
            let (seeds, total) = (tally.coverage.seeds(feature), tally.coverage.total(feature));
            writeln!(out, "{:32} {seeds:>9} {total:>13}", feature.key().replace('_', " "))?;
        }
        let [mean, p50, p90, p99, max] = quantiles.map(|(_, time)| 1e3 * time);
        let slowest = times.last().map_or(0, |(_, seed)| *seed);
        writeln!(
            out,
            "processor time per seed, ms: mean {mean:.2}, median {p50:.2}, 90 % {p90:.2}, 99 % \
             {p99:.2}, most {max:.1} (seed {slowest})"
        )?;
        writeln!(
            out,
            "{} seeds, {} failed, {} events, {:.0} s simulated in {:.1} s, jobs {}",
            tally.seeds,
            tally.failed,
            tally.events,
            tally.simulated_ns as f64 / 1e9,
            self.took.as_secs_f64(),
            self.jobs,
        )
    }
}
