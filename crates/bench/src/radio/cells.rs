//! Saturated cells, simulated: every station hears every other, and always has a frame.

use std::time::Duration;

use corridor_air::Address;
use corridor_air::dcf::{AfterTimeout, DcfConfig};
use corridor_air::radio::{
    Decoding, Fading, Links, MacConfig, MacEvent, RadioConfig, RadioLink, RadioMedium,
    RadioMediumConfig, RadioStation, Rate, Receiver,
};
use corridor_base::Time;

/// Bytes of every frame's payload.
pub const PAYLOAD_BYTES: u32 = 1500;

/// Radios that all hear each other, where two simultaneous frames collide.
pub fn radios(stations: usize, seed: u64) -> RadioConfig {
    let pairs = (0..stations).flat_map(|from| (0..stations).map(move |to| (from, to)));
    let links = pairs.filter(|(from, to)| from != to);
    RadioConfig {
        stations: vec![RadioStation::default(); stations],
        links: Links::Matrix(links.map(|(from, to)| RadioLink::new(from, to, 50.0)).collect()),
        fading: Fading::None,
        receiver: Receiver { decoding: Decoding::Threshold { sinr_db: 10.0 }, ..Receiver::DOT11 },
        propagation: Duration::ZERO,
        seed,
        replication: 0,
    }
}

/// The settings assumed by the models: after a collision all wait equally long.
pub fn settings(rate: Rate, eifs: bool, announced: bool, retry_limit: Option<u32>) -> DcfConfig {
    let plain = DcfConfig::a(rate);
    DcfConfig {
        eifs,
        after_timeout: AfterTimeout::WithTheOthers,
        response_timeout: plain.sifs + plain.slot,
        rts_threshold_bytes: if announced { 0 } else { u32::MAX },
        retry_limit,
        long_retry_limit: retry_limit,
        ..plain
    }
}

/// Payload bits per second received at a sink from a number of saturated stations.
pub fn throughput_bps(config: &DcfConfig, stations: usize, seed: u64, simulated: Duration) -> f64 {
    let mac = MacConfig::Dcf(config.clone());
    let radio = radios(stations + 1, seed);
    let medium = RadioMedium::new(&RadioMediumConfig { radio, mac, queue_frames: 2 });
    let mut medium = medium.expect("the settings are within their ranges");
    for station in 0..stations {
        for _ in 0..2 {
            let taken =
                medium.offer(Time::ZERO, station, Address::Station(stations), PAYLOAD_BYTES, ());
            taken.expect("the queue has two places");
        }
    }
    // Stations start simultaneously; a second later this has no more effect.
    let begin = Time::ZERO + Duration::from_secs(1);
    let end = begin + simulated;
    let mut bytes = 0;
    while let Some(now) = medium.poll_timeout().filter(|&now| now <= end) {
        medium.handle_timeout(now);
        while let Some(event) = medium.poll_event() {
            match event {
                MacEvent::Received { at, len_bytes, .. } if at >= begin => {
                    bytes += u64::from(len_bytes);
                }
                MacEvent::Received { .. } => {}
                MacEvent::Sent { station, to, len_bytes, .. } => {
                    medium.offer(now, station, to, len_bytes, ()).expect("one has left");
                }
            }
        }
    }
    bytes as f64 * 8.0 / simulated.as_secs_f64()
}
