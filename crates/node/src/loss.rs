//! Synthetic losses at reception, to test a lossy link on the bench: the frame was sent, and this
//! station ignores it.

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey};
use corridor_proto::StationId;

use crate::config::SyntheticLossConfig;

/// Decides about each frame, with a random stream per link.
pub(crate) struct SyntheticLoss {
    links: Vec<(StationId, f64, Stream)>,
}

impl SyntheticLoss {
    /// Losses at the station `at`.
    pub(crate) fn new(config: &SyntheticLossConfig, at: StationId) -> Self {
        let link = |&(from, ratio): &(StationId, f64)| {
            let entity = u64::from(from.0) << 8 | u64::from(at.0);
            let key =
                StreamKey { seed: config.seed, replication: 0, entity, purpose: "synthetic-loss" };
            (from, ratio, key.stream())
        };
        SyntheticLoss { links: config.links.iter().map(link).collect() }
    }

    /// Whether there are no losses at all.
    pub(crate) fn is_idle(&self) -> bool {
        self.links.is_empty()
    }

    /// Whether this frame of that station is lost.
    pub(crate) fn takes(&mut self, from: StationId) -> bool {
        let Some((_, ratio, stream)) = self.links.iter_mut().find(|(id, ..)| *id == from) else {
            return false;
        };
        // 53 bits, as many as a float has: uniform in [0, 1).
        let draw = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        draw < *ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(ratio: f64, seed: u64) -> Vec<bool> {
        let config = SyntheticLossConfig { seed, links: vec![(StationId(2), ratio)] };
        let mut loss = SyntheticLoss::new(&config, StationId(1));
        assert!(!loss.takes(StationId(3)), "no link was named");
        (0..10_000).map(|_| loss.takes(StationId(2))).collect()
    }

    #[test]
    fn the_share_is_the_one_asked_for() {
        let count = |ratio| losses(ratio, 1).into_iter().filter(|&lost| lost).count();
        assert_eq!((count(0.0), count(1.0)), (0, 10_000));
        assert!((2_800..3_200).contains(&count(0.3)), "{}", count(0.3));
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(losses(0.5, 7), losses(0.5, 7));
        assert_ne!(losses(0.5, 7), losses(0.5, 8));
    }
}
