//! `corridor lab run` of a plan's runs on a radio or a line: each replication in real time, as many
//! at once as the processors can take, and with `--beside-sim` in virtual time too.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::iter;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use corridor_results::checks::{self, Check};
use corridor_results::{Campaign, Task};
use corridor_scenario::{
    Document, Engine, Load, Measures, Plan, Point, Radio, Replication, Row, Run, Scenario, Tables,
    Wire,
};
use corridor_sim::COMMIT;

use super::out::OutFile;
use super::{
    FAILED_IN_A_ROW_MAX, Failure, RunArgs, campaign, is_one_run_only, json, prepare, tell_results,
    version,
};
use crate::crew::{Crew, Jobs, processors};
use crate::engine::{EngineError, Maker};
use crate::progress::Progress;

/// Makes the runs at these points.
pub(super) fn run(
    args: &RunArgs,
    document: &Document,
    plan: Plan,
    points: &[usize],
) -> Result<(), Failure> {
    if args.beside_sim {
        // Only the lab reports these.
        Plan::read_beside(document, &args.scenario)?;
        corridor_sim::check_plan(&plan).map_err(|(_, error)| EngineError::from(error))?;
    }
    prepare()?;
    let out = args.out.as_deref().map(OutFile::create).transpose()?;
    let maker = Maker::new(Engine::Lab)?;
    let possible = without_absent(&plan, points)?;
    let (version, plan) = (version(), Arc::new(plan));
    let mut campaign = campaign(args, &plan, &possible, &version)?;
    let making = Making::new(args, &plan, &maker, out.as_ref());
    let (rows, asked, result) = making.make_all(&mut campaign);
    campaign.write(COMMIT, &version)?;
    // Finished runs are shown even if the rest failed.
    if !args.json && !rows.is_empty() {
        table::write_table(&mut io::stdout().lock(), &rows).map_err(Failure::Output)?;
    }
    tell_results(args);
    let of_lab: Vec<&Row> = rows.iter().filter(|row| row.engine == Engine::Lab).collect();
    if let (Err(Failure::Engine(_)), Some(out), false) = (&result, &out, rows.is_empty()) {
        eprintln!("wrote {} of {asked} runs to {}", of_lab.len(), out.path.display());
    }
    let left_out = (points.len() - possible.len()) as u64 * plan.replications.max();
    let held = args.checks.as_ref().map_or(Ok(()), |path| hold(path, (asked, left_out), &of_lab));
    let doubtful = of_lab.iter().filter(|row| !row.valid).count();
    // Without a results directory all rows are shown, and people judge their validity.
    let kept = match args.results {
        Some(_) if doubtful > 0 => Err(Failure::Doubtful { doubtful, count: of_lab.len() }),
        _ => Ok(()),
    };
    result.and(held).and(kept)
}

fn run_of(point: &Point) -> Option<&Radio> {
    match &point.load {
        Load::Radio(radio) => Some(radio),
        Load::Network(_) => None,
    }
}

/// Leaves out points whose congestion control this kernel does not have, and reports them on
/// standard error. If nothing remains, all runs count as failed.
fn without_absent(plan: &Plan, points: &[usize]) -> Result<Vec<usize>, Failure> {
    let of = |&point: &usize| {
        let run = run_of(&plan.points[point]).map(|radio| &radio.run);
        run.into_iter().flat_map(|run| [run.congestion, run.lab.beside]).flatten()
    };
    let names: BTreeSet<String> = points.iter().flat_map(of).map(|each| each.to_string()).collect();
    let mut absent = BTreeSet::new();
    for name in names {
        if !corridor_lab::has_congestion(&name).map_err(EngineError::from)? {
            absent.insert(name);
        }
    }
    let is_possible = |point: &&usize| !of(point).any(|each| absent.contains(&each.to_string()));
    let possible: Vec<usize> = points.iter().filter(is_possible).copied().collect();
    let (count, left_out) = (points.len(), points.len() - possible.len());
    if left_out > 0 {
        let names = Vec::from_iter(absent).join(", ");
        eprintln!(
            "absent: this kernel has no TCP congestion control {names} (try modprobe tcp_NAME): \
             {left_out} of {count} runs are left out"
        );
    }
    if possible.is_empty() {
        return Err(Failure::Runs { failed: left_out, count });
    }
    Ok(possible)
}

/// Checks whether rows are usable.
fn checks_of(runs: u64, rows: &[&Row]) -> Vec<Check> {
    let failed = runs.saturating_sub(rows.len() as u64);
    let doubtful = rows.iter().filter(|row| !row.valid).count();
    let late = rows.iter().filter_map(|row| row.lateness_p99_s).reduce(f64::max);
    let limit_ms = 1e3 * corridor_lab::LATENESS_MAX.as_secs_f64();
    let mut checks = vec![
        Check::at_most("runs that failed", Some(failed as f64), 0.0, "runs"),
        Check::at_most("runs that are not valid", Some(doubtful as f64), 0.0, "runs"),
    ];
    // Runs made earlier count as on time.
    if runs > 0 {
        let name = "lateness of the medium, 99th percentile";
        checks.push(Check::at_most(name, late.map(|s| 1e3 * s), limit_ms, "ms"));
    }
    checks
}

/// Writes the checks of `runs` runs, apart from those left out; an error if one of them fails.
fn hold(path: &Path, (runs, left_out): (u64, u64), rows: &[&Row]) -> Result<(), Failure> {
    let checks = checks_of(runs, rows);
    let json = serde_json::json!({ "runs": runs, "runs_left_out": left_out, "checks": checks });
    crate::demo::replace(path, &format!("{json:#}\n"))
        .map_err(|source| Failure::Write { path: path.to_owned(), source })?;
    match checks::broken(&checks) {
        0 => Ok(()),
        broken => Err(Failure::Checks { broken, count: checks.len() }),
    }
}

/// A replication to be made.
struct Job {
    task: Task,
    scenario: Scenario,
    run: Run,
}

impl Job {
    /// `None` for a network, which is not on a radio or a line.
    fn new(plan: &Plan, task: Task) -> Option<Self> {
        let point = &plan.points[task.point];
        let Radio { scenario, run, .. } = run_of(point)?;
        // Rows name the plan; the identity of a replication does not.
        let (name, seed) = (plan.name.clone(), point.seed);
        let scenario = Scenario { name, seed, ..scenario.clone() };
        let run = Run { point: task.point, replication: task.replication, ..run.clone() };
        Some(Job { task, scenario, run })
    }
}

/// A plan's replications, while they are made in parallel.
struct Making<'a> {
    args: &'a RunArgs,
    plan: &'a Arc<Plan>,
    maker: &'a Maker,
    out: Option<&'a OutFile>,
    progress: Progress,
    state: Mutex<Made>,
}

/// Their results.
#[derive(Default)]
struct Made {
    /// By index, and whether they were simulated.
    rows: BTreeMap<(usize, bool), Row>,
    /// Requested simulations that have not been reported yet.
    simulated: BTreeMap<usize, Row>,
    /// Results that the campaign does not have yet.
    fresh: Vec<(Task, Row)>,
    /// Runs that did not get their processors in time in parallel.
    again: Vec<usize>,
    failed: usize,
    failed_in_a_row: usize,
    /// Why it is useless to go on.
    failure: Option<Failure>,
}

impl<'a> Making<'a> {
    fn new(
        args: &'a RunArgs,
        plan: &'a Arc<Plan>,
        maker: &'a Maker,
        out: Option<&'a OutFile>,
    ) -> Self {
        let progress = Progress::of(Vec::new());
        Making { args, plan, maker, out, progress, state: Mutex::default() }
    }

    /// Makes all of them. Returns the rows in the order of the runs, how many runs there were, and
    /// whether all succeeded.
    fn make_all(self, campaign: &mut Campaign) -> (Vec<Row>, u64, Result<(), Failure>) {
        let mut count = 0;
        // A stop rule decides on further replications when it has these.
        while self.state().failure.is_none() {
            let tasks = iter::from_fn(|| campaign.next_certain_task());
            let jobs: Vec<Job> = tasks.filter_map(|task| Job::new(self.plan, task)).collect();
            if jobs.is_empty() {
                break;
            }
            count += jobs.len();
            self.make_jobs(&jobs, campaign);
        }
        let made = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = match (made.failure, made.failed) {
            (Some(failure), _) => Err(failure),
            (None, 0) => Ok(()),
            (None, failed) => Err(Failure::Runs { failed, count }),
        };
        (made.rows.into_values().collect(), count as u64, result)
    }

    fn make_jobs(&self, jobs: &[Job], campaign: &mut Campaign) {
        let first = self.progress.add(jobs.iter().map(|job| self.maker.time_needed(&job.run)));
        if self.args.beside_sim {
            // Before, not in parallel: a simulation takes processors that real time needs.
            let places: Vec<usize> = (0..jobs.len()).collect();
            Crew::new(Jobs::Fixed(processors())).work(&places, |index, _| {
                self.simulate(first + index, &jobs[index]);
                None
            });
        }
        let campaign = Mutex::new(campaign);
        let make = |index: usize, is_alone: bool| {
            let needed = self.make(first + index, &jobs[index], is_alone);
            let mut campaign = campaign.lock().unwrap_or_else(PoisonError::into_inner);
            self.hand_over(&mut campaign);
            needed
        };
        let is_alone = |&index: &usize| jobs[index].run.lab.wire == Wire::Veth;
        let (mut alone, shared): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(is_alone);
        Crew::new(Jobs::of(self.args.jobs)).work(&shared, make);
        let again = core::mem::take(&mut self.state().again);
        alone.extend(again.into_iter().map(|place| place - first));
        Crew::new(Jobs::Fixed(1)).work(&alone, |index, _| make(index, true));
    }

    /// Simulates a run, unless it is useless to go on.
    fn simulate(&self, place: usize, job: &Job) {
        if self.state().failure.is_some() {
            return;
        }
        let simulated = self.maker.check().and_then(|()| {
            corridor_sim::run_as_lab(&job.scenario, &job.run).map_err(EngineError::from)
        });
        let mut state = self.state();
        match simulated {
            Ok(row) => {
                state.simulated.insert(place, row);
            }
            Err(error) => {
                state.failure.get_or_insert(error.into());
            }
        }
    }

    /// Makes a run, unless it is useless to go on. Returns the processors that it needed.
    fn make(&self, place: usize, job: &Job, is_alone: bool) -> Option<f64> {
        if self.state().failure.is_some() {
            return None;
        }
        let Job { task, scenario, run } = job;
        self.progress.begin(place, run);
        let made = self.maker.make(scenario, run);
        let needed = made.as_ref().ok().and_then(|row| row.processors);
        let mut state = self.state();
        match made {
            Ok(row) if !is_alone && corridor_lab::is_spoilt(&row) => {
                self.progress.put_off(place);
                let why = row.notes.join("; ");
                self.progress.say(&format!("{}: will be repeated alone: {why}", run.title()));
                state.again.push(place);
            }
            Ok(row) => {
                state.failed_in_a_row = 0;
                self.progress.finish(place, run, &row);
                let told = self.tell_both(&mut state, (place, *task), row.clone());
                state.fresh.push((*task, row));
                if let Err(failure) = told {
                    state.failure.get_or_insert(failure);
                }
            }
            Err(error)
                if is_one_run_only(&error) && state.failed_in_a_row < FAILED_IN_A_ROW_MAX =>
            {
                self.progress.fail(place, &run.title(), &error);
                state.failed += 1;
                state.failed_in_a_row += 1;
            }
            Err(error) => {
                state.failure.get_or_insert(error.into());
            }
        }
        needed
    }

    /// Passes the finished runs to the campaign, and so to the results directory.
    fn hand_over(&self, campaign: &mut Campaign) {
        let fresh = core::mem::take(&mut self.state().fresh);
        for (task, row) in fresh {
            let made = replication(self.plan, task, &row);
            let taken = match row.valid {
                true => campaign.take(task, made),
                false => {
                    campaign.take_doubtful(task, made);
                    Ok(())
                }
            };
            if let Err(error) = taken {
                self.state().failure.get_or_insert(error.into());
            }
        }
    }

    /// Reports the result of a run, and of its simulation if there was one.
    fn tell_both(
        &self,
        made: &mut Made,
        (place, task): (usize, Task),
        row: Row,
    ) -> Result<(), Failure> {
        let simulated = made.simulated.remove(&place);
        for row in simulated.into_iter().chain([row]) {
            let swept = self.plan.swept(task.point);
            let swept = swept.map(|(path, value)| (path.to_owned(), value.clone())).collect();
            self.tell(made, place, Row { swept, ..row })?;
        }
        Ok(())
    }

    fn tell(&self, made: &mut Made, place: usize, row: Row) -> Result<(), Failure> {
        let newest = json(&row);
        if self.args.json {
            let mut stdout = io::stdout().lock();
            stdout.write_all((newest.clone() + "\n").as_bytes()).map_err(Failure::Output)?;
            stdout.flush().map_err(Failure::Output)?;
        }
        made.rows.insert((place, row.engine == Engine::Sim), row);
        self.out.map_or(Ok(()), |out| out.write(made.rows.values(), &newest))
    }

    fn state(&self) -> MutexGuard<'_, Made> {
        // A worker that panics ends everything: its scope panics too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A row in the columns of a simulation, and its flows' totals if the plan keeps them.
fn replication(plan: &Plan, task: Task, row: &Row) -> Replication {
    let (measures, mut tables) = (Measures::of_row(row), Tables::default());
    if plan.points[task.point].keep.totals {
        row.sides.iter().for_each(|side| tables.add_flow(side.from, &measures));
    }
    Replication { measures, tables }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use corridor_scenario::expand;

    use super::*;

    const SCENARIO: &str = "name = 't'\nseed = 1\nrepeats = 3\n[medium]\nduplex = 'half'\n\
        rate_bps = 12000000\nrtt_ms = 4\nqueue_frames = 50\n[[run]]\npath = ['kernel', 'coded']\n\
        transport = 'tcp'\ne3 = 0.1\nduration_s = 1\n";

    pub(in crate::lab) fn rows() -> Vec<Row> {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let runs = expand(&scenario).unwrap();
        let row = |(index, run): (usize, &Run)| {
            let mut row = Row::new(&scenario, run, Engine::Lab);
            row.goodput_bps = 1e6 * (index + 1) as f64;
            row
        };
        runs.iter().enumerate().map(row).collect()
    }

    #[test]
    fn the_checks_say_whether_rows_are_worth_reading() {
        let mut rows = rows();
        rows.iter_mut().for_each(|row| row.lateness_p99_s = Some(0.000_5));
        let count = rows.len() as u64;
        let holds = |rows: &[Row]| {
            let checks = checks_of(count, &rows.iter().collect::<Vec<_>>());
            checks.iter().map(|check| check.holds).collect::<Vec<_>>()
        };
        assert_eq!(holds(&rows), [true, true, true]);
        rows[0].lateness_p99_s = Some(0.001_2);
        rows[0].distrust("late");
        assert_eq!(holds(&rows), [true, false, false]);
        assert_eq!(holds(&rows[1..]), [false, true, true]);
        // Without a medium, it has no figures and no checks.
        assert_eq!(holds(&[]), [false, true, false]);

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lab.json");
        let rows: Vec<&Row> = rows.iter().collect();
        let failure = hold(&path, (count, 0), &rows).unwrap_err();
        assert_eq!(failure.to_string(), "2 of 3 checks failed");
        let written: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let check = &written["checks"][1];
        assert_eq!(check["name"], "runs that are not valid");
        assert_eq!((&check["value"], &check["limit"]), (&1.0.into(), &0.0.into()));
        assert_eq!(check["holds"], false);
    }
}
