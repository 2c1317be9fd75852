//! The same networks in ns-3: recorded results, and fresh ones if its package is installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use corridor_bench::frame::Outcome;
use serde::{Deserialize, Serialize};

use crate::aodv::Discoveries;
use crate::line::Line;

/// The script that runs there, under the rules of [`line`](crate::line) and [`aodv`](crate::aodv).
const SCRIPT: &str = "tools/ns3_constrained.py";

/// Output of the script.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    pub version: String,
    pub script: String,
    /// By case name.
    pub lines: BTreeMap<String, Line>,
    /// Likewise.
    pub aodv: BTreeMap<String, Discoveries>,
}

impl Answer {
    /// Reads a recording.
    ///
    /// # Errors
    /// Those of the file system and of the format, with the file's name.
    pub fn read(path: &Path) -> Outcome<Answer> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?)
    }
}

/// Runs the script with the interpreter of `NS3_PYTHON`, or `python3`.
///
/// # Errors
/// The reason for a missing answer: the script's last output.
pub fn ask(quick: bool) -> Result<Answer, String> {
    let python = std::env::var("NS3_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command.arg(SCRIPT);
    if quick {
        command.arg("--quick");
    }
    let output = command.output().map_err(|fault| format!("{python}: {fault}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The package may print at startup.
    match text.lines().rev().find(|line| line.starts_with('{')) {
        Some(line) if output.status.success() => {
            serde_json::from_str(line).map_err(|fault| format!("{SCRIPT}: {fault}"))
        }
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().last().unwrap_or("the script said nothing").to_owned())
        }
    }
}
