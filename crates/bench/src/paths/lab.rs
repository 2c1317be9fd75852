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
use corridor_results::Estimate;
use corridor_results::checks::Check;
use corridor_scenario::{Path, Row, Run, Scenario, expand};
use corridor_sim::run_line_drawn;
use serde::Serialize;

use crate::Outcome;
use crate::judge::within;

/// Most that a value may differ, of the simulator's.
const DIFFERENCE_MAX: f64 = 0.05;
/// Draws of each in the simulator: where BBR's cycles begin is drawn, and no run of the kernel's
/// tells. That is cheap here, and leaves the interval to the lab's own spread.
const DRAWS: u64 = 8;
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
    /// 95 % interval of the ratio, from the replications' differences; `None` for a single one.
    pub interval: Option<[f64; 2]>,
}

/// What is compared, and how often.
#[derive(Clone, Debug)]
pub struct Asked {
    pub seed: u64,
    pub replications: u64,
    /// Only names that have this in them.
    pub only: String,
}

/// The trace: 1.5 s at 12 Mbit/s, then as long at 3 Mbit/s.
fn trace() -> String {
    let fast = (1..=1_500_u32).map(|ms| (ms, 1));
    let slow = (1_501..=3_000_u32).filter(|ms| ms.is_multiple_of(4)).map(|ms| (ms, 1));
    fast.chain(slow).map(|(ms, _)| format!("{ms}\n")).collect()
}

/// Compares all, and says what was compared; an error that begins with "absent:" where this
/// machine has no namespaces.
pub fn compare(asked: &Asked) -> Outcome<(Vec<Pair>, Vec<Check>)> {
    corridor_lab::prepare().map_err(|error| format!("absent: the lab: {error}"))?;
    let directory = std::env::temp_dir().join(format!("bench-paths-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("paths-lab.trace"), trace())?;
    let compared = compare_in(&directory, asked);
    fs::remove_dir_all(&directory)?;
    compared
}

fn compare_in(directory: &FilePath, asked: &Asked) -> Outcome<(Vec<Pair>, Vec<Check>)> {
    let binary = node();
    if binary.is_none() {
        println!("absent: no corridor beside this program, or in CORRIDOR_BIN: no tunnels");
    }
    let (mut pairs, mut checks) = (Vec::new(), Vec::new());
    for (path_name, path) in PATHS {
        for (load_name, load) in LOADS {
            let name = format!("{path_name}: {load_name}");
            if !name.contains(&asked.only) {
                continue;
            }
            let seed = asked.seed;
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
            let runs =
                (0..asked.replications).map(|replication| Run { replication, ..run.clone() });
            let Some(found) = pairs_of(&name, &scenario, runs, binary.as_ref())? else {
                println!("absent: {name}: the machine was too busy {ATTEMPTS} times");
                continue;
            };
            for pair in found {
                println!("{}", pair.line());
                checks.push(within(&format!("lab: {}", pair.name), pair.ratio, DIFFERENCE_MAX));
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
    runs: impl Iterator<Item = Run>,
    binary: Option<&PathBuf>,
) -> Outcome<Option<Vec<Pair>>> {
    let mut both = Vec::new();
    for run in runs {
        let simulate = |draw| run_line_drawn(scenario, &run, Duration::from_secs(WARM_UP_S), draw);
        let simulated = (0..DRAWS).map(|draw| Ok(simulate(draw)?.0)).collect::<Outcome<_>>()?;
        let Some(lab) = in_lab(scenario, &run, binary)? else { return Ok(None) };
        both.push(Both { lab, simulated });
    }
    let pair = |(what, value): Value| Pair::of(format!("{name}, {what}"), &both, value);
    Ok(Some(VALUES.into_iter().map(pair).collect()))
}

/// A replication in the lab, and its draws in the simulator.
struct Both {
    lab: Row,
    simulated: Vec<Row>,
}

impl Pair {
    fn of(name: String, both: &[Both], value: fn(&Row) -> Option<f64>) -> Self {
        let mean = |values: &[f64]| Estimate::of(values).map_or(f64::NAN, |all| all.mean);
        let known = |row: &Row| value(row).unwrap_or(f64::NAN);
        let labs: Vec<f64> = both.iter().map(|both| known(&both.lab)).collect();
        let simulated = |both: &Both| mean(&both.simulated.iter().map(known).collect::<Vec<_>>());
        let simulations: Vec<f64> = both.iter().map(simulated).collect();
        let [lab, simulated] = [mean(&labs), mean(&simulations)];
        let ratio = lab / simulated;
        // Of a ratio of means, by the deviations from it (Cochran, "Sampling Techniques", 6.3).
        let deviations = labs.iter().zip(&simulations).map(|(lab, other)| lab - ratio * other);
        let deviations = Estimate::of(&deviations.collect::<Vec<_>>());
        let half_width = deviations.and_then(|all| all.half_width).map(|half| half / simulated);
        let interval = half_width.map(|half| [ratio - half, ratio + half]);
        Pair { name, lab, simulated, ratio, interval }
    }

    fn line(&self) -> String {
        let Pair { name, lab, simulated, ratio, interval } = self;
        let known = interval.map(|[low, high]| format!(" ({low:.3} to {high:.3})"));
        let known = known.unwrap_or_default();
        format!("{name}: lab {lab:.4}, simulated {simulated:.4}, ratio {ratio:.3}{known}")
    }
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
