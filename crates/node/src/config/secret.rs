//! The key of the group, and the files it comes from: nobody but their owner may read them.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use corridor_document::{Document, Problem};
use corridor_proto::{PSK_LEN, Psk};
use zeroize::Zeroizing;

use super::file::{PskText, SecurityTable};
use crate::error::NodeError;

/// Longest file that is read, bytes: configurations and keys are far shorter.
const FILE_LEN_MAX: u64 = 1 << 20;

/// A fresh key, as `psk_file` has it: 64 hexadecimal digits.
///
/// # Errors
/// The system has no random bytes.
pub fn generate() -> Result<Zeroizing<String>, NodeError> {
    let mut key = Zeroizing::new([0; PSK_LEN]);
    getrandom::fill(&mut key[..]).map_err(|error| NodeError::System {
        action: "get random bytes".into(),
        source: error.into(),
    })?;
    let mut text = Zeroizing::new(String::with_capacity(2 * PSK_LEN));
    for byte in key.iter() {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    Ok(text)
}

/// The text of a configuration file.
pub(super) fn read(path: &Path) -> Result<Document, NodeError> {
    Ok(Document::new(path.display().to_string(), std::mem::take(&mut *read_text(path)?)))
}

fn read_text(path: &Path) -> Result<Zeroizing<String>, NodeError> {
    let refused = |source| NodeError::ReadConfig { path: path.to_owned(), source };
    let mut text = Zeroizing::new(String::new());
    let mut file = File::open(path).map_err(refused)?.take(FILE_LEN_MAX);
    file.read_to_string(&mut text).map_err(refused)?;
    Ok(text)
}

/// The key, from the configuration itself or from the file it names (relative to its own place).
pub(super) fn load(
    table: &SecurityTable,
    config: &Path,
    document: &Document,
) -> Result<Psk, NodeError> {
    let problem = match (&table.psk, &table.psk_file) {
        (Some(psk), None) => match open_to_all("security.psk", config) {
            Some(problem) => problem,
            None => return Ok(psk.0.clone()),
        },
        (None, Some(file)) => {
            let path = config.parent().unwrap_or(Path::new("")).join(file);
            let text = read_text(&path)?;
            match (open_to_all("security.psk_file", &path), text.parse::<PskText>()) {
                (None, Ok(psk)) => return Ok(psk.0),
                (Some(problem), _) => problem,
                (None, Err(expected)) => Problem::new(
                    "security.psk_file",
                    format!("security.psk_file: {} is not a key: {expected}", path.display()),
                )
                .with_help("`corridor genpsk` makes one"),
            }
        }
        (Some(_), Some(_)) => Problem::new(
            "security.psk_file",
            "security has both psk and psk_file: expected one of them",
        ),
        (None, None) => {
            Problem::new("security", "security has neither psk nor psk_file: expected one of them")
        }
    };
    Err(document.locate(problem).into())
}

/// Why a file with a key is refused, where it is.
fn open_to_all(key: &str, path: &Path) -> Option<Problem> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let path = path.display();
    (mode & 0o007 != 0).then(|| {
        let message = format!(
            "{key}: {path} holds the key, and its mode {mode:03o} opens it to all users: expected \
             its owner's alone"
        );
        Problem::new(key, message).with_help(format!("chmod 600 {path}"))
    })
}
