//! Senders and receivers joined by a toy line: everything offered is delivered, once and in order.

use std::collections::BTreeMap;
use std::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_sim::tcp::{
    Receiver, ReceiverConfig, Segment, Sender, SenderConfig, Variant, VegasConfig,
};

/// One way takes so long.
const DELAY: Duration = Duration::from_millis(50);
/// Packets in a transfer.
const PACKETS: u64 = 300;

/// Runs a transfer over a line that loses `loss` of 1000 both ways; when it ended.
fn transfer(sender: SenderConfig, receiver: ReceiverConfig, loss: u32, seed: u64) -> Option<Time> {
    let mut sender = Sender::new(sender).unwrap();
    let mut receiver = Receiver::new(receiver).unwrap();
    let key = StreamKey { seed, replication: 0, entity: 0, purpose: "toy line" };
    let mut stream = key.stream();
    let mut line: BTreeMap<(Time, u64), Segment> = BTreeMap::new();
    let (mut now, mut sequence) = (Time::ZERO, 0);
    sender.offer(PACKETS);
    for _ in 0..1_000_000 {
        let mut sent = Vec::new();
        while let Some(segment) = sender.poll_transmit(now) {
            assert!(sender.in_flight() <= u64::from(sender.config().window_packets_max));
            sent.push(segment);
        }
        while let Some(segment) = receiver.poll_transmit(now) {
            sent.push(segment);
        }
        for segment in sent {
            sequence += 1;
            if stream.next_u32() % 1000 >= loss {
                line.insert((now + DELAY, sequence), segment);
            }
        }
        if sender.is_done() {
            assert_eq!(receiver.delivered(), PACKETS);
            return Some(now);
        }
        let arrival = line.keys().next().map(|key| key.0);
        now = [arrival, sender.poll_timeout(), receiver.poll_timeout()]
            .into_iter()
            .flatten()
            .min()?;
        sender.handle_timeout(now);
        receiver.handle_timeout(now);
        while let Some(entry) = line.first_entry().filter(|entry| entry.key().0 <= now) {
            let segment = entry.remove();
            sender.handle_segment(now, &segment);
            receiver.handle_segment(now, &segment);
        }
    }
    None
}

/// All variants, with a receiver that suits them.
fn variants() -> [(Variant, ReceiverConfig); 7] {
    [
        (Variant::Tahoe, ReceiverConfig::ns2(false)),
        (Variant::Reno, ReceiverConfig::ns2(false)),
        (Variant::NewReno, ReceiverConfig::ns2(false)),
        (Variant::Sack, ReceiverConfig::ns2(true)),
        (Variant::Cubic, ReceiverConfig::ns2(true)),
        (Variant::Vegas(VegasConfig::default()), ReceiverConfig::ns2(false)),
        (Variant::Reno, ReceiverConfig::go_back_n()),
    ]
}

#[test]
fn everything_arrives_whatever_is_lost() {
    for (variant, receiver) in variants() {
        for loss in [0, 10, 100, 300, 700] {
            for config in [SenderConfig::ns2(variant), SenderConfig::rfc(variant)] {
                let end = transfer(config, receiver, loss, 1);
                assert!(end.is_some(), "{variant:?}: {loss} of 1000 lost");
            }
        }
    }
}
