//! Vegas: the window follows the queueing delay at the bottleneck (Brakmo and Peterson, "TCP Vegas:
//! End to End Congestion Avoidance on a Global Internet", 1995).
//!
//! Once in a round trip it compares the throughput expected from the shortest round-trip time with
//! the actual one; the difference times that round-trip time is the number of packets in queues. It
//! detects losses earlier than other variants: one or two duplicate acknowledgments suffice once
//! the fine-grained timeout has passed. Details as in ns-2's `tcp-vegas.cc`.

use corridor_base::Time;

use crate::tcp::config::{DUPLICATES_THRESHOLD, VegasConfig};
use crate::tcp::core::{Core, Progress};
use crate::tcp::state::{Event, State};

/// Smallest window, in packets.
const WINDOW_PACKETS_MIN: f64 = 2.0;
/// Acknowledgments after a fast retransmit that also check for an expired packet.
const WATCHFUL_ACKS: u64 = 2;

/// Vegas's state. Times in seconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Vegas {
    config: VegasConfig,
    /// Shortest round-trip time.
    base_s: Option<f64>,
    /// Sum and number of the RTT samples of this round.
    round_sum_s: f64,
    round_samples: u32,
    /// Sequence number and time at which this round began.
    round_start: (u64, Time),
    /// Slow start grows only in every other round.
    grows_this_round: bool,
    /// Packets by which each acknowledgment enlarges the window.
    increment: f64,
    fine: FineTimeout,
    /// Acknowledgments left that also check for an expired packet.
    watchful: u64,
    /// When the window was last reduced for a loss.
    reduced_at: Option<Time>,
    /// The window after that reduction, in packets.
    reduced_to: f64,
}

/// The fine-grained timeout: smoothed round-trip time and deviation, unscaled.
#[derive(Clone, Copy, Debug, Default)]
struct FineTimeout {
    mean_s: f64,
    deviation_s: f64,
    timeout_s: f64,
}

impl FineTimeout {
    fn begin(rtt_s: f64) -> Self {
        FineTimeout { mean_s: rtt_s, deviation_s: rtt_s / 4.0, timeout_s: 1.5 * rtt_s }
    }

    /// Takes a sample with gains 1/8 and 1/4; the timeout is the mean plus twice the deviation,
    /// plus a sixteenth as a margin.
    fn sample(&mut self, rtt_s: f64) {
        let error_s = rtt_s - self.mean_s;
        self.mean_s += error_s / 8.0;
        self.deviation_s += (error_s.abs() - self.deviation_s) / 4.0;
        self.timeout_s = (self.mean_s + 2.0 * self.deviation_s) * (17.0 / 16.0);
    }
}

impl Vegas {
    pub(super) fn new(config: VegasConfig) -> Self {
        Vegas {
            config,
            base_s: None,
            round_sum_s: 0.0,
            round_samples: 0,
            round_start: (0, Time::ZERO),
            grows_this_round: true,
            increment: 0.0,
            fine: FineTimeout::default(),
            watchful: 0,
            reduced_at: None,
            reduced_to: f64::INFINITY,
        }
    }

    pub(super) fn on_progress(&mut self, core: &mut Core, now: Time, progress: &Progress) {
        if core.state == State::Recovery {
            core.enter(Event::Repaired);
            core.inflation = 0;
            if core.duplicates > DUPLICATES_THRESHOLD {
                core.cwnd = core.cwnd.min(self.reduced_to);
            }
            // The threshold only matters in the first slow start.
            core.ssthresh = WINDOW_PACKETS_MIN;
        }
        core.settle(now, progress);
        core.duplicates = 0;
        if self.base_s.is_none() {
            let rtt_s = progress.rtt.as_secs_f64();
            self.base_s = Some(rtt_s);
            self.fine = FineTimeout::begin(rtt_s);
        }
        if core.flight.una() > self.round_start.0 {
            self.end_round(core, now);
        }
        if self.increment == 1.0 && !core.in_slow_start() {
            self.increment = 0.0;
        }
        // A window that is not fully used does not grow.
        let used = (core.flight.next() + 1 - core.flight.una()) as f64;
        if !progress.congestion && core.cwnd - used <= 2.0 {
            core.cwnd += self.increment;
        }
        self.measure(now, progress);
        self.watch(core, now);
    }

    /// Compares the expected throughput with the actual one.
    fn end_round(&mut self, core: &mut Core, now: Time) {
        let (began, began_at) = self.round_start;
        let rtt_s = match self.round_samples {
            0 => now.since(began_at).as_secs_f64(),
            count => self.round_sum_s / f64::from(count),
        };
        let sent = core.flight.next() - began;
        self.round_sum_s = 0.0;
        self.round_samples = 0;
        self.round_start = (core.flight.next(), now);
        if rtt_s <= 0.0 {
            return;
        }
        let base_s = match self.base_s {
            Some(base_s) if base_s <= rtt_s && sent > 1 => base_s,
            _ => *self.base_s.insert(rtt_s),
        };
        let window = (core.flight.next() + 1 - core.flight.una()) as f64;
        let queued = ((window / base_s - sent as f64 / rtt_s) * base_s + 0.5).trunc();
        if core.in_slow_start() {
            self.adjust_in_slow_start(core, queued);
        } else {
            self.adjust(core, queued);
        }
    }

    fn adjust_in_slow_start(&mut self, core: &mut Core, queued: f64) {
        self.grows_this_round = !self.grows_this_round;
        self.increment = 0.0;
        if !self.grows_this_round {
            return;
        }
        if queued > f64::from(self.config.gamma_packets) {
            core.ssthresh = WINDOW_PACKETS_MIN;
            core.cwnd = (core.cwnd * 7.0 / 8.0).max(WINDOW_PACKETS_MIN);
        } else {
            self.increment = 1.0;
        }
    }

    fn adjust(&mut self, core: &mut Core, queued: f64) {
        self.increment = 0.0;
        if queued > f64::from(self.config.beta_packets) {
            core.cwnd = (core.cwnd - 1.0).max(WINDOW_PACKETS_MIN);
        } else if queued < f64::from(self.config.alpha_packets) {
            self.increment = 1.0 / core.cwnd;
        }
    }

    /// Takes the RTT sample of packets that were sent only once.
    fn measure(&mut self, now: Time, progress: &Progress) {
        if progress.last.transmissions != 1 {
            return;
        }
        let rtt_s = now.since(progress.last.at).as_secs_f64();
        self.round_sum_s += rtt_s;
        self.round_samples += 1;
        self.base_s = self.base_s.map(|base_s| base_s.min(rtt_s));
        self.fine.sample(rtt_s);
    }

    /// After a fast retransmit, checks whether the next packet is lost too.
    fn watch(&mut self, core: &mut Core, now: Time) {
        if self.watchful == 0 {
            return;
        }
        self.watchful -= 1;
        if self.is_expired(core, now) {
            core.enter(Event::FastRetransmit);
            core.duplicates = DUPLICATES_THRESHOLD;
            core.urgent = Some(core.flight.una());
        } else {
            self.watchful = 0;
        }
    }

    /// Whether the oldest unacknowledged packet has been in flight for longer than the fine-grained
    /// timeout.
    fn is_expired(&self, core: &Core, now: Time) -> bool {
        let first = core.flight.packet(core.flight.una());
        first.is_some_and(|sent| now.since(sent.at).as_secs_f64() >= self.fine.timeout_s)
    }

    pub(super) fn on_duplicate(&mut self, core: &mut Core, now: Time) {
        core.limited = 0;
        let expired = self.is_expired(core, now);
        if expired || core.duplicates == DUPLICATES_THRESHOLD {
            if core.state != State::Loss || core.is_news() {
                self.retransmit(core, now);
            }
        } else if core.duplicates > DUPLICATES_THRESHOLD && core.state == State::Recovery {
            core.inflation += 1;
        }
    }

    /// Retransmits the oldest unacknowledged packet and reduces the window: by a quarter, or by
    /// half if the packet was lost again.
    fn retransmit(&mut self, core: &mut Core, now: Time) {
        let Some(first) = core.flight.packet(core.flight.una()).copied() else { return };
        let again = first.transmissions > 1;
        self.watchful = WATCHFUL_ACKS.min(core.flight.size());
        self.fine.timeout_s *= if again { 2.0 } else { 9.0 / 8.0 };
        if self.reduced_at.is_none_or(|at| at < first.at) {
            let window = core.window().floor() as u64;
            let left = match window {
                ..=3 => 2,
                _ if again => window / 2,
                _ => window - window / 4,
            };
            core.cwnd = left as f64;
            self.reduced_to = core.cwnd;
            core.inflation = u64::from(core.duplicates);
            self.reduced_at = Some(now);
        }
        if core.state != State::Recovery {
            core.enter(Event::FastRetransmit);
        }
        core.remember_loss();
        if self.config.backs_off {
            core.rto.back_off();
        }
        core.retransmit_first(now);
        core.counts.fast_retransmits += 1;
        if !again {
            core.duplicates = DUPLICATES_THRESHOLD;
        }
    }

    /// A timeout sets the window to 2.
    pub(super) fn on_timeout(&mut self, core: &mut Core, now: Time) {
        core.cwnd = WINDOW_PACKETS_MIN;
        self.reduced_to = WINDOW_PACKETS_MIN;
        self.reduced_at = Some(now);
        self.watchful = 0;
    }
}
