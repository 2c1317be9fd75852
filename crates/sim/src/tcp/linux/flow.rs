//! The state that all parts of a sender share, and elementary operations on it.

use corridor_base::Time;

use super::clock::{expiry, micros};
use super::config::LinuxSenderConfig;
use super::rack::Rack;
use super::rtt::Rtt;
use super::scoreboard::{Departure, Marked, Scoreboard};
use super::state::CaState;

/// Initial reordering degree: packets that may arrive out of order before this counts as a loss.
pub(super) const REORDERING: u64 = 3;
/// Stands for a slow-start threshold that is not set yet.
pub(super) const SSTHRESH_INFINITE: u64 = 0x7fff_ffff;
const NS_PER_S: u64 = 1_000_000_000;
/// Packets that are sent unpaced at the start of a connection.
const UNPACED_PACKETS: u64 = 10;

/// What the timer is set for: one purpose at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The retransmission timeout.
    Retransmit,
    /// RACK: packets that may just be reordered (RFC 8985, Section 6.3).
    Reordering,
    /// A tail loss probe (RFC 8985, Section 7).
    Probe,
    /// A window probe: the receiver has closed its window.
    Window,
}

/// What an acknowledgment says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// It advances the cumulative acknowledgment.
    pub(super) advanced: bool,
    /// It SACKs new packets.
    pub(super) sacked: bool,
    /// It echoes congestion.
    pub(super) congestion: bool,
    /// It reports that the receiver had a packet already (D-SACK).
    pub(super) duplicate: bool,
    /// It reports this about the tail loss probe.
    pub(super) duplicate_probe: bool,
    /// It covers packets that were sent only once, before the last loss was detected.
    pub(super) original: bool,
    /// It covers packets that were sent more than once.
    pub(super) again: bool,
    /// It changes the receiver's window.
    pub(super) window: bool,
    /// The timer has to be set.
    pub(super) sets_timer: bool,
    /// Retransmissions were found lost.
    pub(super) lost_again: bool,
}

impl Told {
    /// Whether it is more than a duplicate acknowledgment.
    pub(super) fn is_not_duplicate(&self) -> bool {
        self.advanced || self.window
    }

    /// Whether it makes any progress.
    pub(super) fn is_progress(&self) -> bool {
        self.advanced || self.sacked
    }
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) packets_sent: u64,
    pub(super) retransmissions: u64,
    pub(super) acks_received: u64,
    pub(super) duplicate_acks: u64,
    pub(super) timeouts: u64,
    pub(super) recoveries: u64,
    pub(super) ecn_responses: u64,
    pub(super) undos: u64,
    pub(super) probes: u64,
}

/// A connection's sending side. Windows in packets, times in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) config: LinuxSenderConfig,
    pub(super) now: Time,
    pub(super) board: Scoreboard,
    /// Packets that the application has offered so far.
    pub(super) offered: u64,
    /// The first number beyond the receiver's window.
    pub(super) window_end: u64,
    pub(super) state: CaState,
    pub(super) cwnd: u64,
    /// Packets acknowledged since the window last grew by a packet.
    pub(super) cwnd_count: u64,
    pub(super) ssthresh: u64,
    /// Window and threshold before the reduction; a threshold of 0 is not restored.
    pub(super) prior_cwnd: u64,
    pub(super) prior_ssthresh: u64,
    /// Number after the last packet sent when the state last changed for the worse.
    pub(super) high: u64,
    /// What was acknowledged when the window was reduced, if the reduction may be undone.
    pub(super) undo_from: Option<u64>,
    /// Retransmissions since then that no D-SACK has reported as duplicates; -1 before the first
    /// one.
    pub(super) undo_retransmits: i64,
    /// When the first packet was retransmitted since the last time that nothing was wrong.
    pub(super) first_again_us: Option<u64>,
    /// Whether the timeout may prove spurious (F-RTO, RFC 5682).
    pub(super) frto: bool,
    /// Packets delivered and sent during a reduction (PRR, RFC 6937).
    pub(super) prr_delivered: u64,
    pub(super) prr_out: u64,
    pub(super) rtt: Rtt,
    pub(super) rack: Rack,
    /// The highest number SACKed.
    pub(super) sacked_high: u64,
    pub(super) reordering: u64,
    pub(super) reordering_seen: bool,
    /// Number after the last packet sent when the tail loss probe was sent, and whether the probe
    /// was a copy.
    pub(super) probe_high: Option<u64>,
    pub(super) probe_was_copy: bool,
    /// Timeouts in a row.
    pub(super) timeouts_in_row: u32,
    pub(super) timer: Option<(Timer, Time)>,
    /// The next new packet has to say that the window was reduced (CWR).
    pub(super) owes_cwr: bool,
    /// Packets delivered, and packets lost, counting repeated losses.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) delivered_at_us: u64,
    pub(super) first_at_us: u64,
    /// Samples are application-limited until this many packets are delivered; 0 if they are not.
    pub(super) app_limited: u64,
    pub(super) is_cwnd_limited: bool,
    pub(super) out_max: u64,
    pub(super) usage_end: u64,
    /// Pacing rate in bytes per second; 0 before it is known.
    pub(super) pace_bytes_per_s: u64,
    /// When pacing allows the next packet.
    pub(super) paced_until_ns: u64,
    pub(super) last_sent_us: u64,
    pub(super) counts: Counts,
}

impl Flow {
    pub(super) fn new(config: LinuxSenderConfig) -> Self {
        Flow {
            now: Time::ZERO,
            board: Scoreboard::new(),
            offered: 0,
            window_end: u64::MAX,
            state: CaState::Open,
            cwnd: u64::from(config.initial_window_packets),
            cwnd_count: 0,
            ssthresh: SSTHRESH_INFINITE,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            high: 0,
            undo_from: None,
            undo_retransmits: 0,
            first_again_us: None,
            frto: false,
            prr_delivered: 0,
            prr_out: 0,
            rtt: Rtt::new(),
            rack: Rack::new(),
            sacked_high: 0,
            reordering: REORDERING,
            reordering_seen: false,
            probe_high: None,
            probe_was_copy: false,
            timeouts_in_row: 0,
            timer: None,
            owes_cwr: false,
            delivered: 0,
            lost: 0,
            delivered_at_us: 0,
            first_at_us: 0,
            app_limited: 0,
            is_cwnd_limited: false,
            out_max: 0,
            usage_end: 0,
            pace_bytes_per_s: 0,
            paced_until_ns: 0,
            last_sent_us: 0,
            counts: Counts::default(),
            config,
        }
    }

    pub(super) fn now_us(&self) -> u64 {
        micros(self.now)
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether a reduction of the window is in progress.
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }

    /// Whether packets are paced.
    pub(super) fn is_paced(&self) -> bool {
        self.config.pacing || self.config.congestion == super::Congestion::Bbr
    }

    /// The threshold to keep when a reduction is undone.
    pub(super) fn current_ssthresh(&self) -> u64 {
        if self.is_reducing() {
            self.ssthresh
        } else {
            self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
        }
    }

    /// Whether the congestion window limits sending.
    pub(super) fn is_window_used(&self) -> bool {
        self.is_cwnd_limited || (self.in_slow_start() && self.cwnd < 2 * self.out_max)
    }

    pub(super) fn set_timer(&mut self, timer: Timer, delay_us: u64) {
        // A packet that waits for its pacing time is not late.
        let pace_ns = self.paced_until_ns.saturating_sub(self.now.as_nanos());
        self.timer = Some((timer, expiry(self.now, delay_us + pace_ns.div_ceil(1_000))));
    }

    /// Time until the oldest packet has been in flight for a retransmission timeout; 0 if it has.
    pub(super) fn until_timeout_us(&self) -> u64 {
        let first = self.board.get(self.board.una());
        let at_us = first.map_or(self.now_us(), |first| first.at_us);
        (at_us + self.rtt.rto_us()).saturating_sub(self.now_us())
    }

    /// Sets the retransmission timer: to the full timeout, or to the rest of it where the timer was
    /// set for reordering or a tail loss probe.
    pub(super) fn rearm(&mut self) {
        if self.board.is_empty() {
            self.timer = None;
            return;
        }
        let delay_us = match self.timer {
            Some((Timer::Reordering | Timer::Probe, _)) => self.until_timeout_us().max(1),
            _ => self.rtt.rto_us(),
        };
        self.set_timer(Timer::Retransmit, delay_us);
    }

    /// The delivery record of a packet that is sent now.
    fn departure(&mut self) -> Departure {
        let now_us = self.now_us();
        if self.board.is_empty() {
            (self.first_at_us, self.delivered_at_us) = (now_us, now_us);
        }
        Departure {
            first_at_us: self.first_at_us,
            delivered_at_us: self.delivered_at_us,
            delivered: self.delivered,
            app_limited: self.app_limited > 0,
        }
    }

    /// Whether the next packet has to wait for its pacing time.
    pub(super) fn waits_for_pace(&self) -> bool {
        self.paced_until_ns > self.now.as_nanos()
    }

    /// A packet leaves: sets the pacing time of the next one.
    fn leave(&mut self) {
        self.counts.packets_sent += 1;
        self.last_sent_us = self.now_us();
        let now_ns = self.now.as_nanos();
        let before_ns = self.paced_until_ns;
        self.paced_until_ns = before_ns.max(now_ns);
        let is_paced = self.is_paced() && self.pace_bytes_per_s > 0;
        if is_paced && self.counts.packets_sent >= UNPACED_PACKETS {
            let bytes = u64::from(self.config.payload_bytes);
            let mut len_ns = bytes * NS_PER_S / self.pace_bytes_per_s;
            // Makes up for the timer's lateness, by half of the gap at most.
            len_ns -= (len_ns / 2).min(self.paced_until_ns - before_ns);
            self.paced_until_ns += len_ns;
        }
    }

    /// Sends the next new packet; returns its number.
    pub(super) fn send_new(&mut self) -> u64 {
        let number = self.board.next();
        let was_empty = self.board.is_empty();
        let departure = self.departure();
        self.board.push(self.now_us(), departure);
        self.leave();
        if self.is_reducing() {
            self.prr_out += 1;
        }
        if was_empty || matches!(self.timer, Some((Timer::Probe, _))) {
            self.rearm();
        }
        number
    }

    /// Retransmits a packet.
    pub(super) fn send_again(&mut self, number: u64) {
        let departure = self.departure();
        self.board.push_again(number, self.now_us(), departure);
        self.leave();
        self.counts.retransmissions += 1;
        self.first_again_us.get_or_insert(micros(self.now));
        self.undo_retransmits = self.undo_retransmits.max(0) + 1;
    }

    /// Sends a copy as a probe, which does not indicate a loss.
    pub(super) fn send_copy(&mut self, number: u64) {
        let departure = self.departure();
        self.board.push_copy(number, self.now_us(), departure);
        self.leave();
        self.counts.retransmissions += 1;
    }

    /// The highest number SACKed, or the cumulative acknowledgment if none is.
    pub(super) fn highest(&self) -> u64 {
        self.sacked_high.max(self.board.una())
    }

    /// Marks a packet as lost.
    pub(super) fn mark_lost(&mut self, number: u64) {
        if self.board.mark_lost(number) != Marked::Already {
            self.lost += 1;
        }
    }

    /// Raises the known degree of reordering: a packet from `low` on arrived after those before
    /// `high`.
    pub(super) fn note_reordering(&mut self, low: u64, high: u64) {
        if low >= high {
            return;
        }
        /// The kernel's default limit (`tcp_max_reordering`).
        const REORDERING_MAX: u64 = 300;
        self.reordering = self.reordering.max((high - low).min(REORDERING_MAX));
        self.reordering_seen = true;
    }
}
