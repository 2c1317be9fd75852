//! Which packets for others a node overhears on its radios, and which links those packets take.

use super::{AgentIndex, Network, Node, RadioIndex, Seat};
use crate::core::agent::{NodeIndex, Packet};

/// A link of a packet's route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node that sends.
    pub from: NodeIndex,
    /// The node that forwards the packet, or is its destination.
    pub to: NodeIndex,
    /// The radio that carries them; `None` for a wire.
    pub radio: Option<RadioIndex>,
}

impl Network {
    /// Gives an agent also the packets of its flow that its node's radios overhear, whomever they
    /// are for, as a program in promiscuous mode gets them. A standard's MAC reports them only if
    /// the radio is [promiscuous](corridor_air::radio::RadioStation). Packets that the node
    /// forwards count as overheard if they came by radio; packets that it sends itself do not.
    pub fn overhear(&mut self, agent: AgentIndex) {
        let Some(Seat { node, .. }) = self.agents.get(agent.0) else { return };
        let Node { agents, overhearing, .. } = &mut self.nodes[*node as usize];
        let own = agents.iter().filter(|&&(_, index)| index == agent.0 as u32);
        overhearing.extend(own);
    }

    /// The links that packets take from one node to another; `None` if there is no route, or if it
    /// loops.
    pub fn hops(&mut self, from: NodeIndex, to: NodeIndex) -> Option<Vec<Hop>> {
        let mut crossed = Vec::new();
        let mut node = from;
        while node != to && crossed.len() < self.nodes.len() {
            let link = self.router.next(node, to)?;
            let next = self.router.ends(link).1;
            let radio = self.router.on_air(link).map(|on_air| on_air.radio as RadioIndex);
            crossed.push(Hop { from: node, to: next, radio });
            node = next;
        }
        (node == to).then_some(crossed)
    }

    /// Whether a node receives what is sent on a link when nobody else sends: as the addressee, or
    /// because it has a radio on that channel.
    pub fn hears(&self, node: NodeIndex, hop: &Hop) -> bool {
        let Some(index) = hop.radio.filter(|_| hop.from != node) else { return false };
        let place = |node: NodeIndex| {
            let places = self.nodes.get(node as usize)?.places.iter();
            places.copied().find(|&(radio, _)| radio == index).map(|(_, place)| place)
        };
        let places = place(hop.from).zip(place(node));
        places.is_some_and(|(from, to)| self.radios[index].hears(from, to))
    }

    /// Handles a packet for another node that a node has overheard.
    pub(super) fn overhear_packet(&mut self, node: NodeIndex, packet: &Packet) {
        let overhearing = &self.nodes[node as usize].overhearing;
        let agent = overhearing.iter().find(|&&(flow, _)| flow == packet.flow);
        let agent = agent.filter(|_| packet.from != node);
        let Some(agent) = agent.map(|&(_, agent)| agent as usize) else { return };
        self.agents[agent].agent.handle_packet(self.now, packet.clone());
        self.drain_agent(agent);
    }
}
