//! TOML files with errors that say where and what was expected. Daemon configurations, scenarios
//! and plans are all read this way.
//!
//! What a file may contain is defined once, by the Rust types that serde reads: their doc comments,
//! ranges and words become a [`Schema`]. It provides the names that errors suggest, what they say
//! was expected, the reference for people and the JSON schema for editors.
#![forbid(unsafe_code)]

mod diagnostic;
mod document;
pub mod rate;
mod reference;
mod schema;

pub use diagnostic::{Diagnostic, Severity};
pub use document::{Document, Problem, without_indices};
pub use schema::{Key, Schema, Table};
