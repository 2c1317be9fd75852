//! Congestion control: how the window grows, and how a loss reduces it.

use super::bbr::Bbr;
use super::config::{Congestion, LinuxSenderConfig};
use super::cubic::Cubic;
use super::flow::Flow;
use super::rate::RateSample;
use super::state::CaState;

/// Smallest slow-start threshold, packets (RFC 5681, equation 4).
const SSTHRESH_MIN: u64 = 2;

/// A congestion control algorithm and its state.
#[derive(Clone, Debug)]
pub(super) enum Control {
    Reno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Control {
    pub(super) fn new(config: &LinuxSenderConfig, flow: &mut Flow) -> Self {
        match config.congestion {
            Congestion::Reno => Control::Reno,
            Congestion::Cubic => Control::Cubic(Cubic::new()),
            Congestion::Bbr => Control::Bbr(Box::new(Bbr::new(flow))),
        }
    }

    /// Whether it sets the window itself in all states, as BBR does.
    pub(super) fn rules(&self) -> bool {
        matches!(self, Control::Bbr(_))
    }

    /// The slow-start threshold after a loss. Call once for each reduction: it changes the state.
    pub(super) fn reduced_ssthresh(&mut self, flow: &Flow) -> u64 {
        match self {
            Control::Reno => (flow.cwnd >> 1).max(SSTHRESH_MIN),
            Control::Cubic(cubic) => cubic.reduce(flow.cwnd).max(SSTHRESH_MIN),
            Control::Bbr(bbr) => {
                bbr.save_window(flow);
                flow.ssthresh
            }
        }
    }

    /// The window to restore when a reduction is undone.
    pub(super) fn restored_window(&mut self, flow: &Flow) -> u64 {
        match self {
            Control::Reno | Control::Cubic(_) => flow.cwnd.max(flow.prior_cwnd),
            Control::Bbr(bbr) => {
                bbr.forget_full_pipe(flow);
                flow.cwnd
            }
        }
    }

    /// Called before the state changes.
    pub(super) fn on_state(&mut self, flow: &Flow, state: CaState) {
        match self {
            Control::Cubic(cubic) if state == CaState::Loss => cubic.reset(flow),
            Control::Bbr(bbr) if state == CaState::Loss => bbr.on_loss(flow),
            _ => {}
        }
    }

    /// Packets with an RTT sample have been acknowledged.
    pub(super) fn on_rtt(&mut self, flow: &mut Flow, rtt_us: u64) {
        if let Control::Cubic(cubic) = self {
            cubic.on_rtt(flow, rtt_us);
        }
    }

    /// Sending resumes after an idle time.
    pub(super) fn on_restart(&mut self, flow: &mut Flow, idle_us: u64) {
        match self {
            Control::Cubic(cubic) => cubic.on_restart(idle_us),
            Control::Bbr(bbr) => bbr.on_restart(flow),
            Control::Reno => {}
        }
    }

    /// Grows the window by what was acknowledged.
    pub(super) fn grow(&mut self, flow: &mut Flow, acked: u64) {
        if !flow.is_window_used() {
            return;
        }
        match self {
            Control::Reno => {
                let rest = slow_start(flow, acked);
                let per_packet = flow.cwnd;
                increase(flow, per_packet, rest);
            }
            Control::Cubic(cubic) => cubic.grow(flow, acked),
            Control::Bbr(_) => {}
        }
    }

    /// Handles an acknowledgment completely, for an algorithm that sets the window itself.
    pub(super) fn rule(&mut self, flow: &mut Flow, sample: &RateSample) {
        if let Control::Bbr(bbr) = self {
            bbr.on_ack(flow, sample);
        }
    }
}

/// Grows the window by what was acknowledged, up to the threshold; returns the rest.
pub(super) fn slow_start(flow: &mut Flow, acked: u64) -> u64 {
    if !flow.in_slow_start() {
        return acked;
    }
    let cwnd = (flow.cwnd + acked).min(flow.ssthresh);
    let rest = acked - (cwnd - flow.cwnd);
    flow.cwnd = cwnd.min(u64::from(flow.config.window_packets_max));
    rest
}

/// Grows the window by one packet for each `per_packet` acknowledged.
pub(super) fn increase(flow: &mut Flow, per_packet: u64, acked: u64) {
    if acked == 0 {
        return;
    }
    if flow.cwnd_count >= per_packet {
        flow.cwnd_count = 0;
        flow.cwnd += 1;
    }
    flow.cwnd_count += acked;
    if flow.cwnd_count >= per_packet {
        let packets = flow.cwnd_count / per_packet;
        flow.cwnd_count -= packets * per_packet;
        flow.cwnd += packets;
    }
    flow.cwnd = flow.cwnd.min(u64::from(flow.config.window_packets_max));
}
