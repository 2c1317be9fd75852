//! Random paths from a seed: log-uniform in rate, round-trip time, loss and buffer.

use core::time::Duration;

use corridor_air::PipeConfig;
use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey};
use serde::{Deserialize, Serialize};

/// Size of a full packet, bytes.
pub const PACKET_BYTES: f64 = 1_500.0;
const RATE_BPS: (f64, f64) = (1e6, 50e6);
const RTT_MS: (f64, f64) = (4.0, 800.0);
/// Loss ratios of lossy paths: every fourth path loses nothing.
const LOSS: (f64, f64) = (0.001, 0.2);
const BUFFER_BDP: (f64, f64) = (0.25, 4.0);
const BUFFER_PACKETS_MIN: usize = 4;

/// A path, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Rate of either link, bits per second.
    pub rate_bps: u64,
    /// Round-trip time without queueing, milliseconds.
    pub rtt_ms: f64,
    /// Packet loss ratio of either link, independent losses.
    pub loss_ratio: f64,
    /// Queue limit before either link, packets.
    pub queue_packets: usize,
}

impl Path {
    /// Path number `index` of a seed.
    pub fn draw(seed: u64, index: u64) -> Path {
        let key = StreamKey { seed, replication: 0, entity: index, purpose: "path" };
        let mut stream = key.stream();
        let rate_bps = log_uniform(&mut stream, RATE_BPS).round();
        let rtt_ms = (1e3 * log_uniform(&mut stream, RTT_MS)).round() / 1e3;
        let loss = (1e5 * log_uniform(&mut stream, LOSS)).round() / 1e5;
        let bdp_packets = rate_bps * rtt_ms / 1e3 / 8.0 / PACKET_BYTES;
        let packets = log_uniform(&mut stream, BUFFER_BDP) * bdp_packets;
        Path {
            rate_bps: rate_bps as u64,
            rtt_ms,
            loss_ratio: if index.is_multiple_of(4) { 0.0 } else { loss },
            queue_packets: (packets.round() as usize).max(BUFFER_PACKETS_MIN),
        }
    }

    /// One of its links.
    pub fn pipe(&self) -> PipeConfig {
        let delay = Duration::from_nanos((self.rtt_ms * 5e5).round() as u64);
        PipeConfig::new(self.rate_bps, delay, self.queue_packets, self.loss_ratio)
    }

    /// A short description.
    pub fn title(&self) -> String {
        let Path { rate_bps, rtt_ms, loss_ratio, queue_packets } = self;
        let (rate, loss) = (*rate_bps as f64 / 1e6, loss_ratio * 100.0);
        format!("{rate:.2} Mbit/s, {rtt_ms:.1} ms, {loss:.2} %, {queue_packets} packets")
    }
}

fn log_uniform(stream: &mut Stream, (low, high): (f64, f64)) -> f64 {
    let uniform = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    low * (uniform * (high / low).ln()).exp()
}
