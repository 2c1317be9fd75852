//! Two ends whose packets cross in different ways say so, once each.

use corridor_base::Time;
use corridor_proto::{
    CodingParams, Crossing, Event, LinkErrors, Role, Station, StationConfig, StationId,
};

/// A station that codes as given; `None` = the unreliable forwarder.
fn station(id: u8, coding: Option<CodingParams>, entropy: u8) -> Station {
    let peer = StationId(u16::from(3 - id));
    let role = match coding {
        Some(_) => Role::Endpoint { peer, helper: None },
        None => Role::Plain { peer },
    };
    let config = StationConfig {
        id: StationId(u16::from(id)),
        role,
        security: [7; 32].into(),
        coding: coding.unwrap_or_default(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 100,
        frame_len_max: 1500,
        frame_len_min: 46,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    Station::new(config, [entropy; 32], Time::ZERO).expect("a sound configuration")
}

/// Lets two stations hear each other for so many milliseconds from `start` on.
fn converse(stations: &mut [Station; 2], start: u64, ms: u64) -> [Vec<Event>; 2] {
    let mut events = [Vec::new(), Vec::new()];
    for now in (start..start + ms).map(Time::from_millis) {
        for from in 0..2 {
            stations[from].handle_timeout(now);
            while let Some(transmit) = stations[from].poll_transmit(now) {
                let frame = transmit.frame.to_vec();
                stations[1 - from].handle_frame(now, &frame);
            }
        }
        for (station, events) in stations.iter_mut().zip(&mut events) {
            events.extend(std::iter::from_fn(|| station.poll_event()));
        }
    }
    events
}

fn differences(events: &[Event]) -> Vec<(Crossing, Crossing)> {
    let difference = |event: &Event| match event {
        Event::ModeDiffers { theirs, ours, .. } => Some((*theirs, *ours)),
        _ => None,
    };
    events.iter().filter_map(difference).collect()
}

/// Every way to cross, and what a station is told for it.
fn all() -> [(Crossing, Option<CodingParams>); 4] {
    [
        (Crossing::Block, Some(CodingParams::default())),
        (Crossing::Window, Some(CodingParams::window())),
        (Crossing::TcpNc, Some(CodingParams::tcp_nc())),
        (Crossing::Plain, None),
    ]
}

#[test]
fn each_pair_of_ways_is_told_at_both_ends_unless_it_is_one() {
    for (one, first) in all() {
        for (other, second) in all() {
            let first = station(1, first, 1);
            let second = station(2, second, 2);
            assert_eq!((first.config().crossing(), second.config().crossing()), (one, other));
            let mut stations = [first, second];
            let events = converse(&mut stations, 0, 3_000);
            let expected = if one == other { vec![] } else { vec![(other, one)] };
            assert_eq!(differences(&events[0]), expected, "{one} hears {other}");
            let expected = if one == other { vec![] } else { vec![(one, other)] };
            assert_eq!(differences(&events[1]), expected, "{other} hears {one}");
            let known = stations.map(|station| station.inspect().peers[0].crossing);
            assert_eq!(known, [Some(other), Some(one)]);
        }
    }
}

#[test]
fn a_peer_that_restarts_is_told_of_again_and_not_once_it_agrees() {
    let window = Some(CodingParams::window());
    let mut stations = [station(1, window, 1), station(2, Some(CodingParams::tcp_nc()), 2)];
    assert_eq!(differences(&converse(&mut stations, 0, 3_000)[0]).len(), 1);
    stations[1] = station(2, Some(CodingParams::tcp_nc()), 3);
    let again = converse(&mut stations, 3_000, 9_000);
    assert_eq!(differences(&again[0]), [(Crossing::TcpNc, Crossing::Window)]);
    stations[1] = station(2, window, 4);
    let agreed = converse(&mut stations, 12_000, 9_000);
    assert!(agreed[0].iter().any(|event| matches!(event, Event::SessionUp { .. })));
    assert_eq!(differences(&agreed[0]), []);
    assert_eq!(stations[0].inspect().peers[0].crossing, Some(Crossing::Window));
}
