//! Hubs and relays: each kind by itself, with every seed.

use corridor_torture::{Coverage, Feature, MeshKind, Scenario, run};

/// Runs the first `count` seeds that have a mesh, as one of this kind.
fn torture(kind: MeshKind, count: usize) -> Coverage {
    let meshes = (0..).map(Scenario::draw).filter(|scenario| scenario.mesh.is_some());
    let mut coverage = Coverage::default();
    for mut scenario in meshes.take(count) {
        scenario.mesh.iter_mut().for_each(|mesh| {
            mesh.kind = kind;
            if kind != MeshKind::HubStar {
                mesh.removals.clear();
            }
            if kind == MeshKind::RelayRow {
                mesh.keys = None;
            }
        });
        // In a row one node moves at most, and relays never do.
        let moves = scenario.addresses.iter().flat_map(|addresses| &addresses.moves);
        let movers: std::collections::BTreeSet<u8> = moves.map(|it| it.station).collect();
        if kind == MeshKind::RelayRow || kind == MeshKind::HubRow && movers.len() > 1 {
            scenario.addresses = None;
        }
        if kind == MeshKind::HubStar && movers.len() > 1 && movers.contains(&0) {
            scenario.addresses = None;
        }
        scenario.check().expect("what is drawn can be");
        let outcome = run(&scenario);
        if let Some(violation) = outcome.violation {
            panic!("seed {}: {violation}\n{scenario:?}", scenario.seed);
        }
        coverage.merge(&outcome.coverage);
    }
    coverage
}

#[test]
fn hubs_and_their_neighbours() {
    let coverage = torture(MeshKind::HubStar, 60);
    assert!(coverage.seeds(Feature::MeshForwarded) > 10);
    let features = [
        Feature::MembersChanged,
        Feature::MembersStayed,
        Feature::AddressesFollowed,
        Feature::SecretsHub,
        Feature::SessionsHub,
    ];
    for feature in features {
        assert!(coverage.seeds(feature) > 3, "{}", feature.key());
    }
}

#[test]
fn hubs_in_a_row_push_back() {
    let coverage = torture(MeshKind::HubRow, 60);
    assert!(coverage.seeds(Feature::MeshForwarded) > 10);
    assert!(coverage.seeds(Feature::MeshCreditWaits) > 0);
    assert!(coverage.seeds(Feature::SecretsHub) > 3);
}

#[test]
fn relays_in_a_row_combine() {
    let coverage = torture(MeshKind::RelayRow, 100);
    for feature in [Feature::MeshForwarded, Feature::MeshCoded, Feature::MeshDecoded] {
        assert!(coverage.seeds(feature) > 5, "{} of seeds", feature.key());
    }
}

/// A seed in which an adversary holds back a frame that was lost on its way to a relay, and
/// delivers it when the relay has forgotten that the packet has come: it was delivered twice.
#[test]
fn a_frame_that_was_held_up_brings_no_copy() {
    let outcome = run(&Scenario::draw(158_646));
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
    assert!(outcome.coverage.total(Feature::MeshHeldUp) > 0);
    assert_eq!(outcome.coverage.total(Feature::MeshHeldUpTwice), 0);
}

/// Seeds in which TCP segments arrive late at their end, and others wait for them there.
#[test]
fn segments_that_have_overtaken_others_wait_for_them() {
    let mut held = 0;
    for seed in [1_296, 2_364, 2_885] {
        let outcome = run(&Scenario::draw(seed));
        assert!(outcome.violation.is_none(), "seed {seed}: {:?}", outcome.violation);
        held += outcome.coverage.total(Feature::MeshOrdered);
    }
    assert!(held > 0);
}

/// Seeds in which relays with a queue of 2 or 5 packets retransmit something while it is full.
#[test]
fn what_relays_send_again_waits_beside_a_full_queue() {
    for seed in [18_298, 49_041, 62_359] {
        let outcome = run(&Scenario::draw(seed));
        assert!(outcome.violation.is_none(), "seed {seed}: {:?}", outcome.violation);
    }
}

/// Seeds in which a relay's clock jumps by more than a second and a half, for which it remembers
/// what has come: it took its neighbours' retransmissions for new packets.
#[test]
fn relays_know_copies_across_a_sleep() {
    for seed in [2_290, 4_715, 10_233, 14_964, 25_170, 28_944, 30_355, 33_158, 34_098] {
        let outcome = run(&Scenario::draw(seed));
        assert!(outcome.violation.is_none(), "seed {seed}: {:?}", outcome.violation);
    }
}
