//! The daemon's transmission budgets, elementwise over arrays.

use corridor_proto::ErasureRatios;
use corridor_proto::budget;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::error::value;

type Ratios<'py> = PyReadonlyArray1<'py, f64>;
type Column<'py> = Bound<'py, PyArray1<f64>>;

/// The points of four arrays of equal length.
fn points(arrays: [&Ratios<'_>; 4]) -> PyResult<Vec<(f64, ErasureRatios)>> {
    let [g, e1, e2, e3] = arrays.map(|array| array.as_array());
    if let Some(other) = [e1, e2, e3].iter().find(|other| other.len() != g.len()) {
        let expected = format!("arrays of {} points, as block_size", g.len());
        return Err(value("e1, e2, e3", format!("arrays of {} points", other.len()), expected));
    }
    let each = g.iter().zip(e1).zip(e2).zip(e3);
    Ok(each.map(|(((&g, &e1), &e2), &e3)| (g, ErasureRatios { e1, e2, e3 })).collect())
}

/// PlayNCool's budgets: head start r, helper's threshold, helper's budget k, encoder's budget.
#[pyfunction]
pub fn playncool<'py>(
    py: Python<'py>,
    block_size: Ratios<'py>,
    e1: Ratios<'py>,
    e2: Ratios<'py>,
    e3: Ratios<'py>,
) -> PyResult<(Column<'py>, Column<'py>, Column<'py>, Column<'py>)> {
    let points = points([&block_size, &e1, &e2, &e3])?;
    let budgets: Vec<_> =
        points.into_iter().map(|(g, ratios)| budget::playncool(g, ratios)).collect();
    let column =
        |of: fn(&budget::PlayNCool) -> f64| PyArray1::from_iter(py, budgets.iter().map(of));
    Ok((
        column(|budget| budget.encoder_head_start),
        column(|budget| budget.helper_threshold),
        column(|budget| budget.helper_budget),
        column(|budget| budget.encoder_budget),
    ))
}

/// Minimum expected transmissions: the encoder's and the helper's.
#[pyfunction]
pub fn optimum<'py>(
    py: Python<'py>,
    block_size: Ratios<'py>,
    e1: Ratios<'py>,
    e2: Ratios<'py>,
    e3: Ratios<'py>,
) -> PyResult<(Column<'py>, Column<'py>)> {
    let points = points([&block_size, &e1, &e2, &e3])?;
    let (encoder, helper): (Vec<f64>, Vec<f64>) =
        points.into_iter().map(|(g, ratios)| budget::optimum(g, ratios)).unzip();
    Ok((PyArray1::from_vec(py, encoder), PyArray1::from_vec(py, helper)))
}
