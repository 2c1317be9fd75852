//! `bench-core`: the core's guarantees, in virtual time: successive secrets, handshake floods,
//! sessions over a path that loses nine of ten frames, frames from spoofed addresses, and the
//! division of memory and sources.
//!
//! Writes the measurements, and `checks`: name, value, limit, and whether it holds. Exits with 1 if
//! one does not hold.

mod cost;
mod flood;
mod memory;
mod net;
mod places;
mod rekey;
mod scene;
mod sessions;
mod structure;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use corridor_bench::frame::{self, Outcome};
use corridor_results::checks::Check;
use serde::Serialize;

/// With this many, chance affects the cost of rekeying by a millisecond or two (see
/// [`rekey::measure`]).
const SEEDS: &str = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20";

/// Measures the core's guarantees.
#[derive(Debug, Parser)]
#[command(name = "bench-core")]
struct Arguments {
    /// Seconds of packets with and without rekeying.
    #[arg(long, default_value_t = 60)]
    rekey_seconds: u64,
    /// Seeds for that.
    #[arg(long, value_delimiter = ',', default_value = SEEDS)]
    seeds: Vec<u64>,
    /// Seconds of each flood.
    #[arg(long, default_value_t = 8)]
    flood_seconds: u64,
    /// Pairs of each kind that connect over a lossy path.
    #[arg(long, default_value_t = 500)]
    sessions: usize,
    /// Root of the sources to count.
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// The file to write.
    #[arg(long, default_value = "out/bench/core.json")]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    checks: Vec<Check>,
    rekey: Vec<rekey::Run>,
    floods: Vec<flood::Flood>,
    costs: cost::Costs,
    copied: places::Copied,
    insider: places::Insider,
    sessions: Vec<sessions::Kind>,
    memory: Vec<memory::Share>,
    structure: structure::Structure,
}

fn main() -> ExitCode {
    frame::exit("bench-core", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    let mut checks = Vec::new();
    let rekey = rekey::measure(arguments.rekey_seconds, &arguments.seeds, &mut checks);
    let floods = flood::measure(arguments.flood_seconds, &mut checks);
    let copied = places::copied(&mut checks);
    let insider = places::insider(&mut checks);
    let sessions = sessions::measure(arguments.sessions, &mut checks);
    let memory = memory::measure(&mut checks);
    let structure = structure::measure(Path::new(&arguments.root), &mut checks)?;
    let costs = cost::measure();
    let holds = frame::say(&checks);
    let report = Report {
        schema: 1,
        checks,
        rekey,
        floods,
        costs,
        copied,
        insider,
        sessions,
        memory,
        structure,
    };
    frame::write_report(&arguments.out, &report)?;
    Ok(holds)
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-core", "bench-core", &[]);
    }
}
