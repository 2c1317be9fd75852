//! The sending side of the papers' and ns-2's TCP.

use core::time::Duration;

use corridor_base::Time;

use super::config::{ConfigError, SenderConfig};
use super::core::{Core, Progress, SenderStats};
use super::segment::Segment;
use super::state::State;
use super::variant::Control;

/// A TCP sender: acknowledgments in, packets out, time as an argument.
///
/// The handshake is not modelled: data flows from the first packet on. Sequence numbers and
/// windows count packets of equal size.
#[derive(Clone, Debug)]
pub struct Sender {
    core: Core,
    control: Control,
}

impl Sender {
    /// A sender with nothing to send yet.
    ///
    /// # Errors
    /// [`ConfigError`] names the field that is out of its range.
    pub fn new(config: SenderConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Sender { core: Core::new(config), control: Control::new(config.variant) })
    }

    /// The settings.
    pub fn config(&self) -> &SenderConfig {
        &self.core.config
    }

    /// The application offers `packets` more; `u64::MAX` stands for unlimited data.
    pub fn offer(&mut self, packets: u64) {
        self.core.offered = self.core.offered.saturating_add(packets);
    }

    /// Packets offered so far.
    pub fn offered(&self) -> u64 {
        self.core.offered
    }

    /// Packets acknowledged so far: all before this number have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.core.flight.una()
    }

    /// Packets sent and not yet acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.core.flight.size()
    }

    /// Whether everything offered has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.core.flight.una() == self.core.offered
    }

    /// The state of loss recovery.
    pub fn state(&self) -> State {
        self.core.state
    }

    /// Counters since the start, and current gauges.
    pub fn stats(&self) -> SenderStats {
        let core = &self.core;
        SenderStats {
            cwnd_packets: core.cwnd,
            inflation_packets: core.inflation,
            ssthresh_packets: core.ssthresh,
            srtt: core.rto.srtt(),
            rto: core.rto.timeout(),
            ..core.counts
        }
    }

    /// Expiries of the retransmission timer.
    pub fn timeouts(&self) -> u64 {
        self.core.counts.timeouts
    }

    /// Congestion window, in packets, without inflation and regardless of the maximum window.
    pub fn cwnd_packets(&self) -> f64 {
        self.core.cwnd
    }

    /// Retransmission timeout in force, backoff included.
    pub fn rto(&self) -> Duration {
        self.core.rto.timeout()
    }

    /// Processes an acknowledgment; ignores data.
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) {
        let Segment::Ack { next, echo, ref sack, congestion_echo, window_end, .. } = *segment
        else {
            return;
        };
        let core = &mut self.core;
        core.counts.acks_received += 1;
        core.burst = u32::MAX;
        let congestion = core.config.ecn && congestion_echo;
        if congestion {
            self.control.on_congestion_echo(core, next);
        }
        let is_update = core.take_window(next, window_end, false);
        if next == core.flight.una() && !core.flight.is_empty() {
            // With a different window it is not a duplicate (RFC 5681, Section 2, (e)).
            if is_update {
                self.control.on_update(core, now, sack);
            } else {
                core.counts.duplicate_acks += 1;
                self.control.on_duplicate(core, now, sack);
            }
        } else if let Some((count, last)) = core.flight.acknowledge(next) {
            core.take_window(next, window_end, true);
            core.limited = 0;
            core.beyond = 0;
            core.urgent = core.urgent.filter(|&sequence| sequence >= next);
            let progress = Progress { count, last, echo, rtt: now.since(echo), congestion };
            self.control.on_progress(core, now, &progress, sack);
        } else {
            self.control.on_ranges(core, sack);
        }
    }

    /// The clock has reached `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.core.ask_if_shut(now);
        if self.core.timer.is_none_or(|at| now < at) {
            return;
        }
        self.core.burst = u32::MAX;
        self.control.on_timeout(&mut self.core, now);
    }

    /// When to call [`Sender::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.core.poll_timeout()
    }

    /// The next packet that may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let core = &mut self.core;
        if core.flight.next() < core.offered {
            core.restart_if_idle(now);
        }
        let sequence = match core.urgent.take() {
            Some(sequence) => sequence,
            None => match self.control.take_next(core) {
                Some(sequence) => sequence,
                None => {
                    core.note_shut(now);
                    return None;
                }
            },
        };
        let retransmission = core.send(now, sequence);
        Some(Segment::Data {
            sequence,
            sent_at: now,
            retransmission,
            congestion_experienced: false,
            window_reduced: false,
        })
    }
}
