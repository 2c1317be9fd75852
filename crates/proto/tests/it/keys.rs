//! Stations with keys of their own: sessions, secrets that follow each other, and who is kept out.

use core::time::Duration;

use corridor_base::rand::{RngExt, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::bounds::{FORMER_SECRET_AGE_MAX, REJECT_AFTER_TIME, REKEY_AFTER_TIME};
use corridor_proto::diagnosis::Unopened;
use corridor_proto::wire::{INITIATION_LEN, KeyExchange, RESPONSE_LEN, Step};
use corridor_proto::{
    Clocks, CodingParams, ConfigError, Event, FrameOutcome, Hub, HubConfig, Keys, LinkErrors,
    PeerKey, PrivateKey, Rejection, Role, Security, Station, StationConfig, StationId,
};

const A: StationId = StationId(1);
const B: StationId = StationId(2);
const C: StationId = StationId(3);
const DELAY: Duration = Duration::from_millis(5);
/// Nanoseconds since 1970, some day.
const RIGHT_NS: u64 = 1_700_000_000_000_000_000;

fn private(id: StationId) -> PrivateKey {
    PrivateKey::from_random([id.0 as u8; 32])
}

fn keys(me: StationId, peers: &[StationId]) -> Security {
    let peer = |&station| PeerKey { station, public: private(station).public(), psk: None };
    let peers = peers.iter().map(peer).collect();
    Security::Keys(Box::new(Keys { private: private(me), peers }))
}

fn config(me: StationId, peer: StationId, coding: CodingParams) -> StationConfig {
    StationConfig {
        id: me,
        role: Role::Endpoint { peer, helper: None },
        security: keys(me, &[peer]),
        ingress_packets: 1_000,
        coding,
        link_errors: LinkErrors::Measured,
        frame_len_max: 1_400,
        frame_len_min: 0,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    }
}

fn plain(me: StationId, peer: StationId) -> StationConfig {
    StationConfig { role: Role::Plain { peer }, ..config(me, peer, CodingParams::default()) }
}

fn station(config: StationConfig, seed: u8, now: Time) -> Station {
    Station::new(config, [seed; 32], now).expect("a sound configuration")
}

/// A packet that is told from all others.
fn packet(number: u32) -> Vec<u8> {
    let mut packet = vec![0x45; 100];
    packet[96..].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Two stations, and the two ways between them.
struct Net {
    now: Time,
    ends: [Station; 2],
    /// What is under way: when it arrives, where, and what it is.
    air: Vec<(Time, usize, Vec<u8>)>,
    loss_ratio: f64,
    /// How long a frame takes.
    delay: Duration,
    /// Longest time that it takes beyond that: later ones may overtake it.
    jitter: Duration,
    dice: Stream,
    /// Packets delivered at either end.
    delivered: [Vec<Vec<u8>>; 2],
    events: Vec<Event>,
    /// Everything that was sent, with who sent it.
    sent: Vec<(usize, Vec<u8>)>,
    /// Which frames never arrive, beside those that are lost by chance.
    stopped: fn(&[u8]) -> bool,
}

impl Net {
    fn new(configs: [StationConfig; 2]) -> Self {
        let [a, b] = configs;
        Net {
            now: Time::ZERO,
            ends: [station(a, 1, Time::ZERO), station(b, 2, Time::ZERO)],
            air: Vec::new(),
            loss_ratio: 0.0,
            delay: DELAY,
            jitter: Duration::ZERO,
            dice: Stream::from_seed([9; 32]),
            delivered: [Vec::new(), Vec::new()],
            events: Vec::new(),
            sent: Vec::new(),
            stopped: |_| false,
        }
    }

    /// One of the two begins anew, by a wall clock that was there when this time was zero.
    fn restart(&mut self, me: StationId, peer: StationId, entropy: u8, zero_ns: u64) {
        let clocks = Clocks { now: self.now, wall_ns: zero_ns + self.now.as_nanos() };
        let station = Station::new(plain(me, peer), [entropy; 32], clocks);
        self.ends[usize::from(me.0) - 1] = station.expect("a sound configuration");
    }

    /// One millisecond.
    fn step(&mut self) {
        self.now += Duration::from_millis(1);
        let now = self.now;
        let (due, later) = core::mem::take(&mut self.air).into_iter().partition(|it| it.0 <= now);
        self.air = later;
        let due: Vec<_> = due;
        for (_, to, frame) in due {
            self.ends[to].handle_frame(now, &frame);
        }
        for (index, end) in self.ends.iter_mut().enumerate() {
            end.handle_timeout(now);
            while let Some(transmit) = end.poll_transmit(now) {
                let frame = transmit.frame.to_vec();
                let is_lost = self.dice.random::<f64>() < self.loss_ratio;
                if !is_lost && !(self.stopped)(&frame) {
                    let at = now + self.delay + self.jitter.mul_f64(self.dice.random());
                    self.air.push((at, 1 - index, frame.clone()));
                }
                self.sent.push((index, frame));
            }
            self.delivered[index]
                .extend(core::iter::from_fn(|| end.poll_packet().map(|it| it.to_vec())));
            self.events.extend(core::iter::from_fn(|| end.poll_event()));
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.sent.clear();
            self.step();
        }
    }

    fn is_up(&self) -> bool {
        self.ends[0].is_up(B) && self.ends[1].is_up(A)
    }

    fn agreed(&self) -> u64 {
        self.ends.iter().map(|end| end.stats().secrets_agreed).sum()
    }

    /// Runs until something was sent; the last of it.
    fn wait_for(&mut self, is_it: impl Fn(usize, &[u8]) -> bool) -> Vec<u8> {
        for _ in 0..400_000 {
            self.sent.clear();
            self.step();
            if let Some((_, frame)) = self.sent.iter().rev().find(|(by, frame)| is_it(*by, frame)) {
                return frame.clone();
            }
        }
        panic!("it never came");
    }
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
        let mut net = Net::new([mode(A, B), mode(B, A)]);
        net.run(Duration::from_millis(500));
        assert!(net.is_up());
        net.ends[0].handle_packet(net.now, &packet(7));
        net.run(Duration::from_millis(500));
        assert_eq!(net.delivered, [vec![], vec![packet(7)]], "{:?}", net.ends[0].config());
        let refused = |end: &Station| end.stats().frames_rejected;
        assert_eq!(net.ends.each_ref().map(refused), [0, 0]);
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
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    net.run(Duration::from_millis(500));
    let mut numbers = 0..;
    let mut given = [Vec::new(), Vec::new()];
    while net.agreed() < 5 {
        for (end, given) in given.iter_mut().enumerate() {
            let packet = packet(numbers.next().unwrap());
            net.ends[end].handle_packet(net.now, &packet);
            given.push(packet);
        }
        net.run(Duration::from_millis(2));
    }
    net.run(Duration::from_secs(1));
    let [at_a, at_b] = given;
    assert_eq!(net.delivered, [at_b, at_a]);
    for end in &net.ends {
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
        Net::new([config(A, B, CodingParams::window()), config(B, A, CodingParams::window())]);
    net.loss_ratio = 0.3;
    net.run(Duration::from_secs(5));
    assert!(net.is_up());
    let first = net.agreed();
    let mut given = Vec::new();
    while net.agreed() < first + 3 {
        given.push(packet(given.len() as u32));
        net.ends[0].handle_packet(net.now, given.last().unwrap());
        net.run(Duration::from_millis(5));
        assert!(net.is_up(), "the session goes on");
    }
    net.run(Duration::from_secs(2));
    let [_, arrived] = &net.delivered;
    assert_eq!((arrived.len(), arrived), (given.len(), &given));
    assert!(net.ends.iter().all(|end| end.stats().frames_rejected == 0));
}

#[test]
fn an_old_secret_opens_nothing_when_the_next_is_in_use() {
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    net.ends[0].handle_packet(net.now, &packet(1));
    let held_back = net.wait_for(|by, frame| by == 0 && frame.len() > 100 && !is_initiation(frame));
    let late = held_back.clone();
    net.run(REKEY_AFTER_TIME + FORMER_SECRET_AGE_MAX + Duration::from_secs(1));
    assert_eq!(net.agreed(), 3, "two that crossed, and their successor");
    let outcome = net.ends[1].handle_frame(net.now, &late);
    assert_eq!(outcome, FrameOutcome::Rejected(Rejection::NotAuthentic));
    assert!(net.is_up());
}

#[test]
fn a_station_that_restarts_is_found_again_even_if_its_clock_went_back() {
    for zero_ns in [2_000_000_000_000, 5] {
        let mut net = Net::new([plain(A, B), plain(B, A)]);
        net.run(Duration::from_secs(30));
        net.restart(B, A, 77, zero_ns);
        let was = net.now;
        while !net.is_up() || net.ends[1].stats().secrets_agreed == 0 {
            net.run(Duration::from_millis(10));
            assert!(net.now - was < Duration::from_secs(1), "clock {zero_ns}");
        }
        net.ends[0].handle_packet(net.now, &packet(3));
        net.run(Duration::from_secs(1));
        assert_eq!(net.delivered[1], [packet(3)]);
        assert!(net.events.contains(&Event::SessionUp { peer: B, restarted: true }));
    }
}

/// As a radio without a battery for its clock does, until NTP has set it.
#[test]
fn who_cannot_be_called_is_heard_as_soon_as_its_clock_was_set() {
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    net.ends[1].set_clock(Clocks { now: net.now, wall_ns: RIGHT_NS });
    net.run(Duration::from_secs(30));
    assert!(net.is_up());
    // Somewhere else, where nobody knows of.
    net.restart(B, A, 77, 0);
    net.stopped = |frame| {
        KeyExchange::parse(frame).is_some_and(|it| it.sender == A && it.step == Step::Initiation)
    };
    net.run(Duration::from_secs(60));
    assert!(!net.ends[1].is_up(A) && net.ends[1].stats().secrets_agreed == 0);
    let clocks = Clocks { now: net.now, wall_ns: RIGHT_NS + net.now.as_nanos() };
    net.ends[1].set_clock(clocks);
    net.run(Duration::from_secs(1));
    assert!(net.is_up(), "what it says is newer than what was heard before");
    net.ends[0].handle_packet(net.now, &packet(3));
    net.run(Duration::from_secs(1));
    assert_eq!(net.delivered[1], [packet(3)]);
}

/// What a station has said is never older than what it said before in the same run.
#[test]
fn a_clock_that_is_set_while_a_pair_talks_costs_nothing() {
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    net.events.clear();
    for wall_ns in [RIGHT_NS, 5, 2 * RIGHT_NS, RIGHT_NS] {
        let agreed = net.agreed();
        for index in 0..2 {
            net.ends[index].set_clock(Clocks { now: net.now, wall_ns });
        }
        net.run(REKEY_AFTER_TIME + Duration::from_secs(20));
        assert!(net.is_up() && net.agreed() > agreed, "clock {wall_ns}");
    }
    assert_eq!(net.events, []);
    assert!(net.ends.iter().all(|end| end.stats().frames_rejected == 0));
}

#[test]
fn after_a_long_silence_the_secret_is_gone_and_the_session_goes_on_under_another() {
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    net.stopped = |_| true;
    net.run(REJECT_AFTER_TIME + Duration::from_secs(1));
    assert!(!net.ends[0].is_up(B) && !net.ends[1].is_up(A));
    net.events.clear();
    net.stopped = |_| false;
    net.run(Duration::from_secs(2));
    assert!(net.is_up());
    net.ends[0].handle_packet(net.now, &packet(3));
    net.run(Duration::from_secs(1));
    assert_eq!(net.delivered[1], [packet(3)]);
    let restarted = |event: &&Event| matches!(event, Event::SessionUp { .. });
    assert_eq!(net.events.iter().find(restarted), None, "nobody has restarted");
}

#[test]
fn a_lost_second_message_delays_and_does_no_more() {
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    net.stopped = |frame| frame.len() == RESPONSE_LEN;
    net.run(Duration::from_secs(3));
    assert!(!net.is_up() && net.agreed() == 0);
    net.stopped = |_| false;
    net.run(Duration::from_millis(500));
    assert!(net.is_up());
}

#[test]
fn what_is_recorded_brings_nothing_back() {
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    let mut recorded = Vec::new();
    for _ in 0..2_000 {
        net.step();
        recorded.extend(net.sent.drain(..).filter(|(by, _)| *by == 0).map(|(_, frame)| frame));
    }
    assert!(recorded.iter().any(|frame| is_initiation(frame)));
    for frame in &recorded {
        let outcome = net.ends[1].handle_frame(net.now, frame);
        let is_refused = matches!(outcome, FrameOutcome::Rejected(_));
        assert!(is_refused, "{outcome:?} for {} bytes", frame.len());
    }
    // A station that restarted takes an initiation for one, and nothing comes of it.
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
        let public = self::private(peer).public();
        let peers = vec![PeerKey { station: peer, public, psk: None }];
        let keys = Keys { private, peers };
        StationConfig { security: Security::Keys(Box::new(keys)), ..plain(me, peer) }
    };
    // B has another private key than A expects.
    let other = PrivateKey::from_random([99; 32]);
    let mut net = Net::new([plain(A, B), stranger(B, A, other.clone())]);
    let initiation = net.wait_for(|by, frame| by == 1 && is_initiation(frame));
    let public = other.public();
    let seen = net.ends[0].examine(&initiation);
    assert_eq!(seen, Unopened::OtherPublicKey { names: B, public });
    let initiation = net.wait_for(|by, frame| by == 0 && is_initiation(frame));
    assert_eq!(net.ends[1].examine(&initiation), Unopened::NotOurPublicKey { names: A });
    net.run(Duration::from_secs(5));
    assert!(!net.is_up() && net.agreed() == 0);

    // One of them has a shared secret.
    let shared = StationConfig { security: [7; 32].into(), ..plain(B, A) };
    let mut net = Net::new([plain(A, B), shared]);
    let hello = net.wait_for(|by, _| by == 1);
    assert_eq!(net.ends[0].examine(&hello), Unopened::OtherSecret { names: B });
    let initiation = net.wait_for(|by, _| by == 0);
    assert_eq!(net.ends[1].examine(&initiation), Unopened::HasKeys { names: A });
    net.run(Duration::from_secs(5));
    assert!(!net.is_up());
}

#[test]
fn forged_messages_of_each_length_leave_no_trace() {
    let mut net = Net::new([plain(A, B), plain(B, A)]);
    net.run(Duration::from_secs(1));
    let initiation =
        station(plain(A, B), 3, net.now).poll_transmit(net.now).unwrap().frame.to_vec();
    for len in 0..=INITIATION_LEN + 1 {
        for fill in [0x00, 0xFF] {
            let mut frame = initiation.clone();
            frame.resize(len, fill);
            frame.iter_mut().skip(INITIATION_LEN / 2).for_each(|byte| *byte ^= fill | 1);
            let outcome = net.ends[1].handle_frame(net.now, &frame);
            assert!(matches!(outcome, FrameOutcome::Rejected(_)), "{len} bytes: {outcome:?}");
            net.ends[1].examine(&frame);
        }
    }
    net.run(Duration::from_secs(1));
    assert!(net.is_up() && net.agreed() == 2);
}

#[test]
fn whatever_is_lost_overtaken_or_restarted_the_two_find_each_other() {
    for seed in 0..24 {
        let mut net = Net::new([plain(A, B), plain(B, A)]);
        net.dice = Stream::from_seed([seed; 32]);
        for round in 0..6 {
            net.loss_ratio = net.dice.random::<f64>() * 0.9;
            net.jitter = Duration::from_millis(net.dice.random_range(0..50));
            let quiet = net.dice.random_range(0..4) == 0;
            net.stopped = if quiet { |_| true } else { |_| false };
            if net.dice.random_range(0..3) == 0 {
                let (me, peer) = if net.dice.random() { (A, B) } else { (B, A) };
                let clock = net.dice.random_range(0..1_000_000_000_000);
                net.restart(me, peer, 100 + round, clock);
            }
            let span = Duration::from_millis(net.dice.random_range(0..100_000));
            net.run(span);
        }
        net.loss_ratio = 0.0;
        net.stopped = |_| false;
        // The longest that one waits who does not know that the other has restarted.
        net.run(Duration::from_secs(17));
        assert!(net.is_up(), "seed {seed}");
        net.delivered = Default::default();
        let [to_b, to_a] = [packet(1), packet(2)];
        net.ends[0].handle_packet(net.now, &to_b);
        net.ends[1].handle_packet(net.now, &to_a);
        net.run(Duration::from_secs(1));
        assert_eq!(net.delivered, [vec![to_a], vec![to_b]], "seed {seed}");
    }
}

/// Both begin at once, and what they say crosses.
#[test]
fn two_that_begin_at_once_hear_each_other_however_long_the_path_is() {
    let ms = Duration::from_millis;
    let even = [5, 600, 1_050, 1_200, 1_500, 2_000].map(|delay| (ms(delay), ms(0)));
    let uneven = [1_000, 2_000, 3_000].map(|jitter| (ms(1), ms(jitter)));
    let paths = even.into_iter().chain(uneven.into_iter().cycle().take(30));
    for (seed, (delay, jitter)) in (0..).zip(paths) {
        let mut net = Net::new([plain(A, B), plain(B, A)]);
        (net.delay, net.jitter) = (delay, jitter);
        net.dice = Stream::from_seed([seed; 32]);
        net.run(Duration::from_secs(30));
        net.delivered = Default::default();
        let [to_b, to_a] = [packet(1), packet(2)];
        net.ends[0].handle_packet(net.now, &to_b);
        net.ends[1].handle_packet(net.now, &to_a);
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
    let mut hub = Hub::new(hub, [1; 32], Time::ZERO).unwrap();
    // The third says that it is C, with B's key.
    let thief = keys(B, &[A]);
    let mut others = [
        station(plain(B, A), 2, Time::ZERO),
        station(StationConfig { security: thief, ..plain(C, A) }, 3, Time::ZERO),
    ];
    for ms in 0..3_000 {
        let now = Time::from_millis(ms);
        hub.handle_timeout(now);
        while let Some(transmit) = hub.poll_transmit(now) {
            let frame = transmit.frame.to_vec();
            for other in &mut others {
                other.handle_frame(now, &frame);
            }
        }
        for other in &mut others {
            other.handle_timeout(now);
            while let Some(transmit) = other.poll_transmit(now) {
                hub.handle_frame(now, transmit.frame);
            }
        }
    }
    assert_eq!([B, C].map(|id| hub.station(id).unwrap().is_up(id)), [true, false]);
    assert_eq!(others.each_ref().map(|other| other.is_up(A)), [true, false]);
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
    let mut now = Time::ZERO;
    let right = |now: Time| Clocks { now, wall_ns: RIGHT_NS + now.as_nanos() };
    let hub = |clocks| Hub::new(config(&neighbours[..1]), [1; 32], clocks).unwrap();
    let mut others =
        [B, C].map(|id| Station::new(plain(id, A), [id.0 as u8; 32], right(now)).unwrap());
    // What others say first does not reach it: it has to be believed.
    let run = |hub: &mut Hub, others: &mut [Station; 2], now: &mut Time, seconds: u64| {
        for _ in 0..1_000 * seconds {
            *now += Duration::from_millis(1);
            hub.handle_timeout(*now);
            while let Some(transmit) = hub.poll_transmit(*now) {
                others.iter_mut().for_each(|other| {
                    other.handle_frame(*now, transmit.frame);
                });
            }
            for other in others.iter_mut() {
                other.handle_timeout(*now);
                while let Some(transmit) = other.poll_transmit(*now) {
                    if !is_initiation(transmit.frame) {
                        hub.handle_frame(*now, transmit.frame);
                    }
                }
            }
        }
    };
    let is_up = |hub: &Hub, id| hub.station(id).is_some_and(|station| station.is_up(id));
    let mut first = hub(right(now));
    first.set_neighbours(&config(&neighbours), [2; 32], now).unwrap();
    run(&mut first, &mut others, &mut now, 3);
    assert!([B, C].into_iter().all(|id| is_up(&first, id)));
    // It begins anew before its clock is right, and one neighbour comes later.
    let mut late = hub(now.into());
    run(&mut late, &mut others, &mut now, 200);
    assert!(!is_up(&late, B));
    late.set_clock(right(now));
    late.set_neighbours(&config(&neighbours), [3; 32], now).unwrap();
    run(&mut late, &mut others, &mut now, 3);
    assert!([B, C].into_iter().all(|id| is_up(&late, id)));
}
