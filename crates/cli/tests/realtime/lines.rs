//! A line whose rate varies behaves alike in the lab and in the simulator.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use corridor_lab::Options;
use corridor_scenario::{Row, Scenario, expand};
use corridor_testing::realtime::{Measured, until_it_holds};

use crate::judge;
use crate::support::alone;

/// Largest difference of goodput and of delay quantiles.
const TOLERANCE: f64 = 0.05;

/// Whether lab and simulator agree.
fn compare(scenario: &Scenario) -> Measured {
    let run = expand(scenario).expect("a test's scenario is sound").remove(0);
    let options = Options { binary: PathBuf::from(env!("CARGO_BIN_EXE_corridor")) };
    let lab = corridor_lab::run(scenario, &run, &options, &AtomicBool::new(false));
    let lab = lab.expect("the lab runs");
    let (simulated, _) = corridor_sim::run_line(scenario, &run, run.lab.warm_up).expect("it can");
    let ms = |seconds: Option<f64>| 1e3 * seconds.expect("packets came");
    let values = |row: &Row| {
        let delays = &row.delays;
        [row.goodput_bps, ms(delays.delay_p50_s), ms(delays.delay_p95_s)]
    };
    let pairs = values(&lab).into_iter().zip(values(&simulated));
    let agree = pairs.zip(["goodput", "p50", "p95"]).all(|((lab, simulated), name)| {
        println!("{name}: lab {lab:.2}, simulator {simulated:.2}");
        (lab / simulated - 1.0).abs() <= TOLERANCE
    });
    judge(&[lab], agree)
}

fn agree(line: &str, run: &str) {
    if let Err(reason) = corridor_lab::prepare() {
        let required = std::env::var_os("CORRIDOR_REQUIRE_NET").is_some_and(|v| v == "1");
        assert!(!required, "CORRIDOR_REQUIRE_NET=1, but {reason}");
        println!("skipped: {reason}");
        return;
    }
    let _alone = alone();
    let scenario = Scenario::parse(&format!(
        "name = 'lines'\nseed = 2014\n[line]\ndelay_ms = 10\n{line}\n[[run]]\nunderlay = 'udp'\n\
         transport = 'udp'\ndatagram_bytes = 1200\ne3 = 0\nduration_s = 4\n{run}\n"
    ));
    let scenario = scenario.expect("a test's scenario is sound");
    until_it_holds("a line in lab and simulator", |_| compare(&scenario));
}

/// Opportunities at 12 Mbit/s for half a second, then at 3 Mbit/s.
fn trace() -> PathBuf {
    let fast = 1..=500;
    let slow = (501..=1_000).filter(|ms| ms % 4 == 0);
    let text: String = fast.chain(slow).map(|ms: u32| format!("{ms}\n")).collect();
    let name = format!("corridor-lines-{}.trace", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path
}

#[test]
fn a_trace_gives_the_same_opportunities() {
    let path = trace();
    let line = format!("rate = {{ kind = 'trace', path = {path:?} }}\nqueue_packets = 60");
    // More than its mean rate, so that all opportunities are used.
    agree(&line, "path = 'kernel'\noffered_bps = '8M'");
    std::fs::remove_file(path).expect("it was there");
}

#[test]
fn random_rates_are_the_same() {
    let line = "rate = { kind = 'markov', rates_bps = ['3M', '8M', '16M'], dwell_s = 0.3 }\n\
                queue_packets = 60";
    agree(line, "path = 'kernel'\noffered_bps = '6M'");
}

/// What passes the policer waits during outages, in a queue bounded in bytes.
#[test]
fn a_policer_and_outages_are_the_same() {
    let line = "rate_bps = '10M'\nqueue_bytes = 60000\n\
                policer = { rate_bps = '6M', burst_bytes = 30000 }\n\
                outage = { up_s = 0.7, down_s = 0.1 }";
    agree(line, "path = 'kernel'\noffered_bps = '8M'");
}

/// The forward direction is the narrow one, and packets that would wait too long are dropped.
#[test]
fn ways_that_differ_and_queues_in_time_are_the_same() {
    let line = "rate_bps = '10M'\nqueue_ms = 40\nforward = { rate_bps = '3M' }";
    agree(line, "path = 'kernel'\noffered_bps = '5M'");
}
