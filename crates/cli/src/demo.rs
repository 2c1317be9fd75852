//! `corridor demo`: the medium of the FRANC paper, rebuilt, and what TCP and UDP make of it with
//! and without coding. Ends with a table, the rows as JSON, and a picture.

mod findings;
mod picture;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use corridor_lab::LabError;
use corridor_scenario::{Engine, Row, Run, Scenario, Transport, expand};

pub(crate) use findings::{delay, rate};

use crate::engine::{EngineError, Maker};
use crate::progress::Progress;

/// The scenario; a test expands it.
const SCENARIO: &str = include_str!("../scenarios/demo.toml");
/// Length of a run with `--quick`, seconds.
const QUICK_DURATION_S: f64 = 2.0;
/// No run is repeated after this time, so that the demo ends within five minutes.
const REPEAT_UNTIL: Duration = Duration::from_secs(270);

/// Arguments of `corridor demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Where demo.json and demo.svg go; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Runs of 2 s: rough numbers, a good minute instead of a good three
    #[arg(long)]
    quick: bool,
    /// What carries the runs
    #[arg(long, value_enum, default_value = "auto")]
    engine: Choice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The lab where the system permits it, else the simulator
    Auto,
    /// Real time: the kernel's own TCP and UDP in network namespaces
    Lab,
    /// Virtual time: UDP only, needs no rights
    Sim,
}

/// Why the demo has no result.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("{failed} of {runs} runs failed; the rest is in {}", out.display())]
    Runs { failed: usize, runs: usize, out: PathBuf },
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Engine(error) => error.exit_code(),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Runs `corridor demo`. To be called before the process starts any thread: without root rights,
/// the process moves into a user namespace.
pub fn run(args: &Arguments) -> ExitCode {
    match demo(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn demo(args: &Arguments) -> Result<(), Failure> {
    // Before the first thread: see `corridor_lab::prepare`.
    let engine = choose_engine(args.engine)?;
    let (scenario, runs) = plan(args.quick, engine);
    // Found out now, and not after three minutes of runs.
    prepare_directory(&args.out)?;
    let mut rows = Vec::new();
    let made = make_runs(&scenario, &runs, engine, &mut rows);
    if !rows.is_empty() {
        table::write(&mut io::stdout().lock(), &scenario, &rows).map_err(Failure::Output)?;
    }
    let failed = made?;
    write_files(&args.out, &scenario, &rows)?;
    if failed > 0 {
        return Err(Failure::Runs { failed, runs: runs.len(), out: args.out.clone() });
    }
    Ok(())
}

fn choose_engine(choice: Choice) -> Result<Engine, EngineError> {
    if choice == Choice::Sim {
        return Ok(Engine::Sim);
    }
    match corridor_lab::prepare() {
        Ok(()) => Ok(Engine::Lab),
        Err(refused @ LabError::NotPermitted { .. }) if choice == Choice::Auto => {
            eprintln!("The kernel's own TCP needs network namespaces, but {refused}");
            eprintln!("So this demo runs in virtual time, and shows UDP only.");
            eprintln!();
            Ok(Engine::Sim)
        }
        Err(error) => Err(error.into()),
    }
}

/// The scenario and its runs, as far as the engine carries them.
fn plan(quick: bool, engine: Engine) -> (Scenario, Vec<Run>) {
    let mut scenario = Scenario::parse(SCENARIO).expect("a test reads the demo's scenario");
    if quick {
        scenario.run.iter_mut().for_each(|run| run.duration_s = Some(QUICK_DURATION_S));
    }
    let mut runs = expand(&scenario).expect("a test expands the demo's scenario");
    if engine == Engine::Sim {
        runs.retain(|run| run.transport == Transport::Udp);
    }
    (scenario, runs)
}

/// Makes all runs; those that cannot be trusted once more. Returns how many failed.
fn make_runs(
    scenario: &Scenario,
    runs: &[Run],
    engine: Engine,
    rows: &mut Vec<Row>,
) -> Result<usize, Failure> {
    let begin = Instant::now();
    let maker = Maker::new(engine)?;
    let progress = Progress::new(runs, |run| maker.time_needed(run));
    let mut failed = 0;
    for (index, run) in runs.iter().enumerate() {
        progress.begin(index, run);
        let mut outcome = maker.make(scenario, run);
        if begin.elapsed() < REPEAT_UNTIL
            && let Some(why) = why_again(&outcome)
        {
            progress.say(&format!("  once more, because {why}"));
            outcome = maker.make(scenario, run).map(|mut row| {
                row.notes.push(format!("the second attempt; the first: {why}"));
                row
            });
        }
        match outcome {
            Ok(row) => {
                progress.finish(index, run, &row);
                // A late emulator is the machine's fault; anything else is ours.
                failed += usize::from(!row.valid && !is_late(&row));
                rows.push(row);
            }
            Err(error) if error.is_interruption() => return Err(error.into()),
            Err(error) => {
                progress.fail(index, &run.title(), &format!("failed: {error}"));
                failed += 1;
            }
        }
    }
    Ok(failed)
}

fn why_again(outcome: &Result<Row, EngineError>) -> Option<String> {
    match outcome {
        Ok(row) if row.valid => None,
        Ok(row) => Some(row.notes.join("; ")),
        Err(error) if error.is_interruption() => None,
        Err(error) => Some(error.to_string()),
    }
}

fn is_late(row: &Row) -> bool {
    let late = corridor_lab::LATENESS_MAX.as_secs_f64();
    row.lateness_p99_s.is_some_and(|lateness| lateness > late)
}

fn prepare_directory(out: &Path) -> Result<(), Failure> {
    fs::create_dir_all(out)
        .and_then(|()| tempfile::tempfile_in(out).map(drop))
        .map_err(|source| Failure::Write { path: out.to_owned(), source })
}

fn write_files(out: &Path, scenario: &Scenario, rows: &[Row]) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(rows).expect("rows are numbers, strings and lists");
    let picture = picture::draw(scenario, rows);
    let mut stdout = io::stdout().lock();
    for (name, text) in [("demo.json", json), ("demo.svg", picture)] {
        let path = out.join(name);
        replace(&path, &text).map_err(|source| Failure::Write { path: path.clone(), source })?;
        writeln!(stdout, "wrote {}", path.display()).map_err(Failure::Output)?;
    }
    Ok(())
}

/// Writes a file that is either complete or not there.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut file = tempfile::Builder::new()
        .prefix(".corridor-demo-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests;
