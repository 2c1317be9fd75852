//! When feedback is due in window mode.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::WINDOW_ACK_INTERVAL_MIN;
use crate::link::shared_channel::ack_interval;

/// Factor by which feedback is more frequent while something is missing, or when a useless symbol
/// came, since the sender may not know what has arrived.
const URGENT_ACK_FACTOR: u32 = 20;
/// The same for a useless symbol on a shared channel.
const SHARED_USELESS_ACK_FACTOR: u32 = 5;
/// Feedback is due once this fraction of a window has arrived since the last; otherwise a fast path
/// would wait for the next interval with a full window.
const WINDOWS_PER_ACK: u32 = 4;
/// Loss ratio from which feedback is more frequent even if nothing is known to be missing: a loss
/// at the end shows only in the absence of feedback.
const LOSSY: f64 = 0.01;
/// The factor for that on a shared channel; elsewhere feedback is as frequent as if something were
/// missing.
const LOSSY_ACK_FACTOR: u32 = 2;
/// Feedback that reports nothing missing is piggybacked at most this often per interval.
const PIGGYBACKED_PER_INTERVAL: u32 = 2;

/// The timer of feedback.
#[derive(Debug)]
pub(crate) struct AckTimer {
    interval: Duration,
    half_duplex: bool,
    /// Symbols received since the last feedback, and the number that makes feedback due.
    symbols: u32,
    symbols_per_ack: u32,
    due: Option<Time>,
    sent_at: Option<Time>,
    /// Loss ratio, as last reported.
    loss_ratio: f64,
}

impl AckTimer {
    /// A timer with this interval, for windows of `window_size` symbols.
    pub(crate) fn new(interval: Duration, window_size: u16) -> Self {
        AckTimer {
            interval,
            half_duplex: false,
            symbols: 0,
            symbols_per_ack: (u32::from(window_size) / WINDOWS_PER_ACK).max(1),
            due: None,
            sent_at: None,
            loss_ratio: 0.0,
        }
    }

    /// Sets whether the channel is shared.
    pub(crate) fn set_half_duplex(&mut self, half_duplex: bool) {
        self.half_duplex = half_duplex;
    }

    /// Records a received symbol.
    pub(crate) fn note_symbol(&mut self) {
        self.symbols = self.symbols.saturating_add(1);
    }

    /// Schedules feedback. `missing`: some symbol has to be repaired. `useless`: a symbol brought
    /// nothing, so the sender may not know what has arrived. With losses, the sender repairs on
    /// suspicion until it hears that nothing is missing.
    pub(crate) fn schedule(&mut self, now: Time, missing: bool, useless: bool) {
        let sent = self.sent_at.unwrap_or(Time::ZERO);
        let due = if missing || ((useless || self.loss_ratio > LOSSY) && !self.half_duplex) {
            sent + (self.interval_base() / URGENT_ACK_FACTOR).max(WINDOW_ACK_INTERVAL_MIN)
        } else if useless {
            sent + self.interval_base() / SHARED_USELESS_ACK_FACTOR
        } else {
            // The first frame after a pause waits too: more may follow, or data to piggyback on.
            sent.max(now) + self.interval()
        };
        let many = self.symbols >= self.symbols_per_ack;
        let due = if many { now } else { due.max(now) };
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Makes feedback due now.
    pub(crate) fn expire(&mut self, now: Time) {
        self.due = Some(now);
    }

    /// Hastens feedback, because the sender waits for it.
    pub(crate) fn hurry(&mut self, now: Time) {
        let sent = self.sent_at.unwrap_or(Time::ZERO);
        let due = (sent + WINDOW_ACK_INTERVAL_MIN).max(now);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Cancels feedback.
    pub(crate) fn stop(&mut self) {
        self.due = None;
    }

    /// Feedback is sent now; `loss_ratio`: of frames, as it reports it.
    pub(crate) fn note_sent(&mut self, now: Time, loss_ratio: f64) {
        self.due = None;
        self.loss_ratio = loss_ratio;
        self.sent_at = Some(now);
        self.symbols = 0;
    }

    /// When feedback is due; `None`: there is nothing new to report.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Whether feedback is worth the bytes that it would add to a symbol of the other direction.
    pub(crate) fn may_piggyback(&self, now: Time, missing: bool) -> bool {
        let least = || self.interval() / PIGGYBACKED_PER_INTERVAL;
        let rested = || self.sent_at.is_none_or(|at| now - at >= least());
        self.due.is_some() && (missing || rested())
    }

    fn interval_base(&self) -> Duration {
        ack_interval(self.interval, self.half_duplex)
    }

    fn interval(&self) -> Duration {
        let base = self.interval_base();
        let interval = if self.loss_ratio > LOSSY { base / LOSSY_ACK_FACTOR } else { base };
        interval.max(WINDOW_ACK_INTERVAL_MIN)
    }
}
