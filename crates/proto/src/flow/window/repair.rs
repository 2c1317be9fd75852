//! How much repair a window needs: the only home of these formulas.

pub(crate) mod belief;
pub(crate) mod ceiling;
mod prefix;
pub(crate) mod probes;
#[cfg(test)]
mod tests;
mod truncated;

use core::time::Duration;

use corridor_base::Time;

use crate::config::Goal;
use crate::flow::window::repair::belief::{Stakes, Weigh};

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
/// Packets that may wait meanwhile, for each frame that was spare.
const WAITING_SPARE: f64 = 2.0;

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

    /// Whether a repair symbol is worth its airtime where nothing else is to be sent; where bytes
    /// are paid for, only if it is more needed than not.
    pub(crate) fn welcomes_repair(&self, is_paid: bool) -> bool {
        let deviations = if is_paid { 0.0 } else { DEVIATIONS_IDLE };
        self.expected_deficit() + deviations * self.deviation() >= NEEDED
    }
}

/// Holds back repair so that no more than a set share of the capacity is spent on symbols that
/// bring nothing. Losses vary: who never repairs spuriously is late. What is waited for is
/// weighed against the probability that repair is spurious, at a price; feedback counts what was
/// spurious, and the price follows, whatever the round trip and the bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserve {
    waste_ratio_goal: f64,
    weigh: Weigh,
    /// Logarithm of the price of a spurious symbol, less what follows from the loss ratio.
    price_log: f64,
    /// Frames that could have come of late, and nobody wanted to send.
    spare: f64,
    /// Most of `price_log`.
    price_log_max: f64,
}

/// Share of the capacity that may be spent on spurious repair.
const WASTE_RATIO_THROUGHPUT: f64 = 0.032;
/// The same where delay matters more.
const WASTE_RATIO_LOW_DELAY: f64 = 0.095;
/// The same where bytes are paid for.
const WASTE_RATIO_BULK: f64 = 0.004;
/// What a copy that is of use is worth, in coded symbols that are: it delivers something at once.
const COPY_WORTH: f64 = 2.25;
/// What a spurious symbol adds to the logarithm of the price.
const GAIN: f64 = 0.03;
/// Bounds of that logarithm, and the upper one where bytes are paid for.
const PRICE_LOG: core::ops::RangeInclusive<f64> = -1.0..=7.0;
const PRICE_LOG_MAX_BULK: f64 = 11.0;
/// The same before any feedback, and where bytes are paid for.
const PRICE_LOG_FIRST: f64 = 3.5;
const PRICE_LOG_FIRST_BULK: f64 = 6.0;
/// Round trips after which what was spare counts a third. Feedback about what filled it takes one;
/// and a flow must not pay for an empty beginning with spurious repair while it fills the air.
const SPARE_ROUND_TRIPS: f64 = 10.0;
/// Least price: losses that are rare enough are waited for.
const PRICE_MIN: f64 = 0.05;

/// All that came during a wait waits: its square is what all of it has waited.
fn weigh_all(round_trips: f64) -> f64 {
    round_trips * round_trips
}

impl Reserve {
    pub(crate) fn new(goal: Goal) -> Self {
        let (waste_ratio_goal, weigh) = match goal {
            Goal::Throughput => (WASTE_RATIO_THROUGHPUT, weigh_all as Weigh),
            Goal::LowDelay => (WASTE_RATIO_LOW_DELAY, f64::sqrt as Weigh),
            Goal::Bulk => (WASTE_RATIO_BULK, weigh_all as Weigh),
        };
        let (price_log, price_log_max) = match goal {
            Goal::Throughput | Goal::LowDelay => (PRICE_LOG_FIRST, *PRICE_LOG.end()),
            Goal::Bulk => (PRICE_LOG_FIRST_BULK, PRICE_LOG_MAX_BULK),
        };
        Reserve { waste_ratio_goal, weigh, price_log, price_log_max, spare: 0.0 }
    }

    /// What waits weigh: more than in proportion where the longest count, less where the usual ones
    /// do.
    pub(crate) fn weigh(&self) -> Weigh {
        self.weigh
    }

    /// Whether a repair symbol is to go before the next source symbol.
    pub(crate) fn wants_repair(&self, stakes: Stakes, loss_ratio: f64) -> bool {
        stakes.waiting > self.price(loss_ratio) * stakes.spurious
    }

    /// Whether repair is to be a copy of the first symbol that is needed and not on its way again,
    /// rather than a coded symbol. The copy is spurious as soon as what was needed is decoded,
    /// while a coded symbol may be of use for what was lost since. But one that is of use lets
    /// everything before the next needed symbol be delivered; a coded symbol nothing until nothing
    /// is lacking.
    pub(crate) fn prefers_copy(&self, stakes: Stakes, loss_ratio: f64) -> bool {
        let waiting = stakes.waiting / (1.0 - stakes.spurious).max(f64::MIN_POSITIVE);
        let price = self.price(loss_ratio);
        let value =
            |worth: f64, spurious: f64| worth * waiting * (1.0 - spurious) - price * spurious;
        value(COPY_WORTH, stakes.spurious_copy) > value(1.0, stakes.spurious)
    }

    /// Repair that is needed often is spurious often: the price at which that takes a set share of
    /// the capacity grows about as the square of the odds of a loss, so it starts from there.
    fn price(&self, loss_ratio: f64) -> f64 {
        let odds = loss_ratio / (1.0 - loss_ratio);
        (self.price_log.exp() * odds * odds).max(PRICE_MIN)
    }

    /// Feedback tells, so many round trips after the last one, that of `received` more frames,
    /// `useless` brought nothing; `spare` more could have come, and nobody wanted to send them.
    /// What is spurious then takes nothing from anybody: a flow that does not fill the air is
    /// repaired ahead of need, so that what it waits for, its own acknowledgements above all, comes
    /// evenly.
    pub(crate) fn note(&mut self, round_trips: f64, received: f64, spare: f64, useless: u16) {
        let faded = round_trips / SPARE_ROUND_TRIPS;
        // As if it had come evenly since then; a long pause is told of at once.
        let left = if faded > 0.0 { -(-faded).exp_m1() / faded } else { 1.0 };
        self.spare = self.spare * (-faded).exp() + left * spare;
        let useless = f64::from(useless);
        let free = useless.min(self.spare);
        self.spare -= free;
        let allowed = self.waste_ratio_goal * received;
        // What is out of bounds must not have to come all the way back.
        self.price_log = (self.price_log + GAIN * (useless - free - allowed))
            .clamp(*PRICE_LOG.start(), self.price_log_max);
    }
}

/// Frames that could have gone of late, and nobody wanted to send. What was spare in one round trip
/// will be in the next, so repair that would fill it goes ahead of the source symbols that wait;
/// behind them it comes too late for those that come first. A flow that begins is an example: most
/// of the air is empty yet, and slow start ends for good where the beginning of a round is late
/// (HyStart).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpareAir {
    frames: f64,
    at: Time,
}

impl SpareAir {
    pub(crate) fn new(now: Time) -> Self {
        SpareAir { frames: 0.0, at: now }
    }

    /// So many frames could have gone.
    pub(crate) fn note(&mut self, now: Time, round_trip: Duration, frames: f64) {
        self.fade(now, round_trip);
        self.frames += frames;
    }

    /// Whether a repair symbol may go ahead of so many packets that wait. Where they are many more
    /// than what was spare, they take it themselves; and it must not rather be spurious.
    pub(crate) fn welcomes_repair(
        &mut self,
        now: Time,
        round_trip: Duration,
        waiting: usize,
        stakes: Stakes,
    ) -> bool {
        if stakes.is_rather_spurious() {
            return false;
        }
        self.fade(now, round_trip);
        self.frames >= 1.0 && waiting as f64 <= WAITING_SPARE * self.frames
    }

    /// Whether there was air for a frame or more.
    pub(crate) fn is_some(&mut self, now: Time, round_trip: Duration) -> bool {
        self.fade(now, round_trip);
        self.frames >= 1.0
    }

    /// A repair symbol went into it. If it turns out to be spurious it counts as any other: that
    /// air will be spare is a guess.
    pub(crate) fn take(&mut self) {
        self.frames -= 1.0;
    }

    /// What was spare a round trip ago counts a third.
    fn fade(&mut self, now: Time, round_trip: Duration) {
        self.frames *= (-(now - self.at).div_duration_f64(round_trip)).exp();
        self.at = now;
    }
}
