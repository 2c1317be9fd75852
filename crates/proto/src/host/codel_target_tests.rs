//! CoDel's target for synthetic uses of the air.

use core::time::Duration;

use crate::config::Goal;
use crate::host::codel_target::{Air, CodelTarget};

const RTT: Duration = Duration::from_millis(10);

/// The target in milliseconds after a bulk transfer of `seconds`; `starved_ratio`: the share of
/// time in which the air idles at a target in milliseconds.
fn settled(goal: Goal, seconds: u32, starved_ratio: impl Fn(f64) -> f64) -> f64 {
    settled_at(0.1, goal, seconds, starved_ratio)
}

fn settled_at(
    loss_ratio: f64,
    goal: Goal,
    seconds: u32,
    starved_ratio: impl Fn(f64) -> f64,
) -> f64 {
    let mut target = CodelTarget::new(goal);
    let bulk = Duration::from_millis(5);
    for _ in 0..200 * seconds {
        let target_ms = 1e3 * target.params(RTT).target.as_secs_f64();
        let starved = bulk.mul_f64(starved_ratio(target_ms));
        target.note(RTT, Air { bulk, starved, shared: false, loss_ratio, packets_per_s: 0.0 });
    }
    1e3 * target.params(RTT).target.as_secs_f64()
}

#[test]
fn air_that_is_always_full_needs_the_least_queue() {
    for goal in [Goal::Throughput, Goal::LowDelay] {
        assert_eq!(settled(goal, 10, |_| 0.0), 2.0, "a fifth of the round trip");
    }
}

#[test]
fn the_target_settles_where_the_air_is_empty_as_often_as_is_allowed() {
    // With a queue of 10 ms the air never idles; without a queue, a tenth of the time.
    let share = |target_ms: f64| (0.1 - 0.01 * target_ms).max(0.0);
    let throughput = settled(Goal::Throughput, 30, share);
    let low_delay = settled(Goal::LowDelay, 30, share);
    assert!((share(throughput) - 0.02).abs() < 0.002, "{throughput} ms");
    assert!((share(low_delay) - 0.05).abs() < 0.002, "{low_delay} ms");
    assert!(low_delay < throughput);
}

#[test]
fn where_nothing_is_lost_hardly_any_air_may_be_empty() {
    let share = |target_ms: f64| (0.1 - 0.01 * target_ms).max(0.0);
    let target = settled_at(0.0, Goal::Throughput, 60, share);
    assert!((share(target) - 0.004).abs() < 0.001, "{target} ms");
}

#[test]
fn whoever_never_fills_the_air_gets_no_more_than_a_bound() {
    assert_eq!(settled(Goal::Throughput, 60, |_| 1.0), 50.0);
}

#[test]
fn without_a_bulk_transfer_nothing_is_learned() {
    let mut target = CodelTarget::new(Goal::Throughput);
    let before = target.params(RTT);
    target.note(RTT, Air::default());
    assert_eq!(target.params(RTT), before);
}

#[test]
fn on_a_long_path_a_queue_that_stands_is_told_sooner() {
    let rtt = Duration::from_millis(600);
    let mut target = CodelTarget::new(Goal::Throughput);
    let (bulk, starved) = (Duration::from_millis(5), Duration::from_millis(5));
    let air = Air { bulk, starved, shared: false, loss_ratio: 0.1, packets_per_s: 0.0 };
    let mut params = |long| {
        target.set_long(long);
        (0..2_000).for_each(|_| target.note(rtt, air));
        target.params(rtt)
    };
    let (short, long) = (params(false), params(true));
    assert_eq!((short.target, short.interval), (rtt.mul_f64(1.5), 3 * rtt));
    assert!(long.target <= rtt / 3 && long.interval == rtt, "{long:?}");
    let shorter = Duration::from_millis(200);
    assert_eq!(target.params(shorter).interval, 2 * shorter);
}
