//! Long flows over the emulated medium, with every byte checked: nothing is altered, reordered or
//! missing.

use std::cell::RefCell;
use std::rc::Rc;

use core::time::Duration;

use corridor_air::{Duplex, Jitter, Link, MediumConfig};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{
    CodingParams, LinkErrors, PacketOutcome, Role, Station, StationConfig, StationId, Stats,
};
use corridor_sim::{Agent, AirConfig, Body, Network, Packet, RadioSite, Topology};

const SEED: u64 = 7;
/// Bytes of a frame beside its packet: header, index, tag.
const FRAME_OVERHEAD: f64 = 31.0;

/// Fills a packet with bytes that all depend on its number (SplitMix64).
fn fill(number: u64, packet: &mut [u8]) {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in packet.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        chunk.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..chunk.len()]);
    }
}

/// Length of a packet, which follows from its number.
fn len_of(number: u64, lens: [usize; 2]) -> usize {
    let mut bytes = [0; 8];
    fill(!number, &mut bytes);
    lens[0] + u64::from_le_bytes(bytes) as usize % (lens[1] - lens[0] + 1)
}

/// The receiving host, which expects the packets in order.
#[derive(Default)]
struct Sink {
    expected: u64,
    bytes: u64,
    buffer: Vec<u8>,
}

impl Sink {
    fn take(&mut self, packet: &[u8], lens: [usize; 2], accepted: &[u64]) {
        let number = accepted[self.expected as usize];
        self.buffer.resize(len_of(number, lens), 0);
        fill(number, &mut self.buffer);
        assert!(packet == self.buffer, "packet {number}, seed {SEED}: {packet:?}");
        self.expected += 1;
        self.bytes += packet.len() as u64;
    }
}

/// The agent that receives packets, with the numbers of those that the station accepted.
struct Host(Rc<RefCell<Sink>>, Rc<RefCell<Vec<u64>>>, [usize; 2]);

impl Agent for Host {
    fn handle_packet(&mut self, _now: Time, packet: Packet) {
        let Body::Bytes(bytes) = &packet.body else { panic!("no bytes: {packet:?}") };
        self.0.borrow_mut().take(bytes, self.2, &self.1.borrow());
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

struct Run {
    coding: CodingParams,
    erasure_ratio: f64,
    rate_bps: u64,
    /// Offered load, as a share of the medium's capacity for such packets.
    load: f64,
    bytes: u64,
    /// Shortest and longest packet.
    lens: [usize; 2],
    ingress_packets: usize,
}

fn station(run: &Run, id: u8, peer: u8) -> Station {
    let config = StationConfig {
        id: StationId(u16::from(id)),
        role: Role::Endpoint { peer: StationId(u16::from(peer)), helper: None },
        security: [1; 32].into(),
        coding: run.coding,
        link_errors: LinkErrors::Measured,
        ingress_packets: run.ingress_packets,
        frame_len_max: 1500,
        frame_len_min: 0,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    let mut entropy = [0; 32];
    let key = StreamKey { seed: SEED, replication: 0, entity: u64::from(id), purpose: "entropy" };
    key.stream().fill_bytes(&mut entropy);
    Station::new(config, entropy, Time::ZERO).unwrap()
}

/// Sends and checks a flow one way, with losses both ways; returns the counters of both ends.
fn transfer(run: &Run) -> (Stats, Stats) {
    let link = |from, to| Link { from, to, erasure: run.erasure_ratio.into(), retry_limit: 0 };
    let medium = MediumConfig {
        mode: Duplex::Half,
        rate_bps: run.rate_bps,
        overhead: Duration::ZERO,
        propagation: Duration::from_micros(1),
        jitter: Jitter::None,
        queue_frames: 2,
        drops_when_full: false,
        stations: 2,
        links: vec![link(0, 1), link(1, 0)],
        seed: SEED,
        replication: 0,
    };
    let sink = Rc::new(RefCell::new(Sink::default()));
    let accepted = Rc::new(RefCell::new(Vec::new()));
    let host = Host(Rc::clone(&sink), Rc::clone(&accepted), run.lens);
    let radio = RadioSite { nodes: vec![0, 1], air: AirConfig::Ideal(medium) };
    let topology = Topology { nodes: 2, radios: vec![radio], ..Topology::default() };
    let mut network = Network::new(&topology, SEED, 0).unwrap();
    let sender = network.add_station(0, 0, station(run, 1, 2), |_| Some(0)).unwrap();
    let receiver = network.add_station(0, 1, station(run, 2, 1), |_| Some(0)).unwrap();
    network.add_agent(1, 0, host).unwrap();
    network.run_until(Time::from_millis(1_000));

    let len = (run.lens[0] + run.lens[1]) as f64 / 2.0;
    let share = len / (len + FRAME_OVERHEAD) * (1.0 - run.erasure_ratio);
    let interval_ns = 8e9 * len / (run.load * share * run.rate_bps as f64);
    let (mut offered, mut packet) = (0, vec![0; run.lens[1]]);
    let start = network.now();
    for number in 0.. {
        if offered >= run.bytes {
            break;
        }
        let at = start + Duration::from_nanos((number as f64 * interval_ns) as u64);
        network.run_until(at);
        let packet = &mut packet[..len_of(number, run.lens)];
        fill(number, packet);
        offered += packet.len() as u64;
        if network.station_mut(sender).handle_packet(at, packet) == PacketOutcome::Accepted {
            accepted.borrow_mut().push(number);
        }
    }
    network.run_until(network.now() + Duration::from_secs(5));

    // Nothing was delivered at the sender.
    assert_eq!(network.stats().undeliverable, 0);
    let [sender, receiver] = [sender, receiver].map(|at| network.station(at).stats().clone());
    let sink = sink.borrow();
    assert_eq!(sink.expected, accepted.borrow().len() as u64, "{sender:?}\n{receiver:?}");
    assert_eq!((sender.packets_given_up, receiver.symbols_given_up), (0, 0));
    assert_eq!(sink.bytes, receiver.bytes_delivered);
    (sender, receiver)
}

#[test]
fn a_hundred_megabytes_cross_thirty_percent_loss_unharmed() {
    let run = Run {
        coding: CodingParams::default(),
        erasure_ratio: 0.3,
        rate_bps: 50_000_000,
        load: 0.8,
        bytes: 100_000_000,
        lens: [1_200, 1_400],
        ingress_packets: 1_000,
    };
    let (sender, receiver) = transfer(&run);
    assert_eq!(sender.packets_dropped_ingress, 0, "80 % of the capacity is no overload");
    assert_eq!(receiver.bytes_delivered / 1_000_000, 100);
}

#[test]
fn block_numbers_wrap_in_mid_flow() {
    let run = Run {
        coding: CodingParams {
            block_size: 1,
            blocks_in_flight: 16,
            symbol_size: 64,
            encoder_timeout: Duration::from_millis(2),
            ack_interval: Duration::from_millis(1),
            ..CodingParams::default()
        },
        erasure_ratio: 0.1,
        rate_bps: 20_000_000,
        load: 0.03,
        bytes: 50 * 70_000,
        lens: [48, 52],
        ingress_packets: 1_000,
    };
    let (sender, _) = transfer(&run);
    assert!(sender.blocks_opened > 1 << 16, "{sender:?}");
    assert_eq!(sender.packets_dropped_ingress, 0);
}

#[test]
fn an_overload_is_dropped_at_the_ingress_and_nowhere_else() {
    let run = Run {
        coding: CodingParams::default(),
        erasure_ratio: 0.3,
        rate_bps: 10_000_000,
        load: 1.5,
        bytes: 5_000_000,
        lens: [40, 1_400],
        ingress_packets: 64,
    };
    let (sender, _) = transfer(&run);
    assert!(sender.packets_dropped_ingress > 0);
}
