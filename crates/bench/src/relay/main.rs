//! `bench-relay`: what stations get that share a radio with a hub.
//!
//! Each neighbour of a hub has a flow up to it and one that crosses it to the next neighbour, more
//! of both than the radio carries. Writes every flow's goodput, and `checks`: name, value, limit,
//! and whether it holds. Ends with 1 if one does not.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use corridor_bench::frame::{self, Outcome};
use corridor_results::checks::Check;
use corridor_sim::star::{Star, StarFlow, jain, measure};
use serde::Serialize;

/// Least index of fairness (Jain) within a class of flows.
const JAIN_MIN: f64 = 0.95;
/// Least part that the crossing class has of the other's: it takes twice the air.
const CROSSING_MIN: f64 = 0.4;

/// Measures how a hub's radio is divided.
#[derive(Debug, Parser)]
#[command(name = "bench-relay")]
struct Arguments {
    /// Neighbours of the hub.
    #[arg(long, default_value_t = 8)]
    neighbours: u8,
    /// Share of the frames lost on each link, each way.
    #[arg(long, default_value_t = 0.1)]
    loss_ratio: f64,
    /// Rate of the radio, bits per second.
    #[arg(long, default_value_t = 24_000_000)]
    rate_bps: u64,
    /// Offered payload of each flow, bits per second.
    #[arg(long, default_value_t = 4e6)]
    offered_bps: f64,
    /// Seconds of load before the measured interval, and its own.
    #[arg(long, num_args = 2, default_values_t = [10.0, 30.0])]
    seconds: Vec<f64>,
    /// Seeds of the runs, each one a run.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,
    /// The file to write.
    #[arg(long, default_value = "out/bench/relay.json")]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    neighbours: u8,
    loss_ratio: f64,
    rate_bps: u64,
    offered_bps: f64,
    checks: Vec<Check>,
    runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct Run {
    seed: u64,
    jain_up: f64,
    jain_crossing: f64,
    /// Goodput of the crossing class over the other's.
    crossing_ratio: f64,
    /// Packets with wrong bytes, or that came twice.
    wrong_packets: u64,
    up_bps: Vec<f64>,
    crossing_bps: Vec<f64>,
}

fn main() -> ExitCode {
    frame::exit("bench-relay", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    let runs = arguments.seeds.iter().map(|&seed| measure_run(arguments, seed));
    let runs = runs.collect::<Outcome<Vec<_>>>()?;
    let checks = checks(&runs);
    let all_hold = frame::say(&checks);
    let Arguments { neighbours, loss_ratio, rate_bps, offered_bps, .. } = *arguments;
    let report = Report { schema: 1, neighbours, loss_ratio, rate_bps, offered_bps, checks, runs };
    frame::write_report(&arguments.out, &report)?;
    Ok(all_hold)
}

fn measure_run(arguments: &Arguments, seed: u64) -> Outcome<Run> {
    let seconds = |at: usize| Duration::try_from_secs_f64(arguments.seconds[at]);
    let star = Star {
        neighbours: arguments.neighbours,
        loss_ratio: arguments.loss_ratio,
        rate_bps: arguments.rate_bps,
        offered_bps: arguments.offered_bps,
        packet_len: 1_000,
        warm_up: seconds(0)?,
        duration: seconds(1)?,
        seed,
    };
    let measured = measure(&star)?;
    let rates = |flows: &[StarFlow]| flows.iter().map(|flow| flow.goodput_bps).collect();
    let run = Run {
        seed,
        jain_up: jain(&measured.up),
        jain_crossing: jain(&measured.crossing),
        crossing_ratio: measured.crossing_ratio(),
        wrong_packets: measured.wrong(),
        up_bps: rates(&measured.up),
        crossing_bps: rates(&measured.crossing),
    };
    println!(
        "seed {seed}: up {:.3} Mbit/s, Jain {:.4}; crossing {:.3} Mbit/s, Jain {:.4}",
        run.up_bps.iter().sum::<f64>() / 1e6,
        run.jain_up,
        run.crossing_bps.iter().sum::<f64>() / 1e6,
        run.jain_crossing
    );
    Ok(run)
}

fn checks(runs: &[Run]) -> Vec<Check> {
    let least = |of: fn(&Run) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
    let at_least =
        |name: &str, value: f64, limit: f64| Check::at_least(name, Some(value), limit, "");
    let wrong = runs.iter().map(|run| run.wrong_packets).sum::<u64>() as f64;
    vec![
        at_least("hub: Jain's index of the flows up", least(|run| run.jain_up), JAIN_MIN),
        at_least(
            "hub: Jain's index of the crossing flows",
            least(|run| run.jain_crossing),
            JAIN_MIN,
        ),
        at_least("hub: crossing over up", least(|run| run.crossing_ratio), CROSSING_MIN),
        Check::at_most("hub: wrong packets", Some(wrong), 0.0, "packets"),
    ]
}
