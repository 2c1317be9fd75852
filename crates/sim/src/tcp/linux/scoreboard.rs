//! The scoreboard: the state of each packet in flight, by number; the list that RACK goes through,
//! in the order of transmission; and the packets that wait to be retransmitted.
//!
//! No acknowledgment walks the whole window: it costs as much as it has news, plus a search among
//! the SACKed ranges. A packet joins the end of the transmission list when it is sent, and leaves
//! it when it arrives or is lost; RACK passes it once in between, so each packet is visited a
//! bounded number of times (`cost.rs` counts). Only a timeout and the undoing of a reduction visit
//! everything in flight, once each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Stands for "no number".
const NOBODY: u64 = u64::MAX;

/// A packet in flight. Times in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When it was sent last.
    pub(super) at_us: u64,
    /// Send time of the packet whose arrival was the latest known when this one was sent.
    pub(super) first_at_us: u64,
    /// When that arrival became known; `None` once this packet has been counted as delivered.
    pub(super) delivered_at_us: Option<u64>,
    /// Packets delivered when this one was sent.
    pub(super) delivered: u64,
    /// Whether the application had nothing more to send.
    pub(super) app_limited: bool,
    /// Whether it has been SACKed.
    pub(super) sacked: bool,
    /// Whether it was marked as lost.
    pub(super) lost: bool,
    /// Whether it was retransmitted and this copy is believed to be in flight.
    pub(super) again: bool,
    /// Whether it was ever retransmitted.
    pub(super) ever_again: bool,
    listed: bool,
    older: u64,
    newer: u64,
}

impl Sent {
    /// Whether it is lost and no copy sent since is believed to be in flight.
    pub(super) fn waits(&self) -> bool {
        self.lost && !self.again
    }
}

/// Result of marking a packet as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    /// It had not been marked as lost.
    First,
    /// Its retransmission is lost too.
    Again,
    /// Nothing changed.
    Already,
}

/// All packets sent and not cumulatively acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    una: u64,
    packets: VecDeque<Sent>,
    /// SACKed ranges beyond `una`: first number, and the number after the last.
    ranges: BTreeMap<u64, u64>,
    /// Packets that are lost and not retransmitted since.
    waiting: BTreeSet<u64>,
    oldest: u64,
    newest: u64,
    /// The last packet of the list known to have been sent before RACK's reference packet.
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

    /// All packets before this number are acknowledged.
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

    /// Packets sent and not cumulatively acknowledged.
    pub(super) fn out(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Of these, packets SACKed.
    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    /// Of these, packets lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Of these, packets whose retransmission is believed to be in flight.
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

    /// Whether anything unacknowledged was retransmitted, judged by the first packet.
    pub(super) fn has_sent_again(&self) -> bool {
        self.again > 0 || self.packets.front().is_some_and(|first| first.ever_again)
    }

    /// The first packet that waits to be retransmitted.
    pub(super) fn first_waiting(&self) -> Option<u64> {
        self.waiting.first().copied()
    }

    /// The oldest transmission in RACK's list.
    pub(super) fn oldest(&self) -> Option<u64> {
        (self.oldest != NOBODY).then_some(self.oldest)
    }

    /// The last packet of RACK's list sent before `limit`, which is a send time and the number
    /// after, and does not move back. Packets that were passed once are not visited again.
    pub(super) fn last_before(&mut self, limit: (u64, u64)) -> Option<u64> {
        loop {
            let next = match self.get(self.passed) {
                Some(passed) => passed.newer,
                None => self.oldest,
            };
            let Some(sent) = self.get(next) else { break };
            if sent.waits() {
                // Put into the list by a tail loss probe.
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

    /// A lost packet is retransmitted.
    pub(super) fn push_again(&mut self, number: u64, at_us: u64, rate: Departure) {
        self.push_copy(number, at_us, rate);
        let Some(sent) = self.get_mut(number).filter(|sent| !sent.again) else { return };
        sent.again = true;
        self.again += 1;
        self.waiting.remove(&number);
    }

    /// A copy of a packet is sent, whether or not it is lost.
    pub(super) fn push_copy(&mut self, number: u64, at_us: u64, rate: Departure) {
        self.unlist(number);
        let Some(sent) = self.get_mut(number) else { return };
        (sent.at_us, sent.ever_again) = (at_us, true);
        (sent.first_at_us, sent.delivered) = (rate.first_at_us, rate.delivered);
        sent.delivered_at_us = Some(rate.delivered_at_us);
        sent.app_limited = rate.app_limited;
        self.enlist(number);
    }

    /// Marks a packet, or its retransmission, as lost: it waits to be retransmitted, and leaves
    /// RACK's list until then.
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

    /// A packet has been SACKed; returns its record from before, if this is news.
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

    /// Marks `start..end` as SACKed; returns the subranges in flight for which this is news.
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

    /// Removes the first packet, which is cumulatively acknowledged.
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

    /// No packet counts as lost any more.
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
        // All of them return to RACK's list, ordered by their send times.
        order.sort_unstable();
        (self.oldest, self.newest, self.passed) = (NOBODY, NOBODY, NOBODY);
        order.iter().for_each(|&(_, number)| self.enlist(number));
    }

    /// Appends a packet to the list.
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

    /// Removes a packet from the list: RACK ignores it until it is sent again.
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
    /// Entries visited on this thread.
    pub(super) static LOOKS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

#[cfg(test)]
fn count_looks(entries: u64) {
    LOOKS.set(LOOKS.get() + entries);
}

#[cfg(not(test))]
fn count_looks(_: u64) {}

/// What a packet records at its departure about the delivery of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) first_at_us: u64,
    pub(super) delivered_at_us: u64,
    pub(super) delivered: u64,
    pub(super) app_limited: bool,
}
