//! Processor time per message from unauthenticated senders.

use std::fs;
use std::hint::black_box;

use corridor_base::rand::SeedableRng;
use corridor_base::{Stream, Time};
use serde::Serialize;

use crate::flood::{forged_hello, forged_initiation, recorded};
use crate::net::Host;
use crate::scene::{self, AT_HUB, NEW};

/// Messages per cost measurement.
const MESSAGES: usize = 100_000;
/// The same for messages with Diffie-Hellman.
const MESSAGES_DH: usize = 5_000;

#[derive(Debug, Serialize)]
pub struct Costs {
    /// Nanoseconds of processor time per message.
    ns: Vec<Cost>,
    /// Fraction of one core that 10^5 forged HELLOs per second take, through the gate.
    forged_hellos_core_share: f64,
}

#[derive(Debug, Serialize)]
pub struct Cost {
    what: &'static str,
    ns: f64,
}

/// Messages without load, straight to the station, and under load, through the gate.
pub fn measure() -> Costs {
    let mut dice = Stream::from_seed([4; 32]);
    let hellos: Vec<_> = (0..1_000).map(|_| forged_hello(&mut dice)).collect();
    let replays: Vec<_> = (0..400).map(|seed| recorded(false, seed)).collect();
    let initiations: Vec<_> = (0..400).map(forged_initiation).collect();
    let straight = |keys: bool, frames: &[Vec<u8>], count: usize| {
        let mut net = scene::net(keys, 1, Default::default());
        let hub = &mut net.hosts[AT_HUB];
        cost(count, |at| {
            // One message per 100 ms: the rate at which they are examined.
            let now = Time::from_millis(100 * at as u64);
            black_box(hub.station.handle_frame(now, &frames[at % frames.len()]));
        })
    };
    let gated = |keys: bool, frames: &[Vec<u8>], count: usize| {
        let mut net = scene::net(keys, 1, Default::default());
        let hub: &mut Host = &mut net.hosts[AT_HUB];
        let now = Time::from_millis(1);
        let hear = |hub: &mut Host, at: usize| {
            hub.hear(now, 1_000 + at as u32, &frames[at % frames.len()]);
            if at.is_multiple_of(64) {
                black_box(hub.drain(now));
            }
        };
        (0..1_000).for_each(|at| hear(hub, at));
        cost(count, |at| hear(hub, at))
    };
    let gated_hello = gated(false, &hellos, MESSAGES);
    let ns = [
        ("forged HELLO, looked into", straight(false, &hellos, MESSAGES)),
        ("forged HELLO under load, answered by a cookie", gated_hello),
        ("recorded HELLO, looked into", straight(false, &replays, MESSAGES)),
        ("recorded HELLO under load, answered by a cookie", gated(false, &replays, MESSAGES)),
        ("forged initiation, looked into", straight(true, &initiations, MESSAGES_DH)),
        ("forged initiation under load, answered by a cookie", gated(true, &initiations, MESSAGES)),
    ];
    debug_assert!(!hellos.is_empty() && NEW.0 > 0);
    Costs {
        ns: ns.map(|(what, ns)| Cost { what, ns }).into(),
        forged_hellos_core_share: gated_hello * 1e-9 * 1e5,
    }
}

/// Nanoseconds per item, over `count` items.
fn cost(count: usize, mut each: impl FnMut(usize)) -> f64 {
    let before = processor_ns();
    (0..count).for_each(&mut each);
    (processor_ns() - before) as f64 / count as f64
}

/// Processor time of this thread, by the kernel's count.
fn processor_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
