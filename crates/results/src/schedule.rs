//! Determines which replication of which point is next, and when a point has enough.
//!
//! The number of replications that a point needs depends only on the results of its first ones, in
//! order: not on which finished first, how many run at once, or interruptions.

use std::collections::{BTreeMap, BTreeSet};

use corridor_scenario::{Measures, Plan, Replications, StopRule};

use crate::estimate::Estimate;

/// One replication of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Index of the point in the plan.
    pub point: usize,
    /// Number of the replication.
    pub replication: u64,
}

/// A finished replication.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The replication.
    pub task: Task,
    /// Its measures.
    pub measures: Measures,
}

/// Progress of the points of a plan. Taking a task costs the logarithm of the number of points, and
/// so does finishing one. With a stop rule, finishing one also costs a pass over all results so far
/// of the points that are decided together.
#[derive(Debug)]
pub struct Schedule {
    points: Vec<Progress>,
    /// Index among the scheduled points, by the point's number.
    places: BTreeMap<usize, usize>,
    /// Points with a replication to run, the next one first.
    open: BTreeSet<Rank>,
    /// Indices of points that a rule decides on together: a single point, or those compared and,
    /// first, their baseline.
    groups: Vec<Vec<usize>>,
    /// The group of each index.
    group_of: Vec<usize>,
    /// Sums over the points.
    totals: Counts,
    rule: Option<StopRule>,
}

/// Order of points: speculative ones last, then those with the fewest replications, then by index.
type Rank = (bool, u64, usize);

/// Progress of a point, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Number of requested replications done.
    done: u64,
    /// Expected number of replications.
    expected: u64,
    /// Number of incomplete points.
    incomplete: usize,
}

/// Progress of one point.
#[derive(Debug, Default)]
struct Progress {
    point: usize,
    done: BTreeMap<u64, Measures>,
    /// First replication not given out yet.
    next: u64,
    /// Number of finished replications without a gap, from the first.
    prefix: u64,
    /// Number of these that all points of its group have.
    common: u64,
    /// Expected number of replications.
    expected: u64,
    /// Their values of the stop rule's metric.
    sample: Vec<Option<f64>>,
    /// Sufficient number of replications, once known.
    needed: Option<u64>,
    /// Its contribution to the totals and the queue.
    counted: Counts,
    rank: Option<Rank>,
}

impl Schedule {
    /// A schedule of these points of a plan, where `known` gives existing replications.
    pub fn new(
        plan: &Plan,
        points: &[usize],
        mut known: impl FnMut(Task) -> Option<Measures>,
    ) -> Self {
        let all = 0..plan.replications.max();
        Schedule::with(plan, points, |point| {
            let found = all
                .clone()
                .filter_map(|replication| Some((replication, known(Task { point, replication })?)));
            found.collect()
        })
    }

    /// A schedule of these points of a plan, without existing replications.
    pub fn fresh(plan: &Plan, points: &[usize]) -> Self {
        Schedule::with(plan, points, |_| BTreeMap::new())
    }

    fn with(
        plan: &Plan,
        points: &[usize],
        mut done: impl FnMut(usize) -> BTreeMap<u64, Measures>,
    ) -> Self {
        let (rule, needed) = match &plan.replications {
            Replications::Fixed(count) => (None, Some(*count)),
            Replications::Until(rule) => (Some(rule.clone()), None),
        };
        let progress =
            |&point: &usize| Progress { point, done: done(point), needed, ..Progress::default() };
        let places: BTreeMap<usize, usize> =
            points.iter().enumerate().map(|(place, &point)| (point, place)).collect();
        let (groups, group_of) = groups(plan, points, &places);
        let mut schedule = Schedule {
            points: points.iter().map(progress).collect(),
            places,
            open: BTreeSet::new(),
            groups,
            group_of,
            totals: Counts::default(),
            rule,
        };
        for place in 0..points.len() {
            schedule.points[place].advance(schedule.rule.as_ref());
        }
        (0..schedule.groups.len()).for_each(|group| schedule.decide(group));
        schedule
    }

    /// Processes a change in a point.
    fn update(&mut self, place: usize) {
        self.points[place].advance(self.rule.as_ref());
        match self.points[place].needed {
            Some(_) => self.refresh(place),
            None => self.decide(self.group_of[place]),
        }
    }

    /// Checks whether the results of a group suffice, in order of the replications.
    fn decide(&mut self, group: usize) {
        let members = &self.groups[group];
        let mut needed = self.points[members[0]].needed;
        let mut common = self.points[members[0]].common;
        let mut expected = needed.unwrap_or(0);
        if let (Some(rule), None) = (&self.rule, needed) {
            let all = members.iter().map(|&place| self.points[place].prefix).min().unwrap_or(0);
            while needed.is_none() && common < all {
                common += 1;
                let is_enough = common >= rule.replications_min
                    && is_known(rule, &self.points, members, common);
                needed = (is_enough || common == rule.replications_max).then_some(common);
            }
            expected = needed.unwrap_or_else(|| expected_of(rule, &self.points, members, common));
        }
        for place in members.clone() {
            let progress = &mut self.points[place];
            (progress.needed, progress.common, progress.expected) = (needed, common, expected);
            self.refresh(place);
        }
    }

    /// Updates the totals and the queue for a point.
    fn refresh(&mut self, place: usize) {
        let (rule, progress) = (self.rule.as_ref(), &mut self.points[place]);
        let (before, now) = (progress.counted, progress.counts());
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

    /// The next replication to run; `None` if none is left, or the rest depends on those in
    /// progress.
    ///
    /// All points once, then all again. Replications that a stop rule may not need come last, for
    /// callers that would otherwise wait.
    pub fn next_task(&mut self) -> Option<Task> {
        let &(_, _, place) = self.open.first()?;
        let progress = &mut self.points[place];
        let task = Task { point: progress.point, replication: progress.next };
        progress.next += 1;
        self.refresh(place);
        Some(task)
    }

    /// Like [`next_task`](Self::next_task), but only replications needed whatever the others
    /// measure.
    pub fn next_certain_task(&mut self) -> Option<Task> {
        let &(is_guess, _, _) = self.open.first()?;
        if is_guess { None } else { self.next_task() }
    }

    /// Takes in a finished replication.
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

    /// Number of points that have enough.
    pub fn complete_points(&self) -> usize {
        self.points.len() - self.totals.incomplete
    }

    /// Number of requested replications that exist.
    pub fn done(&self) -> u64 {
        self.totals.done
    }

    /// Expected total number of replications.
    pub fn expected(&self) -> u64 {
        self.totals.expected
    }

    /// Points whose stop rule gave up: they have the maximum number of replications, and the mean
    /// is not known well enough.
    pub fn given_up(&self) -> Vec<usize> {
        let Some(rule) = &self.rule else { return Vec::new() };
        let gave_up = |members: &&Vec<usize>| {
            let progress = &self.points[members[0]];
            progress.is_complete()
                && progress.needed == Some(rule.replications_max)
                && !is_known(rule, &self.points, members, rule.replications_max)
        };
        let members = self.groups.iter().filter(gave_up).flatten();
        let mut points: Vec<usize> = members.map(|&place| self.points[place].point).collect();
        points.sort_unstable();
        points
    }

    /// All requested replications that are done, by point and replication.
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

/// The groups of points that a rule decides on together, as indices, and the group of each index.
fn groups(
    plan: &Plan,
    points: &[usize],
    places: &BTreeMap<usize, usize>,
) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut by_first: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, &point) in points.iter().enumerate() {
        let base = plan.base(point).and_then(|base| places.get(&base).copied());
        let members = by_first.entry(base.unwrap_or(place)).or_default();
        // The baseline comes first, whichever was found first.
        if base.is_none() { members.insert(0, place) } else { members.push(place) }
    }
    let groups: Vec<Vec<usize>> = by_first.into_values().collect();
    let mut group_of = vec![0; points.len()];
    for (group, members) in groups.iter().enumerate() {
        members.iter().for_each(|&place| group_of[place] = group);
    }
    (groups, group_of)
}

/// Estimates from the first `count` results of a group: the mean of a point, or the mean
/// differences from the first one.
fn estimates<'a>(
    rule: &'a StopRule,
    points: &'a [Progress],
    members: &'a [usize],
    count: u64,
) -> impl Iterator<Item = Option<Estimate>> + 'a {
    let sample = move |place: usize| points[place].sample.iter().take(count as usize).copied();
    let compared = if rule.against.is_empty() { members } else { &members[1..] };
    compared.iter().map(move |&place| {
        let values: Vec<f64> = match rule.against.is_empty() {
            true => sample(place).flatten().collect(),
            false => {
                let pairs = sample(place).zip(sample(members[0]));
                pairs.filter_map(|(value, base)| Some(value? - base?)).collect()
            }
        };
        Estimate::of(&values)
    })
}

/// Whether the first `count` results of a group satisfy the rule: each mean has as many values as
/// it requires. A replication in which the metric does not apply gives none.
fn is_known(rule: &StopRule, points: &[Progress], members: &[usize], count: u64) -> bool {
    estimates(rule, points, members, count).all(|estimate| {
        let enough = estimate.filter(|estimate| estimate.count >= rule.replications_min);
        let width = enough.and_then(|estimate| estimate.width_for(rule));
        width.is_some_and(|(width, most)| width <= most)
    })
}

/// Expected requirement of the rule: the interval narrows with the square root.
fn expected_of(rule: &StopRule, points: &[Progress], members: &[usize], count: u64) -> u64 {
    let widths = estimates(rule, points, members, count)
        .filter_map(|estimate| estimate?.width_for(rule))
        .map(|(width, most)| width / most);
    let wanted = widths.reduce(f64::max).map_or(0.0, |excess| count as f64 * excess * excess);
    (wanted as u64).clamp(rule.replications_min.max(count + 1), rule.replications_max)
}

impl Progress {
    /// Finds how far the results go without a gap.
    fn advance(&mut self, rule: Option<&StopRule>) {
        while self.needed.is_none_or(|needed| self.prefix < needed) {
            let Some(measures) = self.done.get(&self.prefix) else { break };
            self.prefix += 1;
            if let Some(rule) = rule {
                self.sample.push(measures.value(&rule.metric).number());
            }
        }
    }

    /// Rank of its next replication; `None` if none is to be run.
    fn next_rank(&mut self, rule: Option<&StopRule>, place: usize) -> Option<Rank> {
        while self.done.contains_key(&self.next) {
            self.next += 1;
        }
        if self.next >= self.limit(rule) {
            return None;
        }
        let is_guess = self.next >= self.certain(rule);
        // Speculative replications go to points with the fewest.
        let count = if is_guess { self.next - self.common } else { self.next };
        Some((is_guess, count, place))
    }

    fn counts(&self) -> Counts {
        // Without gaps, as usual, they need not be counted.
        let done = match self.done.len() as u64 {
            len if len == self.prefix => len.min(self.needed.unwrap_or(len)),
            _ => self.kept().count() as u64,
        };
        let incomplete = usize::from(!self.is_complete());
        Counts { done, expected: self.needed.unwrap_or(self.expected), incomplete }
    }

    /// Number of replications beyond which none is given out.
    fn limit(&self, rule: Option<&StopRule>) -> u64 {
        self.needed.or(rule.map(|rule| rule.replications_max)).unwrap_or(0)
    }

    /// Number of replications certainly needed.
    fn certain(&self, rule: Option<&StopRule>) -> u64 {
        let min = rule.map_or(0, |rule| rule.replications_min);
        self.needed.unwrap_or(min.max(self.common + 1))
    }

    fn is_complete(&self) -> bool {
        self.needed.is_some_and(|needed| self.prefix >= needed)
    }

    /// The requested results.
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

    /// A synthetic result: steady at point 0, noisy at point 1, hopeless at point 2.
    fn result(task: Task) -> Finished {
        let noise = ((task.replication * 7 + 3) % 5) as f64 - 2.0;
        let value = 10.0 + noise * [0.0, 0.7, 40.0][task.point];
        let mut measures = Measures::default();
        measures.set("goodput_bps", value);
        Finished { task, measures }
    }

    /// Runs a schedule with `jobs` at once, finishing the latest one first.
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

    /// Visiting all points for each task would take ten thousand million steps.
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

    /// As the lab runs them: all certain ones, then those certain after these.
    #[test]
    fn what_is_certain_is_no_more_than_a_stop_rule_asks_for() {
        let stop = "stop = { metric = 'goodput_bps', ci95_ratio = 0.1, replications_min = 3, \
            replications_max = 50 }";
        let plan = plan(stop);
        let mut alone = Schedule::new(&plan, &[0, 1, 2], |_| None);
        run(&mut alone, 1);
        let mut schedule = Schedule::new(&plan, &[0, 1, 2], |_| None);
        let mut rounds = Vec::new();
        loop {
            let certain: Vec<_> = std::iter::from_fn(|| schedule.next_certain_task()).collect();
            if certain.is_empty() {
                break;
            }
            rounds.push(certain.len());
            // In another order than they were given out.
            certain.into_iter().rev().for_each(|task| schedule.finish(result(task)));
        }
        assert!(schedule.is_complete());
        assert_eq!(rounds[0], 9, "three of each point are needed for sure");
        assert!(rounds[1..].iter().all(|&count| count <= 2), "{rounds:?}");
        assert_eq!(rounds.iter().sum::<usize>(), tasks(&schedule).len(), "none made for nothing");
        assert_eq!(tasks(&schedule), tasks(&alone));
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
        // With a single job, nothing runs speculatively.
        assert_eq!(runs, expected.len());
        assert_eq!(alone.given_up(), [2]);
        for jobs in [2, 3, 8] {
            let mut many = Schedule::new(&plan, &[2, 1, 0], |_| None);
            run(&mut many, jobs);
            assert_eq!(tasks(&many), expected, "{jobs}");
            // More are known than requested, and some are missing in between.
            let known = |task: Task| (task.replication % 3 != 1).then(|| result(task).measures);
            let mut resumed = Schedule::new(&plan, &[0, 1, 2], known);
            run(&mut resumed, jobs);
            assert_eq!(tasks(&resumed), expected, "{jobs} after an interruption");
        }
    }

    /// The difference of points that vary together is known much sooner than each by itself.
    #[test]
    fn a_stop_rule_on_differences_asks_all_that_are_compared_for_as_many() {
        let stop = "stop = { metric = 'goodput_bps', ci95_half_width = 0.5, replications_min = 3, \
            replications_max = 60, against = { e3 = 0.0 } }";
        let plan = plan(stop);
        let finished = |task: Task| {
            let common = ((task.replication * 13 + 5) % 11) as f64;
            let own = ((task.replication * 7 + 3 * task.point as u64) % 5) as f64 - 2.0;
            let value = 100.0 + 10.0 * common + own * [0.0, 0.2, 0.5][task.point];
            let mut measures = Measures::default();
            measures.set("goodput_bps", value);
            Finished { task, measures }
        };
        let run = |schedule: &mut Schedule, jobs: usize| {
            let (mut under_way, mut runs) = (Vec::new(), 0);
            while !schedule.is_complete() {
                while under_way.len() < jobs {
                    let Some(task) = schedule.next_task() else { break };
                    under_way.push(task);
                    runs += 1;
                }
                schedule.finish(finished(under_way.pop().expect("something is under way")));
            }
            runs
        };
        let mut alone = Schedule::new(&plan, &[0, 1, 2], |_| None);
        let runs = run(&mut alone, 1);
        let expected = tasks(&alone);
        let count = |point| expected.iter().filter(|task| task.point == point).count();
        assert!(count(0) > 3 && count(0) < 60, "{}", count(0));
        assert_eq!((count(1), count(2)), (count(0), count(0)));
        assert_eq!((runs, alone.given_up()), (expected.len(), Vec::new()));
        for jobs in [2, 5] {
            let mut many = Schedule::new(&plan, &[2, 0, 1], |_| None);
            run(&mut many, jobs);
            assert_eq!(tasks(&many), expected, "{jobs}");
            let known = |task: Task| (task.replication % 3 != 1).then(|| finished(task).measures);
            let mut resumed = Schedule::new(&plan, &[0, 1, 2], known);
            run(&mut resumed, jobs);
            assert_eq!(tasks(&resumed), expected, "{jobs} after an interruption");
        }
    }

    /// Two values that happen to be equal would count as certain.
    #[test]
    fn replications_without_a_value_are_not_counted_as_values() {
        let rule = "metric = 'goodput_bps', ci95_ratio = 0.1, replications_min = 5, \
            replications_max = 60";
        for against in ["", ", against = { e3 = 0.0 }"] {
            let plan = plan(&format!("stop = {{ {rule}{against} }}"));
            let mut schedule = Schedule::new(&plan, &[0, 1], |_| None);
            while let Some(task) = schedule.next_task() {
                let mut measures = Measures::default();
                // At point 1 the metric applies only to every fourth replication.
                if task.point == 0 || task.replication % 4 == 0 {
                    measures.set("goodput_bps", 10.0 + task.point as f64);
                }
                schedule.finish(Finished { task, measures });
            }
            let done = schedule.rows().filter(|(task, _)| task.point == 1).count();
            assert_eq!((done, schedule.given_up()), (17, Vec::new()), "{against}");
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
