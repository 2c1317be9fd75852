//! Files of long tables: the rows of one replication after the other, by point and replication, so
//! that only one of them is in memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use corridor_scenario::{Column, Kind, Rows, TableKind};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use tempfile::NamedTempFile;

use crate::error::ResultsError;
use crate::parquet::{BATCH_ROWS, field, persist, properties, temporary};

/// Rows per row group, which the writer holds in memory.
const GROUP_ROWS: usize = 1 << 18;

/// A long table being written; the file is replaced atomically.
pub struct TableWriter {
    path: PathBuf,
    columns: Vec<Column>,
    words: &'static [&'static str],
    schema: Arc<Schema>,
    writer: ArrowWriter<NamedTempFile>,
}

impl TableWriter {
    /// Creates a table; `metadata` is that of the results beside it.
    ///
    /// # Errors
    /// [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn create(
        path: &Path,
        kind: TableKind,
        metadata: &[(String, String)],
    ) -> Result<Self, ResultsError> {
        let columns = kind.columns();
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<Field>>()));
        let table = ("corridor.table".to_owned(), kind.name().to_owned());
        let metadata: Vec<_> = metadata.iter().cloned().chain([table]).collect();
        let properties = properties(&metadata).set_max_row_group_row_count(Some(GROUP_ROWS));
        let file = temporary(path)?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties.build()));
        let writer = writer.map_err(|error| ResultsError::format(path, error))?;
        Ok(TableWriter { path: path.into(), columns, words: kind.words(), schema, writer })
    }

    /// Appends the rows of a replication, in order of point and replication.
    ///
    /// # Errors
    /// [`ResultsError::Format`].
    pub fn write(
        &mut self,
        (point, replication): (usize, u64),
        rows: &Rows,
    ) -> Result<(), ResultsError> {
        let keys = [point as i64, replication as i64];
        let keys = keys.map(|key| Arc::new(Int64Array::from_value(key, rows.len())) as ArrayRef);
        let own = self.columns.iter().skip(keys.len()).zip(rows.columns());
        let arrays = own.map(|(column, values)| array(column, self.words, values));
        let arrays: Vec<ArrayRef> = keys.into_iter().chain(arrays).collect();
        let written = RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(parquet::errors::ParquetError::from)
            .and_then(|batch| self.writer.write(&batch));
        written.map_err(|error| ResultsError::format(&self.path, error))
    }

    /// Finishes the table, which then exists.
    ///
    /// # Errors
    /// [`ResultsError::Io`], [`ResultsError::Format`].
    pub fn finish(self) -> Result<(), ResultsError> {
        let file = self.writer.into_inner();
        persist(file.map_err(|error| ResultsError::format(&self.path, error))?, &self.path)
    }
}

fn array(column: &Column, words: &[&str], values: &[f64]) -> ArrayRef {
    let told = values.iter().map(|&value| Some(value).filter(|value| value.is_finite()));
    match column.kind {
        Kind::Integer => {
            let whole = told.map(|value| value.map(|value| value as i64));
            Arc::new(Int64Array::from_iter(whole))
        }
        Kind::Text => {
            let word = |value: f64| words.get(value as usize).copied();
            Arc::new(StringArray::from_iter(told.map(|value| value.and_then(word))))
        }
        Kind::Flag | Kind::Real => Arc::new(Float64Array::from_iter(told)),
    }
}

/// A long table being read, replication by replication.
pub struct TableReader {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    columns: Vec<Column>,
    words: &'static [&'static str],
    batch: Option<RecordBatch>,
    /// Number of rows of the batch already returned.
    told: usize,
}

/// The rows of a replication.
type OfReplication = ((usize, u64), Rows);

impl TableReader {
    /// Opens a table.
    ///
    /// # Errors
    /// [`ResultsError::Io`]; [`ResultsError::Format`] for a file of something else.
    pub fn open(path: &Path, kind: TableKind) -> Result<Self, ResultsError> {
        let file = File::open(path).map_err(ResultsError::io("read", path))?;
        let fault = |error: parquet::errors::ParquetError| ResultsError::format(path, error);
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(fault)?;
        let columns = kind.columns();
        let expected: Vec<Field> = columns.iter().map(field).collect();
        let given = builder.schema().fields();
        if given.len() != expected.len() || given.iter().zip(&expected).any(|(a, b)| **a != *b) {
            let what = format!("its columns are not those of {}", kind.name());
            return Err(ResultsError::format(path, what));
        }
        let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(fault)?;
        let words = kind.words();
        Ok(TableReader { path: path.into(), reader, columns, words, batch: None, told: 0 })
    }

    /// The rows of the next replication that has any.
    ///
    /// # Errors
    /// [`ResultsError::Format`].
    pub fn read(&mut self) -> Result<Option<OfReplication>, ResultsError> {
        let mut of: Option<(usize, u64)> = None;
        let mut columns: Vec<Vec<f64>> = vec![Vec::new(); self.columns.len() - 2];
        while self.load()? {
            let Some(batch) = &self.batch else { break };
            let key = |place: usize, row: usize| {
                batch.column(place).as_primitive::<Int64Type>().value(row) as u64
            };
            let keys = |row: usize| (key(0, row) as usize, key(1, row));
            let first = *of.get_or_insert_with(|| keys(self.told));
            let alike = (self.told..batch.num_rows()).take_while(|&row| keys(row) == first).count();
            for (place, column) in columns.iter_mut().enumerate() {
                let array = batch.column(place + 2);
                column.extend(
                    (self.told..self.told + alike).map(|row| number(array, self.words, row)),
                );
            }
            self.told += alike;
            if self.told < batch.num_rows() {
                break;
            }
        }
        Ok(of.map(|of| (of, Rows::from_columns(columns))))
    }

    /// Ensures that a row is available, if the file has one.
    fn load(&mut self) -> Result<bool, ResultsError> {
        while self.batch.as_ref().is_none_or(|batch| self.told == batch.num_rows()) {
            let Some(batch) = self.reader.next() else { return Ok(false) };
            let batch = batch.map_err(|error| ResultsError::format(&self.path, error))?;
            (self.batch, self.told) = (Some(batch), 0);
        }
        Ok(true)
    }
}

fn number(array: &ArrayRef, words: &[&str], row: usize) -> f64 {
    if array.is_null(row) {
        return f64::NAN;
    }
    if let Some(texts) = array.as_string_opt::<i32>() {
        let place = words.iter().position(|&word| word == texts.value(row));
        return place.map_or(f64::NAN, |place| place as f64);
    }
    match array.as_primitive_opt::<Int64Type>() {
        Some(whole) => whole.value(row) as f64,
        None => array.as_primitive::<Float64Type>().value(row),
    }
}

/// Merges a table of different points of one plan from the files of its parts.
///
/// # Errors
/// As [`TableReader::open`] and [`TableWriter::create`].
pub fn merge_tables(
    parts: &[PathBuf],
    kind: TableKind,
    metadata: &[(String, String)],
    out: &Path,
) -> Result<(), ResultsError> {
    let open = |part: &PathBuf| {
        let mut reader = TableReader::open(part, kind)?;
        Ok((reader.read()?, reader))
    };
    let mut parts: Vec<_> = parts.iter().map(open).collect::<Result<_, ResultsError>>()?;
    let mut writer = TableWriter::create(out, kind, metadata)?;
    loop {
        let waiting = parts.iter_mut().filter(|(rows, _)| rows.is_some());
        let Some((rows, reader)) = waiting.min_by_key(|(rows, _)| rows.as_ref().map(|(of, _)| *of))
        else {
            return writer.finish();
        };
        if let Some((of, rows)) = core::mem::replace(rows, reader.read()?) {
            writer.write(of, &rows)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_scenario::{FlowInterval, Tables};
    use std::fs;

    const KIND: TableKind = TableKind::FlowSeries;

    fn rows(count: usize, seed: usize) -> Rows {
        let mut tables = Tables::default();
        for place in 0..count {
            tables.add(&FlowInterval {
                flow: place % 2,
                time_s: (place / 2) as f64 * 0.5,
                payload_bytes: (place * seed) as u64,
                srtt_s: (place % 3 > 0).then_some(1.0 / (place + seed) as f64),
                ..FlowInterval::default()
            });
        }
        tables.rows(KIND).cloned().unwrap_or_default()
    }

    fn write(path: &Path, of: &[(usize, u64)]) {
        let metadata = [("corridor.plan_name".to_owned(), "t".to_owned())];
        let mut writer = TableWriter::create(path, KIND, &metadata).unwrap();
        for &(point, replication) in of {
            let rows = rows(1 + 4_000 * point, 1 + replication as usize);
            writer.write((point, replication), &rows).unwrap();
        }
        writer.finish().unwrap();
    }

    #[test]
    fn what_was_written_is_read_across_batches() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flow_series.parquet");
        let all = [(0, 0), (0, 1), (1, 0), (3, 0), (3, 1), (4, 7)];
        write(&path, &all);
        let mut reader = TableReader::open(&path, KIND).unwrap();
        for of in all {
            let (found, read) = reader.read().unwrap().expect("rows");
            let expected = rows(1 + 4_000 * of.0, 1 + of.1 as usize);
            assert_eq!((found, read.len()), (of, expected.len()));
            for (read, expected) in read.columns().iter().zip(expected.columns()) {
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan();
                assert!(read.iter().zip(expected).all(same));
                assert!(read.iter().zip(expected).all(|(a, b)| a.is_nan() == b.is_nan()));
            }
        }
        assert!(reader.read().unwrap().is_none());
        assert!(TableReader::open(&path, TableKind::LinkSeries).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn parts_put_together_are_the_same_bytes_as_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        write(&path("all"), &[(0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (3, 1)]);
        write(&path("odd"), &[(1, 0), (3, 0), (3, 1)]);
        write(&path("even"), &[(0, 0), (0, 1), (2, 0)]);
        let metadata = [("corridor.plan_name".to_owned(), "t".to_owned())];
        let parts = [path("odd"), path("even")];
        merge_tables(&parts, KIND, &metadata, &path("merged")).unwrap();
        assert!(fs::read(path("merged")).unwrap() == fs::read(path("all")).unwrap());
    }
}
