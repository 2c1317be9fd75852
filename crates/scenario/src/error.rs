//! What can be wrong with a scenario file.

use std::io;
use std::path::PathBuf;

use corridor_proto::ConfigError;

/// A scenario that cannot be run: which field, what was given, what is expected.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Not TOML, or not the fields of a scenario; `message` shows the place in the file.
    #[error("{message}")]
    Syntax {
        /// Line of the file, from 1; `None` when the fault has no place (a field is missing).
        line: Option<usize>,
        /// What is wrong, several lines, with an excerpt of the file.
        message: String,
    },
    /// A value out of its range.
    #[error("{field} = {given}: expected {expected}")]
    Value {
        /// The field as the file spells it, runs counted from 0: `run[2].e3`.
        field: String,
        /// The value that was given.
        given: String,
        /// What would have been accepted.
        expected: String,
    },
    /// Coding parameters that the protocol refuses.
    #[error("run[{run}].{source}")]
    Coding {
        /// The run, counted from 0.
        run: usize,
        /// What the protocol says.
        source: ConfigError,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// More points than anybody looks at, so probably a slip.
    #[error("the plan has {given} points: expected at most {max}")]
    TooManyPoints {
        /// Points that the lists multiply to, as far as they were counted.
        given: usize,
        /// Most points.
        max: usize,
    },
    /// More runs than anybody waits for, so probably a slip.
    #[error("{given} runs, repeats included: expected at most {max}")]
    TooManyRuns {
        /// Runs that the lists multiply to.
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

    pub(crate) fn syntax(error: &toml::de::Error, text: &str) -> Self {
        let line = error.span().map(|span| {
            1 + text.as_bytes()[..span.start.min(text.len())]
                .iter()
                .filter(|&&b| b == b'\n')
                .count()
        });
        ScenarioError::Syntax { line, message: error.to_string().trim_end().to_owned() }
    }
}
