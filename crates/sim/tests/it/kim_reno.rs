//! Reno on the topology of network-coded-tcp-2012, Fig. 8, against ns-2 (Section VI-A).
//!
//! Two flows share four links of 2 Mbit/s and 100 ms with queues of 200 packets, for 1000 seconds.
//! Packets carry 1000 bytes of data, the maximum window is 50, and each link loses each packet with
//! probability q in both directions, so a share p = 1 - (1 - q)^4 of the data is lost.
//!
//! The expected values are ns-2.35's: goodput without headers, mean of both flows, over 100 runs.
//! The agents have ns-2's options, [`SenderConfig::ns2`] and [`ReceiverConfig::ns2`];
//! docs/decisions/0005-tcp-agents.md explains each.

use std::time::Duration;

use corridor_air::PipeConfig;
use corridor_base::Time;
use corridor_sim::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use corridor_sim::tcp::{
    ReceiverConfig, Reduction, RtoConfig, RtoEstimator, RttSampling, SenderConfig, Variant,
    VegasConfig,
};
use corridor_sim::{Network, Topology};

/// Simulated time of one run.
const DURATION_S: u64 = 1000;
/// Replications of the paper, and of the release run.
const REPLICATIONS_FULL: u64 = 100;
/// Largest relative deviation of the simulated Reno from ns-2's.
const TOLERANCE: f64 = 0.05;
/// Erasures of a link in each direction, and ns-2's goodput of a flow in Mbit/s.
const RENO: [(f64, f64); 3] = [(0.005, 0.0688), (0.015, 0.0330), (0.025, 0.0217)];

/// Erasures of the paper's five points.
const ERASURE_RATIOS: [f64; 5] = [0.0, 0.005, 0.015, 0.025, 0.05];
/// Replications of the ordinary tests, whose confidence intervals are wider.
const REPLICATIONS: u64 = 20;

/// The other agents of ns-2, and their goodput in Mbit/s at the points of [`RENO`].
fn others() -> [(&'static str, Variant, ReceiverConfig, [f64; 3]); 5] {
    let plain = ReceiverConfig::ns2(false);
    let delayed = ReceiverConfig { delayed_ack_packets: 2, ..plain };
    let vegas = Variant::Vegas(VegasConfig::default());
    [
        ("Tahoe", Variant::Tahoe, plain, [0.0630, 0.0324, 0.0219]),
        ("NewReno", Variant::NewReno, plain, [0.0759, 0.0358, 0.0231]),
        ("SACK", Variant::Sack, ReceiverConfig::ns2(true), [0.0749, 0.0350, 0.0220]),
        ("Vegas", vegas, plain, [0.1028, 0.0428, 0.0241]),
        ("Reno, delayed ACKs", Variant::Reno, delayed, [0.0534, 0.0262, 0.0164]),
    ]
}

/// Runs one replication; returns the goodput of each flow in Mbit/s.
fn fig8(
    sender: SenderConfig,
    receiver: ReceiverConfig,
    erasure_ratio: f64,
    replication: u64,
) -> [f64; 2] {
    let link = PipeConfig::new(2_000_000, Duration::from_millis(100), 200, erasure_ratio);
    let mut network = Network::new(&Topology::chain(5, &link), 2012, replication).unwrap();
    let sinks = [0, 1].map(|flow| {
        let (source, sink) = FlowEnd::pair(flow, 0, 4);
        let active = Active::ALWAYS;
        let source = TcpSource::new(source, active, Supply::Endless, sender).unwrap();
        network.add_agent(0, flow, source).unwrap();
        let sink = TcpSink::new(sink, sender.header_bytes, receiver).unwrap();
        network.add_agent(4, flow, sink).unwrap()
    });
    network.run_until(Time::from_millis(DURATION_S * 1000));
    sinks.map(|sink| {
        let sink: &TcpSink = network.agent(sink).unwrap();
        sink.delivered_bytes() as f64 * 8.0 / DURATION_S as f64 / 1e6
    })
}

/// ns-2's options, with the paper's window.
fn options(variant: Variant) -> SenderConfig {
    SenderConfig { window_packets_max: 50, ..SenderConfig::ns2(variant) }
}

/// Mean goodput of a flow over the replications, and the half-width of its 95 % interval.
fn goodput(
    sender: SenderConfig,
    receiver: ReceiverConfig,
    erasure_ratio: f64,
    replications: u64,
) -> (f64, f64) {
    let runs: Vec<f64> = (0..replications)
        .map(|replication| {
            let [first, second] = fig8(sender, receiver, erasure_ratio, replication);
            (first + second) / 2.0
        })
        .collect();
    let count = runs.len() as f64;
    let mean = runs.iter().sum::<f64>() / count;
    let variance = runs.iter().map(|run| libm::pow(run - mean, 2.0)).sum::<f64>() / (count - 1.0);
    (mean, 1.96 * (variance / count).sqrt())
}

/// Asserts that the mean is within [`TOLERANCE`] of `expected`, or within the accuracy of the
/// replications if these are few.
fn assert_near(what: &str, (mean, half_width): (f64, f64), expected: f64, replications: u64) {
    let doubt = if replications < REPLICATIONS_FULL { half_width } else { 0.0 };
    let error = (mean - expected).abs();
    assert!(
        error <= TOLERANCE * expected + doubt,
        "{what}: {mean:.4} +- {half_width:.4} Mbit/s, in ns-2 {expected:.4}"
    );
}

#[test]
fn reno_as_in_ns2() {
    for (q, expected) in RENO {
        let reno = goodput(options(Variant::Reno), ReceiverConfig::ns2(false), q, REPLICATIONS);
        assert_near(&format!("Reno at q = {q}"), reno, expected, REPLICATIONS);
    }
}

#[test]
fn without_erasures_the_window_limits() {
    let [first, second] = fig8(options(Variant::Reno), ReceiverConfig::ns2(false), 0.0, 0);
    assert!((first - second).abs() < 0.001, "{first} and {second} Mbit/s");
    assert_near("Reno, the paper's 0.50", (first, 0.0), 0.50, REPLICATIONS_FULL);
    assert!((first / 0.4873 - 1.0).abs() < 0.005, "{first} Mbit/s, in ns-2 .4873");
}

#[test]
fn the_other_variants_as_in_ns2() {
    for (name, variant, receiver, expected) in others() {
        for ((q, _), expected) in RENO.iter().zip(expected) {
            let found = goodput(options(variant), receiver, *q, REPLICATIONS);
            assert_near(&format!("{name} at q = {q}"), found, expected, REPLICATIONS);
        }
    }
}

/// A receiver that discards what is out of order makes Reno much slower: the paper's model of TCP
/// is more pessimistic than the TCP that the paper simulates.
#[test]
fn go_back_n_is_slower() {
    for (q, reno) in RENO {
        let (mean, half_width) =
            goodput(options(Variant::Reno), ReceiverConfig::go_back_n(), q, REPLICATIONS);
        assert!(mean + half_width < 0.7 * reno, "q = {q}: {mean:.4} +- {half_width:.4} Mbit/s");
    }
}

/// RFC 9438, equation 6: Cubic's average window in packets at a random loss ratio p; only at the
/// first point timeouts are rare enough for it.
#[test]
fn cubic_as_its_rfc_predicts() {
    let (erasure_ratio, rtt_s) = (0.005_f64, 0.817_f64);
    let loss_ratio = 1.0 - libm::pow(1.0 - erasure_ratio, 4.0);
    let window = libm::pow(0.4 * 3.7 / (4.0 * 0.3) * libm::pow(rtt_s / loss_ratio, 3.0), 0.25);
    let expected = window * 8000.0 / rtt_s / 1e6;
    let receiver = ReceiverConfig::ns2(true);
    let (mean, half_width) =
        goodput(options(Variant::Cubic), receiver, erasure_ratio, REPLICATIONS);
    assert!(
        (mean / expected - 1.0).abs() < 0.05,
        "{mean:.4} +- {half_width:.4} Mbit/s, predicted {expected:.4}"
    );
}

/// The acceptance run: `cargo test --release -p corridor-sim --test it -- kim_reno::full
/// --ignored --nocapture` prints goodput, its interval, and the processor's time.
#[test]
#[ignore = "100 replications of everything: some ten seconds in a release build"]
fn full() {
    let begun_ns = cpu_time_ns();
    for q in ERASURE_RATIOS {
        let found =
            goodput(options(Variant::Reno), ReceiverConfig::ns2(false), q, REPLICATIONS_FULL);
        println!("Reno        q = {q:.3}  {:.4} +- {:.4} Mbit/s", found.0, found.1);
        if let Some((_, expected)) = RENO.iter().find(|(ratio, _)| *ratio == q) {
            assert_near("Reno", found, *expected, REPLICATIONS_FULL);
        }
    }
    if let (Some(begun_ns), Some(ended_ns)) = (begun_ns, cpu_time_ns()) {
        let spent_s = (ended_ns - begun_ns) as f64 / 1e9;
        println!("5 points x {REPLICATIONS_FULL} replications: {spent_s:.1} CPU-s");
    }
    let cubic = ("Cubic", Variant::Cubic, ReceiverConfig::ns2(true));
    let go_back_n = ("go-back-N", Variant::Reno, ReceiverConfig::go_back_n());
    let others = others().map(|(name, variant, receiver, _)| (name, variant, receiver));
    for (name, variant, receiver) in others.into_iter().chain([cubic, go_back_n]) {
        for q in ERASURE_RATIOS {
            let found = goodput(options(variant), receiver, q, REPLICATIONS_FULL);
            println!("{name:11} q = {q:.3}  {:.4} +- {:.4} Mbit/s", found.0, found.1);
        }
    }
}

/// The effect of each option: the table of docs/decisions/0005-tcp-agents.md.
#[test]
#[ignore = "100 replications for each option: some ten seconds in a release build"]
fn one_option_changed() {
    let base = options(Variant::Reno);
    let rto = |rto: RtoConfig| SenderConfig { rto, ..base };
    let changed = [
        ("none", base),
        ("limited_transmit off", SenderConfig { limited_transmit: false, ..base }),
        ("careful off", SenderConfig { careful: false, ..base }),
        ("reduction of what is in flight", SenderConfig { reduction: Reduction::Flight, ..base }),
        ("timestamps", SenderConfig { rtt_sampling: RttSampling::Timestamps, ..base }),
        ("initial window 10", SenderConfig { initial_window_packets: 10, ..base }),
        ("rto.min 1 s", rto(RtoConfig { min: Duration::from_secs(1), ..base.rto })),
        ("rto.granularity 100 ms", {
            rto(RtoConfig { granularity: Duration::from_millis(100), ..base.rto })
        }),
        ("rto.forgets_beyond_backoff none", {
            rto(RtoConfig { forgets_beyond_backoff: None, ..base.rto })
        }),
        ("rto.estimator fixed at 3 s", {
            rto(RtoConfig { estimator: RtoEstimator::Fixed(Duration::from_secs(3)), ..base.rto })
        }),
        ("rto.backoff off", rto(RtoConfig { backoff: false, ..base.rto })),
    ];
    for (name, config) in changed {
        let goodputs =
            RENO.map(|(q, _)| goodput(config, ReceiverConfig::ns2(false), q, REPLICATIONS_FULL).0);
        println!("{name:34} {:.4} {:.4} {:.4}", goodputs[0], goodputs[1], goodputs[2]);
    }
}

/// Processor time used by this thread, if the system reports it.
fn cpu_time_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}
