//! `corridor sim trace` from outside: files, limits, and errors of invalid arguments.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const PLAN: &str = "name = 'two/points'\nseed = 7\n[medium]\nduplex = 'half'\n\
    rate_bps = 12000000\nrtt_ms = 4\nqueue_frames = 4\n[[run]]\npath = ['coded', 'plain']\n\
    transport = 'udp'\noffered_bps = 1e6\ne3 = 0.2\nduration_s = 0.2\n";

fn trace(directory: &Path, arguments: &[&str]) -> Output {
    fs::write(directory.join("plan.toml"), PLAN).expect("a file");
    Command::new(env!("CARGO_BIN_EXE_corridor"))
        .current_dir(directory)
        .args(["sim", "trace", "plan.toml"])
        .args(arguments)
        .output()
        .expect("corridor starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_capture_is_named_after_what_it_is_of_and_the_same_each_time() {
    let directory = tempfile::tempdir().expect("a place");
    let output = trace(directory.path(), &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("two-points-0-0.pcapng: "), "{}", said(&output));
    let first = fs::read(directory.path().join("two-points-0-0.pcapng")).expect("the capture");
    let comment = b"two/points, point 0, replication 0, seed 7";
    assert!(first.windows(comment.len()).any(|bytes| bytes == comment));

    let other = |arguments: &[&str]| {
        let output = trace(directory.path(), &[arguments, &["--out", "other.pcapng"]].concat());
        assert!(output.status.success(), "{}", said(&output));
        fs::read(directory.path().join("other.pcapng")).expect("the capture")
    };
    assert_eq!(other(&[]), first);
    assert_ne!(other(&["--only", "1"]), first);
    assert_ne!(other(&["--replication", "3"]), first);
    let few = other(&["--limit-frames", "20"]);
    assert_eq!(first[..few.len()], few);
    let late = other(&["--from", "0.5", "--until", "0.75"]);
    assert!(late.len() < first.len() / 2 && late.len() > 1_000);
}

#[test]
fn what_cannot_be_is_told_with_what_can() {
    let directory = tempfile::tempdir().expect("a place");
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let output = trace(directory.path(), arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    refused(&["--only", "2"], 2, "--only 2: expected 0 to 1");
    refused(&["--from", "2", "--until", "1"], 2, "--until 1: expected a time after --from 2");
    refused(&["--from", "soon"], 2, "expected seconds");
    refused(&["--from", "-1"], 2, "--from");
    refused(&["--limit-frames", "0"], 2, "--limit-frames");
    refused(&["--out", "missing/file"], 1, "cannot write missing/file");
    refused(&["--out", "/dev/full"], 1, "cannot write /dev/full");
}
