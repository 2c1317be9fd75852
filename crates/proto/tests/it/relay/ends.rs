//! Two ends of a row that know each other's keys, and relays between them, one of which means ill.

use core::time::Duration;

use corridor_proto::relay::wire::Frame;
use corridor_proto::wire::{END_TRAILER_LEN, HEADER_LEN, Kind, Relayed, TAG_LEN};
use corridor_proto::{Keys, PeerKey, PrivateKey, Psk, RelayEnd, Security, Unsealer};

use super::*;

const COUNT: usize = 3;
const LAST: usize = COUNT - 1;

fn private(at: usize) -> PrivateKey {
    PrivateKey::from_random([at as u8 + 1; 32])
}

/// The relay at a place of the row, with its own key; both ends of the row name each other.
fn relay(at: usize, run: u64, now: Time) -> RelayStation {
    let entropy = [16 * run as u8 + at as u8; 32];
    RelayStation::new(keyed(at), entropy, clocks(run, now)).expect("a sound configuration")
}

fn keyed(at: usize) -> RelayStationConfig {
    let mut config = config(at, COUNT, RelayConfig::paper());
    let peers = config.neighbours.iter().map(|&(station, _)| {
        let public = private(usize::from(station.0) - 1).public();
        PeerKey { station, public, psk: None }
    });
    config.station.security =
        Security::Keys(Box::new(Keys { private: private(at), peers: peers.collect() }));
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

fn met() -> Row {
    let mut row = Row::new(COUNT, RelayConfig::paper());
    row.stations = (0..COUNT).map(|at| relay(at, 1, row.now)).collect();
    row.run(2_000);
    row
}

/// Somebody with the keys of the relay in the middle.
struct Middle {
    opened: Unsealer,
}

impl Middle {
    fn new() -> Self {
        Middle { opened: Unsealer::new([0; 32]) }
    }

    /// Time goes by; what the middle sends to the last one is what `change` makes of it: of the
    /// relay's frame in it, if it is one with one packet.
    fn run(&mut self, row: &mut Row, ms: u64, change: &mut dyn FnMut(&mut Vec<u8>)) {
        for _ in 0..ms {
            row.now += Duration::from_millis(1);
            for at in 0..COUNT {
                row.stations[at].handle_timeout(row.now);
                let Some(transmit) = row.stations[at].poll_transmit(row.now) else { continue };
                let frame = transmit.frame.to_vec();
                if at > 0 {
                    row.hear(at - 1, &frame);
                }
                let frame = if at == 1 { self.changed(row, &frame, change) } else { frame };
                row.hear(at + 1, &frame);
            }
            (0..COUNT).for_each(|at| row.take(at));
        }
    }

    fn changed(
        &mut self,
        row: &Row,
        frame: &[u8],
        change: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Vec<u8> {
        if let Some(secret) = row.stations[1].secret() {
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
        change(&mut packet);
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
    let mtus: Vec<usize> = row.stations.iter().map(RelayStation::tunnel_mtu).collect();
    let spent = END_TRAILER_LEN;
    assert_eq!((mtus[1] - mtus[0], mtus[1] - mtus[LAST]), (spent, spent), "{mtus:?}");
    for number in 0..20 {
        let back = datagram6(LAST, 0, 64, &[number as u8; 400]);
        assert_eq!(row.put(0, &packet(number)), PacketOutcome::Accepted);
        assert_eq!(row.put(LAST, &back), PacketOutcome::Accepted);
        row.run(10);
    }
    // As long as may be.
    let longest = datagram(0, LAST, 64, &vec![9; mtus[0] - 28]);
    assert_eq!(row.put(0, &longest), PacketOutcome::Accepted);
    row.run(200);
    let there: Vec<_> = (0..20).map(packet).chain([longest]).collect();
    let there: Vec<_> = there.iter().map(|packet| after(packet, 1)).collect();
    assert_eq!(row.delivered[LAST], there);
    let back: Vec<_> = (0..20).map(|n| after(&datagram6(LAST, 0, 64, &[n; 400]), 1)).collect();
    assert_eq!(row.delivered[0], back);
    assert_eq!(row.counters(1).relay_frames_coded, 20);
    for at in [0, LAST] {
        let counters = row.counters(at);
        assert_eq!((counters.relay_tags_failed, counters.relay_packets_replayed), (0, 0));
    }
}

#[test]
fn what_a_relay_changes_or_makes_is_dropped_and_counted() {
    let mut row = met();
    let mut middle = Middle::new();
    // It has to have heard the greetings.
    middle.run(&mut row, 3_000, &mut |_| {});
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
    for (number, (what, mut lie)) in lies.into_iter().enumerate() {
        let before = row.counters(LAST).relay_tags_failed;
        row.put(0, &packet(number as u32));
        middle.run(&mut row, 200, &mut lie);
        assert_eq!(row.delivered[LAST], Vec::<Vec<u8>>::new(), "{what}");
        assert_eq!(row.counters(LAST).relay_tags_failed, before + 1, "{what}");
    }
    row.put(0, &packet(99));
    middle.run(&mut row, 200, &mut |_| {});
    assert_eq!(row.delivered[LAST], [after(&packet(99), 1)], "and what is left alone arrives");
}

#[test]
fn what_was_recorded_comes_out_once_and_numbers_go_on_when_an_end_starts_anew() {
    let mut row = met();
    let mut middle = Middle::new();
    middle.run(&mut row, 3_000, &mut |_| {});
    let mut recorded = Vec::new();
    row.put(0, &packet(1));
    middle.run(&mut row, 200, &mut |packet| recorded.push(packet.clone()));
    assert_eq!((row.delivered[LAST].len(), recorded.len()), (1, 1));
    for run in [1, 2] {
        if run == 2 {
            row.stations[0] = relay(0, run, row.now);
            middle.run(&mut row, 3_000, &mut |_| {});
        }
        row.delivered[LAST].clear();
        let replayed = row.counters(LAST).relay_packets_replayed;
        // Long after relays know copies by their bytes.
        middle.run(&mut row, 3_000, &mut |_| {});
        row.put(0, &packet(7));
        middle.run(&mut row, 200, &mut |packet| packet.clone_from(&recorded[0]));
        assert_eq!(row.delivered[LAST], Vec::<Vec<u8>>::new());
        assert_eq!(row.counters(LAST).relay_packets_replayed, replayed + 1);
        row.put(0, &packet(8));
        middle.run(&mut row, 200, &mut |_| {});
        assert_eq!(row.delivered[LAST], [after(&packet(8), 1)], "run {run}");
    }
    // Nor does a tag hold in the other direction, nor without the secret that the two have.
    let trailer = recorded[0].len() - END_TRAILER_LEN;
    let mut reflected = datagram(0, LAST, 64, b"x");
    reflected.extend_from_slice(&recorded[0][trailer..]);
    row.delivered[LAST].clear();
    row.put(0, &packet(9));
    middle.run(&mut row, 200, &mut |packet| packet.clone_from(&reflected));
    assert_eq!(row.delivered[LAST], Vec::<Vec<u8>>::new());
}

/// As a radio without a battery for its clock does, until NTP has set it.
#[test]
fn an_end_that_starts_before_its_clock_is_right_is_heard_once_that_was_set() {
    let mut row = met();
    row.put(0, &packet(1));
    row.run(200);
    assert_eq!(row.delivered[LAST], [after(&packet(1), 1)]);
    row.stations[0] = relay(0, 0, row.now);
    row.run(3_000);
    for number in 2..5 {
        row.put(0, &packet(number));
        row.run(200);
    }
    assert_eq!(row.delivered[LAST].len(), 1);
    assert_eq!(row.counters(LAST).relay_packets_replayed, 3);
    let from = std::net::IpAddr::from(v4(0));
    let told = row.events.iter().filter(|&event| *event == Event::PacketRepeated { from });
    assert_eq!(told.count(), 1, "once a minute at most");
    row.stations[0].set_clock(clocks(3, row.now));
    row.put(0, &packet(5));
    row.run(200);
    assert_eq!(row.delivered[LAST].last(), Some(&after(&packet(5), 1)));
    assert_eq!(row.counters(LAST).relay_packets_replayed, 3);
}

/// Numbers that followed the clock all the time would be too far apart to be overtaken.
#[test]
fn numbers_follow_a_clock_that_was_set_forward_and_none_that_is_slewed_or_set_back() {
    let mut row = met();
    let mut middle = Middle::new();
    middle.run(&mut row, 3_000, &mut |_| {});
    let mut numbers = Vec::new();
    let mut offset_us = 1_000_000_000_i64;
    for gained_us in [0, 900_000, -500_000, 500_000, 200_000, -5_000_000, 7_000_000, 0] {
        offset_us += gained_us;
        let wall_ns = (offset_us * 1_000) as u64 + row.now.as_nanos();
        row.stations[0].set_clock(Clocks { now: row.now, wall_ns });
        row.put(0, &packet(numbers.len() as u32));
        middle.run(&mut row, 200, &mut |packet| {
            let trailer = packet.last_chunk::<END_TRAILER_LEN>().expect("a trailer");
            let mut number = [0; 8];
            number[1..].copy_from_slice(&trailer[..7]);
            numbers.push(u64::from_be_bytes(number));
        });
    }
    let follows: Vec<bool> = numbers.windows(2).map(|pair| pair[1] != pair[0] + 1).collect();
    assert_eq!(follows, [false, false, false, true, false, true, false], "{numbers:?}");
    assert!(numbers.is_sorted());
}

/// Tags are put on by where a packet goes, and asked for by where it comes from.
#[test]
fn a_tag_that_nobody_looks_at_is_counted() {
    let mut row = met();
    let sent = [packet(1), datagram6(0, LAST, 64, b"from another of its addresses")];
    let mut config = keyed(LAST);
    config.ends[0].networks.truncate(1);
    row.stations[LAST] = RelayStation::new(config, [99; 32], clocks(2, row.now)).expect("sound");
    row.run(3_000);
    for (number, packet) in sent.iter().enumerate() {
        row.put(0, packet);
        row.run(200);
        assert_eq!(row.counters(LAST).relay_tags_unnamed, number as u64);
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
