//! When the receiver's feedback is due in window mode.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::WINDOW_ACK_INTERVAL_MIN;
use crate::link::shared_channel::ack_interval;

/// Feedback comes so many times as often while something is missing, and where something useless
/// came: the sender may not know what is here.
const URGENT_ACK_FACTOR: u32 = 20;
/// The same for something useless where both directions share the channel.
const SHARED_USELESS_ACK_FACTOR: u32 = 5;
/// Feedback is due when this part of a window has come since the last one, or a fast path would
/// wait with a full window for the next interval.
const WINDOWS_PER_ACK: u32 = 4;
/// Share of the frames lost from which on feedback comes more often even where nothing is known to
/// be missing: what was lost last is only known to those who miss the feedback.
const LOSSY: f64 = 0.01;
/// By what factor where both directions share the channel; else it comes as often as if something
/// were.
const LOSSY_ACK_FACTOR: u32 = 2;
/// Feedback that tells of nothing missing is piggybacked this often in an interval at most.
const PIGGYBACKED_PER_INTERVAL: u32 = 2;

/// The timer of feedback.
#[derive(Debug)]
pub(crate) struct AckTimer {
    interval: Duration,
    half_duplex: bool,
    /// Symbols that have come since feedback went last, and how many are reported at once.
    symbols: u32,
    symbols_per_ack: u32,
    due: Option<Time>,
    sent_at: Option<Time>,
    /// Share of the frames lost, as told last.
    loss_ratio: f64,
}

impl AckTimer {
    /// A timer of so long an interval, for windows of so many symbols.
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

    /// Both directions share the channel, or not.
    pub(crate) fn set_half_duplex(&mut self, half_duplex: bool) {
        self.half_duplex = half_duplex;
    }

    /// A symbol came.
    pub(crate) fn note_symbol(&mut self) {
        self.symbols = self.symbols.saturating_add(1);
    }

    /// There is something to tell. `missing`: a symbol has to come once more. `useless`: what came
    /// brought nothing, so that the sender may not have heard what is here. Where frames get lost,
    /// it repairs on suspicion as long as it has not heard that nothing is missing.
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

    /// Feedback is due now, whatever was scheduled.
    pub(crate) fn expire(&mut self, now: Time) {
        self.due = Some(now);
    }

    /// There is something to tell that the sender waits for.
    pub(crate) fn hurry(&mut self, now: Time) {
        let sent = self.sent_at.unwrap_or(Time::ZERO);
        let due = (sent + WINDOW_ACK_INTERVAL_MIN).max(now);
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Nothing is to be told any more.
    pub(crate) fn stop(&mut self) {
        self.due = None;
    }

    /// Feedback goes now, with this share of the frames lost.
    pub(crate) fn note_sent(&mut self, now: Time, loss_ratio: f64) {
        self.due = None;
        self.loss_ratio = loss_ratio;
        self.sent_at = Some(now);
        self.symbols = 0;
    }

    /// When feedback is due; `None` when there is nothing new to tell.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Whether there is something to tell that is worth the bytes on a symbol of the other
    /// direction.
    pub(crate) fn may_piggyback(&self, now: Time, missing: bool) -> bool {
        let least = self.interval() / PIGGYBACKED_PER_INTERVAL;
        let rested = self.sent_at.is_none_or(|at| now - at >= least);
        self.due.is_some() && (missing || rested)
    }

    fn interval_base(&self) -> Duration {
        ack_interval(self.interval, self.half_duplex)
    }

    fn interval(&self) -> Duration {
        let factor = if self.loss_ratio > LOSSY { LOSSY_ACK_FACTOR } else { 1 };
        (self.interval_base() / factor).max(WINDOW_ACK_INTERVAL_MIN)
    }
}
