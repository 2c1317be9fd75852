//! `corridor lab`: run a scenario in real time, through the kernel's own TCP and UDP.
//!
//! Rows go to standard output (a table, or JSON lines) and to a file; progress and errors go to
//! standard error.

mod compare;
mod gates;
mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::{Args, Subcommand};
use corridor_lab::LabError;
use corridor_results::ResultsError;
use corridor_scenario::{
    Document, Engine, Plan, Row, Run, Scenario, ScenarioError, Transport, Wire, expand, read_file,
};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::crew::{Crew, Jobs};
use crate::engine::{EngineError, Maker};
use crate::exit::{self, Exit};
use crate::progress::Progress;
use corridor_results::checks::{self, Check};

/// Runs that may fail one after the other, before the rest is not tried.
const FAILED_IN_A_ROW_MAX: usize = 2;

/// Arguments of `corridor lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Debug, Subcommand)]
enum LabVerb {
    /// Run a scenario: kernel sockets in network namespaces, an emulated radio between them
    Run(RunArgs),
    /// Put kernel TCP, both coding modes and other tunnels through the same scenario, in turns
    Compare(compare::CompareArgs),
    /// Measure what window mode and TCP/NC promise, and say what holds; an hour, or --quick
    Gates(gates::GatesArgs),
}

/// Arguments of `corridor lab run`.
#[derive(Debug, Args)]
struct RunArgs {
    /// The scenario file, or a plan with a network of radios (as `corridor sim run` takes it): its
    /// nodes are namespaces then, and its flows the kernels' own
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Of a plan: simulate each replication too, and show both
    #[arg(long)]
    beside_sim: bool,
    /// Write a row for each run to standard output, as JSON lines, instead of a table at the end
    #[arg(long)]
    json: bool,
    /// Write the rows to this file too, as JSON lines; it is complete after every run
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Of a plan: leave results in this directory, as `corridor sim run --out` does; what is there
    /// already is not made again (takes a build with the feature `parquet`)
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    results: Option<PathBuf>,
    /// Make only the run at this place in the scenario, from 0, with its repeats
    #[arg(long, value_name = "INDEX")]
    only: Option<usize>,
    /// Repeat every run this often, whatever the scenario says
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Make so many runs at once; if not given, two for each processor at first, then as many as
    /// fit by the processor time that they took. What was late in company is made again alone; runs
    /// whose measure is what processors can do are made alone from the start
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Hold the runs against what makes them worth reading (none failed, none not valid, the medium
    /// in time), write these checks to this file as JSON, and fail if one does not hold
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
    #[error("--only {given}: expected 0 to {max}, the places of the runs in this scenario")]
    Only { given: usize, max: usize },
    #[error("{given}: expected {expected}")]
    Argument { given: String, expected: &'static str },
    #[error("--only {given}: expected a part of the name of a contender, as in \"window\"")]
    Nobody { given: String },
    #[error("{}: {field} = {given}: expected {expected}, as now, to go on from it", path.display())]
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
    #[error("{title} [{replication}]: {notes}; what is done is kept, the same command goes on")]
    Spoilt { title: String, replication: u64, notes: String },
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("{failed} of {count} runs failed")]
    Runs { failed: usize, count: usize },
    #[error("{broken} of {count} checks do not hold")]
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

    /// What is printed of it.
    fn rendered(&self) -> String {
        match self {
            Failure::Scenario(error) => exit::rendered(error),
            other => format!("error: {other}"),
        }
    }
}

/// Runs `corridor lab`. To be called before the process starts any thread: without root rights,
/// the process moves into a user namespace.
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
    if Plan::has_network(document.text()) {
        return network::run(args, &document);
    }
    if let Some(path) = &args.results {
        let (given, expected) =
            (format!("--results {}", path.display()), "a plan: scenarios have --out");
        return Err(Failure::Argument { given, expected });
    }
    if args.beside_sim {
        let expected = "a plan with a network: of a scenario, `corridor sim run` is the other half";
        return Err(Failure::Argument { given: "--beside-sim".to_owned(), expected });
    }
    let (scenario, runs) = read_scenario(args, &document)?;
    // Before the first thread: see `corridor_lab::prepare`.
    corridor_lab::prepare().map_err(EngineError::from)?;
    tell_missing_rights();
    let out = args.out.as_deref().map(OutFile::create).transpose()?;
    let maker = Maker::new(Engine::Lab)?;
    let possible = without_absent(&runs)?;
    let making = Making::new(args, &scenario, &possible, &maker, out.as_ref());
    let (rows, result) = making.make_all();
    // What is finished is shown even when the rest failed.
    if !args.json && !rows.is_empty() {
        write_table(&mut io::stdout().lock(), &rows).map_err(Failure::Output)?;
    }
    if let (Err(Failure::Engine(_)), Some(out), false) = (&result, &out, rows.is_empty()) {
        eprintln!("{} of {} runs are in {}", rows.len(), possible.len(), out.path.display());
    }
    let held = args.checks.as_ref().map_or(Ok(()), |path| hold(path, (&runs, &possible), &rows));
    result.and(held)
}

/// Says on standard error what keeps the lab from being in time on a busy machine.
fn tell_missing_rights() {
    for missing in corridor_lab::missing_rights() {
        eprintln!("warning: {missing}");
    }
}

/// Leaves out runs whose congestion control this kernel does not have, and says so on standard
/// error: the others are worth having. Where that leaves nothing, all of them failed.
fn without_absent(runs: &[Run]) -> Result<Vec<Run>, Failure> {
    let of = |run: &Run| [run.congestion, run.lab.beside].into_iter().flatten();
    let names: BTreeSet<String> = runs.iter().flat_map(of).map(|each| each.to_string()).collect();
    let mut absent = BTreeSet::new();
    for name in names {
        if !corridor_lab::has_congestion(&name).map_err(EngineError::from)? {
            absent.insert(name);
        }
    }
    let is_possible = |run: &&Run| !of(run).any(|each| absent.contains(&each.to_string()));
    let possible: Vec<Run> = runs.iter().filter(is_possible).cloned().collect();
    let (count, left_out) = (runs.len(), runs.len() - possible.len());
    if left_out > 0 {
        let names = Vec::from_iter(absent).join(", ");
        eprintln!(
            "absent: this kernel has no TCP congestion control {names} (try modprobe tcp_NAME): \
             {left_out} of {count} runs are left out"
        );
    }
    if possible.is_empty() {
        return Err(Failure::Runs { failed: left_out, count });
    }
    Ok(possible)
}

/// What makes rows worth reading.
fn checks_of(runs: &[Run], rows: &[Row]) -> Vec<Check> {
    let failed = runs.len() - rows.len();
    let doubtful = rows.iter().filter(|row| !row.valid).count();
    let late = rows.iter().filter_map(|row| row.lateness_p99_s).reduce(f64::max);
    let limit_ms = 1e3 * corridor_lab::LATENESS_MAX.as_secs_f64();
    vec![
        Check::at_most("runs that failed", Some(failed as f64), 0.0, "runs"),
        Check::at_most("runs that are not valid", Some(doubtful as f64), 0.0, "runs"),
        Check::at_most(
            "lateness of the medium, 99th percentile",
            late.map(|s| 1e3 * s),
            limit_ms,
            "ms",
        ),
    ]
}

fn hold(path: &Path, (all, possible): (&[Run], &[Run]), rows: &[Row]) -> Result<(), Failure> {
    let checks = checks_of(possible, rows);
    let left_out = all.len() - possible.len();
    let json = serde_json::json!({
        "runs": possible.len(), "runs_left_out": left_out, "checks": checks,
    });
    crate::demo::replace(path, &format!("{json:#}\n"))
        .map_err(|source| Failure::Write { path: path.to_owned(), source })?;
    match checks::broken(&checks) {
        0 => Ok(()),
        broken => Err(Failure::Checks { broken, count: checks.len() }),
    }
}

fn read_scenario(args: &RunArgs, document: &Document) -> Result<(Scenario, Vec<Run>), Failure> {
    let mut scenario = Scenario::read_beside(document, &args.scenario)?;
    exit::warn(&scenario.warnings(document));
    if let Some(repeats) = args.repeats {
        scenario.repeats = repeats;
    }
    let mut runs = expand(&scenario).map_err(|error| error.at(document))?;
    if let Some(given) = args.only {
        let max = runs.iter().map(|run| run.point).max().unwrap_or(0);
        runs.retain(|run| run.point == given);
        if runs.is_empty() {
            return Err(Failure::Only { given, max });
        }
    }
    Ok((scenario, runs))
}

/// A scenario's runs, being made side by side.
struct Making<'a> {
    args: &'a RunArgs,
    scenario: &'a Scenario,
    runs: &'a [Run],
    maker: &'a Maker,
    out: Option<&'a OutFile>,
    progress: Progress,
    state: Mutex<Made>,
}

/// What came of them.
#[derive(Default)]
struct Made {
    /// By their places.
    rows: BTreeMap<usize, Row>,
    /// Those that did not get their processors in time in company.
    again: Vec<usize>,
    failed: usize,
    failed_in_a_row: usize,
    /// Why it is no use to go on.
    failure: Option<Failure>,
}

impl<'a> Making<'a> {
    fn new(
        args: &'a RunArgs,
        scenario: &'a Scenario,
        runs: &'a [Run],
        maker: &'a Maker,
        out: Option<&'a OutFile>,
    ) -> Self {
        let progress = Progress::new(runs, |run| maker.time_needed(run));
        Making { args, scenario, runs, maker, out, progress, state: Mutex::default() }
    }

    /// Makes them all. Returns the rows in the order of the runs, and whether all went well.
    fn make_all(self) -> (Vec<Row>, Result<(), Failure>) {
        let is_alone = |&place: &usize| self.runs[place].lab.wire == Wire::Veth;
        let (mut alone, shared): (Vec<usize>, Vec<usize>) =
            (0..self.runs.len()).partition(is_alone);
        Crew::new(Jobs::of(self.args.jobs)).work(&shared, |place, alone| self.make(place, alone));
        alone.append(&mut self.state().again);
        Crew::new(Jobs::Fixed(1)).work(&alone, |place, _| self.make(place, true));
        let count = self.runs.len();
        let made = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = match (made.failure, made.failed) {
            (Some(failure), _) => Err(failure),
            (None, 0) => Ok(()),
            (None, failed) => Err(Failure::Runs { failed, count }),
        };
        (made.rows.into_values().collect(), result)
    }

    /// Makes a run, unless it is no use to go on. Returns the processors that it needed.
    fn make(&self, place: usize, is_alone: bool) -> Option<f64> {
        if self.state().failure.is_some() {
            return None;
        }
        let run = &self.runs[place];
        self.progress.begin(place, run);
        let made = self.maker.make(self.scenario, run);
        let needed = made.as_ref().ok().and_then(|row| row.processors);
        let mut state = self.state();
        match made {
            Ok(row) if !is_alone && corridor_lab::is_spoilt(&row) => {
                self.progress.put_off(place);
                let why = row.notes.join("; ");
                self.progress.say(&format!("{}: to be made again alone: {why}", run.title()));
                state.again.push(place);
            }
            Ok(row) => {
                state.failed_in_a_row = 0;
                self.progress.finish(place, run, &row);
                state.failure = self.tell(&mut state.rows, place, row).err();
            }
            Err(error)
                if is_one_run_only(&error) && state.failed_in_a_row < FAILED_IN_A_ROW_MAX =>
            {
                self.progress.fail(place, &run.title(), &error);
                state.failed += 1;
                state.failed_in_a_row += 1;
            }
            Err(error) => {
                state.failure.get_or_insert(error.into());
            }
        }
        needed
    }

    /// Writes what came of a run.
    fn tell(&self, rows: &mut BTreeMap<usize, Row>, place: usize, row: Row) -> Result<(), Failure> {
        if self.args.json {
            let mut stdout = io::stdout().lock();
            let line = json(&row) + "\n";
            stdout.write_all(line.as_bytes()).map_err(Failure::Output)?;
            stdout.flush().map_err(Failure::Output)?;
        }
        let newest = json(&row);
        rows.insert(place, row);
        self.out.map_or(Ok(()), |out| out.write(rows.values(), &newest))
    }

    fn state(&self) -> MutexGuard<'_, Made> {
        // A worker that panics ends all of it: its scope panics too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether other runs may go well all the same: hours of them are not to be lost for one.
fn is_one_run_only(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Lab(
            LabError::NodeEnded { .. } | LabError::NoTunnel { .. } | LabError::Tunnel { .. }
        )
    )
}

fn json(row: &impl Serialize) -> String {
    // A row is a structure of numbers, strings and lists: it always has a JSON text.
    serde_json::to_string(row).unwrap_or_default()
}

/// A file that always holds complete rows.
struct OutFile {
    path: PathBuf,
    /// A device or pipe cannot be replaced; it is written to as it is.
    is_special: bool,
}

impl OutFile {
    /// Finds out now, and not after an hour of runs, that it cannot be written.
    fn create(path: &Path) -> Result<Self, Failure> {
        let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let out = OutFile { path: path.to_owned(), is_special };
        if !is_special {
            out.temporary().map_err(|source| out.failed(source))?;
        }
        Ok(out)
    }

    /// Writes all rows; what cannot be replaced gets the newest one's text only.
    fn write<'a, T: Serialize + 'a>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        newest: &str,
    ) -> Result<(), Failure> {
        self.try_write(rows, newest).map_err(|source| self.failed(source))
    }

    fn try_write<'a, T: Serialize + 'a>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        newest: &str,
    ) -> io::Result<()> {
        if self.is_special {
            let line = format!("{newest}\n");
            return fs::OpenOptions::new().write(true).open(&self.path)?.write_all(line.as_bytes());
        }
        let mut file = self.temporary()?;
        for row in rows {
            file.write_all((json(row) + "\n").as_bytes())?;
        }
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    fn temporary(&self) -> io::Result<NamedTempFile> {
        use std::os::unix::fs::PermissionsExt;
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        tempfile::Builder::new()
            .prefix(".corridor-lab-")
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(directory.unwrap_or(Path::new(".")))
    }

    fn failed(&self, source: io::Error) -> Failure {
        Failure::Write { path: self.path.clone(), source }
    }
}

/// One line for each point of the scenario; with repeats, medians over the valid ones.
fn write_table(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut points: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        points.entry(row.point).or_default().push(row);
    }
    let head = [
        "path",
        "policy",
        "load",
        "e1/e2/e3 %",
        "runs",
        "Mbit/s",
        "p50 ms",
        "p95 ms",
        "lost %",
        "tx/block",
        "air B/B",
        "late ms",
        "",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    lines.extend(points.values().map(|rows| table_line(rows)));
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < 3 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn table_line(rows: &[&Row]) -> Vec<String> {
    let first = rows[0];
    let valid: Vec<_> = rows.iter().filter(|row| row.valid).copied().collect();
    let used = if valid.is_empty() { rows.to_vec() } else { valid.clone() };
    let cell = |decimals: usize, field: &dyn Fn(&Row) -> Option<f64>| {
        let value = median(used.iter().filter_map(|row| field(row)).collect());
        value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let ms = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
    let lost = |row: &Row| match (row.packets_sent, row.packets_received) {
        (Some(sent), Some(received)) if sent > 0 => {
            Some(100.0 * (1.0 - received as f64 / sent as f64))
        }
        _ => None,
    };
    vec![
        first.path.to_string(),
        first.policy.clone(),
        load(first),
        erasures(first),
        format!("{}/{}", valid.len(), rows.len()),
        cell(3, &|row| Some(row.goodput_bps / 1e6)),
        cell(1, &|row| ms(row.delays.delay_p50_s)),
        cell(1, &|row| ms(row.delays.delay_p95_s)),
        cell(2, &lost),
        cell(1, &|row| row.transmissions_per_block),
        cell(2, &|row| row.air_bytes_per_byte),
        cell(2, &|row| ms(row.lateness_p99_s)),
        if valid.is_empty() { "not valid".to_owned() } else { String::new() },
    ]
}

/// `-/-/20` without helper.
fn erasures(row: &Row) -> String {
    let percent = |ratio: Option<f64>| {
        // Tenths of a percent are told where there are any.
        ratio.map_or("-".to_owned(), |ratio| format!("{}", (1e3 * ratio).round() / 10.0))
    };
    [row.e1, row.e2, Some(row.e3)].map(percent).join("/")
}

fn load(row: &Row) -> String {
    let kind = match (row.transport, row.congestion) {
        (Transport::Tcp, Some(congestion)) => format!("tcp {congestion}"),
        (Transport::Tcp, None) => "tcp".to_owned(),
        (Transport::Udp, _) => "udp".to_owned(),
    };
    let rate = row.offered_bps.map_or(String::new(), |bps| format!(" {:.2}M", bps / 1e6));
    let both = if row.sides.len() > 1 { " x2" } else { "" };
    kind + &rate + both
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

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "name = 't'\nseed = 1\nrepeats = 3\n[medium]\nduplex = 'half'\n\
        rate_bps = 12000000\nrtt_ms = 4\nqueue_frames = 50\n[[run]]\npath = ['kernel', 'coded']\n\
        transport = 'tcp'\ne3 = 0.1\nduration_s = 1\n";

    fn rows() -> Vec<Row> {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let runs = expand(&scenario).unwrap();
        let row = |(index, run): (usize, &Run)| {
            let mut row = Row::new(&scenario, run, Engine::Lab);
            row.goodput_bps = 1e6 * (index + 1) as f64;
            row
        };
        runs.iter().enumerate().map(row).collect()
    }

    fn table(rows: &[Row]) -> Vec<String> {
        let mut out = Vec::new();
        write_table(&mut out, rows).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_table_has_a_line_for_each_point_with_medians() {
        let mut rows = rows();
        let lines = table(&rows);
        assert_eq!(lines.len(), 3);
        // Points alternate: kernel has 1, 3, 5 Mbit/s.
        assert!(lines[1].starts_with("kernel") && lines[1].contains(" 3.000 "), "{}", lines[1]);
        assert!(lines[2].contains(" 4.000 ") && lines[2].contains("3/3"), "{}", lines[2]);
        let place = |line: &str, text: &str| line.find(text).map(|at| at + text.len());
        assert_eq!(place(&lines[0], "Mbit/s"), place(&lines[1], "3.000"));

        rows[0].distrust("late");
        assert!(table(&rows)[1].contains(" 4.000 ") && table(&rows)[1].contains("2/3"));
        rows.iter_mut().for_each(|row| row.distrust("late"));
        assert!(table(&rows)[1].ends_with("not valid"));
    }

    #[test]
    fn the_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        let out = OutFile::create(&path).unwrap();
        assert!(!path.exists());
        let rows = rows();
        for count in 1..=rows.len() {
            out.write(rows[..count].iter(), &json(&rows[count - 1])).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let read: Vec<Row> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(read, rows[..count]);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(OutFile::create(&directory.path().join("missing/rows")).is_err());
    }

    #[test]
    fn a_full_disk_is_an_error_and_the_device_stays() {
        let out = OutFile::create(Path::new("/dev/full")).unwrap();
        let failure = out.write(rows().iter(), "{}").unwrap_err();
        assert!(failure.to_string().contains("No space left"), "{failure}");
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }

    #[test]
    fn the_checks_say_whether_rows_are_worth_reading() {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let runs = expand(&scenario).unwrap();
        let mut rows = rows();
        rows.iter_mut().for_each(|row| row.lateness_p99_s = Some(0.000_5));
        let holds = |rows: &[Row]| {
            checks_of(&runs, rows).iter().map(|check| check.holds).collect::<Vec<_>>()
        };
        assert_eq!(holds(&rows), [true, true, true]);
        rows[0].lateness_p99_s = Some(0.001_2);
        rows[0].distrust("late");
        assert_eq!(holds(&rows), [true, false, false]);
        assert_eq!(holds(&rows[1..]), [false, true, true]);
        // Without a medium there is nothing to say of it, and nothing to hold.
        assert_eq!(holds(&[]), [false, true, false]);

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lab.json");
        let failure = hold(&path, (&runs, &runs), &rows).unwrap_err();
        assert_eq!(failure.to_string(), "2 of 3 checks do not hold");
        let written: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let check = &written["checks"][1];
        assert_eq!(check["name"], "runs that are not valid");
        assert_eq!((&check["value"], &check["limit"]), (&1.0.into(), &0.0.into()));
        assert_eq!(check["holds"], false);
    }
}
