//! A hub and its neighbours on separate links: who gets what, and who takes capacity from whom.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_packet::checksum;
use corridor_proto::bounds::INGRESS_PACKETS_LANE;
use corridor_proto::wire::VERSION;
use corridor_proto::{
    AnyStation, CodingParams, Destination, Event, FrameOutcome, Hub, HubConfig, PacketOutcome,
    Rejection, Role, Station, StationConfig, StationId,
};
use corridor_testbed::config as testbed;
use corridor_testbed::{Bed, Flying, Sent, Ways, World};
use etherparse::{
    Icmpv4Type, Icmpv6Type, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice,
};

const HUB: StationId = StationId(1);
/// One-way delay of every link.
const DELAY: Duration = Duration::from_millis(2);
/// Frames that a station can send per millisecond.
const FRAMES_AT_ONCE: usize = 200;
/// Frames queued in front of a link, which drops the rest.
const LINE_FRAMES_MAX: usize = 50;

/// How the packets of a test are carried.
#[derive(Clone, Copy, Debug)]
enum How {
    Window,
    Block,
    Plain,
}

fn config(id: StationId, peer: StationId, how: How) -> StationConfig {
    let (role, coding) = match how {
        How::Window => (Role::Endpoint { peer, helper: None }, CodingParams::window()),
        How::Block => (Role::Endpoint { peer, helper: None }, CodingParams::default()),
        How::Plain => (Role::Plain { peer }, CodingParams::default()),
    };
    let ingress_packets = coding.ingress_packets_default();
    StationConfig { coding, ingress_packets, ..testbed::config(id, role) }
}

/// The addresses of a station: the hub has 10.9.0.1 and fd00:9::1, its neighbours have theirs by
/// number.
fn v4(id: u8) -> [u8; 4] {
    [10, 9, 0, id]
}

fn v6(id: u8) -> [u8; 16] {
    [0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, id]
}

/// Configuration of a hub with these neighbours.
fn told(neighbours: impl Iterator<Item = u8>, how: How) -> HubConfig {
    let own = vec![v4(1).into(), v6(1).into()];
    let allowed = |id| vec![format!("10.9.0.{id}/32"), format!("fd00:9::{id:x}/128")];
    let networks = |id| allowed(id).iter().map(|network| network.parse().unwrap()).collect();
    let neighbours = neighbours.map(|id| (StationId(u16::from(id)), networks(id))).collect();
    HubConfig { station: config(HUB, StationId(2), how), neighbours, own, one_channel: false }
}

fn hub(neighbours: usize, how: How) -> Hub {
    Hub::new(told(2..2 + neighbours as u8, how), [1; 32], Time::ZERO).unwrap()
}

fn leaf(id: u8, how: How, entropy: [u8; 32]) -> Station {
    Station::new(config(StationId(u16::from(id)), HUB, how), entropy, Time::ZERO).unwrap()
}

/// Properties of a link.
#[derive(Clone, Copy, Debug)]
struct Link {
    loss_ratio: f64,
    /// Frames per millisecond in each direction; others wait.
    frames_per_ms: usize,
}

const GOOD: Link = Link { loss_ratio: 0.0, frames_per_ms: 20 };

/// The links of a hub. Station 0 is the hub, and link `n` leads to neighbour `n`.
struct Links {
    links: Vec<Link>,
    /// Frames queued in front of a link, per direction.
    lines: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
    losses: Stream,
    /// How many frames each has sent, and when.
    made: Vec<(Time, usize)>,
}

impl World for Links {
    /// Like a socket on one interface: drops what a full queue has no room for.
    fn send(&mut self, sent: &Sent<'_>, _ways: &mut Ways) {
        let (last, made) = self.made[sent.from];
        self.made[sent.from] = (sent.at, 1 + if last == sent.at { made } else { 0 });
        let (from, to) = (sent.from, sent.others().find(|&to| sent.is_for(to)).unwrap());
        // The hub addresses each neighbour, and they know nobody else.
        assert!(if from == 0 { sent.to != Destination::All } else { to == 0 }, "{from} to {to}");
        let line = self.lines.entry((from, to)).or_default();
        if line.len() < LINE_FRAMES_MAX {
            line.push_back(sent.frame.to_vec());
        }
    }

    fn hear(&mut self, now: Time, flying: &Flying, station: &mut AnyStation) -> FrameOutcome {
        let outcome = station.handle_frame(now, &flying.frame);
        if let FrameOutcome::Accepted { from: id } = outcome {
            assert_eq!(usize::from(id.0), flying.from + 1);
        }
        outcome
    }

    fn free_at(&self, at: usize) -> Time {
        let (last, made) = self.made[at];
        if made < FRAMES_AT_ONCE { last } else { last + ms(1) }
    }

    fn pass(&mut self, now: Time, ways: &mut Ways) {
        for (&(from, to), line) in &mut self.lines {
            let link = self.links[from.max(to)];
            for frame in line.drain(..link.frames_per_ms.min(line.len())) {
                let draw = f64::from(self.losses.next_u32()) / 4_294_967_296.0;
                if draw >= link.loss_ratio {
                    ways.put(now + DELAY, from, to, frame);
                }
            }
        }
    }
}

type Star = Bed<Links>;

fn star(neighbours: usize, how: How, link: Link) -> Star {
    let leaves = (0..neighbours as u8).map(|at| leaf(at + 2, how, [at + 2; 32])).collect();
    star_of(hub(neighbours, how), leaves, link)
}

fn star_of(hub: Hub, leaves: Vec<Station>, link: Link) -> Star {
    let (links, losses) = (vec![link; 1 + leaves.len()], Stream::from_seed([9; 32]));
    let leaves = leaves.into_iter().map(AnyStation::from);
    let made = vec![(Time::ZERO, 0); links.len()];
    let world = Links { links, lines: BTreeMap::new(), losses, made };
    Bed::new([hub.into()].into_iter().chain(leaves), world)
}

fn meet(star: &mut Star, peers: &[usize]) {
    star.wait(ms(5_000), |star| peers.iter().all(|&at| star.are_up(0, at)));
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A datagram from one station to another, with a number and filler bytes that depend on it.
fn datagram(from: u8, to: u8, six: bool, number: u32, len: usize) -> Vec<u8> {
    let mut payload = number.to_be_bytes().to_vec();
    let mut draws = Stream::from_seed([number as u8 ^ from; 32]);
    payload.resize(len, 0);
    draws.fill_bytes(&mut payload[4..]);
    let mut packet = Vec::new();
    if six {
        let builder = PacketBuilder::ipv6(v6(from), v6(to), 64).udp(1_000, 2_000);
        builder.write(&mut packet, &payload).unwrap();
        // DSCP "expedited forwarding" and ECT(0).
        packet[0] |= 0xb;
        packet[1] |= 0xa0;
    } else {
        let builder = PacketBuilder::ipv4(v4(from), v4(to), 64).udp(1_000, 2_000);
        builder.write(&mut packet, &payload).unwrap();
        packet[1] = 0xba;
        fix_checksum(&mut packet);
    }
    packet
}

fn fix_checksum(packet: &mut [u8]) {
    packet[10..12].fill(0);
    let checksum = checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// A packet as it arrives after this many routers.
fn behind(mut packet: Vec<u8>, hops: u8) -> Vec<u8> {
    if packet[0] >> 4 == 6 {
        packet[7] -= hops;
    } else {
        packet[8] -= hops;
        fix_checksum(&mut packet);
    }
    packet
}

#[test]
fn packets_cross_from_and_to_the_hub_and_between_its_neighbours_byte_by_byte() {
    for (how, loss_ratio) in [(How::Window, 0.1), (How::Block, 0.1), (How::Plain, 0.0)] {
        let mut star = star(3, how, Link { loss_ratio, ..GOOD });
        meet(&mut star, &[1, 2, 3]);
        let mut expected = vec![Vec::new(); 4];
        for number in 0..150 {
            for from in 0..4u8 {
                for to in (0..4u8).filter(|&to| to != from) {
                    let (six, len) = (number % 2 == 0, 20 + (number as usize * 37) % 1_200);
                    let packet = datagram(from + 1, to + 1, six, number, len);
                    assert_eq!(star.put(usize::from(from), &packet), PacketOutcome::Accepted);
                    let hops = u8::from(from != 0 && to != 0);
                    expected[usize::from(to)].push(behind(packet, hops));
                }
            }
            star.run(ms(4));
        }
        star.run(ms(3_000));
        for (delivered, mut expected) in star.delivered.iter_mut().zip(expected) {
            delivered.sort();
            expected.sort();
            assert_eq!(*delivered, expected, "{how:?}");
        }
        let stats = star[0].hub().unwrap().stats();
        assert_eq!((stats.packets_forwarded, stats.packets_wrong_source), (6 * 150, 0));
    }
}

#[test]
fn a_source_that_a_peer_does_not_have_is_dropped_and_counted() {
    let mut star = star(3, How::Window, GOOD);
    meet(&mut star, &[1, 2, 3]);
    // From another peer's address, the hub's own, and nobody's; and a packet that is not IP.
    for from in [3, 1, 77] {
        for (to, six) in [(1, false), (4, true)] {
            star.put(1, &datagram(from, to, six, 5, 100));
        }
    }
    star.put(1, b"something else");
    // From its own address to itself, which must not be sent back.
    star.put(1, &datagram(2, 2, false, 5, 100));
    star.run(ms(500));
    assert!(star.delivered.iter().all(Vec::is_empty));
    let hub = star[0].hub().unwrap();
    assert_eq!((hub.stats().packets_wrong_source, hub.stats().packets_turned_back), (7, 1));
    assert_eq!([2, 3, 4].map(|id| hub.wrong_sources(StationId(id))), [7, 0, 0]);
}

#[test]
fn the_hosts_packets_for_nobody_are_answered_and_counted() {
    let mut star = star(2, How::Plain, GOOD);
    meet(&mut star, &[1, 2]);
    for to in [99, 1] {
        assert_eq!(star.put(0, &datagram(1, to, false, 1, 10)), PacketOutcome::NoRoute);
    }
    star.run(ms(1));
    assert_eq!(star[0].hub().unwrap().stats().packets_unrouted, 2);
    let [message] = &star.delivered[0][..] else { panic!("one message: the second came too soon") };
    assert_eq!(&message[12..20], [v4(99), v4(1)].concat());
    let Some(TransportSlice::Icmpv4(icmp)) = SlicedPacket::from_ip(message).unwrap().transport
    else {
        panic!("no ICMP")
    };
    assert!(matches!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(_)));
}

#[test]
fn a_packet_without_hops_left_ends_at_the_hub_which_says_so() {
    let mut star = star(2, How::Window, GOOD);
    meet(&mut star, &[1, 2]);
    let mut packet = datagram(2, 3, true, 1, 10);
    packet[7] = 1;
    star.put(1, &packet);
    star.run(ms(50));
    let [message] = &star.delivered[1][..] else { panic!("one message") };
    assert_eq!(&message[8..40], [v6(1), v6(2)].concat());
    let Some(TransportSlice::Icmpv6(icmp)) = SlicedPacket::from_ip(message).unwrap().transport
    else {
        panic!("no ICMP")
    };
    assert!(matches!(icmp.icmp_type(), Icmpv6Type::TimeExceeded(_)));
    assert_eq!(icmp.payload(), packet);
    assert_eq!((star.delivered[2].len(), star[0].hub().unwrap().stats().packets_expired), (0, 1));
}

#[test]
fn a_packet_too_long_for_the_second_peer_is_answered_to_the_first() {
    let mut star = star(2, How::Window, GOOD);
    meet(&mut star, &[1, 2]);
    // The MTU of the second peer's path turns out to be smaller; no other's changes because of
    // that.
    let lens = corridor_proto::FrameLens { min: 528, base: 700, max: 700 };
    let mut short = hub(2, How::Window);
    short.find_path_mtu(Time::ZERO, lens);
    let leaves = [2, 3].map(|id| leaf(id, How::Window, [id; 32]));
    star = star_of(short, leaves.into(), GOOD);
    meet(&mut star, &[1, 2]);
    let mut packet = datagram(2, 3, false, 1, 900);
    packet[6] |= 0x40;
    fix_checksum(&mut packet);
    assert_eq!(star.put(1, &packet), PacketOutcome::Accepted);
    star.run(ms(50));
    let [message] = &star.delivered[1][..] else { panic!("one message") };
    let Some(TransportSlice::Icmpv4(icmp)) = SlicedPacket::from_ip(message).unwrap().transport
    else {
        panic!("no ICMP")
    };
    let needed = Icmpv4Type::DestinationUnreachable(
        etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded {
            next_hop_mtu: star[0].tunnel_mtu() as u16,
        },
    );
    assert_eq!((icmp.icmp_type(), star.delivered[2].len()), (needed, 0));
}

/// Packets that reach the healthy neighbours in two seconds, if the hub offers each this many per
/// millisecond, and one neighbour may be different.
fn delivered_to_the_healthy(how: How, change: impl Fn(&mut Star)) -> Vec<usize> {
    let mut star = star(4, how, GOOD);
    change(&mut star);
    meet(&mut star, &[1, 2, 3]);
    for number in 0..2_000 {
        for to in 2..=5 {
            // A neighbour sends to the last one too: packets that wait for that one hold up no
            // others.
            star.put(0, &datagram(1, to, false, number, 1_000));
            star.put(1, &datagram(2, to, false, number, 200));
        }
        star.run(ms(1));
    }
    (1..=3).map(|at| star.delivered[at].len()).collect()
}

#[test]
fn a_dead_or_slow_neighbour_takes_nothing_from_the_others() {
    for how in [How::Window, How::Block, How::Plain] {
        let healthy = delivered_to_the_healthy(how, |_| {});
        assert!(healthy.iter().all(|&packets| packets > 1_500), "{how:?}: {healthy:?}");
        let links = [
            ("never there", Link { loss_ratio: 1.0, ..GOOD }),
            ("lossy", Link { loss_ratio: 0.6, ..GOOD }),
        ];
        for (what, link) in links {
            let beside = delivered_to_the_healthy(how, |star| star.world.links[4] = link);
            for (alone, beside) in healthy.iter().zip(&beside) {
                assert!(beside * 100 >= alone * 98, "{how:?} {what}: {healthy:?} {beside:?}");
            }
        }
        // Slow, which shows only after all have met.
        let slow = Link { frames_per_ms: 1, loss_ratio: 0.3 };
        let beside = delivered_to_the_healthy(how, |star| {
            meet(star, &[1, 2, 3, 4]);
            star.world.links[4] = slow;
        });
        for (alone, beside) in healthy.iter().zip(&beside) {
            assert!(beside * 100 >= alone * 98, "{how:?} slow: {healthy:?} {beside:?}");
        }
    }
}

#[test]
fn what_cannot_go_on_waits_at_its_sender_and_is_dropped_there() {
    let mut star = star(2, How::Window, GOOD);
    meet(&mut star, &[1, 2]);
    // Five times as much as the second neighbour's link can carry.
    star.world.links[2].frames_per_ms = 1;
    let (mut longest, mut number) = (Duration::ZERO, 0);
    for step in 0..3_000 {
        for _ in 0..5 {
            star.put(1, &datagram(2, 3, false, number, 1_000));
            number += 1;
        }
        star.run(ms(1));
        if step > 500 {
            let queue = star[0].hub().unwrap().station(StationId(3)).unwrap().path(star.now).queue;
            longest = longest.max(queue.delay);
        }
    }
    let onward = star[0].hub().unwrap().station(StationId(3)).unwrap().stats();
    assert_eq!(onward.packets_dropped_codel + onward.packets_dropped_ingress, 0);
    assert_eq!(star[0].hub().unwrap().stats().packets_not_forwarded, 0);
    let sender = star[1].stats();
    assert!(sender.credit_waits > 10 && sender.packets_dropped_codel > 1_000, "{sender:?}");
    assert!(longest < Duration::from_millis(100), "packets have waited for {longest:?}");
    let crossed = star.delivered[2].len();
    assert!(crossed > 2_400, "of 3000 packets that the link carries {crossed} have crossed");
}

#[test]
fn what_waits_for_a_dead_neighbour_is_bounded() {
    let mut star = star(2, How::Window, GOOD);
    star.world.links[2].loss_ratio = 1.0;
    meet(&mut star, &[1]);
    let bound = INGRESS_PACKETS_LANE;
    for number in 0..3 * bound as u32 {
        star.put(0, &datagram(1, 3, false, number, 20));
    }
    let station = star[0].hub().unwrap().station(StationId(3)).unwrap();
    assert_eq!(station.inspect().ingress_packets, bound);
    assert_eq!(station.stats().packets_dropped_ingress, 2 * bound as u64);
}

/// The memory of the queues and windows of all neighbours together does not grow with their number.
#[test]
fn neighbours_have_equal_parts_of_what_a_hub_holds() {
    // As docs/decisions/0023-hubs.md says.
    let mut windows = Vec::new();
    for neighbours in [1, 4, 40, 256] {
        let own = vec![v4(1).into()];
        let of = |id| (StationId(id), Vec::new());
        let station = config(HUB, StationId(2), How::Window);
        let memory_bytes = station.memory_bytes;
        let neighbours = (2..2 + neighbours).map(of).collect::<Vec<_>>();
        let told = HubConfig { station, neighbours, own, one_channel: false };
        let hub = Hub::new(told, [1; 32], Time::ZERO).unwrap();
        let views: Vec<_> = hub.stations().map(Station::memory).collect();
        assert!(views.iter().all(|view| *view == views[0]), "{views:?}");
        let held = views.iter().map(|view| view.queue + view.sent + view.received).sum::<usize>();
        assert!(held <= memory_bytes, "{held} bytes for {} neighbours", views.len());
        let of_first = hub.stations().next().unwrap().config();
        windows.push(of_first.coding.window_size);
    }
    assert_eq!(windows, [16_384, 2_048, 704, 40]);
}

#[test]
fn a_forged_frame_costs_nothing_but_a_count() {
    let mut star = star(2, How::Window, GOOD);
    meet(&mut star, &[1, 2]);
    star.run(ms(100));
    let mut draws = Stream::from_seed([3; 32]);
    let before = star[0].poll_timeout();
    for _ in 0..2_000 {
        let mut frame = vec![0; 16 + draws.next_u32() as usize % 200];
        draws.fill_bytes(&mut frame);
        // Half of them have our version, and some claim a sender in a HELLO.
        if frame[0] & 1 == 0 {
            frame[0] = VERSION << 4 | frame[0] & 2;
            frame[7] = 0;
            frame[8] %= 6;
        }
        let outcome = star.hear(0, &frame);
        let refused = matches!(
            outcome,
            FrameOutcome::Rejected(
                Rejection::Malformed | Rejection::NotAuthentic | Rejection::UnknownSession
            )
        );
        assert!(refused, "{outcome:?}");
    }
    let stats = star[0].stats();
    let counted = star[0].hub().unwrap().stats().frames_of_nobody + stats.frames_rejected;
    assert_eq!((counted, stats.frames_unknown_session), (2_000, 0));
    assert!(star.delivered[0].is_empty());
    // Nothing is due any sooner because of it, once the affected stations have been asked.
    let now = star.now;
    while star[0].poll_transmit(now).is_some() {}
    assert_eq!(star[0].poll_timeout(), before);
}

/// The key hint in clear in a station's frames.
fn session_tag(id: u8, entropy: [u8; 32]) -> [u8; 2] {
    let mut station = leaf(id, How::Plain, entropy);
    let hello = station.poll_transmit(Time::ZERO).unwrap().frame;
    [hello[1], hello[2]]
}

#[test]
fn two_neighbours_whose_sessions_look_alike_are_told_apart() {
    let entropy = |index: u32| {
        let mut entropy = [0; 32];
        entropy[..4].copy_from_slice(&index.to_be_bytes());
        entropy
    };
    // Among this many sessions, two almost certainly have the same 16 bits in clear.
    let mut seen = BTreeMap::new();
    let mut pair = None;
    for index in 0..4_000 {
        let id = 2 + (index % 2) as u8;
        match seen.insert(session_tag(id, entropy(index)), index) {
            Some(other) if other % 2 != index % 2 => pair = Some((other, index)),
            _ => continue,
        }
        break;
    }
    let (mut one, mut other) = pair.expect("two sessions with one tag");
    if one % 2 == 1 {
        (one, other) = (other, one);
    }
    let leaves = vec![leaf(2, How::Plain, entropy(one)), leaf(3, How::Plain, entropy(other))];
    let mut star = star_of(hub(2, How::Plain), leaves, GOOD);
    meet(&mut star, &[1, 2]);
    for number in 0..20 {
        star.put(1, &datagram(2, 1, false, number, 50));
        star.put(2, &datagram(3, 1, false, number, 50));
        star.run(ms(1));
    }
    star.run(ms(100));
    let from = |id| star.delivered[0].iter().filter(|packet| packet[15] == id).count();
    assert_eq!((from(2), from(3)), (20, 20));
    assert_eq!(star[0].stats().frames_rejected, 0);
}

#[test]
fn a_neighbour_that_starts_anew_is_found_again_and_nobody_else_notices() {
    let mut star = star(2, How::Window, GOOD);
    meet(&mut star, &[1, 2]);
    star.events.clear();
    star.start(1, leaf(2, How::Window, [77; 32]));
    star.run(ms(500));
    let again = Event::SessionUp { peer: StationId(2), restarted: true };
    assert!(star.events.iter().any(|it| it.1 == again), "{:?}", star.events);
    let of_other = Event::SessionUp { peer: StationId(3), restarted: true };
    assert!(star.events.iter().all(|it| it.1 != of_other));
    star.put(0, &datagram(1, 2, false, 1, 50));
    star.run(ms(50));
    assert_eq!(star.delivered[1].len(), 1);
}

/// The hub has neighbours 2 and 3; then 2 leaves, 4 joins, and 3 notices nothing.
#[test]
fn neighbours_come_and_go_and_the_sessions_of_others_go_on() {
    for how in [How::Window, How::Block, How::Plain] {
        let leaves = (2..5).map(|id| leaf(id, how, [id; 32])).collect();
        let mut star = star_of(hub(2, how), leaves, GOOD);
        meet(&mut star, &[1, 2]);
        let send = |star: &mut Star, numbers: std::ops::Range<u32>| {
            for number in numbers {
                star.put(2, &datagram(3, 1, false, number, 200));
                star.put(0, &datagram(1, 3, true, number, 200));
                star.run(ms(2));
            }
        };
        send(&mut star, 0..50);
        star.put(1, &datagram(2, 1, false, 0, 200));
        star.run(ms(50));
        let counted = |star: &Star| star[0].stats().packets_delivered;
        let (before, sessions) = (counted(&star), star[2].stats().sessions_accepted);
        star.events.clear();
        let now = star.now;
        let next = told([4, 3].into_iter(), how);
        assert_eq!(star[0].set_neighbours(&next, [8; 32], now), Ok(true));
        assert!(counted(&star) >= before, "what a neighbour has sent is not forgotten");
        send(&mut star, 50..100);
        meet(&mut star, &[3]);
        star.put(3, &datagram(4, 3, false, 7, 200));
        star.put(1, &datagram(2, 1, false, 1, 200));
        star.run(ms(200));
        // Everything sent between the hub and 3 arrived, under the same session.
        let from = |at: usize, id: u8, six: bool| {
            let is_from = |packet: &&Vec<u8>| {
                if six { packet[0] >> 4 == 6 && packet[23] == id } else { packet[15] == id }
            };
            star.delivered[at].iter().filter(is_from).count()
        };
        assert_eq!((from(0, 3, false), from(2, 1, true)), (100, 100), "{how:?}");
        assert_eq!(star[2].stats().sessions_accepted, sessions);
        let events = star.events.iter().map(|it| &it.1);
        let of_hub = |event: &&Event| !matches!(event, Event::SessionUp { peer: HUB, .. });
        let ups: Vec<_> = events.filter(of_hub).collect();
        assert_eq!(ups, [&Event::SessionUp { peer: StationId(4), restarted: false }], "{how:?}");
        // The new neighbour reaches others, and the one that left reaches nobody.
        assert_eq!((from(2, 4, false), from(0, 2, false)), (1, 1), "{how:?}");
        assert!(!star[0].is_up(StationId(2)));
        let ids: Vec<_> = star[0].peers().iter().map(|peer| peer.id.0).collect();
        assert_eq!(ids, [4, 3]);
        // Invalid configurations change nothing.
        for refused in [told(0..0, how), told([3, 3].into_iter(), how)] {
            assert!(star[0].set_neighbours(&refused, [8; 32], now).is_err());
        }
        assert!(star[0].is_up(StationId(3)));
    }
}

/// New neighbours share the free memory, as long as there is any; those that leave give theirs
/// back.
#[test]
fn neighbours_that_come_have_a_part_of_the_memory_that_is_free() {
    let mut config = told(2..4, How::Window);
    config.station.memory_bytes = 24_000_000;
    let mut hub = Hub::new(config.clone(), [1; 32], Time::ZERO).unwrap();
    let shares = |hub: &Hub| hub.stations().map(|station| station.memory().share).sum::<usize>();
    let mut refused = None;
    for last in 5..40 {
        config.neighbours = told(2..last, How::Window).neighbours;
        let before = hub.stations().count();
        match hub.set_neighbours(&config, [last; 32], Time::ZERO) {
            Ok(()) => assert!(shares(&hub) <= 24_000_000),
            Err(error) => {
                assert_eq!((error.field, hub.stations().count()), ("limits.memory", before));
                refused = Some(last);
                break;
            }
        }
    }
    let refused = refused.expect("the memory has an end");
    assert!(refused > 6, "neighbour {refused} found no room");
    // There is room in place of one that leaves.
    config.neighbours = told(3..refused, How::Window).neighbours;
    hub.set_neighbours(&config, [3; 32], Time::ZERO).unwrap();
    assert!(shares(&hub) <= 24_000_000);
}

#[test]
fn what_a_hub_cannot_be_is_an_error_that_names_the_field() {
    let make = |station: StationConfig, neighbours: &[(u16, &[&str])]| {
        let networks = |list: &[&str]| list.iter().map(|net| net.parse().unwrap()).collect();
        let neighbours = neighbours.iter().map(|(id, list)| (StationId(*id), networks(list)));
        let config = HubConfig {
            station,
            neighbours: neighbours.collect(),
            own: vec![v4(1).into()],
            one_channel: false,
        };
        Hub::new(config, [1; 32], Time::ZERO).map(drop).unwrap_err()
    };
    let sound = || config(HUB, StationId(2), How::Window);
    assert_eq!(make(sound(), &[]).field, "peer");
    let many: Vec<_> = (2..=258).map(|id| (id, &[][..])).collect();
    assert_eq!(make(sound(), &many).field, "peer");
    assert_eq!(make(sound(), &[(2, &[]), (2, &[])]).field, "peer.id");
    assert_eq!(make(sound(), &[(1, &[])]).field, "peer.id");
    let twice = make(sound(), &[(2, &["10.0.0.0/8"]), (3, &["10.1.2.3/8"])]);
    assert_eq!((twice.field, &*twice.given), ("peer.allowed", "10.1.2.3/8"));
    assert_eq!(make(sound(), &[(2, &["10.9.0.1/32"])]).field, "peer.allowed");
    let helped = Role::Endpoint { peer: StationId(2), helper: Some(StationId(9)) };
    let with_helper = StationConfig { role: helped, ..config(HUB, StationId(2), How::Block) };
    assert_eq!(make(with_helper, &[(2, &[])]).field, "station.role");
    let poor = StationConfig { memory_bytes: 1_000_000, ..sound() };
    let poor = make(poor, &[(2, &[]), (3, &[]), (4, &[])]);
    assert_eq!((poor.field, &*poor.given), ("limits.memory", "1000000"));
    assert!(poor.expected.ends_with("bytes or more, for 3 peers"), "{}", poor.expected);
}

/// A challenge does not wait for its turn. (If it was the last frame of its session, nothing woke
/// the hub to send a HELLO of the next one until something else happened.)
#[test]
fn a_challenge_that_ends_a_session_is_followed_by_a_greeting_at_once() {
    let mut star = star(2, How::Window, GOOD);
    meet(&mut star, &[1, 2]);
    star.run(ms(2_000));
    star[0].set_session_frames(1);
    star.settle(0);
    let now = star.now;
    assert!(star[0].poll_timeout().is_some_and(|due| due > now), "nothing is to be said");
    assert!(star[0].challenge(StationId(2), [7; 8]).is_some());
    assert!(star[0].poll_timeout().is_some_and(|due| due <= now));
}

/// A segment of a connection between the hub's host and that of the first neighbour.
fn tcp(is_up: bool, numbers: (u32, u32), is_first: bool, len: usize) -> Vec<u8> {
    let [(from, port), (to, other)] = match is_up {
        true => [(1, 1_000), (2, 80)],
        false => [(2, 80), (1, 1_000)],
    };
    let builder = PacketBuilder::ipv4(v4(from), v4(to), 64);
    let mut builder = builder.tcp(port, other, numbers.0, 10_000);
    if is_first {
        let options =
            [TcpOptionElement::MaximumSegmentSize(1_200), TcpOptionElement::WindowScale(7)];
        builder = builder.syn().options(&options).unwrap();
    }
    if !(is_first && is_up) {
        builder = builder.ack(numbers.1);
    }
    let mut packet = Vec::new();
    builder.write(&mut packet, &vec![7; len]).unwrap();
    packet
}

/// A hub that may not send yet may have something for its host, or a reminder for its TCP. (It
/// slept until it was allowed to send again: behind a long frame at a low rate, for a long time.)
#[test]
fn a_hub_wakes_up_as_soon_as_one_of_its_stations() {
    const LEN: usize = 1_200;
    for rate_bps in [None, Some(4_000_000)] {
        let mut star = star(2, How::Window, Link { frames_per_ms: 1, ..GOOD });
        meet(&mut star, &[1, 2]);
        star[0].set_rate_bps(rate_bps);
        for (at, packet) in [
            (0, tcp(true, (0, 0), true, 0)),
            (1, tcp(false, (0, 1), true, 0)),
            (0, tcp(true, (1, 1), false, 0)),
        ] {
            assert_eq!(star.put(at, &packet), PacketOutcome::Accepted);
            star.run(ms(20));
        }
        let (mut sent, mut told, mut late) = (1, 1, 0);
        for step in 0..4_000 {
            // So that a queue stands, and windows are clamped.
            if [0, 10, 20].contains(&(step % 500)) {
                for _ in 0..20 {
                    star.put(0, &tcp(true, (sent, 1), false, LEN));
                    sent += LEN as u32;
                }
            }
            star.run(ms(1));
            let came = star.delivered[1].iter().filter(|packet| packet.len() > LEN).count();
            let ack = 1 + (came * LEN) as u32;
            if ack != told {
                told = ack;
                star.put(1, &tcp(false, (1, ack), false, 0));
            }
            let (now, due) = (star.now, star[0].poll_timeout());
            let wants = star[0].hub().unwrap().stations().filter_map(Station::poll_timeout);
            let wants = wants.filter(|&wants| wants > now).min();
            late += u32::from(wants.is_some_and(|wants| due.is_none_or(|due| due > wants)));
        }
        let stats = star[0].stats();
        assert!(stats.windows_clamped > 50 && stats.window_updates_sent > 5, "{stats:?}");
        assert_eq!(late, 0, "times that it would have been woken too late, {rate_bps:?}");
    }
}
