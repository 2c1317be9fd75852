//! Drives stations through a scenario, as a daemon drives one, and inspects them after every event.

mod underlay;

use core::fmt;
use core::time::Duration;

use corridor_base::Time;
use corridor_base::rand::Rng;
use corridor_proto::bounds::{
    HELLO_INTERVAL_SEARCH_MAX, HELLO_INTERVAL_SLOW, HELLO_TALKING, PENDING_SESSION_AGE_MAX,
    REKEY_AFTER_TIME, REKEY_SILENCE_HELLOS, REPORT_INTERVAL, SESSION_FRAMES_MAX,
};
use corridor_proto::{Event, FrameOutcome, Mode, PacketOutcome, Station, StationConfig};
use corridor_testbed::{Next, Schedule};

use super::addresses::Address;
use super::adversary::{Insider, Liars, Stranger};
use super::books::{Books, Least, Look};
use super::coverage::{Coverage, Feature};
use super::draw::Dice;
use super::invariants::{Broken, Invariant, Violation, ensure};
use super::network::Network;
use super::scenario::{Help, Place, Scenario};
use super::subject::Subject;
use super::underlay::Underlay;
use super::window_packet::PACKET_LEN_MIN;

/// Longest time without progress once the network is calm, beside two of the longest deadline: a
/// decoder gives up after one deadline, an encoder after two.
const STANDSTILL_MAX: Duration = Duration::from_secs(8);
/// How long stations run after an insider has fallen silent.
pub(crate) const AFTER_INSIDER: Duration = Duration::from_secs(5);
/// How often to check whether everything is at rest.
const REST_ASKED: Duration = Duration::from_millis(100);
/// How long to observe the silence afterwards.
const WATCH: Duration = Duration::from_secs(12);
/// Frames that an endpoint may send in that time: its own greetings, and answers to others.
const FRAMES_AT_REST: u64 = 2 * (1 + WATCH.as_secs() / HELLO_INTERVAL_SLOW.as_secs());
/// The same for a helper, which also reports.
const HELPER_FRAMES_AT_REST: u64 = FRAMES_AT_REST + 1 + times(REPORT_INTERVAL);
/// Key exchanges in that time between two ends and a helper with individual keys, each of which may
/// change its secret once: its neighbours ask it for the new one, and it asks them.
const EXCHANGES_AT_REST: u64 = 3 * 2 * 2;
const _: () = assert!(WATCH.as_secs() < REKEY_AFTER_TIME.as_secs(), "once, not twice");
/// Further frames of a station that looks for a neighbour, or hears frames of unknown sessions.
const SEARCH_FRAMES_AT_REST: u64 = 1 + times(HELLO_INTERVAL_SEARCH_MAX);
/// Calls of a station's timer at one instant without effect.
const IDLE_ROUNDS_MAX: u32 = 4;
/// Timers of a station without effect, in one second of its clock.
const IDLE_TIMERS_MAX: u32 = 2_000;
/// Most events of a run; a scenario that needs more is useless.
const EVENTS_MAX: u64 = 20_000_000;

/// Entropy, given by its first eight bytes, with which a station numbers its symbols from shortly
/// before 2^32. Found by search; coverage shows if it no longer works.
const WRAPPING: [u64; 4] = [69_205_760, 88_348_916, 229_574_939, 293_472_011];

/// How often something happens at this interval during the silence.
const fn times(interval: Duration) -> u64 {
    (WATCH.as_nanos() / interval.as_nanos()) as u64
}

/// An event of the network or of a host.
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
    /// A station's underlay may have room again.
    Room {
        station: usize,
    },
    /// An endpoint's host sends a packet.
    Packet {
        from: usize,
    },
    Die {
        station: usize,
    },
    Start {
        station: usize,
    },
    Jump {
        station: usize,
        by: Duration,
    },
    /// The longest frame that a station's interface accepts changes.
    Mtu {
        station: usize,
        len: usize,
    },
    /// A station's address changes, possibly back to its initial one.
    Move {
        station: usize,
        back: bool,
    },
    /// From now on every frame arrives.
    Calm,
}

impl Happening {
    /// Whether the network causes it, and not the scenario.
    fn is_of_network(&self) -> bool {
        use Happening::{Datagram, Frame, Room};
        matches!(self, Frame { .. } | Datagram { .. } | Room { .. })
    }
}

/// Where a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Station,
    /// A replayed recording.
    Echo,
    /// No station ever sealed it.
    Forged,
    Insider,
}

/// A place for a station.
struct Seat {
    place: Place,
    config: StationConfig,
    subject: Option<Subject>,
    /// How far its clock is ahead of the network's time.
    ahead: Duration,
    underlay: Underlay,
    idle_timers: (u64, u32),
    frames_sent: u64,
}

/// Called with each event, for display.
pub type Trace<'a> = &'a mut dyn FnMut(Time, fmt::Arguments<'_>);

/// A run in progress.
pub(super) struct Driver<'a> {
    scenario: &'a Scenario,
    now: Time,
    seats: Vec<Seat>,
    network: Network<'a>,
    books: Books,
    schedule: Schedule<Happening>,
    /// Scheduled events that have not happened yet, other than frames and room.
    planned: usize,
    stranger: Option<Stranger>,
    insider: Option<Insider>,
    liars: Liars,
    hosts: Vec<Dice>,
    starts: u64,
    trace: Option<Trace<'a>>,
    pub(super) events: u64,
    pub(super) coverage: Coverage,
}

impl<'a> Driver<'a> {
    pub(super) fn new(scenario: &'a Scenario, trace: Option<Trace<'a>>) -> Self {
        let places = scenario.places();
        let seed = scenario.seed;
        let configs: Vec<_> = places.iter().map(|&place| scenario.config(place)).collect();
        let adversary = scenario.forged_ppm > 0 && !scenario.forgeries.is_empty();
        let stranger = adversary.then(|| Stranger::new(seed, &configs));
        let secret = configs[0].security.shared().filter(|_| scenario.insider_ppm > 0);
        let insider = secret.map(|psk| Insider::new(seed, *psk.as_bytes()));
        let seat = |(index, config): (usize, StationConfig)| {
            // Machines were booted at different times.
            let ms = Dice::new(seed, index as u64, "torture clock").below(1_000_000);
            Seat {
                place: places[index],
                underlay: Underlay::new(config.frame_len_max),
                config,
                subject: None,
                ahead: Duration::from_millis(ms),
                idle_timers: (0, 0),
                frames_sent: 0,
            }
        };
        let of_pair = |at: usize| {
            let speak = |&(other, it): &(usize, &Place)| other != at && it.pair == places[at].pair;
            places.iter().enumerate().filter(speak).map(|(other, it)| (it.id, other)).collect()
        };
        let peers = (0..places.len()).map(of_pair).collect();
        let hosts = (0..places.len() as u64).map(|at| Dice::new(seed, at, "torture host"));
        let mut driver = Driver {
            scenario,
            now: Time::ZERO,
            network: Network::new(scenario, peers),
            books: Books::new(scenario),
            schedule: Schedule::new(),
            planned: 0,
            stranger,
            insider,
            liars: Liars::new(seed),
            hosts: hosts.collect(),
            starts: 0,
            trace,
            events: 0,
            coverage: Coverage::default(),
            seats: configs.into_iter().enumerate().map(seat).collect(),
        };
        driver.plan();
        driver
    }

    /// Schedules all events that do not depend on others.
    fn plan(&mut self) {
        let scenario = self.scenario;
        let ms = |ms: u32| Time::from_millis(ms.into());
        for station in 0..self.seats.len() {
            let Place { pair, end: Some(end), .. } = self.seats[station].place else { continue };
            let end = &scenario.pairs[pair].ends[end];
            let mut dice = Dice::new(scenario.seed, station as u64, "torture load");
            let mean_ns = 2_000_000 * u64::from(scenario.span_ms) / u64::from(end.packets.max(1));
            let mut at = Time::ZERO;
            for _ in 0..end.packets {
                let gap = Duration::from_nanos(dice.below(mean_ns));
                if !dice.chance(end.together_ppm) {
                    at += gap;
                }
                self.happen(at, Happening::Packet { from: station });
            }
        }
        for restart in &scenario.restarts {
            let station = restart.station.into();
            self.happen(ms(restart.at_ms), Happening::Die { station });
            self.happen(
                ms(restart.at_ms.saturating_add(restart.down_ms)),
                Happening::Start { station },
            );
        }
        for jump in &scenario.jumps {
            let by = Duration::from_millis(jump.by_ms.into());
            self.happen(ms(jump.at_ms), Happening::Jump { station: jump.station.into(), by });
        }
        for change in &scenario.mtus {
            let (station, len) = (change.station.into(), change.len.into());
            self.happen(ms(change.at_ms), Happening::Mtu { station, len });
        }
        for it in scenario.addresses.iter().flat_map(|addresses| &addresses.moves) {
            let (station, back) = (it.station.into(), it.back);
            self.happen(ms(it.at_ms), Happening::Move { station, back });
        }
        for stall in &scenario.stalls {
            self.happen(ms(stall.begin_ms), Happening::Room { station: stall.station.into() });
        }
        self.happen(ms(scenario.span_ms), Happening::Calm);
        if scenario.is_perfect() {
            self.network.calm_down();
        }
    }

    fn happen(&mut self, at: Time, what: Happening) {
        self.planned += usize::from(!what.is_of_network());
        self.schedule.happen(at, what);
    }

    // ---- the run ------------------------------------------------------------------------------

    /// Runs the scenario to its end.
    pub(super) fn run(&mut self) -> Result<(), Violation> {
        self.run_checked().map_err(|(invariant, text)| Violation {
            invariant,
            at_ns: self.now.as_nanos(),
            text,
        })
    }

    fn run_checked(&mut self) -> Result<(), Broken> {
        (0..self.seats.len()).try_for_each(|station| self.start(station))?;
        while self.planned > 0 {
            self.step()?;
        }
        if self.insider.is_some() {
            // A malicious key holder can keep stations busy, so rest cannot be expected.
            return self.run_until(self.now + AFTER_INSIDER);
        }
        self.come_to_rest()?;
        self.watch()
    }

    /// Waits until everything is at rest, as long as there is progress, however slow.
    fn come_to_rest(&mut self) -> Result<(), Broken> {
        let ends = self.scenario.pairs.iter().flat_map(|pair| &pair.ends);
        let deadline_ms = ends.map(|end| end.coding.delivery_deadline_ms).max().unwrap_or(0);
        let deadline = Duration::from_millis(deadline_ms.into());
        let patience = STANDSTILL_MAX + 2 * deadline + self.search_max();
        let (mut least, mut since) = (Least::new(), self.now);
        while !self.is_at_rest() {
            if least.falls(&self.books) {
                since = self.now;
            }
            ensure(self.now - since < patience, Invariant::Stuck, || {
                self.books.what_waits(&self.views())
            })?;
            self.run_until(self.now + REST_ASKED)?;
        }
        Ok(())
    }

    /// Longest time for which two stations may look for each other when one has moved and the other
    /// has restarted: until the latter hears the former's HELLO, or a key exchange that it begins.
    fn search_max(&self) -> Duration {
        let moves = self.scenario.addresses.as_ref().is_some_and(|it| !it.moves.is_empty());
        if moves { (REKEY_SILENCE_HELLOS + 1) * HELLO_INTERVAL_SLOW } else { Duration::ZERO }
    }

    fn is_at_rest(&self) -> bool {
        self.books.is_at_rest()
    }

    fn views(&self) -> Vec<Option<&Station>> {
        self.seats.iter().map(|seat| Some(seat.subject.as_ref()?.station())).collect()
    }

    /// Observes the silence, and makes the final checks.
    fn watch(&mut self) -> Result<(), Broken> {
        // A replayed recording may keep two stations greeting each other for a while.
        let greetings = PENDING_SESSION_AGE_MAX + HELLO_TALKING + HELLO_INTERVAL_SLOW;
        self.run_until(self.now + greetings + self.search_max())?;
        let counted = |seat: &Seat| (seat.frames_sent, self.exchanges(seat.place.pair));
        let before: Vec<(u64, u64)> = self.seats.iter().map(counted).collect();
        self.run_until(self.now + WATCH)?;
        let strangers = self.scenario.pairs.len() > 1;
        for (seat, (sent_before, exchanges_before)) in self.seats.iter().zip(before) {
            let sent = seat.frames_sent - sent_before;
            let exchanges = self.exchanges(seat.place.pair) - exchanges_before;
            let helper = seat.place.end.is_none();
            let absent = self.scenario.pairs[seat.place.pair].helper == Help::Absent;
            let search = if strangers || absent { SEARCH_FRAMES_AT_REST } else { 0 };
            // Each takes two frames.
            let asked = 2 * exchanges.min(EXCHANGES_AT_REST);
            let most = if helper { HELPER_FRAMES_AT_REST } else { FRAMES_AT_REST } + search + asked;
            ensure(sent <= most, Invariant::Silence, || {
                format!("station {} sent {sent} frames in {WATCH:?} of rest", seat.place.id.0)
            })?;
        }
        self.books.close(self.scenario)
    }

    /// Key exchanges of a pair's stations that continue during silence: those with a helper
    /// exchange their sealing keys.
    fn exchanges(&self, pair: usize) -> u64 {
        if self.scenario.pairs[pair].helper != Help::Present {
            return 0;
        }
        let seats = self.seats.iter().filter(|seat| seat.place.pair == pair);
        let subjects = seats.filter_map(|seat| seat.subject.as_ref());
        subjects.map(|subject| subject.station().stats().secrets_agreed).sum()
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
        match next {
            Next::Wakes(station) => self.timer(station),
            Next::Happens(what) => self.happening(what),
        }
    }

    fn happening(&mut self, what: Happening) -> Result<(), Broken> {
        self.planned -= usize::from(!what.is_of_network());
        match what {
            Happening::Frame { to, bytes, origin } => self.frame(None, to, &bytes, origin),
            Happening::Datagram { from, to, bytes, origin } => {
                let hearer = self.network.internet.as_ref().and_then(|it| it.owner(to));
                hearer.map_or(Ok(()), |hearer| self.frame(Some(from), hearer, &bytes, origin))
            }
            Happening::Room { station } => self.settle(station, true).map(|_| ()),
            Happening::Packet { from } => self.packet(from),
            Happening::Die { station } => {
                self.die(station);
                Ok(())
            }
            Happening::Start { station } if self.seats[station].subject.is_none() => {
                self.start(station)
            }
            Happening::Start { .. } => Ok(()),
            Happening::Jump { station, by } => {
                self.say(format_args!("the clock of {station} jumps ahead by {by:?}"));
                self.coverage.add(Feature::ClockJumps, 1);
                self.seats[station].ahead += by;
                self.settle(station, true).map(|_| ())
            }
            Happening::Mtu { station, len } => self.change_mtu(station, len),
            Happening::Move { station, back } => {
                let Some(internet) = &mut self.network.internet else { return Ok(()) };
                internet.move_station(station, back);
                let at = internet.address(station);
                self.say(format_args!("station {station} is at {at} from here on"));
                self.coverage.add(Feature::AddressesChanged, 1);
                Ok(())
            }
            Happening::Calm => {
                self.say(format_args!("the network calms down"));
                self.network.calm_down();
                // Otherwise there would be no silence.
                for subject in self.seats.iter_mut().filter_map(|seat| seat.subject.as_mut()) {
                    subject.set_rekey_interval(REKEY_AFTER_TIME);
                    subject.set_session_frames(SESSION_FRAMES_MAX);
                }
                Ok(())
            }
        }
    }

    fn say(&mut self, what: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace(self.now, what);
        }
    }

    // ---- stations -----------------------------------------------------------------------------

    fn start(&mut self, station: usize) -> Result<(), Broken> {
        let seat = &mut self.seats[station];
        let mut entropy = [0; 32];
        let starts = self.starts;
        Dice::new(self.scenario.seed, starts, "torture entropy").0.fill_bytes(&mut entropy);
        // No station starts twice with the same entropy, which determines its sessions and keys.
        let place = seat.place;
        let coding = place.end.map(|end| &self.scenario.pairs[place.pair].ends[end].coding);
        let wraps = coding.and_then(|coding| coding.window).is_some_and(|window| window.wraps);
        if let Some(number) = WRAPPING.get(station).filter(|_| wraps && starts == station as u64) {
            entropy = [0; 32];
            entropy[..8].copy_from_slice(&number.to_le_bytes());
        }
        self.starts += 1;
        let made = Station::new(seat.config.clone(), entropy, self.now + seat.ahead);
        let made = made.map_err(|error| (Invariant::Panic, error.to_string()))?;
        let plant = self.scenario.plant.filter(|plant| usize::from(plant.station) == station);
        let mut subject = Subject::new(made, plant);
        let pair = &self.scenario.pairs[place.pair];
        if let Some(keys) = pair.keys.filter(|keys| keys.rekey_ms > 0 && !self.network.is_calm()) {
            subject.set_rekey_interval(Duration::from_millis(keys.rekey_ms.into()));
        }
        if pair.session_frames > 0 && !self.network.is_calm() {
            subject.set_session_frames(pair.session_frames);
        }
        if let Some(internet) = &mut self.network.internet {
            let called =
                internet.start(station, seat.config.frame_len_min, plant.map(|plant| plant.fault));
            subject.reach_out(self.now + seat.ahead, !called.is_empty());
        }
        if seat.underlay.is_limited() {
            subject.limit_frames(self.now + seat.ahead, seat.underlay.frame_len());
        }
        seat.subject = Some(subject);
        let subject = seat.subject.as_mut();
        let view = subject.map(Subject::inspect).unwrap_or_default();
        let coding = seat.subject.as_ref().map(|subject| subject.station().config().coding);
        let tag_len = seat.subject.as_ref().map_or(0, |subject| subject.station().tag_len());
        let sizes = coding.map_or((0, 0), |coding| {
            (usize::from(coding.block_size), usize::from(coding.symbol_size) - tag_len)
        });
        self.books.started(station, view, sizes);
        self.say(format_args!("station {station} starts"));
        self.settle(station, true).map(|_| ())
    }

    /// Changes the longest frame that a station's interface accepts, and tells the station.
    fn change_mtu(&mut self, station: usize, len: usize) -> Result<(), Broken> {
        let seat = &mut self.seats[station];
        let (local, len) = (self.now + seat.ahead, seat.underlay.limit(len));
        if let Some(subject) = &mut seat.subject {
            subject.limit_frames(local, len);
        }
        self.coverage.add(Feature::MtusChanged, 1);
        self.say(format_args!("station {station} sends frames of {len} bytes at most"));
        self.settle(station, true).map(|_| ())
    }

    fn die(&mut self, station: usize) {
        if let Some(mut dead) = self.seats[station].subject.take() {
            self.say(format_args!("station {station} dies"));
            self.schedule.wake(station, None);
            let helper = self.seats[station].place.end.is_none();
            let feature = if helper { Feature::HelperRestarts } else { Feature::EndpointRestarts };
            self.coverage.add(feature, 1);
            self.note_stats(station, &dead.stats());
            self.books.died(station);
        }
    }

    fn timer(&mut self, station: usize) -> Result<(), Broken> {
        let now = self.now;
        let seat = &mut self.seats[station];
        let local = now + seat.ahead;
        let Some(subject) = &mut seat.subject else { return Ok(()) };
        subject.handle_timeout(local);
        if self.settle(station, true)? {
            return Ok(());
        }
        let second = local.as_nanos() / 1_000_000_000;
        let idle = &mut self.seats[station].idle_timers;
        *idle = if idle.0 == second { (second, idle.1 + 1) } else { (second, 1) };
        let count = idle.1;
        ensure(count <= IDLE_TIMERS_MAX, Invariant::Spin, || {
            format!("station {station} had {count} timers within a second that did nothing")
        })
    }

    fn packet(&mut self, from: usize) -> Result<(), Broken> {
        let now = self.now;
        let seat = &mut self.seats[from];
        let (Some(subject), Some(end)) = (&mut seat.subject, seat.place.end) else { return Ok(()) };
        let end = &self.scenario.pairs[seat.place.pair].ends[end];
        let dice = &mut self.hosts[from];
        let most = self.scenario.packet_len_max(subject.station(), end) as u64;
        if most < 2 {
            return Ok(());
        }
        let len = match dice.below(8) {
            0 => 2 + dice.below(11),
            1 => most,
            2..5 => 12 + dice.below(24),
            _ => 2 + dice.below(most - 1),
        };
        let least = if end.coding.window.is_some() { PACKET_LEN_MIN } else { 0 };
        let mut packet = vec![0; least.max(len.min(most) as usize)];
        self.books.fill(from, &mut packet);
        let outcome = subject.handle_packet(now + seat.ahead, &packet);
        self.say(format_args!("host of {from}: packet of {} bytes, {outcome:?}", packet.len()));
        match outcome {
            PacketOutcome::Accepted => self.books.accepted(from, packet),
            PacketOutcome::QueueFull => self.books.refused(from),
            other => {
                return Err((Invariant::Delivery, format!("a packet of {len} bytes: {other:?}")));
            }
        }
        self.settle(from, true).map(|_| ())
    }

    /// A station receives a frame, from some address if there are addresses.
    fn frame(
        &mut self,
        from: Option<Address>,
        to: usize,
        bytes: &[u8],
        origin: Origin,
    ) -> Result<(), Broken> {
        let seat = &mut self.seats[to];
        let local = self.now + seat.ahead;
        let Some(subject) = &mut seat.subject else { return Ok(()) };
        let outcome = subject.handle_frame(local, bytes);
        if let (Some(internet), Some(from)) = (&mut self.network.internet, from)
            && internet.book(to).hear(local, from, outcome, bytes.len())?.is_some()
        {
            subject.note_path_changed(local);
            self.coverage.add(Feature::AddressesFollowed, 1);
        }
        self.say(format_args!("{to} hears {} bytes ({origin:?}): {outcome:?}", bytes.len()));
        let accepted = !matches!(outcome, FrameOutcome::Rejected(_));
        if origin == Origin::Insider && accepted {
            self.coverage.add(Feature::InsiderAccepted, 1);
        }
        ensure(!(origin == Origin::Forged && accepted), Invariant::Forgery, || {
            format!("station {to} took a forged frame of {} bytes: {outcome:?}", bytes.len())
        })?;
        self.settle(to, false).map(|_| ())
    }

    /// Drains a station after an input, as a driver does, and inspects it. Returns whether it did
    /// anything. `timer`: the input was not a frame.
    fn settle(&mut self, station: usize, timer: bool) -> Result<bool, Broken> {
        let mut delivered = Vec::new();
        let (mut frames, mut idle) = (0, 0);
        loop {
            let has_room = self.has_room(station);
            let seat = &mut self.seats[station];
            let local = self.now + seat.ahead;
            let Some(subject) = &mut seat.subject else { return Ok(true) };
            delivered.extend(core::iter::from_fn(|| subject.poll_packet()));
            if subject.poll_timeout().is_some_and(|due| due <= local) {
                subject.handle_timeout(local);
                delivered.extend(core::iter::from_fn(|| subject.poll_packet()));
            }
            while let Some(event) = subject.poll_event() {
                note_event(&mut self.coverage, &event);
            }
            if !has_room {
                self.coverage.add(Feature::FramesBacklogged, 1);
                break;
            }
            if self.ask(station)? {
                frames += 1;
                continue;
            }
            let Some(subject) = &mut self.seats[station].subject else { return Ok(true) };
            if let Some((to, frame)) = subject.poll_transmit(local) {
                frames += 1;
                idle = 0;
                self.send(station, to, frame)?;
                continue;
            }
            if subject.poll_timeout().is_none_or(|due| due > local) {
                break;
            }
            idle += 1;
            let due = subject.poll_timeout();
            ensure(idle < IDLE_ROUNDS_MAX, Invariant::Spin, || {
                format!("station {station} at {local} asks for {due:?} and does nothing")
            })?;
        }
        let seat = &mut self.seats[station];
        let Some(subject) = &mut seat.subject else { return Ok(true) };
        let due = subject.poll_timeout();
        self.network.wake(&mut self.schedule, station, (self.now, seat.ahead), due);
        for packet in &delivered {
            if let Some(trace) = &mut self.trace {
                trace(self.now, format_args!("{station} delivers {} bytes", packet.len()));
            }
        }
        let did = frames > 0 || !delivered.is_empty();
        let (view, stats) = (subject.inspect(), subject.stats());
        let station_seen = subject.station();
        let look = Look { view, stats, memory: station_seen.memory(), delivered, timer };
        self.books.look(station, look, station_seen.config())?;
        Ok(did)
    }

    // ---- coverage -----------------------------------------------------------------------------

    /// Counts what the run has exercised. To be called once, when it is over.
    pub(super) fn count(&mut self) {
        let mut seats = core::mem::take(&mut self.seats);
        let stats = |seat: &mut Seat| seat.subject.as_mut().map(Subject::stats);
        let all: Vec<_> = seats.iter_mut().map(stats).collect();
        self.seats = seats;
        for (station, stats) in all.iter().enumerate() {
            stats.iter().for_each(|stats| self.note_stats(station, stats));
        }
        self.books.count(&mut self.coverage);
        super::coverage::count_scenario(self.scenario, &mut self.coverage);
    }

    fn note_stats(&mut self, station: usize, stats: &corridor_proto::Stats) {
        super::coverage::count_stats(stats, &mut self.coverage);
        if self.seats[station].config.coding.mode == Mode::Window {
            self.coverage.add(Feature::SecretsWindow, stats.secrets_agreed);
        }
    }

    /// The network's time.
    pub(super) fn now(&self) -> Time {
        self.now
    }
}

fn note_event(coverage: &mut Coverage, event: &Event) {
    match event {
        Event::SessionUp { restarted: true, .. } => coverage.add(Feature::PeersRestarted, 1),
        Event::PeerSilent { .. } => coverage.add(Feature::PeersSilent, 1),
        Event::SessionUp { .. }
        | Event::ModeDiffers { .. }
        | Event::PathMtu { .. }
        | Event::PeerGone { .. }
        | Event::BlocksTooLong { .. }
        | Event::RowsForged { .. }
        | Event::PacketForged { .. }
        | Event::PacketRepeated { .. } => {}
        Event::HelperLeftOut { .. } => coverage.add(Feature::HelpersLeftOut, 1),
    }
}
