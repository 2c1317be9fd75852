//! `corridor genkey`, `corridor pubkey`: key pairs of a station, as with WireGuard's `wg`.

use std::io::{self, Read};
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::exit::{Exit, print, report_node};
use crate::genpsk::write_secret;

/// Maximum number of bytes read from standard input: a key has 44, and white space may follow.
const INPUT_LEN_MAX: usize = 1024;

/// Arguments of `corridor genkey`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Write the key to a new file, readable only by its owner, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Generates a private key.
pub fn genkey(arguments: &Arguments) -> Exit {
    match corridor_node::generate_key() {
        Ok(key) => write_secret(arguments.out.as_deref(), key.as_bytes()),
        Err(error) => report_node(&error),
    }
}

/// Reads a private key, and prints its public key.
pub fn pubkey() -> Exit {
    // Reads everything at once: a string that grows would leave freed copies of its contents
    // behind.
    let mut text = Zeroizing::new(String::with_capacity(INPUT_LEN_MAX));
    if let Err(error) = io::stdin().take(INPUT_LEN_MAX as u64).read_to_string(&mut text) {
        eprintln!("error: cannot read standard input: {error}");
        return Exit::Failure;
    }
    match corridor_node::public_key(&text) {
        Ok(public) => print(&format!("{public}\n")),
        Err(expected) => {
            eprintln!("error: standard input is not a private key: {expected}");
            Exit::Failure
        }
    }
}
