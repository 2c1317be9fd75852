//! Errors of the libraries as Python's: the one place where they are mapped.

use core::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// A `ValueError` with the library's own words, which name argument, value and range.
pub fn refused(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A `ValueError` about an argument of ours.
pub fn value(argument: &str, given: impl Display, expected: impl Display) -> PyErr {
    PyValueError::new_err(format!("{argument} = {given}: expected {expected}"))
}
