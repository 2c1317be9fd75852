//! Stations on a medium: the daemon's own state machines, including encryption and coding.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use corridor_air::{Duplex, Jitter, Link, MediumConfig};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{CodingParams, LinkErrors, Role, Station, StationConfig, StationId};
use corridor_sim::source::FlowEnd;
use corridor_sim::{Agent, AirConfig, Body, Network, NodeIndex, Packet, RadioSite, Topology};

use corridor_bench::outcome::Outcome;

use crate::{cpu_time, memory};

/// Bytes of a packet.
const PACKET_BYTES: usize = 1000;
/// Time between a station's packets.
const INTERVAL: Duration = Duration::from_millis(10);
/// Number of station ids to cycle through: even, so that a pair has two.
const STATION_IDS: usize = 65_534;
const WARM_UP: Duration = Duration::from_secs(2);

/// Pairs of stations with a coded tunnel, losing a tenth of the frames, each station with its own
/// channel and a packet every [`INTERVAL`]. `node_s` is the simulated time, times nodes.
pub fn pairs(nodes: usize, node_s: f64) -> Outcome {
    let memory_before = memory::live_bytes();
    let delivered = Rc::new(Cell::new(0));
    let mut network = network(nodes, &delivered);
    let simulated = Duration::from_secs_f64(node_s / nodes as f64);
    let start = Time::ZERO + WARM_UP;
    network.run_until(start);
    let (events, hops, bytes) = (network.stats().events, heard(&network), delivered.get());
    let begin = cpu_time();
    network.run_until(start + simulated);
    let cpu = cpu_time() - begin;
    Outcome {
        cpu,
        simulated,
        events: network.stats().events - events,
        packet_hops: heard(&network) - hops,
        payload_bytes: delivered.get() - bytes,
        flows: nodes,
        memory_bytes: memory::live_bytes() - memory_before,
    }
}

fn network(nodes: usize, delivered: &Rc<Cell<u64>>) -> Network {
    let link = |from: usize| Link { from, to: from ^ 1, erasure: 0.1.into(), retry_limit: 0 };
    let medium = MediumConfig {
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
    };
    let radio =
        RadioSite { nodes: (0..nodes as NodeIndex).collect(), air: AirConfig::Ideal(medium) };
    let topology = Topology { nodes, radios: vec![radio], ..Topology::default() };
    let mut network = Network::new(&topology, 1, 0).expect("the topology is sound");
    for index in 0..nodes {
        let host = Host::new(index, nodes, Rc::clone(delivered));
        network.add_station(0, index, station(index), |_| Some(0)).expect("the place is free");
        network.add_agent(index as NodeIndex, 0, host).expect("the node is there");
    }
    network
}

/// Sends a packet to its peer in each [`INTERVAL`], and counts those received from it.
struct Host {
    end: FlowEnd,
    next_at: Time,
    packet: Arc<[u8]>,
    delivered: Rc<Cell<u64>>,
}

impl Host {
    /// The hosts are staggered within an interval.
    fn new(index: usize, hosts: usize, delivered: Rc<Cell<u64>>) -> Self {
        let (node, peer) = (index as NodeIndex, (index ^ 1) as NodeIndex);
        let next_at = Time::ZERO + INTERVAL / hosts as u32 * (index as u32 + 1);
        let packet = Arc::from([0x45; PACKET_BYTES]);
        Host { end: FlowEnd { flow: 0, node, peer }, next_at, packet, delivered }
    }
}

impl Agent for Host {
    fn handle_packet(&mut self, _now: Time, packet: Packet) {
        self.delivered.set(self.delivered.get() + u64::from(packet.len_bytes));
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.next_at > now {
            return None;
        }
        self.next_at += INTERVAL;
        Some(self.end.packet(PACKET_BYTES as u32, Body::Bytes(Arc::clone(&self.packet))))
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.next_at)
    }
}

fn station(index: usize) -> Station {
    // Ids need only differ among stations that hear each other.
    let id = |index: usize| StationId((index % STATION_IDS) as u16 + 1);
    let config = StationConfig {
        id: id(index),
        role: Role::Endpoint { peer: id(index ^ 1), helper: None },
        security: [0x5a; 32].into(),
        coding: CodingParams::default(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 100,
        frame_len_max: 1500,
        frame_len_min: 46,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    let key = StreamKey { seed: 1, replication: 0, entity: index as u64, purpose: "entropy" };
    let mut entropy = [0; 32];
    key.stream().fill_bytes(&mut entropy);
    Station::new(config, entropy, Time::ZERO).expect("the settings are within their ranges")
}

/// Number of frames received.
fn heard(network: &Network) -> u64 {
    let medium = network.medium(0).expect("there is one");
    (0..medium.stations()).map(|place| medium.stats(place).received_frames).sum()
}
