//! Invariants on any network: packets are delivered in order, at most once, and unaltered; what is
//! not delivered is accounted for; no station panics, sticks or spins. The library checks them;
//! this runs some of its seeds, and scenarios of special interest. `make soak` and `make torture`
//! run as many more as time permits.
//!
//! Each run is a function of its number. `CORRIDOR_SEEDS=20000` runs more of them,
//! `CORRIDOR_SEED=17` only that one.

use corridor_proto::{DeliveryName, FieldName, GoalName, OrderName};
use corridor_torture::{Coverage, Feature, Help, Restart, Scenario, WindowCoding, run};

/// Scenarios of all tests together.
const ALL: u64 = 3_200;

/// Runs `count` scenarios, or those that the environment selects. `change` adapts them to the test.
fn torture(count: u64, change: impl Fn(&mut Scenario)) -> Coverage {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, last) = match number("CORRIDOR_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("CORRIDOR_SEEDS").map_or(count, |all| all * count / ALL)),
    };
    let mut coverage = Coverage::default();
    for seed in first..last {
        let mut scenario = Scenario::draw(seed);
        change(&mut scenario);
        let outcome = run(&scenario);
        if let Some(violation) = outcome.violation {
            panic!("seed {seed}: {violation}\n{scenario:?}");
        }
        coverage.merge(&outcome.coverage);
    }
    coverage
}

/// One pair, with or without a helper.
fn one_pair(scenario: &mut Scenario, helper: bool) {
    scenario.mesh = None;
    scenario.pairs.truncate(1);
    scenario.same_numbers = false;
    scenario.pairs[0].plain = false;
    scenario.pairs[0].helper = if helper { Help::Present } else { Help::None };
    scenario.outages.clear();
    scenario.stalls.clear();
    scenario.jumps.clear();
    scenario.restarts.clear();
    scenario.insider_ppm = 0;
    // Stations with individual keys overhear on a shared link, not between addresses.
    if helper && scenario.pairs[0].keys.is_some() {
        scenario.addresses = None;
    }
    // At most one of them moves.
    let stations = if helper { 3 } else { 2 };
    scenario.mtus.retain(|change| change.station < stations);
    if let Some(addresses) = &mut scenario.addresses {
        let mover = addresses.moves.first().map(|it| it.station);
        addresses.moves.retain(|it| Some(it.station) == mover && it.station < stations);
    }
    for end in &mut scenario.pairs[0].ends {
        // As much as the frame has room for beside a helper's vector.
        end.coding.symbol_size = 0;
        end.coding.block_size = end.coding.block_size.min(256);
        if helper {
            end.coding.window = None;
        }
    }
}

#[test]
fn seeds_as_they_are_drawn() {
    let coverage = torture(1_000, |_| {});
    // A single seed, selected by the environment, cannot exercise everything.
    if std::env::var_os("CORRIDOR_SEED").is_none() {
        for &feature in Feature::ALL {
            // These occur once in hundreds or thousands of seeds: `ends_may_want_another_order`
            // covers the first, `a_frame_that_was_held_up_brings_no_copy` the second, and
            // `segments_that_have_overtaken_others_wait_for_them` the last.
            let rare = [
                Feature::WindowOverdue,
                Feature::MeshHeldUp,
                Feature::MeshHeldUpTwice,
                Feature::MeshOrdered,
            ];
            let is_rare = rare.contains(&feature);
            assert!(is_rare || coverage.seeds(feature) > 0, "nothing had {}", feature.key());
        }
    }
}

/// A seed with blocks of 160 symbols of 9 kB at 1 Mbit/s. Nothing is delivered before the last
/// symbol has come: for 12 s only the rank tells of progress.
#[test]
fn long_blocks_are_no_standstill() {
    let outcome = run(&Scenario::draw(25_069_237));
    assert_eq!(outcome.violation, None);
}

/// Seeds in which a peer has moved, has nothing to send, and sent a HELLO from its new address
/// before: the frame that answered it used up what a second challenge needed. The peer was never
/// followed, and its old address was challenged 66 times after each HELLO.
#[test]
fn a_peer_that_has_moved_at_rest_is_followed_and_no_more_is_asked() {
    for seed in [23_198, 40_676, 40_992] {
        let outcome = run(&Scenario::draw(seed));
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}

/// A seed in which the two ends look for a helper by HELLOs of 468 bytes, at 500 kbit/s: a greeting
/// was in flight at every check for rest.
#[test]
fn greetings_on_their_way_are_nothing_that_waits() {
    assert_eq!(run(&Scenario::draw(24_171)).violation, None);
}

/// Seeds in which an interface accepts 256 to 420 bytes, and its station calls a peer that must not
/// answer with more bytes, or lists several sessions: its HELLO was too long.
#[test]
fn hellos_are_no_longer_than_the_interface_takes() {
    for seed in [39, 67, 596, 1_516, 2_216] {
        assert_eq!(run(&Scenario::draw(seed)).violation, None, "seed {seed}");
    }
}

/// Seeds in which acknowledgments overtake each other while a helper restarts, or is not heard: an
/// older one with a lower rank was taken for the newest.
#[test]
fn a_rank_falls_only_by_what_was_told_last() {
    for seed in [67_251, 71_816] {
        assert_eq!(run(&Scenario::draw(seed)).violation, None, "seed {seed}");
    }
}

/// A seed in which a station with a key pair restarts, and what its first run sealed arrives when
/// its peer and the second run have agreed on another secret: the peer went over to that of the
/// first run, and neither end could open what the other sealed.
#[test]
fn a_late_frame_of_a_run_before_parts_no_pair() {
    assert_eq!(run(&Scenario::draw(8_000_677)).violation, None);
}

/// A seed in which repair filled the air with 4,000 short frames a second, and each left a timer
/// that did nothing: all that the frame combined was done before it could no longer arrive late.
#[test]
fn repair_that_fills_the_air_leaves_no_timers_behind() {
    assert_eq!(run(&Scenario::draw(41_103_790)).violation, None);
}

/// A seed in which an outage left many gaps in the last block, and its encoder gave up: the decoder
/// passed over one gap per deadline, and acknowledged each, for 20 s.
#[test]
fn gaps_in_the_last_block_end_together() {
    assert_eq!(run(&Scenario::draw(41_108_212)).violation, None);
}

/// A seed in which a block is far from full at the end, its decoder has all of it, and the helper
/// has hundreds of transmissions left for it, of 12 and 50 ms each: it made all of them, and the
/// decoder acknowledged each.
#[test]
fn a_helper_falls_silent_once_the_decoder_has_all_it_knows() {
    assert_eq!(run(&Scenario::draw(41_083_419)).violation, None);
}

/// A seed in which the decoder does not take a lying helper's frames, and acknowledges nothing: the
/// helper, behind a slow interface, sent them for seconds after the encoder had given the block up.
#[test]
fn a_helper_falls_silent_once_the_encoder_has_given_up() {
    assert_eq!(run(&Scenario::draw(9_424_239)).violation, None);
}

/// A seed in which an attacker forwards a challenge and the copied answer, so that it is taken for
/// the station that stays, and then the other moves: each sent to an address where nobody was.
#[test]
fn who_was_taken_to_be_elsewhere_is_found_where_it_was() {
    assert_eq!(run(&Scenario::draw(52_008_617)).violation, None);
}

/// Seeds in which a decoder had a block beyond its window, and one more spare block than fits.
#[test]
fn a_block_beyond_the_window_is_no_spare_one() {
    for seed in [1_725, 2_563, 16_175] {
        assert_eq!(run(&Scenario::draw(seed)).violation, None, "seed {seed}");
    }
}

/// A seed in which a clock jumps just when a window gets other lanes: it got others again before
/// the receiver had heard of these, and symbols of three stretches came together.
#[test]
fn what_has_come_of_a_stretch_is_delivered() {
    assert_eq!(run(&Scenario::draw(8_011_247)).violation, None);
}

/// A seed in which a decoder drops the rows of a block, since memory is scarce: it did not report
/// that.
#[test]
fn rows_that_are_dropped_for_others_are_reported() {
    assert_eq!(run(&Scenario::draw(8_062_892)).violation, None);
}

/// A seed in which a block has only rows of a helper that is left out, and then makes room for
/// another.
#[test]
fn a_block_without_rows_may_go() {
    assert_eq!(run(&Scenario::draw(150_003_275)).violation, None);
}

#[test]
fn a_restart_costs_at_most_what_the_station_held() {
    torture(400, |scenario| {
        one_pair(scenario, scenario.seed % 4 == 3);
        let station = (scenario.seed % 2) as u8;
        scenario.restarts = vec![Restart { station, at_ms: scenario.span_ms / 2, down_ms: 0 }];
    });
}

/// Both ends in window mode, with each seed's own window or a small one.
fn windows(scenario: &mut Scenario) {
    one_pair(scenario, false);
    let [a, b] = &mut scenario.pairs[0].ends;
    let (goal, delivery) = (GoalName::Throughput, DeliveryName::Auto);
    let (wraps, window_lane) = (scenario.seed.is_multiple_of(3), 8 >> (scenario.seed % 4));
    let max_overhead_percent = 0;
    let small =
        WindowCoding { window_size: 8, window_lane, goal, delivery, max_overhead_percent, wraps };
    a.coding.window.get_or_insert(small);
    b.coding.window.get_or_insert(small);
}

#[test]
fn windows_survive_restarts_of_either_end_and_their_numbers_wrap() {
    let coverage = torture(400, |scenario| {
        windows(scenario);
        let station = (scenario.seed % 2) as u8;
        if scenario.seed % 4 < 2 {
            scenario.restarts = vec![Restart { station, at_ms: scenario.span_ms / 2, down_ms: 20 }];
        }
    });
    if std::env::var_os("CORRIDOR_SEED").is_none() {
        for feature in [Feature::WindowWrapped, Feature::WindowRepeated, Feature::WindowCopies] {
            assert!(coverage.seeds(feature) > 0, "nothing had {}", feature.key());
        }
    }
}

/// Datagrams only wait if both ends want that: the sender says which are in order, the receiver how
/// long they wait.
#[test]
fn ends_may_want_another_order() {
    let coverage = torture(300, |scenario| {
        windows(scenario);
        let one = (scenario.seed % 2) as usize;
        let others = [DeliveryName::Auto, DeliveryName::Immediate];
        let wanted = [DeliveryName::InOrder, others[(scenario.seed / 2 % 2) as usize]];
        for (end, delivery) in [one, 1 - one].into_iter().zip(wanted) {
            let coding = &mut scenario.pairs[0].ends[end].coding;
            coding.window.as_mut().expect("both have one").delivery = delivery;
        }
        scenario.network.loss_ppm = scenario.network.loss_ppm.max(500_000);
    });
    if std::env::var_os("CORRIDOR_SEED").is_none() {
        let overdue = coverage.total(Feature::WindowOverdue);
        assert!(overdue >= 5, "{overdue} datagrams");
    }
}

/// Everything that the ingress queue does not drop to signal congestion is delivered.
#[test]
fn on_a_perfect_network_windows_give_nothing_up() {
    let coverage = torture(200, |scenario| {
        windows(scenario);
        scenario.make_perfect();
    });
    assert_eq!(coverage.total(Feature::WindowGivenUpReceiver), 0);
    assert_eq!(coverage.total(Feature::WindowGivenUpSender), 0);
    let (dropped, gone) = (Feature::WindowDropped, Feature::PacketsDroppedIngress);
    let lost = coverage.total(dropped) + coverage.total(gone);
    let accepted = coverage.total(Feature::PacketsAccepted);
    assert!(coverage.total(Feature::PacketsDelivered) + lost >= accepted);
}

/// Delivery is not guaranteed then, but bounds hold, and nothing panics or spins.
#[test]
fn an_insider_who_speaks_of_windows_breaks_no_bounds() {
    let coverage = torture(400, |scenario| {
        windows(scenario);
        scenario.insider_ppm = 60_000;
    });
    if std::env::var_os("CORRIDOR_SEED").is_none() {
        assert!(coverage.total(Feature::InsiderAccepted) > 100);
    }
}

#[test]
fn a_helper_that_restarts_costs_nothing() {
    torture(200, |scenario| {
        one_pair(scenario, true);
        scenario.restarts = vec![Restart { station: 2, at_ms: scenario.span_ms / 2, down_ms: 20 }];
    });
}

#[test]
fn a_perfect_network_delivers_everything_and_gives_nothing_up() {
    let coverage = torture(200, |scenario| {
        one_pair(scenario, scenario.seed % 2 == 1);
        scenario.pairs[0].ends.iter_mut().for_each(|end| end.coding.window = None);
        scenario.make_perfect();
    });
    assert_eq!(coverage.total(Feature::PacketsGivenUpReceiver), 0);
    assert_eq!(coverage.total(Feature::PacketsAccepted), coverage.total(Feature::PacketsDelivered));
}

/// Blocks after the oldest one are finished before it: the encoder must not run so far ahead that
/// the decoder takes the oldest for given up.
#[test]
fn a_block_that_takes_long_is_not_left_behind() {
    torture(100, |scenario| {
        one_pair(scenario, false);
        scenario.make_perfect();
        scenario.span_ms = 300;
        for end in &mut scenario.pairs[0].ends {
            end.coding.field = FieldName::Gf2;
            end.coding.order = OrderName::OnTheFly;
            end.coding.block_size = 3;
            end.coding.overshoot_percent = 100;
            end.coding.blocks_in_flight = 16;
            end.coding.encoder_timeout_ms = 50;
            end.coding.ack_interval_ms = 10;
            end.ingress_packets = 600;
        }
        scenario.pairs[0].ends[0].packets = 600;
        scenario.pairs[0].ends[1].packets = 0;
    });
}

/// A path so short that no packet fits behind a block's vector: its host has none to send.
#[test]
fn frames_too_short_for_any_packet() {
    let outcome = run(&Scenario::draw(101_329));
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
}
