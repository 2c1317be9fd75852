//! How much repair a window needs: the only home of these formulas.

use crate::config::Goal;

/// What is known and what is expected of the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    /// Innovative symbols that the receiver was known to lack, not counting what is on its way.
    pub(crate) deficit: usize,
    /// Source symbols on their way.
    pub(crate) sources: usize,
    /// Repair symbols on their way.
    pub(crate) repairs: usize,
    /// Share of the frames lost, 0 to 1.
    pub(crate) loss_ratio: f64,
}

/// Deficit from which on a repair symbol is more needed than not.
const NEEDED: f64 = 0.5;
/// Standard deviations that the expected deficit is kept above zero, so that few repair symbols
/// find nothing to repair.
const RESERVE_THROUGHPUT: f64 = 0.5;
/// The same where delay matters more: rather a repair symbol too many.
const RESERVE_LOW_DELAY: f64 = -0.5;

impl Outlook {
    /// Innovative symbols that the receiver is expected to lack once everything on its way has
    /// come or is lost: the missing degrees of freedom of coded TCP's rule, in expectation.
    pub(crate) fn expected_deficit(&self) -> f64 {
        let p = self.loss_ratio;
        self.deficit as f64 + p * self.sources as f64 - (1.0 - p) * self.repairs as f64
    }

    /// Standard deviation of that deficit, losses being independent.
    fn deviation(&self) -> f64 {
        let p = self.loss_ratio;
        (p * (1.0 - p) * (self.sources + self.repairs) as f64).sqrt()
    }

    /// Whether a repair symbol is to go before the next source symbol.
    pub(crate) fn wants_repair(&self, goal: Goal) -> bool {
        let reserve = match goal {
            Goal::Throughput => RESERVE_THROUGHPUT,
            Goal::LowDelay => RESERVE_LOW_DELAY,
        };
        let threshold = (NEEDED + reserve * self.deviation()).max(NEEDED.min(self.floor()));
        self.expected_deficit() >= threshold
    }

    /// Whether a repair symbol is worth its airtime where nothing else is to be sent.
    pub(crate) fn welcomes_repair(&self) -> bool {
        self.expected_deficit() >= NEEDED
    }

    /// However much delay matters, a lossless link carries no repair symbols.
    fn floor(&self) -> f64 {
        NEEDED - self.loss_ratio
    }
}
