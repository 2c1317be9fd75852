//! Stations and the medium between them, driven through virtual time exactly as a daemon is driven
//! through real time: one thing in, then everything out.

use std::sync::Arc;

use corridor_air::{Address, Medium};
use corridor_base::Time;
use corridor_proto::{Destination, Station, StationId};

/// Called with every packet for a host, in order.
pub type Sink = Box<dyn FnMut(Time, &[u8])>;

/// A station on the medium, and what its host has received.
pub struct Node {
    /// The state machines.
    pub station: Station,
    sink: Sink,
    /// A frame the medium had no room for.
    held: Option<(Address, Arc<[u8]>)>,
}

impl Node {
    /// A node whose packets for the host go to `sink`.
    pub fn new(station: Station, sink: impl FnMut(Time, &[u8]) + 'static) -> Self {
        Node { station, sink: Box::new(sink), held: None }
    }
}

/// A medium, the nodes on it, and the time.
pub struct World {
    now: Time,
    medium: Medium,
    nodes: Vec<Node>,
}

impl World {
    /// A world at time zero; node k is station k of the medium.
    pub fn new(medium: Medium, nodes: Vec<Node>) -> Self {
        World { now: Time::ZERO, medium, nodes }
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The medium, for its statistics.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node, to put a packet in or to replace it; call [`settle`](Self::settle) afterwards.
    pub fn node_mut(&mut self, at: usize) -> &mut Node {
        &mut self.nodes[at]
    }

    /// When something happens next by itself. A station's timer that has passed waits for the
    /// medium to have room, as a daemon's waits for its interface.
    pub fn next_event(&self) -> Option<Time> {
        let timers = self.nodes.iter().filter_map(|node| node.station.poll_timeout());
        let medium = self.medium.poll_timeout().map(|at| at.max(self.now));
        timers.filter(|&at| at > self.now).chain(medium).min()
    }

    /// Advances to `until`, handling all that happens on the way.
    pub fn run_until(&mut self, until: Time) {
        self.settle();
        while let Some(at) = self.next_event().filter(|&at| at <= until) {
            self.step(at);
        }
        self.now = self.now.max(until);
    }

    /// Handles all that happens at `at`: the stations' timers first, then the medium.
    fn step(&mut self, at: Time) {
        self.now = at;
        for index in 0..self.nodes.len() {
            if self.nodes[index].station.poll_timeout().is_some_and(|due| due <= at) {
                self.nodes[index].station.handle_timeout(at);
                self.drain(index);
            }
        }
        if self.medium.poll_timeout().is_some_and(|due| due <= at) {
            self.medium.handle_timeout(at);
            self.settle();
        }
    }

    /// Passes on what the medium delivers and takes what the stations send, until both rest.
    pub fn settle(&mut self) {
        while let Some(delivery) = self.medium.poll_delivery() {
            let node = &mut self.nodes[delivery.to];
            node.station.handle_frame(delivery.at, &delivery.frame);
            self.drain(delivery.to);
        }
        (0..self.nodes.len()).for_each(|index| self.drain(index));
    }

    /// Takes packets, events and frames from a station.
    fn drain(&mut self, index: usize) {
        let (now, node) = (self.now, &mut self.nodes[index]);
        while let Some(packet) = node.station.poll_packet() {
            (node.sink)(now, packet);
        }
        while node.station.poll_event().is_some() {}
        while self.medium.has_room(index) {
            let (to, frame) = match node.held.take() {
                Some(held) => held,
                None => match node.station.poll_transmit(now) {
                    Some(transmit) => (address(transmit.to), Arc::from(transmit.frame)),
                    None => break,
                },
            };
            if let Err(full) = self.medium.offer(now, index, to, frame) {
                node.held = Some((to, full.frame));
                break;
            }
        }
    }
}

/// Station numbers count from 1, places on the medium from 0.
fn address(to: Destination) -> Address {
    match to {
        Destination::Station(StationId(id)) => Address::Station(usize::from(id) - 1),
        Destination::All => Address::All,
    }
}
