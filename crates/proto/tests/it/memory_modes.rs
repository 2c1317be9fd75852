//! The memory of a station in block mode, of a helper, and of a station with TCP/NC when they fill
//! everything that they can, counted by the allocator: it never exceeds their share, even when that
//! is as small as allowed.

use core::time::Duration;

use corridor_base::rand::{RngExt, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::bounds::FRAME_LEN_MAX;
use corridor_proto::{CodingParams, Event, Field, Role, Station, StationConfig, StationId};
use corridor_testbed::config as testbed;
use etherparse::PacketBuilder;

use crate::allocator::{counted, held};

const IDS: [StationId; 3] = [StationId(1), StationId(2), StationId(3)];

/// Two ends, and a helper if there are three stations; the memory of the first one is counted.
struct Cell {
    stations: Vec<Station>,
    now: Time,
    dice: Stream,
    /// Loss ratio in each direction.
    loss: f64,
    delivered: Vec<Vec<Vec<u8>>>,
    events: Vec<Event>,
    before: isize,
}

/// The configuration of an end, or of the helper in between.
fn config(at: usize, coding: CodingParams, has_helper: bool, has_keys: bool) -> StationConfig {
    let role = match at {
        2 => Role::Helper { between: (IDS[0], IDS[1]) },
        _ => Role::Endpoint { peer: IDS[1 - at], helper: has_helper.then_some(IDS[2]) },
    };
    let config = StationConfig { coding, ..testbed::config(IDS[at], role) };
    let others: Vec<_> = IDS.into_iter().filter(|&id| id != IDS[at]).collect();
    let peers = if has_helper { &others[..] } else { &others[..1] };
    let security = if has_keys { testbed::keys(IDS[at], peers) } else { testbed::SECRET.into() };
    StationConfig { security, ..config }
}

impl Cell {
    fn new(configs: &[StationConfig], seed: u8) -> Self {
        let before = held();
        let station = |(at, config): (usize, &StationConfig)| {
            let made = || Station::new(config.clone(), [seed ^ 3 << at; 32], Time::ZERO);
            if at == 0 { counted(made) } else { made() }.expect("a sound configuration")
        };
        let stations = configs.iter().enumerate().map(station).collect();
        let delivered = vec![Vec::new(); configs.len()];
        let dice = Stream::from_seed([seed; 32]);
        Cell { stations, now: Time::ZERO, dice, loss: 0.0, delivered, events: Vec::new(), before }
    }

    fn put(&mut self, at: usize, packet: &[u8]) {
        let (now, station) = (self.now, &mut self.stations[at]);
        if at == 0 {
            counted(|| station.handle_packet(now, packet));
        } else {
            station.handle_packet(now, packet);
        }
    }

    /// A millisecond passes. Checks that the first station's memory is within its share.
    fn step(&mut self) {
        self.now += Duration::from_millis(1);
        for from in 0..self.stations.len() {
            let mut frame = Vec::with_capacity(2 * FRAME_LEN_MAX);
            while self.make(from, &mut frame) {
                for to in (0..self.stations.len()).filter(|&to| to != from) {
                    if self.dice.random::<f64>() >= self.loss {
                        self.hear(to, &frame);
                    }
                }
            }
        }
        let (held, view) = (held() - self.before, self.stations[0].memory());
        assert!(held <= view.share as isize, "{held} bytes at {}: {view:?}", self.now);
        let said = self.stations[0].inspect().held;
        assert!(said.queue <= view.queue && said.spare <= view.spare, "{said:?} {view:?}");
        assert!(said.sent <= view.sent && said.received <= view.received, "{said:?} {view:?}");
    }

    fn make(&mut self, at: usize, frame: &mut Vec<u8>) -> bool {
        let (now, station) = (self.now, &mut self.stations[at]);
        let mut make = || {
            station.handle_timeout(now);
            let Some(made) = station.poll_transmit(now) else { return false };
            frame.clear();
            frame.extend_from_slice(made.frame);
            true
        };
        let has_made = if at == 0 { counted(make) } else { make() };
        self.drain(at);
        has_made
    }

    fn hear(&mut self, at: usize, frame: &[u8]) {
        let (now, station) = (self.now, &mut self.stations[at]);
        if at == 0 {
            counted(|| station.handle_frame(now, frame));
        } else {
            station.handle_frame(now, frame);
        }
        self.drain(at);
    }

    fn drain(&mut self, at: usize) {
        let mut out = Vec::with_capacity(2 * FRAME_LEN_MAX);
        let station = &mut self.stations[at];
        let mut take = |out: &mut Vec<u8>| {
            station.poll_packet().map(|packet| out.extend_from_slice(packet.bytes())).is_some()
        };
        while if at == 0 { counted(|| take(&mut out)) } else { take(&mut out) } {
            self.delivered[at]
                .push(core::mem::replace(&mut out, Vec::with_capacity(2 * FRAME_LEN_MAX)));
        }
        let station = &mut self.stations[at];
        while let Some(event) =
            if at == 0 { counted(|| station.poll_event()) } else { station.poll_event() }
        {
            self.events.extend((at == 0).then_some(event));
        }
    }

    fn run(&mut self, ms: u32) {
        (0..ms).for_each(|_| self.step());
    }

    /// Sends packets from all hosts, first with and then without losses.
    fn fill(&mut self, packet: impl Fn(usize, u32) -> Vec<u8>) {
        self.run(500);
        self.loss = 0.3;
        // The first one is an end, or the helper.
        let first = self.stations[0].config().id.0 as usize / IDS.len();
        for number in 0..1_500 {
            for end in 0..2 {
                self.put(first + end, &packet(end, number));
            }
            self.step();
        }
        self.loss = 0.0;
        self.run(3_000);
    }
}

fn datagram(from: usize, number: u32, len: usize) -> Vec<u8> {
    let [from, to] = [from, 1 - from].map(|at| [10, 0, 0, at as u8 + 1]);
    let mut packet = Vec::new();
    let mut payload = vec![7; len];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    PacketBuilder::ipv4(from, to, 64).udp(5_000, 80).write(&mut packet, &payload).unwrap();
    packet
}

/// The first segment of each connection in turn, then their data.
fn segment(from: usize, number: u32) -> Vec<u8> {
    let [own, peer] = [from, 1 - from].map(|at| [10, 0, 0, at as u8 + 1]);
    let (flow, round) = ((number % 40) as u16, number / 40);
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(own, peer, 64);
    let builder = builder.tcp(1_024 + flow, 1_024 + flow, 1 + round * 1_200, 60_000);
    match round {
        0 => builder.syn().write(&mut packet, &[]),
        _ => builder.ack(1).write(&mut packet, &[7; 1_200]),
    }
    .unwrap();
    packet
}

fn tight(config: StationConfig, beyond: usize) -> StationConfig {
    StationConfig { memory_bytes: config.memory_min() + beyond, ..config }
}

/// Parameters of block mode: many short blocks, and those of the paper.
fn blocks() -> [CodingParams; 3] {
    let default = CodingParams {
        delivery_deadline: Duration::from_secs(60),
        encoder_timeout: Duration::from_millis(10),
        ..CodingParams::default()
    };
    let many = CodingParams { blocks_in_flight: 16, block_size: 8, ..default };
    let dense = CodingParams { field: Field::Gf2, block_size: 100, ..default };
    [default, many, dense]
}

#[test]
fn blocks_stay_within_the_share_and_all_of_them_come() {
    for (number, coding) in blocks().into_iter().enumerate() {
        for beyond in [0, 300_000] {
            let [own, peer] = [0, 1].map(|at| config(at, coding, false, false));
            let mut cell = Cell::new(&[tight(own, beyond), peer], 9 + number as u8);
            cell.fill(|from, number| datagram(from, number, 1_300));
            let stats = cell.stations[0].stats();
            assert_eq!(stats.symbols_given_up + stats.packets_given_up, 0, "{coding:?}");
            // The peer has more blocks in flight than there is room for.
            let accepted = cell.stations[1].stats().packets_accepted;
            assert_eq!(cell.delivered[0].len() as u64, accepted, "{coding:?}");
            assert!(accepted > 300, "{accepted}");
        }
    }
}

#[test]
fn ends_with_tags_and_helpers_stay_within_their_shares() {
    let coding = blocks()[0];
    for (beyond, has_keys) in [(0, false), (0, true), (200_000, true)] {
        for first in [0, 2] {
            let order: Vec<usize> = if first == 0 { vec![0, 1, 2] } else { vec![2, 0, 1] };
            let mut configs: Vec<_> =
                order.iter().map(|&at| config(at, coding, true, has_keys)).collect();
            configs[0] = tight(configs[0].clone(), beyond);
            let mut cell = Cell::new(&configs, 40);
            cell.fill(|from, number| datagram(from, number, 1_200));
            assert!(cell.stations.iter().all(|station| station.stats().frames_accepted > 300));
        }
    }
}

#[test]
fn connections_of_tcp_nc_stay_within_the_share() {
    let coding = CodingParams::tcp_nc();
    for beyond in [0, 10_000_000] {
        let [own, peer] = [0, 1].map(|at| config(at, coding, false, false));
        let mut cell = Cell::new(&[tight(own, beyond), peer], 50);
        cell.fill(segment);
        let held = held() - cell.before;
        assert!(held > cell.stations[0].memory().share as isize / 3, "{held}: nothing was filled");
        // Something is delivered from each connection, coded or not; the peer has longer buffers.
        let ports = cell.delivered[0].iter().map(|packet| packet[20..22].to_vec());
        let ports: std::collections::BTreeSet<_> = ports.collect();
        assert_eq!(ports.len(), 40, "{} packets", cell.delivered[0].len());
    }
}

#[test]
fn blocks_that_are_too_long_for_the_share_are_said_to_be_so() {
    let coding = CodingParams::default();
    let longer = CodingParams { block_size: 1_024, ..coding };
    let [own, _] = [0, 1].map(|at| config(at, coding, false, false));
    let peer = StationConfig { frame_len_max: FRAME_LEN_MAX, ..config(1, longer, false, false) };
    let mut cell = Cell::new(&[tight(own, 0), peer], 60);
    cell.fill(|from, number| datagram(from, number, 1_200));
    let is_it =
        |event: &&Event| matches!(event, Event::BlocksTooLong { peer, .. } if *peer == IDS[1]);
    assert_eq!(cell.events.iter().filter(is_it).count(), 1, "{:?}", cell.events);
    assert_eq!(cell.delivered[0].len(), 0);
    assert!(cell.delivered[1].len() > 300, "the other way goes on");
}

#[test]
fn blocks_that_are_too_long_for_a_helper_are_said_to_be_so() {
    let longer = CodingParams { block_size: 1_024, ..CodingParams::default() };
    let [_, a, b] = [2, 0, 1].map(|at| config(at, longer, true, false));
    let helper = tight(config(2, CodingParams::default(), true, false), 0);
    let mut cell = Cell::new(&[helper, a, b], 70);
    cell.run(2_000);
    let is_it = |event: &&Event| matches!(event, Event::BlocksTooLong { .. });
    assert_eq!(cell.events.iter().filter(is_it).count(), 2, "{:?}", cell.events);
}

/// A configuration is sound on any machine or on none, and has the same blocks in flight there:
/// GFNI keeps payloads over GF(2) and GF(2^4) twice.
#[test]
fn the_least_share_is_the_same_on_any_machine() {
    let gf16 = CodingParams { field: Field::Gf16, ..CodingParams::default() };
    let codings = [
        CodingParams::window(),
        CodingParams::default(),
        gf16,
        CodingParams::paper(),
        CodingParams::tcp_nc(),
    ];
    let least = codings.map(|coding| {
        [1_500, 9_000].map(|frame_len_max| {
            let told = config(0, coding, false, false);
            StationConfig { frame_len_max, ..told }.memory_min()
        })
    });
    let expected = [
        [856_816, 1_816_656],
        [928_368, 2_646_864],
        [1_129_344, 3_878_944],
        [3_354_480, 3_354_480],
        [5_456_000, 20_336_304],
    ];
    assert_eq!(least, expected);
}
