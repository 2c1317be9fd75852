//! What can be wrong with a configuration.

/// A field of a [`StationConfig`](crate::StationConfig) that cannot be what it is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} = {given}: expected {expected}")]
pub struct ConfigError {
    /// The field, as the configuration file spells it (`coding.block_size`).
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

    /// What the check let through and the codec refuses; only sizes can be.
    pub(crate) fn codec(error: corridor_codec::CodecError) -> Self {
        ConfigError::new("coding.window_size", error, "sizes that the codec takes")
    }
}
