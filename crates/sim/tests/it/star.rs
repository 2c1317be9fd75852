//! A hub on a half-duplex radio: what each neighbour gets of it.

use core::time::Duration;

use corridor_sim::star::{Star, jain, measure};

#[test]
fn neighbours_of_a_hub_have_equal_parts_of_a_half_duplex_radio() {
    let star = Star {
        neighbours: 4,
        loss_ratio: 0.1,
        rate_bps: 12_000_000,
        offered_bps: 4e6,
        packet_len: 1_000,
        warm_up: Duration::from_secs(5),
        duration: Duration::from_secs(10),
        seed: 1,
    };
    let measured = measure(&star).unwrap();
    let (up, crossing) = (jain(&measured.up), jain(&measured.crossing));
    let ratio = measured.crossing_ratio();
    assert_eq!(measured.wrong(), 0);
    assert!(up >= 0.95 && crossing >= 0.95, "Jain's index {up} and {crossing}: {measured:#?}");
    assert!(ratio >= 0.4, "the crossing class has {ratio}: {measured:#?}");
}
