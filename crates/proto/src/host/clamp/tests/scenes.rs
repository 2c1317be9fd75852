//! Situations in which a clamped window would be too short or too long, or must not be clamped at
//! all.

use core::time::Duration;

use super::scene::{PROMISE, Scene};
use super::segments::Flags;
use super::{Setup, set_pace};

/// Packets per second that leave the queue.
const PACE: f64 = 10_000.0;
/// Packets that a sender may be ahead at that pace if it answers at once: two, and a millisecond's
/// worth.
const AHEAD: u64 = 12;

const ACK: Flags = Flags { syn: false, ack: true, fin: false, rst: false, accurate_ecn: false };

/// The room in the window, in segments, once everything is acknowledged and updates are sent.
fn room_at_rest(scene: &mut Scene) -> u64 {
    scene.leave_all();
    let told = scene.acknowledge(scene.sent);
    let edge = scene.updates().unwrap_or(0).max(told);
    (edge - scene.sent) / scene.data_len()
}

/// A long pause is not a slow answer, at any pace: what is allowed after it is bounded.
#[test]
fn after_a_pause_of_any_length_there_is_room() {
    for pace in [100.0, 10_000.0, 86_000.0] {
        for pause_s in [1, 12, 90, 250, 100_000] {
            let mut scene = Scene::clamped(Setup::usual(), pace);
            assert!(room_at_rest(&mut scene) >= 2);
            scene.now += Duration::from_secs(pause_s);
            for round in 0..100 {
                scene.send(2);
                scene.now += Duration::from_millis(5);
                let room = room_at_rest(&mut scene);
                assert!(room >= 2, "{room} segments, {pace} a second, {pause_s} s, {round}");
            }
        }
    }
}

/// TCP defers partial segments until it hears something, so it is granted more once; a sender with
/// nothing to send needs no more reminders, and is not let further and further ahead.
#[test]
fn who_puts_off_what_may_be_sent_hears_of_more_once() {
    let soon = Duration::from_millis(1);
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    assert!(room_at_rest(&mut scene) >= 2);
    let mut reminders = 0;
    for round in 0..20 {
        scene.send(3);
        scene.leave(3);
        scene.updates();
        scene.wait(soon);
        assert_eq!(scene.updates(), None, "it may be about to send, round {round}");
        scene.wait(9 * soon);
        if let Some(told) = scene.update() {
            let room = (scene.edge(&told) - scene.sent) / scene.data_len();
            assert!((2..=AHEAD + 1).contains(&room), "{room} segments, round {round}");
            reminders += 1;
        }
        assert_eq!(scene.updates(), None, "it was told once, round {round}");
    }
    assert!(reminders > 10, "{reminders} reminders");
    scene.send(3);
    scene.leave(3);
    scene.updates();
    let told = (0..100).filter(|_| {
        scene.wait(soon);
        scene.updates().is_some()
    });
    assert!(told.count() <= 1);
}

/// The first acknowledgment after clamping begins may be a duplicate: it needs the window of the
/// one before, but later windows are no longer because of it.
#[test]
fn a_duplicate_promises_nothing_anew() {
    for duplicates in [0, 1, 3] {
        let mut scene = Scene::new(Setup::usual(), PACE);
        let promised = scene.acknowledge(scene.acked);
        scene.send(50);
        scene.wait(Duration::from_millis(20));
        scene.send(1);
        for _ in 0..duplicates {
            assert_eq!(scene.acknowledge(scene.acked), promised);
        }
        let edge = scene.acknowledge(scene.acked + 1);
        let ahead = edge.saturating_sub(scene.sent) / scene.data_len();
        assert!(ahead <= AHEAD, "{ahead} segments ahead after {duplicates} duplicates");
    }
}

/// One segment without timestamps does not end timestamps on a connection that has them.
#[test]
fn timestamps_outlast_a_segment_without_them() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let unstamped = Setup { timestamps: false, ..scene.setup };
    let stamped = core::mem::replace(&mut scene.setup, unstamped);
    scene.acknowledge(scene.acked + 2);
    scene.setup = stamped;
    scene.leave_all();
    let update = scene.update().expect("all has left");
    assert!(update.options().timestamps.is_some());
}

/// If enough waits, or the receiver's own window is used up, there is nothing to remind of.
#[test]
fn nobody_is_reminded_in_vain() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    scene.leave_all();
    let told = scene.acknowledge(scene.sent);
    scene.updates();
    scene.send(2);
    scene.wait(Duration::from_millis(50));
    assert_eq!((scene.queue.len(), scene.updates()), (2, None), "{told}");
    scene.leave_all();
    scene.updates();
    let flags = Flags { ack: true, ..Flags::default() };
    let shut = scene.far(scene.sent, flags, 0, 0);
    scene.deliver(shut);
    scene.wait(Duration::from_millis(50));
    assert_eq!(scene.updates(), None);
}

/// The first data after a pause is not held back: there is no queue yet.
#[test]
fn a_pause_ends_clamping() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    assert!(room_at_rest(&mut scene) <= 2 * AHEAD);
    scene.now += Duration::from_secs(2);
    scene.send(10);
    let clamped = scene.stats.windows_clamped;
    let edge = scene.acknowledge(scene.acked + 1);
    assert_eq!(scene.stats.windows_clamped, clamped);
    assert!(edge + 128 > scene.acked + PROMISE, "{edge} is told");
}

/// Packets of others in the same queue do not count as a connection's data.
#[test]
fn foreign_packets_in_the_same_queue_starve_nobody() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let foreign = scene.foreign();
    scene.leave_all();
    for round in 0..50 {
        let told = scene.acknowledge(scene.sent);
        let edge = scene.updates().unwrap_or(0).max(told);
        let room = (edge - scene.sent) / scene.data_len();
        assert!(room >= 2, "{room} segments in round {round}");
        // More than its own data may be.
        (0..3 * AHEAD).for_each(|_| scene.push(&foreign));
        scene.send(2);
        scene.now += Duration::from_millis(1);
        // By then its own two packets have left, and as many of the others.
        scene.leave(4 + AHEAD as usize);
        if round % 8 == 7 {
            scene.leave_all();
            (0..3 * AHEAD).for_each(|_| scene.push(&foreign));
        }
    }
}

/// With large window units, the right edge is neither rounded up repeatedly, nor down to what has
/// already been sent.
#[test]
fn the_edge_stays_where_nothing_leaves() {
    for scale in 3..=14 {
        let mut scene = Scene::new(Setup { scales: [Some(scale); 2], ..Setup::usual() }, PACE);
        scene.clamp();
        scene.send(300);
        let unit = 1 << scale;
        for segments in (2..300).step_by(2) {
            let edge = scene.acknowledge(1 + segments * scene.data_len());
            let own = scene.acked + (PROMISE >> scale).min(0xffff) * unit;
            let what = format!("{edge} is told at scale {scale}, {} were sent", scene.sent);
            assert!(edge < scene.sent + unit, "{what}");
            assert!(edge >= scene.sent.min(own), "{what}");
        }
    }
}

/// A host that only acknowledges has no data in the queue.
#[test]
fn acknowledgements_that_wait_do_not_count() {
    let mut scene = Scene::new(Setup::usual(), PACE);
    for part in 0..40 {
        scene.far_sent = 1 + 2_000 * part;
        let packet = scene.near(1, ACK, 0);
        scene.push(&packet);
        scene.now += Duration::from_millis(1);
    }
    scene.deliver(scene.far(1, ACK, PROMISE, 1_400));
    assert_eq!((scene.stats.windows_clamped, scene.update().is_none()), (0, true));
}

/// Room is counted in segments as the sender makes them: without the bytes of timestamps, and as
/// long as both ends accept.
#[test]
fn room_is_counted_in_segments_of_the_sender() {
    for (mss, timestamps) in [([1_400, 1_400], true), ([1_400, 9_000], true), ([536, 1_400], false)]
    {
        let mut scene = Scene::clamped(Setup { mss, timestamps, ..Setup::usual() }, PACE);
        scene.leave_all();
        let told = scene.acknowledge(scene.sent);
        let edge = scene.updates().unwrap_or(0).max(told);
        let room = edge - scene.sent;
        let wanted = AHEAD * scene.data_len();
        // Up to a unit of the window's scale more or less, and rounded.
        assert!((wanted - 127..=wanted + 255).contains(&room), "{room} of {wanted} for {mss:?}");
    }
}

/// TCP fills the remainder of a window with a short segment, whose repair costs as much as a full
/// one's.
#[test]
fn little_of_a_segment_is_left_over() {
    // Units of 16 to 1024 bytes.
    for scale in [4, 5, 7, 9, 10] {
        for back in (0..1_400).step_by(7) {
            let setup = Setup { scales: [Some(7), Some(scale)], ..Setup::usual() };
            let mut scene = Scene::clamped(setup, PACE);
            scene.leave_all();
            // Windows count from what is acknowledged.
            let told = scene.acknowledge(scene.sent - back);
            let room = scene.updates().unwrap_or(0).max(told) - scene.sent;
            let len = scene.data_len();
            let left = room % len;
            assert!(left == 0 || left > len / 2, "{left} of {len} at a scale of {scale}, {back}");
        }
    }
}

/// Without SACK, an acknowledgment counts as a duplicate only if its window is the same (RFC 5681,
/// Section 2).
#[test]
fn duplicates_keep_their_window() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let acked = scene.acked;
    let mut edge = scene.acknowledge(acked);
    for _ in 0..3 {
        scene.leave(1);
        assert_eq!(scene.acknowledge(acked), edge);
    }
    while let Some(told) = scene.updates().or_else(|| {
        scene.leave(5);
        (!scene.queue.is_empty()).then_some(edge)
    }) {
        edge = told;
        assert_eq!(scene.acknowledge(acked), edge, "it repeats what was told last");
    }
}

/// An acknowledgment with a longer window is not a duplicate, however little longer it is.
#[test]
fn the_receivers_own_news_pass() {
    for room in [100, 1_000, 30_000] {
        let mut scene = Scene::clamped(Setup::usual(), PACE);
        scene.leave_all();
        scene.acked = scene.sent;
        let shut = scene.deliver(scene.far(scene.acked, ACK, 0, 0));
        assert_eq!((shut, scene.updates()), (scene.acked, None), "it is told as it is");
        let units = room >> 7;
        let edge = scene.deliver(scene.far(scene.acked, ACK, room, 0));
        let most = scene.acked + (units << 7);
        if most < scene.acked + AHEAD * scene.data_len() - 127 {
            assert_eq!(edge, most);
        } else {
            let wanted = scene.acked + AHEAD * scene.data_len();
            assert!((wanted - 127..=wanted + 255).contains(&edge), "{edge} of {wanted}");
        }
    }
}

/// The rest of a receiver's window is granted even if it is less than a segment.
#[test]
fn what_is_left_of_a_short_window_is_told() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let own = scene.sent + 1_000;
    // The queue is full, so none of the rest is granted for now.
    let edge = scene.deliver(scene.far(scene.sent - 1, ACK, 1_001, 0));
    assert!(edge < scene.sent + 128, "{edge} of {}", scene.sent);
    scene.leave_all();
    let edge = scene.updates().expect("the rest is told");
    assert!(own - edge < 128, "{edge} of {own}");
}

#[test]
fn connections_that_are_over_are_told_of_nothing() {
    let ends: [fn(&mut Scene); 3] = [
        |scene| {
            scene.pass(scene.far(scene.acked, Flags { rst: true, ..ACK }, 0, 0));
        },
        |scene| {
            let reset = scene.near(scene.sent, Flags { rst: true, ..ACK }, 0);
            scene.push(&reset);
        },
        |scene| {
            let last = scene.near(scene.sent, Flags { fin: true, ..ACK }, 0);
            scene.push(&last);
        },
    ];
    for (which, end) in ends.into_iter().enumerate() {
        let mut scene = Scene::clamped(Setup::usual(), PACE);
        scene.leave(1);
        end(&mut scene);
        while !scene.queue.is_empty() {
            scene.leave(1);
            assert!(scene.update().is_none(), "end {which}");
        }
    }
}

/// If timestamps went back, the real ones after them would be refused (RFC 7323, Section 5).
#[test]
fn timestamps_do_not_go_back() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    scene.clock = 1_000;
    scene.acknowledge(scene.acked + 1);
    scene.clock = 900;
    scene.acknowledge(scene.acked);
    scene.leave_all();
    let told = scene.update().expect("there is room");
    assert_eq!(told.options().timestamps.map(|stamps| stamps.0), Some(1_000));
}

#[test]
fn at_a_pace_that_is_none_two_segments_are_let_in() {
    for pace in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, f64::MAX] {
        let mut scene = Scene::new(Setup::usual(), PACE);
        set_pace(&mut scene.queue, pace);
        scene.send(40);
        scene.now += Duration::from_millis(20);
        scene.send(1);
        scene.acknowledge(2);
        let room = room_at_rest(&mut scene);
        assert!(room >= 2, "{room} segments at {pace} a second");
        let is_some = pace.is_finite() && pace > 0.0;
        assert!(room == 2 || is_some, "{room} segments at {pace} a second");
    }
}

/// AccECN's counter of marks cannot be known here for acknowledgments made here.
#[test]
fn connections_that_count_marks_are_left_alone() {
    let setup = Setup { accurate_ecn: true, ..Setup::usual() };
    let mut scene = Scene::new(setup, PACE);
    scene.send(40);
    scene.now += Duration::from_millis(20);
    scene.send(1);
    scene.acknowledge(2);
    scene.leave_all();
    assert_eq!((scene.stats.windows_clamped, scene.updates()), (0, None));
}
