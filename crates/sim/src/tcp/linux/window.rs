//! The receiver's window: receive autotuning, as in Linux 6.18.
//!
//! The buffer grows to twice what was delivered in a round trip, and further while that rises, plus
//! what waits beyond a gap. The window is the free part of the buffer, and opens by at most two
//! packets for each that arrives. A window once offered is never taken back.

use super::config::LinuxReceiverConfig;

/// Packets delivered in the first round trip: a sender's initial window.
const FIRST_ROUND: u64 = 10;
/// Packets by which the window opens for each arrival.
const OPENING: u64 = 2;

/// The window, in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Capacity of the buffer, and its limit.
    buffer: u64,
    buffer_max: u64,
    /// Upper limit of the window.
    threshold: u64,
    /// Packets delivered in the best round trip so far.
    best: u64,
    since_us: u64,
    since_next: u64,
    /// The receiver's own estimate of the round-trip time, microseconds.
    rtt_us: u64,
    /// End of the window: the first number that must not be sent.
    end: u64,
}

impl Window {
    pub(super) fn new(config: &LinuxReceiverConfig) -> Self {
        let initial = u64::from(config.window_packets_initial.min(config.window_packets_max));
        let buffer_max = u64::from(config.window_packets_max);
        Window {
            buffer: u64::from(config.buffer_packets_initial).clamp(initial, buffer_max),
            buffer_max,
            threshold: initial,
            best: FIRST_ROUND,
            since_us: 0,
            since_next: 0,
            rtt_us: 0,
            end: initial,
        }
    }

    /// End of the window: the first number that was never offered.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The window while `held` packets wait beyond a gap.
    pub(super) fn packets(&self, held: u64) -> u64 {
        self.threshold.min(self.buffer.saturating_sub(held))
    }

    /// The receiver's own estimate of the round-trip time, microseconds; 0 before the first sample.
    pub(super) fn rtt_us(&self) -> u64 {
        self.rtt_us
    }

    /// A packet was accepted; returns whether the window opens. `held` packets wait beyond a gap,
    /// and reach `span` beyond it; both are 0 without a gap.
    pub(super) fn take(&mut self, held: u64, span: u64) -> bool {
        let room = self.buffer.saturating_sub(held).saturating_sub(self.threshold);
        self.threshold += room.min(OPENING);
        if span > 0 {
            self.grow(2 * self.best + span);
        }
        room > 0
    }

    fn grow(&mut self, wanted: u64) {
        self.buffer = self.buffer.max(wanted.min(self.buffer_max));
    }

    /// Takes an RTT sample: a shorter one counts in full, longer ones by an eighth.
    pub(super) fn measure(&mut self, round_us: u64) {
        self.rtt_us = match self.rtt_us {
            before if before == 0 || round_us < before => round_us,
            before => before - before / 8 + round_us / 8,
        };
    }

    /// Dynamic right-sizing: adapts the buffer once in a round trip to what was delivered in it.
    /// All before `next` has been delivered.
    pub(super) fn adapt(&mut self, now_us: u64, next: u64, span: u64) {
        if self.rtt_us == 0 || now_us - self.since_us < self.rtt_us {
            return;
        }
        let (delivered, before) = (next - self.since_next, self.best);
        if delivered > before {
            self.best = delivered;
            // The measured rate is a round trip old, and the sender may double it meanwhile.
            let twice = 2 * delivered;
            self.grow(twice + 2 * (twice * (delivered - before) / before) + span);
        }
        (self.since_us, self.since_next) = (now_us, next);
    }

    /// Opens the window as far as it may; returns its end.
    pub(super) fn open(&mut self, next: u64, held: u64) -> u64 {
        self.end = self.end.max(next + self.packets(held));
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        let config = LinuxReceiverConfig::new(1_448);
        let buffer_packets_initial = config.window_packets_initial;
        Window::new(&LinuxReceiverConfig { buffer_packets_initial, ..config })
    }

    /// The buffer follows the best round trip; the window follows by two packets for each arrival.
    #[test]
    fn the_window_opens_by_two_for_each_packet_up_to_the_buffer() {
        let mut window = window();
        let initial = window.packets(0);
        window.measure(100_000);
        window.adapt(100_000, 40, 0);
        // Twice 40, plus twice that again times the relative growth, 30 over 10.
        assert_eq!(window.buffer, 2 * 40 + 2 * (2 * 40 * 30 / 10));
        for taken in 1..=10 {
            assert!(window.take(0, 0));
            assert_eq!(window.packets(0), initial + 2 * taken);
        }
        while window.take(0, 0) {}
        assert_eq!(window.packets(0), window.buffer);
        window.adapt(150_000, 400, 0);
        assert_eq!(window.best, 40, "half of a round trip");
    }

    /// What waits beyond a gap takes room, and extends the buffer by as much.
    #[test]
    fn what_is_held_takes_room_and_the_end_stays() {
        let mut window = window();
        let end = window.open(0, 0);
        assert_eq!(end, window.buffer);
        assert_eq!(window.open(0, 30), end);
        for held in 1..end {
            window.take(held, held + 1);
        }
        assert_eq!(window.buffer, 2 * FIRST_ROUND + end);
        assert_eq!(window.packets(end - 1), 2 * FIRST_ROUND + 1);
        assert_eq!(window.open(0, end - 1), end);
    }

    #[test]
    fn a_buffer_begins_with_more_than_the_window() {
        let mut window = Window::new(&LinuxReceiverConfig::new(1_448));
        assert_eq!((window.packets(0), window.buffer, window.buffer_max), (44, 60, 15_420));
        while window.take(0, 0) {}
        assert_eq!(window.packets(0), 60);
    }

    #[test]
    fn it_does_not_grow_beyond_what_is_allowed() {
        let config =
            LinuxReceiverConfig { window_packets_max: 100, ..LinuxReceiverConfig::new(1_448) };
        let mut window = Window::new(&config);
        window.measure(1_000);
        window.adapt(1_000, 90, 0);
        while window.take(0, 0) {}
        assert_eq!(window.open(90, 0), 190);
    }
}
