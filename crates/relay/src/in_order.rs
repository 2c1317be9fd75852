//! Segments of TCP for this node's host, in order: what relays send again comes behind what was
//! sent after it, and kernels take that for loss.
//!
//! ```text
//! (1) whose is it, and is it the next? -> host
//!         `-> (2) it waits for those before it -> (3) they come, or it has waited too long -> host
//! ```
//! How long is measured: by how much late segments come behind those that overtook them, mean and
//! four deviations (RFC 6298), up to [`HOLD_MAX`]. Where none came late of late, nothing waits: a
//! gap is a loss there, of which the sender is to hear soon. Segments that come behind a gap that
//! was let go of are told from copies of the sender's by TCP's timestamps, where there are any.
//!
//! Numbers are TCP's own, so nothing is added to packets, and a packet of another flow, or one that
//! a queue dropped, is no gap of this one but for its own connection. What is no segment with data
//! comes at once: datagrams, acknowledgements.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use corridor_base::Time;

use crate::owed::{OWED_MAX, Takes};

/// Most connections whose numbers are remembered; the one that was silent longest makes room.
pub const FLOWS_MAX: usize = 256;
/// Most segments that wait, of all connections together: as many as a relay sends again. Of more,
/// those go on that have waited longest.
pub const HELD_MAX: usize = OWED_MAX;
/// Longest that a segment waits. Nothing is acknowledged meanwhile, and a sender's timeout is a
/// round trip and so much at least (`TCP_RTO_MIN` of Linux; RFC 6298 asks for a second).
pub const HOLD_MAX: Duration = Duration::from_millis(200);
/// How long after the last segment that came late nothing waits any more.
const LATE_LASTS: Duration = Duration::from_secs(10);
/// Furthest that a segment may be from the one expected (RFC 7323, Section 2.3): what is further
/// away is of another connection of the same ends.
const WINDOW_MAX: u32 = 1 << 30;
/// Gaps of a connection that were let go of, and what comes for them is known to be late.
const GAPS_MAX: usize = 8;

/// What TCP's header says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<K> {
    /// Of which connection, and which direction of it.
    pub flow: K,
    /// What it does to the connection.
    pub kind: SegmentKind,
    /// Number of its first byte.
    pub begin: u32,
    /// Number after its last.
    pub end: u32,
    /// When it was sent, by its sender's clock (RFC 7323).
    pub stamp: Option<u32>,
}

/// What a segment does to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// It begins it (SYN).
    Begins,
    /// It brings some of it, or its end (FIN).
    Brings,
    /// It breaks it off (RST).
    Breaks,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InOrderStats {
    /// Segments that came behind some that were sent after them.
    pub late: u64,
    /// By how much, all together.
    pub late_us: u64,
    /// Segments that waited for those before them.
    pub held: u64,
    /// How long, all together.
    pub held_us: u64,
    /// Times that what they waited for did not come in time.
    pub overdue: u64,
}

impl InOrderStats {
    /// Each counter with that of `other`: their sums, or differences.
    pub fn with(self, other: InOrderStats, join: impl Fn(u64, u64) -> u64) -> InOrderStats {
        InOrderStats {
            late: join(self.late, other.late),
            late_us: join(self.late_us, other.late_us),
            held: join(self.held, other.held),
            held_us: join(self.held_us, other.held_us),
            overdue: join(self.overdue, other.overdue),
        }
    }
}

/// Segments in order, each in a packet `P`, of connections told apart by `K`.
#[derive(Debug)]
pub struct InOrder<K, P> {
    now: Time,
    /// Whether segments wait at all; if not, it is only counted which come late.
    holds: bool,
    flows: BTreeMap<K, Flow<P>>,
    /// Segments of all of these that wait.
    held: usize,
    lateness: Lateness,
    ready: VecDeque<P>,
    stats: InOrderStats,
}

/// A connection, in one direction.
#[derive(Debug)]
struct Flow<P> {
    /// The number that is expected.
    next: u32,
    used_at: Time,
    /// What waits, by its numbers; all of it is beyond the one expected.
    held: VecDeque<Held<P>>,
    /// What was let go of, the oldest first.
    gaps: VecDeque<Gap>,
}

#[derive(Debug)]
struct Held<P> {
    begin: u32,
    end: u32,
    stamp: Option<u32>,
    since: Time,
    packet: P,
}

/// Numbers that had not come when those behind them went to the host.
#[derive(Clone, Copy, Debug)]
struct Gap {
    begin: u32,
    end: u32,
    /// When the first segment behind it came, and when that was sent.
    since: Time,
    stamp: Option<u32>,
}

/// How late segments come.
#[derive(Debug, Default)]
struct Lateness {
    takes: Takes,
    noted_at: Option<Time>,
}

impl Lateness {
    fn note(&mut self, now: Time, late: Duration) {
        if self.is_over(now) {
            self.takes = Takes::default();
        }
        // What comes later than anything may wait is as good as lost.
        if late <= HOLD_MAX {
            self.takes.note(late);
            self.noted_at = Some(now);
        }
    }

    fn is_over(&self, now: Time) -> bool {
        self.noted_at.is_none_or(|at| now.since(at) > LATE_LASTS)
    }

    fn hold(&self, now: Time) -> Duration {
        if self.is_over(now) {
            Duration::ZERO
        } else {
            self.takes.patience(Duration::ZERO, HOLD_MAX)
        }
    }
}

impl<K: Clone + Ord, P> InOrder<K, P> {
    /// Nothing has come yet. Unless it `holds`, it only counts what comes late.
    pub fn new(holds: bool) -> Self {
        InOrder {
            now: Time::ZERO,
            holds,
            flows: BTreeMap::new(),
            held: 0,
            lateness: Lateness::default(),
            ready: VecDeque::new(),
            stats: InOrderStats::default(),
        }
    }

    /// What happened so far.
    pub fn stats(&self) -> InOrderStats {
        self.stats
    }

    /// Segments that wait.
    pub fn held(&self) -> usize {
        self.held
    }

    /// How long a segment waits at most, as it is now.
    pub fn hold(&self) -> Duration {
        if self.holds { self.lateness.hold(self.now) } else { Duration::ZERO }
    }

    /// Takes a packet for the host. `segment`: what it is of TCP, if it has to be in order.
    pub fn take(&mut self, now: Time, segment: Option<Segment<K>>, packet: P) {
        self.now = now;
        let Some(segment) = segment else { return self.ready.push_back(packet) };
        match segment.kind {
            SegmentKind::Brings => self.take_data(segment, packet),
            SegmentKind::Begins | SegmentKind::Breaks => {
                if let Some(flow) = self.flows.remove(&segment.flow) {
                    self.let_go(flow);
                }
                if segment.kind == SegmentKind::Begins {
                    self.make_room();
                    self.flows.insert(segment.flow, Flow::new(segment.end, now));
                }
                self.ready.push_back(packet);
            }
        }
    }

    /// The next packet for the host.
    pub fn poll(&mut self) -> Option<P> {
        self.ready.pop_front()
    }

    /// Lets those go on that have waited for too long.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        while self.due().is_some_and(|due| due <= now) {
            self.skip_oldest();
        }
    }

    /// When the first of them has.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.due()
    }

    fn due(&self) -> Option<Time> {
        if self.held == 0 {
            return None;
        }
        let since = self.flows.values().filter_map(Flow::waits_since).min()?;
        Some(since + self.hold())
    }

    fn take_data(&mut self, segment: Segment<K>, packet: P) {
        let (now, hold) = (self.now, self.hold());
        if !self.flows.contains_key(&segment.flow) {
            self.make_room();
        }
        let Segment { flow: key, begin, end, stamp, .. } = segment;
        let flow = self.flows.entry(key).or_insert_with(|| Flow::new(begin, now));
        flow.used_at = now;
        if flow.ahead(begin).unsigned_abs() > WINDOW_MAX {
            let before = core::mem::replace(flow, Flow::new(begin, now));
            Self::release(before.held, now, (&mut self.ready, &mut self.held, &mut self.stats));
        }
        if let Some(since) = flow.overtaken_since(begin, end, stamp) {
            self.stats.late += 1;
            self.stats.late_us += now.since(since).as_micros() as u64;
            self.lateness.note(now, now.since(since));
        }
        if flow.ahead(begin) > 0 {
            if !hold.is_zero() {
                flow.hold(Held { begin, end, stamp, since: now, packet });
                self.held += 1;
                if self.held > HELD_MAX {
                    self.skip_oldest();
                }
                return;
            }
            flow.note_gap(begin, now, stamp);
        }
        self.ready.push_back(packet);
        flow.advance(end);
        let next = flow.take_next();
        Self::release(next, now, (&mut self.ready, &mut self.held, &mut self.stats));
    }

    /// What has waited longest, and what follows it, waits no more for what is before it.
    fn skip_oldest(&mut self) {
        let waiting = |flow: &&mut Flow<P>| flow.waits_since().is_some();
        let flows = self.flows.values_mut().filter(waiting);
        let Some(flow) = flows.min_by_key(|flow| flow.waits_since()) else { return };
        flow.skip();
        self.stats.overdue += 1;
        let next = flow.take_next();
        Self::release(next, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
    }

    /// There is to be room for one more connection.
    fn make_room(&mut self) {
        if self.flows.len() < FLOWS_MAX {
            return;
        }
        let silent = self.flows.iter().min_by_key(|(_, flow)| flow.used_at);
        let Some(key) = silent.map(|(key, _)| key.clone()) else { return };
        if let Some(flow) = self.flows.remove(&key) {
            self.let_go(flow);
        }
    }

    fn let_go(&mut self, flow: Flow<P>) {
        Self::release(flow.held, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
    }

    fn release(
        segments: VecDeque<Held<P>>,
        now: Time,
        (ready, held, stats): (&mut VecDeque<P>, &mut usize, &mut InOrderStats),
    ) {
        *held -= segments.len();
        for Held { since, packet, .. } in segments {
            stats.held += 1;
            stats.held_us += now.since(since).as_micros() as u64;
            ready.push_back(packet);
        }
    }
}

impl<P> Flow<P> {
    fn new(next: u32, now: Time) -> Self {
        Flow { next, used_at: now, held: VecDeque::new(), gaps: VecDeque::new() }
    }

    /// How far a number is beyond the one expected; negative if it is before it.
    fn ahead(&self, number: u32) -> i32 {
        number.wrapping_sub(self.next) as i32
    }

    /// All before this number need not be waited for.
    fn advance(&mut self, end: u32) {
        if self.ahead(end) > 0 {
            self.next = end;
        }
    }

    fn hold(&mut self, new: Held<P>) {
        let ahead = self.ahead(new.begin);
        let place = self.held.partition_point(|held| self.ahead(held.begin) <= ahead);
        self.held.insert(place, new);
    }

    /// When the first segment came of those that wait.
    fn waits_since(&self) -> Option<Time> {
        self.held.iter().map(|held| held.since).min()
    }

    /// When the first segment came that was sent after one that comes now; `None` if none was, or
    /// that is not known.
    fn overtaken_since(&self, begin: u32, end: u32, stamp: Option<u32>) -> Option<Time> {
        let beyond = |held: &&Held<P>| held.begin.wrapping_sub(end) as i32 >= 0;
        if let Some(first) = self.held.iter().filter(beyond).min_by_key(|held| held.since) {
            return was_sent_before(stamp, first.stamp).unwrap_or(true).then_some(first.since);
        }
        let within = |gap: &&Gap| begin.wrapping_sub(gap.begin) < gap.end.wrapping_sub(gap.begin);
        let gap = self.gaps.iter().find(within)?;
        was_sent_before(stamp, gap.stamp).filter(|&before| before).map(|_| gap.since)
    }

    /// What is missing before this number is not waited for.
    fn note_gap(&mut self, end: u32, since: Time, stamp: Option<u32>) {
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(Gap { begin: self.next, end, since, stamp });
    }

    fn skip(&mut self) {
        let Some(&Held { begin, since, stamp, .. }) = self.held.front() else { return };
        self.note_gap(begin, since, stamp);
        self.next = begin;
    }

    /// Takes out all whose turn it is.
    fn take_next(&mut self) -> VecDeque<Held<P>> {
        let mut next = VecDeque::new();
        while self.held.front().is_some_and(|held| self.ahead(held.begin) <= 0) {
            let Some(held) = self.held.pop_front() else { break };
            self.advance(held.end);
            next.push_back(held);
        }
        next
    }
}

/// Whether what has this stamp was sent before, or with, what has the other one; `None`: one has
/// none. A copy that TCP has sent is a round trip later.
fn was_sent_before(stamp: Option<u32>, other: Option<u32>) -> Option<bool> {
    Some((stamp?.wrapping_sub(other?) as i32) <= 0)
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            line.order.stats(),
            InOrderStats { late: 1, late_us: 20_000, ..Default::default() }
        );
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
}
