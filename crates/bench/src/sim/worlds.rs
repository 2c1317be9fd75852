//! Stations on a medium: the daemon's own state machines, sealing and coding included.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use corridor_air::{Duplex, Jitter, Link, Medium, MediumConfig};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{CodingParams, LinkErrors, Role, Station, StationConfig, StationId};
use corridor_sim::{Node, World};

use crate::{Outcome, cpu_time, memory};

/// Bytes of a packet.
const PACKET_BYTES: usize = 1000;
/// From one packet of a station to its next.
const INTERVAL: Duration = Duration::from_millis(10);
const WARM_UP: Duration = Duration::from_secs(2);

/// Pairs of stations that code for each other, with a tenth of the frames lost, each station with a
/// channel of its own and a packet every [`INTERVAL`]. `node_s` is the simulated time, times nodes.
pub fn pairs(nodes: usize, node_s: f64) -> Outcome {
    let memory_before = memory::live_bytes();
    let delivered = Rc::new(Cell::new(0));
    let mut world = world(nodes, &delivered);
    let simulated = Duration::from_secs_f64(node_s / nodes as f64);
    let start = Time::ZERO + WARM_UP;
    load(&mut world, start);
    let (events, hops, bytes) = (world.events(), heard(&world), delivered.get());
    let begin = cpu_time();
    load(&mut world, start + simulated);
    let cpu = cpu_time() - begin;
    Outcome {
        cpu,
        simulated,
        events: world.events() - events,
        packet_hops: heard(&world) - hops,
        payload_bytes: delivered.get() - bytes,
        flows: nodes,
        memory_bytes: memory::live_bytes() - memory_before,
    }
}

fn world(nodes: usize, delivered: &Rc<Cell<u64>>) -> World {
    let link = |from: usize| Link { from, to: from ^ 1, erasure: 0.1.into(), retry_limit: 0 };
    let medium = Medium::new(MediumConfig {
        mode: Duplex::Full,
        rate_bps: 10_000_000,
        overhead: Duration::from_micros(100),
        propagation: Duration::from_millis(1),
        jitter: Jitter::None,
        queue_frames: 2,
        drops_when_full: false,
        stations: nodes,
        links: (0..nodes).map(link).collect(),
        seed: 1,
        replication: 0,
    });
    let node = |index| {
        let delivered = Rc::clone(delivered);
        Node::new(station(index), move |_, packet| {
            delivered.set(delivered.get() + packet.len() as u64);
        })
    };
    World::new(medium.expect("the medium is sound"), (0..nodes).map(node).collect())
}

fn station(index: usize) -> Station {
    let id = |index: usize| StationId(index as u8 + 1);
    let config = StationConfig {
        id: id(index),
        role: Role::Endpoint { peer: id(index ^ 1), helper: None },
        psk: [0x5a; 32].into(),
        coding: CodingParams::default(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 100,
        frame_len_max: 1500,
        frame_len_min: 46,
        rate_bps: None,
    };
    let key = StreamKey { seed: 1, replication: 0, entity: index as u64, purpose: "entropy" };
    let mut entropy = [0; 32];
    key.stream().fill_bytes(&mut entropy);
    Station::new(config, entropy, Time::ZERO).expect("the settings are within their ranges")
}

/// Gives every station its packets until `until`, the stations one after the other within each
/// interval.
fn load(world: &mut World, until: Time) {
    let nodes = world.nodes().len();
    let gap = INTERVAL / nodes as u32;
    let packet = [0x45; PACKET_BYTES];
    for index in (0..nodes).cycle() {
        let at = world.now() + gap;
        if at > until {
            break;
        }
        world.run_until(at);
        world.node_mut(index).station.handle_packet(at, &packet);
        world.settle();
    }
}

/// Frames that were heard.
fn heard(world: &World) -> u64 {
    let count = |index| world.medium().stats(index).received_frames;
    (0..world.nodes().len()).map(count).sum()
}
