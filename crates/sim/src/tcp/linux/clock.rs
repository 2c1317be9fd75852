//! The kernel's clocks: it measures in microseconds, and its timers expire in ticks.

use corridor_base::Time;

/// Ticks per second: the setting of most distributions, and of the recorded kernel.
pub(super) const HZ: u64 = 250;
/// Length of a tick.
pub(super) const TICK_US: u64 = 1_000_000 / HZ;

/// Up to this many ticks ahead, the timer wheel is exact to one tick.
const LEVEL_TICKS: u64 = 63;
/// Each further level of the wheel is coarser, and reaches further, by this power of two.
const LEVEL_SHIFT: u32 = 3;

/// Whole microseconds.
pub(super) fn micros(now: Time) -> u64 {
    now.as_nanos() / 1_000
}

/// Ticks since the beginning.
pub(super) fn ticks(now: Time) -> u64 {
    micros(now) / TICK_US
}

/// When a timer expires that is set at `now` for `delay_us`: at a tick, never early, and late by up
/// to an eighth of the delay if that is long.
pub(super) fn expiry(now: Time, delay_us: u64) -> Time {
    let delay = delay_us.div_ceil(TICK_US).max(1);
    let mut shift = 0;
    while delay >= LEVEL_TICKS << shift {
        shift += LEVEL_SHIFT;
    }
    let at = (((ticks(now) + delay) >> shift) + 1) << shift;
    Time::from_nanos(at * TICK_US * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_late_and_never_early() {
        let now = Time::from_nanos(10_001_000);
        // Two whole ticks have passed; the third ends at 12 ms.
        assert_eq!(expiry(now, 1), Time::from_millis(16));
        assert_eq!(expiry(now, 200_000), Time::from_millis(4 * (2 + 50 + 1)));
        // From 63 ticks on, the wheel only has slots for every eighth tick.
        assert_eq!(expiry(now, 1_000_000), Time::from_millis(4 * 256));
        for delay_us in [1, 3_999, 4_000, 4_001, 251_999, 252_000, 2_000_000, 120_000_000] {
            let late_us = micros(expiry(now, delay_us)) - micros(now);
            assert!(late_us >= delay_us && late_us <= delay_us + delay_us / 7 + 2 * TICK_US);
        }
    }
}
