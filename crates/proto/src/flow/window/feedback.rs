//! Detects missing feedback, and sends loss probes.

use core::time::Duration;

use corridor_base::Time;

use super::repair::probes;
use crate::bounds::{WINDOW_TIMEOUT_MAX, WINDOW_TIMEOUT_MIN, burst_time};
use crate::link::usage::LinkUsage;

/// Timeout until the round-trip time has been measured.
const TIMEOUT_FIRST: Duration = Duration::from_millis(100);
/// A timeout is at most a round trip plus this many feedback intervals, unless feedback usually
/// takes longer.
const PROMPT_INTERVALS: u32 = 2;
/// Silence that is tolerated whatever the loss ratio, or longer where frames take long: losses come
/// in bursts, which hit feedback too, and a burst counted in frames ends the sooner the more frames
/// are sent (`WINDOW_BURST_FRAMES`, for which groups of 16 take ten timeouts).
const SILENCE_TOLERATED: Duration = Duration::from_secs(2);
/// During this first part of a silence each timeout sends probes; after it, probes are at least
/// `ASK_INTERVAL_MIN` apart, so as not to fill a path that is down.
const SILENCE_PROMPT: Duration = Duration::from_millis(250);
const ASK_INTERVAL_MIN: Duration = Duration::from_millis(50);

/// How long silence is tolerated, whatever the loss ratio.
fn tolerated(link: &LinkUsage) -> Duration {
    SILENCE_TOLERATED.max(burst_time(link.frame_time()))
}

/// The state of missing feedback.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    last_ack_at: Time,
    timeouts_in_row: u32,
    /// When a timeout last sent probes.
    asked_at: Time,
    /// Probes that may still be sent to the silent receiver.
    probes: u32,
}

impl Silence {
    pub(super) fn new(now: Time) -> Self {
        Silence { last_ack_at: now, timeouts_in_row: 0, asked_at: now, probes: 0 }
    }

    /// Takes one probe off those allowed; returns whether there was one.
    pub(super) fn take_probe(&mut self) -> bool {
        let asks = self.probes > 0;
        self.probes -= u32::from(asks);
        asks
    }

    /// Whether losses alone can no longer explain the silence.
    pub(super) fn is_unexplained(&self, loss_ratio: f64) -> bool {
        probes::are_unexplained(self.timeouts_in_row, loss_ratio)
    }

    /// Records feedback; returns the time since the feedback before.
    pub(super) fn note_ack(&mut self, now: Time) -> Duration {
        self.timeouts_in_row = 0;
        now - core::mem::replace(&mut self.last_ack_at, now)
    }

    /// Cancels outstanding probes: they have been answered, or are not worth sending.
    pub(super) fn stop_asking(&mut self) {
        self.probes = 0;
    }

    /// Records that the peer is alive, whatever became of our frames and its feedback.
    pub(super) fn note_heard(&mut self, loss_ratio: f64) {
        self.timeouts_in_row = self.timeouts_in_row.min(probes::timeouts_tolerated(loss_ratio));
    }

    /// Restarts the timer, because the cause of the silence is known and gone.
    pub(super) fn restart(&mut self, now: Time) {
        self.timeouts_in_row = 0;
        self.last_ack_at = now;
    }

    /// When the next timeout fires, counted from the oldest frame in flight, or with none in flight
    /// from when anything was last heard.
    pub(super) fn due(&self, link: &LinkUsage) -> Time {
        let oldest = link.log().oldest().map_or(self.last_ack_at, |sent| sent.at);
        let since = oldest.max(self.last_ack_at).max(self.asked_at);
        since + self.timeout(link)
    }

    /// A timeout has fired; `held`: symbols held.
    pub(super) fn time_out(&mut self, now: Time, held: u32, link: &LinkUsage) {
        self.timeouts_in_row += 1;
        self.asked_at = now;
        let is_long = now - self.last_ack_at > tolerated(link);
        self.probes = probes::wanted(self.timeouts_in_row, held, link.loss_ratio(), is_long);
    }

    /// How long to wait for feedback about a frame.
    fn timeout(&self, link: &LinkUsage) -> Duration {
        // Bursts of losses delay feedback; they are no reason to probe later.
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
