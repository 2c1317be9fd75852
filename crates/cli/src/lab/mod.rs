//! `corridor lab`: run a scenario in real time, through the kernel's own TCP and UDP.
//!
//! Rows go to standard output (a table, or JSON lines) and to a file; progress and errors go to
//! standard error.

mod compare;
mod gates;
mod network;
mod out;
mod runs;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use corridor_lab::LabError;
use corridor_results::{Campaign, ResultsError};
use corridor_scenario::{Engine, Plan, ScenarioError, read_file};
use serde::Serialize;

use crate::engine::EngineError;
use crate::exit::{self, Exit};

/// Runs that may fail in a row before the rest is not tried.
const FAILED_IN_A_ROW_MAX: usize = 2;

/// Arguments of `corridor lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Debug, Subcommand)]
enum LabVerb {
    /// Run a scenario with kernel sockets in network namespaces over an emulated radio
    Run(RunArgs),
    /// Compare kernel TCP, both coding modes and other tunnels on the same scenario, in turn
    Compare(compare::CompareArgs),
    /// Check window mode and TCP/NC against performance targets; takes 45 minutes, or use --quick
    Gates(gates::GatesArgs),
}

/// Arguments of `corridor lab run`.
#[derive(Debug, Args)]
struct RunArgs {
    /// Plan, as for `corridor sim run`: runs on a radio or a line, or a network of radios or links,
    /// with a namespace per node and kernel sockets for the flows
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Also simulate each replication, and show both results
    #[arg(long)]
    beside_sim: bool,
    /// Write one row per run to standard output as JSON lines, instead of a table at the end
    #[arg(long)]
    json: bool,
    /// Also write the rows to this file as JSON lines, updated after every run
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write results to this directory, as `corridor sim run --out` does, skipping runs already in
    /// it (requires the build feature `parquet`)
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    results: Option<PathBuf>,
    /// Make only the run with this index in the scenario, from 0, with its repeats
    #[arg(long, value_name = "INDEX")]
    only: Option<usize>,
    /// Repeat every run N times, overriding the scenario
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Make at most N runs in parallel [default: two per processor at first, then as many as their
    /// measured CPU time allows]. Runs that fell behind real time are repeated alone; runs that
    /// measure CPU-bound throughput always run alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Check the quality of the runs (none failed, none invalid, the medium on time), write the
    /// checks to this file as JSON, and exit with an error if one fails
    #[arg(long, value_name = "FILE")]
    checks: Option<PathBuf>,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("--only {given}: expected 0 to {max}, an index of a run in this scenario")]
    Only { given: usize, max: usize },
    #[error("{given}: expected {expected}")]
    Argument { given: String, expected: &'static str },
    #[error("--only {given}: expected part of a contender's name, such as \"window\"")]
    Nobody { given: String },
    #[error("{}: cannot resume: {field} = {given}: expected {expected}", path.display())]
    Settings { path: PathBuf, field: String, given: String, expected: String },
    #[error("{}: {source}", path.display())]
    Report { path: PathBuf, source: serde_json::Error },
    #[error("cannot measure against {}: {source}", path.display())]
    Old { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("{title} [{replication}]: {notes}; completed runs are kept, run again to resume")]
    Spoilt { title: String, replication: u64, notes: String },
    #[error("{doubtful} of {count} runs are invalid; the others are kept, run again to resume")]
    Doubtful { doubtful: usize, count: usize },
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("{failed} of {count} runs failed")]
    Runs { failed: usize, count: usize },
    #[error("{broken} of {count} checks failed")]
    Checks { broken: usize, count: usize },
}

impl Failure {
    fn exit(&self) -> Exit {
        match self {
            Failure::Scenario(error) => error.into(),
            Failure::Only { .. }
            | Failure::Argument { .. }
            | Failure::Nobody { .. }
            | Failure::Settings { .. }
            | Failure::Report { .. }
            | Failure::Results(
                ResultsError::NoParquet { .. }
                | ResultsError::NoDirectory { .. }
                | ResultsError::OtherPlan { .. },
            ) => Exit::Usage,
            Failure::Engine(error) => error.exit(),
            _ => Exit::Failure,
        }
    }

    /// The message that is printed.
    fn rendered(&self) -> String {
        match self {
            Failure::Scenario(error) => exit::rendered(error),
            other => format!("error: {other}"),
        }
    }
}

/// Runs `corridor lab`. Call this before the process starts any thread: without root rights, the
/// process moves into a user namespace.
pub fn run(args: LabArgs) -> ExitCode {
    let result = match args.verb {
        LabVerb::Run(args) => run_scenario(&args),
        LabVerb::Compare(args) => compare::run(&args),
        LabVerb::Gates(args) => gates::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.rendered());
            failure.exit().into()
        }
    }
}

fn run_scenario(args: &RunArgs) -> Result<(), Failure> {
    let document = read_file(&args.scenario)?;
    let mut plan = Plan::read_for(Engine::Lab, &document, &args.scenario)?;
    exit::warn(&plan.warnings);
    if let Some(repeats) = args.repeats {
        plan = plan.with_replications(repeats.into())?;
    }
    let max = plan.points.len() - 1;
    if let Some(given) = args.only.filter(|&given| given > max) {
        return Err(Failure::Only { given, max });
    }
    let is_only = |point: &usize| args.only.is_none_or(|only| only == *point);
    let points: Vec<usize> = (0..plan.points.len()).filter(is_only).collect();
    match Plan::has_network(document.text()) {
        true => network::run(args, plan, &points),
        false => runs::run(args, &document, plan, &points),
    }
}

/// Acquires the rights, once, and before the first thread: see `corridor_lab::prepare`.
fn prepare() -> Result<(), Failure> {
    corridor_lab::prepare().map_err(EngineError::from)?;
    tell_missing_rights();
    Ok(())
}

/// The replications of these points, without those that a results directory already has.
fn campaign(
    args: &RunArgs,
    plan: &Arc<Plan>,
    points: &[usize],
    version: &str,
) -> Result<Campaign, Failure> {
    let store = args.results.as_deref().map(|path| crate::results::open(path, plan, false));
    Ok(Campaign::new(Arc::clone(plan), points, version, (store.transpose()?, false)))
}

/// What results of the lab depend on besides their plan: this kernel; the code of radios, stations
/// and nodes; and the nodes' program, if it is another one.
fn version() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = format!("lab, Linux {}, {}", kernel.trim(), corridor_lab::CODE_VERSION);
    let Some(nodes) = corridor_lab::Options::other_binary() else { return version };
    let changed = fs::metadata(&nodes).and_then(|metadata| metadata.modified()).ok();
    let since = changed.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!("{version}, {} of {}", nodes.display(), since.unwrap_or_default().as_nanos())
}

/// Prints where the results are.
fn tell_results(args: &RunArgs) {
    if let Some(directory) = &args.results {
        eprintln!("corridor sim show {}", directory.display());
    }
}

/// Prints on standard error what keeps the lab from being in time on a busy machine.
fn tell_missing_rights() {
    for missing in corridor_lab::missing_rights() {
        eprintln!("warning: {missing}");
    }
}

/// Whether other runs may succeed nevertheless, so that hours of them are not lost.
fn is_one_run_only(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Lab(
            LabError::NodeEnded { .. } | LabError::NoTunnel { .. } | LabError::Tunnel { .. }
        )
    )
}

/// A row as a line.
fn json(row: &impl Serialize) -> String {
    // A structure of numbers, strings and lists can always be written as JSON.
    serde_json::to_string(row).unwrap_or_default()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}
