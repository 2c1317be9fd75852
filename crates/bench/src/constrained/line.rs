//! Lines of 802.15.4 nodes with static routes: acknowledged packets, with a fixed number in flight.
//!
//! Nodes only hear their neighbours, so that those two links apart are hidden from each other. Both
//! ends process each packet for a random time: everything in 802.15.4 lasts a multiple of 16 us,
//! and CCAs would otherwise keep ending at exactly the instants at which others begin to send.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use corridor_air::radio::{
    Fading, Links, MacConfig, RadioConfig, RadioLink, RadioMediumConfig, RadioStation, Receiver,
};
use corridor_air::wpan::{LooksFor, WhileAnswering, WpanConfig};
use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};
use corridor_bench::frame::Outcome;
use corridor_sim::{
    Agent, AirConfig, Body, Network, NodeIndex, Packet, RadioSite, TTL_MAX, Topology,
};
use serde::{Deserialize, Serialize};

/// Payload of a packet; its size with headers; size of an answer, bytes. tools/ns3_constrained.py
/// has the same.
const PAYLOAD_BYTES: u32 = 94;
const DATA_BYTES: u32 = 114;
const ANSWER_BYTES: u32 = 20;

/// Time after which an unanswered packet is given up.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Maximum processing time of a packet at each end.
const WORK_MAX: Duration = Duration::from_millis(1);

/// Queue limit of a node, frames, including those on the air.
const QUEUE_FRAMES: usize = 64;

/// Warm-up, and measured time.
const WARM_UP: Duration = Duration::from_secs(5);
const SIMULATED_S: f64 = 2000.0;

/// Results of a line.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Line {
    /// Data received, each packet once.
    pub goodput_bps: f64,
    /// Frame transmissions per packet received, including answers and retries.
    pub attempts_per_packet: f64,
    /// Fraction of packets given up.
    pub given_up_ratio: f64,
    pub simulated_s: f64,
}

impl Line {
    /// Figures to compare.
    pub fn compared(&self) -> Vec<(&'static str, f64)> {
        vec![("goodput", self.goodput_bps), ("attempts", self.attempts_per_packet)]
    }
}

/// A line, and the number of packets in flight.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    hops: usize,
    window: usize,
}

impl Case {
    pub fn name(self) -> String {
        format!("{} hops, window {}", self.hops, self.window)
    }
}

/// Cases to compare with ns-3.
pub fn cases() -> impl Iterator<Item = Case> {
    [1, 5].into_iter().flat_map(|window| (1..=8).map(move |hops| Case { hops, window }))
}

/// Runs a line for `scale` times the usual time.
pub fn run(case: Case, scale: f64) -> Outcome<Line> {
    let Case { hops, window } = case;
    let last = hops as NodeIndex;
    let mut network = Network::new(&topology(hops), 1, 0)?;
    for node in 0..last {
        network.set_route(node, last, node + 1)?;
        network.set_route(node + 1, 0, node)?;
    }
    let source = network.add_agent(0, 0, Source::new(window, last))?;
    let sink = network.add_agent(last, 0, Sink::new(last))?;
    let attempts = |network: &Network| -> u64 {
        let Some(medium) = network.mac(0) else { return 0 };
        (0..=hops).map(|station| medium.stats(station).attempts).sum()
    };
    let counts = |network: &Network| {
        let given_up = network.agent::<Source>(source).map_or(0, |source| source.given_up);
        let arrived = network.agent::<Sink>(sink).map_or(0, |sink| sink.seen.len() as u64);
        [given_up, arrived, attempts(network)].map(|count| count as f64)
    };
    network.run_until(Time::ZERO + WARM_UP);
    let before = counts(&network);
    let simulated_s = SIMULATED_S * scale;
    network.run_until(Time::ZERO + WARM_UP + Duration::from_secs_f64(simulated_s));
    let after = counts(&network);
    let [given_up, arrived, attempts] = [0, 1, 2].map(|place| after[place] - before[place]);
    Ok(Line {
        goodput_bps: 8.0 * f64::from(PAYLOAD_BYTES) * arrived / simulated_s,
        attempts_per_packet: attempts / arrived,
        given_up_ratio: given_up / (given_up + arrived),
        simulated_s,
    })
}

fn topology(hops: usize) -> Topology {
    let both = |a| [RadioLink::new(a, a + 1, 50.0), RadioLink::new(a + 1, a, 50.0)];
    let radio = RadioConfig {
        stations: vec![RadioStation::default(); hops + 1],
        links: Links::Matrix((0..hops).flat_map(both).collect()),
        fading: Fading::None,
        // Below it, a receiver in ns-3 does not lock on.
        receiver: Receiver { lock_sinr_db: Some(-5.0), ..Receiver::DOT15_4 },
        propagation: Duration::ZERO,
        seed: 0,
        replication: 0,
    };
    // As in ns-3.
    let mac = WpanConfig {
        looks_for: LooksFor::WhoeverIsLeft,
        while_answering: WhileAnswering::BeginsAnew,
        ..WpanConfig::default()
    };
    let mac = MacConfig::Wpan(mac);
    let config = RadioMediumConfig { radio, mac, queue_frames: QUEUE_FRAMES };
    let nodes = (0..=hops as NodeIndex).collect();
    let site = RadioSite { nodes, air: AirConfig::Mac(Box::new(config)) };
    Topology { nodes: hops + 1, pipes: Vec::new(), radios: vec![site] }
}

/// Packets being processed at an end, and the random stream of processing times.
struct Work {
    stream: Stream,
    under_way: BTreeSet<(Time, u32)>,
}

impl Work {
    fn new(entity: u64) -> Self {
        let key = StreamKey { seed: 1, replication: 0, entity, purpose: "work" };
        Work { stream: key.stream(), under_way: BTreeSet::new() }
    }

    fn begin(&mut self, now: Time, number: u32) {
        let ns = (u64::from(self.stream.next_u32()) * WORK_MAX.as_nanos() as u64) >> 32;
        self.under_way.insert((now + Duration::from_nanos(ns), number));
    }

    fn next(&self) -> Option<Time> {
        self.under_way.first().map(|&(at, _)| at)
    }

    /// A packet whose processing is complete.
    fn end(&mut self, now: Time) -> Option<u32> {
        let &(at, number) = self.under_way.first().filter(|&&(at, _)| at <= now)?;
        self.under_way.remove(&(at, number));
        Some(number)
    }
}

fn packet(from: NodeIndex, to: NodeIndex, number: u32, len_bytes: u32) -> Packet {
    let body = Body::Bytes(Arc::from(number.to_le_bytes()));
    Packet { flow: 0, from, to, len_bytes, ttl: TTL_MAX, body }
}

fn number(packet: &Packet) -> Option<u32> {
    let Body::Bytes(bytes) = &packet.body else { return None };
    bytes.first_chunk().copied().map(u32::from_le_bytes)
}

/// Keeps a fixed number of unanswered packets in flight.
struct Source {
    window: usize,
    last: NodeIndex,
    next: u32,
    /// When each is given up.
    under_way: BTreeMap<u32, Time>,
    work: Work,
    given_up: u64,
    begun: bool,
}

impl Source {
    fn new(window: usize, last: NodeIndex) -> Self {
        let (under_way, work) = (BTreeMap::new(), Work::new(0));
        Source { window, last, next: 0, under_way, work, given_up: 0, begun: false }
    }
}

impl Agent for Source {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Some(number) = number(&packet) {
            self.work.begin(now, number);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.begun = true;
        while let Some(number) = self.work.end(now) {
            self.under_way.remove(&number);
        }
        let before = self.under_way.len();
        self.under_way.retain(|_, &mut due| due > now);
        self.given_up += (before - self.under_way.len()) as u64;
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if !self.begun || self.under_way.len() >= self.window {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.under_way.insert(number, now + GIVEN_UP);
        Some(packet(0, self.last, number, DATA_BYTES))
    }

    fn poll_timeout(&self) -> Option<Time> {
        if !self.begun {
            return Some(Time::from_millis(1));
        }
        let given_up = self.under_way.values().copied().min();
        given_up.into_iter().chain(self.work.next()).min()
    }
}

/// Answers every packet.
struct Sink {
    last: NodeIndex,
    seen: BTreeSet<u32>,
    work: Work,
    answers: VecDeque<u32>,
}

impl Sink {
    fn new(last: NodeIndex) -> Self {
        Sink { last, seen: BTreeSet::new(), work: Work::new(1), answers: VecDeque::new() }
    }
}

impl Agent for Sink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Some(number) = number(&packet) {
            self.seen.insert(number);
            self.work.begin(now, number);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(number) = self.work.end(now) {
            self.answers.push_back(number);
        }
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        let number = self.answers.pop_front()?;
        Some(packet(self.last, 0, number, ANSWER_BYTES))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.work.next()
    }
}
