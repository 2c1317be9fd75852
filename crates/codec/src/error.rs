use crate::{Field, MAX_BLOCK_SIZE, MAX_SYMBOL_SIZE, MAX_WINDOW_SIZE};

/// Errors of the caller. A lost, duplicate or non-innovative symbol is not an error: see
/// [`Outcome`](crate::Outcome).
///
/// An error leaves the coder's state unchanged.
///
/// ```
/// use corridor_codec::{CodecError, Field, WindowEncoder};
///
/// let mut encoder = WindowEncoder::new(Field::Gf2, 1, 4)?;
/// let error = encoder.push(b"longer").unwrap_err();
/// assert_eq!(error, CodecError::SymbolLength { expected_max: 4, given: 6 });
/// assert_eq!(error.to_string(), "a symbol of 6 bytes: not in 1..=4");
/// # Ok::<(), CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The block size is zero or too large.
    #[error("a block of {given} symbols: not in 1..={MAX_BLOCK_SIZE}")]
    BlockSize {
        /// Block or window size given.
        given: usize,
    },
    /// The maximum symbol size is zero or too large.
    #[error("symbols of up to {given} bytes: not in 1..={MAX_SYMBOL_SIZE}")]
    SymbolSizeMax {
        /// Size given, in bytes.
        given: usize,
    },
    /// A symbol or payload is empty, or longer than the coder's maximum.
    #[error("a symbol of {given} bytes: not in 1..={expected_max}")]
    SymbolLength {
        /// The coder's maximum symbol size, in bytes.
        expected_max: usize,
        /// Length of the symbol given, in bytes.
        given: usize,
    },
    /// The block already has all its source symbols.
    #[error("the block is full: it has its {block_size} symbols")]
    BlockFull {
        /// Block size, in symbols.
        block_size: usize,
    },
    /// A source symbol's index is outside the block.
    #[error("symbol index {given}: not in 0..={expected_max}")]
    IndexOutOfRange {
        /// The last index of the block.
        expected_max: usize,
        /// The index given.
        given: usize,
    },
    /// A coding vector covers no symbols, or more than there are.
    #[error("a coding vector over {given} symbols: not in 1..={expected_max}")]
    CountOutOfRange {
        /// Number of symbols available.
        expected_max: usize,
        /// Number of symbols the vector is said to cover.
        given: usize,
    },
    /// The length of a coding vector does not match its number of symbols.
    #[error("a coding vector of {given} bytes: expected {expected}")]
    VectorLength {
        /// Length of a vector over that many symbols, in bytes.
        expected: usize,
        /// Length given, in bytes.
        given: usize,
    },
    /// The caller's buffer is too short for the result.
    #[error("a buffer of {given} bytes: at least {expected} are needed")]
    BufferTooShort {
        /// Length of the result, in bytes.
        expected: usize,
        /// Length given, in bytes.
        given: usize,
    },
    /// The window size is zero or too large.
    #[error("a window of {given} symbols: not in 1..={MAX_WINDOW_SIZE}")]
    WindowSize {
        /// Block or window size given.
        given: usize,
    },
    /// The encoding window is full: drop symbols first.
    #[error("the window is full: it has its {window_size} symbols")]
    WindowFull {
        /// Window size, in symbols.
        window_size: usize,
    },
    /// The requested symbols are no longer in the window, or not yet.
    #[error("{count} symbols from {first} on: the window has {expected_first}..{expected_end}")]
    OutsideWindow {
        /// First symbol of the window.
        expected_first: u64,
        /// One more than the window's last symbol.
        expected_end: u64,
        /// First symbol requested.
        first: u64,
        /// Number of symbols requested.
        count: usize,
    },
    /// Symbol ids must stay below `u64::MAX`.
    #[error("{count} symbols from {first} on: ids end before 2^64 - 1")]
    IdRange {
        /// First symbol named.
        first: u64,
        /// Number of symbols named.
        count: usize,
    },
    /// RFC 8681 defines sixteen density thresholds.
    #[error("density threshold {given}: not in 0..=15")]
    DensityThreshold {
        /// The threshold given.
        given: u8,
    },
    /// RFC 8681 expands repair keys over GF(2) and GF(2^8) only.
    #[error("a repair key over {given:?}: RFC 8681 has them over GF(2) and GF(2^8)")]
    RepairKeyField {
        /// The field of the coder.
        given: Field,
    },
}
