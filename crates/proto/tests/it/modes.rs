//! Two ends that carry packets in different ways report this, once each.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::{CodingParams, Crossing, Event, Role, Station, StationConfig, StationId};
use corridor_testbed::config as testbed;
use corridor_testbed::{Air, Bed};

/// A station with this coding; `None`: the unreliable forwarder.
fn station(id: u16, coding: Option<CodingParams>, entropy: u8) -> Station {
    let peer = StationId(3 - id);
    let role = match coding {
        Some(_) => Role::Endpoint { peer, helper: None },
        None => Role::Plain { peer },
    };
    let coding = coding.unwrap_or_default();
    let config = StationConfig { coding, ..testbed::config(StationId(id), role) };
    Station::new(config, [entropy; 32], Time::ZERO).expect("a sound configuration")
}

fn pair(stations: [Station; 2]) -> Bed<Air> {
    Bed::new(stations, Air::new(Duration::ZERO))
}

/// The differences that one of them has reported.
fn differences(pair: &Bed<Air>, at: usize) -> Vec<(Crossing, Crossing)> {
    let difference = |said: &(usize, Event)| match said {
        (by, Event::ModeDiffers { theirs, ours, .. }) if *by == at => Some((*theirs, *ours)),
        _ => None,
    };
    pair.events.iter().filter_map(difference).collect()
}

/// Every way to carry packets, with the coding for it.
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
            let mut pair = pair([first, second]);
            pair.run(Duration::from_secs(3));
            let expected = if one == other { vec![] } else { vec![(other, one)] };
            assert_eq!(differences(&pair, 0), expected, "{one} hears {other}");
            let expected = if one == other { vec![] } else { vec![(one, other)] };
            assert_eq!(differences(&pair, 1), expected, "{other} hears {one}");
            let known = [0, 1].map(|at| pair[at].peers()[0].crossing);
            assert_eq!(known, [Some(other), Some(one)]);
        }
    }
}

#[test]
fn a_peer_that_restarts_is_told_of_again_and_not_once_it_agrees() {
    let window = Some(CodingParams::window());
    let mut pair = pair([station(1, window, 1), station(2, Some(CodingParams::tcp_nc()), 2)]);
    pair.run(Duration::from_secs(3));
    assert_eq!(differences(&pair, 0).len(), 1);
    let mut restart = |coding, entropy| {
        pair.forget();
        pair.start(1, station(2, coding, entropy));
        pair.run(Duration::from_secs(9));
        differences(&pair, 0)
    };
    let again = restart(Some(CodingParams::tcp_nc()), 3);
    assert_eq!(again, [(Crossing::TcpNc, Crossing::Window)]);
    assert_eq!(restart(window, 4), []);
    assert!(pair.events.iter().any(|said| matches!(said, (0, Event::SessionUp { .. }))));
    assert_eq!(pair[0].peers()[0].crossing, Some(Crossing::Window));
}
