//! `corridor sim trace`: one replication as a capture, for Wireshark.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use corridor_base::Time;
use corridor_scenario::{Plan, REPLICATIONS_MAX, ScenarioError};
use corridor_sim::{CaptureCounts, CaptureError, CaptureLimits, SimError, capture_point};

use crate::exit::{self, Exit};

/// Arguments of `corridor sim trace`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Plan or scenario
    #[arg(value_name = "FILE.toml")]
    plan: PathBuf,
    /// Index of the point to capture, from 0
    #[arg(long, value_name = "POINT", default_value_t = 0)]
    only: usize,
    /// Replication to capture, from 0; may exceed the number in the file
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..REPLICATIONS_MAX))]
    replication: u64,
    /// Output file [default: named after plan, point and replication, in the current directory]
    #[arg(long, value_name = "FILE.pcapng")]
    out: Option<PathBuf>,
    /// In networks: capture the IP packets of these nodes [default: sources of flows, or with
    /// radios all frames on the air]
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    at: Vec<u32>,
    /// Stop after N packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit_frames: Option<u64>,
    /// Start at this virtual time, in seconds
    #[arg(long, value_name = "S", value_parser = time, default_value = "0", allow_hyphen_values = true)]
    from: Time,
    /// Stop at this virtual time, in seconds
    #[arg(long, value_name = "S", value_parser = time, allow_hyphen_values = true)]
    until: Option<Time>,
}

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Plan(#[from] ScenarioError),
    #[error("--only {given}: expected 0 to {max}, a point of this plan")]
    Only { given: usize, max: usize },
    #[error("--until {until_s}: expected a time after --from {from_s}")]
    Until { from_s: f64, until_s: f64 },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Sim(SimError),
}

impl Failure {
    fn exit(&self) -> Exit {
        match self {
            Failure::Plan(error) => error.into(),
            Failure::Only { .. } | Failure::Until { .. } => Exit::Usage,
            _ => Exit::Failure,
        }
    }

    /// The message that is printed.
    fn rendered(&self) -> String {
        match self {
            Failure::Plan(error) => exit::rendered(error),
            other => format!("error: {other}"),
        }
    }
}

/// Runs `corridor sim trace`.
pub fn run(arguments: &Arguments) -> ExitCode {
    match trace(arguments) {
        Ok((path, counts)) => {
            let packets = if counts.frames == 1 { "packet" } else { "packets" };
            println!("{}: {} {packets}", path.display(), counts.frames);
            if counts.sealed > 0 {
                println!("{} of them could not be decrypted", counts.sealed);
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{}", failure.rendered());
            failure.exit().into()
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
    let plan = Plan::read(&arguments.plan)?;
    exit::warn(&plan.warnings);
    let (given, max) = (arguments.only, plan.points.len() - 1);
    let point = plan.points.get(given).ok_or(Failure::Only { given, max })?;
    let path = arguments.out.clone().unwrap_or_else(|| {
        let name = format!("{}-{given}-{}.pcapng", plan.name, arguments.replication);
        PathBuf::from(name.replace(['/', '\\'], "-"))
    });
    let refused = |source| Failure::Write { path: path.clone(), source };
    let file = BufWriter::new(File::create(&path).map_err(refused)?);
    let comment = format!(
        "{}, point {given}, replication {}, seed {}: {}",
        plan.name,
        arguments.replication,
        point.seed,
        point.title()
    );
    match capture_point(point, arguments.replication, &arguments.at, limits, &comment, file) {
        Ok(counts) => Ok((path, counts)),
        Err(CaptureError::Sim(source)) => Err(Failure::Sim(source)),
        Err(CaptureError::Write(source)) => Err(refused(source)),
    }
}

/// Seconds of virtual time, to the nanosecond.
fn time(text: &str) -> Result<Time, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds, such as 1.5".to_owned())?;
    if !(0.0..=1e9).contains(&seconds) {
        return Err("expected 0 to 1000000000 seconds".to_owned());
    }
    Ok(Time::from_nanos((seconds * 1e9).round() as u64))
}
