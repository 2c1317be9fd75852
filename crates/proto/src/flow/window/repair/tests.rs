//! Guarantees of the repair formulas.

use core::time::Duration;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use proptest::prelude::*;

use crate::config::Goal;
use crate::flow::window::repair::belief::{Belief, Stakes, Weigh};
use crate::flow::window::repair::{ExpectedLate, Outlook, Reserve, SpareAir};
use crate::link::sent::{FrameNumber, Sent, What};

fn outlook(deficit: usize, sources: usize, repairs: usize, loss_ratio: f64) -> Outlook {
    Outlook { deficit, sources, repairs, loss_ratio, late: ExpectedLate::default() }
}

/// A frame of 1,000 bytes.
fn sent(number: FrameNumber, at: Time, what: What) -> Sent {
    Sent { number, at, what, held: false, after_gap: false, len: 1_000, beside: 0, parts: 1 }
}

/// The stakes with these frames in flight, one per millisecond: they fill a round trip, at whose
/// beginning the receiver began to lack `deficit` symbols.
fn stakes(deficit: usize, frames: &[What], loss_ratio: f64) -> Stakes {
    let at = |ms: usize| Time::from_nanos(1_000_000 * ms as u64);
    let round_trip = frames.len().max(1);
    let log: Vec<Sent> = (0u32..)
        .zip(frames)
        .map(|(number, &what)| {
            let at = at(round_trip + number as usize);
            let number = FrameNumber::new(0, number);
            sent(number, at, what)
        })
        .collect();
    let mut belief = Belief::new(Time::ZERO);
    belief.restart((deficit, at(round_trip)), (&[], log.iter()), loss_ratio, at(2 * round_trip));
    belief.stakes(at(2 * round_trip), Duration::from_millis(round_trip as u64), Weigh::Squared)
}

fn sources(count: u64) -> Vec<What> {
    (0..count).map(What::Source).collect()
}

#[test]
fn nothing_is_repaired_where_nothing_is_lost() {
    for goal in [Goal::Throughput, Goal::LowDelay, Goal::Bulk] {
        let reserve = Reserve::new(goal);
        for count in [0, 1, 10, 1_000] {
            assert!(!reserve.wants_repair(stakes(0, &sources(count), 0.0), 0.0));
            let clean = outlook(0, count as usize, 0, 0.0);
            assert!(!clean.welcomes_repair(goal == Goal::Bulk));
        }
    }
}

#[test]
fn what_is_known_to_be_missing_is_sent_again_once() {
    let reserve = Reserve::new(Goal::Throughput);
    assert!(reserve.wants_repair(stakes(1, &[], 0.1), 0.1));
    assert!(reserve.prefers_copy(stakes(1, &[], 0.1), 0.1));
    assert!(!reserve.wants_repair(stakes(1, &[What::Copy(0)], 0.1), 0.1));
}

#[test]
fn a_copy_goes_where_hardly_anything_can_have_made_it_useless() {
    let reserve = Reserve::new(Goal::Throughput);
    let prefers = |deficit, repairs: usize| {
        let mut frames = sources(60);
        frames.splice(0..0, vec![What::Coded; repairs]);
        reserve.prefers_copy(stakes(deficit, &frames, 0.3), 0.3)
    };
    // Nothing was known to be missing, so there is nothing to copy.
    assert!(!prefers(0, 0));
    assert!(prefers(1, 0) && prefers(5, 3) && prefers(5, 4) && prefers(20, 20));
    // If as much repair is in flight as is needed, everything may have been decoded meanwhile.
    assert!(!prefers(1, 8) && !prefers(5, 20) && !prefers(20, 60));
}

#[test]
fn air_that_nobody_wants_insures_against_losses_that_are_likely() {
    assert!(
        outlook(0, 1, 0, 0.1).welcomes_repair(false)
            && outlook(1, 0, 1, 0.1).welcomes_repair(false)
    );
    assert!(!outlook(0, 1, 1, 0.1).welcomes_repair(false));
    assert!(
        !outlook(0, 1, 0, 0.01).welcomes_repair(false)
            && outlook(0, 50, 0, 0.01).welcomes_repair(false)
    );
}

#[test]
fn losses_on_a_short_way_are_waited_for_rather_than_foreseen() {
    let reserve = Reserve::new(Goal::Throughput);
    assert!(!reserve.wants_repair(stakes(0, &sources(4), 0.3), 0.3));
    assert!(reserve.wants_repair(stakes(0, &sources(100), 0.3), 0.3));
    assert!(!reserve.wants_repair(stakes(0, &sources(100), 0.001), 0.001));
}

#[test]
fn repair_in_vain_costs_nothing_where_as_much_air_was_spare_of_late() {
    let now = stakes(0, &sources(12), 0.3);
    let wants = |notes: &[(f64, f64, u16)]| {
        let mut reserve = Reserve::new(Goal::Throughput);
        assert!(reserve.wants_repair(now, 0.3));
        for &(round_trips, spare, useless) in notes {
            reserve.note(round_trips, 5.0, spare, useless);
        }
        reserve.wants_repair(now, 0.3)
    };
    assert!(!wants(&[(1.0, 0.0, 4); 50]), "what is spurious has its price");
    assert!(wants(&[(1.0, 4.0, 4); 50]), "but not if the air was spare");
    assert!(wants(&[(1.0, 200.0, 0), (1.0, 0.0, 150)]), "nor a round trip later");
    assert!(!wants(&[(1.0, 200.0, 0), (100.0, 0.0, 150)]), "that does not last for ever");
    assert!(
        !wants(&[(1.0, 200.0, 0), (1.0, 0.0, 150), (1.0, 0.0, 150)]),
        "and does not count twice"
    );
}

/// How many repair symbols are sent ahead of `waiting` packets.
fn taken(spare: &mut SpareAir, now: Time, waiting: usize, stakes: Stakes) -> usize {
    let round_trip = Duration::from_millis(100);
    let mut goes = || {
        let goes = spare.welcomes_repair(now, round_trip, waiting, stakes);
        goes.then(|| spare.take()).is_some()
    };
    (0..20).take_while(|_| goes()).count()
}

#[test]
fn repair_goes_ahead_only_into_as_much_air_as_was_spare_of_late() {
    let round_trip = Duration::from_millis(100);
    let (likely, unlikely) = (stakes(0, &sources(3), 0.3), stakes(0, &sources(1), 0.3));
    assert!(likely.spurious < 0.5 && unlikely.spurious > 0.5);
    let mut spare = SpareAir::new(Time::ZERO);
    assert_eq!(taken(&mut spare, Time::ZERO, 1, likely), 0, "nothing was spare");
    spare.note(Time::ZERO, round_trip, 5.5);
    assert_eq!(taken(&mut spare, Time::ZERO, 1, unlikely), 0, "it is rather spurious");
    assert_eq!(taken(&mut spare, Time::ZERO, 12, likely), 0, "what waits takes it itself");
    assert_eq!(taken(&mut spare, Time::ZERO, 1, likely), 5);
}

#[test]
fn what_was_spare_is_forgotten_however_often_it_is_looked_at() {
    let round_trip = Duration::from_millis(100);
    let likely = stakes(0, &sources(3), 0.3);
    for (after_ms, left) in [(0, 10), (50, 6), (100, 3), (300, 0)] {
        for looks in [1, 50] {
            let mut spare = SpareAir::new(Time::ZERO);
            spare.note(Time::ZERO, round_trip, 10.5);
            for look in 1..=looks {
                let now = Time::from_nanos(1_000_000 * after_ms * look / looks);
                spare.welcomes_repair(now, round_trip, 1, likely);
            }
            let now = Time::from_millis(after_ms);
            assert_eq!(taken(&mut spare, now, 1, likely), left, "{after_ms} ms, {looks} looks");
        }
    }
}

/// For five frames, over all 32 combinations of losses.
#[test]
fn beliefs_are_what_all_outcomes_together_give() {
    let loss_ratio: f64 = 0.3;
    let frames = [What::Source(0), What::Coded, What::Source(1), What::Source(2), What::Coded];
    for deficit in 0..4usize {
        let (mut spurious, mut waiting) = (0.0, 0.0);
        // Probability, and sum of the waits' beginnings, by final deficit; in frames before now.
        let mut cases = [(0.0, 0.0); 8];
        for lost in 0..32u32 {
            let (mut lacks, mut since, mut probability) = (deficit, 5.0, 1.0);
            for (at, what) in frames.iter().enumerate() {
                let is_lost = lost & 1 << at != 0;
                probability *= if is_lost { loss_ratio } else { 1.0 - loss_ratio };
                match (what, is_lost) {
                    (What::Source(_), true) => {
                        since = if lacks == 0 { 5.0 - at as f64 } else { since };
                        lacks += 1;
                    }
                    (What::Coded, false) => lacks = lacks.saturating_sub(1),
                    _ => {}
                }
            }
            cases[lacks].0 += probability;
            cases[lacks].1 += probability * since / 5.0;
        }
        for (lacks, (probability, since)) in cases.into_iter().enumerate() {
            match lacks {
                0 => spurious = probability,
                _ if probability > 0.0 => waiting += since * since / probability,
                _ => {}
            }
        }
        let believed = stakes(deficit, &frames, loss_ratio);
        assert!((believed.spurious - spurious).abs() < 1e-6, "{believed:?}, {spurious}");
        assert!((believed.waiting - waiting).abs() < 1e-4, "{believed:?}, {waiting}");
    }
}

#[test]
fn very_many_frames_are_gone_through_only_as_often_as_is_cheap() {
    let mut belief = Belief::new(Time::ZERO);
    assert!(belief.affords(4_096) && belief.affords(8_192));
    let log: Vec<Sent> = (0..4_096)
        .map(|counter| {
            let what = What::Source(u64::from(counter));
            let number = FrameNumber::new(0, counter);
            sent(number, Time::ZERO, what)
        })
        .collect();
    belief.restart((0, Time::ZERO), (&[], log.iter()), 0.4, Time::ZERO);
    assert!((0..20).all(|_| !belief.affords(log.len())));
    assert!((0..1_000).any(|_| belief.affords(log.len())));
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    /// More missing, or more in flight that may be lost, never means less repair, and more repair
    /// in flight never means more of it.
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

    /// The reserve never leaves its bounds, so it adapts soon; and repair of missing symbols is
    /// wanted in the end, whatever was spurious before.
    #[test]
    fn no_waste_ever_ends_repair(
        notes in proptest::collection::vec(
            (0.0..100.0f64, 0u32..300, 0u32..300, any::<u16>()),
            0..60,
        ),
    ) {
        for goal in [Goal::Throughput, Goal::LowDelay, Goal::Bulk] {
            let mut reserve = Reserve::new(goal);
            for &(round_trips, received, spare, useless) in &notes {
                reserve.note(round_trips, f64::from(received), f64::from(spare), useless);
            }
            prop_assert!(reserve.wants_repair(stakes(2, &[], 0.0), 0.0));
            prop_assert!(reserve.wants_repair(stakes(40, &sources(100), 0.3), 0.3));
            prop_assert!(!reserve.wants_repair(stakes(0, &[], 0.3), 0.3));
        }
    }
}

/// Share of frames that are spurious if these formulas decide about repair: a window's symbols,
/// feedback that is `ahead` frames late, independent losses.
fn waste(goal: Goal, loss_ratio: f64, ahead: usize) -> f64 {
    let (mut draws, mut reserve) = (Stream::from_seed([5; 32]), Reserve::new(goal));
    // Frames in flight, and whether they are lost.
    let mut log = std::collections::VecDeque::new();
    let (mut deficit, mut told, mut useless, mut received) = (0usize, (0, 0.0), 0u16, 0.0);
    let at = |frame: u32| Time::from_nanos(1_000_000 * u64::from(frame));
    let round_trip = Duration::from_millis(ahead as u64 + 1);
    let (mut belief, mut since) = (Belief::new(Time::ZERO), Time::ZERO);
    for frame in 0..100_000u32 {
        let repair =
            reserve.wants_repair(belief.stakes(at(frame), round_trip, reserve.weigh()), loss_ratio);
        let what = if repair { What::Coded } else { What::Source(0) };
        let sent = sent(FrameNumber::new(0, frame), at(frame), what);
        belief.add(&sent, loss_ratio);
        log.push_back((sent, f64::from(draws.next_u32()) / 2f64.powi(32) < loss_ratio));
        if log.len() <= ahead {
            continue;
        }
        match log.pop_front() {
            Some((sent, true)) if matches!(sent.what, What::Source(_)) => {
                since = if deficit == 0 { sent.at } else { since };
                deficit += 1;
            }
            Some((sent, false)) if sent.what == What::Coded => {
                useless += u16::from(deficit == 0);
                deficit = deficit.saturating_sub(1);
            }
            _ => {}
        }
        received += 1.0 - loss_ratio;
        if frame % 5 == 0 {
            reserve.note(0.0, received - told.1, 0.0, useless.wrapping_sub(told.0));
            told = (useless, received);
            let frames = log.iter().map(|(sent, _)| sent);
            belief.restart((deficit, since), (&[], frames), loss_ratio, at(frame));
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
            let bulk = waste(Goal::Bulk, loss_ratio, ahead);
            assert!(bulk < 0.01, "{bulk} at {loss_ratio}, {ahead} frames");
            assert!(throughput < 0.05, "{throughput} at {loss_ratio}, {ahead} frames");
            assert!(low_delay < 0.11, "{low_delay} at {loss_ratio}, {ahead} frames");
            assert!(low_delay > throughput, "{low_delay}, {throughput} at {loss_ratio}, {ahead}");
        }
    }
}
