//! A run of a scenario, from its stations to its row.

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::fs::File;
use std::path::PathBuf;

use corridor_scenario::{
    DESTINATION, Direction, ETHERNET_MTU, Engine, HELPER, Path, RelayCounts, Row, Run, SOURCE,
    Scenario, Transport, UnderlayKind, Wire, line_config, medium_config,
};

use crate::emulator::{Emulator, Report};
use crate::error::{Context, LabError};
use crate::external::{Running, Tunnel};
use crate::forwarder::Forwarder;
use crate::load::{self, Course, End, Outcome};
use crate::node::{INNER_SUBNET, NodeReport, Nodes, OUTER_SUBNET, counts_of};
use crate::priority;
use crate::station::{self, NAMES, QueueSplit, RADIO, RadioConfig, Station};
use crate::waiting::Watched;

/// A run is invalid if the 99th percentile of the emulator's lateness is above this.
pub const LATENESS_MAX: Duration = Duration::from_millis(1);
/// A run is invalid if nodes and load waited for processors for a larger share of the measured
/// interval than this: about as long as they ran (docs/decisions/0013-lab-gates.md).
pub const WAIT_RATIO_MAX: f64 = 0.1;
/// From this share on, the processor time taken by a hypervisor explains why a run was late.
const STOLEN_RATIO_TOLD: f64 = 0.005;
/// Name of the emulator's thread in the accounts of processor time.
pub(crate) const AIR: &str = "air";
/// Environment variable that names another program to run as a node.
const BINARY_VARIABLE: &str = "CORRIDOR_BIN";

/// How much the machine disturbed a run: the medium's lateness, or a station's wait for a
/// processor, relative to what is allowed. A run above 1 is invalid.
pub fn spoilage(row: &Row) -> f64 {
    // Without a medium, processors are what is measured, and waiting for them is part of it.
    let Some(late_s) = row.lateness_p99_s else { return 0.0 };
    let wait_s = row.wait_s.values().copied().fold(0.0, f64::max);
    (late_s / LATENESS_MAX.as_secs_f64()).max(wait_s / (WAIT_RATIO_MAX * row.duration_s))
}

/// Whether a run did not get its processors in time, so that repeating it may help.
pub fn is_spoilt(row: &Row) -> bool {
    spoilage(row) > 1.0
}

/// Options of runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The `corridor` program, started as `corridor up` in every station.
    pub binary: PathBuf,
}

impl Options {
    /// The program that the environment variable `CORRIDOR_BIN` names instead of this one.
    pub fn other_binary() -> Option<PathBuf> {
        std::env::var_os(BINARY_VARIABLE).map(PathBuf::from)
    }

    /// This program itself, or the one named by the environment variable `CORRIDOR_BIN`.
    ///
    /// # Errors
    /// [`LabError::System`] if the system does not say which program this is.
    pub fn from_environment() -> Result<Self, LabError> {
        let binary = match Options::other_binary() {
            Some(path) => path,
            None => std::env::current_exe().what("find this program")?,
        };
        Ok(Options { binary })
    }
}

/// Estimate of how long a run takes, for display.
pub fn time_needed(run: &Run) -> Duration {
    let nodes = if run.path == Path::Kernel { 0.1 } else { 0.6 };
    let drain = if run.transport == Transport::Udp { load::DRAIN_MAX } else { Duration::ZERO };
    run.lab.warm_up + drain + Duration::from_secs_f64(run.duration_s + nodes)
}

/// Makes one run. Call [`crate::prepare`] first. The calling thread must stay alive, since the
/// nodes die with it. Ends early when `stop` is set.
///
/// # Errors
/// See [`LabError`]. Losses, connections that are never established and late frames are not errors.
pub fn run(
    scenario: &Scenario,
    run: &Run,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Row, LabError> {
    carry(scenario, run, Way::Own(options), stop)
}

/// Makes one run through an external tunnel, with the load and the radio of a run over the kernel
/// path.
///
/// # Errors
/// See [`run`]; also [`LabError::Tunnel`] for a load that the tunnel does not carry.
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

/// How packets cross the medium.
#[derive(Clone, Copy)]
enum Way<'a> {
    /// As the run says.
    Own(&'a Options),
    External(&'a Tunnel),
}

fn carry(scenario: &Scenario, run: &Run, way: Way<'_>, stop: &AtomicBool) -> Result<Row, LabError> {
    let _raised = priority::raise_stations(run.lab.wire);
    let split = QueueSplit::of(&scenario.medium);
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
    if matches!(way, Way::Own(_)) && run.path == Path::Kernel && scenario.pipes().is_some() {
        // As the simulator's TCP sends on lines: two segments at once would change the pacing.
        let bare = |station: &Station| station.namespace.run(|| station::without_gso(RADIO));
        stations.iter().try_for_each(bare)?;
    }
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
        carriers: watched(nodes.as_ref(), emulator.as_ref()),
    };
    let outcome = load::carry(run, course, emulator.as_ref(), stop)?;
    if let Some((_, running)) = &tunnel {
        running.check_alive()?;
    }
    drop(tunnel);
    let reports = nodes.map(Nodes::stop).transpose()?;
    let radio_drops = [SOURCE, DESTINATION].map(|index| stations[index].radio_drops());
    let report = emulator.map(Emulator::finish).transpose()?;

    let mut row = Row::new(scenario, run, Engine::Lab);
    describe_load(&mut row, &outcome);
    describe_processors(&mut row, run, &outcome);
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
    if let Some(stolen) = row.stolen_ratio.filter(|&ratio| ratio >= STOLEN_RATIO_TOLD)
        && is_spoilt(&row)
    {
        row.notes.push(format!(
            "the hypervisor gave {:.1} % of the processors' time to others",
            100.0 * stolen
        ));
    }
    Ok(row)
}

/// The threads that carry the load.
fn watched(nodes: Option<&Nodes>, emulator: Option<&Emulator>) -> Watched {
    let mut watched = nodes.map(Nodes::watched).unwrap_or_default();
    if let Some(emulator) = emulator {
        watched.add_thread(AIR, emulator.thread_id());
    }
    watched
}

pub(crate) fn make_stations(run: &Run, radio: RadioConfig) -> Result<Vec<Station>, LabError> {
    let stations = match run.lab.wire {
        Wire::Radio => (0..run.stations()).map(|index| Station::new(index, radio)).collect(),
        Wire::Veth => Station::pair(radio).map(Vec::from),
    }?;
    if run.lab.ecn {
        stations.iter().try_for_each(Station::enable_ecn)?;
    }
    Ok(stations)
}

/// The lab's ends of all radios, in the order of the medium: on several hops, from S to D.
pub(crate) fn radios(
    stations: &[Station],
    forwarders: &[Forwarder],
) -> Result<Vec<File>, LabError> {
    let taps = stations.iter().filter_map(|station| station.tap.as_ref());
    let mut taps: Vec<&File> = taps.collect();
    let between = 1.min(taps.len());
    taps.splice(between..between, forwarders.iter().flat_map(|forwarder| &forwarder.taps));
    taps.into_iter().map(File::try_clone).collect::<Result<_, _>>().what("keep radios")
}

/// Starts the emulator between stations that have a radio.
pub(crate) fn start_emulator(
    scenario: &Scenario,
    run: &Run,
    split: QueueSplit,
    radios: Vec<File>,
) -> Result<Option<Emulator>, LabError> {
    if radios.is_empty() {
        return Ok(None);
    }
    if let Some(line) = line_config(scenario, run, scenario.seed, 0) {
        return Emulator::start_line(&line, radios).map(Some);
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

/// Which threads had processors, and which waited for them.
fn describe_processors(row: &mut Row, run: &Run, outcome: &Outcome) {
    let seconds = |time: Duration| time.as_secs_f64();
    let ran: f64 = outcome.spent.values().map(|spent| seconds(spent.ran)).sum();
    row.processors = Some(ran / run.duration_s);
    let stations = outcome.spent.iter().filter(|(name, _)| **name != AIR);
    row.wait_s =
        stations.map(|(name, spent)| ((*name).to_owned(), seconds(spent.waited))).collect();
    row.stolen_ratio = outcome.stolen_ratio;
    // Where processors are what is measured, threads that wait for each other are part of it.
    let most = row.wait_s.iter().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((name, wait_s)) = most
        && run.lab.wire == Wire::Radio
        && *wait_s > WAIT_RATIO_MAX * run.duration_s
    {
        let what = if name == "load" { "the load".to_owned() } else { format!("node {name}") };
        let share = 100.0 * wait_s / run.duration_s;
        let most = 100.0 * WAIT_RATIO_MAX;
        row.distrust(format!(
            "{what} waited for a processor {share:.1} % of the time, more than {most:.0} %"
        ));
    }
}

fn describe_air(row: &mut Row, report: &Report, outcome: &Outcome) {
    row.realtime = Some(report.realtime);
    row.air_utilisation = Some(report.utilisation());
    row.air_drop_ratio = report.drop_ratio();
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
    let late = |quantile| Duration::from_nanos(report.lateness.value_at_quantile(quantile));
    row.lateness_p50_s = Some(late(0.5).as_secs_f64());
    row.lateness_max_s = Some(late(1.0).as_secs_f64());
    let late = late(0.99);
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
            row.distrust(format!("node {} left no counters ({})", report.name, report.ending));
        }
    }
    let ends: &[usize] = match run.direction {
        Direction::Forward => &[SOURCE],
        Direction::Both => &[SOURCE, DESTINATION],
    };
    let encoders: Vec<_> = ends.iter().filter_map(|&end| counts_of(reports, NAMES[end])).collect();
    if run.path == Path::Relay {
        row.relay = Some(RelayCounts::of(reports.iter().filter_map(|report| report.relay)));
    }
    let helper = counts_of(reports, NAMES[HELPER]);
    row.set_coding(&encoders, helper.as_ref(), run.coding_params().block_size);
}

#[cfg(test)]
mod tests {
    use corridor_scenario::expand;

    use super::*;

    #[test]
    fn a_run_is_spoilt_by_a_late_medium_and_by_stations_that_wait() {
        let text = "name = 't'\nseed = 1\n[medium]\nduplex = 'half'\nrate_bps = 12000000\n\
                    rtt_ms = 4\nqueue_frames = 50\n[[run]]\npath = 'kernel'\ntransport = 'tcp'\n\
                    e3 = 0\nduration_s = 8\n";
        let scenario = Scenario::parse(text).unwrap();
        let run = expand(&scenario).unwrap().remove(0);
        let mut row = Row::new(&scenario, &run, Engine::Lab);
        row.wait_s.insert("S".to_owned(), 2.0);
        // Without a medium, waiting is part of what is measured.
        assert_eq!(spoilage(&row), 0.0);
        row.lateness_p99_s = Some(0.000_5);
        assert!((spoilage(&row) - 2.5).abs() < 1e-9 && is_spoilt(&row));
        row.wait_s.insert("S".to_owned(), 0.08);
        assert!((spoilage(&row) - 0.5).abs() < 1e-9 && !is_spoilt(&row));
        row.lateness_p99_s = Some(0.001_1);
        assert!(is_spoilt(&row));
    }
}
