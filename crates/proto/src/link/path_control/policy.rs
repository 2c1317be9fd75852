//! The rate control of window mode: it uses the capacity of the path, with hardly any queue.
//!
//! Random loss says nothing about congestion; delay does. As in Copa (Arun and Balakrishnan, NSDI
//! 2018), a flow aims at a few frames queued: the rate is the path's capacity ([`Capacity`]), and
//! more while fewer frames are queued, less while more are. If the queue never drains, another flow
//! fills it that ignores delay; then a window of frames grows and shrinks as TCP's does, at losses
//! that occur while the queue is long, and the flow holds its share. A queue that appeared
//! suddenly, and stays the same whatever is sent, is no queue: the path has become longer.
//!
//! Differences from Copa: the rate is controlled, not a window of frames, which only limits what is
//! sent into an outage. Delay is one-way, so that feedback can wait to be piggybacked on data.
//! Delays that cannot be distinguished from jitter count as zero, however large the jitter is
//! ([`Spread`](super::spread::Spread)). If the capacity varies, a correspondingly longer queue is
//! aimed at. And the delivery rate bounds the rate where no queue can show ([`Delivered`]). Where
//! pairs of frames show the capacity ([`Dispersion`]), the rate stays just below it.

mod rate_probe;

use core::time::Duration;

use corridor_base::Time;

use crate::link::path_control::compete::Competition;
use crate::link::path_control::delivered::{Delivered, Queue};
use crate::link::path_control::dispersion::{Dispersion, Known};
use crate::link::path_control::model::{
    Capacity, DelayModel, FRAMES_PER_S_FIRST, FRAMES_PER_S_MAX, FRAMES_PER_S_MIN, NOISE_MAX,
    PEAK_MEMORY, ROUND_TRIP_MIN, Wander,
};
use crate::link::path_control::{PathControl, Sample};
use crate::stats::Stats;

use rate_probe::RateProbes;

/// Bounds of the span over which a rate is counted.
const RATE_SPAN_MIN: Duration = Duration::from_millis(5);
const RATE_SPAN_MAX: Duration = Duration::from_millis(100);
/// The same in standard deviations of the jitter, which moves both ends of a span: a rate counted
/// over that many has an error of about a sixth.
const JITTER_DEVIATIONS: u32 = 8;
/// Frames that may be in flight, as a multiple of what the path holds (BBR's window gain), plus a
/// constant.
const IN_FLIGHT_FACTOR: f64 = 2.0;
const IN_FLIGHT_MIN: f64 = 32.0;
/// This constant is limited to the frames sent in this time, but not below what a burst of feedback
/// needs: slow paths must not send more into an outage than fast ones.
const IN_FLIGHT_TIME: Duration = Duration::from_millis(500);
const IN_FLIGHT_FEWEST: f64 = 4.0;
/// Copa's default delta, and its reciprocal: frames kept queued.
const QUEUED: f64 = 1.0;
/// So many are too few for flows of a fast path to become equal soon: if that is more, as many as
/// the root of what the path holds of the flow, times this. The queue aimed at then is the longer
/// the less a flow has, as in Swift (Kumar et al., SIGCOMM 2020), but in proportion to the round
/// trip: flows with longer ones aim at longer queues.
const QUEUED_PER_ROOT: f64 = 0.4;
/// Where flows share the path, the queue is as long as those with little aim at. It still counts as
/// drained where it is at most this multiple of what this one aims at.
const SHARED_FACTOR: f64 = 2.0;
/// How long the queue may stand at its target before it is emptied for a moment. Otherwise the
/// minimum delay would come to include that queue, and the queue would grow forever.
const STANDING_MAX: Duration = Duration::from_secs(9);
/// Round trips in which a queue of our own has drained at least once,
const DRAIN_ROUND_TRIPS: u32 = 5;
/// but at least this long.
const DRAIN_PATIENCE_MIN: Duration = Duration::from_millis(200);
/// If the queue stays drained for this many times as long, nobody else fills it. Behind a short
/// buffer, even a filled queue stays drained for a while after each loss.
const LEAVE_FACTOR: u32 = 6;
/// The queue counts as drained if it is shorter than this, or than this many frames.
const DRAINED: Duration = Duration::from_millis(3);
const DRAINED_FRAMES: f64 = 4.0;
/// Feedback needed after a drain before a queue that stays counts as a longer path.
const DRAIN_TOLD_MIN: u32 = 3;
/// Share of the rate at which to send during a drain.
const DRAIN_RATIO: f64 = 0.25;
/// A judgment needs this many of the mean intervals of feedback, in which the newest has this
/// fraction of weight. A longer pause says nothing.
const FEEDBACK_INTERVALS: u32 = 4;
const INTERVAL_PARTS: u32 = 8;
/// Smallest gain above the capacity while there is no queue; it doubles each round trip.
const GAIN_FIRST: f64 = 0.02;
/// Largest gain otherwise: it limits a queue of our own to this share of a round trip.
const GAIN_MAX: f64 = 0.5;
/// The gain at the start, and the largest after the path has been slower for a while.
const GAIN_START: f64 = 1.0;
/// A path that carries less than this multiple of what it did is full (as in BBR's startup).
const GROWN: f64 = 1.25;
/// Most random loss that pairs are expected to meet with.
const RADIO_MAX: f64 = 0.6;
/// Smallest gain: some feedback must go on.
const GAIN_MIN: f64 = -0.75;
/// Largest gain where pairs of frames show the capacity: no queue then has to show it.
const GAIN_PAIRS: f64 = -0.01;
/// The second frame of a pair waits for the first: so many frames, and a little since their times
/// vary, are no queue.
const PAIR_QUEUE: f64 = 1.1;
/// Round trips in which the difference to the target queue should vanish.
const SETTLE_ROUND_TRIPS: f64 = 2.0;

/// The phases of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Doubles the rate each round trip until a queue shows.
    Start,
    /// A queue has shown at the start: sends what is delivered, to find out whether it is one. A
    /// queue stays; jitter passes, and the start goes on (as in HyStart++, RFC 9406, section 4.2).
    Confirm {
        /// Feedback from then on is about frames sent since the queue showed.
        from: Time,
        /// It was a queue if it is still there by then.
        until: Time,
    },
    /// Follows delay.
    Follow,
    /// Sends little, to find out whose the queue is.
    Drain {
        /// The queue was our own if it is gone by then.
        until: Time,
        /// Feedback from then on shows the result.
        told_from: Time,
        /// How often it has done so.
        told: u32,
    },
    /// A rate probe: sends little, to find out whether a short standing delay is a queue.
    Probe {
        until: Time,
        /// Its length, and by how much it will have shrunk by then if it is a queue.
        queueing: Duration,
        shorter: Duration,
    },
    /// Holds its share beside flows that fill the queue.
    Compete {
        /// When to check again whether they are still there.
        until: Time,
    },
}

impl Phase {
    /// Whether the rate still grows from a guess.
    fn is_start(self) -> bool {
        matches!(self, Phase::Start | Phase::Confirm { .. })
    }
}

/// The history of the queue on the path.
#[derive(Clone, Copy, Debug)]
struct QueueWatch {
    /// When it was last drained, and when it was last not.
    drained_at: Time,
    filled_at: Time,
    /// When it last contained nothing of ours, and how long to send nothing so that it does.
    emptied_at: Time,
    pause: Option<Duration>,
    /// The capacity when one last showed at the start, in frames/s.
    at_start_per_s: f64,
    /// The shortest and the longest since it became long.
    stood_least: Duration,
    stood_most: Duration,
    /// Its length when the drain began, or went on.
    before_drain: Duration,
    /// The rate during the drain is based on a counted capacity, not on a guess.
    is_drain_known: bool,
}

/// The controller.
#[derive(Debug)]
pub(crate) struct RateControl {
    phase: Phase,
    frames_per_s: f64,
    delay: DelayModel,
    capacity: Capacity,
    delivered: Delivered,
    /// The gain while there is no queue.
    gain: f64,
    round_trip_ends: Time,
    adjusted_at: Time,
    /// Mean time between feedbacks.
    interval: Duration,
    /// Until when feedback reports on frames that were few on purpose.
    lowered_told_until: Time,
    queue: QueueWatch,
    rate_probes: RateProbes,
    compete: Competition,
    wander: Wander,
    dispersion: Dispersion,
}

impl QueueWatch {
    fn new(now: Time) -> Self {
        let (stood_least, stood_most) = (Duration::ZERO, Duration::ZERO);
        QueueWatch {
            drained_at: now,
            filled_at: now,
            emptied_at: now,
            pause: None,
            at_start_per_s: 0.0,
            stood_least,
            stood_most,
            before_drain: Duration::ZERO,
            is_drain_known: false,
        }
    }

    /// Records the present length of the queue.
    fn note(&mut self, now: Time, queueing: Duration, drained_below: Duration, patience: Duration) {
        if queueing < drained_below {
            self.drained_at = now;
        } else {
            self.filled_at = now;
        }
        if now - self.drained_at <= patience / 2 {
            (self.stood_least, self.stood_most) = (queueing, queueing);
        } else {
            self.stood_least = self.stood_least.min(queueing);
            self.stood_most = self.stood_most.max(queueing);
        }
    }

    /// A pause says nothing about the queue.
    fn note_pause(&mut self, now: Time) {
        (self.drained_at, self.filled_at, self.emptied_at) = (now, now, now);
    }
}

impl RateControl {
    pub(crate) fn new(now: Time) -> Self {
        RateControl {
            phase: Phase::Start,
            frames_per_s: FRAMES_PER_S_FIRST,
            delay: DelayModel::default(),
            capacity: Capacity::new(now),
            delivered: Delivered::default(),
            gain: GAIN_START,
            round_trip_ends: now,
            adjusted_at: now,
            interval: Duration::ZERO,
            lowered_told_until: now,
            queue: QueueWatch::new(now),
            rate_probes: RateProbes::default(),
            compete: Competition::new(),
            wander: Wander::default(),
            dispersion: Dispersion::new(now),
        }
    }
}

impl PathControl for RateControl {
    fn note(&mut self, now: Time, sample: Sample, stats: &mut Stats) {
        let round_trip = sample.round_trip.max(ROUND_TRIP_MIN);
        let passed = now - self.adjusted_at;
        self.adjusted_at = now;
        let patience = self.patience(round_trip);
        let is_pause = passed > patience;
        self.interval =
            (self.interval * (INTERVAL_PARTS - 1) + passed.min(patience)) / INTERVAL_PARTS;
        if is_pause {
            self.note_pause(now);
        }
        // What changes while the rate grows is not all jitter.
        let is_steady = !self.is_lowered() && self.phase != Phase::Start;
        let is_beside = self.compete.is_recent(now, matches!(self.phase, Phase::Compete { .. }));
        let is_told = self.delay.note(now, &sample, round_trip, (is_steady, is_beside));
        if self.is_lowered() {
            self.lowered_told_until = now + round_trip;
        }
        if !is_pause {
            self.note_delivered(now, &sample, round_trip, is_told);
        }
        if !sample.limited && self.leaves_gap(&sample) {
            self.queue.emptied_at = now;
        }
        self.note_pairs(now, &sample, round_trip);
        let queueing = self.queueing();
        // Frames that were few on purpose do not show what the path carries.
        if now > self.lowered_told_until {
            let busy = queueing > self.noticed();
            let span = sample.round_trip_smoothed.clamp(RATE_SPAN_MIN, RATE_SPAN_MAX);
            let span = span.max(JITTER_DEVIATIONS * self.delay.deviation());
            if self.capacity.note(&sample, span, busy, &self.delivered) {
                self.dispersion.note_busy(now, self.capacity.per_s);
            }
        }
        let before = self.phase;
        self.capacity.fade(passed, before.is_start());
        self.follow_pairs();
        self.compete.note(&sample, is_told.then_some(queueing));
        if is_told {
            if let Phase::Compete { .. } = self.phase {
                let round_trip = sample.round_trip_smoothed.max(ROUND_TRIP_MIN);
                let (noticed, per_s) = (self.noticed(), self.capacity.peak_per_s);
                self.compete.heed_others(now, queueing, round_trip, noticed, per_s);
            }
            self.queue.note(now, queueing, self.drained_below(), self.patience(round_trip));
            self.change_phase(now, queueing, sample);
        }
        if now >= self.round_trip_ends {
            let round_trip = sample.round_trip_smoothed.max(ROUND_TRIP_MIN);
            self.end_round_trip(now, queueing, sample.limited, round_trip);
            let counts = self.phase.is_start() || self.phase == Phase::Follow;
            self.capacity.note_usual(now, round_trip, counts);
            // On a shared channel, delay varies with what the other direction sends.
            if !sample.shares_air {
                self.note_excess(now, queueing, round_trip);
            }
            self.round_trip_ends = now + round_trip;
        }
        if self.phase == Phase::Follow && now - self.queue.emptied_at > STANDING_MAX {
            self.queue.emptied_at = now;
            self.queue.pause = Some(queueing + self.delay.noise());
        }
        let drains = before == Phase::Follow && matches!(self.phase, Phase::Drain { .. });
        if drains && self.dispersion.shown_per_s().is_some() {
            // No queue of its own stands for so long behind a rate below the capacity.
            self.dispersion.note_others(now);
        }
        self.note_drain(before);
        self.count_phase(before, stats);
        if before.is_start() && !self.phase.is_start() {
            self.dispersion.end_start();
        }
        self.adjust(self.queueing(), sample);
        // The start has its own ways to find the capacity, and a short buffer may drop the second.
        self.dispersion.plan_pairs(now, !self.phase.is_start());
    }

    fn frames_per_s(&self) -> f64 {
        if self.is_lowered() {
            // The path carries no more than came through, however wrong the capacity is; but until
            // the path was kept busy, that may be as little as somebody typed. A single frame in
            // flight never queues, and without any there would be no feedback about the queue.
            let came_per_s = self.counted_per_s().unwrap_or(f64::INFINITY);
            let one_per_s = self.delay.round_trip().as_secs_f64().recip();
            let most_per_s = self.frames_per_s.min(came_per_s.max(one_per_s / DRAIN_RATIO));
            DRAIN_RATIO * most_per_s.max(FRAMES_PER_S_MIN)
        } else {
            self.frames_per_s
        }
    }

    fn through_per_s(&self) -> f64 {
        self.capacity.per_s
    }

    fn in_flight_max(&self, ack_delay: Duration) -> f64 {
        if let Phase::Compete { .. } = self.phase {
            return f64::INFINITY;
        }
        // A queue of ours needs no more frames, but a path that has become longer does, or a queue
        // on the way back.
        let without_queue = self.delay.round_trip().saturating_sub(self.delay.queueing());
        let round_trip = without_queue.max(self.delay.round_trip_least()).max(ROUND_TRIP_MIN);
        let wait = round_trip + ack_delay + self.aim();
        let per_s = self.capacity.per_s;
        let few = (per_s * IN_FLIGHT_TIME.as_secs_f64()).clamp(IN_FLIGHT_FEWEST, IN_FLIGHT_MIN);
        few + IN_FLIGHT_FACTOR * per_s * wait.as_secs_f64()
    }

    fn take_pause(&mut self) -> Option<Duration> {
        self.queue.pause.take()
    }

    fn singles_between_pairs(&self) -> Option<u32> {
        self.dispersion.singles_between_pairs()
    }

    fn tells_of_few(&self, now: Time) -> bool {
        now <= self.lowered_told_until
    }
}

impl RateControl {
    fn note_pause(&mut self, now: Time) {
        self.queue.note_pause(now);
        self.delay.note_pause();
        self.delivered.note_pause(now);
        self.dispersion.note_pause();
        self.capacity.restart();
    }

    fn note_delivered(&mut self, now: Time, sample: &Sample, round_trip: Duration, is_told: bool) {
        // While the flow competes, others cause drops too, and the bound is ignored.
        let is_bound = !matches!(self.phase, Phase::Compete { .. });
        let queue = Queue { length: self.delay.queueing(), noticed: self.noticed() };
        let known_per_s = self.capacity.known_per_s();
        if !is_bound {
            self.delivered.stop_looking();
        }
        let queue = is_told.then_some(queue);
        let times = (round_trip, self.delay.deviation());
        self.delivered.note(now, sample, times, known_per_s, queue);
        if let Some(found) = self.delivered.take_found() {
            self.capacity.note_found(found);
        }
    }

    /// Learns from pairs of frames. Beside fillers they show the capacity of all flows together.
    fn note_pairs(&mut self, now: Time, sample: &Sample, round_trip: Duration) {
        let known = Known {
            radio: self.delivered.radio().0.min(RADIO_MAX),
            queueing: self.delay.queueing(),
            most_per_s: self.capacity.per_s.max(self.capacity.peak_per_s),
        };
        self.dispersion.note(now, sample, known);
        if matches!(self.phase, Phase::Compete { .. }) {
            self.dispersion.note_others(now);
        }
        self.dispersion.look(now, round_trip);
    }

    /// Where pairs show the capacity, nothing has to be tried, and the start is over.
    fn follow_pairs(&mut self) {
        if self.capacity.known_per_s() == 0.0
            && let Some(per_s) = self.dispersion.instead_of(self.capacity.per_s)
        {
            self.capacity.per_s = per_s;
        }
        let is_bound = self.delivered.limit_per_s().is_finite();
        let shown_per_s = self.dispersion.shown_per_s();
        self.dispersion.note_bound(is_bound, shown_per_s);
        if self.dispersion.take_changed(shown_per_s) {
            self.delivered.stop_looking();
        }
        let Some(per_s) = shown_per_s else { return };
        self.capacity.set_known(per_s);
        if self.phase.is_start() {
            self.phase = Phase::Follow;
        }
    }

    /// How long the second frame of a pair waits; zero where pairs show nothing.
    fn pair_wait(&self) -> Duration {
        let wait = self.dispersion.shown_per_s().map_or(0.0, |per_s| PAIR_QUEUE / per_s);
        Duration::from_secs_f64(wait)
    }

    /// Queueing delay beyond that of a pair.
    fn queueing(&self) -> Duration {
        self.delay.queueing().saturating_sub(self.pair_wait())
    }

    /// How long a queue of our own may take to drain, including feedback about it.
    fn patience(&self, round_trip: Duration) -> Duration {
        let told = FEEDBACK_INTERVALS * self.interval;
        (DRAIN_ROUND_TRIPS * round_trip).max(DRAIN_PATIENCE_MIN).max(told)
    }

    /// Whether little is sent, to see what happens to a queue.
    fn is_lowered(&self) -> bool {
        matches!(self.phase, Phase::Drain { .. } | Phase::Probe { .. })
    }

    /// Whether frames were sent so far apart that nothing of ours was queued in between.
    fn leaves_gap(&self, sample: &Sample) -> bool {
        let takes = Duration::from_secs_f64(sample.told / self.capacity.per_s);
        sample.span > takes + self.delay.queueing() + self.delay.noise()
    }

    fn drained_below(&self) -> Duration {
        let frames = Duration::from_secs_f64(DRAINED_FRAMES / self.capacity.peak_per_s);
        let others = match self.phase {
            // Where a frame takes longer than when the minimum delay was measured, that is no
            // queue.
            Phase::Drain { .. } => Duration::from_secs_f64(1.0 / self.capacity.per_s),
            // Fillers may leave no more than that after each loss.
            Phase::Compete { .. } => Duration::ZERO,
            _ => self.shared_queue().mul_f64(SHARED_FACTOR),
        };
        DRAINED.max(frames).max(others + self.delay.noise())
            + self.delay.varies(self.capacity.peak_per_s)
            + self.wander.time(self.delay.round_trip_least())
    }

    fn change_phase(&mut self, now: Time, queueing: Duration, sample: Sample) {
        let round_trip = sample.round_trip.max(ROUND_TRIP_MIN);
        let drained = self.queue.drained_at == now;
        let patience = self.patience(round_trip);
        let drain = Phase::Drain {
            until: now + 2 * queueing + 2 * round_trip,
            told_from: now + round_trip,
            told: 0,
        };
        // In any phase other than those below, the start goes on anyway, or was ended by something
        // that happened since.
        let goes_on = self.delivered.take_goes_on();
        let same = self.delay.noise() + self.pair_wait(); // Pairs may have begun to agree.
        let is_long = queueing > self.aim();
        let waits = matches!(self.phase, Phase::Confirm { until, .. } if now <= until);
        self.phase = match self.phase {
            Phase::Probe { until, queueing, shorter } if now > until => {
                self.end_probe(now, queueing, shorter);
                Phase::Follow
            }
            Phase::Start if is_long && self.has_grown() => {
                self.queue.at_start_per_s = self.capacity.per_s;
                let from = now + sample.round_trip_smoothed.max(ROUND_TRIP_MIN);
                Phase::Confirm { from, until: now + patience }
            }
            Phase::Confirm { from, .. } if now >= from && !is_long => Phase::Start,
            Phase::Start | Phase::Confirm { .. } if is_long && !waits => {
                self.prepare_to_compete(now, queueing, sample);
                drain
            }
            // No queue has shown so far, and a short buffer may drop the excess.
            Phase::Start if self.delivered.is_full() => {
                self.delivered.look(now);
                Phase::Follow
            }
            Phase::Follow if goes_on => Phase::Start,
            Phase::Follow if now - self.queue.drained_at > patience => {
                self.prepare_to_compete(now, queueing, sample);
                if self.compete.is_beside_filler(now) {
                    self.compete.at = Some(now);
                    Phase::Compete { until: self.compete.next_check(now, round_trip) }
                } else {
                    drain
                }
            }
            Phase::Drain { .. } if drained => Phase::Follow,
            // It takes a while to see whether a queue stays as it is.
            Phase::Drain { until, told, .. }
                if now > until
                    && told >= DRAIN_TOLD_MIN
                    && now - self.queue.drained_at > patience =>
            {
                if queueing + self.delay.noise() < self.queue.before_drain {
                    // It still shrinks: our own, on a path that has become slower.
                    self.queue.before_drain = queueing;
                    Phase::Drain { until: now + patience, told_from: now, told: 0 }
                } else if self.queue.stood_most - self.queue.stood_least <= same {
                    // It appeared suddenly, and has stayed the same whatever was sent.
                    self.lengthen_path(now, queueing);
                    Phase::Follow
                } else if !self.queue.is_drain_known {
                    drain
                } else {
                    (self.compete.at, self.compete.is_certain) = (Some(now), true);
                    Phase::Compete { until: self.compete.next_check(now, round_trip) }
                }
            }
            Phase::Drain { until, told_from, told } => {
                Phase::Drain { until, told_from, told: told + u32::from(now >= told_from) }
            }
            Phase::Compete { .. } if now - self.queue.filled_at > LEAVE_FACTOR * patience => {
                self.compete.at = Some(now);
                Phase::Follow
            }
            Phase::Compete { until } if now > until => {
                self.compete.at = Some(now);
                drain
            }
            same => same,
        };
    }

    /// Whether the path carries more than when a queue last showed at the start: that was none, and
    /// what shows now may be none either.
    fn has_grown(&self) -> bool {
        self.capacity.per_s >= GROWN * self.queue.at_start_per_s
    }

    /// The delivery rate where the rate limited it; while the capacity is a guess, any delivery
    /// rate.
    fn counted_per_s(&self) -> Option<f64> {
        let is_known = self.capacity.known_per_s() > 0.0;
        if is_known { self.delivered.held_per_s() } else { self.delivered.most_per_s() }
    }

    /// Records whether the drain that begins sends less than the path is known to carry: a queue
    /// that stays while a quarter of a guess is sent is not certainly somebody else's.
    fn note_drain(&mut self, before: Phase) {
        let Phase::Drain { until, .. } = self.phase else { return };
        let goes_on = matches!(before, Phase::Drain { until: other, .. } if other == until);
        if !matches!(before, Phase::Drain { .. }) {
            self.queue.before_drain = self.delay.queueing();
        }
        if !goes_on {
            let is_known = self.capacity.known_per_s() > 0.0;
            self.queue.is_drain_known = is_known || self.counted_per_s().is_some();
        }
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

    /// A flow that competed until recently resumes with its last window: the queue was empty for a
    /// moment because all flows met with loss. Otherwise it begins with half of the path.
    fn prepare_to_compete(&mut self, now: Time, queueing: Duration, sample: Sample) {
        if self.compete.at.is_none_or(|at| now - at > PEAK_MEMORY) {
            let on_their_way = self.capacity.peak_per_s * sample.round_trip_smoothed.as_secs_f64();
            self.compete.begin(0.5 * on_their_way);
            self.compete.longest = queueing;
        }
    }

    /// Queueing delay from which there is a queue.
    fn noticed(&self) -> Duration {
        self.delay.noise() + self.delay.jitter(self.capacity.peak_per_s)
    }

    /// Queueing delay that is aimed at.
    fn aim(&self) -> Duration {
        let noise = self.delay.noise();
        // Where delays can be measured well, less than a frame is enough.
        let queued = QUEUED * noise.div_duration_f64(NOISE_MAX);
        noise
            + self.delay.varies(self.capacity.peak_per_s)
            + self.wander.time(self.delay.round_trip_least())
            + Duration::from_secs_f64(queued / self.capacity.per_s).max(self.shared_queue())
    }

    /// The queue that makes flows that share the path equal: longer for those that have less.
    fn shared_queue(&self) -> Duration {
        let round_trip = self.delay.round_trip_least();
        let holds = self.capacity.per_s * round_trip.as_secs_f64();
        Duration::from_secs_f64(QUEUED_PER_ROOT * holds.sqrt() / self.capacity.per_s)
    }

    fn end_round_trip(
        &mut self,
        now: Time,
        queueing: Duration,
        limited: bool,
        round_trip: Duration,
    ) {
        // While competing, others cause the changes.
        self.wander.end_round_trip(self.capacity.per_s, self.phase == Phase::Follow);
        let (radio, bursts) = self.delivered.radio();
        let congested = self.compete.was_congested(radio, bursts);
        if let Phase::Compete { .. } = self.phase {
            let was_smaller = self.compete.was_smaller(now, round_trip);
            match (congested, limited) {
                // About frames sent before the window was decreased.
                (true, _) if was_smaller => {}
                (true, _) => self.compete.shrink(now),
                (false, true) => self.compete.grow(now, round_trip),
                (false, false) => {}
            }
        }
        self.compete.queued_at_loss = Duration::ZERO;
        let goes_on = self.phase == Phase::Follow && self.least_gain() > GAIN_MAX;
        self.capacity.end_retry(queueing > self.noticed(), goes_on);
        self.gain = match self.phase {
            Phase::Start => GAIN_START,
            Phase::Confirm { .. } => 0.0,
            Phase::Compete { .. } => GAIN_FIRST,
            // No queue shows behind a rate below the capacity, so that this says nothing.
            _ if self.dispersion.shown_per_s().is_none()
                && queueing < self.noticed()
                && limited =>
            {
                (2.0 * self.gain).min(GAIN_MAX).max(self.least_gain())
            }
            _ => self.least_gain(),
        };
    }

    /// The gain while there is no queue, before it grows. If even the largest gain would not lead
    /// back to what the path recently carried on average, that is tried at once, but at most twice
    /// the capacity. Not while drops bound the rate: no queue would show there.
    fn least_gain(&self) -> f64 {
        let back = self.capacity.retry_per_s() / self.capacity.per_s - 1.0;
        let is_bound = self.delivered.limit_per_s().is_finite();
        if back > GAIN_MAX && !is_bound { back.min(GAIN_START) } else { GAIN_FIRST }
    }

    /// Raises the minimum delay by `by` from now on.
    fn lengthen_path(&mut self, now: Time, by: Duration) {
        self.capacity.usual_per_s = self.capacity.best_per_s;
        // Queues before were measured against the shorter path.
        (self.compete.at, self.compete.is_certain) = (None, false);
        self.delivered.forget_queues();
        self.dispersion.forget_others();
        self.delay.lengthen(now, by);
    }

    fn adjust(&mut self, queueing: Duration, sample: Sample) {
        let limited = sample.limited;
        let round_trip = sample.round_trip.max(ROUND_TRIP_MIN);
        if let Phase::Probe { .. } = self.phase {
            return;
        }
        if let Phase::Compete { .. } = self.phase {
            let round_trip = sample.round_trip_smoothed.max(ROUND_TRIP_MIN);
            let rate = self.compete.window / round_trip.as_secs_f64();
            self.set_rate(rate);
            return;
        }
        let want = self.aim().as_secs_f64() - queueing.as_secs_f64();
        let gain = want / (SETTLE_ROUND_TRIPS * round_trip.as_secs_f64());
        let gain = if queueing < self.noticed() { gain.max(self.gain) } else { gain };
        let gain =
            if self.dispersion.shown_per_s().is_some() { gain.min(GAIN_PAIRS) } else { gain };
        if gain > 0.0 && !limited {
            // The sender is application-limited, so the gain does not matter.
            if self.delivered.is_excessive() {
                self.set_rate(self.frames_per_s);
            }
            return;
        }
        let gain = if let Phase::Confirm { .. } = self.phase { 0.0 } else { gain };
        let most = match self.phase {
            Phase::Start => GAIN_START,
            _ => self.least_gain().max(GAIN_MAX),
        };
        if self.phase == Phase::Follow && gain.min(most) > GAIN_MAX {
            self.capacity.note_retry();
        }
        let next = self.capacity.per_s * (1.0 + gain.clamp(GAIN_MIN, most));
        let least = one_in_flight_per_s(&sample);
        // Short frames may have had shorter round trips.
        let most = if self.phase.is_start() { f64::INFINITY } else { self.capacity.peak_per_s };
        self.set_rate(next.max(least.min(most)));
    }

    fn set_rate(&mut self, frames_per_s: f64) {
        let most = match self.phase {
            Phase::Start | Phase::Confirm { .. } => {
                self.delivered.start_limit_per_s().min(self.delivered.limit_per_s())
            }
            // Others cause drops too, which the window reacts to.
            Phase::Compete { .. } => f64::INFINITY,
            _ => self.delivered.limit_per_s(),
        };
        self.frames_per_s = frames_per_s.min(most).clamp(FRAMES_PER_S_MIN, FRAMES_PER_S_MAX);
    }
}

/// The least rate in frames/s, where losses do not bound it: that of a single frame in flight,
/// which hardly queues, but no more than the first guess. Of an application that sends little, as
/// TCP does to acknowledge, too little is delivered for the rate to grow at the start. Beside flows
/// that fill the queue, a lower rate hardly ever recovers.
fn one_in_flight_per_s(sample: &Sample) -> f64 {
    let round_trip = sample.round_trip_smoothed.max(ROUND_TRIP_MIN);
    round_trip.as_secs_f64().recip().min(FRAMES_PER_S_FIRST)
}
