use crate::{Field, MAX_BLOCK_SIZE, MAX_SYMBOL_SIZE, MAX_WINDOW_SIZE};

/// What a caller can do wrong. A lost, repeated or useless symbol is no error: see
/// [`Outcome`](crate::Outcome).
///
/// After an error the coder is as it was before the call.
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
    /// A block was to be made of no symbols, or of too many.
    #[error("a block of {given} symbols: not in 1..={MAX_BLOCK_SIZE}")]
    BlockSize {
        /// Symbols asked for.
        given: usize,
    },
    /// The longest symbol was to be of no bytes, or of too many.
    #[error("symbols of up to {given} bytes: not in 1..={MAX_SYMBOL_SIZE}")]
    SymbolSizeMax {
        /// Bytes asked for.
        given: usize,
    },
    /// A symbol or payload is empty, or longer than the coder was made for.
    #[error("a symbol of {given} bytes: not in 1..={expected_max}")]
    SymbolLength {
        /// The coder's longest symbol, in bytes.
        expected_max: usize,
        /// Length of the symbol given, in bytes.
        given: usize,
    },
    /// The block has all its source symbols already.
    #[error("the block is full: it has its {block_size} symbols")]
    BlockFull {
        /// Symbols in the block.
        block_size: usize,
    },
    /// A source symbol names a place that the block does not have.
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
        /// Symbols there are.
        expected_max: usize,
        /// Symbols the vector is said to cover.
        given: usize,
    },
    /// A coding vector is not as long as its count of symbols makes it.
    #[error("a coding vector of {given} bytes: expected {expected}")]
    VectorLength {
        /// Bytes of a vector over that many symbols.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// The caller's buffer cannot take the result.
    #[error("a buffer of {given} bytes: at least {expected} are needed")]
    BufferTooShort {
        /// Bytes of the result.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// A window was to be of no symbols, or of too many.
    #[error("a window of {given} symbols: not in 1..={MAX_WINDOW_SIZE}")]
    WindowSize {
        /// Symbols asked for.
        given: usize,
    },
    /// The encoding window is full: symbols have to be let go of first.
    #[error("the window is full: it has its {window_size} symbols")]
    WindowFull {
        /// Symbols that the window can have.
        window_size: usize,
    },
    /// Symbols were asked for that are not in the window, by now or yet.
    #[error("{count} symbols from {first} on: the window has {expected_first}..{expected_end}")]
    OutsideWindow {
        /// First symbol of the window.
        expected_first: u64,
        /// One more than the window's last symbol.
        expected_end: u64,
        /// First symbol asked for.
        first: u64,
        /// Number of symbols asked for.
        count: usize,
    },
    /// Symbol ids end before `u64::MAX`.
    #[error("{count} symbols from {first} on: ids end before 2^64 - 1")]
    IdRange {
        /// First symbol named.
        first: u64,
        /// Number of symbols named.
        count: usize,
    },
    /// RFC 8681 has sixteen densities.
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
