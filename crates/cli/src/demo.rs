//! `corridor demo`: TCP and UDP with and without coding, over a medium like the FRANC paper's.
//! Prints a table, and writes the rows as JSON and a plot.

mod findings;
mod picture;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use corridor_lab::LabError;
use corridor_scenario::{Engine, Row, Run, Scenario, Transport, expand};

pub(crate) use findings::{delay, rate};

use crate::crew::{Crew, Jobs};
use crate::engine::{EngineError, Maker};
use crate::progress::Progress;

/// The scenario; a test expands it.
const SCENARIO: &str = include_str!("../scenarios/demo.toml");
/// The file with the rows.
const ROWS_NAME: &str = "demo.json";
/// Length of a run with `--quick`, seconds.
const QUICK_DURATION_S: f64 = 2.0;
/// No run is repeated after this time, so that the demo ends within four minutes.
const REPEAT_UNTIL: Duration = Duration::from_secs(210);
/// Maximum number of attempts of a run that the machine disturbs: one in parallel, then alone.
const ATTEMPTS: usize = 4;

/// Arguments of `corridor demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write demo.json and demo.svg to this directory, created if missing
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Use runs of 2 s, for rough figures in half a minute
    #[arg(long)]
    quick: bool,
    /// Make at most N runs in parallel [default: two per processor at first, then as many as their
    /// measured CPU time allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Engine to run on
    #[arg(long, value_enum, default_value = "auto")]
    engine: Choice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The lab if permitted, otherwise the simulator
    Auto,
    /// Real time: kernel TCP and UDP in network namespaces
    Lab,
    /// Virtual time: UDP only, needs no privileges
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
    #[error("{failed} of {runs} runs failed; the other results are in {}", out.display())]
    Runs { failed: usize, runs: usize, out: PathBuf },
    #[error(
        "{} after up to {ATTEMPTS} attempts each (see \"notes\" in {}): is this machine busy?",
        doubt,
        out.display()
    )]
    Doubtful { doubt: String, out: PathBuf },
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Engine(error) => error.exit().into(),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Runs `corridor demo`. Call this before the process starts any thread: without root rights, the
/// process moves into a user namespace.
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
    // Checked now, not after three minutes of runs.
    prepare_directory(&args.out)?;
    let demo = Demo::new(&scenario, &runs, engine)?;
    let (rows, made) = demo.make_all(args.jobs);
    if !rows.is_empty() {
        table::write(&mut io::stdout().lock(), &scenario, &rows).map_err(Failure::Output)?;
    }
    made?;
    write_files(&args.out, &scenario, &rows)?;
    let (out, failed) = (args.out.clone(), runs.len() - rows.len());
    if failed > 0 {
        return Err(Failure::Runs { failed, runs: runs.len(), out });
    }
    match findings::doubt(&rows) {
        Some(doubt) => Err(Failure::Doubtful { doubt, out: out.join(ROWS_NAME) }),
        None => Ok(()),
    }
}

fn choose_engine(choice: Choice) -> Result<Engine, EngineError> {
    if choice == Choice::Sim {
        return Ok(Engine::Sim);
    }
    match corridor_lab::prepare() {
        Ok(()) => {
            for missing in corridor_lab::missing_rights() {
                eprintln!("warning: {missing}");
            }
            Ok(Engine::Lab)
        }
        Err(refused @ LabError::NotPermitted { .. }) if choice == Choice::Auto => {
            eprintln!("Kernel TCP needs network namespaces: {refused}");
            eprintln!("Running in virtual time instead, with UDP only.");
            eprintln!();
            Ok(Engine::Sim)
        }
        Err(error) => Err(error.into()),
    }
}

/// The scenario and those of its runs that the engine supports.
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

/// The runs of a demo, while they are made.
struct Demo<'a> {
    scenario: &'a Scenario,
    runs: &'a [Run],
    maker: Maker,
    progress: Progress,
    begin: Instant,
    state: Mutex<Made>,
}

/// Their results.
#[derive(Default)]
struct Made {
    /// By index.
    rows: BTreeMap<usize, Row>,
    /// Runs that are not valid, or failed, and are to be repeated; the reason.
    again: BTreeMap<usize, String>,
    /// The user asked to stop.
    interruption: Option<EngineError>,
}

impl<'a> Demo<'a> {
    fn new(scenario: &'a Scenario, runs: &'a [Run], engine: Engine) -> Result<Self, EngineError> {
        let (begin, maker) = (Instant::now(), Maker::new(engine)?);
        let progress = Progress::new(runs, |run| maker.time_needed(run));
        Ok(Demo { scenario, runs, maker, progress, begin, state: Mutex::default() })
    }

    /// Makes all runs, several at once; then those that are not valid again, one by one, as often
    /// as there is time. Returns the results in the order of the runs.
    fn make_all(self, jobs: Option<u16>) -> (Vec<Row>, Result<(), EngineError>) {
        let all: Vec<usize> = (0..self.runs.len()).collect();
        Crew::new(Jobs::of(jobs)).work(&all, |place, _| self.make(place, false));
        for attempt in 2..=ATTEMPTS {
            let again: Vec<usize> = self.state().again.keys().copied().collect();
            for place in again {
                if self.begin.elapsed() < REPEAT_UNTIL {
                    self.make(place, attempt == ATTEMPTS);
                }
            }
        }
        // Runs that there was no time to repeat stay as they are.
        let left: Vec<usize> = self.state().again.keys().copied().collect();
        for place in left {
            self.tell(place);
        }
        let made = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (made.rows.into_values().collect(), made.interruption.map_or(Ok(()), Err))
    }

    /// Makes a run, unless the user asked to stop. Returns the processors that it needed.
    fn make(&self, place: usize, is_last: bool) -> Option<f64> {
        if self.state().interruption.is_some() {
            return None;
        }
        let run = &self.runs[place];
        self.progress.begin(place, run);
        let outcome = self.maker.make(self.scenario, run);
        let needed = outcome.as_ref().ok().and_then(|row| row.processors);
        let why = why_again(&outcome);
        let mut state = self.state();
        match outcome {
            Err(error) if error.is_interruption() => {
                state.interruption.get_or_insert(error);
                return None;
            }
            Err(_) => {}
            Ok(mut row) => {
                if let Some(before) = state.again.get(&place) {
                    row.notes.push(format!("made again; before: {before}"));
                }
                // Of several attempts that are not valid, the least disturbed one is shown.
                let is_better = state.rows.get(&place).is_none_or(|before| {
                    row.valid || corridor_lab::spoilage(&row) < corridor_lab::spoilage(before)
                });
                if is_better {
                    state.rows.insert(place, row);
                }
            }
        }
        match why {
            None => {
                state.again.remove(&place);
            }
            Some(why) => {
                self.progress.put_off(place);
                if !is_last {
                    self.progress.say(&format!("{}: will be repeated: {why}", run.title()));
                }
                state.again.insert(place, why);
                return needed;
            }
        }
        drop(state);
        self.tell(place);
        needed
    }

    /// Reports the final result of a run.
    fn tell(&self, place: usize) {
        let (run, state) = (&self.runs[place], self.state());
        match (state.rows.get(&place), state.again.get(&place)) {
            (Some(row), _) => self.progress.finish(place, run, row),
            (None, why) => {
                let why = why.map_or("not made", String::as_str);
                self.progress.fail(place, &run.title(), &format!("failed: {why}"));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Made> {
        // A worker that panics ends the demo: its scope panics too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn why_again(outcome: &Result<Row, EngineError>) -> Option<String> {
    match outcome {
        Ok(row) if row.valid => None,
        Ok(row) => Some(row.notes.join("; ")),
        Err(error) if error.is_interruption() => None,
        Err(error) => Some(error.to_string()),
    }
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
    for (name, text) in [(ROWS_NAME, json), ("demo.svg", picture)] {
        let path = out.join(name);
        replace(&path, &text).map_err(|source| Failure::Write { path: path.clone(), source })?;
        writeln!(stdout, "wrote {}", path.display()).map_err(Failure::Output)?;
    }
    Ok(())
}

/// Writes a file that is either complete or absent.
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
