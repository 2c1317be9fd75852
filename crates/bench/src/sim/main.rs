//! `bench-sim`: cost of the simulator: processor time per event, and memory per node.
//!
//! Time is the process's processor time, so that other processes on the machine do not count; it is
//! measured several times, and the median is reported with minimum and maximum. Writes `checks`:
//! name, value, limit, and whether it holds; with `--check` it exits with 1 if one does not hold.

mod memory;
mod worlds;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use corridor_bench::machine::{self, cpu_time};
use corridor_bench::outcome::Outcome;
use corridor_bench::{frame, wires};
use corridor_results::checks::Check;
use serde::Serialize;

/// Maximum processor time of the two flows of `chain`, in seconds.
const CHAIN_CPU_S_MAX: f64 = 0.15;

/// Minimum millions of events of `chain` per second of processor time.
const CHAIN_EVENTS_MIN: f64 = 20.0;

/// Maximum cost of an event in the largest network, relative to the smallest.
const COST_RATIO_MAX: f64 = 2.0;

/// Maximum memory per node of the largest ring: its pipes, and a flow with windows of 50 packets,
/// whose payloads are represented by their lengths.
const NODE_KIB_MAX: f64 = 16.0;

/// Measures the cost of the simulator, on one core.
#[derive(Debug, Parser)]
#[command(name = "bench-sim")]
struct Arguments {
    /// The file to write.
    #[arg(long, default_value = "out/bench/sim.json")]
    out: PathBuf,
    /// Fewer and shorter runs.
    #[arg(long)]
    quick: bool,
    /// Exit with 1 if a gate is not passed.
    #[arg(long)]
    check: bool,
    /// Core to measure on; by default the last one allowed.
    #[arg(long)]
    core: Option<usize>,
}

/// The file.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    cpu: String,
    core: usize,
    rustc: &'static str,
    rustflags: &'static str,
    profile: &'static str,
    quick: bool,
    checks: Vec<Check>,
    /// Peak memory over all runs.
    peak_bytes: usize,
    /// Two TCP flows over four links.
    chain: Figure,
    /// Rings of wires with a TCP flow from every node.
    network: Series,
    /// Pairs of coded stations on one medium.
    world: Series,
}

/// Measurements of one simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Nodes, or stations.
    nodes: usize,
    /// Simulated time.
    simulated_s: f64,
    /// Median processor time of all repeats.
    cpu_s: f64,
    cpu_s_min: f64,
    cpu_s_max: f64,
    repeats: usize,
    events: u64,
    events_per_s: f64,
    cpu_ns_per_event: f64,
    /// Packets or frames that crossed a link.
    packet_hops: u64,
    cpu_ns_per_packet_hop: f64,
    /// Live memory at the end of the run, per node.
    memory_bytes_per_node: f64,
    /// Payload received, each byte once, bits per second of simulated time and flow.
    goodput_bps: f64,
}

/// The same for growing numbers of nodes.
#[derive(Debug, Serialize)]
struct Series {
    figures: Vec<Figure>,
    /// Cost of an event in the largest, relative to the smallest.
    cost_ratio: f64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    frame::exit("bench-sim", run(&arguments).map(|passed| passed || !arguments.check))
}

fn run(arguments: &Arguments) -> frame::Outcome<bool> {
    let core = machine::pin(arguments.core)?;
    memory::restart_peak();
    let (repeats, scale) = if arguments.quick { (3, 0.1) } else { (11, 1.0) };
    let chain: Vec<_> =
        (0..repeats).map(|_| wires::chain(1000.0 * scale, memory::live_bytes)).collect();
    let chain = figure(5, &chain);
    print(&["chain", "ms", "ns/event", "ns/hop", "M events/s", "KiB/node"], &[]);
    print(&[], &[&chain]);

    let repeats = repeats.min(5);
    let network = [10, 30, 100, 300, 1000];
    let network =
        series(&network, repeats, |nodes| wires::ring(nodes, 10_000.0 * scale, memory::live_bytes));
    print(&["network"], &network.figures.iter().collect::<Vec<_>>());
    let world = [10, 30, 100, 300, 1000];
    let world = series(&world, repeats, |nodes| worlds::pairs(nodes, 2_000.0 * scale));
    print(&["world"], &world.figures.iter().collect::<Vec<_>>());

    let checks = checks(&chain, &network, &world, scale);
    let passed = frame::say(&checks);
    let report = Report {
        schema: 1,
        cpu: machine::cpu_model(),
        core,
        rustc: env!("BENCH_RUSTC"),
        rustflags: env!("BENCH_RUSTFLAGS"),
        profile: env!("BENCH_PROFILE"),
        quick: arguments.quick,
        checks,
        peak_bytes: memory::peak_bytes(),
        chain,
        network,
        world,
    };
    frame::write_report(&arguments.out, &report)?;
    Ok(passed)
}

/// The simulator's guarantees, with measurements. `scale` is the simulated fraction of the chain's
/// 1000 s.
fn checks(chain: &Figure, network: &Series, world: &Series, scale: f64) -> Vec<Check> {
    let ring_kib = network.figures.last().map(|largest| largest.memory_bytes_per_node / 1024.0);
    vec![
        Check::at_most(
            format!("two flows of TCP over four links, {} s", chain.simulated_s),
            Some(chain.cpu_s),
            CHAIN_CPU_S_MAX * scale,
            "CPU-s",
        ),
        Check::at_least(
            "events of these in a second of processor time",
            Some(chain.events_per_s / 1e6),
            CHAIN_EVENTS_MIN,
            "million",
        ),
        Check::at_most(
            "TCP on a ring: cost of an event, 1000 over 10 nodes",
            Some(network.cost_ratio),
            COST_RATIO_MAX,
            "",
        ),
        Check::at_most(
            "coded pairs: cost of an event, 1000 over 10 stations",
            Some(world.cost_ratio),
            COST_RATIO_MAX,
            "",
        ),
        Check::at_most("TCP on a ring of 1000: memory of a node", ring_kib, NODE_KIB_MAX, "KiB"),
    ]
}

/// Runs simulations of all sizes, one after the other, several times: a temporary disturbance of
/// the machine affects all sizes equally.
fn series(sizes: &[usize], repeats: usize, run: impl Fn(usize) -> Outcome) -> Series {
    let mut outcomes: Vec<_> = sizes.iter().map(|_| Vec::with_capacity(repeats)).collect();
    for _ in 0..repeats {
        for (outcomes, &nodes) in outcomes.iter_mut().zip(sizes) {
            outcomes.push(run(nodes));
        }
    }
    let figures: Vec<_> =
        sizes.iter().zip(&outcomes).map(|(&nodes, outcomes)| figure(nodes, outcomes)).collect();
    let cost = |figure: Option<&Figure>| figure.map_or(f64::NAN, |figure| figure.cpu_ns_per_event);
    Series { cost_ratio: cost(figures.last()) / cost(figures.first()), figures }
}

/// The measurements of one simulation's runs, at least one. Its counters are the same every time,
/// and are reported once.
fn figure(nodes: usize, outcomes: &[Outcome]) -> Figure {
    let mut cpu_s: Vec<_> = outcomes.iter().map(|outcome| outcome.cpu.as_secs_f64()).collect();
    cpu_s.sort_by(f64::total_cmp);
    let (median, last) = (cpu_s[cpu_s.len() / 2], &outcomes[outcomes.len() - 1]);
    let simulated_s = last.simulated.as_secs_f64();
    Figure {
        nodes,
        simulated_s,
        cpu_s: median,
        cpu_s_min: cpu_s[0],
        cpu_s_max: cpu_s[cpu_s.len() - 1],
        repeats: outcomes.len(),
        events: last.events,
        events_per_s: last.events as f64 / median,
        cpu_ns_per_event: 1e9 * median / last.events as f64,
        packet_hops: last.packet_hops,
        cpu_ns_per_packet_hop: 1e9 * median / last.packet_hops as f64,
        memory_bytes_per_node: last.memory_bytes as f64 / nodes as f64,
        goodput_bps: 8.0 * last.payload_bytes as f64 / simulated_s / last.flows as f64,
    }
}

/// Prints a header, and a line per figure.
fn print(head: &[&str], figures: &[&Figure]) {
    if let Some((first, columns)) = head.split_first() {
        let columns: String = columns.iter().map(|column| format!("{column:>12}")).collect();
        println!("{first:<10}{columns}");
    }
    for figure in figures {
        println!(
            "{:>8}  {:>12.1}{:>12.1}{:>12.1}{:>12.2}{:>12.2}",
            figure.nodes,
            1e3 * figure.cpu_s,
            figure.cpu_ns_per_event,
            figure.cpu_ns_per_packet_hop,
            figure.events_per_s / 1e6,
            figure.memory_bytes_per_node / 1024.0,
        );
    }
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-sim", "bench-sim", &[]);
    }
}
