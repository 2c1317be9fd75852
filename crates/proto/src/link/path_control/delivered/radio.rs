//! What the radio loses, apart from what is dropped.

use corridor_base::Time;

use super::Queue;
use super::span::{Bursts, Span};
use super::{EXCESS_DEVIATIONS, LEAST_DEVIATIONS, LOST_FRAMES_MIN, MEMORY};
use crate::link::path_control::Sample;
use crate::link::path_control::filter::MinFilter;

/// Frames over which losses without drops are counted.
const CALM_FRAMES: f64 = 1_024.0;

/// Losses without drops: of spans in which nothing seems to have been dropped, and, where queues
/// show, of what came while they were short: buffers drop where they are full.
#[derive(Debug, Default)]
pub(super) struct Radio {
    /// Frames sent, and those that came, of both.
    calm: (f64, f64),
    unqueued: (f64, f64),
    /// The longest queue of late, nanoseconds, negative.
    longest: MinFilter,
    was_queued: bool,
    /// Queues show well enough.
    is_told: bool,
}

impl Radio {
    /// Takes feedback; queues that are shorter than `noticed` do not show.
    pub(super) fn note(&mut self, now: Time, sample: &Sample, queue: Queue) {
        let queueing = queue.length.as_nanos() as i64;
        self.longest.push(now, -queueing, MEMORY);
        let half = -self.longest.least().unwrap_or(0) / 2;
        let shows = half > queue.noticed.as_nanos() as i64;
        let is_queued = queueing > half || !shows;
        // A drop is reported with the frame behind it, when the queue may have gone.
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

    /// What was queued was measured against another path.
    pub(super) fn forget_queues(&mut self) {
        self.longest = MinFilter::default();
        (self.was_queued, self.is_told) = (true, false);
    }

    /// The most that the share of lost frames may be, by what is known.
    pub(super) fn most_ratio(&self, bursts: &Bursts) -> Option<f64> {
        let calm = most_of(span_of(self.calm)?, bursts);
        let unqueued = self.told().map(|unqueued| most_of(unqueued, bursts));
        Some(unqueued.map_or(calm, |unqueued| calm.min(unqueued)))
    }

    /// Share of the frames that is lost, on average: of what came without a queue where that is
    /// less for certain.
    pub(super) fn likely_ratio(&self, bursts: &Bursts) -> Option<f64> {
        let calm = span_of(self.calm)?.loss_ratio();
        let unqueued = self.told().filter(|unqueued| most_of(*unqueued, bursts) < calm);
        Some(unqueued.map_or(calm, |unqueued| unqueued.loss_ratio()))
    }

    /// What came without a queue, where queues show.
    fn told(&self) -> Option<Span> {
        span_of(self.unqueued).filter(|_| self.is_told)
    }

    /// Nothing of this span seems to have been dropped. Where fewer were lost than ever, that is
    /// what the radio loses; more than is known it does only if a look shows so, for drops may
    /// grow as slowly as the rate does.
    pub(super) fn add_calm(&mut self, span: &Span, bursts: &Bursts) {
        let at_most = span.loss_ratio() + EXCESS_DEVIATIONS * span.likely(bursts).1;
        let (sent, came) = self.calm;
        if sent > 0.0 && at_most < 1.0 - came / sent {
            self.calm = (0.0, 0.0);
        }
        if self.calm.0 < CALM_FRAMES {
            self.calm = (self.calm.0 + span.sent, self.calm.1 + span.came);
        }
    }

    /// What was known is no longer so: that is what the radio loses. Of what came without a queue
    /// little is kept, so that what comes next counts.
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
