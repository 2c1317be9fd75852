//! Tunnels of a plan's network: Corridor's stations at two nodes, their frames over UDP from hop to
//! hop, and the agents of flows behind them.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{LinkErrors, Role, Station, StationConfig, StationId, Stats};
use corridor_scenario::{
    Air, ETHERNET_MTU, FLOWS_MAX, Measures, Network as NetworkPlan, TunnelTable,
};

use super::tunnel::PSK;
use crate::agents::source::FlowEnd;
use crate::agents::stamped::UDP_HEADERS_LEN;
use crate::agents::tunnel_end::TunnelEnd;
use crate::core::agent::NodeIndex;
use crate::core::network::{AgentIndex, Network};
use crate::plan::SimError;

/// Numbers of the tunnels' own flows, behind those of the plan's.
const FIRST_FLOW: u32 = FLOWS_MAX as u32;

/// Stations that greet each other by frames for all, which nobody sends again, begin within this
/// time of each other: a hundred times as long as such a frame is on the air at 1 Mbit/s.
const START_SPREAD: Duration = Duration::from_millis(100);
/// The station of a tunnel that is its helper, behind both ends.
const HELPER: usize = 2;

/// A tunnel, understood.
#[derive(Clone, Debug)]
pub(super) struct Tunnel {
    number: u32,
    /// Where its stations are: both ends, and the helper if it has one.
    nodes: Vec<NodeIndex>,
    stations: Vec<StationConfig>,
    /// Longest packet that crosses.
    pub(super) mtu: usize,
}

impl Tunnel {
    /// Understands the tunnels of a plan.
    pub(super) fn of(plan: &NetworkPlan, seed: u64) -> Result<Vec<Self>, SimError> {
        // Whatever the way, each radio has room for the frames.
        let room = plan.radios.iter().map(|cell| match &cell.air {
            Air::Mac(config) => config.mac.payload_bytes_max() as usize,
            Air::Ideal(_) => ETHERNET_MTU,
        });
        let room = room.fold(ETHERNET_MTU, usize::min);
        let tunnels = (0..).zip(&plan.tunnels);
        tunnels.map(|(number, table)| Tunnel::new(number, table, room, seed)).collect()
    }

    fn new(number: u32, table: &TunnelTable, room: usize, seed: u64) -> Result<Self, SimError> {
        let coding = table.coding.clone().unwrap_or_default();
        // The unreliable forwarder has the queue of blocks: first in, first out.
        let coding = coding.resolve(table.plain || table.helper.is_some());
        let id = |index: usize| StationId(index as u16 + 1);
        // With a helper there is no UDP: see `place`.
        let headers_len = if table.helper.is_some() { 0 } else { UDP_HEADERS_LEN };
        let station = |index: usize| {
            let role = match (index, table.plain) {
                (HELPER, _) => Role::Helper { between: (id(0), id(1)) },
                (end, true) => Role::Plain { peer: id(1 - end) },
                (end, false) => {
                    Role::Endpoint { peer: id(1 - end), helper: table.helper.map(|_| id(HELPER)) }
                }
            };
            let ingress_packets =
                table.ingress_packets.unwrap_or_else(|| coding.ingress_packets_default());
            StationConfig {
                id: id(index),
                role,
                security: PSK.into(),
                link_errors: LinkErrors::Measured,
                ingress_packets,
                coding,
                frame_len_max: room.saturating_sub(headers_len),
                frame_len_min: 0,
                memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
                rate_bps: None,
            }
        };
        let nodes = table.between.into_iter().chain(table.helper);
        let nodes: Vec<_> = nodes.map(|node| node as NodeIndex).collect();
        let stations = (0..nodes.len()).map(station).collect();
        let mut tunnel = Tunnel { number, nodes, stations, mtu: 0 };
        tunnel.mtu = tunnel.station(0, seed, 0)?.tunnel_mtu();
        Ok(tunnel)
    }

    fn station(&self, index: usize, seed: u64, replication: u64) -> Result<Station, SimError> {
        let number = u64::from(self.number);
        let (entity, purpose) = match index {
            HELPER => (number, "helper entropy"),
            end => (number << 1 | end as u64, "entropy"),
        };
        let key = StreamKey { seed, replication, entity, purpose };
        let mut entropy = [0; 32];
        key.stream().fill_bytes(&mut entropy);
        Ok(Station::new(self.stations[index].clone(), entropy, Time::ZERO)?)
    }

    /// Both ends, that have no agents behind them yet, and the helper.
    pub(super) fn ends(&self, seed: u64, replication: u64) -> Result<Vec<TunnelEnd>, SimError> {
        let end = |index: usize| {
            let (here, _) = FlowEnd::pair(
                FIRST_FLOW + self.number,
                self.nodes[index],
                self.nodes[usize::from(index == 0)],
            );
            let station = self.station(index, seed, replication)?;
            let nodes = self.nodes.iter().zip(&self.stations);
            let peers = nodes.map(|(&node, station)| (station.id, node)).collect();
            let end = TunnelEnd::new(station, here).among(peers, self.has_helper());
            Ok(if self.has_helper() {
                end.starting_at(self.start(index, seed, replication))
            } else {
                end
            })
        };
        (0..self.nodes.len()).map(end).collect()
    }

    /// When a station begins.
    fn start(&self, index: usize, seed: u64, replication: u64) -> Time {
        let entity = u64::from(self.number) << 2 | index as u64;
        let key = StreamKey { seed, replication, entity, purpose: "tunnel start" };
        let share = f64::from(key.stream().next_u32()) / 4_294_967_296.0;
        Time::ZERO + START_SPREAD.mul_f64(share)
    }

    /// Whether its stations overhear what goes between others.
    pub(super) fn has_helper(&self) -> bool {
        self.nodes.len() > HELPER
    }

    /// Where its stations are.
    pub(super) fn nodes(&self) -> &[NodeIndex] {
        &self.nodes
    }

    /// Which end of it is at a node.
    pub(super) fn side(&self, node: NodeIndex) -> usize {
        usize::from(self.nodes[0] != node)
    }

    /// Puts the ends on their nodes, and the helper.
    pub(super) fn place(
        &self,
        ends: Vec<TunnelEnd>,
        network: &mut Network,
    ) -> Result<Vec<AgentIndex>, SimError> {
        if self.has_helper() {
            self.check_reach(network)?;
        }
        let flow = FIRST_FLOW + self.number;
        let mut placed = Vec::new();
        for (index, end) in ends.into_iter().enumerate() {
            let agent = network.add_agent(self.nodes[index], flow, end)?;
            network.pace(agent, self.nodes[usize::from(index == 0)]);
            if self.has_helper() {
                network.overhear(agent);
            }
            placed.push(agent);
        }
        Ok(placed)
    }

    /// Refuses a helper where not all of a tunnel's stations send to each other right over one
    /// radio: something would go where it is not overheard.
    fn check_reach(&self, network: &mut Network) -> Result<(), SimError> {
        let first = network.radio_to(self.nodes[0], self.nodes[1]);
        for &from in &self.nodes {
            for &to in self.nodes.iter().filter(|&&to| to != from) {
                let radio = network.radio_to(from, to);
                if radio.is_none() || radio != first {
                    let tunnel = self.number as usize;
                    let (from, to) = (from as usize, to as usize);
                    return Err(SimError::HelperReach { tunnel, from, to });
                }
            }
        }
        Ok(())
    }
}

/// What the stations of all tunnels did since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TunnelStats {
    frames_sent: u64,
    bytes_sent: u64,
    packets_delivered: u64,
    symbols_repaired: u64,
}

impl TunnelStats {
    /// The sum of stations.
    pub(super) fn of<'a>(stations: impl Iterator<Item = &'a Station>) -> Self {
        stations.map(Station::stats).fold(TunnelStats::default(), |sum, stats| {
            let &Stats { frames_sent, bytes_sent, packets_delivered, symbols_repaired, .. } = stats;
            TunnelStats {
                frames_sent: sum.frames_sent + frames_sent,
                bytes_sent: sum.bytes_sent + bytes_sent,
                packets_delivered: sum.packets_delivered + packets_delivered,
                symbols_repaired: sum.symbols_repaired + symbols_repaired,
            }
        })
    }

    /// What has been added since `before`.
    pub(super) fn since(self, before: TunnelStats) -> Self {
        TunnelStats {
            frames_sent: self.frames_sent - before.frames_sent,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            packets_delivered: self.packets_delivered - before.packets_delivered,
            symbols_repaired: self.symbols_repaired - before.symbols_repaired,
        }
    }

    /// Sets the measures of tunnels.
    pub(super) fn set(self, measures: &mut Measures) {
        measures.set("tunnel_frames_sent", self.frames_sent);
        measures.set("tunnel_bytes_sent", self.bytes_sent);
        measures.set("tunnel_packets_delivered", self.packets_delivered);
        measures.set("tunnel_symbols_repaired", self.symbols_repaired);
    }
}
