//! The private directory of a run's node files. It is removed with the run; the next lab removes
//! those of killed labs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use crate::error::{Context, LabError};

/// Prefix of the names of all such directories.
const PREFIX: &str = "corridor-lab-";
/// File in the directory that its lab keeps locked as long as it lives.
const LOCK: &str = "lock";

/// A directory that only this user can read, removed when dropped.
pub(crate) struct Scratch {
    directory: TempDir,
    _lock: Flock<File>,
}

impl Scratch {
    pub(crate) fn new() -> Result<Self, LabError> {
        Self::new_in(&std::env::temp_dir()).what("make a directory for the nodes' files")
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        remove_abandoned(parent);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // It gets its name once it is locked, so that no other lab takes it for abandoned before.
        let unnamed = directory.path().join("lock.new");
        let lock = try_lock(File::create(&unnamed)?)?;
        fs::rename(unnamed, directory.path().join(LOCK))?;
        Ok(Scratch { directory, _lock: lock })
    }

    /// Its path.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn try_lock(file: File) -> io::Result<Flock<File>> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno.into())
}

/// Removes directories whose labs are gone: their locks are free. Failures do not matter.
fn remove_abandoned(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX)) {
        // Never follows a symbolic link.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if is_directory && try_lock(lock).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_directory_is_removed_and_a_living_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let abandoned = parent.path().join("corridor-lab-gone");
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let young = parent.path().join("corridor-lab-young");
        fs::create_dir(&young).unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();

        let living = Scratch::new_in(parent.path()).unwrap();
        assert!(!abandoned.exists());
        let second = Scratch::new_in(parent.path()).unwrap();
        assert!(living.file("").exists() && young.exists() && other.exists());
        drop((living, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 2);
    }
}
