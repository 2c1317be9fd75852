//! Results of simulator runs for benches.

use std::time::Duration;

/// Counters of a simulation.
pub struct Outcome {
    /// Processor time of the measured interval.
    pub cpu: Duration,
    /// Simulated time of the measured interval.
    pub simulated: Duration,
    /// In the measured interval.
    pub events: u64,
    /// In the measured interval.
    pub packet_hops: u64,
    /// Of all flows.
    pub payload_bytes: u64,
    /// Number of flows.
    pub flows: usize,
    /// Live memory at the end, bytes.
    pub memory_bytes: usize,
}
