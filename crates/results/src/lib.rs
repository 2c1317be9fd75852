//! Results of plans: how often points are run, what is stored meanwhile, and the files written at
//! the end.
//!
//! - [`Campaign`] runs the missing replications, on local threads or remote workers, in virtual
//!   time or in the lab, and [`Store`] is the directory with the results.
//! - [`Schedule`] determines which replication of which point is next, and when a point has enough.
//! - [`Journal`] keeps every finished replication, so that an interruption loses none.
//! - [`write_parquet`] and [`read_parquet`]: one row per replication, with units of the columns.
//!   They need the feature `parquet`, which accounts for most of this crate's build time.
//! - [`TableWriter`] and [`merge_tables`]: long tables beside them, one replication at a time.
//! - [`merge`]: combines results of parts of a plan.
//! - [`summarise`]: means with confidence intervals.
//!
//! An [`Engine`] runs the replications; nothing depends on the order in which they finish.
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

/// Whether this build can read and write results files: the feature `parquet`.
pub const PARQUET: bool = cfg!(feature = "parquet");
