use corridor_base::{Stream, StreamKey};
use corridor_packet::PacketRef;
use proptest::prelude::*;

use super::traffic::{Kind, Link, Source, run};
use super::*;

/// How long a flow is known before it is judged, and how long it lasts, in seconds.
const KNOWN_S: f64 = 3.0;
const LASTS_S: f64 = 8.0;
/// Flows of each kind.
const FLOWS: u64 = 200;
/// Share of a kind's flows that may be misclassified.
const ERRORS_MAX: f64 = 0.02;

fn stream(seed: u64) -> Stream {
    StreamKey { seed, replication: 0, entity: 0, purpose: "order" }.stream()
}

/// Share of a kind's flows of which the share of packets in order is not right.
fn errors(kind: Kind, seed: u64, is_right: impl Fn(f64) -> bool) -> f64 {
    let mut wrong = 0;
    for flow in 0..FLOWS {
        let mut rng = stream(seed ^ (flow << 32) ^ kind as u64);
        let link = Link::draw(&mut rng);
        let sent = run(kind, link, LASTS_S, KNOWN_S, &mut rng);
        if sent.packets > 0 && !is_right(sent.share()) {
            println!("{kind:?} {flow}: {:.3} of {} in order, {link:?}", sent.share(), sent.packets);
            wrong += 1;
        }
    }
    wrong as f64 / FLOWS as f64
}

/// The seed, or the one in `ORDER_SEED`; it is printed.
fn seed() -> u64 {
    let told = std::env::var("ORDER_SEED").ok().and_then(|text| text.parse().ok());
    let seed = told.unwrap_or(corridor_testing::SEED);
    println!("seed {seed}: ORDER_SEED={seed} cargo test -p corridor-proto host::order");
    seed
}

#[test]
fn what_is_real_time_or_sparse_comes_at_once() {
    let seed = seed();
    for kind in Kind::AT_ONCE {
        let errors = errors(kind, seed, |share| share < 0.01);
        println!("{kind:?}: {errors:.3} of the flows in order");
        assert!(errors <= ERRORS_MAX, "{kind:?}: {errors:.3} of the flows in order");
    }
}

#[test]
fn bulk_that_takes_lateness_for_loss_goes_in_order() {
    let seed = seed();
    for kind in Kind::IN_ORDER {
        let errors = errors(kind, seed, |share| share > 0.9);
        println!("{kind:?}: {errors:.3} of the flows not in order");
        assert!(errors <= ERRORS_MAX, "{kind:?}: {errors:.3} of the flows not in order");
    }
}

/// A flow whose packets are passed one by one.
struct Flow {
    order: OrderByNeed,
    source: Source,
    rng: Stream,
    stats: Stats,
}

impl Flow {
    fn new(kind: Kind, delivery: UdpDelivery) -> Self {
        let mut rng = stream(7);
        let source = Source::new(kind, &mut rng);
        Flow { order: OrderByNeed::new(delivery), source, rng, stats: Stats::default() }
    }

    /// A packet comes to a queue; `waits`: other packets of its flow are queued.
    fn send(&mut self, at_s: f64, len: usize, waits: bool) -> bool {
        let packet = self.source.packet(len, at_s, &mut self.rng);
        let now = Time::from_nanos((1e9 * at_s) as u64);
        self.order.note(now, (1, waits), PacketRef::read(&packet), &mut self.stats) == Need::Order
    }
}

const AUTO: UdpDelivery = UdpDelivery::AUTO;

#[test]
fn quic_goes_in_order_from_a_handshake_s_worth_of_full_packets_on() {
    let mut flow = Flow::new(Kind::QuicBulk, AUTO);
    let sent: Vec<_> = (0..20).map(|n| flow.send(0.01 * f64::from(n), 1_200, false)).collect();
    let first = sent.iter().position(|&in_order| in_order);
    assert!((4..8).contains(&first.unwrap()), "{sent:?}");
    assert!(sent[first.unwrap()..].iter().all(|&in_order| in_order));
    assert_eq!(flow.stats.flows_ordered, 1);
}

#[test]
fn a_flow_leaves_order_at_a_pause_after_calm_and_without_one_later() {
    for (pause_ms, until_s) in [(5, 5.0), (500, 10.0)] {
        let mut flow = Flow::new(Kind::QuicBulk, AUTO);
        flow.order.set_pause(Duration::from_millis(pause_ms));
        (0..100).for_each(|n| {
            flow.send(0.01 * f64::from(n), 1_200, false);
        });
        // From now on 50 small packets per second.
        let small = |n: u32| 1.0 + 0.02 * f64::from(n);
        let left = (0..1_000).find(|&n| !flow.send(small(n), 100, false)).map(small).unwrap();
        // It is calm once its count of full packets has decayed below three, a second and a half
        // later.
        assert!((until_s + 1.0..until_s + 6.0).contains(&left), "left after {left} s");
        assert!(!flow.send(left + 0.02, 100, false));
    }
}

#[test]
fn what_keeps_a_queue_standing_goes_in_order_unless_it_heeds_no_drops() {
    for heeds in [true, false] {
        let mut flow = Flow::new(Kind::Tunnel, AUTO);
        let sent = (0..3_000).map(|n| {
            if !heeds && n % 100 == 50 {
                flow.order.note_unheeding(Time::from_millis(n), 1);
            }
            flow.send(0.001 * n as f64, 1_300, true)
        });
        let in_order = sent.filter(|&in_order| in_order).count();
        assert_eq!(in_order > 2_000, heeds, "{in_order} of 3000");
        assert!(heeds || in_order == 0, "{in_order} of 3000");
    }
}

#[test]
fn the_operator_s_word_holds() {
    let of = |kind, delivery| {
        let mut flow = Flow::new(kind, delivery);
        (0..2_000).map(|n| flow.send(0.001 * f64::from(n), 1_200, true)).filter(|&at| at).count()
    };
    let (never, always) = (Delivery::Immediate, Delivery::InOrder);
    assert_eq!(of(Kind::QuicBulk, UdpDelivery { quic: never, ..AUTO }), 0);
    assert_eq!(of(Kind::Tunnel, UdpDelivery { bulk: never, ..AUTO }), 0);
    assert_eq!(of(Kind::QuicBulk, UdpDelivery { quic: always, ..AUTO }), 2_000);
    assert!(of(Kind::Video, UdpDelivery { real_time: always, ..AUTO }) > 1_900);
    assert_eq!(of(Kind::Game, UdpDelivery { other: always, ..AUTO }), 2_000);
    assert_eq!(of(Kind::Video, AUTO), 0);
}

#[test]
fn what_is_bulk_is_so_before_it_is_anything_else() {
    let of = |bulk, other, waits, heeds: bool| {
        let mut flow = Flow::new(Kind::Tunnel, UdpDelivery { bulk, other, ..AUTO });
        let sent = (0..3_000).map(|n| {
            if !heeds && n % 100 == 50 {
                flow.order.note_unheeding(Time::from_millis(n), 1);
            }
            let in_order = flow.send(0.001 * n as f64, 1_300, waits);
            in_order && n >= 1_000
        });
        sent.filter(|&in_order| in_order).count()
    };
    let (auto, never, always) = (Delivery::Auto, Delivery::Immediate, Delivery::InOrder);
    for other in [auto, never, always] {
        assert_eq!(of(auto, other, true, true), 2_000, "{other:?}");
        assert_eq!(of(always, other, true, true), 2_000, "{other:?}");
        assert_eq!(of(always, other, true, false), 2_000, "{other:?}: though it heeds nothing");
        for bulk in [auto, never, always] {
            let expected = if other == always { 2_000 } else { 0 };
            assert_eq!(of(bulk, other, false, true), expected, "{bulk:?} {other:?}: no bulk");
        }
    }
    assert_eq!(of(never, never, true, true), 0);
    assert_eq!(of(auto, never, true, false), 0);
}

/// A flow that was in order because everything else is leaves order when it turns out to be bulk
/// that is configured to be delivered at once, as soon as that reorders nothing.
#[test]
fn bulk_that_is_to_come_at_once_does_where_all_else_goes_in_order() {
    let delivery = UdpDelivery { bulk: Delivery::Immediate, other: Delivery::InOrder, ..AUTO };
    let mut flow = Flow::new(Kind::Tunnel, delivery);
    let sent: Vec<bool> =
        (0..13_000).map(|n| flow.send(0.001 * f64::from(n), 1_300, true)).collect();
    assert!(sent[0] && sent[5_000], "without a pause");
    assert!(!sent[12_000..].contains(&true), "after ten seconds");
}

#[test]
fn short_packets_of_voice_and_games_are_to_come_soon() {
    for (kind, expected) in [
        (Kind::Voice, Need::Soon),
        (Kind::Game, Need::Soon),
        (Kind::QuicAcks, Need::Unknown),
        (Kind::Video, Need::Unknown),
    ] {
        let mut flow = Flow::new(kind, AUTO);
        let len = if kind == Kind::Video { 1_200 } else { 200 };
        for n in 0..100 {
            let packet = flow.source.packet(len, 0.0, &mut flow.rng);
            let (now, read) = (Time::from_millis(20 * n), PacketRef::read(&packet));
            assert_eq!(flow.order.note(now, (1, false), read, &mut flow.stats), expected);
        }
    }
}

#[test]
fn what_is_marked_as_real_time_comes_at_once() {
    let mut flow = Flow::new(Kind::QuicBulk, AUTO);
    for n in 0..100 {
        let mut packet = flow.source.packet(1_200, 0.0, &mut flow.rng);
        packet[1] = 46 << 2;
        let read = PacketRef::read(&packet);
        let need = flow.order.note(Time::from_millis(n), (1, true), read, &mut flow.stats);
        assert_eq!(need, Need::Unknown, "it is not short");
    }
}

#[test]
fn a_counter_in_the_first_byte_is_no_quic() {
    let mut flow = Flow::new(Kind::Game, AUTO);
    for n in 0..2_000_u64 {
        let mut packet = flow.source.packet(1_300, 0.0, &mut flow.rng);
        packet[28] = n as u8;
        let (now, read) = (Time::from_millis(n), PacketRef::read(&packet));
        let need = flow.order.note(now, (1, false), read, &mut flow.stats);
        assert_ne!(need, Need::Order, "packet {n}");
    }
}

#[test]
fn what_is_known_is_bounded_and_the_silent_make_room() {
    let mut flow = Flow::new(Kind::QuicBulk, AUTO);
    let packet = flow.source.packet(1_200, 0.0, &mut flow.rng);
    let Flow { mut order, mut stats, .. } = flow;
    let mut note = |order: &mut OrderByNeed, ms, hash| {
        let read = PacketRef::read(&packet);
        order.note(Time::from_millis(ms), (hash, true), read, &mut stats) == Need::Order
    };
    (0..100).for_each(|n| {
        note(&mut order, 10 * n, 0);
    });
    // Packets of others in its set come in between, but of fewer flows than the set has places for.
    for n in 0..100 {
        let other = ORDER_SETS as u64 * (1 + n % (ORDER_FLOWS_PER_SET as u64 - 1));
        note(&mut order, 1_000 + 10 * n, other);
        assert!(note(&mut order, 1_000 + 10 * n, 0));
    }
    (0..10_000).for_each(|hash| {
        note(&mut order, 3_000, hash);
    });
    assert!(order.sets.iter().all(|set| set.len() <= ORDER_FLOWS_PER_SET));
    assert!(!note(&mut order, 3_001, 0), "it is forgotten");
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    /// Whatever comes, nothing panics, TCP and short packets are not classified as needing order,
    /// and memory is bounded.
    #[test]
    fn anything_may_come(
        packets in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..80), 0u64..40, 0u64..3_000, any::<bool>()),
            1..200,
        ),
        is_udp in any::<bool>(),
    ) {
        let (mut order, mut stats) = (OrderByNeed::new(AUTO), Stats::default());
        let mut now = Time::ZERO;
        for (mut bytes, flow, ms, waits) in packets {
            let hash = flow * ORDER_SETS as u64;
            if is_udp && bytes.len() > 28 {
                bytes[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]);
            }
            now += Duration::from_millis(ms);
            let need = order.note(now, (hash, waits), PacketRef::read(&bytes), &mut stats);
            prop_assert!(need == Need::Unknown || (need == Need::Soon && is_udp));
            order.note_unheeding(now, hash);
        }
        prop_assert!(order.sets[0].len() <= ORDER_FLOWS_PER_SET);
        prop_assert!(order.sets[1..].iter().all(Vec::is_empty));
    }

    /// Of full packets with arbitrary content, only those are delivered in order that begin like
    /// QUIC version 1 with possible lengths.
    #[test]
    fn full_packets_of_anything(
        head in proptest::collection::vec(any::<u8>(), 0..40),
        first in any::<u8>(),
        is_long: bool,
        lens in (0u8..26, 0u8..26),
    ) {
        let (mut order, mut stats) = (OrderByNeed::new(AUTO), Stats::default());
        let mut in_order = 0;
        for ms in 0..50 {
            let mut bytes = vec![0; 1_300];
            bytes[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17]);
            bytes[28] = first;
            bytes[29..29 + head.len()].copy_from_slice(&head);
            if is_long {
                bytes[28] |= 0xc0;
                bytes[29..34].copy_from_slice(&[0, 0, 0, 1, lens.0]);
                bytes[34 + usize::from(lens.0)] = lens.1;
            }
            let read = PacketRef::read(&bytes);
            let need = order.note(Time::from_millis(ms), (1, false), read, &mut stats);
            prop_assert!(need != Need::Soon, "it is not short");
            in_order += u32::from(need == Need::Order);
        }
        prop_assert_eq!(in_order > 0, is_long && lens.0 <= 20 && lens.1 <= 20, "{} of 50", in_order);
        prop_assert_eq!(stats.flows_ordered, u64::from(in_order > 0));
    }
}
