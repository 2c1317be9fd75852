//! A scenario's run with UDP load, in virtual time.

use std::cell::RefCell;
use std::rc::Rc;

use core::time::Duration;

use corridor_air::{AirError, Duplex, Medium, MediumConfig};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::tcpnc::NcError;
use corridor_proto::{
    ConfigError, ErasureRatios, LinkErrors, Role, Station, StationConfig, StationId, Stats,
};
use corridor_scenario::{
    CodingCounts, DESTINATION, Delays, Direction, Engine, LinkErrorsKind, Path, Row, Run, Scenario,
    Side, Transport, medium_config,
};
use hdrhistogram::Histogram;

use crate::capture::write_datagram;
use crate::core::agent::NodeIndex;
use crate::core::network::NetworkError;
use crate::core::watch::Watcher;
use crate::radio_tcp;
use crate::tcp;
use crate::world::{Node, World};

/// Bytes of an Ethernet frame beyond what Corridor puts into it; the medium counts them.
const ETHERNET_HEADER_LEN: usize = 14;
/// Headers of a UDP datagram over IPv4: what the lab's packets carry beyond their payload.
const UDP_HEADERS_LEN: usize = 28;
/// Largest payload of an Ethernet frame.
const ETHERNET_MTU: usize = 1500;
/// Sequence number and time of sending, at the front of each payload.
const STAMP_LEN: usize = 16;
/// The port that sources send from and to: discard (RFC 863).
const PORT: u16 = 9;
/// The secret of all stations.
pub(crate) const PSK: [u8; 32] = [0x5a; 32];
/// Load before the measured interval begins.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);
/// How long packets on their way are waited for after it ends.
const DRAIN: Duration = Duration::from_secs(2);
/// Longest time until all stations have met: the load begins afterwards, as in the lab and in the
/// papers' tests, whose stations need no handshake. At 90 % loss each way it takes 20 s at times.
const MEETING_MAX: Duration = Duration::from_secs(600);

/// Why a run cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// Not (yet) a matter of the simulator.
    #[error("{field} = {given}: the simulator runs {expected}")]
    Unsupported {
        /// Which field of the run.
        field: &'static str,
        /// What it says.
        given: String,
        /// What can be run.
        expected: &'static str,
    },
    /// The medium cannot be.
    #[error(transparent)]
    Air(#[from] AirError),
    /// A network cannot be.
    #[error("network.{0}")]
    Network(#[from] NetworkError),
    /// A flow's TCP cannot be.
    #[error("flow[{flow}].tcp: {source}")]
    Tcp {
        /// The flow, counted from 0.
        flow: usize,
        /// What is wrong.
        source: tcp::ConfigError,
    },
    /// A flow's TCP/NC cannot be.
    #[error("flow[{flow}].tcp_nc: {source}")]
    TcpNc {
        /// The flow, counted from 0.
        flow: usize,
        /// What is wrong.
        source: NcError,
    },
    /// A station cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// TCP over a radio cannot be set so.
    #[error(transparent)]
    RadioTcp(#[from] tcp::ConfigError),
}

/// What arrived at one host.
struct Sink {
    measured_from: Time,
    measured_until: Time,
    bytes: u64,
    received: u64,
    out_of_order: u64,
    duplicated: u64,
    highest: Option<u64>,
    seen: Vec<bool>,
    delays: Histogram<u64>,
}

impl Sink {
    fn take(&mut self, now: Time, packet: &[u8]) {
        let Some((sequence, sent)) = read_stamp(packet) else { return };
        let index = sequence as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, false);
        }
        let again = core::mem::replace(&mut self.seen[index], true);
        let late = self.highest.is_some_and(|highest| sequence < highest);
        self.highest = self.highest.max(Some(sequence));
        if now >= self.measured_from && now < self.measured_until && !again {
            self.bytes += (packet.len() - UDP_HEADERS_LEN) as u64;
            self.delays.saturating_record((now - sent).as_nanos() as u64);
        }
        if sent >= self.measured_from && sent < self.measured_until {
            self.received += u64::from(!again);
            self.duplicated += u64::from(again);
            self.out_of_order += u64::from(late);
        }
    }
}

/// Runs UDP load over `run`'s path in virtual time.
///
/// Goodput counts UDP payload received in the measured interval, as the lab does; packets have the
/// size of IPv4 and UDP headers and payload.
///
/// # Errors
/// [`SimError::Unsupported`] for TCP, kernel paths and UDP underlays.
pub fn run_udp(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    run_udp_after(scenario, run, WARM_UP)
}

/// The same after so much load that is not measured.
pub(crate) fn run_udp_after(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
) -> Result<Row, SimError> {
    run_prepared(scenario, run, prepare(scenario, run, warm_up)?)
}

/// The same, before the eyes of somebody. The row is that of what was run until they had enough.
pub(crate) fn watch_udp(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    watcher: Box<dyn Watcher>,
) -> Result<Row, SimError> {
    let mut prepared = prepare(scenario, run, warm_up)?;
    prepared.world.set_watcher(watcher);
    run_prepared(scenario, run, prepared)
}

fn run_prepared(scenario: &Scenario, run: &Run, mut prepared: Prepared) -> Result<Row, SimError> {
    let begin = meet(&mut prepared.world);
    let sent = offer_load(&mut prepared, run, begin);
    Ok(report(scenario, run, &prepared, &sent, begin))
}

/// A world that has not begun.
struct Prepared {
    world: World,
    sinks: Vec<Rc<RefCell<Sink>>>,
    /// Load that is not measured, and load that is.
    warm_up: Duration,
    duration: Duration,
}

fn prepare(scenario: &Scenario, run: &Run, warm_up: Duration) -> Result<Prepared, SimError> {
    check_run(scenario, run)?;
    if run.transport != Transport::Udp {
        return unsupported("transport", "tcp", "udp");
    }
    let duration = Duration::from_secs_f64(run.duration_s);
    let mut nodes = Vec::new();
    let mut sinks = Vec::new();
    for index in 0..run.stations() {
        let station = station(scenario, run, index)?;
        let sink = Rc::new(RefCell::new(Sink {
            measured_from: Time::MAX,
            measured_until: Time::MAX,
            bytes: 0,
            received: 0,
            out_of_order: 0,
            duplicated: 0,
            highest: None,
            seen: Vec::new(),
            delays: delay_histogram(),
        }));
        sinks.push(Rc::clone(&sink));
        nodes.push(Node::new(station, move |now, packet| sink.borrow_mut().take(now, packet)));
    }
    let world = World::new(Medium::new(radio_medium(scenario, run))?, nodes);
    Ok(Prepared { world, sinks, warm_up, duration })
}

/// The radio of a run.
pub(crate) fn radio_medium(scenario: &Scenario, run: &Run) -> MediumConfig {
    let mut medium = medium_config(scenario, run, scenario.seed);
    // A frame is not made before the medium can take it, so one on the air and one waiting do.
    // Where it pushes back, that is.
    if !medium.drops_when_full {
        medium.queue_frames = medium.queue_frames.min(2);
    }
    // The stations' frames have no Ethernet header here; on the air it takes its time.
    let header_ns = 8 * ETHERNET_HEADER_LEN as u64 * 1_000_000_000 / medium.rate_bps.max(1);
    medium.overhead += Duration::from_nanos(header_ns);
    medium
}

/// Whether the simulator can make a run.
pub(crate) fn check_run(scenario: &Scenario, run: &Run) -> Result<(), SimError> {
    let hops = scenario.medium.hops;
    if hops != 1 {
        return unsupported("medium.hops", &hops.to_string(), "1: the lab has several");
    }
    if run.path == Path::Kernel {
        return unsupported("path", "kernel", "plain, coded and coded+helper");
    }
    match run.transport {
        Transport::Udp => Ok(()),
        Transport::Tcp => radio_tcp::variant(run).map(|_| ()),
    }
}

fn unsupported<T>(field: &'static str, given: &str, expected: &'static str) -> Result<T, SimError> {
    Err(SimError::Unsupported { field, given: given.to_owned(), expected })
}

/// Station `index` of a run.
pub(crate) fn station(scenario: &Scenario, run: &Run, index: usize) -> Result<Station, SimError> {
    let id = |index: usize| StationId(index as u8 + 1);
    let role = match (run.path, index) {
        (_, 2) => Role::Helper { between: (id(0), id(1)) },
        (Path::Plain, _) => Role::Plain { peer: id(1 - index) },
        (path, _) => Role::Endpoint {
            peer: id(1 - index),
            helper: (path == Path::CodedHelper).then(|| id(2)),
        },
    };
    let config = StationConfig {
        id: id(index),
        role,
        psk: PSK.into(),
        coding: run.coding_params(),
        link_errors: link_errors(scenario, run, index),
        ingress_packets: scenario.ingress_packets_for(&run.coding_params()),
        frame_len_max: ETHERNET_MTU,
        frame_len_min: 46,
        rate_bps: None,
    };
    let key = StreamKey {
        seed: scenario.seed,
        replication: run.replication,
        entity: index as u64,
        purpose: "entropy",
    };
    let mut entropy = [0; 32];
    key.stream().fill_bytes(&mut entropy);
    Ok(Station::new(config, entropy, Time::ZERO)?)
}

/// Lets the stations meet; returns when the load begins.
pub(crate) fn meet(world: &mut World) -> Time {
    world.run_until_met(Time::ZERO + MEETING_MAX);
    world.now()
}

/// What a station is told of the links. D sends its own flow the other way: its helper's links have
/// changed places.
fn link_errors(scenario: &Scenario, run: &Run, index: usize) -> LinkErrors {
    let ErasureRatios { e1, e2, e3 } = run.erasures;
    match (scenario.link_errors, index) {
        (LinkErrorsKind::Measured, _) => LinkErrors::Measured,
        (LinkErrorsKind::Fixed, DESTINATION) => {
            LinkErrors::Fixed(ErasureRatios { e1: e2, e2: e1, e3 })
        }
        (LinkErrorsKind::Fixed, _) => LinkErrors::Fixed(run.erasures),
    }
}

/// Sends packets at the offered rate from `begin` to the end of the run; returns how many were
/// sent by each source in the measured interval.
fn offer_load(prepared: &mut Prepared, run: &Run, begin: Time) -> [u64; 2] {
    let Prepared { ref mut world, ref sinks, warm_up, duration } = *prepared;
    let start = begin + warm_up;
    let end = start + duration;
    for sink in sinks {
        let mut sink = sink.borrow_mut();
        (sink.measured_from, sink.measured_until) = (start, end);
    }
    let sources = if run.direction == Direction::Both { 2 } else { 1 };
    let mtu = world.nodes()[0].station.tunnel_mtu();
    let len = run.datagram_bytes.map_or(mtu, |bytes| bytes + UDP_HEADERS_LEN).min(mtu);
    let payload_bits = 8.0 * (len - UDP_HEADERS_LEN) as f64;
    let interval_ns = payload_bits / run.offered_bps.unwrap_or(10e6) * 1e9;
    let mut packets = [datagram(0, len), datagram(1, len)];
    let mut sent = [0; 2];
    for sequence in 0u64.. {
        let at = begin + Duration::from_nanos((sequence as f64 * interval_ns) as u64);
        if at >= end || world.is_watched_enough() {
            break;
        }
        world.run_until(at);
        for (source, sent) in sent.iter_mut().enumerate().take(sources) {
            write_stamp(&mut packets[source], sequence, at);
            world.node_mut(source).station.handle_packet(at, &packets[source]);
            *sent += u64::from(at >= start);
        }
        world.settle();
    }
    if !world.is_watched_enough() {
        world.run_until(end + DRAIN);
    }
    sent
}

/// A datagram from one endpoint to the other, headers included, of `len` bytes: what a daemon would
/// carry, for whoever looks at it. The payload begins with a stamp, the rest is zero.
fn datagram(source: usize, len: usize) -> Vec<u8> {
    let len = len.max(UDP_HEADERS_LEN + STAMP_LEN);
    let (from, to) = (source as NodeIndex, 1 - source as NodeIndex);
    let mut packet = Vec::with_capacity(len);
    write_datagram(from, to, (PORT, PORT), (len - UDP_HEADERS_LEN) as u16, &mut packet);
    packet.resize(len, 0);
    packet
}

fn write_stamp(packet: &mut [u8], sequence: u64, at: Time) {
    let stamp = &mut packet[UDP_HEADERS_LEN..][..STAMP_LEN];
    stamp[..8].copy_from_slice(&sequence.to_be_bytes());
    stamp[8..].copy_from_slice(&at.as_nanos().to_be_bytes());
}

fn read_stamp(packet: &[u8]) -> Option<(u64, Time)> {
    let stamp = packet.get(UDP_HEADERS_LEN..)?;
    let sequence = u64::from_be_bytes(stamp.get(..8)?.try_into().ok()?);
    let nanos = u64::from_be_bytes(stamp.get(8..STAMP_LEN)?.try_into().ok()?);
    Some((sequence, Time::from_nanos(nanos)))
}

fn report(
    scenario: &Scenario,
    run: &Run,
    prepared: &Prepared,
    sent: &[u64; 2],
    begin: Time,
) -> Row {
    let Prepared { world, sinks, .. } = prepared;
    let mut row = Row::new(scenario, run, Engine::Sim);
    let sources = if run.direction == Direction::Both { 2 } else { 1 };
    let mut all = delay_histogram();
    let sides = (0..sources).map(|from| {
        let sink = sinks[1 - from].borrow();
        let added = all.add(&sink.delays);
        debug_assert!(added.is_ok());
        Side {
            from,
            goodput_bps: 8.0 * sink.bytes as f64 / run.duration_s,
            delays: delays(&sink.delays),
            packets_sent: Some(sent[from]),
            packets_received: Some(sink.received),
            packets_out_of_order: Some(sink.out_of_order),
            packets_duplicated: Some(sink.duplicated),
            ..Side::default()
        }
    });
    let sides: Vec<Side> = sides.collect();
    row.set_sides(sides, delays(&all));
    let counts = |index: usize| CodingCounts::from(world.nodes()[index].station.stats());
    let encoders: Vec<_> = (0..sources).map(counts).collect();
    let helper = (run.path == Path::CodedHelper).then(|| counts(2));
    row.set_coding(&encoders, helper.as_ref(), run.coding_params().block_size);
    report_air(&mut row, world, sinks, begin);
    row
}

fn report_air(row: &mut Row, world: &World, sinks: &[Rc<RefCell<Sink>>], begin: Time) {
    let delivered = |f: fn(&Stats) -> u64| -> f64 {
        world.nodes().iter().map(|node| f(node.station.stats())).sum::<u64>() as f64
    };
    let packets = delivered(|stats| stats.packets_delivered);
    let payload = delivered(|stats| stats.bytes_delivered) - packets * UDP_HEADERS_LEN as f64;
    let (bytes, utilisation) = air_shares(world, begin);
    if packets > 0.0 && sinks.iter().any(|sink| sink.borrow().received > 0) {
        row.air_frames_per_packet = Some(frames_sent(world) / packets);
        row.air_bytes_per_byte = Some(bytes / payload);
    }
    row.air_utilisation = Some(utilisation);
    row.air_drop_ratio = drop_ratio(world);
}

fn frames_sent(world: &World) -> f64 {
    let frames = |station| world.medium().stats(station).sent_frames;
    (0..world.nodes().len()).map(frames).sum::<u64>() as f64
}

/// Bytes of all stations on the air, Ethernet headers included, and the share of time since `begin`
/// that it was busy; with a channel for each station, the busiest one's.
pub(crate) fn air_shares(world: &World, begin: Time) -> (f64, f64) {
    let stations: Vec<_> = (0..world.nodes().len()).map(|at| world.medium().stats(at)).collect();
    let bytes: u64 = stations.iter().map(|s| s.sent_bytes).sum();
    let shares = stations.iter().map(|s| s.airtime.as_secs_f64());
    let busy: f64 = match world.medium().duplex() {
        Duplex::Half => shares.sum(),
        Duplex::Full => shares.fold(0.0, f64::max),
    };
    let headers = ETHERNET_HEADER_LEN as f64 * frames_sent(world);
    (bytes as f64 + headers, busy / (world.now() - begin).as_secs_f64())
}

/// Share of the frames that full queues dropped, of the stations the highest.
pub(crate) fn drop_ratio(world: &World) -> Option<f64> {
    let stations = (0..world.nodes().len()).map(|at| world.medium().stats(at));
    stations.filter_map(|stats| stats.drop_ratio()).reduce(f64::max)
}

/// Delays from a microsecond to ten minutes, in nanoseconds, to three digits.
pub(crate) fn delay_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 600_000_000_000, 3).expect("bounds are within range")
}

/// Quantiles of delays in nanoseconds.
pub(crate) fn delays(histogram: &Histogram<u64>) -> Delays {
    if histogram.is_empty() {
        return Delays::default();
    }
    let quantile = |q| Some(histogram.value_at_quantile(q) as f64 / 1e9);
    Delays {
        delay_p50_s: quantile(0.5),
        delay_p95_s: quantile(0.95),
        delay_p99_s: quantile(0.99),
        delay_max_s: Some(histogram.max() as f64 / 1e9),
    }
}
