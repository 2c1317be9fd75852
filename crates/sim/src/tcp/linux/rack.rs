//! Which packets are lost, by time: RACK (RFC 8985, Section 6), as Linux has it.
//!
//! A packet is lost that was sent before one that has arrived, and has not arrived for as long as
//! that took and a reordering window more. The packets are looked at in the order in which they
//! were sent, from the oldest to the first that may still be on its way; those given up leave the
//! list. All that wait out the reordering window are not, which may be a quarter of the window: the
//! last of them is known, and the longest timeout is its own.

use super::flow::{Flow, Timer};
use super::scoreboard::Sent;
use super::state::CaState;

/// What a timeout for late packets is longer than they are late (`TCP_TIMEOUT_MIN`).
pub(super) const TIMEOUT_MIN_US: u64 = 2_000;
/// Recoveries without duplicates after which the reordering window is small again.
const PERSIST: u32 = 16;
const STEPS_MAX: u64 = 255;

/// What RACK remembers.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// When the packet was sent that was sent last of those that have arrived, and the number after
    /// it.
    sent: (u64, u64),
    /// How long that took.
    rtt_us: u64,
    /// There is news.
    pub(super) advanced: bool,
    /// A duplicate was told since the reordering window last grew.
    pub(super) duplicate: bool,
    /// Quarters of the least round trip that the window is long.
    steps: u64,
    pub(super) persist: u32,
    last_delivered: u64,
}

impl Rack {
    pub(super) fn new() -> Self {
        Rack {
            sent: (0, 0),
            rtt_us: 0,
            advanced: false,
            duplicate: false,
            steps: 1,
            persist: 0,
            last_delivered: 0,
        }
    }
}

impl Flow {
    /// A packet has arrived (Section 6.2, steps 1 and 2).
    pub(super) fn rack_advance(&mut self, number: u64, sent: &Sent) {
        let rtt_us = self.now_us() - sent.at_us;
        if sent.ever_again && self.rtt.min_us().is_some_and(|min_us| rtt_us < min_us) {
            // The first copy has arrived, not the second.
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = rtt_us;
        self.rack.sent = self.rack.sent.max((sent.at_us, number + 1));
    }

    /// Step 4: the reordering window. None where three packets beyond a gap, or a recovery, leave
    /// no doubt, and reordering was never seen.
    fn reordering_window_us(&self) -> u64 {
        let is_sure = self.state >= CaState::Recovery || self.board.sacked() >= self.reordering;
        if !self.reordering_seen && is_sure {
            return 0;
        }
        let quarter_us = self.rtt.min_us().unwrap_or(u64::from(u32::MAX)) >> 2;
        (quarter_us * self.rack.steps).min(self.rtt.smoothed_us().unwrap_or(0))
    }

    /// How long until a packet counts as lost that has not arrived by then, microseconds; not
    /// positive for one that does.
    pub(super) fn rack_remaining_us(&self, sent: &Sent, window_us: u64) -> i64 {
        (self.rack.rtt_us + window_us) as i64 - (self.now_us() - sent.at_us) as i64
    }

    /// Step 5: gives up what is late; how long until the next look at what may be.
    fn rack_detect(&mut self) -> Option<u64> {
        let window_us = self.reordering_window_us();
        let last = self.board.last_before(self.rack.sent)?;
        while let Some(number) = self.board.oldest() {
            let sent = self.board.get(number)?;
            if self.rack.sent <= (sent.at_us, number + 1) {
                return None;
            }
            if self.rack_remaining_us(sent, window_us) > 0 {
                // Later ones have longer: the last of them says when to look again.
                let remaining_us = self.rack_remaining_us(self.board.get(last)?, window_us);
                return u64::try_from(remaining_us).ok().filter(|&remaining_us| remaining_us > 0);
            }
            self.mark_lost(number);
            // Also one that has arrived, and was sent again to probe the tail.
            self.board.unlist(number);
        }
        None
    }

    /// Gives up what is late, if there is news; whether a timer was set for what may be.
    pub(super) fn rack_mark_lost(&mut self) -> bool {
        if !core::mem::take(&mut self.rack.advanced) {
            return false;
        }
        match self.rack_detect() {
            Some(timeout_us) => {
                self.set_timer(Timer::Reordering, timeout_us + TIMEOUT_MIN_US);
                true
            }
            None => false,
        }
    }

    /// The timer for late packets has expired; whether any was given up.
    pub(super) fn rack_timeout(&mut self) -> bool {
        let before = self.board.in_flight();
        self.rack_detect();
        self.board.in_flight() != before
    }

    /// The reordering window grows with duplicates, once a round trip. `prior_delivered` had
    /// arrived when the packet was sent that was acknowledged.
    pub(super) fn rack_update_window(&mut self, prior_delivered: Option<u64>) {
        let Some(prior) = prior_delivered else { return };
        if prior < self.rack.last_delivered {
            self.rack.duplicate = false;
        }
        if self.rack.duplicate {
            self.rack.steps = (self.rack.steps + 1).min(STEPS_MAX);
            self.rack.duplicate = false;
            self.rack.last_delivered = self.delivered;
            self.rack.persist = PERSIST;
        } else if self.rack.persist == 0 {
            self.rack.steps = 1;
        }
    }
}
