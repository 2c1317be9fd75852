//! Stations and the medium between them, driven through virtual time exactly as a daemon is driven
//! through real time: one thing in, then everything out.

use std::sync::Arc;

use corridor_air::{Address, Delivery, Medium, Transmission};
use corridor_base::Time;
use corridor_proto::{Destination, FrameOutcome, Station, StationId, Stats};

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

/// Somebody who sees everything, and changes nothing.
pub trait Watcher {
    /// A transmission has ended. Those who heard it take it one propagation delay later.
    fn take_transmission(&mut self, sent: Transmission);

    /// A station has taken a frame that it heard.
    fn take_reception(&mut self, reception: &Reception);

    /// There is nothing more to see: the run may end here.
    fn has_enough(&self) -> bool;
}

/// What a station made of a frame that it heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Reception {
    /// The sending place on the medium.
    pub from: usize,
    /// The hearing place.
    pub to: usize,
    /// What the station says.
    pub outcome: FrameOutcome,
    /// How its counters of symbols rose.
    pub symbols: SymbolCounts,
}

/// The counters of [`Stats`] that say what became of a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymbolCounts {
    /// See [`Stats::symbols_innovative`].
    pub innovative: u64,
    /// See [`Stats::symbols_dependent`].
    pub dependent: u64,
    /// See [`Stats::symbols_late`].
    pub late: u64,
    /// See [`Stats::symbols_refused`].
    pub refused: u64,
}

impl SymbolCounts {
    fn of(stats: &Stats) -> Self {
        SymbolCounts {
            innovative: stats.symbols_innovative,
            dependent: stats.symbols_dependent,
            late: stats.symbols_late,
            refused: stats.symbols_refused,
        }
    }

    fn since(self, before: Self) -> Self {
        SymbolCounts {
            innovative: self.innovative - before.innovative,
            dependent: self.dependent - before.dependent,
            late: self.late - before.late,
            refused: self.refused - before.refused,
        }
    }
}

/// A medium, the nodes on it, and the time.
pub struct World {
    now: Time,
    medium: Medium,
    nodes: Vec<Node>,
    watcher: Option<Box<dyn Watcher>>,
}

impl World {
    /// A world at time zero; node k is station k of the medium.
    pub fn new(medium: Medium, nodes: Vec<Node>) -> Self {
        World { now: Time::ZERO, medium, nodes, watcher: None }
    }

    /// Lets somebody see all that is on the air from here on. What happens does not change.
    pub fn set_watcher(&mut self, watcher: Box<dyn Watcher>) {
        self.medium.keep_transmissions();
        self.watcher = Some(watcher);
    }

    /// Whether the watcher, if there is one, has seen enough.
    pub fn is_watched_enough(&self) -> bool {
        self.watcher.as_ref().is_some_and(|watcher| watcher.has_enough())
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
        self.show_transmissions();
        while let Some(delivery) = self.medium.poll_delivery() {
            self.deliver(&delivery);
            self.drain(delivery.to);
            self.show_transmissions();
        }
        (0..self.nodes.len()).for_each(|index| self.drain(index));
    }

    fn deliver(&mut self, delivery: &Delivery) {
        let station = &mut self.nodes[delivery.to].station;
        let before = self.watcher.is_some().then(|| SymbolCounts::of(station.stats()));
        let outcome = station.handle_frame(delivery.at, &delivery.frame);
        if let (Some(watcher), Some(before)) = (&mut self.watcher, before) {
            let symbols = SymbolCounts::of(station.stats()).since(before);
            let Delivery { from, to, .. } = *delivery;
            watcher.take_reception(&Reception { from, to, outcome, symbols });
        }
    }

    fn show_transmissions(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            while let Some(sent) = self.medium.poll_transmission() {
                watcher.take_transmission(sent);
            }
        }
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
