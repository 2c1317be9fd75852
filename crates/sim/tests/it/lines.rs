//! Tunnels over time-varying lines, beside plain TCP over the same lines.

use core::time::Duration;

use corridor_scenario::{Row, Run, Scenario, expand};
use corridor_sim::{LineSeen, run_line, run_line_drawn};

/// Runs over a line; `line` and `run` are the lines of their tables.
fn over(line: &str, run: &str, warm_up_s: u64) -> (Row, LineSeen) {
    over_by(7, line, run, warm_up_s)
}

/// Like [`over`], with another seed.
fn over_by(seed: u64, line: &str, run: &str, warm_up_s: u64) -> (Row, LineSeen) {
    let (scenario, run) = made(seed, line, run);
    run_line(&scenario, &run, Duration::from_secs(warm_up_s)).expect("it can be run")
}

fn made(seed: u64, line: &str, run: &str) -> (Scenario, Run) {
    let scenario = Scenario::parse(&format!(
        "name = 'lines'\nseed = {seed}\n[line]\n{line}\n[[run]]\nunderlay = 'udp'\n{run}\n"
    ));
    let scenario = scenario.expect("a scenario");
    let run = expand(&scenario).expect("runs").remove(0);
    (scenario, run)
}

const STEADY: &str = "rate_bps = '12M'\ndelay_ms = 10\nqueue_packets = 40";
const WINDOW: &str = "path = 'coded'\ncoding = { preset = 'window' }";

#[test]
fn plain_tcp_fills_a_steady_line() {
    for (congestion, e3) in [("cubic", 0.0), ("bbr", 0.0), ("bbr", 0.1)] {
        let run = format!(
            "path = 'kernel'\ntransport = 'tcp'\ncongestion = '{congestion}'\ne3 = {e3}\n\
             duration_s = 20"
        );
        let (row, seen) = over(STEADY, &run, 5);
        let share = row.goodput_bps / (12e6 * 1_448.0 / 1_500.0 * (1.0 - e3));
        assert_eq!(seen.capacity_bps, 12e6);
        assert!((0.9..=1.001).contains(&share), "{congestion}, {e3}: {share:.3}");
    }
}

#[test]
fn a_tunnel_over_a_steady_line_carries_what_losses_leave() {
    for (transport, e3) in [("tcp", 0.0), ("tcp", 0.1), ("udp", 0.1)] {
        let run = format!(
            "{WINDOW}\ntransport = '{transport}'\noffered_bps = '30M'\ne3 = {e3}\nduration_s = 10"
        );
        let (row, seen) = over(STEADY, &run, 5);
        let share = row.goodput_bps / (12e6 * (1.0 - e3));
        assert!((0.8..=1.0).contains(&share), "{transport}, {e3}: {share:.3}, {seen:?}");
        assert!(seen.offered > 9_000, "{seen:?}");
    }
}

/// Jitter is not a queue: jitter that keeps the order, like Wi-Fi's, once left 7 and 2 of 12
/// Mbit/s.
#[test]
fn jitter_takes_little_of_what_losses_leave() {
    for (mean_ms, least_bps) in [(3, 8.5e6), (10, 5.5e6)] {
        let line = format!(
            "rate_bps = '12M'\ndelay_ms = 10\nqueue_packets = 100\n\
             jitter = {{ kind = 'exponential', mean_ms = {mean_ms}, reorders = false }}"
        );
        let run = format!("{WINDOW}\ntransport = 'tcp'\ne3 = 0.1\nduration_s = 30");
        let (row, _) = over(&line, &run, 10);
        assert!(row.goodput_bps >= least_bps, "{mean_ms} ms: {}", row.goodput_bps);
    }
}

/// A buffer of two packets never shows a queue that would warn of overload: it once dropped three
/// quarters.
#[test]
fn a_buffer_of_two_packets_is_not_overrun() {
    const RUNS: u64 = 5;
    for e3 in [0.0, 0.1, 0.2] {
        let line = "rate_bps = '12M'\ndelay_ms = 20\nqueue_packets = 2";
        let run = format!("{WINDOW}\ntransport = 'tcp'\ne3 = {e3}\nduration_s = 20");
        // At a loss ratio of 0.2, one of twelve seeds drops 0.17, and all of them 0.096 on average.
        let runs = (7..7 + RUNS).map(|seed| over_by(seed, line, &run, 10));
        let (mut dropped, mut share) = (0.0, 0.0);
        for (row, seen) in runs {
            dropped += seen.dropped as f64 / seen.offered as f64 / RUNS as f64;
            share += row.goodput_bps / (12e6 * (1.0 - e3)) / RUNS as f64;
        }
        assert!(dropped <= 0.15, "{dropped:.3} dropped at {e3} lost");
        assert!(share > 0.8, "{share:.3} at {e3} lost");
    }
}

#[test]
fn rates_vary_the_same_for_all_that_is_compared() {
    let line = "rate = { kind = 'markov', rates_bps = ['2M', '12M', 0], dwell_s = 0.5 }\n\
                delay_ms = 10\nqueue_bytes = 60000\nerasure_ratio = 0.02\n\
                jitter = { kind = 'exponential', mean_ms = 1, reorders = true }";
    let load = "transport = 'tcp'\ncongestion = 'bbr'\ne3 = 0\nduration_s = 30";
    let (plain, of_plain) = over(line, &format!("path = 'kernel'\n{load}"), 5);
    let (tunnel, of_tunnel) = over(line, &format!("{WINDOW}\n{load}"), 5);
    let (one, other) = (of_plain.capacity_bps, of_tunnel.capacity_bps);
    assert_eq!(one, other, "whenever the stations met");
    assert!((2e6..8e6).contains(&one), "{one}");
    for (row, seen) in [(plain, of_plain), (tunnel, of_tunnel)] {
        assert!(row.goodput_bps < seen.capacity_bps);
        assert!(row.goodput_bps > 0.05 * seen.capacity_bps, "{} {seen:?}", row.goodput_bps);
        assert!(seen.erased * 60 > seen.offered - seen.dropped, "{seen:?}");
    }
}

/// Once, all eight draws without TCP were the same run with the jitter shifted: only TCP's senders
/// drew anew.
#[test]
fn all_loads_have_draws_of_their_own_over_the_same_line() {
    let line = "rate = { kind = 'markov', rates_bps = ['3M', '8M', '16M'], dwell_s = 0.4 }\n\
                delay_ms = 10\nqueue_bytes = 60000\njitter = { kind = 'exponential', mean_ms = 2 }";
    let load = "e3 = 0\nduration_s = 8\noffered_bps = '4M'";
    for path in ["path = 'kernel'", WINDOW] {
        for transport in ["udp", "tcp"] {
            let text = format!("{path}\n{load}\ntransport = '{transport}'");
            let (scenario, run) = made(7, line, &text);
            let drawn = |draw| {
                run_line_drawn(&scenario, &run, Duration::from_secs(2), draw).expect("a run")
            };
            let runs: Vec<_> = (0..3).map(drawn).collect();
            assert_eq!(runs[0], over(line, &text, 2), "the first is the plain run");
            assert_eq!(runs[2], drawn(2), "draws repeat");
            for (index, (row, seen)) in runs.iter().enumerate() {
                assert_eq!(seen.capacity_bps, runs[0].1.capacity_bps, "one line");
                for other in &runs[..index] {
                    // Where only the line's randomness matters, its jitter makes the difference.
                    assert_ne!((row, seen), (&other.0, &other.1), "{text}: draws differ");
                }
            }
        }
    }
}

#[test]
fn runs_repeat() {
    let line = "rate = { kind = 'walk', least_bps = '1M', most_bps = '9M', interval_ms = 50, \
                deviation = 0.2 }\ndelay_ms = 5\nqueue_ms = 40\n\
                policer = { rate_bps = '5M', burst_bytes = 15000 }\n\
                outage = { kind = 'exponential', up_s = 3, down_s = 0.2 }";
    let run = format!("{WINDOW}\ntransport = 'tcp'\ne3 = 0.05\nburst_frames = 4\nduration_s = 8");
    assert_eq!(over(line, &run, 2), over(line, &run, 2));
}
