//! What configurations of radios may ask for at most.

/// Most radios of one medium.
pub const MAX_RADIOS: usize = 1 << 20;

/// Most links of one medium, each direction by itself: more are a wrong unit or a wrong threshold.
pub const MAX_LINKS: usize = 1 << 20;

/// Least and greatest power, loss or threshold that is taken for one, in dB or dBm: beyond it is a
/// wrong unit, and powers in milliwatts stay normal numbers.
pub const MAX_DB: f64 = 300.0;
