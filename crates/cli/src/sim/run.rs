//! `corridor sim run`: all replications of a plan's points, on all processors.
//!
//! `corridor_results::Campaign` has the loop; this module has the arguments, and what people see.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use clap::Args;
use corridor_results::{
    Campaign, CampaignError, Ending, Engine, RESULTS_FILE, Results, Task, summarise,
};
use corridor_scenario::{Plan, Replication};
use corridor_sim::{CODE_VERSION, COMMIT, Runner, SimError};

use super::Failure;
use super::progress::RunProgress;
use super::table;
use crate::engine::stop_on_signals;
use crate::exit;

/// Maximum number of threads.
const JOBS_MAX: usize = 1_024;

/// Run a plan in virtual time.
///
/// A plan is a TOML file with a radio and runs (as for `corridor lab run`) or a network of links
/// and flows, sweeps over any of its values, and the number of replications per point. The same
/// plan gives byte-identical results on any machine and with any number of jobs.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Plan or scenario
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Run at most N replications in parallel [default: number of processors]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Write results to this directory: results.parquet, plan.toml and a journal; replications
    /// already in it are skipped (requires the build feature `parquet`)
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write one row per replication to standard output as JSON lines, instead of a table
    #[arg(long)]
    json: bool,
    /// Run only the point with this index in the plan, from 0; may be repeated
    #[arg(long, value_name = "POINT")]
    only: Vec<usize>,
    /// Run shard I of N of the plan, I from 1 to N; combine them with `corridor results merge`
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Run every point N times, overriding the plan
    #[arg(long, value_name = "N")]
    replications: Option<u64>,
    /// Discard results already in the directory, even of another plan, and run everything again
    #[arg(long)]
    force: bool,
}

/// A shard of a plan: its index, and the number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    /// From 0.
    index: usize,
    count: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Shard { index: 0, count: 1 }
    }
}

impl Shard {
    /// Every n-th point, with those that a stop rule compares with it: neighbours in a sweep take
    /// about as long as each other.
    fn points(self, plan: &Plan) -> impl Iterator<Item = usize> {
        let all = 0..plan.points.len();
        let firsts: Vec<usize> = all.clone().filter(|&at| plan.base(at).is_none()).collect();
        all.filter(move |&point| {
            let first = plan.base(point).unwrap_or(point);
            firsts.partition_point(|&other| other < first) % self.count == self.index
        })
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let parsed = given.split_once('/').and_then(|(index, count)| {
            let (index, count): (usize, usize) = (index.parse().ok()?, count.parse().ok()?);
            (1..=count).contains(&index).then(|| Shard { index: index - 1, count })
        });
        parsed.ok_or_else(|| "expected I/N, such as 2/8 for the second of eight shards".to_owned())
    }
}

const EXAMPLES: &str = "\
Examples:
  corridor sim run experiments/kim-table1/plan-tcp.toml
      Run all points on all processors and print means with 95 % confidence intervals.

  corridor sim run experiments/kim-table1/plan-tcp.toml --out out/kim
      The same, but write out/kim/results.parquet, one row per replication. Interrupt with Ctrl-C
      at any time; run the same command again to resume.

  corridor sim run experiments/kim-table1/plan-tcp.toml --only 3 --replications 5 --json
      Run one point five times and print its rows.

  corridor sim run experiments/kim-table1/plan-tcp.toml --shard 2/8 --out out/part2
      Run the second of eight shards, for example as a batch job;
      `corridor results merge out/part* --out out/kim` merges them.

A plan:
  name = \"kim\"
  seed = 2012
  duration_s = 1000
  replications = 100                 # or [stop] metric = \"goodput_bps\", ci95_ratio = 0.05
  [network]
  kind = \"chain\"                     # or \"dumbbell\", \"explicit\"
  links = { count = 4, rate_bps = 2_000_000, delay_ms = 100, queue_packets = 200 }
  [[flow]]
  from = 0
  to = 4
  source = { kind = \"ftp\" }          # or \"fixed\", \"rate\", \"cbr\"
  tcp = { preset = \"ns2\", variant = \"reno\", window_packets_max = 50 }
  [[sweep]]                          # lists in one table advance together; tables are crossed
  network.links.erasure_ratio = [0, 0.005, 0.015]";

/// Runs `corridor sim run`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let simulator = Arc::new(Simulator::default());
    let plan = Arc::new(read_plan(arguments, &simulator.0)?);
    let points = points(arguments, &plan)?;
    let jobs = jobs(arguments)?;
    let open = |directory: &PathBuf| crate::results::open(directory, &plan, arguments.force);
    let from = (arguments.out.as_ref().map(open).transpose()?, arguments.force);
    let mut campaign = Campaign::new(Arc::clone(&plan), &points, CODE_VERSION, from);
    let ending = make(&mut campaign, &simulator, jobs)?;
    campaign.write(COMMIT, CODE_VERSION)?;
    let schedule = campaign.schedule();
    if ending == Ending::Interrupted {
        let how = match &arguments.out {
            Some(directory) => {
                format!("results are in {}, run again to resume", directory.display())
            }
            None => "use --out DIR to keep partial results".to_owned(),
        };
        return Err(Failure::Interrupted {
            done: schedule.done(),
            expected: schedule.expected(),
            how,
        });
    }
    for point in schedule.given_up() {
        let title = plan.points[point].title();
        eprintln!("point {point} ({title}): replication limit reached before the target precision");
    }
    print(arguments, &campaign.results(COMMIT, CODE_VERSION))
}

/// Makes missing replications until there are none, or the user asks to stop.
fn make(
    campaign: &mut Campaign,
    simulator: &Arc<Simulator>,
    jobs: usize,
) -> Result<Ending, Failure> {
    let stop = stop_on_signals();
    let plan = Arc::clone(campaign.plan());
    let threads = if campaign.schedule().is_complete() { 0 } else { jobs };
    let mut progress = RunProgress::new(campaign.schedule(), threads);
    let ending = campaign.run(simulator, jobs, |campaign| {
        progress.advance(campaign.schedule());
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let title = |point: usize| plan.points[point].title().to_owned();
    ending.map_err(|error| match error {
        CampaignError::Engine { task: Task { point, .. }, source } => {
            Failure::Point { point, title: title(point), source }
        }
        CampaignError::Panic { task: Task { point, replication }, said } => {
            Failure::Panic { point, title: title(point), replication, said }
        }
        CampaignError::Results(error) => error.into(),
    })
}

/// Makes replications in virtual time.
#[derive(Default)]
struct Simulator(Runner);

impl Engine for Simulator {
    type Error = SimError;

    fn make(&self, plan: &Plan, task: Task) -> Result<Replication, SimError> {
        self.0.run(&plan.points[task.point], task.replication)
    }
}

fn read_plan(arguments: &Arguments, runner: &Runner) -> Result<Plan, Failure> {
    let mut plan = Plan::read(&arguments.plan)?;
    exit::warn(&plan.warnings);
    if let Some(count) = arguments.replications {
        plan = plan.with_replications(count)?;
    }
    match runner.check(&plan) {
        Ok(()) => Ok(plan),
        Err((point, source)) => {
            let title = plan.points[point].title().to_owned();
            Err(match source.value() {
                Some(error) => {
                    let source = plan.locate(&arguments.plan, error);
                    Failure::Value { point, title, source }
                }
                None => Failure::Point { point, title, source },
            })
        }
    }
}

/// The points to run, in order, each once.
fn points(arguments: &Arguments, plan: &Plan) -> Result<Vec<usize>, Failure> {
    let max = plan.points.len() - 1;
    if let Some(&given) = arguments.only.iter().find(|&&point| point > max) {
        return Err(Failure::Only { given, max });
    }
    let shard = arguments.shard.unwrap_or_default();
    let only = &arguments.only;
    let is_only = |point: &usize| {
        // Points that a stop rule compares are run together.
        let compared = || only.iter().any(|&other| plan.base(other) == Some(*point));
        only.is_empty() || only.contains(point) || compared()
    };
    let points: Vec<usize> = shard.points(plan).filter(is_only).collect();
    if points.is_empty() {
        let (part, parts) = (shard.index + 1, shard.count);
        eprintln!("shard {part}/{parts} of this plan has no points");
    }
    Ok(points)
}

fn jobs(arguments: &Arguments) -> Result<usize, Failure> {
    match arguments.jobs {
        Some(given) if !(1..=JOBS_MAX).contains(&given) => {
            Err(Failure::Jobs { given, max: JOBS_MAX })
        }
        Some(jobs) => Ok(jobs),
        None => Ok(thread::available_parallelism().map_or(1, usize::from).min(JOBS_MAX)),
    }
}

fn print(arguments: &Arguments, results: &Results) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    if arguments.json {
        return table::write_rows(&mut stdout, results).map_err(Failure::Output);
    }
    if let Some(directory) = &arguments.out {
        let (rows, path) = (results.records.len(), directory.join(RESULTS_FILE));
        eprintln!("wrote {rows} rows to {}", path.display());
        eprintln!("corridor sim show {}", directory.display());
        return Ok(());
    }
    let summary = summarise(results, &[], &[])?;
    table::write(&mut stdout, &summary, results).map_err(Failure::Output)
}
