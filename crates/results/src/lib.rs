//! Results of plans: how often points are run, what is kept while they are, and the file that is
//! left at the end.
//!
//! - [`Campaign`] has what is missing made, on threads here or by workers elsewhere, in virtual
//!   time or in the lab, and [`Store`] is the directory that it is kept in.
//! - [`Schedule`] says which replication of which point is next, and when a point has enough.
//! - [`Journal`] keeps every finished replication, so that an interruption loses none.
//! - [`write_parquet`] and [`read_parquet`]: one row for each replication, units with the columns.
//!   They take the feature `parquet`, most of what this crate takes to build.
//! - [`TableWriter`] and [`merge_tables`]: long tables beside them, one replication at a time.
//! - [`merge`]: results of parts of a plan, put together.
//! - [`summarise`]: means with confidence intervals.
//!
//! Replications are made by an [`Engine`]; nothing depends on the order in which they finish.
#![forbid(unsafe_code)]

mod campaign;
pub mod checks;
mod error;
mod estimate;
mod journal;
#[cfg(feature = "parquet")]
mod long;
mod merge;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "no_parquet.rs"]
mod parquet;
mod results;
mod schedule;
mod store;
mod summary;

pub use campaign::{Campaign, CampaignError, Ending, Engine};
pub use error::ResultsError;
pub use estimate::{Estimate, confidence_within};
pub use journal::{JOURNAL_LINE_BYTES_MAX, Journal, Key, PointKey};
#[cfg(feature = "parquet")]
pub use long::{TableReader, TableWriter, merge_tables};
pub use merge::merge;
#[cfg(feature = "parquet")]
pub use parquet::RESULT_BYTES_MAX;
#[cfg(not(feature = "parquet"))]
pub use parquet::{TableWriter, merge_tables};
pub use parquet::{read_parquet, write_parquet};
pub use results::{Provenance, Results};
pub use schedule::{Finished, Schedule, Task};
pub use store::{JOURNAL_FILE, PLAN_FILE, RESULTS_FILE, Store, table_file};
pub use summary::{Group, Summary, summarise};

/// Whether files of results can be written and read here: the feature `parquet`.
pub const PARQUET: bool = cfg!(feature = "parquet");
