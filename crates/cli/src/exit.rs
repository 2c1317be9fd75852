//! How a command ends: its error messages, and its exit code; the same for all commands.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use corridor_node::{Diagnostic, NodeError};
#[cfg(feature = "lab")]
use corridor_scenario::ScenarioError;

/// How a command ended. Invalid arguments also end with 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Success = 0,
    /// Something failed.
    Failure = 1,
    /// Bad arguments, or a file that the command reads is invalid.
    Usage = 2,
    /// The node to query does not run.
    NotRunning = 3,
    /// The system refused for lack of privileges.
    PermissionDenied = 77,
    /// The user asked to stop; the exit code is that of shells.
    Interrupted = 130,
}

/// The same for help and manual.
pub const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 failure, 2 bad arguments or input file, 3 no such node is running, \
77 permission denied, 130 interrupted";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

impl From<&NodeError> for Exit {
    fn from(error: &NodeError) -> Exit {
        match error {
            NodeError::ReadConfig { source, .. } => unreadable(source.kind()),
            NodeError::Config(_) | NodeError::StatsDirectory { .. } => Exit::Usage,
            NodeError::Permission { .. } => Exit::PermissionDenied,
            _ => Exit::Failure,
        }
    }
}

#[cfg(feature = "lab")]
impl From<&ScenarioError> for Exit {
    fn from(error: &ScenarioError) -> Exit {
        match error {
            ScenarioError::Read { source, .. } => unreadable(source.kind()),
            _ => Exit::Usage,
        }
    }
}

fn unreadable(kind: ErrorKind) -> Exit {
    if kind == ErrorKind::PermissionDenied { Exit::PermissionDenied } else { Exit::Usage }
}

/// Prints an error of a node. Returns how the command ends.
pub fn report_node(error: &NodeError) -> Exit {
    match error {
        // Shows the line of the file.
        NodeError::Config(diagnostic) => eprintln!("{}", diagnostic.render()),
        error => eprintln!("error: {error}"),
    }
    error.into()
}

/// An error of a scenario or plan, with its line.
#[cfg(feature = "lab")]
pub fn rendered(error: &ScenarioError) -> String {
    match error {
        ScenarioError::File(diagnostic) => diagnostic.render(),
        error => format!("error: {error}"),
    }
}

/// Prints a whole text. Returns how the command ends.
pub fn print(text: &str) -> Exit {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Exit::Success,
        // A closed pipe, as of `head`, is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => {
            eprintln!("error: cannot write to standard output: {error}");
            Exit::Failure
        }
    }
}

/// Prints warnings about what in a file has no effect.
pub fn warn(warnings: &[Diagnostic]) {
    for warning in warnings {
        eprintln!("{}", warning.render());
    }
}
