//! Three stations on a switch: each frame reaches whom it is addressed to, and nobody else; and on
//! a hub, which passes all to all.

use std::collections::VecDeque;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
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

/// Lets packets go both ways for so many milliseconds; every frame takes one. `passes` tells of a
/// frame from and to which station, and whether it is addressed to it.
fn converse(
    stations: &mut [Station; 3],
    ms: u64,
    mut passes: impl FnMut(usize, usize, bool) -> bool,
) {
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
                let hearers = (0..3).filter(|&to| to != index && passes(index, to, is_for(to)));
                on_the_way.extend(hearers.map(|to| (to, frame.clone())));
            }
            while station.poll_packet().is_some() {}
        }
    }
}

#[test]
fn what_a_switch_keeps_from_a_station_is_no_loss() {
    let mut stations = [0, 1, 2].map(station);
    converse(&mut stations, 10_000, |_, _, is_for| is_for);
    for station in &stations {
        let ratios = ratios(station);
        let id = station.config().id;
        assert!(ratios.iter().all(|&ratio| ratio < 0.05), "e1, e2, e3 = {ratios:?} at {id:?}");
    }
}

fn ratios(station: &Station) -> [f64; 3] {
    let stats = station.stats();
    [stats.erasure_ratio_e1, stats.erasure_ratio_e2, stats.erasure_ratio_e3]
}

/// What is lost of frames that a station is to get counts as much where it hears no others as where
/// it hears all: a helper is told of what both ends send, and each end of what is for it, as on
/// interfaces that drop what is for other addresses. A helper that hears nothing is not counted on.
#[test]
fn what_gets_lost_counts_where_others_are_heard_and_where_they_are_not() {
    for (helper_hears, ends_hear) in [(false, false), (true, false), (true, true)] {
        let mut dice = StreamKey { seed: 5, replication: 0, entity: 0, purpose: "switch" }.stream();
        let mut stations = [0, 1, 2].map(station);
        let lost = |from, to| if from < 2 && to < 2 { 40 } else { 20 };
        converse(&mut stations, 20_000, |from, to, is_for| {
            let hears = is_for || if to == 2 { helper_hears } else { ends_hear };
            hears && dice.next_u32() % 100 >= lost(from, to)
        });
        let recoded = stations[2].stats().recoded_frames_sent;
        for (at, station) in stations[..2].iter().enumerate() {
            let [e1, e2, e3] = ratios(station);
            let case = format!("{helper_hears}, {ends_hear}, at {at}: {e1}, {e2}, {e3}, {recoded}");
            let near = |found: f64, wanted: f64| (found - wanted).abs() < 0.07;
            assert!(near(e2, 0.2) && near(e3, 0.4), "{case}");
            if helper_hears {
                assert!(near(e1, 0.2) && recoded > 1_000, "{case}");
            } else {
                assert!(e1 == 0.0 && recoded == 0, "{case}");
            }
        }
    }
}
