//! What must hold whatever a network does: packets come out in order, at most once, byte for byte;
//! what does not come out is accounted for; nothing panics, sticks or spins.
//!
//! Stations run against a network that loses, repeats, delays, reorders, bends, cuts, forges and
//! replays frames, and against clocks that jump. After a while it calms down, and everything has to
//! come to rest. Each run is a function of its number. `CORRIDOR_SEEDS=20000` runs more of them,
//! `CORRIDOR_SEED=17` that one alone.

mod chaos;

use core::time::Duration;

use chaos::{Chaos, Scenario};
use corridor_proto::{Field, Order};

/// Runs `count` scenarios, or as the environment says.
fn run(purpose: &'static str, count: u64, mut scenario: impl FnMut(&mut Scenario)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, last) = match number("CORRIDOR_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("CORRIDOR_SEEDS").map_or(count, |all| all * count / 2_000)),
    };
    for seed in first..last {
        let mut drawn = Scenario::draw(purpose, seed);
        scenario(&mut drawn);
        Chaos::new(drawn).run();
    }
}

#[test]
fn two_endpoints_lose_nothing_unaccounted() {
    run("two endpoints", 900, |_| {});
}

#[test]
fn a_helper_changes_nothing_for_the_hosts() {
    run("helper", 500, |scenario| scenario.helper = true);
}

#[test]
fn a_restart_costs_at_most_what_the_station_held() {
    run("restart", 400, |scenario| {
        scenario.restart = Some((scenario.seed % 2) as usize);
        scenario.helper = scenario.seed % 4 == 3;
    });
}

#[test]
fn a_helper_that_restarts_costs_nothing() {
    run("helper restart", 200, |scenario| {
        scenario.helper = true;
        scenario.restart = Some(2);
    });
}

#[test]
fn a_perfect_network_delivers_everything_and_gives_nothing_up() {
    run("perfect", 200, |scenario| {
        scenario.make_perfect();
        scenario.helper = scenario.seed % 2 == 1;
    });
}

/// Blocks behind the oldest one get done before it: the encoder must not run so far ahead that the
/// decoder takes the oldest for given up.
#[test]
fn a_block_that_takes_long_is_not_left_behind() {
    run("long block", 100, |scenario| {
        scenario.make_perfect();
        scenario.coding.field = Field::Gf2;
        scenario.coding.order = Order::OnTheFly;
        scenario.coding.block_size = 3;
        scenario.coding.overshoot = 1.0;
        scenario.coding.blocks_in_flight = 16;
        scenario.coding.encoder_timeout = Duration::from_millis(50);
        scenario.coding.ack_interval = Duration::from_millis(10);
        scenario.packets = [600, 0];
        scenario.ingress_packets = 600;
        scenario.span = Duration::from_millis(300);
    });
}
