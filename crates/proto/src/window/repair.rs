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

/// Expected deficit from which on a repair symbol is more needed than not.
const NEEDED: f64 = 0.5;
/// Standard deviations of the deficit that are insured against with air that nobody wants.
const DEVIATIONS_IDLE: f64 = 2.0;
/// Known deficit, less what repair on its way will cover, from which on the oldest missing symbol
/// is sent again rather than a coded one: it is of use by itself.
const UNCOVERED: f64 = 0.3;
/// Source symbols on their way of which losses are half foreseen, half waited for.
const FORESIGHT_FROM: f64 = 15.0;

impl Outlook {
    /// Innovative symbols that the receiver is expected to lack once everything on its way has
    /// come or is lost: the missing degrees of freedom of coded TCP's rule, in expectation.
    pub(crate) fn expected_deficit(&self) -> f64 {
        self.uncovered() + self.loss_ratio * self.sources as f64
    }

    /// The known part of that: what is known to be lacking, less what repair on its way will bring.
    fn uncovered(&self) -> f64 {
        self.deficit as f64 - (1.0 - self.loss_ratio) * self.repairs as f64
    }

    /// Standard deviation of the deficit, losses being independent.
    pub(crate) fn deviation(&self) -> f64 {
        let p = self.loss_ratio;
        (p * (1.0 - p) * (self.sources + self.repairs) as f64).sqrt()
    }

    /// The expected deficit with losses that nothing tells of yet counted the less, the sooner
    /// feedback will tell: where few frames are on their way, whoever waits for it sends a copy
    /// that is never in vain, and is hardly later than a coded symbol sent on suspicion.
    fn foreseen_deficit(&self) -> f64 {
        let ratio = self.sources as f64 / FORESIGHT_FROM;
        let weight = ratio * ratio / (1.0 + ratio * ratio);
        self.uncovered() + weight * self.loss_ratio * self.sources as f64
    }

    /// Whether a repair symbol is worth its airtime where nothing else is to be sent.
    pub(crate) fn welcomes_repair(&self) -> bool {
        self.expected_deficit() + DEVIATIONS_IDLE * self.deviation() >= NEEDED
    }

    /// Whether a copy of a missing symbol that has none on its way serves better than a coded
    /// symbol; it need not wait for anything then.
    pub(crate) fn prefers_copy(&self) -> bool {
        self.uncovered() >= UNCOVERED
    }
}

/// Holds back repair so that no more than a set share of the capacity is spent on symbols that
/// bring nothing. Losses vary: whoever never repairs in vain repairs late. Feedback counts what
/// was in vain, and the reserve follows, whatever the round trip and the bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserve {
    waste_ratio_goal: f64,
    /// Expected deficit beyond [`NEEDED`] that is left to chance.
    symbols: f64,
}

/// Share of the capacity that may be spent in vain.
const WASTE_RATIO_THROUGHPUT: f64 = 0.032;
/// The same where delay matters more.
const WASTE_RATIO_LOW_DELAY: f64 = 0.09;
/// Symbols by which the reserve follows a symbol in vain.
const GAIN: f64 = 0.03;
/// Bounds of the reserve, in standard deviations of the deficit, and symbols added to the upper.
const DEVIATIONS_MIN: f64 = -2.0;
const DEVIATIONS_MAX: f64 = 2.0;
const SYMBOLS_MAX: f64 = 1.0;
/// Round trips after which a symbol counts as late.
const AGE_EXPECTED: f64 = 1.5;
/// Standard deviations of the deficit that the reserve is lowered by for each round trip more, and
/// at most.
const DEVIATIONS_PER_AGE: f64 = 0.3;
const DEVIATIONS_URGENT_MAX: f64 = 3.0;

impl Reserve {
    pub(crate) fn new(goal: Goal) -> Self {
        let waste_ratio_goal = match goal {
            Goal::Throughput => WASTE_RATIO_THROUGHPUT,
            Goal::LowDelay => WASTE_RATIO_LOW_DELAY,
        };
        Reserve { waste_ratio_goal, symbols: 0.0 }
    }

    /// Whether a repair symbol is to go before the next source symbol. `age`: how long the oldest
    /// symbol has waited for its acknowledgement, in round trips; the longer, the less is left to
    /// chance.
    pub(crate) fn wants_repair(&self, outlook: &Outlook, age: f64) -> bool {
        let late = (age - AGE_EXPECTED).max(0.0);
        let urgency = (DEVIATIONS_PER_AGE * late).min(DEVIATIONS_URGENT_MAX);
        let reserve = self.bounded(outlook) - urgency * outlook.deviation();
        outlook.foreseen_deficit() >= NEEDED + reserve
    }

    fn bounded(&self, outlook: &Outlook) -> f64 {
        let deviation = outlook.deviation();
        let most = SYMBOLS_MAX + DEVIATIONS_MAX * deviation;
        self.symbols.clamp(DEVIATIONS_MIN * deviation, most)
    }

    /// Feedback tells that of `received` more frames, `useless` brought nothing; `spare` more could
    /// have come, and nobody wanted to send them. What is in vain then takes nothing from anybody:
    /// a flow that does not fill the air is repaired ahead of need, so that what it waits for, its
    /// own acknowledgements above all, comes evenly.
    pub(crate) fn note(&mut self, received: f64, spare: f64, useless: u16, outlook: &Outlook) {
        let allowed = self.waste_ratio_goal * received + spare;
        self.symbols += GAIN * (f64::from(useless) - allowed);
        // What is out of bounds must not have to come all the way back.
        self.symbols = self.bounded(outlook);
    }
}
