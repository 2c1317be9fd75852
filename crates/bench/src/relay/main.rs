//! `bench-relay`: what stations get that share a radio with a hub, and what TCP gets over hubs in a
//! row.
//!
//! Each neighbour of a hub has a flow up to it and one that crosses it to the next neighbour, more
//! of both than the radio carries: datagrams, then connections. In a row, each hop is a path of its
//! own with losses. Writes what was measured, and `checks`: name, value, limit, and whether it
//! holds. Ends with 1 if one does not.

mod row;
mod star;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use corridor_bench::frame::{self, Outcome};
use corridor_results::checks::Check;
use serde::Serialize;

/// Measures how a hub's radio is divided, and what crosses hubs in a row.
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
    /// Offered payload of each flow of datagrams, bits per second.
    #[arg(long, default_value_t = 4e6)]
    offered_bps: f64,
    /// Hops of the row.
    #[arg(long, default_value_t = 4)]
    hops: u8,
    /// Rate of each of them, each way, bits per second.
    #[arg(long, default_value_t = 12_000_000)]
    hop_rate_bps: u64,
    /// Round trip of each of them, milliseconds.
    #[arg(long, default_value_t = 4.0)]
    hop_round_trip_ms: f64,
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

impl Arguments {
    /// The load before the measured interval, and its own length.
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
