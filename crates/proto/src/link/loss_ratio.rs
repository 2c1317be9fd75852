//! Link estimation: how many frames of a neighbour get lost, counted from gaps in its counters.

/// Frames over which an estimate forgets; its standard error at a loss of 10 % is then about 1 %.
const MEMORY_FRAMES: f64 = 1024.0;
/// Frames after which a batch of counts is folded into the estimate.
const BATCH_FRAMES: u32 = 32;
/// Most frames that one batch counts for.
const BATCH_FRAMES_MAX: f64 = 128.0;
/// A link is taken for lossless with the weight of so many frames, until it shows otherwise.
const PRIOR_FRAMES: f64 = 8.0;

/// Erasure ratio of the link from one sender, for one session's counters.
#[derive(Clone, Debug)]
pub(crate) struct LossEstimator {
    highest: Option<u32>,
    batch_expected: u32,
    batch_received: u32,
    expected: f64,
    received: f64,
}

impl LossEstimator {
    pub(crate) fn new() -> Self {
        LossEstimator {
            highest: None,
            batch_expected: 0,
            batch_received: 0,
            expected: PRIOR_FRAMES,
            received: PRIOR_FRAMES,
        }
    }

    /// The sender starts counting anew; what was learned about the link stays.
    pub(crate) fn restart_counting(&mut self) {
        self.highest = None;
    }

    /// Takes note of a frame heard for the first time. A frame that comes late counts as received
    /// in the batch it comes in, so that reordering cancels out.
    #[cfg(test)]
    fn note(&mut self, counter: u32) {
        self.note_behind(counter, 0);
    }

    /// The same of a frame just before which so many were sent that do not count if they were
    /// lost: probes of the path's MTU, which may have been too long (RFC 8899, Section 3, item 7).
    pub(crate) fn note_behind(&mut self, counter: u32, probes: u8) {
        match self.highest {
            None => {
                self.highest = Some(counter);
                return;
            }
            Some(highest) if counter > highest => {
                let missing = counter - highest - 1;
                let counted = missing - missing.min(u32::from(probes));
                self.batch_expected = self.batch_expected.saturating_add(counted + 1);
                self.highest = Some(counter);
            }
            Some(_) => {}
        }
        self.batch_received += 1;
        if self.batch_expected >= BATCH_FRAMES {
            self.fold();
        }
    }

    fn fold(&mut self) {
        // One long gap is an outage, not so many losses: it weighs no more than a batch may.
        let expected = f64::from(self.batch_expected).min(BATCH_FRAMES_MAX);
        let received = f64::from(self.batch_received) * expected / f64::from(self.batch_expected);
        let keep = 1.0 - expected / MEMORY_FRAMES;
        self.expected = self.expected * keep + expected;
        self.received = self.received * keep + received;
        (self.batch_expected, self.batch_received) = (0, 0);
    }

    /// Newest counter heard.
    pub(crate) fn highest(&self) -> Option<u32> {
        self.highest
    }

    /// The erasure ratio, 0 to 1. The batch under way counts as well: at the beginning there is
    /// nothing else.
    pub(crate) fn ratio(&self) -> f64 {
        let expected = f64::from(self.batch_expected).min(BATCH_FRAMES_MAX);
        let received = f64::from(self.batch_received).min(expected);
        (1.0 - (self.received + received) / (self.expected + expected)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::StreamKey;
    use corridor_base::rand::Rng;

    #[test]
    fn estimates_settle_at_the_true_ratio() {
        let mut stream = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "link" }.stream();
        for percent in [0, 5, 10, 30, 50, 90] {
            let mut estimator = LossEstimator::new();
            for counter in 0..20_000 {
                if stream.next_u32() % 100 >= percent {
                    estimator.note(counter);
                }
            }
            let error = estimator.ratio() - f64::from(percent) / 100.0;
            assert!(error.abs() < 0.04, "{percent} %: off by {error}");
        }
    }

    #[test]
    fn reordering_is_not_loss() {
        let mut estimator = LossEstimator::new();
        for pair in 0..2_000u32 {
            estimator.note(2 * pair + 1);
            estimator.note(2 * pair);
        }
        assert!(estimator.ratio() < 0.01, "{}", estimator.ratio());
    }

    #[test]
    fn an_outage_is_forgotten_soon() {
        let mut estimator = LossEstimator::new();
        (0..2_000).for_each(|counter| estimator.note(counter));
        (12_000..12_500).for_each(|counter| estimator.note(counter));
        assert!(estimator.ratio() < 0.1, "{}", estimator.ratio());
    }

    #[test]
    fn probes_that_were_too_long_are_no_losses() {
        let mut estimator = LossEstimator::new();
        for counter in (0..4_000).step_by(4) {
            estimator.note_behind(counter + 3, 3);
        }
        assert!(estimator.ratio() < 0.01, "{}", estimator.ratio());
        // What was lost besides counts.
        for counter in (4_000..8_000).step_by(4) {
            estimator.note_behind(counter + 3, 2);
        }
        assert!((0.4..0.6).contains(&estimator.ratio()), "{}", estimator.ratio());
    }

    #[test]
    fn a_new_session_is_not_a_gap() {
        let mut estimator = LossEstimator::new();
        (0..100).for_each(|counter| estimator.note(counter));
        estimator.restart_counting();
        (5_000..5_100).for_each(|counter| estimator.note(counter));
        assert!(estimator.ratio() < 0.01);
    }
}
