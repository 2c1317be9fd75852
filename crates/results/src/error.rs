//! Errors with results files.

use std::io;
use std::path::PathBuf;

/// A results file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// An I/O error.
    #[error("cannot {verb} {}: {source}", path.display())]
    Io {
        /// Read, write, open, or remove.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is in the place of the results directory.
    #[error("{}: expected a directory for results", path.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
    },
    /// The directory has results of another plan.
    #[error(
        "{}: expected results of plan \"{given}\", found those of \"{found}\": \
         choose another directory, or use --force", path.display()
    )]
    OtherPlan {
        /// The directory.
        path: PathBuf,
        /// Name of the plan being run.
        given: String,
        /// Name of the plan whose results exist.
        found: String,
    },
    /// Another run is writing there.
    #[error("{}: another run is writing to it: wait until it has finished", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// This build has no Parquet support.
    #[error(
        "cannot {verb} {}: built without Parquet support: \
         build with `cargo build --release --package corridor --features parquet`",
        path.display()
    )]
    NoParquet {
        /// Read or write.
        verb: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Not a results file.
    #[error("{}: expected results of `corridor sim run`: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Results do not belong together.
    #[error("{}: {name} is {given}, expected {expected}, as in {}", path.display(), first.display())]
    Apart {
        /// The results.
        path: PathBuf,
        /// What differs.
        name: String,
        /// Its value here.
        given: String,
        /// Its value in the first ones.
        expected: String,
        /// The first results.
        first: PathBuf,
    },
    /// A point occurs twice.
    #[error("{}: point {point} is also in {}: expected each point in one part", path.display(), other.display())]
    PointTwice {
        /// The results.
        path: PathBuf,
        /// The point.
        point: usize,
        /// The other results with it.
        other: PathBuf,
    },
    /// Unknown column.
    #[error("{option} {given}: expected one of {expected}")]
    Column {
        /// The option that names it.
        option: &'static str,
        /// The given name.
        given: String,
        /// Available names.
        expected: String,
    },
}

impl ResultsError {
    pub(crate) fn io(
        verb: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| ResultsError::Io { verb, path, source }
    }

    pub(crate) fn format(path: impl Into<PathBuf>, what: impl ToString) -> Self {
        ResultsError::Format { path: path.into(), what: what.to_string() }
    }
}
