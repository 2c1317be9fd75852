//! `bench-radio`: the radios and their MACs compared with theory and with ns-3, and their cost.
//!
//! Writes every figure, and `checks`: name, value, limit, and whether it holds. Exits with 1 if one
//! does not hold. docs/radio.md has the models' equations.

mod cells;
#[path = "../sim/memory.rs"]
mod memory;
mod models;
mod networks;
mod ns3;
mod reference;
mod speed;
mod wpan;
mod wpan_model;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use corridor_air::radio::{OFDM, Preamble, Rate};
use corridor_air::wpan::{ACK_BYTES, LooksFor, WpanConfig};
use corridor_bench::frame::{self, Outcome};
use corridor_bench::machine::{self, cpu_time};
use corridor_bench::wires;
use corridor_results::Estimate;
use corridor_results::checks::Check;
use serde::Serialize;

/// Attempts allowed by the standard's retry limit.
const ATTEMPTS: u32 = 7;

/// Maximum relative difference of simulated throughput from a model's.
const MODEL_ERROR_MAX: f64 = 0.02;

/// Replications of a saturated cell continue until its 95 % interval has at most this half-width
/// relative to the mean, a quarter of the allowed difference, within these numbers.
const HALF_WIDTH_MAX: f64 = MODEL_ERROR_MAX / 4.0;
const REPLICATIONS: RangeInclusive<usize> = 4..=40;

/// Maximum relative difference of a single sender's throughput from exact arithmetic.
const EXACT_ERROR_MAX: f64 = 0.005;

/// Maximum relative difference of contending senders' goodput from the model's: as stated by its
/// authors.
const CONTENTION_ERROR_MAX: f64 = 0.10;

/// Maximum relative difference of goodput from ns-3's.
const NS3_ERROR_MAX: f64 = 0.05;

/// Maximum cost of a reception among 1000 stations, relative to that among ten.
const COST_RATIO_MAX: f64 = 2.0;

/// Maximum peak memory per node of 1000, with twelve neighbours, TCP windows of 64 segments and
/// queues of 50 frames.
const NODE_KIB_MAX: f64 = 16.0;

/// Maximum time of two TCP flows over four wires for 1000 s, in multiples of [`reference::agenda`].
/// Before radios were added, it took 2.43 (0.0492 s and 0.0202 s on one machine, taking turns),
/// which was rounded to 0.04 s: the bound of that rounding is an eighth more.
const CHAIN_AGENDAS_MAX: f64 = 2.74;

/// Compares the radios with theory, with ns-3, and with their cost limits, on one core.
#[derive(Debug, Parser)]
#[command(name = "bench-radio")]
struct Arguments {
    /// The file to write.
    #[arg(long, default_value = "out/bench/radio.json")]
    out: PathBuf,
    /// A fifth of the simulated time: shows whether it works, not how accurately.
    #[arg(long)]
    quick: bool,
    /// Only one part.
    #[arg(long)]
    only: Option<Part>,
    /// Core to measure on, instead of the last.
    #[arg(long)]
    core: Option<usize>,
}

/// Parts of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Saturation,
    Wpan,
    Cost,
    Ns3,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    cpu: String,
    quick: bool,
    checks: Vec<Check>,
    saturation: Vec<Saturation>,
    wpan: Vec<Wpan>,
    speed: Vec<Speed>,
    /// Absent if not measured, like the following fields.
    node_kib: Option<f64>,
    chain: Option<Chain>,
    /// Absent if ns-3 is not installed.
    ns3: Option<Beside>,
}

/// A saturated cell, simulated and by the models.
#[derive(Debug, Serialize)]
struct Saturation {
    rate_bps: u64,
    stations: u32,
    rts: bool,
    eifs: bool,
    retry_limit: Option<u32>,
    simulated_bps: f64,
    /// Half-width of the mean's 95 % interval, relative to the mean.
    half_width: f64,
    replications: usize,
    model_bps: f64,
    /// Bianchi 2000: for comparison, not a limit.
    of_2000_bps: f64,
    /// Simulated value over the model's, minus 1.
    error: f64,
}

/// Senders of 802.15.4, and their sink.
#[derive(Debug, Serialize)]
struct Wpan {
    name: String,
    senders: usize,
    payload_bytes: u32,
    cell: wpan::Cell,
    /// From exact arithmetic for one sender, otherwise from the model.
    model_bps: Option<f64>,
    model_success_ratio: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Speed {
    stations: usize,
    cpu_s: f64,
    receptions: u64,
    cpu_ns_per_reception: f64,
}

/// Two TCP flows over four wires: radios must not make them slower.
#[derive(Debug, Serialize)]
struct Chain {
    simulated_s: f64,
    events: u64,
    /// Minimum over all runs: other load on the machine can only add to it.
    cpu_s: f64,
    cpu_s_median: f64,
    /// Minimum over as many interleaved runs of the reference.
    agenda_cpu_s: f64,
}

/// Our results and ns-3's.
#[derive(Debug, Serialize)]
struct Beside {
    version: String,
    script: String,
    rows: Vec<BesideRow>,
}

#[derive(Debug, Serialize)]
struct BesideRow {
    name: String,
    ours_bps: Vec<f64>,
    ns3_bps: Vec<f64>,
    /// Maximum difference of the flows, relative to the mean of ns-3's flows.
    error: f64,
    ours_cpu_s_per_s: f64,
    ns3_cpu_s_per_s: f64,
}

fn main() -> ExitCode {
    frame::exit("bench-radio", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    machine::pin(arguments.core)?;
    let scale = if arguments.quick { 0.2 } else { 1.0 };
    let mut checks = Vec::new();
    let measures = |part| arguments.only.is_none_or(|only| only == part);
    let saturation =
        if measures(Part::Saturation) { saturate(scale, &mut checks) } else { Vec::new() };
    let wpan = if measures(Part::Wpan) { contend(scale, &mut checks) } else { Vec::new() };
    let (mut speed, mut node_kib, mut chain) = (Vec::new(), None, None);
    if measures(Part::Cost) {
        speed = speed_up(scale, &mut checks);
        node_kib = Some(node_kib_of(&mut checks));
        chain = Some(chain_of(&mut checks));
    }
    let beside_ns3 = || beside(arguments.quick, scale, &mut checks);
    let ns3 = measures(Part::Ns3).then(beside_ns3).flatten();
    let passed = frame::say(&checks);
    let cpu = machine::cpu_model();
    let quick = arguments.quick;
    let report =
        Report { schema: 2, cpu, quick, checks, saturation, wpan, speed, node_kib, chain, ns3 };
    frame::write_report(&arguments.out, &report)?;
    Ok(passed)
}

fn check(name: impl Into<String>, value: f64, limit: f64) -> Check {
    Check::at_most(name, Some(value), limit, "")
}

/// All combinations compared with theory: rates, numbers of stations, RTS, EIFS, limits.
fn saturate(scale: f64, checks: &mut Vec<Check>) -> Vec<Saturation> {
    let mut rows = Vec::new();
    for (limit, rts, eifs) in [
        (None, false, false),
        (None, false, true),
        (None, true, false),
        (None, true, true),
        (Some(ATTEMPTS), false, true),
        (Some(ATTEMPTS), true, true),
    ] {
        let first = rows.len();
        for rate in OFDM {
            for stations in [1, 2, 5, 10, 20, 30, 40, 50] {
                rows.push(saturate_one(rate, stations, rts, eifs, limit, scale));
            }
        }
        let worst = rows[first..].iter().map(|row| row.error.abs()).fold(0.0, f64::max);
        let name = format!(
            "saturation, {}, {}, {}: greatest error",
            if rts { "RTS" } else { "basic" },
            if eifs { "EIFS" } else { "DIFS" },
            if limit.is_some() { "retry limit" } else { "unlimited" },
        );
        checks.push(check(name, worst, MODEL_ERROR_MAX));
    }
    rows
}

fn saturate_one(
    rate: Rate,
    stations: u32,
    rts: bool,
    eifs: bool,
    retry_limit: Option<u32>,
    scale: f64,
) -> Saturation {
    let config = cells::settings(rate, eifs, rts, retry_limit);
    // About the same number of frames at each rate.
    let simulated = Duration::from_secs_f64(scale * 8.0 * 12e6 / rate.bps() as f64 + 1.0);
    let mut values = Vec::new();
    let (simulated_bps, half_width) = loop {
        let seed = 1 + values.len() as u64;
        values.push(cells::throughput_bps(&config, stations as usize, seed, simulated));
        let Some(Estimate { mean, half_width: Some(half_width), .. }) = Estimate::of(&values)
        else {
            continue;
        };
        let half_width = half_width / mean;
        let enough = values.len() >= *REPLICATIONS.start() && half_width <= HALF_WIDTH_MAX;
        if enough || values.len() == *REPLICATIONS.end() {
            break (mean, half_width);
        }
    };
    let cell = models::Cell {
        stations,
        window: config.cw_min,
        doublings: 6,
        payload_bits: f64::from(cells::PAYLOAD_BYTES) * 8.0,
        slots: models::slots(&config, rate, cells::PAYLOAD_BYTES, rts),
    };
    let model_bps = match retry_limit {
        None => cell.post_backoff(),
        Some(attempts) => cell.limited(attempts),
    };
    Saturation {
        rate_bps: rate.bps(),
        stations,
        rts,
        eifs,
        retry_limit,
        simulated_bps,
        half_width,
        replications: values.len(),
        model_bps,
        of_2000_bps: cell.of_2000(),
        error: simulated_bps / model_bps - 1.0,
    }
}

/// One sender compared with arithmetic, several with a model.
fn contend(scale: f64, checks: &mut Vec<Check>) -> Vec<Wpan> {
    let simulated = Duration::from_secs_f64(1000.0 * scale);
    let standard = WpanConfig::default();
    // Latré et al. 2005, Eqs. 1-4, have neither the CCA nor the turnaround to sending.
    let latre = WpanConfig { cca: Duration::ZERO, turnaround: Duration::ZERO, ..standard.clone() };
    let plain = WpanConfig { acknowledged: false, ..standard.clone() };
    let mut rows = Vec::new();
    let mut worst = 0.0_f64;
    for (name, config) in
        [("standard", &standard), ("latre-2005", &latre), ("unacknowledged", &plain)]
    {
        for payload_bytes in [2, 20, 60, 100, 116] {
            let cell = wpan::cell(config, wpan::BY_ERROR_RATIO, 1, payload_bytes, 1, simulated);
            let exact_bps = f64::from(payload_bytes) * 8.0 / exchange_s(config, payload_bytes);
            worst = worst.max((cell.goodput_bps / exact_bps - 1.0).abs());
            rows.push(row(name, 1, payload_bytes, cell, Some(exact_bps)));
        }
    }
    checks.push(check("802.15.4, one sender: greatest error", worst, EXACT_ERROR_MAX));
    let mut worst = 0.0_f64;
    for senders in [1, 2, 5, 10, 20] {
        let bytes = wpan::CONTENDING_BYTES;
        let lost = wpan::cell(&standard, wpan::WITHOUT_CAPTURE, senders, bytes, 1, simulated / 5);
        let model = wpan_model::saturated(&standard, senders as u32, bytes);
        // The model is for networks that lose few frames.
        if model.success_ratio > 0.5 {
            worst = worst.max((lost.goodput_bps / model.goodput_bps - 1.0).abs());
        }
        rows.push(Wpan {
            model_success_ratio: Some(model.success_ratio),
            ..row("standard, overlaps lost", senders, bytes, lost, Some(model.goodput_bps))
        });
        let captured =
            wpan::cell(&standard, wpan::BY_ERROR_RATIO, senders, bytes, 1, simulated / 5);
        rows.push(row("standard", senders, bytes, captured, None));
        let left = WpanConfig { looks_for: LooksFor::WhoeverIsLeft, ..standard.clone() };
        let left = wpan::cell(&left, wpan::BY_ERROR_RATIO, senders, bytes, 1, simulated / 5);
        rows.push(row("as ns-3 looks", senders, bytes, left, None));
    }
    checks.push(check("802.15.4, contention, most frames through", worst, CONTENTION_ERROR_MAX));
    for Wpan { name, senders, cell, model_bps, .. } in &rows[15..] {
        println!("{name:<24} {senders:>2} senders: {cell:.4?} model {model_bps:.0?}");
    }
    rows
}

fn row(
    name: &str,
    senders: usize,
    payload_bytes: u32,
    cell: wpan::Cell,
    model_bps: Option<f64>,
) -> Wpan {
    let name = name.to_owned();
    Wpan { name, senders, payload_bytes, cell, model_bps, model_success_ratio: None }
}

/// Mean duration of one frame's exchange: backoff, CCA, turnaround, frame, turnaround, ACK, IFS.
fn exchange_s(config: &WpanConfig, payload_bytes: u32) -> f64 {
    let mac_bytes = payload_bytes + config.header_bytes;
    let airtime = |bytes| Rate::Oqpsk250.airtime(Preamble::Oqpsk, bytes).as_secs_f64();
    let backoff_s = 3.5 * 320e-6;
    let space = if mac_bytes <= 18 { config.sifs } else { config.lifs };
    let answer_s = match config.acknowledged {
        true => config.ack_turnaround.as_secs_f64() + airtime(ACK_BYTES),
        false => 0.0,
    };
    let before_s = backoff_s + config.cca.as_secs_f64() + config.turnaround.as_secs_f64();
    before_s + airtime(mac_bytes) + answer_s + space.as_secs_f64()
}

fn speed_up(scale: f64, checks: &mut Vec<Check>) -> Vec<Speed> {
    let sizes = [10, 30, 100, 300, 1000];
    let mut runs = vec![Vec::new(); sizes.len()];
    // Sizes in turn: a temporary disturbance of the machine affects all equally.
    for _ in 0..11 {
        for (runs, stations) in runs.iter_mut().zip(sizes) {
            runs.push(speed::run(stations, 8, 50, 200.0 * scale));
        }
    }
    let cost = |run: &speed::Run| run.cpu.as_secs_f64() * 1e9 / run.receptions as f64;
    // The ratio of each round, and the median of all.
    let rounds = runs[0].iter().zip(&runs[sizes.len() - 1]);
    let mut ratios: Vec<f64> = rounds.map(|(few, many)| cost(many) / cost(few)).collect();
    ratios.sort_by(f64::total_cmp);
    let median = |(runs, stations): (&mut Vec<speed::Run>, usize)| {
        runs.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        let run = runs[runs.len() / 2];
        let (cpu_s, receptions) = (run.cpu.as_secs_f64(), run.receptions);
        Speed { stations, cpu_s, receptions, cpu_ns_per_reception: cost(&run) }
    };
    let speed: Vec<_> = runs.iter_mut().zip(sizes).map(median).collect();
    for Speed { stations, cpu_ns_per_reception, .. } in &speed {
        println!("{stations:>5} stations: {cpu_ns_per_reception:.1} ns a reception");
    }
    let name = "cost of a reception, 1000 over 10 stations, median of rounds";
    let ends = [ratios[0], ratios[ratios.len() - 1]];
    checks.push(check(name, ratios[ratios.len() / 2], COST_RATIO_MAX).known_to(ends, ratios.len()));
    speed
}

fn node_kib_of(checks: &mut Vec<Check>) -> f64 {
    let bytes = speed::peak_bytes(1000, 12, (50, 64), Duration::from_secs(5));
    let node_kib = bytes as f64 / 1000.0 / 1024.0;
    let name = "peak KiB a node, 12 neighbours, 50 frames, windows of 64";
    checks.push(check(name, node_kib, NODE_KIB_MAX));
    node_kib
}

fn chain_of(checks: &mut Vec<Check>) -> Chain {
    let mut agendas = Vec::new();
    let run = |_| {
        agendas.push(reference::agenda());
        wires::chain(1000.0, memory::live_bytes)
    };
    let mut runs: Vec<_> = (0..21).map(run).collect();
    runs.sort_by_key(|run| run.cpu);
    agendas.sort();
    let (least, median) = (&runs[0], &runs[runs.len() / 2]);
    let cpu_s = least.cpu.as_secs_f64();
    let chain = Chain {
        simulated_s: least.simulated.as_secs_f64(),
        events: least.events,
        cpu_s,
        cpu_s_median: median.cpu.as_secs_f64(),
        agenda_cpu_s: agendas[0].as_secs_f64(),
    };
    let Chain { events, agenda_cpu_s, .. } = chain;
    let rate = events as f64 / cpu_s / 1e6;
    println!("chain: {cpu_s:.4} CPU-s, {rate:.1} million events/s; agenda {agenda_cpu_s:.4} CPU-s");
    let name = "two flows of TCP over four wires, 1000 s, over the time of an agenda";
    checks.push(check(name, cpu_s / agenda_cpu_s, CHAIN_AGENDAS_MAX));
    chain
}

fn beside(quick: bool, scale: f64, checks: &mut Vec<Check>) -> Option<Beside> {
    let answer = match ns3::ask(quick) {
        Ok(answer) => answer,
        Err(reason) => {
            println!("absent: ns-3: {reason}");
            return None;
        }
    };
    let mut rows = Vec::new();
    // Longer than in ns-3: it costs little, and leaves only one of the two with random error.
    let simulated = Duration::from_secs_f64(1000.0 * scale);
    for network in networks::all() {
        let Some(theirs) = answer.networks.get(&network.name) else { continue };
        let begin = cpu_time();
        let ours = networks::goodput_bps(&network, 1, simulated);
        let cpu_s = (cpu_time() - begin).as_secs_f64();
        rows.push(beside_row(
            &network.name,
            ours,
            theirs.goodput_bps.clone(),
            cpu_s / simulated.as_secs_f64(),
            theirs.cpu_s / theirs.simulated_s,
        ));
    }
    for (senders, theirs) in &answer.wpan {
        let Ok(count) = senders.parse() else { continue };
        let begin = cpu_time();
        // As in ns-3.
        let config = WpanConfig { looks_for: LooksFor::WhoeverIsLeft, ..WpanConfig::default() };
        let bytes = wpan::CONTENDING_BYTES;
        let cell = wpan::cell(&config, wpan::BY_ERROR_RATIO, count, bytes, 1, simulated / 5);
        let cpu_s = (cpu_time() - begin).as_secs_f64();
        let name = format!("lr-wpan, {senders} senders");
        rows.push(beside_row(
            &name,
            vec![cell.goodput_bps],
            vec![theirs.goodput_bps],
            5.0 * cpu_s / simulated.as_secs_f64(),
            theirs.cpu_s / theirs.simulated_s,
        ));
    }
    for row in &rows {
        println!(
            "{:<20} ours {:.4?} ns-3 {:.4?} Mbit/s; CPU {:.5} and {:.5} s/s",
            row.name,
            row.ours_bps.iter().map(|bps| bps / 1e6).collect::<Vec<_>>(),
            row.ns3_bps.iter().map(|bps| bps / 1e6).collect::<Vec<_>>(),
            row.ours_cpu_s_per_s,
            row.ns3_cpu_s_per_s
        );
        checks.push(check(format!("beside ns-3, {}", row.name), row.error, NS3_ERROR_MAX));
    }
    Some(Beside { version: answer.version, script: answer.script, rows })
}

fn beside_row(
    name: &str,
    ours_bps: Vec<f64>,
    ns3_bps: Vec<f64>,
    ours_cpu_s_per_s: f64,
    ns3_cpu_s_per_s: f64,
) -> BesideRow {
    let mean_bps = ns3_bps.iter().sum::<f64>() / ns3_bps.len() as f64;
    let differences = ours_bps.iter().zip(&ns3_bps).map(|(ours, ns3)| (ours - ns3).abs());
    let error = differences.fold(0.0, f64::max) / mean_bps;
    let name = name.to_owned();
    BesideRow { name, ours_bps, ns3_bps, error, ours_cpu_s_per_s, ns3_cpu_s_per_s }
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-radio", "bench-radio", &[]);
    }
}
