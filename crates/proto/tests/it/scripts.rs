//! Tricky exchanges as readable scripts: `scripts/*.txt`, each naming the section that it tests.
//!
//! A script is a list of steps; each step is lines of commands (see `script/mod.rs`), a line of
//! `----`, and the expected trace, up to an empty line. `CORRIDOR_REWRITE=1` writes the traces as
//! they are now; review the difference before keeping it.

#[allow(dead_code)]
use std::fs;
use std::path::Path;

use crate::script::Script;

/// Runs a script; returns it with the actual traces.
fn replay(text: &str) -> String {
    let mut script = Script::new();
    let mut told = String::new();
    for step in text.split("\n\n") {
        let Some((commands, _)) = step.split_once("\n----") else {
            told += step.trim_end();
            told += "\n\n";
            continue;
        };
        let is_command = |line: &&str| !line.starts_with('#');
        let lines: Vec<&str> = commands.lines().filter(is_command).collect();
        told += commands.trim_end();
        told += "\n----\n";
        told += &script.run(&lines.join("\n"));
        told.push('\n');
    }
    told.trim_end().to_owned() + "\n"
}

#[test]
fn every_script_plays_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut failed = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("# ") && text.contains("Section"), "{path:?} names no section");
        let told = replay(&text);
        if told == text {
            continue;
        }
        if std::env::var_os("CORRIDOR_REWRITE").is_some() {
            fs::write(&path, &told).unwrap();
        } else {
            failed.push(format!("{}:\n{}", path.display(), difference(&text, &told)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The first lines that differ.
fn difference(expected: &str, told: &str) -> String {
    let pairs = expected.lines().zip(told.lines()).enumerate();
    let differing = pairs.filter(|(_, (expected, told))| expected != told).take(5);
    let lines = differing
        .map(|(line, (expected, told))| format!("line {}: {expected:?}, but {told:?}", line + 1));
    lines.collect::<Vec<_>>().join("\n")
}
