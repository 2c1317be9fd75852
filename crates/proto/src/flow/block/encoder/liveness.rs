//! Whether the decoder answers.

use core::time::Duration;

use corridor_base::Time;

/// What acknowledgments, and their absence, show about the decoder.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// The newest of the encoder's frames that the decoder has reported.
    newest_ack: Option<u32>,
    last_ack_at: Time,
    /// Blocks were given up since the last acknowledgment.
    gave_up: bool,
    /// How long the decoder delays acknowledgments.
    ack_interval: Duration,
}

impl Liveness {
    /// A decoder that counts as heard now, and is assumed to delay acknowledgments for this long.
    pub(crate) fn new(now: Time, ack_interval: Duration) -> Self {
        Liveness { newest_ack: None, last_ack_at: now, gave_up: false, ack_interval }
    }

    /// Sets how long the decoder delays acknowledgments, as it announces.
    pub(crate) fn expect_feedback(&mut self, interval: Duration) {
        self.ack_interval = interval;
    }

    /// How long the decoder delays acknowledgments.
    pub(crate) fn ack_interval(&self) -> Duration {
        self.ack_interval
    }

    /// Whether an acknowledgment with this frame counter came after a later one, and so is
    /// outdated.
    pub(crate) fn is_overtaken(&self, counter: u32) -> bool {
        self.newest_ack.is_some_and(|newest| counter < newest)
    }

    /// Records an acknowledgment that was not overtaken.
    pub(crate) fn note_ack(&mut self, now: Time, counter: u32) {
        self.newest_ack = Some(counter);
        self.last_ack_at = now;
        self.gave_up = false;
    }

    /// The decoder had nothing to report, so its silence means nothing, unless it was the reason
    /// why the last block ended.
    pub(crate) fn note_nothing_asked(&mut self, now: Time) {
        if !self.gave_up {
            self.last_ack_at = now;
        }
    }

    /// A block was given up for lack of acknowledgments.
    pub(crate) fn note_given_up(&mut self) {
        self.gave_up = true;
    }

    /// Whether a block was given up since the last acknowledgment.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// The decoder is back, or has restarted.
    pub(crate) fn restart(&mut self, now: Time) {
        self.last_ack_at = now;
        self.gave_up = false;
    }

    /// The encoder's frame counters restart.
    pub(crate) fn restart_counters(&mut self) {
        self.newest_ack = None;
    }

    /// Time since the last acknowledgment.
    pub(crate) fn silence(&self, now: Time) -> Duration {
        now - self.last_ack_at
    }
}
