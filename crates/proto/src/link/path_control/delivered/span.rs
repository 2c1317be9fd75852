//! Counts frames over a span, and detects bursts of losses.

use core::time::Duration;

use super::EXCESS_DEVIATIONS;
use crate::link::path_control::Sample;

/// Frames per batch; the losses of successive batches are compared to detect bursts; and the number
/// of comparisons that count.
const BATCH_FRAMES: f64 = 64.0;
const BATCHES: f64 = 32.0;
/// Batches over which recent losses are averaged.
const BATCHES_RECENT: f64 = 8.0;
/// Where frames are few, a batch has as many as arrive in this time, but at least that many.
const BATCH_TIME: Duration = Duration::from_millis(300);
const BATCH_FRAMES_MIN: f64 = 16.0;

/// Frames counted over a span.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    pub(super) time: Duration,
    /// Frames sent, frames that arrived, and the latter as fractions of a long one.
    pub(super) sent: f64,
    pub(super) came: f64,
    delivered: f64,
    /// Frames sent that the rate had held back, according to feedback.
    limited: f64,
}

impl Span {
    /// A span of `sent` frames, of which `came` arrived.
    pub(super) fn of(sent: f64, came: f64) -> Self {
        Span { sent, came, ..Span::default() }
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        let sent = sample.frames as f64;
        let came = sample.came as f64;
        self.time += sample.span;
        self.sent += sent;
        self.came += came;
        self.delivered += sample.told * came / sent.max(1.0);
        self.limited += if sample.limited { sent } else { 0.0 };
    }

    pub(super) fn is_full(&self, time: Duration, frames: f64) -> bool {
        self.time >= time && self.sent >= frames
    }

    /// Loss ratio; late frames may make more arrive than were sent.
    pub(super) fn loss_ratio(&self) -> f64 {
        (1.0 - self.came / self.sent).max(0.0)
    }

    pub(super) fn delivered_per_s(&self) -> f64 {
        self.delivered / self.time.as_secs_f64()
    }

    /// Whether the rate held back most of them.
    pub(super) fn is_held(&self) -> bool {
        2.0 * self.limited >= self.sent
    }

    /// The likely loss ratio, by the rule of succession, and its standard error.
    pub(super) fn likely(&self, bursts: &Bursts) -> (f64, f64) {
        let sent = self.sent + 2.0;
        let lost = ((self.sent - self.came).max(0.0) + 1.0) / sent;
        (lost, (lost * (1.0 - lost) * bursts.factor() / sent).sqrt())
    }

    /// How far the loss ratio may exceed its mean by chance.
    pub(super) fn deviations(&self, bursts: &Bursts) -> f64 {
        let loss_ratio = self.loss_ratio();
        EXCESS_DEVIATIONS * (loss_ratio * (1.0 - loss_ratio) * bursts.factor() / self.sent).sqrt()
    }
}

/// The variance of losses from batch to batch, relative to that of independent losses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    batch: Span,
    /// Loss ratio of the batch before.
    before: f64,
    /// Loss ratio, recent and long-term.
    pub(super) loss_ratio: f64,
    usual: f64,
    /// Half the mean square of the difference between successive batches.
    variance: f64,
    batches: f64,
}

impl Bursts {
    pub(super) fn note(&mut self, sample: &Sample) {
        self.batch.add(sample);
        let is_late = self.batch.sent >= BATCH_FRAMES_MIN && self.batch.time >= BATCH_TIME;
        if self.batch.sent < BATCH_FRAMES && !is_late {
            return;
        }
        let batch = core::mem::take(&mut self.batch);
        let loss_ratio = batch.loss_ratio();
        let weight = (1.0 / (self.batches + 1.0)).max(1.0 / BATCHES);
        let recent = weight.max(1.0 / BATCHES_RECENT);
        self.loss_ratio += recent * (loss_ratio - self.loss_ratio);
        self.usual += weight * (loss_ratio - self.usual);
        if self.batches > 0.0 {
            let square = (loss_ratio - self.before).powi(2) / 2.0 * batch.sent;
            self.variance += weight.max(1.0 / self.batches).min(1.0) * (square - self.variance);
        }
        self.before = loss_ratio;
        self.batches = (self.batches + 1.0).min(BATCHES);
    }

    /// The variance of a count of losses, relative to that of independent losses.
    pub(super) fn factor(&self) -> f64 {
        let independent = self.usual * (1.0 - self.usual);
        if independent > 0.0 { (self.variance / independent).clamp(1.0, BATCH_FRAMES) } else { 1.0 }
    }
}
