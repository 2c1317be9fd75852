//! Time until two stations can exchange frames over a path that loses nine of ten, each way.

use std::time::Duration;

use corridor_base::Time;
use corridor_proto::{Security, Station, StationId};
use corridor_results::checks::Check;
use serde::Serialize;

use crate::net::{Host, Losses, Net, config, keyed, quantile};

const LOSS: f64 = 0.9;
/// Maximum median and 99th percentile, seconds.
const MEDIAN_MAX: f64 = 3.0;
const P99_MAX: f64 = 10.0;
/// Maximum waiting time.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize)]
pub struct Kind {
    keys_of_their_own: bool,
    /// Whether only one end knows the other's address.
    one_is_called: bool,
    runs: usize,
    /// Number of pairs connected within a minute.
    up: usize,
    median_s: Option<f64>,
    p99_s: Option<f64>,
    max_s: Option<f64>,
}

/// Each kind of pair.
pub fn measure(runs: usize, checks: &mut Vec<Check>) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (keys_of_their_own, one_is_called) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let mut times: Vec<f64> = (0..runs as u64)
            .map(|seed| one(keys_of_their_own, one_is_called, seed).unwrap_or(f64::INFINITY))
            .collect();
        times.sort_by(f64::total_cmp);
        let keys = if keys_of_their_own { "keys of their own" } else { "a shared secret" };
        let known = if one_is_called { "one end is called" } else { "both ends call" };
        let of = |what| format!("session at 90 % loss each way, {keys}, {known}: {what}");
        let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        let kind = Kind {
            keys_of_their_own,
            one_is_called,
            runs,
            up: times.iter().filter(|time| time.is_finite()).count(),
            median_s: finite(quantile(&times, 0.5)),
            p99_s: finite(quantile(&times, 0.99)),
            max_s: finite(times.last().copied()),
        };
        checks.extend([
            Check::at_most(of("median"), kind.median_s, MEDIAN_MAX, "s"),
            Check::at_most(of("99th percentile"), kind.p99_s, P99_MAX, "s"),
        ]);
        kinds.push(kind);
    }
    kinds
}

fn one(keys_of_their_own: bool, one_is_called: bool, seed: u64) -> Option<f64> {
    let ids = [StationId(1), StationId(2)];
    let host = |at: usize| {
        let (me, peer) = (ids[at], ids[1 - at]);
        let mut entropy = [at as u8 + 1; 32];
        entropy[..8].copy_from_slice(&seed.to_be_bytes());
        let security: Security =
            if keys_of_their_own { keyed(me, &[peer]) } else { [7; 32].into() };
        let station = Station::new(config(me, peer, security), entropy, Time::ZERO);
        let known = Some(1 - at as u32).filter(|_| !one_is_called || at == 0);
        let station = station.expect("a sound configuration").into();
        Host::new(station, [(peer, known)], at as u32, Time::ZERO)
    };
    let mut net = Net::new(vec![host(0), host(1)], Duration::from_millis(10));
    let mut losses = Losses::new(LOSS, seed);
    let is_up = |net: &Net| {
        net.hosts[0].station.is_up(ids[1])
            && net.hosts[1].station.is_up(ids[0])
            && net.hosts[1].book.address(ids[0]).is_some()
    };
    while !is_up(&net) && net.now < Time::ZERO + PATIENCE {
        let next = net.now + Duration::from_millis(5);
        net.run_until(next, &mut |host, frame| losses.survives(host, frame));
    }
    is_up(&net).then(|| (net.now - Time::ZERO).as_secs_f64())
}
