//! What the formulas of repair promise.

use corridor_base::Stream;
use corridor_base::rand::{Rng, SeedableRng};
use proptest::prelude::*;

use super::repair::{Outlook, Reserve};
use crate::config::Goal;

fn outlook(deficit: usize, sources: usize, repairs: usize, loss_ratio: f64) -> Outlook {
    Outlook { deficit, sources, repairs, loss_ratio }
}

#[test]
fn nothing_is_repaired_where_nothing_is_lost() {
    for goal in [Goal::Throughput, Goal::LowDelay] {
        let reserve = Reserve::new(goal);
        for sources in [0, 1, 10, 1_000] {
            let clean = outlook(0, sources, 0, 0.0);
            assert!(!reserve.wants_repair(&clean, 0.0) && !reserve.wants_repair(&clean, 100.0));
            assert!(!clean.welcomes_repair() && !clean.prefers_copy());
        }
    }
}

#[test]
fn what_is_known_to_be_missing_is_sent_again_once() {
    let reserve = Reserve::new(Goal::Throughput);
    let missing = outlook(1, 0, 0, 0.1);
    assert!(reserve.wants_repair(&missing, 0.0) && missing.prefers_copy());
    let under_way = outlook(1, 0, 1, 0.1);
    assert!(!under_way.prefers_copy() && !reserve.wants_repair(&under_way, 0.0));
}

#[test]
fn air_that_nobody_wants_insures_against_losses_that_are_likely() {
    assert!(outlook(0, 1, 0, 0.1).welcomes_repair() && outlook(1, 0, 1, 0.1).welcomes_repair());
    assert!(!outlook(0, 1, 1, 0.1).welcomes_repair());
    assert!(!outlook(0, 1, 0, 0.01).welcomes_repair() && outlook(0, 50, 0, 0.01).welcomes_repair());
}

#[test]
fn losses_on_a_short_way_are_waited_for_rather_than_foreseen() {
    let reserve = Reserve::new(Goal::Throughput);
    assert!(!reserve.wants_repair(&outlook(0, 4, 0, 0.3), 0.0));
    assert!(reserve.wants_repair(&outlook(0, 100, 0, 0.3), 0.0));
}

#[test]
fn where_air_is_spare_repair_runs_ahead_of_need() {
    let (busy, mut spare) = (Reserve::new(Goal::Throughput), Reserve::new(Goal::Throughput));
    let now = outlook(0, 60, 6, 0.1);
    (0..100).for_each(|_| spare.note(5.0, 5.0, 0, &now));
    assert!(!busy.wants_repair(&now, 0.0) && spare.wants_repair(&now, 0.0));
}

proptest! {
    /// More missing or more on its way that may get lost never means less repair, and more repair
    /// on its way never means more of it.
    #[test]
    fn repair_is_monotone(
        deficit in 0usize..50, sources in 0usize..500, repairs in 0usize..50, percent in 0u32..=95,
    ) {
        let p = f64::from(percent) / 100.0;
        let here = outlook(deficit, sources, repairs, p).expected_deficit();
        prop_assert!(outlook(deficit + 1, sources, repairs, p).expected_deficit() > here);
        prop_assert!(outlook(deficit, sources + 1, repairs, p).expected_deficit() >= here);
        prop_assert!(outlook(deficit, sources, repairs + 1, p).expected_deficit() < here);
        prop_assert!(outlook(deficit, sources, repairs, p).deviation().is_finite());
    }

    /// The reserve never leaves its bounds, so that it is soon where it is needed, and repair of
    /// what is missing is wanted in the end whatever was in vain before.
    #[test]
    fn no_waste_ever_ends_repair(
        notes in proptest::collection::vec(
            (0u32..300, 0u32..300, any::<u16>(), 0usize..300, 0u32..=95),
            0..60,
        ),
    ) {
        for goal in [Goal::Throughput, Goal::LowDelay] {
            let mut reserve = Reserve::new(goal);
            for &(received, spare, useless, sources, percent) in &notes {
                let now = outlook(0, sources, 0, f64::from(percent) / 100.0);
                reserve.note(f64::from(received), f64::from(spare), useless, &now);
            }
            prop_assert!(reserve.wants_repair(&outlook(2, 0, 0, 0.0), 0.0));
            prop_assert!(reserve.wants_repair(&outlook(40, 100, 0, 0.3), 0.0));
            prop_assert!(!reserve.wants_repair(&outlook(0, 0, 0, 0.3), 100.0));
        }
    }
}

/// Share of the frames that come in vain where repair is decided by these formulas: symbols of a
/// window, feedback `ahead` frames late, losses independent.
fn waste(goal: Goal, loss_ratio: f64, ahead: usize) -> f64 {
    let (mut draws, mut reserve) = (Stream::from_seed([5; 32]), Reserve::new(goal));
    // Frames on their way: whether repair, whether lost.
    let mut log = std::collections::VecDeque::new();
    let (mut deficit, mut told, mut useless, mut received) = (0i64, (0, 0.0), 0u16, 0.0);
    for frame in 0..200_000 {
        let repairs = log.iter().filter(|&&(repair, _)| repair).count();
        let now = outlook(deficit.max(0) as usize, log.len() - repairs, repairs, loss_ratio);
        let repair = reserve.wants_repair(&now, 0.0);
        let lost = f64::from(draws.next_u32()) / 2f64.powi(32) < loss_ratio;
        log.push_back((repair, lost));
        if log.len() <= ahead {
            continue;
        }
        match log.pop_front() {
            Some((false, true)) => deficit += 1,
            Some((true, false)) if deficit > 0 => deficit -= 1,
            Some((true, false)) => useless += u16::from(frame > 0),
            _ => {}
        }
        received += 1.0 - loss_ratio;
        if frame % 5 == 0 {
            reserve.note(received - told.1, 0.0, useless.wrapping_sub(told.0), &now);
            told = (useless, received);
        }
    }
    f64::from(useless) / received
}

#[test]
fn waste_keeps_to_its_share_whatever_the_loss_and_the_round_trip() {
    for loss_ratio in [0.05, 0.2, 0.4] {
        for ahead in [4, 30, 100] {
            let throughput = waste(Goal::Throughput, loss_ratio, ahead);
            let low_delay = waste(Goal::LowDelay, loss_ratio, ahead);
            assert!(throughput < 0.05, "{throughput} at {loss_ratio}, {ahead} frames");
            assert!(low_delay < 0.11, "{low_delay} at {loss_ratio}, {ahead} frames");
            assert!(low_delay > throughput, "{low_delay}, {throughput} at {loss_ratio}, {ahead}");
        }
    }
}
