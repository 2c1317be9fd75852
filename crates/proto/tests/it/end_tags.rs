//! Tags from end to end, where a helper recodes: two ends and a helper with keys of their own, and
//! somebody who has every key that the helper has, and changes what is on its way.

use core::time::Duration;

use corridor_base::rand::{RngExt, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::bounds::{LEFT_OUT_DEADLINES, MEMORY_DEFAULT};
use corridor_proto::wire::{
    Chunks, END_TAG_LEN, Enc, Form, HEADER_LEN, Header, Kind, TAG_LEN, VERSION,
};
use corridor_proto::{
    CodingParams, Event, Field, Keys, LinkErrors, Order, PeerKey, PrivateKey, Psk, Role, Security,
    Station, StationConfig, StationId, Stats, Unsealer,
};
use proptest::prelude::*;

const IDS: [StationId; 3] = [StationId(1), StationId(2), StationId(3)];
const ENCODER: usize = 0;
const SINK: usize = 1;
const HELPER: usize = 2;
/// So long that nothing is given up for being late: what does not come out was forgotten.
const DEADLINE: Duration = Duration::from_secs(60);

fn keys(index: usize) -> Security {
    let private = |id: StationId| PrivateKey::from_random([id.0 as u8; 32]);
    let others = IDS.iter().filter(|&&other| other != IDS[index]);
    let psk = |station: StationId| {
        // The two ends have a secret besides.
        (index != HELPER && station != IDS[HELPER]).then(|| Psk::from([5; 32]))
    };
    let peer = |&station: &StationId| {
        let public = private(station).public();
        PeerKey { station, public, psk: psk(station) }
    };
    let peers = others.map(peer).collect();
    Security::Keys(Box::new(Keys { private: private(IDS[index]), peers }))
}

fn config(index: usize, security: Security, coding: CodingParams) -> StationConfig {
    let role = match index {
        HELPER => Role::Helper { between: (IDS[0], IDS[1]) },
        _ => Role::Endpoint { peer: IDS[1 - index], helper: Some(IDS[HELPER]) },
    };
    StationConfig {
        id: IDS[index],
        role,
        security,
        coding,
        link_errors: LinkErrors::Measured,
        ingress_packets: 1_000,
        frame_len_max: 1_400,
        frame_len_min: 0,
        memory_bytes: MEMORY_DEFAULT,
        rate_bps: None,
    }
}

fn coding() -> CodingParams {
    CodingParams { delivery_deadline: DEADLINE, ..CodingParams::default() }
}

/// What becomes of an ENC on its way to one station: its body, to be changed.
type Tamper = Box<dyn FnMut(usize, usize, &mut Vec<u8>, &mut Stream) -> bool>;

fn honest() -> Tamper {
    Box::new(|_, _, _, _| false)
}

/// Another last byte: of the payload, whatever it is a combination of.
fn bend(body: &mut [u8]) {
    if let Some(last) = body.last_mut() {
        *last ^= 0x5a;
    }
}

struct Air {
    at: Time,
    to: usize,
    frame: Vec<u8>,
}

/// Three stations that all hear all, and somebody with the helper's keys.
struct Cell {
    now: Time,
    stations: Vec<Station>,
    /// What the helper can open and seal, of each.
    opened: [Unsealer; 3],
    air: Vec<Air>,
    /// Share of the frames between the ends that is lost.
    loss: f64,
    dice: Stream,
    tamper: Tamper,
    tampered: usize,
    sent: Vec<Vec<u8>>,
    delivered: Vec<Vec<u8>>,
    events: Vec<(usize, Event)>,
    /// Bodies of ENCs that were sent, by whom.
    bodies: Vec<(usize, Vec<u8>)>,
}

impl Cell {
    fn new(seed: u8, coding: CodingParams, tamper: Tamper) -> Self {
        Cell::with(seed, |index| config(index, keys(index), coding), tamper)
    }

    fn with(seed: u8, config: impl Fn(usize) -> StationConfig, tamper: Tamper) -> Self {
        let station =
            |index| Station::new(config(index), [seed ^ 3 << index; 32], Time::ZERO).unwrap();
        Cell {
            now: Time::ZERO,
            stations: (0..3).map(station).collect(),
            opened: [0; 3].map(|_| Unsealer::new([0; 32])),
            air: Vec::new(),
            loss: 0.4,
            dice: Stream::from_seed([seed; 32]),
            tamper,
            tampered: 0,
            sent: Vec::new(),
            delivered: Vec::new(),
            events: Vec::new(),
            bodies: Vec::new(),
        }
    }

    /// A frame of one station on its way to another one, perhaps changed by somebody who can.
    fn tampered(&mut self, from: usize, to: usize, frame: &[u8]) -> Vec<u8> {
        let secret = self.stations[from].secret().cloned();
        if let Some(secret) = secret {
            self.opened[from].follow(&secret);
        }
        let mut out = Vec::new();
        let is_data = Header::parse(frame).is_some_and(|header| !header.is_hello);
        if self.opened[from].unseal(frame, &mut out).is_none() || !is_data {
            return frame.to_vec();
        }
        let chunks = &out[HEADER_LEN..out.len() - TAG_LEN];
        let enc = Chunks::new(chunks).flatten().find(|chunk| chunk.kind == Kind::Enc);
        let Some(enc) = enc else { return frame.to_vec() };
        let mut body = enc.body.to_vec();
        self.bodies.push((from, body.clone()));
        if !(self.tamper)(from, to, &mut body, &mut self.dice) {
            return frame.to_vec();
        }
        self.tampered += 1;
        let mut chunks = Vec::new();
        Kind::Enc.begin_last(&mut chunks);
        chunks.extend_from_slice(&body);
        self.opened[from].reseal(frame, &chunks).expect("it opened before")
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(1);
        let now = self.now;
        let all = core::mem::take(&mut self.air);
        let (due, later) = all.into_iter().partition(|it| it.at <= now);
        self.air = later;
        let due: Vec<Air> = due;
        for Air { to, frame, .. } in due {
            self.stations[to].handle_frame(now, &frame);
        }
        for from in 0..3 {
            self.stations[from].handle_timeout(now);
            while let Some(transmit) = self.stations[from].poll_transmit(now) {
                let frame = transmit.frame.to_vec();
                for to in (0..3).filter(|&to| to != from) {
                    let between_ends = from != HELPER && to != HELPER;
                    let frame = self.tampered(from, to, &frame);
                    if !between_ends || self.dice.random::<f64>() >= self.loss {
                        self.air.push(Air { at: now + Duration::from_millis(2), to, frame });
                    }
                }
            }
            while let Some(packet) = self.stations[from].poll_packet() {
                let packet = packet.bytes().to_vec();
                if from == SINK {
                    self.delivered.push(packet);
                }
            }
            while let Some(event) = self.stations[from].poll_event() {
                self.events.push((from, event));
            }
        }
    }

    fn run(&mut self, ms: usize) {
        (0..ms).for_each(|_| self.step());
    }

    fn meet(&mut self) {
        for _ in 0..5_000 {
            let up = |index: usize| {
                let mut others = IDS.iter().filter(|&&id| id != IDS[index]);
                others.all(|&id| self.stations[index].is_up(id))
            };
            if (0..3).all(up) {
                return;
            }
            self.step();
        }
        panic!("no session after five seconds");
    }

    /// So many packets from the encoder's host, one each two milliseconds.
    fn talk(&mut self, packets: usize) {
        for _ in 0..packets {
            let number = self.sent.len() as u32;
            let mut packet = vec![0x45; 60 + number as usize % 400];
            let end = packet.len() - 4;
            packet[end..].copy_from_slice(&number.to_be_bytes());
            self.stations[ENCODER].handle_packet(self.now, &packet);
            self.sent.push(packet);
            self.run(2);
        }
    }

    /// Waits until all has come out; whether it has, and nothing else.
    fn is_all_delivered(&mut self) -> bool {
        for _ in 0..200 {
            if self.delivered.len() >= self.sent.len() {
                break;
            }
            self.run(100);
        }
        self.delivered == self.sent
    }

    fn stats(&self, index: usize) -> &Stats {
        self.stations[index].stats()
    }

    fn left_out(&self) -> Vec<(usize, StationId, StationId)> {
        let events = self.events.iter();
        let of = |(at, event): &(usize, Event)| match *event {
            Event::HelperLeftOut { helper, flow, .. } => Some((*at, helper, flow)),
            _ => None,
        };
        events.filter_map(of).collect()
    }
}

/// Whether an ENC is a recoded one.
fn is_recoded(body: &[u8]) -> bool {
    let enc = Enc::parse(body, |_| Some(Field::Gf256));
    matches!(enc, Some(Enc { form: Form::Explicit { .. }, .. }))
}

#[test]
fn an_honest_helper_helps_and_no_tag_fails() {
    for order in [Order::Systematic, Order::OnTheFly] {
        let mut cell = Cell::new(1, CodingParams { order, ..coding() }, honest());
        cell.meet();
        cell.talk(1_000);
        assert!(cell.is_all_delivered());
        assert_eq!((cell.stats(SINK).tags_failed, cell.stats(SINK).rows_dropped), (0, 0));
        assert!(cell.stats(HELPER).recoded_frames_sent > 20);
        assert_eq!(cell.left_out(), []);
        let is_tagged = |(from, body): &(usize, Vec<u8>)| {
            let form = Enc::parse(body, |_| Some(Field::Gf256)).map(|enc| enc.form);
            *from == ENCODER && matches!(form, Some(Form::Tagged { .. }))
        };
        assert_eq!(cell.bodies.iter().any(is_tagged), order == Order::Systematic);
    }
}

/// What a tag costs, and that a group with a shared secret has none and pays nothing.
#[test]
fn a_tag_takes_eight_bytes_of_a_symbol_and_none_where_there_is_no_key_for_it() {
    let with_keys = Station::new(config(0, keys(0), coding()), [1; 32], Time::ZERO).unwrap();
    let shared = config(0, Security::from([7; 32]), coding());
    let shared = Station::new(shared, [1; 32], Time::ZERO).unwrap();
    assert_eq!((with_keys.tag_len(), shared.tag_len()), (END_TAG_LEN, 0));
    assert_eq!(shared.tunnel_mtu() - with_keys.tunnel_mtu(), END_TAG_LEN);
    let alone = StationConfig {
        role: Role::Endpoint { peer: IDS[1], helper: None },
        ..config(0, keys(0), coding())
    };
    let alone = Station::new(alone, [1; 32], Time::ZERO).unwrap();
    assert_eq!(alone.tag_len(), 0, "nobody recodes");

    let of = |index| config(index, Security::from([7; 32]), coding());
    let mut cell = Cell::with(2, of, honest());
    cell.meet();
    cell.talk(200);
    assert!(cell.is_all_delivered());
    let is_source = |(_, body): &(usize, Vec<u8>)| {
        let enc = Enc::parse(body, |_| Some(Field::Gf256)).expect("an ENC");
        assert!(!matches!(enc.form, Form::Tagged { .. }));
        matches!(enc.form, Form::Source { .. }) && enc.symbol[2] == 0x45
    };
    assert!(cell.bodies.iter().filter(|it| is_source(it)).count() >= 50);
    assert_eq!(VERSION, 7);
}

#[test]
fn a_helper_that_sends_wrong_rows_is_named_and_left_out_and_traffic_goes_on() {
    let tamper: Tamper = Box::new(|from, _, body, _| {
        let tampers = from == HELPER && is_recoded(body);
        if tampers {
            bend(body);
        }
        tampers
    });
    let mut cell = Cell::new(3, coding(), tamper);
    cell.meet();
    cell.talk(1_000);
    assert!(cell.is_all_delivered(), "{} of {}", cell.delivered.len(), cell.sent.len());
    assert_eq!(cell.left_out(), [(SINK, IDS[HELPER], IDS[ENCODER])], "named, once");
    let stats = cell.stats(SINK);
    assert!(stats.tags_failed > 0 && stats.rows_dropped > 0, "{stats:?}");
    assert_eq!(stats.helpers_left_out, 1);
    assert!(cell.stations[SINK].helper_left_out(cell.now).is_some());
    // The encoder hears that nothing comes from it, and does its part; so does the helper.
    assert_eq!(cell.stats(ENCODER).erasure_ratio_e2, 1.0);
    let recoded = cell.stats(HELPER).recoded_frames_sent;
    cell.talk(500);
    assert!(cell.is_all_delivered());
    assert!(cell.stats(HELPER).recoded_frames_sent - recoded < 5, "it is told not to help");
    assert_eq!(cell.stats(SINK).helpers_left_out, 1);
}

/// What it costs: half of the packets of one block are late by a repair, not lost.
#[test]
fn one_that_behaves_again_is_taken_back_after_a_while() {
    let deadline = Duration::from_millis(200);
    let mut wrong = 3;
    let tamper: Tamper = Box::new(move |from, _, body, _| {
        let tampers = from == HELPER && is_recoded(body) && wrong > 0;
        if tampers {
            wrong -= 1;
            bend(body);
        }
        tampers
    });
    let mut cell = Cell::new(4, CodingParams { delivery_deadline: deadline, ..coding() }, tamper);
    cell.meet();
    cell.talk(300);
    assert_eq!(cell.left_out().len(), 1);
    let out = cell.stations[SINK].helper_left_out(cell.now).expect("left out");
    assert!(out <= deadline * LEFT_OUT_DEADLINES);
    cell.run(out.as_millis() as usize + 100);
    assert_eq!(cell.stations[SINK].helper_left_out(cell.now), None);
    let dropped = cell.stats(SINK).rows_dropped;
    let recoded = cell.stats(HELPER).recoded_frames_sent;
    cell.talk(500);
    assert!(cell.stats(HELPER).recoded_frames_sent > recoded + 10, "it helps again");
    assert_eq!(cell.stats(SINK).rows_dropped, dropped);
    assert_eq!(cell.left_out().len(), 1);
}

/// The helper has the encoder's sealing key as well: in its name it can spoil what gets there, and
/// have nothing wrong delivered.
#[test]
fn rows_forged_in_the_encoders_name_are_delivered_never_and_name_nobody() {
    for coded in [false, true] {
        let tamper: Tamper = Box::new(move |from, to, body, dice| {
            let enc = Enc::parse(body, |_| Some(Field::Gf256)).expect("an ENC");
            let is_coded = matches!(enc.form, Form::Seeded { .. });
            let tampers = (from, to) == (ENCODER, SINK) && is_coded == coded;
            let tampers = tampers && dice.random::<f64>() < 0.3;
            if tampers {
                bend(body);
            }
            tampers
        });
        let mut cell = Cell::new(5, coding(), tamper);
        cell.meet();
        cell.talk(1_000);
        assert!(cell.tampered > 3 && cell.is_all_delivered(), "{coded}: {}", cell.tampered);
        assert!(cell.stats(SINK).tags_failed > 0);
        assert_eq!(cell.stats(SINK).rows_dropped > 0, coded, "a source symbol is not even taken");
        assert_eq!(cell.left_out(), [], "whose they are nobody can tell");
        let told =
            cell.events.iter().filter(|(_, event)| matches!(event, Event::RowsForged { .. }));
        assert_eq!(told.count(), usize::from(coded), "once a minute at most");
    }
}

/// Who has recorded symbols and can seal them again, in whatever block and place, brings back
/// nothing: neither of this run of the encoder nor of the one before.
#[test]
fn recorded_symbols_are_taken_in_no_other_block_place_or_run() {
    let mut cell = Cell::new(6, coding(), honest());
    cell.meet();
    cell.talk(300);
    assert!(cell.is_all_delivered());
    let is_source = |body: &[u8]| {
        let enc = Enc::parse(body, |_| Some(Field::Gf256));
        matches!(enc, Some(Enc { form: Form::Tagged { .. }, .. }))
    };
    let recorded = cell.bodies.iter().filter(|(from, body)| *from == ENCODER && is_source(body));
    let recorded: Vec<Vec<u8>> = recorded.map(|(_, body)| body.clone()).collect();
    for restarts in [false, true] {
        if restarts {
            let again = config(ENCODER, keys(ENCODER), coding());
            cell.stations[ENCODER] = Station::new(again, [99; 32], cell.now).unwrap();
            (cell.sent, cell.delivered) = Default::default();
            cell.run(1);
            cell.meet();
        }
        let recorded = recorded.clone();
        let mut next = 0;
        cell.tampered = 0;
        cell.tamper = Box::new(move |from, to, body, dice| {
            let strikes = (from, to) == (ENCODER, SINK) && is_source(body);
            if !strikes || dice.random::<f64>() < 0.5 {
                return false;
            }
            // In the place of the one that is under way, with what stood behind its head.
            next = (next + 1) % recorded.len();
            body.truncate(6);
            body.extend_from_slice(&recorded[next][6..]);
            true
        });
        cell.talk(300);
        assert!(cell.is_all_delivered() && cell.tampered > 20, "{restarts}");
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(16))]

    /// Whatever somebody with the helper's keys does to rows, and whatever is lost: what comes out
    /// is what went in, in order, and all of it in the end.
    #[test]
    fn nothing_wrong_comes_out(
        seed: u8,
        loss in 0.0..0.6,
        of_helper in 0.0..1.0,
        of_encoder in 0.0..0.3,
        block_size in prop_oneof![Just(1_u16), Just(8), Just(32), Just(100)],
        field in prop_oneof![Just(Field::Gf2), Just(Field::Gf16), Just(Field::Gf256)],
        order in prop_oneof![Just(Order::Systematic), Just(Order::OnTheFly), Just(Order::Dense)],
    ) {
        let tamper: Tamper = Box::new(move |from, to, body, dice| {
            let share = match (from, to) {
                (HELPER, SINK) => of_helper,
                (ENCODER, SINK) => of_encoder,
                _ => 0.0,
            };
            let tampers = dice.random::<f64>() < share;
            if tampers && dice.random::<bool>() {
                bend(body);
            } else if tampers {
                let at = 4 + dice.random_range(0..body.len() - 4);
                body[at] ^= 1 << dice.random_range(0..8_u32);
            }
            tampers
        });
        let mut cell = Cell::new(seed, CodingParams { block_size, field, order, ..coding() }, tamper);
        cell.loss = loss;
        cell.meet();
        cell.talk(300);
        let so_far = cell.delivered.len();
        prop_assert_eq!(&cell.delivered[..], &cell.sent[..so_far]);
        cell.tamper = honest();
        prop_assert!(cell.is_all_delivered(), "{} of {}", cell.delivered.len(), cell.sent.len());
    }
}
