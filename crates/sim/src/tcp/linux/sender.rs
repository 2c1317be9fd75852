//! Linux's sending side: timers, and which packet to send next.

use core::time::Duration;

use corridor_base::Time;

use super::ack::Ack;
use super::config::LinuxSenderConfig;
use super::control::Control;
use super::flow::{Flow, Timer};
use super::rack::TIMEOUT_MIN_US;
use super::rtt::RTO_MIN_US;
use super::state::CaState;
use crate::tcp::config::ConfigError;
use crate::tcp::core::SenderStats;
use crate::tcp::segment::Segment;

/// What to retransmit, as decided by the last event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    Nothing,
    /// Lost packets, then new ones.
    Lost,
    /// New packets, which show whether anything is lost at all (F-RTO).
    NewFirst,
}

/// A packet that is sent regardless of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forced {
    /// The oldest unacknowledged packet: the retransmission timer has expired.
    First,
    /// A tail loss probe: a new packet, or the last one again.
    Probe,
    /// A window probe: the receiver has closed its window.
    Window,
}

/// A TCP sender as in Linux: acknowledgments in, packets out, time as an argument.
///
/// The handshake is not modelled: data flows from the first packet on, without a first RTT sample.
/// Sequence numbers and windows count packets of equal size, as the kernel counts its window.
#[derive(Clone, Debug)]
pub struct LinuxSender {
    pub(super) flow: Flow,
    pub(super) control: Control,
    pub(super) resend: Resend,
    forced: Option<Forced>,
    /// New packets sent since the last event.
    sent_new: u64,
}

impl LinuxSender {
    /// A sender with nothing to send yet.
    ///
    /// # Errors
    /// [`ConfigError`] names the field that is out of its range.
    pub fn new(config: LinuxSenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let mut flow = Flow::new(config);
        let control = Control::new(&config, &mut flow);
        Ok(LinuxSender { flow, control, resend: Resend::Nothing, forced: None, sent_new: 0 })
    }

    /// The settings.
    pub fn config(&self) -> &LinuxSenderConfig {
        &self.flow.config
    }

    /// The application offers `packets` more; `u64::MAX` stands for unlimited data.
    pub fn offer(&mut self, packets: u64) {
        self.flow.rate_check_application();
        self.flow.offered = self.flow.offered.saturating_add(packets);
    }

    /// Packets offered so far.
    pub fn offered(&self) -> u64 {
        self.flow.offered
    }

    /// Packets acknowledged so far: all before this number have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.flow.board.una()
    }

    /// Packets sent and not yet cumulatively acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.flow.board.out()
    }

    /// Whether everything offered has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.flow.board.una() == self.flow.offered
    }

    /// The state of loss recovery.
    pub fn state(&self) -> CaState {
        self.flow.state
    }

    /// How often a reduction of the window was undone.
    pub fn undos(&self) -> u64 {
        self.flow.counts.undos
    }

    /// Number of tail loss probes.
    pub fn probes(&self) -> u64 {
        self.flow.counts.probes
    }

    /// Pacing rate in bytes of payload per second; 0 if packets are not paced.
    pub fn pace_bytes_per_s(&self) -> u64 {
        if self.flow.is_paced() { self.flow.pace_bytes_per_s } else { 0 }
    }

    /// Counters since the start, and current gauges.
    pub fn stats(&self) -> SenderStats {
        let Flow { counts, cwnd, ssthresh, rtt, .. } = &self.flow;
        SenderStats {
            packets_sent: counts.packets_sent,
            retransmissions: counts.retransmissions,
            acks_received: counts.acks_received,
            duplicate_acks: counts.duplicate_acks,
            timeouts: counts.timeouts,
            fast_retransmits: counts.recoveries,
            ecn_responses: counts.ecn_responses,
            cwnd_packets: *cwnd as f64,
            inflation_packets: 0,
            ssthresh_packets: *ssthresh as f64,
            srtt: rtt.smoothed(),
            rto: self.rto(),
        }
    }

    /// Expiries of the retransmission timer.
    pub fn timeouts(&self) -> u64 {
        self.flow.counts.timeouts
    }

    /// Congestion window, in packets.
    pub fn cwnd_packets(&self) -> f64 {
        self.flow.cwnd as f64
    }

    /// Retransmission timeout in force, backoff included.
    pub fn rto(&self) -> Duration {
        Duration::from_micros(self.flow.rtt.rto_us())
    }

    /// Processes an acknowledgment; ignores data.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        let Segment::Ack { next, echo, sack, congestion_echo, window_end, .. } = *segment else {
            return;
        };
        self.flow.now = now;
        self.handle_ack(&Ack { next, echo, sack, congestion: congestion_echo, window_end });
    }

    /// The clock has reached `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.flow.now = now;
        let Some((timer, _)) = self.flow.timer.filter(|&(_, at)| at <= now) else { return };
        match timer {
            Timer::Retransmit => self.on_timeout(),
            Timer::Reordering => self.on_reordering_timeout(),
            Timer::Probe => self.on_probe_timeout(),
            Timer::Window => self.forced = Some(Forced::Window),
        }
    }

    fn on_timeout(&mut self) {
        self.flow.timer = None;
        self.flow.probe_high = None;
        if self.flow.board.is_empty() {
            return;
        }
        self.flow.counts.timeouts += 1;
        self.enter_loss();
        self.flow.timeouts_in_row += 1;
        self.flow.rtt.back_off();
        let rto_us = self.flow.rtt.rto_us();
        self.flow.set_timer(Timer::Retransmit, rto_us);
        self.forced = Some(Forced::First);
    }

    fn on_reordering_timeout(&mut self) {
        if self.flow.rack_timeout() {
            if self.flow.state != CaState::Recovery {
                self.enter_recovery(false);
                if !self.control.rules() {
                    self.flow.shrink(1, 0, false);
                }
            }
            self.resend = Resend::Lost;
        }
        self.flow.rearm();
    }

    fn on_probe_timeout(&mut self) {
        if self.flow.probe_high.is_none() && !self.flow.board.is_empty() {
            self.forced = Some(Forced::Probe);
        } else {
            self.flow.rearm();
        }
    }

    /// When to call [`LinuxSender::handle_timeout`] or [`LinuxSender::poll_transmit`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        let pace = (self.flow.waits_for_pace() && self.has_something())
            .then(|| Time::from_nanos(self.flow.paced_until_ns));
        let timer = self.flow.timer.map(|(_, at)| at);
        [timer, pace].into_iter().flatten().min()
    }

    /// Whether there is a new packet that the receiver's window allows.
    pub(super) fn has_new(&self) -> bool {
        let next = self.flow.board.next();
        let window = u64::from(self.flow.config.window_packets_max);
        next < self.flow.offered && next < self.flow.window_end && self.flow.board.out() < window
    }

    /// Whether there is a packet that may go as soon as pacing allows.
    fn has_something(&self) -> bool {
        let has_room = self.flow.board.in_flight() < self.flow.cwnd;
        let has_lost = self.resend != Resend::Nothing && self.flow.board.first_waiting().is_some();
        has_room && (has_lost || self.has_new())
    }

    /// The next packet that may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        self.flow.now = now;
        if let Some(forced) = self.forced.take()
            && let Some(segment) = self.send_forced(forced)
        {
            return Some(segment);
        }
        let has_room = self.flow.board.in_flight() < self.flow.cwnd;
        if has_room
            && !self.flow.waits_for_pace()
            && let Some(segment) = self.send_next()
        {
            return Some(segment);
        }
        self.end_burst();
        None
    }

    fn send_next(&mut self) -> Option<Segment> {
        if self.resend == Resend::NewFirst && !self.has_new() {
            if self.flow.board.next() > self.flow.high {
                self.resend = Resend::Nothing;
            } else {
                self.flow.frto = false;
                self.resend = Resend::Lost;
            }
        }
        if self.resend == Resend::Lost
            && let Some(number) = self.flow.board.first_waiting()
        {
            return Some(self.send_lost(number));
        }
        self.has_new().then(|| self.send_new())
    }

    fn send_new(&mut self) -> Segment {
        if self.flow.board.is_empty() {
            self.restart();
        }
        self.sent_new += 1;
        let sequence = self.flow.send_new();
        // Only new packets carry CWR (RFC 3168, Section 6.1.5).
        let reduced = core::mem::take(&mut self.flow.owes_cwr);
        self.segment(sequence, false, reduced)
    }

    fn send_lost(&mut self, number: u64) -> Segment {
        let is_first = number == self.flow.board.una();
        self.flow.send_again(number);
        if self.flow.is_reducing() {
            self.flow.prr_out += 1;
        }
        if is_first && !matches!(self.flow.timer, Some((Timer::Reordering, _))) {
            let rto_us = self.flow.rtt.rto_us();
            self.flow.set_timer(Timer::Retransmit, rto_us);
        }
        self.segment(number, true, false)
    }

    fn send_forced(&mut self, forced: Forced) -> Option<Segment> {
        match forced {
            Forced::First => {
                let first = self.flow.board.una();
                self.flow.board.get(first)?;
                self.flow.send_again(first);
                Some(self.segment(first, true, false))
            }
            Forced::Probe => self.send_probe(),
            Forced::Window => {
                self.flow.timer = None;
                let asks = self.flow.board.next() < self.flow.offered;
                asks.then(|| self.send_new())
            }
        }
    }

    /// RFC 8985, Section 7.3: sends a new packet if there is one, else the last one again.
    fn send_probe(&mut self) -> Option<Segment> {
        self.flow.counts.probes += 1;
        self.flow.probe_was_copy = !self.has_new();
        let segment = if self.flow.probe_was_copy {
            let last = self.flow.board.next().checked_sub(1)?;
            self.flow.send_copy(last);
            self.segment(last, true, false)
        } else {
            self.send_new()
        };
        // One probe for each tail: the retransmission timeout comes next.
        self.sent_new = 0;
        self.flow.probe_high = Some(self.flow.board.next());
        self.flow.timer = None;
        self.flow.rearm();
        Some(segment)
    }

    fn segment(&self, sequence: u64, retransmission: bool, window_reduced: bool) -> Segment {
        Segment::Data {
            sequence,
            sent_at: self.flow.now,
            retransmission,
            congestion_experienced: false,
            window_reduced,
        }
    }

    /// After an idle time, halves the window for each timeout that it lasted (gentler than RFC
    /// 5681, Section 4.1).
    fn restart(&mut self) {
        let flow = &mut self.flow;
        if flow.counts.packets_sent == 0 {
            return;
        }
        let idle_us = flow.now_us() - flow.last_sent_us;
        let rto_us = flow.rtt.rto_us();
        if !self.control.rules() && idle_us > rto_us {
            flow.ssthresh = flow.current_ssthresh();
            let least = u64::from(flow.config.initial_window_packets).min(flow.cwnd);
            let halvings = ((idle_us - 1) / rto_us).min(63);
            flow.cwnd = (flow.cwnd >> halvings).max(least);
        }
        self.control.on_restart(flow, idle_us);
    }

    /// Nothing more can be sent for now.
    fn end_burst(&mut self) {
        if !self.flow.waits_for_pace() {
            self.resend = Resend::Nothing;
        }
        let is_limited = self.flow.board.in_flight() >= self.flow.cwnd;
        let sent = core::mem::take(&mut self.sent_new);
        if sent > 0 {
            self.schedule_probe(false);
        }
        if sent > 0 || is_limited {
            self.flow.note_usage(is_limited);
        }
        self.ask_if_shut();
    }

    /// Sets the timer for a window probe if the receiver's window blocks new packets and nothing is
    /// in flight that would bring an update.
    fn ask_if_shut(&mut self) {
        let flow = &mut self.flow;
        let next = flow.board.next();
        let is_shut = next < flow.offered && next >= flow.window_end && flow.board.is_empty();
        match flow.timer {
            None if is_shut => {
                let rto_us = flow.rtt.rto_us();
                flow.set_timer(Timer::Window, rto_us);
            }
            Some((Timer::Window, _)) if !is_shut => flow.timer = None,
            _ => {}
        }
    }

    /// Sets the timer for a tail loss probe; returns whether one is of use now (RFC 8985, Section
    /// 7.2).
    pub(super) fn schedule_probe(&mut self, advances: bool) -> bool {
        let flow = &mut self.flow;
        if flow.board.is_empty() || !matches!(flow.state, CaState::Open | CaState::Cwr) {
            return false;
        }
        let mut delay_us = match flow.rtt.eightfold_us() {
            0 => 1_000_000,
            eightfold_us => {
                // The acknowledgment of a single packet may be delayed.
                let alone = flow.board.out() == 1;
                (eightfold_us >> 2) + if alone { RTO_MIN_US } else { TIMEOUT_MIN_US }
            }
        };
        let rto_us = if advances { flow.rtt.rto_us() } else { flow.until_timeout_us() };
        if rto_us > 0 {
            delay_us = delay_us.min(rto_us);
        }
        flow.set_timer(Timer::Probe, delay_us);
        true
    }
}

impl Flow {
    /// Records whether the window limits sending, for at least a round.
    fn note_usage(&mut self, is_limited: bool) {
        let out = self.board.out();
        let is_news = !self.is_cwnd_limited && out > self.out_max;
        if self.board.una() >= self.usage_end || is_limited || is_news {
            self.is_cwnd_limited = is_limited;
            self.out_max = out;
            self.usage_end = self.board.next();
        }
    }

    /// The pacing rate of Reno and Cubic: more than a window per round trip, so that the window can
    /// grow.
    pub(super) fn set_pace_by_window(&mut self) {
        let eightfold_us = self.rtt.eightfold_us();
        if eightfold_us == 0 {
            return;
        }
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        let bytes = u64::from(self.config.payload_bytes) * self.cwnd.max(self.board.out());
        self.pace_bytes_per_s = bytes * 10_000 * 8 * percent / eightfold_us;
    }
}
