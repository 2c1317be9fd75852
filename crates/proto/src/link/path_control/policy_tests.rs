//! The rate control on a path with a queue, alone and beside a flow that fills it.

use core::ops::Range;
use core::time::Duration;

use corridor_base::Time;

use crate::link::path_control::closed_loop::{
    FEEDBACK_INTERVAL, FeedbackPath, Fillers, Path, Run, Service,
};
use crate::link::path_control::filter::MinFilter;
use crate::link::path_control::policy::RateControl;
use crate::link::path_control::{PathControl, Sample};
use crate::stats::Stats;

#[test]
fn a_path_is_filled_and_hardly_a_frame_is_queued() {
    for (mbit_per_s, round_trip_ms) in [(12.0, 4), (20.0, 40), (1.0, 100), (100.0, 20)] {
        let path = Path::new(mbit_per_s, round_trip_ms);
        let mut run = Run::new(&path);
        run.until(10);
        let seen = run.until(40);
        let share = seen.ours / (30.0 * path.frames_per_s);
        let name = format!("{mbit_per_s} Mbit/s, {round_trip_ms} ms: {share}, {}", seen.queue());
        assert!(share > 0.93, "{name}");
        // A millisecond counts as noise, and some frames are aimed at.
        let noise = path.frames_per_s / 1_000.0;
        assert!(seen.queue() < 6.0 + 2.0 * noise, "{name}");
    }
}

#[test]
fn a_path_that_is_always_filled_is_left_with_as_short_a_queue_for_ever() {
    for (mbit_per_s, round_trip_ms) in [(12.0, 4), (20.0, 40), (12.0, 100)] {
        let path = Path::new(mbit_per_s, round_trip_ms);
        let mut run = Run::new(&path);
        run.until(10);
        let first = run.until(30).queue();
        run.until(280);
        let seen = run.until(300);
        let name = format!("{mbit_per_s} Mbit/s, {round_trip_ms} ms: {first} frames, {seen:?}");
        assert!(seen.queue() < first + 0.5, "{} frames queued, {name}", seen.queue());
        // Where pairs show the capacity, a hundredth less is sent.
        assert!(seen.ours > 0.989 * 20.0 * path.frames_per_s, "{name}");
    }
}

#[test]
fn frames_and_feedback_that_are_seen_late_do_not_make_the_path_look_faster() {
    for (late_ms, round_trip_ms) in [(1, 20), (2, 20), (2, 100), (4, 100)] {
        let late_by = Duration::from_millis(late_ms);
        let path = Path { late_by, ..Path::new(12.0, round_trip_ms) };
        let mut run = Run::new(&path);
        run.until(10);
        let drains = run.stats.rate_drains;
        let seen = run.until(70);
        let name = format!("up to {late_ms} ms late, round trip {round_trip_ms} ms: {seen:?}");
        assert!(seen.ours > 0.985 * 60.0 * path.frames_per_s, "{name}");
        // Of 100 frames on their way, four are to be queued; of 20, two.
        let most = if round_trip_ms == 100 { 8.0 } else { 5.5 };
        assert!(seen.queue() < most, "{} frames queued, {name}", seen.queue());
        assert_eq!(run.stats.rate_drains, drains, "{name}");
    }
}

#[test]
fn a_medium_that_sends_again_what_was_lost_is_kept_busy_by_a_queue_that_varies() {
    for (mbit_per_s, retry_ratio) in [(12.0, 0.1), (12.0, 0.2), (50.0, 0.2), (100.0, 0.3)] {
        let path = Path { retry_ratio, ..Path::new(mbit_per_s, 4) };
        let mut run = Run::new(&path);
        run.until(10);
        let seen = run.until(310);
        let per_s = (1.0 - retry_ratio) * path.frames_per_s;
        let share = seen.ours / (300.0 * per_s);
        let queue = Duration::from_secs_f64(seen.queue() / per_s);
        let name = format!("{mbit_per_s} Mbit/s, {retry_ratio} sent again: {share}, {queue:?}");
        assert!(share > 0.991, "{name}");
        assert!(queue < Duration::from_millis(7), "{name}");
        assert_eq!(run.stats.rate_drains, 1, "{name}");
    }
}

#[test]
fn random_losses_do_not_lower_the_rate() {
    for loss_ratio in [0.1, 0.3, 0.5] {
        let path = Path { loss_ratio, ..Path::new(12.0, 20) };
        let mut run = Run::new(&path);
        run.until(10);
        let seen = run.until(40);
        let share = seen.ours / (30.0 * path.frames_per_s);
        assert!(share > 0.9, "{share} of the path at {loss_ratio}");
        assert!(seen.queue() < 12.0, "{} frames queued at {loss_ratio}", seen.queue());
    }
}

/// Buffers of half to four bandwidth-delay products, rates and round-trip times over a decade.
#[test]
fn beside_cubic_about_half_is_had() {
    for (mbit_per_s, round_trip_ms, queue_frames) in [
        (20.0, 40, 34.0),
        (20.0, 40, 67.0),
        (20.0, 40, 134.0),
        (20.0, 40, 268.0),
        (12.0, 20, 50.0),
        (5.0, 40, 17.0),
        (50.0, 20, 83.0),
        (50.0, 80, 333.0),
        (4.0, 100, 33.0),
    ] {
        let fillers = Fillers::one(5_000);
        let path = Path { fillers, queue_frames, ..Path::new(mbit_per_s, round_trip_ms) };
        let mut run = Run::new(&path);
        run.until(20);
        let seen = run.until(110);
        let share = seen.ours / (seen.ours + seen.filler);
        let name = format!("{mbit_per_s} Mbit/s, {round_trip_ms} ms, {queue_frames} frames");
        assert!((0.2..0.65).contains(&share), "{share}: {name}");
        let used = (seen.ours + seen.filler) / (90.0 * path.frames_per_s);
        assert!(used > 0.93, "{used} of the path is used: {name}");
    }
}

/// Where the minimum delay was forgotten, losses show that the window is too large.
#[test]
fn a_filler_that_never_lets_the_queue_drain_is_not_overrun() {
    let fillers = Fillers::one(5_000);
    let feedback = FeedbackPath::each(Duration::from_millis(100));
    let path = Path { fillers, feedback, queue_frames: 200.0, ..Path::new(12.0, 20) };
    let mut run = Run::new(&path);
    run.until(20);
    let seen = run.until(200);
    let share = seen.ours / (seen.ours + seen.filler);
    assert!((0.25..0.65).contains(&share), "{share}");
    assert!(seen.dropped < 0.02 * seen.ours, "{} of {} dropped", seen.dropped, seen.ours);
}

/// On a shared channel without reverse traffic, feedback takes 250 ms: such an interval is not a
/// pause that says nothing, nor is one long queue a filler's.
#[test]
fn rare_feedback_is_enough() {
    for round_trip_ms in [4, 30, 100] {
        let feedback = FeedbackPath::each(Duration::from_millis(250));
        let path = Path { feedback, queue_frames: 100.0, ..Path::new(6.0, round_trip_ms) };
        let mut run = Run::new(&path);
        run.until(20);
        let seen = run.until(60);
        let share = seen.ours / (40.0 * path.frames_per_s);
        assert!(share > 0.85, "{share}: {round_trip_ms} ms");
        assert_eq!(run.stats.rate_competitions, 0, "{round_trip_ms} ms");
    }
}

/// Where feedback is lost, singly or in bursts, each later one reports more.
#[test]
fn feedback_that_gets_lost_tells_later() {
    for (ratio, burst) in [(0.1, 1.0), (0.4, 1.0), (0.2, 10.0)] {
        let path = Path {
            feedback: FeedbackPath {
                interval: FEEDBACK_INTERVAL,
                loss_ratio: ratio,
                loss_burst: burst,
            },
            loss_ratio: 0.1,
            ..Path::new(1.0, 40)
        };
        // One burst while the rate still grows can cost a third, so that one run says little.
        let runs = 8;
        let mut share = 0.0;
        for skipped in 0..runs {
            let mut run = Run::new(&path);
            (0..skipped).for_each(|_| _ = run.draw());
            run.until(10);
            let seen = run.until(40);
            let of_run = seen.ours / (30.0 * path.frames_per_s);
            assert!(of_run > 0.5, "{of_run} of the path: {ratio} by {burst}, run {skipped}");
            share += of_run / f64::from(runs);
            let dropped = seen.dropped / seen.ours;
            assert!(dropped < 0.05, "{dropped} of it dropped: {ratio} by {burst}, run {skipped}");
        }
        assert!(share > 0.85, "{share} of the path: {ratio} by {burst}");
    }
}

/// Nor is its queue taken for a longer path, if it changes slowly or little feedback comes. What is
/// had depends on when the filler begins. With a buffer of one BDP, and
/// feedback rarer than the round trip, little is.
#[test]
fn a_filler_is_none_of_the_way() {
    const STARTS_MS: [u64; 4] = [4_000, 4_411, 4_822, 5_233];
    for (mbit_per_s, round_trip_ms, queue_frames, feedback_ms, least) in [
        (12.0, 4, 100.0, 20, 0.25),
        (12.0, 20, 200.0, 100, 0.25),
        (20.0, 40, 67.0, 100, 0.05),
        (60.0, 20, 400.0, 1, 0.25),
        (100.0, 4, 400.0, 1, 0.25),
    ] {
        let feedback = FeedbackPath::each(Duration::from_millis(feedback_ms));
        let path = Path::new(mbit_per_s, round_trip_ms);
        let path = Path { queue_frames, feedback, ..path };
        let shares = STARTS_MS.map(|start_ms| {
            let path = Path { fillers: Fillers::one(start_ms), ..path.clone() };
            let mut run = Run::new(&path);
            run.until(20);
            let seen = run.until(80);
            seen.ours / (seen.ours + seen.filler)
        });
        let share = shares.iter().sum::<f64>() / shares.len() as f64;
        let name = format!("{mbit_per_s} Mbit/s, {round_trip_ms} ms, told each {feedback_ms} ms");
        assert!((least..0.6).contains(&share), "{share} ({shares:?}): {name}");
    }
}

/// At the start the rate of a slow path is a guess: a quarter of the guess, sent to drain the
/// queue, is more than the path carries, so the queue stays although it is the flow's own. The flow
/// competed with itself for half a minute.
#[test]
fn a_queue_that_a_guess_keeps_full_is_no_fillers() {
    for (mbit_per_s, round_trip_ms) in [(0.06, 40), (0.1, 5), (0.3, 20), (0.6, 100), (1.2, 400)] {
        for queue_frames in [20.0, 100.0] {
            let path = Path { queue_frames, ..Path::new(mbit_per_s, round_trip_ms) };
            let mut run = Run::new(&path);
            run.until(60);
            let name = format!("{mbit_per_s} Mbit/s, {round_trip_ms} ms, {queue_frames} frames");
            assert_eq!(run.stats.rate_competitions, 0, "{name}");
        }
    }
}

/// A filler's queue that drains after each of its losses is still the filler's.
#[test]
fn a_short_buffer_that_drains_after_losses_is_competed_for() {
    for (mbit_per_s, round_trip_ms, queue_frames) in [(12.0, 100, 30.0), (50.0, 20, 25.0)] {
        let fillers = Fillers::one(5_000);
        let path = Path { fillers, queue_frames, ..Path::new(mbit_per_s, round_trip_ms) };
        let mut run = Run::new(&path);
        run.until(30);
        let before = run.stats.rate_drains;
        let seen = run.until(90);
        let share = seen.ours / (seen.ours + seen.filler);
        let drains = run.stats.rate_drains - before;
        assert!((0.12..0.8).contains(&share), "{share} of {mbit_per_s} Mbit/s, {drains} drains");
    }
}

/// With no filler left, a window that grows by a frame in three round trips takes half a minute to
/// reach what the rate control, following delay, reaches in a few round trips.
#[test]
fn the_path_is_taken_again_when_the_filler_has_gone() {
    let fillers = Fillers { until: Time::from_millis(35_000), ..Fillers::one(5_000) };
    let path = Path { fillers, ..Path::new(12.0, 40) };
    let mut run = Run::new(&path);
    run.until(35);
    assert!(run.stats.rate_competitions > 0, "nobody competed");
    run.until(41);
    let seen = run.until(45);
    let share = seen.ours / (4.0 * path.frames_per_s);
    assert!(share > 0.9, "{share} of the path");
}

/// Feedback over time, with the queue at each time in microseconds.
fn feed(
    control: &mut RateControl,
    stats: &mut Stats,
    queue_us: impl Fn(u64) -> u64,
    ms: Range<u64>,
) {
    for ms in ms {
        let sample = Sample {
            one_way_us: (5_000 + queue_us(ms)) as u32,
            is_long: true,
            round_trip: Duration::from_millis(24),
            round_trip_smoothed: Duration::from_millis(24),
            told: 1.0,
            span: Duration::from_millis(1),
            sent_span: Duration::from_millis(1),
            frames: 1,
            came: 1,
            limited: true,
            shares_air: false,
            pair_per_s: None,
        };
        control.note(Time::from_millis(ms), sample, stats);
    }
}

/// Jitter longer than the queue aimed at ended the start at the first guess, and it took half a
/// minute to reach the capacity from there.
#[test]
fn jitter_does_not_end_the_start() {
    for (mbit_per_s, round_trip_ms, jitter_ms) in [(50.0, 40, 10), (97.0, 55, 14), (100.0, 100, 5)]
    {
        let jitter = Duration::from_millis(jitter_ms);
        let path = Path { jitter, ..Path::new(mbit_per_s, round_trip_ms) };
        let mut run = Run::new(&path);
        run.until(5);
        let seen = run.until(10);
        let share = seen.ours / (5.0 * path.frames_per_s);
        assert!(share > 0.8, "{share} of {mbit_per_s} Mbit/s, {round_trip_ms} ms, {jitter_ms} ms");
    }
}

/// The highest delivery rate of many short spans was far above the capacity by chance: half of what
/// was sent was dropped, and passed for random losses.
#[test]
fn jitter_does_not_raise_the_delivery_rate() {
    let jitter = Duration::from_micros(3_400);
    let path = Path { jitter, loss_ratio: 0.26, queue_frames: 6.0, ..Path::new(50.0, 8) };
    let mut run = Run::new(&path);
    run.until(10);
    let seen = run.until(20);
    let (dropped, share) = (seen.dropped / seen.ours, seen.ours / (10.0 * path.frames_per_s));
    println!("DR {dropped} {share}");
    assert!(dropped < 0.15, "{dropped} of what was sent");
}

/// Twenty small packets per second, as from a shell, then a TCP burst that queues: the rate before
/// is no measure of what drains that queue.
#[test]
fn what_few_small_packets_were_is_not_what_a_first_queue_is_drained_at() {
    let (mut control, mut stats) = (RateControl::new(Time::ZERO), Stats::default());
    let round_trip = Duration::from_millis(5);
    let sample = |one_way_us, told, span_us| Sample {
        one_way_us,
        is_long: told == 1.0,
        round_trip: 2 * round_trip,
        round_trip_smoothed: round_trip,
        told,
        span: Duration::from_micros(span_us),
        sent_span: Duration::from_micros(span_us),
        frames: 1,
        came: 1,
        limited: false,
        shares_air: false,
        pair_per_s: None,
    };
    for ms in (50..1_050).step_by(50) {
        control.note(Time::from_millis(ms), sample(2_000, 0.06, 50_000), &mut stats);
    }
    for frame in 1..=220 {
        let queue_us = 800 * frame.min(12);
        let burst = Sample { limited: true, ..sample(3_000 + queue_us, 1.0, 1_000) };
        control.note(Time::from_millis(1_050 + u64::from(frame)), burst, &mut stats);
    }
    assert_eq!(stats.rate_drains, 1);
    let one_per_round_trip = 1.0 / round_trip.as_secs_f64();
    let rate = control.frames_per_s();
    assert!(rate > 0.5 * one_per_round_trip, "{rate} frames/s");
}

#[test]
fn a_queue_that_was_drained_a_moment_ago_has_not_stood_as_it_is() {
    let (mut control, mut stats) = (RateControl::new(Time::ZERO), Stats::default());
    let fills = |ms: u64| (30 * ms.saturating_sub(1_000)).min(15_000);
    feed(&mut control, &mut stats, fills, 0..3_770);
    assert_eq!(stats.rate_competitions, 2);
    // 50 ms before the drain that would find out whose the queue is, it is gone, and then grows
    // again, slowly.
    feed(&mut control, &mut stats, |ms| 30 * (ms - 3_770), 3_770..3_810);
    let drains = stats.rate_drains;
    feed(&mut control, &mut stats, |ms| 4_000 + 30 * (ms - 3_810), 3_810..4_040);
    assert_eq!((stats.rate_drains, stats.rate_competitions), (drains + 1, 3));
}

#[test]
fn clocks_that_wrap_between_delays_are_as_good_as_any() {
    // The difference of the clocks fits 31 bits with a short queue, and not with a longer one.
    let path = Path { clock_us: (1 << 31) - 11_500, ..Path::new(12.0, 20) };
    let mut run = Run::new(&path);
    let usual = Path::new(12.0, 20);
    let mut beside = Run::new(&usual);
    let (seen, usual) = (run.until(30), beside.until(30));
    assert_eq!((seen.ours, seen.found), (usual.ours, usual.found));
}

#[test]
fn the_least_of_more_than_can_be_remembered_is_not_forgotten() {
    let mut filter = MinFilter::default();
    let last = 2 * crate::bounds::WINDOW_DELAYS_MAX as u64;
    for value in 0..=last {
        filter.push(Time::from_millis(value), value as i64, Duration::from_secs(20));
    }
    assert_eq!(filter.least(), Some(0));
    filter.push(Time::from_millis(20_001), 100_000, Duration::from_secs(20));
    assert_eq!(filter.least(), Some(1));
}

/// On recordings of cellular networks a fade passed for a flow that fills the queue: the rate that
/// came through fell from drain to drain, or the queue was not gone in time. The flow then competed
/// with itself, and packets waited for seconds.
#[test]
fn a_fade_is_not_competed_with() {
    for (down_to, step_s) in [(0.7, 1), (0.5, 2), (0.1, 10)] {
        let mut per_s = 1_000.0;
        let mut steps = vec![(Duration::ZERO, per_s)];
        for at_s in (10..20).step_by(step_s) {
            per_s = f64::max(down_to * per_s, 10.0);
            steps.push((Duration::from_secs(at_s), per_s));
        }
        steps.push((Duration::from_secs(20), 1_000.0));
        let service = Service::Steps { steps, period: Duration::from_secs(60) };
        let path = Path { service, queue_frames: 1_000.0, ..Path::new(12.0, 40) };
        let mut run = Run::new(&path);
        let waited_ms = run.until(40).waited_ms(0.95);
        assert!(waited_ms < 250.0, "{waited_ms} ms, down to {down_to} each {step_s} s");
        let seen = run.until(60);
        assert!(seen.ours > 0.9 * 20.0 * 1_000.0, "{} frames after it", seen.ours);
    }
}

/// A clock that jumped ahead looked like a queue of a second, and the rate fell to its minimum for
/// 20 s.
#[test]
fn a_jump_of_a_clock_is_no_queue() {
    for feedback_ms in [0, 100] {
        let interval = FEEDBACK_INTERVAL.max(Duration::from_millis(feedback_ms));
        let feedback = FeedbackPath::each(interval);
        for by_ms in [-100_000, -50, 50, 1_000, 100_000] {
            let jump = (Time::from_millis(10_000), 1_000_000 * by_ms);
            let path = Path { jump, feedback, ..Path::new(12.0, 20) };
            let mut run = Run::new(&path);
            run.until(10);
            let seen = run.until(20);
            let usual = Path { feedback, ..Path::new(12.0, 20) };
            let mut usual = Run::new(&usual);
            usual.until(10);
            let queue = usual.until(20).queue();
            let share = seen.ours / (10.0 * path.frames_per_s);
            let name = format!("a jump by {by_ms} ms, feedback every {feedback_ms} ms");
            assert!(share > 0.9, "{share} of the path: {name}");
            // The queue at that time counts as zero until a pause empties it.
            assert!(seen.queue() < queue + 2.2, "{} frames, usually {queue}: {name}", seen.queue());
            let later = run.until(30).queue();
            assert!(later < queue + 1.2, "{later} frames later, usually {queue}: {name}");
        }
    }
}

/// A path that becomes longer, as after a route change, looks like a queue that others fill. If the
/// change was shorter than the drain threshold, no drain began, and the rate fell to a fifth for as
/// long as the minimum delay is remembered.
#[test]
fn a_longer_way_is_no_queue() {
    for (mbit_per_s, round_trip_ms) in
        [(12.0, 4), (12.0, 20), (12.0, 100), (36.0, 4), (36.0, 20), (100.0, 4), (100.0, 20)]
    {
        for (by_us, least) in [
            (500, 0.9),
            (700, 0.9),
            (1_000, 0.9),
            (1_500, 0.9),
            (1_900, 0.9),
            (3_000, 0.9),
            (3_100, 0.9),
            (3_500, 0.9),
            (5_000, 0.7),
            (30_000, 0.7),
        ] {
            let jump = (Time::from_millis(10_000), 1_000 * by_us);
            let path = Path { jump, ..Path::new(mbit_per_s, round_trip_ms) };
            let mut run = Run::new(&path);
            run.until(13);
            let seen = run.until(25);
            let share = seen.ours / (12.0 * path.frames_per_s);
            let name = format!("{mbit_per_s} Mbit/s, {round_trip_ms} ms, {by_us} us");
            assert!(share > least, "{share} of the path: {name}");
        }
    }
}

/// The same for a sender a little below the capacity, with losses. There was no rate probe, because
/// no queue had ever stood before; and after a greater change each loss counted as congestion,
/// which left a fifth.
#[test]
fn a_longer_way_is_no_queue_where_less_is_sent_and_frames_get_lost() {
    for (round_trip_ms, loss_ratio) in [(4, 0.05), (20, 0.05), (100, 0.0), (100, 0.05), (100, 0.3)]
    {
        for by_us in [1_500, 2_000, 2_500, 3_000, 4_000, 6_000, 20_000] {
            let jump = (Time::from_millis(5_000), 1_000 * by_us);
            let path = Path { jump, loss_ratio, ..Path::new(12.0, round_trip_ms) };
            let path = Path { wanted_per_s: 0.97 * path.frames_per_s, ..path };
            let mut run = Run::new(&path);
            run.until(10);
            let seen = run.until(20);
            let share = seen.ours / (10.0 * path.wanted_per_s);
            let name = format!("{round_trip_ms} ms, {loss_ratio} lost, {by_us} us");
            assert!(share > 0.8, "{share} of what was wanted: {name}");
        }
    }
}

/// On a shared channel the other direction makes delay vary, and a rate probe would cost more than
/// it could reveal.
#[test]
fn on_shared_air_nobody_looks_whether_a_short_queue_is_one() {
    for (shares_air, looked) in [(false, true), (true, false)] {
        let jump = (Time::from_millis(10_000), 5_000_000);
        // Pairs that disagree, or the rate follows them and needs no probe.
        let late_by = Duration::from_millis(1);
        let path = Path { jump, shares_air, late_by, ..Path::new(12.0, 20) };
        let mut run = Run::new(&path);
        run.until(25);
        assert_eq!(run.stats.rate_probes > 0, looked);
    }
}

#[test]
fn an_outage_is_recovered_from() {
    for round_trip_ms in [4, 100] {
        let outage = Time::from_millis(10_000)..Time::from_millis(13_000);
        let path = Path { outage, ..Path::new(12.0, round_trip_ms) };
        let mut run = Run::new(&path);
        run.until(15);
        let seen = run.until(20);
        let share = seen.ours / (5.0 * path.frames_per_s);
        assert!(share > 0.85, "{share} of the path from 2 s after the outage on");
    }
}

/// A path of 1,000 frames/s and 40 ms with these rates from these milliseconds on, once in a
/// minute, and a deep buffer.
fn varying(steps: &[(u64, f64)]) -> Path {
    let steps = steps.iter().map(|&(ms, per_s)| (Duration::from_millis(ms), per_s)).collect();
    let service = Service::Steps { steps, period: Duration::from_secs(60) };
    Path { service, queue_frames: 2_000.0, ..Path::new(12.0, 40) }
}

/// The gain began again at 2 %, and doubled each round trip: half of the first second was used.
#[test]
fn a_path_that_recovers_is_used_soon() {
    let mut sum = 0.0;
    for low_per_s in [300.0, 200.0, 100.0, 50.0, 20.0, 10.0] {
        let path = varying(&[(0, 1_000.0), (20_000, low_per_s), (25_000, 1_000.0)]);
        let mut run = Run::new(&path);
        run.until(25);
        sum += run.until(26).ours;
        let next = run.until(27);
        let name = format!("in the second second, after {low_per_s} frames/s");
        assert!(next.ours > 970.0, "{} frames {name}", next.ours);
        assert!(next.waited_ms(0.95) < 60.0, "{} ms {name}", next.waited_ms(0.95));
    }
    assert!(sum / 6.0 > 650.0, "{} frames in the first second", sum / 6.0);
}

/// What the path no longer carried was tried again and again. And where it had become twenty times
/// slower, a frame being sent passed for another flow's queue, and the flow competed for 18 s.
#[test]
fn a_path_that_stays_slow_is_used_with_a_short_queue() {
    for per_s in [600.0, 300.0, 200.0, 100.0, 50.0] {
        let path = varying(&[(0, 1_000.0), (10_000, per_s)]);
        let mut run = Run::new(&path);
        run.until(25);
        let seen = run.until(50);
        let name = format!("{per_s} frames/s");
        let (share, waited_ms) = (seen.ours / (25.0 * per_s), seen.waited_ms(0.95));
        // Where a frame takes long, it looks like a queue in between.
        let least = if per_s < 100.0 { 0.75 } else { 0.9 };
        assert!(share > least, "{share} of {name}");
        assert!(waited_ms < 20.0 + 3_000.0 / per_s, "{waited_ms} ms at {name}");
        assert_eq!(run.stats.rate_competitions, 0, "{name}");
    }
}

/// Where pairs of frames show the capacity, the rate stays just below it: no queue has to show, and
/// the start is over.
#[test]
fn the_rate_follows_what_pairs_show() {
    let (mut control, mut stats) = (RateControl::new(Time::ZERO), Stats::default());
    let round_trip = Duration::from_millis(24);
    let mut now = Time::ZERO;
    let mut pairs = |control: &mut RateControl, per_s: f64, queue_us: u32, count: u32| {
        for _ in 0..count {
            let span = Duration::from_secs_f64(2.0 / control.frames_per_s().min(per_s));
            now += span;
            let sample = Sample {
                one_way_us: 5_000 + queue_us,
                is_long: true,
                round_trip,
                round_trip_smoothed: round_trip,
                told: 2.0,
                span,
                sent_span: span,
                frames: 2,
                came: 2,
                limited: true,
                shares_air: false,
                pair_per_s: Some(per_s),
            };
            control.note(now, sample, &mut stats);
        }
        control.frames_per_s()
    };
    let near = |rate: f64, per_s: f64| (0.98..1.0).contains(&(rate / per_s));
    let rate = pairs(&mut control, 1_000.0, 0, 8);
    assert!(near(rate, 1_000.0) && control.singles_between_pairs().is_some(), "{rate}");
    let rate = pairs(&mut control, 1_000.0, 0, 1_000);
    assert!(near(rate, 1_000.0), "{rate} frames/s, though nothing showed that more passes");
    let rate = pairs(&mut control, 300.0, 0, 2);
    assert!(near(rate, 300.0), "{rate}");
    let rate = pairs(&mut control, 900.0, 0, 2);
    assert!(near(rate, 900.0), "{rate}");
    // Other flows' frames are not in the gap of a pair, but queue.
    let rate = pairs(&mut control, 900.0, 8_000, 20);
    assert!(rate < 0.97 * 900.0, "{rate}");
}

/// A burst took nearly all of the first acknowledgments of a TCP flow. The few bytes delivered then
/// were the rate that was kept, and acknowledgments, which are few, never showed that more passes.
#[test]
fn small_frames_do_not_keep_the_rate_that_a_burst_of_losses_left() {
    for (round_trip_ms, least_per_s) in [(5, 200.0), (100, 10.0)] {
        let (mut control, mut stats) = (RateControl::new(Time::ZERO), Stats::default());
        let round_trip = Duration::from_millis(round_trip_ms);
        let mut now = Time::ZERO;
        let mut feed = |frames: usize, came: usize, limited: bool| {
            let span = frames as u32 * Duration::from_millis(1);
            now += span;
            let sample = Sample {
                one_way_us: 1_000,
                is_long: false,
                round_trip,
                round_trip_smoothed: round_trip,
                told: 0.06 * frames as f64,
                span,
                sent_span: span,
                frames,
                came,
                limited,
                shares_air: false,
                pair_per_s: None,
            };
            control.note(now, sample, &mut stats);
            control.frames_per_s()
        };
        (0..8).for_each(|_| assert!(feed(1, 1, false) > 400.0));
        let rate = feed(150, 1, false);
        assert!(rate < 10.0, "{rate} frames/s while all losses may be drops");
        let rate = (0..1_000).map(|_| feed(1, 1, true)).last().expect("a thousand");
        assert!(rate > 0.99 * least_per_s, "{rate} frames/s at {round_trip_ms} ms");
    }
}
