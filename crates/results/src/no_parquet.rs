//! What stands for Parquet in a build without it: errors that say how to have it.

use core::convert::Infallible;
use std::path::{Path, PathBuf};

use corridor_scenario::{Rows, TableKind};

use crate::error::ResultsError;
use crate::results::Results;

/// Refuses.
///
/// # Errors
/// [`ResultsError::NoParquet`].
pub fn write_parquet(path: &Path, _: &Results) -> Result<(), ResultsError> {
    Err(ResultsError::NoParquet { verb: "write", path: path.into() })
}

/// Refuses.
///
/// # Errors
/// [`ResultsError::NoParquet`].
pub fn read_parquet(path: &Path) -> Result<Results, ResultsError> {
    Err(ResultsError::NoParquet { verb: "read", path: path.into() })
}

/// What cannot be.
pub struct TableWriter(Infallible);

impl TableWriter {
    /// Refuses.
    ///
    /// # Errors
    /// [`ResultsError::NoParquet`].
    pub fn create(path: &Path, _: TableKind, _: &[(String, String)]) -> Result<Self, ResultsError> {
        Err(ResultsError::NoParquet { verb: "write", path: path.into() })
    }

    /// There is none.
    ///
    /// # Errors
    /// None.
    pub fn write(&mut self, _: (usize, u64), _: &Rows) -> Result<(), ResultsError> {
        match self.0 {}
    }

    /// There is none.
    ///
    /// # Errors
    /// None.
    pub fn finish(self) -> Result<(), ResultsError> {
        match self.0 {}
    }
}

/// Refuses.
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
