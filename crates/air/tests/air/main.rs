//! The medium through its public API. Every statistical test is a pure function of [`SEED`], so it
//! is not flaky; its margins are five standard deviations, so it passes with other seeds too.

mod access;
mod airtime;
mod config;
mod dcf;
mod driver;
mod erasure;
mod links;
mod pipe;
mod process;
mod queue;
mod radio;
mod retry;
mod varying;
mod wpan;

use core::time::Duration;

use corridor_air::{Address, Delivery, Duplex, Jitter, Link, Medium, MediumConfig, Station};
use corridor_base::Time;

const SEED: u64 = 1;

/// 1 Mbit/s: a byte takes 8 us.
const RATE_BPS: u64 = 1_000_000;

/// A frame of 100 bytes takes 1 ms: 200 us of overhead, 800 us of bits.
const FRAME: [u8; 100] = [0xC0; 100];
const FRAME_AIRTIME: Duration = Duration::from_millis(1);

/// Stations without links; every test adds its own.
fn config(mode: Duplex, stations: usize) -> MediumConfig {
    MediumConfig {
        mode,
        rate_bps: RATE_BPS,
        overhead: Duration::from_micros(200),
        propagation: Duration::ZERO,
        jitter: Jitter::None,
        queue_frames: 8,
        drops_when_full: false,
        stations,
        links: Vec::new(),
        seed: SEED,
        replication: 0,
    }
}

fn link(from: Station, to: Station, erasure_ratio: f64) -> Link {
    Link { from, to, erasure: erasure_ratio.into(), retry_limit: 0 }
}

/// Every station hears every other.
fn mesh(mode: Duplex, stations: usize, erasure_ratio: f64) -> MediumConfig {
    let pairs = (0..stations).flat_map(|from| (0..stations).map(move |to| (from, to)));
    let links = pairs.filter(|(from, to)| from != to);
    let links = links.map(|(from, to)| link(from, to, erasure_ratio)).collect();
    MediumConfig { links, ..config(mode, stations) }
}

fn medium(config: MediumConfig) -> Medium {
    Medium::new(config).expect("a valid configuration")
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// What has arrived so far.
fn drain(medium: &mut Medium) -> Vec<Delivery> {
    core::iter::from_fn(|| medium.poll_delivery()).collect()
}

/// Runs without new frames until the medium is idle.
fn run(medium: &mut Medium) -> Vec<Delivery> {
    let mut heard = Vec::new();
    while let Some(now) = medium.poll_timeout() {
        medium.handle_timeout(now);
        heard.append(&mut drain(medium));
    }
    heard
}

/// Keeps the queues of `senders` full of copies of `frame` until `end`.
fn saturate(
    medium: &mut Medium,
    senders: &[(Station, Address)],
    frame: &[u8],
    end: Time,
) -> Vec<Delivery> {
    let mut heard = Vec::new();
    let mut now = Time::ZERO;
    while now <= end {
        medium.handle_timeout(now);
        heard.append(&mut drain(medium));
        for &(station, to) in senders {
            while medium.has_room(station) {
                medium.offer(now, station, to, frame).expect("there is room");
            }
        }
        now = medium.poll_timeout().expect("the queues are full");
    }
    heard
}

/// Five standard deviations of the expected number of successes.
fn margin(trials: u64, ratio: f64) -> f64 {
    5.0 * (trials as f64 * ratio * (1.0 - ratio)).sqrt()
}

#[track_caller]
fn assert_binomial(successes: u64, trials: u64, ratio: f64) {
    let expected = trials as f64 * ratio;
    assert!(
        (successes as f64 - expected).abs() <= margin(trials, ratio),
        "{successes} of {trials}, expected about {expected:.0} (seed {SEED})"
    );
}
