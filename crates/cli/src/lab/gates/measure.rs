//! The order in which cases are measured, several of the lab at once.
//!
//! All cases once, then all again, so that changes on the machine affect all alike. In each repeat
//!
//! 1. cases that need no lab are simulated, on all processors;
//! 2. cases that can run in parallel are measured, several at once, the longest first;
//! 3. the others are measured one by one, and with them those that were late in parallel.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use corridor_lab::is_spoilt;
use corridor_scenario::Row;

use super::super::{FAILED_IN_A_ROW_MAX, Failure, is_one_run_only};
use super::Rows;
use super::judge::{Rule, is_decided};
use super::list::{Case, Company, Gate};
use crate::crew::{Crew, Jobs, processors};
use crate::engine::EngineError;
use crate::progress::Progress;

/// Maximum number of attempts of a run that the machine disturbs.
const ATTEMPTS: u32 = 3;

/// Makes a run of a case in a repeat.
pub(super) type Make<'a> = dyn Fn(&Case, u64) -> Result<Row, EngineError> + Sync + 'a;

/// What is to be measured.
pub(super) struct Plan<'a> {
    pub(super) gates: &'a [Gate],
    pub(super) cases: &'a [Case],
    pub(super) repeats: u64,
    pub(super) rule: Rule,
    /// Number of lab cases at once.
    pub(super) jobs: Jobs,
}

/// Number of failed runs.
#[derive(Default)]
struct Failures {
    count: usize,
    in_a_row: usize,
}

impl Failures {
    fn are_bearable_with(&self, error: &EngineError) -> bool {
        is_one_run_only(error) && self.in_a_row < FAILED_IN_A_ROW_MAX
    }
}

impl Plan<'_> {
    /// Maximum duration of the whole measurement.
    pub(super) fn time_needed(&self) -> Duration {
        let mut workers = vec![Duration::ZERO; self.jobs.at_first()];
        for case in self.queue(|company| *company == Company::Shared) {
            if let Some(first) = workers.iter_mut().min() {
                *first += self.cases[case].time_needed();
            }
        }
        let others = self.cases.iter().filter(|case| case.company != Company::Shared);
        let rest: Duration = others.map(|case| self.share_of_time(case)).sum();
        let shared = workers.into_iter().max().unwrap_or_default();
        (shared + rest).saturating_mul(u32::try_from(self.repeats).unwrap_or(u32::MAX))
    }

    /// By how much a case lengthens a repeat.
    fn share_of_time(&self, case: &Case) -> Duration {
        let at_once = match case.company {
            Company::Shared => self.jobs.at_first(),
            Company::Alone => 1,
            Company::Simulated(_) => processors(),
        };
        case.time_needed() / u32::try_from(at_once).unwrap_or(u32::MAX)
    }

    /// Cases with this kind of company; if several run at once the longest first, so that none has
    /// to be waited for at the end.
    fn queue(&self, is_wanted: impl Fn(&Company) -> bool) -> Vec<usize> {
        let wanted = |&index: &usize| is_wanted(&self.cases[index].company);
        let mut queue: Vec<usize> = (0..self.cases.len()).filter(wanted).collect();
        if self.jobs != Jobs::Fixed(1) {
            queue.sort_by_key(|&index| std::cmp::Reverse(self.cases[index].time_needed()));
        }
        queue
    }

    /// Whether a case is needed by a gate that these rows do not decide.
    fn needed_after(&self, rows: &[Rows]) -> Vec<bool> {
        let open: Vec<&Gate> =
            self.gates.iter().filter(|gate| !is_decided(gate, rows, self.rule)).collect();
        let is_needed = |case: &Case| open.iter().any(|gate| gate.needs.contains(&case.name));
        self.cases.iter().map(is_needed).collect()
    }
}

/// Measures what `rows` does not have yet, one element for each repeat, and has it written after
/// every repeat.
///
/// # Errors
/// An error of writing, an error of runs that makes it useless to go on, or that runs failed.
pub(super) fn measure(
    plan: &Plan<'_>,
    make: &Make<'_>,
    rows: &mut Vec<Rows>,
    mut write: impl FnMut(&[Rows]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let count = plan.cases.len();
    let repeats = usize::try_from(plan.repeats).unwrap_or(usize::MAX);
    let needed = plan.cases.iter().map(|case| plan.share_of_time(case));
    let needed: Vec<Duration> = needed.collect();
    let progress = Progress::of(needed.repeat(repeats));
    let mut failures = Failures::default();
    // It learns from repeat to repeat what cases need.
    let shared = Crew::new(plan.jobs);
    for place in 0..repeats {
        let needed = plan.needed_after(&rows[..place.min(rows.len())]);
        let is_open = |index: usize| {
            let is_there = |rows: &Rows| rows.contains_key(&plan.cases[index].name);
            needed[index] && !rows.get(place).is_some_and(is_there)
        };
        let open: Vec<bool> = (0..count).map(is_open).collect();
        for index in (0..count).filter(|&index| !open[index]) {
            progress.pass_over(place * count + index);
        }
        if !open.contains(&true) {
            continue;
        }
        rows.resize_with(rows.len().max(place + 1), Rows::new);
        let replication = place as u64;
        let repeat = Repeat {
            plan,
            make,
            progress: &progress,
            shared: &shared,
            replication,
            state: Mutex::new(State {
                rows: &mut rows[place],
                again: Vec::new(),
                failures: &mut failures,
                error: None,
            }),
        };
        let made = repeat.make_all(&open);
        write(rows)?;
        made?;
    }
    match failures.count {
        0 => Ok(()),
        failed => Err(Failure::Runs { failed, count: repeats * count }),
    }
}

/// One repeat, while it is made.
struct Repeat<'a> {
    plan: &'a Plan<'a>,
    make: &'a Make<'a>,
    progress: &'a Progress,
    /// Measures the cases that can run in parallel.
    shared: &'a Crew,
    replication: u64,
    state: Mutex<State<'a>>,
}

/// State shared by the workers.
struct State<'a> {
    rows: &'a mut Rows,
    /// Cases that did not get their processors in time in parallel.
    again: Vec<usize>,
    failures: &'a mut Failures,
    /// Why it is useless to go on.
    error: Option<EngineError>,
}

impl<'a> Repeat<'a> {
    /// Measures the cases that remain.
    fn make_all(self, open: &[bool]) -> Result<(), EngineError> {
        let queue = |is_wanted: &dyn Fn(&Company) -> bool| {
            let mut queue = self.plan.queue(is_wanted);
            queue.retain(|&index| open[index]);
            queue
        };
        let step = |index, is_alone| self.step(index, is_alone);
        let simulators = Crew::new(Jobs::Fixed(processors()));
        simulators.work(&queue(&|company| matches!(company, Company::Simulated(_))), step);
        self.shared.work(&queue(&|company| *company == Company::Shared), step);
        let mut alone = queue(&|company| *company == Company::Alone);
        alone.append(&mut self.state().again);
        Crew::new(Jobs::Fixed(1)).work(&alone, step);
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.error.map_or(Ok(()), Err)
    }

    /// Measures a case, unless it is useless to go on. Returns the processors that it needed.
    fn step(&self, index: usize, is_alone: bool) -> Option<f64> {
        if self.state().error.is_some() {
            return None;
        }
        let case = &self.plan.cases[index];
        let place = self.replication as usize * self.plan.cases.len() + index;
        self.progress.begin_as(place, &case.name);
        let made = self.make(case, if is_alone { ATTEMPTS } else { 1 });
        let needed = made.as_ref().ok().and_then(|row| row.processors);
        let mut state = self.state();
        match made {
            Ok(row) if is_spoilt(&row) && !is_alone => {
                self.progress.put_off(place);
                self.progress.say(&format!("{}: late, will be repeated alone", case.name));
                state.again.push(index);
            }
            Ok(row) => {
                self.progress.finish_as(place, &case.name, &row);
                state.failures.in_a_row = 0;
                state.rows.insert(case.name.clone(), row);
            }
            Err(error) if state.failures.are_bearable_with(&error) => {
                self.progress.fail(place, &case.name, &error);
                state.failures.count += 1;
                state.failures.in_a_row += 1;
            }
            Err(error) => {
                state.error.get_or_insert(error);
            }
        }
        needed
    }

    /// A run, repeated if it did not get its processors in time: that is due to the machine, not to
    /// the run.
    fn make(&self, case: &Case, attempts: u32) -> Result<Row, EngineError> {
        let mut row = (self.make)(case, self.replication)?;
        for _ in 1..attempts {
            if !is_spoilt(&row) {
                break;
            }
            row = (self.make)(case, self.replication)?;
        }
        Ok(row)
    }

    fn state(&self) -> MutexGuard<'_, State<'a>> {
        // A worker that panics ends the measurement: its scope panics too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
