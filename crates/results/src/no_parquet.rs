//! What stands for Parquet in a build without it: errors that say how to have it.

use std::path::Path;

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
