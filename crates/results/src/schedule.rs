//! Which replication of which point is next, and when a point has enough.
//!
//! How many replications a point needs depends on the results of its first ones alone, in their
//! order: not on which finished first, on how many are run at once, or on interruptions.

use std::collections::{BTreeMap, BTreeSet};

use corridor_scenario::{Measures, Plan, Replications, StopRule};

use crate::estimate::Estimate;

/// One replication of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Place of the point in the plan.
    pub point: usize,
    /// Which replication.
    pub replication: u64,
}

/// What a replication has measured.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Which it was.
    pub task: Task,
    /// What it measured.
    pub measures: Measures,
}

/// Progress of the points of a plan. Taking a task and finishing one cost the logarithm of the
/// number of points.
#[derive(Debug)]
pub struct Schedule {
    points: Vec<Progress>,
    /// Place among the points, by the point's number.
    places: BTreeMap<usize, usize>,
    /// Points with a replication to give out, the next one first.
    open: BTreeSet<Rank>,
    /// Sums over the points.
    totals: Counts,
    rule: Option<StopRule>,
}

/// How soon it is a point's turn: guesses last, then those with fewest, then in order.
type Rank = (bool, u64, usize);

/// How far a point has come, or all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Replications done, of those that are asked for.
    done: u64,
    /// Replications that will probably be asked for.
    expected: u64,
    /// Points that lack something.
    incomplete: usize,
}

/// Progress of one point.
#[derive(Debug, Default)]
struct Progress {
    point: usize,
    done: BTreeMap<u64, Measures>,
    /// First replication that has not been given out.
    next: u64,
    /// Finished replications without a gap, from the first.
    prefix: u64,
    /// Values of the stop rule's metric, of these.
    sample: Vec<Option<f64>>,
    /// Replications that are enough, once that is known.
    needed: Option<u64>,
    /// What the totals and the queue know of it.
    counted: Counts,
    rank: Option<Rank>,
}

impl Schedule {
    /// For these points of a plan, where `known` gives what is there already.
    pub fn new(
        plan: &Plan,
        points: &[usize],
        mut known: impl FnMut(Task) -> Option<Measures>,
    ) -> Self {
        let (rule, needed) = match &plan.replications {
            Replications::Fixed(count) => (None, Some(*count)),
            Replications::Until(rule) => (Some(rule.clone()), None),
        };
        let progress = |&point: &usize| {
            let all = 0..plan.replications.max();
            let found = all
                .filter_map(|replication| Some((replication, known(Task { point, replication })?)));
            Progress { point, done: found.collect(), needed, ..Progress::default() }
        };
        let mut schedule = Schedule {
            points: points.iter().map(progress).collect(),
            places: points.iter().enumerate().map(|(place, &point)| (point, place)).collect(),
            open: BTreeSet::new(),
            totals: Counts::default(),
            rule,
        };
        (0..points.len()).for_each(|place| schedule.update(place));
        schedule
    }

    /// Takes in what has changed of a point.
    fn update(&mut self, place: usize) {
        let (rule, progress) = (self.rule.as_ref(), &mut self.points[place]);
        progress.advance(rule);
        let (before, now) = (progress.counted, progress.counts(rule));
        progress.counted = now;
        self.totals.done = self.totals.done - before.done + now.done;
        self.totals.expected = self.totals.expected - before.expected + now.expected;
        self.totals.incomplete = self.totals.incomplete - before.incomplete + now.incomplete;
        let rank = progress.next_rank(rule, place);
        let former = core::mem::replace(&mut progress.rank, rank);
        if former != rank {
            former.iter().for_each(|rank| {
                self.open.remove(rank);
            });
            self.open.extend(rank);
        }
    }

    /// The next replication to be run; `None` when none is left to be given out, or what is left
    /// depends on those that are under way.
    ///
    /// All points once, then all again. What a stop rule may not ask for comes last, for those who
    /// would wait otherwise.
    pub fn next_task(&mut self) -> Option<Task> {
        let &(_, _, place) = self.open.first()?;
        let progress = &mut self.points[place];
        let task = Task { point: progress.point, replication: progress.next };
        progress.next += 1;
        self.update(place);
        Some(task)
    }

    /// Takes what a replication has measured.
    pub fn finish(&mut self, finished: Finished) {
        let Finished { task, measures } = finished;
        if let Some(&place) = self.places.get(&task.point) {
            self.points[place].done.insert(task.replication, measures);
            self.update(place);
        }
    }

    /// Whether every point has enough.
    pub fn is_complete(&self) -> bool {
        self.totals.incomplete == 0
    }

    /// Points that have enough.
    pub fn complete_points(&self) -> usize {
        self.points.len() - self.totals.incomplete
    }

    /// Replications there are, of those that are asked for.
    pub fn done(&self) -> u64 {
        self.totals.done
    }

    /// Replications that will probably be asked for in all.
    pub fn expected(&self) -> u64 {
        self.totals.expected
    }

    /// Points whose stop rule gave up: they have as many replications as it allows, and the mean
    /// is not known well enough.
    pub fn given_up(&self) -> Vec<usize> {
        let Some(rule) = &self.rule else { return Vec::new() };
        let gave_up = |progress: &&Progress| {
            progress.is_complete()
                && progress.needed == Some(rule.replications_max)
                && !progress.is_known(rule, rule.replications_max)
        };
        self.points.iter().filter(gave_up).map(|progress| progress.point).collect()
    }

    /// All replications that are asked for and done, by point and replication.
    pub fn rows(&self) -> impl Iterator<Item = (Task, &Measures)> {
        let mut points: Vec<&Progress> = self.points.iter().collect();
        points.sort_by_key(|progress| progress.point);
        points.into_iter().flat_map(|progress| {
            let point = progress.point;
            progress
                .kept()
                .map(move |(&replication, measures)| (Task { point, replication }, measures))
        })
    }
}

impl Progress {
    /// Looks how far the results go without a gap, and whether they are enough.
    fn advance(&mut self, rule: Option<&StopRule>) {
        while self.needed.is_none_or(|needed| self.prefix < needed) {
            let Some(measures) = self.done.get(&self.prefix) else { break };
            self.prefix += 1;
            let Some(rule) = rule else { continue };
            self.sample.push(measures.value(&rule.metric).number());
            let enough = self.prefix >= rule.replications_min && self.is_known(rule, self.prefix);
            if enough || self.prefix == rule.replications_max {
                self.needed = Some(self.prefix);
            }
        }
    }

    /// Whether the first `count` results satisfy the rule.
    fn is_known(&self, rule: &StopRule, count: u64) -> bool {
        let sample = self.sample.iter().take(count as usize);
        let values: Vec<f64> = sample.copied().flatten().collect();
        let ratio = Estimate::of(&values).and_then(|estimate| estimate.ci95_ratio());
        ratio.is_some_and(|ratio| ratio <= rule.ci95_ratio)
    }

    /// When it is the turn of its next replication; `None` where none is to be given out.
    fn next_rank(&mut self, rule: Option<&StopRule>, place: usize) -> Option<Rank> {
        while self.done.contains_key(&self.next) {
            self.next += 1;
        }
        if self.next >= self.limit(rule) {
            return None;
        }
        let is_guess = self.next >= self.certain(rule);
        // Guesses go where fewest have been made.
        let count = if is_guess { self.next - self.prefix } else { self.next };
        Some((is_guess, count, place))
    }

    fn counts(&self, rule: Option<&StopRule>) -> Counts {
        // Without gaps, as usual, they need not be counted.
        let done = match self.done.len() as u64 {
            len if len == self.prefix => len.min(self.needed.unwrap_or(len)),
            _ => self.kept().count() as u64,
        };
        let incomplete = usize::from(!self.is_complete());
        Counts { done, expected: self.expected(rule), incomplete }
    }

    /// Replications beyond which nothing is given out.
    fn limit(&self, rule: Option<&StopRule>) -> u64 {
        self.needed.or(rule.map(|rule| rule.replications_max)).unwrap_or(0)
    }

    /// Replications that are needed for sure.
    fn certain(&self, rule: Option<&StopRule>) -> u64 {
        let min = rule.map_or(0, |rule| rule.replications_min);
        self.needed.unwrap_or(min.max(self.prefix + 1))
    }

    /// What the rule will ask for, as far as can be told: the interval narrows with the root.
    fn expected(&self, rule: Option<&StopRule>) -> u64 {
        if let Some(needed) = self.needed {
            return needed;
        }
        let Some(rule) = rule else { return 0 };
        let values: Vec<f64> = self.sample.iter().copied().flatten().collect();
        let ratio = Estimate::of(&values).and_then(|estimate| estimate.ci95_ratio());
        let wanted = ratio.map_or(0.0, |ratio| {
            let excess = ratio / rule.ci95_ratio;
            self.prefix as f64 * excess * excess
        });
        (wanted as u64).clamp(rule.replications_min.max(self.prefix + 1), rule.replications_max)
    }

    fn is_complete(&self) -> bool {
        self.needed.is_some_and(|needed| self.prefix >= needed)
    }

    /// Results that are asked for.
    fn kept(&self) -> impl Iterator<Item = (&u64, &Measures)> {
        self.done.range(..self.needed.unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn plan(head: &str) -> Plan {
        let text = format!(
            "{head}\nname = 't'\nseed = 1\nmedium = {{ duplex = 'half', rate_bps = 12000000, \
             rtt_ms = 4, queue_frames = 4 }}\n[[run]]\npath = 'plain'\ntransport = 'udp'\n\
             offered_bps = 1e6\ne3 = [0, 0.1, 0.2]\nduration_s = 1\n"
        );
        Plan::parse(&text, Path::new(".")).unwrap()
    }

    /// A made-up result: steady at point 0, noisy at point 1, hopeless at point 2.
    fn result(task: Task) -> Finished {
        let noise = ((task.replication * 7 + 3) % 5) as f64 - 2.0;
        let value = 10.0 + noise * [0.0, 0.7, 40.0][task.point];
        let mut measures = Measures::default();
        measures.set("goodput_bps", value);
        Finished { task, measures }
    }

    /// Runs a schedule with so many at once, finishing the latest one first.
    fn run(schedule: &mut Schedule, jobs: usize) -> usize {
        let (mut under_way, mut runs) = (Vec::new(), 0);
        loop {
            while under_way.len() < jobs {
                let Some(task) = schedule.next_task() else { break };
                under_way.push(task);
                runs += 1;
            }
            match under_way.pop() {
                Some(task) if !schedule.is_complete() => schedule.finish(result(task)),
                _ => return runs,
            }
        }
    }

    fn tasks(schedule: &Schedule) -> Vec<Task> {
        schedule.rows().map(|(task, _)| task).collect()
    }

    #[test]
    fn replications_are_interleaved() {
        let mut schedule = Schedule::new(&plan("replications = 2"), &[0, 2], |_| None);
        let order: Vec<_> = std::iter::from_fn(|| schedule.next_task()).collect();
        let told: Vec<_> = order.iter().map(|task| (task.point, task.replication)).collect();
        assert_eq!(told, [(0, 0), (2, 0), (0, 1), (2, 1)]);
        assert_eq!((schedule.done(), schedule.expected()), (0, 4));
    }

    /// Looking at all points for each task would take ten thousand million steps.
    #[test]
    fn a_hundred_thousand_points_are_given_out_and_finished() {
        let plan = plan("replications = 1");
        let points: Vec<usize> = (0..100_000).collect();
        let mut schedule = Schedule::new(&plan, &points, |_| None);
        let mut given = 0;
        while let Some(task) = schedule.next_task() {
            assert_eq!((task.point, task.replication, schedule.done()), (given, 0, given as u64));
            schedule.finish(Finished { task, measures: Measures::default() });
            given += 1;
        }
        assert!(schedule.is_complete());
        assert_eq!((given, schedule.expected()), (points.len(), 100_000));
    }

    #[test]
    fn what_is_known_is_not_run_again() {
        let plan = plan("replications = 4");
        let known =
            |task: Task| (task.point != 1 && task.replication < 3).then(|| result(task).measures);
        let mut schedule = Schedule::new(&plan, &[0, 1, 2], known);
        assert_eq!(schedule.done(), 6);
        assert_eq!(run(&mut schedule, 3), 6);
        assert!(schedule.is_complete());
        assert_eq!(schedule.done(), 12);
    }

    #[test]
    fn a_stop_rule_asks_for_the_same_replications_however_many_run_at_once() {
        let stop = "stop = { metric = 'goodput_bps', ci95_ratio = 0.1, replications_min = 3, \
            replications_max = 50 }";
        let plan = plan(stop);
        let mut alone = Schedule::new(&plan, &[0, 1, 2], |_| None);
        let runs = run(&mut alone, 1);
        let expected = tasks(&alone);
        let count = |point| expected.iter().filter(|task| task.point == point).count();
        assert_eq!((count(0), count(2)), (3, 50));
        assert!(count(1) > 3 && count(1) < 50, "{}", count(1));
        // Alone, nothing is run on a guess.
        assert_eq!(runs, expected.len());
        assert_eq!(alone.given_up(), [2]);
        for jobs in [2, 3, 8] {
            let mut many = Schedule::new(&plan, &[2, 1, 0], |_| None);
            run(&mut many, jobs);
            assert_eq!(tasks(&many), expected, "{jobs}");
            // Known are more than are asked for, and some are missing in the middle.
            let known = |task: Task| (task.replication % 3 != 1).then(|| result(task).measures);
            let mut resumed = Schedule::new(&plan, &[0, 1, 2], known);
            run(&mut resumed, jobs);
            assert_eq!(tasks(&resumed), expected, "{jobs} after an interruption");
        }
    }

    #[test]
    fn a_metric_that_is_missing_makes_no_mean() {
        let stop = "stop = { metric = 'goodput_bps', ci95_ratio = 0.1, replications_max = 7 }";
        let mut schedule = Schedule::new(&plan(stop), &[0], |_| None);
        while let Some(task) = schedule.next_task() {
            schedule.finish(Finished { task, measures: Measures::default() });
        }
        assert!(schedule.is_complete());
        assert_eq!((schedule.done(), schedule.given_up()), (7, vec![0]));
    }
}
