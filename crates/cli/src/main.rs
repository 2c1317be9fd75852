//! The `corridor` command: reads its arguments, and leaves the rest to the verbs.
#![forbid(unsafe_code)]

mod check_config;
mod demo;
mod engine;
mod lab;
mod panel;
mod plot;
mod progress;
mod sim;
mod up;

use std::process::ExitCode;

use clap::{ArgAction, Args, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Environment variable with a filter for the log, as `debug` or `corridor_node=trace`.
const LOG_VARIABLE: &str = "CORRIDOR_LOG";

/// Carries IP traffic through lossy wireless links with network coding.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Args)]
struct LogArgs {
    /// Tell more; twice: tell everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Tell only warnings; twice: only errors
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "verbose")]
    quiet: u8,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show in minutes what coding does for TCP and UDP on a lossy radio
    Demo(demo::Arguments),
    /// Run a node until SIGTERM or SIGINT
    Up(up::Arguments),
    /// Say whether a configuration file is sound, and what is wrong with it
    CheckConfig(check_config::Arguments),
    /// Measure on an emulated radio between network namespaces, with the kernel's TCP and UDP
    Lab(lab::LabArgs),
    /// Simulate plans in virtual time: needs no rights, gives the same bytes every time
    Sim(sim::SimArgs),
}

/// How a verb ended. Arguments that cannot be read end with 2 as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// All went well.
    Success = 0,
    /// Something failed.
    Failure = 1,
    /// The arguments or the configuration cannot be.
    Usage = 2,
    /// The system refused for lack of privileges.
    PermissionDenied = 77,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log(&cli.log);
    let exit = match cli.verb {
        Verb::Demo(arguments) => return demo::run(&arguments),
        Verb::Up(arguments) => up::up(&arguments),
        Verb::CheckConfig(arguments) => check_config::check_config(&arguments),
        Verb::Lab(arguments) => return lab::run(arguments),
        Verb::Sim(arguments) => return sim::run(arguments, cli.log.verbose > 0),
    };
    ExitCode::from(exit as u8)
}

/// Logs to the standard error output; `CORRIDOR_LOG` goes before `-v` and `-q`.
fn start_log(args: &LogArgs) {
    let level = match i16::from(args.verbose) - i16::from(args.quiet) {
        ..=-2 => "error",
        -1 => "warn",
        0 => "info",
        1 => "debug",
        2.. => "trace",
    };
    // Libraries below us are of interest only when everything is.
    let default = match level {
        "debug" => "warn,corridor=debug,corridor_node=debug,corridor_lab=debug",
        level => level,
    };
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(default));
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr())
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .with_target(false)
        .without_time()
        .init();
}
