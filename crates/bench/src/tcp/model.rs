//! Simulates a path: `preset = "linux"` over the same two pipes as the kernel.

use core::time::Duration;

use corridor_air::{ErasureConfig, LossTrace, Pipe, PipeConfig};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_sim::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use corridor_sim::tcp::linux::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
use corridor_sim::{Network, Topology};

use crate::Outcome;
use crate::paths::Path;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// Payload delivered, bits per second.
    pub goodput_bps: f64,
    /// Fraction of packets retransmitted.
    pub retransmitted_ratio: f64,
}

/// Number of transmissions with losses drawn in advance: more than any path carries in a minute.
const TRANSMISSIONS: u32 = 300_000;

/// The losses of a pipe in the lab, identified by its direction, after those of the handshake.
fn losses(
    pipe: &PipeConfig,
    seed: u64,
    replication: u64,
    way: u64,
    handshake: u32,
) -> Outcome<ErasureConfig> {
    if pipe.erasure.loss_ratio() == 0.0 {
        return Ok(ErasureConfig::NONE);
    }
    let key = StreamKey { seed, replication, entity: way, purpose: "erasure" };
    let mut drawn = Pipe::new(pipe, key)?;
    let mut trace = Vec::new();
    for number in 0..handshake + TRANSMISSIONS {
        // One at a time: nothing is queued or dropped.
        let at = Time::from_millis(60_000 * u64::from(number));
        let lost = drawn.offer(at, 1, ()).is_ok_and(|lost| lost.is_some());
        drawn.poll_delivery(at);
        if number >= handshake {
            trace.push(if lost { b'1' } else { b'0' });
        }
    }
    Ok(ErasureConfig::Trace(LossTrace::parse(&trace)?))
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

/// Seeds of a run.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Seed of the paths.
    pub seed: u64,
    /// The kernel's replication, which determines the losses.
    pub replication: u64,
    /// Seed of the sender's own draws.
    pub draw: u64,
}

/// Simulates a number of links in series, each like the path's, for a given time.
pub fn simulate(
    path: &Path,
    hops: usize,
    name: &str,
    key: Key,
    seconds: f64,
) -> Outcome<Simulated> {
    let Key { seed, replication, draw } = key;
    let pipe = |way, handshake| -> Outcome<PipeConfig> {
        let erasure = losses(&path.pipe(), seed, replication, way, handshake)?;
        Ok(PipeConfig { erasure, ..path.pipe() })
    };
    let (forth, back) = (pipe(0, 2)?, pipe(1, 1)?);
    let mut topology = Topology { nodes: hops + 1, ..Topology::default() };
    for node in 0..hops as u32 {
        topology.pipes.push((node, node + 1, forth.clone()));
        topology.pipes.push((node + 1, node, back.clone()));
    }
    let mut network = Network::new(&topology, seed, replication)?;
    let draws = StreamKey { seed, replication, entity: draw, purpose: "sender" };
    let draws = draws.stream().next_u64();
    let config = LinuxSenderConfig { seed: draws, ..LinuxSenderConfig::new(congestion(name)?) };
    let (here, there) = FlowEnd::pair(0, 0, hops as u32);
    let source = TcpSource::new(here, Active::ALWAYS, Supply::Endless, config)?;
    let receiver = LinuxReceiverConfig::new(config.payload_bytes);
    let sink = TcpSink::new(there, config.header_bytes, receiver)?;
    let source = network.add_agent(0, 0, source)?;
    let sink = network.add_agent(hops as u32, 0, sink)?;
    network.run_until(Time::ZERO + Duration::try_from_secs_f64(seconds)?);
    let stats = network.agent::<TcpSource>(source).map(|source| source.sender().stats());
    let stats = stats.unwrap_or_default();
    let bytes = network.agent::<TcpSink>(sink).map_or(0, TcpSink::delivered_bytes);
    Ok(Simulated {
        goodput_bps: 8.0 * bytes as f64 / seconds,
        retransmitted_ratio: stats.retransmissions as f64 / stats.packets_sent.max(1) as f64,
    })
}
