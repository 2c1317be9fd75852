//! What frames cost at a hub whose own rate limits it, while packets wait for all of its
//! neighbours: to build them, to handle timers, and to find the next timer.
//!
//! ```text
//! cargo build --release -p corridor-proto --example hub_cost
//! target/release/examples/hub_cost 256
//! valgrind --tool=callgrind target/release/examples/hub_cost 256 500
//! ```

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::{Duration, Instant};

use corridor_base::Time;
use corridor_proto::{CodingParams, Hub, HubConfig, Role, Station, StationConfig, StationId};
use etherparse::PacketBuilder;

const HUB: StationId = StationId(1);
const RATE_BPS: u64 = 1_000_000_000;
const PAYLOAD: [u8; 1_200] = [7; 1_200];

fn config(id: StationId, peer: StationId) -> StationConfig {
    StationConfig {
        coding: CodingParams::window(),
        ingress_packets: 1_000,
        rate_bps: (id == HUB).then_some(RATE_BPS),
        ..corridor_testbed::config::config(id, Role::Endpoint { peer, helper: None })
    }
}

fn address(at: usize) -> [u8; 4] {
    [10, 9, (at / 250) as u8, (at % 250) as u8 + 2]
}

/// A hub, its neighbours, and how long the hub took for each task.
struct Star {
    hub: Hub,
    leaves: Vec<Station>,
    now: Time,
    frames: u64,
    wakes: u64,
    took: [Duration; 3],
}

fn timed<T>(took: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    *took += begin.elapsed();
    done
}

impl Star {
    fn new(peers: usize) -> Self {
        let id = |at: usize| StationId(at as u16 + 2);
        let allowed = |at| vec![std::net::IpAddr::from(address(at)).into()];
        let told = HubConfig {
            station: config(HUB, id(0)),
            neighbours: (0..peers).map(|at| (id(at), allowed(at))).collect(),
            own: vec![[10, 9, 255, 1].into()],
            one_channel: false,
        };
        let leaf = |at: usize| {
            Station::new(config(id(at), HUB), [at as u8; 32], Time::ZERO).expect("it is sound")
        };
        Star {
            hub: Hub::new(told, [1; 32], Time::ZERO).expect("it is sound"),
            leaves: (0..peers).map(leaf).collect(),
            now: Time::ZERO,
            frames: 0,
            wakes: 0,
            took: [Duration::ZERO; 3],
        }
    }

    /// Drives the hub until then as a daemon does; neighbours answer once.
    fn run(&mut self, until: Time) {
        let Star { hub, leaves, now, frames, wakes, took } = self;
        let mut frame = Vec::with_capacity(2_000);
        loop {
            timed(&mut took[1], || hub.handle_timeout(*now));
            loop {
                let made = timed(&mut took[0], || {
                    hub.poll_transmit(*now).map(|made| {
                        frame.clear();
                        frame.extend_from_slice(made.frame);
                    })
                });
                if made.is_none() {
                    break;
                }
                *frames += 1;
                // No other station can open it.
                for leaf in leaves.iter_mut() {
                    leaf.handle_frame(*now, &frame);
                }
            }
            while hub.poll_packet().is_some() {}
            while hub.poll_event().is_some() {}
            let due = timed(&mut took[2], || hub.poll_timeout());
            *wakes += 1;
            let step = *now + Duration::from_micros(1);
            *now = due.unwrap_or(until).max(step);
            if *now >= until {
                break;
            }
        }
        *now = until;
        for leaf in leaves {
            leaf.handle_timeout(until);
            while let Some(made) = leaf.poll_transmit(until) {
                hub.handle_frame(until, made.frame);
            }
            while leaf.poll_packet().is_some() {}
            while leaf.poll_event().is_some() {}
        }
    }
}

fn main() {
    let told = |at, default: usize| {
        std::env::args().nth(at).map_or(default, |text| text.parse().expect("a number"))
    };
    let (peers, rounds) = (told(1, 256), told(2, 2_000));
    let mut star = Star::new(peers);
    let step = Duration::from_millis(1);
    (0..1_000).for_each(|_| star.run(star.now + step));
    let packet = |at: usize| {
        let builder = PacketBuilder::ipv4([10, 9, 255, 1], address(at), 64).udp(5_000, 80);
        let mut packet = Vec::new();
        builder.write(&mut packet, &PAYLOAD).expect("it is a vector");
        packet
    };
    let packets: Vec<_> = (0..peers).map(packet).collect();
    (star.frames, star.wakes, star.took) = (0, 0, [Duration::ZERO; 3]);
    let mut waiting = 0;
    for _ in 0..rounds {
        for (at, packet) in packets.iter().enumerate() {
            let id = StationId(at as u16 + 2);
            let queue = star.hub.station(id).expect("a neighbour").path(star.now).queue;
            waiting += usize::from(queue.packets > 0);
            if queue.packets < 4 {
                star.hub.handle_packet(star.now, packet);
            }
        }
        star.run(star.now + step);
    }
    let each = |took: Duration| took.as_secs_f64() * 1e9 / star.frames as f64;
    let [made, fired, asked] = star.took.map(each);
    println!(
        "{peers} neighbours, {:.0} of them with packets: {} frames, {} times woken; ns a frame: \
         {made:.0} made, {fired:.0} for timers, {asked:.0} to find out when",
        waiting as f64 / rounds as f64,
        star.frames,
        star.wakes
    );
}
