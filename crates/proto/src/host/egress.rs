//! The way of a packet, step 6: decoded packets wait here until the driver hands them to the host.
//!
//! Its bound is what one input can release, the decoder's window: the driver drains it after every
//! input.

use std::collections::VecDeque;

use corridor_packet::{PacketBuf, PacketRef};

use crate::bounds::{EGRESS_PLACES_KEPT, EGRESS_SPARE_MAX};

/// Packets for the host, in order.
#[derive(Debug)]
pub(crate) struct EgressQueue {
    packets: VecDeque<PacketBuf>,
    /// The packet handed out last; its buffer is reused.
    current: PacketBuf,
    spare: Spare,
}

/// Buffers kept for reuse.
#[derive(Debug)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    /// Bytes that the buffers and their places in the queue take, and their limit.
    bytes: usize,
    bytes_max: usize,
}

/// Bytes of one place in the queue.
const PLACE_BYTES: usize = size_of::<PacketBuf>();
/// Bytes of a buffer's entry in the list of buffers, whose capacity may be twice its length, and
/// has a minimum.
const LISTED_BYTES: usize = 2 * size_of::<Vec<u8>>();
/// See [`LISTED_BYTES`].
const LIST_BYTES_MIN: usize = 4 * size_of::<Vec<u8>>();

impl Spare {
    /// Bytes of a buffer together with a place in the queue. A buffer without a place is of no use,
    /// and a place without a buffer only saves a share of the next time that the queue grows.
    fn bytes_of(buffer: &Vec<u8>) -> usize {
        buffer.capacity() + PLACE_BYTES + LISTED_BYTES
    }

    /// Places to keep: one per buffer, and as many more as the limit leaves room for.
    fn places(&self) -> usize {
        let more = (self.bytes_max - self.bytes) / PLACE_BYTES;
        self.buffers.len().saturating_add(more).min(EGRESS_PLACES_KEPT)
    }

    /// Shrinks the list's capacity to at most twice its length.
    fn shorten(&mut self) {
        if self.buffers.capacity() > 2 * self.buffers.len() {
            self.buffers.shrink_to_fit();
        }
    }

    fn push(&mut self, buffer: Vec<u8>) {
        let bytes = self.bytes + Self::bytes_of(&buffer);
        if self.buffers.len() < EGRESS_SPARE_MAX && bytes <= self.bytes_max {
            self.bytes = bytes;
            self.buffers.push(buffer);
        }
    }

    fn pop(&mut self) -> Vec<u8> {
        let Some(mut buffer) = self.buffers.pop() else { return Vec::new() };
        self.bytes -= Self::bytes_of(&buffer);
        buffer.clear();
        buffer
    }
}

impl Default for EgressQueue {
    fn default() -> Self {
        EgressQueue::keeping(usize::MAX)
    }
}

impl EgressQueue {
    /// A queue that keeps at most `bytes` bytes while it is empty.
    pub(crate) fn keeping(bytes: usize) -> Self {
        let bytes_max = bytes.saturating_sub(LIST_BYTES_MIN);
        let spare = Spare { buffers: Vec::new(), bytes: 0, bytes_max };
        EgressQueue { packets: VecDeque::new(), current: PacketBuf::default(), spare }
    }

    pub(crate) fn push(&mut self, packet: PacketRef<'_>) {
        let buffer = self.buffer();
        self.packets.push_back(PacketBuf::copy(packet, buffer));
    }

    /// Appends a packet made in a buffer from [`buffer`](Self::buffer).
    pub(crate) fn push_made(&mut self, buffer: Vec<u8>) {
        self.packets.push_back(PacketBuf::read(buffer));
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Bytes kept while the queue is empty.
    pub(crate) fn bytes(&self) -> usize {
        let buffers: usize = self.spare.buffers.iter().map(Vec::capacity).sum();
        let list = self.spare.buffers.capacity() * size_of::<Vec<u8>>();
        buffers + list + self.packets.capacity() * PLACE_BYTES
    }

    /// A buffer in which the caller makes a packet.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop()
    }

    /// Takes back a buffer that turned out not to be needed.
    pub(crate) fn put_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// The packet handed out last.
    pub(crate) fn current(&self) -> PacketRef<'_> {
        self.current.packet()
    }

    /// The next packet, valid until the next call.
    pub(crate) fn pop(&mut self) -> Option<&mut PacketBuf> {
        let Some(next) = self.packets.pop_front() else {
            // After a gap closed, release the memory that a whole window of packets took.
            self.packets.shrink_to(self.spare.places());
            self.spare.shorten();
            return None;
        };
        let gone = core::mem::replace(&mut self.current, next);
        self.spare.push(gone.into_bytes());
        Some(&mut self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many buffers are kept after `count` packets of these lengths have waited at once, and
    /// the most bytes held while nothing waited.
    fn kept(bytes: usize, lens: &[usize], count: usize) -> (usize, usize) {
        let mut queue = EgressQueue::keeping(bytes);
        let mut most = 0;
        for round in 0..4 {
            for at in 0..count {
                let packet = vec![0x45; lens[(at + round) % lens.len()]];
                queue.push(PacketRef::read(&packet));
            }
            while queue.pop().is_some() {}
            most = most.max(queue.bytes());
        }
        (queue.spare.buffers.len(), most)
    }

    #[test]
    fn what_is_kept_follows_what_waits_and_never_takes_more_than_its_room() {
        const ROOM: usize = 14_000;
        for (lens, buffers) in [(&[1_450][..], 8), (&[100], 70), (&[40], 102)] {
            let (kept, most) = kept(ROOM, lens, 200);
            assert!(most <= ROOM, "{most} bytes of {lens:?}");
            assert_eq!(kept, buffers, "{lens:?}");
        }
        for lens in [&[40, 1_450][..], &[40, 40, 40, 9_000], &[1, 13_000]] {
            let (_, most) = kept(ROOM, lens, 200);
            assert!(most <= ROOM, "{most} bytes of {lens:?}");
        }
        // As many as waited at once, but no more than can be of use.
        assert_eq!(kept(usize::MAX, &[1_450], 200).0, 200);
        assert_eq!(kept(usize::MAX, &[1_450], 2_000).0, EGRESS_SPARE_MAX);
        assert_eq!(kept(0, &[1_450], 200), (0, 0));
    }
}
