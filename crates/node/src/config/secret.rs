//! Keys that authenticate stations, and the files they come from: only the owner may read files
//! with secrets.

use std::fs::{self, File as OpenFile};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

use corridor_document::{Document, Problem};
use corridor_proto::{
    KEY_LEN, Keys, PSK_LEN, PeerKey, PrivateKey, Psk, PublicKey, RelayEnd, Security, StationId,
};
use zeroize::Zeroizing;

use super::ends;
use super::file::{EndTable, File, PskText};
use crate::error::NodeError;

/// Longest file that is read, bytes; configurations and keys are far shorter.
const FILE_LEN_MAX: usize = 1 << 20;

/// A new group secret, as in `psk_file`: 64 hexadecimal digits.
///
/// # Errors
/// The system provides no random bytes.
pub fn generate_psk() -> Result<Zeroizing<String>, NodeError> {
    let key: Zeroizing<[u8; PSK_LEN]> = random()?;
    let mut text = Zeroizing::new(String::with_capacity(2 * PSK_LEN));
    for byte in key.iter() {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    Ok(text)
}

/// A new private key, as in `private_key_file`: 44 characters of base64.
///
/// # Errors
/// The system provides no random bytes.
pub fn generate_key() -> Result<Zeroizing<String>, NodeError> {
    let bytes: Zeroizing<[u8; KEY_LEN]> = random()?;
    Ok(PrivateKey::from_random(*bytes).to_text())
}

/// The public key that belongs to a private one.
///
/// # Errors
/// What was expected instead of this text.
pub fn public_key(private: &str) -> Result<String, &'static str> {
    Ok(private.parse::<PrivateKey>()?.public().to_string())
}

fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, NodeError> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut bytes[..]).map_err(|error| NodeError::System {
        action: "get random bytes".into(),
        source: error.into(),
    })?;
    Ok(bytes)
}

/// The text of a configuration file.
pub(super) fn read(path: &Path) -> Result<Document, NodeError> {
    let mut text = read_text(path)
        .map_err(|source| NodeError::ReadConfig { path: path.to_owned(), source })?;
    Ok(Document::new(path.display().to_string(), std::mem::take(&mut *text)))
}

fn read_text(path: &Path) -> io::Result<Zeroizing<String>> {
    // Reads everything at once: a string that grows would leave freed copies of its contents
    // behind.
    let mut text = Zeroizing::new(String::with_capacity(FILE_LEN_MAX));
    OpenFile::open(path)?.take(FILE_LEN_MAX as u64).read_to_string(&mut text)?;
    Ok(text)
}

/// The secret or the keys, from the configuration itself or from the files it names (relative to
/// its own directory).
pub(super) fn load(file: &File, config: &Path, document: &Document) -> Result<Security, NodeError> {
    let located = |problem| NodeError::from(document.locate(problem));
    check(file).map_err(located)?;
    let table = &file.security;
    let from_file = FromFile { config, document };
    if let Some(psk) = &table.psk {
        return match open_to_all("security.psk", "security.psk", config) {
            Some(problem) => Err(located(problem)),
            None => Ok(psk.0.clone().into()),
        };
    }
    if let Some(name) = &table.psk_file {
        let psk: PskText = from_file.read("security.psk_file", name, "corridor genpsk")?;
        return Ok(psk.0.into());
    }
    let name = table.private_key_file.as_deref().unwrap_or_default();
    if name.parse::<PrivateKey>().is_ok() {
        let message = "security.private_key_file is a key: expected the path of a key file";
        return Err(located(Problem::new("security.private_key_file", message)));
    }
    let private: PrivateKey =
        from_file.read("security.private_key_file", name, "corridor genkey")?;
    let mut peers = Vec::new();
    for (index, peer) in file.peer.iter().enumerate() {
        let Some(public) = peer.public_key.as_ref().map(|text| text.0) else { continue };
        if public == private.public() {
            let message = format!(
                "peer.public_key = {public}: is this station's own public key; expected the \
                 peer's"
            );
            return Err(located(Problem::new(format!("peer.{index}.public_key"), message)));
        }
        let psk = |name: &String| -> Result<Psk, NodeError> {
            let key = format!("peer.{index}.psk_file");
            Ok(from_file.read::<PskText>(&key, name, "corridor genpsk")?.0)
        };
        let psk = peer.psk_file.as_ref().map(psk).transpose()?;
        peers.push(PeerKey { station: StationId(peer.id), public, psk });
    }
    Ok(Security::Keys(Box::new(Keys { private, peers })))
}

/// The file's ends, with the secrets from the files that it names.
pub(super) fn load_ends(
    file: &File,
    security: &Security,
    config: &Path,
    document: &Document,
) -> Result<Vec<RelayEnd>, NodeError> {
    ends::check(file).map_err(|problem| NodeError::from(document.locate(problem)))?;
    let from_file = FromFile { config, document };
    let own = match security {
        Security::Keys(keys) => Some(keys.private.public()),
        Security::Shared(_) => None,
    };
    let end = |(index, end): (usize, &EndTable)| {
        let public = end.public_key.0;
        if own == Some(public) {
            let message = format!(
                "end.public_key = {public}: is this station's own public key; expected the \
                 other end's"
            );
            let problem = Problem::new(format!("end.{index}.public_key"), message);
            return Err(NodeError::from(document.locate(problem)));
        }
        let psk = end.psk_file.as_ref().map(|name| -> Result<Psk, NodeError> {
            let key = format!("end.{index}.psk_file");
            Ok(from_file.read::<PskText>(&key, name, "corridor genpsk")?.0)
        });
        Ok(RelayEnd { networks: end.networks.clone(), public, psk: psk.transpose()? })
    };
    file.end.iter().enumerate().map(end).collect()
}

/// Checks for contradictions before any file is read.
fn check(file: &File) -> Result<(), Problem> {
    let table = &file.security;
    match (table.psk.is_some(), table.psk_file.is_some(), table.private_key_file.is_some()) {
        (true, true, _) => {
            return Err(Problem::new(
                "security.psk_file",
                "security has both psk and psk_file: expected only one",
            ));
        }
        (false, false, false) => {
            return Err(Problem::new(
                "security",
                "security has none of psk, psk_file and private_key_file: expected one of \
                 them",
            ));
        }
        (false, false, true) => {}
        (_, _, true) => {
            let message = "security has both private_key_file and a group key: expected only one";
            return Err(Problem::new("security.private_key_file", message)
                .with_help("for an additional pre-shared key, set psk_file in [[peer]]"));
        }
        (_, _, false) => return check_shared(file),
    }
    check_keys(file)
}

/// With a group secret, nobody's key has a meaning.
fn check_shared(file: &File) -> Result<(), Problem> {
    for (index, peer) in file.peer.iter().enumerate() {
        let given =
            [("public_key", peer.public_key.is_some()), ("psk_file", peer.psk_file.is_some())];
        if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let message = format!(
                "peer.{name} cannot be used with a group key: expected \
                 security.private_key_file instead"
            );
            return Err(Problem::new(format!("peer.{index}.{name}"), message));
        }
    }
    Ok(())
}

fn check_keys(file: &File) -> Result<(), Problem> {
    let mut before: Vec<PublicKey> = Vec::new();
    for (index, peer) in file.peer.iter().enumerate() {
        let Some(public) = peer.public_key.as_ref().map(|text| text.0) else {
            let message = format!(
                "peer.public_key of station {} is missing: expected 44 characters of base64 with \
                 security.private_key_file",
                peer.id
            );
            return Err(Problem::new(format!("peer.{index}"), message)
                .with_help("`corridor pubkey` derives it from a private key"));
        };
        if !public.makes_secrets() {
            let message = format!(
                "peer.public_key = {public}: weak key, expected the public key of a private key"
            );
            return Err(Problem::new(format!("peer.{index}.public_key"), message)
                .with_help("`corridor pubkey` derives it from a private key"));
        }
        if before.contains(&public) {
            let message = format!("peer.public_key = {public}: already used by another peer");
            return Err(Problem::new(format!("peer.{index}.public_key"), message));
        }
        before.push(public);
    }
    Ok(())
}

/// Reads files that the configuration names.
struct FromFile<'a> {
    config: &'a Path,
    document: &'a Document,
}

impl FromFile<'_> {
    /// The key in a file that the configuration names as `key`.
    fn read<T: FromStr<Err = &'static str>>(
        &self,
        key: &str,
        name: &str,
        maker: &str,
    ) -> Result<T, NodeError> {
        // As in the file, but without the number of a peer or an end.
        let word = match key.split('.').next() {
            Some("peer") => "peer.psk_file",
            Some("end") => "end.psk_file",
            _ => key,
        };
        let path = self.config.parent().unwrap_or(Path::new("")).join(name);
        let text = read_text(&path).map_err(|error| {
            let message = format!("{word}: cannot read {}: {error}", path.display());
            self.document.locate(Problem::new(key, message))
        })?;
        let problem = match (open_to_all(key, word, &path), text.parse::<T>()) {
            (None, Ok(read)) => return Ok(read),
            (Some(problem), _) => problem,
            (None, Err(expected)) => {
                let message = format!("{word}: {} is not a key: {expected}", path.display());
                Problem::new(key, message).with_help(format!("`{maker}` creates one"))
            }
        };
        Err(self.document.locate(problem).into())
    }
}

/// The error of a key file that other users may access.
fn open_to_all(key: &str, word: &str, path: &Path) -> Option<Problem> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let path = path.display();
    (mode & 0o007 != 0).then(|| {
        let message = format!(
            "{word}: key file {path} is accessible to other users (mode {mode:03o}): expected \
             access only for its owner"
        );
        Problem::new(key, message).with_help(format!("chmod 600 {path}"))
    })
}
