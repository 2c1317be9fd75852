//! Identifies the sources that results depend on: the commit, and a hash of the code without
//! comments. Results of changed code are thus never taken for those of the old code, while a
//! changed comment does not invalidate results.

#[path = "build/identity.rs"]
mod identity;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use identity::{CRATES, Identity};

/// Commit of a build without a repository.
const COMMIT_VARIABLE: &str = "CORRIDOR_COMMIT";

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let identity = Identity::of(&here, &CRATES);
    println!("cargo::rustc-env=CORRIDOR_CODE_VERSION={}", identity.digits());
    println!("cargo::rustc-env=CORRIDOR_COMMIT={}", commit(&here));
}

/// The commit, from the environment or from git.
fn commit(here: &Path) -> String {
    println!("cargo::rerun-if-env-changed={COMMIT_VARIABLE}");
    if let Ok(commit) = env::var(COMMIT_VARIABLE) {
        return commit;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(here).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            // git's answer is relative to the directory that it runs in.
            let path = here.join(path);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned())
}
