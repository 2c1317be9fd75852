//! Two ends of a row that know each other's keys, and relays in between, one of which is malicious.

use corridor_proto::relay::wire::Frame;
use corridor_proto::wire::{END_TRAILER_LEN, HEADER_LEN, Kind, Relayed, TAG_LEN};
use corridor_proto::{Keys, PeerKey, PrivateKey, Psk, RelayEnd, Security, Unsealer};
use corridor_testbed::{Sent, Ways, World};

use super::*;

const COUNT: usize = 3;
const LAST: usize = COUNT - 1;

fn private(at: usize) -> PrivateKey {
    testbed::private(StationId(at as u16 + 1))
}

/// The relay at a place in the row, with its own key pair; the two ends of the row name each other.
fn relay(at: usize, run: u64, now: Time) -> RelayStation {
    let entropy = [16 * run as u8 + at as u8; 32];
    RelayStation::new(keyed(at), entropy, clocks_of_run(run, now)).expect("a sound configuration")
}

fn keyed(at: usize) -> RelayStationConfig {
    let mut config = config(at, COUNT, RelayConfig::paper());
    let peers: Vec<_> = config.neighbours.iter().map(|&(station, _)| station).collect();
    config.station.security = testbed::keys(config.station.id, &peers);
    if at == 0 || at == LAST {
        let other = LAST - at;
        let addresses = [std::net::IpAddr::from(v4(other)), v6(other).into()];
        config.ends.push(RelayEnd {
            networks: addresses.map(IpNet::from).into(),
            public: private(other).public(),
            psk: Some(Psk::from([5; 32])),
        });
    }
    config
}

fn met() -> Bed<Middle> {
    let world = Middle {
        opened: Unsealer::new([0; 32]),
        free_at: [Time::ZERO; COUNT],
        change: Box::new(|_| {}),
        seen: Vec::new(),
    };
    let mut row = Bed::new((0..COUNT).map(|at| relay(at, 1, Time::ZERO)), world);
    row.run(ms(2_000));
    row
}

/// A modification of a packet.
type Change = dyn FnMut(&mut Vec<u8>);

/// An attacker with the keys of the relay in the middle.
struct Middle {
    opened: Unsealer,
    free_at: [Time; COUNT],
    /// What it does to the packets that it sends to the last one, each alone in its frame.
    change: Box<Change>,
    /// The unmodified packets.
    seen: Vec<Vec<u8>>,
}

impl World for Middle {
    fn send(&mut self, sent: &Sent<'_>, ways: &mut Ways) {
        let from = sent.from;
        self.free_at[from] = sent.at + ms(1);
        for to in sent.others().filter(|to| to.abs_diff(from) == 1) {
            let is_changed = (from, to) == (1, LAST);
            let frame = if is_changed { self.changed(sent) } else { sent.frame.to_vec() };
            ways.put(sent.at, from, to, frame);
        }
    }

    fn free_at(&self, at: usize) -> Time {
        self.free_at[at]
    }
}

impl Middle {
    fn sends_instead(&mut self, other: Vec<u8>) {
        self.change = Box::new(move |packet| packet.clone_from(&other));
    }

    fn changed(&mut self, sent: &Sent<'_>) -> Vec<u8> {
        let frame = sent.frame;
        if let Some(secret) = sent.station.relay().and_then(RelayStation::secret) {
            self.opened.follow(secret);
        }
        let mut clear = Vec::new();
        if self.opened.unseal(frame, &mut clear).is_none() {
            return frame.to_vec();
        }
        let body = &clear[HEADER_LEN..clear.len() - TAG_LEN];
        let relayed = body.split_first().filter(|(kind, _)| **kind == Kind::Relayed.code());
        let relayed = relayed.and_then(|(_, body)| Relayed::parse(body));
        let Some(relayed) = relayed else { return frame.to_vec() };
        let Some(Frame::Plain { counter, ttl, asks, packet }) = Frame::parse(relayed.frame) else {
            return frame.to_vec();
        };
        let mut packet = packet.to_vec();
        self.seen.push(packet.clone());
        (self.change)(&mut packet);
        let changed = Frame::Plain { counter, ttl, asks, packet: &packet }.to_bytes();
        let mut body = Vec::new();
        Kind::Relayed.begin_last(&mut body);
        Relayed { to: relayed.to, frame: &changed }.write(&mut body);
        body.resize(body.len().max(46), 0);
        self.opened.reseal(frame, &body).expect("it opened before")
    }
}

fn packet(number: u32) -> Vec<u8> {
    datagram(0, LAST, 64, &[number.to_be_bytes(); 50].concat())
}

#[test]
fn packets_cross_combined_with_their_tags_and_arrive_without() {
    let mut row = met();
    let mtus: Vec<usize> = row.stations().map(|it| it.tunnel_mtu()).collect();
    let spent = END_TRAILER_LEN;
    assert_eq!((mtus[1] - mtus[0], mtus[1] - mtus[LAST]), (spent, spent), "{mtus:?}");
    for number in 0..20 {
        let back = datagram6(LAST, 0, 64, &[number as u8; 400]);
        assert_eq!(row.put(0, &packet(number)), PacketOutcome::Accepted);
        assert_eq!(row.put(LAST, &back), PacketOutcome::Accepted);
        row.run(ms(10));
    }
    // As long as allowed.
    let longest = datagram(0, LAST, 64, &vec![9; mtus[0] - 28]);
    assert_eq!(row.put(0, &longest), PacketOutcome::Accepted);
    row.run(ms(200));
    let there: Vec<_> = (0..20).map(packet).chain([longest]).collect();
    let there: Vec<_> = there.iter().map(|packet| after(packet, 1)).collect();
    assert_eq!(row.delivered[LAST], there);
    let back: Vec<_> = (0..20).map(|n| after(&datagram6(LAST, 0, 64, &[n; 400]), 1)).collect();
    assert_eq!(row.delivered[0], back);
    assert_eq!(counters_of(&row, 1).relay_frames_coded, 20);
    for at in [0, LAST] {
        let counters = counters_of(&row, at);
        assert_eq!((counters.relay_tags_failed, counters.relay_packets_replayed), (0, 0));
    }
}

#[test]
fn what_a_relay_changes_or_makes_is_dropped_and_counted() {
    let mut row = met();
    type Lie = fn(&mut Vec<u8>);
    let lies: [(&str, Lie); 6] = [
        ("a byte of the payload", |packet| packet[40] ^= 1),
        ("the hops that it was sent with", |packet| packet[8] ^= 1),
        ("another port", |packet| packet[23] ^= 1),
        ("without a tag", |packet| packet.truncate(packet.len() - END_TRAILER_LEN)),
        ("another number", |packet| {
            let at = packet.len() - END_TRAILER_LEN;
            packet[at + 6] ^= 1;
        }),
        ("a packet of its own", |packet| *packet = datagram(0, LAST, 64, b"made by the relay")),
    ];
    for (number, (what, lie)) in lies.into_iter().enumerate() {
        let before = counters_of(&row, LAST).relay_tags_failed;
        row.put(0, &packet(number as u32));
        row.world.change = Box::new(lie);
        row.run(ms(200));
        assert_eq!(row.delivered[LAST], Vec::<Vec<u8>>::new(), "{what}");
        assert_eq!(counters_of(&row, LAST).relay_tags_failed, before + 1, "{what}");
    }
    row.put(0, &packet(99));
    row.world.change = Box::new(|_| {});
    row.run(ms(200));
    assert_eq!(row.delivered[LAST], [after(&packet(99), 1)], "and what is left alone arrives");
}

#[test]
fn what_was_recorded_comes_out_once_and_numbers_go_on_when_an_end_starts_anew() {
    let mut row = met();
    row.put(0, &packet(1));
    row.run(ms(200));
    let recorded = core::mem::take(&mut row.world.seen);
    assert_eq!((row.delivered[LAST].len(), recorded.len()), (1, 1));
    for run in [1, 2] {
        if run == 2 {
            row.start(0, relay(0, run, row.now));
            row.run(ms(3_000));
        }
        row.delivered[LAST].clear();
        let replayed = counters_of(&row, LAST).relay_packets_replayed;
        // Long after relays recognise copies by their bytes.
        row.run(ms(3_000));
        row.put(0, &packet(7));
        row.world.sends_instead(recorded[0].clone());
        row.run(ms(200));
        assert_eq!(row.delivered[LAST], Vec::<Vec<u8>>::new());
        assert_eq!(counters_of(&row, LAST).relay_packets_replayed, replayed + 1);
        row.world.change = Box::new(|_| {});
        row.put(0, &packet(8));
        row.run(ms(200));
        assert_eq!(row.delivered[LAST], [after(&packet(8), 1)], "run {run}");
    }
    // A tag is not valid in the other direction, nor without the pre-shared key of the two.
    let trailer = recorded[0].len() - END_TRAILER_LEN;
    let mut reflected = datagram(0, LAST, 64, b"x");
    reflected.extend_from_slice(&recorded[0][trailer..]);
    row.delivered[LAST].clear();
    row.put(0, &packet(9));
    row.world.sends_instead(reflected);
    row.run(ms(200));
    assert_eq!(row.delivered[LAST], Vec::<Vec<u8>>::new());
}

/// As on a station without a battery-backed clock, until NTP has set it.
#[test]
fn an_end_that_starts_before_its_clock_is_right_is_heard_once_that_was_set() {
    let mut row = met();
    row.put(0, &packet(1));
    row.run(ms(200));
    assert_eq!(row.delivered[LAST], [after(&packet(1), 1)]);
    row.start(0, relay(0, 0, row.now));
    row.run(ms(3_000));
    for number in 2..5 {
        row.put(0, &packet(number));
        row.run(ms(200));
    }
    assert_eq!(row.delivered[LAST].len(), 1);
    assert_eq!(counters_of(&row, LAST).relay_packets_replayed, 3);
    let from = std::net::IpAddr::from(v4(0));
    let told = row.events.iter().filter(|it| it.1 == Event::PacketRepeated { from });
    assert_eq!(told.count(), 1, "once a minute at most");
    let now = row.now;
    row[0].set_clock(clocks_of_run(3, now));
    row.put(0, &packet(5));
    row.run(ms(200));
    assert_eq!(row.delivered[LAST].last(), Some(&after(&packet(5), 1)));
    assert_eq!(counters_of(&row, LAST).relay_packets_replayed, 3);
}

/// If numbers always followed the clock, they would be too far apart to tolerate reordering.
#[test]
fn numbers_follow_a_clock_that_was_set_forward_and_none_that_is_slewed_or_set_back() {
    let mut row = met();
    row.world.seen.clear();
    let mut offset_us = 1_000_000_000_i64;
    for gained_us in [0, 900_000, -500_000, 500_000, 200_000, -5_000_000, 7_000_000, 0] {
        offset_us += gained_us;
        let now = row.now;
        row[0].set_clock(testbed::clocks((offset_us * 1_000) as u64, now));
        row.put(0, &packet(row.world.seen.len() as u32));
        row.run(ms(200));
    }
    let number = |packet: &Vec<u8>| {
        let trailer = packet.last_chunk::<END_TRAILER_LEN>().expect("a trailer");
        let mut number = [0; 8];
        number[1..].copy_from_slice(&trailer[..7]);
        u64::from_be_bytes(number)
    };
    let numbers: Vec<u64> = row.world.seen.iter().map(number).collect();
    let follows: Vec<bool> = numbers.windows(2).map(|pair| pair[1] != pair[0] + 1).collect();
    assert_eq!(follows, [false, false, false, true, false, true, false], "{numbers:?}");
    assert!(numbers.is_sorted());
}

/// Tags are added according to a packet's destination, and required according to its source.
#[test]
fn a_tag_that_nobody_looks_at_is_counted() {
    let mut row = met();
    let sent = [packet(1), datagram6(0, LAST, 64, b"from another of its addresses")];
    let mut config = keyed(LAST);
    config.ends[0].networks.truncate(1);
    row.start(LAST, RelayStation::new(config, [99; 32], clocks_of_run(2, row.now)).expect("sound"));
    row.run(ms(3_000));
    for (number, packet) in sent.iter().enumerate() {
        row.put(0, packet);
        row.run(ms(200));
        assert_eq!(counters_of(&row, LAST).relay_tags_unnamed, number as u64);
    }
    let unseen = row.delivered[LAST][1].split_at(sent[1].len());
    assert_eq!((unseen.0, unseen.1.len()), (&after(&sent[1], 1)[..], END_TRAILER_LEN));
}

#[test]
fn ends_without_a_key_of_their_own_or_with_ours_are_refused() {
    let with = |security: Security, public| {
        let mut config = config(0, COUNT, RelayConfig::paper());
        config.station.security = security;
        let networks = vec![IpNet::from(std::net::IpAddr::from(v4(LAST)))];
        config.ends.push(RelayEnd { networks, public, psk: None });
        RelayStation::new(config, [1; 32], Time::ZERO).map(|_| ()).map_err(|error| error.field)
    };
    let public = private(1).public();
    let peers = vec![PeerKey { station: StationId(2), public, psk: None }];
    let keys = Security::Keys(Box::new(Keys { private: private(0), peers }));
    assert_eq!(with(keys.clone(), private(LAST).public()), Ok(()));
    assert_eq!(with([7; 32].into(), private(LAST).public()), Err("end"));
    assert_eq!(with(keys, private(0).public()), Err("end"));
}
