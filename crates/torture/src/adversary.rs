//! Adversaries that send forged frames: a stranger without the key, and a malicious holder of the
//! key.

use core::num::NonZeroU16;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use corridor_base::Time;
use corridor_base::rand::Rng;
use corridor_proto::bounds::{CHUNKS_MAX, MTU_ECHOES_MAX};
use corridor_proto::relay::wire::Frame;
use corridor_proto::wire::intervals::Intervals;
use corridor_proto::wire::{
    Ack, BlockAck, CodedSeed, Echo, Enc, EncoderReport, FlowId, Form, HEADER_LEN, HELLO_CLEAR_LEN,
    Header, Hello, HelloTo, KeyExchange, Kind, Lanes, LinkFeedback, PairGap, Part, PathId,
    Random128, Relayed, Report, TAG_LEN, WINDOW_BITMAP_LEN_MAX, WindowFeedback, WindowForm,
    WindowSymbol, Word,
};
use corridor_proto::{Field, Mode, Psk, Station, StationConfig, StationId, Unsealer};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};

use super::draw::Dice;
use super::scenario::{Forgery, PAIR_NUMBERS};

/// Kinds of chunks that an insider sends. A goodbye would end what is being tested.
const KINDS: [Kind; 17] = [
    Kind::Enc,
    Kind::Enc,
    Kind::Ack,
    Kind::Report,
    Kind::Hello,
    Kind::Plain,
    Kind::Window,
    Kind::Window,
    Kind::WindowAck,
    Kind::Probe,
    Kind::Echoes,
    Kind::Challenge,
    Kind::Answer,
    Kind::GoodbyeHeard,
    Kind::Link,
    Kind::Relayed,
    Kind::Part,
];

/// Most frames recorded for replay.
const RECORDED_MAX: usize = 200;

/// An adversary without the key that hears every frame.
pub(super) struct Stranger {
    dice: Dice,
    recorded: Vec<Vec<u8>>,
    /// Stations that were never started, with a key of their own.
    pretenders: Vec<Station>,
}

impl Stranger {
    /// A stranger that knows everything but the keys of these stations.
    pub(super) fn new(seed: u64, configs: &[StationConfig]) -> Self {
        let pretender = |(at, config): (usize, &StationConfig)| {
            let mut entropy = [0; 32];
            Dice::new(seed, at as u64, "torture pretender").0.fill_bytes(&mut entropy);
            let config = StationConfig { security: [0x99; 32].into(), ..config.clone() };
            Station::new(config, entropy, Time::ZERO).ok()
        };
        let pretenders = configs.iter().enumerate().filter_map(pretender).collect();
        Stranger { dice: Dice::new(seed, 0, "torture stranger"), recorded: Vec::new(), pretenders }
    }

    /// Hears a frame, and may record it.
    pub(super) fn hear(&mut self, frame: &[u8]) {
        if self.recorded.len() < RECORDED_MAX && self.dice.chance(200_000) {
            self.recorded.push(frame.to_vec());
        }
    }

    /// Whether to forge a frame now.
    pub(super) fn strikes(&mut self, ppm: u32) -> bool {
        self.dice.chance(ppm)
    }

    /// The target of a forged frame, given the receiver of the original: an index among `stations`.
    pub(super) fn aim(&mut self, hearer: usize, stations: usize) -> usize {
        if self.dice.below(3) == 0 { self.dice.below(stations as u64) as usize } else { hearer }
    }

    /// Forges a frame from one that `from` sent. Also returns whether no station ever sealed the
    /// result; a replayed recording, at the right time, is as good as new.
    pub(super) fn forge(
        &mut self,
        now: Time,
        from: usize,
        frame: &[u8],
        means: &[Forgery],
    ) -> Option<(Vec<u8>, bool)> {
        if means.is_empty() {
            return None;
        }
        let means = self.dice.pick(means);
        let at = self.dice.0.next_u64() as usize;
        let recorded = || self.recorded.get(at % RECORDED_MAX).cloned();
        let mut bent = frame.to_vec();
        match means {
            Forgery::FlippedBit => bent[at % frame.len()] ^= 1 << (at % 8),
            Forgery::Truncated => bent.truncate(at % frame.len()),
            Forgery::Extended => bent.extend_from_slice(&frame[..1 + at % frame.len()]),
            Forgery::Noise => {
                bent = vec![0; at % 100];
                self.dice.0.fill_bytes(&mut bent);
            }
            Forgery::NoiseBehindHeader => self.dice.0.fill_bytes(&mut bent[HEADER_LEN..]),
            Forgery::Spliced => {
                let other = recorded()?;
                bent.truncate(HEADER_LEN);
                bent.extend_from_slice(other.get(HEADER_LEN..).unwrap_or_default());
                return Some((bent.clone(), bent != frame && bent != other));
            }
            Forgery::Replayed => return Some((recorded()?, false)),
            Forgery::OtherKey => {
                let pretender = self.pretenders.get_mut(from)?;
                pretender.handle_timeout(now);
                bent = pretender.poll_transmit(now)?.frame.to_vec();
            }
        }
        let is_whole = is_same_exchange(frame, &bent);
        Some((bent, !is_whole))
    }
}

/// Whether two frames begin a key exchange with the same content: the trailing zeros do not matter.
pub(super) fn is_same_exchange(frame: &[u8], other: &[u8]) -> bool {
    let [a, b] = [frame, other].map(|frame| Some(KeyExchange::parse(frame)?.frame));
    a.is_some() && a == b
}

/// What an insider knows of a session.
struct Known {
    sender: u16,
    id: Random128,
    counter: u32,
    /// Oldest block or symbol that it holds, according to its last greeting.
    base: u32,
    key: LessSafeKey,
}

impl Known {
    /// The greeting in a frame that this session sealed.
    fn greeting(&self, header: &Header, frame: &[u8]) -> Option<Hello> {
        let (clear, sealed) = frame.split_at_checked(header.clear_len())?;
        let mut body = sealed.to_vec();
        let body = self.key.open_in_place(nonce(header.counter), Aad::from(clear), &mut body);
        Hello::find(body.ok()?)
    }
}

fn nonce(counter: u32) -> Nonce {
    let mut nonce = [0; 12];
    nonce[8..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// A key holder that seals arbitrary frames under the sessions of others. This is a second
/// implementation of the wire format's sealing, written from its description: frames sealed here
/// open at stations, which also shows that the description is right.
pub(super) struct Insider {
    psk: [u8; 32],
    dice: Dice,
    sessions: BTreeMap<u16, Known>,
}

impl Insider {
    pub(super) fn new(seed: u64, psk: [u8; 32]) -> Self {
        Insider { psk, dice: Dice::new(seed, 0, "torture insider"), sessions: BTreeMap::new() }
    }

    /// Learns sessions from greetings, and counters from all frames.
    pub(super) fn hear(&mut self, frame: &[u8]) {
        let Some(header) = Header::parse(frame) else { return };
        if header.is_hello && !self.sessions.contains_key(&header.session_tag) {
            let sender = u16::from_be_bytes([frame[HEADER_LEN], frame[HEADER_LEN + 1]]);
            let id = frame[HEADER_LEN + 2..HEADER_LEN + HELLO_CLEAR_LEN].try_into();
            let known = id.ok().and_then(|id| {
                let key = session_key(&self.psk, sender, &id)?;
                Some(Known { sender, id, counter: 0, base: 0, key })
            });
            if let Some(known) = known {
                self.sessions.insert(header.session_tag, known);
            }
        }
        if let Some(known) = self.sessions.get_mut(&header.session_tag) {
            known.counter = known.counter.max(header.counter);
            let hello = header.is_hello.then(|| known.greeting(&header, frame));
            known.base = hello.flatten().map_or(known.base, |hello| hello.base);
        }
    }

    pub(super) fn strikes(&mut self, ppm: u32) -> bool {
        self.dice.chance(ppm)
    }

    /// A frame that can be opened, with a nonsensical body.
    pub(super) fn forge(&mut self) -> Option<Vec<u8>> {
        let at = self.dice.below(self.sessions.len() as u64) as usize;
        let (&tag, known) = self.sessions.iter_mut().nth(at)?;
        known.counter += 1 + self.dice.below(3) as u32;
        let kind = self.dice.pick(&KINDS);
        let header =
            Header { is_hello: kind == Kind::Hello, session_tag: tag, counter: known.counter };
        let mut frame = Vec::new();
        header.write(&mut frame);
        if header.is_hello {
            frame.extend_from_slice(&known.sender.to_be_bytes());
            frame.extend_from_slice(&known.id);
        }
        let (clear, sender, id) = (frame.len(), known.sender, known.id);
        // A chunk that may precede it, mostly none.
        let any = [self.dice.pick(&KINDS)];
        let before: &[Kind] = match self.dice.below(8) {
            0 | 1 if kind == Kind::Enc => &[Kind::Ack],
            0..=2 if matches!(kind, Kind::Window | Kind::WindowAck) => {
                &[Kind::Link, Kind::WindowAck]
            }
            3 if kind == Kind::WindowAck => &[Kind::Link],
            3 if kind == Kind::Window => &[Kind::Window],
            3 if kind == Kind::Enc => &[Kind::Enc],
            0 => &any,
            _ => &[],
        };
        if self.dice.below(16) == 0 {
            // Chunks that no station sends: unknown kinds, and more chunks than allowed.
            let code = self.dice.pick(&[0, 17, 0x7f, Kind::Echoes.code()]);
            let count = self.dice.pick(&[1, CHUNKS_MAX - 1, CHUNKS_MAX, 60]);
            (0..count).for_each(|_| frame.extend_from_slice(&[0x80 | code, 1, 0]));
        }
        for &kind in before {
            let mut body = Vec::new();
            self.write_body(kind, sender, id, &mut body);
            kind.write(&body, &mut frame);
        }
        kind.begin_last(&mut frame);
        self.write_body(kind, sender, id, &mut frame);
        let (head, body) = frame.split_at_mut(clear);
        let key = &self.sessions.get(&tag)?.key;
        let nonce = nonce(header.counter);
        let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(head), body).ok()?;
        frame.extend_from_slice(sealed.as_ref());
        Some(frame)
    }

    /// A body of this kind that parses, or noise.
    fn write_body(&mut self, kind: Kind, sender: u16, id: Random128, out: &mut Vec<u8>) {
        let told = |known: &Known, own: bool| (known.sender == sender) == own;
        let find = |own: bool| self.sessions.values().rfind(|known| told(known, own));
        let base = |own: bool| find(own).map_or(0, |known| known.base);
        // Symbols have the sender's numbers, feedback those of the other side.
        let (own_base, other_base) = (base(true), base(false));
        let other_counter = find(false).map_or(0, |known| known.counter);
        let dice = &mut self.dice;
        let number = |dice: &mut Dice| dice.0.next_u32() as u16;
        let station = |dice: &mut Dice| {
            let pair = dice.below(2) as u16;
            StationId(1 + dice.below(3) as u16 + PAIR_NUMBERS * pair)
        };
        if dice.below(3) == 0 {
            let mut noise = vec![0; dice.below(80) as usize];
            dice.0.fill_bytes(&mut noise);
            out.extend_from_slice(&noise);
            return;
        }
        match kind {
            Kind::Part => {
                let inner =
                    dice.pick(&[Kind::Window, Kind::Window, Kind::Enc, Kind::Plain, Kind::Goodbye]);
                let mut whole = Vec::new();
                inner.begin_last(&mut whole);
                self.write_body(inner, sender, id, &mut whole);
                write_part(&mut self.dice, &whole, out);
            }
            Kind::Enc => {
                let count = NonZeroU16::MIN.saturating_add(dice.below(200) as u16);
                let vector = vec![0xa5; usize::from(count.get())];
                let form = match dice.below(4) {
                    0 => Form::Source { index: number(dice) },
                    3 => Form::Tagged { index: number(dice) },
                    1 => Form::Seeded { count, seed: dice.0.next_u32() },
                    _ => Form::Explicit { run: number(dice), count, vector: &vector },
                };
                let flow = if dice.below(4) == 0 { station(dice) } else { StationId(sender) };
                Enc::write_head(flow, number(dice), form, out);
                out.resize(out.len() + dice.below(300) as usize, 0x5a);
            }
            Kind::Ack => {
                let block = |dice: &mut Dice| {
                    let known = dice.below(64) as u16;
                    let rank = dice.below(u64::from(known) + 1) as u16;
                    let decoded = vec![0x33; usize::from(known).div_ceil(8)];
                    BlockAck {
                        block: number(dice),
                        given_up: rank.is_multiple_of(3),
                        rank,
                        known,
                        decoded,
                    }
                };
                let count = dice.below(5);
                let ack = Ack {
                    flow: station(dice),
                    base: number(dice),
                    encoder_counter: dice.pick(&[0, 5, 1_000, u32::MAX]),
                    helper_counter: dice.0.next_u32(),
                    e2: dice.pick(&[0.0, 0.5, 1.0]),
                    e3: dice.pick(&[0.0, 0.5, 1.0]),
                    blocks: (0..count).map(|_| block(dice)).collect(),
                };
                ack.write(out);
            }
            Kind::Report => {
                let encoder = |dice: &mut Dice| EncoderReport {
                    flow: station(dice),
                    e1: dice.pick(&[0.0, 0.3, 1.0]),
                    frames: dice.pick(&[0, 1, other_counter, u32::MAX]),
                };
                let encoders = (0..dice.below(4)).map(|_| encoder(dice)).collect();
                Report { encoders }.write(out);
            }
            Kind::Hello => {
                let zero = [0; 16];
                let to = HelloTo {
                    station: station(dice),
                    session: id,
                    challenge: zero,
                    answer: zero,
                    accepted: true,
                    asks: dice.below(2) == 0,
                    instead: None,
                    lanes: lanes(dice),
                    lane_size: dice.pick(&[1, 100, 1_024]),
                };
                let hello = Hello {
                    instance: dice.0.next_u64(),
                    field: dice.pick(&[Field::Gf2, Field::Gf16, Field::Gf256]),
                    block_size: number(dice),
                    symbol_size: number(dice),
                    mode: dice.pick(&[Mode::Block, Mode::Window]),
                    base: dice.0.next_u32(),
                    to: vec![to],
                    intervals: intervals(dice),
                };
                hello.write(out);
            }
            Kind::Window => write_window(dice, own_base, out),
            Kind::WindowAck => write_window_feedback(dice, other_base, out),
            Kind::Link => write_link_feedback(dice, other_counter, out),
            Kind::Probe
            | Kind::Echoes
            | Kind::Challenge
            | Kind::Answer
            | Kind::Goodbye
            | Kind::GoodbyeHeard => write_word(dice, kind, station, out),
            Kind::Plain | Kind::Relayed => out.extend_from_slice(&[0, 3, 1, 2, 3, 0xff, 0xff, 9]),
        }
    }
}

/// A station's message about the path or about itself.
fn write_word(
    dice: &mut Dice,
    kind: Kind,
    station: impl FnOnce(&mut Dice) -> StationId,
    out: &mut Vec<u8>,
) {
    let number = |dice: &mut Dice| dice.0.next_u32() as u16;
    let word = match kind {
        Kind::Probe => Word::Probe { round: number(dice), before: number(dice) as u8 },
        Kind::Echoes => {
            let count = dice.below(MTU_ECHOES_MAX as u64 + 1);
            let echo = |_| Echo { round: dice.below(8) as u16, len: number(dice) };
            Word::Echoes((0..count).map(echo).collect())
        }
        Kind::Answer => Word::Answer { to: station(dice), token: [0x5a; 8] },
        // A goodbye would end what is being tested.
        Kind::Goodbye | Kind::GoodbyeHeard => Word::GoodbyeHeard { to: station(dice) },
        _ => Word::Challenge { to: station(dice), token: [0x5a; 8] },
    };
    let mut written = Vec::new();
    word.write_last(&mut written);
    // Without its kind, which has been written already.
    out.extend_from_slice(&written[1..]);
    out.resize(out.len() + dice.below(300) as usize, 0);
}

/// A whole chunk, or a part of it, which may claim to belong to another one.
fn write_part(dice: &mut Dice, whole: &[u8], out: &mut Vec<u8>) {
    let len = whole.len() as u16;
    let (at, said) = (dice.pick(&[0, 0, 0, 1, 7, len / 2]), dice.pick(&[len, len, len, 2, 9_216]));
    let bytes = whole.get(at.into()..).unwrap_or_default();
    let len = NonZeroU16::new(said).unwrap_or(NonZeroU16::MIN);
    let bytes = &bytes[..bytes.len() / dice.pick(&[1, 1, 1, 2])];
    Part { whole: dice.below(9) as u16, len, at, bytes }.write(out);
}

/// A number near `base`, as far from it as possible, or anywhere.
fn near(dice: &mut Dice, base: u32) -> u32 {
    let anywhere = dice.0.next_u32();
    let ahead = dice.pick(&[0, 1, 3, 40, 1_023, 1_024, 70_000, 1 << 31, u32::MAX, anywhere]);
    base.wrapping_add(ahead).wrapping_sub(dice.below(3) as u32)
}

/// A window symbol with arbitrary claims about itself.
fn write_window(dice: &mut Dice, base: u32, out: &mut Vec<u8>) {
    let number = dice.pick(&[0, 1, 2, 60, 1_023, 1_024, 1_025, 16_383]);
    let id = near(dice, base);
    let form = match NonZeroU16::new(number) {
        Some(count) if dice.below(2) == 0 => {
            let seed = CodedSeed::new(id.into(), dice.0.next_u32() as u16);
            WindowForm::Coded { seed, count, lanes: lanes(dice) }
        }
        _ => WindowForm::Source { id, distance: number, lanes: lanes(dice) },
    };
    WindowSymbol::write_head(FlowId(dice.pick(&[0, 0, 0, 1])), form, out);
    let len = dice.pick(&[1, 2, 40, 64, 300]);
    out.resize(out.len() + len, dice.pick(&[0, 0x5a, 0xff]));
}

/// The largest number of lanes, or mostly one.
fn lanes(dice: &mut Dice) -> Lanes {
    let code = if dice.below(2) == 0 { 0 } else { dice.below(5) as u8 };
    Lanes::from_code(code).unwrap_or(Lanes::ONE)
}

/// Implausible intervals.
fn intervals(dice: &mut Dice) -> Intervals {
    let ms = |dice: &mut Dice| Some(Duration::from_millis(dice.pick(&[0, 1, 30, 5_000, 65_535])));
    Intervals { feedback: ms(dice), hello: ms(dice) }
}

/// Link feedback with arbitrary claims.
fn write_link_feedback(dice: &mut Dice, counter: u32, out: &mut Vec<u8>) {
    let word = |dice: &mut Dice| dice.0.next_u32();
    let near_counter = counter.wrapping_sub(dice.below(20) as u32);
    let anywhere = word(dice);
    let feedback = LinkFeedback {
        path: PathId::new(dice.pick(&[0, 0, 0, 1])).unwrap_or_default(),
        half_duplex: false,
        counter: dice.pick(&[0, 1, near_counter, near_counter, near_counter, u32::MAX, anywhere]),
        delay: Duration::from_nanos(word(dice).into()),
        received_at_us: word(dice),
        frames: dice.pick(&[0, 1, u32::MAX, anywhere]),
        loss_ratio: dice.pick(&[0.0, 0.5, 1.0]),
        lateness: Duration::from_nanos(dice.pick(&[0, 0, 1 << 14, 1 << 24, u64::MAX])),
        pair: dice
            .pick(&[None, Some(0), Some(1), Some(1_000_000), Some(u32::MAX)])
            .map(|gap_ns| PairGap { gap_ns, number: anywhere as u8 }),
    };
    feedback.write(out);
}

/// Window feedback with arbitrary claims.
fn write_window_feedback(dice: &mut Dice, base: u32, out: &mut Vec<u8>) {
    let span = dice.pick(&[0, 1, 50, 1_024, u16::MAX]);
    let anywhere = dice.0.next_u32();
    let len = dice.below(WINDOW_BITMAP_LEN_MAX as u64 + 1) as usize;
    let lanes = lanes(dice);
    let feedback = WindowFeedback {
        flow: FlowId(dice.pick(&[0, 0, 0, 1])),
        next: near(dice, base),
        lanes,
        lane: dice.below(lanes.count() as u64) as u8,
        span,
        deficit: dice.pick(&[0, 1, span / 2, span]).min(span),
        useless: dice.pick(&[0, 1, u16::MAX, anywhere as u16]),
        needed: std::iter::repeat_n(dice.pick(&[0, 0x11, 0xff]), len).collect(),
        credit: dice.pick(&[None, None, None, Some(0), Some(1), Some(40), Some(u16::MAX)]),
    };
    feedback.write(out);
}

/// Malicious helpers and relays, whose symbols are not what they claim to be.
pub(super) struct Liars {
    dice: Dice,
    /// The session of each, under which it seals.
    own: BTreeMap<usize, Unsealer>,
    /// A relay's packets, to be sent again.
    packets: VecDeque<Vec<u8>>,
}

impl Liars {
    pub(super) fn new(seed: u64) -> Self {
        let dice = Dice::new(seed, 0, "torture liars");
        Liars { dice, own: BTreeMap::new(), packets: VecDeque::new() }
    }

    /// With this probability, replaces a frame that only has a relay's packet: the packet is
    /// altered, cut, or one that the relay has sent before.
    pub(super) fn bend_packet(
        &mut self,
        from: usize,
        secret: &Psk,
        frame: &[u8],
        ppm: u32,
    ) -> Option<Vec<u8>> {
        let own = self.own.entry(from).or_insert_with(|| Unsealer::new(secret.clone()));
        own.follow(secret);
        let mut clear = Vec::new();
        own.unseal(frame, &mut clear)?;
        if Header::parse(frame)?.is_hello || !self.dice.chance(ppm) {
            return None;
        }
        let (&kind, body) = clear.get(HEADER_LEN..clear.len() - TAG_LEN)?.split_first()?;
        let relayed = Relayed::parse(body).filter(|_| kind == Kind::Relayed.code())?;
        let Frame::Plain { counter, ttl, asks, packet } = Frame::parse(relayed.frame)? else {
            return None;
        };
        let mut packet = packet.to_vec();
        let len = packet.len();
        match self.dice.below(4) {
            0 => packet[self.dice.below(len as u64) as usize] ^= 1,
            1 => packet.truncate(len - self.dice.below(len as u64) as usize),
            2 => packet.extend_from_slice(&[0x5a; 15]),
            _ => {
                let heard = self.packets.pop_front();
                self.packets.push_back(packet.clone());
                packet = heard.filter(|_| self.packets.len() > 1).unwrap_or(packet);
            }
        }
        let changed = Frame::Plain { counter, ttl, asks, packet: &packet }.to_bytes();
        let mut bent = Vec::new();
        Kind::Relayed.begin_last(&mut bent);
        Relayed { to: relayed.to, frame: &changed }.write(&mut bent);
        own.reseal(frame, &bent)
    }

    /// With this probability, replaces a frame that has a recoded symbol.
    pub(super) fn bend(
        &mut self,
        from: usize,
        secret: &Psk,
        frame: &[u8],
        ppm: u32,
    ) -> Option<Vec<u8>> {
        let own = self.own.entry(from).or_insert_with(|| Unsealer::new(secret.clone()));
        own.follow(secret);
        let mut clear = Vec::new();
        own.unseal(frame, &mut clear)?;
        let is_hello = Header::parse(frame)?.is_hello;
        let mut body = clear.get(HEADER_LEN..clear.len() - TAG_LEN)?.to_vec();
        let is_symbol = body.first() == Some(&Kind::Enc.code());
        if is_hello || !is_symbol || !self.dice.chance(ppm) {
            return None;
        }
        // Alters a coefficient, the payload or the length, or the end of the symbol's description.
        let len = body.len();
        match self.dice.below(4) {
            0 => body[len - 1] ^= 0x5a,
            1 => body.truncate(len - self.dice.below(len as u64 / 4) as usize),
            2 => body[7 + self.dice.below(len as u64 - 7) as usize] ^= 1,
            _ => body[3 + self.dice.below(len as u64 - 3) as usize] ^= 0xff,
        }
        own.reseal(frame, &body)
    }
}

struct KeyLen;

impl KeyType for KeyLen {
    fn len(&self) -> usize {
        16
    }
}

fn session_key(psk: &[u8; 32], sender: u16, id: &Random128) -> Option<LessSafeKey> {
    let info: [&[u8]; 3] = [b"session", &sender.to_be_bytes(), id];
    let mut key = [0; 16];
    let derived = Salt::new(HKDF_SHA256, b"corridor wire 3").extract(psk);
    derived.expand(&info, KeyLen).and_then(|okm| okm.fill(&mut key)).ok()?;
    UnboundKey::new(&AES_128_GCM, &key).ok().map(LessSafeKey::new)
}
