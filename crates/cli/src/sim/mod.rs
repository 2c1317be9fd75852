//! `corridor sim`: simulations in virtual time.

mod draw;
mod keys;
mod progress;
pub(crate) mod run;
mod show;
mod table;
mod torture;
mod trace;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use corridor_results::ResultsError;
use corridor_scenario::ScenarioError;
use corridor_sim::SimError;

use crate::exit::{self, Exit};

/// Arguments of `corridor sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    #[command(subcommand)]
    verb: SimVerb,
}

#[derive(Debug, Subcommand)]
enum SimVerb {
    /// Run all points and replications of a plan, on all processors
    Run(run::Arguments),
    /// Show means and confidence intervals of results written by `run`
    Show(show::Arguments),
    /// Write a decrypted packet capture of one replication, for Wireshark
    Trace(trace::Arguments),
    /// Draw the network of a plan: who can receive from whom, and who is only interfered with
    Draw(draw::Arguments),
    /// Print a reference of all keys of plans and scenarios
    Keys(keys::Arguments),
    /// Run stations against randomized faults and attacks, and check protocol invariants
    Torture(torture::Arguments),
}

/// Runs `corridor sim`; `verbose` as `-v` says.
pub fn run(args: SimArgs, verbose: bool) -> ExitCode {
    let result = match args.verb {
        SimVerb::Run(arguments) => run::run(&arguments),
        SimVerb::Show(arguments) => show::show(&arguments),
        SimVerb::Keys(arguments) => return keys::keys(&arguments).into(),
        SimVerb::Draw(arguments) => return draw::run(&arguments),
        SimVerb::Trace(arguments) => return trace::run(&arguments),
        SimVerb::Torture(arguments) => return torture::run(&arguments, verbose),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}", failure.rendered());
            failure.exit().into()
        }
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Plan(#[from] ScenarioError),
    #[error("--only {given}: expected 0 to {max}, a point of this plan")]
    Only { given: usize, max: usize },
    #[error("--jobs {given}: expected 1 to {max}")]
    Jobs { given: usize, max: usize },
    #[error("point {point} ({title}): {source}")]
    Point { point: usize, title: String, source: SimError },
    #[error("point {point} ({title}): {source}")]
    Value { point: usize, title: String, source: ScenarioError },
    #[error("point {point} ({title}), replication {replication}: simulator panicked: {said}")]
    Panic { point: usize, title: String, replication: u64, said: String },
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("cannot write to standard output: {0}")]
    Output(std::io::Error),
    #[error("interrupted after {done} of {expected} replications; {how}")]
    Interrupted { done: u64, expected: u64, how: String },
}

impl Failure {
    /// The message that is printed.
    fn rendered(&self) -> String {
        match self {
            Failure::Plan(error) => exit::rendered(error),
            Failure::Value { point, title, source } => {
                format!("{}\n  at point {point} ({title})", exit::rendered(source))
            }
            // The user asked to stop.
            Failure::Interrupted { .. } => self.to_string(),
            other => format!("error: {other}"),
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Failure::Plan(error) => error.into(),
            Failure::Only { .. }
            | Failure::Jobs { .. }
            | Failure::Results(
                ResultsError::Column { .. }
                | ResultsError::NoParquet { .. }
                | ResultsError::NoDirectory { .. }
                | ResultsError::OtherPlan { .. },
            )
            | Failure::Point { .. }
            | Failure::Value { .. } => Exit::Usage,
            Failure::Interrupted { .. } => Exit::Interrupted,
            _ => Exit::Failure,
        }
    }
}
