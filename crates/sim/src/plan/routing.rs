//! Route discovery in a plan's network: settings, routes found beforehand, metrics.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use corridor_air::radio::{Fading, MacConfig};
use corridor_air::wpan::WpanConfig;
use corridor_base::Time;
use corridor_scenario::{Measures, RouteTable, RoutingMetric, RoutingTable};

use crate::agents::source::FlowEnd;
use crate::aodv::{AodvConfig, AodvStats, Metric};
use crate::core::agent::{Agent, Body, NodeIndex, Packet};
use crate::core::network::{AirConfig, Network, RouteLinks, Topology};
use crate::plan::SimError;

/// Time for route discovery beforehand: longer than until the first reply, so that better routes
/// are found too.
const BEFOREHAND: Duration = Duration::from_secs(30);

/// The settings that a table describes.
pub(super) fn config(table: &RoutingTable) -> AodvConfig {
    let metric = match table.metric {
        RoutingMetric::HopCount => Metric::HopCount,
        RoutingMetric::PathDr => Metric::PathDr,
    };
    let of = AodvConfig::new(metric);
    let span = |s: f64| Duration::from_nanos((s * 1e9).round() as u64);
    let mut config = AodvConfig {
        jitter_max: table.jitter_ms.map_or(of.jitter_max, |ms| span(ms / 1e3)),
        discovery_wait: table.discovery_wait_s.map_or(of.discovery_wait, span),
        discovery_limit: table.discovery_limit_s.map_or(of.discovery_limit, span),
        ..of
    };
    config.curve.half_lqi = table.half_lqi.unwrap_or(config.curve.half_lqi);
    config.curve.scale_lqi = table.scale_lqi.unwrap_or(config.curve.scale_lqi);
    config
}

/// Rejects a flow whose ends are not connected by links.
pub(super) fn check_reachable(
    topology: &Topology,
    ends: &[(usize, usize)],
    seed: u64,
) -> Result<(), SimError> {
    let mut network = Network::new(topology, seed, 0)?;
    for (flow, &(from, to)) in ends.iter().enumerate() {
        let is_way = |network: &mut Network, from: usize, to: usize| {
            network.route(from as NodeIndex, to as NodeIndex).is_some()
        };
        if !is_way(&mut network, from, to) {
            return Err(SimError::NoRoute { flow, from, to });
        }
        if !is_way(&mut network, to, from) {
            return Err(SimError::NoRoute { flow, from: to, to: from });
        }
    }
    Ok(())
}

/// Most networks whose routes [`Beforehand`] remembers.
const NETWORKS_MAX: usize = 64;

/// Finds routes beforehand, and remembers them: points of a plan mostly differ in what routes do
/// not depend on.
#[derive(Debug, Default)]
pub struct Beforehand(Mutex<VecDeque<Known>>);

/// The routes that were found in a network.
#[derive(Debug)]
struct Known {
    quiet: Topology,
    config: AodvConfig,
    seed: u64,
    /// By flow and its ends.
    paths: BTreeMap<(usize, usize, usize), Vec<usize>>,
}

impl Beforehand {
    /// The routes that the protocol finds without other traffic and with links at their mean power.
    /// Uses the standard's MAC whatever variant is studied, so that variants under comparison have
    /// the same routes.
    pub(super) fn routes(
        &self,
        topology: &Topology,
        config: AodvConfig,
        ends: &[(usize, usize)],
        seed: u64,
    ) -> Result<Vec<RouteTable>, SimError> {
        let quiet = quiet(topology);
        let is_same =
            |known: &Known| known.seed == seed && known.config == config && known.quiet == quiet;
        let paths = self.known().iter().find(|known| is_same(known)).map(|k| k.paths.clone());
        let mut paths = paths.unwrap_or_default();
        let before = paths.len();
        let mut routes = Vec::new();
        for (flow, &(from, to)) in ends.iter().enumerate() {
            let path = match paths.get(&(flow, from, to)) {
                Some(path) => path.clone(),
                None => found(&quiet, config, (flow, from, to), seed)?,
            };
            paths.insert((flow, from, to), path.clone());
            routes.push(RouteTable { path, radios: None, both_ways: true });
        }
        if paths.len() > before {
            let mut known = self.known();
            known.retain(|known| !is_same(known));
            if known.len() >= NETWORKS_MAX {
                known.pop_front();
            }
            known.push_back(Known { quiet, config, seed, paths });
        }
        Ok(routes)
    }

    /// What is known, even after a thread panicked: it is always consistent.
    fn known(&self) -> MutexGuard<'_, VecDeque<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The network with all links at their mean power, and the standard's MAC.
fn quiet(topology: &Topology) -> Topology {
    let mut quiet = topology.clone();
    for site in &mut quiet.radios {
        if let AirConfig::Mac(medium) = &mut site.air {
            medium.radio.fading = Fading::None;
            if let MacConfig::Wpan(mac) = &mut medium.mac {
                *mac = WpanConfig { header_bytes: mac.header_bytes, ..WpanConfig::default() };
            }
        }
    }
    quiet
}

/// The nodes of the route that a flow finds in a network without other traffic.
fn found(
    quiet: &Topology,
    config: AodvConfig,
    (flow, from, to): (usize, usize, usize),
    seed: u64,
) -> Result<Vec<usize>, SimError> {
    let mut network = Network::new(quiet, seed, 0)?;
    network.set_routing(config, seed, 0)?;
    let (end, _) = FlowEnd::pair(flow as u32, from as NodeIndex, to as NodeIndex);
    network.add_agent(end.node, end.flow, Probe { end, sent: 0, due: false })?;
    network.run_until(Time::ZERO + BEFOREHAND);
    let route = network.route(end.node, end.peer);
    let route = route.ok_or(SimError::NoRoute { flow, from, to })?;
    Ok(route.into_iter().map(|node| node as usize).collect())
}

/// Packets sent to probe a route beforehand, and the interval between them.
const PROBES: u64 = 3;
const PROBE_INTERVAL: Duration = Duration::from_secs(10);

/// Sends a packet from time to time, so that a missing route is discovered.
struct Probe {
    end: FlowEnd,
    sent: u64,
    due: bool,
}

impl Agent for Probe {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Time) {
        self.due = true;
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        let is_due = core::mem::take(&mut self.due);
        self.sent += u64::from(is_due);
        is_due.then(|| self.end.packet(1, Body::Bytes([0].into())))
    }

    fn poll_timeout(&self) -> Option<Time> {
        (self.sent < PROBES).then(|| Time::ZERO + PROBE_INTERVAL * self.sent as u32)
    }
}

/// Sets the metrics of a flow's routes.
pub(super) fn set_flow(measures: &mut Measures, flow: usize, network: &mut Network, end: FlowEnd) {
    let links = match network.route_links(end.flow, end.node) {
        Some(RouteLinks { packets, links }) => (packets > 0).then(|| links as f64 / packets as f64),
        None => network.route(end.node, end.peer).map(|route| (route.len() - 1) as f64),
    };
    measures.set_flow(flow, "route_links_mean", links);
}

/// Counters of all routers of a network together, if there are any.
pub(super) fn of_routers(network: &Network, nodes: usize) -> Option<AodvStats> {
    let routers = (0..nodes as NodeIndex).filter_map(|node| network.router_stats(node));
    routers.copied().reduce(|sum, stats| sum.with(stats, u64::saturating_add))
}

/// Sets the metrics of all routers together.
pub(super) fn set(measures: &mut Measures, stats: &AodvStats) {
    let found_after_s = stats.found_after_ns as f64 / 1e9 / stats.found as f64;
    measures.set("route_discoveries", stats.discoveries);
    measures.set("routes_found", stats.found);
    measures.set("route_found_s", (stats.found > 0).then_some(found_after_s));
    measures.set("route_requests", stats.requests);
    measures.set("route_replies", stats.replies);
    measures.set("route_errors", stats.errors);
    measures.set("links_lost", stats.links_lost);
}
