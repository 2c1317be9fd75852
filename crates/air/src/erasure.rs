//! Erasure processes: when a link does not carry a transmission.

use corridor_base::Stream;
use corridor_base::rand::Rng;

/// Bits of a draw that are compared with a ratio: as many as a float's mantissa holds.
const DRAW_BITS: u32 = 53;

/// Decides, transmission by transmission, what a link loses. The state is one link's own.
#[derive(Clone, Debug)]
pub(crate) enum Erasure {
    /// Every transmission is lost with the same probability, independently.
    Bernoulli {
        /// Lost if a draw of [`DRAW_BITS`] bits is below this.
        threshold: u64,
    },
}

impl Erasure {
    /// Independent losses with probability `ratio`, 0 to 1.
    pub(crate) fn bernoulli(ratio: f64) -> Self {
        // Scaling by a power of two is exact, so 0 never and 1 always loses.
        let threshold = (ratio * (1_u64 << DRAW_BITS) as f64).ceil() as u64;
        Erasure::Bernoulli { threshold }
    }

    /// Whether the link loses its next transmission.
    ///
    /// Takes one number from `stream` for each transmission whatever the ratio, so that runs with
    /// different ratios are paired too: a lower ratio loses a subset.
    pub(crate) fn draw(&mut self, stream: &mut Stream) -> bool {
        match self {
            Erasure::Bernoulli { threshold } => stream.next_u64() >> (64 - DRAW_BITS) < *threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::StreamKey;

    fn sequence(ratio: f64) -> Vec<bool> {
        let mut stream =
            StreamKey { seed: 1, replication: 0, entity: 0, purpose: "erasure" }.stream();
        let mut erasure = Erasure::bernoulli(ratio);
        (0..10_000).map(|_| erasure.draw(&mut stream)).collect()
    }

    #[test]
    fn zero_never_and_one_always_loses() {
        assert!(sequence(0.0).iter().all(|lost| !lost));
        assert!(sequence(1.0).iter().all(|&lost| lost));
    }

    #[test]
    fn a_lower_ratio_loses_a_subset() {
        let (low, high) = (sequence(0.2), sequence(0.4));
        assert!(low.iter().zip(&high).all(|(low, high)| high >= low));
    }

    #[test]
    fn the_threshold_is_exact() {
        for (ratio, expected) in [(0.5, 1 << 52), (0.25, 1 << 51), (f64::MIN_POSITIVE, 1)] {
            let Erasure::Bernoulli { threshold } = Erasure::bernoulli(ratio);
            assert_eq!(threshold, expected, "ratio {ratio}");
        }
    }
}
