//! Loss detection by time: RACK (RFC 8985, Section 6), as in Linux.
//!
//! A packet is lost if one sent later has arrived, and it has itself not arrived within that
//! packet's round-trip time plus a reordering window. RACK goes through the packets in the order in
//! which they were sent, from the oldest to the first that may still arrive; lost packets leave the
//! list. It does not walk the packets that wait out the reordering window, which may be a quarter
//! of all: the list knows the last of them, whose timeout is the longest.

use super::flow::{Flow, Timer};
use super::scoreboard::Sent;
use super::state::CaState;

/// Margin of the timeout for late packets beyond their remaining time (`TCP_TIMEOUT_MIN`).
pub(super) const TIMEOUT_MIN_US: u64 = 2_000;
/// Recoveries without D-SACKs after which the reordering window returns to its smallest size.
const PERSIST: u32 = 16;
const STEPS_MAX: u64 = 255;

/// RACK's state.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Of the packet sent last among those that have arrived: its send time, and the number after
    /// it.
    sent: (u64, u64),
    /// The round-trip time of that packet.
    rtt_us: u64,
    /// Whether this has changed since the last detection.
    pub(super) advanced: bool,
    /// Whether a D-SACK has come since the reordering window last grew.
    pub(super) duplicate: bool,
    /// Length of the reordering window, in quarters of the minimum round-trip time.
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
            // The acknowledgment is for the first copy, not the second.
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = rtt_us;
        self.rack.sent = self.rack.sent.max((sent.at_us, number + 1));
    }

    /// Step 4: the reordering window. It is zero while no reordering has been seen, if three
    /// packets are SACKed or a recovery is going on.
    fn reordering_window_us(&self) -> u64 {
        let is_sure = self.state >= CaState::Recovery || self.board.sacked() >= self.reordering;
        if !self.reordering_seen && is_sure {
            return 0;
        }
        let quarter_us = self.rtt.min_us().unwrap_or(u64::from(u32::MAX)) >> 2;
        (quarter_us * self.rack.steps).min(self.rtt.smoothed_us().unwrap_or(0))
    }

    /// Time until a packet counts as lost unless it arrives, microseconds; not positive if it is
    /// lost now.
    pub(super) fn rack_remaining_us(&self, sent: &Sent, window_us: u64) -> i64 {
        (self.rack.rtt_us + window_us) as i64 - (self.now_us() - sent.at_us) as i64
    }

    /// Step 5: marks late packets as lost; returns how long to wait for those that may still
    /// arrive.
    fn rack_detect(&mut self) -> Option<u64> {
        let window_us = self.reordering_window_us();
        let last = self.board.last_before(self.rack.sent)?;
        while let Some(number) = self.board.oldest() {
            let sent = self.board.get(number)?;
            if self.rack.sent <= (sent.at_us, number + 1) {
                return None;
            }
            if self.rack_remaining_us(sent, window_us) > 0 {
                // Later packets have more time left: the last of them determines when to check
                // again.
                let remaining_us = self.rack_remaining_us(self.board.get(last)?, window_us);
                return u64::try_from(remaining_us).ok().filter(|&remaining_us| remaining_us > 0);
            }
            self.mark_lost(number);
            // This also removes a packet that has arrived and was sent again as a tail loss probe.
            self.board.unlist(number);
        }
        None
    }

    /// Marks late packets as lost, if there is news; returns whether a timer was set for the rest.
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

    /// The timer for late packets has expired; returns whether any was marked as lost.
    pub(super) fn rack_timeout(&mut self) -> bool {
        let before = self.board.in_flight();
        self.rack_detect();
        self.board.in_flight() != before
    }

    /// Lets the reordering window grow with D-SACKs, once a round trip. `prior_delivered` packets
    /// had been delivered when the packet acknowledged now was sent.
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
