//! How long bursts of losses are, in frames.

/// Bursts that are remembered, about.
const MEMORY: f64 = 30.0;
/// Mean length of bursts that is not told from losses one by one, where few are lost.
const NOISE: f64 = 1.5;

/// The mean length of runs of source symbols that got lost.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    lost: f64,
    runs: f64,
}

impl Bursts {
    /// A source symbol got lost; `goes_on`: like the one before it.
    pub(crate) fn note(&mut self, goes_on: bool) {
        if !goes_on {
            let kept = 1.0 - 1.0 / MEMORY;
            self.lost *= kept;
            self.runs = kept * self.runs + 1.0;
        }
        self.lost += 1.0;
    }

    /// Frames by which bursts are longer than losses that have nothing to do with each other would
    /// make them, at a loss ratio below 1; zero where they are hardly longer.
    pub(crate) fn excess(&self, loss_ratio: f64) -> f64 {
        let mean = if self.runs > 0.0 { self.lost / self.runs } else { 0.0 };
        (mean - NOISE / (1.0 - loss_ratio)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::StreamKey;
    use corridor_base::rand::Rng;

    /// Losses of 1,000 bursts, each frame after a lost one being lost with probability `stays`.
    fn excess(stays: f64, loss_ratio: f64) -> f64 {
        let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "bursts" };
        let (mut random, mut bursts) = (key.stream(), Bursts::default());
        for _ in 0..1_000 {
            bursts.note(false);
            while f64::from(random.next_u32()) < stays * f64::from(u32::MAX) {
                bursts.note(true);
            }
        }
        bursts.excess(loss_ratio)
    }

    #[test]
    fn losses_one_by_one_are_no_bursts() {
        assert_eq!(Bursts::default().excess(0.0), 0.0);
        for loss_ratio in [0.0, 0.1, 0.3, 0.5] {
            assert_eq!(excess(loss_ratio, loss_ratio), 0.0, "at a loss ratio of {loss_ratio}");
        }
    }

    #[test]
    fn bursts_count_by_their_mean_length() {
        let excess = excess(0.95, 0.1);
        assert!((12.0..28.0).contains(&excess), "{excess}");
    }
}
