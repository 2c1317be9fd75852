//! Rate probes: less is sent for a moment, to learn whether a short standing delay is a queue.

use core::time::Duration;

use corridor_base::Time;

use super::{DRAIN_RATIO, Phase, RateControl};

/// Round trips for which a short queue stands before a rate probe, and the least time between rate
/// probes.
const EXCESS_ROUND_TRIPS: u32 = 6;
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// The same in round trips.
const PROBE_INTERVAL_ROUND_TRIPS: u32 = 20;
/// This interval doubles with each rate probe that finds a queue, at most this often.
const VAIN_PROBES_MAX: u32 = 5;
/// A rate probe is worth it only if the capacity is below this share of its usual maximum.
const PROBE_BELOW: f64 = 0.9;
/// Round trips that a rate probe takes, plus one until it is reported.
const PROBE_ROUND_TRIPS: u32 = 2;
/// Above this share of drops, a delay that does not shrink may be that of a buffer that others keep
/// full.
const FULL_DROPS: f64 = 0.05;

/// State of rate probes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateProbes {
    /// Round trips for which a short queue has stood.
    pub(super) excess_round_trips: u32,
    /// Successive rate probes that found a queue.
    vain: u32,
    /// When the last rate probe began.
    at: Option<Time>,
}

impl RateControl {
    /// Starts a rate probe if a short queue stands. A path that becomes longer, by another route or
    /// slower radios, looks like a queue, and the rate would fall until the minimum delay is
    /// forgotten. But a queue shrinks at once when less is sent, even beside a filler that holds it
    /// constant, because that grows slowly.
    pub(super) fn note_excess(&mut self, now: Time, queueing: Duration, round_trip: Duration) {
        if let Phase::Probe { .. } = self.phase {
            return;
        }
        // A delay near the drain threshold is neither long enough to be drained nor always short
        // enough, so the range extends further above than below.
        let most = self.drained_below() + self.delay.noise();
        let stands = (self.delay.noise() + self.delay.varies(self.capacity.peak_per_s)..most)
            .contains(&queueing);
        if self.phase != Phase::Follow {
            self.rate_probes.excess_round_trips = 0;
            return;
        }
        if !stands {
            // Jitter hides it for a round trip now and then.
            self.rate_probes.excess_round_trips =
                self.rate_probes.excess_round_trips.saturating_sub(1);
            return;
        }
        self.rate_probes.excess_round_trips += 1;
        let interval = PROBE_INTERVAL.max(PROBE_INTERVAL_ROUND_TRIPS * round_trip);
        let interval = interval * (1 << self.rate_probes.vain);
        let long_ago = self.rate_probes.at.is_none_or(|at| now - at > interval);
        let span = PROBE_ROUND_TRIPS * round_trip;
        let share = self.capacity.per_s / self.capacity.peak_per_s.max(self.capacity.per_s);
        let shorter = queueing.min(span.mul_f64((1.0 - DRAIN_RATIO) * share));
        if self.rate_probes.excess_round_trips > EXCESS_ROUND_TRIPS
            && long_ago
            && self.capacity.usual_per_s < PROBE_BELOW * self.capacity.best_per_s
            && shorter > self.delay.noise()
        {
            self.rate_probes.excess_round_trips = 0;
            self.rate_probes.at = Some(now);
            let until = now + span + round_trip;
            self.phase = Phase::Probe { until, queueing, shorter };
        }
    }

    /// Less was sent for a while: a queue that has not shrunk is no queue.
    pub(super) fn end_probe(&mut self, now: Time, before: Duration, shorter: Duration) {
        let queueing = self.delay.queueing();
        let is_longer = queueing > before + self.delay.noise(); // Because of others, meanwhile.
        let is_full = self.delivered.dropped_ratio() > FULL_DROPS;
        if !is_full && !is_longer && before.saturating_sub(queueing) < shorter / 2 {
            self.lengthen_path(now, queueing);
            // What came through before will do so again.
            self.capacity.per_s = self.capacity.best_per_s.max(self.capacity.per_s);
            self.rate_probes.vain = 0;
            return;
        }
        if !is_full {
            // The path carries less than it did, or others use more of it.
            self.capacity.best_per_s = self.capacity.usual_per_s;
        }
        self.rate_probes.vain = (self.rate_probes.vain + 1).min(VAIN_PROBES_MAX);
    }
}
