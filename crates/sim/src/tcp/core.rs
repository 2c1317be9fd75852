//! The part of a sender that all variants share: window, timer, RTT measurement, and the building
//! blocks of loss recovery.

use core::time::Duration;

use corridor_base::{Time, earlier};

use super::config::SenderConfig;
use super::config::{
    DUPLICATES_THRESHOLD, LOSS_WINDOW_PACKETS, Reduction, RttSampling, SSTHRESH_PACKETS_MIN,
};
use super::flight::{Flight, Sent};
use super::rto::Rto;
use super::state::{Event, State};

/// Counters and gauges of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderStats {
    /// Packets sent, including retransmissions.
    pub packets_sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Acknowledgments received.
    pub acks_received: u64,
    /// Of these, acknowledgments without news.
    pub duplicate_acks: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Reductions of the window in response to ECN echoes.
    pub ecn_responses: u64,
    /// Congestion window, in packets, without inflation and regardless of the maximum window.
    pub cwnd_packets: f64,
    /// Packets by which duplicate acknowledgments inflate the window in a recovery.
    pub inflation_packets: u64,
    /// Slow-start threshold, in packets.
    pub ssthresh_packets: f64,
    /// Smoothed round-trip time, once it is known.
    pub srtt: Option<Duration>,
    /// Retransmission timeout in force, backoff included.
    pub rto: Duration,
}

/// An acknowledgment of new data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Packets acknowledged.
    pub(super) count: u64,
    /// The last of them.
    pub(super) last: Sent,
    /// `sent_at` that the acknowledgment echoed.
    pub(super) echo: Time,
    /// Time since then.
    pub(super) rtt: Duration,
    /// Whether it carries an echo of congestion, so that the window must not grow.
    pub(super) congestion: bool,
}

/// The shared part of a sender.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) config: SenderConfig,
    pub(super) flight: Flight,
    /// Packets that the application has offered so far.
    pub(super) offered: u64,
    pub(super) state: State,
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Duplicate acknowledgments that inflate the window in recovery: each means that a packet has
    /// left the network.
    pub(super) inflation: u64,
    pub(super) duplicates: u32,
    /// Number after the last packet sent when a loss was last detected.
    pub(super) recover: Option<u64>,
    /// Number after the last packet sent when the window was last reduced for an echo of
    /// congestion.
    pub(super) echoed: Option<u64>,
    /// A packet to retransmit regardless of the window.
    pub(super) urgent: Option<u64>,
    /// End of the receiver's window: this number and later ones must not be sent. The largest
    /// number until the receiver advertises a window.
    window_end: u64,
    /// When to probe a receiver that has closed its window.
    probe: Option<Time>,
    /// New packets that may still be sent beyond the window (RFC 3042).
    pub(super) limited: u32,
    /// New packets sent beyond the window since the last new acknowledgment.
    pub(super) beyond: u64,
    /// New packets that may be sent until the next acknowledgment.
    pub(super) burst: u32,
    pub(super) rto: Rto,
    pub(super) timer: Option<Time>,
    /// The packet whose round trip is being timed, and when it was sent.
    timed: Option<(u64, Time)>,
    /// The oldest unacknowledged packet at the last timeout.
    timed_out: Option<u64>,
    /// Since when nothing has been in flight.
    idle_since: Option<Time>,
    pub(super) counts: SenderStats,
}

impl Core {
    pub(super) fn new(config: SenderConfig) -> Self {
        Core {
            flight: Flight::default(),
            offered: 0,
            state: State::Open,
            cwnd: f64::from(config.initial_window_packets),
            ssthresh: f64::from(
                config.initial_ssthresh_packets.unwrap_or(config.window_packets_max),
            ),
            inflation: 0,
            duplicates: 0,
            recover: None,
            echoed: None,
            urgent: None,
            window_end: u64::MAX,
            probe: None,
            limited: 0,
            beyond: 0,
            burst: u32::MAX,
            rto: Rto::new(config.rto),
            timer: None,
            timed: None,
            timed_out: None,
            idle_since: None,
            counts: SenderStats::default(),
            config,
        }
    }

    pub(super) fn enter(&mut self, event: Event) {
        let after = self.state.after(event);
        debug_assert!(after.is_some(), "{event:?} in state {:?}", self.state);
        self.state = after.unwrap_or(self.state);
    }

    pub(super) fn window_max(&self) -> f64 {
        f64::from(self.config.window_packets_max)
    }

    /// The effective window, in packets: inflated, and at most the receiver's.
    pub(super) fn window(&self) -> f64 {
        (self.cwnd + self.inflation as f64).min(self.window_max())
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The next number that the window allows, if any: the next in order, new or to be sent again.
    pub(super) fn next_in_window(&self) -> Option<u64> {
        let (next, una) = (self.flight.next(), self.flight.una());
        if next >= self.offered || !self.may_go(next) || self.burst == 0 {
            return None;
        }
        let used = (next - una) as f64;
        let beyond = f64::from(self.duplicates.min(DUPLICATES_THRESHOLD - 1));
        let limited =
            self.limited > 0 && used < self.cwnd.floor() + beyond && used < self.window_max();
        (limited || used < self.window().floor()).then_some(next)
    }

    /// Whether the receiver's window allows a packet. The oldest unacknowledged packet may always
    /// be retransmitted; where the receiver took its window back, it serves as a probe (RFC 9293,
    /// Section 3.8.6.1).
    pub(super) fn may_go(&self, sequence: u64) -> bool {
        let again = sequence == self.flight.una() && !self.flight.is_empty();
        sequence < self.window_end || again
    }

    /// Takes the receiver's window from an acknowledgment of all before `next`, which has been
    /// processed already; returns whether the window changed. The window's end moves back only with
    /// an acknowledgment that has news (like Linux's `tcp_may_update_window`), but a window may be
    /// closed at any time.
    pub(super) fn take_window(
        &mut self,
        next: u64,
        window_end: Option<u64>,
        is_news: bool,
    ) -> bool {
        let Some(end) = window_end.filter(|_| next == self.flight.una()) else { return false };
        let (before, is_first) = (self.window_end, self.window_end == u64::MAX);
        if is_news || is_first || end > before || end == next {
            self.window_end = end;
        }
        !is_first && self.window_end != before
    }

    /// Sets the timer for probing a receiver that has closed its window, if nothing is in flight
    /// that would elicit an acknowledgment.
    pub(super) fn note_shut(&mut self, now: Time) {
        let next = self.flight.next();
        if next >= self.offered || !self.flight.is_empty() || next < self.window_end {
            self.probe = None;
        } else if self.probe.is_none() {
            self.probe = Some(now + self.rto.timeout());
        }
    }

    /// Allows one packet beyond a closed window when it is time to probe; the retransmission timer
    /// repeats the probe.
    pub(super) fn ask_if_shut(&mut self, now: Time) {
        if self.probe.take_if(|at| *at <= now).is_some() {
            self.urgent = Some(self.flight.next());
        }
    }

    /// When the next timer expires.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        earlier(self.timer, self.probe)
    }

    /// Like [`next_in_window`](Self::next_in_window), and counts the packet against what may be
    /// sent beyond the window.
    pub(super) fn take_next_in_window(&mut self) -> Option<u64> {
        self.flight.skip_sacked();
        let next = self.next_in_window()?;
        if (next - self.flight.una()) as f64 >= self.window().floor() {
            self.limited -= 1;
            self.beyond += 1;
        }
        self.burst -= 1;
        Some(next)
    }

    /// Records the sending of `sequence`: timer, RTT measurement, counters. Returns whether it had
    /// been sent before.
    pub(super) fn send(&mut self, now: Time, sequence: u64) -> bool {
        let was_empty = self.flight.is_empty();
        let again = self.flight.send(now, sequence);
        if self.timer.is_none() || was_empty {
            self.restart_timer(now);
        }
        if !again && self.timed.is_none() {
            self.timed = Some((sequence, now));
        }
        self.counts.packets_sent += 1;
        self.counts.retransmissions += u64::from(again);
        self.idle_since = None;
        again
    }

    pub(super) fn restart_timer(&mut self, now: Time) {
        self.timer = Some(now + self.rto.arm());
    }

    /// Stops timing the packet in flight (Karn): after a retransmission its sample would be
    /// ambiguous.
    pub(super) fn abandon_timing(&mut self) {
        self.timed = None;
    }

    /// RFC 5681, Section 4.1: a window not used for a timeout says nothing about the network.
    pub(super) fn restart_if_idle(&mut self, now: Time) {
        let Some(since) = self.idle_since else { return };
        if self.config.slow_start_restart && now.since(since) > self.rto.timeout() {
            let restart = match self.config.reduction {
                Reduction::Window => 1.0,
                Reduction::Flight => f64::from(self.config.initial_window_packets),
            };
            self.cwnd = self.cwnd.min(restart);
        }
        self.idle_since = None;
    }

    /// Round-trip time, timer, and the end of a repair after a timeout, for an acknowledgment of
    /// new data.
    pub(super) fn settle(&mut self, now: Time, progress: &Progress) {
        if let Some(sent_at) = self.take_timed() {
            self.rto.end_backoff();
            if self.config.rtt_sampling == RttSampling::OnePacket {
                self.rto.sample_by_clock(now, sent_at);
            }
        }
        self.sample_echo(now, progress);
        self.rearm(now);
        if self.state == State::Loss && self.is_repaired() {
            self.enter(Event::Repaired);
        }
    }

    /// As [`settle`](Self::settle), in the middle of a recovery: a packet that waited beyond a gap
    /// gives no RTT sample, and the variant handles the timer.
    pub(super) fn settle_partial(&mut self, now: Time, progress: &Progress) {
        if self.take_timed().is_some() {
            self.rto.end_backoff();
        }
        self.sample_echo(now, progress);
    }

    fn sample_echo(&mut self, now: Time, progress: &Progress) {
        if self.config.rtt_sampling == RttSampling::Timestamps {
            self.rto.end_backoff();
            self.rto.sample_by_echo(now, progress.echo);
        }
    }

    /// When the timed packet was sent, if it has been acknowledged.
    fn take_timed(&mut self) -> Option<Time> {
        let una = self.flight.una();
        self.timed.take_if(|&mut (sequence, _)| sequence < una).map(|(_, sent_at)| sent_at)
    }

    /// Counts a duplicate acknowledgment; each of the first two may allow a new packet (RFC 3042).
    pub(super) fn count_duplicate(&mut self) {
        self.duplicates += 1;
        let limited = self.config.limited_transmit && self.duplicates < DUPLICATES_THRESHOLD;
        self.limited = u32::from(limited);
    }

    /// RFC 6298, rules 5.2 and 5.3.
    pub(super) fn rearm(&mut self, now: Time) {
        if self.flight.is_empty() {
            self.timer = None;
            self.idle_since = Some(now);
        } else {
            self.restart_timer(now);
        }
    }

    /// Whether a loss detected now belongs to a window that has not been reduced yet.
    pub(super) fn is_news(&self) -> bool {
        !self.config.careful || self.recover.is_none_or(|recover| self.flight.una() > recover)
    }

    /// Whether everything sent before the last loss was detected has been acknowledged.
    pub(super) fn is_repaired(&self) -> bool {
        self.recover.is_none_or(|recover| self.flight.una() >= recover)
    }

    /// Whether an echo of congestion, in the acknowledgment of all before `next`, belongs to a
    /// window not reduced yet (RFC 3168, Section 6.1.2). Ignores numbers never sent.
    pub(super) fn is_first_echo(&self, next: u64) -> bool {
        let is_new = |point: Option<u64>| point.is_none_or(|point| next > point);
        next <= self.flight.high() && is_new(self.recover) && is_new(self.echoed)
    }

    /// Reduces the window in response to an echo of congestion.
    pub(super) fn respond_to_echo(&mut self, factor: f64) {
        self.cwnd = self.reduce(factor);
        self.echoed = Some(self.flight.high());
        self.counts.ecn_responses += 1;
    }

    /// Reduces the window for a loss, unless an echo of congestion has already reduced this window.
    pub(super) fn reduce_unless_echoed(&mut self, factor: f64) {
        if self.echoed.is_none_or(|echoed| self.flight.una() > echoed) {
            self.cwnd = self.reduce(factor);
        }
    }

    /// Sets the slow-start threshold to `factor` times what [`Reduction`] names, and returns the
    /// window that should follow, in packets.
    pub(super) fn reduce(&mut self, factor: f64) -> f64 {
        match self.config.reduction {
            Reduction::Window => {
                let reduced = self.window() * factor;
                self.ssthresh = reduced.floor().max(SSTHRESH_PACKETS_MIN);
                reduced.max(1.0)
            }
            Reduction::Flight => {
                // What limited transmit added does not count (RFC 5681, Section 3.2, step 2).
                let size = self.flight.size() - self.beyond;
                self.ssthresh = (size as f64 * factor).max(SSTHRESH_PACKETS_MIN);
                self.ssthresh
            }
        }
    }

    /// Marks the window of a loss detected now: everything sent so far.
    pub(super) fn remember_loss(&mut self) {
        self.recover = Some(self.flight.high());
    }

    /// The first steps of every fast recovery: reduce the window, retransmit the oldest
    /// unacknowledged packet at once, and restart the timer.
    pub(super) fn fast_retransmit(&mut self, now: Time, factor: f64) {
        self.enter(Event::FastRetransmit);
        self.remember_loss();
        self.reduce_unless_echoed(factor);
        self.retransmit_first(now);
        self.counts.fast_retransmits += 1;
    }

    /// Retransmits the oldest unacknowledged packet at once.
    pub(super) fn retransmit_first(&mut self, now: Time) {
        self.urgent = Some(self.flight.una());
        self.abandon_timing();
        self.restart_timer(now);
    }

    /// The retransmission timer expired: everything in flight counts as lost (RFC 6298, rules 5.4
    /// to 5.6, and RFC 5681, Section 3.1).
    pub(super) fn collapse_on_timeout(&mut self, now: Time, factor: f64) {
        self.inflation = 0;
        self.duplicates = 0;
        self.limited = 0;
        self.urgent = None;
        // A retransmission lost again does not reduce the threshold again (RFC 5681, Section 3.1,
        // equation 4).
        let repeated = self.timed_out.replace(self.flight.una()) == Some(self.flight.una());
        if !(repeated && self.config.reduction == Reduction::Flight) {
            self.reduce(factor);
        }
        self.beyond = 0;
        self.cwnd = f64::from(LOSS_WINDOW_PACKETS);
        self.enter(Event::Timeout);
        self.remember_loss();
        self.rto.back_off();
        self.restart_timer(now);
        self.abandon_timing();
        self.flight.go_back();
        self.flight.forget_sacked();
        self.counts.timeouts += 1;
    }
}
