//! Copies the experiments to cargo's output directory, from where they go into the wheel:
//! `tool.maturin.include` in pyproject.toml.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The experiments, from the directory of this crate.
const EXPERIMENTS: &str = "../../experiments";
/// The proofs of claims that cannot hold, shipped with them.
const ERRATA: &str = "../../docs/errata.md";

fn main() {
    println!("cargo::rerun-if-changed={EXPERIMENTS}");
    println!("cargo::rerun-if-changed={ERRATA}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("experiments");
    // Deleted files must not stay in the wheel.
    let removed = if out.exists() { fs::remove_dir_all(&out) } else { Ok(()) };
    if let Err(error) = removed.and_then(|()| copy(Path::new(EXPERIMENTS), &out)) {
        panic!("experiments = {EXPERIMENTS}: expected a folder that can be copied: {error}");
    }
    if let Err(error) = fs::copy(ERRATA, out.join("errata.md")) {
        panic!("errata = {ERRATA}: expected a file that can be copied: {error}");
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &place)?;
        } else {
            fs::copy(&path, &place)?;
        }
    }
    Ok(())
}
