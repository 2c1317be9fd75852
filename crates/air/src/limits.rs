//! Upper limits of configuration values.

use core::time::Duration;

/// Most stations on one medium.
pub const MAX_STATIONS: usize = 1024;

/// Longest queue of a station, in frames.
pub const MAX_QUEUE_FRAMES: usize = 65_536;

/// Longest overhead of a frame and longest propagation delay. More than a minute is probably a
/// wrong unit.
pub const MAX_SPAN: Duration = Duration::from_secs(60);

/// Most opportunities of a trace, after parsing.
pub const MAX_OPPORTUNITIES: usize = 1 << 22;

/// Longest trace in milliseconds: a day.
pub const MAX_TRACE_MS: u32 = 86_400_000;

/// Longest queue of a pipe, in packets.
pub const MAX_QUEUE_PACKETS: usize = 65_536;

/// Longest queue of a pipe, in bytes.
pub const MAX_QUEUE_BYTES: u64 = 1 << 32;

/// Largest token bucket, bytes.
pub const MAX_BURST_BYTES: u64 = 1 << 32;

/// Most runs of a trace, after parsing.
pub const MAX_TRACE_RUNS: usize = 1 << 22;
