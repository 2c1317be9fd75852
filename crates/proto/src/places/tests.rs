//! Where peers are assumed to be, and what is sent to whom before that is proven.

use core::time::Duration;

use super::*;
use crate::{
    CodingParams, Destination, FrameOutcome, Keys, LinkErrors, PeerKey, PrivateKey, Role, Security,
    Station, StationConfig,
};

const A: StationId = StationId(1);
const B: StationId = StationId(2);

fn places(configured: [(StationId, Option<u8>); 2], may_move: bool) -> PeerBook<u8> {
    PeerBook::new(configured, may_move, [9; 32])
}

fn book(may_move: bool) -> PeerBook<u8> {
    places([(A, Some(10)), (B, None)], may_move)
}

/// Frames come from there; returns whether the peer is assumed to be there once it was challenged
/// and has answered.
fn moves(book: &mut PeerBook<u8>, station: StationId, address: u8) -> bool {
    moves_from(Time::ZERO, book, station, address)
}

/// The same from a time on.
fn moves_from(from: Time, book: &mut PeerBook<u8>, station: StationId, address: u8) -> bool {
    for ms in (0..500).step_by(10) {
        let now = from + Duration::from_millis(ms);
        book.learn(now, (station, address), Certainty::Session, 60);
        while let Some(asked) = book.poll_challenge(now, |_| true) {
            let answer = Certainty::Answer(asked.token);
            // It is no longer at its old address.
            if asked.address == address {
                book.learn(now, (asked.station, asked.address), answer, 60);
            }
        }
    }
    book.address(station) == Some(address)
}

#[test]
fn a_configured_address_holds_where_stations_stay() {
    let mut book = book(false);
    assert!(!moves(&mut book, A, 11));
    assert_eq!((book.address(A), book.poll_challenge(Time::ZERO, |_| true)), (Some(10), None));
}

#[test]
fn a_configured_address_is_left_where_stations_move_but_not_for_a_handshake() {
    let mut book = book(true);
    book.learn(Time::ZERO, (A, 11), Certainty::Handshake, 60);
    assert_eq!(book.address(A), Some(10));
    assert!(moves(&mut book, A, 11));
    assert_eq!((book.station(11), book.station(10)), (Some(A), None));
}

/// An attacker that forwards challenges and answers can be taken for a peer. When it forwards
/// nothing any more, the peer is found where it was all the time.
#[test]
fn a_silent_peer_is_also_looked_for_at_its_configured_address() {
    let mut book = book(true);
    assert!(moves(&mut book, A, 11));
    let heard_at = Time::from_millis(490);
    let mut at = |now: Time| book.addresses(now, 60).collect::<Vec<_>>();
    assert_eq!(at(heard_at + (PLACE_ALONE_AGE_MAX - Duration::from_millis(1))), [11]);
    let silent = heard_at + PLACE_ALONE_AGE_MAX;
    assert_eq!(at(silent), [11, 10]);
    assert_eq!(book.place(A, 60), Some(11), "packets wait until it has answered from there");
    // A frame from there, which anybody may have replayed, takes nothing from this.
    for certainty in [Certainty::Handshake, Certainty::Session] {
        book.learn(silent, (A, 10), certainty, 60);
        for _ in 0..3 {
            assert_eq!(book.addresses(silent, 60).collect::<Vec<_>>(), [11, 10], "{certainty:?}");
        }
    }
    assert!(moves_from(silent, &mut book, A, 10));
}

#[test]
fn a_handshake_serves_until_a_session_tells_better() {
    let mut book = book(false);
    for address in [20, 21] {
        book.learn(Time::ZERO, (B, address), Certainty::Handshake, 60);
    }
    assert_eq!(book.address(B), Some(20));
    assert!(moves(&mut book, B, 21) && moves(&mut book, B, 22));
}

#[test]
fn a_handshake_from_elsewhere_is_answered_there_too() {
    let mut book = book(true);
    for address in [11, 12] {
        book.learn(Time::ZERO, (A, address), Certainty::Handshake, 60);
    }
    assert_eq!(book.addresses(Time::ZERO, 60).collect::<Vec<_>>(), [10, 12]);
    assert!(moves(&mut book, A, 12));
    assert_eq!(book.addresses(Time::ZERO, 60).collect::<Vec<_>>(), [12]);
}

#[test]
fn an_address_that_is_configured_anew_takes_the_place_of_what_was_learned() {
    for may_move in [false, true] {
        let mut book = book(may_move);
        assert!(moves(&mut book, B, 20));
        book.configure(B, Some(30));
        assert_eq!(book.address(B), Some(30));
        assert_eq!(moves(&mut book, B, 20), may_move);
        book.configure(B, None);
        assert!(moves(&mut book, B, 21));
    }
}

#[test]
fn the_last_good_address_stays_beside_one_that_is_only_suggested() {
    let mut book = book(true);
    assert!(book.suggest(B, 20) && !book.suggest(B, 20));
    assert_eq!(book.address(B), Some(20));
    assert!(moves(&mut book, B, 21));
    assert!(!book.suggest(B, 21) && book.suggest(B, 22) && !book.suggest(B, 22));
    assert_eq!((book.address(B), book.addresses(Time::ZERO, 60).count()), (Some(21), 3));
    assert!(moves(&mut book, B, 22));
    assert_eq!(book.addresses(Time::ZERO, 60).collect::<Vec<_>>(), [10, 22]);
    assert!(!book.suggest(StationId(9), 1));
}

#[test]
fn strangers_are_not_taken_in() {
    let mut book = book(true);
    assert!(!moves(&mut book, StationId(9), 30));
    assert_eq!((book.station(30), book.addresses(Time::ZERO, 60).count()), (None, 1));
}

/// An attacker in the path copies frames, delivers them first, and repeats challenges; or it has no
/// answer except a copy of one that was sent to another address.
#[test]
fn only_the_answer_from_where_it_was_asked_moves_anything() {
    let mut book = book(true);
    let session = Certainty::Session;
    assert_eq!(book.learn(Time::ZERO, (A, 66), session, 1_000), Learned::Nothing);
    let [asked, home] = [(); 2].map(|()| book.poll_challenge(Time::ZERO, |_| true).unwrap());
    assert_eq!([home.address, asked.address], [10, 66]);
    assert_ne!(home.token, asked.token);
    let later = Time::from_millis(400);
    for now in [Time::ZERO, later] {
        for (address, token) in
            [(10, asked.token), (67, asked.token), (66, [0; 8]), (66, home.token)]
        {
            let answer = Certainty::Answer(token);
            assert_eq!(book.learn(now, (A, address), answer, 60), Learned::Nothing);
        }
        let answer = Certainty::Answer(asked.token);
        assert_eq!(book.learn(now, (B, 66), answer, 60), Learned::Nothing);
        assert_eq!((book.address(A), book.place(A, 1_000)), (Some(10), Some(10)));
    }
    let answer = Certainty::Answer(asked.token);
    assert_eq!(book.learn(Time::ZERO, (A, 66), answer, 60), Learned::Nothing);
    assert_eq!(book.learn(later, (A, 66), answer, 60), Learned::Moved);
    assert_eq!(book.address(A), Some(66));
}

/// An attacker only had to deliver the peer's answer to the new address's challenge from there,
/// ahead of the original.
#[test]
fn who_copies_answers_as_well_moves_nothing_while_the_peer_answers_from_where_it_is() {
    let (mut book, mut draws) = (book(true), Stream::from_seed([7; 32]));
    // Answers in flight, by arrival time; every third gets none.
    let mut under_way: Vec<(u64, u8, ChallengeToken)> = Vec::new();
    let mut gone_at = None;
    for ms in 0..30_000 {
        let now = Time::from_millis(ms);
        book.learn(now, (A, 66), Certainty::Session, 1_000);
        while let Some(asked) = book.poll_challenge(now, |_| true) {
            let is_home = asked.address == 10;
            if draws.next_u32() % 3 > 0 && !(is_home && ms >= 20_000) {
                let arrives = ms + 50 + u64::from(is_home);
                under_way.push((arrives, asked.address, asked.token));
            }
        }
        for &(_, from, token) in under_way.iter().filter(|it| it.0 == ms) {
            book.learn(now, (A, from), Certainty::Answer(token), 40);
        }
        under_way.retain(|it| it.0 > ms);
        if book.address(A) != Some(10) {
            gone_at.get_or_insert(ms);
        }
    }
    // Once it no longer answers from its old address, it is followed.
    let gone_at = gone_at.expect("it has moved");
    let pause_ms = CHALLENGE_PAUSE_MAX.as_millis() as u64;
    assert!((20_000..20_600 + pause_ms).contains(&gone_at), "{gone_at} ms");
}

/// The attacker copied answers as well, and each of them caused a challenge every 30 ms, forever.
#[test]
fn who_copies_answers_as_well_does_not_keep_a_peer_with_nothing_to_send_busy() {
    let mut book = book(true);
    let mut under_way: Vec<(u64, ChallengeToken)> = Vec::new();
    let mut asked_ms = Vec::new();
    for ms in 0..60_000 {
        let now = Time::from_millis(ms);
        if ms % 5_000 == 0 {
            book.learn(now, (A, 66), Certainty::Session, 117);
        }
        for &(_, token) in under_way.iter().filter(|it| it.0 == ms) {
            for from in [66, 10] {
                book.learn(now, (A, from), Certainty::Answer(token), 34);
            }
        }
        while let Some(asked) = book.poll_challenge(now, |_| true) {
            under_way.push((ms + 7, asked.token));
            asked_ms.push(ms);
        }
    }
    assert_eq!(book.address(A), Some(10));
    // Both addresses once per pause, and more often at the beginning.
    let most = 2 * (12_000 / CHALLENGE_PAUSE_MAX.as_millis() as usize + 1);
    let at_rest = asked_ms.iter().filter(|&&ms| ms >= 48_000).count();
    assert!((1..=most).contains(&at_rest), "{at_rest} challenges in 12 s");
    assert!(asked_ms.iter().filter(|&&ms| ms < 12_000).count() <= most + 2 * 5);
}

#[test]
fn a_neighbour_that_nobody_asks_is_believed_where_it_was_first_heard() {
    let mut book = book(false);
    book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 60);
    book.learn(Time::ZERO, (B, 20), Certainty::Session, 60);
    assert_eq!(book.place(B, 10_000), None);
    book.believe(B, 20);
    assert_eq!((book.place(B, 10_000), book.poll_timeout()), (Some(20), None));
    assert_eq!(book.believe(B, 20), Learned::Nothing);
}

/// Both ends of a link were recreated with other addresses: each challenged the other at the new
/// address, and answered to the old one, forever.
#[test]
fn two_that_have_moved_at_once_meet_where_learned_addresses_are_forgotten() {
    for end in [end, keyed] {
        let mut ends: [Station; 2] = [end(A, B, 1), end(B, A, 2)];
        let mut books = [B, A]
            .map(|peer| places([(peer, None), (StationId(9), None)], false).with_frame_len_min(46));
        let mut at = [10, 20];
        for ms in 0..30_000 {
            let now = Time::from_millis(ms);
            if ms == 1_000 {
                assert_eq!([books[0].address(B), books[1].address(A)], [Some(20), Some(10)]);
                at = [11, 21];
                books.iter_mut().for_each(PeerBook::forget_learned);
            }
            for from in 0..2 {
                let (to, peer) = (1 - from, [B, A][from]);
                for (_, frame) in on_a_wire(&mut ends[from], &mut books[from], (peer, now))
                    .iter()
                    .filter(|(place, _)| place.is_none_or(|place| place == at[to]))
                {
                    hear(&mut ends[to], &mut books[to], at[from], now, frame);
                }
            }
        }
        assert_eq!([books[0].address(B), books[1].address(A)], [Some(21), Some(11)]);
    }
}

/// Two stations on a wire from 0 s on, at addresses 10 and 20. After a second `happens` is applied
/// to both, and from then on they are at 11 and 21. Returns when each is told to be there, in
/// milliseconds.
fn meet_again(
    ends: &mut [Station; 2],
    happens: impl Fn(&mut Station, &mut PeerBook<u8>, Time, &[Vec<u8>]),
) -> Option<u64> {
    let mut books = [B, A]
        .map(|peer| places([(peer, None), (StationId(9), None)], false).with_frame_len_min(46));
    let (mut at, mut recorded) = ([10, 20], [(); 2].map(|()| Vec::new()));
    for ms in 0..60_000 {
        let now = Time::from_millis(ms);
        if ms == 1_000 {
            assert_eq!([books[0].address(B), books[1].address(A)], [Some(20), Some(10)]);
            at = [11, 21];
            for end in 0..2 {
                happens(&mut ends[end], &mut books[end], now, &recorded[1 - end]);
            }
        }
        for from in 0..2 {
            let (to, peer) = (1 - from, [B, A][from]);
            for (place, frame) in on_a_wire(&mut ends[from], &mut books[from], (peer, now)) {
                if place.is_none_or(|place| place == at[to]) {
                    hear(&mut ends[to], &mut books[to], at[from], now, &frame);
                }
                recorded[from].push(frame);
            }
        }
        let alone = [books[0].address_alone(now, B), books[1].address_alone(now, A)];
        if ms > 1_000 && alone == [Some(21), Some(11)] {
            return Some(ms);
        }
    }
    None
}

/// Replays of recorded HELLOs, sent from an attacker's address to both ends of a recreated link,
/// were answered there, and nowhere else.
#[test]
fn recorded_handshakes_do_not_keep_apart_who_has_lost_its_place() {
    for (end, most_ms) in [(end as fn(_, _, _) -> _, 7_000), (keyed, 7_000)] {
        let mut ends = [end(A, B, 1), end(B, A, 2)];
        let met = meet_again(&mut ends, |end, book, now, recorded| {
            book.forget_learned();
            for frame in recorded {
                hear(end, book, 66, now, frame);
            }
            assert!(book.address_alone(now, A).is_none() && book.address_alone(now, B).is_none());
        });
        assert!(met.is_some_and(|ms| ms < most_ms), "{met:?}");
    }
}

/// Both interfaces were given other addresses, which nobody tells a daemon: challenges at the new
/// addresses were answered to the old ones.
#[test]
fn two_that_have_moved_at_once_meet_although_nobody_has_told_them() {
    for end in [end, keyed] {
        let mut ends = [end(A, B, 1), end(B, A, 2)];
        let met = meet_again(&mut ends, |_, _, _, _| {});
        let most_ms = 1_000 + PLACE_ALONE_AGE_MAX.as_millis() as u64 + 6_000;
        assert!(met.is_some_and(|ms| ms < most_ms), "{met:?}");
    }
}

/// A configured address still holds.
#[test]
fn only_what_was_learned_is_forgotten() {
    let mut book = book(false);
    assert!(moves(&mut book, B, 20));
    book.forget_learned();
    assert_eq!((book.address(A), book.address(B)), (Some(10), None));
    assert!(moves(&mut book, B, 21));
}

/// What a station sends where all hear what is addressed to nobody known, as on Ethernet.
fn on_a_wire(
    station: &mut Station,
    book: &mut PeerBook<u8>,
    (peer, now): (StationId, Time),
) -> Vec<(Option<u8>, Vec<u8>)> {
    let mut sent = Vec::new();
    station.handle_timeout(now);
    while let Some(transmit) = station.poll_transmit(now) {
        let to = match transmit.to {
            Destination::All => None,
            Destination::Search(_) if book.may_be_elsewhere(peer) => None,
            Destination::Search(_) | Destination::Station(_) => book.address_alone(now, peer),
        };
        sent.push((to, transmit.frame.to_vec()));
    }
    while let Some(asked) = book.poll_challenge(now, |peer| station.is_up(peer)) {
        let frame = station.challenge(asked.station, asked.token);
        sent.extend(frame.map(|frame| (Some(asked.address), frame.to_vec())));
    }
    sent
}

/// A station that answers a HELLO that others hear too need not be where it was sent.
#[test]
fn a_session_proves_an_address_only_where_nobody_else_hears_what_goes_there() {
    let session = Certainty::Session;
    for may_move in [true, false] {
        let mut book = book(may_move);
        book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 60);
        book.learn(Time::ZERO, (B, 20), session, 60);
        // Stations that do not move share a channel.
        assert_eq!(book.place(B, 10_000).is_some(), may_move);
        assert_eq!(book.proven_station(20).is_some(), may_move);
        assert!(book.station(20).is_some() && moves(&mut book, B, 20));
        assert_eq!((book.place(B, 10_000), book.proven_station(20)), (Some(20), Some(B)));
    }
    // Nor if another address was told of it, as by a challenge there.
    let mut book = book(true);
    book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 60);
    book.peers[1].challenge(Time::ZERO, 21, 60, &mut Stream::from_seed([1; 32]));
    book.learn(Time::ZERO, (B, 20), session, 60);
    assert_eq!(book.place(B, 10_000), None);
}

#[test]
fn what_cannot_be_sent_costs_nothing_and_what_is_padded_costs_what_is_sent() {
    for (len_min, down_ms) in [(0, 0), (0, 500), (46, 0), (46, 500)] {
        let mut book = book(false).with_frame_len_min(len_min);
        let len = len_min.max(PATH_CHALLENGE_LEN);
        book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 3 * len + len / 2);
        book.learn(Time::ZERO, (B, 20), Certainty::Session, len / 4);
        let (mut asked, mut polls) = (0, 0);
        while let Some(due) = book.poll_timeout() {
            let is_up = |_| due >= Time::from_millis(down_ms);
            while book.poll_challenge(due, is_up).is_some() {
                asked += 1;
            }
            polls += 1;
            assert!(polls < 200, "it is never done");
        }
        assert_eq!(asked, 3, "{len_min}, {down_ms}");
    }
}

#[test]
fn of_many_addresses_that_speak_the_quietest_is_forgotten() {
    let mut book = book(true);
    for (ms, at) in [(0, 11), (10, 12), (20, 11), (30, 13)] {
        book.learn(Time::from_millis(ms), (A, at), Certainty::Session, 100);
    }
    let kept: Vec<u8> = book.peers[0].challenged.iter().map(|it| it.place.address).collect();
    assert_eq!(kept, [11, 13]);
}

#[test]
fn an_address_is_asked_now_and_then_for_a_while_and_for_no_more_bytes_than_came_from_it() {
    let mut book = book(true);
    let (mut asked, len) = (0, 3 * PATH_CHALLENGE_LEN + 1);
    book.learn(Time::ZERO, (A, 11), Certainty::Session, len);
    for ms in 0..10_000 {
        while let Some(it) = book.poll_challenge(Time::from_millis(ms), |_| true) {
            asked += u32::from(it.address == 11);
        }
    }
    assert_eq!((asked, book.poll_timeout()), (3, None));
    let now = Time::from_millis(10_000);
    book.learn(now, (A, 11), Certainty::Session, 1_000_000);
    while let Some(due) = book.poll_timeout() {
        let it = book.poll_challenge(due.max(now), |_| true);
        asked += u32::from(it.is_some_and(|it| it.address == 11));
    }
    let most = CHALLENGE_AGE_MAX.as_millis() / CHALLENGE_INTERVAL.as_millis();
    assert!((60..=4 + most as u32).contains(&asked), "{asked}");
}

#[test]
fn whatever_comes_from_an_address_no_more_goes_there() {
    let mut draws = Stream::from_seed([5; 32]);
    for _ in 0..200 {
        let mut book = book(true);
        let (mut came, mut went, mut proven) = ([0; 8], [0; 8], [false; 8]);
        for step in 0..200 {
            let now = Time::from_millis(10 * step);
            let (at, len) = (draws.next_u32() as usize % 8, draws.next_u32() as usize % 300);
            came[at] += len;
            let certainty = [Certainty::Handshake, Certainty::Initiation, Certainty::Session];
            // While more than one address was told of it, a session proves none.
            let certainty = certainty[draws.next_u32() as usize % if step < 20 { 2 } else { 3 }];
            book.learn(now, (B, at as u8), certainty, len);
            let len = draws.next_u32() as usize % 300;
            book.places(now, B, len).for_each(|at| went[usize::from(at)] += len);
            book.place(B, len).iter().for_each(|&at| went[usize::from(at)] += len);
            while let Some(asked) = book.poll_challenge(now, |_| true) {
                went[usize::from(asked.address)] += PATH_CHALLENGE_LEN;
            }
            if let Some(place) = book.peers[1].place.filter(|it| it.allowance.is_none()) {
                proven[usize::from(place.address)] = true;
            }
            for at in (0..8).filter(|&at| !proven[at]) {
                assert!(went[at] <= came[at], "{} bytes for {}", went[at], came[at]);
            }
        }
    }
}

fn end(id: StationId, peer: StationId, entropy: u8) -> Station {
    end_with([7; 32].into(), (id, peer), entropy)
}

/// An end with a key pair.
fn keyed(id: StationId, station: StationId, entropy: u8) -> Station {
    let private = |id: StationId| PrivateKey::from_random([id.0 as u8; 32]);
    let peers = vec![PeerKey { station, public: private(station).public(), psk: None }];
    let keys = Keys { private: private(id), peers };
    end_with(Security::Keys(Box::new(keys)), (id, station), entropy)
}

fn end_with(security: Security, (id, peer): (StationId, StationId), entropy: u8) -> Station {
    let config = StationConfig {
        id,
        role: Role::Endpoint { peer, helper: None },
        security,
        coding: CodingParams::window(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 100,
        frame_len_max: 1_400,
        frame_len_min: 0,
        memory_bytes: crate::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    Station::new(config, [entropy; 32], Time::ZERO).unwrap()
}

fn hear(station: &mut Station, book: &mut PeerBook<u8>, at: u8, now: Time, frame: &[u8]) {
    let (from, certainty) = match station.handle_frame(now, frame) {
        FrameOutcome::Accepted { from } => (from, Certainty::Session),
        FrameOutcome::Handshake { from } => (from, Certainty::Handshake),
        FrameOutcome::Initiation { from } => (from, Certainty::Initiation),
        FrameOutcome::Answered { from, token } => (from, Certainty::Answer(token)),
        FrameOutcome::Noted | FrameOutcome::Rejected(_) => return,
    };
    book.learn(now, (from, at), certainty, frame.len());
}

/// What the station sends now, with addresses.
fn sent(station: &mut Station, book: &mut PeerBook<u8>, now: Time) -> Vec<(u8, Vec<u8>)> {
    let mut sent = Vec::new();
    station.handle_timeout(now);
    while let Some(transmit) = station.poll_transmit(now) {
        let (to, frame) = (transmit.to, transmit.frame.to_vec());
        match to {
            Destination::All => {
                let everywhere = book.addresses(now, frame.len());
                sent.extend(everywhere.map(|at| (at, frame.clone())));
            }
            Destination::Search(peer) => {
                let places = book.places(now, peer, frame.len());
                sent.extend(places.map(|at| (at, frame.clone())));
            }
            Destination::Station(peer) => {
                sent.extend(book.place(peer, frame.len()).map(|at| (at, frame)));
            }
        }
    }
    while let Some(asked) = book.poll_challenge(now, |peer| station.is_up(peer)) {
        let frame = station.challenge(asked.station, asked.token);
        sent.extend(frame.map(|frame| (asked.address, frame.to_vec())));
    }
    sent
}

/// One replayed HELLO of 59 bytes triggered 222 frames in 40 s, 17 kB, and so on forever.
#[test]
fn a_recorded_handshake_draws_no_more_than_its_bytes() {
    for (known, every_ms) in [(None, u64::MAX), (Some(10), u64::MAX), (None, 1_000)] {
        let mut now = Time::ZERO;
        let recorded = end(A, B, 1).poll_transmit(now).unwrap().frame.to_vec();
        let (mut station, mut book) =
            (end(B, A, 2), places([(A, known), (StationId(9), None)], true));
        let (mut heard, mut frames, mut bytes) = (0, 0, 0);
        for ms in 0..40_000 {
            now = Time::from_millis(ms);
            if ms % every_ms == 0 {
                heard += recorded.len();
                hear(&mut station, &mut book, 77, now, &recorded);
            }
            for (_, frame) in sent(&mut station, &mut book, now).iter().filter(|(at, _)| *at == 77)
            {
                frames += 1;
                bytes += frame.len();
                assert!(bytes <= heard, "{frames} frames, {bytes} for {heard} bytes");
            }
        }
        assert!(frames > 0);
        assert!(every_ms < u64::MAX || frames <= 10, "{frames} frames");
    }
}

#[test]
fn a_recorded_initiation_draws_no_more_than_its_bytes() {
    let recorded = keyed(A, B, 1).poll_transmit(Time::ZERO).unwrap().frame.to_vec();
    for (known, every_ms) in [(None, u64::MAX), (Some(10), 1_000), (None, 10)] {
        let (mut station, mut book) =
            (keyed(B, A, 2), places([(A, known), (StationId(9), None)], true));
        let (mut heard, mut bytes) = (0, 0);
        for ms in 0..40_000 {
            let now = Time::from_millis(ms);
            if ms % every_ms == 0 {
                heard += recorded.len();
                hear(&mut station, &mut book, 77, now, &recorded);
            }
            let sent = sent(&mut station, &mut book, now);
            let there = sent.iter().filter(|(at, _)| *at == 77);
            bytes += there.map(|(_, frame)| frame.len()).sum::<usize>();
            assert!(bytes <= heard, "{bytes} bytes for {heard}");
        }
        assert!(bytes > 0 && !station.is_up(A));
    }
}

#[test]
fn a_peer_behind_losses_gets_a_session_all_the_same() {
    for (seed, end) in (0..100).flat_map(|seed| [(seed, end as fn(_, _, _) -> _), (seed, keyed)]) {
        let mut draws = Stream::from_seed([seed; 32]);
        let mut ends: [Station; 2] = [end(A, B, 1), end(B, A, 2)];
        let mut books = [Some(20), None].map(|known| places([(B, known), (A, None)], true));
        let mut now = Time::ZERO;
        while !(ends[0].is_up(B) && ends[1].is_up(A)) {
            now += Duration::from_millis(1);
            assert!(now < Time::from_millis(10_000), "no session after 10 s, seed {seed}");
            for from in 0..2 {
                for (_, frame) in sent(&mut ends[from], &mut books[from], now) {
                    let (to, at) = (1 - from, [10, 20][from]);
                    if draws.next_u32() % 100 >= 40 {
                        hear(&mut ends[to], &mut books[to], at, now, &frame);
                    }
                }
            }
        }
    }
}

/// Frames kept going to the old address forever: a peer with nothing to send only sent a HELLO
/// every five seconds, and the answer to it used up the bytes that challenges needed.
#[test]
fn a_peer_that_has_moved_and_says_nothing_but_hello_is_followed() {
    for (frame_len_min, ends) in [(0, [end, keyed] as [fn(_, _, _) -> _; 2]), (46, [end, keyed])] {
        for end in ends {
            let mut ends: [Station; 2] = [end(A, B, 1), end(B, A, 2)];
            let mut books = [(B, 20), (A, 10)].map(|(peer, at)| {
                let configured = [(peer, Some(at)), (StationId(9), None)];
                places(configured, true).with_frame_len_min(frame_len_min)
            });
            let mut at = [10, 20];
            let mut moved_at = None;
            for ms in 0..20_000 {
                let now = Time::from_millis(ms);
                if ms == 1_000 {
                    at[0] = 11;
                }
                for from in 0..2 {
                    for (to, frame) in sent(&mut ends[from], &mut books[from], now) {
                        if to == at[1 - from] {
                            let there = at[from];
                            hear(&mut ends[1 - from], &mut books[1 - from], there, now, &frame);
                        }
                    }
                }
                moved_at = moved_at.or((books[1].address(A) == Some(11)).then_some(ms));
            }
            let moved_at = moved_at.expect("frames follow it");
            assert!((1_000..8_000).contains(&moved_at), "after {moved_at} ms");
        }
    }
}
