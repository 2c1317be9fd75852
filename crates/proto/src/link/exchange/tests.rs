//! Key exchanges between two ends that hear each other, or do not.

use super::*;
use crate::bounds::HELLO_INTERVAL_SEARCH_MAX;
use corridor_base::rand::{RngExt, SeedableRng};
use proptest::prelude::*;

use crate::wire::{INITIATION_LEN, RESPONSE_LEN};

const A: StationId = StationId(1);
const B: StationId = StationId(2);

fn private(id: StationId) -> PrivateKey {
    PrivateKey::from_random([id.0 as u8; 32])
}

fn keys(me: StationId, peer: StationId, psk: Option<u8>) -> Keys {
    let psk = psk.map(|byte| [byte; 32].into());
    let peer = PeerKey { station: peer, public: private(peer).public(), psk };
    Keys { private: private(me), peers: vec![peer] }
}

fn exchange(me: StationId, keys: &Keys, seed: u8) -> Exchange {
    Exchange::new(me, keys, Stream::from_seed([seed; 32]), Time::ZERO.into())
}

fn ends() -> [Exchange; 2] {
    [exchange(A, &keys(A, B, None), 1), exchange(B, &keys(B, A, None), 2)]
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// The next message, if one is due.
fn say(end: &mut Exchange, now: Time) -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    end.poll(now, HELLO_INTERVAL_SEARCH_MAX, &mut frame).then_some(frame)
}

fn hear(end: &mut Exchange, now: Time, frame: &[u8]) -> Taken {
    match KeyExchange::parse(frame) {
        Some(message) => end.take(now, &message),
        None => Taken::Refused,
    }
}

fn offered(taken: Taken) -> Psk {
    match taken {
        Taken::Offered(secret) => secret,
        other => panic!("{other:?}"),
    }
}

fn agreed(taken: Taken) -> Psk {
    match taken {
        Taken::Agreed(secret) => secret,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_messages_make_one_secret_and_the_response_is_not_the_longer_one() {
    let [mut a, mut b] = ends();
    let initiation = say(&mut a, ms(0)).unwrap();
    let secret = offered(hear(&mut b, ms(1), &initiation));
    let response = say(&mut b, ms(1)).unwrap();
    assert_eq!((initiation.len(), response.len()), (INITIATION_LEN, RESPONSE_LEN));
    assert_eq!(agreed(hear(&mut a, ms(2), &response)), secret);
    assert_eq!((say(&mut a, ms(2_000)), a.due()), (None, None));
}

#[test]
fn a_lost_response_is_sent_again_and_it_is_the_same() {
    let [mut a, mut b] = ends();
    let initiation = say(&mut a, ms(0)).unwrap();
    let secret = offered(hear(&mut b, ms(1), &initiation));
    let lost = say(&mut b, ms(1)).unwrap();
    assert_eq!(say(&mut a, ms(30)).as_ref(), Some(&initiation), "it is repeated as it is");
    assert_eq!(hear(&mut b, ms(31), &initiation), Taken::Repeated);
    let again = say(&mut b, ms(36)).unwrap();
    assert_eq!(again, lost);
    assert_eq!(agreed(hear(&mut a, ms(37), &again)), secret);
    assert_eq!(hear(&mut a, ms(38), &again), Taken::Unheard);
}

#[test]
fn a_response_is_repeated_by_itself_for_a_while_and_not_when_it_has_arrived() {
    let [mut a, mut b] = ends();
    let initiation = say(&mut a, ms(0)).unwrap();
    b.initiation = None;
    offered(hear(&mut b, ms(0), &initiation));
    let times = (0..10_000).filter(|&at| say(&mut b, ms(at)).is_some()).count();
    assert!((60..=70).contains(&times), "{times} times in two seconds, one each 30 ms");
    assert_eq!(hear(&mut b, ms(10_000), &initiation), Taken::Repeated);
    b.note_proven();
    assert_eq!((say(&mut b, ms(10_001)), b.due()), (None, None));
    assert_eq!(hear(&mut b, ms(10_002), &initiation), Taken::Replayed);
}

#[test]
fn who_has_answered_waits_a_little_before_it_calls_itself_and_no_recording_makes_it_longer() {
    let [mut a, mut b] = ends();
    let initiation = say(&mut a, ms(0)).unwrap();
    let mut calls = Vec::new();
    for at in 0..3_000 {
        if at % 100 == 0 {
            hear(&mut b, ms(at), &initiation);
        }
        calls.extend(say(&mut b, ms(at)).filter(|it| it.len() == INITIATION_LEN).map(|_| at));
    }
    assert_eq!(calls.first(), Some(&2_000), "{calls:?}");
}

#[test]
fn recordings_that_are_each_newer_put_no_call_off_for_long() {
    let mut b = exchange(B, &keys(B, A, None), 2);
    let mut calls = Vec::new();
    for at in 0..6_000 {
        if at % 500 == 0 {
            let mut a = exchange(A, &keys(A, B, None), (at / 500) as u8);
            a.newest.own = 10_000 + at;
            a.initiation = Some(a.initiate(ms(0), HELLO_INTERVAL_FAST));
            offered(hear(&mut b, ms(at), &say(&mut a, ms(0)).unwrap()));
        }
        calls.extend(say(&mut b, ms(at)).filter(|it| it.len() == INITIATION_LEN).map(|_| at));
    }
    // The answer that is due at that moment goes first.
    assert_eq!(calls.first(), Some(&2_001), "{calls:?}");
    assert!(calls.windows(2).all(|pair| pair[1] - pair[0] <= 2_300), "{calls:?}");
}

#[test]
fn both_begin_at_once_and_each_answers_the_other() {
    let [mut a, mut b] = ends();
    let [from_a, from_b] = [say(&mut a, ms(0)).unwrap(), say(&mut b, ms(0)).unwrap()];
    let at_b = offered(hear(&mut b, ms(5), &from_a));
    let at_a = offered(hear(&mut a, ms(5), &from_b));
    let [to_b, to_a] = [say(&mut a, ms(5)).unwrap(), say(&mut b, ms(5)).unwrap()];
    assert_eq!(agreed(hear(&mut a, ms(10), &to_a)), at_b);
    assert_eq!(agreed(hear(&mut b, ms(10), &to_b)), at_a);
    assert_ne!(at_a, at_b);
    assert_ne!(a.precedes(), b.precedes());
}

#[test]
fn an_initiation_from_before_the_newest_is_a_recording() {
    let [mut a, mut b] = ends();
    let first = say(&mut a, ms(0)).unwrap();
    offered(hear(&mut b, ms(0), &first));
    let second = say(&mut a, ms(6_000)).unwrap();
    assert_ne!(second, first, "nobody repeats an initiation for so long");
    offered(hear(&mut b, ms(7_000), &second));
    assert_eq!(hear(&mut b, ms(7_001), &first), Taken::Replayed);

    // A restarted station knows of none of them, and its own exchange is not yet complete.
    let mut restarted = exchange(B, &keys(B, A, None), 9);
    offered(hear(&mut restarted, ms(0), &first));
    assert_eq!(hear(&mut a, ms(7_002), &say(&mut restarted, ms(0)).unwrap()), Taken::Refused);
}

#[test]
fn a_key_that_is_not_configured_gets_no_answer() {
    let stranger = keys(StationId(7), B, None);
    let mut stranger = exchange(A, &stranger, 3);
    let [mut a, mut b] = ends();
    b.initiation = None;
    let initiation = say(&mut stranger, ms(0)).unwrap();
    assert_eq!(hear(&mut b, ms(0), &initiation), Taken::Refused);
    assert_eq!(say(&mut b, ms(5_000)), None);
    let message = KeyExchange::parse(&initiation).unwrap();
    let public = private(StationId(7)).public();
    assert_eq!(b.examine(&message), Sight::OtherPublicKey(public));

    // A message from a station that does not know this station's key is not even examined.
    let other = say(&mut exchange(B, &keys(B, StationId(7), None), 4), ms(0)).unwrap();
    assert_eq!(hear(&mut a, ms(0), &other), Taken::Refused);
    assert_eq!(a.examine(&KeyExchange::parse(&other).unwrap()), Sight::NotForUs);
    let own = say(&mut a, ms(0)).unwrap();
    assert_eq!(a.examine(&KeyExchange::parse(&own).unwrap()), Sight::Own);
}

#[test]
fn another_secret_beside_the_keys_is_found_by_the_initiator() {
    for (ours, theirs) in [(Some(5), Some(6)), (Some(5), None), (None, Some(6))] {
        let mut a = exchange(A, &keys(A, B, ours), 1);
        let mut b = exchange(B, &keys(B, A, theirs), 2);
        offered(hear(&mut b, ms(0), &say(&mut a, ms(0)).unwrap()));
        let response = say(&mut b, ms(0)).unwrap();
        assert_eq!(hear(&mut a, ms(0), &response), Taken::Refused);
        let message = KeyExchange::parse(&response).unwrap();
        assert_eq!(a.examine(&message), Sight::OtherPsk);
    }
}

#[test]
fn only_so_many_are_looked_into_and_the_peer_gets_its_turn() {
    let [mut a, mut b] = ends();
    // Initiations of a stranger who knows this station's public key, all different.
    let mut looked = 0;
    for at in 0..10_000 {
        let stranger = &mut exchange(A, &keys(StationId(7), B, None), (at % 251) as u8);
        stranger.newest.own = at;
        let before = format!("{:?}", b.looks.initiations);
        assert_eq!(hear(&mut b, ms(at), &say(stranger, ms(at)).unwrap()), Taken::Refused);
        looked += u32::from(format!("{:?}", b.looks.initiations) != before);
        if at == 300 {
            break;
        }
    }
    assert!(looked <= 2 * KEY_EXCHANGES_PER_SECOND, "{looked} looked into in 0.3 s");
    offered(hear(&mut b, ms(2_000), &say(&mut a, ms(2_000)).unwrap()));
}

#[test]
fn a_key_exchange_gets_through_at_90_percent_loss_each_way() {
    let mut times: Vec<u64> = Vec::new();
    for seed in 0..200 {
        let mut dice = Stream::from_seed([seed; 32]);
        let [mut a, mut b] =
            [exchange(A, &keys(A, B, None), seed), exchange(B, &keys(B, A, None), seed + 1)];
        let mut at = 0;
        let both = loop {
            at += 1;
            let mut done = 0;
            for (from, to) in [(&mut a, &mut b)] {
                let frames = [say(from, ms(at)), say(to, ms(at))];
                for (frame, to) in frames.iter().zip([to, from]) {
                    let Some(frame) = frame.as_ref().filter(|_| dice.random::<f64>() < 0.1) else {
                        continue;
                    };
                    done += u32::from(matches!(hear(to, ms(at), frame), Taken::Agreed(_)));
                }
            }
            if done > 0 || at > 120_000 {
                break at;
            }
        };
        times.push(both);
    }
    times.sort_unstable();
    let (median, last) = (times[100], times[199]);
    println!("median {median} ms, longest {last} ms");
    assert!(median < 2_000 && last < 15_000, "median {median} ms, longest {last} ms");
}

proptest! {
    #![proptest_config(corridor_testing::cases!(64))]

    #[test]
    fn nothing_that_was_changed_on_the_way_comes_to_anything(
        bit in 0..INITIATION_LEN * 8, which in 0..2_usize,
    ) {
        let [mut a, mut b] = ends();
        let bend = |mut frame: Vec<u8>| {
            let bit = bit % (frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
            frame
        };
        let initiation = say(&mut a, ms(0)).unwrap();
        if which == 0 {
            prop_assert_eq!(hear(&mut b, ms(0), &bend(initiation)), Taken::Refused);
        } else {
            offered(hear(&mut b, ms(0), &initiation));
            let response = bend(say(&mut b, ms(0)).unwrap());
            prop_assert_eq!(hear(&mut a, ms(0), &response), Taken::Refused);
        }
    }

    #[test]
    fn bytes_of_any_length_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let [mut a, _] = ends();
        for first in [bytes.first().copied().unwrap_or(0), 0x27] {
            let mut frame = bytes.clone();
            frame.iter_mut().take(1).for_each(|byte| *byte = first);
            prop_assert_eq!(hear(&mut a, ms(0), &frame), Taken::Refused);
        }
    }
}

fn given(taken: Taken) -> [Psk; 2] {
    match taken {
        Taken::Given(secrets) => secrets,
        other => panic!("{other:?}"),
    }
}

fn secrets(bytes: [u8; 2]) -> [Psk; 2] {
    bytes.map(|byte| [byte; 32].into())
}

/// Two ends that give each other their secrets.
fn givers() -> [Exchange; 2] {
    let mut ends = ends();
    ends.iter_mut().zip([[1, 2], [11, 12]]).for_each(|(it, bytes)| it.hand_out(secrets(bytes)));
    ends
}

#[test]
fn an_initiation_that_is_repeated_is_given_what_is_sealed_under_then() {
    let [mut a, mut b] = givers();
    let initiation = say(&mut a, ms(0)).unwrap();
    assert_eq!(initiation.len(), HANDOUT_LEN);
    assert_eq!(hear(&mut b, ms(1), &initiation), Taken::Asked);
    assert_eq!(b.asked(), Some((ms(1), ms(1))));
    let lost = say(&mut b, ms(1)).unwrap();
    assert_eq!(hear(&mut b, ms(30), &initiation), Taken::Repeated);
    assert_eq!(b.asked(), Some((ms(30), ms(1))));
    assert_eq!(say(&mut b, ms(40)).as_ref(), Some(&lost), "it is the same");
    b.hand_out(secrets([12, 13]));
    assert_eq!(b.asked(), None);
    // It may be a replay: it is answered, and does not count as a request.
    assert_eq!(hear(&mut b, ms(60), &initiation), Taken::Replayed);
    assert_eq!(b.asked(), None);
    let handout = say(&mut b, ms(60)).unwrap();
    assert_eq!(handout.len(), HANDOUT_LEN);
    assert_eq!(given(hear(&mut a, ms(61), &handout)), secrets([12, 13]));
    assert_eq!(hear(&mut a, ms(62), &handout), Taken::Unheard);
    assert_eq!(hear(&mut a, ms(62), &lost), Taken::Unheard);
}

#[test]
fn an_initiation_that_is_said_again_and_again_is_answered_now_and_then() {
    let [mut a, mut b] = givers();
    let initiation = say(&mut a, ms(0)).unwrap();
    let mut answers = 0;
    for at in 0..1_000 {
        for _ in 0..10 {
            hear(&mut b, ms(at), &initiation);
            let said = say(&mut b, ms(at));
            let is_answer = |frame: &Vec<u8>| {
                KeyExchange::parse(frame).is_some_and(|message| message.step == Step::Handout)
            };
            answers += usize::from(said.as_ref().is_some_and(is_answer));
        }
    }
    assert_eq!(answers, 50, "every 20 ms");
}

/// A replayer cannot use the handout, and takes nothing from the peer: what that requests
/// afterwards is given, and counts.
#[test]
fn a_recorded_initiation_is_given_what_nobody_can_open() {
    let [mut a, mut b] = givers();
    let recorded = say(&mut a, ms(0)).unwrap();
    hear(&mut b, ms(1), &recorded);
    let handout = say(&mut b, ms(1)).unwrap();
    given(hear(&mut a, ms(2), &handout));
    a.begin(ms(1_000));
    let fresh = say(&mut a, ms(1_000)).unwrap();
    assert_eq!(hear(&mut b, ms(1_001), &fresh), Taken::Asked);
    let counted = b.asked();
    assert_eq!(hear(&mut b, ms(1_001), &recorded), Taken::Replayed);
    let handout = say(&mut b, ms(1_001)).unwrap();
    assert_eq!(hear(&mut a, ms(1_002), &handout), Taken::Unheard);
    assert_eq!(b.asked(), counted);
    assert_eq!(hear(&mut b, ms(1_020), &fresh), Taken::Replayed);
    let handout = say(&mut b, ms(1_020)).unwrap();
    assert_eq!(given(hear(&mut a, ms(1_021), &handout)), secrets([11, 12]));
}

/// The peer knows an earlier run of this station, whose clock was right.
#[test]
fn an_initiation_from_before_the_clock_was_set_gives_way_to_a_newer_one() {
    const HOUR: u64 = 3_600_000_000_000;
    let read = |at, wall_ns| Clocks { now: ms(at), wall_ns };
    let (of_a, of_b) = (keys(A, B, None), keys(B, A, None));
    let mut before = Exchange::new(A, &of_a, Stream::from_seed([1; 32]), read(0, HOUR));
    let mut b = exchange(B, &of_b, 2);
    offered(hear(&mut b, ms(1), &say(&mut before, ms(1)).unwrap()));
    let mut a = exchange(A, &of_a, 3);
    let late = say(&mut a, ms(10)).unwrap();
    assert_eq!(hear(&mut b, ms(11), &late), Taken::Replayed);
    // After a slew the initiation stays the same.
    a.set_clock(read(20, 20_000_000 + 900_000_000));
    assert_eq!(say(&mut a, ms(300)).unwrap(), late);
    a.set_clock(read(301, 2 * HOUR));
    let newer = say(&mut a, ms(301)).expect("at once");
    offered(hear(&mut b, ms(302), &newer));
    // Set back, it goes on from there: no timestamp is lower than one before.
    a.set_clock(read(400, 5));
    assert_eq!(say(&mut a, ms(700)).unwrap(), newer);
    let next = (1..20).find_map(|at| say(&mut a, ms(10_000 + at)).filter(|it| *it != newer));
    offered(hear(&mut b, ms(11_000), &next.expect("another after five seconds")));
}
