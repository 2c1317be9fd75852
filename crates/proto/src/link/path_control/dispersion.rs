//! Packet dispersion: the capacity of the path, from pairs of frames.
//!
//! Two frames that leave together queue behind each other at the bottleneck, and arrive as far
//! apart as it takes for the second one, whatever is lost at random. So the capacity is known at
//! the rate of the path itself: no queue, and no lost frame, has to show that the rate is too high,
//! and a path that becomes faster or slower is followed within a few pairs. Jitter moves arrivals,
//! too. Where successive pairs disagree, they tell nothing, and frames leave one by one again: a
//! short buffer may have no room for the second one.
//!
//! Packet pairs are an old idea (Keshav, SIGCOMM 1991). What distorts them among other flows
//! (Dovrolis, Ramanathan and Moore, INFOCOM 2001) does not matter here: delay lowers the rate.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use super::Sample;

/// Pairs that are remembered, and after how many that disagree no more are sent.
const PAIRS: usize = 8;
/// Pairs that could have been reported, by the frames that arrived, after which no more are sent if
/// none was.
const TRIAL_PAIRS: f64 = 32.0;
/// After that, pairs are tried again, half as many.
const TRIAL_INTERVAL: Duration = Duration::from_secs(30);
/// Two rates agree if the logarithm of their quotient is at most this, in the median of the last
/// pairs; it may be more than `FAR` in at most one of four.
const AGREE: f64 = 0.1;
const FAR: f64 = 0.4;
const FAR_PARTS: usize = 4;
/// What successive pairs differ by in the median is their noise. A pair off by no more than this
/// multiple of it is like the others: of normally distributed ones all but three in a thousand.
const NOISE_FACTOR: f64 = 3.0;
/// From this noise on, one pair that is off is not taken for a change of the path.
const NOISY: f64 = 0.02;
/// Rates that differ by more than that, in the median, are not even better than a guess.
const DISAGREE: f64 = 0.5;
/// Fewest differences of successive pairs by which they are judged.
const DIFFERS_MIN: usize = 2;
/// Frames that arrive at this multiple of the highest capacity known, or faster, did not queue
/// behind each other: jitter, or a radio that sends many at once, joined them.
const JOINED: f64 = 4.0;
/// For this long a pair counts, and for so many round trips.
const PAIR_MEMORY: Duration = Duration::from_secs(2);
const PAIR_MEMORY_ROUND_TRIPS: u32 = 4;
/// If, of so many frames that the radio leaves twice in a row, less than `OVERRUN_CAME` of what it
/// leaves arrives and no pair, while a queue stands, the buffer is always full, and has no room for
/// both frames of a pair. The path has become slower, and what arrives is what it carries.
const OVERRUN_FRAMES: f64 = 8.0;
const OVERRUN_CAME: f64 = 0.6;
/// A queue, in frames at the capacity known: it exceeds that of a pair.
const OVERRUN_QUEUE: f64 = 2.0;
/// While a queue stands, the flow has all of the path if no other has a part of it. If it has less
/// than this share of what all of the last pairs agree on, others do.
const OTHERS_BELOW: f64 = 0.9;
/// For so long pairs, which show what all flows have together, then count for nothing.
const OTHERS_MEMORY: Duration = Duration::from_secs(10);
/// While all of the last pairs agree, one is enough in this time, or in a few more frames than this
/// many: the second frame of a pair queues behind the first.
const STEADY_INTERVAL: Duration = Duration::from_millis(100);
const SINGLES_MAX: f64 = 30.0;
/// A bound that losses set holds only for the capacity at which it was found: it was found on
/// another path if the logarithm of their quotient is more than this.
const BOUND_DIFFERS: f64 = 0.2;

/// What a sample is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Random loss ratio.
    pub(super) radio: f64,
    /// Queueing delay.
    pub(super) queueing: Duration,
    /// The highest capacity recently estimated, in frames/s.
    pub(super) most_per_s: f64,
}

/// What pairs show.
#[derive(Debug)]
pub(super) struct Dispersion {
    /// Rates of the last pairs in frames/s, newest last, and logarithms of quotients of successive
    /// ones.
    rates: ArrayVec<f64, PAIRS>,
    differs: ArrayVec<f64, PAIRS>,
    /// When the newest of these rates was reported.
    at: Option<Time>,
    trial: Trial,
    singles_between: Option<u32>,
    since_pair: Since,
    bound: Bound,
    /// When others last had a part of the path.
    others_at: Option<Time>,
    /// The capacity that pairs showed at the last look, in frames/s.
    shown_per_s: Option<f64>,
}

/// Whether frames leave in pairs.
#[derive(Clone, Copy, Debug)]
struct Trial {
    is_on: bool,
    /// Pairs reported since pairs last agreed or a trial began, and how many there could have been
    /// since the last one.
    pairs: usize,
    expected: f64,
    /// When the next trial begins.
    next_at: Time,
}

/// What was reported since the last pair.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    frames: f64,
    came: f64,
    span: Duration,
}

/// The capacity at which losses set the present bound of the rate.
#[derive(Clone, Copy, Debug, Default)]
struct Bound {
    is_set: bool,
    per_s: Option<f64>,
    /// The last capacity that pairs showed.
    last_per_s: Option<f64>,
}

impl Trial {
    fn end(&mut self, now: Time) {
        *self = Trial { is_on: false, pairs: 0, expected: 0.0, next_at: now + TRIAL_INTERVAL };
    }
}

impl Dispersion {
    pub(super) fn new(now: Time) -> Self {
        Dispersion {
            rates: ArrayVec::new(),
            differs: ArrayVec::new(),
            at: None,
            trial: Trial { is_on: true, pairs: 0, expected: 0.0, next_at: now },
            singles_between: None,
            since_pair: Since::default(),
            bound: Bound::default(),
            others_at: None,
            shown_per_s: None,
        }
    }

    /// How many frames should leave alone between two that leave together, as last planned; `None`:
    /// all of them.
    pub(super) fn singles_between_pairs(&self) -> Option<u32> {
        self.singles_between
    }

    /// Plans the pairs until the next feedback, or none.
    pub(super) fn plan_pairs(&mut self, now: Time, is_wanted: bool) {
        let is_steady = self.rates.is_full() && self.rates.iter().all(|&it| self.is_as_newest(it));
        let newest = self.rates.last().filter(|_| is_steady).copied().unwrap_or(0.0);
        let singles = (newest * STEADY_INTERVAL.as_secs_f64()).min(SINGLES_MAX) as u32;
        let is_tried = is_wanted && self.trial.is_on && self.is_alone(now);
        self.singles_between = is_tried.then_some(singles);
    }

    /// Whether the flow seems to have the path for itself.
    fn is_alone(&self, now: Time) -> bool {
        self.others_at.is_none_or(|at| now - at > OTHERS_MEMORY)
    }

    /// Takes feedback. Where pairs are planned, frames that wait leave in pairs; others leave
    /// together at times.
    pub(super) fn note(&mut self, now: Time, sample: &Sample, known: Known) {
        let is_tried = self.singles_between.is_some();
        let period = f64::from(self.singles_between.unwrap_or(0)) + 2.0;
        // A burst of losses says nothing about pairs.
        let came = if is_tried && sample.limited { sample.came as f64 } else { 0.0 };
        self.trial.expected += came / period;
        let since = &mut self.since_pair;
        since.frames += sample.frames as f64;
        since.came += sample.came as f64;
        since.span += sample.span;
        if let Some(per_s) = sample.pair_per_s {
            self.trial.pairs += usize::from(is_tried);
            self.note_pair(now, per_s, known.most_per_s);
            self.since_pair = Since::default();
            self.trial.expected = 0.0;
        } else if !sample.limited {
            self.since_pair = Since::default();
        } else if self.trial.is_on && self.is_alone(now) && self.agrees() {
            self.note_missing(now, known);
        }
        self.try_pairs(now, sample.pair_per_s.is_some());
    }

    /// There was a pause: what was reported before is old.
    pub(super) fn note_pause(&mut self) {
        self.since_pair = Since::default();
    }

    /// The start has ended. If pairs do not agree, its capacity was a guess, by which some may have
    /// been taken for joined ones.
    pub(super) fn end_start(&mut self) {
        if self.shown_per_s.is_none() {
            self.differs.retain(|differs| differs.is_finite());
        }
    }

    fn note_pair(&mut self, now: Time, per_s: f64, most_per_s: f64) {
        if per_s > JOINED * most_per_s {
            push(&mut self.differs, f64::INFINITY);
            return;
        }
        if let Some(before) = self.rates.last() {
            push(&mut self.differs, (per_s / before).ln().abs());
        }
        push(&mut self.rates, per_s);
        self.at = Some(now);
    }

    /// Takes feedback without a pair.
    fn note_missing(&mut self, now: Time, known: Known) {
        let Since { frames, came, span } = self.since_pair;
        let Some(&newest) = self.rates.last() else { return };
        let arrives = 1.0 - known.radio;
        if frames * arrives * arrives < OVERRUN_FRAMES {
            return;
        }
        self.since_pair = Since::default();
        let is_queued = known.queueing.as_secs_f64() * newest > OVERRUN_QUEUE;
        if !is_queued || came >= OVERRUN_CAME * arrives * frames {
            return;
        }
        let per_s = came / arrives / span.as_secs_f64();
        if came > 1.0 && per_s < newest {
            (0..2).for_each(|_| push(&mut self.rates, per_s));
            self.at = Some(now);
        }
    }

    /// Begins or ends a trial.
    fn try_pairs(&mut self, now: Time, is_pair: bool) {
        let trial = &mut self.trial;
        let agrees = agree(&self.differs);
        if is_pair && agrees {
            (trial.is_on, trial.pairs) = (true, 0);
        } else if trial.is_on && (trial.expected > TRIAL_PAIRS || !agrees && trial.pairs >= PAIRS) {
            trial.end(now);
        } else if !trial.is_on && now > trial.next_at {
            *trial = Trial { is_on: true, pairs: PAIRS / 2, expected: 0.0, next_at: now };
        }
    }

    fn agrees(&self) -> bool {
        agree(&self.differs)
    }

    /// Takes what pairs show now.
    pub(super) fn look(&mut self, now: Time, round_trip: Duration) {
        self.shown_per_s = self.per_s(now, round_trip);
    }

    /// What they showed at the last look.
    pub(super) fn shown_per_s(&self) -> Option<f64> {
        self.shown_per_s
    }

    /// The capacity that pairs show, in frames/s; `None` if they tell nothing at present.
    fn per_s(&self, now: Time, round_trip: Duration) -> Option<f64> {
        let memory = PAIR_MEMORY.max(PAIR_MEMORY_ROUND_TRIPS * round_trip);
        let is_fresh = self.at.is_some_and(|at| now - at < memory);
        let counts = is_fresh && self.is_alone(now) && self.agrees();
        let (&[.., before, last], true) = (self.rates.as_slice(), counts) else {
            return None;
        };
        let (usual, noise) = (lower_median(&self.rates), median(&self.differs));
        let off = |rate: f64, from: f64| (rate / from).ln().abs();
        if off(last, usual) <= NOISE_FACTOR * noise {
            return Some(usual);
        }
        if off(last, before) >= AGREE.max(NOISE_FACTOR * noise) {
            // The path may have changed between them.
            return Some(if noise > NOISY { usual } else { last.min(before) });
        }
        let earlier = self.rates.iter().rev().nth(2).copied().unwrap_or(last);
        let mut three = [earlier, before, last];
        three.sort_unstable_by(f64::total_cmp);
        let middle = three[1];
        Some(if off(middle, last) < AGREE { middle } else { last })
    }

    /// A queue stood, and the flow had so many frames/s of the path.
    pub(super) fn note_busy(&mut self, now: Time, per_s: f64) {
        let agree = |&before: &f64| (per_s < OTHERS_BELOW * before) && self.is_as_newest(before);
        if self.rates.is_full() && self.rates.iter().all(agree) {
            self.note_others(now);
        }
    }

    /// Others have a part of the path.
    pub(super) fn note_others(&mut self, now: Time) {
        self.others_at = Some(now);
    }

    /// What was taken for a queue was none.
    pub(super) fn forget_others(&mut self) {
        self.others_at = None;
    }

    fn is_as_newest(&self, per_s: f64) -> bool {
        self.rates.last().is_some_and(|newest| (per_s / newest).ln().abs() < AGREE)
    }

    /// What pairs show even if they disagree, in the median, if it is lower than a guess.
    pub(super) fn instead_of(&self, guess_per_s: f64) -> Option<f64> {
        let is_told = self.differs.len() >= DIFFERS_MIN && median(&self.differs) <= DISAGREE;
        is_told.then(|| median(&self.rates)).filter(|&per_s| per_s < guess_per_s)
    }

    /// Records whether a bound by losses is set, and the capacity that pairs show.
    pub(super) fn note_bound(&mut self, is_set: bool, per_s: Option<f64>) {
        let bound = &mut self.bound;
        bound.last_per_s = per_s.or(bound.last_per_s);
        if is_set && !bound.is_set {
            bound.per_s = bound.last_per_s;
        }
        bound.is_set = is_set;
    }

    /// Whether the bound was found on a path that has changed since, as pairs show; returned once.
    pub(super) fn take_changed(&mut self, per_s: Option<f64>) -> bool {
        let quotient = per_s.zip(self.bound.per_s).map(|(now, then)| now / then);
        let has_changed = quotient.is_some_and(|quotient| quotient.ln().abs() > BOUND_DIFFERS);
        if has_changed {
            (self.bound.is_set, self.bound.per_s) = (false, None);
        }
        has_changed
    }
}

fn agree(differs: &[f64]) -> bool {
    let far = differs.iter().filter(|&&by| by > FAR).count();
    differs.len() >= DIFFERS_MIN && median(differs) <= AGREE && FAR_PARTS * far <= differs.len()
}

/// The median, or the upper one; of nothing, infinity.
fn median(values: &[f64]) -> f64 {
    sorted(values).get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// The median, or the lower one; of nothing, infinity.
fn lower_median(values: &[f64]) -> f64 {
    sorted(values).get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::INFINITY)
}

fn sorted(values: &[f64]) -> ArrayVec<f64, PAIRS> {
    let mut sorted: ArrayVec<f64, PAIRS> = values.iter().copied().take(PAIRS).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

fn push(newest: &mut ArrayVec<f64, PAIRS>, value: f64) {
    if newest.is_full() {
        newest.remove(0);
    }
    newest.push(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(20);
    const ROUND_TRIP: Duration = Duration::from_millis(40);

    /// Feedback each 20 ms, about two frames.
    struct Loop {
        dispersion: Dispersion,
        now: Time,
        known: Known,
    }

    impl Loop {
        fn new() -> Self {
            let now = Time::from_millis(1_000);
            let known = Known { radio: 0.0, queueing: Duration::ZERO, most_per_s: 100.0 };
            let mut dispersion = Dispersion::new(now);
            dispersion.plan_pairs(now, true);
            Loop { dispersion, now, known }
        }

        /// Takes feedback about `came` of two frames, and a pair; returns the capacity shown.
        fn feed(&mut self, came: usize, pair_per_s: Option<f64>) -> Option<f64> {
            self.now += INTERVAL;
            let sample = Sample {
                one_way_us: 0,
                is_long: true,
                round_trip: ROUND_TRIP,
                round_trip_smoothed: ROUND_TRIP,
                told: 2.0,
                span: INTERVAL,
                sent_span: INTERVAL,
                frames: 2,
                came,
                limited: true,
                shares_air: false,
                pair_per_s,
            };
            self.dispersion.note(self.now, &sample, self.known);
            self.dispersion.plan_pairs(self.now, true);
            self.shown()
        }

        fn feed_without_pairs(&mut self, times: usize, came: usize) {
            for _ in 0..times {
                self.feed(came, None);
            }
        }

        fn pairs(&mut self, pairs: &[f64]) -> Vec<Option<f64>> {
            pairs.iter().map(|&per_s| self.feed(2, Some(per_s))).collect()
        }

        fn wants_pairs(&self) -> bool {
            self.dispersion.singles_between_pairs().is_some()
        }

        fn shown(&self) -> Option<f64> {
            self.dispersion.per_s(self.now, ROUND_TRIP)
        }
    }

    #[test]
    fn pairs_that_agree_show_the_capacity() {
        let shown = Loop::new().pairs(&[99.0, 101.0, 100.0, 102.0]);
        assert_eq!(shown, [None, None, Some(100.0), Some(100.0)]);
    }

    /// One pair that is off tells nothing then.
    #[test]
    fn what_differs_by_chance_is_averaged() {
        let mut run = Loop::new();
        run.pairs(&[95.0, 105.0, 97.0, 103.0, 100.0, 96.0, 104.0]);
        assert_eq!(run.pairs(&[99.0, 112.0, 50.0]), [Some(99.0), Some(100.0), Some(99.0)]);
        // One after the other, and they disagree with the rest.
        assert_eq!(run.pairs(&[101.0, 50.0]), [Some(100.0), None]);
    }

    /// A lower rate counts at once, since frames would be dropped; a higher one once repeated.
    #[test]
    fn a_path_that_changes_is_followed_within_two_pairs() {
        let mut run = Loop::new();
        run.pairs(&[100.0; 8]);
        assert_eq!(run.pairs(&[40.0, 40.0]), [Some(40.0), Some(40.0)]);
        run.pairs(&[40.0; 8]);
        assert_eq!(run.pairs(&[200.0, 200.0]), [Some(40.0), Some(200.0)]);
    }

    #[test]
    fn a_pair_counts_for_a_while_only() {
        let mut run = Loop::new();
        run.pairs(&[100.0; 3]);
        run.now += PAIR_MEMORY - INTERVAL;
        assert_eq!(run.shown(), Some(100.0));
        run.now += INTERVAL;
        assert_eq!(run.shown(), None);
    }

    /// Jitter. Two frames that leave together anyway may still agree later.
    #[test]
    fn pairs_that_disagree_are_given_up_and_tried_again() {
        let mut run = Loop::new();
        let jitter = [50.0, 90.0, 40.0, 100.0, 60.0, 110.0, 45.0, 80.0];
        assert_eq!(run.pairs(&jitter), [None; PAIRS]);
        assert!(!run.wants_pairs());
        run.now += TRIAL_INTERVAL;
        run.feed(2, None);
        assert!(run.wants_pairs());
        run.pairs(&jitter[..PAIRS / 2]);
        assert!(!run.wants_pairs(), "fewer are enough then");
        let shown = run.pairs(&[100.0; PAIRS]);
        assert!(run.wants_pairs() && shown[PAIRS - 1] == Some(100.0));
    }

    #[test]
    fn a_trial_without_pairs_ends_as_well() {
        let mut run = Loop::new();
        (0..64).for_each(|_| assert_eq!(run.feed(1, None), None));
        assert!(run.wants_pairs());
        (0..100).for_each(|_| assert_eq!(run.feed(0, None), None));
        assert!(run.wants_pairs(), "a burst of losses says nothing about pairs");
        run.feed(1, None);
        assert!(!run.wants_pairs());
    }

    /// A buffer may have room for one frame only from some time on.
    #[test]
    fn pairs_end_where_none_arrive_any_more() {
        let mut run = Loop::new();
        run.pairs(&[100.0; 3]);
        run.feed_without_pairs(64, 1);
        assert!(run.wants_pairs());
        run.feed(1, None);
        assert!(!run.wants_pairs());
        // And sooner where all frames leave in pairs than where one in eleven does.
        let mut run = Loop::new();
        run.pairs(&[100.0; PAIRS]);
        assert_eq!(run.dispersion.singles_between_pairs(), Some(10));
        run.feed_without_pairs(64, 2);
        assert!(run.wants_pairs());
    }

    /// Radios that send many frames at once, and jitter in order.
    #[test]
    fn frames_that_arrive_joined_show_nothing() {
        for joined in [f64::INFINITY, 30_000.0] {
            let mut run = Loop::new();
            assert_eq!(run.pairs(&[joined; PAIRS]), [None; PAIRS]);
            assert!(!run.wants_pairs());
            assert_eq!(run.dispersion.instead_of(500.0), None);
        }
    }

    /// Of a capacity of 100 frames/s 20 are left, behind a buffer that is always full.
    #[test]
    fn where_pairs_are_dropped_what_arrives_is_the_capacity() {
        let overrun = |queueing| {
            let mut run = Loop::new();
            run.pairs(&[100.0; 4]);
            run.known.queueing = Duration::from_millis(queueing);
            (0..12).map(|frame| run.feed(usize::from(frame % 5 < 2), None)).last().unwrap()
        };
        let shown = overrun(100).unwrap();
        assert!((15.0..=30.0).contains(&shown), "{shown}");
        assert_eq!(overrun(15), Some(100.0), "a burst of losses leaves no queue");
    }

    /// They queue, and the flow has less than what pairs show.
    #[test]
    fn beside_other_flows_pairs_count_for_nothing() {
        let mut run = Loop::new();
        run.pairs(&[100.0; PAIRS]);
        run.dispersion.note_busy(run.now, 95.0);
        assert_eq!(run.shown(), Some(100.0), "a queue of its own");
        run.dispersion.note_busy(run.now, 70.0);
        assert_eq!(run.shown(), None);
        run.now += OTHERS_MEMORY;
        assert_eq!(run.pairs(&[100.0]), [Some(100.0)]);
        // A path that has just become faster still has the queue from before.
        run.pairs(&[200.0; 2]);
        run.dispersion.note_busy(run.now, 100.0);
        assert_eq!(run.shown(), Some(200.0));
    }

    #[test]
    fn a_bound_does_not_hold_on_another_path() {
        let mut dispersion = Dispersion::new(Time::ZERO);
        dispersion.note_bound(false, Some(100.0));
        dispersion.note_bound(true, None);
        assert!(!dispersion.take_changed(Some(110.0)) && !dispersion.take_changed(None));
        assert!(dispersion.take_changed(Some(150.0)));
        assert!(!dispersion.take_changed(Some(150.0)), "only once");
        // Later ones are found on this one.
        dispersion.note_bound(false, Some(150.0));
        dispersion.note_bound(true, Some(150.0));
        assert!(!dispersion.take_changed(Some(150.0)) && dispersion.take_changed(Some(70.0)));
    }

    #[test]
    fn what_pairs_show_with_jitter_may_be_better_than_a_guess() {
        let mut run = Loop::new();
        run.pairs(&[100.0, 130.0, 95.0, 120.0]);
        assert_eq!(run.shown(), None);
        assert_eq!(run.dispersion.instead_of(500.0), Some(120.0));
        assert_eq!(run.dispersion.instead_of(110.0), None, "the guess is lower");
        run.pairs(&[20.0, 90.0, 30.0, 110.0, 25.0]);
        assert_eq!(run.dispersion.instead_of(500.0), None);
    }
}
