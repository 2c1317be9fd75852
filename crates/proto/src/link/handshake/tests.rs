//! Sessions between groups that hear each other's HELLOs.

use super::*;
use crate::wire::cookie::CookieReply;
use corridor_base::rand::SeedableRng;

fn coding() -> CodingParams {
    CodingParams { symbol_size: 1400, ..CodingParams::default() }
}

fn setting() -> Setting {
    let feedback = Duration::from_millis(17);
    Setting { coding: coding(), crossing: Crossing::Block, received_bytes: 0, feedback }
}

fn group(me: u8, peers: &[u8], seed: u8) -> Group {
    let peers: Vec<_> = peers.iter().map(|&id| StationId(u16::from(id))).collect();
    let rng = Stream::from_seed([seed; 32]);
    let setting = setting();
    Group::new(StationId(u16::from(me)), &[1; 32].into(), &peers, setting, rng, Time::ZERO)
}

fn hello(group: &mut Group, now: Time) -> Vec<u8> {
    let mut frame = Vec::new();
    group.write_hello(now, 0, &mut frame, 0);
    frame
}

/// Lets all groups hear each other's HELLOs, as they fall due, until none is due soon.
fn converse(groups: &mut [Group], from: Time) -> Time {
    let mut now = from;
    for _ in 0..2_000 {
        now += Duration::from_millis(1);
        for speaker in 0..groups.len() {
            if groups[speaker].hello_due() > now {
                continue;
            }
            let frame = hello(&mut groups[speaker], now);
            for hearer in (0..groups.len()).filter(|&hearer| hearer != speaker) {
                groups[hearer].open(now, &frame, &mut Vec::new());
            }
        }
    }
    now
}

fn data(group: &mut Group) -> Vec<u8> {
    let mut frame = Vec::new();
    group.begin(&mut frame);
    frame.extend_from_slice(b"body");
    group.seal(&mut frame, 0);
    frame
}

#[test]
fn three_stations_find_each_other_and_then_hold_their_peace() {
    let mut groups = [group(1, &[2, 3], 1), group(2, &[1, 3], 2), group(3, &[1, 2], 3)];
    let now = converse(&mut groups, Time::ZERO);
    for (group, peers) in groups.iter().zip([[2, 3], [1, 3], [1, 2]]) {
        assert!(peers.iter().all(|&peer| group.is_up(StationId(peer))));
        assert!(group.hello_due() - now > HELLO_INTERVAL_SEARCH_MAX);
    }
    let frame = data(&mut groups[0]);
    let mut body = Vec::new();
    for hearer in &mut groups[1..] {
        let opening = hearer.open(now, &frame, &mut body);
        assert!(matches!(opening, Opening::Frame(opened) if opened.from == StationId(1)));
        assert_eq!(body, b"body");
        assert_eq!(hearer.open(now, &frame, &mut body), Opening::Replayed);
    }
}

/// A HELLO has no room for all pending sessions when somebody replays what neighbours sent in
/// earlier sessions: a neighbour that has restarted gets its challenge nevertheless.
#[test]
fn recordings_of_one_neighbour_do_not_keep_another_out() {
    let ids: Vec<u8> = (2..2 + RELAY_NEIGHBOURS_MAX as u8).collect();
    let mut groups = vec![group(1, &ids, 1)];
    groups.extend(ids.iter().map(|&id| group(id, &[1], id)));
    let now = converse(&mut groups, Time::ZERO);
    assert!(ids.iter().all(|&id| groups[0].is_up(StationId(u16::from(id)))));
    let recorded: Vec<_> = (0..PENDING_SESSIONS_MAX as u8)
        .flat_map(|run| [2, 3].map(|id| hello(&mut group(id, &[1], 100 + run), now)))
        .collect();
    let last = ids.len();
    groups[last] = group(ids[last - 1], &[1], 200);
    let before = groups[0].inspect()[last - 1].instance;
    let mut at = now;
    for _ in 0..4 {
        for frame in &recorded {
            groups[0].open(at, frame, &mut Vec::new());
        }
        at = converse(&mut groups, at);
    }
    assert!(groups[last].is_up(StationId(1)), "it never got its challenge");
    assert_ne!(groups[0].inspect()[last - 1].instance, before);
}

#[test]
fn a_session_that_is_only_played_back_is_forgotten() {
    let mut here = group(1, &[2], 1);
    let recorded = hello(&mut group(2, &[1], 2), Time::ZERO);
    let mut now = Time::ZERO;
    for _ in 0..20 {
        here.open(now, &recorded, &mut Vec::new());
        assert!(here.inspect()[0].pending_sessions <= 1);
        now += PENDING_SESSION_AGE_MAX / 4;
        hello(&mut here, now);
        if now == Time::ZERO + PENDING_SESSION_AGE_MAX {
            assert_eq!(here.inspect()[0].pending_sessions, 0);
        }
    }
}

#[test]
fn recordings_do_not_bring_a_session_back() {
    let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
    let mut recorded = Vec::new();
    let mut now = Time::ZERO;
    for _ in 0..500 {
        now += Duration::from_millis(1);
        for (speaker, hearer) in [(0, 1), (1, 0)] {
            if groups[speaker].hello_due() <= now {
                let frame = hello(&mut groups[speaker], now);
                groups[hearer].open(now, &frame, &mut Vec::new());
                recorded.extend((speaker == 0).then_some(frame));
            }
        }
    }
    assert!(groups[1].is_up(StationId(1)));
    recorded.push(data(&mut groups[0]));

    // Station 2 restarts, station 1 is gone; somebody replays everything that it ever sent.
    let mut restarted = group(2, &[1], 9);
    for frame in recorded {
        let opening = restarted.open(now, &frame, &mut Vec::new());
        assert!(matches!(opening, Opening::Hello { joined: None, .. } | Opening::UnknownSession));
    }
    assert!(!restarted.is_up(StationId(1)));
}

#[test]
fn a_former_session_does_not_come_back_by_its_own_answer() {
    let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
    let mut recorded = Vec::new();
    let mut now = Time::ZERO;
    for ms in 0..1_000 {
        now += Duration::from_millis(1);
        if ms == 500 {
            groups[0] = group(1, &[2], 77);
        }
        for (speaker, hearer) in [(0, 1), (1, 0)] {
            if groups[speaker].hello_due() <= now {
                let frame = hello(&mut groups[speaker], now);
                groups[hearer].open(now, &frame, &mut Vec::new());
                recorded.extend((speaker == 0 && ms < 500).then_some(frame));
            }
        }
    }
    assert!(groups[1].is_up(StationId(1)));
    for frame in recorded {
        let opening = groups[1].open(now, &frame, &mut Vec::new());
        assert!(!matches!(opening, Opening::Hello { joined: Some(_), .. }), "{opening:?}");
    }
}

#[test]
fn a_restarted_peer_is_taken_back_as_a_new_instance() {
    let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
    let now = converse(&mut groups, Time::ZERO);
    let old_session = groups[0].own.id;
    groups[0] = group(1, &[2], 77);
    assert_ne!(old_session, groups[0].own.id);
    converse(&mut groups, now);
    assert!(groups[1].is_up(StationId(1)) && groups[0].is_up(StationId(2)));
}

#[test]
fn a_session_near_its_last_counter_is_replaced_under_way() {
    let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
    let now = converse(&mut groups, Time::ZERO);
    groups[0].own.next_counter = SESSION_FRAMES_MAX - 1;
    data(&mut groups[0]);
    assert_eq!(groups[0].own.next_counter, 0);
    assert!(!groups[0].is_up(StationId(2)));
    converse(&mut groups, now);
    assert!(groups[0].is_up(StationId(2)));
}

#[test]
fn a_crowd_of_replayed_sessions_does_not_keep_a_peer_out() {
    // Replays of many earlier sessions of station 1, between any two frames.
    let recordings: Vec<Vec<u8>> =
        (10..30).map(|seed| hello(&mut group(1, &[2], seed), Time::ZERO)).collect();
    let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
    let mut now = Time::ZERO;
    for step in 0..1_000 {
        now += Duration::from_millis(1);
        groups[1].open(now, &recordings[step % recordings.len()], &mut Vec::new());
        for (speaker, hearer) in [(0, 1), (1, 0)] {
            if groups[speaker].hello_due() <= now {
                let frame = hello(&mut groups[speaker], now);
                groups[hearer].open(now, &frame, &mut Vec::new());
            }
        }
    }
    assert!(groups[0].is_up(StationId(2)) && groups[1].is_up(StationId(1)));
}

#[test]
fn another_secret_is_a_stranger() {
    let mut ours = group(1, &[2], 1);
    let rng = Stream::from_seed([5; 32]);
    let setting = setting();
    let mut theirs =
        Group::new(StationId(2), &[2; 32].into(), &[StationId(1)], setting, rng, Time::ZERO);
    let frame = hello(&mut theirs, Time::ZERO);
    assert_eq!(ours.open(Time::ZERO, &frame, &mut Vec::new()), Opening::NotAuthentic);
}

/// An attacker that had seen one HELLO could trigger another with each forged cookie, and replace a
/// good cookie with it.
#[test]
fn forged_cookies_do_not_hurry_a_station_and_answer_what_was_said_once() {
    let said = |are_forged: bool| {
        let (mut here, mut said, mut first) = (group(1, &[2], 1), 0, None);
        for ms in 0..10_000_u64 {
            let now = Time::from_millis(ms);
            let forge = |here: &mut Group, answers, tell: u8| {
                let mut made = [tell; 16];
                made[..8].copy_from_slice(&ms.to_be_bytes());
                let reply = CookieReply { sender: StationId(2), answers, cookie: made };
                here.open(now, &reply.frame(), &mut Vec::new())
            };
            if here.hello_due() <= now {
                let frame = hello(&mut here, now);
                said += 1;
                let asks = cookie::asked_by(cookie::unwrap(&frame).1).unwrap();
                if are_forged {
                    assert_eq!(forge(&mut here, asks, 1), Opening::Cookie);
                    assert_eq!(forge(&mut here, asks, 2), Opening::NotAuthentic);
                    first.get_or_insert(asks);
                }
            }
            if let Some(first) = first {
                assert_eq!(forge(&mut here, first, 3), Opening::NotAuthentic);
            }
        }
        said
    };
    let (in_peace, under_attack) = (said(false), said(true));
    assert!(under_attack <= 3 * in_peace, "{under_attack} HELLOs, {in_peace} in peace");
}

/// A HELLO of 60 bytes allowed no answer, which takes 118.
#[test]
fn a_hello_that_seeks_may_be_answered_however_long_it_has_sought() {
    let mut here = group(1, &[2], 1);
    here.reach_out(Time::ZERO, true);
    for (ms, least) in [(0, HELLO_OUTREACH_LEN), (60_000, HELLO_SEEKING_LEN)] {
        let (mut there, now) = (group(2, &[1], 2), Time::from_millis(ms));
        let greeting = hello(&mut here, now);
        assert!(matches!(there.open(now, &greeting, &mut Vec::new()), Opening::Hello { .. }));
        let answer = hello(&mut there, now);
        assert!(greeting.len() >= least && answer.len() <= greeting.len(), "{}", answer.len());
    }
}

/// It was longer than the interface accepts: with several stations, or while one was looked for.
#[test]
fn a_hello_is_no_longer_than_frames_may_be() {
    let peers = [2, 3, 4, 5, 6];
    let (mut here, now) = (group(1, &peers, 1), Time::ZERO);
    for id in peers {
        let greeting = hello(&mut group(id, &[1], id), now);
        here.open(now, &greeting, &mut Vec::new());
    }
    let all = OVERHEAD_LEN + HELLO_CLEAR_LEN + HELLO_LEN + peers.len() * HELLO_TO_LEN;
    assert_eq!(hello(&mut here, now).len(), all);
    here.limit_frames(FRAME_LEN_MIN);
    assert_eq!(hello(&mut here, now).len(), all - 2 * HELLO_TO_LEN);
    here.reach_out(now, true);
    assert_eq!(hello(&mut here, now).len(), FRAME_LEN_MIN - COOKIE_MAC_HEAD_LEN);
}

/// In frames of 256 bytes a HELLO has room for three entries: the fourth never had one, and with
/// four peers up, none that restarted ever got its challenge.
#[test]
fn where_a_hello_has_no_room_for_all_peers_they_take_turns() {
    let peers = [2, 3, 4, 5];
    for len in [FRAME_LEN_MIN, 296, 349] {
        let mut groups = vec![group(1, &peers, 1)];
        groups.extend(peers.map(|id| group(id, &[1], id)));
        groups[0].limit_frames(len);
        let now = converse(&mut groups, Time::ZERO);
        let all_up = |groups: &[Group]| {
            peers.into_iter().zip(&groups[1..]).all(|(id, there)| {
                groups[0].is_up(StationId(id.into())) && there.is_up(StationId(1))
            })
        };
        assert!(all_up(&groups), "{len} bytes");
        for (at, id) in (1..).zip(peers) {
            groups[at] = group(id, &[1], 10 + id);
            let instance = groups[at].instance();
            converse(&mut groups, now);
            let known = groups[0].peer(StationId(id.into())).and_then(|it| it.session.as_ref());
            assert_eq!(known.map(|session| session.instance), Some(instance), "{len} bytes, {id}");
            assert!(all_up(&groups), "{len} bytes, {id}");
        }
    }
}

#[test]
fn a_peer_that_goes_or_falls_silent_is_looked_for_as_at_first() {
    for says_goodbye in [true, false] {
        let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
        groups[0].reach_out(Time::ZERO, true);
        let now = converse(&mut groups, Time::ZERO) + 2 * HELLO_OUTREACH;
        assert!(groups[0].is_up(StationId(2)) && !groups[0].seeks());
        assert!(hello(&mut groups[0], now).len() < HELLO_OUTREACH_LEN);
        let now = match says_goodbye {
            true => now,
            false => now + PEER_SILENT_HELLOS * HELLO_INTERVAL_SLOW,
        };
        match says_goodbye {
            true => assert!(groups[0].note_goodbye(now, StationId(2))),
            false => assert_eq!(groups[0].newly_silent(now), Some(StationId(2))),
        }
        assert!(groups[0].hello_due() <= now + HELLO_INTERVAL_FAST);
        assert_eq!(hello(&mut groups[0], now).len(), HELLO_OUTREACH_LEN);
        assert_eq!(groups[0].outreach_interval(now), Some(HELLO_INTERVAL_OUTREACH));
        // And from then on as if it had been looked for from the beginning.
        let later = now + 2 * HELLO_OUTREACH;
        assert_eq!(hello(&mut groups[0], later).len(), HELLO_SEEKING_LEN);
        assert!(groups[0].hello_due() <= later + HELLO_INTERVAL_SEARCH_MAX);
    }
}

/// A HELLO of a group that announces these intervals.
fn hello_with(group: &mut Group, now: Time, intervals: Intervals) -> Vec<u8> {
    let mut frame = hello(group, now);
    let key = SessionKey::derive(&[1; 32].into(), group.me, &group.own.id);
    let header = Header::parse(&frame).expect("a HELLO");
    let mut body = Vec::new();
    let clear = HEADER_LEN + HELLO_CLEAR_LEN;
    assert!(key.open(header.counter, &frame, clear, &mut body));
    frame.truncate(clear);
    let said = Hello::find(&body).expect("its body");
    Kind::Hello.begin_last(&mut frame);
    Hello { intervals, ..said }.write(&mut frame);
    key.seal(header.counter, &mut frame, clear);
    frame
}

#[test]
fn a_peer_is_waited_for_as_long_as_it_says() {
    let seconds = Duration::from_secs;
    // What the peer announces; after how long it counts as silent, and a helper's reports as stale.
    let table = [
        (Intervals::default(), seconds(20), seconds(2), None),
        (
            Intervals { feedback: Some(Duration::from_millis(17)), hello: Some(seconds(5)) },
            seconds(20),
            Duration::from_millis(170),
            Some(Duration::from_millis(17)),
        ),
        (
            Intervals { feedback: Some(seconds(1)), hello: Some(seconds(30)) },
            seconds(120),
            seconds(10),
            Some(seconds(1)),
        ),
        // Nothing that a peer announces makes a station wait forever, or not at all.
        (
            Intervals { feedback: Some(seconds(3_600)), hello: Some(seconds(3_600)) },
            seconds(240),
            seconds(600),
            Some(seconds(60)),
        ),
        (
            Intervals { feedback: Some(Duration::ZERO), hello: Some(Duration::from_nanos(1)) },
            seconds(4),
            seconds(2),
            None,
        ),
    ];
    for (intervals, silent_after, report_stale_after, feedback) in table {
        let (mut a, mut b) = (group(1, &[2], 1), group(2, &[1], 2));
        let mut now = Time::ZERO;
        let mut heard = None;
        for _ in 0..6 {
            now += Duration::from_millis(30);
            let said = hello_with(&mut b, now, intervals);
            if let Opening::Hello { joined: Some(joined), .. } = a.open(now, &said, &mut Vec::new())
            {
                heard = Some(joined.feedback);
            }
            let answer = hello(&mut a, now);
            b.open(now, &answer, &mut Vec::new());
        }
        assert_eq!(heard, Some(feedback), "{intervals:?}");
        let peer = a.peer(StationId(2)).expect("it is configured");
        assert_eq!(peer.report_stale_after(), report_stale_after, "{intervals:?}");
        let last = peer.last_heard;
        assert_eq!(a.newly_silent(last + silent_after), None, "{intervals:?}");
        let just_after = last + silent_after + Duration::from_nanos(1);
        assert_eq!(a.newly_silent(just_after), Some(StationId(2)), "{intervals:?}");
        // What this station announces about itself does not depend on the peer.
        let joined = b.peers[0].session.as_ref().expect("it has joined");
        assert_eq!(joined.intervals.feedback, Some(Duration::from_millis(17)));
        assert_eq!(joined.intervals.hello, Some(HELLO_INTERVAL_SLOW));
    }
}
