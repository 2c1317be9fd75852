//! How a verb ends: what it prints of errors, and its exit code. The same for all verbs.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use corridor_node::{Diagnostic, NodeError};
#[cfg(feature = "lab")]
use corridor_scenario::ScenarioError;

/// How a verb ended. Arguments that cannot be read end with 2 as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Success = 0,
    /// Something failed.
    Failure = 1,
    /// Bad arguments, or a file that the command reads is invalid.
    Usage = 2,
    /// There is no such node that could be asked.
    NotRunning = 3,
    /// The system refused for lack of privileges.
    PermissionDenied = 77,
    /// Somebody asked to stop, as shells have it.
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

/// Tells an error of a node. How the verb ends.
pub fn report_node(error: &NodeError) -> Exit {
    match error {
        // Shows the line in question.
        NodeError::Config(diagnostic) => eprintln!("{}", diagnostic.render()),
        error => eprintln!("error: {error}"),
    }
    error.into()
}

/// An error of a scenario or plan, with the line in question.
#[cfg(feature = "lab")]
pub fn rendered(error: &ScenarioError) -> String {
    match error {
        ScenarioError::File(diagnostic) => diagnostic.render(),
        error => format!("error: {error}"),
    }
}

/// Prints a whole text. How the verb ends.
pub fn print(text: &str) -> Exit {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Exit::Success,
        // Who pipes into `head` has what they wanted.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => {
            eprintln!("error: cannot write to standard output: {error}");
            Exit::Failure
        }
    }
}

/// Tells what in a file changes nothing.
pub fn warn(warnings: &[Diagnostic]) {
    for warning in warnings {
        eprintln!("{}", warning.render());
    }
}
