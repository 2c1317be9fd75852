//! The paper's unreliable forwarder (Section III): one packet per frame, sealed, and nothing else.

use corridor_base::Time;
use corridor_packet::PacketRef;

use super::role::Role;
use super::{Destination, Shared};
use crate::config::StationId;
use crate::flow::symbol::{self, Packet};
use crate::link::handshake::Opened;
use crate::wire::{Chunk, Kind, OVERHEAD_LEN, PACKET_PREFIX_LEN};

/// A station that forwards packets to its peer as they come.
pub(crate) struct Plain {
    peer: StationId,
}

impl Plain {
    pub(crate) fn new(peer: StationId) -> Self {
        Plain { peer }
    }
}

/// Longest packet that frames of this length carry.
pub(crate) fn packet_len_max(frame_len: usize) -> usize {
    frame_len - OVERHEAD_LEN - PACKET_PREFIX_LEN
}

impl Role for Plain {
    fn packet_len_max(&self, _: &Shared, frame_len: usize) -> usize {
        packet_len_max(frame_len)
    }

    fn handle_chunk(
        &mut self,
        shared: &mut Shared,
        _now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
    ) -> Option<()> {
        if chunk.kind != Kind::Plain || opened.from != self.peer {
            return None;
        }
        for packet in symbol::verbatim_packets(chunk.body) {
            shared.egress.push(PacketRef::read(packet.bytes));
            shared.stats.packets_delivered += 1;
            shared.stats.bytes_delivered += packet.bytes.len() as u64;
        }
        Some(())
    }

    fn poll_transmit(&mut self, shared: &mut Shared, now: Time) -> Option<Destination> {
        if !shared.group.is_up(self.peer) || !shared.pacer.allows(now) {
            return None;
        }
        if shared.cut.is_open() {
            shared.send_part();
            return Some(Destination::Station(self.peer));
        }
        let packet = shared.ingress.front(now, &mut shared.stats)?;
        shared.group.begin(&mut shared.frame);
        Kind::Plain.begin_last(&mut shared.frame);
        let begins_at = shared.frame.len();
        symbol::append_packet(Packet::verbatim(&packet, true), &mut shared.frame);
        shared.ingress.pop();
        shared.cut_frame(Kind::Plain, begins_at);
        shared.stats.source_frames_sent += 1;
        shared.seal();
        Some(Destination::Station(self.peer))
    }
}
