use super::*;

const LEN: u32 = 1_000;

/// One direction of a connection, whose segments are numbered.
struct Line {
    order: InOrder<u8, u32>,
}

impl Line {
    fn new() -> Self {
        Line { order: InOrder::new(true) }
    }

    /// One that has learnt that segments come late by so much, all of them.
    fn that_comes_late(late_ms: u64) -> Self {
        let mut line = Line::new();
        for _ in 0..20 {
            line.order.lateness.note(Time::ZERO, Duration::from_millis(late_ms));
        }
        line
    }

    fn comes(&mut self, ms: u64, number: u32) -> Vec<u32> {
        self.comes_stamped(ms, number, Some(number))
    }

    fn comes_stamped(&mut self, ms: u64, number: u32, stamp: Option<u32>) -> Vec<u32> {
        let begin = number.wrapping_mul(LEN);
        let (kind, end) = (SegmentKind::Brings, begin.wrapping_add(LEN));
        let segment = Segment { flow: 1, kind, begin, end, stamp };
        self.order.take(Time::from_millis(ms), Some(segment), number);
        self.polled()
    }

    fn passes(&mut self, ms: u64) -> Vec<u32> {
        self.order.handle_timeout(Time::from_millis(ms));
        self.polled()
    }

    fn polled(&mut self) -> Vec<u32> {
        core::iter::from_fn(|| self.order.poll()).collect()
    }
}

#[test]
fn where_none_came_late_a_gap_waits_for_nothing() {
    let mut line = Line::new();
    assert_eq!(line.comes(1, 5), [5]);
    assert_eq!(line.comes(2, 8), [8]);
    assert_eq!((line.order.poll_timeout(), line.order.held()), (None, 0));
    // A copy that its sender has sent later is not late.
    assert_eq!(line.comes_stamped(90, 6, Some(9)), [6]);
    assert_eq!(line.order.stats(), InOrderStats::default());
    assert_eq!(line.comes_stamped(92, 7, None), [7], "nobody knows");
    assert_eq!(line.order.stats(), InOrderStats::default());
}

#[test]
fn once_one_came_late_those_behind_a_gap_wait_for_as_long() {
    let mut line = Line::new();
    for (ms, number) in [(1, 1), (2, 3)] {
        assert_eq!(line.comes(ms, number), [number]);
    }
    assert_eq!(line.comes(22, 2), [2]);
    assert_eq!(line.order.stats(), InOrderStats { late: 1, late_us: 20_000, ..Default::default() });
    // The mean, and four times three eighths of it.
    assert_eq!(line.order.hold(), Duration::from_millis(50));
    assert_eq!(line.comes(30, 4), [4]);
    for (ms, number) in [(40, 6), (50, 7), (60, 9)] {
        assert_eq!(line.comes(ms, number), [0; 0]);
    }
    assert_eq!(line.comes(70, 5), [5, 6, 7]);
    let hold = line.order.hold();
    assert_eq!(line.order.poll_timeout(), Some(Time::from_millis(60) + hold));
    assert_eq!(line.comes(71, 8), [8, 9]);
    let stats = line.order.stats();
    assert_eq!((stats.late, stats.held, stats.overdue, line.order.held()), (3, 3, 0, 0));
    assert_eq!(stats.held_us, 30_000 + 20_000 + 11_000);
}

#[test]
fn what_does_not_come_in_time_is_waited_for_no_more() {
    let mut line = Line::that_comes_late(50);
    assert_eq!(line.comes(0, 0), [0]);
    // Numbers 1 and 4 are lost.
    for (ms, number) in [(10, 2), (20, 3), (40, 5)] {
        assert_eq!(line.comes(ms, number), [0; 0]);
    }
    let due = line.order.poll_timeout().expect("they wait");
    let hold = line.order.hold();
    assert!((50..80).contains(&hold.as_millis()), "{hold:?}");
    assert_eq!(due, Time::from_millis(10) + hold);
    assert_eq!(line.passes(due.as_nanos() / 1_000_000 + 1), [2, 3]);
    assert_eq!(line.passes(40 + hold.as_millis() as u64 + 1), [5]);
    assert_eq!((line.order.poll_timeout(), line.order.stats().overdue), (None, 2));
    // TCP sends them again; and what follows waits for nothing.
    assert_eq!(line.comes_stamped(300, 1, Some(6)), [1]);
    assert_eq!(line.comes(301, 6), [6]);
    assert_eq!(line.order.stats().late, 0);
    // One that comes when nobody waits any more is late all the same.
    assert_eq!(line.comes(302, 4), [4]);
    assert_eq!(line.order.stats().late, 1);
}

#[test]
fn nothing_waits_for_longer_than_a_timeout_of_tcp_has_room_for() {
    let mut line = Line::that_comes_late(190);
    assert_eq!(line.order.hold(), HOLD_MAX.min(line.order.hold()));
    line.order.lateness.note(Time::ZERO, Duration::from_millis(20));
    assert_eq!(line.order.hold(), HOLD_MAX);
    // What comes later than that is as good as lost.
    let mut line = Line::that_comes_late(210);
    assert_eq!(line.order.hold(), Duration::ZERO);
    assert_eq!((line.comes(1, 1), line.comes(2, 3)), (vec![1], vec![3]));
}

#[test]
fn what_was_late_once_is_forgotten() {
    let mut line = Line::that_comes_late(50);
    let lasts = LATE_LASTS.as_millis() as u64;
    assert_eq!(line.comes(0, 0), [0]);
    assert_eq!(line.comes(lasts, 2), [0; 0]);
    assert_eq!(line.passes(lasts + 1), [2], "late segments are no more to be expected");
    assert_eq!(line.comes(lasts + 2, 4), [4]);
}

#[test]
fn numbers_wrap_and_jump() {
    let mut line = Line::that_comes_late(50);
    let last = u32::MAX / LEN;
    let at = |line: &mut Line, ms, begin: u32, number| {
        let (kind, end) = (SegmentKind::Brings, begin.wrapping_add(LEN));
        let segment = Segment { flow: 1, kind, begin, end, stamp: None };
        line.order.take(Time::from_millis(ms), Some(segment), number);
        line.polled()
    };
    assert_eq!(at(&mut line, 1, last * LEN, 1), [1]);
    let begin = last.wrapping_add(1).wrapping_mul(LEN);
    assert_eq!(at(&mut line, 2, begin.wrapping_add(LEN), 3), [0; 0]);
    assert_eq!(at(&mut line, 3, begin, 2), [2, 3]);
    // Of another connection of the same ends; what waited of the one before goes first.
    assert_eq!(at(&mut line, 4, begin.wrapping_add(3 * LEN), 5), [0; 0]);
    assert_eq!(at(&mut line, 5, begin.wrapping_add(1 << 31), 6), [5, 6]);
}

#[test]
fn a_connection_that_begins_or_breaks_off_leaves_nothing_waiting() {
    for kind in [SegmentKind::Begins, SegmentKind::Breaks] {
        let mut line = Line::that_comes_late(50);
        assert_eq!((line.comes(1, 1), line.comes(2, 3)), (vec![1], vec![]));
        let segment = Segment { flow: 1, kind, begin: 70_000, end: 70_001, stamp: None };
        line.order.take(Time::from_millis(3), Some(segment), 99);
        assert_eq!(line.polled(), [3, 99]);
    }
    // Behind the beginning the first segment is expected.
    let mut line = Line::that_comes_late(50);
    let segment = Segment {
        flow: 1,
        kind: SegmentKind::Begins,
        begin: 7 * LEN - 1,
        end: 7 * LEN,
        stamp: None,
    };
    line.order.take(Time::from_millis(3), Some(segment), 6);
    assert_eq!(line.polled(), [6]);
    assert_eq!((line.comes(4, 8), line.comes(5, 7)), (vec![], vec![7, 8]));
}

#[test]
fn what_is_no_segment_comes_at_once_and_others_wait_for_their_own() {
    let mut line = Line::that_comes_late(50);
    assert_eq!((line.comes(1, 1), line.comes(2, 3)), (vec![1], vec![]));
    line.order.take(Time::from_millis(2), None, 100);
    assert_eq!(line.polled(), [100]);
    let (kind, begin, end) = (SegmentKind::Brings, 500, 600);
    line.order.take(
        Time::from_millis(3),
        Some(Segment { flow: 2, kind, begin, end, stamp: None }),
        200,
    );
    assert_eq!(line.polled(), [200]);
}

#[test]
fn copies_come_out_as_they_came() {
    let mut line = Line::that_comes_late(50);
    assert_eq!((line.comes(1, 1), line.comes(2, 1)), (vec![1], vec![1]));
    assert_eq!((line.comes(3, 3), line.comes(4, 3)), (vec![], vec![]));
    assert_eq!(line.comes(5, 2), [2, 3, 3]);
}

#[test]
fn no_more_wait_and_are_known_than_the_bounds() {
    let mut line = Line::that_comes_late(50);
    assert_eq!(line.comes(1, 0), [0]);
    let of = |line: &mut Line, number: u32| line.comes(2, 2 * number);
    let out: Vec<_> = (1..=HELD_MAX as u32).flat_map(|number| of(&mut line, number)).collect();
    assert_eq!((out.len(), line.order.held()), (0, HELD_MAX));
    assert_eq!(of(&mut line, HELD_MAX as u32 + 1), [2], "those that have waited longest go on");
    assert_eq!(line.order.held(), HELD_MAX);
    let mut order = InOrder::<u32, u32>::new(true);
    for flow in 0..2 * FLOWS_MAX as u32 {
        let (kind, begin, end) = (SegmentKind::Brings, 1, 2);
        let segment = Segment { flow, kind, begin, end, stamp: None };
        order.take(Time::from_millis(flow.into()), Some(segment), flow);
    }
    assert_eq!(order.flows.len(), FLOWS_MAX);
    assert!(order.flows.keys().all(|&flow| flow >= FLOWS_MAX as u32), "the last ones");
}

#[test]
fn who_does_not_hold_counts_what_is_late() {
    let mut order = InOrder::new(false);
    for (ms, number) in [(1, 1), (2, 3), (12, 2), (13, 5), (14, 4)] {
        let (kind, begin, end) = (SegmentKind::Brings, number * LEN, (number + 1) * LEN);
        let segment = Segment { flow: 1, kind, begin, end, stamp: Some(number) };
        order.take(Time::from_millis(ms), Some(segment), number);
        assert_eq!(order.poll(), Some(number));
    }
    assert_eq!(order.stats(), InOrderStats { late: 2, late_us: 11_000, ..Default::default() });
}
