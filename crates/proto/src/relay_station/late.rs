//! Detects frames of neighbours that were delayed in transit, as an attacker can do. A replay
//! window does not know a frame that has never reached its receiver, and such a frame may carry a
//! copy of a packet that is no longer remembered.

use core::time::Duration;

use corridor_base::Time;

use crate::config::StationId;
use crate::link::handshake::Opened;

/// The newest frames of the sessions of all neighbours, of which there are at most as many as can
/// be configured.
#[derive(Default)]
pub(super) struct Heard(Vec<(StationId, Marks)>);

/// The newest frames of one neighbour's session.
#[derive(Clone, Copy)]
struct Marks {
    /// Counter of its newest frame, now and at an earlier time.
    newest: u32,
    marked: u32,
    marked_at: Time,
    /// Frames before this one were overtaken so long ago that they count as delayed.
    overtaken: u32,
}

impl Heard {
    /// Records an opened frame. Returns whether it was delayed: one that its sender sent later came
    /// `after` or longer before it. From three times as long on, this is certain
    /// ([`corridor_relay::RelayConfig::held_up_for`]).
    pub(super) fn note(&mut self, now: Time, opened: Opened, after: Duration) -> bool {
        let from = opened.from;
        let at = self.0.iter().position(|(known, _)| *known == from).unwrap_or_else(|| {
            self.0.push((from, Marks::new(now)));
            self.0.len() - 1
        });
        self.0[at].1.note(now, opened.header.counter, after)
    }

    /// A neighbour has begun another session, whose counters start from 0. Frames of the one before
    /// no longer open.
    pub(super) fn forget(&mut self, neighbour: StationId) {
        self.0.retain(|(known, _)| *known != neighbour);
    }
}

impl Marks {
    fn new(now: Time) -> Self {
        Marks { newest: 0, marked: 0, marked_at: now, overtaken: 0 }
    }

    fn note(&mut self, now: Time, counter: u32, span: Duration) -> bool {
        let passed = now.since(self.marked_at);
        if passed >= span {
            // After a longer pause, the newest frame is as old.
            self.overtaken = if passed < 2 * span { self.marked } else { self.newest };
            (self.marked, self.marked_at) = (self.newest, now);
        }
        self.newest = self.newest.max(counter);
        counter < self.overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_millis(100);

    /// Frames of a session come every 10 ms, and then this one. Whether it counts as delayed.
    fn is_held_up(late_ms: u64) -> bool {
        let mut marks = Marks::new(Time::ZERO);
        for number in 0..200 {
            let now = Time::from_millis(5_000 + 10 * number);
            assert!(!marks.note(now, 100 + number as u32, SPAN));
        }
        let sent = 299 - late_ms as u32 / 10;
        marks.note(Time::from_millis(5_000 + 1_990), sent, SPAN)
    }

    #[test]
    fn what_was_overtaken_long_ago_was_held_up() {
        assert_eq!([10, 50, 90].map(is_held_up), [false; 3]);
        assert_eq!([300, 500, 1_500].map(is_held_up), [true; 3]);
    }

    #[test]
    fn behind_a_pause_what_is_newer_is_taken() {
        let (mut marks, ms) = (Marks::new(Time::ZERO), Time::from_millis);
        assert!(!marks.note(ms(0), 1_000, SPAN));
        assert!(!marks.note(ms(60_000), 1_002, SPAN), "newer");
        assert!(!marks.note(ms(60_050), 1_001, SPAN), "overtaken just now");
        assert!(marks.note(ms(60_050), 999, SPAN), "overtaken a minute ago");
    }
}
