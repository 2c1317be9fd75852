//! What is done where feedback does not come.

use core::time::Duration;

use corridor_base::Time;

use super::repair::probes;
use crate::bounds::{WINDOW_TIMEOUT_MAX, WINDOW_TIMEOUT_MIN, burst_time};
use crate::link::usage::LinkUsage;

/// Timeout before the round trip was measured.
const TIMEOUT_FIRST: Duration = Duration::from_millis(100);
/// Intervals of feedback beyond a round trip that a timeout waits at most, unless feedback takes
/// longer as a rule.
const PROMPT_INTERVALS: u32 = 2;
/// Silence that is tolerated whatever the losses, where frames do not take longer: losses come in
/// bursts, of feedback too, and a burst that is counted in frames ends the sooner the more are sent
/// (`WINDOW_BURST_FRAMES`, for which groups of 16 take ten timeouts).
const SILENCE_TOLERATED: Duration = Duration::from_secs(2);
/// Silence in which it is asked as often as timeouts come, and the least time between two after it:
/// not to fill a path that is out.
const SILENCE_PROMPT: Duration = Duration::from_millis(250);
const ASK_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// How long silence is tolerated, whatever the losses.
fn tolerated(link: &LinkUsage) -> Duration {
    SILENCE_TOLERATED.max(burst_time(link.frame_time()))
}

/// Feedback that does not come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    last_ack_at: Time,
    timeouts_in_row: u32,
    /// Last time something was asked for by a timeout.
    asked_at: Time,
    /// Symbols that may be sent to a silent receiver.
    probes: u32,
}

impl Silence {
    pub(super) fn new(now: Time) -> Self {
        Silence { last_ack_at: now, timeouts_in_row: 0, asked_at: now, probes: 0 }
    }

    /// Whether a symbol is to go that asks; it is taken for sent.
    pub(super) fn take_probe(&mut self) -> bool {
        let asks = self.probes > 0;
        self.probes -= u32::from(asks);
        asks
    }

    /// Whether losses cannot explain the silence any more.
    pub(super) fn is_unexplained(&self, loss_ratio: f64) -> bool {
        self.timeouts_in_row > probes::timeouts_tolerated(loss_ratio)
    }

    /// Feedback came, so long after the one before.
    pub(super) fn note_ack(&mut self, now: Time) -> Duration {
        self.timeouts_in_row = 0;
        now - core::mem::replace(&mut self.last_ack_at, now)
    }

    /// What was asked for is answered, or is not worth asking for.
    pub(super) fn stop_asking(&mut self) {
        self.probes = 0;
    }

    /// The peer is there, whatever became of our frames and its feedback.
    pub(super) fn note_heard(&mut self, loss_ratio: f64) {
        self.timeouts_in_row = self.timeouts_in_row.min(probes::timeouts_tolerated(loss_ratio));
    }

    /// It begins anew: what was silent had a cause that is gone.
    pub(super) fn restart(&mut self, now: Time) {
        self.timeouts_in_row = 0;
        self.last_ack_at = now;
    }

    /// When it has lasted for too long: after the oldest frame on its way, or, with none on its
    /// way, after the last time anything was heard.
    pub(super) fn due(&self, link: &LinkUsage) -> Time {
        let oldest = link.log().oldest().map_or(self.last_ack_at, |sent| sent.at);
        let since = oldest.max(self.last_ack_at).max(self.asked_at);
        since + self.timeout(link)
    }

    /// It has lasted for too long, while so many symbols are held.
    pub(super) fn time_out(&mut self, now: Time, held: u32, link: &LinkUsage) {
        self.timeouts_in_row += 1;
        self.asked_at = now;
        let is_long = now - self.last_ack_at > tolerated(link);
        self.probes = probes::wanted(self.timeouts_in_row, held, link.loss_ratio(), is_long);
    }

    /// How long feedback about a frame is waited for.
    fn timeout(&self, link: &LinkUsage) -> Duration {
        // Bursts of losses make feedback late, and are no reason to ask later.
        let prompt = link.rtt().timeout() + PROMPT_INTERVALS * link.ack_interval();
        let measured = link.wait().timeout().min(prompt.max(link.wait().smoothed()));
        let once =
            if measured.is_zero() { TIMEOUT_FIRST } else { measured.max(WINDOW_TIMEOUT_MIN) };
        let explained = probes::timeouts_tolerated(link.loss_ratio());
        let prompt = explained.max(SILENCE_PROMPT.div_duration_f64(once) as u32);
        let spaced = once.max(ASK_INTERVAL_MIN);
        let rest = tolerated(link) - SILENCE_PROMPT;
        let tolerated = explained.max(prompt + rest.div_duration_f64(spaced) as u32);
        let once = if self.timeouts_in_row > prompt { spaced } else { once };
        let stretched = self.timeouts_in_row.saturating_sub(tolerated).min(6);
        (once * (1 << stretched)).min(WINDOW_TIMEOUT_MAX)
    }
}
