//! Stations with key pairs: sessions, successive secrets, and attackers that are kept out.

use core::time::Duration;

use corridor_base::rand::{RngExt, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::bounds::{FORMER_SECRET_AGE_MAX, REJECT_AFTER_TIME, REKEY_AFTER_TIME};
use corridor_proto::diagnosis::Unopened;
use corridor_proto::wire::{INITIATION_LEN, KeyExchange, RESPONSE_LEN, Step};
use corridor_proto::{
    AnyStation, Clocks, CodingParams, ConfigError, Event, FrameOutcome, Hub, HubConfig, Keys,
    PeerKey, PrivateKey, Rejection, Role, Security, Station, StationConfig, StationId,
};
use corridor_testbed::config::{self as testbed, clocks, keys};
use corridor_testbed::{Air, Bed, Passage};

const A: StationId = StationId(1);
const B: StationId = StationId(2);
const C: StationId = StationId(3);
const DELAY: Duration = Duration::from_millis(5);
/// Nanoseconds since 1970, on some day.
const RIGHT_NS: u64 = 1_700_000_000_000_000_000;

fn config(me: StationId, peer: StationId, coding: CodingParams) -> StationConfig {
    let role = Role::Endpoint { peer, helper: None };
    let security = keys(me, &[peer]);
    let (ingress_packets, frame_len_max) = (1_000, 1_400);
    StationConfig { security, coding, ingress_packets, frame_len_max, ..testbed::config(me, role) }
}

fn plain(me: StationId, peer: StationId) -> StationConfig {
    StationConfig { role: Role::Plain { peer }, ..config(me, peer, CodingParams::default()) }
}

fn station(config: StationConfig, seed: u8, now: Time) -> Station {
    Station::new(config, [seed; 32], now).expect("a sound configuration")
}

/// A packet distinct from all others.
fn packet(number: u32) -> Vec<u8> {
    let mut packet = vec![0x45; 100];
    packet[96..].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Two stations, and the path between them.
fn joined(configs: [StationConfig; 2]) -> Bed<Air> {
    let [a, b] = configs;
    Bed::new([station(a, 1, Time::ZERO), station(b, 2, Time::ZERO)], Air::new(DELAY))
}

/// One of the two restarts; `clock`: what its wall clock showed when this time was zero.
fn restart(net: &mut Bed<Air>, me: StationId, peer: StationId, entropy: u8, zero_ns: u64) {
    let start = clocks(zero_ns, net.now);
    let station = Station::new(plain(me, peer), [entropy; 32], start);
    net.start(usize::from(me.0) - 1, station.expect("a sound configuration"));
}

/// Runs until such a frame was sent; returns the last one.
fn wait_for(net: &mut Bed<Air>, is_it: impl Fn(usize, &[u8]) -> bool) -> Vec<u8> {
    for _ in 0..400_000 {
        net.world.log = Some(Vec::new());
        net.run(Duration::from_millis(1));
        let sent = net.world.log.take().unwrap_or_default();
        if let Some(it) = sent.into_iter().rev().find(|it| is_it(it.from, &it.frame)) {
            return it.frame;
        }
    }
    panic!("it never came");
}

fn is_initiation(frame: &[u8]) -> bool {
    KeyExchange::parse(frame).is_some_and(|message| message.step == Step::Initiation)
}

#[test]
fn every_mode_of_a_pair_crosses_under_keys() {
    let window = |me, peer| config(me, peer, CodingParams::window());
    let block = |me, peer| config(me, peer, CodingParams::default());
    let tcp_nc = |me, peer| config(me, peer, CodingParams::tcp_nc());
    let modes: [fn(StationId, StationId) -> StationConfig; 4] = [window, block, tcp_nc, plain];
    for mode in modes {
        let mut net = joined([mode(A, B), mode(B, A)]);
        net.run(Duration::from_millis(500));
        assert!(net.all_up());
        net.put(0, &packet(7));
        net.run(Duration::from_millis(500));
        assert_eq!(net.delivered, [vec![], vec![packet(7)]], "{:?}", net[0].config());
        let refused = |at: usize| net[at].stats().frames_rejected;
        assert_eq!([refused(0), refused(1)], [0, 0]);
    }
}

#[test]
fn each_peer_needs_a_public_key_and_a_helper_is_one() {
    let expect = |config: StationConfig| {
        let refused: ConfigError = Station::new(config, [1; 32], Time::ZERO).err().unwrap();
        assert_eq!((refused.field, &*refused.given), ("peer.public_key", "0"));
    };
    let pair = config(A, B, CodingParams::default());
    expect(StationConfig { role: Role::Helper { between: (B, C) }, ..pair.clone() });
    let role = Role::Endpoint { peer: B, helper: Some(C) };
    expect(StationConfig { role, ..pair.clone() });
    expect(StationConfig { security: keys(A, &[C]), ..pair });
}

#[test]
fn no_packet_is_lost_by_secrets_that_follow_each_other() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net.run(Duration::from_millis(500));
    let mut numbers = 0..;
    let mut given = [Vec::new(), Vec::new()];
    while net.agreed() < 5 {
        for (end, given) in given.iter_mut().enumerate() {
            let packet = packet(numbers.next().unwrap());
            net.put(end, &packet);
            given.push(packet);
        }
        net.run(Duration::from_millis(2));
    }
    net.run(Duration::from_secs(1));
    let [at_a, at_b] = given;
    assert_eq!(net.delivered, [at_b, at_a]);
    for end in net.stations() {
        let stats = end.stats();
        assert_eq!((stats.frames_rejected, stats.frames_unknown_session), (0, 0));
        assert_eq!(stats.sessions_accepted, 1);
        println!("{} messages heard again", stats.frames_replayed);
        assert!(stats.frames_replayed < 10);
    }
}

#[test]
fn a_rekey_under_losses_and_load_costs_no_symbol() {
    let mut net =
        joined([config(A, B, CodingParams::window()), config(B, A, CodingParams::window())]);
    net.world.loss_ratio = 0.3;
    net.run(Duration::from_secs(5));
    assert!(net.all_up());
    let first = net.agreed();
    let mut given = Vec::new();
    while net.agreed() < first + 3 {
        given.push(packet(given.len() as u32));
        net.put(0, given.last().unwrap());
        net.run(Duration::from_millis(5));
        assert!(net.all_up(), "the session goes on");
    }
    net.run(Duration::from_secs(2));
    let arrived = &net.delivered[1];
    assert_eq!((arrived.len(), arrived), (given.len(), &given));
    assert!(net.stations().all(|end| end.stats().frames_rejected == 0));
}

#[test]
fn an_old_secret_opens_nothing_when_the_next_is_in_use() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    net.put(0, &packet(1));
    let held_back =
        wait_for(&mut net, |by, frame| by == 0 && frame.len() > 100 && !is_initiation(frame));
    let late = held_back.clone();
    net.run(REKEY_AFTER_TIME + FORMER_SECRET_AGE_MAX + Duration::from_secs(1));
    assert_eq!(net.agreed(), 3, "two that crossed, and their successor");
    let outcome = net.hear(1, &late);
    assert_eq!(outcome, FrameOutcome::Rejected(Rejection::NotAuthentic));
    assert!(net.all_up());
}

#[test]
fn a_station_that_restarts_is_found_again_even_if_its_clock_went_back() {
    for zero_ns in [2_000_000_000_000, 5] {
        let mut net = joined([plain(A, B), plain(B, A)]);
        net.run(Duration::from_secs(30));
        restart(&mut net, B, A, 77, zero_ns);
        let was = net.now;
        while !net.all_up() || net[1].stats().secrets_agreed == 0 {
            net.run(Duration::from_millis(10));
            assert!(net.now - was < Duration::from_secs(1), "clock {zero_ns}");
        }
        net.put(0, &packet(3));
        net.run(Duration::from_secs(1));
        assert_eq!(net.delivered[1], [packet(3)]);
        assert!(net.events.contains(&(0, Event::SessionUp { peer: B, restarted: true })));
    }
}

/// As on a station without a battery-backed clock, until NTP has set it.
#[test]
fn who_cannot_be_called_is_heard_as_soon_as_its_clock_was_set() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net[1].set_clock(clocks(RIGHT_NS, Time::ZERO));
    net.run(Duration::from_secs(30));
    assert!(net.all_up());
    // At an address that nobody knows.
    restart(&mut net, B, A, 77, 0);
    net.world.passes = Box::new(|it| it.from != 0 || !is_initiation(it.frame));
    net.run(Duration::from_secs(60));
    assert!(!net[1].is_up(A) && net[1].stats().secrets_agreed == 0);
    let now = net.now;
    net[1].set_clock(clocks(RIGHT_NS, now));
    net.run(Duration::from_secs(1));
    assert!(net.all_up(), "what it says is newer than what was heard before");
    net.put(0, &packet(3));
    net.run(Duration::from_secs(1));
    assert_eq!(net.delivered[1], [packet(3)]);
}

/// No initiation of a station is older than an earlier one of the same run.
#[test]
fn a_clock_that_is_set_while_a_pair_talks_costs_nothing() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    net.events.clear();
    for wall_ns in [RIGHT_NS, 5, 2 * RIGHT_NS, RIGHT_NS] {
        let (agreed, now) = (net.agreed(), net.now);
        net.stations_mut().for_each(|end| end.set_clock(Clocks { now, wall_ns }));
        net.run(REKEY_AFTER_TIME + Duration::from_secs(20));
        assert!(net.all_up() && net.agreed() > agreed, "clock {wall_ns}");
    }
    assert_eq!(net.events, []);
    assert!(net.stations().all(|end| end.stats().frames_rejected == 0));
}

#[test]
fn after_a_long_silence_the_secret_is_gone_and_the_session_goes_on_under_another() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    net.world.passes = Box::new(|_| false);
    net.run(REJECT_AFTER_TIME + Duration::from_secs(1));
    assert!(!net[0].is_up(B) && !net[1].is_up(A));
    net.events.clear();
    net.world.passes = Box::new(|_| true);
    net.run(Duration::from_secs(2));
    assert!(net.all_up());
    net.put(0, &packet(3));
    net.run(Duration::from_secs(1));
    assert_eq!(net.delivered[1], [packet(3)]);
    let restarted = |said: &&(usize, Event)| matches!(said.1, Event::SessionUp { .. });
    assert_eq!(net.events.iter().find(restarted), None, "nobody has restarted");
}

#[test]
fn a_lost_second_message_delays_and_does_no_more() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net.world.passes = Box::new(|it| it.frame.len() != RESPONSE_LEN);
    net.run(Duration::from_secs(3));
    assert!(!net.all_up() && net.agreed() == 0);
    net.world.passes = Box::new(|_| true);
    net.run(Duration::from_millis(500));
    assert!(net.all_up());
}

#[test]
fn what_is_recorded_brings_nothing_back() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net.world.log = Some(Vec::new());
    net.run(Duration::from_secs(2));
    let sent = net.world.log.take().unwrap_or_default();
    let of_a = sent.into_iter().filter(|it| it.from == 0);
    let recorded: Vec<Vec<u8>> = of_a.map(|it| it.frame).collect();
    assert!(recorded.iter().any(|frame| is_initiation(frame)));
    for frame in &recorded {
        let outcome = net.hear(1, frame);
        let is_refused = matches!(outcome, FrameOutcome::Rejected(_));
        assert!(is_refused, "{outcome:?} for {} bytes", frame.len());
    }
    // To a restarted station it looks like an initiation, but it has no effect.
    let mut restarted = station(plain(B, A), 50, net.now);
    for frame in &recorded {
        restarted.handle_frame(net.now, frame);
        restarted.handle_timeout(net.now);
        while restarted.poll_transmit(net.now).is_some() {}
    }
    assert!(!restarted.is_up(A) && restarted.stats().sessions_accepted == 0);
}

#[test]
fn wrong_keys_are_kept_out_and_shown() {
    let stranger = |me, peer, private: PrivateKey| {
        let public = testbed::private(peer).public();
        let peers = vec![PeerKey { station: peer, public, psk: None }];
        let keys = Keys { private, peers };
        StationConfig { security: Security::Keys(Box::new(keys)), ..plain(me, peer) }
    };
    // B has another private key than the one that A expects.
    let other = PrivateKey::from_random([99; 32]);
    let mut net = joined([plain(A, B), stranger(B, A, other.clone())]);
    let initiation = wait_for(&mut net, |by, frame| by == 1 && is_initiation(frame));
    let public = other.public();
    let seen = net[0].examine(&initiation);
    assert_eq!(seen, Unopened::OtherPublicKey { names: B, public });
    let initiation = wait_for(&mut net, |by, frame| by == 0 && is_initiation(frame));
    assert_eq!(net[1].examine(&initiation), Unopened::NotOurPublicKey { names: A });
    net.run(Duration::from_secs(5));
    assert!(!net.all_up() && net.agreed() == 0);

    // One of them has a shared secret.
    let shared = StationConfig { security: [7; 32].into(), ..plain(B, A) };
    let mut net = joined([plain(A, B), shared]);
    let hello = wait_for(&mut net, |by, _| by == 1);
    assert_eq!(net[0].examine(&hello), Unopened::OtherSecret { names: B });
    let initiation = wait_for(&mut net, |by, _| by == 0);
    assert_eq!(net[1].examine(&initiation), Unopened::HasKeys { names: A });
    net.run(Duration::from_secs(5));
    assert!(!net.all_up());
}

#[test]
fn forged_messages_of_each_length_leave_no_trace() {
    let mut net = joined([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    let initiation =
        station(plain(A, B), 3, net.now).poll_transmit(net.now).unwrap().frame.to_vec();
    for len in 0..=INITIATION_LEN + 1 {
        for fill in [0x00, 0xFF] {
            let mut frame = initiation.clone();
            frame.resize(len, fill);
            frame.iter_mut().skip(INITIATION_LEN / 2).for_each(|byte| *byte ^= fill | 1);
            let outcome = net.hear(1, &frame);
            assert!(matches!(outcome, FrameOutcome::Rejected(_)), "{len} bytes: {outcome:?}");
            net[1].examine(&frame);
        }
    }
    net.run(Duration::from_secs(1));
    assert!(net.all_up() && net.agreed() == 2);
}

#[test]
fn whatever_is_lost_overtaken_or_restarted_the_two_find_each_other() {
    for seed in 0..24 {
        let mut net = joined([plain(A, B), plain(B, A)]);
        net.world.dice = Stream::from_seed([seed; 32]);
        for round in 0..6 {
            net.world.loss_ratio = net.world.dice.random::<f64>() * 0.9;
            net.world.jitter = Duration::from_millis(net.world.dice.random_range(0..50));
            let quiet = net.world.dice.random_range(0..4) == 0;
            net.world.passes = Box::new(move |_| !quiet);
            if net.world.dice.random_range(0..3) == 0 {
                let (me, peer) = if net.world.dice.random() { (A, B) } else { (B, A) };
                let clock = net.world.dice.random_range(0..1_000_000_000_000);
                restart(&mut net, me, peer, 100 + round, clock);
            }
            let span = Duration::from_millis(net.world.dice.random_range(0..100_000));
            net.run(span);
        }
        net.world.loss_ratio = 0.0;
        net.world.passes = Box::new(|_| true);
        // The longest wait of a station that does not know that the other has restarted.
        net.run(Duration::from_secs(17));
        assert!(net.all_up(), "seed {seed}");
        net.forget();
        let [to_b, to_a] = [packet(1), packet(2)];
        net.put(0, &to_b);
        net.put(1, &to_a);
        net.run(Duration::from_secs(1));
        assert_eq!(net.delivered, [vec![to_a], vec![to_b]], "seed {seed}");
    }
}

/// Both begin at once, and their messages cross.
#[test]
fn two_that_begin_at_once_hear_each_other_however_long_the_path_is() {
    let ms = Duration::from_millis;
    let even = [5, 600, 1_050, 1_200, 1_500, 2_000].map(|delay| (ms(delay), ms(0)));
    let uneven = [1_000, 2_000, 3_000].map(|jitter| (ms(1), ms(jitter)));
    let paths = even.into_iter().chain(uneven.into_iter().cycle().take(30));
    for (seed, (delay, jitter)) in (0..).zip(paths) {
        let mut net = joined([plain(A, B), plain(B, A)]);
        (net.world.delay, net.world.jitter) = (delay, jitter);
        net.world.dice = Stream::from_seed([seed; 32]);
        net.run(Duration::from_secs(30));
        net.forget();
        let [to_b, to_a] = [packet(1), packet(2)];
        net.put(0, &to_b);
        net.put(1, &to_a);
        net.run(delay + jitter + ms(100));
        assert_eq!(
            net.delivered,
            [vec![to_a], vec![to_b]],
            "{delay:?} to {jitter:?} more, seed {seed}"
        );
    }
}

#[test]
fn a_hub_has_a_secret_with_each_neighbour_and_takes_no_other_key_for_it() {
    let neighbours = [B, C].map(|id| (id, vec![format!("10.9.0.{}/32", id.0).parse().unwrap()]));
    let hub = HubConfig {
        station: StationConfig { security: keys(A, &[B, C]), ..plain(A, B) },
        neighbours: neighbours.to_vec(),
        own: vec!["10.9.0.1".parse().unwrap()],
        one_channel: false,
    };
    let hub = Hub::new(hub, [1; 32], Time::ZERO).unwrap();
    // The third one claims to be C, with B's key.
    let thief = StationConfig { security: keys(B, &[A]), ..plain(C, A) };
    let others = [station(plain(B, A), 2, Time::ZERO), station(thief, 3, Time::ZERO)];
    let stations = [hub.into()].into_iter().chain(others.map(AnyStation::from));
    let mut star = Bed::new(stations, Air::new(Duration::ZERO));
    star.run(Duration::from_secs(3));
    assert_eq!([B, C].map(|id| star[0].is_up(id)), [true, false]);
    assert_eq!([1, 2].map(|at| star[at].is_up(A)), [true, false]);
}

#[test]
fn a_hub_has_its_neighbours_follow_its_clock_those_that_come_too() {
    let neighbours = [B, C].map(|id| (id, vec![format!("10.9.0.{}/32", id.0).parse().unwrap()]));
    let config = |neighbours: &[(StationId, Vec<_>)]| HubConfig {
        station: StationConfig { security: keys(A, &[B, C]), ..plain(A, B) },
        neighbours: neighbours.to_vec(),
        own: vec!["10.9.0.1".parse().unwrap()],
        one_channel: false,
    };
    let hub = |clocks| Hub::new(config(&neighbours[..1]), [1; 32], clocks).unwrap();
    let right = clocks(RIGHT_NS, Time::ZERO);
    let others = [B, C].map(|id| Station::new(plain(id, A), [id.0 as u8; 32], right).unwrap());
    let stations = [hub(right).into()].into_iter().chain(others.map(AnyStation::from));
    // What the others send first does not reach it, so that it has to be believed.
    let passes = |it: &Passage<'_>| it.from == 0 || it.to == 0 && !is_initiation(it.frame);
    let mut star = Bed::new(stations, Air::with(Duration::ZERO, passes));
    let are_up = |star: &Bed<Air>| [1, 2].map(|at| star.are_up(0, at));
    star[0].set_neighbours(&config(&neighbours), [2; 32], Time::ZERO).unwrap();
    star.run(Duration::from_secs(3));
    assert_eq!(are_up(&star), [true, true]);
    // It restarts before its clock is right, and one neighbour comes later.
    star.start(0, hub(star.now.into()));
    star.run(Duration::from_secs(200));
    assert_eq!(are_up(&star), [false, false]);
    let now = star.now;
    star[0].set_clock(clocks(RIGHT_NS, now));
    star[0].set_neighbours(&config(&neighbours), [3; 32], now).unwrap();
    star.run(Duration::from_secs(3));
    assert_eq!(are_up(&star), [true, true]);
}
