//! Point-to-point links: known answers, the queue's bound, and comparison with a simple twin.

use std::collections::VecDeque;

use corridor_air::{
    ErasureConfig, ErasureError, GilbertElliott, LossTrace, MAX_QUEUE_PACKETS, MAX_SPAN, Pipe,
    PipeConfig, PipeError,
};
use corridor_base::StreamKey;
use proptest::prelude::*;

use super::*;

const KEY: StreamKey = StreamKey { seed: SEED, replication: 0, entity: 3, purpose: "erasure" };

/// 1000 bytes take 4 ms, and arrive 100 ms later.
fn config() -> PipeConfig {
    PipeConfig::new(2_000_000, Duration::from_millis(100), 200, ErasureConfig::NONE)
}

fn pipe(config: &PipeConfig) -> Pipe<u64> {
    Pipe::new(config, KEY).expect("a valid configuration")
}

/// All remaining deliveries, with their times.
fn drain(pipe: &mut Pipe<u64>) -> Vec<(Time, u64)> {
    let mut delivered = Vec::new();
    while let Some(at) = pipe.poll_timeout() {
        delivered.push((at, pipe.poll_delivery(at).expect("it said so")));
    }
    delivered
}

#[test]
fn packets_take_their_bits_one_after_the_other_and_then_the_delay() {
    let mut pipe = pipe(&config());
    assert_eq!(pipe.poll_timeout(), None);
    assert_eq!(pipe.offer(ms(10), 1000, 1), Ok(None));
    assert_eq!(pipe.offer(ms(10), 500, 2), Ok(None));
    assert_eq!(pipe.offer(ms(12), 1000, 3), Ok(None));
    // The transmitter is idle from 20 ms on.
    assert_eq!(pipe.offer(ms(50), 250, 4), Ok(None));
    assert_eq!(pipe.poll_delivery(ms(113)), None, "a millisecond early");
    assert_eq!(drain(&mut pipe), [(ms(114), 1), (ms(116), 2), (ms(120), 3), (ms(151), 4)]);
    let stats = pipe.stats();
    assert_eq!((stats.offered, stats.sent_packets(), stats.sent_bytes), (4, 4, 2750));
    assert_eq!(stats.busy_ns, 11_000_000);
}

#[test]
fn a_transmission_is_rounded_up_to_a_whole_nanosecond() {
    let mut pipe =
        pipe(&PipeConfig { rate: 3_000_000_000.into(), delay: Duration::ZERO, ..config() });
    pipe.offer(Time::ZERO, 1, 1).expect("there is room");
    assert_eq!(drain(&mut pipe), [(Time::from_nanos(3), 1)], "8 bits take 2.67 ns");
}

#[test]
fn the_queue_holds_its_bound_besides_the_packet_being_sent() {
    let mut pipe = pipe(&PipeConfig { queue: 2.into(), ..config() });
    let offers: Vec<_> = (0..5).map(|packet| pipe.offer(ms(0), 1000, packet)).collect();
    let refused: Vec<_> =
        offers.iter().filter_map(|offer| offer.as_ref().err().map(|full| full.frame)).collect();
    assert_eq!(refused, [3, 4], "one is being sent and two wait");
    assert_eq!(pipe.backlog(ms(0)), 2);
    // A nanosecond before the end of the first transmission, and at it.
    assert!(pipe.offer(Time::from_nanos(3_999_999), 1000, 5).is_err());
    assert_eq!(pipe.backlog(ms(4)), 1);
    assert!(pipe.offer(ms(4), 1000, 6).is_ok());
    assert_eq!(pipe.backlog(ms(4)), 2);
    assert_eq!(pipe.backlog(ms(100)), 0);
    let packets: Vec<_> = drain(&mut pipe).into_iter().map(|(_, packet)| packet).collect();
    assert_eq!(packets, [0, 1, 2, 6]);
    assert_eq!((pipe.stats().offered, pipe.stats().refused), (7, 3));
}

#[test]
fn lost_packets_come_back_at_once_and_take_their_time_all_the_same() {
    let trace = LossTrace::parse(b"010").expect("a trace");
    let mut pipe = pipe(&PipeConfig { erasure: ErasureConfig::Trace(trace), ..config() });
    let offers: Vec<_> = (0..4).map(|packet| pipe.offer(ms(0), 1000, packet)).collect();
    assert_eq!(offers, [Ok(None), Ok(Some(1)), Ok(None), Ok(None)]);
    assert_eq!(drain(&mut pipe), [(ms(104), 0), (ms(112), 2), (ms(116), 3)]);
    assert_eq!((pipe.stats().erased, pipe.stats().sent_packets()), (1, 4));
}

#[test]
fn the_end_of_time_is_survived() {
    let mut pipe = pipe(&config());
    for packet in 0..3 {
        pipe.offer(Time::MAX, 1000, packet).expect("there is room");
    }
    assert_eq!(drain(&mut pipe).len(), 3);
}

#[test]
fn the_same_key_loses_the_same_packets() {
    let lossy = PipeConfig { erasure: 0.3.into(), queue: 2_000.into(), ..config() };
    let lost = |key| -> Vec<u64> {
        let mut pipe = Pipe::new(&lossy, key).expect("a valid configuration");
        (0..1_000).filter_map(|packet| pipe.offer(ms(0), 100, packet).expect("room")).collect()
    };
    assert_eq!(lost(KEY), lost(KEY));
    assert_binomial(lost(KEY).len() as u64, 1_000, 0.3);
    assert_ne!(lost(KEY), lost(StreamKey { entity: 4, ..KEY }));
    assert_ne!(lost(KEY), lost(StreamKey { replication: 1, ..KEY }));
}

/// A simple twin of the pipe: keeps a list of waiting packets and scans it at every offer.
fn twin(
    offers: &[(u64, u32)],
    config: &PipeConfig,
    queue_packets: usize,
) -> (Vec<bool>, Vec<(Time, u64)>) {
    let (mut idle_at, mut waiting) = (0, VecDeque::new());
    let (mut taken, mut delivered) = (Vec::new(), Vec::new());
    for (number, &(now, len_bytes)) in offers.iter().enumerate() {
        waiting.retain(|&begin| begin > now);
        let begin = now.max(idle_at);
        taken.push(begin == now || waiting.len() < queue_packets);
        if begin == now || waiting.len() < queue_packets {
            if begin > now {
                waiting.push_back(begin);
            }
            idle_at = begin + (u64::from(len_bytes) * 8_000_000_000).div_ceil(2_000_000);
            let at = Time::from_nanos(idle_at) + config.delay;
            delivered.push((at, number as u64));
        }
    }
    (taken, delivered)
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn does_what_its_twin_does(
        gaps in prop::collection::vec((0_u64..3_000_000, 0_u32..1500), 1..80),
        queue_packets in 1_usize..5, delay_us in 0_u64..20_000,
    ) {
        let delay = Duration::from_micros(delay_us);
        let config = PipeConfig { queue: queue_packets.into(), delay, ..config() };
        let mut now = 0;
        let offers: Vec<_> = gaps.iter().map(|&(gap, len)| { now += gap; (now, len) }).collect();
        let (taken, expected) = twin(&offers, &config, queue_packets);
        let (mut pipe, mut delivered) = (pipe(&config), Vec::new());
        for (number, &(now, len_bytes)) in offers.iter().enumerate() {
            let now = Time::from_nanos(now);
            while let Some(at) = pipe.poll_timeout().filter(|&at| at <= now) {
                delivered.push((at, pipe.poll_delivery(now).expect("it said so")));
            }
            prop_assert!(pipe.backlog(now) <= queue_packets);
            prop_assert_eq!(pipe.offer(now, len_bytes, number as u64).is_ok(), taken[number]);
        }
        delivered.append(&mut drain(&mut pipe));
        prop_assert_eq!(delivered, expected);
    }
}

#[test]
fn a_configuration_that_cannot_be_is_refused_by_name() {
    let refused = |change: fn(&mut PipeConfig), expected: &str| {
        let mut config = config();
        change(&mut config);
        let error: PipeError = Pipe::<u64>::new(&config, KEY).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    refused(|c| c.rate = 0.into(), "rate_bps is 0, expected 1 or more");
    refused(|c| c.delay = MAX_SPAN * 2, "delay is 120s, expected at most 60s");
    refused(|c| c.queue = 0.into(), "queue_packets is 0, expected 1 to 65536");
    refused(
        |c| c.queue = (MAX_QUEUE_PACKETS + 1).into(),
        "queue_packets is 65537, expected 1 to 65536",
    );
    refused(|c| c.erasure = 1.5.into(), "erasure_ratio is 1.5, expected 0 to 1");
    refused(
        |c| c.erasure = ErasureConfig::GilbertElliott(GilbertElliott::simple(0.1, 0.5)),
        "burst_packets is 0.5, expected 1 or more",
    );
    let nan = PipeConfig { erasure: f64::NAN.into(), ..config() };
    assert!(matches!(nan.check(), Err(PipeError::Erasure(ErasureError::Ratio { .. }))));
}
