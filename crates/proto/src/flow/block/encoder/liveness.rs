//! Whether the decoder answers.

use core::time::Duration;

use corridor_base::Time;

/// What acknowledgements, and their absence, say of the decoder.
#[derive(Debug)]
pub(crate) struct Liveness {
    /// The encoder's newest frame that the decoder had heard of.
    newest_ack: Option<u32>,
    last_ack_at: Time,
    /// Blocks were given up since the last acknowledgement.
    gave_up: bool,
    /// How long its acknowledgements wait.
    ack_interval: Duration,
}

impl Liveness {
    /// Of a decoder that counts as heard now, whose acknowledgements wait so long as far as anybody
    /// knows.
    pub(crate) fn new(now: Time, ack_interval: Duration) -> Self {
        Liveness { newest_ack: None, last_ack_at: now, gave_up: false, ack_interval }
    }

    /// Its acknowledgements wait so long, as it says.
    pub(crate) fn expect_feedback(&mut self, interval: Duration) {
        self.ack_interval = interval;
    }

    /// How long its acknowledgements wait.
    pub(crate) fn ack_interval(&self) -> Duration {
        self.ack_interval
    }

    /// Whether an acknowledgement that tells of this frame came later than one that was sent after
    /// it: what it tells is old.
    pub(crate) fn is_overtaken(&self, counter: u32) -> bool {
        self.newest_ack.is_some_and(|newest| counter < newest)
    }

    /// An acknowledgement came that was not overtaken.
    pub(crate) fn note_ack(&mut self, now: Time, counter: u32) {
        self.newest_ack = Some(counter);
        self.last_ack_at = now;
        self.gave_up = false;
    }

    /// The decoder has had nothing to say: that is no silence to be wary of, unless it was what
    /// ended the last block.
    pub(crate) fn note_nothing_asked(&mut self, now: Time) {
        if !self.gave_up {
            self.last_ack_at = now;
        }
    }

    /// A block was given up, for want of acknowledgements.
    pub(crate) fn note_given_up(&mut self) {
        self.gave_up = true;
    }

    /// Whether a block was given up since the last acknowledgement.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// The decoder is there again, or anew.
    pub(crate) fn restart(&mut self, now: Time) {
        self.last_ack_at = now;
        self.gave_up = false;
    }

    /// The encoder's frames are counted anew.
    pub(crate) fn restart_counters(&mut self) {
        self.newest_ack = None;
    }

    /// How long there has been no acknowledgement.
    pub(crate) fn silence(&self, now: Time) -> Duration {
        now - self.last_ack_at
    }
}
