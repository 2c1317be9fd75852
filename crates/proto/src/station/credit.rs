//! What a hub asks of its neighbours' stations to give credit: what waits in them, how much more
//! may come, and how long their round trips are.

use core::time::Duration;

use corridor_base::Time;

use super::Station;
use crate::bounds::{CREDIT_PACKETS_MIN, CREDIT_QUEUE, CREDIT_ROUND_TRIPS, CREDIT_SYMBOL_PACKETS};

impl Station {
    /// How many packets of full length there is room for, of those that are
    /// [kept](Self::take_kept), if their sender's round trip is so long. `None` in modes without
    /// credit, and as long as it is not known how fast packets leave.
    pub(crate) fn room(&self, round_trip: Duration) -> Option<usize> {
        let kept = self.shared.ingress.kept()?;
        let span = CREDIT_QUEUE + CREDIT_ROUND_TRIPS * round_trip;
        let most = (kept.packets_per_s? * span.as_secs_f64()).ceil() as usize;
        let full = self.shared.symbol_len_max(self.frame_len()).max(1);
        let room = most.max(CREDIT_PACKETS_MIN).saturating_sub(kept.bytes.div_ceil(full));
        Some(room.min(kept.packets_free / CREDIT_SYMBOL_PACKETS))
    }

    /// Bytes that wait of packets that are [kept](Self::take_kept).
    pub(crate) fn kept_bytes(&self) -> usize {
        self.shared.ingress.kept().map_or(0, |kept| kept.bytes)
    }

    /// How many new symbols of the peer's there is room for behind this station; `None`: for all.
    /// Whether the peer should hear of it soon.
    pub(crate) fn set_credit(&mut self, now: Time, symbols: Option<u16>) -> bool {
        self.role.set_credit(now, symbols)
    }

    /// Whether both directions share the channel, as a hub finds out from all its neighbours.
    pub(crate) fn set_air_shared(&mut self, is_shared: bool) {
        self.role.set_air_shared(is_shared);
    }

    /// The round trip to the peer as far as it is known.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.role.round_trip()
    }
}
