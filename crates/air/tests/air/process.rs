//! Erasure processes: their means, their bursts, and invalid ones.

use corridor_air::{
    ErasureConfig, ErasureError, GilbertElliott, LossTrace, MAX_TRACE_RUNS, Pipe, PipeConfig,
};
use corridor_base::StreamKey;

use super::*;

const PACKETS: usize = 200_000;

/// Which of [`PACKETS`] packets a link loses.
fn losses(erasure: ErasureConfig) -> Vec<bool> {
    losses_of(erasure, SEED)
}

fn losses_of(erasure: ErasureConfig, seed: u64) -> Vec<bool> {
    let config = PipeConfig::new(1, Duration::ZERO, 1, erasure);
    let key = StreamKey { seed, replication: 0, entity: 0, purpose: "erasure" };
    let mut pipe = Pipe::new(&config, key).expect("a valid configuration");
    let lost = |packet| pipe.offer(Time::ZERO, 0, packet).expect("it takes no time").is_some();
    (0..PACKETS).map(lost).collect()
}

fn count(losses: &[bool]) -> u64 {
    losses.iter().filter(|&&lost| lost).count() as u64
}

/// Lengths of the runs of losses.
fn bursts(losses: &[bool]) -> Vec<usize> {
    losses.split(|&lost| !lost).map(<[bool]>::len).filter(|&len| len > 0).collect()
}

fn gilbert(config: GilbertElliott) -> ErasureConfig {
    ErasureConfig::GilbertElliott(config)
}

/// Asserts a share within five standard deviations. In a Markov chain whose memory decays by a
/// factor of 1 - p - r at each step, neighbours are correlated: the variance is larger by (2 - p -
/// r) / (p + r) than that of independent ones.
#[track_caller]
fn assert_share(given: f64, expected: f64, forgotten: f64) {
    let variance = expected * (1.0 - expected) / PACKETS as f64;
    let margin = 5.0 * (variance * (2.0 - forgotten) / forgotten).sqrt();
    assert!((given - expected).abs() <= margin, "{given}, expected {expected} +- {margin}");
}

#[test]
fn bursts_have_the_mean_ratio_and_the_mean_length() {
    for (ratio, length) in [(0.1, 4.0), (0.01, 10.0), (0.3, 1.5), (0.5, 1.0), (0.6, 50.0)] {
        let losses = losses(gilbert(GilbertElliott::simple(ratio, length)));
        let to_good = 1.0 / length;
        let to_bad = to_good * ratio / (1.0 - ratio);
        assert_share(count(&losses) as f64 / PACKETS as f64, ratio, to_bad + to_good);

        let bursts = bursts(&losses);
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        // Geometric: the variance is (1 - r) / r^2.
        let deviation = (length * (length - 1.0) / bursts.len() as f64).sqrt();
        let margin = 5.0 * deviation + length / bursts.len() as f64;
        assert!((mean - length).abs() <= margin, "{mean}, expected {length} +- {margin}");
    }
}

/// Chi-square test of burst lengths against the geometric distribution.
#[test]
fn burst_lengths_are_geometric() {
    const CLASSES: usize = 12;
    let bursts = bursts(&losses(gilbert(GilbertElliott::simple(0.2, 4.0))));
    let mut seen = [0.0; CLASSES];
    bursts.iter().for_each(|&len| seen[len.min(CLASSES) - 1] += 1.0);
    let (mut chi_square, mut rest) = (0.0, 1.0);
    for (class, seen) in seen.iter().enumerate() {
        let share = if class + 1 == CLASSES { rest } else { rest * 0.25 };
        rest -= share;
        let expected = share * bursts.len() as f64;
        chi_square += (seen - expected) * (seen - expected) / expected;
    }
    // With 11 degrees of freedom, it is below this with probability 1 - 1e-6.
    assert!(chi_square < 49.0, "{chi_square}");
}

#[test]
fn both_states_may_lose_a_share() {
    let config = GilbertElliott {
        loss_ratio: 0.2,
        burst_packets: 10.0,
        good_loss_ratio: 0.05,
        bad_loss_ratio: 0.8,
    };
    let losses = losses(gilbert(config));
    // The bad state has a fifth of the time: (0.2 - 0.05) / (0.8 - 0.05).
    let (to_good, to_bad) = (0.1, 0.1 * 0.2 / 0.8);
    assert_share(count(&losses) as f64 / PACKETS as f64, 0.2, to_good + to_bad);
    // Both of two neighbours are lost with E[e_i e_j] = e^2 + s (1 - s) (b - g)^2 (1 - p - r).
    let both = losses.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    let expected = 0.04 + 0.16 * 0.75 * 0.75 * (1.0 - to_good - to_bad);
    assert_share(both / PACKETS as f64, expected, to_good + to_bad);
}

#[test]
fn a_chain_without_memory_is_bernoulli() {
    // With p + r = 1 the next state does not depend on this one.
    let losses = losses(gilbert(GilbertElliott::simple(0.25, 4.0 / 3.0)));
    assert_binomial(count(&losses), PACKETS as u64, 0.25);
    let both = losses.chunks(2).filter(|pair| pair[0] && pair[1]).count() as u64;
    assert_binomial(both, PACKETS as u64 / 2, 0.0625);
}

#[test]
fn the_first_state_is_drawn_by_its_share() {
    let config = gilbert(GilbertElliott::simple(0.3, 1000.0));
    let first = |seed| {
        let config = PipeConfig::new(1, Duration::ZERO, 1, config.clone());
        let key = StreamKey { seed, replication: 0, entity: 0, purpose: "erasure" };
        Pipe::new(&config, key).expect("valid").offer(Time::ZERO, 0, ()).expect("room").is_some()
    };
    assert_binomial((0..4000).filter(|&seed| first(seed)).count() as u64, 4000, 0.3);
}

#[test]
fn the_same_seed_loses_the_same() {
    let config = gilbert(GilbertElliott::simple(0.1, 4.0));
    assert_eq!(losses(config.clone()), losses(config.clone()));
    assert_ne!(losses(config.clone()), losses_of(config, SEED + 1));
}

#[test]
fn a_lower_ratio_loses_a_subset() {
    let (low, high) = (losses(0.2.into()), losses(0.4.into()));
    assert!(low.iter().zip(&high).all(|(low, high)| high >= low));
    assert_binomial(count(&low), PACKETS as u64, 0.2);
    assert_binomial(count(&high), PACKETS as u64, 0.4);
}

#[test]
fn zero_never_and_one_always_loses() {
    assert_eq!(count(&losses(0.0.into())), 0);
    assert_eq!(count(&losses(1.0.into())), PACKETS as u64);
    assert_eq!(count(&losses(gilbert(GilbertElliott::simple(0.0, 7.0)))), 0);
}

#[test]
fn a_trace_is_lost_as_it_was_and_begins_again() {
    let text = b"1 0 0 1 1\n0 0";
    let trace = LossTrace::parse(text).expect("a trace");
    assert_eq!((trace.packets(), trace.loss_ratio()), (7, 3.0 / 7.0));
    let expected: Vec<bool> =
        text.iter().filter(|byte| !byte.is_ascii_whitespace()).map(|&byte| byte == b'1').collect();
    let losses = losses(ErasureConfig::Trace(trace.clone()));
    assert!(losses.iter().zip(expected.iter().cycle()).all(|(lost, expected)| lost == expected));
    assert_eq!(LossTrace::from_runs([0, 1, 2, 2, 2]), Ok(trace), "the same in runs");
}

#[test]
fn long_runs_and_empty_runs_are_runs() {
    let long = LossTrace::from_runs([u32::MAX, 0, 7, 1]).expect("a trace");
    assert_eq!(long.packets(), u64::from(u32::MAX) + 8);
    assert_eq!(count(&losses(ErasureConfig::Trace(long))), 0, "the loss comes later");
    let all = LossTrace::from_runs([0, 5]).expect("a trace");
    assert_eq!(count(&losses(ErasureConfig::Trace(all))), PACKETS as u64);
    let none = LossTrace::parse(b"0").expect("a trace");
    assert_eq!(count(&losses(ErasureConfig::Trace(none))), 0);
}

#[test]
fn a_trace_that_cannot_be_is_refused() {
    let refused =
        |result: Result<LossTrace, ErasureError>| result.expect_err("no trace").to_string();
    assert_eq!(
        refused(LossTrace::parse(b"01x")),
        "trace has byte 0x78 at offset 2, expected 0, 1 and white space"
    );
    assert_eq!(refused(LossTrace::parse(b" \n")), "trace has 0 packets, expected 1 or more");
    assert_eq!(refused(LossTrace::from_runs([0, 0])), "trace has 0 packets, expected 1 or more");
    let many = core::iter::repeat_n(1, MAX_TRACE_RUNS + 1);
    assert_eq!(LossTrace::from_runs(many), Err(ErasureError::TraceRuns));
}

#[test]
fn a_chain_that_cannot_be_is_refused_by_name() {
    let simple = GilbertElliott::simple(0.1, 4.0);
    let refused = |config: GilbertElliott, expected: &str| {
        assert_eq!(gilbert(config).check().expect_err(expected).to_string(), expected);
    };
    let bad = GilbertElliott { bad_loss_ratio: 1.5, ..simple };
    refused(bad, "bad_loss_ratio is 1.5, expected 0 to 1");
    let bad = GilbertElliott { good_loss_ratio: 0.9, bad_loss_ratio: 0.5, ..simple };
    refused(bad, "good_loss_ratio is 0.9, expected 0 to 0.5");
    let bad = GilbertElliott { good_loss_ratio: 0.2, ..simple };
    refused(bad, "loss_ratio is 0.1, expected 0.2 to 1");
    let always = GilbertElliott::simple(1.0, 4.0);
    refused(always, "loss_ratio is 1, expected less than bad_loss_ratio");
    refused(GilbertElliott::simple(0.75, 2.0), "burst_packets is 2, expected 3 or more");
    refused(GilbertElliott::simple(0.1, f64::NAN), "burst_packets is NaN, expected 1 or more");
    refused(GilbertElliott::simple(0.1, f64::INFINITY), "burst_packets is inf, expected 1 or more");
}

/// Links of a shared medium take any erasure process.
#[test]
fn stations_hear_in_bursts_too() {
    let mut config = mesh(Duplex::Full, 2, 0.0);
    config.links[0].erasure = gilbert(GilbertElliott::simple(0.3, 20.0));
    let trace = LossTrace::from_runs([3, 1]).expect("a trace");
    config.links[1].erasure = ErasureConfig::Trace(trace);
    let mut medium = medium(config);
    let senders = [(0, Address::All), (1, Address::All)];
    let heard = saturate(&mut medium, &senders, &FRAME, ms(20_000));
    let stats = |from, to| medium.link_stats(from, to).expect("there is such a link");
    assert_eq!(stats(1, 0).erased, stats(1, 0).transmissions / 4);
    // A frame every millisecond: a gap is a burst of losses.
    let at: Vec<_> =
        heard.iter().filter(|d| d.to == 1).map(|d| d.at.as_nanos() / 1_000_000).collect();
    let bursts = at.windows(2).filter(|pair| pair[1] > pair[0] + 1).count() as f64;
    let length = stats(0, 1).erased as f64 / bursts;
    assert!((15.0..25.0).contains(&length), "{length}");
}
