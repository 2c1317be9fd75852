//! `corridor sim`: what happens in virtual time.

mod run;
mod trace;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Arguments of `corridor sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    #[command(subcommand)]
    verb: SimVerb,
}

#[derive(Debug, Subcommand)]
enum SimVerb {
    /// Run a plan: every point, every replication, on all processors
    Run(run::Arguments),
    /// Capture everything on the air in one replication, unsealed, for Wireshark
    Trace(trace::Arguments),
}

/// Runs `corridor sim`.
pub fn run(args: SimArgs) -> ExitCode {
    match args.verb {
        SimVerb::Run(arguments) => run::run(&arguments),
        SimVerb::Trace(arguments) => trace::run(&arguments),
    }
}
