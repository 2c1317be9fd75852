//! Chunks in parts: two plain forwarders between which the MTU changes, and what happens to the
//! frames between them. What comes out is compared with a twin that assembles parts byte by byte.

use core::num::NonZeroU16;
use core::time::Duration;

use corridor_base::Time;
use corridor_proto::bounds::{FRAME_LEN_MAX, PARTS_MAX, PARTS_WHOLES_MAX};
use corridor_proto::wire::{Chunk, Chunks, HEADER_LEN, Header, Kind, Part, TAG_LEN};
use corridor_proto::{FrameOutcome, Role, Station, StationConfig, StationId, Unsealer};

use crate::input::{Input, keyed, source};

/// Maximum number of steps.
const STEPS_MAX: usize = 200;
/// Maximum number of frames in transit.
const FLYING_MAX: usize = 64;
/// Lengths of invented chunks: short ones whose parts are soon complete, and ones that are too
/// long.
const LENS: [u16; 9] = [1, 2, 4, 5, 9, 40, 300, WHOLE_LEN_MAX as u16, WHOLE_LEN_MAX as u16 + 1];
/// Longest chunk of a sender whose frames may have any length.
const WHOLE_LEN_MAX: usize = FRAME_LEN_MAX - HEADER_LEN - TAG_LEN;

const SECRET: [u8; 32] = [7; 32];
const SENDER: StationId = StationId(1);
const RECEIVER: StationId = StationId(2);

fn station(id: StationId, peer: StationId) -> Station {
    let security = SECRET.into();
    let (role, frame_len_max) = (Role::Plain { peer }, FRAME_LEN_MAX);
    let config = StationConfig { role, security, frame_len_max, ..keyed(id, &[peer]) };
    Station::new(config, [id.0 as u8; 32], Time::ZERO).expect("a sound configuration")
}

/// What a receiver should make of parts.
#[derive(Default)]
struct Twin {
    wholes: [Option<Whole>; PARTS_WHOLES_MAX],
    joined: u64,
}

struct Whole {
    number: u16,
    bytes: Vec<Option<u8>>,
    parts: usize,
}

impl Twin {
    /// The packets in a frame's body.
    fn hear(&mut self, body: &[u8]) -> Vec<Vec<u8>> {
        let mut came = Vec::new();
        for chunk in Chunks::new(body) {
            match chunk {
                Some(Chunk { kind: Kind::Plain, body, .. }) => came.extend(packets(body)),
                Some(Chunk { kind: Kind::Part, body, .. }) => {
                    let Some(part) = Part::parse(body) else { break };
                    let Some(whole) = self.take(&part) else { continue };
                    if whole[0] != Kind::Plain.code() {
                        break;
                    }
                    came.extend(packets(&whole[1..]));
                }
                Some(_) => {}
                None => break,
            }
        }
        came
    }

    /// Takes a part. Returns the whole chunk if this part completes it.
    fn take(&mut self, part: &Part<'_>) -> Option<Vec<u8>> {
        let (len, at) = (usize::from(part.len.get()), usize::from(part.at));
        if len > WHOLE_LEN_MAX {
            return None;
        }
        let place = &mut self.wholes[usize::from(part.whole) % PARTS_WHOLES_MAX];
        let is_older = |whole: &Whole| (part.whole.wrapping_sub(whole.number) as i16) > 0;
        if place.as_ref().is_none_or(is_older) {
            *place = Some(Whole { number: part.whole, bytes: vec![None; len], parts: 0 });
        }
        let whole = place.as_mut().filter(|whole| whole.number == part.whole)?;
        let is_of_it = whole.bytes.len() == len && whole.parts < PARTS_MAX;
        let places = whole.bytes.get_mut(at..at + part.bytes.len()).filter(|_| is_of_it);
        if let Some(places) = places.filter(|places| places.iter().all(Option::is_none)) {
            places.iter_mut().zip(part.bytes).for_each(|(place, &byte)| *place = Some(byte));
            whole.parts += 1;
        }
        let bytes = whole.bytes.iter().copied().collect::<Option<Vec<u8>>>()?;
        *place = None;
        self.joined += 1;
        Some(bytes)
    }

    fn bytes(&self) -> usize {
        self.wholes.iter().flatten().map(|whole| whole.bytes.len()).sum()
    }
}

/// The packets of a body, up to the first invalid length, or to a difference.
fn packets(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some((head, rest)) = body.split_first_chunk() {
        let word = u16::from_be_bytes(*head);
        let len = usize::from(word & 0x3fff);
        if len == 0 || len > rest.len() || word & 0x4000 != 0 {
            break;
        }
        packets.push(rest[..len].to_vec());
        body = &rest[len..];
    }
    packets
}

struct World {
    now: Time,
    sender: Station,
    receiver: Station,
    /// The sender's frames that have not arrived.
    flying: Vec<Vec<u8>>,
    twin: Twin,
    unsealer: Unsealer,
    /// Packets that came out.
    came: Vec<Vec<u8>>,
    /// Somebody who has the secret has sent what the sender has not.
    has_lied: bool,
}

impl World {
    fn new() -> Self {
        let mut world = World {
            now: Time::ZERO,
            sender: station(SENDER, RECEIVER),
            receiver: station(RECEIVER, SENDER),
            flying: Vec::new(),
            twin: Twin::default(),
            unsealer: Unsealer::new(SECRET),
            came: Vec::new(),
            has_lied: false,
        };
        world.calm(20);
        assert!(world.sender.is_up(RECEIVER) && world.receiver.is_up(SENDER));
        world
    }

    /// Hundredths of a second pass, in which all that is sent arrives.
    fn calm(&mut self, count: usize) {
        for _ in 0..count {
            self.now += Duration::from_millis(10);
            self.sender.handle_timeout(self.now);
            while let Some(frame) = self.next_frame() {
                self.arrives(&frame);
            }
            self.receiver.handle_timeout(self.now);
            while let Some(transmit) = self.receiver.poll_transmit(self.now) {
                let frame = transmit.frame.to_vec();
                self.sender.handle_frame(self.now, &frame);
            }
        }
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let frame = self.sender.poll_transmit(self.now)?.frame.to_vec();
        self.unsealer.unseal(&frame, &mut Vec::new());
        Some(frame)
    }

    /// The body of a frame with packets, or with part of one.
    fn body(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let mut clear = Vec::new();
        self.unsealer.unseal(frame, &mut clear)?;
        let body = clear.get(HEADER_LEN..clear.len() - TAG_LEN)?;
        let is_hello = Header::parse(frame).is_none_or(|header| header.is_hello);
        let first = body.first().map(|&code| code & 0x7f);
        let is_of_packets = [Kind::Plain, Kind::Part].iter().any(|kind| Some(kind.code()) == first);
        (is_of_packets && !is_hello).then(|| body.to_vec())
    }

    /// The receiver receives a frame, and must do with it what its twin does.
    fn arrives(&mut self, frame: &[u8]) -> FrameOutcome {
        let body = self.body(frame);
        let outcome = self.receiver.handle_frame(self.now, frame);
        let is_new = match outcome {
            FrameOutcome::Rejected(rejection) => rejection == corridor_proto::Rejection::NotForUs,
            _ => true,
        };
        let expected = body.filter(|_| is_new).map(|body| self.twin.hear(&body));
        let came = core::iter::from_fn(|| Some(self.receiver.poll_packet()?.to_vec()));
        let came: Vec<_> = came.collect();
        assert_eq!(came, expected.unwrap_or_default());
        assert_eq!(self.receiver.stats().symbols_joined, self.twin.joined);
        let kept = self.receiver.inspect().parts_bytes();
        assert!(kept == self.twin.bytes() && kept <= PARTS_WHOLES_MAX * WHOLE_LEN_MAX);
        self.came.extend(came);
        outcome
    }

    /// The receiver receives an invented body in place of one of the sender's.
    fn lies(&mut self, frame: &[u8], body: &[u8]) {
        if let Some(lie) = self.unsealer.reseal(frame, body) {
            self.has_lied = true;
            self.arrives(&lie);
        }
    }

    /// A frame of the sender's that nobody has received, to be replaced by another.
    fn unheard(&mut self) -> Option<Vec<u8>> {
        self.sender.handle_packet(self.now, &[1]);
        for _ in 0..8 {
            let frame = self.next_frame()?;
            if self.body(&frame).is_some() {
                return Some(frame);
            }
        }
        None
    }
}

/// Invented parts of a few chunks that claim to be of one frame.
fn made_up(input: &mut Input<'_>, base: u16) -> Vec<u8> {
    let mut body = Vec::new();
    let count = 1 + input.below(3);
    for at in 1..=count {
        let whole = base.wrapping_add(input.below(12) as u16);
        let len = LENS[input.below(LENS.len())];
        // A packet that fills the whole body, more often than not.
        let mut bytes = vec![Kind::Plain.code()];
        bytes.extend_from_slice(&len.saturating_sub(3).to_be_bytes());
        bytes.extend(source(whole.into(), 64).iter().cycle().take(len.into()));
        bytes.truncate(len.into());
        let begin = (usize::from(input.byte()) * 37) % bytes.len();
        let end = (begin + 1 + input.below(256)).min(bytes.len());
        if input.below(8) == 0 {
            bytes[begin] ^= input.byte();
        }
        let len = NonZeroU16::new(len).expect("none is 0");
        let part = Part { whole, len, at: begin as u16, bytes: &bytes[begin..end] };
        let mut written = Vec::new();
        part.write(&mut written);
        match at == count {
            true => Kind::Part.begin_last(&mut body),
            false => {
                Kind::Part.write(&written, &mut body);
                continue;
            }
        }
        body.extend(written);
    }
    body
}

/// Interprets `data` as events between two stations: a host sends, the MTU falls and rises, frames
/// arrive in any order, get lost, are replayed, altered, or invented by somebody who has the
/// secret. Returns how many chunks were assembled from their parts before the end.
///
/// # Panics
/// If the receiver delivers other packets than its twin, keeps more or less than it, or accepts a
/// frame twice; or if a packet that waits while the MTU falls does not cross in the end, although
/// nothing was invented.
pub fn parts(data: &[u8]) -> u64 {
    let mut input = Input::new(data);
    let (mut world, mut base) = (World::new(), 0);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        match input.below(12) {
            0 | 1 => {
                let len = usize::from(input.byte()) * 37 % world.sender.tunnel_mtu() + 1;
                world.sender.handle_packet(world.now, &vec![input.byte(); len]);
            }
            2 | 3 => {
                if world.flying.len() < FLYING_MAX {
                    let frame = world.next_frame();
                    world.flying.extend(frame);
                }
            }
            4 => {
                let len = usize::from(input.byte()) * 37;
                world.sender.limit_frames(world.now, len);
            }
            5..=7 if !world.flying.is_empty() => {
                let frame = world.flying.swap_remove(input.below(world.flying.len()));
                world.arrives(&frame);
                let outcome = world.arrives(&frame);
                let is_hello = Header::parse(&frame).is_none_or(|header| header.is_hello);
                let is_refused = matches!(outcome, FrameOutcome::Rejected(_));
                assert!(is_hello || is_refused, "taken twice: {outcome:?}");
            }
            8 if !world.flying.is_empty() => {
                world.flying.swap_remove(input.below(world.flying.len()));
            }
            9 => {
                let body = made_up(&mut input, base);
                if let Some(frame) = world.unheard() {
                    world.lies(&frame, &body);
                }
            }
            10 if !world.flying.is_empty() => {
                let frame = world.flying.swap_remove(input.below(world.flying.len()));
                let (place, by) = (usize::from(input.byte()), 1 + input.byte() % 255);
                if let Some(mut body) = world.body(&frame).filter(|body| body.len() > 1) {
                    // Its kind stays the same.
                    let place = 1 + place % (body.len() - 1);
                    body[place] ^= by;
                    world.lies(&frame, &body);
                }
            }
            11 if input.below(4) == 0 => base = input.u32() as u16,
            _ => world.calm(input.below(16)),
        }
    }
    let joined = world.twin.joined;
    end(world);
    joined
}

/// In the end all frames arrive.
fn end(mut world: World) {
    world.sender.limit_frames(world.now, FRAME_LEN_MAX);
    world.calm(300);
    let long = vec![0x45; 8_000];
    world.sender.handle_packet(world.now, &long);
    world.sender.limit_frames(world.now, 300);
    world.came.clear();
    world.calm(10);
    assert!(world.has_lied || world.came == [long], "a packet is stranded");
}
