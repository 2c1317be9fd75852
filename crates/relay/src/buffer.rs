//! Packets kept for decoding coded frames: those this node has sent, overheard, or combined; and
//! the packets already received.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use corridor_base::Time;

use crate::wire::PacketId;

/// Maximum number of packets kept.
pub const KEPT_PACKETS_MAX: usize = 4096;
/// Maximum total size of these, bytes.
pub const KEPT_BYTES_MAX: usize = 8 << 20;

/// Packets, or only their ids, kept for a time. The oldest are dropped first.
#[derive(Debug)]
pub struct Kept<T> {
    lasts: Duration,
    /// Time that does not count, since the node was asleep.
    asleep: Duration,
    packets: BTreeMap<PacketId, (Time, T)>,
    /// In order of time; a renewed packet is listed twice.
    order: VecDeque<(Time, PacketId)>,
    bytes: usize,
}

/// What is kept of a packet.
pub trait Weighed {
    /// Its size, bytes.
    fn len_bytes(&self) -> usize;
}

impl Weighed for Arc<[u8]> {
    fn len_bytes(&self) -> usize {
        self.len()
    }
}

impl Weighed for bool {
    fn len_bytes(&self) -> usize {
        0
    }
}

impl<T: Weighed> Kept<T> {
    pub fn new(lasts: Duration) -> Self {
        let asleep = Duration::ZERO;
        Kept { lasts, asleep, packets: BTreeMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    /// Excludes a span of past time from the count.
    pub fn sleep(&mut self, span: Duration) {
        self.asleep += span;
    }

    fn awake(&self, now: Time) -> Time {
        Time::ZERO + now.since(Time::ZERO).saturating_sub(self.asleep)
    }

    /// Keeps a packet; restarts its time if it is already kept.
    pub fn keep(&mut self, now: Time, id: PacketId, packet: T) {
        let now = self.awake(now);
        self.forget(now);
        self.bytes += packet.len_bytes();
        if let Some((_, before)) = self.packets.insert(id, (now, packet)) {
            self.bytes -= before.len_bytes();
        }
        self.order.push_back((now, id));
        while self.order.len() > KEPT_PACKETS_MAX || self.bytes > KEPT_BYTES_MAX {
            self.forget_oldest();
        }
    }

    /// The packet with this id, if it is still kept.
    pub fn find(&mut self, now: Time, id: PacketId) -> Option<&T> {
        self.forget(self.awake(now));
        self.packets.get(&id).map(|(_, packet)| packet)
    }

    fn forget(&mut self, now: Time) {
        while self.order.front().is_some_and(|&(at, _)| at + self.lasts < now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((at, id)) = self.order.pop_front() else { return };
        // Renewed since: it is listed again further back.
        if self.packets.get(&id).is_some_and(|&(kept, _)| kept == at)
            && !self.order.iter().take_while(|&&(later, _)| later == at).any(|&(_, i)| i == id)
            && let Some((_, packet)) = self.packets.remove(&id)
        {
            self.bytes -= packet.len_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(len: usize) -> Arc<[u8]> {
        vec![0; len].into()
    }

    #[test]
    fn packets_last_as_long_as_was_said_since_they_were_kept_last() {
        let mut kept = Kept::new(Duration::from_millis(10));
        let ms = Time::from_millis;
        kept.keep(ms(0), PacketId(1), packet(3));
        kept.keep(ms(0), PacketId(1), packet(3));
        kept.keep(ms(5), PacketId(2), packet(3));
        kept.keep(ms(8), PacketId(1), packet(4));
        assert!(kept.find(ms(15), PacketId(2)).is_some());
        assert!(kept.find(ms(16), PacketId(2)).is_none());
        assert!(kept.find(ms(18), PacketId(1)).is_some());
        assert!(kept.find(ms(19), PacketId(1)).is_none());
        assert_eq!((kept.bytes, kept.order.len(), kept.packets.len()), (0, 0, 0));
    }

    #[test]
    fn no_more_is_kept_than_the_bounds() {
        let mut kept = Kept::new(Duration::from_secs(60));
        for number in 0..2 * KEPT_PACKETS_MAX as u64 {
            kept.keep(Time::ZERO, PacketId(number), packet(1));
        }
        assert_eq!(kept.packets.len(), KEPT_PACKETS_MAX);
        for number in 0..300 {
            kept.keep(Time::ZERO, PacketId(number), packet(u16::MAX.into()));
        }
        assert!(kept.bytes <= KEPT_BYTES_MAX && kept.packets.len() > 100);
        let counted: usize = kept.packets.values().map(|(_, packet)| packet.len()).sum();
        assert_eq!(counted, kept.bytes);
    }
}
