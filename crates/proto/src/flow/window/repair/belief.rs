//! What the receiver is believed to lack when the next frame reaches it.
//!
//! Feedback reports how many innovative symbols it lacked; each frame sent since was lost or not.
//! Repair that arrives when nothing is lacking is spurious, so the expected deficit is not enough:
//! this keeps the whole distribution from frame to frame, and for each deficit the time since which
//! the receiver has waited.

use core::time::Duration;

use corridor_base::Time;

use super::prefix::Prefix;
use super::truncated::{NEGLIGIBLE, trim_begin, trim_end};
use crate::link::sent::{Sent, What};

/// Computing steps that each frame sent, and each feedback, allows for replaying the frames in
/// flight: far fewer than coding over as many symbols takes.
const STEPS: usize = 4_096;

/// Shortest wait of a receiver that lacks something, in round trips.
const WAIT_MIN: f64 = 0.1;

/// Probability of being spurious from which a repair symbol counts as rather spurious.
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

/// How likely each deficit is, and how long the receiver has waited with it.
#[derive(Clone, Debug)]
pub(crate) struct Belief {
    /// Deficits from `first` on.
    cases: Vec<Case>,
    first: usize,
    /// Progress with the symbols that the last feedback reported as needed.
    prefix: Prefix,
    origin: Time,
    credit: usize,
}

/// A frame that others have overtaken and that may still arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub(crate) what: What,
    pub(crate) at: Time,
    /// Probability that it no longer contributes anything.
    pub(crate) loss_ratio: f64,
}

/// How waits are weighed, in round trips: more than proportionally where the longest matter, less
/// where the usual ones do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Weigh {
    /// Everything that arrives during a wait waits too.
    Squared,
    Root,
}

/// The stakes of a repair symbol that is sent now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stakes {
    /// Mean weight of the receiver's wait when it arrives, zero where it lacks nothing.
    pub(crate) waiting: f64,
    /// Probability that the receiver lacks nothing then, which makes the repair spurious.
    pub(crate) spurious: f64,
    /// Probability that a copy of the first needed symbol not in flight again is spurious because
    /// that symbol was decoded meanwhile.
    pub(crate) spurious_copy: f64,
}

impl Stakes {
    /// Whether the repair symbol is more likely spurious than not.
    pub(crate) fn is_rather_spurious(&self) -> bool {
        self.spurious >= SPURIOUS_MOST
    }
}

impl Belief {
    pub(crate) fn new(now: Time) -> Self {
        let none = Case { probability: 1.0, since: 0.0 };
        Belief { cases: vec![none], first: 0, prefix: Prefix::new(0), origin: now, credit: 0 }
    }

    /// Restarts: the receiver lacked `deficit` symbols, has waited since `since`, and these frames
    /// are in flight.
    pub(crate) fn restart<'a>(
        &mut self,
        (deficit, since): (usize, Time),
        (late, frames): (&[Late], impl Iterator<Item = &'a Sent>),
        loss_ratio: f64,
        now: Time,
    ) {
        self.origin = now;
        self.first = deficit;
        self.cases.clear();
        self.cases.push(Case { probability: 1.0, since: self.seconds(since) });
        self.prefix.restart(deficit);
        late.iter().for_each(|late| self.add_one(late.what, late.at, late.loss_ratio));
        frames.for_each(|sent| self.add(sent, loss_ratio));
        self.credit = 0;
    }

    fn seconds(&self, at: Time) -> f64 {
        (at.as_nanos() as f64 - self.origin.as_nanos() as f64) / 1e9
    }

    /// Whether replaying `frames` frames in flight with the latest feedback is affordable. If there
    /// are very many, this is not done for every feedback.
    pub(crate) fn affords(&mut self, frames: usize) -> bool {
        self.credit = self.credit.saturating_add(STEPS);
        self.credit >= frames * (self.cases.len() + self.prefix.len())
    }

    /// Records a frame sent.
    pub(crate) fn add(&mut self, sent: &Sent, loss_ratio: f64) {
        self.credit = self.credit.saturating_add(STEPS);
        self.add_one(sent.what, sent.at, sent.loss_ratio(loss_ratio));
    }

    fn add_one(&mut self, what: What, at: Time, loss_ratio: f64) {
        match what {
            What::Source(_) => {
                if self.first == 0 {
                    // A receiver that lacks nothing begins to wait with this frame.
                    self.cases[0].since = self.cases[0].probability * self.seconds(at);
                }
                self.prefix.add_source(loss_ratio);
                self.shift(loss_ratio);
            }
            What::Coded => {
                self.prefix.add_coded(loss_ratio);
                self.add_repair(1.0 - loss_ratio);
            }
            What::Copy(_) => {
                let needed = 1.0 - self.prefix.decoded();
                self.prefix.add_copy(loss_ratio);
                self.add_repair((1.0 - loss_ratio) * needed);
            }
            // Whether what it carries is lost is not known, and is unlikely.
            What::Ahead | What::Part => {}
        }
    }

    /// Repair reduces the deficit with this probability; a deficit of zero stays.
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

    /// Increases each deficit by one with this probability.
    fn shift(&mut self, probability: f64) {
        if probability == 0.0 {
            return;
        }
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

    /// The stakes now.
    pub(crate) fn stakes(&self, now: Time, round_trip: Duration, weigh: Weigh) -> Stakes {
        let waiting = match weigh {
            Weigh::Squared => self.waiting(now, round_trip, |waited| waited * waited),
            Weigh::Root => self.waiting(now, round_trip, f64::sqrt),
        };
        let spurious = if self.first == 0 { self.cases[0].probability } else { 0.0 };
        Stakes { waiting, spurious, spurious_copy: self.prefix.decoded() }
    }

    /// The mean weight of the receiver's wait.
    fn waiting(&self, now: Time, round_trip: Duration, weigh: impl Fn(f64) -> f64) -> f64 {
        let (now, round_trip_s) = (self.seconds(now), round_trip.as_secs_f64());
        let lacking = usize::from(self.first == 0);
        let likely = |case: &&Case| case.probability >= NEGLIGIBLE;
        let waiting = self.cases.iter().skip(lacking).filter(likely).map(|case| {
            let waited = (now - case.since / case.probability) / round_trip_s;
            case.probability * weigh(waited.max(WAIT_MIN))
        });
        waiting.sum()
    }
}
