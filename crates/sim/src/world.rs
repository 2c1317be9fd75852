//! Stations and the medium between them, driven through virtual time exactly as a daemon is driven
//! through real time: one thing in, then everything out.
//!
//! Only the stations that something happens to are looked at: those whose timer is due, who hear a
//! frame, whose queue has room again, or whom the caller has touched. So an event costs the same
//! however many stations there are.

use std::sync::Arc;

use corridor_air::{Address, Delivery, Medium};
use corridor_base::Time;
use corridor_proto::{Destination, Role, Station, StationId};

use crate::core::agenda::Agenda;
use crate::core::watch::{Reception, SymbolCounts, Watcher};

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

    /// Gives the host what there is for it.
    fn hand_over(&mut self, now: Time) {
        while let Some(packet) = self.station.poll_packet() {
            (self.sink)(now, packet);
        }
    }
}

/// A medium, the nodes on it, and the time.
pub struct World {
    now: Time,
    medium: Medium,
    nodes: Vec<Node>,
    /// When the stations' timers are due; of those in the future.
    agenda: Agenda,
    /// Stations whose timer has passed: for the next event, whatever it is.
    overdue: Stations,
    /// Stations to be drained when the medium rests.
    touched: Stations,
    /// Stations that are being served; empty in between.
    serving: Vec<usize>,
    events: u64,
    watcher: Option<Box<dyn Watcher>>,
}

/// A set of stations.
struct Stations {
    list: Vec<usize>,
    has: Vec<bool>,
}

impl Stations {
    fn new(count: usize) -> Self {
        Stations { list: Vec::with_capacity(count), has: vec![false; count] }
    }

    fn insert(&mut self, index: usize) {
        if !core::mem::replace(&mut self.has[index], true) {
            self.list.push(index);
        }
    }

    /// Moves all of them into `list`.
    fn take(&mut self, list: &mut Vec<usize>) {
        self.list.iter().for_each(|&index| self.has[index] = false);
        list.append(&mut self.list);
    }
}

impl World {
    /// A world at time zero; node k is station k of the medium.
    pub fn new(medium: Medium, nodes: Vec<Node>) -> Self {
        let count = nodes.len();
        let mut touched = Stations::new(count);
        (0..count).for_each(|index| touched.insert(index));
        World {
            now: Time::ZERO,
            medium,
            nodes,
            agenda: Agenda::new(count),
            overdue: Stations::new(count),
            touched,
            serving: Vec::with_capacity(count),
            events: 0,
            watcher: None,
        }
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

    /// Events handled so far: instants at which a timer was due or the medium did something.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// A node, to put a packet in or to replace it; call [`settle`](Self::settle) afterwards.
    pub fn node_mut(&mut self, at: usize) -> &mut Node {
        self.touched.insert(at);
        &mut self.nodes[at]
    }

    /// When something happens next by itself. A station's timer that has passed waits for the
    /// medium to have room, as a daemon's waits for its interface.
    pub fn next_event(&mut self) -> Option<Time> {
        let medium = self.medium.poll_timeout().map(|at| at.max(self.now));
        [self.agenda.next_at(), medium].into_iter().flatten().min()
    }

    /// Advances to `until`, handling all that happens on the way.
    pub fn run_until(&mut self, until: Time) {
        self.settle();
        while let Some(at) = self.next_event().filter(|&at| at <= until) {
            self.step(at);
        }
        self.now = self.now.max(until);
    }

    /// Advances until every station has met all that it exchanges frames with, to `until` at most,
    /// or until the watcher has seen enough. A load that begins before would measure handshakes.
    pub fn run_until_met(&mut self, until: Time) {
        self.settle();
        while !self.has_everybody_met() && !self.is_watched_enough() {
            let Some(at) = self.next_event().filter(|&at| at <= until) else {
                self.now = self.now.max(until);
                return;
            };
            self.step(at);
        }
    }

    fn has_everybody_met(&self) -> bool {
        let has_met = |station: &Station| match station.config().role {
            Role::Endpoint { peer, helper } => {
                station.is_up(peer) && helper.is_none_or(|helper| station.is_up(helper))
            }
            Role::Helper { between: (a, b) } => station.is_up(a) && station.is_up(b),
            Role::Plain { peer } => station.is_up(peer),
        };
        self.nodes.iter().all(|node| has_met(&node.station))
    }

    /// Handles all that happens at `at`: the stations' timers first, then the medium.
    fn step(&mut self, at: Time) {
        self.now = at;
        self.events += 1;
        let mut due = core::mem::take(&mut self.serving);
        self.overdue.take(&mut due);
        while self.agenda.next_at().is_some_and(|next| next <= at) {
            due.extend(self.agenda.pop().map(|(_, index)| index));
        }
        due.sort_unstable();
        for &index in &due {
            // What was overdue may have been put off since.
            if self.nodes[index].station.poll_timeout().is_some_and(|due| due <= at) {
                self.nodes[index].station.handle_timeout(at);
                self.drain(index);
            }
        }
        due.clear();
        self.serving = due;
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
        while let Some(index) = self.medium.poll_room() {
            self.touched.insert(index);
        }
        let mut ready = core::mem::take(&mut self.serving);
        self.touched.take(&mut ready);
        ready.sort_unstable();
        ready.iter().for_each(|&index| self.drain(index));
        ready.clear();
        self.serving = ready;
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

    /// Takes packets, events and frames from a station, and its next timer.
    fn drain(&mut self, index: usize) {
        let (now, node) = (self.now, &mut self.nodes[index]);
        node.hand_over(now);
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
                self.touched.insert(index);
                break;
            }
        }
        // As packets leave the ingress queue, the host may be told of more room.
        node.hand_over(now);
        let timer = node.station.poll_timeout();
        self.agenda.wake(index, timer.filter(|&at| at > now));
        if timer.is_some_and(|at| at <= now) {
            self.overdue.insert(index);
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
