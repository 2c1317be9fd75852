//! Reactions to losses: state changes, reductions of the window, and undoing them.
//!
//! RACK detects losses (`rack.rs`). A recovery reduces the window in proportion to what is
//! delivered (PRR, RFC 6937). A timeout restarts with one packet, and proves spurious if packets
//! sent only once arrive all the same (F-RTO, RFC 5682). A reduction is undone when timestamps, or
//! D-SACKs (RFC 3708), show that nothing was lost.

use super::control::Control;
use super::flow::{Flow, REORDERING, Told};
use super::sender::{LinuxSender, Resend};
use super::state::CaState;

/// The timestamp clock ticks in milliseconds.
const TIMESTAMP_US: u64 = 1_000;

impl Flow {
    /// Whether the echoed timestamp shows the arrival of a packet sent before the first
    /// retransmission.
    fn is_echo_of_first(&self, echo_us: u64) -> bool {
        let stamp = |us: u64| us / TIMESTAMP_US;
        self.first_again_us.is_some_and(|again_us| stamp(echo_us) < stamp(again_us))
    }

    fn may_undo(&self, echo_us: u64) -> bool {
        self.undo_from.is_some() && (self.undo_retransmits == 0 || self.is_echo_of_first(echo_us))
    }

    /// From now on the reduction may be undone.
    fn begin_undo(&mut self) {
        self.undo_from = Some(self.board.una());
        let copies = u64::from(self.probe_high.is_some() && self.probe_was_copy);
        self.undo_retransmits = (self.board.again() + copies) as i64;
        if self.undo_retransmits == 0 {
            self.undo_retransmits = -1;
        }
    }

    /// Reduces the window as packets are delivered (RFC 6937, with its "reduction bound", which
    /// lets the window grow back to the threshold as long as no more losses occur).
    pub(super) fn shrink(&mut self, acked: u64, losses: u64, advanced: bool) {
        if acked == 0 || self.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += acked;
        let in_flight = self.board.in_flight();
        let may_send = if in_flight > self.ssthresh {
            let share = (self.ssthresh * self.prr_delivered).div_ceil(self.prior_cwnd);
            share.saturating_sub(self.prr_out)
        } else {
            let mut packets = self.prr_delivered.saturating_sub(self.prr_out).max(acked);
            packets += u64::from(advanced && losses == 0);
            packets.min(self.ssthresh - in_flight)
        };
        // The first retransmission goes at once.
        self.cwnd = in_flight + may_send.max(u64::from(self.prr_out == 0));
    }
}

impl LinuxSender {
    pub(super) fn enter(&mut self, state: CaState) {
        self.control.on_state(&self.flow, state);
        self.flow.state = state;
    }

    fn begin_reduction(&mut self) {
        let ssthresh = self.control.reduced_ssthresh(&self.flow);
        let flow = &mut self.flow;
        flow.high = flow.board.next();
        flow.probe_high = None;
        flow.cwnd_count = 0;
        flow.owes_cwr = flow.config.ecn;
        flow.prior_cwnd = flow.cwnd;
        (flow.prr_delivered, flow.prr_out) = (0, 0);
        flow.ssthresh = ssthresh;
    }

    fn end_reduction(&mut self) {
        let flow = &mut self.flow;
        if self.control.rules() {
            return;
        }
        let is_set = flow.ssthresh < super::flow::SSTHRESH_INFINITE;
        if is_set && (flow.state == CaState::Cwr || flow.undo_from.is_some()) {
            flow.cwnd = flow.ssthresh;
        }
    }

    pub(super) fn enter_recovery(&mut self, echoed: bool) {
        self.flow.counts.recoveries += 1;
        self.flow.prior_ssthresh = 0;
        self.flow.begin_undo();
        if !self.flow.is_reducing() {
            if !echoed {
                self.flow.prior_ssthresh = self.flow.current_ssthresh();
            }
            self.begin_reduction();
        }
        self.enter(CaState::Recovery);
    }

    /// Congestion was echoed: begins a reduction without a loss.
    pub(super) fn enter_cwr(&mut self) {
        self.flow.prior_ssthresh = 0;
        if self.flow.state < CaState::Cwr {
            self.flow.undo_from = None;
            self.begin_reduction();
            self.flow.counts.ecn_responses += 1;
            self.enter(CaState::Cwr);
        }
    }

    /// The retransmission timer has expired: packets that may still arrive are left alone, the
    /// others count as lost.
    pub(super) fn enter_loss(&mut self) {
        let was_fine = self.flow.state < CaState::Recovery;
        let first = self.flow.board.una();
        for number in first..self.flow.board.next() {
            let Some(&sent) = self.flow.board.get(number) else { break };
            if number == first || self.flow.rack_remaining_us(&sent, 0) <= 0 {
                self.flow.mark_lost(number);
            }
        }
        let flow = &self.flow;
        let is_new = flow.state <= CaState::Disorder
            || flow.board.una() >= flow.high
            || (flow.state == CaState::Loss && flow.timeouts_in_row == 0);
        if is_new {
            self.flow.prior_ssthresh = self.flow.current_ssthresh();
            self.flow.prior_cwnd = self.flow.cwnd;
            self.flow.ssthresh = self.control.reduced_ssthresh(&self.flow);
            self.flow.begin_undo();
        }
        self.flow.cwnd = self.flow.board.in_flight() + 1;
        self.flow.cwnd_count = 0;
        if self.flow.state <= CaState::Disorder && self.flow.board.sacked() >= REORDERING {
            self.flow.reordering = self.flow.reordering.min(REORDERING);
        }
        self.enter(CaState::Loss);
        let flow = &mut self.flow;
        flow.high = flow.board.next();
        flow.owes_cwr = flow.config.ecn;
        flow.probe_high = None;
        flow.frto = was_fine || flow.timeouts_in_row > 0;
    }

    fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            self.flow.board.unmark_lost();
        }
        if self.flow.prior_ssthresh > 0 {
            self.flow.cwnd = self.control.restored_window(&self.flow);
            if self.flow.prior_ssthresh > self.flow.ssthresh {
                self.flow.ssthresh = self.flow.prior_ssthresh;
                self.flow.owes_cwr = false;
            }
        }
        self.flow.undo_from = None;
        // RACK has to re-examine what was believed lost.
        self.flow.rack.advanced = true;
        self.flow.counts.undos += 1;
    }

    /// Everything that was in flight when the loss was detected has arrived.
    fn try_undo_recovery(&mut self, echo_us: u64) {
        if self.flow.may_undo(echo_us) {
            self.undo_reduction(false);
        } else {
            self.flow.rack.persist = self.flow.rack.persist.saturating_sub(1);
        }
        self.enter(CaState::Open);
    }

    fn try_undo_by_duplicates(&mut self) -> bool {
        let is_idle = self.flow.undo_from.is_some() && self.flow.undo_retransmits == 0;
        if is_idle {
            self.flow.rack.persist = (self.flow.rack.persist + 1).min(16);
            self.undo_reduction(false);
        }
        is_idle
    }

    fn try_undo_loss(&mut self, is_proven: bool, echo_us: u64) -> bool {
        if !is_proven && !self.flow.may_undo(echo_us) {
            return false;
        }
        self.undo_reduction(true);
        self.flow.timeouts_in_row = 0;
        self.enter(CaState::Open);
        true
    }

    /// A partial acknowledgment in recovery. Returns true if an original copy has arrived while
    /// retransmissions are still in flight: then nothing more counts as lost for now.
    fn try_undo_partial(&mut self, una_before: u64, echo_us: u64) -> bool {
        if self.flow.undo_from.is_none() || !self.flow.is_echo_of_first(echo_us) {
            return false;
        }
        let high = self.flow.highest();
        self.flow.note_reordering(una_before, high);
        if self.flow.board.again() > 0 {
            return true;
        }
        if !self.flow.board.has_sent_again() {
            self.flow.first_again_us = None;
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }

    fn keep_open(&mut self) {
        let board = &self.flow.board;
        let is_disordered = board.sacked() + board.lost() > 0 || board.has_sent_again();
        let state = if is_disordered { CaState::Disorder } else { CaState::Open };
        if self.flow.state != state {
            self.enter(state);
            self.flow.high = self.flow.board.next();
        }
    }

    fn try_to_open(&mut self, told: &Told) {
        if !self.flow.board.has_sent_again() {
            self.flow.first_again_us = None;
        }
        if told.congestion {
            self.enter_cwr();
        }
        if self.flow.state != CaState::Cwr {
            self.keep_open();
        }
    }

    /// Detects losses with what RACK has learnt.
    fn find_losses(&mut self, told: &mut Told) {
        if self.flow.board.is_empty() {
            return;
        }
        let again = self.flow.board.again();
        if self.flow.rack_mark_lost() {
            told.sets_timer = false;
        }
        told.lost_again |= again > self.flow.board.again();
    }

    /// Handles an acknowledgment when something is wrong, or when it says so.
    pub(super) fn on_alert(&mut self, una_before: u64, echo_us: u64, told: &mut Told) {
        if told.congestion {
            self.flow.prior_ssthresh = 0;
        }
        if self.flow.state == CaState::Open {
            self.flow.first_again_us = None;
        } else if self.flow.board.una() >= self.flow.high {
            match self.flow.state {
                CaState::Cwr if self.flow.board.una() != self.flow.high => {
                    self.end_reduction();
                    self.enter(CaState::Open);
                }
                CaState::Recovery => {
                    self.try_undo_recovery(echo_us);
                    // Sets the window that PRR left to the threshold, unless everything is undone.
                    self.end_reduction();
                }
                _ => {}
            }
        }
        match self.flow.state {
            CaState::Recovery => self.go_on_recovering(una_before, echo_us, told),
            CaState::Loss => self.go_on_after_timeout(echo_us, told),
            _ => self.look_for_recovery(told),
        }
    }

    fn go_on_recovering(&mut self, una_before: u64, echo_us: u64, told: &mut Told) {
        if told.advanced && self.try_undo_partial(una_before, echo_us) {
            return;
        }
        if self.try_undo_by_duplicates() {
            self.try_to_open(told);
        }
        self.find_losses(told);
        if self.flow.state != CaState::Recovery {
            if self.flow.board.lost() == 0 {
                return;
            }
            self.enter_recovery(told.congestion);
        }
        self.resend = Resend::Lost;
    }

    fn go_on_after_timeout(&mut self, echo_us: u64, told: &mut Told) {
        self.process_loss(echo_us, told);
        self.find_losses(told);
        if self.flow.state == CaState::Open || told.lost_again {
            self.look_for_recovery(told);
        }
    }

    fn look_for_recovery(&mut self, told: &mut Told) {
        if self.flow.state <= CaState::Disorder {
            self.try_undo_by_duplicates();
        }
        self.find_losses(told);
        if self.flow.board.lost() == 0 {
            return self.try_to_open(told);
        }
        self.enter_recovery(told.congestion);
        self.resend = Resend::Lost;
    }

    /// Handles an acknowledgment after a timeout (RFC 5682, Section 3.1, with SACK).
    fn process_loss(&mut self, echo_us: u64, told: &Told) {
        let is_recovered = self.flow.board.una() >= self.flow.high;
        if told.advanced && self.try_undo_loss(false, echo_us) {
            return;
        }
        if self.flow.frto {
            // Step 3.b: an original copy has arrived, so the timeout was spurious.
            if told.original && self.try_undo_loss(true, echo_us) {
                return;
            }
            let is_pure = !told.is_not_duplicate();
            if self.flow.board.next() > self.flow.high {
                if told.sacked || is_pure {
                    self.flow.frto = false;
                }
            } else if told.advanced && !is_recovered {
                // Step 2.b: sends new packets, whose acknowledgments will tell.
                self.flow.high = self.flow.board.next();
                if self.has_new() {
                    self.resend = Resend::NewFirst;
                    return;
                }
                self.flow.frto = false;
            }
        }
        if is_recovered {
            self.try_undo_recovery(echo_us);
            return;
        }
        self.resend = Resend::Lost;
    }

    /// The tail loss probe was acknowledged (RFC 8985, Section 7.4).
    pub(super) fn on_probe_ack(&mut self, told: &Told) {
        let Some(high) = self.flow.probe_high.filter(|&high| self.flow.board.una() >= high) else {
            return;
        };
        if !self.flow.probe_was_copy || told.duplicate_probe {
            self.flow.probe_high = None;
        } else if self.flow.board.una() > high {
            // The probe repaired a loss, which has to reduce the window like any other.
            self.begin_reduction();
            self.enter(CaState::Cwr);
            self.end_reduction();
            self.keep_open();
        } else if !told.is_not_duplicate() && !told.sacked {
            self.flow.probe_high = None;
        }
    }

    /// Adapts the window after an acknowledgment.
    pub(super) fn adapt(&mut self, told: &Told, sample: &super::rate::RateSample) {
        if self.control.rules() {
            return self.control.rule(&mut self.flow, sample);
        }
        if self.flow.is_reducing() {
            self.flow.shrink(sample.acked, sample.losses, told.advanced);
        } else if told.advanced || (self.flow.reordering > REORDERING && told.is_progress()) {
            self.control.grow(&mut self.flow, sample.acked);
        }
        if matches!(self.control, Control::Reno | Control::Cubic(_)) {
            self.flow.set_pace_by_window();
        }
    }
}
