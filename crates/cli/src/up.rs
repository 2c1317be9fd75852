//! `corridor up`: runs a node.

use std::io::ErrorKind;
use std::path::PathBuf;

use corridor_node::{NodeConfig, NodeError, RunOptions};

use crate::Exit;

/// Arguments of `corridor up`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file
    file: PathBuf,
    /// Write statistics as JSON to this file, on SIGUSR1 and at the end
    #[arg(long, value_name = "PATH")]
    stats_file: Option<PathBuf>,
}

/// Runs a node until it is told to stop.
pub fn up(arguments: &Arguments) -> Exit {
    let options = RunOptions { stats_file: arguments.stats_file.clone() };
    let run = || corridor_node::run(&NodeConfig::load(&arguments.file)?, &options);
    match run() {
        Ok(()) => Exit::Success,
        Err(error) => report(error),
    }
}

/// Tells an error, and which exit code it stands for.
pub fn report(error: NodeError) -> Exit {
    let exit = match &error {
        NodeError::ReadConfig { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Exit::PermissionDenied
        }
        NodeError::Config(_) | NodeError::ReadConfig { .. } | NodeError::StatsDirectory { .. } => {
            Exit::Usage
        }
        NodeError::Permission { .. } => Exit::PermissionDenied,
        _ => Exit::Failure,
    };
    match error {
        // Shows the lines in question.
        NodeError::Config(diagnostic) => eprintln!("{:?}", miette::Report::new(*diagnostic)),
        error => eprintln!("corridor: {error}"),
    }
    exit
}
