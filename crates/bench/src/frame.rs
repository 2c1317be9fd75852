//! How a bench ends: with a report for machines, its checks for people, and a verdict.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use corridor_results::checks::{Check, broken};
use serde::Serialize;

/// What can go wrong is said to people, and ends the program.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How a bench ends: with 0 if all holds, with 1 if not, and with 2, and a line that says why, if
/// that could not be found out.
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

/// Writes a report as JSON, in a directory that is made if there is none.
///
/// # Errors
/// Those of the file system, with the file's name.
pub fn write_report(path: &Path, report: &impl Serialize) -> Outcome<()> {
    write(path, serde_json::to_string_pretty(report)? + "\n")
}

/// Writes a file, in a directory that is made if there is none.
///
/// # Errors
/// Those of the file system, with the file's name.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Outcome<()> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

/// Says what came of the checks, a line for each. Whether all hold.
pub fn say(checks: &[Check]) -> bool {
    checks.iter().for_each(|check| println!("{}", check.line()));
    broken(checks) == 0
}
