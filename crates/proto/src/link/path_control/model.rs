//! What feedback shows of a path: delays above the least, what of them is noise, and what comes
//! through.

use core::time::Duration;

use corridor_base::Time;

use super::Sample;
use super::filter::MinFilter;
use super::spread::Spread;

/// Frames a second before anything was measured.
pub(super) const FRAMES_PER_S_FIRST: f64 = 500.0;
/// Bounds of the rate.
pub(super) const FRAMES_PER_S_MIN: f64 = 20.0;
/// See [`FRAMES_PER_S_MIN`].
pub(super) const FRAMES_PER_S_MAX: f64 = 2e6;
/// Queueing delay that is not told from noise: so many times the jitter, within these bounds.
const JITTER_FACTOR: f64 = 4.0;
const NOISE_MIN: Duration = Duration::from_micros(400);
/// What is noise in any case, in round trips: a rate that is too low costs more than a frame that
/// stands in a queue.
const NOISE_PER_RTT: f64 = 0.05;
/// See [`JITTER_FACTOR`].
pub(super) const NOISE_MAX: Duration = Duration::from_millis(1);
/// Where delays differ more than noise allows for, as of a medium that sends again what was lost,
/// the queue varies by itself, and runs empty unless it is aimed at as much more, up to this.
const VARIES_MAX: Duration = Duration::from_millis(2);
/// Weight of the newest difference in the jitter, one part in so many.
const JITTER_PARTS: f64 = 32.0;
/// How long after a long frame short ones say nothing of delay.
const SHORT_AFTER: Duration = Duration::from_secs(1);
/// How long the least delay is remembered: clocks drift.
const BASE_MEMORY: Duration = Duration::from_secs(20);
/// How long the most that came through is remembered: half of what is above is forgotten.
pub(super) const PEAK_MEMORY: Duration = Duration::from_secs(20);
/// Over how long that is averaged, and over how many round trips at least.
const USUAL_TIME: Duration = Duration::from_millis(250);
const USUAL_ROUND_TRIPS: u32 = 8;
/// Least span that counts as a round trip.
pub(super) const ROUND_TRIP_MIN: Duration = Duration::from_millis(2);

/// Delays on the way to the other end.
#[derive(Debug)]
pub(super) struct DelayModel {
    /// The newest one-way delay as it was told, and by how much it is above the first.
    one_way: Option<(u32, i64)>,
    /// Least one-way delay in the long run, of short and of long frames.
    base: [MinFilter; 2],
    /// What the one-way delay was above that, the least of late: without the noise on top.
    standing: MinFilter,
    /// How much delays differ from one sample to the next, on average, nanoseconds.
    jitter_ns: f64,
    /// How much the least delays of half a round trip differ, and how long that is.
    spread: Spread,
    span: Duration,
    round_trip: Duration,
    /// Less is never told from noise: of a long way it is not worth the risk.
    noise_min: Duration,
    /// When a long frame was reported last.
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
            noise_min: NOISE_MAX,
            long_at: None,
            last_one_way: [None; 2],
        }
    }
}

impl DelayModel {
    /// Queueing delay of late.
    pub(super) fn queueing(&self) -> Duration {
        let standing = self.standing.least().unwrap_or(0);
        Duration::from_nanos(u64::try_from(standing).unwrap_or(0))
    }

    /// Queueing delay that is not told from noise.
    pub(super) fn noise(&self) -> Duration {
        let noise = Duration::from_nanos((JITTER_FACTOR * self.jitter_ns) as u64);
        noise.clamp(self.noise_min, NOISE_MAX)
    }

    /// By how much delays differ beyond what noise allows for.
    pub(super) fn varies(&self, peak_per_s: f64) -> Duration {
        let above = self.jitter_ns - NOISE_MAX.as_nanos() as f64 / JITTER_FACTOR;
        let above = Duration::from_nanos(above.max(0.0) as u64).min(VARIES_MAX);
        above.max(self.jitter(peak_per_s))
    }

    /// By how much the least delays of half a round trip are above the least of all without a
    /// queue, beyond what noise allows for and another frame that is on the air.
    pub(super) fn jitter(&self, peak_per_s: f64) -> Duration {
        let frame = Duration::from_secs_f64(1.0 / peak_per_s.max(FRAMES_PER_S_MIN));
        let spread = self.spread.above_least(self.span, BASE_MEMORY);
        spread.saturating_sub(self.noise() + frame).min(self.round_trip / 2)
    }

    /// Takes feedback. `is_steady`: the rate is not changed on purpose, so that it is the path's
    /// doing by what delays differ.
    pub(super) fn note(
        &mut self,
        now: Time,
        sample: &Sample,
        round_trip: Duration,
        is_steady: bool,
    ) {
        let per_rtt = sample.round_trip_smoothed.mul_f64(NOISE_PER_RTT);
        self.noise_min = per_rtt.clamp(NOISE_MIN, NOISE_MAX);
        let one_way_ns = self.one_way_ns(sample.one_way_us);
        let class = usize::from(sample.is_long);
        if sample.is_long {
            self.long_at = Some(now);
        } else if self.long_at.is_some_and(|at| now - at < SHORT_AFTER) {
            // Few of these are reported by themselves: their least delay is not known well.
            return;
        }
        let base = &mut self.base[class];
        base.push(now, one_way_ns, BASE_MEMORY);
        let above = one_way_ns - base.least().unwrap_or(one_way_ns);
        self.span = (round_trip / 2).max(NOISE_MAX);
        self.round_trip = sample.round_trip_smoothed;
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
            // By more than that only clocks jump.
            if differs <= round_trip {
                self.jitter_ns += (differs.as_nanos() as f64 - self.jitter_ns) / JITTER_PARTS;
            }
        }
    }

    /// One-way delay above the first: as long as it does not change by more than 35 minutes at a
    /// time, it does not matter that clocks wrap.
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

    /// The least delay is so much longer from now on.
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

/// Frames a second that come through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throughput {
    /// Of late, lost ones included.
    pub(super) per_s: f64,
    /// The most of it in the long run.
    pub(super) peak_per_s: f64,
    /// What comes through as a rule, and the most of that in the long run.
    pub(super) usual_per_s: f64,
    pub(super) best_per_s: f64,
    usual_at: Time,
}

impl Throughput {
    pub(super) fn new(now: Time) -> Self {
        Throughput {
            per_s: FRAMES_PER_S_FIRST,
            peak_per_s: 0.0,
            usual_per_s: 0.0,
            best_per_s: 0.0,
            usual_at: now,
        }
    }

    /// What comes through says what the path takes only where it was kept busy, and not as long as
    /// feedback tells of a probe. After a queue was drained the rate begins low: if it was of
    /// others, they have taken what was left.
    ///
    /// Rates count by the spans they are about, so that a frame that comes late, and the next one
    /// that follows at once, are together what they should be. A mean of the rates themselves is
    /// too high wherever spans vary, the more the shorter they are.
    pub(super) fn note(&mut self, sample: Sample, round_trip: Duration, probed: bool) {
        if sample.span.is_zero() || probed {
            return;
        }
        let rate = (sample.told / sample.span.as_secs_f64()).min(FRAMES_PER_S_MAX);
        let share = sample.span.div_duration_f64(round_trip).min(1.0);
        if sample.limited || rate > self.per_s {
            self.per_s += share * (rate - self.per_s);
        }
    }

    /// What the path has taken at most says how long a frame takes, whatever is sent now.
    pub(super) fn fade(&mut self, passed: Duration, is_guess: bool) {
        let kept = 0.5f64.powf(passed.as_secs_f64() / PEAK_MEMORY.as_secs_f64());
        let above = (self.peak_per_s - self.per_s).max(0.0);
        // What it begins with is a guess, of which nothing is to be remembered.
        let kept = if is_guess { 0.0 } else { kept };
        self.peak_per_s = self.per_s + kept * above;
        self.best_per_s = self.usual_per_s + kept * (self.best_per_s - self.usual_per_s).max(0.0);
    }

    /// A round trip has passed, or more where feedback is rare.
    pub(super) fn note_usual(&mut self, now: Time, round_trip: Duration, counts: bool) {
        let passed = now - core::mem::replace(&mut self.usual_at, now);
        if counts {
            let averaged = USUAL_TIME.max(USUAL_ROUND_TRIPS * round_trip);
            let weight = passed.div_duration_f64(averaged).min(1.0);
            self.usual_per_s += weight * (self.per_s - self.usual_per_s);
            self.best_per_s = self.best_per_s.max(self.usual_per_s);
        }
    }
}
