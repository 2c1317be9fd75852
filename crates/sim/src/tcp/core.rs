//! What all variants share: window, timer, measurement, and the steps that recoveries are made of.

use core::time::Duration;

use corridor_base::{Time, earlier};

use super::config::SenderConfig;
use super::config::{
    DUPLICATES_THRESHOLD, LOSS_WINDOW_PACKETS, Reduction, RttSampling, SSTHRESH_PACKETS_MIN,
};
use super::flight::{Flight, Sent};
use super::rto::Rto;
use super::state::{Event, State};

/// Counts and gauges of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderStats {
    /// Packets sent, each time counted.
    pub packets_sent: u64,
    /// Of these, those sent before.
    pub retransmissions: u64,
    /// Acknowledgements received.
    pub acks_received: u64,
    /// Of these, those that told nothing new.
    pub duplicate_acks: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Reductions of the window because congestion was echoed.
    pub ecn_responses: u64,
    /// Congestion window, in packets; inflation and the maximum window left aside.
    pub cwnd_packets: f64,
    /// Packets by which duplicate acknowledgements inflate the window in a recovery.
    pub inflation_packets: u64,
    /// Slow-start threshold, in packets.
    pub ssthresh_packets: f64,
    /// Smoothed round-trip time, as far as it is known.
    pub srtt: Option<Duration>,
    /// Retransmission timeout in force, backoff included.
    pub rto: Duration,
}

/// An acknowledgement of new data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Packets acknowledged.
    pub(super) count: u64,
    /// The last of them.
    pub(super) last: Sent,
    /// `sent_at` that the acknowledgement echoed.
    pub(super) echo: Time,
    /// From then to now.
    pub(super) rtt: Duration,
    /// Congestion was echoed with it, so that the window must not grow.
    pub(super) congestion: bool,
}

/// The shared part of a sender.
#[derive(Clone, Debug)]
pub(super) struct Core {
    pub(super) config: SenderConfig,
    pub(super) flight: Flight,
    /// Packets that the application has given so far.
    pub(super) offered: u64,
    pub(super) state: State,
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Duplicate acknowledgements that open the window in recovery: each is a packet that left.
    pub(super) inflation: u64,
    pub(super) duplicates: u32,
    /// What had been sent when a loss was last noticed: numbers before this.
    pub(super) recover: Option<u64>,
    /// What had been sent when the window was last reduced for an echo of congestion.
    pub(super) echoed: Option<u64>,
    /// A packet to be sent again whatever the window.
    pub(super) urgent: Option<u64>,
    /// The end of the receiver's window: nothing is sent from this number on. The largest number
    /// until one is told.
    window_end: u64,
    /// When a receiver whose window is shut is asked for more.
    probe: Option<Time>,
    /// New packets that may still be sent beyond the window (RFC 3042).
    pub(super) limited: u32,
    /// New packets sent beyond the window since the last progress.
    pub(super) beyond: u64,
    /// New packets that may be sent until the next acknowledgement.
    pub(super) burst: u32,
    pub(super) rto: Rto,
    pub(super) timer: Option<Time>,
    /// The packet that is being timed, and when it was sent.
    timed: Option<(u64, Time)>,
    /// First in line at the last timeout.
    timed_out: Option<u64>,
    /// When there was nothing in flight any more.
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

    /// The window in force, in packets: inflated, and never more than the receiver's.
    pub(super) fn window(&self) -> f64 {
        (self.cwnd + self.inflation as f64).min(self.window_max())
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The number that the window lets go next, if any: first in line, new or old.
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

    /// Whether the receiver lets a packet go. What is first in line may go again, and asks for more
    /// where the window was taken back (RFC 9293, Section 3.8.6.1).
    pub(super) fn may_go(&self, sequence: u64) -> bool {
        let again = sequence == self.flight.una() && !self.flight.is_empty();
        sequence < self.window_end || again
    }

    /// Takes the receiver's window from an acknowledgement of all before `next`, noted already;
    /// whether it is another. The end moves back only with news (as `tcp_may_update_window` of
    /// Linux has it), but a window may be shut at any time.
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

    /// Sets the timer after which a receiver is asked that has shut its window, if nothing is in
    /// flight that would bring an answer.
    pub(super) fn note_shut(&mut self, now: Time) {
        let next = self.flight.next();
        if next >= self.offered || !self.flight.is_empty() || next < self.window_end {
            self.probe = None;
        } else if self.probe.is_none() {
            self.probe = Some(now + self.rto.timeout());
        }
    }

    /// Lets one packet go that the receiver does not, if it is time to ask; the retransmission
    /// timer asks again.
    pub(super) fn ask_if_shut(&mut self, now: Time) {
        if self.probe.take_if(|at| *at <= now).is_some() {
            self.urgent = Some(self.flight.next());
        }
    }

    /// When a timer expires next.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        earlier(self.timer, self.probe)
    }

    /// The same, and counts it against what may be sent beyond the window.
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

    /// Notes the sending of `sequence`: timer, timing, counts. Whether it was sent before.
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

    /// Nothing in flight is timed any more (Karn): after a retransmission it would be ambiguous.
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

    /// Round-trip time, timer, and the end of a repair after a timeout, for an acknowledgement of
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

    /// The same in the middle of a recovery: a packet that waited beyond a gap says nothing about
    /// the round-trip time, and the timer is the variant's affair.
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

    /// When the packet that was timed was sent, if it has been acknowledged.
    fn take_timed(&mut self) -> Option<Time> {
        let una = self.flight.una();
        self.timed.take_if(|&mut (sequence, _)| sequence < una).map(|(_, sent_at)| sent_at)
    }

    /// Counts a duplicate acknowledgement; the first two may let a new packet go (RFC 3042).
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

    /// Whether a loss that shows now is a new one, not one of a window already halved.
    pub(super) fn is_news(&self) -> bool {
        !self.config.careful || self.recover.is_none_or(|recover| self.flight.una() > recover)
    }

    /// Whether all is acknowledged that had been sent when a loss was last noticed.
    pub(super) fn is_repaired(&self) -> bool {
        self.recover.is_none_or(|recover| self.flight.una() >= recover)
    }

    /// Whether an echo of congestion with the acknowledgement of all before `next` is of a window
    /// not reduced yet (RFC 3168, Section 6.1.2). Numbers never sent are not believed.
    pub(super) fn is_first_echo(&self, next: u64) -> bool {
        let is_new = |point: Option<u64>| point.is_none_or(|point| next > point);
        next <= self.flight.high() && is_new(self.recover) && is_new(self.echoed)
    }

    /// Reduces the window for an echo of congestion.
    pub(super) fn respond_to_echo(&mut self, factor: f64) {
        self.cwnd = self.reduce(factor);
        self.echoed = Some(self.flight.high());
        self.counts.ecn_responses += 1;
    }

    /// Reduces the window for a loss, unless it was reduced for congestion that was echoed and the
    /// loss is of that window.
    pub(super) fn reduce_unless_echoed(&mut self, factor: f64) {
        if self.echoed.is_none_or(|echoed| self.flight.una() > echoed) {
            self.cwnd = self.reduce(factor);
        }
    }

    /// Sets the slow-start threshold to `factor` of what [`Reduction`] says, and returns what the
    /// window should be then, in packets.
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

    /// A loss was noticed: its window is what has been sent until now.
    pub(super) fn remember_loss(&mut self) {
        self.recover = Some(self.flight.high());
    }

    /// The first steps of every fast recovery: the window is reduced, the packet first in line
    /// goes again at once, and the timer starts anew.
    pub(super) fn fast_retransmit(&mut self, now: Time, factor: f64) {
        self.enter(Event::FastRetransmit);
        self.remember_loss();
        self.reduce_unless_echoed(factor);
        self.retransmit_first(now);
        self.counts.fast_retransmits += 1;
    }

    /// Sends the packet first in line again at once.
    pub(super) fn retransmit_first(&mut self, now: Time) {
        self.urgent = Some(self.flight.una());
        self.abandon_timing();
        self.restart_timer(now);
    }

    /// The timer expired: everything counts as lost (RFC 6298, rules 5.4 to 5.6, and RFC 5681,
    /// Section 3.1).
    pub(super) fn collapse_on_timeout(&mut self, now: Time, factor: f64) {
        self.inflation = 0;
        self.duplicates = 0;
        self.limited = 0;
        self.urgent = None;
        // A packet lost again says nothing new (RFC 5681, Section 3.1, equation 4).
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
