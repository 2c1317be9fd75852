//! Networks of wires with TCP over them.

use std::time::Duration;

use corridor_air::{ErasureConfig, PipeConfig};
use corridor_base::Time;
use corridor_sim::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use corridor_sim::tcp::{ReceiverConfig, SenderConfig, Variant};
use corridor_sim::{AgentIndex, Network, NodeIndex, Topology};

use crate::machine::cpu_time;
use crate::outcome::Outcome;

/// The links of network-coded-tcp-2012, Section VI: 2 Mbit/s, 100 ms, 200 packets.
fn link() -> PipeConfig {
    PipeConfig::new(2_000_000, Duration::from_millis(100), 200, ErasureConfig::NONE)
}

/// Reno as in ns-2, with the paper's window of 50 packets; 1000 bytes with 40 of headers.
fn reno() -> SenderConfig {
    SenderConfig { window_packets_max: 50, ..SenderConfig::ns2(Variant::Reno) }
}

fn add_flow(network: &mut Network, flow: u32, from: NodeIndex, to: NodeIndex) -> AgentIndex {
    let (here, there) = FlowEnd::pair(flow, from, to);
    let source = TcpSource::new(here, Active::ALWAYS, Supply::Endless, reno());
    let sink = TcpSink::new(there, reno().header_bytes, ReceiverConfig::ns2(false));
    let source = source.expect("the settings are within their ranges");
    network.add_agent(from, flow, source).expect("there is such a node");
    let sink = sink.expect("the settings are within their ranges");
    network.add_agent(to, flow, sink).expect("there is such a node")
}

/// The topology of network-coded-tcp-2012, Fig. 8, without losses: five nodes in a row, two flows
/// from the first to the last.
/// `live_bytes` says how much memory is in use.
pub fn chain(simulated_s: f64, live_bytes: fn() -> usize) -> Outcome {
    measure(&Topology::chain(5, &link()), &[(0, 4), (0, 4)], (0.0, simulated_s), live_bytes)
}

/// A ring of `nodes`, each with a flow to the fourth next one, over faster links, so that a larger
/// ring has the same traffic at every node. `node_s` is the simulated time, times nodes; flows have
/// already reached their rates.
pub fn ring(nodes: usize, node_s: f64, live_bytes: fn() -> usize) -> Outcome {
    let mut topology = Topology { nodes, ..Topology::default() };
    let node = |index: usize| (index % nodes) as NodeIndex;
    let fast = PipeConfig { rate: 10_000_000.into(), ..link() };
    (0..nodes).for_each(|at| topology.connect(node(at), node(at + 1), &fast));
    let flows: Vec<_> = (0..nodes).map(|at| (node(at), node(at + 4))).collect();
    measure(&topology, &flows, (20.0, node_s / nodes as f64), live_bytes)
}

fn measure(
    topology: &Topology,
    flows: &[(NodeIndex, NodeIndex)],
    (warm_up_s, simulated_s): (f64, f64),
    live_bytes: fn() -> usize,
) -> Outcome {
    let memory_before = live_bytes();
    let begin = cpu_time();
    let mut network = Network::new(topology, 1, 0).expect("the topology is sound");
    let mut sinks = Vec::with_capacity(flows.len());
    for (flow, &(from, to)) in flows.iter().enumerate() {
        sinks.push(add_flow(&mut network, flow as u32, from, to));
    }
    let delivered = |network: &Network| -> u64 {
        let sink = |&index| network.agent(index).map_or(0, TcpSink::delivered_bytes);
        sinks.iter().map(sink).sum()
    };
    let start = Time::ZERO + Duration::from_secs_f64(warm_up_s);
    network.run_until(start);
    let (before, payload_before) = (*network.stats(), delivered(&network));
    // Without a warm-up, building the network is part of the run.
    let begin = if warm_up_s > 0.0 { cpu_time() } else { begin };
    let simulated = Duration::from_secs_f64(simulated_s);
    network.run_until(start + simulated);
    let cpu = cpu_time() - begin;
    let after = network.stats();
    Outcome {
        cpu,
        simulated,
        events: after.events - before.events,
        packet_hops: after.packet_hops - before.packet_hops,
        payload_bytes: delivered(&network) - payload_before,
        flows: flows.len(),
        memory_bytes: live_bytes() - memory_before,
    }
}
