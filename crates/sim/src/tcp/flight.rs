//! What has been sent and not yet been acknowledged, packet by packet.

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
    /// The receiver has it, and said so.
    pub(super) sacked: bool,
}

/// Packets `una` to `high` - 1, of which those before `next` count as sent.
///
/// After a timeout `next` goes back to `una`: all beyond is sent again as the window opens.
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

    /// Number to be sent next as the window allows (SND.NXT).
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Number after the highest one ever sent (SND.MAX).
    pub(super) fn high(&self) -> u64 {
        self.high
    }

    /// Packets sent and not acknowledged, FlightSize of RFC 5681.
    pub(super) fn size(&self) -> u64 {
        self.high - self.una
    }

    /// Whether all that was sent is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.high == self.una
    }

    /// The record of `sequence`, if it is in flight.
    pub(super) fn packet(&self, sequence: u64) -> Option<&Sent> {
        let index = usize::try_from(sequence.checked_sub(self.una)?).ok()?;
        self.sent.get(index)
    }

    /// Notes that `sequence`, at most the highest one plus 1, is being sent; whether it had been
    /// sent before.
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

    /// Drops what is before `next_expected`; how many packets that was, and the record of the
    /// last of them. Numbers never sent are not believed.
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

    /// Marks what the receiver has beyond the gap; whether anything was news.
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

    /// Forgets selective acknowledgements: the receiver may have thrown the packets away
    /// (RFC 2018, Section 8).
    pub(super) fn forget_sacked(&mut self) {
        self.sent.iter_mut().for_each(|packet| packet.sacked = false);
    }

    /// Sends everything again from the oldest packet on.
    pub(super) fn go_back(&mut self) {
        self.next = self.una;
    }

    /// Sends nothing again but what a recovery picks: the window goes on beyond the highest.
    pub(super) fn go_forth(&mut self) {
        self.next = self.high;
    }

    /// What the receiver has need not be sent again.
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
