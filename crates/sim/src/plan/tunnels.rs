//! Tunnels of a plan's network: Corridor stations at two nodes whose frames travel over UDP from
//! hop to hop, and the agents of flows behind them. A helper is either on one radio with both ends,
//! where all three reach each other, or overhears frames on their route over several hops.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{LinkErrors, Role, Station, StationConfig, StationId, Stats};
use corridor_scenario::{
    Air, ETHERNET_MTU, FLOWS_MAX, Measures, Network as NetworkPlan, TunnelTable,
};

use super::flows::set_route;
use super::tunnel::PSK;
use crate::agents::source::FlowEnd;
use crate::agents::stamped::UDP_HEADERS_LEN;
use crate::agents::tunnel_end::TunnelEnd;
use crate::core::agent::NodeIndex;
use crate::core::network::{AgentIndex, Hop, Network, Topology};
use crate::plan::SimError;

/// First number of the tunnels' own flows, after those of the plan.
const FIRST_FLOW: u32 = FLOWS_MAX as u32;

/// Stations discover each other by broadcasts, which are not retransmitted, so their starting times
/// are spread over this time: a hundred times the airtime of such a frame at 1 Mbit/s.
const START_SPREAD: Duration = Duration::from_millis(100);
/// Index of a tunnel's helper among its stations, after both ends.
const HELPER: usize = 2;

/// A tunnel, checked and resolved.
#[derive(Clone, Debug)]
pub(super) struct Tunnel {
    number: u32,
    /// The nodes of its stations: both ends, and the helper if there is one.
    nodes: Vec<NodeIndex>,
    /// Whether its frames go without UDP over a radio that all its stations are on.
    is_bare: bool,
    stations: Vec<StationConfig>,
    /// Longest packet that the tunnel carries.
    pub(super) mtu: usize,
}

impl Tunnel {
    /// Checks and resolves the tunnels of a plan, on nodes joined by these links.
    pub(super) fn of(
        plan: &NetworkPlan,
        topology: &Topology,
        seed: u64,
    ) -> Result<Vec<Self>, SimError> {
        // Frames must fit every radio, whichever route they take.
        let room = plan.radios.iter().map(|cell| match &cell.air {
            Air::Mac(config) => config.mac.payload_bytes_max() as usize,
            Air::Ideal(_) => ETHERNET_MTU,
        });
        let room = room.fold(ETHERNET_MTU, usize::min);
        let mut routed = None;
        if plan.tunnels.iter().any(|table| table.helper.is_some()) {
            let mut network = Network::new(topology, seed, 0)?;
            plan.routes.iter().try_for_each(|route| set_route(&mut network, route))?;
            routed = Some(network);
        }
        let tunnels = (0..).zip(&plan.tunnels);
        let tunnel = |(number, table): (u32, &TunnelTable)| {
            let nodes = table.between.into_iter().chain(table.helper);
            let nodes: Vec<_> = nodes.map(|node| node as NodeIndex).collect();
            let routed = routed.as_mut().filter(|_| table.helper.is_some());
            let is_bare = routed.is_some_and(|routed| apart(&nodes, routed).is_none());
            Tunnel::new(number, table, (nodes, is_bare), room, seed)
        };
        tunnels.map(tunnel).collect()
    }

    fn new(
        number: u32,
        table: &TunnelTable,
        (nodes, is_bare): (Vec<NodeIndex>, bool),
        room: usize,
        seed: u64,
    ) -> Result<Self, SimError> {
        let coding = table.coding.clone().unwrap_or_default();
        // The unreliable forwarder has the queue of blocks, a FIFO.
        let coding = coding.resolve(table.plain || table.helper.is_some());
        let id = |index: usize| StationId(index as u16 + 1);
        let headers_len = if is_bare { 0 } else { UDP_HEADERS_LEN };
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
        let stations = (0..nodes.len()).map(station).collect();
        let mut tunnel = Tunnel { number, nodes, is_bare, stations, mtu: 0 };
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

    /// Both ends, without agents behind them yet, and the helper.
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
            let end = TunnelEnd::new(station, here).among(peers, self.is_bare);
            Ok(if self.has_helper() {
                end.starting_at(self.start(index, seed, replication))
            } else {
                end
            })
        };
        (0..self.nodes.len()).map(end).collect()
    }

    /// When a station starts.
    fn start(&self, index: usize, seed: u64, replication: u64) -> Time {
        let entity = u64::from(self.number) << 2 | index as u64;
        let key = StreamKey { seed, replication, entity, purpose: "tunnel start" };
        let share = f64::from(key.stream().next_u32()) / 4_294_967_296.0;
        Time::ZERO + START_SPREAD.mul_f64(share)
    }

    /// Whether its stations overhear frames between others.
    pub(super) fn has_helper(&self) -> bool {
        self.nodes.len() > HELPER
    }

    /// Which of its ends is at a node.
    pub(super) fn side(&self, node: NodeIndex) -> usize {
        usize::from(self.nodes[0] != node)
    }

    /// Adds the ends to their nodes, and the helper.
    pub(super) fn place(
        &self,
        ends: Vec<TunnelEnd>,
        network: &mut Network,
    ) -> Result<Vec<AgentIndex>, SimError> {
        let overheard = match self.nodes.get(HELPER) {
            Some(_) if self.is_bare => self.check_reach(network).map(|()| [true; 2])?,
            Some(&helper) => self.check_overhearing(helper, network)?,
            None => [true; 2],
        };
        let flow = FIRST_FLOW + self.number;
        let mut placed = Vec::new();
        for (index, end) in ends.into_iter().enumerate() {
            let end = match self.nodes.get(HELPER) {
                Some(&helper) if overheard.get(index) == Some(&false) => end.informing(helper),
                _ => end,
            };
            let agent = network.add_agent(self.nodes[index], flow, end)?;
            network.pace(agent, &self.sends_to(index));
            if self.has_helper() {
                network.overhear(agent);
            }
            placed.push(agent);
        }
        Ok(placed)
    }

    /// The nodes that a station sends to.
    fn sends_to(&self, index: usize) -> Vec<NodeIndex> {
        // On one radio, all of them share the queue of a single place.
        if self.is_bare {
            return vec![self.nodes[usize::from(index == 0)]];
        }
        let others = self.nodes.iter().enumerate().filter(|&(other, _)| other != index);
        others.map(|(_, &node)| node).collect()
    }

    /// Rejects frames without UDP if some of a tunnel's stations cannot reach each other directly
    /// over one radio: shadowing may differ in each replication.
    fn check_reach(&self, network: &mut Network) -> Result<(), SimError> {
        let Some((from, to)) = apart(&self.nodes, network) else { return Ok(()) };
        Err(self.helper_error(format!(
            "ends and helper that all send to each other right over one radio, as they do in \
             replication 0: in another, node {from} does not reach node {to} so"
        )))
    }

    /// Which ends' frames the helper overhears on their route. Rejects a helper that overhears
    /// none, or a station that does not reach another.
    fn check_overhearing(
        &self,
        helper: NodeIndex,
        network: &mut Network,
    ) -> Result<[bool; 2], SimError> {
        let (a, b) = (self.nodes[0], self.nodes[1]);
        for (from, to) in pairs(&self.nodes) {
            if network.hops(from, to).is_none() {
                return Err(self.helper_error(format!(
                    "links that lead from there to nodes {a} and {b}, and back: none lead from \
                     node {from} to node {to}"
                )));
            }
        }
        let [there, back] = [(a, b), (b, a)].map(|(from, to)| network.hops(from, to));
        let [there, back] = [there, back].map(Option::unwrap_or_default);
        let heard = [&there, &back].map(|way| way.iter().any(|hop| network.hears(helper, hop)));
        if heard != [false; 2] {
            return Ok(heard);
        }
        let senders = |hops: &[Hop]| -> Vec<_> {
            hops.iter().filter(|hop| hop.radio.is_some()).map(|hop| hop.from).collect()
        };
        let mut senders = [senders(&there), senders(&back)].concat();
        senders.sort_unstable();
        senders.dedup();
        Err(self.helper_error(match &senders[..] {
            [] => format!(
                "packets between nodes {a} and {b} on a radio: they go over wires, where nothing \
                 is overheard"
            ),
            senders => format!(
                "a node whose radio hears one of those that send packets between nodes {a} and {b} \
                 by radio: {senders:?}"
            ),
        }))
    }

    fn helper_error(&self, expected: String) -> SimError {
        let (tunnel, helper) = (self.number as usize, self.nodes[HELPER] as usize);
        SimError::Helper { tunnel, helper, expected }
    }
}

/// All ordered pairs of nodes.
fn pairs(nodes: &[NodeIndex]) -> impl Iterator<Item = (NodeIndex, NodeIndex)> {
    let all = nodes.iter().flat_map(move |&from| nodes.iter().map(move |&to| (from, to)));
    all.filter(|(from, to)| from != to)
}

/// Two of these nodes of which one cannot answer the other directly over the radio by which the
/// other reaches it.
fn apart(nodes: &[NodeIndex], network: &mut Network) -> Option<(NodeIndex, NodeIndex)> {
    let mut radio_to = |(from, to)| match &network.hops(from, to)?[..] {
        [hop] => hop.radio,
        _ => None,
    };
    let first = radio_to((nodes[0], nodes[1]));
    pairs(nodes).find(|&pair| {
        let radio = radio_to(pair);
        radio.is_none() || radio != first
    })
}

/// Counters of all tunnels' stations since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TunnelStats {
    frames_sent: u64,
    bytes_sent: u64,
    packets_delivered: u64,
    symbols_repaired: u64,
}

impl TunnelStats {
    /// The sum over stations.
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

    /// The counters' growth since `before`.
    pub(super) fn since(self, before: TunnelStats) -> Self {
        TunnelStats {
            frames_sent: self.frames_sent - before.frames_sent,
            bytes_sent: self.bytes_sent - before.bytes_sent,
            packets_delivered: self.packets_delivered - before.packets_delivered,
            symbols_repaired: self.symbols_repaired - before.symbols_repaired,
        }
    }

    /// Sets the metrics of tunnels.
    pub(super) fn set(self, measures: &mut Measures) {
        measures.set("tunnel_frames_sent", self.frames_sent);
        measures.set("tunnel_bytes_sent", self.bytes_sent);
        measures.set("tunnel_packets_delivered", self.packets_delivered);
        measures.set("tunnel_symbols_repaired", self.symbols_repaired);
    }
}
