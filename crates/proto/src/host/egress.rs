//! The way of a packet, step 6: decoded packets, until the driver takes them to the host.
//!
//! Bounded by what one input can release: the decoder's window. The driver drains it after every
//! input.

use std::collections::VecDeque;

use corridor_packet::{PacketBuf, PacketRef};

use crate::bounds::{EGRESS_PLACES_KEPT, EGRESS_SPARE_MAX};

/// Packets for the host, in order.
#[derive(Debug)]
pub(crate) struct EgressQueue {
    packets: VecDeque<PacketBuf>,
    /// The packet handed out last; its buffer is used again.
    current: PacketBuf,
    spare: Spare,
    /// Places for packets that it keeps when it is empty.
    places_kept: usize,
}

/// Buffers that are kept for reuse.
#[derive(Debug)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    /// What they take, and may take.
    bytes: usize,
    bytes_max: usize,
}

impl Spare {
    fn push(&mut self, buffer: Vec<u8>) {
        let bytes = self.bytes + buffer.capacity();
        if self.buffers.len() < EGRESS_SPARE_MAX && bytes <= self.bytes_max {
            self.bytes = bytes;
            self.buffers.push(buffer);
        }
    }

    fn pop(&mut self) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
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
    /// Keeps no more than so many bytes when it is empty.
    pub(crate) fn keeping(bytes: usize) -> Self {
        let places = bytes / 4 / size_of::<PacketBuf>();
        let spare = Spare { buffers: Vec::new(), bytes: 0, bytes_max: bytes / 4 * 3 };
        EgressQueue {
            packets: VecDeque::new(),
            current: PacketBuf::default(),
            spare,
            places_kept: places.min(EGRESS_PLACES_KEPT),
        }
    }

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

    /// Bytes that it keeps when it is empty.
    pub(crate) fn bytes(&self) -> usize {
        self.spare.bytes + self.packets.capacity() * size_of::<PacketBuf>()
    }

    /// Bytes that it keeps when it is empty.
    pub(crate) fn bytes(&self) -> usize {
        self.spare.bytes + self.packets.capacity() * size_of::<PacketBuf>()
    }

    /// A buffer for a packet that is made here.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop()
    }

    /// A buffer that was taken from here was not needed.
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
            // What a window of packets took, when a gap closed, is given back.
            self.packets.shrink_to(self.places_kept);
            return None;
        };
        let gone = core::mem::replace(&mut self.current, next);
        self.spare.push(gone.into_bytes());
        Some(&mut self.current)
    }
}
