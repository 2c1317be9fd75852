//! Upper limits of networks in plans.

/// Most nodes of a network.
pub const NODES_MAX: usize = 10_000;
/// Most one-way links of a network.
pub const LINKS_MAX: usize = 100_000;
/// Most flows of a network.
pub const FLOWS_MAX: usize = 1_000;
/// Fastest link, bits per second.
pub const LINK_RATE_BPS_MAX: u64 = 1_000_000_000_000;
/// Longest replication of a network, simulated seconds.
pub const NETWORK_DURATION_S_MAX: f64 = 1_000_000.0;
/// Longest file of an erasure trace, bytes.
pub const TRACE_BYTES_MAX: u64 = 1 << 26;
