use super::*;

const LEN: u32 = 1_000;

/// One direction of a connection, with numbered segments.
struct Line {
    order: InOrder<u8, u32>,
}

impl Line {
    fn new() -> Self {
        Line { order: InOrder::new(true) }
    }

    /// A connection beside another one that has learnt that all its segments come late by this
    /// much.
    fn that_comes_late(late_ms: u64) -> Self {
        let mut line = Line::new();
        line.learns(0, late_ms);
        line
    }

    /// Teaches a connection that.
    fn learns(&mut self, flow: u8, late_ms: u64) {
        let flow = self.order.flows.entry(flow).or_insert_with(|| Flow::new(0, Time::ZERO));
        for _ in 0..20 {
            flow.lateness.note(self.order.now, Duration::from_millis(late_ms));
        }
    }

    /// Current wait of the connection's segments.
    fn hold(&self) -> Duration {
        self.order.hold_of(&self.order.flows[&1], self.order.shared_hold())
    }

    fn comes_of(&mut self, ms: u64, kind: SegmentKind, (begin, end): (u32, u32)) -> Vec<u32> {
        let segment = Segment { flow: 1, kind, begin, end, stamp: None };
        self.order.take(Time::from_millis(ms), Some(segment), begin / LEN);
        self.polled()
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
    // A copy sent later by its sender is not late.
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
    let hold = line.hold();
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
    let hold = line.hold();
    assert!((50..80).contains(&hold.as_millis()), "{hold:?}");
    assert_eq!(due, Time::from_millis(10) + hold);
    assert_eq!(line.passes(due.as_nanos() / 1_000_000 + 1), [2, 3]);
    assert_eq!(line.passes(40 + hold.as_millis() as u64 + 1), [5]);
    assert_eq!((line.order.poll_timeout(), line.order.stats().overdue), (None, 2));
    // TCP retransmits them; and what follows waits for nothing.
    assert_eq!(line.comes_stamped(200, 1, Some(6)), [1]);
    assert_eq!(line.comes(201, 6), [6]);
    assert_eq!(line.order.stats().late, 0);
    // One that arrives when nothing waits any more still counts as late, by the true amount.
    assert_eq!(line.comes(202, 4), [4]);
    assert_eq!((line.order.stats().late, line.order.stats().late_us), (1, 162_000));
    assert_eq!(line.comes(203, 4), [4], "a copy of the network's");
    assert_eq!(line.order.stats().late, 1);
}

#[test]
fn nothing_waits_for_longer_than_a_timeout_of_tcp_has_room_for() {
    let mut line = Line::that_comes_late(190);
    assert_eq!(line.order.hold(), HOLD_MAX.min(line.order.hold()));
    line.order.flows.get_mut(&0).unwrap().note_late(Time::ZERO, Duration::from_millis(20));
    assert_eq!(line.order.hold(), HOLD_MAX);
    // A later segment is as good as lost.
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
    // A distant segment neither waits nor makes others wait.
    assert_eq!(at(&mut line, 4, begin.wrapping_add(3 * LEN), 5), [0; 0]);
    let far = begin.wrapping_add(1 << 31);
    assert_eq!(at(&mut line, 5, far, 6), [6]);
    assert_eq!(at(&mut line, 6, begin.wrapping_add(2 * LEN), 4), [4, 5]);
    // Several in a row are another connection of the same ends; what waited in the previous one
    // goes first.
    assert_eq!(at(&mut line, 7, begin.wrapping_add(5 * LEN), 7), [0; 0]);
    for place in 0..STRAYS_MAX as u32 {
        assert_eq!(at(&mut line, 8, far.wrapping_add(place * LEN), place), [place]);
    }
    let next = far.wrapping_add(STRAYS_MAX as u32 * LEN);
    assert_eq!(at(&mut line, 9, next, 8), [7, 8]);
    assert_eq!(at(&mut line, 10, next.wrapping_add(2 * LEN), 10), [0; 0]);
    assert_eq!(at(&mut line, 11, next.wrapping_add(LEN), 9), [9, 10]);
}

#[test]
fn one_segment_that_is_wrong_does_not_end_order() {
    let mut line = Line::that_comes_late(50);
    let (brings, bogus) = (SegmentKind::Brings, AHEAD_MAX as u32);
    assert_eq!(line.comes(0, 0), [0]);
    assert_eq!(line.comes_of(1, brings, (bogus, bogus + LEN)), [0; 0]);
    assert_eq!(line.passes(100), [bogus / LEN], "nothing came in time");
    // Everything behind it passes on arrival, until it is clear which one was wrong.
    for number in 1..=STRAYS_MAX as u32 {
        assert_eq!(line.comes_stamped(300, number, None), [number]);
    }
    let next = STRAYS_MAX as u32 + 1;
    assert_eq!(line.comes(301, next), [next]);
    assert_eq!(line.comes(302, next + 2), [0; 0]);
    assert_eq!(line.comes(303, next + 1), [next + 1, next + 2]);
    assert_eq!(line.order.stats().late, 1);
}

#[test]
fn late_is_what_was_overtaken_by_the_first_segment_behind_its_own_gap() {
    let mut line = Line::that_comes_late(50);
    assert_eq!(line.comes(0, 4), [4]);
    // Number 7 arrives before 6, so from then on 5 is known to be missing.
    assert_eq!((line.comes(10, 7), line.comes(20, 6)), (vec![], vec![]));
    let due = line.order.poll_timeout().expect("they wait");
    assert_eq!(line.passes(due.as_nanos() / 1_000_000 + 1), [6, 7]);
    assert_eq!(line.comes(100, 12), [0; 0]);
    let before = line.order.stats();
    assert_eq!(line.comes(110, 5), [5]);
    let stats = line.order.stats();
    assert_eq!((stats.late - before.late, stats.late_us - before.late_us), (1, 100_000));
}

#[test]
fn copies_are_not_late() {
    let mut line = Line::that_comes_late(50);
    let unstamped = |line: &mut Line, ms, number| line.comes_stamped(ms, number, None);
    assert_eq!((unstamped(&mut line, 0, 1), unstamped(&mut line, 1, 3)), (vec![1], vec![]));
    assert_eq!(line.passes(100), [3]);
    // One segment waits; meanwhile copies of skipped, received, or waiting segments arrive.
    assert_eq!(unstamped(&mut line, 110, 6), [0; 0]);
    assert_eq!(unstamped(&mut line, 111, 5), [0; 0]);
    let late = line.order.stats().late;
    assert_eq!((late, line.order.stats().late_us), (1, 1_000), "5 behind 6");
    assert_eq!((unstamped(&mut line, 112, 2), unstamped(&mut line, 113, 1)), (vec![2], vec![1]));
    assert_eq!(unstamped(&mut line, 114, 5), [0; 0]);
    // So do the network's copies, which have the original timestamps.
    assert_eq!((line.comes(115, 2), line.comes(116, 1)), (vec![2], vec![1]));
    assert_eq!(line.order.stats().late, late);
}

#[test]
fn gaps_that_are_filled_are_gaps_no_more() {
    let mut flow = Flow::<u32>::new(0, Time::ZERO);
    let gaps =
        |flow: &Flow<u32>| flow.gaps.iter().map(|gap| (gap.begin, gap.end)).collect::<Vec<_>>();
    for begin in [100, 300] {
        flow.note_gap(begin, Time::ZERO, None);
        flow.next = begin + 100;
    }
    assert_eq!(gaps(&flow), [(0, 100), (200, 300)]);
    flow.fill(Time::ZERO, 20, 40);
    assert_eq!(gaps(&flow), [(0, 20), (40, 100), (200, 300)]);
    flow.fill(Time::ZERO, 40, 250);
    assert_eq!(gaps(&flow), [(0, 20), (250, 300)]);
    flow.fill(Time::ZERO, 400, 500);
    assert_eq!(gaps(&flow).len(), 2);
    flow.fill(Time::ZERO + HOLD_MAX + Duration::from_nanos(1), 400, 500);
    assert!(flow.gaps.is_empty(), "what comes so late teaches nothing");
}

#[test]
fn one_sample_makes_the_hold_three_times_as_long_at_most() {
    for samples in [[20; 5], [20, 1, 30, 2, 25], [3, 40, 3, 3, 3]] {
        let mut lateness = Lateness::default();
        samples.iter().for_each(|&ms| lateness.note(Time::ZERO, Duration::from_millis(ms)));
        let before = lateness.hold(Time::ZERO).expect("it has learnt");
        lateness.note(Time::ZERO, HOLD_MAX);
        let hold = lateness.hold(Time::ZERO).expect("it has");
        assert!(hold > before && hold <= 3 * before, "{before:?}, then {hold:?}");
    }
}

#[test]
fn no_connection_has_others_wait_longer() {
    let mut line = Line::new();
    line.learns(1, 20);
    let hold = line.hold();
    line.learns(2, 150);
    assert_eq!(line.hold(), hold);
    assert!(line.order.hold() > Duration::from_millis(149), "that of the other one");
    // A connection without measurements waits as the one that waits least.
    line.order.flows.insert(3, Flow::new(0, Time::ZERO));
    assert_eq!(line.order.hold_of(&line.order.flows[&3], line.order.shared_hold()), hold);
}

#[test]
fn who_has_many_waiting_takes_no_others_place() {
    let mut line = Line::that_comes_late(50);
    let of = |line: &mut Line, ms, flow, number: u32| {
        let (kind, begin) = (SegmentKind::Brings, number * LEN);
        let segment = Segment { flow, kind, begin, end: begin + LEN, stamp: None };
        line.order.take(Time::from_millis(ms), Some(segment), 10_000 * u32::from(flow) + number);
        line.polled()
    };
    assert_eq!((of(&mut line, 0, 1, 0), of(&mut line, 0, 1, 2)), (vec![10_000], vec![]));
    let out: Vec<_> =
        (0..2 * HELD_MAX as u32).flat_map(|number| of(&mut line, 1, 2, 2 * number)).collect();
    assert!(out.len() > HELD_MAX && out.iter().all(|&number| number >= 20_000));
    assert_eq!(of(&mut line, 2, 1, 1), [10_001, 10_002]);
}

#[test]
fn what_waits_goes_first_once_nothing_is_known_to_come_late() {
    let mut line = Line::that_comes_late(150);
    let lasts = LATE_LASTS.as_millis() as u64;
    assert_eq!(line.comes(lasts - 20, 0), [0]);
    assert_eq!((line.comes(lasts - 10, 2), line.comes(lasts - 5, 6)), (vec![], vec![]));
    assert_eq!(line.comes(lasts + 1, 8), [2, 6, 8]);
    assert_eq!(line.order.held(), 0);
}

#[test]
fn who_waits_in_vain_waits_no_more_until_one_comes_late() {
    let mut line = Line::that_comes_late(50);
    assert_eq!(line.comes(0, 0), [0]);
    // Every second one takes another path.
    let number = |place: u32| 2 * (place + 1);
    for place in 0..OVERDUE_MAX {
        let ms = 100 * u64::from(place + 1);
        assert_eq!(line.comes(ms, number(place)), [0; 0]);
        assert_eq!(line.passes(ms + 99), [number(place)]);
    }
    let ms = 100 * u64::from(OVERDUE_MAX + 1);
    assert_eq!(line.comes(ms, number(OVERDUE_MAX)), [number(OVERDUE_MAX)]);
    assert_eq!(
        line.comes(ms + 1, number(OVERDUE_MAX) - 1),
        [number(OVERDUE_MAX) - 1],
        "it does come"
    );
    assert_eq!(line.comes(ms + 2, number(OVERDUE_MAX) + 2), [0; 0]);
    assert_eq!(
        line.comes(ms + 3, number(OVERDUE_MAX) + 1),
        [number(OVERDUE_MAX) + 1, number(OVERDUE_MAX) + 2]
    );
}

#[test]
fn what_only_says_that_it_begins_or_breaks_off_changes_no_numbers() {
    let mut line = Line::that_comes_late(50);
    assert_eq!((line.comes(1, 10), line.comes(2, 12)), (vec![10], vec![]));
    // A copy of the first segment, and a forged one.
    for end in [1, 11 * LEN] {
        assert_eq!(line.comes_of(3, SegmentKind::Begins, (end - 1, end)), [(end - 1) / LEN]);
        assert_eq!(line.order.held(), 1);
    }
    assert_eq!(line.comes_of(4, SegmentKind::Breaks, (0, 0)), [12, 0]);
    assert_eq!((line.comes(5, 14), line.comes(6, 13)), (vec![], vec![13, 14]));
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
    // After the SYN, the first segment is expected.
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
    // A connection known to have late segments stays, however silent it is.
    let first = FLOWS_MAX as u32;
    order.flows.get_mut(&first).unwrap().note_late(order.now, HOLD_MAX);
    for flow in 0..first {
        let (kind, begin, end) = (SegmentKind::Begins, 1, 2);
        let segment = Segment { flow, kind, begin, end, stamp: None };
        order.take(Time::from_millis(1_000 + u64::from(flow)), Some(segment), flow);
    }
    assert!(order.flows.len() == FLOWS_MAX && order.flows.contains_key(&first));
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
