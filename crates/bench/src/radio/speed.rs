//! What a reception costs, and a node: saturated stations on a torus with a twist.

use std::time::Duration;

use corridor_air::Address;
use corridor_air::dcf::DcfConfig;
use corridor_air::radio::{
    Decoding, Fading, Links, MacConfig, MacEvent, RadioConfig, RadioLink, RadioMedium,
    RadioMediumConfig, RadioStation, Rate, Receiver,
};
use corridor_base::Time;

use crate::{cpu_time, memory};

/// Stations on a torus: neighbours are those at these distances along it, both ways; `w` is its
/// width. With a twist, so that every number of stations has as many neighbours.
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

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub cpu: Duration,
    pub receptions: u64,
    /// Allocated when it was over, queues full.
    pub memory_bytes: usize,
}

/// Every station sends to the next one, always, its queue full.
pub fn run(stations: usize, neighbours: usize, queue_frames: usize, node_s: f64) -> Run {
    let before = memory::live_bytes();
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
    Run {
        cpu: cpu_time() - begin,
        receptions: (transmissions(&medium) - sent) * neighbours as u64,
        memory_bytes: memory::live_bytes() - before,
    }
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
