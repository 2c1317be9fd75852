//! Errors in scenarios and plans.

use std::io;
use std::path::PathBuf;

use corridor_document::{Diagnostic, Document, Problem};
use corridor_proto::ConfigError;

/// An invalid scenario: which field, what was given, what is expected.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// An error in the file, with its place.
    #[error(transparent)]
    File(Box<Diagnostic>),
    /// A value that is out of its range.
    #[error("{field} = {given}: expected {expected}")]
    Value {
        /// The field as the file spells it, runs counted from 0: `run[2].e3`.
        field: String,
        /// The value that was given.
        given: String,
        /// The values allowed.
        expected: String,
    },
    /// A missing value.
    #[error("{field} is missing: expected {expected}")]
    Missing {
        /// The field as the file spells it, runs counted from 0: `run[2].duration_s`.
        field: String,
        /// The values allowed.
        expected: String,
    },
    /// Coding parameters that the protocol rejects.
    #[error("run[{run}].{source}")]
    Coding {
        /// The `[[run]]` table, counted from 0.
        run: usize,
        /// The protocol's error.
        source: ConfigError,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// More points than are plausible, so probably a mistake.
    #[error("the plan has {given} points: expected at most {max}")]
    TooManyPoints {
        /// Number of points that the lists give, as far as they were counted.
        given: usize,
        /// Most points.
        max: usize,
    },
    /// More runs than are plausible, so probably a mistake.
    #[error("{given} runs, repeats included: expected at most {max}")]
    TooManyRuns {
        /// Number of runs that the lists give.
        given: usize,
        /// Most runs.
        max: usize,
    },
}

impl ScenarioError {
    pub(crate) fn value(
        field: impl Into<String>,
        given: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        ScenarioError::Value {
            field: field.into(),
            given: given.to_string(),
            expected: expected.into(),
        }
    }

    /// The same error for a field within a list: `network.radio.mac` becomes
    /// `network.radio[1].mac`.
    pub(crate) fn of_item(self, list: &str, index: usize) -> Self {
        let in_list = |field: String| match field.strip_prefix(list) {
            Some(rest) => format!("{list}[{index}]{rest}"),
            None => field,
        };
        match self {
            ScenarioError::Value { field, given, expected } => {
                ScenarioError::Value { field: in_list(field), given, expected }
            }
            ScenarioError::Missing { field, expected } => {
                ScenarioError::Missing { field: in_list(field), expected }
            }
            other => other,
        }
    }

    pub(crate) fn missing(field: impl Into<String>, expected: impl Into<String>) -> Self {
        ScenarioError::Missing { field: field.into(), expected: expected.into() }
    }

    /// The same error with its place in the file, if it has none yet.
    pub fn at(self, document: &Document) -> Self {
        let problem = match self {
            ScenarioError::File(_) | ScenarioError::Read { .. } => return self,
            ScenarioError::Value { field, given, expected } => {
                let path = place(document, &field, &given);
                let spelled = document.given(&path).filter(|text| unquoted(text) == given);
                let given = spelled.unwrap_or(&given);
                Problem::new(path.clone(), format!("{field} = {given}: expected {expected}"))
            }
            ScenarioError::Missing { field, expected } => {
                let path = place(document, &field, "");
                Problem::new(path, format!("{field} is missing: expected {expected}"))
            }
            ScenarioError::Coding { run, source } => {
                let path = place(document, &format!("run[{run}].{}", source.field), &source.given);
                Problem::new(path, format!("run[{run}].{source}"))
            }
            other => Problem::new("", other.to_string()),
        };
        ScenarioError::File(document.locate(problem))
    }
}

impl From<Box<Diagnostic>> for ScenarioError {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        ScenarioError::File(diagnostic)
    }
}

/// The dotted path of the place where the file gives a field: in the lists of a sweep, in a list of
/// its own, or directly.
fn place(document: &Document, field: &str, given: &str) -> String {
    let swept = field.strip_prefix("sweep \"").and_then(|path| path.strip_suffix('"'));
    let dotted = swept.unwrap_or(field).replace('[', ".").replace([']', '"'], "");
    let is_given = |path: &String| document.given(path).is_some();
    let sweeps = (0..).map(|index| format!("sweep.{index}")).take_while(is_given);
    let in_sweep = sweeps.map(|sweep| format!("{sweep}.{dotted}")).find(is_given);
    let path = in_sweep.unwrap_or(dotted);
    let items = (0..).map(|index| format!("{path}.{index}")).take_while(is_given);
    let is_it =
        |item: &String| document.given(item).is_some_and(|text| is_same(unquoted(text), given));
    items.into_iter().find(is_it).unwrap_or(path)
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

/// Whether the file's spelling of a value equals that of a message: `0.50` and `nan` are `0.5`,
/// `NaN`.
fn is_same(spelled: &str, given: &str) -> bool {
    spelled == unquoted(given)
        || match (spelled.replace('_', "").parse::<f64>(), given.parse::<f64>()) {
            (Ok(a), Ok(b)) => a == b || (a.is_nan() && b.is_nan()),
            _ => false,
        }
}
