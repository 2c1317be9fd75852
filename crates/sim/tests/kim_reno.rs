//! Reno on the topology of network-coded-tcp-2012, Fig. 8, against ns-2 (Section VI-A).
//!
//! Two flows share four links of 2 Mbit/s, 100 ms and 200 packets of queue, for 1000 seconds;
//! packets have 1000 bytes of data, the maximum window is 50, and each link loses each packet with
//! probability q in both directions, so that p = 1 - (1 - q)^4 of the data is lost on the way.
//!
//! The figures are ns-2.35's: goodput without headers, mean of both flows, of 100 runs. The agents'
//! options are those of ns-2, [`SenderConfig::ns2`] and [`ReceiverConfig::ns2`], each of which is
//! explained in docs/decisions/0005-tcp-agents.md.

use std::time::Duration;

use corridor_air::{ErasureConfig, PipeConfig};
use corridor_base::Time;
use corridor_sim::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use corridor_sim::tcp::{ReceiverConfig, SenderConfig, Variant, VegasConfig};
use corridor_sim::{Network, Topology};

/// Simulated time of one run.
const DURATION_S: u64 = 1000;
/// Replications of the paper, and of the release run.
const REPLICATIONS_FULL: u64 = 100;
/// What simulated Reno may differ from ns-2's, as a share.
const TOLERANCE: f64 = 0.05;
/// Erasures of a link in each direction, and ns-2's goodput of a flow in Mbit/s.
const RENO: [(f64, f64); 3] = [(0.005, 0.0688), (0.015, 0.0330), (0.025, 0.0217)];

/// One run: goodput of each of the two flows in Mbit/s.
fn fig8(
    sender: SenderConfig,
    receiver: ReceiverConfig,
    erasure_ratio: f64,
    replication: u64,
) -> [f64; 2] {
    let link = PipeConfig {
        rate_bps: 2_000_000,
        delay: Duration::from_millis(100),
        queue_packets: 200,
        erasure: ErasureConfig::from(erasure_ratio),
    };
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
    let variance = runs.iter().map(|run| (run - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, 1.96 * (variance / count).sqrt())
}

#[test]
fn print() {
    for (name, variant, sack) in [
        ("Tahoe", Variant::Tahoe, false),
        ("Reno", Variant::Reno, false),
        ("NewReno", Variant::NewReno, false),
        ("SACK", Variant::Sack, true),
        ("Cubic", Variant::Cubic, true),
        ("Vegas", Variant::Vegas(VegasConfig::default()), false),
    ] {
        for (q, expected) in RENO {
            let (mean, half) = goodput(options(variant), ReceiverConfig::ns2(sack), q, 100);
            println!("{name} {q} {mean:.4} +- {half:.4} ({expected})");
        }
    }
    for (q, expected) in RENO {
        let (mean, half) = goodput(options(Variant::Reno), ReceiverConfig::go_back_n(), q, 100);
        println!("GBN {q} {mean:.4} +- {half:.4} ({expected})");
    }
}
