//! Window mode alone on random paths of some bandwidth-delay product, or on a scenario's line: what
//! `bench-paths` measures of it, without the alternatives it is compared with.
//!
//! `cargo run --release -p corridor-bench --example window_paths -- --bdp-min 1024 --count 20`

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use corridor_bench::frame::Outcome;
use corridor_scenario::{Scenario, expand};
use corridor_sim::run_line;

#[path = "../src/paths/draw.rs"]
#[allow(dead_code, reason = "what others of the bench use")]
mod draw;

use draw::{Drawn, FRAME_BITS, Way};

/// IP and TCP headers of a packet, including timestamps, and a full packet, bytes.
const TCP_HEADERS_LEN: f64 = 52.0;
const PACKET_BYTES: f64 = 1_500.0;

/// Runs window mode on random paths.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// Seed of the paths.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of paths with that bandwidth-delay product to find.
    #[arg(long, default_value_t = 20)]
    count: usize,
    /// A single path.
    #[arg(long)]
    only: Option<u64>,
    /// Bandwidth-delay product, frames: lower bound, and (exclusive) upper bound.
    #[arg(long, default_value_t = 0.0)]
    bdp_min: f64,
    /// See `bdp_min`.
    #[arg(long, default_value_t = f64::INFINITY)]
    bdp_max: f64,
    /// Approximate maximum number of packets per run.
    #[arg(long, default_value_t = 200_000.0)]
    packets_max: f64,
    /// A scenario with one run, instead of random paths.
    #[arg(long)]
    file: Option<String>,
    /// Additional coding parameters, such as `window_size = 1024`: a window of one lane.
    #[arg(long, default_value = "")]
    coding: String,
    /// Its warm-up under load, seconds.
    #[arg(long, default_value_t = 15.0)]
    warm_up_s: f64,
    /// Number of concurrent runs.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    if let Some(file) = &arguments.file {
        let text = arguments.told(&fs::read_to_string(file)?);
        let (share, line) = run(&text, arguments.warm_up_s, 0)?;
        println!("{share:.3} {line}");
        return Ok(());
    }
    let is_meant =
        |path: &Drawn| (arguments.bdp_min..arguments.bdp_max).contains(&path.bdp_frames());
    let drawn = (0..).map(|index| Drawn::new(arguments.seed, index)).filter(is_meant);
    let paths: Vec<Drawn> = match arguments.only {
        Some(index) => vec![Drawn::new(arguments.seed, index)],
        None => drawn.take(arguments.count).collect(),
    };
    let (next, shares) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    let (warm_up_s, duration_s) = spans(path, arguments.packets_max);
                    let text = path.scenario(arguments.seed, Way::Window, duration_s);
                    let text = arguments.told(&text);
                    let (index, bdp) = (path.index, path.bdp_frames());
                    match run(&text, warm_up_s, index) {
                        Ok((share, line)) => {
                            println!("{index:4} {share:.3} {bdp:6.0} {line}; {}", path.title());
                            shares.lock().expect("no run panics").push(share);
                        }
                        Err(error) => println!("{index:4} {error}"),
                    }
                }
            });
        }
    });
    let mut shares = shares.into_inner()?;
    shares.sort_by(f64::total_cmp);
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let at = |part: f64| shares[(part * (shares.len() - 1) as f64) as usize];
    println!("{} paths: mean {mean:.3} 10 % {:.3} median {:.3}", shares.len(), at(0.1), at(0.5));
    Ok(())
}

impl Arguments {
    /// A scenario with the additional coding parameters.
    fn told(&self, text: &str) -> String {
        let preset = "preset = 'window'";
        let besides = if self.coding.is_empty() { "" } else { ", " };
        text.replace(preset, &format!("{preset}{besides}{}", self.coding))
    }
}

/// Warm-up and measured interval, seconds, shortened if they are too many packets.
fn spans(path: &Drawn, packets_max: f64) -> (f64, f64) {
    let (rtt_s, per_s) = (path.rtt_ms / 1e3, path.mean_bps / FRAME_BITS);
    let warm_up_s = 10_f64.max(30.0 * rtt_s);
    let interval_s = (2_000.0 / per_s).max(10.0).max(30.0 * rtt_s);
    let scale = (packets_max / (per_s * (warm_up_s + interval_s))).min(1.0);
    (
        (warm_up_s * scale).max(2.0).max(20.0 * rtt_s),
        (interval_s * scale).max(1.0).max(10.0 * rtt_s),
    )
}

/// The fraction of the capacity that losses leave, and a line about it.
fn run(text: &str, warm_up_s: f64, replication: u64) -> Outcome<(f64, String)> {
    let scenario = Scenario::parse(text).map_err(|error| format!("{error}\nin\n{text}"))?;
    let mut run = expand(&scenario)?.remove(0);
    run.replication = replication;
    let (row, seen) = run_line(&scenario, &run, Duration::from_secs_f64(warm_up_s))?;
    let header_bytes = PACKET_BYTES - seen.mtu as f64 + TCP_HEADERS_LEN;
    let lost = seen.erased as f64 / (seen.offered - seen.dropped).max(1) as f64;
    let could_bps = seen.capacity_bps * (1.0 - header_bytes / PACKET_BYTES) * (1.0 - lost);
    let share = row.goodput_bps / could_bps.max(1.0);
    let ms = |seconds: Option<f64>| 1e3 * seconds.unwrap_or(f64::NAN);
    let line = format!(
        "{:.2} Mbit/s, lost {lost:.3}, dropped {:.3}, p50 {:.0} p95 {:.0} ms",
        row.goodput_bps / 1e6,
        seen.dropped as f64 / seen.offered.max(1) as f64,
        ms(row.delays.delay_p50_s),
        ms(row.delays.delay_p95_s),
    );
    Ok((share, line))
}
