//! A plan's network of point-to-point links in real time: a namespace for each node where a flow
//! begins or ends, and pipes between them, through which the emulator forwards packets hop by hop.
//!
//! Nodes without flows are routers, which only exist in the emulator: several flows may share a
//! link between two of them. Rates and outages begin with the load, as at a simulation's time zero.

use core::sync::atomic::AtomicBool;
use std::fs::File;

use corridor_air::{Frame, Links, LinksConfig};
use corridor_scenario::{Network, Wire};

use super::order::Orders;
use super::{NETWORK_NODES_MAX, NetworkRun, describe, measured, refused};
use crate::emulator::{Emulator, Report};
use crate::error::{Context, LabError};
use crate::load::{self, End, FlowOrder, Times};
use crate::node::INNER_SUBNET;
use crate::priority;
use crate::run::AIR;
use crate::station::{self, RADIO, RadioConfig, Station};
use crate::waiting::Watched;

/// Most pipes of a network in the lab: for each packet, one thread checks all of them.
const PIPES_MAX: usize = 64;
/// Frames in a host's ring, from which all are taken at once.
const RING_FRAMES: usize = 4_096;
/// Longest packet, bytes: Ethernet's.
const PACKET_BYTES_MAX: usize = corridor_scenario::ETHERNET_MTU;

/// Checks that the lab can run the network.
pub(super) fn check(network: &Network) -> Result<(), LabError> {
    if !network.tunnels.is_empty() {
        let expected = "nothing: the lab's links carry the kernels' packets";
        return Err(refused("network.tunnel", "a table", expected));
    }
    if network.links.len() > PIPES_MAX {
        let given = format!("{} one-way links", network.links.len());
        return Err(refused("network.link", given, format!("at most {PIPES_MAX}")));
    }
    let hosts = hosts_of(network);
    if hosts.len() > NETWORK_NODES_MAX {
        let given = format!("flows at {} nodes", hosts.len());
        return Err(refused("flow", given, format!("at {NETWORK_NODES_MAX} at most")));
    }
    let links = links(network, (0, 0))?;
    for (index, flow) in network.flows.iter().enumerate() {
        if !links.leads(flow.from, flow.to) || !links.leads(flow.to, flow.from) {
            let expected = "a node that there is a route to, and back";
            return Err(refused(&format!("flow[{index}].to"), flow.to, expected));
        }
    }
    Orders::of(network, PACKET_BYTES_MAX, (0, 0)).map(|_| ())
}

/// Runs a replication of a network that has been checked.
pub(super) fn run(
    network: &Network,
    seed: (u64, u64),
    stop: &AtomicBool,
) -> Result<NetworkRun, LabError> {
    let hosts = hosts_of(network);
    let orders = Orders::of(network, PACKET_BYTES_MAX, seed)?;
    let _raised = priority::raise_stations(Wire::Radio);
    let radio = RadioConfig {
        ring_frames: RING_FRAMES,
        mtu: orders.packet_bytes,
        stations: hosts.len(),
        hops: 1,
        subnet: Some(INNER_SUBNET),
    };
    let stations = (0..hosts.len()).map(|index| Station::new(index, radio));
    let stations = stations.collect::<Result<Vec<_>, _>>()?;
    // As the simulator's TCP sends: two segments at once would change the pacing.
    let bare = |station: &Station| station.namespace.run(|| station::without_gso(RADIO));
    stations.iter().try_for_each(bare)?;
    let radios = stations.iter().filter_map(|station| station.tap.as_ref());
    let radios = radios.map(File::try_clone).collect::<Result<_, _>>().what("keep radios")?;
    let emulator = Emulator::start_links(&config(network, seed), hosts.clone(), radios)?;
    let end = |station: &Station| End {
        namespace: station.namespace.clone(),
        address: station::address(INNER_SUBNET, station.index),
    };
    let ends: Vec<End> = stations.iter().map(end).collect();
    let place = |node: usize| hosts.binary_search(&node).unwrap_or_default();
    let flow =
        |flow: &FlowOrder| FlowOrder { from: place(flow.from), to: place(flow.to), ..flow.clone() };
    let flows: Vec<FlowOrder> = orders.flows.iter().map(flow).collect();
    let times = Times { warm_up: network.warm_up, measured: measured(network) };
    let mut watched = Watched::default();
    watched.add_thread(AIR, emulator.thread_id());
    let outcome = load::carry_flows(&flows, &ends, times, (watched, Some(&emulator)), stop)?;
    let drops = stations.iter().map(Station::radio_drops).sum::<Result<u64, _>>()?;
    let report = emulator.finish()?;
    let mut run = describe(&outcome, &report, times.measured);
    set_links(&mut run, &report);
    if drops > 0 {
        run.distrust(format!("{drops} frames did not find room on their way to a link"));
    }
    Ok(run)
}

fn set_links(run: &mut NetworkRun, report: &Report) {
    run.measures.set("packets_dropped", report.dropped());
    run.measures.set("packets_erased", report.undelivered());
    run.measures.set("packet_hops", report.frames());
}

/// Nodes where flows begin or end, in order.
fn hosts_of(network: &Network) -> Vec<usize> {
    let mut hosts: Vec<usize> =
        network.flows.iter().flat_map(|flow| [flow.from, flow.to]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

fn links(network: &Network, seed: (u64, u64)) -> Result<Links<Frame>, LabError> {
    Links::new(&config(network, seed)).map_err(|source| LabError::Pipe { source })
}

fn config(network: &Network, (seed, replication): (u64, u64)) -> LinksConfig {
    let pipes = network.links.iter().map(|link| (link.from, link.to, link.pipe.clone()));
    let mut routes = Vec::new();
    for route in &network.routes {
        routes.push(route.path.clone());
        if route.both_ways {
            routes.push(route.path.iter().rev().copied().collect());
        }
    }
    LinksConfig { nodes: network.nodes, pipes: pipes.collect(), routes, seed, replication }
}

#[cfg(test)]
mod tests {
    use corridor_scenario::{Load, Plan};

    use super::*;

    fn network(rest: &str) -> Network {
        let text = format!(
            "name = 'wires'\nseed = 7\nduration_s = 4\n[network]\nkind = 'dumbbell'\npairs = 3\n\
             access = {{ rate_bps = '100M', delay_ms = 1, queue_packets = 100 }}\n\
             bottleneck = {{ rate_bps = '10M', delay_ms = 10, queue_packets = 50 }}\n{rest}\n"
        );
        let plan = Plan::parse(&text, std::path::Path::new("")).expect("a test's plan is sound");
        match plan.points.into_iter().next().map(|point| point.load) {
            Some(Load::Network(network)) => Network::clone(&network),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hosts_are_where_flows_end_and_routers_are_not() {
        let flows = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'ftp' }\n\
                     [[flow]]\nfrom = 4\nto = 1\nsource = { kind = 'cbr', rate_bps = '1M' }\n";
        let network = network(flows);
        assert_eq!(hosts_of(&network), [0, 1, 3, 4]);
        assert!(check(&network).is_ok());
        let links = links(&network, (1, 0)).unwrap();
        assert!(links.leads(0, 3) && links.leads(3, 0) && links.leads(6, 7));
    }

    #[test]
    fn what_kernels_or_links_cannot_do_is_refused() {
        let refused = |rest: &str| check(&network(rest)).unwrap_err().to_string();
        let fixed = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'fixed', packets = 9 }\n";
        assert!(refused(fixed).starts_with("flow[0].source.kind = fixed: expected ftp"));
        let long = "[[flow]]\nfrom = 0\nto = 3\npayload_bytes = 1473\n\
                    source = { kind = 'cbr', rate_bps = '1M' }\n";
        assert!(refused(long).contains("flow[0].payload_bytes = 1473"), "{}", refused(long));
    }
}
