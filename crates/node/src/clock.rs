//! Clocks: monotonic time since the start of the run, wall clock, and processor time.

use std::time::{Duration, SystemTime};

use corridor_base::Time;
use corridor_proto::Clocks;
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use crate::error::NodeError;

/// Time since the start of the run, from a monotonic clock.
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    pub(crate) fn start() -> Result<Self, NodeError> {
        let source = |errno: Errno| NodeError::System {
            action: "read the clock".into(),
            source: errno.into(),
        };
        Ok(Clock { start_ns: monotonic_ns().map_err(source)? })
    }

    pub(crate) fn now(&self) -> Time {
        // It could be read at the start, so it can be read now.
        let now_ns = monotonic_ns().unwrap_or(self.start_ns);
        Time::from_nanos(now_ns.saturating_sub(self.start_ns))
    }

    /// This clock together with the wall clock.
    pub(crate) fn both(&self) -> Clocks {
        Clocks { now: self.now(), wall_ns: wall_clock_ns() }
    }
}

fn monotonic_ns() -> nix::Result<u64> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(u64::try_from(time.num_nanoseconds()).unwrap_or(0))
}

/// Nanoseconds since 1970 by the wall clock; 0 before 1970.
fn wall_clock_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time of this process, in user and kernel mode.
pub(crate) fn processor_time() -> Duration {
    getrusage(UsageWho::RUSAGE_SELF).map_or(Duration::ZERO, |usage| {
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    })
}
