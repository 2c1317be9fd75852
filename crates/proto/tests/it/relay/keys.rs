//! Relays in a row with key pairs: what they carry, and that two packets are sent as one frame if
//! both receivers have the sender's key.

use core::time::Duration;

use corridor_proto::bounds::REKEY_AFTER_TIME;
use corridor_proto::diagnosis::Unopened;
use corridor_proto::wire::{KeyExchange, Step};
use corridor_proto::{Keys, PeerKey, Security};

use super::*;

/// The relay at a place in a row, with the public keys of its neighbours.
fn relay(at: usize, count: usize, run: u8, now: Time) -> RelayStation {
    let mut config = config(at, count, RelayConfig::paper());
    let peers: Vec<_> = config.neighbours.iter().map(|&(station, _)| station).collect();
    config.station.security = testbed::keys(config.station.id, &peers);
    let entropy = [16 * run + at as u8; 32];
    RelayStation::new(config, entropy, clocks_of_run(run.into(), now))
        .expect("a sound configuration")
}

fn met(count: usize) -> Bed<Air> {
    let mut row = row_of(count, RelayConfig::paper());
    (0..count).for_each(|at| row.start(at, relay(at, count, 1, row.now)));
    row.run(ms(2_000));
    assert!(row.all_up());
    row
}

/// Sends packets in both directions between the ends of the row, all of which have to arrive.
fn cross(row: &mut Bed<Air>, count: usize) {
    let last = row.delivered.len() - 1;
    row.forget();
    for number in 0..count as u32 {
        let payload = [number.to_be_bytes(); 100].concat();
        assert_eq!(row.put(0, &datagram(0, last, 64, &payload)), PacketOutcome::Accepted);
        assert_eq!(row.put(last, &datagram(last, 0, 64, &payload)), PacketOutcome::Accepted);
        row.run(ms(10));
    }
    row.run(ms(200));
    for (at, from) in [(0, last), (last, 0)] {
        assert_eq!(row.delivered[at].len(), count, "of station {}", from + 1);
        for (number, packet) in row.delivered[at].iter().enumerate() {
            let payload = [(number as u32).to_be_bytes(); 100].concat();
            let sent = datagram(from, at, 64, &payload);
            assert_eq!(*packet, after(&sent, last as u8 - 1));
        }
    }
}

#[test]
fn opposite_packets_of_relays_with_keys_cross_two_to_a_frame() {
    let mut row = met(3);
    cross(&mut row, 20);
    let counters = counters_of(&row, 1);
    assert_eq!((counters.relay_frames_coded, counters.relay_frames_plain), (20, 0));
    for end in [0, 2] {
        let counters = counters_of(&row, end);
        assert_eq!(counters.relay_packets_decoded, 20, "{counters:?}");
        assert_eq!(counters.relay_decode_failures, 0, "{counters:?}");
    }
    // What was decoded is combined again.
    let mut row = met(5);
    cross(&mut row, 30);
    let all: Vec<_> = (0..5).map(|at| counters_of(&row, at)).collect();
    assert!(all.iter().map(|it| it.relay_packets_recoded).sum::<u64>() > 40, "{all:?}");
    assert!(all.iter().all(|it| it.relay_decode_failures == 0), "{all:?}");
}

#[test]
fn secrets_of_relays_follow_each_other_and_nothing_is_lost_by_it() {
    let mut row = met(3);
    row.stations_mut().for_each(|it| it.set_rekey_interval(Duration::from_secs(2)));
    assert_eq!(row.agreed(), 4);
    cross(&mut row, 2_000);
    // Two hops, on each of which both stations ask after each change of the other.
    assert!(row.agreed() >= 4 + 4 * 4, "{}", row.agreed());
    assert_eq!(counters_of(&row, 1).relay_frames_plain, 0);
    for at in [0, 2] {
        assert_eq!(counters_of(&row, at).relay_decode_failures, 0);
    }
}

#[test]
fn a_relay_that_starts_anew_between_two_others_is_given_their_secrets_again() {
    for at in 0..3 {
        let mut row = met(3);
        row.run(REKEY_AFTER_TIME / 2);
        row.start(at, relay(at, 3, 2, row.now));
        row.run(ms(2_000));
        assert!(row.all_up());
        cross(&mut row, 10);
    }
}

/// A message to a neighbour's other neighbour does not show which key it was made for: as long as
/// the sender also calls this station, it knows this station's key.
#[test]
fn what_a_neighbour_says_to_another_one_is_no_sign_of_a_wrong_key() {
    let mut row = met(3);
    row.start(2, relay(2, 3, 2, row.now));
    row.world.log = Some(Vec::new());
    row.run(ms(2_000));
    let sent = row.world.log.replace(Vec::new()).unwrap();
    let mut others = 0;
    for Logged { to, frame, .. } in sent.into_iter().filter(|it| it.from == 1) {
        let is_call = KeyExchange::parse(&frame).is_some_and(|it| it.step == Step::Initiation);
        if is_call && to == Destination::Search(StationId(3)) {
            row.hear(0, &frame);
            assert_eq!(row[0].examine(&frame), Unopened::Sealed);
            others += 1;
        }
    }
    assert!(others > 0);
    // A station that never calls this one has another key for it.
    let mut wrong = config(1, 3, RelayConfig::paper());
    let key = |id: u16| PeerKey {
        station: StationId(id),
        public: testbed::private(StationId(90 + id)).public(),
        psk: None,
    };
    wrong.station.security = Security::Keys(Box::new(Keys {
        private: testbed::private(StationId(2)),
        peers: [1, 3].map(key).into(),
    }));
    row.start(1, RelayStation::new(wrong, [99; 32], clocks_of_run(3, row.now)).unwrap());
    row.world.log = Some(Vec::new());
    row.run(ms(6_000));
    let mut sent = row.world.log.take().unwrap().into_iter().rev();
    let call = sent.find(|it| (it.from, it.to) == (1, Destination::Search(StationId(1))));
    let frame = call.expect("it calls").frame;
    row.hear(0, &frame);
    let named = Unopened::NotOurPublicKey { names: StationId(2) };
    assert_eq!(row[0].examine(&frame), named);
}
