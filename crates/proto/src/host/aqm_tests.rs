//! Tests of the guarantees of RFC 8289 (CoDel) and RFC 8290 (FQ-CoDel).

use core::time::Duration;

use corridor_base::Time;
use corridor_base::codel::{Codel, CodelParams, Verdict};
use corridor_packet::PacketRef;
use proptest::prelude::*;

use crate::bounds::INGRESS_QUANTUM;
use crate::config::UdpDelivery;
use crate::host::fair::FairQueue;
use crate::host::order::Need;
use crate::stats::Stats;

const PARAMS: CodelParams =
    CodelParams { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

/// Queries CoDel every millisecond about packets that have waited `stay_ms`; returns when it
/// signals, in milliseconds. `mark`: packets are marked, not dropped.
fn signals(ms: core::ops::Range<u64>, codel: &mut Codel, mark: bool, stay_ms: u64) -> Vec<u64> {
    let stay = Duration::from_millis(stay_ms);
    let mut signals = Vec::new();
    for ms in ms {
        let (now, mut again) = (Time::from_millis(ms), false);
        while codel.judge(now, stay, true, again, PARAMS) == Verdict::Signal {
            signals.push(ms);
            if mark {
                codel.note_marked(PARAMS);
                break;
            }
            again = true;
        }
    }
    signals
}

/// Section 4.1: a queue that stands for less than an interval is a burst.
#[test]
fn a_burst_is_borne() {
    let mut codel = Codel::default();
    for start in [1_000, 1_200, 1_400] {
        assert_eq!(signals(start..start + 100, &mut codel, false, 50), [0; 0]);
        assert_eq!(signals(start + 100..start + 101, &mut codel, false, 4), [0; 0]);
    }
}

/// Section 5.5: the first signal comes after an interval, the following ones after the interval
/// divided by the square root of their number.
#[test]
fn a_standing_queue_is_told_more_and_more_often() {
    for mark in [false, true] {
        let told = signals(1_000..2_000, &mut Codel::default(), mark, 20);
        let mut expected = vec![1_100.0];
        for count in 1..told.len() {
            let last = expected[count - 1];
            expected.push(last + 100.0 / (count as f64).sqrt());
        }
        assert!(told.len() > 15, "{told:?}");
        for (told, expected) in told.iter().zip(expected) {
            let early = *told as f64 - expected;
            assert!((0.0..1.01).contains(&early), "marks: {mark}: {told}, expected {expected}");
        }
    }
}

/// Section 5.5: signalling ends at once below the target; soon after, it resumes near its last
/// rate.
#[test]
fn control_ends_below_the_target_and_resumes_where_it_was() {
    let mut codel = Codel::default();
    let before = signals(1_000..2_000, &mut codel, false, 20).len();
    assert_eq!(signals(2_000..2_100, &mut codel, false, 4), [0; 0]);
    let resumed = signals(2_100..2_500, &mut codel, false, 20);
    let fresh = signals(2_100..2_500, &mut Codel::default(), false, 20);
    assert!(resumed.len() > 2 * fresh.len(), "{before}; {resumed:?}, {fresh:?}");
    // Long after, it starts afresh.
    assert_eq!(signals(2_500..2_501, &mut codel, false, 4), [0; 0]);
    let later = signals(6_100..6_500, &mut codel, false, 20);
    assert_eq!(later.len(), fresh.len());
}

/// Section 4.2: the last packet of a queue is never dropped.
#[test]
fn the_last_packet_stays() {
    let mut codel = Codel::default();
    for ms in 1_000..2_000 {
        let stay = Duration::from_millis(500);
        let verdict = codel.judge(Time::from_millis(ms), stay, false, false, PARAMS);
        assert_eq!(verdict, Verdict::Pass);
    }
}

fn packet(flow: u8, len: usize, ecn: u8) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[..10].copy_from_slice(&[0x45, ecn, 0, 0, 0, 0, 0, 0, 64, 17]);
    packet[21] = flow;
    packet
}

/// Sends the next packet; returns its flow.
fn send(queue: &mut FairQueue, now: Time, stats: &mut Stats) -> Option<(u8, usize)> {
    let sent = queue.front(now, stats).map(|(packet, _)| (packet[21], packet.len()));
    queue.pop();
    sent
}

/// RFC 8290, Section 4.2: a flow that returns as soon as it is empty does not stay new forever.
#[test]
fn a_flow_of_single_packets_takes_no_more_than_its_share() {
    let (mut queue, mut stats) = (FairQueue::new(1_000, PARAMS, 1), Stats::default());
    let mut sent = [0; 3];
    for _ in 0..200 {
        queue.push(Time::ZERO, PacketRef::read(&packet(1, 1_400, 0)), false, &mut stats);
    }
    queue.push(Time::ZERO, PacketRef::read(&packet(2, 1_400, 0)), false, &mut stats);
    for _ in 0..150 {
        let Some((flow, len)) = send(&mut queue, Time::ZERO, &mut stats) else { break };
        sent[usize::from(flow)] += len;
        if flow == 2 {
            queue.push(Time::ZERO, PacketRef::read(&packet(2, 1_400, 0)), false, &mut stats);
        }
    }
    assert!(sent[1] + 3_000 > sent[2], "{sent:?}");
}

/// RFC 8290, Section 4.2: each queue is controlled by itself.
#[test]
fn a_small_flow_pays_nothing_for_a_large_one() {
    let (mut queue, mut stats) = (FairQueue::new(5_000, PARAMS, 1), Stats::default());
    let (mut small, mut largest_wait) = (0, 0);
    for ms in 0..10_000 {
        let now = Time::from_millis(ms);
        queue.push(now, PacketRef::read(&packet(1, 1_400, 0)), false, &mut stats);
        queue.push(now, PacketRef::read(&packet(1, 1_400, 2)), false, &mut stats);
        if ms % 20 == 0 {
            queue.push(now, PacketRef::read(&packet(2, 200, 0)), false, &mut stats);
        }
        // One frame per millisecond.
        if let Some((2, _)) = send(&mut queue, now, &mut stats) {
            small += 1;
            largest_wait = largest_wait.max(ms % 20);
        }
    }
    assert_eq!(small, 500);
    assert!(largest_wait <= 2, "{largest_wait} ms");
    // It ignores marks and drops, so the limit on its waiting time is what bounds it.
    assert!(stats.packets_dropped_codel > 100 && stats.packets_marked > 0, "{stats:?}");
}

/// A flow that ignores drops, at twice the service rate: with CoDel alone its packets waited for
/// seconds.
#[test]
fn what_heeds_nothing_stays_for_a_bounded_time() {
    for (interval_ms, stay_ms_max) in [(1, 151), (20, 170), (120, 480)] {
        let (mut queue, mut stats) = (FairQueue::new(5_000, PARAMS, 1), Stats::default());
        queue.set_pace(1e3 / interval_ms as f64);
        let mut longest_ms = 0;
        for tick in 0..2_000u64 {
            let now = Time::from_millis(interval_ms * tick);
            for _ in 0..2 {
                let mut packet = packet(1, 1_400, 0);
                packet[24..32].copy_from_slice(&(interval_ms * tick).to_be_bytes());
                queue.push(now, PacketRef::read(&packet), false, &mut stats);
            }
            let (front, _) = queue.front(now, &mut stats).expect("some have come");
            let came_ms = u64::from_be_bytes(front[24..32].try_into().expect("eight bytes"));
            longest_ms = longest_ms.max(interval_ms * tick - came_ms);
            queue.pop();
        }
        assert!(longest_ms <= stay_ms_max, "{longest_ms} ms, a packet each {interval_ms} ms");
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    /// Whatever comes and goes: the queue holds no more than fits, no packet is lost uncounted,
    /// flows stay in order, and no backlogged flow is more than a quantum and a packet behind
    /// another.
    #[test]
    fn the_queue_keeps_its_books(
        steps in proptest::collection::vec((0u8..4, 40usize..1_500, any::<bool>()), 1..300),
        packets_max in 1usize..60,
    ) {
        let (mut queue, mut stats) = (FairQueue::new(packets_max, PARAMS, 7), Stats::default());
        let (mut accepted, mut gone, mut number) = (0u64, 0u64, 0u32);
        let mut newest = [0; 4];
        for (ms, &(flow, len, sends)) in (0..).zip(&steps) {
            let now = Time::from_millis(10 * ms);
            if sends {
                let front = queue.front(now, &mut stats).map(|(packet, _)| packet.to_vec());
                if let Some(front) = front {
                    let number = u32::from_be_bytes(front[24..28].try_into().unwrap());
                    let last = &mut newest[usize::from(front[21])];
                    prop_assert!(number > *last);
                    *last = number;
                    gone += 1;
                }
                queue.pop();
            } else {
                number += 1;
                let mut packet = packet(flow, len, 0);
                packet[24..28].copy_from_slice(&number.to_be_bytes());
                accepted += u64::from(queue.push(now, PacketRef::read(&packet), false, &mut stats));
            }
            let dropped = stats.packets_dropped_codel + stats.packets_dropped_ingress;
            prop_assert!(queue.len() <= packets_max);
            prop_assert_eq!(accepted, gone + dropped + queue.len() as u64);
        }
    }

    /// RFC 8290, Section 1.2: backlogged flows get equal bytes whatever their packet sizes.
    #[test]
    fn backlogged_flows_share_by_bytes(lens in proptest::collection::vec(40usize..1_500, 3)) {
        let (mut queue, mut stats) = (FairQueue::new(10_000, PARAMS, 7), Stats::default());
        for (flow, &len) in (0..).zip(&lens) {
            for _ in 0..40_000 / len {
                queue.push(Time::ZERO, PacketRef::read(&packet(flow, len, 0)), false, &mut stats);
            }
        }
        let mut bytes = [0i64; 3];
        while let Some((flow, len)) = send(&mut queue, Time::ZERO, &mut stats) {
            bytes[usize::from(flow)] += len as i64;
            // While all three are backlogged.
            if bytes.iter().any(|&bytes| bytes > 36_000) {
                break;
            }
        }
        let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
        prop_assert!(most - least <= 2 * INGRESS_QUANTUM, "{:?}", bytes);
    }
}

/// QUIC: full packets with long headers, so a flow that is delivered in order.
fn quic() -> Vec<u8> {
    let mut quic = packet(1, 1_400, 2);
    quic[28..35].copy_from_slice(&[0xc0, 0, 0, 0, 1, 0, 0]);
    quic
}

/// QUIC's first window arrives in one burst, and a late packet from it ends slow start: none of its
/// packets may leave before the flow is known to need order.
#[test]
fn all_of_a_first_window_goes_in_order() {
    let params = CodelParams { target: Duration::from_secs(1), interval: Duration::from_secs(1) };
    for (in_window, expected) in [(10, Need::Order), (3, Need::Unknown)] {
        let (mut queue, mut stats) = (FairQueue::new(100, params, 1), Stats::default());
        queue.order_by_need(UdpDelivery::AUTO);
        for _ in 0..in_window {
            queue.push(Time::ZERO, PacketRef::read(&quic()), false, &mut stats);
        }
        let mut needs = Vec::new();
        while let Some((_, need)) = queue.front(Time::ZERO, &mut stats) {
            needs.push(need);
            queue.pop();
        }
        assert_eq!(needs, vec![expected; in_window]);
    }
}

/// Packets delivered in order may have to wait again at the other end, so their queue must not
/// stand as long as others', whatever CoDel's marks achieve. A burst released by a repair is
/// tolerated.
#[test]
fn what_goes_in_order_stands_for_a_shorter_time_and_bursts_pass() {
    let params =
        CodelParams { target: Duration::from_secs(1), interval: Duration::from_millis(200) };
    for (at_once, every_ms) in [(120, 1_000), (2, 1)] {
        let (mut queue, mut stats) = (FairQueue::new(5_000, params, 1), Stats::default());
        queue.order_by_need(UdpDelivery::AUTO);
        let mut longest_ms = 0;
        for ms in 0..5_000 {
            let now = Time::from_millis(ms);
            let count = if ms % every_ms == 0 { at_once } else { 0 };
            for _ in 0..count {
                let mut quic = quic();
                quic[40..48].copy_from_slice(&ms.to_be_bytes());
                queue.push(now, PacketRef::read(&quic), false, &mut stats);
            }
            if let Some((front, _)) = queue.front(now, &mut stats) {
                let since = u64::from_be_bytes(front[40..48].try_into().unwrap());
                longest_ms = if ms < 1_000 { 0 } else { longest_ms.max(ms - since) };
                queue.pop();
            }
        }
        let dropped = stats.packets_dropped_codel;
        let expected = if at_once == 2 { (4_000..5_000, 90..=101) } else { (0..1, 115..=120) };
        assert!(
            expected.0.contains(&dropped) && expected.1.contains(&longest_ms),
            "{at_once} at once: {dropped} dropped, stayed for {longest_ms} ms"
        );
    }
}

#[test]
fn what_comes_on_credit_is_neither_dropped_nor_marked_whatever_its_stay() {
    let (mut queue, mut stats) = (FairQueue::new(2_000, PARAMS, 1), Stats::default());
    for number in 0..900u64 {
        let now = Time::from_millis(10 * number);
        queue.push(now, PacketRef::read(&packet(1, 1_400, 1)), true, &mut stats);
        queue.push(now, PacketRef::read(&packet(2, 1_400, 0)), false, &mut stats);
    }
    let bytes = 1_400 * 900;
    assert_eq!(queue.kept_bytes(), bytes);
    let now = Time::from_millis(20_000);
    let mut kept = 0;
    while let Some((front, _)) = queue.front(now, &mut stats) {
        kept += usize::from(front[21] == 1 && front[1] & 3 == 1);
        queue.pop();
    }
    assert_eq!((kept, queue.kept_bytes()), (900, 0));
    assert!(stats.packets_dropped_codel > 0, "the others' flow is told");
}
