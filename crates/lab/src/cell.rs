//! A plan's network in real time, with the plan's flows carried by the kernels' own TCP and UDP.
//! `cell/wires.rs` runs networks of links. In a network of radios, each node has a namespace whose
//! interface is a radio with a standard's MAC:
//!
//! 1. The plan is checked and resolved: the kernels' flows, and the next hops.
//! 2. Each node gets a namespace; the kernels forward, or relays do (`[network.relay]`).
//! 3. The emulator runs the radios' events, each at its own virtual time, and hands over a received
//!    frame when the clock reaches its time.
//! 4. The load is measured, and gives the metrics that a simulation of the plan has.

mod host;
mod order;
mod routes;
mod wires;

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use corridor_air::radio::{RadioMedium, RadioMediumConfig};
use corridor_proto::{RelayCounters, RelayTable};
use corridor_scenario::{Air, DURATION_S_MAX, Delays, Measures, Network, Side, fairness};

use crate::emulator::{Cell, Emulator, Report};
use crate::error::{Context, LabError};
use crate::load::{self, End, Outcome, Times};
use crate::node::{INNER_SUBNET, NodeReport, Nodes, RelayNode};
use crate::outcomes::Outcomes;
use crate::priority;
use crate::run::{AIR, LATENESS_MAX, Options, WAIT_RATIO_MAX};
use crate::scratch::Scratch;
use crate::station::{self, Station};
use crate::waiting::Watched;
use order::Orders;
use routes::Routes;

/// Most nodes of a network in the lab: each is a namespace, and with relays a process.
pub const NETWORK_NODES_MAX: usize = 8;
/// Frames of a relay that its MAC has: one on the air and one behind it, as in the simulator. The
/// others wait in the relay, where they may still find a partner.
const RELAY_MAC_FRAMES: usize = 2;
/// Names of nodes, for display.
const NAMES: [&str; NETWORK_NODES_MAX] = ["N0", "N1", "N2", "N3", "N4", "N5", "N6", "N7"];

/// What a replication of a network measured in the lab.
#[derive(Clone, Debug)]
pub struct NetworkRun {
    /// In the columns of a simulation of the same plan; those that only a simulator can know are
    /// absent.
    pub measures: Measures,
    /// How late the medium handed frames over, 99th percentile, seconds.
    pub lateness_p99_s: Option<f64>,
    /// Whether nothing speaks against the metrics.
    pub valid: bool,
    /// Remarks about the run.
    pub notes: Vec<String>,
}

/// Checks that the lab can run a plan's network.
///
/// # Errors
/// [`LabError::Plan`] with the setting that the lab does not support.
pub fn check_network(network: &Network) -> Result<(), LabError> {
    let duration_s = network.duration.as_secs_f64();
    if duration_s > DURATION_S_MAX {
        return Err(refused("duration_s", duration_s, format!("at most {DURATION_S_MAX} s")));
    }
    if network.until_done {
        return Err(refused("until_done", true, "false"));
    }
    if network.radios.is_empty() {
        return wires::check(network);
    }
    let radio = radio_of(network)?;
    if !(2..=NETWORK_NODES_MAX).contains(&network.nodes) {
        let expected = format!("2 to {NETWORK_NODES_MAX}");
        return Err(refused("network.nodes", network.nodes, expected));
    }
    if !network.links.is_empty() || !network.tunnels.is_empty() {
        let field = if network.links.is_empty() { "network.tunnel" } else { "network.link" };
        return Err(refused(field, "a table", "nothing: the lab's nodes have a radio alone"));
    }
    if network.routing.is_some() {
        let expected = "nothing: routes are those with the fewest links, or said";
        return Err(refused("network.routing", "a table", expected));
    }
    Orders::of(network, radio.mac.payload_bytes_max() as usize, (0, 0)).map(|_| ())
}

fn refused(field: &str, given: impl ToString, expected: impl Into<String>) -> LabError {
    LabError::Plan { field: field.to_owned(), given: given.to_string(), expected: expected.into() }
}

fn radio_of(network: &Network) -> Result<&RadioMediumConfig, LabError> {
    match network.air() {
        Some(Air::Mac(config)) => Ok(config),
        Some(Air::Ideal(_)) => Err(refused("network.radio.mac", "ideal", "dcf or 802.15.4")),
        None => Err(refused("network.radio", "a list", "one radio, that all nodes have")),
    }
}

/// Estimate of how long a replication takes, for display.
pub fn network_time_needed(network: &Network) -> Duration {
    network.duration + load::DRAIN_MAX + Duration::from_secs(1)
}

/// Runs a replication of a plan's network in real time. Call [`crate::prepare`] first. The calling
/// thread must stay alive, since relays die with it. Ends early when `stop` is set.
///
/// # Errors
/// See [`LabError`], and [`check_network`].
pub fn run_network(
    network: &Network,
    (seed, replication): (u64, u64),
    options: &Options,
    stop: &AtomicBool,
) -> Result<NetworkRun, LabError> {
    check_network(network)?;
    if network.radios.is_empty() {
        return wires::run(network, (seed, replication), stop);
    }
    let radio = radio_of(network)?;
    let packet_bytes_max = radio.mac.payload_bytes_max() as usize;
    let orders = Orders::of(network, packet_bytes_max, (seed, replication))?;
    let mut config = radio.clone();
    (config.radio.seed, config.radio.replication) = (seed, replication);
    if network.relay.is_some() {
        config.queue_frames = RELAY_MAC_FRAMES;
        // Relays have to overhear.
        config.radio.stations.iter_mut().for_each(|station| station.promiscuous = true);
    }
    let medium = RadioMedium::<Arc<[u8]>>::new(&config)?;
    let routes = Routes::new(network, &medium.reaches(&config));
    routes.check(network)?;

    let _raised = priority::raise_stations(corridor_scenario::Wire::Radio);
    let hosts = host::Hosts { network, orders: &orders, routes: &routes };
    let stations = hosts.make(&config)?;
    let radios = stations.iter().filter_map(|station| station.tap.as_ref());
    let radios = radios.map(File::try_clone).collect::<Result<_, _>>().what("keep radios")?;
    let relays = network.relay.as_ref().map(RelayTable::from);
    let scratch = Scratch::new()?;
    let (paths, files) = match &relays {
        Some(_) => outcome_files(&scratch, stations.len())?,
        None => Default::default(),
    };
    let outcomes = Outcomes::new(files);
    let cell = Cell { medium, drops: relays.is_none(), outcomes };
    let emulator = Emulator::start_cell(cell, radios)?;
    let mut nodes = match &relays {
        Some(table) => {
            let relays: Vec<RelayNode<'_>> =
                stations.iter().map(|station| hosts.relay(station, table)).collect();
            Some(Nodes::start_relays(&options.binary, (scratch, &paths), &relays)?)
        }
        None => None,
    };
    if let Some(nodes) = &mut nodes {
        for (from, to) in orders.pairs() {
            nodes.wait_until_crossed((&stations[from], &stations[to]), stop)?;
        }
    }
    let end = |station: &Station| End {
        namespace: station.namespace.clone(),
        address: station::address(INNER_SUBNET, station.index),
    };
    let ends: Vec<End> = stations.iter().map(end).collect();
    let times = Times { warm_up: network.warm_up, measured: measured(network) };
    let mut watched = nodes.as_ref().map(Nodes::watched).unwrap_or_default();
    watched.add_thread(AIR, emulator.thread_id());
    let carriers: (Watched, Option<&Emulator>) = (watched, Some(&emulator));
    let outcome = load::carry_flows(&orders.flows, &ends, times, carriers, stop)?;
    let drops = stations.iter().map(Station::radio_drops).sum::<Result<u64, _>>()?;
    let reports = nodes.map(Nodes::stop).transpose()?;
    let report = emulator.finish()?;
    let mut run = describe(&outcome, &report, times.measured);
    report.on_air().set(&mut run.measures, report.span().as_secs_f64());
    run.measures.set("packets_dropped", report.refused_by_macs());
    if relays.is_none() && drops > 0 {
        run.notes.push(format!("{drops} frames did not find room on their way to a radio"));
    }
    if let Some(reports) = &reports {
        run.describe_relays(reports);
    }
    Ok(run)
}

/// The files from which relays read the outcomes of their frames.
fn outcome_files(
    scratch: &Scratch,
    stations: usize,
) -> Result<(Vec<PathBuf>, Vec<File>), LabError> {
    let paths: Vec<PathBuf> =
        NAMES[..stations].iter().map(|name| scratch.file(&format!("{name}.retries"))).collect();
    let files = paths.iter().map(File::create).collect::<Result<_, _>>();
    Ok((paths, files.what("make files for what became of frames")?))
}

/// Length of the measured interval.
fn measured(network: &Network) -> Duration {
    network.duration.saturating_sub(network.warm_up)
}

fn describe(outcome: &Outcome, report: &Report, measured: Duration) -> NetworkRun {
    let mut measures = Measures::default();
    let goodputs: Vec<f64> = outcome.sides.iter().map(|side| side.goodput_bps).collect();
    measures.set("goodput_bps", goodputs.iter().sum::<f64>());
    measures.set("fairness_ratio", fairness(&goodputs));
    for (flow, side) in outcome.sides.iter().enumerate() {
        set_flow(&mut measures, flow, side);
    }
    let mut run =
        NetworkRun { measures, lateness_p99_s: None, valid: true, notes: outcome.notes.clone() };
    if outcome.corrupted {
        run.distrust("what was received is not what was sent".to_owned());
    }
    run.describe_air(report);
    run.describe_processors(outcome, measured);
    run
}

fn set_flow(measures: &mut Measures, flow: usize, side: &Side) {
    let Delays { delay_p50_s, delay_p95_s, delay_max_s, .. } = side.delays;
    measures.set_flow(flow, "goodput_bps", side.goodput_bps);
    measures.set_flow(flow, "delay_p50_s", delay_p50_s);
    measures.set_flow(flow, "delay_p95_s", delay_p95_s);
    measures.set_flow(flow, "delay_max_s", delay_max_s);
    measures.set_flow(flow, "packets_sent", side.packets_sent);
    measures.set_flow(flow, "packets_received", side.packets_received);
    let lost = side.packets_sent.zip(side.packets_received).filter(|&(sent, _)| sent > 0);
    let lost = lost.map(|(sent, received)| 1.0 - received as f64 / sent as f64);
    measures.set_flow(flow, "packet_loss_ratio", lost);
    measures.set_flow(flow, "packets_retransmitted", side.packets_retransmitted);
    measures.set_flow(flow, "srtt_s", side.srtt_s);
    measures.set_flow(flow, "cwnd_mean_packets", side.cwnd_mean_packets);
}

impl NetworkRun {
    fn distrust(&mut self, why: String) {
        self.valid = false;
        self.notes.push(why);
    }

    fn describe_air(&mut self, report: &Report) {
        if !report.realtime {
            self.notes.push("the emulator had no real-time scheduling".to_owned());
        }
        if report.refused > 0 {
            self.distrust(format!("{} frames were refused by a radio", report.refused));
        }
        if report.lateness.is_empty() {
            return;
        }
        let late = Duration::from_nanos(report.lateness.value_at_quantile(0.99));
        self.lateness_p99_s = Some(late.as_secs_f64());
        if late > LATENESS_MAX {
            self.distrust(format!(
                "the emulator was {:.1} ms late at the 99th percentile, more than {} ms",
                late.as_secs_f64() * 1e3,
                LATENESS_MAX.as_millis()
            ));
        }
    }

    /// As for runs of scenarios: time spent waiting for processors is not caused by the medium.
    fn describe_processors(&mut self, outcome: &Outcome, measured: Duration) {
        let most = WAIT_RATIO_MAX * measured.as_secs_f64();
        for (name, spent) in outcome.spent.iter().filter(|(name, _)| **name != AIR) {
            let waited = spent.waited.as_secs_f64();
            if waited > most {
                self.distrust(format!(
                    "{name} waited for a processor {waited:.2} s, more than {most:.2} s"
                ));
            }
        }
    }

    /// Counters of all relays since they were started.
    fn describe_relays(&mut self, reports: &[NodeReport]) {
        for report in reports.iter().filter(|report| report.relay.is_none()) {
            self.distrust(format!("node {} left no counters ({})", report.name, report.ending));
        }
        let relays: Vec<RelayCounters> = reports.iter().filter_map(|report| report.relay).collect();
        let mut set = |name: &str, of: fn(&RelayCounters) -> u64| {
            self.measures.set(name, relays.iter().map(of).sum::<u64>());
        };
        set("relay_frames_plain", |relay| relay.relay_frames_plain);
        set("relay_frames_coded", |relay| relay.relay_frames_coded);
        set("relay_packets_forwarded", |relay| relay.relay_packets_forwarded);
        set("relay_packets_recoded", |relay| relay.relay_packets_recoded);
        set("relay_packets_decoded", |relay| relay.relay_packets_decoded);
        set("relay_decode_failures", |relay| relay.relay_decode_failures);
        set("relay_packets_resent", |relay| relay.relay_packets_resent);
        set("relay_repairs_sent", |relay| relay.relay_repairs_sent);
        set("relay_packets_repaired", |relay| relay.relay_packets_repaired);
        set("relay_segments_late", |relay| relay.relay_segments_late);
        set("relay_segments_late_us", |relay| relay.relay_segments_late_us);
        set("relay_segments_held", |relay| relay.relay_segments_held);
        set("relay_segments_held_us", |relay| relay.relay_segments_held_us);
        set("relay_segments_overdue", |relay| relay.relay_segments_overdue);
        set("relay_queue_drops", |relay| relay.relay_queue_drops);
        set("relay_codel_drops", |relay| relay.relay_codel_drops);
        set("relay_switched_off", |relay| relay.relay_switched_off);
        set("relay_congested_s", |relay| relay.relay_congested_s);
    }
}
