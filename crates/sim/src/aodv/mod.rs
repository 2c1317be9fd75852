//! nst-AODV without I/O: discovers routes when a packet needs one (C. Gomez, P. Salvatella, O.
//! Alonso and J. Paradells, Adapting AODV for IEEE 802.15.4 mesh sensor networks, WoWMoM 2006, on
//! top of RFC 3561).
//!
//! At each node a packet passes these stages:
//!
//! 1. [`Aodv::send`] at its origin, or [`Aodv::pass_on`] in transit.
//! 2. *With a route*, it goes to the next hop at once.
//! 3. *Without a route*, its origin holds it and broadcasts a *request* (RREQ). Each node forwards
//!    a request once, after a jitter, and again if a better copy comes. Only the destination
//!    answers, by a *reply* (RREP) along the route by which the request has come. In transit the
//!    packet is dropped, and an *error* (RERR) informs the neighbour that sent it.
//! 4. *The link layer's outcome*: [`Aodv::handle_outcome`]. A frame without an acknowledgment
//!    means a lost link, and the neighbours that route through it are informed. At its origin the
//!    packet is held again for the route that is found next; in transit it is lost, since there is
//!    no local repair.
//!
//! As in nst-AODV, these parts of RFC 3561 are omitted: HELLO, replies by intermediate nodes, local
//! repair, lifetimes of routes. Also omitted are the expanding ring search (6.4), the route to the
//! previous hop that a request creates (6.5), and acknowledgments of replies (6.8: the link layer
//! has them).

mod config;
mod message;
mod routes;

use std::collections::{BTreeMap, VecDeque};

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};

pub use config::{AodvConfig, AodvError, LqiCurve, Metric};
pub use message::{Address, Cost, LOST_MAX, Lost, Message, Reply, Request};
use routes::{Heard, News, Routes, is_newer};
pub use routes::{ROUTES_MAX, Route};

/// Most packets that an origin holds during route discovery; more are dropped.
pub const HELD_MAX: usize = 64;

/// Most requests that wait to be forwarded; further ones are dropped.
pub const WAITING_MAX: usize = 64;

/// Most packets in a row for one destination that may come back undelivered, over whichever routes
/// are found; the next is dropped. A link that carries short requests may lose every long packet.
pub const RETURNS_MAX: u32 = 8;

/// What the router asks its driver to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<P> {
    /// Send a message to all neighbours.
    Broadcast(Message),
    /// Send a message to one neighbour.
    Unicast(Address, Message),
    /// Send a packet to a neighbour.
    Forward(Address, P),
    /// A packet in transit has no route from here, or one that originated here came back too often.
    Drop(P),
    /// A packet that originated here is given up: no route was found in time, or there was no room.
    Unreachable(P),
}

/// Counters of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AodvStats {
    /// Route discoveries begun.
    pub discoveries: u64,
    /// Of these, those that found one.
    pub found: u64,
    /// Total time of these, nanoseconds.
    pub found_after_ns: u64,
    /// Requests sent, including forwarded ones.
    pub requests: u64,
    /// Replies sent, including forwarded ones.
    pub replies: u64,
    /// Errors sent.
    pub errors: u64,
    /// Lost links: packets without an acknowledgment whose route led over the link.
    pub links_lost: u64,
    /// Bytes of all messages sent.
    pub message_bytes: u64,
    /// Packets sent on from here as their origin.
    pub packets: u64,
    /// Links of their routes, as known to this router.
    pub packet_hops: u64,
    /// Packets dropped: in transit without a route, or with an unreachable destination.
    pub dropped: u64,
}

impl AodvStats {
    /// Combines each counter with that of `other`: for sums or differences.
    pub fn with(self, other: AodvStats, join: impl Fn(u64, u64) -> u64) -> AodvStats {
        AodvStats {
            discoveries: join(self.discoveries, other.discoveries),
            found: join(self.found, other.found),
            found_after_ns: join(self.found_after_ns, other.found_after_ns),
            requests: join(self.requests, other.requests),
            replies: join(self.replies, other.replies),
            errors: join(self.errors, other.errors),
            links_lost: join(self.links_lost, other.links_lost),
            message_bytes: join(self.message_bytes, other.message_bytes),
            packets: join(self.packets, other.packets),
            packet_hops: join(self.packet_hops, other.packet_hops),
            dropped: join(self.dropped, other.dropped),
        }
    }
}

/// A destination that is being looked for.
#[derive(Clone, Debug)]
struct Discovery<P> {
    destination: Address,
    begun: Time,
    /// When to send the next request, or give up.
    due: Time,
    requests: u32,
    /// Packets that wait for the route. The first `returned` of them had been sent and came back.
    held: VecDeque<P>,
    returned: usize,
}

/// A request that waits to be forwarded after its jitter.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: Time,
    request: Request,
}

/// The router of one node. `P` is a packet of any type.
#[derive(Clone, Debug)]
pub struct Aodv<P> {
    address: Address,
    config: AodvConfig,
    jitter: Stream,
    /// Own sequence number.
    sequence: u16,
    /// Identifier of the last request.
    id: u16,
    routes: Routes,
    discoveries: Vec<Discovery<P>>,
    /// By destination: packets that came back since one was delivered.
    returns: BTreeMap<Address, u32>,
    waiting: Vec<Waiting>,
    outputs: VecDeque<Output<P>>,
    stats: AodvStats,
}

impl<P> Aodv<P> {
    /// A router without any routes. Draws its jitter from the stream of `key`.
    ///
    /// # Errors
    /// [`AodvError`] names the field that is out of its range.
    pub fn new(address: Address, config: AodvConfig, key: StreamKey) -> Result<Self, AodvError> {
        config.check()?;
        Ok(Aodv {
            address,
            config,
            jitter: key.stream(),
            sequence: 0,
            id: 0,
            routes: Routes::default(),
            discoveries: Vec::new(),
            returns: BTreeMap::new(),
            waiting: Vec::new(),
            outputs: VecDeque::new(),
            stats: AodvStats::default(),
        })
    }

    /// Counters.
    pub fn stats(&self) -> &AodvStats {
        &self.stats
    }

    /// The valid route to a destination.
    pub fn route(&self, destination: Address) -> Option<&Route> {
        self.routes.valid(destination)
    }

    /// Every route ever known, by destination.
    pub fn routes(&self) -> &[Route] {
        self.routes.all()
    }

    /// Packets that wait for a route.
    pub fn held_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.discoveries.iter_mut().flat_map(|discovery| discovery.held.iter_mut())
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        self.outputs.pop_front()
    }

    /// When to call [`Aodv::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        let due = self.discoveries.iter().map(|discovery| discovery.due);
        due.chain(self.waiting.iter().map(|waiting| waiting.at)).min()
    }

    /// Sends a packet that originates here.
    pub fn send(&mut self, now: Time, destination: Address, packet: P) {
        if let Some(route) = self.routes.valid(destination) {
            self.stats.packets += 1;
            self.stats.packet_hops += u64::from(route.cost.hops);
            self.outputs.push_back(Output::Forward(route.next, packet));
        } else {
            self.hold(now, destination, packet, false);
        }
    }

    /// Forwards a packet from a neighbour (RFC 3561, 6.11, case ii, if there is no route).
    pub fn pass_on(&mut self, from: Address, destination: Address, packet: P) {
        if let Some(route) = self.routes.get_mut(destination).filter(|route| route.is_valid) {
            route.add_precursor(from);
            return self.outputs.push_back(Output::Forward(route.next, packet));
        }
        let sequence = self.routes.get(destination).map_or(0, |route| route.sequence);
        self.stats.dropped += 1;
        self.outputs.push_back(Output::Drop(packet));
        self.tell_error(&[from], vec![Lost { destination, sequence }]);
    }

    /// The link layer's outcome for a packet sent to `next`. `own`: the packet, if it originated
    /// here.
    pub fn handle_outcome(
        &mut self,
        now: Time,
        (next, destination): (Address, Address),
        is_delivered: bool,
        own: Option<P>,
    ) {
        if is_delivered {
            if own.is_some() {
                self.returns.remove(&destination);
            }
            return;
        }
        let was_on_it = self.routes.valid(destination).is_some_and(|route| route.next == next);
        self.lose_link(next);
        self.stats.links_lost += u64::from(was_on_it);
        if let Some(packet) = own {
            let returns = self.returns.entry(destination).or_default();
            *returns += 1;
            if *returns > RETURNS_MAX {
                self.returns.remove(&destination);
                self.stats.dropped += 1;
                return self.outputs.push_back(Output::Drop(packet));
            }
            // What was sent before the route was lost goes again, ahead of packets that have waited
            // since.
            match self.routes.valid(destination) {
                Some(route) => self.outputs.push_back(Output::Forward(route.next, packet)),
                None => self.hold(now, destination, packet, true),
            }
        }
    }

    /// Handles a neighbour's message that was received with this link quality indication.
    pub fn handle_message(&mut self, now: Time, from: Address, lqi: u8, message: &Message) {
        let quality = self.config.curve.quality(lqi);
        match message {
            Message::Request(request) => {
                let cost = request.cost.with_link(quality);
                self.handle_request(now, from, Request { cost, ..*request });
            }
            Message::Reply(reply) => {
                let cost = reply.cost.with_link(quality);
                self.handle_reply(now, from, Reply { cost, ..*reply });
            }
            Message::Error(lost) => self.handle_error(from, lost),
        }
    }

    /// Handles what is due at `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(place) = self.waiting.iter().position(|waiting| waiting.at <= now) {
            let request = self.waiting.remove(place).request;
            self.broadcast_request(request);
        }
        while let Some(place) = self.discoveries.iter().position(|each| each.due <= now) {
            let limit = self.discoveries[place].begun + self.config.discovery_limit;
            if limit <= now {
                let discovery = self.discoveries.remove(place);
                self.stats.dropped += discovery.held.len() as u64;
                self.outputs.extend(discovery.held.into_iter().map(Output::Unreachable));
            } else {
                self.request(now, place);
            }
        }
    }

    /// Holds a packet until there is a route, and begins a discovery unless one is under way.
    fn hold(&mut self, now: Time, destination: Address, packet: P, is_back: bool) {
        let known = self.discoveries.iter().position(|each| each.destination == destination);
        let place = known.unwrap_or_else(|| {
            let held = VecDeque::new();
            let (begun, due, requests, returned) = (now, now, 0, 0);
            self.discoveries.push(Discovery { destination, begun, due, requests, held, returned });
            self.discoveries.len() - 1
        });
        let Discovery { held, returned, .. } = &mut self.discoveries[place];
        if held.len() >= HELD_MAX {
            self.stats.dropped += 1;
            self.outputs.push_back(Output::Unreachable(packet));
        } else if is_back {
            held.insert(*returned, packet);
            *returned += 1;
        } else {
            held.push_back(packet);
        }
        if known.is_none() {
            self.stats.discoveries += 1;
            self.request(now, place);
        }
    }

    /// Sends a request, and waits twice as long as for the previous one (RFC 3561, 6.3).
    fn request(&mut self, now: Time, place: usize) {
        let AodvConfig { discovery_wait, discovery_limit, .. } = self.config;
        let discovery = &mut self.discoveries[place];
        let wait = discovery_wait.saturating_mul(1 << discovery.requests.min(20));
        discovery.due = (now + wait).min(discovery.begun + discovery_limit);
        discovery.requests += 1;
        let destination = discovery.destination;
        // RFC 3561, 6.1: before a discovery, so that older routes to this node are not taken for
        // newer.
        self.sequence = self.sequence.wrapping_add(1);
        self.id = self.id.wrapping_add(1);
        let destination_sequence = self.routes.get(destination).map(|route| route.sequence);
        self.broadcast_request(Request {
            id: self.id,
            destination,
            destination_sequence,
            origin: self.address,
            origin_sequence: self.sequence,
            cost: Cost::NONE,
        });
    }

    /// RFC 3561, 6.5.
    fn handle_request(&mut self, now: Time, from: Address, request: Request) {
        let Request { id, destination, origin, origin_sequence: sequence, cost, .. } = request;
        let metric = self.config.metric;
        if origin == self.address {
            return;
        }
        let news = self.routes.news(metric, origin, id, cost);
        if news == News::Stale || news == News::Better && !self.config.takes_better_copies {
            return;
        }
        if self.routes.take(metric, Heard { destination: origin, next: from, cost, sequence }) {
            self.release(now, origin);
        }
        if destination == self.address {
            self.reply(from, &request, news);
        } else if cost.hops < self.config.hops_max {
            // The newest number known to any node on the path: after a route was lost, older routes
            // must not be accepted.
            let own = self.routes.get(destination).map(|route| route.sequence);
            let told = request.destination_sequence;
            let newest = match (told, own) {
                (Some(told), Some(own)) if is_newer(own, told) => Some(own),
                (told, own) => told.or(own),
            };
            self.pass_request_on(now, Request { destination_sequence: newest, ..request });
        }
    }

    /// Forwards a request after a jitter, in place of a worse copy that still waits.
    fn pass_request_on(&mut self, now: Time, request: Request) {
        let is_same = |waiting: &&mut Waiting| {
            (waiting.request.origin, waiting.request.id) == (request.origin, request.id)
        };
        if let Some(waiting) = self.waiting.iter_mut().find(is_same) {
            waiting.request = request;
        } else if self.waiting.len() < WAITING_MAX {
            let at = now + self.config.jitter(self.jitter.next_u32());
            self.waiting.push(Waiting { at, request });
        }
    }

    /// The destination answers with its own sequence number, which is at least the one that the
    /// origin has heard (RFC 3561, 6.6.1), and increases it with each request: nodes that already
    /// have a route to it forward nothing as old as that route. In RFC 3561 such nodes would answer
    /// themselves.
    fn reply(&mut self, to: Address, request: &Request, news: News) {
        if news == News::New {
            self.sequence = self.sequence.wrapping_add(1);
        }
        if let Some(known) = request.destination_sequence
            && is_newer(known, self.sequence)
        {
            self.sequence = known;
        }
        let reply = Reply {
            destination: self.address,
            destination_sequence: self.sequence,
            origin: request.origin,
            cost: Cost::NONE,
        };
        self.stats.replies += 1;
        self.tell(to, Message::Reply(reply));
    }

    /// RFC 3561, 6.7.
    fn handle_reply(&mut self, now: Time, from: Address, reply: Reply) {
        let Reply { destination, destination_sequence: sequence, origin, cost } = reply;
        if destination == self.address {
            return;
        }
        let heard = Heard { destination, next: from, cost, sequence };
        if !self.routes.take(self.config.metric, heard) {
            return;
        }
        self.release(now, destination);
        if origin == self.address {
            return;
        }
        // Without a route back the origin gets no reply, and asks again.
        let Some(back) = self.routes.get_mut(origin).filter(|route| route.is_valid) else { return };
        back.add_precursor(from);
        let to = back.next;
        if let Some(route) = self.routes.get_mut(destination) {
            route.add_precursor(to);
        }
        self.stats.replies += 1;
        self.tell(to, Message::Reply(reply));
    }

    /// RFC 3561, 6.11, case iii: routes by this neighbour to the destinations that it has lost end.
    fn handle_error(&mut self, from: Address, lost: &[Lost]) {
        let mut told = Told::default();
        for &Lost { destination, sequence } in lost {
            let route = self.routes.get_mut(destination);
            let Some(route) = route.filter(|route| route.is_valid && route.next == from) else {
                continue;
            };
            // With a smaller number, an older route could be taken for a replacement of the one
            // that ends.
            let next = route.sequence.wrapping_add(1);
            route.sequence = if is_newer(sequence, route.sequence) { sequence } else { next };
            told.end(route);
        }
        self.tell_errors(told);
    }

    /// RFC 3561, 6.11, case i: all routes by a neighbour end.
    fn lose_link(&mut self, next: Address) {
        let mut told = Told::default();
        for route in self.routes.all_mut() {
            if route.is_valid && route.next == next {
                route.sequence = route.sequence.wrapping_add(1);
                told.end(route);
            }
        }
        self.tell_errors(told);
    }

    fn tell_errors(&mut self, told: Told) {
        let Told { precursors, lost } = told;
        for lost in lost.chunks(LOST_MAX) {
            self.tell_error(&precursors, lost.to_vec());
        }
    }

    /// Sends an error to the only precursor, or to all neighbours (RFC 3561, 6.11); to none without
    /// precursors.
    fn tell_error(&mut self, precursors: &[Address], lost: Vec<Lost>) {
        let message = Message::Error(lost);
        match precursors {
            [] => return,
            [one] => self.tell(*one, message),
            _ => self.broadcast(message),
        }
        self.stats.errors += 1;
    }

    /// Sends the packets that waited for a route.
    fn release(&mut self, now: Time, destination: Address) {
        let found = self.discoveries.iter().position(|each| each.destination == destination);
        let Some(place) = found else { return };
        let discovery = self.discoveries.remove(place);
        self.stats.found += 1;
        self.stats.found_after_ns += now.since(discovery.begun).as_nanos() as u64;
        for packet in discovery.held {
            self.send(now, destination, packet);
        }
    }

    fn broadcast_request(&mut self, request: Request) {
        self.stats.requests += 1;
        self.broadcast(Message::Request(request));
    }

    fn broadcast(&mut self, message: Message) {
        self.stats.message_bytes += message.to_bytes().len() as u64;
        self.outputs.push_back(Output::Broadcast(message));
    }

    fn tell(&mut self, to: Address, message: Message) {
        self.stats.message_bytes += message.to_bytes().len() as u64;
        self.outputs.push_back(Output::Unicast(to, message));
    }
}

/// Broken routes, and the neighbours to inform.
#[derive(Default)]
struct Told {
    precursors: Vec<Address>,
    lost: Vec<Lost>,
}

impl Told {
    /// Ends a route; its precursors are informed once.
    fn end(&mut self, route: &mut Route) {
        route.is_valid = false;
        let precursors = core::mem::take(&mut route.precursors);
        if precursors.is_empty() {
            return;
        }
        self.lost.push(Lost { destination: route.destination, sequence: route.sequence });
        for precursor in precursors {
            if let Err(place) = self.precursors.binary_search(&precursor) {
                self.precursors.insert(place, precursor);
            }
        }
    }
}
