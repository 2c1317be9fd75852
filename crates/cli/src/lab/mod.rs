//! `corridor lab`: run a scenario in real time, through the kernel's own TCP and UDP.
//!
//! Rows go to standard output (a table, or JSON lines) and to a file; progress and errors go to
//! standard error.

mod compare;
mod gates;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use corridor_lab::LabError;
use corridor_scenario::{Engine, Row, Run, Scenario, ScenarioError, Transport, expand};
use tempfile::NamedTempFile;

use crate::engine::{EngineError, Maker};
use crate::progress::Progress;

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
    /// The scenario file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Write a row for each run to standard output, as JSON lines, instead of a table at the end
    #[arg(long)]
    json: bool,
    /// Write the rows to this file too, as JSON lines; it is complete after every run
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Make only the run at this place in the scenario, from 0, with its repeats
    #[arg(long, value_name = "INDEX")]
    only: Option<usize>,
    /// Repeat every run this often, whatever the scenario says
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Scenario { path: PathBuf, source: ScenarioError },
    #[error("--only {given}: expected 0 to {max}, the places of the runs in this scenario")]
    Only { given: usize, max: usize },
    #[error("--only {given}: expected a part of the name of a way to cross, as in \"window\"")]
    Nobody { given: String },
    #[error("{}: {field} = {given}: expected {expected}, as now, to go on from it", path.display())]
    Settings { path: PathBuf, field: String, given: String, expected: String },
    #[error("{}: {source}", path.display())]
    Report { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("{failed} of {count} runs failed")]
    Runs { failed: usize, count: usize },
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Scenario { .. }
            | Failure::Only { .. }
            | Failure::Nobody { .. }
            | Failure::Settings { .. }
            | Failure::Report { .. } => ExitCode::from(2),
            Failure::Engine(error) => error.exit_code(),
            _ => ExitCode::FAILURE,
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
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn run_scenario(args: &RunArgs) -> Result<(), Failure> {
    let (scenario, runs) = read_scenario(args)?;
    // Before the first thread: see `corridor_lab::prepare`.
    corridor_lab::prepare().map_err(EngineError::from)?;
    let out = args.out.as_deref().map(OutFile::create).transpose()?;
    let maker = Maker::new(Engine::Lab)?;
    let mut rows = Vec::new();
    let result = make_runs(args, &scenario, &runs, &maker, out.as_ref(), &mut rows);
    // What is finished is shown even when the rest failed.
    if !args.json && !rows.is_empty() {
        write_table(&mut io::stdout().lock(), &rows).map_err(Failure::Output)?;
    }
    if let (Err(Failure::Engine(_)), Some(out), false) = (&result, &out, rows.is_empty()) {
        eprintln!("{} of {} runs are in {}", rows.len(), runs.len(), out.path.display());
    }
    result
}

fn read_scenario(args: &RunArgs) -> Result<(Scenario, Vec<Run>), Failure> {
    let path = &args.scenario;
    let text =
        fs::read_to_string(path).map_err(|source| Failure::Read { path: path.clone(), source })?;
    let refused = |source| Failure::Scenario { path: path.clone(), source };
    let mut scenario = Scenario::parse(&text).map_err(refused)?;
    if let Some(repeats) = args.repeats {
        scenario.repeats = repeats;
    }
    let mut runs = expand(&scenario).map_err(refused)?;
    if let Some(given) = args.only {
        let max = runs.iter().map(|run| run.point).max().unwrap_or(0);
        runs.retain(|run| run.point == given);
        if runs.is_empty() {
            return Err(Failure::Only { given, max });
        }
    }
    Ok((scenario, runs))
}

fn make_runs(
    args: &RunArgs,
    scenario: &Scenario,
    runs: &[Run],
    maker: &Maker,
    out: Option<&OutFile>,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let progress = Progress::new(runs, |run| maker.time_needed(run));
    let (mut failed, mut failed_in_a_row) = (0, 0);
    for (index, run) in runs.iter().enumerate() {
        progress.begin(index, run);
        let row = match maker.make(scenario, run) {
            Ok(row) => row,
            Err(error) if is_one_run_only(&error) && failed_in_a_row < FAILED_IN_A_ROW_MAX => {
                progress.fail(index, &run.title(), &error);
                (failed, failed_in_a_row) = (failed + 1, failed_in_a_row + 1);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        failed_in_a_row = 0;
        progress.finish(index, run, &row);
        if args.json {
            let mut stdout = io::stdout().lock();
            let line = json(&row) + "\n";
            stdout.write_all(line.as_bytes()).map_err(Failure::Output)?;
            stdout.flush().map_err(Failure::Output)?;
        }
        rows.push(row);
        if let Some(out) = out {
            out.write(rows)?;
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Runs { failed, count: runs.len() }),
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

fn json(row: &Row) -> String {
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

    fn write(&self, rows: &[Row]) -> Result<(), Failure> {
        self.try_write(rows).map_err(|source| self.failed(source))
    }

    fn try_write(&self, rows: &[Row]) -> io::Result<()> {
        if self.is_special {
            let newest = rows.last().map(json).unwrap_or_default() + "\n";
            return fs::OpenOptions::new()
                .write(true)
                .open(&self.path)?
                .write_all(newest.as_bytes());
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
            out.write(&rows[..count]).unwrap();
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
        let failure = out.write(&rows()).unwrap_err();
        assert!(failure.to_string().contains("No space left"), "{failure}");
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }
}
