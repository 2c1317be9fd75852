use crate::{MAX_BLOCK_SIZE, MAX_SYMBOL_SIZE};

/// What a caller can do wrong. A lost, repeated or useless symbol is no error: see
/// [`Outcome`](crate::Outcome).
///
/// After an error the coder is as it was before the call.
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
}
