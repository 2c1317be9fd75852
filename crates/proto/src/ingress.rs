//! The way of a packet, step 1: the ingress queue, bounded, first in, first out.

use std::collections::VecDeque;

/// Packets from the host that wait to become source symbols.
#[derive(Debug)]
pub(crate) struct IngressQueue {
    packets: VecDeque<Vec<u8>>,
    packets_max: usize,
    /// Buffers of packets that have gone, used again.
    spare: Vec<Vec<u8>>,
}

impl IngressQueue {
    pub(crate) fn new(packets_max: usize) -> Self {
        IngressQueue { packets: VecDeque::new(), packets_max, spare: Vec::new() }
    }

    /// Takes a packet unless the queue is full.
    pub(crate) fn push(&mut self, packet: &[u8]) -> bool {
        if self.packets.len() >= self.packets_max {
            return false;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(packet);
        self.packets.push_back(buffer);
        true
    }

    /// The packet that goes next.
    pub(crate) fn front(&self) -> Option<&[u8]> {
        self.packets.front().map(Vec::as_slice)
    }

    /// Drops the packet that went.
    pub(crate) fn pop(&mut self) {
        if let Some(mut buffer) = self.packets.pop_front() {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_bounded_and_in_order() {
        let mut queue = IngressQueue::new(2);
        assert!(queue.push(b"a") && queue.push(b"b") && !queue.push(b"c"));
        assert_eq!(queue.front(), Some(&b"a"[..]));
        queue.pop();
        assert!(queue.push(b"d"));
        queue.pop();
        assert_eq!(queue.front(), Some(&b"d"[..]));
        queue.pop();
        assert!(queue.is_empty());
    }
}
