//! Repair ahead of need: short symbols of real-time and sparse flows are sent twice, within a
//! budget.
//!
//! A loss is known after a round trip, which is too late for such a flow; and coded symbols sent
//! ahead of need repair what has waited longest, which next to a bulk transfer is bulk data. A
//! second copy costs little where symbols are short and rare. It follows a little later, so that a
//! short burst of losses does not take both.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use crate::bounds::{AHEAD_BURST, AHEAD_RATE_SHARE, AHEAD_SYMBOLS_MAX};

/// How long after the first the second copy is sent.
const AFTER: Duration = Duration::from_millis(3);
/// How much later than that it becomes worthless.
const STALE: Duration = Duration::from_millis(10);
/// Loss ratio from which copies are sent.
const LOSSY: f64 = 0.01;

/// Which symbols get a second copy, and the budget left for that.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Budget in bytes, as of `at`.
    budget: f64,
    at: Time,
    /// Symbols to be copied, and when.
    due: VecDeque<(u64, Time)>,
    /// When to ask the sender for a copy; `None`: it will be asked anyway, or none is due.
    wake: Option<Time>,
    /// Copies since the last `take_sent`.
    sent: u32,
}

impl Ahead {
    pub(super) fn new(now: Time) -> Self {
        Ahead { budget: 0.0, at: now, due: VecDeque::new(), wake: None, sent: 0 }
    }

    /// A symbol of such a flow is sent, in a frame of `len` bytes, over a path of `bytes_per_s`:
    /// plans its copy.
    pub(super) fn plan(
        &mut self,
        now: Time,
        (id, len): (u64, f64),
        bytes_per_s: f64,
        loss_ratio: f64,
    ) {
        let allowed = AHEAD_RATE_SHARE * bytes_per_s;
        let gained = allowed * (now - self.at).as_secs_f64();
        self.budget = (self.budget + gained).min(allowed * AHEAD_BURST.as_secs_f64());
        self.at = now;
        if loss_ratio >= LOSSY && self.budget >= len && self.due.len() < AHEAD_SYMBOLS_MAX {
            self.budget -= len;
            self.due.push_back((id, now + AFTER));
            self.wake.get_or_insert(now + AFTER);
        }
    }

    /// The symbol to copy now.
    pub(super) fn take(&mut self, now: Time) -> Option<u64> {
        let taken = self.take_due(now);
        self.wake = self.due.front().map(|&(_, due)| due).filter(|&due| due > now);
        taken
    }

    /// When the first copy is due for which the sender was not woken.
    pub(super) fn wake(&self) -> Option<Time> {
        self.wake
    }

    /// The sender was woken. A copy that cannot be sent now, because the path is full, goes with
    /// the next frame, or not at all.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.wake = self.wake.filter(|&wake| wake > now);
    }

    fn take_due(&mut self, now: Time) -> Option<u64> {
        while let Some(&(id, due)) = self.due.front().filter(|(_, due)| *due <= now) {
            self.due.pop_front();
            if now - due <= STALE {
                return Some(id);
            }
        }
        None
    }

    /// Records a copy sent.
    pub(super) fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// Copies sent since the last call.
    pub(super) fn take_sent(&mut self) -> u32 {
        core::mem::take(&mut self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_later_and_from_their_share_of_the_rate() {
        let mut ahead = Ahead::new(Time::ZERO);
        // The path carries a million bytes/s; 250 bytes every 20 ms use 12,500 of the 20,000
        // bytes/s allowed.
        for (gap_ms, most, least) in [(20, 50, 48), (5, 101, 70), (1, 101, 70)] {
            let mut sent = 0;
            let from = ahead.at.as_nanos() / 1_000_000;
            for ms in from..from + 1_000 {
                let now = Time::from_millis(ms);
                if ms % gap_ms == 0 {
                    ahead.plan(now, (ms, 250.0), 1e6, 0.1);
                }
                while let Some(id) = ahead.take(now) {
                    assert_eq!(Time::from_millis(id) + AFTER, now);
                    sent += 1;
                }
            }
            assert!((least..=most).contains(&sent), "{sent} copies, one each {gap_ms} ms");
        }
    }

    #[test]
    fn nothing_goes_twice_where_nothing_is_lost_or_it_would_come_too_late() {
        let mut ahead = Ahead::new(Time::ZERO);
        ahead.plan(Time::from_millis(100), (1, 250.0), 1e6, 0.0);
        assert_eq!(ahead.take(Time::from_millis(110)), None);
        ahead.plan(Time::from_millis(200), (2, 250.0), 1e6, 0.1);
        assert_eq!(ahead.take(Time::from_millis(214)), None);
        assert_eq!(ahead.due.len(), 0);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut ahead = Ahead::new(Time::ZERO);
        for id in 0..10_000 {
            ahead.plan(Time::from_millis(1_000), (id, 1.0), 1e9, 0.5);
        }
        assert_eq!(ahead.due.len(), AHEAD_SYMBOLS_MAX);
    }
}
