//! Frames of a relay sent in parts, because they were made for a longer limit than the interface's
//! present one.

use super::late::Heard;
use super::{RelayStation, Sender};
use crate::config::StationId;
use crate::station::Rejection;
use crate::station::parts::{Cut, Parts};
use crate::wire::{Chunks, Kind, OVERHEAD_LEN, Part, RELAYED_LEN, Relayed};

/// The length of frames, what is sent and received in parts, and the newest frames received.
pub(super) struct Frames {
    /// Longest frame in bytes.
    pub(super) frame_len: usize,
    /// The chunk sent in parts, and its receiver.
    cut: Cut,
    to: Option<StationId>,
    /// Chunks received in parts.
    parts: Parts,
    /// The newest frames heard from neighbours.
    pub(super) heard: Heard,
}

impl Frames {
    pub(super) fn new(frame_len: usize) -> Self {
        let (cut, parts, heard) = (Cut::default(), Parts::default(), Heard::default());
        Frames { frame_len, cut, to: None, parts, heard }
    }

    /// Whether some of a chunk sent in parts is still to be sent.
    pub(super) fn is_cutting(&self) -> bool {
        self.cut.is_open()
    }

    /// A neighbour has (re)started; its chunks are no longer than `len_max`.
    pub(super) fn expect(&mut self, neighbour: StationId, len_max: usize) {
        self.parts.expect(neighbour, len_max);
    }

    /// Longest body of a frame's only chunk.
    fn body_len_max(&self) -> usize {
        self.frame_len.saturating_sub(OVERHEAD_LEN)
    }
}

impl RelayStation {
    /// Writes a frame of the relay, or its first part if it is too long by now.
    pub(super) fn write_relayed(&mut self, relayed: &Relayed<'_>) {
        if RELAYED_LEN + relayed.frame.len() <= self.frames.body_len_max() {
            Kind::Relayed.begin_last(&mut self.frame);
            relayed.write(&mut self.frame);
            return;
        }
        let mut body = Vec::with_capacity(RELAYED_LEN + relayed.frame.len());
        relayed.write(&mut body);
        self.frames.cut.begin(Kind::Relayed, &body);
        self.frames.to = relayed.to;
        self.stats.symbols_cut += 1;
        self.write_part();
    }

    /// Writes the next part of a chunk; returns its receiver.
    pub(super) fn write_part(&mut self) -> Option<StationId> {
        Kind::Part.begin_last(&mut self.frame);
        let room = self.frames.body_len_max();
        self.frames.cut.write(room, &mut self.frame);
        self.stats.part_frames_sent += 1;
        self.frames.to
    }

    /// Handles a part of a neighbour's frame, and the frame once it is complete.
    pub(super) fn take_part(&mut self, from: Sender, body: &[u8]) -> Result<(), Rejection> {
        let Some(part) = Part::parse(body) else {
            self.drops.malformed += 1;
            return Err(Rejection::NotForUs);
        };
        let Some(whole) = self.frames.parts.take(from.id, &part) else { return Ok(()) };
        self.stats.symbols_joined += 1;
        // Parts are not nested.
        self.take_chunk(from, Chunks::only(&whole).filter(|chunk| chunk.kind == Kind::Relayed))
    }
}
