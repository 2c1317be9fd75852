//! Configuration errors.

/// An invalid field of a [`StationConfig`](crate::StationConfig).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} = {given}: expected {expected}")]
pub struct ConfigError {
    /// The field, as spelled in configuration files (`coding.block_size`).
    pub field: &'static str,
    /// The value that was given.
    pub given: String,
    /// What would have been accepted.
    pub expected: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, given: impl ToString, expected: impl ToString) -> Self {
        ConfigError { field, given: given.to_string(), expected: expected.to_string() }
    }

    /// An error of the codec that the check missed; only sizes can cause one.
    pub(crate) fn codec(error: corridor_codec::CodecError) -> Self {
        ConfigError::new("coding.window_size", error, "sizes that the codec takes")
    }
}
