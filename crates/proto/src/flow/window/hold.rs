//! Datagrams of UDP that go in order wait for those before them no longer than a bound: their flows
//! take what comes later than that for lost, whatever the order.
//!
//! TCP's segments behind the same gap go on waiting, up to the deadline of delivery: what is sent
//! of their headers follows from segments before them.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;
use corridor_packet::is_datagram;

use crate::flow::symbol;
use crate::stats::Stats;

/// Ends of the symbols that were first heard of at each time, both rising.
pub(super) type Noted = VecDeque<(u64, Time)>;

/// Which datagrams wait, and for how long at most.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// `None`: as long as everything else.
    limit: Option<Duration>,
    /// Datagrams that wait.
    waiting: usize,
    /// Those of symbols before this one do not wait any more.
    released: u64,
    now: Time,
}

impl Hold {
    pub(super) fn set_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// What comes next comes at this time.
    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Whether datagrams of this symbol do not wait for those before it.
    pub(super) fn is_released(&self, id: u64) -> bool {
        id < self.released
    }

    /// A symbol has to wait for those before it.
    pub(super) fn note_waits(&mut self, symbol: &[u8]) {
        self.waiting += datagrams(symbol);
    }

    /// All that is known of was delivered, or let go of.
    pub(super) fn note_none_waits(&mut self) {
        self.waiting = 0;
    }

    /// It is the turn of a symbol that waited for it.
    pub(super) fn note_turn(&mut self, id: u64, symbol: &[u8], noted: &Noted, stats: &mut Stats) {
        if self.waiting > 0 && !self.is_released(id) {
            self.note_delivered(id, datagrams(symbol), noted, stats);
        }
    }

    /// Datagrams of a symbol are delivered, and are late by what has passed since it was first
    /// heard of: from then on they wait for those before them, or for their own repair.
    fn note_delivered(&mut self, id: u64, count: usize, noted: &Noted, stats: &mut Stats) {
        let since = noted.get(place(id, noted)).map_or(self.now, |&(_, since)| since);
        let held = self.now - since;
        self.waiting = self.waiting.saturating_sub(count);
        stats.datagrams_held += count as u64;
        stats.datagrams_held_us += count as u64 * held.as_micros() as u64;
        if count > 0 {
            stats.datagram_hold_s_max = stats.datagram_hold_s_max.max(held.as_secs_f64());
        }
    }

    /// When datagrams have waited for too long; `next`: the symbol that is waited for.
    pub(super) fn due(&self, next: u64, noted: &Noted) -> Option<Time> {
        let limit = self.limit.filter(|_| self.waiting > 0)?;
        let &(_, since) = noted.get(place(next.max(self.released), noted))?;
        Some(since + limit)
    }

    /// Takes those symbols whose datagrams have waited for too long: from the first one on, up to
    /// an end.
    pub(super) fn take_due(&mut self, next: u64, noted: &Noted) -> Option<core::ops::Range<u64>> {
        self.due(next, noted).filter(|&due| due <= self.now)?;
        let first = next.max(self.released);
        let &(end, _) = noted.get(place(first, noted))?;
        self.released = end;
        Some(first..end)
    }

    /// Datagrams of a symbol are delivered before their turn.
    pub(super) fn note_overdue(
        &mut self,
        id: u64,
        symbol: &[u8],
        noted: &Noted,
        stats: &mut Stats,
    ) {
        let count = datagrams(symbol);
        self.note_delivered(id, count, noted, stats);
        stats.datagrams_overdue += count as u64;
    }
}

/// Where it is noted when a symbol was first heard of.
fn place(id: u64, noted: &Noted) -> usize {
    noted.partition_point(|&(end, _)| end <= id)
}

/// Datagrams of UDP in a symbol that go in order.
fn datagrams(symbol: &[u8]) -> usize {
    symbol::packets(symbol).filter(is_ordered_datagram).count()
}

/// Whether a packet is a datagram of UDP that goes in order.
pub(super) fn is_ordered_datagram(packet: &symbol::Packet<'_>) -> bool {
    packet.in_order && !packet.is_difference && is_datagram(packet.bytes)
}
