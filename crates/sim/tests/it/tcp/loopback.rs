//! Whatever the line does, everything offered is delivered once and in order, the window is
//! respected, and nothing is retransmitted that is known to have arrived (the line itself checks
//! the last two).

use std::time::Duration;

use corridor_base::StreamKey;
use corridor_base::rand::Rng;
use corridor_sim::tcp::{
    Acks, ReceiverConfig, Reduction, RtoEstimator, RttSampling, SenderConfig, Variant, VegasConfig,
    WINDOW_PACKETS_LIMIT,
};
use proptest::prelude::*;

use super::line::{Fate, Line, LineConfig};

/// Packets in a transfer.
const PACKETS: u64 = 120;
/// Steps after which a transfer counts as stuck.
const STEPS_MAX: u64 = 1_000_000;

/// Disturbances of a line, in thousandths of its transmissions.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    lost: u32,
    duplicated: u32,
    late: u32,
    /// Windows set to zero.
    shut: u32,
}

/// Runs a transfer to its end.
fn transfer(sender: SenderConfig, receiver: ReceiverConfig, trouble: Trouble, seed: u64) -> Line {
    let key = StreamKey { seed, replication: 0, entity: 0, purpose: "toy line" };
    let mut stream = key.stream();
    let fate = Box::new(move |_, _| {
        let mut happens = |thousandths| stream.next_u32() % 1000 < thousandths;
        let copies =
            u32::from(!happens(trouble.lost)) * (1 + u32::from(happens(trouble.duplicated)));
        let late = Duration::from_millis(if happens(trouble.late) { 30 } else { 0 });
        Fate { copies, late, shut: happens(trouble.shut) }
    });
    let line = LineConfig { rate_bps: 2_000_000, delay: Duration::from_millis(20), fate };
    let mut line = Line::new(sender, receiver, line);
    line.sender.offer(PACKETS);
    let mut delivered = 0;
    for _ in 0..STEPS_MAX {
        if line.sender.is_done() {
            assert_eq!(line.receiver.delivered(), PACKETS);
            assert_eq!(line.receiver.out_of_order(), 0);
            return line;
        }
        assert!(line.step().is_some(), "nothing will ever happen again");
        assert!((delivered..=PACKETS).contains(&line.receiver.delivered()));
        delivered = line.receiver.delivered();
    }
    panic!("stuck at {delivered} of {PACKETS}");
}

fn variants() -> impl Strategy<Value = Variant> {
    prop_oneof![
        Just(Variant::Tahoe),
        Just(Variant::Reno),
        Just(Variant::NewReno),
        Just(Variant::Sack),
        Just(Variant::Cubic),
        Just(Variant::Vegas(VegasConfig::default())),
    ]
}

fn estimators() -> impl Strategy<Value = RtoEstimator> {
    let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "rto" };
    prop_oneof![
        Just(RtoEstimator::RFC6298),
        Just(RtoEstimator::Fixed(Duration::from_millis(300))),
        Just(RtoEstimator::FirstSample { k: 4 }),
        Just(RtoEstimator::Coap { key }),
    ]
}

fn senders() -> impl Strategy<Value = SenderConfig> {
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (variants(), estimators(), switches, 1_u32..40, 1_u32..5).prop_map(
        |(variant, estimator, (limited, careful, flight, timestamps, ecn), window, initial)| {
            let mut config = SenderConfig::ns2(variant);
            config.limited_transmit = limited;
            config.careful = careful;
            config.reduction = if flight { Reduction::Flight } else { Reduction::Window };
            config.rtt_sampling =
                if timestamps { RttSampling::Timestamps } else { RttSampling::OnePacket };
            config.ecn = ecn;
            config.window_packets_max = window;
            config.initial_window_packets = initial;
            config.rto.estimator = estimator;
            config
        },
    )
}

fn receivers() -> impl Strategy<Value = ReceiverConfig> {
    let window = prop_oneof![Just(None), (1_u32..40).prop_map(Some)];
    (any::<bool>(), any::<bool>(), any::<bool>(), 1_u32..4, window).prop_map(
        |(keeps_out_of_order, sack, positive, delayed_ack_packets, window)| ReceiverConfig {
            keeps_out_of_order,
            delayed_ack_packets,
            window_packets_max: window.unwrap_or(WINDOW_PACKETS_LIMIT),
            tells_window: window.is_some(),
            acks: if positive { Acks::Positive } else { Acks::Cumulative },
            ..ReceiverConfig::ns2(sack)
        },
    )
}

fn troubles() -> impl Strategy<Value = Trouble> {
    (0_u32..600, 0_u32..200, 0_u32..200, 0_u32..200)
        .prop_map(|(lost, duplicated, late, shut)| Trouble { lost, duplicated, late, shut })
}

proptest! {
    #![proptest_config(corridor_testing::cases!(400))]

    #[test]
    fn everything_arrives_once_and_in_order(
        sender in senders(),
        receiver in receivers(),
        trouble in troubles(),
        seed in any::<u64>(),
    ) {
        transfer(sender, receiver, trouble, seed);
    }
}

#[test]
fn nine_of_ten_lost() {
    let trouble = Trouble { lost: 900, duplicated: 0, late: 0, shut: 0 };
    for variant in [Variant::Reno, Variant::Sack] {
        let line = transfer(SenderConfig::rfc(variant), ReceiverConfig::ns2(true), trouble, 7);
        assert!(line.sender.stats().timeouts > 100);
    }
}

/// Go-back-N sends at least as much as with a receiver that buffers what is out of order.
#[test]
fn discarding_costs_transmissions() {
    let trouble = Trouble { lost: 50, duplicated: 0, late: 0, shut: 0 };
    let sent = |receiver| {
        let runs = (0..20).map(|seed| {
            let line = transfer(SenderConfig::ns2(Variant::Reno), receiver, trouble, seed);
            line.sender.stats().packets_sent
        });
        runs.sum::<u64>()
    };
    let (keeps, discards) = (sent(ReceiverConfig::ns2(false)), sent(ReceiverConfig::go_back_n()));
    assert!(discards > keeps, "{discards} and {keeps}");
}
