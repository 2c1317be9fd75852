//! A hub on a half-duplex radio: each neighbour's share of the channel.

use core::time::Duration;

use corridor_sim::star::{Load, Star, jain, measure};

#[test]
fn neighbours_of_a_hub_have_equal_parts_of_a_half_duplex_radio() {
    let star = Star {
        neighbours: 4,
        loss_ratio: 0.1,
        rate_bps: 12_000_000,
        load: Load::Udp { offered_bps: 4e6, packet_len: 1_000 },
        warm_up: Duration::from_secs(5),
        duration: Duration::from_secs(10),
        seed: 1,
    };
    // Sometimes the rate of a neighbour's link settles late: of twelve seeds, two had a fairness
    // index of 0.8 among crossing flows in the first fifteen seconds.
    let mut indices = [const { Vec::new() }; 2];
    for seed in 1..=5 {
        let measured = measure(&Star { seed, ..star.clone() }).unwrap();
        let ratio = measured.crossing_ratio();
        assert_eq!(measured.wrong(), 0);
        assert!(ratio >= 0.4, "the crossing class has {ratio}, seed {seed}: {measured:#?}");
        indices[0].push(jain(&measured.up));
        indices[1].push(jain(&measured.crossing));
    }
    for mut of_class in indices {
        of_class.sort_by(f64::total_cmp);
        assert!(of_class[2] >= 0.95, "Jain's indices {of_class:?}, ascending");
    }
}
