//! The way of a packet, step 6: decoded packets, until the driver takes them to the host.
//!
//! Bounded by what one input can release: the decoder's window. The driver drains it after every
//! input.

use std::collections::VecDeque;

use corridor_packet::{PacketBuf, PacketRef};

/// Packets for the host, in order.
#[derive(Debug, Default)]
pub(crate) struct EgressQueue {
    packets: VecDeque<PacketBuf>,
    /// The packet handed out last; its buffer is used again.
    current: PacketBuf,
    spare: Vec<Vec<u8>>,
}

/// Buffers kept for reuse: more than the packets that a driver's batch of frames releases.
const SPARE_MAX: usize = 256;
/// Places for packets that an empty queue keeps.
const PLACES_KEPT: usize = 1_024;

impl EgressQueue {
    pub(crate) fn push(&mut self, packet: PacketRef<'_>) {
        let buffer = self.buffer();
        self.packets.push_back(PacketBuf::copy(packet, buffer));
    }

    /// The same, of a packet that was made here, in a buffer that was taken from here.
    pub(crate) fn push_made(&mut self, buffer: Vec<u8>) {
        self.packets.push_back(PacketBuf::read(buffer));
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
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buffer);
        }
    }

    /// The packet handed out last.
    pub(crate) fn current(&self) -> PacketRef<'_> {
        self.current.packet()
    }

    /// The next packet, valid until the next call.
    pub(crate) fn pop(&mut self) -> Option<&mut PacketBuf> {
        let Some(next) = self.packets.pop_front() else {
            // What a window of packets took, when a gap closed, is given back.
            self.packets.shrink_to(PLACES_KEPT);
            return None;
        };
        let gone = core::mem::replace(&mut self.current, next);
        if self.spare.len() < SPARE_MAX {
            self.spare.push(gone.into_bytes());
        }
        Some(&mut self.current)
    }
}
