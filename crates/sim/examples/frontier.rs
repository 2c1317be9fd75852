//! Delay of window mode on one hop with a saturated source and no ingress queue, over loss and
//! round trip, to hold against the frontier of coded delivery.
//!
//! `cargo run --release -p corridor-sim --example frontier [seconds] [throughput|low-delay]`
//!
//! `QUEUE=50` lets the link hold so many frames that the sender cannot see, instead of one.
use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

use corridor_air::{Duplex, Link, Medium, MediumConfig};
use corridor_base::{StreamKey, Time, rand::Rng};
use corridor_proto::{CodingParams, Goal, LinkErrors, Role, Station, StationConfig, StationId};
use corridor_sim::{Node, World};

const FRAME_LEN: usize = 1500;

struct Result {
    share: f64,
    delays_ms: Vec<f64>,
    coded: u64,
    copies: u64,
    dependent: u64,
    timeouts: u64,
    acks: u64,
}

fn run(loss: f64, rtt_ms: u64, seconds: u64, goal: Goal, seed: u64) -> Result {
    let link = |from, to| Link { from, to, erasure: loss.into(), retry_limit: 0 };
    let medium = Medium::new(MediumConfig {
        mode: Duplex::Full,
        rate_bps: 12_000_000,
        overhead: Duration::ZERO,
        propagation: Duration::from_micros(rtt_ms * 500),
        queue_frames: std::env::var("QUEUE").map_or(1, |v| v.parse().expect("frames")),
        stations: 2,
        links: vec![link(0, 1), link(1, 0)],
        seed,
        replication: 0,
    })
    .expect("medium");
    let warm_up = Time::from_millis(5_000);
    let delays = Rc::new(RefCell::new(Vec::new()));
    let times: Rc<RefCell<Vec<Time>>> = Rc::default();
    let mut nodes = Vec::new();
    for index in 0..2u8 {
        let mut entropy = [0; 32];
        StreamKey { seed, replication: 0, entity: index.into(), purpose: "entropy" }
            .stream()
            .fill_bytes(&mut entropy);
        let config = StationConfig {
            id: StationId(index + 1),
            role: Role::Endpoint { peer: StationId(2 - index), helper: None },
            psk: [1; 32],
            coding: CodingParams { goal, ..CodingParams::window() },
            link_errors: LinkErrors::Measured,
            ingress_packets: 4,
            frame_len_max: FRAME_LEN,
            frame_len_min: 46,
            rate_bps: None,
        };
        let station = Station::new(config, entropy, Time::ZERO).expect("station");
        let delays = Rc::clone(&delays);
        let times = Rc::clone(&times);
        nodes.push(Node::new(station, move |now: Time, packet: &[u8]| {
            let n = u64::from_be_bytes(packet[..8].try_into().expect("8")) as usize;
            if index == 0 {
                return;
            }
            let Some(&sent) = times.borrow().get(n) else { return };
            if index == 1 && sent >= warm_up {
                delays.borrow_mut().push((now - sent).as_secs_f64() * 1e3);
            }
        }));
    }
    let mut world = World::new(medium, nodes);
    let end = warm_up + Duration::from_secs(seconds);
    let mtu = world.nodes()[0].station.tunnel_mtu();
    let mut packet = vec![0; mtu];
    let mut now = Time::ZERO;
    // A saturated source: whenever the last packet has gone, there is another.
    while now < end {
        let stats = world.nodes()[0].station.stats();
        while (times.borrow().len() as u64) < stats.symbols_added {
            times.borrow_mut().push(now);
        }
        if stats.packets_accepted == stats.symbols_added {
            packet[..8].copy_from_slice(&stats.packets_accepted.to_be_bytes());
            world.node_mut(0).station.handle_packet(now, &packet);
            world.settle();
        } else {
            now = world.next_event().unwrap_or(end).min(end);
            world.run_until(now);
        }
    }
    world.run_until(end + Duration::from_secs(3));
    let delays_ms = {
        let mut d = delays.borrow().clone();
        d.sort_by(f64::total_cmp);
        d
    };
    let stats = world.nodes()[0].station.stats().clone();
    let other = world.nodes()[1].station.stats().clone();
    // Frames that the channel carries in a second, by the frame's own time on the air.
    let frames_max = seconds as f64 * 12e6 / (8.0 * FRAME_LEN as f64);
    Result {
        share: delays_ms.len() as f64 / (frames_max * (1.0 - loss)),
        delays_ms,
        coded: stats.coded_frames_sent,
        copies: stats.copies_sent,
        dependent: other.symbols_dependent,
        timeouts: stats.encoder_timeouts,
        acks: other.ack_frames_sent,
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|s| s.parse().ok()).unwrap_or(60);
    let goal = match args.next().as_deref() {
        Some("low-delay") => Goal::LowDelay,
        _ => Goal::Throughput,
    };
    println!("rtt loss share | p50 p95 p99 (frontier) | coded copies dependent timeouts acks");
    for &(rtt, loss, frontier) in table(goal) {
        let r = run(loss, rtt, seconds, goal, 1);
        let q = |p: f64| r.delays_ms[((r.delays_ms.len() - 1) as f64 * p) as usize];
        let measured = [q(0.5), q(0.95), q(0.99)];
        print!("{rtt:3} {loss:.2} {:.3} |", r.share);
        for (ms, best) in measured.iter().zip(frontier) {
            print!(" {ms:6.1} ({best:3.0}, {:.2})", ms / best);
        }
        println!(" | {} {} {} {} {}", r.coded, r.copies, r.dependent, r.timeouts, r.acks);
    }
}

/// One line of the frontier: round trip in ms, loss, and p50, p95, p99 in ms.
type Line = (u64, f64, [f64; 3]);

/// The best delays found by optimisation with ideal codes, at .966 (throughput) and .90 (low delay)
/// of the symbol capacity.
fn table(goal: Goal) -> &'static [Line] {
    match goal {
        Goal::Throughput => &[
            (4, 0.05, [3.0, 9.0, 10.0]),
            (4, 0.1, [3.0, 10.0, 16.0]),
            (4, 0.2, [7.0, 17.0, 23.0]),
            (4, 0.3, [9.0, 23.0, 31.0]),
            (4, 0.4, [12.0, 32.0, 44.0]),
            (100, 0.05, [51.0, 125.0, 175.0]),
            (100, 0.1, [60.0, 160.0, 200.0]),
            (100, 0.2, [84.0, 193.0, 256.0]),
            (100, 0.3, [95.0, 241.0, 318.0]),
            (100, 0.4, [130.0, 275.0, 342.0]),
        ],
        Goal::LowDelay => &[
            (4, 0.3, [5.0, 17.0, 24.0]),
            (4, 0.4, [7.0, 23.0, 33.0]),
            (100, 0.3, [53.0, 126.0, 184.0]),
        ],
    }
}
