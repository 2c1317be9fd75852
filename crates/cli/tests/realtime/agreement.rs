//! The same scenario in the lab and in the simulator: UDP goodput within 5 %, transmissions per
//! block within 3 %. The lab runs the daemon in network namespaces; without the rights to create
//! them these tests are skipped, unless `CORRIDOR_REQUIRE_NET=1` requires them.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use corridor_lab::Options;
use corridor_scenario::{Row, Run, Scenario, expand};
use corridor_testing::realtime::{Measured, until_it_holds};

use crate::judge;
use crate::support::alone;

/// Repeats of the simulation, with whose mean the lab's run is compared.
const SIMULATED: u64 = 8;
const GOODPUT_TOLERANCE: f64 = 0.05;
const TRANSMISSIONS_TOLERANCE: f64 = 0.03;

fn can_run() -> bool {
    match corridor_lab::prepare() {
        Ok(()) => true,
        Err(reason) => {
            let required = std::env::var_os("CORRIDOR_REQUIRE_NET").is_some_and(|v| v == "1");
            assert!(!required, "CORRIDOR_REQUIRE_NET=1, but {reason}");
            println!("skipped: {reason}");
            false
        }
    }
}

fn scenario(run: &str) -> Scenario {
    let text = format!(
        "name = 'agreement'\nseed = 2014\n[medium]\nduplex = 'half'\nrate_bps = 12_000_000\n\
         overhead_us = 400\nrtt_ms = 4\nqueue_frames = 4\n[[run]]\ntransport = 'udp'\n\
         offered_bps = 10e6\ndatagram_bytes = 1400\ne3 = 0.2\nduration_s = 5\n{run}\n"
    );
    Scenario::parse(&text).expect("a test's scenario is sound")
}

/// A column's name, its tolerance, and its value in a row.
type Column = (&'static str, f64, fn(&Row) -> f64);

/// Mean of a column over simulated repeats.
fn simulated(scenario: &Scenario, run: &Run, column: impl Fn(&Row) -> f64) -> f64 {
    let rows = (0..SIMULATED).map(|replication| {
        let run = Run { replication, ..run.clone() };
        corridor_sim::run_radio(scenario, &run).expect("it can be simulated")
    });
    rows.map(|row| column(&row)).sum::<f64>() / SIMULATED as f64
}

/// Whether the lab's row agrees with the simulator's within the tolerances.
fn compare(scenario: &Scenario) -> Measured {
    let run = expand(scenario).expect("a test's scenario is sound").remove(0);
    let options = Options { binary: PathBuf::from(env!("CARGO_BIN_EXE_corridor")) };
    let lab = corridor_lab::run(scenario, &run, &options, &AtomicBool::new(false));
    let lab = lab.expect("the lab runs");
    let mut columns: Vec<Column> = vec![("goodput_bps", GOODPUT_TOLERANCE, |row| row.goodput_bps)];
    if run.path.is_coded() {
        columns.push(("transmissions_per_block", TRANSMISSIONS_TOLERANCE, |row| {
            // A node did not report its counters in time: NaN, which agrees with nothing.
            row.transmissions_per_block.unwrap_or(f64::NAN)
        }));
    }
    let agree = columns.into_iter().all(|(name, tolerance, column)| {
        let (real, virtual_) = (column(&lab), simulated(scenario, &run, column));
        let difference = real / virtual_ - 1.0;
        let (path, percent) = (run.path, 100.0 * difference);
        println!("{path}: {name} lab {real:.1} simulator {virtual_:.1} ({percent:+.1} %)");
        difference.abs() <= tolerance
    });
    judge(&[lab], agree)
}

fn agrees(run: &str) {
    if !can_run() {
        return;
    }
    let _alone = alone();
    let scenario = scenario(run);
    until_it_holds("the same scenario in lab and simulator", |_| compare(&scenario));
}

#[test]
fn the_unreliable_link() {
    agrees("path = 'plain'");
}

#[test]
fn a_coded_link() {
    agrees("path = 'coded'\ncoding = { preset = 'block' }");
}

#[test]
fn a_coded_link_with_the_papers_parameters() {
    agrees("path = 'coded'\ncoding = { preset = 'paper' }");
}

#[test]
fn a_coded_link_with_a_helper() {
    agrees("path = 'coded+helper'\ncoding = { preset = 'block' }");
}
