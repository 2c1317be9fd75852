//! Conversion of the libraries' errors to Python exceptions, in one place.

use core::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// A `ValueError` with the library's own message, which names argument, value and range.
pub fn refused(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A `ValueError` about one of our own arguments.
pub fn value(argument: &str, given: impl Display, expected: impl Display) -> PyErr {
    PyValueError::new_err(format!("{argument} = {given}: expected {expected}"))
}
