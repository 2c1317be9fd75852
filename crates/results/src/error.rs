//! What can be wrong with files of results.

use std::io;
use std::path::PathBuf;

/// A file of results that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The system refuses.
    #[error("cannot {verb} {}: {source}", path.display())]
    Io {
        /// Read, write, open, or remove.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file where results are to be kept.
    #[error("{}: expected a directory for results", path.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
    },
    /// Results of another plan are there.
    #[error(
        "{}: expected results of plan \"{given}\", found those of \"{found}\": \
         choose another directory, or use --force", path.display()
    )]
    OtherPlan {
        /// The directory.
        path: PathBuf,
        /// Name of the plan that is run.
        given: String,
        /// Name of the plan whose results are there.
        found: String,
    },
    /// Another run is writing there.
    #[error("{}: another run is writing to it: wait until it has finished", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
    },
    /// Parquet is left out of this build.
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
    /// Not a file of results.
    #[error("{}: expected results of `corridor sim run`: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Results that do not belong together.
    #[error("{}: {name} is {given}, expected {expected}, as in {}", path.display(), first.display())]
    Apart {
        /// The results.
        path: PathBuf,
        /// What differs.
        name: String,
        /// What these have.
        given: String,
        /// What the first ones have.
        expected: String,
        /// The first ones.
        first: PathBuf,
    },
    /// The same point twice.
    #[error("{}: point {point} is also in {}: expected each point in one part", path.display(), other.display())]
    PointTwice {
        /// The results.
        path: PathBuf,
        /// The point.
        point: usize,
        /// Where else it is.
        other: PathBuf,
    },
    /// There is no such column.
    #[error("{option} {given}: expected one of {expected}")]
    Column {
        /// What asked for it.
        option: &'static str,
        /// The name that was given.
        given: String,
        /// Names there are.
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
