//! Parquet files: one row per replication, with units of the columns, and the provenance as
//! metadata.
//!
//! The bytes depend only on the records and the provenance: not on the time of writing, the order
//! of finishing, or the machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use corridor_scenario::{Column, Kind, Record, Role, Value};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use tempfile::NamedTempFile;

use crate::error::ResultsError;
use crate::results::Results;

/// Maximum size of a results file to read, bytes.
pub const RESULT_BYTES_MAX: u64 = 4 << 30;
/// Rows read at once.
pub(crate) const BATCH_ROWS: usize = 8_192;

/// Writes results; the file is replaced atomically.
///
/// # Errors
/// [`ResultsError::Io`].
pub fn write_parquet(path: &Path, results: &Results) -> Result<(), ResultsError> {
    let bytes = encode(results).map_err(|error| ResultsError::format(path, error))?;
    let mut file = temporary(path)?;
    file.write_all(&bytes).map_err(ResultsError::io("write", path))?;
    persist(file, path)
}

/// A temporary file beside `path`, to replace it.
pub(crate) fn temporary(path: &Path) -> Result<NamedTempFile, ResultsError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".corridor-")
        .tempfile_in(directory.unwrap_or(Path::new(".")));
    file.map_err(ResultsError::io("write", path))
}

/// Replaces the file.
pub(crate) fn persist(file: NamedTempFile, path: &Path) -> Result<(), ResultsError> {
    let persist = || {
        file.as_file().sync_all()?;
        // A temporary file is private; results should be readable like other files.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    persist().map_err(ResultsError::io("write", path))
}

/// Writer properties, with the metadata.
pub(crate) fn properties(metadata: &[(String, String)]) -> WriterPropertiesBuilder {
    let pairs = metadata.iter().map(|(name, value)| KeyValue::new(name.clone(), value.clone()));
    WriterProperties::builder()
        .set_created_by("corridor".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(pairs.collect()))
}

fn encode(results: &Results) -> Result<Vec<u8>, parquet::errors::ParquetError> {
    let fields: Vec<Field> = results.columns.iter().map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = results.columns.iter().enumerate();
    let arrays = arrays.map(|(place, column)| array(column.kind, place, &results.records));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays.collect())?;
    let properties = properties(&results.metadata).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}

pub(crate) fn field(column: &Column) -> Field {
    let data_type = match column.kind {
        Kind::Flag => DataType::Boolean,
        Kind::Integer => DataType::Int64,
        Kind::Real => DataType::Float64,
        Kind::Text => DataType::Utf8,
    };
    let metadata = [
        ("unit", column.unit.clone()),
        ("long_name", column.meaning.clone()),
        ("role", format!("{:?}", column.role).to_lowercase()),
    ];
    let is_key = column.role == Role::Key;
    Field::new(&column.name, data_type, !is_key)
        .with_metadata(metadata.map(|(name, value)| (name.to_owned(), value)))
}

fn array(kind: Kind, place: usize, records: &[Record]) -> ArrayRef {
    let values = records.iter().map(|record| &record.values[place]);
    match kind {
        Kind::Flag => Arc::new(BooleanArray::from_iter(values.map(|value| match value {
            Value::Flag(value) => Some(*value),
            _ => None,
        }))),
        Kind::Integer => Arc::new(Int64Array::from_iter(values.map(|value| match value {
            Value::Integer(value) => Some(*value),
            _ => None,
        }))),
        Kind::Real => Arc::new(Float64Array::from_iter(values.map(|value| match value {
            Value::Real(value) => Some(*value),
            _ => None,
        }))),
        Kind::Text => Arc::new(StringArray::from_iter(values.map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        }))),
    }
}

/// Reads results.
///
/// # Errors
/// [`ResultsError::Io`], [`ResultsError::Format`].
pub fn read_parquet(path: &Path) -> Result<Results, ResultsError> {
    let open = || {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok((file, len))
    };
    let (file, len) = open().map_err(ResultsError::io("read", path))?;
    if len > RESULT_BYTES_MAX {
        let what = format!("{len} bytes, at most {RESULT_BYTES_MAX}");
        return Err(ResultsError::format(path, what));
    }
    let fault = |error: parquet::errors::ParquetError| ResultsError::format(path, error);
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(fault)?;
    let metadata = builder.metadata().file_metadata().key_value_metadata();
    let metadata: Vec<_> = metadata
        .into_iter()
        .flatten()
        .filter(|pair| pair.key.starts_with("corridor."))
        .map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default()))
        .collect();
    let schema = Arc::clone(builder.schema());
    let columns: Result<Vec<Column>, String> = schema.fields().iter().map(|f| column(f)).collect();
    let columns = columns.map_err(|what| ResultsError::format(path, what))?;
    if columns.len() < 2 || columns[0].name != "point" || columns[1].name != "replication" {
        return Err(ResultsError::format(path, "its first columns are not point and replication"));
    }
    let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(fault)?;
    let mut records = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| ResultsError::format(path, error))?;
        records.extend((0..batch.num_rows()).map(|row| record(&batch, &columns, row)));
    }
    Ok(Results { columns, records, metadata })
}

fn column(field: &Field) -> Result<Column, String> {
    let told: BTreeMap<&str, &str> =
        field.metadata().iter().map(|(name, value)| (&name[..], &value[..])).collect();
    let told = |name: &str| told.get(name).copied().unwrap_or_default().to_owned();
    let kind = match field.data_type() {
        DataType::Boolean => Kind::Flag,
        DataType::Int64 => Kind::Integer,
        DataType::Float64 => Kind::Real,
        DataType::Utf8 => Kind::Text,
        other => return Err(format!("column {} is of type {other}", field.name())),
    };
    let role = match told("role").as_str() {
        "key" => Role::Key,
        "parameter" => Role::Parameter,
        "headline" => Role::Headline,
        _ => Role::Metric,
    };
    let (name, unit, meaning) = (field.name().clone(), told("unit"), told("long_name"));
    Ok(Column { name, unit, meaning, role, kind })
}

fn record(batch: &RecordBatch, columns: &[Column], row: usize) -> Record {
    let value = |(place, column): (usize, &Column)| {
        let array = batch.column(place);
        if array.is_null(row) {
            return Value::Absent;
        }
        match column.kind {
            Kind::Flag => Value::Flag(array.as_boolean().value(row)),
            Kind::Integer => Value::Integer(array.as_primitive::<Int64Type>().value(row)),
            Kind::Real => Value::from(array.as_primitive::<Float64Type>().value(row)),
            Kind::Text => Value::Text(array.as_string::<i32>().value(row).to_owned()),
        }
    };
    let values: Vec<Value> = columns.iter().enumerate().map(value).collect();
    let count = |place: usize| values[place].number().unwrap_or(0.0) as u64;
    let (point, replication) = (count(0) as usize, count(1));
    Record { point, replication, values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_scenario::{Measures, Plan};

    use crate::results::Provenance;

    fn results() -> Results {
        let text = "name = 't'\nseed = 1\nmedium = { duplex = 'half', rate_bps = 12000000, \
             rtt_ms = 4, queue_frames = 4 }\n[[run]]\npath = ['plain', 'coded']\ntransport = 'udp'\n\
             offered_bps = 1e6\ne3 = 0.1\nduration_s = 1\n[[sweep]]\nmedium.rtt_ms = [4, 8]\n";
        let plan = Plan::parse(text, Path::new(".")).unwrap();
        let record = |task: usize| {
            let mut measures = Measures::default();
            measures.set("goodput_bps", 1e6 / (task + 3) as f64);
            measures.set("packets_sent", task as u64);
            plan.record(task, 0, &measures)
        };
        let records = (0..plan.points.len()).map(record).collect();
        let [commit, code_version] = ["abc", "def"].map(str::to_owned);
        Results::new(&plan, records, &Provenance { commit, code_version, complete_points: 4 })
    }

    #[test]
    fn what_was_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.parquet");
        let written = results();
        write_parquet(&path, &written).unwrap();
        let read = read_parquet(&path).unwrap();
        assert_eq!(read.columns, written.columns);
        assert_eq!(read.records, written.records);
        assert_eq!(read.metadata, written.metadata);
        assert_eq!(read.metadata("commit"), Some("abc"));
        let goodput = read.columns.iter().find(|column| column.name == "goodput_bps").unwrap();
        assert_eq!((goodput.unit.as_str(), goodput.role), ("bit/s", Role::Headline));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// The file that the Python package's tests read.
    fn for_python() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/data/results.parquet")
    }

    #[test]
    fn the_file_that_python_is_tested_with_is_what_is_written() {
        let (read, written) = (read_parquet(&for_python()).unwrap(), results());
        assert_eq!(read.columns, written.columns);
        assert_eq!((read.records, read.metadata), (written.records, written.metadata));
    }

    #[test]
    #[ignore = "writes the file that Python is tested with: run it when columns change"]
    fn write_the_file_that_python_is_tested_with() {
        write_parquet(&for_python(), &results()).unwrap();
    }

    #[test]
    fn equal_results_are_equal_bytes() {
        let bytes = encode(&results()).unwrap();
        assert_eq!(bytes, encode(&results()).unwrap());
        let mut other = results();
        other.records.pop();
        assert_ne!(bytes, encode(&other).unwrap());
    }

    #[test]
    fn other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.parquet");
        assert!(matches!(read_parquet(&path), Err(ResultsError::Io { .. })));
        fs::write(&path, "PAR1 it is not").unwrap();
        assert!(matches!(read_parquet(&path), Err(ResultsError::Format { .. })));
        assert!(write_parquet(Path::new("/dev/null/results.parquet"), &results()).is_err());
    }
}
