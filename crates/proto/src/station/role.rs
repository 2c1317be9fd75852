//! What the roles of stations differ in: one trait, behind which the station knows none of them.

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::PacketRef;

use super::{Destination, Shared};
use crate::inspect::Inspection;
use crate::link::handshake::{Joined, Opened};
use crate::wire::{Chunk, PACKET_PREFIX_LEN};

/// What a station does with packets and with chunks of frames. Functions with a body say what is
/// done by most, or that there is nothing to be done.
pub(crate) trait Role: Send {
    // ---- packets ------------------------------------------------------------------------------

    /// Whether packets of this station's host are carried at all.
    fn carries_packets(&self) -> bool {
        true
    }

    /// Longest packet that frames of this length carry, bytes: as long as a source symbol, but for
    /// its tag.
    fn packet_len_max(&self, shared: &Shared, frame_len: usize) -> usize {
        shared.symbol_len_max(frame_len).saturating_sub(PACKET_PREFIX_LEN + self.tag_len())
    }

    /// Bytes that a tag from end to end takes of each source symbol.
    fn tag_len(&self) -> usize {
        0
    }

    /// Takes a packet of the host's; `kept`: of another neighbour, who was granted the room for it.
    /// Whether it is taken.
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

    /// Source symbols have room for so many bytes from here on.
    fn limit_symbols(&mut self, _now: Time, _len: usize) {}

    // ---- frames -------------------------------------------------------------------------------

    /// Takes a chunk; nothing, if it is not for this role.
    fn handle_chunk(
        &mut self,
        shared: &mut Shared,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
    ) -> Option<()>;

    /// A frame with a part of a chunk came.
    fn note_part(&mut self, _now: Time, _opened: Opened) {}

    /// Makes the next frame in `shared.frame`, and says whom it is for.
    fn poll_transmit(&mut self, shared: &mut Shared, now: Time) -> Option<Destination>;

    // ---- time and sessions --------------------------------------------------------------------

    /// Fires the timers that are due.
    fn handle_timeout(&mut self, _shared: &mut Shared, _now: Time) {}

    /// When something is due.
    fn poll_timeout(&self, _shared: &Shared) -> Option<Time> {
        None
    }

    /// A peer has shown that it is there, with a session of its own.
    fn take_joined(&mut self, _shared: &mut Shared, _now: Time, _joined: &Joined) {}

    /// Our own frames are counted anew: the last one was the last of its session.
    fn restart_session(&mut self) {}

    /// Oldest block or symbol that is held here, as HELLOs tell it.
    fn base(&self) -> u32 {
        0
    }

    // ---- what others know, and tell -----------------------------------------------------------

    /// Lets the pace follow the rate, unless it was told. Whether it follows.
    fn set_rate(&self, _shared: &mut Shared) -> bool {
        false
    }

    /// How many new symbols of the peer's there is room for behind this station; `None`: for all.
    /// Whether the peer should hear of it soon.
    fn set_credit(&mut self, _now: Time, _symbols: Option<u16>) -> bool {
        false
    }

    /// Whether both directions share the channel, as a hub finds out from all its neighbours.
    fn set_air_shared(&mut self, _is_shared: bool) {}

    /// How long the helper is left out yet, if it is.
    fn left_out(&self, _now: Time) -> Option<Duration> {
        None
    }

    /// The round trip through the tunnel, once measured.
    fn round_trip(&self) -> Option<Duration> {
        None
    }

    /// What is inside, to be watched.
    fn inspect(&self, _shared: &Shared, _view: &mut Inspection) {}
}
