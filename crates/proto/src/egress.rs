//! The way of a packet, step 6: decoded packets, until the driver takes them to the host.
//!
//! Bounded by what one input can release: the decoder's window. The driver drains it after every
//! input.

use std::collections::VecDeque;

/// Packets for the host, in order.
#[derive(Debug, Default)]
pub(crate) struct EgressQueue {
    packets: VecDeque<Vec<u8>>,
    /// The packet handed out last; its buffer is used again.
    current: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

/// Buffers kept for reuse.
const SPARE_MAX: usize = 1_024;

impl EgressQueue {
    pub(crate) fn push(&mut self, packet: &[u8]) {
        let mut buffer = self.buffer();
        buffer.extend_from_slice(packet);
        self.push_buffer(buffer);
    }

    /// The same, of a buffer that was taken from here.
    pub(crate) fn push_buffer(&mut self, buffer: Vec<u8>) {
        self.packets.push_back(buffer);
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// A buffer for a packet that is made here.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// A buffer that was taken from here was not needed.
    pub(crate) fn put_back(&mut self, buffer: Vec<u8>) {
        self.spare.push(buffer);
    }

    /// The next packet, valid until the next call.
    pub(crate) fn pop(&mut self) -> Option<&mut [u8]> {
        let next = self.packets.pop_front()?;
        let gone = core::mem::replace(&mut self.current, next);
        if self.spare.len() < SPARE_MAX {
            self.spare.push(gone);
        }
        Some(&mut self.current)
    }
}
