//! The lab's only clock: CLOCK_MONOTONIC, the same in all namespaces.

use core::time::Duration;

use corridor_base::Time;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// Now.
pub(crate) fn now() -> Time {
    // The call fails only for clocks that the kernel does not have.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Time::ZERO, |now| {
        Time::from_nanos(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
    })
}

/// Sleeps until `at`, or a signal.
pub(crate) fn sleep_until(at: Time) {
    let at = TimeSpec::from(Duration::from_nanos(at.as_nanos()));
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at);
}
