//! A TCP connection over several hops in a row: each hop is a lossy path of its own, which a pair
//! of stations repairs, and hubs forward from hop to hop. Measures the goodput, and how long
//! packets wait at each hub.

use core::time::Duration;
use std::net::IpAddr;

use corridor_air::{LineConfig, PipeConfig, QueueLimit};
use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, StreamKey, Time};
use corridor_proto::{
    AnyStation, CodingParams, Hub, HubConfig, HubStats, LinkErrors, Role, Station, StationConfig,
    StationId, Stats,
};
use hdrhistogram::Histogram;
use ipnet::IpNet;

use crate::SimError;
use crate::agents::ip::{DATA_HEADERS_LEN, address, flow_of};
use crate::agents::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use crate::connection::{Connection, settings};
use crate::core::agent::NodeIndex;
use crate::core::network::{AirConfig, Network, RadioSite, StationIndex, Topology};
use crate::plan::tunnel::PSK;

/// Longest packet of a hop, bytes: Ethernet's.
const MTU: usize = 1_500;
/// Bytes of IPv4's and UDP's headers around each frame.
const UNDERLAY_LEN: usize = 28;
/// Longest time until all stations have sessions with each other.
const MEETING_MAX: Duration = Duration::from_secs(60);
/// How often the hubs' queues are sampled.
const LOOKED_AT: Duration = Duration::from_millis(1);
/// Longer delays count as this one, nanoseconds.
const DELAY_NS_MAX: u64 = 60_000_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Hops, 1 to 16.
    pub hops: u8,
    /// Rate of each hop, each way, bits per second.
    pub rate_bps: u64,
    /// Round-trip time of each hop without queueing.
    pub round_trip: Duration,
    /// Share of the packets lost on each hop, each way.
    pub loss_ratio: f64,
    /// Longest queue in front of each hop, packets.
    pub queue_packets: usize,
    /// Time under load before the measured interval.
    pub warm_up: Duration,
    /// The measured interval.
    pub duration: Duration,
    /// Seed of losses and stations.
    pub seed: u64,
}

/// How long packets wait at a hub before they go on along the chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waits {
    /// In the hub: the age of the packet that has waited longest, sampled every millisecond; 95th
    /// percentile, seconds.
    pub hub_p95_s: f64,
    /// In front of the line: each frame's wait, 95th percentile, seconds.
    pub line_p95_s: f64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Bits per second of payload that arrived in order in the measured interval.
    pub goodput_bps: f64,
    /// Waits at each hub, from the one next to the sender.
    pub waits: Vec<Waits>,
    /// What each hub counted.
    pub hubs: Vec<HubStats>,
    /// What each hub's station towards the receiver counted.
    pub onward: Vec<Stats>,
}

/// Runs one Cubic connection over the chain's stations and measures it.
///
/// # Errors
/// [`SimError`] if the chain's hops, losses or rate are out of range.
pub fn measure(chain: &Chain) -> Result<Measured, SimError> {
    let lines = (0..chain.hops).map(|hop| chain.line(hop)).collect();
    let nodes = usize::from(chain.hops) + 1;
    let topology = Topology { nodes, radios: lines, ..Topology::default() };
    let mut network = Network::new(&topology, chain.seed, 0)?;
    let mut hubs = Vec::new();
    for place in 0..=chain.hops {
        hubs.extend(chain.add_station(&mut network, place)?);
    }
    network.run_until_met(Time::ZERO + MEETING_MAX);
    let mtu = network.station(hubs[0]).tunnel_mtu();
    hubs.retain(|&index| network.any_station(index).hub_stats().is_some());
    let flow = (0, 0, chain.hops.into());
    let connection = [Connection::add(&mut network, flow, mtu, chain.seed)?];
    Connection::begin(&connection, &mut network);
    let delivered = |network: &Network| connection[0].delivered_bytes(network);
    let now = network.now();
    network.run_until(now + chain.warm_up);
    network.keep_waits();
    let before = delivered(&network);
    let histograms = chain.watch(&mut network, &hubs);
    let bytes = delivered(&network) - before;
    let any = |&index: &StationIndex| network.any_station(index);
    let waits = histograms.iter().zip(1..).map(|(histogram, radio)| {
        let line = network.line(radio).and_then(|line| line.pipe(0)?.waits());
        Waits { hub_p95_s: p95_s(Some(histogram)), line_p95_s: p95_s(line) }
    });
    Ok(Measured {
        goodput_bps: 8.0 * bytes as f64 / chain.duration.as_secs_f64(),
        waits: waits.collect(),
        hubs: hubs.iter().map(any).filter_map(AnyStation::hub_stats).copied().collect(),
        onward: hubs.iter().map(any).filter_map(onward).map(|to| to.stats().clone()).collect(),
    })
}

/// The goodput, bits per second, that Cubic reaches over the same hops without stations, with plain
/// routers between them.
///
/// # Errors
/// As [`measure`].
pub fn measure_plain(chain: &Chain) -> Result<f64, SimError> {
    let topology = Topology::chain(usize::from(chain.hops) + 1, &chain.pipe());
    let mut network = Network::new(&topology, chain.seed, 0)?;
    let payload = (MTU - DATA_HEADERS_LEN) as u32;
    let (sender, receiver) = settings(payload, chain.seed);
    let (here, there) = FlowEnd::pair(0, 0, chain.hops.into());
    let source = TcpSource::new(here, Active::ALWAYS, Supply::Endless, sender)?;
    let source = network.add_agent(here.node, 0, source)?;
    let sink = TcpSink::new(there, DATA_HEADERS_LEN as u32, receiver)?;
    let sink = network.add_agent(there.node, 0, sink)?;
    network.ask(source);
    let delivered =
        |network: &Network| network.agent::<TcpSink>(sink).map_or(0, TcpSink::delivered_bytes);
    network.run_until(Time::ZERO + chain.warm_up);
    let before = delivered(&network);
    network.run_until(Time::ZERO + chain.warm_up + chain.duration);
    Ok(8.0 * (delivered(&network) - before) as f64 / chain.duration.as_secs_f64())
}

/// A hub's station towards the receiver.
fn onward(hub: &AnyStation) -> Option<&Station> {
    hub.stations().nth(1)
}

fn p95_s(histogram: Option<&Histogram<u64>>) -> f64 {
    histogram.map_or(f64::NAN, |histogram| histogram.value_at_quantile(0.95) as f64 / 1e9)
}

impl Chain {
    fn pipe(&self) -> PipeConfig {
        let queue = QueueLimit::Packets(self.queue_packets);
        PipeConfig::new(self.rate_bps, self.round_trip / 2, queue, self.loss_ratio)
    }

    /// The hop that follows a node.
    fn line(&self, hop: u8) -> RadioSite {
        let line = LineConfig {
            pipes: [self.pipe(), self.pipe()],
            header_bytes: UNDERLAY_LEN as u32,
            pushes_back: false,
            seed: self.seed,
            replication: 0,
            draw: 0,
        };
        let nodes = vec![hop.into(), NodeIndex::from(hop) + 1];
        RadioSite { nodes, air: AirConfig::Line(Box::new(line)) }
    }

    /// Attaches a node's station to its lines.
    fn add_station(&self, network: &mut Network, place: u8) -> Result<Vec<StationIndex>, SimError> {
        let (radio, at) = if place == 0 { (0, 0) } else { (usize::from(place) - 1, 1) };
        if place == 0 || place == self.hops {
            let peer = if place == 0 { 1 } else { self.hops - 1 };
            let station = Station::new(self.config(place, peer), self.entropy(place), Time::ZERO)?;
            return Ok(vec![network.add_station(radio, at, station, flow_of)?]);
        }
        let end = |node: u8| vec![IpNet::from(IpAddr::from(address(node.into())))];
        let config = HubConfig {
            station: self.config(place, place - 1),
            neighbours: vec![(id(place - 1), end(0)), (id(place + 1), end(self.hops))],
            own: vec![address(place.into()).into()],
            one_channel: false,
        };
        let hub = Hub::new(config, self.entropy(place), Time::ZERO)?;
        let index = network.add_station(radio, at, hub, flow_of)?;
        network.add_port(index, radio + 1, 0)?;
        Ok(vec![index])
    }

    fn config(&self, place: u8, peer: u8) -> StationConfig {
        let coding = CodingParams::window();
        StationConfig {
            id: id(place),
            role: Role::Endpoint { peer: id(peer), helper: None },
            security: PSK.into(),
            coding,
            link_errors: LinkErrors::Measured,
            ingress_packets: coding.ingress_packets_default(),
            frame_len_max: MTU - UNDERLAY_LEN,
            frame_len_min: 0,
            memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        }
    }

    fn entropy(&self, place: u8) -> [u8; 32] {
        let (seed, entity) = (self.seed, place.into());
        let key = StreamKey { seed, replication: 0, entity, purpose: "entropy" };
        let mut entropy = [0; 32];
        Stream::from_rng(&mut key.stream()).fill_bytes(&mut entropy);
        entropy
    }

    /// Runs the measured interval and samples the hubs' queues.
    fn watch(&self, network: &mut Network, hubs: &[StationIndex]) -> Vec<Histogram<u64>> {
        let new = || Histogram::new_with_bounds(1, DELAY_NS_MAX, 3).expect("bounds that can be");
        let mut histograms: Vec<_> = hubs.iter().map(|_| new()).collect();
        let end = network.now() + self.duration;
        while network.now() < end {
            network.run_until(network.now() + LOOKED_AT);
            let now = network.now();
            for (&hub, histogram) in hubs.iter().zip(&mut histograms) {
                let delay = onward(network.any_station(hub)).map(|to| to.path(now).queue.delay);
                histogram.saturating_record(delay.unwrap_or_default().as_nanos() as u64);
            }
        }
        histograms
    }
}

fn id(place: u8) -> StationId {
    StationId(u16::from(place) + 1)
}
