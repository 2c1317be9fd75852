//! How much repair a window needs: the only place with these formulas.

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
use crate::flow::window::repair::belief::{Late, Stakes, Weigh};
use crate::link::sent::What;

/// What is known, and what is expected, about the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    /// Innovative symbols that the receiver was known to lack, not counting those in flight.
    pub(crate) deficit: usize,
    /// Source symbols in flight.
    pub(crate) sources: usize,
    /// Repair symbols in flight.
    pub(crate) repairs: usize,
    /// What overtaken frames change about the deficit.
    pub(crate) late: ExpectedLate,
    /// Loss ratio of frames, 0 to 1.
    pub(crate) loss_ratio: f64,
}

/// What overtaken frames that may still arrive change about the deficit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExpectedLate {
    /// Its expected change: what is not lost of the symbols counted as missing, and of repair,
    /// lowers it; what is lost of symbols not counted raises it.
    mean: f64,
    variance: f64,
}

impl ExpectedLate {
    /// Adds a frame; `lacks`: the receiver reported its symbol as missing.
    pub(crate) fn add(&mut self, Late { what, loss_ratio, .. }: Late, lacks: bool) {
        let counts = lacks || !matches!(what, What::Source(_));
        self.mean += if counts { loss_ratio - 1.0 } else { loss_ratio };
        self.variance += loss_ratio * (1.0 - loss_ratio);
    }
}

/// Expected deficit from which a repair symbol is more likely needed than not.
const NEEDED: f64 = 0.5;
/// Standard deviations of the deficit that idle air is used to insure against.
const DEVIATIONS_IDLE: f64 = 2.0;
/// Packets that may wait meanwhile, per frame that was spare.
const WAITING_SPARE: f64 = 2.0;

impl Outlook {
    /// Innovative symbols that the receiver is expected to lack once everything in flight has
    /// arrived or is lost: the expected value of the missing degrees of freedom in coded TCP's
    /// rule.
    pub(crate) fn expected_deficit(&self) -> f64 {
        self.uncovered() + self.late.mean + self.loss_ratio * self.sources as f64
    }

    /// The known part of it: what is known to be missing, less what repair in flight will supply.
    fn uncovered(&self) -> f64 {
        self.deficit as f64 - (1.0 - self.loss_ratio) * self.repairs as f64
    }

    /// Standard deviation of the deficit, for independent losses.
    pub(crate) fn deviation(&self) -> f64 {
        let p = self.loss_ratio;
        (p * (1.0 - p) * (self.sources + self.repairs) as f64 + self.late.variance).sqrt()
    }

    /// Whether a repair symbol is worth its airtime when there is nothing else to send. `is_paid`:
    /// bytes cost money, so it has to be more likely needed than not.
    pub(crate) fn welcomes_repair(&self, is_paid: bool) -> bool {
        let deviations = if is_paid { 0.0 } else { DEVIATIONS_IDLE };
        self.expected_deficit() + deviations * self.deviation() >= NEEDED
    }
}

/// Holds back repair so that spurious repair takes no more than a set share of the capacity. Losses
/// vary, so a sender that never repairs spuriously repairs late. The receiver's waiting is weighed
/// against the probability that repair is spurious, times a price. Feedback counts spurious repair,
/// and the price follows it, so it adapts to any round-trip time and burst length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reserve {
    waste_ratio_goal: f64,
    weigh: Weigh,
    /// Logarithm of the price of a spurious symbol, without the part that depends on the loss
    /// ratio.
    price_log: f64,
    /// Recent frames that could have been sent although nobody needed them.
    spare: f64,
    /// Upper bound of `price_log`.
    price_log_max: f64,
}

/// Share of the capacity that spurious repair may take.
const WASTE_RATIO_THROUGHPUT: f64 = 0.032;
/// The same where delay matters more.
const WASTE_RATIO_LOW_DELAY: f64 = 0.095;
/// The same where bytes cost money.
const WASTE_RATIO_BULK: f64 = 0.004;
/// Value of a useful copy, in useful coded symbols: a copy lets something be delivered at once.
const COPY_WORTH: f64 = 2.25;
/// How much a spurious symbol adds to the logarithm of the price.
const GAIN: f64 = 0.03;
/// Bounds of that logarithm, and its upper bound where bytes cost money.
const PRICE_LOG: core::ops::RangeInclusive<f64> = -1.0..=7.0;
const PRICE_LOG_MAX_BULK: f64 = 11.0;
/// Its value before any feedback, and the same where bytes cost money.
const PRICE_LOG_FIRST: f64 = 3.5;
const PRICE_LOG_FIRST_BULK: f64 = 6.0;
/// Time constant in round trips for which spare frames count. Feedback about the repair that used
/// them takes one; but a flow that fills the air must not be charged with spurious repair because
/// the air was idle when it began.
const SPARE_ROUND_TRIPS: f64 = 10.0;
/// Lowest price: rare losses wait for feedback.
const PRICE_MIN: f64 = 0.05;

impl Reserve {
    pub(crate) fn new(goal: Goal) -> Self {
        let (waste_ratio_goal, weigh) = match goal {
            Goal::Throughput => (WASTE_RATIO_THROUGHPUT, Weigh::Squared),
            Goal::LowDelay => (WASTE_RATIO_LOW_DELAY, Weigh::Root),
            Goal::Bulk => (WASTE_RATIO_BULK, Weigh::Squared),
        };
        let (price_log, price_log_max) = match goal {
            Goal::Throughput | Goal::LowDelay => (PRICE_LOG_FIRST, *PRICE_LOG.end()),
            Goal::Bulk => (PRICE_LOG_FIRST_BULK, PRICE_LOG_MAX_BULK),
        };
        Reserve { waste_ratio_goal, weigh, price_log, price_log_max, spare: 0.0 }
    }

    /// How waits are weighed.
    pub(crate) fn weigh(&self) -> Weigh {
        self.weigh
    }

    /// Whether a repair symbol should be sent before the next source symbol.
    pub(crate) fn wants_repair(&self, stakes: Stakes, loss_ratio: f64) -> bool {
        let is_worth = |price| stakes.waiting > price * stakes.spurious;
        // The price itself takes longer, and most frames do without.
        is_worth(PRICE_MIN) && is_worth(self.price(loss_ratio))
    }

    /// Whether repair should be a copy of the first needed symbol that is not in flight again,
    /// rather than a coded symbol. The copy is spurious as soon as the needed symbol has been
    /// decoded, while a coded symbol may also repair later losses. But a useful copy lets
    /// everything before the next needed symbol be delivered; a coded symbol lets nothing be
    /// delivered until nothing is missing.
    pub(crate) fn prefers_copy(&self, stakes: Stakes, loss_ratio: f64) -> bool {
        let waiting = stakes.waiting / (1.0 - stakes.spurious).max(f64::MIN_POSITIVE);
        let price = self.price(loss_ratio);
        let value =
            |worth: f64, spurious: f64| worth * waiting * (1.0 - spurious) - price * spurious;
        value(COPY_WORTH, stakes.spurious_copy) > value(1.0, stakes.spurious)
    }

    /// The price of a spurious symbol. Where repair is needed often it is spurious often, so the
    /// price at which it takes a set share of the capacity grows about as the square of the odds of
    /// a loss. The adaptation starts from there.
    fn price(&self, loss_ratio: f64) -> f64 {
        let odds = loss_ratio / (1.0 - loss_ratio);
        (self.price_log.exp() * odds * odds).max(PRICE_MIN)
    }

    /// Adapts the price to feedback that comes `round_trips` after the last: of `received` more
    /// frames, `useless` were not innovative; `spare` more could have been sent, and nobody needed
    /// them. Spurious repair in spare frames costs nobody anything: a flow that does not fill the
    /// air is repaired ahead of need, so that what it waits for, above all its own acknowledgments,
    /// comes evenly.
    pub(crate) fn note(&mut self, round_trips: f64, received: f64, spare: f64, useless: u16) {
        let faded = round_trips / SPARE_ROUND_TRIPS;
        // As if the spare frames were spread evenly over the interval.
        let left = if faded > 0.0 { -(-faded).exp_m1() / faded } else { 1.0 };
        self.spare = self.spare * (-faded).exp() + left * spare;
        let useless = f64::from(useless);
        let free = useless.min(self.spare);
        self.spare -= free;
        let allowed = self.waste_ratio_goal * received;
        // Clamped, so that the price reacts at once when the tendency turns.
        self.price_log = (self.price_log + GAIN * (useless - free - allowed))
            .clamp(*PRICE_LOG.start(), self.price_log_max);
    }
}

/// Frames that could have been sent recently although nobody needed them. What is spare in one
/// round trip will be so in the next. Repair that would fill this air is therefore sent ahead of
/// the source symbols that wait; behind them it would come too late for the first of them. A flow's
/// beginning is an example: most of the air is still idle, and a delay at the beginning of a round
/// ends slow start for good (HyStart).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpareAir {
    frames: f64,
    at: Time,
}

impl SpareAir {
    pub(crate) fn new(now: Time) -> Self {
        SpareAir { frames: 0.0, at: now }
    }

    /// Adds frames that could have been sent.
    pub(crate) fn note(&mut self, now: Time, round_trip: Duration, frames: f64) {
        self.fade(now, round_trip);
        self.frames += frames;
    }

    /// Whether a repair symbol may be sent ahead of `waiting` packets. Not if these are many more
    /// than the spare frames, since they will fill the air themselves, and not if it is rather
    /// spurious.
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

    /// Whether at least one frame is spare.
    pub(crate) fn is_some(&mut self, now: Time, round_trip: Duration) -> bool {
        self.fade(now, round_trip);
        self.frames >= 1.0
    }

    /// Takes one spare frame for a repair symbol. If that turns out to be spurious it counts like
    /// any other: that air will be spare is only a guess.
    pub(crate) fn take(&mut self) {
        self.frames -= 1.0;
    }

    /// Decays the count, by a factor of e per round trip.
    fn fade(&mut self, now: Time, round_trip: Duration) {
        self.frames *= (-(now - self.at).div_duration_f64(round_trip)).exp();
        self.at = now;
    }
}
