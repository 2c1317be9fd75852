//! The two clocks of a driver: its own monotonic clock, which all timers use, and the wall clock,
//! by which others distinguish what a station sends from replays of earlier runs.

use corridor_base::Time;

use crate::bounds::CLOCK_STEP;

/// A simultaneous reading of both clocks of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The driver's own clock.
    pub now: Time,
    /// The wall clock, in nanoseconds since 1970. It may be wrong, and may be set while a station
    /// runs.
    pub wall_ns: u64,
}

/// For a driver whose own clock outlives its stations, such as a simulation, and which has no
/// other.
impl From<Time> for Clocks {
    fn from(now: Time) -> Self {
        Clocks { now, wall_ns: now.as_nanos() }
    }
}

/// The wall clock as last read: its value when the driver's own clock was zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WallClock {
    zero_ns: u64,
}

impl WallClock {
    /// Its value at `now`, in nanoseconds since 1970.
    pub(crate) fn at(self, now: Time) -> u64 {
        self.zero_ns.saturating_add(now.as_nanos())
    }

    /// The values of both clocks at `now`.
    pub(crate) fn clocks(self, now: Time) -> Clocks {
        Clocks { now, wall_ns: self.at(now) }
    }

    /// Whether it was set forward since that reading.
    pub(crate) fn is_ahead_of(self, before: WallClock) -> bool {
        self.zero_ns.saturating_sub(before.zero_ns) >= CLOCK_STEP.as_nanos() as u64
    }

    /// Whether it was set, forward or back, since that reading.
    pub(crate) fn was_set_since(self, before: WallClock) -> bool {
        self.is_ahead_of(before) || before.is_ahead_of(self)
    }
}

impl From<Clocks> for WallClock {
    fn from(Clocks { now, wall_ns }: Clocks) -> Self {
        WallClock { zero_ns: wall_ns.saturating_sub(now.as_nanos()) }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn a_clock_that_is_slewed_is_not_one_that_was_set() {
        let now = Time::from_millis(7_000);
        let read = |wall_ns| WallClock::from(Clocks { now, wall_ns });
        let second = CLOCK_STEP.as_nanos() as u64;
        let before = read(100 * second);
        assert_eq!(before.at(now + Duration::from_nanos(3)), 100 * second + 3);
        assert_eq!(before.clocks(now), Clocks { now, wall_ns: 100 * second });
        for (after, ahead, set) in [
            (100 * second, false, false),
            (101 * second - 1, false, false),
            (101 * second, true, true),
            (99 * second + 1, false, false),
            (99 * second, false, true),
            // Not before 1970, though the own clock may have run for longer.
            (0, false, true),
            (u64::MAX, true, true),
        ] {
            let after = read(after);
            assert_eq!((after.is_ahead_of(before), after.was_set_since(before)), (ahead, set));
        }
        assert_eq!(WallClock::from(Clocks::from(now)).at(now), now.as_nanos());
    }
}
