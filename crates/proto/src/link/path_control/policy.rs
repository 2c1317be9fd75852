//! The rate of a window's frames: what the path takes, and hardly a queue.
//!
//! Random loss says nothing about congestion, delay does. As in Copa (Arun and Balakrishnan, NSDI
//! 2018), a flow aims at a few frames queued: the rate is what comes through, more while less
//! than that is queued, less while more is. Where the queue never drains, somebody fills it who
//! takes no notice of delay; then a window of frames grows and shrinks as TCP's does, at losses
//! that come while much is queued, and the flow holds its share. A queue that came at once, and
//! stays as it is whatever is sent, is none: the way has become longer.
//!
//! Different from Copa: the rate is controlled, not a window of frames; delay is that of one way,
//! so that feedback may wait for data to be sent with; delays that cannot be told from jitter count
//! as none, however much that is ([`Spread`]); and what is delivered bounds the rate where no queue
//! can show ([`Delivered`]).

use core::time::Duration;

use corridor_base::Time;

use crate::link::path_control::delivered::Delivered;
use crate::link::path_control::filter::MinFilter;
use crate::link::path_control::spread::Spread;
use crate::stats::Stats;

/// Frames a second before anything was measured.
const FRAMES_PER_S_FIRST: f64 = 500.0;
/// Bounds of the rate.
const FRAMES_PER_S_MIN: f64 = 20.0;
/// See [`FRAMES_PER_S_MIN`].
const FRAMES_PER_S_MAX: f64 = 2e6;
/// Queueing delay that is not told from noise: so many times the jitter, within these bounds.
const JITTER_FACTOR: f64 = 4.0;
const NOISE_MIN: Duration = Duration::from_micros(400);
/// What is noise in any case, in round trips: a rate that is too low costs more than a frame that
/// stands in a queue.
const NOISE_PER_RTT: f64 = 0.05;
/// See [`JITTER_FACTOR`].
const NOISE_MAX: Duration = Duration::from_millis(1);
/// Where delays differ more than noise allows for, as of a medium that sends again what was lost,
/// the queue varies by itself, and runs empty unless it is aimed at as much more, up to this.
const VARIES_MAX: Duration = Duration::from_millis(2);
/// Weight of the newest difference in the jitter, one part in so many.
const JITTER_PARTS: f64 = 32.0;
/// Copa's default delta, and its reciprocal: frames kept queued.
const QUEUED: f64 = 1.0;
/// Beside flows that fill the queue: frames by which the window grows in a round trip, and what
/// stays of it after a loss. Cubic in its Reno-friendly region has .53 and .7 (RFC 9438, Section
/// 4.3), but its packets come in bursts and are lost oftener: with as much growth, paced frames got
/// 57 to 66 % of a shared bottleneck, with this 51 to 58 %.
const COMPETE_GROWTH: f64 = 0.35;
const COMPETE_DECREASE: f64 = 0.7;
/// A loss is one of congestion where more than this share of the longest queue stood.
const CONGESTED_RATIO: f64 = 0.7;
/// Bounds of the window beside such flows, frames.
const COMPETE_WINDOW_MIN: f64 = 4.0;
const COMPETE_WINDOW_MAX: f64 = 100_000.0;
/// How long the most that came through is remembered: half of what is above is forgotten.
const PEAK_MEMORY: Duration = Duration::from_secs(20);
/// How long after a long frame short ones say nothing of delay.
const SHORT_AFTER: Duration = Duration::from_secs(1);
/// How long the least delay is remembered: clocks drift.
const BASE_MEMORY: Duration = Duration::from_secs(20);
/// How long the queue may stand as it is aimed at before it is emptied for a moment: else the least
/// delay would come to be with that much of a queue, and the queue would creep up for ever.
const STANDING_MAX: Duration = Duration::from_secs(9);
/// Round trips in which a queue of ours alone has drained at least once.
const DRAIN_ROUND_TRIPS: u32 = 5;
/// And at least this long.
const DRAIN_PATIENCE_MIN: Duration = Duration::from_millis(200);
/// A queue that stays drained for so many times as long is nobody's: behind a short buffer, one
/// that is somebody's stays drained for a while after each loss.
const LEAVE_FACTOR: u32 = 6;
/// A queue is drained when less stays than this, or than so many frames.
const DRAINED: Duration = Duration::from_millis(3);
const DRAINED_FRAMES: f64 = 4.0;
/// Feedback that has to tell what came of it before a queue that stays counts as none.
const DRAIN_TOLD_MIN: u32 = 3;
/// Share of the rate that goes on while a queue is drained.
const DRAIN_RATIO: f64 = 0.25;
/// Round trips beside a filler of queues before it is looked for again.
const COMPETE_ROUND_TRIPS: u32 = 150;
/// Least gain above what comes through while nothing is queued; it doubles each round trip.
const GAIN_FIRST: f64 = 0.02;
/// Most of it: a queue of ours would be no longer than this share of a round trip.
const GAIN_MAX: f64 = 0.5;
/// The gain of the start.
const GAIN_START: f64 = 1.0;
/// The least: some feedback must go on.
const GAIN_MIN: f64 = -0.75;
/// Round trips in which an excess or a want of queue is to be gone.
const SETTLE_ROUND_TRIPS: f64 = 2.0;
/// Round trips that a short queue stands for before it is looked whether it is one, and the least
/// time from one look to the next.
const EXCESS_ROUND_TRIPS: u32 = 6;
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// The same in round trips.
const PROBE_INTERVAL_ROUND_TRIPS: u32 = 20;
/// It doubles with each look that finds a queue, so often at most.
const VAIN_PROBES_MAX: u32 = 5;
/// Share of the most that usually came through below which it is worth a look.
const PROBE_BELOW: f64 = 0.9;
/// Over how long that is averaged, and over how many round trips at least.
const USUAL_TIME: Duration = Duration::from_millis(250);
const USUAL_ROUND_TRIPS: u32 = 8;
/// Round trips that a look takes, besides the one after which is told of it.
const PROBE_ROUND_TRIPS: u32 = 2;
/// Least span that counts as a round trip.
const ROUND_TRIP_MIN: Duration = Duration::from_millis(2);

/// What feedback tells of delay and loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// One-way delay of the newest frame, on clocks whose difference is constant and which wrap,
    /// microseconds.
    pub(crate) one_way_us: u32,
    /// The frame is one of the longer ones, which take longer themselves.
    pub(crate) is_long: bool,
    /// Round trip as far as it is known, up to when feedback is late.
    pub(crate) round_trip: Duration,
    /// The same, smoothed.
    pub(crate) round_trip_smoothed: Duration,
    /// Frames that feedback newly told of, a short one counted as its part of a long one, and the
    /// span in which they came.
    pub(crate) told: f64,
    /// See `told`; zero if it is not known.
    pub(crate) span: Duration,
    /// How many frames these were, and how many of them are lost.
    pub(crate) frames: usize,
    /// See `frames`.
    pub(crate) lost: usize,
    /// The rate has held most of these frames back, and none came after a gap in what was sent.
    pub(crate) limited: bool,
    /// Both ways share the air.
    pub(crate) shares_air: bool,
}

/// What the controller is about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Doubles each round trip until a queue shows.
    Start,
    /// Follows delay.
    Follow,
    /// Sends little, to see whether the queue is its own.
    Drain {
        /// It was, if the queue is gone by then.
        until: Time,
        /// Feedback from then on tells what came of it.
        told_from: Time,
        /// How often it has.
        told: u32,
    },
    /// Sends little, to see whether a short queue that stands is one.
    Probe {
        until: Time,
        /// Its length, and by how much it will have become shorter by then if it is one.
        queueing: Duration,
        shorter: Duration,
    },
    /// Holds its share beside flows that fill the queue.
    Compete {
        /// Then it looks again whether they are still there.
        until: Time,
    },
}

/// The controller.
#[derive(Debug)]
pub(crate) struct RateControl {
    phase: Phase,
    frames_per_s: f64,
    /// Frames a second that came through of late, lost ones included.
    through_per_s: f64,
    /// The most of it in the long run.
    peak_per_s: f64,
    /// What comes through as a rule, and the most of that in the long run.
    usual_per_s: f64,
    best_per_s: f64,
    usual_at: Time,
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
    delivered: Delivered,
    /// Less is never told from noise: of a long way it is not worth the risk.
    noise_min: Duration,
    /// When a long frame was told of last.
    long_at: Option<Time>,
    last_one_way: [Option<i64>; 2],
    /// Gain while nothing is queued.
    gain: f64,
    round_trip_ends: Time,
    adjusted_at: Time,
    /// Until when feedback tells of frames that were few on purpose, and of those of a probe.
    lowered_told_until: Time,
    probe_told_until: Time,
    /// When the queue was drained last, and when it was not.
    drained_at: Time,
    filled_at: Time,
    /// When nothing of it was ours last, and for how long nothing is to be sent so that it is so.
    emptied_at: Time,
    pause: Option<Duration>,
    /// The shortest and the longest queue since it has been long for a while.
    stood_least: Duration,
    stood_most: Duration,
    /// Round trips since which a short queue stands, looks in a row that found one, and when it was
    /// looked at last.
    excess_round_trips: u32,
    vain_probes: u32,
    probed_at: Option<Time>,
    /// Beside flows that fill the queue: frames that may be on their way, and the longest queue.
    window: f64,
    longest: Duration,
    competed_at: Option<Time>,
    congested_in_round_trip: bool,
    /// The window became smaller in the round trip before this.
    decreased: bool,
}

impl RateControl {
    pub(crate) fn new(now: Time) -> Self {
        RateControl {
            phase: Phase::Start,
            frames_per_s: FRAMES_PER_S_FIRST,
            through_per_s: FRAMES_PER_S_FIRST,
            peak_per_s: 0.0,
            usual_per_s: 0.0,
            best_per_s: 0.0,
            usual_at: now,
            one_way: None,
            base: Default::default(),
            jitter_ns: 0.0,
            spread: Spread::default(),
            span: NOISE_MAX,
            round_trip: ROUND_TRIP_MIN,
            delivered: Delivered::default(),
            noise_min: NOISE_MAX,
            long_at: None,
            last_one_way: [None; 2],
            standing: MinFilter::default(),
            gain: GAIN_START,
            round_trip_ends: now,
            adjusted_at: now,
            lowered_told_until: now,
            probe_told_until: now,
            drained_at: now,
            filled_at: now,
            emptied_at: now,
            pause: None,
            stood_least: Duration::ZERO,
            stood_most: Duration::ZERO,
            excess_round_trips: 0,
            vain_probes: 0,
            probed_at: None,
            window: COMPETE_WINDOW_MIN,
            longest: Duration::ZERO,
            competed_at: None,
            congested_in_round_trip: false,
            decreased: false,
        }
    }

    /// Frames a second.
    pub(crate) fn frames_per_s(&self) -> f64 {
        if self.is_lowered() { DRAIN_RATIO * self.frames_per_s } else { self.frames_per_s }
    }

    /// How long nothing is to be sent, if a queue of ours is to be emptied; told once. What comes
    /// behind that gap says nothing of the path's rate.
    pub(crate) fn take_pause(&mut self) -> Option<Duration> {
        self.pause.take()
    }

    /// Whether feedback tells of frames that were few on purpose.
    pub(crate) fn tells_of_few(&self, now: Time) -> bool {
        now <= self.lowered_told_until
    }

    /// Whether little is sent, to see what becomes of a queue.
    fn is_lowered(&self) -> bool {
        matches!(self.phase, Phase::Drain { .. } | Phase::Probe { .. })
    }

    /// Frames a second that came through of late.
    pub(crate) fn through_per_s(&self) -> f64 {
        self.through_per_s
    }

    /// Queueing delay of late.
    fn queueing(&self) -> Duration {
        let standing = self.standing.least().unwrap_or(0);
        Duration::from_nanos(u64::try_from(standing).unwrap_or(0))
    }

    /// Takes feedback, and adjusts the rate.
    pub(crate) fn note(&mut self, now: Time, sample: Sample, stats: &mut Stats) {
        let round_trip = sample.round_trip.max(ROUND_TRIP_MIN);
        let passed = now - self.adjusted_at;
        self.adjusted_at = now;
        if passed > patience(round_trip) {
            // Nothing is known of a pause, and clocks drift in it.
            (self.drained_at, self.filled_at, self.emptied_at) = (now, now, now);
            self.last_one_way = [None; 2];
            self.delivered.restart();
        } else {
            self.delivered.note(now, &sample, round_trip);
        }
        self.note_one_way(now, &sample, round_trip);
        if self.is_lowered() {
            self.lowered_told_until = now + round_trip;
        }
        if let Phase::Probe { .. } = self.phase {
            self.probe_told_until = now + round_trip;
        }
        if !sample.limited && self.leaves_gap(&sample) {
            self.emptied_at = now;
        }
        self.note_through(sample, round_trip, now <= self.probe_told_until);
        self.fade_peak(passed);
        let queueing = self.queueing();
        self.longest = self.longest.max(queueing);
        let much = queueing > self.longest.mul_f64(CONGESTED_RATIO);
        self.congested_in_round_trip |= sample.lost > 0 && much;
        if queueing < self.drained_below() {
            self.drained_at = now;
        } else {
            self.filled_at = now;
        }
        if now - self.drained_at <= patience(round_trip) / 2 {
            (self.stood_least, self.stood_most) = (queueing, queueing);
        } else {
            self.stood_least = self.stood_least.min(queueing);
            self.stood_most = self.stood_most.max(queueing);
        }
        let before = self.phase;
        self.change_phase(now, queueing, sample);
        if now >= self.round_trip_ends {
            self.end_round_trip(queueing, sample.limited);
            let round_trip = sample.round_trip_smoothed.max(ROUND_TRIP_MIN);
            self.note_usual(now, round_trip);
            // On shared air, delay comes and goes with what the other way sends.
            if !sample.shares_air {
                self.note_excess(now, queueing, round_trip);
            }
            self.round_trip_ends = now + round_trip;
        }
        if self.phase == Phase::Follow && now - self.emptied_at > STANDING_MAX {
            self.emptied_at = now;
            self.pause = Some(queueing + self.noise());
        }
        self.count_phase(before, stats);
        self.adjust(self.queueing(), sample);
    }

    fn note_one_way(&mut self, now: Time, sample: &Sample, round_trip: Duration) {
        let per_rtt = sample.round_trip_smoothed.mul_f64(NOISE_PER_RTT);
        self.noise_min = per_rtt.clamp(NOISE_MIN, NOISE_MAX);
        let one_way_ns = self.one_way_ns(sample.one_way_us);
        let class = usize::from(sample.is_long);
        if sample.is_long {
            self.long_at = Some(now);
        } else if self.long_at.is_some_and(|at| now - at < SHORT_AFTER) {
            // Few of these are told of by themselves: their least delay is not known well.
            return;
        }
        let base = &mut self.base[class];
        base.push(now, one_way_ns, BASE_MEMORY);
        let above = one_way_ns - base.least().unwrap_or(one_way_ns);
        self.span = (round_trip / 2).max(NOISE_MAX);
        self.round_trip = sample.round_trip_smoothed;
        self.standing.push(now, above, self.span);
        if matches!(self.phase, Phase::Follow | Phase::Compete { .. }) {
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

    /// What comes through says what the path takes only where it was kept busy, and not as long as
    /// feedback tells of a probe. After a queue was drained the rate begins low: if it was of
    /// others, they have taken what was left.
    ///
    /// Rates count by the spans they are about, so that a frame that comes late, and the next one
    /// that follows at once, are together what they should be. A mean of the rates themselves is
    /// too high wherever spans vary, the more the shorter they are.
    fn note_through(&mut self, sample: Sample, round_trip: Duration, probed: bool) {
        if sample.span.is_zero() || probed {
            return;
        }
        let rate = (sample.told / sample.span.as_secs_f64()).min(FRAMES_PER_S_MAX);
        let share = sample.span.div_duration_f64(round_trip).min(1.0);
        if sample.limited || rate > self.through_per_s {
            self.through_per_s += share * (rate - self.through_per_s);
        }
    }

    /// What the path has taken at most says how long a frame takes, whatever is sent now.
    fn fade_peak(&mut self, passed: Duration) {
        let kept = 0.5f64.powf(passed.as_secs_f64() / PEAK_MEMORY.as_secs_f64());
        let above = (self.peak_per_s - self.through_per_s).max(0.0);
        // What it begins with is a guess, of which nothing is to be remembered.
        let kept = if self.phase == Phase::Start { 0.0 } else { kept };
        self.peak_per_s = self.through_per_s + kept * above;
        self.best_per_s = self.usual_per_s + kept * (self.best_per_s - self.usual_per_s).max(0.0);
    }

    /// A round trip has passed, or more where feedback is rare.
    fn note_usual(&mut self, now: Time, round_trip: Duration) {
        let passed = now - core::mem::replace(&mut self.usual_at, now);
        if matches!(self.phase, Phase::Start | Phase::Follow) {
            let averaged = USUAL_TIME.max(USUAL_ROUND_TRIPS * round_trip);
            let weight = passed.div_duration_f64(averaged).min(1.0);
            self.usual_per_s += weight * (self.through_per_s - self.usual_per_s);
            self.best_per_s = self.best_per_s.max(self.usual_per_s);
        }
    }

    /// Whether frames came so far apart that nothing of ours was queued between.
    fn leaves_gap(&self, sample: &Sample) -> bool {
        let takes = Duration::from_secs_f64(sample.told / self.through_per_s);
        sample.span > takes + self.queueing() + self.noise()
    }

    fn drained_below(&self) -> Duration {
        DRAINED.max(Duration::from_secs_f64(DRAINED_FRAMES / self.peak_per_s)) + self.varies()
    }

    fn change_phase(&mut self, now: Time, queueing: Duration, sample: Sample) {
        let round_trip = sample.round_trip.max(ROUND_TRIP_MIN);
        let drained = self.drained_at == now;
        let patience = patience(round_trip);
        let drain = Phase::Drain {
            until: now + 2 * queueing + 2 * round_trip,
            told_from: now + round_trip,
            told: 0,
        };
        self.phase = match self.phase {
            Phase::Probe { until, queueing, shorter } if now > until => {
                self.end_probe(now, queueing, shorter);
                Phase::Follow
            }
            Phase::Start if queueing > self.aim() => drain,
            // No queue has shown so far, and a short buffer may drop what is too much.
            Phase::Start if self.delivered.is_full() => {
                self.delivered.look();
                Phase::Follow
            }
            Phase::Follow if self.delivered.take_false_alarm() => Phase::Start,
            Phase::Follow if now - self.drained_at > patience => {
                self.prepare_to_compete(now, queueing, sample);
                drain
            }
            Phase::Drain { .. } if drained => Phase::Follow,
            // It takes a while to tell whether a queue stays as it is.
            Phase::Drain { until, told, .. } if now > until && now - self.drained_at > patience => {
                if told >= DRAIN_TOLD_MIN && self.stood_most - self.stood_least <= self.noise() {
                    // It came at once, and has stayed as it was whatever was sent.
                    self.lengthen_way(now, queueing);
                    Phase::Follow
                } else {
                    self.competed_at = Some(now);
                    Phase::Compete { until: now + COMPETE_ROUND_TRIPS * round_trip }
                }
            }
            Phase::Drain { until, told_from, told } => {
                Phase::Drain { until, told_from, told: told + u32::from(now >= told_from) }
            }
            Phase::Compete { .. } if now - self.filled_at > LEAVE_FACTOR * patience => {
                self.competed_at = Some(now);
                Phase::Follow
            }
            Phase::Compete { until } if now > until => drain,
            same => same,
        };
    }

    fn count_phase(&self, before: Phase, stats: &mut Stats) {
        match (before, self.phase) {
            (Phase::Drain { .. }, Phase::Drain { .. })
            | (Phase::Compete { .. }, Phase::Compete { .. }) => {}
            (_, Phase::Drain { .. }) => stats.rate_drains += 1,
            (Phase::Follow, Phase::Probe { .. }) => stats.rate_probes += 1,
            (_, Phase::Compete { .. }) => stats.rate_competitions += 1,
            _ => {}
        }
    }

    /// Whoever competed until recently goes on with what it had then: a queue that was empty for a
    /// moment was so because all have met with loss. Others begin with half of the path.
    fn prepare_to_compete(&mut self, now: Time, queueing: Duration, sample: Sample) {
        if self.competed_at.is_none_or(|at| now - at > PEAK_MEMORY) {
            let on_their_way = self.peak_per_s * sample.round_trip_smoothed.as_secs_f64();
            self.window = (0.5 * on_their_way).max(COMPETE_WINDOW_MIN);
            self.longest = queueing;
        }
    }

    /// Queueing delay that is not told from noise.
    fn noise(&self) -> Duration {
        let noise = Duration::from_nanos((JITTER_FACTOR * self.jitter_ns) as u64);
        noise.clamp(self.noise_min, NOISE_MAX)
    }

    /// Queueing delay that is aimed at.
    fn aim(&self) -> Duration {
        let noise = self.noise();
        // Where delays can be told well, less than a frame will do.
        let queued = QUEUED * noise.div_duration_f64(NOISE_MAX);
        noise + self.varies() + Duration::from_secs_f64(queued / self.through_per_s)
    }

    /// By how much delays differ beyond what noise allows for.
    fn varies(&self) -> Duration {
        let above = self.jitter_ns - NOISE_MAX.as_nanos() as f64 / JITTER_FACTOR;
        let above = Duration::from_nanos(above.max(0.0) as u64).min(VARIES_MAX);
        above.max(self.jitter())
    }

    /// By how much the least delays of half a round trip are above the least of all without a
    /// queue, beyond what noise allows for and another frame that is on the air.
    fn jitter(&self) -> Duration {
        let frame = Duration::from_secs_f64(1.0 / self.peak_per_s.max(FRAMES_PER_S_MIN));
        let spread = self.spread.above_least(self.span, BASE_MEMORY);
        spread.saturating_sub(self.noise() + frame).min(self.round_trip / 2)
    }

    fn end_round_trip(&mut self, queueing: Duration, limited: bool) {
        if let Phase::Compete { .. } = self.phase {
            // What is lost in the round trip after a decrease was sent before it.
            let congested = self.congested_in_round_trip && !self.decreased;
            let window = match (congested, limited) {
                (true, _) => COMPETE_DECREASE * self.window,
                (false, true) => self.window + COMPETE_GROWTH,
                (false, false) => self.window,
            };
            self.decreased = congested;
            self.window = window.clamp(COMPETE_WINDOW_MIN, COMPETE_WINDOW_MAX);
        }
        self.congested_in_round_trip = false;
        self.gain = match self.phase {
            Phase::Start => GAIN_START,
            Phase::Compete { .. } => GAIN_FIRST,
            _ if queueing < self.noise() && limited => (2.0 * self.gain).min(GAIN_MAX),
            _ => GAIN_FIRST,
        };
    }

    /// A way that becomes longer, by another route or slower radios, looks like a queue, and the
    /// rate would fall until the least delay is forgotten. But a queue becomes shorter where less
    /// is sent at once; beside one that a filler holds constant too, as it grows slowly.
    fn note_excess(&mut self, now: Time, queueing: Duration, round_trip: Duration) {
        if let Phase::Probe { .. } = self.phase {
            return;
        }
        // One that is about as long as what counts as drained is neither long enough to be drained
        // nor always short enough, so there is more room above than there is below.
        let most = self.drained_below() + self.noise();
        let stands = (self.noise() + self.varies()..most).contains(&queueing);
        if self.phase != Phase::Follow {
            self.excess_round_trips = 0;
            return;
        }
        if !stands {
            // Jitter hides it for a round trip now and then.
            self.excess_round_trips = self.excess_round_trips.saturating_sub(1);
            return;
        }
        self.excess_round_trips += 1;
        let interval = PROBE_INTERVAL.max(PROBE_INTERVAL_ROUND_TRIPS * round_trip);
        let interval = interval * (1 << self.vain_probes);
        let long_ago = self.probed_at.is_none_or(|at| now - at > interval);
        let span = PROBE_ROUND_TRIPS * round_trip;
        let share = self.through_per_s / self.peak_per_s.max(self.through_per_s);
        let shorter = queueing.min(span.mul_f64((1.0 - DRAIN_RATIO) * share));
        if self.excess_round_trips > EXCESS_ROUND_TRIPS
            && long_ago
            && self.usual_per_s < PROBE_BELOW * self.best_per_s
            && shorter > self.noise()
        {
            self.excess_round_trips = 0;
            self.probed_at = Some(now);
            let until = now + span + round_trip;
            self.phase = Phase::Probe { until, queueing, shorter };
        }
    }

    /// Less was sent for a while: a queue that is no shorter is none.
    fn end_probe(&mut self, now: Time, before: Duration, shorter: Duration) {
        let queueing = self.queueing();
        let is_longer = queueing > before + self.noise(); // By others, meanwhile.
        if !is_longer && before.saturating_sub(queueing) < shorter / 2 {
            self.lengthen_way(now, queueing);
            // What came through before will again.
            self.through_per_s = self.best_per_s.max(self.through_per_s);
            self.vain_probes = 0;
        } else {
            // The path takes less than it did, or others take more of it.
            self.best_per_s = self.usual_per_s;
            self.vain_probes = (self.vain_probes + 1).min(VAIN_PROBES_MAX);
        }
    }

    /// The least delay is so much longer from now on.
    fn lengthen_way(&mut self, now: Time, by: Duration) {
        self.usual_per_s = self.best_per_s;
        // What was queued then was measured against the shorter way.
        self.competed_at = None;
        for base in &mut self.base {
            if let Some(least) = base.least() {
                *base = MinFilter::default();
                base.push(now, least + by.as_nanos() as i64, BASE_MEMORY);
            }
        }
        self.standing = MinFilter::default();
    }

    fn adjust(&mut self, queueing: Duration, sample: Sample) {
        let limited = sample.limited;
        let round_trip = sample.round_trip.max(ROUND_TRIP_MIN);
        if let Phase::Probe { .. } = self.phase {
            return;
        }
        if let Phase::Compete { .. } = self.phase {
            let round_trip = sample.round_trip_smoothed.max(ROUND_TRIP_MIN);
            let rate = self.window / round_trip.as_secs_f64();
            self.set_rate(rate);
            return;
        }
        let want = self.aim().as_secs_f64() - queueing.as_secs_f64();
        let gain = want / (SETTLE_ROUND_TRIPS * round_trip.as_secs_f64());
        let gain = if queueing < self.noise() { gain.max(self.gain) } else { gain };
        if gain > 0.0 && !limited {
            // More could go, and nobody wants it.
            if self.delivered.is_excessive() {
                self.set_rate(self.frames_per_s);
            }
            return;
        }
        let most = if self.phase == Phase::Start { GAIN_START } else { GAIN_MAX };
        let next = self.through_per_s * (1.0 + gain.clamp(GAIN_MIN, most));
        // What comes through in a round trip varies with delays, and a rate that follows each of
        // its lows ends low: while no queue stands, as much as was sent may be sent again.
        let is_kept = limited && queueing < self.aim() && !self.jitter().is_zero();
        self.set_rate(if is_kept { next.max(self.frames_per_s) } else { next });
    }

    fn set_rate(&mut self, frames_per_s: f64) {
        let most = match self.phase {
            Phase::Start => self.delivered.start_limit_per_s(),
            _ => self.delivered.limit_per_s(),
        };
        self.frames_per_s = frames_per_s.min(most).clamp(FRAMES_PER_S_MIN, FRAMES_PER_S_MAX);
    }
}

/// How long a queue of ours alone may take to drain.
fn patience(round_trip: Duration) -> Duration {
    (DRAIN_ROUND_TRIPS * round_trip).max(DRAIN_PATIENCE_MIN)
}
