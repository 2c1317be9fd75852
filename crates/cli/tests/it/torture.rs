//! `corridor sim torture`: the same result with any number of jobs; failures are reported, shrunk,
//! and can be replayed.

use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn torture(arguments: &[&str]) -> Output {
    command(arguments).output().expect("corridor starts")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
    command.args(["sim", "torture"]).args(arguments);
    command
}

fn result(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

/// The scenario of a seed with a fault in station 1, as `--scenario` takes it.
fn planted(seed: u64, fault: &str) -> String {
    let drawn = corridor_torture::Scenario::draw(seed);
    let scenario = corridor_torture::Scenario { mesh: None, ..drawn };
    let mut scenario = serde_json::to_value(scenario).expect("plain numbers and names");
    scenario["plant"] = serde_json::json!({ "fault": fault, "station": 1, "after": 3 });
    scenario.to_string()
}

#[test]
fn the_result_does_not_depend_on_the_number_of_jobs() {
    let results = ["1", "2", "5"].map(|jobs| {
        let output = torture(&["--seeds", "60", "--first", "7", "--jobs", jobs, "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut result = result(&output);
        assert!(result["time"]["seed_cpu"]["p50_s"].as_f64() > Some(0.0), "{result}");
        result["result"].take()
    });
    assert_eq!(results[0]["seeds"], 60);
    assert!(results[0]["coverage"]["packets_delivered"]["seeds"].as_u64() > Some(10));
    assert!(results.iter().all(|other| *other == results[0]), "{results:?}");
}

#[test]
fn a_failure_is_made_small_and_replayed_by_what_is_printed() {
    let output = torture(&["--scenario", &planted(3, "panics"), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let first = result(&output);
    let violation = &first["result"]["failures"][0]["violation"];
    assert_eq!(violation["invariant"], "panic");
    let text = violation["text"].as_str().expect("text");
    assert!(text.contains("subject.rs:"), "no place in {text}");
    let shrunk = &first["shrunk"][0];
    let replay = shrunk["replay"].as_str().expect("a command");
    let start = "corridor sim torture --scenario '";
    let scenario = replay.strip_prefix(start).and_then(|rest| rest.strip_suffix("' -v"));
    let output = torture(&["--scenario", scenario.expect("one command"), "-v"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("station 1 starts") && said.contains("a planted panic"), "{said}");
    assert!(said.contains("replay: corridor sim torture --scenario"), "{said}");
}

#[test]
fn a_seed_alone_tells_what_happens_when_asked() {
    let output = torture(&["--seed", "4", "-v"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("the network calms down") && said.contains(" hears "), "{said}");
    let quiet = torture(&["--seed", "4"]);
    assert!(!String::from_utf8_lossy(&quiet.stdout).contains(" hears "));
}

#[test]
fn a_scenario_that_cannot_be_is_refused_with_the_field() {
    let with = |old: &str, new: &str| planted(4, "panics").replacen(old, new, 1);
    let cases = [
        ("{".to_owned(), "EOF"),
        (with("\"seed\"", "\"sead\""), "sead"),
        (with("\"station\":1", "\"station\":99"), "a station is 99, expected 0 to"),
    ];
    for (scenario, expected) in cases {
        let output = torture(&["--scenario", &scenario]);
        assert_eq!(output.status.code(), Some(2), "{scenario}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn ctrl_c_reports_what_was_done() {
    let mut torture = command(&["--seeds", "100000000", "--jobs", "2", "--json"]);
    let child = torture.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.expect("corridor starts");
    // Once the workers exist, the signal is caught: the main thread, the one that waits for
    // signals, two jobs.
    let tasks = format!("/proc/{}/task", child.id());
    while std::fs::read_dir(&tasks).expect("tasks").count() < 4 {
        std::thread::yield_now();
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    let result = result(&output);
    assert!(result["result"]["seeds"].as_u64() < Some(100_000_000), "{result}");
}
