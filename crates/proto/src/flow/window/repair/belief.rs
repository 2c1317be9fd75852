//! What the receiver is believed to lack when the next frame reaches it.
//!
//! Feedback tells how many innovative symbols it lacked; each frame sent since was lost or not.
//! Repair that comes when nothing is lacking brings nothing, so the expected deficit is not enough:
//! the whole distribution is carried along, from frame to frame, and with each deficit the time
//! since which the receiver has waited for it.

use core::time::Duration;

use corridor_base::Time;

use super::prefix::Prefix;
use super::truncated::{NEGLIGIBLE, trim_begin, trim_end};
use crate::link::sent::{Sent, What};

/// Steps of calculation that a frame sent, and feedback, allow for going through the frames on
/// their way again: far fewer than coding over as many symbols takes.
const STEPS: usize = 4_096;

/// Round trips that a receiver counts as having waited at least.
const WAIT_MIN: f64 = 0.1;

/// Probability of being spurious below which a repair symbol rather brings something.
const SPURIOUS_MOST: f64 = 0.5;

/// A deficit that the receiver may have.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    probability: f64,
    /// When the first symbol that it waits for was sent, in seconds from the origin, times the
    /// probability.
    since: f64,
}

impl Case {
    fn mixed(self, weight: f64, other: Case, other_weight: f64) -> Case {
        Case {
            probability: weight * self.probability + other_weight * other.probability,
            since: weight * self.since + other_weight * other.since,
        }
    }
}

/// How likely each deficit is, and how long it has lasted.
#[derive(Clone, Debug)]
pub(crate) struct Belief {
    /// Deficits from `first` on.
    cases: Vec<Case>,
    first: usize,
    /// What was needed of what feedback reported.
    prefix: Prefix,
    origin: Time,
    credit: usize,
}

/// What a wait weighs, which is given in round trips.
pub(crate) type Weigh = fn(f64) -> f64;

/// What is at stake with a repair symbol that is sent now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stakes {
    /// Mean weight of the time that the receiver will have waited, none where it lacks nothing.
    pub(crate) waiting: f64,
    /// Probability that it lacks nothing, and the repair is spurious.
    pub(crate) spurious: f64,
    /// Probability that a copy of the first symbol that was needed, and is not on its way again, is
    /// spurious: that symbol was decoded meanwhile.
    pub(crate) spurious_copy: f64,
}

impl Stakes {
    /// Whether the repair symbol would bring nothing rather than something.
    pub(crate) fn is_rather_spurious(&self) -> bool {
        self.spurious >= SPURIOUS_MOST
    }
}

impl Belief {
    pub(crate) fn new(now: Time) -> Self {
        let none = Case { probability: 1.0, since: 0.0 };
        Belief { cases: vec![none], first: 0, prefix: Prefix::new(0), origin: now, credit: 0 }
    }

    /// Begins anew: the receiver lacked so many, has waited for the oldest since then, and these
    /// frames are on their way.
    pub(crate) fn restart<'a>(
        &mut self,
        (deficit, since): (usize, Time),
        frames: impl Iterator<Item = &'a Sent>,
        loss_ratio: f64,
        now: Time,
    ) {
        self.origin = now;
        self.first = deficit;
        self.cases.clear();
        self.cases.push(Case { probability: 1.0, since: self.seconds(since) });
        self.prefix.restart(deficit);
        frames.for_each(|sent| self.add(sent, loss_ratio));
        self.credit = 0;
    }

    fn seconds(&self, at: Time) -> f64 {
        (at.as_nanos() as f64 - self.origin.as_nanos() as f64) / 1e9
    }

    /// Whether to go through so many frames on their way again, with what feedback tells now. Where
    /// there are very many, it is not done for each feedback.
    pub(crate) fn affords(&mut self, frames: usize) -> bool {
        self.credit = self.credit.saturating_add(STEPS);
        self.credit >= frames * (self.cases.len() + self.prefix.len())
    }

    /// A frame goes.
    pub(crate) fn add(&mut self, sent: &Sent, loss_ratio: f64) {
        self.credit = self.credit.saturating_add(STEPS);
        let loss_ratio = sent.loss_ratio(loss_ratio);
        match sent.what {
            What::Source(_) => {
                if self.first == 0 {
                    // A receiver that lacks nothing begins to wait with this one.
                    self.cases[0].since = self.cases[0].probability * self.seconds(sent.at);
                }
                self.prefix.add_source(loss_ratio);
                self.shift(loss_ratio);
            }
            What::Coded => {
                self.prefix.add_coded(loss_ratio);
                self.add_repair(1.0 - loss_ratio);
            }
            What::Copy => {
                let needed = 1.0 - self.prefix.decoded();
                self.prefix.add_copy(loss_ratio);
                self.add_repair((1.0 - loss_ratio) * needed);
            }
            // Whether what it is about is lost is not known, and hardly likely then.
            What::Ahead | What::Part => {}
        }
    }

    /// Repair lowers what is lacking with this probability; where nothing is, it changes nothing.
    fn add_repair(&mut self, probability: f64) {
        if self.first > 0 {
            self.first -= 1;
            return self.shift(1.0 - probability);
        }
        for at in 0..self.cases.len() {
            let more = self.cases.get(at + 1).copied().unwrap_or_default();
            let kept = if at == 0 { 1.0 } else { 1.0 - probability };
            self.cases[at] = self.cases[at].mixed(kept, more, probability);
        }
        self.trim();
    }

    /// Each deficit is one more with this probability.
    fn shift(&mut self, probability: f64) {
        self.cases.push(Case::default());
        for at in (1..self.cases.len()).rev() {
            self.cases[at] =
                self.cases[at].mixed(1.0 - probability, self.cases[at - 1], probability);
        }
        self.cases[0] = self.cases[0].mixed(1.0 - probability, Case::default(), 0.0);
        self.trim();
    }

    fn trim(&mut self) {
        trim_end(&mut self.cases, |case| case.probability);
        self.first += trim_begin(&mut self.cases, |case| case.probability);
    }

    /// What is at stake now.
    pub(crate) fn stakes(&self, now: Time, round_trip: Duration, weigh: Weigh) -> Stakes {
        let now = self.seconds(now);
        let lacking = usize::from(self.first == 0);
        let likely = |case: &&Case| case.probability >= NEGLIGIBLE;
        let waiting = self.cases.iter().skip(lacking).filter(likely).map(|case| {
            let waited = (now - case.since / case.probability) / round_trip.as_secs_f64();
            case.probability * weigh(waited.max(WAIT_MIN))
        });
        let spurious = if self.first == 0 { self.cases[0].probability } else { 0.0 };
        Stakes { waiting: waiting.sum(), spurious, spurious_copy: self.prefix.decoded() }
    }
}
