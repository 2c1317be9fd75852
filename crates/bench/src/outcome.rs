//! What runs of the simulator tell benches.

use std::time::Duration;

/// What a simulation did, as it tells itself.
pub struct Outcome {
    /// Processor time of what is measured.
    pub cpu: Duration,
    /// Of what is measured.
    pub simulated: Duration,
    /// Likewise.
    pub events: u64,
    /// Likewise.
    pub packet_hops: u64,
    /// Of all flows.
    pub payload_bytes: u64,
    /// Number of flows.
    pub flows: usize,
    /// Live when it was over.
    pub memory_bytes: usize,
}
