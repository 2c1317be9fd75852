//! Wired networks: known answers, balanced counters, and reproducible runs.

use std::time::Duration;

use corridor_air::{ErasureConfig, GilbertElliott, PipeConfig};
use corridor_base::Time;
use corridor_sim::source::{
    Active, CbrConfig, CbrSource, DatagramSink, FlowEnd, Supply, TcpSink, TcpSource,
};
use corridor_sim::tcp::{ReceiverConfig, SenderConfig, Variant};
use corridor_sim::{AgentIndex, Network, NetworkError, NetworkStats, NodeIndex, Topology};
use proptest::prelude::*;

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// 2 Mbit/s, 100 ms: the links of network-coded-tcp-2012, Fig. 8.
fn link(erasure: impl Into<ErasureConfig>) -> PipeConfig {
    PipeConfig::new(2_000_000, Duration::from_millis(100), 200, erasure)
}

fn network(topology: &Topology) -> Network {
    Network::new(topology, 1, 0).expect("the topology is sound")
}

/// Adds a datagram flow with 1000 bytes a packet; returns the indices of source and sink.
fn add_cbr(
    network: &mut Network,
    flow: u32,
    (from, to): (NodeIndex, NodeIndex),
    interval_ms: u64,
    active: Active,
) -> (AgentIndex, AgentIndex) {
    let (here, _) = FlowEnd::pair(flow, from, to);
    let interval = Duration::from_millis(interval_ms);
    let source = CbrSource::new(here, CbrConfig { len_bytes: 1000, interval, active });
    let source = network.add_agent(from, flow, source).expect("a free place");
    (source, network.add_agent(to, flow, DatagramSink::default()).expect("a free place"))
}

fn add_tcp(
    network: &mut Network,
    flow: u32,
    (from, to): (NodeIndex, NodeIndex),
    supply: Supply,
    active: Active,
) -> (AgentIndex, AgentIndex) {
    let config = SenderConfig { window_packets_max: 50, ..SenderConfig::ns2(Variant::Reno) };
    let (here, there) = FlowEnd::pair(flow, from, to);
    let source = TcpSource::new(here, active, supply, config).expect("the settings are sound");
    let sink = TcpSink::new(there, config.header_bytes, ReceiverConfig::ns2(false));
    let source = network.add_agent(from, flow, source).expect("a free place");
    let sink = network.add_agent(to, flow, sink.expect("the settings are sound"));
    (source, sink.expect("a free place"))
}

fn sink(network: &Network, index: AgentIndex) -> &TcpSink {
    network.agent(index).expect("a TCP sink")
}

fn source(network: &Network, index: AgentIndex) -> &TcpSource {
    network.agent(index).expect("a TCP source")
}

#[test]
fn a_datagram_takes_transmission_and_delay_on_every_link() {
    let mut network = network(&Topology::chain(5, &link(0.0)));
    let active = Active { from: ms(10), until: ms(50) };
    let (from, to) = add_cbr(&mut network, 7, (0, 4), 20, active);
    // 10 ms, and 4 links of 4 + 100 ms each; the second one 20 ms later.
    network.run_until(Time::from_nanos(425_999_999));
    assert_eq!(network.agent::<DatagramSink>(to).expect("a sink").stats().received, 0);
    network.run_until(ms(426));
    assert_eq!(network.agent::<DatagramSink>(to).expect("a sink").stats().received, 1);
    network.run_until(ms(10_000));
    let stats = network.agent::<DatagramSink>(to).expect("a sink").stats();
    assert_eq!((stats.received, stats.received_bytes, stats.numbers), (2, 2000, 2));
    assert_eq!(stats.delay_max, Duration::from_millis(416));
    assert_eq!(stats.delay_sum, Duration::from_millis(832));
    assert_eq!(network.agent::<CbrSource>(from).expect("a source").sent(), 2);
    // One event for each packet and link, and one for each datagram sent.
    let expected =
        NetworkStats { events: 10, packet_hops: 8, sent: 2, delivered: 2, ..Default::default() };
    assert_eq!((*network.stats(), network.packets()), (expected, 0));
    assert_eq!(network.next_event(), None);
    assert_eq!(network.now(), ms(10_000));
}

#[test]
fn what_a_queue_has_no_room_for_is_counted() {
    let narrow = PipeConfig { queue: 3.into(), ..link(0.0) };
    let mut network = network(&Topology::chain(3, &narrow));
    // 100 packets, one each millisecond, on a link that takes 4 ms for each: one is sent and three
    // wait.
    let (_, to) = add_cbr(&mut network, 0, (0, 2), 1, Active { from: ms(0), until: ms(100) });
    network.run_until(ms(50));
    assert_eq!(network.backlog(0, 1), Some(3));
    network.run_until(ms(10_000));
    let stats = *network.stats();
    // One leaves every 4 ms from 4 ms on, 24 of them before the last arrival at 99 ms.
    assert_eq!((stats.sent, stats.refused, stats.delivered), (100, 72, 28));
    assert_eq!(network.agent::<DatagramSink>(to).expect("a sink").stats().received, 28);
    assert_eq!(network.pipe_stats(0, 1).map(|pipe| pipe.refused), Some(72));
    assert_eq!(network.pipe_stats(1, 2).map(|pipe| pipe.refused), Some(0));
    assert_eq!(network.pipe_stats(0, 2), None);
}

/// network-coded-tcp-2012, Fig. 8 and Section VI-A: without losses each flow's rate is its window
/// over the round trip, about 0.5 Mbit/s.
#[test]
fn two_flows_over_four_links_reach_their_windows() {
    let mut network = network(&Topology::chain(5, &link(0.0)));
    let flows: Vec<_> = (0..2)
        .map(|flow| add_tcp(&mut network, flow, (0, 4), Supply::Endless, Active::ALWAYS))
        .collect();
    network.run_until(ms(20_000));
    let before: Vec<_> =
        flows.iter().map(|&(_, to)| sink(&network, to).delivered_bytes()).collect();
    network.run_until(ms(120_000));
    for (&(from, to), before) in flows.iter().zip(before) {
        // 1040 bytes take 4.16 ms on each link, an acknowledgment 0.16 ms.
        let round_trip_s = 4.0 * (0.1 + 0.00416 + 0.1 + 0.00016);
        let goodput_bps = 8.0 * (sink(&network, to).delivered_bytes() - before) as f64 / 100.0;
        let expected = 50.0 * 8000.0 / round_trip_s;
        assert!((goodput_bps / expected - 1.0).abs() < 0.01, "{goodput_bps}, not {expected}");
        let sent = source(&network, from).sent();
        assert_eq!(sent.header_bytes * 25, sent.payload_bytes, "40 bytes for 1000");
        assert_eq!(source(&network, from).finished_at(), None);
        assert_eq!(
            sink(&network, to).received().payload_bytes,
            sink(&network, to).delivered_bytes()
        );
        assert_eq!(sink(&network, to).ack_bytes() * 25, sink(&network, to).delivered_bytes());
    }
    assert_eq!((network.stats().refused, network.stats().erased), (0, 0));
}

#[test]
fn a_file_arrives_whole_through_losses_and_the_source_knows_when() {
    let bursts = ErasureConfig::GilbertElliott(GilbertElliott::simple(0.03, 3.0));
    let mut network = network(&Topology::chain(3, &link(bursts)));
    let (from, to) = add_tcp(
        &mut network,
        1,
        (2, 0),
        Supply::Packets(300),
        Active { from: ms(500), until: Time::MAX },
    );
    network.run_until(ms(500));
    assert_eq!(network.stats().sent, 2, "the initial window");
    network.run_until(ms(3_600_000));
    assert_eq!(sink(&network, to).delivered_bytes(), 300_000);
    let done = source(&network, from).finished_at().expect("an hour is enough");
    assert!(done > ms(1_000) && done < ms(1_000_000), "{done}");
    let again = source(&network, from).sent().payload_bytes - 300_000;
    assert!(network.stats().erased > 0 && again > 0, "some was lost, and sent again");
    assert_eq!(network.next_event(), None, "all is done");
}

#[test]
fn a_pace_is_kept_and_ends() {
    let mut network = network(&Topology::chain(2, &link(0.0)));
    let interval = Duration::from_millis(50);
    let pace = Supply::Paced { interval, packets: 100 };
    let (from, to) = add_tcp(&mut network, 1, (0, 1), pace, Active::ALWAYS);
    network.run_until(ms(2_000));
    // Offered at 0, 50, ...; the last to have arrived, after 104.16 ms, was offered at 1850 ms.
    assert_eq!(sink(&network, to).delivered_bytes(), 38_000);
    network.run_until(ms(60_000));
    assert_eq!(sink(&network, to).delivered_bytes(), 100_000);
    // The last is offered at 4950 ms and arrives 104.16 ms later; its acknowledgment takes 100.16
    // ms.
    assert_eq!(source(&network, from).finished_at(), Some(Time::from_nanos(5_154_320_000)));
}

#[test]
fn a_source_that_is_stopped_is_silent() {
    let mut network = network(&Topology::chain(2, &link(0.0)));
    let active = Active { from: ms(1_000), until: ms(5_000) };
    let (from, to) = add_tcp(&mut network, 1, (0, 1), Supply::Endless, active);
    network.run_until(ms(999));
    assert_eq!(network.stats().sent, 0);
    network.run_until(ms(5_000));
    let sent = source(&network, from).sent().payload_bytes;
    network.run_until(ms(60_000));
    assert_eq!(source(&network, from).sent().payload_bytes, sent);
    assert_eq!(sink(&network, to).delivered_bytes(), sent, "what was under way arrives");
    assert_eq!(network.next_event(), None);
}

#[test]
fn what_is_for_nobody_is_counted() {
    let mut topology = Topology::chain(2, &link(0.0));
    topology.nodes = 3;
    let mut network = network(&topology);
    let end = |flow, peer| FlowEnd { flow, node: 0, peer };
    let active = Active { from: ms(0), until: ms(1) };
    let config = CbrConfig { len_bytes: 100, interval: Duration::from_millis(1), active };
    for (flow, peer) in [(0, 2), (1, 1), (2, 0), (3, 99)] {
        network.add_agent(0, flow, CbrSource::new(end(flow, peer), config)).expect("a free place");
    }
    network.run_until(ms(1_000));
    let stats = network.stats();
    // No link, no agent there, the node itself, no such node.
    assert_eq!((stats.sent, stats.undeliverable, stats.packet_hops), (4, 4, 1));
    assert_eq!(network.packets(), 0);
}

#[test]
fn an_agent_is_given_back_as_what_it_is() {
    let mut network = network(&Topology::chain(2, &link(0.0)));
    let (from, to) = add_cbr(&mut network, 0, (0, 1), 1, Active::ALWAYS);
    assert!(network.agent::<DatagramSink>(to).is_some());
    assert!(network.agent::<DatagramSink>(from).is_none());
}

#[test]
fn a_topology_that_cannot_be_is_refused_by_name() {
    let refused = |topology: Topology| match Network::new(&topology, 1, 0) {
        Ok(_) => panic!("{topology:?} is no topology"),
        Err(error) => error.to_string(),
    };
    let of = |nodes, ends: &[(NodeIndex, NodeIndex)]| {
        let pipes = ends.iter().map(|&(from, to)| (from, to, link(0.0))).collect();
        Topology { nodes, pipes, ..Topology::default() }
    };
    assert_eq!(refused(of(0, &[])), "nodes is 0, expected 1 to 65536");
    assert_eq!(
        refused(of(2, &[(0, 1), (2, 0)])),
        "pipes[1] ends at node 2, expected a node below 2"
    );
    assert_eq!(
        refused(of(2, &[(1, 1)])),
        "pipes[0] goes from node 1 to itself, expected two nodes"
    );
    assert_eq!(
        refused(of(2, &[(0, 1), (1, 0), (0, 1)])),
        "pipes has 0 to 1 more than once, expected each pair at most once"
    );
    let mut slow = of(2, &[(0, 1)]);
    slow.pipes[0].2.rate = 0.into();
    assert_eq!(refused(slow), "pipes[0].rate_bps is 0, expected 1 or more");

    let mut network = network(&of(2, &[(0, 1)]));
    let add = |network: &mut Network, node| network.add_agent(node, 5, DatagramSink::default());
    assert_eq!(add(&mut network, 2), Err(NetworkError::AgentNode { given: 2, nodes: 2 }));
    assert!(add(&mut network, 1).is_ok());
    assert_eq!(add(&mut network, 1), Err(NetworkError::DuplicateAgent { node: 1, flow: 5 }));
}

/// All observable results of a run.
type Record = (NetworkStats, Vec<u64>, Vec<u64>, usize);

/// A ring with lossy links, and TCP and datagram flows between randomly drawn nodes.
fn ring(seed: u64, nodes: usize, flows: &[(u32, u32, bool)], loss_ratio: f64) -> (Record, Record) {
    let run = |stops: &[u64]| {
        let mut topology = Topology { nodes, ..Topology::default() };
        let config = PipeConfig { queue: 5.into(), ..link(loss_ratio) };
        for node in 0..nodes as NodeIndex {
            topology.connect(node, (node + 1) % nodes as NodeIndex, &config);
        }
        let mut network = Network::new(&topology, seed, 3).expect("the topology is sound");
        let mut sinks = Vec::new();
        for (flow, &(from, to, tcp)) in flows.iter().enumerate() {
            let ends = (from % nodes as u32, to % nodes as u32);
            if ends.0 == ends.1 {
                continue;
            }
            let flow = flow as u32;
            sinks.push(match tcp {
                true => add_tcp(&mut network, flow, ends, Supply::Endless, Active::ALWAYS).1,
                false => add_cbr(&mut network, flow, ends, 7, Active::ALWAYS).1,
            });
        }
        stops.iter().for_each(|&stop| network.run_until(ms(stop)));
        let counts = sinks.iter().map(|&index| match network.agent::<TcpSink>(index) {
            Some(sink) => sink.delivered_bytes(),
            None => network.agent::<DatagramSink>(index).expect("a sink").stats().received,
        });
        let counts = counts.collect();
        let refused = topology.pipes.iter().map(|&(from, to, _)| {
            network.pipe_stats(from, to).expect("there is such a link").refused
        });
        (*network.stats(), counts, refused.collect(), network.packets())
    };
    (run(&[20_000]), run(&[1, 1_000, 1_001, 19_999, 20_000]))
}

proptest! {
    #![proptest_config(corridor_testing::cases!(48))]

    #[test]
    fn every_packet_is_accounted_for_and_runs_repeat(
        seed: u64, nodes in 3_usize..9, loss_ratio in 0.0..0.3,
        flows in prop::collection::vec((0_u32..9, 0_u32..9, any::<bool>()), 1..8),
    ) {
        let (once, again) = ring(seed, nodes, &flows, loss_ratio);
        prop_assert_eq!(&once, &again, "however often the run pauses");
        let (stats, _, refused, under_way) = once;
        let gone = stats.delivered + stats.refused + stats.erased + stats.undeliverable;
        prop_assert_eq!(stats.sent, gone + under_way as u64);
        prop_assert_eq!(refused.iter().sum::<u64>(), stats.refused);
        prop_assert_eq!(stats.undeliverable, 0);
    }
}
