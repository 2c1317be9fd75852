//! Runs plans in the simulator, on several threads without blocking Python, or in batches wherever
//! Python executes them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use corridor_results::{Campaign, CampaignError, Ending, Engine, Store, Task};
use corridor_scenario::{
    Column, Measures, Plan, Replication, Replications, Rows, TableKind, Value,
};
use corridor_sim::{CODE_VERSION, Runner, SimError};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{refused, value};

/// Maximum number of threads.
const JOBS_MAX: usize = 1_024;
/// Maximum number of rows of long tables over all runs, which are in memory until the last run
/// ends: with the ten columns of a time series, a gigabyte per copy.
const ROWS_MAX: usize = 10_000_000;
/// Columns of long tables that identify a row's run: point and replication.
const RUN_COLUMNS: usize = 2;

/// Name, unit, meaning and role of a column.
type ColumnText = (String, String, String, String);

/// Point and replication.
type Run = (usize, u64);

/// Positions of nodes, and pairs in radio range: one per row.
type Sketched<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);

/// A parsed plan, and the runs made so far.
#[pyclass(frozen)]
pub struct PlanRuns {
    plan: Arc<Plan>,
    campaign: Mutex<Campaign>,
    simulator: Arc<Simulator>,
}

/// Makes replications in virtual time.
#[derive(Default)]
struct Simulator(Runner);

impl Engine for Simulator {
    type Error = SimError;

    fn make(&self, plan: &Plan, task: Task) -> Result<Replication, SimError> {
        self.0.run(&plan.points[task.point], task.replication)
    }
}

#[pymethods]
impl PlanRuns {
    /// Parses a plan. Runs found in the directory `out` are not made again, unless `afresh`;
    /// without a directory, nothing is saved.
    #[new]
    #[pyo3(signature = (text, directory, replications, out=None, afresh=false))]
    fn new(
        text: &str,
        directory: &str,
        replications: Option<u64>,
        out: Option<PathBuf>,
        afresh: bool,
    ) -> PyResult<Self> {
        let mut plan = Plan::parse(text, Path::new(directory)).map_err(refused)?;
        if let Some(count) = replications {
            plan = plan.with_replications(count).map_err(refused)?;
        }
        let simulator = Simulator::default();
        (simulator.0.check(&plan))
            .map_err(|(point, error)| value(&format!("point {point}"), "the plan's", error))?;
        let store = out.map(|out| Store::open(&out, &plan, afresh)).transpose().map_err(refused)?;
        let points: Vec<usize> = (0..plan.points.len()).collect();
        let plan = Arc::new(plan);
        let campaign = Campaign::new(Arc::clone(&plan), &points, CODE_VERSION, (store, afresh));
        Ok(PlanRuns { plan, campaign: Mutex::new(campaign), simulator: Arc::new(simulator) })
    }

    /// Number of points.
    #[getter]
    fn points(&self) -> usize {
        self.plan.points.len()
    }

    /// Maximum number of replications per point.
    #[getter]
    fn replications(&self) -> u64 {
        self.plan.replications.max()
    }

    /// Whether the number of replications is known from the start.
    #[getter]
    fn is_fixed(&self) -> bool {
        matches!(self.plan.replications, Replications::Fixed(_))
    }

    /// Metrics of a run.
    fn columns(&self) -> Vec<ColumnText> {
        self.metrics().map(text_of).collect()
    }

    /// Long tables that are kept, and their columns.
    fn tables(&self) -> Vec<(&'static str, Vec<ColumnText>)> {
        let kept = self.plan.tables().into_iter();
        kept.map(|kind| {
            let columns = kind.columns();
            // The run implies the point and the replication.
            (kind.name(), columns.iter().skip(RUN_COLUMNS).map(text_of).collect())
        })
        .collect()
    }

    /// Maximum number of rows of long tables over all runs, as far as known in advance.
    #[getter]
    fn rows_max(&self) -> usize {
        self.plan.rows_max()
    }

    /// Refuses more rows of long tables than are kept in memory.
    #[staticmethod]
    fn check_rows(rows: usize) -> PyResult<()> {
        if rows <= ROWS_MAX {
            return Ok(());
        }
        let given = format!("{rows} rows of all runs");
        let expected = format!(
            "at most {ROWS_MAX}, which are kept in memory: fewer points or replications, a larger \
             series_s, no delays, or `corridor sim run --out`, which writes them to files"
        );
        Err(value("output", given, expected))
    }

    /// The strings of a long table's text column, which holds their indices here; empty if it has
    /// none.
    #[staticmethod]
    fn words(table: &str) -> Vec<&'static str> {
        let kind = TableKind::ALL.into_iter().find(|kind| kind.name() == table);
        kind.map_or(Vec::new(), |kind| kind.words().to_vec())
    }

    /// Parameters of each point, by column name.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        (0..self.points()).map(|point| parameters_of(py, &self.plan, point)).collect()
    }

    /// Settings of point `point`, with presets and defaults filled in, by name.
    fn settings<'py>(&self, py: Python<'py>, point: usize) -> PyResult<Bound<'py, PyDict>> {
        let Some(of) = self.plan.points.get(point) else {
            return Err(value("point", point, format!("less than {}", self.points())));
        };
        let settings = PyDict::new(py);
        for (name, setting) in corridor_sim::settings(of).map_err(refused)? {
            set(&settings, &name, setting)?;
        }
        Ok(settings)
    }

    /// The network of point `point`: positions of nodes, metres; and pairs in radio range, one per
    /// row: from, to, whether it can receive, mean power in dBm (NaN for radios without power).
    fn sketch<'py>(&self, py: Python<'py>, point: usize) -> PyResult<Sketched<'py>> {
        let Some(of) = self.plan.points.get(point) else {
            return Err(value("point", point, format!("less than {}", self.points())));
        };
        let sketch = corridor_sim::sketch(of).map_err(refused)?;
        let row = |reach: &corridor_sim::Reach| {
            let hears = f64::from(u8::from(reach.hears));
            let power_dbm = reach.power_dbm.unwrap_or(f64::NAN);
            vec![reach.from as f64, reach.to as f64, hears, power_dbm]
        };
        let places: Vec<_> = sketch.places.iter().map(|place| place.to_vec()).collect();
        let reaches: Vec<_> = sketch.reaches.iter().map(row).collect();
        Ok((PyArray2::from_vec2(py, &places)?, PyArray2::from_vec2(py, &reaches)?))
    }

    /// Makes all missing runs, on `jobs` threads. After each, `progress` is called with the number
    /// of runs done and the total.
    fn run(&self, py: Python<'_>, jobs: usize, progress: Option<Py<PyAny>>) -> PyResult<()> {
        if !(1..=JOBS_MAX).contains(&jobs) {
            return Err(value("jobs", jobs, format!("1 to {JOBS_MAX}")));
        }
        let mut campaign = self.campaign()?;
        let (mut told, mut failure) = (campaign.schedule().done(), None);
        let look = |campaign: &Campaign| {
            let (schedule, before) = (campaign.schedule(), told);
            told = schedule.done();
            let seen = Python::attach(|py| {
                py.check_signals()?;
                PlanRuns::check_rows(campaign.held_rows())?;
                let progress = progress.as_ref().filter(|_| told > before);
                progress.map_or(Ok(()), |progress| {
                    progress.call1(py, (told, schedule.expected().max(told))).map(|_| ())
                })
            });
            match seen {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let campaign: &mut Campaign = &mut campaign;
        let made = py.detach(|| campaign.run(&self.simulator, jobs, look));
        match (made, failure) {
            (_, Some(failure)) => Err(failure),
            (Ok(Ending::Complete | Ending::Interrupted), None) => Ok(()),
            (Err(error), None) => Err(match error {
                CampaignError::Engine { source, .. } => refused(source),
                CampaignError::Panic { task: Task { point, replication }, said } => refused(
                    format!("point {point}, replication {replication}: it broke down: {said}"),
                ),
                CampaignError::Results(error) => refused(error),
            }),
        }
    }

    /// The next runs to make, at most `most`: point and replication. Empty if the rest depends on
    /// runs in progress.
    fn next_runs(&self, most: usize) -> PyResult<Vec<Run>> {
        let mut campaign = self.campaign()?;
        let next = std::iter::from_fn(|| campaign.next_task());
        Ok(next.take(most).map(|task| (task.point, task.replication)).collect())
    }

    /// The key of a batch of runs, wherever it is made.
    fn key(&self, runs: Vec<Run>) -> PyResult<String> {
        let campaign = self.campaign()?;
        let keys = self.tasks(&runs)?.into_iter().map(|task| campaign.key(task));
        Ok(keys.flatten().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Makes some runs, one after the other, for `take`; called on workers.
    fn make<'py>(&self, py: Python<'py>, runs: Vec<Run>) -> PyResult<Bound<'py, PyBytes>> {
        let tasks = self.tasks(&runs)?;
        let made = py.detach(|| {
            let made = tasks.into_iter().map(|task| self.simulator.make(&self.plan, task));
            made.collect::<Result<Vec<Replication>, SimError>>()
        });
        let json = serde_json::to_vec(&made.map_err(refused)?).map_err(refused)?;
        Ok(PyBytes::new(py, &json))
    }

    /// Accepts the results of `make` for these runs.
    fn take(&self, runs: Vec<Run>, made: &[u8]) -> PyResult<()> {
        let tasks = self.tasks(&runs)?;
        let made: Vec<Replication> = serde_json::from_slice(made).map_err(refused)?;
        if made.len() != tasks.len() {
            return Err(value("made", made.len(), format!("{} runs", tasks.len())));
        }
        let mut campaign = self.campaign()?;
        for (task, made) in tasks.into_iter().zip(made) {
            campaign.take(task, made).map_err(refused)?;
        }
        PlanRuns::check_rows(campaign.held_rows())
    }

    /// Metrics of one run, which is not stored.
    fn measure<'py>(
        &self,
        py: Python<'py>,
        point: usize,
        replication: u64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let task = self.tasks(&[(point, replication)])?[0];
        let made = py.detach(|| self.simulator.make(&self.plan, task)).map_err(refused)?;
        let measures = made.measures;
        let values = self.metrics().map(|column| number(&measures, column));
        Ok(PyArray1::from_iter(py, values))
    }

    /// Whether all requested runs are done.
    #[getter]
    fn is_complete(&self) -> PyResult<bool> {
        Ok(self.campaign()?.schedule().is_complete())
    }

    /// Number of runs done, and the expected total.
    #[getter]
    fn progress(&self) -> PyResult<(u64, u64)> {
        let campaign = self.campaign()?;
        let schedule = campaign.schedule();
        Ok((schedule.done(), schedule.expected().max(schedule.done())))
    }

    /// Points whose stop rule gave up.
    #[getter]
    fn given_up(&self) -> PyResult<Vec<usize>> {
        Ok(self.campaign()?.schedule().given_up())
    }

    /// Metrics by column, point and replication; NaN for values that do not apply, or runs not
    /// requested.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let campaign = self.campaign()?;
        let rows = || campaign.schedule().rows();
        let count = rows().map(|(task, _)| task.replication as usize + 1).max().unwrap_or(0);
        let shape = [self.metrics().count(), self.points(), count];
        let values = PyArray3::zeros(py, shape, false);
        let mut written = values.readwrite();
        let mut cells = written.as_array_mut();
        cells.fill(f64::NAN);
        for (task, measures) in rows() {
            for (place, column) in self.metrics().enumerate() {
                let cell = [place, task.point, task.replication as usize];
                cells[cell] = number(measures, column);
            }
        }
        drop(written);
        Ok(values)
    }

    /// The long tables by name: point and replication of each row, and the values by column and
    /// row.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let campaign = self.campaign()?;
        let kinds = self.plan.tables();
        let empty =
            |kind: &TableKind| (vec![], vec![], vec![vec![]; kind.columns().len() - RUN_COLUMNS]);
        let mut tables: Vec<PointsRunsColumns> = kinds.iter().map(empty).collect();
        let (mut count, runs) = (0, campaign.schedule().rows());
        for (task, _) in runs.filter(|_| !kinds.is_empty()) {
            let found = campaign.tables(task).map_err(refused)?;
            for (kind, (points, replications, columns)) in kinds.iter().zip(&mut tables) {
                let Some(rows) = found.rows(*kind) else { continue };
                points.resize(points.len() + rows.len(), task.point as i64);
                replications.resize(points.len(), task.replication as i64);
                extend(columns, rows);
                count += rows.len();
            }
            PlanRuns::check_rows(count)?;
        }
        let told = PyDict::new(py);
        for (kind, (points, replications, columns)) in kinds.iter().zip(tables) {
            let values = PyArray2::from_vec2(py, &columns).map_err(refused)?;
            let of = [points, replications].map(|each| PyArray1::from_vec(py, each));
            let [points, replications] = of;
            told.set_item(kind.name(), (points, replications, values))?;
        }
        Ok(told)
    }
}

/// Points and replications of rows, and their values by column.
type PointsRunsColumns = (Vec<i64>, Vec<i64>, Vec<Vec<f64>>);

impl PlanRuns {
    /// The campaign. Locking never blocks: a caller that runs it in another thread may itself wait
    /// for Python.
    fn campaign(&self) -> PyResult<MutexGuard<'_, Campaign>> {
        match self.campaign.try_lock() {
            Ok(campaign) => Ok(campaign),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(value("runs", "under way", "that another thread is through with them"))
            }
        }
    }

    fn metrics(&self) -> impl Iterator<Item = &Column> {
        self.plan.columns().iter().filter(|column| column.is_metric())
    }

    /// Converts runs to tasks, checking that they belong to this plan.
    fn tasks(&self, runs: &[Run]) -> PyResult<Vec<Task>> {
        let (points, count) = (self.points(), self.replications());
        let task = |&(point, replication): &Run| {
            if point >= points {
                return Err(value("point", point, format!("less than {points}")));
            }
            if replication >= count {
                return Err(value("replication", replication, format!("less than {count}")));
            }
            Ok(Task { point, replication })
        };
        runs.iter().map(task).collect()
    }
}

fn extend(columns: &mut [Vec<f64>], rows: &Rows) {
    for (all, column) in columns.iter_mut().zip(rows.columns()) {
        all.extend_from_slice(column);
    }
}

fn number(measures: &Measures, column: &Column) -> f64 {
    measures.value(&column.name).number().unwrap_or(f64::NAN)
}

/// Name, unit, meaning and role.
fn text_of(column: &Column) -> ColumnText {
    let role = format!("{:?}", column.role).to_lowercase();
    (column.name.clone(), column.unit.clone(), column.meaning.clone(), role)
}

/// Parameters of a point, by column name.
fn parameters_of<'py>(py: Python<'py>, plan: &Plan, point: usize) -> PyResult<Bound<'py, PyDict>> {
    let record = plan.record(point, 0, &Measures::default());
    let parameters = PyDict::new(py);
    for (column, value) in plan.columns().iter().zip(record.values).skip(3) {
        if column.is_metric() {
            continue;
        }
        set(&parameters, &column.name, value)?;
    }
    Ok(parameters)
}

/// Puts a value into a dictionary.
fn set(dictionary: &Bound<'_, PyDict>, name: &str, value: Value) -> PyResult<()> {
    match value {
        Value::Absent => dictionary.set_item(name, dictionary.py().None()),
        Value::Flag(flag) => dictionary.set_item(name, flag),
        Value::Integer(count) => dictionary.set_item(name, count),
        Value::Real(measure) => dictionary.set_item(name, measure),
        Value::Text(text) => dictionary.set_item(name, text),
    }
}
