//! How a node's memory limit is divided among its peers, and a peer's part among queue and windows.

use corridor_base::Time;
use corridor_proto::bounds::MEMORY_DEFAULT;
use corridor_proto::{AnyStation, Hub, HubConfig, Station, StationId};
use corridor_results::checks::Check;
use serde::Serialize;

use crate::net::config;

#[derive(Debug, Serialize)]
pub struct Share {
    peers: u16,
    ceiling_bytes: usize,
    /// Limit per peer.
    peer_bytes: usize,
    /// The parts of that for its queue, the flow to it and the flow from it.
    queue_bytes: usize,
    flow_to_bytes: usize,
    flow_from_bytes: usize,
}

/// For a pair, and for hubs.
pub fn measure(checks: &mut Vec<Check>) -> Vec<Share> {
    [1, 4, 32, 256].map(|peers| share(peers, checks)).into()
}

fn share(peers: u16, checks: &mut Vec<Check>) -> Share {
    let me = StationId(1);
    let told = config(me, StationId(2), [7; 32].into());
    let station: AnyStation = if peers == 1 {
        Station::new(told, [1; 32], Time::ZERO).expect("a sound configuration").into()
    } else {
        let neighbours = (0..peers).map(|at| (StationId(at + 2), Vec::new())).collect();
        let hub = HubConfig { station: told, neighbours, own: Vec::new(), one_channel: false };
        Hub::new(hub, [1; 32], Time::ZERO).expect("a sound configuration").into()
    };
    let views: Vec<_> = station.stations().map(Station::memory).collect();
    let total: usize = views.iter().map(|view| view.share).sum();
    let divided = views.iter().map(|view| view.queue + view.sent + view.received);
    let beyond = divided.zip(&views).map(|(held, view)| held.saturating_sub(view.share)).max();
    let of = |what| format!("memory, {peers} peers: {what}");
    checks.extend([
        Check::at_most(of("parts of all"), Some(total as f64), MEMORY_DEFAULT as f64, "B"),
        Check::at_most(of("flows beyond a part"), beyond.map(|bytes| bytes as f64), 0.0, "B"),
    ]);
    let view = views[0];
    Share {
        peers,
        ceiling_bytes: MEMORY_DEFAULT,
        peer_bytes: view.share,
        queue_bytes: view.queue,
        flow_to_bytes: view.sent,
        flow_from_bytes: view.received,
    }
}
