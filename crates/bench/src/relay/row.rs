//! TCP over a row of hubs, each hop a path of its own.

use std::time::Duration;

use corridor_bench::frame::Outcome;
use corridor_results::checks::Check;
use corridor_sim::chain::{self, Chain, Waits};
use serde::Serialize;

use crate::Arguments;

/// Minimum fraction of what losses leave of Cubic's lossless goodput.
const GOODPUT_MIN: f64 = 0.88;
/// Maximum wait of packets at a hub, 95th percentile, milliseconds.
const WAIT_MS_MAX: f64 = 30.0;
/// Queue limit before each hop, packets.
const QUEUE_PACKETS: usize = 100;

#[derive(Debug, Serialize)]
pub(crate) struct Row {
    hops: u8,
    hop_rate_bps: u64,
    hop_round_trip_ms: f64,
    runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct Run {
    seed: u64,
    /// Cubic's goodput over the same hops without losses, and without stations.
    plain_bps: f64,
    goodput_bps: f64,
    /// Over one hop with the round-trip time of all, and the losses of one.
    one_hop_bps: f64,
    /// At each hub, 95th percentiles of the wait: in it, and before the line.
    hub_p95_ms: Vec<f64>,
    line_p95_ms: Vec<f64>,
    /// Packets that hubs decoded, and then dropped.
    dropped_packets: u64,
}

pub(crate) fn measure(arguments: &Arguments) -> Outcome<Row> {
    let runs = arguments.seeds.iter().map(|&seed| measure_run(arguments, seed));
    Ok(Row {
        hops: arguments.hops,
        hop_rate_bps: arguments.hop_rate_bps,
        hop_round_trip_ms: arguments.hop_round_trip_ms,
        runs: runs.collect::<Outcome<_>>()?,
    })
}

fn measure_run(arguments: &Arguments, seed: u64) -> Outcome<Run> {
    let (warm_up, duration) = arguments.spans()?;
    let round_trip = Duration::try_from_secs_f64(arguments.hop_round_trip_ms / 1e3)?;
    let chain = Chain {
        hops: arguments.hops,
        rate_bps: arguments.hop_rate_bps,
        round_trip,
        loss_ratio: arguments.loss_ratio,
        queue_packets: QUEUE_PACKETS,
        warm_up,
        duration,
        seed,
    };
    let plain_bps = chain::measure_plain(&Chain { loss_ratio: 0.0, ..chain.clone() })?;
    let round_trip = round_trip * u32::from(arguments.hops);
    let one_hop = chain::measure(&Chain { hops: 1, round_trip, ..chain.clone() })?;
    let measured = chain::measure(&chain)?;
    let ms = |of: fn(&Waits) -> f64| measured.waits.iter().map(|waits| 1e3 * of(waits)).collect();
    let dropped =
        |stats: &corridor_proto::Stats| stats.packets_dropped_codel + stats.packets_dropped_ingress;
    let run = Run {
        seed,
        plain_bps,
        goodput_bps: measured.goodput_bps,
        one_hop_bps: one_hop.goodput_bps,
        hub_p95_ms: ms(|waits| waits.hub_p95_s),
        line_p95_ms: ms(|waits| waits.line_p95_s),
        dropped_packets: measured.onward.iter().map(dropped).sum(),
    };
    println!(
        "row, seed {seed}: {:.3} Mbit/s over {} hops, {:.3} over one; Cubic without losses {:.3}; \
         waits {:.1?} and {:.1?} ms",
        run.goodput_bps / 1e6,
        chain.hops,
        run.one_hop_bps / 1e6,
        plain_bps / 1e6,
        run.hub_p95_ms,
        run.line_p95_ms
    );
    Ok(run)
}

impl Row {
    pub(crate) fn checks(&self, loss_ratio: f64) -> Vec<Check> {
        let left = |run: &Run| run.goodput_bps / ((1.0 - loss_ratio) * run.plain_bps);
        let least = self.runs.iter().map(left).fold(f64::INFINITY, f64::min);
        // Both queues of a hub added: at least the percentile of their sum, as far as they are long
        // at the same time.
        let longest = |run: &Run| {
            let both = run.hub_p95_ms.iter().zip(&run.line_p95_ms).map(|(hub, line)| hub + line);
            both.fold(0.0, f64::max)
        };
        let wait = self.runs.iter().map(longest).fold(0.0, f64::max);
        let dropped = self.runs.iter().map(|run| run.dropped_packets).sum::<u64>() as f64;
        let name = "row: TCP over what losses leave of Cubic's goodput without any";
        vec![
            Check::at_least(name, Some(least), GOODPUT_MIN, ""),
            Check::at_most("row: wait at a hub, p95", Some(wait), WAIT_MS_MAX, "ms"),
            Check::at_most("row: packets dropped after decoding", Some(dropped), 0.0, "packets"),
        ]
    }
}
