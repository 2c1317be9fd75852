//! Checks that a benchmark accepts the arguments of its `make` target.

use std::path::Path;
use std::process::Command;

use clap::Parser;

/// Lets a program's command line parse what `make TARGET` would run, with these variables set.
pub(crate) fn reads<Arguments: Parser>(program: &str, target: &str, variables: &[&str]) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut make = Command::new("make");
    make.args(["--dry-run", "--always-make", "--no-print-directory", target]).args(variables);
    make.current_dir(top).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let output = make.output().expect("make");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).replace("\\\n", " ");
    let typed: Vec<Vec<&str>> =
        said.lines().map(|line| line.split_whitespace().collect()).collect();
    let is_ours = |words: &&Vec<&str>| {
        words.first().is_some_and(|first| first.ends_with(&format!("/{program}")))
    };
    let words = typed.iter().find(is_ours).unwrap_or_else(|| panic!("no {program} in {said}"));
    if let Err(error) = Arguments::try_parse_from(words) {
        panic!("make {target}: {error}");
    }
}
