//! Drives the nodes of a mesh as daemons drive them, and checks what is delivered.

mod underlay;

use core::fmt;
use core::time::Duration;

use corridor_base::Time;
use corridor_base::rand::Rng;
use corridor_proto::bounds::{REKEY_AFTER_TIME, SESSION_FRAMES_MAX};
use corridor_proto::inspect::Inspection;
use corridor_proto::relay::in_order::HELD_MAX;
use corridor_proto::relay::{OWED_MAX, Sent};
use corridor_proto::{AnyStation, Event, FrameOutcome, PacketOutcome, Unsealer};
use corridor_testbed::{Next, Schedule};

use super::packet::{self, Carried};
use super::{HOPS, Mesh, MeshKind};
use crate::addresses::Address;
use crate::adversary::Liars;
use crate::coverage::{Coverage, Feature};
use crate::draw::Dice;
use crate::driver::{AFTER_INSIDER, Trace};
use crate::invariants::{Broken, Invariant, Violation, check_bounds, check_memory, ensure};
use crate::network::Network;
use crate::nonces::Nonces;
use crate::parts::Parts;
use crate::scenario::Scenario;
use crate::subject::Fault;
use crate::underlay::Underlay;

/// Longest time until rest once the network is calm: decoders and encoders give up after their
/// deadlines, and sessions are searched for.
const REST_MAX: Duration = Duration::from_secs(60);
/// Longest time that packets in flight take, summed over all hops.
const ON_THE_WAY_MAX: Duration = Duration::from_secs(2);
/// How often to check whether everything is at rest.
const REST_ASKED: Duration = Duration::from_millis(200);
/// Longest time for which a frame may be held up on its way to a relay that still has to know what
/// came before: a quarter of the time for which packets are kept, since retransmissions take up to
/// three quarters. Deliberately not `RelayConfig::held_up_for`, which this checks.
const HELD_UP_MAX: Duration = Duration::from_millis(1_500 / 4);
/// Frames recorded, to be altered.
const RECORDED_MAX: usize = 64;
const EVENTS_MAX: u64 = 5_000_000;
const IDLE_ROUNDS_MAX: u32 = 4;
/// How often MACs report their retries, and the attempts of a retried frame.
const MAC_TELLS: Duration = Duration::from_millis(100);

enum Happening {
    Frame {
        to: usize,
        bytes: Vec<u8>,
        origin: Origin,
    },
    /// As `Frame`, between addresses.
    Datagram {
        from: Address,
        to: Address,
        bytes: Vec<u8>,
        origin: Origin,
    },
    Room(usize),
    Packet(usize),
    Die(usize),
    Start(usize),
    Jump(usize, Duration),
    /// The longest frame that a node's interface accepts changes.
    Mtu(usize, usize),
    /// The relays' MACs report retries.
    Retries,
    /// The hub removes a member.
    Remove(usize),
    /// The hub admits it again.
    Admit(usize),
    /// A node's address changes, possibly back to its initial one.
    Move(usize, bool),
    Calm,
}

impl Happening {
    /// Whether the network causes it, and not the scenario.
    fn is_of_network(&self) -> bool {
        use Happening::{Datagram, Frame, Room};
        matches!(self, Frame { .. } | Datagram { .. } | Room(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Station,
    /// As it was sent, once more or late.
    Echo,
    /// As `Echo`, so late that the receiver may have forgotten what came before.
    HeldUp,
    /// No station has sealed it.
    Forged,
    /// A malicious neighbour has sealed it.
    Insider,
}

struct Seat {
    station: Option<AnyStation>,
    ahead: Duration,
    underlay: Underlay,
    /// How often the hub has removed or admitted it.
    changes: u32,
}

impl Seat {
    /// Whether the hub has removed it.
    fn is_out(&self) -> bool {
        self.changes % 2 == 1
    }
}

/// A packet that a host has sent.
struct Sending {
    from: usize,
    to: usize,
    bytes: Vec<u8>,
    /// Whether its source address is the host's own.
    is_honest: bool,
    /// How often the hub had removed or admitted its sender.
    changes: u32,
    came: u32,
}

/// A run in progress.
pub(crate) struct MeshDriver<'a> {
    scenario: &'a Scenario,
    mesh: &'a Mesh,
    now: Time,
    seats: Vec<Seat>,
    network: Network<'a>,
    nonces: Nonces,
    schedule: Schedule<Happening>,
    /// Scheduled events that have not happened yet, other than frames and room.
    planned: usize,
    sent: Vec<Sending>,
    dice: Dice,
    recorded: Vec<(Time, Vec<u8>)>,
    /// Frames that were accepted although an adversary had held them up.
    held_up: u32,
    insider: Option<Unsealer>,
    liar: Liars,
    parts: Parts,
    starts: u64,
    trace: Option<Trace<'a>>,
    pub(crate) events: u64,
    pub(crate) coverage: Coverage,
}

impl<'a> MeshDriver<'a> {
    pub(crate) fn new(scenario: &'a Scenario, mesh: &'a Mesh, trace: Option<Trace<'a>>) -> Self {
        let seed = scenario.seed;
        let seat = |node: u64| Seat {
            station: None,
            ahead: Duration::from_millis(Dice::new(seed, node, "torture clock").below(1_000_000)),
            underlay: Underlay::new(mesh.frame_len_max.into()),
            changes: 0,
        };
        let peers_of = |node: usize| {
            let neighbours = mesh.neighbours(node).into_iter();
            neighbours.map(|peer| (Mesh::id(peer), peer)).collect()
        };
        let peers = (0..usize::from(mesh.nodes)).map(peers_of).collect();
        let mut driver = MeshDriver {
            scenario,
            mesh,
            now: Time::ZERO,
            seats: (0..u64::from(mesh.nodes)).map(seat).collect(),
            network: Network::new(scenario, peers),
            nonces: Nonces::default(),
            schedule: Schedule::new(),
            planned: 0,
            sent: Vec::new(),
            dice: Dice::new(seed, 0, "torture mesh run"),
            recorded: Vec::new(),
            held_up: 0,
            insider: (scenario.insider_ppm > 0).then(|| Unsealer::new([0x42; 32])),
            liar: Liars::new(seed),
            parts: Parts::new((0..mesh.nodes.into()).map(|node| mesh.config(node))),
            starts: 0,
            trace,
            events: 0,
            coverage: Coverage::default(),
        };
        driver.plan();
        driver
    }

    /// The network's time.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    fn plan(&mut self) {
        let ms = |ms: u32| Time::from_millis(ms.into());
        let span_ns = 1_000_000 * u64::from(self.scenario.span_ms);
        for node in 0..self.seats.len() {
            for _ in 0..self.mesh.packets {
                let at = Time::from_nanos(self.dice.below(span_ns));
                self.happen(at, Happening::Packet(node));
            }
        }
        for restart in &self.scenario.restarts {
            let node = self.node(restart.station);
            self.happen(ms(restart.at_ms), Happening::Die(node));
            let at = ms(restart.at_ms.saturating_add(restart.down_ms));
            self.happen(at, Happening::Start(node));
        }
        for jump in &self.scenario.jumps {
            let by = Duration::from_millis(jump.by_ms.into());
            let node = self.node(jump.station);
            self.happen(ms(jump.at_ms), Happening::Jump(node, by));
        }
        for change in &self.scenario.mtus {
            let node = self.node(change.station);
            self.happen(ms(change.at_ms), Happening::Mtu(node, change.len.into()));
        }
        for removal in &self.mesh.removals {
            let node = usize::from(removal.node);
            self.happen(ms(removal.at_ms), Happening::Remove(node));
            if removal.again_ms > 0 {
                let at = ms(removal.at_ms.saturating_add(removal.again_ms));
                self.happen(at, Happening::Admit(node));
            }
        }
        for it in self.scenario.addresses.iter().flat_map(|addresses| &addresses.moves) {
            self.happen(ms(it.at_ms), Happening::Move(it.station.into(), it.back));
        }
        if self.mesh.kind == MeshKind::RelayRow {
            let mut at = Time::ZERO + MAC_TELLS;
            while at < ms(self.scenario.span_ms) {
                self.happen(at, Happening::Retries);
                at += MAC_TELLS;
            }
        }
        self.happen(ms(self.scenario.span_ms), Happening::Calm);
        if self.scenario.is_perfect() {
            self.network.calm_down();
        }
    }

    /// The node that a station of the scenario's pairs stands for.
    fn node(&self, station: u8) -> usize {
        let of_seed = self.scenario.seed % u64::from(self.mesh.nodes);
        (usize::from(station) + of_seed as usize) % self.seats.len()
    }

    fn happen(&mut self, at: Time, what: Happening) {
        self.planned += usize::from(!what.is_of_network());
        self.schedule.happen(at, what);
    }

    fn say(&mut self, what: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace(self.now, what);
        }
    }

    // ---- the run ------------------------------------------------------------------------------

    /// Runs the scenario to its end.
    pub(crate) fn run(&mut self) -> Result<(), Violation> {
        self.run_checked().map_err(|(invariant, text)| Violation {
            invariant,
            at_ns: self.now.as_nanos(),
            text,
        })
    }

    fn run_checked(&mut self) -> Result<(), Broken> {
        (0..self.seats.len()).try_for_each(|node| self.start(node))?;
        while self.planned > 0 {
            self.step()?;
        }
        if self.insider.is_some() {
            // As for pairs, rest cannot be expected.
            return self.run_until(self.now + AFTER_INSIDER);
        }
        let calm_at = self.now;
        while !self.is_at_rest() {
            ensure(self.now - calm_at < REST_MAX, Invariant::Stuck, || self.what_waits())?;
            self.run_until(self.now + REST_ASKED)?;
        }
        if self.scenario.is_perfect() {
            // Plain forwarders keep no state of packets in flight.
            self.run_until(self.now + ON_THE_WAY_MAX)?;
            self.check_perfection()?;
        }
        Ok(())
    }

    fn run_until(&mut self, until: Time) -> Result<(), Broken> {
        while self.schedule.next().is_some_and(|at| at <= until) {
            self.step()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn step(&mut self) -> Result<(), Broken> {
        let Some((at, next)) = self.schedule.pop() else {
            return Err((Invariant::Stuck, "nothing will ever happen again".to_owned()));
        };
        self.now = self.now.max(at);
        self.events += 1;
        ensure(self.events < EVENTS_MAX, Invariant::Spin, || format!("{EVENTS_MAX} events"))?;
        let what = match next {
            Next::Happens(what) => what,
            Next::Wakes(node) => {
                let seat = &mut self.seats[node];
                if let Some(station) = &mut seat.station {
                    station.handle_timeout(self.now + seat.ahead);
                }
                return self.settle(node);
            }
        };
        self.planned -= usize::from(!what.is_of_network());
        match what {
            Happening::Frame { to, bytes, origin } => self.frame(None, to, &bytes, origin),
            Happening::Datagram { from, to, bytes, origin } => {
                let hearer = self.network.internet.as_ref().and_then(|it| it.owner(to));
                hearer.map_or(Ok(()), |hearer| self.frame(Some(from), hearer, &bytes, origin))
            }
            Happening::Room(node) => self.settle(node),
            Happening::Packet(from) => self.packet(from),
            Happening::Die(node) => {
                self.coverage.add(Feature::EndpointRestarts, 1);
                self.seats[node].station = None;
                self.schedule.wake(node, None);
                Ok(())
            }
            Happening::Start(node) if self.seats[node].station.is_none() => self.start(node),
            Happening::Start(_) => Ok(()),
            Happening::Jump(node, by) => {
                self.coverage.add(Feature::ClockJumps, 1);
                self.seats[node].ahead += by;
                self.settle(node)
            }
            Happening::Mtu(node, len) => self.change_mtu(node, len),
            Happening::Retries => self.tell_retries(),
            Happening::Remove(node) | Happening::Admit(node) => self.change_member(node),
            Happening::Move(node, back) => {
                let Some(internet) = &mut self.network.internet else { return Ok(()) };
                internet.move_station(node, back);
                let at = internet.address(node);
                self.say(format_args!("node {node} is at {at} from here on"));
                self.coverage.add(Feature::AddressesChanged, 1);
                Ok(())
            }
            Happening::Calm => {
                self.network.calm_down();
                for station in self.seats.iter_mut().filter_map(|seat| seat.station.as_mut()) {
                    station.set_rekey_interval(REKEY_AFTER_TIME);
                    station.set_session_frames(SESSION_FRAMES_MAX);
                }
                Ok(())
            }
        }
    }

    fn start(&mut self, node: usize) -> Result<(), Broken> {
        let mut entropy = [0; 32];
        let dice = &mut Dice::new(self.scenario.seed, self.starts, "torture mesh entropy");
        dice.0.fill_bytes(&mut entropy);
        self.starts += 1;
        let seat = &mut self.seats[node];
        let local = self.now + seat.ahead;
        let left_out: Vec<bool> = self.seats.iter().map(Seat::is_out).collect();
        let made = self.mesh.start(node, &left_out, entropy, local);
        let mut station = made.map_err(|error| (Invariant::Panic, error.to_string()))?;
        if !self.network.is_calm() {
            if let Some(keys) = self.mesh.keys.filter(|keys| keys.rekey_ms > 0) {
                station.set_rekey_interval(Duration::from_millis(keys.rekey_ms.into()));
            }
            if self.mesh.session_frames > 0 {
                station.set_session_frames(self.mesh.session_frames);
            }
        }
        if let Some(internet) = &mut self.network.internet {
            let fault = self.scenario.plant.map(|plant| plant.fault);
            let called = internet.start(node, 0, fault);
            station.reach_out(local, &called);
            for out in (0..left_out.len()).filter(|&at| node == 0 && left_out[at]) {
                internet.change_peer(0, Mesh::id(out), false);
            }
        }
        self.nonces.started(node);
        let underlay = &self.seats[node].underlay;
        if underlay.is_limited() {
            station.limit_frames(local, underlay.frame_len());
        }
        self.seats[node].station = Some(station);
        self.say(format_args!("node {node} starts"));
        self.settle(node)
    }

    /// Changes the longest frame that a node's interface accepts, and tells the node.
    fn change_mtu(&mut self, node: usize, len: usize) -> Result<(), Broken> {
        let seat = &mut self.seats[node];
        let (local, len) = (self.now + seat.ahead, seat.underlay.limit(len));
        if let Some(station) = &mut seat.station {
            station.limit_frames(local, len);
        }
        self.coverage.add(Feature::MtusChanged, 1);
        self.say(format_args!("node {node} sends frames of {len} bytes at most"));
        self.settle(node)
    }

    /// The hub removes or admits a member, while the others continue.
    fn change_member(&mut self, node: usize) -> Result<(), Broken> {
        self.seats[node].changes += 1;
        self.coverage.add(Feature::MembersChanged, 1);
        let left_out: Vec<bool> = self.seats.iter().map(Seat::is_out).collect();
        let config = self.mesh.hub_config(0, &left_out);
        let mut entropy = [0; 32];
        self.dice.0.fill_bytes(&mut entropy);
        let local = self.now + self.seats[0].ahead;
        let before = self.members(node);
        let Some(hub) = &mut self.seats[0].station else { return Ok(()) };
        let changed = hub.set_neighbours(&config, entropy, local);
        let expected = format!("the hub takes a change of node {node}");
        ensure(changed == Ok(true), Invariant::Panic, || format!("{expected}: {changed:?}"))?;
        if let Some(internet) = &mut self.network.internet {
            internet.change_peer(0, Mesh::id(node), !left_out[node]);
        }
        let anew = Fault::StartsMembersAnew;
        if self.scenario.plant.is_some_and(|plant| plant.fault == anew) {
            let made = self.mesh.start(0, &left_out, entropy, local);
            self.seats[0].station = made.ok();
        }
        let after = self.members(node);
        ensure(before == after, Invariant::Members, || {
            format!("node {node} came or went, and others were {before:?} and are {after:?}")
        })?;
        self.coverage.add(Feature::MembersStayed, after.len() as u64);
        self.say(format_args!("node {node} is left out: {}", left_out[node]));
        self.settle(0)
    }

    /// The state of the hub's stations for all members but one, which comes or goes.
    fn members(&self, but: usize) -> Vec<(u16, Inspection)> {
        let hub = self.seats[0].station.as_ref().and_then(|station| station.hub());
        let stays = |node: &usize| *node != but && !self.seats[*node].is_out();
        let view = |node: usize| {
            let station = hub?.station(Mesh::id(node))?;
            // A station's events may go to the hub at any time.
            Some((Mesh::id(node).0, Inspection { events: 0, ..station.inspect() }))
        };
        (1..self.seats.len()).filter(stays).filter_map(view).collect()
    }

    // ---- packets ------------------------------------------------------------------------------

    fn packet(&mut self, from: usize) -> Result<(), Broken> {
        let (count, dice) = (self.seats.len(), &mut self.dice);
        let to = (from + 1 + dice.below(count as u64 - 1) as usize) % count;
        let hops = if dice.below(8) == 0 { 1 + dice.below(6) as u8 } else { HOPS };
        let class = dice.below(256) as u8;
        // A false source only from a node whose packets pass a hub or a relay.
        let may_lie = !self.mesh.neighbours(from).contains(&to) && dice.below(16) == 0;
        let source = if may_lie { packet::nobody() } else { packet::address(from) };
        let seat = &mut self.seats[from];
        let Some(station) = &mut seat.station else { return Ok(()) };
        let most = usize::from(self.mesh.packet_len_max).min(station.tunnel_mtu()) as u64;
        let number = self.sent.len() as u32;
        // Relays deliver TCP in order without changing its segments; hubs change them.
        let is_segment = self.mesh.kind == MeshKind::RelayRow && !number.is_multiple_of(3);
        let carried = if is_segment { Carried::Segment } else { Carried::Datagram };
        let least = carried.len_min() as u64;
        let len = least + dice.below(most.saturating_sub(least) + 1);
        let ends = (source, packet::address(to));
        let bytes = packet::write(carried, ends, (number, len as usize), (class, hops));
        let outcome = station.handle_packet(self.now + seat.ahead, &bytes);
        self.say(format_args!("host of {from}: packet {number} for {to}: {outcome:?}"));
        let right = match outcome {
            PacketOutcome::Accepted => true,
            PacketOutcome::QueueFull => false,
            // Relays know who can be reached, and hubs know whom they have removed.
            PacketOutcome::NoRoute if self.mesh.kind == MeshKind::RelayRow => false,
            PacketOutcome::NoRoute if from == 0 && self.seats[to].is_out() => false,
            other => return Err((Invariant::Delivery, format!("a packet for {to}: {other:?}"))),
        };
        if right {
            let (is_honest, changes) = (!may_lie, self.seats[from].changes);
            self.sent.push(Sending { from, to, bytes, is_honest, changes, came: 0 });
        }
        self.settle(from)
    }

    fn deliver(&mut self, node: usize, bytes: &[u8]) -> Result<(), Broken> {
        let Some(number) = packet::number(bytes) else {
            // A router's (ICMP) message.
            self.coverage.add(Feature::MeshMessages, 1);
            return Ok(());
        };
        if self.insider.is_some() {
            return Ok(());
        }
        let has_restarts = !self.scenario.restarts.is_empty();
        let (mesh, sent) = (self.mesh, self.sent.get_mut(number as usize));
        // Packets for a removed member go to the hub's host, as for any unknown destination.
        let is_for_outsider = |to: usize| node == 0 && to > 0 && self.seats[to].changes > 0;
        if sent.as_ref().is_some_and(|sent| sent.is_honest && is_for_outsider(sent.to)) {
            return Ok(());
        }
        let Some(sent) = sent.filter(|sent| sent.to == node && sent.is_honest) else {
            return Err((Invariant::Delivery, format!("node {node} got packet {number}")));
        };
        sent.came += 1;
        // An admitted member begins a new session, like a node that restarts; others do not.
        let restarts = has_restarts
            || [sent.from, sent.to].iter().any(|&at| {
                self.mesh.removals.iter().any(|removal| usize::from(removal.node) == at)
            });
        let sender = &self.seats[sent.from];
        ensure(!sender.is_out() || sent.changes < sender.changes, Invariant::Delivery, || {
            format!("packet {number} at node {node}: its sender had been left out")
        })?;
        let forwarders = mesh.forwarders(sent.from, sent.to);
        let fault = packet::fault(&sent.bytes, bytes, forwarders);
        ensure(fault.is_none(), Invariant::Delivery, || {
            format!("packet {number} at node {node}: {}", fault.unwrap_or_default())
        })?;
        // A relay that has heard nothing newer from a neighbour accepts a frame that was held up.
        let again = if mesh.kind == MeshKind::RelayRow { self.held_up } else { 0 };
        ensure(restarts || sent.came <= 1 + again, Invariant::Delivery, || {
            format!("packet {number} came out {} times", sent.came)
        })?;
        self.coverage.add(Feature::MeshHeldUpTwice, u64::from(!restarts && sent.came > 1));
        self.coverage.add(Feature::MeshForwarded, forwarders.into());
        Ok(())
    }

    /// Without losses, what is not delivered was dropped by a queue, or had reached its hop limit.
    fn check_perfection(&self) -> Result<(), Broken> {
        let stays = |node: usize| {
            !self.mesh.removals.iter().any(|removal| usize::from(removal.node) == node)
        };
        let of_members = self.sent.iter().filter(|sent| stays(sent.from) && stays(sent.to));
        let missing = of_members.filter(|sent| sent.came == 0).count() as u64;
        let mut counted = 0;
        let staying = (0..self.seats.len()).filter(|&node| stays(node));
        for station in staying.filter_map(|node| self.seats[node].station.as_ref()) {
            let stats = station.stats();
            counted += stats.packets_dropped_ingress + stats.packets_dropped_codel;
            counted += stats.packets_stale;
            counted += stats.packets_given_up + stats.symbols_given_up;
            // A packet too long for the next hop is reported to its sender.
            counted += stats.packets_refused;
            if let Some(hub) = station.hub_stats() {
                counted += hub.packets_expired + hub.packets_wrong_source + hub.packets_link_local;
            }
            if let Some(relay) = station.relay() {
                let relay = relay.relay_counters();
                counted += relay.relay_queue_drops + relay.relay_codel_drops;
                counted += relay.relay_packets_expired;
                counted += relay.relay_packets_unreachable + relay.relay_packets_wrong_source;
                counted += relay.relay_decode_failures + relay.relay_packets_too_long;
                // Overtaken by the first packet that one end heard of another.
                counted += relay.relay_packets_replayed;
            }
        }
        ensure(missing <= counted, Invariant::Perfection, || {
            format!("{missing} packets are missing, {counted} were counted")
        })
    }

    // ---- frames -------------------------------------------------------------------------------

    /// A node receives a frame, from some address if there are addresses.
    fn frame(
        &mut self,
        at: Option<Address>,
        to: usize,
        bytes: &[u8],
        origin: Origin,
    ) -> Result<(), Broken> {
        let seat = &mut self.seats[to];
        let local = self.now + seat.ahead;
        let Some(station) = &mut seat.station else { return Ok(()) };
        let outcome = station.handle_frame(local, bytes);
        if let (Some(internet), Some(at)) = (&mut self.network.internet, at)
            && let Some(peer) = internet.book(to).hear(local, at, outcome, bytes.len())?
        {
            station.note_path_changed(local, Some(peer));
            self.coverage.add(Feature::AddressesFollowed, 1);
        }
        self.say(format_args!("{to} hears {} bytes ({origin:?}): {outcome:?}", bytes.len()));
        let accepted = !matches!(outcome, FrameOutcome::Rejected(_));
        if origin == Origin::Insider && accepted {
            self.coverage.add(Feature::InsiderAccepted, 1);
        }
        let from = match outcome {
            FrameOutcome::Accepted { from }
            | FrameOutcome::Handshake { from }
            | FrameOutcome::Initiation { from }
            | FrameOutcome::Answered { from, .. } => Some(from),
            FrameOutcome::Noted | FrameOutcome::Rejected(_) => None,
        };
        self.held_up += u32::from(origin == Origin::HeldUp && accepted);
        let is_out = |node: usize| self.seats[node].is_out();
        let of_outsider = from.is_some_and(|id| {
            (1..self.seats.len()).any(|node| id == Mesh::id(node) && is_out(node))
        });
        ensure(!(to == 0 && of_outsider), Invariant::Forgery, || {
            format!("the hub took a frame of whom it leaves out: {outcome:?}")
        })?;
        ensure(!(origin == Origin::Forged && accepted), Invariant::Forgery, || {
            format!("node {to} took a forged frame of {} bytes: {outcome:?}", bytes.len())
        })?;
        self.settle(to)
    }

    /// The relays' MACs report recent retries, with arbitrary numbers.
    fn tell_retries(&mut self) -> Result<(), Broken> {
        for node in 0..self.seats.len() {
            let frames = self.dice.below(40);
            let sent = Sent {
                frames,
                retries: self.dice.below(frames + 1),
                failed: self.dice.below(frames + 1) / 8,
            };
            let neighbours = self.mesh.neighbours(node);
            let to = Mesh::id(self.dice.pick(&neighbours));
            let seat = &mut self.seats[node];
            let Some(station) = &mut seat.station else { continue };
            station.handle_retries(self.now + seat.ahead, to, sent);
            self.settle(node)?;
        }
        Ok(())
    }

    /// Whether a peer of a node may have restarted, or a star's hub has admitted it again.
    fn may_restart(&self, node: usize) -> bool {
        let is_changed = |node: usize| self.seats[node].changes > 0;
        let by_hub =
            if node == 0 { (1..self.seats.len()).any(is_changed) } else { is_changed(node) };
        !self.scenario.restarts.is_empty() || self.insider.is_some() || by_hub
    }

    /// Drains a node after an input, as a driver does, and inspects it.
    fn settle(&mut self, node: usize) -> Result<(), Broken> {
        let mut idle = 0;
        loop {
            let has_room = self.has_room(node);
            let seat = &mut self.seats[node];
            let local = self.now + seat.ahead;
            let Some(station) = &mut seat.station else { return Ok(()) };
            let mut delivered = Vec::new();
            while let Some(packet) = station.poll_packet() {
                delivered.push(packet.bytes().to_vec());
            }
            let mut restarted = 0;
            while let Some(event) = station.poll_event() {
                restarted += u64::from(matches!(event, Event::SessionUp { restarted: true, .. }));
            }
            self.coverage.add(Feature::PeersRestarted, restarted);
            ensure(restarted == 0 || self.may_restart(node), Invariant::Members, || {
                format!("node {node} hears of a peer that has started anew, and none has")
            })?;
            if has_room && self.ask(node)? {
                continue;
            }
            let Some(station) = &mut self.seats[node].station else { return Ok(()) };
            let transmit = if has_room { station.poll_transmit(local) } else { None };
            let made = transmit.map(|transmit| (transmit.to, transmit.frame.to_vec()));
            let due = station.poll_timeout();
            delivered.iter().try_for_each(|packet| self.deliver(node, packet))?;
            if let Some((to, frame)) = made {
                idle = 0;
                self.send(node, to, frame)?;
                continue;
            }
            if !delivered.is_empty() {
                continue;
            }
            if !has_room || due.is_none_or(|due| due > local) {
                break;
            }
            if let Some(station) = &mut self.seats[node].station {
                station.handle_timeout(local);
            }
            idle += 1;
            ensure(idle < IDLE_ROUNDS_MAX, Invariant::Spin, || {
                format!("node {node} at {local} asks for {due:?} and does nothing")
            })?;
        }
        let seat = &mut self.seats[node];
        let Some(station) = &seat.station else { return Ok(()) };
        let local = self.now + seat.ahead;
        let due = station.poll_timeout();
        self.network.wake(&mut self.schedule, node, (self.now, seat.ahead), due);
        for station in station.stations() {
            let mut view = station.inspect();
            self.scenario.plant.iter().for_each(|plant| plant.bend_parts(node, &mut view));
            check_bounds(&view, station.config())?;
            check_memory(&view, station.memory())?;
            if self.insider.is_none() {
                self.parts.look_at_node(node, &view, station.stats().symbols_cut)?;
            }
        }
        if let Some(relay) = station.relay() {
            let view = relay.view(local);
            ensure(view.segments_held <= HELD_MAX, Invariant::Bounds, || {
                format!("{} segments wait at relay {node}", view.segments_held)
            })?;
            let waiting = view.queue.packets;
            // Retransmissions have been accepted before, and wait in addition.
            let resent = relay.relay_counters().relay_packets_resent;
            let resent = usize::try_from(resent).unwrap_or(usize::MAX).min(OWED_MAX);
            let most = usize::from(self.mesh.queue_packets) + resent;
            ensure(waiting <= most, Invariant::Bounds, || {
                format!("{waiting} packets in the queue of relay {node}, expected {most} at most")
            })?;
        }
        Ok(())
    }

    // ---- the end ------------------------------------------------------------------------------

    /// What waits at each node.
    fn waiting(&self) -> Vec<usize> {
        let of = |seat: &Seat| match &seat.station {
            Some(station) => match station.relay() {
                Some(relay) => {
                    let view = relay.view(self.now + seat.ahead);
                    view.queue.packets + view.segments_held
                }
                None => station.stations().map(|station| held(&station.inspect())).sum(),
            },
            None => 0,
        };
        // A removed member keeps packets that nobody takes.
        self.seats.iter().map(|seat| if seat.is_out() { 0 } else { of(seat) }).collect()
    }

    fn is_at_rest(&self) -> bool {
        self.waiting().iter().sum::<usize>() == 0
    }

    fn what_waits(&self) -> String {
        format!("at each node there wait still {:?}", self.waiting())
    }

    /// Counts what the run has exercised. To be called once, when it is over.
    pub(crate) fn count(&mut self) {
        let (mut coded, mut decoded, mut waits, mut secrets, mut cut) = (0, 0, 0, 0, 0);
        let (mut repairs, mut repaired, mut held_up) = (0, 0, 0);
        let (mut late, mut ordered) = (0, 0);
        for station in self.seats.iter().filter_map(|seat| seat.station.as_ref()) {
            waits += station.stats().credit_waits;
            secrets += station.stats().secrets_agreed;
            if let Some(relay) = station.relay() {
                let counters = relay.relay_counters();
                cut += relay.stats().symbols_cut;
                coded += counters.relay_frames_coded;
                self.coverage.add(Feature::TagsFailed, counters.relay_tags_failed);
                self.coverage.add(Feature::MeshReplayed, counters.relay_packets_replayed);
                decoded += counters.relay_packets_decoded;
                held_up += counters.relay_frames_held_up;
                late += counters.relay_segments_late;
                ordered += counters.relay_segments_held;
                repairs += counters.relay_repairs_sent;
                repaired += counters.relay_packets_repaired;
            }
        }
        let feature = match self.mesh.kind {
            MeshKind::HubStar => Feature::MeshHubStar,
            MeshKind::HubRow => Feature::MeshHubRow,
            MeshKind::RelayRow => Feature::MeshRelayRow,
        };
        self.coverage.add(feature, 1);
        self.coverage.add(Feature::MeshCoded, coded);
        self.coverage.add(Feature::MeshDecoded, decoded);
        self.coverage.add(Feature::MeshCut, cut);
        self.coverage.add(Feature::MeshHeldUp, held_up);
        self.coverage.add(Feature::MeshLate, late);
        self.coverage.add(Feature::MeshOrdered, ordered);
        self.coverage.add(Feature::MeshRepairs, repairs);
        self.coverage.add(Feature::MeshRepaired, repaired);
        self.coverage.add(Feature::MeshCreditWaits, waits);
        self.coverage.add(Feature::SecretsHub, secrets);
        if self.scenario.is_perfect() {
            self.coverage.add(Feature::Perfect, 1);
        }
    }
}

/// What a station has and its peer lacks: a block that is not full stays open.
fn held(view: &Inspection) -> usize {
    let window = view.window.map_or(0, |window| window.held);
    let blocks = view.encoder.iter().flat_map(|encoder| &encoder.blocks);
    let lacking = blocks.map(|block| block.symbols.saturating_sub(block.rank));
    view.ingress_packets + window + lacking.sum::<usize>()
}
