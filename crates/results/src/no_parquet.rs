//! Stand-in for Parquet in a build without it: errors that say how to get it.

use core::convert::Infallible;
use std::path::{Path, PathBuf};

use corridor_scenario::{Rows, TableKind};

use crate::error::ResultsError;
use crate::results::Results;

/// Always fails.
///
/// # Errors
/// [`ResultsError::NoParquet`].
pub fn write_parquet(path: &Path, _: &Results) -> Result<(), ResultsError> {
    Err(ResultsError::NoParquet { verb: "write", path: path.into() })
}

/// Always fails.
///
/// # Errors
/// [`ResultsError::NoParquet`].
pub fn read_parquet(path: &Path) -> Result<Results, ResultsError> {
    Err(ResultsError::NoParquet { verb: "read", path: path.into() })
}

/// Cannot be constructed.
pub struct TableWriter(Infallible);

impl TableWriter {
    /// Always fails.
    ///
    /// # Errors
    /// [`ResultsError::NoParquet`].
    pub fn create(path: &Path, _: TableKind, _: &[(String, String)]) -> Result<Self, ResultsError> {
        Err(ResultsError::NoParquet { verb: "write", path: path.into() })
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn write(&mut self, _: (usize, u64), _: &Rows) -> Result<(), ResultsError> {
        match self.0 {}
    }

    /// Unreachable.
    ///
    /// # Errors
    /// None.
    pub fn finish(self) -> Result<(), ResultsError> {
        match self.0 {}
    }
}

/// Always fails.
///
/// # Errors
/// [`ResultsError::NoParquet`].
pub fn merge_tables(
    _: &[PathBuf],
    _: TableKind,
    _: &[(String, String)],
    out: &Path,
) -> Result<(), ResultsError> {
    Err(ResultsError::NoParquet { verb: "write", path: out.into() })
}
