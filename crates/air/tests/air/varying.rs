//! Pipes that vary: known answers for each kind, the throughput of a sender that always has a
//! packet, and independence of rates from traffic.

use corridor_air::{Address, RateError, RateTraceError};
use corridor_air::{
    ErasureConfig, Jitter, Line, LineConfig, OPPORTUNITY_BYTES, OutageConfig, Pipe, PipeConfig,
    PolicerConfig, QueueLimit, RateConfig, RateSteps, RateTrace, RateWalk,
};
use corridor_base::StreamKey;
use proptest::prelude::*;

use super::*;

const KEY: StreamKey = StreamKey { seed: SEED, replication: 0, entity: 3, purpose: "erasure" };

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn config(rate: impl Into<RateConfig>) -> PipeConfig {
    PipeConfig::new(rate, Duration::ZERO, 1_000, ErasureConfig::NONE)
}

fn steps(steps: &[(u64, u64)], period: Option<u64>) -> RateConfig {
    let steps = steps.iter().map(|&(at, bps)| (secs(at), bps)).collect();
    RateConfig::Steps(RateSteps { steps, period: period.map(secs) })
}

fn trace(text: &str) -> RateConfig {
    RateConfig::Trace(RateTrace::parse(text).expect("a trace"))
}

/// Arrival times of packets offered at these times, milliseconds; `None` for those refused.
fn arrivals(config: &PipeConfig, offers: &[(u64, u32)]) -> Vec<Option<u64>> {
    let mut pipe = Pipe::new(config, KEY).expect("a valid configuration");
    let mut arrived = vec![None; offers.len()];
    for (number, &(at, len_bytes)) in offers.iter().enumerate() {
        let _ = pipe.offer(ms(at), len_bytes, number);
    }
    while let Some(at) = pipe.poll_timeout() {
        let number = pipe.poll_delivery(at).expect("it said so");
        assert_eq!(at.as_nanos() % 1_000_000, 0, "{number} arrives at {at}");
        arrived[number] = Some(at.as_nanos() / 1_000_000);
    }
    arrived
}

#[test]
fn a_transmission_goes_on_at_the_rate_that_it_changes_to() {
    // 1 Mbit/s, from 1 s on 2, nothing from 2 s to 3 s, then again.
    let rate = steps(&[(0, 1_000_000), (1, 2_000_000), (2, 0)], Some(3));
    assert_eq!(rate.mean_bps(), 1_000_000.0);
    let offers = [(0, 1_000), (996, 1_000), (1_996, 1_000), (1_996, 1_000), (2_500, 250)];
    let expected = [8, 1_002, 2_000, 3_008, 3_010].map(Some);
    assert_eq!(arrivals(&config(rate.clone()), &offers), expected);
    // Refused packets do not change anything for later ones.
    let short = PipeConfig { queue: QueueLimit::Time(Duration::from_millis(600)), ..config(rate) };
    let offers = [(2_100, 1_000), (2_500, 1_000)];
    assert_eq!(arrivals(&short, &offers), [None, Some(3_008)]);
}

#[test]
fn opportunities_carry_1504_bytes_each_and_begin_again() {
    // Three repetitions of 10 ms; two opportunities at the end of each.
    let rate = trace("2\n7\n10\n10\n");
    assert_eq!(rate.mean_bps(), 4.0 * 8.0 * 1_504.0 / 0.010);
    let full = OPPORTUNITY_BYTES;
    // One packet each; the third and fourth at once; the next repetition; then half an opportunity
    // goes unused.
    let offers = [(0, full), (0, full), (0, full), (0, full), (0, full), (13, 752), (13, full)];
    let expected = [2, 7, 10, 10, 12, 17, 20].map(Some);
    assert_eq!(arrivals(&config(rate.clone()), &offers), expected);
    // Two packets share one opportunity; a long one takes two; one that arrives after an
    // opportunity has missed it.
    let offers = [(0, 752), (0, 752), (3, 2 * full), (11, 1)];
    assert_eq!(arrivals(&config(rate), &offers), [2, 2, 10, 12].map(Some));
}

#[test]
fn a_trace_says_which_line_cannot_be() {
    let refused = |text: &str, expected: &str| {
        let error: RateTraceError = RateTrace::parse(text).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    refused("1\nx\n", "line 2 is \"x\", expected milliseconds, 1 to 86400000");
    refused("5\n\n4\n", "line 3 is \"4\", expected milliseconds, 5 to 86400000");
    refused("-1", "line 1 is \"-1\", expected milliseconds, 0 to 86400000");
    refused("86400001", "line 1 is \"86400001\", expected milliseconds, 0 to 86400000");
    refused("", "the trace has no lines, expected milliseconds, one a line");
    refused("0\n0\n", "the last line is 0, expected the trace's length in milliseconds");
}

#[test]
fn outages_stop_the_link_and_cost_opportunities() {
    let outages = Some(OutageConfig { up: secs(2), down: secs(1), is_random: false });
    let fluid = PipeConfig { outages, ..config(1_000_000) };
    let offers = [(0, 1_000), (1_996, 1_000), (2_500, 1_000)];
    assert_eq!(arrivals(&fluid, &offers), [8, 3_004, 3_012].map(Some));
    let traced = PipeConfig { outages, ..config(trace("1500\n")) };
    let offers = [(0, 1_504), (0, 1_504), (1_501, 1_504)];
    // At 3 s the link is up again, which is an opportunity.
    assert_eq!(arrivals(&traced, &offers), [1_500, 3_000, 4_500].map(Some));
}

#[test]
fn rates_begin_again_when_they_are_told_to() {
    let rate = steps(&[(0, 1_000_000), (1, 0)], Some(10));
    let mut pipe = Pipe::new(&config(rate), KEY).expect("valid");
    pipe.offer(ms(2_000), 1_000, 0).expect("there is room");
    assert_eq!(pipe.poll_timeout(), Some(ms(10_008)));
    // Accepted packets keep their times, and later ones wait for them.
    pipe.restart_rates(ms(10_500));
    pipe.poll_delivery(ms(10_500));
    pipe.offer(ms(10_996), 1_000, 1).expect("there is room");
    assert_eq!(pipe.poll_timeout(), Some(ms(11_004)));
    pipe.poll_delivery(ms(11_004));
    pipe.offer(ms(11_600), 1_000, 2).expect("there is room");
    assert_eq!(pipe.poll_timeout(), Some(ms(20_508)));
}

#[test]
fn draws_have_the_same_rates_and_outages_and_packets_of_their_own() {
    let rates_bps = vec![500_000, 4_000_000];
    let rate = RateConfig::Markov { rates_bps, dwell: Duration::from_millis(50) };
    let (up, down) = (Duration::from_millis(200), Duration::from_millis(20));
    let outages = Some(OutageConfig { up, down, is_random: true });
    let steady = PipeConfig { outages, ..config(rate) };
    let jitter = Jitter::Exponential(Duration::from_millis(2));
    let varied = PipeConfig { jitter, erasure: 0.3.into(), ..steady.clone() };
    // When the transmitter has sent everything, and which packets arrive when.
    let carried = |config: &PipeConfig, draw| {
        let mut pipe = Pipe::drawn(config, KEY, draw).expect("valid");
        for number in 0..1_000 {
            pipe.offer(ms(2 * number), 500, number).expect("there is room");
        }
        let idle_at = pipe.idle_at();
        let mut arrived = Vec::new();
        while let Some(at) = pipe.poll_timeout() {
            arrived.push((at, pipe.poll_delivery(at).expect("it said so")));
        }
        (idle_at, arrived)
    };
    let (first, second) = (carried(&varied, 1), carried(&varied, 2));
    assert_eq!(first.0, second.0, "rates and outages hang on time alone");
    assert_ne!(first.1, second.1);
    let numbers = |arrived: &[(Time, u64)]| arrived.iter().map(|&(_, it)| it).collect::<Vec<_>>();
    assert_ne!(numbers(&first.1), numbers(&second.1), "others are lost");
    // Draws differ only where something is random for each packet.
    assert_eq!(carried(&steady, 1), carried(&steady, 2));
}

#[test]
fn queues_are_limited_in_bytes_or_in_time() {
    let bytes = PipeConfig { queue: QueueLimit::Bytes(1_500), ..config(1_000_000) };
    // The first is sent at once; 1,500 bytes wait; when the first has been sent there is room
    // again.
    let offers = [(0, 1_000), (0, 1_000), (0, 600), (0, 500), (8, 1_000)];
    assert_eq!(arrivals(&bytes, &offers), [Some(8), Some(16), None, Some(20), Some(28)]);
    let time =
        PipeConfig { queue: QueueLimit::Time(Duration::from_millis(10)), ..config(1_000_000) };
    let offers = [(0, 1_000), (0, 1_000), (0, 1_000), (6, 1_000)];
    assert_eq!(arrivals(&time, &offers), [Some(8), Some(16), None, Some(24)]);
}

#[test]
fn a_policer_drops_what_exceeds_its_bucket() {
    let policer = Some(PolicerConfig { rate_bps: 1_000_000, burst_bytes: 2_000 });
    let policed = PipeConfig { policer, ..config(8_000_000) };
    let offers = [(0, 1_000), (0, 1_000), (0, 1_000), (8, 1_000), (12, 1_000), (1_000, 2_000)];
    let expected = [Some(1), Some(2), None, Some(9), None, Some(1_002)];
    assert_eq!(arrivals(&policed, &offers), expected);
    let mut pipe = Pipe::new(&policed, KEY).expect("valid");
    for number in 0..5 {
        let _ = pipe.offer(ms(0), 1_000, number);
    }
    let stats = pipe.stats();
    assert_eq!((stats.offered, stats.policed, stats.refused, stats.sent_packets()), (5, 3, 0, 2));
}

#[test]
fn jitter_keeps_the_order_or_does_not() {
    const PACKETS: usize = 20_000;
    let mean = Duration::from_millis(20);
    let order = |reorders, jitter| {
        let pipe = PipeConfig { jitter, reorders, ..config(1_000_000_000) };
        let mut pipe = Pipe::new(&pipe, KEY).expect("valid");
        let mut delays = Vec::new();
        let (mut last, mut overtaken) = (0, 0);
        for number in 0..PACKETS {
            let now = ms(2 * number as u64);
            pipe.offer(now, 125, number).expect("there is room");
            let next = ms(2 * number as u64 + 2);
            while let Some(at) = pipe.poll_timeout().filter(|&at| at < next) {
                let arrived = pipe.poll_delivery(at).expect("it said so");
                overtaken += usize::from(arrived < last);
                last = last.max(arrived);
                delays.push(at.since(ms(2 * arrived as u64)).as_secs_f64());
            }
        }
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        (mean, overtaken)
    };
    // Here, the standard error of the mean of exponential times is a 141st of it.
    let (delay, overtaken) = order(true, Jitter::Exponential(mean));
    assert!((0.0193..0.0207).contains(&delay), "{delay}");
    assert!(overtaken > PACKETS / 2, "{overtaken}");
    let (delay, overtaken) = order(false, Jitter::Exponential(mean));
    assert!(delay > 0.04, "the latest of many holds up the others: {delay}");
    assert_eq!(overtaken, 0);
    // With a normal distribution of 20 +- 5 ms, no value is below zero.
    let deviation = Duration::from_millis(5);
    let (delay, _) = order(true, Jitter::Normal { mean, deviation });
    assert!((0.0198..0.0202).contains(&delay), "{delay}");
}

#[test]
fn random_rates_have_their_means() {
    let hours = ms(3_600_000 * 4);
    let mean_of = |rate: RateConfig, outages| {
        let config = PipeConfig { outages, ..config(rate) };
        config.capacity_bits(KEY, ms(0), hours).expect("valid") / hours.as_secs_f64()
    };
    let near = |given: f64, expected: f64, share: f64| {
        assert!((given / expected - 1.0).abs() < share, "{given}, expected {expected}");
    };
    let rates_bps = vec![1_000_000, 4_000_000, 10_000_000];
    let markov = RateConfig::Markov { rates_bps, dwell: secs(1) };
    assert_eq!(markov.mean_bps(), 5_000_000.0);
    // 14,400 changes of rate.
    near(mean_of(markov, None), 5e6, 0.02);
    let interval = Duration::from_millis(100);
    let (least_bps, most_bps) = (1_000_000, 8_000_000);
    let walk = RateConfig::Walk(RateWalk { least_bps, most_bps, interval, deviation: 0.3 });
    near(mean_of(walk.clone(), None), walk.mean_bps(), 0.03);
    let outages = OutageConfig { up: secs(3), down: secs(1), is_random: true };
    assert_eq!(outages.up_share(), 0.75);
    near(mean_of(1_000_000.into(), Some(outages)), 750_000.0, 0.03);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |rate: RateConfig, expected: &str| {
        let error: RateError = rate.check().expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    refused(steps(&[(1, 1)], None), "the first of steps is at 1s, expected 0 s");
    refused(
        steps(&[(0, 1), (0, 2)], None),
        "steps[1] is at 0ns, expected later than 0ns, the one before",
    );
    refused(steps(&[(0, 1), (2, 0)], None), "the last of steps is 0, expected 1 or more");
    refused(steps(&[(0, 0), (2, 0)], Some(3)), "the greatest of steps is 0, expected 1 or more");
    refused(
        steps(&[(0, 1), (2, 0)], Some(2)),
        "period is 2s, expected more than 2s, the last step, at most an hour",
    );
    let markov =
        |rates_bps: &[u64], dwell| RateConfig::Markov { rates_bps: rates_bps.into(), dwell };
    refused(markov(&[1], secs(1)), "rates_bps has 1 entries, expected 2 to 64");
    refused(markov(&[0, 0], secs(1)), "the greatest of rates_bps is 0, expected 1 or more");
    refused(markov(&[1, 0], secs(0)), "dwell is 0ns, expected 100µs to 3600s");
    let walk = |least_bps, most_bps, deviation| {
        RateConfig::Walk(RateWalk { least_bps, most_bps, interval: secs(1), deviation })
    };
    refused(walk(2, 2, 0.1), "most_bps is 2, expected more than least_bps, which is 2");
    refused(walk(1, 2, f64::NAN), "deviation is NaN, expected more than 0, at most 10");
}

fn any_rate() -> impl Strategy<Value = RateConfig> {
    let markov = (proptest::collection::vec(0_u64..5_000_000, 2..5), 1_u64..400);
    let walk = (1_000_u64..1_000_000, 2_u64..20, 1_u64..200, 0.01..2.0);
    let listed = proptest::collection::vec((1_u64..300, 0_u64..4_000_000), 1..6);
    prop_oneof![
        (1_000_u64..10_000_000).prop_map(RateConfig::from),
        markov.prop_map(|(mut rates_bps, dwell)| {
            rates_bps[0] += 1_000;
            RateConfig::Markov { rates_bps, dwell: Duration::from_millis(dwell) }
        }),
        walk.prop_map(|(least_bps, times, interval, deviation)| {
            let interval = Duration::from_millis(interval);
            RateConfig::Walk(RateWalk {
                least_bps,
                most_bps: times * least_bps,
                interval,
                deviation,
            })
        }),
        listed.prop_map(|listed| {
            let mut at = Duration::ZERO;
            let mut steps = Vec::new();
            for (ms, bps) in listed {
                steps.push((at, bps + 1_000));
                at += Duration::from_millis(ms);
            }
            RateConfig::Steps(RateSteps { steps, period: Some(at) })
        }),
        proptest::collection::vec(0_u32..30, 1..40).prop_map(|gaps| {
            let times = gaps.iter().scan(1, |at, gap| {
                *at += gap;
                Some(format!("{at}\n"))
            });
            RateConfig::Trace(RateTrace::parse(&times.collect::<String>()).expect("a trace"))
        }),
    ]
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn a_sender_that_always_has_a_packet_gets_the_capacity(
        rate in any_rate(), up_ms in 1_u64..500, down_ms in 0_u64..200, len_bytes in 40_u32..1_500,
    ) {
        let outages = (down_ms > 0).then(|| OutageConfig {
            up: Duration::from_millis(up_ms),
            down: Duration::from_millis(down_ms),
            is_random: true,
        });
        let config = PipeConfig { outages, ..config(rate) };
        let mut pipe = Pipe::new(&config, KEY).expect("valid");
        let end = ms(3_000);
        let (mut now, mut sent) = (Time::ZERO, 0_u64);
        while pipe.idle_at() < end {
            now = now.max(pipe.idle_at());
            pipe.offer(now, len_bytes, ()).expect("nothing waits");
            pipe.poll_delivery(Time::MAX).expect("nothing is lost");
            sent += u64::from(pipe.idle_at() < end);
        }
        let capacity = config.capacity_bits(KEY, Time::ZERO, end).expect("valid");
        let bits = 8.0 * f64::from(len_bytes) * sent as f64;
        // Less the packet in transmission, and a nanosecond's worth of bits for each packet sent.
        let least = capacity - 8.0 * f64::from(len_bytes) - 1.0 - 0.01 * sent as f64;
        prop_assert!(bits <= capacity + 1.0, "{bits} of {capacity}");
        prop_assert!(bits >= least, "{bits} of {capacity}");
    }

    #[test]
    fn rates_do_not_hang_on_what_is_sent(
        rate in any_rate(), early in proptest::collection::vec((0_u64..2_000, 1_u32..3_000), 0..50),
    ) {
        let config = config(rate);
        let mut early = early;
        early.sort_unstable();
        let mut used = Pipe::new(&config, KEY).expect("valid");
        for &(at, len_bytes) in &early {
            let _ = used.offer(ms(at), len_bytes, ());
        }
        // When all of that has been sent, both find the same rates.
        let begin = ms(200_000);
        prop_assume!(used.idle_at() < begin);
        let mut fresh = Pipe::new(&config, KEY).expect("valid");
        for pipe in [&mut used, &mut fresh] {
            pipe.offer(begin, 1_000, ()).expect("there is room");
        }
        prop_assert_eq!(used.idle_at(), fresh.idle_at());
    }
}

#[test]
fn a_line_carries_both_ways_by_streams_of_their_own() {
    let mut pipe = config(1_000_000);
    pipe.erasure = 0.5.into();
    pipe.delay = Duration::from_millis(1);
    let pipes = [pipe.clone(), PipeConfig { rate: 2_000_000.into(), ..pipe }];
    let (seed, replication, draw) = (SEED, 0, 0);
    let config =
        LineConfig { pipes, header_bytes: 25, pushes_back: false, seed, replication, draw };
    let mut line: Line = Line::new(&config).expect("valid");
    line.keep_transmissions();
    for number in 0..100_u8 {
        for from in [0, 1] {
            let to = Address::Station(1 - from);
            line.offer(Time::ZERO, from, to, vec![number; 100]).expect("both are there");
        }
    }
    assert!(line.offer(Time::ZERO, 2, Address::All, vec![0; 100]).is_err());
    let mut heard = [Vec::new(), Vec::new()];
    while let Some(now) = line.poll_timeout() {
        assert_eq!(line.poll_delivery(), None, "not before it is due");
        line.handle_timeout(now);
        while let Some(delivery) = line.poll_delivery() {
            // 1 ms or 0.5 ms of transmission time each, and 1 ms of delay.
            let each = [1_000_000, 500_000][delivery.from];
            let number = u64::from(delivery.frame[0]) + 1;
            assert_eq!(delivery.at, Time::from_nanos(1_000_000 + number * each));
            assert_eq!(delivery.to, 1 - delivery.from);
            heard[delivery.to].push(number);
        }
    }
    assert_ne!(heard[0], heard[1]);
    for (from, to) in [(0, 1), (1, 0)] {
        let (sent, received) = (line.stats(from), line.stats(to));
        assert_eq!((sent.offered, sent.sent_frames, sent.sent_bytes), (100, 100, 12_500));
        assert_eq!(sent.delivered, heard[to].len() as u64);
        assert_eq!(
            (sent.delivered, sent.undelivered),
            (received.received_frames, 100 - sent.delivered)
        );
        assert_eq!(received.received_bytes, 125 * sent.delivered);
    }
    let kept: Vec<_> = std::iter::from_fn(|| line.poll_transmission()).collect();
    let carried = kept.iter().filter(|sent| sent.hearers[0].1).count();
    assert_eq!((kept.len(), carried), (200, heard[0].len() + heard[1].len()));
}

/// A second of 2 Mbit/s and one of 0.5 behind a policer of 1 Mbit/s: what the slow second leaves
/// unused does not help the fast one.
#[test]
fn a_policer_in_front_of_a_rate_that_varies_passes_the_lesser_of_both_at_each_time() {
    let mut config = config(steps(&[(0, 2_000_000), (1, 500_000)], Some(2)));
    config.policer = Some(PolicerConfig { rate_bps: 1_000_000, burst_bytes: 3_000 });
    let bits = config.capacity_bits(KEY, Time::ZERO, ms(20_000)).expect("valid");
    // The bucket is full at the beginning of each fast second.
    let most = 10.0 * (1_000_000.0 + 500_000.0 + 24_000.0);
    assert!((15_000_000.0..=most).contains(&bits), "{bits}");
}

/// A sender that sends whenever there is room fills the line, without frames that wait or are
/// policed.
#[test]
fn a_line_that_pushes_back_is_filled_without_a_wait() {
    for policer in [None, Some(PolicerConfig { rate_bps: 600_000, burst_bytes: 3_000 })] {
        let mut pipe = config(1_000_000);
        pipe.policer = policer;
        let pipes = [pipe.clone(), pipe];
        let (seed, replication, draw) = (SEED, 0, 0);
        let config =
            LineConfig { pipes, header_bytes: 0, pushes_back: true, seed, replication, draw };
        let mut line: Line = Line::new(&config).expect("valid");
        line.keep_waits();
        let mut now = Time::ZERO;
        while now < ms(10_000) {
            line.handle_timeout(now);
            while line.poll_delivery().is_some() {}
            let _ = line.poll_room();
            if line.has_room(0) {
                line.offer(now, 0, Address::Station(1), vec![0; 1_250]).expect("it is there");
                assert!(!line.has_room(0));
            }
            now = line.poll_timeout().expect("it sends");
        }
        let sent = line.stats(0);
        let bps = policer.map_or(1_000_000, |policer| policer.rate_bps);
        let expected = 10 * bps / 10_000;
        assert_eq!(sent.dropped, 0);
        assert!((expected..expected + 4).contains(&sent.sent_frames), "{}", sent.sent_frames);
        let waited = line.pipe(0).and_then(Pipe::waits).map(|waits| waits.max());
        assert!(waited.is_some_and(|ns| ns < 10_000), "{waited:?} ns");
    }
}
