//! What a hub needs from its neighbours' stations to grant credit: what waits in them, how much
//! more may come, and their round-trip times.

use core::time::Duration;

use corridor_base::Time;

use super::Station;
use crate::bounds::{CREDIT_PACKETS_MIN, CREDIT_QUEUE, CREDIT_ROUND_TRIPS, CREDIT_SYMBOL_PACKETS};

impl Station {
    /// Number of full-sized packets to be [kept](Self::take_kept) that there is room for, if their
    /// sender's round-trip time is `round_trip`. `None` in modes without credit, and until the rate
    /// at which packets leave is known.
    pub(crate) fn room(&self, round_trip: Duration) -> Option<usize> {
        let kept = self.shared.ingress.kept()?;
        let span = CREDIT_QUEUE + CREDIT_ROUND_TRIPS * round_trip;
        let most = (kept.packets_per_s? * span.as_secs_f64()).ceil() as usize;
        let full = self.shared.symbol_len_max(self.frame_len()).max(1);
        let room = most.max(CREDIT_PACKETS_MIN).saturating_sub(kept.bytes.div_ceil(full));
        Some(room.min(kept.packets_free / CREDIT_SYMBOL_PACKETS))
    }

    /// Waiting bytes of packets that are [kept](Self::take_kept).
    pub(crate) fn kept_bytes(&self) -> usize {
        self.shared.ingress.kept().map_or(0, |kept| kept.bytes)
    }

    /// Limits how many new symbols the peer may send; `None`: no limit. Returns whether the peer
    /// should hear of it soon.
    pub(crate) fn set_credit(&mut self, now: Time, symbols: Option<u16>) -> bool {
        self.role.set_credit(now, symbols)
    }

    /// Sets whether the channel is shared, as a hub detects from all its neighbours.
    pub(crate) fn set_air_shared(&mut self, is_shared: bool) {
        self.role.set_air_shared(is_shared);
    }

    /// The round-trip time to the peer, if it is known.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.role.round_trip()
    }
}
