//! A token bucket policer in front of a link: drops what exceeds a rate at once, without queueing.

use corridor_base::Time;

use crate::error::PipeError;
use crate::limits::MAX_BURST_BYTES;

const NS_PER_S: u64 = 1_000_000_000;
/// A policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// Rate at which the bucket fills, bit/s, 1 or more.
    pub rate_bps: u64,
    /// Size of the bucket in bytes, 1 to [`MAX_BURST_BYTES`]; it is full at first. Longer packets
    /// never pass.
    pub burst_bytes: u64,
}

impl PolicerConfig {
    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range.
    pub fn check(&self) -> Result<(), PipeError> {
        if self.rate_bps == 0 {
            return Err(PipeError::PolicerRate { given: self.rate_bps });
        }
        if !(1..=MAX_BURST_BYTES).contains(&self.burst_bytes) {
            return Err(PipeError::PolicerBurst { given: self.burst_bytes });
        }
        Ok(())
    }
}

/// The state of a policer.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    config: PolicerConfig,
    /// Tokens in the bucket, in bits times nanoseconds per second.
    level: u128,
    since: Time,
}

impl Policer {
    pub(crate) fn new(config: PolicerConfig) -> Self {
        let level = scaled(config.burst_bytes);
        Policer { config, level, since: Time::ZERO }
    }

    /// Whether a packet passes at `now`.
    pub(crate) fn passes(&mut self, now: Time, len_bytes: u32) -> bool {
        let filled = now.since(self.since).as_nanos() * u128::from(self.config.rate_bps);
        self.level = self.level.saturating_add(filled).min(scaled(self.config.burst_bytes));
        self.since = self.since.max(now);
        let needed = scaled(u64::from(len_bytes));
        let passes = self.level >= needed;
        if passes {
            self.level -= needed;
        }
        passes
    }

    /// When a packet of this length would pass, if none comes before.
    pub(crate) fn passes_at(&self, len_bytes: u32) -> Time {
        let needed = scaled(u64::from(len_bytes)).saturating_sub(self.level);
        let ns = needed.div_ceil(u128::from(self.config.rate_bps));
        Time::from_nanos(
            self.since.as_nanos().saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)),
        )
    }
}

fn scaled(bytes: u64) -> u128 {
    u128::from(bytes) * u128::from(8 * NS_PER_S)
}
