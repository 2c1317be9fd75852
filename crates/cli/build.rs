//! Provides the commit for `--version`. Runs again only when the commit changes.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Commit of a build outside a repository: packages set it.
const COMMIT_VARIABLE: &str = "CORRIDOR_COMMIT";
/// Number of digits of the commit that are shown.
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

/// The commit according to git, if this is a repository and git is installed.
fn commit() -> Option<String> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(&here).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    // HEAD names a branch or a commit; its log gets a line with every commit.
    for name in ["HEAD", "logs/HEAD"] {
        // git answers relative to its working directory. A missing file would run this script every
        // time.
        let path = here.join(git(&["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"])
}
