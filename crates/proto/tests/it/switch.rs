//! Three stations on a switch, where each frame reaches only its addressee; and on an Ethernet hub,
//! which passes everything to all.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{Role, Station, StationConfig, StationId};
use corridor_testbed::config as testbed;
use corridor_testbed::{Air, Bed, Passage};

const ENDS: [StationId; 2] = [StationId(1), StationId(2)];
const HELPER: StationId = StationId(3);

fn station(index: usize) -> Station {
    let id = [ENDS[0], ENDS[1], HELPER][index];
    let role = match ENDS.iter().position(|&end| end == id) {
        Some(end) => Role::Endpoint { peer: ENDS[1 - end], helper: Some(HELPER) },
        None => Role::Helper { between: (ENDS[0], ENDS[1]) },
    };
    let config = StationConfig { frame_len_min: 46, ..testbed::config(id, role) };
    Station::new(config, [index as u8 + 1; 32], Time::ZERO).expect("a sound configuration")
}

/// Sends packets in both directions for `ms` milliseconds; every frame takes one. `passes` decides
/// whether a frame reaches a station, given sender, receiver, and whether it is the addressee.
fn converse(ms: u64, passes: impl FnMut(&Passage<'_>) -> bool + 'static) -> Bed<Air> {
    let air = Air::with(Duration::from_millis(1), passes);
    let mut bed = Bed::new([0, 1, 2].map(station), air);
    for _ in 0..ms {
        for end in 0..ENDS.len() {
            bed.put(end, &[0x45; 1_000]);
        }
        bed.run(Duration::from_millis(1));
        bed.forget();
    }
    bed
}

#[test]
fn what_a_switch_keeps_from_a_station_is_no_loss() {
    let bed = converse(10_000, |it| it.is_for);
    for at in 0..3 {
        let ratios = ratios(&bed, at);
        assert!(ratios.iter().all(|&ratio| ratio < 0.05), "e1, e2, e3 = {ratios:?} at {at}");
    }
}

fn ratios(bed: &Bed<Air>, at: usize) -> [f64; 3] {
    let stats = bed[at].stats();
    [stats.erasure_ratio_e1, stats.erasure_ratio_e2, stats.erasure_ratio_e3]
}

/// Losses are measured equally whether stations hear frames to others or not: a helper is sent what
/// both ends send, and each end what is for it, as on interfaces that drop frames to other
/// addresses. A helper that hears nothing is not counted on.
#[test]
fn what_gets_lost_counts_where_others_are_heard_and_where_they_are_not() {
    for (helper_hears, ends_hear) in [(false, false), (true, false), (true, true)] {
        let mut dice = StreamKey { seed: 5, replication: 0, entity: 0, purpose: "switch" }.stream();
        let lost = |from, to| if from < 2 && to < 2 { 40 } else { 20 };
        let bed = converse(20_000, move |it| {
            let hears = it.is_for || if it.to == 2 { helper_hears } else { ends_hear };
            hears && dice.next_u32() % 100 >= lost(it.from, it.to)
        });
        let recoded = bed[2].stats().recoded_frames_sent;
        for at in [0, 1] {
            let [e1, e2, e3] = ratios(&bed, at);
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
