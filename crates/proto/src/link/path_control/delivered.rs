//! The delivery rate, and a bound on the sending rate for paths where no queue shows.
//!
//! Behind a buffer of a few packets, no queue shows that more is sent than the path carries; frames
//! are dropped instead. Random losses are a constant share of what is sent. Drops rise with the
//! sending rate, and the delivery rate does not. So when losses exceed the known random losses, the
//! sender has a *look*: for a short time it sends less than was delivered. If losses fall, the rest
//! were drops, and for 10 s the rate is bounded by the delivery rate over 1 - random loss, and
//! later by 1.25 times that. If they do not, they are random now, and there is no bound. Only a
//! look raises the estimate of random losses, because drops may grow as slowly as the rate does.

mod radio;
mod span;

use core::time::Duration;

use corridor_base::Time;

use crate::link::losses::LOSS_RATIO_MAX;
use crate::link::path_control::Sample;
use crate::link::path_control::delivered::radio::Radio;
use crate::link::path_control::delivered::span::{Bursts, Span};
use crate::link::path_control::filter::MinFilter;

/// How long the highest delivery rate is remembered.
const MEMORY: Duration = Duration::from_secs(10);
/// The rate may exceed the delivery rate by this factor (BBR's pacing gain of a probe), to find out
/// whether the path carries more.
const PROBE_GAIN: f64 = 1.25;
/// Frames over which the delivery rate is counted: at 10 % loss this gives a standard error of 3 %.
const DELIVERED_FRAMES: f64 = 128.0;
/// Fewest frames, if the standard error is no larger than `RATE_ERROR` with fewer.
const DELIVERED_FRAMES_MIN: f64 = 32.0;
const RATE_ERROR: f64 = 0.03;
/// The same for losses, so that the drops of a rate that is a quarter too high stand out from
/// random losses of up to 40 %.
const LOST_FRAMES: f64 = 512.0;
const LOST_FRAMES_MIN: f64 = 32.0;
const LOST_ERROR: f64 = 0.013;
/// The same during a look, in which sending less costs throughput.
const LOOK_FRAMES: f64 = 256.0;
/// Fewest frames of a look before which most were lost: few can tell whether that has ended.
const LOOK_FRAMES_FEW: f64 = 8.0;
/// Longest duration of a look.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);
/// Shortest span of the delivery rate in standard deviations of the jitter, which moves both ends:
/// it has an error of a twelfth, and the highest of a hundred is less than `PROBE_GAIN` too high.
const JITTER_DEVIATIONS: u32 = 16;
/// Shortest span of losses, also in round trips: the minimum of many short spans would be far below
/// the mean by chance, and feedback in the first round trip after a change is about frames sent
/// before it.
const LOST_TIME: Duration = MEMORY.checked_div(20).expect("the divisor is not zero");
const LOST_ROUND_TRIPS: u32 = 4;
/// Losses are excessive if they exceed the minimum by more than this and by this many standard
/// errors: the minimum of the remembered spans is below the mean by chance.
const EXCESS_MIN: f64 = 0.02;
const EXCESS_DEVIATIONS: f64 = 2.5;
/// The same for a span that is checked repeatedly before it ends.
const SUDDEN_DEVIATIONS: f64 = 4.0;
/// Initial losses beyond this are mostly drops: they cause a look even if the rate held nothing
/// back, at no more than what was delivered. Radios lose less.
const MOSTLY_LOST: f64 = 0.6;
/// The true random loss may be above its estimate by this many standard errors.
const LEAST_DEVIATIONS: f64 = 2.0;
/// Factor on the delivery rate in a look: nothing should be dropped then.
const LOOK_RATIO: f64 = 0.8;
/// After a look that found drops, the delivery rate is held for this many spans of losses and for
/// `MEMORY`, before more than that is tried again.
const HOLD_SPANS: usize = 8;
/// At the start the rate doubles in a round trip: with BBR's gain of 2 / ln 2 it stays ahead of the
/// delivery rate.
const START_GAIN: f64 = 2.0 / core::f64::consts::LN_2;
/// Spans without growth by a quarter after which the path is full (BBR: as many round trips).
const FULL_SPANS: u32 = 3;
/// This number of spans doubles with each false alarm, at most so often.
const FALSE_ALARMS_MAX: u32 = 5;
/// Half of the drops that end, as a share of what comes through, when that much less is sent.
const FEWER: f64 = (1.0 - LOOK_RATIO) / 2.0;

/// The queue on the path: its length, and the shortest that can be noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) length: Duration,
    pub(crate) noticed: Duration,
}

/// The capacity that a look found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Frames/s, including random losses.
    pub(crate) per_s: f64,
    /// It was the first look, so the capacity before was a guess.
    pub(crate) is_first: bool,
}

/// The delivery rate, and the bound on the rate that follows from it.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// Current spans, of the delivery rate and of losses.
    rate_span: Span,
    loss_span: Span,
    bursts: Bursts,
    most: Most,
    radio: Radio,
    growth: Growth,
    look: Look,
    /// When the previous span of losses began, and the current one.
    loss_span_began: [Option<Time>; 2],
    /// Spans of losses since losses were excessive; the first is a look, the others are a hold.
    after_excess: Option<usize>,
    /// When losses were last excessive, and whether that was recently.
    excess_at: Option<Time>,
    is_wary: bool,
    /// The capacity if it was counted, in frames/s.
    capacity_per_s: f64,
    /// What a look found.
    found: Option<Found>,
    round_trip: Duration,
    /// When feedback was last taken.
    noted_at: Option<Time>,
}

/// The recent maximum of the delivery rate.
#[derive(Debug, Default)]
struct Most {
    /// Frames/s, negated for the filter.
    per_s: MinFilter,
    /// Whether the rate had held back what was last delivered.
    is_held: bool,
}

/// Growth of the delivery rate, as BBR detects the end of its startup.
#[derive(Debug, Default)]
struct Growth {
    /// The delivery rate when it last grew by a quarter; spans since then with losses, whether
    /// drops or random; and the loss ratio in the last of these.
    per_s: f64,
    spans_since: u32,
    loss_when_full: f64,
    /// Share of frames that arrived, in the one of these spans with the fewest losses.
    best_share: f64,
    /// How often such losses turned out to be random.
    false_alarms: u32,
    /// A look has shown that the start ended, or was held back, too early.
    goes_on: bool,
}

/// A short phase in which less is sent, to see how many frames are lost then.
#[derive(Debug, Default)]
struct Look {
    /// From when on feedback reports on frames sent in it.
    counts_from: Time,
    /// Losses of the span before, and whether they have fallen since.
    loss_before: f64,
    was_fewer: bool,
    /// Losses without drops are not known.
    is_doubtful: bool,
    /// Nothing was known before: the look goes on as long as losses fall, and what it finds is a
    /// lower bound of the capacity.
    is_first: bool,
    /// It was triggered by the start.
    is_at_start: bool,
    /// The capacity estimate less the losses, and the highest delivery rate before, in frames/s.
    kept_per_s: f64,
    delivered_per_s: f64,
    /// Shortest end of the hold after it, if it has found drops.
    hold_until: Time,
}

impl Growth {
    /// Counts a span. `is_bound`: no more was sent than was delivered before, so a lack of growth
    /// says nothing.
    fn note(&mut self, span: &Span, bursts: &Bursts, is_bound: bool) {
        let per_s = span.delivered_per_s();
        self.best_share = self.best_share.max(1.0 - span.loss_ratio());
        if per_s >= PROBE_GAIN * self.per_s {
            (self.per_s, self.spans_since) = (per_s, 0);
            return;
        }
        // Frames that the rate held back are stronger evidence than application-limited ones. Of
        // the latter, as many have to be lost as if a quarter more than the capacity had been sent.
        let too_much = 1.0 - self.best_share / PROBE_GAIN + span.deviations(bursts);
        let least = if span.is_held() { EXCESS_MIN } else { too_much };
        if span.loss_ratio() > least && !is_bound {
            self.spans_since += 1;
            self.loss_when_full = span.loss_ratio();
        }
    }

    /// While nothing is known of losses, none are assumed to be random.
    fn best_share(&self) -> f64 {
        if self.best_share > 0.0 { self.best_share } else { 1.0 }
    }

    fn is_full(&self) -> bool {
        self.spans_since >= FULL_SPANS << self.false_alarms.min(FALSE_ALARMS_MAX)
    }

    fn note_false_alarm(&mut self) {
        self.false_alarms += 1;
        self.go_on();
    }

    fn go_on(&mut self) {
        (self.goes_on, self.spans_since) = (true, 0);
    }
}

impl Look {
    /// Begins a look because of `loss_before`; `kept_per_s`: what the path carries if the rest was
    /// drops.
    fn begin(&mut self, counts_from: Time, loss_before: f64, is_doubtful: bool, kept_per_s: f64) {
        *self = Look { counts_from, loss_before, is_doubtful, kept_per_s, ..Look::default() };
    }

    /// Ends a span of the look with these losses, accurate to within `chance`. Returns whether
    /// losses fell, and whether losses without drops had been unknown.
    fn end(&mut self, loss_ratio: f64, chance: f64) -> (bool, bool) {
        let margin = (FEWER * (1.0 - self.loss_before)).max(chance);
        let is_fewer = loss_ratio < self.loss_before - margin;
        self.loss_before = loss_ratio;
        self.was_fewer |= is_fewer;
        (is_fewer, core::mem::take(&mut self.is_doubtful))
    }
}

/// Fixed-point unit of the values in filters.
const UNITS: f64 = 1e6;

impl Delivered {
    /// Takes feedback; `jitter`: the standard deviation of delays; `capacity_per_s`: the capacity
    /// if it was counted, or 0; `queue`: the queue on the path, if it is known.
    pub(crate) fn note(
        &mut self,
        now: Time,
        sample: &Sample,
        (round_trip, jitter): (Duration, Duration),
        capacity_per_s: f64,
        queue: Option<Queue>,
    ) {
        (self.round_trip, self.capacity_per_s) = (round_trip, capacity_per_s);
        // The first feedback has no span. Later such feedback reports frames that arrived late, all
        // at once.
        if sample.span.is_zero() && sample.sent_span.is_zero() {
            return;
        }
        self.rate_span.add(sample);
        self.bursts.note(sample);
        let time = round_trip.max(JITTER_DEVIATIONS * jitter);
        if self.rate_span.is_full(time, self.rate_frames()) {
            let span = core::mem::take(&mut self.rate_span);
            self.most.per_s.push(now, (-UNITS * span.delivered_per_s()) as i64, MEMORY);
            self.most.is_held = span.is_held();
            self.growth.note(&span, &self.bursts, self.after_excess.is_some());
        }
        if let Some(queue) = queue {
            self.radio.note(now, sample, queue);
        }
        self.loss_span_began[1].get_or_insert(now);
        self.noted_at = Some(now);
        if self.after_excess.is_some() {
            self.excess_at = Some(now);
        }
        self.is_wary = self.excess_at.is_some_and(|at| now - at <= MEMORY);
        if now < self.look.counts_from + sample.sent_span {
            return; // The oldest of these frames were sent before the rate was lowered.
        }
        self.loss_span.add(sample);
        let time = (LOST_ROUND_TRIPS * round_trip).max(LOST_TIME);
        let is_sudden = self.loss_span.time >= round_trip && self.is_sudden();
        if is_sudden || self.loss_span.is_full(time, self.loss_frames()) {
            self.end_loss_span(now);
        }
    }

    /// The rate ignores the bound from now on, so losses say nothing about it.
    pub(crate) fn stop_looking(&mut self) {
        (self.after_excess, self.excess_at, self.is_wary) = (None, None, false);
        (self.loss_span, self.loss_span_began) = (Span::default(), [None; 2]);
        self.look.counts_from = Time::ZERO;
    }

    /// Queues were measured against a path that has changed.
    pub(crate) fn forget_queues(&mut self) {
        self.radio.forget_queues();
    }

    /// There was a pause, about which nothing is known: after a long one, counting restarts.
    pub(crate) fn note_pause(&mut self, now: Time) {
        if self.noted_at.is_some_and(|at| now - at > MEMORY) {
            self.restart();
            (self.after_excess, self.excess_at, self.is_wary) = (None, None, false);
        }
    }

    fn restart(&mut self) {
        (self.rate_span, self.loss_span) = (Span::default(), Span::default());
        self.loss_span_began[1] = None;
    }

    /// Frames over which the delivery rate is counted: fewer losses need fewer frames.
    fn rate_frames(&self) -> f64 {
        let loss_ratio = self.loss_ratio();
        let frames = loss_ratio * self.bursts.factor() / (1.0 - loss_ratio) / RATE_ERROR.powi(2);
        frames.clamp(DELIVERED_FRAMES_MIN, DELIVERED_FRAMES)
    }

    /// The same for losses. A look ends as soon as its result cannot be chance, or after a while;
    /// after it, only time counts.
    fn loss_frames(&self) -> f64 {
        if self.after_excess == Some(0) {
            let (lost, error) = self.loss_span.likely(&self.bursts);
            let fewer = self.look.loss_before - FEWER * (1.0 - self.look.loss_before);
            let is_told = (lost - fewer).abs() > EXCESS_DEVIATIONS * error;
            let is_late = self.loss_span.time >= LOOK_TIME_MAX;
            return match is_told {
                true if self.look.is_doubtful => LOOK_FRAMES_FEW,
                _ if is_told || is_late => LOST_FRAMES_MIN,
                _ => LOOK_FRAMES,
            };
        }
        if self.after_excess.is_some() {
            return LOST_FRAMES_MIN;
        }
        let loss_ratio = self.loss_ratio();
        let variance = loss_ratio * (1.0 - loss_ratio) * self.bursts.factor();
        (variance / LOST_ERROR.powi(2)).clamp(LOST_FRAMES_MIN, LOST_FRAMES)
    }

    /// Whether losses in the span so far exceed the minimum by more than chance allows; before the
    /// minimum is known, whether they are those of a rate that is far too high.
    fn is_sudden(&self) -> bool {
        // A look needs to know the delivery rate.
        let is_known = self.most.per_s.least().is_some();
        if self.after_excess == Some(0) || self.loss_span.sent < LOST_FRAMES_MIN || !is_known {
            return false;
        }
        let (lost, error) = self.loss_span.likely(&self.bursts);
        let at_first = if self.loss_span.is_held() { 1.0 - 1.0 / PROBE_GAIN } else { MOSTLY_LOST };
        let least = self.radio.most_ratio(&self.bursts).unwrap_or(at_first);
        lost - least > EXCESS_MIN + SUDDEN_DEVIATIONS * error
    }

    fn end_loss_span(&mut self, now: Time) {
        let span = core::mem::take(&mut self.loss_span);
        let loss_ratio = span.loss_ratio();
        // In the first span, all losses may be drops.
        let least = if span.is_held() { EXCESS_MIN } else { MOSTLY_LOST };
        let known = self.radio.most_ratio(&self.bursts);
        let is_doubtful = known.is_none() && loss_ratio > least;
        let least = known.unwrap_or(loss_ratio);
        // What an application-limited sender sends is not too much for the path, unless losses are
        // far higher.
        let margin = if span.is_held() { EXCESS_MIN } else { 1.0 - 1.0 / PROBE_GAIN };
        let is_excessive = loss_ratio - least > margin + span.deviations(&self.bursts);
        // Soon after a look, even a rate bounded by the delivery rate may be too high, and its
        // drops must not count as random losses.
        if self.after_excess.is_none() && !self.is_wary && !is_excessive && !is_doubtful {
            self.radio.add_calm(&span, &self.bursts);
        }
        self.after_excess = match self.after_excess {
            Some(0) => self.end_look(now, &span, is_excessive),
            _ if is_excessive => self.begin_look(now, &span, least),
            None if is_doubtful => {
                let least = if loss_ratio > MOSTLY_LOST { 0.0 } else { loss_ratio };
                let look = self.begin_look(now, &span, least);
                self.look.is_first = true;
                look
            }
            spans => spans
                .map(|spans| spans + 1)
                .filter(|&spans| spans <= HOLD_SPANS || now < self.look.hold_until),
        };
        self.loss_span_began = [self.loss_span_began[1], Some(now)];
    }

    /// Begins a look: losses exceed the minimum, so less is sent for a span.
    fn begin_look(&mut self, now: Time, span: &Span, least: f64) -> Option<usize> {
        let loss_ratio = span.loss_ratio();
        // What was delivered earlier than in the previous span may be from a time when the path
        // carried more.
        if let Some(began) = self.loss_span_began[0] {
            self.most.per_s.forget_before(began);
        }
        let kept = ((1.0 - loss_ratio) / (1.0 - least).max(1.0 / UNITS)).min(1.0);
        let counts_from = now + self.round_trip;
        let sent_per_s = self.capacity_per_s.min(self.limit_per_s());
        let delivered_per_s = self.most_per_s().unwrap_or(0.0).max(span.delivered_per_s());
        let is_doubtful = least == 0.0;
        let most = match self.radio.likely_ratio(&self.bursts) {
            // Nothing must be dropped in this look: the capacity may be a guess that was never
            // tried.
            _ if is_doubtful => delivered_per_s,
            // The rate may have grown since these losses were counted, and only a lower one than
            // theirs can show which of them are drops.
            None => (span.delivered_per_s() / (1.0 - loss_ratio)).max(delivered_per_s),
            Some(_) => f64::INFINITY,
        };
        self.look.begin(counts_from, loss_ratio, is_doubtful, (kept * sent_per_s).min(most));
        self.look.delivered_per_s = delivered_per_s;
        Some(0)
    }

    /// Restarts the look, with the same kind.
    fn begin_look_anew(&mut self, now: Time, span: &Span, before: f64) -> Option<usize> {
        let Look { is_doubtful, is_first, is_at_start, .. } = self.look;
        let known = self.radio.most_ratio(&self.bursts).unwrap_or(before);
        let look = self.begin_look(now, span, if is_doubtful { 0.0 } else { known });
        (self.look.is_first, self.look.is_at_start) = (is_first, is_at_start);
        look
    }

    /// Ends a span of a look. If losses have fallen, too much had been sent; if not, they exceeded
    /// the minimum by chance. If losses have risen although less is sent, that is no chance: the
    /// path carries less than when the look began.
    fn end_look(&mut self, now: Time, span: &Span, is_excessive: bool) -> Option<usize> {
        let chance = LEAST_DEVIATIONS * span.likely(&self.bursts).1;
        let before = self.look.loss_before;
        if span.loss_ratio() > before + (FEWER * (1.0 - before)).max(chance) {
            if let Some(began) = self.loss_span_began[1] {
                self.most.per_s.forget_before(began);
            }
            return self.begin_look_anew(now, span, before);
        }
        let (is_fewer, was_doubtful) = self.look.end(span.loss_ratio(), chance);
        if is_fewer && (is_excessive || self.look.is_first) && !was_doubtful {
            self.look.kept_per_s *= LOOK_RATIO;
            self.look.counts_from = now + self.round_trip;
            return Some(0);
        }
        self.radio.replace(span); // The estimate before may include drops.
        let was_at_start = core::mem::take(&mut self.look.is_at_start);
        if self.look.was_fewer {
            // What arrived while more was dropped is what the path carries, apart from random
            // losses.
            let radio = self.radio.likely_ratio(&self.bursts).unwrap_or(0.0).min(LOSS_RATIO_MAX);
            self.look.kept_per_s = self.look.delivered_per_s / (1.0 - radio);
            let is_first = self.look.is_first && !was_at_start;
            self.found = Some(Found { per_s: self.carried_per_s(), is_first });
            if !is_first {
                self.look.hold_until = now + MEMORY;
                return Some(1);
            }
            // Applications had limited what was delivered before: the path carries at least that,
            // and the start goes on from there, now that random losses are known.
            self.growth.go_on();
        } else if was_at_start {
            self.growth.note_false_alarm();
        }
        (self.excess_at, self.is_wary) = (None, false);
        None
    }

    /// The minimum loss ratio, 0 to 1; until it was counted over a whole span, of shorter ones.
    pub(crate) fn least_loss(&self) -> f64 {
        self.radio.most_ratio(&self.bursts).unwrap_or(1.0 - self.growth.best_share())
    }

    /// Random loss ratio, as far as it is known, and the factor by which bursts raise the variance
    /// of its count.
    pub(crate) fn radio(&self) -> (f64, f64) {
        let ratio = self.radio.likely_ratio(&self.bursts).unwrap_or(1.0 - self.growth.best_share());
        (ratio.clamp(0.0, LOSS_RATIO_MAX), self.bursts.factor())
    }

    /// Whether the delivery rate has stopped growing although the sending rate grows and frames are
    /// lost: where no queue has shown, a short buffer drops the excess.
    pub(crate) fn is_full(&self) -> bool {
        self.growth.is_full()
    }

    /// Begins the start's look, because nobody knows yet which of its losses are random and which
    /// are drops.
    pub(crate) fn look(&mut self, now: Time) {
        self.restart();
        self.after_excess = Some(0);
        let loss_ratio = self.growth.loss_when_full;
        let is_doubtful = loss_ratio > MOSTLY_LOST;
        let delivered_per_s = self.most_per_s().unwrap_or(0.0);
        let most = if is_doubtful { delivered_per_s } else { f64::INFINITY };
        let kept_per_s = self.capacity_per_s.min(most);
        self.look.begin(now + self.round_trip, loss_ratio, is_doubtful, kept_per_s);
        self.look.delivered_per_s = delivered_per_s;
        (self.look.is_first, self.look.is_at_start) = (true, true);
    }

    /// Whether a look has shown that the start should go on; returned once.
    pub(crate) fn take_goes_on(&mut self) -> bool {
        core::mem::take(&mut self.growth.goes_on)
    }

    /// Recent loss ratio, and `loss_error`: its standard error over this many frames.
    pub(crate) fn loss_ratio(&self) -> f64 {
        self.bursts.loss_ratio.min(LOSS_RATIO_MAX)
    }

    /// Share of frames recently dropped, beyond what may be chance.
    pub(crate) fn dropped_ratio(&self) -> f64 {
        let least = self.least_loss();
        ((self.loss_ratio() - least) / (1.0 - least).max(1.0 / UNITS)).max(0.0)
    }

    /// See [`Self::loss_ratio`].
    pub(crate) fn loss_error(&self, frames: f64) -> f64 {
        let loss_ratio = self.loss_ratio();
        (loss_ratio * (1.0 - loss_ratio) * self.bursts.factor() / frames.max(1.0)).sqrt()
    }

    /// Whether losses were excessive just now.
    pub(crate) fn is_excessive(&self) -> bool {
        self.after_excess.is_some()
    }

    /// Upper bound of the rate in frames/s; infinite if losses were not excessive recently.
    pub(crate) fn limit_per_s(&self) -> f64 {
        match self.after_excess {
            Some(0) => self.carried_at_least_per_s() * LOOK_RATIO,
            Some(_) => self.carried_per_s(),
            None if self.is_wary => self.carried_per_s() * PROBE_GAIN,
            None => f64::INFINITY,
        }
    }

    /// The same for the start, where growth is not bounded.
    pub(crate) fn start_limit_per_s(&self) -> f64 {
        let grows = self.growth.spans_since == 0;
        if grows { f64::INFINITY } else { START_GAIN * self.carried_per_s() }
    }

    /// The capacity that a look found after excessive losses; returned once.
    pub(crate) fn take_found(&mut self) -> Option<Found> {
        self.found.take()
    }

    /// The recent maximum of the delivery rate in frames/s.
    pub(crate) fn most_per_s(&self) -> Option<f64> {
        self.most.per_s.least().map(|most| -most as f64 / UNITS)
    }

    /// The same, only if the rate and not an application had limited what was delivered.
    pub(crate) fn held_per_s(&self) -> Option<f64> {
        self.most_per_s().filter(|_| self.most.is_held)
    }

    /// The same for a look, by what is known for certain to be random loss: if drops count as
    /// random, a look that sends less than that allows still has them.
    fn carried_at_least_per_s(&self) -> f64 {
        let least = self.radio.least_ratio(&self.bursts).filter(|_| !self.look.is_doubtful);
        let most = self.most_per_s().unwrap_or(f64::INFINITY);
        let certain = least.map(|least| most / (1.0 - least).max(1.0 / UNITS));
        self.carried_per_s().min(certain.unwrap_or(f64::INFINITY))
    }

    /// The maximum of the delivery rate over 1 - random loss, as far as that is known.
    fn carried_per_s(&self) -> f64 {
        let lost = self.radio.likely_ratio(&self.bursts).unwrap_or(self.look.loss_before);
        let lost = if self.look.is_doubtful { 0.0 } else { lost };
        let most = self.most_per_s().unwrap_or(f64::INFINITY);
        self.look.kept_per_s.max(most / (1.0 - lost).max(1.0 / UNITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    /// Samples of ten frames each for a round trip, sent at a rate through a path with this
    /// capacity in frames/s and this share of random losses. Returns the time after it.
    fn pass(
        delivered: &mut Delivered,
        start: Time,
        (sent, carried): (f64, f64),
        loss: f64,
    ) -> Time {
        pass_at_capacity(delivered, start, (sent, carried), loss, 0.0)
    }

    /// The same while this is the estimate of the capacity.
    fn pass_at_capacity(
        delivered: &mut Delivered,
        start: Time,
        (sent, carried): (f64, f64),
        loss: f64,
        capacity_per_s: f64,
    ) -> Time {
        let samples = (sent * RTT.as_secs_f64() / 10.0).max(1.0) as u32;
        let span = Duration::from_secs_f64(10.0 / sent);
        let loss_ratio = 1.0 - carried.min(sent) / sent * (1.0 - loss);
        let (mut now, mut lost_so_far) = (start, 0.0);
        for index in 1..=samples {
            let lost = (f64::from(index) * 10.0 * loss_ratio - lost_so_far).round();
            lost_so_far += lost;
            now += span;
            let sample = Sample {
                one_way_us: 0,
                is_long: true,
                round_trip: RTT,
                round_trip_smoothed: RTT,
                told: 10.0,
                span,
                sent_span: span,
                frames: 10,
                came: 10 - lost as usize,
                limited: true,
                shares_air: false,
                pair_per_s: None,
            };
            delivered.note(now, &sample, (RTT, Duration::ZERO), capacity_per_s, None);
        }
        now
    }

    #[test]
    fn random_losses_bound_nothing_once_they_are_known() {
        for loss in [0.0, 0.1, 0.4] {
            let mut delivered = Delivered::default();
            assert_eq!(delivered.limit_per_s(), f64::INFINITY);
            let mut now = Time::ZERO;
            let mut bounded = 0;
            for _ in 0..1_500 {
                let rate = delivered.limit_per_s().min(1_000.0);
                bounded += u32::from(rate < 1_000.0);
                now = pass(&mut delivered, now, (rate, 1_000.0), loss);
            }
            assert_eq!(delivered.limit_per_s(), f64::INFINITY, "{loss} lost");
            // At most a look at the start: the nature of these losses is not known yet.
            assert!(bounded <= 30, "{bounded} times at {loss} lost");
        }
    }

    /// What came before was a burst from an application, most of which was dropped.
    #[test]
    fn what_a_first_look_finds_bounds_nothing() {
        let mut delivered = Delivered::default();
        let mut now = Time::ZERO;
        while delivered.limit_per_s() == f64::INFINITY {
            now = pass(&mut delivered, now, (1_000.0, 50.0), 0.0);
        }
        while delivered.is_excessive() {
            let rate = delivered.limit_per_s();
            assert!(rate <= 50.0, "{rate} in a look at what 50 are delivered of");
            now = pass(&mut delivered, now, (rate, rate), 0.0);
        }
        assert_eq!(delivered.limit_per_s(), f64::INFINITY);
        let found = delivered.take_found().expect("a look has found something");
        assert!(found.is_first && (49.0..60.0).contains(&found.per_s), "{found:?}");
        assert!(delivered.take_goes_on());
        // What the next look finds does bound the rate.
        while delivered.limit_per_s() == f64::INFINITY {
            now = pass(&mut delivered, now, (400.0, 200.0), 0.0);
        }
        while delivered.after_excess == Some(0) {
            let rate = delivered.limit_per_s();
            now = pass(&mut delivered, now, (rate, rate.min(200.0)), 0.0);
        }
        assert!(!delivered.take_found().expect("another has").is_first);
        assert!((190.0..230.0).contains(&delivered.limit_per_s()), "{}", delivered.limit_per_s());
    }

    /// The rate doubled while the first losses were counted. At 0.8 of what it has become, most of
    /// the frames would be dropped as well, and pass for lost at random.
    #[test]
    fn a_first_look_sends_less_than_when_losses_were_counted() {
        let mut delivered = Delivered::default();
        let (mut now, mut rate) = (Time::ZERO, 400.0);
        while delivered.limit_per_s() == f64::INFINITY {
            now = pass_at_capacity(&mut delivered, now, (rate, 300.0), 0.1, rate);
            rate = (1.1 * rate).min(1_600.0);
        }
        while delivered.limit_per_s() < f64::INFINITY {
            let most = delivered.limit_per_s().min(rate);
            now = pass_at_capacity(&mut delivered, now, (most, 300.0), 0.1, rate);
        }
        let random = delivered.least_loss();
        assert!(random < 0.2, "{random} passes for random, 0.1 is");
    }

    #[test]
    fn what_a_look_found_is_held_as_long_as_deliveries_are_remembered() {
        let mut delivered = Delivered::default();
        delivered.radio.replace(&Span::of(1_024.0, 1_024.0));
        let (mut now, mut held_from) = (Time::ZERO, None);
        loop {
            let rate = delivered.limit_per_s().min(1_500.0);
            now = pass(&mut delivered, now, (rate, 1_000.0), 0.0);
            match delivered.after_excess {
                Some(1..) => held_from = held_from.or(Some(now)),
                _ if held_from.is_some() => break,
                _ => {}
            }
        }
        let held = now - held_from.expect("a look found drops");
        assert!((MEMORY..MEMORY + Duration::from_secs(2)).contains(&held), "{held:?}");
        // Then more is tried again.
        assert!(delivered.limit_per_s() > 1_200.0, "{}", delivered.limit_per_s());
    }

    /// Of few frames, a quarter may be lost by chance, or was dropped: a look at less than the
    /// delivery rate tells. Of many, it is random.
    #[test]
    fn a_look_sends_what_certainly_arrives() {
        for (frames, range) in [(32.0, 0.8..0.92), (1_024.0, 1.0..1.07)] {
            let mut delivered = Delivered::default();
            delivered.radio.replace(&Span::of(frames, 0.75 * frames));
            let mut now = Time::ZERO;
            while delivered.after_excess.is_none() {
                now = pass(&mut delivered, now, (2_000.0, 1_000.0), 0.0);
            }
            let rate = delivered.limit_per_s() / 1_000.0;
            assert!(range.contains(&rate), "{rate} of what arrives, {frames} frames");
        }
    }

    #[test]
    fn what_is_dropped_for_want_of_room_is_found_and_kept_few() {
        for loss in [0.0, 0.1, 0.4] {
            let mut delivered = Delivered::default();
            let mut now = Time::ZERO;
            let (mut sent, mut carried) = (0.0, 0.0);
            for round in 0..1_500 {
                let rate = delivered.limit_per_s().min(1_500.0);
                now = pass(&mut delivered, now, (rate, 1_000.0), loss);
                if round >= 100 {
                    (sent, carried) = (sent + rate, carried + rate.min(1_000.0));
                }
            }
            assert!(carried > 0.85 * sent, "{carried} of {sent} at {loss} lost");
            assert!(carried > 0.91 * 1_400_000.0, "{carried} at {loss} lost");
        }
    }
}
