//! Finite queues: refused frames are returned, and accepted ones arrive.

use std::sync::Arc;

use corridor_air::{Frame, MAX_DELIVERIES, QueueFull};

use super::*;

#[test]
fn a_full_queue_gives_the_frame_back() {
    let mut medium = medium(MediumConfig { queue_frames: 3, ..mesh(Duplex::Half, 2, 0.0) });
    for number in 0..3 {
        assert!(medium.has_room(0));
        medium.offer(ms(0), 0, Address::All, vec![number]).expect("there is room");
    }
    assert!(!medium.has_room(0));
    assert_eq!(medium.backlog(0), 3);
    assert!(medium.has_room(1), "a queue for every station");
    let refused = medium.offer(ms(0), 0, Address::All, vec![3]);
    assert_eq!(refused, Err(QueueFull { frame: vec![3] }));
    assert_eq!((medium.stats(0).offered, medium.stats(0).refused), (4, 1));
    let heard: Vec<_> = run(&mut medium).iter().map(|d| d.frame[0]).collect();
    assert_eq!(heard, [0, 1, 2]);
}

#[test]
fn the_frame_on_the_air_counts_until_its_end() {
    let mut medium = medium(MediumConfig { queue_frames: 1, ..mesh(Duplex::Half, 2, 0.0) });
    medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
    medium.handle_timeout(ms(0));
    let almost = Time::from_nanos(999_999);
    assert!(medium.offer(almost, 0, Address::All, &FRAME[..]).is_err());
    medium.offer(ms(1), 0, Address::All, &FRAME[..]).expect("room from 1 ms on");
}

#[test]
fn room_appears_by_time_alone() {
    let mut medium = medium(MediumConfig { queue_frames: 1, ..mesh(Duplex::Full, 2, 0.0) });
    medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
    assert!(!medium.has_room(0));
    medium.handle_timeout(ms(1));
    assert!(medium.has_room(0));
}

#[test]
fn a_driver_that_does_not_drain_is_pushed_back() {
    let mut medium = medium(MediumConfig { queue_frames: 1000, ..mesh(Duplex::Full, 2, 0.0) });
    let frame: Frame = Arc::from(&FRAME[..]);
    let mut now = Time::ZERO;
    while medium.has_room(0) {
        while medium.offer(now, 0, Address::All, Arc::clone(&frame)).is_ok() {}
        now += 1000 * FRAME_AIRTIME;
        medium.handle_timeout(now);
    }
    let waiting = drain(&mut medium).len();
    assert!((MAX_DELIVERIES..MAX_DELIVERIES + 1000).contains(&waiting), "{waiting}");
    assert!(medium.has_room(0));
}

#[test]
fn a_station_that_is_not_there_has_no_room_and_no_counters() {
    let mut medium = medium(mesh(Duplex::Half, 2, 0.0));
    assert!(!medium.has_room(2));
    assert_eq!(medium.backlog(2), 0);
    assert!(medium.offer(ms(0), 2, Address::All, vec![0]).is_err());
    assert_eq!(medium.stats(2), Default::default());
    assert_eq!(medium.link_stats(2, 0), None);
    assert_eq!(medium.poll_timeout(), None);
}

#[test]
fn all_who_hear_share_the_bytes_that_were_offered() {
    let mut medium = medium(mesh(Duplex::Half, 4, 0.0));
    let frame: Frame = Arc::from(&FRAME[..]);
    medium.offer(ms(0), 0, Address::All, Arc::clone(&frame)).expect("there is room");
    let heard = run(&mut medium);
    assert_eq!(heard.len(), 3);
    assert!(heard.iter().all(|delivery| Arc::ptr_eq(&delivery.frame, &frame)));
}

#[test]
fn threads_can_own_a_medium() {
    fn sendable<T: Send + Sync>() {}
    sendable::<Medium>();
    sendable::<Delivery>();
}
