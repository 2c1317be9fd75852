//! A hub and its neighbours on one half-duplex radio: each neighbour has one flow to the hub, and
//! one through the hub to the next neighbour. Measures how the flows share the channel.
//!
//! Every byte of a packet follows from its flow and number, and the receiver checks it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use core::time::Duration;

use corridor_air::{Duplex, Jitter, Link, MediumConfig};
use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, StreamKey, Time};
use corridor_proto::{
    CodingParams, Hub, HubConfig, HubStats, LinkErrors, Role, Station, StationConfig, StationId,
    Stats,
};
use ipnet::Ipv4Net;

use crate::SimError;
use crate::agents::headers::write_datagram;
use crate::agents::ip::{self, DATA_HEADERS_LEN};
use crate::connection::Connection;
use crate::core::agent::{Agent, Body, NodeIndex, Packet};
use crate::core::network::{
    AirConfig, FlowOf, Network, NetworkError, RadioSite, StationIndex, Topology,
};
use crate::plan::tunnel::PSK;

/// UDP or TCP port of a flow: this plus the flow's number.
const PORT: u16 = 20_000;
/// Bytes of the IPv4 and UDP headers.
const HEADERS_LEN: usize = 28;
/// Offset of the destination port in an IPv4 packet without options, bytes.
const PORT_AT: usize = 22;
/// Flows through the hub are numbered from here on.
const CROSSING: u32 = 1_000;
const FRAME_LEN: usize = 1_500;
/// Longest packet of a TCP connection, bytes: it fits into one frame.
const TCP_MTU: usize = 1_400;
/// Longest time until all stations have sessions with each other.
const MEETING_MAX: Duration = Duration::from_secs(60);
/// Time after the end of the measured interval in which packets in flight may still arrive.
const DRAIN: Duration = Duration::from_secs(3);

/// What to measure.
#[derive(Clone, Debug)]
pub struct Star {
    /// Neighbours of the hub, 2 to 64.
    pub neighbours: u8,
    /// Share of the frames lost on each link, each way.
    pub loss_ratio: f64,
    /// Rate of the radio, bits per second.
    pub rate_bps: u64,
    /// What each flow has to send.
    pub load: Load,
    /// Time under load before the measured interval.
    pub warm_up: Duration,
    /// The measured interval.
    pub duration: Duration,
    /// Seed of the losses and of the stations.
    pub seed: u64,
}

/// What a flow has to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Datagrams at a rate.
    Udp {
        /// Offered payload, bits per second.
        offered_bps: f64,
        /// Bytes of each packet.
        packet_len: usize,
    },
    /// A TCP connection (Cubic) with unlimited data. Its bytes are not checked.
    Tcp,
}

/// A flow, and what arrived of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StarFlow {
    /// The neighbour that sends it, from 1.
    pub from: u8,
    /// The neighbour that it is for; 0: the hub.
    pub to: u8,
    /// Bits per second of payload that arrived in the measured interval.
    pub goodput_bps: f64,
    /// Packets that arrived, at any time.
    pub received: u64,
    /// Of these, packets with a wrong byte, and duplicates.
    pub wrong: u64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The flows to the hub.
    pub up: Vec<StarFlow>,
    /// The flows that cross the hub.
    pub crossing: Vec<StarFlow>,
    /// What the hub counted.
    pub hub: HubStats,
    /// What the hub's stations counted, one for each neighbour.
    pub stations: Vec<Stats>,
}

impl Measured {
    /// Goodput of the flows through the hub divided by that of the flows to the hub.
    pub fn crossing_ratio(&self) -> f64 {
        let sum = |flows: &[StarFlow]| flows.iter().map(|flow| flow.goodput_bps).sum::<f64>();
        sum(&self.crossing) / sum(&self.up)
    }

    /// Packets with wrong bytes, and duplicates.
    pub fn wrong(&self) -> u64 {
        self.up.iter().chain(&self.crossing).map(|flow| flow.wrong).sum()
    }
}

/// Jain's fairness index over the flows: 1 if all have the same goodput, 1/n if one flow has
/// everything; NaN if no flow has any.
pub fn jain(flows: &[StarFlow]) -> f64 {
    let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
    corridor_scenario::fairness(&goodputs).unwrap_or(f64::NAN)
}

/// Runs the load and measures it.
///
/// # Errors
/// [`SimError`] if the star's losses, rate or number of neighbours are out of range.
pub fn measure(star: &Star) -> Result<Measured, SimError> {
    let mut network = Network::new(&star.topology(), star.seed, 0)?;
    let flow_of: FlowOf = match star.load {
        Load::Tcp => ip::flow_of,
        Load::Udp { .. } => |packet| {
            let port = packet.get(PORT_AT..PORT_AT + 2)?.try_into().ok().map(u16::from_be_bytes)?;
            port.checked_sub(PORT).map(u32::from)
        },
    };
    let hub = network.add_station(0, 0, star.hub()?, flow_of)?;
    network.set_deaf(hub);
    for place in 1..=star.neighbours {
        let station = star.neighbour(place)?;
        let index: StationIndex = network.add_station(0, place.into(), station, flow_of)?;
        network.set_deaf(index);
    }
    network.run_until_met(Time::ZERO + MEETING_MAX);
    let flows = match star.load {
        Load::Udp { offered_bps, packet_len } => {
            star.run_udp(&mut network, offered_bps, packet_len)?
        }
        Load::Tcp => star.run_tcp(&mut network)?,
    };
    let (up, crossing) = flows.into_iter().partition(|flow| flow.to == 0);
    let hub = network.any_station(hub);
    Ok(Measured {
        up,
        crossing,
        hub: hub.hub_stats().copied().unwrap_or_default(),
        stations: hub.stations().map(|station| station.stats().clone()).collect(),
    })
}

type Seen = Rc<RefCell<Counts>>;

/// When the load begins, when it counts, and when it ends.
#[derive(Clone, Copy)]
struct Span {
    begin: Time,
    start: Time,
    end: Time,
}

impl Star {
    fn topology(&self) -> Topology {
        let link = |from, to| Link { from, to, erasure: self.loss_ratio.into(), retry_limit: 0 };
        let count = usize::from(self.neighbours) + 1;
        let medium = MediumConfig {
            mode: Duplex::Half,
            rate_bps: self.rate_bps,
            overhead: Duration::ZERO,
            propagation: Duration::from_micros(1),
            jitter: Jitter::None,
            queue_frames: 2,
            drops_when_full: false,
            stations: count,
            links: (1..count).flat_map(|at| [link(0, at), link(at, 0)]).collect(),
            seed: self.seed,
            replication: 0,
        };
        let nodes = (0..count as NodeIndex).collect();
        let radio = RadioSite { nodes, air: AirConfig::Ideal(medium) };
        Topology { nodes: count, radios: vec![radio], ..Topology::default() }
    }

    fn config(&self, place: u8, peer: u8) -> StationConfig {
        let coding = CodingParams::window();
        StationConfig {
            id: StationId(u16::from(place + 1)),
            role: Role::Endpoint { peer: StationId(u16::from(peer + 1)), helper: None },
            security: PSK.into(),
            coding,
            link_errors: LinkErrors::Measured,
            ingress_packets: coding.ingress_packets_default(),
            frame_len_max: FRAME_LEN,
            frame_len_min: 46,
            memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        }
    }

    fn entropy(&self, place: u8) -> [u8; 32] {
        let mut entropy = [0; 32];
        let key =
            StreamKey { seed: self.seed, replication: 0, entity: place.into(), purpose: "entropy" };
        key.stream().fill_bytes(&mut entropy);
        entropy
    }

    fn hub(&self) -> Result<Hub, SimError> {
        // Datagrams have addresses of the one kind, connections of the other.
        let address = |place: u8| std::net::Ipv4Addr::new(10, 0, 0, place + 1);
        let neighbour = |place: u8| {
            let both = [address(place), ip::address(place.into())];
            let networks = both.map(|address| Ipv4Net::from(address).into()).to_vec();
            (StationId(u16::from(place + 1)), networks)
        };
        let config = HubConfig {
            station: self.config(0, 1),
            neighbours: (1..=self.neighbours).map(neighbour).collect(),
            own: vec![address(0).into(), ip::address(0).into()],
            one_channel: true,
        };
        Ok(Hub::new(config, self.entropy(0), Time::ZERO)?)
    }

    fn neighbour(&self, place: u8) -> Result<Station, SimError> {
        Ok(Station::new(self.config(place, 0), self.entropy(place), Time::ZERO)?)
    }

    /// Sender and receiver of each flow.
    fn ways(&self) -> impl Iterator<Item = (u8, u8)> {
        let neighbours = self.neighbours;
        (1..=neighbours).flat_map(move |from| [(from, 0), (from, from % neighbours + 1)])
    }

    fn run_udp(
        &self,
        network: &mut Network,
        offered_bps: f64,
        packet_len: usize,
    ) -> Result<Vec<StarFlow>, NetworkError> {
        let begin = network.now();
        let start = begin + self.warm_up;
        let span = Span { begin, start, end: start + self.duration };
        let load = (packet_len, offered_bps);
        let seen = self.ways().map(|way| add_datagrams(network, way, load, span));
        let seen = seen.collect::<Result<Vec<Seen>, _>>()?;
        network.run_until(span.end + DRAIN);
        Ok(seen.iter().map(|seen| seen.borrow().flow(self)).collect())
    }

    fn run_tcp(&self, network: &mut Network) -> Result<Vec<StarFlow>, SimError> {
        let connections = self.ways().map(|(from, to)| {
            let way = (flow(from, to), from.into(), to.into());
            Connection::add(network, way, TCP_MTU, self.seed)
        });
        let connections = connections.collect::<Result<Vec<_>, _>>()?;
        Connection::begin(&connections, network);
        let start = network.now() + self.warm_up;
        network.run_until(start);
        let delivered = |network: &Network| -> Vec<u64> {
            connections.iter().map(|connection| connection.delivered_bytes(network)).collect()
        };
        let before = delivered(network);
        network.run_until(start + self.duration);
        let after = delivered(network);
        let seen = self.ways().zip(before.into_iter().zip(after));
        let flow = |((from, to), (before, after)): ((u8, u8), (u64, u64))| StarFlow {
            from,
            to,
            goodput_bps: 8.0 * (after - before) as f64 / self.duration.as_secs_f64(),
            received: after / (TCP_MTU - DATA_HEADERS_LEN) as u64,
            wrong: 0,
        };
        Ok(seen.map(flow).collect())
    }
}

/// The number of a flow.
fn flow(from: u8, to: u8) -> u32 {
    u32::from(from) + if to == 0 { 0 } else { CROSSING }
}

/// Adds a source and a sink to two hosts, for packets of a given length at a given rate.
fn add_datagrams(
    network: &mut Network,
    (from, to): (u8, u8),
    (packet_len, offered_bps): (usize, f64),
    span: Span,
) -> Result<Seen, NetworkError> {
    let flow = flow(from, to);
    let interval_ns = 8e9 * (packet_len - HEADERS_LEN) as f64 / offered_bps;
    // Staggered, so that the flows do not all begin at the same instant.
    let lag = Duration::from_nanos((interval_ns * f64::from(from) / 64.0) as u64);
    let (from_node, to_node) = (NodeIndex::from(from), NodeIndex::from(to));
    let source = Source {
        begin: span.begin + lag,
        end: span.end,
        interval_ns,
        flow,
        ends: (from_node, to_node),
        len: packet_len,
        number: 0,
    };
    let source = network.add_agent(from_node, flow, source)?;
    network.ask(source);
    let seen = Rc::new(RefCell::new(Counts::new(from, to, span)));
    let expected = (flow, (from_node, to_node), packet_len);
    network.add_agent(to_node, flow, Sink { seen: Rc::clone(&seen), expected })?;
    Ok(seen)
}

/// Writes packet `number` of a flow.
fn write(flow: u32, (from, to): (NodeIndex, NodeIndex), number: u64, len: usize) -> Vec<u8> {
    let mut packet = Vec::with_capacity(len);
    let port = PORT + flow as u16;
    write_datagram(from, to, (port, port), (len - HEADERS_LEN) as u16, &mut packet);
    let start = packet.len();
    packet.extend_from_slice(&number.to_be_bytes());
    packet.resize(len, 0);
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&flow.to_be_bytes());
    seed[4..12].copy_from_slice(&number.to_be_bytes());
    Stream::from_seed(seed).fill_bytes(&mut packet[start + 8..]);
    packet
}

/// Sends packets at a rate.
struct Source {
    begin: Time,
    end: Time,
    interval_ns: f64,
    flow: u32,
    ends: (NodeIndex, NodeIndex),
    len: usize,
    number: u64,
}

impl Agent for Source {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.poll_timeout().filter(|&at| at <= now)?;
        let bytes = write(self.flow, self.ends, self.number, self.len);
        self.number += 1;
        Some(Packet {
            flow: self.flow,
            from: self.ends.0,
            to: self.ends.1,
            len_bytes: bytes.len() as u32,
            ttl: 1,
            body: Body::Bytes(Arc::from(bytes)),
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let after = Duration::from_nanos((self.number as f64 * self.interval_ns) as u64);
        Some(self.begin + after).filter(|&at| at < self.end)
    }
}

/// What arrived of a flow.
struct Counts {
    from: u8,
    to: u8,
    span: Span,
    bytes: u64,
    received: u64,
    wrong: u64,
    seen: Vec<bool>,
}

impl Counts {
    fn new(from: u8, to: u8, span: Span) -> Self {
        Counts { from, to, span, bytes: 0, received: 0, wrong: 0, seen: Vec::new() }
    }

    fn flow(&self, star: &Star) -> StarFlow {
        StarFlow {
            from: self.from,
            to: self.to,
            goodput_bps: 8.0 * self.bytes as f64 / star.duration.as_secs_f64(),
            received: self.received,
            wrong: self.wrong,
        }
    }
}

/// Receives a flow's packets, and checks them.
struct Sink {
    seen: Seen,
    expected: (u32, (NodeIndex, NodeIndex), usize),
}

impl Agent for Sink {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let Body::Bytes(bytes) = &packet.body else { return };
        let mut counts = self.seen.borrow_mut();
        counts.received += 1;
        let (flow, ends, len) = self.expected;
        let number = bytes.get(HEADERS_LEN..).and_then(|payload| payload.first_chunk());
        let number = number.map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
        let is_new = number < 1 << 24 && {
            let at = number as usize;
            let len = counts.seen.len().max(at + 1);
            counts.seen.resize(len, false);
            !core::mem::replace(&mut counts.seen[at], true)
        };
        // The hub decremented the TTL, so the IP header differs; the routers' tests check that.
        let is_right = is_new && bytes[20..] == write(flow, ends, number, len)[20..];
        if !is_right {
            counts.wrong += 1;
        } else if now >= counts.span.start && now < counts.span.end {
            counts.bytes += (len - HEADERS_LEN) as u64;
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
