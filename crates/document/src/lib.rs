//! TOML files that say where they are wrong, and what was expected: the one way in which daemon
//! files, scenarios and plans are read.
//!
//! What a file may hold is said once, by the Rust types that serde reads: their doc comments,
//! ranges and words become a [`Schema`], and from it come the names an error proposes, what it
//! says was expected, the reference for people and the JSON schema for editors.
#![forbid(unsafe_code)]

mod diagnostic;
mod document;
pub mod rate;
mod reference;
mod schema;

pub use diagnostic::{Diagnostic, Severity};
pub use document::{Document, Problem, without_indices};
pub use schema::{Key, Schema, Table};
