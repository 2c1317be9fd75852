//! Stations on a network that does its worst, and what must hold all the same.

mod scenario;

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_proto::{Destination, PacketOutcome, Role, Station, StationConfig, StationId, Stats};

pub use scenario::Scenario;

/// How long everything may take to come to rest once the network behaves.
const REST_WITHIN: Duration = Duration::from_secs(120);
/// How long it is then watched.
const WATCH: Duration = Duration::from_secs(20);
/// Frames an endpoint may send while it is watched: some greetings.
const FRAMES_AT_REST: u64 = 8;
/// The same for a helper, which also reports five times a second.
const HELPER_FRAMES_AT_REST: u64 = 8 + 5 * 21;
/// Inputs of all stations in one virtual second; more is a spin.
const INPUTS_PER_SECOND: u64 = 60_000;

/// What the network or a host does at some time.
enum Happening {
    Frame {
        to: usize,
        bytes: Vec<u8>,
    },
    /// The underlay of a station has room again.
    Room {
        station: usize,
    },
    /// The host of an endpoint sends a packet.
    Packet {
        from: usize,
    },
    Restart {
        station: usize,
    },
    /// All clocks jump ahead.
    Jump,
    /// From here on every frame arrives.
    Calm,
}

/// Packets of one direction: what went in, and what has come out.
#[derive(Default)]
struct Flow {
    sent: Vec<Vec<u8>>,
    delivered: Vec<bool>,
    /// Everything before was delivered or passed over since the receiver started.
    cursor: usize,
    given_up_by_dead: u64,
    /// Losses that a restart excuses.
    excused: u64,
    /// How far back the next delivery may begin: the receiver has just started.
    may_repeat: bool,
}

impl Flow {
    /// A packet has come out: it must be one that went in, behind the one before.
    fn take(&mut self, packet: &[u8], repeats_max: usize) {
        if core::mem::take(&mut self.may_repeat) {
            self.cursor = self.cursor.saturating_sub(repeats_max);
        }
        let rest = &self.sent[self.cursor..];
        let Some(ahead) = rest.iter().position(|sent| sent == packet) else {
            let ever = self.sent.iter().position(|sent| sent == packet);
            panic!("delivered {packet:?}, sent as {ever:?}, expected {} or later", self.cursor);
        };
        let index = self.cursor + ahead;
        self.delivered[index] = true;
        self.cursor = index + 1;
    }

    fn missing(&self) -> u64 {
        self.delivered.iter().filter(|&&delivered| !delivered).count() as u64
    }
}

/// Stations, the network between them, and what is known of the packets.
pub struct Chaos {
    scenario: Scenario,
    now: Time,
    rng: Stream,
    stations: Vec<Station>,
    starts: u64,
    /// Until when the underlay of each station is full.
    busy_until: Vec<Time>,
    happenings: BTreeMap<(Time, u64), Happening>,
    sequence: u64,
    calm: bool,
    /// From endpoint 0 to 1, and from 1 to 0.
    flows: [Flow; 2],
    /// Frames to play back later.
    recorded: Vec<Vec<u8>>,
    inputs: u64,
    second: u64,
}

/// Says which run it was when a check fails.
struct Banner(String);

impl Drop for Banner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

impl Chaos {
    pub fn new(scenario: Scenario) -> Self {
        let stations = if scenario.helper { 3 } else { 2 };
        let mut chaos = Chaos {
            now: Time::ZERO,
            rng: scenario.stream("network"),
            stations: Vec::new(),
            starts: 0,
            busy_until: vec![Time::ZERO; stations],
            happenings: BTreeMap::new(),
            sequence: 0,
            calm: scenario.perfect,
            flows: Default::default(),
            recorded: Vec::new(),
            inputs: 0,
            second: 0,
            scenario,
        };
        for index in 0..stations {
            let station = chaos.start_station(index);
            chaos.stations.push(station);
        }
        chaos.plan();
        chaos
    }

    fn start_station(&mut self, index: usize) -> Station {
        let id = |index: usize| StationId(index as u8 + 1);
        let helper = self.scenario.helper.then(|| id(2));
        let role = match index {
            2 => Role::Helper { between: (id(0), id(1)) },
            _ => Role::Endpoint { peer: id(1 - index), helper },
        };
        let config = StationConfig {
            id: id(index),
            role,
            psk: [0x42; 32],
            coding: self.scenario.coding,
            link_errors: self.scenario.link_errors,
            ingress_packets: self.scenario.ingress_packets,
            frame_len_max: 576,
            frame_len_min: self.scenario.frame_len_min,
            rate_bps: None,
        };
        let mut entropy = [0; 32];
        self.scenario.stream_of(self.starts, "entropy").fill_bytes(&mut entropy);
        self.starts += 1;
        Station::new(config, entropy, self.now).expect("drawn within bounds")
    }

    fn plan(&mut self) {
        let span = self.scenario.span;
        for from in 0..2 {
            let mut at = Time::ZERO;
            for _ in 0..self.scenario.packets[from] {
                if !self.chance(self.scenario.burst) {
                    let mean = 2 * span.as_nanos() as u64 / self.scenario.packets[from].max(1);
                    at += Duration::from_nanos(self.rng.next_u64() % mean.max(1));
                }
                self.happen(at, Happening::Packet { from });
            }
        }
        if let Some(station) = self.scenario.restart {
            let at = Time::from_nanos(self.rng.next_u64() % span.as_nanos() as u64);
            self.happen(at, Happening::Restart { station });
        }
        for _ in 0..self.scenario.jumps {
            let at = Time::from_nanos(self.rng.next_u64() % span.as_nanos() as u64);
            self.happen(at, Happening::Jump);
        }
        self.happen(Time::ZERO + span, Happening::Calm);
    }

    // ---- the run ------------------------------------------------------------------------------

    /// Runs the scenario to its end and checks that everything came to rest.
    pub fn run(mut self) {
        let _banner = Banner(format!("{:?}", self.scenario));
        (0..self.stations.len()).for_each(|station| self.settle(station));
        while !self.over() {
            self.step();
        }
        let deadline = self.now + REST_WITHIN;
        while self.now < deadline {
            self.step();
        }
        self.check_accounts();
        let before: Vec<u64> = self.stations.iter().map(|s| s.stats().frames_sent).collect();
        let until = self.now + WATCH;
        while self.now < until {
            self.step();
        }
        for (index, before) in before.into_iter().enumerate() {
            let sent = self.stations[index].stats().frames_sent - before;
            let most = if index == 2 { HELPER_FRAMES_AT_REST } else { FRAMES_AT_REST };
            assert!(sent <= most, "station {index} sent {sent} frames at rest");
        }
    }

    /// Whether all that was planned has happened.
    fn over(&self) -> bool {
        self.calm
            && !self.happenings.values().any(|what| {
                matches!(
                    what,
                    Happening::Packet { .. }
                        | Happening::Calm
                        | Happening::Jump
                        | Happening::Restart { .. }
                )
            })
    }

    fn step(&mut self) {
        let timers = self.stations.iter().enumerate();
        let timers = timers.filter(|(index, _)| self.busy_until[*index] <= self.now);
        let timer = timers.filter_map(|(index, s)| Some((s.poll_timeout()?, index))).min();
        let next = self.happenings.first_key_value().map(|(&(at, _), _)| at);
        match (next, timer) {
            (Some(at), timer) if timer.is_none_or(|(timer, _)| at <= timer) => {
                let ((at, _), what) = self.happenings.pop_first().expect("just seen");
                self.advance(at);
                self.happening(what);
            }
            (_, Some((at, station))) => {
                self.advance(at);
                self.stations[station].handle_timeout(self.now);
                self.settle(station);
            }
            (_, None) => panic!("nothing will ever happen again"),
        }
    }

    fn advance(&mut self, at: Time) {
        self.now = self.now.max(at);
        let second = self.now.as_nanos() / 1_000_000_000;
        if second != self.second {
            (self.second, self.inputs) = (second, 0);
        }
        self.inputs += 1;
        assert!(self.inputs < INPUTS_PER_SECOND, "a spin at {}", self.now);
    }

    fn happening(&mut self, what: Happening) {
        match what {
            Happening::Frame { to, bytes } => {
                self.stations[to].handle_frame(self.now, &bytes);
                self.settle(to);
            }
            Happening::Room { station } => self.settle(station),
            Happening::Packet { from } => {
                self.send_packet(from);
                self.settle(from);
            }
            Happening::Restart { station } => self.restart(station),
            Happening::Jump => {
                let jump = Duration::from_millis(1 + self.rng.next_u64() % 100_000);
                self.now += jump;
                // What was planned for later stays as far ahead; frames on the way arrive now.
                let planned = core::mem::take(&mut self.happenings);
                for ((at, sequence), what) in planned {
                    let keeps = matches!(what, Happening::Frame { .. } | Happening::Room { .. });
                    let at = if keeps { at } else { at + jump };
                    self.happenings.insert((at, sequence), what);
                }
                (0..self.stations.len()).for_each(|station| self.settle(station));
            }
            Happening::Calm => self.calm = true,
        }
    }

    /// Drains a station after an input, as a driver does.
    fn settle(&mut self, station: usize) {
        for _ in 0..4 {
            self.take_packets(station);
            while self.stations[station].poll_event().is_some() {}
            if self.busy_until[station] > self.now {
                return;
            }
            if self.stations[station].poll_timeout().is_some_and(|at| at <= self.now) {
                self.stations[station].handle_timeout(self.now);
                self.take_packets(station);
            }
            let transmit = self.stations[station].poll_transmit(self.now);
            if let Some(transmit) = transmit {
                let (to, frame) = (transmit.to, transmit.frame.to_vec());
                self.send_frame(station, to, frame);
                self.check_bounds(station);
                return;
            }
            self.check_bounds(station);
            if self.stations[station].poll_timeout().is_none_or(|at| at > self.now) {
                return;
            }
        }
        let at = self.stations[station].poll_timeout();
        panic!("station {station} at {} asks for {at:?} and does nothing", self.now);
    }

    fn take_packets(&mut self, station: usize) {
        let repeats_max = self.scenario.packets_in_flight_max();
        while let Some(packet) = self.stations[station].poll_packet() {
            assert!(station < 2, "a helper delivers nothing");
            self.flows[1 - station].take(packet, repeats_max);
        }
    }

    // ---- hosts --------------------------------------------------------------------------------

    fn send_packet(&mut self, from: usize) {
        let mtu = self.stations[from].tunnel_mtu();
        let len = match self.rng.next_u32() % 8 {
            0 => 1 + self.rng.next_u64() as usize % 12,
            1 => mtu,
            2..5 => 12 + self.rng.next_u64() as usize % 24,
            _ => 12 + self.rng.next_u64() as usize % (mtu - 11),
        };
        let mut packet = vec![0; len.min(mtu)];
        self.rng.fill_bytes(&mut packet);
        if self.stations[from].handle_packet(self.now, &packet) == PacketOutcome::Accepted {
            self.flows[from].sent.push(packet);
            self.flows[from].delivered.push(false);
        }
    }

    fn restart(&mut self, station: usize) {
        if station < 2 {
            let stats = self.stations[station].stats().clone();
            let own = &mut self.flows[station];
            own.given_up_by_dead += stats.packets_given_up;
            // Whatever it had accepted and not got across.
            own.excused += own.missing();
            let theirs = &mut self.flows[1 - station];
            theirs.given_up_by_dead += self.scenario.packets_of(stats.symbols_given_up);
            // Whatever it had decoded, and acknowledged, and not delivered.
            theirs.excused += self.scenario.packets_in_flight_max() as u64;
            theirs.may_repeat = true;
        }
        self.stations[station] = self.start_station(station);
        self.settle(station);
    }

    // ---- the network --------------------------------------------------------------------------

    fn send_frame(&mut self, from: usize, to: Destination, frame: Vec<u8>) {
        if let Destination::Station(StationId(id)) = to {
            assert!(usize::from(id) - 1 != from && usize::from(id) <= self.stations.len());
        }
        assert!(frame.len() <= 576, "{} bytes", frame.len());
        let airtime = 8_000_000_000 * frame.len() as u64 / self.scenario.rate_bps;
        self.busy_until[from] = self.now + Duration::from_nanos(airtime.max(1));
        self.happen(self.busy_until[from], Happening::Room { station: from });
        for hearer in (0..self.stations.len()).filter(|&hearer| hearer != from) {
            let lossy = !self.calm;
            if lossy && self.chance(self.scenario.loss[from][hearer]) {
                continue;
            }
            let copies = if lossy && self.chance(self.scenario.duplicate) { 2 } else { 1 };
            for _ in 0..copies {
                self.fly(from, hearer, frame.clone());
            }
            if lossy && self.chance(self.scenario.tamper) {
                self.tamper(from, hearer, &frame);
            }
        }
        if self.recorded.len() < 200 && self.chance(0.2) {
            self.recorded.push(frame);
        }
    }

    fn fly(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        let mut delay = self.scenario.delay;
        if !self.calm && self.chance(self.scenario.reorder) {
            delay += Duration::from_nanos(
                self.rng.next_u64() % self.scenario.jitter.as_nanos().max(1) as u64,
            );
        }
        self.happen(self.busy_until[from] + delay, Happening::Frame { to, bytes });
    }

    /// An adversary who sees every frame and has no key.
    fn tamper(&mut self, from: usize, to: usize, frame: &[u8]) {
        let mut bent = frame.to_vec();
        let at = self.rng.next_u64() as usize;
        match self.rng.next_u32() % 6 {
            0 => bent[at % frame.len()] ^= 1 << (at % 8),
            1 => bent.truncate(at % (frame.len() + 1)),
            2 => bent.extend_from_slice(&frame[..at % frame.len()]),
            3 => {
                bent = vec![0; at % 100];
                self.rng.fill_bytes(&mut bent);
            }
            4 => {
                // A header of ours over noise, or over another frame's body.
                let tail = self.recorded.get(at % 200).cloned().unwrap_or_default();
                let keep = 7.min(frame.len());
                bent.truncate(keep);
                bent.extend_from_slice(tail.get(keep..).unwrap_or_default());
            }
            _ => {
                if let Some(old) = self.recorded.get(at % 200) {
                    bent.clone_from(old);
                }
            }
        }
        let anybody = self.rng.next_u64() as usize % self.stations.len();
        let to = if at.is_multiple_of(3) { anybody } else { to };
        self.fly(from, to, bent);
    }

    fn happen(&mut self, at: Time, what: Happening) {
        self.happenings.insert((at, self.sequence), what);
        self.sequence += 1;
    }

    fn chance(&mut self, probability: f64) -> bool {
        f64::from(self.rng.next_u32()) < probability * 4_294_967_296.0
    }

    // ---- what must hold -----------------------------------------------------------------------

    fn check_bounds(&self, station: usize) {
        let stats = self.stations[station].stats();
        let open = stats.blocks_opened - stats.blocks_acknowledged - stats.blocks_given_up;
        assert!(open <= u64::from(self.scenario.coding.blocks_in_flight), "{open} blocks open");
    }

    fn check_accounts(&self) {
        for (from, flow) in self.flows.iter().enumerate() {
            let (sender, receiver): (&Stats, &Stats) =
                (self.stations[from].stats(), self.stations[1 - from].stats());
            let given_up = sender.packets_given_up
                + self.scenario.packets_of(receiver.symbols_given_up)
                + flow.given_up_by_dead;
            let missing = flow.missing();
            assert!(
                missing <= given_up + flow.excused,
                "{missing} of {} packets of endpoint {from} are missing, {given_up} given up, {} \
                 excused:\nsender {sender:?}\nreceiver {receiver:?}",
                flow.sent.len(),
                flow.excused,
            );
            if self.scenario.perfect {
                assert_eq!((missing, given_up), (0, 0), "on a perfect network");
            }
        }
    }
}
