//! Three stations on a switch: each frame reaches whom it is addressed to, and nobody else.

use std::collections::VecDeque;

use corridor_base::Time;
use corridor_proto::{
    CodingParams, Destination, LinkErrors, Role, Station, StationConfig, StationId,
};

const ENDS: [StationId; 2] = [StationId(1), StationId(2)];
const HELPER: StationId = StationId(3);

fn station(index: usize) -> Station {
    let id = [ENDS[0], ENDS[1], HELPER][index];
    let role = match ENDS.iter().position(|&end| end == id) {
        Some(end) => Role::Endpoint { peer: ENDS[1 - end], helper: Some(HELPER) },
        None => Role::Helper { between: (ENDS[0], ENDS[1]) },
    };
    let config = StationConfig {
        id,
        role,
        security: [7; 32].into(),
        coding: CodingParams::default(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 100,
        frame_len_max: 1500,
        frame_len_min: 46,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    Station::new(config, [index as u8 + 1; 32], Time::ZERO).expect("a sound configuration")
}

/// Lets packets go both ways for so many milliseconds; every frame takes one.
fn converse(stations: &mut [Station; 3], ms: u64) {
    let mut on_the_way: VecDeque<(usize, Vec<u8>)> = VecDeque::new();
    for now in (0..ms).map(Time::from_millis) {
        for (to, frame) in core::mem::take(&mut on_the_way) {
            stations[to].handle_frame(now, &frame);
        }
        for (index, station) in stations.iter_mut().enumerate() {
            if index < ENDS.len() {
                station.handle_packet(now, &[0x45; 1_000]);
            }
            station.handle_timeout(now);
            while let Some(transmit) = station.poll_transmit(now) {
                let is_for = |to: usize| match transmit.to {
                    Destination::All => to != index,
                    Destination::Station(id) | Destination::Search(id) => {
                        to == usize::from(id.0) - 1
                    }
                };
                let frame = transmit.frame.to_vec();
                on_the_way.extend((0..3).filter(|&to| is_for(to)).map(|to| (to, frame.clone())));
            }
            while station.poll_packet().is_some() {}
        }
    }
}

#[test]
#[ignore = "losses are gaps in a sender's counter, and what it sends to others makes gaps too: \
            waits for losses counted per receiver"]
fn what_a_switch_keeps_from_a_station_is_no_loss() {
    let mut stations = [0, 1, 2].map(station);
    converse(&mut stations, 10_000);
    for station in &stations {
        let stats = station.stats();
        let ratios = [stats.erasure_ratio_e1, stats.erasure_ratio_e2, stats.erasure_ratio_e3];
        let id = station.config().id;
        assert!(ratios.iter().all(|&ratio| ratio < 0.05), "e1, e2, e3 = {ratios:?} at {id:?}");
    }
}
