//! Names the sources that results depend on: the commit, and a hash of what the files say, so that
//! results of changed code are never taken for its results, and a comment makes no others.

#[path = "build/identity.rs"]
mod identity;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use identity::{CRATES, Identity};

/// Commit of a build without a repository.
const COMMIT_VARIABLE: &str = "CORRIDOR_COMMIT";

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    for name in CRATES {
        let directory = here.join("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", directory.display());
        collect(&directory, &mut files);
    }
    let lock = here.join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    files.push(lock);
    files.sort();
    let mut identity = Identity::new();
    for file in files {
        // A package on its own lacks the other crates: their versions are then in its manifest.
        let bytes = fs::read(&file).unwrap_or_default();
        identity.add(&file.file_name().unwrap_or_default().to_string_lossy(), &bytes);
    }
    println!("cargo::rustc-env=CORRIDOR_CODE_VERSION={}", identity.digits());
    println!("cargo::rustc-env=CORRIDOR_COMMIT={}", commit(&here));
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
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
            // git answers relative to where it was asked.
            let path = here.join(path);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".to_owned())
}
