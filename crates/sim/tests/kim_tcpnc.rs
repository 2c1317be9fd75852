//! TCP/NC on the topology of network-coded-tcp-2012, Fig. 8 (Section VI).

use std::time::Duration;

use corridor_air::{ErasureConfig, PipeConfig};
use corridor_base::Time;
use corridor_proto::tcpnc::{NcParams, Redundancy};
use corridor_sim::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use corridor_sim::tcp::{ReceiverConfig, SenderConfig, Variant};
use corridor_sim::tcpnc::{NcSink, NcSource};
use corridor_sim::{Network, Topology};

/// What a run of two flows shows of one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    goodput: f64,
    srtt: f64,
    cwnd: f64,
    timeouts: u64,
    fast: u64,
    ahead: u64,
    dependent: u64,
    max_undelivered: usize,
}

fn run(
    q: f64,
    redundancy: Redundancy,
    buffer: u16,
    sender: SenderConfig,
    replication: u64,
) -> [Seen; 2] {
    let link = PipeConfig {
        rate_bps: 2_000_000,
        delay: Duration::from_millis(100),
        queue_packets: 200,
        erasure: ErasureConfig::from(q),
    };
    let mut network = Network::new(&Topology::chain(5, &link), 2012, replication).unwrap();
    let params = NcParams { redundancy, buffer_segments: buffer, ..NcParams::default() };
    let ends = [0, 1].map(|flow| {
        let (from, to) = FlowEnd::pair(flow, 0, 4);
        let source = TcpSource::new(from, Active::ALWAYS, Supply::Endless, sender).unwrap();
        let source =
            NcSource::new(source, from, 1040, params, replication * 2 + u64::from(flow) + 99)
                .unwrap();
        let source = network.add_agent(0, flow, source).unwrap();
        let sink = TcpSink::new(to, 40, ReceiverConfig::ns2(false)).unwrap();
        let sink = NcSink::new(sink, to, (1040, 40), params).unwrap();
        (source, network.add_agent(4, flow, sink).unwrap())
    });
    let mut seen = [Seen::default(); 2];
    for second in 1..=1000 {
        network.run_until(Time::from_millis(second * 1000));
        for (seen, (source, sink)) in seen.iter_mut().zip(ends) {
            let source: &NcSource<TcpSource> = network.agent(source).unwrap();
            let sink: &NcSink<TcpSink> = network.agent(sink).unwrap();
            let stats = source.inner().sender().stats();
            seen.goodput = sink.inner().delivered_bytes() as f64 * 8.0 / 1000.0 / 1e6;
            seen.srtt += stats.srtt.map_or(0.0, |s| s.as_secs_f64()) / 1000.0;
            seen.cwnd += stats.cwnd_packets.min(50.0) / 1000.0;
            seen.timeouts = stats.timeouts;
            seen.fast = stats.fast_retransmits;
            seen.ahead = sink.layer().stats().ahead;
            seen.dependent = sink.layer().stats().dependent;
            seen.max_undelivered = seen.max_undelivered.max(sink.layer().undelivered());
        }
    }
    seen
}

#[test]
#[ignore = "explore"]
fn explore() {
    let sender = SenderConfig { window_packets_max: 50, ..SenderConfig::ns2(Variant::Reno) };
    for (q, factor) in [(0.0, 1.0), (0.005, 1.03), (0.015, 1.09), (0.025, 1.13), (0.05, 1.29)] {
        let runs: Vec<[Seen; 2]> =
            (0..10).map(|r| run(q, Redundancy::Fixed { factor }, 512, sender, r)).collect();
        let mean = |f: &dyn Fn(&Seen) -> f64| runs.iter().flatten().map(f).sum::<f64>() / 20.0;
        println!(
            "{q} {factor}: goodput {:.4} x1.04 {:.4} srtt {:.4} cwnd {:.2} to {:.2} fast {:.2} ahead {:.2} dep {:.1} und {:.0}",
            mean(&|s| s.goodput),
            mean(&|s| s.goodput) * 1.04,
            mean(&|s| s.srtt),
            mean(&|s| s.cwnd),
            mean(&|s| s.timeouts as f64),
            mean(&|s| s.fast as f64),
            mean(&|s| s.ahead as f64),
            mean(&|s| s.dependent as f64),
            mean(&|s| s.max_undelivered as f64)
        );
    }
}
