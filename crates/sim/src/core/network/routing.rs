//! Route discovery: an [`Aodv`] at each node. Its messages are packets of a flow of their own, and
//! the MAC's outcome of each packet tells it which links work.

use std::collections::BTreeMap;
use std::sync::Arc;

use corridor_air::Address as PlaceAddress;
use corridor_air::radio::Quality;
use corridor_base::StreamKey;

use super::air::Air;
use super::{Entity, Frame, Network, NetworkError, Node, RadioIndex};
use crate::aodv::{Address, Aodv, AodvConfig, AodvStats, Message, Output};
use crate::core::agent::{BROADCAST, Body, NodeIndex, Packet};
use crate::core::watch::Crossing;

/// The flow of routing messages; no agent has it.
pub const ROUTING_FLOW: u32 = u32::MAX;

/// Most links that a packet may cross with route discovery: while routes change it may pass a node
/// twice.
const LINKS_MAX: u16 = 64;

/// A packet, and the number of links that it may still cross.
type Routed = (Arc<Packet>, u16);

/// The routers, one at each node.
pub(super) struct Routing {
    radio: RadioIndex,
    routers: Vec<Aodv<Routed>>,
    /// The place of each node on the radio.
    places: Vec<usize>,
    /// Each router's number in the agenda.
    entities: Vec<usize>,
    /// By flow and node: packets that their origin has sent on, and the links of their routes.
    flows: BTreeMap<(u32, NodeIndex), RouteLinks>,
}

/// Lengths of the routes of a flow's packets, as known to their origin when it sent them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteLinks {
    /// Packets sent, including those sent again.
    pub packets: u64,
    /// Links of their routes, summed.
    pub links: u64,
}

impl Routing {
    /// Counts a packet that leaves its origin.
    fn count_links(&mut self, node: NodeIndex, packet: &Packet) {
        let route = self.routers[node as usize].route(packet.to as Address);
        let sum = self.flows.entry((packet.flow, node)).or_default();
        sum.packets += 1;
        sum.links += route.map_or(0, |route| u64::from(route.cost.hops));
    }
}

impl Network {
    /// Makes nodes discover routes themselves from now on, over the network's only radio.
    ///
    /// # Errors
    /// [`NetworkError::Routing`] unless all nodes are on one radio with a standard's MAC and there
    /// is no pipe; [`NetworkError::Aodv`].
    pub fn set_routing(
        &mut self,
        config: AodvConfig,
        seed: u64,
        replication: u64,
    ) -> Result<(), NetworkError> {
        let refused = |given: String, expected| Err(NetworkError::Routing { given, expected });
        if !self.pipes.is_empty() {
            return refused(format!("{} pipes", self.pipes.len()), "radios alone");
        }
        if self.radios.len() != 1 || !matches!(self.radios[0].air, Air::Mac(_)) {
            return refused(format!("{} radios", self.radios.len()), "one, with a standard's MAC");
        }
        let count = self.nodes.len();
        if count > usize::from(Address::MAX) {
            return refused(format!("{count} nodes"), "at most 65535, which addresses are for");
        }
        let mut routing = Routing {
            radio: 0,
            routers: Vec::with_capacity(count),
            places: Vec::with_capacity(count),
            entities: Vec::with_capacity(count),
            flows: BTreeMap::new(),
        };
        for node in 0..count {
            let [(0, place)] = self.nodes[node].places[..] else {
                return refused(format!("node {node} elsewhere"), "every node once on the radio");
            };
            let entity = node as u64;
            let key = StreamKey { seed, replication, entity, purpose: "routing" };
            routing.routers.push(Aodv::new(node as Address, config, key)?);
            routing.places.push(place);
            routing.entities.push(self.add_entity(Entity::Routing(node as NodeIndex)));
        }
        self.routing = Some(Box::new(routing));
        Ok(())
    }

    /// The router of a node, if it has one, for its statistics.
    pub fn router_stats(&self, node: NodeIndex) -> Option<&AodvStats> {
        self.routing.as_ref()?.routers.get(node as usize).map(Aodv::stats)
    }

    /// Lengths of the routes that a flow's packets took from a node, with route discovery.
    pub fn route_links(&self, flow: u32, node: NodeIndex) -> Option<RouteLinks> {
        Some(self.routing.as_ref()?.flows.get(&(flow, node)).copied().unwrap_or_default())
    }

    /// The nodes on the route from one node to another, both included; `None` if there is no route,
    /// or the routers know none.
    pub fn route(&mut self, from: NodeIndex, to: NodeIndex) -> Option<Vec<NodeIndex>> {
        let mut route = vec![from];
        let mut node = from;
        while node != to {
            node = match &self.routing {
                Some(routing) => {
                    let router = routing.routers.get(node as usize)?;
                    NodeIndex::from(router.route(Address::try_from(to).ok()?)?.next)
                }
                None => {
                    let link = self.router.next(node, to)?;
                    self.router.ends(link).1
                }
            };
            if route.len() > self.nodes.len() {
                return None;
            }
            route.push(node);
        }
        Some(route)
    }

    /// Sends a packet from its origin.
    pub(super) fn send_by_routing(&mut self, node: NodeIndex, packet: Packet) {
        let now = self.now;
        let ttl = packet.ttl.min(LINKS_MAX);
        let to = packet.to as Address;
        let Some(routing) = &mut self.routing else { return };
        if packet.to as usize >= routing.routers.len() {
            self.stats.undeliverable += 1;
            return;
        }
        routing.routers[node as usize].send(now, to, (Arc::new(packet), ttl));
        self.drain_routing(node);
    }

    /// Handles a packet or a routing message that has come to a node by the radio.
    pub(super) fn take_by_routing(
        &mut self,
        (from, node): (NodeIndex, NodeIndex),
        quality: Quality,
        packet: Arc<Packet>,
        ttl: u16,
    ) {
        let now = self.now;
        let Some(routing) = &mut self.routing else { return };
        let router = &mut routing.routers[node as usize];
        if packet.flow == ROUTING_FLOW {
            let Body::Bytes(bytes) = &packet.body else { return };
            let Some(message) = Message::parse(bytes) else { return };
            router.handle_message(now, from as Address, quality.lqi(), &message);
            return self.drain_routing(node);
        }
        if packet.to == node || packet.to == BROADCAST {
            return self.hand_over(node, Arc::unwrap_or_clone(packet));
        }
        let ttl = ttl.saturating_sub(1);
        if ttl == 0 {
            self.stats.expired += 1;
            if let Some(watcher) = &mut self.watcher {
                watcher.take_packet(now, node, &packet, Crossing::Expired);
            }
            return;
        }
        router.pass_on(from as Address, packet.to as Address, (packet, ttl));
        self.drain_routing(node);
    }

    /// A MAC has finished with a packet that a router gave it.
    pub(super) fn route_outcome(
        &mut self,
        node: NodeIndex,
        next: NodeIndex,
        is_delivered: bool,
        frame: &Frame,
    ) {
        let now = self.now;
        let Some(routing) = &mut self.routing else { return };
        let Frame::Packet(packet, ttl) = frame else { return };
        // A lost request or reply says little about the link: flooded requests collide with
        // replies, and an origin that hears no reply asks again.
        if next == BROADCAST || packet.flow == ROUTING_FLOW {
            return;
        }
        let router = &mut routing.routers[node as usize];
        let to = (next as Address, packet.to as Address);
        let own = (packet.from == node).then(|| (Arc::clone(packet), *ttl));
        router.handle_outcome(now, to, is_delivered, own);
        self.drain_routing(node);
    }

    pub(super) fn handle_routing_timeout(&mut self, node: NodeIndex) {
        let now = self.now;
        if let Some(routing) = &mut self.routing {
            routing.routers[node as usize].handle_timeout(now);
            self.drain_routing(node);
        }
    }

    /// Carries out what a router wants done.
    fn drain_routing(&mut self, node: NodeIndex) {
        loop {
            let Some(routing) = &mut self.routing else { return };
            let place = (routing.radio, routing.places[node as usize]);
            let Some(output) = routing.routers[node as usize].poll_output() else { break };
            let to_neighbour = |routing: &Routing, next: Address| {
                let station = routing.places.get(usize::from(next)).copied().unwrap_or(0);
                (PlaceAddress::Station(station), NodeIndex::from(next))
            };
            match output {
                Output::Broadcast(message) => {
                    let packet = packet_of(node, BROADCAST, &message);
                    self.put_on_air(node, place, (PlaceAddress::All, BROADCAST), packet, 1);
                }
                Output::Unicast(next, message) => {
                    let to = to_neighbour(routing, next);
                    let packet = packet_of(node, to.1, &message);
                    self.put_on_air(node, place, to, packet, 1);
                }
                Output::Forward(next, (packet, ttl)) => {
                    let to = to_neighbour(routing, next);
                    if packet.from == node {
                        routing.count_links(node, &packet);
                    }
                    self.put_on_air(node, place, to, packet, ttl);
                }
                Output::Drop((packet, _)) => self.drop_unroutable(node, &packet),
                Output::Unreachable((packet, _)) => {
                    self.drop_unroutable(node, &packet);
                    self.tell_unreachable(node, packet.flow);
                }
            }
        }
        if let Some(routing) = &self.routing {
            let at = routing.routers[node as usize].poll_timeout();
            self.agenda.wake(routing.entities[node as usize], at);
        }
    }

    fn drop_unroutable(&mut self, node: NodeIndex, packet: &Packet) {
        self.stats.undeliverable += 1;
        if let Some(watcher) = &mut self.watcher {
            watcher.take_packet(self.now, node, packet, Crossing::Unroutable);
        }
    }

    fn tell_unreachable(&mut self, node: NodeIndex, flow: u32) {
        let agents = &self.nodes[node as usize].agents;
        if let Ok(place) = agents.binary_search_by_key(&flow, |&(flow, _)| flow) {
            let agent = agents[place].1 as usize;
            self.agents[agent].agent.handle_unreachable(self.now);
            self.drain_agent(agent);
        }
    }

    /// Replaces a packet of the same flow, destination and length that waits at its node, in the
    /// router for want of a route or in the MAC's queue. Returns whether there was one.
    pub(super) fn update_waiting(&mut self, node: NodeIndex, packet: &Packet) -> bool {
        let is_same = |other: &Packet| {
            (other.flow, other.from, other.to, other.len_bytes)
                == (packet.flow, node, packet.to, packet.len_bytes)
        };
        if let Some(routing) = &mut self.routing {
            let mut held = routing.routers[node as usize].held_mut();
            if let Some((held, _)) = held.find(|(held, _)| is_same(held)) {
                *held = Arc::new(packet.clone());
                return true;
            }
        }
        let Node { places, .. } = &self.nodes[node as usize];
        for &(radio, place) in places {
            let Air::Mac(medium) = &mut self.radios[radio].air else { continue };
            for queued in medium.waiting_mut(place) {
                if let Frame::Packet(waiting, _) = &mut queued.payload
                    && is_same(waiting)
                {
                    *waiting = Arc::new(packet.clone());
                    return true;
                }
            }
        }
        false
    }
}

fn packet_of(node: NodeIndex, to: NodeIndex, message: &Message) -> Arc<Packet> {
    let bytes = message.to_bytes();
    let len_bytes = bytes.len() as u32;
    let body = Body::Bytes(Arc::from(bytes));
    Arc::new(Packet { flow: ROUTING_FLOW, from: node, to, len_bytes, ttl: 1, body })
}
