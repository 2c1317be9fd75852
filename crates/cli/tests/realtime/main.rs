//! Measurements in real time: a program of its own, so that cargo runs no other tests in parallel.

mod agreement;
mod bottleneck;
mod campaigns;
mod hops;
mod lines;
mod radios;
mod relay;
#[path = "../it/support/mod.rs"]
mod support;
mod vegas;

use std::path::Path;
use std::process::Command;

use corridor_scenario::Row;
use corridor_testing::realtime::Measured;

/// Runs a scenario in the lab: its rows, and its other output.
fn lab_run(scenario: &Path) -> (Vec<Row>, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_corridor"))
        .args(["lab", "run", "--json"])
        .arg(scenario)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}");
    let rows = String::from_utf8_lossy(&ended.stdout);
    (rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), said)
}

/// Judges rows: wrong bytes are always our fault, whatever the machine does.
fn judge(rows: &[Row], holds: bool) -> Measured {
    let has_wrong_bytes =
        rows.iter().any(|row| row.notes.iter().any(|note| note.contains("not what was sent")));
    assert!(!has_wrong_bytes, "{rows:?}");
    let spoilt = rows.iter().find(|row| corridor_lab::is_spoilt(row));
    match spoilt {
        _ if holds => Measured::Holds,
        Some(row) => Measured::Spoilt(row.notes.join("; ")),
        None => Measured::Fails(format!("{rows:?}")),
    }
}
