//! Packets that have been sent and not yet acknowledged, one record each.

use std::collections::VecDeque;

use corridor_base::Time;

use super::segment::SackRange;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When it was sent last.
    pub(super) at: Time,
    /// How often it was sent.
    pub(super) transmissions: u32,
    /// Whether the receiver has it, according to a selective acknowledgment.
    pub(super) sacked: bool,
}

/// Packets `una` to `high` - 1, of which those before `next` count as sent.
///
/// A timeout moves `next` back to `una`: everything after it is sent again as the window opens.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    una: u64,
    next: u64,
    high: u64,
    sent: VecDeque<Sent>,
}

impl Flight {
    /// Oldest number not acknowledged (SND.UNA).
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    /// Next number to send as the window allows (SND.NXT).
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Number after the highest one ever sent (SND.MAX).
    pub(super) fn high(&self) -> u64 {
        self.high
    }

    /// Packets sent and not acknowledged: FlightSize of RFC 5681.
    pub(super) fn size(&self) -> u64 {
        self.high - self.una
    }

    /// Whether everything sent is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.high == self.una
    }

    /// The record of `sequence`, if it is in flight.
    pub(super) fn packet(&self, sequence: u64) -> Option<&Sent> {
        let index = usize::try_from(sequence.checked_sub(self.una)?).ok()?;
        self.sent.get(index)
    }

    /// Records that `sequence`, at most the highest one plus 1, is being sent; returns whether it
    /// had been sent before.
    pub(super) fn send(&mut self, now: Time, sequence: u64) -> bool {
        debug_assert!((self.una..=self.high).contains(&sequence), "a number never offered");
        let again = sequence < self.high;
        if again {
            let index = (sequence - self.una) as usize;
            let packet = &mut self.sent[index];
            packet.at = now;
            packet.transmissions += 1;
        } else {
            self.high += 1;
            self.sent.push_back(Sent { at: now, transmissions: 1, sacked: false });
        }
        if sequence == self.next {
            self.next += 1;
        }
        again
    }

    /// Drops the packets before `next_expected`; returns how many, and the record of the last of
    /// them. Ignores numbers never sent.
    pub(super) fn acknowledge(&mut self, next_expected: u64) -> Option<(u64, Sent)> {
        if next_expected <= self.una || next_expected > self.high {
            return None;
        }
        let count = next_expected - self.una;
        let last = self.sent.drain(..count as usize).next_back()?;
        self.una = next_expected;
        self.next = self.next.max(self.una);
        Some((count, last))
    }

    /// Marks what the receiver has beyond the gap; returns whether anything was new.
    pub(super) fn mark_sacked(&mut self, ranges: &[SackRange]) -> bool {
        let mut news = false;
        for range in ranges {
            let start = range.start.max(self.una);
            for sequence in start..range.end.min(self.high).max(start) {
                let packet = &mut self.sent[(sequence - self.una) as usize];
                news |= !packet.sacked;
                packet.sacked = true;
            }
        }
        news
    }

    /// Forgets selective acknowledgments: the receiver may have discarded the packets (RFC 2018,
    /// Section 8).
    pub(super) fn forget_sacked(&mut self) {
        self.sent.iter_mut().for_each(|packet| packet.sacked = false);
    }

    /// Makes everything from the oldest packet on be sent again.
    pub(super) fn go_back(&mut self) {
        self.next = self.una;
    }

    /// Continues after the highest packet, so that only those that recovery picks are sent again.
    pub(super) fn go_forth(&mut self) {
        self.next = self.high;
    }

    /// Moves past packets that the receiver has: they need not be sent again.
    pub(super) fn skip_sacked(&mut self) {
        while self.packet(self.next).is_some_and(|packet| packet.sacked) {
            self.next += 1;
        }
    }

    /// Every packet in flight with its number, oldest first.
    pub(super) fn packets(&self) -> impl DoubleEndedIterator<Item = (u64, &Sent)> {
        self.sent.iter().enumerate().map(|(index, sent)| (self.una + index as u64, sent))
    }
}
