//! When the decoder's acknowledgements are due.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::ACK_INTERVAL_MIN;

/// Times an urgent acknowledgement is told again when nothing follows: it may have been lost.
const URGENT_ACK_REPEATS: u8 = 2;
/// How much more often than others an acknowledgement is sent that the encoder stands still for.
const URGENT_ACK_FACTOR: u32 = 10;

/// What an acknowledgement is worth to the encoder now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It has other things to send.
    None,
    /// It stands still until it hears what its block lacks.
    High,
    /// It stands still, and could go on.
    Highest,
}

/// The timer of acknowledgements.
#[derive(Debug)]
pub(crate) struct AckTimer {
    interval: Duration,
    due: Option<Time>,
    /// When news that the encoder stands still for is told again, unless a symbol comes before.
    repeat_due: Option<Time>,
    repeats_left: u8,
    sent_at: Option<Time>,
}

impl AckTimer {
    /// A timer with so much between two acknowledgements that are not urgent.
    pub(crate) fn new(interval: Duration) -> Self {
        AckTimer { interval, due: None, repeat_due: None, repeats_left: 0, sent_at: None }
    }

    /// A symbol came, and an acknowledgement is so urgent now.
    pub(crate) fn note_symbol(&mut self, now: Time, urgency: Urgency) {
        self.repeat_due = None;
        self.repeats_left = if urgency == Urgency::None { 0 } else { URGENT_ACK_REPEATS };
        self.schedule(now, urgency);
    }

    /// There is something new to tell.
    pub(crate) fn schedule(&mut self, now: Time, urgency: Urgency) {
        let interval = match urgency {
            Urgency::None => self.interval,
            Urgency::High => self.repeat_interval(),
            Urgency::Highest => ACK_INTERVAL_MIN,
        };
        let due = self.sent_at.map_or(now, |sent| now.max(sent + interval));
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// An acknowledgement goes now.
    pub(crate) fn note_sent(&mut self, now: Time) {
        self.due = None;
        self.sent_at = Some(now);
        self.repeat_due = (self.repeats_left > 0).then(|| now + self.repeat_interval());
        self.repeats_left = self.repeats_left.saturating_sub(1);
    }

    /// When an acknowledgement is due; `None` when there is nothing new to tell.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due.into_iter().chain(self.repeat_due).min()
    }

    fn repeat_interval(&self) -> Duration {
        (self.interval / URGENT_ACK_FACTOR).max(ACK_INTERVAL_MIN)
    }
}
