//! TCP segments overtaken, lost and retransmitted, in any order: which ones wait for them.

use core::time::Duration;

use corridor_base::Time;
use corridor_relay::in_order::{HELD_MAX, HOLD_MAX, InOrder, Segment, SegmentKind};
use proptest::prelude::*;

/// The fate of a segment.
#[derive(Clone, Debug)]
struct Fate {
    /// Its connection, its effect on it, and its length.
    flow: u8,
    kind: u8,
    len: u16,
    /// Its transit time; none: it is lost.
    takes_ms: Option<u16>,
    /// Delay of a duplicate, if any.
    again_ms: Option<u16>,
    /// Whether it has a timestamp.
    is_stamped: bool,
}

fn fate() -> impl Strategy<Value = Fate> {
    let takes = prop_oneof![
        6 => Just(Some(10)),
        3 => (10_u16..400).prop_map(Some),
        1 => Just(None),
    ];
    let again = proptest::option::weighted(0.1, 0_u16..400);
    let rest = (0_u8..3, 0_u8..40, 1_u16..1_500, any::<bool>());
    (takes, again, rest).prop_map(|(takes_ms, again_ms, (flow, kind, len, is_stamped))| Fate {
        flow,
        kind,
        len,
        takes_ms,
        again_ms,
        is_stamped,
    })
}

proptest! {
    #![proptest_config(corridor_testing::cases!(400))]

    /// Everything that arrives is passed on once, within the maximum hold, and non-segments at
    /// once. A segment that waited never leaves behind one that was sent after it and left
    /// meanwhile.
    #[test]
    fn all_go_on_once_and_in_time(
        fates in proptest::collection::vec(fate(), 1..300),
        begins in any::<u32>(),
        step_ms in 0_u64..20,
    ) {
        let mut nexts = [begins; 3];
        let mut comes: Vec<(u64, usize, Option<Segment<u8>>)> = Vec::new();
        for (index, fate) in fates.iter().enumerate() {
            let sent_ms = step_ms * index as u64;
            let kind = match fate.kind {
                0 => SegmentKind::Begins,
                1 => SegmentKind::Breaks,
                _ => SegmentKind::Brings,
            };
            let next = &mut nexts[usize::from(fate.flow)];
            let (begin, end) = (*next, next.wrapping_add(fate.len.into()));
            *next = end;
            let stamp = fate.is_stamped.then_some(sent_ms as u32);
            let segment = !(2..6).contains(&fate.kind);
            let segment = segment.then_some(Segment { flow: fate.flow, kind, begin, end, stamp });
            let first = fate.takes_ms.map(|takes| sent_ms + u64::from(takes));
            let again = fate.again_ms.zip(first).map(|(after, at)| at + u64::from(after));
            comes.extend([first, again].into_iter().flatten().map(|at| (at, index, segment)));
        }
        comes.sort_by_key(|&(at, index, _)| (at, index));

        let mut order = InOrder::new(true);
        let mut out: Vec<(Time, usize)> = Vec::new();
        let mut now = Time::ZERO;
        let take_all = |order: &mut InOrder<u8, usize>, now, out: &mut Vec<_>| {
            out.extend(core::iter::from_fn(|| order.poll()).map(|place| (now, place)));
        };
        for (place, &(at_ms, _, segment)) in comes.iter().enumerate() {
            let at = Time::from_millis(at_ms);
            while let Some(due) = order.poll_timeout().filter(|&due| due <= at) {
                now = now.max(due);
                order.handle_timeout(now);
                take_all(&mut order, now, &mut out);
                prop_assert!(order.poll_timeout().is_none_or(|due| due > now), "it stands still");
            }
            now = at;
            order.take(now, segment, place);
            take_all(&mut order, now, &mut out);
            prop_assert!(segment.is_some() || out.last() == Some(&(now, place)));
            prop_assert!(order.held() <= HELD_MAX);
        }
        while let Some(due) = order.poll_timeout() {
            now = now.max(due);
            order.handle_timeout(now);
            take_all(&mut order, now, &mut out);
        }
        prop_assert_eq!(order.held(), 0);
        let mut places: Vec<_> = out.iter().map(|&(_, place)| place).collect();
        places.sort_unstable();
        prop_assert_eq!(places, (0..comes.len()).collect::<Vec<_>>());
        for &(at, place) in &out {
            let waited = at.since(Time::from_millis(comes[place].0));
            prop_assert!(waited <= HOLD_MAX + Duration::from_millis(1), "{:?}", waited);
        }
        for (behind, &(_, place)) in out.iter().enumerate() {
            let Some(segment) = comes[place].2.filter(|of| of.kind == SegmentKind::Brings) else {
                continue;
            };
            // Those that left after it arrived, and before it left.
            for &(_, other) in out[..behind].iter().filter(|&&(_, other)| other >= place) {
                let overtook = comes[other].2.is_some_and(|other| {
                    let ahead = other.begin.wrapping_sub(segment.begin) as i32;
                    other.kind == SegmentKind::Brings && other.flow == segment.flow && ahead > 0
                });
                prop_assert!(!overtook, "{:?} left behind {:?}", comes[place], comes[other]);
            }
        }
    }
}

/// A connection in which one segment in eight comes 30 to 60 ms late: once that is known, all are
/// passed on in order.
#[test]
fn what_comes_late_comes_in_order_once_that_is_known() {
    let mut order = InOrder::new(true);
    let late_ms = |number: u64| if number % 8 == 3 { 30 + number * 7 % 30 } else { 0 };
    let mut comes: Vec<_> =
        (0..2_000).map(|number| (5 * number + late_ms(number), number)).collect();
    comes.sort_unstable();
    let mut out = Vec::new();
    for &(at_ms, number) in &comes {
        let at = Time::from_millis(at_ms);
        while let Some(due) = order.poll_timeout().filter(|&due| due <= at) {
            order.handle_timeout(due);
            out.extend(core::iter::from_fn(|| order.poll()));
        }
        let (begin, end) = (number as u32 * 1_448, (number as u32 + 1) * 1_448);
        let stamp = Some(5 * number as u32);
        let kind = SegmentKind::Brings;
        order.take(at, Some(Segment { flow: 1, kind, begin, end, stamp }), number);
        out.extend(core::iter::from_fn(|| order.poll()));
    }
    assert_eq!(out.len(), comes.len());
    // The first ones teach how late they come.
    assert!(out[100..].is_sorted(), "{out:?}");
    let stats = order.stats();
    assert!(stats.late == 250 && stats.overdue <= 2, "{stats:?}");
}
