//! The differences between roles: one trait, through which the station uses them all.

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::PacketRef;

use super::{Destination, Shared};
use crate::inspect::Inspection;
use crate::link::handshake::{Joined, Opened};
use crate::wire::{Chunk, PACKET_PREFIX_LEN};

/// What a station does with packets and with the chunks of frames. Default implementations do what
/// most roles do, or nothing.
pub(crate) trait Role: Send {
    // ---- packets ------------------------------------------------------------------------------

    /// Whether packets of this station's host are carried.
    fn carries_packets(&self) -> bool {
        true
    }

    /// Longest packet in bytes that frames of this length carry: as long as a source symbol without
    /// its tag.
    fn packet_len_max(&self, shared: &Shared, frame_len: usize) -> usize {
        shared.symbol_len_max(frame_len).saturating_sub(PACKET_PREFIX_LEN + self.tag_len())
    }

    /// Bytes that an end's tag takes in each source symbol.
    fn tag_len(&self) -> usize {
        0
    }

    /// Takes a packet; `kept`: it is from another neighbour, which was granted credit for it.
    /// Returns whether it was accepted.
    fn handle_packet(
        &mut self,
        shared: &mut Shared,
        now: Time,
        packet: PacketRef<'_>,
        kept: bool,
    ) -> bool {
        let Shared { ingress, stats, .. } = shared;
        let is_taken = match kept {
            true => ingress.push_kept(now, packet, stats),
            false => ingress.push(now, packet, stats),
        };
        stats.packets_dropped_ingress += u64::from(!is_taken);
        is_taken
    }

    /// Limits the length of source symbols from now on, in bytes.
    fn limit_symbols(&mut self, _now: Time, _len: usize) {}

    // ---- frames -------------------------------------------------------------------------------

    /// Handles a chunk; `None` if it is not for this role.
    fn handle_chunk(
        &mut self,
        shared: &mut Shared,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
    ) -> Option<()>;

    /// A frame with a part of a chunk was received.
    fn note_part(&mut self, _now: Time, _opened: Opened) {}

    /// Makes the next frame in `shared.frame`, and returns its receiver.
    fn poll_transmit(&mut self, shared: &mut Shared, now: Time) -> Option<Destination>;

    // ---- time and sessions --------------------------------------------------------------------

    /// Fires the timers that are due.
    fn handle_timeout(&mut self, _shared: &mut Shared, _now: Time) {}

    /// When a timer is due.
    fn poll_timeout(&self, _shared: &Shared) -> Option<Time> {
        None
    }

    /// A peer has shown that it is alive, with a session of its own.
    fn take_joined(&mut self, _shared: &mut Shared, _now: Time, _joined: &Joined) {}

    /// Our frame counters restart: the last frame was the last of its session.
    fn restart_session(&mut self) {}

    /// Oldest block or symbol held, as announced in HELLOs.
    fn base(&self) -> u32 {
        0
    }

    // ---- what other parts set and read --------------------------------------------------------

    /// Sets the pacer to the measured rate, unless one is configured; returns whether it did.
    fn set_rate(&self, _shared: &mut Shared) -> bool {
        false
    }

    /// Limits how many new symbols the peer may send; `None`: no limit. Returns whether the peer
    /// should hear of it soon.
    fn set_credit(&mut self, _now: Time, _symbols: Option<u16>) -> bool {
        false
    }

    /// Sets whether the channel is shared, as a hub detects from all its neighbours.
    fn set_air_shared(&mut self, _is_shared: bool) {}

    /// Another station's frame has left since this one's last.
    fn note_other_left(&mut self) {}

    /// For how long the helper will still be ignored, if it is.
    fn left_out(&self, _now: Time) -> Option<Duration> {
        None
    }

    /// The round-trip time through the tunnel, once measured.
    fn round_trip(&self) -> Option<Duration> {
        None
    }

    /// Adds the internal state, for observation.
    fn inspect(&self, _shared: &Shared, _view: &mut Inspection) {}
}
