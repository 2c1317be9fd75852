//! Bounds how long UDP datagrams that are delivered in order wait for earlier ones: to their flows,
//! a datagram later than the bound counts as lost anyway.
//!
//! TCP segments behind the same gap wait on, up to the delivery deadline: their compressed headers
//! depend on the segments before them.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;
use corridor_packet::is_datagram;

use crate::flow::symbol;
use crate::stats::Stats;

/// End of the symbols first heard of at each time; both ascending.
pub(super) type Noted = VecDeque<(u64, Time)>;

/// Which datagrams wait, and how long at most.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// `None`: as long as everything else.
    limit: Option<Duration>,
    /// Datagrams that wait.
    waiting: usize,
    /// Datagrams of symbols before this one no longer wait.
    released: u64,
    now: Time,
}

impl Hold {
    pub(super) fn set_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    /// Sets the time of the event that follows.
    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Whether this symbol's datagrams no longer wait for earlier ones.
    pub(super) fn is_released(&self, id: u64) -> bool {
        id < self.released
    }

    /// Records that a symbol has to wait for those before it.
    pub(super) fn note_waits(&mut self, symbol: &[u8]) {
        self.waiting += datagrams(symbol);
    }

    /// Nothing waits: all known symbols were delivered or dropped.
    pub(super) fn note_none_waits(&mut self) {
        self.waiting = 0;
    }

    /// Records that a symbol that waited is delivered in its turn.
    pub(super) fn note_turn(&mut self, id: u64, symbol: &[u8], noted: &Noted, stats: &mut Stats) {
        if self.waiting > 0 && !self.is_released(id) {
            self.note_delivered(id, datagrams(symbol), noted, stats);
        }
    }

    /// Records the delivery of a symbol's datagrams. Their delay counts from when the symbol was
    /// first heard of: since then they have waited for earlier ones, or for their own repair.
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

    /// When datagrams will have waited too long; `next`: the symbol that is waited for.
    pub(super) fn due(&self, next: u64, noted: &Noted) -> Option<Time> {
        let limit = self.limit.filter(|_| self.waiting > 0)?;
        let &(_, since) = noted.get(place(next.max(self.released), noted))?;
        Some(since + limit)
    }

    /// Takes the range of symbols whose datagrams have waited too long.
    pub(super) fn take_due(&mut self, next: u64, noted: &Noted) -> Option<core::ops::Range<u64>> {
        self.due(next, noted).filter(|&due| due <= self.now)?;
        let first = next.max(self.released);
        let &(end, _) = noted.get(place(first, noted))?;
        self.released = end;
        Some(first..end)
    }

    /// Records that a symbol's datagrams are delivered before their turn.
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

/// Where `noted` has the time at which a symbol was first heard of.
fn place(id: u64, noted: &Noted) -> usize {
    noted.partition_point(|&(end, _)| end <= id)
}

/// UDP datagrams in a symbol that are delivered in order.
fn datagrams(symbol: &[u8]) -> usize {
    symbol::packets(symbol).filter(is_ordered_datagram).count()
}

/// Whether a packet is a UDP datagram that is delivered in order.
pub(super) fn is_ordered_datagram(packet: &symbol::Packet<'_>) -> bool {
    packet.in_order && !packet.is_difference && is_datagram(packet.bytes)
}
