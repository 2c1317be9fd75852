//! Puts TCP segments for this node's host back in order: relays' retransmissions arrive behind
//! segments sent after them, which kernels would take for loss.
//!
//! ```text
//! (1) whose is it, and is it the next? -> host
//!         `-> (2) it waits for those before it -> (3) they come, or it has waited too long -> host
//! ```
//! The wait is measured: the delay of late segments behind those that overtook them, mean plus four
//! deviations (RFC 6298), up to [`HOLD_MAX`]. If no segments have come late recently, none wait: a
//! gap then is a loss, of which the sender should hear soon. TCP timestamps, where present,
//! distinguish late segments for a skipped gap from the sender's retransmissions. Each connection
//! learns separately, so that none makes another one wait; a connection without measurements waits
//! as long as the one that waits least.
//!
//! The sequence numbers are TCP's own, so nothing is added to packets, and a packet of another
//! flow, or one dropped by a queue, makes a gap only in its own connection. Everything that is not
//! a segment with data passes at once: datagrams, acknowledgments.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use corridor_base::Time;

use crate::owed::{OWED_MAX, Takes};

/// Maximum number of connections tracked; the one silent longest is replaced.
pub const FLOWS_MAX: usize = 256;
/// Maximum number of waiting segments over all connections: as many as a relay retransmits. Beyond
/// it, the oldest segment of the connection with the most waiting passes: none takes another's
/// place.
pub const HELD_MAX: usize = OWED_MAX;
/// Maximum wait of a segment. Nothing is acknowledged meanwhile, and a sender's timeout is at least
/// a round trip plus this time (`TCP_RTO_MIN` of Linux; RFC 6298 asks for a second).
pub const HOLD_MAX: Duration = Duration::from_millis(200);
/// How long after the last late segment no more segments wait.
const LATE_LASTS: Duration = Duration::from_secs(10);
/// Maximum distance of a segment beyond the expected one: as many as may wait, of IP's maximum
/// size. A segment further away is outside any window that relays would complete.
const AHEAD_MAX: i32 = HELD_MAX as i32 * 0xFFFF;
/// After this many consecutive segments behind the expected one, or too far beyond it, the next one
/// becomes the expected one: the expectation was wrong. Relays do not deliver more late segments
/// than they retransmit.
const STRAYS_MAX: usize = HELD_MAX;
/// After this many consecutive unsuccessful waits, none wait until one is known to have come late:
/// as many as the mean of lateness remembers (the gain of RFC 6298 is an eighth).
const OVERDUE_MAX: u32 = 8;
/// Maximum lateness of a sample, in multiples of the current wait: one sample lengthens the wait at
/// most threefold, including the deviation's and the mean's weight.
const LATE_TIMES_MAX: u32 = 2;
/// Maximum number of skipped gaps per connection for which arrivals are recognised as late. They
/// last for [`HOLD_MAX`]: later arrivals teach nothing.
const GAPS_MAX: usize = 8;

/// The relevant part of a segment's TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<K> {
    /// Its connection, and the direction.
    pub flow: K,
    /// Its effect on the connection.
    pub kind: SegmentKind,
    /// Sequence number of its first byte.
    pub begin: u32,
    /// Sequence number after its last byte.
    pub end: u32,
    /// Send time by the sender's clock (RFC 7323).
    pub stamp: Option<u32>,
}

/// Effect of a segment on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// It opens it (SYN).
    Begins,
    /// It carries data, or the end (FIN).
    Brings,
    /// It aborts it (RST).
    Breaks,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InOrderStats {
    /// Segments that arrived behind some sent after them.
    pub late: u64,
    /// Their total lateness.
    pub late_us: u64,
    /// Segments that waited for earlier ones.
    pub held: u64,
    /// Their total wait.
    pub held_us: u64,
    /// Waits that ended because what they waited for did not come in time; not those for lack of
    /// room.
    pub overdue: u64,
}

impl InOrderStats {
    /// Joins each counter with that of `other`, as a sum or a difference.
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

/// Segments in order, each in a packet `P`, of connections identified by `K`.
#[derive(Debug)]
pub struct InOrder<K, P> {
    now: Time,
    /// Whether segments wait at all; otherwise late ones are only counted.
    holds: bool,
    flows: BTreeMap<K, Flow<P>>,
    /// Number of waiting segments over all connections.
    held: usize,
    ready: VecDeque<P>,
    stats: InOrderStats,
}

/// One direction of a connection.
#[derive(Debug)]
struct Flow<P> {
    /// The expected sequence number.
    next: u32,
    used_at: Time,
    /// Waiting segments, by sequence number; all beyond the expected one.
    held: VecDeque<Held<P>>,
    /// Skipped gaps that have not been filled, oldest first.
    gaps: VecDeque<Gap>,
    lateness: Lateness,
    /// Unsuccessful waits since the last late segment.
    overdue: u32,
    /// Consecutive segments behind the expected one, or too far beyond it.
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

/// A range of sequence numbers still missing when later ones went to the host.
#[derive(Clone, Copy, Debug)]
struct Gap {
    begin: u32,
    end: u32,
    /// When the first segment behind it arrived, and when that was sent.
    since: Time,
    stamp: Option<u32>,
}

/// How late segments arrive.
#[derive(Debug, Default)]
struct Lateness {
    takes: Takes,
    noted_at: Option<Time>,
}

impl Lateness {
    fn note(&mut self, now: Time, late: Duration) {
        // A segment later than the maximum wait is as good as lost.
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

    /// How long to wait, if any segments came late recently.
    fn hold(&self, now: Time) -> Option<Duration> {
        let lasts = self.noted_at.is_some_and(|at| now.since(at) <= LATE_LASTS);
        lasts.then(|| self.takes.patience(Duration::ZERO, HOLD_MAX))
    }
}

impl<K: Clone + Ord, P> InOrder<K, P> {
    /// Initially empty. Unless it `holds`, it only counts late segments.
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

    /// The counters so far.
    pub fn stats(&self) -> InOrderStats {
        self.stats
    }

    /// Number of waiting segments.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Current maximum wait of a segment over all connections.
    pub fn hold(&self) -> Duration {
        let shared = self.shared_hold();
        let holds = self.flows.values().map(|flow| self.hold_of(flow, shared));
        holds.max().unwrap_or(Duration::ZERO)
    }

    /// Wait of a connection without measurements: as long as the one that waits least.
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

    /// Accepts a packet for the host. `segment`: its TCP fields, if it must be in order.
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

    /// A connection's first segment restarts it, unless it is a copy of one already received; an
    /// aborting segment releases all that wait. Anybody may forge either, so no further state is
    /// dropped.
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

    /// Releases segments that have waited for too long.
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

    /// When the first segment will have waited for too long.
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

    /// Accepts a segment that has overtaken others.
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
            // No recent late segments are known any more: those that wait go first.
            let held = flow.skip_all();
            Self::release(held, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
        } else if self.held > HELD_MAX {
            let most = self.flows.iter().max_by_key(|(_, flow)| flow.held.len());
            let Some(most) = most.map(|(key, _)| key.clone()) else { return };
            self.skip(&most);
        }
    }

    /// Skips the first gap of a connection's waiting segments.
    fn skip(&mut self, key: &K) {
        let Some(flow) = self.flows.get_mut(key) else { return };
        flow.skip();
        let next = flow.take_next();
        Self::release(next, self.now, (&mut self.ready, &mut self.held, &mut self.stats));
    }

    /// Makes room for this connection: connections without recent late segments are replaced first,
    /// and among these the one silent longest, so that new ones only replace each other.
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

    /// Restarts with an unrelated expected number.
    fn restart(&mut self, next: u32) {
        self.next = next;
        self.gaps.clear();
        self.strays = 0;
    }

    /// Whether a segment is too far away to be plausible, unless several come in a row.
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

    /// Distance of a number beyond the expected one; negative if it is before it.
    fn ahead(&self, number: u32) -> i32 {
        number.wrapping_sub(self.next) as i32
    }

    /// Advances the expected number to this one.
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

    /// The waiting segment that arrived first.
    fn oldest(&self) -> Option<&Held<P>> {
        self.held.iter().min_by_key(|held| held.since)
    }

    /// Arrival time of the first segment that was sent after the one arriving now; `None` if there
    /// was none, or that is unknown.
    fn overtaken_since(&self, now: Time, of: (u32, u32), stamp: Option<u32>) -> Option<Time> {
        let (begin, end) = of;
        if self.ahead(begin) < 0 {
            // It may be a copy, the sender's or the network's, of a skipped or received segment.
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

    /// Removes received numbers from all gaps.
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

    /// Records that the numbers missing before this one are no longer waited for.
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

    /// Takes out all waiting segments, which wait no longer.
    fn skip_all(&mut self) -> VecDeque<Held<P>> {
        let mut all = VecDeque::new();
        while !self.held.is_empty() {
            self.skip();
            all.extend(self.take_next());
        }
        all
    }

    /// Takes out all segments that are next in order.
    fn take_next(&mut self) -> VecDeque<Held<P>> {
        let mut next = VecDeque::new();
        while self.held.front().is_some_and(|held| self.ahead(held.begin) <= 0) {
            let Some(held) = self.held.pop_front() else { break };
            self.advance(held.end);
            next.push_back(held);
        }
        if self.held.is_empty() {
            // Frees its memory.
            self.held = VecDeque::new();
        }
        next
    }
}

impl Gap {
    fn has(&self, number: u32) -> bool {
        number.wrapping_sub(self.begin) < self.end.wrapping_sub(self.begin)
    }

    /// Whether an arrival for it counts as late rather than lost.
    fn lasts(&self, now: Time) -> bool {
        now.since(self.since) <= HOLD_MAX
    }
}

/// Whether the segment with this timestamp was sent no later than the one with the other; `None`:
/// one has none. TCP's own retransmission is a round trip later.
fn was_sent_before(stamp: Option<u32>, other: Option<u32>) -> Option<bool> {
    Some((stamp?.wrapping_sub(other?) as i32) <= 0)
}

#[cfg(test)]
mod tests;
