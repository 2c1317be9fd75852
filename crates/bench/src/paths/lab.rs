//! Compares varying paths in the lab, with this machine's kernel, and in the simulator.
//!
//! A replication's rates and outages are drawn identically and begin with the load in both, so that
//! both see the same, whatever the load, with or without a tunnel: goodput and delay quantiles are
//! compared. Jitter and losses are drawn per transmission, so they differ where the senders do: the
//! lab has one draw of them, the simulator several. Each replication has its own delay, the same in
//! both: so effects periodic in the round-trip time meet effects periodic in the path at different
//! points, as a tenth of a millisecond in the lab would cause anyway. Replications are added until
//! the ratio of the means is known well enough, and beyond the requested number if it is too
//! uncertain to be compared at all.

use core::ops::Range;
use core::time::Duration;
use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

use corridor_base::StreamKey;
use corridor_bench::random::uniform;
use corridor_lab::Options;
use corridor_results::Estimate;
use corridor_results::checks::Check;
use corridor_scenario::{Path, Row, Run, Scenario, expand};
use corridor_sim::run_line_drawn;
use serde::Serialize;

use crate::Outcome;
use crate::judge::within;

/// Maximum relative difference from the simulator's value.
const DIFFERENCE_MAX: f64 = 0.05;
/// Half-width of a ratio's interval that is known well enough; beyond twice that after all
/// replications, it counts as not compared.
const KNOWN_TO: f64 = DIFFERENCE_MAX;
/// One-way delay, drawn per replication.
const DELAY_MS: (f64, f64) = (8.0, 12.0);
/// Concurrent replications: a run needs a tenth of a processor.
const SIDE_BY_SIDE: u64 = 4;
/// Maximum multiple of the requested replications, if these were not enough to compare: a median
/// with a standard deviation of half its mean takes about a hundred.
const REPLICATIONS_FACTOR: u64 = 6;
/// Draws per replication in the simulator, over the same path: the start of BBR's cycles, each
/// packet's jitter and losses, and the sub-millisecond offset between load and rates, all of which
/// a lab run does not reveal. They are cheap here, and leave only the lab's own spread in the
/// interval. Draw 0, where the load begins exactly with the rates, is excluded.
const DRAWS: Range<u64> = 1..9;
const WARM_UP_S: u64 = 3;
const INTERVAL_S: u64 = 12;
/// Maximum attempts at a run if the emulator was late.
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

/// A value from both.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Path, load, and quantity.
    pub name: String,
    /// Means over the replications.
    pub lab: f64,
    pub simulated: f64,
    /// Their ratio.
    pub ratio: f64,
    pub replications: usize,
    /// 95 % interval of the ratio, from the replications' differences; `None` for a single one.
    pub interval: Option<[f64; 2]>,
}

/// What to compare, and how often.
#[derive(Clone, Debug)]
pub struct Asked {
    pub seed: u64,
    /// Maximum replications of each, unless these are not enough to compare.
    pub replications: u64,
    /// Only names that contain this.
    pub only: String,
}

/// The trace: 1.5 s at 12 Mbit/s, then 1.5 s at 3 Mbit/s.
fn trace() -> String {
    let fast = (1..=1_500_u32).map(|ms| (ms, 1));
    let slow = (1_501..=3_000_u32).filter(|ms| ms.is_multiple_of(4)).map(|ms| (ms, 1));
    fast.chain(slow).map(|(ms, _)| format!("{ms}\n")).collect()
}

/// Compares everything, and returns what was compared; an error beginning with "absent:" if this
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
            let draw = Draw { directory, seed: asked.seed, path, load };
            if binary.is_none() && draw.run(0)?.1.path != Path::Kernel {
                continue;
            }
            let Some(found) = pairs_of(&name, &draw, asked.replications, binary.as_ref())? else {
                println!("absent: {name}: the machine was too busy {ATTEMPTS} times");
                continue;
            };
            for pair in found {
                println!("{}", pair.line());
                checks.push(pair.check());
                pairs.push(pair);
            }
        }
    }
    Ok((pairs, checks))
}

/// Replications of a load on a path.
struct Draw<'a> {
    directory: &'a FilePath,
    seed: u64,
    path: &'a str,
    load: &'a str,
}

impl Draw<'_> {
    /// A replication, with its delay.
    fn run(&self, replication: u64) -> Outcome<(Scenario, Run)> {
        let Draw { directory, seed, path, load } = *self;
        let key = StreamKey { seed, replication, entity: 0, purpose: "delay" };
        let delay_ms = DELAY_MS.0 + (DELAY_MS.1 - DELAY_MS.0) * uniform(&mut key.stream());
        let text = format!(
            "name = 'lab'\nseed = {seed}\n[line]\ndelay_ms = {delay_ms:.3}\n{path}\n[[run]]\n\
             underlay = 'udp'\ne3 = 0\nduration_s = {INTERVAL_S}\nwarm_up_s = {WARM_UP_S}\n{load}\n"
        );
        let file = directory.join(format!("scenario-{replication}.toml"));
        fs::write(&file, text)?;
        let (_, scenario) = Scenario::load(&file)?;
        let run = Run { replication, ..expand(&scenario)?.remove(0) };
        Ok((scenario, run))
    }

    /// All draws of a replication in the simulator.
    fn simulated(&self, replication: u64) -> Outcome<Vec<Row>> {
        let (scenario, run) = self.run(replication)?;
        let simulate = |draw| run_line_drawn(&scenario, &run, Duration::from_secs(WARM_UP_S), draw);
        DRAWS.map(|draw| Ok(simulate(draw)?.0)).collect()
    }

    /// A replication in the lab; `None` if the machine is too busy for one.
    fn in_lab(&self, replication: u64, binary: Option<&PathBuf>) -> Outcome<Option<Row>> {
        let (scenario, run) = self.run(replication)?;
        in_lab(&scenario, &run, binary)
    }
}

/// Runs these concurrently, returning results in order.
fn side_by_side<T: Send>(
    replications: Range<u64>,
    make: impl Fn(u64) -> Outcome<T> + Sync,
) -> Outcome<Vec<T>> {
    let make = &make;
    let made: Vec<_> = thread::scope(|scope| {
        // Errors pass between threads as text.
        let begin = |each| scope.spawn(move || make(each).map_err(|error| error.to_string()));
        let begun: Vec<_> = replications.map(begin).collect();
        begun.into_iter().map(|each| each.join().expect("no run panics")).collect()
    });
    Ok(made.into_iter().collect::<Result<_, String>>()?)
}

/// The daemon's program.
fn node() -> Option<PathBuf> {
    let named = std::env::var_os("CORRIDOR_BIN").map(PathBuf::from);
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("corridor"));
    named.or_else(beside).filter(|path| path.exists())
}

/// A value's name, and its accessor.
type Value = (&'static str, fn(&Row) -> Option<f64>);

/// Values of a row to compare.
const VALUES: [Value; 3] = [
    ("goodput, Mbit/s", |row| Some(row.goodput_bps / 1e6)),
    ("delay p50, ms", |row| row.delays.delay_p50_s.map(|s| 1e3 * s)),
    ("delay p95, ms", |row| row.delays.delay_p95_s.map(|s| 1e3 * s)),
];

/// All comparisons of a path and load, with replications until they are known well enough.
fn pairs_of(
    name: &str,
    draw: &Draw<'_>,
    replications: u64,
    binary: Option<&PathBuf>,
) -> Outcome<Option<Vec<Pair>>> {
    let (mut both, mut next) = (Vec::new(), 0);
    loop {
        let goes_on = next >= replications;
        let most = if goes_on { REPLICATIONS_FACTOR * replications } else { replications };
        let batch = next..most.min(next + SIDE_BY_SIDE);
        next = batch.end;
        // One after the other: simulation would take the processors that real time needs.
        let simulated = side_by_side(batch.clone(), |each| draw.simulated(each))?;
        let in_lab = side_by_side(batch, |each| draw.in_lab(each, binary))?;
        for (lab, simulated) in in_lab.into_iter().zip(simulated) {
            both.extend(lab.map(|lab| Both { lab, simulated }));
        }
        let pair = |(what, value): Value| Pair::of(format!("{name}, {what}"), &both, value);
        let pairs = VALUES.map(pair);
        let asked_are_made = next >= replications;
        let is_last = next >= REPLICATIONS_FACTOR * replications || both.len() < 2;
        if pairs.iter().all(|pair| pair.is_enough(asked_are_made)) || (asked_are_made && is_last) {
            return Ok(Some(Vec::from(pairs)).filter(|_| both.len() >= 2));
        }
    }
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
        // The interval of a ratio of means, from the deviations (Cochran, "Sampling Techniques",
        // 6.3).
        let deviations = labs.iter().zip(&simulations).map(|(lab, other)| lab - ratio * other);
        let deviations = Estimate::of(&deviations.collect::<Vec<_>>());
        let half_width = deviations.and_then(|all| all.half_width).map(|half| half / simulated);
        let interval = half_width.map(|half| [ratio - half, ratio + half]);
        let replications = both.len();
        Pair { name, lab, simulated, ratio, replications, interval }
    }

    /// Whether its half-width is at most this.
    fn is_known_to(&self, most: f64) -> bool {
        self.interval.is_some_and(|[low, high]| high - low <= 2.0 * most)
    }

    /// Whether it is known well enough to be compared.
    fn is_compared(&self) -> bool {
        self.is_known_to(2.0 * KNOWN_TO)
    }

    /// Whether no more replications are needed, depending on whether the requested ones are done.
    fn is_enough(&self, asked_are_made: bool) -> bool {
        if asked_are_made { self.is_compared() } else { self.is_known_to(KNOWN_TO) }
    }

    fn check(&self) -> Check {
        let known = self.interval.filter(|_| self.is_compared());
        let ratio = known.map(|interval| (self.ratio, interval));
        within(&format!("lab: {}", self.name), ratio, DIFFERENCE_MAX, self.replications)
    }

    fn line(&self) -> String {
        let Pair { name, lab, simulated, ratio, replications, interval } = self;
        let known = interval.map(|[low, high]| format!(" ({low:.3} to {high:.3})"));
        let known = known.unwrap_or_default();
        format!(
            "{name}: lab {lab:.4}, simulated {simulated:.4}, ratio {ratio:.3}{known} of {replications}"
        )
    }
}

/// A valid run in the lab; `None` if the machine is too busy for one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_compared_goes_on_beyond_what_was_asked_for() {
        let pair = |half_width: Option<f64>| Pair {
            name: String::new(),
            lab: 1.0,
            simulated: 1.0,
            ratio: 1.0,
            replications: 24,
            interval: half_width.map(|half| [1.0 - half, 1.0 + half]),
        };
        let enough = |half_width, made| pair(half_width).is_enough(made);
        let found = [Some(0.04), Some(0.08), Some(0.12), None]
            .map(|half_width| (enough(half_width, false), enough(half_width, true)));
        assert_eq!(found, [(true, true), (false, true), (false, false), (false, false)]);
        // Whatever was extended until it is enough counts as compared.
        assert!(!pair(Some(0.12)).check().holds && pair(Some(0.08)).check().holds);
    }
}
