//! The torture tests catch faults: each fault is planted in a station, and has to be caught by the
//! invariant meant for it. The failing scenarios are then shrunk.

use corridor_torture::{Fault, Invariant, Mesh, MeshKind, Plant, Scenario, run, shrink};

/// Seeds in which a fault may stay undetected before it counts as not caught.
const SEEDS: u64 = 60;

/// Which invariants may catch which fault.
const CAUGHT_BY: [(Fault, &[Invariant]); 22] = [
    (Fault::RepeatsPacket, &[Invariant::Delivery]),
    (Fault::SwapsPackets, &[Invariant::Delivery]),
    // A whole symbol that was not counted, or an incomplete symbol.
    (Fault::LosesPacket, &[Invariant::Accounting, Invariant::Delivery]),
    (Fault::BendsPacket, &[Invariant::Delivery]),
    (Fault::CountsTooMuch, &[Invariant::Accounting]),
    (Fault::CountsTooLittle, &[Invariant::Accounting]),
    (Fault::ForgetsTimers, &[Invariant::Stuck]),
    (Fault::AsksForThePast, &[Invariant::Spin]),
    (Fault::Fidgets, &[Invariant::Spin]),
    (Fault::FallsSilent, &[Invariant::Stuck, Invariant::Spin]),
    (Fault::Babbles, &[Invariant::Silence]),
    (Fault::SendsTooLong, &[Invariant::Bounds]),
    (Fault::Panics, &[Invariant::Panic]),
    (Fault::Trusts, &[Invariant::Forgery]),
    (Fault::ForgetsRank, &[Invariant::Ranks]),
    (Fault::BelievesAll, &[Invariant::Ranks]),
    (Fault::Hoards, &[Invariant::Bounds]),
    (Fault::Squanders, &[Invariant::Bounds]),
    (Fault::Overdraws, &[Invariant::Bounds]),
    (Fault::KeepsParts, &[Invariant::Bounds]),
    (Fault::TakesLonger, &[Invariant::Bounds]),
    (Fault::RepeatsNonce, &[Invariant::Nonces]),
];

/// Keeps planted panics out of the tests' output.
fn hush() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&"a planted panic") {
                loud(info);
            }
        }));
    });
}

/// The seeds with a fault planted in the station that receives most.
fn planted(fault: Fault) -> impl Iterator<Item = Scenario> {
    hush();
    (0..SEEDS).map(move |seed| {
        let mut scenario = Scenario { mesh: None, ..Scenario::draw(seed) };
        let station = if fault == Fault::BelievesAll || fault == Fault::Squanders { 0 } else { 1 };
        scenario.plant = Some(Plant { fault, station, after: (seed % 7) as u32 });
        scenario
    })
}

#[test]
fn every_planted_fault_is_caught_by_its_invariant() {
    for (fault, expected) in CAUGHT_BY {
        let found = planted(fault).filter_map(|scenario| {
            let violation = run(&scenario).violation?;
            Some((violation.invariant, scenario.seed, violation.text))
        });
        let found: Vec<_> = found.collect();
        let right = found.iter().filter(|(invariant, ..)| expected.contains(invariant)).count();
        eprintln!("{fault:?}: {right} of {SEEDS}, others {}", found.len() - right);
        assert!(right > 0, "{fault:?} was not caught: {found:?}");
        // A fault may also show elsewhere, but mostly it has to show in the right invariant.
        assert!(2 * right > found.len(), "{fault:?} was caught elsewhere: {found:?}");
    }
}

/// Counts the scenarios that violate this invariant with a fault planted in a station; none
/// violates another one, and none violates any without the fault.
fn caught(
    scenarios: impl Iterator<Item = (Scenario, u8)>,
    fault: Fault,
    expected: Invariant,
) -> usize {
    hush();
    let catches = |(mut scenario, station): (Scenario, u8)| {
        assert_eq!(run(&scenario).violation, None, "seed {}", scenario.seed);
        scenario.plant = Some(Plant { fault, station, after: 0 });
        let found = run(&scenario).violation.map(|found| found.invariant);
        assert!(found.is_none_or(|found| found == expected), "{found:?}: {scenario:?}");
        found.is_some()
    };
    scenarios.map(catches).filter(|&it| it).count()
}

#[test]
fn who_sends_where_nothing_has_answered_is_caught() {
    // The station that the first moving station talks to.
    let moving = || {
        let scenarios = (0..2_000).map(Scenario::draw);
        let one = scenarios.filter(|scenario| scenario.mesh.is_none() && scenario.pairs.len() == 1);
        let moves = one.filter_map(|scenario| {
            let moves = &scenario.addresses.as_ref()?.moves;
            let station = moves.first()?.station;
            Some((scenario, if station == 0 { 1 } else { 0 }))
        });
        moves.take(40)
    };
    for fault in [Fault::FollowsAtOnce, Fault::Floods] {
        let count = caught(moving(), fault, Invariant::Addresses);
        assert!(count > 10, "{fault:?}: {count} of 40");
    }
}

#[test]
fn a_hub_whose_members_notice_that_one_goes_is_caught() {
    let leaving = (0..2_000)
        .map(Scenario::draw)
        .filter(|scenario| scenario.mesh.as_ref().is_some_and(|mesh| !mesh.removals.is_empty()));
    let count = caught(
        leaving.map(|scenario| (scenario, 0)).take(20),
        Fault::StartsMembersAnew,
        Invariant::Members,
    );
    // If the hub is down when a member is removed, there is nothing to notice.
    assert!(count > 15, "{count} of 20");
}

/// What is kept of parts is looked at in hubs and their members as well.
#[test]
fn parts_that_no_neighbour_has_sent_are_caught_in_meshes() {
    let meshes = || {
        let drawn = (0..2_000).map(Scenario::draw);
        let hubs = drawn.filter(|scenario| {
            let of_hubs = |mesh: &Mesh| mesh.kind != MeshKind::RelayRow;
            scenario.insider_ppm == 0 && scenario.mesh.as_ref().is_some_and(of_hubs)
        });
        hubs.take(20).enumerate().map(|(at, scenario)| (scenario, (at % 2) as u8))
    };
    for fault in [Fault::KeepsParts, Fault::TakesLonger] {
        let count = caught(meshes(), fault, Invariant::Bounds);
        assert!(count > 15, "{fault:?}: {count} of 20");
    }
}

#[test]
fn without_a_fault_none_is_caught() {
    for mut scenario in planted(Fault::Panics) {
        scenario.plant = None;
        assert_eq!(run(&scenario).violation, None, "seed {}", scenario.seed);
    }
}

#[test]
fn a_failing_scenario_shrinks_to_what_it_takes() {
    let faults = [(Fault::LosesPacket, Invariant::Accounting), (Fault::Panics, Invariant::Panic)];
    for (fault, invariant) in faults {
        let fails = |scenario: &Scenario| {
            run(scenario).violation.is_some_and(|found| found.invariant == invariant)
        };
        // A scenario with many ingredients that have nothing to do with the fault.
        let mut rich = planted(fault).filter(|scenario| {
            let parts = [
                scenario.restarts.len(),
                scenario.jumps.len(),
                scenario.stalls.len(),
                scenario.outages.len(),
                scenario.forgeries.len(),
            ];
            parts.iter().filter(|&&count| count > 0).count() >= 2 && fails(scenario)
        });
        let scenario = rich.next().expect("a rich scenario that fails");
        let shrunk = shrink(&scenario, invariant, 2_000, || false);
        let small = shrunk.scenario;
        assert!(fails(&small), "{small:?}");
        assert!(small.restarts.is_empty() && small.jumps.is_empty(), "{small:?}");
        assert!(small.stalls.is_empty() && small.outages.is_empty(), "{small:?}");
        assert!(small.forgeries.is_empty() && small.network.loss_ppm == 0, "{small:?}");
        let packets: u32 = small.pairs.iter().flat_map(|p| &p.ends).map(|end| end.packets).sum();
        assert!(packets <= 8, "{packets} packets: {small:?}");
        assert_eq!(small.pairs.len(), 1);
        // The printed line replays it.
        let line = serde_json::to_string(&small).expect("plain numbers and names");
        let read: Scenario = serde_json::from_str(&line).expect("as it was written");
        assert_eq!(read, small);
        assert_eq!(run(&read), run(&small));
    }
}

#[test]
fn shrinking_stops_when_it_is_told_to() {
    let scenario = planted(Fault::Panics).next().expect("a scenario");
    let mut asked = 0;
    let shrunk = shrink(&scenario, Invariant::Panic, 2_000, || {
        asked += 1;
        asked > 5
    });
    assert_eq!(shrunk.runs, 5);
    assert_eq!(shrink(&scenario, Invariant::Panic, 0, || false).scenario, scenario);
}
