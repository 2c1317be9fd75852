//! `corridor sim run`: all replications of a plan's points, on all processors.
//!
//! Threads take replications from one schedule and send back what they measured; this thread
//! writes it down. What is left at the end does not depend on who finished first.

use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use corridor_results::{
    Finished, Journal, PARQUET, PointKey, Provenance, Results, ResultsError, Schedule, TableWriter,
    Task, read_parquet, summarise, write_parquet,
};
use corridor_scenario::{Measures, Plan, Replication, TableKind};

use super::Failure;
use super::progress::RunProgress;
use super::table;
use crate::engine::stop_on_signals;
use crate::exit;

/// Most threads.
const JOBS_MAX: usize = 1_024;
/// How often the disk is asked to have what is written: as much is lost when the power fails.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// How often somebody is looked for who wants an end.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long replications under way are waited for at an interruption.
const PATIENCE: Duration = Duration::from_secs(2);
/// Files in the directory of results.
pub const RESULTS_FILE: &str = "results.parquet";
pub const JOURNAL_FILE: &str = "journal.jsonl";
pub const PLAN_FILE: &str = "plan.toml";

/// The file of a long table in a directory of results.
pub fn table_file(kind: TableKind) -> String {
    format!("{}.parquet", kind.name())
}

/// Runs a plan in virtual time.
///
/// A plan is a TOML file: a radio with runs (as `corridor lab run` takes it), or a network of links
/// with flows; sweeps over any of its values; how often every point is run. The same plan gives the
/// same results, byte for byte, on any machine and any number of jobs.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// The plan, or a scenario
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Run so many replications at once [default: as many as there are processors]
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Leave results in this directory: results.parquet, plan.toml, and a journal of what is done;
    /// what is there already is not run again (takes a build with the feature `parquet`)
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a row for each replication to standard output, as JSON lines, instead of a table
    #[arg(long)]
    json: bool,
    /// Run only the point at this place in the plan, from 0; may be given more than once
    #[arg(long, value_name = "POINT")]
    only: Vec<usize>,
    /// Run one of N parts of the plan, I from 1 to N; `corridor results merge` puts them together
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Run every point so often, whatever the plan says
    #[arg(long, value_name = "N")]
    replications: Option<u64>,
    /// Run everything again, whatever is there; take a directory that has another plan's results
    #[arg(long)]
    force: bool,
}

/// Which part of a plan, of how many.
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
    /// Every so many-th point, with those that a stop rule compares with it: neighbours in a sweep
    /// take about as long as each other.
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
        parsed.ok_or_else(|| "expected I/N, as 2/8: the second of eight parts".to_owned())
    }
}

const EXAMPLES: &str = "\
Examples:
  corridor sim run experiments/kim-table1/plan-tcp.toml
      Run all points on all processors, and print means with 95 % confidence intervals.

  corridor sim run experiments/kim-table1/plan-tcp.toml --out out/kim
      The same, and leave out/kim/results.parquet, one row for each replication. Press Ctrl-C at
      any time; the same command goes on where it was.

  corridor sim run experiments/kim-table1/plan-tcp.toml --only 3 --replications 5 --json
      Run one point five times, and print its rows.

  corridor sim run experiments/kim-table1/plan-tcp.toml --shard 2/8 --out out/part2
      Run the second of eight parts, as a job of a batch system;
      `corridor results merge out/part* --out out/kim` puts them together.

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
  [[sweep]]                          # lists of one table go side by side, tables are crossed
  network.links.erasure_ratio = [0, 0.005, 0.015]";

/// Runs `corridor sim run`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = read_plan(arguments)?;
    let points = points(arguments, &plan)?;
    let jobs = jobs(arguments)?;
    let keys: Vec<PointKey> =
        plan.points.iter().map(|p| PointKey::new(p, corridor_sim::CODE_VERSION)).collect();
    let mut out = match &arguments.out {
        Some(directory) => Some(Out::open(directory, &plan, arguments.force)?),
        None => None,
    };
    let known = |task: Task| {
        let journal = &out.as_ref().filter(|_| !arguments.force)?.journal;
        journal.row(&keys[task.point].replication(task.replication)).cloned()
    };
    let schedule = Schedule::new(&plan, &points, known);
    let plan = Arc::new(plan);
    let mut work = Work { plan: &plan, keys: &keys, out: out.as_mut() };
    let (schedule, ending) = work.run(schedule, jobs)?;
    let results = results(&plan, &schedule);
    if let Some(out) = &out {
        out.finish(&plan, &keys, &schedule, points.len() < plan.points.len())?;
    }
    if ending == Ending::Interrupted {
        let how = match &arguments.out {
            Some(directory) => {
                format!("the same command goes on from {}", directory.display())
            }
            None => "--out DIR would keep them".to_owned(),
        };
        return Err(Failure::Interrupted {
            done: schedule.done(),
            expected: schedule.expected(),
            how,
        });
    }
    for point in schedule.given_up() {
        let title = plan.points[point].title();
        eprintln!("point {point} ({title}): the stop rule gave up: it is not known so well");
    }
    print(arguments, &results)
}

fn read_plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let mut plan = Plan::read(&arguments.plan)?;
    exit::warn(&plan.warnings);
    if let Some(count) = arguments.replications {
        plan = plan.with_replications(count)?;
    }
    match corridor_sim::check_plan(&plan) {
        Ok(()) => Ok(plan),
        Err((point, source)) => {
            let title = plan.points[point].title().to_owned();
            Err(Failure::Point { point, title, source })
        }
    }
}

/// The points that are to be run, in order, each once.
fn points(arguments: &Arguments, plan: &Plan) -> Result<Vec<usize>, Failure> {
    let max = plan.points.len() - 1;
    if let Some(&given) = arguments.only.iter().find(|&&point| point > max) {
        return Err(Failure::Only { given, max });
    }
    let shard = arguments.shard.unwrap_or_default();
    let only = &arguments.only;
    let is_only = |point: &usize| {
        // What a stop rule compares a point with is run with it.
        let compared = || only.iter().any(|&other| plan.base(other) == Some(*point));
        only.is_empty() || only.contains(point) || compared()
    };
    let points: Vec<usize> = shard.points(plan).filter(is_only).collect();
    if points.is_empty() {
        let (part, parts) = (shard.index + 1, shard.count);
        eprintln!("no point of this plan is in part {part} of {parts}");
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

/// Rows of these points, by point and replication.
fn results(plan: &Plan, schedule: &Schedule) -> Results {
    let rows = schedule.rows();
    let records = rows.map(|(task, measures)| plan.record(task.point, task.replication, measures));
    Results::new(plan, records.collect(), &provenance(schedule.complete_points()))
}

fn provenance(complete_points: usize) -> Provenance {
    Provenance {
        commit: corridor_sim::COMMIT.to_owned(),
        code_version: corridor_sim::CODE_VERSION.to_owned(),
        complete_points,
    }
}

fn print(arguments: &Arguments, results: &Results) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    if arguments.json {
        return table::write_rows(&mut stdout, results).map_err(Failure::Output);
    }
    if let Some(directory) = &arguments.out {
        let (rows, path) = (results.records.len(), directory.join(RESULTS_FILE));
        eprintln!("{rows} rows are in {}", path.display());
        eprintln!("corridor sim show {}", directory.display());
        return Ok(());
    }
    let summary = summarise(results, &[], &[])?;
    table::write(&mut stdout, &summary, results).map_err(Failure::Output)
}

/// How the work ended, where nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Complete,
    Interrupted,
}

/// What a thread sends back.
type Message = Result<(Task, Replication), Failure>;

/// A plan being run.
struct Work<'a> {
    plan: &'a Arc<Plan>,
    keys: &'a [PointKey],
    out: Option<&'a mut Out>,
}

impl Work<'_> {
    /// Runs what the schedule asks for.
    fn run(&mut self, schedule: Schedule, jobs: usize) -> Result<(Schedule, Ending), Failure> {
        let stop = stop_on_signals();
        let shared = Arc::new(Mutex::new(schedule));
        let halt = Arc::new(AtomicBool::new(false));
        // Each thread waits for its results to be taken in before it asks for more, so that the
        // schedule knows all that it can know.
        let (sender, receiver) = mpsc::sync_channel::<(Message, Sender<()>)>(jobs);
        let threads = self.threads_needed(&shared, jobs);
        for _ in 0..threads {
            let (plan, shared) = (Arc::clone(self.plan), Arc::clone(&shared));
            let (halt, sender) = (Arc::clone(&halt), sender.clone());
            thread::spawn(move || work(&plan, &shared, &halt, &sender));
        }
        drop(sender);
        let ending = self.collect(&receiver, &shared, &stop, threads);
        halt.store(true, Ordering::Relaxed);
        if matches!(ending, Ok(Ending::Interrupted)) {
            self.collect_late(&receiver, &shared)?;
        }
        if let Some(out) = &self.out {
            out.journal.sync()?;
        }
        let ending = ending?;
        // Threads that are in the middle of a long replication keep their share of it.
        let schedule = core::mem::replace(
            &mut *shared.lock().unwrap_or_else(PoisonError::into_inner),
            Schedule::new(self.plan, &[], |_| None),
        );
        Ok((schedule, ending))
    }

    fn threads_needed(&self, shared: &Mutex<Schedule>, jobs: usize) -> usize {
        let schedule = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if schedule.is_complete() { 0 } else { jobs }
    }

    fn collect(
        &mut self,
        receiver: &Receiver<(Message, Sender<()>)>,
        shared: &Mutex<Schedule>,
        stop: &AtomicBool,
        threads: usize,
    ) -> Result<Ending, Failure> {
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let mut progress = RunProgress::new(&lock(), threads);
        let mut synced = Instant::now();
        loop {
            if lock().is_complete() {
                return Ok(Ending::Complete);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Ending::Interrupted);
            }
            match receiver.recv_timeout(LOOK_INTERVAL) {
                Ok((message, taken)) => {
                    let (task, replication) = message?;
                    self.keep(task, &replication)?;
                    let mut schedule = lock();
                    schedule.finish(Finished { task, measures: replication.measures });
                    progress.advance(&schedule);
                    drop(schedule);
                    // Nobody waits any more after an end.
                    taken.send(()).unwrap_or_default();
                }
                Err(RecvTimeoutError::Timeout) => {}
                // All threads have ended: there was nothing left to give out.
                Err(RecvTimeoutError::Disconnected) => return Ok(Ending::Complete),
            }
            if synced.elapsed() >= SYNC_INTERVAL
                && let Some(out) = &self.out
            {
                out.journal.sync()?;
                synced = Instant::now();
            }
        }
    }

    /// Takes in what is nearly done.
    fn collect_late(
        &mut self,
        receiver: &Receiver<(Message, Sender<()>)>,
        shared: &Mutex<Schedule>,
    ) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        while let Some(left) = until.checked_duration_since(Instant::now())
            && let Ok((message, taken)) = receiver.recv_timeout(left)
        {
            if let Ok((task, replication)) = message {
                self.keep(task, &replication)?;
                let finished = Finished { task, measures: replication.measures };
                shared.lock().unwrap_or_else(PoisonError::into_inner).finish(finished);
            }
            taken.send(()).unwrap_or_default();
        }
        Ok(())
    }

    fn keep(&mut self, task: Task, found: &Replication) -> Result<(), Failure> {
        if let Some(out) = &mut self.out {
            let Task { point, replication } = task;
            let key = self.keys[point].replication(replication);
            out.journal.append(key, (point, replication), found)?;
        }
        Ok(())
    }
}

/// What a thread does: one replication after the other.
fn work(
    plan: &Plan,
    schedule: &Mutex<Schedule>,
    halt: &AtomicBool,
    sender: &mpsc::SyncSender<(Message, Sender<()>)>,
) {
    let lock = || schedule.lock().unwrap_or_else(PoisonError::into_inner);
    while !halt.load(Ordering::Relaxed) {
        let task = lock().next_task();
        let Some(task) = task else {
            if lock().is_complete() {
                return;
            }
            // What comes next depends on what others are at.
            thread::sleep(LOOK_INTERVAL / 10);
            continue;
        };
        let message = replicate(plan, task);
        let failed = message.is_err();
        let (taken, wait) = mpsc::channel();
        if sender.send((message, taken)).is_err() || failed || wait.recv().is_err() {
            return;
        }
    }
}

/// One replication; a breakdown of the simulator is an error of this replication.
fn replicate(plan: &Plan, task: Task) -> Message {
    let point = &plan.points[task.point];
    let title = || point.title().to_owned();
    let run = || corridor_sim::run(point, task.replication);
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(replication)) => Ok((task, replication)),
        Ok(Err(source)) => Err(Failure::Point { point: task.point, title: title(), source }),
        Err(payload) => {
            let said = payload.downcast_ref::<String>().cloned();
            let said = said.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(Failure::Panic {
                point: task.point,
                title: title(),
                replication: task.replication,
                said: said.unwrap_or_default(),
            })
        }
    }
}

/// A directory of results.
struct Out {
    directory: PathBuf,
    journal: Journal,
}

impl Out {
    /// Opens the directory, and finds out now what cannot be written.
    fn open(directory: &Path, plan: &Plan, force: bool) -> Result<Self, Failure> {
        if !PARQUET {
            let path = directory.join(RESULTS_FILE);
            return Err(ResultsError::NoParquet { verb: "write", path }.into());
        }
        if fs::metadata(directory).is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(Failure::OutIsFile { path: directory.into() });
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Failure::Write { path, source }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let results = directory.join(RESULTS_FILE);
        if results.exists() && !force {
            let found = read_parquet(&results)?;
            let found = found.metadata("plan_name").unwrap_or_default().to_owned();
            if found != plan.name {
                let (path, given) = (results, plan.name.clone());
                return Err(Failure::OtherPlan { path, given, found });
            }
        }
        let path = directory.join(JOURNAL_FILE);
        // Opened first: a run that is writing it is not disturbed.
        let journal = Journal::open(&path)?;
        if journal.spoilt() > 0 {
            eprintln!(
                "{}: {} lines cannot be read, and are run again",
                path.display(),
                journal.spoilt()
            );
        }
        let copy = directory.join(PLAN_FILE);
        fs::write(&copy, &plan.text).map_err(failed(&copy))?;
        Ok(Out { directory: directory.into(), journal })
    }

    /// Writes the results: of all points, also when only some of them were to be run.
    fn finish(
        &self,
        plan: &Plan,
        keys: &[PointKey],
        schedule: &Schedule,
        partial: bool,
    ) -> Result<(), Failure> {
        if !partial {
            return self.write(plan, keys, schedule);
        }
        let known = |task: Task| -> Option<Measures> {
            self.journal.row(&keys[task.point].replication(task.replication)).cloned()
        };
        let all: Vec<usize> = (0..plan.points.len()).collect();
        self.write(plan, keys, &Schedule::new(plan, &all, known))
    }

    /// Writes what a schedule has: the records, and the long tables that the plan keeps.
    fn write(&self, plan: &Plan, keys: &[PointKey], schedule: &Schedule) -> Result<(), Failure> {
        let results = results(plan, schedule);
        write_parquet(&self.directory.join(RESULTS_FILE), &results)?;
        let kept = plan.tables();
        let mut writers = Vec::new();
        for kind in TableKind::ALL {
            let path = self.directory.join(table_file(kind));
            if kept.contains(&kind) {
                writers.push((kind, TableWriter::create(&path, kind, &results.metadata)?));
            } else if path.exists() {
                // Of an earlier plan: it does not belong to these results.
                fs::remove_file(&path).map_err(|source| Failure::Write { path, source })?;
            }
        }
        if writers.is_empty() {
            return Ok(());
        }
        for (Task { point, replication }, _) in schedule.rows() {
            let tables = self.journal.tables(&keys[point].replication(replication))?;
            for (kind, writer) in &mut writers {
                if let Some(rows) = tables.rows(*kind) {
                    writer.write((point, replication), rows)?;
                }
            }
        }
        Ok(writers.into_iter().try_for_each(|(_, writer)| writer.finish())?)
    }
}
