//! AODV route discoveries over 802.11: requests, replies, and delays.
//!
//! As in ns-3: only the destination replies, only the first copy of a request is forwarded, after a
//! jitter of whole milliseconds up to 10. The origin also waits for a jitter, which is subtracted:
//! a discovery begins with its first request.

use std::sync::Arc;
use std::time::Duration;

use corridor_air::dcf::{AfterTimeout, DcfConfig};
use corridor_air::radio::{
    Decoding, Fading, Links, MacConfig, RadioConfig, RadioLink, RadioMediumConfig, RadioStation,
    Rate, Receiver,
};
use corridor_base::Time;
use corridor_bench::frame::Outcome;
use corridor_sim::aodv::{AodvConfig, Metric};
use corridor_sim::{
    Agent, AirConfig, Body, Network, NodeIndex, Packet, RadioSite, TTL_MAX, Topology,
};
use serde::{Deserialize, Serialize};

/// Size of ns-3's request with UDP, IPv4 and LLC, and of ours: the difference is added as headers.
const THEIR_REQUEST_BYTES: u32 = 24 + 8 + 20 + 8;
const OUR_REQUEST_BYTES: u32 = 14;

/// Discoveries per network; tools/ns3_constrained.py has fewer.
const DISCOVERIES: f64 = 1000.0;

/// Nodes along each side of the grid; tools/ns3_constrained.py has the same.
const SIDE: usize = 5;

/// Results of discoveries.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Discoveries {
    /// Mean number of requests per discovery, by all nodes.
    pub requests: f64,
    /// The same for replies.
    pub replies: f64,
    /// Fraction that found a route.
    pub found_ratio: f64,
    /// Mean time from the first request to the reply.
    pub delay_s: f64,
    /// Standard error of this mean.
    pub delay_error_s: f64,
    pub discoveries: u32,
}

impl Discoveries {
    /// Figures to compare.
    pub fn compared(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("requests", self.requests),
            ("replies", self.replies),
            ("found", self.found_ratio),
            ("delay", self.delay_s),
        ]
    }
}

/// A line, or a grid: from its first node to its last.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    columns: usize,
    rows: usize,
}

impl Case {
    pub fn name(self) -> String {
        match self {
            Case { columns, rows: 1 } => format!("line-{}", columns - 1),
            Case { columns, .. } => format!("grid-{columns}"),
        }
    }
}

/// Cases to compare with ns-3.
pub fn cases() -> impl Iterator<Item = Case> {
    let lines = (2..=9).map(|columns| Case { columns, rows: 1 });
    lines.chain([Case { columns: SIDE, rows: SIDE }])
}

/// Runs discoveries, each on a network without known routes; `scale` times the usual number.
pub fn run(case: Case, scale: f64, takes_better_copies: bool) -> Outcome<Discoveries> {
    let step = Duration::from_millis(1);
    let config = AodvConfig {
        jitter_max: 10 * step,
        jitter_step: step,
        takes_better_copies,
        // No second request within the simulated time.
        discovery_wait: Duration::from_secs(5),
        ..AodvConfig::new(Metric::HopCount)
    };
    let count = case.columns * case.rows;
    let topology = topology(case);
    let discoveries = (DISCOVERIES * scale) as u32;
    let (mut requests, mut replies, mut delays_s) = (0, 0, Vec::new());
    for replication in 0..u64::from(discoveries) {
        let mut network = Network::new(&topology, 1, replication)?;
        network.set_routing(config, 1, replication)?;
        network.add_agent(0, 0, Ask { to: count as NodeIndex - 1, is_due: true })?;
        network.run_until(Time::from_millis(1000));
        let routers = (0..count as NodeIndex).filter_map(|node| network.router_stats(node));
        for stats in routers {
            requests += stats.requests;
            replies += stats.replies;
            if stats.found > 0 {
                delays_s.push(stats.found_after_ns as f64 / 1e9);
            }
        }
    }
    let found = delays_s.len() as f64;
    let delay_s = delays_s.iter().sum::<f64>() / found;
    let squares: f64 = delays_s.iter().map(|delay| (delay - delay_s) * (delay - delay_s)).sum();
    Ok(Discoveries {
        requests: requests as f64 / f64::from(discoveries),
        replies: replies as f64 / f64::from(discoveries),
        found_ratio: found / f64::from(discoveries),
        delay_s,
        delay_error_s: (squares / (found - 1.0) / found).sqrt(),
        discoveries,
    })
}

fn topology(case: Case) -> Topology {
    let Case { columns, rows } = case;
    let count = columns * rows;
    let mut links = Vec::new();
    for node in 0..count {
        let right = ((node + 1) % columns != 0).then_some(node + 1);
        let below = (node + columns < count).then_some(node + columns);
        for other in right.into_iter().chain(below) {
            links.extend([RadioLink::new(node, other, 76.0), RadioLink::new(other, node, 76.0)]);
        }
    }
    let radio = RadioConfig {
        stations: vec![RadioStation { power_dbm: 16.0, ..RadioStation::default() }; count],
        links: Links::Matrix(links),
        fading: Fading::None,
        receiver: Receiver {
            sensitivity_dbm: -75.0,
            sense_dbm: -85.0,
            decoding: Decoding::Threshold { sinr_db: 5.0 },
            ..Receiver::DOT11
        },
        propagation: Duration::ZERO,
        seed: 0,
        replication: 0,
    };
    let plain = DcfConfig::a(Rate::Ofdm6);
    // As in ns-3.
    let dcf = DcfConfig {
        response_timeout: plain.sifs + plain.slot + Duration::from_micros(20),
        after_timeout: AfterTimeout::Difs,
        retry_limit: Some(8),
        long_retry_limit: Some(8),
        header_bytes: plain.header_bytes + THEIR_REQUEST_BYTES - OUR_REQUEST_BYTES,
        ..plain
    };
    let config = RadioMediumConfig { radio, mac: MacConfig::Dcf(dcf), queue_frames: 50 };
    let nodes = (0..count as NodeIndex).collect();
    let site = RadioSite { nodes, air: AirConfig::Mac(Box::new(config)) };
    Topology { nodes: count, pipes: Vec::new(), radios: vec![site] }
}

/// Sends a packet to trigger a route discovery.
struct Ask {
    to: NodeIndex,
    is_due: bool,
}

impl Agent for Ask {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if now < BEGIN || !core::mem::take(&mut self.is_due) {
            return None;
        }
        let body = Body::Bytes(Arc::from([0]));
        Some(Packet { flow: 0, from: 0, to: self.to, len_bytes: 20, ttl: TTL_MAX, body })
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.is_due.then_some(BEGIN)
    }
}

/// Send time of the packet.
const BEGIN: Time = Time::from_millis(100);
