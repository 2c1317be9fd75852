//! TCP without I/O, in the variants that the papers compare.

mod segment;

pub use segment::{SACK_RANGES_MAX, SackRange, Segment};
