//! A station behind its gate, a peer that it knows (its friend), and strangers at many addresses.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::bounds::{
    SOURCE_MESSAGES_BURST, SOURCE_MESSAGES_PER_SECOND, UNPROVEN_INITIATIONS_PER_SECOND,
};
use corridor_proto::{Admission, FrameOutcome, Gate, Station, StationId};

use crate::input::{Input, keyed};

/// Maximum number of steps.
const STEPS_MAX: usize = 200;
/// Addresses; the first is the friend's, whose identity strangers claim too.
const SOURCES: usize = 80;

const HOST: StationId = StationId(1);
const FRIEND: StationId = StationId(2);
const STRANGER: StationId = StationId(3);

fn station(id: StationId, peer: StationId) -> Station {
    let config = keyed(id, &[peer]);
    Station::new(config, [id.0 as u8; 32], Time::ZERO).expect("a sound configuration")
}

fn frames_of(station: &mut Station, now: Time) -> Vec<Vec<u8>> {
    station.handle_timeout(now);
    let mut frames = Vec::new();
    while let Some(transmit) = station.poll_transmit(now) {
        frames.push(transmit.frame.to_vec());
    }
    frames
}

/// Frames of strangers that the gate has let through, none of which came from a verified address.
struct Counted {
    of_source: [u32; SOURCES],
    of_all: u32,
}

impl Counted {
    fn note(&mut self, now: Time, source: usize) {
        let seconds = now.since(Time::ZERO).as_secs_f64();
        let most =
            |per_second: u32, burst: u32| f64::from(burst + 1) + f64::from(per_second) * seconds;
        self.of_source[source] += 1;
        self.of_all += 1;
        let (one, all) = (f64::from(self.of_source[source]), f64::from(self.of_all));
        let limit = most(SOURCE_MESSAGES_PER_SECOND, SOURCE_MESSAGES_BURST);
        assert!(one <= limit, "{one} of source {source} in {seconds} s");
        let per_second = UNPROVEN_INITIATIONS_PER_SECOND;
        assert!(all <= most(per_second, per_second), "{all} of all in {seconds} s");
    }
}

struct World {
    now: Time,
    host: Station,
    friend: Station,
    stranger: Station,
    gate: Gate<usize>,
    /// The stranger's request without a cookie.
    asked: Vec<u8>,
    /// The address for which its cookie was issued.
    cookie_of: Option<usize>,
    counted: Counted,
}

impl World {
    fn new() -> Self {
        let mut stranger = station(STRANGER, HOST);
        let asked = frames_of(&mut stranger, Time::ZERO).pop().expect("an initiation");
        World {
            now: Time::ZERO,
            host: station(HOST, FRIEND),
            friend: station(FRIEND, HOST),
            stranger,
            gate: Gate::new(HOST, &keyed(HOST, &[FRIEND]).security, [7; 32], Time::ZERO),
            asked,
            cookie_of: None,
            counted: Counted { of_source: [0; SOURCES], of_all: 0 },
        }
    }

    /// What the gate does with a frame: whether the host received it, and the answer.
    fn admit(&mut self, source: usize, frame: &[u8]) -> (Option<FrameOutcome>, Option<Vec<u8>>) {
        let host = &self.host;
        let expects = |frame: &[u8]| host.expects(frame);
        match self.gate.admit(self.now, (source, &[source as u8]), frame, expects) {
            Admission::Pass(message) => {
                assert!(message.len() <= frame.len(), "longer than it came");
                let message = message.to_vec();
                (Some(self.host.handle_frame(self.now, &message)), None)
            }
            Admission::Refuse => (None, None),
            Admission::Answer(cookie) => {
                assert!(cookie.len() <= frame.len(), "more bytes back than came");
                (None, Some(cookie.to_vec()))
            }
        }
    }

    /// The host and its friend send what they have to send, and receive cookies.
    fn exchange(&mut self) {
        for frame in frames_of(&mut self.friend, self.now) {
            if let (_, Some(cookie)) = self.admit(0, &frame) {
                self.friend.handle_frame(self.now, &cookie);
            }
        }
        for frame in frames_of(&mut self.host, self.now) {
            self.friend.handle_frame(self.now, &frame);
        }
    }

    /// The stranger sends a request from an address. Returns the cookie for it, if it gets one.
    fn ask(&mut self, source: usize) -> Option<Vec<u8>> {
        let frame = self.asked.clone();
        self.ask_by(source, &frame)
    }

    fn ask_by(&mut self, source: usize, frame: &[u8]) -> Option<Vec<u8>> {
        let (outcome, cookie) = self.admit(source, frame);
        if let Some(outcome) = outcome {
            assert!(matches!(outcome, FrameOutcome::Rejected(_)), "{outcome:?} for a stranger");
            self.counted.note(self.now, source);
        }
        cookie
    }

    /// The stranger sends a request from one address with the overheard cookie of another.
    fn ask_from_elsewhere(&mut self, source: usize, heard_at: usize) {
        if let Some(cookie) = self.ask(heard_at) {
            self.stranger.handle_frame(self.now, &cookie);
            self.cookie_of = Some(heard_at);
        }
        // A verified address may send requests more often.
        if self.cookie_of == Some(source) {
            return;
        }
        for frame in frames_of(&mut self.stranger, self.now) {
            self.ask_by(source, &frame);
        }
    }

    /// A frame that nobody has made.
    fn refuses(&mut self, source: usize, frame: &[u8]) {
        if let (Some(outcome), _) = self.admit(source, frame) {
            assert!(matches!(outcome, FrameOutcome::Rejected(_)), "{outcome:?}");
        }
    }
}

/// Interprets `data` as the frames that reach a gate: a friend's, and a stranger's from many
/// addresses and in the friend's name, with cookies of others, altered or invented; time passes.
///
/// # Panics
/// If the gate lets through more from unverified addresses than allowed, answers with more bytes
/// than arrived, if a stranger gets a session, or if the friend gets none while strangers continue.
pub fn gate(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new();
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(8) {
            0 => world.exchange(),
            1 | 2 => {
                let source = input.below(SOURCES);
                for _ in 0..=input.below(64) {
                    world.ask(source);
                }
            }
            3 => {
                let (first, count) = (input.below(SOURCES), input.byte());
                for at in 0..usize::from(count) {
                    world.ask((first + at) % SOURCES);
                }
            }
            4 => {
                let (source, heard_at) = (input.below(SOURCES), input.below(SOURCES));
                world.ask_from_elsewhere(source, heard_at);
            }
            5 => {
                let (source, place) = (input.below(SOURCES), input.byte());
                let mut frame = world.asked.clone();
                let place = usize::from(place) % frame.len();
                frame[place] ^= 1 + input.byte() % 255;
                world.refuses(source, &frame);
            }
            6 => {
                let (source, len) = (input.below(SOURCES), input.byte());
                let frame = input.vec(usize::from(len));
                world.refuses(source, &frame);
            }
            _ => world.now += Duration::from_millis(input.u32().into()) / 65_536,
        }
    }
    for at in 0..400 {
        world.now += Duration::from_millis(10);
        world.exchange();
        for _ in 0..4 {
            world.ask(at % SOURCES);
        }
    }
    assert!(world.host.is_up(FRIEND) && world.friend.is_up(HOST), "the friend is kept out");
}
