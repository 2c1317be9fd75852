//! `bench-relay`: throughput of stations that share a radio with a hub, and of TCP over a row of
//! hubs.
//!
//! Each neighbour of a hub has a flow to the hub and one across it to the next neighbour, more of
//! both than the radio can carry: first datagrams, then connections. In a row, each hop is a lossy
//! path of its own. Writes the measurements, and `checks`: name, value, limit, and whether it
//! holds. Exits with 1 if one does not hold.

mod row;
mod star;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use corridor_bench::frame::{self, Outcome};
use corridor_results::checks::Check;
use serde::Serialize;

/// Measures how a hub's radio is shared, and throughput across a row of hubs.
#[derive(Debug, Parser)]
#[command(name = "bench-relay")]
struct Arguments {
    /// Number of neighbours of the hub.
    #[arg(long, default_value_t = 8)]
    neighbours: u8,
    /// Frame loss ratio on each link, each way.
    #[arg(long, default_value_t = 0.1)]
    loss_ratio: f64,
    /// Rate of the radio, bits per second.
    #[arg(long, default_value_t = 24_000_000)]
    rate_bps: u64,
    /// Offered payload of each datagram flow, bits per second.
    #[arg(long, default_value_t = 4e6)]
    offered_bps: f64,
    /// Number of hops in the row.
    #[arg(long, default_value_t = 4)]
    hops: u8,
    /// Rate of each hop, each way, bits per second.
    #[arg(long, default_value_t = 12_000_000)]
    hop_rate_bps: u64,
    /// Round-trip time of each hop, milliseconds.
    #[arg(long, default_value_t = 4.0)]
    hop_round_trip_ms: f64,
    /// Seconds of warm-up under load, and of the measured interval.
    #[arg(long, num_args = 2, default_values_t = [10.0, 30.0])]
    seconds: Vec<f64>,
    /// Seeds, one run each.
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,
    /// The file to write.
    #[arg(long, default_value = "out/bench/relay.json")]
    out: PathBuf,
}

impl Arguments {
    /// Durations of the warm-up and of the measured interval.
    fn spans(&self) -> Outcome<(Duration, Duration)> {
        let span = |at: usize| Duration::try_from_secs_f64(self.seconds[at]);
        Ok((span(0)?, span(1)?))
    }
}

#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    loss_ratio: f64,
    checks: Vec<Check>,
    star: star::Star,
    row: row::Row,
}

fn main() -> ExitCode {
    frame::exit("bench-relay", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    let star = star::measure(arguments)?;
    let row = row::measure(arguments)?;
    let checks = [star.checks(), row.checks(arguments.loss_ratio)].concat();
    let all_hold = frame::say(&checks);
    let loss_ratio = arguments.loss_ratio;
    let report = Report { schema: 2, loss_ratio, checks, star, row };
    frame::write_report(&arguments.out, &report)?;
    Ok(all_hold)
}

#[cfg(test)]
#[path = "../recipe.rs"]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-relay", "bench-relay", &[]);
    }
}
