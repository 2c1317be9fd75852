//! When the decoder's acknowledgments are due.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::ACK_INTERVAL_MIN;

/// How often an urgent acknowledgment is repeated if nothing follows: it may have been lost.
const URGENT_ACK_REPEATS: u8 = 2;
/// Factor by which acknowledgments are more frequent while the encoder is stalled waiting for one.
const URGENT_ACK_FACTOR: u32 = 10;

/// How urgently the encoder needs an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It has other things to send.
    None,
    /// It is stalled until it hears what its block lacks.
    High,
    /// It is stalled, and could go on.
    Highest,
}

/// The timer of acknowledgments.
#[derive(Debug)]
pub(crate) struct AckTimer {
    interval: Duration,
    due: Option<Time>,
    /// When to repeat news that the encoder is stalled for, unless a symbol comes first.
    repeat_due: Option<Time>,
    repeats_left: u8,
    sent_at: Option<Time>,
}

impl AckTimer {
    /// A timer with this interval between acknowledgments that are not urgent.
    pub(crate) fn new(interval: Duration) -> Self {
        AckTimer { interval, due: None, repeat_due: None, repeats_left: 0, sent_at: None }
    }

    /// Records a symbol, and how urgent an acknowledgment is now.
    pub(crate) fn note_symbol(&mut self, now: Time, urgency: Urgency) {
        self.repeat_due = None;
        self.repeats_left = if urgency == Urgency::None { 0 } else { URGENT_ACK_REPEATS };
        self.schedule(now, urgency);
    }

    /// There is something new to report.
    pub(crate) fn schedule(&mut self, now: Time, urgency: Urgency) {
        let interval = match urgency {
            Urgency::None => self.interval,
            Urgency::High => self.repeat_interval(),
            Urgency::Highest => ACK_INTERVAL_MIN,
        };
        let due = self.sent_at.map_or(now, |sent| now.max(sent + interval));
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// An acknowledgment is sent now.
    pub(crate) fn note_sent(&mut self, now: Time) {
        self.due = None;
        self.sent_at = Some(now);
        self.repeat_due = (self.repeats_left > 0).then(|| now + self.repeat_interval());
        self.repeats_left = self.repeats_left.saturating_sub(1);
    }

    /// When an acknowledgment is due; `None`: there is nothing new to report.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due.into_iter().chain(self.repeat_due).min()
    }

    fn repeat_interval(&self) -> Duration {
        (self.interval / URGENT_ACK_FACTOR).max(ACK_INTERVAL_MIN)
    }
}
