use super::*;

const PEER: StationId = StationId(2);
const AT: &str = "192.0.2.2:4242";
const ELSEWHERE: &str = "198.51.100.9:4242";

/// A peer about which nothing is known.
fn view() -> PeerView {
    PeerView {
        id: PEER,
        instance: None,
        crossing: None,
        pending_sessions: 0,
        is_up: false,
        is_silent: false,
        hellos: 0,
        answered_at: None,
        last_heard: None,
        loss_ratio: None,
        public_key: None,
        agreed_at: None,
    }
}

fn up() -> PeerView {
    PeerView { is_up: true, crossing: Some(Crossing::Window), ..view() }
}

fn watch() -> Watch<&'static str> {
    Watch::new((StationId(1), Crossing::Window), [PEER], Time::ZERO)
}

fn at(seconds: u64) -> Time {
    Time::from_millis(1000 * seconds)
}

/// The lines reported, for a peer that is assumed to be at [`AT`].
fn lines(watch: &mut Watch<&'static str>, now: Time, view: &PeerView) -> Vec<String> {
    let lines = watch.check(now, core::slice::from_ref(view), 20, |_| Some(AT));
    lines.iter().map(ToString::to_string).collect()
}

/// The line after five seconds in which this was rejected, this often and from these addresses.
fn told(rejected: &[(&'static str, Unopened, u64)], view: &PeerView) -> String {
    let mut watch = watch();
    for &(from, what, frames) in rejected {
        (0..frames).for_each(|_| watch.note_rejected(from, what, |at| at == AT));
    }
    assert_eq!(lines(&mut watch, at(4), view), [""; 0]);
    let mut lines = lines(&mut watch, at(5), view);
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

#[test]
fn another_key_is_told_by_hellos_that_name_the_peer() {
    let other_key = Unopened::OtherKey { names: PEER };
    assert_eq!(
        told(&[(AT, other_key, 19), (ELSEWHERE, Unopened::Foreign, 99)], &view()),
        "no session with station 2 for 5 s: 19 frames from 192.0.2.2:4242 failed authentication: \
         the keys differ"
    );
    assert_eq!(
        told(&[(ELSEWHERE, other_key, 19)], &view()),
        "no session with station 2 for 5 s: 19 frames from 198.51.100.9:4242 failed \
         authentication: the keys differ, or it is not the peer (expected at 192.0.2.2:4242)"
    );
}

#[test]
fn strangers_elsewhere_that_do_not_name_the_peer_say_nothing_of_it() {
    let other = Unopened::OtherKey { names: StationId(7) };
    let told = told(&[(ELSEWHERE, other, 99), (ELSEWHERE, Unopened::Version(2), 99)], &view());
    assert!(told.contains("no answer from 192.0.2.2:4242 to 20 frames"), "{told}");
}

#[test]
fn another_version_is_told_unless_any_number_comes() {
    let expected = "no session with station 2 for 5 s: 192.0.2.2:4242 uses wire version 5, this \
                    station 9 (19 frames); install the same release on both";
    assert_eq!(told(&[(AT, Unopened::Version(5), 19)], &view()), expected);
    let noise = [(AT, Unopened::Version(1), 5), (AT, Unopened::Version(9), 4)];
    assert_eq!(
        told(&noise, &view()),
        "no session with station 2 for 5 s: 192.0.2.2:4242 sends something other than Corridor \
         frames (9 packets); check address and port"
    );
}

#[test]
fn numbers_that_do_not_fit_are_told() {
    let stranger = |id| Unopened::Stranger { id: StationId(id) };
    assert_eq!(
        told(&[(AT, stranger(1), 19)], &view()),
        "no session with station 2 for 5 s: the station at 192.0.2.2:4242 has the same station.id \
         as this one (19 HELLOs); change one of them"
    );
    assert_eq!(
        told(&[(AT, stranger(7), 19)], &view()),
        "no session with station 2 for 5 s: the station at 192.0.2.2:4242 has the right key but \
         identifies as station 7 (19 HELLOs); set peer.id here to its station.id"
    );
    assert_eq!(
        told(&[(AT, Unopened::Own, 19)], &view()),
        "no session with station 2 for 5 s: this station's own frames come back from \
         192.0.2.2:4242 (19 frames); peer.endpoint must be the address of another station"
    );
}

#[test]
fn a_peer_that_does_not_hear_is_told_from_one_that_hears_too_little() {
    let heard = PeerView { hellos: 31, last_heard: Some(at(4)), ..view() };
    assert_eq!(
        told(&[], &heard),
        "no session with station 2 for 5 s: receiving from 192.0.2.2:4242 (31 HELLOs), but it does \
         not receive from this station: a firewall or address translation on the path, or its \
         peer.id is not this station's station.id"
    );
    let answers = PeerView { answered_at: Some(at(3)), ..heard.clone() };
    assert_eq!(
        told(&[], &answers),
        "no session with station 2 for 5 s: both stations receive, but 31 HELLOs did not complete \
         the handshake: too many frames are lost"
    );
    // The peer may not have run yet when the network refused the first frames.
    for (refused_at, why) in [
        (4, "port unreachable, no process listens on it"),
        (1, "peer.id is not this station's station.id"),
    ] {
        let mut watch = watch();
        watch.note_refused(at(refused_at), Some(AT), Refusal::NoListener, 7);
        let lines = lines(&mut watch, at(5), &heard);
        assert!(lines[0].ends_with(why), "{lines:?}");
    }
}

#[test]
fn refusals_are_told_if_they_are_many_and_about_the_peer() {
    let line = |to, why, frames| {
        let mut watch = watch();
        watch.note_refused(at(4), to, why, frames);
        lines(&mut watch, at(5), &view()).remove(0)
    };
    assert_eq!(
        line(Some(AT), Refusal::NoRoute, 20),
        "no session with station 2 for 5 s: cannot send frames to 192.0.2.2:4242 (20 of 20 \
         failed): no route to host"
    );
    assert_eq!(
        line(None, Refusal::TooLong, 15),
        "no session with station 2 for 5 s: cannot send frames to it (15 of 20 failed): frames \
         exceed the interface MTU; lower underlay.mtu"
    );
    assert_eq!(
        line(Some(AT), Refusal::NoListener, 3),
        "no session with station 2 for 5 s: network error for 192.0.2.2:4242: port unreachable, no \
         process listens on it (3 errors)"
    );
    for line in [line(Some(AT), Refusal::TooLong, 2), line(Some(ELSEWHERE), Refusal::NoRoute, 20)] {
        assert!(line.contains("no answer from 192.0.2.2:4242 to 20 frames"), "{line}");
    }
}

#[test]
fn a_peer_without_an_address_has_to_speak_first() {
    let lines = watch().check(at(5), &[view()], 20, |_| None);
    assert_eq!(
        lines[0].to_string(),
        "no session with station 2 for 5 s: nothing received from it, and its address is not \
         known: it must contact this station first; check for a firewall here"
    );
}

#[test]
fn modes_that_differ_are_told_at_once_and_every_minute() {
    let mut watch = watch();
    let differs = PeerView { crossing: Some(Crossing::Block), ..up() };
    let line = "cannot exchange packets with station 2: it uses block, this station window; set \
                the same coding.preset and matching roles on both";
    assert_eq!(lines(&mut watch, at(1), &differs), [line]);
    assert_eq!(watch.poll_timeout(), Some(at(61)));
    let said: usize = (2..=181).map(|s| lines(&mut watch, at(s), &differs).len()).sum();
    assert_eq!(said, 3);
    let again = lines(&mut watch, at(190), &up());
    assert_eq!(again, ["station 2 is reachable again after 190 s"]);
    assert_eq!((watch.poll_timeout(), watch.is_needed()), (None, false));
}

#[test]
fn each_line_is_about_what_was_seen_since_the_one_before() {
    let mut watch = watch();
    let other_key = Unopened::OtherKey { names: PEER };
    watch.note_rejected(AT, other_key, |_| true);
    assert!(lines(&mut watch, at(5), &view())[0].contains("1 frame from"));
    assert_eq!(lines(&mut watch, at(64), &view()), [""; 0]);
    let later = lines(&mut watch, at(65), &view());
    assert!(later[0].starts_with("no session with station 2 for 65 s: no answer from"));
}

/// A daemon that starts a moment before its peer is told once that nobody listens there.
#[test]
fn what_the_network_said_long_ago_is_no_cause() {
    let mut watch = watch();
    watch.note_refused(at(1), Some(AT), Refusal::NoListener, 3);
    let said = lines(&mut watch, at(5), &view());
    assert!(said[0].contains("no answer from 192.0.2.2:4242"), "{said:?}");
    watch.note_refused(at(30), Some(AT), Refusal::NoListener, 3);
    let said = lines(&mut watch, at(65), &view());
    assert!(said[0].contains("no answer from 192.0.2.2:4242"), "{said:?}");
    watch.note_refused(at(100), Some(AT), Refusal::NoListener, 3);
    let said = lines(&mut watch, at(125), &view());
    assert!(said[0].contains("no process listens on it (3 errors)"), "{said:?}");
}

#[test]
fn a_peer_that_falls_silent_is_watched_from_then_on() {
    let mut watch = watch();
    assert_eq!(lines(&mut watch, at(1), &up()), [""; 0]);
    watch.note_rejected(AT, Unopened::Foreign, |_| true);
    let silent = PeerView { is_silent: true, last_heard: Some(at(100)), ..up() };
    assert_eq!(lines(&mut watch, at(120), &silent), [""; 0]);
    watch.note_refused(at(123), Some(AT), Refusal::NoHost, 4);
    assert_eq!(
        lines(&mut watch, at(125), &silent),
        ["no session with station 2 for 25 s: network error for 192.0.2.2:4242: host unreachable \
             (4 errors)"]
    );
}

#[test]
fn a_peer_that_comes_and_goes_does_not_fill_the_log() {
    let mut watch = watch();
    let said: usize = (0..600)
        .map(|second| {
            let view = if second % 10 < 2 { up() } else { view() };
            lines(&mut watch, at(second), &view).len()
        })
        .sum();
    // At most a line and its end per REST.
    assert!(said <= 2 * 600 / REST.as_secs() as usize, "{said}");
}

#[test]
fn what_strangers_send_takes_no_place_from_the_peers() {
    let mut watch = watch();
    for _ in 0..3 {
        watch.note_rejected(AT, Unopened::OtherKey { names: PEER }, |at| at == AT);
        for names in 0..=255 {
            let what = Unopened::OtherKey { names: StationId(names) };
            watch.note_rejected(ELSEWHERE, what, |at| at == AT);
            watch.note_refused(at(4), Some(ELSEWHERE), Refusal::NoRoute, u64::MAX);
        }
    }
    assert_eq!(watch.seen.len(), SIGHTS_MAX);
    let lines = lines(&mut watch, at(5), &view());
    assert!(lines[0].contains("3 frames from 192.0.2.2:4242 failed"), "{lines:?}");
}

#[test]
fn keys_that_do_not_go_together_are_told_with_what_is_seen_of_them() {
    let public = crate::keys::PrivateKey::from_random([1; 32]).public();
    let names = PEER;
    for (what, expected) in [
        (Unopened::OtherSecret { names }, "it is configured with a pre-shared key"),
        (Unopened::HasKeys { names }, "and this station with a pre-shared key"),
        (Unopened::NotOurPublicKey { names }, "set peer.public_key there to this station's"),
        (Unopened::OtherPublicKey { names, public }, &public.to_string()),
        (Unopened::OtherPsk { names }, "peer.psk_file on both"),
        (Unopened::OtherStep { names }, "the same helper on both"),
    ] {
        let mut watch = watch();
        (0..3).for_each(|_| watch.note_rejected(ELSEWHERE, what, |at| at == AT));
        // Frames under a secret that this station has lost do not matter beside it.
        watch.note_rejected(ELSEWHERE, Unopened::Sealed, |at| at == AT);
        (0..9).for_each(|_| watch.note_rejected(AT, Unopened::OtherSecret { names }, |_| true));
        let lines = watch.check(Time::ZERO + PATIENCE, &[view()], 50, |_| Some(AT));
        let said = lines.first().map(ToString::to_string).unwrap_or_default();
        let place = if what == (Unopened::OtherSecret { names }) { AT } else { ELSEWHERE };
        assert!(said.contains(expected) && said.contains(place), "{said}");
    }
}
