//! Random losses on the radio, as opposed to drops.

use corridor_base::Time;

use super::Queue;
use super::span::{Bursts, Span};
use super::{EXCESS_DEVIATIONS, LEAST_DEVIATIONS, LOST_FRAMES_MIN, MEMORY};
use crate::link::path_control::Sample;
use crate::link::path_control::filter::MinFilter;

/// Frames over which losses without drops are counted.
const CALM_FRAMES: f64 = 1_024.0;

/// Losses without drops: of spans in which nothing seems to have been dropped, and, where queues
/// show, of frames that arrived while the queue was short, because only full buffers drop.
#[derive(Debug, Default)]
pub(super) struct Radio {
    /// Frames sent, and frames that arrived, of both kinds.
    calm: (f64, f64),
    unqueued: (f64, f64),
    /// The recent longest queue in nanoseconds, negated for the filter.
    longest: MinFilter,
    was_queued: bool,
    /// Queues show well enough.
    is_told: bool,
}

impl Radio {
    /// Takes feedback; queues shorter than `noticed` do not show.
    pub(super) fn note(&mut self, now: Time, sample: &Sample, queue: Queue) {
        let queueing = queue.length.as_nanos() as i64;
        self.longest.push(now, -queueing, MEMORY);
        let half = -self.longest.least().unwrap_or(0) / 2;
        let shows = half > queue.noticed.as_nanos() as i64;
        let is_queued = queueing > half || !shows;
        // A drop is reported with the frame after it, when the queue may be gone.
        if !is_queued && !self.was_queued {
            self.unqueued.0 += sample.frames as f64;
            self.unqueued.1 += sample.came as f64;
            if self.unqueued.0 > CALM_FRAMES {
                self.unqueued = (self.unqueued.0 / 2.0, self.unqueued.1 / 2.0);
            }
        }
        self.was_queued = is_queued;
        self.is_told = shows && self.unqueued.0 >= LOST_FRAMES_MIN;
    }

    /// Queues were measured against a path that has changed.
    pub(super) fn forget_queues(&mut self) {
        self.longest = MinFilter::default();
        (self.was_queued, self.is_told) = (true, false);
    }

    /// Upper bound of the random loss ratio, as far as it is known.
    pub(super) fn most_ratio(&self, bursts: &Bursts) -> Option<f64> {
        let calm = most_of(span_of(self.calm)?, bursts);
        let unqueued = self.told().map(|unqueued| most_of(unqueued, bursts));
        Some(unqueued.map_or(calm, |unqueued| calm.min(unqueued)))
    }

    /// Lower bound of the random loss ratio, as far as it is known.
    pub(super) fn least_ratio(&self, bursts: &Bursts) -> Option<f64> {
        let calm = span_of(self.calm)?;
        Some((calm.loss_ratio() - LEAST_DEVIATIONS * calm.likely(bursts).1).max(0.0))
    }

    /// Mean random loss ratio, using frames that arrived without a queue if these certainly lost
    /// less.
    pub(super) fn likely_ratio(&self, bursts: &Bursts) -> Option<f64> {
        let calm = span_of(self.calm)?.loss_ratio();
        let unqueued = self.told().filter(|unqueued| most_of(*unqueued, bursts) < calm);
        Some(unqueued.map_or(calm, |unqueued| unqueued.loss_ratio()))
    }

    /// The count of frames that arrived without a queue, if queues show.
    fn told(&self) -> Option<Span> {
        span_of(self.unqueued).filter(|_| self.is_told)
    }

    /// Adds a span in which nothing seems to have been dropped. If it lost less than any before,
    /// that is the random loss. Only a look raises the estimate, because drops may grow as slowly
    /// as the rate does.
    pub(super) fn add_calm(&mut self, span: &Span, bursts: &Bursts) {
        let at_most = span.loss_ratio() + EXCESS_DEVIATIONS * span.likely(bursts).1;
        let (sent, came) = self.calm;
        if sent > 0.0 && at_most < 1.0 - came / sent {
            self.calm = (0.0, 0.0);
        }
        // Certainly more losses than usual may be drops, though too few of them for a look.
        let at_least = span.loss_ratio() - LEAST_DEVIATIONS * span.likely(bursts).1;
        let is_more = sent > 0.0 && at_least > 1.0 - came / sent;
        if self.calm.0 < CALM_FRAMES && !is_more {
            self.calm = (self.calm.0 + span.sent, self.calm.1 + span.came);
        }
    }

    /// Replaces the estimate: this span has the random losses. Little is kept of the frames without
    /// a queue, so that the next ones count.
    pub(super) fn replace(&mut self, span: &Span) {
        self.calm = (span.sent, span.came);
        let (sent, came) = self.unqueued;
        let kept = (LOST_FRAMES_MIN / sent.max(1.0)).min(1.0);
        self.unqueued = (kept * sent, kept * came);
    }
}

fn span_of((sent, came): (f64, f64)) -> Option<Span> {
    (sent > 0.0).then(|| Span::of(sent, came))
}

fn most_of(span: Span, bursts: &Bursts) -> f64 {
    span.loss_ratio() + LEAST_DEVIATIONS * span.likely(bursts).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drops that are too few for a look would raise the estimate from span to span.
    #[test]
    fn spans_that_lose_more_do_not_raise_random_loss() {
        let (mut radio, bursts) = (Radio::default(), Bursts::default());
        radio.replace(&Span::of(100.0, 90.0));
        for lost in [0.16, 0.2, 0.24] {
            radio.add_calm(&Span::of(512.0, 512.0 * (1.0 - lost)), &bursts);
        }
        let ratio = radio.likely_ratio(&bursts).expect("frames were counted");
        assert!((0.09..0.115).contains(&ratio), "{ratio}");
        radio.add_calm(&Span::of(512.0, 512.0), &bursts);
        assert_eq!(radio.likely_ratio(&bursts), Some(0.0), "fewer count at once");
    }
}
