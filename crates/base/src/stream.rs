//! Random streams named by their purpose.
//!
//! Two runs that differ only in the protocol draw the same losses, because each loss comes from a
//! stream keyed by link and purpose, not from one generator shared by all.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The generator of every stream: ChaCha8, counter-based and stable across library versions.
pub type Stream = ChaCha8Rng;

/// The name of a random stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    /// Seed of the experiment; printed with its results.
    pub seed: u64,
    /// Which replication of the experiment.
    pub replication: u64,
    /// Which station, link or flow, as numbered by the caller.
    pub entity: u64,
    /// The purpose of the numbers, for example `"erasure"` or `"access"`.
    pub purpose: &'static str,
}

impl StreamKey {
    /// The stream of this name, from its start.
    pub fn stream(&self) -> Stream {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.replication.to_le_bytes());
        key[16..24].copy_from_slice(&self.entity.to_le_bytes());
        key[24..].copy_from_slice(&fnv1a(self.purpose.as_bytes()).to_le_bytes());
        ChaCha8Rng::from_seed(key)
    }
}

/// FNV-1a, 64 bits: enough to distinguish a few short names.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    const KEY: StreamKey = StreamKey { seed: 1, replication: 2, entity: 3, purpose: "erasure" };

    #[test]
    fn the_same_name_gives_the_same_numbers() {
        let draw = || {
            let mut stream = KEY.stream();
            [stream.next_u64(), stream.next_u64()]
        };
        assert_eq!(draw(), draw());
    }

    #[test]
    fn every_part_of_the_name_matters() {
        let first = |key: StreamKey| key.stream().next_u64();
        let others = [
            StreamKey { seed: 9, ..KEY },
            StreamKey { replication: 9, ..KEY },
            StreamKey { entity: 9, ..KEY },
            StreamKey { purpose: "access", ..KEY },
        ];
        for other in others {
            assert_ne!(first(KEY), first(other), "{other:?}");
        }
    }
}
