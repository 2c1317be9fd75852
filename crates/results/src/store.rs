//! A directory of results: the plan, a journal of what is done, and at the end files of all of it.

use std::fs;
use std::path::{Path, PathBuf};

use corridor_scenario::{Measures, Plan, Replication, TableKind, Tables};
use serde::Deserialize;

use crate::error::ResultsError;
use crate::journal::{Journal, Key, PointKey};
use crate::results::Results;
use crate::schedule::{Schedule, Task};
use crate::{TableWriter, read_parquet, write_parquet};

/// Files in a directory of results: rows, what is done, and the plan.
pub const RESULTS_FILE: &str = "results.parquet";
/// See [`RESULTS_FILE`].
pub const JOURNAL_FILE: &str = "journal.jsonl";
/// See [`RESULTS_FILE`].
pub const PLAN_FILE: &str = "plan.toml";

/// The file of a long table in a directory of results.
pub fn table_file(kind: TableKind) -> String {
    format!("{}.parquet", kind.name())
}

/// A directory of results of one plan.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    journal: Journal,
}

impl Store {
    /// Opens a directory, or begins one, and finds out now what cannot be written. With `force`
    /// one that has another plan's results is taken, too.
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
        // Opened first: a run that is writing it is not disturbed.
        let journal = Journal::open(&directory.join(JOURNAL_FILE))?;
        let copy = directory.join(PLAN_FILE);
        fs::write(&copy, &plan.text).map_err(ResultsError::io("write", &copy))?;
        Ok(Store { directory: directory.into(), journal })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Lines of the journal that cannot be read: what they told is made again.
    pub fn spoilt(&self) -> usize {
        self.journal.spoilt()
    }

    /// What is known of a replication.
    pub fn known(&self, key: &Key) -> Option<&Measures> {
        self.journal.row(key)
    }

    /// The long tables of a replication, from the disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn tables(&self, key: &Key) -> Result<Tables, ResultsError> {
        self.journal.tables(key)
    }

    /// Keeps a replication; the disk has it after [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn keep(&mut self, key: Key, task: Task, made: &Replication) -> Result<(), ResultsError> {
        self.journal.append(key, (task.point, task.replication), made)
    }

    /// Waits until the disk has what was kept.
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn sync(&self) -> Result<(), ResultsError> {
        self.journal.sync()
    }

    /// Writes what a schedule has: the rows, and the long tables that the plan keeps.
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

/// What of a plan is looked at.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// The name of the plan whose results are in a directory, if there are any.
fn plan_there(directory: &Path) -> Result<Option<String>, ResultsError> {
    let results = directory.join(RESULTS_FILE);
    if results.exists() && crate::PARQUET {
        return Ok(read_parquet(&results)?.metadata("plan_name").map(str::to_owned));
    }
    // What is not a plan is no reason to refuse: the journal knows what it has by its content.
    let text = fs::read_to_string(directory.join(PLAN_FILE)).ok();
    Ok(text.and_then(|text| toml::from_str::<Named>(&text).ok()).map(|named| named.name))
}
