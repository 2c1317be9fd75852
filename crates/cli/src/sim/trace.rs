//! `corridor sim trace`: one replication as a capture, for Wireshark.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use corridor_base::Time;
use corridor_scenario::{Run, Scenario, ScenarioError, expand};
use corridor_sim::{CaptureCounts, CaptureError, CaptureLimits, capture_udp};

use crate::Exit;

/// Arguments of `corridor sim trace`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The scenario file
    #[arg(value_name = "FILE.toml")]
    scenario: PathBuf,
    /// The point to capture: its place in the file, from 0
    #[arg(long, value_name = "POINT", default_value_t = 0)]
    only: usize,
    /// Which replication of it, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    replication: u64,
    /// Where the capture goes; beside the scenario, by default
    #[arg(long, value_name = "FILE.pcapng")]
    out: Option<PathBuf>,
    /// Stop after so many transmissions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit_frames: Option<u64>,
    /// Begin at this second of virtual time
    #[arg(long, value_name = "S", value_parser = time, default_value = "0")]
    from: Time,
    /// End at this second of virtual time
    #[arg(long, value_name = "S", value_parser = time)]
    until: Option<Time>,
}

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Scenario { path: PathBuf, source: ScenarioError },
    #[error("--only {given}: expected 0 to {max}, the places of the runs in this scenario")]
    Only { given: usize, max: usize },
    #[error("--until {until_s}: expected a time after --from {from_s}")]
    Until { from_s: f64, until_s: f64 },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Sim(corridor_sim::SimError),
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Scenario { .. } | Failure::Only { .. } | Failure::Until { .. } => {
                ExitCode::from(Exit::Usage as u8)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

/// Runs `corridor sim trace`.
pub fn run(arguments: &Arguments) -> ExitCode {
    match trace(arguments) {
        Ok((path, counts)) => {
            println!("{}: {} transmissions", path.display(), counts.frames);
            if counts.sealed > 0 {
                println!("{} of them could not be unsealed", counts.sealed);
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn trace(arguments: &Arguments) -> Result<(PathBuf, CaptureCounts), Failure> {
    let limits = CaptureLimits {
        from: arguments.from,
        until: arguments.until.unwrap_or(Time::MAX),
        frames_max: arguments.limit_frames.unwrap_or(u64::MAX),
    };
    if limits.until <= limits.from {
        let (from_s, until_s) = (limits.from.as_secs_f64(), limits.until.as_secs_f64());
        return Err(Failure::Until { from_s, until_s });
    }
    let (scenario, run) = read_run(arguments)?;
    let path = arguments.out.clone().unwrap_or_else(|| {
        let name = format!("{}-{}-{}.pcapng", scenario.name, run.point, run.replication);
        arguments.scenario.with_file_name(name.replace(['/', '\\'], "-"))
    });
    let refused = |source| Failure::Write { path: path.clone(), source };
    let file = BufWriter::new(File::create(&path).map_err(refused)?);
    match capture_udp(&scenario, &run, limits, file) {
        Ok(counts) => Ok((path, counts)),
        Err(CaptureError::Sim(source)) => Err(Failure::Sim(source)),
        Err(CaptureError::Write(source)) => Err(refused(source)),
    }
}

fn read_run(arguments: &Arguments) -> Result<(Scenario, Run), Failure> {
    let path = &arguments.scenario;
    let text = std::fs::read_to_string(path)
        .map_err(|source| Failure::Read { path: path.clone(), source })?;
    let refused = |source| Failure::Scenario { path: path.clone(), source };
    let mut scenario = Scenario::parse(&text).map_err(refused)?;
    // Any replication can be looked at, also one that the file does not ask for.
    scenario.repeats = 1;
    let runs = expand(&scenario).map_err(refused)?;
    let max = runs.len().saturating_sub(1);
    let given = arguments.only;
    let run = runs.into_iter().find(|run| run.point == given);
    let mut run = run.ok_or(Failure::Only { given, max })?;
    run.replication = arguments.replication;
    Ok((scenario, run))
}

/// Seconds of virtual time, to the nanosecond.
fn time(text: &str) -> Result<Time, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds, as 1.5".to_owned())?;
    if !(0.0..=1e9).contains(&seconds) {
        return Err("expected 0 to 1000000000 seconds".to_owned());
    }
    Ok(Time::from_nanos((seconds * 1e9).round() as u64))
}
