//! What is under way: each packet's state, found by its number; those that count for RACK in the
//! order in which they were sent; and those that wait to be sent again.
//!
//! No acknowledgement walks the window: it costs what it newly tells of, and a search among the
//! ranges that have arrived. A packet is put at the end of the list of transmissions when it is
//! sent, and taken out when it arrives or is given up; RACK passes it once in between, and so it is
//! looked at a bounded number of times (`cost.rs` counts). Only a timeout, and a reduction that is
//! undone, look at all that is under way: once each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// In place of a number: none.
const NOBODY: u64 = u64::MAX;

/// A packet under way. Times in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When it was sent last.
    pub(super) at_us: u64,
    /// When that packet had been sent whose arrival was the latest known when this was sent.
    pub(super) first_at_us: u64,
    /// When that became known; `None` once this has been counted as delivered.
    pub(super) delivered_at_us: Option<u64>,
    /// Packets that had arrived when this was sent.
    pub(super) delivered: u64,
    /// The application had nothing more when it was sent.
    pub(super) app_limited: bool,
    /// It has arrived, beyond a gap.
    pub(super) sacked: bool,
    /// It was given up.
    pub(super) lost: bool,
    /// It was sent again, and that copy is believed to be under way.
    pub(super) again: bool,
    /// It was sent again at some time.
    pub(super) ever_again: bool,
    listed: bool,
    older: u64,
    newer: u64,
}

impl Sent {
    /// Whether it was given up, and no copy that was sent since is believed to be under way.
    pub(super) fn waits(&self) -> bool {
        self.lost && !self.again
    }
}

/// What marking a packet as lost changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// It had not been given up.
    First,
    /// The copy sent again was lost too.
    Again,
    /// Nothing.
    Already,
}

/// All that has been sent and is not acknowledged with all before it.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    una: u64,
    packets: VecDeque<Sent>,
    /// Ranges that have arrived beyond `una`: first number, and the one behind the last.
    ranges: BTreeMap<u64, u64>,
    /// Packets that were given up and not sent again since.
    waiting: BTreeSet<u64>,
    oldest: u64,
    newest: u64,
    /// The last of the list that is known to have been sent before what RACK goes by.
    passed: u64,
    sacked: u64,
    lost: u64,
    again: u64,
}

impl Scoreboard {
    pub(super) fn new() -> Self {
        Scoreboard {
            una: 0,
            packets: VecDeque::new(),
            ranges: BTreeMap::new(),
            waiting: BTreeSet::new(),
            oldest: NOBODY,
            newest: NOBODY,
            passed: NOBODY,
            sacked: 0,
            lost: 0,
            again: 0,
        }
    }

    /// All before this number are acknowledged.
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// The number of the next new packet.
    pub(super) fn next(&self) -> u64 {
        self.una + self.packets.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Packets sent and not acknowledged with all before them.
    pub(super) fn out(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Of these, packets that have arrived beyond a gap.
    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Of these, packets given up.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Of these, packets whose second copy is believed to be under way.
    pub(super) fn again(&self) -> u64 {
        self.again
    }

    /// Packets believed to be in the network.
    pub(super) fn in_flight(&self) -> u64 {
        self.out() + self.again - self.sacked - self.lost
    }

    pub(super) fn get(&self, number: u64) -> Option<&Sent> {
        count_looks(1);
        self.packets.get(number.checked_sub(self.una)? as usize)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Sent> {
        count_looks(1);
        self.packets.get_mut(number.checked_sub(self.una)? as usize)
    }

    /// Whether anything unacknowledged was sent more than once, as far as the first one tells.
    pub(super) fn has_sent_again(&self) -> bool {
        self.again > 0 || self.packets.front().is_some_and(|first| first.ever_again)
    }

    /// The first packet that waits to be sent again.
    pub(super) fn first_waiting(&self) -> Option<u64> {
        self.waiting.first().copied()
    }

    /// The packet that was sent longest ago, of those that RACK looks at.
    pub(super) fn oldest(&self) -> Option<u64> {
        (self.oldest != NOBODY).then_some(self.oldest)
    }

    /// Of those that RACK looks at the last one that was sent before `limit`, a time and the number
    /// behind; `limit` does not go back. What has been passed is not looked at again.
    pub(super) fn last_before(&mut self, limit: (u64, u64)) -> Option<u64> {
        loop {
            let next = match self.get(self.passed) {
                Some(passed) => passed.newer,
                None => self.oldest,
            };
            let Some(sent) = self.get(next) else { break };
            if sent.waits() {
                // A probe of the tail listed it.
                self.unlist(next);
            } else if limit <= (sent.at_us, next + 1) {
                break;
            } else {
                self.passed = next;
            }
        }
        (self.passed != NOBODY).then_some(self.passed)
    }

    /// A new packet is sent.
    pub(super) fn push(&mut self, at_us: u64, rate: Departure) {
        let number = self.next();
        self.packets.push_back(Sent {
            at_us,
            first_at_us: rate.first_at_us,
            delivered_at_us: Some(rate.delivered_at_us),
            delivered: rate.delivered,
            app_limited: rate.app_limited,
            sacked: false,
            lost: false,
            again: false,
            ever_again: false,
            listed: false,
            older: NOBODY,
            newer: NOBODY,
        });
        self.enlist(number);
    }

    /// A packet is sent again, because it is lost.
    pub(super) fn push_again(&mut self, number: u64, at_us: u64, rate: Departure) {
        self.push_copy(number, at_us, rate);
        let Some(sent) = self.get_mut(number).filter(|sent| !sent.again) else { return };
        sent.again = true;
        self.again += 1;
        self.waiting.remove(&number);
    }

    /// A packet is sent again, whatever became of it.
    pub(super) fn push_copy(&mut self, number: u64, at_us: u64, rate: Departure) {
        self.unlist(number);
        let Some(sent) = self.get_mut(number) else { return };
        (sent.at_us, sent.ever_again) = (at_us, true);
        (sent.first_at_us, sent.delivered) = (rate.first_at_us, rate.delivered);
        sent.delivered_at_us = Some(rate.delivered_at_us);
        sent.app_limited = rate.app_limited;
        self.enlist(number);
    }

    /// Gives a packet up, or its copy; it waits to be sent again, and RACK looks at it no more
    /// until then.
    pub(super) fn mark_lost(&mut self, number: u64) -> Marked {
        let Some(sent) = self.get_mut(number).filter(|sent| !sent.sacked) else {
            return Marked::Already;
        };
        let marked = match (sent.lost, sent.again) {
            (true, false) => return Marked::Already,
            (true, true) => Marked::Again,
            (false, _) => Marked::First,
        };
        if marked == Marked::Again {
            sent.again = false;
            self.again -= 1;
        } else {
            sent.lost = true;
            self.lost += 1;
        }
        if self.get(number).is_some_and(Sent::waits) {
            self.waiting.insert(number);
            self.unlist(number);
        }
        marked
    }

    /// A packet has arrived beyond a gap: what was known of it before that.
    pub(super) fn mark_sacked(&mut self, number: u64) -> Option<Sent> {
        let sent = self.get_mut(number).filter(|sent| !sent.sacked)?;
        let before = *sent;
        sent.sacked = true;
        sent.delivered_at_us = None;
        if sent.lost {
            sent.lost = false;
            let again = core::mem::take(&mut sent.again);
            self.lost -= 1;
            self.again -= u64::from(again);
            self.waiting.remove(&number);
        }
        self.sacked += 1;
        self.unlist(number);
        Some(before)
    }

    /// Numbers of `start..end` under way that are not known to have arrived, and now are.
    pub(super) fn take_range(&mut self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let (start, end) = (start.max(self.una), end.min(self.next()));
        let mut gaps = Vec::new();
        if start >= end {
            return gaps;
        }
        let (mut from, mut whole) = (start, (start, end));
        if let Some((&first, &behind)) = self.ranges.range(..=start).next_back()
            && behind >= start
        {
            (from, whole) = (behind.min(end), (first, end.max(behind)));
        }
        let joined: Vec<(u64, u64)> =
            self.ranges.range(whole.0..=end).map(|(&first, &behind)| (first, behind)).collect();
        count_looks(joined.len() as u64 + 1);
        for &(first, behind) in &joined {
            if first > from {
                gaps.push((from, first));
            }
            from = from.max(behind);
            whole.1 = whole.1.max(behind);
            self.ranges.remove(&first);
        }
        if from < end {
            gaps.push((from, end));
        }
        self.ranges.insert(whole.0, whole.1);
        gaps
    }

    /// Takes out the first packet: it is acknowledged with all before it.
    pub(super) fn take_first(&mut self) -> Option<Sent> {
        let number = self.una;
        self.unlist(number);
        let sent = self.packets.pop_front()?;
        self.una += 1;
        self.sacked -= u64::from(sent.sacked);
        self.lost -= u64::from(sent.lost);
        self.again -= u64::from(sent.again);
        self.waiting.remove(&number);
        if let Some((first, end)) = self.ranges.pop_first() {
            if first > number {
                self.ranges.insert(first, end);
            } else if end > self.una {
                self.ranges.insert(self.una, end);
            }
        }
        Some(sent)
    }

    /// Nothing is believed lost any more.
    pub(super) fn unmark_lost(&mut self) {
        self.waiting.clear();
        self.lost = 0;
        let una = self.una;
        count_looks(self.packets.len() as u64);
        let numbered = (una..).zip(&mut self.packets);
        let mut order: Vec<(u64, u64)> = numbered
            .filter(|(_, sent)| !sent.sacked)
            .map(|(number, sent)| {
                (sent.lost, sent.listed) = (false, false);
                (sent.at_us, number)
            })
            .collect();
        // RACK looks at all of them again, as at packets sent when they were.
        order.sort_unstable();
        (self.oldest, self.newest, self.passed) = (NOBODY, NOBODY, NOBODY);
        order.iter().for_each(|&(_, number)| self.enlist(number));
    }

    /// Puts a packet at the end of the list.
    fn enlist(&mut self, number: u64) {
        let newest = self.newest;
        if let Some(last) = self.get_mut(newest) {
            last.newer = number;
        } else {
            self.oldest = number;
        }
        if let Some(sent) = self.get_mut(number) {
            (sent.older, sent.newer, sent.listed) = (newest, NOBODY, true);
        }
        self.newest = number;
    }

    /// Takes a packet out of the list: RACK looks at it no more until it is sent again.
    pub(super) fn unlist(&mut self, number: u64) {
        let Some(sent) = self.get_mut(number).filter(|sent| sent.listed) else { return };
        let (older, newer) = (sent.older, sent.newer);
        (sent.older, sent.newer, sent.listed) = (NOBODY, NOBODY, false);
        if self.passed == number {
            self.passed = older;
        }
        match self.get_mut(older) {
            Some(sent) => sent.newer = newer,
            None => self.oldest = newer,
        }
        match self.get_mut(newer) {
            Some(sent) => sent.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How many entries were looked at on this thread.
    pub(super) static LOOKS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_looks(entries: u64) {
    LOOKS.set(LOOKS.get() + entries);
}

#[cfg(not(test))]
fn count_looks(_: u64) {}

/// What a packet remembers of the delivery of others when it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) first_at_us: u64,
    pub(super) delivered_at_us: u64,
    pub(super) delivered: u64,
    pub(super) app_limited: bool,
}
