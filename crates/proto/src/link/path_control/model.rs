//! What feedback shows about a path: delays above the minimum, how much of them is noise, and the
//! rate that comes through.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use super::Sample;
use super::delivered::{Delivered, Found};
use super::filter::MinFilter;
use super::spread::Spread;

/// Initial guess of the rate in frames/s.
pub(super) const FRAMES_PER_S_FIRST: f64 = 500.0;
/// Bounds of the rate in frames/s.
pub(super) const FRAMES_PER_S_MIN: f64 = 2.0;
/// See [`FRAMES_PER_S_MIN`].
pub(super) const FRAMES_PER_S_MAX: f64 = 2e6;
/// Queueing delay up to this multiple of the jitter counts as noise, within these bounds.
const JITTER_FACTOR: f64 = 4.0;
const NOISE_MIN: Duration = Duration::from_micros(400);
/// Share of the round-trip time that always counts as noise: a rate that is too low costs more than
/// a frame in a queue.
const NOISE_PER_RTT: f64 = 0.05;
/// See [`JITTER_FACTOR`].
pub(super) const NOISE_MAX: Duration = Duration::from_millis(1);
/// Where delays vary more than noise allows for, as on a medium that retransmits, the queue varies
/// by itself, and runs empty unless a longer one is aimed at: by as much, up to this.
const VARIES_MAX: Duration = Duration::from_millis(2);
/// The newest difference has this fraction of weight in the jitter.
const JITTER_PARTS: f64 = 32.0;
/// For this long after a long frame, short ones are not used for delay.
const SHORT_AFTER: Duration = Duration::from_secs(1);
/// How long the minimum delay is remembered: clocks drift. Beside a flow that fills the queue the
/// minimum may not be seen for long, and clocks drift by less than such a queue.
const BASE_MEMORY: Duration = Duration::from_secs(20);
const BASE_MEMORY_BESIDE: Duration = Duration::from_secs(120);
/// Half-life of the remembered peak of the capacity.
pub(super) const PEAK_MEMORY: Duration = Duration::from_secs(20);
/// Over how long the usual capacity is averaged, and over how many round trips at least.
const USUAL_TIME: Duration = Duration::from_millis(250);
const USUAL_ROUND_TRIPS: u32 = 8;
/// Fewest frames over which a rate is counted.
const RATE_FRAMES: f64 = 8.0;
/// Length of the longer span over which a rate is counted, in shorter spans: for losses in bursts.
const SPANS: u32 = 8;
/// Standard errors by which a counted rate has to exceed what was known, and by which losses have
/// to exceed their recent minimum.
const ERRORS: f64 = 1.0;
pub(super) const EXCESS_ERRORS: f64 = 3.0;
pub(super) const EXCESS_MIN: f64 = 0.02;
/// A gap in arrivals counts as at most this many times the time of its frames, or one span.
const GAP_FACTOR: f64 = 4.0;
/// Points per span over which a rate is counted, and most points kept.
const POINTS_PER_SPAN: u32 = 128;
const ARRIVAL_POINTS_MAX: usize = 256;
/// Upper bound of the wander, as a queue to aim at, in round trips; and the fraction of weight that
/// the newest change has in it.
const WANDER_MAX: f64 = 0.25;
const WANDER_PARTS: f64 = 16.0;
/// Lower bound of round-trip times.
pub(super) const ROUND_TRIP_MIN: Duration = Duration::from_millis(2);

/// Delays of frames on the way to the other end.
#[derive(Debug)]
pub(super) struct DelayModel {
    /// The newest one-way delay as reported, and its difference to the first.
    one_way: Option<(u32, i64)>,
    /// Long-term minimum of the one-way delay, of short and of long frames.
    base: [MinFilter; 2],
    /// Recent minimum of the one-way delay above that, which excludes the noise on top.
    standing: MinFilter,
    /// Mean difference of delays from sample to sample, in nanoseconds.
    jitter_ns: f64,
    /// Spread of delays half a round trip apart, or the minimum one, and the length of that span.
    spread: Spread,
    span: Duration,
    round_trip: Duration,
    /// Long-term minimum of the round-trip time.
    round_trip_least: MinFilter,
    /// Lower bound of noise: smaller delays are not worth the risk on a long path.
    noise_min: Duration,
    /// When a long frame was last reported.
    long_at: Option<Time>,
    last_one_way: [Option<i64>; 2],
}

impl Default for DelayModel {
    fn default() -> Self {
        DelayModel {
            one_way: None,
            base: Default::default(),
            standing: MinFilter::default(),
            jitter_ns: 0.0,
            spread: Spread::default(),
            span: NOISE_MAX,
            round_trip: ROUND_TRIP_MIN,
            round_trip_least: MinFilter::default(),
            noise_min: NOISE_MAX,
            long_at: None,
            last_one_way: [None; 2],
        }
    }
}

impl DelayModel {
    /// Recent queueing delay.
    pub(super) fn queueing(&self) -> Duration {
        let standing = self.standing.least().unwrap_or(0);
        Duration::from_nanos(u64::try_from(standing).unwrap_or(0))
    }

    /// Queueing delay that cannot be distinguished from noise.
    pub(super) fn noise(&self) -> Duration {
        let noise = Duration::from_nanos((JITTER_FACTOR * self.jitter_ns) as u64);
        noise.clamp(self.noise_min, NOISE_MAX)
    }

    /// How much delays vary beyond noise.
    pub(super) fn varies(&self, peak_per_s: f64) -> Duration {
        let above = self.jitter_ns - NOISE_MAX.as_nanos() as f64 / JITTER_FACTOR;
        let above = Duration::from_nanos(above.max(0.0) as u64).min(VARIES_MAX);
        above.max(self.jitter(peak_per_s))
    }

    /// How far the minimum delay of a span is above the overall minimum without any
    /// queue, beyond noise and one frame being sent.
    pub(super) fn jitter(&self, peak_per_s: f64) -> Duration {
        let frame = Duration::from_secs_f64(1.0 / peak_per_s.max(FRAMES_PER_S_MIN));
        let spread = self.spread.above_least(self.span, BASE_MEMORY, peak_per_s);
        spread.saturating_sub(self.noise() + frame).min(self.round_trip / 2)
    }

    /// Standard deviation of delays a span apart.
    pub(super) fn deviation(&self) -> Duration {
        self.spread.deviation()
    }

    /// Recent smoothed round-trip time.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.max(ROUND_TRIP_MIN)
    }

    /// Recent minimum of the round-trip time.
    pub(super) fn round_trip_least(&self) -> Duration {
        Duration::from_nanos(self.round_trip_least.least().unwrap_or(0) as u64)
    }

    /// Takes feedback. `is_steady`: the rate is not changed on purpose, so the path causes the
    /// differences of delays. `is_beside`: somebody else fills the queue. Returns whether the
    /// feedback says something about the queue.
    pub(super) fn note(
        &mut self,
        now: Time,
        sample: &Sample,
        round_trip: Duration,
        (is_steady, is_beside): (bool, bool),
    ) -> bool {
        let memory = if is_beside { BASE_MEMORY_BESIDE } else { BASE_MEMORY };
        let per_rtt = sample.round_trip_smoothed.mul_f64(NOISE_PER_RTT);
        self.noise_min = per_rtt.clamp(NOISE_MIN, NOISE_MAX);
        let one_way_ns = self.one_way_ns(sample.one_way_us);
        let class = usize::from(sample.is_long);
        if sample.is_long {
            self.long_at = Some(now);
        } else if self.long_at.is_some_and(|at| now - at < SHORT_AFTER) {
            // Few short frames are reported by themselves, so their minimum delay is not known
            // well.
            return false;
        }
        let base = &mut self.base[class];
        base.push(now, one_way_ns, memory);
        let above = one_way_ns - base.least().unwrap_or(one_way_ns);
        self.round_trip = sample.round_trip_smoothed;
        self.round_trip_least.push(now, self.round_trip.as_nanos() as i64, BASE_MEMORY);
        // A long queue makes up most of the round trip. What it changes by in half of that would
        // count as jitter, and a longer queue would be aimed at.
        self.span = (round_trip / 2).min(self.round_trip_least()).max(NOISE_MAX);
        self.standing.push(now, above, self.span);
        if is_steady {
            self.spread.note(now, one_way_ns, self.span);
        } else {
            self.spread.restart();
        }
        if self.queueing() > round_trip {
            // No queue is longer than the round trip through it: a clock has jumped.
            self.base[class] = MinFilter::default();
            self.base[class].push(now, one_way_ns, BASE_MEMORY);
            self.standing = MinFilter::default();
        }
        if let Some(last) = self.last_one_way[class].replace(one_way_ns) {
            let differs = Duration::from_nanos(one_way_ns.abs_diff(last));
            // Only clocks jump by more than that.
            if differs <= round_trip {
                self.jitter_ns += (differs.as_nanos() as f64 - self.jitter_ns) / JITTER_PARTS;
            }
        }
        true
    }

    /// Difference of the one-way delay to the first. That clocks wrap does not matter unless it
    /// changes by more than 35 minutes at a time.
    fn one_way_ns(&mut self, one_way_us: u32) -> i64 {
        let (before_us, above_us) = self.one_way.unwrap_or((one_way_us, 0));
        let above_us = above_us + i64::from(one_way_us.wrapping_sub(before_us) as i32);
        self.one_way = Some((one_way_us, above_us));
        1_000 * above_us
    }

    /// There was a pause, in which clocks drift.
    pub(super) fn note_pause(&mut self) {
        self.last_one_way = [None; 2];
    }

    /// Raises the minimum delay by `by` from now on.
    pub(super) fn lengthen(&mut self, now: Time, by: Duration) {
        for base in &mut self.base {
            if let Some(least) = base.least() {
                *base = MinFilter::default();
                base.push(now, least + by.as_nanos() as i64, BASE_MEMORY);
            }
        }
        self.standing = MinFilter::default();
    }
}

/// Counts up to one feedback.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    /// When these frames arrived, and when they were sent, since the first.
    came: Duration,
    sent: Duration,
    /// Frames sent, as fractions of a long one, and how many of them arrived.
    frames: f64,
    arrived: f64,
    /// Frames of these that the rate did not hold back.
    free: f64,
}

/// Recent feedback, as points between which rates can be computed.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    points: VecDeque<Point>,
    newest: Point,
}

/// Frames/s over a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Lower bound of what the path carried: counted over the longer of the spans of sending and of
    /// arriving.
    pub(super) least_per_s: f64,
    /// Frames sent, and frames that arrived, per second of the span of arriving: what the path
    /// carries if it was busy all the time.
    pub(super) sent_per_s: f64,
    pub(super) came_per_s: f64,
    /// Number of frames sent.
    pub(super) frames: f64,
    /// The rate held back all of them, and none followed a gap.
    pub(super) held: bool,
}

impl Arrivals {
    /// Bytes at the maximum number of points.
    pub(super) const BYTES_MAX: usize = ARRIVAL_POINTS_MAX * size_of::<Point>();

    /// Takes feedback; rates will be asked for over spans of at most `span`. A gap counts as at
    /// most `longest`: an outage is not a rate.
    fn note(&mut self, sample: &Sample, span: Duration, longest: Duration) {
        let sent = sample.frames as f64;
        let newest = &mut self.newest;
        newest.came += sample.span.min(longest);
        newest.sent += sample.sent_span;
        newest.frames += sample.told;
        newest.arrived += sample.told * sample.came as f64 / sent.max(1.0);
        newest.free += if sample.limited { 0.0 } else { sample.told };
        let newest = *newest;
        let apart = span / POINTS_PER_SPAN;
        if self.points.back().is_none_or(|last| newest.came >= last.came + apart) {
            while self.points.len() >= ARRIVAL_POINTS_MAX {
                self.points.pop_front();
            }
            self.points.push_back(newest);
        }
        // Keep one point older than the span.
        while self.points.get(1).is_some_and(|second| second.came + span <= newest.came) {
            self.points.pop_front();
        }
    }

    /// Forgets all points: a pause says nothing.
    pub(super) fn restart(&mut self) {
        self.points.clear();
        self.newest = Point::default();
        self.points.push_back(self.newest);
    }

    /// The rate over the last `span` and a little more, once that much is known.
    fn rate(&self, span: Duration) -> Option<Rate> {
        let at = self.points.partition_point(|point| point.came + span <= self.newest.came);
        let first = self.points.get(at.checked_sub(1)?)?;
        let came = self.newest.came - first.came;
        let longer = came.max(self.newest.sent.saturating_sub(first.sent));
        let frames = self.newest.frames - first.frames;
        let arrived = self.newest.arrived - first.arrived;
        let per_s =
            |frames: f64, span: Duration| (frames / span.as_secs_f64()).min(FRAMES_PER_S_MAX);
        Some(Rate {
            frames,
            least_per_s: per_s(frames, longer),
            sent_per_s: per_s(frames, came),
            came_per_s: per_s(arrived, came),
            held: self.newest.free == first.free,
        })
    }
}

/// Mean relative change of the capacity per round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wander {
    share: f64,
    /// Frames/s when the round trip began.
    from_per_s: f64,
}

impl Wander {
    /// A round trip has passed; `counts`: the path caused the change.
    pub(super) fn end_round_trip(&mut self, per_s: f64, counts: bool) {
        let before = core::mem::replace(&mut self.from_per_s, per_s);
        if counts {
            let changed = (per_s - before).abs() / per_s.max(before);
            self.share += (changed - self.share) / WANDER_PARTS;
        }
    }

    /// The change in a round trip, as a queueing time.
    pub(super) fn time(&self, round_trip: Duration) -> Duration {
        round_trip.mul_f64(self.share.min(WANDER_MAX))
    }
}

/// The capacity: frames/s that the path carries, including those lost at random.
#[derive(Debug)]
pub(super) struct Capacity {
    arrivals: Arrivals,
    /// For how long a queue has stood.
    busy: Duration,
    /// A rate has been counted.
    is_known: bool,
    /// The present estimate.
    pub(super) per_s: f64,
    /// Its long-term maximum.
    pub(super) peak_per_s: f64,
    /// The average, and the long-term maximum of that.
    pub(super) usual_per_s: f64,
    pub(super) best_per_s: f64,
    /// See [`Self::retry_per_s`].
    retry_part: f64,
    retries: bool,
    usual_at: Time,
}

impl Capacity {
    pub(super) fn new(now: Time) -> Self {
        Capacity {
            arrivals: Arrivals::default(),
            busy: Duration::ZERO,
            is_known: false,
            per_s: FRAMES_PER_S_FIRST,
            peak_per_s: 0.0,
            usual_per_s: 0.0,
            best_per_s: 0.0,
            retry_part: 1.0,
            retries: false,
            usual_at: now,
        }
    }

    /// The capacity if it was counted; 0 while it is a guess.
    pub(super) fn known_per_s(&self) -> f64 {
        if self.is_known { self.per_s } else { 0.0 }
    }

    /// A look found this capacity. It replaces the estimate if that was a guess: not counted, or
    /// counted before random losses were known.
    pub(super) fn note_found(&mut self, found: Found) {
        if !core::mem::replace(&mut self.is_known, true) || found.is_first {
            self.replace_guess(found.per_s);
        }
    }

    /// The estimate was a guess until now, and so was its average.
    fn replace_guess(&mut self, per_s: f64) {
        (self.per_s, self.usual_per_s, self.best_per_s) = (per_s, per_s, per_s);
        self.retry_part = 1.0;
    }

    /// Takes feedback. Where a queue stands, what came through is what the path carries; elsewhere
    /// the path carries at least that. Returns whether a queue stood for the whole span.
    pub(super) fn note(
        &mut self,
        sample: &Sample,
        span: Duration,
        busy: bool,
        losses: &Delivered,
    ) -> bool {
        let mut was_busy = false;
        let enough = Duration::from_secs_f64(RATE_FRAMES / self.per_s);
        let span = span.max(enough);
        self.busy = if busy { self.busy + sample.span } else { Duration::ZERO };
        let gap = Duration::from_secs_f64(GAP_FACTOR * sample.told / self.per_s);
        self.arrivals.note(sample, SPANS * span, span.max(gap));
        for spans in [1, SPANS] {
            let Some(rate) = self.arrivals.rate(spans * span) else { return was_busy };
            let error = losses.loss_error(rate.frames);
            let came_per_s = rate.least_per_s * rate.came_per_s / rate.sent_per_s;
            if rate.held && !core::mem::replace(&mut self.is_known, true) {
                // Of so few frames nobody knows how many were lost by chance, and an application
                // may have sent all it wanted.
                self.replace_guess(rate.least_per_s);
            }
            if self.busy >= spans * span && rate.held {
                self.per_s = rate.sent_per_s * (1.0 - losses.dropped_ratio());
                was_busy = true;
                break;
            }
            let came = 1.0 - losses.loss_ratio().min(losses.least_loss());
            let delivered = came_per_s / came * (1.0 - ERRORS * error / came);
            self.per_s = self.per_s.max(delivered.min(rate.least_per_s)).max(came_per_s);
        }
        self.per_s = self.per_s.max(1.0);
        was_busy
    }

    /// Pairs of frames show the capacity.
    pub(super) fn set_known(&mut self, per_s: f64) {
        let per_s = per_s.clamp(1.0, FRAMES_PER_S_MAX);
        if !core::mem::replace(&mut self.is_known, true) {
            self.replace_guess(per_s);
        }
        self.per_s = per_s;
    }

    /// Forgets arrivals: a pause says nothing.
    pub(super) fn restart(&mut self) {
        self.arrivals.restart();
    }

    /// Lets the peaks decay. The peak rate shows how long a frame takes, whatever is sent now.
    pub(super) fn fade(&mut self, passed: Duration, is_guess: bool) {
        let kept = 0.5f64.powf(passed.as_secs_f64() / PEAK_MEMORY.as_secs_f64());
        let above = (self.peak_per_s - self.per_s).max(0.0);
        // The initial guess must not be remembered.
        let kept = if is_guess { 0.0 } else { kept };
        self.peak_per_s = self.per_s + kept * above;
        self.best_per_s = self.usual_per_s + kept * (self.best_per_s - self.usual_per_s).max(0.0);
    }

    /// What to try again, in frames/s, where the capacity is low: between the average and its
    /// long-term maximum.
    pub(super) fn retry_per_s(&self) -> f64 {
        self.usual_per_s + self.retry_part * (self.best_per_s - self.usual_per_s)
    }

    /// The rate was raised towards that.
    pub(super) fn note_retry(&mut self) {
        self.retries = true;
    }

    /// A round trip has passed; `goes_on`: the rate is still to be raised. If there is a queue, the
    /// path does not carry more: next time only half of the difference is tried.
    pub(super) fn end_retry(&mut self, is_queued: bool, goes_on: bool) {
        if self.retries && is_queued {
            self.retry_part /= 2.0;
        }
        self.retries &= goes_on && !is_queued;
    }

    /// A round trip has passed, or more where feedback is rare.
    pub(super) fn note_usual(&mut self, now: Time, round_trip: Duration, counts: bool) {
        let passed = now - core::mem::replace(&mut self.usual_at, now);
        if counts {
            let averaged = USUAL_TIME.max(USUAL_ROUND_TRIPS * round_trip);
            let weight = passed.div_duration_f64(averaged).min(1.0);
            self.usual_per_s += weight * (self.per_s - self.usual_per_s);
            if self.usual_per_s >= self.best_per_s {
                (self.best_per_s, self.retry_part) = (self.usual_per_s, 1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(10);

    /// Feedback about as many frames as arrived in 10 ms; the sender was application-limited.
    fn unlimited(per_s: f64) -> Sample {
        let told = per_s * INTERVAL.as_secs_f64();
        let round_trip = Duration::from_millis(40);
        Sample {
            one_way_us: 20_000,
            is_long: true,
            round_trip,
            round_trip_smoothed: round_trip,
            told,
            span: INTERVAL,
            sent_span: INTERVAL,
            frames: told as usize,
            came: told as usize,
            limited: false,
            shares_air: false,
            pair_per_s: None,
        }
    }

    #[test]
    fn a_long_queue_that_grows_and_shrinks_is_no_jitter() {
        let mut delay = DelayModel::default();
        let mut longest = Duration::ZERO;
        for feedback in 0..4_000_u32 {
            let now = Time::ZERO + feedback * INTERVAL;
            // From 0 to 1 s and back every 2.4 s, after 10 s without any.
            let step = (feedback % 240).abs_diff(120);
            let queue_us = if feedback < 1_000 { 0 } else { step * 1_000_000 / 120 };
            let round_trip = Duration::from_millis(40) + Duration::from_micros(queue_us.into());
            let sample = Sample {
                one_way_us: 20_000 + queue_us,
                round_trip,
                round_trip_smoothed: round_trip,
                ..unlimited(1_000.0)
            };
            delay.note(now, &sample, round_trip, (true, false));
            longest = longest.max(delay.jitter(1_000.0));
        }
        assert!(longest < Duration::from_millis(20), "{longest:?}");
    }
}
