//! Status codes.

use std::ffi::{CStr, c_char};

use corridor_codec::{CodecError, Outcome, WindowOutcome};

/// Negative for errors, otherwise the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum CorridorStatus {
    /// Success.
    Ok = 0,
    /// The symbol was innovative: it raised the rank by one.
    Innovative = 1,
    /// The symbol is linearly dependent on those already held; it was dropped.
    Dependent = 2,
    /// The symbol covers one before the window; it was dropped.
    Stale = 3,
    /// The symbol would make the window too long; it was dropped: advance first.
    Ahead = 4,
    /// There is no such thing: no symbol decoded, nothing to recode.
    Nothing = 5,
    /// A pointer is null where that is not allowed.
    NullPointer = -1,
    /// A length exceeds that of any object.
    LengthTooLong = -2,
    /// No field has this order: it must be 2, 16 or 256.
    UnknownField = -3,
    /// The block size is 0 or more than 1024.
    BlockSize = -4,
    /// The window size is 0 or more than 1024.
    WindowSize = -5,
    /// The maximum symbol size is 0 or more than 65535.
    SymbolSizeMax = -6,
    /// A symbol or payload is empty, or longer than the coder's maximum.
    SymbolLength = -7,
    /// The block has all its symbols.
    BlockFull = -8,
    /// The window is full: advance first.
    WindowFull = -9,
    /// The block has no such symbol.
    IndexOutOfRange = -10,
    /// A coding vector covers no symbols, or more than there are.
    CountOutOfRange = -11,
    /// The length of a coding vector does not match its number of symbols.
    VectorLength = -12,
    /// The result does not fit the buffer.
    BufferTooShort = -13,
    /// The symbols are not in the window.
    OutsideWindow = -14,
    /// Symbol ids must be below 2^64 - 1.
    IdRange = -15,
    /// The density threshold is above 15.
    DensityThreshold = -16,
    /// RFC 8681 defines repair keys over the fields of order 2 and 256 only.
    RepairKeyField = -17,
    /// An error without a number in this version of the interface.
    OtherError = -98,
    /// A bug in this library. The handle can only be freed.
    Panic = -99,
}

const TEXTS: [(CorridorStatus, &CStr); 25] = [
    (CorridorStatus::Ok, c"ok"),
    (CorridorStatus::Innovative, c"innovative"),
    (CorridorStatus::Dependent, c"dependent on what was there before"),
    (CorridorStatus::Stale, c"about a symbol before the window"),
    (CorridorStatus::Ahead, c"beyond the longest window"),
    (CorridorStatus::Nothing, c"nothing of the kind"),
    (CorridorStatus::NullPointer, c"a null pointer"),
    (CorridorStatus::LengthTooLong, c"a length longer than any object"),
    (CorridorStatus::UnknownField, c"no field has this order: 2, 16 and 256 are"),
    (CorridorStatus::BlockSize, c"a block size not in 1..=1024"),
    (CorridorStatus::WindowSize, c"a window size not in 1..=1024"),
    (CorridorStatus::SymbolSizeMax, c"a longest symbol not in 1..=65535 bytes"),
    (CorridorStatus::SymbolLength, c"a symbol empty or longer than the coder takes"),
    (CorridorStatus::BlockFull, c"the block is full"),
    (CorridorStatus::WindowFull, c"the window is full"),
    (CorridorStatus::IndexOutOfRange, c"the block has no such symbol"),
    (CorridorStatus::CountOutOfRange, c"a coding vector over no symbols or too many"),
    (CorridorStatus::VectorLength, c"a coding vector not as long as its count makes it"),
    (CorridorStatus::BufferTooShort, c"the result does not fit the buffer"),
    (CorridorStatus::OutsideWindow, c"symbols that are not in the window"),
    (CorridorStatus::IdRange, c"symbol ids end before 2^64 - 1"),
    (CorridorStatus::DensityThreshold, c"a density threshold not in 0..=15"),
    (CorridorStatus::RepairKeyField, c"repair keys are over the fields of order 2 and 256 only"),
    (CorridorStatus::OtherError, c"another error"),
    (CorridorStatus::Panic, c"a defect of this library"),
];

/// A description of a status, in English, valid forever; never null.
#[unsafe(no_mangle)]
pub extern "C" fn corridor_status_text(status: i32) -> *const c_char {
    let found = TEXTS.iter().find(|(known, _)| *known as i32 == status);
    found.map_or(c"no status of this library", |(_, text)| text).as_ptr()
}

impl From<CodecError> for CorridorStatus {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::BlockSize { .. } => Self::BlockSize,
            CodecError::WindowSize { .. } => Self::WindowSize,
            CodecError::SymbolSizeMax { .. } => Self::SymbolSizeMax,
            CodecError::SymbolLength { .. } => Self::SymbolLength,
            CodecError::BlockFull { .. } => Self::BlockFull,
            CodecError::WindowFull { .. } => Self::WindowFull,
            CodecError::IndexOutOfRange { .. } => Self::IndexOutOfRange,
            CodecError::CountOutOfRange { .. } => Self::CountOutOfRange,
            CodecError::VectorLength { .. } => Self::VectorLength,
            CodecError::BufferTooShort { .. } => Self::BufferTooShort,
            CodecError::OutsideWindow { .. } => Self::OutsideWindow,
            CodecError::IdRange { .. } => Self::IdRange,
            CodecError::DensityThreshold { .. } => Self::DensityThreshold,
            CodecError::RepairKeyField { .. } => Self::RepairKeyField,
            #[allow(unreachable_patterns, reason = "the codec may learn new errors first")]
            _ => Self::OtherError,
        }
    }
}

impl From<Outcome> for CorridorStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Innovative => Self::Innovative,
            Outcome::Dependent => Self::Dependent,
        }
    }
}

impl From<WindowOutcome> for CorridorStatus {
    fn from(outcome: WindowOutcome) -> Self {
        match outcome {
            WindowOutcome::Innovative => Self::Innovative,
            WindowOutcome::Dependent => Self::Dependent,
            WindowOutcome::Stale => Self::Stale,
            WindowOutcome::Ahead => Self::Ahead,
        }
    }
}
