//! Upper limits of radio configurations.

/// Most radios of one medium.
pub const MAX_RADIOS: usize = 1 << 20;

/// Most links of one medium, counting each direction: more indicate a wrong unit or threshold.
pub const MAX_LINKS: usize = 1 << 20;

/// Largest absolute value of a power, loss or threshold, in dB or dBm: beyond it the unit is
/// probably wrong, and within it powers in milliwatts stay normal numbers.
pub const MAX_DB: f64 = 300.0;
