//! Sets CoDel's target: the shortest queue that keeps the air busy.
//!
//! Symbols that wait for repair are released together, and so are TCP's acknowledgments and the
//! segments that these let go. The ingress queue has to outlast the gaps in between. Their length
//! depends on losses and their bursts, the round-trip time, and how the flows react. None of this
//! needs to be known: air that idles during a bulk transfer shows that the target was too low; if
//! it never idles, the target is too high.

use core::time::Duration;

use corridor_base::codel::CodelParams;

use crate::config::Goal;

/// Share of a bulk transfer's time in which the air may idle, or carry repair only because nothing
/// else was queued. Each percentage point is worth about a millisecond of queue at a round-trip
/// time of 4 ms.
const STARVED_RATIO_THROUGHPUT: f64 = 0.02;
/// The same for [`Goal::LowDelay`].
const STARVED_RATIO_LOW_DELAY: f64 = 0.05;
/// Without losses only this part of the share is allowed: a tunnel that is not needed must not cost
/// throughput.
const LOSSLESS_SHARE: f64 = 0.2;
/// Loss ratio from which the whole share is allowed.
const LOSSY: f64 = 0.02;
/// How far the target moves per unit of excess starved time.
const GAIN: f64 = 0.3;
/// The target when the first bulk transfer begins, in round trips of the tunnel. Without losses,
/// this much queue keeps the air busy when CUBIC reduces its window.
const FIRST_PER_RTT: f64 = 0.4;
/// Bounds of the target, in round trips of the tunnel and absolute. The upper bound limits the
/// delay caused by flows that leave the air idle for reasons of their own.
const LEAST_PER_RTT: f64 = 0.2;
const LEAST: Duration = Duration::from_millis(1);
const MOST_PER_RTT: f64 = 1.5;
const MOST: Duration = Duration::from_millis(50);
/// How long a queue above the target is tolerated. The control loop of the flows inside cannot be
/// faster than their round trips, which queueing and repair make longer than the tunnel's; a second
/// signal before the first takes effect is one too many. Flows with a long path beyond the tunnel
/// get less than their share of the air.
const INTERVAL: Duration = Duration::from_millis(60);
const INTERVAL_PER_RTT: u32 = 3;
/// The same two where the path is so long that its window has several lanes. Three round trips
/// would be too long there: repair arrives more often than that and lets the queue drain each time,
/// so CoDel would hardly ever see a standing queue. And users notice a queue of more than a round
/// trip.
const MOST_PER_RTT_LONG: f64 = 0.25;
const INTERVAL_PER_RTT_LONG: u32 = 2;
/// On such paths, an interval longer than this is cut to this, but not below one round trip.
const INTERVAL_LONG: Duration = Duration::from_millis(600);

/// On a shared channel idle air says nothing about our queue; acknowledgments are held back for
/// each other, and release bursts.
const TARGET_SHARED: Duration = Duration::from_millis(15);
const INTERVAL_SHARED: Duration = Duration::from_millis(200);

/// How the air was used during a period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Air {
    /// How long a bulk transfer was in progress.
    pub(crate) bulk: Duration,
    /// How much of that time there was nothing to send.
    pub(crate) starved: Duration,
    /// The channel is shared: air that idles here is the other direction's.
    pub(crate) shared: bool,
    /// Loss ratio of frames, 0 to 1.
    pub(crate) loss_ratio: f64,
    /// Full-sized packets per second that can leave.
    pub(crate) packets_per_s: f64,
}

/// Computes CoDel's target from how the air is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodelTarget {
    starved_ratio: f64,
    /// `None` before the first bulk transfer.
    target_s: Option<f64>,
    shared: bool,
    /// The path is so long that its window has several lanes.
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

    /// Sets whether the window has several lanes.
    pub(crate) fn set_long(&mut self, long: bool) {
        self.long = long;
    }

    /// Adjusts the target; `rtt`: smoothed round-trip time of the tunnel.
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

    /// CoDel's parameters; `rtt`: round-trip time of the tunnel, including the margin after which
    /// feedback is late.
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
