//! How much queue CoDel bears: as little as the air can do with.
//!
//! What waits for repair comes out together, and so do TCP's acknowledgements and what they let go:
//! the queue in front has to outlast the gaps between. How long they are depends on losses, their
//! bursts, the round trip, and how the flows react; none of that need be known. Air that stays
//! empty in the midst of a bulk transfer says that the queue was too short; where that never
//! happens, it is too long.

use core::time::Duration;

use corridor_base::codel::CodelParams;

use crate::config::Goal;

/// Share of the air that may stay empty in a bulk transfer, or go to repair since nothing else was
/// there to be sent. Each per cent is worth about a millisecond at a round trip of 4 ms.
const STARVED_RATIO_THROUGHPUT: f64 = 0.02;
/// The same where delay matters more.
const STARVED_RATIO_LOW_DELAY: f64 = 0.05;
/// Where nothing is lost, only so much of that: a tunnel that is not needed must not cost anything.
const LOSSLESS_SHARE: f64 = 0.2;
/// Share of the frames lost from which on all of it may.
const LOSSY: f64 = 0.02;
/// Queueing delay by which the target follows starved time.
const GAIN: f64 = 0.3;
/// The target at the beginning of the first bulk transfer, in round trips of the tunnel: where
/// nothing is lost, a reduction of cubic's window leaves the air full.
const FIRST_PER_RTT: f64 = 0.4;
/// Bounds of the target, in round trips of the tunnel and in themselves. The upper one says how
/// much delay flows get at most that leave air empty for reasons of their own.
const LEAST_PER_RTT: f64 = 0.2;
const LEAST: Duration = Duration::from_millis(1);
const MOST_PER_RTT: f64 = 1.5;
const MOST: Duration = Duration::from_millis(50);
/// How long a longer queue is tolerated: what controls the flows inside cannot be faster than their
/// round trips, which queue and repair make longer than the tunnel's; two signals before the first
/// is obeyed are one too many. Flows with a long way beyond the tunnel get less than their share of
/// air.
const INTERVAL: Duration = Duration::from_millis(60);
const INTERVAL_PER_RTT: u32 = 3;
/// The same two where the path is so long that its window has several lanes. There CoDel would
/// hardly find a queue that stands: what waits for repair goes, and lets it fall, more often than
/// in each three round trips; and a queue of more than a round trip is felt.
const MOST_PER_RTT_LONG: f64 = 0.25;
const INTERVAL_PER_RTT_LONG: u32 = 2;
/// An interval beyond this is one round trip there, or what is left of two.
const INTERVAL_LONG: Duration = Duration::from_millis(600);

/// Where both directions share the channel, empty air says nothing; acknowledgements wait for each
/// other, and what they release comes in bursts.
const TARGET_SHARED: Duration = Duration::from_millis(15);
const INTERVAL_SHARED: Duration = Duration::from_millis(200);

/// How the air was used in a while.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Air {
    /// For how long of it there was a bulk transfer.
    pub(crate) bulk: Duration,
    /// For how long of that nothing was there to be sent.
    pub(crate) starved: Duration,
    /// Both ways share it: what is empty here is the other's.
    pub(crate) shared: bool,
    /// Share of the frames lost, 0 to 1.
    pub(crate) loss_ratio: f64,
    /// Full packets a second that can leave.
    pub(crate) packets_per_s: f64,
}

/// What CoDel's target follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodelTarget {
    starved_ratio: f64,
    /// `None`: no bulk transfer yet.
    target_s: Option<f64>,
    shared: bool,
    /// The path is so long that the window has several lanes.
    long: bool,
}

impl CodelTarget {
    pub(crate) fn new(goal: Goal) -> Self {
        let starved_ratio = match goal {
            Goal::Throughput | Goal::Bulk => STARVED_RATIO_THROUGHPUT,
            Goal::LowDelay => STARVED_RATIO_LOW_DELAY,
        };
        CodelTarget { starved_ratio, target_s: None, shared: false, long: false }
    }

    /// The window has several lanes, or one.
    pub(crate) fn set_long(&mut self, long: bool) {
        self.long = long;
    }

    /// Follows how the air was used; `rtt`: the tunnel's round trip, smoothed.
    pub(crate) fn note(&mut self, rtt: Duration, air: Air) {
        self.shared = air.shared;
        if air.bulk.is_zero() {
            return;
        }
        let rtt_s = rtt.as_secs_f64();
        let target_s = self.target_s.unwrap_or(FIRST_PER_RTT * rtt_s);
        let lossy = (air.loss_ratio / LOSSY).min(1.0);
        let share = LOSSLESS_SHARE + (1.0 - LOSSLESS_SHARE) * lossy;
        let allowed_s = self.starved_ratio * share * air.bulk.as_secs_f64();
        let next_s = target_s + GAIN * (air.starved.as_secs_f64() - allowed_s);
        let least_s = LEAST.as_secs_f64().max(LEAST_PER_RTT * rtt_s);
        let most_per_rtt = if self.long { MOST_PER_RTT_LONG } else { MOST_PER_RTT };
        let most_s = MOST.as_secs_f64().max(most_per_rtt * rtt_s);
        self.target_s = Some(next_s.clamp(least_s, most_s));
    }

    /// What CoDel is to hold to; `rtt`: the tunnel's round trip, up to when feedback is late.
    pub(crate) fn params(&self, rtt: Duration) -> CodelParams {
        let interval = match self.long {
            true => (INTERVAL_PER_RTT_LONG * rtt).min(INTERVAL_LONG).max(rtt),
            false => INTERVAL_PER_RTT * rtt,
        };
        let interval = interval.max(INTERVAL);
        if self.shared {
            return CodelParams {
                target: rtt.mul_f64(FIRST_PER_RTT).max(TARGET_SHARED),
                interval: interval.max(INTERVAL_SHARED),
            };
        }
        CodelParams { target: self.target_s.map_or(LEAST, Duration::from_secs_f64), interval }
    }
}
