//! Runs a scenario in virtual time: stations with hosts on a radio, under the load with which the
//! lab measures (`lab/src/load/`).
//!
//! As in the lab, goodput counts payload received in the measured interval, and the load begins
//! when all stations have sessions with each other. The papers' stations need no handshake.

pub(crate) mod line;
mod tcp;
mod udp;

use core::time::Duration;

use corridor_air::{Duplex, Medium, MediumConfig, StationStats};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{ErasureRatios, LinkErrors, Role, Station, StationConfig, StationId};
use corridor_scenario::{
    CodingCounts, DESTINATION, Delays, Direction, Engine, Keep, LinkErrorsKind, Path, Row, Run,
    SOURCE, Scenario, Side, Tables, Transport, UnderlayKind, line_config, medium_config,
};
use hdrhistogram::Histogram;

use self::line::{LineSeen, LineSender};
use crate::agents::metered::{NANOS_PER_S, delay_histogram};
use crate::core::agent::NodeIndex;
use crate::core::network::{
    AirConfig, FlowOf, FrameCounts, Network, RadioSite, StationIndex, Topology,
};
use crate::core::watch::Watcher;
use crate::plan::course::{self, Course, Observed, QueueSeen};
use crate::plan::error::SimError;
use crate::plan::seen::FlowSeen;

/// Bytes of an Ethernet header, which the medium counts too.
const ETHERNET_HEADER_LEN: usize = 14;
/// Largest payload of an Ethernet frame.
const ETHERNET_MTU: usize = 1500;
/// Smallest payload of an Ethernet frame.
const ETHERNET_PAYLOAD_MIN: usize = 46;
/// Bytes of IPv4's and UDP's headers.
const UDP_HEADERS_LEN: usize = 28;
/// The pre-shared key of all stations.
pub(crate) const PSK: [u8; 32] = [0x5a; 32];
/// Time under load before the measured interval.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);
/// Longest time until all stations have sessions with each other, after which the load begins. At
/// 90 % loss each way it sometimes takes 20 s.
const MEETING_MAX: Duration = Duration::from_secs(600);

/// Runs one run of a scenario over its path; `warm_up` is the time under load that is not measured.
///
/// # Errors
/// [`SimError::Unsupported`] for kernel paths without a line, and for TCP variants that the
/// simulator does not have.
pub(crate) fn run_after(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
) -> Result<Row, SimError> {
    Ok(run_kept(scenario, run, warm_up, Keep::default())?.0)
}

/// Like [`run_after`], and returns more than the row if `keep` says so.
pub(crate) fn run_kept(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    keep: Keep,
) -> Result<(Row, Tables), SimError> {
    let Ran { row, tables, .. } = Tunnel::new(scenario, run, keep)?.run(scenario, run, warm_up);
    Ok((row, tables))
}

/// Like [`run_after`], over a line; also returns what the line counted.
pub(crate) fn run_line(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    sender: LineSender,
) -> Result<(Row, LineSeen), SimError> {
    let ran = Tunnel::with(scenario, run, Keep::default(), sender)?.run(scenario, run, warm_up);
    match ran.line {
        Some(seen) => Ok((ran.row, seen)),
        None => unsupported("medium", "a radio", "a line"),
    }
}

/// Like [`run_after`], with a watcher. The row covers the run until the watcher has seen enough.
pub(crate) fn watch(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    watcher: Box<dyn Watcher>,
) -> Result<Row, SimError> {
    let mut tunnel = Tunnel::new(scenario, run, Keep::default())?;
    tunnel.network.set_watcher(watcher);
    Ok(tunnel.run(scenario, run, warm_up).row)
}

/// Stations before they have sessions, and their load.
struct Tunnel {
    network: Network,
    stations: Vec<StationIndex>,
    /// Places on the radio: one for each station, and two for each host between them.
    places: usize,
    /// Bytes of a frame's headers below Corridor's.
    header_len: usize,
    /// Longest packet that the tunnel carries.
    mtu: usize,
    load: Load,
    keep: Keep,
    /// How much later than the line's rates the load begins.
    late: Duration,
}

/// Results of a run.
struct Ran {
    row: Row,
    /// What its line counted, if it has one.
    line: Option<LineSeen>,
    tables: Tables,
}

/// The load: a source and a sink for each direction.
enum Load {
    Udp(Vec<udp::Flow>),
    Tcp(Vec<tcp::Flow>),
}

/// When the load begins, and the measured interval with its length.
#[derive(Clone, Copy)]
struct Measured {
    begin: Time,
    start: Time,
    end: Time,
    duration_s: f64,
}

impl Tunnel {
    fn new(scenario: &Scenario, run: &Run, keep: Keep) -> Result<Self, SimError> {
        Tunnel::with(scenario, run, keep, LineSender::Finds(0))
    }

    fn with(
        scenario: &Scenario,
        run: &Run,
        keep: Keep,
        sender: LineSender,
    ) -> Result<Self, SimError> {
        check_run(scenario, run)?;
        let (air, places) = match line_config(scenario, run, scenario.seed, line_header_len(run)) {
            Some(mut line) => {
                line.pushes_back = sender == LineSender::Knows;
                line.draw = sender.draw() as u16;
                (AirConfig::Line(Box::new(line)), 2)
            }
            None => {
                let medium = radio_medium(scenario, run);
                let places = medium.stations;
                (AirConfig::Ideal(medium), places)
            }
        };
        // Hosts between S and D have two places each, numbered after the stations.
        let hops = scenario.medium.hops;
        let host = |place: usize| match place {
            0 => SOURCE,
            _ if hops > 1 && place == places - 1 => DESTINATION,
            _ if hops > 1 => place.div_ceil(2) + 1,
            _ => place,
        };
        let nodes: Vec<_> = (0..places).map(|place| host(place) as NodeIndex).collect();
        let count = run.stations() + hops - 1;
        let radio = RadioSite { nodes, air };
        let topology = Topology { nodes: count, radios: vec![radio], ..Topology::default() };
        let mut network = Network::new(&topology, scenario.seed, run.replication)?;
        let flow_of: FlowOf = match run.transport {
            Transport::Udp => udp::flow_of,
            Transport::Tcp => tcp::flow_of,
        };
        let mut stations = Vec::new();
        let has_stations = run.path != Path::Kernel;
        for index in (0..run.stations()).filter(|_| has_stations) {
            let station = station(scenario, run, index, sender)?;
            let place = if hops > 1 && index == DESTINATION { places - 1 } else { index };
            let index = network.add_station(0, place, station, flow_of)?;
            if hops > 1 {
                network.set_gateway(index, place ^ 1);
            }
            stations.push(index);
        }
        for near in (1..places - 1).step_by(2).filter(|_| hops > 1) {
            let queue_frames = scenario.medium.queue_frames;
            network.add_bridge((0, near), (0, near + 1), near + 2, queue_frames)?;
            network.add_bridge((0, near + 1), (0, near), near - 1, queue_frames)?;
        }
        let first = stations.first();
        let mtu = first.map_or(ETHERNET_MTU, |&at| network.station(at).tunnel_mtu());
        let ways: &[(NodeIndex, NodeIndex)] = match run.direction {
            Direction::Forward => &[(0, 1)],
            Direction::Both => &[(0, 1), (1, 0)],
        };
        let load = match run.transport {
            Transport::Udp => Load::Udp(udp::flows(run, ways, (mtu, keep), &mut network)?),
            Transport::Tcp => {
                let of = (scenario, run, sender.draw());
                Load::Tcp(tcp::flows(of, ways, (mtu, keep), &mut network)?)
            }
        };
        let header_len = header_len(run);
        let late = sender.late();
        Ok(Tunnel { network, stations, places, header_len, mtu, load, keep, late })
    }

    fn run(mut self, scenario: &Scenario, run: &Run, warm_up: Duration) -> Ran {
        let network = &mut self.network;
        network.run_until_met(Time::ZERO + MEETING_MAX);
        let met_at = network.now();
        if let Load::Tcp(flows) = &self.load {
            tcp::connect(flows, network);
        }
        network.restart_rates();
        let begin = network.now();
        let start = begin + warm_up;
        let end = start + Duration::from_secs_f64(run.duration_s);
        let measured = Measured { begin, start, end, duration_s: run.duration_s };
        match &self.load {
            Load::Udp(flows) => udp::begin(flows, network, begin + self.late, measured),
            Load::Tcp(flows) => tcp::begin(flows, network, begin + self.late, measured),
        }
        let observed = Subjects { load: &self.load, stations: &self.stations, places: self.places };
        let series = self.keep.series;
        let mut course = series.map(|interval| Course::new(interval, network, &observed));
        let kept = self.keep.totals.then(|| {
            course::advance(network, start, &mut course, &observed, |_| false);
            course::Totals::of(network, &observed)
        });
        // Only lines are read before the measured interval.
        let before = network.line(0).is_some().then(|| {
            course::advance(network, start, &mut course, &observed, |_| false);
            network.keep_waits();
            LineSeen::before(network)
        });
        course::advance(network, measured.end, &mut course, &observed, |_| false);
        let course = course.map(|course| course.finish(network, &observed));
        let mut tables = course.unwrap_or_default();
        if let Some(kept) = kept {
            kept.add(network, &observed, &mut tables);
        }
        let seen = before
            .flatten()
            .map(|before| before.after(network, measured, (scenario, run), self.mtu));
        if let Load::Udp(_) = &self.load {
            udp::drain(network, measured);
        }
        let sides = self.seen(measured);
        if self.keep.delays {
            for side in &sides {
                tables.add_delays(side.side.from, &side.delays, NANOS_PER_S);
            }
        }
        let mut row = Row::new(scenario, run, Engine::Sim);
        self.report(&mut row, run, met_at, sides);
        Ran { row, line: seen, tables }
    }

    /// What the ends of the load have counted.
    fn seen(&self, measured: Measured) -> Vec<Seen> {
        let network = &self.network;
        match &self.load {
            Load::Udp(flows) => flows.iter().map(|flow| flow.seen(network, measured)).collect(),
            Load::Tcp(flows) => flows.iter().map(|flow| flow.seen(network, measured)).collect(),
        }
    }

    fn report(&self, row: &mut Row, run: &Run, met_at: Time, seen: Vec<Seen>) {
        let network = &self.network;
        let mut all = delay_histogram();
        for seen in &seen {
            let added = all.add(&seen.delays);
            debug_assert!(added.is_ok());
        }
        let counts =
            |index: usize| CodingCounts::from(network.station(self.stations[index]).stats());
        // Without stations nothing is coded.
        let coded = seen.iter().filter(|_| !self.stations.is_empty());
        let encoders: Vec<_> = coded.map(|seen| counts(seen.side.from)).collect();
        let helper = (run.path == Path::CodedHelper).then(|| counts(2));
        let payload = match &self.load {
            Load::Udp(_) if !self.stations.is_empty() => udp::report_packets(row, self, &seen),
            _ => seen.iter().map(|seen| seen.delivered_bytes).sum::<u64>() as f64,
        };
        row.set_sides(seen.into_iter().map(|seen| seen.side).collect(), delays(&all));
        row.set_coding(&encoders, helper.as_ref(), run.coding_params().block_size);
        let (bytes, utilisation) = self.air_shares(met_at);
        row.air_bytes_per_byte = (payload > 0.0).then(|| bytes / payload);
        row.air_utilisation = Some(utilisation);
        row.air_drop_ratio = self.drop_ratio();
    }

    fn stats(&self, place: usize) -> StationStats {
        match self.network.line(0) {
            Some(line) => line.stats(place),
            None => self.network.medium(0).map(|medium| medium.stats(place)).unwrap_or_default(),
        }
    }

    fn frames_sent(&self) -> f64 {
        let frames = |place| self.stats(place).sent_frames;
        (0..self.places).map(frames).sum::<u64>() as f64
    }

    /// Bytes that all stations sent on the air, Ethernet headers included, and the share of time
    /// since `begin` that it was busy. With a channel for each station, that of the busiest.
    fn air_shares(&self, begin: Time) -> (f64, f64) {
        let stations: Vec<_> = (0..self.places).map(|at| self.stats(at)).collect();
        let bytes: u64 = stations.iter().map(|s| s.sent_bytes).sum();
        let shares = stations.iter().map(|s| s.airtime.as_secs_f64());
        let duplex = match self.network.line(0) {
            Some(_) => Duplex::Full,
            None => self.network.medium(0).map_or(Duplex::Half, Medium::duplex),
        };
        let busy: f64 = match duplex {
            Duplex::Half => shares.sum(),
            Duplex::Full => shares.fold(0.0, f64::max),
        };
        // A line counts them already.
        let header_len = if self.network.line(0).is_some() { 0 } else { self.header_len };
        let headers = header_len as f64 * self.frames_sent();
        (bytes as f64 + headers, busy / (self.network.now() - begin).as_secs_f64())
    }

    /// Share of frames dropped by full queues: the highest among stations and hosts.
    fn drop_ratio(&self) -> Option<f64> {
        let stations = (0..self.places).map(|at| self.stats(at));
        let ratios = stations.filter_map(|stats| stats.drop_ratio());
        ratios.chain(self.network.bridge_drop_ratio()).reduce(f64::max)
    }
}

/// The link rate that a station assumes where its line applies back-pressure, bit/s: higher than
/// any line's.
const RATE_BPS_HELD_BACK: u64 = 100_000_000_000;

/// What is sampled: flows, the interfaces of stations and hosts, and the stations.
struct Subjects<'a> {
    load: &'a Load,
    stations: &'a [StationIndex],
    places: usize,
}

impl Observed for Subjects<'_> {
    fn flows(&self, network: &Network) -> Vec<FlowSeen> {
        match self.load {
            Load::Udp(flows) => flows.iter().map(|flow| flow.so_far(network)).collect(),
            Load::Tcp(flows) => flows.iter().map(|flow| flow.so_far(network)).collect(),
        }
    }

    fn queues(&self, network: &Network) -> Vec<QueueSeen> {
        let places = (0..self.places).map(|place| QueueSeen {
            from: place as NodeIndex,
            to: None,
            interface: network.interface(0, place),
        });
        places.collect()
    }

    fn frames(&self, network: &Network) -> Vec<(NodeIndex, FrameCounts)> {
        let places = 0..self.places;
        places.map(|place| (place as NodeIndex, network.frame_counts(0, place))).collect()
    }

    fn stations<'n>(&self, network: &'n Network) -> Vec<&'n Station> {
        self.stations.iter().map(|&index| network.station(index)).collect()
    }
}

/// What the ends of a direction have counted.
struct Seen {
    side: Side,
    delays: Histogram<u64>,
    /// Payload received since the start.
    delivered_bytes: u64,
}

/// The radio of a run.
fn radio_medium(scenario: &Scenario, run: &Run) -> MediumConfig {
    let mut medium = medium_config(scenario, run, scenario.seed);
    // Where the medium pushes back, a frame is only made when the medium can take it, so one on the
    // air and one waiting suffice.
    if !medium.drops_when_full {
        medium.queue_frames = medium.queue_frames.min(2);
    }
    // The simulator's frames lack the underlay's headers, whose airtime counts all the same.
    let header_ns = 8 * header_len(run) as u64 * 1_000_000_000 / medium.rate_bps.max(1);
    medium.overhead += Duration::from_nanos(header_ns);
    medium
}

/// Bytes of a frame on the air beside Corridor's.
fn header_len(run: &Run) -> usize {
    match run.underlay {
        UnderlayKind::Ethernet => ETHERNET_HEADER_LEN,
        UnderlayKind::Udp => ETHERNET_HEADER_LEN + UDP_HEADERS_LEN,
    }
}

/// Bytes of IP headers that a frame on a line has beside Corridor's.
fn line_header_len(run: &Run) -> u32 {
    match (run.path, run.underlay) {
        (Path::Kernel, _) | (_, UnderlayKind::Ethernet) => 0,
        (_, UnderlayKind::Udp) => UDP_HEADERS_LEN as u32,
    }
}

/// Checks that the simulator supports a run.
pub(crate) fn check_run(scenario: &Scenario, run: &Run) -> Result<(), SimError> {
    if run.path == Path::Kernel && scenario.pipes().is_none() {
        return unsupported("path", "kernel", "plain, coded and coded+helper without a line");
    }
    if run.path == Path::Relay {
        return unsupported("path", "relay", "a network with [network.relay]");
    }
    match run.transport {
        Transport::Udp => Ok(()),
        Transport::Tcp => tcp::check(scenario, run),
    }
}

fn unsupported<T>(field: &'static str, given: &str, expected: &'static str) -> Result<T, SimError> {
    Err(SimError::Unsupported { field, given: given.to_owned(), expected })
}

/// Station `index` of a run.
fn station(
    scenario: &Scenario,
    run: &Run,
    index: usize,
    sender: LineSender,
) -> Result<Station, SimError> {
    let id = |index: usize| StationId(index as u16 + 1);
    let role = match (run.path, index) {
        (_, 2) => Role::Helper { between: (id(0), id(1)) },
        (Path::Plain, _) => Role::Plain { peer: id(1 - index) },
        (path, _) => Role::Endpoint {
            peer: id(1 - index),
            helper: (path == Path::CodedHelper).then(|| id(2)),
        },
    };
    let (frame_len_max, frame_len_min) = match run.underlay {
        UnderlayKind::Ethernet => (ETHERNET_MTU, ETHERNET_PAYLOAD_MIN),
        UnderlayKind::Udp => (ETHERNET_MTU - UDP_HEADERS_LEN, 0),
    };
    let config = StationConfig {
        id: id(index),
        role,
        security: PSK.into(),
        coding: run.coding_params(),
        link_errors: link_errors(scenario, run, index),
        ingress_packets: scenario.ingress_packets_for(&run.coding_params()),
        frame_len_max,
        frame_len_min,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        // The line holds S's frames back.
        rate_bps: (sender == LineSender::Knows && index == SOURCE).then_some(RATE_BPS_HELD_BACK),
    };
    let key = StreamKey {
        seed: scenario.seed,
        replication: run.replication,
        entity: sender.draw() << 32 | index as u64,
        purpose: "entropy",
    };
    let mut entropy = [0; 32];
    key.stream().fill_bytes(&mut entropy);
    Ok(Station::new(config, entropy, Time::ZERO)?)
}

/// The link errors configured at a station. D sends its own flow in the other direction, so its
/// helper's links are swapped.
fn link_errors(scenario: &Scenario, run: &Run, index: usize) -> LinkErrors {
    let ErasureRatios { e1, e2, e3 } = run.erasures;
    match (scenario.link_errors, index) {
        (LinkErrorsKind::Measured, _) => LinkErrors::Measured,
        (LinkErrorsKind::Fixed, DESTINATION) => {
            let e3 = run.e3_back.unwrap_or(e3);
            LinkErrors::Fixed(ErasureRatios { e1: e2, e2: e1, e3 })
        }
        (LinkErrorsKind::Fixed, _) => LinkErrors::Fixed(run.erasures),
    }
}

/// Quantiles of delays in nanoseconds.
fn delays(histogram: &Histogram<u64>) -> Delays {
    Delays::of(histogram, NANOS_PER_S)
}
