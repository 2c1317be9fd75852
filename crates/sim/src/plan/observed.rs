//! What is sampled in a plan's network during a run, and counters of the whole network.

use std::collections::BTreeMap;

use corridor_proto::Station;
use corridor_relay::RelayStats;
use corridor_relay::in_order::InOrderStats;
use corridor_scenario::{Measures, Network as NetworkPlan, OnAir};

use crate::agents::tunnel_end::TunnelEnd;
use crate::aodv::AodvStats;
use crate::core::agent::NodeIndex;
use crate::core::network::{AgentIndex, FrameCounts, Network, NetworkStats};
use crate::plan::course::{Observed, QueueSeen};
use crate::plan::meter::Meter;
use crate::plan::routing;
use crate::plan::seen::FlowSeen;
use crate::plan::tunnels::TunnelStats;

/// What is sampled in a plan's network: its flows, and the queues of its links and radios.
pub(super) struct Subjects<'a> {
    pub(super) meters: &'a [Meter],
    pub(super) plan: &'a NetworkPlan,
    pub(super) tunnel_ends: &'a [AgentIndex],
}

impl Observed for Subjects<'_> {
    fn flows(&self, network: &Network) -> Vec<FlowSeen> {
        self.meters.iter().map(|meter| meter.seen(network)).collect()
    }

    fn queues(&self, network: &Network) -> Vec<QueueSeen> {
        let pipes = self.plan.links.iter().filter_map(|link| {
            let (from, to) = (link.from as NodeIndex, link.to as NodeIndex);
            let interface = network.pipe_interface(from, to)?;
            Some(QueueSeen { from, to: Some(to), interface })
        });
        let places = self.plan.radios.iter().enumerate().flat_map(|(radio, cell)| {
            cell.nodes.iter().enumerate().map(move |(place, &node)| QueueSeen {
                from: node as NodeIndex,
                to: None,
                interface: network.interface(radio, place),
            })
        });
        pipes.chain(places).collect()
    }

    fn frames(&self, network: &Network) -> Vec<(NodeIndex, FrameCounts)> {
        let mut frames = BTreeMap::<usize, FrameCounts>::new();
        for (radio, cell) in self.plan.radios.iter().enumerate() {
            for (place, &node) in cell.nodes.iter().enumerate() {
                let counts = network.frame_counts(radio, place);
                let sum = frames.get(&node).map_or(counts, |before| before.and(counts));
                frames.insert(node, sum);
            }
        }
        frames.into_iter().map(|(node, counts)| (node as NodeIndex, counts)).collect()
    }

    fn stations<'n>(&self, network: &'n Network) -> Vec<&'n Station> {
        stations(network, self.tunnel_ends).collect()
    }
}

/// The stations of tunnels.
fn stations<'n>(network: &'n Network, ends: &[AgentIndex]) -> impl Iterator<Item = &'n Station> {
    ends.iter().filter_map(|&end| network.agent::<TunnelEnd>(end)).map(TunnelEnd::station)
}

/// Counters of the whole network.
pub(super) struct Totals {
    refused: u64,
    erased: u64,
    packet_hops: u64,
    events: u64,
    corrupted: u64,
    on_air: Option<OnAir>,
    tunnels: Option<TunnelStats>,
    relays: Option<RelayStats>,
    in_order: InOrderStats,
    routers: Option<AodvStats>,
}

/// Counters of all relays of a network together.
fn of_relays(network: &Network) -> Option<RelayStats> {
    network.relays_stats().reduce(|sum, stats| sum.with(stats, u64::saturating_add))
}

/// Counters of in-order delivery at all relays' nodes together.
fn of_in_order(network: &Network) -> InOrderStats {
    let sum = |sum: InOrderStats, stats| sum.with(stats, u64::saturating_add);
    network.in_order_stats().fold(InOrderStats::default(), sum)
}

fn set_in_order(stats: &InOrderStats, measures: &mut Measures) {
    measures.set("relay_segments_late", stats.late);
    measures.set("relay_segments_late_us", stats.late_us);
    measures.set("relay_segments_held", stats.held);
    measures.set("relay_segments_held_us", stats.held_us);
    measures.set("relay_segments_overdue", stats.overdue);
}

fn set_relays(stats: &RelayStats, corrupted: u64, measures: &mut Measures) {
    measures.set("relay_frames_plain", stats.plain_sent);
    measures.set("relay_frames_coded", stats.coded_sent);
    measures.set("relay_packets_forwarded", stats.forwarded);
    measures.set("relay_packets_recoded", stats.recoded);
    measures.set("relay_packets_decoded", stats.decoded);
    measures.set("relay_decode_failures", stats.undecodable + stats.decode_mismatches + corrupted);
    measures.set("relay_packets_resent", stats.resent);
    measures.set("relay_repairs_sent", stats.repairs_sent);
    measures.set("relay_packets_repaired", stats.repaired);
    measures.set("relay_queue_drops", stats.queue_drops);
    measures.set("relay_codel_drops", stats.codel_drops);
    measures.set("relay_switched_off", stats.switched_off);
    measures.set("relay_congested_s", stats.congested_s);
}

/// Counters of all places of a network's radios together.
fn on_air(network: &Network, radios: usize) -> Option<OnAir> {
    let of = |radio: usize| match (network.medium(radio), network.mac(radio)) {
        (Some(medium), _) => {
            let places = 0..medium.stations();
            Some(OnAir::of_stations(places.map(|place| medium.stats(place))))
        }
        (_, Some(mac)) => Some(OnAir::of_macs((0..mac.stations()).map(|place| mac.stats(place)))),
        _ => None,
    };
    (0..radios).filter_map(of).reduce(OnAir::and)
}

impl Totals {
    pub(super) fn of(network: &Network, plan: &NetworkPlan, tunnel_ends: &[AgentIndex]) -> Self {
        let NetworkStats { refused, erased, packet_hops, events, corrupted, .. } = *network.stats();
        let (on_air, relays) = (on_air(network, plan.radios.len()), of_relays(network));
        let tunnels =
            (!tunnel_ends.is_empty()).then(|| TunnelStats::of(stations(network, tunnel_ends)));
        let routers = routing::of_routers(network, plan.nodes);
        let in_order = of_in_order(network);
        Totals {
            refused,
            erased,
            packet_hops,
            events,
            corrupted,
            on_air,
            tunnels,
            relays,
            in_order,
            routers,
        }
    }

    pub(super) fn since(&self, before: &Totals) -> Totals {
        Totals {
            refused: self.refused - before.refused,
            erased: self.erased - before.erased,
            packet_hops: self.packet_hops - before.packet_hops,
            events: self.events - before.events,
            corrupted: self.corrupted - before.corrupted,
            on_air: self.on_air.zip(before.on_air).map(|(now, before)| now.since(before)),
            tunnels: self.tunnels.zip(before.tunnels).map(|(now, before)| now.since(before)),
            relays: self
                .relays
                .zip(before.relays)
                .map(|(now, before)| now.with(before, u64::saturating_sub)),
            in_order: self.in_order.with(before.in_order, u64::saturating_sub),
            routers: self
                .routers
                .zip(before.routers)
                .map(|(now, before)| now.with(before, u64::saturating_sub)),
        }
    }

    pub(super) fn set(&self, measures: &mut Measures, measured_s: f64) {
        if let Some(on_air) = self.on_air {
            on_air.set(measures, measured_s);
        }
        if let Some(tunnels) = self.tunnels {
            tunnels.set(measures);
        }
        if let Some(relays) = &self.relays {
            set_relays(relays, self.corrupted, measures);
            set_in_order(&self.in_order, measures);
        }
        if let Some(routers) = &self.routers {
            routing::set(measures, routers);
        }
        measures.set("packets_dropped", self.refused);
        measures.set("packets_erased", self.erased);
        measures.set("packet_hops", self.packet_hops);
        measures.set("events", self.events);
    }
}
