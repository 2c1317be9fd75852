//! The small commands, and what all commands have in common: errors, exit codes, help; and README,
//! whose commands are run as they are.

mod errors;
mod keys;
mod readme;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Root of the repository.
fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `corridor` with these arguments in a directory.
fn corridor(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
    command.current_dir(directory).env_remove("CORRIDOR_LOG").args(words);
    command.output().expect("corridor starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_key_is_fresh_and_its_owner_s_alone() {
    let place = tempfile::tempdir().expect("a place");
    let keys = [0, 1].map(|_| stdout(&corridor(place.path(), &["genpsk"])));
    assert_ne!(keys[0], keys[1]);
    for key in &keys {
        let digits = key.strip_suffix('\n').expect("a line");
        assert!(digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }
    let made = corridor(place.path(), &["genpsk", "--out", "corridor.key"]);
    assert!(made.status.success() && made.stdout.is_empty(), "{}", stderr(&made));
    let file = place.path().join("corridor.key");
    let key = fs::read_to_string(&file).expect("the key");
    assert_eq!(key.trim_end().len(), 64);
    assert_eq!(fs::metadata(&file).expect("the key").permissions().mode() & 0o777, 0o600);
    // An existing key is not overwritten.
    let again = corridor(place.path(), &["genpsk", "--out", "corridor.key"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("cannot write corridor.key: File exists"));
    assert_eq!(fs::read_to_string(&file).expect("the key"), key);
}

#[test]
fn a_key_in_a_file_that_all_can_read_is_warned_of() {
    let place = tempfile::tempdir().expect("a place");
    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        let file = fs::File::create(place.path().join("key")).expect("a file");
        file.set_permissions(fs::Permissions::from_mode(mode)).expect("permissions");
        let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
        let made = command.arg("genpsk").stdout(file).output().expect("corridor starts");
        assert_eq!(stderr(&made).contains("chmod 600"), is_warned, "{}", stderr(&made));
    }
}

/// `corridor pubkey` with this standard input.
fn pubkey(input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
    command.arg("pubkey").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("corridor starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_private_key_has_a_public_one_and_is_its_owner_s_alone() {
    // RFC 7748, Section 6.1.
    let public = pubkey("XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os=\n");
    assert_eq!(stdout(&public), "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=\n");
    let place = tempfile::tempdir().expect("a place");
    let keys = [0, 1].map(|_| stdout(&corridor(place.path(), &["genkey"])));
    assert_ne!(keys[0], keys[1]);
    let publics = keys.each_ref().map(|key| stdout(&pubkey(key)));
    assert!(publics.iter().chain(&keys).all(|key| key.len() == 45 && key.ends_with("=\n")));
    assert_ne!(publics[0], publics[1]);
    let made = corridor(place.path(), &["genkey", "--out", "own.key"]);
    assert!(made.status.success() && made.stdout.is_empty(), "{}", stderr(&made));
    let file = place.path().join("own.key");
    assert_eq!(fs::metadata(&file).expect("the key").permissions().mode() & 0o777, 0o600);
    for wrong in ["", "abc", &keys[0][..40]] {
        let refused = pubkey(wrong);
        assert_eq!((refused.status.code(), &*stdout(&refused)), (Some(1), ""));
        assert!(stderr(&refused).ends_with("expected 44 characters of base64\n"));
    }
}

#[test]
fn completions_are_ones_that_shells_take() {
    let place = tempfile::tempdir().expect("a place");
    for shell in ["bash", "zsh", "fish"] {
        let text = stdout(&corridor(place.path(), &["completions", shell]));
        assert!(text.contains("check-config") && text.contains("stats-file"), "{shell}: {text}");
        let file = place.path().join(shell);
        fs::write(&file, &text).expect("a file");
        // If the shell is installed, it checks the script's syntax.
        if let Ok(read) = Command::new(shell).arg("-n").arg(&file).output() {
            assert!(read.status.success(), "{shell}: {}", stderr(&read));
        }
    }
}

#[test]
fn every_verb_has_a_page_of_the_manual() {
    let place = tempfile::tempdir().expect("a place");
    let written = corridor(place.path(), &["man", "--out", "man1"]);
    assert!(written.status.success(), "{}", stderr(&written));
    let page = |name: &str| {
        fs::read_to_string(place.path().join("man1").join(format!("{name}.1"))).expect(name)
    };
    let whole = page("corridor");
    assert_eq!(stdout(&corridor(place.path(), &["man"])), whole);
    assert!(whole.contains(".TH corridor 1") && whole.contains("Exit codes"), "{whole}");
    let help = stdout(&corridor(place.path(), &["help"]));
    let (_, verbs) = help.split_once("Commands:\n").expect("verbs");
    let verbs = verbs.lines().take_while(|line| !line.is_empty());
    // A command's description may take several lines.
    let verbs = verbs.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.contains(&"up") && verbs.contains(&"genpsk"), "{help}");
    for verb in verbs.iter().filter(|verb| **verb != "help") {
        assert!(page(&format!("corridor-{verb}")).contains(".SH SYNOPSIS"), "{verb}");
    }
    assert!(page("corridor-up").contains("stats\\-file"));
    assert!(page("corridor-sim-run").contains("PLAN.toml"));
}

#[test]
fn the_version_names_the_commit() {
    let said = stdout(&corridor(&top(), &["--version"]));
    let version = said.strip_prefix("corridor ").expect("its name").trim_end();
    let head = Command::new("git").current_dir(top()).args(["rev-parse", "HEAD"]).output();
    let head = head.ok().filter(|output| output.status.success()).map(|head| stdout(&head));
    let commit = std::env::var("CORRIDOR_COMMIT").ok().or(head);
    match commit {
        None => assert_eq!(version, env!("CARGO_PKG_VERSION")),
        Some(commit) => {
            let short: String = commit.trim().chars().take(12).collect();
            assert_eq!(version, format!("{} ({short})", env!("CARGO_PKG_VERSION")));
        }
    }
}
