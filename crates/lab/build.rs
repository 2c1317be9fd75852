//! Identifies the code that the lab's results depend on: a hash of the sources of the lab, of its
//! nodes, and of what they share with simulations.

#[path = "../sim/build/identity.rs"]
mod identity;

use std::env;
use std::path::PathBuf;

use identity::{CRATES, Identity};

/// Crates that results depend on, besides those of simulations.
const OWN: [&str; 2] = ["node", "lab"];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let identity = Identity::of(&here, &[CRATES.as_slice(), &OWN].concat());
    println!("cargo::rustc-env=CORRIDOR_CODE_VERSION={}", identity.digits());
}
