//! Plans run by the simulator, on several threads, while Python is free to do something else.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use corridor_scenario::{Column, Measures, Plan, Replication, Replications, Value};
use corridor_sim::SimError;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{refused, value};

/// Most threads.
const JOBS_MAX: usize = 1_024;
/// Most rows of long tables of all runs together, which are kept in memory until the last run: with
/// the ten columns of a course, a gigabyte for each copy of them.
const ROWS_MAX: usize = 10_000_000;
/// Columns of long tables that say which run a row is of: point and replication.
const RUN_COLUMNS: usize = 2;

/// Name, unit, meaning and role of a column.
type ColumnText = (String, String, String, String);

/// What runs measured, by column and run; and the long tables: of each row its run, and its values
/// by column and row.
type Ran<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyDict>);

/// Where nodes are, and who notices whom: a row for each.
type Sketched<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);

/// A plan that has been read: what runs of it are told by their number, which is that of the point
/// times the number of replications, plus that of the replication.
#[pyclass(frozen)]
pub struct PlanRuns {
    plan: Plan,
    /// Replications of each point.
    count: usize,
}

#[pymethods]
impl PlanRuns {
    #[new]
    fn new(text: &str, directory: &str, replications: Option<u64>) -> PyResult<Self> {
        let mut plan = Plan::parse(text, Path::new(directory)).map_err(refused)?;
        if let Some(count) = replications {
            plan = plan.with_replications(count).map_err(refused)?;
        }
        if let Replications::Until(_) = plan.replications {
            return Err(value("replications", "a stop rule", "a number of replications"));
        }
        corridor_sim::check_plan(&plan)
            .map_err(|(point, error)| value(&format!("point {point}"), "the plan's", error))?;
        let count = plan.replications.max() as usize;
        Ok(PlanRuns { plan, count })
    }

    /// Number of points.
    #[getter]
    fn points(&self) -> usize {
        self.plan.points.len()
    }

    /// Number of replications of each point.
    #[getter]
    fn replications(&self) -> usize {
        self.count
    }

    /// What a run measures.
    fn columns(&self) -> Vec<ColumnText> {
        self.metrics().map(text_of).collect()
    }

    /// Long tables that are kept besides, and what their rows hold.
    fn tables(&self) -> Vec<(&'static str, Vec<ColumnText>)> {
        let kept = self.plan.tables().into_iter();
        kept.map(|kind| {
            let columns = kind.columns();
            // The run says which point and replication.
            (kind.name(), columns.iter().skip(RUN_COLUMNS).map(text_of).collect())
        })
        .collect()
    }

    /// Most rows of long tables of all runs, as far as can be told before they are made.
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

    /// Parameters of each point, by the names of their columns.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        (0..self.points()).map(|point| parameters_of(py, &self.plan, point)).collect()
    }

    /// What point `point` is run with, presets and defaults put in, by name.
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

    /// The network of point `point`: where nodes are, metres; and who notices whom by radio, a row
    /// for each pair: from, to, whether it hears, mean power in dBm (NaN where radios have none).
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

    /// Makes runs `first` to `end` - 1, and returns what they measured, and the long tables.
    /// `progress` is called with the number of runs done and that of all, after each.
    fn run<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        end: usize,
        jobs: usize,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Ran<'py>> {
        if !(1..=JOBS_MAX).contains(&jobs) {
            return Err(value("jobs", jobs, format!("1 to {JOBS_MAX}")));
        }
        let runs = self.points() * self.count;
        if first > end || end > runs {
            return Err(value("end", end, format!("{first} to {runs}")));
        }
        PlanRuns::check_rows(self.plan.rows_max())?;
        let (all, mut rows) = (end - first, 0);
        let mut done: Vec<Option<Replication>> = vec![None; all];
        let next = AtomicUsize::new(first);
        thread::scope(|scope| {
            // Whatever ends this function early drops the receiver: threads stop at their next
            // result.
            let (sender, receiver) = mpsc::channel::<(usize, Result<Replication, SimError>)>();
            for _ in 0..jobs.min(all) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || work(&self.plan, self.count, (next, end), &sender));
            }
            drop(sender);
            let receiver = Mutex::new(receiver);
            let next_result = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            for finished in 1..=all {
                let (run, replication) = py.detach(next_result).map_err(refused)?;
                let replication = replication.map_err(refused)?;
                rows += replication.tables.row_count();
                PlanRuns::check_rows(rows)?;
                done[run - first] = Some(replication);
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1((finished, all))?;
                }
            }
            PyResult::Ok(())
        })?;
        Ok((self.values(py, &done), self.rows(py, first, &done)?))
    }
}

impl PlanRuns {
    fn metrics(&self) -> impl Iterator<Item = &Column> {
        self.plan.columns().iter().filter(|column| column.is_metric())
    }

    /// What runs measured, by column and run; NaN for what does not apply.
    fn values<'py>(
        &self,
        py: Python<'py>,
        done: &[Option<Replication>],
    ) -> Bound<'py, PyArray2<f64>> {
        let values = PyArray2::zeros(py, [self.metrics().count(), done.len()], false);
        let mut written = values.readwrite();
        let mut rows = written.as_array_mut();
        for (mut row, column) in rows.rows_mut().into_iter().zip(self.metrics()) {
            for (cell, found) in row.iter_mut().zip(done) {
                let value = found.as_ref().and_then(|f| f.measures.value(&column.name).number());
                *cell = value.unwrap_or(f64::NAN);
            }
        }
        drop(written);
        values
    }

    /// The long tables by their names: of each row its run, from `first` on, and its values.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        done: &[Option<Replication>],
    ) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for kind in self.plan.tables() {
            let mut runs: Vec<i64> = Vec::new();
            let mut columns = vec![Vec::new(); kind.columns().len() - RUN_COLUMNS];
            for (run, found) in (first..).zip(done) {
                let Some(rows) = found.as_ref().and_then(|f| f.tables.rows(kind)) else { continue };
                runs.resize(runs.len() + rows.len(), run as i64);
                for (all, column) in columns.iter_mut().zip(rows.columns()) {
                    all.extend_from_slice(column);
                }
            }
            let values = PyArray2::from_vec2(py, &columns).map_err(refused)?;
            tables.set_item(kind.name(), (PyArray1::from_vec(py, runs), values))?;
        }
        Ok(tables)
    }
}

/// Name, unit, meaning and role.
fn text_of(column: &Column) -> ColumnText {
    let role = format!("{:?}", column.role).to_lowercase();
    (column.name.clone(), column.unit.clone(), column.meaning.clone(), role)
}

/// What a thread does: one run after the other, until none is left or nobody listens.
fn work(
    plan: &Plan,
    count: usize,
    (next, end): (&AtomicUsize, usize),
    sender: &mpsc::Sender<(usize, Result<Replication, SimError>)>,
) {
    loop {
        let run = next.fetch_add(1, Ordering::Relaxed);
        if run >= end {
            return;
        }
        let (point, replication) = (&plan.points[run / count], (run % count) as u64);
        if sender.send((run, corridor_sim::run(point, replication))).is_err() {
            return;
        }
    }
}

/// Parameters of a point, by the names of their columns.
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
