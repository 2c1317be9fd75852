//! `corridor up`: runs a node.

use std::path::PathBuf;

use corridor_node::{NodeConfig, RunOptions};

use crate::exit::{Exit, report_node};

/// Effects of signals, below the help and in the manual page.
const SIGNALS: &str = "\
Signals: SIGTERM and SIGINT notify the peers and stop the node; SIGHUP reloads the configuration \
file; SIGUSR1 writes --stats-file";

/// Arguments of `corridor up`.
#[derive(Debug, clap::Args)]
#[command(after_help = SIGNALS)]
pub struct Arguments {
    /// Configuration file
    file: PathBuf,
    /// Write statistics as JSON to this file, on SIGUSR1 and on exit
    #[arg(long, value_name = "PATH")]
    stats_file: Option<PathBuf>,
}

/// Runs a node until it is asked to stop.
pub fn up(arguments: &Arguments) -> Exit {
    let options = RunOptions {
        stats_file: arguments.stats_file.clone(),
        config_file: Some(arguments.file.clone()),
    };
    let run = || corridor_node::run(&NodeConfig::load(&arguments.file)?, &options);
    match run() {
        Ok(()) => Exit::Success,
        Err(error) => report_node(&error),
    }
}
