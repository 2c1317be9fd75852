//! Exit of a bench: a machine-readable report, its checks as text, and an exit status.

use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use corridor_results::checks::{Check, broken};
use serde::Serialize;

/// Result type: errors are printed, and end the program.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Exit status of a bench: 0 if everything holds, 1 if not, and 2, with a line giving the reason,
/// if that could not be determined.
pub fn exit(name: &str, outcome: Outcome<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::from(2)
        }
    }
}

/// Writes a report as JSON, creating its directory if necessary.
///
/// # Errors
/// File system errors, with the file's name.
pub fn write_report(path: &Path, report: &impl Serialize) -> Outcome<()> {
    write(path, serde_json::to_string_pretty(report)? + "\n")
}

/// Writes a file, creating its directory if necessary.
///
/// # Errors
/// File system errors, with the file's name.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Outcome<()> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Prints a line, however long. A closed pipe, as of `head`, is not an error.
///
/// # Errors
/// Standard output cannot be written to.
pub fn print(text: &str) -> Outcome<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}").into())
        }
        _ => Ok(()),
    }
}

/// Prints the checks, one line each. Returns whether all hold.
pub fn say(checks: &[Check]) -> bool {
    checks.iter().for_each(|check| println!("{}", check.line()));
    broken(checks) == 0
}
