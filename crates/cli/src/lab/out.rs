//! A file of rows that is complete after every run.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use super::{Failure, json};

/// A file that always contains complete rows.
pub(super) struct OutFile {
    pub(super) path: PathBuf,
    /// A device or pipe cannot be replaced, and is written to directly.
    is_special: bool,
}

impl OutFile {
    /// Checks now, not after an hour of runs, that the file can be written.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let out = OutFile { path: path.to_owned(), is_special };
        if !is_special {
            out.temporary().map_err(|source| out.failed(source))?;
        }
        Ok(out)
    }

    /// Writes all rows; to a file that cannot be replaced, only the newest row.
    pub(super) fn write<'a, T: Serialize + 'a>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        newest: &str,
    ) -> Result<(), Failure> {
        self.try_write(rows, newest).map_err(|source| self.failed(source))
    }

    fn try_write<'a, T: Serialize + 'a>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        newest: &str,
    ) -> io::Result<()> {
        if self.is_special {
            let line = format!("{newest}\n");
            return fs::OpenOptions::new().write(true).open(&self.path)?.write_all(line.as_bytes());
        }
        let mut file = self.temporary()?;
        for row in rows {
            file.write_all((json(row) + "\n").as_bytes())?;
        }
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    fn temporary(&self) -> io::Result<NamedTempFile> {
        use std::os::unix::fs::PermissionsExt;
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        tempfile::Builder::new()
            .prefix(".corridor-lab-")
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(directory.unwrap_or(Path::new(".")))
    }

    fn failed(&self, source: io::Error) -> Failure {
        Failure::Write { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        let out = OutFile::create(&path).unwrap();
        assert!(!path.exists());
        let rows = [1, 2, 3];
        for count in 1..=rows.len() {
            out.write(rows[..count].iter(), &json(&rows[count - 1])).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let read: Vec<i32> =
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(read, rows[..count]);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(OutFile::create(&directory.path().join("missing/rows")).is_err());
    }

    #[test]
    fn a_full_disk_is_an_error_and_the_device_stays() {
        let out = OutFile::create(Path::new("/dev/full")).unwrap();
        let failure = out.write([1].iter(), "{}").unwrap_err();
        assert!(failure.to_string().contains("No space left"), "{failure}");
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }
}
