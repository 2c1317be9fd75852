//! Tags of ends where a helper recodes: two ends and a helper with key pairs, and an attacker that
//! has all of the helper's keys and modifies frames in transit.

use core::time::Duration;

use corridor_base::rand::{RngExt, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::bounds::LEFT_OUT_DEADLINES;
use corridor_proto::wire::{
    Chunks, END_TAG_LEN, Enc, Form, HEADER_LEN, Header, Kind, TAG_LEN, VERSION,
};
use corridor_proto::{
    CodingParams, Event, Field, Keys, Order, PeerKey, Psk, Role, Security, Station, StationConfig,
    StationId, Unsealer,
};
use corridor_testbed::config::{self as testbed, private};
use corridor_testbed::{Bed, Sent, Ways, World};
use proptest::prelude::*;

const IDS: [StationId; 3] = [StationId(1), StationId(2), StationId(3)];
const ENCODER: usize = 0;
const SINK: usize = 1;
const HELPER: usize = 2;
/// So long that nothing is given up for being late: whatever is not delivered was forgotten.
const DEADLINE: Duration = Duration::from_secs(60);

fn keys(index: usize) -> Security {
    let others = IDS.iter().filter(|&&other| other != IDS[index]);
    let psk = |station: StationId| {
        // The two ends also have a pre-shared key.
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
    let (ingress_packets, frame_len_max) = (1_000, 1_400);
    StationConfig {
        security,
        coding,
        ingress_packets,
        frame_len_max,
        ..testbed::config(IDS[index], role)
    }
}

fn coding() -> CodingParams {
    CodingParams { delivery_deadline: DEADLINE, ..CodingParams::default() }
}

/// What the attacker does to an ENC in transit to one station: may modify its body.
type Tamper = Box<dyn FnMut(usize, usize, &mut Vec<u8>, &mut Stream) -> bool>;

fn honest() -> Tamper {
    Box::new(|_, _, _, _| false)
}

/// Changes the last byte: of the payload, whatever it combines.
fn bend(body: &mut [u8]) {
    if let Some(last) = body.last_mut() {
        *last ^= 0x5a;
    }
}

/// Three stations that all hear each other, and an attacker with the helper's keys.
struct Cell {
    /// What the helper can open and seal, per station.
    opened: [Unsealer; 3],
    /// Loss ratio of frames between the ends.
    loss: f64,
    dice: Stream,
    tamper: Tamper,
    tampered: usize,
    sent: Vec<Vec<u8>>,
    /// Bodies of ENCs sent, with their senders.
    bodies: Vec<(usize, Vec<u8>)>,
}

fn cell(seed: u8, coding: CodingParams, tamper: Tamper) -> Bed<Cell> {
    cell_of(seed, |index| config(index, keys(index), coding), tamper)
}

fn cell_of(seed: u8, config: impl Fn(usize) -> StationConfig, tamper: Tamper) -> Bed<Cell> {
    let station = |index| Station::new(config(index), [seed ^ 3 << index; 32], Time::ZERO).unwrap();
    let cell = Cell {
        opened: [0; 3].map(|_| Unsealer::new([0; 32])),
        loss: 0.4,
        dice: Stream::from_seed([seed; 32]),
        tamper,
        tampered: 0,
        sent: Vec::new(),
        bodies: Vec::new(),
    };
    Bed::new((0..3).map(station), cell)
}

impl World for Cell {
    fn send(&mut self, sent: &Sent<'_>, ways: &mut Ways) {
        let (from, secret) = (sent.from, sent.station.station_at(0).and_then(Station::secret));
        secret.into_iter().for_each(|secret| self.opened[from].follow(secret));
        for to in sent.others() {
            let between_ends = from != HELPER && to != HELPER;
            let frame = self.tampered(from, to, sent.frame);
            if !between_ends || self.dice.random::<f64>() >= self.loss {
                ways.put(sent.at + Duration::from_millis(2), from, to, frame);
            }
        }
    }
}

impl Cell {
    /// A frame in transit from one station to another, perhaps modified by the attacker.
    fn tampered(&mut self, from: usize, to: usize, frame: &[u8]) -> Vec<u8> {
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
}

fn meet(cell: &mut Bed<Cell>) {
    cell.wait(Duration::from_secs(5), Bed::all_up);
}

/// Sends packets from the encoder's host, one every two milliseconds.
fn talk(cell: &mut Bed<Cell>, packets: usize) {
    for _ in 0..packets {
        let number = cell.world.sent.len() as u32;
        let mut packet = vec![0x45; 60 + number as usize % 400];
        let end = packet.len() - 4;
        packet[end..].copy_from_slice(&number.to_be_bytes());
        cell.put(ENCODER, &packet);
        cell.world.sent.push(packet);
        cell.run(Duration::from_millis(2));
    }
}

/// Waits until everything is delivered; returns whether it is, and nothing else.
fn is_all_delivered(cell: &mut Bed<Cell>) -> bool {
    for _ in 0..200 {
        if cell.delivered[SINK].len() >= cell.world.sent.len() {
            break;
        }
        cell.run(Duration::from_millis(100));
    }
    cell.delivered[SINK] == cell.world.sent
}

fn left_out(cell: &Bed<Cell>) -> Vec<(usize, StationId, StationId)> {
    let of = |(at, event): &(usize, Event)| match *event {
        Event::HelperLeftOut { helper, flow, .. } => Some((*at, helper, flow)),
        _ => None,
    };
    cell.events.iter().filter_map(of).collect()
}

/// Whether an ENC is recoded.
fn is_recoded(body: &[u8]) -> bool {
    let enc = Enc::parse(body, |_| Some(Field::Gf256));
    matches!(enc, Some(Enc { form: Form::Explicit { .. }, .. }))
}

#[test]
fn an_honest_helper_helps_and_no_tag_fails() {
    for order in [Order::Systematic, Order::OnTheFly] {
        let mut cell = cell(1, CodingParams { order, ..coding() }, honest());
        meet(&mut cell);
        talk(&mut cell, 1_000);
        assert!(is_all_delivered(&mut cell));
        assert_eq!((cell[SINK].stats().tags_failed, cell[SINK].stats().rows_dropped), (0, 0));
        assert!(cell[HELPER].stats().recoded_frames_sent > 20);
        assert_eq!(left_out(&cell), []);
        let is_tagged = |(from, body): &(usize, Vec<u8>)| {
            let form = Enc::parse(body, |_| Some(Field::Gf256)).map(|enc| enc.form);
            *from == ENCODER && matches!(form, Some(Form::Tagged { .. }))
        };
        assert_eq!(cell.world.bodies.iter().any(is_tagged), order == Order::Systematic);
    }
}

/// The cost of a tag; a group with a shared secret has no tags and pays nothing.
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
    let mut cell = cell_of(2, of, honest());
    meet(&mut cell);
    talk(&mut cell, 200);
    assert!(is_all_delivered(&mut cell));
    let is_source = |(_, body): &(usize, Vec<u8>)| {
        let enc = Enc::parse(body, |_| Some(Field::Gf256)).expect("an ENC");
        assert!(!matches!(enc.form, Form::Tagged { .. }));
        matches!(enc.form, Form::Source { .. }) && enc.symbol[2] == 0x45
    };
    assert!(cell.world.bodies.iter().filter(|it| is_source(it)).count() >= 50);
    assert_eq!(VERSION, 9);
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
    let mut cell = cell(3, coding(), tamper);
    meet(&mut cell);
    talk(&mut cell, 1_000);
    assert!(
        is_all_delivered(&mut cell),
        "{} of {}",
        cell.delivered[SINK].len(),
        cell.world.sent.len()
    );
    assert_eq!(left_out(&cell), [(SINK, IDS[HELPER], IDS[ENCODER])], "named, once");
    let stats = cell[SINK].stats();
    assert!(stats.tags_failed > 0 && stats.rows_dropped > 0, "{stats:?}");
    assert_eq!(stats.helpers_left_out, 1);
    assert!(cell.station(SINK).helper_left_out(cell.now).is_some());
    // The encoder learns that nothing comes from the helper, and takes over its part; so does the
    // helper.
    assert_eq!(cell[ENCODER].stats().erasure_ratio_e2, 1.0);
    let recoded = cell[HELPER].stats().recoded_frames_sent;
    talk(&mut cell, 500);
    assert!(is_all_delivered(&mut cell));
    assert!(cell[HELPER].stats().recoded_frames_sent - recoded < 5, "it is told not to help");
    assert_eq!(cell[SINK].stats().helpers_left_out, 1);
}

/// The cost: half of the packets of one block are delayed by a repair, and none is lost.
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
    let mut cell = cell(4, CodingParams { delivery_deadline: deadline, ..coding() }, tamper);
    meet(&mut cell);
    talk(&mut cell, 300);
    assert_eq!(left_out(&cell).len(), 1);
    let out = cell.station(SINK).helper_left_out(cell.now).expect("left out");
    assert!(out <= deadline * LEFT_OUT_DEADLINES);
    cell.run(out + Duration::from_millis(100));
    assert_eq!(cell.station(SINK).helper_left_out(cell.now), None);
    let dropped = cell[SINK].stats().rows_dropped;
    let recoded = cell[HELPER].stats().recoded_frames_sent;
    talk(&mut cell, 500);
    assert!(cell[HELPER].stats().recoded_frames_sent > recoded + 10, "it helps again");
    assert_eq!(cell[SINK].stats().rows_dropped, dropped);
    assert_eq!(left_out(&cell).len(), 1);
}

/// The helper also has the encoder's sealing key: in its name it can spoil what arrives, but cannot
/// cause anything wrong to be delivered.
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
        let mut cell = cell(5, coding(), tamper);
        meet(&mut cell);
        talk(&mut cell, 1_000);
        assert!(
            cell.world.tampered > 3 && is_all_delivered(&mut cell),
            "{coded}: {}",
            cell.world.tampered
        );
        assert!(cell[SINK].stats().tags_failed > 0);
        assert_eq!(cell[SINK].stats().rows_dropped > 0, coded, "a source symbol is not even taken");
        assert_eq!(left_out(&cell), [], "whose they are nobody can tell");
        let told =
            cell.events.iter().filter(|(_, event)| matches!(event, Event::RowsForged { .. }));
        assert_eq!(told.count(), usize::from(coded), "once a minute at most");
    }
}

/// An attacker that has recorded symbols and can seal them again, for any block and place, cannot
/// replay them: neither those of this run of the encoder nor those of the one before.
#[test]
fn recorded_symbols_are_taken_in_no_other_block_place_or_run() {
    let mut cell = cell(6, coding(), honest());
    meet(&mut cell);
    talk(&mut cell, 300);
    assert!(is_all_delivered(&mut cell));
    let is_source = |body: &[u8]| {
        let enc = Enc::parse(body, |_| Some(Field::Gf256));
        matches!(enc, Some(Enc { form: Form::Tagged { .. }, .. }))
    };
    let recorded =
        cell.world.bodies.iter().filter(|(from, body)| *from == ENCODER && is_source(body));
    let recorded: Vec<Vec<u8>> = recorded.map(|(_, body)| body.clone()).collect();
    for restarts in [false, true] {
        if restarts {
            let again = config(ENCODER, keys(ENCODER), coding());
            cell.start(ENCODER, Station::new(again, [99; 32], cell.now).unwrap());
            cell.world.sent.clear();
            cell.forget();
            cell.run(Duration::from_millis(1));
            meet(&mut cell);
        }
        let recorded = recorded.clone();
        let mut next = 0;
        cell.world.tampered = 0;
        cell.world.tamper = Box::new(move |from, to, body, dice| {
            let strikes = (from, to) == (ENCODER, SINK) && is_source(body);
            if !strikes || dice.random::<f64>() < 0.5 {
                return false;
            }
            // Replaces the one in flight, with the recorded symbol after its head.
            next = (next + 1) % recorded.len();
            body.truncate(6);
            body.extend_from_slice(&recorded[next][6..]);
            true
        });
        talk(&mut cell, 300);
        assert!(is_all_delivered(&mut cell) && cell.world.tampered > 20, "{restarts}");
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(16))]

    /// Whatever an attacker with the helper's keys does to rows, and whatever is lost: what is
    /// delivered is what was sent, in order, and in the end all of it.
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
        let mut cell = cell(seed, CodingParams { block_size, field, order, ..coding() }, tamper);
        cell.world.loss = loss;
        meet(&mut cell);
        talk(&mut cell, 300);
        let so_far = cell.delivered[SINK].len();
        prop_assert_eq!(&cell.delivered[SINK][..], &cell.world.sent[..so_far]);
        cell.world.tamper = honest();
        prop_assert!(is_all_delivered(&mut cell), "{} of {}", cell.delivered[SINK].len(), cell.world.sent.len());
    }
}
