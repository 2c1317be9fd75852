//! Names the commit in `--version`. Runs again when the commit changes, and not else.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Commit of a build without a repository: packages set it.
const COMMIT_VARIABLE: &str = "CORRIDOR_COMMIT";
/// Digits of a commit that are shown.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={COMMIT_VARIABLE}");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match env::var(COMMIT_VARIABLE).ok().or_else(commit) {
        Some(commit) => format!("{version} ({})", commit.chars().take(DIGITS).collect::<String>()),
        None => version,
    };
    println!("cargo::rustc-env=CORRIDOR_VERSION={version}");
}

/// The commit that git says, if this is a repository and there is a git.
fn commit() -> Option<String> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(&here).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    // HEAD names a branch or a commit; its log gets a line with every commit.
    for name in ["HEAD", "logs/HEAD"] {
        // git answers relative to where it was asked. What is not there would run this every time.
        let path = here.join(git(&["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"])
}
