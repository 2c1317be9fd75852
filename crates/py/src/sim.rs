//! Plans run by the simulator, on several threads, while Python is free to do something else.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use corridor_scenario::{Measures, Plan, Replications, Value};
use corridor_sim::SimError;
use numpy::{PyArray3, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{refused, value};

/// Most threads.
const JOBS_MAX: usize = 1_024;

/// Name, unit, meaning and role of a column.
type ColumnText = (String, String, String, String);
/// Columns of metrics, parameters of each point, and metrics by column, point, replication.
type Results<'py> = (Vec<ColumnText>, Vec<Bound<'py, PyDict>>, Bound<'py, PyArray3<f64>>);

fn read(text: &str, directory: &str, replications: Option<u64>) -> PyResult<Plan> {
    let mut plan = Plan::parse(text, Path::new(directory)).map_err(refused)?;
    if let Some(count) = replications {
        plan = plan.with_replications(count).map_err(refused)?;
    }
    if let Replications::Until(_) = plan.replications {
        return Err(value("replications", "a stop rule", "a number of replications"));
    }
    corridor_sim::check_plan(&plan)
        .map_err(|(point, error)| value(&format!("point {point}"), "the plan's", error))?;
    Ok(plan)
}

/// Number of points of a plan, and of replications of each; an error where it cannot be run.
#[pyfunction]
pub fn plan_points(
    text: &str,
    directory: &str,
    replications: Option<u64>,
) -> PyResult<(usize, u64)> {
    let plan = read(text, directory, replications)?;
    Ok((plan.points.len(), plan.replications.max()))
}

/// Runs a plan: see the type of what it returns. `progress` is called with the number of
/// replications done and that of all, after each.
#[pyfunction]
pub fn run_plan<'py>(
    py: Python<'py>,
    text: &str,
    directory: &str,
    replications: Option<u64>,
    jobs: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Results<'py>> {
    if !(1..=JOBS_MAX).contains(&jobs) {
        return Err(value("jobs", jobs, format!("1 to {JOBS_MAX}")));
    }
    let plan = read(text, directory, replications)?;
    let count = plan.replications.max() as usize;
    let all = plan.points.len() * count;
    let mut done: Vec<Option<Measures>> = vec![None; all];
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        // Whatever ends this function early drops the receiver: threads stop at their next result.
        let (sender, receiver) = mpsc::channel::<(usize, Result<Measures, SimError>)>();
        for _ in 0..jobs.min(all) {
            let (sender, plan, next) = (sender.clone(), &plan, &next);
            scope.spawn(move || work(plan, count, next, &sender));
        }
        drop(sender);
        let receiver = Mutex::new(receiver);
        let next_result = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        for finished in 1..=all {
            let (task, measures) = py.detach(next_result).map_err(refused)?;
            done[task] = Some(measures.map_err(refused)?);
            py.check_signals()?;
            if let Some(progress) = &progress {
                progress.call1((finished, all))?;
            }
        }
        PyResult::Ok(())
    })?;
    results(py, &plan, count, &done)
}

/// What a thread does: one replication after the other, until none is left or nobody listens.
fn work(
    plan: &Plan,
    count: usize,
    next: &AtomicUsize,
    sender: &mpsc::Sender<(usize, Result<Measures, SimError>)>,
) {
    let all = plan.points.len() * count;
    loop {
        let task = next.fetch_add(1, Ordering::Relaxed);
        if task >= all {
            return;
        }
        let (point, replication) = (&plan.points[task / count], (task % count) as u64);
        if sender.send((task, corridor_sim::run(point, replication))).is_err() {
            return;
        }
    }
}

fn results<'py>(
    py: Python<'py>,
    plan: &Plan,
    count: usize,
    done: &[Option<Measures>],
) -> PyResult<Results<'py>> {
    let columns = || plan.columns().iter().filter(|column| column.is_metric());
    let texts = columns().map(|column| {
        let role = format!("{:?}", column.role).to_lowercase();
        (column.name.clone(), column.unit.clone(), column.meaning.clone(), role)
    });
    let metrics = PyArray3::zeros(py, [columns().count(), plan.points.len(), count], false);
    let mut written = metrics.readwrite();
    for (place, column) in columns().enumerate() {
        for (task, measures) in done.iter().enumerate() {
            let value = measures.as_ref().and_then(|m| m.value(&column.name).number());
            let at = [place, task / count, task % count];
            *written.get_mut(at).expect("an index within the shape it was made with") =
                value.unwrap_or(f64::NAN);
        }
    }
    drop(written);
    let mut parameters = Vec::new();
    for point in 0..plan.points.len() {
        parameters.push(parameters_of(py, plan, point)?);
    }
    Ok((texts.collect(), parameters, metrics))
}

/// Parameters of a point, by the names of their columns.
fn parameters_of<'py>(py: Python<'py>, plan: &Plan, point: usize) -> PyResult<Bound<'py, PyDict>> {
    let record = plan.record(point, 0, &Measures::default());
    let parameters = PyDict::new(py);
    for (column, value) in plan.columns().iter().zip(record.values).skip(3) {
        if column.is_metric() {
            continue;
        }
        match value {
            Value::Absent => parameters.set_item(&column.name, py.None())?,
            Value::Flag(flag) => parameters.set_item(&column.name, flag)?,
            Value::Integer(count) => parameters.set_item(&column.name, count)?,
            Value::Real(measure) => parameters.set_item(&column.name, measure)?,
            Value::Text(text) => parameters.set_item(&column.name, text)?,
        }
    }
    Ok(parameters)
}
