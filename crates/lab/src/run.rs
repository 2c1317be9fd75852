//! One run of a scenario, from its stations to its row.

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::fs::File;
use std::path::PathBuf;

use corridor_scenario::{
    DESTINATION, Direction, ETHERNET_MTU, Engine, HELPER, Path, Row, Run, SOURCE, Scenario,
    Transport, UnderlayKind, Wire, medium_config,
};

use crate::emulator::{Emulator, Report};
use crate::error::{Context, LabError};
use crate::external::{Running, Tunnel};
use crate::forwarder::Forwarder;
use crate::load::{self, Course, End, Outcome};
use crate::node::{INNER_SUBNET, NodeReport, Nodes, OUTER_SUBNET, counts_of};
use crate::station::{self, NAMES, QueueSplit, RadioConfig, Station};

/// A run whose emulator is later than this at the 99th percentile is not valid.
pub const LATENESS_MAX: Duration = Duration::from_millis(1);
/// Environment variable that names another program to run as a node.
const BINARY_VARIABLE: &str = "CORRIDOR_BIN";

/// How runs are made.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `corridor` program, started as `corridor up` in every station.
    pub binary: PathBuf,
}

impl Options {
    /// This very program, or the one named by the environment variable `CORRIDOR_BIN`.
    ///
    /// # Errors
    /// [`LabError::System`] if the system does not tell which program this is.
    pub fn from_environment() -> Result<Self, LabError> {
        let binary = match std::env::var_os(BINARY_VARIABLE) {
            Some(path) => path.into(),
            None => std::env::current_exe().what("find this program")?,
        };
        Ok(Options { binary })
    }
}

/// About how long a run takes, for people who wait.
pub fn time_needed(run: &Run) -> Duration {
    let nodes = if run.path == Path::Kernel { 0.1 } else { 0.6 };
    let drain = if run.transport == Transport::Udp { load::DRAIN_MAX } else { Duration::ZERO };
    run.lab.warm_up + drain + Duration::from_secs_f64(run.duration_s + nodes)
}

/// Makes one run. The process must have been prepared with [`crate::prepare`], and the calling
/// thread must stay: the nodes die with it. Ends early when `stop` is set.
///
/// # Errors
/// See [`LabError`]. Losses, connections that never come about and late frames are no errors.
pub fn run(
    scenario: &Scenario,
    run: &Run,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Row, LabError> {
    carry(scenario, run, Way::Own(options), stop)
}

/// Makes one run through an external tunnel, with the load and the radio of a run whose path is the
/// kernel's.
///
/// # Errors
/// See [`run`]; and [`LabError::Tunnel`] for a load that the tunnel does not carry.
pub fn run_tunnel(
    scenario: &Scenario,
    run: &Run,
    tunnel: &Tunnel,
    stop: &AtomicBool,
) -> Result<Row, LabError> {
    if tunnel.is_proxy() {
        let load = match run {
            _ if run.transport == Transport::Udp => "UDP",
            _ if run.direction == Direction::Both => "load in both directions",
            _ if run.lab.ping_interval.is_some() => "an echo",
            _ => "",
        };
        if !load.is_empty() {
            return Err(LabError::Tunnel { name: tunnel.name().to_owned(), load });
        }
    }
    let run = Run { path: Path::Kernel, ..run.clone() };
    let mut row = carry(scenario, &run, Way::External(tunnel), stop)?;
    row.tunnel = Some(tunnel.name().to_owned());
    Ok(row)
}

/// How packets cross.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// As the run says.
    Own(&'a Options),
    External(&'a Tunnel),
}

fn carry(scenario: &Scenario, run: &Run, way: Way<'_>, stop: &AtomicBool) -> Result<Row, LabError> {
    let split = QueueSplit::of(scenario.medium.queue_frames);
    let subnet = match (way, run.path, run.underlay) {
        (Way::External(_), ..) => Some(OUTER_SUBNET),
        (_, Path::Kernel, _) => Some(INNER_SUBNET),
        (_, _, UnderlayKind::Udp) => Some(OUTER_SUBNET),
        (_, _, UnderlayKind::Ethernet) => None,
    };
    let radio = RadioConfig {
        ring_frames: split.ring,
        mtu: ETHERNET_MTU,
        stations: run.stations(),
        hops: scenario.medium.hops,
        subnet,
    };
    let stations = make_stations(run, radio)?;
    let forwarders = (1..radio.hops).map(|index| Forwarder::new(index - 1, radio));
    let forwarders: Vec<_> = forwarders.collect::<Result<_, _>>()?;
    let emulator = start_emulator(scenario, run, split, radios(&stations, &forwarders)?)?;
    let (mut nodes, mut tunnel) = (None, None);
    match way {
        Way::External(external) => {
            let mut running = Running::start(external, &stations)?;
            running.wait_until_up(&stations, stop)?;
            tunnel = Some((external, running));
        }
        Way::Own(_) if run.path == Path::Kernel => {}
        Way::Own(options) => {
            let mut started = Nodes::start(&options.binary, run, scenario, &stations)?;
            started.wait_until_up(&stations, stop)?;
            nodes = Some(started);
        }
    }
    let end = |index: usize| End {
        namespace: stations[index].namespace.clone(),
        address: station::address(INNER_SUBNET, index),
    };
    let course = Course {
        ends: [end(SOURCE), end(DESTINATION)],
        proxy: tunnel.as_ref().and_then(|(external, _)| external.receiver()),
        outer: station::address(subnet.unwrap_or(OUTER_SUBNET), DESTINATION),
    };
    let outcome = load::carry(run, &course, emulator.as_ref(), stop)?;
    if let Some((_, running)) = &tunnel {
        running.check_alive()?;
    }
    drop(tunnel);
    let reports = nodes.map(Nodes::stop).transpose()?;
    let radio_drops = [SOURCE, DESTINATION].map(|index| stations[index].radio_drops());
    let report = emulator.map(Emulator::finish).transpose()?;

    let mut row = Row::new(scenario, run, Engine::Lab);
    describe_load(&mut row, &outcome);
    if let Some(report) = &report {
        describe_air(&mut row, report, &outcome);
    }
    match reports {
        Some(reports) => describe_nodes(&mut row, run, &reports),
        None => {
            let [source, destination] = radio_drops;
            let back = if run.direction == Direction::Both { destination? } else { 0 };
            row.ingress_drops = Some(source? + back);
        }
    }
    Ok(row)
}

fn make_stations(run: &Run, radio: RadioConfig) -> Result<Vec<Station>, LabError> {
    let stations = match run.lab.wire {
        Wire::Radio => (0..run.stations()).map(|index| Station::new(index, radio)).collect(),
        Wire::Veth => Station::pair(radio).map(Vec::from),
    }?;
    if run.lab.ecn {
        stations.iter().try_for_each(Station::enable_ecn)?;
    }
    Ok(stations)
}

/// The lab's ends of all radios, in the order of the medium: on several hops from S to D.
fn radios(stations: &[Station], forwarders: &[Forwarder]) -> Result<Vec<File>, LabError> {
    let taps = stations.iter().filter_map(|station| station.tap.as_ref());
    let mut taps: Vec<&File> = taps.collect();
    let between = 1.min(taps.len());
    taps.splice(between..between, forwarders.iter().flat_map(|forwarder| &forwarder.taps));
    taps.into_iter().map(File::try_clone).collect::<Result<_, _>>().what("keep radios")
}

/// The radio between stations that have one.
fn start_emulator(
    scenario: &Scenario,
    run: &Run,
    split: QueueSplit,
    radios: Vec<File>,
) -> Result<Option<Emulator>, LabError> {
    if radios.is_empty() {
        return Ok(None);
    }
    let mut medium = medium_config(scenario, run, scenario.seed);
    medium.queue_frames = split.medium;
    Emulator::start(medium, radios).map(Some)
}

fn describe_load(row: &mut Row, outcome: &Outcome) {
    row.set_sides(outcome.sides.clone(), outcome.delays);
    row.pings = outcome.pings.clone();
    row.beside = outcome.beside.clone();
    row.notes.extend(outcome.notes.iter().cloned());
    if outcome.corrupted {
        row.distrust("what was received is not what was sent");
    }
}

fn describe_air(row: &mut Row, report: &Report, outcome: &Outcome) {
    row.realtime = Some(report.realtime);
    row.air_utilisation = Some(report.utilisation());
    if outcome.payload_bytes > 0.0 {
        row.air_bytes_per_byte = Some(report.bytes() as f64 / outcome.payload_bytes);
    }
    if let Some(packets) = row.packets_received.filter(|&packets| packets > 0)
        && row.transport == Transport::Udp
    {
        row.air_frames_per_packet = Some(report.frames() as f64 / packets as f64);
    }
    if !report.realtime {
        row.notes.push("the emulator had no real-time scheduling".to_owned());
    }
    if report.refused > 0 {
        row.distrust(format!("{} frames were refused by a radio", report.refused));
    }
    if report.lateness.is_empty() {
        return;
    }
    let late = Duration::from_nanos(report.lateness.value_at_quantile(0.99));
    row.lateness_p99_s = Some(late.as_secs_f64());
    if late > LATENESS_MAX {
        row.distrust(format!(
            "the emulator was {:.1} ms late at the 99th percentile, more than {} ms",
            late.as_secs_f64() * 1e3,
            LATENESS_MAX.as_millis()
        ));
    }
}

fn describe_nodes(row: &mut Row, run: &Run, reports: &[NodeReport]) {
    for report in reports {
        row.cpu_s.insert(report.name.to_owned(), report.cpu.as_secs_f64());
        if report.counts.is_none() {
            row.distrust(format!("node {} left no counters", report.name));
        }
    }
    let ends: &[usize] = match run.direction {
        Direction::Forward => &[SOURCE],
        Direction::Both => &[SOURCE, DESTINATION],
    };
    let encoders: Vec<_> = ends.iter().filter_map(|&end| counts_of(reports, NAMES[end])).collect();
    let helper = counts_of(reports, NAMES[HELPER]);
    row.set_coding(&encoders, helper.as_ref(), run.coding.resolve().block_size);
}
