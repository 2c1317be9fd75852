//! Networks with hidden and exposed stations, and chains, which are also run in ns-3, under the
//! same rules.

use std::time::Duration;

use corridor_air::dcf::{AfterTimeout, DcfConfig};
use corridor_air::radio::{
    Capture, Decoding, Fading, Links, MacConfig, MacEvent, RadioConfig, RadioLink, RadioMedium,
    RadioMediumConfig, RadioStation, Rate, Receiver,
};
use corridor_air::{Address, Station};
use corridor_base::Time;

/// Transmit power of every station, dBm.
const POWER_DBM: f64 = 16.0;

/// UDP payload of frames in the 802.11 networks, bytes; tools/ns3_radio.py has the same.
const UDP_BYTES: u32 = 1000;

/// Headers of UDP, IPv4, and LLC with SNAP.
const UPPER_BYTES: u32 = 8 + 20 + 8;

/// Queue limit of a station, frames, including those on the air.
const QUEUE_FRAMES: usize = 50;

/// Received power thresholds for decoding and for carrier sense, dBm.
const SENSITIVITY_DBM: f64 = -75.0;
const SENSE_DBM: f64 = -85.0;

/// Path losses to a neighbour, to a strong one, and to one that is only sensed, dB.
const NEAR_DB: f64 = 76.0;
const STRONG_DB: f64 = 56.0;
const SENSED_DB: f64 = 96.0;

/// A network and its flows, as the stations along their paths: every flow's first station is
/// saturated.
pub struct Network {
    pub name: String,
    pub stations: usize,
    /// Path losses between two stations, in both directions, dB.
    pub losses: Vec<(Station, Station, f64)>,
    pub flows: Vec<Vec<Station>>,
    pub announced: bool,
    pub captures: bool,
}

/// Networks to compare with ns-3.
pub fn all() -> Vec<Network> {
    let network = |name: &str, losses: &[(usize, usize, f64)], flows: &[&[usize]]| Network {
        name: name.to_owned(),
        stations: 1 + losses.iter().map(|&(a, b, _)| a.max(b)).max().unwrap_or(0),
        losses: losses.to_vec(),
        flows: flows.iter().map(|flow| flow.to_vec()).collect(),
        announced: false,
        captures: false,
    };
    let hidden = [(0, 1, NEAR_DB), (1, 2, NEAR_DB)];
    let exposed = [(0, 1, NEAR_DB), (1, 2, NEAR_DB), (2, 3, NEAR_DB)];
    let capture = [(0, 1, STRONG_DB), (1, 2, NEAR_DB), (0, 2, NEAR_DB)];
    let hidden_capture = [(0, 1, STRONG_DB), (1, 2, NEAR_DB)];
    let into_one: [&[usize]; 2] = [&[0, 1], &[2, 1]];
    let mut networks = vec![
        network("hidden", &hidden, &into_one),
        Network { announced: true, ..network("hidden-rts", &hidden, &into_one) },
        network("exposed", &exposed, &[&[1, 0], &[2, 3]]),
        Network { captures: true, ..network("capture", &capture, &into_one) },
        Network { captures: true, ..network("capture-hidden", &hidden_capture, &into_one) },
    ];
    for hops in 2..=8 {
        let mut losses: Vec<_> = (0..hops).map(|i| (i, i + 1, NEAR_DB)).collect();
        losses.extend((0..hops - 1).map(|i| (i, i + 2, SENSED_DB)));
        let flow: Vec<_> = (0..=hops).collect();
        networks.push(network(&format!("chain-{hops}"), &losses, &[&flow]));
    }
    networks
}

/// Bits of UDP payload per second that each flow delivers.
pub fn goodput_bps(network: &Network, seed: u64, simulated: Duration) -> Vec<f64> {
    let mut medium = RadioMedium::new(&configure(network, seed)).expect("sound settings");
    let next = |flow: usize, at: Station| {
        let path = &network.flows[flow];
        let place = path.iter().position(|&station| station == at)?;
        path.get(place + 1).copied()
    };
    for (flow, path) in network.flows.iter().enumerate() {
        for _ in 0..QUEUE_FRAMES {
            let to = Address::Station(path[1]);
            let taken = medium.offer(Time::ZERO, path[0], to, UDP_BYTES + UPPER_BYTES, flow);
            taken.expect("the queue has room");
        }
    }
    let begin = Time::ZERO + Duration::from_secs(1);
    let mut bytes = vec![0; network.flows.len()];
    while let Some(now) = medium.poll_timeout().filter(|&now| now <= begin + simulated) {
        medium.handle_timeout(now);
        while let Some(event) = medium.poll_event() {
            match event {
                MacEvent::Received { at, station, payload: flow, .. } => {
                    match next(flow, station) {
                        // A relay with a full queue drops.
                        Some(to) => drop(medium.offer(
                            now,
                            station,
                            Address::Station(to),
                            UDP_BYTES + UPPER_BYTES,
                            flow,
                        )),
                        None => bytes[flow] += if at >= begin { u64::from(UDP_BYTES) } else { 0 },
                    }
                }
                MacEvent::Sent { station, to, len_bytes, payload: flow, .. } => {
                    if network.flows[flow][0] == station {
                        medium.offer(now, station, to, len_bytes, flow).expect("one has left");
                    }
                }
            }
        }
    }
    bytes.iter().map(|&bytes| bytes as f64 * 8.0 / simulated.as_secs_f64()).collect()
}

fn configure(network: &Network, seed: u64) -> RadioMediumConfig {
    let both = |&(a, b, loss_db): &(usize, usize, f64)| {
        [RadioLink::new(a, b, loss_db), RadioLink::new(b, a, loss_db)]
    };
    let station = RadioStation { power_dbm: POWER_DBM, ..RadioStation::default() };
    let window = Duration::from_micros(16);
    let radio = RadioConfig {
        stations: vec![station; network.stations],
        links: Links::Matrix(network.losses.iter().flat_map(both).collect()),
        fading: Fading::None,
        receiver: Receiver {
            sensitivity_dbm: SENSITIVITY_DBM,
            sense_dbm: SENSE_DBM,
            decoding: Decoding::Threshold { sinr_db: 5.0 },
            capture: network.captures.then_some(Capture { margin_db: 5.0, window }),
            ..Receiver::DOT11
        },
        propagation: Duration::ZERO,
        seed,
        replication: 0,
    };
    let plain = DcfConfig::a(Rate::Ofdm6);
    // As in ns-3.
    let dcf = DcfConfig {
        response_timeout: plain.sifs + plain.slot + Duration::from_micros(20),
        after_timeout: AfterTimeout::Difs,
        rts_threshold_bytes: if network.announced { 0 } else { u32::MAX },
        retry_limit: Some(8),
        long_retry_limit: Some(8),
        ..plain
    };
    RadioMediumConfig { radio, mac: MacConfig::Dcf(dcf), queue_frames: QUEUE_FRAMES }
}
