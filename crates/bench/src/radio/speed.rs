//! Cost of a reception, and of a node: saturated stations on a twisted torus.

use std::time::Duration;

use corridor_air::Address;
use corridor_air::dcf::DcfConfig;
use corridor_air::radio::{
    Decoding, Fading, Links, MacConfig, MacEvent, RadioConfig, RadioLink, RadioMedium,
    RadioMediumConfig, RadioStation, Rate, Receiver,
};
use corridor_base::Time;
use corridor_sim::source::{Active, FlowEnd, Supply, TcpSink, TcpSource};
use corridor_sim::tcp::{ReceiverConfig, SenderConfig, Variant};
use corridor_sim::{AirConfig, Network, NodeIndex, RadioSite, Topology};

use crate::{cpu_time, memory};

/// Stations on a torus: neighbours are those at these distances along it, both ways; `w` is its
/// width. It is twisted, so that every number of stations has equally many neighbours.
fn torus(stations: usize, neighbours: usize, queue_frames: usize) -> RadioMediumConfig {
    let w = (stations as f64).sqrt().round() as usize;
    let distances = [1, w, w - 1, w + 1, 2, 2 * w];
    let links = (0..stations).flat_map(|from| {
        distances[..neighbours / 2].iter().flat_map(move |distance| {
            let both = [from + distance, from + stations - distance];
            both.map(|to| RadioLink::new(from, to % stations, 80.0))
        })
    });
    let radio = RadioConfig {
        stations: vec![RadioStation { power_dbm: 16.0, ..RadioStation::default() }; stations],
        links: Links::Matrix(links.collect()),
        fading: Fading::None,
        receiver: Receiver { decoding: Decoding::Threshold { sinr_db: 10.0 }, ..Receiver::DOT11 },
        propagation: Duration::ZERO,
        seed: 1,
        replication: 0,
    };
    let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm24));
    RadioMediumConfig { radio, mac, queue_frames }
}

/// Cost of one run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub cpu: Duration,
    pub receptions: u64,
}

/// Every station is saturated, and sends to the next one.
pub fn run(stations: usize, neighbours: usize, queue_frames: usize, node_s: f64) -> Run {
    let config = torus(stations, neighbours, queue_frames);
    let mut medium = RadioMedium::<u64>::new(&config).expect("sound settings");
    drop(config);
    for station in 0..stations {
        for frame in 0..queue_frames {
            let to = Address::Station((station + 1) % stations);
            medium.offer(Time::ZERO, station, to, 1000, frame as u64).expect("there is room");
        }
    }
    let warm_up = Time::from_millis(100);
    drive(&mut medium, warm_up);
    let (sent, begin) = (transmissions(&medium), cpu_time());
    drive(&mut medium, warm_up + Duration::from_secs_f64(node_s / stations as f64));
    Run { cpu: cpu_time() - begin, receptions: (transmissions(&medium) - sent) * neighbours as u64 }
}

/// Peak memory, in bytes, of a network on such a torus: every node sends to the next one by TCP
/// with a window of `window_packets`, which exceeds its queue of `queue_frames`. Payloads are
/// represented by their lengths.
pub fn peak_bytes(
    nodes: usize,
    neighbours: usize,
    (queue_frames, window_packets): (usize, u32),
    simulated: Duration,
) -> usize {
    let before = memory::live_bytes();
    memory::restart_peak();
    let air = AirConfig::Mac(Box::new(torus(nodes, neighbours, queue_frames)));
    let radio = RadioSite { nodes: (0..nodes as NodeIndex).collect(), air };
    let topology = Topology { nodes, radios: vec![radio], ..Topology::default() };
    let mut network = Network::new(&topology, 1, 0).expect("the topology is sound");
    let sender =
        SenderConfig { window_packets_max: window_packets, ..SenderConfig::ns2(Variant::NewReno) };
    let receiver =
        ReceiverConfig { window_packets_max: window_packets, ..ReceiverConfig::ns2(false) };
    for from in 0..nodes as NodeIndex {
        let to = (from + 1) % nodes as NodeIndex;
        let (here, there) = FlowEnd::pair(from, from, to);
        let source = TcpSource::new(here, Active::ALWAYS, Supply::Endless, sender);
        let source = source.expect("the settings are within their ranges");
        network.add_agent(from, from, source).expect("there is such a node");
        let sink = TcpSink::new(there, sender.header_bytes, receiver);
        let sink = sink.expect("the settings are within their ranges");
        network.add_agent(to, from, sink).expect("there is such a node");
    }
    network.run_until(Time::ZERO + simulated);
    memory::peak_bytes() - before
}

fn drive(medium: &mut RadioMedium<u64>, until: Time) {
    while let Some(now) = medium.poll_timeout().filter(|&now| now <= until) {
        medium.handle_timeout(now);
        while let Some(event) = medium.poll_event() {
            if let MacEvent::Sent { station, to, len_bytes, payload, .. } = event {
                medium.offer(now, station, to, len_bytes, payload).expect("one has left");
            }
        }
    }
}

fn transmissions(medium: &RadioMedium<u64>) -> u64 {
    (0..medium.stations()).map(|station| medium.stats(station).transmissions).sum()
}
