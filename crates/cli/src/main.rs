//! The `corridor` command: parses arguments, and calls the commands' modules.
#![forbid(unsafe_code)]

#[cfg(not(feature = "lab"))]
mod absent;
mod check_config;
#[cfg(feature = "lab")]
#[cfg(feature = "lab")]
mod crew;
#[cfg(feature = "lab")]
mod demo;
#[cfg(feature = "lab")]
mod engine;
mod exit;
mod genkey;
mod genpsk;
#[cfg(feature = "lab")]
mod lab;
mod manual;
#[cfg(feature = "lab")]
mod panel;
#[cfg(feature = "lab")]
mod plot;
#[cfg(feature = "lab")]
mod progress;
#[cfg(feature = "lab")]
mod results;
#[cfg(feature = "lab")]
mod sim;
mod status;
mod up;

#[cfg(not(feature = "lab"))]
use absent::{demo, lab, results, sim};

use std::process::ExitCode;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Environment variable with a log filter, such as `debug` or `corridor_node=trace`.
const LOG_VARIABLE: &str = "CORRIDOR_LOG";

/// Network coding tunnel for lossy wireless links.
#[derive(Debug, Parser)]
#[command(version = env!("CORRIDOR_VERSION"), propagate_version = true)]
#[command(after_help = exit::EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    log: LogArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Args)]
struct LogArgs {
    /// More output: debug messages; repeat for trace messages
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Less output: warnings and errors only; repeat for errors only
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "verbose")]
    quiet: u8,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare TCP and UDP with and without coding on a lossy radio, in a few minutes
    Demo(demo::Arguments),
    /// Run a node in the foreground until SIGTERM or SIGINT
    Up(up::Arguments),
    /// Show the status of running nodes: peers, loss, queue, counters
    Status(status::Arguments),
    /// Check a configuration file and report errors
    CheckConfig(check_config::Arguments),
    /// Generate a pre-shared key (64 hexadecimal digits), for a group or in addition to key pairs
    Genpsk(genpsk::Arguments),
    /// Generate a station's private key (44 characters of base64)
    Genkey(genkey::Arguments),
    /// Read a private key from standard input and print its public key
    Pubkey,
    /// Measure kernel TCP and UDP over an emulated radio between network namespaces
    Lab(lab::LabArgs),
    /// Simulate plans in virtual time; deterministic, needs no privileges
    Sim(sim::SimArgs),
    /// Work with result files of `corridor sim run`
    Results(results::ResultsArgs),
    /// Print a shell completion script
    Completions(manual::CompletionsArguments),
    /// Print the manual page, or write all manual pages to a directory
    Man(manual::ManArguments),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log(&cli.log);
    let exit = match cli.verb {
        Verb::Demo(arguments) => return demo::run(&arguments),
        Verb::Up(arguments) => up::up(&arguments),
        Verb::Status(arguments) => status::status(&arguments),
        Verb::CheckConfig(arguments) => check_config::check_config(&arguments),
        Verb::Genpsk(arguments) => genpsk::genpsk(&arguments),
        Verb::Genkey(arguments) => genkey::genkey(&arguments),
        Verb::Pubkey => genkey::pubkey(),
        Verb::Completions(arguments) => manual::completions(&arguments, Cli::command()),
        Verb::Man(arguments) => manual::man(&arguments, Cli::command()),
        Verb::Lab(arguments) => return lab::run(arguments),
        Verb::Results(arguments) => return results::run(&arguments),
        Verb::Sim(arguments) => return sim::run(arguments, cli.log.verbose > 0),
    };
    exit.into()
}

/// Logs to standard error; `CORRIDOR_LOG` overrides `-v` and `-q`.
fn start_log(args: &LogArgs) {
    let level = match i16::from(args.verbose) - i16::from(args.quiet) {
        ..=-2 => "error",
        -1 => "warn",
        0 => "info",
        1 => "debug",
        2.. => "trace",
    };
    // Messages of libraries are shown only at the most verbose level.
    let default = match level {
        "debug" => "warn,corridor=debug,corridor_node=debug,corridor_lab=debug",
        level => level,
    };
    let asked = std::env::var(LOG_VARIABLE).ok().and_then(|filter| filter.parse().ok());
    let filter: Targets =
        asked.unwrap_or_else(|| default.parse().expect("a filter of levels is sound"));
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr())
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .with_target(false)
        .without_time()
        // A closed terminal must not end a node.
        .log_internal_errors(false);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}
