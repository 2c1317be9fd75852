//! Tunnels of a plan's network: Corridor's stations at two nodes, their frames over UDP from hop to
//! hop, and the agents of flows behind them.

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
use crate::core::network::{AgentIndex, Network, NetworkError};
use crate::plan::SimError;

/// Numbers of the tunnels' own flows, behind those of the plan's.
const FIRST_FLOW: u32 = FLOWS_MAX as u32;

/// A tunnel, understood.
#[derive(Clone, Debug)]
pub(super) struct Tunnel {
    number: u32,
    between: [NodeIndex; 2],
    ends: [StationConfig; 2],
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
        let room = room.fold(ETHERNET_MTU, usize::min).saturating_sub(UDP_HEADERS_LEN);
        let tunnels = (0..).zip(&plan.tunnels);
        tunnels.map(|(number, table)| Tunnel::new(number, table, room, seed)).collect()
    }

    fn new(number: u32, table: &TunnelTable, room: usize, seed: u64) -> Result<Self, SimError> {
        let coding = table.coding.clone().unwrap_or_default();
        // The unreliable forwarder has the queue of blocks: first in, first out.
        let coding = coding.resolve(table.plain);
        let end = |index: u16| {
            let (id, peer) = (StationId(index + 1), StationId(2 - index));
            let ingress_packets =
                table.ingress_packets.unwrap_or_else(|| coding.ingress_packets_default());
            StationConfig {
                id,
                role: match table.plain {
                    true => Role::Plain { peer },
                    false => Role::Endpoint { peer, helper: None },
                },
                security: PSK.into(),
                link_errors: LinkErrors::Measured,
                ingress_packets,
                coding,
                frame_len_max: room,
                frame_len_min: 0,
                memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
                rate_bps: None,
            }
        };
        let between = table.between.map(|node| node as NodeIndex);
        let mut tunnel = Tunnel { number, between, ends: [end(0), end(1)], mtu: 0 };
        tunnel.mtu = tunnel.station(0, seed, 0)?.tunnel_mtu();
        Ok(tunnel)
    }

    fn station(&self, side: usize, seed: u64, replication: u64) -> Result<Station, SimError> {
        let entity = u64::from(self.number) << 1 | side as u64;
        let key = StreamKey { seed, replication, entity, purpose: "entropy" };
        let mut entropy = [0; 32];
        key.stream().fill_bytes(&mut entropy);
        Ok(Station::new(self.ends[side].clone(), entropy, Time::ZERO)?)
    }

    /// Both ends, that have no agents behind them yet.
    pub(super) fn pair(&self, seed: u64, replication: u64) -> Result<[TunnelEnd; 2], SimError> {
        let [a, b] = self.between;
        let (here, there) = FlowEnd::pair(FIRST_FLOW + self.number, a, b);
        Ok([
            TunnelEnd::new(self.station(0, seed, replication)?, here),
            TunnelEnd::new(self.station(1, seed, replication)?, there),
        ])
    }

    /// Which end of it is at a node.
    pub(super) fn side(&self, node: NodeIndex) -> usize {
        usize::from(self.between[0] != node)
    }

    /// Puts the ends on their nodes.
    pub(super) fn place(
        &self,
        ends: [TunnelEnd; 2],
        network: &mut Network,
    ) -> Result<[AgentIndex; 2], NetworkError> {
        let [a, b] = self.between;
        let [here, there] = ends;
        let flow = FIRST_FLOW + self.number;
        let placed = [network.add_agent(a, flow, here)?, network.add_agent(b, flow, there)?];
        network.pace(placed[0], b);
        network.pace(placed[1], a);
        Ok(placed)
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
