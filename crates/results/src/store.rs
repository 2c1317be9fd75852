//! A results directory: the plan, a journal of finished replications, and at the end files with
//! everything.

use std::fs;
use std::path::{Path, PathBuf};

use corridor_scenario::{Measures, Plan, Replication, TableKind, Tables};
use serde::Deserialize;

use crate::error::ResultsError;
use crate::journal::{Journal, Key, PointKey};
use crate::results::Results;
use crate::schedule::{Schedule, Task};
use crate::{TableWriter, read_parquet, write_parquet};

/// Files in a results directory: rows, journal, and plan.
pub const RESULTS_FILE: &str = "results.parquet";
/// See [`RESULTS_FILE`].
pub const JOURNAL_FILE: &str = "journal.jsonl";
/// See [`RESULTS_FILE`].
pub const PLAN_FILE: &str = "plan.toml";

/// The file of a long table in a results directory.
pub fn table_file(kind: TableKind) -> String {
    format!("{}.parquet", kind.name())
}

/// A results directory of one plan.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    journal: Journal,
}

impl Store {
    /// Opens or creates a directory, and checks now that it can be written. With `force`, one with
    /// another plan's results is accepted, too.
    ///
    /// # Errors
    /// [`ResultsError::NoDirectory`], [`ResultsError::OtherPlan`], [`ResultsError::Busy`],
    /// [`ResultsError::Io`].
    pub fn open(directory: &Path, plan: &Plan, force: bool) -> Result<Self, ResultsError> {
        if fs::metadata(directory).is_ok_and(|metadata| !metadata.is_dir()) {
            return Err(ResultsError::NoDirectory { path: directory.into() });
        }
        fs::create_dir_all(directory).map_err(ResultsError::io("write", directory))?;
        if let Some(found) = plan_there(directory)?.filter(|found| *found != plan.name && !force) {
            let (path, given) = (directory.into(), plan.name.clone());
            return Err(ResultsError::OtherPlan { path, given, found });
        }
        // Opened first, so as not to disturb a run that is writing it.
        let journal = Journal::open(&directory.join(JOURNAL_FILE))?;
        let copy = directory.join(PLAN_FILE);
        fs::write(&copy, &plan.text).map_err(ResultsError::io("write", &copy))?;
        Ok(Store { directory: directory.into(), journal })
    }

    /// Its path.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Number of unreadable journal lines: their replications are repeated.
    pub fn spoilt(&self) -> usize {
        self.journal.spoilt()
    }

    /// The measures of a replication, if it is stored.
    pub fn known(&self, key: &Key) -> Option<&Measures> {
        self.journal.row(key)
    }

    /// The long tables of a replication, from disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn tables(&self, key: &Key) -> Result<Tables, ResultsError> {
        self.journal.tables(key)
    }

    /// Stores a replication; it is on disk after [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn keep(&mut self, key: Key, task: Task, made: &Replication) -> Result<(), ResultsError> {
        self.journal.append(key, (task.point, task.replication), made)
    }

    /// Waits until everything stored is on disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn sync(&self) -> Result<(), ResultsError> {
        self.journal.sync()
    }

    /// Writes the results of a schedule: the rows, and the long tables that the plan keeps.
    ///
    /// # Errors
    /// [`ResultsError::NoParquet`], [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn write(
        &self,
        (plan, keys): (&Plan, &[PointKey]),
        schedule: &Schedule,
        results: &Results,
    ) -> Result<(), ResultsError> {
        write_parquet(&self.directory.join(RESULTS_FILE), results)?;
        let kept = plan.tables();
        let mut writers = Vec::new();
        for kind in TableKind::ALL {
            let path = self.directory.join(table_file(kind));
            if kept.contains(&kind) {
                writers.push((kind, TableWriter::create(&path, kind, &results.metadata)?));
            } else if path.exists() {
                // Of an earlier plan: it does not belong to these results.
                fs::remove_file(&path).map_err(ResultsError::io("remove", path))?;
            }
        }
        if writers.is_empty() {
            return Ok(());
        }
        for (task, _) in schedule.rows() {
            let tables = self.tables(&keys[task.point].replication(task.replication))?;
            for (kind, writer) in &mut writers {
                if let Some(rows) = tables.rows(*kind) {
                    writer.write((task.point, task.replication), rows)?;
                }
            }
        }
        writers.into_iter().try_for_each(|(_, writer)| writer.finish())
    }
}

/// The part of a plan that is examined.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Name of the plan whose results are in a directory, if any.
fn plan_there(directory: &Path) -> Result<Option<String>, ResultsError> {
    let results = directory.join(RESULTS_FILE);
    if results.exists() && crate::PARQUET {
        return Ok(read_parquet(&results)?.metadata("plan_name").map(str::to_owned));
    }
    // An invalid plan is no reason to refuse: the journal identifies its rows by content.
    let text = fs::read_to_string(directory.join(PLAN_FILE)).ok();
    Ok(text.and_then(|text| toml::from_str::<Named>(&text).ok()).map(|named| named.name))
}
