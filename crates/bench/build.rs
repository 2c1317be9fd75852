//! Tells the program how it was built: a result without this cannot be reproduced.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    println!("cargo::rustc-env=BENCH_RUSTC={}", version.unwrap_or_default());
    println!("cargo::rustc-env=BENCH_RUSTFLAGS={flags}");
    // The directory above `build` is named after the profile; PROFILE is the one it inherits from.
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let profile = out.ancestors().nth(3).and_then(Path::file_name).unwrap_or_default();
    println!("cargo::rustc-env=BENCH_PROFILE={}", profile.display());
    println!("cargo::rerun-if-changed=build.rs");
}
