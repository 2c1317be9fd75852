//! Scripts of exchanges between the two layers, and properties that hold for all of them.

use corridor_base::Time;
use corridor_codec::WindowOutcome::{Ahead, Dependent, Innovative};
use proptest::prelude::*;

use super::*;

const NOW: Time = Time::ZERO;
/// Bytes of a segment in the scripts.
const LEN: u16 = 10;

fn params(factor: f64) -> NcParams {
    NcParams {
        redundancy: Redundancy::Fixed { factor },
        buffer_segments: 16,
        segment_len_max: 40,
        ..NcParams::default()
    }
}

/// The two ends, and TCP's view of its segments: number `n` begins at `origin + n * LEN`.
struct Script {
    sender: NcSender,
    receiver: NcReceiver,
    origin: u32,
    delivered: Vec<Vec<u8>>,
}

impl Script {
    fn new(params: NcParams) -> Self {
        Script::from(params, 1000)
    }

    fn from(params: NcParams, origin: u32) -> Self {
        let sender = NcSender::new(params, 0x1234_5678_9ABC).unwrap();
        let receiver = NcReceiver::new(params).unwrap();
        Script { sender, receiver, origin, delivered: Vec::new() }
    }

    /// TCP sends segment `number`; returns the packets sent for it.
    fn send(&mut self, number: u32) -> Vec<Vec<u8>> {
        let (_, packets) = self.try_send(number);
        packets
    }

    fn try_send(&mut self, number: u32) -> (SegmentOutcome, Vec<Vec<u8>>) {
        let sequence = self.origin.wrapping_add(number * u32::from(LEN));
        let segment = Segment { sequence, len: LEN, stamp: number };
        let outcome = self.sender.handle_segment(segment, &bytes(number));
        (outcome, self.drain())
    }

    fn drain(&mut self) -> Vec<Vec<u8>> {
        core::iter::from_fn(|| self.sender.poll_transmit(NOW).map(<[u8]>::to_vec)).collect()
    }

    /// A packet arrives; returns its outcome, and the number of the segment acknowledged.
    fn arrive(&mut self, packet: &[u8]) -> (WindowOutcome, u32) {
        let outcome = self.receiver.handle_packet(packet).expect("is a packet");
        while let Some(segment) = self.receiver.poll_delivery() {
            self.delivered.push(segment.to_vec());
        }
        (outcome, self.acked())
    }

    fn acked(&self) -> u32 {
        let ack = self.receiver.ack().expect("something has arrived");
        ack.wrapping_sub(self.origin) / u32::from(LEN)
    }

    /// The acknowledgment reaches the sender; returns the packets sent for it.
    fn acknowledge(&mut self) -> Vec<Vec<u8>> {
        let (ack, feedback) = (self.receiver.ack().unwrap(), self.receiver.feedback());
        let _is_news = self.sender.handle_ack(NOW, ack, feedback.as_ref());
        self.drain()
    }

    fn delivered_in_order(&self) -> usize {
        for (number, segment) in self.delivered.iter().enumerate() {
            assert_eq!(*segment, bytes(number as u32), "segment {number}");
        }
        self.delivered.len()
    }
}

use corridor_codec::WindowOutcome;

/// What has to be delivered for a segment; it ends with zeros, and lengths differ.
fn bytes(number: u32) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(4 + number as usize % 9, 0);
    bytes
}

#[test]
fn without_losses_each_segment_is_seen_and_delivered_at_once() {
    let mut script = Script::new(params(1.0));
    for number in 0..100 {
        let packets = script.send(number);
        assert_eq!(packets.len(), 1);
        assert_eq!(script.arrive(&packets[0]), (Innovative, number + 1));
        assert_eq!(script.delivered_in_order(), number as usize + 1);
        assert!(script.acknowledge().is_empty());
        assert_eq!((script.sender.buffered(), script.receiver.undelivered()), (0, 0));
    }
}

#[test]
fn a_loss_is_masked_by_the_next_arrival_and_repaired_by_redundancy() {
    // Figure 1 of the paper, with R = 4/3: three segments cause 1, 1 and 2 packets.
    let mut script = Script::new(params(4.0 / 3.0));
    let [first, second, third] = [0, 1, 2].map(|number| script.send(number));
    assert_eq!([first.len(), second.len(), third.len()], [1, 1, 1]);
    let fourth = script.send(3);
    assert_eq!(fourth.len(), 2, "1 1/3, 2/3, 0 (in millionths .999999), then 1 1/3 and it");
    assert_eq!(script.arrive(&first[0]), (Innovative, 1));
    // The second is lost. The third makes the second segment seen, but decodes nothing.
    assert_eq!(script.arrive(&third[0]), (Innovative, 2));
    assert_eq!(script.delivered_in_order(), 1);
    assert_eq!(script.arrive(&fourth[0]), (Innovative, 3));
    assert_eq!(script.delivered_in_order(), 1);
    // The redundant packet supplies the last degree of freedom.
    assert_eq!(script.arrive(&fourth[1]), (Innovative, 4));
    assert_eq!(script.delivered_in_order(), 4);
}

#[test]
fn redundancy_that_was_not_needed_is_a_duplicate_acknowledgement() {
    let mut script = Script::new(params(2.0));
    let packets = script.send(0);
    assert_eq!(script.arrive(&packets[0]), (Innovative, 1));
    assert_eq!(script.arrive(&packets[1]), (Dependent, 1));
}

#[test]
fn tcp_does_not_hear_of_arrivals_that_were_of_no_use() {
    // Half of the packets are assumed lost, and none is: each segment arrives twice.
    let redundancy = Redundancy::Adaptive { loss_ratio: 0.5, factor_max: 4.0 };
    let mut script = Script::new(NcParams { redundancy, ..params(1.0) });
    let packets = script.send(0);
    assert_eq!(packets.len(), 4);
    let heard = [0, 1].map(|index| {
        script.arrive(&packets[index]);
        let (ack, feedback) = (script.receiver.ack().unwrap(), script.receiver.feedback());
        script.sender.handle_ack(NOW, ack, feedback.as_ref())
    });
    assert_eq!(heard, [true, false]);
    // An acknowledgment that no packet caused, such as the answer to a probe, is passed on to TCP.
    let (ack, feedback) = (script.receiver.ack().unwrap(), script.receiver.feedback());
    assert!(script.sender.handle_ack(NOW, ack, feedback.as_ref()));
    assert!(script.sender.handle_ack(NOW, ack, None));
    // The next acknowledgment makes up for one lost on the way back: that is news.
    let packets = script.send(1);
    script.arrive(&packets[0]);
    script.arrive(&packets[1]);
    let (ack, feedback) = (script.receiver.ack().unwrap(), script.receiver.feedback());
    assert!(script.sender.handle_ack(NOW, ack, feedback.as_ref()));
}

#[test]
fn seen_segments_leave_the_buffer_and_are_delivered_later_all_the_same() {
    let mut script = Script::new(params(1.0));
    let packets: Vec<_> = (0..4).flat_map(|number| script.send(number)).collect();
    for (index, packet) in packets[1..].iter().enumerate() {
        assert_eq!(script.arrive(packet), (Innovative, index as u32 + 1));
    }
    assert_eq!(script.delivered_in_order(), 0);
    script.acknowledge();
    assert_eq!(script.sender.buffered(), 1, "three were seen");
    // TCP's timer: the fourth is retransmitted. It alone is in the window.
    let (outcome, again) = script.try_send(3);
    assert_eq!((outcome, again.len()), (SegmentOutcome::Repeated, 1));
    assert_eq!(script.arrive(&again[0]), (Innovative, 4));
    assert_eq!(script.delivered_in_order(), 4);
    // What is acknowledged is not coded again.
    script.acknowledge();
    assert_eq!(script.try_send(1), (SegmentOutcome::Acknowledged, vec![]));
}

#[test]
fn a_retransmission_gives_a_fresh_combination() {
    let mut script = Script::new(params(1.0));
    let packets: Vec<_> = (0..3).flat_map(|number| script.send(number)).collect();
    assert_eq!(script.arrive(&packets[2]), (Innovative, 1));
    let again = script.send(1);
    assert_ne!(again[0], packets[1]);
    assert_eq!(script.arrive(&again[0]), (Innovative, 2));
    assert_eq!(script.arrive(&packets[1]), (Innovative, 3), "the original, late");
    assert_eq!(script.arrive(&packets[0]), (Dependent, 3));
    assert_eq!(script.delivered_in_order(), 3);
}

#[test]
fn reordering_costs_nothing() {
    let mut script = Script::new(params(1.0));
    let packets: Vec<_> = (0..8).flat_map(|number| script.send(number)).collect();
    for packet in packets.iter().rev() {
        assert_eq!(script.arrive(packet).0, Innovative);
    }
    assert_eq!(script.delivered_in_order(), 8);
}

#[test]
fn a_gap_is_left_to_tcp_and_a_full_buffer_is_a_queue() {
    let mut script = Script::new(params(1.0));
    script.send(0);
    assert_eq!(script.try_send(2), (SegmentOutcome::Gap, vec![]));
    for number in 1..16 {
        assert_eq!(script.try_send(number).0, SegmentOutcome::Added);
    }
    assert_eq!(script.try_send(16), (SegmentOutcome::Full, vec![]));
    assert_eq!((script.sender.buffered(), script.sender.stats().segments_dropped), (16, 1));
    let empty = Segment { sequence: 0, len: 0, stamp: 0 };
    assert_eq!(script.sender.handle_segment(empty, &[1]), SegmentOutcome::NotCodable);
    let long = Segment { sequence: 0, len: 50, stamp: 0 };
    assert_eq!(script.sender.handle_segment(long, &[1; 50]), SegmentOutcome::NotCodable);
}

#[test]
fn a_segment_cut_anew_keeps_what_is_new_of_it() {
    let mut script = Script::new(params(1.0));
    let first = script.send(0);
    // TCP retransmits the first segment, merged with the next one.
    let merged = Segment { sequence: script.origin, len: 2 * LEN, stamp: 0 };
    assert_eq!(script.sender.handle_segment(merged, b"both"), SegmentOutcome::Added);
    let second = script.drain();
    assert_eq!(script.arrive(&first[0]), (Innovative, 1));
    assert_eq!(script.arrive(&second[0]), (Innovative, 2));
    assert_eq!(script.delivered[1], b"both");
    // Half of each is known already.
    let middle = script.origin + u32::from(LEN / 2);
    let segment = Segment { sequence: middle, len: LEN, stamp: 0 };
    assert_eq!(script.sender.handle_segment(segment, b"half"), SegmentOutcome::Repeated);
}

#[test]
fn a_receiver_that_is_full_is_helped_by_retransmissions() {
    // The window has 32 segments. None of the first is ever decoded, because one packet in three is
    // lost; the sender goes on, because everything that arrives is acknowledged.
    let mut script = Script::new(params(1.0));
    let (mut number, mut ahead) = (0, false);
    while !ahead {
        let (outcome, packets) = script.try_send(number);
        number += u32::from(outcome == SegmentOutcome::Added);
        if number % 3 != 1
            && let Some(packet) = packets.first()
        {
            ahead = script.arrive(packet).0 == Ahead;
            script.acknowledge();
        }
    }
    assert_eq!(script.delivered_in_order(), 0);
    assert!(script.receiver.held() <= 32);
    // TCP's timer expires; it retransmits one by one from the oldest.
    for again in script.acked()..number {
        for packet in script.send(again) {
            assert_eq!(script.arrive(&packet).0, Innovative);
        }
        script.acknowledge();
        if script.acked() == number {
            break;
        }
    }
    assert_eq!(script.delivered_in_order(), number as usize);
}

#[test]
fn sequence_numbers_and_serials_wrap() {
    let mut script = Script::from(params(1.0), u32::MAX - 25);
    for number in 0..20 {
        for packet in script.send(number) {
            script.arrive(&packet);
        }
        script.acknowledge();
    }
    assert_eq!((script.delivered_in_order(), script.sender.buffered()), (20, 0));
}

#[test]
fn a_sender_that_restarts_is_followed_once() {
    let mut script = Script::new(params(1.0));
    let old = script.send(0);
    script.arrive(&old[0]);
    let late = script.send(1);
    // The station restarts; TCP goes on with segment 2.
    script.sender = NcSender::new(params(1.0), 7 << 32).unwrap();
    let new = script.send(2);
    assert_eq!(script.arrive(&new[0]), (Innovative, 3));
    assert_eq!(script.receiver.handle_packet(&late[0]), None);
    assert_eq!(script.receiver.stats().restarts, 1);
    assert_eq!(script.delivered, [bytes(0), bytes(2)]);
}

#[test]
fn segments_of_many_lengths_wait_for_the_header() {
    let mut script = Script::new(NcParams { buffer_segments: 64, ..params(1.0) });
    let mut sequence = 0;
    let mut sent = Vec::new();
    for number in 0..40_u16 {
        let len = 1 + number % 7;
        let segment = Segment { sequence, len, stamp: 0 };
        assert_eq!(script.sender.handle_segment(segment, &[number as u8]), SegmentOutcome::Added);
        sequence += u32::from(len);
        sent.extend(script.drain());
    }
    assert_eq!(sent.len(), RUNS_MAX, "the others do not fit into the header yet");
    while let Some(packet) = sent.pop() {
        assert_eq!(script.arrive(&packet).0, Innovative);
        if sent.is_empty() {
            sent = script.acknowledge();
        }
    }
    let expected: Vec<Vec<u8>> = (0..40).map(|number| vec![number]).collect();
    assert_eq!(script.delivered, expected);
}

#[test]
fn packets_that_contradict_are_refused() {
    let mut script = Script::new(params(1.0));
    let packets: Vec<_> = (0..2).flat_map(|number| script.send(number)).collect();
    script.arrive(&packets[0]);
    // The second packet, as if its segments were one byte longer.
    let mut forged = packets[1].clone();
    forged[wire::HEAD_LEN + 2] += 1;
    assert_eq!(script.receiver.handle_packet(&forged), None);
    assert_eq!((script.acked(), script.receiver.stats().malformed), (1, 1));
    assert_eq!(script.arrive(&packets[1]), (Innovative, 2));
}

#[test]
fn parameters_are_checked() {
    let told = |params: NcParams| params.check().unwrap_err().to_string();
    assert_eq!(told(params(0.9)), "redundancy is 0.9: expected a factor from 1 to 10");
    assert_eq!(told(params(f64::NAN)), "redundancy is NaN: expected a factor from 1 to 10");
    let redundancy = Redundancy::Adaptive { loss_ratio: 1.0, factor_max: 2.0 };
    let adaptive = NcParams { redundancy, ..params(1.0) };
    assert_eq!(told(adaptive), "loss_ratio is 1: expected a share from 0, below 1");
    let none = NcParams { buffer_segments: 0, ..params(1.0) };
    assert_eq!(told(none), "buffer_segments is 0: expected 1 to 512 segments");
    let long = NcParams { segment_len_max: 65_534, ..params(1.0) };
    assert_eq!(told(long), "segment_len_max is 65534: expected 1 to 65533 bytes");
}

/// The redundancies with which the properties are tested.
fn redundancies() -> impl Strategy<Value = Redundancy> {
    let adaptive = Redundancy::Adaptive { loss_ratio: 0.1, factor_max: 3.0 };
    prop_oneof![(1.0..2.0).prop_map(|factor| Redundancy::Fixed { factor }), Just(adaptive),]
}

proptest! {
    #![proptest_config(corridor_testing::cases!(64))]

    /// Packets are lost, duplicated and reordered, acknowledgments are lost, and TCP only
    /// retransmits the oldest segment from time to time: everything is delivered once and in order,
    /// nothing is acknowledged that was not seen, and memory is bounded.
    #[test]
    fn everything_comes_once_and_in_order(
        redundancy in redundancies(),
        field in prop_oneof![Just(Field::Gf2), Just(Field::Gf256)],
        fates in proptest::collection::vec(0..10_u8, 60..400),
        origin in any::<u32>(),
    ) {
        let params = NcParams { redundancy, field, ..params(1.0) };
        let mut script = Script::from(params, origin);
        let (mut number, mut acked) = (0, 0);
        let mut way: Vec<Vec<u8>> = Vec::new();
        for (step, &fate) in fates.iter().enumerate() {
            let (outcome, sent) = script.try_send(number);
            number += u32::from(outcome == SegmentOutcome::Added);
            way.extend(sent);
            if step % 4 == 3 {
                way.extend(script.send(acked));
            }
            script.sender.handle_timeout(Time::from_millis(10 * step as u64));
            way.extend(script.drain());
            while way.len() > usize::from(fate) % 4 {
                let packet = way.remove(usize::from(fate) % way.len());
                if fate < 3 {
                    continue;
                }
                let innovative = script.receiver.stats().innovative;
                let (outcome, ack) = script.arrive(&packet);
                prop_assert!(ack >= acked && ack <= number);
                prop_assert!(u64::from(ack) <= script.receiver.stats().innovative);
                prop_assert!(outcome == Innovative || script.receiver.stats().innovative == innovative);
                acked = ack;
                if fate == 9 {
                    script.arrive(&packet);
                }
                if fate % 2 == 0 {
                    way.extend(script.acknowledge());
                }
            }
            prop_assert!(script.sender.buffered() <= 16 && script.receiver.held() <= 32);
        }
        // From now on nothing is lost, and TCP retransmits what is not acknowledged.
        for _ in 0..600 {
            if acked == number {
                break;
            }
            let sent = script.send(acked);
            for packet in sent {
                acked = script.arrive(&packet).1;
            }
            if script.receiver.ack().is_some() {
                script.acknowledge();
            }
        }
        prop_assert_eq!(script.delivered_in_order(), number as usize);
    }

    #[test]
    fn whatever_arrives_is_no_panic(
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..40),
        runs in 0..3_u8,
    ) {
        let mut script = Script::new(params(1.0));
        let good = script.send(0);
        for packet in packets {
            // Near the sender's packets, and anywhere.
            let mut near = good[0].clone();
            near.iter_mut().skip(2).zip(&packet).for_each(|(place, byte)| *place ^= byte & 3);
            let mut forged = [&[0xC1, runs], &packet[..]].concat();
            for bytes in [&near, &packet, &forged.clone()] {
                let _outcome = script.receiver.handle_packet(bytes);
                while script.receiver.poll_delivery().is_some() {}
            }
            forged.reverse();
            let feedback = wire::Feedback::read(&packet).map(|(feedback, _)| feedback);
            let ack = packet.first_chunk().map_or(0, |&ack| u32::from_be_bytes(ack));
            let _is_news = script.sender.handle_ack(NOW, ack, feedback.as_ref());
            prop_assert!(script.receiver.held() <= 32);
        }
    }
}

/// Nothing was acknowledged in this case, and TCP ran into its timeout over and over.
#[test]
fn combinations_longer_than_the_window_are_acknowledged_and_what_is_repeated_is_decoded() {
    let short = NcParams { buffer_segments: 4, ..params(1.0) };
    let mut script = Script::new(params(1.0));
    script.receiver = NcReceiver::new(short).unwrap();
    let sent: Vec<_> = (0..12).flat_map(|number| script.send(number)).collect();
    // The first are lost; the others combine up to twelve.
    for packet in &sent[8..] {
        assert_eq!(script.arrive(packet), (Ahead, 0));
    }
    for number in 0..8 {
        let repeated = script.send(number);
        repeated.iter().for_each(|packet| assert_ne!(script.arrive(packet).0, Ahead));
    }
    assert_eq!(script.delivered.len(), 8);
}
