//! The simulator on a path: `preset = "linux"` over the two pipes that the kernel had.

use corridor_base::Time;
use corridor_sim::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use corridor_sim::tcp::linux::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
use corridor_sim::{Network, Topology};

use crate::Outcome;
use crate::paths::Path;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// Payload delivered, bits per second.
    pub goodput_bps: f64,
    /// Packets sent again, of all.
    pub retransmitted_ratio: f64,
    /// Payload delivered by the end of each second, bytes.
    pub course_bytes: Vec<u64>,
    /// Timeouts.
    pub timeouts: u64,
    /// Congestion window and threshold at the end of each second.
    pub windows: Vec<(f64, f64)>,
}

/// The simulator's name for the kernel's.
fn congestion(name: &str) -> Outcome<Congestion> {
    match name {
        "cubic" => Ok(Congestion::Cubic),
        "reno" => Ok(Congestion::Reno),
        "bbr" => Ok(Congestion::Bbr),
        other => Err(format!("absent: the simulator has no congestion control {other}").into()),
    }
}

/// Runs it for whole seconds.
pub fn simulate(
    path: &Path,
    name: &str,
    seed: u64,
    replication: u64,
    seconds: u64,
) -> Outcome<Simulated> {
    let topology = Topology {
        nodes: 2,
        pipes: vec![(0, 1, path.pipe()), (1, 0, path.pipe())],
        radios: Vec::new(),
    };
    let mut network = Network::new(&topology, seed, replication)?;
    let draws = seed.wrapping_add(replication);
    let config = LinuxSenderConfig { seed: draws, ..LinuxSenderConfig::new(congestion(name)?) };
    let (here, there) = FlowEnd::pair(0, 0, 1);
    let source = TcpSource::new(here, Active::ALWAYS, Supply::Endless, config)?;
    let receiver = LinuxReceiverConfig::new(config.payload_bytes);
    let sink = TcpSink::new(there, config.header_bytes, receiver)?;
    let source = network.add_agent(0, 0, source)?;
    let sink = network.add_agent(1, 0, sink)?;
    let mut course_bytes = Vec::new();
    let mut windows = Vec::new();
    for second in 1..=seconds {
        network.run_until(Time::from_millis(1_000 * second));
        let delivered = network.agent::<TcpSink>(sink).map_or(0, TcpSink::delivered_bytes);
        course_bytes.push(delivered);
        let stats = network.agent::<TcpSource>(source).map(|source| source.sender().stats());
        windows.extend(stats.map(|stats| (stats.cwnd_packets, stats.ssthresh_packets)));
    }
    let stats = network.agent::<TcpSource>(source).map(|source| source.sender().stats());
    let stats = stats.unwrap_or_default();
    let bytes = course_bytes.last().copied().unwrap_or(0);
    Ok(Simulated {
        goodput_bps: 8.0 * bytes as f64 / seconds as f64,
        retransmitted_ratio: stats.retransmissions as f64 / stats.packets_sent.max(1) as f64,
        course_bytes,
        timeouts: stats.timeouts,
        windows,
    })
}
