//! Frames of neighbours that were held up on their way, as somebody may do who replays them: no
//! replay window knows one that has not reached its receiver, and what it brings may be a copy that
//! is known no longer.

use core::time::Duration;

use corridor_base::Time;

use crate::config::StationId;
use crate::link::handshake::Opened;

/// What was heard last of the sessions of all neighbours: no more than may be configured.
#[derive(Default)]
pub(super) struct Heard(Vec<(StationId, Marks)>);

/// What was heard last of one neighbour's session.
#[derive(Clone, Copy)]
struct Marks {
    /// Counter of its newest frame, and the same at a time before.
    newest: u32,
    marked: u32,
    marked_at: Time,
    /// All frames before this one were overtaken so long ago that they are held up.
    overtaken: u32,
}

impl Heard {
    /// Notes a frame that opened. Whether it was held up on its way: one that its sender has sent
    /// later came so long before, or earlier. If it was three times as long before, that is said
    /// for certain ([`corridor_relay::RelayConfig::held_up_for`]).
    pub(super) fn note(&mut self, now: Time, opened: Opened, after: Duration) -> bool {
        let from = opened.from;
        let at = self.0.iter().position(|(known, _)| *known == from).unwrap_or_else(|| {
            self.0.push((from, Marks::new(now)));
            self.0.len() - 1
        });
        self.0[at].1.note(now, opened.header.counter, after)
    }

    /// A neighbour has begun another session, whose frames count from 0. None of the one before
    /// opens any more.
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
            // Behind a longer pause the newest frame is as old.
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

    /// Frames of a session come in every 10 ms, and then this one at last. Whether it is held up.
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
