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
//! was skipped are told from copies of the sender's by TCP's timestamps, where there are any.
//! Each connection learns for itself, so that none makes another one wait; of which nothing is
//! known yet waits as those that wait least.
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
/// the oldest goes on of that connection of which most wait: none takes another one's place.
pub const HELD_MAX: usize = OWED_MAX;
/// Longest that a segment waits. Nothing is acknowledged meanwhile, and a sender's timeout is a
/// round trip and so much at least (`TCP_RTO_MIN` of Linux; RFC 6298 asks for a second).
pub const HOLD_MAX: Duration = Duration::from_millis(200);
/// How long after the last segment that came late nothing waits any more.
const LATE_LASTS: Duration = Duration::from_secs(10);
/// Furthest that a segment may be beyond the one expected: as many as may wait, of the most bytes
/// that IP has. What is further away is of no window of which relays bring the rest.
const AHEAD_MAX: i32 = HELD_MAX as i32 * 0xFFFF;
/// After so many segments in a row that are behind the one expected, or too far beyond it, the next
/// one is: it was wrong. Relays do not bring more late than they send again.
const STRAYS_MAX: usize = HELD_MAX;
/// After so many waits in a row of which nothing came in time, nothing waits until one is known to
/// have come late: as many as the mean of lateness remembers (the gain of RFC 6298 is an eighth).
const OVERDUE_MAX: u32 = 8;
/// How many times the present wait a segment counts at most as late: one sample makes the wait no
/// more than three times as long, the deviation's weight and the mean's taken together.
const LATE_TIMES_MAX: u32 = 2;
/// Gaps of a connection that were skipped, and what comes for them is known to be late. They last
/// for [`HOLD_MAX`]: what comes later teaches nothing.
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
    /// Times that what they waited for did not come in time; not those for want of room.
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
    /// What was skipped and has not come, the oldest first.
    gaps: VecDeque<Gap>,
    lateness: Lateness,
    /// Waits that nothing came of in time, since one was late.
    overdue: u32,
    /// Segments in a row that were behind the one expected, or too far beyond it.
    strays: usize,
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
        // What comes later than anything may wait is as good as lost.
        if late > HOLD_MAX {
            return;
        }
        let late = match self.hold(now) {
            Some(hold) => late.min(LATE_TIMES_MAX * hold),
            None => {
                self.takes = Takes::default();
                late
            }
        };
        self.takes.note(late);
        self.noted_at = Some(now);
    }

    /// How long to wait, if any came late of late.
    fn hold(&self, now: Time) -> Option<Duration> {
        let lasts = self.noted_at.is_some_and(|at| now.since(at) <= LATE_LASTS);
        lasts.then(|| self.takes.patience(Duration::ZERO, HOLD_MAX))
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

    /// How long a segment of any connection waits at most, as it is now.
    pub fn hold(&self) -> Duration {
        let shared = self.shared_hold();
        let holds = self.flows.values().map(|flow| self.hold_of(flow, shared));
        holds.max().unwrap_or(Duration::ZERO)
    }

    /// How long a connection waits of which nothing is known: as long as that which waits least.
    fn shared_hold(&self) -> Duration {
        let known = self.flows.values().filter_map(|flow| flow.lateness.hold(self.now));
        known.min().unwrap_or(Duration::ZERO)
    }

    fn hold_of(&self, flow: &Flow<P>, shared: Duration) -> Duration {
        if !self.holds || flow.overdue >= OVERDUE_MAX {
            return Duration::ZERO;
        }
        flow.lateness.hold(self.now).unwrap_or(shared)
    }

    /// Takes a packet for the host. `segment`: what it is of TCP, if it has to be in order.
    pub fn take(&mut self, now: Time, segment: Option<Segment<K>>, packet: P) {
        self.now = now;
        match segment {
            Some(segment) if segment.kind == SegmentKind::Brings => {
                self.take_data(segment, packet);
            }
            Some(segment) => {
                self.take_begin_or_break(&segment);
                self.ready.push_back(packet);
            }
            None => self.ready.push_back(packet),
        }
    }

    /// The first segment of a connection begins it anew, unless it is a copy of what has come; one
    /// that breaks it off leaves nothing waiting. Anybody may send either: no more is forgotten.
    fn take_begin_or_break(&mut self, segment: &Segment<K>) {
        if let Some(flow) = self.flows.get_mut(&segment.flow) {
            let is_old = (-AHEAD_MAX..=0).contains(&flow.ahead(segment.end));
            if segment.kind == SegmentKind::Begins && is_old {
                return;
            }
            let held = flow.skip_all();
            Self::release(held, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
            if segment.kind == SegmentKind::Begins {
                flow.restart(segment.end);
            }
        } else if segment.kind == SegmentKind::Begins {
            self.make_room(&segment.flow);
            self.flows.insert(segment.flow.clone(), Flow::new(segment.end, self.now));
        }
    }

    /// The next packet for the host.
    pub fn poll(&mut self) -> Option<P> {
        self.ready.pop_front()
    }

    /// Lets those go on that have waited for too long.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        while let Some((due, key)) = self.due()
            && due <= now
        {
            if let Some(flow) = self.flows.get_mut(&key) {
                flow.overdue = flow.overdue.saturating_add(1);
            }
            self.stats.overdue += 1;
            self.skip(&key);
        }
    }

    /// When the first of them has.
    pub fn poll_timeout(&self) -> Option<Time> {
        Some(self.due()?.0)
    }

    fn due(&self) -> Option<(Time, K)> {
        if self.held == 0 {
            return None;
        }
        let shared = self.shared_hold();
        let due = |(key, flow): (&K, &Flow<P>)| {
            Some((flow.oldest()?.since + self.hold_of(flow, shared), key.clone()))
        };
        self.flows.iter().filter_map(due).min()
    }

    fn take_data(&mut self, segment: Segment<K>, packet: P) {
        let now = self.now;
        let Segment { flow: key, begin, end, stamp, .. } = segment;
        self.make_room(&key);
        let flow = self.flows.entry(key.clone()).or_insert_with(|| Flow::new(begin, now));
        flow.used_at = now;
        if flow.strays(begin, end) {
            return self.ready.push_back(packet);
        }
        if flow.strays > STRAYS_MAX {
            let held = flow.skip_all();
            Self::release(held, now, (&mut self.ready, &mut self.held, &mut self.stats));
            flow.restart(begin);
        }
        if let Some(since) = flow.overtaken_since(now, (begin, end), stamp) {
            let late = now.since(since);
            self.stats.late += 1;
            self.stats.late_us += late.as_micros() as u64;
            flow.note_late(now, late);
        }
        flow.fill(now, begin, end);
        if flow.ahead(begin) > 0 {
            return self.take_beyond(&key, Held { begin, end, stamp, since: now, packet });
        }
        self.ready.push_back(packet);
        flow.advance(end);
        let next = flow.take_next();
        Self::release(next, now, (&mut self.ready, &mut self.held, &mut self.stats));
    }

    /// Takes a segment that has overtaken others.
    fn take_beyond(&mut self, key: &K, segment: Held<P>) {
        let shared = self.shared_hold();
        let Some(flow) = self.flows.get(key) else { return self.ready.push_back(segment.packet) };
        let waits = !self.hold_of(flow, shared).is_zero();
        let Some(flow) = self.flows.get_mut(key) else { return };
        if !waits && flow.held.is_empty() {
            flow.note_gap(segment.begin, self.now, segment.stamp);
            flow.advance(segment.end);
            return self.ready.push_back(segment.packet);
        }
        flow.hold(segment);
        self.held += 1;
        if !waits {
            // It is known no more that any come late: those that wait go first.
            let held = flow.skip_all();
            Self::release(held, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
        } else if self.held > HELD_MAX {
            let most = self.flows.iter().max_by_key(|(_, flow)| flow.held.len());
            let Some(most) = most.map(|(key, _)| key.clone()) else { return };
            self.skip(&most);
        }
    }

    /// What waits of a connection waits no more for the first gap before it.
    fn skip(&mut self, key: &K) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        flow.skip();
        let next = flow.take_next();
        Self::release(next, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
    }

    /// There is to be room for this connection: first that goes of which none came late of late,
    /// and of these the one that was silent longest, so that new ones come and go among themselves.
    fn make_room(&mut self, new: &K) {
        if self.flows.len() < FLOWS_MAX || self.flows.contains_key(new) {
            return;
        }
        let worth = |flow: &Flow<P>| (flow.lateness.hold(self.now).is_some(), flow.used_at);
        let least = self.flows.iter().min_by_key(|(_, flow)| worth(flow));
        let Some(key) = least.map(|(key, _)| key.clone()) else { return };
        if let Some(flow) = self.flows.remove(&key) {
            Self::release(flow.held, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
        }
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
        Flow {
            next,
            used_at: now,
            held: VecDeque::new(),
            gaps: VecDeque::new(),
            lateness: Lateness::default(),
            overdue: 0,
            strays: 0,
        }
    }

    /// Another number is expected than all that is known would have it.
    fn restart(&mut self, next: u32) {
        self.next = next;
        self.gaps.clear();
        self.strays = 0;
    }

    /// Whether a segment is too far away to mean anything, but for what comes in a row.
    fn strays(&mut self, begin: u32, end: u32) -> bool {
        let is_far = self.ahead(begin) > AHEAD_MAX || self.ahead(end) < -AHEAD_MAX;
        let is_behind = self.ahead(end) <= 0;
        self.strays = if is_far || is_behind { self.strays + 1 } else { 0 };
        is_far && self.strays <= STRAYS_MAX
    }

    fn note_late(&mut self, now: Time, late: Duration) {
        self.lateness.note(now, late);
        if late <= HOLD_MAX {
            self.overdue = 0;
        }
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

    /// What came first of all that wait.
    fn oldest(&self) -> Option<&Held<P>> {
        self.held.iter().min_by_key(|held| held.since)
    }

    /// When the first segment came that was sent after one that comes now; `None` if none was, or
    /// that is not known.
    fn overtaken_since(&self, now: Time, of: (u32, u32), stamp: Option<u32>) -> Option<Time> {
        let (begin, end) = of;
        if self.ahead(begin) < 0 {
            // It may be a copy, the sender's or the network's, of what was skipped or has come.
            let gap = self.gaps.iter().find(|gap| gap.has(begin) && gap.lasts(now))?;
            return (was_sent_before(stamp, gap.stamp) == Some(true)).then_some(gap.since);
        }
        if self.held.iter().any(|held| held.begin == begin) {
            return None;
        }
        let beyond = |held: &&Held<P>| held.begin.wrapping_sub(end) as i32 >= 0;
        let first = self.held.iter().filter(beyond).min_by_key(|held| held.since)?;
        was_sent_before(stamp, first.stamp).unwrap_or(true).then_some(first.since)
    }

    /// These numbers have come: no gap has them any more.
    fn fill(&mut self, now: Time, begin: u32, end: u32) {
        let gaps = core::mem::take(&mut self.gaps);
        for gap in gaps.into_iter().filter(|gap| gap.lasts(now)) {
            let len = gap.end.wrapping_sub(gap.begin) as i32;
            let place = |number: u32| (number.wrapping_sub(gap.begin) as i32).clamp(0, len) as u32;
            let (from, to) = (place(begin), place(end).max(place(begin)));
            let (from, to) = (gap.begin.wrapping_add(from), gap.begin.wrapping_add(to));
            for (begin, end) in [(gap.begin, from), (to, gap.end)] {
                if begin != end {
                    self.push_gap(Gap { begin, end, ..gap });
                }
            }
        }
    }

    /// What is missing before this number is not waited for.
    fn note_gap(&mut self, end: u32, since: Time, stamp: Option<u32>) {
        self.push_gap(Gap { begin: self.next, end, since, stamp });
    }

    fn push_gap(&mut self, gap: Gap) {
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
    }

    fn skip(&mut self) {
        let (Some(front), Some(oldest)) = (self.held.front(), self.oldest()) else { return };
        let (begin, since, stamp) = (front.begin, oldest.since, oldest.stamp);
        self.note_gap(begin, since, stamp);
        self.next = begin;
    }

    /// Takes out all that wait, which wait for nothing any more.
    fn skip_all(&mut self) -> VecDeque<Held<P>> {
        let mut all = VecDeque::new();
        while !self.held.is_empty() {
            self.skip();
            all.extend(self.take_next());
        }
        all
    }

    /// Takes out all whose turn it is.
    fn take_next(&mut self) -> VecDeque<Held<P>> {
        let mut next = VecDeque::new();
        while self.held.front().is_some_and(|held| self.ahead(held.begin) <= 0) {
            let Some(held) = self.held.pop_front() else { break };
            self.advance(held.end);
            next.push_back(held);
        }
        if self.held.is_empty() {
            // It gives back its memory.
            self.held = VecDeque::new();
        }
        next
    }
}

impl Gap {
    fn has(&self, number: u32) -> bool {
        number.wrapping_sub(self.begin) < self.end.wrapping_sub(self.begin)
    }

    /// Whether what comes for it is late, and not lost.
    fn lasts(&self, now: Time) -> bool {
        now.since(self.since) <= HOLD_MAX
    }
}

/// Whether what has this stamp was sent before, or with, what has the other one; `None`: one has
/// none. A copy that TCP has sent is a round trip later.
fn was_sent_before(stamp: Option<u32>, other: Option<u32>) -> Option<bool> {
    Some((stamp?.wrapping_sub(other?) as i32) <= 0)
}

#[cfg(test)]
mod tests;
