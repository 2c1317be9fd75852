//! One end of a tunnel: a Corridor station at a node whose frames go over UDP to its peer, wherever
//! that is, and the agents behind the station, as applications are behind a daemon's interface.
//! With a helper on a single radio on which all three reach each other, frames go over the radio
//! without UDP, so each station overhears the others. With a helper further away they go over UDP:
//! broadcasts once to each station, and acknowledgments also to a helper that cannot overhear
//! them.
//!
//! It is driven as the daemon's station is: one input, then all outputs. What the station delivers
//! goes to the agents, and what they answer goes in again, until neither has anything left. Frames
//! are made when the network asks for packets, which it does while there is room.

use core::any::Any;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use corridor_base::Time;
use corridor_proto::{Destination, Station, StationId};

use super::headers::{read_datagram, write_packet};
use super::ip;
use super::source::FlowEnd;
use super::stamped::UDP_HEADERS_LEN;
use crate::core::agent::{Agent, BROADCAST, Body, NodeIndex, Packet};

/// Longest delay of overdue work while there is no room for the station's frames. They are made as
/// soon as there is room; meanwhile, an overdue timer must not cause one wake-up after another.
const OVERDUE: Duration = Duration::from_millis(1);

/// One end of a tunnel.
pub(crate) struct TunnelEnd {
    station: Station,
    end: FlowEnd,
    /// The node of each station; empty if its peer is the only one.
    places: Vec<(StationId, NodeIndex)>,
    /// Whether frames go over a radio without UDP.
    is_bare: bool,
    /// The helper's node, if the helper cannot overhear this end's acknowledgments.
    uninformed: Option<NodeIndex>,
    /// Further copies of the last frame, for other nodes: no more than there are stations.
    copies: VecDeque<(NodeIndex, Arc<[u8]>)>,
    /// The station is silent until then.
    starts_at: Time,
    /// Agents by their flow numbers.
    agents: Vec<(u32, Box<dyn Agent>)>,
    /// The latest time given to it.
    now: Time,
}

impl TunnelEnd {
    /// An end whose station's frames are packets of the flow of `end`.
    pub(crate) fn new(station: Station, end: FlowEnd) -> Self {
        TunnelEnd {
            station,
            end,
            places: Vec::new(),
            is_bare: false,
            uninformed: None,
            copies: VecDeque::new(),
            starts_at: Time::ZERO,
            agents: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// Begins at a given time: broadcasts of stations that begin together would collide each time.
    pub(crate) fn starting_at(self, starts_at: Time) -> Self {
        TunnelEnd { starts_at, ..self }
    }

    /// Sets where the stations are. With `is_bare`, frames go over a radio without UDP, and
    /// broadcasts reach all stations there.
    pub(crate) fn among(self, places: Vec<(StationId, NodeIndex)>, is_bare: bool) -> Self {
        TunnelEnd { places, is_bare, ..self }
    }

    /// Also sends acknowledgments to a helper at this node.
    pub(crate) fn informing(self, helper: NodeIndex) -> Self {
        TunnelEnd { uninformed: Some(helper), ..self }
    }

    /// The node that a frame goes to.
    fn node_of(&self, to: Destination) -> NodeIndex {
        match to {
            Destination::All if self.is_bare => BROADCAST,
            Destination::All => self.end.peer,
            Destination::Station(id) | Destination::Search(id) => {
                let place = self.places.iter().find(|&&(station, _)| station == id);
                place.map_or(self.end.peer, |&(_, node)| node)
            }
        }
    }

    /// Queues further copies of a frame that is routed hop by hop: a broadcast goes to each station
    /// in a packet of its own.
    fn copy(&mut self, to: Destination, is_ack: bool, frame: &Arc<[u8]>) {
        if self.is_bare {
            return;
        }
        let (here, peer) = (self.end.node, self.end.peer);
        let others = self.places.iter().map(|&(_, node)| node);
        let others = others.filter(|&node| node != here && node != peer);
        match to {
            Destination::All => self.copies.extend(others.map(|node| (node, Arc::clone(frame)))),
            Destination::Station(_) | Destination::Search(_) => {
                let uninformed = self.uninformed.filter(|_| is_ack);
                self.copies.extend(uninformed.map(|node| (node, Arc::clone(frame))));
            }
        }
    }

    /// The next frame, and the node that it goes to.
    fn poll_frame(&mut self, now: Time) -> Option<(NodeIndex, Arc<[u8]>)> {
        if let Some(copy) = self.copies.pop_front() {
            return Some(copy);
        }
        let acks_before = self.station.stats().ack_frames_sent;
        let transmit = self.station.poll_transmit(now)?;
        let (to, frame) = (transmit.to, Arc::<[u8]>::from(transmit.frame));
        self.copy(to, self.station.stats().ack_frames_sent > acks_before, &frame);
        // As the ingress queue drains, agents may learn that there is room.
        self.pass(now);
        Some((self.node_of(to), frame))
    }

    /// Adds an agent behind the station, for the packets of `flow`: bytes of IP packets.
    pub(crate) fn add(&mut self, flow: u32, agent: impl Agent) {
        self.agents.push((flow, Box::new(agent)));
    }

    /// The station.
    pub(crate) fn station(&self) -> &Station {
        &self.station
    }

    /// The agent of a flow, if it is of type `A`.
    pub(crate) fn agent<A: Agent>(&self, flow: u32) -> Option<&A> {
        let (_, agent) = self.agents.iter().find(|&&(number, _)| number == flow)?;
        let agent: &dyn Any = &**agent;
        agent.downcast_ref()
    }

    /// Passes packets between agents and station until neither has any left.
    fn pass(&mut self, now: Time) {
        loop {
            let mut rests = true;
            for (_, agent) in &mut self.agents {
                while let Some(packet) = agent.poll_transmit(now) {
                    if let Body::Bytes(bytes) = &packet.body {
                        self.station.handle_packet(now, bytes);
                        rests = false;
                    }
                }
            }
            while let Some(packet) = self.station.poll_packet() {
                let bytes = Arc::<[u8]>::from(packet.bytes());
                let flow =
                    ip::flow_of(&bytes).or_else(|| read_datagram(&bytes).map(|(flow, ..)| flow));
                let Some((number, agent)) =
                    self.agents.iter_mut().find(|(number, _)| Some(*number) == flow)
                else {
                    continue;
                };
                let end = FlowEnd { flow: *number, ..self.end };
                let packet =
                    Packet { to: end.node, ..end.packet(bytes.len() as u32, Body::Bytes(bytes)) };
                agent.handle_packet(now, packet);
                rests = false;
            }
            while self.station.poll_event().is_some() {}
            if rests {
                return;
            }
        }
    }
}

impl Agent for TunnelEnd {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        self.now = now;
        if now < self.starts_at {
            return;
        }
        if let Body::Sealed(frame) | Body::Bare(frame) = &packet.body {
            self.station.handle_frame(now, frame);
            self.pass(now);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        for (_, agent) in self.agents.iter_mut().filter(|(_, agent)| is_due(agent.poll_timeout())) {
            agent.handle_timeout(now);
        }
        if is_due(self.station.poll_timeout()) {
            self.station.handle_timeout(now);
        }
        self.pass(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.now = now;
        if now < self.starts_at {
            return None;
        }
        let (to, frame) = self.poll_frame(now)?;
        let (len, body) = match self.is_bare {
            true => (frame.len(), Body::Bare(frame)),
            false => (frame.len() + UDP_HEADERS_LEN, Body::Sealed(frame)),
        };
        Some(Packet { to, ..self.end.packet(len as u32, body) })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let station = self.station.poll_timeout().map(|at| at.max(self.starts_at));
        let station = station.map(|at| if at > self.now { at } else { self.now + OVERDUE });
        let agents = self.agents.iter().filter_map(|(_, agent)| agent.poll_timeout());
        agents.chain(station).min()
    }
}

/// A datagram agent with a layer below it that converts to and from IPv4 packets.
pub(crate) struct IpDatagrams<A> {
    inner: A,
    end: FlowEnd,
    packet: Vec<u8>,
}

impl<A: Agent> IpDatagrams<A> {
    /// Puts the layer below `inner`.
    pub(crate) fn new(inner: A, end: FlowEnd) -> Self {
        IpDatagrams { inner, end, packet: Vec::new() }
    }

    /// The agent above the layer.
    pub(crate) fn inner(&self) -> &A {
        &self.inner
    }
}

impl<A: Agent> Agent for IpDatagrams<A> {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        let Body::Bytes(bytes) = &packet.body else { return };
        let Some((_, sequence, sent_at)) = read_datagram(bytes) else { return };
        let body = Body::Datagram { sequence, sent_at };
        self.inner.handle_packet(now, Packet { body, ..packet });
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let packet = self.inner.poll_transmit(now)?;
        let len = write_packet(&packet, None, &mut Vec::new(), &mut self.packet);
        self.packet.resize(len, 0);
        let bytes = Arc::<[u8]>::from(self.packet.as_slice());
        Some(self.end.packet(bytes.len() as u32, Body::Bytes(bytes)))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }
}
