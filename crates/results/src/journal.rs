//! Journal of finished replications, one per line, kept while a plan runs and afterwards.
//!
//! A replication is identified by the hash of everything its results depend on. So rows of other
//! points, other plans and earlier versions may coexist: those a plan needs are found, and the
//! others are kept.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use corridor_scenario::{Measures, Point, Replication, SCHEMA_VERSION, Tables};
use serde::{Deserialize, Serialize};

use crate::error::ResultsError;

/// Maximum length of a journal line, bytes; longer ones are not read.
pub const JOURNAL_LINE_BYTES_MAX: u64 = 1 << 26;
/// Size of a key, bytes: 128 bits distinguish any number of replications.
const KEY_BYTES: usize = 16;

/// The key of a replication.
pub type Key = [u8; KEY_BYTES];

/// The keys of a point's replications.
#[derive(Clone, Debug)]
pub struct PointKey(blake3::Hasher);

impl PointKey {
    /// Keys of a point, simulated by this version of the code.
    pub fn new(point: &Point, code_version: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [&SCHEMA_VERSION.to_string(), code_version, &point.identity()] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        PointKey(hasher)
    }

    /// Key of one replication.
    pub fn replication(&self, replication: u64) -> Key {
        let mut key = Key::default();
        let hash = self.0.clone().update(&replication.to_le_bytes()).finalize();
        key.copy_from_slice(&hash.as_bytes()[..KEY_BYTES]);
        key
    }
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    /// For readers; only the key counts.
    point: usize,
    /// For readers; only the key counts.
    replication: u64,
    measures: Measures,
    #[serde(default, skip_serializing_if = "Tables::is_empty")]
    tables: Tables,
}

/// The part of a line kept in memory; its tables are skipped.
#[derive(Deserialize)]
struct Head {
    key: String,
    measures: Measures,
}

/// A replication: its data in memory, and the position of its line.
#[derive(Debug)]
struct Known {
    measures: Measures,
    offset: u64,
    len: u64,
}

/// A file of finished replications, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length of the file.
    end: u64,
    rows: BTreeMap<Key, Known>,
    /// Number of unreadable lines.
    spoilt: usize,
}

impl Journal {
    /// Opens or creates a journal, with an exclusive lock. A line truncated by a power failure is
    /// cut off.
    ///
    /// # Errors
    /// [`ResultsError::Io`], [`ResultsError::Busy`].
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(ResultsError::io("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ResultsError::Busy { path: path.into() }),
            // Some file systems have no locks; avoiding two concurrent runs is then up to the user.
            Err(TryLockError::Error(_)) => {}
        }
        let (rows, spoilt, len) = load(&file).map_err(ResultsError::io("read", path))?;
        file.set_len(len).map_err(ResultsError::io("write", path))?;
        file.seek(SeekFrom::End(0)).map_err(ResultsError::io("write", path))?;
        Ok(Journal { path: path.into(), file, end: len, rows, spoilt })
    }

    /// The measures of a replication, if it is stored.
    pub fn row(&self, key: &Key) -> Option<&Measures> {
        self.rows.get(key).map(|known| &known.measures)
    }

    /// Its long tables, from disk; empty if it is unknown.
    ///
    /// # Errors
    /// [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn tables(&self, key: &Key) -> Result<Tables, ResultsError> {
        let Some(known) = self.rows.get(key) else { return Ok(Tables::default()) };
        let mut line = Vec::new();
        let mut read = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(known.offset))?;
            file.take(known.len).read_to_end(&mut line)
        };
        read().map_err(ResultsError::io("read", &self.path))?;
        let line: Line = serde_json::from_slice(&line)
            .map_err(|error| ResultsError::format(&self.path, error))?;
        Ok(line.tables)
    }

    /// Number of replications, of any plan.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of unreadable lines, which are ignored.
    pub fn spoilt(&self) -> usize {
        self.spoilt
    }

    /// Appends a replication; the operating system has it when this returns, the disk after
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn append(
        &mut self,
        key: Key,
        (point, replication): (usize, u64),
        given: &Replication,
    ) -> Result<(), ResultsError> {
        let Replication { measures, tables } = given.clone();
        let line = Line { key: hex(&key), point, replication, measures, tables };
        let mut text = serde_json::to_string(&line)
            .map_err(|error| ResultsError::format(&self.path, error))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(ResultsError::io("write", &self.path))?;
        let (offset, len) = (self.end, text.len() as u64);
        self.end += len;
        self.rows.insert(key, Known { measures: line.measures, offset, len });
        Ok(())
    }

    /// Appends replications that only another journal has. Unreadable lines are skipped.
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn take_in(&mut self, path: &Path) -> Result<(), ResultsError> {
        let file = File::open(path).map_err(ResultsError::io("read", path))?;
        for line in BufReader::new(file).lines() {
            let line = line.map_err(ResultsError::io("read", path))?;
            let parsed = serde_json::from_str::<Line>(&line).ok();
            if let Some((key, parsed)) = parsed.and_then(|line| Some((unhex(&line.key)?, line)))
                && !self.rows.contains_key(&key)
            {
                let Line { point, replication, measures, tables, .. } = parsed;
                self.append(key, (point, replication), &Replication { measures, tables })?;
            }
        }
        Ok(())
    }

    /// Waits until everything is on disk.
    ///
    /// # Errors
    /// [`ResultsError::Io`].
    pub fn sync(&self) -> Result<(), ResultsError> {
        self.file.sync_data().map_err(ResultsError::io("write", &self.path))
    }
}

type Loaded = (BTreeMap<Key, Known>, usize, u64);

/// The rows of a file, its number of unreadable lines, and its length up to the last complete line.
fn load(file: &File) -> io::Result<Loaded> {
    let mut reader = BufReader::new(file);
    let (mut rows, mut spoilt, mut len) = (BTreeMap::new(), 0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read =
            io::Read::take(&mut reader, JOURNAL_LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 || (line.last() != Some(&b'\n') && (read as u64) < JOURNAL_LINE_BYTES_MAX) {
            return Ok((rows, spoilt, len));
        }
        let offset = len;
        len += read as u64;
        let parsed = serde_json::from_slice::<Head>(&line).ok();
        match parsed.and_then(|line| Some((unhex(&line.key)?, line.measures))) {
            Some((key, measures)) => {
                rows.insert(key, Known { measures, offset, len: read as u64 });
            }
            None => spoilt += 1,
        }
    }
}

fn hex(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Key> {
    let mut key = Key::default();
    if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
        return None;
    }
    for (index, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_scenario::{FlowInterval, TableKind};
    use std::fs;

    fn measures(value: f64) -> Replication {
        let mut measures = Measures::default();
        measures.set("goodput_bps", value);
        measures.set("timeouts", 3u64);
        measures.set("srtt_s", None::<f64>);
        let mut tables = Tables::default();
        if value > 1.0 {
            tables.add(&FlowInterval { time_s: value, ..FlowInterval::default() });
        }
        Replication { measures, tables }
    }

    #[test]
    fn what_was_written_is_read_to_the_last_bit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let values = [0.1 + 0.2, 1.0 / 3.0, 5e-324, 1.797e308, 123_456_789.123_456_78];
        let mut journal = Journal::open(&path).unwrap();
        for (index, value) in values.iter().enumerate() {
            journal.append([index as u8; 16], (index, 0), &measures(*value)).unwrap();
        }
        journal.sync().unwrap();
        drop(journal);
        let journal = Journal::open(&path).unwrap();
        assert_eq!((journal.len(), journal.spoilt()), (values.len(), 0));
        for (index, value) in values.iter().enumerate() {
            let (key, expected) = ([index as u8; 16], measures(*value));
            assert_eq!(journal.row(&key), Some(&expected.measures));
            let (found, expected) = (journal.tables(&key).unwrap(), expected.tables);
            let times = |tables: &Tables| {
                tables.rows(TableKind::FlowSeries).map(|rows| rows.columns()[1].clone())
            };
            assert_eq!(times(&found), times(&expected));
        }
    }

    #[test]
    fn a_torn_line_is_cut_off_and_a_spoilt_one_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).unwrap();
        journal.append([1; 16], (0, 0), &measures(1.0)).unwrap();
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}not a row\n{}", &whole[..whole.len() / 2])).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!((journal.len(), journal.spoilt()), (1, 1));
        journal.append([2; 16], (0, 1), &measures(2.0)).unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().len(), 2);
    }

    #[test]
    fn only_one_run_writes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let _first = Journal::open(&path).unwrap();
        assert!(matches!(Journal::open(&path), Err(ResultsError::Busy { .. })));
    }
}
