//! Names what the lab's results depend on: a hash of what the sources say of the lab, its nodes,
//! and what they share with simulations.

#[path = "../sim/build/identity.rs"]
mod identity;

use std::env;
use std::path::PathBuf;

use identity::{CRATES, Identity};

/// Crates whose code results depend on beside those of simulations.
const OWN: [&str; 2] = ["node", "lab"];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let identity = Identity::of(&here, &[CRATES.as_slice(), &OWN].concat());
    println!("cargo::rustc-env=CORRIDOR_CODE_VERSION={}", identity.digits());
}
