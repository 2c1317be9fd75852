//! The same varying paths in the lab, with this machine's kernel, and in the simulator.
//!
//! The rates begin with the load in both, so that both see the same: goodput and quantiles of the
//! delay are held against each other. Losses are drawn for each transmission, so that they differ
//! where the senders do; the mean of several replications is compared.

use core::time::Duration;
use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::AtomicBool;

use corridor_lab::Options;
use corridor_results::checks::Check;
use corridor_scenario::{Path, Row, Run, Scenario, expand};
use corridor_sim::run_line;
use serde::Serialize;

use crate::Outcome;
use crate::judge::within;

/// Most that a value may differ, of the simulator's.
const DIFFERENCE_MAX: f64 = 0.05;
/// Replications of each.
const REPLICATIONS: u64 = 3;
const WARM_UP_S: u64 = 3;
const INTERVAL_S: u64 = 12;
/// Times that a run is made whose emulator was late.
const ATTEMPTS: usize = 3;

/// Paths by name. The trace's opportunities come at 12 Mbit/s and 3 Mbit/s in turn.
const PATHS: [(&str, &str); 5] = [
    (
        "steps",
        "rate = { kind = 'steps', steps = [{ at_s = 0, rate_bps = '12M' }, { at_s = 1.5, rate_bps = \
         '4M' }], period_s = 3 }\nqueue_packets = 60",
    ),
    (
        "markov, jitter in order",
        "rate = { kind = 'markov', rates_bps = ['3M', '8M', '16M'], dwell_s = 0.4 }\nqueue_bytes = \
         60000\njitter = { kind = 'exponential', mean_ms = 2 }",
    ),
    (
        "walk, outages",
        "rate = { kind = 'walk', least_bps = '3M', most_bps = '16M', interval_ms = 100, deviation = \
         0.2 }\noutage = { up_s = 2, down_s = 0.25 }\nqueue_packets = 80",
    ),
    ("trace", "rate = { kind = 'trace', path = 'paths-lab.trace' }\nqueue_packets = 60"),
    (
        "policer",
        "rate_bps = '20M'\nqueue_packets = 60\npolicer = { rate_bps = '9M', burst_bytes = 30000 }",
    ),
];

/// Loads by name.
const LOADS: [(&str, &str); 4] = [
    ("udp", "path = 'kernel'\ntransport = 'udp'\noffered_bps = '5M'\ndatagram_bytes = 1200"),
    ("cubic", "path = 'kernel'\ntransport = 'tcp'\ncongestion = 'cubic'"),
    ("bbr", "path = 'kernel'\ntransport = 'tcp'\ncongestion = 'bbr'"),
    (
        "window, udp",
        "path = 'coded'\ncoding = { preset = 'window' }\ntransport = 'udp'\noffered_bps = '4M'\n\
         datagram_bytes = 1200",
    ),
];

/// A value in both.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Path, load, and what.
    pub name: String,
    /// Means of the replications.
    pub lab: f64,
    pub simulated: f64,
    /// Of them.
    pub ratio: f64,
}

/// The trace: 1.5 s at 12 Mbit/s, then as long at 3 Mbit/s.
fn trace() -> String {
    let fast = (1..=1_500_u32).map(|ms| (ms, 1));
    let slow = (1_501..=3_000_u32).filter(|ms| ms.is_multiple_of(4)).map(|ms| (ms, 1));
    fast.chain(slow).map(|(ms, _)| format!("{ms}\n")).collect()
}

/// Compares all, and says what was compared; an error that begins with "absent:" where this
/// machine has no namespaces.
pub fn compare(seed: u64) -> Outcome<(Vec<Pair>, Vec<Check>)> {
    corridor_lab::prepare().map_err(|error| format!("absent: the lab: {error}"))?;
    let directory = std::env::temp_dir().join(format!("bench-paths-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("paths-lab.trace"), trace())?;
    let compared = compare_in(&directory, seed);
    fs::remove_dir_all(&directory)?;
    compared
}

fn compare_in(directory: &FilePath, seed: u64) -> Outcome<(Vec<Pair>, Vec<Check>)> {
    let binary = node();
    if binary.is_none() {
        println!("absent: no corridor beside this program, or in CORRIDOR_BIN: no tunnels");
    }
    let (mut pairs, mut checks) = (Vec::new(), Vec::new());
    for (path_name, path) in PATHS {
        for (load_name, load) in LOADS {
            let text = format!(
                "name = 'lab'\nseed = {seed}\n[line]\ndelay_ms = 10\n{path}\n[[run]]\nunderlay = \
                 'udp'\ne3 = 0\nduration_s = {INTERVAL_S}\nwarm_up_s = {WARM_UP_S}\n{load}\n"
            );
            let file = directory.join("scenario.toml");
            fs::write(&file, text)?;
            let (_, scenario) = Scenario::load(&file)?;
            let run = expand(&scenario)?.remove(0);
            if binary.is_none() && run.path != Path::Kernel {
                continue;
            }
            let name = format!("{path_name}: {load_name}");
            let Some(found) = pairs_of(&name, &scenario, &run, binary.as_ref())? else {
                println!("absent: {name}: the machine was too busy {ATTEMPTS} times");
                continue;
            };
            for pair in found {
                let Pair { name, lab, simulated, ratio } = &pair;
                println!("{name}: lab {lab:.4}, simulated {simulated:.4}, ratio {ratio:.3}");
                checks.push(within(&format!("lab: {name}"), *ratio, DIFFERENCE_MAX));
                pairs.push(pair);
            }
        }
    }
    Ok((pairs, checks))
}

/// The daemon's program.
fn node() -> Option<PathBuf> {
    let named = std::env::var_os("CORRIDOR_BIN").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("corridor"));
    named.or_else(beside).filter(|path| path.exists())
}

/// A value by its name, and where a row has it.
type Value = (&'static str, fn(&Row) -> Option<f64>);

/// What is compared of a row.
const VALUES: [Value; 3] = [
    ("goodput, Mbit/s", |row| Some(row.goodput_bps / 1e6)),
    ("delay p50, ms", |row| row.delays.delay_p50_s.map(|s| 1e3 * s)),
    ("delay p95, ms", |row| row.delays.delay_p95_s.map(|s| 1e3 * s)),
];

fn pairs_of(
    name: &str,
    scenario: &Scenario,
    run: &Run,
    binary: Option<&PathBuf>,
) -> Outcome<Option<Vec<Pair>>> {
    let mut sums = [[0.0; 2]; VALUES.len()];
    for replication in 0..REPLICATIONS {
        let run = Run { replication, ..run.clone() };
        let (simulated, _) = run_line(scenario, &run, Duration::from_secs(WARM_UP_S))?;
        let Some(lab) = in_lab(scenario, &run, binary)? else { return Ok(None) };
        for (sum, (_, value)) in sums.iter_mut().zip(VALUES) {
            for (sum, row) in sum.iter_mut().zip([&lab, &simulated]) {
                *sum += value(row).unwrap_or(f64::NAN) / REPLICATIONS as f64;
            }
        }
    }
    let pair = |([lab, simulated], (what, _)): ([f64; 2], Value)| Pair {
        name: format!("{name}, {what}"),
        lab,
        simulated,
        ratio: lab / simulated,
    };
    Ok(Some(sums.into_iter().zip(VALUES).map(pair).collect()))
}

/// A run of the lab's that can be trusted; `None` where the machine is too busy for one.
fn in_lab(scenario: &Scenario, run: &Run, binary: Option<&PathBuf>) -> Outcome<Option<Row>> {
    let binary = binary.cloned().unwrap_or_default();
    let options = Options { binary };
    for _ in 0..ATTEMPTS {
        let row = corridor_lab::run(scenario, run, &options, &AtomicBool::new(false))?;
        if row.valid {
            return Ok(Some(row));
        }
    }
    Ok(None)
}
