//! Cost of agreeing on a new secret every second: a stream of packets with and without it, with the
//! same frames lost.

use std::time::Duration;

use corridor_base::Time;
use corridor_proto::{Station, StationId};
use corridor_results::checks::Check;
use serde::Serialize;

use crate::net::{Host, Losses, Net, config, keyed, quantile};

/// Maximum increase of the delay's 99.9th percentile, seconds.
const TAIL_MAX: f64 = 0.002;
/// The same for the longest time between two packets.
const GAP_MAX: f64 = 0.010;
const PACKET_LEN: usize = 1_000;

#[derive(Debug, Serialize)]
pub struct Run {
    round_trip_s: f64,
    seed: u64,
    rekeyed: bool,
    secrets_agreed: u64,
    sent: usize,
    delivered: usize,
    /// End-to-end delay of packets.
    delay_median_s: Option<f64>,
    delay_p999_s: Option<f64>,
    gap_max_s: Option<f64>,
    frames_rejected: u64,
    /// Sorted.
    #[serde(skip)]
    delays_s: Vec<f64>,
}

/// Difference of the same quantile of the same packets, over all seeds together.
fn pooled(with: &[Run], without: &[Run], share: f64) -> Option<f64> {
    let of = |runs: &[Run]| {
        let mut delays: Vec<f64> = runs.iter().flat_map(|run| run.delays_s.clone()).collect();
        delays.sort_by(f64::total_cmp);
        quantile(&delays, share)
    };
    Some(of(with)? - of(without)?)
}

/// With and without rekeying, at each round-trip time.
///
/// The lost frames have the same numbers among those that carry data, but rekeying adds some of
/// these, so from the first secret on the same losses hit different packets. This alone makes one
/// seed's extremes differ by 25 ms either way (RTT 100 ms, 40 seeds: longest gap -0.6 ms on
/// average, standard error 1.3 ms): only many seeds are informative.
pub fn measure(seconds: u64, seeds: &[u64], checks: &mut Vec<Check>) -> Vec<Run> {
    let mut runs = Vec::new();
    for round_trip_ms in [4, 100] {
        let of_each = |rekeyed| -> Vec<Run> {
            seeds.iter().map(|&seed| one(round_trip_ms, seed, rekeyed, seconds)).collect()
        };
        let (without, with) = (of_each(false), of_each(true));
        let gap = |runs: &[Run]| -> Option<f64> {
            let gaps: Option<Vec<f64>> = runs.iter().map(|run| run.gap_max_s).collect();
            Some(gaps?.iter().sum::<f64>() / runs.len() as f64)
        };
        let count = |runs: &[Run]| runs.iter().map(|run| run.delivered as f64).sum::<f64>();
        let least_agreed = with.iter().map(|run| run.secrets_agreed).min().unwrap_or(0);
        let of = |what: &str| format!("rekey each second, RTT {round_trip_ms} ms: {what}");
        let secrets = Some(least_agreed as f64);
        checks.extend([
            Check::at_most(
                of("p99.9 of the delay longer by, all seeds"),
                pooled(&with, &without, 0.999),
                TAIL_MAX,
                "s",
            ),
            Check::at_most(
                of("longest gap longer by, mean of seeds"),
                gap(&with).zip(gap(&without)).map(|(a, b)| a - b),
                GAP_MAX,
                "s",
            ),
            Check::at_most(
                of("packets lost by it"),
                Some(count(&without) - count(&with)),
                0.0,
                "packets",
            ),
            // Otherwise there was nothing to measure.
            Check::at_least(of("secrets agreed on"), secrets, 0.7 * seconds as f64, "secrets"),
        ]);
        runs.extend(without.into_iter().chain(with));
    }
    runs
}

fn one(round_trip_ms: u64, seed: u64, rekeyed: bool, seconds: u64) -> Run {
    let ids = [StationId(1), StationId(2)];
    let host = |at: usize| {
        let (me, peer) = (ids[at], ids[1 - at]);
        let entropy = [seed as u8 ^ (at as u8 + 1) << 6; 32];
        let config = config(me, peer, keyed(me, &[peer]));
        let mut station = Station::new(config, entropy, Time::ZERO).expect("a sound configuration");
        if rekeyed {
            station.set_rekey_interval(Duration::from_secs(1));
        }
        let known = [(peer, Some(1 - at as u32))];
        Host::new(station.into(), known, at as u32, Time::ZERO)
    };
    let delay = Duration::from_micros(500 * round_trip_ms);
    let mut net = Net::new(vec![host(0), host(1)], delay);
    let mut losses = Losses::new(0.2, seed);
    let survives: crate::net::Fate<'_> = &mut |host, frame| losses.survives(host, frame);
    // The window and its path estimates are in steady state.
    let start = Time::from_millis(5_000);
    net.run_until(start, survives);
    let mut offered = Vec::new();
    let (warm, count) = (2_000, 1_000 * seconds);
    for number in 0..warm + count {
        let at = start + Duration::from_millis(number);
        net.run_until(at, survives);
        let mut packet = vec![0; PACKET_LEN];
        packet[1..9].copy_from_slice(&number.to_be_bytes());
        net.offer(0, &packet, survives);
        offered.push(at);
    }
    net.run_until(net.now + Duration::from_secs(3), survives);
    let came: Vec<(Time, usize)> = net.hosts[1]
        .delivered
        .iter()
        .filter_map(|(at, packet)| {
            let number = u64::from_be_bytes(packet[1..9].try_into().ok()?);
            (number >= warm).then_some((*at, number as usize))
        })
        .collect();
    let mut delays: Vec<f64> =
        came.iter().map(|&(at, number)| (at - offered[number]).as_secs_f64()).collect();
    delays.sort_by(f64::total_cmp);
    let gaps = came.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64());
    let rejected = net.hosts.iter().map(|host| host.station.stats().frames_rejected);
    Run {
        round_trip_s: round_trip_ms as f64 / 1e3,
        seed,
        rekeyed,
        secrets_agreed: net.hosts.iter().map(|host| host.station.stats().secrets_agreed).sum(),
        sent: count as usize,
        delivered: came.len(),
        delay_median_s: quantile(&delays, 0.5),
        delay_p999_s: quantile(&delays, 0.999),
        gap_max_s: gaps.reduce(f64::max),
        frames_rejected: rejected.sum(),
        delays_s: delays,
    }
}
