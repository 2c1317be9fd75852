//! The same networks in ns-3, if its Python package is installed.

use std::collections::BTreeMap;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Output of tools/ns3_radio.py.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    pub version: String,
    pub script: String,
    /// By network name.
    pub networks: BTreeMap<String, Measured>,
    /// By number of senders.
    pub wpan: BTreeMap<String, MeasuredCell>,
}

/// Goodput of the flows of a network, and the processor time of its run.
#[derive(Debug, Deserialize, Serialize)]
pub struct Measured {
    pub goodput_bps: Vec<f64>,
    pub simulated_s: f64,
    pub cpu_s: f64,
}

/// A cell of 802.15.4.
#[derive(Debug, Deserialize, Serialize)]
pub struct MeasuredCell {
    pub goodput_bps: f64,
    pub success_ratio: f64,
    pub simulated_s: f64,
    pub cpu_s: f64,
}

/// Runs the script with the interpreter of `NS3_PYTHON`, or `python3`.
///
/// # Errors
/// The reason for a missing answer: the script's last output.
pub fn ask(quick: bool) -> Result<Answer, String> {
    let python = std::env::var("NS3_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command.arg("tools/ns3_radio.py");
    if quick {
        command.arg("--quick");
    }
    let output = command.output().map_err(|fault| format!("{python}: {fault}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The package may print at startup.
    let answer = text.lines().rev().find(|line| line.starts_with('{'));
    match answer {
        Some(line) if output.status.success() => {
            serde_json::from_str(line).map_err(|fault| format!("ns3_radio.py: {fault}"))
        }
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().last().unwrap_or("ns3_radio.py said nothing").to_owned())
        }
    }
}
