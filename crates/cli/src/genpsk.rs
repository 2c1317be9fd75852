//! `corridor genpsk`: generates a key for a group.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, report_node};

/// Arguments of `corridor genpsk`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write the key to a new file, readable only by its owner, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Generates a key of 32 random bytes, as 64 hexadecimal digits.
pub fn genpsk(arguments: &Arguments) -> Exit {
    match corridor_node::generate_psk() {
        Ok(key) => write_secret(arguments.out.as_deref(), key.as_bytes()),
        Err(error) => report_node(&error),
    }
}

/// Writes a key and a newline to a new file or to standard output.
pub fn write_secret(out: Option<&Path>, key: &[u8]) -> Exit {
    let written = match out {
        Some(path) => create(path, key),
        None => print(key),
    };
    match written {
        Ok(()) => Exit::Success,
        Err(error) => {
            let place = out.map_or("standard output".into(), |path| path.display().to_string());
            eprintln!("error: cannot write {place}: {error}");
            Exit::Failure
        }
    }
}

/// An existing file is somebody's key, and is not overwritten.
fn create(path: &Path, key: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key)?;
    file.write_all(b"\n")
}

fn print(key: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(key)?;
    stdout.write_all(b"\n")?;
    stdout.flush()?;
    // A shell redirection has created a file that `corridor up` would refuse.
    if let Ok(file) = std::fs::metadata("/proc/self/fd/1")
        && file.is_file()
        && file.mode() & 0o007 != 0
    {
        eprintln!("warning: all users can read the file: chmod 600 it, or use --out FILE");
    }
    Ok(())
}
