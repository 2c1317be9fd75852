//! A hash of source code by its tokens, regardless of formatting and comments.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Crates whose code the results of simulations depend on.
pub const CRATES: [&str; 9] =
    ["base", "codec", "packet", "relay", "proto", "air", "document", "scenario", "sim"];
/// FNV-1a, 128 bits.
const FNV_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// The hash of the files added so far, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u128);

impl Identity {
    /// The hash of no files.
    pub fn new() -> Self {
        Identity(FNV_BASIS)
    }

    /// The hash of the sources of these crates and of the versions of all dependencies. `here` is
    /// the directory of one of the crates. Tells cargo to rerun the build script when a source
    /// changes.
    pub fn of(here: &Path, crates: &[&str]) -> Self {
        let mut files = Vec::new();
        for name in crates {
            let directory = here.join("..").join(name).join("src");
            println!("cargo::rerun-if-changed={}", directory.display());
            collect(&directory, &mut files);
        }
        let lock = here.join("../../Cargo.lock");
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
        files.sort();
        let mut identity = Identity::new();
        for file in files {
            // A packaged crate lacks the other crates; its manifest names their versions.
            let bytes = fs::read(&file).unwrap_or_default();
            identity.add(&file.file_name().unwrap_or_default().to_string_lossy(), &bytes);
        }
        identity
    }

    /// Adds a file by its name. In Rust files, comments, documentation and white space do not
    /// count, except spaces between punctuation; in other files everything does. Line ends may be
    /// those of any system.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        self.part(name.as_bytes());
        let text = core::str::from_utf8(bytes).ok().map(|text| text.replace("\r\n", "\n"));
        let rust = text.as_ref().filter(|_| name.ends_with(".rs"));
        match rust.and_then(|text| text.parse::<TokenStream>().ok()) {
            Some(tokens) => self.tokens(tokens),
            None => self.part(text.as_ref().map_or(bytes, |text| text.as_bytes())),
        }
    }

    /// The hash as digits.
    pub fn digits(self) -> String {
        format!("{:032x}", self.0)
    }

    fn tokens(&mut self, tokens: TokenStream) {
        // No token looks like these markers.
        self.part(b"(begin");
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if is_punct(&token, '#') {
                // Here `///` comments have already become attributes.
                let inner = tokens.next_if(|next| is_punct(next, '!'));
                if tokens.next_if(is_documentation).is_some() {
                    continue;
                }
                self.token(token);
                inner.into_iter().for_each(|token| self.token(token));
            } else {
                self.token(token);
            }
        }
        self.part(b"end)");
    }

    fn token(&mut self, token: TokenTree) {
        match token {
            TokenTree::Group(group) => {
                self.part(match group.delimiter() {
                    Delimiter::Parenthesis => b"(",
                    Delimiter::Brace => b"{",
                    Delimiter::Bracket => b"[",
                    Delimiter::None => b"",
                });
                self.tokens(group.stream());
            }
            TokenTree::Ident(name) => self.part(name.to_string().as_bytes()),
            TokenTree::Literal(value) => self.part(value.to_string().as_bytes()),
            TokenTree::Punct(sign) => {
                let mut text = sign.as_char().to_string();
                if sign.spacing() == Spacing::Joint {
                    text.push('+');
                }
                self.part(text.as_bytes());
            }
        }
    }

    /// Adds bytes and their number, so that no two lists of parts give the same hash.
    fn part(&mut self, bytes: &[u8]) {
        let len = (bytes.len() as u64).to_le_bytes();
        for &byte in len.iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(FNV_PRIME);
        }
    }
}

fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

/// Whether this is the content of the brackets of `#[doc = ""]`.
fn is_documentation(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
