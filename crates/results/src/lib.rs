//! Results of plans: how often points are run, what is kept while they are, and the file that is
//! left at the end.
//!
//! - [`Schedule`] says which replication of which point is next, and when a point has enough.
//! - [`Journal`] keeps every finished replication, so that an interruption loses none.
//! - [`write_parquet`] and [`read_parquet`]: one row for each replication, units with the columns.
//! - [`summarise`]: means with confidence intervals.
//!
//! Nothing here runs anything, and nothing depends on the order in which replications finish.
#![forbid(unsafe_code)]

mod error;
mod estimate;
mod journal;
mod parquet;
mod schedule;
mod summary;

pub use error::ResultsError;
pub use estimate::Estimate;
pub use journal::{JOURNAL_LINE_BYTES_MAX, Journal, Key, PointKey};
pub use parquet::{Provenance, RESULT_BYTES_MAX, Results, read_parquet, write_parquet};
pub use schedule::{Finished, Schedule, Task};
pub use summary::{Group, Summary, summarise};
